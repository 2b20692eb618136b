/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analysis/model/roof_rule.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_ELEMS(a) (sizeof(a) / sizeof(*(a)))
#define SIZE_MOST  9007199254740992.0
#define NONE	   0xff

enum out { /* what an operator makes besides what it writes into */
	   OUT_NONE,
	   OUT_SAME, /* of the sizes and type that its inputs have together */
	   OUT_BOOL,
};

struct call {
	const struct hb_roof_rule *r;
	const struct hb_roof_operands *o;
	const char *values;
	const struct hb_roof_step *step;
	enum hb_roof_kind *kind;
	struct hb_roof_in *in;
};

struct hb_roof_rule {
	const char *op;
	enum hb_roof_why (*fill)(const struct call *c);
	uint16_t reads, writes; /* pointwise: inputs, as bits */
	uint8_t kind;
	uint8_t a, b, c, d; /* inputs: what each is says `fill`; NONE: it has no such */
	uint8_t out;
};

static const struct hb_roof_operand *operand(const struct call *c, unsigned i)
{
	static const struct hb_roof_operand none;

	return i < c->o->n ? &c->o->of[i] : &none;
}

static void set(const struct call *c, enum hb_roof_size z, double v)
{
	c->in->size[z] = v < SIZE_MOST ? v : SIZE_MOST;
}

static double bytes_of(const struct hb_roof_operand *o)
{
	return o->list ? 0 : hb_dtype__bytes(o->type, hb_roof__elements(o));
}

static void set_types(const struct call *c, enum hb_dtype in, enum hb_dtype weight, enum hb_dtype out)
{
	c->in->in = (uint8_t)in;
	c->in->weight = (uint8_t)weight;
	c->in->out = (uint8_t)out;
	/* Narrow weights are widened for wide activations. */
	c->in->rate = (uint8_t)hb_dtype__rate(hb_dtype__bits(in) >= hb_dtype__bits(weight) ? in : weight);
}

/* ---- matrix products ---- */

/* M and K from the last two sizes of a, with those before as the batch (matmul) or as more rows (linear). */
static enum hb_roof_why product(const struct call *c, bool transposed)
{
	const struct hb_roof_operand *a = operand(c, c->r->a), *b = operand(c, c->r->b),
				     *bias = operand(c, c->r->c);
	double rows, inner;

	if (a->n < 2 || b->n < 2 || (transposed && b->n != 2))
		return HB_ROOF_NO_SHAPES;
	if (!a->type || !b->type)
		return HB_ROOF_NO_TYPES;
	inner = a->dim[a->n - 1];
	rows = transposed || b->n == 2 ? hb_roof__elements(a) / (inner > 0 ? inner : 1) : a->dim[a->n - 2];
	if (inner != b->dim[b->n - (transposed ? 1 : 2)] ||
	    (b->n == 3 && (a->n != 3 || a->dim[0] != b->dim[0])) || b->n > 3)
		return HB_ROOF_ODD_SHAPES;
	set(c, HB_ROOF_M, rows);
	set(c, HB_ROOF_K, inner);
	set(c, HB_ROOF_N, b->dim[b->n - (transposed ? 2 : 1)]);
	if (b->n == 3)
		set(c, HB_ROOF_BATCH, b->dim[0]);
	if (c->r->c != NONE && bias->n)
		set(c, HB_ROOF_BIAS, hb_roof__elements(bias));
	set_types(c, a->type, b->type, a->type);
	return HB_ROOF_MODELLED;
}

static enum hb_roof_why fill_mm(const struct call *c)
{
	return product(c, false);
}

static enum hb_roof_why fill_linear(const struct call *c)
{
	return product(c, true);
}

