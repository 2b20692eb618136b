/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Idle time of devices that no finding explains: how much there is, and what the thread that launches did. */
#include <errno.h>

#include "analysis/model/decode.h"
#include "analysis/model/doing.h"
#include "analysis/report/analyze_private.h"
#include "base/buf.h"
#include "base/text.h"

/* Of the time with work, in per cent: below it is not worth a word. */
#define WORTH 15
/* Nor is a function that has less than one of so many parts of the time. */
#define LITTLE 10

/* What was known or likely idle, without the time in which nothing was asked of the process. 0 or -ENOMEM. */
static int idle_of(const struct hb_analysis *a, u32 pid, struct hb_ivs *out)
{
	struct hb_ivs all = {0}, outside = {0};
	u32 n;
	const struct hb_busy_span *b = hb_busy__spans(hb_host__busy(a->h), pid, &n);
	bool oom;

	for (u32 i = 0; i < n; i++)
		if (hb_busy_span__likely(&b[i]) == HB_BUSY_IDLE)
			hb_ivs__append(&all, b[i].begin, hb_busy_span__end(&b[i]));
	hb_path__outside(hb_host__path(a->h), pid, &outside);
	hb_ivs__minus(&all, &outside, out);
	oom = all.oom || outside.oom || out->oom;
	hb_ivs__free(&all);
	hb_ivs__free(&outside);
	return oom ? -ENOMEM : 0;
}

/* A finding of a process without a device of its own, such as an engine that waits before its workers launch,
 * is about the devices of others: the critical paths of those led to it. */
static bool about(const struct hb_analysis *a, const struct hb_finding *f, u32 pid)
{
	u32 n;

	if (!f->proc || f->proc->pid == pid)
		return true;
	hb_busy__spans(hb_host__busy(a->h), f->proc->pid, &n);
	return n == 0;
}

/* What the findings expose: as times, and as a sum where samples stand for it. 0 or -ENOMEM. */
static int explained(const struct hb_analysis *a, u32 pid, struct hb_ivs *out, u64 *more)
{
	const struct hb_finding *f;

	for (u32 i = 0; (f = hb_findings__at(a->f, i)); i++) {
		if (!about(a, f, pid))
			continue;
		for (size_t k = 0; k < f->exposed->n && !f->sampled; k++)
			hb_ivs__add(out, f->exposed->v[k].begin, f->exposed->v[k].end);
		*more += f->sampled ? f->exposed_likely : 0;
	}
	hb_ivs__join(out);
	return out->oom ? -ENOMEM : 0;
}

int hb_analysis__unexplained(const struct hb_analysis *a, u32 pid, struct hb_ivs *out, u64 *ns)
{
	struct hb_ivs idle = {0}, by = {0};
	u64 more = 0, left;
	int err = idle_of(a, pid, &idle);

	err = err ? err : explained(a, pid, &by, &more);
	if (!err)
		hb_ivs__minus(&idle, &by, out);
	hb_ivs__free(&idle);
	hb_ivs__free(&by);
	left = hb_ivs__length(out);
	*ns = left > more ? left - more : 0;
	return err || out->oom ? -ENOMEM : 0;
}

struct who { /* a thread in that time: the function it was in for most of it */
	const struct hb_task *task;
	u32 loc;
	u64 ns, busy, waited; /* in that function; in those that do not wait, and in those that do */
	u64 slept;
};

static int look_at(const struct hb_analysis *a, u32 thread, const struct hb_ivs *idle, struct who *x)
{
	const struct hb_timeline *tl = hb_host__timeline(a->h);
	struct hb_doing *d = hb_doing__new(tl);
	const struct hb_did *most;
	int err = d ? 0 : -ENOMEM;

	*x = (struct who){.task = hb_timeline__thread(tl, thread)->task};
	for (size_t i = 0; i < idle->n && !err; i++) {
		err = hb_doing__add(d, thread, idle->v[i].begin, idle->v[i].end, NULL);
		x->slept += hb_timeline__use(tl, thread, idle->v[i].begin, idle->v[i].end).slept;
	}
	most = err ? NULL : hb_doing__most(d);
	if (most) {
		x->loc = most->loc;
		x->ns = most->ns;
		x->waited = hb_doing__sum(d).waited;
		x->busy = hb_doing__sum(d).known - x->waited;
	}
	hb_doing__free(d);
	return err;
}

