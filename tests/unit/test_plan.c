// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What the plan chooses for real processes that have the libraries of tests/unit/fixtures mapped. No root
 * needed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture/probes/probes.h"

#define DRV	    "libhbdrv.so.1"
#define RT	    "libhbrt.so.1"
#define RT_RENAMED  "libhbrt.e8e8b82a.so.1"
#define DRV_NOTHING "libhbdrv-stripped.so.1"

static const char table[] = "api demo-driver\n"
			    "libhbdrv*.so*  drvLaunch  launch  driver  entry   nothrow  function=a0\n"
			    "libhbdrv*.so*  drvCopy    copy    driver  return  nothrow  bytes=a2\n"
			    "libhbdrv*.so*  drvGraph   graph   driver  return  nothrow  graph=a0\n"
			    "libhbdrv*.so*  drvAlias   graph   driver  return  nothrow  graph=a0\n"
			    "libhbdrv*.so*  drvIfunc   other   driver  entry   nothrow\n"
			    "libhbdrv*.so*  drvElsewhere  other  driver  entry  nothrow\n"
			    "libhbdrv*.so*  drvMissing    other  driver  entry  nothrow\n"
			    "libhbdrv*.so*  drvNop     sync    driver  return  off  nothrow\n"
			    "libhbdrv*.so*  drvWait    sync    driver  return  nothrow\n"
			    "api demo-runtime\n"
			    "libhbrt.so*    rtLaunch   launch  runtime entry   nothrow  function=a0\n"
			    "libhbrt.so*    rtHidden   launch  runtime entry   nothrow  function=a0\n"
			    "libhbrt.so*    rtCopy     copy    runtime return  nothrow  bytes=a2\n";

/* ---- processes with libraries ---- */

