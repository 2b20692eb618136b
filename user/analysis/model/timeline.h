/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What each thread did, in the order of time: one pass over a window gives compact arrays of intervals, one
 * for each thread and kind, sorted by begin (an outer interval before what lies inside of it).
 *
 * Times are monotonic ns as in the window. Threads are numbered densely from 0: those that left records, and
 * no others; HB_NONE is "no such thread", "no such interval". Everything handed out lives until
 * hb_timeline__free(). To be asked by one thread at a time. Memory is bounded by the records:
 * hb_timeline__memory().
 */
#ifndef HB_TIMELINE_H
#define HB_TIMELINE_H

#include "analysis/model/model.h"

#define HB_NONE UINT32_MAX

/* Each kind of interval begins with these three. `outer`: the innermost interval of the same kind and thread
 * that was still open when this one began (it need not contain all of it); HB_NONE. Index into the same
 * array. */
struct hb_span {
	u64 begin, end; /* half open; begin == end for a moment */
	u32 outer;
	u32 stack; /* 0 = none; with the thread's pid for hb_window__stack() */
};

struct hb_tl_call { /* accelerator call */
	struct hb_span at;
	u64 bytes;	 /* of a collective elements; 0 of a copy: not known */
	u64 correlation; /* as in device records; 0 = not known */
	u32 callee;	 /* see hb_timeline__callee() */
	u8 op;		 /* enum hb_op */
	u8 flags;	 /* enum hb_aflag; without TIMED and begin == end: only the entry was seen */
	u8 copy : 4;	 /* enum hb_copy: direction, from kind, the function's name or the device's record */
	u8 waited : 1;	 /* see hb_call__waited() */
	u8 told : 1;	 /* `bytes` is from the device's record */
	u8 failed : 1;	 /* with HB_AFLAG_RET in flags: what it returned was not 0 */
	u8 pad;
};

/* What a thread called, and on what: of few kinds, many times. */
struct hb_tl_callee {
	u64 stream;
	u64 handle; /* of a launch: a number for each function (or graph) and grid */
	u32 probe;
	u8 kind; /* as the API numbers it */
	u8 pad[3];
};

struct hb_tl_sleep { /* off the CPU */
	struct hb_span at;
	u64 ready; /* last part of it, ns: runnable. Of a preemption all of it */
	u32 place; /* see hb_timeline__place() */
	u32 waker; /* tid as recorded */
	u32 ran;   /* tid of who had the CPU while it was runnable; 0 not known */
	u16 sysno;
	u16 state : 4, wctx : 4, chankind : 4; /* 15: a word that this program does not know */
	u16 flags : 4;			       /* HB_OFFCPU_* */
};

/* What a thread slept on, and with which arguments of its call: threads sleep in few places, many times. */
struct hb_tl_place {
	u64 chan, local, peer, a0, a1;
};

struct hb_tl_gil { /* wait for a GIL */
	struct hb_span at;
	u64 slept, gil;
	u32 holder; /* thread index of who held it when the wait began; HB_NONE unknown */
	u32 holder_stack;
	u16 sleeps;
	u8 handover, flags;
	u32 pad;
};

struct hb_tl_gc { /* garbage collection */
	struct hb_span at;
	u32 generation; /* UINT32_MAX: not told */
	u8 how, pad[3];
};

struct hb_tl_pycall { /* call of a Python function that was asked for */
	struct hb_span at;
	u64 code;
	u32 func;      /* location id; 0 = it could not be read */
	u8 end, flags; /* enum hb_pyend, enum hb_pyflag */
	u8 pad[2];
};

struct hb_tl_sample { /* a moment on a CPU */
	struct hb_span at;
	u64 weight;
	u32 kstack;
	u16 sysno;
	u8 mode, cpu;
};

struct hb_tl_syscall { /* --syscalls all only */
	struct hb_span at;
	s64 ret;
	u64 a0, a1, a2;
	u16 sysno, pad[3];
};

struct hb_tl_raise { /* exception, or the rest of its kind in one record */
	struct hb_span at;
	u64 exc_type, count, unwound;
	u32 site;
	u8 origin, flags, pad[2];
};

