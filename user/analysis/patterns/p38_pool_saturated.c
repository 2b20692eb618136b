/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A limit keeps requests waiting while memory, and time of the device, are left. */
#include <errno.h>

#include "analysis/patterns/fields.h"

enum { SHARE, FREE };

static const struct hb_param params[] = {
    [SHARE] = {"share", HB_UNIT_SHARE, 150000,
	       "time with requests waiting and as many running as may, of the window"},
    [FREE] = {"kv_free", HB_UNIT_SHARE, 200000, "KV blocks that are free meanwhile, where that is known"},
    {0},
};

#define BIT(f) (1U << (f))

/* Where the limit was not asked for, it is the most that ever ran. */
static u64 limit_of(const struct hb_states *v)
{
	u64 most = 0;

	for (u32 i = 0; i < v->n; i++)
		if ((v->v[i].known & BIT(HB_STATE_RUNNING)) && v->v[i].value[HB_STATE_RUNNING] > most)
			most = v->v[i].value[HB_STATE_RUNNING];
	return most;
}

static bool full(const struct hb_look *l, const struct hb_state *x, u64 most)
{
	const u32 blocks = BIT(HB_STATE_FREE) | BIT(HB_STATE_BLOCKS);
	const u32 both = BIT(HB_STATE_WAITING) | BIT(HB_STATE_RUNNING);
	u64 limit = x->known & BIT(HB_STATE_LIMIT) ? x->value[HB_STATE_LIMIT] : most;

	if ((x->known & both) != both || !x->value[HB_STATE_WAITING] || x->value[HB_STATE_RUNNING] < limit)
		return false;
	return (x->known & blocks) == blocks &&
	       hb_share(x->value[HB_STATE_FREE], x->value[HB_STATE_BLOCKS]) >= hb_look__param(l, FREE);
}

static int each(const struct hb_look *l, const struct hb_states *v, u64 *sum, struct hb_draft *d)
{
	u64 most = limit_of(v);
	int err = 0;

	for (u32 i = 0; i + 1 < v->n && !err; i++) {
		struct hb_case c = {.begin = v->v[i].at, .end = v->v[i + 1].at, .thread = HB_NONE};

		if (!full(l, &v->v[i], most))
			continue;
		*sum += c.end - c.begin;
		if (d)
			err = hb_draft__add_delay(d, &c);
	}
	return err;
}

static int detect(struct hb_look *l)
{
	const u32 all =
	    BIT(HB_STATE_WAITING) | BIT(HB_STATE_RUNNING) | BIT(HB_STATE_FREE) | BIT(HB_STATE_BLOCKS);
	struct hb_states v;
	struct hb_draft *d;
	u64 sum = 0;
	int err = hb_states__read(l->s, HB_STATE_SCHEDULER, &v);

	if (err)
		return err;
	each(l, &v, &sum, NULL);
	hb_look__subject(l);
	if ((v.known & all) != all) {
		hb_look__unchecked(l, HB_NEED_FIELD,
				   "needs fields of waiting and running requests, free and all KV blocks "
				   "(trace --field)");
	} else if (hb_look__at_least(l, SHARE, hb_share(sum, l->s->wall))) {
		d = hb_look__find(l,
				  "requests wait for %llu %% of the window while as many run as may (%llu) "
				  "and KV blocks are "
				  "free",
				  (unsigned long long)(hb_share(sum, l->s->wall) / 10000),
				  (unsigned long long)limit_of(&v));
		if (d)
			hb_draft__pid(d, v.pid);
		err = d ? each(l, &v, &sum, d) : -ENOMEM;
	}
	hb_states__free(&v);
	return err;
}

HB_PATTERN(p38_pool_saturated) = {
    .id = "P38",
    .layer = "policy",
    .title = "running limit reached with KV memory to spare",
    .rank = HB_RANK_SYMPTOM,
    .needs = HB_NEED_FIELD,
    .params = params,
    .rule = "by engine fields requests wait while as many run as may, and a fifth of the KV blocks is free",
    .fix = "raise the limit of running requests or of batched tokens; vLLM: --max-num-seqs, "
	   "--max-num-batched-tokens; SGLang: --max-running-requests",
    .ref = "the catalogue's own rule; no public incident is known",
    .traps = "blocks that are all in use are P39; a KV service that holds them is P14",
    .settle = "the engine's configuration",
    .record = HB_RECORD_SCHEDULER,
    .detect = detect,
};
