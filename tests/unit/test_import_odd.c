/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Traces that are not what they should be: cut, broken, old, with ids that are none. */
#include "import_rig.h"

#include <zlib.h>

#include "analysis/import/mend.h"

#define OP(name, ts)   ROW("cpu_op", name, "1", "1", ts, "1", "")
#define LOST(w, cause) ((int)hb_window__loss_total(w, cause))

static void close_clean(struct hb_window *w)
{
	assert_int_equal(LOST(w, HB_LOSS_IMPORT_ODD), 0);
	assert_int_equal(LOST(w, HB_LOSS_IMPORT_CUT), 0);
	hb_window__close(w);
}

/* ---- ids ---- */

static void ids_of_all_sorts(void **state)
{
	struct hb_window *w = rig_open(
	    TRACE(
		ROW("cpu_op", "a", "\"77\"", "\"78\"", "1", "1", "") "," ROW("cpu_op", "b", "77", "78", "2", "1", "") "," ROW(
		    "cpu_op", "c", "77",
		    "-1234", "3", "1",
		    "") "," ROW("cpu_op", "d", "77", "\"79 (python)\"", "4", "1",
				"") "," ROW("cpu_op", "e", "77", "140230423123456", "5", "1",
					    "") "," ROW("cpu_op", "f", "77", "\"my thread\"", "6", "1",
							"") "," ROW("cpu_op", "g", "0", "0", "7", "1",
								    "") "," ROW("cpu_op", "h", "\"another\"",
										"78", "8", "1",
										"") "," ROW("cpu_op", "i",
											    "88", "77", "9",
											    "1",
											    "") "," ROW("cpu_"
													"op",
													"j",
													"77."
													"0",
													"77",
													"10",
													"1",
													"")),
	    0);
	static const struct {
		u32 pid, tid; /* 0: a number that was made */
	} want[] = {{77, 78}, {77, 78}, {77, 1234}, {77, 79}, {77, 0},
		    {77, 0},  {77, 0},	{0, 0},	    {88, 0},  {77, 77}};
	struct hb_record r;
	u32 made[16], n = 0;

	for (unsigned i = 0; i < 10; i++) {
		rig_get(w, HB_TYPE_op, i, &r);
		if (want[i].pid)
			assert_int_equal(r.task->pid, want[i].pid);
		else
			assert_true(r.task->pid >= 0x40000000);
		if (want[i].tid) {
			assert_int_equal(r.task->tid, want[i].tid);
			continue;
		}
		assert_true(r.task->tid >= 0x40000000);
		for (u32 k = 0; k < n; k++)
			assert_int_not_equal(r.task->tid, made[k]);
		made[n++] = r.task->tid;
	}
	assert_int_equal(n, 5);
	close_clean(w);
}

/* Rows of 1 us, 40 of them in the first 40 us, and `far` at 10 s: `told` of them lie far from all others. */
static void far_rows(unsigned far, const char *told)
{
	char json[8192];
	int n = snprintf(json, sizeof(json), "{\"traceEvents\":[");
	struct hb_window *w;
	struct hb_record r;

	for (unsigned i = 0; i < 40 + far; i++)
		n += snprintf(
		    json + n, sizeof(json) - (size_t)n,
		    "%s{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"a\",\"pid\":1,\"tid\":1,\"ts\":%u,"
		    "\"dur\":1}",
		    i ? "," : "", i < 40 ? i : 10000000 + i);
	snprintf(json + n, sizeof(json) - (size_t)n, "]}");
	w = rig_open(json, 0);
	if (told) {
		const struct hb_rec_note *x = rig_get(w, HB_TYPE_note, 0, &r);

		assert_non_null(strstr(hb_window__string(w, x->text), told));
		assert_int_equal(x->level, HB_NOTE_WARNING);
	} else {
		assert_int_equal(hb_window__count(w, HB_TYPE_note), 0);
	}
	close_clean(w);
}

