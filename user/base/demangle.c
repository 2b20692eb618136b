/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "base/demangle.h"

#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <libiberty/demangle.h>

#define MAX_MANGLED 2048 /* the parser keeps 64 bytes of stack per character */

struct out {
	jmp_buf full;
	char *buf;
	size_t size, n;
};

/* Substitutions let a short hostile name expand to gigabytes, and the library has no way to say "enough". It
 * keeps everything on the stack in callback mode, so leaving by longjmp leaks nothing. */
static void add(const char *s, size_t n, void *arg)
{
	struct out *o = arg;

	if (n >= o->size - o->n)
		longjmp(o->full, 1);
	memcpy(o->buf + o->n, s, n);
	o->n += n;
}

static bool demangle(const char *name, struct out *o)
{
	if (setjmp(o->full))
		return false;
	o->n = 0;
	if (rust_demangle_callback(name, DMGL_NO_OPTS, add, o))
		return true;
	o->n = 0;
	return cplus_demangle_v3_callback(name, DMGL_NO_OPTS, add, o) != 0;
}

const char *hb_demangle(const char *name, char *buf, size_t size)
{
	struct out o = {.buf = buf, .size = size};

	if (name[0] != '_' || (name[1] != 'Z' && name[1] != 'R') || size < 2 || strlen(name) > MAX_MANGLED)
		return name;
	if (!demangle(name, &o))
		return name;
	buf[o.n] = 0;
	return buf;
}

const char *hb_demangle__type(const char *name, char *buf, size_t size)
{
	static const char of[] = "typeinfo name for ";
	char full[256], text[512];
	const char *s;

	if (strlen(name) + sizeof("_ZTS") > sizeof(full))
		return name;
	snprintf(full, sizeof(full), "_ZTS%s", name);
	s = hb_demangle(full, text, sizeof(text));
	if (strncmp(s, of, sizeof(of) - 1) != 0)
		return name;
	snprintf(buf, size, "%.*s", (int)size - 1, s + sizeof(of) - 1);
	return buf;
}
