/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Patterns in windows as profilers' traces give them: calls that do not say what they copied, devices that
 * do.
 */
#include "device_rig.h"

enum { Q_COPY = 40 };
enum { ST_TOLIST = 33 };

static struct pat imported(const char *name)
{
	struct pat p = device_new(name);

	rig_probe(&p.h.r, Q_COPY, "cudaMemcpyAsync", "cuda-runtime", HB_CLASS_COPY, 1, HB_HANDLE_HANDLE, 1);
	return p;
}

struct told { /* what the device says of a copy */
	u64 begin, length, bytes;
	u8 copy;
	bool not ; /* it has no record */
};

/* The call says only that it was one. */
static void copy(struct pat *p, u64 at, u64 span, u32 stack, struct told c)
{
	static u64 number = 1000000;
	struct hb_rec_device d = {.dur = c.length,
				  .stream = 7,
				  .correlation = ++number,
				  .bytes = c.bytes,
				  .name = hb_window_writer__string(p->h.r.w, "Memcpy"),
				  .context = 1,
				  .kind = HB_DEVKIND_MEMCPY,
				  .srcmem = HB_MEMKIND_PINNED,
				  .dstmem = HB_MEMKIND_PINNED,
				  .copy = c.copy};

	PCALL(p, p->h.main, Q_COPY, at, at + span, .correlation = number, .stack = stack,
	      .flags = HB_AFLAG_NO_STREAM);
	if (!c.not )
		pat_put(p, c.begin + c.length, p->h.main, HB_TYPE_device, &d);
}

/* ---- P02 ---- */

/* A kernel of 3 ms, its result read back, a wait until it is there; 2 ms later the rest of the step, 4 ms. */
static void read_back(struct pat *p, struct told c)
{
	pat_stack(p, 100, ST_TOLIST, "/srv/runner.py", "execute_model", "Tensor.tolist", NULL);
	for (u64 i = 0; i < STEPS; i++) {
		u64 t = i * STEP;

		launch(p, Q_TIMED, t + 100 * US, 5 * US,
		       (struct op){.begin = t + 110 * US, .length = 3 * MS, .name = "gemm"});
		c.begin = t + 3111 * US;
		c.length = 2 * US;
		copy(p, t + 110 * US, 6 * US, ST_TOLIST, c);
		PCALL(p, p->h.main, Q_STREAM_SYNC, t + 117 * US, t + 3115 * US, .stack = ST_TOLIST);
		launch(p, Q_TIMED, t + 5115 * US, 5 * US,
		       (struct op){.begin = t + 5125 * US, .length = 4 * MS, .name = "gemm"});
		PCALL(p, p->h.main, Q_EVENT_SYNC, t + 5200 * US, t + STEP, .handle = 5);
	}
	pat_run(p);
}

static void size_of_a_read_back(void **state)
{
	struct pat p = imported("import-item"), q = imported("import-large"), r = imported("import-up"),
		   s = imported("import-blind");

	read_back(&p, (struct told){.bytes = 8, .copy = HB_COPY_DTOH});
	pat_first(&p, "P02", STEPS * 2 * MS); /* from the return of the wait to the next launch */
	assert_null(pat_get(&p, "P04"));
	pat_end(&p);
	read_back(&q, (struct told){.bytes = 1 << 20, .copy = HB_COPY_DTOH});
	pat_silent(&q, "P02");
	assert_non_null(pat_get(&q, "P04")); /* a wait like others */
	pat_end(&q);
	read_back(&r, (struct told){.bytes = 8, .copy = HB_COPY_HTOD});
	pat_silent(&r, "P02");
	pat_end(&r);
	read_back(&s, (struct told){.not = true});
	assert_null(pat_get(&s, "P02"));
	assert_int_equal(pat_not_checked(&s, "P02")->needs, HB_NEED_COPY_SIZES);
	pat_end(&s);
}

/* A copy to pageable memory waits itself, and the wait that its code makes after it is the same read-back: it
 * ends its step, and is no wait in the middle of the next one. */
