/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analysis/model/path_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/model/decode.h"

const char *hb_seg__name(enum hb_seg_kind k)
{
	static const char *const names[HB_SEG_KINDS] = {
	    [HB_SEG_RUN] = "run",
	    [HB_SEG_API] = "accelerator call",
	    [HB_SEG_DEVICE] = "device",
	    [HB_SEG_SCHED] = "scheduler",
	    [HB_SEG_GC] = "garbage collection",
	    [HB_SEG_TIMER] = "timer",
	    [HB_SEG_NET] = "network",
	    [HB_SEG_DISK] = "disk",
	    [HB_SEG_STOPPED] = "stopped",
	    [HB_SEG_OTHER] = "not traced",
	    [HB_SEG_UNKNOWN] = "unknown",
	    [HB_SEG_OUTSIDE] = "outside",
	};

	return (unsigned)k < HB_SEG_KINDS ? names[k] : "?";
}

static void fit(struct hb_segs *s)
{
	struct hb_seg *p = s->n ? realloc(s->seg, s->n * sizeof(*p)) : NULL;

	if (!p)
		return;
	s->seg = p;
	s->cap = s->n;
}

static int walk_series(struct hb_path *p, struct hb_path_row *r)
{
	const struct hb_ways ways = {.tl = p->tl, .wk = p->wk, .ops = p->ops, .queues = p->queues};
	const struct hb_series *s = r->series;
	int err = 0;

	if (!s->n)
		return hb_walk(&ways, s->thread, hb_timeline__start(p->tl), hb_timeline__end(p->tl),
			       &r->segs);
	for (u32 i = 0; i < s->n && !err; i++)
		err = hb_walk(&ways, s->thread, s->step[i].begin, s->step[i].end, &r->segs);
	return err;
}

struct hb_path *hb_path__build(const struct hb_timeline *tl, const struct hb_wake *wk,
			       const struct hb_steps *steps, const struct hb_busy *busy,
			       const struct hb_devices *d, const struct hb_collectives *coll,
			       struct hb_error *e)
{
	struct hb_path *p = calloc(1, sizeof(*p));
	u32 n = hb_steps__series(steps);
	int err = p ? 0 : -ENOMEM;

	if (p) {
		*p = (struct hb_path){.tl = tl, .wk = wk, .steps = steps, .busy = busy};
		p->row = calloc(n + 1, sizeof(*p->row));
		p->ops = d ? hb_walk_ops__new(tl, d, coll) : NULL;
		p->queues = hb_queues__build(tl, e);
		err = p->row && p->queues && (p->ops || !d) ? 0 : -ENOMEM;
	}
	for (u32 i = 0; !err && i < n; i++) {
		p->row[p->n].series = hb_steps__at(steps, i);
		err = walk_series(p, &p->row[p->n]);
		fit(&p->row[p->n++].segs);
	}
	if (p) { /* what follows asks no more of it */
		hb_walk_ops__free(p->ops);
		hb_queues__free(p->queues);
		p->ops = NULL;
		p->queues = NULL;
	}
	if (err) {
		hb_error__nomem(e, "critical paths");
		hb_path__free(p);
		return NULL;
	}
	return p;
}

void hb_path__free(struct hb_path *p)
{
	if (!p)
		return;
	for (u32 i = 0; i < p->n; i++)
		free(p->row[i].segs.seg);
	free(p->row);
	free(p);
}

u64 hb_path__memory(const struct hb_path *p)
{
	u64 bytes = sizeof(*p);

	for (u32 i = 0; i < p->n; i++)
		bytes += sizeof(*p->row) + p->row[i].segs.cap * sizeof(struct hb_seg);
	return bytes;
}

/* ---- asking ---- */

static const struct hb_path_row *row_of(const struct hb_path *p, u32 pid)
{
	for (u32 i = 0; i < p->n; i++)
		if (p->row[i].series->pid == pid)
			return &p->row[i];
	return NULL;
}

const struct hb_seg *hb_path__segs(const struct hb_path *p, u32 pid, u32 *n)
{
	const struct hb_path_row *r = row_of(p, pid);

	*n = r ? r->segs.n : 0;
	return r ? r->segs.seg : NULL;
}

