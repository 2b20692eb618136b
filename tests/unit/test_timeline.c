/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Timelines of threads: order, nesting, look-ups, use of time, memory. */
#include "host_rig.h"

static void ordered_and_nested(void **state)
{
	struct host_rig h = host_new("tl-order");
	struct hb_rec_py_call p = {.flags = HB_PYCALL_TIMED, .end = HB_PYEND_RETURN};
	struct hb_error e = {0};
	struct hb_window *w;
	struct hb_timeline *tl;
	const struct hb_tl_pycall *c;
	u32 n;

	/* inner calls end first: 30-40, 50-60 and 52-54 inside of 10-90, then 95-99 */
	static const u64 spans[][2] = {{30, 40}, {52, 54}, {50, 60}, {10, 90}, {95, 99}};
	for (size_t i = 0; i < 5; i++) {
		p.dur = spans[i][1] - spans[i][0];
		p.code = i;
		rig_put(&h.r, spans[i][1], h.main, HB_TYPE_py_call, &p);
	}
	w = host_open(&h);
	tl = hb_timeline__build(w, &e);
	assert_non_null(tl);
	assert_int_equal(hb_timeline__threads(tl), 1);
	c = hb_timeline__pycalls(tl, 0, &n);
	assert_int_equal(n, 5);
	assert_int_equal(c[0].code, 3);
	assert_int_equal(c[1].code, 0);
	assert_int_equal(c[2].code, 2);
	assert_int_equal(c[3].code, 1);
	assert_int_equal(c[4].code, 4);
	assert_int_equal(c[0].at.outer, HB_NONE);
	assert_int_equal(c[1].at.outer, 0);
	assert_int_equal(c[2].at.outer, 0);
	assert_int_equal(c[3].at.outer, 2);
	assert_int_equal(c[4].at.outer, HB_NONE);
	assert_int_equal(hb_timeline__at(tl, 0, HB_TL_PYCALL, AT(53)), 3);
	assert_int_equal(hb_timeline__at(tl, 0, HB_TL_PYCALL, AT(54)), 2);
	assert_int_equal(hb_timeline__at(tl, 0, HB_TL_PYCALL, AT(89)), 0);
	assert_int_equal(hb_timeline__at(tl, 0, HB_TL_PYCALL, AT(90)), HB_NONE);
	assert_int_equal(hb_timeline__at(tl, 0, HB_TL_PYCALL, AT(9)), HB_NONE);
	assert_int_equal(hb_timeline__from(tl, 0, HB_TL_PYCALL, AT(50)), 2);
	assert_int_equal(hb_timeline__from(tl, 0, HB_TL_PYCALL, AT(51)), 3);
	assert_int_equal(hb_timeline__from(tl, 0, HB_TL_PYCALL, AT(96)), 5);
	hb_timeline__free(tl);
	rig_close(&h.r, w);
}

/* So deep that moving each to its place would take too long: they are sorted all the same. */
static void deeply_nested(void **state)
{
	struct host_rig h = host_new("tl-deep");
	struct hb_rec_py_call p = {.flags = HB_PYCALL_TIMED, .end = HB_PYEND_RETURN};
	struct hb_error e = {0};
	struct hb_window *w;
	struct hb_timeline *tl;
	const struct hb_tl_pycall *c;
	u32 n, deep = 3000;

	for (u32 i = deep; i-- > 0;) { /* [10 i, 100000 - 10 i) */
		p.dur = 100000 - 20 * i;
		p.code = i;
		rig_put(&h.r, 100000 - 10 * i, h.main, HB_TYPE_py_call, &p);
	}
	w = host_open(&h);
	tl = hb_timeline__build(w, &e);
	c = hb_timeline__pycalls(tl, 0, &n);
	assert_int_equal(n, deep);
	for (u32 i = 0; i < n; i++) {
		assert_int_equal(c[i].code, i);
		assert_int_equal(c[i].at.outer, i ? i - 1 : HB_NONE);
	}
	assert_int_equal(hb_timeline__at(tl, 0, HB_TL_PYCALL, AT(50000)), deep - 1);
	hb_timeline__free(tl);
	rig_close(&h.r, w);
}

