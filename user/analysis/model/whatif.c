/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A stretch replayed with some intervals shorter. Each thread's old times are mapped to new ones by points;
 * between two of them it runs as long as it did. A sleep that a thread ended ends when that one comes to the
 * waking; any other takes as long as it did. A wait for the device ends when the device has done what it was
 * given, counted from one submission.
 */
#include "analysis/model/path_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/radix.h"

/* From which submission the device's time counts: all three are replayed side by side. */
enum anchor { ANCHOR_FIRST, ANCHOR_LAST, ANCHOR_LIKELY, ANCHORS };

struct times { /* new ones, by anchor */
	u64 by[ANCHORS];
};

struct point {
	u64 was;
	struct times is;
};

struct mapped { /* a thread that has part */
	struct point *point;
	u32 n, cap;
	u32 shrink, n_shrink; /* its intervals */
	u32 hint;	      /* where the last one was found */
	bool in;
};

struct event { /* something that ends: a sleep or a wait for the device */
	u64 at;
	u32 thread;
	u32 index : 31;
	u32 call : 1;
};

/* The states of a process's device, gone along as the replay goes on in time. */
struct cursor {
	u32 span;
	u64 ns; /* likely idle before this span, counted from some other */
};

struct device {
	u32 pid, n;
	const struct hb_busy_span *b;
	u32 at;			/* the span last asked for; HB_NONE: none yet */
	u32 since[2];		/* before it the last one that was idle: for sure, or [LIKELY] probably */
	struct cursor from, to; /* they count from the same span */
};
enum { SURE, LIKELY };

#define TIME_OF(x) ((x)->at)
HB_RADIX_SORT(sort_events, struct event, TIME_OF)

struct replay {
	const struct hb_path *p;
	const struct hb_shrink *shrink;
	u64 begin, end;
	struct mapped *thread;
	u32 *list, n_list; /* threads that have part */
	struct event *event;
	u32 n, cap;
	struct device *device; /* those that were waited for */
	u32 n_devices;
};

/* ---- who has part ---- */

static void take_part(struct replay *x, u32 thread)
{
	if (x->thread[thread].in)
		return;
	x->thread[thread].in = true;
	x->list[x->n_list++] = thread;
}

static int add_event(struct replay *x, struct event e)
{
	if (x->n == x->cap) {
		u32 cap = x->cap * 2 + 64;
		struct event *p = realloc(x->event, cap * sizeof(*p));

		if (!p)
			return -ENOMEM;
		x->event = p;
		x->cap = cap;
	}
	x->event[x->n++] = e;
	return 0;
}

static u32 waiting_call(const struct replay *x, u32 thread, u64 t)
{
	u32 n, i = hb_timeline__at(x->p->tl, thread, HB_TL_CALL, t);
	const struct hb_tl_call *c = hb_timeline__calls(x->p->tl, thread, &n);

	while (i != HB_NONE && !hb_call__waited(&c[i]))
		i = c[i].at.outer;
	return i;
}

/* Its sleeps and waits that end inside, and those who end them. */
static int add_thread(struct replay *x, u32 thread)
{
	u32 n, i = hb_timeline__at(x->p->tl, thread, HB_TL_SLEEP, x->begin);
	const struct hb_tl_sleep *s = hb_timeline__sleeps(x->p->tl, thread, &n);
	const struct hb_edge *e = hb_wake__edges(x->p->wk, thread, &n);
	const struct hb_tl_call *c;
	int err = 0;

	i = i == HB_NONE ? hb_timeline__from(x->p->tl, thread, HB_TL_SLEEP, x->begin) : i;
	for (; i < n && s[i].at.begin < x->end && !err; i++) {
		if (s[i].at.end > x->end || waiting_call(x, thread, s[i].at.begin) != HB_NONE)
			continue;
		err = add_event(x, (struct event){.at = s[i].at.end, .thread = thread, .index = i});
		if (e[i].by == HB_WAKE_THREAD && e[i].thread != HB_NONE)
			take_part(x, e[i].thread);
	}
	c = hb_timeline__calls(x->p->tl, thread, &n);
	i = hb_timeline__from(x->p->tl, thread, HB_TL_CALL, x->begin);
	for (; i < n && c[i].at.begin < x->end && !err; i++)
		if (hb_call__waited(&c[i]) && c[i].at.end <= x->end)
			err = add_event(
			    x, (struct event){.at = c[i].at.end, .thread = thread, .index = i, .call = 1});
	return err;
}

