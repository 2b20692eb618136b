/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analysis/report/compare_private.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/model/decode.h"

const char *hb_change__name(enum hb_change c)
{
	static const char *const names[HB_CHANGES] = {"within noise", "small",	 "within drift", "more",
						      "less",	      "too few", "not compared"};

	return c < HB_CHANGES ? names[c] : "?";
}

const char *hb_metric__name(enum hb_metric m)
{
	static const char *const names[HB_METRICS] = {"count", "time", "each"};

	return m < HB_METRICS ? names[m] : "?";
}

const char *hb_pair__kind(const struct hb_pair *p)
{
	return p->kind == HB_USAGE_KINDS ? "finding" : hb_usage__kind_name(p->kind);
}

/* ---- slices ---- */

/* The process whose steps are compared: the one that gives most work, of those that have steps. */
static const struct hb_series *main_series(const struct hb_analysis *x)
{
	const struct hb_steps *s = hb_host__steps(x->h);

	for (u32 i = 0; i < hb_steps__series(s); i++)
		if (hb_steps__at(s, i)->n)
			return hb_steps__at(s, i);
	return hb_steps__at(s, 0);
}

static void cut(struct hb_compare *c)
{
	c->by_step = true;
	for (int k = 0; k < 2; k++) {
		c->series[k] = main_series(c->x[k]);
		c->by_step &= hb_slices__of_steps(&c->slices[k], c->series[k]);
	}
	if (c->by_step && c->series[0]->source != c->series[1]->source) {
		hb_compare__caution(c, HB_CAUTION_SLICES, false,
				    "steps are told apart by %s in one and by %s in the other: compared per "
				    "second instead",
				    hb_steps__source_name(c->series[0]->source),
				    hb_steps__source_name(c->series[1]->source));
		c->by_step = false;
	}
	for (int k = 0; k < 2 && !c->by_step; k++)
		hb_slices__of_time(&c->slices[k], hb_timeline__start(hb_host__timeline(c->x[k]->h)),
				   hb_timeline__end(hb_host__timeline(c->x[k]->h)));
}

/* Steps of a slice, or its seconds. */
static double units(const struct hb_compare *c, int k, u32 slice)
{
	const struct hb_slices *s = &c->slices[k];

	return c->by_step ? s->steps[slice] : (double)(s->bound[slice + 1] - s->bound[slice]) / 1e9;
}

/* ---- numbers ---- */

struct per_slice {
	u64 count[HB_SLICES], ns[HB_SLICES];
};

/* The numbers of one metric in one window; how many. */
static u32 values(const struct hb_compare *c, int k, const struct per_slice *s, enum hb_metric m, double *v)
{
	u32 n = 0;

	for (u32 i = 0; i < c->slices[k].n; i++) {
		double unit = units(c, k, i);

		if (m == HB_METRIC_LENGTH && s->count[i])
			v[n++] = (double)s->ns[i] / (double)s->count[i];
		else if (m != HB_METRIC_LENGTH && unit > 0)
			v[n++] = (double)(m == HB_METRIC_TIME ? s->ns[i] : s->count[i]) / unit;
	}
	return n;
}

/* How far the means of a window's own quarters lie apart. */
static double drift(const double *v, u32 n)
{
	double least = HUGE_VAL, most = -HUGE_VAL;

	for (u32 q = 0; q < 4; q++) {
		u32 from = n * q / 4, to = n * (q + 1) / 4;
		double sum = 0;

		for (u32 i = from; i < to; i++)
			sum += v[i];
		if (to == from)
			return 0;
		least = fmin(least, sum / (double)(to - from));
		most = fmax(most, sum / (double)(to - from));
	}
	return most - least;
}

static enum hb_change judge_size(const struct hb_compare *c, const struct hb_number *x, double drifts)
{
	double d = fabs(x->b.mean - x->a.mean);

	if (d < c->least * fmax(fabs(x->a.mean), fabs(x->b.mean)))
		return HB_CHANGE_SMALL;
	return d <= drifts ? HB_CHANGE_DRIFT : x->b.mean > x->a.mean ? HB_CHANGE_MORE : HB_CHANGE_LESS;
}

/* All but the judgement by chance, which needs all numbers. */
static int measure(const struct hb_compare *c, const struct per_slice *s, enum hb_metric m, bool enough,
		   struct hb_number *x)
{
	double v[2][HB_SLICES];
	u32 n[2];
	int rc;

