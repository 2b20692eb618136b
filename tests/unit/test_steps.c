/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Steps, and what is known of the device without its records. */
#include "host_rig.h"

static const struct hb_series *series(struct hb_host *x, u32 pid)
{
	const struct hb_series *s = hb_steps__of_pid(hb_host__steps(x), pid);

	assert_non_null(s);
	return s;
}

/* ---- steps ---- */

static void by_read_back(void **state)
{
	struct host_rig h = host_new("steps-readback");
	struct hb_window *w;
	struct hb_host *x;
	const struct hb_series *s;

	for (u64 i = 0; i < 20; i++)
		host_step(&h, i * 10 * MS);
	CALL(&h, h.helper, Q_LAUNCH, 3 * MS, 3 * MS); /* another thread's few launches */
	w = host_open(&h);
	x = host_build(w);
	s = series(x, 100);
	assert_int_equal(s->source, HB_STEPS_READBACK);
	assert_int_equal(s->site_stack, ST_DECODE);
	assert_true(s->dispatch_sure);
	assert_int_equal(s->ops, 60);
	assert_int_equal(s->all_ops, 61);
	assert_int_equal(s->n, 19); /* before the first boundary it is not known where the step began */
	assert_int_equal(s->step[0].begin, AT(9 * MS));
	assert_int_equal(s->step[0].end, AT(19 * MS));
	assert_int_equal(s->p50, 10 * MS);
	assert_int_equal(s->max, 10 * MS);
	assert_int_equal(s->sum, 190 * MS);
	assert_int_equal(s->outside_ns, WALL - 190 * MS);
	assert_int_equal(s->step[3].graphs, 1);
	assert_int_equal(s->step[3].copies, 2);
	assert_int_equal(s->step[3].d2h_bytes, 64);
	assert_int_equal(s->step[3].copied_bytes, 128);
	assert_int_equal(s->step[3].syncs, 1);
	assert_int_equal(s->step[3].wait_ns, 7800 * US);
	assert_int_equal(s->step[3].api_ns, 20 * US);
	assert_int_equal(s->step[3].pause_ns, 1500 * US);
	assert_int_equal(s->step[3].first_op, AT(40 * MS + 500 * US));
	assert_int_equal(s->step[3].n_calls, 4);
	assert_int_equal(hb_series__find(s, AT(19 * MS)), 1);
	assert_int_equal(hb_series__find(s, AT(8 * MS)), HB_NONE);
	assert_int_equal(hb_series__find(s, AT(199 * MS)), HB_NONE);
	hb_host__free(x);
	rig_close(&h.r, w);
}

/* 24 read-backs inside of each step, as from .item() in a loop over layers, are no steps; nor is what occurs
 * in every tenth. */
static void loops_and_rare_calls_are_no_steps(void **state)
{
	struct host_rig h = host_new("steps-loop");
	struct hb_window *w;
	struct hb_host *x;
	const struct hb_series *s;

	for (u64 i = 0; i < 40; i++) {
		u64 t = i * 20 * MS;

		for (u64 k = 0; k < 24; k++) {
			CALL(&h, h.main, Q_LAUNCH, t + k * 100 * US, t + k * 100 * US, .stream = 1);
			CALL(&h, h.main, Q_D2H, t + k * 100 * US + 5 * US, t + k * 100 * US + 80 * US,
			     .bytes = 4, .stream = 1, .stack = ST_ITEM);
		}
		if (i % 10 == 9)
			CALL(&h, h.main, Q_D2H, t + 3 * MS, t + 3 * MS + 60 * US, .bytes = 8, .stream = 1,
			     .stack = ST_RPC);
		CALL(&h, h.main, Q_LAUNCH, t + 4 * MS, t + 4 * MS, .stream = 1);
		CALL(&h, h.main, Q_D2H, t + 5 * MS, t + 15 * MS, .bytes = 64, .stream = 1,
		     .stack = ST_DECODE);
	}
	w = host_open(&h);
	x = host_build(w);
	s = series(x, 100);
	assert_int_equal(s->site_stack, ST_DECODE);
	assert_int_equal(s->n, 39);
	assert_int_equal(s->p50, 20 * MS);
	assert_int_equal(s->step[5].copies, 25);
	hb_host__free(x);
	rig_close(&h.r, w);
}

