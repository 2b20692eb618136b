/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The one screen at the end of a trace. Row limits below add up to 40 lines with everything present. */
#include "analysis/report/report.h"

#include <errno.h>

#include "analysis/model/decode.h"
#include "analysis/model/model.h"
#include "analysis/report/cells.h"
#include "analysis/report/table.h"
#include "base/text.h"

enum { WIDTH = 100, PROCESSES = 4, CLASSES = 8, SLEEPS = 4, REASONS = 5, LOSSES = 3 };

/* A table after a blank line; nothing when there are no rows. */
static int print(struct hb_table *t, u32 n, FILE *out)
{
	if (n)
		fputc('\n', out);
	return hb_table__print(t, n ? out : NULL, WIDTH);
}

/* What became of it, and its pid in its own namespace where that is another. */
static void remark(struct hb_table *t, const struct hb_proc_stat *p)
{
	char inner[24] = "";

	if (p->info && p->info->nspid && p->info->nspid != p->pid)
		snprintf(inner, sizeof(inner), " ns pid %u", p->info->nspid);
	hb_table__cell(t, "%s%s%s",
		       p->exited   ? "exited"
		       : p->forked ? "forked"
				   : "",
		       p->late ? " late" : "", inner);
}

static int processes(const struct hb_window *w, const struct hb_model *m, FILE *out)
{
	struct hb_table *t =
	    hb_table__new("processes~|threads>|operations>|in calls>|CPU>|off-CPU>|runnable>|remark");
	u32 n, i;
	const struct hb_proc_stat *const *p = hb_model__procs(m, &n);
	int rc;

	for (i = 0; i < n && i < PROCESSES; i++) {
		hb_cell__proc(t, w, p[i]);
		hb_cell__count(t, p[i]->threads);
		hb_cell__count(t, p[i]->operations);
		hb_cell__ns(t, p[i]->call_ns);
		hb_cell__ns(t, p[i]->cpu_ns);
		hb_cell__ns(t, p[i]->offcpu_ns);
		hb_cell__ns(t, p[i]->ready_ns);
		remark(t, p[i]);
	}
	rc = print(t, n, out);
	if (n > PROCESSES)
		fprintf(out, "  ... and %u more\n", n - PROCESSES);
	return rc;
}

static int classes(const struct hb_window *w, const struct hb_model *m, FILE *out)
{
	struct hb_table *t =
	    hb_table__new("calls by class|count>|errors>|total>|p50>|p95>|p99>|max>|share>|thread~");
	u32 n;
	const struct hb_class_stat *const *k = hb_model__classes(m, &n);

	for (u32 i = 0; i < n && i < CLASSES; i++) {
		hb_table__cell(t, "%s", hb_op__name(k[i]->op));
		hb_cell__count(t, k[i]->count);
		hb_cell__count_or_dash(t, k[i]->errors);
		if (k[i]->dur.count)
			hb_cell__ns(t, k[i]->dur.total);
		else
			hb_table__cell(t, "not timed");
		hb_cell__quantiles(t, &k[i]->dur);
		hb_cell__share(t, k[i]->busiest_ns, hb_model__totals(m)->wall_ns);
		if (k[i]->busiest)
			hb_cell__task(t, w, k[i]->busiest);
		else
			hb_table__cell(t, "-");
	}
	return print(t, n, out);
}

static int sleeps(const struct hb_window *w, const struct hb_model *m, FILE *out)
{
	struct hb_table *t = hb_table__new("blocking syscalls|on|process~|count>|total>|p50>|p95>|p99>|max>");
	u32 n;
	const struct hb_sleep_stat *const *s = hb_model__sleeps(m, &n);

	for (u32 i = 0; i < n && i < SLEEPS; i++) {
		hb_cell__syscall(t, s[i]->sysno);
		hb_table__cell(t, "%s", hb_word(HB_WORDS_CHANKIND, s[i]->chankind));
		hb_cell__proc(t, w, s[i]->proc);
		hb_cell__count(t, s[i]->dur.count);
		hb_cell__ns(t, s[i]->dur.total);
		hb_cell__quantiles(t, &s[i]->dur);
	}
	return print(t, n, out);
}

static int reasons(const struct hb_window *w, const struct hb_model *m, FILE *out)
{
	struct hb_table *t = hb_table__new("off-CPU|process|count>|total>|max>|runnable>|woken mostly by~");
	char buf[96];
	u32 n;
	const struct hb_reason_stat *const *r = hb_model__reasons(m, &n);

	for (u32 i = 0; i < n && i < REASONS; i++) {
		hb_table__cell(t, "%s", hb_reason__name(r[i]->reason));
		hb_cell__proc(t, w, r[i]->proc);
		hb_cell__count(t, r[i]->dur.count);
		hb_cell__ns(t, r[i]->dur.total);
		hb_cell__ns(t, r[i]->dur.max);
		hb_cell__ns(t, r[i]->ready_ns);
		hb_table__cell(t, "%s",
			       r[i]->n_wakers ? hb_waker__text(w, r[i]->waker[0], buf, sizeof(buf)) : "-");
	}
	return print(t, n, out);
}

int hb_report__summary(struct hb_window *w, FILE *out, const struct hb_summary_opts *o)
{
	struct hb_model *m = hb_model__build(w, NULL);
	int rc;

	if (!m)
		return -ENOMEM;
	hb_report__head(w, hb_model__totals(m), out);
	rc = processes(w, m, out);
	rc = rc ? rc : classes(w, m, out);
	if (!hb_model__totals(m)->by_type[HB_TYPE_accel])
		fprintf(out, "\n  calls by class: no accelerator calls\n");
	rc = rc ? rc : sleeps(w, m, out);
	rc = rc ? rc : reasons(w, m, out);
	fputc('\n', out);
	hb_report__loss(w, out, LOSSES);
	if (!o || !o->no_cost)
		hb_report__cost(hb_model__totals(m), out);
	hb_model__free(m);
	return rc ? rc : fflush(out) ? -errno : 0;
}
