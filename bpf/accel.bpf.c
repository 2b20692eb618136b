// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Accelerator API calls. One pair of programs serves every function of every table: the attach cookie is the
 * probe's id, its descriptor says where the arguments are. The pair exists twice because a loaded program can
 * serve either uprobe_multi links or single uprobes, not both.
 *
 * Calls open on a thread are kept as a stack of frames. A frame is known by the stack pointer at its entry,
 * so a call that never returns (longjmp, an unwound C++ frame) is recognised as soon as the thread calls or
 * returns above it.
 */
#include "own_stack.bpf.h"
#include "python.bpf.h"
#include "returns.bpf.h"

/* Deeper than this calls are recorded without duration. The nesting seen is 3: library, runtime, driver. */
#define HB_DEPTH 8

/* Native user stack with each record (dear: a walk and a table insertion). */
const volatile u32 hb_accel_stacks SEC(".rodata") __weak = 0;

/* Python stack with every n-th call of a class; 0: never. Set by user space. */
const volatile u32 hb_accel_every[HB_MAX_CLASSES] SEC(".rodata") __weak = {};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, HB_MAX_CLASSES);
	__type(key, u32);
	__type(value, u64);
} accel_turns SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, HB_MAX_PROBES);
	__type(key, u32);
	__type(value, struct hb_probe_desc);
} probes SEC(".maps");

/* Times each probe fired in a target, recorded or not: what the receipt is made of. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, HB_MAX_PROBES);
	__type(key, u32);
	__type(value, u64);
} hits SEC(".maps");

/* Those of them that found a probe that only counts. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, HB_MAX_PROBES);
	__type(key, u32);
	__type(value, u64);
} silent SEC(".maps");

/* Those of them that were made inside an open runtime call: tells whether a runtime's calls arrive at the
 * driver. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, HB_MAX_PROBES);
	__type(key, u32);
	__type(value, u64);
} inner SEC(".maps");

/* Entries minus returns of timed calls: what is left at the end of a window was in flight, or died with its
 * thread. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, s64);
} open_calls SEC(".maps");

struct hb_frame {
	u64 sp; /* at the first instruction: address of the return address */
	u64 ts;
	struct hb_rec_accel rec;
	u32 layer;
	u32 flags; /* HB_PROBE_* */
};

struct hb_calls {
	u32 depth;
	u32 pad;
	struct hb_frame frames[HB_DEPTH];
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct hb_calls);
} calls SEC(".maps");

/* ret has popped the return address on x86; elsewhere the stack pointer is back where it was. */
#if defined(__TARGET_ARCH_x86)
#define HB_RETURN_SP(ctx) (PT_REGS_SP(ctx) - 8)
#define HB_PARM6(ctx)	  ((ctx)->r9)
#define HB_STACK_ARGS	  8 /* above the return address */
#else
#define HB_RETURN_SP(ctx) PT_REGS_SP(ctx)
#define HB_PARM6(ctx)	  (((struct user_pt_regs *)(ctx))->regs[5])
#define HB_STACK_ARGS	  0
#endif

static __always_inline void count(void *map, u32 id)
{
	u64 *n = bpf_map_lookup_elem(map, &id);

	if (n)
		__sync_fetch_and_add(n, 1);
}

static __always_inline void opened(s64 by)
{
	u32 zero = 0;
	s64 *n = bpf_map_lookup_elem(&open_calls, &zero);

	if (n)
		__sync_fetch_and_add(n, by);
}

/* ---- arguments ---- */

/* What arguments are made of. A read of user memory costs as much as all the rest of an argument, so
 * neighbours are read in one go at the first one that is wanted: words of the stack, members of a
 * configuration struct. Where the whole cannot be read (the end of a mapping), each is tried alone. */
#define HB_STACK_WORDS 4
#define HB_BLOCK_WORDS 8
struct hb_args_in {
	u64 regs[6];
	u64 sp;
	u64 stack[HB_STACK_WORDS];
	u64 block[HB_BLOCK_WORDS]; /* at block_at */
	u64 block_at;
	u64 stack_read; /* as wide as to leave no padding: 5.15 wants every byte of what is handed on to be
			   set */
};

static __always_inline bool read_user(u64 *v, u32 size, u64 at)
{
	*v = 0;
	return bpf_probe_read_user(v, size, (void *)at) == 0;
}

