/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <string.h>
#include "coll.h"
#include "result.h"

#define MAX_BYTES (64u << 10)

static bool on_device(u64 addr, u64 bytes)
{
	enum hb_space space;

	return hb_memory__inside(addr, bytes, &space) && space == HB_MEM_DEVICE;
}

void hb_coll__check(struct hb_coll *c)
{
	struct hb_coll_value *v = &c->value;

	if (!v->bytes || !v->copies || v->bytes > MAX_BYTES / v->copies || !on_device(v->from, v->bytes) ||
	    !on_device(v->to, v->bytes * v->copies))
		v->bytes = 0;
}

/* The sum of equal numbers; narrow types stay as they are. */
static void multiply(void *at, u64 bytes, enum hb_number kind, u32 by)
{
	u64 n;

#define EACH(type)                                                                                           \
	for (n = 0; n < bytes / sizeof(type); n++)                                                           \
		((type *)at)[n] = (type)(((type *)at)[n] * (type)by);                                        \
	break
	switch (kind) {
	case HB_NUMBER_U32:
		EACH(u32);
	case HB_NUMBER_U64:
		EACH(u64);
	case HB_NUMBER_F32:
		EACH(float);
	case HB_NUMBER_F64:
		EACH(double);
	case HB_NUMBER_OTHER:
		break;
	}
}

void hb_coll__run(int device, const struct hb_coll *c)
{
	const struct hb_coll_value *v = &c->value;
	bool known = v->bytes && hb_result__known(device, v->from, v->bytes);
	char *to = (char *)(uintptr_t)v->to;

	for (u32 i = 0; known && i < v->copies; i++)
		memmove(to + i * v->bytes, (const void *)(uintptr_t)v->from, v->bytes);
	if (known && v->times > 1)
		multiply(to, v->bytes * v->copies, v->number, v->times);
	hb_result__kernel(device, false);
	if (known)
		hb_result__written(device, v->to, v->bytes * v->copies);
}
