/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Executions of operators and of calls into cuBLAS: which operations of a device each is made of. And what is
 * left. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/model/roof_private.h"

struct filled { /* what one way to call an operator comes to */
	struct hb_roof_in in;
	u32 id[4];
	enum hb_roof_why why;
	enum hb_roof_kind kind;
};

struct exec { /* of one device at a time */
	struct hb_roofline *r;
	const struct hb_device *v;
	struct roof_work *work; /* by operator, or by call */
	u32 *step;		/* by operator: of its first operation, index + 1 */
	u32 *in_step, *seen; /* by step: attentions whose sizes are the step's; those that were looked at */
	struct filled once;  /* looked at anew each time */
	struct filled *filled;
	u32 n_filled, cap_filled;
	struct hb_map *by_ids;
};

/* Work on the device's memory: kernels, memsets, and copies inside of it. */
static bool counts(const struct hb_device_op *o)
{
	return o->kind == HB_DEVKIND_KERNEL || o->kind == HB_DEVKIND_MEMSET || o->copy == HB_COPY_DTOD;
}

/* A graph's operations belong to whoever captured them, not to whoever launches it. */
static u32 launch_of(const struct hb_device_op *o)
{
	return o->launch && !o->graph ? o->launch - 1 : UINT32_MAX;
}

/* ---- operators ---- */

static void fill(const struct exec *x, const struct roof_op *o, const struct hb_roof_step *step,
		 struct filled *f)
{
	const struct hb_window *w = x->r->w;
	struct hb_roof_operands in;

	f->why = HB_ROOF_NO_SHAPES;
	if (!o->shapes && !o->values)
		return;
	if (!hb_roof__operands(o->shapes ? hb_window__string(w, o->shapes) : "[]",
			       hb_window__string(w, o->types), hb_window__string(w, o->values), &in))
		return;
	f->why = hb_roof__fill(o->rule, &in, hb_window__string(w, o->values), step, &f->kind, &f->in);
}

/* With a configuration, and as many attentions in the step as it has layers of such: that of the layer whose
 * turn it is. */
static double window_of(struct exec *x, u32 step)
{
	const struct hb_llm *m = x->r->o.llm;
	u32 n = 0, turn = x->seen[step]++;
	double window = 0;

	for (u32 i = 0; m && i < m->layers; i++) {
		if (m->layer[i] != HB_LLM_FULL && m->layer[i] != HB_LLM_SLIDING)
			continue;
		if (n++ == turn && m->layer[i] == HB_LLM_SLIDING)
			window = m->window;
	}
	return n == x->in_step[step] ? window : 0;
}

/* Most operators are called in few ways; those whose sizes are the step's are looked at each time. */
static const struct filled *filled_of(struct exec *x, const struct roof_op *o, u32 step)
{
	const u32 id[4] = {o->name, o->shapes, o->types, o->values};
	u64 key = hb_hash_bytes(id, sizeof(id)), *slot;
	struct filled *f;

	if (step && hb_roof__needs_step(o->rule)) {
		struct hb_roof_step s = x->r->steps[step - 1].s;

		memset(&x->once, 0, sizeof(x->once));
		s.window = window_of(x, step - 1);
		fill(x, o, &s, &x->once);
		return &x->once;
	}
	while ((slot = hb_map__slot(x->by_ids, key, NULL)) && *slot &&
	       memcmp(x->filled[*slot - 1].id, id, sizeof(id)) != 0)
		key++;
	if (!slot)
		return NULL;
	if (*slot)
		return &x->filled[*slot - 1];
	f = hb_roof__push(&x->filled, &x->n_filled, &x->cap_filled, sizeof(*f));
	if (!f)
		return NULL;
	*slot = x->n_filled;
	memcpy(f->id, id, sizeof(id));
	fill(x, o, NULL, f);
	return f;
}

static int emit_operator(struct exec *x, u32 i)
{
	struct hb_roofline *r = x->r;
	const struct filled *f = filled_of(x, &r->ops[i], x->step[i]);
	struct hb_roof_row row = {.name = hb_window__string(r->w, r->ops[i].name),
				  .basis = HB_ROOF_BY_OPERATOR,
				  .device = x->v->index};

	if (!f)
		return -ENOMEM;
	r->ops[i].why = (u8)f->why;
	if (f->why != HB_ROOF_MODELLED)
		return 0;
	row.kind = f->kind;
	row.in = f->in;
	return hb_roof__count(r, &row, &x->work[i]);
}

