/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Patterns about calls to the accelerator, to other processes, and the engine's own code: each fires on what
 * is planted, and is ruled out on its twin. Without device records. */
#include "base/map.h"
#include "patterns_rig.h"

#define SYS_RECV 45

/* ---- P13, P14 ---- */

enum { ST_ALLOC = 31, ST_ASK };

#define ANSWER(p, from, to, ...)                                                                             \
	PSLEEP(p, (p)->h.main, from, (to)-10 * US, to, 200, .chankind = HB_CHAN_UNIX, .chan = 11,            \
	       .peer = 22, .sysno = SYS_RECV, .wsys = SYS_SENDTO, .wctx = HB_WCTX_OWN_SEND, __VA_ARGS__)

/* main asks the server at `t` and has its answer `length` later. Something else may wake it first, 50 us
 * after it asked: a short sleep, which has no stack. */
static void ask(struct pat *p, u64 t, u64 length, u32 stack, bool falsely)
{
	PSLEEP(p, p->h.server, t > 5 * MS ? t - 5 * MS : 0, t - 10 * US, t, 100, .chankind = HB_CHAN_UNIX,
	       .chan = 22, .peer = 11, .sysno = SYS_RECV, .wsys = SYS_SENDTO, .wctx = HB_WCTX_OWN_SEND);
	if (falsely)
		ANSWER(p, t, t + 50 * US, .stack = 0);
	ANSWER(p, falsely ? t + 55 * US : t, t + length, .stack = stack);
}

static void asks(struct pat *p, u64 at, u32 stack)
{
	pat_stack(p, 100, ST_ALLOC, "/srv/engine/core.py", "step", "allocate_slots", NULL);
	pat_stack(p, 100, ST_ASK, "/srv/engine/core.py", "step", "submit", NULL);
	pat_steps(p);
	for (u64 i = 0; i < STEPS; i++)
		ask(p, i * STEP + at, 2900 * US, stack, false);
	pat_run(p);
}

static void a_wait_of_two_sleeps_is_where_the_longer_is(void **state)
{
	struct pat p = pat_new("rpc-false");
	const struct hb_finding *x;

	pat_stack(&p, 100, ST_ALLOC, "/srv/engine/core.py", "step", "allocate_slots", NULL);
	pat_steps(&p);
	for (u64 i = 0; i < STEPS; i++)
		ask(&p, i * STEP + MS, 2900 * US, ST_ALLOC, true);
	pat_run(&p);
	x = pat_first(&p, "P14", STEPS * 2900 * US);
	for (u32 i = 0; i < x->n_worst; i++) {
		assert_int_equal(x->worst[i].end - x->worst[i].begin, 2900 * US);
		assert_int_equal(x->worst[i].stack, ST_ALLOC);
	}
	pat_end(&p);
}

static void answers_of_another_process(void **state)
{
	struct pat p = pat_new("rpc"), q = pat_new("rpc-kv"), r = pat_new("rpc-busy");
	const struct hb_finding *x;

	asks(&p, MS, ST_ASK);
	x = pat_first(&p, "P13", STEPS * 2900 * US);
	assert_int_equal(x->worst[0].waker->tid, 200);
	assert_true(x->n_hops >= 2);
	assert_int_equal(x->hop[1].task->tid, 200);
	assert_non_null(strstr(x->chain, "kv-server"));
	pat_silent(&p, "P14");
	pat_end(&p);
	asks(&q, MS, ST_ALLOC);
	x = pat_first(&q, "P14", STEPS * 2900 * US);
	assert_non_null(strstr(x->what, "allocate_slots"));
	pat_silent(&q, "P13");
	pat_end(&q);
	asks(&r, 5 * MS, ST_ASK); /* while the device works through its queue */
	pat_silent(&r, "P13");
	pat_end(&r);
}

/* main waits until somebody who is not traced (900) sends something. */
static void from_outside(struct pat *p, u8 chan)
{
	pat_stack(p, 100, ST_ASK, "/srv/engine/core.py", "run", "poll", NULL);
	pat_steps(p);
	for (u64 t = 0; t < STEPS * STEP; t += STEP)
		PSLEEP(p, p->h.main, t + MS, t + 3900 * US, t + 3910 * US, 900, .chankind = chan, .chan = 11,
		       .sysno = chan == HB_CHAN_EPOLL ? 232 : SYS_RECV, .wsys = SYS_SENDTO,
		       .wctx = HB_WCTX_OWN_SEND, .stack = ST_ASK);
	pat_run(p);
}

/* Whoever sends into an event loop may be a client: its time is no call's, and no idle time is anybody's
 * fault. */
