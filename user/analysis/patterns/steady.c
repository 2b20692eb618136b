/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analysis/patterns/steady.h"

static void count(struct hb_steady *sum, const struct hb_tl_call *c, u32 thread)
{
	u64 dur = c->at.end - c->at.begin;

	sum->n++;
	sum->total += dur;
	if (sum->longest && dur <= sum->max)
		return;
	sum->max = dur;
	sum->longest = c;
	sum->thread = thread;
}

static int add(struct hb_draft *d, const struct hb_tl_call *c, u32 thread)
{
	struct hb_case k = {.begin = c->at.begin, .end = c->at.end, .thread = thread, .stack = c->at.stack};

	return hb_draft__add(d, &k);
}

int hb_steady__each(const struct hb_scene *s, u32 pid, const struct hb_steady_rule *r, struct hb_steady *sum,
		    struct hb_draft *d)
{
	u64 from = hb_scene__steady(s, pid, r->warm, r->steps);
	struct hb_named but = {0};
	int err = 0;

	for (u32 t = hb_timeline__of_pid(s->tl, pid, HB_NONE); t != HB_NONE && !err;
	     t = hb_timeline__of_pid(s->tl, pid, t)) {
		struct hb_byop_calls of = hb_byop__calls(s->byop, t, r->op, r->or_op);
		const struct hb_tl_call *c = of.call;

		for (u32 i; !err && (i = hb_byop__next(&of)) != HB_NONE;) {
			if (c[i].at.begin < from || c[i].at.end - c[i].at.begin < r->least ||
			    (r->but && hb_scene__called(s, &c[i], r->but, &but)))
				continue;
			count(sum, &c[i], t);
			if (d)
				err = add(d, &c[i], t);
		}
	}
	hb_named__free(&but);
	return err;
}
