/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analysis/patterns/sync.h"

#include <errno.h>
#include <stdlib.h>

static bool to_host(const struct hb_tl_call *c, u64 max_bytes)
{
	return c->copy == HB_COPY_DTOH && hb_call__sized(c) && c->bytes <= max_bytes;
}

static bool blocked(const struct hb_tl_call *c, u64 wait)
{
	return hb_call__waited(c) && c->at.end - c->at.begin >= wait;
}

static const char *const of_device[] = {"*DeviceSynchronize*", "*CtxSynchronize*", NULL};

/* The next work of the step after call i; 0 none. */
static u64 next_in(const struct hb_tl_call *c, u32 i, u32 end)
{
	for (u64 after = c[i++].at.end; i < end; i++)
		if (hb_call__is_work(&c[i]) && c[i].at.begin >= after)
			return c[i].at.begin;
	return 0;
}

/* What frameworks call a read-back that nobody thinks of as one. */
static const struct hb_frame_rule implicit[] = {
    {"*", "item"},     {"*", "tolist"}, {"*", "nonzero"}, {"*", "cpu"},
    {"*", "__bool__"}, {"*", "numpy"},	{"*", "*copy_"},  {NULL, NULL},
};

/* Where the work after call i begins: waits until then are for a small copy at i, however they divide the
 * time among them. */
static u32 work_after(const struct hb_tl_call *c, u32 i, u32 end)
{
	for (i++; i < end && !hb_call__is_work(&c[i]);)
		i++;
	return i;
}

/* Which call blocks for the small copy at i: itself, or a wait before anything else is launched. */
static u32 wait_of(const struct hb_tl_call *c, u32 i, u32 end, u64 wait)
{
	if (blocked(&c[i], wait))
		return i;
	for (i++; i < end && !hb_call__is_work(&c[i]); i++)
		if (blocked(&c[i], wait))
			return i;
	return HB_NONE;
}

/* The next work in whatever step; 0 none. */
static u64 next_work(const struct hb_scene *s, const struct hb_series *p, const struct hb_tl_call *wait)
{
	u64 at = hb_scene__next_work_at(s, p->dispatch, wait->at.end);

	return at < s->end ? at : 0;
}

/* The same after a read-back that ends its step, when its own code says that it is an implicit one; 0 else.
 */
static u64 next_after(const struct hb_scene *s, const struct hb_series *p, const struct hb_tl_call *copy,
		      const struct hb_tl_call *wait)
{
	return hb_scene__frame(s, p->pid, copy->at.stack, implicit) ? next_work(s, p, wait) : 0;
}

struct search {
	const struct hb_scene *s;
	const struct hb_series *p;
	const struct hb_tl_call *c;
	const struct hb_sync_rule *r;
	struct hb_byop_calls of; /* calls that may be one, after number i */
	u32 i;
	u32 taken; /* waits before this call are those of a copy, in the same step */
	struct hb_named whole;
	struct hb_syncs *out;
};

/* Call i, of a step that ends before call `end`. */
static void one_call(struct search *x, u32 i, u32 end)
{
	const struct hb_tl_call *c = x->c;
	bool copy = c[i].op == HB_OP_COPY && to_host(&c[i], x->r->max_bytes), ends = false, whole;
	bool plain = x->r->want == HB_SYNC_PLAIN;
	u32 at = HB_NONE;
	u64 next, waited;

	if (!copy && c[i].op != HB_OP_SYNC)
		return;
	if (copy && plain)
		x->taken = work_after(c, i, end);
	else if (copy)
		at = wait_of(c, i, end, x->r->wait);
	else if (plain && i >= x->taken && blocked(&c[i], x->r->wait))
		at = i;
	if (at == HB_NONE)
		return;
	next = next_in(c, at, end);
	if (!next && !plain) {
		next = next_after(x->s, x->p, &c[i], &c[at]);
		ends = true;
	}
	if (!next && plain && x->p->source == HB_STEPS_SYNC) {
		next = next_work(x->s, x->p, &c[at]);
		ends = true;
	}
	if (!next)
		return;
	whole = hb_scene__called(x->s, &c[at], of_device, &x->whole);
	waited = c[at].at.end - c[at].at.begin;
	x->out->v[x->out->n++] =
	    (struct hb_sync){.call = &c[at],
			     .from = c[at].at.end,
			     .site = (u64)hb_timeline__callee(x->s->tl, &c[at])->probe << 32 | c[at].at.stack,
			     .until = next - c[at].at.end < waited ? next : c[at].at.end + waited,
			     .whole = whole,
			     .ends = ends};
	x->out->whole += whole;
	x->out->ends += ends;
}

