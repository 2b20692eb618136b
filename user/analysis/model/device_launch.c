/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Launches of one device: how long the queue was, how late the work began, kernels shorter than their call.
 */
#include "analysis/model/device_private.h"

#include <errno.h>
#include <stdlib.h>

#define FULL 1024 /* launches that fit into a stream's queue before the next one blocks */

/* The clocks of host and device may be off by a little: an operation that began before its call was never in
 * the queue. */
static bool was_queued(const struct hb_device_op *o)
{
	return o->launch && !o->early;
}

static int order(struct queue *q)
{
	struct hb_order *by = hb_devices__room(q->d);
	u32 n = 0;

	if (!by)
		return -ENOMEM;
	for (u32 i = 0; i < q->v->n_ops; i++)
		if (was_queued(&q->v->ops[i]))
			by[n++] = (struct hb_order){.key = asked(q->d, &q->v->ops[i]), .item = i};
	q->by = by;
	q->n = n;
	return hb_order__sort(by, n);
}

/* The next operation that was in the queue. */
static void find_next(struct queue *q)
{
	for (q->launched = NULL; !q->launched && q->next < q->n; q->next++) {
		struct hb_device_op *o = &q->v->ops[q->by ? q->by[q->next].item : q->next];

		if (was_queued(o))
			q->launched = o;
	}
	q->asked = q->launched ? asked(q->d, q->launched) : 0;
}

int hb_queue__init(struct queue *q, struct hb_devices *d, struct dev *v)
{
	*q = (struct queue){.d = d, .v = v, .n = v->n_ops};
	q->length = d->values;
	q->delay = d->values + d->largest;
	q->depth = calloc((size_t)v->n_streams + 1, sizeof(*q->depth));
	if (!q->depth || (!v->launched_in_order && order(q)))
		return -ENOMEM;
	find_next(q);
	return 0;
}

void hb_queue__free(struct queue *q)
{
	free(q->depth);
}

/* Operations of one launch come one after the other, at one time. */
static void enter(struct queue *q, struct hb_device_op *o)
{
	struct depth *k = &q->depth[o->stream];

	if (o->launch != q->number) {
		q->number = o->launch;
		q->n_lengths++;
		q->empty = !q->total;
		q->v->pub.empty += q->empty;
	}
	o->empty = q->empty;
	if (++k->n == FULL)
		k->since = q->asked;
	k->most = k->n > k->most ? k->n : k->most;
	q->length[q->n_lengths - 1] = ++q->total;
}

static void leave(struct queue *q, const struct hb_device_op *o)
{
	struct depth *k = &q->depth[o->stream];

	if (k->n-- == FULL)
		q->v->streams[o->stream].full_ns += o->begin - k->since;
	q->total--;
}

/* Each launch is looked at once, at its first operation. */
static void look_at_launch(struct queue *q, const struct hb_device_op *o)
{
	const struct hb_launch *l = launch_of(q->d, o);
	struct hb_device *p = &q->v->pub;

	p->launches++;
	if (!l->timed)
		return;
	q->delay[q->n_delays++] = o->begin > l->end ? o->begin - l->end : 0;
	if (o->kind != HB_DEVKIND_KERNEL || o->shared)
		return;
	p->eager++;
	p->eager_short += o->end - o->begin < l->end - l->begin;
}

void hb_queue__begin(struct queue *q, u32 i)
{
	const struct hb_device_op *o = &q->v->ops[i];

	for (; q->launched && q->asked <= o->begin; find_next(q))
		enter(q, q->launched);
	if (was_queued(o))
		leave(q, o);
	if (o->first)
		look_at_launch(q, o);
}

void hb_queue__finish(struct queue *q)
{
	for (u32 i = 0; i < q->v->n_streams; i++)
		q->v->streams[i].queue_max = q->depth[i].most;
	q->v->pub.queue = hb_dist__of(q->length, q->n_lengths);
	q->v->pub.delay = hb_dist__of(q->delay, q->n_delays);
}