static void rows_far_outside(void **state)
{
	far_rows(1, "1 of 41 rows of the trace lie 10.00 s after all others");
	far_rows(40, NULL); /* a pause of the service */
}

static void no_host_rows(void **state)
{
	struct hb_window *w = rig_open(TRACE(ROW("kernel", "k", "3", "\"stream 9\"", "5", "1", "")), 0);
	struct hb_record r;
	const struct hb_rec_device *d = rig_get(w, HB_TYPE_device, 0, &r);

	assert_int_equal(d->device, 3);
	assert_int_equal(d->stream, 9);
	assert_true(r.task->pid >= 0x40000000);
	close_clean(w);
}

/* ---- words of before 2022, and of ROCm ---- */

static void old_categories(void **state)
{
	struct hb_window *w = rig_open(
	    TRACE(
		ROW("Operator", "aten::add", "1", "\"1\"", "1", "9", "\"External id\":\"4\",\"Input dims\":[[2]]") "," ROW(
		    "Runtime", "cudaLaunchKernel", "1", "\"1\"", "2", "1",
		    "\"correlation\":\"12\",\"external id\":\"4\"") "," ROW("Kernel", "k", "0",
									    "\"stream 7\"", "4", "1",
									    "\"correlation\":\"12\","
									    "\"stream\":\"7\","
									    "\"device\":\"0\",\"grid\":["
									    "1,1,1]") "," ROW("Memcpy",
											      "Memcpy "
											      "HtoD "
											      "(Pinned "
											      "-> "
											      "Device)",
											      "0",
											      "\"stream "
											      "7\"",
											      "6", "1",
											      "\"bytes\""
											      ":\"256"
											      "\"")),
	    0);
	struct hb_record r;
	const struct hb_rec_op *o = rig_get(w, HB_TYPE_op, 0, &r);
	const struct hb_rec_device *d = rig_get(w, HB_TYPE_device, 0, &r);

	assert_int_equal(o->external, 4);
	assert_string_equal(hb_window__string(w, o->shapes), "[[2]]");
	assert_int_equal(d->correlation, 12);
	assert_int_equal(((const struct hb_rec_accel *)rig_get(w, HB_TYPE_accel, 0, &r))->correlation, 12);
	d = rig_get(w, HB_TYPE_device, 1, &r);
	assert_int_equal(d->stream, 7);
	assert_int_equal(d->bytes, 256);
	assert_int_equal(d->copy, HB_COPY_HTOD);
	close_clean(w);
}

static void rocm(void **state)
{
	struct hb_window *w =
	    rig_open(TRACE(ROW("cuda_runtime", "hipMemcpyAsync", "1", "1", "1", "1",
			       "\"cid\":1,\"correlation\":9,\"src\":\"0x1\",\"bytes\":\"64\",\"kind\":"
			       "\"DtoH\"") "," ROW("gpu_memcpy", "CopyDeviceToHost", "2", "0", "3", "1",
						   "\"device\":2,\"stream\":0,\"correlation\":9,\"kind\":"
						   "\"Device -> Host\",\"bytes\":64")),
		     0);
	struct hb_record r;
	const struct hb_rec_accel *a = rig_get(w, HB_TYPE_accel, 0, &r);
	const struct hb_rec_device *d = rig_get(w, HB_TYPE_device, 0, &r);

	assert_string_equal(hb_window__string(w, hb_window__probe(w, a->probe)->api), "hip");
	assert_int_equal(hb_window__probe(w, a->probe)->cls, HB_CLASS_COPY);
	assert_int_equal(a->kind, 2);
	assert_int_equal(a->bytes, 64);
	assert_int_equal(d->copy, HB_COPY_DTOH);
	close_clean(w);
}

/* ---- rows ---- */

