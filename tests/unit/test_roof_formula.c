/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Formulas against numbers computed by hand, operators' shapes, steps, configurations of models, files of
 * peaks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/model/llm.h"
#include "analysis/model/peaks.h"
#include "analysis/model/roof_rule.h"

static bool near(double a, double b, double part)
{
	double d = a > b ? a - b : b - a;

	return d <= part * (b > 0 ? b : -b);
}

static double flops(enum hb_roof_kind k, const struct hb_roof_in *in)
{
	assert_int_equal(hb_roof__missing(k, in), HB_ROOF_SIZE_COUNT);
	return hb_roof__formula(k)->flops(in);
}

static double bytes(enum hb_roof_kind k, const struct hb_roof_in *in)
{
	return hb_roof__formula(k)->bytes(in);
}

#define BF16	.in = HB_DTYPE_BF16, .weight = HB_DTYPE_BF16, .out = HB_DTYPE_BF16, .rate = HB_RATE_BF16
#define SIZE(z) .size[HB_ROOF_##z]

/* ---- formulas ---- */

static void products(void **state)
{
	struct hb_roof_in in = {BF16, SIZE(M) = 141, SIZE(N) = 512, SIZE(K) = 512, SIZE(BIAS) = 512};

	assert_true(flops(HB_ROOF_GEMM, &in) == 2.0 * 141 * 512 * 512 + 141 * 512);
	assert_true(bytes(HB_ROOF_GEMM, &in) == 2.0 * (141 * 512 + 512 * 512 + 141 * 512 + 512));
	assert_true(bytes(HB_ROOF_GEMM, &in) == 814080);

	in = (struct hb_roof_in){BF16, SIZE(M) = 2, SIZE(N) = 3, SIZE(K) = 5, SIZE(BATCH) = 7};
	assert_true(flops(HB_ROOF_GEMM, &in) == 7 * 60);
	assert_true(bytes(HB_ROOF_GEMM, &in) == 7 * 2 * (10 + 15 + 6));

	/* fp8 with one scale of 4 bytes for 128 x 128 weights, result in bf16 */
	in = (struct hb_roof_in){.in = HB_DTYPE_FP8,
				 .weight = HB_DTYPE_FP8,
				 .out = HB_DTYPE_BF16,
				 SIZE(M) = 1,
				 SIZE(N) = 256,
				 SIZE(K) = 256,
				 SIZE(SCALES) = 16};
	assert_true(bytes(HB_ROOF_GEMM, &in) == 256 + 65536 + 512 + 16);
	in.weight = HB_DTYPE_FP4;
	assert_true(bytes(HB_ROOF_GEMM, &in) == 256 + 32768 + 512 + 16);
	in.size[HB_ROOF_K] = 0;
	assert_int_equal(hb_roof__missing(HB_ROOF_GEMM, &in), HB_ROOF_K);
}

static void attention(void **state)
{
	/* 32 sequences in decode, 32,785 keys in all, 32 heads over 8 */
	struct hb_roof_in in = {BF16,
				SIZE(Q) = 32,
				SIZE(KV) = 32785,
				SIZE(PAIRS) = 32785,
				SIZE(HEADS) = 32,
				SIZE(KV_HEADS) = 8,
				SIZE(D_K) = 128,
				SIZE(D_V) = 128};

	assert_true(flops(HB_ROOF_ATTENTION, &in) == 2.0 * 32785 * 32 * 256);
	assert_true(bytes(HB_ROOF_ATTENTION, &in) == 134811648);

	/* 16 sequences of 559 under a causal mask: half of the square */
	in = (struct hb_roof_in){BF16,
				 SIZE(Q) = 8944,
				 SIZE(KV) = 8944,
				 SIZE(PAIRS) = 16.0 * 559 * 559,
				 SIZE(SELF) = 16.0 * 559 * 559,
				 SIZE(HEADS) = 16,
				 SIZE(KV_HEADS) = 16,
				 SIZE(D_K) = 64,
				 SIZE(D_V) = 64};
	assert_true(flops(HB_ROOF_ATTENTION, &in) == 10239377408.0);
	assert_true(bytes(HB_ROOF_ATTENTION, &in) == 4.0 * 8944 * 16 * 64 * 2);
}

static void latent_attention(void **state)
{
	struct hb_roof_in in = {BF16,
				SIZE(Q) = 1,
				SIZE(KV) = 4096,
				SIZE(PAIRS) = 4096,
				SIZE(HEADS) = 128,
				SIZE(D_K) = 576,
				SIZE(D_V) = 512};

	assert_true(flops(HB_ROOF_MLA, &in) == 1140850688);
	assert_true(bytes(HB_ROOF_MLA, &in) == 147456 + 4718592 + 131072);
}