static void copy_that_waits(void **state)
{
	struct pat p = imported("import-pageable");
	const struct hb_series *s;

	for (u64 i = 0; i < STEPS; i++) {
		u64 t = i * STEP;

		launch(&p, Q_TIMED, t + 100 * US, 5 * US,
		       (struct op){.begin = t + 110 * US, .length = 5 * MS, .name = "gemm"});
		copy(&p, t + 110 * US, 5010 * US, ST_DECODE,
		     (struct told){
			 .begin = t + 5111 * US, .length = 2 * US, .bytes = 64, .copy = HB_COPY_DTOH});
		PCALL(&p, p.h.main, Q_STREAM_SYNC, t + 5121 * US, t + 5131 * US, .stack = ST_DECODE);
	}
	pat_run(&p);
	s = hb_steps__of_pid(hb_host__steps(p.host), 100);
	assert_int_equal(s->source, HB_STEPS_READBACK);
	assert_int_equal(s->step[0].begin, AT(5131 * US));
	assert_null(pat_get(&p, "P04"));
	pat_end(&p);
}

/* ---- P40e ---- */

static void copies(struct pat *p, struct told c)
{
	for (u64 i = 0; i < STEPS; i++) {
		for (u64 k = 0; k < 120; k++) {
			u64 t = i * STEP + 100 * US + k * 30 * US;

			c.begin = t + 6 * US;
			c.length = 2 * US;
			copy(p, t, 5 * US, 0, c);
		}
		launch(p, Q_TIMED, i * STEP + 4 * MS, 5 * US,
		       (struct op){.begin = i * STEP + 4010 * US, .length = 5 * MS, .name = "gemm"});
		PCALL(p, p->h.main, Q_STREAM_SYNC, i * STEP + 4100 * US, (i + 1) * STEP, .stack = ST_DECODE);
	}
	pat_run(p);
}

static void size_of_many_copies(void **state)
{
	struct pat p = imported("import-tiny"), q = imported("import-whole"), r = imported("import-unknown");

	copies(&p, (struct told){.bytes = 4096, .copy = HB_COPY_HTOD});
	assert_non_null(strstr(pat_get(&p, "P40e")->what, "120 copies a step, 4.0 KiB on average"));
	pat_end(&p);
	copies(&q, (struct told){.bytes = 4 << 20, .copy = HB_COPY_HTOD});
	pat_silent(&q, "P40e");
	assert_int_equal(pat_ruled_out(&q, "P40e")->measure.value, 4 << 20);
	pat_end(&q);
	copies(&r, (struct told){.not = true});
	assert_null(pat_get(&r, "P40e"));
	assert_int_equal(pat_not_checked(&r, "P40e")->needs, HB_NEED_COPY_SIZES);
	pat_end(&r);
}

/* ---- P09 ---- */

struct mixed { /* what a step without a graph uploads, and what the engine says that it holds */
	struct told up;
	const char *says;
};

/* An annotation around what the main thread does. */
static void says(struct pat *p, u64 begin, u64 end, const char *what)
{
	struct hb_rec_op op = {.dur = end - begin,
			       .kind = HB_OPKIND_ANNOTATION,
			       .name = hb_window_writer__string(p->h.r.w, what)};

	pat_put(p, end, p->h.main, HB_TYPE_op, &op);
}

/* Every third of 300 steps launches 100 kernels of 5 us, one every 15 us, and lasts 2 ms; the others replay a
 * graph in 1.2 ms. */
