/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Images and audio are prepared one after the other while requests wait. No window holds the records of this
 * yet. */
#include "analysis/patterns/patterns.h"

HB_PATTERN(p20_multimodal) = {
    .id = "P20",
    .layer = "frontend",
    .title = "multimodal preprocessing in a row",
    .rank = HB_RANK_CODE,
    .needs = HB_NEED_REQUEST | HB_NEED_STACK,
    .rule = "processors of images or audio keep one thread busy for 80 % of the time while the device has "
	    "gaps of 30 % and requests wait",
    .fix = "a pool of processes, preprocessing on the device",
    .ref = "vllm-project/vllm#58266 (2 threads +20 %, 6 threads -70 %), #49317; sgl-project/sglang#31438, "
	   "#35349",
    .traps = "more threads can make it worse (GIL)",
    .settle = "vary the number of workers",
};
