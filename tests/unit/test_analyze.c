/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analysis_rig.h"

#include <limits.h>
#include <yajl/yajl_tree.h>

#include "analysis/report/analyze.h"
#include "analysis/report/verdict.h"

/* ---- windows ---- */

static void kernel(struct rig *r, u64 begin, u64 end, u64 correlation, const char *name)
{
	struct hb_rec_device d = {.dur = (end - begin) * US,
				  .correlation = correlation,
				  .name = hb_window_writer__string(r->w, name),
				  .kind = HB_DEVKIND_KERNEL};

	rig_put(r, end * US, r->main, HB_TYPE_device, &d);
}

static void call(struct rig *r, u64 begin, u64 end, u64 correlation)
{
	struct hb_rec_accel a = {.dur = (end - begin) * US,
				 .correlation = correlation,
				 .probe = P_LAUNCH,
				 .flags = HB_AFLAG_TIMED,
				 .stack = ST_USER};

	rig_put(r, end * US, r->main, HB_TYPE_accel, &a);
}

/* `n` kernels of 10 us, one each `every` us, launched `ahead` us before they begin. */
static void kernels(struct rig *r, u64 n, u64 every, u64 ahead, const char *name)
{
	for (u64 i = 1; i <= n; i++) {
		call(r, i * every - ahead, i * every - ahead + 2, i);
		kernel(r, i * every, i * every + 10, i, name);
	}
}

static void copy(struct rig *r, u64 at, u64 us, u8 to)
{
	struct hb_rec_device d = {.dur = us * US,
				  .name = hb_window_writer__string(r->w, "Memcpy DtoH"),
				  .kind = HB_DEVKIND_MEMCPY,
				  .copy = HB_COPY_DTOH,
				  .srcmem = HB_MEMKIND_DEVICE,
				  .dstmem = to,
				  .context = 1,
				  .bytes = us * 1000};

	rig_put(r, (at + us) * US, r->main, HB_TYPE_device, &d);
}

static struct rig made(const char *name)
{
	struct rig r = rig_new(name);

	rig_tables(&r);
	return r;
}

static struct hb_analysis *analysed(struct hb_window *w, bool linked_only)
{
	struct hb_analysis_opts o = {.linked_only = linked_only};
	struct hb_error e = {0};
	struct hb_analysis *a = hb_analysis__new(w, &o, &e);

	if (!a)
		fail_msg("%s", e.text);
	return a;
}

/* What is printed; the caller frees. `width` 0: JSON; UINT_MAX: not cut. */
static char *printed(struct hb_window *w, bool linked_only, unsigned width)
{
	struct hb_analysis *a = analysed(w, linked_only);
	struct hb_analysis_page page = {.rows = 3, .wide = width == UINT_MAX};
	struct hb_error e = {0};
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	assert_non_null(f);
	if (width ? hb_analysis__text(a, f, &page, &e) : hb_analysis__json(a, "w.hbw", f, &e))
		fail_msg("%s", e.text);
	fclose(f);
	hb_analysis__free(a);
	return text;
}

static void has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("\"%s\" is missing in:\n%s", part, text);
}

static void has_not(const char *text, const char *part)
{
	if (strstr(text, part))
		fail_msg("\"%s\" should not be in:\n%s", part, text);
}

/* ---- verdicts ---- */

static void verdict_is(struct rig *r, enum hb_verdict_kind kind, const char *part)
{
	struct hb_window *w = rig_open(r);
	struct hb_error e = {0};
	struct hb_devices *d = hb_devices__build(w, NULL, &e);
	struct hb_verdict_input in = {.devices = d, .wall = WALL};
	struct hb_verdict v = hb_verdict__of(&in);

	if (v.kind != kind)
		fail_msg("%s: %s", hb_verdict__name(v.kind), v.text);
	has(v.text, part);
	hb_devices__free(d);
	rig_close(r, w);
}

