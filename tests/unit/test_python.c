// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* CPython from outside: the tables of versions, what runtimes publish, line tables of real compilers, and the
 * merging of native and Python frames. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/python/python.h"
#include "capture/session/impl.h"

/* ---- layouts ---- */

static void known_versions(void **state)
{
	struct hb_py_offsets o;

	for (unsigned minor = HB_PY_OLDEST; minor <= HB_PY_NEWEST; minor++) {
		assert_true(hb_py_offsets__known(minor, false, &o));
		assert_int_equal(o.minor, minor);
		assert_int_equal(hb_py_offsets__known(minor, true, &o), minor >= 13);
		/* A frame is read whole: all that is looked at in it lies within. */
		assert_in_range(o.walk.frame_size, 1, HB_PY_BLOCK);
		assert_true(o.walk.back + 8 <= o.walk.frame_size && o.walk.code + 8 <= o.walk.frame_size);
		assert_true(o.walk.instr + 8 <= o.walk.frame_size && o.walk.owner < o.walk.frame_size);
		assert_true(o.walk.entry < o.walk.frame_size);
		assert_true(o.walk.back % 8 == 0 && o.walk.code % 8 == 0 && o.walk.instr % 8 == 0);
		assert_int_equal(o.walk.slot_inner, -1);
		assert_int_equal(o.code_qualname != 0, minor >= 11);
	}
	assert_false(hb_py_offsets__known(7, false, &o));
	assert_false(hb_py_offsets__known(16, false, &o));
	assert_false(hb_py_offsets__known(12, true, &o));
}

/* As the build of 3.13.0 publishes them. */
static size_t words_13(u64 *w)
{
	static const u64 real[73] = {
	    0,	  0x030d00f0, 0,    283320, 608, 632, 194968, 7272, 7264, 7344, 7400, 7656, 7640, 7648, 16,
	    7752, 0,	      7768, 7760,   304, 0,   8,      16,   72,	  152,	160,  232,  32,	  80,	8,
	    0,	  56,	      72,   70,	    208, 112, 120,    128,  136,  68,	52,   96,   104,  200,	16,
	    8,	  416,	      24,   88,	    168, 32,  24,     16,   40,	  24,	16,   48,   32,	  40,	24,
	    16,	  32,	      16,   24,	    40,	 16,  32,     64,   32,	  16,	40,   240,  200};

	memcpy(w, real, sizeof(real));
	memcpy(w, "xdebugpy", 8);
	return 73;
}

static void published(void **state)
{
	u64 w[HB_PY_PUBLISHED_WORDS];
	size_t n = words_13(w);
	struct hb_py_offsets o, known;

	assert_int_equal(hb_py_offsets__published(w, n, &o), 0);
	hb_py_offsets__known(13, false, &known);
	assert_memory_equal(&o, &known, sizeof(o)); /* the table says the same */
	w[31] = 48;
	assert_int_equal(hb_py_offsets__published(w, n, &o), 0);
	assert_int_equal(o.walk.instr, 48); /* what is published counts */
}

static void published_wrong(void **state)
{
	u64 w[HB_PY_PUBLISHED_WORDS];
	size_t n = words_13(w);
	struct hb_py_offsets o;

	assert_int_equal(hb_py_offsets__published(w, n - 1, &o), -EINVAL);
	assert_int_equal(hb_py_offsets__published(w, 0, &o), -EINVAL);
	for (size_t i = 0; i < n; i++) { /* each word a wild one */
		words_13(w);
		w[i] = 0xfffffffffffffff0;
		assert_int_equal(hb_py_offsets__published(w, n, &o), -EINVAL);
	}
	words_13(w);
	w[31] = 57; /* no pointer lies there */
	assert_int_equal(hb_py_offsets__published(w, n, &o), -EINVAL);
	words_13(w);
	w[1] = 0x030c00f0; /* 3.12 has none */
	assert_int_equal(hb_py_offsets__published(w, n, &o), -EINVAL);
}

/* ---- lines: of one function, by each compiler ---- */

