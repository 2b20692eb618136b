/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A thread on the way to the next launch could run and had no CPU. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "analysis/patterns/pattern.h"
#include "base/map.h"
#include "base/text.h"

enum { LEAST, P95, EXPOSED_SHARE };

static const struct hb_param params[] = {
    [LEAST] = {"least", HB_UNIT_NS, 100000, "shorter delays are what a wake-up costs anyway"},
    [P95] = {"p95", HB_UNIT_NS, 200000,
	     "95 of 100 delays of a thread on the way to a launch are shorter than this"},
    [EXPOSED_SHARE] = {"exposed_share", HB_UNIT_SHARE, 20000, "what they exposed, as a part of the steps"},
    {0},
};

struct sums {
	struct hb_hist delay;
	u64 exposed, preempted;
	struct hb_map *ran; /* name (string) -> ns of delays in which a thread of that name had the CPU */
	struct hb_map *pid; /* name -> its process, SEVERAL when there are more */
};
#define SEVERAL UINT64_MAX

#define NAMED 3 /* of those that ran instead */

static int note_runner(const struct hb_scene *s, const struct hb_tl_sleep *z, struct sums *sum)
{
	const struct hb_task *t = z->ran ? hb_window__task_by_tid(s->w, z->ran) : NULL;
	u64 *ns = t && t->comm ? hb_map__slot(sum->ran, t->comm, NULL) : NULL;
	u64 *pid = ns ? hb_map__slot(sum->pid, t->comm, NULL) : NULL;

	if (!t || !t->comm)
		return 0;
	if (!pid)
		return -ENOMEM;
	*ns += z->ready;
	*pid = !*pid || *pid == t->pid ? t->pid : SEVERAL;
	return 0;
}

static int sum_up(const struct hb_scene *s, u32 t, u64 least, struct sums *sum)
{
	u32 n;
	const struct hb_tl_sleep *z = hb_timeline__sleeps(s->tl, t, &n);

	for (u32 i = 0; i < n; i++) {
		if (!z[i].ready)
			continue;
		if (hb_hist__add(&sum->delay, z[i].ready))
			return -ENOMEM;
		if (z[i].ready >= least) {
			sum->exposed += hb_scene__likely(s, t, z[i].at.end - z[i].ready, z[i].at.end);
			if (note_runner(s, &z[i], sum))
				return -ENOMEM;
		}
		sum->preempted += z[i].state == HB_TSTATE_RUNNING;
	}
	return 0;
}

static int add_cases(struct hb_draft *d, const struct hb_scene *s, u32 t, u64 least)
{
	u32 n;
	const struct hb_tl_sleep *z = hb_timeline__sleeps(s->tl, t, &n);

	for (u32 i = 0; i < n; i++) {
		struct hb_case c = {.begin = z[i].at.end - z[i].ready,
				    .end = z[i].at.end,
				    .thread = t,
				    .stack = z[i].at.stack,
				    .waker = z[i].ran ? hb_window__task_by_tid(s->w, z[i].ran) : NULL};

		if (z[i].ready && z[i].ready >= least && hb_draft__add(d, &c))
			return -ENOMEM;
	}
	return 0;
}

static const char *runner_text(const struct hb_scene *s, const struct sums *sum, u64 name, char *buf,
			       size_t size)
{
	u64 pid = SEVERAL;
	size_t n;

	snprintf(buf, size, "%s", hb_window__string(s->w, (u32)name));
	hb_text__clean(buf);
	n = strlen(buf);
	hb_map__get(sum->pid, name, &pid);
	if (pid == SEVERAL)
		snprintf(buf + n, size - n, " (several processes)");
	else
		snprintf(buf + n, size - n, " (pid %llu)", (unsigned long long)pid);
	return buf;
}

/* "; meanwhile cc1 (several processes) had its CPU for 61 % of the time, nginx (pid 7) for 20 %": the largest
 * first. */
