/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Inside of busy: what busy.c, busy_infer.c and busy_cost.c share. Not for others. */
#ifndef HB_BUSY_PRIVATE_H
#define HB_BUSY_PRIVATE_H

#include "analysis/model/busy.h"
#include "base/map.h"

struct hb_busy_row { /* one process */
	u32 pid;
	bool exact;
	struct hb_busy_span *span; /* n and, after hb_busy_row__fit(), one more */
	u32 n, cap;
	u64 end; /* of the last one; the window's begin before there is one */
};

/* Appends a stretch from where the last one ended to `end`; equal neighbours are joined. 0 or -ENOMEM. */
int hb_busy_row__append(struct hb_busy_row *r, u64 end, enum hb_busy_state state, enum hb_busy_state likely);

/* ---- what work costs the device ---- */

struct hb_costs;
struct hb_costs *hb_costs__new(void); /* NULL: out of memory */
void hb_costs__free(struct hb_costs *c);
/* A dense number for this sort of work; HB_NONE: out of memory. */
u32 hb_costs__key(struct hb_costs *c, const struct hb_timeline *tl, const struct hb_tl_call *call);
/* These pieces of work (keys, repeated as often as they occur; the array is reordered) took the device `ns`
 * together; or, with `bound`, no longer than that, which counts where nothing better is known. 0 or -ENOMEM.
 */
int hb_costs__learn(struct hb_costs *c, u32 *key, u32 n, u64 ns, bool bound);
/* One piece of this sort took no longer than `ns`: it was the last that the device had. */
void hb_costs__limit(struct hb_costs *c, u32 key, u64 ns);
/* After the last learn. 0 or -ENOMEM. */
int hb_costs__solve(struct hb_costs *c);
/* ns of one piece; UINT64_MAX: nothing was learnt. */
u64 hb_costs__of(const struct hb_costs *c, u32 key);
/* ns of the longest set that was seen to its end; 0: none. */
u64 hb_costs__longest(const struct hb_costs *c);

/* The tiling of one process from its calls. 0 or -ENOMEM. */
int hb_busy__infer_row(struct hb_busy_row *r, const struct hb_timeline *tl);

#endif
