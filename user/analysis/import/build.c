/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analysis/import/build.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define GO   1 /* what callbacks return */
#define STOP 0

void hb_build__restart(struct hb_build *b, enum hb_place place)
{
	b->place = place;
	b->depth = b->rows_depth = 0;
	b->in_row = b->in_args = b->in_list = false;
	b->col = HB_COL_NONE;
	b->path[0] = 0;
	b->item = 0;
}

static u64 position(const struct hb_build *b)
{
	return b->base + yajl_get_bytes_consumed(b->h);
}

static int stop(struct hb_build *b, int err)
{
	b->err = err;
	return STOP;
}

/* ---- the row ---- */

static void begin_row(struct hb_build *b)
{
	memset(b->row.cell, 0, sizeof(b->row.cell));
	b->text.size = 0;
	hb_buf__room(&b->text, 1); /* texts may be empty, all of them */
	b->col = HB_COL_NONE;
	b->in_row = true;
	b->in_args = b->in_list = false;
	b->unit = b->row.at = position(b) - 1; /* the brace */
}

static int end_row(struct hb_build *b)
{
	b->in_row = false;
	b->unit = position(b);
	b->st->rows++;
	if (b->text.oom)
		return stop(b, -ENOMEM);
	for (unsigned c = 0; c < HB_COLS; c++)
		if (b->row.cell[c].kind)
			b->row.cell[c].text = (struct hb_piece){b->text.data + b->span[c].at, b->span[c].n};
	b->err = b->sink->row(b->sink->ctx, &b->row);
	return b->err ? STOP : GO;
}

/* A value of the row is at its own depth 1, an argument at 2; what is deeper belongs to a list that is kept,
 * or to nobody. */
static u32 depth_in_row(const struct hb_build *b)
{
	return b->depth - b->rows_depth;
}

static void add_list_item(struct hb_build *b, enum hb_cell_kind kind, const char *s, size_t n)
{
	struct hb_cell *cell = &b->row.cell[b->col];
	size_t at;
	s64 v;

	if (b->comma)
		hb_buf__add(&b->text, ",", 1);
	if (kind == HB_CELL_STRING)
		hb_buf__add(&b->text, "\"", 1);
	at = b->text.size;
	hb_buf__add(&b->text, s, n);
	for (size_t i = at; i < b->text.size; i++) /* a stray one must not break the list */
		if (b->text.data[i] == '"' || b->text.data[i] == '\\')
			b->text.data[i] = '\'';
	if (kind == HB_CELL_STRING)
		hb_buf__add(&b->text, "\"", 1);
	b->comma = true;
	if (kind == HB_CELL_NUMBER && cell->n < 3 && hb_text__integer((struct hb_piece){s, n}, &v))
		cell->list[cell->n++] = v > 0 && v <= UINT32_MAX ? (u32)v : 0;
}

static void row_value(struct hb_build *b, enum hb_cell_kind kind, const char *s, size_t n)
{
	enum hb_col c = b->col;

	if (c == HB_COL_NONE)
		return;
	if (b->in_list) {
		add_list_item(b, kind, s, n);
		return;
	}
	b->row.cell[c].kind = (u8)kind;
	b->span[c].at = b->text.size;
	b->span[c].n = n;
	hb_buf__add(&b->text, s, n);
	b->col = HB_COL_NONE;
}

static void begin_list(struct hb_build *b)
{
	if (b->col == HB_COL_NONE)
		return;
	if (!b->in_list) {
		b->row.cell[b->col] = (struct hb_cell){.kind = HB_CELL_LIST};
		b->span[b->col].at = b->text.size;
		b->comma = false;
		b->in_list = true;
	}
	hb_buf__add(&b->text, b->comma ? ",[" : "[", b->comma ? 2 : 1);
	b->comma = false;
}

/* After the bracket is closed. `in_args`: depth of the row's arguments. */
static void end_list(struct hb_build *b)
{
	if (!b->in_list)
		return;
	hb_buf__add(&b->text, "]", 1);
	b->comma = true;
	if (depth_in_row(b) > 2 || (depth_in_row(b) == 2 && !b->is_map[b->depth]))
		return; /* of a list in the list */
	b->span[b->col].n = b->text.size - b->span[b->col].at;
	b->in_list = false;
	b->col = HB_COL_NONE;
}

/* ---- beside the rows ---- */

static int head_value(struct hb_build *b, const char *s, size_t n)
{
	if (b->depth == 1)
		b->unit = position(b);
	if (b->depth < 1 || b->depth > 3)
		return GO;
	b->err = b->sink->head(b->sink->ctx, b->path, b->item, (struct hb_piece){s, n});
	if (b->depth == 2 && !b->is_map[2])
		b->item++;
	return b->err ? STOP : GO;
}

