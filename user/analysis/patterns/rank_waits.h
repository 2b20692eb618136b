/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How long a rank waited for its device while another had not called yet. Inside of patterns. */
#ifndef HB_RANK_WAITS_H
#define HB_RANK_WAITS_H

#include "analysis/patterns/pattern.h"

/*
 * The times between rank r's calls of a group (not of kernels) and the last rank's, `apart` ns or more, in
 * which r waited for its device to do these: joined, added to *out. Where its process has no other rank it
 * may wait on any thread. A wait that was over before the last rank called, or that is for an event recorded
 * before r's call, was for earlier work, and who comes late to this did not matter to it. 0 or -ENOMEM.
 */
int hb_rank_waits(const struct hb_scene *s, const struct hb_coll_group *g, u32 r, u64 apart,
		  struct hb_ivs *out);

#endif
