/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The catalogue itself: descriptors, their page, thresholds by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/patterns/patterns.h"

static const char *numbers[] = {
    "GATE", "P01",  "P02",  "P03",  "P04", "P05", "P06", "P07", "P08", "P09", "P10", "P11", "P12",  "P13",
    "P14",  "P15",  "P16",  "P17",  "P18", "P19", "P20", "P21", "P22", "P23", "P24", "P25", "P26",  "P27",
    "P28",  "P29",  "P30",  "P31",  "P32", "P33", "P34", "P35", "P36", "P37", "P38", "P39", "P40a", "P40b",
    "P40c", "P40d", "P40e", "P40f", "P41", "P42", "P43", "P44", "P45", "P46", "P47", "P48", "P49",
};

/* All of the catalogue, each once, in its order. */
static void all_are_there(void **state)
{
	const struct hb_pattern *const *p = hb_patterns();
	size_t n = 0;

	for (; p[n]; n++) {
		assert_true(n < sizeof(numbers) / sizeof(*numbers));
		assert_string_equal(p[n]->id, numbers[n]);
		assert_ptr_equal(hb_patterns__find(numbers[n]), p[n]);
	}
	assert_int_equal(n, sizeof(numbers) / sizeof(*numbers));
	assert_ptr_equal(hb_patterns__find("p40D"), hb_patterns__find("P40d"));
	assert_null(hb_patterns__find("P50"));
	assert_null(hb_patterns__find(""));
}

/* What no window can hold yet: nothing sets these. */
#define NEVER                                                                                                \
	(HB_NEED_ENGINE | HB_NEED_REQUEST | HB_NEED_CGROUP | HB_NEED_FAULT | HB_NEED_NUMA |                  \
	 HB_NEED_PROPERTIES | HB_NEED_COUNTER | HB_NEED_STREAM_FLAGS | HB_NEED_SEQUENCE | HB_NEED_NET)

/* One that has no detector must say what is missing, and one that has a detector must be able to run. */
static void each_says_all_of_itself(void **state)
{
	for (const struct hb_pattern *const *p = hb_patterns() + 1; *p; p++) {
		const struct hb_pattern *x = *p;

		if (!x->layer || !x->title || !x->rule || !x->fix || !x->ref || !x->traps || !x->settle)
			fail_msg("%s leaves something out", x->id);
		if (!x->detect && !(x->needs & NEVER))
			fail_msg("%s has no detector, and needs nothing that is missing", x->id);
		if (x->detect && ((x->needs & NEVER) || !x->params))
			fail_msg("%s has a detector that can never run, or no threshold", x->id);
		for (const struct hb_param *a = x->params; a && a->key; a++)
			if (!a->doc || !*a->doc || !hb_thresholds__value(NULL, x, a->key))
				fail_msg("%s.%s has no meaning, or no default", x->id, a->key);
	}
}

static void page_is_printed_from_them(void **state)
{
	static const char begin[] = "<!-- made by `make docs-patterns`: begin -->\n",
			  end[] = "<!-- end -->\n";
	char *want = NULL, *docs = calloc(1, 1 << 20), *from, *to;
	size_t size;
	FILE *f = open_memstream(&want, &size);

	hb_patterns__describe(f);
	fclose(f);
	f = fopen("docs/patterns.md", "r+");
	if (!f)
		fail_msg("docs/patterns.md is not here: run from the project's folder");
	assert_true(fread(docs, 1, (1 << 20) - 1, f) > 0);
	from = strstr(docs, begin);
	to = from ? strstr(from, end) : NULL;
	assert_non_null(to);
	from += strlen(begin);
	if (getenv("HB_UPDATE_DOCS")) {
		rewind(f);
		assert_int_equal(ftruncate(fileno(f), 0), 0);
		fprintf(f, "%.*s%s%s", (int)(from - docs), docs, want, to);
	} else if ((size_t)(to - from) != size || memcmp(from, want, size) != 0) {
		fail_msg("docs/patterns.md does not say what the patterns are: run `make docs-patterns`");
	}
	fclose(f);
	free(want);
	free(docs);
}

/* ---- thresholds ---- */

static void set(struct hb_thresholds *t, const char *text, u64 want)
{
	struct hb_error e = {0};
	char id[8] = "", key[32] = "";

	if (hb_thresholds__set(t, text, &e))
		fail_msg("%s: %s", text, e.text);
	assert_int_equal(sscanf(text, " %7[^.].%31[a-z_0-9]", id, key), 2);
	assert_int_equal(hb_thresholds__value(t, hb_patterns__find(id), key), want);
}

