/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Work on devices as the walk needs it: by its end, with what was before it on its stream and who launched
 * it. */
#include <errno.h>
#include <stdlib.h>

#include "analysis/model/path_private.h"
#include "base/map.h"
#include "base/radix.h"

struct process {
	u32 pid;
	u32 device, n_devices; /* its devices: they come by process */
	struct hb_walk_op *op; /* by end; NULL until somebody asks */
	u32 n;
	u32 hint; /* where the last search ended: at most n */
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

const struct hb_launch *hb_walk_ops__launch(const struct hb_walk_ops *w, const struct hb_walk_op *x,
					    u32 *thread)
{
	const struct hb_launch *l = hb_devices__launch_of(w->d, x->o);

	*thread = l ? hb_timeline__by_task(w->tl, l->task) : HB_NONE;
	return *thread == HB_NONE ? NULL : l;
}

u64 hb_walk_ops__asked(const struct hb_walk_ops *w, const struct hb_walk_op *x)
{
	return hb_devices__asked(w->d, x->o);
}

#define END_OF(x) ((x)->o->end)
HB_RADIX_SORT(sort_by_end, struct hb_walk_op, END_OF)

/* Each operation of a device with the one before it on its stream. `place`: where its operations stand in the
 * order of ends. */
static int link_streams(struct process *p, const struct hb_device *v, const u32 *place)
{
	u32 *last = malloc((v->n_streams + 1ULL) * sizeof(*last));

	if (!last)
		return -ENOMEM;
	for (u32 i = 0; i <= v->n_streams; i++)
		last[i] = HB_NONE;
	for (u32 i = 0; i < v->n_ops; i++) {
		u32 stream = v->op[i].stream < v->n_streams ? v->op[i].stream : v->n_streams;

		p->op[place[i]].prev = last[stream];
		last[stream] = place[i];
	}
	free(last);
	return 0;
}

/* All operations of the process by their end; `prev` is where each stood in the order of devices and begins.
 */
static int order_ops(const struct hb_walk_ops *w, struct process *p)
{
	for (u32 k = 0; k < p->n_devices; k++) {
		const struct hb_device *v = hb_devices__at(w->d, p->device + k);

		for (u32 i = 0; i < v->n_ops; i++, p->n++)
			p->op[p->n] = (struct hb_walk_op){.o = &v->op[i], .prev = p->n, .event = HB_NONE};
	}
	return sort_by_end(p->op, p->n);
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

static const struct hb_device *device_of(const struct hb_walk_ops *w, const struct process *p,
					 const struct hb_device_op *o)
{
	const struct hb_device *v = hb_devices__at(w->d, p->device);

	for (u32 k = 1; k < p->n_devices && (o < v->op || o >= v->op + v->n_ops); k++)
		v = hb_devices__at(w->d, p->device + k);
	return v;
}

/* Its number, as the profiler counts them. */
static u32 stream_of(const struct hb_device *v, const struct hb_device_op *o)
{
	return o->stream < v->n_streams ? (u32)v->stream[o->stream].number : UINT32_MAX;
}

/* The last piece of a stream that was given before the event was recorded, and the first one of the other
 * that was given after its wait was: the second waits for the first. Pieces of one stream are given in the
 * order in which they end. */
static void link_event(const struct hb_walk_ops *w, struct process *p, const struct hb_tl_devwait *s,
		       u64 recorded, u64 waited)
{
	u32 from = HB_NONE, to = HB_NONE, thread;

	for (u32 i = 0; i < p->n && to == HB_NONE; i++) {
		const struct hb_device *v = device_of(w, p, p->op[i].o);
		u32 stream = stream_of(v, p->op[i].o);
		const struct hb_launch *l;

		if (v->number != s->device || (stream != s->wstream && stream != s->stream))
			continue;
		l = hb_walk_ops__launch(w, &p->op[i], &thread);
		if (l && stream == s->wstream && l->begin <= recorded)
			from = i;
		if (l && stream == s->stream && l->begin >= waited)
			to = i;
	}
	if (from == HB_NONE || to == HB_NONE || p->op[from].o->end > p->op[to].o->begin)
		return;
	if (p->op[to].event == HB_NONE || p->op[p->op[to].event].o->end < p->op[from].o->end)
		p->op[to].event = from;
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

static int link_events(const struct hb_walk_ops *w, struct process *p)
{
	const struct hb_timeline *tl = w->tl;
	struct moment *m = NULL;
	u64 steps = 0;
	u32 n = 0, waits;

	if (!hb_timeline__count(tl, HB_TL_DEVWAIT))
		return 0;
	if (collect_moments(tl, p->pid, &m, &n))
		return -ENOMEM;
	for (u32 t = hb_timeline__of_pid(tl, p->pid, HB_NONE); t != HB_NONE;
	     t = hb_timeline__of_pid(tl, p->pid, t)) {
		const struct hb_tl_devwait *s = hb_timeline__devwaits(tl, t, &waits);

		for (u32 i = 0; i < waits && steps < LINK_STEPS; i++) {
			u64 recorded = when(m, n, s[i].waits), waited = when(m, n, s[i].correlation);

			if (s[i].sync != HB_SYNCKIND_STREAM_WAIT || !recorded || !waited)
				continue;
			link_event(w, p, &s[i], recorded, waited);
			steps += p->n;
		}
	}
	free(m);
	return 0;
}

/* Many windows are walked without a look at the devices, so this is done when somebody asks. */
static int make(const struct hb_walk_ops *w, struct process *p)
{
	u32 *place, n = 0;
	int err;

	for (u32 k = 0; k < p->n_devices; k++)
		n += hb_devices__at(w->d, p->device + k)->n_ops;
	p->op = malloc((n + 1ULL) * sizeof(*p->op));
	place = calloc(n + 1ULL, sizeof(*place));
	err = p->op && place ? order_ops(w, p) : -ENOMEM;
	for (u32 i = 0; i < p->n && !err; i++)
		place[p->op[i].prev] = i;
	n = 0;
	for (u32 k = 0; k < p->n_devices && !err; k++) {
		const struct hb_device *v = hb_devices__at(w->d, p->device + k);

		err = link_streams(p, v, place + n);
		n += v->n_ops;
	}
	free(place);
	return err ? err : link_events(w, p);
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

const struct hb_walk_op *hb_walk_ops__late(struct hb_walk_ops *w, u32 *pid, const struct hb_walk_op *o,
					   u32 *at)
{
	const struct hb_device_op *late;
	const struct hb_device *v;
	const struct hb_walk_op *op;
	u64 i;

	if (!w->late || !hb_map__get(w->late, key_of(*pid, o->o->begin, o->o->end), &i))
		return NULL;
	v = hb_devices__at(w->d, w->arrival[i - 1].device);
	late = &v->op[w->arrival[i - 1].op];
	op = hb_walk_ops__of(w, v->pid, late->end, at);
	while (op && op[*at].o != late) {
		if (!*at || op[*at].o->end != late->end)
			return NULL;
		--*at;
	}
	if (!op || late->begin <= o->o->begin)
		return NULL;
	*pid = v->pid;
	return op;
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
	if (!w->process || add_arrivals(w, coll)) {
		hb_walk_ops__free(w);
		return NULL;
	}
	for (u32 i = 0; i < hb_devices__count(d); i++) {
		u32 pid = hb_devices__at(d, i)->pid;

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
	for (u32 i = 0; w->process && i < w->n; i++)
		free(w->process[i].op);
	free(w->process);
	hb_map__free(w->late);
	free(w->arrival);
	free(w);
}

/* How many ended by t. Mostly a little fewer than at the last question: from there in steps that double. */
static u32 ended_by(const struct process *p, u64 t)
{
	u32 lo = 0, hi = p->hint, step = 1;

	if (hi < p->n && p->op[hi].o->end <= t) {
		lo = hi + 1;
		hi = p->n;
	} else {
		for (; step <= hi && p->op[hi - step].o->end > t; step *= 2)
			hi -= step;
		lo = step <= hi ? hi - step + 1 : 0;
	}
	while (lo < hi) {
		u32 mid = lo + (hi - lo) / 2;

		if (p->op[mid].o->end <= t)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

const struct hb_walk_op *hb_walk_ops__of(struct hb_walk_ops *w, u32 pid, u64 t, u32 *last)
{
	struct process *p = w ? process_of(w, pid) : NULL;

	if (p && !p->made) {
		p->made = true;
		w->oom |= make(w, p) != 0;
		p->hint = p->n;
	}
	*last = HB_NONE;
	if (!p || w->oom)
		return NULL;
	p->hint = ended_by(p, t);
	if (p->hint)
		*last = p->hint - 1;
	return p->hint ? p->op : NULL;
}

bool hb_walk_ops__oom(const struct hb_walk_ops *w)
{
	return w && w->oom;
}
