/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* More synchronisations in a step than its end needs. */
#include <errno.h>

#include "analysis/patterns/sync.h"

enum { WAIT, COUNT, PER_STEP, WHOLE, EXPOSED_SHARE, BYTES };

static const struct hb_param params[] = {
    [WAIT] = {"wait", HB_UNIT_NS, 5000, "waits shorter than this do not count"},
    [COUNT] = {"count", HB_UNIT_COUNT, 10,
	       "such waits in the window: a few are a profiler that starts or stops"},
    [PER_STEP] = {"per_step", HB_UNIT_RATIO, 1000000,
		  "waits in the middle of a step (more work follows in it), on average"},
    [WHOLE] = {"whole_share", HB_UNIT_SHARE, 200000,
	       "or waits for the whole device in the middle of a step, for each step"},
    [EXPOSED_SHARE] = {"exposed_share", HB_UNIT_SHARE, 30000,
		       "idle time between their return and the next launch, as a part of the steps"},
    [BYTES] = {"bytes", HB_UNIT_BYTES, 65536, "waits after a copy to the host of at most so much are P02's"},
    {0},
};

static int look_at(struct hb_look *l, const struct hb_series *p)
{
	const struct hb_sync_rule rule = {
	    .max_bytes = hb_look__param(l, BYTES), .wait = hb_look__param(l, WAIT), .want = HB_SYNC_PLAIN};
	struct hb_syncs v;
	struct hb_draft *d;
	char who[64], frame[256];
	u64 exposed = 0;
	int err;

	if (!p->n)
		return 0;
	err = hb_syncs__find(l->s, p, &rule, &v);
	if (err)
		return err;
	err = hb_syncs__leave_one(l->s, p, &v);
	for (u32 i = 0; i < v.n && !err; i++)
		exposed += hb_scene__likely(l->s, p->dispatch, v.v[i].from, v.v[i].until);
	hb_look__subject(l);
	if (!err && v.n && hb_look__at_least(l, COUNT, v.n) &&
	    hb_look__either(l, WHOLE, hb_share(v.whole, p->n), PER_STEP, hb_share(v.n, p->n)) &&
	    hb_look__at_least(l, EXPOSED_SHARE, hb_share(exposed, hb_scene__step_time(l->s, p->pid)))) {
		d = hb_look__find(
		    l, "%s waits for the device %u times in the middle of %u steps: %s%s%s",
		    hb_scene__thread_text(l->s, p->dispatch, who, sizeof(who)), v.n, p->n,
		    hb_scene__call_name(l->s, v.v[0].call), v.v[0].call->at.stack ? " in " : "",
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

HB_PATTERN(p04_over_sync) = {
    .id = "P04",
    .layer = "framework",
    .title = "over-synchronisation",
    .rank = HB_RANK_API,
    .needs = HB_NEED_ACCEL | HB_NEED_STEP,
    .params = params,
    .rule = "the dispatch thread waits for the device in the middle of steps, or for all of it, and the "
	    "device idles from its "
	    "return to the next launch. A wait that ends its step does not count",
    .fix = "let streams wait for events on the device, one synchronisation a step",
    .ref = "ggml-org/llama.cpp#17795 (+1 to 2 %); #26487 (a spin-wait burns a core)",
    .traps = "memory snapshots, health checks, a profiler that starts or stops",
    .settle = "sync records tie a wait to its stream or event",
    .detect = detect,
};