static void by_function_of_another_process(void **state)
{
	struct host_rig h = host_new("steps-function");
	struct hb_rec_py_call p = {.flags = HB_PYCALL_TIMED};
	struct hb_window *w;
	struct hb_host *x;
	const struct hb_series *s;

	/* the server's process is the engine core: steps of 8 ms; inside of each a call that is only part of
	 * one */
	for (u64 i = 0; i < 10; i++) {
		p.dur = 5 * MS;
		p.func = rig_loc(&h.r, "GPUModelRunner.execute_model", "m.py", 0, HB_LANG_PYTHON);
		rig_put(&h.r, i * 10 * MS + 7 * MS, h.server, HB_TYPE_py_call, &p);
		p.dur = 8 * MS;
		p.func = rig_loc(&h.r, "EngineCore.step", "m.py", 0, HB_LANG_PYTHON);
		rig_put(&h.r, i * 10 * MS + 8 * MS, h.server, HB_TYPE_py_call, &p);
		p.func = rig_loc(&h.r, "helper", "m.py", 0, HB_LANG_PYTHON);
		rig_put(&h.r, i * 10 * MS + 9 * MS, h.helper, HB_TYPE_py_call, &p);
		host_step(&h, i * 10 * MS);
	}
	w = host_open(&h);
	x = host_build(w);
	assert_int_equal(hb_steps__series(hb_host__steps(x)), 2);
	assert_int_equal(hb_steps__at(hb_host__steps(x), 0)->pid, 100); /* most work first */
	s = series(x, 200);
	assert_int_equal(s->source, HB_STEPS_PYCALL);
	assert_int_equal(s->n, 10);
	assert_int_equal(s->step[2].begin, AT(20 * MS));
	assert_int_equal(s->p99, 8 * MS);
	assert_int_equal(s->dispatch, HB_NONE);
	assert_int_equal(s->step[2].n_calls, 0);
	assert_int_equal(series(x, 100)->source, HB_STEPS_READBACK);
	hb_host__free(x);
	rig_close(&h.r, w);
}

/* Ten calls of `func` in `file`, one every 10 ms, that give the step's work; the wait for it, until 9 ms, is
 * `in` them or after them. */
static const struct hb_series *of_function(struct host_rig *h, const char *func, const char *file, bool in,
					   struct hb_window **w, struct hb_host **x)
{
	struct hb_loc l = {.func = hb_window_writer__string(h->r.w, func),
			   .file = hb_window_writer__string(h->r.w, file),
			   .lang = HB_LANG_PYTHON};
	struct hb_rec_py_call p = {.dur = in ? 9500 * US : 1150 * US,
				   .func = hb_window_writer__loc(h->r.w, &l),
				   .flags = HB_PYCALL_TIMED};

	for (u64 i = 0; i < 10; i++) {
		rig_put(&h->r, i * 10 * MS + p.dur, h->main, HB_TYPE_py_call, &p);
		host_step(h, i * 10 * MS);
	}
	*w = host_open(h);
	*x = host_build(*w);
	return series(*x, 100);
}

/* Where names are plain the file says whose they are. */
static void plain_names(void **state)
{
	static const struct {
		const char *func, *file;
		enum hb_step_source source;
	} is[] = {{"step", "vllm/v1/engine/core.py", HB_STEPS_PYCALL},
		  {"step_with_batch_queue", "/usr/lib/vllm/v1/engine/core.py", HB_STEPS_PYCALL},
		  {"step", "torch/optim/adam.py", HB_STEPS_READBACK},
		  {"Adam.step", "vllm/v1/engine/core.py", HB_STEPS_READBACK},
		  {"run_batch", "sglang/srt/managers/scheduler.py", HB_STEPS_PYCALLS},
		  {"execute_model", "any.py", HB_STEPS_PYCALLS}};

	for (size_t i = 0; i < sizeof(is) / sizeof(*is); i++) {
		struct host_rig h = host_new("steps-plain");
		struct hb_window *w;
		struct hb_host *x;

		assert_int_equal(of_function(&h, is[i].func, is[i].file, true, &w, &x)->source, is[i].source);
		hb_host__free(x);
		rig_close(&h.r, w);
	}
}

/* A call that gives the work and does not wait for it is no iteration: that lasts until the next call. Nor is
 * one that is only a part of it. */
