/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Making and checking single frames. Internal to window/. */
#ifndef HB_WINDOW_FRAME_H
#define HB_WINDOW_FRAME_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "window/format.h"

u32 hb_frame__crc(const void *data, size_t n);

/* Completes *h (kind, flags, raw and seq are the caller's) for this body and what follows. */
void hb_frame__seal(struct hb_frame_head *h, const void *body, size_t n_body, const void *follow,
		    size_t n_follow);

/* The head is ours, unharmed, and its lengths are within the limits. */
bool hb_frame__head_ok(const struct hb_frame_head *h);
static inline u64 hb_frame__len(const struct hb_frame_head *h)
{
	return 8ull + h->size + h->follow;
}
static inline u32 hb_frame__body(const struct hb_frame_head *h)
{
	return h->size - HB_HEAD_REST;
}

/* Appends a whole frame without a tail to `out`; the body is compressed where that makes it smaller. */
void hb_frame__add(struct hb_buf *out, enum hb_frame_kind kind, u32 seq, const void *body, size_t n);

/* Checks what a data frame's body says against the head: types, counts, sizes. */
bool hb_frame__data_ok(const struct hb_frame_head *h, const void *body);

#endif
