/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* An analysis for a person: the verdict first, then findings, then what the devices did. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>

#include "analysis/model/decode.h"
#include "analysis/report/analyze_private.h"
#include "analysis/report/cells.h"
#include "base/demangle.h"
#include "base/text.h"

#define WIDTH 120

struct page {
	const struct hb_analysis *a;
	FILE *out;
	unsigned rows;	/* of a table; 0 = all */
	unsigned width; /* in columns */
};

/* ---- cells ---- */

static void device_cell(struct hb_table *t, const struct page *p, const struct hb_device *v)
{
	const char *comm = hb_decode__comm(p->a->w, v->main);

	hb_table__cell(t, "%u of %u %s", v->number, v->pid, strcmp(comm, "?") != 0 ? comm : "");
}

/* "1.2 ms (3.4 %)" */
static void part_cell(struct hb_table *t, u64 ns, u64 whole)
{
	char b[32];

	if (ns && whole)
		hb_table__cell(t, "%s (%.1f %%)", hb_text__ns(b, sizeof(b), ns),
			       100.0 * (double)ns / (double)whole);
	else
		hb_table__cell(t, "-");
}

static void count_of(struct hb_table *t, u64 part, u64 whole)
{
	char a[32];

	if (whole)
		hb_table__cell(t, "%s (%.0f %%)", hb_text__count(a, sizeof(a), part),
			       100.0 * (double)part / (double)whole);
	else
		hb_table__cell(t, "-");
}

static void dist_ns(struct hb_table *t, const struct hb_dist *d)
{
	hb_cell__ns(t, d->p50);
	hb_cell__ns(t, d->p95);
	hb_cell__ns(t, d->max);
}

/* ---- tables: each has the rows of all devices ---- */

static struct hb_table *timelines(const struct page *p, const struct hb_device *v, struct hb_table *t)
{
	u64 span = v->end - v->begin;

	t = t ? t
	      : hb_table__new(
		    "device~|first to last op>|busy>|computing>|comm. alone>|copies alone>|idle>|not known>");
	device_cell(t, p, v);
	hb_cell__ns(t, span);
	part_cell(t, v->busy, span);
	hb_cell__share(t, v->compute, span);
	hb_cell__share(t, v->exposed_comm, span);
	hb_cell__share(t, v->exposed_memcpy, span);
	part_cell(t, v->idle, span);
	part_cell(t, hb_ivs__length(v->not_known), span);
	return t;
}

static struct hb_table *gaps(const struct page *p, const struct hb_device *v, struct hb_table *t)
{
	static const char *const sizes[HB_GAP_SIZES] = {"< 5 us", "5-20 us", ">= 20 us"};
	u64 span = v->end - v->begin;

	t = t ? t
	      : hb_table__new("device~|gaps>|count>|time>|no launch yet>|latency>|"
			      "launching>|dependency>|unknown>|missing>");
	for (int s = 0; s < HB_GAP_SIZES; s++) {
		const struct hb_gap_sum *g = &v->gaps[s];

		if (!g->count)
			continue;
		device_cell(t, p, v);
		hb_table__cell(t, "%s", sizes[s]);
		hb_cell__count(t, g->count);
		part_cell(t, g->ns, span);
		hb_cell__share(t, g->host_ns, g->ns);
		hb_cell__share(t, g->tail_ns, g->ns);
		hb_cell__share(t, g->call_ns, g->ns);
		hb_cell__share(t, g->dep_ns, g->ns);
		hb_cell__share(t, g->unknown_ns, g->ns);
		hb_cell__share(t, g->missing_ns, g->ns);
	}
	return t;
}

static struct hb_table *launches(const struct page *p, const struct hb_device *v, struct hb_table *t)
{
	char n[32];

