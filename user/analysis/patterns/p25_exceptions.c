/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Exceptions as control flow: raised thousands of times a second and caught at once. */
#include <errno.h>
#include <string.h>

#include "analysis/model/decode.h"
#include "analysis/model/pyevents.h"
#include "analysis/patterns/pattern.h"

enum { RATE, PER_STEP, FRAMES, COST };

static const struct hb_param params[] = {
    [RATE] = {"rate", HB_UNIT_RATE, 1000, "exceptions of one class from one place"},
    [PER_STEP] = {"per_step", HB_UNIT_RATIO, 5000000, "or so many for each step"},
    [FRAMES] = {"frames", HB_UNIT_RATIO, 2000000,
		"frames they go through on average before they are caught, at most"},
    [COST] = {"cost_share", HB_UNIT_SHARE, 10000,
	      "CPU time in the functions that raise and catch, on threads on the way to a launch, as a part "
	      "of the steps"},
    {0},
};

/* What the language itself ends loops and coroutines with. */
static const char *const own[] = {"StopIteration", "StopAsyncIteration", "GeneratorExit", "CancelledError",
				  NULL};

static bool is_own(const char *name)
{
	const char *const *o = own;

	while (*o && strcmp(*o, name) != 0)
		o++;
	return *o != NULL;
}

static bool same_function(const struct hb_loc *a, const struct hb_loc *b)
{
	return a && b && a->func == b->func && a->file == b->file && a->lang == b->lang;
}

struct place { /* where it is raised, and the function around that, which catches it */
	const struct hb_loc *site, *catcher;
};

/* The innermost Python function of a stack, and the next one outwards. */
static struct place place_of(const struct hb_scene *s, u32 pid, u32 stack)
{
	struct hb_stack st = stack ? hb_window__stack(s->w, pid, stack) : (struct hb_stack){0};
	struct place p = {0};

	for (u32 i = st.n; i-- && !p.catcher;) {
		const struct hb_loc *l = hb_window__loc(s->w, st.locs[i]);

		if (!l || l->lang != HB_LANG_PYTHON)
			continue;
		if (!p.site)
			p.site = l;
		else
			p.catcher = l;
	}
	return p;
}

/* Some exception from that place with its stack. */
static struct place find_place(const struct hb_scene *s, const struct hb_exception_stat *x)
{
	struct place p = {.site = hb_decode__site(s->w, x->proc->pid, x->site)};

	for (u32 t = hb_timeline__of_pid(s->tl, x->proc->pid, HB_NONE); t != HB_NONE;
	     t = hb_timeline__of_pid(s->tl, x->proc->pid, t)) {
		u32 n;
		const struct hb_tl_raise *r = hb_timeline__raises(s->tl, t, &n);

		for (u32 i = 0; i < n; i++)
			if (r[i].site == x->site && r[i].at.stack)
				return place_of(s, x->proc->pid, r[i].at.stack);
	}
	return p;
}

/* Raising and catching: the two functions themselves, not what else they call. `caught`: it is the one that
 * catches, which may do more. */
static bool passes(const struct hb_scene *s, u32 pid, u32 stack, const struct place *at, bool *caught)
{
	struct place here = place_of(s, pid, stack);

	*caught = !same_function(here.site, at->site);
	return !*caught || same_function(here.site, at->catcher);
}

/* CPU time in that function on threads that lead to a launch; or cases. */
static int each_sample(const struct hb_scene *s, u32 pid, const struct place *site, u64 *sum,
		       struct hb_draft *d)
{
	int err = 0;

	*sum = 0;
	for (u32 t = hb_timeline__of_pid(s->tl, pid, HB_NONE); t != HB_NONE && !err;
	     t = hb_timeline__of_pid(s->tl, pid, t)) {
		u32 n;
		const struct hb_tl_sample *m = hb_timeline__samples(s->tl, t, &n);

		for (u32 i = 0; i < n && hb_scene__leads(s, t) && !err; i++) {
			struct hb_case c = {.begin = m[i].at.begin,
					    .thread = t,
					    .stack = m[i].at.stack,
					    .weight = m[i].weight};

			if (!passes(s, pid, m[i].at.stack, site, &c.unsure))
				continue;
			*sum += m[i].weight;
			if (d)
				err = hb_draft__add(d, &c);
		}
	}
	return err;
}

static int look_at(struct hb_look *l, const struct hb_exception_stat *x, const char *name)
{
	const struct hb_scene *s = l->s;
	const struct place site = find_place(s, x);
	const struct hb_series *p = hb_steps__of_pid(s->steps, x->proc->pid);
	u64 per_step = p && p->n ? hb_share(x->count, p->n) : 0, sum;
	struct hb_draft *d;
	char where[256];

	hb_look__subject(l);
	if (!hb_look__either(l, PER_STEP, per_step, RATE, hb_rate(x->count, s->wall)) ||
	    !hb_look__at_most(l, FRAMES, hb_share(x->unwound, x->count)))
		return 0;
	each_sample(s, x->proc->pid, &site, &sum, NULL);
	if (!hb_look__at_least(l, COST, hb_share(sum, hb_scene__step_time(s, x->proc->pid))))
		return 0;
	d = hb_look__find(l, "%s is raised %llu times a second in %s and caught at once", name,
			  (unsigned long long)hb_rate(x->count, s->wall),
			  hb_decode__frame(s->w, site.site, HB_FRAME_LINE, where, sizeof(where)));
	if (!d)
		return -ENOMEM;
	hb_draft__pid(d, x->proc->pid);
	hb_draft__confidence(
	    d, HB_CONFIDENCE_MEDIUM,
	    "the time is that of the function that raises and of the one that catches, by CPU samples");
	return each_sample(s, x->proc->pid, &site, &sum, d);
}

static int detect(struct hb_look *l)
{
	u32 n;
	const struct hb_exception_stat *const *x = hb_model__exceptions(l->s->m, &n);
	int err = 0;

	for (u32 i = 0; i < n && !err; i++) {
		char name[160];

		hb_decode__exception(&x[i]->name, x[i]->origin, name, sizeof(name));
		if (!is_own(name) && hb_decode__site(l->s->w, x[i]->proc->pid, x[i]->site))
			err = look_at(l, x[i], name);
	}
	return err;
}

HB_PATTERN(p25_exceptions) = {
    .id = "P25",
    .layer = "app",
    .title = "control flow by exceptions",
    .rank = HB_RANK_CODE,
    .needs = HB_NEED_EXCEPTION | HB_NEED_SAMPLE | HB_NEED_ACCEL,
    .params = params,
    .rule = "one class of exception is raised at one place very often and caught within two frames, and "
	    "threads on the way to "
	    "the next launch spend time in that function",
    .fix = "ask before calling, return a value that says \"nothing there\"",
    .ref = "zeromq/pyzmq#1101 (1 ms each on a small board); sgl-project/sglang#1731 (a loop on Again)",
    .traps = "StopIteration and what asyncio uses itself are left out",
    .settle = "time the place by itself, with and without the exception",
    .record = "exceptions=hash; calls=@stack",
    .detect = detect,
};
