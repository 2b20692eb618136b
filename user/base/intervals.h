/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sets of time: intervals [begin, end) of u64 nanoseconds. Add in any order, join once (sorted, overlaps and
 * neighbours merged), then ask: questions that come in order of time, forwards or backwards, are answered
 * without a search, so one thread at a time asks. Running out of memory is sticky, as in hb_buf: look at
 * `oom` once.
 */
#ifndef HB_BASE_INTERVALS_H
#define HB_BASE_INTERVALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hb_iv {
	uint64_t begin, end;
};

struct hb_ivs { /* all zero = empty */
	struct hb_iv *v;
	size_t n, cap;
	size_t hint; /* inside: where the last search ended */
	bool oom;
};

void hb_ivs__free(struct hb_ivs *s); /* also resets to empty */

/* Adds an interval; an empty or backward one is ignored. */
void hb_ivs__add(struct hb_ivs *s, uint64_t begin, uint64_t end);
/* Room for n intervals in all; and none for more than there are. */
void hb_ivs__reserve(struct hb_ivs *s, size_t n);
void hb_ivs__fit(struct hb_ivs *s);
/* Adds one that begins no earlier than the last one did: what is added so to an empty set is joined. */
static inline void hb_ivs__append(struct hb_ivs *s, uint64_t begin, uint64_t end)
{
	struct hb_iv *last = s->n ? &s->v[s->n - 1] : NULL;

	if (begin >= end)
		return;
	if (last && begin <= last->end)
		last->end = last->end > end ? last->end : end;
	else if (s->v && s->n < s->cap)
		s->v[s->n++] = (struct hb_iv){.begin = begin, .end = end};
	else
		hb_ivs__add(s, begin, end);
}
/* Sorts and merges. Needed before all of the following. */
void hb_ivs__join(struct hb_ivs *s);

/* What is asked of joined sets. */
uint64_t hb_ivs__length(const struct hb_ivs *s);
/* Length of the part of [begin, end) that is in the set. */
uint64_t hb_ivs__within(const struct hb_ivs *s, uint64_t begin, uint64_t end);
/* Index of the first interval that ends after `t`; n when there is none. */
size_t hb_ivs__seek(const struct hb_ivs *s, uint64_t t); /* inside: when it is not where the last one was */
static inline size_t hb_ivs__after(const struct hb_ivs *s, uint64_t t)
{
	size_t at = s->hint;

	if (at < s->n && s->v[at].end > t && (!at || s->v[at - 1].end <= t))
		return at;
	return hb_ivs__seek(s, t);
}
/* Length of what both have. */
uint64_t hb_ivs__common(const struct hb_ivs *a, const struct hb_ivs *b);

/* Appends to `out` (joined when it was empty): the part of [begin, end) that is in the set, whose length is
 * returned; what both sets have; what is in `a` and not in `b`. `out` is neither of them. */
uint64_t hb_ivs__cut(const struct hb_ivs *s, uint64_t begin, uint64_t end, struct hb_ivs *out);
void hb_ivs__and(const struct hb_ivs *a, const struct hb_ivs *b, struct hb_ivs *out);
void hb_ivs__minus(const struct hb_ivs *a, const struct hb_ivs *b, struct hb_ivs *out);

#endif
