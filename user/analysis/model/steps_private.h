/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Inside of steps: what steps.c and steps_find.c share. Not for others. */
#ifndef HB_STEPS_PRIVATE_H
#define HB_STEPS_PRIVATE_H

#include "analysis/model/dist.h"
#include "analysis/model/order.h"
#include "analysis/model/steps.h"
#include "base/intervals.h"
#include "base/map.h"

struct hb_steps_row {
	struct hb_series pub;
	struct hb_step *step;
	u32 cap;
};

struct hb_step_names { /* ranks of names seen: of functions by location, of annotations by string */
	struct hb_map *functions, *marks;
};

/* Appends a step, unless it is empty. 0 or -ENOMEM. */
int hb_steps__add(struct hb_steps_row *r, u64 begin, u64 end);
/* Whether a thread has calls of a step function, or annotations of steps. */
bool hb_steps__has_span(const struct hb_timeline *tl, const struct hb_step_names *names, u32 thread);
/* Finds the steps of a process whose threads are known, or says why there are none. 0 or -ENOMEM. */
int hb_steps__find(const struct hb_timeline *tl, const struct hb_step_names *names, struct hb_steps_row *r);
/* Takes time without load off, see hb_steps__leave_out(); what is in a step and what all of them come to is
 * then old. */
void hb_steps__cut_out(struct hb_steps_row *r, const struct hb_ivs *none);

#endif
