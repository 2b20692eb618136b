/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Whose work the device did, where only stacks tell; spans of a profiler are held to traces
 * (test_analyze_oracles.py). */
#include "patterns_rig.h"
#include "analysis/model/operators.h"

enum { ST_ATTENTION = 31, ST_MLP, ST_SAMPLE, ST_PLAIN, ST_OTHER_LAYER };

static struct hb_operators *build(struct pat *p)
{
	struct hb_error e = {0};
	struct hb_operators *o;

	pat_run(p);
	o = hb_operators__build(hb_host__timeline(p->host), p->d, &e);
	assert_non_null(o);
	return o;
}

static const struct hb_operator *named(struct pat *p, const struct hb_operators *o, const char *name,
				       u32 basis)
{
	const struct hb_operator *r;

	for (u32 i = 0; (r = hb_operators__at(o, i)); i++)
		if (strcmp(hb_window__string(p->w, r->name), name) == 0 && r->basis == basis)
			return r;
	fail_msg("no operator %s", name);
	return NULL;
}

static void stacks(struct pat *p)
{
	pat_stack(p, 100, ST_ATTENTION, "llama.py", "main", "EngineCore.step", "Model.forward",
		  "Attention.forward", "linear", NULL);
	pat_stack(p, 100, ST_MLP, "llama.py", "main", "EngineCore.step", "Model.forward", "Mlp.forward",
		  NULL);
	pat_stack(p, 100, ST_SAMPLE, "runner.py", "main", "EngineCore.step", "Runner.sample", "argmax", NULL);
	pat_stack(p, 100, ST_PLAIN, "script.py", "main", "warm_up", NULL);
	pat_stack(p, 100, ST_OTHER_LAYER, "other.py", "main", "EngineCore.step", "Draft.forward",
		  "Attention.forward", NULL);
}

static void launch(struct pat *p, u64 at, u64 end, u32 stack)
{
	PCALL(p, p->h.main, Q_LAUNCH, at, end, .gx = 8, .handle = 7, .stack = stack);
}

static void by_frames(void **state)
{
	struct pat p = pat_new("operators-frames");
	const struct hb_operator *r;
	struct hb_operators *o;

	stacks(&p);
	for (u64 t = 0; t < 10 * STEP; t += STEP) {
		launch(&p, t, t + 10 * US, ST_ATTENTION);
		launch(&p, t + 20 * US, t + 30 * US, ST_ATTENTION);
		launch(&p, t + 40 * US, t + 50 * US, ST_MLP);
		launch(&p, t + 60 * US, t + 70 * US, ST_ATTENTION); /* the next layer's */
		PCALL(&p, p.h.main, Q_STREAM_SYNC, t + 100 * US, t + 4 * MS, .flags = HB_AFLAG_RET,
		      .stack = ST_SAMPLE);
		launch(&p, t + 4 * MS + 900 * US, t + 5 * MS, ST_SAMPLE); /* less than 1 ms after the wait */
		launch(&p, t + 7 * MS, t + 8 * MS, ST_PLAIN);
	}
	launch(&p, 200 * MS, 201 * MS, 0);
	o = build(&p);
	assert_int_equal(hb_operators__count(o), 4);
	r = named(&p, o, "Attention.forward", HB_OPERATOR_BY_STACK);
	assert_int_equal(r->host.count, 20);
	assert_int_equal(r->host.total, 10 * (30 + 10) * US);
	assert_int_equal(r->host.max, 30 * US);
	assert_int_equal(r->launches, 30);
	assert_int_equal(r->waited_ns, 0);
	assert_int_equal(r->device.count, 0); /* not recorded, which is not zero */
	assert_int_equal(named(&p, o, "Mlp.forward", HB_OPERATOR_BY_STACK)->host.count, 10);
	r = named(&p, o, "Runner.sample", HB_OPERATOR_BY_STACK);
	assert_int_equal(r->host.count, 10);
	assert_int_equal(r->host.p50, 4900 * US);
	assert_int_equal(r->launches, 10);
	assert_int_equal(r->waited_ns, 10 * 3900 * US);
	assert_int_equal(named(&p, o, "warm_up", HB_OPERATOR_BY_STACK)->host.count, 10);
	assert_int_equal(hb_operators__counts(o)->calls, 71);
	assert_int_equal(hb_operators__counts(o)->without, 1);
	hb_operators__free(o);
	pat_end(&p);
}

/* The same function from another place, and after a pause, is another execution. */
static void apart(void **state)
{
	struct pat p = pat_new("operators-apart");
	struct hb_operators *o;

	stacks(&p);
	launch(&p, 0, 10 * US, ST_ATTENTION);
	launch(&p, 20 * US, 30 * US, ST_OTHER_LAYER); /* another file's: another operator */
	launch(&p, 40 * US, 50 * US, ST_ATTENTION);
	launch(&p, 50 * US + HB_OPERATOR_APART_NS, 2 * MS, ST_ATTENTION);
	launch(&p, 2 * MS + HB_OPERATOR_APART_NS - 1, 4 * MS, ST_ATTENTION);
	o = build(&p);
	assert_int_equal(hb_operators__count(o), 2);
	assert_int_equal(hb_operators__at(o, 0)->host.count, 3);
	assert_int_equal(hb_operators__at(o, 1)->host.count, 1);
	hb_operators__free(o);
	pat_end(&p);
}

/* Where calls of the function itself were recorded, they are its executions. */
static void by_calls(void **state)
{
	struct pat p = pat_new("operators-calls");
	const struct hb_operator *r;
	struct hb_operators *o;
	struct hb_loc l;

	stacks(&p);
	l = (struct hb_loc){.func = hb_window_writer__string(p.h.r.w, "Attention.forward"),
			    .file = hb_window_writer__string(p.h.r.w, "llama.py"),
			    .line = 1,
			    .lang = HB_LANG_PYTHON};
	for (u64 i = 0; i < 5; i++) { /* 100 us each, back to back: by stacks they would be one */
		struct hb_rec_py_call c = {
		    .dur = 100 * US, .flags = HB_PYCALL_TIMED, .func = hb_window_writer__loc(p.h.r.w, &l)};

		launch(&p, i * 100 * US + 10 * US, i * 100 * US + 20 * US, ST_ATTENTION);
		launch(&p, i * 100 * US + 30 * US, i * 100 * US + 40 * US, ST_ATTENTION);
		pat_put(&p, (i + 1) * 100 * US, p.h.main, HB_TYPE_py_call, &c);
	}
	launch(&p, 900 * US, 910 * US, ST_ATTENTION); /* its call had not returned, or was not seen */
	o = build(&p);
	r = named(&p, o, "Attention.forward", HB_OPERATOR_BY_CALL);
	assert_int_equal(r->host.count, 5);
	assert_int_equal(r->host.min, 100 * US);
	assert_int_equal(r->host.max, 100 * US);
	assert_int_equal(r->launches, 10);
	assert_int_equal(named(&p, o, "Attention.forward", HB_OPERATOR_BY_STACK)->host.count, 1);
	hb_operators__free(o);
	pat_end(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(by_frames),
	    cmocka_unit_test(apart),
	    cmocka_unit_test(by_calls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
