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

#define MEMORY	 (64u << 20)
#define FEW_ROWS 20 /* one of so many, or fewer, are stray ones */

struct part { /* one file */
	struct import *all;
	const char *path;
	struct hb_parse_stats parse;
	struct hb_head head;
	struct hb_convert convert;
	bool no_clock; /* it does not say what its times count from: taken as the others' do */
};

struct import {
	const struct hb_import_opts *o;
	struct hb_import_stats st;
	struct part part[HB_IMPORT_FILES];
	unsigned n;
	struct hb_join_file file[HB_IMPORT_FILES];
	struct hb_names *names;
	struct hb_tasks *tasks;
	char *folder; /* of the output: there is room for it, so there is for sorting */
	size_t memory;
	s64 shift;
	struct hb_window_writer *w;
	struct hb_error *e;
};

/* ---- first pass ---- */

static int take_row(void *ctx, const struct hb_row *r)
{
	return hb_convert__row(&((struct part *)ctx)->convert, r);
}

static int take_head(void *ctx, const char *path, unsigned item, struct hb_piece v)
{
	return hb_head__take(&((struct part *)ctx)->head, path, item, v);
}

static int make(struct import *i)
{
	const char *slash = strrchr(i->o->output, '/');

	i->folder = !slash		    ? strdup(".")
		    : slash == i->o->output ? strdup("/")
					    : strndup(i->o->output, (size_t)(slash - i->o->output));
	i->memory = i->o->memory ? i->o->memory : MEMORY;
	i->names = hb_names__new();
	i->tasks = i->names ? hb_tasks__new(i->names) : NULL;
	for (unsigned k = 0; k < i->n; k++) {
		struct part *p = &i->part[k];

		p->all = i;
		p->path = k ? i->o->more[k - 1] : i->o->path;
		p->convert = (struct hb_convert){
		    .source = (u8)k,
		    .names = i->names,
		    .tasks = i->tasks,
		    .items = i->folder ? hb_sorter__new(HB_SORT_BEGIN, i->memory / i->n, i->folder) : NULL,
		    .e = i->e};
		if (!p->convert.items)
			return hb_error__nomem(i->e, "the import");
	}
	return i->tasks ? 0 : hb_error__nomem(i->e, "the import");
}

/* Nothing at all is no trace; a trace without a row that can be used makes no window either. */
static int judge(const struct part *p, struct hb_error *e)
{
	if (!p->parse.bytes)
		return hb_error__set(e, HB_EXIT_FAILED, -EINVAL, "%s is empty", p->path);
	if (!p->parse.found || (!p->parse.rows && p->parse.broken))
		return hb_error__set(
		    e, HB_EXIT_FAILED, -EINVAL,
		    "%s is no trace in JSON: it has no list \"traceEvents\"; import takes what "
		    "PyTorch's profiler or Chrome's tracing wrote, plain or gzipped",
		    p->path);
	if (!hb_sorter__count(p->convert.items))
		return hb_error__set(e, HB_EXIT_FAILED, -ENODATA,
				     "%s has %llu rows, and none that says how long something took", p->path,
				     (unsigned long long)p->parse.rows);
	return 0;
}

static int read_part(struct import *i, struct part *p)
{
	struct hb_parse_sink sink = {.ctx = p, .row = take_row, .head = take_head};
	struct hb_source *src = hb_source__new(p->path, i->e);
	int err;

	if (!src)
		return i->e && i->e->err ? i->e->err : -EIO;
	hb_tasks__source(i->tasks, p->convert.source);
	err = hb_parse__run(src, &sink, &p->parse, i->e);
	hb_source__free(src);
	i->st.bytes += p->parse.bytes;
	i->st.rows += p->parse.rows;
	err = err ? err : judge(p, i->e);
	err = err ? err : hb_convert__end(&p->convert);
	return err ? err : hb_sorter__sort(p->convert.items, i->e);
}

/* A trace that is cut off does not come to saying what its times count from. Profilers of one version count
 * from the same moment for months. */