/* Each process's threads, in the order in which they came, and none of another's. */
static void threads_of_processes(void **state)
{
	struct host_rig h = host_new("tl-threads");
	const u16 tasks[] = {h.main, h.server, h.helper, h.evictor, h.io};
	static const u32 tids[2][3] = {{100, 101, 102}, {200, 201}}, counts[] = {3, 2};
	struct hb_error e = {0};
	struct hb_window *w;
	struct hb_timeline *tl;

	for (u32 i = 0; i < 5; i++)
		CALL(&h, tasks[i], Q_LAUNCH, 100 * i, 100 * i + 50);
	w = host_open(&h);
	tl = hb_timeline__build(w, &e);
	for (u32 p = 0; p < 2; p++) {
		u32 pid = 100 * (p + 1), t = hb_timeline__of_pid(tl, pid, HB_NONE);

		for (u32 i = 0; i < counts[p]; i++, t = hb_timeline__of_pid(tl, pid, t)) {
			assert_int_not_equal(t, HB_NONE);
			assert_int_equal(hb_timeline__thread(tl, t)->task->tid, tids[p][i]);
			assert_int_equal(hb_timeline__thread(tl, t)->works, 1);
			assert_int_equal(hb_timeline__thread(tl, t)->by_op[HB_OP_LAUNCH], 1);
		}
		assert_int_equal(t, HB_NONE);
	}
	assert_int_equal(hb_timeline__of_pid(tl, 777, HB_NONE), HB_NONE);
	hb_timeline__free(tl);
	rig_close(&h.r, w);
}

/* In whatever order it is asked: the same as looking through all. */
static void searches(void **state)
{
	struct host_rig h = host_new("tl-search");
	struct hb_error e = {0};
	struct hb_window *w;
	struct hb_timeline *tl;
	const struct hb_tl_call *c;
	u32 n, seed = 7;

	for (u32 i = 0; i < 200; i++)
		CALL(&h, h.main, Q_LAUNCH, i * i / 3, i * i / 3);
	w = host_open(&h);
	tl = hb_timeline__build(w, &e);
	c = hb_timeline__calls(tl, 0, &n);
	assert_int_equal(n, 200);
	for (u32 i = 0; i < 2000; i++) {
		u64 t = AT(seed % 14000);
		u32 at = 0;

		seed = i % 500 < 100 ? seed + 3 : seed * 1664525 + 1013904223;
		while (at < n && c[at].at.begin < t)
			at++;
		assert_int_equal(hb_timeline__from(tl, 0, HB_TL_CALL, t), at);
	}
	assert_int_equal(hb_timeline__from(tl, 0, HB_TL_SLEEP, START), 0);
	hb_timeline__free(tl);
	rig_close(&h.r, w);
}

/* Each call keeps what it called, also where that is new each time, or comes by turns. */
static void callees(void **state)
{
	struct host_rig h = host_new("tl-callees");
	struct hb_error e = {0};
	struct hb_window *w;
	struct hb_timeline *tl;
	const struct hb_tl_call *c;
	u32 n, numbers = 0;

	for (u32 i = 0; i < 3000; i++)
		CALL(&h, h.main, i % 2 ? Q_D2H : Q_GRAPH, i * US, i * US, .handle = i % 5 ? i % 700 : 0,
		     .stream = i % 3, .kind = i % 7);
	w = host_open(&h);
	tl = hb_timeline__build(w, &e);
	c = hb_timeline__calls(tl, 0, &n);
	assert_int_equal(n, 3000);
	for (u32 i = 0; i < n; i++) {
		const struct hb_tl_callee *x = hb_timeline__callee(tl, &c[i]);

		assert_int_equal(x->probe, i % 2 ? Q_D2H : Q_GRAPH);
		assert_int_equal(x->handle, i % 5 ? i % 700 : 0);
		assert_int_equal(x->stream, i % 3);
		assert_int_equal(x->kind, i % 7);
		numbers = c[i].callee > numbers ? c[i].callee : numbers;
	}
	assert_in_range(numbers, 700, 3000 - 500); /* each once: handles 0 come again */
	hb_timeline__free(tl);
	rig_close(&h.r, w);
}

