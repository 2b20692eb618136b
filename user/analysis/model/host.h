/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The host side of a window in one object: timelines, wake edges, steps, device state, critical path.
 *
 *   struct hb_host *h = hb_host__new(w, &e);
 *   const struct hb_feed *feeds[] = {hb_devices__feed(d), hb_host__feed(h)};
 *   struct hb_model *m = hb_model__build_with(w, feeds, 2, &e);   one pass for all
 *   hb_devices__finish(d, &e), hb_host__finish(h, d, &e);
 */
#ifndef HB_HOST_H
#define HB_HOST_H

#include "analysis/model/collective.h"
#include "analysis/model/device.h"
#include "analysis/model/path.h"

struct hb_host;

/* NULL with the error set: out of memory. The window must stay open as long. */
struct hb_host *hb_host__new(struct hb_window *w, struct hb_error *e);
void hb_host__free(struct hb_host *h); /* NULL is fine */
const struct hb_feed *hb_host__feed(struct hb_host *h);
/* After the last record; nothing below may be asked before. With devices (finished; NULL: none) their
 * processes' states are exact where they have records. 0 or -ENOMEM with the error set. */
int hb_host__finish(struct hb_host *h, const struct hb_devices *d, struct hb_error *e);
/* All of it in a pass of its own, without devices (d NULL) or with finished ones. */
struct hb_host *hb_host__build(struct hb_window *w, const struct hb_devices *d, struct hb_error *e);
/* Bytes held by all parts; *records (may be NULL): what they stand for. */
u64 hb_host__memory(const struct hb_host *h, u64 *records);

const struct hb_timeline *hb_host__timeline(const struct hb_host *h);
const struct hb_wake *hb_host__wake(const struct hb_host *h);
const struct hb_steps *hb_host__steps(const struct hb_host *h);
const struct hb_busy *hb_host__busy(const struct hb_host *h);
const struct hb_path *hb_host__path(const struct hb_host *h);
const struct hb_collectives *hb_host__collectives(const struct hb_host *h);

#endif
