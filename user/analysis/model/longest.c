/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The longest path of the graph, in the order of its links; and what it is made of. */
#include "analysis/model/longest_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/model/order.h"
#include "base/map.h"

const char *hb_link__name(enum hb_link_kind k)
{
	static const char *const names[HB_LINK_KINDS] = {"span", "order", "launch delay", "kernel delay",
							 "sync"};

	return (unsigned)k < HB_LINK_KINDS ? names[k] : "?";
}

const char *hb_cp_what__name(enum hb_cp_what w)
{
	static const char *const names[] = {"operator", "step", "call", "device"};

	return (unsigned)w <= HB_CP_WORK ? names[w] : "?";
}

const char *hb_cp_part__name(enum hb_cp_part p)
{
	static const char *const names[HB_CP_PARTS] = {"host",	 "compute",	 "communication",
						       "memcpy", "launch delay", "kernel delay"};

	return (unsigned)p < HB_CP_PARTS ? names[p] : "?";
}

enum hb_cp_part hb_link__part(const struct hb_link *l, const struct hb_cp_event *owner)
{
	static const u8 of_work[HB_WORK_COUNT] = {
	    [HB_WORK_COMPUTE] = HB_CP_COMPUTE, [HB_WORK_COMM] = HB_CP_COMM, [HB_WORK_MEMCPY] = HB_CP_MEMCPY};

	if (l->kind == HB_LINK_LAUNCH)
		return HB_CP_LAUNCH_DELAY;
	if (l->kind == HB_LINK_KERNEL)
		return HB_CP_KERNEL_DELAY;
	return owner && owner->what == HB_CP_WORK ? of_work[owner->work % HB_WORK_COUNT] : HB_CP_HOST;
}

/* ---- the graph ---- */

static void *grow(void *array, u32 n, u32 *cap, size_t size)
{
	u32 more = *cap ? 2 * *cap : 256;
	void *p;

	if (n < *cap)
		return array;
	/* Nodes are two for each event, in 32 bits. */
	p = more < (1u << 30) ? realloc(array, more * size) : NULL;
	if (p)
		*cap = more;
	return p;
}

struct hb_cp_event *hb_longest__event(struct hb_longest *l)
{
	struct hb_cp_event *p = grow(l->event, l->n_events, &l->cap_events, sizeof(*p));

	if (!p)
		return NULL;
	l->event = p;
	p[l->n_events] = (struct hb_cp_event){.thread = HB_NONE, .parent = HB_NONE, .device = HB_NONE};
	return &p[l->n_events++];
}

int hb_longest__link(struct hb_longest *l, enum hb_link_kind kind, u32 from, u32 to, bool weighs, u32 owner)
{
	u64 begin = hb_node__ts(l, from), end = hb_node__ts(l, to);
	struct hb_link *p = grow(l->link, l->n_links, &l->cap_links, sizeof(*p));

	if (!p)
		return -ENOMEM;
	l->link = p;
	p[l->n_links++] = (struct hb_link){.ns = weighs && end > begin ? end - begin : 0,
					   .from = from,
					   .to = to,
					   .owner = owner,
					   .kind = (u8)kind};
	l->sum.all[kind]++;
	return 0;
}

/* ---- the path ---- */

struct solve { /* each array has an item for each node */
	struct hb_longest *l;
	u32 n;		  /* nodes */
	u32 *first, *out; /* links by the node that they leave: out[first[node]] .. out[first[node + 1]] */
	u32 *waits_for;	  /* links into it that were not looked at */
	u32 *best;	  /* the link into it that comes latest; HB_NONE */
	u64 *dist;	  /* length of the longest path to it */
	u32 *queue;	  /* nodes in the order in which they were done */
	u32 done, queued;
	bool *in; /* is in the queue */
};

static void sort_links(struct solve *s)
{
	const struct hb_longest *l = s->l;

	for (u32 i = 0; i < l->n_links; i++) {
		s->first[l->link[i].from + 1]++;
		s->waits_for[l->link[i].to]++;
	}
	for (u32 i = 0; i < s->n; i++)
		s->first[i + 1] += s->first[i];
	for (u32 i = l->n_links; i-- > 0;)
		s->out[--s->first[l->link[i].from + 1]] = i;
	/* first[k + 1] is now where node k begins: one place too far. */
	for (u32 i = 0; i < s->n; i++)
		s->first[i] = s->first[i + 1];
	s->first[s->n] = l->n_links;
}

