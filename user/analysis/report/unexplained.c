/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Idle time of devices that no finding explains: how much there is, and what the thread that launches did. */
#include <errno.h>

#include "analysis/model/decode.h"
#include "analysis/model/doing.h"
#include "analysis/report/analyze_private.h"
#include "base/text.h"

/* Of the time with work, in per cent: below it is not worth a word. */
#define WORTH 15

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

/* What the findings expose: as times, and as a sum where samples stand for it. 0 or -ENOMEM. */
static int explained(const struct hb_analysis *a, u32 pid, struct hb_ivs *out, u64 *more)
{
	const struct hb_finding *f;

	for (u32 i = 0; (f = hb_findings__at(a->f, i)); i++) {
		if (f->proc && f->proc->pid != pid)
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

/* "; python3 (100), which launches, was in get (queue.py:154) for 99 % of it" */
static int doing_text(const struct hb_analysis *a, u32 thread, const struct hb_ivs *idle, char *buf,
		      size_t size)
{
	const struct hb_timeline *tl = hb_host__timeline(a->h);
	const struct hb_task *t = hb_timeline__thread(tl, thread)->task;
	struct hb_doing *d = hb_doing__new(tl);
	const struct hb_loc *loc;
	const struct hb_did *most;
	char frame[160];
	int err = d ? 0 : -ENOMEM;

	for (size_t i = 0; i < idle->n && !err; i++)
		err = hb_doing__add(d, thread, idle->v[i].begin, idle->v[i].end, NULL);
	most = err ? NULL : hb_doing__most(d);
	loc = most ? hb_window__loc(a->w, most->loc) : NULL;
	*buf = 0;
	if (loc)
		snprintf(buf, size, "; %s (%u), which launches, was in %s for %.0f %% of it",
			 hb_decode__comm(a->w, t), t->tid,
			 hb_decode__frame(a->w, loc, HB_FRAME_LINE, frame, sizeof(frame)),
			 100.0 * (double)most->ns / (double)hb_doing__sum(d).ns);
	hb_doing__free(d);
	return err;
}

static void print_one(const struct hb_analysis *a, const struct hb_series *s, FILE *out, unsigned width)
{
	u64 whole = hb_findings__active(a->f), ns;
	struct hb_ivs idle = {0};
	char text[32], doing[320] = "";
	int err = hb_analysis__unexplained(a, s->pid, &idle, &ns);

	if (!err && s->dispatch != HB_NONE && ns * 100 >= whole * WORTH)
		err = doing_text(a, s->dispatch, &idle, doing, sizeof(doing));
	hb_ivs__free(&idle);
	if (err || ns * 100 < whole * WORTH)
		return;
	fputc('\n', out);
	hb_analysis__wrap(out, width, 2,
			  "  not explained by any pattern: the device of process %u is%s idle for "
			  "%s (%.1f %%) beside what is told above%s",
			  s->pid, hb_busy__is_exact(hb_host__busy(a->h), s->pid) ? "" : " likely",
			  hb_text__ns(text, sizeof(text), ns), 100.0 * (double)ns / (double)whole, doing);
}

void hb_analysis__print_unexplained(const struct hb_analysis *a, FILE *out, unsigned width)
{
	const struct hb_steps *steps = hb_host__steps(a->h);

	if (a->verdict.kind == HB_VERDICT_NO_LOAD)
		return;
	for (u32 i = 0; i < hb_steps__series(steps); i++)
		print_one(a, hb_steps__at(steps, i), out, width);
}
