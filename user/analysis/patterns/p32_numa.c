/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A worker runs, or its memory lies, on another node than its device. No window holds the records of this
 * yet. */
#include "analysis/patterns/patterns.h"

HB_PATTERN(p32_numa) = {
    .id = "P32",
    .layer = "OS",
    .title = "NUMA misplacement",
    .rank = HB_RANK_OS,
    .needs = HB_NEED_NUMA,
    .rule = "half of a worker's CPU time is on another node than its device's, or a fifth of its pages are, "
	    "and its copies are a fifth slower than those of its peers",
    .fix = "bind at start",
    .ref = "vllm-project/vllm#38635; NVIDIA/TensorRT-LLM#18117 (22 % remote)",
    .traps = "often without gain (vllm-project/vllm#30492; 1CatAI/1Cat-vLLM#678 +1.9 %)",
    .settle = "compare with numactl",
};