static void verdicts(void **state)
{
	struct rig r = made("verdict");

	verdict_is(&r, HB_VERDICT_UNKNOWN, "no accelerator calls and no device activity");
	r = made("verdict");
	call(&r, 10, 12, 0);
	verdict_is(&r, HB_VERDICT_UNKNOWN, "was not recorded");
	r = made("verdict");
	kernels(&r, 100, 100, 5, "k");
	verdict_is(&r, HB_VERDICT_HOST, "idle 89.9");
	r = made("verdict");
	kernels(&r, 100, 11, 5, "k");
	verdict_is(&r, HB_VERDICT_BUSY, "busy 91.");
	r = made("verdict");
	kernels(&r, 100, 11, 5, "ncclDevKernel_AllReduce_Sum_f16_RING_LL");
	verdict_is(&r, HB_VERDICT_COMMUNICATION, "communication that no computation hides");
	r = made("verdict");
	for (u64 i = 0; i < 100; i++)
		copy(&r, i * 100, 95, HB_MEMKIND_PINNED);
	verdict_is(&r, HB_VERDICT_BUSY, "of the time; 95.0 % of it is copies that no computation hides");
	r = made("verdict"); /* launched well ahead: something else holds them up */
	kernels(&r, 100, 100, 95, "k");
	verdict_is(&r, HB_VERDICT_UNKNOWN, "waited for an event");
	r = made("verdict");
	kernels(&r, 100, 11, 5, "k");
	call(&r, 1200, 1202, 999);
	kernel(&r, 9000, 9010, 999, "k");
	verdict_is(&r, HB_VERDICT_UNKNOWN, "device activity missing");
}

/* ---- without devices ---- */

/* Recorded windows have none: what is not known is said, and no number is made up. */
static void devices_not_recorded(void **state)
{
	struct rig r;
	struct hb_window *w = rig_window(&r, "analyze-none");
	char *text = printed(w, false, 120), *json = printed(w, false, 0);
	char problem[256];
	const char *devices[] = {"devices", NULL}, *kernels_[] = {"kernels", NULL},
		   *kind[] = {"verdict", "kind", NULL};
	yajl_val v = yajl_tree_parse(json, problem, sizeof(problem));

	has(text, "devices: what they did was not recorded");
	has_not(text, "nan");
	has_not(text, "inf %");
	has_not(text, "Kernels by name");
	assert_non_null(v);
	assert_int_equal(yajl_tree_get(v, devices, yajl_t_array)->u.array.len, 0);
	assert_int_equal(yajl_tree_get(v, kernels_, yajl_t_array)->u.array.len, 0);
	assert_string_equal(YAJL_GET_STRING(yajl_tree_get(v, kind, yajl_t_string)), "unknown");
	has(text, "VERDICT unknown: what the devices did was not recorded");
	yajl_tree_free(v);
	free(text);
	free(json);
	rig_close(&r, w);
}

/* Launches for 1 ms of each 10, then a wait that takes 2 ms more: the rest of the time there is nothing to
 * do. */
static void idle_by_calls(void **state)
{
	struct rig r = made("analyze-calls");
	struct hb_rec_accel a = {.dur = 10 * US, .probe = P_LAUNCH, .flags = HB_AFLAG_TIMED};
	struct hb_window *w;
	char *text;

	for (u64 step = 0; step < 50; step++) {
		a.probe = P_LAUNCH;
		a.dur = 10 * US;
		for (u64 i = 0; i < 10; i++)
			rig_put(&r, step * 10 * MS + i * 100 * US + 10 * US, r.main, HB_TYPE_accel, &a);
		a.probe = P_SYNC;
		a.dur = 2 * MS;
		rig_put(&r, step * 10 * MS + 3 * MS, r.main, HB_TYPE_accel, &a);
	}
	w = rig_open(&r);
	text = printed(w, false, 120);
	/* 7 ms of each step, and all of the second half of the window */
	has(text,
	    "VERDICT host: judged by the calls, the device had nothing to do for about 85.0 % of the window");
	free(text);
	rig_close(&r, w);
}

