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

/* Functions that are one iteration, the whole engine's before a part of it: by qualified name, as from Python
 * 3.11 on; where names are plain, as before and in profilers' traces, by file and name. */
static const struct step_function {
	const char *name, *file, *plain; /* globs; file NULL: the plain name alone says nothing */
	bool part;			 /* of an iteration, that goes on to the next call */
} step_functions[] = {
    {"EngineCore.step*", "*engine/core.py", "step*", false},
    {"EngineCoreProc._process_engine_step", "*engine/core.py", "_process_engine_step", false},
    {"LLMEngine.step", "*llm_engine.py", "step", false},
    {"Scheduler.event_loop_step", "*scheduler.py", "event_loop_step", false},
    {"PyExecutor._executor_loop_step", "*py_executor.py", "_executor_loop_step", false},
    {"Engine.one_step", NULL, NULL, false},
    {"one_step", NULL, NULL, false},
    {"engine_step", NULL, NULL, false},
    {"Scheduler.run_batch", "*scheduler.py", "run_batch", true},
    {"PyExecutor._forward_step", "*py_executor.py", "_forward_step", true},
    {"*Worker*.execute_model", "*worker*.py", "execute_model", true},
    {"*ModelRunner.execute_model", "*model_runner*.py", "execute_model", true},
    {"ModelRunner.forward", "*model_runner.py", "forward", true},
    {"execute_model", NULL, NULL, true},
};
#define N_FUNCTIONS (sizeof(step_functions) / sizeof(*step_functions))

static const struct step_mark {
	const char *name;
	bool part;
} step_marks[] = {
    {"ProfilerStep#*", false}, {"execute_*", true}, {"step[[]*", false}, {"*engine_step*", false}};
#define N_MARKS (sizeof(step_marks) / sizeof(*step_marks))

static u32 rank_of_mark(const char *name)
{
	u32 i = 0;

	while (i < N_MARKS && !hb_text__glob(step_marks[i].name, name))
		i++;
	return i;
}

static u32 rank_of_function(const char *name, const char *file)
{
	bool plain = !strchr(name, '.');
	u32 i = 0;

	for (; i < N_FUNCTIONS; i++) {
		const struct step_function *f = &step_functions[i];

		if (hb_text__glob(f->name, name) ||
		    (plain && f->file && hb_text__glob(f->plain, name) && hb_text__glob(f->file, file)))
			break;
	}
	return i;
}

/* Names recur: each is compared with the lists once. */
static u32 mark_rank(const struct hb_step_names *names, const struct hb_window *w, u32 id)
{
	bool fresh;
	u64 *at = hb_map__slot(names->marks, id, &fresh);
	u32 rank;

	if (at && !fresh)
		return (u32)*at;
	rank = rank_of_mark(hb_window__string(w, id));
	if (at)
		*at = rank;
	return rank;
}

