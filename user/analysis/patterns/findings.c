/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* All findings together: what each exposed, which pass the gate, which are effects of others, in what order.
 */
#include "analysis/patterns/findings.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/model/order.h"
#include "analysis/patterns/gates.h"
#include "base/radix.h"

#define MILLION 1000000ULL

/* ---- keeping ---- */

static bool grow(void **v, u32 n, size_t size)
{
	void *more;

	if (n & (n - 1)) /* room up to the next power of two */
		return true;
	more = realloc(*v, (n ? (size_t)n * 2 : 1) * size);
	if (!more)
		return false;
	*v = more;
	return true;
}

struct hb_draft *hb_findings__draft(struct hb_findings *f)
{
	struct hb_draft *d = calloc(1, sizeof(*d));

	if (!d || !grow((void **)&f->draft, f->n, sizeof(struct hb_draft *))) {
		free(d);
		f->oom = true;
		return NULL;
	}
	f->draft[f->n++] = d;
	return d;
}

void hb_findings__add_out(struct hb_findings *f, const struct hb_ruled_out *r)
{
	if (!grow((void **)&f->out, f->n_out, sizeof(*r)))
		f->oom = true;
	else
		f->out[f->n_out++] = *r;
}

void hb_findings__add_un(struct hb_findings *f, const struct hb_not_checked *u)
{
	if (!grow((void **)&f->un, f->n_un, sizeof(*u)))
		f->oom = true;
	else
		f->un[f->n_un++] = *u;
}

static void draft_free(struct hb_draft *d)
{
	hb_sets__free(&d->idle);
	hb_ivs__free(&d->exposed);
	hb_ivs__free(&d->sampled);
	hb_ivs__free(&d->spans);
	hb_ivs__free(&d->device);
	hb_hist__free(&d->len);
	free(d->cut);
	free(d);
}

void hb_findings__free(struct hb_findings *f)
{
	if (!f)
		return;
	for (u32 i = 0; i < f->n; i++)
		draft_free(f->draft[i]);
	free(f->draft);
	free(f->out);
	free(f->low);
	free(f->un);
	free(f);
}

const struct hb_instance *hb_finding__shown(const struct hb_finding *f)
{
	for (u32 i = 0; i < f->n_worst; i++)
		if (f->worst[i].stack)
			return &f->worst[i];
	return f->n_worst ? &f->worst[0] : NULL;
}

u32 hb_finding__stack_pid(const struct hb_finding *f, const struct hb_instance *x)
{
	return x->thread ? x->thread->pid : f->proc ? f->proc->pid : 0;
}

const struct hb_finding *hb_findings__at(const struct hb_findings *f, u32 i)
{
	return i < f->n ? &f->draft[i]->f : NULL;
}

u64 hb_findings__active(const struct hb_findings *f)
{
	return f->active;
}

const struct hb_ruled_out *hb_findings__ruled_out(const struct hb_findings *f, u32 i)
{
	return i < f->n_out ? &f->out[i] : NULL;
}

const struct hb_not_checked *hb_findings__not_checked(const struct hb_findings *f, u32 i)
{
	return i < f->n_un ? &f->un[i] : NULL;
}

/* ---- sums ---- */

static u64 cost(const struct hb_finding *f)
{
	u64 c = f->exposed_likely > f->delay_ns ? f->exposed_likely : f->delay_ns;

	return c > f->device_ns ? c : f->device_ns;
}

/* Known, likely and possible idle time, each with the ones before. */
static void sum_idle(struct hb_draft *d)
{
	struct hb_finding *f = &d->f;

	hb_ivs__join(&d->idle.sure);
	f->exposed_min = hb_ivs__length(&d->idle.sure) + d->weight_sure;
	for (size_t i = 0; i < d->idle.likely.n; i++)
		hb_ivs__add(&d->idle.sure, d->idle.likely.v[i].begin, d->idle.likely.v[i].end);
	d->exposed = d->idle.sure;
	d->idle.sure = (struct hb_ivs){0};
	hb_ivs__join(&d->exposed);
	f->exposed_likely = hb_ivs__length(&d->exposed);
	hb_ivs__join(&d->idle.maybe);
	f->exposed_max = f->exposed_likely + hb_ivs__length(&d->idle.maybe) -
			 hb_ivs__common(&d->exposed, &d->idle.maybe) + d->weight_maybe;
	f->exposed_likely += d->weight_likely;
	d->oom |= d->exposed.oom || hb_sets__oom(&d->idle);
	hb_sets__free(&d->idle);
}

