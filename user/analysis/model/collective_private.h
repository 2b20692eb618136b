/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Inside of collective: what its files share. Not for others. */
#ifndef HB_COLLECTIVE_PRIVATE_H
#define HB_COLLECTIVE_PRIVATE_H

#include "analysis/model/collective.h"

struct hb_coll_item { /* one collective of a rank */
	u64 begin, end;
	u64 elements, seq; /* 0: not told */
	u64 message;	   /* bytes; 0: not known */
	u32 where, at;	   /* thread and call; or device and operation */
	u32 name;	   /* string */
	u8 kind;	   /* of its elements */
	u8 formula;	   /* enum hb_roof_kind + 1; 0: not known */
	bool even;	   /* all ranks leave it together, whoever comes last */
};

struct hb_coll_line { /* the collectives of a rank, by time */
	struct hb_coll_rank rank;
	enum hb_coll_source source;
	struct hb_coll_item *item;
	u32 n, cap;
	u32 world;  /* ranks that there are; 0: not told */
	bool named; /* its group has a name, of which rank.comm is a hash */
	bool taken;
};

struct hb_collectives;

/* The line of a rank, made when it is new; NULL: out of memory. */
struct hb_coll_line *hb_coll_line(struct hb_collectives *c, const struct hb_coll_rank *rank,
				  enum hb_coll_source source);
int hb_coll_line__add(struct hb_coll_line *l, const struct hb_coll_item *i);

/* Lines of what ran on devices. 0 or -ENOMEM. */
int hb_coll_lines__devices(struct hb_collectives *c, const struct hb_timeline *tl,
			   const struct hb_devices *d);
/* ns by which b's clock is ahead of a's, by the ends of n collectives from a and b on, in the middle of them.
 */
s64 hb_coll__offset(const struct hb_coll_item *a, const struct hb_coll_item *b, u32 n);
/* The same at each of them, by those around it: ahead[i * stride]. 0 or -ENOMEM. */
int hb_coll__ahead_each(const struct hb_coll_item *a, const struct hb_coll_item *b, u32 n, s64 *ahead,
			u32 stride);
/* How far the ends of n collectives, HB_COLL_LOOK at most, are from being equally far apart: on average, ns.
 */
u64 hb_coll__spread(const struct hb_coll_item *a, const struct hb_coll_item *b, u32 n, s64 *offset);
#define HB_COLL_LOOK 64 /* collectives by which a fit is judged */

#endif
