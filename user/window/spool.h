/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The writer's own thread: takes blocks and table entries from a bounded queue, compresses them, writes
 * frames. Internal to window/.
 */
#ifndef HB_WINDOW_SPOOL_H
#define HB_WINDOW_SPOOL_H

#include "base/buf.h"
#include "base/error.h"
#include "window/block.h"

#define HB_SPOOL_QUEUE 16 /* blocks that may wait before push blocks */

struct hb_spool;

/* Takes fd; starts the thread. `limit`: data frames that would make the file larger are dropped (0: none). */
struct hb_spool *hb_spool__new(int fd, u64 limit, u32 block_size, struct hb_error *e);
/* Ends the thread, frees; the descriptor stays open. */
int hb_spool__close(struct hb_spool *s);

/* An empty block, recycled where there is one; NULL: out of memory. */
struct hb_block *hb_spool__block(struct hb_spool *s);
/* Hands a block over; takes it in any case. 0 or the sticky error. */
int hb_spool__push(struct hb_spool *s, struct hb_block *b);
/* Hands the content of a buffer over as a frame of its own; leaves *body empty. */
int hb_spool__push_body(struct hb_spool *s, enum hb_frame_kind kind, struct hb_buf *body);
/* Waits until all that was handed over is written. */
int hb_spool__sync(struct hb_spool *s);
/* After a sync: index and footer. */
int hb_spool__seal(struct hb_spool *s, u64 records, u64 end_ts);

int hb_spool__error(const struct hb_spool *s);	 /* first error of the disk, sticky */
u64 hb_spool__bytes(const struct hb_spool *s);	 /* in the file */
u64 hb_spool__dropped(const struct hb_spool *s); /* records in blocks that were not written */
/* Does the file stay below its limit, with an eighth to spare, if nothing of what is not written yet lets
 * itself be compressed? `raw` and `blocks`: bytes of rows and blocks begun since the start; `tables`: bytes
 * to come. */
bool hb_spool__fits(const struct hb_spool *s, u64 raw, u64 blocks, u64 tables);

#endif
