/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A collective takes longer than its bytes and transport explain. No window holds the records of this yet. */
#include "analysis/patterns/patterns.h"

HB_PATTERN(p46_slow_collective) = {
    .id = "P46",
    .layer = "comm",
    .title = "collective slow for its size",
    .rank = HB_RANK_OWN,
    .needs = HB_NEED_DEVICE | HB_NEED_RANK_DEVICES | HB_NEED_NET,
    .rule = "a collective's shortest duration over ranks is far above its bytes over the link, or its proxy "
	    "thread sleeps on a socket",
    .fix = "transport, topology",
    .ref = "a public thread: NCCL fell back to TCP",
    .traps = "waiting for a late rank (P33)",
    .settle = "bus bandwidth by size",
};
