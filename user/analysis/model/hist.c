/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analysis/model/hist.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SUB ((uint64_t)1 << HB_HIST_SUB)

static uint64_t bucket_low(unsigned octave, unsigned sub)
{
	return octave ? (SUB + sub) << (octave - 1) : sub;
}

int hb_hist__add_octave(struct hb_hist *h, unsigned octave)
{
	if (!h->octave[octave])
		h->octave[octave] = calloc(SUB, sizeof(uint64_t));
	return h->octave[octave] ? 0 : -ENOMEM;
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
		if (from->octave[o] && hb_hist__add_octave(h, o))
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
