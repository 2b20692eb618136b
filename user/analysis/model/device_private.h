/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Inside of hb_devices: what its files share. device.c takes records and orders them, device_join.c finds the
 * call of an operation, device_time.c goes through the operations of one device in the order of time, and
 * with it device_launch.c through its queue; device_kernel.c looks at names and directions. */
#ifndef HB_DEVICE_PRIVATE_H
#define HB_DEVICE_PRIVATE_H

#include "analysis/model/device.h"
#include "analysis/model/order.h"
#include "analysis/model/rows.h"

enum { NUMBERS_OF_BLOCK = 4096 };

struct numbers { /* correlation numbers of one process: the last call with each, as index + 1 */
	u32 calls;
	u64 base;    /* the first place is of this number */
	u32 **block; /* places; NULL: none yet */
	u64 n_blocks;
	struct hb_map *sparse; /* those that have no place */
};

struct pending { /* an operation that came before its call did */
	u64 correlation;
	u32 op;
};

struct tally {	   /* of a kernel's name: what each of its operations comes by, near one another */
	u64 *next; /* where the duration of its next one goes; its own part of one array */
	u64 blocks;
	u32 n;	  /* operations */
	u32 name; /* string */
	u8 work;
};

struct name { /* pub first: tables of pointers are handed out as they are */
	struct hb_kernel pub;
	u32 tally;
};

struct task { /* a thread's calls are of one process, and its device records mostly of one device */
	struct numbers *numbers;
	struct dev *dev;
};

struct dev { /* pub first, as above */
	struct hb_device pub;
	struct numbers *numbers;  /* of its process */
	struct hb_device_op *ops; /* until finish `name` of a kernel is a place in tally */
	u32 n_ops, cap_ops;
	u64 last_begin;		/* of the operation that came last */
	bool unsorted;		/* they did not come by begin */
	bool launched_in_order; /* that in which they begin */
	u32 n_copies;		/* operations that are copies */
	u32 first_unlinked;	/* index; n_ops: all have calls */
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
	bool repeats; /* a number occurs twice */
	struct hb_launch *launch;
	u32 n_launches, cap_launches;
	struct hb_rows by_pid; /* struct numbers */
	struct hb_rows devs;   /* struct dev, by (pid, number) */
	struct task *task;     /* by index of the window's tasks: what its last records were of */
	struct hb_rows names;  /* struct name, by string id */
	u32 n_names;	       /* after finish: the first ones, that have operations */
	struct tally *tally;   /* by row of names, until those are sorted */
	u32 n_tally, cap_tally;
	u32 *by_id; /* place in it + 1, by string id below n_by_id: those that were asked for */
	u32 *same;  /* by launch, once there are such: the one before it with its number, index + 1 */
	u32 n_by_id, n_same;
	u8 *probe_is; /* by probe: whether this call gives the device work, launches a graph */
	u32 n_probes;
	/* During finish: */
	u32 *first;		/* by launch: its first operation to begin, index + 1; 0: none */
	u32 *first_on;		/* the device of that; NULL: no process has more than one */
	u32 largest;		/* operations of the largest device */
	u64 *values;		/* room for each kernel, and for two of each operation of that device */
	struct hb_order *order; /* room for each operation of that device, when it is needed */
};

static inline struct hb_launch *launch_of(const struct hb_devices *d, const struct hb_device_op *o)
{
	return o->launch ? &d->launch[o->launch - 1] : NULL;
}

/* Of an operation with a launch: when that began. */
static inline u64 asked(const struct hb_devices *d, const struct hb_device_op *o)
{
	return o->after < UINT32_MAX ? o->begin - o->after : launch_of(d, o)->begin;
}

/* Gives an operation its launch (index + 1), and says of it what that tells. */
static inline void set_launch(const struct hb_devices *d, struct hb_device_op *o, u32 launch)
{
	static const struct hb_launch none;
	const struct hb_launch *l = launch ? &d->launch[launch - 1] : &none;
	u64 after = o->begin - l->begin;

	o->launch = launch;
	o->graph = l->graph;
	o->early = o->begin < l->begin;
	o->after = !o->early && after < UINT32_MAX ? (u32)after : UINT32_MAX;
}

/* Launches lie in the order in which calls ended. Where operations are gone through in theirs, those that are
 * looked at soon are fetched meanwhile. */
static inline void expect_launch(const struct hb_devices *d, const struct dev *v, u32 i)
{
	if (i + HB_FETCH_AHEAD < v->n_ops && v->ops[i + HB_FETCH_AHEAD].launch)
		__builtin_prefetch(&d->launch[v->ops[i + HB_FETCH_AHEAD].launch - 1]);
}

