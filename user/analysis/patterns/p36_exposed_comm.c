/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Communication with nothing to compute beside it. */
#include <errno.h>

#include "analysis/patterns/pattern.h"

enum { EXPOSED, LEAST, OVERLAP };

static const struct hb_param params[] = {
    [EXPOSED] = {"exposed_share", HB_UNIT_SHARE, 50000,
		 "communication beside which nothing is computed, of the device's time"},
    [LEAST] = {"least", HB_UNIT_NS, 100000, "less communication than this in the window does not count"},
    [OVERLAP] = {"overlap", HB_UNIT_SHARE, 700000,
		 "of the communication that is hidden behind computing, at most"},
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

static int tell(struct hb_look *l, const struct hb_device *v, const struct comm *x, u64 all, u64 alone)
{
	struct hb_draft *d =
	    hb_look__find(l, "device %u communicates %llu %% of its time%s, %llu %% of that beside computing",
			  v->number, (unsigned long long)(hb_share(all, v->end - v->begin) / 10000),
			  x->waits_known ? ", without its waits for the last rank" : "",
			  (unsigned long long)(hb_share(all - alone, all) / 10000));
	int err = 0;

	if (!d)
		return -ENOMEM;
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
	return err;
}

static int by_device(struct hb_look *l, const struct hb_device *v)
{
	struct comm x = {.waits_known = false};
	int err = measure(l->s, v, &x);
	u64 all = hb_ivs__length(&x.all), alone = hb_ivs__length(&x.alone);

	hb_look__subject(l);
	if (!err && all && hb_look__at_least(l, LEAST, all) &&
	    hb_look__at_least(l, EXPOSED, hb_share(alone, v->end - v->begin)) &&
	    hb_look__at_most(l, OVERLAP, hb_share(all - alone, all)))
		err = tell(l, v, &x, all, alone);
	hb_ivs__free(&x.all);
	hb_ivs__free(&x.alone);
	return err;
}

static int detect(struct hb_look *l)
{
	return hb_look__devices(l, by_device);
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
	    "out (P33)",
    .fix = "overlap streams, fused all-reduce, a smaller payload",
    .ref = "TraceLens: exposed communication above 5 %, overlap below 70 %",
    .traps = "a tensor-parallel decode cannot overlap freely; waiting for a late rank (P33) looks the same",
    .settle = "records of every rank",
    .detect = detect,
};
