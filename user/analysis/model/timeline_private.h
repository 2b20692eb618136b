/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Inside of timelines: what timeline.c and timeline_calls.c share. Not for others. */
#ifndef HB_TIMELINE_PRIVATE_H
#define HB_TIMELINE_PRIVATE_H

#include "analysis/model/timeline.h"

/* Sets `waited` of a thread's calls; both arrays sorted. */
void hb_calls__find_waits(struct hb_tl_call *c, u32 n, const struct hb_tl_sleep *s, u32 n_sleeps);

#endif
