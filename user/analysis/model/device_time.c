/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The time of one device: unions of its work, and the gaps between them with who is to blame. */
#include "analysis/model/device_private.h"

#include <errno.h>
#include <stdlib.h>

/* From the return of its call to its begin an operation with nothing else in the queue needs some
 * microseconds. Where it took as long as this, something that is not in the window kept the device. */
#define MISSING_NS 1000000
/* A launch call that takes so long is no latency: it loads a module, or waits for a lock. */
#define LONG_CALL_NS 1000000
/* Sooner after the return of its call no operation need begin: it waited for nothing but its launch. */
#define LATENCY_NS 5000

const char *hb_gap__size_name(enum hb_gap_size s)
{
	static const char *const names[HB_GAP_SIZES] = {"floor", "micro", "macro"};

	return s < HB_GAP_SIZES ? names[s] : "?";
}

const char *hb_gap__cause_name(enum hb_gap_cause c)
{
	static const char *const names[HB_GAP_CAUSES] = {"host", "dependency", "unknown", "missing"};

	return c < HB_GAP_CAUSES ? names[c] : "?";
}

/* ---- unions ---- */

struct un { /* length of a union of intervals that come by begin */
	u64 end, length;
};

static void add(struct un *u, u64 begin, u64 end)
{
	if (begin < u->end)
		begin = u->end;
	if (begin >= end)
		return;
	u->length += end - begin;
	u->end = end;
}

/* ---- gaps ---- */

static enum hb_gap_size size_of(u64 ns)
{
	return ns < HB_GAP_MICRO_NS ? HB_GAP_FLOOR : ns < HB_GAP_MACRO_NS ? HB_GAP_MICRO : HB_GAP_MACRO;
}

/* Was the device busy with what is not in the window? The call came at once (sooner than the rest of the gap
 * took), found nothing in the queue, returned, and still nothing began for long. */
static bool missing(const struct hb_gap *g, const struct hb_device_op *o, const struct hb_launch *l)
{
	return o->first && o->empty && l->end <= g->end && g->end - l->end >= MISSING_NS &&
	       l->begin - g->begin <= g->end - l->begin;
}

/* A copy's call that waits for the copy ends late for that reason. */
static bool is_launch(const struct hb_device_op *o, const struct hb_launch *l)
{
	return o->first && l->timed && (o->kind != HB_DEVKIND_MEMCPY || l->end < o->end);
}

/* And how much of it is the host's. */
static enum hb_gap_cause cause_of(const struct hb_devices *d, const struct hb_device *v, struct hb_gap *g)
{
	const struct hb_device_op *o = &v->op[g->next];
	const struct hb_launch *l = launch_of(d, o);
	u64 until = l ? asked(d, o) : 0;

	if (!l || g->begin < v->known)
		return HB_GAP_UNKNOWN;
	if (until <= g->begin) {
		/* Was the call still being made, or only just done? */
		if (!is_launch(o, l) || o->begin > l->end + LATENCY_NS)
			return HB_GAP_DEP;
		until = l->end;
	} else if (g->size == HB_GAP_MACRO && missing(g, o, l)) {
		return HB_GAP_MISSING;
	} else if (l->end - l->begin >= LONG_CALL_NS && is_launch(o, l)) {
		until = l->end;
	}
	until = until > g->begin ? until : g->begin;
	g->host_end = until < g->end ? until : g->end;
	return HB_GAP_HOST;
}

struct hb_gap hb_devices__gap(const struct hb_devices *d, const struct hb_device *v, u64 begin, u32 next)
{
	struct hb_gap g = {.begin = begin, .end = v->op[next].begin, .host_end = begin, .next = next};

	g.size = (u8)size_of(g.end - g.begin);
	g.cause = (u8)cause_of(d, v, &g);
	return g;
}

static int keep(struct dev *v, const struct hb_gap *g)
{
	struct hb_gap *kept = hb_devices__push(&v->gaps, &v->n_gaps, &v->cap_gaps, sizeof(*kept));

	if (!kept)
		return -ENOMEM;
	*kept = *g;
	hb_ivs__add(&v->host_idle, g->begin, g->host_end);
	if (g->cause == HB_GAP_MISSING || g->begin < v->pub.known)
		hb_ivs__add(&v->not_known, g->begin, g->end);
	return 0;
}

