/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How a detector tells: conditions, occurrences. */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/patterns/findings.h"
#include "base/text.h"

#define MILLION 1000000ULL

u64 hb_look__param(const struct hb_look *l, u32 i)
{
	return hb_thresholds__value(l->t, l->p, l->p->params[i].key);
}

void hb_look__subject(struct hb_look *l)
{
	l->n = 0;
}

/* How near a failed condition came to its threshold, millionths. */
static u64 part_of(const struct hb_measure *m)
{
	u64 a = m->at_most ? m->threshold : m->value, b = m->at_most ? m->value : m->threshold;

	return hb_share(a, b);
}

static void miss(struct hb_look *l, const struct hb_measure *m)
{
	u64 part = part_of(m);

	if (l->any && (l->n < l->best_n || (l->n == l->best_n && part < l->best_part)))
		return;
	l->any = true;
	l->best_n = l->n;
	l->best_part = part;
	l->best.measure = *m;
	l->best.what[0] = 0;
}

static bool measured(struct hb_look *l, struct hb_measure m)
{
	bool holds = m.at_most ? m.value <= m.threshold : m.value >= m.threshold;

	if (!holds) {
		miss(l, &m);
		return false;
	}
	if (l->n < HB_MEASURES)
		l->measure[l->n++] = m;
	return true;
}

bool hb_look__at_least(struct hb_look *l, u32 i, u64 value)
{
	return measured(l, (struct hb_measure){
			       .param = &l->p->params[i], .value = value, .threshold = hb_look__param(l, i)});
}

bool hb_look__at_most(struct hb_look *l, u32 i, u64 value)
{
	return measured(l, (struct hb_measure){.param = &l->p->params[i],
					       .value = value,
					       .threshold = hb_look__param(l, i),
					       .at_most = true});
}

bool hb_look__either(struct hb_look *l, u32 i, u64 value, u32 j, u64 other)
{
	return value >= hb_look__param(l, i) ? hb_look__at_least(l, i, value)
					     : hb_look__at_least(l, j, other);
}

int hb_look__threads(struct hb_look *l, int (*one)(struct hb_look *l, u32 thread))
{
	int err = 0;

	for (u32 t = 0; t < hb_timeline__threads(l->s->tl) && !err; t++)
		if (hb_scene__leads(l->s, t))
			err = one(l, t);
	return err;
}

int hb_look__procs(struct hb_look *l, int (*one)(struct hb_look *l, const struct hb_proc_stat *p))
{
	u32 n;
	const struct hb_proc_stat *const *p = hb_model__procs(l->s->m, &n);
	int err = 0;

	for (u32 i = 0; i < n && !err; i++)
		err = one(l, p[i]);
	return err;
}

int hb_look__series(struct hb_look *l, int (*one)(struct hb_look *l, const struct hb_series *p))
{
	int err = 0;

	for (u32 i = 0; i < hb_steps__series(l->s->steps) && !err; i++) {
		const struct hb_series *p = hb_steps__at(l->s->steps, i);

		if (p->dispatch != HB_NONE)
			err = one(l, p);
	}
	return err;
}

int hb_look__devices(struct hb_look *l, int (*one)(struct hb_look *l, const struct hb_device *d))
{
	int err = 0;

	for (u32 i = 0; l->s->dev && i < hb_devices__count(l->s->dev) && !err; i++)
		err = one(l, hb_devices__at(l->s->dev, i));
	return err;
}

void hb_look__unchecked(struct hb_look *l, u64 needs, const char *fmt, ...)
{
	va_list ap;

	l->is_unchecked = true;
	l->unchecked.needs = needs;
	va_start(ap, fmt);
	vsnprintf(l->unchecked.text, sizeof(l->unchecked.text), fmt, ap);
	va_end(ap);
	hb_text__clean(l->unchecked.text);
}

