/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A sort by a 64-bit key, ascending, in time that grows with the number of items only; equal keys stay as
 * they are. A template:
 *
 *   #define BEGIN_OF(x) ((x)->begin)
 *   HB_RADIX_SORT(sort_spans, struct span, BEGIN_OF)
 *
 * makes static int sort_spans(struct span *v, size_t n): 0 or -ENOMEM, with v in some order then. Times
 * mostly come nearly in order, so moving each item to its place is tried first, for a few steps an item.
 */
#ifndef HB_BASE_RADIX_H
#define HB_BASE_RADIX_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { HB_RADIX_BITS = 11, HB_RADIX_DIGITS = 1 << HB_RADIX_BITS, HB_RADIX_STEPS = 4, HB_RADIX_FEW = 4096 };

#define HB_RADIX_SORT(name, type, key)                                                                       \
	/* False: it takes too many steps. */                                                                \
	static bool name##__insert(type *v, size_t n)                                                        \
	{                                                                                                    \
		size_t steps = HB_RADIX_STEPS * n + HB_RADIX_FEW;                                            \
                                                                                                             \
		for (size_t i = 1; i < n; i++) {                                                             \
			type x = v[i];                                                                       \
			size_t at = i;                                                                       \
                                                                                                             \
			for (; at && key(&v[at - 1]) > key(&x); at--)                                        \
				v[at] = v[at - 1];                                                           \
			v[at] = x;                                                                           \
			if (i - at > steps)                                                                  \
				return false;                                                                \
			steps -= i - at;                                                                     \
		}                                                                                            \
		return true;                                                                                 \
	}                                                                                                    \
                                                                                                             \
	static void name##__pass(const type *from, type *to, size_t n, uint64_t min, unsigned shift)         \
	{                                                                                                    \
		size_t at[HB_RADIX_DIGITS + 1] = {0};                                                        \
                                                                                                             \
		for (size_t i = 0; i < n; i++)                                                               \
			at[((key(&from[i]) - min) >> shift & (HB_RADIX_DIGITS - 1)) + 1]++;                  \
		for (unsigned d = 0; d < HB_RADIX_DIGITS; d++)                                               \
			at[d + 1] += at[d];                                                                  \
		for (size_t i = 0; i < n; i++)                                                               \
			to[at[(key(&from[i]) - min) >> shift & (HB_RADIX_DIGITS - 1)]++] = from[i];          \
	}                                                                                                    \
                                                                                                             \
	static int name(type *v, size_t n)                                                                   \
	{                                                                                                    \
		uint64_t min, max;                                                                           \
		type *other, *from = v, *to;                                                                 \
                                                                                                             \
		if (name##__insert(v, n))                                                                    \
			return 0;                                                                            \
		other = malloc(n * sizeof(*other));                                                          \
		if (!other)                                                                                  \
			return -ENOMEM;                                                                      \
		min = max = key(&v[0]);                                                                      \
		for (size_t i = 1; i < n; i++) {                                                             \
			min = key(&v[i]) < min ? key(&v[i]) : min;                                           \
			max = key(&v[i]) > max ? key(&v[i]) : max;                                           \
		}                                                                                            \
		to = other;                                                                                  \
		for (unsigned shift = 0; shift < 64 && (max - min) >> shift; shift += HB_RADIX_BITS) {       \
			name##__pass(from, to, n, min, shift);                                               \
			from = to;                                                                           \
			to = from == v ? other : v;                                                          \
		}                                                                                            \
		if (from != v)                                                                               \
			memcpy(v, other, n * sizeof(*v));                                                    \
		free(other);                                                                                 \
		return 0;                                                                                    \
	}

#endif
