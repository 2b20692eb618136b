/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* --field: "[file-or-module glob:]qualname-glob  path[:type]". */
#ifndef HB_PYTHON_FIELD_H
#define HB_PYTHON_FIELD_H

#include "capture/python/heap.h"
#include "capture/python/pattern.h"

struct hb_py_field {
	char text[512]; /* as asked for, with one blank */
	struct hb_py_pattern function;
	struct hb_py_path path;
};

/* 0, or -EINVAL with a sentence. */
int hb_py_field__parse(const char *text, struct hb_py_field *f, struct hb_error *e);

#endif
