/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Speed of light, for a person. */
#include <inttypes.h>
#include <string.h>

#include "analysis/report/analyze_private.h"
#include "analysis/report/cells.h"
#include "base/text.h"

/* ---- sizes in words ---- */

static const char *gemm(const struct hb_roof_in *in, char *buf, size_t size)
{
	int n = snprintf(buf, size, "%.0fx%.0fx%.0f", in->size[HB_ROOF_M], in->size[HB_ROOF_N],
			 in->size[HB_ROOF_K]);

	if (in->size[HB_ROOF_BATCH] > 1 && n > 0 && (size_t)n < size)
		snprintf(buf + n, size - (size_t)n, " x %.0f", in->size[HB_ROOF_BATCH]);
	return buf;
}

const char *hb_roof_row__size(const struct hb_roof_row *r, char *buf, size_t size)
{
	const double *z = r->in.size;
	char a[32], b[32];

	switch (r->kind) {
	case HB_ROOF_GEMM:
		return gemm(&r->in, buf, size);
	case HB_ROOF_ATTENTION:
	case HB_ROOF_MLA:
		snprintf(buf, size, "q %.0f kv %.0f, %.0f/%.0f heads of %.0f", z[HB_ROOF_Q], z[HB_ROOF_KV],
			 z[HB_ROOF_HEADS], z[HB_ROOF_KV_HEADS], z[HB_ROOF_D_K]);
		return buf;
	case HB_ROOF_MOE:
		snprintf(buf, size, "%.0f tokens to %.0f of %.0f, %.0fx%.0f", z[HB_ROOF_TOKENS],
			 z[HB_ROOF_TOP_K], z[HB_ROOF_EXPERTS], z[HB_ROOF_N], z[HB_ROOF_K]);
		return buf;
	case HB_ROOF_DELTANET:
	case HB_ROOF_SSD:
		snprintf(buf, size, "%.0f tokens, %.0f states of %.0f heads", z[HB_ROOF_TOKENS],
			 z[HB_ROOF_SEQS], z[HB_ROOF_HEADS]);
		return buf;
	case HB_ROOF_POINTWISE:
		snprintf(buf, size, "%s in, %s out", hb_text__bytes(a, sizeof(a), (uint64_t)z[HB_ROOF_READ]),
			 hb_text__bytes(b, sizeof(b), (uint64_t)z[HB_ROOF_WRITTEN]));
		return buf;
	default:
		snprintf(buf, size, "%s", hb_text__bytes(a, sizeof(a), (uint64_t)z[HB_ROOF_MESSAGE]));
		if (z[HB_ROOF_RANKS] > 0)
			snprintf(buf, size, "%s, %.0f ranks", a, z[HB_ROOF_RANKS]);
		return buf;
	}
}

/* ---- the table ---- */

static void rate_cell(struct hb_table *t, double v)
{
	if (v > 0)
		hb_table__cell(t, "%.3g", v);
	else
		hb_table__cell(t, "-");
}

static void part_cell(struct hb_table *t, double part, bool wrong)
{
	if (part > 0)
		hb_table__cell(t, "%.0f %%%s", 100 * part, wrong ? " !" : "");
	else
		hb_table__cell(t, "-");
}

static void row_cells(struct hb_table *t, const struct hb_analysis *a, const struct hb_roof_row *r)
{
	char size[96];

	hb_cell__ns(t, r->dur.total);
	hb_cell__count(t, r->dur.count);
	hb_cell__ns(t, r->dur.p50);
	hb_cell__ns(t, (u64)(r->light_ns + 0.5));
	part_cell(t, hb_roof_row__light(r), r->wrong);
	part_cell(t, hb_roof_row__ceiling(r), false);
	hb_table__cell(t, "%s", r->bound ? hb_roof__bound(r->bound) : "-");
	rate_cell(t, r->tflops);
	rate_cell(t, r->tbytes);
	hb_table__cell(t, "%s", hb_dtype__name(r->in.in));
	hb_table__cell(t, "%s", hb_roof_row__size(r, size, sizeof(size)));
	hb_table__cell(t, "%s%s", r->name, r->basis == HB_ROOF_BY_PLAN ? " (model)" : "");
}

