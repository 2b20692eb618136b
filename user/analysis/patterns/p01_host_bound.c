/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The device waits for the host, which is busy all the time: it cannot launch as fast as the device works. */
#include <errno.h>

#include "analysis/model/decode.h"
#include "analysis/model/doing.h"
#include "analysis/patterns/pattern.h"
#include "base/text.h"

enum { GAP_SHARE, HOST_SHARE, ON_CPU, EMPTY, GAP, MISSING };

static const struct hb_param params[] = {
    [GAP_SHARE] = {"gap_share", HB_UNIT_SHARE, 150000,
		   "gaps of 20 us and more, as a part of the device's time"},
    [HOST_SHARE] =
	{"host_share", HB_UNIT_SHARE, 700000,
	 "those of these gaps that end by a launch which began, or was still being made, inside of "
	 "them, by time"},
    [ON_CPU] =
	{"on_cpu", HB_UNIT_SHARE, 600000,
	 "the host's part of the gaps that the dispatch thread runs in (where scheduler events tell, or "
	 "the functions that it was in)"},
    [EMPTY] = {"empty_share", HB_UNIT_SHARE, 500000,
	       "those of the host's gaps at whose end nothing else was launched and not begun, by time"},
    [GAP] = {"gap", HB_UNIT_NS, 20000, "without device records: shorter idle times do not count"},
    [MISSING] = {"missing_share", HB_UNIT_SHARE, 500000,
		 "the gaps' time in which the device's records must be incomplete: then nothing is said"},
    {0},
};

static const struct hb_device_op *op_after(const struct hb_device *v, const struct hb_gap *g)
{
	return g->next < v->n_ops ? &v->op[g->next] : NULL;
}

static u32 thread_of(const struct hb_scene *s, const struct hb_launch *k)
{
	const struct hb_task *t = k ? hb_window__task(s->w, k->task) : NULL;

	return t ? hb_timeline__by_tid(s->tl, t->tid) : HB_NONE;
}

/* The long gaps of a device while none of its process's works. */
struct gaps {
	const struct hb_device *v;
	bool alone;	    /* its process has no other device */
	struct hb_ivs idle; /* the host's parts */
	u64 ns, missing;    /* all; those in which the device's records are incomplete */
	u64 host, empty;   /* those that the host ends; that end by a launch with nothing else in the queue */
	u64 part, running; /* the host's part of those; what its threads ran of that */
	u64 waited;	   /* and of that for the device, which then was not idle, whatever its records say */
	struct hb_doing *doing;
};

/* A process waits for what all of its devices wait for: it is told by the one that works most. */
static bool leads(const struct hb_scene *s, const struct hb_device *v, bool *alone)
{
	const struct hb_device *o;

	*alone = true;
	for (u32 i = 0; (o = hb_devices__at(s->dev, i)); i++) {
		if (o == v || o->pid != v->pid)
			continue;
		*alone = false;
		if (o->busy > v->busy || (o->busy == v->busy && o->index < v->index))
			return false;
	}
	return true;
}

static u64 idle_in(const struct hb_scene *s, const struct gaps *x, u64 begin, u64 end)
{
	return x->alone ? end - begin : hb_busy__idle_in(s->busy, x->v->pid, begin, end).min;
}

/* Time of [begin, end) in which a thread was in calls that waited for the device. */
static u64 waited_in(const struct hb_scene *s, u32 thread, u64 begin, u64 end)
{
	u32 n, i = hb_timeline__at(s->tl, thread, HB_TL_CALL, begin);
	const struct hb_tl_call *c = hb_timeline__calls(s->tl, thread, &n);
	u64 ns = 0;

	for (i = i == HB_NONE ? hb_timeline__from(s->tl, thread, HB_TL_CALL, begin) : i;
	     i < n && c[i].at.begin < end; i++)
		if (hb_call__waited(&c[i]))
			ns += hb_overlap(c[i].at.begin, c[i].at.end, begin, end);
	return ns;
}

