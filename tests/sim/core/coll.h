/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a collective leaves in memory. Ranks exchange no data, but programs agree on small things by
 * collectives (numbers of parameters, flags) and would fail on made-up answers. So, up to 64 KiB and where
 * the rank's own part is known (result.h), each rank takes it that the others hold the same: gathered parts
 * are all its own, a sum is its own times the ranks, of other reductions and broadcasts its own is the
 * result.
 */
#ifndef HB_SIM_COLL_H
#define HB_SIM_COLL_H

#include "sim.h"

void hb_coll__check(struct hb_coll *c); /* before it is enqueued: no value where memory is not the device's */
void hb_coll__run(int device, const struct hb_coll *c); /* with the core's lock held */

#endif