	for (int k = 0; k < 2; k++)
		n[k] = values(c, k, &s[k], m, v[k]);
	rc = hb_stats__spread(v[0], n[0], &x->a);
	rc = rc ? rc : hb_stats__spread(v[1], n[1], &x->b);
	x->present = true;
	x->p = 1;
	x->change = HB_CHANGE_FEW;
	if (rc || !enough || n[0] < HB_SLICES_LEAST || n[1] < HB_SLICES_LEAST)
		return rc;
	x->tested = true;
	rc = hb_stats__ranks(v[0], n[0], v[1], n[1], &x->p);
	rc = rc ? rc : hb_stats__difference(v[0], n[0], v[1], n[1], &x->difference);
	x->change = (u8)judge_size(c, x, fmax(drift(v[0], n[0]), drift(v[1], n[1])));
	return rc;
}

/* ---- pairs ---- */

static struct hb_pair *add_pair(struct hb_compare *c, u8 kind, const char *name)
{
	if (c->n == c->cap) {
		u32 cap = c->cap ? 2 * c->cap : 64;
		struct hb_pair *bigger = realloc(c->pair, cap * sizeof(*bigger));

		if (!bigger) {
			c->oom = true;
			return NULL;
		}
		c->pair = bigger;
		c->cap = cap;
	}
	c->pair[c->n] = (struct hb_pair){.kind = kind};
	snprintf(c->pair[c->n].name, sizeof(c->pair[c->n].name), "%s", name);
	return &c->pair[c->n++];
}

static void compare_slices(struct hb_compare *c, struct hb_pair *p, const struct per_slice *s, bool counted,
			   bool timed)
{
	bool recorded = p->kind == HB_USAGE_KINDS || hb_compare__recorded(c, p->kind),
	     is[HB_METRICS] = {false};

	is[HB_METRIC_RATE] = counted;
	is[HB_METRIC_TIME] = timed;
	is[HB_METRIC_LENGTH] = counted && timed;
	for (int m = 0; m < HB_METRICS; m++) {
		bool enough = !counted || p->count[0] + p->count[1] >= HB_COMPARE_FEW;

		if (!is[m])
			continue;
		if (measure(c, s, m, enough && recorded, &p->number[m]))
			c->oom = true;
		if (!recorded)
			p->number[m].change = HB_CHANGE_NOT_COMPARED;
	}
}

static void add_rows(struct hb_compare *c, const struct hb_usage_row *a, const struct hb_usage_row *b)
{
	const struct hb_usage_row *r[2] = {a, b}, *any = a ? a : b;
	struct hb_pair *p = add_pair(c, any->kind, any->name);
	struct per_slice s[2];

	if (!p)
		return;
	memset(s, 0, sizeof(s));
	for (int k = 0; k < 2; k++) {
		if (!r[k])
			continue;
		p->count[k] = r[k]->count;
		p->ns[k] = r[k]->ns;
		memcpy(s[k].count, r[k]->in_count, sizeof(s[k].count));
		memcpy(s[k].ns, r[k]->in_ns, sizeof(s[k].ns));
	}
	compare_slices(c, p, s, (a && a->counted) || (b && b->counted), (a && a->timed) || (b && b->timed));
}

static void pair_usage(struct hb_compare *c)
{
	const struct hb_usage_row *r;

	for (u32 i = 0; (r = hb_usage__at(c->usage[0], i)) && !c->oom; i++)
		add_rows(c, r, hb_usage__find(c->usage[1], r->kind, r->name));
	for (u32 i = 0; (r = hb_usage__at(c->usage[1], i)) && !c->oom; i++)
		if (!hb_usage__find(c->usage[0], r->kind, r->name))
			add_rows(c, NULL, r);
}

/* ---- findings ---- */

static const char *comm_of(const struct hb_compare *c, int k, const struct hb_finding *f)
{
	return f->proc ? hb_decode__comm(c->x[k]->w, f->proc->main) : "";
}

/* Findings whatever they cost: what is above the gate in one window may lie below it in the other. */
static int look_below_the_gate(struct hb_compare *c, struct hb_error *e)
{
	static const char *const gates[] = {"gate.exposed_share=0%", "gate.delay_share=0%",
					    "gate.device_share=0%"};
	struct hb_thresholds *t = hb_thresholds__new();
	int rc = t ? 0 : hb_error__nomem(e, "the thresholds");

	for (size_t i = 0; !rc && i < sizeof(gates) / sizeof(*gates); i++)
		rc = hb_thresholds__set(t, gates[i], e);
	for (int k = 0; k < 2 && !rc; k++) {
		struct hb_patterns_input in = {
		    .window = c->x[k]->w, .model = c->x[k]->m, .host = c->x[k]->h, .devices = c->x[k]->d};

		c->low[k] = hb_patterns__run(&in, t, e);
		rc = c->low[k] ? 0 : -ENOMEM;
	}
	hb_thresholds__free(t);
	return rc;
}

static const struct hb_finding *find_low(const struct hb_compare *c, int k, const struct hb_finding *like)
{
	const struct hb_finding *f;

	for (u32 i = 0; (f = hb_findings__at(c->low[k], i)); i++)
		if (f->pattern == like->pattern && strcmp(comm_of(c, k, f), comm_of(c, !k, like)) == 0)
			return f;
	return NULL;
}