static int look_at(const struct hb_scene *s, struct gaps *x, const struct hb_gap *g)
{
	const struct hb_device_op *o = op_after(x->v, g);
	u64 ns = idle_in(s, x, g->begin, g->end), part = idle_in(s, x, g->begin, g->host_end);
	u32 t = o ? thread_of(s, hb_devices__launch_of(s->dev, o)) : HB_NONE;

	if (g->cause == HB_GAP_MISSING) {
		x->missing += ns;
		return 0;
	}
	x->ns += ns;
	if (g->cause != HB_GAP_HOST)
		return 0;
	x->host += ns;
	x->empty += o && o->empty ? ns : 0;
	x->part += part;
	if (!part)
		return 0;
	if (t != HB_NONE) {
		x->running += hb_timeline__use(s->tl, t, g->begin, g->host_end).running;
		x->waited += waited_in(s, t, g->begin, g->host_end);
	}
	return hb_doing__add(x->doing, t, g->begin, g->host_end, NULL);
}

/* The idle time of a process of several devices, from the begin of this one on. */
static void idle_of(const struct hb_scene *s, struct gaps *x)
{
	struct hb_ivs idle = {0};
	u32 n;
	const struct hb_busy_span *b = hb_busy__spans(s->busy, x->v->pid, &n);

	for (u32 i = 0; i < n; i++)
		if (hb_busy_span__state(&b[i]) == HB_BUSY_IDLE)
			hb_ivs__append(&idle, b[i].begin, hb_busy_span__end(&b[i]));
	hb_ivs__and(&idle, x->v->host_idle, &x->idle);
	x->idle.oom |= idle.oom;
	hb_ivs__free(&idle);
}

static int look(const struct hb_scene *s, struct gaps *x)
{
	int err = 0;

	x->doing = hb_doing__new(s->tl);
	if (!x->doing)
		return -ENOMEM;
	if (!x->alone)
		idle_of(s, x);
	for (u32 i = 0; i < x->v->n_gaps && !err; i++)
		if (x->v->gap[i].size == HB_GAP_MACRO)
			err = look_at(s, x, &x->v->gap[i]);
	return err || x->idle.oom ? -ENOMEM : 0;
}

static int add_gaps(struct hb_draft *d, const struct hb_scene *s, const struct gaps *x)
{
	const struct hb_ivs *idle = x->alone ? x->v->host_idle : &x->idle;
	int err = 0;

	for (u32 i = 0; i < x->v->n_gaps && !err; i++) {
		const struct hb_gap *g = &x->v->gap[i];
		const struct hb_device_op *o = op_after(x->v, g);
		const struct hb_launch *k = o ? hb_devices__launch_of(s->dev, o) : NULL;
		struct hb_case c = {.begin = g->begin,
				    .end = g->host_end,
				    .thread = thread_of(s, k),
				    .stack = k ? k->stack : 0,
				    .launch = true};

		if (g->size != HB_GAP_MACRO || g->cause != HB_GAP_HOST || c.end <= c.begin ||
		    !idle_in(s, x, c.begin, c.end))
			continue;
		err = hb_doing__add(x->doing, c.thread, c.begin, c.end, &c.ran);
		err = err ? err : hb_draft__add_idle(d, &c, idle, idle);
	}
	return err;
}

static bool is_checked(struct hb_look *l, const struct gaps *x)
{
	char text[32];

	if (hb_share(x->missing, x->ns + x->missing) < hb_look__param(l, MISSING) || !x->missing)
		return true;
	hb_look__unchecked(
	    l, HB_NEED_DEVICE,
	    "device activity missing: %s of gaps end by work that was launched at once and began "
	    "late: the device was busy with what is not in the window",
	    hb_text__ns(text, sizeof(text), x->missing));
	return false;
}

/* Did the threads that launch run? Without scheduler events the names of the functions they were in tell. Who
 * spins in a call until the device is done runs, and is not what the device waits for. */
static bool ran(struct hb_look *l, const struct gaps *x)
{
	struct hb_doing_sum sum = hb_doing__sum(x->doing);
	bool sleeps = l->s->present & HB_NEED_SLEEP;
	u64 running = sleeps ? x->running : sum.ns - sum.waited, all = sleeps ? x->part : sum.ns;

	running = running > x->waited ? running - x->waited : 0;
	return hb_look__at_least(l, ON_CPU, hb_share(running, all));
}

