/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Work on devices as the walk needs it: what ended last, what was before a piece on its stream, and who
 * launched it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/model/order.h"
#include "analysis/model/path_private.h"
#include "base/map.h"

struct side { /* one device; what it did is in the order of begins */
	const struct hb_device *v;
	u32 *prev;   /* of each operation: the one before it on its stream; HB_NONE */
	u32 *event;  /* the one of another stream that it waited for; HB_NONE. NULL: none did */
	u32 *by_end; /* NULL: they end in the order of their begins */
	u32 ended;   /* where the last search ended */
};

struct process {
	u32 pid;
	u32 device, n_devices; /* its devices: they come by process */
	bool made;
};

/* Clocks that differ by more: from one's times nothing follows for the other's. */
#define CLOCKS_NS 50000

struct arrival {	/* of the rank that came last to a collective */
	u32 device, op; /* indices */
};

struct hb_walk_ops {
	const struct hb_timeline *tl;
	struct hb_map *late; /* piece that waited in a collective -> arrival + 1 */
	struct arrival *arrival;
	u32 n_arrivals;
	const struct hb_devices *d;
	struct side *side; /* by device */
	struct process *process;
	u32 n;
	bool oom;
};

static struct process *process_of(const struct hb_walk_ops *w, u32 pid)
{
	for (u32 i = 0; i < w->n; i++)
		if (w->process[i].pid == pid)
			return &w->process[i];
	return NULL;
}

static const struct hb_device_op *op_of(const struct hb_piece *x)
{
	return &x->v->op[x->i];
}

const struct hb_launch *hb_walk_ops__launch(const struct hb_walk_ops *w, const struct hb_piece *x,
					    u32 *thread)
{
	const struct hb_launch *l = hb_devices__launch_of(w->d, op_of(x));

	*thread = l ? hb_timeline__by_task(w->tl, l->task) : HB_NONE;
	return *thread == HB_NONE ? NULL : l;
}

u64 hb_walk_ops__asked(const struct hb_walk_ops *w, const struct hb_piece *x)
{
	return hb_devices__asked(w->d, op_of(x));
}

/* ---- order ---- */

static u32 nth(const struct side *s, u32 i)
{
	return s->by_end ? s->by_end[i] : i;
}

static u64 end_of(const struct side *s, u32 i)
{
	return s->v->op[nth(s, i)].end;
}

static int link_streams(struct side *s)
{
	const struct hb_device *v = s->v;
	u32 *last = malloc((v->n_streams + 1ULL) * sizeof(*last));

	s->prev = malloc((v->n_ops + 1ULL) * sizeof(*s->prev));
	for (u32 i = 0; i <= v->n_streams && last; i++)
		last[i] = HB_NONE;
	for (u32 i = 0; i < v->n_ops && last && s->prev; i++) {
		u32 stream = v->op[i].stream < v->n_streams ? v->op[i].stream : v->n_streams;

		s->prev[i] = last[stream];
		last[stream] = i;
	}
	free(last);
	return last && s->prev ? 0 : -ENOMEM;
}

/* Equal ends stay in the order of begins. */
static int order_ends(struct side *s)
{
	const struct hb_device *v = s->v;
	struct hb_order *by;
	u32 i = 1;
	int err;

	while (i < v->n_ops && v->op[i].end >= v->op[i - 1].end)
		i++;
	if (i >= v->n_ops)
		return 0;
	by = malloc(v->n_ops * sizeof(*by));
	s->by_end = malloc(v->n_ops * sizeof(*s->by_end));
	for (i = 0; i < v->n_ops && by; i++)
		by[i] = (struct hb_order){.key = v->op[i].end, .item = i};
	err = by && s->by_end ? hb_order__sort(by, v->n_ops) : -ENOMEM;
	for (i = 0; i < v->n_ops && !err; i++)
		s->by_end[i] = by[i].item;
	free(by);
	return err;
}