static void rows_that_are_odd(void **state)
{
	struct hb_window *w = rig_open(
	    TRACE(OP(
		"whole",
		"10") ","
		      "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"no time\",\"pid\":1,\"tid\":1,\"dur\":1},"
		      "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"bad "
		      "time\",\"pid\":1,\"tid\":1,\"ts\":\"soon\",\"dur\":1},"
		      "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"no "
		      "length\",\"pid\":1,\"tid\":1,\"ts\":20},"
		      "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"negative\",\"pid\":1,\"tid\":1,\"ts\":21,"
		      "\"dur\":-3},"
		      "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"pid\":1,\"tid\":1,\"ts\":22,\"dur\":1},"
		      "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"nowhere\",\"ts\":23,\"dur\":1},"
		      "{\"cat\":\"cpu_op\",\"name\":\"no kind\",\"pid\":1,\"tid\":1,\"ts\":24,\"dur\":1},"
		      "{\"ph\":\"i\",\"cat\":\"cpu_instant_event\",\"name\":\"[memory]\",\"pid\":1,\"tid\":1,"
		      "\"ts\":25},"
		      "{\"ph\":\"s\",\"cat\":\"ac2g\",\"name\":\"ac2g\",\"id\":1,\"pid\":1,\"tid\":1,\"ts\":"
		      "25},"
		      "{\"ph\":\"f\",\"cat\":\"ac2g\",\"name\":\"ac2g\",\"id\":1,\"pid\":1,\"tid\":1,\"ts\":"
		      "25},"
		      "{},[],null,true,7,\"text\""),
	    0);

	assert_int_equal(rig_count(w, HB_TYPE_op), 5);
	assert_int_equal(LOST(w, HB_LOSS_IMPORT_ODD), 8);
	assert_int_equal(rig_stats.odd, 8);
	assert_true(rig_says(w, "2 without a time"));
	assert_true(rig_says(w, "2 without a length"));
	assert_true(rig_says(w, "1 without a name"));
	assert_true(rig_says(w, "1 without process or thread"));
	assert_true(rig_says(w, "2 without a kind"));
	assert_true(rig_says(w, "1 instants cpu_instant_event"));
	assert_true(rig_says(w, "flows ac2g"));
	hb_window__close(w);
}

static void begins_and_ends(void **state)
{
#define BE(ph, name, tid, ts)                                                                                \
	"{\"ph\":\"" ph "\",\"name\":\"" name "\",\"pid\":1,\"tid\":" tid ",\"ts\":" ts "}"
	struct hb_window *w = rig_open(
	    TRACE(BE("B", "outer", "1", "10") "," BE("B", "inner", "1", "12") "," BE(
		"B", "elsewhere", "2",
		"13") "," BE("E", "", "1", "15") "," BE("E", "", "1", "30") "," BE("E", "", "1",
										   "31") "," BE("B", "open",
												"3", "25")),
	    0);
	static const struct {
		const char *name;
		u64 begin, end;
	} want[] = {{"inner", 12000, 15000},
		    {"open", 25000, 30000},
		    {"elsewhere", 13000, 30000},
		    {"outer", 10000, 30000}};
	struct hb_record r;

	assert_int_equal(rig_count(w, HB_TYPE_op), 4);
	for (unsigned i = 0; i < 4; i++) {
		const struct hb_rec_op *o = rig_get(w, HB_TYPE_op, i, &r);

		assert_string_equal(hb_window__string(w, o->name), want[i].name);
		assert_int_equal(r.begin, want[i].begin);
		assert_int_equal(r.ts, want[i].end);
	}
	assert_int_equal(LOST(w, HB_LOSS_IMPORT_ODD), 3); /* an end of nothing, two without an end */
	hb_window__close(w);
}

/* Negative times: the window's are positive, and the wall clock stays where it was. */
static void times_before_zero(void **state)
{
	struct hb_window *w = rig_open(
	    "{\"baseTimeNanoseconds\":1000000,\"traceEvents\":[" OP("a", "-5.001") "," OP("b", "1") "]}", 0);
	struct hb_record r;

	rig_get(w, HB_TYPE_op, 0, &r);
	assert_int_equal(r.begin, 1);
	rig_get(w, HB_TYPE_op, 1, &r);
	assert_int_equal(r.begin, 6002);
	assert_string_equal(hb_window__meta(w, "realtime_offset_ns"), "994998");
	close_clean(w);
}

