// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Every system call of the target, for `--syscalls all` only: while these are attached, every task of the
 * machine takes the slow entry path. Hence "?": loaded on request.
 */
#include "python.bpf.h"
#include "task.bpf.h"

const volatile bool hb_syscall_stacks = false;
/* Calls that took at least this long carry the Python stack. */
const volatile u64 hb_syscall_stack_min_ns = 100000;

struct hb_entered {
	u64 ts; /* 0: not inside a call that we saw enter */
	u64 args[6];
	u16 sysno;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct hb_entered);
} entered SEC(".maps");

static __always_inline void entered_args(struct hb_entered *e, struct pt_regs *r)
{
#if defined(__TARGET_ARCH_x86)
	e->args[0] = r->di;
	e->args[1] = r->si;
	e->args[2] = r->dx;
	e->args[3] = r->r10;
	e->args[4] = r->r8;
	e->args[5] = r->r9;
#elif defined(__TARGET_ARCH_arm64)
	e->args[0] = r->orig_x0;
	e->args[1] = r->regs[1];
	e->args[2] = r->regs[2];
	e->args[3] = r->regs[3];
	e->args[4] = r->regs[4];
	e->args[5] = r->regs[5];
#endif
}

/* At the exit the caller's frames are still those of the entry. */
static __always_inline u32 syscall_stack(void *ctx, u64 dur)
{
	u32 native =
	    hb_syscall_stacks ? hb_stack__take(ctx, HB_TYPE_syscall, BPF_F_USER_STACK, HB_STACK_CALL) : 0;

	return dur >= hb_syscall_stack_min_ns ? hb_stack__pair(native, HB_TYPE_syscall, HB_STACK_CALL)
					      : native;
}

static __always_inline void syscall_emit(void *ctx, const struct hb_entered *e, u64 dur, s64 ret)
{
	struct hb_rec_syscall *s = HB_RESERVE(syscall);

	if (!s)
		return;
	s->dur = dur;
	s->ret = ret;
	s->a0 = e->args[0];
	s->a1 = e->args[1];
	s->a2 = e->args[2];
	s->a3 = e->args[3];
	s->a4 = e->args[4];
	s->a5 = e->args[5];
	s->stack = syscall_stack(ctx, dur);
	s->sysno = e->sysno;
	s->pad = 0;
	HB_SUBMIT(s);
}

/* Calls entered minus calls returned from: what is left at the end of a window was in flight, or died with
 * its thread. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, s64);
} open_syscalls SEC(".maps");

static __always_inline void syscall_opened(s64 by)
{
	u32 zero = 0;
	s64 *n = bpf_map_lookup_elem(&open_syscalls, &zero);

	if (n)
		__sync_fetch_and_add(n, by);
}

/* x86-64: return probes (335) and probes (336) come from the trampolines that the kernel put into the target
 * as system calls. They are not calls of the program but mostly our own probes. Their exit cannot be told by
 * its registers, the kernel has restored those of the probed function: what entered is remembered, without
 * time. */
static __always_inline bool syscall_is_probe(u64 sysno)
{
#if defined(__TARGET_ARCH_x86)
	return sysno == 335 || sysno == 336;
#else
	return false;
#endif
}

SEC("?tp_btf/sys_enter")
int sys_enter(u64 *ctx)
{
	struct task_struct *cur;
	struct hb_entered *e;

	if (!hb_target__is(bpf_get_current_pid_tgid() >> 32))
		return 0;
	cur = bpf_get_current_task_btf();
	e = bpf_task_storage_get(&entered, cur, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!e) {
		hb_lose(HB_LOSS_NO_STORAGE, HB_TYPE_syscall);
		return 0;
	}
	e->sysno = (u16)ctx[1];
	if (syscall_is_probe(e->sysno)) {
		e->ts = 0;
		return 0;
	}
	entered_args(e, (struct pt_regs *)ctx[0]);
	e->ts = bpf_ktime_get_ns();
	if (hb_call__class(e->sysno) & HB_CALL_GONE)
		syscall_emit(ctx, e, 0, 0);
	else
		syscall_opened(1);
	return 0;
}

/* An exit without enter: the call began before we were attached. Not so in a new child, which leaves the call
 * that its parent entered. */
static __always_inline void syscall_unseen(struct task_struct *cur)
{
	struct hb_call_regs r;

	hb_task__call(cur, &r);
	if (!(hb_call__class(r.sysno) & HB_CALL_FORK))
		hb_lose(HB_LOSS_UNFINISHED, HB_TYPE_syscall);
}

SEC("?tp_btf/sys_exit")
int sys_exit(u64 *ctx)
{
	struct task_struct *cur;
	struct hb_entered *e;

	if (!hb_target__is(bpf_get_current_pid_tgid() >> 32))
		return 0;
	cur = bpf_get_current_task_btf();
	e = bpf_task_storage_get(&entered, cur, 0, 0);
	if (e && syscall_is_probe(e->sysno)) {
		e->sysno = HB_SYSNO_NONE;
		return 0;
	}
	if (!e || !e->ts) {
		syscall_unseen(cur);
		return 0;
	}
	syscall_emit(ctx, e, bpf_ktime_get_ns() - e->ts, (s64)ctx[1]);
	e->ts = 0;
	syscall_opened(-1);
	return 0;
}
