/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The stretch that is asked for, what the host's threads did in it, and how that hangs together. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/model/longest_private.h"
#include "analysis/model/order.h"

/* ---- the stretch ---- */

struct found {
	u64 begin, end;
	u32 pid, name;
};

static int cmp_found(const void *a, const void *b)
{
	const struct found *x = a, *y = b;

	if (x->begin != y->begin)
		return x->begin < y->begin ? -1 : 1;
	return x->end != y->end ? (x->end > y->end ? -1 : 1) : 0;
}

/* Spans of all threads whose name contains the text, by begin. */
static int find_named(const struct hb_longest *l, const char *text, struct found **out, u32 *n_out)
{
	const struct hb_window *w = hb_timeline__window(l->tl);
	struct found *f = NULL;
	u32 n = 0, cap = 0, known = 0;
	bool fits = false;

	for (u32 t = 0; t < hb_timeline__threads(l->tl); t++) {
		u32 k;
		const struct hb_tl_op *op = hb_timeline__ops(l->tl, t, &k);

		for (u32 i = 0; i < k; i++) {
			if (op[i].name != known || !known)
				fits = strstr(hb_window__string(w, op[i].name), text) != NULL;
			known = op[i].name;
			if (!fits)
				continue;
			if (n == cap) {
				struct found *p = realloc(f, (cap = 2 * cap + 16) * sizeof(*f));

				if (!p) {
					free(f);
					return -ENOMEM;
				}
				f = p;
			}
			f[n++] = (struct found){op[i].at.begin, op[i].at.end,
						hb_timeline__thread(l->tl, t)->pid, op[i].name};
		}
	}
	if (n)
		qsort(f, n, sizeof(*f), cmp_found);
	*out = f;
	*n_out = n;
	return 0;
}

static int no_stretch(struct hb_error *e, const struct hb_longest_opts *o, u32 n, const char *what)
{
	if (!n)
		return hb_error__set(
		    e, HB_EXIT_FAILED, -ENOENT,
		    "no operator or annotation of this window has \"%s\" in its name, so there "
		    "is no stretch to find the critical path of; without a name it is that of "
		    "the whole window",
		    o->name);
	return hb_error__set(e, HB_EXIT_FAILED, -ENOENT,
			     "this window has %u %s, numbered from 0, and no number %u: take a smaller one",
			     n, what, o->instance);
}

static int find_step(struct hb_longest *l, const struct hb_longest_opts *o, struct hb_error *e)
{
	const struct hb_series *s = NULL;

	for (u32 i = 0; i < hb_steps__series(l->steps) && (!s || !s->n); i++)
		s = hb_steps__at(l->steps, i);
	if (!s || o->instance >= s->n)
		return no_stretch(e, o, s ? s->n : 0, "engine steps");
	l->sum.step = true;
	l->sum.pid = s->pid;
	l->sum.begin = s->step[o->instance].begin;
	l->sum.end = s->step[o->instance].end;
	return 0;
}

/* All of the window: of the process that gave its devices most work; without any, made most calls. */
static void take_all(struct hb_longest *l)
{
	u64 most = 0;

	l->sum.begin = hb_timeline__start(l->tl);
	l->sum.end = hb_timeline__end(l->tl);
	for (u32 i = 0; l->d && i < hb_devices__count(l->d); i++) {
		const struct hb_device *v = hb_devices__at(l->d, i);

		if (v->linked > most) {
			most = v->linked;
			l->sum.pid = v->pid;
		}
	}
	for (u32 t = 0, best = 0; !most && t < hb_timeline__threads(l->tl); t++) {
		u32 calls, ops;

		hb_timeline__calls(l->tl, t, &calls);
		hb_timeline__ops(l->tl, t, &ops);
		if (calls + ops > best || !l->sum.pid) {
			best = calls + ops;
			l->sum.pid = hb_timeline__thread(l->tl, t)->pid;
		}
	}
}

