/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What threads did in some stretches of time, by function: the innermost of Python's that is known of each
 * moment, from CPU samples where a thread has some, else from calls of functions (a profiler's trace, or
 * trace --calls). Functions that Python has built in count for who called them.
 *
 *   struct hb_doing *d = hb_doing__new(tl);
 *   hb_doing__add(d, thread, begin, end, NULL);     as often as there are stretches
 *   const struct hb_did *x = hb_doing__most(d);     NULL: nothing is known
 *
 * Times are ns.
 */
#ifndef HB_DOING_H
#define HB_DOING_H

#include "analysis/model/timeline.h"

struct hb_did {
	u32 loc; /* location of the function */
	u64 ns;	 /* inside of it, and of nothing further in */
};

struct hb_doing;

struct hb_doing *hb_doing__new(const struct hb_timeline *tl); /* NULL: out of memory */
void hb_doing__free(struct hb_doing *d);		      /* NULL is fine */
/* What the thread (HB_NONE: nobody) did in [begin, end). *most (may be NULL): the location that has most of
 * it, 0 when none is known. 0 or -ENOMEM. */
int hb_doing__add(struct hb_doing *d, u32 thread, u64 begin, u64 end, u32 *most);
/* The function with most of the time so far; NULL: none is known. */
const struct hb_did *hb_doing__most(const struct hb_doing *d);
/* Of all stretches so far: their length; of that where a function is known; and where that function waits for
 * something to come from another thread or from outside, by its name (queue.get, select, recv, sleep). */
struct hb_doing_sum {
	u64 ns, known, waited;
};
struct hb_doing_sum hb_doing__sum(const struct hb_doing *d);

#endif
