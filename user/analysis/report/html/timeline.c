/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The timeline of a page: for each track the pieces of the whole window and, where those are joined ones, its
 * spans around what was found. Numbers are ns after the window's begin. A track's pieces are a flat list:
 * begin (after the one before), length, name, count; and, when count is above 1, the time that they fill.
 */
#include <errno.h>
#include <stdlib.h>

#include "analysis/model/decode.h"
#include "analysis/report/html/private.h"

enum { WINDOWS = 16, FEWEST = 16, SLACK_NS = 500000 };

struct focus { /* a stretch that is shown in all detail */
	u64 begin, end;
	char why[64];
};

struct view {
	struct hb_page *p;
	struct hb_lanes lanes;
	struct focus focus[WINDOWS];
	u32 n_focus;
	u32 max; /* pieces of one track in one of them */
	u64 joined, pieces;
};

/* ---- where to look closer ---- */

static void add_focus(struct view *v, u64 begin, u64 end, const char *what, unsigned nth)
{
	u64 slack = (end - begin) / 2 + SLACK_NS, from = v->p->start, to = v->p->end;
	struct focus *f = &v->focus[v->n_focus];

	if (v->n_focus == WINDOWS || end < begin || begin >= to || end <= from)
		return;
	f->begin = begin > from + slack ? begin - slack : from;
	f->end = end + slack < to ? end + slack : to;
	for (u32 i = 0; i < v->n_focus; i++)
		if (v->focus[i].begin <= f->begin && v->focus[i].end >= f->end)
			return;
	snprintf(f->why, sizeof(f->why), "%s %u", what, nth);
	v->n_focus++;
}

static void focus_on_findings(struct view *v)
{
	const struct hb_findings *all = v->p->in->findings;
	const struct hb_finding *f;

	for (u32 k = 0; k < HB_INSTANCES; k++)
		for (u32 i = 0; all && (f = hb_findings__at(all, i)); i++)
			if (k < f->n_worst)
				add_focus(v, f->worst[k].begin, f->worst[k].end, f->pattern->id, k + 1);
}

/* The longest step, and the one whose length is nearest to the median. */
static void focus_on_steps(struct view *v)
{
	const struct hb_steps *steps = v->p->in->host ? hb_host__steps(v->p->in->host) : NULL;
	u32 n = steps ? hb_steps__series(steps) : 0;

	for (u32 i = 0; i < n && i < 2; i++) {
		const struct hb_series *s = hb_steps__at(steps, i);
		const struct hb_step *longest = s->step, *middle = s->step;

		for (u32 k = 0; k < s->n; k++) {
			u64 len = s->step[k].end - s->step[k].begin, is = middle->end - middle->begin;

			if (len > longest->end - longest->begin)
				longest = &s->step[k];
			if (llabs((long long)(len - s->p50)) < llabs((long long)(is - s->p50)))
				middle = &s->step[k];
		}
		if (!s->n)
			continue;
		add_focus(v, longest->begin, longest->end, "longest step", i + 1);
		add_focus(v, middle->begin, middle->end, "typical step", i + 1);
	}
}

/* Of a step or operator, when it was asked for one: it is in all detail then. */
static void focus_on_path(struct view *v)
{
	const struct hb_longest_sum *s = v->p->in->longest ? hb_longest__sum(v->p->in->longest) : NULL;

	if (s && (s->of || s->step))
		add_focus(v, s->begin, s->end, "critical path", 1);
}

/* ---- pieces ---- */

static void put_pieces(struct view *v, const struct hb_lane *lane, const struct hb_track *t,
		       const struct hb_lod_span *s, u32 n, u64 begin, u64 cell, struct hb_lod_piece *room)
{
	struct hb_json *j = v->p->j;
	u32 made = hb_lod__join(s, n, begin, cell, room);
	u64 last = v->p->start;

	hb_json__ku64(j, "cell", cell);
	hb_json__karray(j, "d");
	for (u32 i = 0; room && i < made; i++) {
		hb_json__u64(j, room[i].begin - last);
		hb_json__u64(j, room[i].end - room[i].begin);
		hb_json__u64(j, hb_track__name(v->p, lane, t, room[i].item));
		hb_json__u64(j, room[i].count);
		if (room[i].count > 1)
			hb_json__u64(j, room[i].busy);
		last = room[i].begin;
	}
	hb_json__end(j);
	v->pieces += made;
}

/* First span that ends after `at`: those of one track do not overlap, or hardly. */
static u32 after(const struct hb_lod_span *s, u32 n, u64 at)
{
	u32 low = 0, high = n;

	while (low < high) {
		u32 mid = low + (high - low) / 2;

		if (s[mid].end > at)
			high = mid;
		else
			low = mid + 1;
	}
	return low;
}

static void put_focus(struct view *v, const struct hb_lane *lane, const struct hb_track *t,
		      const struct hb_lod_span *s, u32 n, struct hb_lod_piece *room)
{
	struct hb_json *j = v->p->j;

	hb_json__karray(j, "detail");
	for (u32 i = 0; i < v->n_focus; i++) {
		const struct focus *f = &v->focus[i];
		u32 from = after(s, n, f->begin), to = from;

		while (to < n && s[to].begin < f->end)
			to++;
		hb_json__object(j);
		hb_json__ku64(j, "at", i);
		put_pieces(v, lane, t, s + from, to - from, f->begin,
			   hb_lod__cell(s + from, to - from, f->begin, f->end, v->max), room);
		hb_json__end(j);
	}
	hb_json__end(j);
}

