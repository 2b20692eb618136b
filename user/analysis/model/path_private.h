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

struct hb_piece { /* of work on a device */
	const struct hb_device *v;
	u32 i; /* index of its operations */
};
struct hb_walk_ops;
/* `coll` may be NULL. NULL: out of memory. */
struct hb_walk_ops *hb_walk_ops__new(const struct hb_timeline *tl, const struct hb_devices *d,
				     const struct hb_collectives *coll);
void hb_walk_ops__free(struct hb_walk_ops *w);
/* The last piece of a process that ended by t; false: none (`w` NULL too). What it takes is put together when
 * it is asked for first: out of memory is told by oom(). */
bool hb_walk_ops__last(struct hb_walk_ops *w, u32 pid, u64 t, struct hb_piece *last);
/* What a piece waited for last on its device: the one before it on its stream, or another stream's by an
 * event. False: neither, or that did not end before it. Of pieces that were told here only. */
bool hb_walk_ops__followed(const struct hb_walk_ops *w, const struct hb_piece *x, struct hb_piece *before);
/* The call that launched it, and who made that; NULL, HB_NONE: not known. */
const struct hb_launch *hb_walk_ops__launch(const struct hb_walk_ops *w, const struct hb_piece *x,
					    u32 *thread);
/* When that call began; 0: not known. */
u64 hb_walk_ops__asked(const struct hb_walk_ops *w, const struct hb_piece *x);
/* The piece of the rank that came last to a collective which x is of and waited in. False: it is none, did
 * not wait, or the clocks of the two differ. */
bool hb_walk_ops__late(struct hb_walk_ops *w, const struct hb_piece *x, struct hb_piece *late);
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
