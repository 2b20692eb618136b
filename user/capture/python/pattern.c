/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "capture/python/pattern.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

int hb_py_pattern__parse(const char *text, struct hb_py_pattern *p, struct hb_error *e)
{
	const char *colon = strrchr(text, ':'), *name = colon ? colon + 1 : text;
	size_t n = colon ? (size_t)(colon - text) : 0;

	memset(p, 0, sizeof(*p));
	if (!*name)
		return hb_error__set(
		    e, HB_EXIT_USAGE, -EINVAL,
		    "\"%s\" names no function; a function is [FILE-OR-MODULE:]QUALNAME, such as "
		    "'*:Scheduler.schedule'",
		    text);
	if (strpbrk(text, " \t\n"))
		return hb_error__set(e, HB_EXIT_USAGE, -EINVAL, "\"%s\": no function has a blank in its name",
				     text);
	if (n >= sizeof(p->file) || strlen(name) >= sizeof(p->name))
		return hb_error__set(e, HB_EXIT_USAGE, -EINVAL, "\"%.40s...\" is too long for a function",
				     text);
	memcpy(p->file, text, n);
	memcpy(p->name, name, strlen(name));
	return 0;
}

/* ".../vllm/v1/core.py" -> ".vllm.v1.core"; of a package, its folder. */
static void module_of(const char *file, char *buf, size_t size)
{
	size_t n = strlen(file);

	if (n >= 3 && strcmp(file + n - 3, ".py") == 0)
		n -= 3;
	if (n >= 9 && strncmp(file + n - 9, "/__init__", 9) == 0)
		n -= 9;
	/* The end counts. */
	if (n >= size) {
		file += n - size + 1;
		n = size - 1;
	}
	for (size_t i = 0; i < n; i++)
		buf[i] = file[i] == '/' ? '.' : file[i];
	buf[n] = 0;
}

static bool file_matches(const char *glob, const char *file)
{
	char module[512];
	const char *at;

	if (!*glob || hb_text__glob(glob, file) || hb_text__glob(glob, hb_text__basename(file)))
		return true;
	module_of(file, module, sizeof(module));
	if (hb_text__glob(glob, module))
		return true;
	for (at = strchr(module, '.'); at; at = strchr(at + 1, '.'))
		if (hb_text__glob(glob, at + 1))
			return true;
	return false;
}

bool hb_py_pattern__matches(const struct hb_py_pattern *p, const char *file, const char *name, bool qualified)
{
	const char *glob = p->name, *dot = strrchr(p->name, '.');

	if (!qualified && dot)
		glob = dot + 1;
	return hb_text__glob(glob, name) && file_matches(p->file, file);
}
