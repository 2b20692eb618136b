/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* One rank comes late to the collectives of each step: the others' devices wait for it inside of them. */
#include <errno.h>

#include "analysis/patterns/pattern.h"
#include "base/text.h"

enum { STEPS, SKEW, LAST };

static const struct hb_param params[] = {
    [STEPS] = {"steps", HB_UNIT_COUNT, 20, "steps that two ranks make together"},
    [SKEW] = {"skew_share", HB_UNIT_SHARE, 100000,
	      "time from the first to the last rank's submission, as a part of the steps"},
    [LAST] = {"last_share", HB_UNIT_SHARE, 500000,
	      "steps in which the same rank is the last: else it is jitter"},
    {0},
};

struct pair { /* two ranks */
	const struct hb_series *a, *b;
	u64 steps, a_last, skew[2], sum; /* skew[0]: while a was last */
};

static bool has_collectives(const struct hb_series *p)
{
	for (u32 i = 0; i < p->n; i++)
		if (p->step[i].collectives)
			return true;
	return false;
}

/* The other rank's step that ends nearest to this one: a collective ends for both at once. */
static const struct hb_step *partner(const struct hb_series *p, const struct hb_step *st)
{
	u32 lo = 0, hi = p->n;

	while (lo < hi) {
		u32 mid = lo + (hi - lo) / 2;

		if (p->step[mid].end < st->end)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo == p->n || (lo && st->end - p->step[lo - 1].end < p->step[lo].end - st->end))
		lo--;
	return &p->step[lo];
}

/* Of one step: begin and end of the time in which one rank had submitted its work and the other had not.
 * Returns the late one: 0 a, 1 b, -1 the steps do not belong together. */
static int lateness(const struct pair *x, const struct hb_step *a, u64 *from, u64 *to)
{
	const struct hb_step *b = partner(x->b, a);
	u64 apart = a->end > b->end ? a->end - b->end : b->end - a->end;

	if (!a->last_op || !b->last_op || apart > (a->end - a->begin) / 2)
		return -1;
	*from = a->last_op < b->last_op ? a->last_op : b->last_op;
	*to = a->last_op < b->last_op ? b->last_op : a->last_op;
	return a->last_op < b->last_op;
}

static void sum_up(struct pair *x)
{
	for (u32 i = 0; i < x->a->n; i++) {
		u64 from, to;
		int late = lateness(x, &x->a->step[i], &from, &to);

		if (late < 0)
			continue;
		x->steps++;
		x->sum += x->a->step[i].end - x->a->step[i].begin;
		x->a_last += !late;
		x->skew[late] += to - from;
	}
}

static int tell(struct hb_look *l, const struct pair *x, int late)
{
	const struct hb_series *p = late ? x->b : x->a, *other = late ? x->a : x->b;
	struct hb_draft *d;
	char who[64], whom[64], skew[32];
	int err = 0;

	d = hb_look__find(
	    l, "%s is later than %s in %llu %% of the steps, by %s each time",
	    hb_scene__thread_text(l->s, p->dispatch, who, sizeof(who)),
	    hb_scene__thread_text(l->s, other->dispatch, whom, sizeof(whom)),
	    (unsigned long long)(hb_share(late ? x->steps - x->a_last : x->a_last, x->steps) / 10000),
	    hb_text__ns(skew, sizeof(skew), x->skew[late] / x->steps));
	if (!d)
		return -ENOMEM;
	hb_draft__pid(d, p->pid);
	hb_draft__confidence(d, HB_CONFIDENCE_MEDIUM,
			     "from the ranks' submissions: when their devices met is not recorded");
	for (u32 i = 0; i < x->a->n && !err; i++) {
		struct hb_case c = {.thread = p->dispatch};

		if (lateness(x, &x->a->step[i], &c.begin, &c.end) == late && c.end > c.begin)
			err = hb_draft__add_idle(d, &c, NULL, NULL);
	}
	return err;
}

static int look_at(struct hb_look *l, const struct hb_series *a, const struct hb_series *b)
{
	struct pair x = {.a = a, .b = b};
	u64 last;
	int late;

	sum_up(&x);
	late = x.skew[1] > x.skew[0];
	last = late ? x.steps - x.a_last : x.a_last;
	hb_look__subject(l);
	if (!hb_look__at_least(l, STEPS, x.steps) ||
	    !hb_look__at_least(l, SKEW, hb_share(x.skew[late], x.sum)) ||
	    !hb_look__at_least(l, LAST, hb_share(last, x.steps)))
		return 0;
	return tell(l, &x, late);
}

static int detect(struct hb_look *l)
{
	u32 n = hb_steps__series(l->s->steps), ranks = 0;
	int err = 0;

	for (u32 i = 0; i < n && !err; i++) {
		const struct hb_series *a = hb_steps__at(l->s->steps, i);

		if (!a->n || a->dispatch == HB_NONE || !has_collectives(a))
			continue;
		ranks++;
		for (u32 k = i + 1; k < n && !err; k++) {
			const struct hb_series *b = hb_steps__at(l->s->steps, k);

			if (b->n && b->dispatch != HB_NONE && has_collectives(b))
				err = look_at(l, a, b);
		}
	}
	if (ranks < 2)
		hb_look__unchecked(l, HB_NEED_RANKS,
				   "needs collective calls and steps of two ranks at least");
	return err;
}

HB_PATTERN(p33_straggler) = {
    .id = "P33",
    .layer = "comm",
    .title = "collective skew: one rank is late",
    .rank = HB_RANK_SYMPTOM,
    .needs = HB_NEED_ACCEL | HB_NEED_STEP,
    .params = params,
    .rule = "of two ranks that make their steps together one has submitted its last work later than the "
	    "other in most steps, by "
	    "a good part of the step. What makes it late is found on that rank (P21, P26, P29, P30, P01)",
    .fix = "the cause on the late rank",
    .ref = "vllm-project/vllm#52777 (median skew 150 to 165 us, 72 to 77 ms a step), #5792; "
	   "deepspeedai/DeepSpeed#3579",
    .traps = "clocks of different hosts; time inside of the collective's kernel is waiting, not bandwidth",
    .settle = "device records of every rank; a barrier",
    .detect = detect,
};
