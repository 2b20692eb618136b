/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Work on devices as the walk needs it: by its end, with what was before it on its stream and who launched
 * it. */
#include <errno.h>
#include <stdlib.h>

#include "analysis/model/order.h"
#include "analysis/model/path_private.h"

struct process {
	u32 pid;
	struct hb_walk_op *op; /* by end */
	u32 n;
};

struct hb_walk_ops {
	struct process *process;
	u32 n;
};

static const struct process *process_of(const struct hb_walk_ops *w, u32 pid)
{
	for (u32 i = 0; i < w->n; i++)
		if (w->process[i].pid == pid)
			return &w->process[i];
	return NULL;
}

static struct hb_walk_op op_of(const struct hb_timeline *tl, const struct hb_devices *d,
			       const struct hb_device_op *o)
{
	const struct hb_launch *l = hb_devices__launch_of(d, o);
	const struct hb_task *t = l ? hb_window__task(hb_timeline__window(tl), l->task) : NULL;
	struct hb_walk_op w = {
	    .begin = o->begin, .end = o->end, .prev = HB_NONE, .event = HB_NONE, .thread = HB_NONE};

	if (t)
		w.thread = hb_timeline__by_tid(tl, t->tid);
	if (w.thread != HB_NONE) {
		w.given = l->begin;
		w.returned = l->end;
	}
	return w;
}

/* The operations of one device at `first` on, each with the one before it on its stream. */
static int add_device(struct process *p, const struct hb_timeline *tl, const struct hb_devices *d,
		      const struct hb_device *v)
{
	u32 *last = malloc((v->n_streams + 1) * sizeof(*last));

	if (!last)
		return -ENOMEM;
	for (u32 i = 0; i <= v->n_streams; i++)
		last[i] = HB_NONE;
	for (u32 i = 0; i < v->n_ops; i++) {
		u32 stream = v->op[i].stream < v->n_streams ? v->op[i].stream : v->n_streams;

		p->op[p->n] = op_of(tl, d, &v->op[i]);
		p->op[p->n].device = v->number;
		p->op[p->n].stream = stream < v->n_streams ? (u32)v->stream[stream].number : UINT32_MAX;
		p->op[p->n].prev = last[stream];
		last[stream] = p->n++;
	}
	free(last);
	return 0;
}

/* By end; `prev` follows. */
static int order_ops(struct process *p)
{
	struct hb_order *order = malloc((p->n + 1) * sizeof(*order));
	struct hb_walk_op *op = malloc((p->n + 1) * sizeof(*op));
	u32 *now = malloc((p->n + 1) * sizeof(*now));
	int err = order && op && now ? 0 : -ENOMEM;

	for (u32 i = 0; i < p->n && !err; i++)
		order[i] = (struct hb_order){.key = p->op[i].end, .item = i};
	if (!err)
		err = hb_order__sort(order, p->n);
	for (u32 i = 0; i < p->n && !err; i++)
		now[order[i].item] = i;
	for (u32 i = 0; i < p->n && !err; i++) {
		op[i] = p->op[order[i].item];
		op[i].prev = op[i].prev == HB_NONE ? HB_NONE : now[op[i].prev];
	}
	free(order);
	free(now);
	if (err) {
		free(op);
		return err;
	}
	free(p->op);
	p->op = op;
	return 0;
}

/* ---- events: a stream that waits for another ---- */

struct moment { /* when a call with a correlation number was made */
	u64 correlation, at;
};

static int cmp_moments(const void *a, const void *b)
{
	const struct moment *x = a, *y = b;

	return x->correlation < y->correlation ? -1 : x->correlation > y->correlation;
}

static u64 when(const struct moment *m, u32 n, u64 correlation)
{
	u32 lo = 0, hi = n;

	while (lo < hi) {
		u32 mid = lo + (hi - lo) / 2;

		if (m[mid].correlation < correlation)
			lo = mid + 1;
		else
			hi = mid;
	}
	return correlation && lo < n && m[lo].correlation == correlation ? m[lo].at : 0;
}

/* The last piece of a stream that was given before the event was recorded, and the first one of the other
 * that was given after its wait was: the second waits for the first. Pieces of one stream are given in the
 * order in which they end. */
static void link_event(struct process *p, const struct hb_tl_devwait *s, u64 recorded, u64 waited)
{
	u32 from = HB_NONE, to = HB_NONE;

	for (u32 i = 0; i < p->n && to == HB_NONE; i++) {
		const struct hb_walk_op *o = &p->op[i];

		if (o->thread == HB_NONE || o->device != s->device)
			continue;
		if (o->stream == s->wstream && o->given <= recorded)
			from = i;
		if (o->stream == s->stream && o->given >= waited)
			to = i;
	}
	if (from == HB_NONE || to == HB_NONE || p->op[from].end > p->op[to].begin)
		return;
	if (p->op[to].event == HB_NONE || p->op[p->op[to].event].end < p->op[from].end)
		p->op[to].event = from;
}