static void from_call_to_call(void **state)
{
	struct host_rig h = host_new("steps-launch"), g = host_new("steps-part"), k = host_new("steps-whole");
	struct hb_window *w;
	struct hb_host *x;
	const struct hb_series *s = of_function(&h, "EngineCore.step", "core.py", false, &w, &x);

	assert_int_equal(s->source, HB_STEPS_PYCALLS);
	assert_int_equal(s->n, 9); /* when the last one was over is not seen */
	assert_int_equal(s->step[3].begin, AT(30 * MS));
	assert_int_equal(s->step[3].end, AT(40 * MS));
	assert_int_equal(s->step[3].wait_ns, 7800 * US);
	hb_host__free(x);
	rig_close(&h.r, w);
	s = of_function(&g, "GPUModelRunner.execute_model", "runner.py", true, &w, &x);
	assert_int_equal(s->source, HB_STEPS_PYCALLS);
	assert_int_equal(s->p50, 10 * MS);
	hb_host__free(x);
	rig_close(&g.r, w);
	s = of_function(&k, "EngineCore.step", "core.py", true, &w, &x); /* it waits for all it gave */
	assert_int_equal(s->source, HB_STEPS_PYCALL);
	assert_int_equal(s->n, 10);
	assert_int_equal(s->p50, 9500 * US);
	hb_host__free(x);
	rig_close(&k.r, w);
}

/* Two calls one right after the other overlap where times were rounded; one inside of another is no step. */
static void rounded_times(void **state)
{
	struct host_rig h = host_new("steps-round");
	struct hb_rec_py_call p = {.flags = HB_PYCALL_TIMED};
	struct hb_window *w;
	struct hb_host *x;
	const struct hb_series *s;

	p.func = rig_loc(&h.r, "EngineCore.step", "core.py", 0, HB_LANG_PYTHON);
	for (u64 i = 0; i < 10; i++) {
		p.dur = 2 * MS;
		rig_put(&h.r, i * 10 * MS + 9500 * US, h.main, HB_TYPE_py_call, &p);
		p.dur = 10 * MS + 1; /* ends 1 ns after the next one began */
		rig_put(&h.r, i * 10 * MS + 10 * MS + 1, h.main, HB_TYPE_py_call, &p);
		host_step(&h, i * 10 * MS);
	}
	w = host_open(&h);
	x = host_build(w);
	s = series(x, 100);
	assert_int_equal(s->n, 10);
	assert_int_equal(s->step[1].begin, s->step[0].end);
	assert_int_equal(s->step[1].end, AT(20 * MS + 1));
	hb_host__free(x);
	rig_close(&h.r, w);
}

static void by_annotation(void **state)
{
	struct host_rig h = host_new("steps-mark");
	struct hb_rec_op op = {.dur = 9 * MS, .kind = HB_OPKIND_ANNOTATION};
	struct hb_window *w;
	struct hb_host *x;
	char name[32];

	for (u64 i = 0; i < 5; i++) {
		snprintf(name, sizeof(name), "ProfilerStep#%u", (unsigned)i);
		op.name = hb_window_writer__string(h.r.w, name);
		rig_put(&h.r, i * 10 * MS + 10 * MS, h.main, HB_TYPE_op, &op);
		host_step(&h, i * 10 * MS);
	}
	w = host_open(&h);
	x = host_build(w);
	assert_int_equal(series(x, 100)->source, HB_STEPS_MARK);
	assert_int_equal(series(x, 100)->n, 5);
	assert_int_equal(series(x, 100)->p50, 9 * MS);
	assert_int_equal(series(x, 100)->step[1].graphs, 1);
	hb_host__free(x);
	rig_close(&h.r, w);
}

static void by_waits_and_by_graphs(void **state)
{
	struct host_rig h = host_new("steps-waits");
	struct hb_window *w;
	struct hb_host *x;

	for (u64 i = 0; i < 10; i++) {
		CALL(&h, h.main, Q_LAUNCH, i * 10 * MS, i * 10 * MS);
		CALL(&h, h.main, Q_EVENT_SYNC, i * 10 * MS + 100, i * 10 * MS + 8 * MS, .handle = 1 + i,
		     .stack = ST_DECODE);
		CALL(&h, h.server, Q_GRAPH, i * 20 * MS, i * 20 * MS, .handle = i);
	}
	w = host_open(&h);
	x = host_build(w);
	assert_int_equal(series(x, 100)->source, HB_STEPS_SYNC);
	assert_int_equal(series(x, 100)->n, 9);
	assert_int_equal(series(x, 200)->source, HB_STEPS_GRAPH);
	assert_int_equal(series(x, 200)->p50, 20 * MS);
	assert_int_equal(series(x, 200)->step[0].graphs, 1);
	hb_host__free(x);
	rig_close(&h.r, w);
}

