/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Garbage collections stop every thread that needs the GIL. */
#include "analysis/patterns/pattern.h"
#include "base/text.h"

enum { SINGLE, SHARE };

static const struct hb_param params[] = {
    [SINGLE] = {"single", HB_UNIT_NS, 10000000, "one collection that takes so long"},
    [SHARE] = {"share", HB_UNIT_SHARE, 10000, "all collections of a process, as a part of the window"},
    {0},
};

struct sums {
	u64 count, total, max, full;
};

/* Without what of it the thread had no CPU for: that is P30's. */
static u64 length_of(const struct hb_scene *s, u32 thread, const struct hb_tl_gc *g)
{
	return g->at.end - g->at.begin - hb_timeline__use(s->tl, thread, g->at.begin, g->at.end).ready;
}

static void sum_up(const struct hb_scene *s, u32 pid, struct sums *sum)
{
	for (u32 t = hb_timeline__of_pid(s->tl, pid, HB_NONE); t != HB_NONE;
	     t = hb_timeline__of_pid(s->tl, pid, t)) {
		u32 n;
		const struct hb_tl_gc *g = hb_timeline__gcs(s->tl, t, &n);

		for (u32 i = 0; i < n; i++) {
			u64 dur = length_of(s, t, &g[i]);

			sum->count++;
			sum->total += dur;
			sum->full += g[i].generation == 2;
			if (dur > sum->max)
				sum->max = dur;
		}
	}
}

/* In a process that gives no device work, such as a front end, a pause holds requests up. */
static int add_cases(struct hb_draft *d, const struct hb_scene *s, u32 pid)
{
	bool dispatches = hb_steps__of_pid(s->steps, pid) != NULL;
	int err = 0;

	for (u32 t = hb_timeline__of_pid(s->tl, pid, HB_NONE); t != HB_NONE && !err;
	     t = hb_timeline__of_pid(s->tl, pid, t)) {
		u32 n;
		const struct hb_tl_gc *g = hb_timeline__gcs(s->tl, t, &n);

		for (u32 i = 0; i < n && !err; i++) {
			struct hb_case c = {
			    .begin = g[i].at.begin, .end = g[i].at.end, .thread = t, .stack = g[i].at.stack};

			if (!dispatches)
				c.end = c.begin + length_of(s, t, &g[i]);

			err = dispatches ? hb_draft__add(d, &c) : hb_draft__add_delay(d, &c);
		}
	}
	return err;
}

static int look_at(struct hb_look *l, const struct hb_proc_stat *p)
{
	struct sums sum = {0};
	struct hb_draft *d;
	char who[64], longest[32];
	u64 share;

	sum_up(l->s, p->pid, &sum);
	if (!sum.count)
		return 0;
	share = hb_share(sum.total, l->s->wall);
	hb_look__subject(l);
	if (!hb_look__either(l, SHARE, share, SINGLE, sum.max))
		return 0;
	d = hb_look__find(l, "%s collects garbage %llu times (%llu of all objects), up to %s at once",
			  hb_scene__task_text(l->s, p->main, who, sizeof(who)), (unsigned long long)sum.count,
			  (unsigned long long)sum.full, hb_text__ns(longest, sizeof(longest), sum.max));
	if (!d)
		return -1;
	hb_draft__pid(d, p->pid);
	return add_cases(d, l->s, p->pid);
}

static int detect(struct hb_look *l)
{
	return hb_look__procs(l, look_at);
}

HB_PATTERN(p26_gc) = {
    .id = "P26",
    .layer = "interpreter",
    .title = "garbage collection pause",
    .rank = HB_RANK_INTERPRETER,
    .explains = "P21",
    .needs = HB_NEED_GC | HB_NEED_ACCEL,
    .params = params,
    .rule = "one collection of a process takes long, or all of them take a good part of the window; every "
	    "thread that needs "
	    "the GIL stands still meanwhile",
    .fix = "freeze the heap after warm-up (gc.freeze), raise the thresholds, collect while the device works",
    .ref = "vllm-project/vllm#24008, #44363; ROCm/ATOM#1991 (979 ms, nothing reclaimed); "
	   "sgl-project/sglang#28067 (41 s); "
	   "NVIDIA/TensorRT-LLM#13907",
    .traps = "a heap that grows is a leak: freezing hides it",
    .settle = "count objects by type before and after a collection",
    .detect = detect,
};
