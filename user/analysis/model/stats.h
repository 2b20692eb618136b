/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Whether two sets of numbers differ: a rank test (Mann-Whitney, two-sided, with ties), an interval for the
 * difference of their means (bootstrap with a fixed seed: the same numbers give the same interval), and a
 * correction for having asked many questions (Holm).
 */
#ifndef HB_STATS_H
#define HB_STATS_H

#include <stddef.h>
#include <stdint.h>

struct hb_spread {
	uint32_t n;
	double mean, q1, median, q3; /* of n = 0: all 0 */
};
/* 0 or -ENOMEM. */
int hb_stats__spread(const double *v, uint32_t n, struct hb_spread *out);

/* How likely ranks as different as these are, were both from one source: 0..1; 1 when either is empty or all
 * numbers are equal. By the normal approximation: with fewer than 8 numbers on a side it is rough. 0 or
 * -ENOMEM. */
int hb_stats__ranks(const double *a, uint32_t n, const double *b, uint32_t m, double *p);

/* How likely k or more of n independent trials come out, each with probability p in (0, 1): 0..1. */
double hb_stats__binomial(uint32_t n, uint32_t k, double p);

struct hb_interval {
	double low, high;
};
/* 95 % interval of mean(b) - mean(a), from 2,000 resamples. Both sets must have numbers. 0 or -ENOMEM. */
int hb_stats__difference(const double *a, uint32_t n, const double *b, uint32_t m, struct hb_interval *out);

/* Holm's correction, in place: p[i] becomes the level at which i would be rejected among all of them. 0 or
 * -ENOMEM. */
int hb_stats__holm(double *p, size_t n);

#endif
