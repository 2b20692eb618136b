/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What can be read off a task: its saved registers, its state, its names, and in what context we run. */
#ifndef HB_TASK_BPF_H
#define HB_TASK_BPF_H

#include "maps.bpf.h"
#include "flavours.bpf.h"
#include "calls.bpf.h"

#define HB_PF_KTHREAD 0x00200000

/* ---- saved user registers (bpf_task_pt_regs, kernel 5.15) ---- */

/* The system call a task is in: HB_SYSNO_NONE outside one (page fault, interrupt) and for kernel threads,
 * whose register area holds no user registers. */
struct hb_call_regs {
	u64 a0, a1, a2;
	u64 ip, fp;
	u16 sysno;
	bool has_user; /* user memory is still there; an exiting thread gives it up and may then sleep */
};

static __always_inline void hb_task__call(struct task_struct *t, struct hb_call_regs *c)
{
	struct pt_regs *r;
	s64 nr;

	__builtin_memset(c, 0, sizeof(*c));
	c->sysno = HB_SYSNO_NONE;
	if (t->flags & HB_PF_KTHREAD)
		return;
	c->has_user = t->mm != NULL;
	r = (struct pt_regs *)bpf_task_pt_regs(t);
#if defined(__TARGET_ARCH_x86)
	nr = (s64)r->orig_ax;
	c->a0 = r->di;
	c->a1 = r->si;
	c->a2 = r->dx;
	c->ip = r->ip;
	c->fp = r->bp;
#elif defined(__TARGET_ARCH_arm64)
	nr = r->syscallno;
	c->a0 = r->orig_x0;
	c->a1 = r->regs[1];
	c->a2 = r->regs[2];
	c->ip = r->pc;
	c->fp = r->regs[29];
#endif
	if (nr >= 0 && nr < HB_SYSNO_NONE)
		c->sysno = nr;
}

/* ---- state ---- */

/* TASK_* bits have kept these values since 2.6; what is above (0x400 no load, 0x1000 freezable...) qualifies.
 */
static __always_inline u8 hb_task__state_word(u32 state)
{
	if (state == 0)
		return HB_TSTATE_RUNNING;
	if (state & 0x1)
		return HB_TSTATE_SLEEPING;
	if (state & 0x2)
		return HB_TSTATE_DISK;
	if (state & 0x4)
		return HB_TSTATE_STOPPED;
	if (state & 0x8)
		return HB_TSTATE_TRACED;
	if (state & (0x10 | 0x20 | 0x80))
		return HB_TSTATE_DEAD;
	return HB_TSTATE_OTHER;
}

static __always_inline u32 hb_task__state(struct task_struct *t)
{
	if (bpf_core_field_exists(((struct task_struct___state *)t)->__state))
		return BPF_CORE_READ((struct task_struct___state *)t, __state);
	return BPF_CORE_READ((struct task_struct___old *)t, state);
}

/* ---- ids and names ---- */

/* Id in the task's own innermost pid namespace. */
static __always_inline u32 hb_task__nsid(struct task_struct *t)
{
	struct pid *pid = BPF_CORE_READ(t, thread_pid);
	u32 level = BPF_CORE_READ(pid, level), nr = 0;
	/* numbers[] has had length 1 and 0: only its offset and the element's size can be relied on. */
	const char *at = (const char *)pid + bpf_core_field_offset(struct pid, numbers) +
			 level * bpf_core_type_size(struct upid);

	bpf_probe_read_kernel(&nr, sizeof(nr), at + bpf_core_field_offset(struct upid, nr));
	return nr;
}

/* Raw bytes of the name: cleaned by user space, as every name. */
static __always_inline void hb_comm__read(hb_comm *to, const void *from)
{
	__builtin_memset(to, 0, sizeof(*to)); /* bytes after the NUL are old names, or old ring contents */
	bpf_probe_read_kernel_str(to, sizeof(*to), from);
}

/* ---- context ---- */

/* Distance in bytes from this CPU's `runqueues` to its preempt_count, from the kernel's BTF; 0 = not known.
 * Set by user space before load (hb_kernel_knobs). A direct `__preempt_count __ksym` does not load on kernels
 * without KALLSYMS_ALL, because the loader looks the variable's address up there. */
const volatile s64 hb_preempt_off SEC(".rodata") __weak = 0;

/* Address of this CPU's preempt_count, once found. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} preempt_at SEC(".maps") __weak;

/* The running task's own run queue is this CPU's, and it lies in the per-CPU area at a distance known to BTF.
 */
static __always_inline u64 hb_preempt__find(struct task_struct *cur)
{
	struct sched_entity___group *se = (void *)&cur->se;
	struct cfs_rq *cfs;
	struct rq *rq;

	if (!bpf_core_field_exists(se->cfs_rq))
		return 0;
	cfs = BPF_CORE_READ(se, cfs_rq);
	rq = BPF_CORE_READ(cfs, rq);
	if (!rq || (u32)BPF_CORE_READ(rq, cpu) != bpf_get_smp_processor_id())
		return 0;
	return (u64)rq + hb_preempt_off;
}

/* True and *count set when it is known. */
static __always_inline bool hb_preempt__count(struct task_struct *cur, u32 *count)
{
#if defined(__TARGET_ARCH_arm64)
	*count = BPF_CORE_READ(cur, thread_info.preempt.count);
	return true;
#else
	u32 zero = 0;
	u64 *at = bpf_map_lookup_elem(&preempt_at, &zero);

	if (!at || !hb_preempt_off)
		return false;
	if (!*at)
		*at = hb_preempt__find(cur);
	return *at && !bpf_probe_read_kernel(count, sizeof(*count), (void *)*at);
#endif
}

#define HB_PREEMPT_SOFTIRQ 0x00000100 /* serving one; multiples of 0x200 only say that they are held off */
/* Hard interrupt and NMI; they nest inside softirqs. Where the count is a 64-bit word these bits only say
 * that interrupts are held off, and those wanted lie above. Set by user space (hb_kernel_knobs). */
const volatile u32 hb_preempt_hardirq SEC(".rodata") __weak = 0x00ff0000;

/* Who acts when `cur` is current: enum hb_wctx, without OWN_SEND. */
static __always_inline u8 hb_context(struct task_struct *cur)
{
	struct task_struct___rt *rt = (void *)cur;
	u32 count;

	if (cur->pid == 0)
		return HB_WCTX_IDLE;
	if (!hb_preempt__count(cur, &count))
		return HB_WCTX_UNKNOWN;
	if (count & hb_preempt_hardirq)
		return HB_WCTX_HARDIRQ;
	if (bpf_core_field_exists(rt->softirq_disable_cnt))
		count = BPF_CORE_READ(rt, softirq_disable_cnt);
	return count & HB_PREEMPT_SOFTIRQ ? HB_WCTX_SOFTIRQ : HB_WCTX_TASK;
}

#endif
