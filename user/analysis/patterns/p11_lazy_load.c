/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A module is loaded at first use: the loader waits for the device under the context's lock, and so do other
 * threads. */
#include <errno.h>
#include <string.h>

#include "analysis/patterns/pattern.h"
#include "base/text.h"

enum { LOAD, AFTER, LOADS };

static const struct hb_param params[] = {
    [LOAD] = {"load", HB_UNIT_NS, 1000000, "a load, or a launch with a load inside, that takes so long"},
    [AFTER] = {"after", HB_UNIT_NS, 100000,
	       "calls of other threads that began in it and end within so much after it were held up by it"},
    [LOADS] = {"loads", HB_UNIT_COUNT, 1,
	       "such loads that held another thread, or the dispatch thread itself, up"},
    {0},
};

static bool loads(const struct hb_scene *s, const struct hb_tl_call *c, u64 least)
{
	const char *name;

	if (c->op != HB_OP_OTHER || c->at.end - c->at.begin < least)
		return false;
	name = hb_scene__call_name(s, c);
	return (strstr(name, "ModuleLoad") || strstr(name, "LibraryLoad"));
}

/* Longest call of another thread of the process that the load at [begin, end) held up. */
static u32 held_up(const struct hb_look *l, u32 pid, u32 self, u64 begin, u64 end)
{
	u64 after = hb_look__param(l, AFTER);

	for (u32 t = hb_timeline__of_pid(l->s->tl, pid, HB_NONE); t != HB_NONE;
	     t = hb_timeline__of_pid(l->s->tl, pid, t)) {
		u32 n;
		const struct hb_tl_call *c = hb_timeline__calls(l->s->tl, t, &n);

		for (u32 i = hb_timeline__from(l->s->tl, t, HB_TL_CALL, begin);
		     t != self && i < n && c[i].at.begin < end; i++)
			if (c[i].at.end >= end && c[i].at.end - end <= after)
				return t;
	}
	return HB_NONE;
}

struct sums {
	u64 n, max;
	u32 thread, stack, other;
};

static int one(const struct hb_look *l, u32 pid, u32 t, const struct hb_tl_call *c, struct sums *sum,
	       struct hb_draft *d)
{
	struct hb_case k = {.begin = c->at.begin, .end = c->at.end, .thread = t, .stack = c->at.stack};
	u32 other = held_up(l, pid, t, k.begin, k.end);

	if (other == HB_NONE && !hb_scene__leads(l->s, t))
		return 0;
	sum->n++;
	if (k.end - k.begin > sum->max)
		*sum = (struct sums){
		    .n = sum->n, .max = k.end - k.begin, .thread = t, .stack = k.stack, .other = other};
	if (other != HB_NONE) { /* it is the other one that stands still */
		k.waker = hb_scene__task(l->s, t);
		k.thread = other;
	}
	return d ? hb_draft__add(d, &k) : 0;
}

static int each(const struct hb_look *l, u32 pid, struct sums *sum, struct hb_draft *d)
{
	u64 least = hb_look__param(l, LOAD);
	int err = 0;

	for (u32 t = hb_timeline__of_pid(l->s->tl, pid, HB_NONE); t != HB_NONE && !err;
	     t = hb_timeline__of_pid(l->s->tl, pid, t)) {
		struct hb_byop_calls of = hb_byop__calls(l->s->byop, t, HB_OP_OTHER, HB_OP_OTHER);

		for (u32 i; !err && (i = hb_byop__next(&of)) != HB_NONE;)
			if (loads(l->s, &of.call[i], least))
				err = one(l, pid, t, &of.call[i], sum, d);
	}
	return err;
}

static int look_at(struct hb_look *l, const struct hb_series *p)
{
	struct sums sum = {.other = HB_NONE};
	struct hb_draft *d;
	char who[64], other[64], longest[32];

	each(l, p->pid, &sum, NULL);
	hb_look__subject(l);
	if (!sum.n || !hb_look__at_least(l, LOADS, sum.n))
		return 0;
	d = hb_look__find(l, "%s loads modules %llu times, up to %s",
			  hb_scene__thread_text(l->s, sum.thread, who, sizeof(who)),
			  (unsigned long long)sum.n, hb_text__ns(longest, sizeof(longest), sum.max));
	if (!d)
		return -ENOMEM;
	if (sum.other != HB_NONE)
		hb_draft__say(d, "; %s waits meanwhile",
			      hb_scene__thread_text(l->s, sum.other, other, sizeof(other)));
	hb_draft__pid(d, p->pid);
	return each(l, p->pid, &sum, d);
}

static int detect(struct hb_look *l)
{
	return hb_look__series(l, look_at);
}

HB_PATTERN(p11_lazy_load) = {
    .id = "P11",
    .layer = "driver",
    .title = "lazy module load and context lock",
    .rank = HB_RANK_INTERPRETER,
    .needs = HB_NEED_MODULE | HB_NEED_ACCEL,
    .params = params,
    .rule = "a module or library is loaded onto the device while serving, for a millisecond or more, by the "
	    "dispatch thread or "
	    "while a call of another thread of the process waits for it",
    .fix = "eager module loading (CUDA_MODULE_LOADING=EAGER), or use every kernel once in the warm-up",
    .ref = "meta-pytorch/torchcomms#2334 (the loader waits for the device's queue under the context lock); "
	   "sgl-project/sglang#35711",
    .traps = "start-up",
    .settle = "a run with eager loading",
    .detect = detect,
};