static int operators_of(struct exec *x)
{
	struct hb_roofline *r = x->r;
	int rc = 0;

	memset(x->work, 0, r->n_ops * sizeof(*x->work));
	memset(x->in_step, 0, r->n_steps * sizeof(*x->in_step));
	memset(x->seen, 0, r->n_steps * sizeof(*x->seen));
	for (u32 i = 0; i < x->v->n_ops; i++) {
		u32 l = counts(&x->v->op[i]) ? launch_of(&x->v->op[i]) : UINT32_MAX, op;

		if (l == UINT32_MAX || !r->op_of[l])
			continue;
		op = r->op_of[l] - 1;
		if (!x->work[op].first) {
			x->step[op] = r->n_steps ? r->step_of[l] : 0;
			if (x->step[op] && hb_roof__needs_step(r->ops[op].rule))
				x->in_step[x->step[op] - 1]++;
		}
		hb_roof__gather(&x->work[op], &x->v->op[i]);
	}
	for (u32 i = 0; !rc && i < r->n_ops; i++)
		if (x->work[i].first)
			rc = emit_operator(x, i);
	for (u32 i = 0; !rc && i < x->v->n_ops; i++) {
		u32 l = counts(&x->v->op[i]) ? launch_of(&x->v->op[i]) : UINT32_MAX;

		if (l != UINT32_MAX && r->op_of[l])
			r->done[x->v->index][i] = r->ops[r->op_of[l] - 1].why == HB_ROOF_MODELLED;
	}
	return rc;
}

int hb_roof__operators(struct hb_roofline *r)
{
	struct exec x = {.r = r};
	int rc = 0;

	if (!r->n_ops)
		return 0;
	x.work = malloc(r->n_ops * sizeof(*x.work));
	x.step = calloc(r->n_ops, sizeof(*x.step));
	x.in_step = calloc((size_t)r->n_steps + 1, sizeof(*x.in_step));
	x.seen = calloc((size_t)r->n_steps + 1, sizeof(*x.seen));
	x.by_ids = hb_map__new();
	if (!x.work || !x.step || !x.in_step || !x.seen || !x.by_ids)
		rc = -ENOMEM;
	while (!rc && (x.v = hb_devices__at(r->d, x.v ? x.v->index + 1 : 0)))
		rc = operators_of(&x);
	hb_map__free(x.by_ids);
	free(x.filled);
	free(x.work);
	free(x.step);
	free(x.in_step);
	free(x.seen);
	return rc;
}

/* ---- calls ---- */

/* cuBLAS may launch more than the product: a memset before, a kernel that adds up after. */
static bool belongs(struct hb_roofline *r, const struct hb_device_op *o, const struct roof_work *k)
{
	enum roof_family f;

	if (o->kind != HB_DEVKIND_KERNEL)
		return false;
	f = hb_roof__family(r, o->name);
	return k->first ? f == ROOF_GEMM_TAIL : f == ROOF_GEMM;
}

static int calls_of(struct exec *x)
{
	struct hb_roofline *r = x->r;
	int rc = 0;

	memset(x->work, 0, r->n_calls * sizeof(*x->work));
	for (u32 i = 0; i < x->v->n_ops; i++) {
		const struct hb_device_op *o = &x->v->op[i];
		u32 l = r->done[x->v->index][i] ? UINT32_MAX : launch_of(o), c;

		if (l == UINT32_MAX || !r->call_of[l])
			continue;
		c = r->call_of[l] - 1;
		if (!r->calls[c].type || !belongs(r, o, &x->work[c]))
			continue;
		hb_roof__gather(&x->work[c], o);
		r->done[x->v->index][i] = 1;
	}
	for (u32 i = 0; !rc && i < r->n_calls; i++) {
		const struct roof_call *c = &r->calls[i];
		struct hb_roof_row row = {.name = hb_window__string(r->w, c->name),
					  .basis = HB_ROOF_BY_CALL,
					  .kind = HB_ROOF_GEMM,
					  .device = x->v->index};

		if (!x->work[i].first)
			continue;
		row.in.size[HB_ROOF_M] = c->m;
		row.in.size[HB_ROOF_N] = c->n;
		row.in.size[HB_ROOF_K] = c->k;
		row.in.size[HB_ROOF_BATCH] = c->batch > 1 ? c->batch : 0;
		row.in.in = row.in.weight = row.in.out = (u8)c->type;
		row.in.rate = (u8)hb_dtype__rate(c->type);
		rc = hb_roof__count(r, &row, &x->work[i]);
	}
	return rc;
}

