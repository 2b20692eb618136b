/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analysis/model/collective_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LOOK	    HB_COLL_LOOK
#define SHIFT	    16 /* calls that a rank may have made before the window's begin, more than another */
#define ENOUGH	    4  /* calls that must agree to make a group */
#define CLOCKS_MOST 100000000LL /* ns that clocks of two hosts may be apart: more is another run */

struct group {
	struct hb_coll_group pub; /* first */
	u32 *line;		  /* of each rank */
	u32 *from;		  /* its first item that is matched */
	s64 *ahead;		  /* of kernels, [collective * ranks + rank]: see hb_coll__ahead() */
};

struct hb_collectives {
	const struct hb_timeline *tl;
	struct hb_coll_line *line;
	u32 n_lines, cap_lines;
	struct group *group;
	u32 n_groups;
};

/* ---- lines ---- */

struct hb_coll_line *hb_coll_line(struct hb_collectives *c, const struct hb_coll_rank *rank,
				  enum hb_coll_source source)
{
	struct hb_coll_line *more;

	for (u32 i = 0; i < c->n_lines; i++) {
		const struct hb_coll_rank *x = &c->line[i].rank;

		if (x->pid == rank->pid && x->comm == rank->comm && x->device == rank->device &&
		    c->line[i].source == source)
			return &c->line[i];
	}
	if (c->n_lines == c->cap_lines) {
		u32 cap = c->cap_lines ? 2 * c->cap_lines : 16;

		more = reallocarray(c->line, cap, sizeof(*more));
		if (!more)
			return NULL;
		c->line = more;
		c->cap_lines = cap;
	}
	c->line[c->n_lines] = (struct hb_coll_line){.rank = *rank, .source = source};
	return &c->line[c->n_lines++];
}

int hb_coll_line__add(struct hb_coll_line *l, const struct hb_coll_item *i)
{
	if (l->n == l->cap) {
		u32 cap = l->cap ? 2 * l->cap : 256;
		struct hb_coll_item *more = reallocarray(l->item, cap, sizeof(*more));

		if (!more)
			return -ENOMEM;
		l->item = more;
		l->cap = cap;
	}
	l->item[l->n++] = *i;
	return 0;
}

static u32 name_of(const struct hb_collectives *c, u32 probe)
{
	const struct hb_probe_row *r = hb_window__probe(hb_timeline__window(c->tl), probe);

	return r ? r->name : 0;
}

/* Replays of graphs go together only where their processes call collectives beside them: see may_pair(). */
static bool calls_some(const struct hb_timeline *tl, u32 pid)
{
	u32 t = hb_timeline__of_pid(tl, pid, HB_NONE);

	while (t != HB_NONE && !hb_timeline__thread(tl, t)->collectives)
		t = hb_timeline__of_pid(tl, pid, t);
	return t != HB_NONE;
}

static int take_call(struct hb_collectives *c, u32 thread, u32 at, const struct hb_tl_call *v)
{
	const struct hb_tl_callee *callee = hb_timeline__callee(c->tl, v);
	bool coll = v->op == HB_OP_COLLECTIVE;
	struct hb_coll_rank rank = {.pid = hb_timeline__thread(c->tl, thread)->pid,
				    .thread = thread,
				    .comm = coll ? callee->handle : 0};
	struct hb_coll_item x = {.begin = v->at.begin,
				 .end = v->at.end,
				 .elements = coll ? v->bytes : 0,
				 .kind = coll ? callee->kind : 0,
				 .name = coll ? name_of(c, callee->probe) : 0,
				 .where = thread,
				 .at = at};
	struct hb_coll_line *l = hb_coll_line(c, &rank, coll ? HB_COLL_CALLS : HB_COLL_GRAPH);

	return l ? hb_coll_line__add(l, &x) : -ENOMEM;
}

