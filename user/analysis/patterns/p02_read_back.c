/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A small copy to the host in the middle of a step: the host waits for the device, then the device for the
 * host. */
#include <errno.h>

#include "analysis/patterns/sync.h"
#include "base/text.h"

enum { BYTES, WAIT, COUNT, STEP_SHARE };

static const struct hb_param params[] = {
    [BYTES] = {"bytes", HB_UNIT_BYTES, 65536, "a copy to the host of at most so much"},
    [WAIT] = {"wait", HB_UNIT_NS, 50000,
	      "that the host waits for at least so long, in the copy or right after it"},
    [COUNT] = {"count", HB_UNIT_COUNT, 10, "such copies in the window"},
    [STEP_SHARE] = {"step_share", HB_UNIT_SHARE, 800000,
		    "steps with such a wait that launches more afterwards"},
    {0},
};

/* Once it is one, each such read-back costs its gap, whether the host had to wait for it or came late itself.
 */
static int add_all(struct hb_draft *d, const struct hb_scene *s, const struct hb_series *p,
		   struct hb_sync_rule rule)
{
	struct hb_syncs v;
	int err;

	rule.wait = 0;
	err = hb_syncs__find(s, p, &rule, &v);
	if (!err)
		err = hb_syncs__add(d, p, &v);
	hb_syncs__free(&v);
	return err;
}

static int tell(struct hb_look *l, const struct hb_series *p, const struct hb_syncs *v,
		struct hb_sync_rule rule)
{
	const struct hb_tl_call *call = v->v[0].call;
	struct hb_draft *d;
	char who[64], frame[256], name[64];

	snprintf(name, sizeof(name), "%s", hb_scene__call_name(l->s, call));
	d = hb_look__find(
	    l, "%s reads a small result back in %u of %u steps before it goes on launching: %s%s%s",
	    hb_scene__thread_text(l->s, p->dispatch, who, sizeof(who)), v->steps, p->n, name,
	    call->at.stack ? " in " : "",
	    hb_scene__frame_text(l->s, p->pid, call->at.stack, frame, sizeof(frame)));
	if (!d)
		return -ENOMEM;
	if (v->ends > v->n / 2)
		hb_draft__confidence(
		    d, HB_CONFIDENCE_MEDIUM,
		    "it ends what looks like a step: only scheduling one step ahead would hide it");
	return add_all(d, l->s, p, rule);
}

static int look_at(struct hb_look *l, const struct hb_series *p)
{
	const struct hb_sync_rule rule = {.max_bytes = hb_look__param(l, BYTES),
					  .wait = hb_look__param(l, WAIT),
					  .want = HB_SYNC_READ_BACK};
	struct hb_syncs v;
	u64 dim;
	int err;

	if (!p->n)
		return 0;
	err = hb_syncs__find(l->s, p, &rule, &v);
	if (err)
		return err;
	hb_look__subject(l);
	dim = p->unsized > p->undirected ? p->unsized : p->undirected;
	if (!v.n && hb_share(dim, p->n) >= hb_look__param(l, STEP_SHARE))
		hb_look__unchecked(
		    l, HB_NEED_COPY_SIZES,
		    "needs the sizes and directions of copies: of %llu in %u steps they are not known",
		    (unsigned long long)dim, p->n);
	else if (v.n && hb_look__at_least(l, COUNT, v.n) &&
		 hb_look__at_least(l, STEP_SHARE, hb_share(v.steps, p->n)))
		err = tell(l, p, &v, rule);
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
	    "work is launched "
	    "afterwards: in the same step, or, where its code is a read-back that one does not see (item, "
	    "tolist, cpu ..), in the "
	    "next one. It costs the device's idle time from the return to the next launch, not the wait",
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