struct hb_tl_op {	   /* span of an imported trace: operator or annotation */
	struct hb_span at; /* stack: always 0 */
	u64 external, seq;
	u32 name, shapes, types; /* strings */
	u32 values;		 /* string: of a collective what it says of itself; 0 none */
	u8 kind, pad[7];	 /* enum hb_opkind; those of the device are left out */
};

struct hb_tl_devwait {	     /* a wait for the device as its profiler tells it: of a stream, or of the host */
	struct hb_span at;   /* stack: always 0 */
	u64 correlation;     /* of the call that made it; 0 = not known */
	u64 waits;	     /* of the call that recorded the event waited for; 0 = no event, or not known */
	u64 stream;	     /* that waits, or is waited for */
	u32 device, wstream; /* wstream: where the event was recorded; UINT32_MAX not known */
	u8 sync, pad[7];     /* enum hb_synckind */
};

/* L(KIND, accessor, type, record): all lists. Append. */
#define HB_TL_LISTS(L)                                                                                       \
	L(CALL, calls, hb_tl_call, accel)                                                                    \
	L(SLEEP, sleeps, hb_tl_sleep, offcpu)                                                                \
	L(GIL, gils, hb_tl_gil, py_gil)                                                                      \
	L(GC, gcs, hb_tl_gc, py_gc)                                                                          \
	L(PYCALL, pycalls, hb_tl_pycall, py_call)                                                            \
	L(SAMPLE, samples, hb_tl_sample, sample)                                                             \
	L(SYSCALL, syscalls, hb_tl_syscall, syscall)                                                         \
	L(RAISE, raises, hb_tl_raise, py_exception)                                                          \
	L(OP, ops, hb_tl_op, op)                                                                             \
	L(DEVWAIT, devwaits, hb_tl_devwait, device)

#define HB_TL_ENUM(KIND, name, type, record) HB_TL_##KIND,
enum hb_tl_kind { HB_TL_LISTS(HB_TL_ENUM) HB_TL_KINDS };

struct hb_tl_thread {
	const struct hb_task *task; /* never NULL */
	u32 pid;
	u64 born, died; /* monotonic ns inside the window; 0 = was there before, still there after */
	/* Of its accelerator calls: */
	u32 by_op[HB_OP_COUNT]; /* all, by enum hb_op */
	u32 works;		/* those that give the device work, see hb_call__is_work() */
	u32 collectives;	/* outside of runtime calls, that name their communicator */
};

struct hb_timeline;

/* One pass with others (hb_model__build_with): new, feed, finish. Nothing may be asked before finish. NULL
 * with the error set: out of memory. The window must stay open as long as the timeline. */
struct hb_timeline *hb_timeline__new(struct hb_window *w, struct hb_error *e);
const struct hb_feed *hb_timeline__feed(struct hb_timeline *tl);
/* 0 or -ENOMEM with the error set. */
int hb_timeline__finish(struct hb_timeline *tl, struct hb_error *e);
/* All of it, in a pass of its own (rewinds first). A damaged window gives what there is. */
struct hb_timeline *hb_timeline__build(struct hb_window *w, struct hb_error *e);
struct hb_devices;
/* After finish, and before anything else is built of it: what calls do not say of the copies they made, their
 * direction and size, is taken from the records of finished devices (profilers' calls say neither). */
void hb_timeline__use_devices(struct hb_timeline *tl, const struct hb_devices *d);
void hb_timeline__free(struct hb_timeline *tl); /* NULL is fine */

struct hb_window *hb_timeline__window(const struct hb_timeline *tl);
/* Begin and end of the window; of one without an end: of its records. */
u64 hb_timeline__start(const struct hb_timeline *tl);
u64 hb_timeline__end(const struct hb_timeline *tl);
/* Bytes held, and the records they stand for (at most 200 bytes each, plus a fixed part for each thread). */
u64 hb_timeline__memory(const struct hb_timeline *tl, u64 *records);
/* How many records of this kind there are in all threads: 0 = what needs them cannot be told. */
u64 hb_timeline__count(const struct hb_timeline *tl, enum hb_tl_kind kind);

