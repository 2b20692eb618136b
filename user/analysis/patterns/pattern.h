/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * For the files of this folder that each hold one pattern: what a detector may ask, and how it tells.
 *
 * detect() looks at one subject after the other (a dispatching process, a lock, a device). For each it goes
 * through the conditions of its rule: the first that fails ends the subject (`if (!hb_look__at_least(l,
 * SHARE, x)) continue;`), and when no subject passes them all, the one that came farthest is what "ruled out"
 * shows. One that passes opens a finding and adds its occurrences; what they exposed, the gate, precedence
 * and order are the framework's.
 */
#ifndef HB_PATTERN_H
#define HB_PATTERN_H

#include "analysis/model/device.h"
#include "analysis/model/host.h"
#include "analysis/model/roofline.h"
#include "analysis/patterns/byop.h"
#include "analysis/patterns/patterns.h"
#include "base/map.h"

/* What all detectors look at. */
struct hb_scene {
	struct hb_window *w;
	const struct hb_model *m;
	const struct hb_timeline *tl;
	const struct hb_wake *wk;
	const struct hb_steps *steps;
	const struct hb_path *path;
	const struct hb_busy *busy;
	const struct hb_collectives *coll;
	const struct hb_devices *dev;	    /* NULL: none */
	const struct hb_roofline *roofline; /* NULL: none */
	u64 start, end, wall;		    /* of the window; wall is never 0 */
	u64 active;			    /* of it, with work: hb_findings__active() */
	u64 present;			    /* HB_NEED_* that the window has */
	struct hb_exposure *exposure;	    /* inside */
	struct hb_byop *byop;		    /* calls by what they are: byop.h */
	struct hb_sames *same;		    /* inside: see same.h */
	struct hb_frame_pick *pick;	    /* inside: which frame of a stack is the operator */
	struct hb_map *matches;		    /* inside: what rules say of locations; NULL: nothing is kept */
};

/* ---- exposed time ---- */

struct hb_sets {		     /* idle time that a thread is to blame for; parts that do not overlap */
	struct hb_ivs sure;	     /* known */
	struct hb_ivs likely, maybe; /* beyond it: what likely was idle too; what may have been */
	bool tidy;		     /* inside: in order as it came */
};
/* Of one thread; never NULL. On a dispatch thread: all idle time of its device. */
const struct hb_sets *hb_scene__exposed(const struct hb_scene *s, u32 thread);
static inline bool hb_sets__any(const struct hb_sets *s)
{
	return s->sure.n || s->likely.n || s->maybe.n;
}
/* What of [begin, end) is known or likely. */
u64 hb_sets__likely(const struct hb_sets *s, u64 begin, u64 end);
/* Both of them as one set; `out` is empty. 0 or -ENOMEM. */
int hb_sets__all_likely(const struct hb_sets *s, struct hb_ivs *out);
/* True when waits for this thread, or its own time, are on the way to a launch anywhere in the window. */
bool hb_scene__leads(const struct hb_scene *s, u32 thread);

/* ---- telling ---- */

/* What a look keeps of conditions, findings; run.c. */
struct hb_look {
	const struct hb_scene *s;
	const struct hb_pattern *p;
	const struct hb_thresholds *t;
	struct hb_findings *out;
	struct hb_measure measure[HB_MEASURES];
	u32 n;
	struct hb_ruled_out best; /* nearest miss */
	u32 best_n;		  /* conditions that one passed */
	u64 best_part;		  /* millionths of the threshold that it reached */
	bool any;		  /* there is a nearest miss */
	u32 found;
	struct hb_not_checked unchecked;
	bool is_unchecked;
};

/* Threshold number i of the pattern. */
u64 hb_look__param(const struct hb_look *l, u32 i);
/* A new subject: forgets the conditions of the last one. */
void hb_look__subject(struct hb_look *l);
/* A condition of the rule: true when fulfilled. */
bool hb_look__at_least(struct hb_look *l, u32 i, u64 value);
bool hb_look__at_most(struct hb_look *l, u32 i, u64 value);
/* Either of two: the first when it holds, else the second. */
bool hb_look__either(struct hb_look *l, u32 i, u64 value, u32 j, u64 other);