static void set_clocks(struct import *i)
{
	s64 base = 0;

	for (unsigned k = 0; k < i->n; k++)
		base = base ? base : i->part[k].head.base_ns;
	for (unsigned k = 0; k < i->n; k++) {
		struct part *p = &i->part[k];

		p->no_clock = base && !p->head.base_ns;
		if (p->no_clock)
			p->head.base_ns = base;
		i->file[k].offset = p->head.base_ns - i->part[0].head.base_ns;
	}
}

static int first_pass(struct import *i)
{
	int err = 0;

	for (unsigned k = 0; k < i->n && !err; k++) {
		struct part *p = &i->part[k];

		err = read_part(i, p);
		i->st.tmp |= hb_sorter__on_disk(p->convert.items);
		i->file[k].items = p->convert.items;
	}
	set_clocks(i);
	return err;
}

/* ---- what is said beside the records ---- */

/* Of one file of several: which. */
static void head_of_note(const struct part *p, struct hb_buf *b)
{
	if (p->all->n > 1)
		hb_buf__printf(b, "%s: ", hb_text__basename(p->path));
}

static int note_at(struct import *i, u64 ts, enum hb_notelevel level, const struct hb_buf *text)
{
	struct hb_rec_note n = {.level = level};

	if (text->oom)
		return -ENOMEM;
	n.text = hb_window_writer__string(i->w, text->data);
	return hb_window_writer__put(i->w, 0, ts, 0, HB_TYPE_note, &n);
}

static int note(struct import *i, enum hb_notelevel level, const struct hb_buf *text)
{
	return note_at(i, i->st.start_ns, level, text);
}

static void loss(struct import *i, enum hb_loss cause, unsigned type, u64 count)
{
	struct hb_loss_row row = {.cause = cause, .type = type, .cpu = UINT32_MAX, .count = count};

	if (count)
		hb_window_writer__loss(i->w, &row);
}

