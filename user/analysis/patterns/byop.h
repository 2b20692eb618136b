/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Calls of a thread by what they are. Most calls are launches, and most patterns look for something rarer:
 * they go through the numbers of those instead of through all calls. Inside of patterns.
 */
#ifndef HB_BYOP_H
#define HB_BYOP_H

#include "analysis/model/timeline.h"

struct hb_byop;

/* NULL: out of memory. */
struct hb_byop *hb_byop__new(const struct hb_timeline *tl);
void hb_byop__free(struct hb_byop *b); /* NULL is fine */
/* Numbers of a thread's calls of this kind (no launches: they are not kept), ascending. */
const u32 *hb_byop__calls(const struct hb_byop *b, u32 thread, enum hb_op op, u32 *n);

/* Those of two kinds, in order: HB_NONE at the end. */
struct hb_byop_two {
	const u32 *a, *b;
	u32 n_a, n_b;
};
struct hb_byop_two hb_byop__two(const struct hb_byop *b, u32 thread, enum hb_op op, enum hb_op or_op);
static inline u32 hb_byop__next(struct hb_byop_two *x)
{
	if (x->n_a && (!x->n_b || *x->a < *x->b)) {
		x->n_a--;
		return *x->a++;
	}
	if (!x->n_b)
		return HB_NONE;
	x->n_b--;
	return *x->b++;
}

#endif
