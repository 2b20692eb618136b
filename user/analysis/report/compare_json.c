/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A comparison as one JSON object; docs/compare.md. */
#include <errno.h>

#include "analysis/report/compare_private.h"

enum { DECIMALS = 3 };

static void put_window(const struct hb_compare *c, int k, struct hb_json *j)
{
	const struct hb_totals *t = hb_model__totals(c->x[k]->m);
	const struct hb_series *s = c->series[k];

	hb_json__kobject(j, k ? "b" : "a");
	hb_json__kstring(j, "file", c->name[k]);
	hb_json__ku64(j, "wall_ns", t->wall_ns);
	hb_json__ku64(j, "records", t->records);
	hb_json__ku64(j, "slices", c->slices[k].n);
	hb_json__kobject(j, "steps");
	hb_json__ku64(j, "count", s ? s->n : 0);
	if (s && s->n) {
		hb_json__kstring(j, "source", hb_steps__source_name(s->source));
		hb_json__ku64(j, "pid", s->pid);
		hb_json__ku64(j, "p50_ns", s->p50);
		hb_json__ku64(j, "p95_ns", s->p95);
		hb_json__ku64(j, "max_ns", s->max);
		hb_json__ku64(j, "no_load_ns", s->no_load_ns);
	}
	hb_json__end(j);
	hb_json__end(j);
}

static void put_cautions(const struct hb_compare *c, struct hb_json *j)
{
	bool breaks = false;

	for (u32 i = 0; i < c->n_cautions; i++)
		breaks |= c->caution[i].breaks;
	hb_json__kstring(j, "comparable", breaks ? "no" : c->n_cautions ? "with care" : "yes");
	hb_json__karray(j, "cautions");
	for (u32 i = 0; i < c->n_cautions; i++) {
		hb_json__object(j);
		hb_json__kstring(j, "kind", hb_caution__name(c->caution[i].kind));
		hb_json__kbool(j, "breaks", c->caution[i].breaks);
		hb_json__kstring(j, "text", c->caution[i].text);
		hb_json__end(j);
	}
	hb_json__end(j);
}

static void put_spread(struct hb_json *j, const char *key, const struct hb_spread *s)
{
	hb_json__kobject(j, key);
	hb_json__ku64(j, "slices", s->n);
	if (s->n) {
		hb_json__kreal(j, "median", s->median, DECIMALS);
		hb_json__kreal(j, "q1", s->q1, DECIMALS);
		hb_json__kreal(j, "q3", s->q3, DECIMALS);
		hb_json__kreal(j, "mean", s->mean, DECIMALS);
	}
	hb_json__end(j);
}

static void put_number(struct hb_json *j, const char *key, const struct hb_number *x)
{
	hb_json__kobject(j, key);
	hb_json__kstring(j, "is", hb_change__name(x->change));
	put_spread(j, "a", &x->a);
	put_spread(j, "b", &x->b);
	if (x->a.n && x->b.n && x->a.mean > 0)
		hb_json__kreal(j, "change", (x->b.mean - x->a.mean) / x->a.mean, 6);
	if (x->tested) {
		hb_json__kreal(j, "difference_low", x->difference.low, DECIMALS);
		hb_json__kreal(j, "difference_high", x->difference.high, DECIMALS);
		hb_json__kreal(j, "p", x->p, 9);
	}
	hb_json__end(j);
}

static void put_numbers(struct hb_json *j, const struct hb_pair *p)
{
	for (int m = 0; m < HB_METRICS; m++)
		if (p->number[m].present)
			put_number(j, hb_metric__name(m), &p->number[m]);
}

static void put_sides(struct hb_json *j, const char *a, const char *b, const u64 *v)
{
	hb_json__ku64(j, a, v[0]);
	hb_json__ku64(j, b, v[1]);
}

static void put_rows(const struct hb_compare *c, struct hb_json *j)
{
	hb_json__karray(j, "rows");
	for (u32 i = 0; i < c->n; i++) {
		const struct hb_pair *p = &c->pair[i];

		if (p->kind == HB_USAGE_KINDS)
			continue;
		hb_json__object(j);
		hb_json__kstring(j, "kind", hb_pair__kind(p));
		hb_json__kstring(j, "name", p->name);
		hb_json__kbool(j, "changed", p->changed);
		put_sides(j, "count_a", "count_b", p->count);
		put_sides(j, "total_a_ns", "total_b_ns", p->ns);
		put_numbers(j, p);
		hb_json__end(j);
	}
	hb_json__end(j);
}

static void put_side(const struct hb_found *x, int k, struct hb_json *j)
{
	const struct hb_finding *f = x->f[k] ? x->f[k] : x->low[k];

	hb_json__kobject(j, k ? "b" : "a");
	hb_json__kbool(j, "found", x->f[k] != NULL);
	if (f) {
		hb_json__kreal(j, "share", (double)f->share / 1e6, 6);
		hb_json__ku64(j, "count", f->count);
		hb_json__ku64(j, "exposed_min_ns", f->exposed_min);
		hb_json__ku64(j, "exposed_max_ns", f->exposed_max);
		hb_json__ku64(j, "exposed_likely_ns", f->exposed_likely);
		hb_json__kstring(j, "confidence", hb_confidence__name(f->confidence));
	} else if (x->un[k]) {
		hb_json__kstring(j, "not_checked", x->un[k]->text);
	} else if (x->out[k]) {
		hb_json__kstring(j, "nearly", x->out[k]->what);
	}
	hb_json__end(j);
}

static void put_findings(const struct hb_compare *c, struct hb_json *j)
{
	hb_json__karray(j, "findings");
	for (u32 i = 0; i < c->n_found; i++) {
		const struct hb_found *x = &c->found[i];
		const struct hb_pattern *p = (x->f[0] ? x->f[0] : x->f[1])->pattern;

		hb_json__object(j);
		hb_json__kstring(j, "id", p->id);
		hb_json__kstring(j, "title", p->title);
		put_side(x, 0, j);
		put_side(x, 1, j);
		if (x->pair >= 0)
			put_number(j, "exposed", &c->pair[x->pair].number[HB_METRIC_TIME]);
		hb_json__end(j);
	}
	hb_json__end(j);
}

int hb_compare__json(const struct hb_compare *c, FILE *out, struct hb_error *e)
{
	struct hb_json *j = hb_json__new(out, true);
	int rc = -ENOMEM;

	if (j) {
		hb_json__object(j);
		put_window(c, 0, j);
		put_window(c, 1, j);
		put_cautions(c, j);
		hb_json__kstring(j, "per", c->by_step ? "step" : "second");
		hb_json__kreal(j, "least_change", c->least, 6);
		hb_json__kreal(j, "level", HB_COMPARE_LEVEL, 6);
		hb_json__ku64(j, "numbers", c->n_numbers);
		hb_json__ku64(j, "changed", c->n_changed);
		put_findings(c, j);
		put_rows(c, j);
		hb_json__end(j);
		hb_json__newline(j);
		rc = hb_json__free(j);
	}
	return rc == -ENOMEM ? hb_error__nomem(e, "the comparison") : rc;
}
