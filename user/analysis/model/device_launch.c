/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Launches of one device: how long the queue was, how late the work began, kernels shorter than their call.
 */
#include "analysis/model/device_private.h"

#include <errno.h>
#include <stdlib.h>

#define FULL 1024 /* launches that fit into a stream's queue before the next one blocks */

struct walk { /* the queue as time goes on */
	struct hb_devices *d;
	struct dev *v;
	u32 *depth;  /* by stream: launched and not begun */
	u64 *since;  /* by stream: when it became full */
	u32 total;   /* of the device */
	u32 next_op; /* operations before it have begun */
};

/* The clocks of host and device may be off by a little: an operation that began before its call was never in
 * the queue. */
static bool was_queued(const struct hb_device_op *o)
{
	return o->launch && !o->early;
}

static void leave(struct walk *k, const struct hb_device_op *o)
{
	struct hb_stream *s = &k->v->streams[o->stream];

	if (k->depth[o->stream]-- == FULL)
		s->full_ns += o->begin - k->since[o->stream];
	k->total--;
}

static void enter(struct walk *k, const struct hb_device_op *o, u64 at)
{
	struct hb_stream *s = &k->v->streams[o->stream];

	if (++k->depth[o->stream] == FULL)
		k->since[o->stream] = at;
	if (k->depth[o->stream] > s->queue_max)
		s->queue_max = k->depth[o->stream];
	k->total++;
}

/* All that began before t. */
static void begin_until(struct walk *k, u64 t)
{
	for (; k->next_op < k->v->pub.n_ops && k->v->pub.op[k->next_op].begin < t; k->next_op++)
		if (was_queued(&k->v->pub.op[k->next_op]))
			leave(k, &k->v->pub.op[k->next_op]);
}

/* `by` holds the queued operations by the begin of their call. Lengths go to `length`, one for each launch.
 */
static u32 follow(struct walk *k, const struct hb_order *by, u32 n, u64 *length)
{
	u32 launches = 0;

	for (u32 i = 0, to; i < n; i = to) {
		u32 number = k->v->pub.op[by[i].item].launch;
		struct hb_launch *l = &k->d->launch[number - 1];

		if (i + HB_FETCH_AHEAD < n)
			hb_devices__fetch(k->d, &k->v->pub.op[by[i + HB_FETCH_AHEAD].item]);
		begin_until(k, by[i].key);
		if (l->device == k->v->pub.index)
			l->queue = k->total;
		k->v->pub.empty += !k->total;
		for (to = i; to < n && k->v->pub.op[by[to].item].launch == number; to++)
			enter(k, &k->v->pub.op[by[to].item], by[to].key);
		length[launches++] = k->total;
	}
	begin_until(k, UINT64_MAX);
	return launches;
}

static int queue(struct hb_devices *d, struct dev *v, struct hb_order *by, u64 *length)
{
	struct walk k = {.d = d, .v = v};
	u32 n = 0;
	int rc;

	for (u32 i = 0; i < v->pub.n_ops; i++) {
		const struct hb_device_op *o = &v->pub.op[i];

		if (was_queued(o))
			by[n++] = (struct hb_order){.key = o->asked, .item = i};
	}
	rc = hb_order__sort(by, n);
	k.depth = calloc(v->n_streams + 1, sizeof(*k.depth));
	k.since = calloc(v->n_streams + 1, sizeof(*k.since));
	if (!rc && k.depth && k.since)
		v->pub.queue = hb_dist__of(length, follow(&k, by, n, length));
	else
		rc = -ENOMEM;
	free(k.depth);
	free(k.since);
	return rc;
}

/* Each launch is looked at once, at its first operation; its operations learn whether they are alone. */
static void delays(struct hb_devices *d, struct dev *v, u64 *delay)
{
	u32 n = 0;

	for (u32 i = 0; i < v->pub.n_ops; i++) {
		struct hb_device_op *o = &v->ops[i];
		const struct hb_launch *l = launch_of(d, o);

		expect_launch(d, v, i);
		o->shared = l && l->ops > 1;
		if (!l || l->device != v->pub.index || l->first != i)
			continue;
		v->pub.launches++;
		if (!l->timed)
			continue;
		delay[n++] = o->begin > l->end ? o->begin - l->end : 0;
		if (o->kind != HB_DEVKIND_KERNEL || l->ops != 1)
			continue;
		v->pub.eager++;
		v->pub.eager_short += o->end - o->begin < l->end - l->begin;
	}
	v->pub.delay = hb_dist__of(delay, n);
}

int hb_devices__queue(struct hb_devices *d, struct dev *v)
{
	int rc = queue(d, v, d->order, d->values);

	if (!rc)
		delays(d, v, d->values);
	return rc;
}
