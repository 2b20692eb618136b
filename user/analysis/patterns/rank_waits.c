/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analysis/patterns/rank_waits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define AT_ONCE 8 /* threads of a process that wait at the same time, at most */

struct wait {
	u64 begin, end;
	u64 of; /* what was given by then is waited for */
};

struct record { /* of an event */
	u64 event, at;
};

struct waits {
	struct wait *wait;
	struct record *record;
	u32 n, n_records;
};

static bool alone(const struct hb_coll_group *g, u32 r)
{
	for (u32 i = 0; i < g->n_ranks; i++)
		if (i != r && g->rank[i].pid == g->rank[r].pid)
			return false;
	return true;
}

static u64 handle_of(const struct hb_scene *s, const struct hb_tl_call *c)
{
	return hb_timeline__callee(s->tl, c)->handle;
}

static bool records(const struct hb_scene *s, const struct hb_tl_call *c)
{
	return c->op == HB_OP_EVENT && handle_of(s, c) && strstr(hb_scene__call_name(s, c), "EventRecord");
}

static bool for_event(const struct hb_scene *s, const struct hb_tl_call *c)
{
	const struct hb_probe_row *row = hb_window__probe(s->w, hb_timeline__callee(s->tl, c)->probe);

	return row && row->handle == HB_HANDLE_EVENT;
}

/* With no room only counts. */
static void collect(const struct hb_scene *s, u32 thread, struct waits *w)
{
	u32 n;
	const struct hb_tl_call *c = hb_timeline__calls(s->tl, thread, &n);

	for (u32 i = 0; i < n; i++) {
		if (hb_call__waited(&c[i])) {
			if (w->wait)
				w->wait[w->n] =
				    (struct wait){.begin = c[i].at.begin,
						  .end = c[i].at.end,
						  .of = for_event(s, &c[i]) ? handle_of(s, &c[i]) : 0};
			w->n++;
		} else if (records(s, &c[i])) {
			if (w->record)
				w->record[w->n_records] =
				    (struct record){.event = handle_of(s, &c[i]), .at = c[i].at.begin};
			w->n_records++;
		}
	}
}

static void collect_all(const struct hb_scene *s, const struct hb_coll_group *g, u32 r, struct waits *w)
{
	u32 pid = g->rank[r].pid;

	w->n = w->n_records = 0;
	if (!alone(g, r))
		collect(s, g->rank[r].thread, w);
	else
		for (u32 t = hb_timeline__of_pid(s->tl, pid, HB_NONE); t != HB_NONE;
		     t = hb_timeline__of_pid(s->tl, pid, t))
			collect(s, t, w);
}

static int cmp_wait(const void *a, const void *b)
{
	const struct wait *x = a, *y = b;

	return x->end < y->end ? -1 : x->end > y->end;
}

static int cmp_record(const void *a, const void *b)
{
	const struct record *x = a, *y = b;

	if (x->event != y->event)
		return x->event < y->event ? -1 : 1;
	return x->at < y->at ? -1 : x->at > y->at;
}

/* When an event was last recorded before t; t itself where the window does not tell. */
static u64 recorded(const struct waits *w, u64 event, u64 t)
{
	u32 lo = 0, hi = w->n_records;

	if (!event || !w->n_records)
		return t;
	while (lo < hi) {
		u32 mid = lo + (hi - lo) / 2;

		if (w->record[mid].event < event || (w->record[mid].event == event && w->record[mid].at <= t))
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo && w->record[lo - 1].event == event ? w->record[lo - 1].at : 0;
}

static int prepare(const struct hb_scene *s, const struct hb_coll_group *g, u32 r, struct waits *w)
{
	collect_all(s, g, r, w);
	w->wait = calloc(w->n + 1, sizeof(*w->wait));
	w->record = calloc(w->n_records + 1, sizeof(*w->record));
	if (!w->wait || !w->record)
		return -ENOMEM;
	collect_all(s, g, r, w);
	qsort(w->wait, w->n, sizeof(*w->wait), cmp_wait);
	qsort(w->record, w->n_records, sizeof(*w->record), cmp_record);
	for (u32 i = 0; i < w->n; i++)
		w->wait[i].of = recorded(w, w->wait[i].of, w->wait[i].begin);
	return 0;
}

/* Of the time from a rank's call to the last one's that in which it waited for it. */
static void add(const struct waits *w, u64 call, u64 last, struct hb_ivs *out)
{
	u32 lo = 0, hi = w->n;

	while (lo < hi) {
		u32 mid = lo + (hi - lo) / 2;

		if (w->wait[mid].end <= last)
			lo = mid + 1;
		else
			hi = mid;
	}
	for (u32 i = lo; i < w->n && i < lo + AT_ONCE; i++) {
		const struct wait *x = &w->wait[i];

		if (x->begin < last && x->of >= call)
			hb_ivs__add(out, x->begin > call ? x->begin : call, last);
	}
}

int hb_rank_waits(const struct hb_scene *s, const struct hb_coll_group *g, u32 r, u64 apart,
		  struct hb_ivs *out)
{
	struct waits w = {0};
	int err = prepare(s, g, r, &w);

	for (u32 i = 0; i < g->n && !err; i++) {
		u64 call = hb_coll__call(s->coll, g, i, r, NULL)->at.begin;

		if (g->coll[i].last - call >= apart)
			add(&w, call, g->coll[i].last, out);
	}
	hb_ivs__join(out);
	free(w.wait);
	free(w.record);
	return err || out->oom ? -ENOMEM : 0;
}
