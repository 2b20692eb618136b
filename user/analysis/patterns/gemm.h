/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Matrix products as patterns look at them. Inside of patterns: P40a, P40c. */
#ifndef HB_GEMM_H
#define HB_GEMM_H

#include "analysis/patterns/pattern.h"

struct hb_gemm {
	u64 rows, cols, k; /* rows: the smaller of the result's two sizes, which one is a matter of layout */
	u64 weights;	   /* bytes of the k x cols matrix */
	unsigned multiple; /* of which cols and k should be one; 0: they are */
};

/* False: it is no product, or its speed is not limited by memory. */
bool hb_gemm__of(const struct hb_roof_row *r, struct hb_gemm *out);
/* By the thresholds of P40c: few rows, or sizes that the hardware does not like, and large weights. */
bool hb_gemm__awkward(const struct hb_thresholds *t, const struct hb_roof_row *r);

#endif
