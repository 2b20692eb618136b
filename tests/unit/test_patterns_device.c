/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Patterns that device records tell: each fires on what is planted, and is ruled out on its twin. */
#include "device_rig.h"

/* Kernels of `length`, one every `every`, each launched 10 us ahead of its begin by a call of `span`. */
static void kernels(struct pat *p, const char *name, u64 every, u64 length, u64 span)
{
	for (u64 t = MS; t + every < WALL; t += every)
		launch(p, Q_TIMED, t, span,
		       (struct op){.begin = t + span + US, .length = length, .name = name});
	pat_run(p);
}

static void host_bound(void **state)
{
	struct pat p = device_new("host-bound"), q = device_new("device-bound");
	const struct hb_finding *x;

	kernels(&p, "gemm", 200 * US, 100 * US, 5 * US); /* 100 us of every 200 the device has nothing */
	x = pat_first(&p, "P01", WALL * 95 / 200);
	assert_int_equal(x->exposed_min, x->exposed_max);
	assert_int_equal(x->device, 0);
	pat_silent(&p, "P08");
	pat_end(&p);
	kernels(&q, "gemm", 200 * US, 198 * US, 5 * US);
	pat_silent(&q, "P01");
	pat_end(&q);
}

/* The symptom is an effect of the structure. */
static void storm(void **state)
{
	struct pat p = device_new("storm"), q = device_new("few");
	const struct hb_finding *x;

	kernels(&p, "tiny", 60 * US, 3 * US, 6 * US);
	x = pat_first(&p, "P08", WALL * 57 / 60); /* a graph makes them one behind the other */
	assert_ptr_equal(pat_get(&p, "P01")->cause, x);
	pat_end(&p);
	kernels(&q, "tiny", 25 * MS, 3 * US, 6 * US);
	pat_silent(&q, "P08");
	assert_string_equal(pat_ruled_out(&q, "P08")->measure.param->key, "launches");
	pat_end(&q);
}

/* Work that was launched at once and begins late: the device was busy with what is not in the window. */
static void activity_missing(void **state)
{
	struct pat p = device_new("missing");

	for (u64 t = MS; t + 10 * MS < WALL; t += 10 * MS)
		launch(&p, Q_TIMED, t, 5 * US,
		       (struct op){.begin = t + 9 * MS, .length = 500 * US, .name = "gemm"});
	pat_run(&p);
	assert_null(hb_findings__at(p.f, 0));
	assert_non_null(strstr(pat_not_checked(&p, "P01")->text, "device activity missing"));
	pat_end(&p);
}

/* The path leads over the device to another thread, whose launch came late: there is no sleep that it came
 * through. */
static void launched_by_another(void **state)
{
	struct pat p = device_new("another");
	struct hb_seg seen = {.via_thread = HB_NONE};
	const struct hb_seg *s;
	u32 n;

	for (u64 t = MS; t + 10 * MS < WALL; t += 10 * MS) {
		for (u64 i = 0; i < 4; i++)
			launch(&p, Q_TIMED, t + i * 20 * US, 5 * US,
			       (struct op){
				   .begin = t + i * 20 * US + 10 * US, .length = 9 * US, .name = "gemm"});
		launch(
		    &p, Q_TIMED, t + 5 * MS, 5 * US,
		    (struct op){
			.begin = t + 5 * MS + 10 * US, .length = 2 * MS, .name = "late", .task = p.h.helper});
		PCALL(&p, p.h.main, Q_STREAM_SYNC, t + 100 * US, t + 7 * MS + 20 * US);
	}
	pat_run(&p);
	s = hb_path__segs(hb_host__path(p.host), 100, &n);
	for (u32 i = 0; i < n; i++)
		if (s[i].via_thread != HB_NONE && s[i].via == HB_NONE)
			seen = s[i];
	assert_int_not_equal(seen.via_thread, HB_NONE);
	assert_int_not_equal(seen.thread, seen.via_thread);
	pat_end(&p);
}

/* ---- copies ---- */

