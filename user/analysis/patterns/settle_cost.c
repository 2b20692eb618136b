/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a plan will cost, from what the first window counted and paid: price x rate. Where one of the two was
 * not seen nothing is made up; the line says what is missing. */
#include "analysis/patterns/settle_private.h"

#include <stdlib.h>
#include <string.h>

#define SECOND 1000000000ULL

u64 hb_settle__per_second(const struct hb_settle *s, u64 n)
{
	return n > UINT64_MAX / SECOND ? n / (s->wall / SECOND ? s->wall / SECOND : 1) : n * SECOND / s->wall;
}

struct hb_planfile_cost *hb_settle__cost(struct hb_settle *s, const char *what, const char *basis)
{
	struct hb_planfile_cost *c;

	if (s->p->n_costs == HB_PLANFILE_COSTS)
		return NULL;
	c = &s->p->cost[s->p->n_costs++];
	c->what = hb_planfile__text(what);
	c->basis = hb_planfile__text(basis);
	s->oom |= !c->what || (basis && !c->basis);
	return c;
}

static void known(struct hb_settle *s, const char *what, const char *basis, u64 rate, u64 price)
{
	struct hb_planfile_cost *c = hb_settle__cost(s, what, basis);

	if (!c)
		return;
	c->known = true;
	c->rate = rate;
	c->price_ns = price;
	if (__builtin_mul_overflow(rate, price, &c->ns_per_s))
		c->ns_per_s = UINT64_MAX;
}

static void known_sum(struct hb_settle *s, const char *what, const char *basis, u64 ns)
{
	struct hb_planfile_cost *c = hb_settle__cost(s, what, basis);

	if (!c)
		return;
	c->known = true;
	c->ns_per_s = hb_settle__per_second(s, ns);
}

bool hb_settle__meta(const struct hb_settle *s, const char *key, u64 *v)
{
	const char *text = hb_window__meta(s->in->window, key);
	char *end;

	if (!text || *text < '0' || *text > '9')
		return false;
	*v = strtoull(text, &end, 10);
	return !*end;
}

/* ---- what goes on as it was ---- */

static const struct hb_price_stat *sampler(const struct hb_settle *s)
{
	u32 n;
	const struct hb_price_stat *const *p = hb_model__prices(s->in->model, &n);

	for (u32 i = 0; i < n; i++)
		if (!p[i]->row && strcmp(hb_window__string(s->in->window, p[i]->hook), "sample") == 0)
			return p[i];
	return NULL;
}

bool hb_settle__changes(const struct hb_settle *s, const char *option, const char *key)
{
	const char *now = hb_planfile__get(s->p, option), *before = hb_window__meta(s->in->window, key);

	return now && (!before || strcmp(now, before) != 0);
}

static void as_before(struct hb_settle *s)
{
	const struct hb_totals *t = hb_model__totals(s->in->model);
	const struct hb_price_stat *samples =
	    hb_settle__changes(s, "frequency", "sample_hz") ? sampler(s) : NULL;
	u64 own, hooks = t->cost_ns;
	u32 n;

	hb_model__prices(s->in->model, &n);
	if (samples)
		hooks = hooks > samples->cost_ns ? hooks - samples->cost_ns : 0;
	if (n)
		known_sum(s, "what the first window recorded", "its receipt", hooks);
	else
		hb_settle__cost(s, "what the first window recorded", "it has no receipt");
	if (hb_settle__meta(s, "self_cpu_window_ns", &own))
		known_sum(s, "the recorder itself", "as in the first window; more records, more of it", own);
	else
		hb_settle__cost(s, "the recorder itself", "the first window does not say");
}

/* ---- what is new ---- */

static void of_samples(struct hb_settle *s)
{
	const char *text = hb_planfile__get(s->p, "frequency");
	const struct hb_price_stat *p = sampler(s);
	u64 before, now = text ? strtoull(text, NULL, 10) : 0;
	char what[64];

	if (!hb_settle__changes(s, "frequency", "sample_hz"))
		return;
	snprintf(what, sizeof(what), "CPU samples at %llu Hz", (unsigned long long)now);
	if (!p || !hb_settle__meta(s, "sample_hz", &before) || !before || p->hits > UINT64_MAX / 10000)
		hb_settle__cost(s, what, "the first window took none, so their price is not known");
	else
		known(s, what, "samples of the first window, as many times more",
		      hb_settle__per_second(s, p->hits) * now / before, p->price);
}

/* The second end of calls whose first was counted. */
static void of_timed(struct hb_settle *s)
{
	const char *list = hb_planfile__get(s->p, "timed");
	u64 hits = 0, price;
	char what[96];
	u32 n;
	const struct hb_price_stat *const *p = hb_model__prices(s->in->model, &n);

	if (!list || hb_settle__had(s, "timed", list))
		return;
	for (u32 i = 0; i < n; i++)
		if (p[i]->row && !p[i]->row->timed &&
		    hb_settle__names(list, hb_word(HB_WORDS_CLASS, p[i]->row->cls)))
			hits += p[i]->hits;
	snprintf(what, sizeof(what), "the ends of calls (%s)", list);
	if (!n)
		hb_settle__cost(s, what, "the first window has no receipt that counts them");
	else if (!hb_settle__meta(s, "price_return_ns", &price))
		hb_settle__cost(s, what, "the first window does not say what a return probe costs");
	else
		known(s, what, "calls of the first window, return probes as it measured them",
		      hb_settle__per_second(s, hits), price);
}

void hb_settle__costs(struct hb_settle *s)
{
	as_before(s);
	of_samples(s);
	of_timed(s);
	hb_settle__uncounted(s);
}
