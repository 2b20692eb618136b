/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Collectives of several ranks, matched: which call of one process belongs to which of another, and how far
 * apart they came.
 *
 * A rank is a communicator handle in one process; two handles in different processes are ranks of one group
 * when their calls follow each other in the same order (function, elements, data type), the one beside the
 * other in time. Windows seldom have what names a communicator (it was made before), so that is a conclusion:
 * where orders fit in more than one way the one with the smallest distances counts. From the first call on
 * that differs the rest of a group is dropped, and counted. A collective inside of a graph is no call: graph
 * launches of processes that make equally many stand for theirs (HB_COLL_GRAPH).
 *
 * Times are those of the calls on the host, monotonic ns. That a rank calls later does not yet mean that
 * another's device waits for it: that one may have work queued.
 */
#ifndef HB_COLLECTIVE_H
#define HB_COLLECTIVE_H

#include "analysis/model/timeline.h"

enum hb_coll_source { HB_COLL_CALLS, HB_COLL_GRAPH };

struct hb_coll_rank {
	u32 pid, thread; /* of its first call */
	u64 comm;	 /* handle; of graphs 0 */
};

struct hb_coll {	 /* one collective */
	u64 first, last; /* begin of the earliest and of the latest rank's call */
	u32 late;	 /* index of the rank that came last */
	u32 probe;	 /* row of the function */
	u64 elements;
	u8 dtype, pad[7];
};

struct hb_coll_group {
	enum hb_coll_source source;
	u32 n_ranks, n;
	const struct hb_coll_rank *rank;
	const struct hb_coll *coll; /* in the order of the calls */
	u32 dropped; /* calls of the longest rank that were not matched: at the window's edges, or from the
		      * first that differs on */
};

struct hb_collectives;

/* NULL with the error set: out of memory. The timeline must live as long. */
struct hb_collectives *hb_collectives__build(const struct hb_timeline *tl, struct hb_error *e);
void hb_collectives__free(struct hb_collectives *c); /* NULL is fine */
u64 hb_collectives__memory(const struct hb_collectives *c);

u32 hb_collectives__groups(const struct hb_collectives *c);
const struct hb_coll_group *hb_collectives__at(const struct hb_collectives *c, u32 i);
/* The call of rank r in the i-th collective of a group; its thread in *thread (may be NULL). */
const struct hb_tl_call *hb_coll__call(const struct hb_collectives *c, const struct hb_coll_group *g, u32 i,
				       u32 r, u32 *thread);

#endif
