/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Objects of a CPython, read from outside. Sizes are bounded, types are checked where they are known. */
#ifndef HB_PYTHON_OBJECTS_H
#define HB_PYTHON_OBJECTS_H

#include "capture/python/python.h"

#define HB_PY_TEXT_MAX	480	   /* characters of a name that are kept */
#define HB_PY_LINES_MAX (1u << 20) /* bytes of a line table */
#define HB_PY_CODE_MAX	256	   /* bytes of a code object that are looked at */

/* A str as UTF-8, cut after HB_PY_TEXT_MAX characters, cleaned of control characters. 0, or -errno: -EINVAL
 * when it is no str. */
int hb_py_object__text(u32 pid, const struct hb_py_offsets *o, u64 addr, char *buf, size_t size);
#define HB_PY_TEXT_SIZE (4 * HB_PY_TEXT_MAX + 4)

/* Characters of 1, 2 or 4 bytes as UTF-8, cleaned: 4 bytes each and a NUL at most. */
void hb_py_text__utf8(const u8 *chars, unsigned kind, u32 n, char *buf);

/* A bytes object: malloc'ed, *size set; NULL when it is none or too large. */
u8 *hb_py_object__bytes(u32 pid, const struct hb_py_offsets *o, u64 addr, u32 *size);

/* What is of interest in a code object. */
struct hb_py_code {
	u64 type, file, name, lines; /* name: the qualified one where there is one */
	u64 version;		     /* a number that no other has; 0 before 3.12 */
	u64 func_name;		     /* the plain one */
	u32 firstline, units;	     /* units: code units, 0 before 3.11 */
};
/* Bytes of a code object that have to be read for it. */
size_t hb_py_code__bytes(const struct hb_py_offsets *o);
void hb_py_code__parse(const struct hb_py_offsets *o, const void *bytes, struct hb_py_code *c);

#endif