/* vllm#31722: H200 (4.8 TB/s), 1,024 sequences, one token each, 8 heads of 128: 345 us before, 215 us after.
 */
static void deltanet(void **state)
{
	struct hb_roof_in in = {BF16,
				.state = HB_DTYPE_BF16,
				SIZE(TOKENS) = 1024,
				SIZE(SEQS) = 1024,
				SIZE(HEADS) = 8,
				SIZE(D_K) = 128,
				SIZE(D_V) = 128};
	double of_state = 536870912, of_tokens = 1024.0 * 8 * (128 + 256 + 2) * 2,
	       b = bytes(HB_ROOF_DELTANET, &in);

	assert_true(flops(HB_ROOF_DELTANET, &in) == 939524096);
	assert_true(b == of_state + of_tokens);
	assert_true(near(of_state / 345e-6 / 4.8e12, 0.32, 0.02));
	assert_true(near(b / 345e-6 / 4.8e12, 0.328, 0.01));
	assert_true(near(b / 215e-6 / 4.8e12, 0.526, 0.01));
	assert_true(of_tokens / of_state < 1.0 / 80); /* what counts is the state */
	in.state = HB_DTYPE_FP32;
	assert_true(bytes(HB_ROOF_DELTANET, &in) / 215e-6 / 4.8e12 > 1.04); /* not to be believed */

	in.size[HB_ROOF_CHUNK] = 64;
	assert_true(flops(HB_ROOF_DELTANET, &in) == 939524096 + 4.0 * 1024 * 8 * 64 * 256);
}

static void experts(void **state)
{
	struct hb_roof_in in = {BF16,		SIZE(TOKENS) = 32,   SIZE(K) = 2880,
				SIZE(N) = 5760, SIZE(EXPERTS) = 128, SIZE(TOP_K) = 4};
	double missed = 1, hit;

	for (int i = 0; i < 32; i++)
		missed *= 1 - 4.0 / 128;
	hit = 128 * (1 - missed);
	assert_true(hit > 81 && hit < 82); /* of 128 that 32 tokens might reach */
	assert_true(flops(HB_ROOF_MOE, &in) == 2.0 * 32 * 4 * 2880 * 5760);
	assert_true(near(bytes(HB_ROOF_MOE, &in), 2 * (32 * 4 * 2880.0 + hit * 2880 * 5760 + 32 * 4 * 5760.0),
			 1e-12));
	in.size[HB_ROOF_ACTIVE] = 10;
	assert_true(bytes(HB_ROOF_MOE, &in) == 2 * (32 * 4 * 2880.0 + 10.0 * 2880 * 5760 + 32 * 4 * 5760.0));
	in.size[HB_ROOF_ACTIVE] = 0;
	in.size[HB_ROOF_TOP_K] = 128;
	assert_true(bytes(HB_ROOF_MOE, &in) ==
		    2 * (32 * 128 * 2880.0 + 128.0 * 2880 * 5760 + 32 * 128 * 5760.0));
}

static void state_space(void **state)
{
	struct hb_roof_in in = {
	    BF16,	   .state = HB_DTYPE_FP32, SIZE(TOKENS) = 100, SIZE(SEQS) = 2, SIZE(HEADS) = 4,
	    SIZE(D_V) = 8, SIZE(GROUPS) = 1,	   SIZE(D_STATE) = 16};

	assert_true(flops(HB_ROOF_SSD, &in) == 4.0 * 100 * 4 * 16 * 8);
	/* x 32, B and C 32, dt 4; y 32; two states of 4 x 8 x 16 in and out */
	assert_true(bytes(HB_ROOF_SSD, &in) == 100 * 68 * 2 + 100 * 32 * 2 + 2 * 2 * 4 * 8 * 16 * 4);
	in.size[HB_ROOF_CHUNK] = 50;
	in.size[HB_ROOF_CONV] = 64;
	in.size[HB_ROOF_D_CONV] = 4;
	assert_true(flops(HB_ROOF_SSD, &in) == 2.0 * 100 * 64 * 4 + 2.0 * 100 * 1 * 50 * 16 +
						   2.0 * 100 * 4 * 50 * 8 + 4.0 * 100 * 4 * 16 * 8);
}

