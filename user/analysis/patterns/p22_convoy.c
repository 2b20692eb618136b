/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A short lock that many want: each hand-over costs a sleep, and they queue. */
#include <errno.h>
#include <stdlib.h>

#include "analysis/model/order.h"
#include "analysis/patterns/pattern.h"
#include "base/text.h"

enum { WAITS, CROWD, CROWDED, OWNED, OVER_HOLD, BLOCKED };

static const struct hb_param params[] = {
    [WAITS] = {"waits", HB_UNIT_COUNT, 50, "sleeps on one lock in the window"},
    [CROWD] = {"crowd", HB_UNIT_COUNT, 3, "so many waiting at once are a crowd"},
    [CROWDED] = {"crowded_share", HB_UNIT_SHARE, 200000, "waits that began in a crowd"},
    [OWNED] = {"owned_share", HB_UNIT_SHARE, 500000,
	       "waits ended by a thread that waits for the same lock at other times: an owner, not a "
	       "condition's signal"},
    [OVER_HOLD] = {"over_hold", HB_UNIT_RATIO, 2000000,
		   "median wait over the median time between two hand-overs"},
    [BLOCKED] = {"blocked_share", HB_UNIT_SHARE, 30000,
		 "waits of one thread on the way to a launch, as a part of the steps"},
    {0},
};

struct wait { /* a sleep on a futex */
	u32 thread, sleep;
};

struct found {
	struct wait w;
	u32 lock; /* its number */
};

struct lock { /* a futex of one process */
	u64 chan;
	u32 pid, n;
	struct wait *w; /* its own, by thread and then by time */
	u64 hold, wait; /* medians */
	u32 crowded, owned;
};

enum { NEAR = 256 };
struct near {
	u64 key; /* pid << 32 | place */
	u32 lock;
};

struct locks { /* by process and address */
	struct lock *v;
	u32 n, cap;
	struct hb_map *by_chan; /* what tells locks apart -> lock + 1 */
	struct near near[NEAR]; /* the same of places slept at lately */
	struct found *found;	/* all waits as they are found */
	size_t n_found, cap_found;
	struct wait *w; /* and one lock after the other */
};

struct room {		  /* for all locks, one after the other */
	u64 *begin, *end; /* of the waits for the lock at hand; or what else is sorted */
	u32 *waker;
	u64 *sum; /* by thread: how long it waits for that lock; 0 it does not */
};

enum { AHEAD = 16 };

static const struct hb_tl_sleep *sleep_of(const struct hb_scene *s, const struct wait *w)
{
	u32 n;

	return &hb_timeline__sleeps(s->tl, w->thread, &n)[w->sleep];
}

static u32 waker_of(const struct hb_scene *s, const struct wait *w)
{
	u32 n;

	return hb_wake__edges(s->wk, w->thread, &n)[w->sleep].thread;
}

/* One lock's sleeps lie far apart: those that come soon are fetched meanwhile. */
static void expect(const struct hb_scene *s, const struct lock *k, u32 i)
{
	u32 n;

	if (i + AHEAD >= k->n)
		return;
	__builtin_prefetch(sleep_of(s, &k->w[i + AHEAD]));
	__builtin_prefetch(&hb_wake__edges(s->wk, k->w[i + AHEAD].thread, &n)[k->w[i + AHEAD].sleep]);
}

/* ---- collecting ---- */

static int new_lock(struct locks *k, u32 pid, u64 chan)
{
	if (!k->v || k->n == k->cap) {
		u32 cap = k->cap ? 2 * k->cap : 64;
		struct lock *v = reallocarray(k->v, cap, sizeof(*v));

		if (!v)
			return -ENOMEM;
		k->v = v;
		k->cap = cap;
	}
	k->v[k->n++] = (struct lock){.pid = pid, .chan = chan};
	return 0;
}

/* Its number + 1; 0: out of memory. Addresses of two processes may meet in one key: then it goes on. */
static u32 lock_of(struct locks *k, const struct hb_scene *s, u32 pid, const struct hb_tl_sleep *z)
{
	u64 place = (u64)pid << 32 | z->place, *slot, chan, key;
	struct near *near = &k->near[z->place % NEAR];

	if (near->lock && near->key == place)
		return near->lock;
	chan = hb_timeline__place(s->tl, z)->chan;
	key = chan ^ (u64)pid << 48;
	while ((slot = hb_map__slot(k->by_chan, key, NULL)) && *slot && k->v &&
	       (k->v[*slot - 1].pid != pid || k->v[*slot - 1].chan != chan))
		key++;
	if (!slot)
		return 0;
	if (!*slot) {
		if (new_lock(k, pid, chan))
			return 0;
		*slot = k->n;
	}
	*near = (struct near){.key = place, .lock = (u32)*slot};
	return (u32)*slot;
}

