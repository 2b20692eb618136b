/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Where steps begin and end: spans that say so, or a call that recurs once an iteration. */
#include "analysis/model/steps_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/text.h"

/* A read-back of tokens is small; weights and caches are not. */
#define READBACK_BYTES 65536
/* A call that recurs less often is no sign of steps. */
#define SITE_MIN 4

/* ---- spans ---- */

/* Functions that are one iteration, the whole engine's before a part of it. Qualified names from Python 3.11
 * on, plain ones before. */
static const char *const step_functions[] = {
    "EngineCore.step*",
    "EngineCoreProc._process_engine_step",
    "LLMEngine.step",
    "Scheduler.event_loop_step",
    "PyExecutor._executor_loop_step",
    "Engine.one_step",
    "one_step",
    "engine_step",
    "Scheduler.run_batch",
    "PyExecutor._forward_step",
    "*Worker*.execute_model",
    "*ModelRunner.execute_model",
    "ModelRunner.forward",
    "execute_model",
};
#define N_FUNCTIONS (sizeof(step_functions) / sizeof(*step_functions))

static const char *const step_marks[] = {"ProfilerStep#*", "execute_*", "step[[]*", "*engine_step*"};
#define N_MARKS (sizeof(step_marks) / sizeof(*step_marks))

static u32 rank_of(const char *name, const char *const *globs, u32 n)
{
	u32 i = 0;

	while (i < n && !hb_text__glob(globs[i], name))
		i++;
	return i;
}

/* Names recur: each is compared with the lists once. */
static u32 rank_cached(const struct hb_step_names *names, enum hb_tl_kind kind, u32 id, const char *name)
{
	bool calls = kind == HB_TL_PYCALL, fresh;
	u64 *at = hb_map__slot(calls ? names->functions : names->marks, id, &fresh);
	u32 rank;

	if (at && !fresh)
		return (u32)*at;
	rank = calls ? rank_of(name, step_functions, N_FUNCTIONS) : rank_of(name, step_marks, N_MARKS);
	if (at)
		*at = rank;
	return rank;
}

/* The rank of a call's or annotation's name; that of the list's end when it is no step. */
static u32 rank_at(const struct hb_timeline *tl, const struct hb_step_names *names, u32 thread,
		   enum hb_tl_kind kind, u32 i)
{
	struct hb_window *w = hb_timeline__window(tl);
	const struct hb_tl_pycall *c;
	const struct hb_tl_op *o;
	const struct hb_loc *l;
	u32 n;

	if (kind == HB_TL_OP) {
		o = &hb_timeline__ops(tl, thread, &n)[i];
		return o->kind == HB_OPKIND_ANNOTATION
			   ? rank_cached(names, kind, o->name, hb_window__string(w, o->name))
			   : N_MARKS;
	}
	c = &hb_timeline__pycalls(tl, thread, &n)[i];
	l = hb_window__loc(w, c->func);
	return (c->flags & HB_PYCALL_TIMED) && l
		   ? rank_cached(names, kind, c->func, hb_window__string(w, l->func))
		   : N_FUNCTIONS;
}

struct spans { /* which spans are steps */
	u32 thread, rank, count;
};

static void best_spans(const struct hb_timeline *tl, const struct hb_step_names *names, u32 thread,
		       enum hb_tl_kind kind, struct spans *best)
{
	u32 count[N_FUNCTIONS + N_MARKS] = {0}, n, limit = kind == HB_TL_PYCALL ? N_FUNCTIONS : N_MARKS;
	u32 least = kind == HB_TL_PYCALL ? 2 : 1; /* one annotation says what it is */

	if (kind == HB_TL_PYCALL)
		hb_timeline__pycalls(tl, thread, &n);
	else
		hb_timeline__ops(tl, thread, &n);
	for (u32 i = 0; i < n; i++)
		count[rank_at(tl, names, thread, kind, i)]++;
	for (u32 r = 0; r < limit; r++) {
		u32 c = count[r];

		if (c >= least && (r < best->rank || (r == best->rank && c > best->count)))
			*best = (struct spans){.thread = thread, .rank = r, .count = c};
	}
}

