/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* One rank comes late to collectives, and the others' devices wait for it inside of them. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/model/stats.h"
#include "analysis/patterns/rank_waits.h"
#include "base/text.h"

enum { COUNT, APART, WAIT_SHARE, LATE_SHARE, CHANCE, MOST, DEVICE_APART, DEVICE_WAIT };

static const struct hb_param params[] = {
    [COUNT] = {"count", HB_UNIT_COUNT, 20, "matched collectives, at least"},
    [APART] = {"apart", HB_UNIT_NS, 100000, "ranks that come nearer to each other than this are not late"},
    [WAIT_SHARE] =
	{"wait_share", HB_UNIT_SHARE, 50000,
	 "time in which a rank waits for its device while another has not called yet, of its steps"},
    [LATE_SHARE] = {"late_share", HB_UNIT_SHARE, 500000,
		    "steps in which one rank is the last, of those with late arrivals: it is that one, else "
		    "they take turns"},
    [CHANCE] =
	{"chance", HB_UNIT_SHARE, 1000,
	 "and it would be so at most this likely if each rank were the last equally often (binomial, for "
	 "any of the ranks)"},
    [MOST] = {"most", HB_UNIT_SHARE, 800000,
	      "of the time by which ranks come late one rank's part: then it is that one even if not always"},
    [DEVICE_APART] = {"device_apart", HB_UNIT_NS, 5000,
		      "the same with device records: kernels that begin nearer to each other are not late"},
    [DEVICE_WAIT] = {"device_wait", HB_UNIT_SHARE, 100000,
		     "with device records: waiting for the last rank, of a device's communication"},
    {0},
};

/* What a group's ranks do to each other. */
struct skew {
	struct hb_ivs wait; /* of rank `early`: it waits, and rank `late` has not called */
	u32 early, late;
	u32 times, of_late; /* arrivals that were late; of rank `late` */
	u64 ns, late_ns;    /* by how much, in sum; of rank `late`: the one with most */
	u32 steps, wins;    /* with such arrivals; in which `late` was the last by most */
	u64 longest;
};

struct arrivals { /* late ones of a rank */
	u64 ns;
	u32 n;
};

/* Collectives of one step are late together: a step is one trial. */
struct votes {
	u64 *skew; /* of each rank in this step */
	u32 *wins;
	u32 step, n; /* n: ranks */
	bool any;
};

static void close_step(struct votes *v, struct skew *x)
{
	u32 best = 0;

	if (!v->any)
		return;
	for (u32 r = 1; r < v->n; r++)
		best = v->skew[r] > v->skew[best] ? r : best;
	v->wins[best]++;
	x->steps++;
	memset(v->skew, 0, v->n * sizeof(*v->skew));
	v->any = false;
}

static void count_late(const struct hb_scene *s, const struct hb_coll_group *g, u64 apart,
		       struct arrivals *of, struct votes *v, struct skew *x)
{
	const struct hb_series *p = hb_steps__of_pid(s->steps, g->rank[0].pid);

	for (u32 i = 0; i < g->n; i++) {
		u64 skew = g->coll[i].last - g->coll[i].first;
		u32 step = p ? hb_series__find(p, g->coll[i].first) : HB_NONE;

		if (skew < apart)
			continue;
		if (step == HB_NONE || step != v->step)
			close_step(v, x);
		v->step = step;
		v->any = true;
		v->skew[g->coll[i].late] += skew;
		of[g->coll[i].late].n++;
		of[g->coll[i].late].ns += skew;
		x->times++;
		x->ns += skew;
		x->longest = skew > x->longest ? skew : x->longest;
	}
	close_step(v, x);
}

