/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Communication with nothing to compute beside it. */
#include <errno.h>
#include <stdlib.h>

#include "analysis/patterns/pattern.h"

enum { EXPOSED, LEAST, OVERLAP };

static const struct hb_param params[] = {
    [EXPOSED] = {"exposed_share", HB_UNIT_SHARE, 50000,
		 "communication beside which nothing is computed, of the device's time"},
    [LEAST] = {"least", HB_UNIT_NS, 100000, "less communication than this in the window does not count"},
    [OVERLAP] = {"overlap", HB_UNIT_SHARE, 700000,
		 "communication that is hidden behind computing, of all communication, at most"},
    {0},
};

/* The times in which this device waited in a collective for the last rank to come. False: that is not known.
 */
static bool waits_of(const struct hb_scene *s, const struct hb_device *v, struct hb_ivs *out)
{
	bool known = false;

	for (u32 k = 0; k < hb_collectives__groups(s->coll); k++) {
		const struct hb_coll_group *g = hb_collectives__at(s->coll, k);

		for (u32 r = 0; g->source == HB_COLL_DEVICE && r < g->n_ranks; r++) {
			if (g->rank[r].device != v->index)
				continue;
			known = true;
			for (u32 i = 0; i < g->n; i++) {
				const struct hb_device_op *o = &v->op[hb_coll__op(s->coll, g, i, r)];
				u64 last = g->coll[i].last + (u64)hb_coll__ahead(s->coll, g, i, r);

				hb_ivs__add(out, o->begin, last < o->end ? last : o->end);
			}
		}
	}
	hb_ivs__join(out);
	return known;
}

struct comm {
	struct hb_ivs all, alone; /* without such waits: communication; with nothing computed beside it */
	bool waits_known;
};

static int measure(const struct hb_scene *s, const struct hb_device *v, struct comm *x)
{
	struct hb_ivs comm = {0}, compute = {0}, waits = {0};
	int err;

	if (!v->comm)
		return 0;
	for (u32 i = 0; i < v->n_ops; i++) {
		const struct hb_device_op *o = &v->op[i];

		if (o->work == HB_WORK_COMM)
			hb_ivs__add(&comm, o->begin, o->end);
		else if (o->work == HB_WORK_COMPUTE)
			hb_ivs__add(&compute, o->begin, o->end);
	}
	hb_ivs__join(&comm);
	hb_ivs__join(&compute);
	x->waits_known = waits_of(s, v, &waits);
	hb_ivs__minus(&comm, &waits, &x->all);
	hb_ivs__minus(&x->all, &compute, &x->alone);
	err = comm.oom || compute.oom || waits.oom || x->all.oom || x->alone.oom ? -ENOMEM : 0;
	hb_ivs__free(&comm);
	hb_ivs__free(&compute);
	hb_ivs__free(&waits);
	return err;
}

/* Devices whose ranks' collectives match belong together: what holds one up holds up all, so one finding
 * tells of them. `lead` of each device: the first one of those it belongs to. */
static void belong(const struct hb_scene *s, u32 *lead, u32 n)
{
	for (u32 i = 0; i < n; i++)
		lead[i] = i;
	for (u32 k = 0; k < hb_collectives__groups(s->coll); k++) {
		const struct hb_coll_group *g = hb_collectives__at(s->coll, k);

		for (u32 r = 1; g->source == HB_COLL_DEVICE && r < g->n_ranks; r++) {
			u32 a = lead[g->rank[0].device], b = lead[g->rank[r].device], to = a < b ? a : b;

			for (u32 i = 0; i < n; i++)
				lead[i] = lead[i] == a || lead[i] == b ? to : lead[i];
		}
	}
}

struct share { /* of one device, ns: its time, what it communicates, and of that with nothing beside it */
	u64 span, all, alone;
};

static u64 of_span(const struct share *x)
{
	return x->span ? hb_share(x->all, x->span) : 0;
}

static void say_others(struct hb_draft *d, const struct share *x, const u32 *lead, u32 n, u32 worst)
{
	u64 least = UINT64_MAX, most = 0;
	u32 others = 0;

	for (u32 i = 0; i < n; i++) {
		u64 part = of_span(&x[i]);

		if (i == worst || lead[i] != lead[worst])
			continue;
		others++;
		least = part < least ? part : least;
		most = part > most ? part : most;
	}
	if (!others)
		return;
	hb_draft__say(d, "; of the %u devices that communicate with each other it loses most by this",
		      others + 1);
	if (others == 1)
		hb_draft__say(d, " (the other one: %llu %% of its time)", (unsigned long long)(most / 10000));
	else
		hb_draft__say(d, " (the others: %llu to %llu %% of their time)",
			      (unsigned long long)(least / 10000), (unsigned long long)(most / 10000));
}

