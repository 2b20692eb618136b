/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analysis/model/steps_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct hb_steps {
	const struct hb_timeline *tl;
	struct hb_step_names names;
	struct hb_steps_row *row;
	u32 n, cap;
	struct hb_map *by_pid; /* -> row + 1 */
	char why[160];
};

const char *hb_steps__source_name(enum hb_step_source s)
{
	static const char *const names[] = {
	    [HB_STEPS_NONE] = "none",
	    [HB_STEPS_PYCALL] = "step function",
	    [HB_STEPS_MARK] = "annotation",
	    [HB_STEPS_READBACK] = "read-back",
	    [HB_STEPS_SYNC] = "synchronisation",
	    [HB_STEPS_GRAPH] = "graph launch",
	    [HB_STEPS_PYCALLS] = "begin of the step function",
	    [HB_STEPS_MARKS] = "begin of the annotation",
	};

	return (size_t)s < sizeof(names) / sizeof(*names) ? names[s] : "?";
}

/* ---- rows ---- */

static struct hb_steps_row *row_of(struct hb_steps *s, u32 pid)
{
	u64 *at = hb_map__slot(s->by_pid, pid, NULL);

	if (!at || *at)
		return at ? &s->row[*at - 1] : NULL;
	if (s->n == s->cap) {
		u32 cap = s->cap * 2 + 8;
		struct hb_steps_row *p = realloc(s->row, cap * sizeof(*p));

		if (!p)
			return NULL;
		s->row = p;
		s->cap = cap;
	}
	memset(&s->row[s->n], 0, sizeof(*s->row));
	s->row[s->n].pub.pid = pid;
	s->row[s->n].pub.thread = s->row[s->n].pub.dispatch = HB_NONE;
	*at = s->n + 1;
	return &s->row[s->n++];
}

/* Processes that give the device work, and which of their threads gives most. */
static int find_dispatchers(struct hb_steps *s)
{
	for (u32 t = 0; t < hb_timeline__threads(s->tl); t++) {
		u64 ops = hb_timeline__thread(s->tl, t)->works;
		struct hb_steps_row *r;

		if (!ops)
			continue;
		r = row_of(s, hb_timeline__thread(s->tl, t)->pid);
		if (!r)
			return -ENOMEM;
		r->pub.all_ops += ops;
		if (ops > r->pub.ops) {
			r->pub.ops = ops;
			r->pub.thread = r->pub.dispatch = t;
		}
	}
	for (u32 i = 0; i < s->n; i++)
		s->row[i].pub.dispatch_sure = s->row[i].pub.ops * 5 >= s->row[i].pub.all_ops * 4;
	return 0;
}

int hb_steps__add(struct hb_steps_row *r, u64 begin, u64 end)
{
	if (end <= begin)
		return 0;
	if (r->pub.n == r->cap) {
		u32 cap = r->cap * 2 + 64;
		struct hb_step *p = realloc(r->step, cap * sizeof(*p));

		if (!p)
			return -ENOMEM;
		r->step = p;
		r->cap = cap;
	}
	r->step[r->pub.n++] = (struct hb_step){.begin = begin, .end = end};
	return 0;
}

/* ---- what is in a step ---- */

static void count_call(struct hb_step *s, const struct hb_tl_call *c)
{
	u64 in = hb_overlap(c->at.begin, c->at.end, s->begin, s->end);

	if (c->op == HB_OP_COPY) {
		s->unsized += !hb_call__sized(c);
		s->undirected += c->copy == HB_COPY_UNKNOWN;
		s->copied_bytes += c->bytes;
		s->d2h_bytes += c->copy == HB_COPY_DTOH ? c->bytes : 0;
	}
	if (hb_call__waited(c))
		s->wait_ns += in;
	else
		s->api_ns += in;
	if (!hb_call__is_work(c))
		return;
	if (!s->first_op)
		s->first_op = c->at.begin;
	s->last_op = c->at.end;
}

