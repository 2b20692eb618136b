/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Collectives take longer than their bytes take over the devices' links, or go over TCP. */
#include <errno.h>
#include <stdlib.h>

#include "analysis/model/dist.h"
#include "analysis/patterns/pattern.h"
#include "base/text.h"

enum { LEAST, COUNT, TIME, SPEED, RATE };

static const struct hb_param params[] = {
    [LEAST] = {"least", HB_UNIT_BYTES, 1 << 20, "messages smaller than this are limited by latency"},
    [COUNT] = {"count", HB_UNIT_COUNT, 20, "such collectives, at least"},
    [TIME] = {"time", HB_UNIT_SHARE, 50000,
	      "such collectives without the waits for the last rank, of the time that the device is busy"},
    [SPEED] = {"speed", HB_UNIT_SHARE, 200000,
	       "bus bandwidth of the median collective, of the link's speed, at most"},
    [RATE] = {"rate", HB_UNIT_RATE, 10, "sleeps on TCP of a thread of the collective library: else it idles"},
    {0},
};

/* ---- by size and time ---- */

struct sums {
	u64 n, time;  /* large ones; ns of the rank that waited least */
	u64 median;   /* bus bandwidth, bytes a second */
	double link;  /* the same of the devices' links; 0 not known */
	bool unsized; /* no sizes are told */
	bool missing; /* of some ranks there are no records */
};

/* What each rank's link must carry of a message of n ranks (nccl-tests, PERFORMANCE.md). */
static double carried(const struct hb_coll *x, u32 n)
{
	double part = (double)(n - 1) / n;

	switch (x->formula ? x->formula - 1 : HB_ROOF_SEND) {
	case HB_ROOF_ALL_REDUCE:
		return 2 * part * (double)x->message;
	case HB_ROOF_SHARE_OUT:
		return part * (double)x->message;
	default:
		return (double)x->message;
	}
}

static bool is_large(const struct hb_look *l, const struct hb_coll *x)
{
	return x->formula && x->shortest && x->message >= hb_look__param(l, LEAST);
}

static int sum_up(const struct hb_look *l, const struct hb_coll_group *g, struct sums *x)
{
	const struct hb_roof_device *dev =
	    l->s->roofline ? hb_roofline__device(l->s->roofline, g->rank[0].device) : NULL;
	u64 *speed = malloc((g->n + 1ULL) * sizeof(*speed));

	if (!speed)
		return -ENOMEM;
	x->unsized = true;
	x->missing = g->world != g->n_ranks;
	x->link = dev && dev->peak ? dev->peak->link * 1e12 : 0;
	for (u32 i = 0; i < g->n; i++) {
		const struct hb_coll *c = &g->coll[i];

		x->unsized &= !c->formula;
		if (!is_large(l, c))
			continue;
		speed[x->n++] = (u64)(carried(c, g->n_ranks) * 1e9 / (double)c->shortest);
		x->time += c->shortest;
	}
	x->median = hb_dist__median(speed, x->n);
	free(speed);
	return 0;
}

static int tell(struct hb_look *l, const struct hb_coll_group *g, const struct sums *x)
{
	const struct hb_device *v = hb_devices__at(l->s->dev, g->rank[0].device);
	char least[32];
	struct hb_draft *d =
	    hb_look__find(l,
			  "collectives of %u ranks move %.1f GB/s over each rank's link in the median of "
			  "%llu (messages of %s and "
			  "more), where it is made for %.0f GB/s; waits for the last rank are not in that",
			  g->n_ranks, (double)x->median / 1e9, (unsigned long long)x->n,
			  hb_text__bytes(least, sizeof(least), hb_look__param(l, LEAST)), x->link / 1e9);
	int err = 0;

	if (!d)
		return -ENOMEM;
	hb_draft__pid(d, v->pid);
	hb_draft__device(d, v->index);
	hb_draft__confidence(
	    d, HB_CONFIDENCE_MEDIUM,
	    "which way the bytes take is not recorded: between hosts, or without links between "
	    "the devices, less is to be had");
	for (u32 i = 0; i < g->n && !err; i++) {
		const struct hb_device_op *o = &v->op[hb_coll__op(l->s->coll, g, i, 0)];
		const struct hb_launch *k = hb_devices__launch_of(l->s->dev, o);
		struct hb_case c = {
		    .begin = o->begin, .end = o->end, .thread = HB_NONE, .stack = k ? k->stack : 0};
		u64 light = (u64)(carried(&g->coll[i], g->n_ranks) * 1e9 / x->link);

		if (is_large(l, &g->coll[i]))
			err = hb_draft__add_device(
			    d, &c, g->coll[i].shortest > light ? g->coll[i].shortest - light : 0);
	}
	return err;
}

