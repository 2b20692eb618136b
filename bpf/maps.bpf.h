/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What all programs share: the target set, the rings, the loss counters, the stack table. Maps are __weak
 * because every .bpf.c defines them and `bpftool gen object` merges them into one (clang 14 and libbpf 1.1
 * refuse plain ones as conflicting).
 */
#ifndef HB_MAPS_BPF_H
#define HB_MAPS_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>

#include "schema/wire.h"

/* For all objects: they become one. */
char hb_license[] SEC("license") __weak = "Dual BSD/GPL";

/* Set by user space in .rodata before load. */
const volatile u32 hb_n_rings SEC(".rodata") __weak = 1;
/* A ring asks for attention each time its unread bytes pass a multiple of this. A power of two. */
const volatile u32 hb_wake_bytes SEC(".rodata") __weak = 65536;

/* The window: a call belongs to it when it begins (and, where timed, ends) in [from, until). Set by user
 * space a little ahead of time, so that every CPU and every process of the target begins and ends at the same
 * moment; the target set alone would be filled and emptied process by process. */
volatile u64 hb_calls_from SEC(".bss") __weak;
volatile u64 hb_calls_until SEC(".data") __weak = ~0ULL;

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, HB_MAX_TARGETS);
	__type(key, u32);
	__type(value, struct hb_target_cfg);
} targets SEC(".maps") __weak;

struct hb_ring {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, HB_MAX_RINGS);
	__type(key, u32);
	__array(values, struct hb_ring);
} rings SEC(".maps") __weak;

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, HB_LOSS_KEYS);
	__type(key, u32);
	__type(value, u64);
} losses SEC(".maps") __weak;

/* Distinct stacks. The kernel's own stack table is a hash without chains: 3,000 stacks of a real engine lost
 * one in a thousand to collisions. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, HB_MAX_STACKS);
	__type(key, u32); /* stack id: folded hash, never 0 */
	__type(value, struct hb_stack_trace);
} stacks SEC(".maps") __weak;

/* Where a stack is put together: one place per CPU and kind of context, since a sample's interrupt comes in
 * the middle of a switch. */
struct hb_stack_scratch {
	u32 busy, pad;
	u64 frame;		   /* of a walk under way: the next one, */
	u64 second;		   /* what the first came back to, */
	u64 hash;		   /* the hash so far, */
	u64 task;		   /* the outermost coroutine seen, */
	u64 task_of;		   /* of this thread (pid and tid), */
	u64 parts[3];		   /* of a code object, */
	u64 window_at, window_end; /* memory of the thread from there on, to there, */
	u64 base;		   /* and in it this frame, in words */
	u64 window[HB_PY_WINDOW / 8];
	struct hb_stack_trace trace;
};

/* Native and Python stacks of one moment. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, HB_MAX_STACKS);
	__type(key, u32); /* HB_STACK_PAIR | folded hash */
	__type(value, struct hb_stack_pair);
} stack_pairs SEC(".maps") __weak;

/* What is known of their Python: none (n = 0), or that. Those that are not in it have not been looked at. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, HB_MAX_TARGETS);
	__type(key, u32);
	__type(value, struct hb_py_process);
} py_processes SEC(".maps") __weak;

/* Stacks of threads that slept when the window began, walked by user space, since a thread that sleeps does
 * not run programs. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, HB_MAX_EDGE_STACKS);
	__type(key, struct hb_py_thread);
	__type(value, u32); /* as in STACK members */
} edge_stacks SEC(".maps") __weak;

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 3);
	__type(key, u32);
	__type(value, struct hb_stack_scratch);
} stack_scratch SEC(".maps") __weak;

#endif
