/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analysis/model/order.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define BITS   11
#define DIGITS (1u << BITS)
/* Times mostly come nearly in order: so many steps for each item are tried before all of it is sorted. */
#define STEPS 4
#define FEW   64

static void span_of(const struct hb_order *v, size_t n, uint64_t *min, uint64_t *max)
{
	*min = *max = v[0].key;
	for (size_t i = 1; i < n; i++) {
		*min = v[i].key < *min ? v[i].key : *min;
		*max = v[i].key > *max ? v[i].key : *max;
	}
}

/* Inserts each item where it belongs; false when that takes too many steps (what was done keeps equal keys in
 * their order). */
static bool insert(struct hb_order *v, size_t n)
{
	size_t steps = STEPS * n + FEW * FEW;

	for (size_t i = 1; i < n; i++) {
		struct hb_order x = v[i];
		size_t at = i;

		for (; at && v[at - 1].key > x.key; at--)
			v[at] = v[at - 1];
		v[at] = x;
		if (i - at > steps)
			return false;
		steps -= i - at;
	}
	return true;
}

static void pass(const struct hb_order *from, struct hb_order *to, size_t n, uint64_t min, unsigned shift)
{
	size_t at[DIGITS + 1] = {0};

	for (size_t i = 0; i < n; i++)
		at[((from[i].key - min) >> shift & (DIGITS - 1)) + 1]++;
	for (unsigned d = 0; d < DIGITS; d++)
		at[d + 1] += at[d];
	for (size_t i = 0; i < n; i++)
		to[at[(from[i].key - min) >> shift & (DIGITS - 1)]++] = from[i];
}

int hb_order__sort(struct hb_order *v, size_t n)
{
	uint64_t min, max;
	struct hb_order *other, *from = v, *to;

	if (insert(v, n))
		return 0;
	other = malloc(n * sizeof(*other));
	if (!other)
		return -ENOMEM;
	span_of(v, n, &min, &max);
	to = other;
	for (unsigned shift = 0; shift < 64 && (max - min) >> shift; shift += BITS) {
		pass(from, to, n, min, shift);
		from = to;
		to = from == v ? other : v;
	}
	if (from != v)
		memcpy(v, other, n * sizeof(*v));
	free(other);
	return 0;
}
