/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Waits for the GIL, seen at the context switch: a thread that wants it sleeps on a futex within the GIL's
 * own struct, on every build and without a probe.
 *
 * It sleeps in short naps (5 ms by default), after each of which it asks the holder to let go. So sleeps of a
 * thread between which it hardly ran are one wait: only one that got the GIL goes on to run. A wait is thus
 * known to be over when the thread has run for a while, or has slept on something else; its record comes
 * then, with the time at which the last sleep ended.
 */
#ifndef HB_GIL_BPF_H
#define HB_GIL_BPF_H

#include "pyevents.bpf.h"
#include "task.bpf.h"

const volatile bool hb_gil SEC(".rodata") __weak = false;

/* What a thread runs at most between two sleeps of one wait: it wakes, looks at the GIL, and goes back. */
#define HB_GIL_GLANCE 50000ULL

struct hb_gil_wait {
	u64 gil; /* 0: no wait under way */
	u64 begin, end, slept;
	u64 out; /* begin of the present sleep; 0: awake */
	u64 in, ran;
	u64 task;
	u32 holder, stack, holder_stack;
	u16 sleeps;
	u8 handover, torn; /* the holder ran too fast for its stack to be read */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct hb_gil_wait);
} gil_waits SEC(".maps") __weak;

/* Index of the GIL that this futex word is of; negative: of none. */
static __always_inline int gil_of(const struct hb_py_events *e, u64 word, u8 *handover)
{
	u32 i;

#pragma clang loop unroll(disable)
	for (i = 0; i < HB_PY_GILS; i++) {
		u64 in;

		if (i >= e->n_gils)
			break;
		in = word - e->gil[i];
		if (in < HB_GIL_TAKE || in >= HB_GIL_SIZE)
			continue;
		*handover = in >= HB_GIL_GIVE;
		return i;
	}
	return -1;
}

static __always_inline void gil_emit(struct task_struct *t, struct hb_gil_wait *w, u8 flags)
{
	struct hb_rec_py_gil *g;

	if (w->torn)
		hb_lose(HB_LOSS_PY_MOVED, HB_TYPE_py_gil);
	g = HB_RESERVE_FOR(py_gil, t->tgid, t->pid);
	if (!g)
		return;
	hb_wire_of(g)->ts = w->end;
	g->dur = w->end - w->begin;
	g->slept = w->slept;
	g->gil = w->gil;
	g->task = w->task;
	g->holder = w->holder;
	g->stack = w->stack;
	g->holder_stack = w->holder_stack;
	g->sleeps = w->sleeps;
	g->handover = w->handover;
	g->flags = flags;
	HB_SUBMIT(g);
}

static __always_inline void gil_close(struct task_struct *t, struct hb_gil_wait *w)
{
	if (w->gil && w->sleeps && w->end)
		gil_emit(t, w, 0);
	w->gil = 0;
}

/* Who holds it: its tid, and where it is, which is looked at again at the next sleep when it ran too fast to
 * be read. */
__weak __noinline int hb_gil_holder(struct hb_gil_wait *w, const struct hb_py_raise *e,
				    const struct hb_py_walk *walk)
{
	u64 holder = 0, thread = 0;
	u32 id;

	if (!w || !e || !walk)
		return 0;
	if (!py_read(&holder, w->gil + HB_GIL_LAST_HOLDER) || !holder)
		return 0;
	/* Whoever takes it has not yet said so: what is waited for is only its mutex. */
	if (!py_read(&thread, holder + walk->thread_id) || thread == py_thread_pointer())
		return 0;
	if (e->native_id)
		w->holder = py_int(holder + e->native_id);
	else if (e->thread_tid)
		w->holder = py_int(thread + e->thread_tid);
	id = py_take_other(walk, holder, HB_STACK_SWITCH, HB_TYPE_py_gil, &w->torn);
	w->holder_stack = id ? hb_stack__join(0, id, HB_TYPE_py_gil) : 0;
	return 0;
}

