/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Logits come to the host and tokens are picked there. */
#include "analysis/patterns/frames.h"

enum { SHARE, EXPOSED };

static const struct hb_param params[] = {
    [SHARE] = {"share", HB_UNIT_SHARE, 50000,
	       "time below such functions of one thread on the way to a launch, as a part of the steps"},
    [EXPOSED] = {"exposed", HB_UNIT_SHARE, 500000, "the part of that time in which the device idled for it"},
    {0},
};

static const struct hb_frame_rule frames[] = {
    {"*", "*sampler*"},	       {"*", "*sample_token*"},
    {"*", "*logits_process*"}, {"*", "*apply_penalt*"},
    {"*", "*top_k*"},	       {"*", "*top_p*"},
    {"*", "llama_sampler*"},   {"*", "*multinomial*"},
    {"*", "*_softmax_cpu*"},   {NULL, NULL},
};

static int detect(struct hb_look *l)
{
	return hb_frames__look(l, frames, SHARE, EXPOSED, "samples tokens on the CPU");
}

HB_PATTERN(p17_cpu_sampling) = {
    .id = "P17",
    .layer = "engine",
    .title = "sampling and logits on the CPU",
    .rank = HB_RANK_CODE,
    .needs = HB_NEED_STACK | HB_NEED_SAMPLE | HB_NEED_ACCEL,
    .params = params,
    .rule = "functions that sample tokens or process logits run on the CPU for a good part of the steps, "
	    "most of it while the device is idle",
    .fix = "sample on the device",
    .ref = "ggml-org/llama.cpp#27050 (706 to 1,046 tokens/s with 32 slots; 58.6 % of the samples in gaps "
	   "were the sampler's)",
    .traps = "logprobs that were asked for; Python that only launches the device's sampler is P01",
    .settle = "native stacks in the gaps; the size of the copies to the host",
    .record = "frequency=997",
    .detect = detect,
};
