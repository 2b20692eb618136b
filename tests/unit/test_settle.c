/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* From findings that rest on too little to a plan: what it records, of whom, why, and for how much. */
#include "analysis_rig.h"
#include "analysis/model/model.h"
#include "analysis/patterns/findings.h"
#include "analysis/patterns/settle.h"

enum { ST_PY = 21, ST_LOOP = 22, ST_ODD = 23 };

static u32 py(struct rig *r, const char *func, const char *file)
{
	struct hb_loc l = {.func = hb_window_writer__string(r->w, func),
			   .file = hb_window_writer__string(r->w, file),
			   .lang = HB_LANG_PYTHON};

	return hb_window_writer__loc(r->w, &l);
}

static void python_stacks(struct rig *r)
{
	u32 f[8];

	f[0] = py(r, "<module>", "/srv/main.py");
	f[1] = py(r, "Engine.step", "/srv/engine.py");
	f[2] = py(r, "Kv.get", "/srv/kv.py");
	f[3] = py(r, "Queue.get", "/usr/lib/python3.11/queue.py");
	hb_window_writer__stack(r->w, 100, ST_PY, f, 4, HB_STACK_WHOLE);
	f[0] = py(r, "main", "/srv/main.py");
	for (int i = 1; i < 6; i++)
		f[i] = py(r, i < 5 ? "run" : "select", "/usr/lib/python3.11/selectors.py");
	hb_window_writer__stack(r->w, 100, ST_LOOP, f, 6, HB_STACK_WHOLE);
	f[0] = py(r, "Odd.one", "/srv/a b*/x[1].py");
	hb_window_writer__stack(r->w, 100, ST_ODD, f, 1, HB_STACK_WHOLE);
}

static void describe(struct rig *r)
{
	hb_window_writer__meta(r->w, "window_id", "first");
	hb_window_writer__meta(r->w, "boot_id", "boot");
	hb_window_writer__meta(r->w, "syscalls", "blocking");
	hb_window_writer__meta(r->w, "python", "stacks");
	hb_window_writer__meta(r->w, "layers", "auto");
	hb_window_writer__meta(r->w, "exceptions", "types");
	hb_window_writer__meta(r->w, "sample_hz", "99");
}

/* Started well before the window. */
static void procs(struct rig *r)
{
	struct hb_proc p = {.pid = 100, .ppid = 1, .nspid = 10, .how = HB_HOW_PRESENT, .start = 1000};

	p.exe = hb_window_writer__string(r->w, "/opt/bin/engine");
	hb_window_writer__proc(r->w, &p);
	p = (struct hb_proc){.pid = 200, .ppid = 100, .nspid = 20, .how = HB_HOW_FORKED, .start = 2000};
	hb_window_writer__proc(r->w, &p);
}

struct given {
	struct rig r;
	struct hb_window *w;
	struct hb_model *m;
	struct hb_findings *f;
};

static void begin(struct given *g, bool whole)
{
	g->r = rig_new("settle");
	rig_tables(&g->r);
	if (whole) {
		rig_rest(&g->r);
		rig_sleeps(&g->r);
		procs(&g->r);
		describe(&g->r);
	}
	python_stacks(&g->r);
	g->f = calloc(1, sizeof(*g->f));
	assert_non_null(g->f);
}

static void open_it(struct given *g)
{
	struct hb_error e = {0};

	g->w = rig_open(&g->r);
	g->m = hb_model__build(g->w, &e);
	if (!g->m)
		fail_msg("%s", e.text);
}

static void end(struct given *g)
{
	hb_findings__free(g->f);
	hb_model__free(g->m);
	rig_close(&g->r, g->w);
}

static struct hb_finding *found(struct given *g, const char *id, enum hb_confidence c, u32 stack)
{
	struct hb_draft *d = hb_findings__draft(g->f);

	assert_non_null(d);
	d->f.pattern = hb_patterns__find(id);
	assert_non_null(d->f.pattern);
	d->f.confidence = c;
	d->f.why = c == HB_CONFIDENCE_HIGH ? NULL : "it rests on few CPU samples";
	d->f.count = 2;
	d->f.worst[0].thread = hb_window__task_by_tid(g->w, 100);
	d->f.worst[0].stack = stack;
	d->f.n_worst = 1;
	return &d->f;
}

