/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the catalogue of patterns found, as members of a JSON document; docs/analyze-json.md. */
#include "analysis/model/decode.h"
#include "analysis/report/analyze_private.h"

static void put_exposed(struct hb_json *j, u64 min, u64 max, u64 likely)
{
	if (min == max) {
		hb_json__ku64(j, "exposed_ns", min);
		return;
	}
	hb_json__ku64(j, "exposed_min_ns", min);
	hb_json__ku64(j, "exposed_max_ns", max);
	hb_json__ku64(j, "exposed_likely_ns", likely);
}

static void put_stack(struct hb_doc *d, const char *key, u32 pid, u32 stack)
{
	if (pid)
		hb_doc__stack(d, key, pid, stack);
}

static void put_ran(struct hb_doc *d, u32 loc)
{
	const struct hb_loc *l = loc ? hb_window__loc(d->w, loc) : NULL;
	char frame[256];

	if (l)
		hb_json__kstring(d->j, "ran", hb_decode__frame(d->w, l, HB_FRAME_LINE, frame, sizeof(frame)));
}

static void put_who(struct hb_doc *d, const struct hb_finding *f, const struct hb_instance *x)
{
	hb_doc__task(d, "thread", x->thread);
	put_stack(d, "stack", hb_finding__stack_pid(f, x), x->stack);
	put_ran(d, x->ran);
	hb_doc__task(d, "waker", x->waker);
	put_stack(d, "waker_stack", x->waker ? x->waker->pid : 0, x->waker_stack);
}

static void put_instances(struct hb_doc *d, const struct hb_finding *f)
{
	hb_json__karray(d->j, "instances");
	for (u32 i = 0; i < f->n_worst; i++) {
		const struct hb_instance *x = &f->worst[i];

		hb_json__object(d->j);
		hb_json__ks64(d->j, "ts", (s64)(x->begin - hb_window__info(d->w)->start_ts));
		hb_json__ku64(d->j, "dur", x->end - x->begin);
		put_exposed(d->j, x->exposed_min, x->exposed_max, x->exposed_likely);
		put_who(d, f, x);
		hb_json__end(d->j);
	}
	hb_json__end(d->j);
}

/* Shares and ratios as they are meant, not in millionths. */
static void put_value(struct hb_json *j, const char *key, enum hb_unit unit, u64 value)
{
	if (unit == HB_UNIT_SHARE || unit == HB_UNIT_RATIO)
		hb_json__kreal(j, key, (double)value / 1e6, 6);
	else
		hb_json__ku64(j, key, value);
}

static void put_measure(struct hb_json *j, const struct hb_measure *m)
{
	static const char *const units[] = {
	    [HB_UNIT_SHARE] = "share", [HB_UNIT_RATIO] = "ratio", [HB_UNIT_NS] = "ns",
	    [HB_UNIT_COUNT] = "count", [HB_UNIT_RATE] = "rate",	  [HB_UNIT_BYTES] = "bytes"};

	hb_json__kstring(j, "condition", m->param->key);
	hb_json__kstring(j, "meaning", m->param->doc);
	hb_json__kstring(j, "unit", units[m->param->unit]);
	put_value(j, "value", m->param->unit, m->value);
	put_value(j, "threshold", m->param->unit, m->threshold);
	hb_json__kbool(j, "at_most", m->at_most);
}

static void put_measures(struct hb_json *j, const struct hb_finding *f)
{
	hb_json__karray(j, "measures");
	for (u32 i = 0; i < f->n_measures; i++) {
		hb_json__object(j);
		put_measure(j, &f->measure[i]);
		hb_json__end(j);
	}
	hb_json__end(j);
}

static void put_head(struct hb_json *j, const struct hb_pattern *p)
{
	hb_json__kstring(j, "id", p->id);
	hb_json__kstring(j, "title", p->title);
	hb_json__kstring(j, "layer", p->layer);
}

static void put_cost(struct hb_json *j, const struct hb_finding *f)
{
	put_exposed(j, f->exposed_min, f->exposed_max, f->exposed_likely);
	if (f->delay_ns)
		hb_json__ku64(j, "delay_ns", f->delay_ns);
	if (f->device_ns)
		hb_json__ku64(j, "device_ns", f->device_ns);
	hb_json__kreal(j, "share", (double)f->share / 1e6, 6);
	hb_json__ku64(j, "count", f->count);
	hb_json__ku64(j, "total_ns", f->total_ns);
	hb_json__ku64(j, "p50_ns", f->p50_ns);
	hb_json__ku64(j, "p95_ns", f->p95_ns);
	hb_json__ku64(j, "max_ns", f->max_ns);
	hb_json__ku64(j, "gain_bound_ns", f->gain_bound_ns);
	if (f->has_what_if) {
		hb_json__kobject(j, "what_if");
		hb_json__ku64(j, "min_ns", f->what_if.min);
		hb_json__ku64(j, "likely_ns", f->what_if.likely);
		hb_json__ku64(j, "max_ns", f->what_if.max);
		hb_json__end(j);
	}
	hb_json__kstring(j, "confidence", hb_confidence__name(f->confidence));
	if (f->why)
		hb_json__kstring(j, "why", f->why);
}

