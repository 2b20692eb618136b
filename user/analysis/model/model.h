/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What happened in a window, counted: one streaming pass over the records, then tables, each sorted by what
 * costs most first. Memory follows the number of different things seen, not the number of records.
 *
 * An operation is an outermost accelerator call: a driver call made inside a runtime call (flag INNER) has
 * its row in calls(), but is not counted again in classes and threads. Times are ns. "share" is a part of the
 * window's wall time, for ONE thread (the busiest): a call that holds its thread for the whole window has
 * share 1.
 */
#ifndef HB_MODEL_H
#define HB_MODEL_H

#include "analysis/model/hist.h"
#include "window/window.h"

struct hb_proc_stat {
	const struct hb_proc *info; /* NULL: not in the window's process table */
	const struct hb_task *main; /* its main thread; NULL unknown */
	u32 pid, idx;
	bool traced; /* a target; false: occurs as a waker only */
	u32 threads; /* that left records */
	bool forked, exited;
	u32 exit_code;		 /* as wait(2), when exited */
	u64 operations, call_ns; /* outermost accelerator calls */
	u64 cpu_ns, samples;	 /* from CPU samples */
	u64 offcpu_ns, ready_ns;
	u64 late_ns, late; /* longest unprobed stretch, number of stretches */
	u32 probes;	   /* attached */
};

struct hb_thread_stat {
	const struct hb_task *task; /* NULL: threads beyond the table */
	struct hb_proc_stat *proc;
	u64 records;
	u64 operations, call_ns, errors;
	u64 cpu_ns, samples;
	u64 sleeps, offcpu_ns; /* sleeps counts preemptions too */
	u64 ready_ns;	       /* runnable, waiting for a CPU */
	u64 syscalls;	       /* --syscalls all only */
};

struct hb_result { /* one result code of a call */
	s32 code;
	u64 count;
};
#define HB_RESULTS 6 /* distinct codes kept of one call */

/* Operations as people ask for them: eager launches and graph launches apart. */
enum hb_op {
	HB_OP_LAUNCH,
	HB_OP_GRAPH,
	HB_OP_GRAPH_BUILD, /* instantiate, update, upload */
	HB_OP_COPY,
	HB_OP_SYNC,
	HB_OP_ALLOC,
	HB_OP_COLLECTIVE,
	HB_OP_CAPTURE,
	HB_OP_EVENT,
	HB_OP_OTHER,
	HB_OP_COUNT,
};
const char *hb_op__name(enum hb_op op); /* "eager launch", "graph launch", "copy", ... */
/* What a call of this row of the probe table is. */
enum hb_op hb_op__of(const struct hb_window *w, const struct hb_probe_row *row);

struct hb_call_stat { /* one function in one process */
	struct hb_proc_stat *proc;
	const struct hb_probe_row *row; /* never NULL */
	u32 probe;
	enum hb_op op;
	u64 count, inner; /* all calls; of these inside a runtime call */
	u64 nested;	  /* driver calls counted inside these calls */
	u64 bytes;
	u64 results_known, errors; /* errors: known and not 0 */
	struct hb_result result[HB_RESULTS];
	u32 n_results;
	u64 results_other;  /* errors with codes beyond the table */
	struct hb_hist dur; /* timed calls only */
	u32 threads;	    /* that made it */
	u64 busiest_ns;	    /* time of the thread that spent most in it */
	const struct hb_task *busiest;
};

struct hb_class_stat { /* operations (outermost calls) of one class, all processes */
	enum hb_op op;
	u64 count, errors, bytes;
	struct hb_hist dur;
	u64 busiest_ns;
	const struct hb_task *busiest;
};

struct hb_sleep_stat { /* one system call sleeping on one kind of channel, in one process */
	struct hb_proc_stat *proc;
	u16 sysno;
	u8 chankind;
	u64 ready_ns;
	struct hb_hist dur;
	struct hb_rec_offcpu longest; /* with its channel and arguments: an example */
};

enum hb_reason { HB_OFF_SYSCALL, HB_OFF_LOCK, HB_OFF_FAULT, HB_OFF_PREEMPTED, HB_OFF_STOPPED, HB_OFF_COUNT };
const char *hb_reason__name(enum hb_reason r);

