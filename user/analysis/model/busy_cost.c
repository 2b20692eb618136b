/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How long the device takes for a sort of work, from how long it took for sets of it. Equal sets are one
 * observation, with the median of their times; single costs are then fitted to the sets by going round them
 * and spreading what each is off over its pieces (Kaczmarz), never below zero.
 */
#include "analysis/model/busy_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/radix.h"

#define TIMES	 31    /* kept of a set: the last ones */
#define SETS	 4096  /* more different sets than this are not learnt from */
#define PIECES	 65536 /* nor from larger ones */
#define ROUNDS	 40
#define COST_MAX (1LL << 40) /* ns: twenty minutes */

struct piece {
	u32 key, count;
};

struct set {
	struct piece *piece;
	u32 n_pieces, total; /* different ones; all */
	u64 weight;	     /* sum of squared counts */
	u64 time[TIMES], bound[TIMES];
	u32 n_times, n_bounds;
	u64 takes;  /* after solve .. */
	bool timed; /* .. just so long; false: no longer */
};

struct key {
	u64 time[TIMES]; /* as the last of a set, the device idle after it */
	u32 n_times;
};

struct cost {	/* of a key, after solve */
	s64 ns; /* -1 not learnt */
	s64 limit;
	bool timed; /* it is in a set whose time is known */
};

struct hb_costs {
	struct hb_map *keys, *sets; /* hash -> index */
	struct set *set;
	u32 n_sets, cap_sets;
	struct key *key;
	u32 n_keys, cap_keys;
	struct cost *cost; /* by key, after solve */
};

struct hb_costs *hb_costs__new(void)
{
	struct hb_costs *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->keys = hb_map__new();
	c->sets = hb_map__new();
	if (!c->keys || !c->sets) {
		hb_costs__free(c);
		return NULL;
	}
	return c;
}

void hb_costs__free(struct hb_costs *c)
{
	if (!c)
		return;
	for (u32 i = 0; i < c->n_sets; i++)
		free(c->set[i].piece);
	free(c->set);
	free(c->cost);
	free(c->key);
	hb_map__free(c->keys);
	hb_map__free(c->sets);
	free(c);
}

static u32 log2_of(u64 x)
{
	return x ? 64 - (u32)__builtin_clzll(x) : 0;
}

static u32 new_key(struct hb_costs *c)
{
	if (c->n_keys == c->cap_keys) {
		u32 cap = c->cap_keys * 2 + 32;
		struct key *p = realloc(c->key, cap * sizeof(*p));

		if (!p)
			return HB_NONE;
		c->key = p;
		c->cap_keys = cap;
	}
	memset(&c->key[c->n_keys], 0, sizeof(*c->key));
	return c->n_keys++;
}

u32 hb_costs__key(struct hb_costs *c, const struct hb_timeline *tl, const struct hb_tl_call *call)
{
	bool by_size = call->op == HB_OP_COPY || call->op == HB_OP_COLLECTIVE, fresh;
	const struct hb_tl_callee *callee = hb_timeline__callee(tl, call);
	u64 k = hb_hash64((u64)callee->probe << 8 | call->op), *at;

	if (by_size)
		k = hb_hash64(k ^ log2_of(call->bytes));
	else
		k = hb_hash64(k ^ callee->handle);
	at = hb_map__slot(c->keys, k, &fresh);
	if (at && fresh)
		*at = new_key(c);
	return at ? (u32)*at : HB_NONE;
}

void hb_costs__limit(struct hb_costs *c, u32 key, u64 ns)
{
	if (key < c->n_keys)
		c->key[key].time[c->key[key].n_times++ % TIMES] = ns < COST_MAX ? ns : COST_MAX;
}

#define KEY_OF(x) (*(x))
HB_RADIX_SORT(sort_keys, u32, KEY_OF)

/* Keys are few beside the pieces of a large set: counting them is sorting them. */
static int sort(const struct hb_costs *c, u32 *key, u32 n)
{
	u32 *count, to = 0;

	if (c->n_keys / 4 > n)
		return sort_keys(key, n);
	count = calloc(c->n_keys + 1, sizeof(*count));
	if (!count)
		return -ENOMEM;
	for (u32 i = 0; i < n; i++)
		count[key[i]]++;
	for (u32 k = 0; k < c->n_keys; k++)
		for (; count[k]; count[k]--)
			key[to++] = k;
	free(count);
	return 0;
}

static int fill_set(struct set *s, const u32 *key, u32 n)
{
	struct piece *last;
	u32 different = 0;

	for (u32 i = 0; i < n; i++)
		different += !i || key[i] != key[i - 1];
	s->piece = malloc(different * sizeof(*s->piece));
	if (!s->piece)
		return -ENOMEM;
	for (u32 i = 0; i < n; i++) {
		if (!i || key[i] != key[i - 1])
			s->piece[s->n_pieces++] = (struct piece){.key = key[i]};
		last = &s->piece[s->n_pieces - 1];
		last->count++;
		s->weight += 2ULL * last->count - 1; /* from one square to the next */
	}
	s->total = n;
	return 0;
}

