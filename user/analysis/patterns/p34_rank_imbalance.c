/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Some ranks get more tokens or experts than others. No window holds the records of this yet. */
#include "analysis/patterns/patterns.h"

HB_PATTERN(p34_rank_imbalance) = {
    .id = "P34",
    .layer = "comm",
    .title = "load imbalance between ranks",
    .rank = HB_RANK_OWN,
    .needs = HB_NEED_DEVICE | HB_NEED_RANK_DEVICES,
    .rule = "per step the largest over the mean time of grouped GEMM or attention across ranks is 1.2 or "
	    "more over 50 steps, or so are tokens per rank",
    .fix = "rebalance experts, route data-parallel requests by load",
    .ref = "vllm-project/vllm#18343; with care #50647 (a synchronous rebalance was 3.2 times slower)",
    .traps = "devices of different clocks",
    .settle = "token counts by rank",
};
