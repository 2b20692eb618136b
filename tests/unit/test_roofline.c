/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which kernels belong to which work, on windows made by hand. Times are us after START. */
#include "analysis_rig.h"

#include "analysis/model/roofline.h"

enum { P_BLAS = 20 };

static struct rig made(const char *name)
{
	struct rig r = rig_new(name);

	rig_tables(&r);
	rig_probe(&r, P_BLAS, "cublasGemmEx", "cublas", HB_CLASS_OTHER, HB_LAYER_LIBRARY, HB_HANDLE_HANDLE,
		  0);
	hb_window_writer__meta(r.w, "device_0_name", "Test One");
	hb_window_writer__meta(r.w, "device_0_sms", "10");
	return r;
}

static void op(struct rig *r, u16 task, u64 begin, u64 end, const char *name, const char *shapes,
	       const char *types)
{
	struct hb_rec_op o = {.dur = (end - begin) * US, .kind = HB_OPKIND_CPU_OP};

	o.name = hb_window_writer__string(r->w, name);
	o.shapes = *shapes ? hb_window_writer__string(r->w, shapes) : 0;
	o.types = *types ? hb_window_writer__string(r->w, types) : 0;
	rig_put(r, end * US, task, HB_TYPE_op, &o);
}

static void annotation(struct rig *r, u64 begin, u64 end, const char *name)
{
	struct hb_rec_op o = {.dur = (end - begin) * US,
			      .kind = HB_OPKIND_ANNOTATION,
			      .name = hb_window_writer__string(r->w, name)};

	rig_put(r, end * US, r->main, HB_TYPE_op, &o);
}

static void call(struct rig *r, u16 task, u32 probe, u64 at, u64 correlation)
{
	struct hb_rec_accel a = {
	    .dur = US, .correlation = correlation, .probe = probe, .flags = HB_AFLAG_TIMED};

	rig_put(r, (at + 1) * US, task, HB_TYPE_accel, &a);
}

static void work(struct rig *r, u64 begin, u64 end, u64 correlation, u8 kind, const char *name, u64 stream)
{
	struct hb_rec_device d = {.dur = (end - begin) * US,
				  .stream = stream,
				  .correlation = correlation,
				  .kind = kind,
				  .copy = kind == HB_DEVKIND_MEMCPY ? HB_COPY_HTOD : 0,
				  .name = hb_window_writer__string(r->w, name)};

	rig_put(r, end * US, r->main, HB_TYPE_device, &d);
}

/* A launch at `at`, and its kernel. */
static void kernel(struct rig *r, u64 at, u64 begin, u64 end, const char *name)
{
	static u64 number = 1000;

	call(r, r->main, P_LAUNCH, at, ++number);
	work(r, begin, end, number, HB_DEVKIND_KERNEL, name, 7);
}

struct built {
	struct rig *r;
	struct hb_window *w;
	struct hb_peaks *peaks;
	struct hb_roofline_opts o;
	struct hb_devices *d;
	struct hb_roofline *f;
	const struct hb_roof_row *row;
	const struct hb_roof_rest *rest;
	u32 n, n_rest;
};

static struct built built(struct rig *r, const char *peaks, const struct hb_llm *llm)
{
	struct built b = {.r = r, .w = rig_open(r), .peaks = hb_peaks__new()};
	struct hb_error e = {0};
	const struct hb_feed *feeds[2];
	struct hb_model *m;

	assert_int_equal(hb_peaks__add_text(b.peaks, "t", peaks, strlen(peaks), &e), 0);
	b.o = (struct hb_roofline_opts){.peaks = b.peaks, .llm = llm};
	b.d = hb_devices__new(b.w, NULL, &e);
	b.f = hb_roofline__new(b.w, &b.o, &e);
	feeds[0] = hb_devices__feed(b.d);
	feeds[1] = hb_roofline__feed(b.f);
	m = hb_model__build_with(b.w, feeds, 2, &e);
	assert_non_null(m);
	assert_int_equal(hb_devices__finish(b.d, &e), 0);
	assert_int_equal(hb_roofline__finish(b.f, b.d, &e), 0);
	hb_model__free(m);
	b.row = hb_roofline__rows(b.f, &b.n);
	b.rest = hb_roofline__rest(b.f, &b.n_rest);
	return b;
}

