/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Long kernels with fewer blocks than the device has multiprocessors. */
#include <errno.h>

#include "analysis/model/decode.h"
#include "analysis/patterns/below.h"

enum { LONG, SHARE };

static const struct hb_param params[] = {
    [LONG] = {"long", HB_UNIT_NS, 20000, "kernels shorter than this do not count"},
    [SHARE] = {"share", HB_UNIT_SHARE, 30000, "such kernels, of the kernels' time"},
    {0},
};

struct sums {
	u64 in, all; /* ns of such kernels, of all */
	u64 most;    /* of the longest such */
	u32 top;     /* its number */
};

/* `size` of a kernel is its blocks. What could be saved: the part of the device that had none. */
static void sum_up(const struct hb_look *l, const struct hb_device *v, u32 sms, struct sums *x,
		   struct hb_below *below)
{
	u64 least = hb_look__param(l, LONG);

	for (u32 i = 0; i < v->n_ops; i++) {
		const struct hb_device_op *o = &v->op[i];
		u64 dur = o->end - o->begin;

		if (o->kind != HB_DEVKIND_KERNEL || o->work != HB_WORK_COMPUTE)
			continue;
		x->all += dur;
		if (dur < least || !o->size || o->size >= sms)
			continue;
		hb_below__add(below, o, dur - dur * o->size / sms);
		x->in += dur;
		if (dur > x->most) {
			x->most = dur;
			x->top = i;
		}
	}
}

static int judge(struct hb_look *l, const struct hb_device *v, u32 sms, struct hb_below *below)
{
	struct sums x = {0};
	char kernel[120];
	struct hb_draft *d;

	sum_up(l, v, sms, &x, below);
	hb_look__subject(l);
	if (!x.all || !hb_look__at_least(l, SHARE, hb_share(x.in, x.all)))
		return 0;
	d = hb_look__find(
	    l,
	    "kernels with fewer blocks than device %u has multiprocessors (%u) take %llu %% of the kernels' "
	    "time; the longest has %llu: %s",
	    v->number, sms, (unsigned long long)(hb_share(x.in, x.all) / 10000),
	    (unsigned long long)v->op[x.top].size,
	    hb_decode__kernel(hb_window__string(l->s->w, v->op[x.top].name), kernel, sizeof(kernel)));
	if (!d)
		return -ENOMEM;
	hb_draft__pid(d, v->pid);
	hb_draft__device(d, v->index);
	return hb_below__give(below, d);
}

static int by_device(struct hb_look *l, const struct hb_device *v)
{
	u32 sms = hb_scene__multiprocessors(l->s, v->number);
	struct hb_below below;
	int err;

	if (!sms) {
		hb_look__unchecked(l, HB_NEED_PROPERTIES, "needs %s", hb_need__text(HB_NEED_PROPERTIES));
		return 0;
	}
	err = hb_below__init(&below, l->s, v);
	err = err ? err : judge(l, v, sms, &below);
	hb_below__free(&below);
	return err;
}

static int detect(struct hb_look *l)
{
	return hb_look__devices(l, by_device);
}

HB_PATTERN(p40b_low_parallelism) = {
    .id = "P40b",
    .layer = "kernel",
    .title = "kernels with too few blocks",
    .rank = HB_RANK_OWN,
    .needs = HB_NEED_DEVICE,
    .params = params,
    .rule = "kernels of 20 us and more with fewer blocks than the device has multiprocessors take a part of "
	    "the kernels' time. "
	    "(Occupancy is not recorded)",
    .fix = "split K, persistent kernels, a larger batch",
    .ref = "TraceLens and PyTorch's TensorBoard plug-in: estimated SM efficiency, duration by min(blocks per "
	   "SM, 1)",
    .traps = "kernels that run side by side share the device",
    .settle = "Nsight Compute on that kernel",
    .detect = detect,
};
