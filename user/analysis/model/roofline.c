/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Speed of light: takes records, and makes rows of what was executed. */
#include "analysis/model/roofline.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/model/roof_private.h"

void *hb_roof__push(void *array, u32 *n, u32 *cap, size_t size)
{
	void **a = array;

	if (*n == *cap) {
		u32 more = *cap ? *cap * 2 : 64;
		void *p = more > *cap ? realloc(*a, more * size) : NULL;

		if (!p)
			return NULL;
		*a = p;
		*cap = more;
	}
	return memset((char *)*a + (size_t)(*n)++ * size, 0, size);
}

/* ---- records ---- */

static int on_step(struct hb_roofline *r, const struct hb_record *rec, const struct hb_roof_step *s)
{
	struct roof_step *step = hb_roof__push(&r->steps, &r->n_steps, &r->cap_steps, sizeof(*step));

	if (!step)
		return -ENOMEM;
	step->at = (struct roof_span){.begin = rec->begin, .end = rec->ts, .group = rec->task->pid};
	step->s = *s;
	return 0;
}

static int on_op(struct hb_roofline *r, const struct hb_record *rec)
{
	const struct hb_rec_op *o = rec->data;
	struct hb_roof_step step;
	struct roof_op *op;
	bool fresh;
	u64 *rule;

	if (o->kind == HB_OPKIND_ANNOTATION)
		return hb_roof__step(hb_window__string(r->w, o->name), &step) ? on_step(r, rec, &step) : 0;
	if (o->kind != HB_OPKIND_CPU_OP)
		return 0;
	rule = hb_map__slot(r->rules, o->name, &fresh);
	op = rule ? hb_roof__push(&r->ops, &r->n_ops, &r->cap_ops, sizeof(*op)) : NULL;
	if (!op)
		return -ENOMEM;
	if (fresh)
		*rule = (uintptr_t)hb_roof__rule(hb_window__string(r->w, o->name));
	*op = (struct roof_op){.at = {.begin = rec->begin, .end = rec->ts, .group = rec->task_idx},
			       .name = o->name,
			       .shapes = o->shapes,
			       .types = o->types,
			       .values = o->values,
			       .rule = (const struct hb_roof_rule *)(uintptr_t)*rule};
	return 0;
}

static int on_call(struct hb_roofline *r, const struct hb_record *rec)
{
	const struct hb_rec_accel *a = rec->data;
	const struct hb_probe_row *row;
	struct roof_call *c;

	if (!a->gx || (a->flags & HB_AFLAG_ARGS))
		return 0;
	c = hb_roof__push(&r->calls, &r->n_calls, &r->cap_calls, sizeof(*c));
	row = hb_window__probe(r->w, a->probe);
	if (!c)
		return -ENOMEM;
	*c = (struct roof_call){.at = {.begin = rec->begin, .end = rec->ts, .group = rec->task_idx},
				.name = row->name,
				.m = a->gx,
				.n = a->gy,
				.k = a->gz,
				.batch = a->bx ? a->bx : 1};
	c->type =
	    strstr(hb_window__string(r->w, row->name), "Sgemm") ? HB_DTYPE_FP32 : hb_dtype__of_cuda(a->kind);
	return 0;
}

/* A field that has the tokens of a step begins a step, which lasts until the field is read again. */
static int on_field(struct hb_roofline *r, const struct hb_record *rec)
{
	static const char *const names[] = {"total_num_scheduled_tokens", "num_scheduled_tokens",
					    "num_input_tokens", "num_tokens"};
	const struct hb_rec_py_field *f = rec->data;
	const char *spec = hb_window__string(r->w, f->field), *dot = strrchr(spec, '.');
	struct hb_roof_step s = {0};
	struct hb_record at = *rec;
	bool is = false;
	double v;

	for (size_t i = 0; dot && i < sizeof(names) / sizeof(*names); i++)
		is = is || strcmp(dot + 1, names[i]) == 0;
	if (!is || !hb_field__number(f, &v) || v < 1 || v > 1e9)
		return 0;
	s.tokens = v;
	at.begin = at.ts; /* its end is set when all are known */
	return on_step(r, &at, &s);
}

