/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which call launched an operation: the one of the same process with its correlation number. And what the
 * operation has of it. */
#include "analysis/model/device_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Calls with one number that are looked at to find an operation's own: more than that is no number. */
#define SAME_MAX 64
/* A profiler counts calls, so numbers are dense and arrays find them at once. They have so many places for
 * each call at most, and some before the first call that is seen, for calls of other threads that end later.
 */
#define PLACES	 8
#define AT_FIRST 4096

/* Zeroed when it is needed: then it is near. */
static u32 *new_block(struct numbers *n, u64 i)
{
	u64 more = n->n_blocks * 2 > i + 16 ? n->n_blocks * 2 : i + 16;
	u32 **p;

	if (i >= n->n_blocks) {
		p = realloc(n->block, more * sizeof(*p));
		if (!p)
			return NULL;
		memset(p + n->n_blocks, 0, (more - n->n_blocks) * sizeof(*p));
		n->block = p;
		n->n_blocks = more;
	}
	n->block[i] = malloc(NUMBERS_OF_BLOCK * sizeof(**n->block));
	if (n->block[i])
		memset(n->block[i], 0, NUMBERS_OF_BLOCK * sizeof(**n->block));
	return n->block[i];
}

/* A number without a place gets one where that is not too far off. */
static u32 *new_place(struct numbers *n, u64 correlation)
{
	u64 at = correlation - n->base;
	u32 *block;

	if (correlation < n->base || at >= (u64)n->calls * PLACES + 2 * AT_FIRST)
		return NULL;
	block = new_block(n, at / NUMBERS_OF_BLOCK);
	/* Without memory the map takes it, or says that there is none. */
	return block ? &block[at % NUMBERS_OF_BLOCK] : NULL;
}

u32 hb_numbers__sparse(const struct numbers *n, u64 correlation)
{
	u64 value;

	return hb_map__get(n->sparse, correlation, &value) ? (u32)value : 0;
}

/* Launches with one number are a chain. Few windows have such. */
static int chain(struct hb_devices *d, u32 i, u32 before)
{
	u32 *p;

	if (i >= d->n_same) {
		p = realloc(d->same, d->cap_launches * sizeof(*p));
		if (!p)
			return -ENOMEM;
		memset(p + d->n_same, 0, (d->cap_launches - d->n_same) * sizeof(*p));
		d->same = p;
		d->n_same = d->cap_launches;
	}
	d->same[i] = before;
	d->launch[i].repeated = d->launch[before - 1].repeated = d->repeats = true;
	return 0;
}

static u32 before(const struct hb_devices *d, u32 i)
{
	return i < d->n_same ? d->same[i] : 0;
}

int hb_numbers__add_other(struct hb_devices *d, struct numbers *n, u32 i)
{
	const struct hb_launch *l = &d->launch[i];
	u32 *p, last;

	if (!n->calls++)
		n->base = l->correlation > AT_FIRST ? l->correlation - AT_FIRST : 0;
	last = hb_numbers__last(n, l->correlation);
	if (last && chain(d, i, last))
		return -ENOMEM;
	p = hb_numbers__place(n, l->correlation);
	p = p ? p : new_place(n, l->correlation);
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

	for (u64 i = 0; i < n->n_blocks; i++)
		free(n->block[i]);
	free(n->block);
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

u32 hb_numbers__choose(const struct hb_devices *d, u32 first, u64 begin)
{
	u32 best = 0, at = first;

	for (u32 i = 0; at && i < SAME_MAX; at = before(d, at - 1), i++) {
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

		set_launch(d, o, hb_numbers__find(d, v->numbers, v->pending[i].correlation, o->begin));
	}
	for (u32 i = 0; d->repeats && i < v->n_ops; i++) {
		struct hb_device_op *o = &v->ops[i];
		const struct hb_launch *l = launch_of(d, o);

		if (l && l->repeated)
			set_launch(d, o, hb_numbers__find(d, v->numbers, l->correlation, o->begin));
	}
}

/* ---- in the order of time ---- */

/* Puts v[order[i].item] at i, for all i, in place: along each cycle of the permutation. */
static void permute(struct hb_device_op *v, struct hb_order *order, u32 n)
{
	for (u32 i = 0; i < n; i++) {
		struct hb_device_op first = v[i];
		u32 at = i;

		while (order[at].item != i) {
			u32 from = order[at].item;

			v[at] = v[from];
			order[at].item = at;
			at = from;
		}
		v[at] = first;
		order[at].item = at;
	}
}

int hb_devices__sort(struct hb_devices *d, struct dev *v)
{
	struct hb_order *order = v->unsorted ? hb_devices__room(d) : NULL;

	if (!v->unsorted)
		return 0;
	if (!order)
		return -ENOMEM;
	for (u32 i = 0; i < v->n_ops; i++)
		order[i] = (struct hb_order){.key = v->ops[i].begin, .item = i};
	if (hb_order__sort(order, v->n_ops))
		return -ENOMEM;
	permute(v->ops, order, v->n_ops);
	return 0;
}

/* Is it the first that its call launched? Another one may have been on another device. */
static void mark_first(struct hb_devices *d, struct dev *v, u32 i)
{
	struct hb_device_op *o = &v->ops[i], *other;
	u32 l = o->launch - 1, *on = d->first_on;

	if (d->first[l]) {
		other = &(on ? (struct dev *)d->devs.row[on[l]] : v)->ops[d->first[l] - 1];
		other->shared = o->shared = true;
		if (other->begin <= o->begin)
			return;
		other->first = false;
	}
	d->first[l] = i + 1;
	if (on)
		on[l] = v->pub.index;
	o->first = true;
}

static void link_kernel(struct hb_devices *d, struct dev *v, struct hb_device_op *o)
{
	struct tally *t = &d->tally[o->name];
	u64 dur = o->end - o->begin;

	*t->next++ = dur;
	t->blocks = o->size > t->blocks ? o->size : t->blocks;
	o->name = t->name;
	v->pub.kernels_10us += dur < 10000;
}

void hb_devices__link(struct hb_devices *d, struct dev *v)
{
	u64 of_kind[4] = {0}, of_work[4] = {0}, last = 0;

	v->first_unlinked = v->n_ops;
	v->launched_in_order = true;
	for (u32 i = 0; i < v->n_ops; i++) {
		struct hb_device_op *o = &v->ops[i];
		of_kind[o->kind]++;
		of_work[o->work]++;
		v->streams[o->stream].ops++;
		if (o->kind == HB_DEVKIND_KERNEL)
			link_kernel(d, v, o);
		if (!o->launch) {
			v->first_unlinked = i < v->first_unlinked ? i : v->first_unlinked;
			continue;
		}
		v->pub.linked++;
		mark_first(d, v, i);
		if (o->early) {
			v->pub.early++;
			continue;
		}
		v->launched_in_order &= asked(d, o) >= last;
		last = asked(d, o);
	}
	v->pub.kernels = of_kind[HB_DEVKIND_KERNEL];
	v->pub.memcpys = of_kind[HB_DEVKIND_MEMCPY];
	v->pub.memsets = of_kind[HB_DEVKIND_MEMSET];
	v->n_copies = (u32)of_work[HB_WORK_MEMCPY];
}
