/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the devices of a window did: one timeline for each device of each process, its idle gaps with who is
 * to blame, launches joined with the work they started, kernels and copies by name and direction.
 *
 *   struct hb_devices *d = hb_devices__new(w, NULL, &e);
 *   const struct hb_feed *feeds[] = {hb_devices__feed(d)};
 *   struct hb_model *m = hb_model__build_with(w, feeds, 1, &e);   one pass for both
 *   hb_devices__finish(d, &e);
 *
 * Times are monotonic ns. All of it is in whole ns: compute + exposed comm + exposed memcpy + idle is the
 * span, to the ns. Without device records there are no devices (n = 0): nothing is known of what a device did
 * then, which is not the same as idle. See hb_devices__idle().
 *
 * Operation: a kernel, copy or memset. Launch: the accelerator call that has an operation's correlation
 * number; many operations for one launch of a graph. Launches without an operation are normal, operations
 * without a launch were launched before the window, or the call was lost.
 */
#ifndef HB_DEVICE_H
#define HB_DEVICE_H

#include "analysis/model/dist.h"
#include "analysis/model/model.h"
#include "base/intervals.h"

struct hb_devices;

/* ---- operations and launches ---- */

enum hb_work {			/* what an operation is for */
	       HB_WORK_COMPUTE, /* kernels that are nothing else, memsets */
	       HB_WORK_COMM,	/* kernels of collective libraries, and custom collectives */
	       HB_WORK_MEMCPY,	/* copies, also those that ROCm makes by a kernel */
	       HB_WORK_COUNT,
};
const char *hb_work__name(enum hb_work k); /* "compute", "communication", "memcpy" */
/* By the name of a kernel. */
enum hb_work hb_work__of_kernel(const char *name);
/* Length of a kernel's name without its template arguments and parameters. */
size_t hb_kernel__own_name(const char *name);

struct hb_device_op { /* 40 bytes: there are millions, and many walks over them */
	u64 begin, end;
	u64 size : 41;	  /* copy, memset: bytes; kernel: blocks of its grid, 0 not known */
	u64 threads : 11; /* of a kernel's block; 0 not known */
	u64 copy : 4;	  /* enum hb_copy */
	u64 src : 4;	  /* enum hb_memkind; of a memset the memory that is set */
	u64 dst : 4;
	u32 after;  /* ns after the begin of its call; UINT32_MAX: more, or before: ask hb_devices__asked() */
	u32 name;   /* string */
	u32 launch; /* index of hb_devices__launches() + 1; 0: none seen */
	u32 stream : 23; /* index of the device's streams */
	u32 kind : 2;	 /* enum hb_devkind: kernel, memcpy, memset */
	u32 work : 2;	 /* enum hb_work */
	u32 first : 1;	 /* of those that its call started the first to begin */
	u32 shared : 1;	 /* its call started others too */
	u32 graph : 1;	 /* its call is one of the class for graphs */
	u32 early : 1;	 /* it began before its call */
	u32 empty : 1;	 /* nothing was launched and not begun on its device when its call began */
};

struct hb_launch {	/* an accelerator call with a correlation number */
	u64 begin, end; /* equal when only its entry was seen: see timed */
	u64 correlation;
	u32 stack; /* for hb_window__stack(); 0 none */
	u16 task;  /* index of the window's tasks */
	u16 timed : 1;
	u16 inner : 1;	  /* made inside a runtime call */
	u16 graph : 1;	  /* of the class for graphs */
	u16 repeated : 1; /* its number occurs more than once */
};

/* ---- gaps ---- */

enum hb_gap_size {		 /* of the time between two stretches of work on a device */
		   HB_GAP_FLOOR, /* < 5 us: back to back */
		   HB_GAP_MICRO, /* 5 to 20 us */
		   HB_GAP_MACRO, /* from 20 us on */
		   HB_GAP_SIZES,
};
#define HB_GAP_MICRO_NS 5000
#define HB_GAP_MACRO_NS 20000
const char *hb_gap__size_name(enum hb_gap_size s); /* "floor", "micro", "macro" */

enum hb_gap_cause {
	HB_GAP_HOST, /* the call that launched the next operation began in the gap, or was still being made:
			the device had nothing to do */
	HB_GAP_DEP,  /* that call was done before: the operation waited for an event, its stream, a peer */
	HB_GAP_UNKNOWN, /* the next operation has no call in the window */
	HB_GAP_MISSING, /* by all signs the device was busy with what is not in the window (hb_device.missing)
			 */
	HB_GAP_CAUSES,
};
const char *hb_gap__cause_name(enum hb_gap_cause c); /* "host", "dependency", "unknown", "missing" */

struct hb_gap { /* micro and macro gaps; floor gaps are only counted */
	u64 begin, end;
	u64 host_end; /* [begin, host_end) is the host's; [host_end, end) is launch latency. = begin unless
			 HOST. It is the begin of the call; of one that began before the gap, or takes a
			 millisecond or more, its end */
	u32 next;     /* index of the operation that ended it */
	u8 size, cause;
};

struct hb_gap_sum { /* gaps of one size */
	u64 count, ns;
	u64 host_ns, tail_ns; /* of host gaps: until the call, and from there to the operation */
	u64 call_ns;	      /* host gaps whose call had begun before them: all of their time */
	u64 dep_ns, unknown_ns;
	u64 missing_ns; /* = ns - the five above */
};

/* ---- devices ---- */

struct hb_stream {
	u64 number; /* as the profiler counts them */
	u32 context;
	u64 ops, busy; /* busy: ns of all operations, overlaps counted once */
	u32 queue_max; /* most that was launched and not begun */
	u64 full_ns;   /* time with 1024 or more in the queue, where a launch blocks */
};

