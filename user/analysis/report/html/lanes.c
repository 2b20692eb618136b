/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which rows a page's timeline has: devices, processes with their steps and critical path, threads. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/report/html/private.h"

/* Kinds of intervals that have a row, and down to which depth. */
static const struct {
	const char *what;
	u8 list, depths;
} lists[] = {
    {"off-CPU", HB_TL_SLEEP, 1},	{"GIL", HB_TL_GIL, 1},		{"collections", HB_TL_GC, 1},
    {"calls", HB_TL_CALL, 2},		{"Python", HB_TL_PYCALL, 6},	{"operators", HB_TL_OP, 4},
    {"system calls", HB_TL_SYSCALL, 1}, {"exceptions", HB_TL_RAISE, 1},
};
#define N_LISTS (sizeof(lists) / sizeof(*lists))
enum { STREAMS = 8, FEWEST = 64, DEPTHS = 64 };

static struct hb_lane *add_lane(struct hb_lanes *l, const char *kind, u32 pid, u32 index)
{
	if (l->n == l->cap) {
		u32 cap = l->cap ? 2 * l->cap : 16;
		struct hb_lane *bigger = realloc(l->lane, cap * sizeof(*bigger));

		if (!bigger) {
			l->oom = true;
			return NULL;
		}
		l->lane = bigger;
		l->cap = cap;
	}
	l->lane[l->n] = (struct hb_lane){.kind = kind, .pid = pid, .index = index};
	return &l->lane[l->n++];
}

static void add_track(struct hb_lane *lane, struct hb_track t)
{
	if (lane && t.n && lane->n < HB_LANE_TRACKS)
		lane->track[lane->n++] = t;
}

/* ---- devices ---- */

static void add_devices(const struct hb_page *p, struct hb_lanes *l)
{
	const struct hb_device *d;

	for (u32 i = 0; p->in->devices && (d = hb_devices__at(p->in->devices, i)); i++) {
		struct hb_lane *lane = d->n_ops ? add_lane(l, "device", d->pid, i) : NULL;

		add_track(lane, (struct hb_track){.what = "idle", .kind = HB_TRACK_GAPS, .n = d->n_gaps});
		for (u32 s = 0, shown = 0; s < d->n_streams && shown < STREAMS; s++) {
			if (!d->stream[s].ops)
				continue;
			shown++;
			add_track(lane, (struct hb_track){.what = "stream",
							  .kind = HB_TRACK_STREAM,
							  .n = (u32)d->stream[s].ops,
							  .stream = s});
		}
	}
}

/* ---- processes ---- */

static bool has_device(const struct hb_page *p, u32 pid)
{
	const struct hb_device *d;

	for (u32 i = 0; p->in->devices && (d = hb_devices__at(p->in->devices, i)); i++)
		if (d->pid == pid && d->n_ops)
			return true;
	return false;
}

static void add_processes(const struct hb_page *p, struct hb_lanes *l)
{
	const struct hb_steps *steps = hb_host__steps(p->in->host);
	const struct hb_series *s;

	for (u32 i = 0; i < hb_steps__series(steps) && (s = hb_steps__at(steps, i)); i++) {
		struct hb_lane *lane = add_lane(l, "process", s->pid, i);
		u32 busy = 0, path;

		if (!has_device(p, s->pid))
			hb_busy__spans(hb_host__busy(p->in->host), s->pid, &busy);
		hb_path__segs(hb_host__path(p->in->host), s->pid, &path);
		add_track(lane, (struct hb_track){.what = "steps", .kind = HB_TRACK_STEPS, .n = s->n});
		add_track(lane, (struct hb_track){.what = "device", .kind = HB_TRACK_BUSY, .n = busy});
		add_track(lane, (struct hb_track){.what = "critical path", .kind = HB_TRACK_PATH, .n = path});
		add_track(lane, (struct hb_track){.what = "longest path",
						  .kind = HB_TRACK_LONGEST,
						  .n = hb_page__longest(p, s->pid)});
		if (lane && !lane->n)
			l->n--;
	}
}

/* ---- threads ---- */

static u32 spans_of(const struct hb_timeline *tl, u32 thread, u8 list)
{
	u32 n = 0;

	switch (list) {
#define COUNT(KIND, name, type, record)                                                                      \
	case HB_TL_##KIND:                                                                                   \
		hb_timeline__##name(tl, thread, &n);                                                         \
		break;
		HB_TL_LISTS(COUNT)
#undef COUNT
	}
	return n;
}