static struct hb_planfile *plan_of(struct given *g, u32 *n_open, struct hb_error *e)
{
	struct hb_settle_input in = {
	    .window = g->w, .file = "first.hbw", .model = g->m, .findings = g->f, .n_open = n_open};

	return hb_settle__plan(&in, e);
}

static struct hb_planfile *must_plan(struct given *g)
{
	struct hb_error e = {0};
	struct hb_planfile *p = plan_of(g, NULL, &e);

	if (!p)
		fail_msg("no plan: %s", e.text);
	return p;
}

static bool has(const struct hb_planfile *p, const char *option, const char *value)
{
	for (u32 i = 0; i < p->n_options; i++)
		if (strcmp(p->option[i].name, option) == 0 && strcmp(p->option[i].value, value) == 0)
			return true;
	return false;
}

static const struct hb_planfile_cost *cost(const struct hb_planfile *p, const char *what)
{
	for (u32 i = 0; i < p->n_costs; i++)
		if (strstr(p->cost[i].what, what))
			return &p->cost[i];
	fail_msg("no cost of: %s", what);
	return NULL;
}

static void a_thin_finding_becomes_a_plan(void **state)
{
	struct given g;
	struct hb_planfile *p;

	begin(&g, true);
	open_it(&g);
	found(&g, "P28", HB_CONFIDENCE_LOW, ST_PY);
	p = must_plan(&g);
	assert_string_equal(p->window_id, "first");
	assert_string_equal(p->window_file, "first.hbw");
	assert_string_equal(p->boot, "boot");
	assert_int_equal(p->n_processes, 1); /* 200 descends from it */
	assert_int_equal(p->process[0].pid, 100);
	assert_int_equal(p->process[0].start_ns, 1000);
	assert_string_equal(p->process[0].name, "engine");
	assert_true(has(p, "frequency", "997"));
	assert_true(has(p, "calls", "/srv/kv.py:Kv.get"));
	assert_true(has(p, "syscalls", "blocking"));
	assert_true(has(p, "duration", "15s")); /* 2 in 1 s: 30 in 15 */
	assert_int_equal(p->n_reasons, 1);
	assert_string_equal(p->reason[0].pattern, "P28");
	assert_string_equal(p->reason[0].confidence, "low");
	assert_string_equal(p->reason[0].why, "it rests on few CPU samples");
	assert_non_null(strstr(p->reason[0].records, "--frequency 997"));
	assert_non_null(strstr(p->reason[0].records, "Kv.get"));
	hb_planfile__free(p);
	end(&g);
}

static void what_is_sure_or_an_effect_needs_no_plan(void **state)
{
	struct hb_error e = {0};
	u32 n_open = 7;
	struct given g;
	struct hb_finding *x, *y;

	begin(&g, true);
	open_it(&g);
	x = found(&g, "P21", HB_CONFIDENCE_HIGH, ST_PY);
	y = found(&g, "P28", HB_CONFIDENCE_LOW, ST_PY);
	y->cause = x;
	assert_null(plan_of(&g, &n_open, &e));
	assert_int_equal(e.err, 0);
	assert_int_equal(n_open, 0);
	/* Open, but nothing to be recorded of it. */
	found(&g, "P32", HB_CONFIDENCE_MEDIUM, ST_PY);
	assert_null(plan_of(&g, &n_open, &e));
	assert_int_equal(e.err, 0);
	assert_int_equal(n_open, 1);
	end(&g);
}

/* Costs are what the rig's records say: 1000 launches of 500 ns, 10 switches of 200 ns, 5 ms of the recorder.
 */
