/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Windows for the tests of the patterns: an engine that makes 100 steps of 10 ms in one second. In each its
 * main thread has 4 ms for itself while the device is idle, then launches, and waits until the device is
 * done. What a test plants goes into those 4 ms; its twin goes where the device is busy, or is too small.
 * Records are kept and written in order of time.
 */
#ifndef HB_PATTERNS_RIG_H
#define HB_PATTERNS_RIG_H

#include "host_rig.h"
#include "analysis/model/device.h"
#include "analysis/model/roofline.h"
#include "analysis/patterns/patterns.h"

#define STEP  (10 * MS)
#define STEPS 100
#define IDLE  (4 * MS) /* of a step, from its begin */

#define SYS_WRITE 1
#define SYS_YIELD 24
#define SYS_FSYNC 74

struct kept {
	u64 at;
	u32 n; /* equal times stay in order */
	u16 task;
	u16 type;
	u8 payload[HB_RECORD_MAX];
};

struct pat {
	struct host_rig h;
	struct kept *v;
	u32 n, cap;
	/* what was read */
	struct hb_window *w;
	struct hb_model *m;
	struct hb_devices *d;
	struct hb_host *host;
	struct hb_findings *f;
	const char *peaks_text; /* of what the devices can do; NULL: no roofline is made */
	struct hb_peaks *peaks;
	struct hb_roofline_opts roof_opts;
	struct hb_roofline *roof;
};

static inline struct pat pat_new(const char *name)
{
	struct pat p = {.h = host_new(name)};

	return p;
}

static inline void pat_put(struct pat *p, u64 at, u16 task, u16 type, const void *payload)
{
	if (p->n == p->cap) {
		p->cap = p->cap ? p->cap * 2 : 1024;
		p->v = realloc(p->v, p->cap * sizeof(*p->v));
		assert_non_null(p->v);
	}
	p->v[p->n] = (struct kept){.at = at, .n = p->n, .task = task, .type = type};
	memcpy(p->v[p->n++].payload, payload, hb_schema__type(type)->size);
}

static inline void pat_call(struct pat *p, u16 task, u32 probe, u64 begin, u64 end, struct hb_rec_accel more)
{
	more.probe = probe;
	more.dur = end - begin;
	more.flags |= end > begin ? HB_AFLAG_TIMED : 0;
	pat_put(p, end, task, HB_TYPE_accel, &more);
}
#define PCALL(p, task, probe, begin, end, ...)                                                               \
	pat_call(p, task, probe, begin, end, (struct hb_rec_accel){__VA_ARGS__})

static inline void pat_sleep(struct pat *p, u16 task, u64 begin, u64 wake, u64 end, u32 waker,
			     struct hb_rec_offcpu more)
{
	more.dur = end - begin;
	more.ready = end - wake;
	more.waker = waker;
	more.waker_pid = !waker ? 0 : waker < 200 ? 100 : waker < 300 ? 200 : waker < 900 ? 300 : 900;
	more.state = more.state == PREEMPTED ? HB_TSTATE_RUNNING
		     : more.state	     ? more.state
					     : HB_TSTATE_SLEEPING;
	if (!more.wctx)
		more.wctx = waker ? HB_WCTX_TASK : HB_WCTX_UNKNOWN;
	pat_put(p, end, task, HB_TYPE_offcpu, &more);
}
#define PSLEEP(p, task, begin, wake, end, waker, ...)                                                        \
	pat_sleep(p, task, begin, wake, end, waker, (struct hb_rec_offcpu){__VA_ARGS__})

static inline void pat_sample(struct pat *p, u16 task, u64 at, u64 weight, u32 stack, u16 sysno)
{
	struct hb_rec_sample s = {.weight = weight, .stack = stack, .sysno = sysno};

	pat_put(p, at, task, HB_TYPE_sample, &s);
}

/* Python functions of process `pid`, outermost first, NULL at the end: stack `raw`. */
static inline void pat_stack(struct pat *p, u32 pid, u32 raw, const char *file, ...)
{
	u32 frames[16], n = 0;
	const char *func;
	va_list ap;

	va_start(ap, file);
	while ((func = va_arg(ap, const char *)) != NULL) {
		struct hb_loc l = {.func = hb_window_writer__string(p->h.r.w, func),
				   .file = hb_window_writer__string(p->h.r.w, file),
				   .line = 10 + n,
				   .lang = HB_LANG_PYTHON};

		frames[n++] = hb_window_writer__loc(p->h.r.w, &l);
	}
	va_end(ap);
	hb_window_writer__stack(p->h.r.w, pid, raw, frames, n, HB_STACK_WHOLE);
}

/* One step: `launches` of them in 100 us after the idle time, and a wait until the end. */
static inline void pat_step(struct pat *p, u64 t, u32 launches)
{
	for (u32 i = 0; i < launches; i++)
		PCALL(p, p->h.main, Q_LAUNCH, t + IDLE + i * (100 * US / launches),
		      t + IDLE + i * (100 * US / launches), .gx = 8, .handle = 7);
	PCALL(p, p->h.main, Q_STREAM_SYNC, t + IDLE + 100 * US, t + STEP, .flags = HB_AFLAG_RET,
	      .stack = ST_DECODE);
}

static inline void pat_steps(struct pat *p)
{
	for (u64 i = 0; i < STEPS; i++)
		pat_step(p, i * STEP, 10);
}