static void a_client_is_no_service(void **state)
{
	struct pat p = pat_new("outside-epoll"), q = pat_new("outside-unix");
	struct hb_ivs outside = {0};
	const struct hb_finding *x;

	from_outside(&p, HB_CHAN_EPOLL);
	assert_null(pat_get(&p, "P13"));
	assert_null(hb_findings__at(p.f, 0));
	hb_path__outside(hb_host__path(p.host), 100, &outside);
	assert_false(outside.oom);
	assert_int_equal(outside.n, STEPS);
	assert_int_equal(hb_ivs__length(&outside), STEPS * 2900 * US);
	hb_ivs__free(&outside);
	pat_end(&p);
	from_outside(
	    &q, HB_CHAN_UNIX); /* one socket, one peer: likely a service, and that is all that is known */
	x = pat_get(&q, "P13");
	assert_non_null(x);
	assert_int_equal(x->confidence, HB_CONFIDENCE_LOW);
	hb_path__outside(hb_host__path(q.host), 100, &outside);
	assert_int_equal(outside.n, 0);
	hb_ivs__free(&outside);
	pat_end(&q);
}

enum { ST_GET = 34, ST_GET_BEFORE };

/* Steps for 600 ms, then nothing any more: main waits for the helper, at the place where it waited before the
 * window and on another lock, and the helper's event loop looks around every 100 ms for `busy`. */
static void nothing_comes(struct pat *p, u64 busy)
{
	u32 frames[2] = {0}, native;

	pat_stack(p, 100, ST_GET_BEFORE, "/srv/queue.py", "run", "get", NULL);
	for (u32 i = 0; i < 2; i++)
		frames[i] = hb_window_writer__loc(
		    p->h.r.w, &(struct hb_loc){.func = hb_window_writer__string(p->h.r.w, i ? "get" : "run"),
					       .file = hb_window_writer__string(p->h.r.w, "/srv/queue.py"),
					       .line = 10 + i,
					       .lang = HB_LANG_PYTHON});
	native = hb_window_writer__loc(
	    p->h.r.w,
	    &(struct hb_loc){.offset = 7, .module = hb_window_writer__string(p->h.r.w, "libc.so.6")});
	hb_window_writer__stack(p->h.r.w, 100, ST_GET, (u32[]){frames[0], frames[1], native}, 3,
				HB_STACK_WHOLE);
	PSLEEP(p, p->h.main, 0, MS, MS, 101, .chankind = HB_CHAN_FUTEX, .chan = 0x70, .sysno = SYS_FUTEX,
	       .stack = ST_GET_BEFORE);
	for (u64 i = 1; i < 60; i++)
		pat_step(p, i * STEP, 10);
	PSLEEP(p, p->h.main, 600 * MS, 1000 * MS, 1000 * MS, 0, .chankind = HB_CHAN_FUTEX, .chan = 0x80,
	       .sysno = SYS_FUTEX, .stack = ST_GET, .flags = HB_OFFCPU_OPEN);
	for (u64 t = 600 * MS + busy; t < 900 * MS; t += 100 * MS)
		PSLEEP(p, p->h.helper, t, t + 100 * MS - busy, t + 100 * MS - busy, 900,
		       .chankind = HB_CHAN_EPOLL, .chan = 11, .sysno = 232, .wctx = HB_WCTX_HARDIRQ);
	PSLEEP(p, p->h.helper, 900 * MS + busy, 1000 * MS, 1000 * MS, 0, .chankind = HB_CHAN_EPOLL,
	       .chan = 11, .sysno = 232, .flags = HB_OFFCPU_OPEN);
	pat_run(p);
}

/* At the window's end all waits for a request: since when, and that no idle time is to blame on the host. */
static void nothing_comes_at_the_end(void **state)
{
	struct pat p = pat_new("rest"), q = pat_new("rest-busy");
	struct hb_ivs outside = {0};
	const struct hb_finding *x;

	nothing_comes(&p, MS);
	hb_path__outside(hb_host__path(p.host), 100, &outside);
	assert_int_equal(outside.n, 1);
	assert_int_equal(hb_ivs__length(&outside), 399 * MS);
	hb_ivs__free(&outside);
	x = pat_get(&p, "P01");
	assert_non_null(x);
	assert_true(x->exposed_max <= 59 * IDLE);
	pat_end(&p);
	nothing_comes(&q, 50 * MS); /* it does something in between: who knows for whom */
	hb_path__outside(hb_host__path(q.host), 100, &outside);
	assert_int_equal(hb_ivs__length(&outside), 50 * MS);
	hb_ivs__free(&outside);
	pat_end(&q);
}

/* In Python the GIL is free while something is sent, and taken again before the answer is waited for. */
static void answers_after_the_gil(void **state)
{
	struct pat p = pat_new("rpc-gil");

	pat_stack(&p, 100, ST_ASK, "/srv/engine/core.py", "step", "submit", NULL);
	pat_steps(&p);
	for (u64 i = 0; i < STEPS; i++) {
		u64 t = i * STEP + MS;
		struct hb_rec_py_gil g = {
		    .dur = 60 * US, .slept = 50 * US, .gil = 0x77, .holder = 101, .sleeps = 1};

		ask(&p, t + 100 * US, 2800 * US, ST_ASK, false);
		PSLEEP(&p, p.h.main, t + 92 * US, t + 95 * US, t + 96 * US, 101, .chankind = HB_CHAN_FUTEX,
		       .chan = 0x70, .sysno = SYS_FUTEX);
		pat_put(&p, t + 97 * US, p.h.main, HB_TYPE_py_gil, &g);
	}
	pat_run(&p);
	pat_first(&p, "P13", STEPS * 2800 * US);
	pat_end(&p);
}