static void python(struct rig *r, const char *func, u64 begin, u64 end)
{
	struct hb_rec_py_call c = {.dur = end - begin,
				   .func = rig_loc(r, func, "kv.py", 0, HB_LANG_PYTHON),
				   .end = HB_PYEND_RETURN,
				   .flags = HB_PYCALL_TIMED};

	rig_put(r, end, r->main, HB_TYPE_py_call, &c);
}

/* A device that is busy for 1.1 ms of a second: what comes after it is what there is to say. */
static void hangs_after_the_last_operation(void **state)
{
	struct rig r = made("analyze-hang");
	struct hb_window *w;
	char *text;

	kernels(&r, 100, 11, 5, "k");
	python(&r, "wait_for_blocks", 1200 * US, 990 * MS);
	w = rig_open(&r);
	text = printed(w, false, UINT_MAX);
	has(text, "VERDICT unknown: for 99.9 % of the window");
	has(text, "nothing was launched; who launches was in wait_for_blocks");
	has(text, "In the rest the device is busy 91.");
	free(text);
	rig_close(&r, w);
	r = made("analyze-late"); /* what was launched there is not recorded: nothing is said of it */
	kernels(&r, 100, 11, 5, "k");
	call(&r, 500000, 500010, 999);
	w = rig_open(&r);
	text = printed(w, false, UINT_MAX);
	has(text, "VERDICT device busy: the device is busy 91.");
	has_not(text, "nothing was launched");
	free(text);
	rig_close(&r, w);
}

/* One works all the time, the other for an instant: the process does not wait. */
static void devices_of_one_process(void **state)
{
	struct rig r = made("analyze-two");
	struct hb_window *w;
	char *text;

	kernels(&r, 100, 11, 5, "k");
	for (u64 at = 20; at < 1100; at += 1000) {
		struct hb_rec_device d = {.dur = US,
					  .name = hb_window_writer__string(r.w, "peer"),
					  .device = 1,
					  .kind = HB_DEVKIND_KERNEL};

		rig_put(&r, (at + 1) * US, r.main, HB_TYPE_device, &d);
	}
	w = rig_open(&r);
	text = printed(w, false, UINT_MAX);
	has(text, "VERDICT device busy: the devices of each process, taken together, are busy 91.");
	free(text);
	rig_close(&r, w);
}

/* Kernels of 100 us each millisecond, between them a wait for a request by its name: host-bound it is not,
 * and what nobody explains is said. */
static void idle_time_that_nothing_explains(void **state)
{
	struct rig r = made("analyze-unexplained");
	struct hb_window *w;
	char *text;

	for (u64 i = 1; i < 990; i++) {
		call(&r, i * 1000 - 5, i * 1000 - 3, i);
		kernel(&r, i * 1000, i * 1000 + 100, i, "k");
		python(&r, "<built-in method acquire of _thread.lock object at 0x1>", (i * 1000 + 100) * US,
		       (i * 1000 + 900) * US);
	}
	python(&r, "get_request", 100 * US, 991 * MS);
	w = rig_open(&r);
	text = printed(w, false, UINT_MAX);
	has(text, "VERDICT host: ");
	has(text, "it waited for requests, or for another thread");
	has(text, "none: of the ");
	/* 988 gaps of 900 us */
	has(text, "not explained by any pattern: the device of process");
	has(text, "is idle for 889.20 ms (88.9 %) beside what is told above");
	has(text, "which launches, was in get_request for 100 % of it: it waited for a request, or for "
		  "somebody who is not in this window");
	free(text);
	rig_close(&r, w);
}

/* Readings every 10 ms: `busy` of a hundred with a request. */
static void readings(struct rig *r, u64 busy)
{
	struct hb_rec_py_field running = {.kind = HB_PYKIND_LEN}, waiting = {.kind = HB_PYKIND_LEN};

	running.field = hb_window_writer__string(r->w, "*:EngineCore.step self.scheduler.running:len");
	waiting.field = hb_window_writer__string(r->w, "*:EngineCore.step self.scheduler.waiting:len");
	for (u64 i = 0; i < 100; i++) {
		running.call = waiting.call = START + i * 10 * MS;
		running.num = i < busy;
		rig_put(r, i * 10 * MS, r->main, HB_TYPE_py_field, &running);
		rig_put(r, i * 10 * MS, r->main, HB_TYPE_py_field, &waiting);
	}
}

