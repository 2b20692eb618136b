/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Many small kernels, each launched by itself: the launches take longer than the kernels. */
#include <errno.h>
#include <stdlib.h>

#include "analysis/patterns/pattern.h"
#include "base/text.h"

enum { LAUNCHES, EAGER, SHORT, TINY, GAPS, LONGEST, LAUNCHING, WAITING };

static const struct hb_param params[] = {
    [LAUNCHES] = {"launches", HB_UNIT_COUNT, 50, "launches in the median step (without steps: in all)"},
    [EAGER] = {"eager_share", HB_UNIT_SHARE, 900000,
	       "steps without a graph, or with one for nine launches at most, of all steps"},
    [SHORT] = {"short_share", HB_UNIT_SHARE, 500000,
	       "kernels that are shorter than their own launch call, of all"},
    [TINY] =
	{"tiny_share", HB_UNIT_SHARE, 700000,
	 "or kernels below 10 us, of all, when the median kernel is no longer than the median launch call"},
    [GAPS] = {"gap_share", HB_UNIT_SHARE, 150000,
	      "idle time before kernels that are launched one by one, within the steps, as a part of the "
	      "device's time"},
    [LONGEST] = {"longest", HB_UNIT_NS, 1000000,
		 "idle times longer than this are not of launching, and do not count"},
    [LAUNCHING] = {"launching_share", HB_UNIT_SHARE, 500000,
		   "without device records: from the first to the last launch, as a part of the steps"},
    [WAITING] = {"waiting_share", HB_UNIT_SHARE, 200000,
		 "without device records: waits for the device, as a part of the steps, at most: it is done "
		 "as soon as "
		 "the last launch is"},
    {0},
};

/* A step of a graph and a thousand launches is a storm as one without the graph is. */
#define EAGER_TO_GRAPHS 9

/* Launches of the median step and the share of steps in which graphs are of no account. */
static int of_steps(const struct hb_series *p, u64 *launches, u64 *eager)
{
	u64 *v;
	u32 without = 0;

	v = calloc(p->n, sizeof(*v));
	if (!v)
		return -ENOMEM;
	for (u32 i = 0; i < p->n; i++) {
		v[i] = p->step[i].launches;
		without += p->step[i].launches >= EAGER_TO_GRAPHS * p->step[i].graphs;
	}
	*launches = hb_dist__median(v, p->n);
	*eager = hb_share(without, p->n);
	free(v);
	return 0;
}

/* Whose launches they are: the stack of one in the middle of a step. 0: none has one. */
static u32 stack_in(const struct hb_scene *s, const struct hb_series *p, const struct hb_step *x)
{
	u32 n, half = x->n_calls / 2;
	const struct hb_tl_call *c = hb_timeline__calls(s->tl, p->dispatch, &n);

	for (u32 i = 0; i < x->n_calls; i++) {
		u32 at = x->call + (half + i) % x->n_calls; /* from the middle on, then from the begin */

		if (at < n && hb_call__is_work(&c[at]) && c[at].at.stack)
			return c[at].at.stack;
	}
	return 0;
}

/* ---- with device records ---- */

static bool has_graphs(const struct hb_device *v)
{
	for (u32 i = 0; i < v->n_ops; i++)
		if (v->op[i].kind == HB_DEVKIND_KERNEL && v->op[i].shared)
			return true;
	return false;
}

/* Median kernel and median launch call, of kernels that are alone in theirs. */
static int medians(const struct hb_scene *s, const struct hb_device *v, u64 *kernel, u64 *call)
{
	u64 *k = malloc((v->n_ops + 1ULL) * sizeof(*k)), *c = malloc((v->n_ops + 1ULL) * sizeof(*c));
	u32 n = 0;

	for (u32 i = 0; k && c && i < v->n_ops; i++) {
		const struct hb_launch *a = hb_devices__launch_of(s->dev, &v->op[i]);

		if (v->op[i].kind != HB_DEVKIND_KERNEL || v->op[i].shared || !a || !a->timed)
			continue;
		k[n] = v->op[i].end - v->op[i].begin;
		c[n++] = a->end - a->begin;
	}
	*kernel = k && c ? hb_dist__median(k, n) : 0;
	*call = k && c ? hb_dist__median(c, n) : 0;
	free(k);
	free(c);
	return k && c ? 0 : -ENOMEM;
}