/* ---- P02, P04 ---- */

enum { ST_TOLIST = 33 };

/* In the middle of each step something waits for the device, then 2 ms pass until the rest is launched. */
static void waits_inside(struct pat *p, bool copy, u64 bytes, u32 sync, u64 gap)
{
	pat_stack(p, 100, ST_TOLIST, "/srv/runner.py", "execute_model", "Tensor.tolist", NULL);
	for (u64 i = 0; i < STEPS; i++) {
		u64 t = i * STEP;

		PCALL(p, p->h.main, Q_LAUNCH, t + 100 * US, t + 100 * US, .gx = 8);
		if (copy)
			PCALL(p, p->h.main, Q_D2H, t + 200 * US, t + 2 * MS, .bytes = bytes, .kind = 2,
			      .flags = HB_AFLAG_RET, .stack = ST_TOLIST);
		else
			PCALL(p, p->h.main, sync, t + 200 * US, t + 2 * MS, .flags = HB_AFLAG_RET);
		PCALL(p, p->h.main, Q_LAUNCH, t + 2 * MS + gap, t + 2 * MS + gap, .gx = 8);
		PCALL(p, p->h.main, Q_EVENT_SYNC, t + 5 * MS, t + STEP, .flags = HB_AFLAG_RET, .handle = 5);
	}
}

static void read_back_in_the_middle(void **state)
{
	struct pat p = pat_new("item"), q = pat_new("item-large"), r = pat_new("item-end");

	waits_inside(&p, true, 8, 0, 2 * MS);
	pat_run(&p);
	pat_first(&p, "P02", STEPS * 2 * MS);
	pat_silent(&p, "P04"); /* the same waits are not told twice */
	pat_end(&p);
	waits_inside(&q, true, 1 << 20, 0, 2 * MS);
	pat_run(&q);
	pat_silent(&q, "P02");
	pat_end(&q);
	pat_steps(&r); /* the read-back that ends the step is needed */
	for (u64 i = 0; i < STEPS; i++)
		PCALL(&r, r.h.main, Q_D2H, i * STEP + 4200 * US, i * STEP + STEP - US, .bytes = 8, .kind = 2);
	pat_run(&r);
	pat_silent(&r, "P02");
	pat_end(&r);
}

static void waits_in_the_middle(void **state)
{
	struct pat p = pat_new("sync"), q = pat_new("sync-once"), r = pat_new("sync-long");

	waits_inside(&p, false, 0, Q_STREAM_SYNC, 1 * MS);
	pat_run(&p);
	pat_first(&p, "P04", STEPS * 1 * MS);
	pat_silent(&p, "P02");
	pat_end(&p);
	/* Without the wait of 1.8 ms the next work would come so much sooner, not at once. */
	waits_inside(&r, false, 0, Q_STREAM_SYNC, 2900 * US);
	pat_run(&r);
	assert_int_equal(pat_first(&r, "P04", STEPS * 1800 * US)->exposed_max, (STEPS - 1) * 1800 * US);
	pat_end(&r);
	pat_steps(&q);
	pat_run(&q);
	pat_silent(&q, "P04");
	pat_end(&q);
}

/* ---- P03 ---- */

static void copies(struct pat *p, u64 bytes, u64 length)
{
	for (u64 i = 0; i < STEPS; i++) {
		u64 t = i * STEP;

		PCALL(p, p->h.main, Q_LAUNCH, t + 100 * US, t + 100 * US, .gx = 8);
		PCALL(p, p->h.main, Q_H2D, t + 200 * US, t + 200 * US + length, .bytes = bytes, .kind = 1);
		PCALL(p, p->h.main, Q_LAUNCH, t + 4 * MS, t + 4 * MS, .gx = 8);
		PCALL(p, p->h.main, Q_STREAM_SYNC, t + 5 * MS, t + STEP, .flags = HB_AFLAG_RET);
	}
	pat_run(p);
}

static void copies_that_block(void **state)
{
	struct pat p = pat_new("pageable"), q = pat_new("pinned"), r = pat_new("fast");

	copies(&p, 4 << 20, 3 * MS);
	pat_first(&p, "P03", STEPS * 3 * MS);
	pat_end(&p);
	copies(&q, 4 << 20, 10 * US);
	pat_silent(&q, "P03");
	pat_end(&q);
	copies(&r, 64 << 20, 3 * MS); /* 22 GB/s: no pageable memory is as fast */
	pat_silent(&r, "P03");
	pat_end(&r);
}