/* The path has the names of the maps around a value, up to three. */
static void head_key(struct hb_build *b, const char *s, size_t n)
{
	size_t at = b->depth <= 3 ? b->path_at[b->depth] : sizeof(b->path);

	if (at + n + 2 > sizeof(b->path)) /* none of those that are looked for */
		b->path[0] = 0;
	else
		snprintf(b->path + at, sizeof(b->path) - at, "%s%.*s", at ? "." : "", (int)n, s);
}

static void head_deeper(struct hb_build *b)
{
	if (b->depth <= 4) /* in a list the path is the list's */
		b->path_at[b->depth] =
		    b->depth > 1 && !b->is_map[b->depth - 1] ? b->path_at[b->depth - 1] : strlen(b->path);
	if (b->depth == 2)
		b->item = 0;
}

static void head_higher(struct hb_build *b)
{
	if (b->depth == 1)
		b->unit = position(b);
	if (b->depth == 2 && !b->is_map[2])
		b->item++;
}

/* ---- tokens ---- */

static int scalar(struct hb_build *b, enum hb_cell_kind kind, const char *s, size_t n)
{
	if (b->in_row)
		row_value(b, kind, s, n);
	else if (!b->rows_depth)
		return head_value(b, s, n);
	else if (b->depth == b->rows_depth) /* a row that is no object */
		b->unit = position(b);
	return GO;
}

static int on_null(void *ctx)
{
	struct hb_build *b = ctx;

	if (b->in_list)
		add_list_item(b, HB_CELL_NONE, "null", 4);
	else
		b->col = HB_COL_NONE;
	if (!b->in_row && b->depth == (b->rows_depth ? b->rows_depth : 1))
		b->unit = position(b);
	return GO;
}

static int on_bool(void *ctx, int v)
{
	return scalar(ctx, HB_CELL_NONE, v ? "true" : "false", v ? 4 : 5);
}

static int on_number(void *ctx, const char *s, size_t n)
{
	return scalar(ctx, HB_CELL_NUMBER, s, n);
}

static int on_string(void *ctx, const unsigned char *s, size_t n)
{
	return scalar(ctx, HB_CELL_STRING, (const char *)s, n);
}

static int on_key(void *ctx, const unsigned char *key, size_t n)
{
	struct hb_build *b = ctx;
	struct hb_piece k = {(const char *)key, n};
	u32 depth;

	if (!b->in_row) {
		if (!b->rows_depth)
			head_key(b, k.s, k.n);
		return GO;
	}
	depth = depth_in_row(b);
	if (!b->in_list)
		b->col = depth == 1 || (depth == 2 && b->in_args)
			     ? hb_columns__find(&b->columns, k, depth == 2)
			     : HB_COL_NONE;
	return GO;
}

static int deeper(struct hb_build *b, bool map)
{
	if (b->depth == HB_BUILD_DEPTH) {
		b->deep = true;
		return STOP;
	}
	b->is_map[++b->depth] = map;
	if (!b->rows_depth)
		head_deeper(b);
	return GO;
}

static int on_map(void *ctx)
{
	struct hb_build *b = ctx;

	if (b->in_row && !b->in_list) {
		if (depth_in_row(b) == 1)
			b->in_args = b->col == HB_COL_ARGS;
		b->col = HB_COL_NONE;
	} else if (b->rows_depth && b->depth == b->rows_depth) {
		begin_row(b);
	}
	return deeper(b, true);
}

static int on_map_end(void *ctx)
{
	struct hb_build *b = ctx;

	b->depth--;
	if (b->in_row) {
		if (b->depth == b->rows_depth)
			return end_row(b);
		if (depth_in_row(b) == 1)
			b->in_args = false;
	} else if (!b->rows_depth) {
		head_higher(b);
		b->done = !b->depth;
	}
	return GO;
}

static int on_list(void *ctx)
{
	struct hb_build *b = ctx;
	bool rows =
	    !b->rows_depth && (b->depth == 0 || (b->depth == 1 && strcmp(b->path, "traceEvents") == 0));

	if (deeper(b, false) == STOP)
		return STOP;
	if (rows) {
		b->bare = b->depth == 1;
		b->rows_depth = b->depth;
		b->unit = position(b);
		b->place = HB_PLACE_ROWS;
		b->st->found = true;
	} else if (b->in_row) {
		begin_list(b);
	}
	return GO;
}

static int on_list_end(void *ctx)
{
	struct hb_build *b = ctx;

	b->depth--;
	if (b->in_row) {
		end_list(b);
	} else if (b->rows_depth && b->depth == b->rows_depth - 1) {
		b->rows_depth = 0;
		b->place = HB_PLACE_HEAD;
		b->unit = position(b);
		b->done = b->bare;
	} else if (!b->rows_depth) {
		head_higher(b);
	}
	return GO;
}

const yajl_callbacks hb_build_callbacks = {
    .yajl_null = on_null,
    .yajl_boolean = on_bool,
    .yajl_number = on_number,
    .yajl_string = on_string,
    .yajl_start_map = on_map,
    .yajl_map_key = on_key,
    .yajl_end_map = on_map_end,
    .yajl_start_array = on_list,
    .yajl_end_array = on_list_end,
};
