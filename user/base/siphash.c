/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "base/siphash.h"

#include <string.h>

static uint64_t rotate(uint64_t x, unsigned by)
{
	return x << by | x >> (64 - by);
}

static void rounds(uint64_t v[4], unsigned n)
{
	while (n--) {
		v[0] += v[1];
		v[2] += v[3];
		v[1] = rotate(v[1], 13) ^ v[0];
		v[3] = rotate(v[3], 16) ^ v[2];
		v[0] = rotate(v[0], 32);
		v[2] += v[1];
		v[0] += v[3];
		v[1] = rotate(v[1], 17) ^ v[2];
		v[3] = rotate(v[3], 21) ^ v[0];
		v[2] = rotate(v[2], 32);
	}
}

uint64_t hb_siphash(const uint64_t key[2], const void *data, size_t size)
{
	uint64_t v[4] = {key[0] ^ 0x736f6d6570736575ULL, key[1] ^ 0x646f72616e646f6dULL,
			 key[0] ^ 0x6c7967656e657261ULL, key[1] ^ 0x7465646279746573ULL};
	const uint8_t *at = data;
	uint64_t word, last = (uint64_t)size << 56;

	for (size_t left = size; left >= 8; left -= 8, at += 8) {
		memcpy(&word, at, 8);
		v[3] ^= word;
		rounds(v, 2);
		v[0] ^= word;
	}
	for (size_t i = 0; i < size % 8; i++)
		last |= (uint64_t)at[i] << 8 * i;
	v[3] ^= last;
	rounds(v, 2);
	v[0] ^= last;
	v[2] ^= 0xff;
	rounds(v, 4);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}