static void load_is_told(void **state)
{
	struct rig r = made("analyze-load");
	struct hb_window *w;
	char *text;

	kernels(&r, 100, 100, 5, "k");
	readings(&r, 20);
	w = rig_open(&r);
	text = printed(w, false, 120);
	has(text, "VERDICT no load: for 79 % of the time the engine had no request");
	free(text);
	text = printed(w, false, 0);
	has(text, "\"no_load_ns\": 790000000");
	has(text, "\"load_known_ns\": 990000000");
	free(text);
	rig_close(&r, w);
	r = made("analyze-load");
	kernels(&r, 100, 100, 5, "k");
	readings(&r, 90);
	w = rig_open(&r);
	text = printed(w, false, UINT_MAX);
	has(text, "VERDICT host: the device is idle");
	has(text, "there were requests for 91 % of the time");
	free(text);
	rig_close(&r, w);
	r = made("analyze-load");
	readings(&r, 90); /* and not one call */
	w = rig_open(&r);
	text = printed(w, false, UINT_MAX);
	has(text, "VERDICT unknown: not one accelerator call");
	has(text, "yet there were requests for 91 % of the time: the engine hangs, or it calls what was not");
	free(text);
	rig_close(&r, w);
}

/* What recording cost inside of the target: `calls` hits of a probe on launches, `events` of a hook on
 * Python. */
static char *recorded_at(const char *name, u64 calls, u64 events)
{
	struct rig r = made(name);
	struct hb_rec_price call = {.hits = calls, .price = 1000, .probe = P_LAUNCH};
	struct hb_rec_price event = {.hits = events,
				     .price = 1000,
				     .probe = UINT32_MAX,
				     .hook = hb_window_writer__string(r.w, "py_event_multi")};
	struct hb_window *w;
	char *text;

	kernels(&r, 100, 100, 5, "k");
	rig_put(&r, 999 * MS, r.main, HB_TYPE_price, &call);
	rig_put(&r, 999 * MS, r.main, HB_TYPE_price, &event);
	w = rig_open(&r);
	text = printed(w, false, UINT_MAX);
	rig_close(&r, w);
	return text;
}

/* What was dearest is named with what makes that cheaper, not something else. */
static void price_is_told(void **state)
{
	char *text = recorded_at("analyze-price", 200000, 100000);

	has(text, "CAUTION: recording took 30.0 % of one core inside of what is traced");
	has(text, "with 20.0 %, which --stacks-every launch=100 makes cheaper");
	free(text);
	text = recorded_at("analyze-events", 100000, 200000);
	has(text, "dearest was py_event_multi with 20.0 %, which --exceptions off makes cheaper");
	free(text);
	text = recorded_at("analyze-cheap", 20000, 20000);
	has_not(text, "CAUTION");
	free(text);
}

/* Left out all: no device is told of, and why is said. */
static void all_left_out(void **state)
{
	struct rig r = made("analyze-left");
	struct hb_window *w;
	char *text;

	for (u64 i = 1; i < 20; i++)
		kernel(&r, i * 100, i * 100 + 50, i, "k");
	w = rig_open(&r);
	text = printed(w, true, 120);
	has(text, "19 device operations without a call");
	has(text, "--linked-only left all out");
	has_not(text, "Kernels by name");
	free(text);
	text = printed(w, false, 120);
	has(text, "Kernels by name");
	has_not(text, "Launches");
	free(text);
	rig_close(&r, w);
}

/* ---- the page ---- */

