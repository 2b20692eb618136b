/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Waits for the device in the middle of steps. Inside of patterns: P02 and P04. */
#ifndef HB_SYNC_H
#define HB_SYNC_H

#include "analysis/patterns/pattern.h"

enum hb_sync_want {
	HB_SYNC_READ_BACK, /* small copies to the host, with the wait that follows */
	HB_SYNC_PLAIN,	   /* synchronisations that follow no such copy */
};

struct hb_sync_rule {
	u64 max_bytes, wait;
	enum hb_sync_want want;
};

struct hb_sync {
	const struct hb_tl_call *call; /* that blocked */
	u64 from;		       /* its end */
	u64 site;		       /* which function, with which stack */
	/* Up to here the next work would have been given sooner without the wait: to its begin, but for no
	 * longer than the wait took. What the thread does after it, it would have to do anyway. */
	u64 until;
	bool whole; /* waited for all of the device */
	bool ends;  /* its step, so that the next work is in the one after it */
};

struct hb_syncs {
	struct hb_sync *v;
	u32 n, steps; /* steps that have one */
	u32 whole, ends;
};

/* 0 or -ENOMEM. */
int hb_syncs__find(const struct hb_scene *s, const struct hb_series *p, const struct hb_sync_rule *r,
		   struct hb_syncs *out);
/* Where steps are told by their waits, which of several ends a step is anybody's guess: the place that costs
 * least is the one that is needed, and left out. 0 or -ENOMEM. */
int hb_syncs__leave_one(const struct hb_scene *s, const struct hb_series *p, struct hb_syncs *v);
void hb_syncs__free(struct hb_syncs *v);
/* As cases: from the return to `until`. */
int hb_syncs__add(struct hb_draft *d, const struct hb_series *p, const struct hb_syncs *v);

#endif
