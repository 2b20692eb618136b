/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Windows compared: twins differ in nothing, planted changes are found by name, and what cannot be compared
 * is said. */
#include "analysis_rig.h"

#include <math.h>

#include "analysis/report/compare_private.h"

/* ---- windows of an engine ---- */

struct made { /* one window of it */
	const char *name;
	u64 seed;
	u32 steps;
	u64 step_ns;
	u32 launches; /* in a step */
	u64 lock_ns;  /* each step waits for a lock so long; 0: never */
	bool growing; /* the lock is waited for longer and longer, from nothing to that */
	bool no_sleeps;
	const char *cmdline, *exe, *python;
	const char *option; /* as typed */
	u64 lost;
};

static u64 state_of_noise;

/* About +-20 %, the same for the same seed. */
static u64 jitter(u64 ns)
{
	state_of_noise = state_of_noise * 6364136223846793005ULL + 1442695040888963407ULL;
	return ns * 8 / 10 + ns * 4 / 10 * (state_of_noise >> 40) / (1ULL << 24);
}

static void put_step(struct rig *r, const struct made *m, u64 *at, u64 lock)
{
	struct hb_rec_accel a = {.probe = P_LAUNCH};
	struct hb_rec_offcpu o = {
	    .sysno = SYS_FUTEX, .chankind = HB_CHAN_FUTEX, .chan = 0x7000, .state = HB_TSTATE_SLEEPING};

	if (lock) {
		o.dur = jitter(lock);
		*at += o.dur;
		rig_put(r, *at, r->main, HB_TYPE_offcpu, &o);
	}
	for (u32 i = 0; i < m->launches; i++)
		rig_put(r, *at += 2000, r->main, HB_TYPE_accel, &a);
	a = (struct hb_rec_accel){.probe = P_SYNC, .dur = jitter(m->step_ns), .flags = HB_AFLAG_TIMED};
	o = (struct hb_rec_offcpu){.dur = a.dur - 1000, .sysno = SYS_READ, .state = HB_TSTATE_SLEEPING};
	*at += a.dur;
	if (!m->no_sleeps)
		rig_put(r, *at - 500, r->main, HB_TYPE_offcpu, &o);
	rig_put(r, *at, r->main, HB_TYPE_accel, &a);
	*at += jitter(20000);
}

static struct hb_window *make(struct rig *r, const struct made *m)
{
	struct hb_proc p = {.pid = 100, .ppid = 1, .nspid = 10, .how = HB_HOW_PRESENT};
	struct hb_error e = {0};
	struct hb_window *w;
	u64 at = 1000;

	*r = rig_new(m->name);
	rig_tables(r);
	p.exe = hb_window_writer__string(r->w, m->exe ? m->exe : "/opt/bin/engine");
	p.cmdline = hb_window_writer__string(r->w, m->cmdline ? m->cmdline : "engine --port 8001");
	hb_window_writer__proc(r->w, &p);
	hb_window_writer__meta(r->w, "python", m->python ? m->python : "stacks");
	if (m->option)
		hb_window_writer__meta(r->w, "option.1", m->option);
	state_of_noise = m->seed;
	for (u32 i = 0; i < m->steps; i++)
		put_step(r, m, &at, m->growing ? m->lock_ns * i * i / m->steps / m->steps : m->lock_ns);
	if (m->lost) {
		struct hb_loss_row lost = {
		    .cause = HB_LOSS_RING_FULL, .type = HB_TYPE_accel, .cpu = 1, .count = m->lost};

		hb_window_writer__loss(r->w, &lost);
	}
	if (hb_window_writer__finish(r->w, START + at, &e))
		fail_msg("%s", e.text);
	w = hb_window__open(r->path, &e);
	if (!w)
		fail_msg("%s", e.text);
	return w;
}

static const struct made plain = {
    .name = "cmp-a", .seed = 1, .steps = 400, .step_ns = 3000000, .launches = 5};

struct both {
	struct rig r[2];
	struct hb_window *w[2];
	struct hb_compare *c;
};