static int take_thread(struct hb_collectives *c, u32 thread)
{
	const struct hb_tl_thread *t = hb_timeline__thread(c->tl, thread);
	bool graphs = t->by_op[HB_OP_GRAPH] && calls_some(c->tl, t->pid);
	u32 n;
	const struct hb_tl_call *v = hb_timeline__calls(c->tl, thread, &n);
	int err = 0;

	if (!graphs && !t->collectives)
		return 0;
	for (u32 i = 0; i < n && !err; i++)
		if (!(v[i].flags & HB_AFLAG_INNER) &&
		    (v[i].op == HB_OP_COLLECTIVE ? hb_timeline__callee(c->tl, &v[i])->handle != 0
						 : graphs && v[i].op == HB_OP_GRAPH))
			err = take_call(c, thread, i, &v[i]);
	return err;
}

static int cmp_item(const void *a, const void *b)
{
	const struct hb_coll_item *x = a, *y = b;

	return x->begin < y->begin ? -1 : x->begin > y->begin;
}

/* Mostly they come so. */
static void sort_line(struct hb_coll_line *l)
{
	u32 i = 1;

	while (i < l->n && l->item[i].begin >= l->item[i - 1].begin)
		i++;
	if (i < l->n)
		qsort(l->item, l->n, sizeof(*l->item), cmp_item);
}

/* ---- fitting two lines ---- */

/* Graphs are told apart by nothing: their handles differ from process to process. What is not told may be
 * anything. */
static bool same(const struct hb_coll_item *x, const struct hb_coll_item *y)
{
	return x->name == y->name && x->elements == y->elements && x->kind == y->kind &&
	       (!x->seq || !y->seq || x->seq == y->seq);
}

static u64 apart(const struct hb_coll_line *a, u32 i, const struct hb_coll_line *b, u32 k)
{
	u64 x = a->item[i].begin, y = b->item[k].begin;

	return x > y ? x - y : y - x;
}

/* Calls that agree when a begins at i and b at k, LOOK of them at most, and how far apart they are together.
 */
static u32 agree(const struct hb_coll_line *a, u32 i, const struct hb_coll_line *b, u32 k, u64 *distance)
{
	u32 n = 0;

	*distance = 0;
	for (; n < LOOK && i + n < a->n && k + n < b->n; n++) {
		if (!same(&a->item[i + n], &b->item[k + n]))
			return 0;
		*distance += apart(a, i + n, b, k + n);
	}
	return n;
}

/* Kernels of one collective are in progress together; nine in ten, for records may lack some. 1: so it is.
 * -ENOMEM. */
static int beside(const struct hb_coll_line *a, const struct hb_coll_line *b, s32 shift)
{
	const struct hb_coll_item *x = &a->item[shift > 0 ? shift : 0], *y = &b->item[shift < 0 ? -shift : 0];
	u32 left = (u32)(a->item + a->n - x), n = (u32)(b->item + b->n - y), together = 0;
	s64 ahead[LOOK];

	n = left < n ? left : n;
	n = n < LOOK ? n : LOOK;
	if (llabs(hb_coll__offset(x, y, n)) > CLOCKS_MOST)
		return 0;
	if (hb_coll__ahead_each(x, y, n, ahead, 1))
		return -ENOMEM;
	for (u32 i = 0; i < n; i++)
		together += y[i].begin - (u64)ahead[i] < x[i].end && x[i].begin < y[i].end - (u64)ahead[i];
	return together * 10 >= n * 9;
}

/* Calls: the shift with the nearest calls, on one clock. */
static bool fit_calls(const struct hb_coll_line *a, const struct hb_coll_line *b, s32 *shift)
{
	u64 best = UINT64_MAX, distance, span;
	u32 most = 0;

	for (s32 d = -SHIFT; d <= SHIFT; d++) {
		u32 n = agree(a, d > 0 ? (u32)d : 0, b, d < 0 ? (u32)-d : 0, &distance);

		if (n < ENOUGH || n + SHIFT < most || distance / n >= best)
			continue;
		most = n;
		best = distance / n;
		*shift = d;
	}
	if (best == UINT64_MAX)
		return false;
	/* Beside each other: nearer, on average, than the whole of what was looked at is long. */
	span = a->item[most - 1 < a->n ? most - 1 : a->n - 1].begin - a->item[0].begin;
	return best <= span;
}

