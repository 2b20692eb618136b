/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Sorts items by a 64-bit key (a time, mostly), in time that grows with their number only: a radix sort. */
#ifndef HB_ORDER_H
#define HB_ORDER_H

#include <stddef.h>
#include <stdint.h>

struct hb_order {
	uint64_t key;
	uint32_t item;
};

/* Ascending; equal keys stay as they are. 0 or -ENOMEM. */
int hb_order__sort(struct hb_order *v, size_t n);
/* Plain values, ascending. It needs no memory, but is faster with some. */
void hb_order__values(uint64_t *v, size_t n);

#endif