/* ---- P06, P07 ---- */

static void allocations_while_serving(void **state)
{
	struct pat p = pat_new("alloc"), q = pat_new("alloc-start");
	struct hb_thresholds *t = hb_thresholds__new();
	struct hb_error e = {0};

	assert_int_equal(hb_thresholds__set(t, "p06.warmup_steps=20", &e), 0);
	pat_steps(&p);
	pat_steps(&q);
	for (u64 i = 0; i < STEPS; i++) {
		if (i > 25)
			PCALL(&p, p.h.main, Q_ALLOC, i * STEP + MS, i * STEP + 3 * MS, .bytes = 1 << 20,
			      .flags = HB_AFLAG_RET);
		if (i < 15)
			PCALL(&q, q.h.main, Q_ALLOC, i * STEP + MS, i * STEP + 3 * MS, .bytes = 1 << 20,
			      .flags = HB_AFLAG_RET);
	}
	pat_run_with(&p, t);
	pat_first(&p, "P06", 74 * 2 * MS);
	pat_end(&p);
	pat_run_with(&q, t);
	pat_silent(&q, "P06");
	pat_end(&q);
	hb_thresholds__free(t);
}

enum { Q_FREE = 20, Q_CAPTURE, Q_MODULE };

static void refused_and_tried_again(void **state)
{
	struct pat p = pat_new("oom"), q = pat_new("oom-final");

	for (int k = 0; k < 2; k++) {
		struct pat *x = k ? &q : &p;

		rig_probe(&x->h.r, Q_FREE, "cuMemFree", "cuda-driver", HB_CLASS_ALLOC, 0, HB_HANDLE_MEMORY,
			  1);
		pat_steps(x);
		for (u64 i = 0; i < STEPS; i++) {
			u64 t = i * STEP + MS;

			PCALL(x, x->h.main, Q_ALLOC, t, t + MS, .bytes = 1 << 30, .flags = HB_AFLAG_RET,
			      .ret = 2);
			PCALL(x, x->h.main, Q_FREE, t + MS, t + 2 * MS, .flags = HB_AFLAG_RET);
			PCALL(x, x->h.main, Q_ALLOC, t + 2 * MS, t + 2900 * US, .bytes = 1 << 30,
			      .flags = HB_AFLAG_RET, .ret = k ? 2 : 0);
		}
		pat_run(x);
	}
	pat_first(&p, "P07", STEPS * 2900 * US);
	pat_silent(&q, "P07"); /* it never succeeds: no cache was in the way */
	pat_end(&p);
	pat_end(&q);
}

/* ---- P08, P09, P10 ---- */

/* Launches that fill the step, and a wait at its end that is over at once, or not. */
static void storm(struct pat *p, u32 launches, u32 graphs, u64 wait)
{
	for (u64 i = 0; i < STEPS; i++) {
		u64 t = i * STEP, span = STEP - wait - 200 * US;

		for (u32 k = 0; k < launches; k++)
			PCALL(p, p->h.main, Q_LAUNCH, t + 100 * US + k * (span / launches),
			      t + 100 * US + k * (span / launches), .gx = 1,
			      .stack = k == launches / 2 ? ST_ASK : 0);
		for (u32 k = 0; k < graphs; k++)
			PCALL(p, p->h.main, Q_GRAPH, t + STEP - wait - 50 * US, t + STEP - wait - 50 * US,
			      .handle = 9);
		PCALL(p, p->h.main, Q_STREAM_SYNC, t + STEP - wait - 30 * US, t + STEP,
		      .flags = HB_AFLAG_RET);
	}
	pat_run(p);
}

static void launches_without_a_graph(void **state)
{
	struct pat p = pat_new("storm"), o = pat_new("storm-beside"), q = pat_new("storm-graphs"),
		   r = pat_new("storm-busy");
	const struct hb_finding *x;

	pat_stack(&p, 100, ST_ASK, "/srv/engine/model.py", "run", "forward", NULL);
	storm(&p, 100, 0, 30 * US);
	x = pat_first(&p, "P08", STEPS * 9700 * US);
	assert_int_equal(x->worst[0].stack, ST_ASK); /* whose launches: of one in the middle of the step */
	assert_string_equal(x->chain, "");	     /* and its thread waited for nobody */
	pat_end(&p);
	storm(&o, 100, 1, 30 * US); /* one graph does not make up for it */
	pat_first(&o, "P08", STEPS * 9700 * US);
	pat_end(&o);
	storm(&q, 100, 20, 30 * US); /* in pieces, as with attention outside of them */
	pat_silent(&q, "P08");
	assert_string_equal(pat_ruled_out(&q, "P08")->measure.param->key, "eager_share");
	pat_end(&q);
	storm(&r, 100, 0, 6 * MS); /* the device has work for longer than the launching takes */
	pat_silent(&r, "P08");
	pat_end(&r);
}

