/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analysis/model/path_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

/* What lies beside its steps, too: before the first, after the last, and between. */
static int walk_series(struct hb_path *p, const struct hb_ways *ways, struct hb_path_row *r)
{
	const struct hb_series *s = r->series;
	u64 at = hb_timeline__start(p->tl), end = hb_timeline__end(p->tl);
	int err = 0;

	if (!s->n)
		return hb_walk(ways, s->thread, at, end, &r->segs);
	for (u32 i = 0; i < s->n && !err; i++) {
		if (s->step[i].begin > at)
			err = hb_walk(ways, s->thread, at, s->step[i].begin, &r->beside);
		err = err ? err : hb_walk(ways, s->thread, s->step[i].begin, s->step[i].end, &r->segs);
		at = s->step[i].end;
	}
	return !err && at < end ? hb_walk(ways, s->thread, at, end, &r->beside) : err;
}

static int walk_all(struct hb_path *p, const struct hb_devices *d, const struct hb_collectives *coll,
		    struct hb_error *e)
{
	struct hb_walk_ops *ops = d ? hb_walk_ops__new(p->tl, d, coll) : NULL;
	struct hb_queues *queues = hb_queues__build(p->tl, e);
	struct hb_ways ways = {.tl = p->tl, .wk = p->wk, .ops = ops};
	int err = queues && (ops || !d) ? hb_ways__open(&ways) : -ENOMEM;
	u64 put, taken, matched;

	if (!err) {
		hb_queues__counts(queues, &put, &taken, &matched);
		ways.queues = matched ? queues : NULL;
	}
	for (u32 i = 0; !err && i < hb_steps__series(p->steps); i++) {
		p->row[p->n].series = hb_steps__at(p->steps, i);
		err = walk_series(p, &ways, &p->row[p->n]);
		fit(&p->row[p->n].beside);
		fit(&p->row[p->n++].segs);
	}
	hb_ways__close(&ways);
	hb_queues__free(queues);
	hb_walk_ops__free(ops);
	return err;
}

struct hb_path *hb_path__build(const struct hb_timeline *tl, const struct hb_wake *wk,
			       const struct hb_steps *steps, const struct hb_busy *busy,
			       const struct hb_devices *d, const struct hb_collectives *coll,
			       struct hb_error *e)
{
	struct hb_path *p = calloc(1, sizeof(*p));
	int err = p ? 0 : -ENOMEM;

	if (p) {
		*p = (struct hb_path){.tl = tl, .wk = wk, .steps = steps, .busy = busy};
		p->row = calloc(hb_steps__series(steps) + 1, sizeof(*p->row));
		err = p->row ? walk_all(p, d, coll, e) : -ENOMEM;
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
	for (u32 i = 0; i < p->n; i++) {
		free(p->row[i].segs.seg);
		free(p->row[i].beside.seg);
	}
	free(p->row);
	free(p);
}

u64 hb_path__memory(const struct hb_path *p)
{
	u64 bytes = sizeof(*p);

	for (u32 i = 0; i < p->n; i++)
		bytes += sizeof(*p->row) +
			 ((u64)p->row[i].segs.cap + p->row[i].beside.cap) * sizeof(struct hb_seg);
	return bytes;
}

/* ---- asking ---- */

const struct hb_path_row *hb_path_row(const struct hb_path *p, u32 pid)
{
	u32 i = hb_steps__row(p->steps, pid);

	return i < p->n ? &p->row[i] : NULL;
}

const struct hb_seg *hb_path__segs(const struct hb_path *p, u32 pid, u32 *n)
{
	const struct hb_path_row *r = hb_path_row(p, pid);

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
	const struct hb_path_row *r = hb_path_row(p, pid);

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

int hb_path__walk(const struct hb_timeline *tl, const struct hb_wake *wk, u32 thread, u64 begin, u64 end,
		  struct hb_seg **out)
{
	struct hb_ways ways = {.tl = tl, .wk = wk};
	struct hb_segs s = {0};
	int err = hb_ways__open(&ways);

	*out = NULL;
	err = err ? err : hb_walk(&ways, thread, begin, end, &s);
	hb_ways__close(&ways);
	if (err) {
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