/* With scales at c and d. The result's type is a value of aten's, an input of vLLM's. */
static enum hb_roof_why fill_scaled(const struct call *c)
{
	bool aten = c->r->a == 0;
	const struct hb_roof_operand *out = operand(c, aten ? 6 : 0);
	enum hb_dtype type = !aten	  ? out->type
			     : out->known ? hb_dtype__of_scalar_type(out->value)
					  : HB_DTYPE_BF16;
	struct hb_roof_rule plain = *c->r;
	struct call without = *c;
	enum hb_roof_why why;

	plain.c = NONE;
	without.r = &plain;
	why = product(&without, false);
	set(c, HB_ROOF_SCALES, bytes_of(operand(c, c->r->c)) + bytes_of(operand(c, c->r->d)));
	c->in->out = (uint8_t)(type ? type : HB_DTYPE_BF16);
	return why;
}

/* Of a layer's experts in one operator: a: tokens [T, K], b: the first weights [E, 2 I, K], c: the second [E,
 * K, I], d: which experts [T, k]. Both products as one, three times I wide. */
static enum hb_roof_why fill_experts(const struct call *c)
{
	const struct hb_roof_operand *t = operand(c, c->r->a), *w = operand(c, c->r->b),
				     *v = operand(c, c->r->c), *ids = operand(c, c->r->d);

	if (t->n != 2 || w->n != 3 || v->n != 3 || ids->n != 2)
		return HB_ROOF_NO_SHAPES;
	if (!t->type || !w->type)
		return HB_ROOF_NO_TYPES;
	if (w->dim[2] != t->dim[1] || v->dim[2] * 2 != w->dim[1]) /* packed: two in a byte, or the like */
		return HB_ROOF_ODD_SHAPES;
	set(c, HB_ROOF_TOKENS, t->dim[0]);
	set(c, HB_ROOF_K, t->dim[1]);
	set(c, HB_ROOF_N, 3 * v->dim[2]);
	set(c, HB_ROOF_EXPERTS, w->dim[0]);
	set(c, HB_ROOF_TOP_K, ids->dim[1]);
	set_types(c, t->type, w->type, t->type);
	return HB_ROOF_MODELLED;
}

/* ---- attention ---- */

/* q, k and v are inputs 0 to 2. `heads_at`, `length_at`: which of their four sizes. */
static enum hb_roof_why attention(const struct call *c, unsigned heads_at, unsigned length_at, bool causal)
{
	const struct hb_roof_operand *q = operand(c, 0), *k = operand(c, 1), *v = operand(c, 2);
	double n, length;

	if (q->n != 4 || k->n != 4 || v->n != 4) /* several lengths one after the other: which, is not told */
		return HB_ROOF_NO_SHAPES;
	if (!q->type || !k->type)
		return HB_ROOF_NO_TYPES;
	n = q->dim[0];
	length = q->dim[length_at];
	set(c, HB_ROOF_Q, n * length);
	set(c, HB_ROOF_KV, n * k->dim[length_at]);
	set(c, HB_ROOF_PAIRS, n * length * k->dim[length_at]);
	set(c, HB_ROOF_SELF, causal ? n * length * length : 0);
	set(c, HB_ROOF_HEADS, q->dim[heads_at]);
	set(c, HB_ROOF_KV_HEADS, k->dim[heads_at]);
	set(c, HB_ROOF_D_K, q->dim[3]);
	set(c, HB_ROOF_D_V, v->dim[3]);
	set_types(c, q->type, k->type, q->type);
	return HB_ROOF_MODELLED;
}

/* PyTorch's: [sequences, heads, length, size]; a: whether it is causal. */
static enum hb_roof_why fill_sdpa(const struct call *c)
{
	const struct hb_roof_operand *causal = operand(c, c->r->a);

	return causal->known ? attention(c, 1, 2, causal->value != 0) : HB_ROOF_NO_MASK;
}

/* FlashAttention's: [sequences, length, heads, size]. */
static enum hb_roof_why fill_flash(const struct call *c)
{
	const struct hb_roof_operand *causal = operand(c, c->r->a);