static void done(struct built *b)
{
	hb_roofline__free(b->f);
	hb_devices__free(b->d);
	hb_peaks__free(b->peaks);
	rig_close(b->r, b->w);
}

/* 1 TFLOP/s and 0.1 TB/s: what takes 1 us are 10^6 operations, or 10^5 bytes. */
#define PEAKS "device Test* peak bf16=1 fp32=1 hbm=0.1 sms=10\n"
#define MM    "[[100,50],[50,200]]"
#define BB    "[\"c10::BFloat16\",\"c10::BFloat16\"]"

static void innermost_operator_with_a_formula(void **state)
{
	struct rig r = made("roof-inner");
	struct built b;

	op(&r, r.main, 12, 18, "aten::t", "[[200,50]]", BB);
	kernel(&r, 22, 30, 50, "gemm_a");
	op(&r, r.main, 20, 25, "aten::mm", MM, BB);
	op(&r, r.main, 10, 28, "aten::linear", "[[100,50],[200,50]]", BB);
	kernel(&r, 62, 70, 80, "gemm_a");
	op(&r, r.main, 60, 65, "aten::mm", MM, BB);
	b = built(&r, PEAKS, NULL);
	assert_int_equal(b.n, 1);
	assert_string_equal(b.row->name, "aten::mm");
	assert_int_equal(b.row->dur.count, 2);
	assert_int_equal(b.row->dur.total, 30 * US);
	assert_int_equal(hb_roofline__execs(b.f, b.row)[0].begin, START + 30 * US);
	assert_int_equal(hb_roofline__execs(b.f, b.row)[1].ns, 10 * US);
	assert_true(b.row->flops == 2e6 && b.row->bytes == 2 * (5000 + 10000 + 20000));
	/* 2 us of arithmetic, 0.7 us of memory */
	assert_true(b.row->light_ns == 2000 && b.row->bound == HB_ROOF_BY_COMPUTE && !b.row->wrong);
	assert_true(hb_roof_row__light(b.row) > 0.1333 && hb_roof_row__light(b.row) < 0.1334);
	/* 2 MFLOP in 20 and in 10 us: the mean of both rates, not the rate of the mean */
	assert_true(b.row->tflops > 0.1499 && b.row->tflops < 0.1501);
	assert_int_equal(b.n_rest, 0);
	done(&b);
}

static void an_operator_is_all_of_its_work_counted_once(void **state)
{
	struct rig r = made("roof-union");
	struct built b;

	call(&r, r.main, P_LAUNCH, 21, 1);
	call(&r, r.main, P_LAUNCH, 23, 2);
	call(&r, r.main, P_LAUNCH, 25, 3);
	call(&r, r.main, P_COPY, 27, 4);
	op(&r, r.main, 20, 30, "aten::mm", MM, BB);
	work(&r, 40, 50, 1, HB_DEVKIND_MEMSET, "memset", 7);
	work(&r, 60, 80, 2, HB_DEVKIND_KERNEL, "gemm", 7);
	work(&r, 70, 90, 3, HB_DEVKIND_KERNEL, "reduce", 8);	      /* beside it */
	work(&r, 100, 200, 4, HB_DEVKIND_MEMCPY, "from the host", 9); /* not on this memory */
	b = built(&r, PEAKS, NULL);
	assert_int_equal(b.n, 1);
	assert_int_equal(b.row->dur.total, 40 * US);
	assert_string_equal(hb_window__string(b.w, b.row->kernel), "gemm");
	assert_int_equal(hb_roofline__counts(b.f)->modelled, 2);
	done(&b);
}

static u64 left(const struct built *b, enum hb_roof_why why)
{
	u64 n = 0;

	for (u32 i = 0; i < b->n_rest; i++)
		n += b->rest[i].why == why ? b->rest[i].count : 0;
	return n;
}

