/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* When all that is traced waits for somebody who is not. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/model/decode.h"
#include "analysis/model/path_private.h"

#define CHAIN_MOST   16	  /* threads from who launches to who talks to the world */
#define LOOK_MOST    4096 /* waits of one thread that are looked at for who ends them */
#define LOOKS_AROUND 10	  /* between two time-outs it runs for less than the tenth part of one */

/* The parent of a process when that one is not traced; 0: it is. */
static u32 parent_outside(const struct hb_window *w, u32 pid)
{
	u32 n, parent = 0;
	const struct hb_proc *p = hb_window__procs(w, &n);

	for (u32 i = 0; i < n; i++)
		if (p[i].pid == pid)
			parent = p[i].ppid;
	for (u32 i = 0; i < n; i++)
		if (p[i].pid == parent)
			return 0;
	return parent;
}

/* In an event loop or a server's wait for a connection anything may come, a request before all. */
static bool is_loop(const struct hb_tl_sleep *s)
{
	char name[24];
	const char *call = hb_decode__syscall(s->sysno, name, sizeof(name));

	return s->chankind == HB_CHAN_EPOLL || (call && strncmp(call, "accept", 6) == 0);
}

/* And so it is with what a parent sends, which drives its children. */
static bool is_of(const struct hb_wake *wk, u32 thread, u32 sleep, u32 parent)
{
	u32 n;
	const struct hb_task *t = hb_wake__edges(wk, thread, &n)[sleep].by == HB_WAKE_OUTSIDE
				      ? hb_wake__task(wk, thread, sleep)
				      : NULL;

	return t && t->pid == parent;
}

static void of_segs(const struct hb_path *p, const struct hb_segs *g, struct hb_ivs *out)
{
	const struct hb_window *w = hb_timeline__window(p->tl);
	u32 n, last = 0, parent = 0;

	for (u32 i = 0; i < g->n; i++) {
		const struct hb_seg *x = &g->seg[i];
		u32 of;

		if ((x->kind != HB_SEG_NET && x->kind != HB_SEG_OTHER) || x->item == HB_NONE)
			continue;
		of = hb_timeline__thread(p->tl, x->thread)->pid;
		if (of != last)
			parent = parent_outside(w, of);
		last = of;
		if (parent && (is_loop(&hb_timeline__sleeps(p->tl, x->thread, &n)[x->item]) ||
			       is_of(p->wk, x->thread, x->item, parent)))
			hb_ivs__add(out, x->begin, x->end);
	}
}

/* Frames of Python at the outer end of a stack, with native ones within: as many as are the same. */
static u32 python_frames(const struct hb_window *w, const struct hb_stack *s)
{
	u32 n = 0;

	while (n < s->n && hb_window__loc(w, s->locs[n]) &&
	       hb_window__loc(w, s->locs[n])->lang == HB_LANG_PYTHON)
		n++;
	return n;
}

/* The same line of Python waits, as deep in calls: a queue makes a new lock for each wait. What is native in
 * it is not known of a wait that began before the window. */
static bool same_line(const struct hb_window *w, u32 pid, u32 a, u32 b)
{
	struct hb_stack x = hb_window__stack(w, pid, a), y = hb_window__stack(w, pid, b);
	u32 n = python_frames(w, &x);

	return n && n == python_frames(w, &y) && !memcmp(x.locs, y.locs, n * sizeof(*x.locs));
}

/* Whether a sleep is a wait like another one: for the same, or at the same place in the program. */
static bool is_like(const struct hb_path *p, u32 thread, const struct hb_tl_sleep *s,
		    const struct hb_tl_sleep *like)
{
	u64 chan = hb_timeline__place(p->tl, like)->chan;

	return (chan && s->chankind == like->chankind && hb_timeline__place(p->tl, s)->chan == chan) ||
	       same_line(hb_timeline__window(p->tl), hb_timeline__thread(p->tl, thread)->pid, s->at.stack,
			 like->at.stack);
}

/* A thread's last wait like the one it is in now (its sleep `at`) that somebody ended; HB_NONE: not seen. */
static u32 usual(const struct hb_path *p, u32 thread, u32 at)
{
	u32 n, looked = 0;
	const struct hb_tl_sleep *s = hb_timeline__sleeps(p->tl, thread, &n);
	const struct hb_edge *e = hb_wake__edges(p->wk, thread, &n);

	for (u32 i = at; i-- > 0 && looked < LOOK_MOST;) {
		if (s[i].sysno != s[at].sysno || (e[i].by != HB_WAKE_THREAD && e[i].by != HB_WAKE_OUTSIDE))
			continue;
		looked++;
		if (is_like(p, thread, &s[i], &s[at]))
			return i;
	}
	return HB_NONE;
}