static void costs_are_counted_or_unknown(void **state)
{
	const struct hb_planfile_cost *c;
	struct given g;
	struct hb_planfile *p;

	begin(&g, true);
	hb_window_writer__meta(g.r.w, "price_return_ns", "300");
	open_it(&g);
	found(&g, "P02", HB_CONFIDENCE_MEDIUM, ST_PY); /* the ends of launches */
	found(&g, "P23", HB_CONFIDENCE_MEDIUM, ST_PY); /* every system call */
	found(&g, "P15", HB_CONFIDENCE_LOW, ST_PY);    /* samples and calls */
	p = must_plan(&g);
	c = cost(p, "first window recorded");
	assert_true(c->known);
	assert_int_equal(c->ns_per_s, 1000 * 500 + 10 * 200);
	c = cost(p, "recorder");
	assert_true(c->known && c->ns_per_s == 5000000);
	c = cost(p, "ends of calls");
	assert_true(c->known);
	assert_int_equal(c->rate, 1000);
	assert_int_equal(c->price_ns, 300);
	assert_int_equal(c->ns_per_s, 300000);
	c = cost(p, "every system call");
	assert_false(c->known);
	assert_int_equal(c->ns_per_s, 0);
	assert_non_null(strstr(c->basis, "sleeps a second"));
	assert_true(c->price_ns == 0 && c->most_ns_per_s == 0); /* this window measured no prices */
	c = cost(p, "Python functions");
	assert_true(!c->known && c->price_ns == 0);
	c = cost(p, "997 Hz"); /* the rig has no price of a sample */
	assert_false(c->known);
	hb_planfile__free(p);
	end(&g);
}

static void the_price_of_samples_grows_with_their_number(void **state)
{
	struct hb_rec_price price = {.hits = 99, .price = 1000, .probe = UINT32_MAX};
	const struct hb_planfile_cost *c;
	struct given g;
	struct hb_planfile *p;

	begin(&g, true);
	price.hook = hb_window_writer__string(g.r.w, "sample");
	rig_put(&g.r, 999 * MS, g.r.main, HB_TYPE_price, &price);
	open_it(&g);
	found(&g, "P17", HB_CONFIDENCE_LOW, ST_PY);
	p = must_plan(&g);
	c = cost(p, "997 Hz");
	assert_true(c->known);
	assert_int_equal(c->rate, 997);
	assert_int_equal(c->ns_per_s, 997000);
	/* Not counted twice. */
	assert_int_equal(cost(p, "first window recorded")->ns_per_s, 1000 * 500 + 10 * 200);
	hb_planfile__free(p);
	end(&g);
}

/* Only its own price; without a measured one nothing is made up. */
static void a_price_that_was_not_measured_is_unknown(void **state)
{
	struct given g;
	struct hb_planfile *p;

	begin(&g, true);
	open_it(&g);
	found(&g, "P02", HB_CONFIDENCE_MEDIUM, ST_PY);
	p = must_plan(&g);
	assert_false(cost(p, "ends of calls")->known);
	hb_planfile__free(p);
	end(&g);
}

static void functions_are_those_near_the_end_of_the_stack(void **state)
{
	struct given g;
	struct hb_planfile *p;

	begin(&g, true);
	open_it(&g);
	found(&g, "P19", HB_CONFIDENCE_LOW, ST_LOOP);
	found(&g, "P12", HB_CONFIDENCE_LOW, ST_ODD);
	p = must_plan(&g);
	assert_true(has(p, "calls", "/usr/lib/python3.11/selectors.py:select"));
	assert_false(has(p, "calls", "/srv/main.py:main"));
	/* No path that a glob takes for something else. */
	assert_true(has(p, "calls", "*:Odd.one"));
	hb_planfile__free(p);
	end(&g);
}

/* A plan never records less than the first window did. */
static void nothing_is_taken_away(void **state)
{
	struct given g;
	struct hb_planfile *p;

	begin(&g, true);
	hb_window_writer__meta(g.r.w, "syscalls", "all");
	hb_window_writer__meta(g.r.w, "sample_hz", "4999");
	hb_window_writer__meta(g.r.w, "exceptions", "text");
	hb_window_writer__meta(g.r.w, "option.1", "calls *:Mine.own");
	hb_window_writer__meta(g.r.w, "option.2", "no-children");
	hb_window_writer__meta(g.r.w, "option.3", "field *:E.step self.x:len");
	hb_window_writer__meta(g.r.w, "option.4", "pid 100");
	hb_window_writer__meta(g.r.w, "option.5", "duration 1s");
	hb_window_writer__meta(g.r.w, "option.6", "");
	open_it(&g);
	found(&g, "P25", HB_CONFIDENCE_LOW, ST_PY);
	found(&g, "P22", HB_CONFIDENCE_LOW, ST_PY);
	p = must_plan(&g);
	assert_true(has(p, "syscalls", "all"));
	assert_true(has(p, "frequency", "4999"));
	assert_true(has(p, "exceptions", "text"));
	assert_true(has(p, "calls", "*:Mine.own"));
	assert_true(has(p, "field", "*:E.step self.x:len"));
	assert_true(has(p, "no-children", ""));
	assert_true(has(p, "duration", "15s"));
	assert_int_equal(p->n_reasons, 1); /* P22 would add nothing */
	assert_string_equal(p->reason[0].pattern, "P25");
	hb_planfile__free(p);
	end(&g);
}