static u32 range(const struct hb_segs *s, u64 begin, u64 end, u32 *first)
{
	u32 lo = 0, hi = s->n, n = 0;

	while (lo < hi) {
		u32 mid = lo + (hi - lo) / 2;

		if (s->seg[mid].end <= begin)
			lo = mid + 1;
		else
			hi = mid;
	}
	*first = lo;
	while (lo + n < s->n && s->seg[lo + n].begin < end)
		n++;
	return n;
}

u32 hb_path__range(const struct hb_path *p, u32 pid, u64 begin, u64 end, u32 *first)
{
	const struct hb_path_row *r = row_of(p, pid);

	*first = 0;
	return r ? range(&r->segs, begin, end, first) : 0;
}

void hb_path__sum(const struct hb_path *p, u32 pid, u64 begin, u64 end, u64 *sum)
{
	u32 first, n = hb_path__range(p, pid, begin, end, &first), all;
	const struct hb_seg *s = hb_path__segs(p, pid, &all);

	memset(sum, 0, HB_SEG_KINDS * sizeof(*sum));
	for (u32 i = first; i < first + n; i++)
		sum[s[i].kind] += hb_overlap(s[i].begin, s[i].end, begin, end);
}

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

/* In an event loop or a server's wait for a connection anything may come, a request before all; and so it is
 * with what a parent sends, which drives its children. */
static bool awaits_anything(const struct hb_path *p, const struct hb_seg *g, u32 parent)
{
	u32 n;
	const struct hb_tl_sleep *s = &hb_timeline__sleeps(p->tl, g->thread, &n)[g->item];
	const struct hb_task *by = hb_wake__edges(p->wk, g->thread, &n)[g->item].task;
	char name[24];
	const char *call = hb_decode__syscall(s->sysno, name, sizeof(name));

	return s->chankind == HB_CHAN_EPOLL || (call && strncmp(call, "accept", 6) == 0) ||
	       (by && by->pid == parent);
}

void hb_path__outside(const struct hb_path *p, u32 pid, struct hb_ivs *out)
{
	const struct hb_window *w = hb_timeline__window(p->tl);
	u32 n, last = 0, parent = 0;
	const struct hb_seg *g = hb_path__segs(p, pid, &n);

	for (u32 i = 0; i < n; i++) {
		u32 of = hb_timeline__thread(p->tl, g[i].thread)->pid;

		if ((g[i].kind != HB_SEG_NET && g[i].kind != HB_SEG_OTHER) || g[i].item == HB_NONE)
			continue;
		if (of != last)
			parent = parent_outside(w, of);
		last = of;
		if (parent && awaits_anything(p, &g[i], parent))
			hb_ivs__add(out, g[i].begin, g[i].end);
	}
	hb_ivs__join(out);
}

int hb_path__walk(const struct hb_timeline *tl, const struct hb_wake *wk, u32 thread, u64 begin, u64 end,
		  struct hb_seg **out)
{
	const struct hb_ways ways = {.tl = tl, .wk = wk};
	struct hb_segs s = {0};

	*out = NULL;
	if (hb_walk(&ways, thread, begin, end, &s)) {
		free(s.seg);
		return -ENOMEM;
	}
	*out = s.seg;
	return (int)s.n;
}

static struct hb_range exposed_to(const struct hb_path *p, const struct hb_path_row *r, u32 thread, u64 begin,
				  u64 end)
{
	struct hb_range all = {0};
	u32 first, n;

	if (thread == r->series->dispatch)
		return hb_busy__idle_in(p->busy, r->series->pid, begin, end);
	n = range(&r->segs, begin, end, &first);
	for (u32 i = first; i < first + n; i++) {
		const struct hb_seg *s = &r->segs.seg[i];
		struct hb_range x;

		if (s->thread != thread)
			continue;
		x = hb_busy__idle_in(p->busy, r->series->pid, s->begin > begin ? s->begin : begin,
				     s->end < end ? s->end : end);
		all.min += x.min;
		all.max += x.max;
		all.likely += x.likely;
	}
	return all;
}

struct hb_range hb_path__exposed(const struct hb_path *p, u32 thread, u64 begin, u64 end, u32 *pid)
{
	struct hb_range best = {0};
	u32 whose = 0;

	for (u32 i = 0; i < p->n; i++) {
		struct hb_range x = exposed_to(p, &p->row[i], thread, begin, end);

		if (x.likely < best.likely || (x.likely == best.likely && x.max <= best.max))
			continue;
		best = x;
		whose = p->row[i].series->pid;
	}
	if (pid)
		*pid = whose;
	return best;
}