static void say_where(struct hb_draft *d, const struct hb_scene *s, const struct hb_doing *doing)
{
	const struct hb_did *x = hb_doing__most(doing);
	const struct hb_loc *loc = x ? hb_window__loc(s->w, x->loc) : NULL;
	char frame[256];

	if (loc && x->ns >= hb_doing__sum(doing).ns / 10)
		hb_draft__say(d, "; meanwhile it was in %s for %llu %% of the time",
			      hb_decode__frame(s->w, loc, HB_FRAME_LINE, frame, sizeof(frame)),
			      (unsigned long long)(hb_share(x->ns, hb_doing__sum(doing).ns) / 10000));
}

static int judge_gaps(struct hb_look *l, const struct gaps *x)
{
	const struct hb_device *v = x->v;
	u64 span = v->end - v->begin;
	struct hb_draft *d;

	if (!is_checked(l, x))
		return 0;
	hb_look__subject(l);
	if (!hb_look__at_least(l, GAP_SHARE, hb_share(x->ns, span)) ||
	    !hb_look__at_least(l, HOST_SHARE, hb_share(x->host, x->ns)) || !ran(l, x) ||
	    !hb_look__at_least(l, EMPTY, hb_share(x->empty, x->host)))
		return 0;
	d = hb_look__find(
	    l,
	    "device %u%s is idle %llu %% of its time in gaps of 20 us and more, %llu %% of which "
	    "the host makes; %llu launches, the queue is empty at %llu of them",
	    v->number, x->alone ? "" : ", as all of its process,",
	    (unsigned long long)(hb_share(x->ns, span) / 10000),
	    (unsigned long long)(hb_share(x->host, x->ns) / 10000), (unsigned long long)v->launches,
	    (unsigned long long)v->empty);
	if (!d)
		return -ENOMEM;
	say_where(d, l->s, x->doing);
	hb_draft__pid(d, v->pid);
	hb_draft__device(d, v->index);
	if (!(l->s->present & HB_NEED_SLEEP))
		hb_draft__confidence(d, HB_CONFIDENCE_MEDIUM,
				     "whether the dispatch thread ran is not recorded");
	return add_gaps(d, l->s, x);
}

static int by_device(struct hb_look *l, const struct hb_device *v)
{
	struct gaps x = {.v = v};
	int err;

	if (v->early * 10 > v->linked) {
		hb_look__unchecked(
		    l, HB_NEED_DEVICE,
		    "needs times of devices that agree with those of calls: %llu of %llu operations began "
		    "before their launch",
		    (unsigned long long)v->early, (unsigned long long)v->linked);
		return 0;
	}
	if (!leads(l->s, v, &x.alone))
		return 0;
	err = look(l->s, &x);
	err = err ? err : judge_gaps(l, &x);
	hb_ivs__free(&x.idle);
	hb_doing__free(x.doing);
	return err;
}

/* ---- without device records: by what is inferred of the device ---- */

static bool has_device(const struct hb_scene *s, u32 pid)
{
	for (u32 i = 0; s->dev && i < hb_devices__count(s->dev); i++)
		if (hb_devices__at(s->dev, i)->pid == pid)
			return true;
	return false;
}

/* Long enough, and neither before the first step nor after the last one: there nothing may have been asked of
 * the engine. */
static bool counts(const struct hb_series *p, const struct hb_iv *idle, u64 least)
{
	return idle->end - idle->begin >= least && idle->begin >= p->step[0].begin &&
	       idle->end <= p->step[p->n - 1].end;
}

static int add_idle(struct hb_draft *d, const struct hb_scene *s, const struct hb_series *p,
		    const struct hb_ivs *idle, u64 least)
{
	u32 n, thread = p->dispatch;
	const struct hb_tl_call *k = hb_timeline__calls(s->tl, thread, &n);
	int err = 0;

	for (size_t i = 0; i < idle->n && !err; i++) {
		u32 next = hb_scene__next_work(s, thread, idle->v[i].begin);
		struct hb_case c = {.begin = idle->v[i].begin,
				    .end = idle->v[i].end,
				    .thread = thread,
				    .stack = next < n ? k[next].at.stack : 0};

		if (counts(p, &idle->v[i], least))
			err = hb_draft__add(d, &c);
	}
	return err;
}