/* Since when a thread has rested that sleeps at the window's end: a loop that looks around each time its
 * time-out runs out, and goes back to sleep at once, has nothing to do all the while. */
static u64 resting_since(const struct hb_path *p, u32 thread)
{
	u32 n;
	const struct hb_tl_sleep *s = hb_timeline__sleeps(p->tl, thread, &n);
	const struct hb_edge *e = hb_wake__edges(p->wk, thread, &n);
	u32 i = n - 1;

	while (i && e[i - 1].by == HB_WAKE_TIMER &&
	       s[i].at.begin - s[i - 1].at.end <= (s[i - 1].at.end - s[i - 1].at.begin) / LOOKS_AROUND)
		i--;
	return s[i].at.begin;
}

/* At the window's end nothing had come yet: from who launches to who usually wakes it, and so on, all asleep,
 * up to one that waits for the world. */
static void at_the_end(const struct hb_path *p, u32 thread, struct hb_ivs *out)
{
	u64 from = 0, since;
	u32 by;

	for (u32 k = 0; k < CHAIN_MOST && thread != HB_NONE; k++) {
		u32 n, parent;
		const struct hb_tl_sleep *s = hb_timeline__sleeps(p->tl, thread, &n);
		const struct hb_edge *e = hb_wake__edges(p->wk, thread, &n);

		if (!n || e[n - 1].by != HB_WAKE_OPEN)
			return;
		since = resting_since(p, thread);
		from = since > from ? since : from;
		parent = parent_outside(hb_timeline__window(p->tl), hb_timeline__thread(p->tl, thread)->pid);
		by = usual(p, thread, n - 1);
		if (parent && (is_loop(&s[n - 1]) || (by != HB_NONE && is_of(p->wk, thread, by, parent)))) {
			hb_ivs__add(out, from, hb_timeline__end(p->tl));
			return;
		}
		thread = by == HB_NONE ? HB_NONE : e[by].thread;
	}
}

void hb_path__outside(const struct hb_path *p, u32 pid, struct hb_ivs *out)
{
	const struct hb_path_row *r = hb_path_row(p, pid);

	if (!r)
		return;
	of_segs(p, &r->segs, out);
	of_segs(p, &r->beside, out);
	at_the_end(p, r->series->dispatch != HB_NONE ? r->series->dispatch : r->series->thread, out);
	hb_ivs__join(out);
}

/* ---- steps without it ---- */

static int cmp_segs(const void *a, const void *b)
{
	const struct hb_seg *x = a, *y = b;

	return x->begin < y->begin ? -1 : x->begin > y->begin;
}

/* Segments of which no part is in a step any more go beside. (Steps are cut where segments meet, unless the
 * records contradict each other.) */
static int split(struct hb_path_row *r)
{
	const struct hb_series *s = r->series;
	struct hb_segs *in = &r->segs, *out = &r->beside;
	struct hb_seg *p = realloc(out->seg, ((size_t)out->n + in->n + 1) * sizeof(*p));
	u32 kept = 0, step = 0;

	if (!p)
		return -ENOMEM;
	out->seg = p;
	for (u32 i = 0; i < in->n; i++) {
		while (step < s->n && s->step[step].end <= in->seg[i].begin)
			step++;
		if (step < s->n && s->step[step].begin < in->seg[i].end)
			in->seg[kept++] = in->seg[i];
		else
			out->seg[out->n++] = in->seg[i];
	}
	in->n = kept;
	qsort(out->seg, out->n, sizeof(*p), cmp_segs);
	p = realloc(out->seg, ((size_t)out->n + 1) * sizeof(*p));
	out->seg = p ? p : out->seg;
	out->cap = out->n + 1;
	return 0;
}

int hb_path__leave_out(struct hb_path *p, struct hb_steps *steps, struct hb_error *e)
{
	int err = 0;

	for (u32 i = 0; i < p->n && !err; i++) {
		struct hb_path_row *r = &p->row[i];
		struct hb_ivs none = {0};

		hb_path__outside(p, r->series->pid, &none);
		err = none.oom ? -ENOMEM : none.n ? hb_steps__leave_out(steps, r->series->pid, &none) : 0;
		if (!err && none.n && r->series->n)
			err = split(r);
		hb_ivs__free(&none);
	}
	return err ? hb_error__nomem(e, "steps without load") : 0;
}
