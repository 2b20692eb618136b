/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The thresholds that all patterns share, by number. Inside of patterns. */
#ifndef HB_GATES_H
#define HB_GATES_H

#include "analysis/patterns/patterns.h"

enum {
	HB_GATE_EXPOSED,
	HB_GATE_STEP,
	HB_GATE_STEPS,
	HB_GATE_EVENT,
	HB_GATE_DELAY,
	HB_GATE_DEVICE,
	HB_GATE_BUSY,
	HB_GATE_COVERED,
	HB_GATE_SAMPLES,
};

extern const struct hb_pattern hb_pattern_gates;

#endif
