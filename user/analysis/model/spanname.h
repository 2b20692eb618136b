/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What an interval of a thread is called: the same words in every output. */
#ifndef HB_SPANNAME_H
#define HB_SPANNAME_H

#include "analysis/model/timeline.h"

/* "futex (futex)", "cuLaunchKernel", "step (core.py)", "waits for GIL". Never empty; cleaned where the window
 * is. Returns buf, or a string of the window. */
const char *hb_span__name(const struct hb_timeline *tl, u32 thread, enum hb_tl_kind kind, u32 i, char *buf,
			  size_t size);
/* A number; intervals of one kind that share it have one name: for counting many by name. Of
 * exceptions only within a process. */
u64 hb_span__key(const struct hb_timeline *tl, u32 thread, enum hb_tl_kind kind, u32 i);

#endif
