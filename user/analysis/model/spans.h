/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Searches in arrays of intervals that begin with a struct hb_span and are sorted by begin. Inline: with a
 * size that is known where they are called they are a few instructions. */
#ifndef HB_SPANS_H
#define HB_SPANS_H

#include "analysis/model/timeline.h"

static inline const struct hb_span *hb_spans__at(const void *item, size_t size, u32 i)
{
	return (const struct hb_span *)((const char *)item + (size_t)i * size);
}

/* Index of the first of n that begins at or after t; n when there is none. Questions come in the order of
 * time, forwards or backwards: the search begins at `hint` (at most n), where the last one ended, in steps
 * that double. */
static inline u32 hb_spans__from(const void *item, size_t size, u32 n, u32 hint, u64 t)
{
	u32 lo, hi = hint, step = 1;

	if (hi < n && hb_spans__at(item, size, hi)->begin < t) {
		for (lo = hi + 1; lo + step <= n && hb_spans__at(item, size, lo + step - 1)->begin < t;
		     step *= 2)
			lo += step;
		hi = lo + step <= n ? lo + step - 1 : n;
	} else {
		for (lo = 0; lo < 2; lo++, hi--) /* mostly it is no further */
			if (!hi || hb_spans__at(item, size, hi - 1)->begin < t)
				return hi;
		for (; step <= hi && hb_spans__at(item, size, hi - step)->begin >= t; step *= 2)
			hi -= step;
		lo = step <= hi ? hi - step + 1 : 0;
	}
	while (lo < hi) {
		u32 mid = lo + (hi - lo) / 2;

		if (hb_spans__at(item, size, mid)->begin < t)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* The innermost interval that holds moment t, where the first `from` began by then; HB_NONE. */
static inline u32 hb_spans__open(const void *item, size_t size, u32 from, u64 t)
{
	u32 i = from ? from - 1 : HB_NONE;

	while (i != HB_NONE && hb_spans__at(item, size, i)->end <= t)
		i = hb_spans__at(item, size, i)->outer;
	return i;
}

/* What is still open when an interval begins lies on a stack; the links `outer` are that stack. Links number
 * i; `top` is its top before (at first HB_NONE), i afterwards. */
static inline void hb_spans__link(void *item, size_t size, u32 i, u32 top)
{
	struct hb_span *s = (struct hb_span *)((char *)item + (size_t)i * size);

	while (top != HB_NONE && hb_spans__at(item, size, top)->end <= s->begin)
		top = hb_spans__at(item, size, top)->outer;
	s->outer = top;
}

#endif