static void none_and_why(void **state)
{
	struct host_rig h = host_new("steps-none");
	struct hb_window *w;
	struct hb_host *x;
	const struct hb_seg *g;
	u32 n;

	for (u64 i = 0; i < 10; i++)
		CALL(&h, h.main, Q_LAUNCH, i * MS, i * MS);
	w = host_open(&h);
	x = host_build(w);
	assert_int_equal(series(x, 100)->n, 0);
	assert_int_equal(series(x, 100)->source, HB_STEPS_NONE);
	assert_non_null(strstr(series(x, 100)->why, "recurs"));
	assert_null(hb_steps__why_none(hb_host__steps(x)));
	/* the path is that of the whole window then */
	g = hb_path__segs(hb_host__path(x), 100, &n);
	assert_int_equal(n, 1);
	assert_int_equal(g[0].end - g[0].begin, WALL);
	hb_host__free(x);
	rig_close(&h.r, w);
}

/* Every nanosecond of every step is charged once. */
static void steps_are_tiled(void **state)
{
	struct host_rig h = host_new("steps-tiled");
	struct hb_window *w;
	struct hb_host *x;
	const struct hb_series *s;
	u64 sum[HB_SEG_KINDS], all;

	for (u64 i = 0; i < 20; i++) {
		host_step(&h, i * 10 * MS);
		SLEEP(&h, h.main, i * 10 * MS + 9100 * US, i * 10 * MS + 9700 * US, i * 10 * MS + 9800 * US,
		      101, .chan = 5, .chankind = HB_CHAN_FUTEX, .sysno = SYS_FUTEX);
		SLEEP(&h, h.helper, i * 10 * MS + 9750 * US, i * 10 * MS + 19000 * US,
		      i * 10 * MS + 19001 * US, 100, .chan = 6, .chankind = HB_CHAN_FUTEX,
		      .sysno = SYS_FUTEX);
	}
	w = host_open(&h);
	x = host_build(w);
	s = series(x, 100);
	assert_int_equal(s->n, 19);
	for (u32 i = 0; i < s->n; i++) {
		hb_path__sum(hb_host__path(x), 100, s->step[i].begin, s->step[i].end, sum);
		all = 0;
		for (u32 k = 0; k < HB_SEG_KINDS; k++)
			all += sum[k];
		assert_int_equal(all, s->step[i].end - s->step[i].begin);
		assert_int_equal(sum[HB_SEG_DEVICE], s->step[i].wait_ns);
	}
	hb_host__free(x);
	rig_close(&h.r, w);
}

/* ---- the device without its records ---- */

static void assert_state(struct hb_host *x, u64 begin, u64 end, u8 state)
{
	struct hb_range r = hb_busy__idle_in(hb_host__busy(x), 100, AT(begin), AT(end));
	u64 min = state == HB_BUSY_IDLE ? end - begin : 0, max = state == HB_BUSY_BUSY ? 0 : end - begin;

	if (r.min != min || r.max != max)
		fail_msg("%lu to %lu: idle %lu to %lu", (unsigned long)begin, (unsigned long)end,
			 (unsigned long)r.min, (unsigned long)r.max);
}

/* A read-back on another stream covers the graph: idle from the wait's return to the next submission. */
static void idle_after_a_read_back(void **state)
{
	struct host_rig h = host_new("busy-readback");
	struct hb_window *w;
	struct hb_host *x;

	for (u64 i = 0; i < 5; i++)
		host_step(&h, i * 10 * MS);
	w = host_open(&h);
	x = host_build(w);
	assert_state(x, 0, 1200 * US, HB_BUSY_UNKNOWN); /* work from before the window */
	assert_state(x, 1200 * US, 9 * MS, HB_BUSY_BUSY);
	assert_state(x, 9 * MS, 10 * MS + 500 * US, HB_BUSY_IDLE);
	assert_state(x, 10 * MS + 500 * US, 11 * MS + 200 * US, HB_BUSY_UNKNOWN);
	assert_state(x, 11 * MS + 200 * US, 19 * MS, HB_BUSY_BUSY);
	assert_state(x, 49 * MS, 1000 * MS, HB_BUSY_IDLE);
	hb_host__free(x);
	rig_close(&h.r, w);
}

