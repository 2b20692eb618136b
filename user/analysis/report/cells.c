/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analysis/report/cells.h"

#include <inttypes.h>
#include <string.h>

#include "analysis/model/decode.h"
#include "base/text.h"

void hb_cell__ns(struct hb_table *t, u64 ns)
{
	char b[32];

	hb_table__cell(t, "%s", ns ? hb_text__ns(b, sizeof(b), ns) : "-");
}

void hb_cell__count(struct hb_table *t, u64 n)
{
	char b[32];

	hb_table__cell(t, "%s", hb_text__count(b, sizeof(b), n));
}

void hb_cell__count_or_dash(struct hb_table *t, u64 n)
{
	if (n)
		hb_cell__count(t, n);
	else
		hb_table__cell(t, "-");
}

void hb_cell__bytes(struct hb_table *t, u64 n)
{
	char b[32];

	hb_table__cell(t, "%s", n ? hb_text__bytes(b, sizeof(b), n) : "-");
}

void hb_cell__share(struct hb_table *t, u64 part, u64 whole)
{
	if (part && whole)
		hb_table__cell(t, "%.1f %%", 100.0 * (double)part / (double)whole);
	else
		hb_table__cell(t, "-");
}

void hb_cell__quantiles(struct hb_table *t, const struct hb_hist *h)
{
	static const double q[] = {0.5, 0.95, 0.99, 1};

	for (unsigned i = 0; i < 4; i++) {
		if (h->count)
			hb_cell__ns(t, hb_hist__quantile(h, q[i]));
		else
			hb_table__cell(t, "-");
	}
}

static const char *proc_name(const struct hb_window *w, const struct hb_proc_stat *p)
{
	const char *exe = p->info ? hb_text__basename(hb_window__string(w, p->info->exe)) : "";

	if (p->main)
		return hb_decode__comm(w, p->main);
	return *exe ? exe : "?";
}

void hb_cell__proc(struct hb_table *t, const struct hb_window *w, const struct hb_proc_stat *p)
{
	hb_table__cell(t, "%u %s", p->pid, proc_name(w, p));
}

void hb_cell__task(struct hb_table *t, const struct hb_window *w, const struct hb_task *k)
{
	if (k)
		hb_table__cell(t, "%u %s", k->tid, hb_decode__comm(w, k));
	else
		hb_table__cell(t, "?");
}

void hb_cell__syscall(struct hb_table *t, u16 sysno)
{
	char b[32];
	const char *s = hb_decode__syscall(sysno, b, sizeof(b));

	hb_table__cell(t, "%s", s ? s : "-");
}

const char *hb_waker__text(const struct hb_window *w, const struct hb_waker_stat *k, char *buf, size_t size)
{
	char b[32];
	const char *call = hb_decode__syscall(k->sysno, b, sizeof(b));

	if (!k->task && !k->proc)
		snprintf(buf, size, "%s", hb_word(HB_WORDS_WCTX, k->context));
	else
		snprintf(buf, size, "%u %s%s%s%s%s", k->task ? k->task->tid : k->proc->pid,
			 k->task ? hb_decode__comm(w, k->task) : proc_name(w, k->proc), call ? " (" : "",
			 call ? call : "", call ? ")" : "", k->proc && !k->proc->traced ? " outside" : "");
	return hb_text__clean(buf);
}

static void put_meta(const struct hb_window *w, const char *before, const char *key, FILE *out)
{
	const char *s = hb_window__meta(w, key);
	char buf[64];

	if (!s)
		return; /* its table is lost: nothing is better than a placeholder */
	snprintf(buf, sizeof(buf), "%.*s", (int)sizeof(buf) - 1, s);
	fprintf(out, "%s%s %s", before, key, hb_text__clean(buf));
}

/* Nobody wrote when an unfinished window ended: it lasted at least until its last record. */
static void put_length(const struct hb_window *w, u64 wall_ns, FILE *out)
{
	bool whole = hb_window__info(w)->complete;
	char ns[32];

	if (!whole && !wall_ns)
		fputs("window of unknown length", out);
	else
		fprintf(out, "window%s %s", whole ? "" : " of at least",
			hb_text__ns(ns, sizeof(ns), wall_ns));
	put_meta(w, whole ? " of " : ", ", "host", out);
}

unsigned hb_report__head(const struct hb_window *w, const struct hb_totals *t, FILE *out)
{
	char n[32], bytes[32];
	unsigned lines = 1;

	put_length(w, t->wall_ns, out);
	put_meta(w, ", ", "kernel", out);
	put_meta(w, ", ", "profile", out);
	fprintf(out, ": %s records, %s\n", hb_text__count(n, sizeof(n), t->records),
		hb_text__bytes(bytes, sizeof(bytes), hb_window__info(w)->bytes));
	if (hb_decode__simulated(w)) {
		fprintf(out, "device: %s\n", hb_decode__simulated(w));
		lines++;
	}
	if (hb_window__damage(w)) {
		fprintf(out, "DAMAGED: %s\n", hb_window__damage(w));
		lines++;
	}
	if (t->read_error) {
		fprintf(out, "DAMAGED: reading ended early: %s\n", strerror(-t->read_error));
		lines++;
	}
	return lines;
}

