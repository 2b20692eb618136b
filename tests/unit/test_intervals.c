/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/intervals.h"

/* Against a plain array of ticks: every operation, on sets of random intervals. */
enum { TICKS = 400, ROUNDS = 300 };

static uint64_t state_ = 88172645463325252ULL;

static uint64_t next(uint64_t below)
{
	state_ ^= state_ << 13, state_ ^= state_ >> 7, state_ ^= state_ << 17;
	return state_ % below;
}

static void make(struct hb_ivs *s, uint8_t *tick)
{
	uint64_t n = next(20);

	memset(s, 0, sizeof(*s));
	memset(tick, 0, TICKS);
	for (uint64_t i = 0; i < n; i++) {
		uint64_t a = next(TICKS), b = next(4) ? a + next(30) : next(TICKS);

		if (b > TICKS)
			b = TICKS;
		hb_ivs__add(s, a, b);
		for (uint64_t t = a; t < b; t++)
			tick[t] = 1;
	}
	hb_ivs__join(s);
}

static void is(const struct hb_ivs *s, const uint8_t *tick)
{
	uint8_t got[TICKS] = {0};

	for (size_t i = 0; i < s->n; i++) {
		assert_true(s->v[i].begin < s->v[i].end);
		assert_true(!i || s->v[i - 1].end < s->v[i].begin);
		memset(got + s->v[i].begin, 1, s->v[i].end - s->v[i].begin);
	}
	assert_memory_equal(got, tick, TICKS);
}

static uint64_t sum(const uint8_t *a, uint64_t from, uint64_t to)
{
	uint64_t n = 0;

	for (uint64_t t = from; t < to; t++)
		n += a[t];
	return n;
}

static void one_round(void)
{
	uint8_t ta[TICKS], tb[TICKS], both[TICKS], only[TICKS], part[TICKS];
	uint64_t from = next(TICKS), to = from + next(TICKS - from);
	struct hb_ivs a, b, c = {0}, d = {0}, e = {0};

	make(&a, ta);
	make(&b, tb);
	for (int t = 0; t < TICKS; t++) {
		both[t] = ta[t] && tb[t];
		only[t] = ta[t] && !tb[t];
		part[t] = ta[t] && (uint64_t)t >= from && (uint64_t)t < to;
	}
	is(&a, ta);
	hb_ivs__and(&a, &b, &c);
	is(&c, both);
	hb_ivs__minus(&a, &b, &d);
	is(&d, only);
	hb_ivs__cut(&a, from, to, &e);
	is(&e, part);
	assert_int_equal(hb_ivs__length(&a), sum(ta, 0, TICKS));
	assert_int_equal(hb_ivs__within(&a, from, to), sum(ta, from, to));
	assert_int_equal(hb_ivs__common(&a, &b), sum(both, 0, TICKS));
	hb_ivs__free(&a);
	hb_ivs__free(&b);
	hb_ivs__free(&c);
	hb_ivs__free(&d);
	hb_ivs__free(&e);
}

static void as_ticks(void **state)
{
	for (int i = 0; i < ROUNDS; i++)
		one_round();
}

/* Given backwards. */
static void backwards(void **state)
{
	struct hb_ivs s = {0};

	for (uint64_t i = 100; i--;)
		hb_ivs__add(&s, i * 10, i * 10 + (i % 3 ? 5 : 10));
	hb_ivs__join(&s);
	assert_int_equal(hb_ivs__length(&s), 33 * 10 + 66 * 5 + 10);
	for (size_t i = 1; i < s.n; i++)
		assert_true(s.v[i - 1].end < s.v[i].begin);
	hb_ivs__free(&s);
}

static void edges(void **state)
{
	struct hb_ivs s = {0};

	hb_ivs__join(&s);
	assert_int_equal(hb_ivs__length(&s), 0);
	assert_int_equal(hb_ivs__within(&s, 0, UINT64_MAX), 0);
	hb_ivs__add(&s, 7, 7);
	hb_ivs__add(&s, 9, 3);
	assert_int_equal(s.n, 0);
	hb_ivs__add(&s, 0, UINT64_MAX);
	hb_ivs__join(&s);
	assert_true(hb_ivs__length(&s) == UINT64_MAX);
	assert_int_equal(hb_ivs__after(&s, UINT64_MAX), 1);
	hb_ivs__free(&s);
}

/* What comes in order is joined at once, and takes no more room than was asked for. */
static void in_order(void **state)
{
	struct hb_ivs a = {0}, b = {0};

	hb_ivs__reserve(&a, 200);
	assert_int_equal(a.cap, 200);
	for (uint64_t i = 0; i < 100; i++) {
		uint64_t begin = i * 10, end = begin + next(25);

		hb_ivs__append(&a, begin, end);
		hb_ivs__add(&b, begin, end);
	}
	hb_ivs__join(&b);
	assert_int_equal(a.n, b.n);
	assert_memory_equal(a.v, b.v, a.n * sizeof(*a.v));
	assert_int_equal(a.cap, 200);
	hb_ivs__fit(&a);
	assert_int_equal(a.cap, a.n);
	hb_ivs__append(&a, 2000, 2001);
	assert_int_equal(a.v[a.n - 1].begin, 2000);
	assert_false(a.oom || b.oom);
	hb_ivs__free(&a);
	hb_ivs__free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(as_ticks), cmocka_unit_test(backwards),
					   cmocka_unit_test(edges), cmocka_unit_test(in_order)};

	return cmocka_run_group_tests_name("intervals", tests, NULL, NULL);
}
