/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Kernels that only move, convert or touch every element once. */
#include <errno.h>

#include "analysis/model/decode.h"
#include "analysis/patterns/below.h"
#include "base/text.h"

enum { SHARE };
enum { AHEAD = 16 }; /* operations, whose calls are fetched */

static const struct hb_param params[] = {
    [SHARE] = {"share", HB_UNIT_SHARE, 300000,
	       "copies, casts, layout changes and element-wise kernels, of the kernels' time"},
    {0},
};

static const char *const globs[] = {
    "*elementwise*",
    "*direct_copy*",
    "*copy_kernel*",
    "*CatArrayBatchedCopy*",
    "*transpose*",
    "*contiguous*",
    "*_cast_*",
    "*cast_kernel*",
    "*convert_*",
    "*to_copy*",
    "*permute*",
    "*triton_poi_*",
    NULL,
};

/* Names are long and few: each is looked at once. */
static bool moves(const struct hb_scene *s, u32 name, struct hb_named *seen)
{
	return hb_scene__named(s, name, globs, seen);
}

struct sums {
	u64 in, all; /* ns of those that move, of all */
	u32 top;     /* name of the longest */
};

/* With a draft (and `below`) they are its occurrences. */
static int sum_up(const struct hb_scene *s, const struct hb_device *v, struct hb_named *seen, struct sums *x,
		  struct hb_draft *d, struct hb_below *below)
{
	u64 most = 0;
	int err = 0;

	for (u32 i = 0; i < v->n_ops && !err; i++) {
		const struct hb_device_op *o = &v->op[i];

		if (o->kind != HB_DEVKIND_KERNEL || o->work != HB_WORK_COMPUTE)
			continue;
		x->all += o->end - o->begin;
		if (!moves(s, o->name, seen))
			continue;
		x->in += o->end - o->begin;
		if (o->end - o->begin > most) {
			most = o->end - o->begin;
			x->top = o->name;
		}
		if (!d)
			continue;
		if (i + HB_FETCH_AHEAD < v->n_ops)
			hb_devices__fetch(s->dev, &v->op[i + HB_FETCH_AHEAD]);
		if (i + AHEAD < v->n_ops)
			hb_below__expect(below, &v->op[i + AHEAD]);
		hb_below__add(below, o, o->end - o->begin);
		err = hb_draft__add_op(d, o, o->end - o->begin);
	}
	return err;
}

static int judge(struct hb_look *l, const struct hb_device *v, struct hb_named *seen)
{
	struct hb_below below;
	char kernel[120];
	struct hb_draft *d;
	struct sums x = {0};
	int err;

	sum_up(l->s, v, seen, &x, NULL, NULL);
	hb_look__subject(l);
	if (!x.all || !hb_look__at_least(l, SHARE, hb_share(x.in, x.all)))
		return 0;
	d = hb_look__find(
	    l,
	    "%llu %% of the kernels' time on device %u is spent on copies, casts and element-wise work; the "
	    "longest: %s",
	    (unsigned long long)(hb_share(x.in, x.all) / 10000), v->number,
	    hb_decode__kernel(hb_window__string(l->s->w, x.top), kernel, sizeof(kernel)));
	if (!d)
		return -ENOMEM;
	hb_draft__pid(d, v->pid);
	hb_draft__device(d, v->index);
	err = hb_below__init(&below, l->s);
	err = err ? err : sum_up(l->s, v, seen, &x, d, &below);
	err = err ? err : hb_below__say(&below, d);
	hb_below__free(&below);
	return err;
}

static int by_device(struct hb_look *l, const struct hb_device *v)
{
	struct hb_named seen = {0};
	int err = judge(l, v, &seen);

	hb_named__free(&seen);
	return err;
}

static int detect(struct hb_look *l)
{
	return hb_look__devices(l, by_device);
}

HB_PATTERN(p40d_cast_storm) = {
    .id = "P40d",
    .layer = "kernel",
    .title = "cast, copy and layout storm",
    .rank = HB_RANK_OWN,
    .needs = HB_NEED_DEVICE,
    .params = params,
    .rule = "copies, casts, layout changes and element-wise kernels take a large part of the kernels' time, "
	    "on a device that is "
	    "busy",
    .fix = "fuse them (torch.compile, hand-written kernels), keep one type and layout throughout",
    .ref = "the reference trace T2: 54 % of an LLM's prefill is element-wise",
    .traps = "the bound is their whole time; what a fused kernel still needs stays",
    .settle = "compile the model and compare the kernel table",
    .detect = detect,
};
