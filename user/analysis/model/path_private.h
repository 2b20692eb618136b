/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Inside of path: what path.c, walk.c and whatif.c share. Not for others. */
#ifndef HB_PATH_PRIVATE_H
#define HB_PATH_PRIVATE_H

#include "analysis/model/path.h"
#include "analysis/model/queue.h"

struct hb_segs {
	struct hb_seg *seg;
	u32 n, cap;
};

struct hb_path {
	const struct hb_timeline *tl;
	const struct hb_wake *wk;
	const struct hb_steps *steps;
	const struct hb_busy *busy;
	struct hb_path_row *row;
	u32 n;
};

struct hb_path_row { /* one series, in their order */
	const struct hb_series *series;
	struct hb_segs segs;   /* of its steps */
	struct hb_segs beside; /* of the rest of the window, where there are steps */
};

/* Of a process; NULL: none. */
const struct hb_path_row *hb_path_row(const struct hb_path *p, u32 pid);

struct hb_walk_op { /* a piece of work on a device */
	const struct hb_device_op *o;
	u32 prev;  /* the piece before it on its stream; HB_NONE */
	u32 event; /* the piece of another stream that it waited for, by an event; HB_NONE */
};
struct hb_walk_ops;
/* `coll` may be NULL. NULL: out of memory. */
struct hb_walk_ops *hb_walk_ops__new(const struct hb_timeline *tl, const struct hb_devices *d,
				     const struct hb_collectives *coll);
void hb_walk_ops__free(struct hb_walk_ops *w);
/* The work of a process, by end, and the last piece that ended by t; NULL, HB_NONE when there is none. It is
 * put together when it is asked for first: out of memory is told by oom(). */
const struct hb_walk_op *hb_walk_ops__of(struct hb_walk_ops *w, u32 pid, u64 t, u32 *last);
/* The call that launched it, and who made that; NULL, HB_NONE: not known. */
const struct hb_launch *hb_walk_ops__launch(const struct hb_walk_ops *w, const struct hb_walk_op *x,
					    u32 *thread);
/* When that call began; 0: not known. */
u64 hb_walk_ops__asked(const struct hb_walk_ops *w, const struct hb_walk_op *x);
/* The piece of the rank that came last to a collective which *pid's piece is of and waited in: its place in
 * the work of its process, whose pid is then in *pid. NULL: it is none, did not wait, or the clocks of the
 * two differ. */
const struct hb_walk_op *hb_walk_ops__late(struct hb_walk_ops *w, u32 *pid, const struct hb_walk_op *o,
					   u32 *at);
bool hb_walk_ops__oom(const struct hb_walk_ops *w); /* NULL: no */

struct hb_ways { /* over which a walk goes from thread to thread */
	const struct hb_timeline *tl;
	const struct hb_wake *wk;
	struct hb_walk_ops *ops;	/* NULL: none */
	const struct hb_queues *queues; /* NULL: none */
	struct hb_walk_thread *threads; /* inside: by thread */
};
/* Makes ready for walks; the rest is set before. 0 or -ENOMEM. */
int hb_ways__open(struct hb_ways *w);
void hb_ways__close(struct hb_ways *w);
/* Appends the segments of one walk, in order of time. 0 or -ENOMEM. */
int hb_walk(const struct hb_ways *ways, u32 thread, u64 begin, u64 end, struct hb_segs *out);

#endif