static struct hb_draft *tell(struct hb_look *l, const struct hb_device *v, const struct comm *x,
			     const struct share *y)
{
	struct hb_draft *d =
	    hb_look__find(l, "device %u communicates %llu %% of its time%s, %llu %% of that beside computing",
			  v->number, (unsigned long long)(of_span(y) / 10000),
			  x->waits_known ? ", without its waits for the last rank" : "",
			  (unsigned long long)(hb_share(y->all - y->alone, y->all) / 10000));
	int err = d ? 0 : -ENOMEM;

	if (!d)
		return NULL;
	hb_draft__pid(d, v->pid);
	hb_draft__device(d, v->index);
	if (!x->waits_known)
		hb_draft__confidence(d, HB_CONFIDENCE_MEDIUM,
				     "waiting for a late rank is part of it: see P33");
	for (size_t i = 0; i < x->alone.n && !err; i++) {
		struct hb_case c = {
		    .begin = x->alone.v[i].begin, .end = x->alone.v[i].end, .thread = HB_NONE};

		err = hb_draft__add_device(d, &c, c.end - c.begin);
	}
	return err ? NULL : d;
}

static bool is_so(struct hb_look *l, const struct share *x)
{
	hb_look__subject(l);
	return x->all && hb_look__at_least(l, LEAST, x->all) &&
	       hb_look__at_least(l, EXPOSED, hb_share(x->alone, x->span)) &&
	       hb_look__at_most(l, OVERLAP, hb_share(x->all - x->alone, x->all));
}

static void drop(struct comm *x)
{
	hb_ivs__free(&x->all);
	hb_ivs__free(&x->alone);
}

/* Of the devices that belong to `lead` the one of which the rule is true and that loses the largest part. */
static int by_group(struct hb_look *l, const struct share *x, const u32 *lead, u32 n, u32 of)
{
	struct comm y = {.waits_known = false};
	struct hb_draft *d;
	u32 worst = HB_NONE;
	int err;

	for (u32 i = of; i < n; i++)
		if (lead[i] == of && is_so(l, &x[i]) &&
		    (worst == HB_NONE ||
		     hb_share(x[i].alone, x[i].span) > hb_share(x[worst].alone, x[worst].span)))
			worst = i;
	if (worst == HB_NONE || !is_so(l, &x[worst])) /* its measures are the finding's */
		return 0;
	err = measure(l->s, hb_devices__at(l->s->dev, worst), &y);
	if (!err) {
		d = tell(l, hb_devices__at(l->s->dev, worst), &y, &x[worst]);
		if (d)
			say_others(d, x, lead, n, worst);
		err = d ? 0 : -ENOMEM;
	}
	drop(&y);
	return err;
}

static int detect(struct hb_look *l)
{
	u32 n = hb_devices__count(l->s->dev);
	struct share *x = calloc(n + 1, sizeof(*x));
	u32 *lead = calloc(n + 1, sizeof(*lead));
	int err = x && lead ? 0 : -ENOMEM;

	if (!err)
		belong(l->s, lead, n);
	for (u32 i = 0; i < n && !err; i++) {
		const struct hb_device *v = hb_devices__at(l->s->dev, i);
		struct comm y = {.waits_known = false};

		err = measure(l->s, v, &y);
		x[i] = (struct share){v->end - v->begin, hb_ivs__length(&y.all), hb_ivs__length(&y.alone)};
		drop(&y);
	}
	for (u32 i = 0; i < n && !err; i++)
		if (lead[i] == i)
			err = by_group(l, x, lead, n, i);
	free(lead);
	free(x);
	return err;
}

HB_PATTERN(p36_exposed_comm) = {
    .id = "P36",
    .layer = "comm",
    .title = "exposed communication",
    .rank = HB_RANK_SYMPTOM,
    .needs = HB_NEED_DEVICE,
    .params = params,
    .rule = "communication beside which nothing is computed takes a good part of the device's time. "
	    "Where collectives of several ranks match on their devices, waiting for the last rank is left "
	    "out (P33), and one finding tells of all that communicate with each other, by the device that "
	    "loses most",
    .fix = "overlap streams, fused all-reduce, a smaller payload",
    .ref = "TraceLens: exposed communication above 5 %, overlap below 70 %",
    .traps = "a tensor-parallel decode cannot overlap freely; waiting for a late rank (P33) looks the same",
    .settle = "records of every rank",
    .detect = detect,
};