static bool is_blas(const struct hb_roofline *r, const struct hb_rec_accel *a)
{
	return a->probe < r->n_probes && r->is_blas[a->probe];
}

static int on_records(void *ctx, const struct hb_records *b)
{
	int rc = 0;

	hb_each_bit (i, b->of[HB_TYPE_accel])
		if (is_blas(ctx, b->record[i].data))
			rc = rc ? rc : on_call(ctx, &b->record[i]);
	/* Both begin steps, which stay in the order of time. */
	hb_each_bit (i, b->of[HB_TYPE_op] | b->of[HB_TYPE_py_field]) {
		bool op = b->record[i].type == HB_TYPE_op;

		rc = rc ? rc : op ? on_op(ctx, &b->record[i]) : on_field(ctx, &b->record[i]);
	}
	return rc;
}

/* Steps of fields have no end of their own: it is the next one of the process. */
static void end_steps(struct hb_roofline *r)
{
	for (u32 i = 0; i < r->n_steps; i++) {
		struct roof_span *s = &r->steps[i].at;
		u32 k = i + 1;

		if (s->end > s->begin)
			continue;
		while (k < r->n_steps &&
		       (r->steps[k].at.group != s->group || r->steps[k].at.end > r->steps[k].at.begin))
			k++;
		s->end = k < r->n_steps ? r->steps[k].at.begin : hb_window__info(r->w)->end_ts;
	}
}

/* ---- rows ---- */

void hb_roof__gather(struct roof_work *k, const struct hb_device_op *o)
{
	u64 from = o->begin > k->until ? o->begin : k->until;

	k->first = k->first ? k->first : o;
	if (o->end > from)
		k->ns += o->end - from;
	if (o->end > k->until)
		k->until = o->end;
	if (o->kind == HB_DEVKIND_KERNEL && (!k->kernel || o->end - o->begin > k->longest)) {
		k->longest = o->end - o->begin;
		k->kernel = o->name;
	}
}

static bool same(const struct hb_roof_row *a, const struct hb_roof_row *b)
{
	for (unsigned z = 0; z < HB_ROOF_SIZE_COUNT; z++)
		if (a->in.size[z] != b->in.size[z])
			return false;
	return strcmp(a->name, b->name) == 0 && a->basis == b->basis && a->kind == b->kind &&
	       a->device == b->device && a->in.in == b->in.in && a->in.weight == b->in.weight &&
	       a->in.out == b->in.out && a->in.state == b->in.state;
}

int hb_roof__count(struct hb_roofline *r, const struct hb_roof_row *what, const struct roof_work *k)
{
	u64 key = hb_hash_bytes(what->in.size, sizeof(what->in.size)) ^
		  hb_hash_bytes(what->name, strlen(what->name)) ^
		  hb_hash64((u64)what->device << 32 | what->in.in << 16 | what->in.weight << 8 |
			    what->basis << 4 | what->kind);
	const struct hb_launch *l = hb_devices__launch_of(r->d, k->first);
	struct hb_roof_exec *x;
	struct hb_roof_row *row;
	u64 *slot;

	while ((slot = hb_map__slot(r->row_of, key, NULL)) && *slot && !same(&r->rows[*slot - 1], what))
		key++;
	x = slot ? hb_roof__push(&r->execs, &r->n_execs, &r->cap_execs, sizeof(*x)) : NULL;
	if (!x)
		return -ENOMEM;
	if (!*slot) {
		row = hb_roof__push(&r->rows, &r->n_rows, &r->cap_rows, sizeof(*row));
		if (!row)
			return -ENOMEM;
		*row = *what;
		row->kernel = k->kernel;
		row->flops = hb_roof__formula(what->kind)->flops(&what->in);
		row->bytes = hb_roof__formula(what->kind)->bytes(&what->in);
		*slot = r->n_rows;
	}
	*x = (struct hb_roof_exec){
	    .begin = k->first->begin, .ns = k->ns, .stack = l ? l->stack : 0, .row = (u32)*slot - 1};
	return 0;
}