void hb_look__note(struct hb_look *l, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(l->best.what, sizeof(l->best.what), fmt, ap);
	va_end(ap);
	hb_text__clean(l->best.what);
}

/* ---- drafts ---- */

struct hb_draft *hb_look__find(struct hb_look *l, const char *fmt, ...)
{
	struct hb_draft *d = hb_findings__draft(l->out);
	va_list ap;

	if (!d)
		return NULL;
	l->found++;
	d->s = l->s;
	d->f.pattern = l->p;
	d->f.device = UINT32_MAX;
	d->f.n_measures = l->n;
	memcpy(d->f.measure, l->measure, sizeof(l->measure));
	d->cap = HB_CONFIDENCE_HIGH;
	va_start(ap, fmt);
	vsnprintf(d->f.what, sizeof(d->f.what), fmt, ap);
	va_end(ap);
	hb_text__clean(d->f.what);
	return d;
}

void hb_draft__say(struct hb_draft *d, const char *fmt, ...)
{
	size_t n = strlen(d->f.what);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(d->f.what + n, sizeof(d->f.what) - n, fmt, ap);
	va_end(ap);
	hb_text__clean(d->f.what);
}

void hb_draft__pid(struct hb_draft *d, u32 pid)
{
	u32 n;
	const struct hb_proc_stat *const *p = hb_model__procs(d->s->m, &n);

	for (u32 i = 0; i < n; i++)
		if (p[i]->pid == pid)
			d->f.proc = p[i];
}

void hb_draft__pass(struct hb_draft *d)
{
	d->pass = true;
}

void hb_draft__device(struct hb_draft *d, u32 device)
{
	d->f.device = device;
}

void hb_draft__confidence(struct hb_draft *d, enum hb_confidence at_most, const char *why)
{
	if (at_most >= d->cap)
		return;
	d->cap = at_most;
	d->cap_why = why;
}

/* Most are not: only those have to be described. */
static bool is_among_worst(const struct hb_finding *f, const struct hb_instance *x)
{
	const struct hb_instance *least = &f->worst[HB_INSTANCES - 1];

	if (f->n_worst < HB_INSTANCES || least->exposed_likely < x->exposed_likely)
		return true;
	return least->exposed_likely == x->exposed_likely && least->end - least->begin < x->end - x->begin;
}

/* Keeps the three worst: by exposed time, then by length. Where it is kept, or NULL. */
static struct hb_instance *keep_worst(struct hb_finding *f, const struct hb_instance *x)
{
	u32 at = f->n_worst;

	while (at && (f->worst[at - 1].exposed_likely < x->exposed_likely ||
		      (f->worst[at - 1].exposed_likely == x->exposed_likely &&
		       f->worst[at - 1].end - f->worst[at - 1].begin < x->end - x->begin)))
		at--;
	if (at == HB_INSTANCES)
		return NULL;
	if (f->n_worst < HB_INSTANCES)
		f->n_worst++;
	memmove(&f->worst[at + 1], &f->worst[at], (f->n_worst - at - 1) * sizeof(*x));
	f->worst[at] = *x;
	return &f->worst[at];
}

static int count(struct hb_draft *d, u64 times, u64 length)
{
	d->f.count += times;
	if (hb_hist__add(&d->len, length))
		d->oom = true;
	return d->oom ? -ENOMEM : 0;
}

static void describe(struct hb_draft *d, const struct hb_case *c, struct hb_instance *x)
{
	struct hb_instance *kept;

	x->thread = c->thread == HB_NONE ? NULL : hb_timeline__thread(d->s->tl, c->thread)->task;
	x->stack = c->stack;
	x->waker = c->waker;
	x->waker_stack = c->waker_stack;
	x->ran = c->ran;
	x->launch = c->launch;
	kept = keep_worst(&d->f, x);
	if (kept && c->slept)
		kept->waker = hb_wake__task(d->s->wk, c->thread, c->slept - 1);
}