/* Somebody ended it, and it is no wait for the GIL: that is P21's. */
static bool counts(const struct hb_scene *s, u32 t, u32 gils, const struct hb_tl_sleep *z,
		   const struct hb_edge *e)
{
	return z->chankind == HB_CHAN_FUTEX && z->state != HB_TSTATE_RUNNING && e->thread != HB_NONE &&
	       !(gils && hb_timeline__at(s->tl, t, HB_TL_GIL, z->at.begin) != HB_NONE);
}

static int add_found(struct locks *k, struct found x)
{
	if (k->n_found == k->cap_found) {
		size_t cap = k->cap_found ? 2 * k->cap_found : 1024;
		struct found *v = reallocarray(k->found, cap, sizeof(*v));

		if (!v)
			return -ENOMEM;
		k->found = v;
		k->cap_found = cap;
	}
	k->found[k->n_found++] = x;
	return 0;
}

static int collect(struct locks *k, const struct hb_scene *s)
{
	for (u32 t = 0; t < hb_timeline__threads(s->tl); t++) {
		u32 n, gils, pid = hb_timeline__thread(s->tl, t)->pid, lock = 0, place = HB_NONE;
		const struct hb_tl_sleep *z = hb_timeline__sleeps(s->tl, t, &n);
		const struct hb_edge *e = hb_wake__edges(s->wk, t, &n);

		hb_timeline__gils(s->tl, t, &gils);
		for (u32 i = 0; i < n; i++) {
			if (!counts(s, t, gils, &z[i], &e[i]))
				continue;
			if (z[i].place != place)
				lock = lock_of(k, s, pid, &z[i]);
			place = z[i].place;
			if (!lock || !k->v ||
			    add_found(k, (struct found){{.thread = t, .sleep = i}, lock - 1}))
				return -ENOMEM;
			k->v[lock - 1].n++;
		}
	}
	return 0;
}

static int cmp_lock(const void *a, const void *b)
{
	const struct lock *x = a, *y = b;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return x->chan < y->chan ? -1 : x->chan > y->chan;
}

/* Their waits lie side by side, one lock after the other. */
static int find_locks(struct locks *k, const struct hb_scene *s, u32 *most)
{
	u32 all = 0;

	if (collect(k, s))
		return -ENOMEM;
	k->w = malloc((k->n_found + 1) * sizeof(*k->w));
	if (!k->w)
		return -ENOMEM;
	for (u32 i = 0; i < k->n; i++) {
		k->v[i].w = &k->w[all];
		all += k->v[i].n;
		*most = k->v[i].n > *most ? k->v[i].n : *most;
		k->v[i].n = 0;
	}
	for (size_t i = 0; i < k->n_found; i++) {
		struct lock *x = &k->v[k->found[i].lock];

		x->w[x->n++] = k->found[i].w;
	}
	free(k->found);
	k->found = NULL;
	if (k->n)
		qsort(k->v, k->n, sizeof(*k->v), cmp_lock);
	return 0;
}

/* ---- one lock ---- */

static void gather(const struct lock *k, const struct hb_scene *s, const struct room *r)
{
	for (u32 i = 0; i < k->n; i++) {
		const struct hb_tl_sleep *z = sleep_of(s, &k->w[i]);

		expect(s, k, i);
		r->begin[i] = z->at.begin;
		r->end[i] = z->at.end;
		r->waker[i] = waker_of(s, &k->w[i]);
		r->sum[k->w[i].thread] += z->at.end - z->at.begin;
	}
}

/* Waits that begin while others wait, and those that an owner ends. */
static void count_waits(struct lock *k, u64 crowd, const struct room *r)
{
	u32 ended = 0;

	for (u32 i = 0; i < k->n; i++)
		k->owned += r->sum[r->waker[i]] > 0;
	hb_order__values(r->begin, k->n);
	hb_order__values(r->end, k->n);
	for (u32 i = 0; i < k->n; i++) {
		while (ended < k->n && r->end[ended] <= r->begin[i])
			ended++;
		k->crowded += i + 1 - ended >= crowd;
	}
}

/* What is held cannot be seen; but from one hand-over to the next it is held once at most, while others wait.
 */
static void measure(struct lock *k, const struct hb_scene *s, const struct room *r)
{
	u64 *woken = r->begin, *wait = r->end;
	u32 holds = 0;

	for (u32 i = 0; i < k->n; i++) {
		const struct hb_tl_sleep *z = sleep_of(s, &k->w[i]);

		expect(s, k, i);
		woken[i] = hb_sleep__woken(z);
		wait[i] = z->at.end - z->at.begin;
	}
	hb_order__values(woken, k->n);
	for (u32 i = 1; i < k->n; i++)
		woken[holds++] = woken[i] - woken[i - 1];
	hb_order__values(woken, holds);
	k->hold = holds ? woken[holds / 2] : 0;
	hb_order__values(wait, k->n);
	k->wait = wait[k->n / 2];
}

