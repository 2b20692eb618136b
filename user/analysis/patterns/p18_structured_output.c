/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Token masks are filled, grammars compiled, while the device waits. */
#include "analysis/patterns/frames.h"

enum { SHARE, EXPOSED };

static const struct hb_param params[] = {
    [SHARE] = {"share", HB_UNIT_SHARE, 30000,
	       "time below such functions of one thread on the way to a launch, as a part of the steps"},
    [EXPOSED] = {"exposed", HB_UNIT_SHARE, 300000, "the part of that time in which the device idled for it"},
    {0},
};

static const struct hb_frame_rule frames[] = {
    {"*xgrammar*", "*"},	  {"*outlines*", "*"},	       {"*llguidance*", "*"},
    {"*structured_output*", "*"}, {"*", "*grammar*"},	       {"*", "*bitmask*"},
    {"*", "*fill_next_token*"},	  {"*lmformatenforcer*", "*"}, {NULL, NULL},
};

static int detect(struct hb_look *l)
{
	return hb_frames__look(l, frames, SHARE, EXPOSED,
			       "fills masks or compiles grammars of structured output");
}

HB_PATTERN(p18_structured_output) = {
    .id = "P18",
    .layer = "engine",
    .title = "structured output: masks and grammars on the step's path",
    .rank = HB_RANK_CODE,
    .needs = HB_NEED_STACK | HB_NEED_SAMPLE | HB_NEED_ACCEL,
    .params = params,
    .rule = "functions of structured output take a part of the steps while the device is idle",
    .fix = "fill the mask while the forward pass runs, in batches, with a bounded pool",
    .ref = "vllm-project/vllm#26866; #51331 (a quarter of the wait); #49013",
    .traps = "the first use of a schema",
    .settle = "vary the share of structured requests: 0, 50, 100 %",
    .record = "frequency=997; calls=@stack",
    .detect = detect,
};
