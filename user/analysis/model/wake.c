/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analysis/model/wake.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/model/decode.h"
#include "analysis/model/spans.h"
#include "base/map.h"
#include "base/radix.h"

/* A thread that sleeps again within this time on the same thing, and did nothing, was woken falsely. */
#define FALSE_GAP_NS 20000
/* An I/O thread that was woken no longer before than this, and wakes another, passes something on. */
#define RELAY_NS 200000

struct woke { /* a thread ended a sleep of another */
	u64 at;
	u32 thread, sleep;
};

struct doubt { /* between two sleeps alike: a false wake-up, unless the thread did something then */
	struct hb_span at;
	u32 sleep; /* the first of them */
	bool did;  /* it woke somebody */
};

struct thread {
	struct hb_edge *edge;
	u32 n;
	bool messages, sockets; /* it ever sleeps on such */
	/* While building: */
	struct woke *woke; /* whom it woke, by time; of those that sleep on messages */
	u32 n_woke;
	struct doubt *doubt; /* by time, none overlaps another */
	u32 n_doubts, cap_doubts;
	u32 at; /* where the last search among them ended */
};

enum { WAKERS = 1024 };
struct waker {	 /* what was found of a tid */
	u32 tid; /* 0: nothing yet */
	u32 thread;
	const struct hb_task *task;
};

struct hb_wake {
	const struct hb_timeline *tl;
	struct thread *thread;
	u32 n;
	struct hb_map *socket; /* one end of a socket -> thread + 1 */
	struct waker *waker;   /* by a part of the tid: the few that wake again and again */
};

const char *hb_wake__by_name(enum hb_wake_by by)
{
	static const char *const names[HB_WAKE_BYS] = {
	    [HB_WAKE_UNKNOWN] = "unknown", [HB_WAKE_THREAD] = "thread",	      [HB_WAKE_OUTSIDE] = "outside",
	    [HB_WAKE_TIMER] = "timer",	   [HB_WAKE_NET] = "network",	      [HB_WAKE_DEVICE] = "device",
	    [HB_WAKE_DISK] = "disk",	   [HB_WAKE_PREEMPTED] = "preempted", [HB_WAKE_STOPPED] = "stopped",
	    [HB_WAKE_OPEN] = "open",
	};

	return by < HB_WAKE_BYS ? names[by] : "?";
}

/* ---- channels ---- */

static bool is_inet(const struct hb_tl_sleep *s)
{
	return s->chankind == HB_CHAN_TCP || s->chankind == HB_CHAN_UDP;
}

static bool is_socket(const struct hb_tl_sleep *s)
{
	return is_inet(s) || s->chankind == HB_CHAN_UNIX || s->chankind == HB_CHAN_SOCKET;
}

static bool is_message(const struct hb_tl_sleep *s)
{
	return is_socket(s) || s->chankind == HB_CHAN_EPOLL || s->chankind == HB_CHAN_EVENTFD ||
	       s->chankind == HB_CHAN_PIPE;
}

static u64 key3(u64 kind, u64 a, u64 b)
{
	u64 k = hb_hash64(hb_hash64(a + kind * 0x9e3779b97f4a7c15ULL) ^ b);

	return k ? k : 1;
}

/* One end of a socket; 0: not known. */
static u64 end_key(const struct hb_timeline *tl, const struct hb_tl_sleep *s, bool other)
{
	const struct hb_tl_place *p = hb_timeline__place(tl, s);

	if (is_inet(s))
		return !p->local || !p->peer ? 0
		       : other		     ? key3(s->chankind, p->peer, p->local)
					     : key3(s->chankind, p->local, p->peer);
	if (s->chankind == HB_CHAN_UNIX && (other ? p->peer : p->chan))
		return key3(s->chankind, other ? p->peer : p->chan, 0);
	return 0;
}

u32 hb_wake__peer(const struct hb_wake *wk, u32 thread, const struct hb_tl_sleep *s)
{
	u64 key = end_key(wk->tl, s, true), at;

	if (!key || !hb_map__get(wk->socket, key, &at) || at - 1 == thread)
		return HB_NONE;
	return (u32)(at - 1);
}

/* ---- typing ---- */

static bool named(const struct hb_tl_sleep *s, u32 tid)
{
	return s->waker && s->waker != tid && (s->wctx == HB_WCTX_TASK || s->wctx == HB_WCTX_OWN_SEND);
}

