/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A minimal vmlinux.h for build machines whose kernel has no BTF; elsewhere the Makefile generates the full
 * one. Only the members that bpf/ reads are declared, in no particular order and without padding: every
 * access is relocated against the running kernel when the programs are loaded (CO-RE), so a struct here is a
 * list of names, not a layout. The exceptions are what the kernel's ABI fixes: numbers of map types, helper
 * flags, and the saved registers.
 *
 * A new kernel member used in bpf/ needs a line here: `make VMLINUX_BTF=/nonexistent` shows what is missing,
 * and a test builds and loads the programs this way.
 */
#ifndef __VMLINUX_H__
#define __VMLINUX_H__

typedef signed char __s8;
typedef unsigned char __u8;
typedef short __s16;
typedef unsigned short __u16;
typedef int __s32;
typedef unsigned int __u32;
typedef long long __s64;
typedef unsigned long long __u64;
typedef __s8 s8;
typedef __u8 u8;
typedef __s16 s16;
typedef __u16 u16;
typedef __s32 s32;
typedef __u32 u32;
typedef __s64 s64;
typedef __u64 u64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u64 __be64;
typedef __u32 __wsum;
typedef _Bool bool;
typedef unsigned long size_t;
typedef int pid_t;
enum { false = 0, true = 1 };

/* ---- fixed by the ABI (include/uapi/linux/bpf.h) ---- */

enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PROG_ARRAY = 3,
	BPF_MAP_TYPE_PERF_EVENT_ARRAY = 4,
	BPF_MAP_TYPE_PERCPU_HASH = 5,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_STACK_TRACE = 7,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_ARRAY_OF_MAPS = 12,
	BPF_MAP_TYPE_HASH_OF_MAPS = 13,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
};

enum {
	BPF_ANY = 0,
	BPF_NOEXIST = 1,
	BPF_EXIST = 2,
};

enum {
	BPF_F_NO_PREALLOC = 1U << 0,
	BPF_F_SKIP_FIELD_MASK = 0xff,
	BPF_F_USER_STACK = 1U << 8,
	BPF_F_FAST_STACK_CMP = 1U << 9,
	BPF_F_REUSE_STACKID = 1U << 10,
	BPF_F_USER_BUILD_ID = 1U << 11,
	BPF_LOCAL_STORAGE_GET_F_CREATE = 1U << 0,
	BPF_RB_NO_WAKEUP = 1U << 0,
	BPF_RB_FORCE_WAKEUP = 1U << 1,
	BPF_RB_AVAIL_DATA = 0,
	BPF_RB_RING_SIZE = 1,
	BPF_RB_CONS_POS = 2,
	BPF_RB_PROD_POS = 3,
};
#define BPF_F_CURRENT_CPU 0xffffffffULL

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

/* ---- saved registers: as the kernel pushes them, which is also what a probe's context points to ---- */

#if defined(__TARGET_ARCH_x86)
struct pt_regs {
	unsigned long r15, r14, r13, r12, bp, bx;
	unsigned long r11, r10, r9, r8, ax, cx, dx, si, di;
	unsigned long orig_ax;
	unsigned long ip, cs, flags, sp, ss;
};
typedef struct pt_regs bpf_user_pt_regs_t;
#elif defined(__TARGET_ARCH_arm64)
struct user_pt_regs {
	u64 regs[31];
	u64 sp, pc, pstate;
};
struct pt_regs {
	union {
		struct user_pt_regs user_regs;
		struct {
			u64 regs[31];
			u64 sp, pc, pstate;
		};
	};
	u64 orig_x0;
	s32 syscallno;
};
typedef struct user_pt_regs bpf_user_pt_regs_t;
#endif

struct bpf_perf_event_data {
	bpf_user_pt_regs_t regs;
	__u64 sample_period;
	__u64 addr;
};

/* ---- tasks ---- */

typedef struct {
	int counter;
} atomic_t;

struct rq {
	int cpu;
};

struct cfs_rq {
	struct rq *rq;
};

struct sched_entity {
	u64 sum_exec_runtime;
};

struct upid {
	int nr;
};

struct pid {
	unsigned int level;
	struct upid numbers[1];
};

struct signal_struct {
	atomic_t live;
	int group_exit_code;
	unsigned int flags;
};

struct thread_info {
	struct {
		u32 count;
	} preempt;
};

struct files_struct;
struct mm_struct;
struct thread_struct {
	unsigned long fsbase; /* x86-64 */
	struct {
		unsigned long tp_value;
	} uw; /* arm64 */
};
struct task_struct {
	struct thread_info thread_info;
	unsigned int flags;
	struct sched_entity se;
	int exit_code;
	pid_t pid;
	pid_t tgid;
	struct mm_struct *mm;
	struct task_struct *group_leader;
	struct pid *thread_pid;
	char comm[16];
	struct files_struct *files;
	struct signal_struct *signal;
	struct thread_struct thread;
};

/* ---- files ---- */

struct super_block {
	unsigned long s_magic;
};

struct inode {
	unsigned short i_mode;
	struct super_block *i_sb;
	unsigned long i_ino;
};

struct qstr {
	const unsigned char *name;
};

struct dentry {
	struct qstr d_name;
};

struct path {
	struct dentry *dentry;
};

struct file {
	struct inode *f_inode;
	struct path f_path;
	void *private_data;
};

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

/* ---- sockets ---- */

struct in6_addr {
	union {
		u8 u6_addr8[16];
		__be16 u6_addr16[8];
		__be32 u6_addr32[4];
	} in6_u;
};

struct sock_common {
	__be32 skc_daddr;
	__be32 skc_rcv_saddr;
	__be16 skc_dport;
	u16 skc_num;
	unsigned short skc_family;
};

struct socket;
struct sock {
	struct sock_common __sk_common;
	u16 sk_protocol;
	struct socket *sk_socket;
};

struct unix_sock {
	struct sock sk;
	struct sock *peer;
};

struct socket {
	struct file *file;
	struct sock *sk;
};

struct socket_alloc {
	struct socket socket;
	struct inode vfs_inode;
};

#pragma clang attribute pop

#endif