/* How deep each interval lies; NULL when out of memory. */
static u8 *depths_of(const struct hb_timeline *tl, u32 thread, u8 list, u32 n)
{
	u8 *depth = malloc(n ? n : 1);

	for (u32 i = 0; depth && i < n; i++) {
		u32 outer = hb_timeline__span(tl, thread, list, i)->outer;

		depth[i] = outer >= i ? 0 : (u8)(depth[outer] + (depth[outer] < DEPTHS));
	}
	return depth;
}

/* The first depth that is worth a row: outermost calls that last as long as their thread tell little. */
static u8 first_depth(const u32 *count)
{
	u8 d = 0;

	while (d + 1 < DEPTHS && count[d] == 1 && count[d + 1])
		d++;
	return d;
}

static void add_list(const struct hb_timeline *tl, struct hb_lanes *l, struct hb_lane *lane, size_t k)
{
	u32 n = spans_of(tl, lane->index, lists[k].list), count[DEPTHS + 1] = {0};
	u8 *depth = n ? depths_of(tl, lane->index, lists[k].list, n) : NULL, first, end;

	l->oom |= n && !depth;
	for (u32 i = 0; depth && i < n; i++)
		count[depth[i]]++;
	free(depth);
	first = lists[k].depths > 1 ? first_depth(count) : 0;
	end = first + lists[k].depths < DEPTHS ? first + lists[k].depths : DEPTHS;
	for (u8 d = first; d < end; d++)
		add_track(lane,
			  (struct hb_track){.what = lists[k].what,
					    .kind = HB_TRACK_LIST,
					    .n = count[d],
					    .list = lists[k].list,
					    .depth = d,
					    .deeper = (d == first && first) || (d + 1 == end && count[end])});
}

struct rank {
	u32 thread;
	u64 score;
};

static int by_score(const void *a, const void *b)
{
	const struct rank *x = a, *y = b;

	if (x->score != y->score)
		return x->score < y->score ? 1 : -1;
	return x->thread < y->thread ? -1 : 1;
}

#define NAMED (1ULL << 62) /* in a finding, or it dispatches work */

static void rank_task(const struct hb_timeline *tl, const struct hb_task *k, struct rank *r)
{
	u32 t = k ? hb_timeline__by_tid(tl, k->tid) : HB_NONE;

	if (t != HB_NONE)
		r[t].score |= NAMED;
}

static void rank_named(const struct hb_page *p, const struct hb_timeline *tl, struct rank *r)
{
	const struct hb_steps *steps = hb_host__steps(p->in->host);
	const struct hb_finding *f;

	for (u32 i = 0; i < hb_steps__series(steps); i++)
		if (hb_steps__at(steps, i)->thread != HB_NONE)
			r[hb_steps__at(steps, i)->thread].score |= NAMED;
	for (u32 i = 0; p->in->findings && (f = hb_findings__at(p->in->findings, i)); i++)
		for (u32 k = 0; k < f->n_worst; k++) {
			rank_task(tl, f->worst[k].thread, r);
			rank_task(tl, f->worst[k].waker, r);
		}
}

static void add_threads(const struct hb_page *p, struct hb_lanes *l)
{
	const struct hb_timeline *tl = hb_host__timeline(p->in->host);
	u32 n = hb_timeline__threads(tl);
	struct rank *r = calloc(n ? n : 1, sizeof(*r));

	if (!r) {
		l->oom = true;
		return;
	}
	for (u32 t = 0; t < n; t++) {
		r[t].thread = t;
		for (size_t k = 0; k < N_LISTS; k++)
			r[t].score += spans_of(tl, t, lists[k].list);
	}
	rank_named(p, tl, r);
	qsort(r, n, sizeof(*r), by_score);
	for (u32 i = 0; i < n && r[i].score; i++) {
		struct hb_lane *lane =
		    i < HB_HTML_THREADS
			? add_lane(l, "thread", hb_timeline__thread(tl, r[i].thread)->pid, r[i].thread)
			: NULL;

		for (size_t k = 0; lane && k < N_LISTS; k++)
			add_list(tl, l, lane, k);
		if (lane && !lane->n)
			l->n--;
		l->threads_left_out += !lane;
	}
	free(r);
}

/* ---- all ---- */

/* Each track gets what it needs up to an even share; what small ones leave goes to the others. */
static void share_pieces(struct hb_lanes *l)
{
	u64 left = HB_HTML_PIECES;
	u32 open = 0;

	for (u32 i = 0; i < l->n; i++)
		open += l->lane[i].n;
	for (u64 share = 0; open && left / open > share;) {
		u32 still = 0;

		share = left / open;
		left = HB_HTML_PIECES;
		for (u32 i = 0; i < l->n; i++)
			for (u32 k = 0; k < l->lane[i].n; k++) {
				struct hb_track *t = &l->lane[i].track[k];

				if (t->n <= share)
					left -= t->n;
				else
					still++;
				t->max = (u32)(t->n <= share ? t->n : share);
			}
		open = still;
	}
	for (u32 i = 0; i < l->n; i++)
		for (u32 k = 0; k < l->lane[i].n; k++)
			if (l->lane[i].track[k].max < FEWEST)
				l->lane[i].track[k].max = FEWEST;
}

