/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the benchmarks in C share: the unit of cost, medians, the verdict on a target. */
#ifndef HB_BENCH_H
#define HB_BENCH_H

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "schema/schema.h"

#define BENCH_ROUNDS 64

struct bench_values {
	double v[BENCH_ROUNDS];
	unsigned n;
};

static inline void bench__add(struct bench_values *b, double v)
{
	if (b->n < BENCH_ROUNDS)
		b->v[b->n++] = v;
}

static inline int bench__cmp(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Value at a share of the sorted ones: 0 smallest, 0.5 median, 1 largest. */
static inline double bench__at(struct bench_values *b, double share)
{
	if (!b->n)
		return 0;
	qsort(b->v, b->n, sizeof(*b->v), bench__cmp);
	return b->v[(unsigned)(share * (b->n - 1) + 0.5)];
}

static inline double bench__cpu_s(int who)
{
	struct rusage u;

	if (getrusage(who, &u))
		return 0;
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

/* A bare getppid, ns: the unit in which costs are told, measured in the same run. */
static inline double bench__unit(void)
{
	struct bench_values b = {0};

	for (int r = 0; r < 9; r++) {
		u64 t = hb_clock__now();

		for (int i = 0; i < 20000; i++)
			syscall(SYS_getppid);
		bench__add(&b, (double)(hb_clock__now() - t) / 20000);
	}
	return bench__at(&b, .5);
}

static inline void bench__target(const char *what, bool met)
{
	printf("target %s: %s\n", what, met ? "met" : "missed");
}

#endif
