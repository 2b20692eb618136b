/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A window of known content for the tests of model, report and export: an engine (100, threads 100 and 101),
 * its API server (200), and a bystander (900). Times are ns after START.
 */
#ifndef HB_ANALYSIS_RIG_H
#define HB_ANALYSIS_RIG_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "schema/schema.h"
#include "window/window.h"

#define START	   5000000000ULL
#define WALL	   1000000000ULL
#define US	   1000ULL
#define MS	   1000000ULL
#define HOSTILE	   "ev\x1b[31mil\n\"\\"
#define SYS_READ   0
#define SYS_SENDTO 44
#define SYS_FUTEX  202
#define SYS_EPOLL  232

enum { P_LAUNCH = 1, P_COPY, P_GRAPH, P_SYNC, P_HTOD, P_REDUCE, P_BUILD };
enum { ST_USER = 7, ST_KERNEL = 8, ST_SLEEP = 9 };

struct rig {
	char path[64];
	struct hb_window_writer *w;
	u16 main, worker, server, other;
};

static inline struct rig rig_new(const char *name)
{
	struct hb_window_opts o = {.streams = 1, .force = true, .start_ts = START};
	struct hb_error e = {0};
	struct rig r;

	memset(&r, 0, sizeof(r));
	snprintf(r.path, sizeof(r.path), "/tmp/hb-%s-%d.hbw", name, (int)getpid());
	r.w = hb_window_writer__new(r.path, &o, &e);
	if (!r.w)
		fail_msg("%s", e.text);
	return r;
}

static inline u16 rig_task(struct rig *r, u32 pid, u32 tid, const char *comm, bool target)
{
	struct hb_task t = {.pid = pid,
			    .tid = tid,
			    .nspid = pid,
			    .nstid = tid,
			    .target = target,
			    .comm = hb_window_writer__string(r->w, comm)};

	return hb_window_writer__task(r->w, &t);
}

static inline void rig_put(struct rig *r, u64 at, u16 task, unsigned type, const void *payload)
{
	assert_int_equal(hb_window_writer__put(r->w, 0, START + at, task, type, payload), 0);
}

static inline void rig_probe(struct rig *r, u32 id, const char *name, const char *api, u8 cls, u8 layer,
			     u8 handle, u8 timed)
{
	struct hb_probe_row row = {.name = hb_window_writer__string(r->w, name),
				   .symbol = hb_window_writer__string(r->w, name),
				   .api = hb_window_writer__string(r->w, api),
				   .cls = cls,
				   .layer = layer,
				   .handle = handle,
				   .timed = timed};

	assert_int_equal(hb_window_writer__probe(r->w, id, &row), 0);
}

static inline u32 rig_loc(struct rig *r, const char *func, const char *module, u64 offset, u32 lang)
{
	struct hb_loc l = {.func = func ? hb_window_writer__string(r->w, func) : 0,
			   .module = hb_window_writer__string(r->w, module),
			   .offset = offset,
			   .lang = lang};

	return hb_window_writer__loc(r->w, &l);
}