static void print_devices(const struct hb_analysis *a, FILE *out, unsigned width)
{
	const struct hb_roof_device *v, *before = NULL;

	for (u32 i = 0; (v = hb_roofline__device(a->roofline, i)); i++) {
		if (!hb_devices__at(a->d, i)->n_ops || (before && before->peak == v->peak && before->name &&
							v->name && strcmp(before->name, v->name) == 0))
			continue;
		before = v;
		if (v->peak)
			hb_analysis__wrap(out, width, 2, "  (light: of %s, by %s line %u%s)", v->name,
					  v->peak->table, v->peak->line,
					  v->ceiling ? "; ceiling: the best that was measured on such devices"
						     : "");
		else if (v->other)
			hb_analysis__wrap(out, width, 2,
					  "  (light: not known; %s has %u multiprocessors here, and not "
					  "those of the peaks known "
					  "for the name: a slice of it? --peaks FILE names others)",
					  v->name, v->sms);
		else if (v->name)
			hb_analysis__wrap(out, width, 2,
					  "  (light: not known; no peaks for %s: --peaks FILE names them)",
					  v->name);
		else
			hb_analysis__wrap(out, width, 2,
					  "  (light: not known; the window does not say what device %u is: "
					  "--gpu NAME does)",
					  hb_devices__at(a->d, i)->number);
	}
}

/* Kernels without a model, by the reason. */
static void print_rest(const struct hb_analysis *a, FILE *out, unsigned width)
{
	const struct hb_roof_counts *c = hb_roofline__counts(a->roofline);
	u64 count[HB_ROOF_WHYS] = {0}, total[HB_ROOF_WHYS] = {0};
	char k[32], ns[32];
	u32 n;
	const struct hb_roof_rest *rest = hb_roofline__rest(a->roofline, &n);

	for (u32 i = 0; i < n; i++) {
		count[rest[i].why] += rest[i].count;
		total[rest[i].why] += rest[i].total;
	}
	for (unsigned w = 0; w < HB_ROOF_WHYS; w++)
		if (count[w])
			hb_analysis__wrap(
			    out, width, 4, "  no model: %s kernels, %s (%.1f %%): %s",
			    hb_text__count(k, sizeof(k), count[w]), hb_text__ns(ns, sizeof(ns), total[w]),
			    c->ns ? 100.0 * (double)total[w] / (double)c->ns : 0, hb_roof__why(w));
	if (c->unplanned)
		hb_analysis__wrap(
		    out, width, 4,
		    "  no model by configuration: %s of %s steps have other kernels than --model "
		    "makes expect",
		    hb_text__count(k, sizeof(k), c->unplanned),
		    hb_text__count(ns, sizeof(ns), c->planned + c->unplanned));
}

int hb_analysis__print_roofline(const struct hb_analysis *a, FILE *out, unsigned width, unsigned rows)
{
	u32 n, show;
	const struct hb_roof_row *r = hb_roofline__rows(a->roofline, &n);
	bool wrong = false;
	struct hb_table *t;
	int rc = 0;

	if (!hb_roofline__counts(a->roofline)->kernels)
		return 0;
	fprintf(out, "\nSpeed of light: what the work must at least take\n");
	show = rows && n > rows ? rows : n;
	if (show) {
		t = hb_table__new(
		    "total>|count>|p50>|light>|of light>|ceiling>|bound|TFLOP/s>|TB/s>|type|size~|work");
		for (u32 i = 0; i < show; i++) {
			row_cells(t, a, &r[i]);
			wrong = wrong || r[i].wrong;
		}
		rc = hb_table__print(t, out, width);
		if (n > show)
			fprintf(out, "  ... and %u more (--rows 0 shows all)\n", n - show);
		print_devices(a, out, width);
		if (wrong)
			hb_analysis__wrap(
			    out, width, 2,
			    "  (!: beyond 110 %%, so the model or the peaks are wrong, or the data "
			    "were in a cache)");
	}
	print_rest(a, out, width);
	return rc;
}