static void copies(struct pat *p, u8 dst)
{
	for (u64 t = MS; t + 10 * MS < WALL; t += 10 * MS) {
		launch(p, Q_TIMED, t, 5 * US,
		       (struct op){.begin = t + 10 * US, .length = 4 * MS, .name = "gemm"});
		launch(p, Q_D2H, t + 10 * US, dst == HB_MEMKIND_PAGEABLE ? 8 * MS : 5 * US,
		       (struct op){.begin = t + 4100 * US,
				   .length = 3900 * US,
				   .name = "Memcpy",
				   .kind = HB_DEVKIND_MEMCPY,
				   .src = HB_MEMKIND_DEVICE,
				   .dst = dst,
				   .bytes = 1 << 20});
	}
	pat_run(p);
}

/* Waiting for the kernel before it is no loss: the copy itself is, beside which nothing is computed. */
static void pageable(void **state)
{
	struct pat p = device_new("pageable"), q = device_new("pinned");
	const struct hb_finding *x;

	copies(&p, HB_MEMKIND_PAGEABLE);
	x = pat_first(&p, "P03", 99 * 4 * MS);
	assert_int_equal(x->exposed_min, x->exposed_max);
	assert_int_equal(x->confidence, HB_CONFIDENCE_HIGH);
	pat_end(&p);
	copies(&q, HB_MEMKIND_PINNED);
	pat_silent(&q, "P03");
	pat_end(&q);
}

/* ---- P05 ---- */

struct beside {
	bool told,
	    main;   /* to wait for an event; and then more work on the default stream is launched first */
	u64 length; /* of the work beside it */
	u32 probe;
};

static void two_streams(struct pat *p, struct beside b)
{
	for (u64 t = MS; t + 10 * MS < WALL; t += 10 * MS) {
		launch(p, Q_TIMED, t, 5 * US,
		       (struct op){.begin = t + 10 * US, .length = 4 * MS, .name = "gemm"});
		if (b.told)
			PCALL(p, p->h.main, Q_WAIT_EVENT, t + 15 * US, t + 16 * US, .handle = 3);
		if (b.main)
			launch(p, Q_TIMED, t + 17 * US, 2 * US,
			       (struct op){.begin = t + 4011 * US, .length = MS, .name = "gemm"});
		launch(
		    p, b.probe ? b.probe : Q_TIMED, t + 20 * US, 5 * US,
		    (struct op){.begin = t + 4015 * US, .length = b.length, .name = "other", .stream = 13});
	}
	pat_run(p);
}

static void default_stream(void **state)
{
	struct pat p = device_new("default"), q = device_new("told"), r = device_new("told-before"),
		   s = device_new("in-a-graph"), t = device_new("short");

	two_streams(&p, (struct beside){.length = 5 * MS});
	assert_non_null(pat_get(&p, "P05"));
	assert_int_equal(pat_get(&p, "P05")->confidence, HB_CONFIDENCE_LOW);
	assert_int_equal(pat_get(&p, "P05")->count, 99);
	/* launched at 25 us, it began at 4015 */
	assert_int_equal(pat_get(&p, "P05")->device_ns, 99 * (4015 - 25) * US);
	pat_end(&p);
	two_streams(&q, (struct beside){.length = 5 * MS, .told = true});
	pat_silent(&q, "P05");
	pat_end(&q);
	two_streams(&r, (struct beside){.length = 5 * MS, .told = true, .main = true});
	pat_silent(&r, "P05");
	pat_end(&r);
	two_streams(&s, (struct beside){.length = 5 * MS, .probe = Q_GRAPH});
	pat_silent(&s, "P05");
	pat_end(&s);
	two_streams(&t,
		    (struct beside){.length = MS}); /* beside each other no more than its own time is saved */
	assert_int_equal(pat_get(&t, "P05")->device_ns, 99 * MS);
	pat_end(&t);
}

/* ---- P36 ---- */

static void communication(struct pat *p, bool beside)
{
	for (u64 t = MS; t + 10 * MS < WALL; t += 10 * MS) {
		launch(p, Q_TIMED, t, 5 * US,
		       (struct op){.begin = t + 10 * US, .length = beside ? 9 * MS : 6 * MS, .name = "gemm"});
		launch(p, Q_TIMED, t + 10 * US, 5 * US,
		       (struct op){.begin = t + (beside ? 3 : 6) * MS + 20 * US,
				   .length = 3 * MS,
				   .name = "ncclDevKernel_AllReduce_Sum_bf16",
				   .stream = 20});
	}
	pat_run(p);
}

