/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* An analysis as one JSON object; docs/analyze-json.md. */
#include <errno.h>
#include <stdio.h>

#include "analysis/model/decode.h"
#include "analysis/report/analyze_private.h"

struct page {
	struct hb_doc doc;
	const struct hb_analysis *a;
};

/* ---- pieces ---- */

/* Times when `unit` is "_ns", plain numbers when it is "". */
static void put_gaps(struct hb_json *j, const struct hb_device *v)
{
	hb_json__kobject(j, "gaps");
	for (int s = 0; s < HB_GAP_SIZES; s++) {
		const struct hb_gap_sum *g = &v->gaps[s];

		hb_json__kobject(j, hb_gap__size_name(s));
		hb_json__ku64(j, "count", g->count);
		hb_json__ku64(j, "total_ns", g->ns);
		hb_json__ku64(j, "host_ns", g->host_ns);
		hb_json__ku64(j, "latency_ns", g->tail_ns);
		hb_json__ku64(j, "in_call_ns", g->call_ns);
		hb_json__ku64(j, "dependency_ns", g->dep_ns);
		hb_json__ku64(j, "unknown_ns", g->unknown_ns);
		hb_json__ku64(j, "missing_ns", g->missing_ns);
		hb_json__end(j);
	}
	hb_json__end(j);
}

static void put_launches(struct hb_doc *d, const struct hb_device *v)
{
	struct hb_json *j = d->j;

	hb_json__kobject(j, "launches");
	hb_json__ku64(j, "count", v->launches);
	hb_json__ku64(j, "linked_ops", v->linked);
	hb_json__ku64(j, "unlinked_ops", v->n_ops - v->linked);
	hb_json__ku64(j, "before_their_call", v->early);
	hb_json__ku64(j, "into_empty_queue", v->empty);
	hb_json__kobject(j, "delay");
	hb_doc__dist(d, &v->delay, HB_DOC_NS);
	hb_json__end(j);
	hb_json__kobject(j, "queue");
	hb_doc__dist(d, &v->queue, HB_DOC_PLAIN);
	hb_json__end(j);
	hb_json__ku64(j, "eager_kernels", v->eager);
	hb_json__ku64(j, "shorter_than_call", v->eager_short);
	hb_json__end(j);
}

static void put_streams(struct hb_json *j, const struct hb_device *v)
{
	hb_json__karray(j, "streams");
	for (u32 i = 0; i < v->n_streams; i++) {
		const struct hb_stream *s = &v->stream[i];

		if (!s->ops)
			continue;
		hb_json__object(j);
		hb_json__ku64(j, "stream", s->number);
		if (s->context)
			hb_json__ku64(j, "context", s->context);
		hb_json__ku64(j, "ops", s->ops);
		hb_json__ku64(j, "busy_ns", s->busy);
		hb_json__ku64(j, "queue_max", s->queue_max);
		hb_json__ku64(j, "queue_full_ns", s->full_ns);
		hb_json__end(j);
	}
	hb_json__end(j);
}

static void put_copy(struct hb_doc *d, const struct hb_copies *c)
{
	struct hb_json *j = d->j;

	hb_json__object(j);
	hb_json__kstring(j, "direction", hb_word(HB_WORDS_COPY, c->copy));
	hb_json__kstring(j, "from", hb_word(HB_WORDS_MEMKIND, c->src));
	hb_json__kstring(j, "to", hb_word(HB_WORDS_MEMKIND, c->dst));
	hb_json__kbool(j, "by_kernel", c->by_kernel);
	hb_doc__dist(d, &c->dur, HB_DOC_NS);
	if (!c->by_kernel) {
		hb_json__ku64(j, "bytes", c->bytes);
		if (c->dur.total)
			hb_json__kreal(j, "gb_per_s", (double)c->bytes / (double)c->dur.total, 6);
	}
	/* ROCm tells Host of either kind of memory: then it is not known. */
	if (hb_copies__pageable(c) || (c->src && c->dst))
		hb_json__kbool(j, "pageable", hb_copies__pageable(c));
	hb_json__ku64(j, "linked", c->linked);
	hb_json__ku64(j, "blocked_ns", c->blocked_ns);
	hb_json__ku64(j, "until_done", c->until_done);
	hb_json__end(j);
}