static void mixed(struct pat *p, struct mixed m)
{
	for (u64 i = 0, t = 0; i < 300; i++) {
		bool eager = i % 3 == 0;
		u64 length = eager ? 2 * MS : 1200 * US;
		struct told up = {.begin = t + 13 * US, .length = 2 * US, .bytes = 64, .copy = HB_COPY_HTOD};

		if (eager && m.up.bytes)
			up.bytes = m.up.bytes;
		up.not = m.up.not ;
		copy(p, t + 10 * US, 2 * US, 0, up);
		for (u64 k = 0; eager && k < 100; k++)
			launch(p, Q_TIMED, t + 100 * US + k * 15 * US, 5 * US,
			       (struct op){
				   .begin = t + 106 * US + k * 15 * US, .length = 5 * US, .name = "gemm"});
		if (!eager)
			launch(p, Q_GRAPH, t + 100 * US, 5 * US,
			       (struct op){.begin = t + 106 * US, .length = MS, .name = "gemm"});
		PCALL(p, p->h.main, Q_STREAM_SYNC, t + length - 400 * US, t + length, .stack = ST_DECODE);
		if (m.says)
			says(p, t + 5 * US, t + length - 5 * US,
			     eager ? m.says : "execute_context_0(0)_generation_8(8)");
		t += length;
	}
	pat_run(p);
}

static void graph_missed(void **state)
{
	static const char prefill[] = "execute_context_1(4096)_generation_0(0)",
			  decode[] = "execute_context_0(0)_generation_64(64)";
	struct pat p = imported("import-miss"), q = imported("import-prefill"), r = imported("import-says"),
		   s = imported("import-large"), t = imported("import-unsized");
	const struct hb_finding *x;

	/* From the upload at 10 us to the end of the last launch at 1590 us the device works from 13 to 15
	 * us, and 5 of every 15 us from 106 us on: 3 + 91 + 98 x 10 + 9 us idle. The step is 0.8 ms longer.
	 */
	mixed(&p, (struct mixed){.says = NULL});
	x = pat_get(&p, "P09");
	assert_non_null(x);
	assert_in_range(x->count, 99, 100); /* the window's first step has no begin */
	assert_int_equal(x->exposed_likely, x->count * 1083 * US);
	assert_int_equal(x->exposed_max, x->exposed_min);
	assert_int_equal(x->delay_ns, x->exposed_likely);
	pat_end(&p);
	mixed(&q, (struct mixed){.up.bytes = 40000}); /* a prefill, by its upload */
	pat_silent(&q, "P09");
	pat_end(&q);
	mixed(&r, (struct mixed){.says = prefill}); /* .. by what the engine says */
	pat_silent(&r, "P09");
	pat_end(&r);
	mixed(&s, (struct mixed){.up.bytes = 40000,
				 .says = decode}); /* a batch that is too large for any graph */
	assert_non_null(pat_get(&s, "P09"));
	assert_int_equal(pat_get(&s, "P09")->confidence, HB_CONFIDENCE_HIGH);
	pat_end(&s);
	mixed(&t, (struct mixed){.up.not = true});
	assert_null(pat_get(&t, "P09"));
	assert_int_equal(pat_not_checked(&t, "P09")->needs, HB_NEED_COPY_SIZES);
	pat_end(&t);
}

/* ---- P06, P10 ---- */

/* `n` steps, of which the first `until` allocate `early` times for 350 us while the device is idle, the
 * others `late` times. A profiler does not tell when the process started. */
static struct pat allocating(const char *name, u64 n, u64 until, u64 early, u64 late)
{
	struct pat p = imported(name);

	for (u64 i = 0; i < n; i++) {
		pat_step(&p, i * STEP, 10);
		for (u64 k = 0; k < (i < until ? early : late); k++)
			PCALL(&p, p.h.main, Q_ALLOC, i * STEP + 100 * US + k * 380 * US,
			      i * STEP + 450 * US + k * 380 * US);
	}
	pat_run(&p);
	return p;
}

