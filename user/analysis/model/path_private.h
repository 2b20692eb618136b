/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Inside of path: what path.c, walk.c and whatif.c share. Not for others. */
#ifndef HB_PATH_PRIVATE_H
#define HB_PATH_PRIVATE_H

#include "analysis/model/path.h"

struct hb_segs {
	struct hb_seg *seg;
	u32 n, cap;
};

struct hb_path {
	const struct hb_timeline *tl;
	const struct hb_wake *wk;
	const struct hb_steps *steps;
	const struct hb_busy *busy;
	struct hb_path_row *row;
	u32 n;
};

struct hb_path_row { /* one series */
	const struct hb_series *series;
	struct hb_segs segs;
};

/* Appends the segments of one walk, in order of time. 0 or -ENOMEM. */
int hb_walk(const struct hb_timeline *tl, const struct hb_wake *wk, u32 thread, u64 begin, u64 end,
	    struct hb_segs *out);

#endif
