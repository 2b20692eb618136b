// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Exceptions and garbage collections, by probes in the interpreter (and in libstdc++).
 *
 * An exception is seen where a frame adds itself to its traceback: the first to do so raised it, each further
 * one had no handler. That is one event per raise on all builds, and none for what is raised and swallowed
 * within C. All are counted by class and place; the first of each, and so many a second, are records too.
 */
#include "own_stack.bpf.h"
#include "pyevents.bpf.h"

/* --exceptions: off, else what becomes of messages. */
const volatile bool hb_exceptions SEC(".rodata") __weak = false;
const volatile u32 hb_messages SEC(".rodata") __weak = HB_PY_MESSAGES_NONE;

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, HB_PY_RAISES);
	__type(key, struct hb_py_raise_key);
	__type(value, struct hb_py_raise_count);
} py_raises SEC(".maps");

/* One thread's: what was raised last, the collection under way, and room to put things together. */
struct hb_raising {
	struct hb_py_raise_key last;
	u64 what;    /* what `last` is of: the exception, up to 3.11 its class */
	u64 collect; /* begin of a collection; 0: none */
	u32 generation;
	u32 pad;
	u64 stats_at; /* where collections are counted; 0: the generation is told otherwise */
	u64 stats[HB_GC_GENERATIONS * HB_GC_STAT_WORDS];
	u64 message_hash;
	u32 message_kind, message_bytes;
	u64 message[HB_LABEL_SIZE / 8];
	struct hb_py_raise_count fresh;
	struct hb_stack_scratch site;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct hb_raising);
} raising SEC(".maps");

static __always_inline struct hb_raising *raising_here(void)
{
	struct hb_raising *r =
	    bpf_task_storage_get(&raising, bpf_get_current_task_btf(), 0, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!r)
		hb_lose(HB_LOSS_NO_STORAGE, HB_TYPE_py_exception);
	return r;
}

/* ---- messages ---- */

#define HB_TPFLAG_STR	(1u << 28)
#define HB_TPFLAG_TUPLE (1u << 26)
#define HB_TPFLAG_INT	(1u << 24)

static __always_inline u32 type_flags(const struct hb_py_raise *e, u64 object)
{
	u64 type;

	return py_read(&type, object + e->ob_type) ? py_int(type + e->type_flags) : 0;
}

/* The str that is the message: up to 3.11 what was raised may still be the bare argument, or a tuple of them.
 * OSError has its number first. */
static __always_inline u64 message_of(const struct hb_py_raise *e, u64 value)
{
	u64 args, item, n = 0;
	u32 flags = type_flags(e, value);

	if (flags & HB_TPFLAG_STR)
		return value;
	args = value;
	if (!(flags & HB_TPFLAG_TUPLE) && (!py_read(&args, value + e->args) || !args))
		return 0;
	if (!py_read(&n, args + e->ob_size) || !n || !py_read(&item, args + e->tuple_items))
		return 0;
	flags = type_flags(e, item);
	if ((flags & HB_TPFLAG_INT) && n > 1 && py_read(&item, args + e->tuple_items + 8))
		flags = type_flags(e, item);
	return flags & HB_TPFLAG_STR ? item : 0;
}

static __always_inline void wipe_message(struct hb_raising *r)
{
	r->message_hash = 0;
	r->message_kind = 0;
	r->message_bytes = 0;
	__builtin_memset(r->message, 0, sizeof(r->message));
}

static __always_inline void hash_message(struct hb_raising *r)
{
	u64 h = 0xcbf29ce484222325ULL;
	u32 n = r->message_bytes;

	for (u32 i = 0; i < HB_LABEL_SIZE; i++) {
		if (i >= n)
			break;
		h = (h ^ ((u8 *)r->message)[i]) * 0x100000001b3ULL;
	}
	wipe_message(r);
	r->message_hash = h;
}

