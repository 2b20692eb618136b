/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analysis/report/doc.h"

#include <string.h>

#include "analysis/model/decode.h"

const char *hb_doc__str(const struct hb_doc *d, u32 id)
{
	return hb_window__string(d->w, id);
}

void hb_doc__hist(struct hb_doc *d, const struct hb_hist *h)
{
	hb_json__ku64(d->j, "total_ns", h->total);
	if (!h->count)
		return;
	hb_json__ku64(d->j, "min_ns", h->min);
	hb_json__ku64(d->j, "p50_ns", hb_hist__quantile(h, 0.5));
	hb_json__ku64(d->j, "p95_ns", hb_hist__quantile(h, 0.95));
	hb_json__ku64(d->j, "p99_ns", hb_hist__quantile(h, 0.99));
	hb_json__ku64(d->j, "max_ns", h->max);
}

void hb_doc__dist(struct hb_doc *d, const struct hb_dist *x, enum hb_doc_unit unit)
{
	static const struct keys {
		const char *total, *min, *p50, *p95, *max, *mean, *std;
	} keys[] = {
	    [HB_DOC_PLAIN] = {"total", "min", "p50", "p95", "max", "mean", "std"},
	    [HB_DOC_NS] = {"total_ns", "min_ns", "p50_ns", "p95_ns", "max_ns", "mean_ns", "std_ns"},
	};
	const struct keys *k = &keys[unit];
	struct hb_json *j = d->j;

	hb_json__ku64(j, "count", x->count);
	hb_json__ku64(j, k->total, x->total);
	if (!x->count)
		return;
	hb_json__ku64(j, k->min, x->min);
	hb_json__ku64(j, k->p50, x->p50);
	hb_json__ku64(j, k->p95, x->p95);
	hb_json__ku64(j, k->max, x->max);
	hb_json__kreal(j, k->mean, x->mean, 3);
	hb_json__kreal(j, k->std, x->std, 3);
}

void hb_doc__proc(struct hb_doc *d, const struct hb_proc_stat *p)
{
	hb_json__ku64(d->j, "pid", p->pid);
	hb_json__kstring(d->j, "comm", hb_decode__comm(d->w, p->main));
}

void hb_doc__task(struct hb_doc *d, const char *key, const struct hb_task *t)
{
	if (!t)
		return;
	hb_json__kobject(d->j, key);
	hb_json__ku64(d->j, "pid", t->pid);
	hb_json__ku64(d->j, "tid", t->tid);
	hb_json__kstring(d->j, "comm", hb_decode__comm(d->w, t));
	hb_json__end(d->j);
}

void hb_doc__share(struct hb_doc *d, u64 ns)
{
	hb_json__kreal(d->j, "share", d->wall ? (double)ns / (double)d->wall : 0, 6);
}

void hb_doc__known(struct hb_doc *d, const char *key, u32 string)
{
	if (string)
		hb_json__kstring(d->j, key, hb_doc__str(d, string));
}

void hb_doc__frames(struct hb_doc *d, u32 pid, u32 raw)
{
	struct hb_stack st = raw ? hb_window__stack(d->w, pid, raw) : (struct hb_stack){0};
	char buf[512];

	for (u32 i = 0; i < st.n; i++) {
		const struct hb_loc *l = hb_window__loc(d->w, st.locs[i]);

		if (l)
			hb_json__string(d->j, hb_decode__frame(d->w, l, HB_FRAME_MARKED, buf, sizeof(buf)));
	}
}

static void put_frame(struct hb_doc *d, const struct hb_loc *l)
{
	char buf[512];

	hb_json__object(d->j);
	hb_json__kstring(d->j, "f", hb_decode__frame(d->w, l, HB_FRAME_NAME, buf, sizeof(buf)));
	hb_doc__known(d, "file", l->file);
	if (l->line)
		hb_json__ku64(d->j, "line", l->line);
	hb_doc__known(d, "module", l->module);
	hb_json__kstring(d->j, "lang", hb_decode__lang(l));
	hb_json__end(d->j);
}

void hb_doc__stack(struct hb_doc *d, const char *key, u32 pid, u32 raw)
{
	struct hb_stack st;
	const char *state;
	char name[64];

	if (!raw)
		return;
	st = hb_window__stack(d->w, pid, raw);
	hb_json__karray(d->j, key);
	for (u32 i = 0; i < st.n; i++) {
		const struct hb_loc *l = hb_window__loc(d->w, st.locs[i]);

		if (l)
			put_frame(d, l);
	}
	hb_json__end(d->j);
	state = hb_decode__stack_state(&st);
	if (!state)
		return;
	snprintf(name, sizeof(name), "%s_state", key);
	hb_json__kstring(d->j, name, state);
}

static void put_price(struct hb_doc *d, const void *row)
{
	const struct hb_price_stat *p = row;

	hb_json__kstring(d->j, "hook", hb_doc__str(d, p->row ? p->row->symbol : p->hook));
	hb_json__kstring(d->j, "where", p->targets ? "targets" : "machine");
	hb_json__ku64(d->j, "hits", p->hits);
	hb_json__ku64(d->j, "price_ns", p->price);
	hb_json__ku64(d->j, "cost_ns", p->cost_ns);
}