/* ---- JSON that is none ---- */

static void mended(const char *before, const char *after)
{
	char text[128];
	struct hb_mend m = {0};
	bool changed = false;

	strcpy(text, before);
	assert_int_equal(hb_mend(&m, text, strlen(text), true, &changed), strlen(text));
	assert_string_equal(text, after);
	assert_int_equal(changed, strcmp(before, after) != 0);
}

static void mending(void **state)
{
	mended("{\"a\": 1, \"b\":[true,false,null,-0.5e+7]}", "{\"a\": 1, \"b\":[true,false,null,-0.5e+7]}");
	mended("[NaN, -Infinity,1.#INF, x]", "[[ ], [       ],[    ], 0]");
	mended("[01, 1., .5, +1, 0x1f, 1e]", "[[], [], [], [], [  ], []]");
	mended("\"NaN\"", "\"NaN\"");
	mended("\"a\tb\\qc\\\"NaN\"", "\"a b\\/c\\\"NaN\"");
	mended("\"\\\n\"", "\"\\/\"");
}

/* A word may go on in the next piece. */
static void mending_in_pieces(void **state)
{
	char text[] = "[Infinity]";
	struct hb_mend m = {0};
	bool changed = false;
	size_t n = hb_mend(&m, text, 4, false, &changed);

	assert_int_equal(n, 1);
	assert_int_equal(n + hb_mend(&m, text + n, 9, true, &changed), 10);
	assert_string_equal(text, "[[      ]]");
}

static void values_that_are_no_json(void **state)
{
	struct hb_window *w = rig_open(
	    "{\"x\":NaN,\"baseTimeNanoseconds\":7,\"traceEvents\":[" OP("a", "1") "," ROW(
		"kernel", "k\t1", "0", "7", "3", "1",
		"\"memory bandwidth (GB/s)\":inf,\"est. achieved occupancy "
		"%\":NaN,\"correlation\":5,\"stream\":7") "," OP("b\\x", "5") "," ROW("cpu_op", "c", "1", "1",
										      "7", "Infinity",
										      "") "," OP("d",
												 "9") "]}",
	    0);
	struct hb_record r;
	const struct hb_rec_device *d = rig_get(w, HB_TYPE_device, 0, &r);

	assert_string_equal(hb_window__string(w, d->name), "k 1");
	assert_int_equal(d->correlation, 5);
	assert_int_equal(rig_count(w, HB_TYPE_op), 4);
	assert_int_equal(LOST(w, HB_LOSS_IMPORT_ODD), 1); /* a length of Infinity is none */
	assert_string_equal(hb_window__meta(w, "realtime_offset_ns"), "7");
	assert_true(rig_says(w, "not quite JSON"));
	hb_window__close(w);
}

/* What cannot be mended costs that row alone, wherever it is. */
static void rows_that_are_no_json(void **state)
{
	static const char *const bad[] = {
	    "{\"ph\":\"X\" \"name\":\"x\"}",		    /* no comma */
	    "{\"ph\":\"X\",\"name\":\"say \"hello\" to\"}", /* quotes in a text */
	    "{\"ph\":\"X\",\"name\":\"x\",\"args\":{]}",    /* brackets that do not match */
	    "{\"ph\":\"X\",\"name\":\"\\u12zz\"}",	    /* bad escape */
	    "@@@@ \x01 \xff\xfe",			    /* anything */
	    "{\"ph\":\"X\",\"name\":\"no end of the text}",
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		char json[1024];
		struct hb_window *w;

		snprintf(json, sizeof(json), "{\"traceEvents\":[%s,\n%s,\n%s,\n%s]}", OP("a", "1"), bad[i],
			 OP("b", "3"), OP("c", "5"));
		w = rig_open(json, 0);
		assert_int_equal(rig_count(w, HB_TYPE_op), 3);
		assert_true(LOST(w, HB_LOSS_IMPORT_ODD) >= 1);
		assert_int_equal(LOST(w, HB_LOSS_IMPORT_CUT), 0);
		hb_window__close(w);
	}
}

