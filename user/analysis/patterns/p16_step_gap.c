/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Between two steps the device waits for the scheduler: host code, in this process or in those that drive it.
 */
#include <errno.h>

#include "analysis/patterns/pattern.h"
#include "base/text.h"

enum { GAP, WORKING, NAMED };

static const struct hb_param params[] = {
    [GAP] =
	{"gap_share", HB_UNIT_SHARE, 100000,
	 "idle time between a step's begin and its first launch, median step, of the median step's length"},
    [WORKING] =
	{"working_share", HB_UNIT_SHARE, 500000,
	 "the part of that time in which a thread on the way runs host code: else nobody had work to do"},
    [NAMED] =
	{"named_share", HB_UNIT_SHARE, 500000,
	 "CPU samples below functions that schedule, update or put out, of all on the way in that time"},
    {0},
};

static const struct hb_frame_rule frames[] = {
    {"*", "*schedule*"},
    {"*", "*update*"},
    {"*", "*process_output*"},
    {"*", "*process_batch_result*"},
    {"*", "*make_output*"},
    {"*", "*detoken*"},
    {NULL, NULL},
};

/* Samples of a thread that fall into a step's begin: all, and those below such functions. */
static void sampled(const struct hb_scene *s, const struct hb_series *p, u32 t, u64 *all, u64 *named)
{
	u32 n, pid = hb_timeline__thread(s->tl, t)->pid;
	const struct hb_tl_sample *v = hb_timeline__samples(s->tl, t, &n);

	for (u32 i = 0; i < n; i++) {
		u32 at = hb_series__find(p, v[i].at.begin);

		if (at == HB_NONE || (p->step[at].first_op && v[i].at.begin >= p->step[at].first_op))
			continue;
		*all += v[i].weight;
		if (hb_scene__frame(s, pid, v[i].at.stack, frames))
			*named += v[i].weight;
	}
}

/* What of [begin, end) the path spends running, in calls or collecting garbage. */
static u64 working(const struct hb_scene *s, u32 pid, u64 begin, u64 end)
{
	u64 sum[HB_SEG_KINDS] = {0};

	hb_path__sum(s->path, pid, begin, end, sum);
	return sum[HB_SEG_RUN] + sum[HB_SEG_API] + sum[HB_SEG_GC] + sum[HB_SEG_SCHED];
}

static int look_at(struct hb_look *l, const struct hb_series *p)
{
	struct hb_hist gap = {0};
	u64 pause = 0, busy = 0, all = 0, named = 0, p50;
	struct hb_draft *d;
	char who[64], text[32];
	int err = 0;

	for (u32 i = 0; i < p->n && !err; i++) {
		const struct hb_step *st = &p->step[i];
		u64 to = st->first_op ? st->first_op : st->end;

		err = hb_hist__add(&gap, hb_scene__likely(l->s, p->dispatch, st->begin, to));
		pause += to - st->begin;
		busy += working(l->s, p->pid, st->begin, to);
	}
	p50 = hb_hist__quantile(&gap, 0.5);
	hb_hist__free(&gap);
	hb_look__subject(l);
	if (err || !p->n || !hb_look__at_least(l, GAP, hb_share(p50, p->p50)) ||
	    !hb_look__at_least(l, WORKING, hb_share(busy, pause)))
		return err;
	for (u32 t = 0; t < hb_timeline__threads(l->s->tl); t++)
		if (hb_scene__leads(l->s, t))
			sampled(l->s, p, t, &all, &named);
	if (!hb_look__at_least(l, NAMED, hb_share(named, all)))
		return 0;
	d = hb_look__find(
	    l, "the device idles %s before the first launch of the median step of %s while the host works",
	    hb_text__ns(text, sizeof(text), p50), hb_scene__thread_text(l->s, p->dispatch, who, sizeof(who)));
	if (!d)
		return -ENOMEM;
	hb_draft__pid(d, p->pid);
	for (u32 i = 0; i < p->n && !err; i++) {
		const struct hb_step *st = &p->step[i];
		u32 n;
		const struct hb_tl_call *k = hb_timeline__calls(l->s->tl, p->dispatch, &n);
		struct hb_case c = {.begin = st->begin,
				    .end = st->first_op ? st->first_op : st->end,
				    .thread = p->dispatch,
				    .stack = st->n_calls && st->call < n ? k[st->call].at.stack : 0};

		if (c.end > c.begin)
			err = hb_draft__add(d, &c);
	}
	return err;
}

static int detect(struct hb_look *l)
{
	return hb_look__series(l, look_at);
}

HB_PATTERN(p16_step_gap) = {
    .id = "P16",
    .layer = "engine",
    .title = "scheduler gap between steps",
    .rank = HB_RANK_SYMPTOM,
    .needs = HB_NEED_ACCEL | HB_NEED_STEP | HB_NEED_SLEEP | HB_NEED_SAMPLE | HB_NEED_STACK,
    .params = params,
    .rule = "the device idles from a step's begin to its first launch for a good part of the step, and host "
	    "code runs on the way "
	    "meanwhile, most of it below functions that schedule, update or put out",
    .fix = "asynchronous scheduling, two batches in flight, a thread for the output; vLLM: "
	   "--async-scheduling; SGLang: without --disable-overlap-schedule",
    .ref = "vllm-project/vllm#10634 (token gaps of 5 to 6 ms); NVIDIA/TensorRT-LLM#13957",
    .traps = "load that the clients limit",
    .settle = "vary the batch: a fixed cost, or one for each request",
    .record = "frequency=997; calls=@stack",
    .detect = detect,
};
