/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Inside of hb_longest: longest_events.c finds the stretch, the host's events and their links,
 * longest_device.c the devices' work and its links, longest.c the path. Not for others. */
#ifndef HB_LONGEST_PRIVATE_H
#define HB_LONGEST_PRIVATE_H

#include "analysis/model/longest.h"

struct hb_numbered { /* a call with a correlation number, in the stretch or not */
	u64 correlation, begin;
	u32 thread;
	u32 event; /* HB_NONE: not in the stretch */
};

struct hb_longest {
	const struct hb_timeline *tl;
	const struct hb_devices *d; /* NULL: none */
	const struct hb_steps *steps;
	struct hb_longest_sum sum;
	struct hb_cp_event *event;
	u32 n_events, cap_events;
	struct hb_link *link;
	u32 n_links, cap_links;
	struct hb_numbered *numbered; /* by correlation, then begin */
	u32 n_numbered;
	const struct hb_link **path;
};

/* The stretch: pid, begin, end. */
int hb_longest__find(struct hb_longest *l, const struct hb_longest_opts *o, struct hb_error *e);
/* Events of threads and their links; the numbered calls. 0 or -ENOMEM. */
int hb_longest__host(struct hb_longest *l);
/* Events of devices and their links, after those of the host. */
int hb_longest__devices(struct hb_longest *l);

/* The next event, all zero but parent, thread and device (HB_NONE); NULL: out of memory. */
struct hb_cp_event *hb_longest__event(struct hb_longest *l);
/* A link between nodes; `weighs`: the time between them, 0 against time. 0 or -ENOMEM. */
int hb_longest__link(struct hb_longest *l, enum hb_link_kind kind, u32 from, u32 to, bool weighs, u32 owner);

static inline u64 hb_node__ts(const struct hb_longest *l, u32 node)
{
	const struct hb_cp_event *e = &l->event[node / 2];

	return node & 1 ? e->end : e->begin;
}

/* The next step begins where one ends. */
static inline bool hb_longest__holds(const struct hb_longest *l, u64 begin)
{
	return begin >= l->sum.begin && (begin < l->sum.end || (begin == l->sum.end && !l->sum.step));
}

#endif
