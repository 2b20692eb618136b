/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The dispatch thread waits for blocks of the KV cache: allocation, lookup or load by another process. */
#include <errno.h>

#include "analysis/patterns/rpc.h"
#include "base/text.h"

enum { WAIT, EXPOSED_SHARE };

static const struct hb_param params[] = {
    [WAIT] = {"wait", HB_UNIT_NS, 30000, "shorter waits do not count"},
    [EXPOSED_SHARE] = {"exposed_share", HB_UNIT_SHARE, 20000,
		       "what these waits exposed, as a part of the steps"},
    {0},
};

static struct hb_draft *open_draft(struct hb_look *l, u32 thread, const struct hb_rpcs *r)
{
	u32 pid = hb_timeline__thread(l->s->tl, thread)->pid;
	const struct hb_rpc *named = &r->v[0]; /* one with a stack: there is one, else they were not KV's */
	char who[64], server[64], frame[256];
	struct hb_draft *d;

	for (u32 i = 0; i < r->n && !named->stack; i++)
		named = &r->v[i];
	d = hb_look__find(l, "%s waits for the KV cache's service: %s, in %s",
			  hb_scene__thread_text(l->s, thread, who, sizeof(who)),
			  hb_scene__task_text(l->s, named->server, server, sizeof(server)),
			  hb_scene__frame_text(l->s, pid, named->stack, frame, sizeof(frame)));
	if (d)
		hb_draft__pid(d, pid);
	return d;
}

static int tell(struct hb_look *l, u32 thread, const struct hb_rpcs *r)
{
	struct hb_draft *d = open_draft(l, thread, r);
	int err = d ? 0 : -ENOMEM;

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
	struct hb_rpcs r;
	u64 exposed = 0;
	int err;

	if (!p)
		return 0;
	err = hb_rpcs__find(l->s, thread, hb_look__param(l, WAIT), &r);
	if (err)
		return err;
	err = hb_rpcs__keep(l->s, thread, &r, true);
	for (u32 i = 0; i < r.n; i++)
		exposed += hb_scene__likely(l->s, r.v[i].thread, r.v[i].begin, r.v[i].end);
	hb_look__subject(l);
	if (!err && r.n &&
	    hb_look__at_least(l, EXPOSED_SHARE, hb_share(exposed, hb_scene__step_time(l->s, p->pid))))
		err = tell(l, thread, &r);
	hb_rpcs__free(&r);
	return err;
}

static int detect(struct hb_look *l)
{
	return hb_look__threads(l, look_at);
}

HB_PATTERN(p14_kv_stall) = {
    .id = "P14",
    .layer = "KV management",
    .title = "KV cache service or connector stalls the step",
    .rank = HB_RANK_IPC,
    .needs = HB_NEED_SLEEP | HB_NEED_STACK | HB_NEED_ACCEL,
    .params = params,
    .rule =
	"the dispatch thread, or one that drives it, waits for another process below a Python function that "
	"allocates, looks up or loads KV blocks, and the device idles",
    .fix = "start the prefetch of waiting requests before scheduling, allocate asynchronously with a "
	   "reservation, receive in "
	   "the background",
    .ref = "vllm-project/vllm#41784 (350 ms idle with 5-6 requests blocked, 32.8 s in all); #42044, #44731, "
	   "#57987",
    .traps = "a pool that is really full is P39",
    .settle = "the connector's queue counters; engine fields of blocked requests",
    .record = "calls=@stack; calls=@waker; " HB_RECORD_SCHEDULER,
    .detect = detect,
};