static void count_calls(struct hb_step *s, const struct hb_tl_call *c, u32 n)
{
	u32 by_op[HB_OP_COUNT] = {0}, all = 0, i;

	for (i = s->call; i < n && c[i].at.begin < s->end; i++)
		if (!(c[i].flags & HB_AFLAG_INNER) && c[i].at.outer == HB_NONE) {
			by_op[c[i].op]++;
			all++;
			count_call(s, &c[i]);
		}
	s->n_calls = i - s->call;
	s->launches = by_op[HB_OP_LAUNCH];
	s->graphs = by_op[HB_OP_GRAPH];
	s->copies = by_op[HB_OP_COPY];
	s->syncs = by_op[HB_OP_SYNC];
	s->allocs = by_op[HB_OP_ALLOC];
	s->collectives = by_op[HB_OP_COLLECTIVE];
	s->others = all - s->launches - s->graphs - s->copies - s->syncs - s->allocs - s->collectives;
}

static void fill_step(const struct hb_timeline *tl, const struct hb_series *r, struct hb_step *s)
{
	struct hb_use use = hb_timeline__use(tl, r->thread, s->begin, s->end);
	const struct hb_tl_call *c;
	u32 n;

	s->run_ns = use.running;
	s->sleep_ns = use.slept;
	s->ready_ns = use.ready;
	s->pause_ns = s->end - s->begin;
	if (r->dispatch == HB_NONE)
		return;
	c = hb_timeline__calls(tl, r->dispatch, &n);
	s->call = hb_timeline__from(tl, r->dispatch, HB_TL_CALL, s->begin);
	count_calls(s, c, n);
	if (s->first_op)
		s->pause_ns = s->first_op > s->begin ? s->first_op - s->begin : 0;
}

/* Anew each time: of its steps only begin and end are taken as they are. */
static int summarise(const struct hb_timeline *tl, struct hb_steps_row *r)
{
	u64 *len = malloc((r->pub.n + 1) * sizeof(*len)), all = hb_timeline__end(tl) - hb_timeline__start(tl);
	struct hb_dist d;
	struct hb_step *fit = r->pub.n ? realloc(r->step, r->pub.n * sizeof(*fit)) : NULL;
	u64 p99;

	if (fit) {
		r->step = fit;
		r->cap = r->pub.n;
	}
	if (!len)
		return -ENOMEM;
	r->pub.unsized = r->pub.undirected = 0;
	for (u32 i = 0; i < r->pub.n; i++) {
		r->step[i] = (struct hb_step){.begin = r->step[i].begin, .end = r->step[i].end};
		fill_step(tl, &r->pub, &r->step[i]);
		len[i] = r->step[i].end - r->step[i].begin;
		r->pub.unsized += r->step[i].unsized;
		r->pub.undirected += r->step[i].undirected;
	}
	hb_order__values(len, r->pub.n);
	p99 = r->pub.n ? len[(r->pub.n * 99ULL + 99) / 100 - 1] : 0;
	d = hb_dist__of(len, r->pub.n);
	r->pub.p50 = d.p50;
	r->pub.p95 = d.p95;
	r->pub.p99 = p99;
	r->pub.min = d.min;
	r->pub.max = d.max;
	r->pub.sum = d.total;
	r->pub.outside_ns = all > d.total ? all - d.total : 0;
	r->pub.step = r->step;
	free(len);
	return 0;
}

/* ---- building ---- */

static int cmp_rows(const void *a, const void *b)
{
	const struct hb_steps_row *x = a, *y = b;

	if (x->pub.all_ops != y->pub.all_ops)
		return x->pub.all_ops > y->pub.all_ops ? -1 : 1;
	return x->pub.pid < y->pub.pid ? -1 : x->pub.pid > y->pub.pid;
}

/* Processes whose steps are told by calls or annotations, but which give the device no work themselves. */
static int find_others(struct hb_steps *s)
{
	for (u32 t = 0; t < hb_timeline__threads(s->tl); t++) {
		struct hb_steps_row *r;

		if (!hb_steps__has_span(s->tl, &s->names, t))
			continue;
		r = row_of(s, hb_timeline__thread(s->tl, t)->pid);
		if (!r)
			return -ENOMEM;
		if (r->pub.thread == HB_NONE)
			r->pub.thread = t;
	}
	return 0;
}

