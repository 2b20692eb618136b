/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analysis/model/places.h"

#include <errno.h>
#include <stdlib.h>

static u64 mixed(u64 h, u64 x)
{
	h = (h ^ x) * 0x9e3779b97f4a7c15ULL;
	return h ^ h >> 32;
}

static u32 place_hash(const struct hb_tl_place *x)
{
	u64 h = mixed(mixed(x->chan, x->a0), x->a1);

	return (u32)(x->local | x->peer ? mixed(mixed(h, x->local), x->peer) : h);
}

static bool place_same(const struct hb_tl_place *a, const struct hb_tl_place *b)
{
	return a->chan == b->chan && a->a0 == b->a0 && a->a1 == b->a1 && a->local == b->local &&
	       a->peer == b->peer;
}

static u32 callee_hash(const struct hb_tl_callee *x)
{
	return (u32)mixed(x->handle + x->stream * 0xc4ceb9fe1a85ec53ULL, (u64)x->kind << 32 | x->probe);
}

/* Half of the slots stay free. What is all zero has number 0. */
#define NUMBERED(name, type, hash, same)                                                                     \
	int name##__init(struct name *p)                                                                     \
	{                                                                                                    \
		*p = (struct name){.n = 1, .cap = 64, .n_slots = 128};                                       \
		p->v = calloc(p->cap, sizeof(*p->v));                                                        \
		p->slot = calloc(p->n_slots, sizeof(*p->slot));                                              \
		return p->v && p->slot ? 0 : -ENOMEM;                                                        \
	}                                                                                                    \
                                                                                                             \
	void name##__free(struct name *p)                                                                    \
	{                                                                                                    \
		free(p->v);                                                                                  \
		free(p->slot);                                                                               \
		*p = (struct name){0};                                                                       \
	}                                                                                                    \
                                                                                                             \
	/* Where it is, or would be. */                                                                      \
	static u32 *name##__slot(const struct name *p, const type *x)                                        \
	{                                                                                                    \
		u32 mask = p->n_slots - 1, i = hash(x) & mask;                                               \
                                                                                                             \
		while (p->slot[i] && !same(&p->v[p->slot[i]], x))                                            \
			i = (i + 1) & mask;                                                                  \
		return &p->slot[i];                                                                          \
	}                                                                                                    \
                                                                                                             \
	static int name##__room(struct name *p)                                                              \
	{                                                                                                    \
		type *v;                                                                                     \
                                                                                                             \
		if (p->n == p->cap) {                                                                        \
			v = p->cap <= UINT32_MAX / 4 ? reallocarray(p->v, 2 * (size_t)p->cap, sizeof(*v))    \
						     : NULL;                                                 \
			if (!v)                                                                              \
				return -ENOMEM;                                                              \
			p->v = v;                                                                            \
			p->cap *= 2;                                                                         \
		}                                                                                            \
		if (p->n < p->n_slots / 2)                                                                   \
			return 0;                                                                            \
		free(p->slot);                                                                               \
		p->slot = calloc(2 * (size_t)p->n_slots, sizeof(*p->slot));                                  \
		if (!p->slot)                                                                                \
			return -ENOMEM;                                                                      \
		p->n_slots *= 2;                                                                             \
		for (u32 i = 1; i < p->n; i++)                                                               \
			*name##__slot(p, &p->v[i]) = i;                                                      \
		return 0;                                                                                    \
	}                                                                                                    \
                                                                                                             \
	u32 name##__number(struct name *p, const type *x)                                                    \
	{                                                                                                    \
		u32 known;                                                                                   \
                                                                                                             \
		if (!p->slot)                                                                                \
			return HB_PLACE_NONE;                                                                \
		known = *name##__slot(p, x);                                                                 \
		if (known)                                                                                   \
			return known;                                                                        \
		if (same(&p->v[0], x))                                                                       \
			return 0;                                                                            \
		if (name##__room(p))                                                                         \
			return HB_PLACE_NONE;                                                                \
		p->v[p->n] = *x;                                                                             \
		*name##__slot(p, x) = p->n;                                                                  \
		return p->n++;                                                                               \
	}                                                                                                    \
                                                                                                             \
	void name##__finish(struct name *p)                                                                  \
	{                                                                                                    \
		type *v = realloc(p->v, p->n * sizeof(*v));                                                  \
                                                                                                             \
		free(p->slot);                                                                               \
		p->slot = NULL;                                                                              \
		p->n_slots = 0;                                                                              \
		if (!v)                                                                                      \
			return;                                                                              \
		p->v = v;                                                                                    \
		p->cap = p->n;                                                                               \
	}                                                                                                    \
                                                                                                             \
	u64 name##__memory(const struct name *p)                                                             \
	{                                                                                                    \
		return p->cap * sizeof(*p->v) + p->n_slots * sizeof(*p->slot);                               \
	}

NUMBERED(hb_places, struct hb_tl_place, place_hash, place_same)
NUMBERED(hb_callees, struct hb_tl_callee, callee_hash, hb_callee__same)
