/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "capture/python/field.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

int hb_py_field__parse(const char *text, struct hb_py_field *f, struct hb_error *e)
{
	static const char blanks[] = " \t";
	char function[512];
	const char *path;
	size_t n, m;

	text += strspn(text, blanks);
	n = strcspn(text, blanks);
	path = text + n + strspn(text + n, blanks);
	m = strcspn(path, blanks);
	if (!n || !m || path[m + strspn(path + m, blanks)])
		return hb_error__set(
		    e, HB_EXIT_USAGE, -EINVAL,
		    "\"%.200s\": a field is a function and, after a blank, a variable of it with "
		    "attributes, such as '*:EngineCore.step self.scheduler.running:len'",
		    text);
	if (n + m + 2 > sizeof(f->text))
		return hb_error__set(e, HB_EXIT_USAGE, -EINVAL, "\"%.40s...\" is too long for a field", text);
	memset(f->text, 0, sizeof(f->text));
	memcpy(f->text, text, n);
	memcpy(function, f->text, n + 1);
	f->text[n] = ' ';
	memcpy(f->text + n + 1, path, m);
	if (hb_py_pattern__parse(function, &f->function, e))
		return -EINVAL;
	return hb_py_path__parse(f->text + n + 1, &f->path, e);
}
