/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* When all that is traced waits for somebody who is not. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/model/decode.h"
#include "analysis/model/path_private.h"

#define CHAIN_MOST 8  /* threads from who launches to who talks to the world */
#define LOOK_MOST  64 /* waits of one thread that are looked at for who ends them */

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

/* A thread's last wait on what it sleeps on now (its sleep `at`) that somebody ended; HB_NONE: not seen. */
static u32 usual(const struct hb_path *p, u32 thread, u32 at)
{
	u32 n;
	const struct hb_tl_sleep *s = hb_timeline__sleeps(p->tl, thread, &n);
	const struct hb_edge *e = hb_wake__edges(p->wk, thread, &n);

	for (u32 i = at; i-- > 0 && at - i <= LOOK_MOST;)
		if (s[i].chankind == s[at].chankind && s[i].sysno == s[at].sysno &&
		    hb_timeline__place(p->tl, &s[i])->chan == hb_timeline__place(p->tl, &s[at])->chan &&
		    (e[i].by == HB_WAKE_THREAD || e[i].by == HB_WAKE_OUTSIDE))
			return i;
	return HB_NONE;
}

/* At the window's end nothing had come yet: from who launches to who usually wakes it, and so on, all asleep,
 * up to one that waits for the world. */
static void at_the_end(const struct hb_path *p, u32 thread, struct hb_ivs *out)
{
	u64 from = 0;
	u32 by;

	for (u32 k = 0; k < CHAIN_MOST && thread != HB_NONE; k++) {
		u32 n, parent;
		const struct hb_tl_sleep *s = hb_timeline__sleeps(p->tl, thread, &n);
		const struct hb_edge *e = hb_wake__edges(p->wk, thread, &n);

		if (!n || e[n - 1].by != HB_WAKE_OPEN)
			return;
		if (s[n - 1].at.begin > from)
			from = s[n - 1].at.begin;
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
