/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Threads of a pool that sleep and wake for every tiny piece of work, or are made for each. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/model/decode.h"
#include "analysis/patterns/pattern.h"
#include "base/text.h"

enum { WAKES, SLICE, THREADS, BIRTHS };

static const struct hb_param params[] = {
    [WAKES] = {"wakes", HB_UNIT_RATE, 5000, "wake-ups of threads of one name and function in one process"},
    [SLICE] = {"slice", HB_UNIT_NS, 50000, "half of what they run between two sleeps is shorter than this"},
    [THREADS] = {"threads", HB_UNIT_COUNT, 2, "threads of the pool"},
    [BIRTHS] = {"births", HB_UNIT_RATE, 10, "threads made, where it is no pool at all"},
    {0},
};

struct pool { /* threads of one process whose names differ in a number only, and that began alike */
	u32 pid, n;
	u32 routine; /* where they began, see routine_of() */
	char name[20];
	u64 wakes, births;
	struct hb_hist slice;
};

struct pools {
	struct pool *p;
	u32 n;
	u32 *of; /* pool by thread */
};

/* "worker-12" -> "worker". */
static void base_name(const char *comm, char *out, size_t size)
{
	size_t n;

	snprintf(out, size, "%s", comm);
	n = strlen(out);
	while (n && (isdigit((unsigned char)out[n - 1]) || strchr("-_#:/ ", out[n - 1])))
		out[--n] = 0;
}

/* What every thread of Python begins with. */
static const struct hb_frame_rule beginnings[] = {
    {"threading", "_bootstrap*"}, {"threading", "Thread.run"}, {"threading", "run"}, {NULL, NULL}};

enum { LOOKED = 256 }; /* stacks that are kept in mind */

/* The name of the function that the thread was made for, by where it sleeps: a string; 0 not known. Threads
 * of Python all have the process's name, whatever they do. */
static u32 routine_of(const struct hb_scene *s, u32 t)
{
	u32 n, pid = hb_timeline__thread(s->tl, t)->pid;
	const struct hb_tl_sleep *z = hb_timeline__sleeps(s->tl, t, &n);
	u32 looked[LOOKED] = {0};

	for (u32 i = 0; i < n; i++) {
		u32 *at = &looked[z[i].at.stack % LOOKED];
		struct hb_stack st;

		if (!z[i].at.stack ||
		    z[i].at.stack == *at) /* as threads that are not Python's sleep in few places */
			continue;
		*at = z[i].at.stack;
		st = hb_window__stack(s->w, pid, *at);
		for (u32 k = 0; k < st.n; k++) {
			const struct hb_loc *l = hb_window__loc(s->w, st.locs[k]);

			if (l && l->func && l->lang == HB_LANG_PYTHON &&
			    !hb_scene__loc(s, st.locs[k], beginnings))
				return l->func;
		}
	}
	return 0;
}

static u32 pool_of(struct pools *all, const struct hb_scene *s, u32 thread)
{
	const struct hb_tl_thread *t = hb_timeline__thread(s->tl, thread);
	u32 routine = routine_of(s, thread);
	char name[20];

	base_name(hb_decode__comm(s->w, t->task), name, sizeof(name));
	for (u32 i = 0; i < all->n; i++)
		if (all->p[i].pid == t->pid && all->p[i].routine == routine &&
		    strcmp(all->p[i].name, name) == 0)
			return i;
	all->p[all->n] = (struct pool){.pid = t->pid, .routine = routine};
	memcpy(all->p[all->n].name, name, sizeof(name));
	return all->n++;
}

/* A thread that waits for the GIL is not done with its piece of work. */
static bool parks(const struct hb_scene *s, u32 t, u32 gils, const struct hb_tl_sleep *z)
{
	return z->state == HB_TSTATE_SLEEPING &&
	       (z->chankind == HB_CHAN_FUTEX || z->chankind == HB_CHAN_EPOLL ||
		z->chankind == HB_CHAN_EVENTFD || z->chankind == HB_CHAN_PIPE) &&
	       (!gils || hb_timeline__at(s->tl, t, HB_TL_GIL, z->at.begin) == HB_NONE);
}

static int sum_up(const struct hb_scene *s, u32 t, struct pool *p)
{
	u32 n, gils;
	const struct hb_tl_sleep *z = hb_timeline__sleeps(s->tl, t, &n);

	hb_timeline__gils(s->tl, t, &gils);
	p->n++;
	p->births += hb_timeline__thread(s->tl, t)->born != 0;
	for (u32 i = 0; i < n; i++) {
		if (!parks(s, t, gils, &z[i]))
			continue;
		p->wakes++;
		if (i + 1 < n && z[i + 1].at.begin >= z[i].at.end &&
		    hb_hist__add(&p->slice, z[i + 1].at.begin - z[i].at.end))
			return -ENOMEM;
	}
	return 0;
}

