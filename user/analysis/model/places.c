/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analysis/model/places.h"

#include <errno.h>
#include <stdlib.h>

int hb_places__init(struct hb_places *p)
{
	*p = (struct hb_places){.n = 1, .cap = 64, .n_slots = 128};
	p->v = calloc(p->cap, sizeof(*p->v));
	p->slot = calloc(p->n_slots, sizeof(*p->slot));
	return p->v && p->slot ? 0 : -ENOMEM;
}

void hb_places__free(struct hb_places *p)
{
	free(p->v);
	free(p->slot);
	*p = (struct hb_places){0};
}

static u64 mixed(u64 h, u64 x)
{
	h = (h ^ x) * 0x9e3779b97f4a7c15ULL;
	return h ^ h >> 32;
}

static u32 hash(const struct hb_tl_place *x)
{
	u64 h = mixed(mixed(x->chan, x->a0), x->a1);

	return (u32)(x->local | x->peer ? mixed(mixed(h, x->local), x->peer) : h);
}

static bool same(const struct hb_tl_place *a, const struct hb_tl_place *b)
{
	return a->chan == b->chan && a->a0 == b->a0 && a->a1 == b->a1 && a->local == b->local &&
	       a->peer == b->peer;
}

static bool is_none(const struct hb_tl_place *x)
{
	return !(x->chan | x->a0 | x->a1 | x->local | x->peer);
}

/* Where it is, or would be. */
static u32 *slot_of(const struct hb_places *p, const struct hb_tl_place *x)
{
	u32 mask = p->n_slots - 1, i = hash(x) & mask;

	while (p->slot[i] && !same(&p->v[p->slot[i]], x))
		i = (i + 1) & mask;
	return &p->slot[i];
}

/* Half of the slots stay free. */
static int make_room(struct hb_places *p)
{
	struct hb_tl_place *v;

	if (p->n == p->cap) {
		v = p->cap <= UINT32_MAX / 4 ? reallocarray(p->v, 2 * (size_t)p->cap, sizeof(*v)) : NULL;
		if (!v)
			return -ENOMEM;
		p->v = v;
		p->cap *= 2;
	}
	if (p->n < p->n_slots / 2)
		return 0;
	free(p->slot);
	p->slot = calloc(2 * (size_t)p->n_slots, sizeof(*p->slot));
	if (!p->slot)
		return -ENOMEM;
	p->n_slots *= 2;
	for (u32 i = 1; i < p->n; i++)
		*slot_of(p, &p->v[i]) = i;
	return 0;
}

u32 hb_places__number(struct hb_places *p, const struct hb_tl_place *x)
{
	u32 known;

	if (is_none(x))
		return 0;
	if (!p->slot)
		return HB_PLACE_NONE;
	known = *slot_of(p, x);
	if (known)
		return known;
	if (make_room(p))
		return HB_PLACE_NONE;
	p->v[p->n] = *x;
	*slot_of(p, x) = p->n;
	return p->n++;
}

void hb_places__finish(struct hb_places *p)
{
	struct hb_tl_place *v = realloc(p->v, p->n * sizeof(*v));

	free(p->slot);
	p->slot = NULL;
	p->n_slots = 0;
	if (!v)
		return;
	p->v = v;
	p->cap = p->n;
}

u64 hb_places__memory(const struct hb_places *p)
{
	return p->cap * sizeof(*p->v) + p->n_slots * sizeof(*p->slot);
}