static int note_odd(struct import *i, const struct part *p)
{
	u64 odd = p->parse.broken;
	struct hb_buf b = {0};
	int err = 0;

	head_of_note(p, &b);
	hb_buf__printf(&b, "rows of the trace that are odd:");
	if (p->parse.broken)
		hb_buf__printf(&b, " %llu that are no JSON: not used;", (unsigned long long)p->parse.broken);
	for (unsigned k = 0; k < HB_ODD_COUNT; k++) {
		odd += p->convert.odd[k];
		if (p->convert.odd[k])
			hb_buf__printf(&b, " %llu %s;", (unsigned long long)p->convert.odd[k],
				       hb_odd__text(k));
	}
	if (odd) {
		if (b.size)
			b.data[b.size - 1] = 0; /* the last semicolon */
		err = note(i, HB_NOTE_WARNING, &b);
	}
	hb_buf__free(&b);
	i->st.odd += odd;
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

static int note_skipped(struct import *i, const struct part *p)
{
	const struct hb_skipped *s = (const void *)p->convert.skipped.data;
	size_t n = p->convert.skipped.size / sizeof(*s);
	struct hb_buf b = {0};
	int err = 0;

	head_of_note(p, &b);
	hb_buf__printf(&b, "rows of the trace that are not kept:");
	for (size_t k = 0; k < n; k++)
		hb_buf__printf(&b, "%s %llu %s%s%s", k ? "," : "", (unsigned long long)s[k].count,
			       kind_of_row(s[k].ph), s[k].cat ? " " : "", hb_names__text(i->names, s[k].cat));
	if (n)
		err = note(i, HB_NOTE_INFO, &b);
	hb_buf__free(&b);
	return err;
}

static int note_shape(struct import *i, const struct part *p)
{
	struct hb_buf b = {0};
	int err = 0;

	i->st.cut |= p->parse.cut;
	loss(i, HB_LOSS_IMPORT_CUT, 0, p->parse.cut);
	head_of_note(p, &b);
	if (p->parse.cut)
		hb_buf__printf(&b, "the trace is cut off after %llu rows; what came before is here",
			       (unsigned long long)p->parse.rows);
	if (p->parse.cut)
		err = note(i, HB_NOTE_WARNING, &b);
	b.size = 0;
	head_of_note(p, &b);
	if (!err && p->no_clock) {
		hb_buf__printf(
		    &b,
		    "it does not say what its times count from (it may be cut off): taken as the others'");
		err = note(i, HB_NOTE_WARNING, &b);
	}
	b.size = 0;
	head_of_note(p, &b);
	if (!err && p->parse.mended) {
		hb_buf__printf(
		    &b,
		    "the trace is not quite JSON (NaN, Infinity, bad characters); such values are not used");
		err = note(i, HB_NOTE_INFO, &b);
	}
	b.size = 0;
	head_of_note(p, &b);
	if (!err && p->parse.garbage) {
		hb_buf__printf(&b, "something follows after the end of the trace; it was not read");
		err = note(i, HB_NOTE_INFO, &b);
	}
	hb_buf__free(&b);
	return err;
}

/* Traces of other times tell nothing of each other. */
static int note_times(struct import *i)
{
	s64 last_begin = INT64_MIN, first_end = INT64_MAX, begin, end;
	struct hb_buf b = {0};
	int err = 0;

	for (unsigned k = 0; k < i->n; k++) {
		if (!hb_sorter__range(i->file[k].items, &begin, &end))
			continue;
		begin += i->file[k].offset;
		end += i->file[k].offset;
		last_begin = begin > last_begin ? begin : last_begin;
		first_end = end < first_end ? end : first_end;
	}
	if (last_begin >= first_end) {
		hb_buf__printf(&b,
			       "the traces have no time in common: they are not of one run, or their clocks "
			       "differ");
		err = note(i, HB_NOTE_WARNING, &b);
		i->st.apart = true;
	}
	hb_buf__free(&b);
	return err;
}

static int write_notes(struct import *i)
{
	int err = 0;

	for (unsigned k = 0; k < i->n && !err; k++) {
		err = note_shape(i, &i->part[k]);
		err = err ? err : note_odd(i, &i->part[k]);
		err = err ? err : note_skipped(i, &i->part[k]);
	}
	loss(i, HB_LOSS_IMPORT_ODD, 0, i->st.odd);
	return err ? err : note_times(i);
}

/* ---- second pass ---- */

static int open_window(struct import *i)
{
	struct hb_window_opts o = {.streams = HB_SWEEP_STREAMS, .force = i->o->force};
	s64 begin = INT64_MAX, end = INT64_MIN, from, to;

	for (unsigned k = 0; k < i->n; k++) {
		if (!hb_sorter__range(i->file[k].items, &from, &to))
			continue;
		begin = from + i->file[k].offset < begin ? from + i->file[k].offset : begin;
		end = to + i->file[k].offset > end ? to + i->file[k].offset : end;
	}
	i->shift = begin < 1 ? 1 - begin : 0; /* times of a window are positive */
	o.start_ts = i->st.start_ns = (u64)(begin + i->shift);
	i->st.end_ns = (u64)(end + i->shift);
	o.real_ts = (u64)(i->part[0].head.base_ns + begin);
	i->w = hb_window_writer__new(i->o->output, &o, i->e);
	return i->w ? 0 : i->e && i->e->err ? i->e->err : -EIO;
}

static int put_life(void *ctx, u16 task, unsigned type, const void *rec)
{
	struct import *i = ctx;

	return hb_window_writer__put(i->w, 0, i->st.start_ns, task, type, rec);
}

static void write_more(struct import *i, unsigned k)
{
	const struct hb_head *before[HB_IMPORT_FILES];
	char key[32];

	for (unsigned n = 0; n < k; n++)
		before[n] = &i->part[n].head;
	snprintf(key, sizeof(key), "imported_%u", k + 1);
	hb_window_writer__meta(i->w, key, hb_text__basename(i->part[k].path));
	hb_head__write_more(&i->part[k].head, before, k, i->w);
}

static void write_meta(struct import *i)
{
	hb_window_writer__meta(i->w, "tool", "herschel-bpf " HB_VERSION);
	hb_window_writer__meta(i->w, "profile", "imported");
	hb_window_writer__meta(i->w, "imported", hb_text__basename(i->part[0].path));
	hb_head__write(&i->part[0].head, i->w, i->shift);
	for (unsigned k = 1; k < i->n; k++)
		write_more(i, k);
}

/* Which process is which rank; known when the tasks are written. */
static void write_ranks(struct import *i)
{
	char key[32];

	for (unsigned k = 0; k < i->n && i->n > 1; k++) {
		u32 pid = hb_tasks__pid(i->tasks, hb_tasks__main(i->tasks, (u8)k));

		snprintf(key, sizeof(key), "rank_of_%u", pid);
		if (*i->part[k].head.rank)
			hb_window_writer__meta(i->w, key, i->part[k].head.rank);
	}
}

static int write_records(struct import *i)
{
	struct hb_join items = {.file = i->file, .n = i->n};
	struct hb_sweep s = {.items = &items,
			     .names = i->names,
			     .tasks = i->tasks,
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

/* Few rows that lie far from all others make the window long, and shares of it small. Which is so when the
 * time between them and the others is longer than all the rest. */
static int note_far(struct import *i)
{
	const struct hb_import_hole *h = &i->st.hole;
	u64 after = h->rows - h->before, few = h->before < after ? h->before : after;
	struct hb_buf b = {0};
	char ns[32];
	int err;

	if (!few || few * FEW_ROWS > h->rows || h->ns < (i->st.end_ns - i->st.start_ns) / 2)
		return 0;
	i->st.far = few;
	hb_buf__printf(&b,
		       "%llu of %llu rows of the trace lie %s %s all others: the window is longer by that",
		       (unsigned long long)few, (unsigned long long)h->rows,
		       hb_text__ns(ns, sizeof(ns), h->ns), h->before <= after ? "before" : "after");
	err = note_at(i, i->st.end_ns, HB_NOTE_WARNING, &b);
	hb_buf__free(&b);
	return err;
}

static int second_pass(struct import *i)
{
	int err = open_window(i);

	if (err)
		return err;
	write_meta(i);
	if (hb_names__write(i->names, i->w))
		err = hb_error__nomem(i->e, "names of the trace");
	err = err ? err : hb_tasks__write(i->tasks, i->n, i->w, i->st.start_ns, i->e);
	if (!err)
		write_ranks(i);
	err = err ? err : hb_tasks__records(i->tasks, put_life, i);
	err = err ? err : write_notes(i);
	err = err ? err : write_records(i);
	err = err ? err : note_far(i);
	if (!err)
		return hb_window_writer__finish(i->w, i->st.end_ns, i->e);
	hb_window_writer__abort(i->w);
	return err;
}

static void drop(struct import *i)
{
	for (unsigned k = 0; k < i->n; k++) {
		hb_convert__free(&i->part[k].convert);
		hb_sorter__free(i->part[k].convert.items);
	}
	hb_tasks__free(i->tasks);
	hb_names__free(i->names);
	free(i->folder);
}

int hb_import__run(const struct hb_import_opts *o, struct hb_import_stats *s, struct hb_error *e)
{
	struct hb_error own = {0};
	struct import *i = calloc(1, sizeof(*i));
	int err;

	e = e ? e : &own;
	if (!i)
		return hb_error__nomem(e, "the import");
	i->o = o;
	i->e = e;
	i->n = 1 + o->n_more;
	if (i->n > HB_IMPORT_FILES) {
		free(i);
		return hb_error__set(e, HB_EXIT_USAGE, -E2BIG, "import takes at most %u traces",
				     HB_IMPORT_FILES);
	}
	err = hb_window_writer__check(o->output, o->force, e);
	err = err ? err : make(i);
	err = err ? err : first_pass(i);
	err = err ? err : second_pass(i);
	if (s)
		*s = i->st;
	drop(i);
	free(i);
	return err ? hb_error__set(e, HB_EXIT_FAILED, err, "cannot import %s: %s", o->path, strerror(-err))
		   : 0;
}
