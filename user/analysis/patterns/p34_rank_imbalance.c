/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Some ranks get more tokens, or busier experts, than others: the others wait for them in the next
 * collective. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/model/dist.h"
#include "analysis/patterns/pattern.h"
#include "base/map.h"
#include "base/text.h"

enum { STEPS, RATIO, CLOCK };

static const struct hb_param params[] = {
    [STEPS] = {"steps", HB_UNIT_COUNT, 50, "steps that all ranks have, at least"},
    [RATIO] = {"ratio", HB_UNIT_RATIO, 1200000,
	       "the slowest rank's time over the mean of all, in the median step"},
    [CLOCK] = {"clock", HB_UNIT_RATIO, 1100000,
	       "the same of all other kernels of that rank, at most: else its device is slower"},
    {0},
};

enum { OTHER, GROUPED, ATTENTION, FAMILIES };
static const char *const family_name[] = {
    [GROUPED] = "grouped products (experts) take", [ATTENTION] = "attention takes"};

static u32 family_of(const char *name)
{
	static const struct {
		const char *glob;
		u32 family;
	} globs[] = {{"*group*gemm*", GROUPED}, {"*Group*Gemm*", GROUPED},  {"*GroupProblem*", GROUPED},
		     {"*grouped*", GROUPED},	{"*moe*", GROUPED},	    {"*Moe*", GROUPED},
		     {"*MoE*", GROUPED},	{"*expert*", GROUPED},	    {"*ttention*", ATTENTION},
		     {"*fmha*", ATTENTION},	{"*flash_fwd*", ATTENTION}, {"*paged_kv*", ATTENTION},
		     {"*_mla*", ATTENTION}};

	for (size_t i = 0; i < sizeof(globs) / sizeof(*globs); i++)
		if (hb_text__glob(globs[i].glob, name))
			return globs[i].family;
	return OTHER;
}

struct cell { /* what a rank did in a step, of one family */
	u64 ns, begin, end;
};

struct table {
	const struct hb_coll_group *g;
	u32 steps;	   /* of the first rank */
	u32 *of;	   /* [rank * steps + step of the first rank]: its own step; HB_NONE */
	struct cell *cell; /* [(rank * FAMILIES + family) * steps + step of the first rank] */
	u64 *most, *mean;  /* by step, of the family that is looked at; mean 0: not compared */
	u64 *room;
	u32 *heaviest; /* rank, by step */
};

static struct cell *cell_of(const struct table *t, u32 rank, u32 family, u32 step)
{
	return &t->cell[((size_t)rank * FAMILIES + family) * t->steps + step];
}

static const struct hb_device *device_of(const struct hb_scene *s, const struct hb_coll_group *g, u32 rank)
{
	return hb_devices__at(s->dev, g->rank[rank].device);
}

/* The step of a rank in which an operation was launched; HB_NONE. */
static u32 step_of(const struct hb_scene *s, const struct hb_series *p, const struct hb_device_op *o)
{
	const struct hb_launch *k = hb_devices__launch_of(s->dev, o);

	return p && k ? hb_series__find(p, k->begin) : HB_NONE;
}

/* Steps that launched the same collective are the same step. */
static void pair_steps(const struct hb_scene *s, struct table *t)
{
	const struct hb_coll_group *g = t->g;

	for (u32 r = 0; r < g->n_ranks; r++) {
		const struct hb_series *first = hb_steps__of_pid(s->steps, g->rank[0].pid),
				       *own = hb_steps__of_pid(s->steps, g->rank[r].pid);

		for (u32 i = 0; i < g->n; i++) {
			u32 a = step_of(s, first, &device_of(s, g, 0)->op[hb_coll__op(s->coll, g, i, 0)]);
			u32 b = step_of(s, own, &device_of(s, g, r)->op[hb_coll__op(s->coll, g, i, r)]);

			if (a != HB_NONE && b != HB_NONE && t->of[r * t->steps + a] == HB_NONE)
				t->of[r * t->steps + a] = b;
		}
	}
}

static void add_op(const struct table *t, u32 rank, u32 family, u32 step, const struct hb_device_op *o)
{
	struct cell *c = cell_of(t, rank, family, step);

	c->ns += o->end - o->begin;
	c->begin = !c->begin || o->begin < c->begin ? o->begin : c->begin;
	c->end = o->end > c->end ? o->end : c->end;
}

