/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* One row ("event") of a trace, as it stands there, and the members of the trace beside the rows. */
#ifndef HB_IMPORT_ROW_H
#define HB_IMPORT_ROW_H

#include "analysis/import/text.h"

/* What is taken out of a row: members of the row, then of its "args". */
enum hb_col {
	HB_COL_NONE,
	HB_COL_PH,
	HB_COL_CAT,
	HB_COL_NAME,
	HB_COL_PID,
	HB_COL_TID,
	HB_COL_TS,
	HB_COL_DUR,
	HB_COL_ARGS,
	HB_ARG_CORRELATION,
	HB_ARG_EXTERNAL,
	HB_ARG_SEQUENCE,
	HB_ARG_STREAM,
	HB_ARG_DEVICE,
	HB_ARG_CONTEXT,
	HB_ARG_BYTES,
	HB_ARG_GRID,
	HB_ARG_BLOCK,
	HB_ARG_REGS,
	HB_ARG_SHM,
	HB_ARG_QUEUED,
	HB_ARG_GRAPH,
	HB_ARG_NODE,
	HB_ARG_KIND,
	HB_ARG_WAITS,
	HB_ARG_WSTREAM,
	HB_ARG_SYNC,
	HB_ARG_DIMS,
	HB_ARG_TYPES,
	HB_ARG_VALUES,
	HB_ARG_COLLECTIVE,
	HB_ARG_IN,
	HB_ARG_OUT,
	HB_ARG_RANKS,
	HB_ARG_DTYPE,
	HB_ARG_GROUP,
	HB_ARG_SEQ,
	HB_ARG_NAME,   /* of metadata */
	HB_ARG_LABELS, /* of metadata */
	HB_ARG_API,    /* of traces that are exports of our own */
	HB_ARG_CLASS,
	HB_ARG_RET,
	HB_COLS,
};

enum hb_cell_kind {
	HB_CELL_NONE, /* absent, null, or not what can be used */
	HB_CELL_NUMBER,
	HB_CELL_STRING,
	HB_CELL_LIST, /* its text, written anew; its first numbers */
};

struct hb_cell {
	u8 kind, n; /* n: of `list` */
	struct hb_piece text;
	u32 list[3]; /* HB_CELL_LIST: its first numbers */
};

struct hb_row {
	struct hb_cell cell[HB_COLS];
	u64 at; /* where it begins, bytes from the start of the JSON */
};

/* Finds columns by the names of members, quickly: a hash table of the names. */
struct hb_columns {
	u8 slot[128];
};
void hb_columns__init(struct hb_columns *c);
/* Column of a member of a row, or of its args; HB_COL_NONE for one that is not taken. */
enum hb_col hb_columns__find(const struct hb_columns *c, struct hb_piece key, bool in_args);

/* A cell as an integer: a number, or a text that is one. */
bool hb_row__int(const struct hb_row *r, enum hb_col c, s64 *out);
/* The same, 0 where there is none and for what does not fit. */
u64 hb_row__u64(const struct hb_row *r, enum hb_col c);
u32 hb_row__u32(const struct hb_row *r, enum hb_col c);
/* Its text; "" where there is none. */
static inline struct hb_piece hb_row__text(const struct hb_row *r, enum hb_col c)
{
	return r->cell[c].kind ? r->cell[c].text : (struct hb_piece){"", 0};
}

#endif