static double least(double flops, double bytes, double tflops, double tbytes, enum hb_roof_bound *bound)
{
	double f = flops > 0 ? flops / (tflops * 1e3) : 0, b = bytes / (tbytes * 1e3);

	*bound = f > b ? HB_ROOF_BY_COMPUTE : HB_ROOF_BY_MEMORY;
	return f > b ? f : b;
}

static double either(double a, double b)
{
	return a > 0 ? a : b;
}

static void set_light(const struct hb_roofline *r, struct hb_roof_row *row)
{
	const struct hb_peak *p = r->devices[row->device].peak, *c = r->devices[row->device].ceiling;
	bool link = hb_roof__formula(row->kind)->way == HB_ROOF_LINK;
	double memory = p ? link ? p->link : p->memory : 0, tflops = p ? p->tflops[row->in.rate] : 0;
	enum hb_roof_bound bound;

	if (!(memory > 0) || (row->flops > 0 && !(tflops > 0)))
		return;
	row->light_ns = least(row->flops, row->bytes, tflops, memory, &row->bound);
	if (link)
		row->bound = HB_ROOF_BY_LINK;
	if (c)
		row->ceiling_ns = least(row->flops, row->bytes, either(c->tflops[row->in.rate], tflops),
					either(link ? c->link : c->memory, memory), &bound);
	row->wrong = hb_roof_row__light(row) > HB_ROOF_ERROR;
}

static int cmp_rows(const void *a, const void *b)
{
	const struct hb_roof_row *x = a, *y = b;

	if (x->dur.total != y->dur.total)
		return x->dur.total > y->dur.total ? -1 : 1;
	return x->device != y->device ? (x->device < y->device ? -1 : 1) : strcmp(x->name, y->name);
}

/* Rows by time, and executions by rows. */
static int sort_all(struct hb_roofline *r)
{
	struct hb_order *by = malloc(((size_t)r->n_execs + 1) * sizeof(*by));
	struct hb_roof_exec *sorted = malloc(((size_t)r->n_execs + 1) * sizeof(*sorted));
	u32 *rank = malloc(((size_t)r->n_rows + 1) * sizeof(*rank)), next = 0;
	int rc = by && sorted && rank ? 0 : -ENOMEM;

	for (u32 i = 0; i < r->n_rows; i++)
		r->rows[i].first = i;
	if (r->n_rows)
		qsort(r->rows, r->n_rows, sizeof(*r->rows), cmp_rows);
	for (u32 i = 0; !rc && i < r->n_rows; i++) {
		rank[r->rows[i].first] = i;
		r->rows[i].first = next;
		next += (u32)r->rows[i].dur.count;
	}
	for (u32 i = 0; !rc && i < r->n_execs; i++)
		by[i] = (struct hb_order){.key = rank[r->execs[i].row], .item = i};
	rc = rc ? rc : hb_order__sort(by, r->n_execs);
	for (u32 i = 0; !rc && i < r->n_execs; i++)
		sorted[i] = r->execs[by[i].item];
	free(by);
	free(rank);
	if (rc) {
		free(sorted);
		return rc;
	}
	free(r->execs);
	r->execs = sorted;
	return 0;
}