/* Its lists do not grow any more. */
static void fit(struct hb_draft *d)
{
	struct hb_shrink *cut = d->n_cut && d->cut ? realloc(d->cut, d->n_cut * sizeof(*cut)) : NULL;

	hb_ivs__fit(&d->exposed);
	hb_ivs__fit(&d->sampled);
	hb_ivs__fit(&d->spans);
	hb_ivs__fit(&d->device);
	if (!cut)
		return;
	d->cut = cut;
	d->cap_cut = d->n_cut;
}

static void sum_up(struct hb_draft *d)
{
	struct hb_finding *f = &d->f;

	sum_idle(d);
	hb_ivs__join(&d->sampled);
	hb_ivs__join(&d->spans);
	hb_ivs__join(&d->device);
	f->delay_ns = hb_ivs__length(&d->spans);
	f->total_ns = d->len.total;
	f->p50_ns = hb_hist__quantile(&d->len, 0.5);
	f->p95_ns = hb_hist__quantile(&d->len, 0.95);
	f->max_ns = d->len.max;
	f->share = hb_share(cost(f), d->s->wall);
	f->gain_bound_ns = f->exposed_max > f->device_ns ? f->exposed_max : f->device_ns;
	if (f->delay_ns > f->gain_bound_ns)
		f->gain_bound_ns = f->delay_ns;
	f->exposed = d->samples ? &d->sampled : &d->exposed;
	f->sampled = d->samples;
	d->oom |= d->sampled.oom || d->spans.oom || d->device.oom;
}

/* Who waited for whom in the worst one, unless its thread hardly waited: then what it did is what counts. */
static void add_chain(struct hb_draft *d)
{
	struct hb_finding *f = &d->f;
	const struct hb_instance *x = hb_finding__shown(f);
	u32 thread = x && x->thread ? hb_timeline__by_tid(d->s->tl, x->thread->tid) : HB_NONE;

	if (thread == HB_NONE || d->samples)
		return;
	f->n_hops = hb_wake__chain(d->s->wk, thread, x->begin, x->end, f->hop, HB_HOPS);
	if (f->n_hops &&
	    hb_overlap(f->hop[0].begin, f->hop[0].end, x->begin, x->end) < (x->end - x->begin) / 4)
		f->n_hops = 0;
	if (f->n_hops)
		hb_wake__chain_text(d->s->wk, f->hop, f->n_hops, f->chain, sizeof(f->chain));
}

#define BEGIN_OF(x)  ((x)->begin)
#define THREAD_OF(x) ((x)->thread)
HB_RADIX_SORT(sort_begins, struct hb_shrink, BEGIN_OF)
HB_RADIX_SORT(sort_threads, struct hb_shrink, THREAD_OF)

static bool are_sorted(const struct hb_shrink *x, u32 n)
{
	for (u32 i = 1; i < n; i++)
		if (x[i].thread < x[i - 1].thread ||
		    (x[i].thread == x[i - 1].thread && x[i].begin < x[i - 1].begin))
			return false;
	return true;
}

/* By thread and time, and without overlap. 0 or -ENOMEM. */
static int join_cuts(struct hb_draft *d)
{
	u32 to = 0;

	if (!are_sorted(d->cut, d->n_cut) &&
	    (sort_begins(d->cut, d->n_cut) || sort_threads(d->cut, d->n_cut)))
		return -ENOMEM;
	for (u32 i = 1; i < d->n_cut; i++) {
		struct hb_shrink *last = &d->cut[to], x = d->cut[i];

		if (x.thread != last->thread || x.begin >= last->end)
			d->cut[++to] = x;
		else if (x.end > last->end)
			last->end = x.end;
	}
	d->n_cut = to + 1;
	return 0;
}

