/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A small copy to the host in the middle of a step: the host waits for the device, then the device for the
 * host. */
#include <errno.h>

#include "analysis/patterns/sync.h"
#include "base/text.h"

enum { BYTES, WAIT, STEP_SHARE };

static const struct hb_param params[] = {
    [BYTES] = {"bytes", HB_UNIT_BYTES, 65536, "a copy to the host of at most so much"},
    [WAIT] = {"wait", HB_UNIT_NS, 50000,
	      "that the host waits for at least so long, in the copy or right after it"},
    [STEP_SHARE] = {"step_share", HB_UNIT_SHARE, 800000,
		    "steps with such a wait that launches more afterwards"},
    {0},
};

static int look_at(struct hb_look *l, const struct hb_series *p)
{
	const struct hb_sync_rule rule = {.max_bytes = hb_look__param(l, BYTES),
					  .wait = hb_look__param(l, WAIT),
					  .want = HB_SYNC_READ_BACK};
	struct hb_syncs v;
	struct hb_draft *d;
	char who[64], frame[256], name[64];
	int err;

	if (!p->n)
		return 0;
	err = hb_syncs__find(l->s, p, &rule, &v);
	if (err)
		return err;
	hb_look__subject(l);
	if (v.n && hb_look__at_least(l, STEP_SHARE, hb_share(v.steps, p->n))) {
		snprintf(name, sizeof(name), "%s", hb_scene__call_name(l->s, v.v[0].call));
		d = hb_look__find(
		    l, "%s reads back a small result in the middle of %u of %u steps: %s%s%s",
		    hb_scene__thread_text(l->s, p->thread, who, sizeof(who)), v.steps, p->n, name,
		    v.v[0].call->at.stack ? " in " : "",
		    hb_scene__frame_text(l->s, p->pid, v.v[0].call->at.stack, frame, sizeof(frame)));
		err = d ? hb_syncs__add(d, p, &v) : -ENOMEM;
	}
	hb_syncs__free(&v);
	return err;
}

static int detect(struct hb_look *l)
{
	return hb_look__series(l, look_at);
}

HB_PATTERN(p02_read_back) = {
    .id = "P02",
    .layer = "framework",
    .title = "implicit read-back synchronisation",
    .rank = HB_RANK_API,
    .needs = HB_NEED_ACCEL | HB_NEED_STEP,
    .params = params,
    .rule = "in most steps a small copy to the host blocks (itself, or the wait right after it) and more "
	    "work is launched in the "
	    "same step afterwards; what it costs is the device's idle time from the return to the next "
	    "launch, not the wait",
    .fix = "keep lengths on the CPU, pinned memory and an event instead of a blocking copy, read back off "
	   "the launch path",
    .ref =
	"vllm-project/vllm#41429, #51738, #37139, #43107 (sync-debug mode as a guard); "
	"lightseekorg/tokenspeed#45 (-10 ms "
	"TTFT from one .max().item()); sgl-project/sglang#28491 (a blocking copy to the device in each step)",
    .traps = "the read-back of the step's tokens at its end is needed; waiting is not idling",
    .settle = "a run in torch's sync-debug mode; compare the idle time after the wait",
    .record = "timed=launch,graph",
    .detect = detect,
};