/* Into r->message. Not inlined for the verifier's sake, as others here. */
__weak __noinline int hb_py_message(struct hb_raising *r, const struct hb_py_raise *e, u64 value)
{
	u64 str, length = 0, at;
	u32 state, kind, bytes;

	if (!r || !e)
		return 0;
	wipe_message(r);
	str = value ? message_of(e, value) : 0;
	if (!str || !py_read(&length, str + e->str_length))
		return 0;
	state = py_int(str + e->str_state) >> (e->str_kind_bit & 31);
	kind = state & 7;
	at = str + (state >> 4 & 1 ? e->str_ascii : e->str_compact);
	if (!(state >> 3 & 1) || (kind != 1 && kind != 2 && kind != 4)) /* not in one piece */
		return 0;
	bytes = length < HB_LABEL_SIZE ? (u32)length * kind : HB_LABEL_SIZE;
	bytes = bytes < HB_LABEL_SIZE ? bytes : HB_LABEL_SIZE;
	if (bpf_probe_read_user(r->message, bytes, (void *)at))
		return 0;
	r->message_kind = kind;
	r->message_bytes = bytes;
	if (hb_messages == HB_PY_MESSAGES_HASH)
		hash_message(r);
	return 0;
}

/* ---- counting ---- */

/* Counts one; NULL when there is no room. *first: it is the first of its kind. */
static __always_inline struct hb_py_raise_count *count_raise(struct hb_raising *r, u64 name, u32 origin,
							     u64 now)
{
	struct hb_py_raise_count *c = bpf_map_lookup_elem(&py_raises, &r->last);

	if (!c) {
		__builtin_memset(&r->fresh, 0, sizeof(r->fresh));
		r->fresh.origin = origin;
		bpf_probe_read_user_str(&r->fresh.name, sizeof(r->fresh.name), (void *)name);
		bpf_map_update_elem(&py_raises, &r->last, &r->fresh, BPF_NOEXIST);
		c = bpf_map_lookup_elem(&py_raises, &r->last);
	}
	if (!c)
		return NULL;
	__sync_fetch_and_add(&c->count, 1);
	c->last = now;
	return c;
}

/* Whether this one gets a record. */
static __always_inline bool within_budget(struct hb_py_raise_count *c, u64 now)
{
	if (now - c->slot >= HB_PY_RAISE_SLOT) {
		c->slot = now;
		c->in_slot = 0;
	}
	return __sync_fetch_and_add(&c->in_slot, 1) < HB_PY_RAISE_SLOTS;
}

static __always_inline void emit_raise(void *ctx, struct hb_raising *r, struct hb_py_raise_count *c,
				       u32 stack, u64 now)
{
	struct hb_rec_py_exception *x;
	u64 task = hb_python ? py_task(HB_STACK_CALL) : 0;

	__sync_fetch_and_add(&c->kept, 1);
	x = HB_RESERVE(py_exception);
	if (!x)
		return;
	hb_wire_of(x)->ts = now;
	x->exc_type = r->last.type;
	x->task = stack ? task : 0;
	x->count = 1;
	x->unwound = 0;
	x->message_hash = r->message_hash;
	x->stack = stack;
	x->site = r->last.site;
	x->origin = c->origin;
	x->flags = 0;
	x->message_kind = r->message_kind;
	x->message_bytes = r->message_bytes;
	x->pad = 0;
	__builtin_memcpy(&x->name, &c->name, sizeof(x->name));
	__builtin_memcpy(&x->message, r->message, sizeof(x->message));
	HB_SUBMIT(x);
}

/* ---- Python's ---- */

struct raised {
	u64 type, value, tb;
};

static __always_inline bool under_way(const struct hb_py_raise *e, u64 ts, struct raised *x)
{
	u64 exc;

	if (!py_read(&exc, ts + e->exc) || !exc)
		return false;
	if (e->exc_tb) { /* up to 3.11 */
		x->type = exc;
		return py_read(&x->value, ts + e->exc_value) && py_read(&x->tb, ts + e->exc_tb);
	}
	x->value = exc;
	return py_read(&x->type, exc + e->ob_type) && py_read(&x->tb, exc + e->tb);
}

/* A stack of the frame object's frame alone. */
static __always_inline u32 site_of(struct hb_raising *r, const struct hb_py_raise *e,
				   const struct hb_py_walk *w, u64 frame)
{
	struct hb_stack_scratch *s = &r->site;
	u32 id;

	if (e->frame && !py_read(&frame, frame + e->frame))
		return 0;
	s->frame = frame;
	s->hash = HB_PY_HASH_BEGIN;
	s->window_at = ~0ULL;
	s->trace.state = HB_TRACE_WHOLE;
	s->trace.n = 1;
	if (!hb_py_step(s, w, 0))
		return 0;
	s->trace.hash = hb_py_hash_end(s->hash, s->trace.state);
	id = py_keep(s, HB_TYPE_py_exception);
	return id ? hb_stack__join(0, id, HB_TYPE_py_exception) : 0;
}

