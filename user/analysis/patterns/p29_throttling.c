/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* CFS quota: all threads of a cgroup lose their CPUs together and get them back when the next period begins.
 */
#include <errno.h>
#include <stdlib.h>

#include "analysis/patterns/pattern.h"
#include "base/text.h"

enum { PERIOD, TOGETHER, LEAST, THREADS, PART, EPISODES, ALIGNED, SHARE };

static const struct hb_param params[] = {
    [PERIOD] = {"period", HB_UNIT_NS, 100000000, "the quota's period (cpu.max)"},
    [TOGETHER] = {"together", HB_UNIT_NS, 1000000,
		  "threads that get a CPU within so much of each other do so together"},
    [LEAST] = {"least", HB_UNIT_NS, 5000000, "shorter times without a CPU are the scheduler's"},
    [THREADS] = {"threads", HB_UNIT_COUNT, 2, "threads of one cgroup that are stopped together"},
    [PART] = {"threads_share", HB_UNIT_SHARE, 333333,
	      "and of the group's threads that ever stand still so long"},
    [EPISODES] = {"episodes", HB_UNIT_COUNT, 8, "times that this happens in the window"},
    [ALIGNED] =
	{"aligned", HB_UNIT_SHARE, 700000,
	 "times between two of them that are one to three periods, give or take a fifth, of all such times"},
    [SHARE] = {"share", HB_UNIT_SHARE, 50000, "time in which they were stopped, as a part of the window"},
    {0},
};

struct stop {
	u64 begin, end;
	u32 thread, group;
};

static int cmp_stop(const void *a, const void *b)
{
	const struct stop *x = a, *y = b;

	if (x->group != y->group)
		return x->group < y->group ? -1 : 1;
	return x->end < y->end ? -1 : x->end > y->end;
}

/* String id of the cgroup; without one the process stands for it. */
static u32 group_of(const struct hb_scene *s, u32 pid)
{
	u32 n;
	const struct hb_proc *p = hb_window__procs(s->w, &n);

	for (u32 i = 0; i < n; i++)
		if (p[i].pid == pid && p[i].cgroup)
			return p[i].cgroup;
	return 1U << 31 | pid;
}

/* Their number; as many as there is room for. */
static u32 collect(const struct hb_look *l, struct stop *out, u32 room)
{
	u64 least = hb_look__param(l, LEAST);
	u32 n, to = 0;

	for (u32 t = 0; t < hb_timeline__threads(l->s->tl); t++) {
		const struct hb_tl_sleep *z = hb_timeline__sleeps(l->s->tl, t, &n);
		u32 group = n ? group_of(l->s, hb_timeline__thread(l->s->tl, t)->pid) : 0;

		for (u32 i = 0; i < n; i++)
			if (z[i].ready >= least && to++ < room)
				out[to - 1] = (struct stop){.begin = hb_sleep__woken(&z[i]),
							    .end = z[i].at.end,
							    .thread = t,
							    .group = group};
	}
	return to;
}

struct episodes {
	u32 n, intervals, aligned;
	u64 stopped; /* union of all stops */
	u32 threads; /* most at once */
	u64 last;
};

/* One, two or three periods, give or take a fifth: one may have nobody that runs in it. */
static bool in_rhythm(u64 since, u64 period)
{
	u64 n = period ? (since + period / 2) / period : 0;

	return n >= 1 && n <= 3 &&
	       (since > n * period ? since - n * period : n * period - since) <= period / 5;
}

/* One more moment at which several threads go on, or stop, together. What follows within a quarter of the
 * period belongs to it. */
static void add_episode(struct episodes *e, u64 at, u32 threads, u64 period)
{
	u64 since = at - e->last;

	e->threads = threads > e->threads ? threads : e->threads;
	if (e->n && since < period / 4)
		return;
	if (e->n) {
		e->intervals++;
		e->aligned += in_rhythm(since, period);
	}
	e->n++;
	e->last = at;
}

