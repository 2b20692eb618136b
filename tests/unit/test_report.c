/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analysis_rig.h"

#include <limits.h>
#include <sys/stat.h>
#include <yajl/yajl_tree.h>

#include "analysis/report/report.h"
#include "analysis/report/table.h"

/* What a printing function wrote; the caller frees. */
static char *printed(struct hb_window *w, int (*print)(struct hb_window *, FILE *))
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	assert_non_null(f);
	assert_int_equal(print(w, f), 0);
	fclose(f);
	return text;
}

static int summary(struct hb_window *w, FILE *f)
{
	return hb_report__summary(w, f, NULL);
}

static int text_report(struct hb_window *w, FILE *f)
{
	return hb_report__text(w, f, NULL, NULL);
}

static int few_rows(struct hb_window *w, FILE *f)
{
	struct hb_report_opts o = {.rows = 1};

	return hb_report__text(w, f, &o, NULL);
}

static int json_report(struct hb_window *w, FILE *f)
{
	return hb_report__json(w, f, NULL);
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

/* Lines, and the longest in characters; also: nothing that could reach a terminal as a command. */
static unsigned lines_of(const char *text, unsigned *longest)
{
	unsigned lines = 0, width = 0;

	*longest = 0;
	for (const char *p = text; *p; p++) {
		if (*p == '\n') {
			lines++;
			width = 0;
			continue;
		}
		assert_true((unsigned char)*p >= 0x20 && *p != 0x7f);
		width += (*p & 0xc0) != 0x80;
		if (width > *longest)
			*longest = width;
	}
	return lines;
}

static void summary_says_it_all(void **state)
{
	struct rig r;
	struct hb_window *w = rig_window(&r, "summary");
	char *s = printed(w, summary);
	unsigned longest;

	assert_in_range(lines_of(s, &longest), 15, 40);
	assert_in_range(longest, 60, 100);
	has(s, "simulated accelerator");
	has(s, "eager launch");
	has(s, "graph launch");
	has(s, "epoll_wait");
	has(s, "200 api;server (sendto)");
	has(s, "LOSS: ring_full 12 (accel): ");
	has(s,
	    "cost: own CPU 5.00 ms (0.50 % of one core) in the window, 15.00 ms before and after, 1.0 MiB");
	has(s, "cost: probes in the targets 500.0 us (0.05 % of one core), hits x measured price");
	has(s, "cost: syscalls and scheduler, whole machine 2.0 us (0.00 % of one core), measured by the "
	       "kernel");
	free(s);
	rig_close(&r, w);
}

/* More of everything than a screen has room for. */
static void summary_fits_the_screen(void **state)
{
	struct rig r = rig_new("many");
	char name[32];
	struct hb_window *w;
	unsigned longest;
	char *s;

	rig_tables(&r);
	for (u32 i = 0; i < 40; i++) {
		struct hb_rec_offcpu o = {.dur = 1000 * i,
					  .sysno = (u16)i,
					  .chankind = (u8)(i % 11),
					  .waker = 1000 + i,
					  .waker_pid = 1000 + i,
					  .wctx = HB_WCTX_TASK,
					  .wsys = (u16)i,
					  .state = i % 7};
		struct hb_rec_accel a = {.probe = 20 + i, .dur = i, .flags = HB_AFLAG_TIMED};
		struct hb_loss_row lost = {.cause = i % HB_LOSS_COUNT, .cpu = i, .count = 1000000000000};
		struct hb_proc p = {.pid = 1000 + i};
		u16 t;

		snprintf(name, sizeof(name), "thread-name-%03u", i);
		t = rig_task(&r, 1000 + i, 1000 + i, name, true);
		hb_window_writer__proc(r.w, &p);
		rig_probe(&r, 20 + i, name, "api", (u8)(i % HB_CLASS_COUNT), 0, 0, 1);
		rig_put(&r, i * MS, t, HB_TYPE_offcpu, &o);
		rig_put(&r, i * MS, t, HB_TYPE_accel, &a);
		hb_window_writer__loss(r.w, &lost);
	}
	hb_window_writer__meta(r.w, "simulated", "1");
	w = rig_open(&r);
	s = printed(w, summary);
	if (lines_of(s, &longest) > 40 || longest > 100)
		fail_msg("%u lines of up to %u columns:\n%s", lines_of(s, &longest), longest, s);
	has(s, "... and 38 more");
	free(s);
	rig_close(&r, w);
}

static void text_has_every_table(void **state)
{
	static const char *const parts[] = {
	    "simulated accelerator",
	    "Processes\n",
	    "10  ",
	    "forked exited late 7.00 ms",
	    "cudaStreamSynchronize",
	    "719",
	    "Blocking system calls",
	    "unix 11 -> 22 /run/",
	    "tcp 127.0.0.1:8000 ",
	    "Off-CPU by reason",
	    "page fault",
	    "softirq",
	    "Wake-ups between",
	    "200 -> 100",
	    "0x7f0010",
	    "libx.so+0x1234",
	    "do_syscall_64_[k]",
	    "ring_full",
	    "accel",
	    "sched_switch",
	    "warning: a note",
	    "LOSS: ring_full",
	};
	struct rig r;
	struct hb_window *w = rig_window(&r, "text");
	char *s = printed(w, text_report), *few = printed(w, few_rows);
	unsigned longest;

	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
		has(s, parts[i]);
	has_not(s, "more (--rows 0");
	has(few, "... and 6 more (--rows 0 shows all)");
	lines_of(s, &longest);
	assert_in_range(longest, 80, 120);
	free(s);
	free(few);
	rig_close(&r, w);
}

static void missed_ticks_are_said(void **state)
{
	struct hb_loss_row lost = {.cause = HB_LOSS_MISSED, .type = HB_TYPE_sample, .cpu = 0, .count = 40};
	struct rig r = rig_new("ticks");
	struct hb_window *w;
	char *s;

	rig_tables(&r);
	rig_rest(&r);
	hb_window_writer__meta(r.w, "sample_hz", "99");
	hb_window_writer__meta(r.w, "cpus", "2");
	hb_window_writer__loss(r.w, &lost);
	lost.cpu = 1;
	lost.count = 8;
	hb_window_writer__loss(r.w, &lost);
	lost.type = HB_TYPE_offcpu; /* no tick */
	hb_window_writer__loss(r.w, &lost);
	w = rig_open(&r);
	s = printed(w, text_report);
	has(s, "CPU time by function (estimate: samples x period)\n  150 of 198 ticks came");
	has(s, "LOSS: missed 56 (8 offcpu, 48 sample): ");
	free(s);
	rig_close(&r, w);
	w = rig_window(&r, "all-ticks");
	s = printed(w, text_report);
	has(s, "CPU time by function (estimate");
	has_not(s, "ticks came");
	free(s);
	rig_close(&r, w);
}

static yajl_val at(yajl_val v, const char *a, const char *b)
{
	const char *path[] = {a, b, NULL};
	yajl_val x = yajl_tree_get(v, path, yajl_t_any);

	if (!x)
		fail_msg("no %s.%s in the JSON report", a, b ? b : "");
	return x;
}

static yajl_val row(yajl_val v, const char *table, size_t i)
{
	yajl_val t = at(v, table, NULL);

	assert_true(YAJL_IS_ARRAY(t));
	assert_true(i < t->u.array.len);
	return t->u.array.values[i];
}

static void json_has_the_numbers(void **state)
{
	struct rig r;
	struct hb_window *w = rig_window(&r, "json");
	char *s = printed(w, json_report), error[256] = "";
	yajl_val v = yajl_tree_parse(s, error, sizeof(error));

	if (!v)
		fail_msg("%s", error);
	assert_true(YAJL_IS_TRUE(at(v, "window", "simulated")));
	assert_string_equal(YAJL_GET_STRING(at(v, "window", "device")), "simulated accelerator");
	assert_int_equal(YAJL_GET_INTEGER(at(v, "window", "wall_ns")), WALL);
	assert_int_equal(YAJL_GET_INTEGER(at(v, "loss", "total")), 12);
	assert_int_equal(YAJL_GET_INTEGER(at(v, "loss", "ring_full")), 12);
	assert_int_equal(YAJL_GET_INTEGER(at(v, "receipt", "cost_ns")), 502000);
	assert_int_equal(YAJL_GET_INTEGER(at(v, "receipt", "probes_cost_ns")), 500000);
	assert_int_equal(YAJL_GET_INTEGER(at(v, "receipt", "hooks_cost_ns")), 2000);
	assert_int_equal(YAJL_GET_INTEGER(at(v, "receipt", "self_cpu_window_ns")), 5 * MS);
	assert_int_equal(YAJL_GET_INTEGER(at(row(v, "wakeups", 0), "from", "pid")), 200);
	assert_int_equal(YAJL_GET_INTEGER(at(row(v, "wakeups", 0), "count", NULL)), 3);
	assert_string_equal(YAJL_GET_STRING(at(row(v, "blocking", 0), "syscall", NULL)), "epoll_wait");
	assert_string_equal(YAJL_GET_STRING(at(row(v, "blocking", 0), "longest_on", NULL)),
			    "unix 11 -> 22 /run/engine.sock");
	assert_string_equal(YAJL_GET_STRING(at(row(v, "processes", 0), "comm", NULL)), "ev?[31mil?\"\\");
	assert_int_equal(YAJL_GET_INTEGER(at(row(v, "processes", 1), "exit_status", NULL)), 3 << 8);
	assert_string_equal(YAJL_GET_STRING(at(row(v, "offcpu", 0), "reason", NULL)), "syscall");
	yajl_tree_free(v);
	free(s);
	rig_close(&r, w);
}

/* docs/report-json.md names every key that is written. */
static void names(yajl_val v, const char *docs)
{
	if (YAJL_IS_ARRAY(v)) {
		for (size_t i = 0; i < v->u.array.len; i++)
			names(v->u.array.values[i], docs);
	} else if (YAJL_IS_OBJECT(v)) {
		for (size_t i = 0; i < v->u.object.len; i++) {
			char word[64];

			snprintf(word, sizeof(word), "`%s`", v->u.object.keys[i]);
			has(docs, word);
			if (strcmp(v->u.object.keys[i], "meta") != 0) /* free keys */
				names(v->u.object.values[i], docs);
		}
	}
}

static char *read_file(const char *path)
{
	FILE *f = fopen(path, "r");
	char *text = calloc(1, 1 << 20);

	if (!f || !text)
		fail_msg("cannot read %s (run from the project's folder)", path);
	assert_true(fread(text, 1, (1 << 20) - 1, f) > 0);
	fclose(f);
	return text;
}

static void json_is_documented(void **state)
{
	struct rig r;
	struct hb_window *w = rig_window(&r, "docs");
	char *s = printed(w, json_report), *docs = read_file("docs/report-json.md"), error[64];
	yajl_val v = yajl_tree_parse(s, error, sizeof(error));

	assert_non_null(v);
	names(v, docs);
	yajl_tree_free(v);
	free(docs);
	free(s);
	rig_close(&r, w);
}

/* Cut in the middle: what is there is printed, what is missing is said, nothing fails. */
static void damage_is_shown(void **state)
{
	struct rig r;
	struct hb_window *w = rig_window(&r, "cut");
	struct stat st;
	char *s;
	struct hb_error e = {0};

	hb_window__close(w);
	assert_int_equal(stat(r.path, &st), 0);
	assert_int_equal(truncate(r.path, st.st_size * 2 / 3), 0);
	w = hb_window__open(r.path, &e);
	if (!w)
		fail_msg("%s", e.text);
	assert_non_null(hb_window__damage(w));
	s = printed(w, summary);
	has(s, "DAMAGED: ");
	has(s, "not known, the window was not finished");
	has_not(s, "loss: none");
	has_not(s, "the other ");
	has_not(s, "host ?");
	free(s);
	s = printed(w, text_report);
	has(s, "DAMAGED: ");
	free(s);
	s = printed(w, json_report);
	has(s, "\"damage\": \"");
	has(s, "\"known\": false");
	free(s);
	rig_close(&r, w);
}

static void empty_window(void **state)
{
	struct rig r = rig_new("empty");
	struct hb_window *w = rig_open(&r);
	char *s = printed(w, summary);

	has(s, "loss: none");
	has(s, "cost: this window does not tell what recording it took");
	has_not(s, "simulated");
	free(s);
	s = printed(w, text_report);
	has(s, "no accelerator calls");
	free(s);
	rig_close(&r, w);
}

/* The flexible column gives way; multi-byte characters are not cut in two. */
static void table_layout(void **state)
{
	struct hb_table *t = hb_table__new("name~|n>");
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	hb_table__cell(t, "ééééééééééééééééééééééééééééééé");
	hb_table__cell(t, "%d", 5);
	hb_table__cell(t, "x");
	hb_table__cell(t, "%d", 12345);
	assert_int_equal(hb_table__rows(t), 2);
	assert_int_equal(hb_table__print(t, f, 25), 0);
	fclose(f);
	assert_string_equal(text, "  name                  n\n"
				  "  ééééééééééééééé~      5\n"
				  "  x                 12345\n");
	free(text);
}

/* However full the line: a title stays whole, and without a limit nothing is cut. */
static void table_titles(void **state)
{
	static const unsigned widths[] = {20, UINT_MAX};
	static const char *const wanted[] = {"  a rather long title  n\n  012345678901234567~  1\n",
					     "  a rather long title             n\n"
					     "  012345678901234567890123456789  1\n"};

	for (size_t i = 0; i < 2; i++) {
		struct hb_table *t = hb_table__new("a rather long title~|n>");
		char *text = NULL;
		size_t size;
		FILE *f = open_memstream(&text, &size);

		hb_table__cell(t, "012345678901234567890123456789");
		hb_table__cell(t, "1");
		assert_int_equal(hb_table__print(t, f, widths[i]), 0);
		fclose(f);
		assert_string_equal(text, wanted[i]);
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(summary_says_it_all),  cmocka_unit_test(summary_fits_the_screen),
	    cmocka_unit_test(text_has_every_table), cmocka_unit_test(json_has_the_numbers),
	    cmocka_unit_test(json_is_documented),   cmocka_unit_test(damage_is_shown),
	    cmocka_unit_test(empty_window),	    cmocka_unit_test(table_layout),
	    cmocka_unit_test(table_titles),	    cmocka_unit_test(missed_ticks_are_said),
	};

	return cmocka_run_group_tests_name("report", tests, NULL, NULL);
}