/* What was asked for the first time is paid for already, and no reason for a second. */
static void what_the_first_window_had_is_not_new(void **state)
{
	struct hb_error e = {0};
	struct given g;
	struct hb_planfile *p;

	begin(&g, true);
	hb_window_writer__meta(g.r.w, "sample_hz", "997");
	hb_window_writer__meta(g.r.w, "option.1", "calls /srv/kv.py:Kv.get");
	hb_window_writer__meta(g.r.w, "option.2", "timed launch");
	open_it(&g);
	found(&g, "P28", HB_CONFIDENCE_LOW, ST_PY); /* samples, and calls of Kv.get */
	assert_null(plan_of(&g, NULL, &e));
	assert_int_equal(e.err, 0);
	found(&g, "P02", HB_CONFIDENCE_LOW, ST_PY); /* launches and graphs */
	p = must_plan(&g);
	assert_int_equal(p->n_reasons, 1);
	assert_string_equal(p->reason[0].pattern, "P02");
	assert_true(has(p, "timed", "launch,graph"));
	assert_true(has(p, "calls", "/srv/kv.py:Kv.get"));
	for (u32 i = 0; i < p->n_costs; i++)
		assert_null(strstr(p->cost[i].what, "Python"));
	hb_planfile__free(p);
	end(&g);
}

static void what_was_not_checked_is_planned_when_nothing_was_found(void **state)
{
	struct hb_not_checked engine = {.pattern = hb_patterns__find("P38"), .needs = HB_NEED_FIELD},
			      device = {.pattern = hb_patterns__find("P05"), .needs = HB_NEED_DEVICE};
	struct hb_error e = {0};
	struct given g;
	struct hb_planfile *p;

	begin(&g, true);
	open_it(&g);
	hb_findings__add_un(g.f, &device);
	assert_null(plan_of(&g, NULL, &e));
	snprintf(engine.text, sizeof(engine.text), "needs engine fields");
	hb_findings__add_un(g.f, &engine);
	p = must_plan(&g);
	assert_int_equal(p->n_reasons, 1);
	assert_string_equal(p->reason[0].pattern, "P38");
	assert_string_equal(p->reason[0].why, "needs engine fields");
	assert_null(p->reason[0].confidence);
	assert_true(has(p, "field", "*:Scheduler.schedule self.running:len"));
	hb_planfile__free(p);
	/* With a finding that is sure it is left alone. */
	found(&g, "P21", HB_CONFIDENCE_HIGH, ST_PY);
	assert_null(plan_of(&g, NULL, &e));
	end(&g);
}

static void a_window_without_a_target_is_said(void **state)
{
	struct hb_error e = {0};
	struct given g;

	begin(&g, false);
	open_it(&g);
	found(&g, "P28", HB_CONFIDENCE_LOW, ST_PY);
	assert_null(plan_of(&g, NULL, &e));
	assert_non_null(strstr(e.text, "imported"));
	end(&g);
}

/* Whatever stands in a window, the plan of it can be read again. */
static void hostile_windows_make_readable_plans(void **state)
{
	struct hb_error e = {0};
	struct given g;
	struct hb_planfile *p, *q;
	char *text = NULL;
	size_t size = 0;
	FILE *out;
	u32 f;

	begin(&g, true);
	hb_window_writer__meta(g.r.w, "sample_hz", "-7 Hz\033[31m");
	hb_window_writer__meta(g.r.w, "python", "everything");
	hb_window_writer__meta(g.r.w, "self_cpu_window_ns", "99999999999999999999999");
	hb_window_writer__meta(g.r.w, "host", "h\033\"\\");
	f = py(&g.r, "ev\033il\"\\", "/\n\"\\");
	hb_window_writer__stack(g.r.w, 100, 40, &f, 1, HB_STACK_WHOLE);
	open_it(&g);
	found(&g, "P28", HB_CONFIDENCE_LOW, 40);
	found(&g, "P21", HB_CONFIDENCE_LOW, 4711);
	p = must_plan(&g);
	out = open_memstream(&text, &size);
	assert_non_null(out);
	assert_int_equal(hb_planfile__print(p, out), 0);
	fclose(out);
	q = hb_planfile__parse("again", text, size, &e);
	if (!q)
		fail_msg("%s\n%s", e.text, text);
	assert_null(hb_planfile__get(q, "python"));
	assert_string_equal(hb_planfile__get(q, "frequency"), "997");
	hb_planfile__free(p);
	hb_planfile__free(q);
	free(text);
	end(&g);
}

