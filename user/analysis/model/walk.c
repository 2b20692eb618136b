/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The backward walk: from the end of a stretch on one thread to its begin, every nanosecond charged once. */
#include "analysis/model/path_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Jumps without a charge in between: more are a circle of wake-ups at one moment. */
#define JUMPS_MAX 64

struct walk {
	const struct hb_timeline *tl;
	const struct hb_wake *wk;
	struct hb_walk_ops *ops;
	const struct hb_queues *queues;
	struct hb_segs *out;
	u64 begin, t;
	u32 thread;
	u32 via_thread, via;
	u32 jumps;
};

static int charge(struct walk *x, u64 from, enum hb_seg_kind kind, u32 item, u32 stack)
{
	u64 begin = from > x->begin ? from : x->begin;

	if (begin >= x->t)
		return 0;
	if (x->out->n == x->out->cap) {
		u32 cap = x->out->cap + x->out->cap / 2 + 64;
		struct hb_seg *p = realloc(x->out->seg, cap * sizeof(*p));

		if (!p)
			return -ENOMEM;
		x->out->seg = p;
		x->out->cap = cap;
	}
	x->out->seg[x->out->n++] = (struct hb_seg){.begin = begin,
						   .end = x->t,
						   .thread = x->thread,
						   .stack = stack,
						   .item = item,
						   .via_thread = x->via_thread,
						   .via = x->via,
						   .kind = kind};
	x->t = begin;
	x->jumps = 0;
	return 0;
}

/* The outermost call that holds the moment before t; HB_NONE. */
static u32 call_at(const struct walk *x)
{
	u32 i = hb_timeline__at(x->tl, x->thread, HB_TL_CALL, x->t - 1), found = HB_NONE, n;
	const struct hb_tl_call *c = hb_timeline__calls(x->tl, x->thread, &n);

	for (; i != HB_NONE; i = c[i].at.outer)
		if (c[i].at.end >= x->t)
			found = i;
	return found;
}

/* Latest end, by t, of an interval of this kind that began before t, if it is after `low`. Moments are passed
 * over: a launch of which only the entry was seen does not cut a stretch. */
static u64 last_end(const struct walk *x, enum hb_tl_kind kind, u64 low)
{
	u32 i = hb_timeline__from(x->tl, x->thread, kind, x->t);
	const struct hb_span *s = NULL;
	u64 last = low;

	while (i-- > 0) {
		s = hb_timeline__span(x->tl, x->thread, kind, i);
		if (s->end > s->begin || s->begin <= low)
			break;
	}
	for (; i != HB_NONE; i = s->outer) {
		s = hb_timeline__span(x->tl, x->thread, kind, i);
		if (s->end <= x->t && s->end > last)
			last = s->end;
	}
	return last;
}

static u32 sample_in(const struct walk *x, u64 begin)
{
	u32 n, i = hb_timeline__from(x->tl, x->thread, HB_TL_SAMPLE, x->t);
	const struct hb_tl_sample *s = hb_timeline__samples(x->tl, x->thread, &n);

	while (i-- > 0 && s[i].at.begin >= begin)
		if (s[i].at.stack)
			return s[i].at.stack;
	return 0;
}

static u64 later(u64 a, u64 b)
{
	return a > b ? a : b;
}

/* It spun for a message until t: to whom put it there, when that was. */
static int message(struct walk *x, const struct hb_message *m)
{
	int err;

	if (++x->jumps > JUMPS_MAX)
		return charge(x, x->begin, HB_SEG_UNKNOWN, HB_NONE, 0);
	err = charge(x, m->put, HB_SEG_RUN, HB_NONE, 0);
	x->via_thread = x->thread;
	x->via = HB_NONE;
	x->thread = m->from;
	return err;
}

