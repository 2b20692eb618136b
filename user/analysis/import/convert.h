/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Rows of a trace -> items that will be records. */
#ifndef HB_IMPORT_CONVERT_H
#define HB_IMPORT_CONVERT_H

#include "analysis/import/sort.h"
#include "analysis/import/tasks.h"
#include "base/buf.h"

/* Rows that are used with a guess, or not at all. */
#define HB_ODDS(O)                                                                                           \
	O(TIME, "without a time that can be read: not used")                                                 \
	O(LENGTH, "without a length, or with a negative one: used as if they had none")                      \
	O(NAME, "without a name: called \"?\"")                                                              \
	O(PLACE, "without process or thread: used as if they were of process 0")                             \
	O(KIND, "without a kind (\"ph\"): not used")                                                         \
	O(END, "that are the end of nothing: not used")                                                      \
	O(OPEN, "that begin and do not end: used as if they went on until the last one")
enum hb_odd {
#define HB_ODD(id, text) HB_ODD_##id,
	HB_ODDS(HB_ODD) HB_ODD_COUNT
};

struct hb_skipped { /* rows of a kind that says nothing here */
	char ph;
	u32 cat; /* name */
	u64 count;
};

struct hb_convert {
	u8 source; /* number of the file */
	struct hb_names *names;
	struct hb_tasks *tasks;
	struct hb_sorter *items;
	struct hb_error *e;
	u64 odd[HB_ODD_COUNT];
	struct hb_buf skipped; /* of struct hb_skipped */
	struct hb_buf open;    /* of struct hb_item: begun ("B"), not ended yet */
};

/* Takes a row: `row` of struct hb_parse_sink. */
int hb_convert__row(struct hb_convert *c, const struct hb_row *r);
/* After the last one. */
int hb_convert__end(struct hb_convert *c);
const char *hb_odd__text(enum hb_odd o);
void hb_convert__free(struct hb_convert *c); /* what it made itself */

#endif