static void put_device(struct page *p, const struct hb_device *v)
{
	struct hb_json *j = p->doc.j;

	hb_json__object(j);
	hb_json__ku64(j, "id", v->number);
	hb_json__ku64(j, "pid", v->pid);
	hb_json__kstring(j, "comm", hb_decode__comm(p->doc.w, v->main));
	hb_json__ku64(j, "begin_ns", v->begin);
	hb_json__ku64(j, "end_ns", v->end);
	hb_json__ku64(j, "span_ns", v->end - v->begin);
	hb_json__ku64(j, "busy_ns", v->busy);
	hb_json__ku64(j, "compute_ns", v->compute);
	hb_json__ku64(j, "comm_ns", v->comm);
	hb_json__ku64(j, "exposed_comm_ns", v->exposed_comm);
	hb_json__ku64(j, "memcpy_ns", v->memcpy);
	hb_json__ku64(j, "exposed_memcpy_ns", v->exposed_memcpy);
	hb_json__ku64(j, "idle_ns", v->idle);
	hb_json__ku64(j, "missing_ns", v->missing);
	hb_json__ku64(j, "not_known_ns", hb_ivs__length(v->not_known));
	hb_json__ku64(j, "kernels", v->kernels);
	hb_json__ku64(j, "kernels_below_10us", v->kernels_10us);
	hb_json__ku64(j, "memcpys", v->memcpys);
	hb_json__ku64(j, "memsets", v->memsets);
	put_gaps(j, v);
	put_launches(&p->doc, v);
	put_streams(j, v);
	hb_json__karray(j, "copies");
	for (u32 i = 0; i < v->n_copies; i++)
		put_copy(&p->doc, &v->copies[i]);
	hb_json__end(j);
	hb_json__end(j);
}

/* ---- the document ---- */

static void put_kernels(struct page *p)
{
	struct hb_json *j = p->doc.j;
	u32 n;
	const struct hb_kernel *const *k = hb_devices__kernels(p->a->d, &n);
	u64 all = 0;

	for (u32 i = 0; i < n; i++)
		all += k[i]->dur.total;
	hb_json__karray(j, "kernels");
	for (u32 i = 0; i < hb_doc__shown(&p->doc, n); i++) {
		hb_json__object(j);
		hb_json__kstring(j, "name", hb_doc__str(&p->doc, k[i]->name));
		hb_json__kstring(j, "class", hb_work__name(k[i]->work));
		hb_doc__dist(&p->doc, &k[i]->dur, HB_DOC_NS);
		hb_json__kreal(j, "share", all ? (double)k[i]->dur.total / (double)all : 0, 6);
		hb_json__end(j);
	}
	hb_json__end(j);
	hb_doc__left(&p->doc, "kernels", n);
}

static void put_verdict(struct page *p)
{
	char caution[384];

	hb_json__kobject(p->doc.j, "verdict");
	hb_json__kstring(p->doc.j, "kind", hb_verdict__name(p->a->verdict.kind));
	hb_json__kstring(p->doc.j, "text", p->a->verdict.text);
	if (hb_analysis__caution(p->a, caution, sizeof(caution)))
		hb_json__kstring(p->doc.j, "caution", caution);
	if (p->a->load.known) {
		hb_json__ku64(p->doc.j, "load_known_ns", p->a->load.known);
		hb_json__ku64(p->doc.j, "no_load_ns", p->a->load.none);
	}
	hb_json__end(p->doc.j);
}

