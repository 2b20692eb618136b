/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Whether the kernel will tell of a return. */
#ifndef HB_RETURNS_BPF_H
#define HB_RETURNS_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#define HB_RETURNS_MAX 64 /* of a thread that the kernel follows at a time (MAX_URETPROBE_DEPTH) */

/* Not in every vmlinux.h. */
struct uprobe_task___depth {
	unsigned int depth;
} __attribute__((preserve_access_index));
struct task_struct___utask {
	struct uprobe_task___depth *utask;
} __attribute__((preserve_access_index));

/* At an entry: there is a place for this call's return. What is entered deeper does not return to us. */
static __always_inline bool hb_returns(void)
{
	struct task_struct___utask *task = (void *)bpf_get_current_task_btf();
	struct uprobe_task___depth *u = NULL;

	if (!bpf_core_field_exists(task->utask) || !bpf_core_field_exists(u->depth))
		return true;
	u = BPF_CORE_READ(task, utask);
	return !u || BPF_CORE_READ(u, depth) < HB_RETURNS_MAX;
}

#endif
