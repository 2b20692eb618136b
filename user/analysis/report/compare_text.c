/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A comparison, told to a person. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "analysis/report/compare_private.h"
#include "analysis/report/table.h"
#include "base/text.h"

enum { WIDTH = 118, UNLIMITED = 100000, CHANGED = 60, LONGEST = 90 };

/* ---- cells ---- */

/* A number of a metric: a length of time, or how many. */
static const char *value(enum hb_metric m, double v, char *buf, size_t size)
{
	char text[32];

	if (m == HB_METRIC_RATE)
		snprintf(buf, size, fabs(v) >= 1000 ? "%.0f" : fabs(v) >= 10 ? "%.1f" : "%.3g", v);
	else
		snprintf(buf, size, "%s%s", v < 0 ? "-" : "",
			 hb_text__ns(text, sizeof(text), (u64)llround(fabs(v))));
	return buf;
}

static const char *signed_value(enum hb_metric m, double v, char *buf, size_t size)
{
	char text[40];

	snprintf(buf, size, "%s%s", v > 0 ? "+" : "", value(m, v, text, sizeof(text)));
	return buf;
}

/* Median with its quartiles; on a narrow page with half of what lies between them, as part of it. */
static void spread_cell(struct hb_table *t, enum hb_metric m, const struct hb_spread *s, bool wide)
{
	char a[40], b[40], c[40];

	if (!s->n)
		hb_table__cell(t, "-");
	else if (wide)
		hb_table__cell(t, "%s [%s %s]", value(m, s->median, a, sizeof(a)),
			       value(m, s->q1, b, sizeof(b)), value(m, s->q3, c, sizeof(c)));
	else if (s->median > 0)
		hb_table__cell(t, "%s +-%.0f %%", value(m, s->median, a, sizeof(a)),
			       50 * (s->q3 - s->q1) / s->median);
	else
		hb_table__cell(t, "%s", value(m, s->median, a, sizeof(a)));
}

static void change_cell(struct hb_table *t, const struct hb_number *x)
{
	if (x->a.mean > 0 && x->b.mean >= 10 * x->a.mean)
		hb_table__cell(t, "%.3g x", x->b.mean / x->a.mean);
	else if (x->a.mean > 0)
		hb_table__cell(t, "%+.1f %%", 100 * (x->b.mean - x->a.mean) / x->a.mean);
	else
		hb_table__cell(t, x->b.mean > 0 ? "new" : "-");
}

static const char *unit_of(const struct hb_compare *c)
{
	return c->by_step ? "step" : "second";
}

static void number_row(struct hb_table *t, const struct hb_compare *c, const struct hb_pair *p,
		       enum hb_metric m, bool wide)
{
	const struct hb_number *x = &p->number[m];
	char a[40], b[40], name[LONGEST * 4];

	snprintf(name, sizeof(name), "%s", p->name);
	hb_table__cell(t, "%s %s", hb_pair__kind(p), hb_text__fit(name, LONGEST));
	hb_table__cell(t, m == HB_METRIC_LENGTH ? "each" : "%s/%s", hb_metric__name(m), unit_of(c));
	spread_cell(t, m, &x->a, wide);
	spread_cell(t, m, &x->b, wide);
	if (x->tested)
		hb_table__cell(t, "%s to %s", signed_value(m, x->difference.low, a, sizeof(a)),
			       signed_value(m, x->difference.high, b, sizeof(b)));
	else
		hb_table__cell(t, "-");
	change_cell(t, x);
	hb_table__cell(t, "%s", hb_change__name(x->change));
}

/* ---- parts ---- */

static void print_heads(const struct hb_compare *c, FILE *out, unsigned width)
{
	for (int k = 0; k < 2; k++) {
		const struct hb_totals *t = hb_model__totals(c->x[k]->m);
		char a[32], b[32];

		hb_analysis__wrap(out, width, 4, "%c: %s, %s, %s records", 'A' + k, c->name[k],
				  hb_text__ns(a, sizeof(a), t->wall_ns),
				  hb_text__count(b, sizeof(b), t->records));
	}
}

static void print_cautions(const struct hb_compare *c, FILE *out, unsigned width)
{
	bool breaks = false;

	for (u32 i = 0; i < c->n_cautions; i++)
		breaks |= c->caution[i].breaks;
	fprintf(out, "\n%s\n",
		breaks ? "NOT COMPARABLE: these windows are not of the same thing. What follows may mislead."
		: c->n_cautions
		    ? "comparable, with care:"
		    : "comparable: same command, same options, whole windows of about one length.");
	for (u32 i = 0; i < c->n_cautions; i++)
		hb_analysis__wrap(out, width, 4, "  - %s: %s", hb_caution__name(c->caution[i].kind),
				  c->caution[i].text);
}