/* One more frame without a handler. */
static __always_inline void unwound(const struct hb_py_raise *e, const struct raised *x, struct hb_raising *r)
{
	struct hb_py_raise_count *c;

	if (r->what != (e->exc_tb ? x->type : x->value))
		return;
	c = bpf_map_lookup_elem(&py_raises, &r->last);
	if (c)
		__sync_fetch_and_add(&c->unwound, 1);
}

static __always_inline void on_raise_in(void *ctx, const struct hb_py_raise *e, const struct hb_py_walk *w,
					u64 ts, u64 frame, u64 now)
{
	struct hb_py_raise_count *c;
	struct raised x = {};
	struct hb_raising *r;
	u64 name = 0;

	if (!under_way(e, ts, &x) || x.type == e->quiet[0] || x.type == e->quiet[1] || x.type == e->quiet[2])
		return;
	r = raising_here();
	if (!r)
		return;
	if (x.tb) {
		unwound(e, &x, r);
		return;
	}
	r->what = e->exc_tb ? x.type : x.value;
	r->last.type = x.type;
	r->last.tgid = bpf_get_current_pid_tgid() >> 32;
	r->last.site = site_of(r, e, w, frame);
	py_read(&name, x.type + e->type_name);
	c = count_raise(r, name, 0, now);
	if (!c) {
		hb_lose(HB_LOSS_PY_EXCEPTIONS, HB_TYPE_py_exception);
		return;
	}
	if (!within_budget(c, now))
		return;
	if (hb_messages != HB_PY_MESSAGES_NONE)
		hb_py_message(r, e, x.value);
	emit_raise(ctx, r, c, hb_stack__pair(0, HB_TYPE_py_exception, HB_STACK_CALL), now);
}

static __always_inline void on_raise(struct pt_regs *ctx, u32 tgid, u64 now)
{
	struct hb_py_process *p = bpf_map_lookup_elem(&py_processes, &tgid);
	struct hb_py_events *e = bpf_map_lookup_elem(&py_events, &tgid);
	u64 ts = 0;
	u32 i;

	if (!p || !e)
		return;
#pragma clang loop unroll(disable)
	for (i = 0; i < HB_PY_RUNTIMES; i++) {
		if (i >= p->n)
			return;
		ts = py_thread_state(&p->runtime[i]);
		if (ts)
			break;
	}
	if (i < HB_PY_RUNTIMES && e->runtime[i].exc)
		on_raise_in(ctx, &e->runtime[i], &p->runtime[i], ts, PT_REGS_PARM1(ctx), now);
}

/* ---- C++'s ---- */

static __always_inline u64 return_address(struct pt_regs *ctx)
{
#if defined(__TARGET_ARCH_x86)
	u64 at = 0;

	py_read(&at, PT_REGS_SP(ctx));
	return at;
#else
	return PT_REGS_RET(ctx);
#endif
}

/* At the function's first instruction a walk along frame pointers steps over its caller, who throws: he takes
 * the place of __cxa_throw itself. */
static __always_inline u32 throw_stack(struct pt_regs *ctx, struct hb_raising *r, u64 at)
{
	struct hb_stack_trace *t = &r->site.trace;
	long size = bpf_get_stack(ctx, t->ip, sizeof(t->ip), BPF_F_USER_STACK);
	bool fresh;
	u32 id;

	if (size <= 0) {
		hb_lose(HB_LOSS_STACK_NONE, HB_TYPE_py_exception);
		return 0;
	}
	t->ip[0] = at - 1;
	t->n = (u32)size / sizeof(u64);
	t->hash = hb_stack__hash(t);
	id = hb_stack__intern(t, &fresh);
	if (!id)
		hb_lose(HB_LOSS_STACK_FULL, HB_TYPE_py_exception);
	return id;
}