/* The device is done when the thread is woken, not when it has a CPU again. */
static void late_return_of_a_wait(void **state)
{
	struct host_rig h = host_new("busy-late");
	struct hb_window *w;
	struct hb_host *x;
	u32 main;
	bool sure;

	for (u64 i = 0; i < 4; i++) { /* a wait of 10 to 50 ms of each 100 */
		u64 t = i * 100 * MS;

		CALL(&h, h.main, Q_LAUNCH, t + 9 * MS, t + 9 * MS);
		/* woken at 20, had a CPU at 49.99; the same, then preempted; preempted only; woken long
		 * before */
		if (i < 2)
			SLEEP(&h, h.main, t + 11 * MS, t + 20 * MS, t + 49990 * US - i * 10 * MS, 101,
			      .chan = 1, .chankind = HB_CHAN_FILE, .sysno = 16);
		if (i == 1 || i == 2)
			SLEEP(&h, h.main, t + 40 * MS, t + 40 * MS, t + 49990 * US, 0, .state = PREEMPTED,
			      .sysno = HB_SYSNO_NONE);
		if (i == 3)
			SLEEP(&h, h.main, t + 11 * MS, t + 20 * MS, t + 21 * MS, 101, .chan = 1,
			      .chankind = HB_CHAN_FILE, .sysno = 16);
		CALL(&h, h.main, Q_DEVICE_SYNC, t + 10 * MS, t + 50 * MS);
	}
	w = host_open(&h);
	x = host_build(w);
	main = hb_timeline__by_tid(hb_host__timeline(x), 100);
	assert_int_equal(hb_call__done(hb_host__timeline(x), main, 1, &sure), AT(20 * MS));
	assert_true(sure);
	assert_int_equal(hb_call__done(hb_host__timeline(x), main, 3, &sure), AT(120 * MS));
	assert_true(sure);
	assert_int_equal(hb_call__done(hb_host__timeline(x), main, 5, &sure), AT(240 * MS));
	assert_false(sure);
	assert_int_equal(hb_call__done(hb_host__timeline(x), main, 7, &sure), AT(350 * MS));
	assert_true(sure);
	assert_state(x, 10 * MS, 20 * MS, HB_BUSY_BUSY);
	assert_state(x, 20 * MS, 109 * MS, HB_BUSY_IDLE);
	assert_state(x, 210 * MS, 240 * MS, HB_BUSY_BUSY);
	assert_state(x, 240 * MS, 250 * MS, HB_BUSY_UNKNOWN);
	assert_state(x, 250 * MS, 309 * MS, HB_BUSY_IDLE);
	assert_state(x, 310 * MS, 350 * MS, HB_BUSY_BUSY);
	hb_host__free(x);
	rig_close(&h.r, w);
}

/* A wait for one stream says nothing of another one without a read-back. */
static void another_stream_stays_unknown(void **state)
{
	struct host_rig h = host_new("busy-streams");
	struct hb_window *w;
	struct hb_host *x;

	CALL(&h, h.main, Q_DEVICE_SYNC, 0, 1 * MS);
	CALL(&h, h.main, Q_LAUNCH, 2 * MS, 2 * MS, .stream = 1);
	CALL(&h, h.main, Q_LAUNCH, 3 * MS, 3 * MS, .stream = 2);
	CALL(&h, h.main, Q_STREAM_SYNC, 4 * MS, 6 * MS, .stream = 2);
	CALL(&h, h.main, Q_STREAM_SYNC, 8 * MS, 8 * MS + 2000, .stream = 1);
	w = host_open(&h);
	x = host_build(w);
	assert_state(x, 1 * MS, 2 * MS, HB_BUSY_IDLE);
	assert_state(x, 2 * MS, 4 * MS, HB_BUSY_UNKNOWN);
	assert_state(x, 4 * MS, 6 * MS, HB_BUSY_BUSY);
	assert_state(x, 6 * MS, 8 * MS, HB_BUSY_UNKNOWN);
	assert_state(x, 8 * MS + 2000, 1000 * MS, HB_BUSY_IDLE); /* returned at once: it was done */
	hb_host__free(x);
	rig_close(&h.r, w);
}

/* S2: an engine one step ahead, 30 launches of 1 ms, waits for the step before by an event that is not
 * probed. Every tenth step it asks a service for 350 ms, with one step queued. The device was idle for 320 of
 * that. */