static inline void rig_tables(struct rig *r)
{
	struct hb_proc p = {.pid = 100, .ppid = 1, .nspid = 10, .how = HB_HOW_PRESENT};
	u32 frames[3];

	p.exe = hb_window_writer__string(r->w, "/opt/bin/engine");
	p.cmdline = hb_window_writer__string(r->w, "engine --model x");
	hb_window_writer__proc(r->w, &p);
	p = (struct hb_proc){.pid = 200, .ppid = 1, .nspid = 20, .how = HB_HOW_FORKED};
	hb_window_writer__proc(r->w, &p);
	r->main = rig_task(r, 100, 100, HOSTILE, true);
	r->worker = rig_task(r, 100, 101, "worker", true);
	r->server = rig_task(r, 200, 200, "api;server", true);
	r->other = rig_task(r, 900, 900, "kworker/1", false);
	rig_probe(r, P_LAUNCH, "cuLaunchKernel", "cuda-driver", HB_CLASS_LAUNCH, HB_LAYER_DRIVER,
		  HB_HANDLE_FUNCTION, 0);
	rig_probe(r, P_COPY, "cudaMemcpyAsync", "cuda-runtime", HB_CLASS_COPY, HB_LAYER_RUNTIME,
		  HB_HANDLE_HANDLE, 1);
	rig_probe(r, P_GRAPH, "cuGraphLaunch", "cuda-driver", HB_CLASS_GRAPH, HB_LAYER_DRIVER,
		  HB_HANDLE_GRAPH, 0);
	rig_probe(r, P_SYNC, "cudaStreamSynchronize", "cuda-runtime", HB_CLASS_SYNC, HB_LAYER_RUNTIME,
		  HB_HANDLE_HANDLE, 1);
	rig_probe(r, P_HTOD, "cuMemcpyHtoDAsync", "cuda-driver", HB_CLASS_COPY, HB_LAYER_DRIVER,
		  HB_HANDLE_HANDLE, 1);
	rig_probe(r, P_REDUCE, "ncclAllReduce", "nccl", HB_CLASS_COLLECTIVE, HB_LAYER_LIBRARY, HB_HANDLE_COMM,
		  1);
	rig_probe(r, P_BUILD, "cuGraphInstantiate", "cuda-driver", HB_CLASS_GRAPH, HB_LAYER_DRIVER,
		  HB_HANDLE_GRAPH, 1);
	frames[0] = rig_loc(r, "main", "/opt/bin/engine", 0x10, HB_LANG_NATIVE);
	frames[1] = rig_loc(r, "step;one", "/opt/bin/engine", 0x20, HB_LANG_NATIVE);
	frames[2] = rig_loc(r, NULL, "/opt/lib/libx.so", 0x1234, HB_LANG_NATIVE);
	hb_window_writer__stack(r->w, 100, ST_USER, frames, 3, HB_STACK_WHOLE);
	hb_window_writer__stack(r->w, 100, ST_SLEEP, frames, 2, HB_STACK_TRUNCATED);
	frames[0] = rig_loc(r, "do_syscall_64", "[kernel]", 0, HB_LANG_KERNEL);
	hb_window_writer__stack(r->w, 100, ST_KERNEL, frames, 1, HB_STACK_WHOLE);
}

static inline void rig_calls(struct rig *r)
{
	struct hb_rec_accel a = {.probe = P_LAUNCH,
				 .handle = 0xf00,
				 .gx = 4,
				 .gy = 2,
				 .gz = 1,
				 .bx = 256,
				 .by = 1,
				 .bz = 1,
				 .stack = ST_USER,
				 .shm = 1024};

	for (int i = 0; i < 10; i++)
		rig_put(r, 10 * MS + (u64)i, r->main, HB_TYPE_accel, &a);
	a = (struct hb_rec_accel){.probe = P_GRAPH, .handle = 0xabc, .stream = 0x20};
	for (int i = 0; i < 3; i++)
		rig_put(r, 20 * MS + (u64)i, r->main, HB_TYPE_accel, &a);
	/* a copy of 1 ms with its driver call inside: one operation */
	a = (struct hb_rec_accel){.probe = P_HTOD,
				  .dur = MS / 2,
				  .bytes = 4096,
				  .kind = 1,
				  .flags = HB_AFLAG_INNER | HB_AFLAG_TIMED | HB_AFLAG_RET};
	rig_put(r, 31 * MS, r->worker, HB_TYPE_accel, &a);
	a = (struct hb_rec_accel){.probe = P_COPY,
				  .dur = MS,
				  .bytes = 4096,
				  .kind = 2,
				  .nested = 1,
				  .stream = 0x20,
				  .flags = HB_AFLAG_TIMED | HB_AFLAG_RET,
				  .ret = 0};
	rig_put(r, 32 * MS, r->worker, HB_TYPE_accel, &a);
	/* 100 waits of 1..100 us, 5 of which fail with 719 and 2 with 700 */
	for (u32 i = 1; i <= 100; i++) {
		a = (struct hb_rec_accel){.probe = P_SYNC,
					  .dur = i * 1000,
					  .flags = HB_AFLAG_TIMED | HB_AFLAG_RET,
					  .ret = i <= 5	  ? 719
						 : i <= 7 ? 700
							  : 0};
		rig_put(r, 40 * MS + i, r->worker, HB_TYPE_accel, &a);
	}
	a = (struct hb_rec_accel){.probe = P_REDUCE,
				  .dur = 2 * MS,
				  .bytes = 1000,
				  .kind = 9,
				  .handle = 0xc0,
				  .flags = HB_AFLAG_TIMED};
	rig_put(r, 50 * MS, r->worker, HB_TYPE_accel, &a);
	a = (struct hb_rec_accel){.probe = P_BUILD, .dur = 3 * MS, .handle = 0xdef, .flags = HB_AFLAG_TIMED};
	rig_put(r, 60 * MS, r->main, HB_TYPE_accel, &a);
}

