/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Requests are thrown out of the KV cache and computed anew. */
#include <errno.h>

#include "analysis/patterns/fields.h"

enum { RATE, USED };

static const struct hb_param params[] = {
    [RATE] = {"rate", HB_UNIT_RATE, 1, "preemptions"},
    [USED] = {"kv_used", HB_UNIT_SHARE, 950000, "KV blocks in use at a preemption, where that is known"},
    {0},
};

#define BIT(f) (1U << (f))

static bool rises(const struct hb_states *v, u32 i)
{
	return i && (v->v[i - 1].known & BIT(HB_STATE_PREEMPTED)) &&
	       v->v[i].value[HB_STATE_PREEMPTED] > v->v[i - 1].value[HB_STATE_PREEMPTED];
}

/* Least share of blocks in use over all preemptions; all of them when that is not known. */
static u64 used(const struct hb_states *v)
{
	const u32 both = BIT(HB_STATE_FREE) | BIT(HB_STATE_BLOCKS);
	u64 most = 0;
	bool any = false;

	for (u32 i = 1; i < v->n; i++) {
		const struct hb_state *x = &v->v[i];
		u64 share;

		if (!rises(v, i) || (x->known & both) != both || !x->value[HB_STATE_BLOCKS])
			continue;
		share = 1000000 - hb_share(x->value[HB_STATE_FREE], x->value[HB_STATE_BLOCKS]);
		any = true;
		most = share > most ? share : most;
	}
	return any ? most : 1000000;
}

static int tell(struct hb_look *l, const struct hb_states *v, u64 n)
{
	struct hb_draft *d =
	    hb_look__find(l, "%llu preemptions in the window, %llu a second: their tokens are computed anew",
			  (unsigned long long)n, (unsigned long long)hb_rate(n, l->s->wall));
	int err = d ? 0 : -ENOMEM;

	if (!d)
		return err;
	hb_draft__pid(d, v->pid);
	hb_draft__pass(d);
	hb_draft__confidence(d, HB_CONFIDENCE_MEDIUM,
			     "what the requests lost is not known without their records");
	for (u32 i = 1; i < v->n && !err; i++) {
		struct hb_case c = {.begin = v->v[i - 1].at,
				    .end = v->v[i].at,
				    .thread = HB_NONE,
				    .count = v->v[i].value[HB_STATE_PREEMPTED] -
					     v->v[i - 1].value[HB_STATE_PREEMPTED]};

		if (rises(v, i))
			err = hb_draft__add_delay(
			    d, &c); /* whoever was thrown out waits for this step at least */
	}
	return err;
}

static int detect(struct hb_look *l)
{
	struct hb_states v;
	u64 n = 0;
	int err = hb_states__read(l->s, HB_STATE_SCHEDULER, &v);

	if (err)
		return err;
	for (u32 i = 1; i < v.n; i++)
		n += rises(&v, i) ? v.v[i].value[HB_STATE_PREEMPTED] - v.v[i - 1].value[HB_STATE_PREEMPTED]
				  : 0;
	hb_look__subject(l);
	if (!(v.known & BIT(HB_STATE_PREEMPTED)))
		hb_look__unchecked(l, HB_NEED_FIELD,
				   "needs a field that counts preemptions (trace --field '.. "
				   "self.num_preemptions')");
	else if (hb_look__at_least(l, RATE, hb_rate(n, l->s->wall)) && hb_look__at_least(l, USED, used(&v)))
		err = tell(l, &v, n);
	hb_states__free(&v);
	return err;
}

HB_PATTERN(p39_preemption) = {
    .id = "P39",
    .layer = "policy",
    .title = "preemption and recomputation thrash",
    .rank = HB_RANK_OWN,
    .needs = HB_NEED_FIELD,
    .params = params,
    .rule = "an engine field that counts preemptions rises at least once a second while nearly all KV blocks "
	    "are in use",
    .fix = "more KV memory, fewer sequences at once, offloading; vLLM: --gpu-memory-utilization, "
	   "--max-num-seqs; SGLang: --mem-fraction-static, --max-running-requests",
    .ref = "vllm-project/vllm#42827, #12",
    .traps = "a prefix cache makes it cheap",
    .settle = "KV use over time; recomputed tokens by request",
    .record = HB_RECORD_SCHEDULER,
    .detect = detect,
};