static bool begins(const char *s, const char *with)
{
	return strncmp(s, with, strlen(with)) == 0;
}

/* Kernel threads act for hardware, or for a sender that they hide. */
static enum hb_wake_by kernel_thread(const char *comm, const struct hb_tl_sleep *s)
{
	if (begins(comm, "ksoftirqd/") || begins(comm, "napi/"))
		return is_socket(s) ? HB_WAKE_NET : HB_WAKE_UNKNOWN;
	if (begins(comm, "irq/"))
		return strstr(comm, "nvidia") || strstr(comm, "amdgpu") ? HB_WAKE_DEVICE : HB_WAKE_UNKNOWN;
	if (begins(comm, "kworker/"))
		return s->state == HB_TSTATE_DISK ? HB_WAKE_DISK : HB_WAKE_UNKNOWN;
	return HB_WAKE_OUTSIDE;
}

static bool is_device_file(const char *path)
{
	return path && (begins(path, "/dev/nvidia") || begins(path, "/dev/kfd") || begins(path, "/dev/dri/"));
}

/* An interrupt ended it: what can only be by its kind of sleep. */
static enum hb_wake_by by_interrupt(const struct hb_wake *wk, u32 pid, const struct hb_tl_sleep *s)
{
	const struct hb_window *w = hb_timeline__window(wk->tl);
	const struct hb_tl_place *p = hb_timeline__place(wk->tl, s);

	switch (s->chankind) {
	case HB_CHAN_TIMER:
	case HB_CHAN_FUTEX: /* else only threads wake */
		return HB_WAKE_TIMER;
	case HB_CHAN_TCP:
	case HB_CHAN_UDP:
		return s->wctx == HB_WCTX_HARDIRQ ? HB_WAKE_TIMER : HB_WAKE_NET;
	case HB_CHAN_EPOLL:
		return s->wctx == HB_WCTX_SOFTIRQ   ? HB_WAKE_NET
		       : s->wctx == HB_WCTX_HARDIRQ ? HB_WAKE_TIMER
						    : HB_WAKE_UNKNOWN;
	case HB_CHAN_FILE:
		return is_device_file(hb_decode__fd(w, pid, p->a0, p->chan)) ? HB_WAKE_DEVICE : HB_WAKE_DISK;
	default:
		return s->state == HB_TSTATE_DISK ? HB_WAKE_DISK : HB_WAKE_UNKNOWN;
	}
}

static const struct waker *waker_of(const struct hb_wake *wk, u32 tid)
{
	struct waker *k = &wk->waker[tid % WAKERS];

	if (k->tid != tid)
		*k = (struct waker){.tid = tid,
				    .thread = hb_timeline__by_tid(wk->tl, tid),
				    .task = hb_window__task_by_tid(hb_timeline__window(wk->tl), tid)};
	return k;
}

static void name_waker(struct hb_wake *wk, const struct hb_tl_sleep *s, struct hb_edge *e)
{
	struct hb_window *w = hb_timeline__window(wk->tl);
	const struct waker *k = waker_of(wk, s->waker);
	const struct hb_task *task = k->task;

	e->thread = k->thread;
	if (e->thread != HB_NONE || (task && task->target))
		e->by = HB_WAKE_THREAD;
	else
		e->by = task ? kernel_thread(hb_decode__comm(w, task), s) : HB_WAKE_OUTSIDE;
}

static bool by_irq(const struct hb_tl_sleep *s)
{
	return s->wctx == HB_WCTX_SOFTIRQ || s->wctx == HB_WCTX_HARDIRQ || s->wctx == HB_WCTX_IDLE;
}

static void type_edge(struct hb_wake *wk, u32 thread, const struct hb_tl_sleep *s, struct hb_edge *e)
{
	const struct hb_tl_thread *t = hb_timeline__thread(wk->tl, thread);
	bool open = (s->flags & HB_OFFCPU_OPEN) && !s->ready;

	if (s->state == HB_TSTATE_RUNNING)
		e->by = HB_WAKE_PREEMPTED;
	else if (open)
		e->by = HB_WAKE_OPEN;
	else if (s->state == HB_TSTATE_STOPPED || s->state == HB_TSTATE_TRACED)
		e->by = HB_WAKE_STOPPED;
	else if (named(s, t->task->tid))
		name_waker(wk, s, e);
	else if (by_irq(s) || s->chankind == HB_CHAN_TIMER)
		e->by = by_interrupt(wk, t->pid, s);
	else if (s->state == HB_TSTATE_DISK)
		e->by = HB_WAKE_DISK;
}

