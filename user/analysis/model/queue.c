/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analysis/model/queue.h"

#include <errno.h>
#include <stdlib.h>

#include "base/map.h"
#include "base/text.h"

/* Functions that put a message into shared memory, and that take one out; qualified names from Python 3.11
 * on. */
static const char *const puts_one[] = {"*MessageQueue.enqueue", "enqueue"};
static const char *const takes_one[] = {"*MessageQueue.dequeue", "dequeue"};

/* A writer's call returns a little after its reader may have seen the message. */
#define RETURN_NS 200000

enum role { OTHER, PUTS, TAKES };

struct event {
	u64 at;
	u32 thread;
};

struct list {
	struct event *v;
	u32 n, cap;
};

struct reader {
	struct hb_message *v; /* by `taken` */
	u32 n;
};

struct hb_queues {
	const struct hb_timeline *tl;
	struct reader *reader; /* [thread] */
	struct hb_map *roles;  /* location of a function -> role */
	struct hb_map *parent; /* pid -> its parent's */
	struct list put, taken;
	u64 matched;
};

static bool any(const char *const *globs, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (hb_text__glob(globs[i], name))
			return true;
	return false;
}

static enum role role_of(struct hb_queues *q, u32 func, int *err)
{
	const struct hb_window *w = hb_timeline__window(q->tl);
	const struct hb_loc *l;
	const char *name;
	bool fresh;
	u64 *slot = hb_map__slot(q->roles, func, &fresh);

	if (!slot) {
		*err = -ENOMEM;
		return OTHER;
	}
	if (fresh) {
		l = hb_window__loc(w, func);
		name = l ? hb_window__string(w, l->func) : "";
		*slot = any(puts_one, sizeof(puts_one) / sizeof(*puts_one), name)      ? PUTS
			: any(takes_one, sizeof(takes_one) / sizeof(*takes_one), name) ? TAKES
										       : OTHER;
	}
	return (enum role) * slot;
}

static int note(struct list *l, u64 at, u32 thread)
{
	if (l->n == l->cap) {
		u32 cap = l->cap ? 2 * l->cap : 256;
		struct event *v = realloc(l->v, cap * sizeof(*v));

		if (!v)
			return -ENOMEM;
		l->v = v;
		l->cap = cap;
	}
	l->v[l->n++] = (struct event){.at = at, .thread = thread};
	return 0;
}

static int collect(struct hb_queues *q)
{
	int err = 0;

	for (u32 t = 0; t < hb_timeline__threads(q->tl) && !err; t++) {
		u32 n;
		const struct hb_tl_pycall *c = hb_timeline__pycalls(q->tl, t, &n);

		for (u32 i = 0; i < n && !err; i++) {
			enum role r = c[i].func ? role_of(q, c[i].func, &err) : OTHER;

			if (!err && r != OTHER)
				err = note(r == PUTS ? &q->put : &q->taken, c[i].at.end, t);
		}
	}
	return err;
}

static int earlier(const void *a, const void *b)
{
	const struct event *x = a, *y = b;

	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	return x->thread < y->thread ? -1 : x->thread > y->thread;
}

static int know_parents(struct hb_queues *q)
{
	u32 n;
	const struct hb_proc *p = hb_window__procs(hb_timeline__window(q->tl), &n);

	for (u32 i = 0; i < n; i++)
		if (hb_map__put(q->parent, p[i].pid, p[i].ppid))
			return -ENOMEM;
	return 0;
}

static bool is_parent(const struct hb_queues *q, u32 pid, u32 child)
{
	u64 parent;

	return hb_map__get(q->parent, child, &parent) && parent == pid;
}

static bool related(const struct hb_queues *q, u32 a, u32 b)
{
	u32 x = hb_timeline__thread(q->tl, a)->pid, y = hb_timeline__thread(q->tl, b)->pid;

	return is_parent(q, x, y) || is_parent(q, y, x);
}

/* The last one put by a relative in time; puts [0, end) are not after the taking. NULL: it waited for none.
 */