/* Steps lie one after the other. */
static void one_step(struct search *x, const struct hb_step *st)
{
	u32 end = st->call + st->n_calls, had = x->out->n;

	x->taken = 0;
	for (; x->i < end; x->i = hb_byop__next(&x->of))
		if (x->i >= st->call)
			one_call(x, x->i, end);
	x->out->steps += x->out->n > had;
}

int hb_syncs__find(const struct hb_scene *s, const struct hb_series *p, const struct hb_sync_rule *r,
		   struct hb_syncs *out)
{
	enum hb_op other = r->want == HB_SYNC_PLAIN ? HB_OP_SYNC : HB_OP_COPY;
	struct search x = {.s = s,
			   .p = p,
			   .r = r,
			   .out = out,
			   .of = hb_byop__calls(s->byop, p->dispatch, HB_OP_COPY, other)};
	u32 n;

	x.c = hb_timeline__calls(s->tl, p->dispatch, &n);
	*out = (struct hb_syncs){.v = malloc(((size_t)x.of.n_a + x.of.n_b + 1) * sizeof(*out->v))};
	if (!out->v)
		return -ENOMEM;
	x.i = hb_byop__next(&x.of);
	for (u32 i = 0; i < p->n; i++)
		if (p->step[i].call + p->step[i].n_calls <= n)
			one_step(&x, &p->step[i]);
	hb_named__free(&x.whole);
	return 0;
}

enum { SITES = 64 }; /* they come in turns: all are among so many waits */

/* Which of them costs least; of as cheap ones the first. 0 or -ENOMEM. */
static int cheapest(const struct hb_scene *s, const struct hb_series *p, const struct hb_syncs *v, u64 *site)
{
	struct {
		u64 site, sum;
	} of[SITES];
	struct hb_map *number = hb_map__new(); /* site -> index of `of` + 1 */
	u32 n = 0, best = 0;
	u64 *slot, at;

	for (u32 i = 0; number && i < v->n && i < SITES; i++) {
		slot = hb_map__slot(number, v->v[i].site, NULL);
		if (!slot) {
			hb_map__free(number);
			return -ENOMEM;
		}
		if (*slot)
			continue;
		of[n].site = v->v[i].site;
		of[n].sum = 0;
		*slot = ++n;
	}
	for (u32 i = 0; number && i < v->n; i++)
		if (hb_map__get(number, v->v[i].site, &at))
			of[at - 1].sum += hb_scene__likely(s, p->dispatch, v->v[i].from, v->v[i].until);
	for (u32 i = 1; i < n; i++)
		best = of[i].sum < of[best].sum ? i : best;
	*site = n ? of[best].site : 0;
	hb_map__free(number);
	return number ? 0 : -ENOMEM;
}

int hb_syncs__leave_one(const struct hb_scene *s, const struct hb_series *p, struct hb_syncs *v)
{
	u32 to = 0;
	u64 site;

	if (p->source != HB_STEPS_SYNC || !v->n)
		return 0;
	if (cheapest(s, p, v, &site))
		return -ENOMEM;
	v->whole = 0;
	for (u32 i = 0; i < v->n; i++) {
		if (v->v[i].site == site)
			continue;
		v->v[to++] = v->v[i];
		v->whole += v->v[i].whole;
	}
	v->n = to;
	return 0;
}

void hb_syncs__free(struct hb_syncs *v)
{
	free(v->v);
	*v = (struct hb_syncs){0};
}

int hb_syncs__add(struct hb_draft *d, const struct hb_series *p, const struct hb_syncs *v)
{
	int err = 0;

	hb_draft__pid(d, p->pid);
	for (u32 i = 0; i < v->n && !err; i++) {
		struct hb_case c = {.begin = v->v[i].from,
				    .end = v->v[i].until,
				    .thread = p->dispatch,
				    .stack = v->v[i].call->at.stack};

		err = hb_draft__add(d, &c);
	}
	return err;
}
