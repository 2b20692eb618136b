/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Time of threads below certain functions: calls of them where they were recorded, else CPU samples. Inside
 * of patterns: those about an engine's own code. */
#ifndef HB_FRAMES_H
#define HB_FRAMES_H

#include "analysis/patterns/pattern.h"

struct hb_frames {
	u64 ns, likely; /* all of it, and what it likely exposed */
	u64 n;		/* calls, or samples */
	bool sampled;
	u32 stack; /* one of them: of the longest call, or of the first sample; 0 none */
};

/* Of one thread: sums, and each call (or CPU sample, with a weight) to `visit`, which may be NULL. An error
 * of it ends it. */
int hb_frames__visit(const struct hb_scene *s, u32 thread, const struct hb_frame_rule *rule,
		     struct hb_frames *sum, int (*visit)(void *ctx, const struct hb_case *c), void *ctx);
/* The same: with `d` each as a case. 0 or -ENOMEM. */
int hb_frames__each(const struct hb_scene *s, u32 thread, const struct hb_frame_rule *rule,
		    struct hb_frames *sum, struct hb_draft *d);

/* The whole of a detector: for each thread that leads to a launch, time below such functions is at least
 * param `share` of its steps, and at least param `exposed` of that time was exposed. `what`: "builds the
 * step's inputs". */
int hb_frames__look(struct hb_look *l, const struct hb_frame_rule *rule, u32 share, u32 exposed,
		    const char *what);

#endif
