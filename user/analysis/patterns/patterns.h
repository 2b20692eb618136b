/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Why it is slow: the catalogue of patterns, run over one window. Each pattern is one file of this folder
 * with one HB_PATTERN(name) = {...}; the list is made at build time from those lines, docs/patterns.md is
 * printed from them.
 *
 *   struct hb_patterns_input in = {.window = w, .model = m, .host = h, .devices = d};
 *   struct hb_findings *f = hb_patterns__run(&in, NULL, &e);
 *   for (i = 0; (x = hb_findings__at(f, i)); i++) ...
 *
 * A pattern ends in exactly one of three lists: findings (above the gate), ruled out (with what was measured
 * and the threshold), not checked (with what was missing). Times are ns; "exposed" is time in which the
 * device was idle and the host interval is to blame: a range where it is not known whether the device was
 * busy.
 */
#ifndef HB_PATTERNS_H
#define HB_PATTERNS_H

#include <stdio.h>

#include "analysis/model/path.h"
#include "base/error.h"
#include "base/intervals.h"
#include "window/window.h"

/* ---- descriptors ---- */

/* How a number is meant; all are u64. */
enum hb_unit {
	HB_UNIT_SHARE, /* part of a whole, in millionths: 50000 is 0.05 */
	HB_UNIT_RATIO, /* times, in millionths: 1500000 is 1.5 */
	HB_UNIT_NS,
	HB_UNIT_COUNT,
	HB_UNIT_RATE, /* per second */
	HB_UNIT_BYTES,
};

struct hb_param { /* a threshold; the list of a pattern ends with a NULL key */
	const char *key;
	enum hb_unit unit;
	u64 value; /* unless overridden */
	const char *doc;
};

/* Causes before symptoms: of two findings about the same idle time, the one of the lower rank is the cause.
 */
enum hb_rank {
	HB_RANK_OS,
	HB_RANK_INTERPRETER,
	HB_RANK_IPC,
	HB_RANK_CODE,
	HB_RANK_API,
	HB_RANK_STRUCTURE,
	HB_RANK_SYMPTOM,
	HB_RANK_OWN, /* beside the others: neither a cause nor an effect of them */
};
const char *hb_rank__name(enum hb_rank r);

/* Records that a rule reads: bits. */
#define HB_NEEDS(N)                                                                                          \
	N(ACCEL, "accelerator calls")                                                                        \
	N(LAUNCH_NS, "durations of launches (both ends of the call probed)")                                 \
	N(DEVICE, "device records (as in imported traces: import)")                                          \
	N(SLEEP, "scheduler events")                                                                         \
	N(SAMPLE, "CPU samples")                                                                             \
	N(STACK, "Python stacks")                                                                            \
	N(PYCALL, "calls of Python functions (trace --calls)")                                               \
	N(GIL, "waits for the GIL")                                                                          \
	N(GC, "garbage collections")                                                                         \
	N(EXCEPTION, "Python exceptions")                                                                    \
	N(SYSCALL, "every system call (trace --syscalls all)")                                               \
	N(STEP, "engine steps")                                                                              \
	N(FIELD, "engine fields (trace --field)")                                                            \
	N(ENGINE, "engine metrics (no window holds them yet; the engine's /metrics tell)")                   \
	N(REQUEST, "requests (no window holds them yet)")                                                    \
	N(CGROUP, "cgroup CPU limits and throttling")                                                        \
	N(FAULT, "page faults")                                                                              \
	N(NUMA, "placement of memory and CPUs by NUMA node (no window holds it yet; numastat -p PID tells)") \
	N(PROPERTIES,                                                                                        \
	  "device properties (multiprocessors, registers, clocks; traces of NVIDIA devices have them)")      \
	N(COUNTER, "device clocks and power over time (no window holds them yet; nvidia-smi dmon tells)")    \
	N(RANKS,                                                                                             \
	  "matching collectives of several ranks (trace the whole service, import all traces at once)")      \
	N(SHAPES,                                                                                            \
	  "shapes of the kernels' operands and peaks (docs/roofline.md: record_shapes, --model, --gpu)")     \
	N(MODULE, "loads of device modules")                                                                 \
	N(STREAM_FLAGS, "flags of streams")                                                                  \
	N(SEQUENCE, "sequence numbers of collectives")                                                       \
	N(RANK_DEVICES,                                                                                      \
	  "device records of every rank (import their traces together: import RANK0.json RANK1.json)")       \
	N(COPY_SIZES,                                                                                        \
	  "sizes and directions of copies (imported traces: the rows of the device, joined by correlation)") \
	N(NET, "network transport counters (no window holds them yet)")