static int by_group(struct hb_look *l, const struct hb_coll_group *g)
{
	const struct hb_device *v = hb_devices__at(l->s->dev, g->rank[0].device);
	struct sums x = {0};
	int err = sum_up(l, g, &x);

	if (err)
		return err;
	if (x.unsized)
		hb_look__unchecked(l, 0,
				   "needs sizes of the collectives: the profiler's operators that say them "
				   "(record_param_comms; record_shapes=True)");
	else if (x.missing)
		hb_look__unchecked(l, HB_NEED_RANK_DEVICES, "needs %s; here are %u of %u",
				   hb_need__text(HB_NEED_RANK_DEVICES), g->n_ranks, g->world);
	else if (!(x.link > 0))
		hb_look__unchecked(
		    l, 0,
		    "needs the speed of the devices' links: name the device (--gpu NAME), or give its "
		    "link (--peaks FILE)");
	if (x.unsized || x.missing || !(x.link > 0))
		return 0;
	hb_look__subject(l);
	if (!hb_look__at_least(l, COUNT, x.n) || !hb_look__at_least(l, TIME, hb_share(x.time, v->busy)) ||
	    !hb_look__at_most(l, SPEED, (u64)((double)x.median / x.link * 1e6)))
		return 0;
	return tell(l, g, &x);
}

/* ---- by the library's threads ---- */

static bool in_library(const struct hb_scene *s, u32 pid, u32 stack)
{
	struct hb_stack st = stack ? hb_window__stack(s->w, pid, stack) : (struct hb_stack){0};

	for (u32 i = 0; i < st.n; i++) {
		const struct hb_loc *loc = hb_window__loc(s->w, st.locs[i]);
		const char *file = loc ? hb_text__basename(hb_window__string(s->w, loc->module)) : "";

		if (hb_text__glob("libnccl.so*", file) || hb_text__glob("librccl.so*", file))
			return true;
	}
	return false;
}

/* NCCL names its threads when it is told to (NCCL_SET_THREAD_NAME); else the stack tells. */
static bool on_socket(const struct hb_scene *s, u32 thread, const struct hb_tl_sleep *x, bool named)
{
	if (x->state == HB_TSTATE_RUNNING)
		return false;
	return named || (x->chankind == HB_CHAN_TCP &&
			 in_library(s, hb_timeline__thread(s->tl, thread)->pid, x->at.stack));
}

static u64 count_socket(const struct hb_scene *s, u32 thread, bool named, struct hb_draft *d, int *err)
{
	u32 n;
	const struct hb_tl_sleep *v = hb_timeline__sleeps(s->tl, thread, &n);
	u64 sum = 0;

	for (u32 i = 0; i < n && !*err; i++) {
		struct hb_case c = {
		    .begin = v[i].at.begin, .end = v[i].at.end, .thread = thread, .stack = v[i].at.stack};

		if (!on_socket(s, thread, &v[i], named))
			continue;
		sum++;
		if (d)
			*err = hb_draft__add(d, &c);
	}
	return sum;
}

static int by_thread(struct hb_look *l, u32 thread)
{
	const struct hb_task *task = hb_scene__task(l->s, thread);
	bool named = task && hb_text__glob("NCCL Sock*", hb_window__string(l->s->w, task->comm));
	char who[64];
	struct hb_draft *d;
	int err = 0;
	u64 n = count_socket(l->s, thread, named, NULL, &err);

	if (!n)
		return 0;
	hb_look__subject(l);
	if (!hb_look__at_least(l, RATE, hb_rate(n, l->s->wall)))
		return 0;
	d = hb_look__find(
	    l,
	    "collectives go over TCP: %s, a thread of the collective library, sleeps on its socket %llu "
	    "times",
	    hb_scene__thread_text(l->s, thread, who, sizeof(who)), (unsigned long long)n);
	if (!d)
		return -ENOMEM;
	hb_draft__pid(d, hb_timeline__thread(l->s->tl, thread)->pid);
	hb_draft__pass(d);
	hb_draft__confidence(d, HB_CONFIDENCE_MEDIUM,
			     "what it costs is told by device records of every rank only");
	count_socket(l->s, thread, named, d, &err);
	return err;
}

static int detect(struct hb_look *l)
{
	bool devices = false;
	int err = 0;

	for (u32 i = 0; i < hb_collectives__groups(l->s->coll) && !err; i++) {
		const struct hb_coll_group *g = hb_collectives__at(l->s->coll, i);

		if (g->source != HB_COLL_DEVICE)
			continue;
		devices = true;
		err = by_group(l, g);
	}
	for (u32 t = 0; t < hb_timeline__threads(l->s->tl) && !err; t++)
		err = by_thread(l, t);
	if (l->any) /* one that could be judged tells more than one that could not */
		l->is_unchecked = false;
	if (!devices && !l->any && !l->found)
		hb_look__unchecked(l, HB_NEED_RANK_DEVICES, "needs %s", hb_need__text(HB_NEED_RANK_DEVICES));
	return err;
}

HB_PATTERN(p46_slow_collective) = {
    .id = "P46",
    .layer = "comm",
    .title = "collective slow for its size",
    .rank = HB_RANK_OWN,
    .params = params,
    .rule =
	"with device records of every rank and sizes: the bus bandwidth of collectives of 1 MiB and more, by "
	"the rank that waited least, is a fifth of the devices' link or less, and they take a part of a "
	"device's "
	"time. Or a thread of the collective library sleeps on a TCP socket again and again: its transport "
	"is TCP",
    .fix = "transport, topology",
    .ref = "a public thread: NCCL fell back to TCP; nccl-tests (bus bandwidth)",
    .traps =
	"waiting for a late rank (P33), which is left out; ranks on several hosts, whose network is slower "
	"than the link between devices",
    .settle = "NCCL_DEBUG=INFO says the transport at start; nccl-tests on the same devices",
    .detect = detect,
};