static void exposed_communication(void **state)
{
	struct pat p = device_new("comm"), q = device_new("comm-beside");
	const struct hb_finding *x;

	communication(&p, false);
	x = pat_get(&p, "P36");
	assert_non_null(x);
	assert_true(x->device_ns > 99 * 2900 * US && x->device_ns <= 99 * 3 * MS);
	pat_end(&p);
	communication(&q, true);
	pat_silent(&q, "P36");
	pat_end(&q);
}

/* ---- P40b, P40d, P40e ---- */

static void mix(struct pat *p, const char *name, u64 length, u32 blocks)
{
	hb_window_writer__meta(p->h.r.w, "device_0_sms", "132");
	for (u64 t = MS; t + 10 * MS < WALL; t += 10 * MS) {
		launch(p, Q_TIMED, t, 5 * US,
		       (struct op){.begin = t + 10 * US, .length = 5 * MS, .name = "gemm"});
		launch(p, Q_TIMED, t + 10 * US, 5 * US,
		       (struct op){.begin = t + 5020 * US, .length = length, .name = name, .blocks = blocks});
	}
	pat_run(p);
}

static void kinds_of_kernels(void **state)
{
	struct pat p = device_new("cast"), q = device_new("cast-few"), r = device_new("blocks"),
		   s = device_new("sms");
	const struct hb_finding *x;

	mix(&p, "void at::native::vectorized_elementwise_kernel<4>", 4 * MS, 0);
	x = pat_get(&p, "P40d");
	assert_non_null(x);
	assert_int_equal(x->device_ns, 99 * 4 * MS);
	pat_silent(&p, "P40b");
	pat_end(&p);
	mix(&q, "void at::native::vectorized_elementwise_kernel<4>", 500 * US, 0);
	pat_silent(&q, "P40d");
	pat_end(&q);
	mix(&r, "narrow", 4 * MS, 33);
	x = pat_get(&r, "P40b");
	assert_non_null(x);
	assert_int_equal(x->device_ns, 99 * 3 * MS); /* a quarter of the device had blocks */
	pat_silent(&r, "P40d");
	pat_end(&r);
	kernels(&s, "narrow", 200 * US, 190 * US,
		5 * US); /* how many multiprocessors there are is not known */
	assert_string_equal(pat_not_checked(&s, "P40b")->text,
			    "needs device properties (multiprocessors, registers, clocks; traces of NVIDIA "
			    "devices have them)");
	pat_end(&s);
}

/* On a device that waits most of the time nothing is to be gained by shorter kernels. */
static void idle_device_has_no_kernel_findings(void **state)
{
	struct pat p = device_new("idle");

	kernels(&p, "void at::native::elementwise_kernel<4>", 500 * US, 100 * US, 5 * US);
	pat_silent(&p, "P40d");
	assert_string_equal(pat_ruled_out(&p, "P40d")->measure.param->key, "device_busy");
	pat_end(&p);
}

/* ---- P40c ---- */

#define PEAKS "device Test* peak bf16=989 hbm=3.35 sms=132\n"
#define BB    "[\"c10::BFloat16\",\"c10::BFloat16\"]"

/* One product of `shapes` after the other, each of `length`, with 20 us between them. */
static void products(struct pat *p, const char *shapes, u64 length)
{
	struct hb_rec_op o = {.dur = 10 * US, .kind = HB_OPKIND_CPU_OP};

	hb_window_writer__meta(p->h.r.w, "device_0_name", "Test One");
	hb_window_writer__meta(p->h.r.w, "device_0_sms", "132");
	p->peaks_text = PEAKS;
	o.name = hb_window_writer__string(p->h.r.w, "aten::mm");
	o.shapes = hb_window_writer__string(p->h.r.w, shapes);
	o.types = hb_window_writer__string(p->h.r.w, BB);
	for (u64 t = MS; t + MS < WALL; t += length + 20 * US) {
		launch(p, Q_TIMED, t, 5 * US,
		       (struct op){.begin = t + 10 * US, .length = length, .name = "gemm_kernel"});
		pat_put(p, t + 8 * US, p->h.main, HB_TYPE_op, &o);
	}
	pat_run(p);
}

