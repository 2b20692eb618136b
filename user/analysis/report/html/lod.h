/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Levels of detail: a row of a timeline with any number of spans, drawn with a bounded number of pieces.
 * Spans as long as a cell of time stay as they are; shorter ones that begin in the same cell become one piece
 * that says how many it stands for and how much of it they fill.
 */
#ifndef HB_HTML_LOD_H
#define HB_HTML_LOD_H

#include "schema/schema.h"

struct hb_lod_span { /* sorted by begin */
	u64 begin, end;
	u32 item; /* what it is: the caller's own number */
};

struct hb_lod_piece {
	u64 begin, end; /* of several: from the first one's begin to the last one's end */
	u64 busy;	/* sum of their lengths; of one: its length */
	u32 item;	/* of several: the longest one's */
	u32 count;	/* spans it stands for */
};

/* Length of the cells at which n spans become at most `max` pieces (max >= 2); 0: no two are joined. `begin`
 * is where the first cell begins. */
u64 hb_lod__cell(const struct hb_lod_span *s, u32 n, u64 begin, u64 end, u32 max);
/* Writes the pieces at this cell (at most n); returns how many. `out` NULL: counts. */
u32 hb_lod__join(const struct hb_lod_span *s, u32 n, u64 begin, u64 cell, struct hb_lod_piece *out);

#endif