static int collect_moments(const struct hb_timeline *tl, u32 pid, struct moment **out, u32 *n_out)
{
	struct moment *m = NULL;
	u32 n = 0, cap = 0;

	for (u32 t = hb_timeline__of_pid(tl, pid, HB_NONE); t != HB_NONE;
	     t = hb_timeline__of_pid(tl, pid, t)) {
		u32 k;
		const struct hb_tl_call *c = hb_timeline__calls(tl, t, &k);
		struct moment *p = realloc(m, (cap += k + 1) * sizeof(*m));

		if (!p) {
			free(m);
			return -ENOMEM;
		}
		m = p;
		for (u32 i = 0; i < k; i++)
			if (c[i].correlation)
				m[n++] = (struct moment){c[i].correlation, c[i].at.begin};
	}
	if (n)
		qsort(m, n, sizeof(*m), cmp_moments);
	*out = m;
	*n_out = n;
	return 0;
}

/* A window with many waits between streams would be looked through for each: beyond so many steps of it none
 * is linked. */
#define LINK_STEPS 200000000ULL

static int link_events(struct process *p, const struct hb_timeline *tl)
{
	struct moment *m = NULL;
	u64 steps = 0;
	u32 n = 0, waits;

	if (!hb_timeline__count(tl, HB_TL_DEVWAIT))
		return 0;
	if (collect_moments(tl, p->pid, &m, &n))
		return -ENOMEM;
	for (u32 t = hb_timeline__of_pid(tl, p->pid, HB_NONE); t != HB_NONE;
	     t = hb_timeline__of_pid(tl, p->pid, t)) {
		const struct hb_tl_devwait *s = hb_timeline__devwaits(tl, t, &waits);

		for (u32 i = 0; i < waits && steps < LINK_STEPS; i++) {
			u64 recorded = when(m, n, s[i].waits), waited = when(m, n, s[i].correlation);

			if (s[i].sync != HB_SYNCKIND_STREAM_WAIT || !recorded || !waited)
				continue;
			link_event(p, &s[i], recorded, waited);
			steps += p->n;
		}
	}
	free(m);
	return 0;
}

/* Devices come by process. */
static int add_process(struct hb_walk_ops *w, const struct hb_timeline *tl, const struct hb_devices *d,
		       u32 *i)
{
	struct process *p = &w->process[w->n++];
	u32 from = *i, n = 0;
	int err = 0;

	p->pid = hb_devices__at(d, from)->pid;
	for (; hb_devices__at(d, *i) && hb_devices__at(d, *i)->pid == p->pid; ++*i)
		n += hb_devices__at(d, *i)->n_ops;
	p->op = malloc((n + 1) * sizeof(*p->op));
	if (!p->op)
		return -ENOMEM;
	for (u32 k = from; k < *i && !err; k++)
		err = add_device(p, tl, d, hb_devices__at(d, k));
	err = err ? err : order_ops(p);
	return err ? err : link_events(p, tl);
}

struct hb_walk_ops *hb_walk_ops__new(const struct hb_timeline *tl, const struct hb_devices *d)
{
	struct hb_walk_ops *w = calloc(1, sizeof(*w));
	int err = w ? 0 : -ENOMEM;

	if (w) {
		w->process = calloc(hb_devices__count(d) + 1, sizeof(*w->process));
		err = w->process ? 0 : -ENOMEM;
	}
	for (u32 i = 0; !err && i < hb_devices__count(d);)
		err = add_process(w, tl, d, &i);
	if (err) {
		hb_walk_ops__free(w);
		return NULL;
	}
	return w;
}

void hb_walk_ops__free(struct hb_walk_ops *w)
{
	if (!w)
		return;
	for (u32 i = 0; w->process && i < w->n; i++)
		free(w->process[i].op);
	free(w->process);
	free(w);
}

const struct hb_walk_op *hb_walk_ops__of(const struct hb_walk_ops *w, u32 pid, u64 t, u32 *last)
{
	const struct process *p = w ? process_of(w, pid) : NULL;
	u32 lo = 0, hi = p ? p->n : 0;

	while (lo < hi) {
		u32 mid = lo + (hi - lo) / 2;

		if (p->op[mid].end <= t)
			lo = mid + 1;
		else
			hi = mid;
	}
	*last = lo ? lo - 1 : HB_NONE;
	return p && lo ? p->op : NULL;
}