#define HB_NEED_NUMBER(name, text) HB_NEED_N_##name,
enum { HB_NEEDS(HB_NEED_NUMBER) HB_NEED_COUNT };
#define HB_NEED_BIT(name, text) HB_NEED_##name = 1ULL << HB_NEED_N_##name,
enum hb_need { HB_NEEDS(HB_NEED_BIT) };
/* Of the lowest bit: "scheduler events". */
const char *hb_need__text(u64 need);

struct hb_look;

struct hb_pattern {
	const char *id;	   /* "P21", in the catalogue's numbers */
	const char *layer; /* "interpreter" */
	const char *title;
	enum hb_rank rank;
	const char
	    *explains; /* ids of patterns of which it is the cause whatever the ranks: "P30 P21"; NULL none */
	u64 needs;     /* bits; all of them */
	const struct hb_param *params; /* NULL: none */
	const char *rule;	       /* in words */
	const char *fix, *ref;	       /* what helps, and who wrote that it did */
	const char *traps;	       /* what looks alike and is none */
	const char *settle;	       /* what to record or try when the evidence is thin */
	/* What of it `trace` can record, for a plan (settle.h): options without dashes and their values,
	 * "frequency=997; calls=@stack". @stack and @waker stand for the functions in which the worst
	 * occurrences' threads, and those who ended or held them up, were. NULL: nothing. */
	const char *record;
	/* Looks and tells `l` what it saw; 0 or -ENOMEM. NULL: no window can hold what it needs yet. */
	int (*detect)(struct hb_look *l);
};

/* A scheduler's state, for `record`: by the names that vLLM has. Its engine steps have several names. */
#define HB_RECORD_SCHEDULER                                                                                  \
	"field=*:Scheduler.schedule self.waiting:len; "                                                      \
	"field=*:Scheduler.schedule self.running:len; "                                                      \
	"field=*:Scheduler.schedule self.max_num_running_reqs; "                                             \
	"field=*:Scheduler.schedule self.kv_cache_manager.block_pool.num_gpu_blocks; "                       \
	"field=*:Scheduler.schedule "                                                                        \
	"self.kv_cache_manager.block_pool.free_block_queue.num_free_blocks; "                                \
	"field=*:Scheduler._preempt_request request.num_preemptions"

#define HB_PATTERN(name) const struct hb_pattern hb_pattern_##name

/* All patterns in order of id, NULL-terminated; the gates, whose params belong to no pattern, come first. */
const struct hb_pattern *const *hb_patterns(void);
/* "P21", "p21"; NULL when there is none. */
const struct hb_pattern *hb_patterns__find(const char *id);
/* docs/patterns.md. */
void hb_patterns__describe(FILE *out);

/* ---- thresholds ---- */

struct hb_thresholds;

struct hb_thresholds *hb_thresholds__new(void); /* with the defaults; NULL: out of memory */
void hb_thresholds__free(struct hb_thresholds *t);
/* "p21.wait_share=0.05", "p27.single=10ms", "gate.exposed_share=2%". 0, or -EINVAL with a sentence that says
 * what there is. */
int hb_thresholds__set(struct hb_thresholds *t, const char *text, struct hb_error *e);
/* The same from a file: one a line, "#" begins a remark. */
int hb_thresholds__read(struct hb_thresholds *t, const char *path, struct hb_error *e);
/* Value of a parameter of a pattern; 0 when it has none of this key. */
u64 hb_thresholds__value(const struct hb_thresholds *t, const struct hb_pattern *p, const char *key);
/* What was set, i-th: pattern and parameter; false at the end. */
bool hb_thresholds__changed(const struct hb_thresholds *t, u32 i, const struct hb_pattern **p,
			    const struct hb_param **param, u64 *value);
/* A number with its unit for people, "5 %", "200 us", "1.5 x"; into buf (>= 32 bytes), returned. */
char *hb_unit__text(enum hb_unit unit, u64 value, char *buf, size_t size);

/* ---- findings ---- */

enum hb_confidence { HB_CONFIDENCE_LOW, HB_CONFIDENCE_MEDIUM, HB_CONFIDENCE_HIGH };
const char *hb_confidence__name(enum hb_confidence c);

struct hb_measure { /* one condition of a rule */
	const struct hb_param *param;
	u64 value, threshold;
	bool at_most; /* fulfilled when value <= threshold; else when value >= threshold */
};

struct hb_instance {	/* one occurrence */
	u64 begin, end; /* monotonic ns */
	u64 exposed_min, exposed_max, exposed_likely;
	const struct hb_task *thread; /* NULL: none, or a device's */
	const struct hb_task *waker;  /* who ended it, or held what was waited for; NULL: not known */
	u32 stack;		      /* of `thread`, for hb_window__stack(); 0: none */
	u32 waker_stack;	      /* of `waker` */
	u32 ran;     /* location of the function that `thread` was in most of it; 0: not known */
	bool launch; /* `stack` is of the launch that ended it */
};

