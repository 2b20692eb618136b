/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "base/error.h"
#include "base/text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static atomic_int quiet;

int hb_error__set(struct hb_error *e, enum hb_exit exit, int err, const char *fmt, ...)
{
	va_list ap;

	if (err == 0)
		err = -EINVAL;
	if (!e || e->err)
		return err;
	va_start(ap, fmt);
	vsnprintf(e->text, sizeof(e->text), fmt, ap);
	va_end(ap);
	hb_text__clean(e->text);
	e->err = err;
	e->exit = exit;
	return err;
}

int hb_error__nomem(struct hb_error *e, const char *what)
{
	return hb_error__set(e, HB_EXIT_FAILED, -ENOMEM, "out of memory for %s", what);
}

void hb_error__clear(struct hb_error *e)
{
	memset(e, 0, sizeof(*e));
}

static void say(const char *prefix, const char *fmt, va_list ap)
{
	char line[1024];

	if (atomic_load(&quiet))
		return;
	vsnprintf(line, sizeof(line), fmt, ap);
	hb_text__clean(line);
	fprintf(stderr, "%s%s\n", prefix, line);
}

void hb_warn(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say("herschel-bpf: warning: ", fmt, ap);
	va_end(ap);
}

void hb_note(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say("", fmt, ap);
	va_end(ap);
}

void hb_quiet(int on)
{
	atomic_store(&quiet, on);
}