struct hb_copies {	   /* copies of one direction between two kinds of memory */
	u8 copy, src, dst; /* enum hb_copy, hb_memkind */
	bool by_kernel;	   /* a kernel did it: bytes and direction are not known */
	u64 bytes;
	struct hb_dist dur;
	u64 blocked_ns; /* time the host spent inside the calls */
	u64 until_done; /* copies whose call did not return before the copy had ended */
	u64 linked;	/* copies with a timed call, on which the two above rest */
};
static inline bool hb_copies__pageable(const struct hb_copies *c)
{
	return c->src == HB_MEMKIND_PAGEABLE || c->dst == HB_MEMKIND_PAGEABLE;
}

struct hb_device {
	u32 index, number; /* among hb_devices; as the profiler counts them in its process */
	u32 pid;
	const struct hb_task *main;	  /* main thread of that process; NULL unknown */
	u64 begin, end;			  /* first operation's begin, last one's end */
	u64 busy, compute, comm, memcpy;  /* unions over all streams */
	u64 exposed_comm, exposed_memcpy; /* comm beside compute; memcpy beside both */
	u64 idle;			  /* end - begin - busy */
	/* Time of idle that cannot be called so: the work that ended it was launched at once and began a
	 * millisecond or more after its call had returned, with nothing else in the queue. */
	u64 missing;
	u64 known; /* before this nothing is called idle: the first operation that was launched before the
		    * window had not ended. = begin when there is no such */
	struct hb_gap_sum gaps[HB_GAP_SIZES];
	const struct hb_gap *gap; /* in time; micro and macro */
	u32 n_gaps;
	const struct hb_device_op *op; /* by begin */
	u32 n_ops;
	u64 kernels, memcpys, memsets;
	u64 linked; /* operations with a call */
	u64 early;  /* operations that began before their call: clocks differ, or a number occurs twice */
	/* Of launches with an operation here: */
	u64 launches;
	struct hb_dist
	    delay; /* from the call's end to its first operation's begin, at least 0; timed calls */
	struct hb_dist
	    queue; /* launched and not begun, right after the launch: its own operations included */
	u64 empty; /* launches into an empty queue, apart from their own */
	/* Kernels that are the only operation of a timed call: */
	u64 eager, eager_short; /* all; shorter than their own call */
	u64 kernels_10us;	/* of all kernels: shorter than 10 us */
	const struct hb_stream *stream;
	u32 n_streams;
	const struct hb_copies *copies; /* by time */
	u32 n_copies;
	const struct hb_ivs *host_idle; /* host parts of micro and macro gaps: idle for want of a launch */
	const struct hb_ivs *not_known; /* gaps of cause missing, and those before `known` */
};

struct hb_kernel {  /* kernels of one name, all devices; others have a table of copies */
	u32 name;   /* string */
	u8 work;    /* enum hb_work */
	u64 blocks; /* of the largest grid; 0: of none known */
	struct hb_dist dur;
};

struct hb_devices_opts {
	bool linked_only; /* leave out operations without a call */
};

/* ---- building ---- */

/* `o` may be NULL. The window must stay open as long as the devices. NULL: out of memory. */
struct hb_devices *hb_devices__new(struct hb_window *w, const struct hb_devices_opts *o, struct hb_error *e);
void hb_devices__free(struct hb_devices *d);
/* Takes records, in any order. */
const struct hb_feed *hb_devices__feed(struct hb_devices *d);
/* After the last record; nothing below may be asked before. 0 or -ENOMEM. */
int hb_devices__finish(struct hb_devices *d, struct hb_error *e);
/* All of it in one call, in a pass of its own (it rewinds). */
struct hb_devices *hb_devices__build(struct hb_window *w, const struct hb_devices_opts *o,
				     struct hb_error *e);

/* ---- asking ---- */

/* The gap from `begin`, where all operations before number `next` of a device have ended, until that one
 * begins: also those that are too short to be kept. */
struct hb_gap hb_devices__gap(const struct hb_devices *d, const struct hb_device *v, u64 begin, u32 next);

/* Adds the times a device was busy to a set: the union of its operations. hb_ivs.oom says whether there was
 * room. */
void hb_device__active(const struct hb_device *v, struct hb_ivs *out);

u32 hb_devices__count(const struct hb_devices *d);
const struct hb_device *hb_devices__at(const struct hb_devices *d, u32 i); /* NULL beyond; by pid, number */
const struct hb_launch *hb_devices__launches(const struct hb_devices *d, u32 *n);
const struct hb_launch *hb_devices__launch_of(const struct hb_devices *d,
					      const struct hb_device_op *o); /* or NULL */
/* When its call began; 0: none seen. */
u64 hb_devices__asked(const struct hb_devices *d, const struct hb_device_op *o);
/* Has the call of an operation that will be asked for so many operations later fetched from memory. */
enum { HB_FETCH_AHEAD = 24 };
void hb_devices__fetch(const struct hb_devices *d, const struct hb_device_op *o);
const struct hb_kernel *const *hb_devices__kernels(const struct hb_devices *d, u32 *n); /* by total time */

struct hb_device_counts {
	u64 records;	   /* of the device, of all kinds */
	u64 syncs, others; /* waits for the device; what is no work of it */
	u64 left_out;	   /* operations without a call, with linked_only */
	u64 backward;	   /* operations that would have begun before time did: left out */
	u64 calls;	   /* outermost accelerator calls that give a device work, with or without a number */
	u64 numbered;	   /* of those: with a correlation number */
};
const struct hb_device_counts *hb_devices__counts(const struct hb_devices *d);

#endif