struct trial { /* of a shift */
	u64 spread;
	s64 offset;
	u32 n; /* that have a partner then */
	bool fits;
};

static struct trial trial_of(const struct hb_coll_line *a, const struct hb_coll_line *b, s32 d)
{
	u32 i = d > 0 ? (u32)d : 0, k = d < 0 ? (u32)-d : 0, n;
	struct trial t = {0};
	u64 distance;

	n = agree(a, i, b, k, &distance);
	if (n < ENOUGH)
		return t;
	t.fits = true;
	t.spread = hb_coll__spread(&a->item[i], &b->item[k], n, &t.offset);
	t.n = a->n - i < b->n - k ? a->n - i : b->n - k;
	return t;
}

/* Differences up to here are noise: of two shifts neither is the better one for it. */
static bool as_good(const struct trial *t, u64 least)
{
	return t->fits && t->spread <= least + least / 4 + 1000;
}

/*
 * Kernels: clocks may differ, so that nearness says little. All ranks leave a collective together: with the
 * right shift the ends are equally far apart. Where collectives recur so evenly that many shifts look right,
 * the one that leaves fewest alone, and of those the one with the nearest clocks.
 */
static int fit_kernels(const struct hb_coll_line *a, const struct hb_coll_line *b, s32 *shift)
{
	struct trial t[2 * SHIFT + 1], *best = NULL;
	u64 least = UINT64_MAX;

	for (s32 d = -SHIFT; d <= SHIFT; d++) {
		t[d + SHIFT] = trial_of(a, b, d);
		if (t[d + SHIFT].fits && t[d + SHIFT].spread < least)
			least = t[d + SHIFT].spread;
	}
	for (s32 d = -SHIFT; d <= SHIFT; d++) {
		struct trial *x = &t[d + SHIFT];

		if (!as_good(x, least) ||
		    (best &&
		     (x->n < best->n || (x->n == best->n && llabs(x->offset) >= llabs(best->offset)))))
			continue;
		best = x;
		*shift = d;
	}
	return best ? beside(a, b, *shift) : 0;
}

/* Where b begins beside a: items of a and b to skip. 1: they go together, 0: they do not; -ENOMEM. */
static int fit(const struct hb_coll_line *a, const struct hb_coll_line *b, s32 *shift)
{
	return a->source == HB_COLL_DEVICE ? fit_kernels(a, b, shift) : fit_calls(a, b, shift);
}

/* Processes that replay graphs and never call a collective may have nothing to do with one another. */
static bool may_pair(const struct hb_collectives *c, const struct hb_coll_line *a,
		     const struct hb_coll_line *b)
{
	u32 more = a->n > b->n ? a->n - b->n : b->n - a->n;
	bool coll[2] = {false, false};

	if (b->taken || a->source != b->source)
		return false;
	if (a->source == HB_COLL_DEVICE)
		return a->rank.device != b->rank.device && a->named == b->named &&
		       (!a->named || a->rank.comm == b->rank.comm) && a->world == b->world;
	if (a->rank.pid == b->rank.pid)
		return false;
	if (a->source == HB_COLL_CALLS)
		return true;
	for (u32 i = 0; i < c->n_lines; i++) {
		coll[0] |= c->line[i].source == HB_COLL_CALLS && c->line[i].rank.pid == a->rank.pid;
		coll[1] |= c->line[i].source == HB_COLL_CALLS && c->line[i].rank.pid == b->rank.pid;
	}
	return coll[0] && coll[1] && more <= 2;
}

/* ---- groups ---- */

static void free_group(struct group *g)
{
	free((void *)g->pub.rank);
	free((void *)g->pub.coll);
	free(g->line);
	free(g->from);
	free(g->ahead);
}

static const struct hb_coll_item *item_of(const struct hb_collectives *c, const struct group *g, u32 i, u32 r)
{
	return &c->line[g->line[r]].item[g->from[r] + i];
}

