/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analysis/patterns/sync.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool to_host(const struct hb_tl_call *c, u64 max_bytes)
{
	return c->copy == HB_COPY_DTOH && c->bytes <= max_bytes;
}

static bool blocked(const struct hb_tl_call *c, u64 wait)
{
	return hb_call__waited(c) && c->at.end - c->at.begin >= wait;
}

/* cudaDeviceSynchronize, hipDeviceSynchronize, cuCtxSynchronize. */
static bool of_device(const struct hb_scene *s, const struct hb_tl_call *c)
{
	const char *name = hb_scene__call_name(s, c);

	return strstr(name, "DeviceSynchronize") || strstr(name, "CtxSynchronize");
}

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

static void one_step(const struct hb_scene *s, const struct hb_series *p, const struct hb_tl_call *c,
		     const struct hb_step *st, const struct hb_sync_rule *r, struct hb_syncs *out)
{
	u32 end = st->call + st->n_calls, had = out->n;
	u32 taken = HB_NONE; /* by a copy before */

	for (u32 i = st->call; i < end; i++) {
		u32 at = HB_NONE;
		bool copy = c[i].op == HB_OP_COPY && to_host(&c[i], r->max_bytes);
		bool ends = false;
		u64 next;

		if (!copy && (r->want != HB_SYNC_PLAIN || c[i].op != HB_OP_SYNC))
			continue;
		if (copy)
			at = taken = wait_of(c, i, end, r->wait);
		if (r->want == HB_SYNC_PLAIN)
			at = !copy && i != taken && c[i].op == HB_OP_SYNC && blocked(&c[i], r->wait)
				 ? i
				 : HB_NONE;
		next = at == HB_NONE ? 0 : next_in(c, at, end);
		if (at != HB_NONE && !next && copy && r->want == HB_SYNC_READ_BACK) {
			next = next_after(s, p, &c[i], &c[at]);
			ends = true;
		}
		if (at != HB_NONE && !next && r->want == HB_SYNC_PLAIN && p->source == HB_STEPS_SYNC) {
			next = next_work(s, p, &c[at]);
			ends = true;
		}
		if (!next)
			continue;
		out->v[out->n++] = (struct hb_sync){.call = &c[at],
						    .site = (u64)c[at].probe << 32 | c[at].at.stack,
						    .next = next,
						    .whole = of_device(s, &c[at]),
						    .ends = ends};
		out->whole += out->v[out->n - 1].whole;
		out->ends += ends;
	}
	out->steps += out->n > had;
}

int hb_syncs__find(const struct hb_scene *s, const struct hb_series *p, const struct hb_sync_rule *r,
		   struct hb_syncs *out)
{
	u32 n;
	const struct hb_tl_call *c = hb_timeline__calls(s->tl, p->dispatch, &n);

	*out = (struct hb_syncs){.v = malloc(((size_t)n + 1) * sizeof(*out->v))};
	if (!out->v)
		return -ENOMEM;
	for (u32 i = 0; i < p->n; i++)
		if (p->step[i].call + p->step[i].n_calls <= n)
			one_step(s, p, c, &p->step[i], r, out);
	return 0;
}

static bool same_site(const struct hb_sync *a, const struct hb_sync *b)
{
	return a->site == b->site;
}

/* Is one of the same place among those before i? */
static bool seen_before(const struct hb_syncs *v, u32 i)
{
	for (u32 k = 0; k < i; k++)
		if (same_site(&v->v[k], &v->v[i]))
			return true;
	return false;
}

void hb_syncs__leave_one(const struct hb_scene *s, const struct hb_series *p, struct hb_syncs *v)
{
	u64 least = UINT64_MAX;
	struct hb_sync cheapest;
	u32 to = 0;

	if (p->source != HB_STEPS_SYNC || !v->n)
		return;
	cheapest = v->v[0];
	for (u32 i = 0; i < v->n && i < 64; i++) { /* sites come in turns: all are among the first */
		u64 sum = 0;

		if (seen_before(v, i))
			continue;
		for (u32 k = i; k < v->n; k++)
			if (same_site(&v->v[i], &v->v[k]))
				sum += hb_scene__likely(s, p->dispatch, v->v[k].call->at.end, v->v[k].next);
		if (sum < least) {
			least = sum;
			cheapest = v->v[i];
		}
	}
	v->whole = 0;
	for (u32 i = 0; i < v->n; i++) {
		if (same_site(&v->v[i], &cheapest))
			continue;
		v->v[to++] = v->v[i];
		v->whole += v->v[i].whole;
	}
	v->n = to;
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
		struct hb_case c = {.begin = v->v[i].call->at.end,
				    .end = v->v[i].next,
				    .thread = p->dispatch,
				    .stack = v->v[i].call->at.stack};

		err = hb_draft__add(d, &c);
	}
	return err;
}