struct hb_waker_stat {		    /* who ended sleeps of one reason in one process */
	const struct hb_task *task; /* NULL: no thread to name (interrupt, idle, unknown) */
	struct hb_proc_stat *proc;  /* of the waker; NULL with task */
	u8 context;		    /* enum hb_wctx */
	u16 sysno;		    /* its own call */
	u64 count, slept_ns;
};

struct hb_lock_stat { /* one futex word of one process */
	struct hb_proc_stat *proc;
	u64 addr;
	u64 count, total_ns, max_ns;
};

#define HB_TOP_WAKERS 8
struct hb_reason_stat {
	struct hb_proc_stat *proc;
	enum hb_reason reason;
	u64 ready_ns, ready_max;
	struct hb_hist dur;
	const struct hb_waker_stat *waker[HB_TOP_WAKERS]; /* by slept_ns */
	u32 n_wakers;
};

struct hb_edge_stat { /* wake-ups from one traced process to a traced process (maybe itself) */
	struct hb_proc_stat *from, *to;
	u8 chankind;	 /* slept on */
	u16 sysno, wsys; /* the sleeper's call, the waker's call */
	u64 count, slept_ns, ready_ns;
	const struct hb_task *waker, *wakee; /* of the last one: an example */
};

struct hb_syscall_stat { /* --syscalls all */
	struct hb_proc_stat *proc;
	u16 sysno;
	u64 errors;
	struct hb_hist dur;
};

struct hb_func_stat {			/* a function in CPU samples */
	const struct hb_loc *loc;	/* one of its locations; NULL: no stack */
	u64 self_ns, total_ns, samples; /* samples: with the function innermost */
};

struct hb_kernel_stat { /* CPU time in kernel mode by system call */
	u16 sysno;
	u64 cpu_ns, samples;
};

enum hb_stack_use { HB_USE_SAMPLE, HB_USE_OFFCPU, HB_USE_ACCEL, HB_USE_COUNT };
struct hb_stack_stat { /* one chain of functions and what was spent there */
	enum hb_stack_use use;
	struct hb_proc_stat *proc;
	u32 raw, kraw; /* for hb_window__stack(): the first of these stacks; 0 = none */
	u64 count, ns;
};

struct hb_py_call_stat { /* one Python function in one process */
	struct hb_proc_stat *proc;
	const struct hb_loc *loc; /* NULL: functions that could not be read */
	u64 count;		  /* calls; stretches between two yields count each */
	u64 raised, yielded;	  /* ends of these kinds; of generators where that is seen */
	struct hb_hist dur;	  /* of those with a duration, what they call included */
};

struct hb_exception_stat { /* exceptions of one class from one place, in one process */
	struct hb_proc_stat *proc;
	hb_label name;
	u8 origin; /* 0 Python, 1 C++ */
	u32 site;  /* stack of the place alone */
	u64 count;
	u64 unwound; /* frames that all of them together went through without a handler */
};

struct hb_gil_stat { /* one thread's waits for one GIL */
	struct hb_thread_stat *thread;
	u64 gil;
	struct hb_hist wait;
	u64 handovers, handover_ns; /* after it gave the GIL away on request: until another had taken it */
};

struct hb_holder_stat { /* who held a GIL when others began to wait */
	struct hb_proc_stat *proc;
	const struct hb_task *task; /* NULL: unknown */
	u64 waits, waited_ns;	    /* of others */
	u64 longest_ns;
	u32 stack; /* where it was when the longest of these waits began; 0: not known */
};

struct hb_gc_stat { /* collections of one generation in one process */
	struct hb_proc_stat *proc;
	u32 generation; /* UINT32_MAX: not told */
	struct hb_hist dur;
};

struct hb_field_stat { /* a field of Python objects (--field), in one process */
	struct hb_proc_stat *proc;
	u32 field;			    /* string: as asked for */
	u64 count, numbers, texts;	    /* readings; of those: numbers and lengths, texts */
	u64 none, without, late;	    /* None; no value (missing, unreadable); read a moment later */
	double min, median, max, last, sum; /* of the numbers */
	u64 different;			    /* texts */
	double *value;			    /* inside: what the median is from */
	struct hb_map *distinct;
};
/* What a reading is as a number; false when it is none. */
bool hb_field__number(const struct hb_rec_py_field *r, double *out);

