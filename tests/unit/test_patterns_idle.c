/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Idle time of devices by what the host did: launches one by one, work queued in steps, functions that ran or
 * waited, several devices, traces that are longer than the work in them. */
#include "device_rig.h"

#include "analysis/model/doing.h"

static u32 place(struct pat *p, const char *func, const char *file)
{
	struct hb_loc l = {.func = hb_window_writer__string(p->h.r.w, func),
			   .file = hb_window_writer__string(p->h.r.w, file),
			   .line = 5,
			   .lang = HB_LANG_PYTHON};

	return hb_window_writer__loc(p->h.r.w, &l);
}

static void python(struct pat *p, u32 loc, u64 begin, u64 end)
{
	struct hb_rec_py_call c = {
	    .dur = end - begin, .func = loc, .end = HB_PYEND_RETURN, .flags = HB_PYCALL_TIMED};

	pat_put(p, end, p->h.main, HB_TYPE_py_call, &c);
}

/* 20 kernels of 200 us, launched one each 6 us: the device works from 10 us to 4010 us after t. */
static void queued_step(struct pat *p, u64 t)
{
	for (u64 i = 0; i < 20; i++)
		launch(p, Q_TIMED, t + i * 6 * US, 5 * US,
		       (struct op){.begin = t + 10 * US + i * 200 * US, .length = 200 * US, .name = "gemm"});
}

/* Between two steps the thread is in a function for the 5990 us that the device waits for the next launch. */
static void queued(struct pat *p, const char *func, const char *file)
{
	u32 loc = place(p, func, file), outer = place(p, "loop", "/x/engine.py");

	for (u64 i = 0; i < 99; i++) {
		u64 t = MS + i * STEP;

		queued_step(p, t);
		python(p, loc, t + 4000 * US, t + STEP);
		python(p, outer, t, t + STEP);
	}
	pat_run(p);
}

/* Work queued inside of a step makes the queue long at most launches, not at the one that ends a gap. */
static void queue_inside_a_step(void **state)
{
	struct pat p = device_new("idle-queued");
	const struct hb_finding *x;

	queued(&p, "schedule", "/x/scheduler.py");
	x = pat_first(&p, "P01", 98 * 5990 * US);
	assert_int_equal(x->exposed_min, 98 * 5990 * US);
	assert_int_equal(x->exposed_max, 98 * 5990 * US);
	assert_non_null(strstr(x->what, "it was in schedule (scheduler.py:5) for 100 % of the time"));
	assert_string_equal(hb_window__string(p.w, hb_window__loc(p.w, x->worst[0].ran)->func), "schedule");
	assert_true(x->worst[0].launch);
	pat_end(&p);
}

/* Who waits for a request, or for another thread, does not work: no scheduler event is needed to know that.
 */
static void waits_by_name(void **state)
{
	struct pat p = device_new("idle-waits"), q = device_new("idle-built-in");

	queued(&p, "get", "/usr/lib/python3.11/queue.py");
	pat_silent(&p, "P01");
	assert_string_equal(pat_ruled_out(&p, "P01")->measure.param->key, "on_cpu");
	assert_int_equal(pat_ruled_out(&p, "P01")->measure.value, 0);
	pat_end(&p);
	queued(&q, "<built-in method acquire of _thread.lock object at 0x7f>", "");
	pat_silent(&q, "P01");
	pat_end(&q);
}

/* Without device records whether the host worked is what scheduler events tell. */
static void without_scheduler_events(void **state)
{
	struct pat p = pat_new("idle-host");

	pat_steps(&p);
	pat_run(&p);
	assert_non_null(strstr(pat_not_checked(&p, "P01")->text, "needs scheduler events"));
	assert_non_null(strstr(pat_not_checked(&p, "P01")->text, "likely idle 40 % of the steps"));
	pat_end(&p);
}

/* One device works all the time, the other for 20 us of each step: the process waits for nothing. */
static void second_device(void **state)
{
	struct pat p = device_new("idle-second"), q = device_new("idle-both");

	for (u64 t = MS; t + STEP < WALL; t += STEP) {
		launch(&p, Q_TIMED, t, 5 * US,
		       (struct op){.begin = t + 6 * US, .length = 20 * US, .name = "peer", .device = 1});
		launch(&p, Q_TIMED, t + 6 * US, 5 * US,
		       (struct op){.begin = t + 15 * US, .length = 9900 * US, .name = "gemm"});
		launch(&q, Q_TIMED, t, 5 * US,
		       (struct op){.begin = t + 10 * US, .length = 3000 * US, .name = "peer", .device = 1});
		launch(&q, Q_TIMED, t + 6 * US, 5 * US,
		       (struct op){.begin = t + 15 * US, .length = 4995 * US, .name = "gemm"});
	}
	pat_run(&p);
	pat_silent(&p, "P01");
	pat_end(&p);
	pat_run(&q); /* 5010 us of work, from then on both wait for the next launch to device 1 */
	assert_int_equal(pat_first(&q, "P01", 97 * 4990 * US)->device, 0);
	pat_end(&q);
}

/* Eager decode: a launch each 7 us takes 6, its kernel begins 4.5 us after its begin and lasts 3. Each gap is
 * 4 us long, and all of it the host's. */