	return causal->known ? attention(c, 2, 1, causal->value != 0) : HB_ROOF_NO_MASK;
}

/* vLLM's: [tokens, heads, size]; which tokens belong together, and the keys of before, are the step's to
 * tell. */
static enum hb_roof_why fill_paged(const struct call *c)
{
	const struct hb_roof_operand *q = operand(c, 0), *k = operand(c, 1), *v = operand(c, 2);

	if (q->n != 3 || k->n != 3 || v->n != 3)
		return HB_ROOF_NO_SHAPES;
	if (!q->type || !k->type)
		return HB_ROOF_NO_TYPES;
	if (!c->step || !hb_roof__step_attention(c->step, c->step->window, c->in))
		return HB_ROOF_NO_STEP;
	set(c, HB_ROOF_HEADS, q->dim[1]);
	set(c, HB_ROOF_KV_HEADS, k->dim[1]);
	set(c, HB_ROOF_D_K, q->dim[2]);
	set(c, HB_ROOF_D_V, v->dim[2]);
	set_types(c, q->type, k->type, q->type);
	return HB_ROOF_MODELLED;
}

/* ---- element by element ---- */

static bool is_float(enum hb_dtype t)
{
	return hb_dtype__rate(t) != HB_RATE_NONE && t != HB_DTYPE_INT8;
}

/* PyTorch's promotion, as far as sizes go: floats before integers, wide before narrow, tensors before
 * numbers. */
static enum hb_dtype promoted(const struct hb_roof_operands *o, unsigned reads)
{
	enum hb_dtype type = HB_DTYPE_NONE;

	for (int numbers = 0; numbers < 2; numbers++)
		for (unsigned i = 0; i < o->n; i++) {
			enum hb_dtype t = o->of[i].type;

			if (!(reads & 1u << i) || !t || (o->of[i].n == 0) != numbers)
				continue;
			if (numbers && type) { /* a number makes floats of integers, and nothing wider */
				if (is_float(t) && !is_float(type))
					type = HB_DTYPE_FP32;
			} else if (is_float(t) > is_float(type) ||
				   (is_float(t) == is_float(type) &&
				    hb_dtype__bits(t) > hb_dtype__bits(type))) {
				type = t;
			}
		}
	return type;
}

static double together(const struct hb_roof_operands *o, unsigned reads)
{
	double dim[HB_ROOF_DIMS], n = 1;

	for (unsigned d = 0; d < HB_ROOF_DIMS; d++)
		dim[d] = 1;
	for (unsigned i = 0; i < o->n; i++)
		for (unsigned d = 0; (reads & 1u << i) && d < o->of[i].n; d++) {
			double v = o->of[i].dim[o->of[i].n - 1 - d];

			dim[d] = v > dim[d] || v == 0 ? v : dim[d];
		}
	for (unsigned d = 0; d < HB_ROOF_DIMS; d++)
		n *= dim[d];
	return n;
}

static enum hb_roof_why fill_pointwise(const struct call *c)
{
	enum hb_dtype out = c->r->out == OUT_BOOL ? HB_DTYPE_BOOL : promoted(c->o, c->r->reads);
	double read = 0, written = 0;
	bool any = false;

	for (unsigned i = 0; i < c->o->n && i < 16; i++) {
		const struct hb_roof_operand *o = operand(c, i);

		if (!((c->r->reads | c->r->writes) & 1u << i))
			continue;
		if (o->list || (o->n && !o->type))
			return o->list ? HB_ROOF_NO_SHAPES : HB_ROOF_NO_TYPES;
		any = any || o->n;
		if (c->r->reads & 1u << i)
			read += bytes_of(o);
		if (c->r->writes & 1u << i)
			written += bytes_of(o);
	}
	if (!any)
		return HB_ROOF_NO_SHAPES;
	if (c->r->out != OUT_NONE)
		written += hb_dtype__bytes(out, together(c->o, c->r->reads));
	set(c, HB_ROOF_READ, read);
	set(c, HB_ROOF_WRITTEN, written);
	c->in->in = (uint8_t)promoted(c->o, c->r->reads | c->r->writes);
	c->in->out = (uint8_t)out;
	return HB_ROOF_MODELLED;
}

