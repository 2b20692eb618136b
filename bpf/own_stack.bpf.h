/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Since 6.13 kernels let programs of the kprobe type work on a stack that belongs to the CPU when they need
 * 64 bytes of it, since such programs do not nest on a CPU. As uprobes they do: one is preempted, the next
 * thread hits a probe on the same CPU, and the first goes on with what that one left: calls with the
 * arguments, name or thread of another, and now and then an oops of the kernel (seen on 6.18 and 7.0). A
 * program that holds a tail call keeps the stack of its thread; this one is never made, so the verifier takes
 * it out again.
 *
 * Every program that is attached as a uprobe begins with hb_own_stack(); tests/unit/test_own_stack_bpf.c
 * looks at what the kernel made of them.
 */
#ifndef HB_OWN_STACK_BPF_H
#define HB_OWN_STACK_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

const volatile bool hb_never SEC(".rodata") __weak = false;

/* One for each way to attach: all programs of such a map must be of one. */
struct hb_no_programs {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u32);
};

static __always_inline void hb_own_stack(void *ctx, void *map)
{
	if (hb_never)
		bpf_tail_call(ctx, map, 0);
}

#endif