static inline void rig_fd(struct rig *r, u32 pid, u32 fd, u64 chan, const char *text)
{
	struct hb_fd_row row = {
	    .pid = pid, .fd = fd, .chan = chan, .text = hb_window_writer__string(r->w, text)};

	hb_window_writer__fd(r->w, &row);
}

/* What descriptors were. Number 4 of the server was looked at too late: it is another pipe by then. */
static inline void rig_fds(struct rig *r)
{
	rig_fd(r, 100, 5, 11, "socket:[11] unix /run/engine.sock");
	rig_fd(r, 200, 9, 0, "socket:[22] unix");
	rig_fd(r, 200, 3, 0, "socket:[77] tcp 127.0.0.1:8000 -> 10.0.0.1:555");
	rig_fd(r, 200, 4, 33, "pipe:[34]");
	rig_fd(r, 200, 6, 44, "/data/weights.bin");
	rig_fd(r, 200, 7, 55, "socket:[55] tcp [2001:db8::1]:80 -> [2001:db8::2]:5000");
}

static inline void rig_sleeps(struct rig *r)
{
	/* the server wakes the engine through a unix socket: three times */
	struct hb_rec_offcpu o = {.dur = 10 * MS,
				  .ready = MS,
				  .sysno = SYS_EPOLL,
				  .chankind = HB_CHAN_UNIX,
				  .chan = 11,
				  .peer = 22,
				  .a0 = 5,
				  .waker = 200,
				  .waker_pid = 200,
				  .wsys = SYS_SENDTO,
				  .wa0 = 9,
				  .wctx = HB_WCTX_OWN_SEND,
				  .state = HB_TSTATE_SLEEPING,
				  .stack = ST_SLEEP};

	for (u64 i = 0; i < 3; i++)
		rig_put(r, (100 + 20 * i) * MS, r->main, HB_TYPE_offcpu, &o);
	/* a lock handed over inside of the engine */
	o = (struct hb_rec_offcpu){.dur = 4 * MS,
				   .ready = 1000,
				   .sysno = SYS_FUTEX,
				   .chankind = HB_CHAN_FUTEX,
				   .chan = 0x7f0010,
				   .waker = 100,
				   .waker_pid = 100,
				   .wsys = SYS_FUTEX,
				   .wctx = HB_WCTX_TASK,
				   .state = HB_TSTATE_SLEEPING};
	rig_put(r, 200 * MS, r->worker, HB_TYPE_offcpu, &o);
	/* a read from tcp that an interrupt ended while a bystander ran: it woke nobody */
	o = (struct hb_rec_offcpu){.dur = 6 * MS,
				   .sysno = SYS_READ,
				   .chankind = HB_CHAN_TCP,
				   .a0 = 3,
				   .local = 0x7f000001ULL << 16 | 8000,
				   .peer = 0x0a000001ULL << 16 | 555,
				   .waker = 900,
				   .waker_pid = 900,
				   .wsys = HB_SYSNO_NONE,
				   .wctx = HB_WCTX_SOFTIRQ,
				   .state = HB_TSTATE_SLEEPING};
	rig_put(r, 210 * MS, r->server, HB_TYPE_offcpu, &o);
	o = (struct hb_rec_offcpu){.dur = 2 * MS,
				   .ready = 2 * MS,
				   .sysno = HB_SYSNO_NONE,
				   .wsys = HB_SYSNO_NONE,
				   .state = HB_TSTATE_RUNNING};
	rig_put(r, 220 * MS, r->main, HB_TYPE_offcpu, &o);
	o = (struct hb_rec_offcpu){
	    .dur = MS, .sysno = HB_SYSNO_NONE, .wsys = HB_SYSNO_NONE, .state = HB_TSTATE_DISK};
	rig_put(r, 230 * MS, r->main, HB_TYPE_offcpu, &o);
}