u32 hb_doc__shown(const struct hb_doc *d, u32 n)
{
	return d->max && n > d->max ? d->max : n;
}

void hb_doc__left(struct hb_doc *d, const char *key, u32 n)
{
	char rows[64];

	if (hb_doc__shown(d, n) == n)
		return;
	snprintf(rows, sizeof(rows), "%s_rows", key);
	hb_json__ku64(d->j, rows, n);
}

void hb_doc__table(struct hb_doc *d, const char *key, const void *const *rows, u32 n,
		   void (*put)(struct hb_doc *, const void *))
{
	hb_json__karray(d->j, key);
	for (u32 i = 0; i < hb_doc__shown(d, n); i++) {
		hb_json__object(d->j);
		put(d, rows[i]);
		hb_json__end(d->j);
	}
	hb_json__end(d->j);
	hb_doc__left(d, key, n);
}

void hb_doc__window(struct hb_doc *d)
{
	const struct hb_window_info *i = hb_window__info(d->w);
	const char *key, *value;

	hb_json__kobject(d->j, "window");
	hb_json__ku64(d->j, "start_ns", i->start_ts);
	hb_json__ku64(d->j, "end_ns", i->end_ts);
	hb_json__ku64(d->j, "wall_ns", d->wall);
	hb_json__ku64(d->j, "records", hb_model__totals(d->m)->records);
	hb_json__ku64(d->j, "bytes", i->bytes);
	hb_json__kbool(d->j, "complete", i->complete);
	hb_json__kbool(d->j, "simulated", i->simulated);
	if (hb_decode__simulated(d->w))
		hb_json__kstring(d->j, "device", hb_decode__simulated(d->w));
	if (hb_window__damage(d->w))
		hb_json__kstring(d->j, "damage", hb_window__damage(d->w));
	if (hb_model__totals(d->m)->read_error)
		hb_json__kstring(d->j, "read_error", strerror(-hb_model__totals(d->m)->read_error));
	hb_json__kobject(d->j, "meta");
	for (u32 k = 0; hb_window__meta_at(d->w, k, &key, &value); k++)
		hb_json__kstring(d->j, key, value);
	hb_json__end(d->j);
	hb_json__end(d->j);
}

void hb_doc__loss(struct hb_doc *d)
{
	u32 n;
	const struct hb_loss_row *row = hb_window__losses(d->w, &n);

	hb_json__kobject(d->j, "loss");
	hb_json__kbool(d->j, "known", hb_window__info(d->w)->complete);
	hb_json__ku64(d->j, "total", hb_decode__loss_all(d->w));
	for (unsigned c = 0; c < HB_LOSS_COUNT; c++)
		hb_json__ku64(d->j, hb_word(HB_WORDS_LOSS, c), hb_window__loss_total(d->w, c));
	hb_json__karray(d->j, "rows");
	for (u32 i = 0; i < n; i++) {
		const struct hb_type *t = hb_schema__type(row[i].type);

		hb_json__object(d->j);
		hb_json__kstring(d->j, "cause", hb_word(HB_WORDS_LOSS, row[i].cause));
		if (t)
			hb_json__kstring(d->j, "of", t->name);
		if (row[i].cpu != UINT32_MAX)
			hb_json__ku64(d->j, "cpu", row[i].cpu);
		hb_json__ku64(d->j, "count", row[i].count);
		hb_json__end(d->j);
	}
	hb_json__end(d->j);
	hb_json__end(d->j);
}

void hb_doc__receipt(struct hb_doc *d)
{
	const struct hb_totals *t = hb_model__totals(d->m);
	u32 n;
	const struct hb_price_stat *const *rows = hb_model__prices(d->m, &n);

	hb_json__kobject(d->j, "receipt");
	hb_json__ku64(d->j, "cost_ns", t->cost_ns);
	hb_json__ku64(d->j, "probes_cost_ns", t->probe_cost_ns);
	hb_json__ku64(d->j, "hooks_cost_ns", t->hook_cost_ns);
	hb_json__ku64(d->j, "self_cpu_ns", t->self_cpu_ns);
	if (t->self_split) {
		hb_json__ku64(d->j, "self_cpu_setup_ns", t->self_setup_ns);
		hb_json__ku64(d->j, "self_cpu_window_ns", t->self_window_ns);
	}
	hb_json__ku64(d->j, "self_rss", t->self_rss);
	hb_doc__table(d, "hooks", (const void *const *)rows, n, put_price);
	hb_json__end(d->j);
}

void hb_doc__notes(struct hb_doc *d)
{
	u32 text, level;

	hb_json__karray(d->j, "notes");
	for (u32 i = 0; hb_model__note(d->m, i, &text, &level); i++) {
		hb_json__object(d->j);
		hb_json__kstring(d->j, "level", hb_word(HB_WORDS_NOTELEVEL, level));
		hb_json__kstring(d->j, "text", hb_doc__str(d, text));
		hb_json__end(d->j);
	}
	hb_json__end(d->j);
}
