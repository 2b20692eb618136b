/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* No pattern: thresholds that all of them share. */
#include "analysis/patterns/gates.h"

static const struct hb_param params[] = {
    [HB_GATE_EXPOSED] = {"exposed_share", HB_UNIT_SHARE, 10000,
			 "idle device that it is to blame for, of the time with work"},
    [HB_GATE_STEP] = {"step_share", HB_UNIT_SHARE, 30000,
		      "or such time in the median step, of the median step's length"},
    [HB_GATE_STEPS] = {"steps", HB_UNIT_COUNT, 20, "which needs so many steps"},
    [HB_GATE_EVENT] = {"event", HB_UNIT_NS, 100000000, "or when one occurrence exposed so much"},
    [HB_GATE_DELAY] = {"delay_share", HB_UNIT_SHARE, 10000,
		       "or time for which it held requests up, of the time with work"},
    [HB_GATE_DEVICE] = {"device_share", HB_UNIT_SHARE, 10000,
			"or device time that could be saved, of the time with work"},
    [HB_GATE_BUSY] = {"device_busy", HB_UNIT_SHARE, 500000,
		      "time in which that device is busy, of all: else its work is not what limits"},
    [HB_GATE_COVERED] =
	{"covered_share", HB_UNIT_SHARE, 500000,
	 "a finding is an effect when causes of lower rank cover so much of its exposed time"},
    [HB_GATE_SAMPLES] = {"samples", HB_UNIT_COUNT, 10,
			 "what rests on fewer CPU samples than this has low confidence"},
    {0},
};

HB_PATTERN(gates) = {
    .id = "GATE",
    .layer = "all",
    .title = "what passes for a finding",
    .rank = HB_RANK_OWN,
    .params = params,
    .rule = "a finding passes when it exposed enough of the time with work (all of the window; of an "
	    "imported trace from the first operation of a device or step to the last one), of the steps, or "
	    "at once; or held "
	    "requests up for "
	    "long enough; or could save enough device time",
};
