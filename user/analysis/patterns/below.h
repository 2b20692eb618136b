/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Operations that a finding may be of, gathered in one walk over a device's, before anybody knows whether
 * they make one: how long they are, the worst, and below which operators their time lies. Kernels' names are
 * the compiler's, operators are what somebody can change. Inside of patterns: P40b, P40d.
 */
#ifndef HB_BELOW_H
#define HB_BELOW_H

#include "analysis/model/hist.h"
#include "analysis/patterns/pattern.h"

enum { HB_BELOW_RECENT = 4096 };

struct hb_below_recent { /* operations come by the million, stacks by the hundred */
	u64 key;	 /* pid << 32 | stack of their launches; 0: none */
	u64 ns;
};

struct hb_below {
	const struct hb_scene *s;
	u32 pid;			/* of the device */
	const struct hb_launch *launch; /* all of them */
	struct hb_hist len;
	u64 saved;
	const struct hb_device_op *worst[HB_INSTANCES]; /* the longest one first */
	u32 n_worst;
	u64 least;			/* of the last of them, when there are as many as can be */
	struct hb_below_recent *recent; /* not yet added to by_loc */
	struct hb_map *by_loc;		/* location of the operator -> ns */
	bool oom;
};

/* Of one device. 0 or -ENOMEM; free it in any case. */
int hb_below__init(struct hb_below *b, const struct hb_scene *s, const struct hb_device *v);
void hb_below__free(struct hb_below *b);
/* One that will be added soon: its call is fetched meanwhile. */
static inline void hb_below__expect(const struct hb_below *b, const struct hb_device_op *o)
{
	if (o->launch)
		__builtin_prefetch(&b->launch[o->launch - 1]);
}
void hb_below__keep(struct hb_below *b, const struct hb_device_op *o); /* inside */
void hb_below__flush(struct hb_below *b, struct hb_below_recent *r);   /* inside */
/* An operation, of which so much could be saved. */
static inline void hb_below__add(struct hb_below *b, const struct hb_device_op *o, u64 saved)
{
	const struct hb_launch *k = o->launch ? &b->launch[o->launch - 1] : NULL;
	struct hb_below_recent *r;
	u64 ns = o->end - o->begin, key;

	b->saved += saved;
	if (hb_hist__add(&b->len, ns))
		b->oom = true;
	if (ns > b->least || b->n_worst < HB_INSTANCES)
		hb_below__keep(b, o);
	if (!k || !k->stack)
		return;
	key = (u64)b->pid << 32 | k->stack;
	r = &b->recent[k->stack % HB_BELOW_RECENT];
	if (r->key != key) {
		hb_below__flush(b, r);
		r->key = key;
	}
	r->ns += ns;
}
/* They are the occurrences of a finding, which has none yet. Its sentence ends with the three operators that
 * cost most; nothing where no stacks are. 0 or -ENOMEM. */
int hb_below__give(struct hb_below *b, struct hb_draft *d);

#endif
