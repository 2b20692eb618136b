/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analysis/patterns/rpc.h"
#include "base/map.h"

#include <errno.h>
#include <stdlib.h>

struct poke { /* the dispatch thread woke a thread of that process */
	u64 at;
	u32 pid;
};

static int cmp_poke(const void *a, const void *b)
{
	const struct poke *x = a, *y = b;

	return x->at < y->at ? -1 : x->at > y->at;
}

/* All wake-ups by a thread, by time. */
static struct poke *pokes_of(const struct hb_scene *s, u32 thread, u32 *count)
{
	struct poke *v = calloc(hb_timeline__count(s->tl, HB_TL_SLEEP) + 1, sizeof(*v));
	u32 n;

	*count = 0;
	for (u32 t = 0; t < hb_timeline__threads(s->tl) && v; t++) {
		const struct hb_edge *e = hb_wake__edges(s->wk, t, &n);
		const struct hb_tl_sleep *z = hb_timeline__sleeps(s->tl, t, &n);

		for (u32 i = 0; i < n; i++)
			if (e[i].thread == thread && t != thread)
				v[(*count)++] = (struct poke){.at = hb_sleep__woken(&z[i]),
							      .pid = hb_timeline__thread(s->tl, t)->pid};
	}
	if (v)
		qsort(v, *count, sizeof(*v), cmp_poke);
	return v;
}

static bool poked(const struct poke *v, u32 n, u32 pid, u64 from, u64 to)
{
	u32 lo = 0, hi = n;

	while (lo < hi) {
		u32 mid = lo + (hi - lo) / 2;

		if (v[mid].at < from)
			lo = mid + 1;
		else
			hi = mid;
	}
	for (; lo < n && v[lo].at < to; lo++)
		if (v[lo].pid == pid)
			return true;
	return false;
}

static bool is_message(const struct hb_tl_sleep *z)
{
	switch (z->chankind) {
	case HB_CHAN_UNIX:
	case HB_CHAN_TCP:
	case HB_CHAN_UDP:
	case HB_CHAN_SOCKET:
	case HB_CHAN_PIPE:
	case HB_CHAN_EVENTFD:
	case HB_CHAN_EPOLL:
	case HB_CHAN_FUTEX: /* a queue in shared memory */
		return z->state == HB_TSTATE_SLEEPING;
	}
	return false;
}

/* Who ends a wait on one socket or pipe is at its other end; an event loop may have been asked something
 * itself. */
static bool is_one_peer(const struct hb_tl_sleep *z)
{
	return z->chankind == HB_CHAN_UNIX || z->chankind == HB_CHAN_TCP || z->chankind == HB_CHAN_UDP ||
	       z->chankind == HB_CHAN_SOCKET || z->chankind == HB_CHAN_PIPE;
}

static const struct hb_frame_rule kv[] = {
    {"*", "*allocate*"},    {"*", "*kv_*"},	 {"*", "*_kv"},	       {"*", "*KV*"},
    {"*", "*lookup*"},	    {"*", "*prefetch*"}, {"*connector*", "*"}, {"*", "*matched_tokens*"},
    {"*", "*block_table*"}, {NULL, NULL},
};

const struct hb_series *hb_rpcs__series(const struct hb_scene *s, u32 thread)
{
	u32 pid = hb_timeline__thread(s->tl, thread)->pid;
	const struct hb_series *p = hb_steps__of_pid(s->steps, pid);

	if (p)
		return p;
	hb_path__exposed(s->path, thread, s->start, s->end, &pid);
	p = hb_steps__of_pid(s->steps, pid);
	return p || !hb_steps__series(s->steps) ? p : hb_steps__at(s->steps, 0);
}

/* It launches: waiting for it is waiting for a step's result, not for an answer. */
static bool dispatches(const struct hb_scene *s, u32 pid)
{
	const struct hb_series *p = hb_steps__of_pid(s->steps, pid);

	return p && p->ops;
}

static u64 next_work(const struct hb_scene *s, u64 t)
{
	u64 at = s->end;

	for (u32 i = 0; i < hb_steps__series(s->steps); i++) {
		u32 thread = hb_steps__at(s->steps, i)->dispatch;
		u64 one = thread == HB_NONE ? at : hb_scene__next_work_at(s, thread, t);

		at = one < at ? one : at;
	}
	return at;
}

/* When the wait before this one ended: a thread that loses its CPU between asking and waiting, or takes the
 * GIL again after sending, does not wait for an answer.
 */
static u64 last_wait_end(const struct hb_scene *s, u32 thread, const struct hb_tl_sleep *z, u32 i)
{
	while (i && (z[i - 1].state == HB_TSTATE_RUNNING ||
		     hb_timeline__at(s->tl, thread, HB_TL_GIL, z[i - 1].at.begin) != HB_NONE))
		i--;
	return i ? z[i - 1].at.end : s->start;
}

/* Whom a thread woke. Most threads have no wait for which that is asked, and it takes a look at the sleeps of
 * all threads. */
struct pokes {
	struct poke *v;
	u32 n;
	bool asked;
	u32 pid; /* of who answered last; HB_NONE: nobody */
	bool serves;
};

static bool asked_before(const struct hb_scene *s, u32 thread, struct pokes *p, u32 pid, u64 from, u64 to)
{
	if (!p->asked)
		p->v = pokes_of(s, thread, &p->n);
	p->asked = true;
	return p->v && poked(p->v, p->n, pid, from, to);
}

/* Neither drives our process nor is driven by it. Of many answers in a row one process is asked for. */
static bool serves(const struct hb_scene *s, struct pokes *p, u32 server, u32 pid)
{
	if (server != p->pid)
		p->serves = server != pid && !hb_scene__ancestor(s, server, pid) && !dispatches(s, server);
	p->pid = server;
	return p->serves;
}

