/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analysis/export/spots.h"

#include <errno.h>

/* The task stands for thread and process. */
static struct hb_spot *spot_of(struct hb_spots *s, const struct hb_record *r, u32 stack, u32 kstack,
			       bool kernel)
{
	bool fresh;
	u64 *pair = hb_map__slot(s->pairs, (u64)stack << 32 | kstack, &fresh);
	struct hb_spot *spot;

	if (!pair)
		return NULL;
	if (fresh)
		*pair = hb_map__size(s->pairs);
	spot = hb_rows__get(&s->rows, *pair << 17 | (u64)r->task_idx << 1 | kernel, &fresh);
	if (spot && fresh) {
		spot->pid = r->task->pid;
		spot->stack = stack;
		spot->kstack = kstack;
		spot->task = r->task_idx;
		spot->kernel = kernel;
	}
	return spot;
}

static int add(struct hb_spots *s, struct hb_spot *spot, enum hb_spot_value what, u64 v)
{
	if (!spot)
		return -ENOMEM;
	spot->value[what] += v;
	s->total[what] += v;
	return 0;
}

static int add_sample(struct hb_spots *s, const struct hb_record *r)
{
	const struct hb_rec_sample *x = r->data;
	struct hb_spot *spot = spot_of(s, r, x->stack, x->kstack, x->mode == HB_CPUMODE_KERNEL);
	int err = add(s, spot, HB_SPOT_SAMPLES, 1);

	return err ? err : add(s, spot, HB_SPOT_CPU, x->weight);
}

static int add_gil(struct hb_spots *s, const struct hb_record *r)
{
	const struct hb_rec_py_gil *x = r->data;

	return x->handover ? 0 : add(s, spot_of(s, r, x->stack, 0, false), HB_SPOT_GIL, x->dur);
}

static int add_gc(struct hb_spots *s, const struct hb_record *r)
{
	const struct hb_rec_py_gc *x = r->data;

	return add(s, spot_of(s, r, x->stack, 0, false), HB_SPOT_GC, x->dur);
}

/* Those without a record of their own have their place only. */
static int add_exception(struct hb_spots *s, const struct hb_record *r)
{
	const struct hb_rec_py_exception *x = r->data;
	u32 stack = x->stack ? x->stack : x->site;

	return x->count ? add(s, spot_of(s, r, stack, 0, false), HB_SPOT_EXCEPTIONS, x->count) : 0;
}

int hb_spots__read(struct hb_spots *s, struct hb_window *w)
{
	static int (*const add_one[HB_TYPE_MAX])(struct hb_spots *, const struct hb_record *) = {
	    [HB_TYPE_sample] = add_sample,
	    [HB_TYPE_py_gil] = add_gil,
	    [HB_TYPE_py_gc] = add_gc,
	    [HB_TYPE_py_exception] = add_exception,
	};
	struct hb_record r;
	int rc = hb_rows__init(&s->rows, sizeof(struct hb_spot));

	s->pairs = hb_map__new();
	if (rc || !s->pairs)
		return -ENOMEM;
	hb_window__rewind(w);
	while (!rc && hb_window__next(w, &r) > 0)
		if (add_one[r.type])
			rc = add_one[r.type](s, &r);
	return rc;
}

void hb_spots__free(struct hb_spots *s)
{
	hb_map__free(s->pairs);
	hb_rows__free(&s->rows, NULL);
}
