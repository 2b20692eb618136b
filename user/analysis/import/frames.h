/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Stacks out of spans that contain each other: which functions and operators a thread is in at a moment. */
#ifndef HB_IMPORT_FRAMES_H
#define HB_IMPORT_FRAMES_H

#include "analysis/import/names.h"
#include "base/error.h"

struct hb_frames;

struct hb_frames *hb_frames__new(u32 threads); /* numbered 1..threads; NULL: out of memory */
void hb_frames__free(struct hb_frames *f);

/* Spans of a thread in the order of their begin: enters one (location `loc`, until `end`). Moments of a
 * thread do not go back. 0 or -ENOMEM. */
int hb_frames__enter(struct hb_frames *f, u32 thread, s64 begin, s64 end, u32 loc);
/* Number of the stack that the thread has at a moment, 0 = none; the same frames have the same number. */
u32 hb_frames__at(struct hb_frames *f, u32 thread, s64 moment);
/* Writes the stack as one of process `pid`, once. 0 or -ENOMEM. */
int hb_frames__write(struct hb_frames *f, u32 stack, u32 pid, const struct hb_names *n,
		     struct hb_window_writer *w);
/* Stacks that were not kept, because there are too many different ones. */
u64 hb_frames__lost(const struct hb_frames *f);

#endif