static __always_inline bool stack_word(struct hb_args_in *in, u32 n, u64 *v)
{
	u64 at = in->sp + HB_STACK_ARGS;

	if (n < HB_STACK_WORDS && !in->stack_read)
		in->stack_read = !bpf_probe_read_user(in->stack, sizeof(in->stack), (void *)at);
	if (n >= HB_STACK_WORDS || !in->stack_read)
		return read_user(v, 8, at + 8 * (u64)n);
	*v = in->stack[n & (HB_STACK_WORDS - 1)];
	return true;
}

static __always_inline u64 cut(u64 v, u32 width)
{
	return width && width < 8 ? v & ((1ULL << (width * 8)) - 1) : v;
}

static __always_inline bool member(struct hb_args_in *in, u64 base, s64 off, u32 width, u64 *v)
{
	u32 at = off;

	/* Within the block, and not across two of its words. */
	if (off < 0 || off >= (s64)sizeof(in->block) || (at & 7) + width > 8)
		return read_user(v, width, base + off);
	if (in->block_at != base) {
		if (bpf_probe_read_user(in->block, sizeof(in->block), (void *)base))
			return read_user(v, width, base + off);
		in->block_at = base;
	}
	*v = cut(in->block[(at >> 3) & (HB_BLOCK_WORDS - 1)] >> ((at & 7) * 8), width);
	return true;
}

/* One value by its descriptor. A NULL pointer is an argument that was not given (0), not an unreadable one.
 * Not inlined and not static: the verifier then looks at it once, not once for each argument and each state
 * that those before it leave behind, which took it half a second at every start. */
__noinline u64 hb_argument(const struct hb_arg *a, struct hb_args_in *in, u8 *flags)
{
	bool ok = true;
	u32 n, width;
	u64 v;

	if (!a || !in || !flags) /* it wants to see that */
		return 0;
	n = a->n & 7;
	width = a->width <= 8 ? a->width : 8;
	v = n < 6 ? in->regs[n] : 0;
	if (a->src == HB_SRC_CONST)
		return (s64)a->off;
	if (a->src == HB_SRC_STACK)
		ok = stack_word(in, a->n, &v);
	else if (a->src == HB_SRC_DEREF && v)
		ok = member(in, v, a->off, width, &v);
	if (!ok) {
		*flags |= HB_AFLAG_ARGS;
		return 0;
	}
	return cut(v >> (a->shift & 63), width);
}

static __always_inline bool wants_python(u32 cls)
{
	u32 key = cls & (HB_MAX_CLASSES - 1), every;
	u64 *turn;

	/* Else one register is bounded and a copy of it is the index. */
	asm volatile("" : "+r"(key));
	every = key < HB_MAX_CLASSES ? hb_accel_every[key] : 0;
	if (every <= 1)
		return every;
	turn = bpf_map_lookup_elem(&accel_turns, &key);
	return turn && __sync_fetch_and_add(turn, 1) % every == 0;
}

static __always_inline u32 accel_stack(struct pt_regs *ctx, u32 cls)
{
	u32 native =
	    hb_accel_stacks ? hb_stack__take(ctx, HB_TYPE_accel, BPF_F_USER_STACK, HB_STACK_CALL) : 0;

	return hb_python && wants_python(cls) ? hb_stack__pair(native, HB_TYPE_accel, HB_STACK_CALL) : native;
}

static __always_inline void fill(struct hb_rec_accel *r, const struct hb_probe_desc *d, u32 probe, u8 flags,
				 u32 stack, struct pt_regs *ctx)
{
	struct hb_args_in in = {.regs = {PT_REGS_PARM1(ctx), PT_REGS_PARM2(ctx), PT_REGS_PARM3(ctx),
					 PT_REGS_PARM4(ctx), PT_REGS_PARM5(ctx), HB_PARM6(ctx)},
				.sp = PT_REGS_SP(ctx)};
	u64 v[HB_SLOT_COUNT] = {};
	int i;

#pragma clang loop unroll(disable)
	for (i = 0; i < HB_SLOT_COUNT; i++)
		if (d->args[i].src != HB_SRC_NONE)
			v[i] = hb_argument(&d->args[i], &in, &flags);
	if (flags & HB_AFLAG_ARGS)
		hb_lose(HB_LOSS_ARGS, HB_TYPE_accel);
	r->task = hb_python && (stack & HB_STACK_PAIR) ? py_task(HB_STACK_CALL) : 0;
	r->dur = 0;
	r->stream = v[HB_SLOT_STREAM];
	r->handle = v[HB_SLOT_HANDLE];
	r->bytes = v[HB_SLOT_BYTES];
	r->gx = v[HB_SLOT_GX];
	r->gy = v[HB_SLOT_GY];
	r->gz = v[HB_SLOT_GZ];
	r->bx = v[HB_SLOT_BX];
	r->by = v[HB_SLOT_BY];
	r->bz = v[HB_SLOT_BZ];
	r->nested = 0;
	r->probe = probe;
	r->ret = 0;
	r->stack = stack;
	r->shm = v[HB_SLOT_SHM];
	r->kind = v[HB_SLOT_KIND];
	r->flags = flags;
	r->pad = 0;
	r->correlation = 0;
}