static const struct event *match(const struct hb_queues *q, const struct event *taken, u32 end)
{
	for (u32 i = end; i-- > 0 && q->put.v[i].at + HB_QUEUE_WAIT_NS >= taken->at;)
		if (related(q, q->put.v[i].thread, taken->thread))
			return &q->put.v[i];
	return NULL;
}

static int add(struct hb_queues *q, const struct event *taken, const struct event *put, u64 *last)
{
	struct reader *r = &q->reader[taken->thread];
	struct hb_message *v;

	/* One message is taken by a reader once: what follows at once lay there already. */
	if (*last == (u64)(put - q->put.v) + 1)
		return 0;
	*last = (u64)(put - q->put.v) + 1;
	if ((r->n & (r->n - 1)) == 0) { /* full at powers of two */
		v = realloc(r->v, (r->n ? 2 * (size_t)r->n : 1) * sizeof(*v));
		if (!v)
			return -ENOMEM;
		r->v = v;
	}
	r->v[r->n++] = (struct hb_message){
	    .taken = taken->at, .put = put->at < taken->at ? put->at : taken->at, .from = put->thread};
	q->matched++;
	return 0;
}

static int match_all(struct hb_queues *q)
{
	u64 *last =
	    calloc(hb_timeline__threads(q->tl) + 1, sizeof(*last)); /* [thread]: put it took last, + 1 */
	int err = last ? 0 : -ENOMEM;
	u32 end = 0;

	for (u32 i = 0; i < q->taken.n && !err; i++) {
		const struct event *t = &q->taken.v[i], *p;

		while (end < q->put.n && q->put.v[end].at <= t->at + RETURN_NS)
			end++;
		p = match(q, t, end);
		if (p)
			err = add(q, t, p, &last[t->thread]);
	}
	free(last);
	return err;
}

static int build(struct hb_queues *q)
{
	int err;

	q->reader = calloc(hb_timeline__threads(q->tl) + 1, sizeof(*q->reader));
	q->roles = hb_map__new();
	q->parent = hb_map__new();
	if (!q->reader || !q->roles || !q->parent)
		return -ENOMEM;
	err = collect(q);
	if (err || !q->put.n || !q->taken.n)
		return err;
	qsort(q->put.v, q->put.n, sizeof(*q->put.v), earlier);
	qsort(q->taken.v, q->taken.n, sizeof(*q->taken.v), earlier);
	err = know_parents(q);
	return err ? err : match_all(q);
}

struct hb_queues *hb_queues__build(const struct hb_timeline *tl, struct hb_error *e)
{
	struct hb_queues *q = calloc(1, sizeof(*q));

	if (q)
		q->tl = tl;
	if (!q || build(q)) {
		hb_error__nomem(e, "message queues");
		hb_queues__free(q);
		return NULL;
	}
	return q;
}

void hb_queues__free(struct hb_queues *q)
{
	if (!q)
		return;
	for (u32 t = 0; q->reader && t < hb_timeline__threads(q->tl); t++)
		free(q->reader[t].v);
	free(q->reader);
	free(q->put.v);
	free(q->taken.v);
	hb_map__free(q->roles);
	hb_map__free(q->parent);
	free(q);
}

u64 hb_queues__memory(const struct hb_queues *q)
{
	return sizeof(*q) + hb_timeline__threads(q->tl) * sizeof(*q->reader) +
	       2 * q->matched * sizeof(struct hb_message) +
	       ((u64)q->put.cap + q->taken.cap) * sizeof(struct event);
}

void hb_queues__counts(const struct hb_queues *q, u64 *put, u64 *taken, u64 *matched)
{
	*put = q->put.n;
	*taken = q->taken.n;
	*matched = q->matched;
}

const struct hb_message *hb_queues__last(const struct hb_queues *q, u32 thread, u64 t)
{
	const struct reader *r = &q->reader[thread];
	u32 lo = 0, hi = r->n;

	while (lo < hi) {
		u32 mid = lo + (hi - lo) / 2;

		if (r->v[mid].taken <= t)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo ? &r->v[lo - 1] : NULL;
}