static void collectives(void **state)
{
	struct hb_roof_in in = {SIZE(MESSAGE) = 8000, SIZE(RANKS) = 8};

	assert_true(bytes(HB_ROOF_ALL_REDUCE, &in) == 14000);
	assert_true(bytes(HB_ROOF_SHARE_OUT, &in) == 7000);
	assert_true(bytes(HB_ROOF_SEND, &in) == 8000);
	assert_int_equal(hb_roof__formula(HB_ROOF_ALL_REDUCE)->way, HB_ROOF_LINK);
}

static void every_formula_says_what_it_is(void **state)
{
	for (unsigned k = 0; k < HB_ROOF_KINDS; k++) {
		const struct hb_roof_formula *f = hb_roof__formula(k);

		assert_true(f->name && f->says && strlen(f->says) > 20 && f->needs && f->flops && f->bytes);
	}
	assert_null(hb_roof__formula(HB_ROOF_KINDS));
	for (unsigned w = 1; w < HB_ROOF_WHYS; w++)
		assert_true(*hb_roof__why(w));
}

static void page_is_printed_from_them(void **state)
{
	static const char begin[] = "<!-- made by `make docs-roofline`: begin -->\n",
			  end[] = "<!-- end -->\n";
	char *want = NULL, *docs = calloc(1, 1 << 20), *from, *to;
	size_t size;
	FILE *f = open_memstream(&want, &size);

	hb_roof__describe(f);
	fclose(f);
	f = fopen("docs/roofline.md", "r+");
	if (!f)
		fail_msg("docs/roofline.md is not here: run from the project's folder");
	assert_true(fread(docs, 1, (1 << 20) - 1, f) > 0);
	from = strstr(docs, begin);
	to = from ? strstr(from, end) : NULL;
	assert_non_null(to);
	from += strlen(begin);
	if (getenv("HB_UPDATE_DOCS")) {
		rewind(f);
		assert_int_equal(ftruncate(fileno(f), 0), 0);
		fprintf(f, "%.*s%s%s", (int)(from - docs), docs, want, to);
	} else if ((size_t)(to - from) != size || memcmp(from, want, size) != 0) {
		fail_msg("docs/roofline.md does not say what the formulas are: run `make docs-roofline`");
	}
	fclose(f);
	free(want);
	free(docs);
}

/* ---- operators ---- */

struct filled {
	enum hb_roof_why why;
	enum hb_roof_kind kind;
	struct hb_roof_in in;
};

static struct filled filled(const char *op, const char *shapes, const char *types, const char *values,
			    const struct hb_roof_step *step)
{
	const struct hb_roof_rule *r = hb_roof__rule(op);
	struct hb_roof_operands o;
	struct filled f;

	assert_non_null(r);
	assert_true(hb_roof__operands(shapes, types, values, &o));
	f.why = hb_roof__fill(r, &o, values, step, &f.kind, &f.in);
	return f;
}

static double size(const struct filled *f, enum hb_roof_size z)
{
	assert_int_equal(f->why, HB_ROOF_MODELLED);
	return f->in.size[z];
}

#define BB  "c10::BFloat16"
#define BB2 "[\"" BB "\",\"" BB "\"]"
#define BB3 "[\"" BB "\",\"" BB "\",\"" BB "\"]"

static void operators_that_multiply(void **state)
{
	struct filled f = filled("aten::addmm", "[[512],[141,512],[512,512],[],[]]",
				 "[\"" BB "\",\"" BB "\",\"" BB "\",\"Scalar\",\"Scalar\"]", "", NULL);

	assert_true(size(&f, HB_ROOF_M) == 141 && size(&f, HB_ROOF_N) == 512 &&
		    size(&f, HB_ROOF_BIAS) == 512);
	assert_true(bytes(f.kind, &f.in) == 814080);
	f = filled("aten::mm", "[[8944,1024],[1024,2816]]", BB2, "", NULL);
	assert_true(flops(f.kind, &f.in) == 2.0 * 8944 * 1024 * 2816);
	f = filled("aten::bmm", "[[3,4,5],[3,5,6]]", BB2, "", NULL);
	assert_true(flops(f.kind, &f.in) == 3.0 * 2 * 4 * 5 * 6);
	f = filled("aten::linear", "[[2,7,5],[6,5],[6]]", BB3, "", NULL);
	assert_true(size(&f, HB_ROOF_M) == 14 && size(&f, HB_ROOF_N) == 6 && size(&f, HB_ROOF_K) == 5);
	f = filled("aten::matmul", "[[2,7,5],[5,6]]", BB2, "", NULL);
	assert_true(size(&f, HB_ROOF_M) == 14 && size(&f, HB_ROOF_BATCH) == 0);

	f = filled("aten::mm", "[[8944,1024],[1000,2816]]", BB2, "", NULL);
	assert_int_equal(f.why, HB_ROOF_ODD_SHAPES);
	f = filled("aten::mm", "[[0,1024],[1024,2816]]", BB2, "", NULL);
	assert_int_equal(f.why, HB_ROOF_ODD_SHAPES); /* nothing to do */
	f = filled("aten::mm", "[[8944,1024],[1024,2816]]", "", "", NULL);
	assert_int_equal(f.why, HB_ROOF_NO_TYPES);
	f = filled("aten::mm", "[[],[]]", BB2, "", NULL);
	assert_int_equal(f.why, HB_ROOF_NO_SHAPES);
	assert_null(hb_roof__rule("aten::embedding"));
}

