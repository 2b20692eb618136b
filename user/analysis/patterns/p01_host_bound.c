/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The device waits for the host, which is busy all the time: it cannot launch as fast as the device works. */
#include <errno.h>

#include "analysis/patterns/pattern.h"
#include "base/text.h"

enum { GAP_SHARE, HOST_SHARE, ON_CPU, QUEUE, GAP, MISSING };

static const struct hb_param params[] = {
    [GAP_SHARE] = {"gap_share", HB_UNIT_SHARE, 150000,
		   "gaps of 20 us and more, as a part of the device's time"},
    [HOST_SHARE] = {"host_share", HB_UNIT_SHARE, 700000,
		    "those of these gaps that end by a launch which began inside of them, by time"},
    [ON_CPU] = {"on_cpu", HB_UNIT_SHARE, 600000,
		"the host's part of the gaps that the dispatch thread runs in (where scheduler events tell)"},
    [QUEUE] = {"queue", HB_UNIT_COUNT, 1,
	       "median number of operations launched and not begun, at a launch, at most"},
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

/* Host parts of the macro gaps, and how much of them their threads ran. */
static void host_parts(const struct hb_scene *s, const struct hb_device *v, u64 *ns, u64 *running)
{
	*ns = *running = 0;
	for (u32 i = 0; i < v->n_gaps; i++) {
		const struct hb_gap *g = &v->gap[i];
		const struct hb_device_op *o = op_after(v, g);
		u32 t;

		if (g->size != HB_GAP_MACRO || g->cause != HB_GAP_HOST)
			continue;
		t = o ? thread_of(s, hb_devices__launch_of(s->dev, o)) : HB_NONE;
		*ns += g->host_end - g->begin;
		if (t != HB_NONE)
			*running += hb_timeline__use(s->tl, t, g->begin, g->host_end).running;
	}
}

static int add_gaps(struct hb_draft *d, const struct hb_scene *s, const struct hb_device *v)
{
	int err = 0;

	for (u32 i = 0; i < v->n_gaps && !err; i++) {
		const struct hb_gap *g = &v->gap[i];
		const struct hb_device_op *o = op_after(v, g);
		const struct hb_launch *k = o ? hb_devices__launch_of(s->dev, o) : NULL;
		struct hb_case c = {.begin = g->begin,
				    .end = g->host_end,
				    .thread = thread_of(s, k),
				    .stack = k ? k->stack : 0};

		if (g->size == HB_GAP_MACRO && g->cause == HB_GAP_HOST && c.end > c.begin)
			err = hb_draft__add_idle(d, &c, v->host_idle, v->host_idle);
	}
	return err;
}

static int by_device(struct hb_look *l, const struct hb_device *v)
{
	const struct hb_gap_sum *m = &v->gaps[HB_GAP_MACRO];
	u64 host, running, seen = m->ns - m->missing_ns;
	struct hb_draft *d;
	char text[32];

	if (v->early * 10 > v->linked) {
		hb_look__unchecked(
		    l, HB_NEED_DEVICE,
		    "needs times of devices that agree with those of calls: %llu of %llu operations began "
		    "before their launch",
		    (unsigned long long)v->early, (unsigned long long)v->linked);
		return 0;
	}
	if (hb_share(m->missing_ns, m->ns) >= hb_look__param(l, MISSING)) {
		hb_look__unchecked(
		    l, HB_NEED_DEVICE,
		    "device activity missing: %s of gaps end by work that was launched at once and began "
		    "late: the device was busy with what is not in the window",
		    hb_text__ns(text, sizeof(text), m->missing_ns));
		return 0;
	}

	hb_look__subject(l);
	host_parts(l->s, v, &host, &running);
	if (!hb_look__at_least(l, GAP_SHARE, hb_share(seen, v->end - v->begin)) ||
	    !hb_look__at_least(l, HOST_SHARE, hb_share(m->host_ns + m->tail_ns, seen)) ||
	    ((l->s->present & HB_NEED_SLEEP) && !hb_look__at_least(l, ON_CPU, hb_share(running, host))) ||
	    !hb_look__at_most(l, QUEUE, v->queue.p50))
		return 0;
	d = hb_look__find(
	    l,
	    "device %u is idle %llu %% of its time in gaps of 20 us and more, %llu %% of which the host "
	    "makes; %llu launches, the queue is empty at %llu of them",
	    v->number, (unsigned long long)(hb_share(seen, v->end - v->begin) / 10000),
	    (unsigned long long)(hb_share(m->host_ns + m->tail_ns, seen) / 10000),
	    (unsigned long long)v->launches, (unsigned long long)v->empty);
	if (!d)
		return -ENOMEM;
	hb_draft__pid(d, v->pid);
	hb_draft__device(d, v->index);
	if (!(l->s->present & HB_NEED_SLEEP))
		hb_draft__confidence(d, HB_CONFIDENCE_MEDIUM,
				     "whether the dispatch thread ran is not recorded");
	return add_gaps(d, l->s, v);
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
	if (!(l->s->present & HB_NEED_SLEEP) || !hb_look__at_least(l, GAP_SHARE, hb_share(sum, span)) ||
	    !hb_look__at_least(l, ON_CPU, hb_share(running, sum)))
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
    .rule = "the device idles in gaps of 20 us and more for a good part of its time, most of them end by a "
	    "launch that began "
	    "inside the gap, its thread was running meanwhile, and the queue is empty at a launch. Without "
	    "device records the "
	    "same by what waits for the device tell. A symptom: causes of other patterns go before it",
    .fix = "schedule one step ahead, return a device handle of the sampled ids, graphs, fusion; vLLM: "
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
