/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The dispatch thread asks another process and waits for the answer before it goes on launching. */
#include <errno.h>

#include "analysis/patterns/rpc.h"
#include "base/text.h"

enum { WAIT, STEP_SHARE, EXPOSED_SHARE, AFTER, FOLLOWED };

static const struct hb_param params[] = {
    [WAIT] = {"wait", HB_UNIT_NS, 30000, "shorter waits do not count"},
    [STEP_SHARE] = {"step_share", HB_UNIT_SHARE, 200000, "steps that have such a wait"},
    [EXPOSED_SHARE] = {"exposed_share", HB_UNIT_SHARE, 20000,
		       "or what these waits exposed, as a part of the steps, however few they are"},
    [AFTER] = {"after", HB_UNIT_NS, 200000, "from the answer to the next launch, at most"},
    [FOLLOWED] = {"followed_share", HB_UNIT_SHARE, 500000, "of the waits that a launch follows so soon"},
    {0},
};

static void sum_up(struct hb_look *l, u32 pid, const struct hb_rpcs *r, u64 *exposed, u32 *followed)
{
	u64 after = hb_look__param(l, AFTER);

	*exposed = 0;
	*followed = 0;
	for (u32 i = 0; i < r->n; i++) {
		*exposed += hb_scene__likely(l->s, r->v[i].thread, r->v[i].begin, r->v[i].end);
		*followed += r->v[i].next - r->v[i].end <= after;
	}
}

static int tell(struct hb_look *l, const struct hb_series *p, const struct hb_rpcs *r)
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
			  hb_scene__thread_text(l->s, p->thread, who, sizeof(who)), r->n,
			  hb_text__ns(text, sizeof(text), longest->end - longest->begin),
			  hb_scene__task_text(l->s, longest->server, server, sizeof(server)));
	if (!d)
		return -ENOMEM;
	hb_draft__pid(d, p->pid);
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

/* Those of the KV cache are P14's. */
static void without_kv(const struct hb_scene *s, u32 pid, struct hb_rpcs *r)
{
	u32 to = 0;

	for (u32 i = 0; i < r->n; i++)
		if (!hb_rpc__is_kv(s, pid, &r->v[i]))
			r->v[to++] = r->v[i];
	r->n = to;
}

static int look_at(struct hb_look *l, const struct hb_series *p)
{
	struct hb_rpcs r;
	u64 exposed, step;
	u32 followed;
	int err = hb_rpcs__find(l->s, p, hb_look__param(l, WAIT), &r);

	if (err)
		return err;
	without_kv(l->s, p->pid, &r);
	sum_up(l, p->pid, &r, &exposed, &followed);
	step = hb_scene__step_time(l->s, p->pid);
	hb_look__subject(l);
	if (r.n &&
	    hb_look__either(l, STEP_SHARE, p->n ? hb_share(hb_rpcs__steps(p, &r), p->n) : 0, EXPOSED_SHARE,
			    hb_share(exposed, step)) &&
	    hb_look__at_least(l, FOLLOWED, hb_share(followed, r.n)))
		err = tell(l, p, &r);
	hb_rpcs__free(&r);
	return err;
}

static int detect(struct hb_look *l)
{
	return hb_look__series(l, look_at);
}

HB_PATTERN(p13_sync_rpc) = {
    .id = "P13",
    .layer = "IPC",
    .title = "synchronous call to another process ahead of dispatch",
    .rank = HB_RANK_IPC,
    .needs = HB_NEED_SLEEP | HB_NEED_ACCEL,
    .params = params,
    .rule = "the dispatch thread wakes another process, sleeps until that one answers, and launches right "
	    "afterwards; in many "
	    "steps, or long enough to show. Parents, which drive the process, are left out",
    .fix = "make it asynchronous, batch it, fetch ahead, cache the result, ask from a helper thread",
    .ref = "NVIDIA/TensorRT-LLM#15109, #15114 (a submit RPC of rank 0 starves the executor loop)",
    .traps = "a call during which the device works through its queue costs nothing; waiting for new requests "
	     "is no call",
    .settle = "delay the other process by a fixed time and look at the slope of the step time",
    .detect = detect,
};