/* Every fifth step launches 100 kernels instead of its graph. */
static void misses(struct pat *p, u64 uploaded)
{
	for (u64 i = 0, t = 0; i < 100; i++) {
		bool miss = i % 5 == 0;
		u64 length = miss ? 14 * MS : 8 * MS;

		PCALL(p, p->h.main, Q_H2D, t + 10 * US, t + 12 * US, .bytes = miss ? uploaded : 64,
		      .kind = 1);
		for (u32 k = 0; miss && k < 100; k++)
			PCALL(p, p->h.main, Q_LAUNCH, t + 100 * US + k * 100 * US,
			      t + 100 * US + k * 100 * US, .gx = 1);
		if (!miss)
			PCALL(p, p->h.main, Q_GRAPH, t + 100 * US, t + 100 * US, .handle = 9);
		PCALL(p, p->h.main, Q_STREAM_SYNC, t + length - 3 * MS, t + length, .flags = HB_AFLAG_RET);
		t += length;
	}
	pat_run(p);
}

static void graph_missed(void **state)
{
	struct pat p = pat_new("miss"), q = pat_new("prefill");
	const struct hb_finding *x;

	misses(&p, 80);
	x = pat_get(&p, "P09");
	assert_non_null(x);
	assert_int_equal(x->delay_ns, 19 * 6 * MS); /* the first one ends the window's first step */
	assert_int_equal(x->exposed_likely, 19 * 6 * MS);
	pat_end(&p);
	misses(&q, 40000); /* a prefill uploads more than any step with a graph, and runs eagerly by design */
	pat_silent(&q, "P09");
	pat_end(&q);
}

static void graphs_built_while_serving(void **state)
{
	struct pat p = pat_new("capture"), q = pat_new("capture-start");
	struct hb_thresholds *t = hb_thresholds__new();
	struct hb_error e = {0};

	assert_int_equal(hb_thresholds__set(t, "p10.warmup_steps=20", &e), 0);
	for (int k = 0; k < 2; k++) {
		struct pat *x = k ? &q : &p;

		rig_probe(&x->h.r, Q_CAPTURE, "cuGraphInstantiate", "cuda-driver", HB_CLASS_GRAPH, 0,
			  HB_HANDLE_GRAPH, 1);
		pat_steps(x);
		for (u64 i = 0; i < 10; i++)
			PCALL(x, x->h.main, Q_CAPTURE, (i + (k ? 0 : 40)) * STEP + 500 * US,
			      (i + (k ? 0 : 40)) * STEP + 3500 * US, .handle = 3, .flags = HB_AFLAG_RET);
		pat_run_with(x, t);
	}
	pat_first(&p, "P10", 10 * 3 * MS);
	pat_silent(&q, "P10");
	pat_end(&p);
	pat_end(&q);
	hb_thresholds__free(t);
}

/* ---- P11 ---- */

static void loads(struct pat *p, u64 length)
{
	rig_probe(&p->h.r, Q_MODULE, "cuModuleLoadData", "cuda-driver", HB_CLASS_OTHER, 0, HB_HANDLE_HANDLE,
		  1);
	pat_steps(p);
	for (u64 i = 0; i < STEPS; i++) {
		PCALL(p, p->h.helper, Q_MODULE, i * STEP + MS, i * STEP + MS + length, .flags = HB_AFLAG_RET);
		PCALL(p, p->h.main, Q_ALLOC, i * STEP + MS + 10 * US, i * STEP + MS + length + 20 * US,
		      .bytes = 1, .flags = HB_AFLAG_RET);
	}
	pat_run(p);
}

static void modules_loaded_while_serving(void **state)
{
	struct pat p = pat_new("load"), q = pat_new("load-short");
	const struct hb_finding *x;

	loads(&p, 2 * MS);
	x = pat_first(&p, "P11", STEPS * 2 * MS);
	assert_int_equal(x->worst[0].waker->tid, 101);
	assert_int_equal(x->worst[0].thread->tid, 100);
	pat_end(&p);
	loads(&q, 200 * US);
	pat_silent(&q, "P11");
	pat_end(&q);
}

/* ---- P33 ---- */

enum { Q_REDUCE = 23 };

/* Two ranks; the second submits its last work `late` after the first, in each step; or, with turns, one of
 * them as a coin falls. With `aside` the first waits for its device on another thread. */