/* It ran up to t, outside of waits for the device. */
static int run(struct walk *x, u32 call)
{
	const struct hb_tl_thread *t = hb_timeline__thread(x->tl, x->thread);
	u64 from = last_end(x, HB_TL_SLEEP, hb_timeline__start(x->tl));
	const struct hb_message *m;
	u32 n, gc;

	if (t->born >= x->t || x->t <= hb_timeline__start(x->tl))
		return charge(x, x->begin, HB_SEG_OUTSIDE, HB_NONE, 0);
	from = later(from, t->born);
	if (call != HB_NONE) { /* of a wait for the device: after it was done */
		const struct hb_tl_call *c = &hb_timeline__calls(x->tl, x->thread, &n)[call];

		if (hb_call__waited(c))
			from = later(from, hb_call__done(x->tl, x->thread, call, NULL));
		return charge(x, later(from, c->at.begin), HB_SEG_API, call, c->at.stack);
	}
	from = last_end(x, HB_TL_CALL, from);
	m = x->queues ? hb_queues__last(x->queues, x->thread, x->t) : NULL;
	if (m && m->taken > from) {
		if (m->taken == x->t)
			return message(x, m);
		from = m->taken;
	}
	gc = hb_timeline__at(x->tl, x->thread, HB_TL_GC, x->t - 1);
	if (gc != HB_NONE) {
		const struct hb_tl_gc *g = &hb_timeline__gcs(x->tl, x->thread, &n)[gc];

		return charge(x, later(from, g->at.begin), HB_SEG_GC, gc, g->at.stack);
	}
	from = last_end(x, HB_TL_GC, from);
	return charge(x, from, HB_SEG_RUN, HB_NONE, sample_in(x, later(from, x->begin)));
}

static enum hb_seg_kind kind_of(u8 by)
{
	static const u8 kinds[HB_WAKE_BYS] = {
	    [HB_WAKE_UNKNOWN] = HB_SEG_UNKNOWN, [HB_WAKE_THREAD] = HB_SEG_UNKNOWN,
	    [HB_WAKE_OUTSIDE] = HB_SEG_OTHER,	[HB_WAKE_TIMER] = HB_SEG_TIMER,
	    [HB_WAKE_NET] = HB_SEG_NET,		[HB_WAKE_DEVICE] = HB_SEG_DEVICE,
	    [HB_WAKE_DISK] = HB_SEG_DISK,	[HB_WAKE_PREEMPTED] = HB_SEG_SCHED,
	    [HB_WAKE_STOPPED] = HB_SEG_STOPPED, [HB_WAKE_OPEN] = HB_SEG_UNKNOWN,
	};

	return by < HB_WAKE_BYS ? kinds[by] : HB_SEG_UNKNOWN;
}

/* To the waker at the waking time. One that sleeps at that time itself sent before: the time since is on the
 * way. */
static int jump(struct walk *x, u32 at, const struct hb_tl_sleep *s, const struct hb_edge *e)
{
	u32 n, i = hb_timeline__at(x->tl, e->thread, HB_TL_SLEEP, x->t - 1);
	const struct hb_tl_sleep *w = hb_timeline__sleeps(x->tl, e->thread, &n);
	int err = 0;

	if (++x->jumps > JUMPS_MAX)
		return charge(x, s->at.begin, HB_SEG_UNKNOWN, at, s->at.stack);
	if (i != HB_NONE && hb_sleep__woken(&w[i]) > x->t) {
		if (w[i].at.begin <= s->at.begin)
			return charge(x, s->at.begin, HB_SEG_UNKNOWN, at, s->at.stack);
		err = charge(x, w[i].at.begin, e->guessed ? HB_SEG_NET : HB_SEG_UNKNOWN, at, s->at.stack);
	}
	x->via_thread = x->thread;
	x->via = at;
	x->thread = e->thread;
	return err;
}

/* It slept up to t. */
static int sleep_at(struct walk *x, u32 at)
{
	u32 n;
	const struct hb_edge *e = &hb_wake__edges(x->wk, x->thread, &n)[at];
	const struct hb_tl_sleep *s = &hb_timeline__sleeps(x->tl, x->thread, &n)[at];
	u64 woken = hb_sleep__woken(s);

	if (e->by == HB_WAKE_PREEMPTED)
		return charge(x, s->at.begin, HB_SEG_SCHED, at, s->at.stack);
	if (x->t > woken && s->ready)
		return charge(x, woken, HB_SEG_SCHED, at, s->at.stack);
	if (x->t == woken && e->by == HB_WAKE_THREAD && e->thread != HB_NONE && e->thread != x->thread)
		return jump(x, at, s, e);
	return charge(x, s->at.begin, kind_of(e->by), at, s->at.stack);
}

/* What a piece of work waited for last on the device: the one before it on its stream, or another stream's by
 * an event. */