static const struct {
	const char *version;
	enum hb_py_lines kind;
	u32 n, code_bytes;
	const char *table;
	struct {
		u32 at, line;
	} lines[24];
} compiled[] = {
    {"3.8",
     HB_PY_LNOTAB,
     36,
     68,
     "\x00\x01\x04\x03\x02\x02\x02\xfd\x04\x04\x02\x01\x08\x01\x04\x00\x08\x00\x02\x01"
     "\x02\x01\x02\xff\x0a\x03\x02\x01\x02\xff\x06\x7f\x00\x7f\x00\x31",
     {{0, 2},
      {4, 5},
      {6, 7},
      {8, 4},
      {12, 8},
      {14, 9},
      {22, 10},
      {36, 11},
      {38, 12},
      {40, 11},
      {50, 14},
      {52, 15},
      {54, 14},
      {60, 317}}},
    {"3.9",
     HB_PY_LNOTAB,
     36,
     76,
     "\x00\x01\x04\x03\x02\x02\x02\xfd\x04\x04\x02\x01\x08\x01\x0e\x01\x02\x01\x02\xff"
     "\x08\x03\x02\x01\x02\xff\x08\x01\x02\xff\x06\x7f\x00\x7f\x00\x31",
     {{0, 2},
      {4, 5},
      {6, 7},
      {8, 4},
      {12, 8},
      {14, 9},
      {22, 10},
      {36, 11},
      {38, 12},
      {40, 11},
      {48, 14},
      {50, 15},
      {52, 14},
      {60, 15},
      {62, 14},
      {68, 317}}},
    {"3.10",
     HB_PY_RANGES,
     44,
     74,
     "\x04\x01\x02\x03\x02\x02\x04\xfd\x02\x04\x08\x01\x0e\x01\x02\x01\x02\x01\x06\xff"
     "\x02\xfe\x02\x05\x02\x01\x04\xff\x00\x7f\x00\x7f\x08\x31\x00\x81\x00\x81\x02\xcf"
     "\x02\x01\x06\xff",
     {{0, 2},
      {4, 5},
      {6, 7},
      {8, 4},
      {12, 8},
      {14, 9},
      {22, 10},
      {36, 11},
      {38, 12},
      {40, 11},
      {46, 9},
      {48, 14},
      {50, 15},
      {52, 14},
      {56, 317},
      {64, 14},
      {66, 15},
      {68, 14}}},
    {"3.11",
     HB_PY_LOCATIONS,
     151,
     176,
     "\x80\x00\xd8\x08\x09\x80\x41\xf0\x06\x00\x09\x0a\xe0\x08\x09\xf0\x07\x03\x09\x0b"
     "\x80\x41\xf0\x08\x07\x05\x0d\xd8\x11\x12\xf0\x00\x03\x09\x14\xf0\x00\x03\x09\x14"
     "\x88\x41\xd8\x0f\x10\xd0\x0c\x20\x95\x21\x90\x41\x91\x24\x94\x24\x90\x24\x98\x08"
     "\xd8\x11\x12\xd8\x11\x12\xf1\x03\x01\x12\x13\x88\x41\x88\x41\xf0\x05\x03\x09\x14"
     "\xf5\x0a\x00\x09\x0a\xd8\x0a\x0b\xf1\x03\x01\x09\x0d\xf4\x00\x01\x09\x0d\xf0\x00"
     "\x01\x09\x0d\xf0\x00\x01\x09\x0d\xf8\x8d\x01\xd8\x0a\x0b\xf1\x03\x01\x09\x0d\xf4"
     "\x00\x01\x09\x0d\xf0\x00\x01\x09\x0d\xf0\x00\x01\x09\x0d\xf8\xf8\xf8\xf5\x5e\x09"
     "\x00\x0c\x0d\x88\x51\x89\x34\x8c\x34\x80\x4b",
     {{0, 1},
      {2, 2},
      {6, 5},
      {8, 7},
      {10, 4},
      {14, 8},
      {16, 9},
      {24, 10},
      {60, 11},
      {62, 12},
      {64, 11},
      {72, 9},
      {74, 14},
      {86, 15},
      {88, 14},
      {120, 15},
      {122, 14},
      {146, 317}}},
    {"3.12",
     HB_PY_LOCATIONS,
     107,
     146,
     "\x80\x00\xd8\x08\x09\x80\x41\xf0\x06\x00\x09\x0a\xe0\x08\x09\xf0\x07\x03\x09\x0b"
     "\x80\x41\xf0\x08\x07\x05\x0d\xd8\x11\x12\xf2\x00\x03\x09\x14\x88\x41\xd9\x0f\x10"
     "\x94\x21\x90\x41\x94\x24\x98\x08\xd8\x11\x12\xd8\x11\x12\xf1\x03\x01\x12\x13\x89"
     "\x41\xf1\x05\x03\x09\x14\xf4\x0a\x00\x09\x0a\xd8\x0a\x0b\xf4\x03\x01\x09\x0d\xf4"
     "\x5e\x09\x00\x0c\x0d\x88\x51\x8b\x34\x80\x4b\xf8\xf4\x5f\x09\x00\x09\x0a\xd8\x0a"
     "\x0b\xf5\x03\x01\x09\x0d\xfa",
     {{0, 1},
      {2, 2},
      {6, 5},
      {8, 7},
      {10, 4},
      {14, 8},
      {16, 9},
      {26, 10},
      {54, 11},
      {56, 12},
      {58, 11},
      {66, 9},
      {70, 14},
      {80, 15},
      {82, 14},
      {92, 317},
      {116, 14},
      {126, 15},
      {128, 14}}},
    {"3.13",
     HB_PY_LOCATIONS,
     102,
     160,
     "\x80\x00\xd8\x08\x09\x80\x41\xf0\x06\x00\x09\x0a\xe0\x08\x09\xf0\x07\x03\x09\x0b"
     "\x80\x41\xf0\x08\x07\x05\x0d\xdb\x11\x12\x88\x41\xde\x0f\x10\x94\x21\x90\x41\x94"
     "\x24\x99\x08\xd8\x11\x12\xd8\x11\x12\xf1\x03\x01\x12\x13\x8a\x41\xf1\x05\x00\x12"
     "\x13\xf4\x0a\x00\x09\x0a\xd8\x0a\x0b\xf4\x03\x01\x09\x0d\xf4\x5e\x09\x00\x0c\x0d"
     "\x88\x51\x8b\x34\x80\x4b\xf8\xf4\x5f\x09\x00\x09\x0a\xd8\x0a\x0b\xf5\x03\x01\x09"
     "\x0d\xfa",
     {{0, 1},
      {2, 2},
      {6, 5},
      {8, 7},
      {10, 4},
      {14, 8},
      {16, 9},
      {26, 10},
      {66, 11},
      {68, 12},
      {70, 11},
      {80, 9},
      {84, 14},
      {94, 15},
      {96, 14},
      {106, 317},
      {130, 14},
      {140, 15},
      {142, 14}}},
};

