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

struct wait {
	u64 chan, begin, end, woken;
	u32 pid, thread, waker;
};

struct room {	  /* for all locks, one after the other */
	u64 *v;	  /* as many as there are sleeps */
	u64 *sum; /* by thread: how long it waits for the lock at hand; 0 it does not */
};

struct lock { /* waits for one futex of one process, by begin */
	const struct wait *w;
	u32 n;
	u64 hold, wait; /* medians */
	u32 crowded, owned;
};

static int cmp_wait(const void *a, const void *b)
{
	const struct wait *x = a, *y = b;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	if (x->chan != y->chan)
		return x->chan < y->chan ? -1 : 1;
	return x->begin < y->begin ? -1 : x->begin > y->begin;
}

/* Sleeps on futexes; the GIL is P21's. */
static u32 collect(const struct hb_scene *s, struct wait *out)
{
	u32 n, gils, to = 0;

	for (u32 t = 0; t < hb_timeline__threads(s->tl); t++) {
		const struct hb_tl_sleep *z = hb_timeline__sleeps(s->tl, t, &n);
		const struct hb_edge *e = hb_wake__edges(s->wk, t, &n);

		hb_timeline__gils(s->tl, t, &gils);
		for (u32 i = 0; i < n; i++) {
			if (z[i].chankind != HB_CHAN_FUTEX || z[i].state == HB_TSTATE_RUNNING ||
			    e[i].thread == HB_NONE ||
			    (gils && hb_timeline__at(s->tl, t, HB_TL_GIL, z[i].at.begin) != HB_NONE))
				continue;
			out[to++] = (struct wait){.chan = hb_timeline__place(s->tl, &z[i])->chan,
						  .begin = z[i].at.begin,
						  .end = z[i].at.end,
						  .woken = hb_sleep__woken(&z[i]),
						  .pid = hb_timeline__thread(s->tl, t)->pid,
						  .thread = t,
						  .waker = e[i].thread};
		}
	}
	return to;
}

/* Waits that begin while others wait, and those that an owner ends. `v`: room for n values. */
static void count_waits(struct lock *k, u64 crowd, const struct room *r)
{
	u64 *v = r->v;
	u32 ended = 0;

	for (u32 i = 0; i < k->n; i++)
		v[i] = k->w[i].end;
	hb_order__values(v, k->n);
	for (u32 i = 0; i < k->n; i++) {
		while (ended < k->n && v[ended] <= k->w[i].begin)
			ended++;
		k->crowded += i + 1 - ended >= crowd;
		k->owned += r->sum[k->w[i].waker] > 0;
	}
}

/* What is held cannot be seen; but from one hand-over to the next it is held once at most, while others wait.
 */
static void measure(struct lock *k, u64 crowd, const struct room *r)
{
	u64 *v = r->v;
	u32 holds = 0;

	count_waits(k, crowd, r);
	for (u32 i = 0; i < k->n; i++)
		v[i] = k->w[i].woken;
	hb_order__values(v, k->n);
	for (u32 i = 1; i < k->n; i++)
		v[holds++] = v[i] - v[i - 1];
	hb_order__values(v, holds);
	k->hold = holds ? v[holds / 2] : 0;
	for (u32 i = 0; i < k->n; i++)
		v[i] = k->w[i].end - k->w[i].begin;
	hb_order__values(v, k->n);
	k->wait = v[k->n / 2];
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

static int tell(struct hb_look *l, const struct lock *k)
{
	struct hb_draft *d;
	char hold[32], wait[32];
	int err = 0;

	d = hb_look__find(l,
			  "%u waits for the lock at 0x%llx, %llu %% of them in a crowd; a wait takes %s, it "
			  "is handed over every %s",
			  k->n, (unsigned long long)k->w[0].chan,
			  (unsigned long long)(hb_share(k->crowded, k->n) / 10000),
			  hb_text__ns(wait, sizeof(wait), k->wait), hb_text__ns(hold, sizeof(hold), k->hold));
	if (!d)
		return -ENOMEM;
	hb_draft__pid(d, k->w[0].pid);
	for (u32 i = 0; i < k->n && !err; i++) {
		u32 n;
		const struct hb_tl_sleep *z = hb_timeline__sleeps(l->s->tl, k->w[i].thread, &n);
		u32 at = hb_timeline__from(l->s->tl, k->w[i].thread, HB_TL_SLEEP, k->w[i].begin);
		struct hb_case c = {.begin = k->w[i].begin,
				    .end = k->w[i].end,
				    .thread = k->w[i].thread,
				    .stack = at < n ? z[at].at.stack : 0,
				    .waker = hb_scene__task(l->s, k->w[i].waker)};

		err = hb_draft__add(d, &c);
	}
	return err;
}

static int look_at(struct hb_look *l, struct lock *k, const struct room *r)
{
	hb_look__subject(l);
	if (!hb_look__at_least(l, WAITS, k->n))
		return 0;
	measure(k, hb_look__param(l, CROWD), r);
	if (!hb_look__at_least(l, CROWDED, hb_share(k->crowded, k->n)) ||
	    !hb_look__at_least(l, OWNED, hb_share(k->owned, k->n)) ||
	    !hb_look__at_least(l, OVER_HOLD, hb_share(k->wait, k->hold ? k->hold : 1)) ||
	    !hb_look__at_least(l, BLOCKED,
			       hb_share(blocked(l->s, k, r), hb_scene__step_time(l->s, k->w[0].pid))))
		return 0;
	return tell(l, k);
}

static int each_lock(struct hb_look *l, const struct wait *w, u32 n, const struct room *r)
{
	int err = 0;

	for (u32 i = 0; i < n && !err;) {
		struct lock k = {.w = &w[i]};

		for (; i < n && w[i].pid == k.w->pid && w[i].chan == k.w->chan; i++, k.n++)
			r->sum[w[i].thread] += w[i].end - w[i].begin;
		err = look_at(l, &k, r);
		for (u32 j = 0; j < k.n; j++)
			r->sum[k.w[j].thread] = 0;
	}
	return err;
}

static int detect(struct hb_look *l)
{
	u64 n = hb_timeline__count(l->s->tl, HB_TL_SLEEP);
	struct room r = {.v = calloc(n + 1, sizeof(*r.v)),
			 .sum = calloc(hb_timeline__threads(l->s->tl) + 1ULL, sizeof(*r.sum))};
	struct wait *w = calloc(n + 1, sizeof(*w));
	bool ok = r.v && r.sum && w;
	u32 to = ok ? collect(l->s, w) : 0;
	int err = ok ? 0 : -ENOMEM;

	if (to)
		qsort(w, to, sizeof(*w), cmp_wait);
	if (ok)
		err = each_lock(l, w, to, &r);
	free(r.v);
	free(r.sum);
	free(w);
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