static void fields_of_each_kind(void **state)
{
	struct host_rig h = host_new("tl-kinds");
	struct hb_rec_py_gil g = {.dur = 5 * MS, .slept = 4 * MS, .holder = 101, .gil = 0x77, .sleeps = 2};
	struct hb_rec_py_gc gc = {.dur = MS, .generation = 2, .stack = ST_USER};
	struct hb_rec_sample s = {.weight = MS, .stack = ST_USER, .kstack = ST_KERNEL, .cpu = 3};
	struct hb_rec_op op = {.dur = 3 * MS, .kind = HB_OPKIND_ANNOTATION};
	struct hb_rec_thread born = {.parent = 100, .how = HB_HOW_FORKED};
	struct hb_rec_exit died = {.code = 0};
	struct hb_error e = {0};
	struct hb_window *w;
	struct hb_timeline *tl;
	u32 n, main, helper;

	rig_put(&h.r, 1 * MS, h.helper, HB_TYPE_thread, &born);
	CALL(&h, h.main, Q_D2H, 2 * MS, 3 * MS, .bytes = 64, .kind = 2, .stream = 9, .correlation = 5);
	CALL(&h, h.main, Q_H2D, 3 * MS, 4 * MS);
	CALL(&h, h.main, Q_GRAPH, 4 * MS, 4 * MS, .handle = 0xabc);
	rig_put(&h.r, 10 * MS, h.main, HB_TYPE_py_gil, &g);
	g.holder = 0;
	rig_put(&h.r, 20 * MS, h.main, HB_TYPE_py_gil, &g);
	rig_put(&h.r, 21 * MS, h.main, HB_TYPE_py_gc, &gc);
	rig_put(&h.r, 22 * MS, h.main, HB_TYPE_sample, &s);
	rig_put(&h.r, 30 * MS, h.main, HB_TYPE_op, &op);
	op.kind = HB_OPKIND_DEVICE_ANNOTATION;
	rig_put(&h.r, 31 * MS, h.main, HB_TYPE_op, &op);
	rig_put(&h.r, 40 * MS, h.helper, HB_TYPE_exit, &died);
	w = host_open(&h);
	tl = hb_timeline__build(w, &e);
	assert_non_null(tl);
	main = hb_timeline__by_tid(tl, 100);
	helper = hb_timeline__by_tid(tl, 101);
	assert_int_equal(hb_timeline__by_tid(tl, 200), HB_NONE); /* left no records */
	assert_int_equal(hb_timeline__calls(tl, main, &n)[0].copy, HB_COPY_DTOH);
	assert_int_equal(n, 3);
	assert_int_equal(hb_timeline__calls(tl, main, &n)[0].correlation, 5);
	assert_int_equal(hb_timeline__calls(tl, main, &n)[1].copy, HB_COPY_HTOD); /* by its name */
	assert_int_equal(hb_timeline__calls(tl, main, &n)[2].op, HB_OP_GRAPH);
	assert_int_equal(hb_timeline__callee(tl, &hb_timeline__calls(tl, main, &n)[2])->handle, 0xabc);
	assert_int_equal(hb_timeline__gils(tl, main, &n)[0].holder, helper);
	assert_int_equal(hb_timeline__gils(tl, main, &n)[1].holder, HB_NONE);
	assert_int_equal(hb_timeline__gcs(tl, main, &n)[0].generation, 2);
	assert_int_equal(hb_timeline__samples(tl, main, &n)[0].kstack, ST_KERNEL);
	assert_int_equal(hb_timeline__ops(tl, main, &n)[0].at.begin, AT(27 * MS));
	assert_int_equal(n, 1);
	assert_int_equal(hb_timeline__count(tl, HB_TL_OP), 1);
	assert_int_equal(hb_timeline__count(tl, HB_TL_SLEEP), 0);
	assert_int_equal(hb_timeline__thread(tl, helper)->born, AT(1 * MS));
	assert_int_equal(hb_timeline__thread(tl, helper)->died, AT(40 * MS));
	assert_int_equal(hb_timeline__of_pid(tl, 100, HB_NONE), main < helper ? main : helper);
	assert_int_equal(hb_timeline__of_pid(tl, 100, main > helper ? main : helper), HB_NONE);
	hb_timeline__free(tl);
	rig_close(&h.r, w);
}

static void use_of_time(void **state)
{
	struct host_rig h = host_new("tl-use");
	struct hb_error e = {0};
	struct hb_window *w;
	struct hb_timeline *tl;
	struct hb_use u;

	SLEEP(&h, h.main, 100, 180, 200, 200, .chankind = HB_CHAN_UNIX);
	SLEEP(&h, h.main, 300, 300, 350, 0, .state = HB_TSTATE_SLEEPING);
	w = host_open(&h);
	tl = hb_timeline__build(w, &e);
	assert_non_null(tl);
	u = hb_timeline__use(tl, 0, AT(0), AT(400));
	assert_int_equal(u.slept, 80);
	assert_int_equal(u.ready, 70);
	assert_int_equal(u.running, 250);
	u = hb_timeline__use(tl, 0, AT(150), AT(190));
	assert_int_equal(u.slept, 30);
	assert_int_equal(u.ready, 10);
	assert_int_equal(u.running, 0);
	u = hb_timeline__use(tl, 0, AT(190), AT(310));
	assert_int_equal(u.ready, 20);
	assert_int_equal(u.running, 100);
	u = hb_timeline__use(tl, 0, AT(400), AT(400));
	assert_int_equal(u.running + u.slept + u.ready, 0);
	hb_timeline__free(tl);
	rig_close(&h.r, w);
}