static void push(struct solve *s, u32 node)
{
	s->in[node] = true;
	s->queue[s->queued++] = node;
}

/* Of paths of one length that which was told first. */
static void relax(struct solve *s, u32 i)
{
	const struct hb_link *x = &s->l->link[i];
	u64 far = s->dist[x->from] + x->ns;

	if (s->in[x->to]) /* was forced: this link closes a circle */
		return;
	if (s->best[x->to] == HB_NONE || far > s->dist[x->to] ||
	    (far == s->dist[x->to] && i < s->best[x->to])) {
		s->dist[x->to] = far;
		s->best[x->to] = i;
	}
	if (!--s->waits_for[x->to])
		push(s, x->to);
}

static void empty_queue(struct solve *s)
{
	while (s->done < s->queued) {
		u32 node = s->queue[s->done++];

		for (u32 i = s->first[node]; i < s->first[node + 1]; i++)
			relax(s, s->out[i]);
	}
}

static void begin(struct solve *s)
{
	memset(s->best, 0xff, s->n * sizeof(*s->best)); /* HB_NONE */
	for (u32 i = 0; i < s->n; i++)
		if (!s->waits_for[i])
			push(s, i);
}

/* Links against time may close circles, in damaged windows: the earliest node left is then taken as it is. */
static int force(struct solve *s)
{
	struct hb_order *v = malloc(((size_t)s->n + 1) * sizeof(*v));
	int err = v ? 0 : -ENOMEM;

	for (u32 i = 0; i < s->n && !err; i++)
		v[i] = (struct hb_order){.key = hb_node__ts(s->l, i), .item = i};
	err = err ? err : hb_order__sort(v, s->n);
	for (u32 i = 0; i < s->n && !err && s->queued < s->n; i++) {
		if (s->in[v[i].item])
			continue;
		s->l->sum.forced++;
		push(s, v[i].item);
		empty_queue(s);
	}
	free(v);
	return err;
}

static void count_path(struct hb_longest *l, const struct solve *s, u32 end, bool *seen)
{
	u32 n = 0, node = end;

	for (; s->best[node] != HB_NONE; node = l->link[s->best[node]].from)
		n++;
	l->sum.links = n;
	l->sum.nodes = l->n_events ? n + 1 : 0;
	l->sum.length = s->dist[end];
	node = end;
	while (true) {
		const struct hb_link *x = s->best[node] == HB_NONE ? NULL : &l->link[s->best[node]];

		l->sum.events += !seen[node / 2];
		seen[node / 2] = true;
		if (!x)
			break;
		l->path[--n] = x;
		l->sum.part[hb_link__part(x, x->owner == HB_NONE ? NULL : &l->event[x->owner])] += x->ns;
		node = x->from;
	}
}

static int take_path(struct hb_longest *l, const struct solve *s)
{
	bool *seen = calloc((size_t)l->n_events + 1, sizeof(*seen));
	u32 end = 0;

	l->path = malloc(((size_t)s->n + 1) * sizeof(const struct hb_link *));
	if (!l->path || !seen) {
		free(seen);
		return -ENOMEM;
	}
	/* It ends where nothing more is added: at the first node, as they were done, with that length. */
	for (u32 i = 0; i < s->queued; i++)
		if (!i || s->dist[s->queue[i]] > s->dist[end])
			end = s->queue[i];
	if (l->n_events)
		count_path(l, s, end, seen);
	free(seen);
	return 0;
}

static void free_solve(struct solve *s)
{
	free(s->first);
	free(s->out);
	free(s->waits_for);
	free(s->best);
	free(s->dist);
	free(s->queue);
	free(s->in);
}

