/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Calls that belong into the start-up and occur in steady state. Inside of patterns: P06, P07, P10. */
#ifndef HB_STEADY_H
#define HB_STEADY_H

#include "analysis/patterns/pattern.h"

struct hb_steady_rule {
	u64 warm, steps;	/* past the warm-up: see hb_scene__steady */
	u64 least;		/* calls shorter than this do not count */
	enum hb_op op, or_op;	/* of what such a call may be */
	const char *const *but; /* globs of functions that do not count; NULL: all count */
};

struct hb_steady {
	u64 n, total, max;
	const struct hb_tl_call *longest;
	u32 thread; /* of it */
};

/* Of all threads of a process: sums, or with `d` cases. 0 or -ENOMEM. */
int hb_steady__each(const struct hb_scene *s, u32 pid, const struct hb_steady_rule *r, struct hb_steady *sum,
		    struct hb_draft *d);

#endif
