/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analysis/model/stats.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static int cmp(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* Between two neighbours where the rank is none. */
static double at(const double *sorted, uint32_t n, double part)
{
	double rank = part * (n - 1);
	uint32_t i = (uint32_t)rank;

	return i + 1 < n ? sorted[i] + (rank - i) * (sorted[i + 1] - sorted[i]) : sorted[n - 1];
}

int hb_stats__spread(const double *v, uint32_t n, struct hb_spread *out)
{
	double *sorted, sum = 0;

	*out = (struct hb_spread){.n = n};
	if (!n)
		return 0;
	sorted = malloc(n * sizeof(*sorted));
	if (!sorted)
		return -ENOMEM;
	memcpy(sorted, v, n * sizeof(*sorted));
	qsort(sorted, n, sizeof(*sorted), cmp);
	for (uint32_t i = 0; i < n; i++)
		sum += sorted[i];
	out->mean = sum / n;
	out->q1 = at(sorted, n, 0.25);
	out->median = at(sorted, n, 0.5);
	out->q3 = at(sorted, n, 0.75);
	free(sorted);
	return 0;
}

/* ---- ranks ---- */

struct ranked {
	double value;
	int first; /* of the first set */
};

/* From U: the normal approximation with a correction for continuity. `ties`: sum of t^3 - t over groups of
 * equal numbers. */
static double level(double u, double n, double m, double ties)
{
	double all = n + m, mean = n * m / 2;
	double var = n * m / 12 * (all + 1 - ties / (all * (all - 1)));
	double off = fabs(u - mean) - 0.5;

	if (var <= 0 || off <= 0)
		return 1;
	return erfc(off / sqrt(var) / sqrt(2));
}

int hb_stats__ranks(const double *a, uint32_t n, const double *b, uint32_t m, double *p)
{
	size_t all = (size_t)n + m;
	struct ranked *r;
	double sum = 0, ties = 0;

	*p = 1;
	if (!n || !m)
		return 0;
	r = malloc(all * sizeof(*r));
	if (!r)
		return -ENOMEM;
	for (size_t i = 0; i < all; i++)
		r[i] = (struct ranked){i < n ? a[i] : b[i - n], i < n};
	_Static_assert(offsetof(struct ranked, value) == 0, "cmp() looks at the value");
	qsort(r, all, sizeof(*r), cmp);
	for (size_t i = 0, j; i < all; i = j) {
		double same;

		for (j = i; j < all && r[j].value == r[i].value;)
			j++;
		same = (double)(j - i);
		ties += same * same * same - same;
		for (size_t k = i; k < j; k++)
			sum += r[k].first ? (double)(i + j + 1) / 2 : 0; /* ranks from 1, shared */
	}
	free(r);
	*p = level(sum - (double)n * (n + 1) / 2, n, m, ties);
	return 0;
}

/* ---- bootstrap ---- */

#define SEED	0x9e3779b97f4a7c15ULL
#define SAMPLES 2000

static uint64_t next(uint64_t *state)
{
	uint64_t x = *state;

	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	*state = x;
	return x * 0x2545f4914f6cdd1dULL;
}

static double mean_of_draws(const double *v, uint32_t n, uint64_t *state)
{
	double sum = 0;

	for (uint32_t i = 0; i < n; i++)
		sum += v[(next(state) >> 32) * n >> 32];
	return sum / n;
}

int hb_stats__difference(const double *a, uint32_t n, const double *b, uint32_t m, struct hb_interval *out)
{
	double *d = malloc(SAMPLES * sizeof(*d));
	uint64_t state = SEED;

	if (!d)
		return -ENOMEM;
	for (int i = 0; i < SAMPLES; i++) {
		double mean = mean_of_draws(a, n, &state);

		d[i] = mean_of_draws(b, m, &state) - mean;
	}
	qsort(d, SAMPLES, sizeof(*d), cmp);
	*out = (struct hb_interval){at(d, SAMPLES, 0.025), at(d, SAMPLES, 0.975)};
	free(d);
	return 0;
}

/* ---- many questions ---- */

struct question {
	double p;
	size_t i;
};

int hb_stats__holm(double *p, size_t n)
{
	struct question *q = malloc((n ? n : 1) * sizeof(*q));
	double most = 0;

	if (!q)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		q[i] = (struct question){p[i], i};
	_Static_assert(offsetof(struct question, p) == 0, "cmp() looks at p");
	qsort(q, n, sizeof(*q), cmp);
	for (size_t i = 0; i < n; i++) {
		double level = fmin(1, q[i].p * (double)(n - i));

		most = fmax(most, level);
		p[q[i].i] = most;
	}
	free(q);
	return 0;
}

double hb_stats__binomial(uint32_t n, uint32_t k, double p)
{
	double term, sum = 0;

	if (!k)
		return 1;
	if (k > n)
		return 0;
	term =
	    exp(lgamma(n + 1.0) - lgamma(k + 1.0) - lgamma(n - k + 1.0) + k * log(p) + (n - k) * log1p(-p));
	for (uint32_t i = k; i <= n; i++) {
		sum += term;
		term *= (double)(n - i) / (i + 1.0) * p / (1 - p);
		if (i > n * p && term < sum * 1e-16)
			break;
	}
	return sum > 1 ? 1 : sum;
}
