/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Kernels that only move, convert or touch every element once. */
#include <errno.h>

#include "analysis/model/decode.h"
#include "analysis/patterns/below.h"
#include "base/text.h"

enum { SHARE };

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
	u64 most;    /* of the longest that moves */
	u32 top;     /* its name */
};

static void sum_up(const struct hb_scene *s, const struct hb_device *v, struct hb_named *seen, struct sums *x,
		   struct hb_below *below)
{
	for (u32 i = 0; i < v->n_ops; i++) {
		const struct hb_device_op *o = &v->op[i];
		u64 ns = o->end - o->begin;

		if (o->kind != HB_DEVKIND_KERNEL || o->work != HB_WORK_COMPUTE)
			continue;
		x->all += ns;
		if (!moves(s, o->name, seen))
			continue;
		if (i + HB_FETCH_AHEAD < v->n_ops)
			hb_below__expect(below, &v->op[i + HB_FETCH_AHEAD]);
		hb_below__add(below, o, ns);
		x->in += ns;
		if (ns > x->most) {
			x->most = ns;
			x->top = o->name;
		}
	}
}

static int judge(struct hb_look *l, const struct hb_device *v, struct hb_named *seen, struct hb_below *below)
{
	char kernel[120];
	struct hb_draft *d;
	struct sums x = {0};

	sum_up(l->s, v, seen, &x, below);
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
	return hb_below__give(below, d);
}

static int by_device(struct hb_look *l, const struct hb_device *v)
{
	struct hb_named seen = {0};
	struct hb_below below;
	int err = hb_below__init(&below, l->s, v);

	err = err ? err : judge(l, v, &seen, &below);
	hb_below__free(&below);
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
