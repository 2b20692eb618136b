/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analysis/patterns/steady.h"

/* Of fewer steps a half is not enough to tell what is steady. */
#define STEPS_LEAST 20

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

/* Calls in [from, to) go to the sum or the finding; either may be NULL. */
static int each(const struct hb_scene *s, u32 pid, const struct hb_steady_rule *r, u64 from, u64 to,
		struct hb_steady *sum, struct hb_draft *d)
{
	struct hb_named but = {0};
	int err = 0;

	for (u32 t = hb_timeline__of_pid(s->tl, pid, HB_NONE); t != HB_NONE && !err;
	     t = hb_timeline__of_pid(s->tl, pid, t)) {
		struct hb_byop_calls of = hb_byop__calls(s->byop, t, r->op, r->or_op);
		const struct hb_tl_call *c = of.call;

		for (u32 i; !err && (i = hb_byop__next(&of)) != HB_NONE;) {
			if (c[i].at.begin < from || c[i].at.begin >= to ||
			    c[i].at.end - c[i].at.begin < r->least ||
			    (r->but && hb_scene__called(s, &c[i], r->but, &but)))
				continue;
			if (sum)
				count(sum, &c[i], t);
			if (d)
				err = add(d, &c[i], t);
		}
	}
	hb_named__free(&but);
	return err;
}

/* When its warm-up is over; UINT64_MAX: that is not seen. */
static u64 over(const struct hb_scene *s, const struct hb_series *p, const struct hb_steady_rule *r,
		bool *guessed)
{
	u32 n, half = p->n / 2, at = r->steps < half ? (u32)r->steps : half;
	u64 from = p->n > r->steps ? p->step[r->steps].begin : UINT64_MAX, start = 0;
	const struct hb_proc *proc = hb_window__procs(s->w, &n);

	for (u32 i = 0; i < n; i++)
		start = proc[i].pid == p->pid && proc[i].start ? proc[i].start : start;
	*guessed = !start;
	if (start)
		return start + r->warm < from ? start + r->warm : from;
	return p->n >= STEPS_LEAST ? p->step[at].begin : from;
}

void hb_steady__look(const struct hb_scene *s, const struct hb_series *p, const struct hb_steady_rule *r,
		     struct hb_steady *out)
{
	struct hb_steady all = {0};
	u32 first = 0;

	*out = (struct hb_steady){0};
	out->from = over(s, p, r, &out->guessed);
	each(s, p->pid, r, out->from, UINT64_MAX, out, NULL);
	while (first < p->n && p->step[first].begin < out->from)
		first++;
	out->steps = p->n - first;
	for (u32 i = first; i < p->n; i++)
		out->step_time += p->step[i].end - p->step[i].begin;
	if (!out->step_time)
		out->step_time = hb_scene__step_time(s, p->pid);
	if (!out->guessed || out->from != UINT64_MAX)
		return;
	each(s, p->pid, r, 0, UINT64_MAX, &all, NULL);
	out->blind = all.n > 0;
}

void hb_steady__extend(const struct hb_scene *s, const struct hb_series *p, const struct hb_steady_rule *r,
		       struct hb_steady *x)
{
	struct hb_steady before = {0};

	if (!x->guessed)
		return;
	each(s, p->pid, r, 0, x->from, &before, NULL);
	/* A warm-up makes more of them, by far. */
	if (before.n * x->steps > 2 * x->n * (p->n - x->steps))
		return;
	each(s, p->pid, r, 0, x->from, x, NULL);
	x->from = 0;
	x->steps = p->n;
}

int hb_steady__add(const struct hb_scene *s, const struct hb_series *p, const struct hb_steady_rule *r,
		   const struct hb_steady *x, struct hb_draft *d)
{
	return each(s, p->pid, r, x->from, UINT64_MAX, NULL, d);
}
