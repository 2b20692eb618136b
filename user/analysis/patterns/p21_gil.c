/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A thread on the way to the next launch waits for Python's lock while another one runs. */
#include <stdlib.h>
#include <string.h>

#include "analysis/patterns/pattern.h"

enum { WAIT_SHARE, EXPOSED_SHARE, SWITCH_FROM, SWITCH_TO, SWITCH_SHARE };

static const struct hb_param params[] = {
    [WAIT_SHARE] = {"wait_share", HB_UNIT_SHARE, 50000,
		    "waits for the GIL of one thread on the way to a launch, as a part of the steps"},
    [EXPOSED_SHARE] = {"exposed_share", HB_UNIT_SHARE, 30000, "what they exposed, as a part of the steps"},
    [SWITCH_FROM] = {"switch_from", HB_UNIT_NS, 4500000,
		     "a wait between this and the next looks like one switch interval (5 ms by default)"},
    [SWITCH_TO] = {"switch_to", HB_UNIT_NS, 6500000, "see switch_from"},
    [SWITCH_SHARE] = {"switch_share", HB_UNIT_SHARE, 300000,
		      "from so many waits of that length on, the switch interval is named"},
    {0},
};

struct sums {
	u64 wait, exposed, count, switches;
	u64 *by_holder; /* time by thread of the timeline */
};

static bool counts(const struct hb_tl_gil *g)
{
	return !g->handover && g->at.end > g->at.begin;
}

static void add_thread(struct hb_look *l, u32 t, struct sums *sum)
{
	u64 from = hb_look__param(l, SWITCH_FROM), to = hb_look__param(l, SWITCH_TO);
	u32 n;
	const struct hb_tl_gil *g = hb_timeline__gils(l->s->tl, t, &n);

	for (u32 i = 0; i < n; i++) {
		u64 dur = g[i].at.end - g[i].at.begin;

		if (!counts(&g[i]))
			continue;
		sum->count++;
		sum->wait += dur;
		sum->exposed += hb_scene__likely(l->s, t, g[i].at.begin, g[i].at.end);
		sum->switches += dur >= from && dur <= to;
		if (g[i].holder != HB_NONE)
			sum->by_holder[g[i].holder] += dur;
	}
}

static void tell(struct hb_look *l, struct hb_draft *d, u32 t, const struct sums *sum)
{
	u32 top = HB_NONE;
	char who[64];

	for (u32 i = 0; i < hb_timeline__threads(l->s->tl); i++)
		if (sum->by_holder[i] && (top == HB_NONE || sum->by_holder[i] > sum->by_holder[top]))
			top = i;
	if (top != HB_NONE)
		hb_draft__say(d, "; %s held it in %llu %% of that time",
			      hb_scene__thread_text(l->s, top, who, sizeof(who)),
			      (unsigned long long)(hb_share(sum->by_holder[top], sum->wait) / 10000));
	if (hb_share(sum->switches, sum->count) >= hb_look__param(l, SWITCH_SHARE))
		hb_draft__say(
		    d,
		    "; many waits are one switch interval long: the holder does not give it away by itself");
}

static int add_cases(struct hb_draft *d, const struct hb_scene *s, u32 t)
{
	u32 n;
	const struct hb_tl_gil *g = hb_timeline__gils(s->tl, t, &n);

	for (u32 i = 0; i < n; i++) {
		struct hb_case c = {.begin = g[i].at.begin,
				    .end = g[i].at.end,
				    .thread = t,
				    .stack = g[i].at.stack,
				    .waker = hb_scene__task(s, g[i].holder),
				    .waker_stack = g[i].holder_stack};

		if (counts(&g[i]) && hb_draft__add(d, &c))
			return -1;
	}
	return 0;
}

static int look_at(struct hb_look *l, u32 t, struct sums *sum)
{
	const struct hb_tl_thread *th = hb_timeline__thread(l->s->tl, t);
	u64 step = hb_scene__step_time(l->s, th->pid);
	struct hb_draft *d;
	char who[64];

	add_thread(l, t, sum);
	if (!sum->count)
		return 0;
	hb_look__subject(l);
	if (!hb_look__at_least(l, WAIT_SHARE, hb_share(sum->wait, step)) ||
	    !hb_look__at_least(l, EXPOSED_SHARE, hb_share(sum->exposed, step)))
		return 0;
	d = hb_look__find(l, "%s waits for the GIL %llu times, %llu %% of the time of its steps",
			  hb_scene__thread_text(l->s, t, who, sizeof(who)), (unsigned long long)sum->count,
			  (unsigned long long)(hb_share(sum->wait, step) / 10000));
	if (!d)
		return -1;
	hb_draft__pid(d, th->pid);
	tell(l, d, t, sum);
	return add_cases(d, l->s, t);
}

static int detect(struct hb_look *l)
{
	u32 n = hb_timeline__threads(l->s->tl);
	u64 *by_holder = calloc(n + 1, sizeof(*by_holder));
	int err = by_holder ? 0 : -1;

	for (u32 t = 0; t < n && !err; t++) {
		struct sums sum = {.by_holder = by_holder};

		if (!hb_scene__leads(l->s, t))
			continue;
		memset(by_holder, 0, n * sizeof(*by_holder));
		err = look_at(l, t, &sum);
	}
	free(by_holder);
	return err;
}

HB_PATTERN(p21_gil) = {
    .id = "P21",
    .layer = "interpreter",
    .title = "GIL contention",
    .rank = HB_RANK_INTERPRETER,
    .needs = HB_NEED_GIL | HB_NEED_ACCEL,
    .params = params,
    .rule = "a thread on the way to the next launch waits for the GIL for a good part of the steps, and the "
	    "device idles "
	    "meanwhile; who held it is told",
    .fix = "move the holder's work to another process, release the GIL in its C code, poll less often, cross "
	   "into Python "
	   "once for many items",
    .ref = "NVIDIA/TensorRT-LLM#15109; vllm-project/vllm#10634; sgl-project/sglang#26693 (poll loops of 50 "
	   "to 200 us took "
	   "20 to 30 % of a spinning victim)",
    .traps = "a lock that the same thread hands over to itself; free-threaded builds",
    .settle = "move the holder out of the process and compare the steps",
    .record = "frequency=997; calls=@waker",
    .detect = detect,
};
