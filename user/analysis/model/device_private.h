/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Inside of hb_devices: what its files share. device.c takes records and orders them, device_join.c finds the
 * call of an operation, device_launch.c and device_time.c look at one device each, device_kernel.c at names
 * and directions. */
#ifndef HB_DEVICE_PRIVATE_H
#define HB_DEVICE_PRIVATE_H

#include "analysis/model/device.h"
#include "analysis/model/order.h"
#include "analysis/model/rows.h"

struct numbers { /* correlation numbers of one process: the last call with each, as index + 1 */
	u32 calls;
	u64 base; /* dense[0] is of this number */
	u32 *dense;
	u64 n_dense;
	struct hb_map *sparse; /* those that `dense` has no place for */
};

struct pending { /* an operation that came before its call did */
	u64 correlation;
	u32 op;
};

struct name { /* pub first: tables of pointers are handed out as they are */
	struct hb_kernel pub;
	u32 row;
	u32 n;	  /* operations */
	u64 *dur; /* where their durations go; its own part of one array */
};

struct task { /* a thread's calls are of one process, and its device records mostly of one device */
	struct numbers *numbers;
	struct dev *dev;
};

struct dev { /* pub first, as above */
	struct hb_device pub;
	struct numbers *numbers;  /* of its process */
	struct hb_device_op *ops; /* until finish `name` of a kernel is a row of names */
	u32 n_ops, cap_ops;
	u32 n_copies;	    /* operations that are copies */
	u32 first_unlinked; /* index; n_ops: all have calls */
	struct pending *pending;
	u32 n_pending, cap_pending;
	struct hb_map *stream_of; /* (context, number) -> index */
	struct hb_stream *streams;
	u32 n_streams, cap_streams;
	struct hb_gap *gaps;
	u32 n_gaps, cap_gaps;
	struct hb_copies *copies;
	u32 cap_copies;
	struct hb_ivs host_idle, not_known;
};

struct hb_devices {
	struct hb_window *w;
	struct hb_devices_opts o;
	struct hb_device_counts counts;
	struct hb_feed feed;
	bool finished;
	struct hb_launch *launch;
	u32 n_launches, cap_launches;
	struct hb_rows by_pid; /* struct numbers */
	struct hb_rows devs;   /* struct dev, by (pid, number) */
	struct task *task;     /* by index of the window's tasks: what its last records were of */
	struct hb_rows names;  /* struct name, by string id */
	u32 n_names;	       /* after finish: the first ones, that have operations */
	struct name **by_id;   /* the same by string id, below n_by_id: those that were asked for */
	u32 n_by_id;
	bool repeats; /* a number occurs twice */
	u8 *probe_is; /* by probe: whether this call gives the device work, launches a graph */
	u32 n_probes;
	/* During finish: room for one item of each operation of the largest device. */
	struct hb_order *order;
	u64 *values;
};

static inline struct hb_launch *launch_of(const struct hb_devices *d, const struct hb_device_op *o)
{
	return o->launch ? &d->launch[o->launch - 1] : NULL;
}

/* Launches lie in the order in which calls ended. Where operations are gone through in theirs, those that are
 * looked at soon are fetched meanwhile. */
static inline void expect_launch(const struct hb_devices *d, const struct dev *v, u32 i)
{
	if (i + HB_FETCH_AHEAD < v->n_ops)
		hb_devices__fetch(d, &v->ops[i + HB_FETCH_AHEAD]);
}

/* The next item of a growing array not set yet; NULL: out of memory, or 2^32 of them. */
void *hb_devices__push(void *array, u32 *n, u32 *cap, size_t size);

/* Remembers launch i (index) by its number; 0 or -ENOMEM. */
int hb_numbers__add(struct hb_devices *d, struct numbers *n, u32 i);
/* The call (index + 1) of an operation that began at `begin`; 0: none. */
u32 hb_numbers__find(const struct hb_devices *d, const struct numbers *n, u64 correlation, u64 begin);
void hb_numbers__drop(void *row);
/* When all calls are known: those of operations that came before, or whose number occurs twice. */
void hb_devices__join(struct hb_devices *d, struct dev *v);

/* One device each, in this order; 0 or -ENOMEM. */
int hb_devices__queue(struct hb_devices *d, struct dev *v); /* launches: queue, delay, short kernels */
int hb_devices__time(struct hb_devices *d, struct dev *v);  /* unions, gaps */
int hb_devices__copies(struct hb_devices *d, struct dev *v);

/* The row of a kernel's name, created when new. */
struct name *hb_devices__new_name(struct hb_devices *d, u32 name);
static inline struct name *hb_devices__name(struct hb_devices *d, u32 name)
{
	return name < d->n_by_id && d->by_id[name] ? d->by_id[name] : hb_devices__new_name(d, name);
}
/* Kernels by name, over all devices. */
int hb_devices__by_name(struct hb_devices *d);

#endif