static void engine_a_step_ahead(struct host_rig *h, u64 queued)
{
	u64 t = 0, drained = 0, before = 0;

	for (u64 i = 0; i < 40; i++) {
		if (i % 10 == 9) {
			for (u64 k = 0; k < queued; k++)
				CALL(h, h->main, Q_LAUNCH, t + k * 1000, t + k * 1000, .handle = 7,
				     .stream = 1);
			drained = (drained > t ? drained : t) + queued * MS;
			t += queued * 1000;
			SLEEP(h, h->main, t, t + 350 * MS, t + 350 * MS, 200, .chankind = HB_CHAN_UNIX,
			      .chan = 3, .peer = 4, .sysno = 45);
			t += 350 * MS;
		}
		for (u64 k = 0; k < 30; k++)
			CALL(h, h->main, Q_LAUNCH, t + k * 10000, t + k * 10000, .handle = 7, .stream = 1);
		drained = (drained > t ? drained : t) + 30 * MS;
		t += 300000;
		before = before > t + 3000 ? before : t + 3000;
		CALL(h, h->main, Q_EVENT_SYNC, t, before, .handle = 100 + i, .stack = ST_DECODE);
		t = before + 20000;
		before = drained;
	}
}

static void what_was_likely(u64 queued, const char *name, struct hb_range *all, u32 *calls)
{
	struct host_rig h = host_new(name);
	struct hb_window *w;
	struct hb_host *x;
	u32 n, main;
	const struct hb_tl_sleep *s;

	engine_a_step_ahead(&h, queued);
	w = host_open(&h);
	x = host_build(w);
	main = hb_timeline__by_tid(hb_host__timeline(x), 100);
	s = hb_timeline__sleeps(hb_host__timeline(x), main, &n);
	*calls = n;
	*all = (struct hb_range){0};
	for (u32 i = 0; i < n; i++) {
		u32 pid;
		struct hb_range r =
		    hb_path__exposed(hb_host__path(x), main, s[i].at.begin, s[i].at.end, &pid);

		assert_int_equal(pid, r.max ? 100 : 0);
		all->min += r.min;
		all->likely += r.likely;
		all->max += r.max;
	}
	hb_host__free(x);
	rig_close(&h.r, w);
}

static void likely_from_what_work_costs(void **state)
{
	struct hb_range r;
	u32 n;

	what_was_likely(0, "busy-s2", &r, &n);
	assert_int_equal(n, 4);
	assert_int_equal(r.min, 0); /* nothing says for sure that the queued step was short */
	assert_int_equal(r.max, 4 * 350 * MS);
	if (r.likely < 4 * 310 * MS || r.likely > 4 * 330 * MS)
		fail_msg("likely %lu ms of 1280", (unsigned long)(r.likely / MS));
	/* the twin: 400 ms of work queued cost nothing */
	what_was_likely(400, "busy-s2-twin", &r, &n);
	assert_int_equal(n, 4);
	if (r.likely > 4 * 5 * MS)
		fail_msg("likely %lu ms of 0", (unsigned long)(r.likely / MS));
}

/* Copies that take 150 us of CPU did not wait, as the wait after each of them shows; those of another size
 * did. */
static void slow_copies_are_no_waits(void **state)
{
	struct host_rig h = host_new("busy-copies");
	struct hb_window *w;
	struct hb_host *x;

	for (u64 i = 0; i < 10; i++) {
		u64 t = i * 20 * MS;

		CALL(&h, h.main, Q_LAUNCH, t, t, .stream = 1);
		CALL(&h, h.main, Q_D2H, t + 100 * US, t + 250 * US, .bytes = 4 << 20, .stream = 1);
		CALL(&h, h.main, Q_STREAM_SYNC, t + 300 * US, t + 9 * MS, .stream = 1);
		CALL(&h, h.main, Q_LAUNCH, t + 10 * MS, t + 10 * MS, .stream = 1);
		CALL(&h, h.main, Q_D2H, t + 11 * MS, t + 12 * MS, .bytes = 64, .stream = 1);
	}
	w = host_open(&h);
	x = host_build(w);
	assert_state(x, 20 * MS + 250 * US, 20 * MS + 300 * US, HB_BUSY_UNKNOWN);
	assert_state(x, 20 * MS + 300 * US, 29 * MS, HB_BUSY_BUSY);
	assert_state(x, 32 * MS, 40 * MS, HB_BUSY_IDLE);
	hb_host__free(x);
	rig_close(&h.r, w);
}

