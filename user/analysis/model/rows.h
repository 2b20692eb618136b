/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A table of statistics rows found by a 64-bit key. Rows never move, so pointers to them may be kept. */
#ifndef HB_ROWS_H
#define HB_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"

#define HB_ROWS_RECENT 128

struct hb_rows {
	struct hb_map *map;
	void **row;
	uint32_t n, cap;
	size_t size;	     /* of one row */
	struct block *block; /* inside: where rows lie, and the room left in the last one */
	char *next;
	uint32_t room;
	struct hb_rows_recent { /* rows asked for last, by a part of their key: few of them count most */
		uint64_t key;
		void *row;
	} recent[HB_ROWS_RECENT];
};

int hb_rows__init(struct hb_rows *t, size_t row_size);
/* The row of `key`, zeroed when new (*fresh); NULL: out of memory. */
void *hb_rows__get(struct hb_rows *t, uint64_t key, bool *fresh);
/* The row of `key`, before and after sorting; NULL: none. */
void *hb_rows__find(const struct hb_rows *t, uint64_t key);
/* Orders `row`. */
void hb_rows__sort(struct hb_rows *t, int (*cmp)(const void *, const void *));
/* `drop` (may be NULL) releases what a row owns. */
void hb_rows__free(struct hb_rows *t, void (*drop)(void *row));

#endif