static int sum_rank(const struct hb_scene *s, struct table *t, u32 rank)
{
	const struct hb_device *v = device_of(s, t->g, rank);
	const struct hb_series *p = hb_steps__of_pid(s->steps, t->g->rank[rank].pid);
	struct hb_map *families = hb_map__new(), *steps = hb_map__new();
	int err = families && steps ? 0 : -ENOMEM;

	for (u32 i = 0; i < t->steps && !err; i++)
		if (t->of[rank * t->steps + i] != HB_NONE)
			err = hb_map__put(steps, t->of[rank * t->steps + i], i);
	for (u32 i = 0; i < v->n_ops && !err; i++) {
		const struct hb_device_op *o = &v->op[i];
		u32 own =
		    o->kind == HB_DEVKIND_KERNEL && o->work == HB_WORK_COMPUTE ? step_of(s, p, o) : HB_NONE;
		u64 step, *family;

		if (own == HB_NONE || !hb_map__get(steps, own, &step))
			continue;
		family = hb_map__slot(families, o->name, NULL);
		if (!family)
			err = -ENOMEM;
		else if (!*family)
			*family = 1 + family_of(hb_window__string(s->w, o->name));
		if (!err)
			add_op(t, rank, (u32)*family - 1, (u32)step, o);
	}
	hb_map__free(families);
	hb_map__free(steps);
	return err;
}

static void free_table(struct table *t)
{
	free(t->of);
	free(t->cell);
	free(t->most);
	free(t->mean);
	free(t->room);
	free(t->heaviest);
}

static int make_table(const struct hb_scene *s, struct table *t)
{
	size_t ranks = t->g->n_ranks, n = t->steps;
	int err = 0;

	t->of = malloc((ranks * n + 1) * sizeof(*t->of));
	t->cell = calloc(ranks * FAMILIES * n + 1, sizeof(*t->cell));
	t->most = calloc(n + 1, sizeof(*t->most));
	t->mean = calloc(n + 1, sizeof(*t->mean));
	t->room = calloc(n + 1, sizeof(*t->room));
	t->heaviest = calloc(n + 1, sizeof(*t->heaviest));
	if (!t->of || !t->cell || !t->most || !t->mean || !t->room || !t->heaviest)
		return -ENOMEM;
	memset(t->of, 0xff, (ranks * n + 1) * sizeof(*t->of)); /* HB_NONE */
	pair_steps(s, t);
	for (u32 r = 0; r < t->g->n_ranks && !err; r++)
		err = sum_rank(s, t, r);
	return err;
}

/* Compares the ranks in each step that all of them have. Returns how many steps these are. */
static u32 compare(const struct table *t, u32 family)
{
	u32 steps = 0;

	for (u32 i = 0; i < t->steps; i++) {
		u64 sum = 0;
		u32 r;

		t->most[i] = t->mean[i] = 0;
		for (r = 0; r < t->g->n_ranks && t->of[r * t->steps + i] != HB_NONE; r++) {
			u64 ns = cell_of(t, r, family, i)->ns;

			sum += ns;
			if (ns >= t->most[i]) {
				t->most[i] = ns;
				t->heaviest[i] = r;
			}
		}
		if (r < t->g->n_ranks || !sum)
			continue;
		t->mean[i] = sum / r;
		t->room[steps++] = hb_share(t->most[i], t->mean[i] ? t->mean[i] : 1);
	}
	return steps;
}

/* Rank that was the slowest in most steps; *times: how many. */
static int slowest(const struct table *t, u32 *rank, u32 *times)
{
	u32 *n = calloc(t->g->n_ranks, sizeof(*n));

	if (!n)
		return -ENOMEM;
	*rank = 0;
	for (u32 i = 0; i < t->steps; i++)
		n[t->heaviest[i]] += t->mean[i] > 0;
	for (u32 r = 1; r < t->g->n_ranks; r++)
		*rank = n[r] > n[*rank] ? r : *rank;
	*times = n[*rank];
	free(n);
	return 0;
}

/* All its other kernels, over the mean of the ranks: millionths. */
static u64 rest_of(const struct table *t, u32 rank, u32 family)
{
	u64 all = 0, own = 0;

	for (u32 r = 0; r < t->g->n_ranks; r++)
		for (u32 f = 0; f < FAMILIES; f++)
			for (u32 i = 0; i < t->steps; i++) {
				u64 ns = f != family && t->mean[i] ? cell_of(t, r, f, i)->ns : 0;

				all += ns;
				own += r == rank ? ns : 0;
			}
	return hb_share(own * t->g->n_ranks, all);
}