/* ---- collectives ---- */

/* The value of a member, as text; empty when there is none. */
static const char *member(const char *json, const char *key, char *buf, size_t size)
{
	char look[24];
	const char *s, *end;

	snprintf(look, sizeof(look), "\"%s\":", key);
	s = strstr(json, look);
	*buf = 0;
	if (!s)
		return buf;
	s += strlen(look);
	s += *s == '"';
	end = s + strcspn(s, "\",}");
	snprintf(buf, size, "%.*s", (int)(end - s < 255 ? end - s : 255), s);
	return buf;
}

static double count_in(const char *json, const char *key)
{
	char buf[32];
	double v = strtod(member(json, key, buf, sizeof(buf)), NULL);

	return v > 0 && v < SIZE_MOST ? v : 0;
}

bool hb_roof__collective(const char *values, struct hb_roof_collective *o)
{
	static const struct {
		const char *word;
		uint8_t kind;
	} words[] = {{"reduce_scatter", HB_ROOF_SHARE_OUT},
		     {"allreduce", HB_ROOF_ALL_REDUCE},
		     {"all_reduce", HB_ROOF_ALL_REDUCE},
		     {"allgather", HB_ROOF_SHARE_OUT},
		     {"all_gather", HB_ROOF_SHARE_OUT},
		     {"alltoall", HB_ROOF_SHARE_OUT},
		     {"all_to_all", HB_ROOF_SHARE_OUT},
		     {"broadcast", HB_ROOF_SEND},
		     {"reduce", HB_ROOF_SEND},
		     {"send", HB_ROOF_SEND},
		     {"recv", HB_ROOF_SEND}};
	char type[32], seq[32];
	size_t i = 0;

	*o = (struct hb_roof_collective){.in = count_in(values, "in"), .out = count_in(values, "out")};
	member(values, "collective", o->name, sizeof(o->name));
	member(values, "group", o->group, sizeof(o->group));
	member(values, "dtype", type, sizeof(type));
	member(values, "seq", seq, sizeof(seq));
	o->seq = *seq >= '0' && *seq <= '9' ? strtoull(seq, NULL, 10) + 1 : 0;
	o->ranks = (unsigned)count_in(values, "ranks");
	o->type = hb_dtype__of_name(type, strlen(type));
	o->message = o->type ? hb_dtype__bytes(o->type, o->in > o->out ? o->in : o->out) : 0;
	while (i < N_ELEMS(words) && !strstr(o->name, words[i].word))
		i++;
	o->modelled = i < N_ELEMS(words);
	o->kind = o->modelled ? words[i].kind : 0;
	return *o->name != 0;
}

static enum hb_roof_why fill_collective(const struct call *c)
{
	struct hb_roof_collective o;

	if (!hb_roof__collective(c->values, &o))
		return HB_ROOF_NO_SHAPES;
	if (!o.modelled)
		return HB_ROOF_NO_FORMULA;
	if (!o.type)
		return HB_ROOF_NO_TYPES;
	*c->kind = o.kind;
	set(c, HB_ROOF_MESSAGE, o.message);
	set(c, HB_ROOF_RANKS, o.ranks);
	c->in->in = (uint8_t)o.type;
	return hb_roof__missing(*c->kind, c->in) == HB_ROOF_RANKS ? HB_ROOF_NO_RANKS : HB_ROOF_MODELLED;
}

/* ---- the table ---- */

/* a, b, c, d: inputs */
#define RULE(name, k, f, ia, ib, ic, id)                                                                     \
	{                                                                                                    \
		.op = name, .kind = k, .fill = f, .a = ia, .b = ib, .c = ic, .d = id                         \
	}