static void products_of_narrow_types(void **state)
{
	const char *types = "[\"c10::Float8_e4m3fn\",\"c10::Float8_e4m3fn\",\"float\",\"float\",\"\",\"\","
			    "\"Scalar\",\"Scalar\"]";
	const char *shapes = "[[64,128],[128,256],[64,1],[1,256],[],[],[],[]]";
	struct filled f = filled("aten::_scaled_mm", shapes, types,
				 "[\"\",\"\",\"\",\"\",\"\",\"\",\"15\",\"True\"]", NULL);

	assert_true(size(&f, HB_ROOF_SCALES) == 4 * (64 + 256));
	assert_true(size(&f, HB_ROOF_BIAS) == 0);
	assert_int_equal(f.in.out, HB_DTYPE_BF16);
	assert_int_equal(f.in.rate, HB_RATE_FP8);
	assert_true(bytes(f.kind, &f.in) == 64 * 128 + 128 * 256 + 2 * 64 * 256 + 1280);
	f = filled("aten::_scaled_mm", shapes, types, "[\"\",\"\",\"\",\"\",\"\",\"\",\"6\",\"True\"]", NULL);
	assert_int_equal(f.in.out, HB_DTYPE_FP32);
}

static void attention_needs_its_mask(void **state)
{
	const char *shapes = "[[16,16,559,64],[16,16,559,64],[16,16,559,64],[],[],[],[]]";
	struct filled f = filled("aten::_scaled_dot_product_flash_attention", shapes, BB3,
				 "[\"\",\"\",\"\",\"0.\",\"True\",\"False\",\"0.125\"]", NULL);

	assert_true(flops(f.kind, &f.in) == 10239377408.0);
	f = filled("aten::_scaled_dot_product_flash_attention", shapes, BB3,
		   "[\"\",\"\",\"\",\"0.\",\"False\",\"False\",\"0.125\"]", NULL);
	assert_true(flops(f.kind, &f.in) == 2 * 10239377408.0);
	f = filled("aten::_scaled_dot_product_flash_attention", shapes, BB3, "", NULL);
	assert_int_equal(f.why, HB_ROOF_NO_MASK);
	/* FlashAttention has heads and lengths the other way round; fewer heads of keys */
	f = filled("aten::_flash_attention_forward",
		   "[[2,10,8,64],[2,30,2,64],[2,30,2,64],[],[],[],[],[],[]]", BB3,
		   "[\"\",\"\",\"\",\"\",\"\",\"10\",\"30\",\"0.\",\"False\"]", NULL);
	assert_true(size(&f, HB_ROOF_Q) == 20 && size(&f, HB_ROOF_KV) == 60 &&
		    size(&f, HB_ROOF_PAIRS) == 600);
	assert_true(size(&f, HB_ROOF_HEADS) == 8 && size(&f, HB_ROOF_KV_HEADS) == 2 &&
		    size(&f, HB_ROOF_SELF) == 0);
}

static void paged_attention_needs_its_step(void **state)
{
	const char *shapes = "[[32,32,128],[32,8,128],[32,8,128],[32,32,128]]";
	struct hb_roof_step step;
	struct filled f;

	assert_true(hb_roof__step(
	    "execute_32_context_0(sq0sk0sqsq0sqsk0)_generation_32(sq32sk32785sqsq32sqsk32785)", &step));
	f = filled("vllm::unified_attention_with_output", shapes, BB3, "", &step);
	assert_true(bytes(f.kind, &f.in) == 134811648);
	f = filled("vllm::unified_attention_with_output", shapes, BB3, "", NULL);
	assert_int_equal(f.why, HB_ROOF_NO_STEP);
	assert_true(hb_roof__step("step[DECODE bs=32]", &step)); /* tells no keys */
	f = filled("vllm::unified_attention_with_output", shapes, BB3, "", &step);
	assert_int_equal(f.why, HB_ROOF_NO_STEP);
}