bool hb_steps__has_span(const struct hb_timeline *tl, const struct hb_step_names *names, u32 thread)
{
	struct spans s = {.thread = HB_NONE, .rank = HB_NONE};

	best_spans(tl, names, thread, HB_TL_PYCALL, &s);
	if (s.thread == HB_NONE)
		best_spans(tl, names, thread, HB_TL_OP, &s);
	return s.thread != HB_NONE;
}

/* Spans of that rank, without those inside of another of them. *found says whether there are any. */
static int from_spans(const struct hb_timeline *tl, const struct hb_step_names *names, struct hb_steps_row *r,
		      enum hb_tl_kind kind, bool *found)
{
	struct spans best = {.thread = HB_NONE, .rank = HB_NONE};
	u64 done = 0;
	u32 n;
	int err = 0;

	for (u32 t = hb_timeline__of_pid(tl, r->pub.pid, HB_NONE); t != HB_NONE;
	     t = hb_timeline__of_pid(tl, r->pub.pid, t))
		best_spans(tl, names, t, kind, &best);
	*found = best.thread != HB_NONE;
	if (!*found)
		return 0;
	r->pub.thread = best.thread;
	r->pub.source = kind == HB_TL_PYCALL ? HB_STEPS_PYCALL : HB_STEPS_MARK;
	hb_timeline__ops(tl, best.thread, &n);
	if (kind == HB_TL_PYCALL)
		hb_timeline__pycalls(tl, best.thread, &n);
	for (u32 i = 0; i < n && !err; i++) {
		const struct hb_span *s = hb_timeline__span(tl, best.thread, kind, i);

		if (s->begin < done || rank_at(tl, names, best.thread, kind, i) != best.rank)
			continue;
		if (kind == HB_TL_PYCALL)
			r->pub.loc = hb_timeline__pycalls(tl, best.thread, &n)[i].func;
		err = hb_steps__add(r, s->begin, s->end);
		done = s->end;
	}
	return err;
}

/* ---- recurring calls ---- */

struct site { /* calls of one kind from one place */
	u32 n;
	u32 first, last;  /* calls */
	u32 pauses, have; /* where those of each begin, and how many are there already */
};

struct sites {
	struct site *site;
	u32 n, cap;
	struct hb_map *by_key;
	u64 *pause; /* of all calls, by site */
};

/* Classes of calls that may recur once a step, the best sign first. */
enum { READBACK, SYNC, GRAPH, CLASSES };
static const struct {
	u8 op;	   /* enum hb_op */
	u8 source; /* enum hb_step_source */
} classes[CLASSES] = {[READBACK] = {HB_OP_COPY, HB_STEPS_READBACK},
		      [SYNC] = {HB_OP_SYNC, HB_STEPS_SYNC},
		      [GRAPH] = {HB_OP_GRAPH, HB_STEPS_GRAPH}};

/* Of an outermost call; CLASSES: none of them. */
static u32 class_of(const struct hb_tl_call *c)
{
	if (c->op == HB_OP_COPY)
		return c->copy == HB_COPY_DTOH && c->bytes <= READBACK_BYTES ? READBACK : CLASSES;
	return c->op == HB_OP_SYNC ? SYNC : c->op == HB_OP_GRAPH ? GRAPH : CLASSES;
}

static u64 site_key(const struct hb_timeline *tl, const struct hb_tl_call *c)
{
	const struct hb_tl_callee *callee = hb_timeline__callee(tl, c);
	u64 k = hb_hash64((u64)callee->probe << 32 | c->at.stack);

	/* Without a stack, calls on different streams are different places. */
	return c->at.stack ? k : hb_hash64(k ^ callee->stream);
}

