/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The page of an analysis: levels of detail, labels, and that nothing a window says becomes markup. */
#include "analysis_rig.h"

#include "analysis/report/analyze.h"
#include "analysis/report/html/html.h"
#include "analysis/report/html/labels.h"
#include "analysis/report/html/lod.h"

/* ---- levels of detail ---- */

enum { N = 100000 };
static struct hb_lod_span span[N];
static struct hb_lod_piece piece[N];

/* Spans of 1 us at every 10 us, with a long one of 3 ms in the middle. */
static u64 make_spans(void)
{
	u64 at = START;

	for (u32 i = 0; i < N; i++) {
		u64 len = i == N / 2 ? 3 * MS : 1000;

		span[i] = (struct hb_lod_span){.begin = at, .end = at + len, .item = i};
		at += len + 9000;
	}
	return at;
}

static void test_lod_keeps_few(void **state)
{
	u64 end = make_spans();
	u64 cell = hb_lod__cell(span, 100, START, end, 100);

	assert_int_equal(cell, 0);
	assert_int_equal(hb_lod__join(span, 100, START, 0, piece), 100);
	for (u32 i = 0; i < 100; i++) {
		assert_int_equal(piece[i].count, 1);
		assert_int_equal(piece[i].begin, span[i].begin);
		assert_int_equal(piece[i].end, span[i].end);
		assert_int_equal(piece[i].item, i);
	}
}

static void test_lod_bounds_many(void **state)
{
	u64 end = make_spans(), busy = 0, spans = 0;
	u64 cell = hb_lod__cell(span, N, START, end, 1000);
	u32 n = hb_lod__join(span, N, START, cell, piece), alone = 0;

	assert_true(cell > 0);
	assert_in_range(n, 700, 1000); /* as much detail as may be */
	for (u32 i = 0; i < n; i++) {
		if (i)
			assert_true(piece[i].begin >= piece[i - 1].end);
		assert_true(piece[i].end > piece[i].begin && piece[i].busy <= piece[i].end - piece[i].begin);
		spans += piece[i].count;
		busy += piece[i].busy;
		if (piece[i].count == 1 && piece[i].busy == 3 * MS) {
			alone++;
			assert_int_equal(piece[i].item, N / 2);
		}
	}
	assert_int_equal(spans, N); /* none is lost, none counted twice */
	assert_int_equal(busy, (N - 1) * 1000ULL + 3 * MS);
	assert_int_equal(alone, 1);
}

/* What should not be: spans that overlap all over. The bound holds. */
static void test_lod_overlaps(void **state)
{
	for (u32 i = 0; i < N; i++)
		span[i] = (struct hb_lod_span){.begin = START + i, .end = START + WALL, .item = i};
	assert_true(hb_lod__join(span, N, START, hb_lod__cell(span, N, START, START + WALL, 64), NULL) <= 64);
	for (u32 i = 0; i < N; i++)
		span[i] = (struct hb_lod_span){.begin = START, .end = START, .item = i};
	assert_int_equal(hb_lod__join(span, N, START, hb_lod__cell(span, N, START, START + WALL, 64), piece),
			 1);
	assert_int_equal(piece[0].count, N);
}

/* ---- labels ---- */

static void test_labels(void **state)
{
	struct hb_labels *t = hb_labels__new();
	char longer[400];
	u32 last = 0;

	assert_non_null(t);
	assert_int_equal(hb_labels__add(t, ""), 0);
	assert_int_equal(hb_labels__add(t, "a"), 2);
	assert_int_equal(hb_labels__add(t, "b"), 3);
	assert_int_equal(hb_labels__add(t, "a"), 2);
	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = 0;
	assert_int_equal(hb_labels__add(t, longer), 4);
	assert_int_equal(hb_labels__add(t, longer), 4);
	/* Too many: all that come late are one, what was there stays. */
	for (u32 i = 0; i < 100000; i++) {
		snprintf(longer, sizeof(longer), "%0100u", i);
		last = hb_labels__add(t, longer);
	}
	assert_int_equal(last, 1);
	assert_int_equal(hb_labels__add(t, "b"), 3);
	assert_false(hb_labels__oom(t));
	hb_labels__free(t);
}

/* ---- the page ---- */

static char *page_of(struct hb_window *w, const char *title)
{
	struct hb_error e = {0};
	struct hb_analysis *a = hb_analysis__new(w, NULL, &e);
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	if (!a)
		fail_msg("%s", e.text);
	assert_int_equal(hb_analysis__html(a, title, f, &e), 0);
	fclose(f);
	hb_analysis__free(a);
	return text;
}

static u32 count_of(const char *s, const char *what)
{
	u32 n = 0;

	for (; (s = strstr(s, what)); s++)
		n++;
	return n;
}

