/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The chain of wakers behind a wait, and its words. */
#include "analysis/model/wake.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "analysis/model/decode.h"
#include "base/text.h"

struct wait {		  /* sleeps joined over false wake-ups */
	u64 begin, end;	  /* end: back on a CPU */
	u64 slept, ready; /* of what was asked for */
	u32 last;
};

/* The longest wait that lies in [begin, end), as far as it does; `last` HB_NONE when there is none. One that
 * is still going on at `end` does not count unless `cut`. */
static struct wait longest(const struct hb_wake *wk, const struct hb_timeline *tl, u32 thread, u64 begin,
			   u64 end, bool cut)
{
	struct wait best = {.last = HB_NONE}, now = {.last = HB_NONE};
	u32 n, i = hb_timeline__at(tl, thread, HB_TL_SLEEP, begin);
	const struct hb_edge *e = hb_wake__edges(wk, thread, &n);
	const struct hb_tl_sleep *s = hb_timeline__sleeps(tl, thread, &n);

	if (i == HB_NONE)
		i = hb_timeline__from(tl, thread, HB_TL_SLEEP, begin);
	for (; i < n && s[i].at.begin < end; i++) {
		u64 wake = s[i].at.end - s[i].ready;

		if (s[i].at.end > end && !cut)
			break;
		if (now.last != e[i].last)
			now = (struct wait){.begin = s[i].at.begin, .last = e[i].last};
		now.end = s[i].at.end;
		now.slept += hb_overlap(s[i].at.begin, wake, begin, end);
		now.ready += hb_overlap(wake, s[i].at.end, begin, end);
		if (now.slept + now.ready > best.slept + best.ready)
			best = now;
	}
	if (best.last != HB_NONE)
		best.end = s[best.last].at.end;
	return best;
}

/* How the wait ended: one that was mostly runnable waited for a CPU, whoever woke it. */
static u8 ended_by(const struct wait *w, const struct hb_edge *e)
{
	return w->ready > w->slept ? HB_WAKE_PREEMPTED : e->by;
}

/* When the thread came to its work: the end of its last sleep before t, but not before `low`. */
static u64 work_begin(const struct hb_timeline *tl, u32 thread, u64 low, u64 t)
{
	u32 n, i = hb_timeline__from(tl, thread, HB_TL_SLEEP, t);
	const struct hb_tl_sleep *s = hb_timeline__sleeps(tl, thread, &n);
	u64 from = i && s[i - 1].at.end <= t ? s[i - 1].at.end : low;

	return from > low ? from : low;
}

static bool seen(const struct hb_hop *hop, u32 n, u32 thread, u32 sleep)
{
	for (u32 i = 0; i < n; i++)
		if (hop[i].thread == thread && hop[i].sleep == sleep)
			return true;
	return false;
}

/* The hop of the thread that ended the sleep of another's hop; that one had gone to sleep at `low`. */
static struct hb_hop hop_of(const struct hb_wake *wk, const struct hb_timeline *tl,
			    const struct hb_hop *woken, u64 low)
{
	u32 n;
	const struct hb_edge *from = &hb_wake__edges(wk, woken->thread, &n)[woken->sleep];
	u64 at = hb_sleep__woken(&hb_timeline__sleeps(tl, woken->thread, &n)[woken->sleep]);
	struct hb_hop h = {.task = hb_wake__task(wk, woken->thread, woken->sleep),
			   .thread = from->thread,
			   .sleep = HB_NONE,
			   .begin = low < at ? low : at,
			   .end = at,
			   .relay = from->relay,
			   .guessed = from->guessed};
	struct wait w;

	if (h.thread == HB_NONE)
		return h;
	w = longest(wk, tl, h.thread, h.begin, at, false);
	if (w.last == HB_NONE || w.slept + w.ready < (at - h.begin) / 2) {
		h.begin = work_begin(tl, h.thread, h.begin, at);
		return h;
	}
	h.sleep = w.last;
	h.begin = w.begin;
	h.end = w.end;
	h.by = ended_by(&w, &hb_wake__edges(wk, h.thread, &n)[w.last]);
	return h;
}

static bool goes_on(const struct hb_wake *wk, const struct hb_hop *h)
{
	return h->sleep != HB_NONE && h->by != HB_WAKE_PREEMPTED && hb_wake__task(wk, h->thread, h->sleep);
}