struct mark {	   /* one call as a boundary */
	u64 at;	   /* when the thread had what it waited for */
	u64 pause; /* from there to the next call that gives work */
	u64 site;  /* its key, then its number */
	u32 call;
	u32 works; /* calls before it that give work */
};

struct marks { /* of one class, from the last to the first */
	struct mark *v;
	u32 n;
};

/* Room for as many as there are calls that may be such: what is not used is no memory. */
static int make_room(const struct hb_tl_thread *t, struct marks *out)
{
	for (u32 k = 0; k < CLASSES; k++) {
		out[k].v = malloc((t->by_op[classes[k].op] + 1ULL) * sizeof(*out[k].v));
		if (!out[k].v)
			return -ENOMEM;
	}
	return 0;
}

/* A thread has what it read back at the end of the copy, or of the wait that follows before anything else is
 * launched. A graph launch is a boundary by itself. From the last call to the first, so that what follows is
 * known. */
static void mark_all(const struct hb_timeline *tl, const struct hb_tl_call *c, u32 n, struct marks *out)
{
	u64 work = 0, waited = 0;
	u32 works = 0;

	for (u32 i = n; i-- > 0;) {
		bool is_work = hb_call__is_work(&c[i]);
		u32 class = class_of(&c[i]);
		u64 at = c[i].at.end;

		if (c[i].flags & HB_AFLAG_INNER || c[i].at.outer != HB_NONE)
			continue;
		works += is_work;
		if (class == SYNC)
			waited = at;
		else if (class == READBACK && waited && !hb_call__waited(&c[i]))
			at = waited;
		else if (class == GRAPH)
			at = c[i].at.begin;
		if (class < CLASSES)
			out[class].v[out[class].n++] = (struct mark){.at = at,
								     .pause = work > at ? work - at : 0,
								     .site = site_key(tl, &c[i]),
								     .call = i,
								     .works = works}; /* from it on */
		if (is_work && c[i].copy != HB_COPY_DTOH) {
			work = c[i].at.begin;
			waited = 0;
		}
	}
	for (u32 k = 0; k < CLASSES; k++)
		for (u32 i = 0; i < out[k].n; i++)
			out[k].v[i].works = works - out[k].v[i].works;
}

static int new_site(struct sites *s, u32 call)
{
	if (s->n == s->cap) {
		u32 cap = s->cap * 2 + 16;
		struct site *p = realloc(s->site, cap * sizeof(*p));

		if (!p)
			return -ENOMEM;
		s->site = p;
		s->cap = cap;
	}
	s->site[s->n++] = (struct site){.first = call};
	return 0;
}

/* Numbers the sites, in order of time, and the calls by them. */
static int number_sites(struct sites *s, const struct marks *m)
{
	for (u32 i = m->n; i-- > 0;) {
		struct mark *k = &m->v[i];
		bool fresh;
		u64 *at = hb_map__slot(s->by_key, k->site, &fresh);

		if (at && fresh)
			*at = s->n;
		if (!at || (*at >= s->n && new_site(s, k->call)))
			return -ENOMEM;
		k->site = *at;
		s->site[*at].last = k->call;
		s->site[*at].n++;
	}
	return 0;
}

static int collect(struct sites *s, const struct marks *m)
{
	u32 pauses = 0;
	int err;

	s->by_key = hb_map__new();
	s->pause = malloc((m->n + 1ULL) * sizeof(*s->pause));
	err = s->by_key && s->pause ? number_sites(s, m) : -ENOMEM;
	for (u32 i = 0; i < s->n && !err; i++) {
		s->site[i].pauses = pauses;
		pauses += s->site[i].n;
	}
	for (u32 i = m->n; i-- > 0 && !err;) {
		struct site *x = &s->site[m->v[i].site];

		s->pause[x->pauses + x->have++] = m->v[i].pause;
	}
	return err;
}