static struct hb_coll one(const struct hb_collectives *c, const struct group *g, u32 i)
{
	const struct hb_coll_item *k = item_of(c, g, i, 0);
	struct hb_coll x = {.first = UINT64_MAX,
			    .shortest = UINT64_MAX,
			    .name = k->name,
			    .elements = k->elements,
			    .message = k->message,
			    .formula = k->formula,
			    .dtype = k->kind};

	for (u32 r = 0; r < g->pub.n_ranks; r++) {
		const struct hb_coll_item *o = item_of(c, g, i, r);
		u64 begin = hb_coll__moment(o->begin, hb_coll__ahead(c, &g->pub, i, r));

		x.first = begin < x.first ? begin : x.first;
		x.shortest = o->end - o->begin < x.shortest ? o->end - o->begin : x.shortest;
		if (begin >= x.last) {
			x.last = begin;
			x.late = r;
		}
	}
	return x;
}

/* By how much the clocks of kernels differ. */
static int set_offsets(const struct hb_collectives *c, struct group *g, u32 n)
{
	struct hb_coll_rank *rank = (struct hb_coll_rank *)g->pub.rank;
	u32 ranks = g->pub.n_ranks;
	int err = 0;

	if (g->pub.source != HB_COLL_DEVICE || !n)
		return 0;
	g->ahead = calloc((size_t)n * ranks, sizeof(*g->ahead));
	if (!g->ahead)
		return -ENOMEM;
	for (u32 r = 1; r < ranks && !err; r++) {
		const struct hb_coll_item *a = item_of(c, g, 0, 0), *b = item_of(c, g, 0, r);

		rank[r].offset = hb_coll__offset(a, b, n);
		err = hb_coll__ahead_each(a, b, n, &g->ahead[r], ranks);
	}
	return err;
}

/* Matches as far as all ranks agree. */
static int match(const struct hb_collectives *c, struct group *g)
{
	u32 n = UINT32_MAX, longest = 0;
	struct hb_coll *v;

	for (u32 r = 0; r < g->pub.n_ranks; r++) {
		const struct hb_coll_line *l = &c->line[g->line[r]];

		n = l->n - g->from[r] < n ? l->n - g->from[r] : n;
		longest = l->n > longest ? l->n : longest;
	}
	for (u32 i = 0; i < n; i++)
		for (u32 r = 1; r < g->pub.n_ranks && i < n; r++)
			if (!same(item_of(c, g, i, 0), item_of(c, g, i, r)))
				n = i;
	v = calloc(n + 1, sizeof(*v));
	if (!v || set_offsets(c, g, n)) {
		free(v);
		return -ENOMEM;
	}
	for (u32 i = 0; i < n; i++)
		v[i] = one(c, g, i);
	g->pub.coll = v;
	g->pub.n = n;
	g->pub.dropped = longest - n;
	return 0;
}

/* The group of line a: those beside it. */
static int gather(const struct hb_collectives *c, u32 a, struct group *g)
{
	struct hb_coll_rank *rank = calloc(c->n_lines, sizeof(*rank));
	s32 *shift = calloc(c->n_lines, sizeof(*shift)), most = 0;

	*g = (struct group){.pub = {.source = c->line[a].source, .world = c->line[a].world, .rank = rank},
			    .line = calloc(c->n_lines, sizeof(u32)),
			    .from = calloc(c->n_lines, sizeof(u32))};
	if (!rank || !shift || !g->line || !g->from) {
		free(shift);
		free_group(g);
		return -ENOMEM;
	}
	for (u32 b = a; b < c->n_lines; b++) {
		int fits = b == a;

		if (!fits && may_pair(c, &c->line[a], &c->line[b]))
			fits = fit(&c->line[a], &c->line[b], &shift[g->pub.n_ranks]);
		if (fits < 0) {
			free(shift);
			free_group(g);
			return fits;
		}
		if (!fits)
			continue;
		most = shift[g->pub.n_ranks] > most ? shift[g->pub.n_ranks] : most;
		rank[g->pub.n_ranks] = c->line[b].rank;
		g->line[g->pub.n_ranks++] = b;
	}
	/* Line a begins where the last of them does. */
	for (u32 r = 0; r < g->pub.n_ranks; r++)
		g->from[r] = (u32)(most - shift[r]);
	free(shift);
	return 0;
}

