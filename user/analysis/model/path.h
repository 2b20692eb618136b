/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The critical path of engine steps, by a backward walk that charges every nanosecond once.
 *
 * From the end of a step, on its dispatch thread: a running stretch is charged to the thread; a sleep that
 * another thread ended sends the walk to that thread at the waking time (its runnable part is charged to the
 * scheduler); a message that it spun for in shared memory sends it to who put it there (queue.h); a sleep
 * that no thread ended is charged to what ended it; a wait for the device is charged to the device: all of
 * it, or, with device records, back over pieces of work to the launch that came too late, where the walk goes
 * on at who launched. It stops at the step's begin. So the segments of a step tile it: their lengths sum to
 * the step's.
 */
#ifndef HB_PATH_H
#define HB_PATH_H

#include "analysis/model/busy.h"
#include "analysis/model/collective.h"
#include "analysis/model/device.h"
#include "analysis/model/wake.h"

enum hb_seg_kind {
	HB_SEG_RUN,    /* on a CPU, outside of accelerator calls */
	HB_SEG_API,    /* inside an accelerator call that does not wait for the device */
	HB_SEG_DEVICE, /* waiting for the device in a call */
	HB_SEG_SCHED,  /* runnable, without a CPU */
	HB_SEG_GC,     /* on a CPU, in a garbage collection */
	HB_SEG_TIMER,  /* its own time-out or sleep */
	HB_SEG_NET,
	HB_SEG_DISK,
	HB_SEG_STOPPED, /* by a signal or debugger */
	HB_SEG_OTHER,	/* waiting for a thread or process that is not traced */
	HB_SEG_UNKNOWN, /* asleep, and what ended it was not seen */
	HB_SEG_OUTSIDE, /* the walk came to the window's begin, or to where a thread left no records */
	HB_SEG_KINDS,
};
const char *hb_seg__name(enum hb_seg_kind k); /* "run", "accelerator call", "device", "scheduler", ... */

struct hb_seg { /* 32 bytes: there are as many as records */
	u64 begin, end;
	u16 thread; /* whose time this is: there are no more threads than tasks */
	u8 kind;    /* enum hb_seg_kind */
	u8 pad;
	u32 item; /* index of the call (API, DEVICE), collection (GC) or sleep (the others but RUN); HB_NONE
		   */
	u32 via_thread, via; /* the sleep (thread, index) through which the walk came here; HB_NONE: on the
			      * dispatch thread without a jump, or (via) over the device or a message */
};
_Static_assert(sizeof(struct hb_seg) == 32, "");

struct hb_path;

/* Walks all steps of all series; with devices (NULL: none) through their work, and from a collective that
 * waited to the rank that came last (`coll` NULL: none). Where a process has none its dispatch thread is
 * walked over the whole window, as one stretch. NULL with the error set: out of memory. All parts must live
 * as long. */
struct hb_path *hb_path__build(const struct hb_timeline *tl, const struct hb_wake *wk,
			       const struct hb_steps *steps, const struct hb_busy *busy,
			       const struct hb_devices *d, const struct hb_collectives *coll,
			       struct hb_error *e);
void hb_path__free(struct hb_path *p); /* NULL is fine */
u64 hb_path__memory(const struct hb_path *p);

/* Segments of a process's steps in order of time; *n. They tile its steps (or the window, see above). */
const struct hb_seg *hb_path__segs(const struct hb_path *p, u32 pid, u32 *n);
/* Those of [begin, end): *first index, returns how many touch it. */
u32 hb_path__range(const struct hb_path *p, u32 pid, u64 begin, u64 end, u32 *first);
/* ns of [begin, end) by kind: sum[HB_SEG_KINDS]. */
void hb_path__sum(const struct hb_path *p, u32 pid, u64 begin, u64 end, u64 *sum);

/* Adds the times in which a process's path led out of all that is traced: in the event loop of a topmost
 * traced process (or its wait for a connection), or in its wait for its parent, until data came from a
 * process or machine that is not traced. Nothing was asked of the engine then, or the answer of a service was
 * awaited: nobody here can tell. hb_ivs.oom says whether there was room; joined. */
void hb_path__outside(const struct hb_path *p, u32 pid, struct hb_ivs *out);

/* Takes those times off the steps it was built with (hb_steps__leave_out): its segments then tile what is
 * left of them. 0 or -ENOMEM with the error set. */
int hb_path__leave_out(struct hb_path *p, struct hb_steps *steps, struct hb_error *e);

/* One walk by itself, without devices, from (thread, end) back to begin. Segments in order of time in a new
 * array (free() it); -ENOMEM or their number. */
int hb_path__walk(const struct hb_timeline *tl, const struct hb_wake *wk, u32 thread, u64 begin, u64 end,
		  struct hb_seg **out);

/* What an interval of a thread exposes: its part on the path of a dispatching process while that one's device
 * is (or may be) idle. On a dispatch thread itself: all of it that is device-idle. The largest of all
 * dispatching processes, which *pid (may be NULL) names; 0 none. */
struct hb_range hb_path__exposed(const struct hb_path *p, u32 thread, u64 begin, u64 end, u32 *pid);

/* ---- what if ---- */

struct hb_shrink { /* this interval of a thread would have taken `keep` thousandths of its time */
	u32 thread;
	u32 keep; /* 0..1000 */
	u64 begin, end;
};
/* How much earlier `thread` would have come to `end`, everything since `begin` replayed with the same order
 * of wake-ups: running takes as long as it did (less what is shrunk), a wait ends when its waker comes there,
 * timers and the network take as long as they did. Waits for the device end either as if the device had been
 * given all its work at the first submission since it was known to be idle (min), or as if it had waited for
 * the last one (max). `likely`: at the first since it was probably idle. Intervals must be sorted by thread
 * and begin, without overlap. 0 or -ENOMEM. */
int hb_path__what_if(const struct hb_path *p, u32 thread, u64 begin, u64 end, const struct hb_shrink *x,
		     u32 n, struct hb_range *gain);

#endif