static struct both compare(struct made a, struct made b)
{
	struct both x;
	struct hb_error e = {0};

	b.name = "cmp-b";
	x.w[0] = make(&x.r[0], &a);
	x.w[1] = make(&x.r[1], &b);
	x.c = hb_compare__new(x.w[0], "a.hbw", x.w[1], "b.hbw", NULL, &e);
	if (!x.c)
		fail_msg("%s", e.text);
	return x;
}

static void done(struct both *x)
{
	hb_compare__free(x->c);
	for (int k = 0; k < 2; k++)
		rig_close(&x->r[k], x->w[k]);
}

static const struct hb_number *number(const struct hb_compare *c, enum hb_usage_kind kind, const char *name,
				      enum hb_metric m)
{
	for (u32 i = 0; i < c->n; i++)
		if (c->pair[i].kind == kind && strcmp(c->pair[i].name, name) == 0)
			return &c->pair[i].number[m];
	fail_msg("no row %s", name);
	return NULL;
}

static const struct hb_caution *caution(const struct hb_compare *c, enum hb_caution_kind kind)
{
	for (u32 i = 0; i < c->n_cautions; i++)
		if (c->caution[i].kind == kind)
			return &c->caution[i];
	return NULL;
}

static void near(double is, double should, double part)
{
	if (fabs(is - should) > part * should)
		fail_msg("%g is not about %g", is, should);
}

/* ---- what is asked of it ---- */

/* Ten pairs of the same engine: of the same length, and of others. */
static void test_twins_are_silent(void **state)
{
	for (u64 i = 0; i < 10; i++) {
		struct made b = plain;
		struct both x;

		b.seed = 100 + i;
		b.steps = 350 + 10 * (u32)i;
		x = compare(plain, b);
		assert_true(x.c->by_step);
		assert_int_equal(x.c->slices[0].n, HB_SLICES);
		assert_true(x.c->n_numbers >= 8);
		for (u32 k = 0; k < x.c->n; k++)
			if (x.c->pair[k].changed)
				fail_msg("twin %d: %s has changed", (int)i, x.c->pair[k].name);
		assert_int_equal(x.c->n_changed, 0);
		assert_int_equal(x.c->n_cautions, 0);
		done(&x);
	}
}

static void test_longer_steps(void **state)
{
	struct made b = plain;
	struct both x;
	const struct hb_number *n;

	b.seed = 2;
	b.step_ns = 3600000;
	x = compare(plain, b);
	n = number(x.c, HB_USAGE_STEP, "length", HB_METRIC_TIME);
	assert_int_equal(n->change, HB_CHANGE_MORE);
	near(n->b.mean - n->a.mean, 600000, 0.1);
	assert_true(n->difference.low < 600000 && n->difference.high > 600000 && n->difference.low > 0);
	assert_true(n->p < HB_COMPARE_LEVEL);
	assert_int_equal(number(x.c, HB_USAGE_CALL, "cudaStreamSynchronize", HB_METRIC_LENGTH)->change,
			 HB_CHANGE_MORE);
	assert_int_equal(number(x.c, HB_USAGE_CALL, "cudaStreamSynchronize", HB_METRIC_RATE)->change,
			 HB_CHANGE_CHANCE);
	assert_int_equal(number(x.c, HB_USAGE_CALL, "cuLaunchKernel", HB_METRIC_RATE)->change,
			 HB_CHANGE_CHANCE);
	assert_true(x.c->pair[0].changed && x.c->pair[0].kind == HB_USAGE_STEP); /* the steps come first */
	done(&x);
	/* And the other way round. */
	x = compare(b, plain);
	assert_int_equal(number(x.c, HB_USAGE_STEP, "length", HB_METRIC_TIME)->change, HB_CHANGE_LESS);
	done(&x);
}

