/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which call launched an operation: the one of the same process with its correlation number. */
#include "analysis/model/device_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Calls with one number that are looked at to find an operation's own: more than that is no number. */
#define SAME_MAX 64
/* A profiler counts calls, so numbers are dense and an array finds them at once. It has so many places for
 * each call at most, and some before the first call that is seen, for calls of other threads that end later.
 */
#define PLACES	 8
#define AT_FIRST 4096

/* The place of a number, NULL when it has none; with `grow` it is made where that is not too far off. */
static u32 *place(struct numbers *n, u64 correlation, bool grow)
{
	u64 at = correlation - n->base, more;
	u32 *p;

	if (correlation < n->base)
		return NULL;
	if (at < n->n_dense)
		return &n->dense[at];
	if (!grow || at >= (u64)n->calls * PLACES + 2 * AT_FIRST)
		return NULL;
	more = n->n_dense * 2 > at + AT_FIRST ? n->n_dense * 2 : at + AT_FIRST;
	p = realloc(n->dense, more * sizeof(*p));
	if (!p)
		return NULL; /* the map takes it, or says that there is no memory */
	memset(p + n->n_dense, 0, (more - n->n_dense) * sizeof(*p));
	n->dense = p;
	n->n_dense = more;
	return &n->dense[at];
}

static u32 last_with(const struct numbers *n, u64 correlation)
{
	u64 at = correlation - n->base, value;

	if (correlation >= n->base && at < n->n_dense && n->dense[at])
		return n->dense[at];
	return n->sparse && hb_map__get(n->sparse, correlation, &value) ? (u32)value : 0;
}

int hb_numbers__add(struct hb_devices *d, struct numbers *n, u32 i)
{
	struct hb_launch *l = &d->launch[i];
	u32 *p;

	if (!n->calls++)
		n->base = l->correlation > AT_FIRST ? l->correlation - AT_FIRST : 0;
	l->same = last_with(n, l->correlation);
	if (l->same)
		l->repeated = d->launch[l->same - 1].repeated = d->repeats = true;
	p = place(n, l->correlation, true);
	if (p) {
		*p = i + 1;
		return 0;
	}
	n->sparse = n->sparse ? n->sparse : hb_map__new();
	return n->sparse ? hb_map__put(n->sparse, l->correlation, i + 1) : -ENOMEM;
}

void hb_numbers__drop(void *row)
{
	struct numbers *n = row;

	free(n->dense);
	hb_map__free(n->sparse);
}

/* Of two calls with the number of an operation that both began before it: the one it belongs to. */
static bool better(const struct hb_launch *a, const struct hb_launch *b)
{
	/* A runtime call and the driver call made in it may have one number: the outer one is the launch. */
	if (a->inner != b->inner && a->begin <= b->end && b->begin <= a->end)
		return !a->inner;
	return a->begin > b->begin;
}

u32 hb_numbers__find(const struct hb_devices *d, const struct numbers *n, u64 correlation, u64 begin)
{
	u32 first = correlation ? last_with(n, correlation) : 0, best = 0, at = first;

	if (!d->repeats) /* as a rule: no other call has its number; if one comes, join() looks again */
		return first;
	for (u32 i = 0; at && i < SAME_MAX; at = d->launch[at - 1].same, i++) {
		const struct hb_launch *l = &d->launch[at - 1];

		if (l->begin <= begin && (!best || better(l, &d->launch[best - 1])))
			best = at;
	}
	return best ? best : at ? 0 : first;
}

void hb_devices__join(struct hb_devices *d, struct dev *v)
{
	for (u32 i = 0; i < v->n_pending; i++) {
		struct hb_device_op *o = &v->ops[v->pending[i].op];

		o->launch = hb_numbers__find(d, v->numbers, v->pending[i].correlation, o->begin);
	}
	for (u32 i = 0; d->repeats && i < v->n_ops; i++) {
		struct hb_device_op *o = &v->ops[i];
		const struct hb_launch *l = launch_of(d, o);

		if (l && l->repeated)
			o->launch = hb_numbers__find(d, v->numbers, l->correlation, o->begin);
	}
}
