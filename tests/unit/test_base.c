/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "base/map.h"
#include "base/text.h"

#include <errno.h>
#include <fnmatch.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* ---- text ---- */

static void check_clean(const char *in, const char *want)
{
	char buf[64];

	snprintf(buf, sizeof(buf), "%s", in);
	assert_string_equal(hb_text__clean(buf), want);
}

static void clean_strips_what_terminals_obey(void **state)
{
	check_clean("plain name-0_1", "plain name-0_1");
	check_clean("\033[31mred\a\n", "?[31mred??");
	check_clean("\x7f", "?");
	check_clean("gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x8c\x8d",
		    "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x8c\x8d");
	check_clean("\xc2\x9b"
		    "31m",
		    "??31m");			      /* C1 control sequence introducer */
	check_clean("\xff\xc3", "??");		      /* no UTF-8; cut off sequence */
	check_clean("\xc0\xaf\xe0\x80\xaf", "?????"); /* overlong */
	check_clean("\xed\xa0\x80", "???");	      /* surrogate */
	check_clean("\xf4\x90\x80\x80", "????");      /* beyond Unicode */
	check_clean("a\xe2\x80\xae"
		    "b",
		    "a???b"); /* right-to-left override */
}

static void check_fit(const char *in, size_t size, const char *want)
{
	char buf[512];

	snprintf(buf, sizeof(buf), "%s", in);
	assert_string_equal(hb_text__fit(buf, size), want);
}

#define TEN   "0123456789"
#define SIXTY TEN TEN TEN TEN TEN TEN
static void long_words_are_cut_in_the_middle(void **state)
{
	char umlauts[300];

	check_fit("fits", 8, "fits");
	check_fit("cannot write /" SIXTY SIXTY "/w: full", 120,
		  "cannot write /" TEN TEN TEN TEN "01234567\xe2\x80\xa6"
		  "456789" TEN TEN TEN TEN "/w: full");
	memset(umlauts, 0, sizeof(umlauts));
	for (unsigned i = 0; i < sizeof(umlauts) - 2; i += 2)
		memcpy(umlauts + i, "\xc3\xbc", 2);
	for (size_t size = 120; size < 290; size++) {
		char buf[512], clean[512];

		snprintf(buf, sizeof(buf), "cannot write %s: full", umlauts);
		hb_text__fit(buf, size);
		assert_true(strlen(buf) < size && strlen(buf) + 6 > size);
		assert_memory_equal(buf, "cannot write \xc3\xbc", 15);
		assert_string_equal(buf + strlen(buf) - 8, "\xc3\xbc: full");
		assert_non_null(strstr(buf, "\xe2\x80\xa6"));
		snprintf(clean, sizeof(clean), "%s", buf);
		assert_string_equal(hb_text__clean(clean), buf); /* no character was cut */
	}
}

static void no_path_hides_the_reason(void **state)
{
	struct hb_error e = {0};
	char path[4096];

	memset(path, 'p', sizeof(path) - 1);
	path[sizeof(path) - 1] = 0;
	hb_error__set(&e, HB_EXIT_FAILED, -5, "cannot rename %s to %s: the reason", path, path);
	assert_true(strlen(e.text) < sizeof(e.text));
	assert_non_null(strstr(e.text, "p to p"));
	assert_string_equal(e.text + strlen(e.text) - 13, "p: the reason");
	hb_error__clear(&e);
	memset(path, ' ', sizeof(path) - 1); /* no words at all */
	hb_error__set(&e, HB_EXIT_FAILED, -5, "cannot write %s: the reason", path);
	assert_string_equal(e.text + strlen(e.text) - 12, ": the reason");
}

/* Patterns of stars are matched without fnmatch(), which says what they mean. */
static void stars(void **state)
{
	static const char *const patterns[] = {
	    "",	     "*",     "a",   "a*", "*a",    "a*b",   "*a*",  "*ab",  "*a*b*", "**a**", "a**",
	    "*a*ba", "ab*ab", "a?b", "?",  "[ab]*", "*[!a]", "\\*a", "*\\*", "[",     "*a[",   "a*?"};
	char text[8] = {0};

	for (size_t i = 0; i < sizeof(patterns) / sizeof(*patterns); i++)
		for (unsigned k = 0; k < 4096; k++) { /* all texts of up to six of these */
			for (unsigned c = 0; c < 6; c++)
				text[c] = "\0ab*"[k >> 2 * c & 3];
			assert_int_equal(hb_text__glob(patterns[i], text),
					 fnmatch(patterns[i], text, 0) == 0);
		}
}

