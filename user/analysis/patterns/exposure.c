/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analysis/patterns/exposure.h"

#include <errno.h>
#include <stdlib.h>

struct hb_exposure {
	struct hb_sets *thread; /* by index of the timeline */
	u32 n;
};

static const struct hb_sets nothing;

void hb_sets__free(struct hb_sets *s)
{
	hb_ivs__free(&s->sure);
	hb_ivs__free(&s->likely);
	hb_ivs__free(&s->maybe);
}

bool hb_sets__oom(const struct hb_sets *s)
{
	return s->sure.oom || s->likely.oom || s->maybe.oom;
}

u64 hb_sets__likely(const struct hb_sets *s, u64 begin, u64 end)
{
	u64 ns = hb_ivs__within(&s->sure, begin, end);

	return s->likely.n ? ns + hb_ivs__within(&s->likely, begin, end) : ns;
}

static void add_all(const struct hb_ivs *from, struct hb_ivs *to)
{
	hb_ivs__reserve(to, to->n + from->n);
	for (size_t i = 0; i < from->n; i++)
		hb_ivs__add(to, from->v[i].begin, from->v[i].end);
	to->oom |= from->oom;
}

int hb_sets__all_likely(const struct hb_sets *s, struct hb_ivs *out)
{
	add_all(&s->sure, out);
	add_all(&s->likely, out);
	hb_ivs__join(out);
	return out->oom ? -ENOMEM : 0;
}

/* Where a span belongs; NULL: the device was busy. */
static struct hb_ivs *set_for(struct hb_sets *s, const struct hb_busy_span *b)
{
	switch (hb_busy_span__state(b)) {
	case HB_BUSY_IDLE:
		return &s->sure;
	case HB_BUSY_UNKNOWN:
		return hb_busy_span__likely(b) == HB_BUSY_IDLE ? &s->likely : &s->maybe;
	default:
		return NULL;
	}
}

/* What is known of a process's device, as sets. Spans come by the million: a table says where they belong. */
static void idle_of(const struct hb_scene *s, u32 pid, struct hb_sets *out)
{
	struct hb_ivs *set[HB_BUSY_WHATS];
	u32 n;
	const struct hb_busy_span *b = hb_busy__spans(s->busy, pid, &n);

	for (u32 i = 0; i < HB_BUSY_WHATS; i++) {
		const struct hb_busy_span x = {.what = i};

		set[i] = set_for(out, &x);
	}
	if (n)
		hb_ivs__reserve(&out->sure, n / 2 + 1); /* neighbours differ */
	for (u32 i = 0; i < n; i++)
		if (set[b[i].what])
			hb_ivs__append(set[b[i].what], b[i].begin, hb_busy_span__end(&b[i]));
	hb_ivs__fit(&out->sure);
}

static void take_off(struct hb_ivs *s, const struct hb_ivs *off)
{
	struct hb_ivs left = {.oom = s->oom};

	if (!s->n || !off->n)
		return;
	hb_ivs__minus(s, off, &left);
	hb_ivs__free(s);
	*s = left;
}

/* While all that is traced waits for data from outside nobody here exposes anything: there may be no request.
 */
static void leave_out(const struct hb_scene *s, u32 pid, struct hb_sets *idle)
{
	struct hb_ivs outside = {0};

	hb_path__outside(s->path, pid, &outside);
	if (outside.n) {
		hb_ivs__and(&idle->sure, &outside, &idle->maybe);
		hb_ivs__and(&idle->likely, &outside, &idle->maybe);
		hb_ivs__join(&idle->maybe);
		take_off(&idle->sure, &outside);
		take_off(&idle->likely, &outside);
	}
	idle->sure.oom |= outside.oom;
	hb_ivs__free(&outside);
}

/* What several processes tell of one thread, without overlap. */
static void tidy(struct hb_sets *s)
{
	if (s->tidy)
		return;
	hb_ivs__join(&s->sure);
	hb_ivs__join(&s->likely);
	hb_ivs__join(&s->maybe);
	take_off(&s->likely, &s->sure);
	take_off(&s->maybe, &s->sure);
	take_off(&s->maybe, &s->likely);
	hb_ivs__fit(&s->sure);
	hb_ivs__fit(&s->likely);
	hb_ivs__fit(&s->maybe);
}

/* Threads in whose sleeps the path is: it left each of them for its waker. */
struct waiters {
	struct {
		u32 thread;
		u64 begin; /* of the sleep */
	} v[16];
	u32 n;
};