/* Surely different, and not worth a word. */
static void test_small_change(void **state)
{
	struct made b = plain;
	struct hb_compare_opts o = {.least = 0.01};
	struct both x;

	b.seed = 3;
	b.steps = 4000;
	b.step_ns = 3090000;
	x = compare(plain, b);
	assert_true(number(x.c, HB_USAGE_STEP, "length", HB_METRIC_TIME)->change != HB_CHANGE_MORE);
	hb_compare__free(x.c);
	x.c = hb_compare__new(x.w[0], "a.hbw", x.w[1], "b.hbw", &o, NULL);
	assert_non_null(x.c);
	assert_true(x.c->least == 0.01);
	done(&x);
}

static void test_new_lock(void **state)
{
	struct made b = plain;
	struct both x;
	const struct hb_number *n;

	b.seed = 4;
	b.lock_ns = 500000;
	x = compare(plain, b);
	for (u32 i = 0; i < x.c->n; i++)
		if (strstr(x.c->pair[i].name, "futex (futex)")) {
			n = &x.c->pair[i].number[HB_METRIC_TIME];
			assert_int_equal(x.c->pair[i].kind, HB_USAGE_WAIT);
			assert_int_equal(n->change, HB_CHANGE_MORE);
			assert_true(n->a.mean == 0);
			near(n->b.mean, 500000, 0.1);
			near(x.c->pair[i].number[HB_METRIC_RATE].b.mean, 1, 0.1);
			done(&x);
			return;
		}
	fail_msg("no row of the lock");
}

/* A window that differs as much from itself, early and late, tells nothing of a change. */
static void test_drift(void **state)
{
	struct made b = plain;
	struct both x;

	b.seed = 5;
	b.lock_ns = 3000000;
	b.growing = true;
	x = compare(plain, b);
	assert_int_equal(number(x.c, HB_USAGE_STEP, "length", HB_METRIC_TIME)->change, HB_CHANGE_DRIFT);
	done(&x);
}

static void test_more_launches(void **state)
{
	struct made b = plain;
	struct both x;
	const struct hb_number *n;

	b.seed = 6;
	b.launches = 8;
	x = compare(plain, b);
	n = number(x.c, HB_USAGE_CALL, "cuLaunchKernel", HB_METRIC_RATE);
	assert_int_equal(n->change, HB_CHANGE_MORE);
	near(n->a.median, 5, 0.01);
	near(n->b.median, 8, 0.01);
	assert_false(number(x.c, HB_USAGE_CALL, "cuLaunchKernel", HB_METRIC_TIME)->present); /* not timed */
	done(&x);
}

/* ---- what cannot be compared ---- */

static void test_other_target(void **state)
{
	struct made b = plain;
	struct both x;

	b.cmdline = "engine --port 9123"; /* numbers do not count */
	x = compare(plain, b);
	assert_null(caution(x.c, HB_CAUTION_TARGET));
	done(&x);
	b.cmdline = "engine --port 8001 --eager";
	x = compare(plain, b);
	assert_non_null(caution(x.c, HB_CAUTION_TARGET));
	assert_false(caution(x.c, HB_CAUTION_TARGET)->breaks);
	assert_non_null(strstr(caution(x.c, HB_CAUTION_TARGET)->text, "arguments"));
	done(&x);
	b.exe = "/opt/bin/other";
	x = compare(plain, b);
	assert_non_null(caution(x.c, HB_CAUTION_TARGET));
	assert_non_null(strstr(caution(x.c, HB_CAUTION_TARGET)->text, "program"));
	done(&x);
}

static void test_options_loss_length(void **state)
{
	struct made b = plain;
	struct both x;

	b.option = "timed allocations";
	x = compare(plain, b);
	assert_string_equal(caution(x.c, HB_CAUTION_OPTIONS)->text,
			    "only B was recorded with --timed allocations");
	assert_int_equal(x.c->n_cautions, 1);
	done(&x);
	b.option = "pid 4711";
	x = compare(b, plain);
	assert_int_equal(x.c->n_cautions, 0);
	done(&x);
	b.python = "off";
	b.lost = 5000;
	b.steps = 40;
	x = compare(plain, b);
	assert_non_null(strstr(caution(x.c, HB_CAUTION_OPTIONS)->text, "python: A stacks, B off"));
	assert_true(caution(x.c, HB_CAUTION_LOSS)->breaks); /* it lost more than it has */
	assert_non_null(caution(x.c, HB_CAUTION_LENGTH));
	done(&x);
}

