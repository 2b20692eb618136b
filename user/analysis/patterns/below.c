/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analysis/patterns/below.h"

#include <errno.h>
#include <stdlib.h>

#define TOP 3

int hb_below__init(struct hb_below *b, const struct hb_scene *s)
{
	u32 n;

	*b = (struct hb_below){.s = s, .by_loc = hb_map__new(), .launch = hb_devices__launches(s->dev, &n)};
	return hb_frame_pick__init(&b->pick, s->w) || !b->by_loc ? -ENOMEM : 0;
}

void hb_below__free(struct hb_below *b)
{
	hb_frame_pick__free(&b->pick);
	hb_map__free(b->by_loc);
	free(b->v);
}

/* Number + 1 of what is counted for a location, 0: out of memory. */
static u32 number(struct hb_below *b, u32 loc)
{
	u64 *slot = hb_map__slot(b->by_loc, loc, NULL);
	struct hb_below_loc *v;

	if (!slot)
		return 0;
	if (*slot)
		return (u32)*slot;
	if (b->n == b->cap) {
		v = reallocarray(b->v, b->cap ? 2 * (size_t)b->cap : 64, sizeof(*v));
		if (!v)
			return 0;
		b->v = v;
		b->cap = b->cap ? 2 * b->cap : 64;
	}
	b->v[b->n] = (struct hb_below_loc){.loc = loc};
	*slot = ++b->n;
	return b->n;
}

void hb_below__add(struct hb_below *b, const struct hb_device_op *o, u64 ns)
{
	const struct hb_launch *k = hb_devices__launch_of(b->s->dev, o);
	struct hb_picked *f = k ? hb_frame_pick__of(&b->pick, k->pid, k->stack) : NULL;

	b->all += ns;
	b->oom |= b->pick.oom;
	if (!f || !f->loc)
		return;
	if (!f->mine)
		f->mine = number(b, f->loc);
	if (f->mine)
		b->v[f->mine - 1].ns += ns;
	else
		b->oom = true;
}

/* The one with most time of those that have less than `below`, or as much and a higher number than `after`.
 */
static u32 next(const struct hb_below *b, u64 *below, u32 after)
{
	u64 most = 0;
	u32 best = 0;

	for (u32 i = 0; i < b->n; i++) {
		u64 ns = b->v[i].ns;
		u32 loc = b->v[i].loc;
		bool open = ns < *below || (ns == *below && loc > after);

		if (open && (ns > most || (ns == most && loc < best))) {
			most = ns;
			best = loc;
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
