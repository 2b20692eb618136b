/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "base/intervals.h"

#include <stdlib.h>
#include <string.h>

#include "base/radix.h"

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t most(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

void hb_ivs__free(struct hb_ivs *s)
{
	free(s->v);
	memset(s, 0, sizeof(*s));
}

static void resize(struct hb_ivs *s, size_t cap)
{
	struct hb_iv *v = reallocarray(s->v, cap, sizeof(*v));

	if (!v) {
		s->oom = true;
		return;
	}
	s->v = v;
	s->cap = cap;
}

void hb_ivs__reserve(struct hb_ivs *s, size_t n)
{
	if (n > s->cap)
		resize(s, n);
}

void hb_ivs__fit(struct hb_ivs *s)
{
	if (s->n && s->n < s->cap)
		resize(s, s->n);
}

void hb_ivs__add(struct hb_ivs *s, uint64_t begin, uint64_t end)
{
	if (begin >= end || s->oom)
		return;
	if (s->n == s->cap)
		resize(s, !s->cap ? 16 : s->cap < 65536 ? s->cap * 2 : s->cap * 4);
	if (!s->oom)
		s->v[s->n++] = (struct hb_iv){.begin = begin, .end = end};
}

static int cmp_begin(const void *a, const void *b)
{
	const struct hb_iv *x = a, *y = b;

	return x->begin < y->begin ? -1 : x->begin > y->begin;
}

#define BEGIN_OF(x) ((x)->begin)
HB_RADIX_SORT(sort_begins, struct hb_iv, BEGIN_OF)

/* Mostly they come in order, or in the opposite one. */
static void sort(struct hb_ivs *s)
{
	size_t up = 1, down = 1;

	while (up < s->n && s->v[up].begin >= s->v[up - 1].begin)
		up++;
	while (down < s->n && s->v[down].begin <= s->v[down - 1].begin)
		down++;
	if (up == s->n)
		return;
	if (down < s->n) {
		if (sort_begins(s->v, s->n))
			qsort(s->v, s->n, sizeof(*s->v), cmp_begin);
		return;
	}
	for (size_t i = 0; i < s->n / 2; i++) {
		struct hb_iv x = s->v[i];

		s->v[i] = s->v[s->n - 1 - i];
		s->v[s->n - 1 - i] = x;
	}
}

void hb_ivs__join(struct hb_ivs *s)
{
	size_t to = 0;

	if (!s->n)
		return;
	sort(s);
	for (size_t i = 1; i < s->n; i++) {
		if (s->v[i].begin <= s->v[to].end)
			s->v[to].end = most(s->v[to].end, s->v[i].end);
		else
			s->v[++to] = s->v[i];
	}
	s->n = to + 1;
}

uint64_t hb_ivs__length(const struct hb_ivs *s)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < s->n; i++)
		sum += s->v[i].end - s->v[i].begin;
	return sum;
}

/* From where the last search ended in steps that double, then halving what is left. */
size_t hb_ivs__seek(const struct hb_ivs *s, uint64_t t)
{
	size_t lo = 0, hi = s->hint < s->n ? s->hint : s->n, step = 1;

	if (hi < s->n && s->v[hi].end <= t) {
		for (lo = hi + 1; lo + step <= s->n && s->v[lo + step - 1].end <= t; step *= 2)
			lo += step;
		hi = lo + step <= s->n ? lo + step - 1 : s->n;
	} else {
		for (; step <= hi && s->v[hi - step].end > t; step *= 2)
			hi -= step;
		lo = step <= hi ? hi - step + 1 : 0;
	}
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (s->v[mid].end <= t)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (s->hint != lo) /* an empty constant is never written */
		((struct hb_ivs *)s)->hint = lo;
	return lo;
}

uint64_t hb_ivs__within(const struct hb_ivs *s, uint64_t begin, uint64_t end)
{
	uint64_t sum = 0;

	for (size_t i = hb_ivs__after(s, begin); i < s->n && s->v[i].begin < end; i++)
		sum += least(s->v[i].end, end) - most(s->v[i].begin, begin);
	return sum;
}

uint64_t hb_ivs__cut(const struct hb_ivs *s, uint64_t begin, uint64_t end, struct hb_ivs *out)
{
	uint64_t sum = 0;

	for (size_t i = hb_ivs__after(s, begin); i < s->n && s->v[i].begin < end; i++) {
		uint64_t from = most(s->v[i].begin, begin), to = least(s->v[i].end, end);

		hb_ivs__add(out, from, to);
		sum += to > from ? to - from : 0;
	}
	return sum;
}

void hb_ivs__and(const struct hb_ivs *a, const struct hb_ivs *b, struct hb_ivs *out)
{
	size_t i = 0, j = 0;

	while (i < a->n && j < b->n) {
		hb_ivs__add(out, most(a->v[i].begin, b->v[j].begin), least(a->v[i].end, b->v[j].end));
		if (a->v[i].end < b->v[j].end)
			i++;
		else
			j++;
	}
}

uint64_t hb_ivs__common(const struct hb_ivs *a, const struct hb_ivs *b)
{
	uint64_t sum = 0;
	size_t i = 0, j = 0;

	while (i < a->n && j < b->n) {
		uint64_t from = most(a->v[i].begin, b->v[j].begin), to = least(a->v[i].end, b->v[j].end);

		sum += to > from ? to - from : 0;
		if (a->v[i].end < b->v[j].end)
			i++;
		else
			j++;
	}
	return sum;
}

void hb_ivs__minus(const struct hb_ivs *a, const struct hb_ivs *b, struct hb_ivs *out)
{
	for (size_t i = 0; i < a->n; i++) {
		uint64_t at = a->v[i].begin, end = a->v[i].end;

		for (size_t j = hb_ivs__after(b, at); j < b->n && b->v[j].begin < end; j++) {
			hb_ivs__add(out, at, b->v[j].begin);
			at = most(at, b->v[j].end);
		}
		hb_ivs__add(out, at, end);
	}
}
