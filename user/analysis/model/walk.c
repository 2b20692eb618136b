/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The backward walk: from the end of a stretch on one thread to its begin, every nanosecond charged once. */
#include "analysis/model/path_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/model/spans.h"

/* Jumps without a charge in between: more are a circle of wake-ups at one moment. */
#define JUMPS_MAX 64

struct hb_walk_thread { /* what a walk asks of a thread again and again, and how far back it has come there */
	const struct hb_tl_thread *thread; /* NULL: not been there yet */
	const struct hb_tl_call *call;
	const struct hb_tl_sleep *sleep;
	const struct hb_edge *edge;
	u32 n_calls, n_sleeps;
	u32 calls, sleeps; /* that began before the moment of the walk */
	u32 left;	   /* sleeps when the walk left it last */
	bool gcs;
};

struct walk {
	const struct hb_ways *ways;
	const struct hb_timeline *tl;
	struct hb_segs *out;
	u64 begin, t;
	struct hb_walk_thread *on; /* of the thread */
	u32 thread;
	u32 via_thread, via;
	u32 jumps;
};

int hb_ways__open(struct hb_ways *w)
{
	w->threads = calloc(hb_timeline__threads(w->tl) + 1, sizeof(*w->threads));
	return w->threads ? 0 : -ENOMEM;
}

void hb_ways__close(struct hb_ways *w)
{
	free(w->threads);
	w->threads = NULL;
}

static void get_to_know(const struct hb_ways *w, u32 thread, struct hb_walk_thread *on)
{
	u32 n;

	on->thread = hb_timeline__thread(w->tl, thread);
	on->call = hb_timeline__calls(w->tl, thread, &on->n_calls);
	on->sleep = hb_timeline__sleeps(w->tl, thread, &on->n_sleeps);
	on->edge = hb_wake__edges(w->wk, thread, &n);
	on->calls = on->n_calls;
	on->sleeps = on->left = on->n_sleeps;
	hb_timeline__gcs(w->tl, thread, &n);
	on->gcs = n > 0;
}

/* Where a thread was when the walk comes to its moment. */
static struct hb_walk_thread *look(const struct walk *x, u32 thread)
{
	struct hb_walk_thread *on = &x->ways->threads[thread];

	if (!on->thread)
		get_to_know(x->ways, thread, on);
	on->calls = hb_spans__from(on->call, sizeof(*on->call), on->n_calls, on->calls, x->t);
	on->sleeps = hb_spans__from(on->sleep, sizeof(*on->sleep), on->n_sleeps, on->sleeps, x->t);
	return on;
}

/* At first for one of four records: what is not filled is no memory, and is given back at the end; what is
 * there already would have to be copied. */
static int grow(const struct hb_timeline *tl, struct hb_segs *s)
{
	u64 records = hb_timeline__count(tl, HB_TL_CALL) + hb_timeline__count(tl, HB_TL_SLEEP);
	u64 cap = s->cap ? 2ULL * s->cap : records / 4 + 64;
	struct hb_seg *p = cap <= UINT32_MAX ? realloc(s->seg, cap * sizeof(*p)) : NULL;

	if (!p)
		return -ENOMEM;
	s->seg = p;
	s->cap = (u32)cap;
	return 0;
}

static int charge(struct walk *x, u64 from, enum hb_seg_kind kind, u32 item)
{
	u64 begin = from > x->begin ? from : x->begin;

	if (begin >= x->t)
		return 0;
	if (x->out->n == x->out->cap && grow(x->tl, x->out))
		return -ENOMEM;
	x->out->seg[x->out->n++] = (struct hb_seg){.begin = begin,
						   .end = x->t,
						   .thread = (u16)x->thread,
						   .item = item,
						   .via_thread = x->via_thread,
						   .via = x->via,
						   .kind = (u8)kind};
	x->t = begin;
	x->jumps = 0;
	return 0;
}

/* The outermost call that holds the moment before t; HB_NONE. */
static u32 call_at(const struct walk *x)
{
	const struct hb_tl_call *c = x->on->call;
	u32 i = hb_spans__open(c, sizeof(*c), x->on->calls, x->t - 1), found = HB_NONE;

	for (; i != HB_NONE; i = c[i].at.outer)
		if (c[i].at.end >= x->t)
			found = i;
	return found;
}