/* Data that an interrupt delivered were sent by somebody: on this machine by who is at the socket's other
 * end. */
static void guess_sender(struct hb_wake *wk, u32 thread, const struct hb_tl_sleep *s, struct hb_edge *e)
{
	u32 peer;

	if (!is_socket(s) || (e->by != HB_WAKE_NET && e->by != HB_WAKE_UNKNOWN))
		return;
	peer = hb_wake__peer(wk, thread, s);
	if (peer == HB_NONE)
		return;
	e->by = HB_WAKE_THREAD;
	e->thread = peer;
	e->guessed = true;
}

/* ---- building ---- */

static int note_socket(struct hb_wake *wk, u64 key, u32 thread)
{
	bool fresh;
	u64 *at = key ? hb_map__slot(wk->socket, key, &fresh) : NULL;

	if (at && fresh)
		*at = thread + 1;
	return key && !at ? -1 : 0;
}

/* The same as far as it is the same place, whatever else the calls were given. */
static bool on_the_same(const struct hb_timeline *tl, const struct hb_tl_sleep *a,
			const struct hb_tl_sleep *b)
{
	const struct hb_tl_place *x, *y;

	if (a->chankind != b->chankind || a->place == b->place)
		return a->chankind == b->chankind;
	x = hb_timeline__place(tl, a);
	y = hb_timeline__place(tl, b);
	return x->chan == y->chan && x->a0 == y->a0;
}

static bool called_in(const struct hb_wake *wk, u32 thread, u64 begin, u64 end)
{
	u32 n, i = hb_timeline__from(wk->tl, thread, HB_TL_CALL, begin);
	const struct hb_tl_call *c = hb_timeline__calls(wk->tl, thread, &n);

	return i < n && c[i].at.begin < end;
}

/* Woken, the condition false, asleep again: in the same call on the same thing, nothing called; if nobody was
 * woken. */
static bool may_be_false(const struct hb_wake *wk, u32 thread, const struct hb_tl_sleep *a,
			 const struct hb_tl_sleep *b)
{
	u64 from = a->at.end, to = b->at.begin;

	return to >= from && to - from <= FALSE_GAP_NS && a->sysno == b->sysno && a->sysno != HB_SYSNO_NONE &&
	       a->chankind != HB_CHAN_TIMER && a->state != HB_TSTATE_RUNNING &&
	       b->state != HB_TSTATE_RUNNING && on_the_same(wk->tl, a, b) && !called_in(wk, thread, from, to);
}

static int add_doubt(struct thread *t, u32 sleep, u64 from, u64 to)
{
	if (t->n_doubts == t->cap_doubts) {
		u32 cap = t->cap_doubts ? 2 * t->cap_doubts : 64;
		struct doubt *p = reallocarray(t->doubt, cap, sizeof(*p));

		if (!p)
			return -1;
		t->doubt = p;
		t->cap_doubts = cap;
	}
	t->doubt[t->n_doubts++] = (struct doubt){.at = {.begin = from, .end = to}, .sleep = sleep};
	return 0;
}

/* Who sleeps on a socket has that end of it; who woke a sleeper by a send has the other. */
static int note_ends(struct hb_wake *wk, u32 thread, const struct hb_tl_sleep *s, const struct hb_edge *e)
{
	int err = note_socket(wk, end_key(wk->tl, s, false), thread);

	wk->thread[thread].sockets = true;
	if (!err && e->by == HB_WAKE_THREAD && e->thread != HB_NONE)
		err = note_socket(wk, end_key(wk->tl, s, true), e->thread);
	return err;
}