/* A step ends where the thread has its tokens and goes to schedule: the place with most time, by its median,
 * before new work is given. Places in loops inside of a step go on at once. */
static const struct site *choose(const struct sites *s, const struct hb_tl_call *c, u64 span)
{
	const struct site *best = NULL;
	u64 most = 0;

	for (u32 i = 0; i < s->n; i++) {
		const struct site *x = &s->site[i];
		u64 *pause = &s->pause[x->pauses], median, score;

		if (x->n < SITE_MIN || c[x->last].at.begin - c[x->first].at.begin < span / 4)
			continue;
		hb_order__values(pause, x->n);
		median = pause[x->n / 2];
		score = (median ? median : 1) * x->n;
		if (score > most) {
			most = score;
			best = x;
		}
	}
	return best;
}

/* From one boundary to the next, where work was given in between: by a graph launch that is a boundary, or
 * by calls of another place. */
static int cut(struct hb_steps_row *r, const struct hb_tl_call *c, const struct marks *m, u32 site)
{
	bool work = false;
	u64 from = 0;
	u32 own = 0, seen = 0; /* calls that give work before here: of this place, of others */
	int err = 0;

	for (u32 i = m->n; i-- > 0 && !err;) {
		const struct mark *k = &m->v[i];

		if (k->site != site)
			continue;
		work |= k->works - own > seen;
		seen = k->works - own;
		if (work && from)
			err = hb_steps__add(r, from, k->at);
		if (work || !from) {
			from = k->at;
			work = false;
		}
		if (hb_call__is_work(&c[k->call])) {
			own++;
			work |= c[k->call].op == HB_OP_GRAPH;
		}
	}
	return err;
}

static int from_marks(const struct hb_timeline *tl, struct hb_steps_row *r, const struct marks *m, u8 source)
{
	u32 n;
	const struct hb_tl_call *c = hb_timeline__calls(tl, r->pub.dispatch, &n);
	struct sites s = {0};
	const struct site *best = NULL;
	int err = m->n ? collect(&s, m) : 0;

	if (!err)
		best = choose(&s, c, n ? c[n - 1].at.end - c[0].at.begin : 0);
	if (best) {
		err = cut(r, c, m, (u32)(best - s.site));
		r->pub.source = source;
		r->pub.site_probe = hb_timeline__callee(tl, &c[best->first])->probe;
		r->pub.site_stack = c[best->first].at.stack;
	}
	free(s.site);
	free(s.pause);
	hb_map__free(s.by_key);
	return err;
}

static int from_calls(const struct hb_timeline *tl, struct hb_steps_row *r)
{
	struct marks m[CLASSES] = {{0}};
	u32 n;
	const struct hb_tl_call *c = hb_timeline__calls(tl, r->pub.dispatch, &n);
	int err = make_room(hb_timeline__thread(tl, r->pub.dispatch), m);

	if (!err)
		mark_all(tl, c, n, m);
	r->pub.thread = r->pub.dispatch;
	for (u32 i = 0; !err && !r->pub.n && i < CLASSES; i++)
		err = from_marks(tl, r, &m[i], classes[i].source);
	for (u32 i = 0; i < CLASSES; i++)
		free(m[i].v);
	return err;
}

int hb_steps__find(const struct hb_timeline *tl, const struct hb_step_names *names, struct hb_steps_row *r)
{
	bool found = false;
	int err = from_spans(tl, names, r, HB_TL_PYCALL, &found);

	if (!err && !found)
		err = from_spans(tl, names, r, HB_TL_OP, &found);
	if (!err && !r->pub.n && r->pub.dispatch != HB_NONE)
		err = from_calls(tl, r);
	if (r->pub.n)
		return err;
	r->pub.source = HB_STEPS_NONE;
	snprintf(
	    r->pub.why, sizeof(r->pub.why),
	    "no small copy to the host, wait or graph launch recurs %d times or more from one place of the "
	    "thread that launches",
	    SITE_MIN);
	return err;
}