/* ---- open calls ---- */

static __always_inline struct hb_calls *calls_of_current(bool create)
{
	return bpf_task_storage_get(&calls, bpf_get_current_task_btf(), 0,
				    create ? BPF_LOCAL_STORAGE_GET_F_CREATE : 0);
}

/* The innermost open call, NULL when none. */
static __always_inline struct hb_frame *top(struct hb_calls *c)
{
	u32 n = c->depth;

	return n && n <= HB_DEPTH ? &c->frames[(n - 1) & (HB_DEPTH - 1)] : NULL;
}

/* A probe that only counts records nothing, so nothing of it can be missing. */
static __always_inline void lose_open(const struct hb_frame *f)
{
	if (!(f->flags & HB_PROBE_QUIET))
		hb_lose(HB_LOSS_UNFINISHED, HB_TYPE_accel);
}

static __always_inline void pop(struct hb_calls *c, const struct hb_frame *f)
{
	c->depth--;
	if (!(f->flags & HB_PROBE_QUIET))
		opened(-1);
}

/* The function just entered was reached by a jump from one under a return probe (f ends in `jmp g`, both
 * return at once): it would return to the kernel's trampoline, which stands at the begin of a page. A call
 * leaves its own next instruction there, and that of one in 4096 is at the begin of a page too. */
static __always_inline bool tail_called(struct pt_regs *ctx)
{
	u64 to = 0;

#if defined(__TARGET_ARCH_x86)
	if (!read_user(&to, sizeof(to), PT_REGS_SP(ctx)))
		return true;
#else
	to = PT_REGS_RET(ctx);
#endif
	return (to & 4095) == 0;
}

/* Frames below the stack pointer of a new call are gone without having returned. Equal stack pointers are a
 * tail call, or a call in the place of one that was left by longjmp. */
static __always_inline void drop_stale(struct hb_calls *c, struct pt_regs *ctx)
{
	u64 sp = PT_REGS_SP(ctx);
	int i;

	for (i = 0; i < HB_DEPTH; i++) {
		struct hb_frame *f = top(c);

		if (!f || f->sp > sp || (f->sp == sp && tail_called(ctx)))
			return;
		lose_open(f);
		pop(c, f);
	}
}

/* Tells the open calls around a new one of it. True when it is part of one of them: a driver or runtime call
 * inside a runtime call, or a driver call inside a driver call. *flags gets INNER only for the sake of calls
 * that are recorded: one that merely counts must not make the other half of an operation out of what it
 * encloses. */
static __always_inline bool enclose(struct hb_calls *c, u32 layer, u8 *flags)
{
	bool inside = false;
	u32 i;

	for (i = 0; i < HB_DEPTH; i++) {
		struct hb_frame *f = &c->frames[i];

		if (i >= c->depth)
			break;
		if (layer == HB_LAYER_DRIVER && f->layer != HB_LAYER_DRIVER)
			f->rec.nested++;
		if (layer == HB_LAYER_LIBRARY || (f->layer != HB_LAYER_RUNTIME &&
						  !(f->layer == HB_LAYER_DRIVER && layer == HB_LAYER_DRIVER)))
			continue;
		inside = true;
		if (!(f->flags & HB_PROBE_QUIET))
			*flags |= HB_AFLAG_INNER;
	}
	return inside;
}

static __always_inline bool push(struct hb_calls *c, const struct hb_probe_desc *d, u32 probe, u8 quiet,
				 u8 flags, struct pt_regs *ctx)
{
	u32 n = c->depth;
	struct hb_frame *f;

	if (n >= HB_DEPTH) {
		if (!quiet)
			hb_lose(HB_LOSS_NESTING, HB_TYPE_accel);
		return false;
	}
	f = &c->frames[n & (HB_DEPTH - 1)];
	f->sp = PT_REGS_SP(ctx);
	f->layer = d->layer;
	f->flags = quiet;
	fill(&f->rec, d, probe, flags, quiet ? 0 : accel_stack(ctx, d->cls), ctx);
	f->ts = bpf_ktime_get_ns();
	c->depth = n + 1;
	if (!quiet)
		opened(1);
	return true;
}

