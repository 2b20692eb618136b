/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A step with a long prefill holds all decoding requests up. No window holds the records of this yet. */
#include "analysis/patterns/patterns.h"

HB_PATTERN(p37_prefill_interference) = {
    .id = "P37",
    .layer = "policy",
    .title = "prefill delays decode",
    .rank = HB_RANK_OWN,
    .needs = HB_NEED_REQUEST | HB_NEED_STEP,
    .rule = "gaps between tokens of running requests are three times their median in steps that hold "
	    "prefills of 1,000 tokens and more, in 5 % of the steps",
    .fix = "a chunk budget, interleaving, prefill and decode apart",
    .ref = "ddalcu/mlx-serve#205 (freezes of 0.8 and 7.6 s); vllm-project/vllm#3130",
    .traps = "a policy that wants it so",
    .settle = "vary the budget",
};
