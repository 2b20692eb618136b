/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Some steps replay a graph; others, alike in size, launch every kernel by itself. */
#include <errno.h>
#include <stdlib.h>

#include "analysis/patterns/pattern.h"
#include "base/text.h"

enum { LAUNCHES, EAGER_SHARE, GRAPH_SHARE, ALIKE, SLOWER };

static const struct hb_param params[] = {
    [LAUNCHES] = {"launches", HB_UNIT_RATIO, 10000000,
		  "launches of a step without a graph, over the median of those with one"},
    [EAGER_SHARE] = {"eager_share", HB_UNIT_SHARE, 50000, "steps that miss their graph, of all steps"},
    [GRAPH_SHARE] = {"graph_share", HB_UNIT_SHARE, 50000, "steps that launch a graph, of all steps"},
    [ALIKE] = {"alike", HB_UNIT_RATIO, 2000000,
	       "what a step uploads over the most that a graph step does: more is a prefill, which is not "
	       "captured"},
    [SLOWER] = {"slower", HB_UNIT_RATIO, 1500000, "median step without over median step with a graph"},
    {0},
};

struct kinds {
	u32 graphs, missed;
	u64 graph_p50, missed_p50, launches_p50, most_bytes;
};

static u64 uploaded(const struct hb_step *st)
{
	return st->copied_bytes - st->d2h_bytes;
}

static bool missed(const struct hb_look *l, const struct hb_step *st, const struct kinds *k)
{
	u64 least = k->launches_p50 ? k->launches_p50 : 1;

	return !st->graphs && hb_share(st->launches, least) >= hb_look__param(l, LAUNCHES) &&
	       hb_share(uploaded(st), k->most_bytes ? k->most_bytes : 1) <= hb_look__param(l, ALIKE);
}

static int sort_out(const struct hb_look *l, const struct hb_series *p, struct kinds *k)
{
	u64 *v = calloc(p->n + 1, sizeof(*v));

	if (!v)
		return -ENOMEM;
	for (u32 i = 0; i < p->n; i++) {
		if (!p->step[i].graphs)
			continue;
		v[k->graphs++] = p->step[i].launches;
		if (uploaded(&p->step[i]) > k->most_bytes)
			k->most_bytes = uploaded(&p->step[i]);
	}
	k->launches_p50 = hb_dist__median(v, k->graphs);
	for (u32 i = 0, n = 0; i < p->n; i++)
		if (p->step[i].graphs)
			v[n++] = p->step[i].end - p->step[i].begin;
	k->graph_p50 = hb_dist__median(v, k->graphs);
	for (u32 i = 0; i < p->n; i++)
		if (missed(l, &p->step[i], k))
			v[k->missed++] = p->step[i].end - p->step[i].begin;
	k->missed_p50 = hb_dist__median(v, k->missed);
	free(v);
	return 0;
}

static int look_at(struct hb_look *l, const struct hb_series *p)
{
	struct kinds k = {0};
	struct hb_draft *d;
	char who[64], slow[32], fast[32];
	int err = p->n ? sort_out(l, p, &k) : 0;

	hb_look__subject(l);
	if (err || !p->n || !hb_look__at_least(l, GRAPH_SHARE, hb_share(k.graphs, p->n)) ||
	    !hb_look__at_least(l, EAGER_SHARE, hb_share(k.missed, p->n)) ||
	    !hb_look__at_least(l, SLOWER, hb_share(k.missed_p50, k.graph_p50 ? k.graph_p50 : 1)))
		return err;
	d = hb_look__find(
	    l, "%s: %u of %u steps launch eagerly what others of their size replay: %s instead of %s",
	    hb_scene__thread_text(l->s, p->dispatch, who, sizeof(who)), k.missed, p->n,
	    hb_text__ns(slow, sizeof(slow), k.missed_p50), hb_text__ns(fast, sizeof(fast), k.graph_p50));
	if (!d)
		return -ENOMEM;
	hb_draft__pid(d, p->pid);
	hb_draft__confidence(d, HB_CONFIDENCE_MEDIUM, "the batch is judged by what a step uploads");
	for (u32 i = 0; i < p->n && !err; i++) {
		const struct hb_step *st = &p->step[i];
		struct hb_case c = {.begin = st->begin, .end = st->end, .thread = p->dispatch};

		/* A step that takes no longer than with a graph has lost nothing. */
		if (missed(l, st, &k) && c.end - c.begin > k.graph_p50) {
			c.begin += k.graph_p50;
			err = hb_draft__add_slower(d, &c);
		}
	}
	return err;
}

static int detect(struct hb_look *l)
{
	return hb_look__series(l, look_at);
}

HB_PATTERN(p09_graph_miss) = {
    .id = "P09",
    .layer = "engine config",
    .title = "graph missed: eager fallback",
    .rank = HB_RANK_STRUCTURE,
    .explains = "P08",
    .needs = HB_NEED_ACCEL | HB_NEED_STEP,
    .params = params,
    .rule = "steps are of two kinds: some launch a graph, others launch ten times as many kernels although "
	    "they upload no more, "
	    "and take half as long again",
    .fix = "capture larger batches, cap the running requests, pad to the next captured size; vLLM: "
	   "cudagraph_capture_sizes of --compilation-config; SGLang: --cuda-graph-max-bs",
    .ref = "sgl-project/sglang#33483 (settles at batch 67 instead of 23), #33900; "
	   "vllm-project/vllm-ascend#16049 (7.5 times "
	   "slower)",
    .traps = "steps with a prefill run eagerly by design",
    .settle = "the log of the captured sizes; the batch as an engine field",
    .record = HB_RECORD_SCHEDULER,
    .detect = detect,
};
