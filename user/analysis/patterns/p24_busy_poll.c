/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A thread that asks in a loop, and whom that costs a CPU. */
#include <errno.h>
#include <string.h>

#include "analysis/patterns/pattern.h"

enum { ON_CPU, POLLS, POLL_CALLS, VICTIM };

static const struct hb_param params[] = {
    [ON_CPU] = {"on_cpu", HB_UNIT_SHARE, 950000, "time in which the thread runs or wants to, of the window"},
    [POLLS] = {"polls", HB_UNIT_SHARE, 500000, "its CPU samples in calls that ask, of all its samples"},
    [POLL_CALLS] = {"poll_calls", HB_UNIT_RATE, 10000,
		    "or, where every system call was recorded, so many of them"},
    [VICTIM] = {"victim_share", HB_UNIT_SHARE, 10000,
		"time in which a thread on the way to a launch had no CPU while this one ran, as a part of "
		"the steps"},
    {0},
};

static const char *const asks[] = {"sched_yield", "poll",	 "ppoll",    "select",	"pselect6",
				   "epoll_wait",  "epoll_pwait", "recvfrom", "recvmsg", "recvmmsg",
				   "read",	  "futex",	 NULL};

static const char *const *const lists[] = {asks, NULL};

static u64 poll_share(const struct hb_scene *s, u32 t)
{
	u32 n;
	const struct hb_tl_sample *m = hb_timeline__samples(s->tl, t, &n);
	struct hb_sysnos seen = {0};
	u64 all = 0, in = 0;

	for (u32 i = 0; i < n; i++) {
		all += m[i].weight;
		in += hb_sysnos__of(&seen, m[i].sysno, lists) ? m[i].weight : 0;
	}
	return hb_share(in, all);
}

static u64 poll_calls(const struct hb_scene *s, u32 t)
{
	u32 n;
	const struct hb_tl_syscall *c = hb_timeline__syscalls(s->tl, t, &n);
	struct hb_sysnos seen = {0};
	u64 in = 0;

	for (u32 i = 0; i < n; i++)
		in += hb_sysnos__of(&seen, c[i].sysno, lists) != 0;
	return hb_rate(in, s->wall);
}

/* Delays of other threads that lead to a launch while `t` ran: their sum, the most of one thread, or cases.
 */
static int victims(const struct hb_scene *s, u32 t, u64 *most, u32 *who, struct hb_draft *d)
{
	int err = 0;

	*most = 0;
	for (u32 v = 0; v < hb_timeline__threads(s->tl) && !err; v++) {
		u32 n;
		const struct hb_tl_sleep *z = hb_timeline__sleeps(s->tl, v, &n);
		u64 sum = 0;

		if (v == t || !hb_scene__leads(s, v))
			continue;
		for (u32 i = 0; i < n && !err; i++) {
			struct hb_case c = {.begin = z[i].at.end - z[i].ready,
					    .end = z[i].at.end,
					    .thread = v,
					    .stack = z[i].at.stack,
					    .waker = hb_scene__task(s, t)};

			if (!z[i].ready)
				continue;
			sum += hb_timeline__use(s->tl, t, c.begin, c.end).running;
			if (d)
				err = hb_draft__add(d, &c);
		}
		if (sum > *most) {
			*most = sum;
			*who = v;
		}
	}
	return err;
}

static int look_at(struct hb_look *l, u32 t)
{
	const struct hb_tl_thread *th = hb_timeline__thread(l->s->tl, t);
	struct hb_use use = hb_timeline__use(l->s->tl, t, l->s->start, l->s->end);
	u64 most, calls = poll_calls(l->s, t), polls = poll_share(l->s, t);
	u32 who = HB_NONE;
	struct hb_draft *d;
	char name[64], other[64];

	hb_look__subject(l);
	if (!hb_look__at_least(l, ON_CPU, hb_share(use.running + use.ready, l->s->wall)) ||
	    !hb_look__either(l, POLL_CALLS, calls, POLLS, polls))
		return 0;
	victims(l->s, t, &most, &who, NULL);
	if (!hb_look__at_least(
		l, VICTIM,
		who == HB_NONE
		    ? 0
		    : hb_share(most, hb_scene__step_time(l->s, hb_timeline__thread(l->s->tl, who)->pid))))
		return 0;
	d = hb_look__find(l, "%s asks in a loop, %llu %% of its samples; %s waited for a CPU meanwhile",
			  hb_scene__thread_text(l->s, t, name, sizeof(name)),
			  (unsigned long long)(polls / 10000),
			  hb_scene__thread_text(l->s, who, other, sizeof(other)));
	if (!d)
		return -ENOMEM;
	hb_draft__pid(d, th->pid);
	hb_draft__confidence(d, HB_CONFIDENCE_MEDIUM,
			     "which thread ran on the CPU that was wanted is not recorded");
	return victims(l->s, t, &most, &who, d);
}

/* Any thread of the service may be the one that spins. */
static int detect(struct hb_look *l)
{
	int err = 0;

	for (u32 t = 0; t < hb_timeline__threads(l->s->tl) && !err; t++) {
		u32 n;

		hb_timeline__samples(l->s->tl, t, &n);
		if (n)
			err = look_at(l, t);
	}
	return err;
}

HB_PATTERN(p24_busy_poll) = {
    .id = "P24",
    .layer = "IPC",
    .title = "busy polling on shared CPUs",
    .rank = HB_RANK_CODE,
    .explains = "P30",
    .needs = HB_NEED_SLEEP | HB_NEED_SAMPLE | HB_NEED_ACCEL,
    .params = params,
    .rule = "a thread runs nearly all the time, in calls that ask whether there is something to do, while a "
	    "thread on the way "
	    "to the next launch waits for a CPU",
    .fix = "spin for a bounded time, then block; give the spinning thread a CPU of its own",
    .ref = "vllm-project/vllm#19036; #51950 (333 % CPU); #52814 (98.3 % of the samples); #29813 (livelock)",
    .traps = "spinning on a dedicated core buys latency and is fine",
    .settle = "pin the two apart and compare the run-queue delay",
    .record = "syscalls=all; frequency=997",
    .detect = detect,
};
