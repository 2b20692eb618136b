/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analysis/model/dist.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void swap(uint64_t *a, uint64_t *b)
{
	uint64_t t = *a;

	*a = *b;
	*b = t;
}

/* Of three, which lies in the middle: a pivot that neither order nor its opposite spoils. */
static uint64_t middle(uint64_t a, uint64_t b, uint64_t c)
{
	if (a > b)
		swap(&a, &b);
	return c < a ? a : c > b ? b : c;
}

/* Orders v so far that v[k] is where sorting would put it; smaller ones before, larger ones after. */
static void select_nth(uint64_t *v, size_t n, size_t k)
{
	size_t lo = 0, hi = n; /* v[k] belongs into [lo, hi) */

	while (hi - lo > 1) {
		uint64_t pivot = middle(v[lo], v[lo + (hi - lo) / 2], v[hi - 1]);
		size_t less = lo, at = lo, more = hi;

		while (at < more) {
			if (v[at] < pivot)
				swap(&v[at++], &v[less++]);
			else if (v[at] > pivot)
				swap(&v[at], &v[--more]);
			else
				at++;
		}
		if (k < less)
			hi = less;
		else if (k >= more)
			lo = more;
		else
			return;
	}
}

/* Nearest rank: the smallest value with at least so many per cent at or below it. */
static size_t rank(size_t n, unsigned percent)
{
	size_t r = (n / 100) * percent + (n % 100 * percent + 99) / 100;

	return r ? r - 1 : 0;
}

/* Counting first, by how far they are from the least: then only those that are as far as the one asked for
 * are looked at. */
enum { BUCKET_BITS = 8, FEW = 64 };

struct buckets {
	uint32_t count[1 << BUCKET_BITS];
	uint64_t min;
	unsigned shift;
};

static void count(struct buckets *b, const uint64_t *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		b->count[(v[i] - b->min) >> b->shift]++;
}

/* The bucket of the k-th; *k becomes its place in it. */
static unsigned bucket_with(const struct buckets *b, size_t *k)
{
	unsigned i = 0;

	while (*k >= b->count[i])
		*k -= b->count[i++];
	return i;
}

/* Brings the values of two buckets to the front. How many they are. */
static size_t gather(const struct buckets *b, uint64_t *v, size_t n, unsigned in, unsigned or_in)
{
	uint64_t width = 1ULL << b->shift;
	uint64_t from = b->min + ((uint64_t)in << b->shift), or_from = b->min + ((uint64_t)or_in << b->shift);
	size_t m = 0;

	for (size_t i = 0; i < n; i++)
		if (v[i] - from < width || v[i] - or_from < width)
			swap(&v[i], &v[m++]);
	return m;
}

/* The k-th of the values of one bucket. Where some lie far off, most may be in one: those are counted in
 * smaller steps. */
static uint64_t kth(const struct buckets *of, uint64_t *v, size_t n, unsigned in, size_t k)
{
	struct buckets b = {.min = of->min + ((uint64_t)in << of->shift)};

	if (!of->shift)
		return b.min;
	n = gather(of, v, n, in, in);
	if (n < FEW) {
		select_nth(v, n, k);
		return v[k];
	}
	b.shift = of->shift > BUCKET_BITS ? of->shift - BUCKET_BITS : 0;
	count(&b, v, n);
	in = bucket_with(&b, &k);
	return kth(&b, v, n, in, k);
}

static void quantiles(uint64_t *v, size_t n, struct hb_dist *d)
{
	struct buckets b = {.min = d->min};
	size_t k50 = rank(n, 50), k95 = rank(n, 95);
	unsigned in50, in95;

	while ((d->max - d->min) >> b.shift >> BUCKET_BITS)
		b.shift++;
	count(&b, v, n);
	in50 = bucket_with(&b, &k50);
	in95 = bucket_with(&b, &k95);
	if (b.shift)
		n = gather(&b, v, n, in50, in95);
	d->p50 = kth(&b, v, n, in50, k50);
	d->p95 = kth(&b, v, n, in95, k95);
}

/* Newton's; libm is not linked for one root. From above it falls until it is as near as doubles go. */
static double root(double x)
{
	double r = x > 1 ? x : 1, next;

	if (x <= 0)
		return 0;
	while ((next = (r + x / r) / 2) < r)
		r = next;
	return r;
}

/* Of the population. `square`: sum of (v[i] - v[0])^2, right where all lie near one another: then this is
 * exact, as the sum of the differences is. Else they are gone through once more. */
static double deviation(const uint64_t *v, size_t n, const struct hb_dist *d, unsigned __int128 square)
{
	int64_t sum = (int64_t)(d->total - n * v[0]);
	double far = 0;

	if ((d->max - d->min) >> 32 == 0 && n <= INT32_MAX)
		return root((double)(n * square - (unsigned __int128)((__int128)sum * sum)) / (double)n /
			    (double)n);
	for (size_t i = 0; i < n; i++)
		far += ((double)v[i] - d->mean) * ((double)v[i] - d->mean);
	return root(far / (double)n);
}

struct hb_dist hb_dist__of(uint64_t *v, size_t n)
{
	struct hb_dist d = {.count = n};
	unsigned __int128 square = 0;

	if (!n)
		return d;
	d.min = d.max = v[0];
	for (size_t i = 0; i < n; i++) {
		uint64_t off = v[i] - v[0];

		d.total += v[i];
		d.min = v[i] < d.min ? v[i] : d.min;
		d.max = v[i] > d.max ? v[i] : d.max;
		square += off * off;
	}
	d.mean = (double)d.total / (double)n;
	d.std = deviation(v, n, &d, square);
	if (n >= FEW && n <= UINT32_MAX) {
		quantiles(v, n, &d);
		return d;
	}
	select_nth(v, n, rank(n, 95));
	d.p95 = v[rank(n, 95)];
	select_nth(v, rank(n, 95) + 1, rank(n, 50));
	d.p50 = v[rank(n, 50)];
	return d;
}

uint64_t hb_dist__median(uint64_t *v, size_t n)
{
	if (!n)
		return 0;
	select_nth(v, n, rank(n, 50));
	return v[rank(n, 50)];
}

int hb_dist__grouped(const uint32_t *group, const uint64_t *value, size_t n, struct hb_dist *out,
		     uint32_t n_groups)
{
	size_t *begin = calloc((size_t)n_groups + 1, sizeof(*begin));
	uint64_t *sorted = calloc(n ? n : 1, sizeof(*sorted));
	int rc = begin && sorted ? 0 : -ENOMEM;

	for (size_t i = 0; !rc && i < n; i++)
		begin[group[i] + 1]++;
	for (uint32_t g = 0; !rc && g < n_groups; g++)
		begin[g + 1] += begin[g];
	/* begin[g] walks to the begin of the next group, which is where g ends. */
	for (size_t i = 0; !rc && i < n; i++)
		sorted[begin[group[i]]++] = value[i];
	for (uint32_t g = 0; !rc && g < n_groups; g++) {
		size_t from = g ? begin[g - 1] : 0;

		out[g] = hb_dist__of(sorted + from, begin[g] - from);
	}
	free(begin);
	free(sorted);
	return rc;
}
