/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Matrix products of few rows, or with sizes the hardware does not like. No window holds the records of this
 * yet. */
#include "analysis/patterns/patterns.h"

HB_PATTERN(p40c_skinny_gemm) = {
    .id = "P40c",
    .layer = "kernel",
    .title = "skinny or unaligned matrix products",
    .rank = HB_RANK_OWN,
    .needs = HB_NEED_DEVICE | HB_NEED_SHAPES | HB_NEED_PROPERTIES,
    .rule = "products with 16 rows or fewer, or sizes that are no multiple of 8 or 16, read weights of 4 MB "
	    "and more at less than half of the memory's speed",
    .fix = "GEMV, split K, padding",
    .ref = "sgl-project/sglang#37491 (32 to 5.5 us); vllm-project/vllm#47712, #29937",
    .traps = "weights that stay in the cache",
    .settle = "shapes of the operands",
};
