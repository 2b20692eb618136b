/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* One callback holds an event loop: everybody else's tokens wait. */
#include <errno.h>
#include <string.h>

#include "analysis/model/decode.h"
#include "analysis/patterns/pattern.h"
#include "base/text.h"

enum { HELD, APART, SAMPLES };

static const struct hb_param params[] = {
    [HELD] = {"held", HB_UNIT_NS, 50000000, "a callback that runs so long without giving the loop back"},
    [APART] = {"apart", HB_UNIT_RATIO, 2500000,
	       "two CPU samples are of one run when no further apart than so many times their weight"},
    [SAMPLES] = {"samples", HB_UNIT_COUNT, 4, "and it has at least so many"},
    {0},
};

/* Frames of the loop itself; the next one inwards is the callback, or the coroutine. */
static bool is_loop(const struct hb_scene *s, const struct hb_loc *l)
{
	const char *file = hb_window__string(s->w, l->file);

	return strstr(file, "/asyncio/") || strstr(file, "uvloop") || strstr(file, "/selectors.py");
}

/* Location of the callback that a stack is in; 0: not below a loop, or in the loop itself. */
static u32 callback_of(const struct hb_scene *s, u32 pid, u32 stack, const struct hb_loc **out)
{
	struct hb_stack st = stack ? hb_window__stack(s->w, pid, stack) : (struct hb_stack){0};
	bool inside = false;

	for (u32 i = 0; i < st.n; i++) {
		const struct hb_loc *l = hb_window__loc(s->w, st.locs[i]);

		if (!l || l->lang != HB_LANG_PYTHON)
			continue;
		if (is_loop(s, l)) {
			inside = true;
		} else if (inside) {
			*out = l;
			return st.locs[i];
		}
	}
	return 0;
}

static bool same(const struct hb_loc *a, const struct hb_loc *b)
{
	return a && b && a->func == b->func && a->file == b->file;
}

/* Did the thread wait for events in between? */
static bool polled(const struct hb_scene *s, u32 t, u64 from, u64 to)
{
	u32 n;
	const struct hb_tl_sleep *z = hb_timeline__sleeps(s->tl, t, &n);

	for (u32 i = hb_timeline__from(s->tl, t, HB_TL_SLEEP, from); i < n && z[i].at.begin < to; i++)
		if (z[i].chankind == HB_CHAN_EPOLL)
			return true;
	return false;
}

struct runs { /* of one thread */
	u64 n, max, held;
	const struct hb_loc *longest;
	u32 stack;
};

/* Runs of samples in one callback, nothing else between them. */
static int each(const struct hb_look *l, u32 t, struct runs *r, struct hb_draft *d)
{
	const struct hb_scene *s = l->s;
	u32 n, pid = hb_timeline__thread(s->tl, t)->pid;
	const struct hb_tl_sample *v = hb_timeline__samples(s->tl, t, &n);
	u64 least = hb_look__param(l, HELD), apart = hb_look__param(l, APART);
	int err = 0;

	for (u32 i = 0; i < n && !err;) {
		const struct hb_loc *cb = NULL, *next = NULL;
		u32 j = i + 1;
		struct hb_case c = {.thread = t, .stack = v[i].at.stack};

		if (!callback_of(s, pid, v[i].at.stack, &cb)) {
			i++;
			continue;
		}
		while (j < n && callback_of(s, pid, v[j].at.stack, &next) && same(cb, next) &&
		       hb_share(v[j].at.begin - v[j - 1].at.begin, v[j].weight ? v[j].weight : 1) <= apart &&
		       !polled(s, t, v[j - 1].at.begin, v[j].at.begin))
			j++;
		/* Each sample stands for its weight around it. */
		c.begin =
		    v[i].at.begin - v[i].weight / 2 > s->start ? v[i].at.begin - v[i].weight / 2 : s->start;
		c.end = v[j - 1].at.begin + v[j - 1].weight / 2;
		if (j - i >= hb_look__param(l, SAMPLES) && c.end - c.begin >= least) {
			r->n++;
			r->held += c.end - c.begin;
			if (c.end - c.begin > r->max) {
				r->max = c.end - c.begin;
				r->longest = cb;
				r->stack = v[i].at.stack;
			}
			if (d)
				err = hb_draft__add_delay(d, &c);
		}
		i = j;
	}
	return err;
}

static const struct hb_frame_rule tokens[] = {
    {"*token*", "*"}, {"*", "*tokenize*"}, {"*", "*encode*"}, {"*", "*decode*"}, {NULL, NULL},
};

static int look_at(struct hb_look *l, u32 t)
{
	u32 pid = hb_timeline__thread(l->s->tl, t)->pid;
	struct runs r = {0};
	struct hb_draft *d;
	char who[64], frame[256], inner[256], longest[32];

	each(l, t, &r, NULL);
	hb_look__subject(l);
	if (!r.n || !hb_look__at_least(l, HELD, r.max))
		return 0;
	d = hb_look__find(l, "the event loop of %s is held %llu times, up to %s, by %s",
			  hb_scene__thread_text(l->s, t, who, sizeof(who)), (unsigned long long)r.n,
			  hb_text__ns(longest, sizeof(longest), r.max),
			  hb_decode__frame(l->s->w, r.longest, HB_FRAME_LINE, frame, sizeof(frame)));
	if (!d)
		return -ENOMEM;
	hb_scene__frame_text(l->s, pid, r.stack, inner, sizeof(inner));
	hb_draft__say(d, ", in %s%s", inner,
		      hb_scene__frame(l->s, pid, r.stack, tokens) ? " (tokenising or detokenising)" : "");
	hb_draft__pid(d, pid);
	r = (struct runs){0};
	return each(l, t, &r, d);
}

static int detect(struct hb_look *l)
{
	int err = 0;

	for (u32 t = 0; t < hb_timeline__threads(l->s->tl) && !err; t++) {
		u32 n;

		hb_timeline__samples(l->s->tl, t, &n);
		if (n >= hb_look__param(l, SAMPLES))
			err = look_at(l, t);
	}
	return err;
}

HB_PATTERN(p19_event_loop) = {
    .id = "P19",
    .layer = "frontend",
    .title = "event loop held by one callback",
    .rank = HB_RANK_CODE,
    .needs = HB_NEED_STACK | HB_NEED_SAMPLE,
    .params = params,
    .rule = "CPU samples of an event loop's thread are in one and the same callback for 50 ms and more "
	    "without a wait for events "
	    "between them: a tokenizer, a metrics scrape, anything that does not await",
    .fix = "a thread or process for it, several front ends, incremental decoding",
    .ref = "vllm-project/vllm#7402, #10635 (hundreds of ms for 256,000 tokens), #57350; "
	   "sgl-project/sglang#28157 (a metrics "
	   "scrape starves the loop)",
    .traps = "with a busy device it costs time to first token only",
    .settle = "the loop's lag against the prompt's length; calls of that function (trace --calls)",
    .record = "frequency=997; calls=@stack",
    .detect = detect,
};
