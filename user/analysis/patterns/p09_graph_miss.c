/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Some steps replay a graph; others, alike in size, launch every kernel by itself. */
#include <errno.h>
#include <stdlib.h>

#include "analysis/patterns/batches.h"
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
	const struct hb_batches *told; /* what steps held; n 0: nobody tells */
	u32 graphs, missed;
	u32 unsized; /* of `missed`: what they upload is not known, nor told */
	u32 told_of; /* of `missed`: that the engine tells of */
	u64 graph_p50, missed_p50, launches_p50, most_bytes;
};

static u64 uploaded(const struct hb_step *st)
{
	return st->copied_bytes - st->d2h_bytes;
}

/* What the engine says that a step held; NULL: it does not say. */
static const struct hb_batch *batch_of(const struct hb_batches *b, const struct hb_step *st)
{
	u64 t = st->first_op ? st->first_op : st->begin;
	u32 lo = 0, hi = b->n;

	while (lo < hi) {
		u32 mid = lo + (hi - lo) / 2;

		if (b->v[mid].begin <= t)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo && t < b->v[lo - 1].end ? &b->v[lo - 1] : NULL;
}

/* A prefill is not captured: as the engine says, else by what it uploads. */
static bool alike(const struct hb_look *l, const struct hb_step *st, const struct kinds *k)
{
	const struct hb_batch *b = batch_of(k->told, st);

	return b ? !b->prefill
		 : hb_share(uploaded(st), k->most_bytes ? k->most_bytes : 1) <= hb_look__param(l, ALIKE);
}

static bool missed(const struct hb_look *l, const struct hb_step *st, const struct kinds *k)
{
	u64 least = k->launches_p50 ? k->launches_p50 : 1;

	return !st->graphs && hb_share(st->launches, least) >= hb_look__param(l, LAUNCHES) && alike(l, st, k);
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
		if (missed(l, &p->step[i], k)) {
			bool is_told = batch_of(k->told, &p->step[i]) != NULL;

			v[k->missed++] = p->step[i].end - p->step[i].begin;
			k->told_of += is_told;
			k->unsized += !is_told && p->step[i].unsized;
		}
	k->missed_p50 = hb_dist__median(v, k->missed);
	free(v);
	return 0;
}

/* What a step without its graph lost: by records of the device what it idled while kernels were launched one
 * by one; without them the time beyond that of a step with one. Begin >= end: nothing. */
static struct hb_case lost(const struct hb_look *l, const struct hb_series *p, const struct hb_step *st,
			   const struct kinds *k)
{
	struct hb_case c = {.begin = st->begin + k->graph_p50, .end = st->end, .thread = p->dispatch};

	if (st->end - st->begin <= k->graph_p50)
		c.end = c.begin;
	else if (hb_busy__is_exact(l->s->busy, p->pid) && st->first_op) {
		c.begin = st->first_op;
		c.end = st->last_op < st->end ? st->last_op : st->end;
	}
	return c;
}

static int tell(struct hb_look *l, const struct hb_series *p, const struct kinds *k)
{
	char who[64], slow[32], fast[32];
	struct hb_draft *d;
	int err = 0;

	d = hb_look__find(
	    l, "%s: %u of %u steps launch eagerly what others of their size replay: %s instead of %s",
	    hb_scene__thread_text(l->s, p->dispatch, who, sizeof(who)), k->missed, p->n,
	    hb_text__ns(slow, sizeof(slow), k->missed_p50), hb_text__ns(fast, sizeof(fast), k->graph_p50));
	if (!d)
		return -ENOMEM;
	hb_draft__pid(d, p->pid);
	if (k->told_of < k->missed)
		hb_draft__confidence(
		    d, k->most_bytes ? HB_CONFIDENCE_MEDIUM : HB_CONFIDENCE_LOW,
		    k->most_bytes ? "the batch is judged by what a step uploads"
				  : "nothing tells what a step holds: those with a graph upload nothing");
	for (u32 i = 0; i < p->n && !err; i++) {
		struct hb_case c;

		if (!missed(l, &p->step[i], k))
			continue;
		c = lost(l, p, &p->step[i], k);
		if (c.end > c.begin)
			err = hb_draft__add_slower(d, &c);
	}
	return err;
}

static int judge(struct hb_look *l, const struct hb_series *p, struct kinds *k)
{
	int err = sort_out(l, p, k);

	hb_look__subject(l);
	if (err || !hb_look__at_least(l, GRAPH_SHARE, hb_share(k->graphs, p->n)) ||
	    !hb_look__at_least(l, EAGER_SHARE, hb_share(k->missed, p->n)) ||
	    !hb_look__at_least(l, SLOWER, hb_share(k->missed_p50, k->graph_p50 ? k->graph_p50 : 1)))
		return err;
	if (!k->unsized)
		return tell(l, p, k);
	hb_look__unchecked(
	    l, HB_NEED_COPY_SIZES,
	    "needs what steps hold: of %u of %u without a graph the size of the uploads is not "
	    "known",
	    k->unsized, k->missed);
	return 0;
}

static int look_at(struct hb_look *l, const struct hb_series *p)
{
	struct hb_batches told = {0};
	struct kinds k = {.told = &told};
	bool graphs = false, eager = false;
	int err = 0;

	for (u32 i = 0; i < p->n && !(graphs && eager); i++)
		*(p->step[i].graphs ? &graphs : &eager) = true;
	if (graphs && eager)
		err = hb_batches__read(l->s, &told);
	if (told.pid != p->pid)
		told.n = 0;
	if (!err)
		err = judge(l, p, &k);
	hb_batches__free(&told);
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
    .rule =
	"steps are of two kinds: some launch a graph, others launch ten times as many kernels although "
	"they hold no prefill (by the engine's annotations or fields, else as they upload no more), and take "
	"half as long again. It costs what the device idles while they launch",
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
