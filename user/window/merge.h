/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The data frames of a file as one sequence of records in order of time: one decoded frame per stream, a heap
 * over the streams. Internal to window/.
 */
#ifndef HB_WINDOW_MERGE_H
#define HB_WINDOW_MERGE_H

#include "window/scan.h"
#include "window/window.h"

struct hb_merge;

struct hb_merge *hb_merge__new(int fd); /* NULL: out of memory */
void hb_merge__free(struct hb_merge *m);
/* Makes a good data frame known, in file order. 0 or -ENOMEM. */
int hb_merge__add(struct hb_merge *m, const struct hb_frame *f);
/* To the beginning. */
void hb_merge__rewind(struct hb_merge *m);

struct hb_merge_tasks { /* what records tell by number; n is at least 1 */
	const struct hb_task *task;
	u32 n;
};
/* As hb_window__take(). */
int hb_merge__take(struct hb_merge *m, const struct hb_merge_tasks *t, struct hb_records *b);
/* Frames, and records in them, whose checksums were right but that could not be decoded. */
u64 hb_merge__bad_frames(const struct hb_merge *m, u64 *records);

#endif
