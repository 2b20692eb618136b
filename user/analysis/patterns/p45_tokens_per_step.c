/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Speculation or batching yields too little for what a step costs. No window holds the records of this yet.
 */
#include "analysis/patterns/patterns.h"

HB_PATTERN(p45_tokens_per_step) = {
    .id = "P45",
    .layer = "policy",
    .title = "too few tokens for a step",
    .rank = HB_RANK_OWN,
    .needs = HB_NEED_ENGINE | HB_NEED_STEP,
    .rule = "tokens accepted per step, or the batch, are small against the step's price",
    .fix = "speculation off, another draft, chunking",
    .ref = "a public thread: acceptance 1.0 to 3.5",
    .traps = "light load",
    .settle = "acceptance and batch by step",
};