/* How many ended by t. Mostly a few less than at the last question: from there in steps that double. */
static u32 ended_by(struct side *s, u64 t)
{
	u32 lo = 0, hi = s->ended, step = 1;

	if (hi < s->v->n_ops && end_of(s, hi) <= t) {
		lo = hi + 1;
		hi = s->v->n_ops;
	} else {
		for (; step <= hi && end_of(s, hi - step) > t; step *= 2)
			hi -= step;
		lo = step <= hi ? hi - step + 1 : 0;
	}
	while (lo < hi) {
		u32 mid = lo + (hi - lo) / 2;

		if (end_of(s, mid) <= t)
			lo = mid + 1;
		else
			hi = mid;
	}
	s->ended = lo;
	return lo;
}

/* ---- events: a stream that waits for another ---- */

struct moment { /* when a call with a correlation number was made */
	u64 correlation, at;
};

static int cmp_moments(const void *a, const void *b)
{
	const struct moment *x = a, *y = b;

	return x->correlation < y->correlation ? -1 : x->correlation > y->correlation;
}

static u64 when(const struct moment *m, u32 n, u64 correlation)
{
	u32 lo = 0, hi = n;

	while (lo < hi) {
		u32 mid = lo + (hi - lo) / 2;

		if (m[mid].correlation < correlation)
			lo = mid + 1;
		else
			hi = mid;
	}
	return correlation && lo < n && m[lo].correlation == correlation ? m[lo].at : 0;
}

/* Its number, as the profiler counts them. */
static u32 stream_of(const struct hb_device *v, const struct hb_device_op *o)
{
	return o->stream < v->n_streams ? (u32)v->stream[o->stream].number : UINT32_MAX;
}

static int note_event(struct side *s, u32 from, u32 to)
{
	const struct hb_device_op *o = s->v->op;

	if (!s->event) {
		s->event = malloc((s->v->n_ops + 1ULL) * sizeof(*s->event));
		if (!s->event)
			return -ENOMEM;
		memset(s->event, 0xff, s->v->n_ops * sizeof(*s->event));
	}
	if (s->event[to] == HB_NONE || o[s->event[to]].end < o[from].end)
		s->event[to] = from;
	return 0;
}

/* The last piece of a stream that was given before the event was recorded, and the first one of the other
 * that was given after its wait was: the second waits for the first. Pieces of one stream are given in the
 * order in which they end. */
static int link_event(const struct hb_walk_ops *w, struct side *s, const struct hb_tl_devwait *wait,
		      u64 recorded, u64 waited)
{
	u32 from = HB_NONE, to = HB_NONE, thread;

	for (u32 k = 0; k < s->v->n_ops && to == HB_NONE; k++) {
		struct hb_piece x = {s->v, nth(s, k)};
		u32 stream = stream_of(s->v, op_of(&x));
		const struct hb_launch *l;

		if (stream != wait->wstream && stream != wait->stream)
			continue;
		l = hb_walk_ops__launch(w, &x, &thread);
		if (l && stream == wait->wstream && l->begin <= recorded)
			from = x.i;
		if (l && stream == wait->stream && l->begin >= waited)
			to = x.i;
	}
	if (from == HB_NONE || to == HB_NONE || s->v->op[from].end > s->v->op[to].begin)
		return 0;
	return note_event(s, from, to);
}

static int collect_moments(const struct hb_timeline *tl, u32 pid, struct moment **out, u32 *n_out)
{
	struct moment *m = NULL;
	u32 n = 0, cap = 0;

	for (u32 t = hb_timeline__of_pid(tl, pid, HB_NONE); t != HB_NONE;
	     t = hb_timeline__of_pid(tl, pid, t)) {
		u32 k;
		const struct hb_tl_call *c = hb_timeline__calls(tl, t, &k);
		struct moment *p = realloc(m, (cap += k + 1) * sizeof(*m));

		if (!p) {
			free(m);
			return -ENOMEM;
		}
		m = p;
		for (u32 i = 0; i < k; i++)
			if (c[i].correlation)
				m[n++] = (struct moment){c[i].correlation, c[i].at.begin};
	}
	if (n)
		qsort(m, n, sizeof(*m), cmp_moments);
	*out = m;
	*n_out = n;
	return 0;
}

