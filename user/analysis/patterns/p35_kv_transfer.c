/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Decoding waits for the KV cache to be transferred. No window holds the records of this yet. */
#include "analysis/patterns/patterns.h"

HB_PATTERN(p35_kv_transfer) = {
    .id = "P35",
    .layer = "network",
    .title = "KV transfer stalls decode (prefill and decode apart)",
    .rank = HB_RANK_IPC,
    .needs = HB_NEED_NET | HB_NEED_REQUEST,
    .rule = "requests spend 30 % of their time to first token in transfer, or the transfer queue grows, with "
	    "many small descriptors",
    .fix = "coalesce, overlap by layer, receive in the background",
    .ref = "sgl-project/sglang#5450 (30 s against 5 min for equal halves), #32758, #14782; "
	   "vllm-project/vllm#55434 (112,000 descriptors)",
    .traps = "RDMA bypasses the kernel: no system calls",
    .settle = "counters of the transport",
};