u32 hb_wake__chain(const struct hb_wake *wk, u32 thread, u64 begin, u64 end, struct hb_hop *hop, u32 max)
{
	const struct hb_timeline *tl = hb_wake__timeline(wk);
	struct wait w = longest(wk, tl, thread, begin, end, true);
	u64 low;
	u32 n = 0, edges;

	if (w.last == HB_NONE || !max)
		return 0;
	hop[n++] = (struct hb_hop){.task = hb_timeline__thread(tl, thread)->task,
				   .thread = thread,
				   .sleep = w.last,
				   .begin = w.begin,
				   .end = w.end,
				   .by = ended_by(&w, &hb_wake__edges(wk, thread, &edges)[w.last])};
	low = w.begin;
	while (n < max && goes_on(wk, &hop[n - 1])) {
		struct hb_hop h = hop_of(wk, tl, &hop[n - 1], low);

		if (seen(hop, n, h.thread, h.sleep) && h.thread != HB_NONE)
			break;
		hop[n++] = h;
		low = h.begin > low ? h.begin : low;
	}
	return n;
}

/* ---- words ---- */

static const char *slept_on(const struct hb_timeline *tl, const struct hb_hop *h, char *buf, size_t size)
{
	u32 n;
	const struct hb_tl_sleep *s = &hb_timeline__sleeps(tl, h->thread, &n)[h->sleep];
	const struct hb_tl_place *p = hb_timeline__place(tl, s);
	struct hb_rec_offcpu r = {.chan = p->chan,
				  .local = p->local,
				  .peer = p->peer,
				  .a0 = p->a0,
				  .sysno = s->sysno,
				  .chankind = s->chankind};
	const struct hb_tl_thread *t = hb_timeline__thread(tl, h->thread);
	u64 mid = s->at.begin + (s->at.end - s->at.begin) / 2;
	const char *text;

	if (s->chankind == HB_CHAN_FUTEX && hb_timeline__at(tl, h->thread, HB_TL_GIL, mid) != HB_NONE)
		return "the GIL";
	text = hb_decode__slept_on(hb_timeline__window(tl), t->pid, &r, buf, size);
	if (text)
		return text;
	text = hb_decode__syscall(s->sysno, buf, size);
	return text ? text : s->state == HB_TSTATE_DISK ? "a page fault" : "a sleep";
}

const char *hb_hop__ending(const struct hb_hop *h)
{
	if (h->by == HB_WAKE_THREAD || h->by == HB_WAKE_OUTSIDE)
		return "";
	if (h->by == HB_WAKE_PREEMPTED)
		return "waiting for a CPU";
	if (h->sleep != HB_NONE)
		return hb_wake__by_name(h->by);
	return h->thread == HB_NONE ? "not traced" : "working";
}

u32 hb_hop__stack(const struct hb_wake *wk, const struct hb_hop *h)
{
	return h->thread == HB_NONE || h->sleep == HB_NONE ? 0 : hb_wake__stack(wk, h->thread, h->sleep);
}

/* Appends as far as there is room. */
static void __attribute__((format(printf, 4, 5)))
add(char *buf, size_t size, size_t *at, const char *fmt, ...)
{
	va_list ap;
	int k;

	va_start(ap, fmt);
	k = vsnprintf(buf + *at, size - *at, fmt, ap);
	va_end(ap);
	if (k > 0)
		*at = (size_t)k < size - *at ? *at + (size_t)k : size - 1;
}

const char *hb_wake__chain_text(const struct hb_wake *wk, const struct hb_hop *hop, u32 n, char *buf,
				size_t size)
{
	const struct hb_timeline *tl = hb_wake__timeline(wk);
	const struct hb_window *w = hb_timeline__window(tl);
	char chan[160];
	size_t at = 0;

	*buf = 0;
	for (u32 i = 0; i < n; i++) {
		bool last = i + 1 == n;
		const char *end = last ? hb_hop__ending(&hop[i]) : "";

		if (hop[i].relay && !last)
			continue;
		add(buf, size, &at, "%s", hb_decode__comm(w, hop[i].task));
		if (hop[i].sleep != HB_NONE &&
		    (!last || (hop[i].by != HB_WAKE_TIMER && hop[i].by != HB_WAKE_PREEMPTED)))
			add(buf, size, &at, " -> %s", slept_on(tl, &hop[i], chan, sizeof(chan)));
		add(buf, size, &at, "%s%s%s%s", *end ? " (" : "", end, *end ? ")" : "", last ? "" : " -> ");
	}
	return hb_text__clean(buf);
}
