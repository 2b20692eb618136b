/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Walks the frames of a file that may be cut, torn or scribbled over: gives out the frames whose checksums
 * are right and counts the bytes of everything else. Internal to window/.
 */
#ifndef HB_WINDOW_SCAN_H
#define HB_WINDOW_SCAN_H

#include <stdbool.h>
#include <stddef.h>

#include "window/format.h"

struct hb_scan {
	int fd;
	u64 size, pos;
	u64 lost_bytes;
	u64 bad_frames;	  /* heads that were whole, content that was not */
	u64 lost_records; /* in bad data frames, where their head still tells */
	bool torn;	  /* the last bytes are no whole frame: cut off, or still being written */
	u64 budget; /* bytes that may still be read: a hostile file must not cost more than a few passes */
	u8 *buf;
	size_t cap;
};

struct hb_frame {
	struct hb_frame_head head;
	u64 offset;
	const u8 *body; /* valid until the next step */
	u32 n_body;
};

int hb_scan__init(struct hb_scan *s, int fd, u64 size);
void hb_scan__free(struct hb_scan *s);
/* The next good frame: 1, 0 at the end, -errno on a read error or without memory. */
int hb_scan__next(struct hb_scan *s, struct hb_frame *f);

/* Exactly n bytes at `at`, or -errno (-EIO when the file is shorter). */
int hb_scan__read(int fd, void *dst, size_t n, u64 at);

#endif