static void print_steps(const struct hb_compare *c, FILE *out)
{
	fprintf(out, "\nsteps\n");
	for (int k = 0; k < 2; k++) {
		const struct hb_series *s = c->series[k];
		char a[32], b[32], d[32], none[32];

		if (!s || !s->n)
			fprintf(out, "  %c: none: %s\n", 'A' + k,
				s && s->why[0] ? s->why : "no process gives a device work");
		else
			fprintf(out, "  %c: %u by %s; p50 %s, p95 %s, max %s; without load %s\n", 'A' + k,
				s->n, hb_steps__source_name(s->source), hb_text__ns(a, sizeof(a), s->p50),
				hb_text__ns(b, sizeof(b), s->p95), hb_text__ns(d, sizeof(d), s->max),
				hb_text__ns(none, sizeof(none), s->no_load_ns));
	}
}

/* Exposed time of a finding in one window, or why there is none. */
static void found_cell(struct hb_table *t, const struct hb_compare *c, const struct hb_found *x, int k)
{
	const struct hb_finding *f = x->f[k] ? x->f[k] : x->low[k];
	char a[32];

	if (f)
		hb_table__cell(t, "%.1f %% of it, %s exposed%s", (double)f->share / 1e4,
			       hb_text__ns(a, sizeof(a), f->exposed_likely),
			       x->f[k] ? "" : " (below the gate)");
	else
		hb_table__cell(t, x->un[k] ? "not checked" : x->out[k] ? "nearly" : "not found");
}

static void judgement_cell(struct hb_table *t, const struct hb_compare *c, const struct hb_found *x)
{
	const char *where = x->f[0] && x->f[1] ? "" : x->f[0] ? "in A only: " : "in B only: ";
	u64 count = (x->f[0] ? x->f[0]->count : 0) + (x->f[1] ? x->f[1]->count : 0);
	u8 is = x->pair >= 0 ? c->pair[x->pair].number[HB_METRIC_TIME].change : HB_CHANGES;

	if (is == HB_CHANGES)
		hb_table__cell(t, "%sexposes no time", where);
	else if (is == HB_CHANGE_CHANCE && count < HB_COMPARE_FEW)
		hb_table__cell(t, "%swithin noise, being rare (%llu times)", where,
			       (unsigned long long)count);
	else
		hb_table__cell(t, "%s%s", where, hb_change__name(is));
}

static int print_findings(const struct hb_compare *c, FILE *out, unsigned width)
{
	struct hb_table *t = hb_table__new("findings~|A|B|is");

	fprintf(out, "\n");
	if (!c->n_found) {
		fprintf(out, "findings: none in either\n");
		return hb_table__print(t, NULL, width);
	}
	for (u32 i = 0; i < c->n_found; i++) {
		const struct hb_found *x = &c->found[i];
		const struct hb_pattern *p = (x->f[0] ? x->f[0] : x->f[1])->pattern;

		hb_table__cell(t, "%s %s", p->id, p->title);
		found_cell(t, c, x, 0);
		found_cell(t, c, x, 1);
		judgement_cell(t, c, x);
	}
	return hb_table__print(t, out, width);
}

static bool is_shown(const struct hb_number *x, bool all)
{
	return x->present && (all || x->change == HB_CHANGE_MORE || x->change == HB_CHANGE_LESS);
}

static int print_numbers(const struct hb_compare *c, FILE *out, unsigned width, bool wide, bool all)
{
	char titles[160];
	struct hb_table *t;
	u32 shown = 0, left = 0;

	snprintf(titles, sizeof(titles), "%s~|of|A: median%s|B: median%s|95 %% of B - A|change>|is",
		 all ? "all numbers" : "changed", wide ? " [quartiles]" : "", wide ? " [quartiles]" : "");
	t = hb_table__new(titles);
	for (u32 i = 0; i < c->n; i++)
		for (int m = 0; m < HB_METRICS; m++) {
			if (!is_shown(&c->pair[i].number[m], all))
				continue;
			if (shown >= CHANGED && !all) {
				left++;
				continue;
			}
			number_row(t, c, &c->pair[i], m, wide);
			shown++;
		}
	fprintf(out, "\n");
	if (!shown) {
		fprintf(out, "changed: nothing above noise, of %u numbers that were compared\n",
			c->n_numbers);
		return hb_table__print(t, NULL, width);
	}
	if (hb_table__print(t, out, width))
		return -ENOMEM;
	if (left)
		fprintf(out, "  ... and %u more (--all)\n", left);
	return 0;
}

int hb_compare__text(const struct hb_compare *c, FILE *out, bool wide, bool all, struct hb_error *e)
{
	unsigned width = wide ? UNLIMITED : WIDTH;
	int rc;

	print_heads(c, out, WIDTH);
	print_cautions(c, out, WIDTH);
	print_steps(c, out);
	rc = print_findings(c, out, width);
	rc = rc ? rc : print_numbers(c, out, width, wide, all);
	if (rc)
		return hb_error__nomem(e, "the comparison");
	fprintf(out, "\n");
	hb_analysis__wrap(
	    out, WIDTH, 0,
	    "%u of %u things changed. Each number is one per slice, %u slices of A and %u of B, per %s. A "
	    "change is what a rank test does not take for chance (level %.2g over all %u numbers together), "
	    "at least %.3g %% large, and larger than the difference between the quarters of either window.",
	    c->n_changed, c->n, c->slices[0].n, c->slices[1].n, unit_of(c), HB_COMPARE_LEVEL, c->n_numbers,
	    100 * c->least);
	return ferror(out) ? -EIO : 0;
}
