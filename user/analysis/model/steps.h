/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Engine steps: which thread of a process dispatches work to the accelerator, and where one iteration ends
 * and the next begins. In this order: calls of an engine's step function (py_call records), annotations of an
 * imported trace; else the period between successive read-backs (small copies to the host, at the return of
 * whoever waited for them), waits, or graph launches from one place, whichever recurs once an iteration.
 * Calls and annotations between which the thread waits for the device are periods, too: from the begin of one
 * to that of the next. A process without steps says why. A period holds the wait for the next request, too:
 * hb_steps__leave_out() takes it off.
 */
#ifndef HB_STEPS_H
#define HB_STEPS_H

#include "analysis/model/timeline.h"
#include "base/intervals.h"

enum hb_step_source {
	HB_STEPS_NONE,
	HB_STEPS_PYCALL,   /* the step function's own calls */
	HB_STEPS_MARK,	   /* annotations in an imported trace */
	HB_STEPS_READBACK, /* copies to the host */
	HB_STEPS_SYNC,
	HB_STEPS_GRAPH,
	HB_STEPS_PYCALLS, /* from one call of the step function to the next, as the waiting is between them */
	HB_STEPS_MARKS,	  /* from one annotation to the next, for the same reason */
};
const char *hb_steps__source_name(enum hb_step_source s); /* "step function", "read-back", ... */

struct hb_step {
	u64 begin, end;
	u64 first_op,
	    last_op; /* begin of the first and end of the last call that gives the device work; 0 = none */
	u32 call, n_calls;    /* its calls: indices in the dispatch thread's array, by begin */
	u32 launches, graphs; /* eager, graph */
	u32 copies, syncs, allocs, collectives, others;
	u32 unsized, undirected; /* copies whose size, whose direction is not known */
	u64 copied_bytes, d2h_bytes;
	u64 wait_ns;			/* in calls that wait for the device: syncs and blocking copies */
	u64 api_ns;			/* in other timed calls */
	u64 run_ns, sleep_ns, ready_ns; /* of the dispatch thread; sum = end - begin */
	u64 pause_ns; /* before first_op: from the step's begin; all of it when there is no call */
};

struct hb_series { /* the steps of one dispatching process */
	u32 pid;
	u32 thread;   /* on which its steps begin and end */
	u32 dispatch; /* that gives the device most of its work: the same thread unless the steps are calls of
		       * a step function; HB_NONE: the process gives it none */
	u64 ops, all_ops;   /* calls that give the device work: of that thread, of the process */
	bool dispatch_sure; /* that thread makes at least 80 % of them */
	enum hb_step_source source;
	u32 loc;		    /* PYCALL: the step function (location id) */
	u32 site_probe, site_stack; /* else: the recurring call */
	const struct hb_step *step; /* in order of time, without overlap */
	u32 n;
	u64 unsized, undirected; /* copies in them whose size, whose direction is not known */
	u64 outside_ns;		 /* of the window before the first and after the last step, and between */
	u64 no_load_ns;		 /* of outside_ns: nothing was asked of the process; see hb_path__outside() */
	u64 p50, p95, p99, max, min, sum; /* of their lengths, ns; exact */
	char why[160];			  /* n == 0: why there are none; "" else */
};

struct hb_steps;

/* NULL with the error set: out of memory. */
struct hb_steps *hb_steps__build(const struct hb_timeline *tl, struct hb_error *e);
void hb_steps__free(struct hb_steps *s); /* NULL is fine */
u64 hb_steps__memory(const struct hb_steps *s);

/* Takes time without load (joined) off the steps of a process that are periods between recurring calls. Such
 * a step ends where the wait for the next request begins, and the next one begins where that ended: a step
 * holds what its thread did with the last tokens, none holds the wait. A wait inside of a step, between its
 * first and last piece of work, stays in it: a request was under way. All of `none` that lies in no step is
 * then the series's no_load_ns. 0 or -ENOMEM; the number of steps stays, unless one was nothing but such
 * time. */
int hb_steps__leave_out(struct hb_steps *s, u32 pid, const struct hb_ivs *none);

/* One for each process that gave a device work, and for each that has calls of a step function (an engine
 * core whose workers are other processes); most work first. */
u32 hb_steps__series(const struct hb_steps *s);
const struct hb_series *hb_steps__at(const struct hb_steps *s, u32 i);	     /* NULL: none */
const struct hb_series *hb_steps__of_pid(const struct hb_steps *s, u32 pid); /* NULL: none */
u32 hb_steps__row(const struct hb_steps *s, u32 pid);			     /* its number; HB_NONE */
/* NULL, or why there is no series at all ("no accelerator calls in this window", ..). */
const char *hb_steps__why_none(const struct hb_steps *s);

/* The step of a series that holds moment t; HB_NONE. */
u32 hb_series__find(const struct hb_series *s, u64 t);

#endif