/* ---- mapping ---- */

static int add_point(struct mapped *m, u64 was, struct times is)
{
	if (m->n == m->cap) {
		u32 cap = m->cap * 2 + 16;
		struct point *p = realloc(m->point, cap * sizeof(*p));

		if (!p)
			return -ENOMEM;
		m->point = p;
		m->cap = cap;
	}
	m->point[m->n++] = (struct point){.was = was, .is = is};
	return 0;
}

/* The first interval of this thread that ends after t: they are in order, without overlap. The replay goes on
 * in time, so it is mostly the last one found, or one of the next. */
static u32 shrink_after(const struct replay *x, struct mapped *m, u64 t)
{
	u32 first = m->shrink, end = m->shrink + m->n_shrink, step = 1;
	u32 lo = first, hi = m->hint < first ? first : m->hint > end ? end : m->hint;

	if (hi < end && x->shrink[hi].end <= t) {
		for (lo = hi + 1; lo + step <= end && x->shrink[lo + step - 1].end <= t; step *= 2)
			lo += step;
		hi = lo + step <= end ? lo + step - 1 : end;
	} else {
		for (; step <= hi - first && x->shrink[hi - step].end > t; step *= 2)
			hi -= step;
		lo = step <= hi - first ? hi - step + 1 : first;
	}
	while (lo < hi) {
		u32 mid = lo + (hi - lo) / 2;

		if (x->shrink[mid].end <= t)
			lo = mid + 1;
		else
			hi = mid;
	}
	m->hint = lo;
	return lo;
}

/* How much shorter [a, b) of this thread is. */
static u64 saved(const struct replay *x, struct mapped *m, u64 a, u64 b)
{
	u32 end = m->shrink + m->n_shrink;
	u64 ns = 0;

	if (!m->n_shrink)
		return 0;
	for (u32 i = shrink_after(x, m, a); i < end && x->shrink[i].begin < b; i++) {
		const struct hb_shrink *s = &x->shrink[i];
		u64 in = hb_overlap(s->begin, s->end, a, b);

		ns += in - in / 1000 * s->keep - in % 1000 * s->keep / 1000;
	}
	return ns;
}

static struct times same(u64 t)
{
	return (struct times){{t, t, t}};
}

static void add(struct times *x, u64 ns)
{
	for (u32 k = 0; k < ANCHORS; k++)
		x->by[k] += ns;
}

/* New times of an old one: from the last point by then the thread runs. What is asked for is near the end. */
static struct times map(const struct replay *x, u32 thread, u64 t)
{
	struct mapped *m = &x->thread[thread];
	u32 lo = 0, hi = m->n, step = 1;
	struct times is;

	for (; step <= hi && m->point[hi - step].was > t; step *= 2)
		hi -= step;
	lo = step <= hi ? hi - step : 0;
	while (lo < hi) {
		u32 mid = lo + (hi - lo) / 2;

		if (m->point[mid].was <= t)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (!lo)
		return same(t); /* before all of it */
	is = m->point[lo - 1].is;
	add(&is, t - m->point[lo - 1].was - saved(x, m, m->point[lo - 1].was, t));
	return is;
}

static u64 later(u64 a, u64 b)
{
	return a > b ? a : b;
}

static int sleep_ends(struct replay *x, u32 thread, u32 at)
{
	u32 n;
	const struct hb_tl_sleep *s = &hb_timeline__sleeps(x->p->tl, thread, &n)[at];
	const struct hb_edge *e = &hb_wake__edges(x->p->wk, thread, &n)[at];
	struct mapped *m = &x->thread[thread];
	u64 from = later(s->at.begin, x->begin), less = saved(x, m, from, s->at.end);
	u64 woken_at = hb_sleep__woken(s);
	struct times is = map(x, thread, from), ends = is;

	add(&ends, s->at.end - from - less);
	if (!less && e->by == HB_WAKE_THREAD && e->thread != HB_NONE && woken_at >= from) {
		struct times woken = map(x, e->thread, woken_at);

		for (u32 k = 0; k < ANCHORS; k++)
			ends.by[k] = woken.by[k] <= is.by[k] && woken_at > from
					 ? is.by[k]
					 : later(woken.by[k], is.by[k]) + s->ready;
	}
	if (add_point(m, from, is))
		return -ENOMEM;
	return add_point(m, s->at.end, ends);
}

/* NULL: out of memory. */
static struct device *device_of(struct replay *x, u32 pid)
{
	struct device *d;
	u32 n;