/* The sleep that holds it. */
static u32 sleep_at(const struct walk *x, const struct hb_walk_thread *on)
{
	return hb_spans__open(on->sleep, sizeof(*on->sleep), on->sleeps, x->t - 1);
}

/* Latest end, by t, of the first `from` intervals (they began before t), if it is after `low`. Moments are
 * passed over: a launch of which only the entry was seen does not cut a stretch. */
static inline u64 last_end(const void *item, size_t size, u32 from, u64 t, u64 low)
{
	const struct hb_span *s = NULL;
	u64 last = low;
	u32 i = from;

	while (i-- > 0) {
		s = hb_spans__at(item, size, i);
		if (s->end > s->begin || s->begin <= low)
			break;
	}
	for (; i != HB_NONE; i = s->outer) {
		s = hb_spans__at(item, size, i);
		if (s->end <= t && s->end > last)
			last = s->end;
	}
	return last;
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
		return charge(x, x->begin, HB_SEG_UNKNOWN, HB_NONE);
	err = charge(x, m->put, HB_SEG_RUN, HB_NONE);
	x->via_thread = x->thread;
	x->via = HB_NONE;
	x->thread = m->from;
	return err;
}

/* When the device was done with what a call waited for. */
static u64 done(const struct walk *x, u32 call)
{
	return x->on->n_sleeps ? hb_call__done(x->tl, x->thread, call, NULL) : x->on->call[call].at.end;
}

/* It ran in a call up to t. */
static int run_in(struct walk *x, u32 call, u64 from)
{
	const struct hb_tl_call *c = &x->on->call[call];

	if (hb_call__waited(c)) /* of a wait for the device: after it was done */
		from = later(from, done(x, call));
	return charge(x, later(from, c->at.begin), HB_SEG_API, call);
}

