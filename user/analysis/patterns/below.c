/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analysis/patterns/below.h"

#include <errno.h>
#include <stdlib.h>

#include "analysis/model/operator_frame.h"
#include "analysis/patterns/findings.h"

#define TOP 3

int hb_below__init(struct hb_below *b, const struct hb_scene *s, const struct hb_device *v)
{
	u32 n;

	*b = (struct hb_below){.s = s,
			       .pid = v->pid,
			       .launch = hb_devices__launches(s->dev, &n),
			       .recent = calloc(HB_BELOW_RECENT, sizeof(*b->recent)),
			       .by_loc = hb_map__new()};
	return b->recent && b->by_loc ? 0 : -ENOMEM;
}

void hb_below__free(struct hb_below *b)
{
	hb_hist__free(&b->len);
	free(b->recent);
	hb_map__free(b->by_loc);
}

/* Of as long ones the first stay. */
void hb_below__keep(struct hb_below *b, const struct hb_device_op *o)
{
	u32 at = b->n_worst < HB_INSTANCES ? b->n_worst++ : HB_INSTANCES - 1;

	for (; at && b->worst[at - 1]->end - b->worst[at - 1]->begin < o->end - o->begin; at--)
		b->worst[at] = b->worst[at - 1];
	b->worst[at] = o;
	o = b->worst[b->n_worst - 1];
	b->least = b->n_worst == HB_INSTANCES ? o->end - o->begin : 0;
}

void hb_below__flush(struct hb_below *b, struct hb_below_recent *r)
{
	const struct hb_picked *f =
	    r->key ? hb_frame_pick__of(b->s->pick, (u32)(r->key >> 32), (u32)r->key) : NULL;
	u64 *ns = f && f->loc ? hb_map__slot(b->by_loc, f->loc, NULL) : NULL;

	if (ns)
		*ns += r->ns;
	b->oom |= b->s->pick->oom || (f && f->loc && !ns);
	*r = (struct hb_below_recent){0};
}

/* The one with most time of those that have less than `below`, or as much and a higher number than `after`.
 */
static u32 next(const struct hb_below *b, u64 *below, u32 after)
{
	u64 most = 0, loc, ns;
	u32 best = 0;

	for (size_t i = 0; hb_map__next(b->by_loc, &i, &loc, &ns);) {
		bool open = ns < *below || (ns == *below && loc > after);

		if (open && (ns > most || (ns == most && loc < best))) {
			most = ns;
			best = (u32)loc;
		}
	}
	*below = most;
	return best;
}

static void say(const struct hb_below *b, struct hb_draft *d)
{
	u64 ns = UINT64_MAX;
	u32 loc = 0;

	for (u32 i = 0; i < TOP && (loc = next(b, &ns, loc)) && b->len.total; i++) {
		const struct hb_loc *l = hb_window__loc(b->s->w, loc);

		hb_draft__say(d, "%s%.60s %llu %%",
			      i ? ", " : "; by operator: ", l ? hb_window__string(b->s->w, l->func) : "?",
			      (unsigned long long)(hb_share(ns, b->len.total) / 10000));
	}
}

int hb_below__give(struct hb_below *b, struct hb_draft *d)
{
	for (u32 i = 0; i < HB_BELOW_RECENT; i++)
		hb_below__flush(b, &b->recent[i]);
	for (u32 i = 0; i < b->n_worst; i++) {
		const struct hb_launch *k = hb_devices__launch_of(b->s->dev, b->worst[i]);

		d->f.worst[d->f.n_worst++] = (struct hb_instance){
		    .begin = b->worst[i]->begin, .end = b->worst[i]->end, .stack = k ? k->stack : 0};
	}
	d->f.device_ns = b->saved;
	d->f.count = b->len.count;
	d->len = b->len;
	say(b, d);
	b->len = (struct hb_hist){0};
	return b->oom ? -ENOMEM : 0;
}