#define MM(op, a, b, c)	       RULE(op, HB_ROOF_GEMM, fill_mm, a, b, c, NONE)
#define LINEAR(op, a, b, c)    RULE(op, HB_ROOF_GEMM, fill_linear, a, b, c, NONE)
#define SCALED(op, a, b, c, d) RULE(op, HB_ROOF_GEMM, fill_scaled, a, b, c, d)
#define EXPERTS(op)	       RULE(op, HB_ROOF_MOE, fill_experts, 0, 1, 2, 4)
#define ATTN(op, fill, mask)   RULE(op, HB_ROOF_ATTENTION, fill, mask, NONE, NONE, NONE)
#define EACH(name, r, w, o)                                                                                  \
	{                                                                                                    \
		.op = name, .kind = HB_ROOF_POINTWISE, .fill = fill_pointwise, .reads = r, .writes = w,      \
		.out = o                                                                                     \
	}
#define UNARY(name)   EACH("aten::" name, 1, 0, OUT_SAME), EACH("aten::" name "_", 1, 1, OUT_NONE)
#define BINARY(name)  EACH("aten::" name, 3, 0, OUT_SAME), EACH("aten::" name "_", 3, 1, OUT_NONE)
#define COMPARE(name) EACH("aten::" name, 3, 0, OUT_BOOL)

/* Numbers are those of the inputs in the operator's schema: native_functions.yaml of PyTorch,
 * torch_bindings.cpp and the Python ops of vLLM, flash_attn_interface.py of FlashAttention. */
static const struct hb_roof_rule rules[] = {
    MM("aten::mm", 0, 1, NONE),
    MM("aten::bmm", 0, 1, NONE),
    MM("aten::matmul", 0, 1, NONE),
    MM("aten::addmm", 1, 2, 0),
    MM("aten::baddbmm", 1, 2, 0),
    MM("aten::_addmm_activation", 1, 2, 0),
    LINEAR("aten::linear", 0, 1, 2),
    LINEAR("vllm::rocm_unquantized_gemm", 0, 1, 2),
    SCALED("aten::_scaled_mm", 0, 1, 2, 3),
    SCALED("_C::cutlass_scaled_mm", 1, 2, 3, 4),
    EXPERTS("vllm::inplace_fused_experts"),
    EXPERTS("vllm::outplace_fused_experts"),
    ATTN("aten::scaled_dot_product_attention", fill_sdpa, 5),
    ATTN("aten::_scaled_dot_product_flash_attention", fill_sdpa, 4),
    ATTN("aten::_scaled_dot_product_efficient_attention", fill_sdpa, 6),
    ATTN("aten::_scaled_dot_product_cudnn_attention", fill_sdpa, 6),
    ATTN("aten::_flash_attention_forward", fill_flash, 8),
    ATTN("flash_attn::_flash_attn_forward", fill_flash, 5),
    ATTN("vllm::unified_attention", fill_paged, NONE),
    ATTN("vllm::unified_attention_with_output", fill_paged, NONE),
    RULE("record_param_comms", HB_ROOF_ALL_REDUCE, fill_collective, NONE, NONE, NONE, NONE),
    /* normalised: the input and its weights in, as much as the input out */
    EACH("aten::native_layer_norm", 1 | 4 | 8, 0, OUT_SAME),
    EACH("aten::_softmax", 1, 0, OUT_SAME),
    EACH("aten::_log_softmax", 1, 0, OUT_SAME),
    EACH("_C::rms_norm", 2 | 4, 1, OUT_NONE),
    EACH("_C::fused_add_rms_norm", 1 | 2 | 4, 1 | 2, OUT_NONE),
    /* the gate and what it gates in, half of it out */
    EACH("_C::silu_and_mul", 2, 1, OUT_NONE),
    EACH("_C::gelu_and_mul", 2, 1, OUT_NONE),
    EACH("_C::gelu_tanh_and_mul", 2, 1, OUT_NONE),
    EACH("_C::rotary_embedding", 1 | 2 | 4, 2 | 4, OUT_NONE),
    EACH("aten::copy_", 2, 1, OUT_NONE),
    EACH("aten::fill_", 0, 1, OUT_NONE),
    EACH("aten::zero_", 0, 1, OUT_NONE),
    UNARY("silu"),
    UNARY("gelu"),
    UNARY("relu"),
    UNARY("tanh"),
    UNARY("sigmoid"),
    UNARY("neg"),
    UNARY("exp"),
    UNARY("log"),
    UNARY("cos"),
    UNARY("sin"),
    UNARY("sqrt"),
    UNARY("rsqrt"),
    UNARY("reciprocal"),
    UNARY("abs"),
    UNARY("pow"),
    UNARY("clamp"),
    UNARY("square"),
    BINARY("add"),
    BINARY("sub"),
    BINARY("mul"),
    BINARY("div"),
    BINARY("masked_fill"),
    BINARY("maximum"),
    BINARY("minimum"),
    BINARY("bitwise_and"),
    BINARY("logical_and"),
    COMPARE("eq"),
    COMPARE("ne"),
    COMPARE("lt"),
    COMPARE("le"),
    COMPARE("gt"),
    COMPARE("ge"),
};

