/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The host side of a window in one object: timelines, wake edges, steps, device state, critical path. */
#ifndef HB_HOST_H
#define HB_HOST_H

#include "analysis/model/path.h"

struct hb_host;

/* Builds all of it. NULL with the error set: out of memory or a caller's mistake. The window must stay open.
 */
struct hb_host *hb_host__build(struct hb_window *w, struct hb_error *e);
void hb_host__free(struct hb_host *h); /* NULL is fine */
/* After hb_busy__exact() for a process: its path again. 0 or -ENOMEM. */
u64 hb_host__memory(const struct hb_host *h);

const struct hb_timeline *hb_host__timeline(const struct hb_host *h);
const struct hb_wake *hb_host__wake(const struct hb_host *h);
const struct hb_steps *hb_host__steps(const struct hb_host *h);
struct hb_busy *hb_host__busy(struct hb_host *h);
const struct hb_path *hb_host__path(const struct hb_host *h);

#endif