static void *map(const char *name)
{
	char exe[PATH_MAX], path[PATH_MAX + 64];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

	if (n <= 0)
		return NULL;
	exe[n] = 0;
	snprintf(path, sizeof(path), "%s/fixtures/%s", dirname(exe), name);
	return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

/* A child that has mapped these libraries and sleeps; the reading end of its pipe is the handle. */
static pid_t child_with(const char *const *libs)
{
	int up[2];
	char c = 0;
	pid_t pid;

	assert_int_equal(pipe(up), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (; *libs; libs++)
			if (!map(*libs))
				_exit(1);
		if (write(up[1], "x", 1) != 1)
			_exit(2);
		for (;;)
			pause();
	}
	close(up[1]);
	assert_int_equal(read(up[0], &c, 1), 1);
	close(up[0]);
	return pid;
}

#define CHILD(...) child_with((const char *const[]){__VA_ARGS__, NULL})

struct planned {
	struct hb_tables *tables;
	struct hb_plan *plan;
	pid_t pid;
};

static struct planned plan_with(const char *text, const struct hb_plan_opts *o)
{
	struct planned t = {.tables = hb_tables__new()};
	struct hb_error e = {0};

	assert_non_null(t.tables);
	if (hb_tables__add_text(t.tables, "test", text, strlen(text), &e))
		fail_msg("%s", e.text);
	t.plan = hb_plan__new(t.tables, o);
	assert_non_null(t.plan);
	return t;
}

static int add(struct planned *t, pid_t pid)
{
	struct hb_error e = {0};
	struct hb_process *proc = hb_process__read((u32)pid, &e);
	int n;

	assert_non_null(proc);
	n = hb_plan__add_process(t->plan, proc, &e);
	if (n < 0)
		fail_msg("%s", e.text);
	hb_process__free(proc);
	t->pid = pid;
	return n;
}

static struct planned plan_of(pid_t pid, enum hb_layers layers)
{
	struct hb_plan_opts o = {.layers = layers};
	struct planned t = plan_with(table, &o);

	add(&t, pid);
	return t;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void done(struct planned *t, bool kill_child)
{
	hb_plan__free(t->plan);
	hb_tables__free(t->tables);
	if (kill_child)
		end(t->pid);
}

/* The chosen site of a symbol in the process; NULL when it is not chosen. */
static const struct hb_site *site_of(struct planned *t, const char *symbol)
{
	u32 n;
	const struct hb_plan_file *const *files = hb_plan__files_of(t->plan, (u32)t->pid, &n);

	for (u32 i = 0; i < n; i++)
		for (u32 k = 0; k < files[i]->n_sites; k++)
			if (!strcmp(files[i]->sites[k].symbol, symbol))
				return &files[i]->sites[k];
	return NULL;
}

static bool said(const struct planned *t, const char *words)
{
	u32 n;
	const char *const *r = hb_plan__remarks(t->plan, &n);

	for (u32 i = 0; i < n; i++)
		if (strstr(r[i], words))
			return true;
	return false;
}

static const char *why_not(const struct planned *t, const char *symbol)
{
	u32 n;
	const struct hb_refusal *r = hb_plan__refusals(t->plan, &n);

	for (u32 i = 0; i < n; i++)
		if (!strcmp(r[i].symbol, symbol))
			return r[i].why;
	return NULL;
}

/* ---- layers ---- */

static void auto_sees_each_operation_once(void **state)
{
	struct planned t = plan_of(CHILD(DRV, RT), HB_LAYERS_AUTO);

	assert_non_null(site_of(&t, "drvLaunch"));
	assert_null(site_of(&t, "rtLaunch"));
	assert_non_null(site_of(&t, "rtCopy"));
	assert_null(site_of(&t, "drvCopy"));
	assert_non_null(site_of(&t, "drvWait")); /* the runtime has nothing of that class */
	assert_true(said(&t, "demo: launch, graph, sync taken at the driver (libhbdrv.so.1); "
			     "copy at the runtime (libhbrt.so.1)"));
	done(&t, true);
}

static void runtime_launches_without_a_driver(void **state)
{
	/* The fixture needs its driver; a table that does not know the driver's file stands for none. */
	static const char only_rt[] =
	    "api demo-driver\nlibelsewhere.so*  drvLaunch  launch  driver  entry  nothrow\n"
	    "api demo-runtime\nlibhbrt.so*  rtLaunch  launch  runtime  entry  nothrow\n";
	struct hb_plan_opts o = {.layers = HB_LAYERS_AUTO};
	struct planned t = plan_with(only_rt, &o);
	u32 n;

	add(&t, CHILD(RT));
	assert_non_null(site_of(&t, "rtLaunch"));
	hb_plan__check_files(t.plan, (u32)t.pid, &n);
	assert_int_equal(n, 0);
	done(&t, true);
}

static void driver_alone_is_covered_and_said(void **state)
{
	struct planned t = plan_of(CHILD(DRV), HB_LAYERS_AUTO);

	assert_non_null(site_of(&t, "drvLaunch"));
	assert_non_null(site_of(&t, "drvCopy"));
	assert_true(said(&t, "no demo runtime library is mapped"));
	done(&t, true);
	t = plan_of(CHILD(DRV), HB_LAYERS_RUNTIME);
	assert_null(site_of(&t, "drvCopy"));
	assert_true(said(&t, "--layers runtime sees nothing"));
	done(&t, true);
}

static void explicit_layers(void **state)
{
	struct planned t = plan_of(CHILD(DRV, RT), HB_LAYERS_DRIVER);

	assert_non_null(site_of(&t, "drvCopy"));
	assert_null(site_of(&t, "rtCopy"));
	done(&t, true);
	t = plan_of(CHILD(DRV, RT), HB_LAYERS_RUNTIME);
	assert_non_null(site_of(&t, "rtLaunch"));
	assert_false(site_of(&t, "rtLaunch")->ret);
	assert_null(site_of(&t, "drvLaunch"));
	done(&t, true);
	t = plan_of(CHILD(DRV, RT), HB_LAYERS_BOTH);
	assert_non_null(site_of(&t, "drvLaunch"));
	assert_false(site_of(&t, "drvLaunch")->ret);
	assert_true(site_of(&t, "rtLaunch")->ret); /* an end, to enclose driver calls */
	assert_non_null(site_of(&t, "drvCopy"));
	assert_non_null(site_of(&t, "rtCopy"));
	done(&t, true);
}

static void one_layer_is_taken_whatever_is_asked_for(void **state)
{
	static const char one[] = "api lonely\nlibhbdrv.so*  drvCopy  copy  driver  return  nothrow\n";
	struct hb_plan_opts o = {.layers = HB_LAYERS_RUNTIME};
	struct planned t = plan_with(one, &o);

	add(&t, CHILD(DRV));
	assert_non_null(site_of(&t, "drvCopy"));
	done(&t, true);
}

/* ---- functions ---- */

static void refusals_have_reasons(void **state)
{
	struct planned t = plan_of(CHILD(DRV), HB_LAYERS_AUTO);
	u32 n;

	assert_non_null(why_not(&t, "drvIfunc"));
	assert_non_null(why_not(&t, "drvElsewhere"));
	assert_true(strlen(why_not(&t, "drvElsewhere")) > 5);
	assert_string_not_equal(why_not(&t, "drvElsewhere"), why_not(&t, "drvIfunc"));
	assert_null(why_not(&t, "drvLaunch"));
	assert_string_equal(hb_plan__absent(t.plan, hb_plan__files(t.plan, &n)), "drvMissing");
	done(&t, true);
}

static void rows_that_are_off_stay_off(void **state)
{
	struct hb_plan_opts all = {.all_rows = true};
	struct planned t = plan_of(CHILD(DRV), HB_LAYERS_AUTO);

	assert_null(site_of(&t, "drvNop"));
	done(&t, true);
	t = plan_with(table, &all);
	add(&t, CHILD(DRV));
	assert_non_null(site_of(&t, "drvNop"));
	done(&t, true);
}

static void aliases_are_one_probe(void **state)
{
	struct planned t = plan_of(CHILD(DRV), HB_LAYERS_AUTO);

	assert_non_null(site_of(&t, "drvGraph_v2")); /* by the row for drvGraph */
	assert_null(site_of(&t, "drvAlias"));
	done(&t, true);
}

static void no_returns_means_entries_only(void **state)
{
	struct hb_plan_opts o = {.layers = HB_LAYERS_BOTH, .no_returns = true};
	struct planned t = plan_with(table, &o);
	u32 n;
	const struct hb_plan_file *files;

	add(&t, CHILD(DRV, RT));
	files = hb_plan__files(t.plan, &n);
	assert_int_equal(n, 2);
	for (u32 i = 0; i < n; i++)
		for (u32 k = 0; k < files[i].n_sites; k++) {
			assert_false(files[i].sites[k].ret);
			assert_int_equal(hb_plan__desc(t.plan, files[i].sites[k].probe)->timed, 0);
		}
	done(&t, true);
}

static void descriptors_follow_the_rows(void **state)
{
	struct planned t = plan_of(CHILD(DRV, RT), HB_LAYERS_BOTH);
	const struct hb_site *s = site_of(&t, "rtCopy");
	const struct hb_probe_desc *d = hb_plan__desc(t.plan, s->probe);

	assert_int_equal(d->cls, HB_CLASS_COPY);
	assert_int_equal(d->layer, HB_LAYER_RUNTIME);
	assert_int_equal(d->timed, 1);
	assert_int_equal(d->flags, 0);
	assert_int_equal(d->args[HB_SLOT_BYTES].src, HB_SRC_REG);
	assert_int_equal(d->args[HB_SLOT_BYTES].n, 2);
	assert_null(hb_plan__desc(t.plan, 0));
	assert_null(hb_plan__desc(t.plan, hb_plan__n_probes(t.plan) + 1));
	done(&t, true);
}

/* ---- files ---- */

static void ids_are_dense_and_shared_by_equal_processes(void **state)
{
	struct planned t = plan_of(CHILD(DRV, RT), HB_LAYERS_AUTO);
	pid_t first = t.pid, second = CHILD(DRV, RT);
	u32 n, probes = hb_plan__n_probes(t.plan), seen = 0;
	const struct hb_plan_file *files = hb_plan__files(t.plan, &n);

	for (u32 i = 0; i < n; i++)
		for (u32 k = 0; k < files[i].n_sites; k++)
			assert_int_equal(files[i].sites[k].probe, ++seen);
	assert_int_equal(seen, probes);
	assert_int_equal(add(&t, second), 0);
	assert_int_equal(hb_plan__n_probes(t.plan), probes);
	assert_int_equal(add(&t, first), 0);
	end(second);
	done(&t, true);
}

/* Another set of libraries, another choice: the first process keeps its own. */
static void choices_are_per_process(void **state)
{
	struct planned t = plan_of(CHILD(DRV, RT), HB_LAYERS_AUTO);
	pid_t both = t.pid, alone = CHILD(DRV);

	assert_true(add(&t, alone) > 0);
	assert_non_null(site_of(&t, "drvCopy"));
	t.pid = both;
	assert_null(site_of(&t, "drvCopy"));
	end(alone);
	done(&t, true);
}

static void copies_of_a_runtime_are_both_probed(void **state)
{
	struct planned t = plan_of(CHILD(DRV, RT, RT_RENAMED), HB_LAYERS_AUTO);
	u32 n, copies = 0;
	const struct hb_plan_file *const *files = hb_plan__files_of(t.plan, (u32)t.pid, &n);

	for (u32 i = 0; i < n; i++)
		for (u32 k = 0; k < files[i]->n_sites; k++)
			copies += !strcmp(files[i]->sites[k].symbol, "rtCopy");
	assert_int_equal(n, 3);
	assert_int_equal(copies, 2);
	done(&t, true);
}

static void a_library_of_that_name_without_the_functions(void **state)
{
	struct planned t = plan_of(CHILD(DRV_NOTHING), HB_LAYERS_AUTO);
	u32 n;

	hb_plan__files_of(t.plan, (u32)t.pid, &n);
	assert_int_equal(n, 0);
	assert_true(said(&t, "has none of the functions"));
	done(&t, true);
}

static void simulated_is_noticed(void **state)
{
	struct planned t = plan_of(CHILD(DRV), HB_LAYERS_AUTO);

	assert_false(hb_plan__simulated(t.plan));
	done(&t, true);
	t = plan_of(CHILD(DRV, RT), HB_LAYERS_AUTO);
	assert_true(hb_plan__simulated(t.plan));
	done(&t, true);
}

static void mappings_are_found_by_identity(void **state)
{
	struct planned t = plan_of(CHILD(DRV, RT), HB_LAYERS_AUTO);
	pid_t alone = CHILD(DRV);
	struct hb_process *both = hb_process__read((u32)t.pid, NULL),
			  *one = hb_process__read((u32)alone, NULL);
	u32 n, found = 0;
	const struct hb_plan_file *const *files = hb_plan__files_of(t.plan, (u32)t.pid, &n);

	assert_int_equal(n, 2);
	for (u32 i = 0; i < n; i++) {
		assert_non_null(hb_plan_file__mapping(files[i], both));
		found += hb_plan_file__mapping(files[i], one) != NULL;
	}
	assert_int_equal(found, 1);
	hb_process__free(both);
	hb_process__free(one);
	end(alone);
	done(&t, true);
}

/* ---- the arrival check ---- */

static u32 id_of(const struct planned *t, const char *symbol, bool check)
{
	u32 n;
	const struct hb_plan_file *const *files = check ? hb_plan__check_files(t->plan, (u32)t->pid, &n)
							: hb_plan__files_of(t->plan, (u32)t->pid, &n);

	for (u32 i = 0; i < n; i++)
		for (u32 k = 0; k < files[i]->n_sites; k++)
			if (!strcmp(files[i]->sites[k].symbol, symbol))
				return files[i]->sites[k].probe;
	fail_msg("%s is not there", symbol);
	return 0;
}

static bool check(u64 runtime, u64 driver, u64 inside, struct planned *t)
{
	u64 hits[64] = {0}, inner[64] = {0};

	assert_true(hb_plan__n_probes(t->plan) < 64);
	hits[id_of(t, "rtLaunch", true)] = runtime;
	hits[id_of(t, "drvLaunch", false)] = driver;
	inner[id_of(t, "drvLaunch", false)] = inside;
	return hb_plan__check(t->plan, (u32)t->pid, hits, inner);
}

static void arrivals_decide(void **state)
{
	struct planned t = plan_of(CHILD(DRV, RT), HB_LAYERS_AUTO);
	const struct hb_probe_desc *d = hb_plan__desc(t.plan, id_of(&t, "rtLaunch", true));
	u32 n, id;

	assert_int_equal(d->flags, HB_PROBE_QUIET);
	assert_int_equal(d->timed, 1); /* without an end, inside cannot be told */
	assert_false(check(0, 0, 0, &t));
	assert_false(check(0, 500, 0, &t));
	assert_false(check(1, 0, 0, &t)); /* too few to tell */
	assert_false(check(500, 700, 500, &t));
	assert_null(site_of(&t, "rtLaunch"));
	id = id_of(&t, "rtLaunch", true);
	assert_true(check(500, 200, 0, &t));
	/* The same probe goes on, and records from now on. */
	assert_int_equal(id_of(&t, "rtLaunch", false), id);
	assert_int_equal(d->flags, 0);
	assert_int_equal(d->timed, 0);
	assert_non_null(site_of(&t, "rtLaunch"));
	assert_non_null(site_of(&t, "drvLaunch")); /* Triton's own still go there */
	assert_null(site_of(&t, "drvCopy"));
	assert_true(said(&t, "do not arrive"));
	hb_plan__check_files(t.plan, (u32)t.pid, &n);
	assert_int_equal(n, 0);
	done(&t, true);
}

/* Ids must not be shared where counts are compared. */
static void the_check_counts_only_its_own(void **state)
{
	struct planned t = plan_of(CHILD(DRV, RT), HB_LAYERS_AUTO);
	u32 id = id_of(&t, "drvLaunch", false);
	pid_t first = t.pid, second = CHILD(DRV, RT, RT_RENAMED);

	add(&t, second);
	assert_int_not_equal(id_of(&t, "drvLaunch", false), id);
	t.pid = first;
	end(second);
	done(&t, true);
}

static void no_check_unless_auto(void **state)
{
	struct planned t = plan_of(CHILD(DRV, RT), HB_LAYERS_BOTH);
	u32 n;

	hb_plan__check_files(t.plan, (u32)t.pid, &n);
	assert_int_equal(n, 0);
	done(&t, true);
}

static void unknown_processes_have_nothing(void **state)
{
	struct planned t = plan_of(CHILD(DRV), HB_LAYERS_AUTO);
	u64 none[64] = {0};
	u32 n = 7;

	hb_plan__files_of(t.plan, 1, &n);
	assert_int_equal(n, 0);
	assert_false(hb_plan__check(t.plan, 1, none, none));
	done(&t, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(auto_sees_each_operation_once),
	    cmocka_unit_test(runtime_launches_without_a_driver),
	    cmocka_unit_test(driver_alone_is_covered_and_said),
	    cmocka_unit_test(explicit_layers),
	    cmocka_unit_test(one_layer_is_taken_whatever_is_asked_for),
	    cmocka_unit_test(refusals_have_reasons),
	    cmocka_unit_test(rows_that_are_off_stay_off),
	    cmocka_unit_test(aliases_are_one_probe),
	    cmocka_unit_test(no_returns_means_entries_only),
	    cmocka_unit_test(descriptors_follow_the_rows),
	    cmocka_unit_test(ids_are_dense_and_shared_by_equal_processes),
	    cmocka_unit_test(choices_are_per_process),
	    cmocka_unit_test(copies_of_a_runtime_are_both_probed),
	    cmocka_unit_test(a_library_of_that_name_without_the_functions),
	    cmocka_unit_test(simulated_is_noticed),
	    cmocka_unit_test(mappings_are_found_by_identity),
	    cmocka_unit_test(arrivals_decide),
	    cmocka_unit_test(the_check_counts_only_its_own),
	    cmocka_unit_test(no_check_unless_auto),
	    cmocka_unit_test(unknown_processes_have_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