int hb_longest__find(struct hb_longest *l, const struct hb_longest_opts *o, struct hb_error *e)
{
	struct found *f;
	u32 n;

	if (!o->name || !*o->name) {
		take_all(l);
		return 0;
	}
	if (find_named(l, o->name, &f, &n))
		return hb_error__nomem(e, "the critical path");
	if (!n && l->steps && !strcmp(o->name, "step"))
		return find_step(l, o, e);
	if (o->instance >= n) {
		free(f);
		return no_stretch(e, o, n, "spans of this name");
	}
	l->sum.pid = f[o->instance].pid;
	l->sum.of = f[o->instance].name;
	l->sum.begin = f[o->instance].begin;
	l->sum.end = f[o->instance].end;
	free(f);
	return 0;
}

/* ---- events ---- */

static struct hb_cp_event *add(struct hb_longest *l, u32 thread, const struct hb_span *at, u32 index,
			       enum hb_cp_what what)
{
	struct hb_cp_event *e;

	e = hb_longest__event(l);
	if (e) {
		e->begin = at->begin;
		e->end = at->end;
		e->thread = thread;
		e->index = index;
		e->what = (u8)what;
	}
	return e;
}

/* Spans without a length are no events: they hold no time, and have no place among what begins with them. */
static bool taken(const struct hb_longest *l, const struct hb_span *at)
{
	return hb_longest__holds(l, at->begin) && at->end > at->begin;
}

static int add_operators(struct hb_longest *l, u32 thread)
{
	u32 n;
	const struct hb_tl_op *op = hb_timeline__ops(l->tl, thread, &n);

	for (u32 i = hb_timeline__from(l->tl, thread, HB_TL_OP, l->sum.begin); i < n; i++) {
		struct hb_cp_event *e;

		if (op[i].at.begin > l->sum.end)
			break;
		if (op[i].kind != HB_OPKIND_CPU_OP || !taken(l, &op[i].at))
			continue;
		e = add(l, thread, &op[i].at, i, HB_CP_OPERATOR);
		if (!e)
			return -ENOMEM;
		e->name = op[i].name;
		l->sum.operators = true;
	}
	return 0;
}

/* A recorded window has no operators. Its engine steps stand for them, else a thread's time between two calls
 * would be nobody's. */
static int add_steps(struct hb_longest *l, u32 thread)
{
	const struct hb_series *s = l->steps ? hb_steps__of_pid(l->steps, l->sum.pid) : NULL;

	for (u32 i = 0; s && s->thread == thread && i < s->n; i++) {
		struct hb_span at = {.begin = s->step[i].begin, .end = s->step[i].end};

		if (taken(l, &at) && !add(l, thread, &at, i, HB_CP_STEP))
			return -ENOMEM;
	}
	return 0;
}

static bool is_one_of(const char *name, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(name, list[i]))
			return true;
	return false;
}

/* HTA's list of calls that share a lock; and of event queries, which are waits in a loop. */
static const char *const lockers[] = {"cudaLaunchKernel", "cudaMemcpyAsync", "cudaHostAlloc"};
static const char *const queries[] = {"cudaEventQuery", "cuEventQuery", "hipEventQuery"};
#define IS_ONE_OF(name, list) is_one_of(name, list, sizeof(list) / sizeof(*(list)))

static int add_calls(struct hb_longest *l, u32 thread)
{
	const struct hb_window *w = hb_timeline__window(l->tl);
	u32 n;
	const struct hb_tl_call *c = hb_timeline__calls(l->tl, thread, &n);

	for (u32 i = hb_timeline__from(l->tl, thread, HB_TL_CALL, l->sum.begin); i < n; i++) {
		const struct hb_probe_row *row =
		    hb_window__probe(w, hb_timeline__callee(l->tl, &c[i])->probe);
		const char *name = row ? hb_window__string(w, row->name) : "";
		struct hb_cp_event *e;

		if (c[i].at.begin > l->sum.end)
			break;
		if (!taken(l, &c[i].at))
			continue;
		e = add(l, thread, &c[i].at, i, HB_CP_CALL);
		if (!e)
			return -ENOMEM;
		e->name = row ? row->name : 0;
		e->waits = c[i].op == HB_OP_SYNC || IS_ONE_OF(name, queries) ||
			   (c[i].op == HB_OP_COPY && !strstr(name, "Async"));
		e->locks = IS_ONE_OF(name, lockers);
	}
	return 0;
}

