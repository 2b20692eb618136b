/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What bench_collect and its BPF program agree on. */
#ifndef HB_BENCH_EMIT_H
#define HB_BENCH_EMIT_H

#include "schema/schema.h"

#define BENCH_MIX (1u << 16) /* room for records made beforehand */

struct bench_item {
	u32 type, tid;
	union {
		struct hb_rec_accel accel;
		struct hb_rec_offcpu offcpu;
		struct hb_rec_sample sample;
	};
};

/* Emit `count` records, beginning with number `first` of the mix. */
struct bench_request {
	u32 first, count, pid, items; /* items: length of the mix, which then begins again */
};

#endif