u32 hb_timeline__threads(const struct hb_timeline *tl);
const struct hb_tl_thread *hb_timeline__thread(const struct hb_timeline *tl, u32 thread);
/* By tid in the initial namespace; HB_NONE: left no records. */
u32 hb_timeline__by_tid(const struct hb_timeline *tl, u32 tid);
/* The same, by index of the window's tasks. */
u32 hb_timeline__by_task(const struct hb_timeline *tl, u16 task);
/* The next thread of a process after `prev` (HB_NONE: the first), in order of index; HB_NONE at the end. */
u32 hb_timeline__of_pid(const struct hb_timeline *tl, u32 pid, u32 prev);

/* The sorted array of one thread: hb_timeline__calls(tl, thread, &n), hb_timeline__sleeps(..) ... Never NULL
 * when *n > 0. */
#define HB_TL_ACCESSOR(KIND, name, type, record)                                                             \
	const struct type *hb_timeline__##name(const struct hb_timeline *tl, u32 thread, u32 *n);
HB_TL_LISTS(HB_TL_ACCESSOR)

/* The innermost interval of that kind which holds moment t (begin <= t < end); HB_NONE. For sleeps at an end:
 * ask for t - 1. O(log n + depth). */
u32 hb_timeline__at(const struct hb_timeline *tl, u32 thread, enum hb_tl_kind kind, u64 t);
/* Index of the first one that begins at or after t; n when there is none. */
u32 hb_timeline__from(const struct hb_timeline *tl, u32 thread, enum hb_tl_kind kind, u64 t);
/* The interval itself, whatever its kind. */
const struct hb_span *hb_timeline__span(const struct hb_timeline *tl, u32 thread, enum hb_tl_kind kind,
					u32 i);

/* Where it slept; never NULL. */
const struct hb_tl_place *hb_timeline__place(const struct hb_timeline *tl, const struct hb_tl_sleep *s);
/* What was called; never NULL. */
const struct hb_tl_callee *hb_timeline__callee(const struct hb_timeline *tl, const struct hb_tl_call *c);
/* When it was woken: the end less the runnable part; the begin of a preemption. */
static inline u64 hb_sleep__woken(const struct hb_tl_sleep *s)
{
	return s->at.end - s->ready;
}

/* ns of [begin, end) that the thread was on a CPU, slept, and was runnable without one. Sum = end - begin.
 * Without scheduler records all of it counts as on a CPU: ask hb_timeline__count(tl, HB_TL_SLEEP) first. */
struct hb_use {
	u64 running, slept, ready;
};
struct hb_use hb_timeline__use(const struct hb_timeline *tl, u32 thread, u64 begin, u64 end);

/* ---- accelerator calls ---- */

/* True for an outermost call that gives the device work: launch, graph launch, copy, collective. */
static inline bool hb_call__is_work(const struct hb_tl_call *c)
{
	return (c->op == HB_OP_LAUNCH || c->op == HB_OP_GRAPH || c->op == HB_OP_COPY ||
		c->op == HB_OP_COLLECTIVE) &&
	       !(c->flags & HB_AFLAG_INNER) && c->at.outer == HB_NONE;
}
/* True for any outermost synchronisation, however short. */
static inline bool hb_call__is_sync(const struct hb_tl_call *c)
{
	return c->op == HB_OP_SYNC && !(c->flags & HB_AFLAG_INNER) && c->at.outer == HB_NONE;
}
/* True for an outermost call that waited for the device: a synchronisation of 5 us or more, or a copy to the
 * host (or of unknown direction) of 50 us or more, without the time in which its thread was runnable and had
 * no CPU. Shorter ones found it done, or did not wait. */
static inline bool hb_call__waited(const struct hb_tl_call *c)
{
	return c->waited;
}
/* True for a copy of known size. That of one in the device's own memory does not matter. */
static inline bool hb_call__sized(const struct hb_tl_call *c)
{
	return c->bytes || c->copy == HB_COPY_DTOD;
}
/* When the device was done with what a waiting call (index) waited for, as far as its thread tells: the
 * call's end; the waking before it, when the thread then had to wait for a CPU; the begin of a preemption
 * that lasted to the end, with *sure (may be NULL) false: it may have been done any time since. */
u64 hb_call__done(const struct hb_timeline *tl, u32 thread, u32 call, bool *sure);

/* ns that [a, b) and [c, d) share. */
static inline u64 hb_overlap(u64 a, u64 b, u64 c, u64 d)
{
	u64 from = a > c ? a : c, to = b < d ? b : d;

	return to > from ? to - from : 0;
}

#endif