int hb_lanes__choose(const struct hb_page *p, struct hb_lanes *l)
{
	*l = (struct hb_lanes){0};
	add_devices(p, l);
	if (p->in->host) {
		add_processes(p, l);
		add_threads(p, l);
	}
	share_pieces(l);
	return l->oom ? -ENOMEM : 0;
}

void hb_lanes__free(struct hb_lanes *l)
{
	free(l->lane);
	*l = (struct hb_lanes){0};
}

/* ---- spans ---- */

struct fill {
	const struct hb_page *p;
	struct hb_lod_span *s;
	u32 n, cap;
	bool oom;
};

static void add_span(struct fill *f, u64 begin, u64 end, u32 item)
{
	u64 from = f->p->start, to = f->p->end;

	begin = begin < from ? from : begin > to ? to : begin;
	end = end < begin ? begin : end > to ? to : end;
	if (f->n < f->cap)
		f->s[f->n++] = (struct hb_lod_span){begin, end, item};
}

static void fill_list(struct fill *f, u32 thread, const struct hb_track *t)
{
	const struct hb_timeline *tl = hb_host__timeline(f->p->in->host);
	u32 n = spans_of(tl, thread, t->list);
	u8 *depth = depths_of(tl, thread, t->list, n);

	f->oom = !depth;
	for (u32 i = 0; depth && i < n; i++) {
		const struct hb_span *s = hb_timeline__span(tl, thread, t->list, i);

		if (depth[i] == t->depth)
			add_span(f, s->begin, s->end, i);
	}
	free(depth);
}

static void fill_device(struct fill *f, const struct hb_device *d, const struct hb_track *t)
{
	if (t->kind == HB_TRACK_GAPS) {
		for (u32 i = 0; i < d->n_gaps; i++)
			add_span(f, d->gap[i].begin, d->gap[i].end, d->gap[i].cause);
		return;
	}
	for (u32 i = 0; i < d->n_ops; i++)
		if (d->op[i].stream == t->stream)
			add_span(f, d->op[i].begin, d->op[i].end, i);
}

static void fill_process(struct fill *f, const struct hb_lane *lane, const struct hb_track *t)
{
	const struct hb_host *h = f->p->in->host;
	u32 n;

	if (t->kind == HB_TRACK_STEPS) {
		const struct hb_series *s = hb_steps__at(hb_host__steps(h), lane->index);

		for (u32 i = 0; i < s->n; i++)
			add_span(f, s->step[i].begin, s->step[i].end, i);
	} else if (t->kind == HB_TRACK_BUSY) {
		const struct hb_busy_span *b = hb_busy__spans(hb_host__busy(h), lane->pid, &n);

		for (u32 i = 0; i < n; i++)
			add_span(f, b[i].begin, hb_busy_span__end(&b[i]), hb_busy_span__state(&b[i]));
	} else if (t->kind == HB_TRACK_LONGEST) {
		u64 begin, end;

		for (u32 i = 0; (i = hb_page__longest_next(f->p, i, &begin, &end)) != HB_NONE; i++)
			add_span(f, begin, end, i);
	} else {
		const struct hb_seg *s = hb_path__segs(hb_host__path(h), lane->pid, &n);

		for (u32 i = 0; i < n; i++)
			add_span(f, s[i].begin, s[i].end, i);
	}
}

struct hb_lod_span *hb_track__spans(const struct hb_page *p, const struct hb_lane *lane,
				    const struct hb_track *t, u32 *n)
{
	struct fill f = {.p = p, .s = malloc((size_t)t->n * sizeof(*f.s)), .cap = t->n};

	*n = t->n;
	if (!f.s)
		return NULL;
	switch (t->kind) {
	case HB_TRACK_LIST:
		fill_list(&f, lane->index, t);
		break;
	case HB_TRACK_STREAM:
	case HB_TRACK_GAPS:
		fill_device(&f, hb_devices__at(p->in->devices, lane->index), t);
		break;
	default:
		fill_process(&f, lane, t);
	}
	*n = f.oom ? t->n : f.n;
	if (!f.n || f.oom) {
		free(f.s);
		return NULL;
	}
	return f.s;
}