static int keep(struct hb_draft *d, const struct hb_case *c, struct hb_instance *x)
{
	x->begin = c->begin;
	x->end = c->weight ? c->begin + c->weight : c->end;
	if (is_among_worst(&d->f, x))
		describe(d, c, x);
	return count(d, c->count ? c->count : 1, c->weight ? c->weight : c->end - c->begin);
}

/* For the replay without them. */
static void keep_cut(struct hb_draft *d, const struct hb_case *c)
{
	if (c->thread == HB_NONE || c->end <= c->begin || d->n_cut == HB_MAX_CUTS)
		return;
	if (d->n_cut == HB_MAX_CUTS - 1) { /* too many: see replay() */
		d->n_cut++;
		free(d->cut);
		d->cut = NULL;
		d->cap_cut = 0;
		return;
	}
	if (d->n_cut == d->cap_cut) {
		u32 cap = d->cap_cut ? d->cap_cut * 2 : 64;
		struct hb_shrink *x = realloc(d->cut, cap * sizeof(*x));

		if (!x) {
			d->oom = true;
			return;
		}
		d->cut = x;
		d->cap_cut = cap;
	}
	d->cut[d->n_cut++] = (struct hb_shrink){.thread = c->thread, .begin = c->begin, .end = c->end};
}

/* A sample is a moment: it counts with all of its weight or not at all. The idle stretch around it stands for
 * it where findings are laid over each other. */
static int add_sample(struct hb_draft *d, const struct hb_case *c, const struct hb_sets *from)
{
	struct hb_instance x = {0};
	u64 t = c->begin, from_t = t > c->weight / 2 ? t - c->weight / 2 : 0, to_t = t + c->weight / 2;
	bool sure = hb_ivs__within(&from->sure, t, t + 1), likely = hb_sets__likely(from, t, t + 1);

	d->samples++;
	x.exposed_min = !c->unsure && sure ? c->weight : 0;
	x.exposed_likely = likely ? c->weight : 0;
	x.exposed_max = likely || hb_ivs__within(&from->maybe, t, t + 1) ? c->weight : 0;
	d->weight_sure += x.exposed_min;
	d->weight_likely += x.exposed_likely;
	d->weight_maybe += x.exposed_max;
	if (x.exposed_likely) {
		hb_ivs__cut(&from->sure, from_t, to_t, &d->sampled);
		hb_ivs__cut(&from->likely, from_t, to_t, &d->sampled);
	}
	return keep(d, c, &x);
}

int hb_draft__add(struct hb_draft *d, const struct hb_case *c)
{
	const struct hb_sets *from = hb_scene__exposed(d->s, c->thread);
	struct hb_instance x = {0};

	if (c->weight)
		return add_sample(d, c, from);
	if (from->sure.n)
		x.exposed_min = hb_ivs__cut(&from->sure, c->begin, c->end, &d->idle.sure);
	x.exposed_likely = x.exposed_min;
	if (from->likely.n)
		x.exposed_likely += hb_ivs__cut(&from->likely, c->begin, c->end, &d->idle.likely);
	x.exposed_max = x.exposed_likely;
	if (from->maybe.n)
		x.exposed_max += hb_ivs__cut(&from->maybe, c->begin, c->end, &d->idle.maybe);
	keep_cut(d, c);
	return keep(d, c, &x);
}

int hb_draft__add_idle(struct hb_draft *d, const struct hb_case *c, const struct hb_ivs *sure,
		       const struct hb_ivs *maybe)
{
	struct hb_instance x = {0};

	if (sure)
		x.exposed_min = hb_ivs__cut(sure, c->begin, c->end, &d->idle.sure);
	if (maybe == sure && maybe) {
		x.exposed_max = x.exposed_min;
	} else if (maybe) {
		x.exposed_max = hb_ivs__cut(maybe, c->begin, c->end, &d->idle.likely);
	} else {
		x.exposed_max = c->end - c->begin;
		hb_ivs__add(&d->idle.likely, c->begin, c->end);
	}
	x.exposed_likely = x.exposed_max;
	return keep(d, c, &x);
}

