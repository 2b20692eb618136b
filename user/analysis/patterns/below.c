/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analysis/patterns/below.h"

#include <errno.h>

#define TOP 3

int hb_below__init(struct hb_below *b, const struct hb_scene *s)
{
	*b = (struct hb_below){.s = s, .ns = hb_map__new()};
	return hb_frame_pick__init(&b->pick, s->w) || !b->ns ? -ENOMEM : 0;
}

void hb_below__free(struct hb_below *b)
{
	hb_frame_pick__free(&b->pick);
	hb_map__free(b->ns);
}

void hb_below__add(struct hb_below *b, const struct hb_device_op *o, u64 ns)
{
	const struct hb_launch *k = hb_devices__launch_of(b->s->dev, o);
	u32 loc = k ? hb_frame_pick__of(&b->pick, k->pid, k->stack).loc : 0;
	u64 *slot = loc ? hb_map__slot(b->ns, loc, NULL) : NULL;

	b->all += ns;
	b->oom |= b->pick.oom || (loc && !slot);
	if (slot)
		*slot += ns;
}

/* The one with most time of those that have less than `below`, or as much and a higher number than `after`.
 */
static u32 next(const struct hb_below *b, u64 *below, u32 after)
{
	u64 key, ns, most = 0;
	u32 best = 0;

	for (size_t pos = 0; hb_map__next(b->ns, &pos, &key, &ns);) {
		bool open = ns < *below || (ns == *below && key > after);

		if (open && (ns > most || (ns == most && key < best))) {
			most = ns;
			best = (u32)key;
		}
	}
	*below = most;
	return best;
}

int hb_below__say(struct hb_below *b, struct hb_draft *d)
{
	u64 ns = UINT64_MAX;
	u32 loc = 0;

	for (u32 i = 0; i < TOP && (loc = next(b, &ns, loc)) && b->all; i++) {
		const struct hb_loc *l = hb_window__loc(b->s->w, loc);

		hb_draft__say(d, "%s%.60s %llu %%",
			      i ? ", " : "; by operator: ", l ? hb_window__string(b->s->w, l->func) : "?",
			      (unsigned long long)(hb_share(ns, b->all) / 10000));
	}
	return b->oom ? -ENOMEM : 0;
}
