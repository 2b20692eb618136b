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

static int add_cases(struct hb_draft *d, const struct hb_device *v)
{
	struct hb_ivs comm = {0}, compute = {0}, alone = {0};
	int err = 0;

	for (u32 i = 0; i < v->n_ops; i++) {
		const struct hb_device_op *o = &v->op[i];

		if (o->work == HB_WORK_COMM)
			hb_ivs__add(&comm, o->begin, o->end);
		else if (o->work == HB_WORK_COMPUTE)
			hb_ivs__add(&compute, o->begin, o->end);
	}
	hb_ivs__join(&comm);
	hb_ivs__join(&compute);
	hb_ivs__minus(&comm, &compute, &alone);
	err = comm.oom || compute.oom || alone.oom ? -ENOMEM : 0;
	for (size_t i = 0; i < alone.n && !err; i++) {
		struct hb_case c = {.begin = alone.v[i].begin, .end = alone.v[i].end, .thread = HB_NONE};

		err = hb_draft__add_device(d, &c, c.end - c.begin);
	}
	hb_ivs__free(&comm);
	hb_ivs__free(&compute);
	hb_ivs__free(&alone);
	return err;
}

static int by_device(struct hb_look *l, const struct hb_device *v)
{
	u64 span = v->end - v->begin;
	struct hb_draft *d;

	hb_look__subject(l);
	if (!v->comm || !hb_look__at_least(l, LEAST, v->comm) ||
	    !hb_look__at_least(l, EXPOSED, hb_share(v->exposed_comm, span)) ||
	    !hb_look__at_most(l, OVERLAP, hb_share(v->comm - v->exposed_comm, v->comm)))
		return 0;
	d = hb_look__find(l, "device %u communicates %llu %% of its time, %llu %% of that beside computing",
			  v->number, (unsigned long long)(hb_share(v->comm, span) / 10000),
			  (unsigned long long)(hb_share(v->comm - v->exposed_comm, v->comm) / 10000));
	if (!d)
		return -ENOMEM;
	hb_draft__pid(d, v->pid);
	hb_draft__device(d, v->index);
	hb_draft__confidence(d, HB_CONFIDENCE_MEDIUM, "waiting for a late rank is part of it: see P33");
	return add_cases(d, v);
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
    .rule = "communication beside which nothing is computed takes a good part of the device's time",
    .fix = "overlap streams, fused all-reduce, a smaller payload",
    .ref = "TraceLens: exposed communication above 5 %, overlap below 70 %",
    .traps = "a tensor-parallel decode cannot overlap freely; waiting for a late rank (P33) looks the same",
    .settle = "records of every rank",
    .detect = detect,
};