/* __cxa_throw(object, type_info, destructor); a type_info has its name behind its vtable. */
static __always_inline void on_throw(struct pt_regs *ctx, u32 tgid, u64 now)
{
	u64 name = 0, at = return_address(ctx), type = PT_REGS_PARM2(ctx);
	struct hb_raising *r = raising_here();
	struct hb_py_raise_count *c;
	bool fresh;
	u32 stack;

	if (!r)
		return;
	r->site.trace.ip[0] = at - 1; /* the call, not what comes after it */
	r->site.trace.n = 1;
	r->site.trace.state = HB_TRACE_WHOLE;
	r->site.trace.hash = (at ^ 0x9e3779b97f4a7c15ULL) * 0xff51afd7ed558ccdULL;
	r->what = 0;
	r->last.type = type;
	r->last.tgid = tgid;
	r->last.site = hb_stack__intern(&r->site.trace, &fresh);
	py_read(&name, type + 8);
	c = count_raise(r, name, 1, now);
	if (!c) {
		hb_lose(HB_LOSS_PY_EXCEPTIONS, HB_TYPE_py_exception);
		return;
	}
	if (!within_budget(c, now))
		return;
	wipe_message(r);
	stack = throw_stack(ctx, r, at);
	emit_raise(ctx, r, c, hb_stack__pair(stack, HB_TYPE_py_exception, HB_STACK_CALL), now);
}

/* ---- garbage collections ---- */

#define HB_GENERATION_UNKNOWN 0xffffffffU
#define HB_BREAKER_GC	      (1u << 4) /* bit of the eval breaker: a collection is due */

/* A USDT argument lies in a register, or in memory at one. Read by address: which member of the context it is
 * is not known to the verifier. */
static __always_inline u32 usdt_int(struct pt_regs *ctx, u32 cookie)
{
#if defined(__TARGET_ARCH_x86)
	u32 n = HB_PYEV_REG(cookie);
	struct pt_regs copy;
	u64 v = 0;

	if (n >= sizeof(copy) / 8 || bpf_probe_read_kernel(&copy, sizeof(copy), ctx))
		return HB_GENERATION_UNKNOWN;
	bpf_probe_read_kernel(&v, sizeof(v), (char *)&copy + 8 * n);
	return HB_PYEV_DEREF(cookie) ? py_int(v + (s64)HB_PYEV_DISP(cookie)) : (u32)v;
#else
	return HB_GENERATION_UNKNOWN;
#endif
}

static __always_inline u32 argument(struct pt_regs *ctx, u32 n)
{
	u64 first = PT_REGS_PARM1(ctx), second = PT_REGS_PARM2(ctx);

	barrier_var(first); /* else one load from a computed place of the context, which is refused */
	barrier_var(second);
	return n == 0 ? first : n == 1 ? second : HB_GENERATION_UNKNOWN;
}

/* The collector chooses the generation itself, from 3.13 on, where it is not asked for one: its own counters
 * tell afterwards which it was. */
static __always_inline void note_stats(struct hb_raising *r, u32 tgid, u64 ts)
{
	struct hb_py_events *e = bpf_map_lookup_elem(&py_events, &tgid);
	u64 interp = 0;

	r->stats_at = 0;
	if (!e || !e->runtime[0].gc_stats || !py_read(&interp, ts + HB_TSTATE_INTERP))
		return;
	if (!bpf_probe_read_user(r->stats, sizeof(r->stats), (void *)(interp + e->runtime[0].gc_stats)))
		r->stats_at = interp + e->runtime[0].gc_stats;
}

static __always_inline u32 counted_generation(struct hb_raising *r)
{
	u64 now = 0;

	for (u32 i = 0; r->stats_at && i < HB_GC_GENERATIONS; i++)
		if (py_read(&now, r->stats_at + 8 * HB_GC_STAT_WORDS * i) &&
		    now != r->stats[HB_GC_STAT_WORDS * i])
			return i;
	return HB_GENERATION_UNKNOWN;
}

static __always_inline void collect_begins(u32 generation, u64 ts, u64 now)
{
	struct hb_raising *r = raising_here();

	if (!r || r->collect) /* a finaliser that collects: part of the outer one */
		return;
	r->collect = now;
	r->generation = generation <= 2 ? generation : HB_GENERATION_UNKNOWN;
	r->stats_at = 0;
	if (ts && r->generation == HB_GENERATION_UNKNOWN)
		note_stats(r, bpf_get_current_pid_tgid() >> 32, ts);
}