/* The same pattern in a process of the same name that has no partner yet. */
static struct hb_found *partner(struct hb_compare *c, const struct hb_finding *f)
{
	for (u32 i = 0; i < c->n_found; i++) {
		struct hb_found *x = &c->found[i];

		if (x->f[0] && !x->f[1] && x->f[0]->pattern == f->pattern &&
		    strcmp(comm_of(c, 0, x->f[0]), comm_of(c, 1, f)) == 0)
			return x;
	}
	return NULL;
}

static const struct hb_not_checked *unchecked(const struct hb_findings *all, const struct hb_pattern *p)
{
	const struct hb_not_checked *u;

	for (u32 i = 0; (u = hb_findings__not_checked(all, i)); i++)
		if (u->pattern == p)
			return u;
	return NULL;
}

/* Where a rule came near to its threshold, time that it did not measure is no zero. */
static const struct hb_ruled_out *nearly(const struct hb_findings *all, const struct hb_pattern *p)
{
	const struct hb_ruled_out *r;

	for (u32 i = 0; (r = hb_findings__ruled_out(all, i)); i++) {
		const struct hb_measure *m = &r->measure;

		if (r->pattern == p && m->param &&
		    (m->at_most ? m->value / 2 <= m->threshold : m->value >= m->threshold / 2))
			return r;
	}
	return NULL;
}

static void compare_exposed(struct hb_compare *c, struct hb_found *x)
{
	const struct hb_finding *any = x->f[0] ? x->f[0] : x->f[1];
	struct hb_pair *p;
	struct per_slice s[2];
	char name[256];
	bool exposed = false;

	x->pair = -1;
	if (!any)
		return;
	memset(s, 0, sizeof(s));
	for (int k = 0; k < 2; k++) {
		const struct hb_finding *f = x->f[k] ? x->f[k] : x->low[k];
		const struct hb_ivs *v = f ? f->exposed : NULL;

		for (u32 i = 0; v && i < c->slices[k].n; i++)
			s[k].ns[i] = hb_ivs__within(v, c->slices[k].bound[i], c->slices[k].bound[i + 1]);
		exposed |= v && v->n;
	}
	snprintf(name, sizeof(name), "%s %s", any->pattern->id, any->pattern->title);
	p = exposed ? add_pair(c, HB_USAGE_KINDS, name) : NULL;
	if (!p)
		return;
	x->pair = (s32)(c->n - 1);
	for (int k = 0; k < 2; k++) {
		p->count[k] = x->f[k] ? x->f[k]->count : x->low[k] ? x->low[k]->count : 0;
		for (u32 i = 0; i < c->slices[k].n; i++)
			p->ns[k] += s[k].ns[i];
	}
	compare_slices(c, p, s, false, true);
	if (x->un[0] || x->un[1] || x->out[0] || x->out[1])
		p->number[HB_METRIC_TIME].change = HB_CHANGE_NOT_COMPARED;
}

static u32 count_findings(const struct hb_findings *f)
{
	u32 n = 0;

	while (hb_findings__at(f, n))
		n++;
	return n;
}

/* Where it was not found: whether it could not be, or costs too little there. */
static void look_further(struct hb_compare *c, struct hb_found *x)
{
	for (int k = 0; k < 2; k++) {
		const struct hb_finding *other = x->f[!k];

		if (x->f[k] || !other)
			continue;
		x->un[k] = unchecked(c->x[k]->f, other->pattern);
		x->low[k] = find_low(c, k, other);
		x->out[k] = x->low[k] ? NULL : nearly(c->x[k]->f, other->pattern);
	}
	compare_exposed(c, x);
}

static void pair_findings(struct hb_compare *c)
{
	const struct hb_finding *f;

	c->found = calloc(count_findings(c->x[0]->f) + count_findings(c->x[1]->f) + 1, sizeof(*c->found));
	if (!c->found) {
		c->oom = true;
		return;
	}
	for (u32 i = 0; (f = hb_findings__at(c->x[0]->f, i)); i++)
		c->found[c->n_found++].f[0] = f;
	for (u32 i = 0; (f = hb_findings__at(c->x[1]->f, i)); i++) {
		struct hb_found *x = partner(c, f);

		if (!x)
			x = &c->found[c->n_found++];
		x->f[1] = f;
	}
	for (u32 i = 0; i < c->n_found && !c->oom; i++)
		look_further(c, &c->found[i]);
}

/* ---- judgement ---- */

