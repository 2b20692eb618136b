/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analysis/model/host.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

struct hb_host {
	struct hb_timeline *tl;
	struct hb_wake *wk;
	struct hb_steps *steps;
	struct hb_busy *busy;
	struct hb_path *path;
	struct hb_collectives *coll;
};

struct hb_host *hb_host__new(struct hb_window *w, struct hb_error *e)
{
	struct hb_host *h = calloc(1, sizeof(*h));

	if (!h) {
		hb_error__nomem(e, "the host's side");
		return NULL;
	}
	h->tl = hb_timeline__new(w, e);
	if (!h->tl) {
		hb_host__free(h);
		return NULL;
	}
	return h;
}

void hb_host__free(struct hb_host *h)
{
	if (!h)
		return;
	hb_collectives__free(h->coll);
	hb_path__free(h->path);
	hb_busy__free(h->busy);
	hb_steps__free(h->steps);
	hb_wake__free(h->wk);
	hb_timeline__free(h->tl);
	free(h);
}

const struct hb_feed *hb_host__feed(struct hb_host *h)
{
	return hb_timeline__feed(h->tl);
}

struct known { /* what the devices of one process tell together */
	struct hb_ivs active, not_known;
	u64 from, to; /* before and after nothing is known */
};

static void add_device(struct known *k, const struct hb_device *d, bool only)
{
	if (!only)
		hb_device__active(d, &k->active);
	for (size_t i = 0; i < d->not_known->n; i++)
		hb_ivs__add(&k->not_known, d->not_known->v[i].begin, d->not_known->v[i].end);
	k->from = d->known > k->from ? d->known : k->from;
	k->to = d->end > k->to ? d->end : k->to;
}

/* One device's operations are told as they are, those of several as the times when one of them was busy. */
static struct hb_busy_source source_of(struct known *k, const struct hb_device *only)
{
	struct hb_busy_source s = {.not_known = &k->not_known};

	_Static_assert(!offsetof(struct hb_device_op, begin) && offsetof(struct hb_device_op, end) == 8, "");
	_Static_assert(!offsetof(struct hb_iv, begin) && offsetof(struct hb_iv, end) == 8, "");
	hb_ivs__add(&k->not_known, 0, k->from);
	hb_ivs__add(&k->not_known, k->to, UINT64_MAX);
	hb_ivs__join(&k->not_known);
	hb_ivs__join(&k->active);
	s.busy = only ? (const void *)only->op : (const void *)k->active.v;
	s.stride = (only ? sizeof(*only->op) : sizeof(*k->active.v)) / sizeof(u64);
	s.n = only ? only->n_ops : k->active.n;
	return s;
}

/* A process with several devices is busy while one of them is. */
static int use_devices(struct hb_host *h, const struct hb_devices *d)
{
	u32 n = hb_devices__count(d), first, end;
	int err = 0;

	for (first = 0; first < n && !err; first = end) {
		u32 pid = hb_devices__at(d, first)->pid;
		struct hb_busy_source s;
		struct known k = {.from = 0};

		for (end = first; end < n && hb_devices__at(d, end)->pid == pid;)
			end++;
		for (u32 i = first; i < end; i++)
			add_device(&k, hb_devices__at(d, i), end - first == 1);
		s = source_of(&k, end - first == 1 ? hb_devices__at(d, first) : NULL);
		err = k.active.oom || k.not_known.oom ? -ENOMEM : hb_busy__exact(h->busy, pid, &s);
		hb_ivs__free(&k.active);
		hb_ivs__free(&k.not_known);
	}
	return err;
}

int hb_host__finish(struct hb_host *h, const struct hb_devices *d, struct hb_error *e)
{
	if (hb_timeline__finish(h->tl, e))
		return -ENOMEM;
	if (d)
		hb_timeline__use_devices(h->tl, d);
	h->wk = hb_wake__build(h->tl, e);
	h->steps = h->wk ? hb_steps__build(h->tl, e) : NULL;
	h->busy = h->steps ? hb_busy__new(h->tl, e) : NULL;
	if (!h->busy)
		return -ENOMEM;
	if (d && use_devices(h, d))
		return hb_error__nomem(e, "device states");
	if (hb_busy__infer(h->busy, h->steps, e))
		return -ENOMEM;
	h->coll = hb_collectives__build(h->tl, d, e);
	h->path = h->coll ? hb_path__build(h->tl, h->wk, h->steps, h->busy, d, h->coll, e) : NULL;
	return h->path ? hb_path__leave_out(h->path, h->steps, e) : -ENOMEM;
}

struct hb_host *hb_host__build(struct hb_window *w, const struct hb_devices *d, struct hb_error *e)
{
	struct hb_host *h = hb_host__new(w, e);

	if (!h)
		return NULL;
	(void)hb_feed__all(hb_host__feed(h), w); /* said when it is finished */
	if (hb_host__finish(h, d, e)) {
		hb_host__free(h);
		return NULL;
	}
	return h;
}

u64 hb_host__memory(const struct hb_host *h, u64 *records)
{
	return sizeof(*h) + hb_timeline__memory(h->tl, records) + hb_wake__memory(h->wk) +
	       hb_steps__memory(h->steps) + hb_busy__memory(h->busy) + hb_path__memory(h->path) +
	       hb_collectives__memory(h->coll);
}

const struct hb_timeline *hb_host__timeline(const struct hb_host *h)
{
	return h->tl;
}

const struct hb_wake *hb_host__wake(const struct hb_host *h)
{
	return h->wk;
}

const struct hb_steps *hb_host__steps(const struct hb_host *h)
{
	return h->steps;
}

const struct hb_busy *hb_host__busy(const struct hb_host *h)
{
	return h->busy;
}

const struct hb_collectives *hb_host__collectives(const struct hb_host *h)
{
	return h->coll;
}

const struct hb_path *hb_host__path(const struct hb_host *h)
{
	return h->path;
}
