/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Items of several files, each sorted by begin, as one sequence on one clock. */
#ifndef HB_IMPORT_JOIN_H
#define HB_IMPORT_JOIN_H

#include "analysis/import/sort.h"

struct hb_join_file {
	struct hb_sorter *items; /* sorted by begin */
	s64 offset;		 /* ns from the first file's clock to its own: added to its times */
	struct hb_item next;	 /* inside */
	bool has, begun;
};

struct hb_join {
	struct hb_join_file *file;
	unsigned n;
};

/* Items in order of begin, equal ones the longer first: 1, 0 at the end, -errno. */
int hb_join__next(struct hb_join *m, struct hb_item *i, struct hb_error *e);

#endif