static void no_model_no_number(void **state)
{
	struct rig r = made("roof-none");
	struct built b;

	work(&r, 1, 2, 99, HB_DEVKIND_KERNEL, "before", 7);
	call(&r, r.main, P_GRAPH, 11, 5);
	op(&r, r.main, 10, 14, "aten::mm", MM, BB); /* it is not what the graph does */
	work(&r, 20, 30, 5, HB_DEVKIND_KERNEL, "gemm_in_graph", 7);
	work(&r, 30, 40, 5, HB_DEVKIND_KERNEL, "gemm_in_graph", 7);
	kernel(&r, 51, 60, 70, "index");
	op(&r, r.main, 50, 54, "aten::index", "[[4],[1]]", BB);
	kernel(&r, 80, 90, 91, "alone");
	kernel(&r, 101, 110, 120, "mm_without_shapes");
	op(&r, r.main, 100, 104, "aten::mm", "", "");
	kernel(&r, 131, 140, 150, "mm_damaged");
	op(&r, r.main, 130, 134, "aten::mm", "[[1,", BB);
	kernel(&r, 161, 170, 180, "mm_odd");
	op(&r, r.main, 160, 164, "aten::mm", "[[1,2],[3,4]]", BB);
	kernel(&r, 191, 200, 210, "mm_untyped");
	op(&r, r.main, 190, 194, "aten::mm", MM, "");
	op(&r, r.worker, 214, 225, "aten::mm", MM, BB); /* of another thread */
	kernel(&r, 220, 230, 240, "alone");
	b = built(&r, PEAKS, NULL);
	assert_int_equal(b.n, 0);
	assert_int_equal(left(&b, HB_ROOF_NO_LAUNCH), 1);
	assert_int_equal(left(&b, HB_ROOF_GRAPH), 2);
	assert_int_equal(left(&b, HB_ROOF_NO_FORMULA), 1);
	assert_int_equal(left(&b, HB_ROOF_NO_OPERATOR), 2);
	assert_int_equal(left(&b, HB_ROOF_NO_SHAPES), 2);
	assert_int_equal(left(&b, HB_ROOF_ODD_SHAPES), 1);
	assert_int_equal(left(&b, HB_ROOF_NO_TYPES), 1);
	assert_int_equal(hb_roofline__counts(b.f)->modelled, 0);
	assert_int_equal(hb_roofline__counts(b.f)->kernels, 10);
	done(&b);
}

static void faster_than_light_is_a_mistake(void **state)
{
	struct rig r = made("roof-error");
	struct built b;

	kernel(&r, 11, 20, 21, "gemm"); /* 2 us at light, and it took one */
	op(&r, r.main, 10, 14, "aten::mm", MM, BB);
	b = built(&r, PEAKS "device Test* ceiling bf16=0.5\n", NULL);
	assert_true(b.row->wrong && hb_roof_row__light(b.row) == 2);
	assert_true(hb_roof_row__ceiling(b.row) == 4);
	done(&b);
}

static void peaks_of_another_device_do_not_count(void **state)
{
	static const char *const others[] = {
	    "device Test* peak bf16=1 hbm=0.1 sms=132\n",				/* this one has 10 */
	    "device Rest* peak bf16=1 hbm=0.1\n", "device Test* peak fp32=1 hbm=0.1\n", /* no rate for bf16 */
	    "device Test* peak bf16=1\n"};

	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
		struct rig r = made("roof-peaks");
		struct built b;

		kernel(&r, 11, 20, 40, "gemm");
		op(&r, r.main, 10, 14, "aten::mm", MM, BB);
		b = built(&r, others[i], NULL);
		assert_int_equal(b.n, 1);
		assert_true(b.row->light_ns == 0 && b.row->bound == HB_ROOF_BY_NOTHING && b.row->tflops > 0);
		assert_int_equal(hb_roofline__device(b.f, 0)->other, i == 0);
		done(&b);
	}
}