/* Durations, rates and speed of light of all rows. */
static int finish_rows(struct hb_roofline *r)
{
	u32 *row = malloc(((size_t)r->n_execs + 1) * sizeof(*row));
	u64 *ns = malloc(((size_t)r->n_execs + 1) * sizeof(*ns));
	struct hb_dist *dist = calloc((size_t)r->n_rows + 1, sizeof(*dist));
	double *inverse = calloc((size_t)r->n_rows + 1, sizeof(*inverse));
	int rc = row && ns && dist && inverse ? 0 : -ENOMEM;

	for (u32 i = 0; !rc && i < r->n_execs; i++) {
		row[i] = r->execs[i].row;
		ns[i] = r->execs[i].ns;
		if (ns[i])
			inverse[row[i]] += 1 / (double)ns[i];
	}
	rc = rc ? rc : hb_dist__grouped(row, ns, r->n_execs, dist, r->n_rows);
	for (u32 i = 0; !rc && i < r->n_rows; i++) {
		struct hb_roof_row *x = &r->rows[i];

		x->dur = dist[i];
		x->tflops = x->flops * inverse[i] / (double)x->dur.count / 1e3;
		x->tbytes = x->bytes * inverse[i] / (double)x->dur.count / 1e3;
		set_light(r, x);
	}
	rc = rc ? rc : sort_all(r);
	free(row);
	free(ns);
	free(dist);
	free(inverse);
	return rc;
}

double hb_roof_row__light(const struct hb_roof_row *r)
{
	return r->dur.total ? r->light_ns * (double)r->dur.count / (double)r->dur.total : 0;
}

double hb_roof_row__ceiling(const struct hb_roof_row *r)
{
	return r->dur.total ? r->ceiling_ns * (double)r->dur.count / (double)r->dur.total : 0;
}

/* ---- devices ---- */

static const char *meta_of(const struct hb_window *w, u32 device, const char *what)
{
	char key[48];

	snprintf(key, sizeof(key), "device_%u_%s", device, what);
	return hb_window__meta(w, key);
}

/* Profilers number devices of the machine, and describe those of the process. Where all that are described
 * are the same, it does not matter. */
static const char *only_one(const struct hb_window *w, const char *what)
{
	const char *key, *value, *one = NULL;

	for (u32 i = 0; hb_window__meta_at(w, i, &key, &value); i++) {
		size_t n = strlen(key), m = strlen(what);

		if (strncmp(key, "device_", 7) != 0 || n < m + 8 || strcmp(key + n - m, what) != 0)
			continue;
		if (one && strcmp(one, value) != 0)
			return NULL;
		one = value;
	}
	return one;
}

static void look_up(struct hb_roofline *r, struct hb_roof_device *v, u32 number)
{
	const char *sms = meta_of(r->w, number, "sms");

	v->name = r->o.gpu ? r->o.gpu : meta_of(r->w, number, "name");
	if (!v->name)
		v->name = only_one(r->w, "name");
	if (!sms)
		sms = only_one(r->w, "sms");
	v->sms = sms && !r->o.gpu ? (u32)strtoul(sms, NULL, 10) : 0;
	if (!v->name || !r->o.peaks)
		return;
	v->peak = hb_peaks__find(r->o.peaks, v->name, HB_PEAK_SHEET);
	v->ceiling = hb_peaks__find(r->o.peaks, v->name, HB_PEAK_CEILING);
	v->other = v->peak && v->peak->sms && v->sms && v->sms != v->peak->sms;
	if (v->other)
		v->peak = v->ceiling = NULL;
}

static int set_devices(struct hb_roofline *r)
{
	r->n_devices = hb_devices__count(r->d);
	r->devices = calloc((size_t)r->n_devices + 1, sizeof(*r->devices));
	r->done = calloc((size_t)r->n_devices + 1, sizeof(*r->done));
	if (!r->devices || !r->done)
		return -ENOMEM;
	for (u32 i = 0; i < r->n_devices; i++) {
		const struct hb_device *v = hb_devices__at(r->d, i);

		look_up(r, &r->devices[i], v->number);
		r->done[i] = calloc((size_t)v->n_ops + 1, 1);
		if (!r->done[i])
			return -ENOMEM;
	}
	return 0;
}