static int find_late(const struct hb_scene *s, const struct hb_coll_group *g, u64 apart, struct skew *x)
{
	struct arrivals *of = calloc(g->n_ranks, sizeof(*of));
	struct votes v = {.skew = calloc(g->n_ranks, sizeof(*v.skew)),
			  .wins = calloc(g->n_ranks, sizeof(*v.wins)),
			  .step = HB_NONE,
			  .n = g->n_ranks};
	int err = of && v.skew && v.wins ? 0 : -ENOMEM;

	if (!err) {
		count_late(s, g, apart, of, &v, x);
		for (u32 r = 1; r < g->n_ranks; r++)
			x->late = of[r].ns > of[x->late].ns ? r : x->late;
		x->of_late = of[x->late].n;
		x->late_ns = of[x->late].ns;
		x->wins = v.wins[x->late];
	}
	free(of);
	free(v.skew);
	free(v.wins);
	return err;
}

/* Is it one rank's doing? With two ranks each is the last in half of the steps by chance. */
static bool one_rank(const struct hb_look *l, const struct hb_coll_group *g, const struct skew *x)
{
	double p = g->n_ranks * hb_stats__binomial(x->steps, x->wins, 1.0 / g->n_ranks);

	return hb_share(x->wins, x->steps) >= hb_look__param(l, LATE_SHARE) &&
	       p * 1e6 <= (double)hb_look__param(l, CHANCE);
}

/* Some long pauses are no habit, and yet they are one rank's. */
static const char *how_text(const struct hb_look *l, const struct hb_coll_group *g, const struct skew *x,
			    char *buf, size_t size)
{
	u64 part = hb_share(x->late_ns, x->ns);

	if (one_rank(l, g, x))
		snprintf(buf, size, "it is the last in %u of %u steps", x->wins, x->steps);
	else if (part >= hb_look__param(l, MOST))
		snprintf(buf, size, "not always the last, but %llu %% of all waiting is for it",
			 (unsigned long long)(part / 10000));
	else
		snprintf(buf, size, "ranks take turns, none is it by itself");
	return buf;
}

static int measure(const struct hb_scene *s, const struct hb_coll_group *g, u64 apart, struct skew *x)
{
	int err = find_late(s, g, apart, x);

	for (u32 r = 0; r < g->n_ranks && !err; r++) {
		struct hb_ivs wait = {0};

		if (r != x->late)
			err = hb_rank_waits(s, g, r, apart, &wait);
		if (hb_ivs__length(&wait) > hb_ivs__length(&x->wait)) {
			struct hb_ivs old = x->wait;

			x->wait = wait;
			x->early = r;
			wait = old;
		}
		hb_ivs__free(&wait);
	}
	return err;
}

