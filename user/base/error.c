/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "base/error.h"
#include "base/text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static atomic_int quiet;

/* A path of 4 KiB must not push the reason out of the sentence. */
static void format(char *text, size_t size, const char *fmt, va_list ap)
{
	char *whole = NULL;
	va_list again;

	va_copy(again, ap);
	if (vsnprintf(text, size, fmt, ap) >= (int)size && vasprintf(&whole, fmt, again) >= 0) {
		snprintf(text, size, "%s", hb_text__fit(hb_text__clean(whole), size));
		free(whole);
	}
	va_end(again);
	hb_text__clean(text);
}

int hb_error__set(struct hb_error *e, enum hb_exit exit, int err, const char *fmt, ...)
{
	va_list ap;

	if (err == 0)
		err = -EINVAL;
	if (!e || e->err)
		return err;
	va_start(ap, fmt);
	format(e->text, sizeof(e->text), fmt, ap);
	va_end(ap);
	e->err = err;
	e->exit = exit;
	return err;
}

int hb_error__nomem(struct hb_error *e, const char *what)
{
	return hb_error__set(e, HB_EXIT_FAILED, -ENOMEM, "out of memory for %s", what);
}

int hb_error__fds(struct hb_error *e, const char *what, int err)
{
	if (err == -EMFILE || err == -ENFILE)
		return hb_error__set(e, HB_EXIT_FAILED, err,
				     "out of file descriptors for %s: raise %s, or close files", what,
				     err == -EMFILE ? "`ulimit -n`" : "sysctl fs.file-max");
	if (err == -ENOMEM)
		return hb_error__nomem(e, what);
	return hb_error__set(e, HB_EXIT_FAILED, err, "cannot set up %s: %s", what, strerror(-err));
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
	format(line, sizeof(line), fmt, ap);
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