#define HB_MEASURES  8
#define HB_INSTANCES 3
struct hb_finding {
	const struct hb_pattern *pattern;
	const struct hb_finding *cause; /* an effect of it; NULL: stands for itself */
	u32 n_effects;			/* findings whose cause it is */
	char what[512];			/* what was seen, in a sentence or two; cleaned */
	u64 exposed_min, exposed_max;	/* equal when known exactly */
	u64 exposed_likely;		/* between the two: what it costs by all that is known */
	u64 delay_ns;			/* added to requests; 0: not known */
	u64 device_ns;			/* device time that could be saved (device patterns) */
	u64 share;			/* of the window, millionths: cost over its length */
	u64 count;			/* occurrences; CPU samples where `sampled` */
	bool sampled; /* each stands for the time between two samples, not for something that took so long */
	u64 total_ns, p50_ns, p95_ns, max_ns; /* of their lengths */
	u64 gain_bound_ns;
	struct hb_range what_if; /* how much sooner the steps would have been over without these intervals,
				  * everything else replayed */
	bool has_what_if;
	enum hb_confidence confidence;
	const char *why;			/* the confidence, in words; NULL when high */
	struct hb_instance worst[HB_INSTANCES]; /* by exposed time, then length */
	u32 n_worst;
	struct hb_hop hop[HB_HOPS];	 /* who waited for whom in the worst instance, its own thread first */
	u32 n_hops;			 /* 0: it did not wait */
	char chain[384];		 /* the same in words; "" */
	const struct hb_proc_stat *proc; /* NULL: several, or a device */
	u32 device;			 /* UINT32_MAX: none */
	struct hb_measure measure[HB_MEASURES]; /* the rule's numbers */
	u32 n_measures;
	const struct hb_ivs *exposed; /* the idle time itself, known and possible */
};

/* `what` of a pattern whose subjects did not occur at all. */
#define HB_NOTHING_OCCURRED "nothing of its kind occurred"

struct hb_ruled_out { /* looked at and not so */
	const struct hb_pattern *pattern;
	struct hb_measure measure; /* the condition that failed; param NULL: nothing of its kind occurred */
	char what[160];		   /* in words */
};

struct hb_not_checked {
	const struct hb_pattern *pattern;
	u64 needs;	/* bits that are missing; 0: see text */
	char text[256]; /* "needs device records (as in imported traces: import)" */
};

struct hb_devices;
struct hb_host;
struct hb_roofline;

struct hb_patterns_input {
	struct hb_window *window;
	const struct hb_model *model;
	const struct hb_host *host;
	const struct hb_devices *devices;   /* NULL: without device records */
	const struct hb_roofline *roofline; /* NULL: not asked for */
};

/* Was there work to do? From fields of the engine's scheduler (trace --field), requests running and waiting.
 */
struct hb_load {
	u64 known; /* ns between two readings of both; 0: nobody read them */
	u64 none;  /* of these, with no request at all */
};
/* 0 or -ENOMEM. Reads the window once more when it has readings of fields. */
int hb_patterns__load(const struct hb_patterns_input *in, struct hb_load *out);

struct hb_findings;

/* Runs all patterns. `t` may be NULL: defaults. The objects of `in` must outlive the result. NULL: out of
 * memory, with a sentence. */
struct hb_findings *hb_patterns__run(const struct hb_patterns_input *in, const struct hb_thresholds *t,
				     struct hb_error *e);
void hb_findings__free(struct hb_findings *f);

/* The instance to show of a finding: the worst that has a stack, as one cut by the window's edge has none;
 * else the worst. NULL without instances. */
const struct hb_instance *hb_finding__shown(const struct hb_finding *f);
/* Who its chain of wakers comes to in the end, where that is another task than the one that waited: whoever
 * has to be looked at. NULL: nobody else. */
static inline const struct hb_hop *hb_finding__end(const struct hb_finding *f)
{
	return f->n_hops > 1 && f->hop[f->n_hops - 1].task ? &f->hop[f->n_hops - 1] : NULL;
}
/* Whose stack an instance has: of its thread's process; of work on a device, of the process that launched it.
 * 0: not known. */
u32 hb_finding__stack_pid(const struct hb_finding *f, const struct hb_instance *x);
/* i-th of each list, NULL at the end. Causes come first, by cost, then symptoms without a
 * cause, then effects.
 */
const struct hb_finding *hb_findings__at(const struct hb_findings *f, u32 i);
const struct hb_ruled_out *hb_findings__ruled_out(const struct hb_findings *f, u32 i);
/* The time with work, ns: of an imported trace from the first operation of a device or step to the last one,
 * where that is clearly shorter than the window, else the window's length. What is worth a finding is
 * measured by it: a trace may hold minutes of loading, or one stray row of another year. */
u64 hb_findings__active(const struct hb_findings *f);
const struct hb_not_checked *hb_findings__not_checked(const struct hb_findings *f, u32 i);

#endif