int hb_roof__calls(struct hb_roofline *r)
{
	struct exec x = {.r = r};
	int rc = 0;

	if (!r->n_calls)
		return 0;
	x.work = malloc(r->n_calls * sizeof(*x.work));
	if (!x.work)
		rc = -ENOMEM;
	while (!rc && (x.v = hb_devices__at(r->d, x.v ? x.v->index + 1 : 0)))
		rc = calls_of(&x);
	free(x.work);
	return rc;
}

/* ---- what is left ---- */

static enum hb_roof_why why(const struct hb_roofline *r, const struct hb_device_op *o, u32 *op)
{
	u32 l = launch_of(o);

	*op = 0;
	if (l == UINT32_MAX)
		return o->launch ? HB_ROOF_GRAPH : HB_ROOF_NO_LAUNCH;
	if (!r->n_ops)
		return HB_ROOF_NO_OPERATOR;
	if (r->op_of[l]) {
		*op = r->ops[r->op_of[l] - 1].name;
		return (enum hb_roof_why)r->ops[r->op_of[l] - 1].why;
	}
	*op = r->in_op[l];
	return *op ? HB_ROOF_NO_FORMULA : HB_ROOF_NO_OPERATOR;
}

static bool alike(const struct hb_roof_rest *a, const struct hb_roof_rest *b)
{
	return a->name == b->name && a->operator== b->operator&& a->why == b->why;
}

/* The row of what is like this, made when it is new; NULL: out of memory. */
static struct hb_roof_rest *row_of(struct hb_roofline *r, const struct hb_roof_rest *what)
{
	u64 *slot, key = hb_hash64((u64)what->name << 32 | what->operator) ^ what->why;
	struct hb_roof_rest *rest;

	while ((slot = hb_map__slot(r->rest_of, key, NULL)) && *slot) {
		rest = &r->rest[*slot - 1];
		if (alike(rest, what))
			return rest;
		key++;
	}
	rest = slot ? hb_roof__push(&r->rest, &r->n_rest, &r->cap_rest, sizeof(*rest)) : NULL;
	if (!rest)
		return NULL;
	*rest = *what;
	*slot = r->n_rest;
	return rest;
}

/* The few that come again and again are found without a map. */
struct recent {
	u32 at[1024]; /* index of rest + 1 */
};

static int leave(struct hb_roofline *r, const struct hb_device_op *o, struct recent *v)
{
	struct hb_roof_rest what = {.name = o->name}, *rest;
	u32 *at;

	what.why = why(r, o, &what.operator);
	at = &v->at[(what.name + 331 * what.why + 0x9e3779b1u * what.operator) & 1023];
	rest = *at ? &r->rest[*at - 1] : NULL;
	if (!rest || !alike(rest, &what)) {
		rest = row_of(r, &what);
		if (!rest)
			return -ENOMEM;
		*at = (u32)(rest - r->rest) + 1;
	}
	rest->count++;
	rest->total += o->end - o->begin;
	return 0;
}

static int cmp_rest(const void *a, const void *b)
{
	const struct hb_roof_rest *x = a, *y = b;

	if (x->total != y->total)
		return x->total > y->total ? -1 : 1;
	return x->name < y->name ? -1 : x->name > y->name;
}

static int rest_of(struct hb_roofline *r, const struct hb_device *v, struct recent *recent)
{
	struct hb_roof_counts *k = &r->counts;
	const u8 *done = r->done[v->index];

	for (u32 i = 0; i < v->n_ops; i++) {
		const struct hb_device_op *o = &v->op[i];

		if (o->kind != HB_DEVKIND_KERNEL)
			continue;
		k->kernels++;
		k->ns += o->end - o->begin;
		if (done[i]) {
			k->modelled++;
			k->modelled_ns += o->end - o->begin;
		} else if (leave(r, o, recent))
			return -ENOMEM;
	}
	return 0;
}

int hb_roof__rest(struct hb_roofline *r)
{
	struct recent recent = {0};
	const struct hb_device *v;

	r->counts.steps = r->n_steps;
	for (u32 d = 0; (v = hb_devices__at(r->d, d)); d++)
		if (rest_of(r, v, &recent))
			return -ENOMEM;
	if (r->n_rest)
		qsort(r->rest, r->n_rest, sizeof(*r->rest), cmp_rest);
	return 0;
}