/* The collective that ends a wait: that at which the late rank came. */
static u32 ended_by(const struct hb_coll_group *g, u64 end)
{
	u32 lo = 0, hi = g->n;

	while (lo < hi) {
		u32 mid = lo + (hi - lo) / 2;

		if (g->coll[mid].last < end)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < g->n ? lo : g->n - 1;
}

static int add_cases(struct hb_draft *d, const struct hb_scene *s, const struct hb_coll_group *g,
		     const struct skew *x)
{
	int err = 0;

	for (size_t i = 0; i < x->wait.n && !err; i++) {
		u32 k = ended_by(g, x->wait.v[i].end), thread;
		const struct hb_tl_call *late = hb_coll__call(s->coll, g, k, x->late, &thread);
		struct hb_case c = {.begin = x->wait.v[i].begin,
				    .end = x->wait.v[i].end,
				    .thread = g->rank[x->early].thread,
				    .stack = hb_coll__call(s->coll, g, k, x->early, NULL)->at.stack,
				    .waker = hb_scene__task(s, thread),
				    .waker_stack = late->at.stack};

		err = hb_draft__add_idle(d, &c, &x->wait, &x->wait);
	}
	return err;
}

static int tell(struct hb_look *l, const struct hb_coll_group *g, const struct skew *x)
{
	char late[64], early[64], longest[32], total[32], how[80];
	struct hb_draft *d;

	d = hb_look__find(
	    l, "%s comes late to %u of %u %s (%s), up to %s after the first; %s waits %s for it",
	    hb_scene__thread_text(l->s, g->rank[x->late].thread, late, sizeof(late)), x->of_late, g->n,
	    g->source == HB_COLL_GRAPH ? "graph launches" : "collectives",
	    how_text(l, g, x, how, sizeof(how)), hb_text__ns(longest, sizeof(longest), x->longest),
	    hb_scene__thread_text(l->s, g->rank[x->early].thread, early, sizeof(early)),
	    hb_text__ns(total, sizeof(total), hb_ivs__length(&x->wait)));
	if (!d)
		return -ENOMEM;
	hb_draft__pid(d, g->rank[x->late].pid);
	hb_draft__confidence(d, HB_CONFIDENCE_MEDIUM,
			     "the times are those of calls on the host: which rank is which follows from the "
			     "order of their calls");
	return add_cases(d, l->s, g, x);
}

/* ---- with device records ---- */

/* How long rank r was in the i-th collective before the last one came. */
static u64 waited(const struct hb_scene *s, const struct hb_coll_group *g, u32 i, u32 r)
{
	const struct hb_device *v = hb_devices__at(s->dev, g->rank[r].device);
	const struct hb_device_op *o = &v->op[hb_coll__op(s->coll, g, i, r)];
	u64 begin = hb_coll__moment(o->begin, hb_coll__ahead(s->coll, g, i, r)), until = g->coll[i].last;

	if (begin >= until)
		return 0;
	return until - begin < o->end - o->begin ? until - begin : o->end - o->begin;
}

static u64 all_waits(const struct hb_scene *s, const struct hb_coll_group *g, u32 r)
{
	u64 sum = 0;

	for (u32 i = 0; i < g->n; i++)
		sum += waited(s, g, i, r);
	return sum;
}

static u64 all_time(const struct hb_scene *s, const struct hb_coll_group *g, u32 r)
{
	const struct hb_device *v = hb_devices__at(s->dev, g->rank[r].device);
	u64 sum = 0;

	for (u32 i = 0; i < g->n; i++) {
		const struct hb_device_op *o = &v->op[hb_coll__op(s->coll, g, i, r)];

		sum += o->end - o->begin;
	}
	return sum;
}

static int add_device_cases(struct hb_draft *d, const struct hb_scene *s, const struct hb_coll_group *g,
			    u32 r)
{
	const struct hb_device *v = hb_devices__at(s->dev, g->rank[r].device);
	int err = 0;

	for (u32 i = 0; i < g->n && !err; i++) {
		const struct hb_device_op *o = &v->op[hb_coll__op(s->coll, g, i, r)];
		const struct hb_launch *k = hb_devices__launch_of(s->dev, o);
		u64 ns = waited(s, g, i, r);
		struct hb_case c = {
		    .begin = o->begin, .end = o->begin + ns, .thread = HB_NONE, .stack = k ? k->stack : 0};

		if (ns)
			err = hb_draft__add_device(d, &c, ns);
	}
	return err;
}

static int tell_devices(struct hb_look *l, const struct hb_coll_group *g, const struct skew *x, u64 wait)
{
	const struct hb_device *v = hb_devices__at(l->s->dev, g->rank[x->early].device);
	char late[64], early[64], longest[32], total[32], how[80], clocks[32];
	struct hb_draft *d;
	s64 apart = 0;

	for (u32 r = 0; r < g->n_ranks; r++)
		apart = llabs(g->rank[r].offset) > llabs(apart) ? g->rank[r].offset : apart;
	d = hb_look__find(l,
			  "%s comes late to %u of %u collectives (%s), up to %s after the first; the device "
			  "of %s waits %s in them",
			  hb_scene__rank_text(l->s, &g->rank[x->late], late, sizeof(late)), x->of_late, g->n,
			  how_text(l, g, x, how, sizeof(how)),
			  hb_text__ns(longest, sizeof(longest), x->longest),
			  hb_scene__rank_text(l->s, &g->rank[x->early], early, sizeof(early)),
			  hb_text__ns(total, sizeof(total), wait));
	if (!d)
		return -ENOMEM;
	hb_draft__pid(d, g->rank[x->late].pid);
	hb_draft__device(d, v->index);
	if (llabs(apart) < 100000)
		return add_device_cases(d, l->s, g, x->early);
	hb_draft__say(d, "; the ranks' clocks are %s apart, by the ends of their collectives",
		      hb_text__ns(clocks, sizeof(clocks), (u64)llabs(apart)));
	hb_draft__confidence(d, HB_CONFIDENCE_MEDIUM, "clocks of the ranks differ and are corrected");
	return add_device_cases(d, l->s, g, x->early);
}

static int look_at_devices(struct hb_look *l, const struct hb_coll_group *g)
{
	struct skew x = {.late = 0};
	u64 most = 0;
	int err = find_late(l->s, g, hb_look__param(l, DEVICE_APART), &x);

	for (u32 r = 0; r < g->n_ranks; r++) {
		u64 wait = all_waits(l->s, g, r);

		if (wait > most && r != x.late) {
			most = wait;
			x.early = r;
		}
	}
	hb_look__subject(l);
	if (!err && hb_look__at_least(l, COUNT, g->n) &&
	    hb_look__at_least(l, DEVICE_WAIT, hb_share(most, all_time(l->s, g, x.early))))
		err = tell_devices(l, g, &x, most);
	return err;
}

/* Devices tell of a process what its calls can only suggest. */
static bool told_by_devices(const struct hb_scene *s, u32 pid)
{
	for (u32 i = 0; i < hb_collectives__groups(s->coll); i++) {
		const struct hb_coll_group *g = hb_collectives__at(s->coll, i);

		for (u32 r = 0; g->source == HB_COLL_DEVICE && r < g->n_ranks; r++)
			if (g->rank[r].pid == pid)
				return true;
	}
	return false;
}

static int look_at(struct hb_look *l, const struct hb_coll_group *g)
{
	struct skew x = {.late = 0};
	int err = measure(l->s, g, hb_look__param(l, APART), &x);

	hb_look__subject(l);
	if (!err && hb_look__at_least(l, COUNT, g->n) &&
	    hb_look__at_least(
		l, WAIT_SHARE,
		hb_share(hb_ivs__length(&x.wait), hb_scene__step_time(l->s, g->rank[x.early].pid))))
		err = tell(l, g, &x);
	hb_ivs__free(&x.wait);
	return err;
}

static int detect(struct hb_look *l)
{
	int err = 0;

	for (u32 i = 0; i < hb_collectives__groups(l->s->coll) && !err; i++) {
		const struct hb_coll_group *g = hb_collectives__at(l->s->coll, i);

		if (g->source == HB_COLL_DEVICE)
			err = look_at_devices(l, g);
		else if (!told_by_devices(l->s, g->rank[0].pid))
			err = look_at(l, g);
	}
	return err;
}

HB_PATTERN(p33_straggler) = {
    .id = "P33",
    .layer = "comm",
    .title = "collective skew: a rank that comes late",
    .rank = HB_RANK_SYMPTOM,
    .explains = "P01 P16", /* of the late rank: that others wait for it says more */
    .needs = HB_NEED_RANKS,
    .params = params,
    .rule =
	"collectives of several ranks are matched by the order of their calls; while one rank has not "
	"called yet another already waits for its device, for a good part of its steps. It is one rank's "
	"doing "
	"when that is the last in more steps than chance makes it, or when most of all waiting is for it, "
	"else "
	"they take turns. With device "
	"records of several ranks their kernels are matched instead: a rank waits in a collective until the "
	"last one begins it",
    .fix = "mend what holds the late rank up: other findings of its process, its host, its CPUs",
    .ref = "vllm-project/vllm#52777 (150 to 165 us of skew, 72 to 77 ms a step); #5792; "
	   "deepspeedai/DeepSpeed#3579",
    .traps = "clocks of different hosts; time inside of the kernel is waiting, not bandwidth",
    .settle = "device records of all ranks",
    .detect = detect,
};