static void say_why(struct hb_steps *s)
{
	u32 n;
	bool calls = hb_timeline__count(s->tl, HB_TL_CALL) > 0;

	hb_window__procs(hb_timeline__window(s->tl), &n);
	if (!s->n)
		snprintf(s->why, sizeof(s->why), "%s",
			 calls ? "no call of this window gives an accelerator work (launch, copy, collective)"
			 : n   ? "no accelerator calls in this window"
			       : "no processes in this window");
}

struct hb_steps *hb_steps__build(const struct hb_timeline *tl, struct hb_error *e)
{
	struct hb_steps *s = calloc(1, sizeof(*s));
	int err = s ? 0 : -ENOMEM;

	if (s) {
		s->tl = tl;
		s->names = (struct hb_step_names){hb_map__new(), hb_map__new()};
		s->by_pid = hb_map__new();
		err = s->names.functions && s->names.marks && s->by_pid ? find_dispatchers(s) : -ENOMEM;
	}
	if (!err)
		err = find_others(s);
	for (u32 i = 0; !err && i < s->n; i++) {
		err = hb_steps__find(tl, &s->names, &s->row[i]);
		err = err ? err : summarise(tl, &s->row[i]);
	}
	if (!err && s->n)
		qsort(s->row, s->n, sizeof(*s->row), cmp_rows);
	for (u32 i = 0; !err && i < s->n; i++)
		err = hb_map__put(s->by_pid, s->row[i].pub.pid, i + 1);
	if (err) {
		hb_error__nomem(e, "engine steps");
		hb_steps__free(s);
		return NULL;
	}
	say_why(s);
	return s;
}

int hb_steps__leave_out(struct hb_steps *s, u32 pid, const struct hb_ivs *none)
{
	u32 i = hb_steps__row(s, pid);
	struct hb_steps_row *r = i == HB_NONE ? NULL : &s->row[i];

	if (!r)
		return 0;
	hb_steps__cut_out(r, none);
	if (!r->pub.n && !*r->pub.why)
		snprintf(r->pub.why, sizeof(r->pub.why), "in what looked like steps nothing was asked of it");
	return summarise(s->tl, r);
}

void hb_steps__free(struct hb_steps *s)
{
	if (!s)
		return;
	for (u32 i = 0; i < s->n; i++)
		free(s->row[i].step);
	free(s->row);
	hb_map__free(s->by_pid);
	hb_map__free(s->names.functions);
	hb_map__free(s->names.marks);
	free(s);
}

u64 hb_steps__memory(const struct hb_steps *s)
{
	u64 bytes = sizeof(*s) + s->cap * sizeof(*s->row);

	for (u32 i = 0; i < s->n; i++)
		bytes += s->row[i].cap * sizeof(struct hb_step);
	return bytes;
}

/* ---- asking ---- */

u32 hb_steps__series(const struct hb_steps *s)
{
	return s->n;
}

const struct hb_series *hb_steps__at(const struct hb_steps *s, u32 i)
{
	return i < s->n ? &s->row[i].pub : NULL;
}

u32 hb_steps__row(const struct hb_steps *s, u32 pid)
{
	u64 at;

	return hb_map__get(s->by_pid, pid, &at) ? (u32)at - 1 : HB_NONE;
}

const struct hb_series *hb_steps__of_pid(const struct hb_steps *s, u32 pid)
{
	return hb_steps__at(s, hb_steps__row(s, pid));
}

const char *hb_steps__why_none(const struct hb_steps *s)
{
	return *s->why ? s->why : NULL;
}

u32 hb_series__find(const struct hb_series *s, u64 t)
{
	u32 lo = 0, hi = s->n;

	while (lo < hi) {
		u32 mid = lo + (hi - lo) / 2;

		if (s->step[mid].begin <= t)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo && t < s->step[lo - 1].end ? lo - 1 : HB_NONE;
}
