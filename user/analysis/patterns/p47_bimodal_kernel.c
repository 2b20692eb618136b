/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The same kernel has two speeds, or another process uses the device. No window holds the records of this
 * yet. */
#include "analysis/patterns/patterns.h"

HB_PATTERN(p47_bimodal_kernel) = {
    .id = "P47",
    .layer = "kernel",
    .title = "device shared or degraded",
    .rank = HB_RANK_OWN,
    .needs = HB_NEED_DEVICE | HB_NEED_COUNTER,
    .rule = "one kernel with one grid has two modes at equal clocks, or another process is on the device",
    .fix = "power, exclusive use",
    .ref = "a public thread: 63 against 94 ms a step",
    .traps = "overlapping kernels",
    .settle = "device users and power at 10 Hz",
};
