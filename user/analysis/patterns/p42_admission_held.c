/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Requests wait although there is room to run them. */
#include <errno.h>

#include "analysis/patterns/fields.h"

enum { READINGS, FREE };

static const struct hb_param params[] = {
    [READINGS] = {"readings", HB_UNIT_COUNT, 10, "readings of the fields in a row"},
    [FREE] = {"kv_free", HB_UNIT_SHARE, 200000, "KV blocks that are free, where that is known"},
    {0},
};

#define BIT(f) (1U << (f))

/* The next request takes about as many blocks as one that runs. One that was preempted takes no fewer. */
static bool room_for_one(const struct hb_state *x)
{
	u64 running = x->value[HB_STATE_RUNNING], free = x->value[HB_STATE_FREE],
	    all = x->value[HB_STATE_BLOCKS];

	return !running || all <= free || free >= (all - free) / running;
}

static bool held(const struct hb_look *l, const struct hb_state *x)
{
	const u32 blocks = BIT(HB_STATE_FREE) | BIT(HB_STATE_BLOCKS);
	const u32 all = BIT(HB_STATE_WAITING) | BIT(HB_STATE_RUNNING) | BIT(HB_STATE_LIMIT);

	if ((x->known & all) != all || !x->value[HB_STATE_WAITING] ||
	    x->value[HB_STATE_RUNNING] >= x->value[HB_STATE_LIMIT])
		return false;
	return (x->known & blocks) != blocks ||
	       (room_for_one(x) &&
		hb_share(x->value[HB_STATE_FREE], x->value[HB_STATE_BLOCKS]) >= hb_look__param(l, FREE));
}

/* Stretches of readings: the longest, or cases. */
static int each(const struct hb_look *l, const struct hb_states *v, u64 *longest, struct hb_draft *d)
{
	int err = 0;

	for (u32 i = 0; i < v->n && !err;) {
		u32 j = i;

		while (j < v->n && held(l, &v->v[j]))
			j++;
		*longest = j - i > *longest ? j - i : *longest;
		if (d && j - i >= hb_look__param(l, READINGS)) {
			struct hb_case c = {.begin = v->v[i].at, .end = v->v[j - 1].at, .thread = HB_NONE};

			err = hb_draft__add_delay(d, &c);
		}
		i = j > i ? j : i + 1;
	}
	return err;
}

static int detect(struct hb_look *l)
{
	const u32 all = BIT(HB_STATE_WAITING) | BIT(HB_STATE_RUNNING) | BIT(HB_STATE_LIMIT);
	struct hb_states v;
	struct hb_draft *d;
	u64 longest = 0;
	int err = hb_states__read(l->s, HB_STATE_SCHEDULER, &v);

	if (err)
		return err;
	each(l, &v, &longest, NULL);
	hb_look__subject(l);
	if ((v.known & all) != all) {
		hb_look__unchecked(l, HB_NEED_FIELD,
				   "needs fields of waiting and running requests and of their limit (trace "
				   "--field)");
	} else if (hb_look__at_least(l, READINGS, longest)) {
		d = hb_look__find(
		    l, "requests wait although fewer run than may, for up to %llu readings in a row",
		    (unsigned long long)longest);
		if (d)
			hb_draft__pid(d, v.pid);
		err = d ? each(l, &v, &longest, d) : -ENOMEM;
	}
	hb_states__free(&v);
	return err;
}

HB_PATTERN(p42_admission_held) = {
    .id = "P42",
    .layer = "policy",
    .title = "admission held although there is room",
    .rank = HB_RANK_OWN,
    .needs = HB_NEED_FIELD,
    .params = params,
    .rule = "by engine fields requests wait while fewer run than may and KV blocks are free, also for one "
	    "like those that run, ten readings in a row, whatever the device does",
    .fix = "the scheduler's accounting",
    .ref = "sgl-project/sglang#35537 (a stale \"batch is full\" with nearly empty pools); "
	   "NVIDIA/TensorRT-LLM#18457 (+10 to "
	   "28 % after a fix of the accounting)",
    .traps = "a policy that waits for a fuller batch",
    .settle = "dump the scheduler's state in such a step",
    .record = HB_RECORD_SCHEDULER,
    .detect = detect,
};