static void ranks(struct pat *p, u64 late, bool turns, bool aside)
{
	struct hb_proc proc = {.pid = 300, .ppid = 1, .nspid = 300, .how = HB_HOW_PRESENT};
	u16 other, waits = aside ? rig_task(&p->h.r, 100, 155, "output", true) : p->h.main;

	hb_window_writer__proc(p->h.r.w, &proc);
	other = rig_task(&p->h.r, 300, 300, "rank-1", true);
	rig_probe(&p->h.r, Q_REDUCE, "ncclAllReduce", "nccl", HB_CLASS_COLLECTIVE, 2, HB_HANDLE_COMM, 1);
	for (u64 i = 0; i < STEPS; i++) {
		u64 loser = turns ? hb_hash64(i + 1) >> 63 : 1;

		for (u64 k = 0; k < 2; k++) {
			u64 t = i * STEP, at = t + MS + (k == loser ? late : 0);

			PCALL(p, k ? other : p->h.main, Q_LAUNCH, at, at, .gx = 8);
			PCALL(p, k ? other : p->h.main, Q_REDUCE, at + 10 * US, at + 15 * US, .bytes = 1000,
			      .kind = 7, .handle = 0xc0);
			PCALL(p, k ? other : waits, Q_STREAM_SYNC, at + 20 * US, t + STEP - k * US,
			      .flags = HB_AFLAG_RET);
		}
	}
	pat_run(p);
}

static void late_rank(const char *name, bool aside)
{
	struct pat p = pat_new(name);
	const struct hb_finding *x;

	ranks(&p, 3 * MS, false, aside);
	x = pat_get(&p, "P33");
	assert_non_null(x);
	assert_int_equal(x->proc->pid, 300);
	assert_true(x->exposed_likely >= STEPS * 3 * MS * 85 / 100 && x->exposed_likely <= STEPS * 3 * MS);
	assert_non_null(strstr(x->what, "rank-1 (300) comes late to 100 of 100 collectives"));
	assert_non_null(strstr(x->what, "it is the last in 1"));
	pat_end(&p);
}

static void one_rank_is_late(void **state)
{
	struct pat q = pat_new("even");

	late_rank("late", false);
	late_rank("late-aside", true);
	ranks(&q, 50 * US, false, true);
	pat_silent(&q, "P33");
	pat_end(&q);
}

/* Of two ranks one is the last in half of the steps and more, always: that alone says nothing. */
static void ranks_take_turns(void **state)
{
	struct pat p = pat_new("turns");
	const struct hb_finding *x;

	ranks(&p, 3 * MS, true, false);
	x = pat_get(&p, "P33");
	assert_non_null(x);
	assert_non_null(strstr(x->what, "ranks take turns"));
	pat_end(&p);
}

/* ---- by functions: P12, P15, P17, P18, P28, P16, P19 ---- */

enum { ST_FUNC = 51, ST_LOOP, ST_ELSE };

static void functions(struct pat *p, const char *file, const char *outer, const char *inner, u64 at)
{
	pat_stack(p, 100, ST_FUNC, file, "main", outer, inner, NULL);
	pat_steps(p);
	for (u64 i = 0; i < STEPS; i++)
		pat_sample(p, p->h.main, i * STEP + at, 2 * MS, ST_FUNC, HB_SYSNO_NONE);
	pat_run(p);
}