/* Idle time that a graph would save: before kernels that are launched one by one, in a step. */
struct between {
	const struct hb_series *p; /* NULL: without steps */
	u64 longest;		   /* of one that launching makes */
	struct hb_ivs idle;
	u64 ns;
};

static bool same_step(const struct hb_series *p, u64 a, u64 b)
{
	return !p || !p->n || (a && b && hb_series__find(p, a) == hb_series__find(p, b));
}

/* What lies between operation i and all before it, which ended at `end`. */
static bool is_between(const struct hb_scene *s, const struct hb_device *v, const struct between *x, u32 i,
		       u64 end)
{
	const struct hb_device_op *o = &v->op[i];
	struct hb_gap g;

	if (o->kind != HB_DEVKIND_KERNEL || o->shared || o->graph || o->begin - end > x->longest ||
	    !same_step(x->p, hb_devices__asked(s->dev, &v->op[i - 1]), hb_devices__asked(s->dev, o)))
		return false;
	g = hb_devices__gap(s->dev, v, end, i);
	return g.cause == HB_GAP_HOST;
}

/* Gaps of all lengths: at a few microseconds for each launch most of them are short. */
static int find_between(const struct hb_scene *s, const struct hb_device *v, struct between *x)
{
	u64 end = v->begin;

	for (u32 i = 0; i < v->n_ops; i++) {
		if (i && v->op[i].begin > end && is_between(s, v, x, i, end)) {
			hb_ivs__append(&x->idle, end, v->op[i].begin);
			x->ns += v->op[i].begin - end;
		}
		end = v->op[i].end > end ? v->op[i].end : end;
	}
	return x->idle.oom ? -ENOMEM : 0;
}

static int add_between(struct hb_draft *d, const struct hb_scene *s, const struct hb_device *v,
		       const struct between *x)
{
	u64 end = v->begin;
	size_t at = 0;
	int err = 0;

	for (u32 i = 0; i < v->n_ops && at < x->idle.n && !err; i++) {
		const struct hb_device_op *o = &v->op[i];

		if (x->idle.v[at].begin == end && o->begin == x->idle.v[at].end) {
			const struct hb_launch *k = hb_devices__launch_of(s->dev, o);
			const struct hb_task *t = k ? hb_window__task(s->w, k->task) : NULL;
			struct hb_case c = {.begin = end,
					    .end = o->begin,
					    .thread = t ? hb_timeline__by_tid(s->tl, t->tid) : HB_NONE,
					    .stack = k ? k->stack : 0};

			err = hb_draft__add_idle(d, &c, &x->idle, &x->idle);
			at++;
		}
		end = o->end > end ? o->end : end;
	}
	return err;
}

static int judge(struct hb_look *l, const struct hb_device *v, const struct between *x, u64 launches)
{
	u64 kernel, call;
	struct hb_draft *d;
	char a[32], b[32];

	if (!hb_look__at_least(l, GAPS, hb_share(x->ns, v->end - v->begin)))
		return 0;
	if (medians(l->s, v, &kernel, &call))
		return -ENOMEM;
	if (hb_share(v->eager_short, v->eager) < hb_look__param(l, SHORT) && kernel <= call
		? !hb_look__at_least(l, TINY, hb_share(v->kernels_10us, v->kernels))
		: !hb_look__at_least(l, SHORT, hb_share(v->eager_short, v->eager)))
		return 0;
	d = hb_look__find(l, "%llu launches a step one by one; the median kernel takes %s, its launch %s",
			  (unsigned long long)launches, hb_text__ns(a, sizeof(a), kernel),
			  hb_text__ns(b, sizeof(b), call));
	if (!d)
		return -ENOMEM;
	hb_draft__pid(d, v->pid);
	hb_draft__device(d, v->index);
	return add_between(d, l->s, v, x);
}

