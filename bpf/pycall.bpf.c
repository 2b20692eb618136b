// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Calls of Python functions. Two kinds of places tell of them: the function that runs a frame (entry and
 * return: complete where each call goes through it), and the one that every frame passes when it ends.
 * Which of the two, and what is in the registers, is said by the attach cookie's site.
 *
 * Patterns of names cannot be matched here, so user space judges each function once. Until it has, calls are
 * sent as messages, from which it makes the records: no call is lost for the time that takes.
 */
#include "own_stack.bpf.h"
#include "pyfields.bpf.h"
#include "returns.bpf.h"
#include "schema/pycall.h"

#define HB_PYCALL_OPEN HB_RETURNS_MAX /* no more are open */

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, HB_PY_CALL_SITES);
	__type(key, u32);
	__type(value, struct hb_py_call_site);
} py_call_sites SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, HB_PY_FUNCTIONS);
	__type(key, struct hb_py_function_key);
	__type(value, struct hb_py_function);
} py_functions SEC(".maps");

struct hb_pycall { /* one that is open */
	u64 sp;	   /* at the first instruction: address of the return address */
	u64 ts, code, frame;
	u32 func, judged;
};

struct hb_pycalls {
	u32 depth, pad;
	struct hb_pycall open[HB_PYCALL_OPEN];
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct hb_pycalls);
} pycalls SEC(".maps");

/* Entries minus returns. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, s64);
} open_pycalls SEC(".maps");

#if defined(__TARGET_ARCH_x86)
#define HB_RETURN_SP(ctx) (PT_REGS_SP(ctx) - 8)
#else
#define HB_RETURN_SP(ctx) PT_REGS_SP(ctx)
#endif

static __always_inline void opened(s64 by)
{
	u32 zero = 0;
	s64 *n = bpf_map_lookup_elem(&open_pycalls, &zero);

	if (n)
		__sync_fetch_and_add(n, by);
}

/* ---- what is called ---- */

struct subject {
	const struct hb_py_call_site *site;
	const struct hb_py_walk *walk;
	u64 frame, code;
	u32 func, judged, fields;
};

#define HB_CO_GENERATORS 0x2a0 /* flags of code: generator, coroutine, both */

/* From 3.11 on a frame that only makes a generator is run as well; from then on the generator owns it. */
static __always_inline bool makes_generator(const struct hb_py_walk *w, u64 code)
{
	u32 flags = 0;

	bpf_probe_read_user(&flags, sizeof(flags), (void *)(code + w->code_flags));
	return flags & HB_CO_GENERATORS;
}

/* The function's code object; 0 when the frame is none of Python's, or no call of one. */
static __always_inline u64 code_of(const struct hb_py_walk *w, u64 frame)
{
	u8 owner = 0;
	u64 code;

	if (!py_read(&code, frame + w->code))
		return 0;
	code &= ~(u64)w->tag;
	if (!code || code == w->none)
		return 0;
	if (!w->gen_owner)
		return code;
	bpf_probe_read_user(&owner, sizeof(owner), (void *)(frame + w->gen_owner));
	if (owner >= w->shim_owner || (owner != 1 && makes_generator(w, code)))
		return 0;
	return code;
}

/* What two code objects that lay at one address differ in. */
static __always_inline u64 mark_of(const struct hb_py_walk *w, u64 code)
{
	u64 part[2] = {};

	bpf_probe_read_user(&part[0], sizeof(part[0]), (void *)(code + w->code_mark));
	if (w->str_hash)
		bpf_probe_read_user(&part[1], sizeof(part[1]), (void *)(code + w->code_name));
	return hb_py_function__mark(part[0], part[1]);
}

/* True when calls of it are recorded, as far as is known here. */
static __always_inline bool judge(struct subject *s, u32 tgid)
{
	struct hb_py_function_key key = {.code = s->code, .pid = tgid};
	struct hb_py_function *f = bpf_map_lookup_elem(&py_functions, &key);

	s->judged = false;
	s->func = 0;
	if (!f || f->mark != mark_of(s->walk, s->code))
		return true;
	s->judged = true;
	s->func = f->func;
	s->fields = f->flags & HB_PY_FUNCTION_FIELDS;
	return f->flags & HB_PY_FUNCTION_RECORD;
}

static __always_inline bool subject(struct subject *s, struct pt_regs *ctx, u32 tgid)
{
	u32 at = bpf_get_attach_cookie(ctx);
	struct hb_py_process *p = bpf_map_lookup_elem(&py_processes, &tgid);
	u64 first = PT_REGS_PARM1(ctx), second = PT_REGS_PARM2(ctx);

	/* Else the compiler chooses the register first and then loads at a computed place in the context. */
	asm volatile("" : "+r"(first), "+r"(second));
	s->site = bpf_map_lookup_elem(&py_call_sites, &at);
	if (!p || !p->n || !s->site)
		return false;
	s->walk = &p->runtime[s->site->runtime & (HB_PY_RUNTIMES - 1)];
	s->frame = s->site->frame_arg ? second : first;
	s->code = code_of(s->walk, s->frame);
	return s->code && judge(s, tgid);
}

