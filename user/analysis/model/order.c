/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analysis/model/order.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define BITS   11
#define DIGITS (1u << BITS)
#define FEW    48 /* so many are sorted faster by hand */

static bool span_of(const struct hb_order *v, size_t n, uint64_t *min, uint64_t *max)
{
	bool sorted = true;

	*min = *max = v[0].key;
	for (size_t i = 1; i < n; i++) {
		sorted &= v[i - 1].key <= v[i].key;
		*min = v[i].key < *min ? v[i].key : *min;
		*max = v[i].key > *max ? v[i].key : *max;
	}
	return sorted;
}

static void insert(struct hb_order *v, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		struct hb_order x = v[i];
		size_t at = i;

		for (; at && v[at - 1].key > x.key; at--)
			v[at] = v[at - 1];
		v[at] = x;
	}
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

	if (n < 2 || span_of(v, n, &min, &max))
		return 0;
	if (n <= FEW) {
		insert(v, n);
		return 0;
	}
	other = malloc(n * sizeof(*other));
	if (!other)
		return -ENOMEM;
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