/* One wait, false wake-ups joined: fills *r, false when it is none. */
static bool examine(const struct hb_scene *s, u32 thread, u32 i, struct pokes *p, struct hb_rpc *r)
{
	u32 n, pid = hb_timeline__thread(s->tl, thread)->pid;
	const struct hb_tl_sleep *z = hb_timeline__sleeps(s->tl, thread, &n);
	const struct hb_edge *e = hb_wake__edges(s->wk, thread, &n);
	u32 last = e[i].last < n ? e[i].last : i;
	const struct hb_task *by = is_message(&z[i]) ? hb_wake__task(s->wk, thread, last) : NULL;

	if (!by || !serves(s, p, by->pid, pid))
		return false;
	*r = (struct hb_rpc){.begin = z[i].at.begin,
			     .end = z[last].at.end,
			     .thread = thread,
			     .stack = hb_wake__stack(s->wk, thread, i),
			     .server_pid = by->pid,
			     .server = by};
	r->seen =
	    asked_before(s, thread, p, by->pid, last_wait_end(s, thread, z, i), hb_sleep__woken(&z[last]));
	r->next = next_work(s, r->end);
	return r->seen || (!by->target && is_one_peer(&z[last]));
}

static int push(struct hb_rpcs *out, const struct hb_rpc *r)
{
	if (out->n == out->cap) {
		u32 cap = out->cap ? 2 * out->cap : 64;
		struct hb_rpc *v = reallocarray(out->v, cap, sizeof(*v));

		if (!v)
			return -ENOMEM;
		out->v = v;
		out->cap = cap;
	}
	out->v[out->n++] = *r;
	return 0;
}

/* A call under way when the window begins or ends has one half only: it is one when it waits where others
 * did. */
static int at_the_edges(const struct hb_scene *s, u32 thread, struct hb_rpcs *out)
{
	u32 n, found = out->n;
	int err = 0;
	const struct hb_tl_sleep *z = hb_timeline__sleeps(s->tl, thread, &n);

	for (u32 i = 0; i < n && !err; i++) {
		if (!(z[i].flags & (HB_OFFCPU_BEFORE | HB_OFFCPU_OPEN)))
			continue;
		for (u32 k = 0; k < found; k++) {
			struct hb_rpc r = out->v[k];

			if (r.stack != z[i].at.stack || !r.stack || r.begin == z[i].at.begin)
				continue;
			r.begin = z[i].at.begin;
			r.end = z[i].at.end;
			r.next = next_work(s, r.end);
			err = push(out, &r);
			break;
		}
	}
	return err;
}

int hb_rpcs__find(const struct hb_scene *s, u32 thread, u64 least, struct hb_rpcs *out)
{
	u32 n, edges;
	struct pokes p = {.pid = HB_NONE};
	const struct hb_edge *e = hb_wake__edges(s->wk, thread, &edges);
	int err = 0;

	hb_timeline__sleeps(s->tl, thread, &n);
	*out = (struct hb_rpcs){.n = 0};
	for (u32 i = 0; i < n && !err; i++) {
		struct hb_rpc r;

		if (examine(s, thread, i, &p, &r) && r.end - r.begin >= least)
			err = push(out, &r);
		if (e[i].last < n && e[i].last > i)
			i = e[i].last;
	}
	free(p.v);
	err = p.asked && !p.v ? -ENOMEM : err;
	err = err ? err : at_the_edges(s, thread, out);
	if (err)
		hb_rpcs__free(out);
	return err;
}

void hb_rpcs__free(struct hb_rpcs *r)
{
	free(r->v);
	*r = (struct hb_rpcs){.n = 0};
}

/* Stacks and servers are few, waits are many: each stack is looked at once. NO is what is kept for one that
 * is none, as 0 says that it was not looked at. */
enum { NO = 1, YES };

static bool is_kv(const struct hb_scene *s, u32 pid, u32 stack, struct hb_map *seen)
{
	u64 *known = hb_map__slot(seen, stack, NULL);

	if (!known)
		return hb_scene__frame(s, pid, stack, kv);
	if (!*known)
		*known = hb_scene__frame(s, pid, stack, kv) ? YES : NO;
	return *known == YES;
}

/* One without a stack, such as at the window's begin, is what the others with that server are. */
int hb_rpcs__keep(const struct hb_scene *s, u32 thread, struct hb_rpcs *r, bool of_kv)
{
	u32 pid = hb_timeline__thread(s->tl, thread)->pid, to = 0;
	struct hb_map *stacks = hb_map__new(), *servers = hb_map__new();
	int err = stacks && servers ? 0 : -ENOMEM;

	for (u32 i = 0; i < r->n && !err; i++) {
		r->v[i].kv = r->v[i].stack && is_kv(s, pid, r->v[i].stack, stacks);
		if (r->v[i].kv)
			err = hb_map__put(servers, r->v[i].server_pid, 1);
	}
	for (u32 i = 0; i < r->n && !err; i++) {
		if (!r->v[i].stack)
			r->v[i].kv = hb_map__get(servers, r->v[i].server_pid, NULL);
		if (r->v[i].kv == of_kv)
			r->v[to++] = r->v[i];
	}
	r->n = to;
	hb_map__free(stacks);
	hb_map__free(servers);
	return err;
}

u32 hb_rpcs__steps(const struct hb_series *p, const struct hb_rpcs *r)
{
	u32 steps = 0, last = HB_NONE;

	for (u32 i = 0; i < r->n; i++) {
		u32 at = hb_series__find(p, r->v[i].begin);

		steps += at != HB_NONE && at != last;
		last = at;
	}
	return steps;
}
