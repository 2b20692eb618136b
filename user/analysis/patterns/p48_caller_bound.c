/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The server waits for its callers. No window holds the records of this yet. */
#include "analysis/patterns/patterns.h"

HB_PATTERN(p48_caller_bound) = {
    .id = "P48",
    .layer = "frontend",
    .title = "caller-bound: client or proxy",
    .rank = HB_RANK_OWN,
    .needs = HB_NEED_REQUEST | HB_NEED_NET,
    .rule = "the server is idle with empty queues while a peer is slow to read or connects late",
    .fix = "client buffer, connection limit of the proxy",
    .ref = "vllm-project/vllm#39963; gpustack/gpustack#1842 (100 connections)",
    .traps = "no load",
    .settle = "socket queues",
};