static int by_device(struct hb_look *l, const struct hb_device *v)
{
	struct between x = {.p = hb_steps__of_pid(l->s->steps, v->pid),
			    .longest = hb_look__param(l, LONGEST)};
	u64 launches = v->launches, eager = 1000000;
	bool steps = x.p && x.p->n;
	int err;

	if (steps && of_steps(x.p, &launches, &eager))
		return -ENOMEM;
	if (!steps && has_graphs(v))
		eager = 0;
	hb_look__subject(l);
	if (!hb_look__at_least(l, LAUNCHES, launches) || !hb_look__at_least(l, EAGER, eager))
		return 0;
	err = find_between(l->s, v, &x);
	err = err ? err : judge(l, v, &x, launches);
	hb_ivs__free(&x.idle);
	return err;
}

/* ---- without ---- */

static bool has_device(const struct hb_scene *s, u32 pid)
{
	for (u32 i = 0; s->dev && i < hb_devices__count(s->dev); i++)
		if (hb_devices__at(s->dev, i)->pid == pid)
			return true;
	return false;
}

static int by_host(struct hb_look *l, const struct hb_series *p)
{
	const struct hb_sets *idle = hb_scene__exposed(l->s, p->dispatch);
	u64 launches, eager, launching = 0, waiting = 0;
	struct hb_draft *d;
	char who[64];
	int err = 0;

	if (!p->n || has_device(l->s, p->pid))
		return 0;
	if (of_steps(p, &launches, &eager))
		return -ENOMEM;
	for (u32 i = 0; i < p->n; i++) {
		launching += p->step[i].last_op - p->step[i].first_op;
		waiting += p->step[i].wait_ns;
	}
	hb_look__subject(l);
	if (!hb_look__at_least(l, LAUNCHES, launches) || !hb_look__at_least(l, EAGER, eager) ||
	    !hb_look__at_least(l, LAUNCHING, hb_share(launching, p->sum)) ||
	    !hb_look__at_most(l, WAITING, hb_share(waiting, p->sum)))
		return 0;
	d = hb_look__find(
	    l,
	    "%s makes %llu launches a step one by one, and the device has done them as soon as the last one "
	    "is made",
	    hb_scene__thread_text(l->s, p->dispatch, who, sizeof(who)), (unsigned long long)launches);
	if (!d)
		return -ENOMEM;
	hb_draft__pid(d, p->pid);
	hb_draft__confidence(d, HB_CONFIDENCE_MEDIUM, "without device records");
	for (u32 i = 0; i < p->n && !err; i++) {
		struct hb_case c = {.begin = p->step[i].first_op,
				    .end = p->step[i].last_op,
				    .thread = p->dispatch,
				    .stack = stack_in(l->s, p, &p->step[i])};

		/* Nobody waits at the end, so the device was waiting: when, is not known. */
		if (c.end > c.begin)
			err = hb_draft__add_sets(d, &c, idle);
	}
	return err;
}

static int detect(struct hb_look *l)
{
	int err = hb_look__devices(l, by_device);

	return err ? err : hb_look__series(l, by_host);
}

HB_PATTERN(p08_launch_storm) = {
    .id = "P08",
    .layer = "dispatch",
    .title = "launch storm without graphs",
    .rank = HB_RANK_STRUCTURE,
    .needs = HB_NEED_ACCEL,
    .params = params,
    .rule = "a step launches many kernels one by one, most of them shorter than their own launch, and the "
	    "device idles in "
	    "between. Without device records: the launching takes most of the step and nobody waits for the "
	    "device at its end",
    .fix = "capture a graph for each batch size, fuse kernels, programmatic dependent launch; vLLM: without "
	   "--enforce-eager; SGLang: without --disable-cuda-graph",
    .ref = "vllm-project/vllm#1926; ggml-org/llama.cpp#6763; pegainfer-project/pegainfer#911",
    .traps = "a prefill's long kernels need no graph; a decode that is bound by the device gains 3 %",
    .settle = "the same batch with and without graphs",
    .record = "timed=launch,graph",
    .detect = detect,
};
