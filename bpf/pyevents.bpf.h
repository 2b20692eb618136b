/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What is known of the Pythons of each process for exceptions, GIL and collections. */
#ifndef HB_PYEVENTS_BPF_H
#define HB_PYEVENTS_BPF_H

#include "python.bpf.h"
#include "schema/pyevents.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, HB_MAX_TARGETS);
	__type(key, u32);
	__type(value, struct hb_py_events);
} py_events SEC(".maps") __weak;

static __always_inline u32 py_int(u64 at)
{
	u32 v = 0;

	bpf_probe_read_user(&v, sizeof(v), (void *)at);
	return v;
}

#endif
