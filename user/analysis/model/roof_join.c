/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which operator, call and step each launch was made in. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/model/roof_private.h"

#define LOOK_MOST     256     /* spans around a launch that are looked at */
#define ENTRY_ONLY_NS 1000000 /* a call without an end owns launches for so long, or until the next one */

struct sweep { /* spans and launches, both by group and begin */
	struct hb_roofline *r;
	const char *base;
	size_t stride;
	u32 n;
	const struct hb_launch *launch;
	u32 n_launches;
	bool by_pid;
	/* The spans around a launch, innermost last: some of them may have ended. */
	void (*at)(struct hb_roofline *r, u32 launch, u64 begin, const u32 *open, u32 n);
};

static const struct roof_span *span_of(const struct sweep *s, u32 i)
{
	return (const void *)(s->base + (size_t)i * s->stride);
}

static u32 group_of(const struct sweep *s, u32 launch)
{
	u16 task = s->launch[launch].task;

	return s->by_pid ? hb_window__task(s->r->w, task)->pid : task;
}

/* By group, then begin; of equal begins the longer first, as it contains the other. Each sort keeps what the
 * one before it did. */
static int order_spans(const struct sweep *s, struct hb_order *v)
{
	int rc;

	for (u32 i = 0; i < s->n; i++)
		v[i] = (struct hb_order){.key = ~span_of(s, i)->end, .item = i};
	rc = hb_order__sort(v, s->n);
	for (u32 i = 0; i < s->n; i++)
		v[i].key = span_of(s, v[i].item)->begin;
	rc = rc ? rc : hb_order__sort(v, s->n);
	for (u32 i = 0; i < s->n; i++)
		v[i].key = span_of(s, v[i].item)->group;
	return rc ? rc : hb_order__sort(v, s->n);
}

static int order_launches(const struct sweep *s, struct hb_order *v)
{
	int rc;

	for (u32 i = 0; i < s->n_launches; i++)
		v[i] = (struct hb_order){.key = s->launch[i].begin, .item = i};
	rc = hb_order__sort(v, s->n_launches);
	for (u32 i = 0; i < s->n_launches; i++)
		v[i].key = group_of(s, v[i].item);
	return rc ? rc : hb_order__sort(v, s->n_launches);
}

static void walk(const struct sweep *s, const struct hb_order *spans, const struct hb_order *launches,
		 u32 *open)
{
	u32 depth = 0, next = 0, group = UINT32_MAX;

	for (u32 i = 0; i < s->n_launches; i++) {
		u32 l = launches[i].item;
		u64 t = s->launch[l].begin;

		if (group_of(s, l) != group) {
			group = group_of(s, l);
			depth = 0;
			while (next < s->n && span_of(s, spans[next].item)->group < group)
				next++;
		}
		for (; next < s->n && span_of(s, spans[next].item)->group == group &&
		       span_of(s, spans[next].item)->begin <= t;
		     next++) {
			while (depth &&
			       span_of(s, open[depth - 1])->end < span_of(s, spans[next].item)->begin)
				depth--;
			open[depth++] = spans[next].item;
		}
		while (depth && span_of(s, open[depth - 1])->end < t)
			depth--;
		if (depth)
			s->at(s->r, l, t, open, depth);
	}
}

static int sweep(const struct sweep *s)
{
	struct hb_order *spans = malloc(((size_t)s->n + 1) * sizeof(*spans)),
			*launches = malloc(((size_t)s->n_launches + 1) * sizeof(*launches));
	u32 *open = malloc(((size_t)s->n + 1) * sizeof(*open));
	int rc = spans && launches && open ? order_spans(s, spans) : -ENOMEM;

	rc = rc ? rc : order_launches(s, launches);
	if (!rc)
		walk(s, spans, launches, open);
	free(spans);
	free(launches);
	free(open);
	return rc;
}

/* ---- what a launch is told ---- */

static void at_op(struct hb_roofline *r, u32 launch, u64 t, const u32 *open, u32 n)
{
	for (u32 looked = 0; n-- && looked < LOOK_MOST; looked++) {
		const struct roof_op *o = &r->ops[open[n]];

		if (o->at.end < t)
			continue;
		if (!r->in_op[launch])
			r->in_op[launch] = o->name;
		if (o->rule) {
			r->op_of[launch] = open[n] + 1;
			return;
		}
	}
}

static void at_call(struct hb_roofline *r, u32 launch, u64 t, const u32 *open, u32 n)
{
	if (r->calls[open[n - 1]].at.end >= t)
		r->call_of[launch] = open[n - 1] + 1;
}

static bool tells_keys(const struct roof_step *s)
{
	return s->s.prefill.kv + s->s.decode.kv > 0;
}

/* The innermost one, unless one around it tells more. */
static void at_step(struct hb_roofline *r, u32 launch, u64 t, const u32 *open, u32 n)
{
	for (u32 looked = 0; n-- && looked < LOOK_MOST; looked++) {
		const struct roof_step *s = &r->steps[open[n]];
		u32 was = r->step_of[launch];

		if (s->at.end >= t && (!was || (tells_keys(s) && !tells_keys(&r->steps[was - 1]))))
			r->step_of[launch] = open[n] + 1;
	}
}

/* ---- all of it ---- */

static int cmp_calls(const void *a, const void *b)
{
	const struct roof_call *x = a, *y = b;

	if (x->at.group != y->at.group)
		return x->at.group < y->at.group ? -1 : 1;
	return x->at.begin < y->at.begin ? -1 : x->at.begin > y->at.begin;
}

/* Calls of which only the entry was seen last until the next one of their thread. */
static void end_calls(struct hb_roofline *r)
{
	if (r->n_calls)
		qsort(r->calls, r->n_calls, sizeof(*r->calls), cmp_calls);
	for (u32 i = 0; i < r->n_calls; i++) {
		struct roof_call *c = &r->calls[i], *next = i + 1 < r->n_calls ? c + 1 : NULL;

		if (c->at.end > c->at.begin)
			continue;
		c->at.end = c->at.begin + ENTRY_ONLY_NS;
		if (next && next->at.group == c->at.group && next->at.begin < c->at.end)
			c->at.end = next->at.begin > c->at.begin ? next->at.begin - 1 : c->at.begin;
	}
}

/* What each launch is told, where there is what can tell it: NULL when there is nothing. */
static int make_room(u32 **of, u32 launches, u32 spans)
{
	*of = spans ? calloc((size_t)launches + 1, sizeof(**of)) : NULL;
	return spans && !*of ? -ENOMEM : 0;
}

int hb_roof__join(struct hb_roofline *r)
{
	struct sweep s = {.r = r};
	int rc;

	s.launch = hb_devices__launches(r->d, &s.n_launches);
	if (make_room(&r->op_of, s.n_launches, r->n_ops) || make_room(&r->in_op, s.n_launches, r->n_ops) ||
	    make_room(&r->call_of, s.n_launches, r->n_calls) ||
	    make_room(&r->step_of, s.n_launches, r->n_steps))
		return -ENOMEM;
	end_calls(r);
	s.base = (const void *)r->ops, s.stride = sizeof(*r->ops), s.n = r->n_ops, s.at = at_op;
	rc = s.n ? sweep(&s) : 0;
	s.base = (const void *)r->calls, s.stride = sizeof(*r->calls), s.n = r->n_calls, s.at = at_call;
	rc = rc || !s.n ? rc : sweep(&s);
	s.base = (const void *)r->steps, s.stride = sizeof(*r->steps), s.n = r->n_steps, s.at = at_step;
	s.by_pid = true;
	return rc || !s.n ? rc : sweep(&s);
}