static void storm_of_short_gaps(void **state)
{
	struct pat p = device_new("idle-short");
	const struct hb_finding *x;

	for (u64 i = 0; i < 10000; i++)
		launch(&p, Q_TIMED, MS + i * 7 * US, 6 * US,
		       (struct op){.begin = MS + i * 7 * US + 4500, .length = 3 * US, .name = "k"});
	pat_run(&p);
	x = pat_first(&p, "P08", 9999 * 4 * US);
	assert_int_equal(x->exposed_min, 9999 * 4 * US);
	assert_int_equal(x->count, 9999);
	pat_end(&p);
}

/* The same kernels out of a queue: what lies between them no launch makes. */
static void short_gaps_of_a_queue(void **state)
{
	struct pat p = device_new("idle-queue");

	for (u64 i = 0; i < 10000; i++)
		launch(&p, Q_TIMED, MS + i * 2 * US, US,
		       (struct op){.begin = MS + 100 * US + i * 7 * US, .length = 3 * US, .name = "k"});
	pat_run(&p);
	pat_silent(&p, "P08");
	assert_string_equal(pat_ruled_out(&p, "P08")->measure.param->key, "gap_share");
	pat_end(&p);
}

/* A pause in the middle of a storm is not of launching. */
static void pause_in_a_storm(void **state)
{
	struct pat p = device_new("idle-pause");
	const struct hb_finding *x;

	for (u64 i = 0; i < 10000; i++) {
		u64 t = MS + i * 7 * US + (i >= 5000 ? 100 * MS : 0);

		launch(&p, Q_TIMED, t, 6 * US, (struct op){.begin = t + 4500, .length = 3 * US, .name = "k"});
	}
	pat_run(&p);
	x = pat_get(&p, "P08");
	assert_non_null(x);
	assert_int_equal(x->exposed_max, 9998 * 4 * US);
	pat_end(&p);
}

/* ---- the time with work ---- */

/* 10 ms of work in a window of a second: 50 us of idle time are a finding in a trace that is as long as its
 * rows make it, and none in a window whose length somebody asked for. */
static void trace_longer_than_its_work(void **state)
{
	for (int imported = 0; imported < 2; imported++) {
		struct pat p = device_new("idle-long");

		for (u64 t = 500 * MS; t < 510 * MS; t += 200 * US)
			launch(&p, Q_TIMED, t, 5 * US,
			       (struct op){.begin = t + 6 * US, .length = 100 * US, .name = "gemm"});
		if (imported)
			hb_window_writer__meta(p.h.r.w, "imported", "t.json");
		pat_run(&p);
		if (imported)
			pat_first(&p, "P01", 49 * 94 * US);
		else
			pat_silent(&p, "P01");
		/* 50 kernels, the first from 6 us on, the last until 9906 us after 500 ms */
		assert_int_equal(hb_findings__active(p.f),
				 imported ? 9900 * US : hb_model__totals(p.m)->wall_ns);
		pat_end(&p);
	}
}

/* ---- what threads did ---- */

static void doing_is_added_up(void **state)
{
	struct pat p = device_new("idle-doing");
	u32 loop = place(&p, "loop", "/x/engine.py"), build = place(&p, "build", "/x/prep.py");
	u32 get = place(&p, "get", "/x/queue.py"), most, thread;
	u32 poll = place(&p, "<built-in method poll of select.epoll object at 0x1>", "");
	struct hb_doing *d;
	struct hb_doing_sum sum;

	/* an inner one that begins with its outer one comes before it */
	python(&p, build, 10 * MS, 16 * MS);
	python(&p, get, 17 * MS, 19 * MS);
	python(&p, poll, 19500 * US, 20 * MS);
	python(&p, loop, 10 * MS, 20 * MS);
	pat_run(&p);
	thread = hb_timeline__by_tid(hb_host__timeline(p.host), 100);
	d = hb_doing__new(hb_host__timeline(p.host));
	assert_non_null(d);
	assert_int_equal(hb_doing__add(d, thread, AT(9 * MS), AT(22 * MS), &most), 0);
	assert_string_equal(hb_window__string(p.w, hb_window__loc(p.w, most)->func), "build");
	sum = hb_doing__sum(d);
	assert_int_equal(sum.ns, 13 * MS);
	assert_int_equal(sum.known, 10 * MS);
	assert_int_equal(sum.waited, 2500 * US); /* in get, and in poll, which counts for loop */
	assert_int_equal(hb_doing__most(d)->ns, 6 * MS);
	assert_int_equal(hb_doing__add(d, thread, AT(18 * MS), AT(20 * MS), &most), 0);
	/* get 1 ms, loop half a millisecond and that of poll */
	assert_int_equal(hb_doing__sum(d).known, 12 * MS);
	hb_doing__free(d);
	pat_end(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(queue_inside_a_step),	cmocka_unit_test(waits_by_name),
	    cmocka_unit_test(without_scheduler_events), cmocka_unit_test(second_device),
	    cmocka_unit_test(storm_of_short_gaps),	cmocka_unit_test(short_gaps_of_a_queue),
	    cmocka_unit_test(pause_in_a_storm),		cmocka_unit_test(trace_longer_than_its_work),
	    cmocka_unit_test(doing_is_added_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
