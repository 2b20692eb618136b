/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analysis/report/html/lod.h"

#include <stdbool.h>

/* True when the span goes into the piece that is open. */
static bool joins(const struct hb_lod_span *s, u64 begin, u64 cell, bool open, u64 open_cell)
{
	return open && s->end - s->begin < cell && (s->begin - begin) / cell == open_cell;
}

static void start(struct hb_lod_piece *p, const struct hb_lod_span *s, u64 *longest)
{
	*longest = s->end - s->begin;
	*p = (struct hb_lod_piece){
	    .begin = s->begin, .end = s->end, .busy = *longest, .item = s->item, .count = 1};
}

static void join(struct hb_lod_piece *p, const struct hb_lod_span *s, u64 *longest)
{
	u64 len = s->end - s->begin;

	if (s->end > p->end)
		p->end = s->end;
	if (len > *longest) {
		*longest = len;
		p->item = s->item;
	}
	p->busy += len;
	p->count++;
}

u32 hb_lod__join(const struct hb_lod_span *s, u32 n, u64 begin, u64 cell, struct hb_lod_piece *out)
{
	struct hb_lod_piece p = {0};
	u64 open_cell = 0, longest = 0;
	bool open = false;
	u32 made = 0;

	for (u32 i = 0; i < n; i++) {
		bool alone = !cell || s[i].end - s[i].begin >= cell;

		if (cell && joins(&s[i], begin, cell, open, open_cell)) {
			join(&p, &s[i], &longest);
		} else {
			start(&p, &s[i], &longest);
			open = !alone;
			open_cell = cell ? (s[i].begin - begin) / cell : 0;
			made++;
		}
		if (out)
			out[made - 1] = p;
	}
	return made;
}

u64 hb_lod__cell(const struct hb_lod_span *s, u32 n, u64 begin, u64 end, u32 max)
{
	u64 low = 0, high = 1;

	if (n <= max)
		return 0;
	while (high <= end - begin && hb_lod__join(s, n, begin, high, NULL) > max)
		high *= 2;
	/* `high` is enough (longer than all of the time: one piece), `low` is not. */
	while (high - low > high / 8 + 1) {
		u64 mid = low + (high - low) / 2;

		if (hb_lod__join(s, n, begin, mid, NULL) > max)
			low = mid;
		else
			high = mid;
	}
	return high;
}