static void braces_without_end(void **state)
{
	size_t n = 1000000;
	char *json = malloc(n + 256);
	struct hb_window *w;

	sprintf(json, "{\"traceEvents\":[%s,{\"name\":\"x\",\"args\":", OP("a", "1"));
	memset(json + strlen(json) + 1, 0, 1);
	for (size_t at = strlen(json), i = 0; i < n; i++)
		json[at + i] = '[', json[at + i + 1] = 0;
	w = rig_open(json, 0);
	assert_int_equal(rig_count(w, HB_TYPE_op), 1);
	assert_int_equal(LOST(w, HB_LOSS_IMPORT_CUT), 1);
	hb_window__close(w);
	free(json);
}

/* ---- ends ---- */

static const char whole[] =
    "{\"schemaVersion\":1,\"deviceProperties\":[{\"id\":0}],\"traceEvents\":[" OP("a", "1") "," ROW(
	"kernel", "k", "0", "7", "3", "1",
	"\"grid\":[1,2,3],\"correlation\":5,\"stream\":7") ","
							   "{\"ph\":\"i\",\"name\":\"x\",\"s\":\"g\",\"ts\":"
							   "4}," OP("b", "5") "],\"traceName\":\"here\"}";

/* Cut after any byte: what was whole is there, it is said, and never is there less with more of the file. */
static void cut_anywhere(void **state)
{
	unsigned before = 0;

	for (size_t n = 0; n < sizeof(whole) - 1; n++) {
		struct hb_error e = {0};
		struct hb_window *w;
		unsigned now;

		if (rig_import(whole, n, 0)) {
			assert_int_equal(before, 0);
			assert_true(rig_error.text[0]);
			assert_int_equal(rig_error.exit, HB_EXIT_FAILED);
			assert_int_equal(access(rig_out, F_OK), -1);
			continue;
		}
		w = hb_window__open(rig_out, &e);
		assert_non_null(w);
		now = rig_count(w, HB_TYPE_op) + rig_count(w, HB_TYPE_device);
		assert_true(now >= before && now > 0);
		before = now;
		assert_int_equal(LOST(w, HB_LOSS_IMPORT_CUT), 1);
		assert_true(rig_stats.cut);
		assert_true(rig_says(w, "cut off"));
		hb_window__close(w);
		unlink(rig_out);
	}
	assert_int_equal(before, 3);
}

static void a_list_needs_no_end(void **state)
{
	struct hb_window *w = rig_open("[" OP("a", "1") ",\n" OP("b", "2") ",\n", 0);

	assert_int_equal(rig_count(w, HB_TYPE_op), 2);
	assert_string_equal(hb_window__meta(w, "imported_from"), "Chrome trace");
	close_clean(w);
	w = rig_open("[" OP("a", "1") "]", 0);
	close_clean(w);
	w = rig_open("[" OP("a", "1") ",{\"ph\":\"X\",", 0);
	assert_int_equal(LOST(w, HB_LOSS_IMPORT_CUT), 1);
	hb_window__close(w);
}

static void more_after_the_end(void **state)
{
	struct hb_window *w = rig_open("\xef\xbb\xbf" TRACE(OP("a", "1")) "\n\n", 0);

	assert_false(rig_says(w, "something follows"));
	close_clean(w);
	w = rig_open(TRACE(OP("a", "1")) TRACE(OP("b", "1")), 0);
	assert_int_equal(rig_count(w, HB_TYPE_op), 1);
	assert_true(rig_says(w, "something follows"));
	close_clean(w);
}

