/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Spread, rank test, interval and correction, against scipy's numbers and against made noise. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "analysis/model/stats.h"

static double p_of(const double *a, uint32_t n, const double *b, uint32_t m)
{
	double p = -1;

	assert_int_equal(hb_stats__ranks(a, n, b, m, &p), 0);
	return p;
}

static void assert_near(double is, double should, double part)
{
	if (fabs(is - should) > part * fabs(should))
		fail_msg("%.12g is not %.12g", is, should);
}

/* scipy.stats.mannwhitneyu(a, b, method="asymptotic") */
static void test_ranks(void **state)
{
	double a[10], b[10], c[] = {1, 1, 2, 2, 3}, d[] = {2, 3, 3, 4, 4, 5}, same[24], other[23];

	for (int i = 0; i < 10; i++) {
		a[i] = i + 1;
		b[i] = i + 6;
	}
	assert_near(p_of(a, 10, b, 10), 0.005075392315273923, 1e-9);
	assert_near(p_of(b, 10, a, 10), 0.005075392315273923, 1e-9);
	assert_near(p_of(c, 5, d, 6), 0.031633423039876964, 1e-9);
	for (int i = 0; i < 24; i++)
		same[i] = 1;
	for (int i = 0; i < 23; i++)
		other[i] = i < 3 ? 1.5 : 2;
	assert_near(p_of(other, 23, same, 24), 4.199355202917076e-11, 1e-6);
	assert_true(p_of(same, 24, same, 24) == 1); /* all equal */
	assert_true(p_of(same, 24, same, 0) == 1);
}

static void test_spread(void **state)
{
	double v[] = {5, 1, 4, 2, 3};
	struct hb_spread s;

	assert_int_equal(hb_stats__spread(v, 5, &s), 0);
	assert_int_equal(s.n, 5);
	assert_true(s.mean == 3 && s.q1 == 2 && s.median == 3 && s.q3 == 4);
	assert_true(v[0] == 5); /* left as they were */
	assert_int_equal(hb_stats__spread(v, 4, &s), 0);
	assert_true(s.median == 3 && s.q1 == 1.75);
	assert_int_equal(hb_stats__spread(v, 0, &s), 0);
	assert_true(s.n == 0 && s.mean == 0);
}

static void test_holm(void **state)
{
	double p[] = {0.01, 0.04, 0.03, 0.005}, many[] = {0.6, 0.5};

	assert_int_equal(hb_stats__holm(p, 4), 0);
	assert_near(p[0], 0.03, 1e-12);
	assert_near(p[1], 0.06, 1e-12);
	assert_near(p[2], 0.06, 1e-12);
	assert_near(p[3], 0.02, 1e-12);
	assert_int_equal(hb_stats__holm(many, 2), 0);
	assert_true(many[0] == 1 && many[1] == 1);
	assert_int_equal(hb_stats__holm(many, 0), 0);
}

/* ---- on noise ---- */

static uint64_t seed;

static double uniform(void)
{
	seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (double)(seed >> 11) / (double)(1ULL << 53);
}

/* About normal: mean 100, deviation 10. */
static void noise(double *v, uint32_t n, double factor)
{
	for (uint32_t i = 0; i < n; i++) {
		double sum = 0;

		for (int k = 0; k < 12; k++)
			sum += uniform();
		v[i] = factor * (100 + 10 * (sum - 6));
	}
}

static void test_interval(void **state)
{
	double a[24], b[24];
	struct hb_interval x, y;
	int holds = 0;

	seed = 7;
	for (int i = 0; i < 100; i++) {
		noise(a, 24, 1);
		noise(b, 24, 1.2);
		assert_int_equal(hb_stats__difference(a, 24, b, 24, &x), 0);
		assert_int_equal(hb_stats__difference(a, 24, b, 24, &y), 0);
		assert_true(x.low == y.low && x.high == y.high); /* nothing by chance */
		assert_true(x.low < x.high && x.low > 0 && x.high < 40);
		holds += x.low <= 20 && x.high >= 20;
	}
	assert_in_range(holds, 85, 100); /* of 95, and the bootstrap of 24 is a little narrow */
}

/* Of 20 comparisons with 100 numbers each not one is taken for a change; a planted one always is. */
static void test_false_alarms(void **state)
{
	double p[100], a[24], b[24];

	seed = 1;
	for (int round = 0; round < 20; round++) {
		for (int i = 0; i < 100; i++) {
			noise(a, 24, 1);
			noise(b, 24, i == 42 ? 1.4 : 1);
			p[i] = p_of(a, 24, b, 24);
		}
		assert_int_equal(hb_stats__holm(p, 100), 0);
		for (int i = 0; i < 100; i++)
			if ((p[i] < 0.01) != (i == 42))
				fail_msg("round %d, number %d: %g", round, i, p[i]);
	}
}

/* Against sums of fractions. */
static void test_binomial(void **state)
{
	static const struct {
		uint32_t n, k;
		double p, want;
	} rows[] = {
	    {10, 5, 0.5, 0.623046875},
	    {20, 20, 0.5, 9.53674316406e-07},
	    {1000, 600, 0.5, 1.36423207803e-10},
	    {100, 40, 0.25, 0.000686592207963},
	    {8, 0, 0.5, 1},
	    {7, 8, 0.5, 0},
	    {2000, 1, 0.125, 1},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		double got = hb_stats__binomial(rows[i].n, rows[i].k, rows[i].p);

		if (fabs(got - rows[i].want) > 1e-9 * rows[i].want)
			fail_msg("%u of %u: %g, not %g", rows[i].k, rows[i].n, got, rows[i].want);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_ranks),	 cmocka_unit_test(test_spread),
	    cmocka_unit_test(test_holm),	 cmocka_unit_test(test_interval),
	    cmocka_unit_test(test_false_alarms), cmocka_unit_test(test_binomial),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