static int make_groups(struct hb_collectives *c)
{
	c->group = calloc(c->n_lines + 1, sizeof(*c->group));
	if (!c->group)
		return -ENOMEM;
	for (u32 a = 0; a < c->n_lines; a++) {
		struct group *g = &c->group[c->n_groups];

		if (c->line[a].taken || c->line[a].n < ENOUGH)
			continue;
		if (gather(c, a, g))
			return -ENOMEM;
		if (g->pub.n_ranks < 2) {
			free_group(g);
			continue;
		}
		c->n_groups++;
		for (u32 r = 0; r < g->pub.n_ranks; r++)
			c->line[g->line[r]].taken = true;
		if (match(c, g))
			return -ENOMEM;
	}
	return 0;
}

struct hb_collectives *hb_collectives__build(const struct hb_timeline *tl, const struct hb_devices *d,
					     struct hb_error *e)
{
	struct hb_collectives *c = calloc(1, sizeof(*c));
	int err = c ? 0 : -ENOMEM;

	if (c)
		c->tl = tl;
	for (u32 t = 0; t < hb_timeline__threads(tl) && !err; t++)
		err = take_thread(c, t);
	if (!err && d)
		err = hb_coll_lines__devices(c, tl, d);
	for (u32 i = 0; c && i < c->n_lines; i++)
		sort_line(&c->line[i]);
	if (!err)
		err = make_groups(c);
	if (!err)
		return c;
	hb_collectives__free(c);
	hb_error__nomem(e, "collectives");
	return NULL;
}

void hb_collectives__free(struct hb_collectives *c)
{
	if (!c)
		return;
	for (u32 i = 0; i < c->n_lines; i++)
		free(c->line[i].item);
	for (u32 i = 0; i < c->n_groups; i++)
		free_group(&c->group[i]);
	free(c->line);
	free(c->group);
	free(c);
}

u64 hb_collectives__memory(const struct hb_collectives *c)
{
	u64 bytes = sizeof(*c) + c->cap_lines * sizeof(*c->line) + (c->n_lines + 1) * sizeof(*c->group);

	for (u32 i = 0; i < c->n_lines; i++)
		bytes += c->line[i].cap * sizeof(struct hb_coll_item);
	for (u32 i = 0; i < c->n_groups; i++)
		bytes +=
		    c->group[i].pub.n * (sizeof(struct hb_coll) + c->group[i].pub.n_ranks * sizeof(s64)) +
		    c->n_lines * (sizeof(struct hb_coll_rank) + 2 * sizeof(u32));
	return bytes;
}

u32 hb_collectives__groups(const struct hb_collectives *c)
{
	return c->n_groups;
}

const struct hb_coll_group *hb_collectives__at(const struct hb_collectives *c, u32 i)
{
	return i < c->n_groups ? &c->group[i].pub : NULL;
}

s64 hb_coll__ahead(const struct hb_collectives *c, const struct hb_coll_group *g, u32 i, u32 r)
{
	const s64 *ahead = ((const struct group *)g)->ahead;

	return ahead ? ahead[(size_t)i * g->n_ranks + r] : 0;
}

u32 hb_coll__op(const struct hb_collectives *c, const struct hb_coll_group *g, u32 i, u32 r)
{
	return item_of(c, (const struct group *)g, i, r)->at;
}

const struct hb_tl_call *hb_coll__call(const struct hb_collectives *c, const struct hb_coll_group *g, u32 i,
				       u32 r, u32 *thread)
{
	const struct hb_coll_item *it = item_of(c, (const struct group *)g, i, r);
	u32 n;

	if (thread)
		*thread = it->where;
	return &hb_timeline__calls(c->tl, it->where, &n)[it->at];
}