static inline int pat_order(const void *a, const void *b)
{
	const struct kept *x = a, *y = b;

	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	return x->n < y->n ? -1 : x->n > y->n;
}

/* Devices, and the roofline where it is asked for. */
static inline void pat_devices(struct pat *p)
{
	const struct hb_feed *feeds[2];
	struct hb_error e = {0};

	p->d = hb_devices__new(p->w, NULL, &e);
	assert_non_null(p->d);
	feeds[0] = hb_devices__feed(p->d);
	if (p->peaks_text) {
		p->peaks = hb_peaks__new();
		assert_int_equal(
		    hb_peaks__add_text(p->peaks, "test", p->peaks_text, strlen(p->peaks_text), &e), 0);
		p->roof_opts.peaks = p->peaks;
		p->roof = hb_roofline__new(p->w, &p->roof_opts, &e);
		assert_non_null(p->roof);
		feeds[1] = hb_roofline__feed(p->roof);
	}
	p->m = hb_model__build_with(p->w, feeds, p->roof ? 2 : 1, &e);
	if (!p->m || hb_devices__finish(p->d, &e) || (p->roof && hb_roofline__finish(p->roof, p->d, &e)))
		fail_msg("%s", e.text);
}

/* Writes, reads, looks. */
static inline void pat_run_with(struct pat *p, const struct hb_thresholds *t)
{
	struct hb_error e = {0};
	struct hb_patterns_input in;

	if (p->n)
		qsort(p->v, p->n, sizeof(*p->v), pat_order);
	for (u32 i = 0; i < p->n; i++)
		rig_put(&p->h.r, p->v[i].at, p->v[i].task, p->v[i].type, p->v[i].payload);
	p->w = rig_open(&p->h.r);
	pat_devices(p);
	p->host = hb_host__build(p->w, p->d, &e);
	if (!p->host)
		fail_msg("%s", e.text);
	in = (struct hb_patterns_input){
	    .window = p->w, .model = p->m, .host = p->host, .devices = p->d, .roofline = p->roof};
	p->f = hb_patterns__run(&in, t, &e);
	if (!p->f)
		fail_msg("%s", e.text);
}

static inline void pat_run(struct pat *p)
{
	pat_run_with(p, NULL);
}

static inline void pat_end(struct pat *p)
{
	hb_findings__free(p->f);
	hb_host__free(p->host);
	hb_roofline__free(p->roof);
	hb_peaks__free(p->peaks);
	hb_devices__free(p->d);
	hb_model__free(p->m);
	rig_close(&p->h.r, p->w);
	free(p->v);
}

static inline const struct hb_finding *pat_get(const struct pat *p, const char *id)
{
	const struct hb_finding *x;

	for (u32 i = 0; (x = hb_findings__at(p->f, i)); i++)
		if (strcmp(x->pattern->id, id) == 0)
			return x;
	return NULL;
}

static inline const struct hb_ruled_out *pat_ruled_out(const struct pat *p, const char *id)
{
	const struct hb_ruled_out *x;

	for (u32 i = 0; (x = hb_findings__ruled_out(p->f, i)); i++)
		if (strcmp(x->pattern->id, id) == 0)
			return x;
	return NULL;
}

static inline const struct hb_not_checked *pat_not_checked(const struct pat *p, const char *id)
{
	const struct hb_not_checked *x;

	for (u32 i = 0; (x = hb_findings__not_checked(p->f, i)); i++)
		if (strcmp(x->pattern->id, id) == 0)
			return x;
	return NULL;
}

/* It is found, and first; what it exposed is within 15 % of `ns`. */
static inline const struct hb_finding *pat_first(const struct pat *p, const char *id, u64 ns)
{
	const struct hb_finding *x = hb_findings__at(p->f, 0);
	const struct hb_ruled_out *r = pat_ruled_out(p, id);
	const struct hb_not_checked *n = pat_not_checked(p, id);

	if (!x || strcmp(x->pattern->id, id) != 0)
		fail_msg("%s is not first but %s; ruled out by %s (%llu, threshold %llu) %s; not checked: %s",
			 id, x ? x->pattern->id : "nothing",
			 r && r->measure.param ? r->measure.param->key : "-",
			 r ? (unsigned long long)r->measure.value : 0ULL,
			 r ? (unsigned long long)r->measure.threshold : 0ULL, r ? r->what : "-",
			 n ? n->text : "-");
	if (x->exposed_min > ns + ns * 15 / 100 || x->exposed_max < ns - ns * 15 / 100)
		fail_msg("%s exposed %llu to %llu, planted %llu", id, (unsigned long long)x->exposed_min,
			 (unsigned long long)x->exposed_max, (unsigned long long)ns);
	assert_true(x->exposed_min <= x->exposed_likely && x->exposed_likely <= x->exposed_max);
	assert_true(x->count > 0 && x->max_ns > 0 && x->n_worst > 0);
	return x;
}

static inline void pat_silent(const struct pat *p, const char *id)
{
	const struct hb_finding *x = pat_get(p, id);

	if (x)
		fail_msg("%s in the twin: %s", id, x->what);
	if (!pat_ruled_out(p, id))
		fail_msg("%s is not ruled out: %s", id,
			 pat_not_checked(p, id) ? pat_not_checked(p, id)->text : "lost");
}

#endif