/* What contains another first; of equal ones the operator. */
static int cmp_events(const void *a, const void *b)
{
	const struct hb_cp_event *x = a, *y = b;

	if (x->begin != y->begin)
		return x->begin < y->begin ? -1 : 1;
	if (x->end != y->end)
		return x->end > y->end ? -1 : 1;
	if (x->what != y->what)
		return x->what == HB_CP_CALL ? 1 : y->what == HB_CP_CALL ? -1 : x->what < y->what ? 1 : -1;
	return x->index < y->index ? -1 : x->index > y->index;
}

/* ---- links of one thread ---- */

struct nest { /* the way through a thread's events, outer ones around inner ones */
	struct hb_longest *l;
	u32 last, last_parent; /* node, and the event around it */
	u32 top;	       /* innermost event that is open */
};

/* Both ends are calls with the lock, and not one after the other: link_lock() links them. */
static bool share_lock(const struct hb_longest *l, u32 from, u32 to)
{
	return l->event[from / 2].locks && l->event[to / 2].locks && (!(from & 1) || (to & 1));
}

static u32 owner_of(const struct nest *s, u32 to)
{
	if (!(s->last & 1))
		return s->last / 2;
	return to & 1 ? to / 2 : s->last_parent;
}

static int step_to(struct nest *s, u32 node, bool outermost)
{
	struct hb_longest *l = s->l;
	bool weighs = !(node & 1) || !l->event[node / 2].waits;
	int err = 0;

	if (s->last != HB_NONE && !share_lock(l, s->last, node))
		err = outermost ? hb_longest__link(l, HB_LINK_ORDER, s->last, node, false, HB_NONE)
				: hb_longest__link(l, HB_LINK_SPAN, s->last, node, weighs, owner_of(s, node));
	s->last = node;
	s->last_parent = l->event[node / 2].parent;
	return err;
}

static int leave(struct nest *s)
{
	u32 e = s->top;

	s->top = s->l->event[e].parent;
	return step_to(s, HB_NODE_END(e), false);
}

static int nest_thread(struct hb_longest *l, u32 first, u32 end)
{
	struct nest s = {.l = l, .last = HB_NONE, .last_parent = HB_NONE, .top = HB_NONE};
	int err = 0;

	for (u32 i = first; i < end && !err; i++) {
		while (s.top != HB_NONE && l->event[s.top].end <= l->event[i].begin && !err)
			err = leave(&s);
		l->event[i].parent = s.top;
		err = err ? err : step_to(&s, HB_NODE_BEGIN(i), s.top == HB_NONE);
		s.top = i;
	}
	while (s.top != HB_NONE && !err)
		err = leave(&s);
	return err;
}

/* ---- the lock ---- */

/* Who returns first had the lock first. A call waits for the one before it when that returned while it was
 * in; of calls that are in together, those that began are held up by the first that returns. */
