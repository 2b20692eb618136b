/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Python in a session: finds the interpreters of each process and tells the kernel's walker of them; reads
 * the functions of a stack as soon as it is seen, because they may be gone at the end; and makes one stack of
 * a native and a Python one.
 */
#include "capture/session/impl.h"
#include "capture/python/memory.h"
#include "capture/python/heap.h"
#include "capture/python/python.h"
#include "capture/session/pycalls.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CHECK_NS   1000000000ULL
#define CHECK_MOST 4096		  /* functions that are looked at again at once: some 2 ms */
#define WAIT_NS	   60000000000ULL /* a program that has a Python and does not use it */

/* A Python stack, as it was read when it was first seen. */
struct py_stack {
	struct hb_stack_trace *trace; /* its first n words only */
	u32 ids[];		      /* functions; 0: unknown */
};

static void free_stack(struct py_stack *k)
{
	if (k)
		free(k->trace);
	free(k);
}

struct hb_session_python {
	pthread_mutex_t lock; /* names and stacks: the pump fills, the end reads; processes come by control */
	struct hb_py_names *names;
	struct hb_map *stacks;	  /* (pid, id) -> struct py_stack * */
	u64 unresolved, replaced; /* frames */
	u64 checked;		  /* when functions were looked at again */
};

int hb_session_python__begin(struct hb_session *s)
{
	struct hb_session_python *p;

	if (s->o.python == HB_PYTHON_OFF)
		return 0;
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	pthread_mutex_init(&p->lock, NULL);
	p->names = hb_py_names__new(s->o.max_functions);
	p->stacks = hb_map__new();
	s->python = p;
	return p->names && p->stacks ? 0 : -ENOMEM;
}

void hb_session_python__free(struct hb_session *s)
{
	struct hb_session_python *p = s->python;
	size_t pos = 0;
	u64 key, at;

	if (!p)
		return;
	while (p->stacks && hb_map__next(p->stacks, &pos, &key, &at))
		free_stack((void *)(uintptr_t)at);
	hb_map__free(p->stacks);
	hb_py_names__free(p->names);
	free(p);
	s->python = NULL;
}

/* ---- processes, on the control thread ---- */

static void tell(struct hb_session *s, u32 pid, const struct hb_py_runtime *r)
{
	if (r->state == HB_PY_REFUSED && hb_session__may_remark(s))
		hb_warn("pid %u: no Python stacks: %s", pid, r->why);
	if (r->state == HB_PY_REFUSED && s->writer)
		hb_session__note(s, HB_NOTE_WARNING, "pid %u: no Python stacks: %s", pid, r->why);
	if (r->state == HB_PY_READY && r->note[0] && hb_session__may_remark(s))
		hb_warn("pid %u: %s", pid, r->note);
}

static void install(struct hb_session *s, struct proc_state *ps)
{
	struct hb_session_python *p = s->python;
	const struct hb_py_runtime *r;
	struct hb_py_process cfg;
	u32 n, pid = ps->p->pid;

	r = hb_python__runtimes(ps->python, &n);
	for (u32 i = 0; i < n; i++)
		tell(s, pid, &r[i]);
	pthread_mutex_lock(&p->lock);
	hb_py_names__process(p->names, pid, ps->python);
	pthread_mutex_unlock(&p->lock);
	/* An entry that the kernel took over from the parent may be that of another program by now. */
	hb_python__kernel(ps->python, &cfg);
	hb_bpf__set_python(s->bpf, pid, &cfg);
	hb_session_pycalls__look(s, ps);
}

void hb_session_python__look(struct hb_session *s, struct proc_state *ps)
{
	if (!s->python)
		return;
	hb_python__free(ps->python);
	ps->python = hb_python__new(ps->p);
	ps->python_until = hb_clock__now() + WAIT_NS;
	if (ps->python)
		install(s, ps);
}

void hb_session_python__fork(struct hb_session *s, u32 parent, u32 child)
{
	if (!s->python)
		return;
	pthread_mutex_lock(&s->python->lock);
	hb_py_names__fork(s->python->names, parent, child);
	pthread_mutex_unlock(&s->python->lock);
	hb_session_pycalls__fork(s, parent, child);
}

/* Stacks of processes that replace functions are told apart by all of their code objects, at a higher price.
 */
static void mark_all(struct hb_session *s)
{
	u32 pid;

	while ((pid = hb_py_names__uneasy(s->python->names)))
		hb_bpf__mark_python(s->bpf, pid, HB_STACK_DEPTH);
}

static void check(struct hb_session *s, u32 most)
{
	pthread_mutex_lock(&s->python->lock);
	hb_py_names__check(s->python->names, most);
	mark_all(s);
	pthread_mutex_unlock(&s->python->lock);
}