/* Chance is judged over all numbers at once. */
static int judge(struct hb_compare *c)
{
	double *p = malloc(((size_t)c->n * HB_METRICS + 1) * sizeof(*p));
	int rc;
	u32 n = 0;

	if (!p)
		return -ENOMEM;
	for (u32 i = 0; i < c->n; i++)
		for (int m = 0; m < HB_METRICS; m++)
			if (c->pair[i].number[m].tested)
				p[n++] = c->pair[i].number[m].p;
	c->n_numbers = n;
	rc = hb_stats__holm(p, n);
	n = 0;
	for (u32 i = 0; i < c->n && !rc; i++)
		for (int m = 0; m < HB_METRICS; m++) {
			struct hb_number *x = &c->pair[i].number[m];

			if (!x->tested)
				continue;
			x->p = p[n++];
			if (x->p >= HB_COMPARE_LEVEL && x->change != HB_CHANGE_NOT_COMPARED)
				x->change = HB_CHANGE_CHANCE;
			c->pair[i].changed |= x->change == HB_CHANGE_MORE || x->change == HB_CHANGE_LESS;
		}
	free(p);
	return rc;
}

static void weigh(struct hb_compare *c)
{
	for (u32 i = 0; i < c->n; i++) {
		struct hb_pair *p = &c->pair[i];
		const struct hb_number *x = &p->number[HB_METRIC_TIME];

		p->weight = x->present ? fabs(x->b.mean - x->a.mean) : 0;
		c->n_changed += p->changed;
	}
}

/* The steps themselves before their parts, then what changed most; of equal weight by name. */
static int cmp_pairs(const void *a, const void *b)
{
	const struct hb_pair *x = *(const struct hb_pair *const *)a, *y = *(const struct hb_pair *const *)b;
	bool xs = x->kind == HB_USAGE_STEP, ys = y->kind == HB_USAGE_STEP;

	if (x->changed != y->changed)
		return x->changed ? -1 : 1;
	if (xs != ys)
		return xs ? -1 : 1;
	if (x->weight != y->weight)
		return x->weight > y->weight ? -1 : 1;
	return strcmp(x->name, y->name);
}

/* Pairs in order; the findings' indexes go with them. */
static int order(struct hb_compare *c)
{
	struct hb_pair **at = malloc((c->n + 1) * sizeof(*at)),
		       *sorted = malloc((c->n + 1) * sizeof(*sorted));

	if (!at || !sorted) {
		free(at);
		free(sorted);
		return -ENOMEM;
	}
	for (u32 i = 0; i < c->n; i++)
		at[i] = &c->pair[i];
	qsort(at, c->n, sizeof(*at), cmp_pairs);
	for (u32 f = 0; f < c->n_found; f++)
		for (u32 i = 0; i < c->n && c->found[f].pair >= 0; i++)
			if (at[i] == &c->pair[c->found[f].pair]) {
				c->found[f].pair = (s32)i;
				break;
			}
	for (u32 i = 0; i < c->n; i++)
		sorted[i] = *at[i];
	free(at);
	free(c->pair);
	c->pair = sorted;
	return 0;
}

/* ---- all ---- */

static int build(struct hb_compare *c, struct hb_error *e)
{
	int rc;

	cut(c);
	for (int k = 0; k < 2; k++) {
		c->usage[k] = hb_usage__build(c->x[k]->h, c->x[k]->d, &c->slices[k], c->series[k], e);
		if (!c->usage[k])
			return -ENOMEM;
	}
	if (look_below_the_gate(c, e))
		return -ENOMEM;
	hb_compare__ground(c);
	pair_usage(c);
	pair_findings(c);
	if (c->oom)
		return hb_error__nomem(e, "the comparison");
	rc = judge(c);
	weigh(c);
	rc = rc ? rc : order(c);
	return rc ? hb_error__nomem(e, "the comparison") : 0;
}

struct hb_compare *hb_compare__new(struct hb_window *a, const char *name_a, struct hb_window *b,
				   const char *name_b, const struct hb_compare_opts *o, struct hb_error *e)
{
	struct hb_compare *c = calloc(1, sizeof(*c));

	if (!c) {
		hb_error__nomem(e, "the comparison");
		return NULL;
	}
	c->name[0] = name_a;
	c->name[1] = name_b;
	c->least = o && o->least > 0 ? o->least : HB_COMPARE_LEAST;
	c->x[0] = hb_analysis__new(a, NULL, e);
	c->x[1] = c->x[0] ? hb_analysis__new(b, NULL, e) : NULL;
	if (!c->x[1] || build(c, e)) {
		hb_compare__free(c);
		return NULL;
	}
	return c;
}

void hb_compare__free(struct hb_compare *c)
{
	if (!c)
		return;
	for (int k = 0; k < 2; k++) {
		hb_usage__free(c->usage[k]);
		hb_findings__free(c->low[k]);
		hb_analysis__free(c->x[k]);
	}
	free(c->pair);
	free(c->found);
	free(c);
}
