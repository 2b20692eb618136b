/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a model's configuration says of the kernels of a step. A layer makes its products in one order, and
 * the layers come one after the other; so where a step has exactly as many products, attentions and expert
 * kernels as its layers make, each kernel's place says what it is. Where the numbers differ, or the kernels
 * of one place differ from layer to layer, nothing is said.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/model/roof_private.h"

/* Parts of kernels' names, in any case of letters; the first one that fits. */
static const struct {
	const char *part;
	u8 family;
} families[] = {
    {"at::native", ROOF_OTHER},
    {"reshape_and_cache", ROOF_OTHER},
    {"concat_and_cache", ROOF_OTHER},
    {"kv_indices", ROOF_OTHER},
    {"kvcache", ROOF_OTHER},
    {"kv_cache", ROOF_OTHER},
    {"rotary", ROOF_OTHER},
    {"prepare_varlen", ROOF_OTHER},
    {"splitkreduce", ROOF_GEMM_TAIL},
    {"splitk_reduce", ROOF_GEMM_TAIL},
    {"matmul_ogs", ROOF_EXPERTS},
    {"fused_moe_kernel", ROOF_EXPERTS},
    {"grouped_gemm", ROOF_EXPERTS},
    {"group_gemm", ROOF_EXPERTS},
    {"moe_gemm", ROOF_EXPERTS},
    {"moe_", ROOF_OTHER},
    {"topk", ROOF_OTHER},
    {"gated_delta", ROOF_DELTANET},
    {"delta_rule", ROOF_DELTANET},
    {"chunk_scan", ROOF_SSD},
    {"chunk_state", ROOF_SSD},
    {"state_passing", ROOF_SSD},
    {"selective_scan", ROOF_SSD},
    {"selective_state", ROOF_SSD},
    {"reduce_segments", ROOF_ATTENTION},
    {"attention", ROOF_ATTENTION},
    {"flash", ROOF_ATTENTION},
    {"fmha", ROOF_ATTENTION},
    {"attn", ROOF_ATTENTION},
    {"mla_", ROOF_ATTENTION},
    {"gemm", ROOF_GEMM},
    {"cijk_", ROOF_GEMM},
    {"nvjet", ROOF_GEMM},
    {"gemv", ROOF_GEMM},
    {"cutlass", ROOF_GEMM},
    {"wvsplitk", ROOF_GEMM},
};

static int row_of(const char *name)
{
	for (size_t i = 0; i < sizeof(families) / sizeof(*families); i++)
		if (strcasestr(name, families[i].part))
			return (int)i;
	return -1;
}

/* By the kernel's own name; that of a frame which runs what its template arguments say
 * ("cutlass::device_kernel") by all of it. */
static enum roof_family family_of(const char *kernel)
{
	char own[512];
	size_t n = hb_kernel__own_name(kernel);
	int row;

	snprintf(own, sizeof(own), "%.*s", (int)(n < sizeof(own) ? n : sizeof(own) - 1), kernel);
	row = row_of(own);
	if (row < 0 || strcmp(families[row].part, "cutlass") == 0)
		row = row_of(kernel);
	return row < 0 ? ROOF_OTHER : (enum roof_family)families[row].family;
}

enum roof_family hb_roof__family(struct hb_roofline *r, u32 name)
{
	bool fresh;
	u64 *slot = hb_map__slot(r->family_of, name, &fresh);

	if (!slot)
		return family_of(hb_window__string(r->w, name));
	if (fresh)
		*slot = family_of(hb_window__string(r->w, name));
	return (enum roof_family) * slot;
}

/* ---- what a layer makes ---- */

struct slot { /* a part of a layer */
	const char *name;
	struct hb_roof_in in;
	enum hb_roof_kind kind;
};

struct plan { /* of one family in one step */
	struct slot *slot;
	u32 n, cap;
	bool oom;
};