static void element_by_element(void **state)
{
	struct filled f = filled("aten::mul", "[[1,559,64],[]]", "[\"float\",\"double\"]", "", NULL);

	assert_int_equal(f.in.out, HB_DTYPE_FP32); /* a number does not widen */
	assert_true(size(&f, HB_ROOF_WRITTEN) == 4 * 559 * 64);
	f = filled("aten::add", "[[16,1,8],[4,1]]", "[\"" BB "\",\"float\"]", "", NULL);
	assert_true(size(&f, HB_ROOF_READ) == 2 * 16 * 8 + 4 * 4 &&
		    size(&f, HB_ROOF_WRITTEN) == 4 * 16 * 4 * 8);
	f = filled("aten::mul", "[[10],[]]", "[\"long int\",\"double\"]", "", NULL);
	assert_true(size(&f, HB_ROOF_WRITTEN) == 40); /* integers times a float are floats */
	f = filled("aten::add_", "[[10],[10],[]]", BB3, "", NULL);
	assert_true(size(&f, HB_ROOF_READ) == 40 && size(&f, HB_ROOF_WRITTEN) == 20);
	f = filled("aten::copy_", "[[10],[10],[]]", "[\"" BB "\",\"long int\",\"Scalar\"]", "", NULL);
	assert_true(size(&f, HB_ROOF_READ) == 80 && size(&f, HB_ROOF_WRITTEN) == 20);
	f = filled("aten::eq", "[[141],[]]", "[\"long int\",\"Scalar\"]", "", NULL);
	assert_true(size(&f, HB_ROOF_WRITTEN) == 141);
	f = filled("aten::native_layer_norm", "[[1,141,512],[],[512],[512],[]]",
		   "[\"" BB "\",\"ScalarList\",\"" BB "\",\"" BB "\",\"Scalar\"]", "", NULL);
	assert_true(size(&f, HB_ROOF_READ) == 2 * (141 * 512 + 1024) &&
		    size(&f, HB_ROOF_WRITTEN) == 2 * 141 * 512);
	f = filled("_C::fused_add_rms_norm", "[[4,8],[4,8],[8],[]]", BB3, "", NULL);
	assert_true(size(&f, HB_ROOF_READ) == 2 * 72 && size(&f, HB_ROOF_WRITTEN) == 2 * 64);
	f = filled("aten::fill_", "[[10],[]]", "[\"float\",\"Scalar\"]", "", NULL);
	assert_true(size(&f, HB_ROOF_READ) == 0 && size(&f, HB_ROOF_WRITTEN) == 40);
	f = filled("aten::add", "[[10],[10]]", "[\"c10::Mystery\",\"float\"]", "", NULL);
	assert_int_equal(f.why, HB_ROOF_NO_TYPES);
	f = filled("aten::add", "[[],[]]", "[\"double\",\"double\"]", "", NULL);
	assert_int_equal(f.why, HB_ROOF_NO_SHAPES);
}

static void what_collectives_say(void **state)
{
	struct filled f = filled(
	    "record_param_comms", "[]", "",
	    "{\"collective\":\"allreduce\",\"dtype\":\"BFloat16\",\"in\":4000,\"out\":4000,\"ranks\":8}",
	    NULL);

	assert_int_equal(f.kind, HB_ROOF_ALL_REDUCE);
	assert_true(bytes(f.kind, &f.in) == 14000);
	f = filled(
	    "record_param_comms", "[]", "",
	    "{\"collective\":\"_allgather_base\",\"dtype\":\"Float\",\"in\":100,\"out\":800,\"ranks\":8}",
	    NULL);
	assert_int_equal(f.kind, HB_ROOF_SHARE_OUT);
	assert_true(bytes(f.kind, &f.in) == 2800);
	f = filled("record_param_comms", "[]", "",
		   "{\"collective\":\"_reduce_scatter_base\",\"dtype\":\"Float\",\"in\":800,\"out\":100,"
		   "\"ranks\":8}",
		   NULL);
	assert_int_equal(f.kind, HB_ROOF_SHARE_OUT);
	f = filled("record_param_comms", "[]", "",
		   "{\"collective\":\"allreduce\",\"dtype\":\"Float\",\"in\":8}", NULL);
	assert_int_equal(f.why, HB_ROOF_NO_RANKS);
	f = filled("record_param_comms", "[]", "", "{\"collective\":\"barrier\",\"dtype\":\"Float\"}", NULL);
	assert_int_equal(f.why, HB_ROOF_NO_FORMULA);
	f = filled("record_param_comms", "[]", "", "", NULL);
	assert_int_equal(f.why, HB_ROOF_NO_SHAPES);
}