/* " (6 sample, 1 accel)", " (accel)" when all are of one type: a tick that did not come is no call that is
 * missing. */
static const char *loss_of(const struct hb_window *w, unsigned cause, char *buf, size_t size)
{
	u64 by_type[HB_TYPE_MAX] = {0}, all = hb_window__loss_total(w, cause);
	size_t n = 0;
	u32 rows;
	const struct hb_loss_row *r = hb_window__losses(w, &rows);

	for (u32 i = 0; i < rows; i++)
		if (r[i].cause == cause && r[i].type < HB_TYPE_MAX)
			by_type[r[i].type] += r[i].count;
	*buf = 0;
	for (u32 t = 1; t < HB_TYPE_MAX && n < size; t++) {
		if (!by_type[t] || !hb_schema__type(t))
			continue;
		n += (size_t)snprintf(buf + n, size - n, "%s", n ? ", " : " (");
		if (by_type[t] != all && n < size)
			n += (size_t)snprintf(buf + n, size - n, "%llu ", (unsigned long long)by_type[t]);
		if (n < size)
			n += (size_t)snprintf(buf + n, size - n, "%s", hb_schema__type(t)->name);
	}
	if (n && n + 1 < size)
		snprintf(buf + n, size - n, ")");
	return buf;
}

unsigned hb_report__loss(const struct hb_window *w, FILE *out, unsigned max)
{
	unsigned lines = 0;
	char n[32], of[160];

	for (unsigned c = 0; c < HB_LOSS_COUNT; c++) {
		u64 lost = hb_window__loss_total(w, c);

		if (!lost)
			continue;
		if (++lines > max) {
			fprintf(out, "LOSS: and more causes: `report` lists them\n");
			return max;
		}
		fprintf(out, "LOSS: %s %s%s: %s\n", hb_word(HB_WORDS_LOSS, c),
			hb_text__count(n, sizeof(n), lost), loss_of(w, c, of, sizeof(of)),
			hb_decode__loss_doc(c));
	}
	if (!hb_window__info(w)->complete) {
		/* The recorder writes its accounts of loss last. */
		fprintf(out, "loss: %snot known, the window was not finished\n", lines ? "the rest is " : "");
		return lines + 1;
	}
	if (!lines)
		fprintf(out, "loss: none\n");
	return lines ? lines : 1;
}

static double percent(u64 part, u64 whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

static void own_cost(const struct hb_totals *t, FILE *out)
{
	char a[32], b[32];

	if (!t->self_cpu_ns)
		fprintf(out, "cost: own CPU not recorded");
	else if (t->self_split)
		fprintf(out, "cost: own CPU %s (%.2f %% of one core) in the window, %s before and after",
			hb_text__ns(a, sizeof(a), t->self_window_ns), percent(t->self_window_ns, t->wall_ns),
			hb_text__ns(b, sizeof(b), t->self_cpu_ns - t->self_window_ns));
	else
		fprintf(out, "cost: own CPU %s, start-up included",
			hb_text__ns(a, sizeof(a), t->self_cpu_ns));
	if (t->self_rss)
		fprintf(out, ", %s", hb_text__bytes(b, sizeof(b), t->self_rss));
	fputc('\n', out);
}

void hb_report__cost(const struct hb_totals *t, FILE *out)
{
	char a[32];

	if (!t->self_cpu_ns && !t->by_type[HB_TYPE_price]) { /* imported, or cut off before its end */
		fprintf(out, "cost: this window does not tell what recording it took\n");
		return;
	}
	own_cost(t, out);
	if (!t->by_type[HB_TYPE_price]) {
		fprintf(out, "cost: no prices recorded\n");
		return;
	}
	fprintf(out, "cost: probes in the targets %s (%.2f %% of one core), hits x measured price\n",
		hb_text__ns(a, sizeof(a), t->probe_cost_ns), percent(t->probe_cost_ns, t->wall_ns));
	/* With --syscalls all their programs cost by far the most. */
	if (t->hook_cost_ns)
		fprintf(out, "cost: %s, whole machine %s (%.2f %% of one core), measured by the kernel\n",
			t->by_type[HB_TYPE_syscall] ? "syscalls and scheduler" : "scheduler and sampling",
			hb_text__ns(a, sizeof(a), t->hook_cost_ns), percent(t->hook_cost_ns, t->wall_ns));
}