struct shape { /* a way to lay out a layer: engines join some products into one */
	bool qkv, gate_up, head, router;
};

struct unit { /* one kernel, or several of a family one after the other */
	struct roof_work work;
	u32 first, n; /* of the step's kernels */
};

struct step { /* at which is looked */
	struct hb_roofline *r;
	const struct hb_llm *m;
	const struct hb_device *v;
	const struct hb_roof_step *s;
	double tp;
	const u32 *op; /* its kernels: operations of the device, not told otherwise */
	u32 n_ops;
	struct unit *unit; /* of the family that is looked at */
	u32 n_units;
};

static struct slot *add(struct plan *p, const char *name, enum hb_roof_kind kind)
{
	struct slot *s = hb_roof__push(&p->slot, &p->n, &p->cap, sizeof(*s));
	static struct slot none;

	p->oom |= !s;
	s = s ? s : &none;
	s->name = name;
	s->kind = kind;
	return s;
}

static void product(struct plan *p, const struct step *x, const char *name, double rows, double n, double k)
{
	struct slot *s = add(p, name, HB_ROOF_GEMM);

	s->in.size[HB_ROOF_M] = rows;
	s->in.size[HB_ROOF_N] = n;
	s->in.size[HB_ROOF_K] = k;
	s->in.size[HB_ROOF_SCALES] = x->m->scale_bytes * n * k;
	s->in.in = s->in.out = x->m->act;
	s->in.weight = x->m->weight;
	s->in.rate = (u8)hb_dtype__rate(x->m->weight == HB_DTYPE_FP8 ? HB_DTYPE_FP8 : x->m->act);
}

/* Devices that share a layer have a part of its heads each, and one at least. */
static double part_of(double n, double tp)
{
	return n >= tp ? n / tp : 1;
}

static bool has_experts(const struct hb_llm *m, u32 layer)
{
	return m->experts && layer >= m->first_dense;
}

static void products_of_layer(struct plan *p, const struct step *x, const struct shape *f, u32 layer)
{
	const struct hb_llm *m = x->m;
	double t = x->s->tokens, d = m->head_dim, q = part_of(m->heads, x->tp) * d,
	       kv = part_of(m->kv_heads, x->tp) * d;
	double inner = has_experts(m, layer) ? m->shared_inner / x->tp : m->inner / x->tp;

	if (f->qkv) {
		product(p, x, "qkv", t, q + 2 * kv, m->hidden);
	} else {
		product(p, x, "q", t, q, m->hidden);
		product(p, x, "k", t, kv, m->hidden);
		product(p, x, "v", t, kv, m->hidden);
	}
	product(p, x, "o", t, m->hidden, q);
	if (has_experts(m, layer) && f->router)
		product(p, x, "router", t, m->experts, m->hidden);
	if (inner > 0 && f->gate_up) {
		product(p, x, "gate_up", t, 2 * inner, m->hidden);
	} else if (inner > 0) {
		product(p, x, "gate", t, inner, m->hidden);
		product(p, x, "up", t, inner, m->hidden);
	}
	if (inner > 0)
		product(p, x, "down", t, m->hidden, inner);
}

static void products(struct plan *p, const struct step *x, const struct shape *f)
{
	double last =
	    x->s->prefill.seqs + x->s->decode.seqs; /* the head sees the last token of each sequence */

	for (u32 i = 0; i < x->m->layers; i++)
		products_of_layer(p, x, f, i);
	if (f->head)
		product(p, x, "head", last > 0 ? last : x->s->tokens, x->m->vocab / x->tp, x->m->hidden);
}

