/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Rings -> window. Drains ring buffers in batches, gives every record its task index, hands it to the writer,
 * and keeps the accounts of loss. It knows record headers and roles, no record type: what a type needs
 * (resolving stacks, following children) subscribes.
 */
#ifndef HB_COLLECT_H
#define HB_COLLECT_H

#include "base/error.h"
#include "schema/wire.h"
#include "window/window.h"

struct hb_collect;

struct hb_collect_opts {
	const int *ring_fds; /* fds of ring buffer maps, one stream each */
	unsigned n_rings;
	unsigned batch; /* records taken from one ring before the next has its turn; 0: many */
	struct hb_window_writer *writer; /* opened with n_rings + 1 streams: the last is for emit() */
};

/* Called for each record of a type, on the draining thread, before it is written. */
typedef void (*hb_collect_fn)(const struct hb_wire *w, const void *payload, void *arg);
/* Called once per distinct (pid, raw stack id) seen in a STACK member. */
typedef void (*hb_collect_stack_fn)(u32 pid, u32 raw, void *arg);
/* Fills a task not seen before (names, namespace ids, target or not). */
typedef void (*hb_collect_task_fn)(struct hb_task *t, void *arg);

struct hb_collect *hb_collect__new(const struct hb_collect_opts *o, struct hb_error *e);
void hb_collect__free(struct hb_collect *c);
int hb_collect__subscribe(struct hb_collect *c, unsigned type, hb_collect_fn fn, void *arg);
/* A message of the rings that is no record (id HB_WIRE_* from schema/wire.h): fn makes of it what is to be
 * written, with instead(). */
int hb_collect__divert(struct hb_collect *c, unsigned id, hb_collect_fn fn, void *arg);
void hb_collect__on_stack(struct hb_collect *c, hb_collect_stack_fn fn, void *arg);
void hb_collect__on_task(struct hb_collect *c, hb_collect_task_fn fn, void *arg);

/* Waits up to timeout_ms for a wake-up, then drains every ring. Returns records drained, or -errno (-EFBIG
 * and disk errors of the writer: the window must end). */
int hb_collect__poll(struct hb_collect *c, int timeout_ms);
/* A record of our own (stream n_rings). */
/* emit() and poll() share the task table: call both from one thread, or hold one lock around them. */
int hb_collect__emit(struct hb_collect *c, unsigned type, u32 pid, u32 tid, u64 ts, const void *payload);
/* A record instead of the message that is being delivered: in the order of its ring. */
int hb_collect__instead(struct hb_collect *c, unsigned type, u32 pid, u32 tid, u64 ts, const void *payload);
/* Index of a thread in the window, made known (on_task) if it is new; 0xffff when the table is full. For
 * subscribers. */
u16 hb_collect__task(struct hb_collect *c, u32 pid, u32 tid);
/* Gives the rings' memory back once nothing is to come from them; poll() then finds nothing, emit() goes on.
 */
void hb_collect__close_rings(struct hb_collect *c);
/* Time of the earliest record that the writer refused because the file is full: what came before is all
 * there. UINT64_MAX: none. Final when poll() has run once more after -EFBIG: only then all rings were asked.
 */
u64 hb_collect__cut(const struct hb_collect *c);
u64 hb_collect__events(const struct hb_collect *c);
/* An fd that polls readable when a ring asks for attention, for a caller with its own poll loop. */
int hb_collect__fd(const struct hb_collect *c);

#endif
