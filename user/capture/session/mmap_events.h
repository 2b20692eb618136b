/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Executable file mappings as they are made, on the whole machine: a software dummy event on every CPU
 * reports them within tens of microseconds. This is how a library that is loaded later gets its probes.
 */
#ifndef HB_SESSION_MMAP_EVENTS_H
#define HB_SESSION_MMAP_EVENTS_H

#include "base/error.h"
#include "schema/schema.h"

struct hb_mmap_event {
	u64 ts;	      /* CLOCK_MONOTONIC ns */
	u32 pid, tid; /* in our own pid namespace */
	u64 addr, len, pgoff;
	u64 ino;
	u32 dev;	  /* major << 20 | minor, as in the map record */
	const char *path; /* as the process sees it, cleaned; valid during the call */
};

struct hb_mmap_events;
typedef void (*hb_mmap_events_fn)(const struct hb_mmap_event *ev, void *arg);

/* Opens on all CPUs that are online. NULL with a sentence when not permitted. */
struct hb_mmap_events *hb_mmap_events__new(struct hb_error *e);
/* Polls readable (an epoll fd) while events wait. */
int hb_mmap_events__fd(const struct hb_mmap_events *m);
/* Calls fn for each waiting event, CPU by CPU, without blocking; anonymous and special mappings (JIT code,
 * vdso) are left out. Returns how many. */
unsigned hb_mmap_events__read(struct hb_mmap_events *m, hb_mmap_events_fn fn, void *arg);
/* Events that the kernel dropped because we came too late. */
u64 hb_mmap_events__lost(const struct hb_mmap_events *m);
void hb_mmap_events__free(struct hb_mmap_events *m); /* NULL is fine */

#endif
