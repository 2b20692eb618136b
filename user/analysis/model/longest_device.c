/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What devices did for the stretch, and what each piece of work waited for: its call, the work before it on
 * its stream, an event of another stream; and which calls waited for it. */
#include <errno.h>
#include <stdlib.h>

#include "analysis/model/longest_private.h"
#include "analysis/model/order.h"

/* Work that begins later than this after the work before it on its stream did not wait for that. HTA's
 * number: kernels follow each other within 10 us, collectives within 1 ms. */
#define KERNEL_DELAY_NS 1500000

struct piece {	   /* an operation with a call */
	u64 given; /* that call's begin */
	u32 stream, thread;
	u32 op;	    /* index of the device's operations */
	bool first; /* of its call, on its stream */
};

struct state {
	u32 call;	   /* event of the call, HB_NONE: not in the stretch */
	u32 event;	   /* of the operation; HB_NONE: not in the stretch */
	u32 after;	   /* event of another stream's work that it waits for; HB_NONE */
	bool first, alone; /* of its call; the stream had nothing else to do, at the call and at its begin */
	u64 given;
};

struct side { /* one device */
	struct hb_longest *l;
	const struct hb_device *v;
	struct state *op;	 /* of each operation */
	struct piece *by_stream; /* by stream, given */
	struct piece *by_thread; /* by stream, thread, given */
	u32 n;
	u32 *last; /* event of each stream's last work; HB_NONE */
};

/* ---- the pieces ---- */

static int cmp_pieces(const void *a, const void *b)
{
	const struct piece *x = a, *y = b;

	if (x->stream != y->stream)
		return x->stream < y->stream ? -1 : 1;
	if (x->given != y->given)
		return x->given < y->given ? -1 : 1;
	return x->op < y->op ? -1 : x->op > y->op;
}

static int cmp_threads(const void *a, const void *b)
{
	const struct piece *x = a, *y = b;

	if (x->stream != y->stream)
		return x->stream < y->stream ? -1 : 1;
	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	return cmp_pieces(a, b);
}

/* The call with this number that began then; any, for begin 0. */
static const struct hb_numbered *call_of(const struct hb_longest *l, u64 correlation, u64 begin)
{
	u32 lo = 0, hi = l->n_numbered;

	while (lo < hi) {
		u32 mid = lo + (hi - lo) / 2;
		const struct hb_numbered *c = &l->numbered[mid];

		if (c->correlation < correlation || (c->correlation == correlation && c->begin < begin))
			lo = mid + 1;
		else
			hi = mid;
	}
	if (!correlation || lo == l->n_numbered || l->numbered[lo].correlation != correlation)
		return NULL;
	return !begin || l->numbered[lo].begin == begin ? &l->numbered[lo] : NULL;
}

static void collect(struct side *s)
{
	const struct hb_longest *l = s->l;
	const struct hb_device *v = s->v;

	for (u32 i = 0; i < v->n_ops; i++) {
		const struct hb_launch *h = hb_devices__launch_of(l->d, &v->op[i]);
		const struct hb_numbered *c = h ? call_of(l, h->correlation, h->begin) : NULL;

		s->op[i] = (struct state){.call = c ? c->event : HB_NONE,
					  .event = HB_NONE,
					  .after = HB_NONE,
					  .given = h ? h->begin : 0};
		if (c)
			s->by_stream[s->n++] = (struct piece){h->begin, v->op[i].stream, c->thread, i, false};
	}
	if (s->n)
		qsort(s->by_stream, s->n, sizeof(*s->by_stream), cmp_pieces);
	for (u32 i = 0; i < s->n; i++) {
		const struct piece *p = &s->by_stream[i], *q = i ? p - 1 : NULL;

		s->by_stream[i].first = !q || q->stream != p->stream || q->given != p->given;
		s->op[p->op].first = s->by_stream[i].first;
		s->by_thread[i] = *p;
	}
	if (s->n)
		qsort(s->by_thread, s->n, sizeof(*s->by_thread), cmp_threads);
}

