/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Messages through queues in shared memory, as between an engine and its workers (vLLM's MessageQueue).
 * Readers spin, so that no sleep and no system call tells of a message. Where calls of the functions that put
 * and take them were recorded (trace --calls '*MessageQueue.enqueue' --calls '*MessageQueue.dequeue'), a
 * message taken is matched with the one put last before, by a parent or child of the taking process, when
 * that was no longer than a millisecond ago: then the reader was waiting for it. Older ones lay there
 * already, and held nobody up.
 *
 * A guess of medium confidence: a process with several children may have waited for another of them, that put
 * its message a little earlier.
 */
#ifndef HB_QUEUE_H
#define HB_QUEUE_H

#include "analysis/model/timeline.h"

#define HB_QUEUE_WAIT_NS 1000000

struct hb_message {
	u64 taken; /* when the reader's call returned */
	u64 put;   /* when the writer's call returned, at most `taken` */
	u32 from;  /* thread that put it */
};

struct hb_queues;

/* NULL with the error set: out of memory. The timeline must live as long. */
struct hb_queues *hb_queues__build(const struct hb_timeline *tl, struct hb_error *e);
void hb_queues__free(struct hb_queues *q); /* NULL is fine */
u64 hb_queues__memory(const struct hb_queues *q);
/* Calls seen that put and that take, and those of the latter which are matched. */
void hb_queues__counts(const struct hb_queues *q, u64 *put, u64 *taken, u64 *matched);
/* The last message for which a thread waited and that it had by `t`; NULL: none. O(log n). */
const struct hb_message *hb_queues__last(const struct hb_queues *q, u32 thread, u64 t);

#endif
