/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Device or pinned memory allocated or freed while serving. */
#include <errno.h>

#include "analysis/patterns/steady.h"
#include "base/text.h"

enum { WARM, STEPS, PER_STEP, SHARE };

static const struct hb_param params[] = {
    [WARM] = {"warmup", HB_UNIT_NS, 60000000000,
	      "allocations within so much of the process's start are its warm-up"},
    [STEPS] = {"warmup_steps", HB_UNIT_COUNT, 100,
	       "unless so many steps in this window came before; where the "
	       "process's start is not known half of the steps, if those are fewer"},
    [PER_STEP] = {"per_step", HB_UNIT_RATIO, 10000, "such calls for each step"},
    [SHARE] = {"share", HB_UNIT_SHARE, 10000, "or their time, as a part of the steps"},
    {0},
};

/* Allocations from a pool in stream order are meant for this. */
static const char *const pooled[] = {"*Async*", NULL};

static int look_at(struct hb_look *l, const struct hb_series *p)
{
	const struct hb_steady_rule rule = {.warm = hb_look__param(l, WARM),
					    .steps = hb_look__param(l, STEPS),
					    .op = HB_OP_ALLOC,
					    .or_op = HB_OP_ALLOC,
					    .but = pooled};
	struct hb_steady sum;
	struct hb_draft *d;
	char who[64], frame[256], bytes[32];
	bool sized;

	hb_steady__look(l->s, p, &rule, &sum);
	hb_look__subject(l);
	if (sum.blind)
		hb_look__unchecked(l, 0, HB_STEADY_BLIND, p->n);
	if (!sum.n || !hb_look__either(l, SHARE, hb_share(sum.total, sum.step_time), PER_STEP,
				       hb_share(sum.n, sum.steps)))
		return 0;
	hb_steady__extend(l->s, p, &rule, &sum);
	sized = sum.longest->bytes > 0; /* a free has none, a profiler tells none */
	d = hb_look__find(l, "%s allocates or frees memory %llu times while serving; the longest: %s%s%s%s%s",
			  hb_scene__thread_text(l->s, sum.thread, who, sizeof(who)),
			  (unsigned long long)sum.n, hb_scene__call_name(l->s, sum.longest),
			  sized ? " of " : "",
			  sized ? hb_text__bytes(bytes, sizeof(bytes), sum.longest->bytes) : "",
			  sum.longest->at.stack ? " in " : "",
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

HB_PATTERN(p06_alloc) = {
    .id = "P06",
    .layer = "allocator",
    .title = "device or pinned memory allocated in steady state",
    .rank = HB_RANK_API,
    .needs = HB_NEED_ACCEL,
    .params = params,
    .rule = "device or pinned memory is allocated, mapped, registered or freed after the warm-up, in one "
	    "step of a hundred or "
	    "for a good part of the time; a free waits for the device",
    .fix = "allocate once, expandable segments, a lower memory fraction, a pool of pinned buffers",
    .ref = "pytorch/pytorch#171771 (the out-of-memory path waits for all streams), #35901; "
	   "sgl-project/sglang#36705",
    .traps = "workspaces that libraries make at first use, the first long prompt",
    .settle = "a snapshot of the allocator",
    .record = "calls=@stack",
    .detect = detect,
};