static const char *missed(const struct pat *p, const char *id)
{
	pat_silent(p, id);
	return pat_ruled_out(p, id)->measure.param ? pat_ruled_out(p, id)->measure.param->key : "";
}

static void skinny_products(void **state)
{
	struct pat p = device_new("skinny"), q = device_new("good"), r = device_new("wide"),
		   s = device_new("small"), t = device_new("odd"), u = device_new("heavy");
	const struct hb_finding *x;

	/* 32 MiB of weights are 10.0 us of memory; in 100 us that is a tenth of its speed. */
	products(&p, "[[8,4096],[4096,4096]]", 100 * US);
	x = pat_get(&p, "P40c");
	assert_non_null(x);
	assert_int_equal(x->count, 998 * MS / (120 * US) + 1);
	assert_true(x->device_ns / x->count > 89 * US && x->device_ns / x->count < 91 * US);
	assert_non_null(
	    strstr(x->what, "a product of 8 rows by 4096 x 4096 reads its 32.0 MiB of weights at 10 %"));
	pat_silent(&p, "P40a"); /* told once */
	pat_end(&p);
	products(&q, "[[8,16384],[16384,16384]]", 250 * US); /* two thirds of the memory's speed */
	assert_string_equal(missed(&q, "P40c"), "speed");
	pat_end(&q);
	products(&r, "[[64,4096],[4096,4096]]", 100 * US);
	assert_string_equal(missed(&r, "P40c"), "rows");
	assert_non_null(pat_get(&r, "P40a"));
	pat_end(&r);
	products(&s, "[[8,1024],[1024,1024]]", 100 * US);
	assert_string_equal(missed(&s, "P40c"), "weights");
	pat_end(&s);
	products(&t, "[[64,4096],[4096,4099]]", 100 * US); /* many rows, but sizes for no vector load */
	x = pat_get(&t, "P40c");
	assert_non_null(x);
	assert_non_null(strstr(x->what, "no multiples of 8"));
	pat_end(&t);
	products(&u, "[[4096,4096],[4096,4099]]", 1000 * US); /* arithmetic limits it */
	assert_string_equal(missed(&u, "P40c"), "");
	pat_end(&u);
}

static void tiny_copies(struct pat *p, u32 n, u64 bytes)
{
	for (u64 i = 0; i < STEPS; i++) {
		u64 t = i * STEP, each = 3800 * US / n;

		for (u64 k = 0; k < n; k++)
			PCALL(p, p->h.main, Q_H2D, t + 100 * US + k * each, t + 105 * US + k * each,
			      .bytes = bytes, .kind = 1);
		pat_step(p, t, 10);
	}
	pat_run(p);
}

static void shredded_copies(void **state)
{
	struct pat p = pat_new("copies"), q = pat_new("copies-large");

	tiny_copies(&p, 150, 4096);
	assert_non_null(pat_get(&p, "P40e"));
	assert_int_equal(pat_get(&p, "P40e")->count, STEPS * 150);
	pat_end(&p);
	tiny_copies(&q, 150, 1 << 20);
	pat_silent(&q, "P40e");
	pat_end(&q);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(host_bound),
	    cmocka_unit_test(storm),
	    cmocka_unit_test(activity_missing),
	    cmocka_unit_test(launched_by_another),
	    cmocka_unit_test(pageable),
	    cmocka_unit_test(default_stream),
	    cmocka_unit_test(exposed_communication),
	    cmocka_unit_test(kinds_of_kernels),
	    cmocka_unit_test(idle_device_has_no_kernel_findings),
	    cmocka_unit_test(shredded_copies),
	    cmocka_unit_test(skinny_products),
	};

	return cmocka_run_group_tests_name("patterns: device records", tests, NULL, NULL);
}
