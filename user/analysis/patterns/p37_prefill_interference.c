/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A step with a long prefill holds all decoding requests up. */
#include <errno.h>
#include <stdlib.h>

#include "analysis/model/dist.h"
#include "analysis/patterns/batches.h"
#include "base/text.h"

enum { PLAIN, TOKENS, SLOWER, SHARE };

static const struct hb_param params[] = {
    [PLAIN] = {"plain", HB_UNIT_COUNT, 20, "steps that decode without a long prefill, to know their median"},
    [TOKENS] = {"tokens", HB_UNIT_COUNT, 1000,
		"prefill tokens in a step, at least, that make it one of these"},
    [SLOWER] = {"slower", HB_UNIT_RATIO, 3000000, "such a step over that median, to count"},
    [SHARE] = {"share", HB_UNIT_SHARE, 50000, "such steps, of all that decode"},
    {0},
};

struct sums {
	u64 decoding, held;	      /* steps */
	u64 plain;		      /* median of those without a long prefill */
	const struct hb_batch *worst; /* longest of those held up */
};

static bool is_long(const struct hb_look *l, const struct hb_batch *x)
{
	return x->prefill >= hb_look__param(l, TOKENS);
}

static bool held_up(const struct hb_look *l, const struct sums *s, const struct hb_batch *x)
{
	return x->decode && is_long(l, x) &&
	       hb_share(x->end - x->begin, s->plain) >= hb_look__param(l, SLOWER);
}

static int sum_up(const struct hb_look *l, const struct hb_batches *b, u64 *plain, struct sums *s)
{
	u64 *room = malloc((b->n + 1) * sizeof(*room));

	if (!room)
		return -ENOMEM;
	for (u32 i = 0; i < b->n; i++) {
		s->decoding += b->v[i].decode > 0;
		if (b->v[i].decode && !is_long(l, &b->v[i]))
			room[(*plain)++] = b->v[i].end - b->v[i].begin;
	}
	s->plain = hb_dist__median(room, *plain);
	free(room);
	for (u32 i = 0; i < b->n; i++) {
		if (!held_up(l, s, &b->v[i]))
			continue;
		s->held++;
		if (!s->worst || b->v[i].end - b->v[i].begin > s->worst->end - s->worst->begin)
			s->worst = &b->v[i];
	}
	return 0;
}

/* An occurrence is what of the step goes beyond the median: that much later come the tokens. */
static int tell(struct hb_look *l, const struct hb_batches *b, const struct sums *s)
{
	char plain[32], worst[32];
	struct hb_draft *d = hb_look__find(
	    l,
	    "%llu of %llu steps with decoding requests hold a long prefill and take %llu times as long as "
	    "the "
	    "others and more (%s); the worst: %s with %llu prefill tokens beside %llu decoding requests",
	    (unsigned long long)s->held, (unsigned long long)s->decoding,
	    (unsigned long long)(hb_look__param(l, SLOWER) / 1000000),
	    hb_text__ns(plain, sizeof(plain), s->plain),
	    hb_text__ns(worst, sizeof(worst), s->worst->end - s->worst->begin),
	    (unsigned long long)s->worst->prefill, (unsigned long long)s->worst->decode);
	int err = 0;

	if (!d)
		return -ENOMEM;
	hb_draft__pid(d, b->pid);
	for (u32 i = 0; i < b->n && !err; i++) {
		struct hb_case c = {.begin = b->v[i].begin + s->plain, .end = b->v[i].end, .thread = HB_NONE};

		if (held_up(l, s, &b->v[i]))
			err = hb_draft__add_delay(d, &c);
	}
	return err;
}

static int judge(struct hb_look *l, const struct hb_batches *b)
{
	struct sums s = {0};
	u64 plain = 0;

	hb_look__subject(l);
	if (!b->n) {
		hb_look__unchecked(l, 0,
				   "needs what each step holds: an engine's annotations in an imported trace "
				   "(execute_.._context_..), or trace --field of num_prefill_tokens and "
				   "num_decode_tokens, in a function that is called once a step");
		return 0;
	}
	if (sum_up(l, b, &plain, &s))
		return -ENOMEM;
	if (plain < hb_look__param(l, PLAIN)) {
		hb_look__unchecked(
		    l, 0,
		    "needs %llu steps that decode without a long prefill, to know how long one "
		    "takes (here %llu): record for longer",
		    (unsigned long long)hb_look__param(l, PLAIN), (unsigned long long)plain);
		return 0;
	}
	return hb_look__at_least(l, SHARE, hb_share(s.held, s.decoding)) && s.held ? tell(l, b, &s) : 0;
}

static int detect(struct hb_look *l)
{
	struct hb_batches b;
	int err = hb_batches__read(l->s, &b);

	err = err ? err : judge(l, &b);
	hb_batches__free(&b);
	return err;
}

HB_PATTERN(p37_prefill_interference) = {
    .id = "P37",
    .layer = "policy",
    .title = "prefill delays decode",
    .rank = HB_RANK_OWN,
    .params = params,
    .rule =
	"steps that hold prefills of 1,000 tokens and more beside decoding requests take three times as "
	"long as the median step that only decodes, in 5 % of the steps that decode; what a step holds is "
	"told by an engine's annotations (imported traces), or by fields num_prefill_tokens and "
	"num_decode_tokens (num_decodes) read in it",
    .fix = "a chunk budget, interleaving, prefill and decode apart; vLLM: --max-num-batched-tokens; SGLang: "
	   "--chunked-prefill-size",
    .ref = "ddalcu/mlx-serve#205 (freezes of 0.8 and 7.6 s); vllm-project/vllm#3130",
    .traps = "a policy that wants it so: time to the first token before time between tokens",
    .settle = "vary the budget",
    .detect = detect,
};
