/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A synthetic window with the tables of a real one (three processes, 40 threads, 60 functions, 4000 stacks)
 * and its mix of records, for the benchmarks of what reads windows.
 */
#ifndef HB_BENCH_MADE_WINDOW_H
#define HB_BENCH_MADE_WINDOW_H

#include <stdio.h>

#include "window/window.h"

enum { PROCS = 3, THREADS = 40, PROBES = 60, STACKS = 4000, STREAMS = 4, FRAMES = 24 };
#define BEGIN 1000000000000ULL

static u64 seed = 88172645463325252ULL;

static u64 rnd(u64 n)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed % n;
}

static u32 pid_of(u32 thread)
{
	return 100 * (thread % PROCS + 1);
}

static u32 tid_of(u32 thread)
{
	return pid_of(thread) + thread / PROCS;
}

static void put_tables(struct hb_window_writer *w)
{
	u32 locs[FRAMES];
	char name[64];

	for (u32 i = 0; i < PROCS; i++) {
		struct hb_proc p = {.pid = 100 * (i + 1)};

		hb_window_writer__proc(w, &p);
	}
	for (u32 i = 0; i < THREADS; i++) {
		struct hb_task t = {.pid = pid_of(i), .tid = tid_of(i), .target = 1};

		snprintf(name, sizeof(name), "thread-%u", i);
		t.comm = hb_window_writer__string(w, name);
		hb_window_writer__task(w, &t);
	}
	for (u32 i = 1; i <= PROBES; i++) {
		struct hb_probe_row row = {.cls = (u8)(i % HB_CLASS_COUNT),
					   .api = hb_window_writer__string(w, "cuda-driver")};

		snprintf(name, sizeof(name), "cuFunctionNumber%u", i);
		row.name = hb_window_writer__string(w, name);
		hb_window_writer__probe(w, i, &row);
	}
	for (u32 i = 1; i <= STACKS; i++) {
		for (u32 k = 0; k < FRAMES; k++) {
			struct hb_loc l = {.offset = (i * k) % 3000 + k,
					   .module = hb_window_writer__string(w, "/opt/lib/libtorch.so")};

			snprintf(name, sizeof(name), "at::native::function_%u", (i * k) % 700 + k);
			l.func = hb_window_writer__string(w, name);
			locs[k] = hb_window_writer__loc(w, &l);
		}
		hb_window_writer__stack(w, 100 * (i % PROCS + 1), i, locs, FRAMES, HB_STACK_WHOLE);
	}
}

static u32 stack_for(u32 thread)
{
	return (u32)rnd(STACKS / PROCS) * PROCS + thread % PROCS + (thread % PROCS ? 0 : PROCS);
}

static inline int put_record(struct hb_window_writer *w, u64 ts)
{
	u32 thread = (u32)rnd(THREADS), dice = (u32)rnd(100), other = (u32)rnd(THREADS);
	u16 task = (u16)thread;

	if (dice < 75) {
		struct hb_rec_accel a = {.probe = 1 + (u32)rnd(PROBES),
					 .stream = 0x55d0c0ffee00,
					 .handle = 0x7f3200000000 + rnd(64) * 256,
					 .gx = 128,
					 .gy = 1,
					 .gz = 1,
					 .bx = 256,
					 .by = 1,
					 .bz = 1,
					 .stack = stack_for(thread)};

		if (dice < 40) {
			a.dur = rnd(1 << rnd(20));
			a.flags = HB_AFLAG_TIMED | HB_AFLAG_RET;
			a.gx = 0;
			a.bytes = 4096;
		}
		return hb_window_writer__put(w, thread % STREAMS, ts, task, HB_TYPE_accel, &a);
	}
	if (dice < 97) {
		struct hb_rec_offcpu o = {.dur = rnd(1 << rnd(20)),
					  .ready = rnd(5000),
					  .chan = 0x7f0011223300 + rnd(8) * 64,
					  .waker = tid_of(other),
					  .waker_pid = pid_of(other),
					  .stack = stack_for(thread),
					  .sysno = (u16)rnd(4) * 100,
					  .wsys = 202,
					  .state = HB_TSTATE_SLEEPING,
					  .wctx = HB_WCTX_TASK,
					  .chankind = HB_CHAN_FUTEX};

		return hb_window_writer__put(w, thread % STREAMS, ts, task, HB_TYPE_offcpu, &o);
	}
	struct hb_rec_sample s = {.weight = 10101010, .stack = stack_for(thread), .sysno = HB_SYSNO_NONE};

	return hb_window_writer__put(w, thread % STREAMS, ts, task, HB_TYPE_sample, &s);
}

static inline int make_window(const char *path, u64 n, struct hb_error *e)
{
	struct hb_window_opts o = {.streams = STREAMS, .force = true, .start_ts = BEGIN};
	struct hb_window_writer *w = hb_window_writer__new(path, &o, e);
	u64 ts = BEGIN;
	int rc = 0;

	if (!w)
		return -1;
	put_tables(w);
	for (u64 i = 0; i < n && !rc; i++)
		rc = put_record(w, ts += 1 + rnd(3000));
	return hb_window_writer__finish(w, ts, e);
}

#endif