static void found_by_functions(void **state)
{
	static const struct {
		const char *id, *file, *outer, *inner;
	} rows[] = {
	    {"P12", "/usr/lib/python3/dist-packages/triton/compiler/compiler.py", "run", "compile"},
	    {"P15", "/srv/runner.py", "execute_model", "_prepare_inputs"},
	    {"P17", "/srv/sampling.py", "forward", "apply_penalties"},
	    {"P18", "/srv/guided.py", "step", "fill_bitmask"},
	    {"P28", "/usr/lib/python3.11/json/encoder.py", "dumps", "iterencode"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct pat p = pat_new("func"), q = pat_new("func-busy"), r = pat_new("func-other");

		functions(&p, rows[i].file, rows[i].outer, rows[i].inner, 2 * MS);
		pat_first(&p, rows[i].id, STEPS * 2 * MS);
		pat_end(&p);
		functions(&q, rows[i].file, rows[i].outer, rows[i].inner,
			  7 * MS); /* while the device is busy */
		pat_silent(&q, rows[i].id);
		pat_end(&q);
		functions(&r, "/srv/other.py", "go", "on", 2 * MS);
		pat_silent(&r, rows[i].id);
		pat_end(&r);
	}
}

/* Recorded calls are exact where samples are not. */
static void calls_go_before_samples(void **state)
{
	struct pat p = pat_new("func-calls");
	struct hb_loc l = {.func = hb_window_writer__string(p.h.r.w, "ModelRunner._prepare_inputs"),
			   .file = hb_window_writer__string(p.h.r.w, "/srv/runner.py"),
			   .line = 3,
			   .lang = HB_LANG_PYTHON};
	struct hb_rec_py_call c = {.dur = 1500 * US,
				   .func = hb_window_writer__loc(p.h.r.w, &l),
				   .end = HB_PYEND_RETURN,
				   .flags = HB_PYCALL_TIMED};
	const struct hb_finding *x;

	pat_stack(&p, 100, ST_FUNC, "/srv/runner.py", "execute_model", "_prepare_inputs", NULL);
	pat_steps(&p);
	for (u64 i = 0; i < STEPS; i++) {
		pat_put(&p, i * STEP + 3 * MS, p.h.main, HB_TYPE_py_call, &c);
		pat_sample(&p, p.h.main, i * STEP + 2 * MS, 2 * MS, ST_FUNC, HB_SYSNO_NONE);
	}
	pat_run(&p);
	x = pat_first(&p, "P15", STEPS * 1500 * US);
	assert_int_equal(x->exposed_min, (STEPS - 1) * 1500 * US); /* nothing is known of the first */
	assert_int_equal(x->confidence, HB_CONFIDENCE_HIGH);
	pat_end(&p);
}

static void scheduler(struct pat *p, const char *func)
{
	pat_stack(p, 100, ST_FUNC, "/srv/scheduler.py", "step", func, NULL);
	pat_steps(p);
	for (u64 i = 0; i < STEPS; i++) {
		pat_sample(p, p->h.main, i * STEP + 2 * MS, 3 * MS, ST_FUNC, HB_SYSNO_NONE);
		PSLEEP(p, p->h.helper, i * STEP, i * STEP + MS, i * STEP + MS, 0, .sysno = 35,
		       .chankind = HB_CHAN_TIMER);
	}
	pat_run(p);
}

static void the_device_waits_for_the_scheduler(void **state)
{
	struct pat p = pat_new("sched"), q = pat_new("sched-other");

	scheduler(&p, "schedule_batch");
	assert_non_null(pat_get(&p, "P16"));
	assert_true(pat_get(&p, "P16")->exposed_max >= STEPS * IDLE * 85 / 100);
	pat_end(&p);
	scheduler(&q, "something");
	pat_silent(&q, "P16");
	pat_end(&q);
}

/* A coroutine that does not await, 80 ms at a time; or one that does, every 20 ms. */
static void loop(struct pat *p, u64 length)
{
	pat_stack(p, 200, ST_LOOP, "/usr/lib/python3.11/asyncio/base_events.py", "run_forever", "_run_once",
		  NULL);
	pat_steps(p);
	for (u64 t = 0; t + 100 * MS <= WALL; t += 100 * MS) {
		for (u64 s = t; s < t + length; s += 10 * MS)
			pat_sample(p, p->h.server, s + 5 * MS, 10 * MS, ST_FUNC, HB_SYSNO_NONE);
		PSLEEP(p, p->h.server, t + length, t + 100 * MS, t + 100 * MS, 0, .chankind = HB_CHAN_EPOLL,
		       .sysno = SYS_EPOLL, .stack = ST_LOOP);
	}
}

static void loop_stack(struct pat *p)
{
	u32 frames[4];
	const char *file[4] = {"/srv/main.py", "/usr/lib/python3.11/asyncio/base_events.py", "/srv/front.py",
			       "/srv/tokenizer.py"};
	const char *func[4] = {"main", "BaseEventLoop.run_forever", "Front.handle", "Tokenizer.encode"};

	for (int i = 0; i < 4; i++) {
		struct hb_loc l = {.func = hb_window_writer__string(p->h.r.w, func[i]),
				   .file = hb_window_writer__string(p->h.r.w, file[i]),
				   .line = 5,
				   .lang = HB_LANG_PYTHON};

		frames[i] = hb_window_writer__loc(p->h.r.w, &l);
	}
	hb_window_writer__stack(p->h.r.w, 200, ST_FUNC, frames, 4, HB_STACK_WHOLE);
}

static void the_event_loop_is_held(void **state)
{
	struct pat p = pat_new("loop"), q = pat_new("loop-short");
	const struct hb_finding *x;

	loop_stack(&p);
	loop_stack(&q);
	loop(&p, 80 * MS);
	loop(&q, 30 * MS);
	pat_run(&p);
	x = pat_get(&p, "P19");
	assert_non_null(x);
	assert_true(x->delay_ns > 700 * MS && x->delay_ns <= 820 * MS);
	assert_int_equal(x->count, 10);
	assert_non_null(strstr(x->what, "Front.handle"));
	assert_non_null(strstr(x->what, "Tokenizer.encode"));
	assert_non_null(strstr(x->what, "(tokenising or detokenising)"));
	pat_end(&p);
	pat_run(&q);
	pat_silent(&q, "P19");
	pat_end(&q);
}

/* ---- fields: P38, P39, P42 ---- */

struct fields {
	u32 waiting, running, limit, free, blocks, preempted;
};

/* The first n of them. */
static void read_some_fields(struct pat *p, u64 at, const struct fields *f, u32 n)
{
	static const char *const asked[] = {
	    "core:Core.step self.scheduler.waiting:len", "core:Core.step self.running:len",
	    "core:Core.step self.max_num_seqs",		 "core:Core.step self.pool.free_blocks",
	    "core:Core.step self.pool.num_blocks",	 "core:Core.step self.num_preempted"};
	const u32 value[] = {f->waiting, f->running, f->limit, f->free, f->blocks, f->preempted};

	for (u32 i = 0; i < n; i++) {
		struct hb_rec_py_field r = {.call = START + at,
					    .num = value[i],
					    .field = hb_window_writer__string(p->h.r.w, asked[i]),
					    .kind = HB_PYKIND_INT};

		pat_put(p, at, p->h.main, HB_TYPE_py_field, &r);
	}
}

static void read_fields(struct pat *p, u64 at, const struct fields *f)
{
	read_some_fields(p, at, f, 6);
}

static void state_of_the_scheduler(struct pat *p, struct fields f, u32 preempted_each)
{
	pat_steps(p);
	for (u64 i = 0; i < STEPS; i++) {
		read_fields(p, i * STEP, &f);
		f.preempted += preempted_each;
	}
	pat_run(p);
}

/* vLLM has no counter, but a function that is called for each: what its requests say of themselves is none.
 */
static void calls_that_preempt(void **state)
{
	static const char asked[] = "*:Scheduler._preempt_request request.num_preemptions";
	struct pat p = pat_new("preempts");

	for (u64 i = 0; i < STEPS; i++) {
		read_some_fields(&p, i * STEP, &(struct fields){9, 4, 8, 2, 100, 0}, 5);
		for (u64 k = 0; k < 2 && i % 2; k++) {
			struct hb_rec_py_field r = {.call = START + i * STEP + (k + 1) * US,
						    .num = 1 + k,
						    .field = hb_window_writer__string(p.h.r.w, asked),
						    .kind = k ? HB_PYKIND_INT : HB_PYKIND_UNREADABLE};

			pat_put(&p, i * STEP + (k + 1) * US, p.h.main, HB_TYPE_py_field, &r);
		}
	}
	pat_steps(&p);
	pat_run(&p);
	assert_non_null(pat_get(&p, "P39"));
	assert_int_equal(pat_get(&p, "P39")->count, STEPS);
	pat_end(&p);
}

static void engine_fields(void **state)
{
	struct pat full = pat_new("limit"), held = pat_new("held"), thrash = pat_new("thrash"),
		   fine = pat_new("fine"), large = pat_new("large");

	state_of_the_scheduler(&full, (struct fields){9, 4, 4, 60, 100, 0}, 0);
	assert_non_null(pat_get(&full, "P38"));
	assert_true(pat_get(&full, "P38")->delay_ns >= 980 * MS);
	pat_silent(&full, "P39");
	pat_silent(&full, "P42");
	state_of_the_scheduler(&held, (struct fields){9, 2, 4, 60, 100, 0}, 0);
	assert_non_null(pat_get(&held, "P42"));
	assert_true(pat_get(&held, "P42")->delay_ns >= 980 * MS);
	pat_silent(&held, "P38");
	state_of_the_scheduler(&large, (struct fields){9, 2, 4, 25, 100, 0}, 0);
	pat_silent(&large, "P42"); /* a quarter is free, and those that run have more each */
	pat_end(&large);
	state_of_the_scheduler(&thrash, (struct fields){9, 4, 8, 2, 100, 0}, 1);
	assert_non_null(pat_get(&thrash, "P39"));
	assert_int_equal(pat_get(&thrash, "P39")->count, STEPS - 1);
	pat_silent(&thrash, "P42"); /* no blocks are free */
	state_of_the_scheduler(&fine, (struct fields){0, 2, 4, 60, 100, 0}, 0);
	pat_silent(&fine, "P38");
	pat_silent(&fine, "P39");
	pat_silent(&fine, "P42");
	pat_end(&full);
	pat_end(&held);
	pat_end(&thrash);
	pat_end(&fine);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(answers_of_another_process),
	    cmocka_unit_test(a_wait_of_two_sleeps_is_where_the_longer_is),
	    cmocka_unit_test(a_client_is_no_service),
	    cmocka_unit_test(nothing_comes_at_the_end),
	    cmocka_unit_test(answers_after_the_gil),
	    cmocka_unit_test(read_back_in_the_middle),
	    cmocka_unit_test(waits_in_the_middle),
	    cmocka_unit_test(copies_that_block),
	    cmocka_unit_test(allocations_while_serving),
	    cmocka_unit_test(refused_and_tried_again),
	    cmocka_unit_test(launches_without_a_graph),
	    cmocka_unit_test(graph_missed),
	    cmocka_unit_test(graphs_built_while_serving),
	    cmocka_unit_test(modules_loaded_while_serving),
	    cmocka_unit_test(one_rank_is_late),
	    cmocka_unit_test(ranks_take_turns),
	    cmocka_unit_test(found_by_functions),
	    cmocka_unit_test(calls_go_before_samples),
	    cmocka_unit_test(the_device_waits_for_the_scheduler),
	    cmocka_unit_test(the_event_loop_is_held),
	    cmocka_unit_test(engine_fields),
	    cmocka_unit_test(calls_that_preempt),
	};

	return cmocka_run_group_tests_name("patterns: calls and code", tests, NULL, NULL);
}
