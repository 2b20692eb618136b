// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Off-CPU time: one `offcpu` record per sleep of a target thread, made when it runs again.
 *
 * Two raw tracepoints. sched_switch sees the thread leave (its system call, what it waits for and its stack
 * are still readable: it is current) and come back. sched_waking, not sched_wakeup: it runs in the waker's
 * context, while wakeup may run on the woken thread's CPU.
 *
 * Order: each sleep has exactly one waking that matches, and it is the last one before the thread runs again,
 * because a woken thread's state matches no further wake-up. It may come before our switch-out on another CPU
 * (the waker then waits for the descheduling to end), so switch-out leaves the waker's fields alone and
 * switch-in consumes them.
 *
 * Sleeps that lie across an edge of the window are found by walking the tasks there (window_edge): a thread
 * that is blocked all the time, the one an operator looks for, would otherwise never be seen.
 */
#include "python.bpf.h"
#include <bpf/bpf_endian.h>
#include "channel.bpf.h"
#include "gil.bpf.h"

/* Sleeps shorter than this give no record. */
const volatile u64 hb_offcpu_min_ns = 0;
/* Stacks are put on records at least this long. The walk itself cannot wait for the length: at switch-in the
 * other address space is still in place and the thread's memory is out of reach. */
const volatile u64 hb_offcpu_stack_min_ns = 100000;
const volatile bool hb_offcpu_stacks = true;
/* The kernel passes prev_state to sched_switch (5.18; from hb_kernel_knobs): the task's own field can already
 * have been changed by a waker. */
const volatile bool hb_switch_has_state = false;

/* One thread's sleep under way. */
struct hb_sleep {
	u64 out;  /* switch-out; 0: none seen */
	u64 wake; /* last waking since it ran; 0: none */
	struct hb_channel chan;
	u64 a0, a1, a2, wa0;
	u32 waker, waker_pid;
	u16 sysno, wsys;
	u8 state, wctx;
	u8 before; /* it slept already when the window began: `out` is the window's begin */
	u32 stack;
	u32 native;    /* the native part of it */
	u64 task;      /* see py_task() */
	u64 walked[4]; /* what the last walk of that began with */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct hb_sleep);
} sleeps SEC(".maps");

/* Who ran on this CPU last: what a thread that could run waited for. Of every task, as it may be any. */
#define HB_RUNS 8 /* a power of two; in a delay of many switches the last few are looked at */
struct hb_run {
	u64 from;
	u32 tid, pid;
};
struct hb_runs {
	struct hb_run run[HB_RUNS];
	u32 n;
};
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct hb_runs);
} runs SEC(".maps");

/* A native walk reads one user word per frame, so it is repeated only when instruction, frame pointer, or the
 * first frame's two words (the caller's frame and return address) differ from the last time. Callers further
 * out that changed without moving those are not noticed. */
static __always_inline void sleep_walk_native(void *ctx, struct hb_sleep *s, const struct hb_call_regs *r)
{
	u64 top[2] = {};

	if (r->fp)
		bpf_probe_read_user(top, sizeof(top), (void *)r->fp);
	if (s->native && s->walked[0] == r->ip && s->walked[1] == r->fp && s->walked[2] == top[0] &&
	    s->walked[3] == top[1])
		return;
	s->walked[0] = r->ip;
	s->walked[1] = r->fp;
	s->walked[2] = top[0];
	s->walked[3] = top[1];
	s->native = hb_stack__take(ctx, HB_TYPE_offcpu, BPF_F_USER_STACK, HB_STACK_SWITCH);
}

/* Python's is walked each time: from one sleep to the next only a caller's line may have changed, far out, or
 * another function lie where the last one was. The latter takes a read of each code object to tell, which is
 * most of what a walk costs. */
static __always_inline void sleep_walk(void *ctx, struct hb_sleep *s, const struct hb_call_regs *r)
{
	s->stack = 0;
	s->task = 0;
	if (!r->has_user)
		return;
	sleep_walk_native(ctx, s, r);
	s->stack = hb_stack__pair(s->native, HB_TYPE_offcpu, HB_STACK_SWITCH);
	s->task = hb_python && (s->stack & HB_STACK_PAIR) ? py_task(HB_STACK_SWITCH) : 0;
}