static u64 at_most(u64 ns, u64 most)
{
	return ns < most ? ns : most;
}

/* The steps of its process, or of the one that gives most work, replayed without the occurrences. The replay
 * knows nothing of work that runs beside: no more than the bound can be gained. */
static void replay(struct hb_draft *d)
{
	const struct hb_series *p = d->f.proc ? hb_steps__of_pid(d->s->steps, d->f.proc->pid) : NULL;

	if ((!p || !p->n) && hb_steps__series(d->s->steps))
		p = hb_steps__at(d->s->steps, 0);
	if (!d->n_cut || d->n_cut == HB_MAX_CUTS || !p || !p->n || p->dispatch == HB_NONE ||
	    !d->f.exposed_max)
		return;
	if (join_cuts(d) || hb_path__what_if(d->s->path, p->dispatch, p->step[0].begin, p->step[p->n - 1].end,
					     d->cut, d->n_cut, &d->f.what_if))
		d->oom = true;
	else
		d->f.has_what_if = true;
	d->f.what_if = (struct hb_range){.min = at_most(d->f.what_if.min, d->f.gain_bound_ns),
					 .max = at_most(d->f.what_if.max, d->f.gain_bound_ns),
					 .likely = at_most(d->f.what_if.likely, d->f.gain_bound_ns)};
}

static void judge(struct hb_draft *d, const struct hb_thresholds *t)
{
	struct hb_finding *f = &d->f;
	u64 least = hb_thresholds__value(t, &hb_pattern_gates, "exposed_share") * d->s->active / MILLION;
	bool by_exposure = f->exposed_likely >= f->delay_ns && f->exposed_likely >= f->device_ns;

	f->confidence = HB_CONFIDENCE_HIGH;
	if (by_exposure && f->exposed_min < f->exposed_max && f->exposed_min < least) {
		f->confidence = HB_CONFIDENCE_MEDIUM;
		f->why = "whether the device was idle then is inferred, not recorded";
	}
	if (d->samples && d->samples < hb_thresholds__value(t, &hb_pattern_gates, "samples")) {
		f->confidence = HB_CONFIDENCE_LOW;
		f->why = "it rests on few CPU samples";
	}
	if (d->cap < f->confidence) {
		f->confidence = d->cap;
		f->why = d->cap_why;
	}
}

/* ---- the gate ---- */

/* What the median step exposes, millionths of the median step; 0 with too few steps. */
static u64 median_step(struct hb_draft *d, u64 least)
{
	const struct hb_series *s = d->f.proc ? hb_steps__of_pid(d->s->steps, d->f.proc->pid) : NULL;
	u64 *v, share;

	if (!s && hb_steps__series(d->s->steps))
		s = hb_steps__at(d->s->steps, 0);
	if (!s || s->n < least || !s->n || !d->exposed.n)
		return 0;
	v = calloc(s->n, sizeof(*v));
	if (!v) {
		d->oom = true;
		return 0;
	}
	for (u32 i = 0; i < s->n; i++)
		v[i] = hb_ivs__within(&d->exposed, s->step[i].begin, s->step[i].end);
	hb_order__values(v, s->n);
	share = hb_share(v[(s->n - 1) / 2], s->p50);
	free(v);
	return share;
}

/* Of a device that mostly waits for work no time is to be saved on it. */
static u64 busy_share(const struct hb_draft *d)
{
	const struct hb_device *v = d->s->dev ? hb_devices__at(d->s->dev, d->f.device) : NULL;

	return v ? hb_share(v->busy, v->end - v->begin) : 0;
}