/* Different threads; an estimate where there are very many. */
static u32 distinct(const struct stop *s, u32 n)
{
	u32 seen[512], threads = 0;

	for (u32 a = 0; a < n && threads < 512; a++) {
		u32 b = 0;

		while (b < threads && seen[b] != s[a].thread)
			b++;
		if (b == threads)
			seen[threads++] = s[a].thread;
	}
	return threads;
}

/* Runs of ends within `together` of each other, by at least two threads. (Kernels from 6.18 on stop each
 * thread by itself, when it next runs: then it is the begin of the stop that shows so.) */
static void find_episodes(const struct hb_look *l, const struct stop *s, u32 n, struct episodes *e)
{
	u64 together = hb_look__param(l, TOGETHER), period = hb_look__param(l, PERIOD);
	u64 least = hb_look__param(l, THREADS), all_threads = distinct(s, n);
	struct hb_ivs all = {0};

	for (u32 i = 0; i < n;) {
		u32 j = i, threads;

		while (j < n && s[j].end - s[i].end <= together) {
			hb_ivs__add(&all, s[j].begin, s[j].end);
			j++;
		}
		threads = distinct(&s[i], j - i);
		if (threads >= least && hb_share(threads, all_threads) >= hb_look__param(l, PART))
			add_episode(e, s[i].end, threads, period);
		i = j;
	}
	hb_ivs__join(&all);
	e->stopped = hb_ivs__length(&all);
	hb_ivs__free(&all);
}

static int look_at(struct hb_look *l, const struct stop *s, u32 n)
{
	struct episodes e = {0};
	struct hb_draft *d;
	char period[32];
	int err = 0;

	find_episodes(l, s, n, &e);
	hb_look__subject(l);
	if (!hb_look__at_least(l, EPISODES, e.n) ||
	    !hb_look__at_least(l, ALIGNED, hb_share(e.aligned, e.intervals)) ||
	    !hb_look__at_least(l, SHARE, hb_share(e.stopped, l->s->wall)))
		return 0;
	d = hb_look__find(
	    l, "up to %u threads of one control group stand still together, %u times, about every %s",
	    e.threads, e.n, hb_text__ns(period, sizeof(period), hb_look__param(l, PERIOD)));
	if (!d)
		return -ENOMEM;
	hb_draft__pid(d, hb_timeline__thread(l->s->tl, s[0].thread)->pid);
	hb_draft__confidence(d, HB_CONFIDENCE_MEDIUM, "inferred from the rhythm: cpu.stat was not recorded");
	for (u32 i = 0; i < n && !err; i++) {
		struct hb_case c = {.begin = s[i].begin, .end = s[i].end, .thread = s[i].thread};

		err = hb_draft__add(d, &c);
	}
	return err;
}

static int detect(struct hb_look *l)
{
	u32 n = collect(l, NULL, 0);
	struct stop *s = calloc((size_t)n + 1, sizeof(*s));
	int err = s ? 0 : -ENOMEM;

	if (s)
		qsort(s, collect(l, s, n), sizeof(*s), cmp_stop);
	for (u32 i = 0; i < n && !err;) {
		u32 from = i;

		while (i < n && s[i].group == s[from].group)
			i++;
		err = look_at(l, &s[from], i - from);
	}
	free(s);
	return err;
}

HB_PATTERN(p29_throttling) = {
    .id = "P29",
    .layer = "OS",
    .title = "CFS quota throttling",
    .rank = HB_RANK_OS,
    .explains = "P30 P21 P22",
    .needs = HB_NEED_SLEEP | HB_NEED_ACCEL,
    .params = params,
    .rule = "threads of one control group that could run stand still together, again and again, in the "
	    "rhythm of the quota's "
	    "period. (cpu.stat would say so directly: it is not recorded yet)",
    .fix = "size pools from cpu.max instead of the number of CPUs, raise the limit, set OMP_NUM_THREADS",
    .ref = "vllm-project/vllm#49460, #49461 (inter-token latency 7-9 to 68-93 ms); sgl-project/sglang#32084; "
	   "vllm-project/vllm#49013 (5.4 times); ollama/ollama#17916 (12.07 to 0.27 tokens/s)",
    .traps = "a cpuset is no quota",
    .settle = "nr_throttled in cpu.stat before and after; cpu.max off",
    .detect = detect,
};