/* A window with many waits between streams would be looked through for each: beyond so many steps of it none
 * is linked. */
#define LINK_STEPS 200000000ULL

static struct side *side_of(const struct hb_walk_ops *w, const struct process *p, u32 number)
{
	for (u32 k = p->device; k < p->device + p->n_devices; k++)
		if (w->side[k].v->number == number)
			return &w->side[k];
	return NULL;
}

static int link_waits(const struct hb_walk_ops *w, const struct process *p, const struct moment *m, u32 n)
{
	const struct hb_timeline *tl = w->tl;
	u64 steps = 0, each = 0;
	u32 waits;
	int err = 0;

	for (u32 k = p->device; k < p->device + p->n_devices; k++)
		each += w->side[k].v->n_ops;
	for (u32 t = hb_timeline__of_pid(tl, p->pid, HB_NONE); t != HB_NONE;
	     t = hb_timeline__of_pid(tl, p->pid, t)) {
		const struct hb_tl_devwait *s = hb_timeline__devwaits(tl, t, &waits);

		for (u32 i = 0; i < waits && steps < LINK_STEPS && !err; i++) {
			u64 recorded = when(m, n, s[i].waits), waited = when(m, n, s[i].correlation);
			struct side *of = side_of(w, p, s[i].device);

			if (s[i].sync != HB_SYNCKIND_STREAM_WAIT || !recorded || !waited)
				continue;
			err = of ? link_event(w, of, &s[i], recorded, waited) : 0;
			steps += each;
		}
	}
	return err;
}

static int link_events(const struct hb_walk_ops *w, const struct process *p)
{
	struct moment *m = NULL;
	u32 n = 0;
	int err;

	if (!hb_timeline__count(w->tl, HB_TL_DEVWAIT))
		return 0;
	err = collect_moments(w->tl, p->pid, &m, &n);
	err = err ? err : link_waits(w, p, m, n);
	free(m);
	return err;
}

/* Many windows are walked without a look at the devices, so this is done when somebody asks. */
static bool make(struct hb_walk_ops *w, struct process *p)
{
	int err = 0;

	for (u32 k = p->device; k < p->device + p->n_devices && !p->made && !err; k++) {
		struct side *s = &w->side[k];

		err = link_streams(s);
		err = err ? err : order_ends(s);
		s->ended = s->v->n_ops;
	}
	if (!p->made)
		err = err ? err : link_events(w, p);
	p->made = true;
	w->oom |= err != 0;
	return !w->oom;
}

/* Whether a is before b in the order of ends. */
static bool ends_before(const struct hb_piece *a, const struct hb_piece *b)
{
	if (op_of(a)->end != op_of(b)->end)
		return op_of(a)->end < op_of(b)->end;
	return a->v->index != b->v->index ? a->v->index < b->v->index : a->i < b->i;
}

bool hb_walk_ops__last(struct hb_walk_ops *w, u32 pid, u64 t, struct hb_piece *last)
{
	struct process *p = w ? process_of(w, pid) : NULL;
	bool any = false;

	if (!p || !make(w, p))
		return false;
	for (u32 k = p->device; k < p->device + p->n_devices; k++) {
		struct side *s = &w->side[k];
		u32 n = ended_by(s, t);
		struct hb_piece x = {s->v, n ? nth(s, n - 1) : 0};

		if (!n || (any && ends_before(&x, last)))
			continue;
		*last = x;
		any = true;
	}
	return any;
}

bool hb_walk_ops__followed(const struct hb_walk_ops *w, const struct hb_piece *x, struct hb_piece *before)
{
	const struct side *s = &w->side[x->v->index];
	u32 prev = s->prev[x->i], event = s->event ? s->event[x->i] : HB_NONE;

	if (prev == HB_NONE || (event != HB_NONE && s->v->op[event].end > s->v->op[prev].end))
		prev = event;
	*before = (struct hb_piece){s->v, prev};
	return prev != HB_NONE && ends_before(before, x);
}

/* ---- ranks ---- */

