/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analysis/patterns/gemm.h"

extern HB_PATTERN(p40c_skinny_gemm);

bool hb_gemm__of(const struct hb_roof_row *r, struct hb_gemm *out)
{
	const double *z = r->in.size;
	double batch = z[HB_ROOF_BATCH] > 1 ? z[HB_ROOF_BATCH] : 1;
	bool turned = z[HB_ROOF_M] > z[HB_ROOF_N];
	unsigned multiple = hb_dtype__bits(r->in.weight) <= 8 ? 16 : 8;

	if (r->kind != HB_ROOF_GEMM || r->bound != HB_ROOF_BY_MEMORY || r->wrong || !(r->light_ns > 0))
		return false;
	*out = (struct hb_gemm){.rows = (u64)z[turned ? HB_ROOF_N : HB_ROOF_M],
				.cols = (u64)z[turned ? HB_ROOF_M : HB_ROOF_N],
				.k = (u64)z[HB_ROOF_K]};
	out->weights = (u64)hb_dtype__bytes(r->in.weight, batch * (double)out->k * (double)out->cols);
	out->multiple = out->cols % multiple || out->k % multiple ? multiple : 0;
	return out->rows && out->cols && out->k;
}

bool hb_gemm__awkward(const struct hb_thresholds *t, const struct hb_roof_row *r)
{
	const struct hb_pattern *p = &hb_pattern_p40c_skinny_gemm;
	struct hb_gemm g;

	return hb_gemm__of(r, &g) && g.weights >= hb_thresholds__value(t, p, "weights") &&
	       (g.multiple || g.rows <= hb_thresholds__value(t, p, "rows"));
}