void hb_session_python__last_look(struct hb_session *s)
{
	if (s->python)
		check(s, UINT32_MAX);
}

void hb_session_python__tick(struct hb_session *s)
{
	u64 now = hb_clock__now();

	hb_session_pycalls__tick(s);
	if (s->python && now - s->python->checked >= CHECK_NS) {
		s->python->checked = now;
		check(s, CHECK_MOST);
	}
	for (u32 i = 0; s->python && i < s->n_procs; i++) {
		struct proc_state *ps = &s->procs[i];

		if (!ps->live || !ps->python || now > ps->python_until || !hb_python__waits(ps->python))
			continue;
		if (hb_python__update(ps->python)) {
			install(s, ps);
			hb_session_pyevents__look(s, ps);
		}
	}
}

struct edge {
	struct hb_session *s;
	u32 pid;
};

/* A thread that woke meanwhile has told of its sleep already, without a stack; its later sleeps do not ask.
 */
static void on_edge(u64 thread, const struct hb_stack_trace *t, void *arg)
{
	struct edge *e = arg;

	hb_bpf__edge_stack(e->s->bpf, e->pid, thread, t);
}

void hb_session_python__edge(struct hb_session *s)
{
	for (u32 i = 0; s->python && s->o.syscalls != HB_SYSCALLS_NONE && i < s->n_procs; i++) {
		struct edge e = {s, s->procs[i].p->pid};

		if (s->procs[i].python)
			hb_python__each_stack(s->procs[i].python, on_edge, &e);
	}
}

/* ---- stacks, on the pump ---- */

static struct py_stack *read_stack(struct hb_session *s, u32 pid, u32 python)
{
	struct hb_stack_trace t;
	size_t size;
	struct py_stack *k;

	if (!hb_bpf__trace(s->bpf, python, &t) || !t.n)
		return NULL;
	size = offsetof(struct hb_stack_trace, ip) + t.n * sizeof(*t.ip);
	k = calloc(1, sizeof(*k) + t.n * sizeof(u32));
	if (k)
		k->trace = malloc(size);
	if (!k || !k->trace) {
		free_stack(k);
		return NULL;
	}
	memcpy(k->trace, &t, size);
	hb_py_names__see_stack(s->python->names, pid, k->trace, k->ids);
	return k;
}

static void see(struct hb_session *s, u32 pid, u32 python)
{
	struct hb_session_python *p = s->python;
	u64 *slot;

	pthread_mutex_lock(&p->lock);
	slot = hb_map__slot(p->stacks, (u64)pid << 32 | python, NULL);
	if (slot && !*slot)
		*slot = (u64)(uintptr_t)read_stack(s, pid, python);
	mark_all(s);
	pthread_mutex_unlock(&p->lock);
}

static void on_news(const struct hb_wire *w, const void *payload, void *arg)
{
	see(arg, w->pid, ((const struct hb_py_stack_news *)payload)->id);
}

int hb_session_python__subscribe(struct hb_session *s)
{
	return s->python ? hb_collect__divert(s->collect, HB_WIRE_PY_STACK, on_news, s) : 0;
}

void hb_session_python__seen(struct hb_session *s, u32 pid, u32 raw)
{
	struct hb_stack_pair pair;

	if (s->python && hb_bpf__pair(s->bpf, raw, &pair) && pair.python)
		see(s, pid, pair.python);
}

static bool mark_of(u32 pid, const struct hb_py_walk *w, u64 code, u64 *mark)
{
	u64 part[2] = {0};

	if (!hb_py_memory__word(pid, code + w->code_mark, &part[0]) ||
	    (w->str_hash && !hb_py_memory__word(pid, code + w->code_name, &part[1])))
		return false;
	*mark = hb_py_function__mark(part[0], part[1]);
	return true;
}

bool hb_session_python__function(struct hb_session *s, u32 pid, u64 code, struct hb_py_place *out, u64 *mark,
				 bool *qualified)
{
	u64 word = HB_PY_WORD(code, HB_PY_AT_MAX), before = 0;
	const struct hb_py_offsets *o;
	u32 id = 0;

	pthread_mutex_lock(&s->python->lock);
	o = hb_py_names__layout(s->python->names, pid);
	if (o) {
		*qualified = o->code_qualname;
		mark_of(pid, &o->walk, code, &before);
		hb_py_names__see(s->python->names, pid, &word, 1, &id);
		if (!mark_of(pid, &o->walk, code, mark) || *mark != before)
			*mark = 0; /* another function by now: judged again */
	}
	hb_py_names__place(s->python->names, id, HB_PY_AT_MAX, out);
	pthread_mutex_unlock(&s->python->lock);
	return id != 0;
}

