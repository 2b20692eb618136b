/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Steps that are periods, without the time in which nothing was asked of the engine. */
#include "analysis/model/steps_private.h"

#include <errno.h>

/* The times without load that end in (begin, end]: from the begin of the first to the end of the last. One
 * that was still going on at `end` is not among them: work came while it looked so. False: there are none. */
static bool hole(const struct hb_ivs *none, u64 begin, u64 end, struct hb_iv *out)
{
	size_t first = hb_ivs__after(none, begin), i = first;

	while (i < none->n && none->v[i].end <= end)
		i++;
	if (i == first)
		return false;
	out->begin = none->v[first].begin > begin ? none->v[first].begin : begin;
	out->end = none->v[i - 1].end;
	return true;
}

/* After a read-back or a wait the thread is done with the work: what it does until it waits for a request
 * belongs to the step that gave the tokens, which ends there. */
static void before_work(struct hb_step *s, struct hb_step *prev, const struct hb_ivs *none)
{
	struct hb_iv h;

	if (!hole(none, s->begin, s->first_op ? s->first_op : s->end, &h))
		return;
	if (prev && prev->end == s->begin)
		prev->end = h.begin;
	s->begin = h.end;
}

/* A graph launch, or a call of the step function, begins its step: the wait is at the end, and what comes
 * after it prepares the next launch.
 */
static void after_work(struct hb_step *s, struct hb_step *next, const struct hb_ivs *none)
{
	struct hb_iv h;

	if (!s->last_op || !hole(none, s->last_op, s->end, &h))
		return;
	if (next && next->begin == s->end)
		next->begin = h.end;
	s->end = h.begin;
}

static u32 drop_empty(struct hb_step *s, u32 n)
{
	u32 kept = 0;

	for (u32 i = 0; i < n; i++)
		if (s[i].end > s[i].begin)
			s[kept++] = s[i];
	return kept;
}

void hb_steps__cut_out(struct hb_steps_row *r, const struct hb_ivs *none)
{
	u32 n = r->pub.n;

	for (u32 i = 0; i < n; i++)
		if (r->pub.source == HB_STEPS_READBACK || r->pub.source == HB_STEPS_SYNC)
			before_work(&r->step[i], i ? &r->step[i - 1] : NULL, none);
		else if (r->pub.source != HB_STEPS_PYCALL && r->pub.source != HB_STEPS_MARK)
			after_work(&r->step[i], i + 1 < n ? &r->step[i + 1] : NULL, none);
	r->pub.n = drop_empty(r->step, n);
	r->pub.no_load_ns = hb_ivs__length(none);
	for (u32 i = 0; i < r->pub.n; i++)
		r->pub.no_load_ns -= hb_ivs__within(none, r->step[i].begin, r->step[i].end);
}
