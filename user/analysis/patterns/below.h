/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Below which operators the device time of a finding lies: kernels' names are the compiler's, operators are
 * what somebody can change. Inside of patterns: P40b, P40d. */
#ifndef HB_BELOW_H
#define HB_BELOW_H

#include "analysis/model/operator_frame.h"
#include "analysis/patterns/pattern.h"

struct hb_below {
	const struct hb_scene *s;
	struct hb_frame_pick pick;
	const struct hb_launch *launch; /* all of them */
	struct hb_below_loc {
		u64 ns;
		u32 loc;
	} * v;
	u32 n, cap;
	struct hb_map *by_loc; /* location -> number + 1 of v */
	u64 all;
	bool oom;
};

/* 0 or -ENOMEM; free it in any case. */
int hb_below__init(struct hb_below *b, const struct hb_scene *s);
void hb_below__free(struct hb_below *b);
/* One that will be added soon: its call is fetched meanwhile. */
static inline void hb_below__expect(const struct hb_below *b, const struct hb_device_op *o)
{
	if (o->launch)
		__builtin_prefetch(&b->launch[o->launch - 1]);
}
/* An operation costs so much: it is its operator's, when its launch has a stack. */
void hb_below__add(struct hb_below *b, const struct hb_device_op *o, u64 ns);
/* Adds the three that cost most to the finding's sentence; nothing where no stacks are. 0 or -ENOMEM. */
int hb_below__say(struct hb_below *b, struct hb_draft *d);

#endif