/* Places are numbered: what is asked of a sleep is what was recorded, however many there are. */
static void places(void **state)
{
	struct host_rig h = host_new("tl-places");
	struct hb_window *w;
	struct hb_timeline *tl;
	struct hb_error e = {0};
	const struct hb_tl_sleep *s;
	u32 n;

	for (u64 i = 0; i < 3000; i++)
		SLEEP(&h, h.main, i * 100, i * 100 + 50, i * 100 + 60, 0, .chan = i % 7, .local = i % 1000,
		      .peer = i % 2, .a0 = i % 11, .a1 = i % 3, .chankind = HB_CHAN_TCP, .state = 5,
		      .wctx = HB_WCTX_SOFTIRQ, .flags = 2);
	w = host_open(&h);
	tl = hb_timeline__build(w, &e);
	s = hb_timeline__sleeps(tl, 0, &n);
	assert_int_equal(n, 3000);
	for (u64 i = 0; i < n; i++) {
		const struct hb_tl_place *p = hb_timeline__place(tl, &s[i]);

		assert_true(p->chan == i % 7 && p->local == i % 1000 && p->peer == i % 2 && p->a0 == i % 11 &&
			    p->a1 == i % 3);
		assert_int_equal(hb_sleep__woken(&s[i]), s[i].at.end - 10);
		assert_true(s[i].state == 5 && s[i].wctx == HB_WCTX_SOFTIRQ && s[i].flags == 2 &&
			    s[i].chankind == HB_CHAN_TCP);
	}
	assert_int_equal(s[0].place, 0);
	assert_int_not_equal(s[1].place, s[2].place);
	hb_timeline__free(tl);
	rig_close(&h.r, w);
}

/* The promise of the issue, for the whole model: 200 bytes a record. */
static void memory(void **state)
{
	struct hb_rec_sample sample = {.weight = MS, .stack = ST_USER};
	struct host_rig h = host_new("tl-memory");
	struct hb_window *w;
	struct hb_host *x;
	u64 records, bytes;

	for (u64 i = 1; i <= 40000; i++) {
		u64 t = i * 20000;

		if (i % 4)
			CALL(&h, h.main, Q_LAUNCH, t, t, .handle = i % 7);
		else
			CALL(&h, h.main, Q_STREAM_SYNC, t - 7000, t, .stack = ST_DECODE);
		SLEEP(&h, h.main, t + 1000, t + 9000, t + 10000, 101, .chan = i % 5,
		      .chankind = HB_CHAN_FUTEX, .sysno = SYS_FUTEX);
		rig_put(&h.r, t + 500, h.main, HB_TYPE_sample, &sample);
		SLEEP(&h, h.helper, t + 9500, t + 12000, t + 12500, 100, .chan = 7, .chankind = HB_CHAN_FUTEX,
		      .sysno = SYS_FUTEX);
	}
	w = host_open(&h);
	x = host_build(w);
	bytes = hb_host__memory(x, &records);
	assert_int_equal(records, 160000);
	if (bytes > 200 * records + (1 << 20))
		fail_msg("%lu bytes a record", (unsigned long)(bytes / records));
	hb_host__free(x);
	rig_close(&h.r, w);
}

static void nothing(void **state)
{
	struct host_rig h = host_new("tl-nothing");
	struct hb_window *w = host_open(&h);
	struct hb_host *x = host_build(w);
	u32 n;

	assert_int_equal(hb_timeline__threads(hb_host__timeline(x)), 0);
	assert_int_equal(hb_steps__series(hb_host__steps(x)), 0);
	assert_string_equal(hb_steps__why_none(hb_host__steps(x)), "no accelerator calls in this window");
	assert_null(hb_busy__spans(hb_host__busy(x), 100, &n));
	assert_null(hb_path__segs(hb_host__path(x), 100, &n));
	hb_host__free(x);
	rig_close(&h.r, w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(ordered_and_nested),
	    cmocka_unit_test(deeply_nested),
	    cmocka_unit_test(threads_of_processes),
	    cmocka_unit_test(searches),
	    cmocka_unit_test(callees),
	    cmocka_unit_test(fields_of_each_kind),
	    cmocka_unit_test(use_of_time),
	    cmocka_unit_test(places),
	    cmocka_unit_test(memory),
	    cmocka_unit_test(nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
