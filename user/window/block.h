/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A block is what one data frame holds. The writer gathers it as rows (head, payload, head, payload, ...); in
 * the file it is planes: all heads, then all payloads of each type, every one of these matrices transposed by
 * bytes (the first byte of all records, the second byte of all, ...). Bytes that seldom change, as the upper
 * bytes of pointers and durations do, then stand together: on launches and sleeps of a serving engine level 1
 * makes 40 % less of it than of rows, and compresses faster than it would rows. Internal to window/.
 */
#ifndef HB_WINDOW_BLOCK_H
#define HB_WINDOW_BLOCK_H

#include <stdbool.h>
#include <stddef.h>

#include "window/format.h"

/* Rows being gathered for one stream. */
struct hb_block {
	struct hb_block *next; /* in a queue or free list */
	u64 base_ts, last_ts, min_ts, max_ts;
	u64 first; /* records of the stream before this block */
	u32 stream, count;
	u32 fill, cap;		 /* bytes of rows[] */
	u32 counts[HB_TYPE_MAX]; /* records by type */
	_Alignas(8) u8 rows[];	 /* cap bytes */
};

struct hb_block *hb_block__new(u32 cap); /* NULL: out of memory */
void hb_block__reset(struct hb_block *b);
/* False: no room, or the time step does not fit its 32 bits: begin another block. */
bool hb_block__add(struct hb_block *b, u64 ts, u16 task, unsigned type, const void *payload, u32 size);

/* Writes the body of the frame's head (returns its bytes; <= HB_DATA_BODY_MAX) and the planes (b->fill
 * bytes). `scratch` has b->fill bytes, 8-aligned. */
#define HB_DATA_BODY_MAX (sizeof(struct hb_data_head) + HB_TYPE_MAX * sizeof(struct hb_data_type))
size_t hb_block__encode(const struct hb_block *b, void *body, u8 *planes, u8 *scratch);

/* What a reader makes of planes: heads, and payloads of each type one after the other. */
struct hb_payloads { /* of one type */
	const u8 *next;
	u16 size;   /* of one, in the file */
	u16 wanted; /* the same in this version; 0: it does not know the type */
	s16 dur;    /* offset of the u64 duration; -1: it has none */
};
struct hb_decoded {
	const struct hb_file_head *heads;
	struct hb_payloads of[256]; /* by type; set for those that occur */
	u32 count;
};
/* `rows` has the frame's `raw` bytes, 8-aligned. The body was checked by hb_frame__data_ok(). False: the
 * planes contradict the body. */
bool hb_block__decode(const void *body, const u8 *planes, u8 *rows, struct hb_decoded *d);

#endif
