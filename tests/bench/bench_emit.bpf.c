/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Emits records of a given mix into the real rings by the real way (emit.bpf.h), without the traps of
 * uprobes: what kernel side and collector can do when the target is not what limits the rate.
 */
#include "emit.bpf.h"
#include "../tests/bench/bench_emit.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, BENCH_MIX);
	__type(key, u32);
	__type(value, struct bench_item);
} mix SEC(".maps");

#define EMIT_AS(kind)                                                                                        \
	do {                                                                                                 \
		struct hb_rec_##kind *r = HB_RESERVE_FOR(kind, q->pid, m->tid);                              \
		if (r) {                                                                                     \
			*r = m->kind;                                                                        \
			HB_SUBMIT(r);                                                                        \
		}                                                                                            \
	} while (0)

static long emit_one(u32 i, void *arg)
{
	struct bench_request *q = arg;
	u32 key = (q->first + i) % q->items;
	struct bench_item *m = bpf_map_lookup_elem(&mix, &key);

	if (!m)
		return 1;
	if (m->type == HB_TYPE_accel)
		EMIT_AS(accel);
	else if (m->type == HB_TYPE_offcpu)
		EMIT_AS(offcpu);
	else
		EMIT_AS(sample);
	return 0;
}

SEC("syscall")
int bench_emit(struct bench_request *ctx)
{
	struct bench_request q = *ctx;

	if (q.items)
		bpf_loop(q.count, emit_one, &q, 0);
	return 0;
}