static void say_runners(struct hb_look *l, struct hb_draft *d, const struct sums *sum)
{
	u64 name, ns, before = UINT64_MAX, all = sum->delay.total;

	for (u32 n = 0; n < NAMED; n++) {
		u64 best = 0, best_name = 0;
		char text[96];

		for (size_t pos = 0; hb_map__next(sum->ran, &pos, &name, &ns);)
			if (ns < before && ns > best) {
				best = ns;
				best_name = name;
			}
		if (best * 20 < all) /* less than 5 % says nothing */
			break;
		before = best;
		hb_draft__say(d,
			      n ? ", %s for %llu %%" : "; meanwhile %s had its CPU for %llu %% of the time",
			      runner_text(l->s, sum, best_name, text, sizeof(text)),
			      (unsigned long long)(hb_share(best, all) / 10000));
	}
}

/* The first thread of a process opens the finding, the others add to it: their delays have one cause. */
static int tell(struct hb_look *l, u32 t, const struct sums *sum, u64 p95, struct hb_draft **d)
{
	char who[64], text[32];

	hb_text__ns(text, sizeof(text), p95);
	hb_scene__thread_text(l->s, t, who, sizeof(who));
	if (!*d) {
		*d = hb_look__find(
		    l,
		    "%s waited for a CPU %llu times, 95 %% of them up to %s; %llu times it was taken "
		    "off one",
		    who, (unsigned long long)sum->delay.count, text, (unsigned long long)sum->preempted);
		if (*d)
			hb_draft__pid(*d, hb_timeline__thread(l->s->tl, t)->pid);
	} else {
		hb_draft__say(*d, "; %s %llu times, up to %s", who, (unsigned long long)sum->delay.count,
			      text);
	}
	if (!*d)
		return -ENOMEM;
	say_runners(l, *d, sum);
	return add_cases(*d, l->s, t, hb_look__param(l, LEAST));
}

static int look_at(struct hb_look *l, u32 t, struct hb_draft **d)
{
	const struct hb_tl_thread *th = hb_timeline__thread(l->s->tl, t);
	struct sums sum = {.ran = hb_map__new(), .pid = hb_map__new()};
	int err = sum.ran && sum.pid ? sum_up(l->s, t, hb_look__param(l, LEAST), &sum) : -ENOMEM;
	u64 p95 = hb_hist__quantile(&sum.delay, 0.95);
	u64 share = hb_share(sum.exposed, hb_scene__step_time(l->s, th->pid));

	hb_look__subject(l);
	if (!err && sum.delay.count && hb_look__either(l, EXPOSED_SHARE, share, P95, p95))
		err = tell(l, t, &sum, p95, d);
	hb_hist__free(&sum.delay);
	hb_map__free(sum.ran);
	hb_map__free(sum.pid);
	return err;
}

static int of_process(struct hb_look *l, const struct hb_proc_stat *p)
{
	struct hb_draft *d = NULL;
	int err = 0;

	for (u32 t = hb_timeline__of_pid(l->s->tl, p->pid, HB_NONE); t != HB_NONE && !err;
	     t = hb_timeline__of_pid(l->s->tl, p->pid, t))
		if (hb_scene__leads(l->s, t))
			err = look_at(l, t, &d);
	return err;
}

static int detect(struct hb_look *l)
{
	return hb_look__procs(l, of_process);
}

HB_PATTERN(p30_run_queue) = {
    .id = "P30",
    .layer = "OS",
    .title = "run-queue delay and preemption",
    .rank = HB_RANK_OS,
    .needs = HB_NEED_SLEEP | HB_NEED_ACCEL,
    .params = params,
    .rule = "a thread on the way to the next launch is ready to run and waits for a CPU: often long, or for "
	    "so much of the "
	    "steps that the device idles. Named are those that took the CPU from it, or had it until it came "
	    "back",
    .fix =
	"pin or isolate the engine's threads, lower the priority of the others, give the container more CPUs",
    .ref = "vllm-project/vllm-ascend#6569",
    .traps = "SMT siblings share a core without showing here; a hypervisor that takes the CPU away looks the "
	     "same (steal in "
	     "/proc/stat); quota throttling is P29",
    .settle =
	"give the threads CPUs of their own for a while (taskset) and compare; that alone need not help "
	"(vllm-project/vllm#52777)",
    .detect = detect,
};
