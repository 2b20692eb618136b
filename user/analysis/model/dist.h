/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a set of numbers looks like, exactly: for those that are at hand as an array (hb_hist is for streams).
 */
#ifndef HB_DIST_H
#define HB_DIST_H

#include <stddef.h>
#include <stdint.h>

struct hb_dist { /* all zero = of nothing */
	uint64_t count, total, min, max;
	uint64_t p50, p95; /* nearest rank */
	double mean, std;  /* of the population */
};

/* Of n values, which end up in another order. */
struct hb_dist hb_dist__of(uint64_t *values, size_t n);
/* Its p50 alone; 0 of nothing. */
uint64_t hb_dist__median(uint64_t *values, size_t n);
/* Of values in groups: value[i] belongs to group[i] < n_groups; out[g] is replaced. 0 or -ENOMEM. */
int hb_dist__grouped(const uint32_t *group, const uint64_t *value, size_t n, struct hb_dist *out,
		     uint32_t n_groups);

#endif
