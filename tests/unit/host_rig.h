/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Windows made for the tests of the host's side: an engine (pid 100: threads 100 main, 101 helper, 102 I/O)
 * and a server (pid 200: threads 200, 201 evictor). Times are ns after START, intervals are given by begin
 * and end.
 */
#ifndef HB_HOST_RIG_H
#define HB_HOST_RIG_H

#include "analysis_rig.h"
#include "analysis/model/host.h"

enum { Q_LAUNCH = 1, Q_GRAPH, Q_H2D, Q_D2H, Q_STREAM_SYNC, Q_EVENT_SYNC, Q_DEVICE_SYNC, Q_ALLOC, Q_RECORD };
enum { ST_DECODE = 21, ST_ITEM = 22, ST_RPC = 23 };

struct host_rig {
	struct rig r;
	u16 main, helper, io, server, evictor, other;
};

static inline struct host_rig host_new(const char *name)
{
	struct host_rig h = {.r = rig_new(name)};
	struct hb_proc p = {.pid = 100, .ppid = 1, .nspid = 100, .how = HB_HOW_PRESENT};
	u8 none = HB_HANDLE_HANDLE;

	hb_window_writer__proc(h.r.w, &p);
	p.pid = p.nspid = 200;
	hb_window_writer__proc(h.r.w, &p);
	h.main = rig_task(&h.r, 100, 100, "engine", true);
	h.helper = rig_task(&h.r, 100, 101, "helper", true);
	h.io = rig_task(&h.r, 100, 102, "ZMQbg/IO/0", true);
	h.server = rig_task(&h.r, 200, 200, "kv-server", true);
	h.evictor = rig_task(&h.r, 200, 201, "evictor", true);
	h.other = rig_task(&h.r, 900, 900, "bystander", false);
	rig_probe(&h.r, Q_LAUNCH, "cuLaunchKernel", "cuda-driver", HB_CLASS_LAUNCH, 0, HB_HANDLE_FUNCTION, 0);
	rig_probe(&h.r, Q_GRAPH, "cuGraphLaunch", "cuda-driver", HB_CLASS_GRAPH, 0, HB_HANDLE_GRAPH, 0);
	rig_probe(&h.r, Q_H2D, "cuMemcpyHtoDAsync", "cuda-driver", HB_CLASS_COPY, 0, none, 1);
	rig_probe(&h.r, Q_D2H, "cuMemcpyDtoHAsync", "cuda-driver", HB_CLASS_COPY, 0, none, 1);
	rig_probe(&h.r, Q_STREAM_SYNC, "cuStreamSynchronize", "cuda-driver", HB_CLASS_SYNC, 0, none, 1);
	rig_probe(&h.r, Q_EVENT_SYNC, "cuEventSynchronize", "cuda-driver", HB_CLASS_SYNC, 0, HB_HANDLE_EVENT,
		  1);
	rig_probe(&h.r, Q_DEVICE_SYNC, "cudaDeviceSynchronize", "cuda-runtime", HB_CLASS_SYNC, 1, none, 1);
	rig_probe(&h.r, Q_ALLOC, "cuMemAlloc", "cuda-driver", HB_CLASS_ALLOC, 0, none, 1);
	rig_probe(&h.r, Q_RECORD, "cuEventRecord", "cuda-driver", HB_CLASS_EVENT, 0, HB_HANDLE_EVENT, 0);
	return h;
}

/* A call; `more` gives what else it has. */
static inline void host_call(struct host_rig *h, u16 task, u32 probe, u64 begin, u64 end,
			     struct hb_rec_accel more)
{
	more.probe = probe;
	more.dur = end - begin;
	more.flags |= end > begin ? HB_AFLAG_TIMED : 0;
	rig_put(&h->r, end, task, HB_TYPE_accel, &more);
}
#define CALL(h, task, probe, begin, end, ...)                                                                \
	host_call(h, task, probe, begin, end, (struct hb_rec_accel){__VA_ARGS__})

#define PREEMPTED 99 /* state: RUNNING is 0, which stands for asleep here */
/* A sleep that a thread (tid) ended: woken at `wake`, back at `end`. */
static inline void host_sleep(struct host_rig *h, u16 task, u64 begin, u64 wake, u64 end, u32 waker,
			      struct hb_rec_offcpu more)
{
	more.dur = end - begin;
	more.ready = end - wake;
	more.waker = waker;
	more.waker_pid = waker < 200 ? 100 : waker < 900 ? 200 : 900;
	more.state = more.state == PREEMPTED ? HB_TSTATE_RUNNING
		     : more.state	     ? more.state
					     : HB_TSTATE_SLEEPING;
	if (!more.wctx)
		more.wctx = waker ? HB_WCTX_TASK : HB_WCTX_UNKNOWN;
	rig_put(&h->r, end, task, HB_TYPE_offcpu, &more);
}
#define SLEEP(h, task, begin, wake, end, waker, ...)                                                         \
	host_sleep(h, task, begin, wake, end, waker, (struct hb_rec_offcpu){__VA_ARGS__})

static inline struct hb_window *host_open(struct host_rig *h)
{
	return rig_open(&h->r);
}

static inline struct hb_host *host_build(struct hb_window *w)
{
	struct hb_error e = {0};
	struct hb_host *x = hb_host__build(w, NULL, &e);

	if (!x)
		fail_msg("%s", e.text);
	return x;
}

#define AT(ns) (START + (ns))

/* Graph launch, copy back, wait: 10 ms a step of which the device has 8. */
static inline void host_step(struct host_rig *h, u64 t)
{
	CALL(h, h->main, Q_H2D, t + 500 * US, t + 510 * US, .bytes = 64, .stream = 1);
	CALL(h, h->main, Q_GRAPH, t + 1 * MS, t + 1 * MS, .handle = 5, .stream = 1);
	CALL(h, h->main, Q_D2H, t + 1100 * US, t + 1110 * US, .bytes = 64, .stream = 2, .stack = ST_DECODE);
	CALL(h, h->main, Q_STREAM_SYNC, t + 1200 * US, t + 9 * MS, .stream = 2, .stack = ST_DECODE);
}

#endif