static __always_inline void gil_open(struct hb_gil_wait *w, const struct hb_py_events *e, u32 i, u8 handover,
				     u64 now, u32 stack)
{
	__builtin_memset(w, 0, sizeof(*w));
	w->gil = e->gil[i & (HB_PY_GILS - 1)];
	w->begin = now;
	w->handover = handover;
	w->stack = stack;
	w->task = stack & HB_STACK_PAIR ? py_task(HB_STACK_SWITCH) : 0;
}

/* At the first sleep; at a later one where it was not known yet. */
static __always_inline void gil_name_holder(struct hb_gil_wait *w, const struct hb_py_events *e, u32 i)
{
	u32 tgid = bpf_get_current_pid_tgid() >> 32, runtime = e->gil_runtime[i & (HB_PY_GILS - 1)];
	struct hb_py_process *p = bpf_map_lookup_elem(&py_processes, &tgid);

	if (p && p->n && runtime < HB_PY_RUNTIMES && !w->handover && !w->holder_stack)
		hb_gil_holder(w, &e->runtime[runtime], &p->runtime[runtime]);
}

/* The current thread leaves the CPU. */
static __always_inline void hb_gil__out(struct task_struct *t, u64 word, u64 now, bool runs, u32 stack)
{
	struct hb_py_events *e = NULL;
	struct hb_gil_wait *w;
	u8 handover = 0;
	int i = -1;
	u32 tgid;

	if (!hb_gil)
		return;
	if (word) {
		tgid = t->tgid;
		e = bpf_map_lookup_elem(&py_events, &tgid);
		i = e ? gil_of(e, word, &handover) : -1;
	}
	w = bpf_task_storage_get(&gil_waits, t, 0, i >= 0 ? BPF_LOCAL_STORAGE_GET_F_CREATE : 0);
	if (!w) {
		if (i >= 0)
			hb_lose(HB_LOSS_NO_STORAGE, HB_TYPE_py_gil);
		return;
	}
	if (w->gil) {
		w->ran += now - w->in;
		if (w->ran > HB_GIL_GLANCE || (i < 0 && !runs) ||
		    (i >= 0 && (e->gil[i & (HB_PY_GILS - 1)] != w->gil || handover != w->handover)))
			gil_close(t, w);
	}
	if (i < 0)
		return;
	if (!w->gil)
		gil_open(w, e, i, handover, now, stack);
	gil_name_holder(w, e, i);
	w->out = now;
	w->ran = 0;
}

/* A thread is on a CPU again. */
static __always_inline void hb_gil__in(struct task_struct *t, u64 now)
{
	struct hb_gil_wait *w;

	if (!hb_gil)
		return;
	w = bpf_task_storage_get(&gil_waits, t, 0, 0);
	if (!w || !w->gil)
		return;
	if (w->out) {
		w->slept += now - w->out;
		w->sleeps++;
		w->end = now;
		w->out = 0;
	}
	w->in = now;
}

/* It slept already when the window began. */
static __always_inline void hb_gil__before(struct task_struct *t, u64 word, u64 begin)
{
	struct hb_py_events *e;
	struct hb_gil_wait *w;
	u32 tgid = t->tgid;
	u8 handover = 0;
	int i;

	if (!hb_gil || !word)
		return;
	e = bpf_map_lookup_elem(&py_events, &tgid);
	i = e ? gil_of(e, word, &handover) : -1;
	if (i < 0)
		return;
	w = bpf_task_storage_get(&gil_waits, t, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!w || w->gil)
		return;
	__builtin_memset(w, 0, sizeof(*w));
	w->gil = e->gil[i & (HB_PY_GILS - 1)];
	w->begin = begin;
	w->handover = handover;
	w->out = begin;
}

/* The window is over. */
static __always_inline void hb_gil__end(struct task_struct *t, u64 end)
{
	struct hb_gil_wait *w;
	bool open;

	if (!hb_gil)
		return;
	w = bpf_task_storage_get(&gil_waits, t, 0, 0);
	if (!w || !w->gil || w->begin >= end)
		return;
	open = w->out != 0;
	if (open) {
		w->slept += end > w->out ? end - w->out : 0;
		w->sleeps++;
		w->end = end;
	}
	if (w->end && w->end <= end)
		gil_emit(t, w, open ? HB_PYGIL_OPEN : 0);
	w->gil = 0;
}

#endif
