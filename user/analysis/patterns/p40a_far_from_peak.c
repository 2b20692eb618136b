/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Kernels reach a small part of what the device could do. */
#include <errno.h>

#include "analysis/model/decode.h"
#include "analysis/patterns/gemm.h"

enum { BUSY, TIME, LIGHT };

static const struct hb_param params[] = {
    [BUSY] = {"busy", HB_UNIT_SHARE, 500000,
	      "time in which the device is busy, of all: else its kernels are not what limits"},
    [TIME] = {"time", HB_UNIT_SHARE, 30000, "work of one shape, of the time that the device is busy"},
    [LIGHT] = {"light", HB_UNIT_SHARE, 300000, "what the work must at least take, of what it takes, at most"},
    {0},
};

/* An occurrence is an execution; what could be saved of it at most is what lies beyond light. */
static int tell(struct hb_look *l, const struct hb_device *v, const struct hb_roof_row *r)
{
	char kernel[120];
	struct hb_draft *d =
	    hb_look__find(l,
			  "%.60s on device %u (%s) takes %llu us where its work must "
			  "take %.3g us (bound by %s), %llu times",
			  r->name, v->number,
			  hb_decode__kernel(hb_window__string(l->s->w, r->kernel), kernel, sizeof(kernel)),
			  (unsigned long long)(r->dur.p50 / 1000), r->light_ns / 1000,
			  hb_roof__bound(r->bound), (unsigned long long)r->dur.count);

	return d ? hb_draft__add_work(d, v, r) : -ENOMEM;
}

static int by_device(struct hb_look *l, const struct hb_device *v)
{
	u32 n;
	const struct hb_roof_row *r = hb_roofline__rows(l->s->roofline, &n);
	int err = 0;

	for (u32 i = 0; i < n && !err; i++) {
		if (r[i].device != v->index || !(r[i].light_ns > 0) || r[i].wrong ||
		    r[i].bound == HB_ROOF_BY_LINK || /* collectives: P33, P36, P46 */
		    hb_gemm__awkward(l->t, &r[i]))   /* those are P40c's */
			continue;
		hb_look__subject(l);
		if (hb_look__at_least(l, BUSY, hb_share(v->busy, v->end - v->begin)) &&
		    hb_look__at_least(l, TIME, hb_share(r[i].dur.total, v->busy)) &&
		    hb_look__at_most(l, LIGHT, (u64)(hb_roof_row__light(&r[i]) * 1e6)))
			err = tell(l, v, &r[i]);
	}
	return err;
}

static int detect(struct hb_look *l)
{
	return hb_look__devices(l, by_device);
}

HB_PATTERN(p40a_far_from_peak) = {
    .id = "P40a",
    .layer = "kernel",
    .title = "kernels far from the speed of light",
    .rank = HB_RANK_OWN,
    .needs = HB_NEED_DEVICE | HB_NEED_SHAPES,
    .params = params,
    .rule = "work of one shape takes a good part of a busy device's time, and more than three times what it "
	    "must at "
	    "least take (roofline.md). Collectives are left to P33, P36 and P46",
    .fix = "a kernel made for the device",
    .ref = "vllm-project/vllm#31722 (345 to 215 us), #38787",
    .traps = "overlapping kernels share the device; 70 to 80 % is what good kernels reach, so not all of the "
	     "bound "
	     "can be gained; more than 110 % is an error of the model",
    .settle = "Nsight Compute on that kernel",
    .detect = detect,
};