struct hb_price_stat {
	const struct hb_probe_row *row; /* NULL: the hook named by `hook` */
	u32 hook;
	bool targets; /* paid by the targets only: a table row, or a hook on Python */
	u64 hits, price, cost_ns;
};

struct hb_totals {
	u64 wall_ns; /* of the window */
	u64 records;
	u64 by_type[HB_TYPE_MAX];
	u64 cost_ns;	   /* sum of price records: probe_cost_ns + hook_cost_ns */
	u64 probe_cost_ns; /* of table rows: in the targets, hits x measured price */
	u64 hook_cost_ns;  /* of the tool's other programs: on the whole machine, as the kernel measured */
	u64 self_cpu_ns, self_rss; /* the tool's own; 0 unknown */
	bool self_split;	   /* the two below are known */
	u64 self_setup_ns;	   /* part of self_cpu_ns before the window */
	u64 self_window_ns;	   /* and inside it */
	int read_error;		   /* -errno of a read that ended the pass early, 0 none */
};

struct hb_model;

/* Reads all records (rewinds first). NULL: out of memory or a caller's mistake; a damaged window gives a
 * model of what there is. The window must stay open as long as the model. */
struct hb_model *hb_model__build(struct hb_window *w, struct hb_error *e);

/* Something else that wants to see each record in the same pass: reading a window twice costs as much again.
 * records(): the next ones. 0, or -ENOMEM, which ends the pass. */
struct hb_feed {
	int (*records)(void *ctx, const struct hb_records *b);
	void *ctx;
};
/* Reads all records of a window (rewinds first) for one feed. A read error ends the pass: what came before is
 * whole. 0, or what the feed said. */
int hb_feed__all(const struct hb_feed *f, struct hb_window *w);
/* The same, with n feeds that see records after the model. */
struct hb_model *hb_model__build_with(struct hb_window *w, const struct hb_feed *const *feeds, u32 n,
				      struct hb_error *e);
void hb_model__free(struct hb_model *m);

const struct hb_totals *hb_model__totals(const struct hb_model *m);
/* Notes of the tool, in order: i-th text (a string id), false at the end. */
bool hb_model__note(const struct hb_model *m, u32 i, u32 *text, u32 *level);

/* Tables. */
#define HB_MODEL_TABLE(name, type)                                                                           \
	const struct type *const *hb_model__##name(const struct hb_model *m, u32 *n)
HB_MODEL_TABLE(procs, hb_proc_stat);	 /* traced ones only, in order of pid */
HB_MODEL_TABLE(threads, hb_thread_stat); /* by process, then cpu_ns */
HB_MODEL_TABLE(calls, hb_call_stat);	 /* by process, then total time, then count */
HB_MODEL_TABLE(classes, hb_class_stat);	 /* by total time, then count */
HB_MODEL_TABLE(sleeps, hb_sleep_stat);
HB_MODEL_TABLE(locks, hb_lock_stat);
HB_MODEL_TABLE(reasons, hb_reason_stat);
HB_MODEL_TABLE(edges, hb_edge_stat); /* between two processes first, then by count */
HB_MODEL_TABLE(syscalls, hb_syscall_stat);
HB_MODEL_TABLE(funcs, hb_func_stat); /* by self_ns */
HB_MODEL_TABLE(kernel, hb_kernel_stat);
HB_MODEL_TABLE(stacks, hb_stack_stat); /* by ns, then count */
HB_MODEL_TABLE(prices, hb_price_stat);
HB_MODEL_TABLE(fields, hb_field_stat);	       /* in the order of asking */
HB_MODEL_TABLE(py_calls, hb_py_call_stat);     /* by total time, then count */
HB_MODEL_TABLE(exceptions, hb_exception_stat); /* by count */
HB_MODEL_TABLE(gils, hb_gil_stat);	       /* by time waited */
HB_MODEL_TABLE(holders, hb_holder_stat);       /* by time others waited */
HB_MODEL_TABLE(gcs, hb_gc_stat);	       /* by total time */

#endif
