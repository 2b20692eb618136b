/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The same kernel gets slower as the device throttles. No window holds the records of this yet. */
#include "analysis/patterns/patterns.h"

HB_PATTERN(p40f_throttling) = {
    .id = "P40f",
    .layer = "kernel",
    .title = "device clocks fall",
    .rank = HB_RANK_OWN,
    .needs = HB_NEED_DEVICE | HB_NEED_COUNTER,
    .rule = "the same kernel with the same grid is 15 % slower in the later half while the clock is lower",
    .fix = "cooling, power limit",
    .ref = "no public incident is known",
    .traps = "another process on the device (P47)",
    .settle = "clocks and power at 10 Hz",
};
