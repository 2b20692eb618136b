/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The dispatch thread asks another process and waits for the answer before it goes on launching. */
#include <errno.h>

#include "analysis/patterns/rpc.h"
#include "base/text.h"

enum { WAIT, STEP_SHARE, EXPOSED_SHARE, AFTER, AFTER_PASSED, FOLLOWED };

static const struct hb_param params[] = {
    [WAIT] = {"wait", HB_UNIT_NS, 30000, "shorter waits do not count"},
    [STEP_SHARE] = {"step_share", HB_UNIT_SHARE, 200000, "steps that have such a wait"},
    [EXPOSED_SHARE] = {"exposed_share", HB_UNIT_SHARE, 20000,
		       "or what these waits exposed, as a part of the steps, however few they are"},
    [AFTER] = {"after", HB_UNIT_NS, 200000, "from the answer to the next launch, at most"},
    [AFTER_PASSED] = {"after_passed", HB_UNIT_NS, 2000000,
		      "the same where the thread that asked drives the one that launches"},
    [FOLLOWED] = {"followed_share", HB_UNIT_SHARE, 500000,
		  "such waits that a launch follows so soon, of all of them"},
    {0},
};

static void sum_up(struct hb_look *l, bool drives, const struct hb_rpcs *r, u64 *exposed, u32 *followed)
{
	u64 after = hb_look__param(l, drives ? AFTER_PASSED : AFTER);

	*exposed = 0;
	*followed = 0;
	for (u32 i = 0; i < r->n; i++) {
		*exposed += hb_scene__likely(l->s, r->v[i].thread, r->v[i].begin, r->v[i].end);
		*followed += r->v[i].next - r->v[i].end <= after;
	}
}

static int tell(struct hb_look *l, u32 thread, const struct hb_rpcs *r)
{
	const struct hb_rpc *longest = &r->v[0];
	struct hb_draft *d;
	char who[64], server[64], text[32];
	bool seen = true;
	int err = 0;

	for (u32 i = 0; i < r->n; i++) {
		if (r->v[i].end - r->v[i].begin > longest->end - longest->begin)
			longest = &r->v[i];
		seen &= r->v[i].seen;
	}
	d = hb_look__find(l,
			  "%s asks another process %u times and waits for the answer, up to %s; %s answers",
			  hb_scene__thread_text(l->s, thread, who, sizeof(who)), r->n,
			  hb_text__ns(text, sizeof(text), longest->end - longest->begin),
			  hb_scene__task_text(l->s, longest->server, server, sizeof(server)));
	if (!d)
		return -ENOMEM;
	hb_draft__pid(d, hb_timeline__thread(l->s->tl, thread)->pid);
	if (!seen)
		hb_draft__confidence(d, HB_CONFIDENCE_LOW,
				     "the process that answers is not traced: that it was asked is not seen");
	for (u32 i = 0; i < r->n && !err; i++) {
		struct hb_case c = {.begin = r->v[i].begin,
				    .end = r->v[i].end,
				    .thread = r->v[i].thread,
				    .stack = r->v[i].stack,
				    .waker = r->v[i].server};

		err = hb_draft__add(d, &c);
	}
	return err;
}

static int look_at(struct hb_look *l, u32 thread)
{
	const struct hb_series *p = hb_rpcs__series(l->s, thread);
	u64 exposed, step;
	struct hb_rpcs r;
	u32 followed, all;
	int err;

	if (!p)
		return 0;
	err = hb_rpcs__find(l->s, thread, hb_look__param(l, WAIT), &r);
	if (err)
		return err;
	all = r.n;
	err = hb_rpcs__keep(l->s, thread, &r, false);
	sum_up(l, thread != p->dispatch, &r, &exposed, &followed);
	step = hb_scene__step_time(l->s, p->pid);
	hb_look__subject(l);
	if (!err && all &&
	    hb_look__either(l, STEP_SHARE, p->n ? hb_share(hb_rpcs__steps(p, &r), p->n) : 0, EXPOSED_SHARE,
			    hb_share(exposed, step)) &&
	    hb_look__at_least(l, FOLLOWED, hb_share(followed, r.n)))
		err = tell(l, thread, &r);
	else if (r.n < all)
		hb_look__note(l, "%u calls to the KV cache's service are P14's", all - r.n);
	hb_rpcs__free(&r);
	return err;
}

static int detect(struct hb_look *l)
{
	return hb_look__threads(l, look_at);
}

HB_PATTERN(p13_sync_rpc) = {
    .id = "P13",
    .layer = "IPC",
    .title = "synchronous call to another process ahead of dispatch",
    .rank = HB_RANK_IPC,
    .needs = HB_NEED_SLEEP | HB_NEED_ACCEL,
    .params = params,
    .rule =
	"the dispatch thread, or one that drives it, wakes another process, sleeps until that one answers, "
	"and "
	"work for the device follows right afterwards; in many steps, or long enough to show. Parents, which "
	"drive the process, are left out",
    .fix = "make it asynchronous, batch it, fetch ahead, cache the result, ask from a helper thread",
    .ref = "NVIDIA/TensorRT-LLM#15109, #15114 (a submit RPC of rank 0 starves the executor loop)",
    .traps = "a call during which the device works through its queue costs nothing; waiting for new requests "
	     "is no call: of processes that are not traced only those count that answer on one socket or "
	     "pipe, and "
	     "none that sends into an event loop",
    .settle = "delay the other process by a fixed time and look at the slope of the step time",
    .record = "calls=@stack; calls=@waker",
    .detect = detect,
};
