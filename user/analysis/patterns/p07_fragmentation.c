/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* An allocation fails, the allocator frees what it had kept, and tries again. */
#include <errno.h>

#include "analysis/patterns/pattern.h"
#include "base/text.h"

enum { WITHIN, FREES, RETRIES };

static const struct hb_param params[] = {
    [WITHIN] = {"within", HB_UNIT_NS, 1000000000,
		"from the allocation that failed to the one that did not, at most"},
    [FREES] = {"frees", HB_UNIT_COUNT, 1, "calls that free memory between the two"},
    [RETRIES] = {"retries", HB_UNIT_COUNT, 1, "times that this happens in the window"},
    {0},
};

static bool result(const struct hb_tl_call *c, bool failed)
{
	return c->op == HB_OP_ALLOC && c->bytes && (c->flags & HB_AFLAG_RET) && c->failed == failed;
}

/* The allocation that made good for the one at i, with frees between; HB_NONE. */
static u32 retry_of(const struct hb_look *l, const struct hb_tl_call *c, u32 n, u32 i)
{
	u64 until = c[i].at.end + hb_look__param(l, WITHIN), frees = 0;

	for (u32 k = i + 1; k < n && c[k].at.begin <= until; k++) {
		if (result(&c[k], false) && frees >= hb_look__param(l, FREES))
			return k;
		frees += c[k].op == HB_OP_ALLOC && !c[k].bytes;
	}
	return HB_NONE;
}

static int each(struct hb_look *l, u32 t, u64 *retries, u64 *bytes, struct hb_draft *d)
{
	u32 n;
	const struct hb_tl_call *c = hb_timeline__calls(l->s->tl, t, &n);
	struct hb_byop_calls of = hb_byop__calls(l->s->byop, t, HB_OP_ALLOC, HB_OP_ALLOC);
	u32 from = 0;
	int err = 0;

	for (u32 i; !err && (i = hb_byop__next(&of)) != HB_NONE;) {
		u32 k = i >= from && result(&c[i], true) ? retry_of(l, c, n, i) : HB_NONE;
		struct hb_case x = {.thread = t, .begin = c[i].at.begin, .stack = c[i].at.stack};

		if (k == HB_NONE)
			continue;
		x.end = c[k].at.end;
		(*retries)++;
		*bytes = c[i].bytes > *bytes ? c[i].bytes : *bytes;
		if (d)
			err = hb_draft__add(d, &x);
		from = k + 1;
	}
	return err;
}

/* Allocations of which none says how it ended, as in a profiler's trace. */
static bool blind(const struct hb_look *l, u32 t)
{
	struct hb_byop_calls of = hb_byop__calls(l->s->byop, t, HB_OP_ALLOC, HB_OP_ALLOC);
	u32 n = 0;

	for (u32 i; (i = hb_byop__next(&of)) != HB_NONE; n++)
		if (of.call[i].flags & HB_AFLAG_RET)
			return false;
	return n > 0;
}

static int look_at(struct hb_look *l, const struct hb_series *p)
{
	u64 retries = 0, bytes = 0;
	struct hb_draft *d;
	char who[64], size[32];

	each(l, p->dispatch, &retries, &bytes, NULL);
	hb_look__subject(l);
	if (blind(l, p->dispatch))
		hb_look__unchecked(l, 0,
				   "needs the results of allocations: a profiler's trace does not have them");
	if (!retries || !hb_look__at_least(l, RETRIES, retries))
		return 0;
	d = hb_look__find(l, "%s is refused memory %llu times (up to %s), frees what it kept and tries again",
			  hb_scene__thread_text(l->s, p->dispatch, who, sizeof(who)),
			  (unsigned long long)retries, hb_text__bytes(size, sizeof(size), bytes));
	if (!d)
		return -ENOMEM;
	hb_draft__pid(d, p->pid);
	return each(l, p->dispatch, &retries, &bytes, d);
}

static int detect(struct hb_look *l)
{
	return hb_look__series(l, look_at);
}

HB_PATTERN(p07_fragmentation) = {
    .id = "P07",
    .layer = "allocator",
    .title = "allocator fragmentation: allocation refused, cache emptied, retried",
    .rank = HB_RANK_API,
    .explains = "P06",
    .needs = HB_NEED_ACCEL,
    .params = params,
    .rule = "an allocation fails, memory is freed, and the same thread then succeeds. (Reserved against "
	    "allocated memory is "
	    "not recorded)",
    .fix = "as P06, and shapes in buckets",
    .ref = "pytorch/pytorch#189504",
    .traps = "private pools of captured graphs",
    .settle = "a snapshot of the allocator's memory",
    .detect = detect,
};
