/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Copies from or to pageable memory: "asynchronous" ones block, and run at a fraction of the link's speed. */
#include <errno.h>
#include <string.h>

#include "analysis/patterns/pattern.h"
#include "base/text.h"

enum { COPIES, CALL, BYTES, SPEED, SHARE };

static const struct hb_param params[] = {
    [COPIES] = {"copies", HB_UNIT_COUNT, 10, "such copies in the window"},
    [CALL] = {"call", HB_UNIT_NS, 50000,
	      "without device records: an asynchronous copy whose call takes so long counts as one"},
    [BYTES] = {"bytes", HB_UNIT_BYTES, 65537,
	       "and copies at least so much: smaller ones are read-backs (P02)"},
    [SPEED] = {"speed", HB_UNIT_RATE, 12000000000,
	       "and copies fewer bytes a second than this: pinned memory is faster"},
    [SHARE] = {"blocked_share", HB_UNIT_SHARE, 10000, "time inside their calls, as a part of the steps"},
    {0},
};

struct sums {
	u64 n, blocked, bytes;
	bool inferred;
	const char *name;
};

static bool pageable(const struct hb_device_op *o)
{
	return o->kind == HB_DEVKIND_MEMCPY &&
	       (o->src == HB_MEMKIND_PAGEABLE || o->dst == HB_MEMKIND_PAGEABLE);
}

/* What the same copy would take from pinned memory, ns. */
static u64 pinned(const struct hb_device_op *o, u64 speed)
{
	u64 dur = o->end - o->begin, ns = (u64)((double)o->size * 1e9 / (double)speed);

	return ns < dur ? ns : dur;
}

/* The device did nothing but copy for longer than it would from pinned memory, or nothing at all. */
static void beside_compute(const struct hb_device *v, u64 speed, struct hb_ivs *out)
{
	struct hb_ivs all = {0}, work = {0};

	for (u32 i = 0; i < v->n_ops; i++) {
		const struct hb_device_op *o = &v->op[i];

		if (o->work != HB_WORK_MEMCPY)
			hb_ivs__add(&work, o->begin, o->end);
		else if (pageable(o))
			hb_ivs__add(&work, o->begin, o->begin + pinned(o, speed));
	}
	hb_ivs__join(&work);
	hb_ivs__add(&all, v->begin, v->end);
	hb_ivs__minus(&all, &work, out);
	out->oom |= work.oom || all.oom;
	hb_ivs__free(&all);
	hb_ivs__free(&work);
}

static bool any_pageable(const struct hb_device *v)
{
	for (u32 i = 0; i < v->n_copies; i++)
		if (hb_copies__pageable(&v->copies[i]))
			return true;
	return false;
}

/* By device records, of one device: sums, or cases. */
static int of_device(struct hb_look *l, const struct hb_device *v, struct sums *sum, struct hb_draft *d)
{
	const struct hb_scene *s = l->s;
	struct hb_ivs free_time = {0};
	int err = 0;

	if (!any_pageable(v)) /* mostly */
		return 0;
	if (d)
		beside_compute(v, hb_look__param(l, SPEED), &free_time);
	for (u32 i = 0; i < v->n_ops && !err; i++) {
		const struct hb_launch *call =
		    pageable(&v->op[i]) ? hb_devices__launch_of(s->dev, &v->op[i]) : NULL;
		struct hb_case c;

		if (!call || call->end <= call->begin)
			continue;
		sum->n++;
		sum->blocked += call->end - call->begin;
		sum->bytes += v->op[i].size;
		c = (struct hb_case){.begin = call->begin,
				     .end = call->end,
				     .thread =
					 hb_timeline__by_tid(s->tl, hb_window__task(s->w, call->task)->tid),
				     .stack = call->stack};
		if (d)
			err = hb_draft__add_idle(d, &c, &free_time, &free_time);
	}
	hb_ivs__free(&free_time);
	return err;
}

struct slow { /* what such a call is */
	u64 least, bytes, speed;
};

static bool slow_call(const struct hb_scene *s, const struct hb_tl_call *c, u32 thread, const struct slow *r)
{
	struct hb_use use;

	if ((c->copy != HB_COPY_DTOH && c->copy != HB_COPY_HTOD) || c->at.end - c->at.begin < r->least ||
	    c->bytes < r->bytes || !strstr(hb_scene__call_name(s, c), "Async"))
		return false;
	use = hb_timeline__use(s->tl, thread, c->at.begin, c->at.end);
	use.running += use.slept; /* not for want of a CPU */
	return use.running >= r->least && hb_rate(c->bytes, use.running) < r->speed;
}

