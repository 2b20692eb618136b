/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Kernels reach a small part of what the device could do. No window holds the records of this yet. */
#include "analysis/patterns/patterns.h"

HB_PATTERN(p40a_far_from_peak) = {
    .id = "P40a",
    .layer = "kernel",
    .title = "kernels far from the speed of light",
    .rank = HB_RANK_OWN,
    .needs = HB_NEED_DEVICE | HB_NEED_SHAPES | HB_NEED_PROPERTIES,
    .rule = "a family of kernels that takes 3 % of the device's time reaches less than 30 % of its roofline",
    .fix = "a kernel made for the device",
    .ref = "vllm-project/vllm#31722 (345 to 215 us), #38787",
    .traps = "overlapping kernels share the device; more than 110 % is an error of the model",
    .settle = "Nsight Compute on that kernel",
};