/* The other thread of the process that worked most meanwhile. */
static int busiest(const struct hb_analysis *a, u32 pid, u32 but, const struct hb_ivs *idle, struct who *best)
{
	const struct hb_timeline *tl = hb_host__timeline(a->h);
	struct who x;
	int err = 0;

	*best = (struct who){0};
	for (u32 t = HB_NONE; (t = hb_timeline__of_pid(tl, pid, t)) != HB_NONE && !err;) {
		err = t == but ? 0 : look_at(a, t, idle, &x);
		if (t != but && !err && x.busy > best->busy)
			*best = x;
	}
	return err;
}

static void add_text(const struct hb_analysis *a, const struct who *x, const char *role, u64 whole,
		     struct hb_buf *out)
{
	const struct hb_loc *loc = x->loc ? hb_window__loc(a->w, x->loc) : NULL;
	char frame[160];

	if (x->slept * 2 > whole)
		hb_buf__printf(out, "; %s (%u)%s slept for %.0f %% of it", hb_decode__comm(a->w, x->task),
			       x->task->tid, role, 100.0 * (double)x->slept / (double)whole);
	else if (loc && x->ns * LITTLE >= whole)
		hb_buf__printf(out, "; %s (%u)%s was in %s for %.0f %% of it", hb_decode__comm(a->w, x->task),
			       x->task->tid, role,
			       hb_decode__frame(a->w, loc, HB_FRAME_LINE, frame, sizeof(frame)),
			       100.0 * (double)x->ns / (double)whole);
}

/* "; python3 (100), which launches, was in get (queue.py:154) for 99 % of it". Where that waits, also who
 * else worked: it may have waited for that one. */
static int doing_text(const struct hb_analysis *a, const struct hb_series *s, const struct hb_ivs *idle,
		      struct hb_buf *out)
{
	u64 whole = hb_ivs__length(idle);
	struct who x, other;
	int err = look_at(a, s->dispatch, idle, &x);

	add_text(a, &x, ", which launches,", whole, out);
	if (err || x.waited * 2 < whole)
		return err;
	err = busiest(a, s->pid, s->dispatch, idle, &other);
	if (!err && other.busy * 2 >= whole)
		add_text(a, &other, " meanwhile", whole, out);
	else if (!err)
		hb_buf__printf(out, ": it waited for a request, or for somebody who is not in this window");
	return err;
}

static void print_one(const struct hb_analysis *a, const struct hb_series *s, FILE *out, unsigned width)
{
	u64 whole = hb_findings__active(a->f), ns;
	struct hb_ivs idle = {0};
	struct hb_buf doing = {0};
	char text[32];
	int err = hb_analysis__unexplained(a, s->pid, &idle, &ns);

	if (!err && s->dispatch != HB_NONE && ns * 100 >= whole * WORTH)
		err = doing_text(a, s, &idle, &doing);
	hb_ivs__free(&idle);
	if (err || doing.oom || ns * 100 < whole * WORTH) {
		hb_buf__free(&doing);
		return;
	}
	fputc('\n', out);
	hb_analysis__wrap(out, width, 2,
			  "  not explained by any pattern: the device of process %u is%s idle for "
			  "%s (%.1f %%) beside what is told above%.*s",
			  s->pid, hb_busy__is_exact(hb_host__busy(a->h), s->pid) ? "" : " likely",
			  hb_text__ns(text, sizeof(text), ns), 100.0 * (double)ns / (double)whole,
			  (int)doing.size, doing.data ? doing.data : "");
	hb_buf__free(&doing);
}

void hb_analysis__print_unexplained(const struct hb_analysis *a, FILE *out, unsigned width)
{
	const struct hb_steps *steps = hb_host__steps(a->h);

	if (a->verdict.kind == HB_VERDICT_NO_LOAD)
		return;
	for (u32 i = 0; i < hb_steps__series(steps); i++)
		print_one(a, hb_steps__at(steps, i), out, width);
}
