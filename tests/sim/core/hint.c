/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a library knows about the kernel it is about to launch, for the cost model. */
#include "sim.h"

static __thread struct hb_hint next;

void hb_hint__set(u64 flops, u64 bytes)
{
	next = (struct hb_hint){flops, bytes};
}

struct hb_hint hb_hint__take(void)
{
	struct hb_hint h = next;

	next = (struct hb_hint){0, 0};
	return h;
}