/* Without: asynchronous copies whose call blocks. Sums, or cases. */
static int by_calls(struct hb_look *l, const struct hb_series *p, struct sums *sum, struct hb_draft *d)
{
	const struct slow r = {.least = hb_look__param(l, CALL),
			       .bytes = hb_look__param(l, BYTES),
			       .speed = hb_look__param(l, SPEED)};
	struct hb_byop_calls of = hb_byop__calls(l->s->byop, p->dispatch, HB_OP_COPY, HB_OP_COPY);
	int err = 0;

	sum->inferred = true;
	for (u32 i; !err && (i = hb_byop__next(&of)) != HB_NONE;) {
		const struct hb_tl_call *c = &of.call[i];
		struct hb_case k = {
		    .begin = c->at.begin, .end = c->at.end, .thread = p->dispatch, .stack = c->at.stack};

		if (!slow_call(l->s, c, p->dispatch, &r))
			continue;
		sum->n++;
		sum->blocked += k.end - k.begin;
		sum->bytes += c->bytes;
		sum->name = hb_scene__call_name(l->s, c);
		if (d)
			err = hb_draft__add_idle(d, &k, NULL, NULL);
	}
	return err;
}

static int each(struct hb_look *l, const struct hb_series *p, struct sums *sum, struct hb_draft *d)
{
	bool any = false;
	int err = 0;

	for (u32 i = 0; l->s->dev && i < hb_devices__count(l->s->dev) && !err; i++) {
		const struct hb_device *v = hb_devices__at(l->s->dev, i);

		if (v->pid != p->pid)
			continue;
		any = true;
		err = of_device(l, v, sum, d);
	}
	return any || err ? err : by_calls(l, p, sum, d);
}

static int look_at(struct hb_look *l, const struct hb_series *p)
{
	struct sums sum = {0};
	struct hb_draft *d;
	char who[64], bytes[32], time[32];
	int err = each(l, p, &sum, NULL);

	hb_look__subject(l);
	if (err || !sum.n || !hb_look__at_least(l, COPIES, sum.n) ||
	    !hb_look__at_least(l, SHARE, hb_share(sum.blocked, hb_scene__step_time(l->s, p->pid))))
		return err;
	d = hb_look__find(l, "%s spends %s in %llu copies of %s in all that %s",
			  hb_scene__thread_text(l->s, p->dispatch, who, sizeof(who)),
			  hb_text__ns(time, sizeof(time), sum.blocked), (unsigned long long)sum.n,
			  hb_text__bytes(bytes, sizeof(bytes), sum.bytes),
			  sum.inferred ? "should not block" : "use pageable memory");
	if (!d)
		return -ENOMEM;
	hb_draft__pid(d, p->pid);
	if (sum.inferred)
		hb_draft__confidence(
		    d, HB_CONFIDENCE_MEDIUM,
		    "the kind of memory is not recorded: these calls block as those with pageable memory do");
	else
		hb_draft__say(d, "; what pinned memory would take, too, at %s/s, is not counted",
			      hb_text__bytes(bytes, sizeof(bytes), hb_look__param(l, SPEED)));
	sum = (struct sums){0};
	return each(l, p, &sum, d);
}

static int detect(struct hb_look *l)
{
	return hb_look__series(l, look_at);
}

HB_PATTERN(p03_pageable_copy) = {
    .id = "P03",
    .layer = "runtime",
    .title = "copies with pageable memory",
    .rank = HB_RANK_API,
    .explains = "P02 P04",
    .needs = HB_NEED_ACCEL,
    .params = params,
    .rule = "several copies use pageable memory (by device records; without them: asynchronous copies whose "
	    "calls block) and "
	    "their calls take a good part of the steps. With device records a copy's own time counts as idle "
	    "as far as "
	    "pinned memory would not need it",
    .fix = "a pinned staging buffer that is kept from step to step",
    .ref = "vllm-project/vllm-omni#4860 (240 ms a step from a buffer that silently lost its pinning); "
	   "NVIDIA/TensorRT-LLM#3147; vllm-project/vllm#54660; vllm-project/vllm-ascend#4113 (17.9 to 17.0 "
	   "ms). CUDA: a "
	   "pageable copy to the device may synchronise the stream first, one to the host returns when it is "
	   "done",
    .traps = "tiny copies to the device are inlined and cheap; a full launch queue blocks copies as well; "
	     "ROCm says \"host\" only",
    .settle = "a trace of the engine's own profiler, imported: its records have the kind of memory",
    .detect = detect,
};