	if (!v->launches)
		return t;
	t = t ? t
	      : hb_table__new("device~|launches>|ops>|delay p50>|p95>|max>|queue p50>|max>|empty>|< 10 us>|< "
			      "own call>");
	device_cell(t, p, v);
	hb_cell__count(t, v->launches);
	hb_cell__count(t, v->linked);
	dist_ns(t, &v->delay);
	hb_table__cell(t, "%" PRIu64, v->queue.p50);
	hb_table__cell(t, "%s", hb_text__count(n, sizeof(n), v->queue.max));
	count_of(t, v->empty, v->queue.count);
	count_of(t, v->kernels_10us, v->kernels);
	count_of(t, v->eager_short, v->eager);
	return t;
}

static void copy_cells(struct hb_table *t, const struct hb_copies *c)
{
	bool known = c->src || c->dst;

	hb_table__cell(t, "%s", c->by_kernel ? "by a kernel" : hb_word(HB_WORDS_COPY, c->copy));
	hb_table__cell(t, "%s%s%s", known ? hb_word(HB_WORDS_MEMKIND, c->src) : "not told",
		       known ? " -> " : "", known ? hb_word(HB_WORDS_MEMKIND, c->dst) : "");
	hb_cell__count(t, c->dur.count);
	hb_cell__bytes(t, c->bytes);
	hb_cell__ns(t, c->dur.total);
	hb_cell__ns(t, c->dur.p50);
	hb_cell__ns(t, c->dur.max);
	if (c->dur.total && c->bytes)
		hb_table__cell(t, "%.3g", (double)c->bytes / (double)c->dur.total);
	else
		hb_table__cell(t, "-");
	hb_cell__ns(t, c->blocked_ns);
	count_of(t, c->until_done, c->linked);
}

static struct hb_table *copies(const struct page *p, const struct hb_device *v, struct hb_table *t)
{
	for (u32 i = 0; i < v->n_copies; i++) {
		t = t ? t
		      : hb_table__new("device~|copy|memory|count>|bytes>|total>|p50>|max>|GB/s>|host in "
				      "call>|until done>");
		device_cell(t, p, v);
		copy_cells(t, &v->copies[i]);
	}
	return t;
}

static const struct section {
	const char *title;
	/* Adds a device's rows to `t`, which is NULL before the first row of all. */
	struct hb_table *(*add)(const struct page *p, const struct hb_device *v, struct hb_table *t);
	const char *legend;
} sections[] = {
    {"Devices", timelines,
     "idle: no kernel, copy or memset on any stream, between the first and the last one; not known: idle by "
     "its looks\n"
     "  only, because work was launched and kept waiting by what is not in this window"},
    {"Gaps: why a device had nothing to do", gaps,
     "no launch yet: the host had not called for the next work; latency: from that call to the work; "
     "launching: the call\n"
     "  was still being made; dependency: it had returned, and the work waited for an event, a stream or a "
     "peer; unknown: the\n"
     "  call for the next work is not in the window; missing: by all signs the device was busy with what is "
     "not in it"},
    {"Launches", launches,
     "delay: from the call's return to its first operation; queue: operations launched and not begun, right\n"
     "  after a launch; empty: launches that found none; < 10 us, < own call: kernels shorter than that, "
     "than\n"
     "  their own launch"},
    {"Copies", copies,
     "host in call: time the host spent in the calls; until done: calls that returned only when the copy had "
     "ended"},
};

static int print_section(const struct page *p, const struct section *s)
{
	struct hb_table *t = NULL;
	const struct hb_device *v;
	u32 shown = 0;
	int rc;

	for (u32 i = 0; (v = hb_devices__at(p->a->d, i)); i++)
		if (v->n_ops && (!p->rows || shown++ < p->rows))
			t = s->add(p, v, t);
	if (!t)
		return 0;
	fprintf(p->out, "\n%s\n", s->title);
	rc = hb_table__print(t, p->out, p->width);
	if (p->rows && shown > p->rows)
		fprintf(p->out, "  ... and %u more devices (--rows 0 shows all)\n", shown - p->rows);
	fprintf(p->out, "  (%s)\n", s->legend);
	return rc;
}