static void put_advice(struct hb_json *j, const struct hb_pattern *p)
{
	const struct {
		const char *key, *text;
	} m[] = {{"fix", p->fix}, {"reference", p->ref}, {"traps", p->traps}, {"settle", p->settle}};

	for (size_t i = 0; i < sizeof(m) / sizeof(*m); i++)
		if (m[i].text)
			hb_json__kstring(j, m[i].key, m[i].text);
}

static void put_chain(const struct hb_analysis *a, struct hb_doc *d, const struct hb_finding *f)
{
	const struct hb_hop *end = hb_finding__end(f);

	if (f->chain[0])
		hb_json__kstring(d->j, "chain", f->chain);
	if (!end)
		return;
	hb_doc__task(d, "chain_end", end->task);
	hb_json__kstring(d->j, "chain_end_by", hb_hop__ending(end));
	put_stack(d, "chain_end_stack", end->task->pid, hb_hop__stack(hb_host__wake(a->h), end));
}

static void put_finding(const struct hb_analysis *a, struct hb_doc *d, const struct hb_finding *f)
{
	const struct hb_device *v = hb_devices__at(a->d, f->device); /* NULL: none */

	hb_json__object(d->j);
	put_head(d->j, f->pattern);
	hb_json__kstring(d->j, "text", f->what);
	if (f->cause)
		hb_json__kstring(d->j, "effect_of", f->cause->pattern->id);
	put_cost(d->j, f);
	if (f->proc) {
		hb_json__kobject(d->j, "process");
		hb_doc__proc(d, f->proc);
		hb_json__end(d->j);
	}
	if (v) {
		hb_json__kobject(d->j, "device");
		hb_json__ku64(d->j, "id", v->number);
		hb_json__ku64(d->j, "pid", v->pid);
		hb_json__end(d->j);
	}
	if (f->n_worst)
		put_who(d, f, hb_finding__shown(f));
	put_chain(a, d, f);
	put_instances(d, f);
	put_measures(d->j, f);
	put_advice(d->j, f->pattern);
	hb_json__end(d->j);
}

/* The bits of `needs`, in words. */
static void put_needs(struct hb_json *j, u64 needs)
{
	hb_json__karray(j, "needs");
	for (; needs; needs &= needs - 1)
		hb_json__string(j, hb_need__text(needs));
	hb_json__end(j);
}

void hb_analysis__put_findings(const struct hb_analysis *a, struct hb_doc *d)
{
	const struct hb_finding *f;
	const struct hb_ruled_out *r;
	const struct hb_not_checked *n;

	hb_json__karray(d->j, "findings");
	for (u32 i = 0; (f = hb_findings__at(a->f, i)); i++)
		put_finding(a, d, f);
	hb_json__end(d->j);
	hb_json__karray(d->j, "ruled_out");
	for (u32 i = 0; (r = hb_findings__ruled_out(a->f, i)); i++) {
		hb_json__object(d->j);
		put_head(d->j, r->pattern);
		if (r->measure.param)
			put_measure(d->j, &r->measure);
		hb_json__kstring(d->j, "text", r->what);
		hb_json__end(d->j);
	}
	hb_json__end(d->j);
	hb_json__karray(d->j, "not_checked");
	for (u32 i = 0; (n = hb_findings__not_checked(a->f, i)); i++) {
		hb_json__object(d->j);
		put_head(d->j, n->pattern);
		put_needs(d->j, n->needs);
		hb_json__kstring(d->j, "text", n->text);
		hb_json__end(d->j);
	}
	hb_json__end(d->j);
}

static void put_series(struct hb_doc *d, const struct hb_series *s, const struct hb_timeline *tl)
{
	hb_json__object(d->j);
	hb_json__ku64(d->j, "pid", s->pid);
	hb_doc__task(d, "dispatch_thread", hb_timeline__thread(tl, s->thread)->task);
	hb_json__kstring(d->j, "source", hb_steps__source_name(s->source));
	hb_json__ku64(d->j, "count", s->n);
	hb_json__ku64(d->j, "no_load_ns", s->no_load_ns);
	if (s->n) {
		hb_json__ku64(d->j, "total_ns", s->sum);
		hb_json__ku64(d->j, "min_ns", s->min);
		hb_json__ku64(d->j, "p50_ns", s->p50);
		hb_json__ku64(d->j, "p95_ns", s->p95);
		hb_json__ku64(d->j, "p99_ns", s->p99);
		hb_json__ku64(d->j, "max_ns", s->max);
	} else {
		hb_json__kstring(d->j, "why", s->why);
	}
	hb_json__end(d->j);
}

void hb_analysis__put_steps(const struct hb_analysis *a, struct hb_doc *d)
{
	const struct hb_steps *s = hb_host__steps(a->h);
	const struct hb_timeline *tl = hb_host__timeline(a->h);

	hb_json__karray(d->j, "steps");
	for (u32 i = 0; i < hb_steps__series(s); i++)
		put_series(d, hb_steps__at(s, i), tl);
	hb_json__end(d->j);
}