static void recorded_events(void **state)
{
	struct host_rig h = host_new("busy-events");
	struct hb_window *w;
	struct hb_host *x;

	/* the event is recorded after all of the work, or between its two halves */
	for (u64 i = 0; i < 2; i++) {
		u64 t = i * 100 * MS;

		CALL(&h, h.main, Q_DEVICE_SYNC, t, t + MS);
		CALL(&h, h.main, Q_LAUNCH, t + 2 * MS, t + 2 * MS, .stream = 1);
		if (i)
			CALL(&h, h.main, Q_RECORD, t + 3 * MS, t + 3 * MS, .handle = 9, .stream = 1);
		CALL(&h, h.main, Q_LAUNCH, t + 4 * MS, t + 4 * MS, .stream = 1);
		if (!i)
			CALL(&h, h.main, Q_RECORD, t + 5 * MS, t + 5 * MS, .handle = 9, .stream = 1);
		CALL(&h, h.main, Q_EVENT_SYNC, t + 6 * MS, t + 10 * MS, .handle = 9);
		CALL(&h, h.main, Q_LAUNCH, t + 20 * MS, t + 20 * MS, .stream = 1);
	}
	w = host_open(&h);
	x = host_build(w);
	assert_state(x, 10 * MS, 20 * MS, HB_BUSY_IDLE);
	assert_state(x, 110 * MS, 120 * MS, HB_BUSY_UNKNOWN);
	hb_host__free(x);
	rig_close(&h.r, w);
}

/* An engine that runs a step ahead: results are copied on a stream of their own, an event after them is what
 * another thread waits for; the next step is given meanwhile. Of an event that was recorded before the window
 * nothing is known. */
static void events_of_another_thread(void **state)
{
	struct host_rig h = host_new("busy-ahead");
	struct hb_window *w;
	struct hb_host *x;

	CALL(&h, h.helper, Q_EVENT_SYNC, 0, MS, .handle = 7);
	for (u64 i = 1; i < 5; i++) {
		u64 t = i * 20 * MS;

		CALL(&h, h.main, Q_LAUNCH, t, t, .stream = 1);
		CALL(&h, h.main, Q_D2H, t + MS, t + MS + 2 * US, .bytes = 64, .stream = 2);
		CALL(&h, h.main, Q_RECORD, t + MS + 3 * US, t + MS + 3 * US, .handle = 10 + i, .stream = 2);
		if (i % 2) /* the next step, before this one's results */
			CALL(&h, h.main, Q_LAUNCH, t + 2 * MS, t + 2 * MS, .stream = 1);
		CALL(&h, h.helper, Q_EVENT_SYNC, t + 3 * MS, t + 9 * MS, .handle = 10 + i);
	}
	w = host_open(&h);
	x = host_build(w);
	assert_state(x, MS, 20 * MS, HB_BUSY_UNKNOWN);
	assert_state(x, 29 * MS, 40 * MS, HB_BUSY_UNKNOWN);
	assert_state(x, 43 * MS, 49 * MS, HB_BUSY_BUSY);
	assert_state(x, 49 * MS, 60 * MS, HB_BUSY_IDLE);
	hb_host__free(x);
	rig_close(&h.r, w);
}

/* An event on a stream without results says nothing of other streams. */
static void events_of_another_stream(void **state)
{
	struct host_rig h = host_new("busy-side");
	struct hb_window *w;
	struct hb_host *x;

	CALL(&h, h.main, Q_DEVICE_SYNC, 0, MS);
	CALL(&h, h.main, Q_LAUNCH, 2 * MS, 2 * MS, .stream = 1);
	CALL(&h, h.main, Q_H2D, 3 * MS, 3 * MS + 2 * US, .bytes = 64, .stream = 2);
	CALL(&h, h.main, Q_RECORD, 4 * MS, 4 * MS, .handle = 9, .stream = 2);
	CALL(&h, h.main, Q_EVENT_SYNC, 5 * MS, 6 * MS, .handle = 9);
	CALL(&h, h.main, Q_LAUNCH, 20 * MS, 20 * MS, .stream = 1);
	w = host_open(&h);
	x = host_build(w);
	assert_state(x, 6 * MS, 20 * MS, HB_BUSY_UNKNOWN);
	hb_host__free(x);
	rig_close(&h.r, w);
}