	for (u32 i = 0; i < x->n_devices; i++)
		if (x->device[i].pid == pid)
			return &x->device[i];
	d = reallocarray(x->device, x->n_devices + 1, sizeof(*d));
	if (!d)
		return NULL;
	x->device = d;
	d += x->n_devices++;
	*d = (struct device){.pid = pid, .at = HB_NONE};
	d->b = hb_busy__spans(x->p->busy, pid, &n);
	d->n = n;
	return d;
}

static bool was_idle(const struct hb_busy_span *b, unsigned how)
{
	return (how == LIKELY ? hb_busy_span__likely(b) : hb_busy_span__state(b)) == HB_BUSY_IDLE;
}

/* The first span since the device was idle before span i. What was found for the last one holds as far back
 * as there. */
static u32 since_idle(const struct device *d, u32 i, unsigned how)
{
	u32 k = i, known = d->at != HB_NONE && i >= d->at ? d->at : 0;

	if (d->at != HB_NONE && i <= d->at && i >= d->since[how])
		return d->since[how];
	while (k > known && !was_idle(&d->b[k - 1], how))
		k--;
	return known && k == known ? d->since[how] : k;
}

/* Of the device's likely idle time what lies before t. */
static u64 idle_before(const struct device *d, struct cursor *c, u64 t)
{
	const struct hb_busy_span *b = d->b;
	u64 in;

	for (; c->span + 1 < d->n && b[c->span + 1].begin <= t; c->span++)
		if (was_idle(&b[c->span], LIKELY))
			c->ns += hb_busy_span__end(&b[c->span]) - b[c->span].begin;
	for (; c->span && b[c->span].begin > t; c->span--)
		if (was_idle(&b[c->span - 1], LIKELY))
			c->ns -= b[c->span].begin - b[c->span - 1].begin;
	in = hb_overlap(b[c->span].begin, hb_busy_span__end(&b[c->span]), 0, t);
	return was_idle(&b[c->span], LIKELY) ? c->ns + in : c->ns;
}

struct work {		    /* that a wait waits for */
	struct times given; /* when: the first since the device was idle, the last, the first since it was
			       probably idle */
	struct times done;
	u64 busy; /* how long the device probably worked from the first to the end */
};

/* When the device had done it. Where a preemption lasts to the wait's end that is not told: from its begin to
 * the end, whenever the device was probably idle. */
static struct times done_at(struct replay *x, u32 thread, const struct hb_tl_call *wait, u32 at)
{
	u32 pid = hb_timeline__thread(x->p->tl, thread)->pid;
	bool sure;
	u64 first = hb_call__done(x->p->tl, thread, at, &sure), end = wait->at.end;
	u64 idle = sure ? 0 : hb_busy__idle_in(x->p->busy, pid, first, end).likely;