/* ---- records ---- */

struct told {
	u64 id, ts, dur, code;
	u32 func, judged;
	u8 end, flags;
};

static __always_inline void tell(const struct told *t)
{
	struct hb_rec_py_call *r =
	    hb_reserve_at(HB_TYPE_py_call, sizeof(struct hb_rec_py_call), t->id >> 32, t->id, t->ts);

	if (!r)
		return;
	r->dur = t->dur;
	r->code = t->code;
	r->func = t->func;
	r->end = t->end;
	r->flags = t->flags;
	r->pad = 0;
	if (!t->judged) { /* is to be judged at once */
		hb_wire_of(r)->type = HB_WIRE_PY_CALL;
		hb_wire_of(r)->flags = 1;
	}
	HB_SUBMIT(r);
}

static __always_inline bool in_window(u64 now)
{
	return now >= hb_calls_from && now < hb_calls_until;
}

/* ---- a frame's end ---- */

/* A function was called to run it: what it was called from is a frame of C. */
static __always_inline bool is_run(const struct hb_py_walk *w, u64 frame)
{
	u8 owner = 0;
	u64 caller;

	if (!py_read(&caller, frame + w->back) || !caller)
		return true;
	bpf_probe_read_user(&owner, sizeof(owner), (void *)(caller + w->owner));
	return owner >= w->shim_owner;
}

static __always_inline bool unwinds(const struct hb_py_call_site *site, const struct hb_py_walk *w)
{
	u64 ts = py_thread_state(w), pending = 0;

	return ts && py_read(&pending, ts + site->exception) && pending;
}

static __always_inline int ended(struct pt_regs *ctx)
{
	struct told t = {.id = bpf_get_current_pid_tgid(), .ts = bpf_ktime_get_ns()};
	struct subject s = {};

	if (!in_window(t.ts) || !hb_target__is(t.id >> 32) || !subject(&s, ctx, t.id >> 32))
		return 0;
	if (s.fields)
		hb_py_fields(t.id >> 32, s.code, s.frame, t.ts);
	if (s.site->inlined && is_run(s.walk, s.frame))
		return 0;
	t.code = s.code;
	t.func = s.func;
	t.judged = s.judged;
	t.end = unwinds(s.site, s.walk) ? HB_PYEND_RAISE : HB_PYEND_RETURN;
	tell(&t);
	return 0;
}

/* ---- a frame that is run ---- */

static __always_inline struct hb_pycalls *calls_of_current(bool create)
{
	return bpf_task_storage_get(&pycalls, bpf_get_current_task_btf(), NULL,
				    create ? BPF_LOCAL_STORAGE_GET_F_CREATE : 0);
}

static __always_inline struct hb_pycall *top(struct hb_pycalls *c)
{
	u32 n = c->depth;

	return n && n <= HB_PYCALL_OPEN ? &c->open[(n - 1) & (HB_PYCALL_OPEN - 1)] : NULL;
}

/* Calls below this stack pointer are gone without a return (longjmp): how many. Not inlined and not static,
 * so that the verifier looks at it once. */
__weak __noinline u32 hb_pycalls_drop(struct hb_pycalls *c, u64 sp)
{
	u32 i;

	if (!c)
		return 0;
#pragma clang loop unroll(disable)
	for (i = 0; i < HB_PYCALL_OPEN; i++) {
		u32 n = c->depth;

		if (!n || n > HB_PYCALL_OPEN || c->open[(n - 1) & (HB_PYCALL_OPEN - 1)].sp >= sp)
			break;
		c->depth = n - 1;
	}
	return i;
}

static __always_inline void drop(struct hb_pycalls *c, u64 sp)
{
	u32 gone = hb_pycalls_drop(c, sp);

	if (!gone)
		return;
	hb_lose_many(HB_LOSS_UNFINISHED, HB_TYPE_py_call, gone);
	opened(-(s64)gone);
}

static __always_inline bool push(struct pt_regs *ctx, const struct subject *s, u64 now)
{
	struct hb_pycalls *c = calls_of_current(true);
	struct hb_pycall *f;
	u32 n;

	if (!c) {
		hb_lose(HB_LOSS_NO_STORAGE, HB_TYPE_py_call);
		return false;
	}
	drop(c, PT_REGS_SP(ctx) + 1);
	n = c->depth;
	if (n >= HB_PYCALL_OPEN)
		return false;
	f = &c->open[n & (HB_PYCALL_OPEN - 1)];
	f->sp = PT_REGS_SP(ctx);
	f->ts = now;
	f->code = s->code;
	f->frame = s->frame;
	f->func = s->func;
	f->judged = s->judged;
	c->depth = n + 1;
	opened(1);
	return true;
}