static u64 key_of(u32 pid, u64 begin, u64 end)
{
	return hb_hash64(hb_hash64(begin) ^ hb_hash64(end + pid));
}

static int add_arrival(struct hb_walk_ops *w, const struct hb_collectives *coll,
		       const struct hb_coll_group *g, u32 i)
{
	const struct hb_coll_rank *late = &g->rank[g->coll[i].late];
	int err = 0;

	w->arrival[w->n_arrivals++] =
	    (struct arrival){late->device, hb_coll__op(coll, g, i, g->coll[i].late)};
	for (u32 r = 0; r < g->n_ranks && !err; r++) {
		const struct hb_device *v = hb_devices__at(w->d, g->rank[r].device);
		const struct hb_device_op *o = &v->op[hb_coll__op(coll, g, i, r)];

		if (r != g->coll[i].late && llabs(hb_coll__ahead(coll, g, i, r) -
						  hb_coll__ahead(coll, g, i, g->coll[i].late)) <= CLOCKS_NS)
			err = hb_map__put(w->late, key_of(v->pid, o->begin, o->end), w->n_arrivals);
	}
	return err;
}

static int add_arrivals(struct hb_walk_ops *w, const struct hb_collectives *coll)
{
	u32 n = 0;
	int err = 0;

	for (u32 k = 0; coll && k < hb_collectives__groups(coll); k++)
		if (hb_collectives__at(coll, k)->source == HB_COLL_DEVICE)
			n += hb_collectives__at(coll, k)->n;
	if (!n)
		return 0;
	w->late = hb_map__new();
	w->arrival = malloc(n * sizeof(*w->arrival));
	err = w->late && w->arrival ? 0 : -ENOMEM;
	for (u32 k = 0; k < hb_collectives__groups(coll) && !err; k++) {
		const struct hb_coll_group *g = hb_collectives__at(coll, k);

		for (u32 i = 0; g->source == HB_COLL_DEVICE && i < g->n && !err; i++)
			err = add_arrival(w, coll, g, i);
	}
	return err;
}

bool hb_walk_ops__late(struct hb_walk_ops *w, const struct hb_piece *x, struct hb_piece *late)
{
	const struct hb_device_op *o = op_of(x);
	u64 i;

	if (!w->late || !hb_map__get(w->late, key_of(x->v->pid, o->begin, o->end), &i))
		return false;
	*late = (struct hb_piece){hb_devices__at(w->d, w->arrival[i - 1].device), w->arrival[i - 1].op};
	return make(w, process_of(w, late->v->pid)) && op_of(late)->begin > o->begin;
}

/* ---- all of it ---- */

struct hb_walk_ops *hb_walk_ops__new(const struct hb_timeline *tl, const struct hb_devices *d,
				     const struct hb_collectives *coll)
{
	struct hb_walk_ops *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->tl = tl;
	w->d = d;
	w->process = calloc(hb_devices__count(d) + 1, sizeof(*w->process));
	w->side = calloc(hb_devices__count(d) + 1, sizeof(*w->side));
	if (!w->process || !w->side || add_arrivals(w, coll)) {
		hb_walk_ops__free(w);
		return NULL;
	}
	for (u32 i = 0; i < hb_devices__count(d); i++) {
		u32 pid = hb_devices__at(d, i)->pid;

		w->side[i].v = hb_devices__at(d, i);
		if (!w->n || w->process[w->n - 1].pid != pid)
			w->process[w->n++] = (struct process){.pid = pid, .device = i};
		w->process[w->n - 1].n_devices++;
	}
	return w;
}

void hb_walk_ops__free(struct hb_walk_ops *w)
{
	if (!w)
		return;
	for (u32 i = 0; w->side && i < hb_devices__count(w->d); i++) {
		free(w->side[i].prev);
		free(w->side[i].event);
		free(w->side[i].by_end);
	}
	free(w->side);
	free(w->process);
	hb_map__free(w->late);
	free(w->arrival);
	free(w);
}

bool hb_walk_ops__oom(const struct hb_walk_ops *w)
{
	return w && w->oom;
}