static inline void rig_rest(struct rig *r)
{
	struct hb_rec_sample s = {.weight = 10 * MS, .ip = 0x1234, .stack = ST_USER, .sysno = HB_SYSNO_NONE};
	struct hb_rec_syscall c = {.dur = 5000, .ret = -11, .a0 = 3, .sysno = SYS_READ};
	struct hb_rec_exit x = {.code = 3 << 8, .last = 1};
	struct hb_rec_probed p = {.late = 7 * MS, .probes = 40};
	struct hb_rec_price price = {.hits = 1000, .price = 500, .probe = P_LAUNCH};
	struct hb_rec_note n = {.level = HB_NOTE_WARNING};
	struct hb_loss_row lost = {.cause = HB_LOSS_RING_FULL, .type = HB_TYPE_accel, .cpu = 1, .count = 12};

	for (int i = 0; i < 3; i++)
		rig_put(r, 300 * MS + (u64)i, r->main, HB_TYPE_sample, &s);
	s.kstack = ST_KERNEL;
	s.mode = HB_CPUMODE_KERNEL;
	s.sysno = SYS_READ;
	rig_put(r, 310 * MS, r->main, HB_TYPE_sample, &s);
	s = (struct hb_rec_sample){.weight = 5 * MS, .sysno = HB_SYSNO_NONE};
	rig_put(r, 320 * MS, r->server, HB_TYPE_sample, &s);
	rig_put(r, 330 * MS, r->server, HB_TYPE_syscall, &c);
	p.file = hb_window_writer__string(r->w, "/opt/lib/libcuda.so.1");
	rig_put(r, 340 * MS, r->server, HB_TYPE_probed, &p);
	n.text = hb_window_writer__string(r->w, "a note");
	rig_put(r, 350 * MS, r->main, HB_TYPE_note, &n);
	rig_put(r, 900 * MS, r->server, HB_TYPE_exit, &x);
	rig_put(r, 999 * MS, r->main, HB_TYPE_price, &price);
	price = (struct hb_rec_price){.hits = 10,
				      .price = 200,
				      .probe = UINT32_MAX,
				      .hook = hb_window_writer__string(r->w, "sched_switch")};
	rig_put(r, 999 * MS, r->main, HB_TYPE_price, &price);
	hb_window_writer__loss(r->w, &lost);
	hb_window_writer__meta(r->w, "host", "box");
	hb_window_writer__meta(r->w, "kernel", "6.18");
	hb_window_writer__meta(r->w, "profile", "standard");
	hb_window_writer__meta(r->w, "simulated", "1");
	hb_window_writer__meta(r->w, "self_cpu_setup_ns", "11000000");
	hb_window_writer__meta(r->w, "self_cpu_window_ns", "5000000");
	hb_window_writer__meta(r->w, "self_cpu_ns", "20000000");
	hb_window_writer__meta(r->w, "self_rss", "1048576");
}

static inline struct hb_window *rig_open(struct rig *r)
{
	struct hb_error e = {0};
	struct hb_window *w;

	if (hb_window_writer__finish(r->w, START + WALL, &e))
		fail_msg("%s", e.text);
	w = hb_window__open(r->path, &e);
	if (!w)
		fail_msg("%s", e.text);
	return w;
}

/* The whole content above. */
static inline struct hb_window *rig_window(struct rig *r, const char *name)
{
	*r = rig_new(name);
	rig_tables(r);
	rig_calls(r);
	rig_sleeps(r);
	rig_fds(r);
	rig_rest(r);
	return rig_open(r);
}

static inline void rig_close(struct rig *r, struct hb_window *w)
{
	hb_window__close(w);
	unlink(r->path);
}

#endif