static void expert_slot(struct plan *p, const struct step *x, const char *name, double n, double k)
{
	const struct hb_llm *m = x->m;
	struct slot *s = add(p, name, HB_ROOF_MOE);

	s->in.size[HB_ROOF_TOKENS] = x->s->tokens;
	s->in.size[HB_ROOF_EXPERTS] = m->experts;
	s->in.size[HB_ROOF_TOP_K] = m->top_k;
	s->in.size[HB_ROOF_N] = n;
	s->in.size[HB_ROOF_K] = k;
	s->in.in = s->in.out = m->act;
	s->in.weight = m->expert_weight;
	s->in.rate = (u8)hb_dtype__rate(m->expert_weight == HB_DTYPE_FP8 ? HB_DTYPE_FP8 : m->act);
}

static void experts(struct plan *p, const struct step *x)
{
	const struct hb_llm *m = x->m;

	for (u32 i = 0; i < m->layers; i++) {
		if (!has_experts(m, i))
			continue;
		expert_slot(p, x, "experts_gate_up", 2 * m->expert_inner / x->tp, m->hidden);
		expert_slot(p, x, "experts_down", m->hidden, m->expert_inner / x->tp);
	}
	/* scales of the experts that are hit */
	for (u32 i = 0; i < p->n; i++) {
		struct hb_roof_in *in = &p->slot[i].in, one = *in;
		double weights;

		one.in = one.out = HB_DTYPE_NONE;
		weights = hb_roof__formula(HB_ROOF_MOE)->bytes(&one);
		if (hb_dtype__bits(in->weight))
			in->size[HB_ROOF_SCALES] =
			    weights * 8 / hb_dtype__bits(in->weight) * m->expert_scale_bytes;
	}
}

static void attentions(struct plan *p, const struct step *x)
{
	const struct hb_llm *m = x->m;

	for (u32 i = 0; i < m->layers; i++) {
		struct slot *s;

		if (m->layer[i] != HB_LLM_FULL && m->layer[i] != HB_LLM_SLIDING)
			continue;
		s = add(p, m->layer[i] == HB_LLM_SLIDING ? "attention_window" : "attention",
			m->kv_rank ? HB_ROOF_MLA : HB_ROOF_ATTENTION);
		if (!hb_roof__step_attention(x->s, m->layer[i] == HB_LLM_SLIDING ? m->window : 0, &s->in) ||
		    (m->kv_rank && x->s->prefill.seqs > 0)) /* in prefill keys and values are made first */
			s->kind = HB_ROOF_KINDS;
		s->in.size[HB_ROOF_HEADS] = part_of(m->heads, x->tp);
		s->in.size[HB_ROOF_KV_HEADS] = m->kv_rank ? 1 : part_of(m->kv_heads, x->tp);
		s->in.size[HB_ROOF_D_K] = m->kv_rank ? m->kv_rank + m->rope_dim : m->head_dim;
		s->in.size[HB_ROOF_D_V] = m->kv_rank ? m->kv_rank : m->head_dim;
		s->in.in = s->in.weight = s->in.out = m->act;
		s->in.rate = (u8)hb_dtype__rate(m->act);
	}
}

static void states(struct plan *p, const struct step *x, bool ssd)
{
	const struct hb_llm *m = x->m;
	bool chunks = x->s->prefill.q > x->s->prefill.seqs;

	for (u32 i = 0; i < m->layers; i++) {
		struct slot *s;

		if (m->layer[i] != (ssd ? HB_LLM_MAMBA : HB_LLM_LINEAR))
			continue;
		s = add(p, ssd ? "ssd" : "deltanet", ssd ? HB_ROOF_SSD : HB_ROOF_DELTANET);
		s->in.size[HB_ROOF_TOKENS] = x->s->prefill.q + x->s->decode.q;
		s->in.size[HB_ROOF_SEQS] = x->s->prefill.seqs + x->s->decode.seqs;
		s->in.size[HB_ROOF_HEADS] = part_of(ssd ? m->ssm_heads : m->lin_v_heads, x->tp);
		s->in.size[HB_ROOF_D_K] = ssd ? 0 : m->lin_d_k;
		s->in.size[HB_ROOF_D_V] = ssd ? m->ssm_head_dim : m->lin_d_v;
		s->in.size[HB_ROOF_GROUPS] = ssd ? part_of(m->ssm_groups, x->tp) : 0;
		s->in.size[HB_ROOF_D_STATE] = ssd ? m->ssm_state : 0;
		s->in.size[HB_ROOF_CHUNK] = !chunks ? 0 : ssd ? m->ssm_chunk : 64;
		s->in.in = s->in.out = s->in.state = m->act;
		s->in.rate = (u8)hb_dtype__rate(m->act);
	}
}