static void globs(void **state)
{
	assert_true(hb_text__glob("libcudart*.so*", "libcudart.e8e8b82a.so.12"));
	assert_true(hb_text__glob("*/libcuda.so*", "/usr/lib/libcuda.so.1"));
	assert_false(hb_text__glob("libcuda.so*", "LIBCUDA.so"));
	assert_string_equal(hb_text__basename("/a/b.so"), "b.so");
	assert_string_equal(hb_text__basename("b.so"), "b.so");
}

static void durations(void **state)
{
	static const char *const bad[] = {"",	 "30",	"0s",  "-1s", "s",    "1e3s",	       "0x1s",
					  "1 s", "1ss", "25h", "inf", "nans", "9999999999999h"};
	uint64_t ns = 0;

	assert_int_equal(hb_text__duration("30s", &ns), 0);
	assert_int_equal(ns, 30000000000ULL);
	assert_int_equal(hb_text__duration("1.5ms", &ns), 0);
	assert_int_equal(ns, 1500000);
	assert_int_equal(hb_text__duration("1000ns", &ns), 0);
	assert_int_equal(ns, 1000);
	assert_int_equal(hb_text__duration("24h", &ns), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal(hb_text__duration(bad[i], &ns), -EINVAL);
	assert_int_equal(hb_text__duration(NULL, &ns), -EINVAL);
}

static void sizes(void **state)
{
	static const char *const bad[] = {"", "0", "-1", "KiB", "1kib", "1TiBB", "99999999999GiB", "1 MiB"};
	uint64_t n = 0;

	assert_int_equal(hb_text__size("64KiB", &n), 0);
	assert_int_equal(n, 65536);
	assert_int_equal(hb_text__size("10MB", &n), 0);
	assert_int_equal(n, 10000000);
	assert_int_equal(hb_text__size("4096", &n), 0);
	assert_int_equal(n, 4096);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal(hb_text__size(bad[i], &n), -EINVAL);
}

static void formats(void **state)
{
	char b[32];

	assert_string_equal(hb_text__ns(b, sizeof(b), 12), "12 ns");
	assert_string_equal(hb_text__ns(b, sizeof(b), 45600), "45.6 us");
	assert_string_equal(hb_text__ns(b, sizeof(b), 1230000), "1.23 ms");
	assert_string_equal(hb_text__ns(b, sizeof(b), 2500000000ULL), "2.50 s");
	assert_string_equal(hb_text__bytes(b, sizeof(b), 1023), "1023 B");
	assert_string_equal(hb_text__bytes(b, sizeof(b), 1258291), "1.2 MiB");
	assert_string_equal(hb_text__count(b, sizeof(b), 7), "7");
	assert_string_equal(hb_text__count(b, sizeof(b), 123), "123");
	assert_string_equal(hb_text__count(b, sizeof(b), 1234567), "1,234,567");
	assert_string_equal(hb_text__count(b, sizeof(b), UINT64_MAX), "18,446,744,073,709,551,615");
}

/* ---- error ---- */

static void first_cause_wins(void **state)
{
	struct hb_error e = {0};

	assert_int_equal(hb_error__set(&e, HB_EXIT_TARGET, -ESRCH, "no process %d\n", 7), -ESRCH);
	assert_int_equal(hb_error__set(&e, HB_EXIT_FAILED, -EIO, "later"), -EIO);
	assert_string_equal(e.text, "no process 7?");
	assert_int_equal(e.err, -ESRCH);
	assert_int_equal(e.exit, HB_EXIT_TARGET);
	hb_error__clear(&e);
	assert_int_equal(hb_error__set(&e, HB_EXIT_USAGE, 0, "x"), -EINVAL);
	assert_int_equal(hb_error__set(NULL, HB_EXIT_USAGE, -EPERM, "x"), -EPERM);
	hb_error__clear(&e);
	assert_int_equal(hb_error__nomem(&e, "tables"), -ENOMEM);
	assert_non_null(strstr(e.text, "tables"));
}

/* ---- map ---- */

static void map_against_array(void **state)
{
	enum { N = 4096 };
	static uint64_t want[N];
	static bool there[N];
	struct hb_map *m = hb_map__new();
	uint64_t seed = 1, v, key;
	size_t n = 0, pos = 0;

	for (int i = 0; i < 100000; i++) {
		seed = hb_hash64(seed + 1);
		key = seed % N;
		if (seed >> 40 & 1) {
			assert_int_equal(hb_map__put(m, key << 32, seed), 0);
			n += !there[key];
			want[key] = seed;
			there[key] = true;
		} else {
			hb_map__del(m, key << 32);
			n -= there[key];
			there[key] = false;
		}
		assert_int_equal(hb_map__size(m), n);
	}
	for (key = 0; key < N; key++) {
		assert_int_equal(hb_map__get(m, key << 32, &v), there[key]);
		if (there[key])
			assert_true(v == want[key]);
	}
	while (hb_map__next(m, &pos, &key, &v)) {
		assert_true(there[key >> 32] && want[key >> 32] == v);
		n--;
	}
	assert_int_equal(n, 0);
	hb_map__free(m);
	hb_map__free(NULL);
}

static void map_slots(void **state)
{
	struct hb_map *m = hb_map__new();
	bool fresh;

	*hb_map__slot(m, 0, &fresh) = 5;
	assert_true(fresh);
	assert_int_equal(*hb_map__slot(m, 0, &fresh), 5);
	assert_false(fresh);
	*hb_map__slot(m, UINT64_MAX, NULL) = 6;
	assert_int_equal(hb_map__size(m), 2);
	hb_map__free(m);
}

static void hashes_of_bytes(void **state)
{
	assert_true(hb_hash_bytes("abc", 3) == hb_hash_bytes("abcd", 3));
	assert_true(hb_hash_bytes("abc", 3) != hb_hash_bytes("abc\0", 4));
	assert_true(hb_hash_bytes("0123456789", 10) != hb_hash_bytes("0123456798", 10));
}

/* ---- buf ---- */

static void buffer_grows(void **state)
{
	struct hb_buf b = {0};

	for (int i = 0; i < 1000; i++)
		hb_buf__printf(&b, "%03d", i);
	assert_int_equal(b.size, 3000);
	assert_memory_equal(b.data + 2997, "999", 3);
	hb_buf__add(&b, NULL, 0);
	assert_int_equal(b.size, 3000);
	assert_null(hb_buf__room(&b, SIZE_MAX / 2));
	assert_true(b.oom);
	hb_buf__add(&b, "x", 1); /* sticky */
	assert_int_equal(b.size, 3000);
	hb_buf__free(&b);
	assert_int_equal(b.size, 0);
	assert_false(b.oom);
}

/* ---- clock ---- */

static void deadlines(void **state)
{
	uint64_t now = hb_clock__now();

	assert_int_equal(hb_clock__left_ms(now), 0);
	assert_int_equal(hb_clock__left_ms(0), 0);
	assert_true(hb_clock__left_ms(now + 3600000000000ULL) > 3590000);
	assert_int_equal(hb_clock__left_ms(UINT64_MAX), 3600000);
}

/* ---- json ---- */

struct doc {
	char *text;
	size_t size;
	FILE *f;
	struct hb_json *j;
};

static void begin(struct doc *d, bool pretty)
{
	memset(d, 0, sizeof(*d));
	d->f = open_memstream(&d->text, &d->size);
	assert_non_null(d->f);
	d->j = hb_json__new(d->f, pretty);
	assert_non_null(d->j);
}

static void end(struct doc *d, int err, const char *want)
{
	assert_int_equal(hb_json__free(d->j), err);
	fclose(d->f);
	if (want)
		assert_string_equal(d->text, want);
	free(d->text);
}

static void json_values(void **state)
{
	struct doc d;

	begin(&d, false);
	hb_json__object(d.j);
	hb_json__ku64(d.j, "max", UINT64_MAX);
	hb_json__ks64(d.j, "min", INT64_MIN);
	hb_json__kreal(d.j, "share", 0.125, 2);
	hb_json__kreal(d.j, "none", NAN, 2);
	hb_json__kreal(d.j, "big", -1e300, 0);
	hb_json__kbool(d.j, "yes", true);
	hb_json__kstring(d.j, "nil", NULL);
	hb_json__karray(d.j, "list");
	hb_json__string(d.j, "a\"b\\c");
	hb_json__object(d.j);
	hb_json__end(d.j);
	hb_json__end(d.j);
	hb_json__kobject(d.j, "o");
	hb_json__end(d.j);
	hb_json__end(d.j);
	assert_int_equal(hb_json__error(d.j), 0);
	assert_int_equal(hb_json__free(d.j), 0);
	fclose(d.f);
	assert_non_null(
	    strstr(d.text, "{\"max\":18446744073709551615,\"min\":-9223372036854775808,\"share\":0.1"));
	assert_non_null(strstr(d.text, ",\"none\":null,\"big\":-1000"));
	assert_non_null(strstr(d.text, ",\"yes\":true,\"nil\":null,\"list\":[\"a\\\"b\\\\c\",{}],\"o\":{}}"));
	free(d.text);
}

static void json_lines(void **state)
{
	struct doc d;

	begin(&d, false);
	for (int i = 0; i < 2; i++) {
		hb_json__object(d.j);
		hb_json__ku64(d.j, "i", (uint64_t)i);
		hb_json__end(d.j);
		hb_json__newline(d.j);
	}
	end(&d, 0, "{\"i\":0}\n{\"i\":1}\n");
}

static void json_strings_are_cleaned(void **state)
{
	struct doc d;

	begin(&d, false);
	hb_json__array(d.j);
	hb_json__string(d.j, "\033[2Jname\xff");
	hb_json__string(d.j, "\xc3\xbc");
	hb_json__object(d.j);
	hb_json__kstring(d.j, "k\n", "");
	hb_json__end(d.j);
	hb_json__end(d.j);
	hb_json__newline(d.j);
	end(&d, 0, "[\"?[2Jname?\",\"\xc3\xbc\",{\"k?\":\"\"}]\n");
}

static void json_pretty(void **state)
{
	struct doc d;

	begin(&d, true);
	hb_json__object(d.j);
	hb_json__ku64(d.j, "a", 1);
	hb_json__end(d.j);
	hb_json__newline(d.j);
	end(&d, 0, "{\n  \"a\": 1\n}\n");
}

static void json_wrong_calls(void **state)
{
	struct doc d;

	begin(&d, false);
	hb_json__object(d.j);
	hb_json__u64(d.j, 1); /* a value where a key belongs */
	assert_int_equal(hb_json__error(d.j), -EINVAL);
	end(&d, -EINVAL, NULL);
	begin(&d, false);
	hb_json__end(d.j); /* nothing open */
	end(&d, -EINVAL, NULL);
	begin(&d, false);
	hb_json__array(d.j); /* never closed */
	end(&d, -EINVAL, NULL);
	begin(&d, false);
	for (int i = 0; i < 200; i++)
		hb_json__array(d.j);
	end(&d, -EINVAL, NULL);
}

/* More than the buffer, in one string and in many. */
static void json_long(void **state)
{
	struct doc d;
	char *s = malloc(200001);

	begin(&d, false);
	memset(s, 'x', 200000);
	s[200000] = 0;
	hb_json__array(d.j);
	hb_json__string(d.j, s);
	for (int i = 0; i < 50000; i++)
		hb_json__u64(d.j, 7);
	hb_json__end(d.j);
	assert_int_equal(hb_json__free(d.j), 0);
	fclose(d.f);
	assert_int_equal(d.size, 2 + 200002 + 100000);
	free(d.text);
	free(s);
}

static void json_disk_full(void **state)
{
	FILE *f = fopen("/dev/full", "w");
	struct hb_json *j;

	if (!f) {
		printf("skip: no /dev/full here\n");
		skip();
	}
	j = hb_json__new(f, false);
	hb_json__array(j);
	for (int i = 0; i < 100000; i++)
		hb_json__u64(j, (uint64_t)i);
	hb_json__end(j);
	assert_int_equal(hb_json__free(j), -ENOSPC);
	fclose(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(clean_strips_what_terminals_obey),
	    cmocka_unit_test(long_words_are_cut_in_the_middle),
	    cmocka_unit_test(no_path_hides_the_reason),
	    cmocka_unit_test(stars),
	    cmocka_unit_test(globs),
	    cmocka_unit_test(durations),
	    cmocka_unit_test(sizes),
	    cmocka_unit_test(formats),
	    cmocka_unit_test(first_cause_wins),
	    cmocka_unit_test(map_against_array),
	    cmocka_unit_test(map_slots),
	    cmocka_unit_test(hashes_of_bytes),
	    cmocka_unit_test(buffer_grows),
	    cmocka_unit_test(deadlines),
	    cmocka_unit_test(json_values),
	    cmocka_unit_test(json_lines),
	    cmocka_unit_test(json_strings_are_cleaned),
	    cmocka_unit_test(json_pretty),
	    cmocka_unit_test(json_wrong_calls),
	    cmocka_unit_test(json_long),
	    cmocka_unit_test(json_disk_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