static bool passes(struct hb_draft *d, const struct hb_thresholds *t)
{
#define GATE(key) hb_thresholds__value(t, &hb_pattern_gates, key)
	const struct hb_finding *f = &d->f;
	u64 whole = d->s->active, event = GATE("event");

	if (d->pass)
		return true;
	if (hb_share(f->exposed_likely, whole) >= GATE("exposed_share") && f->exposed_likely)
		return true;
	if (hb_share(f->delay_ns, whole) >= GATE("delay_share") && f->delay_ns)
		return true;
	if (hb_share(f->device_ns, whole) >= GATE("device_share") && f->device_ns &&
	    busy_share(d) >= GATE("device_busy"))
		return true;
	if (f->n_worst && f->worst[0].exposed_likely >= event && f->worst[0].exposed_likely)
		return true;
	if (d->worst_delay && d->worst_delay >= event)
		return true;
	return median_step(d, GATE("steps")) >= GATE("step_share") && f->exposed_likely;
#undef GATE
}

static void below_gate(struct hb_findings *f, const struct hb_draft *d, const struct hb_thresholds *t)
{
	bool device = d->f.device_ns > 0, delay = !device && d->f.delay_ns > d->f.exposed_likely;
	bool idle_device =
	    device && busy_share(d) < hb_thresholds__value(t, &hb_pattern_gates, "device_busy");
	u32 i = idle_device ? HB_GATE_BUSY
		: device    ? HB_GATE_DEVICE
		: delay	    ? HB_GATE_DELAY
			    : HB_GATE_EXPOSED;
	const struct hb_param *p = &hb_pattern_gates.params[i];
	struct hb_ruled_out r = {
	    .pattern = d->f.pattern,
	    .measure = {.param = p,
			.value = idle_device ? busy_share(d) : hb_share(cost(&d->f), d->s->active),
			.threshold = hb_thresholds__value(t, &hb_pattern_gates, p->key)},
	};

	snprintf(r.what, sizeof(r.what), "it occurs (%llu times), but costs too little to be worth a change",
		 (unsigned long long)d->f.count);
	if (!grow((void **)&f->low, f->n_low, sizeof(r)))
		f->oom = true;
	else
		f->low[f->n_low++] = r;
}

/* Of a pattern with several subjects only those above the gate are found; without any it is ruled out once,
 * by the dearest. */
void hb_findings__gate(struct hb_findings *f, u32 first, const struct hb_thresholds *t)
{
	struct hb_draft *best = NULL;
	u32 to = first;

	for (u32 i = first; i < f->n; i++) {
		struct hb_draft *d = f->draft[i];

		sum_up(d);
		judge(d, t);
		if (passes(d, t)) {
			fit(d);
			f->draft[to++] = d;
			continue;
		}
		f->oom |= d->oom;
		if (best && cost(&best->f) >= cost(&d->f)) {
			draft_free(d);
			continue;
		}
		if (best)
			draft_free(best);
		best = d;
	}
	if (best && to == first)
		below_gate(f, best, t);
	if (best)
		draft_free(best);
	f->n = to;
}

/* ---- causes and effects ---- */

static const struct hb_ivs *cover_of(const struct hb_draft *d)
{
	return d->f.exposed->n || !d->spans.n ? d->f.exposed : &d->spans;
}

static bool explains(const struct hb_pattern *c, const struct hb_pattern *x)
{
	return c->explains && strstr(c->explains, x->id);
}

/* How much of x the cause covers. Where samples stand for time, sums are compared: what was sampled is a
 * part. */
static u64 covered(const struct hb_draft *x, const struct hb_draft *c)
{
	const struct hb_ivs *a = cover_of(x), *b = cover_of(c);
	u64 len = hb_ivs__length(a), common = hb_ivs__common(a, b);

	/* Of what only costs device time: where the one is told to explain the other. */
	if (!len && explains(c->f.pattern, x->f.pattern))
		return hb_share(hb_ivs__common(&x->device, &c->device), hb_ivs__length(&x->device));
	if (!common || !len)
		return 0;
	if (c->samples || x->samples) {
		u64 part = hb_share(cost(&c->f), cost(&x->f));

		return part < MILLION ? part : MILLION;
	}
	return hb_share(common, len);
}

static bool may_cause(const struct hb_draft *a, const struct hb_draft *b)
{
	const struct hb_pattern *c = a->f.pattern, *x = b->f.pattern;

	if (c == x || x->rank == HB_RANK_OWN || explains(x, c))
		return false;
	return c->rank < x->rank || explains(c, x);
}

