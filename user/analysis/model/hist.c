/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analysis/model/hist.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SUB ((uint64_t)1 << HB_HIST_SUB)

/* Octave 0 holds 0..63 exactly; octave k holds 2^(k+5) .. 2^(k+6)-1 in steps of 2^(k-1). */
static unsigned octave_of(uint64_t v)
{
	return v < SUB ? 0 : (unsigned)(63 - __builtin_clzll(v)) - HB_HIST_SUB + 1;
}

static uint64_t bucket_low(unsigned octave, unsigned sub)
{
	return octave ? (SUB + sub) << (octave - 1) : sub;
}

static uint64_t *counters(struct hb_hist *h, unsigned octave)
{
	if (!h->octave[octave])
		h->octave[octave] = calloc(SUB, sizeof(uint64_t));
	return h->octave[octave];
}

int hb_hist__add(struct hb_hist *h, uint64_t v)
{
	unsigned o = octave_of(v);
	uint64_t *c = counters(h, o);

	if (!c)
		return -ENOMEM;
	c[o ? (v >> (o - 1)) - SUB : v]++;
	if (!h->count || v < h->min)
		h->min = v;
	if (v > h->max)
		h->max = v;
	h->count++;
	h->total += v;
	return 0;
}

uint64_t hb_hist__quantile(const struct hb_hist *h, double q)
{
	double want = q * (double)h->count;
	uint64_t rank = (uint64_t)want, seen = 0, v;

	if ((double)rank < want)
		rank++;
	if (rank >= h->count)
		return h->max;
	if (!rank)
		rank = 1;
	for (unsigned o = 0; o < HB_HIST_OCTAVES; o++) {
		for (unsigned s = 0; h->octave[o] && s < SUB; s++) {
			seen += h->octave[o][s];
			if (seen < rank)
				continue;
			v = bucket_low(o, s) +
			    (o > 1 ? (uint64_t)1 << (o - 2) : 0); /* middle of the bucket */
			return v < h->min ? h->min : v > h->max ? h->max : v;
		}
	}
	return h->max;
}

int hb_hist__merge(struct hb_hist *h, const struct hb_hist *from)
{
	if (!from->count)
		return 0;
	for (unsigned o = 0; o < HB_HIST_OCTAVES; o++)
		if (from->octave[o] && !counters(h, o))
			return -ENOMEM;
	for (unsigned o = 0; o < HB_HIST_OCTAVES; o++)
		for (unsigned s = 0; from->octave[o] && s < SUB; s++)
			h->octave[o][s] += from->octave[o][s];
	if (!h->count || from->min < h->min)
		h->min = from->min;
	if (from->max > h->max)
		h->max = from->max;
	h->count += from->count;
	h->total += from->total;
	return 0;
}

void hb_hist__free(struct hb_hist *h)
{
	for (unsigned o = 0; o < HB_HIST_OCTAVES; o++)
		free(h->octave[o]);
	memset(h, 0, sizeof(*h));
}