/* First index of the sorted keys that is above `key`, or (at) not below it. */
static u32 bound(const struct hb_order *v, u32 n, u64 key, bool at)
{
	u32 lo = 0, hi = n;

	while (lo < hi) {
		u32 mid = lo + (hi - lo) / 2;

		if (v[mid].key < key || (!at && v[mid].key == key))
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* Which calls of one stream found nothing in its queue, and whose work left nothing in it when it began.
 * Many operations of one call count once. */
static int find_alone(struct side *s, u32 from, u32 to, struct hb_order *given, struct hb_order *begun)
{
	u32 n = 0;
	int err;

	for (u32 i = from; i < to; i++) {
		const struct piece *p = &s->by_stream[i];

		if (!p->first)
			continue;
		given[n] = (struct hb_order){.key = p->given, .item = p->op};
		begun[n++] = (struct hb_order){.key = s->v->op[p->op].begin, .item = p->op};
	}
	err = hb_order__sort(begun, n);
	for (u32 i = 0; i < n && !err; i++) {
		struct state *o = &s->op[given[i].item];
		u64 begin = s->v->op[given[i].item].begin;
		/* At one moment a call counts before a begin. */
		u32 at_call = bound(given, n, o->given, false) - bound(begun, n, o->given, true);
		u32 at_begin = bound(given, n, begin, false), done = bound(begun, n, begin, false);

		o->alone = at_call == 1 && at_begin == done;
	}
	return err;
}

static int find_all_alone(struct side *s)
{
	struct hb_order *given = malloc(((size_t)s->n + 1) * sizeof(*given));
	struct hb_order *begun = malloc(((size_t)s->n + 1) * sizeof(*begun));
	int err = given && begun ? 0 : -ENOMEM;

	for (u32 i = 0, end; i < s->n && !err; i = end) {
		for (end = i; end < s->n && s->by_stream[end].stream == s->by_stream[i].stream;)
			end++;
		err = find_alone(s, i, end, given, begun);
	}
	free(given);
	free(begun);
	return err;
}

/* ---- events ---- */

static int add_work(struct side *s)
{
	struct hb_longest *l = s->l;

	for (u32 i = 0; i < s->v->n_ops; i++) {
		const struct hb_device_op *o = &s->v->op[i];
		struct hb_cp_event *e;

		if (s->op[i].call == HB_NONE)
			continue;
		s->op[i].event = l->n_events;
		e = hb_longest__event(l);
		if (!e)
			return -ENOMEM;
		*e = (struct hb_cp_event){.begin = o->begin,
					  .end = o->end,
					  .name = o->name,
					  .thread = HB_NONE,
					  .parent = HB_NONE,
					  .index = i,
					  .device = s->v->index,
					  .what = HB_CP_WORK,
					  .work = (u8)o->work};
		l->sum.works = true;
	}
	return 0;
}

/* ---- waits for events ---- */

static u32 stream_of(const struct side *s, u64 number)
{
	for (u32 i = 0; i < s->v->n_streams; i++)
		if (s->v->stream[i].number == number)
			return i;
	return HB_NONE;
}

/* The last work that was given to a stream by then; HB_NONE. */
static u32 given_by(const struct side *s, u64 stream, u64 t)
{
	u32 lo = 0, hi = s->n, of = stream_of(s, stream);
	struct piece key = {.stream = of, .given = t, .op = HB_NONE};

	while (lo < hi) {
		u32 mid = lo + (hi - lo) / 2;

		if (cmp_pieces(&s->by_stream[mid], &key) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return of != HB_NONE && lo && s->by_stream[lo - 1].stream == of ? s->by_stream[lo - 1].op : HB_NONE;
}

/* The first work that a thread gave to a stream from then on; HB_NONE. */
static u32 given_from(const struct side *s, u64 stream, u32 thread, u64 t)
{
	u32 lo = 0, hi = s->n, of = stream_of(s, stream);
	struct piece key = {.stream = of, .thread = thread, .given = t};

	while (lo < hi) {
		u32 mid = lo + (hi - lo) / 2;

		if (cmp_threads(&s->by_thread[mid], &key) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (of == HB_NONE || lo == s->n || s->by_thread[lo].stream != of || s->by_thread[lo].thread != thread)
		return HB_NONE;
	return s->by_thread[lo].op;
}

static int on_event_wait(struct side *s, const struct hb_tl_devwait *w, const struct hb_numbered *call)
{
	const struct hb_numbered *record = call_of(s->l, w->waits, 0);
	u32 src = record ? given_by(s, w->wstream, record->begin) : HB_NONE, dest;

	if (src == HB_NONE || s->op[src].event == HB_NONE)
		return 0;
	if (w->sync == HB_SYNCKIND_EVENT)
		return call->event == HB_NONE
			   ? 0
			   : hb_longest__link(s->l, HB_LINK_SYNC, HB_NODE_END(s->op[src].event),
					      HB_NODE_END(call->event), false, HB_NONE);
	dest = given_from(s, w->stream, call->thread, call->begin);
	if (dest != HB_NONE && dest != src)
		s->op[dest].after = s->op[src].event;
	return 0;
}

static int on_wait(struct side *s, const struct hb_tl_devwait *w)
{
	const struct hb_numbered *call = call_of(s->l, w->correlation, 0);
	bool all = w->sync == HB_SYNCKIND_CONTEXT || w->stream == UINT32_MAX;
	int err = 0;

	s->l->sum.syncs += hb_longest__holds(s->l, w->at.begin);
	if (!call)
		return 0;
	if (w->sync == HB_SYNCKIND_EVENT || w->sync == HB_SYNCKIND_STREAM_WAIT)
		return on_event_wait(s, w, call);
	for (u32 i = 0; i < s->v->n_streams && call->event != HB_NONE && !err; i++)
		if (s->last[i] != HB_NONE && (all || s->v->stream[i].number == w->stream))
			err = hb_longest__link(s->l, HB_LINK_SYNC, HB_NODE_END(s->last[i]),
					       HB_NODE_END(call->event), false, HB_NONE);
	return err;
}

/* ---- links of work ---- */

static int link_work(struct side *s, u32 i)
{
	struct hb_longest *l = s->l;
	const struct state *o = &s->op[i];
	u32 begin = HB_NODE_BEGIN(o->event), stream = s->v->op[i].stream;
	u32 last = s->last[stream], from = HB_NODE_BEGIN(o->call);
	u64 last_end = last == HB_NONE ? 0 : l->event[last].end;
	u64 after_end = o->after == HB_NONE ? 0 : l->event[o->after].end;
	bool alone = o->first && o->alone && (last == HB_NONE || last_end < o->given) &&
		     (o->after == HB_NONE || after_end < o->given);
	int err = hb_longest__link(l, HB_LINK_SPAN, begin, HB_NODE_END(o->event), true, o->event);

	if (!err && o->after != HB_NONE)
		err = hb_longest__link(l, HB_LINK_SYNC, HB_NODE_END(o->after), begin, false, HB_NONE);
	if (!err && !alone && last != HB_NONE && s->v->op[i].begin < last_end + KERNEL_DELAY_NS &&
	    (o->after == HB_NONE || after_end < last_end))
		err = hb_longest__link(l, HB_LINK_KERNEL, HB_NODE_END(last), begin, true, last);
	err = err ? err : hb_longest__link(l, HB_LINK_LAUNCH, from, begin, alone, o->event);
	/* A copy that is not asynchronous returns when it is done; HTA has no link for that. */
	if (!err && s->v->op[i].kind == HB_DEVKIND_MEMCPY && l->event[o->call].waits &&
	    s->v->op[i].end <= l->event[o->call].end)
		err = hb_longest__link(l, HB_LINK_SYNC, HB_NODE_END(o->event), HB_NODE_END(o->call), false,
				       HB_NONE);
	s->last[stream] = o->event;
	return err;
}

/* Waits of this device, by their end. */
static int collect_waits(const struct side *s, const struct hb_tl_devwait ***out, u32 *n_out)
{
	const struct hb_timeline *tl = s->l->tl;
	const struct hb_tl_devwait **w = NULL, **sorted;
	struct hb_order *order = NULL;
	u32 n = 0, k;
	int err = 0;

	for (u32 t = hb_timeline__of_pid(tl, s->l->sum.pid, HB_NONE); t != HB_NONE && !err;
	     t = hb_timeline__of_pid(tl, s->l->sum.pid, t)) {
		const struct hb_tl_devwait *x = hb_timeline__devwaits(tl, t, &k);
		const struct hb_tl_devwait **p = realloc(w, ((size_t)n + k + 1) * sizeof(*w));

		err = p ? 0 : -ENOMEM;
		w = p ? p : w;
		for (u32 i = 0; i < k && !err; i++)
			if (x[i].device == s->v->number)
				w[n++] = &x[i];
	}
	sorted = malloc(((size_t)n + 1) * sizeof(*sorted));
	order = malloc(((size_t)n + 1) * sizeof(*order));
	err = err || !sorted || !order ? -ENOMEM : 0;
	for (u32 i = 0; i < n && !err; i++)
		order[i] = (struct hb_order){.key = w[i]->at.end, .item = i};
	err = err ? err : hb_order__sort(order, n);
	for (u32 i = 0; i < n && !err; i++)
		sorted[i] = w[order[i].item];
	free(order);
	free(w);
	if (err) {
		free(sorted);
		return err;
	}
	*out = sorted;
	*n_out = n;
	return 0;
}

static int link_device(struct side *s)
{
	const struct hb_tl_devwait **w = NULL;
	u32 n = 0, k = 0;
	int err = collect_waits(s, &w, &n);

	for (u32 i = 0; i < s->v->n_ops && !err; i++) {
		for (; k < n && w[k]->at.end <= s->v->op[i].begin && !err; k++)
			err = on_wait(s, w[k]);
		if (!err && s->op[i].event != HB_NONE)
			err = link_work(s, i);
	}
	for (; k < n && !err; k++)
		err = on_wait(s, w[k]);
	free(w);
	return err;
}

static int add_device(struct hb_longest *l, const struct hb_device *v)
{
	struct side s = {.l = l, .v = v};
	size_t n = (size_t)v->n_ops + 1;
	int err;

	s.op = calloc(n, sizeof(*s.op));
	s.by_stream = malloc(n * sizeof(*s.by_stream));
	s.by_thread = malloc(n * sizeof(*s.by_thread));
	s.last = malloc(((size_t)v->n_streams + 1) * sizeof(*s.last));
	err = s.op && s.by_stream && s.by_thread && s.last ? 0 : -ENOMEM;
	for (u32 i = 0; i < v->n_streams && !err; i++)
		s.last[i] = HB_NONE;
	if (!err)
		collect(&s);
	err = err ? err : find_all_alone(&s);
	err = err ? err : add_work(&s);
	err = err ? err : link_device(&s);
	free(s.op);
	free(s.by_stream);
	free(s.by_thread);
	free(s.last);
	return err;
}

int hb_longest__devices(struct hb_longest *l)
{
	int err = 0;

	for (u32 i = 0; l->d && i < hb_devices__count(l->d) && !err; i++)
		if (hb_devices__at(l->d, i)->pid == l->sum.pid)
			err = add_device(l, hb_devices__at(l->d, i));
	return err;
}