static void blas(struct rig *r, u64 at, u32 m, u32 n, u32 k)
{
	struct hb_rec_accel a = {.probe = P_BLAS, .gx = m, .gy = n, .gz = k, .kind = 14 /* CUDA_R_16BF */};

	rig_put(r, at * US, r->main, HB_TYPE_accel, &a);
}

static void calls_of_cublas(void **state)
{
	struct rig r = made("roof-blas");
	struct built b;

	blas(&r, 10, 100, 200, 50);
	kernel(&r, 12, 20, 21, "zero_workspace");
	kernel(&r, 14, 30, 50, "nvjet_tst_64x8");
	kernel(&r, 16, 50, 55, "void cublasLt::splitKreduce_kernel<32>(x)");
	kernel(&r, 18, 60, 70, "rms_norm");
	blas(&r, 100, 100, 200, 50);
	kernel(&r, 102, 110, 115, "nvjet_tst_64x8");
	kernel(&r, 104, 120, 125, "nvjet_tst_64x8");	/* of something else: a call makes one product */
	kernel(&r, 5000, 5010, 5020, "nvjet_tst_64x8"); /* too late */
	b = built(&r, PEAKS, NULL);
	assert_int_equal(b.n, 1);
	assert_int_equal(b.row->basis, HB_ROOF_BY_CALL);
	assert_int_equal(b.row->dur.count, 2);
	assert_int_equal(b.row->dur.max, 25 * US);
	assert_int_equal(b.row->dur.min, 5 * US);
	assert_true(b.row->flops == 2e6);
	assert_int_equal(hb_roofline__counts(b.f)->modelled, 3);
	done(&b);
}

/* ---- by a model's configuration ---- */

static struct hb_llm small_model(void)
{
	static const char text[] = "{\"hidden_size\":64,\"intermediate_size\":256,\"num_hidden_layers\":2,"
				   "\"num_attention_heads\":4,\"num_key_value_heads\":2,\"vocab_size\":1000,"
				   "\"dtype\":\"bfloat16\",\"model_type\":\"llama\"}";
	struct hb_error e = {0};
	struct hb_llm m;

	if (hb_llm__parse(&m, "c", text, sizeof(text) - 1, &e))
		fail_msg("%s", e.text);
	return m;
}

/* One step in a graph: two layers and the head. `alike`: the second layer has the kernels of the first. */
static void step_in_a_graph(struct rig *r, u64 at, u64 correlation, bool alike)
{
	const char *names[] = {
	    "norm",   "gemm_qkv", "rotary_embedding", "flash_fwd_kernel", "flash_fwd_combine",
	    "gemm_o", "norm",	  "gemm_up",	      "act_and_mul",	  "gemm_down"};

	call(r, r->main, P_GRAPH, at, correlation);
	for (u64 i = 0; i < 20; i++)
		work(r, at + 10 + i * 10, at + 20 + i * 10, correlation, HB_DEVKIND_KERNEL,
		     i < 10 || alike ? names[i % 10] : names[9 - i % 10], 7);
	work(r, at + 210, at + 240, correlation, HB_DEVKIND_KERNEL, "gemm_head", 7);
}

static const struct hb_roof_row *row(const struct built *b, const char *name)
{
	for (u32 i = 0; i < b->n; i++)
		if (strcmp(b->row[i].name, name) == 0)
			return &b->row[i];
	fail_msg("no row %s", name);
	return NULL;
}