/* ---- what the step has ---- */

static void gather(struct step *x, enum roof_family family)
{
	bool runs = family != ROOF_GEMM && family != ROOF_EXPERTS;
	enum roof_family before = ROOF_OTHER;

	x->n_units = 0;
	for (u32 i = 0; i < x->n_ops; i++) {
		const struct hb_device_op *o = &x->v->op[x->op[i]];
		enum roof_family f = hb_roof__family(x->r, o->name);
		bool more =
		    x->n_units && ((family == ROOF_GEMM && f == ROOF_GEMM_TAIL && before == ROOF_GEMM) ||
				   (runs && f == family && before == family));

		before = f == ROOF_GEMM_TAIL ? ROOF_GEMM : f;
		if (!more && f != family)
			continue;
		if (!more)
			x->unit[x->n_units++] = (struct unit){.first = i};
		hb_roof__gather(&x->unit[x->n_units - 1].work, o);
		x->unit[x->n_units - 1].n++;
	}
}

/* Kernels of one place are the same in nearly all layers. A layer's slots begin where the first one's name
 * comes again. */
static bool alike(const struct step *x, const struct plan *p)
{
	u32 period = 1, same = 0, n = 0;

	while (period < p->n && strcmp(p->slot[period].name, p->slot[0].name) != 0)
		period++;
	for (u32 i = period; i < p->n; i++) {
		if (strcmp(p->slot[i].name, p->slot[i - period].name) != 0)
			continue;
		n++;
		same += x->unit[i].work.kernel == x->unit[i - period].work.kernel;
	}
	return same * 4 >= n * 3;
}

/* 1: there are rows of it. A part whose sizes are not all known has none. */
static int take(const struct step *x, const struct plan *p)
{
	int rc = 0, any = 0;

	for (u32 i = 0; !rc && i < p->n; i++) {
		const struct slot *s = &p->slot[i];
		struct hb_roof_row row = {.name = s->name,
					  .basis = HB_ROOF_BY_PLAN,
					  .kind = s->kind,
					  .in = s->in,
					  .device = x->v->index};

		if (s->kind == HB_ROOF_KINDS || hb_roof__missing(s->kind, &s->in) != HB_ROOF_SIZE_COUNT ||
		    !s->in.weight)
			continue;
		rc = hb_roof__count(x->r, &row, &x->unit[i].work);
		for (u32 k = 0; k < x->unit[i].n; k++)
			x->r->done[x->v->index][x->op[x->unit[i].first + k]] = 1;
		any = 1;
	}
	return rc ? rc : any;
}

/* 1: the plan fits, and says something. */
static int try(struct step *x, struct plan *p)
{
	int rc = p->oom ? -ENOMEM : 0;

	if (!rc && p->n && p->n == x->n_units && alike(x, p))
		rc = take(x, p);
	free(p->slot);
	return rc;
}

static int try_products(struct step *x)
{
	int rc = 0;

	gather(x, ROOF_GEMM);
	for (unsigned i = 0; !rc && i < 16; i++) {
		struct shape f = {.qkv = !(i & 1), .gate_up = !(i & 2), .head = !(i & 4), .router = !(i & 8)};
		struct plan p = {0};

		if (!x->m->experts && !f.router) /* the same again */
			continue;
		products(&p, x, &f);
		rc = try(x, &p);
	}
	return rc;
}