/* ---- the two programs ---- */

static __always_inline bool in_window(u64 now)
{
	return now >= hb_calls_from && now < hb_calls_until;
}

static __always_inline struct hb_rec_accel *reserve(u64 id, u64 ts)
{
	return hb_reserve_at(HB_TYPE_accel, sizeof(struct hb_rec_accel), id >> 32, id, ts);
}

static __always_inline int enter(struct pt_regs *ctx)
{
	u64 id = bpf_get_current_pid_tgid(), now;
	u32 probe = bpf_get_attach_cookie(ctx);
	struct hb_probe_desc *d = bpf_map_lookup_elem(&probes, &probe);
	struct hb_rec_accel *r;
	struct hb_calls *c;
	u8 flags = 0, quiet;
	u32 stack;

	if (!d || !hb_target__is(id >> 32))
		return 0;
	now = bpf_ktime_get_ns();
	if (!in_window(now))
		return 0;
	count(&hits, probe);
	/* Once: user space may take the mark away at any time, and either a call is recorded or counted here.
	 */
	quiet = *(volatile u8 *)&d->flags & HB_PROBE_QUIET;
	if (quiet)
		count(&silent, probe);
	c = calls_of_current(d->timed);
	if (c) {
		drop_stale(c, ctx);
		if (enclose(c, d->layer, &flags))
			count(&inner, probe);
		if (d->timed && hb_returns() && push(c, d, probe, quiet, flags, ctx))
			return 0;
	} else if (d->timed && !quiet) {
		hb_lose(HB_LOSS_NO_STORAGE, HB_TYPE_accel);
	}
	if (quiet)
		return 0;
	stack = accel_stack(ctx, d->cls);
	r = reserve(id, now);
	if (!r)
		return 0;
	fill(r, d, probe, flags, stack, ctx);
	HB_SUBMIT(r);
	return 0;
}

static __always_inline void finish(struct hb_frame *f, u64 id, u64 now, s32 ret)
{
	struct hb_rec_accel *r;

	if (f->flags & HB_PROBE_QUIET)
		return;
	r = reserve(id, now);
	if (!r)
		return;
	__builtin_memcpy(r, &f->rec, sizeof(*r));
	r->dur = now - f->ts;
	r->ret = ret;
	r->flags |= HB_AFLAG_RET | HB_AFLAG_TIMED;
	HB_SUBMIT(r);
}

/* A call belongs to the window it begins in. A return without a frame is that of one that began before,
 * perhaps before its probes were there, so it is no loss. */
static __always_inline int leave(struct pt_regs *ctx)
{
	u64 id = bpf_get_current_pid_tgid(), sp = HB_RETURN_SP(ctx), now;
	u32 probe = bpf_get_attach_cookie(ctx);
	struct hb_calls *c;
	int i;

	if (!hb_target__is(id >> 32))
		return 0;
	now = bpf_ktime_get_ns();
	if (!in_window(now))
		return 0;
	c = calls_of_current(false);
	for (i = 0; c && i < HB_DEPTH; i++) {
		struct hb_frame *f = top(c);

		if (!f)
			break;
		if (f->sp > sp) {
			/* Not ours but an outer call: this one was deeper than is followed and is
			 * recorded already, or its entry was not seen. */
			if (c->depth == HB_DEPTH)
				return 0;
			break;
		}
		pop(c, f);
		if (f->sp == sp && f->rec.probe == probe) {
			finish(f, id, now, PT_REGS_RC(ctx));
			return 0;
		}
		lose_open(f);
	}
	return 0;
}

struct hb_no_programs nothing_multi SEC(".maps"), nothing_single SEC(".maps");

SEC("?kprobe")
int accel_entry_multi(struct pt_regs *ctx)
{
	hb_own_stack(ctx, &nothing_multi);
	return enter(ctx);
}

SEC("?kprobe")
int accel_return_multi(struct pt_regs *ctx)
{
	hb_own_stack(ctx, &nothing_multi);
	return leave(ctx);
}

SEC("?uprobe")
int accel_entry(struct pt_regs *ctx)
{
	hb_own_stack(ctx, &nothing_single);
	return enter(ctx);
}

SEC("?uretprobe")
int accel_return(struct pt_regs *ctx)
{
	hb_own_stack(ctx, &nothing_single);
	return leave(ctx);
}