static void can_be_set(void **state)
{
	struct hb_thresholds *t = hb_thresholds__new();
	const struct hb_pattern *p;
	const struct hb_param *a;
	u64 v;

	assert_non_null(t);
	assert_int_equal(hb_thresholds__value(t, hb_patterns__find("P21"), "wait_share"), 50000);
	set(t, "p21.wait_share=0.1", 100000);
	set(t, "P21.wait_share = 7 %", 70000);
	set(t, " p27.single=3ms", 3000000);
	set(t, "p27.single=0", 0);
	set(t, "p02.bytes=128KiB", 131072);
	set(t, "p23.wakes=12000", 12000);
	set(t, "p22.over_hold=1.5", 1500000);
	set(t, "gate.event=50ms", 50000000);
	assert_true(hb_thresholds__changed(t, 0, &p, &a, &v));
	assert_string_equal(p->id, "P21");
	assert_string_equal(a->key, "wait_share");
	assert_int_equal(v, 70000);
	assert_false(hb_thresholds__changed(t, 6, &p, &a, &v));
	hb_thresholds__free(t);
}

static void refused(struct hb_thresholds *t, const char *text, const char *word)
{
	struct hb_error e = {0};

	assert_true(hb_thresholds__set(t, text, &e) < 0);
	assert_int_equal(e.exit, HB_EXIT_USAGE);
	if (!strstr(e.text, word))
		fail_msg("\"%s\" is not in: %s", word, e.text);
}

static void wrong_ones_are_refused(void **state)
{
	struct hb_thresholds *t = hb_thresholds__new();

	refused(t, "p21", "PATTERN.NAME=VALUE");
	refused(t, "p21.wait_share", "PATTERN.NAME=VALUE");
	refused(t, "p21=wait.share", "PATTERN.NAME=VALUE");
	refused(t, "p99.x=1", "no pattern \"p99\"");
	refused(t, "p21.weight=1", "it has: wait_share, exposed_share");
	refused(t, "p32.x=1", "it has: none");
	refused(t, "p21.wait_share=much", "a part such as 0.05");
	refused(t, "p21.wait_share=-1", "a part such as 0.05");
	refused(t, "p21.wait_share=nan", "a part such as 0.05");
	refused(t, "p27.single=10", "a time such as");
	refused(t, "p23.wakes=1.5", "a whole number per second");
	refused(t, "p02.bytes=big", "a size such as");
	assert_int_equal(hb_thresholds__value(t, hb_patterns__find("P21"), "wait_share"), 50000);
	hb_thresholds__free(t);
}

static void files_are_read(void **state)
{
	struct hb_thresholds *t = hb_thresholds__new();
	struct hb_error e = {0};
	char path[] = "/tmp/hb-thresholds-XXXXXX";
	FILE *f = fdopen(mkstemp(path), "w");

	assert_non_null(f);
	fputs("# ours\n\n  p21.wait_share = 20%   # busy machines\np26.single=5ms\n", f);
	fflush(f);
	assert_int_equal(hb_thresholds__read(t, path, &e), 0);
	assert_int_equal(hb_thresholds__value(t, hb_patterns__find("P21"), "wait_share"), 200000);
	assert_int_equal(hb_thresholds__value(t, hb_patterns__find("P26"), "single"), 5000000);
	fputs("p26.double=1\n", f);
	fclose(f);
	assert_true(hb_thresholds__read(t, path, &e) < 0);
	assert_non_null(strstr(e.text, ":5: pattern P26 has no threshold \"double\""));
	hb_error__clear(&e);
	f = fopen(path, "w");
	assert_non_null(f);
	assert_int_equal(fwrite("p26.single=5ms\n\0\0", 1, 17, f), 17);
	fclose(f);
	assert_true(hb_thresholds__read(t, path, &e) < 0);
	assert_non_null(strstr(e.text, "no text"));
	unlink(path);
	hb_error__clear(&e);
	assert_true(hb_thresholds__read(t, path, &e) < 0);
	assert_non_null(strstr(e.text, "No such file"));
	hb_thresholds__free(t);
}

static void numbers_for_people(void **state)
{
	char b[32];

	assert_string_equal(hb_unit__text(HB_UNIT_SHARE, 50000, b, sizeof(b)), "5 %");
	assert_string_equal(hb_unit__text(HB_UNIT_SHARE, 123456, b, sizeof(b)), "12.34 %");
	assert_string_equal(hb_unit__text(HB_UNIT_SHARE, 0, b, sizeof(b)), "0 %");
	assert_string_equal(hb_unit__text(HB_UNIT_RATIO, 1500000, b, sizeof(b)), "1.5 x");
	assert_string_equal(hb_unit__text(HB_UNIT_NS, 200000, b, sizeof(b)), "200.0 us");
	assert_string_equal(hb_unit__text(HB_UNIT_RATE, 5000, b, sizeof(b)), "5,000/s");
	assert_string_equal(hb_unit__text(HB_UNIT_BYTES, 65536, b, sizeof(b)), "64.0 KiB");
	assert_string_equal(hb_unit__text(HB_UNIT_COUNT, 1000, b, sizeof(b)), "1,000");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(all_are_there),
	    cmocka_unit_test(each_says_all_of_itself),
	    cmocka_unit_test(page_is_printed_from_them),
	    cmocka_unit_test(can_be_set),
	    cmocka_unit_test(wrong_ones_are_refused),
	    cmocka_unit_test(files_are_read),
	    cmocka_unit_test(numbers_for_people),
	};

	return cmocka_run_group_tests_name("patterns: the list", tests, NULL, NULL);
}
