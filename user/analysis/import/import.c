/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analysis/import/import.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/import/convert.h"
#include "analysis/import/head.h"
#include "analysis/import/parse.h"
#include "analysis/import/sweep.h"
#include "base/text.h"

#define MEMORY (64u << 20)

struct import {
	const struct hb_import_opts *o;
	struct hb_import_stats st;
	struct hb_parse_stats parse;
	struct hb_head head;
	struct hb_convert convert;
	char *folder; /* of the output: there is room for it, so there is for sorting */
	size_t memory;
	s64 shift;
	struct hb_window_writer *w;
	struct hb_error *e;
};

/* ---- first pass ---- */

static int take_row(void *ctx, const struct hb_row *r)
{
	return hb_convert__row(&((struct import *)ctx)->convert, r);
}

static int take_head(void *ctx, const char *path, unsigned item, struct hb_piece v)
{
	return hb_head__take(&((struct import *)ctx)->head, path, item, v);
}

static int make(struct import *i)
{
	const char *slash = strrchr(i->o->output, '/');
	struct hb_convert *c = &i->convert;

	i->folder = !slash		    ? strdup(".")
		    : slash == i->o->output ? strdup("/")
					    : strndup(i->o->output, (size_t)(slash - i->o->output));
	i->memory = i->o->memory ? i->o->memory : MEMORY;
	c->e = i->e;
	c->names = hb_names__new();
	c->tasks = c->names ? hb_tasks__new(c->names) : NULL;
	c->items = i->folder ? hb_sorter__new(HB_SORT_BEGIN, i->memory, i->folder) : NULL;
	return c->tasks && c->items ? 0 : hb_error__nomem(i->e, "the import");
}

/* Nothing at all is no trace; a trace without a row that can be used makes no window either. */
static int judge(const struct import *i)
{
	if (!i->parse.bytes)
		return hb_error__set(i->e, HB_EXIT_FAILED, -EINVAL, "%s is empty", i->o->path);
	if (!i->parse.found || (!i->parse.rows && i->parse.broken))
		return hb_error__set(
		    i->e, HB_EXIT_FAILED, -EINVAL,
		    "%s is no trace in JSON: it has no list \"traceEvents\"; import takes what "
		    "PyTorch's profiler or Chrome's tracing wrote, plain or gzipped",
		    i->o->path);
	if (!hb_sorter__count(i->convert.items))
		return hb_error__set(i->e, HB_EXIT_FAILED, -ENODATA,
				     "%s has %llu rows, and none that says how long something took",
				     i->o->path, (unsigned long long)i->parse.rows);
	return 0;
}

static int first_pass(struct import *i)
{
	struct hb_parse_sink sink = {.ctx = i, .row = take_row, .head = take_head};
	struct hb_source *src = hb_source__new(i->o->path, i->e);
	int err;

	if (!src)
		return i->e && i->e->err ? i->e->err : -EIO;
	err = hb_parse__run(src, &sink, &i->parse, i->e);
	hb_source__free(src);
	err = err ? err : judge(i);
	err = err ? err : hb_convert__end(&i->convert);
	return err ? err : hb_sorter__sort(i->convert.items, i->e);
}

/* ---- what is said beside the records ---- */

static int note(struct import *i, enum hb_notelevel level, const struct hb_buf *text)
{
	struct hb_rec_note n = {.level = level};

	if (text->oom)
		return -ENOMEM;
	n.text = hb_window_writer__string(i->w, text->data);
	return hb_window_writer__put(i->w, 0, i->st.start_ns, 0, HB_TYPE_note, &n);
}

static void loss(struct import *i, enum hb_loss cause, unsigned type, u64 count)
{
	struct hb_loss_row row = {.cause = cause, .type = type, .cpu = UINT32_MAX, .count = count};

	if (count)
		hb_window_writer__loss(i->w, &row);
}

static int note_odd(struct import *i)
{
	struct hb_buf b = {0};
	int err = 0;

	i->st.odd = i->parse.broken;
	hb_buf__printf(&b, "rows of the trace that are odd:");
	if (i->parse.broken)
		hb_buf__printf(&b, " %llu that are no JSON: not used;", (unsigned long long)i->parse.broken);
	for (unsigned k = 0; k < HB_ODD_COUNT; k++) {
		i->st.odd += i->convert.odd[k];
		if (i->convert.odd[k])
			hb_buf__printf(&b, " %llu %s;", (unsigned long long)i->convert.odd[k],
				       hb_odd__text(k));
	}
	if (i->st.odd) {
		if (b.size)
			b.data[b.size - 1] = 0; /* the last semicolon */
		err = note(i, HB_NOTE_WARNING, &b);
	}
	hb_buf__free(&b);
	loss(i, HB_LOSS_IMPORT_ODD, 0, i->st.odd);
	return err;
}

static const char *kind_of_row(char ph)
{
	switch (ph) {
	case 'i':
	case 'I':
	case 'R':
		return "instants";
	case 's':
	case 't':
	case 'f':
		return "flows";
	case 'C':
		return "counters";
	case 'b':
	case 'n':
	case 'e':
	case 'S':
	case 'T':
	case 'F':
	case 'p':
		return "asynchronous spans";
	default:
		return "others";
	}
}