static void texts_that_are_no_lists(void **state)
{
	static const char *const bad[] = {"",
					  "[",
					  "[[1,2]",
					  "[[1,2],]",
					  "[[1,-2]]",
					  "[[1,2]]x",
					  "{}",
					  "[[1 2]]",
					  "[[1,2],3]",
					  "[[1],[[2]",
					  "[[1,2,3,4,5,6,7,8,9]]",
					  "[[99999999999999999999]]"};
	struct hb_roof_operands o;

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		if (hb_roof__operands(bad[i], "", "", &o))
			fail_msg("'%s' was taken", bad[i]);
	assert_true(hb_roof__operands("[[[1,559,32],[1,559,32]],[],[3]]",
				      "[\"TensorList\",\"Scalar\",\"float\"]", "", &o));
	assert_true(o.n == 3 && o.of[0].list && !o.of[1].n && o.of[2].type == HB_DTYPE_FP32);
	assert_true(hb_roof__operands("[[1]]", "[\"open]", "[[\"a\"],7,\"True\"]", &o));
	assert_false(o.typed);
}

/* ---- steps ---- */

static void steps(void **state)
{
	struct hb_roof_step s;
	struct hb_roof_in in = {0};

	assert_true(hb_roof__step(
	    "execute_40_context_1(sq8sk100sqsq64sqsk800)_generation_31(sq31sk3100sqsq31sqsk3100)", &s));
	assert_true(s.tokens == 40 && s.prefill.seqs == 1 && s.prefill.pairs == 800 && s.decode.kv == 3100);
	assert_true(hb_roof__step_attention(&s, 0, &in));
	assert_true(in.size[HB_ROOF_Q] == 39 && in.size[HB_ROOF_KV] == 3200 &&
		    in.size[HB_ROOF_PAIRS] == 3900 && in.size[HB_ROOF_SELF] == 64);
	/* a window of 50: in decode 50 keys for each, in prefill 50 and what 7 further queries see */
	memset(&in, 0, sizeof(in));
	assert_true(hb_roof__step_attention(&s, 50, &in));
	assert_true(in.size[HB_ROOF_KV] == 57 + 1550 && in.size[HB_ROOF_PAIRS] == 400 + 1550);

	assert_true(hb_roof__step("execute_context_2(512)_generation_30(30)", &s));
	assert_true(s.tokens == 542 && s.prefill.q == 512 && s.decode.seqs == 30);
	assert_false(hb_roof__step_attention(&s, 0, &in));
	assert_true(hb_roof__step("step[EXTEND bs=2 toks=1024]", &s) && s.tokens == 1024 &&
		    s.prefill.seqs == 2);
	assert_true(hb_roof__step("step[DECODE bs=7]", &s) && s.tokens == 7 && s.decode.seqs == 7);
	assert_false(hb_roof__step("step[IDLE]", &s));
	assert_false(hb_roof__step("execute_model", &s));
	assert_false(hb_roof__step("execute_32_context_0(sq0)_generation_32(sq32)", &s));
	assert_false(hb_roof__step("ProfilerStep#3", &s));
}

/* ---- configurations of models ---- */

static struct hb_llm llm(const char *text)
{
	struct hb_error e = {0};
	struct hb_llm m;

	if (hb_llm__parse(&m, "config.json", text, strlen(text), &e))
		fail_msg("%s", e.text);
	return m;
}