static void test_not_recorded(void **state)
{
	struct made a = plain, b = plain;
	struct both x;

	b.no_sleeps = true;
	x = compare(a, b);
	assert_non_null(strstr(caution(x.c, HB_CAUTION_RECORDS)->text, "B has no scheduler events"));
	for (u32 i = 0; i < x.c->n; i++)
		if (x.c->pair[i].kind == HB_USAGE_WAIT) {
			assert_int_equal(x.c->pair[i].number[HB_METRIC_TIME].change, HB_CHANGE_NOT_COMPARED);
			assert_false(x.c->pair[i].changed);
		}
	done(&x);
}

/* Too short for slices of steps: by time, and that is said. */
static void test_few_steps(void **state)
{
	struct made b = plain;
	struct both x;

	b.steps = 6;
	x = compare(plain, b);
	assert_false(x.c->by_step);
	assert_non_null(caution(x.c, HB_CAUTION_SLICES));
	done(&x);
}

static void test_empty(void **state)
{
	struct both x;
	struct hb_error e = {0};
	FILE *out = tmpfile();

	assert_non_null(out);
	x.r[0] = rig_new("cmp-empty");
	x.w[0] = rig_open(&x.r[0]);
	x.w[1] = make(&x.r[1], &plain);
	x.c = hb_compare__new(x.w[0], "a.hbw", x.w[1], "b.hbw", NULL, &e);
	assert_non_null(x.c);
	assert_int_equal(x.c->n_changed, 0);
	assert_int_equal(hb_compare__text(x.c, out, true, true, &e), 0);
	assert_int_equal(hb_compare__json(x.c, out, &e), 0);
	fclose(out);
	done(&x);
}

/* Time is in one slice, or split at its borders, never lost or counted twice. */
static void test_usage_sums(void **state)
{
	struct rig r;
	struct made m = plain;
	struct hb_window *w;
	struct hb_host *h;
	struct hb_slices s;
	struct hb_usage *u;
	struct hb_error e = {0};
	const struct hb_usage_row *row;
	u64 sum = 0;

	m.name = "cmp-usage";
	w = make(&r, &m);
	h = hb_host__build(w, NULL, &e);
	assert_non_null(h);
	hb_slices__of_time(&s, START, hb_window__info(w)->end_ts);
	u = hb_usage__build(h, NULL, &s, NULL, &e);
	assert_non_null(u);
	row = hb_usage__find(u, HB_USAGE_CALL, "cudaStreamSynchronize");
	assert_non_null(row);
	assert_int_equal(row->count, 400);
	state_of_noise = m.seed;
	for (u32 i = 0; i < 400; i++) {
		sum += jitter(m.step_ns);
		jitter(20000);
	}
	assert_int_equal(row->ns, sum);
	sum = 0;
	for (u32 i = 0; i < s.n; i++)
		sum += row->in_ns[i];
	assert_int_equal(row->ns, sum);
	assert_null(hb_usage__find(u, HB_USAGE_CALL, "nothing"));
	hb_usage__free(u);
	hb_host__free(h);
	rig_close(&r, w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_usage_sums),
	    cmocka_unit_test(test_twins_are_silent),
	    cmocka_unit_test(test_longer_steps),
	    cmocka_unit_test(test_small_change),
	    cmocka_unit_test(test_new_lock),
	    cmocka_unit_test(test_drift),
	    cmocka_unit_test(test_more_launches),
	    cmocka_unit_test(test_other_target),
	    cmocka_unit_test(test_options_loss_length),
	    cmocka_unit_test(test_not_recorded),
	    cmocka_unit_test(test_few_steps),
	    cmocka_unit_test(test_empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