static int tell(struct hb_look *l, const struct table *t, u32 family, u32 rank, u32 times, u32 steps,
		u64 ratio)
{
	char who[64], times_text[32];
	struct hb_draft *d = hb_look__find(
	    l,
	    "%s %s as long on the slowest of %u ranks as on average, in the median of %u steps; it is "
	    "%s in %u of them",
	    family_name[family], hb_unit__text(HB_UNIT_RATIO, ratio, times_text, sizeof(times_text)),
	    t->g->n_ranks, steps, hb_scene__rank_text(l->s, &t->g->rank[rank], who, sizeof(who)), times);
	int err = 0;

	if (!d)
		return -ENOMEM;
	hb_draft__pid(d, t->g->rank[rank].pid);
	hb_draft__device(d, t->g->rank[rank].device);
	for (u32 i = 0; i < t->steps && !err; i++) {
		const struct cell *x = cell_of(t, t->heaviest[i], family, i);
		struct hb_case c = {.begin = x->begin, .end = x->end, .thread = HB_NONE};

		if (t->mean[i] && t->most[i] > t->mean[i])
			err = hb_draft__add_device(d, &c, t->most[i] - t->mean[i]);
	}
	return err;
}

static int judge(struct hb_look *l, const struct table *t, u32 family)
{
	u32 steps = compare(t, family), rank, times;
	u64 ratio = hb_dist__median(t->room, steps);

	if (!steps)
		return 0;
	if (slowest(t, &rank, &times))
		return -ENOMEM;
	hb_look__subject(l);
	if (!hb_look__at_least(l, STEPS, steps) || !hb_look__at_least(l, RATIO, ratio) ||
	    !hb_look__at_most(l, CLOCK, rest_of(t, rank, family)))
		return 0;
	return tell(l, t, family, rank, times, steps, ratio);
}

/* Several streams of the same devices may make groups: the one with most collectives tells of the steps. */
static bool best_of_devices(const struct hb_scene *s, u32 group)
{
	const struct hb_coll_group *g = hb_collectives__at(s->coll, group);

	for (u32 i = 0; i < hb_collectives__groups(s->coll); i++) {
		const struct hb_coll_group *x = hb_collectives__at(s->coll, i);

		if (i != group && x->source == HB_COLL_DEVICE && x->rank[0].device == g->rank[0].device &&
		    (x->n > g->n || (x->n == g->n && i < group)))
			return false;
	}
	return true;
}

static int by_group(struct hb_look *l, const struct hb_coll_group *g)
{
	const struct hb_series *p = hb_steps__of_pid(l->s->steps, g->rank[0].pid);
	struct table t = {.g = g, .steps = p ? p->n : 0};
	int err;

	if (!t.steps) {
		hb_look__unchecked(l, HB_NEED_STEP, "needs %s of every rank, to compare them step by step",
				   hb_need__text(HB_NEED_STEP));
		return 0;
	}
	err = make_table(l->s, &t);
	for (u32 f = GROUPED; f < FAMILIES && !err; f++)
		err = judge(l, &t, f);
	free_table(&t);
	return err;
}

static int detect(struct hb_look *l)
{
	int err = 0;

	for (u32 i = 0; i < hb_collectives__groups(l->s->coll) && !err; i++) {
		const struct hb_coll_group *g = hb_collectives__at(l->s->coll, i);

		if (g->source == HB_COLL_DEVICE && best_of_devices(l->s, i))
			err = by_group(l, g);
	}
	return err;
}

HB_PATTERN(p34_rank_imbalance) = {
    .id = "P34",
    .layer = "comm",
    .title = "load imbalance between ranks",
    .rank = HB_RANK_OWN,
    .explains = "P33",
    .needs = HB_NEED_DEVICE | HB_NEED_RANK_DEVICES,
    .params = params,
    .rule = "time of grouped products, or of attention, in a step: on the slowest rank 1.2 times the mean of "
	    "the ranks, in the median of 50 steps and more, while that rank's other kernels are no slower. "
	    "Ranks are those whose collectives match on their devices; a step of one rank is that of another "
	    "which launched the same collective",
    .fix = "rebalance experts, route data-parallel requests by load",
    .ref = "vllm-project/vllm#18343; with care #50647 (a synchronous rebalance was 3.2 times slower)",
    .traps = "devices of different clocks; one request with a long context among short ones",
    .settle = "token counts by rank",
    .detect = detect,
};
