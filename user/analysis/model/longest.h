/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The critical path as Holistic Trace Analysis (HTA) defines it: the longest path of a graph.
 *
 * Nodes are begins and ends of events: operators and accelerator calls of a process's threads, and the work
 * on its devices. Links have a weight, ns:
 *   span           from one node of a thread to its next inside of an operator or call, and from the begin of
 *                  work to its end: the time between. Calls that only wait (synchronisation, event query,
 *                  copies that are not asynchronous) weigh nothing: what they waited for does.
 *   order          from an outermost event of a thread to the next one: nothing. Time in which a thread is in
 *                  no operator and no call is nobody's.
 *   launch delay   from a call's begin to its work's, when the stream had nothing else to do from the one to
 *                  the other; else the same link without weight, so that no work is before its call.
 *   kernel delay   from the end of the work before it on its stream, when that was less than 1.5 ms ago.
 *   sync           from work to the end of the call, or to the work, that waited for it: nothing.
 * Launches, asynchronous copies and allocations of pinned memory are taken as holding one lock, in the order
 * in which they return. A link against time weighs nothing.
 *
 * hb_path walks backwards and charges every ns of a step once; this path leaves out what no event tells, so
 * it is shorter than the stretch it is of. It says what a change of one event would do to others, and can be
 * compared with other people's numbers. Where HTA's own numbers rest on how it reads a trace, this has the
 * rule: ns, not rounded us; every operation of a graph launch, not the last one; the forward and the backward
 * thread of a training job stay two threads.
 */
#ifndef HB_LONGEST_H
#define HB_LONGEST_H

#include "analysis/model/device.h"
#include "analysis/model/steps.h"

enum hb_link_kind {
	HB_LINK_SPAN,
	HB_LINK_ORDER,
	HB_LINK_LAUNCH,
	HB_LINK_KERNEL,
	HB_LINK_SYNC,
	HB_LINK_KINDS
};
const char *hb_link__name(enum hb_link_kind k); /* "span", "order", "launch delay", "kernel delay", "sync" */

enum hb_cp_what { HB_CP_OPERATOR, HB_CP_STEP, HB_CP_CALL, HB_CP_WORK };
const char *hb_cp_what__name(enum hb_cp_what w); /* "operator", "step", "call", "device" */

struct hb_cp_event {
	u64 begin, end;
	u32 name;   /* string; 0: none (a step) */
	u32 thread; /* of the timeline; HB_NONE: on a device */
	u32 parent; /* event that it is inside of; HB_NONE */
	u32 index;  /* in the thread's operators or calls, in the series' steps, in the device's operations */
	u32 device; /* index of hb_devices; HB_NONE: on the host */
	u8 what;    /* enum hb_cp_what */
	u8 work;    /* of HB_CP_WORK: enum hb_work */
	u8 waits;   /* a call that only waits */
	u8 locks;   /* a call that holds the lock */
};

#define HB_NODE_BEGIN(event) (2 * (event))
#define HB_NODE_END(event)   (2 * (event) + 1)

struct hb_link {
	u64 ns;
	u32 from, to; /* nodes */
	u32 owner;    /* the event whose time a SPAN or KERNEL link is; HB_NONE */
	u8 kind;      /* enum hb_link_kind */
};

enum hb_cp_part { /* whose the path's time is */
		  HB_CP_HOST,
		  HB_CP_COMPUTE,
		  HB_CP_COMM,
		  HB_CP_MEMCPY,
		  HB_CP_LAUNCH_DELAY,
		  HB_CP_KERNEL_DELAY,
		  HB_CP_PARTS,
};
const char *hb_cp_part__name(enum hb_cp_part p); /* "host", "compute", "communication", "memcpy", ... */
enum hb_cp_part hb_link__part(const struct hb_link *l, const struct hb_cp_event *owner);

struct hb_longest_opts {
	const char *name; /* operator or annotation whose name contains this; "step": an engine step when
			   * there is no such; NULL: all of the window */
	u32 instance;	  /* of those, by begin, from 0 */
};

struct hb_longest_sum {
	u32 pid;
	u32 of;		/* string: the name that was found; 0: the window, or a step */
	u64 begin, end; /* the stretch: events that begin in it, at its end too (but of a step) */
	u64 length;	/* of the path = the sum of `part` */
	u64 part[HB_CP_PARTS];
	u32 nodes, links, events;    /* on the path */
	u32 all[HB_LINK_KINDS];	     /* links of the graph */
	u32 all_events;		     /* events of the graph */
	u32 syncs;		     /* waits for the device that were recorded, in the stretch */
	u32 forced;		     /* nodes that were taken out of a circle: times are damaged */
	bool step, operators, works; /* of an engine step; has operators; has work on devices */
};

struct hb_longest;

/* `d` may be NULL. NULL with the sentence: there is no such stretch (-ENOENT), or out of memory. All parts
 * must live as long. Time O(n log n), memory about 200 bytes for each event of the stretch. */
struct hb_longest *hb_longest__build(const struct hb_timeline *tl, const struct hb_devices *d,
				     const struct hb_steps *steps, const struct hb_longest_opts *o,
				     struct hb_error *e);
void hb_longest__free(struct hb_longest *l); /* NULL is fine */

const struct hb_longest_sum *hb_longest__sum(const struct hb_longest *l);
/* Links of the path, in its order. */
const struct hb_link *const *hb_longest__path(const struct hb_longest *l, u32 *n);
/* All links of the graph, and its events by thread, then by device. */
const struct hb_link *hb_longest__links(const struct hb_longest *l, u32 *n);
const struct hb_cp_event *hb_longest__events(const struct hb_longest *l, u32 *n);
/* "aten::mm", "engine step"; never NULL. */
const char *hb_longest__name(const struct hb_longest *l, u32 event);

struct hb_cp_row { /* the path's time by part and name */
	u64 ns;
	u32 links;
	u32 event; /* one of that name */
	u8 part;   /* enum hb_cp_part */
};
/* Largest first, those without time left out; the caller frees *rows. 0 or -ENOMEM. */
int hb_longest__by_name(const struct hb_longest *l, struct hb_cp_row **rows, u32 *n);

#endif