/* Would naming c the cause of x go round in a circle? */
static bool circular(const struct hb_draft *c, const struct hb_draft *x)
{
	for (const struct hb_finding *f = &c->f; f; f = f->cause)
		if (f == &x->f)
			return true;
	return false;
}

/* Several causes together may cover what none of them does alone; the one with the largest part is named. */
static void find_cause(struct hb_findings *f, struct hb_draft *x, u64 least)
{
	struct hb_ivs all = {0};
	struct hb_draft *best = NULL;
	u64 most = 0, together;

	for (u32 i = 0; i < f->n; i++) {
		struct hb_draft *c = f->draft[i];
		u64 part = may_cause(c, x) && !circular(c, x) ? covered(x, c) : 0;
		const struct hb_ivs *v = cover_of(c);

		if (!part)
			continue;
		if (part > most) {
			most = part;
			best = c;
		}
		for (size_t k = 0; k < v->n; k++)
			hb_ivs__add(&all, v->v[k].begin, v->v[k].end);
	}
	hb_ivs__join(&all);
	together = hb_share(hb_ivs__common(cover_of(x), &all), hb_ivs__length(cover_of(x)));
	if (best && !x->samples && !best->samples && together > most)
		most = together;
	if (best && most >= least)
		x->f.cause = &best->f;
	f->oom |= all.oom;
	hb_ivs__free(&all);
}

static void link_causes(struct hb_findings *f, const struct hb_thresholds *t)
{
	u64 least = hb_thresholds__value(t, &hb_pattern_gates, "covered_share");

	for (u32 i = 0; i < f->n; i++)
		find_cause(f, f->draft[i], least);
	for (u32 i = 0; i < f->n; i++) { /* an effect of an effect is one of the first cause */
		struct hb_finding *x = &f->draft[i]->f;

		while (x->cause && x->cause->cause)
			x->cause = x->cause->cause;
	}
	for (u32 i = 0; i < f->n; i++)
		if (f->draft[i]->f.cause)
			((struct hb_draft *)f->draft[i]->f.cause)->f.n_effects++;
}

/* A symptom comes after what else was found, unless all that costs far less than it. */
static void put_symptoms_last(struct hb_findings *f)
{
	u64 most = 0;

	for (u32 i = 0; i < f->n; i++) {
		const struct hb_finding *x = &f->draft[i]->f;

		if (!x->cause && x->pattern->rank != HB_RANK_SYMPTOM && cost(x) > most)
			most = cost(x);
	}
	for (u32 i = 0; i < f->n; i++) {
		const struct hb_finding *x = &f->draft[i]->f;

		f->draft[i]->last = x->pattern->rank == HB_RANK_SYMPTOM && cost(x) / 10 <= most;
	}
}

static int cmp_findings(const void *a, const void *b)
{
	const struct hb_finding *x = &(*(struct hb_draft *const *)a)->f,
				*y = &(*(struct hb_draft *const *)b)->f;

	bool a_last = (*(struct hb_draft *const *)a)->last, b_last = (*(struct hb_draft *const *)b)->last;

	if (!x->cause != !y->cause)
		return x->cause ? 1 : -1;
	if (a_last != b_last)
		return a_last ? 1 : -1;
	if (cost(x) != cost(y))
		return cost(x) > cost(y) ? -1 : 1;
	return strcmp(x->pattern->id, y->pattern->id);
}

void hb_findings__finish(struct hb_findings *f, const struct hb_scene *s, const struct hb_thresholds *t)
{
	for (u32 i = 0; i < f->n_low; i++)
		hb_findings__add_out(f, &f->low[i]);
	link_causes(f, t);
	put_symptoms_last(f);
	if (f->n)
		qsort(f->draft, f->n, sizeof(*f->draft), cmp_findings);
	for (u32 i = 0; i < f->n; i++) {
		add_chain(f->draft[i]);
		if (!f->draft[i]->f.cause)
			replay(f->draft[i]);
		f->oom |= f->draft[i]->oom;
	}
}
