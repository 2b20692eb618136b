/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which functions are meant: "[file-or-module glob:]qualname-glob". */
#ifndef HB_PYTHON_PATTERN_H
#define HB_PYTHON_PATTERN_H

#include "base/error.h"
#include "schema/schema.h"

struct hb_py_pattern {
	char file[256]; /* glob; "" for any. Of the path, of its last part, or of the module's name */
	char name[256]; /* glob of the qualified name */
};

/* 0, or -EINVAL with a sentence. */
int hb_py_pattern__parse(const char *text, struct hb_py_pattern *p, struct hb_error *e);
/* `qualified`: whether `name` is a qualified name. Before 3.11 code objects only have the plain one, which is
 * compared with what follows the pattern's last dot. */
bool hb_py_pattern__matches(const struct hb_py_pattern *p, const char *file, const char *name,
			    bool qualified);

#endif
