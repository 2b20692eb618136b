/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Steps that are periods hold no time in which nothing was asked of the engine. */
#include "host_rig.h"

#define REQUEST (400 * MS) /* from one request to the next */
#define TOKENS	5	   /* of each, 10 ms a step */

static const struct hb_series *series(struct hb_host *x, u32 pid)
{
	const struct hb_series *s = hb_steps__of_pid(hb_host__steps(x), pid);

	assert_non_null(s);
	return s;
}

/* `task` waits in its event loop until a client (900), who is not traced, sends something. */
static void awaits(struct host_rig *h, u16 task, u64 begin, u64 wake, u64 end)
{
	SLEEP(h, task, begin, wake, end, 900, .chankind = HB_CHAN_EPOLL, .chan = 11, .sysno = SYS_EPOLL,
	      .wsys = SYS_SENDTO, .wctx = HB_WCTX_OWN_SEND);
}

/* Each step's segments add up to it; times without load are in none of them, and are still told. */
static void assert_tiled(struct hb_host *x, const struct hb_series *s, u64 outside)
{
	struct hb_ivs none = {0};
	u64 sum[HB_SEG_KINDS];

	for (u32 i = 0; i < s->n; i++) {
		u64 all = 0;

		hb_path__sum(hb_host__path(x), s->pid, s->step[i].begin, s->step[i].end, sum);
		for (u32 k = 0; k < HB_SEG_KINDS; k++)
			all += sum[k];
		assert_int_equal(all, s->step[i].end - s->step[i].begin);
		assert_int_equal(s->step[i].run_ns + s->step[i].sleep_ns + s->step[i].ready_ns, all);
	}
	hb_path__outside(hb_host__path(x), s->pid, &none);
	assert_false(none.oom);
	assert_int_equal(hb_ivs__length(&none), outside);
	hb_ivs__free(&none);
}

/* Two requests of five tokens, 350 ms apart, on one thread: the wait is between two steps. What the thread
 * did with the last token, 2 ms, belongs to that token's step, and the first step begins when the request
 * came. */
static void by_read_back(void **state)
{
	struct host_rig h = host_new("load-readback");
	const struct hb_series *s;
	struct hb_window *w;
	struct hb_host *x;

	for (u64 r = 0; r < 2; r++) {
		for (u64 i = 0; i < TOKENS; i++)
			host_step(&h, r * REQUEST + i * 10 * MS);
		awaits(&h, h.main, r * REQUEST + 51 * MS, (r + 1) * REQUEST + 100 * US,
		       (r + 1) * REQUEST + 150 * US);
	}
	host_step(&h, 2 * REQUEST);
	w = host_open(&h);
	x = host_build(w);
	s = series(x, 100);
	assert_int_equal(s->source, HB_STEPS_READBACK);
	assert_int_equal(s->n, 2 * TOKENS);
	assert_int_equal(s->step[2].begin, AT(29 * MS));
	assert_int_equal(s->step[2].end, AT(39 * MS));
	assert_int_equal(s->step[3].begin, AT(39 * MS));
	assert_int_equal(s->step[3].end, AT(51 * MS));
	assert_int_equal(s->step[4].begin,
			 AT(REQUEST + 100 * US)); /* it had no CPU at first: that is its own */
	assert_int_equal(s->step[4].end, AT(REQUEST + 9 * MS));
	assert_int_equal(s->step[4].ready_ns, 50 * US);
	assert_int_equal(s->step[4].sleep_ns, 0);
	assert_int_equal(s->step[4].pause_ns, 400 * US);
	assert_int_equal(s->step[4].n_calls, 4); /* counted once, though it was found with others first */
	assert_int_equal(s->p50, 10 * MS);
	assert_int_equal(s->max, 12 * MS);
	assert_int_equal(s->no_load_ns, 2 * (REQUEST - 51 * MS + 100 * US));
	assert_int_equal(s->sum + s->no_load_ns, 2 * REQUEST); /* from the first token to the last one */
	assert_int_equal(s->outside_ns, WALL - s->sum);
	assert_int_equal(hb_series__find(s, AT(200 * MS)), HB_NONE);
	assert_tiled(x, s, s->no_load_ns);
	hb_host__free(x);
	rig_close(&h.r, w);
}

/* While a step's work is under way a request is there: a wait for data is the step's own, whatever it is. */
static void inside_of_a_step(void **state)
{
	struct host_rig h = host_new("load-inside");
	const struct hb_series *s;
	struct hb_window *w;
	struct hb_host *x;

	for (u64 i = 0; i < 8; i++) {
		host_step(&h, i * 10 * MS);
		awaits(&h, h.main, i * 10 * MS + 600 * US, i * 10 * MS + 900 * US, i * 10 * MS + 900 * US);
	}
	w = host_open(&h);
	x = host_build(w);
	s = series(x, 100);
	assert_int_equal(s->n, 7);
	assert_int_equal(s->min, 10 * MS);
	assert_int_equal(s->max, 10 * MS);
	assert_int_equal(s->step[3].sleep_ns, 300 * US);
	assert_int_equal(s->no_load_ns, 300 * US); /* that before the first step */
	assert_tiled(x, s, 8 * 300 * US);
	hb_host__free(x);
	rig_close(&h.r, w);
}

