/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A step takes as long as its heaviest request. No window holds the records of this yet. */
#include "analysis/patterns/patterns.h"

HB_PATTERN(p49_one_slows_all) = {
    .id = "P49",
    .layer = "policy",
    .title = "one request slows the whole batch",
    .rank = HB_RANK_OWN,
    .needs = HB_NEED_REQUEST | HB_NEED_FIELD,
    .rule = "steps that hold one certain request are far longer than those without",
    .fix = "chunked prefill, limits",
    .ref = "vllm-project/vllm#37594",
    .traps = "a first use that compiles (P12)",
    .settle = "step time against the batch's content",
};
