/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Folded stacks for flame graphs: comm;outermost;...;innermost WEIGHT. The weight is CPU time of samples, or
 * in formats of their own the time of waits for the GIL or of collections (microseconds all), or a number of
 * exceptions. Lines are added up before they are written, so memory follows the number of different stacks.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/export/export.h"
#include "analysis/export/spots.h"
#include "analysis/model/decode.h"
#include "base/buf.h"

struct line {
	char *text;
	u64 value;
};

struct ctx {
	struct hb_window *w;
	enum hb_spot_value what;
	struct hb_spots spots;
	struct hb_rows lines;
	struct hb_buf buf;
};

/* ';' and line ends separate; a frame may contain neither. */
static void add_name(struct hb_buf *b, const char *s)
{
	size_t at = b->size;

	if (at)
		hb_buf__add(b, ";", 1);
	hb_buf__printf(b, "%s", *s ? s : "?");
	for (size_t i = at + 1; i < b->size; i++)
		if (b->data[i] == ';' || (unsigned char)b->data[i] < 0x20)
			b->data[i] = ':';
}

static void add_stack(struct ctx *c, u32 pid, u32 raw)
{
	struct hb_stack st = raw ? hb_window__stack(c->w, pid, raw) : (struct hb_stack){0};
	char frame[512];

	for (u32 i = 0; i < st.n; i++) {
		const struct hb_loc *l = hb_window__loc(c->w, st.locs[i]);

		if (l)
			add_name(&c->buf, hb_decode__frame(c->w, l, HB_FRAME_LINE, frame, sizeof(frame)));
	}
}

/* The row of this text: hash, then compare, then the next number on a collision. */
static struct line *line_of(struct ctx *c)
{
	u64 key = hb_hash_bytes(c->buf.data, c->buf.size);
	struct line *l;

	hb_buf__add(&c->buf, "", 1);
	if (c->buf.oom)
		return NULL;
	for (;; key++) {
		l = hb_rows__get(&c->lines, key, NULL);
		if (!l || (l->text && strcmp(l->text, c->buf.data) == 0))
			return l;
		if (!l->text) {
			l->text = strdup(c->buf.data);
			return l->text ? l : NULL;
		}
	}
}

static struct line *make_line(struct ctx *c, const struct hb_spot *s)
{
	char comm[64];
	size_t root;

	c->buf.size = 0;
	snprintf(comm, sizeof(comm), "%.32s", hb_decode__comm(c->w, hb_window__task(c->w, s->task)));
	add_name(&c->buf, comm);
	root = c->buf.size;
	add_stack(c, s->pid, s->stack);
	add_stack(c, s->pid, s->kstack);
	if (c->buf.size == root)
		add_name(&c->buf, s->kernel ? "[kernel]_[k]" : "[no stack]");
	return line_of(c);
}

static int make_lines(struct ctx *c)
{
	for (u32 i = 0; i < c->spots.rows.n; i++) {
		const struct hb_spot *s = c->spots.rows.row[i];
		struct line *l = s->value[c->what] ? make_line(c, s) : NULL;

		if (l)
			l->value += s->value[c->what];
		else if (s->value[c->what])
			return -ENOMEM;
	}
	return 0;
}

static int cmp_lines(const void *a, const void *b)
{
	const struct line *x = *(const struct line *const *)a, *y = *(const struct line *const *)b;

	return strcmp(x->text, y->text);
}

/* Microseconds, at least one; exceptions are counted. */
static u64 weight(const struct ctx *c, const struct line *l)
{
	u64 us = (l->value + 500) / 1000;

	if (c->what == HB_SPOT_EXCEPTIONS)
		return l->value;
	return us ? us : 1;
}

static int write_lines(struct ctx *c, FILE *out)
{
	hb_rows__sort(&c->lines, cmp_lines);
	for (u32 i = 0; i < c->lines.n; i++) {
		const struct line *l = c->lines.row[i];

		if (fprintf(out, "%s %" PRIu64 "\n", l->text, weight(c, l)) < 0)
			return -errno;
	}
	return 0;
}

static void drop_line(void *row)
{
	free(((struct line *)row)->text);
}

static int fold(struct hb_window *w, enum hb_spot_value what, FILE *out, struct hb_error *e)
{
	struct ctx c = {.w = w, .what = what};
	int rc = hb_spots__read(&c.spots, w);

	rc = rc ? rc : hb_rows__init(&c.lines, sizeof(struct line));
	rc = rc ? rc : make_lines(&c);
	if (rc == -ENOMEM)
		hb_error__nomem(e, "folded stacks");
	rc = rc ? rc : write_lines(&c, out);
	hb_spots__free(&c.spots);
	hb_rows__free(&c.lines, drop_line);
	hb_buf__free(&c.buf);
	return rc;
}

static int cpu(struct hb_window *w, FILE *out, struct hb_error *e)
{
	return fold(w, HB_SPOT_CPU, out, e);
}

static int gil(struct hb_window *w, FILE *out, struct hb_error *e)
{
	return fold(w, HB_SPOT_GIL, out, e);
}

static int gc(struct hb_window *w, FILE *out, struct hb_error *e)
{
	return fold(w, HB_SPOT_GC, out, e);
}

static int exceptions(struct hb_window *w, FILE *out, struct hb_error *e)
{
	return fold(w, HB_SPOT_EXCEPTIONS, out, e);
}

HB_EXPORTER(folded) = {
    .name = "folded",
    .doc = "CPU samples for flame graphs: comm;frame;.. weight in us",
    .bare = true,
    .run = cpu,
};

HB_EXPORTER(folded_gil) = {
    .name = "folded-gil",
    .doc = "the same of waits for Python's GIL",
    .bare = true,
    .run = gil,
};

HB_EXPORTER(folded_gc) = {
    .name = "folded-gc",
    .doc = "the same of Python's garbage collections",
    .bare = true,
    .run = gc,
};

HB_EXPORTER(folded_exceptions) = {
    .name = "folded-exceptions",
    .doc = "the same of exceptions, weight in numbers",
    .bare = true,
    .run = exceptions,
};