/* From `begin` until operation `next` begins. */
static int add_gap(const struct hb_devices *d, struct dev *v, u64 begin, u32 next)
{
	struct hb_gap g = hb_devices__gap(d, &v->pub, begin, next);
	u64 ns = g.end - g.begin;
	struct hb_gap_sum *s = &v->pub.gaps[g.size];
	u64 t;

	s->count++;
	s->ns += ns;
	switch (g.cause) {
	case HB_GAP_HOST:
		t = asked(d, &v->ops[next]);
		s->call_ns += t <= begin ? ns : 0;
		s->host_ns += t <= begin ? 0 : (t < g.end ? t : g.end) - begin;
		s->tail_ns += t <= begin || t >= g.end ? 0 : g.end - t;
		break;
	case HB_GAP_DEP:
		s->dep_ns += ns;
		break;
	case HB_GAP_UNKNOWN:
		s->unknown_ns += ns;
		break;
	default:
		s->missing_ns += ns;
		v->pub.missing += ns;
	}
	return g.size == HB_GAP_FLOOR ? 0 : keep(v, &g);
}

/* The first operation without a call was launched before the window, unless its stream had one with a call
 * before it: then that call is lost. Until it ended nobody can say that the device had nothing to do. */
static u64 known_from(const struct dev *v)
{
	const struct hb_device_op *first = &v->ops[v->first_unlinked];

	if (v->first_unlinked == v->n_ops)
		return v->pub.begin;
	for (u32 i = 0; i < v->first_unlinked; i++)
		if (v->ops[i].stream == first->stream)
			return v->pub.begin;
	return first->end;
}

struct parts { /* what goes through one device's operations */
	struct queue queue;
	struct copying *copies;
	struct un *stream;
};

/* One walk by begin: all unions grow, and where that of everything has a hole, there is a gap. */
static int walk(const struct hb_devices *d, struct dev *v, struct parts *p)
{
	struct un of[HB_WORK_COUNT] = {0}, kernels = {0}, all = {.end = v->pub.begin};

	for (u32 i = 0; i < v->n_ops; i++) {
		const struct hb_device_op *o = &v->ops[i];

		expect_launch(d, v, i);
		hb_queue__begin(&p->queue, i);
		if (o->begin > all.end) {
			if (add_gap(d, v, all.end, i))
				return -ENOMEM;
			all.end = o->begin;
		}
		add(&of[o->work], o->begin, o->end);
		add(&all, o->begin, o->end);
		add(&p->stream[o->stream], o->begin, o->end);
		if (o->work != HB_WORK_MEMCPY)
			add(&kernels, o->begin, o->end);
		else if (hb_copying__add(p->copies, d, o))
			return -ENOMEM;
	}
	v->pub.end = all.end;
	v->pub.busy = all.length;
	v->pub.compute = of[HB_WORK_COMPUTE].length;
	v->pub.comm = of[HB_WORK_COMM].length;
	v->pub.memcpy = of[HB_WORK_MEMCPY].length;
	/* |A - B| is |A + B| - |B|: no list of intervals is needed. */
	v->pub.exposed_comm = kernels.length - v->pub.compute;
	v->pub.exposed_memcpy = all.length - kernels.length;
	v->pub.idle = all.end - v->pub.begin - all.length;
	return v->host_idle.oom || v->not_known.oom ? -ENOMEM : 0;
}

static int finish(const struct hb_devices *d, struct dev *v, struct parts *p)
{
	int rc = walk(d, v, p);

	for (u32 i = 0; i < v->n_streams; i++)
		v->streams[i].busy = p->stream[i].length;
	hb_queue__finish(&p->queue);
	return rc ? rc : hb_copying__finish(p->copies);
}

int hb_devices__time(struct hb_devices *d, struct dev *v)
{
	struct parts p = {.copies = hb_copying__new(v)};
	int rc = -ENOMEM;

	if (v->n_ops) {
		v->pub.begin = v->ops[0].begin;
		v->pub.known = known_from(v);
	}
	p.stream = calloc((size_t)v->n_streams + 1, sizeof(*p.stream));
	if (p.copies && p.stream && !hb_queue__init(&p.queue, d, v))
		rc = finish(d, v, &p);
	hb_queue__free(&p.queue);
	hb_copying__free(p.copies);
	free(p.stream);
	return rc;
}

void hb_device__active(const struct hb_device *v, struct hb_ivs *out)
{
	u64 begin = v->begin, end = begin;

	for (u32 i = 0; i < v->n_ops; i++) {
		if (v->op[i].begin > end) {
			hb_ivs__add(out, begin, end);
			begin = v->op[i].begin;
		}
		end = v->op[i].end > end ? v->op[i].end : end;
	}
	hb_ivs__add(out, begin, end);
}
