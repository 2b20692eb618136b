/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Inside of a session. Two threads: the pump drains rings into the window; the control thread (the caller of
 * hb_session__run) follows processes, attaches probes, keeps time. They meet at three places only:
 * collect_lock around hb_collect calls, procs_lock around the process table, and the queue of lifecycle
 * events.
 */
#ifndef HB_SESSION_IMPL_H
#define HB_SESSION_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "base/map.h"
#include "capture/collect/collect.h"
#include "capture/cost/price.h"
#include "capture/python/python.h"
#include "capture/session/bpf.h"
#include "capture/session/mmap_events.h"
#include "capture/session/sampling.h"
#include "capture/session/session.h"
#include "capture/target/resolve.h"

struct proc_state {
	struct hb_process *p;
	bool live;
	u64 since;		  /* probed from then on, monotonic ns */
	u32 how;		  /* enum hb_how */
	u64 check_until;	  /* the arrival check runs until then; 0: none */
	struct hb_python *python; /* its interpreters; NULL: not looked for */
	u64 python_until;	  /* those that have not started up are waited for until then */
};

struct probed { /* probes attached to one file of one process */
	u32 pid, probes;
	u64 late;	  /* ns that it lived unprobed inside the window */
	const char *path; /* of the plan */
};

struct life_event { /* pump -> control */
	u64 ts;
	u32 pid, ppid;
	u16 type; /* HB_TYPE_process, exec, exit */
};

struct stack_key {
	u32 pid, raw;
};

struct hb_session {
	struct hb_session_opts o;
	char *path;
	u32 *pids; /* as resolved at the start */
	u32 n_pids;

	struct hb_target_lock *lock;
	struct hb_tables *tables;
	struct hb_plan *plan;
	struct hb_attach *attach;
	struct hb_bpf *bpf;
	struct hb_sampling *sampling;
	struct hb_mmap_events *mmaps;
	u64 mmaps_lost, mmaps_read; /* known to be lost; when they were read last */
	struct hb_window_writer *writer;
	struct hb_collect *collect;
	struct hb_resolve *resolve;
	struct hb_prices prices;

	pthread_mutex_t procs_lock;
	struct proc_state *procs;
	u32 n_procs, cap_procs, n_live;
	struct hb_map *by_pid; /* pid -> index + 1 in procs */
	struct probed *probed; /* told when the window begins */
	u32 n_probed;
	struct hb_error no_probe; /* before the window: the first reason why a file could not be probed */
	u32 n_remarks;		  /* on single processes */
	u32 rows_written;	  /* plan probes already in kernel and window */

	pthread_mutex_t collect_lock;
	pthread_t pump;
	bool pump_running;
	atomic_bool pump_stop;
	atomic_int pump_err;

	pthread_mutex_t queue_lock;
	struct life_event *queue;
	u32 n_queue, cap_queue;
	u32 life_lost; /* processes whose life was not heard of, for want of memory; with queue_lock */
	int queue_fd;  /* eventfd: queue not empty, or pump_err set */

	struct hb_fd_watch *fd_watch;
	struct hb_session_python *python;     /* NULL: --python off */
	struct hb_session_pyfields *pyfields; /* NULL: no fields of objects */
	struct hb_session_pycalls *pycalls;   /* NULL: no Python calls */
	struct hb_session_pyevents *pyevents;
	struct hb_session_pytasks *pytasks; /* NULL: --python off */

	struct stack_key *stacks; /* distinct stacks seen, appended by the pump under collect_lock */
	u32 n_stacks, cap_stacks;
	u64 named[UINT16_MAX + 1]; /* by task: time of the record its name is from */

	const volatile int *stop; /* the operator wants an end */
	u64 begin, end;		  /* of the window, monotonic ns */
	u64 cpu_at_begin;	  /* CPU this program had used when the window began, ns */
	u64 attach_ns, detach_ns;
	u64 syscall_extra;    /* ns that --syscalls all adds to any system call of a bystander */
	const char *ended_by; /* sentence for the window and the operator */
};

/* ---- follow.c: which processes, and probes in them ---- */

/* Takes a process into the session: reads it, plans, attaches. `born` is the time since which it ran unprobed
 * (0 for one present at the start). -ESRCH when it is already gone. */
int hb_session__follow(struct hb_session *s, u32 pid, enum hb_how how, u64 born, struct hb_error *e);
/* New mappings of a followed process: plan and attach what is new there. */
int hb_session__remap(struct hb_session *s, u32 pid, u64 since, struct hb_error *e);
/* Takes in those that came since the targets were looked for: before the window as if present then. */
void hb_session__adopt_strays(struct hb_session *s);
/* Fills the target set; the window begins. */
void hb_session__arm(struct hb_session *s);
/* Who is there and what is probed, as the first records of the file. */
void hb_session__introduce(struct hb_session *s);
/* What the pump queued. */
void hb_session__handle_life(struct hb_session *s);
/* Mapping events that are waiting. */
void hb_session__handle_mmaps(struct hb_session *s);
/* Notices targets whose exit record was lost. */
void hb_session__check_live(struct hb_session *s);
/* Subscribes to life, names, stacks. */
int hb_session__subscribe(struct hb_session *s);

/* Descriptors to the kernel and rows to the window for probes planned since the last call. */
int hb_session__publish_rows(struct hb_session *s, struct hb_error *e);
void hb_session__attach_files(struct hb_session *s, const struct hb_process *p,
			      const struct hb_plan_file *const *files, u32 n_files, u64 born);

/* ---- fds.c: what descriptors are ---- */