static void lines(void **state)
{
	for (size_t i = 0; i < sizeof(compiled) / sizeof(*compiled); i++) {
		u32 line = 0, next = 0;

		for (u32 at = 0; at < compiled[i].code_bytes; at += 2) {
			if (next < 24 && compiled[i].lines[next].at == at)
				line = compiled[i].lines[next++].line;
			if (hb_py_lines__at(compiled[i].kind, (const u8 *)compiled[i].table, compiled[i].n, 1,
					    at) != line)
				fail_msg("Python %s: instruction %u is not on line %u", compiled[i].version,
					 at, line);
		}
	}
}

static void lines_wrong(void **state)
{
	static const u8 endless[] = {0xf0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, back[] = {2, 0x81, 2, 0x81};

	assert_int_equal(hb_py_lines__at(HB_PY_LOCATIONS, endless, sizeof(endless), 1, 1000), 0);
	assert_int_equal(hb_py_lines__at(HB_PY_LOCATIONS, endless, 0, 1, 0), 0);
	assert_int_equal(hb_py_lines__at(HB_PY_RANGES, back, sizeof(back), 1, 2),
			 0); /* before the first line */
	assert_int_equal(hb_py_lines__at(HB_PY_LNOTAB, back, 0, 7, 2), 7);
	/* An odd byte at the end is no pair. */
	assert_int_equal(hb_py_lines__at(HB_PY_LNOTAB, back, 1, 7, 2), 7);
}

/* ---- merging ---- */

#define N(loc)                                                                                               \
	{                                                                                                    \
		loc, false, false, false                                                                     \
	}
#define EVAL(loc)                                                                                            \
	{                                                                                                    \
		loc, true, true, false                                                                       \
	}
#define GLUE(loc)                                                                                            \
	{                                                                                                    \
		loc, false, true, false                                                                      \
	}
#define WILD(loc)                                                                                            \
	{                                                                                                    \
		loc, false, false, true                                                                      \
	}

static void merged(const struct hb_native_frame *f, u32 n_f, const struct hb_py_frame *p, u32 n_p,
		   const char *expected)
{
	u32 locs[64], n = hb_session__merge(f, n_f, p, n_p, locs, 64);
	char text[512] = "";

	for (u32 i = 0; i < n; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%u", i ? " " : "", locs[i]);
	assert_string_equal(text, expected);
}

static void merge_exact(void **state)
{
	/* sort() of a library, called from two Python functions, calls another; the thread's begin is
	 * outermost */
	const struct hb_native_frame f[] = {N(1),    GLUE(2), EVAL(3), GLUE(4), N(5),
					    GLUE(6), EVAL(7), GLUE(8), N(9)};
	const struct hb_py_frame p[] = {{101, true}, {102, false}, {103, true}};

	merged(f, 9, p, 3, "9 103 102 5 101 2 1");
	merged(f, 9, p, 0, "9 8 7 6 5 4 3 2 1"); /* no Python: nothing is taken away */
	merged(f, 0, p, 3, "103 102 101");
}

static void merge_early_end(void **state)
{
	/* The native walk has seen one of two loops, and took something for a frame. */
	const struct hb_native_frame f[] = {N(1), WILD(2), EVAL(3), N(4), WILD(5)};
	const struct hb_native_frame leaf[] = {WILD(1), N(2), WILD(3)};
	const struct hb_py_frame p[] = {{101, true}, {102, false}, {103, true}};

	merged(f, 5, p, 3, "103 102 101 1");
	merged(leaf, 3, p, 3, "103 102 101 2 1"); /* where the thread was stays */
	merged(f, 5, p, 1, "4 101 1");
}

static void merge_bounded(void **state)
{
	struct hb_native_frame f[100];
	struct hb_py_frame p[100];
	u32 locs[10];

	for (u32 i = 0; i < 100; i++) {
		f[i] = (struct hb_native_frame)N(i + 1);
		p[i] = (struct hb_py_frame){i + 1000, false};
	}
	assert_int_equal(hb_session__merge(f, 100, p, 100, locs, 10), 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(known_versions),  cmocka_unit_test(published),
	    cmocka_unit_test(published_wrong), cmocka_unit_test(lines),
	    cmocka_unit_test(lines_wrong),     cmocka_unit_test(merge_exact),
	    cmocka_unit_test(merge_early_end), cmocka_unit_test(merge_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