static int type_all(struct hb_wake *wk, u32 thread)
{
	struct thread *t = &wk->thread[thread];
	const struct hb_tl_sleep *s = hb_timeline__sleeps(wk->tl, thread, &t->n);
	int err = 0;

	t->edge = malloc((t->n + 1ULL) * sizeof(*t->edge));
	if (!t->edge)
		return -1;
	for (u32 i = 0; i < t->n && !err; i++) {
		struct hb_edge e = {.thread = HB_NONE, .last = i};

		type_edge(wk, thread, &s[i], &e);
		t->edge[i] = e;
		t->messages |= is_message(&s[i]);
		if (e.thread != HB_NONE)
			wk->thread[e.thread].n_woke++;
		if (is_socket(&s[i]))
			err = note_ends(wk, thread, &s[i], &e);
		if (!err && i && may_be_false(wk, thread, &s[i - 1], &s[i]))
			err = add_doubt(t, i - 1, s[i - 1].at.end, s[i].at.begin);
	}
	return err;
}

static void guess_all(struct hb_wake *wk, u32 thread)
{
	struct thread *t = &wk->thread[thread];
	const struct hb_tl_sleep *s = hb_timeline__sleeps(wk->tl, thread, &t->n);

	for (u32 i = 0; i < t->n && t->sockets; i++) {
		guess_sender(wk, thread, &s[i], &t->edge[i]);
		if (t->edge[i].guessed)
			wk->thread[t->edge[i].thread].n_woke++;
	}
}

/* The thread woke somebody: in a moment that is in doubt? */
static void settle(struct thread *t, u64 woken)
{
	t->at = hb_spans__from(t->doubt, sizeof(*t->doubt), t->n_doubts, t->at, woken + 1);
	if (t->at && t->doubt[t->at - 1].at.end > woken)
		t->doubt[t->at - 1].did = true;
}

static void note_woken(struct hb_wake *wk, u32 thread)
{
	u32 n;
	const struct hb_tl_sleep *s = hb_timeline__sleeps(wk->tl, thread, &n);
	const struct hb_edge *e = wk->thread[thread].edge;

	for (u32 i = 0; i < n; i++) {
		struct thread *by = e[i].thread == HB_NONE ? NULL : &wk->thread[e[i].thread];

		if (by && by->n_doubts)
			settle(by, hb_sleep__woken(&s[i]));
		if (by && by->messages)
			by->woke[by->n_woke++] =
			    (struct woke){.at = hb_sleep__woken(&s[i]), .thread = thread, .sleep = i};
	}
}

#define AT_OF(x) ((x)->at)
HB_RADIX_SORT(sort_woke, struct woke, AT_OF)

static int collect_woken(struct hb_wake *wk)
{
	int err = 0;

	for (u32 i = 0; i < wk->n; i++) {
		struct thread *t = &wk->thread[i];

		t->woke = t->messages ? malloc((t->n_woke + 1ULL) * sizeof(*t->woke)) : NULL;
		if (t->messages && !t->woke)
			return -1;
		t->n_woke = 0;
	}
	for (u32 i = 0; i < wk->n; i++)
		note_woken(wk, i);
	for (u32 i = 0; i < wk->n && !err; i++)
		if (wk->thread[i].n_woke)
			err = sort_woke(wk->thread[i].woke, wk->thread[i].n_woke);
	return err;
}

static void join_false(struct thread *t)
{
	for (u32 i = t->n_doubts; i-- > 0;) {
		struct hb_edge *e = &t->edge[t->doubt[i].sleep];

		e->falsely = !t->doubt[i].did;
		if (e->falsely)
			e->last = e[1].last;
	}
}

/* An I/O thread sleeps on messages, and stands between a thread of its process and the other side: its sleep
 * `at` was the last one before it woke another. */
static bool is_relay(const struct hb_wake *wk, u32 thread, u32 at, const struct woke *x)
{
	const struct hb_timeline *tl = wk->tl;
	u32 n, pid = hb_timeline__thread(tl, thread)->pid;
	const struct hb_tl_sleep *s = &hb_timeline__sleeps(tl, thread, &n)[at];
	const struct hb_edge *in = &wk->thread[thread].edge[at];

	return s->at.end <= x->at && is_message(s) && in->by == HB_WAKE_THREAD && in->thread != HB_NONE &&
	       in->thread != x->thread && x->at - hb_sleep__woken(s) <= RELAY_NS &&
	       (pid == hb_timeline__thread(tl, x->thread)->pid ||
		pid == hb_timeline__thread(tl, in->thread)->pid) &&
	       !called_in(wk, thread, s->at.end, x->at);
}

