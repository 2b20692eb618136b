/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* All patterns over one window. */
#include <stdlib.h>
#include <string.h>

#include "analysis/model/operator_frame.h"
#include "analysis/patterns/findings.h"
#include "analysis/patterns/gates.h"
#include "analysis/patterns/needs.h"
#include "analysis/patterns/same.h"
#include "base/map.h"

static void needs_text(u64 missing, char *buf, size_t size)
{
	size_t n = (size_t)snprintf(buf, size, "needs ");
	bool first = true;

	for (; missing && n < size; missing &= missing - 1) {
		int k = snprintf(buf + n, size - n, "%s%s", first ? "" : "; ", hb_need__text(missing));

		first = false;
		n += k > 0 ? (size_t)k : 0;
	}
}

static void not_checked(struct hb_findings *out, const struct hb_pattern *p, u64 missing)
{
	struct hb_not_checked u = {.pattern = p, .needs = missing};

	needs_text(missing, u.text, sizeof(u.text));
	hb_findings__add_un(out, &u);
}

static void one(const struct hb_scene *s, const struct hb_pattern *p, const struct hb_thresholds *t,
		struct hb_findings *out)
{
	struct hb_look l = {.s = s, .p = p, .t = t, .out = out};
	u64 missing = p->needs & ~s->present;
	u32 had = out->n;

	if (p == &hb_pattern_gates)
		return;
	if (missing || !p->detect) {
		not_checked(out, p, missing);
		return;
	}
	if (p->detect(&l))
		out->oom = true;
	else
		hb_findings__gate(out, had, t);
	if (l.found)
		return;
	if (l.is_unchecked) {
		l.unchecked.pattern = p;
		hb_findings__add_un(out, &l.unchecked);
		return;
	}
	l.best.pattern = p;
	if (!l.any && !l.best.what[0])
		snprintf(l.best.what, sizeof(l.best.what), "%s", HB_NOTHING_OCCURRED);
	hb_findings__add_out(out, &l.best);
}

/* From this part of the window on, in per cent, the rest is of no account. */
#define NEARLY_ALL 90

static void reach(u64 *first, u64 *last, u64 begin, u64 end)
{
	*first = begin < *first ? begin : *first;
	*last = end > *last ? end : *last;
}

/* Who records a window says how long it is to be; a trace is as long as its rows make it. */
static u64 active_of(const struct hb_scene *s)
{
	u64 first = UINT64_MAX, last = 0;
	const struct hb_device *v;

	if (!hb_window__meta(s->w, "imported"))
		return s->wall;
	for (u32 i = 0; s->dev && (v = hb_devices__at(s->dev, i)); i++)
		if (v->n_ops)
			reach(&first, &last, v->begin, v->end);
	for (u32 i = 0; i < hb_steps__series(s->steps); i++) {
		const struct hb_series *p = hb_steps__at(s->steps, i);

		if (p->n)
			reach(&first, &last, p->step[0].begin, p->step[p->n - 1].end);
	}
	return last <= first || last - first >= s->wall / 100 * NEARLY_ALL ? s->wall : last - first;
}

static int scene_of(struct hb_scene *s, struct hb_frame_pick *pick, const struct hb_patterns_input *in)
{
	int err;

	*s = (struct hb_scene){
	    .w = in->window,
	    .m = in->model,
	    .tl = hb_host__timeline(in->host),
	    .wk = hb_host__wake(in->host),
	    .steps = hb_host__steps(in->host),
	    .path = hb_host__path(in->host),
	    .busy = hb_host__busy(in->host),
	    .coll = hb_host__collectives(in->host),
	    .dev = in->devices,
	    .roofline = in->roofline,
	    .pick = pick,
	};
	s->start = hb_timeline__start(s->tl);
	s->end = hb_timeline__end(s->tl);
	s->wall = s->end > s->start ? s->end - s->start : 1;
	s->active = active_of(s);
	s->present = hb_needs__present(s);
	s->exposure = hb_exposure__new(s);
	s->same = hb_sames__new(s->dev);
	s->matches = hb_map__new();
	s->byop = hb_byop__new(s->tl);
	err = hb_frame_pick__init(pick, s->w);
	return !err && s->exposure && s->same && s->byop ? 0 : -1;
}

static void leave(struct hb_scene *s)
{
	hb_exposure__free(s->exposure);
	hb_sames__free(s->same);
	hb_byop__free(s->byop);
	hb_frame_pick__free(s->pick);
	hb_map__free(s->matches);
}

struct hb_findings *hb_patterns__run(const struct hb_patterns_input *in, const struct hb_thresholds *t,
				     struct hb_error *e)
{
	struct hb_findings *f = calloc(1, sizeof(*f));
	struct hb_frame_pick pick;
	struct hb_scene s;

	if (!f || scene_of(&s, &pick, in)) {
		if (f)
			leave(&s);
		free(f);
		hb_error__nomem(e, "the findings");
		return NULL;
	}
	f->active = s.active;
	for (const struct hb_pattern *const *p = hb_patterns(); *p && !f->oom; p++)
		one(&s, *p, t, f);
	if (!f->oom)
		hb_findings__finish(f, &s, t);
	for (u32 i = 0; i < f->n; i++) /* the scene ends here */
		f->draft[i]->s = NULL;
	leave(&s);
	if (!f->oom)
		return f;
	hb_findings__free(f);
	hb_error__nomem(e, "the findings");
	return NULL;
}