static int link_lock(struct hb_longest *l)
{
	u32 n = 0, open = 0, last = HB_NONE;
	struct hb_order *v;
	u32 *begun;
	int err;

	for (u32 i = 0; i < l->n_events; i++)
		n += l->event[i].locks;
	v = malloc((2 * (size_t)n + 1) * sizeof(*v));
	begun = malloc(((size_t)n + 1) * sizeof(*begun));
	err = v && begun ? 0 : -ENOMEM;
	n = 0;
	for (u32 i = 0; i < l->n_events && !err; i++) {
		if (!l->event[i].locks)
			continue;
		v[n++] = (struct hb_order){.key = l->event[i].begin, .item = HB_NODE_BEGIN(i)};
		v[n++] = (struct hb_order){.key = l->event[i].end, .item = HB_NODE_END(i)};
	}
	err = err ? err : hb_order__sort(v, n);
	for (u32 i = 0; i < n && !err; last = v[i++].item) {
		u32 node = v[i].item;

		if (!(node & 1)) {
			begun[open++] = node;
			continue;
		}
		while (open && !err) {
			u32 b = begun[--open];

			err = b / 2 == node / 2 ? hb_longest__link(l, HB_LINK_SPAN, b, node, true, node / 2)
						: hb_longest__link(l, HB_LINK_ORDER, b, node, false, HB_NONE);
		}
		if (!err && last != HB_NONE && (last & 1))
			err = hb_longest__link(l, HB_LINK_ORDER, last, node, false, HB_NONE);
	}
	free(begun);
	free(v);
	return err;
}

/* ---- calls by number ---- */

static int cmp_numbered(const void *a, const void *b)
{
	const struct hb_numbered *x = a, *y = b;

	if (x->correlation != y->correlation)
		return x->correlation < y->correlation ? -1 : 1;
	if (x->begin != y->begin)
		return x->begin < y->begin ? -1 : 1;
	return x->thread < y->thread ? -1 : x->thread > y->thread;
}

/* Event of each call of a thread that is one; the thread's events are those from `first` on. */
static int number_calls(struct hb_longest *l, u32 thread, u32 first)
{
	u32 n, from = hb_timeline__from(l->tl, thread, HB_TL_CALL, l->sum.begin);
	const struct hb_tl_call *c = hb_timeline__calls(l->tl, thread, &n);
	struct hb_numbered *p = realloc(l->numbered, ((size_t)l->n_numbered + n + 1) * sizeof(*p));
	u32 *event = malloc(((size_t)n + 1) * sizeof(*event));

	l->numbered = p ? p : l->numbered;
	if (!p || !event) {
		free(event);
		return -ENOMEM;
	}
	memset(event, 0xff, n * sizeof(*event));
	for (u32 i = first; i < l->n_events; i++)
		if (l->event[i].what == HB_CP_CALL && l->event[i].index >= from)
			event[l->event[i].index] = i;
	for (u32 i = 0; i < n; i++)
		if (c[i].correlation)
			l->numbered[l->n_numbered++] =
			    (struct hb_numbered){c[i].correlation, c[i].at.begin, thread, event[i]};
	free(event);
	return 0;
}

static int add_thread(struct hb_longest *l, u32 thread)
{
	u32 first = l->n_events;
	int err = add_operators(l, thread);

	err = err || hb_timeline__count(l->tl, HB_TL_OP) ? err : add_steps(l, thread);
	err = err ? err : add_calls(l, thread);
	if (!err && l->n_events > first)
		qsort(l->event + first, l->n_events - first, sizeof(*l->event), cmp_events);
	return err ? err : number_calls(l, thread, first);
}

int hb_longest__host(struct hb_longest *l)
{
	int err = 0;
	u32 first = 0;

	for (u32 t = hb_timeline__of_pid(l->tl, l->sum.pid, HB_NONE); t != HB_NONE && !err;
	     t = hb_timeline__of_pid(l->tl, l->sum.pid, t))
		err = add_thread(l, t);
	if (!err && l->n_numbered)
		qsort(l->numbered, l->n_numbered, sizeof(*l->numbered), cmp_numbered);
	err = err ? err : link_lock(l);
	while (first < l->n_events && !err) { /* a thread's events lie together */
		u32 end = first;

		while (end < l->n_events && l->event[end].thread == l->event[first].thread)
			end++;
		err = nest_thread(l, first, end);
		first = end;
	}
	return err;
}
