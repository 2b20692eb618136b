/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Prefixes that were computed before are computed again. No window holds the records of this yet. */
#include "analysis/patterns/patterns.h"

HB_PATTERN(p44_redundant_prefill) = {
    .id = "P44",
    .layer = "policy",
    .title = "redundant prefill: prefix cache misses",
    .rank = HB_RANK_OWN,
    .needs = HB_NEED_ENGINE | HB_NEED_REQUEST,
    .rule = "the hit rate falls on prefixes that repeat, with prefill tokens to match",
    .fix = "a larger cache, another eviction, stable prefixes",
    .ref = "a public thread with 90 s to the first token: misses every 4.6 turns",
    .traps = "first turns",
    .settle = "hit rate by request",
};