/* It ran up to t, outside of waits for the device. */
static int run(struct walk *x, u32 call)
{
	const struct hb_walk_thread *on = x->on;
	u64 start = hb_timeline__start(x->tl), from;
	const struct hb_message *m;
	u32 n, gc;

	if (on->thread->born >= x->t || x->t <= start)
		return charge(x, x->begin, HB_SEG_OUTSIDE, HB_NONE);
	from = last_end(on->sleep, sizeof(*on->sleep), on->sleeps, x->t, start);
	from = later(from, on->thread->born);
	if (call != HB_NONE)
		return run_in(x, call, from);
	from = last_end(on->call, sizeof(*on->call), on->calls, x->t, from);
	m = x->ways->queues ? hb_queues__last(x->ways->queues, x->thread, x->t) : NULL;
	if (m && m->taken > from) {
		if (m->taken == x->t)
			return message(x, m);
		from = m->taken;
	}
	if (on->gcs) {
		const struct hb_tl_gc *g = hb_timeline__gcs(x->tl, x->thread, &n);

		gc = hb_timeline__at(x->tl, x->thread, HB_TL_GC, x->t - 1);
		if (gc != HB_NONE)
			return charge(x, later(from, g[gc].at.begin), HB_SEG_GC, gc);
		n = hb_timeline__from(x->tl, x->thread, HB_TL_GC, x->t);
		from = last_end(g, sizeof(*g), n, x->t, from);
	}
	return charge(x, from, HB_SEG_RUN, HB_NONE);
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

/* A walk that goes round many threads comes back to each, mostly, after as many of its sleeps as the last
 * time: those are fetched meanwhile. */
static void leave(struct hb_walk_thread *on)
{
	u32 step = on->left - on->sleeps + 1;

	if (on->left > on->sleeps && on->sleeps > step) {
		__builtin_prefetch(on->sleep + on->sleeps - step);
		__builtin_prefetch(on->sleep + on->sleeps - step - 1);
		__builtin_prefetch(on->edge + on->sleeps - step);
	}
	on->left = on->sleeps;
}

/* To the waker at the waking time. One that sleeps at that time itself sent before: the time since is on the
 * way. */
static int jump(struct walk *x, u32 at, const struct hb_tl_sleep *s, const struct hb_edge *e)
{
	const struct hb_walk_thread *by = look(x, e->thread);
	u32 i = sleep_at(x, by);
	int err = 0;

	if (++x->jumps > JUMPS_MAX)
		return charge(x, s->at.begin, HB_SEG_UNKNOWN, at);
	if (i != HB_NONE && hb_sleep__woken(&by->sleep[i]) > x->t) {
		if (by->sleep[i].at.begin <= s->at.begin)
			return charge(x, s->at.begin, HB_SEG_UNKNOWN, at);
		err = charge(x, by->sleep[i].at.begin, e->guessed ? HB_SEG_NET : HB_SEG_UNKNOWN, at);
	}
	leave(x->on);
	x->via_thread = x->thread;
	x->via = at;
	x->thread = e->thread;
	return err;
}

/* It slept up to t. */
static int slept(struct walk *x, u32 at)
{
	const struct hb_edge *e = &x->on->edge[at];
	const struct hb_tl_sleep *s = &x->on->sleep[at];
	u64 woken = hb_sleep__woken(s);

	if (e->by == HB_WAKE_PREEMPTED)
		return charge(x, s->at.begin, HB_SEG_SCHED, at);
	if (x->t > woken && s->ready)
		return charge(x, woken, HB_SEG_SCHED, at);
	if (x->t == woken && e->by == HB_WAKE_THREAD && e->thread != HB_NONE && e->thread != x->thread)
		return jump(x, at, s, e);
	return charge(x, s->at.begin, kind_of(e->by), at);
}

static u64 back_to(const struct walk *x, u64 t, u64 from)
{
	return from >= t ? t : later(from, x->begin);
}

/* From one piece of work to what it followed, or, when that was done before it was launched, to the launch.
 * There the walk is on the host again. */
static int through_device(struct walk *x, struct hb_piece at, u32 call)
{
	struct hb_walk_ops *ops = x->ways->ops;
	const struct hb_launch *l = NULL;
	u64 t = back_to(x, x->t, at.v->op[at.i].end);
	u32 thread = HB_NONE;
	int err;

	while (t > x->begin) {
		struct hb_piece before, late;

		/* A collective that waited: on with what held the last rank up. */
		if (hb_walk_ops__late(ops, &at, &late) && late.v->op[late.i].begin < t) {
			t = back_to(x, t, late.v->op[late.i].begin);
			at = late;
			continue;
		}
		t = back_to(x, t, at.v->op[at.i].begin);
		if (!hb_walk_ops__followed(ops, &at, &before) ||
		    before.v->op[before.i].end < hb_walk_ops__asked(ops, &at)) {
			l = hb_walk_ops__launch(ops, &at, &thread);
			break;
		}
		t = back_to(x, t, before.v->op[before.i].end);
		at = before;
	}
	if (t <= x->begin)
		return charge(x, x->begin, HB_SEG_DEVICE, call);
	if (!l || l->begin >= t) { /* launched before the window, or clocks differ */
		err = charge(x, t, HB_SEG_DEVICE, call);
		return err ? err : charge(x, x->begin, HB_SEG_OUTSIDE, call);
	}
	err = charge(x, back_to(x, t, l->end), HB_SEG_DEVICE, call);
	x->via_thread = x->thread;
	x->via = HB_NONE;
	x->thread = thread;
	return err;
}

/* It waited for the device up to t. */
static int device(struct walk *x, u32 call, const struct hb_tl_call *c)
{
	struct hb_piece last;

	if (!hb_walk_ops__last(x->ways->ops, x->on->thread->pid, x->t, &last) ||
	    last.v->op[last.i].end <= c->at.begin || ++x->jumps > JUMPS_MAX)
		return charge(x, c->at.begin, HB_SEG_DEVICE, call);
	return through_device(x, last, call);
}

static int one(struct walk *x)
{
	u32 call, sleep, thread = x->thread;
	u64 t = x->t;
	int err;

	x->on = look(x, thread);
	call = call_at(x);
	if (call != HB_NONE && hb_call__waited(&x->on->call[call]) && t <= done(x, call))
		return device(x, call, &x->on->call[call]);
	sleep = sleep_at(x, x->on);
	err = sleep != HB_NONE ? slept(x, sleep) : run(x, call);
	/* Intervals of a damaged window may contradict each other: then nothing is said of the rest. */
	if (!err && x->t == t && x->thread == thread)
		err = charge(x, x->begin, HB_SEG_UNKNOWN, HB_NONE);
	return err;
}

int hb_walk(const struct hb_ways *ways, u32 thread, u64 begin, u64 end, struct hb_segs *out)
{
	struct walk x = {.ways = ways,
			 .tl = ways->tl,
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
