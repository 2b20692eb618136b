/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Calls that belong into the start-up and occur in steady state. Inside of patterns: P06, P10. */
#ifndef HB_STEADY_H
#define HB_STEADY_H

#include "analysis/patterns/pattern.h"

struct hb_steady_rule {
	u64 warm, steps;	/* the warm-up: so long after the process's start, or so many steps */
	u64 least;		/* calls shorter than this do not count */
	enum hb_op op, or_op;	/* of what such a call may be */
	const char *const *but; /* globs of functions that do not count; NULL: all count */
};

struct hb_steady {
	u64 from; /* the warm-up is over: calls before are none */
	/* When the process started is not known, as of a profiler's trace, which may have begun at any time:
	 * its steady state is taken to be the second half of its steps, or what is after `steps` of the rule.
	 */
	bool guessed;
	bool blind; /* .. and there are too few steps for that, though there are such calls: n is 0 */
	u64 n, total, max;
	const struct hb_tl_call *longest;
	u32 thread;    /* of it */
	u32 steps;     /* of the process since then */
	u64 step_time; /* of them; without any, of the window. Never 0 */
};

/* Such calls of all threads of a process after its warm-up. */
void hb_steady__look(const struct hb_scene *s, const struct hb_series *p, const struct hb_steady_rule *r,
		     struct hb_steady *out);
/* Those found are a finding. Where `from` is guessed and it was alike before, all of the window is steady
 * state, and counts. Then they are cases of `d`: 0 or -ENOMEM. */
void hb_steady__extend(const struct hb_scene *s, const struct hb_series *p, const struct hb_steady_rule *r,
		       struct hb_steady *x);
int hb_steady__add(const struct hb_scene *s, const struct hb_series *p, const struct hb_steady_rule *r,
		   const struct hb_steady *x, struct hb_draft *d);

/* For hb_draft__confidence() where the warm-up's end is guessed. */
#define HB_STEADY_GUESSED "when the process started is not known: it may still be warming up"
/* For hb_look__unchecked(), with the number of steps. */
#define HB_STEADY_BLIND                                                                                      \
	"needs the end of the warm-up: when the process started is not known, and the window shows %u "      \
	"steps of it"

#endif
