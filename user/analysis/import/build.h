/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Rows out of JSON's tokens. Internal to the parser. */
#ifndef HB_IMPORT_BUILD_H
#define HB_IMPORT_BUILD_H

#include <yajl/yajl_parse.h>

#include "analysis/import/parse.h"
#include "base/buf.h"

#define HB_BUILD_DEPTH 256 /* braces and brackets inside of each other */

enum hb_place { HB_PLACE_HEAD, HB_PLACE_ROWS }; /* beside the rows; among them */

struct hb_build {
	const struct hb_parse_sink *sink;
	struct hb_parse_stats *st;
	yajl_handle h;
	u64 base; /* of the bytes that the parser has now: position of their first in the JSON */
	u64 unit; /* position where the row, or member beside the rows, begins that is being read */
	enum hb_place place;
	bool bare; /* the JSON is a list of rows, no object with one */
	bool done; /* its outermost brace is closed */
	bool deep; /* stopped: deeper than HB_BUILD_DEPTH */
	int err;   /* of the sink or of memory: stop */
	u32 depth;
	u32 rows_depth; /* of the brackets around the rows; 0: not in them */
	bool is_map[HB_BUILD_DEPTH + 1];
	/* the row */
	struct hb_columns columns; /* filled before the first */
	struct hb_row row;
	bool in_row, in_args;
	enum hb_col col; /* of the value to come */
	struct hb_buf text;
	struct {
		size_t at, n; /* in `text` */
	} span[HB_COLS];
	bool in_list, comma;
	/* beside the rows */
	char path[96];
	size_t path_at[5]; /* of the map or list at each depth: length of its own path */
	unsigned item;
};

extern const yajl_callbacks hb_build_callbacks;

/* Begins a value, at the start of the JSON or again after something unreadable. */
void hb_build__restart(struct hb_build *b, enum hb_place place);

#endif