static int note_skipped(struct import *i)
{
	const struct hb_skipped *s = (const void *)i->convert.skipped.data;
	size_t n = i->convert.skipped.size / sizeof(*s);
	struct hb_buf b = {0};
	int err = 0;

	hb_buf__printf(&b, "rows of the trace that are not kept:");
	for (size_t k = 0; k < n; k++)
		hb_buf__printf(&b, "%s %llu %s%s%s", k ? "," : "", (unsigned long long)s[k].count,
			       kind_of_row(s[k].ph), s[k].cat ? " " : "",
			       hb_names__text(i->convert.names, s[k].cat));
	if (n)
		err = note(i, HB_NOTE_INFO, &b);
	hb_buf__free(&b);
	return err;
}

static int note_shape(struct import *i)
{
	struct hb_buf b = {0};
	int err = 0;

	i->st.cut = i->parse.cut;
	loss(i, HB_LOSS_IMPORT_CUT, 0, i->parse.cut);
	if (i->parse.cut)
		hb_buf__printf(&b, "the trace is cut off after %llu rows; what came before is here",
			       (unsigned long long)i->parse.rows);
	if (i->parse.cut)
		err = note(i, HB_NOTE_WARNING, &b);
	b.size = 0;
	if (!err && i->parse.mended) {
		hb_buf__printf(
		    &b,
		    "the trace is not quite JSON (NaN, Infinity, bad characters); such values are not used");
		err = note(i, HB_NOTE_INFO, &b);
	}
	b.size = 0;
	if (!err && i->parse.garbage) {
		hb_buf__printf(&b, "something follows after the end of the trace; it was not read");
		err = note(i, HB_NOTE_INFO, &b);
	}
	hb_buf__free(&b);
	return err;
}

/* ---- second pass ---- */

static int open_window(struct import *i)
{
	struct hb_window_opts o = {.streams = HB_SWEEP_STREAMS, .force = i->o->force};
	s64 begin, end;

	hb_sorter__range(i->convert.items, &begin, &end);
	i->shift = begin < 1 ? 1 - begin : 0; /* times of a window are positive */
	o.start_ts = i->st.start_ns = (u64)(begin + i->shift);
	i->st.end_ns = (u64)(end + i->shift);
	o.real_ts = (u64)(i->head.base_ns + begin);
	i->w = hb_window_writer__new(i->o->output, &o, i->e);
	return i->w ? 0 : i->e && i->e->err ? i->e->err : -EIO;
}

static int put_life(void *ctx, u16 task, unsigned type, const void *rec)
{
	struct import *i = ctx;

	return hb_window_writer__put(i->w, 0, i->st.start_ns, task, type, rec);
}

static void write_meta(struct import *i)
{
	hb_window_writer__meta(i->w, "tool", "herschel-bpf " HB_VERSION);
	hb_window_writer__meta(i->w, "profile", "imported");
	hb_window_writer__meta(i->w, "imported", hb_text__basename(i->o->path));
	hb_head__write(&i->head, i->w, i->shift);
}

static int write_records(struct import *i)
{
	struct hb_sweep s = {.items = i->convert.items,
			     .names = i->convert.names,
			     .tasks = i->convert.tasks,
			     .w = i->w,
			     .shift = i->shift,
			     .memory = i->memory / 2,
			     .folder = i->folder,
			     .stats = &i->st};
	int err = hb_sweep__run(&s, i->e);

	loss(i, HB_LOSS_STACK_FULL, HB_TYPE_accel, s.stacks_lost);
	loss(i, HB_LOSS_TASKS, 0, s.tasks_lost);
	return err;
}

static int second_pass(struct import *i)
{
	int err = open_window(i);

	if (err)
		return err;
	write_meta(i);
	if (hb_names__write(i->convert.names, i->w))
		err = hb_error__nomem(i->e, "names of the trace");
	err = err ? err : hb_tasks__write(i->convert.tasks, i->w, i->st.start_ns, i->e);
	err = err ? err : hb_tasks__records(i->convert.tasks, put_life, i);
	err = err ? err : note_shape(i);
	err = err ? err : note_odd(i);
	err = err ? err : note_skipped(i);
	err = err ? err : write_records(i);
	if (!err)
		return hb_window_writer__finish(i->w, i->st.end_ns, i->e);
	hb_window_writer__abort(i->w);
	return err;
}

static void drop(struct import *i)
{
	hb_convert__free(&i->convert);
	hb_sorter__free(i->convert.items);
	hb_tasks__free(i->convert.tasks);
	hb_names__free(i->convert.names);
	free(i->folder);
}

int hb_import__run(const struct hb_import_opts *o, struct hb_import_stats *s, struct hb_error *e)
{
	struct hb_error own = {0};
	struct import i = {.o = o, .e = e ? e : &own};
	int err = hb_window_writer__check(o->output, o->force, i.e);

	err = err ? err : make(&i);
	err = err ? err : first_pass(&i);
	err = err ? err : second_pass(&i);
	i.st.bytes = i.parse.bytes;
	i.st.rows = i.parse.rows;
	i.st.tmp = i.convert.items && hb_sorter__on_disk(i.convert.items);
	if (s)
		*s = i.st;
	drop(&i);
	return err ? hb_error__set(i.e, HB_EXIT_FAILED, err, "cannot import %s: %s", o->path, strerror(-err))
		   : 0;
}
