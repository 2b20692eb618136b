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

/* ---- the threads that the path leads through ---- */

/* Threads in whose sleeps the path is: it left each of them for its waker. */
struct waiter {
	u32 thread;
	u64 begin; /* of the sleep */
	u64 until; /* of the path what it sleeps in ends here */
};

struct blame {
	struct hb_exposure *x;
	const struct hb_sets *own; /* of the dispatch thread, which has all of `idle` */
	const struct hb_sets *idle;
	struct waiter waiting[16];
	u32 n;
	u64 low; /* where the path, followed backwards, has come to */
};

/* What of a set lies in [begin, end). Parts are added backwards in time, as the path is followed, so that
 * neighbours become one. */
static void add_part(const struct hb_ivs *of, u64 begin, u64 end, struct hb_ivs *out)
{
	size_t first = of->n ? hb_ivs__after(of, begin) : 0, i = first;

	while (i < of->n && of->v[i].begin < end)
		i++;
	while (i-- > first) {
		u64 from = of->v[i].begin > begin ? of->v[i].begin : begin;
		u64 to = of->v[i].end < end ? of->v[i].end : end;
		struct hb_iv *last = out->n ? &out->v[out->n - 1] : NULL;

		if (last && to == last->begin)
			last->begin = from;
		else
			hb_ivs__add(out, from, to);
	}
}

static void add_idle(struct blame *b, u32 thread, u64 begin, u64 end)
{
	struct hb_sets *t = thread < b->x->n ? &b->x->thread[thread] : NULL;

	if (!t || t == b->own || begin >= end)
		return;
	t->tidy = false;
	add_part(&b->idle->sure, begin, end, &t->sure);
	add_part(&b->idle->likely, begin, end, &t->likely);
	add_part(&b->idle->maybe, begin, end, &t->maybe);
}

/* It sleeps no longer, as far as the path has come. */
static void leave(struct blame *b, const struct waiter *w)
{
	add_idle(b, w->thread, b->low, w->until);
}

static void leave_all(struct blame *b)
{
	for (u32 i = 0; i < b->n; i++)
		leave(b, &b->waiting[i]);
	b->n = 0;
}

/* Sleeps on the path are of many threads: those that it soon comes to are fetched meanwhile. */
enum { AHEAD = 16 };

static void expect(const struct hb_scene *s, const struct hb_seg *g)
{
	u32 n;

	if (g->via_thread != HB_NONE && g->via != HB_NONE)
		__builtin_prefetch(&hb_timeline__sleeps(s->tl, g->via_thread, &n)[g->via]);
}

/* The path, followed backwards, comes to this segment. */
static void come_to(struct blame *b, const struct hb_scene *s, const struct hb_seg *g)
{
	u32 n, to = 0;

	if (g->via_thread == HB_NONE) /* the dispatch thread itself */
		leave_all(b);
	for (u32 i = 0; i < b->n; i++) {
		struct waiter *w = &b->waiting[i];

		if (w->begin >= g->end || w->thread == g->thread || g->end != b->low)
			leave(b, w);
		if (w->begin >= g->end || w->thread == g->thread)
			continue;
		w->until = g->end != b->low ? g->end : w->until;
		b->waiting[to++] = *w;
	}
	b->n = to;
	b->low = g->begin;
	/* Where it came over the device there is a thread, and no sleep. */
	if (g->via_thread == HB_NONE || g->via == HB_NONE || g->via_thread == g->thread ||
	    b->n == sizeof(b->waiting) / sizeof(*b->waiting))
		return;
	for (u32 i = 0; i < b->n; i++)
		if (b->waiting[i].thread == g->via_thread)
			return;
	b->waiting[b->n++] =
	    (struct waiter){.thread = g->via_thread,
			    .begin = hb_timeline__sleeps(s->tl, g->via_thread, &n)[g->via].at.begin,
			    .until = g->end};
}

/* Its dispatch thread answers for all idle time; the others for what of it they lie on the path in, or sleep
 * in while the path leads through their wakers. */
static void blame(struct hb_exposure *x, const struct hb_scene *s, const struct hb_series *p)
{
	struct hb_sets idle = {0}, *own = p->dispatch < x->n ? &x->thread[p->dispatch] : NULL;
	struct blame b = {.x = x, .own = own, .idle = &idle};
	u32 n;
	const struct hb_seg *g = hb_path__segs(s->path, p->pid, &n);

	idle_of(s, p->pid, &idle);
	leave_out(s, p->pid, &idle);
	for (u32 i = n; i--;) {
		if (i >= AHEAD)
			expect(s, &g[i - AHEAD]);
		come_to(&b, s, &g[i]);
		if (g[i].thread != p->dispatch) /* as most are */
			add_idle(&b, g[i].thread, g[i].begin, g[i].end);
	}
	leave_all(&b);
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
