// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * CPU samples of target threads, from one cpu-clock event per CPU. That clock is a timer which also ticks on
 * an idle CPU, so the time since this CPU's previous tick is the time a sample stands for, and it is kept for
 * every tick, whoever runs. Ticks that did not come (interrupts off, a virtual CPU taken away, a guest kernel
 * that runs no programs while some processes are current) are counted as missed: whom they would have met is
 * not known, least of all that it would have been the thread that the next one meets.
 */
#include "python.bpf.h"
#include "task.bpf.h"

/* ns. A CPU without a tick for longer than that was not there, so that nobody ran on it. */
#define HB_SAMPLE_GONE 10000000000ULL

const volatile bool hb_sample_stacks = true;
/* Nominal period in ns. Set by user space. */
const volatile u64 hb_sample_period = 10101010;

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} sample_last SEC(".maps");

static __always_inline u64 sample_weight(void)
{
	u64 now = bpf_ktime_get_ns(), period = hb_sample_period, since;
	u32 zero = 0;
	u64 *last = bpf_map_lookup_elem(&sample_last, &zero);

	if (!last)
		return period;
	since = *last ? now - *last : period;
	*last = now;
	if (since < period + period / 2)
		return since;
	if (since < HB_SAMPLE_GONE)
		hb_lose_many(HB_LOSS_MISSED, HB_TYPE_sample, (since + period / 2) / period - 1);
	return period;
}

static __always_inline bool sample_in_user(struct bpf_perf_event_data *ctx)
{
#if defined(__TARGET_ARCH_x86)
	/* The context only takes loads of whole words; cs has had 8 and 2 bytes, always at this place. */
	return (*(const volatile u64 *)((const char *)&ctx->regs + 136) & 3) != 0;
#elif defined(__TARGET_ARCH_arm64)
	return (ctx->regs.pstate & 0xf) == 0;
#endif
}

static __always_inline u32 sample_stack(void *ctx)
{
	u32 native = hb_stack__take(ctx, HB_TYPE_sample, BPF_F_USER_STACK, HB_STACK_SAMPLE);

	return hb_stack__pair(native, HB_TYPE_sample, HB_STACK_SAMPLE);
}

SEC("perf_event")
int sample(struct bpf_perf_event_data *ctx)
{
	u64 weight = sample_weight(), id = bpf_get_current_pid_tgid();
	struct hb_rec_sample *s;
	struct hb_call_regs r;
	bool user;

	if (!hb_target__is(id >> 32))
		return 0;
	s = HB_RESERVE(sample);
	if (!s)
		return 0;
	user = sample_in_user(ctx);
	hb_task__call(bpf_get_current_task_btf(), &r);
	s->weight = weight;
	s->ip = PT_REGS_IP(&ctx->regs);
	s->stack = hb_sample_stacks && r.has_user ? sample_stack(ctx) : 0;
	s->kstack = hb_sample_stacks && !user ? hb_stack__take(ctx, HB_TYPE_sample, 0, HB_STACK_SAMPLE) : 0;
	s->sysno = user ? HB_SYSNO_NONE : r.sysno;
	s->mode = user ? HB_CPUMODE_USER : HB_CPUMODE_KERNEL;
	s->cpu = bpf_get_smp_processor_id();
	s->pad = 0;
	HB_SUBMIT(s);
	return 0;
}