static u32 followed(const struct hb_walk_op *op, const struct hb_walk_op *o)
{
	if (o->event == HB_NONE || o->prev == HB_NONE)
		return o->event == HB_NONE ? o->prev : o->event;
	return op[o->event].o->end > op[o->prev].o->end ? o->event : o->prev;
}

static u64 back_to(const struct walk *x, u64 t, u64 from)
{
	return from >= t ? t : later(from, x->begin);
}

/* From one piece of work to what it followed, or, when that was done before it was launched, to the launch.
 * There the walk is on the host again. */
static int through_device(struct walk *x, u32 pid, const struct hb_walk_op *op, u32 at, u32 call, u32 stack)
{
	const struct hb_launch *l = NULL;
	u64 t = back_to(x, x->t, op[at].o->end);
	u32 thread = HB_NONE;
	int err;

	while (t > x->begin) {
		const struct hb_walk_op *o = &op[at], *late;
		u32 before = followed(op, o), there, whose = pid;

		/* A collective that waited: on with what held the last rank up. */
		late = hb_walk_ops__late(x->ops, &whose, o, &there);
		if (late && late[there].o->begin < t) {
			t = back_to(x, t, late[there].o->begin);
			op = late;
			at = there;
			pid = whose;
			continue;
		}
		t = back_to(x, t, o->o->begin);
		if (before == HB_NONE || before >= at || (o->o->launch && op[before].o->end < o->o->asked)) {
			l = hb_walk_ops__launch(x->ops, o, &thread);
			break;
		}
		t = back_to(x, t, op[before].o->end);
		at = before;
	}
	if (t <= x->begin)
		return charge(x, x->begin, HB_SEG_DEVICE, call, stack);
	if (!l || l->begin >= t) { /* launched before the window, or clocks differ */
		err = charge(x, t, HB_SEG_DEVICE, call, stack);
		return err ? err : charge(x, x->begin, HB_SEG_OUTSIDE, call, stack);
	}
	err = charge(x, back_to(x, t, l->end), HB_SEG_DEVICE, call, stack);
	x->via_thread = x->thread;
	x->via = HB_NONE;
	x->thread = thread;
	return err;
}

/* It waited for the device up to t. */
static int device(struct walk *x, u32 call, const struct hb_tl_call *c)
{
	u32 last, pid = hb_timeline__thread(x->tl, x->thread)->pid;
	const struct hb_walk_op *op = hb_walk_ops__of(x->ops, pid, x->t, &last);

	if (!op || op[last].o->end <= c->at.begin || ++x->jumps > JUMPS_MAX)
		return charge(x, c->at.begin, HB_SEG_DEVICE, call, c->at.stack);
	return through_device(x, pid, op, last, call, c->at.stack);
}

static int one(struct walk *x)
{
	u32 call = call_at(x), n, sleep, thread = x->thread;
	const struct hb_tl_call *c = hb_timeline__calls(x->tl, x->thread, &n);
	u64 t = x->t;
	int err;

	if (call != HB_NONE && hb_call__waited(&c[call]) && t <= hb_call__done(x->tl, x->thread, call, NULL))
		return device(x, call, &c[call]);
	sleep = hb_timeline__at(x->tl, x->thread, HB_TL_SLEEP, x->t - 1);
	err = sleep != HB_NONE ? sleep_at(x, sleep) : run(x, call);
	/* Intervals of a damaged window may contradict each other: then nothing is said of the rest. */
	if (!err && x->t == t && x->thread == thread)
		err = charge(x, x->begin, HB_SEG_UNKNOWN, HB_NONE, 0);
	return err;
}

int hb_walk(const struct hb_ways *ways, u32 thread, u64 begin, u64 end, struct hb_segs *out)
{
	struct walk x = {.tl = ways->tl,
			 .wk = ways->wk,
			 .ops = ways->ops,
			 .queues = ways->queues,
			 .out = out,
			 .begin = begin,
			 .t = end,
			 .thread = thread,
			 .via_thread = HB_NONE,
			 .via = HB_NONE};
	u32 first = out->n;
	int err = 0;

	while (!err && x.t > x.begin)
		err = one(&x);
	if (hb_walk_ops__oom(ways->ops))
		err = -ENOMEM;
	for (u32 a = first, b = out->n; a + 1 < b; a++, b--) {
		struct hb_seg s = out->seg[a];

		out->seg[a] = out->seg[b - 1];
		out->seg[b - 1] = s;
	}
	return err;
}
