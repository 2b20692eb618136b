/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Executions of the same work on a device, which ought to take equally long: kernels of one name, grid and
 * block, between the same neighbours on their stream (one kernel may serve several layers of a model, with
 * other sizes), alone on the device. Left out is what takes as long as its data say: attention, experts,
 * sorting, and grids of one block or a few for each multiprocessor, which work off any size; and kernels
 * that wait for others. Inside of patterns: P40f, P47.
 */
#ifndef HB_SAME_H
#define HB_SAME_H

#include "analysis/patterns/pattern.h"

struct hb_same_exec {
	u32 op;	  /* of the device */
	u32 mode; /* for the caller */
};

struct hb_same_kind {	  /* executions of one kind */
	u32 name, blocks; /* as hb_device_op */
	u32 first, n;	  /* of hb_same.exec, by begin */
	u64 total;	  /* ns */
	u64 usual;	  /* for the caller */
};

struct hb_same {
	const struct hb_device *v;
	struct hb_same_kind *kind;
	u32 n;
	struct hb_same_exec *exec;
	u32 n_execs, most; /* most: of one kind */
	u64 kernels;	   /* ns of all computing kernels of the device, overlaps counted twice; 0: of none is
			      there a name that could be compared */
	u32 sms;	   /* of the device; 0: not told, so that such grids cannot be left out */
	u64 least, few;	   /* what was asked for */
};

struct hb_sames { /* what was looked at so far, by device; inside */
	struct hb_same *of;
	u32 n;
	struct hb_named varies;
};
/* NULL: out of memory. */
struct hb_sames *hb_sames__new(const struct hb_devices *d);
void hb_sames__free(struct hb_sames *a); /* NULL is fine */

/* Those of `least` ns and more, of kinds with `few` or more executions (fewer may be among them). They belong
 * to the scene; the caller's members are 0. NULL: out of memory. */
struct hb_same *hb_same__of(const struct hb_scene *s, const struct hb_device *v, u64 least, u64 few);
/* How many different kernels (name, grid) those kinds are that have a `usual`. 0 or -ENOMEM. */
int hb_same__kernels(const struct hb_same *x, u32 *n);
static inline u64 hb_same__ns(const struct hb_same *x, const struct hb_same_exec *e)
{
	return x->v->op[e->op].end - x->v->op[e->op].begin;
}
/* Adds an execution that could have taken `usual` ns. 0 or -ENOMEM. */
int hb_same__add(const struct hb_scene *s, const struct hb_same *x, const struct hb_same_exec *e, u64 usual,
		 struct hb_draft *d);

/* Not checked: no device did enough of the same. Params: executions of a kernel, share of the kernels' time;
 * `where` they must be: "before and after", or "". */
void hb_same__too_few(struct hb_look *l, u32 count, u32 cover, const char *where);

#endif
