/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Matrix products of few rows, or with sizes the hardware does not like, that read their weights slowly. */
#include <errno.h>

#include "analysis/model/decode.h"
#include "analysis/patterns/gemm.h"
#include "base/text.h"

enum { BUSY, TIME, ROWS, WEIGHTS, SPEED };

static const struct hb_param params[] = {
    [BUSY] = {"busy", HB_UNIT_SHARE, 500000,
	      "time in which the device is busy, of all: else its kernels are not what limits"},
    [TIME] = {"time", HB_UNIT_SHARE, 30000, "products of one size, of the time that the device is busy"},
    [ROWS] = {"rows", HB_UNIT_COUNT, 16,
	      "rows at most; or sizes that are no multiple of 8 (of 16 for 8 bits)"},
    [WEIGHTS] = {"weights", HB_UNIT_BYTES, 4 << 20, "bytes of weights: less may stay in the cache"},
    [SPEED] = {"speed", HB_UNIT_SHARE, 500000, "their speed, of that of the device's memory, at most"},
    {0},
};

static int tell(struct hb_look *l, const struct hb_device *v, const struct hb_roof_row *r,
		const struct hb_gemm *g, u64 speed)
{
	char bytes[32], odd[64] = "";
	char kernel[120];
	struct hb_draft *d;

	if (g->multiple)
		snprintf(odd, sizeof(odd), ", sizes that are no multiples of %u", g->multiple);
	d = hb_look__find(l,
			  "%.60s on device %u (%s): a product of %llu rows by %llu x %llu%s reads its %s of "
			  "weights at %llu %% of the memory's speed, %llu times",
			  r->name, v->number,
			  hb_decode__kernel(hb_window__string(l->s->w, r->kernel), kernel, sizeof(kernel)),
			  (unsigned long long)g->rows, (unsigned long long)g->k, (unsigned long long)g->cols,
			  odd, hb_text__bytes(bytes, sizeof(bytes), g->weights),
			  (unsigned long long)((speed + 5000) / 10000), (unsigned long long)r->dur.count);
	return d ? hb_draft__add_work(d, v, r) : -ENOMEM;
}

static int by_device(struct hb_look *l, const struct hb_device *v)
{
	const struct hb_roof_device *dev = hb_roofline__device(l->s->roofline, v->index);
	u32 n;
	const struct hb_roof_row *r = hb_roofline__rows(l->s->roofline, &n);
	int err = 0;

	for (u32 i = 0; i < n && !err; i++) {
		struct hb_gemm g;
		u64 speed;

		if (r[i].device != v->index || !dev || !dev->peak || !(dev->peak->memory > 0) ||
		    !hb_gemm__of(&r[i], &g))
			continue;
		speed = (u64)(r[i].tbytes / dev->peak->memory * 1e6);
		hb_look__subject(l);
		if (hb_look__at_least(l, BUSY, hb_share(v->busy, v->end - v->begin)) &&
		    hb_look__at_least(l, TIME, hb_share(r[i].dur.total, v->busy)) &&
		    (g.multiple || hb_look__at_most(l, ROWS, g.rows)) &&
		    hb_look__at_least(l, WEIGHTS, g.weights) && hb_look__at_most(l, SPEED, speed))
			err = tell(l, v, &r[i], &g, speed);
	}
	return err;
}

static int detect(struct hb_look *l)
{
	return hb_look__devices(l, by_device);
}

HB_PATTERN(p40c_skinny_gemm) = {
    .id = "P40c",
    .layer = "kernel",
    .title = "skinny or unaligned matrix products",
    .rank = HB_RANK_OWN,
    .needs = HB_NEED_DEVICE | HB_NEED_SHAPES,
    .params = params,
    .rule =
	"products that memory limits, with 16 rows or fewer, or with sizes that are no multiple of 8 (16 "
	"for types of 8 bits), read weights of 4 MiB and more at less than half of the memory's speed, and "
	"take a part of a busy device's time (roofline.md). Such products are told here and not by P40a",
    .fix = "GEMV, split K, padding",
    .ref = "sgl-project/sglang#37491 (32 to 5.5 us); vllm-project/vllm#47712, #29937",
    .traps = "weights that stay in the cache; 70 to 80 % of the memory's speed is what good kernels reach",
    .settle = "Nsight Compute on that kernel",
    .detect = detect,
};