static void start_is_not_known(void **state)
{
	struct pat p = allocating("import-always", 60, 0, 0, 1), q = allocating("import-first", 60, 25, 5, 0),
		   r = allocating("import-less", 60, 25, 10, 1), s = allocating("import-short", 12, 0, 0, 1),
		   t = allocating("import-never", 12, 0, 0, 0);
	const struct hb_finding *x = pat_first(&p, "P06", 60 * 350 * US);

	assert_int_equal(x->count, 60); /* as before, so after */
	assert_int_equal(x->confidence, HB_CONFIDENCE_MEDIUM);
	assert_non_null(strstr(x->what, "the longest: cuMemAlloc")); /* of a size that is not known */
	assert_null(strstr(x->what, " of 0"));
	assert_non_null(strstr(pat_not_checked(&p, "P07")->text, "results of allocations"));
	pat_silent(&q, "P06"); /* a warm-up */
	x = pat_get(&r, "P06");
	assert_non_null(x);
	assert_in_range(x->count, 29, 31); /* of what is beyond it, the second half */
	assert_null(pat_get(&s, "P06"));
	assert_non_null(strstr(pat_not_checked(&s, "P06")->text, "11 steps"));
	pat_silent(&t, "P06"); /* there is nothing to look at */
	pat_end(&p);
	pat_end(&q);
	pat_end(&r);
	pat_end(&s);
	pat_end(&t);
}

/* ---- P05 ---- */

/* A kernel of another stream always begins when that of the default stream ends, and no call that makes a
 * stream wait is in the window. A profiler would have it; a recording has to ask for it. */
static void no_stream_is_told(void **state)
{
	for (int profiler = 0; profiler < 2; profiler++) {
		struct pat p = pat_new("import-streams");

		rig_probe(&p.h.r, Q_TIMED, "cudaLaunchKernel", "cuda-runtime", HB_CLASS_LAUNCH, 1,
			  HB_HANDLE_FUNCTION, 1);
		if (profiler)
			hb_window_writer__meta(p.h.r.w, "profile", "imported");
		for (u64 t = MS; t + 10 * MS < WALL; t += 10 * MS) {
			launch(&p, Q_TIMED, t, 5 * US,
			       (struct op){.begin = t + 10 * US, .length = 4 * MS, .name = "gemm"});
			launch(
			    &p, Q_TIMED, t + 20 * US, 5 * US,
			    (struct op){.begin = t + 4015 * US, .length = MS, .name = "other", .stream = 13});
		}
		pat_run(&p);
		if (profiler)
			assert_int_equal(pat_get(&p, "P05")->device_ns, 99 * MS);
		else
			assert_int_equal(pat_not_checked(&p, "P05")->needs, HB_NEED_STREAM_FLAGS);
		pat_end(&p);
	}
}

/* Several copies by one call come to one size; of a call that says itself what it copied nothing changes. */
static void what_calls_are_told(void **state)
{
	struct pat p = imported("import-calls");
	const struct hb_tl_call *c;
	struct hb_rec_device d = {.dur = US,
				  .stream = 7,
				  .correlation = 5,
				  .bytes = 100,
				  .kind = HB_DEVKIND_MEMCPY,
				  .copy = HB_COPY_HTOD};
	u32 n;

	PCALL(&p, p.h.main, Q_COPY, 10 * US, 15 * US, .correlation = 5);
	pat_put(&p, 20 * US, p.h.main, HB_TYPE_device, &d);
	d.bytes = 300;
	pat_put(&p, 22 * US, p.h.main, HB_TYPE_device, &d);
	d.correlation = 6;
	PCALL(&p, p.h.main, Q_COPY, 30 * US, 35 * US, .correlation = 6, .bytes = 7, .kind = 2);
	pat_put(&p, 40 * US, p.h.main, HB_TYPE_device, &d);
	pat_run(&p);
	c = hb_timeline__calls(hb_host__timeline(p.host), 0, &n);
	assert_int_equal(n, 2);
	assert_int_equal(c[0].bytes, 400);
	assert_int_equal(c[0].copy, HB_COPY_HTOD);
	assert_int_equal(c[1].bytes, 7);
	assert_int_equal(c[1].copy, HB_COPY_DTOH);
	pat_end(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(size_of_a_read_back), cmocka_unit_test(copy_that_waits),
	    cmocka_unit_test(size_of_many_copies), cmocka_unit_test(graph_missed),
	    cmocka_unit_test(start_is_not_known),  cmocka_unit_test(no_stream_is_told),
	    cmocka_unit_test(what_calls_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
