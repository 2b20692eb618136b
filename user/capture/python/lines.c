/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Line tables of code objects, in the three ways they have been written. Foreign bytes: reads stay inside. */
#include "capture/python/python.h"

/* 3.8, 3.9: pairs of (bytes further, lines further). */
static s64 by_lnotab(const u8 *t, size_t size, s64 line, u32 at)
{
	u64 addr = 0;

	for (size_t i = 0; i + 1 < size; i += 2) {
		addr += t[i];
		if (addr > at)
			break;
		line += (int8_t)t[i + 1];
	}
	return line;
}

#define NO_LINE (-128)

/* 3.10: ranges of (length in bytes, lines further than the last line there was). An instruction that has no
 * line, such as a jump that the compiler added, is shown at that of the one before. */
static s64 by_ranges(const u8 *t, size_t size, s64 line, u32 at)
{
	u64 end = 0;

	for (size_t i = 0; i + 1 < size; i += 2) {
		int delta = (int8_t)t[i + 1];

		end += t[i];
		if (delta != NO_LINE)
			line += delta;
		if (at < end)
			return line;
	}
	return 0;
}

/* Six bits a byte, lowest first; bit 6 says that there is more. */
static u64 varint(const u8 *t, size_t size, size_t *pos)
{
	u64 v = 0;

	for (unsigned shift = 0; *pos < size && shift < 36; shift += 6) {
		u8 b = t[(*pos)++];

		v |= (u64)(b & 63) << shift;
		if (!(b & 64))
			break;
	}
	return v;
}

static s64 signed_varint(const u8 *t, size_t size, size_t *pos)
{
	u64 v = varint(t, size, pos);

	return v & 1 ? -(s64)(v >> 1) : (s64)(v >> 1);
}

enum { ONE_LINE = 10, ONE_LINE_LAST = 12, NO_COLUMNS = 13, LONG = 14 }; /* 15: no line; others: the same */

/* From 3.11: each entry begins with a byte that has bit 7 set: 4 bits kind, 3 bits length in code units. */
static s64 by_locations(const u8 *t, size_t size, s64 line, u32 at)
{
	u64 end = 0;
	size_t i = 0;

	while (i < size) {
		unsigned kind = t[i] >> 3 & 15;

		end += 2 * ((t[i++] & 7) + 1u);
		if (kind == LONG || kind == NO_COLUMNS)
			line += signed_varint(t, size, &i);
		else if (kind >= ONE_LINE && kind <= ONE_LINE_LAST)
			line += kind - ONE_LINE;
		if (at < end)
			return line;
		while (i < size && !(t[i] & 128)) /* columns */
			i++;
	}
	return 0;
}

u32 hb_py_lines__at(enum hb_py_lines kind, const u8 *table, size_t size, u32 firstline, u32 at)
{
	s64 line = firstline;

	if (kind == HB_PY_LNOTAB)
		line = by_lnotab(table, size, line, at);
	else if (kind == HB_PY_RANGES)
		line = by_ranges(table, size, line, at);
	else
		line = by_locations(table, size, line, at);
	return line > 0 && line <= INT32_MAX ? (u32)line : 0;
}
