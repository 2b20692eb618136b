/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analysis/model/order.h"

#include "base/radix.h"

#define KEY_OF(x)   ((x)->key)
#define VALUE_OF(x) (*(x))

HB_RADIX_SORT(sort_items, struct hb_order, KEY_OF)
HB_RADIX_SORT(sort_values, uint64_t, VALUE_OF)

int hb_order__sort(struct hb_order *v, size_t n)
{
	return sort_items(v, n);
}

static int cmp_values(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

void hb_order__values(uint64_t *v, size_t n)
{
	if (sort_values(v, n))
		qsort(v, n, sizeof(*v), cmp_values);
}