/* ---- life ---- */

int hb_roofline__finish(struct hb_roofline *r, const struct hb_devices *d, struct hb_error *e)
{
	int rc;

	r->d = d;
	end_steps(r);
	rc = set_devices(r);
	rc = rc ? rc : hb_roof__join(r);
	rc = rc ? rc : hb_roof__operators(r);
	rc = rc ? rc : hb_roof__calls(r);
	rc = rc ? rc : hb_roof__plan(r);
	rc = rc ? rc : hb_roof__rest(r);
	rc = rc ? rc : finish_rows(r);
	return rc ? hb_error__nomem(e, "the speed of light") : 0;
}

struct hb_roofline *hb_roofline__new(struct hb_window *w, const struct hb_roofline_opts *o,
				     struct hb_error *e)
{
	struct hb_roofline *r = calloc(1, sizeof(*r));
	u32 n = hb_window__probes(w);

	if (!r)
		goto nomem;
	r->w = w;
	r->o = o ? *o : (struct hb_roofline_opts){0};
	r->o.tp = r->o.tp ? r->o.tp : 1;
	r->feed = (struct hb_feed){.records = on_records, .ctx = r};
	r->rules = hb_map__new();
	r->row_of = hb_map__new();
	r->rest_of = hb_map__new();
	r->family_of = hb_map__new();
	r->n_probes = n + 1;
	r->is_blas = calloc(r->n_probes, 1);
	if (!r->rules || !r->row_of || !r->rest_of || !r->family_of || !r->is_blas)
		goto nomem;
	for (u32 i = 1; i <= n; i++)
		r->is_blas[i] = hb_window__probe(w, i) &&
				strcmp(hb_window__string(w, hb_window__probe(w, i)->api), "cublas") == 0;
	return r;
nomem:
	hb_error__nomem(e, "the speed of light");
	hb_roofline__free(r);
	return NULL;
}

void hb_roofline__free(struct hb_roofline *r)
{
	if (!r)
		return;
	for (u32 i = 0; r->done && i < r->n_devices; i++)
		free(r->done[i]);
	hb_map__free(r->rules);
	hb_map__free(r->row_of);
	hb_map__free(r->rest_of);
	hb_map__free(r->family_of);
	free(r->ops);
	free(r->calls);
	free(r->steps);
	free(r->is_blas);
	free(r->op_of);
	free(r->in_op);
	free(r->call_of);
	free(r->step_of);
	free(r->done);
	free(r->rows);
	free(r->execs);
	free(r->rest);
	free(r->devices);
	free(r);
}

/* ---- getters ---- */

const struct hb_feed *hb_roofline__feed(struct hb_roofline *r)
{
	return &r->feed;
}

const struct hb_roof_row *hb_roofline__rows(const struct hb_roofline *r, u32 *n)
{
	*n = r->n_rows;
	return r->rows;
}

const struct hb_roof_exec *hb_roofline__execs(const struct hb_roofline *r, const struct hb_roof_row *row)
{
	return r->execs + row->first;
}

const struct hb_roof_rest *hb_roofline__rest(const struct hb_roofline *r, u32 *n)
{
	*n = r->n_rest;
	return r->rest;
}

const struct hb_roof_device *hb_roofline__device(const struct hb_roofline *r, u32 i)
{
	return i < r->n_devices ? &r->devices[i] : NULL;
}

const struct hb_roof_counts *hb_roofline__counts(const struct hb_roofline *r)
{
	return &r->counts;
}

const char *hb_roof__basis(enum hb_roof_basis b)
{
	static const char *const names[HB_ROOF_BASES] = {"operator", "call", "model"};

	return b < HB_ROOF_BASES ? names[b] : "";
}

const char *hb_roof__bound(enum hb_roof_bound b)
{
	static const char *const names[] = {"", "compute", "memory", "link"};

	return b <= HB_ROOF_BY_LINK ? names[b] : "";
}