static void exact_with_records(void **state)
{
	struct host_rig h = host_new("busy-exact");
	struct hb_rec_device d = {.kind = HB_DEVKIND_KERNEL};
	struct hb_error e = {0};
	struct hb_window *w;
	struct hb_devices *dev;
	struct hb_host *x;
	struct hb_range r;
	u32 main;

	for (u64 i = 1; i <= 3; i++) {
		CALL(&h, h.main, Q_LAUNCH, i * 10 * MS, i * 10 * MS + 5000, .correlation = i);
		d.correlation = i;
		d.dur = 4 * MS;
		rig_put(&h.r, i * 10 * MS + 5 * MS, h.main, HB_TYPE_device, &d);
	}
	w = host_open(&h);
	dev = hb_devices__build(w, NULL, &e);
	assert_non_null(dev);
	x = hb_host__build(w, dev, &e);
	assert_non_null(x);
	assert_true(hb_busy__is_exact(hb_host__busy(x), 100));
	assert_int_equal(hb_busy__sum(hb_host__busy(x), 100).busy, 12 * MS);
	assert_int_equal(hb_busy__sum(hb_host__busy(x), 100).idle, 12 * MS);
	assert_state(x, 11 * MS, 15 * MS, HB_BUSY_BUSY);
	assert_state(x, 15 * MS, 21 * MS, HB_BUSY_IDLE);
	assert_state(x, 40 * MS, 50 * MS, HB_BUSY_UNKNOWN); /* beyond the records */
	main = hb_timeline__by_tid(hb_host__timeline(x), 100);
	r = hb_path__exposed(hb_host__path(x), main, AT(14 * MS), AT(22 * MS), NULL);
	assert_int_equal(r.min, 6 * MS);
	assert_int_equal(r.max, 6 * MS);
	assert_int_equal(r.likely, 6 * MS);
	hb_host__free(x);
	hb_devices__free(dev);
	rig_close(&h.r, w);
}

/* Another thread's time counts as far as the path goes through it while the device is idle. */
static void exposed_by_another_thread(void **state)
{
	struct host_rig h = host_new("busy-other");
	struct hb_window *w;
	struct hb_host *x;
	struct hb_range r;
	u32 helper, pid;

	for (u64 i = 0; i < 6; i++) {
		u64 t = i * 20 * MS;

		host_step(&h, t); /* idle from 9 on */
		SLEEP(&h, h.main, t + 10 * MS, t + 18 * MS, t + 18 * MS, 101, .chan = 5,
		      .chankind = HB_CHAN_FUTEX, .sysno = SYS_FUTEX);
	}
	SLEEP(&h, h.helper, 900 * MS, 901 * MS, 901 * MS, 0, .sysno = HB_SYSNO_NONE);
	w = host_open(&h);
	x = host_build(w);
	helper = hb_timeline__by_tid(hb_host__timeline(x), 101);
	r = hb_path__exposed(hb_host__path(x), helper, AT(30 * MS), AT(38 * MS), &pid);
	assert_int_equal(pid, 100);
	/* the walk enters it at 38 and stays: it ran all the time */
	assert_int_equal(r.min, 8 * MS);
	r = hb_path__exposed(hb_host__path(x), helper, AT(38 * MS), AT(40 * MS), &pid);
	assert_int_equal(r.max, 0); /* main ran then */
	assert_int_equal(pid, 0);
	hb_host__free(x);
	rig_close(&h.r, w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(by_read_back),
	    cmocka_unit_test(loops_and_rare_calls_are_no_steps),
	    cmocka_unit_test(by_function_of_another_process),
	    cmocka_unit_test(plain_names),
	    cmocka_unit_test(from_call_to_call),
	    cmocka_unit_test(rounded_times),
	    cmocka_unit_test(by_annotation),
	    cmocka_unit_test(by_waits_and_by_graphs),
	    cmocka_unit_test(none_and_why),
	    cmocka_unit_test(steps_are_tiled),
	    cmocka_unit_test(idle_after_a_read_back),
	    cmocka_unit_test(late_return_of_a_wait),
	    cmocka_unit_test(another_stream_stays_unknown),
	    cmocka_unit_test(likely_from_what_work_costs),
	    cmocka_unit_test(slow_copies_are_no_waits),
	    cmocka_unit_test(recorded_events),
	    cmocka_unit_test(events_of_another_thread),
	    cmocka_unit_test(events_of_another_stream),
	    cmocka_unit_test(exact_with_records),
	    cmocka_unit_test(exposed_by_another_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