static int put_track(struct view *v, const struct hb_lane *lane, const struct hb_track *t)
{
	struct hb_json *j = v->p->j;
	u32 n;
	struct hb_lod_span *s = hb_track__spans(v->p, lane, t, &n);
	struct hb_lod_piece *room = s ? malloc(n * sizeof(*room)) : NULL;
	u64 cell;

	if (n && !room) {
		free(s);
		return -ENOMEM;
	}
	cell = hb_lod__cell(s, n, v->p->start, v->p->end, t->max);
	hb_json__object(j);
	hb_json__kstring(j, "what", t->what);
	if (t->kind == HB_TRACK_STREAM)
		hb_json__ku64(j, "stream",
			      hb_devices__at(v->p->in->devices, lane->index)->stream[t->stream].number);
	if (t->kind == HB_TRACK_LIST)
		hb_json__ku64(j, "depth", t->depth);
	if (t->deeper)
		hb_json__kbool(j, "deeper", true);
	hb_json__ku64(j, "spans", n);
	put_pieces(v, lane, t, s, n, v->p->start, cell, room);
	if (cell) {
		v->joined += n;
		put_focus(v, lane, t, s, n, room);
	}
	hb_json__end(j);
	free(s);
	free(room);
	return 0;
}

/* ---- lanes ---- */

static void put_thread(struct view *v, const struct hb_lane *lane)
{
	const struct hb_timeline *tl = hb_host__timeline(v->p->in->host);
	const struct hb_series *s = hb_steps__of_pid(hb_host__steps(v->p->in->host), lane->pid);
	const struct hb_tl_thread *t = hb_timeline__thread(tl, lane->index);

	hb_json__ku64(v->p->j, "tid", t->task->tid);
	hb_json__kstring(v->p->j, "comm", hb_decode__comm(v->p->in->w, t->task));
	hb_json__kbool(v->p->j, "dispatch", s && s->thread == lane->index);
	hb_json__ku64(v->p->j, "born", t->born > v->p->start ? t->born - v->p->start : 0);
	if (t->died)
		hb_json__ku64(v->p->j, "died", t->died > v->p->start ? t->died - v->p->start : 0);
}

static void put_process(struct view *v, const struct hb_lane *lane)
{
	const struct hb_series *s = hb_steps__at(hb_host__steps(v->p->in->host), lane->index);

	hb_json__kstring(v->p->j, "comm",
			 hb_decode__comm(v->p->in->w, hb_window__task_by_tid(v->p->in->w, lane->pid)));
	hb_json__kstring(v->p->j, "source", hb_steps__source_name(s->source));
	if (!s->n)
		hb_json__kstring(v->p->j, "why", s->why);
}

static int put_lane(struct view *v, const struct hb_lane *lane)
{
	struct hb_json *j = v->p->j;
	int rc = 0;

	hb_json__object(j);
	hb_json__kstring(j, "kind", lane->kind);
	hb_json__ku64(j, "pid", lane->pid);
	if (*lane->kind == 'd') {
		const struct hb_device *d = hb_devices__at(v->p->in->devices, lane->index);

		hb_json__ku64(j, "device", d->number);
		hb_json__kstring(j, "comm", hb_decode__comm(v->p->in->w, d->main));
	} else if (*lane->kind == 'p') {
		put_process(v, lane);
	} else {
		put_thread(v, lane);
	}
	hb_json__karray(j, "tracks");
	for (u32 i = 0; !rc && i < lane->n; i++)
		rc = put_track(v, lane, &lane->track[i]);
	hb_json__end(j);
	hb_json__end(j);
	return rc;
}

static void put_foci(struct view *v)
{
	struct hb_json *j = v->p->j;

	hb_json__karray(j, "focus");
	for (u32 i = 0; i < v->n_focus; i++) {
		hb_json__object(j);
		hb_json__ku64(j, "begin", v->focus[i].begin - v->p->start);
		hb_json__ku64(j, "end", v->focus[i].end - v->p->start);
		hb_json__kstring(j, "why", v->focus[i].why);
		hb_json__end(j);
	}
	hb_json__end(j);
}

/* Where the path that was asked for lies. */
static void put_path(struct view *v)
{
	const struct hb_longest_sum *s = v->p->in->longest ? hb_longest__sum(v->p->in->longest) : NULL;
	u64 start = v->p->start;

	if (!s)
		return;
	hb_json__kobject(v->p->j, "critical");
	hb_json__ku64(v->p->j, "begin", s->begin > start ? s->begin - start : 0);
	hb_json__ku64(v->p->j, "end", s->end > start ? s->end - start : 0);
	hb_json__end(v->p->j);
}

int hb_page__timeline(struct hb_page *p)
{
	struct view v = {.p = p};
	u32 tracks = 0;
	int rc = hb_lanes__choose(p, &v.lanes);

	focus_on_path(&v);
	focus_on_findings(&v);
	focus_on_steps(&v);
	for (u32 i = 0; i < v.lanes.n; i++)
		tracks += v.lanes.lane[i].n;
	v.max = v.n_focus && tracks ? HB_HTML_DETAIL / (v.n_focus * tracks) : 0;
	if (v.max < FEWEST)
		v.max = FEWEST;
	hb_json__ku64(p->j, "wall", p->end - p->start);
	hb_json__kbool(p->j, "scheduler",
		       p->in->host && hb_timeline__count(hb_host__timeline(p->in->host), HB_TL_SLEEP));
	put_foci(&v);
	put_path(&v);
	hb_json__karray(p->j, "lanes");
	for (u32 i = 0; !rc && i < v.lanes.n; i++)
		rc = put_lane(&v, &v.lanes.lane[i]);
	hb_json__end(p->j);
	hb_json__ku64(p->j, "threads_left_out", v.lanes.threads_left_out);
	hb_json__ku64(p->j, "joined", v.joined);
	hb_json__ku64(p->j, "pieces", v.pieces);
	hb_lanes__free(&v.lanes);
	return rc;
}
