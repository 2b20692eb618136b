/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "capture/session/doctor_impl.h"

#include <bpf/libbpf.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/text.h"

struct hb_doctor {
	struct hb_buf rows;
};

void hb_check__yes(struct hb_diagnosis *out, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(out->detail, sizeof(out->detail), fmt, ap);
	va_end(ap);
	out->answer = HB_ANSWER_YES;
}

void hb_check__no(struct hb_diagnosis *out, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(out->detail, sizeof(out->detail), fmt, ap);
	va_end(ap);
	out->answer = HB_ANSWER_NO;
}

void hb_check__remedy(struct hb_diagnosis *out, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(out->remedy, sizeof(out->remedy), fmt, ap);
	va_end(ap);
}

struct hb_diagnosis *hb_doctor__add(struct hb_doctor *d)
{
	struct hb_diagnosis *row = hb_buf__room(&d->rows, sizeof(*row));

	if (!row)
		return NULL;
	memset(row, 0, sizeof(*row));
	d->rows.size += sizeof(*row);
	return row;
}

static void run_checks(struct hb_doctor *d, const struct hb_check *c, struct hb_doctor_bench *b)
{
	for (; c->id; c++) {
		struct hb_diagnosis *row = hb_doctor__add(d);

		if (!row)
			return;
		row->id = c->id;
		row->title = c->title;
		row->needed_for = c->needed_for;
		row->need = c->need;
		c->test(b, row);
		if (row->answer == HB_ANSWER_NO && !row->remedy[0])
			hb_check__remedy(row, "%s", c->remedy);
		hb_text__clean(row->detail);
	}
}

static int no_words(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	return 0; /* a refusal is what a check is about, not something to complain of */
}

struct hb_doctor *hb_doctor__run(const u32 *pids, u32 n, struct hb_error *e)
{
	struct hb_doctor *d = calloc(1, sizeof(*d));
	struct hb_process *self = hb_process__peek((u32)getpid());
	struct hb_doctor_bench b = {.ring = -1, .self = self};
	libbpf_print_fn_t words = libbpf_set_print(no_words);

	if (d && self) {
		run_checks(d, hb_checks_env, &b);
		run_checks(d, hb_checks_bpf, &b);
		for (u32 i = 0; i < n; i++)
			hb_doctor__examine_process(d, pids[i]);
	}
	hb_doctor_bench__close(&b);
	libbpf_set_print(words);
	if (!self && !hb_target__need_proc(e)) /* the same again, with a sentence */
		hb_process__free(hb_process__read((u32)getpid(), e));
	if (!d || !self || d->rows.oom) {
		hb_error__nomem(e, "the examination");
		hb_doctor__free(d);
		d = NULL;
	}
	hb_process__free(self);
	return d;
}

void hb_doctor__free(struct hb_doctor *d)
{
	if (!d)
		return;
	hb_buf__free(&d->rows);
	free(d);
}

const struct hb_diagnosis *hb_doctor__rows(const struct hb_doctor *d, u32 *n)
{
	*n = (u32)(d->rows.size / sizeof(struct hb_diagnosis));
	return (const struct hb_diagnosis *)d->rows.data;
}

bool hb_doctor__usable(const struct hb_doctor *d)
{
	u32 n;
	const struct hb_diagnosis *row = hb_doctor__rows(d, &n);

	for (u32 i = 0; i < n; i++)
		if (row[i].need == HB_NEED_MUST && row[i].answer != HB_ANSWER_YES)
			return false;
	return true;
}