	return sure ? same(first)
		    : (struct times){
			  .by = {[ANCHOR_FIRST] = end, [ANCHOR_LAST] = first, [ANCHOR_LIKELY] = end - idle}};
}

static u64 last_given(const struct replay *x, u32 thread, const struct hb_tl_call *wait)
{
	u32 n, i = hb_timeline__from(x->p->tl, thread, HB_TL_CALL, wait->at.begin);
	const struct hb_tl_call *c = hb_timeline__calls(x->p->tl, thread, &n);

	while (i-- > 0 && c[i].at.begin >= x->begin)
		if (hb_call__is_work(&c[i]))
			return c[i].at.begin;
	return x->begin;
}

/* 0 or -ENOMEM. */
static int work_of(struct replay *x, u32 thread, u32 at, struct work *w)
{
	u32 pid = hb_timeline__thread(x->p->tl, thread)->pid, n;
	const struct hb_tl_call *wait = &hb_timeline__calls(x->p->tl, thread, &n)[at];
	u32 i = hb_busy__at(x->p->busy, pid, wait->at.begin);
	struct device *d = device_of(x, pid);

	if (!d)
		return -ENOMEM;
	*w = (struct work){.given = same(x->begin), .done = done_at(x, thread, wait, at)};
	w->given.by[ANCHOR_LAST] = last_given(x, thread, wait);
	if (i == HB_NONE || i >= d->n)
		return 0;
	for (unsigned how = SURE; how <= LIKELY; how++) {
		u32 since = since_idle(d, i, how);

		w->given.by[how == SURE ? ANCHOR_FIRST : ANCHOR_LIKELY] = later(d->b[since].begin, x->begin);
		if (d->at == HB_NONE && how == SURE)
			d->from.span = d->to.span = since;
		d->since[how] = since;
	}
	d->at = i;
	w->busy = w->done.by[ANCHOR_LIKELY] - w->given.by[ANCHOR_FIRST];
	w->busy -= idle_before(d, &d->to, w->done.by[ANCHOR_LIKELY]) -
		   idle_before(d, &d->from, w->given.by[ANCHOR_FIRST]);
	return 0;
}

/* What is shrunk of a wait counts once the device is done: until then it would have to be waited for anyway.
 * And what the device probably worked since it was idle it has to work in any case. */
static int wait_ends(struct replay *x, u32 thread, u32 at)
{
	u32 n;
	const struct hb_tl_call *c = &hb_timeline__calls(x->p->tl, thread, &n)[at];
	struct times is = map(x, thread, c->at.begin), ends = is;
	struct mapped *m = &x->thread[thread];
	struct work w;

	if (work_of(x, thread, at, &w))
		return -ENOMEM;
	for (u32 k = 0; k < ANCHORS; k++) {
		u64 done = w.done.by[k], given = w.given.by[k];

		ends.by[k] = later(is.by[k], map(x, thread, given).by[k] + (done - given));
		if (k == ANCHOR_LIKELY)
			ends.by[k] =
			    later(ends.by[k], map(x, thread, w.given.by[ANCHOR_FIRST]).by[k] + w.busy);
		ends.by[k] += c->at.end - done - saved(x, m, done, c->at.end);
	}
	if (add_point(m, c->at.begin, is))
		return -ENOMEM;
	return add_point(m, c->at.end, ends);
}

static int replay(struct replay *x, u32 thread, struct times *gain)
{
	struct times is;
	int err = 0;

	for (u32 i = 0; i < x->n_list; i++)
		err |= add_point(&x->thread[x->list[i]], x->begin, same(x->begin));
	for (u32 i = 0; i < x->n && !err; i++) {
		const struct event *e = &x->event[i];

		err = e->call ? wait_ends(x, e->thread, e->index) : sleep_ends(x, e->thread, e->index);
	}
	if (err)
		return -ENOMEM;
	is = map(x, thread, x->end);
	for (u32 k = 0; k < ANCHORS; k++)
		gain->by[k] = is.by[k] < x->end ? x->end - is.by[k] : 0;
	return 0;
}

static void find_shrinks(struct replay *x, u32 n)
{
	u32 threads = hb_timeline__threads(x->p->tl);

	for (u32 i = 0; i < n; i++) {
		struct mapped *m = x->shrink[i].thread < threads ? &x->thread[x->shrink[i].thread] : NULL;

		if (m && !m->n_shrink++)
			m->shrink = i;
	}
}

static int prepare(struct replay *x, u32 thread, u32 n)
{
	u32 threads = hb_timeline__threads(x->p->tl);
	int err = 0;

	x->thread = calloc(threads + 1, sizeof(*x->thread));
	x->list = malloc((threads + 1) * sizeof(*x->list));
	if (!x->thread || !x->list)
		return -ENOMEM;
	find_shrinks(x, n);
	take_part(x, thread);
	for (u32 i = 0; i < x->n_list && !err; i++)
		err = add_thread(x, x->list[i]);
	return err ? err : sort_events(x->event, x->n);
}

int hb_path__what_if(const struct hb_path *p, u32 thread, u64 begin, u64 end, const struct hb_shrink *x,
		     u32 n, struct hb_range *gain)
{
	struct replay r = {.p = p, .shrink = x, .begin = begin, .end = end};
	struct times t = {{0}};
	struct hb_range g;
	int err = end > begin ? prepare(&r, thread, n) : 0;

	if (!err && end > begin)
		err = replay(&r, thread, &t);
	for (u32 i = 0; i < r.n_list; i++)
		free(r.thread[r.list[i]].point);
	free(r.thread);
	free(r.list);
	free(r.event);
	free(r.device);
	if (err)
		return err;
	g = (struct hb_range){
	    .min = t.by[ANCHOR_FIRST], .max = t.by[ANCHOR_LAST], .likely = t.by[ANCHOR_LIKELY]};
	/* The two ways of counting differ by wait, so the middle one may lie outside of both. */
	gain->min = g.min < g.max ? g.min : g.max;
	gain->max = later(g.min, g.max);
	gain->likely = g.likely < gain->min ? gain->min : g.likely > gain->max ? gain->max : g.likely;
	return 0;
}