static struct hb_window *rich(struct rig *r)
{
	*r = rig_new("analyze-rich");
	rig_tables(r);
	rig_calls(r);
	kernels(r, 200, 100, 5,
		"void a::very::long::name<of, a, kernel, that, has, arguments, and, more, arguments>(int)");
	kernel(r, 30000, 30100, 0, HOSTILE);
	kernel(r, 30000, 30100, 0, "_ZN5aiter24add_rmsnorm_quant_kernelIDF16bEEvPT0_");
	kernel(r, 30000, 30100, 0, "ncclDevKernel_AllGather_RING_LL(x)");
	copy(r, 31000, 10, HB_MEMKIND_PAGEABLE);
	copy(r, 32000, 10, HB_MEMKIND_UNKNOWN);
	rig_sleeps(r);
	rig_fds(r);
	rig_rest(r);
	return rig_open(r);
}

static void fits_a_terminal(void **state)
{
	struct rig r;
	struct hb_window *w = rich(&r);
	char *text = printed(w, false, 120), *whole = printed(w, false, UINT_MAX);
	unsigned width = 0;

	for (const char *p = text; *p; p++) {
		if (*p == '\n') {
			width = 0;
			continue;
		}
		assert_true((unsigned char)*p >= 0x20 && *p != 0x7f);
		width += (*p & 0xc0) != 0x80;
		if (width > 120)
			fail_msg("a line of more than 120 columns: %.130s", p - 120);
	}
	has(text, "VERDICT");
	has(text, "Findings: causes by what they cost, symptoms after them");
	has(text, "simulated accelerator");
	has(text, "and 1 more (--rows 0 shows all)");
	has(whole, "and, more, arguments>(int)");
	has(whole, "LOSS: ring_full 12");
	has(whole, "aiter::add_rmsnorm_quant_kernel"); /* for people; JSON has it as the profiler gave it */
	free(text);
	free(whole);
	rig_close(&r, w);
}

/* docs/analyze-json.md and docs/report-json.md name every key that is written. */
static void names(yajl_val v, const char *docs)
{
	if (YAJL_IS_ARRAY(v)) {
		for (size_t i = 0; i < v->u.array.len; i++)
			names(v->u.array.values[i], docs);
	} else if (YAJL_IS_OBJECT(v)) {
		for (size_t i = 0; i < v->u.object.len; i++) {
			char word[64];

			snprintf(word, sizeof(word), "`%s`", v->u.object.keys[i]);
			if (!strstr(docs, word))
				fail_msg("%s is not in docs/analyze-json.md", word);
			if (strcmp(v->u.object.keys[i], "meta") != 0) /* free keys */
				names(v->u.object.values[i], docs);
		}
	}
}

static void json_is_documented(void **state)
{
	static const char *const files[] = {"docs/analyze-json.md", "docs/report-json.md"};
	struct rig r;
	struct hb_window *w = rich(&r);
	char *json = printed(w, false, 0), problem[256], *docs = calloc(1, 1 << 20);
	yajl_val v = yajl_tree_parse(json, problem, sizeof(problem));
	size_t n = 0;

	assert_non_null(docs);
	for (size_t i = 0; i < 2; i++) {
		FILE *f = fopen(files[i], "r");

		if (!f)
			fail_msg("cannot read %s (run from the project's folder)", files[i]);
		n += fread(docs + n, 1, (1 << 19) - 1, f);
		fclose(f);
	}
	if (!v)
		fail_msg("%s", problem);
	names(v, docs);
	has(json, "_ZN5aiter24add_rmsnorm_quant_kernelIDF16bEEvPT0_");
	yajl_tree_free(v);
	free(docs);
	free(json);
	rig_close(&r, w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(verdicts),
	    cmocka_unit_test(devices_not_recorded),
	    cmocka_unit_test(idle_by_calls),
	    cmocka_unit_test(load_is_told),
	    cmocka_unit_test(all_left_out),
	    cmocka_unit_test(fits_a_terminal),
	    cmocka_unit_test(json_is_documented),
	    cmocka_unit_test(price_is_told),
	    cmocka_unit_test(hangs_after_the_last_operation),
	    cmocka_unit_test(idle_time_that_nothing_explains),
	    cmocka_unit_test(devices_of_one_process),
	};

	return cmocka_run_group_tests_name("analyze", tests, NULL, NULL);
}
