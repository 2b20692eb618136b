/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analysis/patterns/frames.h"

#include <errno.h>
#include <stdlib.h>

#include "base/map.h"

/* Stacks come again and again: what a rule says of one is kept by its id. 0 not asked, 1 no, 2 yes. */
struct memo {
	struct hb_map *map;
	const struct hb_scene *s;
	const struct hb_frame_rule *rule;
	u32 pid;
	bool oom;
};

static bool matches(struct memo *m, u32 stack)
{
	u64 *slot = stack ? hb_map__slot(m->map, stack, NULL) : NULL;

	if (!stack)
		return false;
	if (!slot) {
		m->oom = true;
		return false;
	}
	if (!*slot)
		*slot = 1 + hb_scene__frame(m->s, m->pid, stack, m->rule);
	return *slot == 2;
}

/* Outermost calls of such functions: what they call is inside. */
static int by_calls(const struct hb_scene *s, u32 t, const struct hb_frame_rule *rule, struct hb_frames *sum,
		    int (*visit)(void *ctx, const struct hb_case *c), void *ctx)
{
	u32 n;
	const struct hb_tl_pycall *c = hb_timeline__pycalls(s->tl, t, &n);
	u64 until = 0, longest = 0;
	int err = 0;

	for (u32 i = 0; i < n && !err; i++) {
		u64 dur = c[i].at.end - c[i].at.begin;
		struct hb_case k = {
		    .begin = c[i].at.begin, .end = c[i].at.end, .thread = t, .stack = c[i].at.stack};

		if (c[i].at.begin < until || !(c[i].flags & HB_PYCALL_TIMED) ||
		    !hb_scene__loc(s, c[i].func, rule))
			continue;
		until = c[i].at.end;
		sum->n++;
		sum->ns += dur;
		sum->likely += hb_scene__likely(s, t, k.begin, k.end);
		if (dur >= longest) {
			longest = dur;
			sum->stack = c[i].at.stack;
		}
		if (visit)
			err = visit(ctx, &k);
	}
	return err;
}

static int by_samples(const struct hb_scene *s, u32 t, const struct hb_frame_rule *rule,
		      struct hb_frames *sum, int (*visit)(void *ctx, const struct hb_case *c), void *ctx)
{
	u32 n;
	const struct hb_tl_sample *v = hb_timeline__samples(s->tl, t, &n);
	struct memo m = {
	    .s = s, .rule = rule, .pid = hb_timeline__thread(s->tl, t)->pid, .map = hb_map__new()};
	int err = m.map ? 0 : -ENOMEM;

	sum->sampled = true;
	for (u32 i = 0; i < n && !err; i++) {
		struct hb_case k = {
		    .begin = v[i].at.begin, .thread = t, .stack = v[i].at.stack, .weight = v[i].weight};

		if (!matches(&m, v[i].at.stack))
			continue;
		sum->n++;
		sum->ns += v[i].weight;
		if (hb_scene__likely(s, t, k.begin, k.begin + 1))
			sum->likely += v[i].weight;
		if (!sum->stack)
			sum->stack = v[i].at.stack;
		if (visit)
			err = visit(ctx, &k);
	}
	hb_map__free(m.map);
	return m.oom ? -ENOMEM : err;
}

int hb_frames__visit(const struct hb_scene *s, u32 thread, const struct hb_frame_rule *rule,
		     struct hb_frames *sum, int (*visit)(void *ctx, const struct hb_case *c), void *ctx)
{
	int err = by_calls(s, thread, rule, sum, visit, ctx);

	return err || sum->n ? err : by_samples(s, thread, rule, sum, visit, ctx);
}

static int add(void *ctx, const struct hb_case *c)
{
	return hb_draft__add(ctx, c);
}

int hb_frames__each(const struct hb_scene *s, u32 thread, const struct hb_frame_rule *rule,
		    struct hb_frames *sum, struct hb_draft *d)
{
	return hb_frames__visit(s, thread, rule, sum, d ? add : NULL, d);
}

int hb_frames__look(struct hb_look *l, const struct hb_frame_rule *rule, u32 share, u32 exposed,
		    const char *what)
{
	const struct hb_scene *s = l->s;
	int err = 0;

	for (u32 t = 0; t < hb_timeline__threads(s->tl) && !err; t++) {
		u32 pid = hb_timeline__thread(s->tl, t)->pid;
		struct hb_frames sum = {0};
		struct hb_draft *d;
		char who[64], frame[256];

		if (!hb_scene__leads(s, t))
			continue;
		err = hb_frames__each(s, t, rule, &sum, NULL);
		hb_look__subject(l);
		if (err || !sum.n ||
		    !hb_look__at_least(l, share, hb_share(sum.ns, hb_scene__step_time(s, pid))) ||
		    !hb_look__at_least(l, exposed, hb_share(sum.likely, sum.ns)))
			continue;
		hb_scene__frame_text(s, pid, sum.stack, frame, sizeof(frame));
		d = hb_look__find(l, "%s %s for %llu %% of the time of its steps%s%s",
				  hb_scene__thread_text(s, t, who, sizeof(who)), what,
				  (unsigned long long)(hb_share(sum.ns, hb_scene__step_time(s, pid)) / 10000),
				  *frame ? ", such as in " : "", frame);
		if (!d)
			return -ENOMEM;
		hb_draft__pid(d, pid);
		if (sum.sampled)
			hb_draft__confidence(d, HB_CONFIDENCE_MEDIUM,
					     "from CPU samples; calls of the functions were not recorded");
		sum = (struct hb_frames){0};
		err = hb_frames__each(s, t, rule, &sum, d);
	}
	return err;
}
