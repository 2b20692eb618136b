/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Kernel structs that are not the same from 5.15 to 6.18, each with the reason. libbpf ignores what follows
 * "___", so a flavour relocates against the running kernel's struct; bpf_core_field_exists() picks the branch
 * at load.
 */
#ifndef HB_FLAVOURS_BPF_H
#define HB_FLAVOURS_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

/* 5.14 renamed task_struct.state to __state (2f064a59a11f) and made it unsigned int. */
struct task_struct___old {
	volatile long state;
} __attribute__((preserve_access_index));
struct task_struct___state {
	unsigned int __state;
} __attribute__((preserve_access_index));

/* Only PREEMPT_RT kernels count softirq sections in the task instead of in preempt_count. */
struct task_struct___rt {
	int softirq_disable_cnt;
} __attribute__((preserve_access_index));

/* Only with CONFIG_FAIR_GROUP_SCHED does an entity know its queue. */
struct sched_entity___group {
	struct cfs_rq *cfs_rq;
} __attribute__((preserve_access_index));

/* Only with CONFIG_IPV6. */
struct sock_common___v6 {
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
} __attribute__((preserve_access_index));

/* Private to fs/eventfd.c, and so absent from a minimal vmlinux.h; `id` came with 5.2. */
struct eventfd_ctx___id {
	int id;
} __attribute__((preserve_access_index));

#endif