int hb_draft__add_sets(struct hb_draft *d, const struct hb_case *c, const struct hb_sets *idle)
{
	struct hb_instance x = {.exposed_min = hb_ivs__cut(&idle->sure, c->begin, c->end, &d->idle.sure)};

	x.exposed_max = x.exposed_min;
	if (idle->likely.n)
		x.exposed_max += hb_ivs__cut(&idle->likely, c->begin, c->end, &d->idle.likely);
	if (idle->maybe.n)
		x.exposed_max += hb_ivs__cut(&idle->maybe, c->begin, c->end, &d->idle.likely);
	x.exposed_likely = x.exposed_max;
	return keep(d, c, &x);
}

int hb_draft__add_delay(struct hb_draft *d, const struct hb_case *c)
{
	hb_ivs__add(&d->spans, c->begin, c->end);
	if (c->end - c->begin > d->worst_delay)
		d->worst_delay = c->end - c->begin;
	return hb_draft__add(d, c);
}

/* What devices idled is what a case cost, and as late are the requests. */
static int add_idled(struct hb_draft *d, const struct hb_case *c, const struct hb_sets *from)
{
	u64 late = hb_sets__likely(from, c->begin, c->end);

	hb_ivs__cut(&from->sure, c->begin, c->end, &d->spans);
	hb_ivs__cut(&from->likely, c->begin, c->end, &d->spans);
	if (late > d->worst_delay)
		d->worst_delay = late;
	return hb_draft__add(d, c);
}

int hb_draft__add_slower(struct hb_draft *d, const struct hb_case *c)
{
	const struct hb_sets *from = hb_scene__exposed(d->s, c->thread);
	struct hb_instance x = {.exposed_likely = c->end - c->begin, .exposed_max = c->end - c->begin};

	if (hb_busy__is_exact(d->s->busy, hb_timeline__thread(d->s->tl, c->thread)->pid))
		return add_idled(d, c, from);
	hb_ivs__add(&d->spans, c->begin, c->end);
	if (c->end - c->begin > d->worst_delay)
		d->worst_delay = c->end - c->begin;
	if (from->sure.n)
		x.exposed_min = hb_ivs__cut(&from->sure, c->begin, c->end, &d->idle.sure);
	hb_ivs__add(&d->idle.likely, c->begin, c->end);
	keep_cut(d, c);
	return keep(d, c, &x);
}

int hb_draft__add_device(struct hb_draft *d, const struct hb_case *c, u64 saved)
{
	struct hb_instance x = {0};

	d->f.device_ns += saved;
	if (d->f.pattern->explains || d->f.pattern->rank == HB_RANK_SYMPTOM)
		hb_ivs__add(&d->device, c->begin, c->end);
	return keep(d, c, &x);
}

int hb_draft__add_work(struct hb_draft *d, const struct hb_device *v, const struct hb_roof_row *r)
{
	const struct hb_roof_exec *x = hb_roofline__execs(d->s->roofline, r);
	u64 light = (u64)r->light_ns;
	int err = 0;

	hb_draft__pid(d, v->pid);
	hb_draft__device(d, v->index);
	if (r->basis == HB_ROOF_BY_PLAN)
		hb_draft__confidence(d, HB_CONFIDENCE_MEDIUM,
				     "sizes by the model's configuration and the order of the kernels");
	for (u64 i = 0; i < r->dur.count && !err; i++) {
		struct hb_case c = {
		    .begin = x[i].begin, .end = x[i].begin + x[i].ns, .thread = HB_NONE, .stack = x[i].stack};

		err = hb_draft__add_device(d, &c, x[i].ns > light ? x[i].ns - light : 0);
	}
	return err;
}