/* Each word of each pattern's `record` is an option that a plan may hold. */
static void records_of_patterns_are_options(void **state)
{
	u32 n = 0;

	for (const struct hb_pattern *const *p = hb_patterns(); *p; p++) {
		char buf[512], *rest = buf, *word;

		snprintf(buf, sizeof(buf), "%s", (*p)->record ? (*p)->record : "");
		while ((word = strsep(&rest, ";"))) {
			struct hb_planfile *plan = hb_planfile__new();
			char *eq;

			word += strspn(word, " ");
			eq = strchr(word, '=');
			if (!*word) {
				hb_planfile__free(plan);
				continue;
			}
			assert_non_null(eq);
			*eq = 0;
			if (hb_planfile__set(plan, word, eq + 1))
				fail_msg("%s: %s", (*p)->id, word);
			if (eq[1] == '@')
				assert_true(strcmp(eq + 1, "@stack") == 0 || strcmp(eq + 1, "@waker") == 0);
			hb_planfile__free(plan);
			n++;
		}
	}
	assert_true(n > 20);
}

/* What was not counted has a price, and a limit where samples tell how long it can have taken: 4 of them in
 * system calls are 4
 * + 2 * 2 + 3 at most, each 1/99 s. */
static void uncounted_has_prices_and_limits(void **state)
{
	const struct hb_planfile_cost *c;
	struct hb_rec_sample x = {.weight = 10 * MS, .sysno = SYS_READ, .mode = HB_CPUMODE_KERNEL};
	struct given g;
	struct hb_planfile *p;

	begin(&g, true);
	hb_window_writer__meta(g.r.w, "price_syscall_ns", "100");
	hb_window_writer__meta(g.r.w, "price_entry_step_ns", "10000");
	hb_window_writer__meta(g.r.w, "price_entry_nop5_ns", "500");
	for (u32 i = 0; i < 3; i++) /* and one that the rig has */
		rig_put(&g.r, (500 + i) * MS, g.r.main, HB_TYPE_sample, &x);
	open_it(&g);
	found(&g, "P23", HB_CONFIDENCE_MEDIUM, ST_PY); /* every system call */
	found(&g, "P15", HB_CONFIDENCE_LOW, ST_PY);    /* calls */
	p = must_plan(&g);
	c = cost(p, "every system call");
	assert_false(c->known);
	assert_int_equal(c->price_ns, 700);
	assert_int_equal(c->most_ns_per_s, 14 * (11ULL * 1000000000 / 99));
	assert_non_null(strstr(c->basis, "so 71,428 a second are 5 % of a core"));
	assert_int_equal(c->ns_per_s, 0);
	c = cost(p, "Python functions");
	assert_true(!c->known && c->price_ns == 10000 && !c->most_ns_per_s);
	assert_non_null(strstr(c->basis, "from 5,000 to 100,000 calls a second on it is 5 % of a core"));
	hb_planfile__free(p);
	end(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_thin_finding_becomes_a_plan),
	    cmocka_unit_test(what_is_sure_or_an_effect_needs_no_plan),
	    cmocka_unit_test(costs_are_counted_or_unknown),
	    cmocka_unit_test(uncounted_has_prices_and_limits),
	    cmocka_unit_test(the_price_of_samples_grows_with_their_number),
	    cmocka_unit_test(a_price_that_was_not_measured_is_unknown),
	    cmocka_unit_test(functions_are_those_near_the_end_of_the_stack),
	    cmocka_unit_test(nothing_is_taken_away),
	    cmocka_unit_test(what_the_first_window_had_is_not_new),
	    cmocka_unit_test(what_was_not_checked_is_planned_when_nothing_was_found),
	    cmocka_unit_test(a_window_without_a_target_is_said),
	    cmocka_unit_test(hostile_windows_make_readable_plans),
	    cmocka_unit_test(records_of_patterns_are_options),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