static __always_inline void collect_ends(u32 how, u64 now)
{
	struct hb_raising *r = bpf_task_storage_get(&raising, bpf_get_current_task_btf(), 0, 0);
	struct hb_rec_py_gc *g;
	u64 begin, task;
	u32 stack, generation;

	if (!r || !r->collect)
		return;
	begin = r->collect;
	generation = r->generation;
	if (generation == HB_GENERATION_UNKNOWN)
		generation = counted_generation(r);
	r->collect = 0;
	stack = hb_stack__pair(0, HB_TYPE_py_gc, HB_STACK_CALL);
	task = stack ? py_task(HB_STACK_CALL) : 0;
	g = HB_RESERVE(py_gc);
	if (!g)
		return;
	hb_wire_of(g)->ts = now;
	g->dur = now - begin;
	g->task = task;
	g->generation = generation;
	g->stack = stack;
	g->how = how;
	g->pad0 = 0;
	g->pad1 = 0;
	g->pad2 = 0;
	HB_SUBMIT(g);
}

/* _Py_HandlePending(thread state) does all that is due at such a moment; a collection is if its bit is set.
 */
static __always_inline void on_pending(struct pt_regs *ctx, u32 tgid, u64 now)
{
	struct hb_py_events *e = bpf_map_lookup_elem(&py_events, &tgid);
	u64 breaker = 0;

	if (e && e->runtime[0].eval_breaker &&
	    py_read(&breaker, PT_REGS_PARM1(ctx) + e->runtime[0].eval_breaker) && (breaker & HB_BREAKER_GC))
		collect_begins(HB_GENERATION_UNKNOWN, PT_REGS_PARM1(ctx), now);
}

/* ---- the programs ---- */

static __always_inline bool in_window(u64 now)
{
	return now >= hb_calls_from && now < hb_calls_until;
}

static __always_inline int event(struct pt_regs *ctx)
{
	u32 tgid = bpf_get_current_pid_tgid() >> 32, cookie = bpf_get_attach_cookie(ctx);
	u64 now = bpf_ktime_get_ns();

	if (!hb_target__is(tgid) || !in_window(now))
		return 0;
	switch (HB_PYEV_EVENT(cookie)) {
	case HB_PYEV_RAISE:
		if (hb_exceptions)
			on_raise(ctx, tgid, now);
		break;
	case HB_PYEV_THROW:
		if (hb_exceptions)
			on_throw(ctx, tgid, now);
		break;
	case HB_PYEV_COLLECT:
		collect_begins(argument(ctx, HB_PYEV_REG(cookie)), PT_REGS_PARM1(ctx), now);
		break;
	case HB_PYEV_GC_START:
		collect_begins(usdt_int(ctx, cookie), 0, now);
		break;
	case HB_PYEV_GC_DONE:
		collect_ends(1, now);
		break;
	case HB_PYEV_PENDING:
		on_pending(ctx, tgid, now);
		break;
	}
	return 0;
}

static __always_inline int event_end(struct pt_regs *ctx)
{
	u32 tgid = bpf_get_current_pid_tgid() >> 32, cookie = bpf_get_attach_cookie(ctx);
	u64 now = bpf_ktime_get_ns();

	if (hb_target__is(tgid) && in_window(now))
		collect_ends(HB_PYEV_EVENT(cookie) == HB_PYEV_PENDING ? 2 : 0, now);
	return 0;
}

struct hb_no_programs py_nothing_multi SEC(".maps"), py_nothing_single SEC(".maps");

SEC("?kprobe")
int py_event_multi(struct pt_regs *ctx)
{
	hb_own_stack(ctx, &py_nothing_multi);
	return event(ctx);
}

SEC("?kprobe")
int py_event_end_multi(struct pt_regs *ctx)
{
	hb_own_stack(ctx, &py_nothing_multi);
	return event_end(ctx);
}

SEC("?uprobe")
int py_event(struct pt_regs *ctx)
{
	hb_own_stack(ctx, &py_nothing_single);
	return event(ctx);
}

SEC("?uretprobe")
int py_event_end(struct pt_regs *ctx)
{
	hb_own_stack(ctx, &py_nothing_single);
	return event_end(ctx);
}
