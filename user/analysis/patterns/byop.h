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

struct hb_byop_calls {		       /* not yet gone through */
	const struct hb_tl_call *call; /* all calls of the thread */
	const u32 *a, *b;	       /* numbers of those of one kind, of the other */
	u32 n_a, n_b;
};
/* A thread's calls of one of two kinds (which may be the same; no launches: they are not kept). */
struct hb_byop_calls hb_byop__calls(const struct hb_byop *b, u32 thread, enum hb_op op, enum hb_op or_op);

/* They lie far apart in memory: one that will be looked at soon is fetched meanwhile, with the next call. */
enum { HB_BYOP_AHEAD = 8 };
static inline u32 hb_byop__take(const struct hb_byop_calls *x, const u32 **v, u32 *n)
{
	if (*n > HB_BYOP_AHEAD) {
		__builtin_prefetch(&x->call[(*v)[HB_BYOP_AHEAD]]);
		__builtin_prefetch(&x->call[(*v)[HB_BYOP_AHEAD]] + 1);
	}
	--*n;
	return *(*v)++;
}
/* The number of the next one, in order; HB_NONE at the end. */
static inline u32 hb_byop__next(struct hb_byop_calls *x)
{
	if (x->n_a && (!x->n_b || *x->a < *x->b))
		return hb_byop__take(x, &x->a, &x->n_a);
	return x->n_b ? hb_byop__take(x, &x->b, &x->n_b) : HB_NONE;
}

#endif
