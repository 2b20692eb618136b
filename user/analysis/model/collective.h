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
 * With device records the same is done with kernels (HB_COLL_DEVICE): a rank is a stream of a device, or its
 * process group where operators of an imported trace name it; their kernels must follow each other in the
 * same order and be in progress at the same time. As all ranks leave a collective together, the ends tell how
 * far their clocks are apart, everywhere in the window.
 *
 * Times are those of the calls on the host, monotonic ns: that a rank calls later does not yet mean that
 * another's device waits for it, which may have work queued. Of kernels they are those of the device, on the
 * first rank's clock: whoever began earlier did wait.
 */
#ifndef HB_COLLECTIVE_H
#define HB_COLLECTIVE_H

#include "analysis/model/device.h"
#include "analysis/model/timeline.h"

enum hb_coll_source { HB_COLL_CALLS, HB_COLL_GRAPH, HB_COLL_DEVICE };

struct hb_coll_rank {
	u32 pid, thread; /* of its first call; thread of kernels HB_NONE */
	u64 comm;	 /* handle; of graphs 0; of kernels the group, or the stream */
	u32 device;	 /* of kernels: index, hb_devices__at() */
	s64 offset; /* of kernels: ns that its clock is ahead of the first rank's, in the middle of all; see
		     * hb_coll__ahead() */
};

/* A moment of a rank on the first one's clock, of which it is `ahead` ns. */
static inline u64 hb_coll__moment(u64 t, s64 ahead)
{
	return ahead > 0 && t < (u64)ahead ? 0 : t - (u64)ahead;
}

struct hb_coll {	   /* one collective */
	u64 first, last;   /* begin of the earliest and of the latest rank's call */
	u32 late;	   /* index of the rank that came last */
	u32 name;	   /* string: of the function, or the kernel */
	u64 elements;	   /* 0: not told */
	u64 message;	   /* of kernels: bytes of the whole; 0 not known */
	u64 shortest;	   /* of kernels: duration of the rank that waited least */
	u8 dtype, formula; /* formula: enum hb_roof_kind + 1, where message is known; else 0 */
	u8 pad[6];
};

struct hb_coll_group {
	enum hb_coll_source source;
	u32 n_ranks, n;
	u32 world; /* of kernels: ranks that the group has, whether their records are here or not; 0 not told
		    */
	const struct hb_coll_rank *rank;
	const struct hb_coll *coll; /* in the order of the calls */
	u32 dropped; /* calls of the longest rank that were not matched: at the window's edges, or from the
		      * first that differs on */
};

struct hb_collectives;

/* With devices (finished; NULL: none) also of their kernels. NULL with the error set: out of memory. Both
 * must live as long. */
struct hb_collectives *hb_collectives__build(const struct hb_timeline *tl, const struct hb_devices *d,
					     struct hb_error *e);
void hb_collectives__free(struct hb_collectives *c); /* NULL is fine */
u64 hb_collectives__memory(const struct hb_collectives *c);

u32 hb_collectives__groups(const struct hb_collectives *c);
const struct hb_coll_group *hb_collectives__at(const struct hb_collectives *c, u32 i);
/* The operation of rank r in the i-th collective of a group of kernels: index in its device's. */
u32 hb_coll__op(const struct hb_collectives *c, const struct hb_coll_group *g, u32 i, u32 r);
/* ns that rank r's clock is ahead of the first rank's at the i-th collective: clocks of hosts drift and are
 * set, so it is told by the ends of the collectives around. 0 for calls: they have one clock. */
s64 hb_coll__ahead(const struct hb_collectives *c, const struct hb_coll_group *g, u32 i, u32 r);
/* The call of rank r in the i-th collective of a group, not of kernels; its thread in *thread (may be NULL).
 */
const struct hb_tl_call *hb_coll__call(const struct hb_collectives *c, const struct hb_coll_group *g, u32 i,
				       u32 r, u32 *thread);

#endif