/* The path, followed backwards, comes to this segment. */
static void come_to(struct waiters *w, const struct hb_scene *s, const struct hb_seg *g)
{
	u32 n, to = 0;

	if (g->via_thread == HB_NONE) /* the dispatch thread itself */
		w->n = 0;
	for (u32 i = 0; i < w->n; i++)
		if (w->v[i].begin < g->end && w->v[i].thread != g->thread)
			w->v[to++] = w->v[i];
	w->n = to;
	/* Where it came over the device there is a thread, and no sleep. */
	if (g->via_thread == HB_NONE || g->via == HB_NONE || g->via_thread == g->thread ||
	    w->n == sizeof(w->v) / sizeof(*w->v))
		return;
	for (u32 i = 0; i < w->n; i++)
		if (w->v[i].thread == g->via_thread)
			return;
	w->v[w->n].thread = g->via_thread;
	w->v[w->n].begin = hb_timeline__sleeps(s->tl, g->via_thread, &n)[g->via].at.begin;
	w->n++;
}

/* What of a set lies in a segment: looked for once, for all threads that it is added to. */
struct piece {
	const struct hb_ivs *of;
	size_t first, n;
};

static struct piece piece_of(const struct hb_ivs *s, const struct hb_seg *g)
{
	struct piece p = {.of = s, .first = s->n ? hb_ivs__after(s, g->begin) : 0};

	while (p.first + p.n < s->n && s->v[p.first + p.n].begin < g->end)
		p.n++;
	return p;
}

static void add_piece(const struct piece *p, const struct hb_seg *g, struct hb_ivs *out)
{
	for (size_t i = p->first; i < p->first + p->n; i++) {
		const struct hb_iv *v = &p->of->v[i];

		hb_ivs__add(out, v->begin > g->begin ? v->begin : g->begin,
			    v->end < g->end ? v->end : g->end);
	}
}

struct pieces {
	const struct hb_seg *g;
	struct piece sure, likely, maybe;
};

static void add_idle(struct hb_exposure *x, u32 thread, const struct hb_sets *own, const struct pieces *p)
{
	struct hb_sets *t = thread < x->n ? &x->thread[thread] : NULL;

	if (!t || t == own)
		return;
	t->tidy = false;
	add_piece(&p->sure, p->g, &t->sure);
	add_piece(&p->likely, p->g, &t->likely);
	add_piece(&p->maybe, p->g, &t->maybe);
}

static void add_seg(struct hb_exposure *x, const struct hb_seg *g, const struct waiters *w,
		    const struct hb_sets *own, const struct hb_sets *idle)
{
	struct pieces p = {.g = g};

	if (!w->n && (g->thread >= x->n || &x->thread[g->thread] == own))
		return;
	p.sure = piece_of(&idle->sure, g);
	p.likely = piece_of(&idle->likely, g);
	p.maybe = piece_of(&idle->maybe, g);
	if (!p.sure.n && !p.likely.n && !p.maybe.n)
		return;
	add_idle(x, g->thread, own, &p);
	for (u32 k = 0; k < w->n; k++)
		add_idle(x, w->v[k].thread, own, &p);
}

/* Its dispatch thread answers for all idle time; the others for what of it they lie on the path in, or sleep
 * in while the path leads through their wakers. */
static void blame(struct hb_exposure *x, const struct hb_scene *s, const struct hb_series *p)
{
	struct hb_sets idle = {0}, *own = p->dispatch < x->n ? &x->thread[p->dispatch] : NULL;
	struct waiters w = {.n = 0};
	u32 n;
	const struct hb_seg *g = hb_path__segs(s->path, p->pid, &n);

	idle_of(s, p->pid, &idle);
	leave_out(s, p->pid, &idle);
	for (u32 i = n; i--;) {
		come_to(&w, s, &g[i]);
		add_seg(x, &g[i], &w, own, &idle);
	}
	if (own && !hb_sets__any(own)) {
		hb_sets__free(own);
		*own = idle;
		own->tidy = true;
		return;
	}
	if (own) {
		own->tidy = false;
		add_all(&idle.sure, &own->sure);
		add_all(&idle.likely, &own->likely);
		add_all(&idle.maybe, &own->maybe);
	}
	hb_sets__free(&idle);
}

struct hb_exposure *hb_exposure__new(const struct hb_scene *s)
{
	struct hb_exposure *x = calloc(1, sizeof(*x));
	bool oom = false;

	if (!x)
		return NULL;
	x->n = hb_timeline__threads(s->tl);
	x->thread = calloc(x->n + 1, sizeof(*x->thread));
	if (!x->thread) {
		free(x);
		return NULL;
	}
	for (u32 i = 0; i < hb_steps__series(s->steps); i++)
		blame(x, s, hb_steps__at(s->steps, i));
	for (u32 i = 0; i < x->n; i++) {
		tidy(&x->thread[i]);
		oom |= hb_sets__oom(&x->thread[i]);
	}
	if (!oom)
		return x;
	hb_exposure__free(x);
	return NULL;
}

void hb_exposure__free(struct hb_exposure *x)
{
	if (!x)
		return;
	for (u32 i = 0; i < x->n; i++)
		hb_sets__free(&x->thread[i]);
	free(x->thread);
	free(x);
}

const struct hb_sets *hb_exposure__of(const struct hb_exposure *x, u32 thread)
{
	return thread < x->n ? &x->thread[thread] : &nothing;
}
