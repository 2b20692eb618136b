/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * CPU samples as folded stacks for flame graphs: comm;outermost;...;innermost WEIGHT, weight in microseconds.
 * Lines are added up before they are written, so memory follows the number of different stacks.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/export/export.h"
#include "analysis/model/decode.h"
#include "analysis/model/rows.h"
#include "base/buf.h"

struct line {
	char *text;
	u64 ns;
};

struct spot { /* same thread name and stacks: the text need not be made again */
	struct line *line;
};

struct ctx {
	struct hb_window *w;
	struct hb_map *pairs; /* (stack, kernel stack) -> number */
	struct hb_rows spots, lines;
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

static struct line *make_line(struct ctx *c, const struct hb_record *r)
{
	const struct hb_rec_sample *s = r->data;
	u32 pid = r->task ? r->task->pid : 0;
	char comm[64];
	size_t root;

	c->buf.size = 0;
	snprintf(comm, sizeof(comm), "%.32s", hb_decode__comm(c->w, r->task));
	add_name(&c->buf, comm);
	root = c->buf.size;
	add_stack(c, pid, s->stack);
	add_stack(c, pid, s->kstack);
	if (c->buf.size == root)
		add_name(&c->buf, s->mode == HB_CPUMODE_KERNEL ? "[kernel]_[k]" : "[no stack]");
	return line_of(c);
}

static int add_sample(struct ctx *c, const struct hb_record *r)
{
	const struct hb_rec_sample *s = r->data;
	bool fresh;
	u64 *pair = hb_map__slot(c->pairs, (u64)s->stack << 32 | s->kstack, &fresh);
	struct spot *spot;

	if (!pair)
		return -ENOMEM;
	if (fresh)
		*pair = hb_map__size(c->pairs);
	/* the task stands for comm and pid, mode for the frame of a sample without stack */
	spot = hb_rows__get(&c->spots, *pair << 17 | (u64)r->task_idx << 1 | (s->mode == HB_CPUMODE_KERNEL),
			    NULL);
	if (!spot)
		return -ENOMEM;
	if (!spot->line)
		spot->line = make_line(c, r);
	if (!spot->line)
		return -ENOMEM;
	spot->line->ns += s->weight;
	return 0;
}

static int cmp_lines(const void *a, const void *b)
{
	const struct line *x = *(const struct line *const *)a, *y = *(const struct line *const *)b;

	return strcmp(x->text, y->text);
}

static int write_lines(struct ctx *c, FILE *out)
{
	hb_rows__sort(&c->lines, cmp_lines);
	for (u32 i = 0; i < c->lines.n; i++) {
		const struct line *l = c->lines.row[i];
		u64 us = (l->ns + 500) / 1000;

		if (fprintf(out, "%s %" PRIu64 "\n", l->text, us ? us : 1) < 0)
			return -errno;
	}
	return 0;
}

static int read_samples(struct ctx *c)
{
	struct hb_record r;
	int rc = 0;

	hb_window__rewind(c->w);
	while (!rc && hb_window__next(c->w, &r) > 0)
		if (r.type == HB_TYPE_sample)
			rc = add_sample(c, &r);
	return rc;
}

static void drop_line(void *row)
{
	free(((struct line *)row)->text);
}

static int run(struct hb_window *w, FILE *out, struct hb_error *e)
{
	struct ctx c = {.w = w};
	int rc;

	c.pairs = hb_map__new();
	rc = c.pairs ? hb_rows__init(&c.spots, sizeof(struct spot)) : -ENOMEM;
	rc = rc ? rc : hb_rows__init(&c.lines, sizeof(struct line));
	rc = rc ? rc : read_samples(&c);
	if (rc == -ENOMEM)
		hb_error__nomem(e, "folded stacks");
	rc = rc ? rc : write_lines(&c, out);
	hb_map__free(c.pairs);
	hb_rows__free(&c.spots, NULL);
	hb_rows__free(&c.lines, drop_line);
	hb_buf__free(&c.buf);
	return rc;
}

HB_EXPORTER(folded) = {
    .name = "folded",
    .doc = "CPU samples for flame graphs: comm;frame;.. weight in us",
    .bare = true,
    .run = run,
};