static int find_path(struct hb_longest *l)
{
	struct solve s = {.l = l, .n = 2 * l->n_events};
	size_t n = (size_t)s.n + 1;
	int err;

	s.first = calloc(n + 1, sizeof(*s.first));
	s.out = malloc(((size_t)l->n_links + 1) * sizeof(*s.out));
	s.waits_for = calloc(n, sizeof(*s.waits_for));
	s.best = calloc(n, sizeof(*s.best));
	s.dist = calloc(n, sizeof(*s.dist));
	s.queue = malloc(n * sizeof(*s.queue));
	s.in = calloc(n, sizeof(*s.in));
	err = s.first && s.out && s.waits_for && s.best && s.dist && s.queue && s.in ? 0 : -ENOMEM;
	if (!err) {
		sort_links(&s);
		begin(&s);
		empty_queue(&s);
		err = s.queued < s.n ? force(&s) : 0;
	}
	err = err ? err : take_path(l, &s);
	free_solve(&s);
	return err;
}

/* ---- the whole ---- */

struct hb_longest *hb_longest__build(const struct hb_timeline *tl, const struct hb_devices *d,
				     const struct hb_steps *steps, const struct hb_longest_opts *o,
				     struct hb_error *e)
{
	struct hb_longest *l = calloc(1, sizeof(*l));
	int err;

	if (!l) {
		hb_error__nomem(e, "the critical path");
		return NULL;
	}
	l->tl = tl;
	l->d = d;
	l->steps = steps;
	if (hb_longest__find(l, o, e)) {
		hb_longest__free(l);
		return NULL;
	}
	err = hb_longest__host(l);
	err = err ? err : hb_longest__devices(l);
	err = err ? err : find_path(l);
	l->sum.all_events = l->n_events;
	if (err) {
		hb_error__nomem(e, "the critical path");
		hb_longest__free(l);
		return NULL;
	}
	return l;
}

void hb_longest__free(struct hb_longest *l)
{
	if (!l)
		return;
	free(l->event);
	free(l->link);
	free(l->numbered);
	free(l->path);
	free(l);
}

const struct hb_longest_sum *hb_longest__sum(const struct hb_longest *l)
{
	return &l->sum;
}

const struct hb_link *const *hb_longest__path(const struct hb_longest *l, u32 *n)
{
	*n = l->sum.links;
	return l->path;
}

const struct hb_link *hb_longest__links(const struct hb_longest *l, u32 *n)
{
	*n = l->n_links;
	return l->link;
}

const struct hb_cp_event *hb_longest__events(const struct hb_longest *l, u32 *n)
{
	*n = l->n_events;
	return l->event;
}

const char *hb_longest__name(const struct hb_longest *l, u32 event)
{
	const struct hb_cp_event *e = event < l->n_events ? &l->event[event] : NULL;

	if (!e)
		return "?";
	return e->what == HB_CP_STEP ? "engine step" : hb_window__string(hb_timeline__window(l->tl), e->name);
}

static int cmp_rows(const void *a, const void *b)
{
	const struct hb_cp_row *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns > y->ns ? -1 : 1;
	return x->event < y->event ? -1 : x->event > y->event;
}

int hb_longest__by_name(const struct hb_longest *l, struct hb_cp_row **rows, u32 *n)
{
	struct hb_map *at = hb_map__new();
	struct hb_cp_row *r = calloc((size_t)l->sum.links + 1, sizeof(*r));
	int err = at && r ? 0 : -ENOMEM;

	*n = 0;
	for (u32 i = 0; i < l->sum.links && !err; i++) {
		const struct hb_link *x = l->path[i];
		const struct hb_cp_event *e = x->owner == HB_NONE ? NULL : &l->event[x->owner];
		enum hb_cp_part part = hb_link__part(x, e);
		u64 *slot;
		bool fresh = false;

		if (!x->ns || !e)
			continue;
		slot =
		    hb_map__slot(at, (u64)part << 34 | (u64)(e->what == HB_CP_STEP) << 32 | e->name, &fresh);
		if (!slot) {
			err = -ENOMEM;
			break;
		}
		if (fresh) {
			*slot = *n;
			r[(*n)++] = (struct hb_cp_row){.event = x->owner, .part = (u8)part};
		}
		r[*slot].ns += x->ns;
		r[*slot].links++;
	}
	hb_map__free(at);
	if (err) {
		free(r);
		return err;
	}
	if (*n)
		qsort(r, *n, sizeof(*r), cmp_rows);
	*rows = r;
	return 0;
}
