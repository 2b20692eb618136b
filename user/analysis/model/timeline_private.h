/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Inside of timelines: what timeline.c and timeline_calls.c share. Not for others. */
#ifndef HB_TIMELINE_PRIVATE_H
#define HB_TIMELINE_PRIVATE_H

#include "analysis/model/timeline.h"

/* The calls of a thread, to be filled in. */
struct hb_tl_call *hb_calls__of(struct hb_timeline *tl, u32 thread, u32 *n);

/* Links a thread's calls, says of each whether it waited, and counts them for the thread; both arrays sorted.
 */
void hb_calls__finish(const struct hb_timeline *tl, struct hb_tl_thread *t, struct hb_tl_call *c, u32 n,
		      const struct hb_tl_sleep *s, u32 n_sleeps);

#endif