/* Products of layers that are laid out otherwise are not planned. */
static bool plain(const struct hb_llm *m)
{
	static const char *const one_up[] = {"gpt2",  "gpt_neox", "gptj", "opt",
					     "bloom", "falcon",	  "phi",  "starcoder2"};

	for (u32 i = 0; i < m->layers; i++)
		if (m->layer[i] != HB_LLM_FULL && m->layer[i] != HB_LLM_SLIDING)
			return false;
	for (size_t i = 0; i < sizeof(one_up) / sizeof(*one_up); i++)
		if (strcmp(m->type, one_up[i]) == 0)
			return false;
	return !m->kv_rank && m->head_dim && m->weight;
}

/* 1: what the configuration makes expect of a family is what there is. */
static int try_family(struct step *x, enum roof_family family)
{
	struct plan p = {0};

	gather(x, family);
	if (family == ROOF_EXPERTS)
		experts(&p, x);
	else if (family == ROOF_ATTENTION)
		attentions(&p, x);
	else
		states(&p, x, family == ROOF_SSD);
	return try(x, &p);
}

/* Without the kernels of its experts a model that has some is not the one that ran, or is not recognised:
 * then products could be taken for each other. */
static int look_at(struct step *x)
{
	static const enum roof_family others[] = {ROOF_ATTENTION, ROOF_DELTANET, ROOF_SSD};
	int rc = x->m->experts ? try_family(x, ROOF_EXPERTS) : 1;
	bool fits = rc > 0 && x->m->experts, go = rc > 0;

	if (go && plain(x->m)) {
		rc = try_products(x);
		fits = fits || rc > 0;
	}
	for (size_t i = 0; go && rc >= 0 && i < sizeof(others) / sizeof(*others); i++) {
		rc = try_family(x, others[i]);
		fits = fits || rc > 0;
	}
	x->r->counts.planned += rc >= 0 && fits;
	x->r->counts.unplanned += rc >= 0 && !fits;
	return rc < 0 ? rc : 0;
}

/* ---- steps of a device ---- */

static int look_at_device(struct hb_roofline *r, const struct hb_device *v)
{
	struct step x = {.r = r, .m = r->o.llm, .v = v, .tp = r->o.tp};
	struct hb_order *by = malloc(((size_t)v->n_ops + 1) * sizeof(*by));
	u32 *op = malloc(((size_t)v->n_ops + 1) * sizeof(*op)), n = 0, launches;
	const struct hb_launch *all = hb_devices__launches(r->d, &launches);
	int rc = by && op ? 0 : -ENOMEM;

	x.unit = malloc(((size_t)v->n_ops + 1) * sizeof(*x.unit));
	for (u32 i = 0; !rc && i < v->n_ops; i++) {
		const struct hb_launch *l = hb_devices__launch_of(r->d, &v->op[i]);

		if (v->op[i].kind == HB_DEVKIND_KERNEL && l && r->step_of[l - all] && !r->done[v->index][i])
			by[n++] = (struct hb_order){.key = r->step_of[l - all], .item = i};
	}
	rc = rc	      ? rc
	     : x.unit ? hb_order__sort(by, n)
		      : -ENOMEM; /* of a step they stay in the order of their begin */
	for (u32 i = 0, to; !rc && i < n; i = to) {
		x.n_ops = 0;
		for (to = i; to < n && by[to].key == by[i].key; to++)
			op[x.n_ops++] = by[to].item;
		x.op = op;
		x.s = &r->steps[by[i].key - 1].s;
		if (x.s->tokens > 0)
			rc = look_at(&x);
	}
	free(x.unit);
	free(by);
	free(op);
	return rc;
}

int hb_roof__plan(struct hb_roofline *r)
{
	const struct hb_device *v;
	int rc = 0;

	for (u32 i = 0; r->o.llm && r->n_steps && !rc && (v = hb_devices__at(r->d, i)); i++)
		rc = look_at_device(r, v);
	return rc;
}
