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
	struct hb_walk_op w = {.begin = o->begin, .end = o->end, .prev = HB_NONE, .thread = HB_NONE};

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
	return err ? err : order_ops(p);
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