static void put_device_records(struct page *p)
{
	const struct hb_device_counts *c = hb_devices__counts(p->a->d);
	struct hb_json *j = p->doc.j;

	hb_json__kobject(j, "device_records");
	hb_json__ku64(j, "records", c->records);
	hb_json__ku64(j, "syncs", c->syncs);
	hb_json__ku64(j, "others", c->others);
	hb_json__ku64(j, "left_out", c->left_out);
	hb_json__ku64(j, "backward", c->backward);
	hb_json__ku64(j, "calls", c->calls);
	hb_json__ku64(j, "numbered_calls", c->numbered);
	hb_json__end(j);
}

/* What can be said of each process's device: exactly from its records, else from the calls alone. */
static void put_states(struct page *p)
{
	const struct hb_steps *steps = hb_host__steps(p->a->h);
	const struct hb_busy *busy = hb_host__busy(p->a->h);
	struct hb_json *j = p->doc.j;

	hb_json__karray(j, "device_states");
	for (u32 i = 0; i < hb_steps__series(steps); i++) {
		u32 pid = hb_steps__at(steps, i)->pid;
		struct hb_busy_sum s = hb_busy__sum(busy, pid);
		struct hb_ivs left = {0};
		u64 ns;

		hb_json__object(j);
		hb_json__ku64(j, "pid", pid);
		hb_json__kbool(j, "recorded", hb_busy__is_exact(busy, pid));
		hb_json__ku64(j, "busy_ns", s.busy);
		hb_json__ku64(j, "idle_ns", s.idle);
		hb_json__ku64(j, "unknown_ns", s.unknown);
		if (!hb_analysis__unexplained(p->a, pid, &left, &ns))
			hb_json__ku64(j, "unexplained_ns", ns);
		hb_ivs__free(&left);
		hb_json__end(j);
	}
	hb_json__end(j);
}

static void put_devices(struct page *p)
{
	const struct hb_device *v;

	hb_json__karray(p->doc.j, "devices");
	for (u32 i = 0; (v = hb_devices__at(p->a->d, i)); i++)
		if (v->n_ops)
			put_device(p, v);
	hb_json__end(p->doc.j);
}

int hb_analysis__json(const struct hb_analysis *a, const char *file, FILE *out, struct hb_error *e)
{
	return hb_analysis__json_rows(a, file, 0, out, e);
}

int hb_analysis__json_rows(const struct hb_analysis *a, const char *file, u32 rows, FILE *out,
			   struct hb_error *e)
{
	struct page p = {.a = a};
	int rc = -ENOMEM, oom = 0;

	p.doc = (struct hb_doc){.w = a->w,
				.m = a->m,
				.j = hb_json__new(out, true),
				.wall = hb_model__totals(a->m)->wall_ns,
				.max = rows};
	if (p.doc.j) {
		hb_json__object(p.doc.j);
		if (file)
			hb_json__kstring(p.doc.j, "file", file);
		hb_json__kbool(p.doc.j, "linked_only", a->o.linked_only);
		hb_doc__window(&p.doc);
		put_verdict(&p);
		hb_json__ku64(p.doc.j, "active_ns", hb_findings__active(a->f));
		hb_analysis__put_findings(a, &p.doc);
		hb_analysis__put_steps(a, &p.doc);
		put_states(&p);
		put_devices(&p);
		put_device_records(&p);
		put_kernels(&p);
		oom = hb_analysis__put_critical(a, &p.doc);
		hb_analysis__put_operators(a, &p.doc);
		hb_analysis__put_roofline(a, &p.doc);
		hb_doc__loss(&p.doc);
		hb_doc__receipt(&p.doc);
		hb_doc__notes(&p.doc);
		hb_json__end(p.doc.j);
		hb_json__newline(p.doc.j);
		rc = hb_json__free(p.doc.j);
		rc = oom ? oom : rc;
	}
	return rc == -ENOMEM ? hb_error__nomem(e, "the analysis") : rc;
}