/* Whom a thread woke, beside its own sleeps. */
static void mark_relays(struct hb_wake *wk, u32 thread)
{
	struct thread *t = &wk->thread[thread];
	const struct hb_tl_sleep *s = hb_timeline__sleeps(wk->tl, thread, &t->n);
	u32 next = 0;

	for (u32 i = 0; t->messages && i < t->n_woke; i++) {
		const struct woke *x = &t->woke[i];

		while (next < t->n && s[next].at.begin < x->at)
			next++;
		if (next)
			wk->thread[x->thread].edge[x->sleep].relay = is_relay(wk, thread, next - 1, x);
	}
}

/* Gives back what only building needs. */
static void tidy_up(struct thread *t)
{
	free(t->woke);
	free(t->doubt);
	t->woke = NULL;
	t->doubt = NULL;
	t->n_woke = t->n_doubts = t->cap_doubts = 0;
}

struct hb_wake *hb_wake__build(const struct hb_timeline *tl, struct hb_error *e)
{
	struct hb_wake *wk = calloc(1, sizeof(*wk));
	int err = !wk;

	if (wk) {
		wk->tl = tl;
		wk->n = hb_timeline__threads(tl);
		wk->thread = calloc(wk->n + 1, sizeof(*wk->thread));
		wk->socket = hb_map__new();
		wk->waker = calloc(WAKERS, sizeof(*wk->waker));
		err = !wk->thread || !wk->socket || !wk->waker;
	}
	for (u32 i = 0; !err && i < wk->n; i++)
		err = type_all(wk, i);
	for (u32 i = 0; !err && i < wk->n; i++)
		guess_all(wk, i);
	if (!err)
		err = collect_woken(wk);
	if (err) {
		hb_error__nomem(e, "wake edges");
		hb_wake__free(wk);
		return NULL;
	}
	for (u32 i = 0; i < wk->n; i++)
		join_false(&wk->thread[i]);
	for (u32 i = 0; i < wk->n; i++)
		mark_relays(wk, i);
	for (u32 i = 0; i < wk->n; i++)
		tidy_up(&wk->thread[i]);
	return wk;
}

void hb_wake__free(struct hb_wake *wk)
{
	if (!wk)
		return;
	for (u32 i = 0; wk->thread && i < wk->n; i++) {
		free(wk->thread[i].edge);
		tidy_up(&wk->thread[i]);
	}
	free(wk->thread);
	hb_map__free(wk->socket);
	free(wk->waker);
	free(wk);
}

u64 hb_wake__memory(const struct hb_wake *wk)
{
	u64 bytes = sizeof(*wk) + hb_map__size(wk->socket) * 32;

	for (u32 i = 0; i < wk->n; i++)
		bytes += sizeof(*wk->thread) + wk->thread[i].n * sizeof(struct hb_edge);
	return bytes;
}

const struct hb_timeline *hb_wake__timeline(const struct hb_wake *wk)
{
	return wk->tl;
}

const struct hb_edge *hb_wake__edges(const struct hb_wake *wk, u32 thread, u32 *n)
{
	*n = wk->thread[thread].n;
	return wk->thread[thread].edge;
}

const struct hb_task *hb_wake__task(const struct hb_wake *wk, u32 thread, u32 i)
{
	const struct hb_edge *e = &wk->thread[thread].edge[i];
	u32 n;

	if (e->guessed)
		return hb_timeline__thread(wk->tl, e->thread)->task;
	if (e->by != HB_WAKE_THREAD && e->by != HB_WAKE_OUTSIDE)
		return NULL;
	return waker_of(wk, hb_timeline__sleeps(wk->tl, thread, &n)[i].waker)->task;
}

u32 hb_wake__stack(const struct hb_wake *wk, u32 thread, u32 i)
{
	const struct hb_edge *e = wk->thread[thread].edge;
	u32 n, stack = 0;
	const struct hb_tl_sleep *s = hb_timeline__sleeps(wk->tl, thread, &n);
	u64 most = 0;

	for (u32 k = e[i].last;; k--) {
		u64 ns = s[k].at.end - s[k].at.begin;

		if (s[k].at.stack && ns >= most) {
			most = ns;
			stack = s[k].at.stack;
		}
		if (!k || e[k - 1].last != e[i].last)
			return stack;
	}
}
