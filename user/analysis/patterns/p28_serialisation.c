/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Messages are packed and unpacked on the way to the next launch. */
#include "analysis/patterns/frames.h"

enum { SHARE, EXPOSED };

static const struct hb_param params[] = {
    [SHARE] = {"share", HB_UNIT_SHARE, 30000,
	       "time below such functions of one thread on the way to a launch, as a part of the steps"},
    [EXPOSED] = {"exposed", HB_UNIT_SHARE, 300000, "the part of that time in which the device idled for it"},
    {0},
};

static const struct hb_frame_rule frames[] = {
    {"pickle", "*"},	 {"_pickle*", "*"},  {"cloudpickle*", "*"}, {"msgpack*", "*"},	  {"msgspec*", "*"},
    {"json*", "*"},	 {"orjson*", "*"},   {"hmac", "*"},	    {"*", "*serialize*"}, {"*", "*pickle*"},
    {"*", "_PyPickle*"}, {"*", "*msgpack*"}, {NULL, NULL},
};

static int detect(struct hb_look *l)
{
	return hb_frames__look(l, frames, SHARE, EXPOSED, "packs and unpacks messages");
}

HB_PATTERN(p28_serialisation) = {
    .id = "P28",
    .layer = "IPC",
    .title = "serialisation and copies of messages",
    .rank = HB_RANK_IPC,
    .needs = HB_NEED_STACK | HB_NEED_SAMPLE | HB_NEED_ACCEL,
    .params = params,
    .rule = "functions that pack or unpack messages (pickle, msgpack, json, hmac) take a part of the steps "
	    "while the device is idle",
    .fix = "batch, zero-copy buffers, shared memory",
    .ref = "NVIDIA/TensorRT-LLM#15109",
    .traps = "another thread with a GIL of its own",
    .settle = "vary the payload's size",
    .record = "frequency=997; calls=@stack",
    .detect = detect,
};