bool hb_session_python__heap(struct hb_session *s, u32 pid, u64 code, struct hb_py_heap *out)
{
	bool found;

	pthread_mutex_lock(&s->python->lock);
	found = hb_py_names__heap(s->python->names, pid, code, out);
	pthread_mutex_unlock(&s->python->lock);
	return found;
}

bool hb_session_python__interpreter(struct hb_session *s, u32 pid, struct hb_py_heap *out, u64 *runtime)
{
	bool found;

	pthread_mutex_lock(&s->python->lock);
	found = hb_py_names__interpreter(s->python->names, pid, out, runtime);
	pthread_mutex_unlock(&s->python->lock);
	return found;
}

/* ---- at the end ---- */

static u32 location(struct hb_session *s, const struct py_stack *k, u32 i)
{
	struct hb_loc loc = {.lang = HB_LANG_PYTHON};
	u64 word = k->trace->ip[i];
	struct hb_py_place at;

	if (hb_py_names__place(s->python->names, k->ids[i], HB_PY_AT2(word), &at)) {
		loc.func = hb_window_writer__string(s->writer, at.func);
		loc.file = hb_window_writer__string(s->writer, at.file);
		loc.line = at.line;
		s->python->replaced +=
		    i >= k->trace->marked && !hb_py_names__stayed(s->python->names, k->ids[i]);
	} else {
		loc.offset = HB_PY_CODE(word);
		s->python->unresolved++;
	}
	return hb_window_writer__loc(s->writer, &loc);
}

static bool is_shim(const struct hb_session *s, const struct py_stack *k, u32 i)
{
	struct hb_py_place at;

	return hb_py_names__place(s->python->names, k->ids[i], HB_PY_AT_MAX, &at) &&
	       hb_py_place__is_shim(&at);
}

/* Those that were not there to be read at first: a process that was not known yet. What lies now at a frame
 * without a mark is another function, where functions come and go. */
static void read_again(struct hb_session *s, u32 pid, struct py_stack *k)
{
	u32 ids[HB_STACK_DEPTH];
	bool missing = false;

	for (u32 i = 0; i < k->trace->n; i++)
		missing |= !k->ids[i] && HB_PY_CODE(k->trace->ip[i]);
	if (!missing)
		return;
	hb_py_names__see_stack(s->python->names, pid, k->trace, ids);
	for (u32 i = 0; i < k->trace->n; i++)
		if (!k->ids[i] && (i < k->trace->marked || hb_py_names__steady(s->python->names, pid)))
			k->ids[i] = ids[i];
}

u32 hb_session_python__frames(struct hb_session *s, u32 pid, u32 python, struct hb_py_frame *out,
			      enum hb_stack_state *state)
{
	static const enum hb_stack_state states[] = {[HB_TRACE_WHOLE] = HB_STACK_WHOLE,
						     [HB_TRACE_TRUNCATED] = HB_STACK_TRUNCATED,
						     [HB_TRACE_BROKEN] = HB_STACK_BROKEN};
	struct py_stack *k;
	u32 n = 0;
	u64 at;

	*state = HB_STACK_BROKEN;
	if (!s->python || !hb_map__get(s->python->stacks, (u64)pid << 32 | python, &at) || !at)
		return 0;
	k = (struct py_stack *)(uintptr_t)at;
	*state = k->trace->state <= HB_TRACE_BROKEN ? states[k->trace->state] : HB_STACK_BROKEN;
	read_again(s, pid, k);
	for (u32 i = 0; i < k->trace->n; i++) {
		u64 word = k->trace->ip[i];

		if (!HB_PY_CODE(word)) {
			if (n)
				out[n - 1].entered = true;
			continue;
		}
		if (is_shim(s, k, i))
			continue;
		out[n++] = (struct hb_py_frame){location(s, k, i), (word & HB_PY_ENTERED) != 0};
	}
	return n;
}

static void lose(struct hb_session *s, enum hb_loss cause, u64 count)
{
	struct hb_loss_row row = {.cause = cause, .cpu = UINT32_MAX, .count = count};

	if (count)
		hb_window_writer__loss(s->writer, &row);
}

void hb_session_python__account(struct hb_session *s)
{
	if (!s->python)
		return;
	lose(s, HB_LOSS_PY_UNRESOLVED, s->python->unresolved);
	lose(s, HB_LOSS_PY_REPLACED, s->python->replaced);
	lose(s, HB_LOSS_PY_FUNCTIONS, hb_py_names__overflow(s->python->names));
}