static int judge(struct hb_look *l, const struct hb_series *p, const struct hb_ivs *idle)
{
	u64 least = hb_look__param(l, GAP), sum = 0, running = 0;
	u64 span = p->step[p->n - 1].end - p->step[0].begin;
	struct hb_draft *d;
	char who[64];

	for (size_t i = 0; i < idle->n; i++) {
		if (!counts(p, &idle->v[i], least))
			continue;
		sum += idle->v[i].end - idle->v[i].begin;
		running += hb_timeline__use(l->s->tl, p->dispatch, idle->v[i].begin, idle->v[i].end).running;
	}
	hb_look__subject(l);
	if (!hb_look__at_least(l, GAP_SHARE, hb_share(sum, span)))
		return 0;
	if (!(l->s->present & HB_NEED_SLEEP)) {
		hb_look__unchecked(
		    l, HB_NEED_SLEEP,
		    "needs scheduler events, or device records: the device is likely idle %llu %% "
		    "of the steps, and whether the thread that launches ran then is not recorded",
		    (unsigned long long)(hb_share(sum, span) / 10000));
		return 0;
	}
	if (!hb_look__at_least(l, ON_CPU, hb_share(running, sum)))
		return 0;
	d = hb_look__find(l,
			  "the device is likely idle %llu %% of the steps: it is done with each launch "
			  "before %s, which runs, makes the next",
			  (unsigned long long)(hb_share(sum, span) / 10000),
			  hb_scene__thread_text(l->s, p->dispatch, who, sizeof(who)));
	if (!d)
		return -ENOMEM;
	hb_draft__pid(d, p->pid);
	hb_draft__confidence(d, HB_CONFIDENCE_MEDIUM, "without device records");
	return add_idle(d, l->s, p, idle, least);
}

static int by_host(struct hb_look *l, const struct hb_series *p)
{
	struct hb_ivs idle = {0};
	int err;

	if (!p->n || has_device(l->s, p->pid))
		return 0;
	err = hb_sets__all_likely(hb_scene__exposed(l->s, p->dispatch), &idle);
	err = err ? err : judge(l, p, &idle);
	hb_ivs__free(&idle);
	return err;
}

static int detect(struct hb_look *l)
{
	int err = hb_look__devices(l, by_device);

	return err ? err : hb_look__series(l, by_host);
}

HB_PATTERN(p01_host_bound) = {
    .id = "P01",
    .layer = "dispatch",
    .title = "host-bound dispatch",
    .rank = HB_RANK_SYMPTOM,
    .needs = HB_NEED_ACCEL,
    .params = params,
    .rule =
	"the device idles in gaps of 20 us and more for a good part of its time, most of them end by a "
	"launch that began "
	"inside the gap, its thread was running meanwhile, and nothing else was in the queue. Of a process "
	"with several devices only the time in which none works counts. Without device records the "
	"same by what waits for the device tell. A symptom: causes of other patterns go before it",
    .fix =
	"look first at what the thread was in meanwhile and take that off the way to the launch; in general "
	"schedule one step ahead, return a device handle of the sampled ids, graphs, fusion; vLLM: "
	"--async-scheduling; SGLang: without --disable-overlap-schedule",
    .ref = "vllm-project/vllm#6854 (bubbles of 5 to 13 ms), #23569; NVIDIA/TensorRT-LLM#13957 (580 us an "
	   "iteration); "
	   "ggml-org/llama.cpp#7456 (10 to 15 % of the token's time on the CPU)",
    .traps = "no load; a window that cuts a step; the tracer's own cost for each call",
    .settle = "the device's utilisation with no tracer (nvidia-smi dmon), or a trace of the engine's own "
	      "profiler, imported",
    .record = "frequency=997; timed=launch,graph",
    .detect = detect,
};