static u64 number_of(const char *s, const char *key)
{
	const char *at = strstr(s, key);

	return at ? strtoull(at + strlen(key), NULL, 10) : 0;
}

static void test_page_is_whole(void **state)
{
	struct rig r;
	struct hb_window *w = rig_window(&r, "html");
	char *page = page_of(w, "a<b>&\"c\".hbw");

	assert_non_null(strstr(page, "<title>a&lt;b&gt;&amp;&quot;c&quot;.hbw - herschel-bpf</title>"));
	assert_null(strstr(page, "{{"));
	assert_int_equal(strncmp(page, "<!DOCTYPE html>", 15), 0);
	assert_non_null(strstr(page, "</html>"));
	/* Three islands and the script. */
	assert_int_equal(count_of(page, "<script"), 4);
	assert_int_equal(count_of(page, "</script>"), 4);
	assert_non_null(strstr(page, "default-src 'none'; script-src 'sha256-"));
	/* Its own address appears nowhere. */
	assert_null(strstr(page, "http://"));
	assert_null(strstr(page, "https://cdn"));
	free(page);
	rig_close(&r, w);
}

/* A name that would end its island, open another and run. */
static void test_page_hostile(void **state)
{
	static const char evil[] = "</script><script>alert(1)</script><!--";
	struct rig r = rig_new("html-evil");
	struct hb_rec_sample s = {.weight = MS, .stack = ST_USER, .sysno = HB_SYSNO_NONE};
	struct hb_rec_note n = {.level = HB_NOTE_WARNING};
	struct hb_window *w;
	char *page;
	u16 task;
	u32 frame;

	rig_tables(&r);
	task = rig_task(&r, 300, 300, evil, true);
	frame = rig_loc(&r, evil, evil, 0, HB_LANG_NATIVE);
	hb_window_writer__stack(r.w, 300, ST_USER, &frame, 1, HB_STACK_WHOLE);
	n.text = hb_window_writer__string(r.w, evil);
	rig_put(&r, MS, task, HB_TYPE_sample, &s);
	rig_put(&r, 2 * MS, task, HB_TYPE_note, &n);
	hb_window_writer__meta(r.w, "host", evil);
	w = rig_open(&r);
	page = page_of(w, evil);
	assert_int_equal(count_of(page, "<script"), 4);
	assert_int_equal(count_of(page, "</script>"), 4);
	assert_null(strstr(page, "<script>alert"));
	assert_int_equal(count_of(page, "<!--"), 1); /* the licence's */
	assert_true(count_of(page, "\\u003c/script>\\u003cscript>alert(1)") >= 4);
	free(page);
	rig_close(&r, w);
}

/* Half a million sleeps and calls: a bounded page. */
static void test_page_bounded(void **state)
{
	struct rig r = rig_new("html-many");
	struct hb_rec_offcpu o = {
	    .dur = 500, .sysno = SYS_FUTEX, .chankind = HB_CHAN_FUTEX, .state = HB_TSTATE_SLEEPING};
	struct hb_rec_accel a = {.probe = P_LAUNCH, .dur = 300, .flags = HB_AFLAG_TIMED};
	struct hb_window *w;
	char *page;

	rig_tables(&r);
	for (u64 i = 0; i < 250000; i++) {
		rig_put(&r, i * 4000 + 1000, i % 3 ? r.main : r.worker, HB_TYPE_offcpu, &o);
		rig_put(&r, i * 4000 + 2000, i % 3 ? r.main : r.worker, HB_TYPE_accel, &a);
	}
	w = rig_open(&r);
	page = page_of(w, "many");
	assert_in_range(strlen(page), 500000, 6000000);
	assert_in_range(number_of(page, "\"joined\":"), 500000, 2000000);
	assert_in_range(number_of(page, "\"pieces\":"), 50000, HB_HTML_PIECES + HB_HTML_DETAIL);
	free(page);
	rig_close(&r, w);
}

/* Nothing in it at all. */
static void test_page_empty(void **state)
{
	struct rig r = rig_new("html-empty");
	struct hb_window *w = rig_open(&r);
	char *page = page_of(w, "empty");

	assert_non_null(strstr(page, "\"lanes\":[]"));
	assert_non_null(strstr(page, "\"flames\":[]"));
	free(page);
	rig_close(&r, w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_lod_keeps_few), cmocka_unit_test(test_lod_bounds_many),
	    cmocka_unit_test(test_lod_overlaps),  cmocka_unit_test(test_labels),
	    cmocka_unit_test(test_page_is_whole), cmocka_unit_test(test_page_hostile),
	    cmocka_unit_test(test_page_bounded),  cmocka_unit_test(test_page_empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
