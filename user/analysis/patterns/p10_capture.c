/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Graphs are captured, instantiated or rebuilt while requests wait. */
#include <errno.h>

#include "analysis/patterns/steady.h"
#include "base/text.h"

enum { WARM, STEPS, SPAN, PER_STEP };

static const struct hb_param params[] = {
    [WARM] = {"warmup", HB_UNIT_NS, 60000000000,
	      "captures within so much of the process's start are its warm-up"},
    [STEPS] = {"warmup_steps", HB_UNIT_COUNT, 100,
	       "unless so many steps in this window came before; where the "
	       "process's start is not known half of the steps, if those are fewer"},
    [SPAN] = {"span", HB_UNIT_NS, 1000000, "a call that takes so long"},
    [PER_STEP] = {"per_step", HB_UNIT_RATIO, 1000, "such calls for each step"},
    {0},
};

static int look_at(struct hb_look *l, const struct hb_series *p)
{
	const struct hb_steady_rule rule = {.warm = hb_look__param(l, WARM),
					    .steps = hb_look__param(l, STEPS),
					    .least = hb_look__param(l, SPAN),
					    .op = HB_OP_CAPTURE,
					    .or_op = HB_OP_GRAPH_BUILD};
	struct hb_steady sum;
	struct hb_draft *d;
	char who[64], frame[256], longest[32];

	hb_steady__look(l->s, p, &rule, &sum);
	hb_look__subject(l);
	if (sum.blind)
		hb_look__unchecked(l, 0, HB_STEADY_BLIND, p->n);
	if (!sum.n || !hb_look__at_least(l, PER_STEP, hb_share(sum.n, sum.steps)))
		return 0;
	hb_steady__extend(l->s, p, &rule, &sum);
	d = hb_look__find(l, "%s builds graphs %llu times while serving, up to %s: %s%s%s",
			  hb_scene__thread_text(l->s, sum.thread, who, sizeof(who)),
			  (unsigned long long)sum.n, hb_text__ns(longest, sizeof(longest), sum.max),
			  hb_scene__call_name(l->s, sum.longest), sum.longest->at.stack ? " in " : "",
			  hb_scene__frame_text(l->s, p->pid, sum.longest->at.stack, frame, sizeof(frame)));
	if (!d)
		return -ENOMEM;
	hb_draft__pid(d, p->pid);
	if (sum.guessed)
		hb_draft__confidence(d, HB_CONFIDENCE_MEDIUM, HB_STEADY_GUESSED);
	return hb_steady__add(l->s, p, &rule, &sum, d);
}

static int detect(struct hb_look *l)
{
	return hb_look__series(l, look_at);
}

HB_PATTERN(p10_capture) = {
    .id = "P10",
    .layer = "runtime",
    .title = "graph capture or instantiation while serving",
    .rank = HB_RANK_STRUCTURE,
    .explains = "P09",
    .needs = HB_NEED_ACCEL | HB_NEED_STEP,
    .params = params,
    .rule = "after the warm-up graphs are captured, instantiated or updated, a millisecond or more each time",
    .fix = "capture every batch size at start-up, update the nodes' parameters instead of building anew",
    .ref = "pegainfer-project/pegainfer#911 (a size that was not captured is an error); "
	   "microsoft/onnxruntime-genai#2556 (the stall of first use)",
    .traps = "a LoRA or model that is loaded",
    .settle = "a marker of the warm-up's end",
    .detect = detect,
};