static void models(void **state)
{
	struct hb_llm m =
	    llm("{\"model_type\":\"gpt_oss\",\"hidden_size\":2880,\"intermediate_size\":2880,\"num_hidden_"
		"layers\":4,"
		"\"num_attention_heads\":64,\"num_key_value_heads\":8,\"head_dim\":64,\"vocab_size\":201088,"
		"\"num_local_experts\":128,\"num_experts_per_tok\":4,\"sliding_window\":128,\"layer_types\":["
		"\"sliding_attention\",\"full_attention\",\"sliding_attention\",\"full_attention\"],"
		"\"torch_dtype\":\"bfloat16\",\"quantization_config\":{\"quant_method\":\"mxfp4\"}}");

	assert_true(m.experts == 128 && m.top_k == 4 && m.expert_inner == 2880 && m.head_dim == 64);
	assert_true(m.layer[0] == HB_LLM_SLIDING && m.layer[1] == HB_LLM_FULL);
	assert_true(m.weight == HB_DTYPE_BF16 && m.expert_weight == HB_DTYPE_FP4 &&
		    m.expert_scale_bytes == 1.0 / 32);

	m = llm("{\"model_type\":\"deepseek_v3\",\"hidden_size\":7168,\"intermediate_size\":18432,\"num_"
		"hidden_layers\":61,"
		"\"num_attention_heads\":128,\"n_routed_experts\":256,\"n_shared_experts\":1,\"moe_"
		"intermediate_size\":2048,"
		"\"num_experts_per_tok\":8,\"first_k_dense_replace\":3,\"kv_lora_rank\":512,\"qk_rope_head_"
		"dim\":64,"
		"\"torch_dtype\":\"bfloat16\",\"quantization_config\":{\"quant_method\":\"fp8\",\"weight_"
		"block_size\":[128,128]}}");
	assert_true(m.kv_rank == 512 && m.rope_dim == 64 && m.first_dense == 3 && m.shared_inner == 2048);
	assert_true(m.weight == HB_DTYPE_FP8 && m.scale_bytes == 4.0 / 16384);

	m = llm(
	    "{\"text_config\":{\"model_type\":\"qwen3_next\",\"hidden_size\":2048,\"intermediate_size\":5120,"
	    "\"num_hidden_layers\":8,\"num_attention_heads\":16,\"linear_num_value_heads\":32,\"linear_key_"
	    "head_dim\":128,"
	    "\"linear_value_head_dim\":128,\"full_attention_interval\":4},\"torch_dtype\":\"bfloat16\"}");
	assert_true(m.layer[2] == HB_LLM_LINEAR && m.layer[3] == HB_LLM_FULL && m.layer[7] == HB_LLM_FULL);
	assert_true(m.lin_v_heads == 32 && m.act == HB_DTYPE_BF16);

	/* a window that all layers have; one that is switched off */
	m = llm(
	    "{\"hidden_size\":8,\"intermediate_size\":8,\"num_hidden_layers\":1,\"num_attention_heads\":1,"
	    "\"sliding_window\":4096,\"dtype\":\"float16\"}");
	assert_true(m.layer[0] == HB_LLM_SLIDING && m.kv_heads == 1 && m.head_dim == 8);
	m = llm(
	    "{\"hidden_size\":8,\"intermediate_size\":8,\"num_hidden_layers\":1,\"num_attention_heads\":1,"
	    "\"sliding_window\":4096,\"use_sliding_window\":false,\"dtype\":\"float16\"}");
	assert_true(m.layer[0] == HB_LLM_FULL);
	/* weights of a kind that is not known: their size is not either */
	m = llm(
	    "{\"hidden_size\":8,\"intermediate_size\":8,\"num_hidden_layers\":1,\"num_attention_heads\":1,"
	    "\"dtype\":\"float16\",\"quantization_config\":{\"quant_method\":\"mystery\"}}");
	assert_true(m.weight == HB_DTYPE_NONE && m.act == HB_DTYPE_FP16);
}

static void no_models(void **state)
{
	static const char *const bad[][2] = {
	    {"", "no JSON object"},
	    {"[]", "no JSON object"},
	    {"{\"hidden_size\":8}", "num_hidden_layers"},
	    {"{\"num_hidden_layers\":1}", "hidden_size"},
	    {"{\"num_hidden_layers\":-1,\"hidden_size\":8}", "num_hidden_layers"},
	    {"{\"num_hidden_layers\":1,\"hidden_size\":8,\"num_attention_heads\":1,\"intermediate_size\":8}",
	     "torch_dtype"},
	    {"{\"num_hidden_layers\":1e99,\"hidden_size\":\"8\"}", "num_hidden_layers"},
	};
	char deep[4096];
	struct hb_llm m;

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct hb_error e = {0};

		assert_true(hb_llm__parse(&m, "c", bad[i][0], strlen(bad[i][0]), &e) < 0);
		if (!strstr(e.text, bad[i][1]))
			fail_msg("%s", e.text);
	}
	memset(deep, '[', sizeof(deep));
	assert_true(hb_llm__parse(&m, "c", deep, sizeof(deep), NULL) < 0);
}

/* ---- peaks ---- */