static void no_trace(void **state)
{
	static const struct {
		const char *text, *say;
	} t[] = {
	    {"", "is empty"},
	    {"{}", "no list \"traceEvents\""},
	    {"7", "no list \"traceEvents\""},
	    {"\x7f"
	     "ELF\x02\x01",
	     "no list \"traceEvents\""},
	    {"PK\x03\x04 and so on {\"a\":1}", "no list \"traceEvents\""},
	    {"{\"traceEvents\":{}}", "no list \"traceEvents\""},
	    {"{\"traceEvents\":[]}", "0 rows"},
	    {"[]", "0 rows"},
	    {"{\"traceEvents\":[{\"ph\":\"i\",\"ts\":1}]}", "1 rows, and none"},
	};

	for (size_t i = 0; i < sizeof(t) / sizeof(*t); i++) {
		assert_true(rig_import(t[i].text, strlen(t[i].text), 0) < 0);
		if (!strstr(rig_error.text, t[i].say))
			fail_msg("%s: %s", t[i].text, rig_error.text);
		assert_int_equal(rig_error.exit, HB_EXIT_FAILED);
		assert_int_equal(access(rig_out, F_OK), -1);
	}
}

/* ---- compressed ---- */

static size_t gzip(const char *text, char *out, size_t size)
{
	z_stream z = {.next_in = (Bytef *)(uintptr_t)text,
		      .avail_in = (uInt)strlen(text),
		      .next_out = (Bytef *)out,
		      .avail_out = (uInt)size};

	assert_int_equal(deflateInit2(&z, 1, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	deflateEnd(&z);
	return z.total_out;
}

static unsigned ops_of(const char *data, size_t n, bool *cut)
{
	struct hb_error e = {0};
	struct hb_window *w;
	unsigned ops;

	if (rig_import(data, n, 0))
		fail_msg("%s", rig_error.text);
	w = hb_window__open(rig_out, &e);
	assert_non_null(w);
	ops = rig_count(w, HB_TYPE_op);
	*cut = hb_window__loss_total(w, HB_LOSS_IMPORT_CUT);
	hb_window__close(w);
	unlink(rig_out);
	return ops;
}

static void gzipped(void **state)
{
	size_t size = 1 << 20, n;
	char *json = malloc(size), *gz = malloc(size);
	unsigned at = (unsigned)sprintf(json, "{\"traceEvents\":[");
	bool cut;

	for (unsigned i = 0; i < 4000; i++)
		at += (unsigned)sprintf(json + at, "%s" ROW("cpu_op", "op%u", "1", "1", "%u", "1", ""),
					i ? "," : "", i * i, i);
	sprintf(json + at, "]}");
	n = gzip(json, gz, size);
	assert_int_equal(ops_of(gz, n, &cut), 4000);
	assert_false(cut);
	assert_in_range(ops_of(gz, n / 2, &cut), 500, 3999); /* cut */
	assert_true(cut);
	memset(gz + n / 2, 0x55, 64);
	assert_in_range(ops_of(gz, n, &cut), 100, 4000); /* broken */
	assert_true(cut);
	free(json);
	free(gz);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(ids_of_all_sorts),
	    cmocka_unit_test(rows_far_outside),
	    cmocka_unit_test(no_host_rows),
	    cmocka_unit_test(old_categories),
	    cmocka_unit_test(rocm),
	    cmocka_unit_test(rows_that_are_odd),
	    cmocka_unit_test(begins_and_ends),
	    cmocka_unit_test(times_before_zero),
	    cmocka_unit_test(mending),
	    cmocka_unit_test(mending_in_pieces),
	    cmocka_unit_test(values_that_are_no_json),
	    cmocka_unit_test(rows_that_are_no_json),
	    cmocka_unit_test(braces_without_end),
	    cmocka_unit_test(cut_anywhere),
	    cmocka_unit_test(a_list_needs_no_end),
	    cmocka_unit_test(more_after_the_end),
	    cmocka_unit_test(no_trace),
	    cmocka_unit_test(gzipped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