static int print_kernels(const struct page *p)
{
	struct hb_table *t;
	u32 n, show;
	const struct hb_kernel *const *k = hb_devices__kernels(p->a->d, &n);
	char name[512];
	u64 all = 0;
	int rc;

	if (!n)
		return 0;
	for (u32 i = 0; i < n; i++)
		all += k[i]->dur.total;
	show = p->rows && n > p->rows ? p->rows : n;
	t = hb_table__new("share>|total>|count>|p50>|p95>|max>|class|kernel~");
	for (u32 i = 0; i < show; i++) {
		hb_cell__share(t, k[i]->dur.total, all);
		hb_cell__ns(t, k[i]->dur.total);
		hb_cell__count(t, k[i]->dur.count);
		dist_ns(t, &k[i]->dur);
		hb_table__cell(t, "%s", hb_work__name(k[i]->work));
		hb_table__cell(t, "%s",
			       hb_demangle(hb_window__string(p->a->w, k[i]->name), name, sizeof(name)));
	}
	fprintf(p->out, "\nKernels by name\n");
	rc = hb_table__print(t, p->out, p->width);
	if (n > show)
		fprintf(p->out, "  ... and %u more (--rows 0 shows all)\n", n - show);
	return rc;
}

/* ---- the page ---- */

/* What the numbers below do not contain. */
static void print_limits(const struct page *p)
{
	const struct hb_device_counts *c = hb_devices__counts(p->a->d);
	char n[32], caution[384];

	u32 text, level;

	if (hb_analysis__caution(p->a, caution, sizeof(caution)))
		hb_analysis__wrap(p->out, p->width, 2, "CAUTION: %s", caution);
	for (u32 i = 0; hb_model__note(p->a->m, i, &text, &level); i++)
		if (level == HB_NOTE_WARNING)
			hb_analysis__wrap(p->out, p->width, 2, "CAUTION: %s",
					  hb_window__string(p->a->w, text));
	if (p->a->o.linked_only && c->left_out)
		fprintf(p->out,
			"left out: %s device operations without a call that launched them (--linked-only)\n",
			hb_text__count(n, sizeof(n), c->left_out));
	if (c->backward)
		fprintf(p->out, "left out: %s device operations with impossible times\n",
			hb_text__count(n, sizeof(n), c->backward));
	if (!c->records)
		fprintf(p->out, "devices: what they did was not recorded: nothing is known of their kernels, "
				"and their idle time is a range\n");
}

int hb_analysis__text(const struct hb_analysis *a, FILE *out, const struct hb_analysis_page *page,
		      struct hb_error *e)
{
	struct page p = {.a = a, .out = out, .rows = page->rows, .width = page->wide ? UINT_MAX : WIDTH};
	int rc = 0;

	hb_report__head(a->w, hb_model__totals(a->m), out);
	hb_report__loss(a->w, out, HB_LOSS_COUNT);
	fputc('\n', out);
	hb_analysis__wrap(out, p.width, 2, "VERDICT %s: %s", hb_verdict__name(a->verdict.kind),
			  a->verdict.text);
	print_limits(&p);
	hb_analysis__print_findings(a, out, p.width, p.rows);
	hb_analysis__print_steps(a, out, p.width);
	for (size_t i = 0; !rc && i < sizeof(sections) / sizeof(*sections); i++)
		rc = print_section(&p, &sections[i]);
	rc = rc ? rc : print_kernels(&p);
	rc = rc ? rc : hb_analysis__print_critical(a, out, p.width, p.rows);
	rc = rc ? rc : hb_analysis__print_operators(a, out, p.width, p.rows);
	rc = rc ? rc : hb_analysis__print_roofline(a, out, p.width, p.rows);
	if (!rc) {
		hb_analysis__print_rest(a, out, p.width);
		fputc('\n', out);
		hb_report__cost(hb_model__totals(a->m), out);
	}
	return rc ? hb_error__nomem(e, "the analysis") : 0;
}