static void built_in_peaks(void **state)
{
	struct hb_peaks *p = hb_peaks__new();
	struct hb_error e = {0};
	static const struct {
		const char *name;
		double bf16, fp8, memory;
	} known[] = {{"NVIDIA A100-SXM4-80GB", 312, 0, 2.04},
		     {"NVIDIA H100 80GB HBM3", 989.4, 1979, 3.35},
		     {"NVIDIA H200", 989.4, 1979, 4.8},
		     {"NVIDIA B200", 2250, 4500, 7.7},
		     {"AMD Instinct MI300X", 1307, 2615, 5.3}};

	if (hb_peaks__add_builtin(p, &e))
		fail_msg("%s", e.text);
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		const struct hb_peak *k = hb_peaks__find(p, known[i].name, HB_PEAK_SHEET);

		assert_non_null(k);
		assert_true(k->tflops[HB_RATE_BF16] == known[i].bf16 &&
			    k->tflops[HB_RATE_FP8] == known[i].fp8 && k->memory == known[i].memory);
	}
	assert_true(hb_peaks__find(p, "AMD Instinct MI300X", HB_PEAK_CEILING)->tflops[HB_RATE_BF16] == 708);
	/* other boards under similar names */
	assert_null(hb_peaks__find(p, "NVIDIA A100-SXM4-40GB", HB_PEAK_SHEET));
	assert_null(hb_peaks__find(p, "NVIDIA H100 PCIe", HB_PEAK_SHEET));
	assert_null(hb_peaks__find(p, "NVIDIA H100 NVL", HB_PEAK_SHEET));
	assert_null(hb_peaks__find(p, "NVIDIA GH200 480GB", HB_PEAK_SHEET));
	assert_null(hb_peaks__find(p, "NVIDIA GB200", HB_PEAK_SHEET));
	assert_null(hb_peaks__find(p, "", HB_PEAK_SHEET));

	assert_int_equal(hb_peaks__add_text(p, "mine", "device *H200 peak hbm=1\r\n# more\n", 32, &e), 0);
	assert_true(hb_peaks__find(p, "NVIDIA H200", HB_PEAK_SHEET)->memory == 1); /* the user's come first */
	hb_peaks__free(p);
}

static void files_that_are_no_peaks(void **state)
{
	static const char *const bad[][2] = {
	    {"device X peak bf16=1 bf17=2", "f:1: expected KEY=NUMBER"},
	    {"\n\ndevice X peak bf16", "f:3: expected KEY=NUMBER"},
	    {"device X peak bf16=-1", "found 'bf16=-1'"},
	    {"device X peak bf16=0", "KEY=NUMBER"},
	    {"device X peak bf16=1e3", "KEY=NUMBER"},
	    {"device X peak bf16=nan", "KEY=NUMBER"},
	    {"device X peak sms=1.5", "number of multiprocessors"},
	    {"device X", "'peak' or 'ceiling', found the end of the line"},
	    {"device", "name of a device"},
	    {"gpu X peak bf16=1", "'device', found 'gpu'"},
	    {"device \"X peak bf16=1", "a closing quote"},
	    {"device *a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a peak bf16=1", "16 *"},
	    {"device X peak # bf16=1", "KEY=NUMBER"},
	};
	struct hb_peaks *p = hb_peaks__new();

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct hb_error e = {0};

		assert_true(hb_peaks__add_text(p, "f", bad[i][0], strlen(bad[i][0]), &e) < 0);
		if (!strstr(e.text, bad[i][1]))
			fail_msg("'%s' gives: %s", bad[i][0], e.text);
		assert_int_equal(hb_peaks__count(p), 0);
	}
	hb_peaks__free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(products),
	    cmocka_unit_test(attention),
	    cmocka_unit_test(latent_attention),
	    cmocka_unit_test(deltanet),
	    cmocka_unit_test(experts),
	    cmocka_unit_test(state_space),
	    cmocka_unit_test(collectives),
	    cmocka_unit_test(every_formula_says_what_it_is),
	    cmocka_unit_test(page_is_printed_from_them),
	    cmocka_unit_test(operators_that_multiply),
	    cmocka_unit_test(products_of_narrow_types),
	    cmocka_unit_test(attention_needs_its_mask),
	    cmocka_unit_test(paged_attention_needs_its_step),
	    cmocka_unit_test(element_by_element),
	    cmocka_unit_test(what_collectives_say),
	    cmocka_unit_test(texts_that_are_no_lists),
	    cmocka_unit_test(steps),
	    cmocka_unit_test(models),
	    cmocka_unit_test(no_models),
	    cmocka_unit_test(built_in_peaks),
	    cmocka_unit_test(files_that_are_no_peaks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