const struct hb_roof_rule *hb_roof__rule(const char *op)
{
	for (size_t i = 0; i < N_ELEMS(rules); i++)
		if (strcmp(rules[i].op, op) == 0)
			return &rules[i];
	return NULL;
}

const char *hb_roof__rule_at(unsigned i, enum hb_roof_kind *kind)
{
	if (i >= N_ELEMS(rules))
		return NULL;
	*kind = (enum hb_roof_kind)rules[i].kind;
	return rules[i].op;
}

bool hb_roof__needs_step(const struct hb_roof_rule *r)
{
	return r->fill == fill_paged;
}

enum hb_roof_why hb_roof__fill(const struct hb_roof_rule *r, const struct hb_roof_operands *o,
			       const char *values, const struct hb_roof_step *step, enum hb_roof_kind *kind,
			       struct hb_roof_in *in)
{
	struct call c = {.r = r, .o = o, .values = values, .step = step, .kind = kind, .in = in};
	enum hb_roof_why why;

	memset(in, 0, sizeof(*in));
	*kind = (enum hb_roof_kind)r->kind;
	why = r->fill(&c);
	if (why == HB_ROOF_MODELLED && hb_roof__missing(*kind, in) != HB_ROOF_SIZE_COUNT)
		why = HB_ROOF_ODD_SHAPES; /* an empty tensor */
	return why;
}

const char *hb_roof__why(enum hb_roof_why w)
{
	static const char *const texts[HB_ROOF_WHYS] = {
	    [HB_ROOF_MODELLED] = "",
	    [HB_ROOF_NO_LAUNCH] = "the call that launched it is not in the window",
	    [HB_ROOF_GRAPH] = "a graph launched it, and what it was captured from is not told",
	    [HB_ROOF_NO_OPERATOR] = "no operator with shapes called it",
	    [HB_ROOF_NO_FORMULA] = "there is no formula for its operator",
	    [HB_ROOF_NO_SHAPES] = "the shapes of its operator are not told",
	    [HB_ROOF_NO_TYPES] = "the types of its operator's inputs are not told",
	    [HB_ROOF_NO_MASK] = "whether its attention is causal is not told",
	    [HB_ROOF_NO_STEP] = "how many keys its attention reads is not told by the step",
	    [HB_ROOF_ODD_SHAPES] = "the shapes of its operator do not fit the formula",
	    [HB_ROOF_NO_RANKS] = "how many ranks took part is not told",
	};

	return w < HB_ROOF_WHYS ? texts[w] : "";
}