static __always_inline void switch_out(void *ctx, struct task_struct *prev, bool preempt, u32 state)
{
	struct hb_sleep *s = bpf_task_storage_get(&sleeps, prev, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	struct hb_call_regs r;

	if (!s) {
		hb_lose(HB_LOSS_NO_STORAGE, HB_TYPE_offcpu);
		return;
	}
	/* It ran without our having seen it come back: programs do not run everywhere, some machines keep
	 * them out while a task that is not to be watched is current. What is known of that sleep is void. */
	if (s->out) {
		hb_lose(HB_LOSS_MISSED, HB_TYPE_offcpu);
		s->wake = 0;
	}
	hb_task__call(prev, &r);
	/* A thread preempted on its way into a sleep still runs: the state it prepared does not count yet. */
	s->before = 0;
	s->state = preempt ? HB_TSTATE_RUNNING : hb_task__state_word(state);
	s->sysno = r.sysno;
	s->a0 = r.a0;
	s->a1 = r.a1;
	s->a2 = r.a2;
	if (s->state != HB_TSTATE_RUNNING)
		hb_channel__of(prev, &r, &s->chan);
	else
		__builtin_memset(&s->chan, 0, sizeof(s->chan));
	if (hb_offcpu_stacks)
		sleep_walk(ctx, s, &r);
	s->out = bpf_ktime_get_ns();
	hb_gil__out(prev, s->chan.kind == HB_CHAN_FUTEX ? s->chan.id : 0, s->out,
		    s->state == HB_TSTATE_RUNNING, s->stack);
}

static __always_inline u64 sleep_ready(const struct hb_sleep *s, u64 now, u64 dur)
{
	if (s->state == HB_TSTATE_RUNNING)
		return dur;
	if (!s->wake)
		return 0;
	return s->wake > s->out ? now - s->wake : dur;
}

/* Of a sleep that began before the window: what user space has seen since, while the thread did not run. */
static __always_inline u32 edge_stack(struct task_struct *t)
{
	struct hb_py_thread key = {.pointer = py_thread_pointer_of(t), .tgid = t->tgid};
	u32 *id = bpf_map_lookup_elem(&edge_stacks, &key);

	return id ? *id : 0;
}

static __always_inline u32 sleep_stack(struct task_struct *t, const struct hb_sleep *s, u64 dur)
{
	if (dur < hb_offcpu_stack_min_ns || !hb_offcpu_stacks)
		return 0;
	return s->before && hb_python ? edge_stack(t) : s->stack;
}

/* Who had this CPU most of the time since `since`; 0 in out->tid: it was idle, or that is longer ago than is
 * kept. */
static __always_inline void who_ran(u64 since, u64 now, struct hb_run *out)
{
	u32 zero = 0, n;
	struct hb_runs *r = bpf_map_lookup_elem(&runs, &zero);
	u64 end = now, most = 0;

	out->tid = out->pid = 0;
	if (!r)
		return;
	n = r->n;
	for (int i = 1; i <= HB_RUNS; i++) {
		const struct hb_run *one = &r->run[(n - i) & (HB_RUNS - 1)];
		u64 from = one->from > since ? one->from : since;

		if (end <= since || !one->from)
			break;
		if (end - from > most) {
			most = end - from;
			out->tid = one->tid;
			out->pid = one->pid;
		}
		end = one->from;
	}
}

static __always_inline void note_run(const struct task_struct *next)
{
	u32 zero = 0;
	struct hb_runs *r = bpf_map_lookup_elem(&runs, &zero);
	struct hb_run *one;

	if (!r)
		return;
	one = &r->run[r->n++ & (HB_RUNS - 1)];
	one->from = bpf_ktime_get_ns();
	one->tid = next->pid;
	one->pid = next->tgid;
}

static __always_inline void sleep_emit(struct task_struct *next, const struct hb_sleep *s, u64 now, u8 flags)
{
	bool outside = s->sysno == HB_SYSNO_NONE;
	bool woken = s->wake && s->state != HB_TSTATE_RUNNING;
	struct hb_rec_offcpu *o = HB_RESERVE_FOR(offcpu, next->tgid, next->pid);

	if (!o)
		return;
	hb_wire_of(o)->ts = now;
	o->dur = now - s->out;
	o->ready = sleep_ready(s, now, o->dur);
	o->chan = s->chan.id;
	o->local = s->chan.local;
	o->peer = s->chan.peer;
	o->chankind = s->chan.kind;
	o->a0 = outside ? 0 : s->a0; /* outside a call the registers are the program's own */
	o->a1 = outside ? 0 : s->a1;
	o->a2 = outside ? 0 : s->a2;
	o->wa0 = woken ? s->wa0 : 0;
	o->waker = woken ? s->waker : 0;
	o->waker_pid = woken ? s->waker_pid : 0;
	o->wsys = woken ? s->wsys : HB_SYSNO_NONE;
	o->wctx = woken ? s->wctx : HB_WCTX_UNKNOWN;
	o->stack = sleep_stack(next, s, o->dur);
	o->task = o->stack ? s->task : 0;
	o->sysno = s->sysno;
	o->state = s->state;
	o->flags = flags | (s->before ? HB_OFFCPU_BEFORE : 0);
	o->pad = 0;
	o->ran = 0;
	o->ran_pid = 0;
	/* Shorter ones are what a switch costs anyway. Of a thread that does not run yet the CPU is not
	 * known. */
	if (o->ready >= hb_offcpu_stack_min_ns && !(flags & HB_OFFCPU_OPEN)) {
		struct hb_run ran;

		who_ran(now - o->ready, now, &ran);
		o->ran = ran.tid;
		o->ran_pid = ran.pid;
	}
	HB_SUBMIT(o);
}

static __always_inline void switch_in(struct task_struct *next)
{
	struct hb_sleep *s = bpf_task_storage_get(&sleeps, next, 0, 0);
	u64 now;

	if (!s || !s->out)
		return;
	now = bpf_ktime_get_ns();
	if (now - s->out >= hb_offcpu_min_ns)
		sleep_emit(next, s, now, 0);
	hb_gil__in(next, now);
	s->out = 0;
	s->wake = 0;
}

/* Args: preempt, prev, next, and since 5.18 prev_state. */
SEC("tp_btf/sched_switch")
int sched_switch(u64 *ctx)
{
	struct task_struct *prev = (void *)ctx[1], *next = (void *)ctx[2];

	/* The idle task is never a target: half of all switches need one lookup only. */
	if (prev->tgid && hb_target__is(prev->tgid))
		switch_out(ctx, prev, ctx[0] & 1, hb_switch_has_state ? (u32)ctx[3] : hb_task__state(prev));
	if (next->tgid && hb_target__is(next->tgid))
		switch_in(next);
	note_run(next);
	return 0;
}

/* A softirq that runs inside its own thread's send is the delivery of what it sends: the thread is the
 * sender. */
static __always_inline bool waker_sends(struct task_struct *cur, const struct hb_call_regs *r)
{
	struct file *f;

	if (!(hb_call__class(r->sysno) & HB_CALL_SEND))
		return false;
	f = hb_fd__file(cur, r->a0);
	return f && hb_file__mode(f) == HB_S_IFSOCK;
}

SEC("tp_btf/sched_waking")
int sched_waking(u64 *ctx)
{
	struct task_struct *p = (void *)ctx[0], *cur;
	struct hb_call_regs r;
	struct hb_sleep *s;

	if (!hb_target__is(p->tgid))
		return 0;
	s = bpf_task_storage_get(&sleeps, p, 0, 0);
	if (!s)
		return 0;
	cur = bpf_get_current_task_btf();
	hb_task__call(cur, &r);
	s->waker = cur->pid;
	s->waker_pid = cur->tgid;
	s->wsys = r.sysno;
	s->wa0 = r.sysno == HB_SYSNO_NONE ? 0 : r.a0;
	s->wctx = hb_context(cur);
	if (s->wctx == HB_WCTX_SOFTIRQ && waker_sends(cur, &r))
		s->wctx = HB_WCTX_OWN_SEND;
	s->wake = bpf_ktime_get_ns();
	return 0;
}

/* ---- the window's edges ---- */

/* Which edge window_edge is run for; set by user space before it reads the iterator. */
volatile u32 hb_edge_end = 0;

/* Asleep without our having seen it go off: since before the targets were known. Its registers, and what it
 * waits for, can be read as long as it sleeps; its stack only by itself. */
static __always_inline void edge_begin(struct task_struct *t)
{
	u32 state = hb_task__state(t);
	struct hb_call_regs r;
	struct hb_sleep *s;

	if (!state)
		return;
	s = bpf_task_storage_get(&sleeps, t, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!s || s->out)
		return;
	hb_task__call(t, &r);
	s->state = hb_task__state_word(state);
	s->sysno = r.sysno;
	s->a0 = r.a0;
	s->a1 = r.a1;
	s->a2 = r.a2;
	s->stack = 0;
	s->task = 0;
	s->before = 1;
	hb_channel__of(t, &r, &s->chan);
	s->out = hb_calls_from;
	hb_gil__before(t, s->chan.kind == HB_CHAN_FUTEX ? s->chan.id : 0, s->out);
}

/* Still off the CPU at the end: the record says so, and counts up to there. */
static __always_inline void edge_end(struct task_struct *t)
{
	struct hb_sleep *s = bpf_task_storage_get(&sleeps, t, 0, 0);
	u64 end = hb_calls_until;

	hb_gil__end(t, end);
	if (!s || !s->out || s->out >= end)
		return;
	if (s->wake > end)
		s->wake = 0;
	sleep_emit(t, s, end, HB_OFFCPU_OPEN);
	s->out = 0;
	s->wake = 0;
}

/* Args: meta, task; NULL after the last one. BPF iterators over tasks: 5.8. */
SEC("?iter/task")
int window_edge(u64 *ctx)
{
	struct task_struct *t = (void *)ctx[1];

	if (!t || !t->tgid || !hb_target__is(t->tgid))
		return 0;
	if (hb_edge_end)
		edge_end(t);
	else
		edge_begin(t);
	return 0;
}