/* Calls `one` for each subject of a kind until it returns an error, which is returned: threads that lead to a
 * launch; traced processes; processes that give a device work, with their steps; devices. */
int hb_look__threads(struct hb_look *l, int (*one)(struct hb_look *l, u32 thread));
int hb_look__procs(struct hb_look *l, int (*one)(struct hb_look *l, const struct hb_proc_stat *p));
int hb_look__series(struct hb_look *l, int (*one)(struct hb_look *l, const struct hb_series *p));
int hb_look__devices(struct hb_look *l, int (*one)(struct hb_look *l, const struct hb_device *d));

/* Not checked after all: "needs steps: ...". */
void hb_look__unchecked(struct hb_look *l, u64 needs, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Says in words what the subject was, for "ruled out". */
void hb_look__note(struct hb_look *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

struct hb_case {
	u64 begin, end;
	u32 thread;  /* of the timeline; HB_NONE */
	u32 stack;   /* 0: none */
	u32 ran;     /* location of the function that the thread was in; 0: not known */
	bool launch; /* `stack` is of the launch that ended it */
	const struct hb_task *waker;
	u32 waker_stack;
	u32 slept;   /* 0; or `waker` is who ended that sleep of the thread: index + 1 */
	u64 weight;  /* a CPU sample at `begin` that stands for so much time; 0: an interval */
	u64 count;   /* occurrences that it stands for; 0: one */
	bool unsure; /* of a sample: it may or may not be one */
};

/* An opened finding, with the conditions measured so far. NULL: out of memory. */
struct hb_draft *hb_look__find(struct hb_look *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* An occurrence: exposed is what of it the thread is to blame for. 0 or -ENOMEM. */
int hb_draft__add(struct hb_draft *d, const struct hb_case *c);
/* The same with its idle time told by the caller: what of it lies in these sets. NULL: none for sure, maybe
 * all of it. Or: all of it may be in either part.
 */
int hb_draft__add_idle(struct hb_draft *d, const struct hb_case *c, const struct hb_ivs *sure,
		       const struct hb_ivs *maybe);
int hb_draft__add_sets(struct hb_draft *d, const struct hb_case *c, const struct hb_sets *idle);
/* An occurrence that delays requests, whatever the device does. */
int hb_draft__add_delay(struct hb_draft *d, const struct hb_case *c);
/* One by which the same work took longer: requests are late by it, and the device idles for as long. Where
 * devices are recorded it is no longer than what of it they idled. */
int hb_draft__add_slower(struct hb_draft *d, const struct hb_case *c);
/* One that costs device time: so much could be saved. */
int hb_draft__add_device(struct hb_draft *d, const struct hb_case *c, u64 saved);
/* All executions of a row of the roofline on a device, of which what lies beyond light could be saved. */
int hb_draft__add_work(struct hb_draft *d, const struct hb_device *v, const struct hb_roof_row *r);
/* Adds to the sentence. */
void hb_draft__say(struct hb_draft *d, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void hb_draft__pid(struct hb_draft *d, u32 pid);
/* Its rule is its gate: what it costs is not known. */
void hb_draft__pass(struct hb_draft *d);
void hb_draft__device(struct hb_draft *d, u32 device);
/* No more than this, and why: "without device records". `why` is static text. */
void hb_draft__confidence(struct hb_draft *d, enum hb_confidence at_most, const char *why);

/* ---- what several detectors ask ---- */

/* Task of a thread of the timeline; NULL for HB_NONE. */
const struct hb_task *hb_scene__task(const struct hb_scene *s, u32 thread);
/* What of [begin, end) a thread likely exposed. */
u64 hb_scene__likely(const struct hb_scene *s, u32 thread, u64 begin, u64 end);
/* Length of a process's steps together; where it has none, of the window. Never 0. */
u64 hb_scene__step_time(const struct hb_scene *s, u32 pid);

/* Multiprocessors of a device (its number), as the window says; 0 not known. */
u32 hb_scene__multiprocessors(const struct hb_scene *s, u32 device);

/* Index of a thread's first call that gives the device work and begins at or after t; the number of its calls
 * when there is none. */
u32 hb_scene__next_work(const struct hb_scene *s, u32 thread, u64 t);
/* Begin of that call; the window's end when there is none. */
u64 hb_scene__next_work_at(const struct hb_scene *s, u32 thread, u64 t);
/* The name of a call's function. */
const char *hb_scene__call_name(const struct hb_scene *s, const struct hb_tl_call *c);
/* A process from which another descends. */
bool hb_scene__ancestor(const struct hb_scene *s, u32 pid, u32 of);

/* Is a string (id) like one of these globs, which end with NULL? Names are long and few: `seen` keeps what
 * was said of each; out of memory only makes it slower. */
struct hb_named {
	u8 *is; /* by id: 0 not asked yet, 1 no, 2 yes */
	u32 n;
};
void hb_named__free(struct hb_named *seen);
bool hb_named__look(const struct hb_scene *s, u32 name, const char *const *globs, struct hb_named *seen);
static inline bool hb_scene__named(const struct hb_scene *s, u32 name, const char *const *globs,
				   struct hb_named *seen)
{
	return name < seen->n && seen->is[name] ? seen->is[name] == 2 : hb_named__look(s, name, globs, seen);
}
/* The same of the name of a call's function. */
bool hb_scene__called(const struct hb_scene *s, const struct hb_tl_call *c, const char *const *globs,
		      struct hb_named *seen);

/* Which of these lists of names, which end with NULL each as they do together, has a system call: the number
 * of the first that does + 1; 0 none. `seen` keeps what was said of each call. */
struct hb_sysnos {
	u8 in[512]; /* that + 1; 0 not asked yet */
};
u32 hb_sysnos__look(struct hb_sysnos *seen, unsigned sysno, const char *const *const *lists);
static inline u32 hb_sysnos__of(struct hb_sysnos *seen, unsigned sysno, const char *const *const *lists)
{
	return sysno < sizeof(seen->in) && seen->in[sysno] ? seen->in[sysno] - 1U
							   : hb_sysnos__look(seen, sysno, lists);
}

/* a of b in millionths; 0 when b is 0. */
u64 hb_share(u64 a, u64 b);
/* Events per second. */
u64 hb_rate(u64 n, u64 ns);
/* Comm of a thread of the timeline, cleaned, into buf: "llm-worker-0 (4711)". */
const char *hb_scene__thread_text(const struct hb_scene *s, u32 thread, char *buf, size_t size);
const char *hb_scene__task_text(const struct hb_scene *s, const struct hb_task *t, char *buf, size_t size);
/* A rank of a collective: "rank 1 (process 4711)", "device 2 of process 4711". */
const char *hb_scene__rank_text(const struct hb_scene *s, const struct hb_coll_rank *r, char *buf,
				size_t size);
/* The innermost Python frame of a stack, else the innermost with a name: "poll (engine.py:12)"; "" none. */
const char *hb_scene__frame_text(const struct hb_scene *s, u32 pid, u32 stack, char *buf, size_t size);

/* Does any frame of a stack match one of the rules? Globs; a NULL func ends the list. */
struct hb_frame_rule {
	const char *module; /* of the source file, as hb_decode__module; "*" any */
	const char *func;   /* (qualified) name; also its last part is tried */
};
bool hb_scene__frame(const struct hb_scene *s, u32 pid, u32 stack, const struct hb_frame_rule *rule);
bool hb_scene__loc(const struct hb_scene *s, u32 loc, const struct hb_frame_rule *rule);

#endif