static int new_set(struct hb_costs *c, const u32 *key, u32 n)
{
	if (c->n_sets == c->cap_sets) {
		u32 cap = c->cap_sets * 2 + 16;
		struct set *p = realloc(c->set, cap * sizeof(*p));

		if (!p)
			return -ENOMEM;
		c->set = p;
		c->cap_sets = cap;
	}
	memset(&c->set[c->n_sets], 0, sizeof(*c->set));
	return fill_set(&c->set[c->n_sets++], key, n);
}

int hb_costs__learn(struct hb_costs *c, u32 *key, u32 n, u64 ns, bool bound)
{
	struct set *s;
	bool fresh;
	u64 *at;

	if (!n || n > PIECES || ns > COST_MAX)
		return 0;
	if (sort(c, key, n))
		return -ENOMEM;
	if (c->n_sets == SETS && !hb_map__get(c->sets, hb_hash_bytes(key, n * sizeof(*key)), NULL))
		return 0;
	at = hb_map__slot(c->sets, hb_hash_bytes(key, n * sizeof(*key)), &fresh);
	if (!at)
		return -ENOMEM;
	if (fresh) {
		*at = c->n_sets;
		if (new_set(c, key, n))
			return -ENOMEM;
	}
	s = &c->set[*at];
	if (!bound)
		s->time[s->n_times++ % TIMES] = ns;
	else
		s->bound[s->n_bounds++ % TIMES] = ns;
	return 0;
}

static s64 clamp(s64 x, s64 low, s64 high)
{
	return x < low ? low : x > high ? high : x;
}

static u32 kept(u32 n_times)
{
	return n_times < TIMES ? n_times : TIMES;
}

/* A set that was seen more often counts more; that one takes no longer than a bound holds in full. Of what is
 * bound only, just pieces that no other set tells of may take all of it. */
static void spread(struct hb_costs *c, const struct set *s, u32 most)
{
	s64 off = (s64)s->takes, weight = (s64)s->weight, part = 0;
	u32 count = 0; /* of which it is the part */
	bool more, timed = s->timed, all, fresh = false;

	for (u32 i = 0; i < s->n_pieces; i++) {
		s64 ns = c->cost[s->piece[i].key].ns;

		off -= ns > 0 ? ns * s->piece[i].count : 0;
		fresh |= ns < 0;
	}
	more = off > 0;
	off = clamp(off, -COST_MAX, COST_MAX);
	if (timed || more)
		off = off * (timed ? kept(s->n_times) : 1) / most;
	if (!off && !fresh)
		return;
	all = timed || !more;
	for (u32 i = 0; i < s->n_pieces && !all; i++)
		if (c->cost[s->piece[i].key].timed)
			weight -= (s64)s->piece[i].count * s->piece[i].count;
	for (u32 i = 0; i < s->n_pieces; i++) {
		struct cost *x = &c->cost[s->piece[i].key];

		if (!all && x->timed)
			continue;
		if (s->piece[i].count != count) /* mostly it is that of the piece before */
			part = off * (s64)s->piece[i].count / weight;
		count = s->piece[i].count;
		x->ns = clamp((x->ns > 0 ? x->ns : 0) + part, 0, x->limit);
	}
}

static int cmp_u64(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return x < y ? -1 : x > y;
}

/* The part-th part from below of the kept ones; `none` without any. */
static u64 part_of(u64 *time, u32 n_times, u32 part, u64 none)
{
	u32 n = kept(n_times);

	qsort(time, n, sizeof(*time), cmp_u64);
	return n ? time[n / part] : none;
}

/* The median of its times. A thread without a CPU sees waits end too late, and its calls are slow when it has
 * one again, as if it had waited: bounds that are tighter count where there are as many of them. */
static void decide(struct set *s)
{
	u64 time = part_of(s->time, s->n_times, 2, UINT64_MAX);
	u64 bound = part_of(s->bound, s->n_bounds, 4, UINT64_MAX);

	s->timed = s->n_times && (time <= bound || s->n_times > s->n_bounds);
	s->takes = s->timed ? time : bound;
}

int hb_costs__solve(struct hb_costs *c)
{
	u32 most = 1;

	c->cost = calloc(c->n_keys + 1ULL, sizeof(*c->cost));
	if (!c->cost)
		return -ENOMEM;
	for (u32 i = 0; i < c->n_keys; i++) {
		s64 limit = (s64)part_of(c->key[i].time, c->key[i].n_times, 2, COST_MAX);

		c->cost[i] = (struct cost){.ns = -1, .limit = limit};
	}
	for (u32 i = 0; i < c->n_sets; i++) {
		struct set *s = &c->set[i];

		decide(s);
		most = kept(s->n_times) > most ? kept(s->n_times) : most;
		for (u32 k = 0; s->timed && k < s->n_pieces; k++)
			c->cost[s->piece[k].key].timed = true;
	}
	for (u32 r = 0; r < ROUNDS; r++)
		for (u32 i = 0; i < c->n_sets; i++)
			spread(c, &c->set[i], most);
	return 0;
}

u64 hb_costs__longest(const struct hb_costs *c)
{
	u64 most = 0;

	for (u32 i = 0; i < c->n_sets; i++)
		if (c->set[i].timed && c->set[i].takes > most)
			most = c->set[i].takes;
	return most;
}

u64 hb_costs__of(const struct hb_costs *c, u32 key)
{
	return key >= c->n_keys || c->cost[key].ns < 0 ? UINT64_MAX : (u64)c->cost[key].ns;
}