/* The largest sum of waits of one thread that leads to a launch. */
static u64 blocked(const struct hb_scene *s, const struct lock *k, const struct room *r)
{
	u64 most = 0;

	for (u32 i = 0; i < k->n; i++)
		if (r->sum[k->w[i].thread] > most && hb_scene__leads(s, k->w[i].thread))
			most = r->sum[k->w[i].thread];
	return most;
}

/* All of them by begin. */
static int add_waits(struct hb_draft *d, const struct hb_scene *s, const struct lock *k)
{
	struct hb_order *by = malloc(((size_t)k->n + 1) * sizeof(*by));
	int err = by ? 0 : -ENOMEM;

	for (u32 i = 0; i < k->n && by; i++) {
		expect(s, k, i);
		by[i] = (struct hb_order){.key = sleep_of(s, &k->w[i])->at.begin, .item = i};
	}
	err = err ? err : hb_order__sort(by, k->n);
	for (u32 i = 0; i < k->n && !err; i++) {
		const struct wait *w = &k->w[by[i].item];
		const struct hb_tl_sleep *z = sleep_of(s, w);
		struct hb_case c = {.begin = z->at.begin,
				    .end = z->at.end,
				    .thread = w->thread,
				    .stack = z->at.stack,
				    .waker = hb_scene__task(s, waker_of(s, w))};

		err = hb_draft__add(d, &c);
	}
	free(by);
	return err;
}

static int tell(struct hb_look *l, const struct lock *k)
{
	struct hb_draft *d;
	char hold[32], wait[32];

	d = hb_look__find(l,
			  "%u waits for the lock at 0x%llx, %llu %% of them in a crowd; a wait takes %s, it "
			  "is handed over every %s",
			  k->n, (unsigned long long)k->chan,
			  (unsigned long long)(hb_share(k->crowded, k->n) / 10000),
			  hb_text__ns(wait, sizeof(wait), k->wait), hb_text__ns(hold, sizeof(hold), k->hold));
	if (!d)
		return -ENOMEM;
	hb_draft__pid(d, k->pid);
	return add_waits(d, l->s, k);
}

static int look_at(struct hb_look *l, struct lock *k, const struct room *r)
{
	hb_look__subject(l);
	if (!hb_look__at_least(l, WAITS, k->n))
		return 0;
	gather(k, l->s, r);
	count_waits(k, hb_look__param(l, CROWD), r);
	if (!hb_look__at_least(l, CROWDED, hb_share(k->crowded, k->n)) ||
	    !hb_look__at_least(l, OWNED, hb_share(k->owned, k->n)))
		return 0;
	measure(k, l->s, r);
	if (!hb_look__at_least(l, OVER_HOLD, hb_share(k->wait, k->hold ? k->hold : 1)) ||
	    !hb_look__at_least(l, BLOCKED, hb_share(blocked(l->s, k, r), hb_scene__step_time(l->s, k->pid))))
		return 0;
	return tell(l, k);
}

static int each_lock(struct hb_look *l, struct locks *k, const struct room *r)
{
	int err = 0;

	for (u32 i = 0; i < k->n && !err; i++) {
		struct lock *x = &k->v[i];

		err = look_at(l, x, r);
		for (u32 j = 0; j < x->n; j++)
			r->sum[x->w[j].thread] = 0;
	}
	return err;
}

static int detect(struct hb_look *l)
{
	struct locks k = {.by_chan = hb_map__new()};
	struct room r = {.sum = calloc(hb_timeline__threads(l->s->tl) + 1ULL, sizeof(*r.sum))};
	u32 most = 0;
	int err = k.by_chan && r.sum ? find_locks(&k, l->s, &most) : -ENOMEM;

	r.begin = malloc(((size_t)most + 1) * sizeof(*r.begin));
	r.end = malloc(((size_t)most + 1) * sizeof(*r.end));
	r.waker = malloc(((size_t)most + 1) * sizeof(*r.waker));
	err = err ? err : r.begin && r.end && r.waker ? each_lock(l, &k, &r) : -ENOMEM;
	hb_map__free(k.by_chan);
	free(k.v);
	free(k.found);
	free(k.w);
	free(r.begin);
	free(r.end);
	free(r.waker);
	free(r.sum);
	return err;
}

HB_PATTERN(p22_convoy) = {
    .id = "P22",
    .layer = "native",
    .title = "lock convoy",
    .rank = HB_RANK_CODE,
    .needs = HB_NEED_SLEEP | HB_NEED_ACCEL,
    .params = params,
    .rule = "many threads queue for one futex that is held for much less time than they wait, its owners "
	    "wait for it too, and "
	    "a thread on the way to the next launch is among them",
    .fix = "shard the lock, hold it shorter, spin before sleeping, thread-local state",
    .ref = "ggml-org/llama.cpp#27050 (mutex and malloc were 24.6 % of the samples in gaps)",
    .traps = "waits on a condition look like a lock, but whoever signals does not wait there itself; the GIL "
	     "is P21",
    .settle = "stacks of the owners (CPU samples while others wait)",
    .record = "frequency=997; calls=@waker",
    .detect = detect,
};