/* A launch begins its step, so the wait is at its end; and a client that sends twice, once for nothing,
 * leaves the time between to nobody. */
static void by_graph(void **state)
{
	struct host_rig h = host_new("load-graph");
	const struct hb_series *s;
	struct hb_window *w;
	struct hb_host *x;

	for (u64 i = 0; i < 8; i++) {
		u64 t = i * 50 * MS;

		CALL(&h, h.main, Q_GRAPH, t, t + 10 * US, .handle = 5, .stream = 1, .stack = ST_DECODE);
		awaits(&h, h.main, t + 10 * MS, t + 20 * MS, t + 20 * MS);
		awaits(&h, h.main, t + 21 * MS, t + 49 * MS, t + 49 * MS);
	}
	w = host_open(&h);
	x = host_build(w);
	s = series(x, 100);
	assert_int_equal(s->source, HB_STEPS_GRAPH);
	assert_int_equal(s->n, 7);
	assert_int_equal(s->step[0].begin, AT(0));
	assert_int_equal(s->step[0].end, AT(10 * MS));
	assert_int_equal(s->step[1].begin, AT(49 * MS));
	assert_int_equal(s->step[1].end, AT(60 * MS));
	assert_int_equal(s->p50, 11 * MS);
	assert_int_equal(s->no_load_ns, 8 * 38 * MS); /* after the last launch it waits, too */
	assert_tiled(x, s, s->no_load_ns);
	hb_host__free(x);
	rig_close(&h.r, w);
}

/* A step function says itself where a step is: the same waits between its calls change nothing. */
static void by_function(void **state)
{
	struct host_rig h = host_new("load-function");
	struct hb_rec_py_call p = {.flags = HB_PYCALL_TIMED, .dur = 30 * MS};
	const struct hb_series *s;
	struct hb_window *w;
	struct hb_host *x;

	p.func = rig_loc(&h.r, "LLMEngine.step", "m.py", 0, HB_LANG_PYTHON);
	for (u64 i = 0; i < 5; i++) {
		awaits(&h, h.main, i * 40 * MS + 1 * MS, i * 40 * MS + 20 * MS, i * 40 * MS + 20 * MS);
		host_step(&h, i * 40 * MS + 20 * MS);
		rig_put(&h.r, i * 40 * MS + 30 * MS, h.main, HB_TYPE_py_call, &p);
	}
	w = host_open(&h);
	x = host_build(w);
	s = series(x, 100);
	assert_int_equal(s->source, HB_STEPS_PYCALL);
	assert_int_equal(s->n, 5);
	assert_int_equal(s->p50, 30 * MS);
	assert_int_equal(s->no_load_ns, 0); /* all of it lies inside of steps */
	assert_tiled(x, s, 5 * 19 * MS);
	hb_host__free(x);
	rig_close(&h.r, w);
}

/* The engine waits for its front end, and that one for the client: no load for both. */
static void behind_another_thread(void **state)
{
	struct host_rig h = host_new("load-front");
	const struct hb_series *s;
	struct hb_window *w;
	struct hb_host *x;

	for (u64 i = 0; i < 6; i++) {
		u64 t = i * 100 * MS;

		awaits(&h, h.helper, t - (i ? 85 * MS : 0), t + 5 * MS, t + 5 * MS);
		SLEEP(&h, h.main, t - (i ? 90 * MS : 0), t + 8 * MS, t + 8 * MS, 101, .chan = 5,
		      .chankind = HB_CHAN_FUTEX, .sysno = SYS_FUTEX);
		host_step(&h, t + 8 * MS);
	}
	w = host_open(&h);
	x = host_build(w);
	s = series(x, 100);
	assert_int_equal(s->n, 5);
	/* the front end has the request at 5 ms, the engine at 8 ms, its token at 17 ms */
	assert_int_equal(s->step[1].begin, AT(205 * MS));
	assert_int_equal(s->step[1].end, AT(217 * MS));
	assert_int_equal(s->no_load_ns, 5 * MS + 5 * 88 * MS);
	assert_tiled(x, s, s->no_load_ns);
	hb_host__free(x);
	rig_close(&h.r, w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(by_read_back),
	    cmocka_unit_test(inside_of_a_step),
	    cmocka_unit_test(by_graph),
	    cmocka_unit_test(by_function),
	    cmocka_unit_test(behind_another_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
