/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* One replica has a queue, another has nothing to do. No window holds the records of this yet. */
#include "analysis/patterns/patterns.h"

HB_PATTERN(p43_replica_imbalance) = {
    .id = "P43",
    .layer = "policy",
    .title = "replicas unevenly loaded",
    .rank = HB_RANK_OWN,
    .needs = HB_NEED_ENGINE | HB_NEED_REQUEST,
    .rule = "running and waiting requests differ between replicas while some have room",
    .fix = "publish queue statistics, route by queue",
    .ref = "vllm-project/vllm#48808",
    .traps = "sessions that stick for their cache",
    .settle = "metrics of every replica",
};
