/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A histogram of u64 values with at most 0.8 % relative error: 64 linear buckets in each power of two, values
 * below 64 exact. Memory follows the range seen (512 bytes for each power of two), not the number of values.
 */
#ifndef HB_HIST_H
#define HB_HIST_H

#include <stdint.h>

#define HB_HIST_SUB	6 /* log2 of the buckets in a power of two */
#define HB_HIST_OCTAVES (64 - HB_HIST_SUB + 1)

struct hb_hist { /* all zero = empty */
	uint64_t count, total, min, max;
	uint64_t *octave[HB_HIST_OCTAVES]; /* 64 counters each, NULL = none */
};

/* Inside: octave 0 holds 0..63 exactly; octave k holds 2^(k+5) .. 2^(k+6)-1 in steps of 2^(k-1). */
static inline unsigned hb_hist__octave(uint64_t v)
{
	return v >> HB_HIST_SUB ? (unsigned)(63 - __builtin_clzll(v)) - HB_HIST_SUB + 1 : 0;
}
int hb_hist__add_octave(struct hb_hist *h, unsigned octave);

/* 0 or -ENOMEM (nothing was added). */
static inline int hb_hist__add(struct hb_hist *h, uint64_t value)
{
	unsigned o = hb_hist__octave(value);
	int err = h->octave[o] ? 0 : hb_hist__add_octave(h, o);

	if (err)
		return err;
	h->octave[o][(value >> (o ? o - 1 : 0)) & ((1U << HB_HIST_SUB) - 1)]++;
	if (!h->count || value < h->min)
		h->min = value;
	if (value > h->max)
		h->max = value;
	h->count++;
	h->total += value;
	return 0;
}
/* Value at quantile q in 0..1, nearest rank; 0 when empty. Never outside of min..max; q = 1 is the exact
 * maximum. */
uint64_t hb_hist__quantile(const struct hb_hist *h, double q);
/* Adds all of `from`; 0 or -ENOMEM. */
int hb_hist__merge(struct hb_hist *h, const struct hb_hist *from);
void hb_hist__free(struct hb_hist *h); /* also resets to empty */

#endif