/* What a program that serves both ends returns at the first. */
enum { WANT_RETURN = 0, NO_RETURN = 1 };

static __always_inline int begun(struct pt_regs *ctx)
{
	struct told t = {.id = bpf_get_current_pid_tgid(), .ts = bpf_ktime_get_ns()};
	struct subject s = {};

	if (!in_window(t.ts) || !hb_target__is(t.id >> 32) || !subject(&s, ctx, t.id >> 32))
		return NO_RETURN;
	if (s.fields)
		hb_py_fields(t.id >> 32, s.code, s.frame, t.ts);
	if (s.site->timed && hb_returns() && push(ctx, &s, t.ts))
		return WANT_RETURN;
	t.code = s.code;
	t.func = s.func;
	t.judged = s.judged;
	tell(&t);
	return NO_RETURN;
}

/* The frame is left but goes on later: its caller got what was yielded. */
static __always_inline bool suspended(const struct hb_py_call_site *site, u64 frame)
{
	u8 owner = 0;
	u64 word = 0;
	s8 state = 0;

	switch (site->suspended) {
	case HB_PY_SUSPENDED_WORD:
		return py_read(&word, frame + (s64)site->suspended_at) && word;
	case HB_PY_SUSPENDED_GEN:
		bpf_probe_read_user(&owner, sizeof(owner), (void *)(frame + site->owner));
		if (owner != 1)
			return false;
		/* fallthrough */
	case HB_PY_SUSPENDED_MINUS:
		bpf_probe_read_user(&state, sizeof(state), (void *)(frame + (s64)site->suspended_at));
		return state < 0;
	}
	return false;
}

/* A call belongs to the window it begins in: a return that nothing waits for began before. */
static __always_inline int returned(struct pt_regs *ctx)
{
	struct told t = {.id = bpf_get_current_pid_tgid(), .ts = bpf_ktime_get_ns()};
	u32 at = bpf_get_attach_cookie(ctx);
	const struct hb_py_call_site *site = bpf_map_lookup_elem(&py_call_sites, &at);
	struct hb_pycalls *c;
	struct hb_pycall *f;

	if (!site || !in_window(t.ts) || !hb_target__is(t.id >> 32))
		return 0;
	c = calls_of_current(false);
	if (!c)
		return 0;
	drop(c, HB_RETURN_SP(ctx));
	f = top(c);
	if (!f || f->sp != HB_RETURN_SP(ctx))
		return 0;
	c->depth--;
	opened(-1);
	t.dur = t.ts - f->ts;
	t.code = f->code;
	t.func = f->func;
	t.judged = f->judged;
	t.flags = HB_PYCALL_TIMED;
	t.end = !PT_REGS_RC(ctx)	    ? HB_PYEND_RAISE
		: suspended(site, f->frame) ? HB_PYEND_YIELD
					    : HB_PYEND_RETURN;
	tell(&t);
	return 0;
}

struct hb_no_programs no_pycall_session SEC(".maps"), no_pycall_multi SEC(".maps"),
    no_pycall_single SEC(".maps");

static __always_inline int enter(struct pt_regs *ctx)
{
	u32 at = bpf_get_attach_cookie(ctx);
	const struct hb_py_call_site *site = bpf_map_lookup_elem(&py_call_sites, &at);

	if (!site)
		return NO_RETURN;
	if (!site->ends)
		return begun(ctx);
	ended(ctx);
	return NO_RETURN;
}

/* Entry and return in one (6.13): a return that is not wanted costs nothing, and takes none of the places for
 * returns that the kernel has in a thread. */
SEC("?kprobe")
int pycall_session(struct pt_regs *ctx)
{
	hb_own_stack(ctx, &no_pycall_session);
	if (PT_REGS_IP(ctx) == bpf_get_func_ip(ctx))
		return enter(ctx);
	return returned(ctx);
}

/* Others than 0 would take the probe away. */
SEC("?kprobe")
int pycall_entry_multi(struct pt_regs *ctx)
{
	hb_own_stack(ctx, &no_pycall_multi);
	enter(ctx);
	return 0;
}

SEC("?kprobe")
int pycall_return_multi(struct pt_regs *ctx)
{
	hb_own_stack(ctx, &no_pycall_multi);
	return returned(ctx);
}

SEC("?uprobe")
int pycall_entry(struct pt_regs *ctx)
{
	hb_own_stack(ctx, &no_pycall_single);
	enter(ctx);
	return 0;
}

SEC("?uretprobe")
int pycall_return(struct pt_regs *ctx)
{
	hb_own_stack(ctx, &no_pycall_single);
	return returned(ctx);
}
