/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The host builds the step's inputs while the device waits. */
#include "analysis/patterns/frames.h"

enum { SHARE, EXPOSED };

static const struct hb_param params[] = {
    [SHARE] = {"share", HB_UNIT_SHARE, 80000,
	       "time below such functions of one thread on the way to a launch, as a part of the steps"},
    [EXPOSED] = {"exposed", HB_UNIT_SHARE, 500000, "the part of that time in which the device idled for it"},
    {0},
};

static const struct hb_frame_rule frames[] = {
    {"*", "*prepare_input*"},
    {"*", "*prepare_decode*"},
    {"*", "*prepare_prefill*"},
    {"*", "*prepare_batch*"},
    {"*", "*block_table*"},
    {"*", "*slot_mapping*"},
    {"*", "*build_metadata*"},
    {"*", "*attn_metadata*"},
    {"*", "*attention_metadata*"},
    {"*", "init_forward_metadata*"},
    {"*", "*populate_from_forward_batch*"},
    {"*", "*make_tensors*"},
    {"*", "*input_batch*"},
    {NULL, NULL},
};

static int detect(struct hb_look *l)
{
	return hb_frames__look(l, frames, SHARE, EXPOSED, "builds the step's inputs");
}

HB_PATTERN(p15_input_prep) = {
    .id = "P15",
    .layer = "engine",
    .title = "per-step input and KV preparation on the host",
    .rank = HB_RANK_CODE,
    .needs = HB_NEED_STACK | HB_NEED_SAMPLE | HB_NEED_ACCEL,
    .params = params,
    .rule = "functions that prepare inputs, block tables, slot mappings or attention metadata take a good "
	    "part of the steps, most of it while the device is idle",
    .fix = "vectorise, update incrementally, build while the previous step runs, keep tensors on the device",
    .ref = "sgl-project/sglang#17654 (nested Python loops to NumPy); vllm-project/vllm#12094; "
	   "vllm-project/vllm-omni#4442",
    .traps = "waits inside of such a function belong to whom it waits for",
    .settle = "CPU samples at 1 kHz",
    .record = "frequency=997; calls=@stack",
    .detect = detect,
};