/* The next item of a growing array not set yet; NULL: out of memory, or 2^32 of them. */
void *hb_devices__push(void *array, u32 *n, u32 *cap, size_t size);

static inline u32 *hb_numbers__place(const struct numbers *n, u64 correlation)
{
	u64 at = correlation - n->base; /* beyond all of them when it is less than base */
	u64 i = at / NUMBERS_OF_BLOCK;

	return i < n->n_blocks && n->block[i] ? &n->block[i][at % NUMBERS_OF_BLOCK] : NULL;
}
/* Remembers launch i (index) by its number: mostly it has a place, which is free. 0 or -ENOMEM. */
int hb_numbers__add_other(struct hb_devices *d, struct numbers *n, u32 i);
static inline int hb_numbers__add(struct hb_devices *d, struct numbers *n, u64 correlation, u32 i)
{
	u32 *p = hb_numbers__place(n, correlation);

	if (!p || *p || n->sparse)
		return hb_numbers__add_other(d, n, i);
	n->calls++;
	*p = i + 1;
	return 0;
}
u32 hb_numbers__sparse(const struct numbers *n, u64 correlation);
/* The last call (index + 1) with a number; 0: none. */
static inline u32 hb_numbers__last(const struct numbers *n, u64 correlation)
{
	const u32 *p = hb_numbers__place(n, correlation);

	return p && *p ? *p : n->sparse ? hb_numbers__sparse(n, correlation) : 0;
}
/* Of the calls with one number, of which `first` is the last: that of an operation that began at `begin`. */
u32 hb_numbers__choose(const struct hb_devices *d, u32 first, u64 begin);
/* The call (index + 1) of an operation; 0: none. As a rule no other call has its number; if one comes, join()
 * looks again. */
static inline u32 hb_numbers__find(const struct hb_devices *d, const struct numbers *n, u64 correlation,
				   u64 begin)
{
	u32 first = correlation ? hb_numbers__last(n, correlation) : 0;

	return d->repeats ? hb_numbers__choose(d, first, begin) : first;
}
void hb_numbers__drop(void *row);
/* When all calls are known: those of operations that came before, or whose number occurs twice. */
void hb_devices__join(struct hb_devices *d, struct dev *v);

/* Sorts a device's operations by begin, says of each what its call tells, and counts. 0 or -ENOMEM. */
int hb_devices__sort(struct hb_devices *d, struct dev *v);
void hb_devices__link(struct hb_devices *d, struct dev *v);
/* What is left of one device, when all are linked: queue, delays, unions, gaps, copies. 0 or -ENOMEM. */
int hb_devices__time(struct hb_devices *d, struct dev *v);

struct depth {	     /* of a stream's queue */
	u64 since;   /* when it became full */
	u32 n, most; /* launched and not begun */
};

/* The queue of one device as time goes on, and what comes of each launch. */
struct queue {
	struct hb_devices *d;
	struct dev *v;
	const struct hb_order *by; /* operations by the begin of their call; NULL: they are in this order */
	u32 n, next;
	struct hb_device_op *launched; /* the next one that will be; NULL: none */
	u64 asked;		       /* when */
	u32 number;		       /* launch of the last one that was */
	bool empty;		       /* there was nothing in the queue when it was */
	u32 total;		       /* launched and not begun */
	struct depth *depth;	       /* the same by stream */
	u64 *length, *delay;	       /* one for each launch */
	u32 n_lengths, n_delays;
};
int hb_queue__init(struct queue *q, struct hb_devices *d, struct dev *v); /* 0 or -ENOMEM */
/* Operation i begins; to be told of each, in this order. */
void hb_queue__begin(struct queue *q, u32 i);
void hb_queue__finish(struct queue *q);
void hb_queue__free(struct queue *q);

/* Room for each operation of the largest device; NULL: out of memory. */
struct hb_order *hb_devices__room(struct hb_devices *d);

/* Copies of one device by direction. NULL: out of memory. */
struct copying *hb_copying__new(struct dev *v);
int hb_copying__add(struct copying *c, const struct hb_devices *d, const struct hb_device_op *o);
int hb_copying__finish(struct copying *c);
void hb_copying__free(struct copying *c);

/* Of a kernel's name, made when new; NULL: out of memory. It moves when another one is made. */
struct tally *hb_devices__new_name(struct hb_devices *d, u32 name);
static inline struct tally *hb_devices__name(struct hb_devices *d, u32 name)
{
	return name < d->n_by_id && d->by_id[name] ? &d->tally[d->by_id[name] - 1]
						   : hb_devices__new_name(d, name);
}
/* Kernels by name, over all devices: gives each name its part of d->values, and, when all durations are
 * there, says what they are like. */
void hb_devices__begin_names(struct hb_devices *d);
void hb_devices__end_names(struct hb_devices *d);

#endif