/* From the wake-up to the next sleep: the way to the CPU and the bit of work. */
static int add_cases(struct hb_draft *d, const struct hb_scene *s, u32 t)
{
	u32 n, gils;
	const struct hb_tl_sleep *z = hb_timeline__sleeps(s->tl, t, &n);
	int err = 0;

	hb_timeline__gils(s->tl, t, &gils);
	for (u32 i = 0; i + 1 < n && !err; i++) {
		struct hb_case c = {.begin = hb_sleep__woken(&z[i]),
				    .end = z[i + 1].at.begin,
				    .thread = t,
				    .stack = z[i].at.stack,
				    .slept = i + 1};

		if (parks(s, t, gils, &z[i]) && c.end > c.begin)
			err = hb_draft__add(d, &c);
	}
	return err;
}

/* A thread that gives the pool its rounds: it sleeps until a thread of the pool wakes it, and what it does
 * before the next such sleep, if that is as short, is to wake them again. */
static int add_waits(struct hb_draft *d, const struct hb_look *l, u32 t, const u32 *of, u32 number)
{
	u64 slice = hb_look__param(l, SLICE);
	u32 n, edges, gils;
	const struct hb_tl_sleep *z = hb_timeline__sleeps(l->s->tl, t, &n);
	const struct hb_edge *e = hb_wake__edges(l->s->wk, t, &edges);
	int err = 0;

	hb_timeline__gils(l->s->tl, t, &gils);
	for (u32 i = 0; i < n && !err; i++) {
		struct hb_case c = {.begin = z[i].at.begin,
				    .end = z[i].at.end,
				    .thread = t,
				    .stack = z[i].at.stack,
				    .slept = i + 1};

		if (e[i].thread == HB_NONE || of[e[i].thread] != number || !parks(l->s, t, gils, &z[i]))
			continue;
		if (i + 1 < n && z[i + 1].at.begin >= c.end && z[i + 1].at.begin - c.end <= slice)
			c.end = z[i + 1].at.begin;
		err = hb_draft__add(d, &c);
	}
	return err;
}

static int look_at(struct hb_look *l, struct pool *p, const u32 *of, u32 number)
{
	u64 wakes = hb_rate(p->wakes, l->s->wall), births = hb_rate(p->births, l->s->wall);
	u64 slice = hb_hist__quantile(&p->slice, 0.5);
	struct hb_draft *d;
	char text[32];
	int err = 0;

	hb_look__subject(l);
	if (births >= hb_look__param(l, BIRTHS)) {
		hb_look__at_least(l, BIRTHS, births);
		d = hb_look__find(l, "process %u makes %llu threads called %s, %llu a second", p->pid,
				  (unsigned long long)p->births, p->name, (unsigned long long)births);
	} else {
		if (!hb_look__at_least(l, WAKES, wakes) || !hb_look__at_least(l, THREADS, p->n) ||
		    !hb_look__at_most(l, SLICE, slice))
			return 0;
		d = hb_look__find(l, "%u threads called %s wake %llu times a second and run for %s each time",
				  p->n, p->name, (unsigned long long)wakes,
				  hb_text__ns(text, sizeof(text), slice));
	}
	if (!d)
		return -ENOMEM;
	hb_draft__pid(d, p->pid);
	for (u32 t = 0; t < hb_timeline__threads(l->s->tl) && !err; t++)
		err = of[t] == number ? add_cases(d, l->s, t) : add_waits(d, l, t, of, number);
	return err;
}

static int detect(struct hb_look *l)
{
	u32 n = hb_timeline__threads(l->s->tl);
	struct pools all = {.p = calloc(n + 1, sizeof(*all.p)), .of = calloc(n + 1, sizeof(*all.of))};
	int err = all.p && all.of ? 0 : -ENOMEM;

	for (u32 t = 0; t < n && !err; t++) {
		all.of[t] = pool_of(&all, l->s, t);
		err = sum_up(l->s, t, &all.p[all.of[t]]);
	}
	for (u32 i = 0; i < all.n && !err; i++)
		err = look_at(l, &all.p[i], all.of, i);
	for (u32 i = 0; i < all.n; i++)
		hb_hist__free(&all.p[i].slice);
	free(all.p);
	free(all.of);
	return err;
}

HB_PATTERN(p23_park_churn) = {
    .id = "P23",
    .layer = "runtime",
    .title = "thread pool that parks and unparks for every task",
    .rank = HB_RANK_CODE,
    .explains = "P22 P30",
    .needs = HB_NEED_SLEEP | HB_NEED_ACCEL,
    .params = params,
    .rule =
	"threads of one name, that run the same function, wake thousands of times a second and run for "
	"microseconds each time, or are made anew many times a second, and the next launch waits for them. "
	"Waiting for the GIL is not parking",
    .fix = "hand over several tasks at once, bound the pool, spin shortly before parking, fewer workers",
    .ref = "ggml-org/llama.cpp#8672 (twice the switches with a paused pool); pydantic/pydantic-ai#4884 (30 "
	   "to 800 threads)",
    .traps = "timers of idle threads",
    .settle = "vary the size of the pool",
    .record = "syscalls=all",
    .detect = detect,
};