struct hb_fd_watch;
struct hb_fd_watch *hb_fd_watch__new(void);
void hb_fd_watch__free(struct hb_fd_watch *f);
int hb_fd_watch__subscribe(struct hb_session *s);
void hb_fd_watch__handle(struct hb_session *s); /* on the control thread */

/* One more remark on a single process; false when there were too many. */
bool hb_session__may_remark(struct hb_session *s);

/* ---- python.c ---- */

struct hb_session_python;
int hb_session_python__begin(struct hb_session *s); /* 0 or -ENOMEM */
void hb_session_python__free(struct hb_session *s);
/* Control thread: what interpreters a process has; again after an exec or a new library. */
void hb_session_python__look(struct hb_session *s, struct proc_state *ps);
void hb_session_python__fork(struct hb_session *s, u32 parent, u32 child); /* any thread */
void hb_session_python__tick(struct hb_session *s);
/* Once the window is over: which functions are no longer what they were called. */
void hb_session_python__last_look(struct hb_session *s);
int hb_session_python__subscribe(struct hb_session *s);
/* The window has begun: stacks of threads that sleep since before. */
void hb_session_python__edge(struct hb_session *s);
/* Pump: a stack id that is new. */
void hb_session_python__seen(struct hb_session *s, u32 pid, u32 raw);

/* Pump: how objects lie in the interpreter of a code object; false when that is none of a known one. */
struct hb_py_heap;
bool hb_session_python__heap(struct hb_session *s, u32 pid, u64 code, struct hb_py_heap *out);

/* Pump: how objects lie in a process's first interpreter, and the address of its _PyRuntime. */
bool hb_session_python__interpreter(struct hb_session *s, u32 pid, struct hb_py_heap *out, u64 *runtime);

struct hb_py_frame {
	u32 loc;
	bool entered; /* from C: what called it is a native frame */
};
/* At the end: frames of a Python stack, innermost first; at most HB_STACK_DEPTH. */
u32 hb_session_python__frames(struct hb_session *s, u32 pid, u32 python, struct hb_py_frame *out,
			      enum hb_stack_state *state);
void hb_session_python__account(struct hb_session *s);
/* Pump: the function of a code object, by a look at the process. `mark`: of struct hb_py_function;
 * 0 when it changed meanwhile. False: it cannot be read. */
bool hb_session_python__function(struct hb_session *s, u32 pid, u64 code, struct hb_py_place *out, u64 *mark,
				 bool *qualified);

/* ---- pyevents.c: exceptions, GIL, garbage collections ---- */

struct hb_session_pyevents;
int hb_session_pyevents__begin(struct hb_session *s, struct hb_error *e);
void hb_session_pyevents__free(struct hb_session *s);
/* Control thread: after hb_session_python__look(), and again when more is known of the process. */
void hb_session_pyevents__look(struct hb_session *s, struct proc_state *ps);
void hb_session_pyevents__forget(struct hb_session *s, u32 pid);
void hb_session_pyevents__tick(struct hb_session *s);
void hb_session_pyevents__detach(struct hb_session *s, u64 deadline);
/* Records of what was only counted; after the flow has ended. */
void hb_session_pyevents__account(struct hb_session *s);

/* ---- pytasks.c: names of asyncio's tasks ---- */

struct hb_session_pytasks;
int hb_session_pytasks__subscribe(struct hb_session *s); /* 0 or -ENOMEM */
/* Pump: after the rings were drained; `last`: nothing comes any more. */
void hb_session_pytasks__look(struct hb_session *s, bool last);
void hb_session_pytasks__account(struct hb_session *s);
void hb_session_pytasks__free(struct hb_session *s);

/* ---- pricing.c ---- */
int hb_session__measure_prices(struct hb_session *s); /* fills s->prices; 0 or -errno */

/* ---- arrival.c: do a runtime's launches arrive at the driver's exported function? (hb_plan__check) ---- */

int hb_arrival__begin(struct hb_session *s, struct proc_state *ps, struct hb_error *e);
/* Decides where enough was counted or the time is over; `force` at the end of the window. */
void hb_arrival__tick(struct hb_session *s, bool force);
/* Launches that only the check has seen, where it found that it had to record them: they are loss, exactly.
 */
void hb_arrival__account(struct hb_session *s);

/* ---- pump.c ---- */
int hb_pump__start(struct hb_session *s, struct hb_error *e);
void hb_pump__stop(struct hb_session *s); /* joins, drains what is left; idempotent */
/* One of our own records, from any thread. */
void hb_session__emit(struct hb_session *s, unsigned type, u32 pid, u32 tid, u64 ts, const void *payload);
void hb_session__note(struct hb_session *s, enum hb_notelevel level, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- finish.c ---- */
void hb_session__describe(struct hb_session *s);    /* meta facts and notes at the start */
void hb_session__window_over(struct hb_session *s); /* own CPU so far, at once after the window's end */
void hb_session__account(struct hb_session *s);	    /* loss, receipt, own cost, at the end */

/* ---- merge.c: one stack of two ---- */

struct hb_native_frame {
	u32 loc;
	bool eval;	  /* the interpreter's loop: it stands for Python frames */
	bool interpreter; /* in the interpreter's own file */
	bool nowhere;	  /* in no file: code made at run time, or no code at all */
};
/* Native and Python frames, innermost first, into locations, outermost first; the number, at most `max`. */
u32 hb_session__merge(const struct hb_native_frame *native, u32 n_native, const struct hb_py_frame *python,
		      u32 n_python, u32 *locs, u32 max);

/* ---- names.c ---- */
/* Names and locations for all stacks seen, until the deadline. The flow has ended: rings are closed here. */
void hb_session__resolve_stacks(struct hb_session *s, u64 deadline);

#endif