static void kernels_of_a_step_by_their_place(void **state)
{
	struct rig r = made("roof-plan");
	struct hb_llm m = small_model();
	struct built b;

	step_in_a_graph(&r, 100, 1, true);
	annotation(&r, 90, 400, "execute_16_context_0(sq0sk0sqsq0sqsk0)_generation_4(sq4sk400sqsq4sqsk400)");
	b = built(&r, PEAKS, &m);
	assert_int_equal(b.n, 6);
	assert_true(row(&b, "qkv")->in.size[HB_ROOF_M] == 16 && row(&b, "qkv")->in.size[HB_ROOF_N] == 128);
	assert_true(row(&b, "gate_up")->in.size[HB_ROOF_N] == 512 && row(&b, "gate_up")->dur.count == 2);
	assert_true(row(&b, "down")->in.size[HB_ROOF_K] == 256 && row(&b, "o")->in.size[HB_ROOF_K] == 64);
	/* the head sees one token of each sequence */
	assert_true(row(&b, "head")->in.size[HB_ROOF_M] == 4 && row(&b, "head")->dur.total == 30 * US);
	/* two kernels one after the other are one attention */
	assert_int_equal(row(&b, "attention")->dur.p50, 20 * US);
	assert_true(row(&b, "attention")->in.size[HB_ROOF_KV] == 400 &&
		    row(&b, "attention")->in.size[HB_ROOF_D_K] == 16);
	assert_int_equal(hb_roofline__counts(b.f)->planned, 1);
	assert_int_equal(left(&b, HB_ROOF_GRAPH), 8);
	done(&b);
}

static void what_the_configuration_does_not_make_expect(void **state)
{
	static const struct {
		u32 layers;
		bool alike, one_more;
		bool fits;
	} cases[] = {{2, true, false, true},
		     {3, true, false, false},
		     {1, true, false, false},
		     {2, false, false, false},
		     {2, true, true, false}};
	struct hb_llm m = small_model();

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct rig r = made("roof-unlike");
		struct built b;

		m.layers = cases[i].layers;
		step_in_a_graph(&r, 100, 1, cases[i].alike);
		if (cases[i].one_more)
			work(&r, 400, 401, 1, HB_DEVKIND_KERNEL, "gemm_more", 7);
		annotation(&r, 90, 400, "step[DECODE bs=16]"); /* tells no keys: no attention either */
		b = built(&r, PEAKS, &m);
		assert_int_equal(b.n, cases[i].fits ? 5 : 0);
		assert_int_equal(hb_roofline__counts(b.f)->planned, cases[i].fits);
		assert_int_equal(hb_roofline__counts(b.f)->unplanned, !cases[i].fits);
		done(&b);
	}
}

/* Without annotations: a field that has the tokens of the step that begins. */
static void steps_by_a_field(void **state)
{
	struct rig r = made("roof-field");
	struct hb_llm m = small_model();
	struct hb_rec_py_field f = {.num = 16, .kind = HB_PYKIND_INT};
	struct built b;

	f.field = hb_window_writer__string(r.w, "execute_model scheduler_output.total_num_scheduled_tokens");
	rig_put(&r, 90 * US, r.main, HB_TYPE_py_field, &f);
	step_in_a_graph(&r, 100, 1, true);
	f.num = 32;
	rig_put(&r, 390 * US, r.main, HB_TYPE_py_field, &f);
	step_in_a_graph(&r, 400, 2, true);
	b = built(&r, PEAKS, &m);
	assert_int_equal(hb_roofline__counts(b.f)->steps, 2);
	assert_int_equal(b.n, 10); /* five products in two sizes; how many keys there are is not told */
	for (u32 i = 0; i < b.n; i++)
		assert_true(b.row[i].kind == HB_ROOF_GEMM);
	done(&b);
}

static void nothing_at_all(void **state)
{
	struct rig r = made("roof-empty");
	struct hb_llm m = small_model();
	struct built b = built(&r, "", &m);

	assert_int_equal(b.n + b.n_rest, 0);
	assert_null(hb_roofline__device(b.f, 0));
	done(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(innermost_operator_with_a_formula),
	    cmocka_unit_test(an_operator_is_all_of_its_work_counted_once),
	    cmocka_unit_test(no_model_no_number),
	    cmocka_unit_test(faster_than_light_is_a_mistake),
	    cmocka_unit_test(peaks_of_another_device_do_not_count),
	    cmocka_unit_test(calls_of_cublas),
	    cmocka_unit_test(kernels_of_a_step_by_their_place),
	    cmocka_unit_test(what_the_configuration_does_not_make_expect),
	    cmocka_unit_test(steps_by_a_field),
	    cmocka_unit_test(nothing_at_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