static u32 function_rank(const struct hb_step_names *names, const struct hb_window *w, u32 id)
{
	const struct hb_loc *l = hb_window__loc(w, id);
	bool fresh;
	u64 *at = l ? hb_map__slot(names->functions, id, &fresh) : NULL;
	u32 rank;

	if (!l)
		return N_FUNCTIONS;
	if (at && !fresh)
		return (u32)*at;
	rank = rank_of_function(hb_window__string(w, l->func), hb_window__string(w, l->file));
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
	u32 n;

	if (kind == HB_TL_OP) {
		o = &hb_timeline__ops(tl, thread, &n)[i];
		return o->kind == HB_OPKIND_ANNOTATION ? mark_rank(names, w, o->name) : N_MARKS;
	}
	c = &hb_timeline__pycalls(tl, thread, &n)[i];
	return c->flags & HB_PYCALL_TIMED ? function_rank(names, w, c->func) : N_FUNCTIONS;
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

/* Does the thread wait for the device between its steps rather than in them? Then it gives work in a step and
 * has the results in the next one. */
static bool waits_between(const struct hb_timeline *tl, const struct hb_steps_row *r)
{
	const struct hb_step *st = r->step;
	u32 n, k = 0, last = HB_NONE, between = 0;
	const struct hb_tl_call *c = hb_timeline__calls(tl, r->pub.thread, &n);
	u64 in = 0, out = 0;

	for (u32 i = hb_timeline__from(tl, r->pub.thread, HB_TL_CALL, st[0].begin);
	     i < n && c[i].at.begin < st[r->pub.n - 1].begin; i++) {
		if (!hb_call__waited(&c[i]))
			continue;
		while (st[k + 1].begin <= c[i].at.begin)
			k++;
		if (c[i].at.begin < st[k].end) {
			in += c[i].at.end - c[i].at.begin;
			continue;
		}
		out += c[i].at.end - c[i].at.begin;
		between += k != last;
		last = k;
	}
	return out > in && between >= r->pub.n / 2;
}

/* Then, and where the spans are a part of an iteration anyway, one goes from the begin of a span to the begin
 * of the next; how long the last one was is not seen. */
static void until_next(const struct hb_timeline *tl, struct hb_steps_row *r, bool part)
{
	if (r->pub.n < 3 || r->pub.dispatch != r->pub.thread || !(part || waits_between(tl, r)))
		return;
	r->pub.source = r->pub.source == HB_STEPS_PYCALL ? HB_STEPS_PYCALLS : HB_STEPS_MARKS;
	for (u32 i = 0; i + 1 < r->pub.n; i++)
		r->step[i].end = r->step[i + 1].begin;
	r->pub.n--;
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

		/* Times that a profiler rounds may overlap. */
		if (s->end <= done || rank_at(tl, names, best.thread, kind, i) != best.rank)
			continue;
		if (kind == HB_TL_PYCALL)
			r->pub.loc = hb_timeline__pycalls(tl, best.thread, &n)[i].func;
		err = hb_steps__add(r, s->begin > done ? s->begin : done, s->end);
		done = s->end;
	}
	if (!err)
		until_next(tl, r,
			   kind == HB_TL_PYCALL ? step_functions[best.rank].part
						: step_marks[best.rank].part);
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
		return c->copy == HB_COPY_DTOH && hb_call__sized(c) && c->bytes <= READBACK_BYTES ? READBACK
												  : CLASSES;
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

/* Is the call after a copy a wait from the same place? */
static bool same_code(const struct hb_tl_call *c, u32 copy, u32 next)
{
	return next != HB_NONE && c[next].op == HB_OP_SYNC && c[next].at.stack == c[copy].at.stack;
}

/* A thread has what it read back at the end of the copy, or of the wait that follows before anything else is
 * launched: of one that waited itself, the wait that its own code makes right after it. A graph launch is a
 * boundary by itself. From the last call to the first, so that what follows is known. */
static void mark_all(const struct hb_timeline *tl, const struct hb_tl_call *c, u32 n, struct marks *out)
{
	u64 work = 0, waited = 0;
	u32 works = 0, next = HB_NONE;

	for (u32 i = n; i-- > 0;) {
		bool is_work = hb_call__is_work(&c[i]);
		u32 class = class_of(&c[i]);
		u64 at = c[i].at.end;

		if (c[i].flags & HB_AFLAG_INNER || c[i].at.outer != HB_NONE)
			continue;
		works += is_work;
		if (class == SYNC)
			waited = at;
		else if (class == READBACK && waited && (!hb_call__waited(&c[i]) || same_code(c, i, next)))
			at = waited;
		else if (class == GRAPH)
			at = c[i].at.begin;
		if (class < CLASSES)
			out[class].v[out[class].n++] = (struct mark){.at = at,
								     .pause = work > at ? work - at : 0,
								     .site = site_key(tl, &c[i]),
								     .call = i,
								     .works = works}; /* from it on */
		next = i;
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
