/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a process's device did, from calls alone. Twice through the process's submissions and waits in order
 * of time: first to learn how long work takes, then to tile the window.
 *
 * A wait covers what it waited for: all of the context, a stream, an event's place in its stream, whichever
 * thread waits. A stream's wait also covers what the same thread submitted before the last read-back on it: a
 * copy of results hangs on the work that makes them, and what orders two streams is not probed by default.
 * Where the window has no records of events, an event's wait is one of two: of all the thread submitted
 * (lag 0), or of what it had submitted by its wait before (lag 1, an engine that runs a step ahead).
 */
#include "analysis/model/busy_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/model/dist.h"
#include "analysis/model/order.h"

#define BLOCKED_NS 20000    /* shorter waits do not say that there was work */
#define COLD_NS	   200000   /* nor do these, by a thread that stood still just before: its calls are slow */
#define JUST_NS	   2000000  /* so long before .. */
#define STILL_NS   20000000 /* .. for this long */
#define OPEN_MAX   8192	    /* submissions not known to be done; of more the older half is taken to be */
#define CARRY_MAX  1024	    /* more that was done at an unknown time is not learnt from */

enum what { BEGINS, NO_MORE_BUSY, ENDS };
enum cover { COVER_NOTHING, COVER_ALL, COVER_STREAM, COVER_EVENT };

struct item {		/* a call that gives work, waits, or records an event */
	u64 begin, end; /* of a wait: to where what it covers was done */
	u64 until;	/* the device was at work for it to here; later it is not known */
	u32 thread, call;
	u32 key;    /* of work */
	u32 stream; /* a number for it */
	u8 cover;   /* of a wait: enum cover */
	u8 work, readback, records;
	u8 blocks; /* a wait that says that there was work */
};

struct infer {
	const struct hb_timeline *tl;
	struct hb_busy_row *row;
	struct hb_costs *costs;
	struct item *item;
	u32 n_items, n_keys;
	struct hb_order *event; /* 4 * item + enum what, by time */
	u32 n_events;
	u32 *open, n_open; /* items submitted and not known to be done, in order */
	u64 *given;	   /* when those of `done` were submitted */
	u32 *done, n_done; /* those that waits were the first to cover since `since`; keys for learning */
	u32 n_carried;	   /* the first of these: by waits before the last one */
	u32 *set;	   /* room for a copy of `done` */
	struct hb_map *streams; /* handle -> number */
	u64 last_handle;	/* and its number */
	u32 last_stream;
	struct hb_map *recorded; /* event handle -> item that recorded it + 1 */
	u64 *waited;		 /* by thread: end of its last event wait; NULL: there are none */
	bool events;		 /* the window tells where they were recorded */
	bool lag;		 /* event waits are for the batch before */
	bool learning, dirty;	 /* dirty: work from before the window may be under way */
	u32 depth;		 /* waits that block now */
	u64 since;		 /* the device was at work, or done, up to here for sure */
	bool loose;		 /* with some of what was done by then, longer */
	u64 drain;		 /* when the queue will be empty, likely */
	bool drain_known;
};

/* ---- collecting ---- */

static bool has(const struct infer *x, const struct hb_tl_call *c, const char *word)
{
	const struct hb_window *w = hb_timeline__window(x->tl);
	const struct hb_probe_row *row = hb_window__probe(w, hb_timeline__callee(x->tl, c)->probe);

	return row && strstr(hb_window__string(w, row->name), word);
}

static u8 cover_of(const struct infer *x, const struct hb_tl_call *c)
{
	const struct hb_probe_row *row =
	    hb_window__probe(hb_timeline__window(x->tl), hb_timeline__callee(x->tl, c)->probe);

	if (hb_call__is_sync(c)) {
		if (row && row->handle == HB_HANDLE_EVENT)
			return COVER_EVENT;
		return has(x, c, "Device") || has(x, c, "Ctx") || has(x, c, "Context") ? COVER_ALL
										       : COVER_STREAM;
	}
	if (c->op == HB_OP_COPY && (c->copy == HB_COPY_DTOH || c->copy == HB_COPY_UNKNOWN) &&
	    (hb_call__waited(c) || (c->copy == HB_COPY_DTOH && c->at.end > c->at.begin &&
				    !has(x, c, "Async") && !has(x, c, "Enqueue"))))
		return COVER_STREAM;
	return COVER_NOTHING;
}

static u32 stream_of(struct infer *x, u64 handle)
{
	bool fresh;
	u64 *at;

	if (x->last_stream && x->last_handle == handle)
		return x->last_stream;
	at = hb_map__slot(x->streams, handle, &fresh);
	if (!at)
		return 0; /* out of memory: all of one stream */
	if (fresh)
		*at = hb_map__size(x->streams);
	x->last_handle = handle;
	x->last_stream = (u32)*at;
	return x->last_stream;
}

static u64 handle_of(const struct infer *x, const struct item *it)
{
	u32 n;

	return hb_timeline__callee(x->tl, &hb_timeline__calls(x->tl, it->thread, &n)[it->call])->handle;
}

/* It has just run again after a long time; what it needs has to be fetched from memory anew. */
static bool cold(const struct infer *x, u32 thread, u64 t)
{
	u32 n, i = hb_timeline__from(x->tl, thread, HB_TL_SLEEP, t);
	const struct hb_tl_sleep *s = hb_timeline__sleeps(x->tl, thread, &n);

	while (i-- > 0 && s[i].at.end + JUST_NS > t)
		if (s[i].at.end - s[i].at.begin >= STILL_NS)
			return true;
	return false;
}

static bool says_work(const struct infer *x, const struct item *w)
{
	u64 dur = w->until - w->begin;

	return dur >= COLD_NS || (dur >= BLOCKED_NS && !cold(x, w->thread, w->begin));
}

static int add_item(struct infer *x, u32 thread, u32 i, const struct hb_tl_call *c)
{
	struct item it = {
	    .begin = c->at.begin, .end = c->at.end, .thread = thread, .call = i, .key = HB_NONE};

	it.work = hb_call__is_work(c);
	it.cover = cover_of(x, c);
	it.until = it.end;
	if (it.cover) {
		bool sure;

		it.until = hb_call__done(x->tl, thread, i, &sure);
		it.end = sure ? it.until : it.end;
		it.blocks = says_work(x, &it);
	}
	it.readback = it.work && c->copy == HB_COPY_DTOH;
	it.records =
	    c->op == HB_OP_EVENT && hb_timeline__callee(x->tl, c)->handle && has(x, c, "EventRecord");
	if (!it.work && !it.cover && !it.records)
		return 0;
	x->events |= it.records;
	it.stream = stream_of(x, hb_timeline__callee(x->tl, c)->stream);
	if (it.work) {
		it.key = hb_costs__key(x->costs, x->tl, c);
		if (it.key == HB_NONE)
			return -ENOMEM;
		x->n_keys = it.key >= x->n_keys ? it.key + 1 : x->n_keys;
	}
	x->item[x->n_items++] = it;
	return 0;
}

/* Room for all calls of the classes that items are of. */
static int make_room(struct infer *x, u32 pid)
{
	static const u8 ops[] = {HB_OP_LAUNCH,	   HB_OP_GRAPH, HB_OP_COPY,
				 HB_OP_COLLECTIVE, HB_OP_SYNC,	HB_OP_EVENT};
	u64 n = 0;

	for (u32 t = hb_timeline__of_pid(x->tl, pid, HB_NONE); t != HB_NONE;
	     t = hb_timeline__of_pid(x->tl, pid, t))
		for (u32 k = 0; k < sizeof(ops); k++)
			n += hb_timeline__thread(x->tl, t)->by_op[ops[k]];
	x->item = n < UINT32_MAX / 4 ? malloc((n + 1) * sizeof(*x->item)) : NULL;
	return x->item ? 0 : -ENOMEM;
}

static int collect(struct infer *x, u32 pid)
{
	int err = make_room(x, pid);

	for (u32 t = hb_timeline__of_pid(x->tl, pid, HB_NONE); t != HB_NONE && !err;
	     t = hb_timeline__of_pid(x->tl, pid, t)) {
		u32 n;
		const struct hb_tl_call *c = hb_timeline__calls(x->tl, t, &n);

		for (u32 i = 0; i < n && !err; i++)
			err = add_item(x, t, i, &c[i]);
	}
	return err;
}

static int order(struct infer *x)
{
	x->event = calloc(x->n_items * 3 + 1, sizeof(*x->event));
	x->open = malloc((OPEN_MAX + 1) * sizeof(*x->open));
	x->done = malloc((OPEN_MAX + 1) * sizeof(*x->done));
	x->set = malloc((OPEN_MAX + 1) * sizeof(*x->set));
	x->given = malloc((OPEN_MAX + 1) * sizeof(*x->given));
	if (!x->event || !x->open || !x->done || !x->set || !x->given)
		return -ENOMEM;
	for (u32 i = 0; i < x->n_items; i++) {
		const struct item *it = &x->item[i];

		x->event[x->n_events++] = (struct hb_order){.key = it->begin, .item = i * 4 + BEGINS};
		if (it->cover == COVER_EVENT && !x->waited)
			x->waited = calloc(hb_timeline__threads(x->tl) + 1, sizeof(*x->waited));
		if (it->cover == COVER_EVENT && !x->waited)
			return -ENOMEM;
		if (!it->cover)
			continue;
		x->event[x->n_events++] = (struct hb_order){.key = it->until, .item = i * 4 + NO_MORE_BUSY};
		x->event[x->n_events++] = (struct hb_order){.key = it->end, .item = i * 4 + ENDS};
	}
	for (u32 k = 1; k < x->n_events; k++) /* one thread's are in order */
		if (x->event[k].key < x->event[k - 1].key)
			return hb_order__sort(x->event, x->n_events);
	return 0;
}

/* ---- the queue ---- */

static void submit(struct infer *x, u32 i)
{
	u64 cost = x->learning ? UINT64_MAX : hb_costs__of(x->costs, x->item[i].key);
	u64 t = x->item[i].begin;

	if (x->n_open == OPEN_MAX) {
		memmove(x->open, x->open + OPEN_MAX / 2, OPEN_MAX / 2 * sizeof(*x->open));
		x->n_open = OPEN_MAX / 2;
	}
	if (!x->n_open && !x->dirty) {
		x->drain = t;
		x->drain_known = true;
	}
	x->open[x->n_open++] = i;
	x->drain_known &= cost != UINT64_MAX;
	if (x->drain_known)
		x->drain = (x->drain > t ? x->drain : t) + cost;
}

/* The last read-back that this wait's stream carries: what the thread submitted before it is done too. */
static u32 last_readback(const struct infer *x, const struct item *w)
{
	u32 last = 0;

	for (u32 i = 0; i < x->n_open; i++) {
		const struct item *o = &x->item[x->open[i]];

		if (o->readback && o->stream == w->stream && o->thread == w->thread && o->begin <= w->begin)
			last = i + 1;
	}
	return last;
}

static bool covers(const struct infer *x, const struct item *w, u32 at, u32 readback)
{
	const struct item *o = &x->item[x->open[at]];

	if (o->begin > w->begin)
		return false;
	if (w->cover == COVER_ALL)
		return true;
	if (w->cover == COVER_STREAM)
		return o->stream == w->stream || (o->thread == w->thread && at < readback);
	return w->cover == COVER_EVENT && o->thread == w->thread &&
	       (!x->lag || o->begin < x->waited[w->thread]);
}

/* A wait for an event is one for its stream, as far as that was filled when it was recorded, and by whom. */
static struct item place_of(const struct infer *x, const struct item *w)
{
	struct item at = *w;
	u64 recorded;

	if (w->cover != COVER_EVENT || !x->events)
		return at;
	at.cover = COVER_NOTHING; /* recorded before the window */
	if (hb_map__get(x->recorded, handle_of(x, w), &recorded)) {
		at = x->item[recorded - 1];
		at.cover = COVER_STREAM;
	}
	return at;
}

/* Takes what is done out of the open ones, to x->done and x->given, behind what is carried there. */
static void cover(struct infer *x, const struct item *waited)
{
	struct item place = place_of(x, waited), *w = &place;
	u32 kept = 0, readback = w->cover == COVER_STREAM ? last_readback(x, w) : 0;

	if (x->n_carried > CARRY_MAX || x->n_carried + x->n_open > OPEN_MAX)
		x->n_carried = x->since = 0;
	x->n_done = x->n_carried;
	for (u32 i = 0; i < x->n_open; i++) {
		if (!covers(x, w, i, readback)) {
			x->open[kept++] = x->open[i];
			continue;
		}
		x->given[x->n_done] = x->item[x->open[i]].begin;
		x->done[x->n_done++] = x->item[x->open[i]].key;
	}
	x->n_open = kept;
}

static u64 later(u64 a, u64 b)
{
	return a > b ? a : b;
}

/* How long the device can have worked for what was done by t: it had all of it since the first was given.
 * What was given last, as far as it is of one sort, shows how long a piece takes where launches are slower
 * than the device. */
static u64 time_taken(struct infer *x, u64 t)
{
	u64 from = later(x->given[0], x->since), least = UINT64_MAX;

	for (u32 i = x->n_done; i-- > 0 && x->done[i] == x->done[x->n_done - 1];) {
		u64 since = later(x->given[i], x->since);
		u64 each = (t > since ? t - since : 0) / (x->n_done - i);

		least = each < least ? each : least;
	}
	hb_costs__limit(x->costs, x->done[x->n_done - 1], least);
	return t > from ? t - from : 0;
}

/* Did whoever gave it stop in between, for most of the time that it took? The device may have had nothing to
 * do then. */
static bool given_in_parts(const struct infer *x, u64 taken)
{
	u64 longest = 0;

	for (u32 i = 1; i < x->n_done; i++) {
		u64 last = later(x->given[i - 1], x->since), this = later(x->given[i], x->since);

		longest = this > last ? later(this - last, longest) : longest;
	}
	return longest > taken / 2;
}

/* Is it known when what it waited for was done? */
static bool end_known(const struct item *w)
{
	return w->end - w->until < BLOCKED_NS;
}

/* What waits covered since `since` took no longer than to this one's end; when it blocked, just so long. A
 * wait that began when all was done, and whose end is known, was over at its begin. */
static int learn(struct infer *x, const struct item *w, bool blocked)
{
	bool sure = end_known(w);
	u64 t = blocked || !sure ? w->end : w->begin, taken;

	if (t <= x->since) /* another thread's wait was over first */
		return 0;
	taken = time_taken(x, t);
	memcpy(x->set, x->done, x->n_done * sizeof(*x->set));
	return hb_costs__learn(x->costs, x->set, x->n_done, taken,
			       !blocked || !sure || x->loose || given_in_parts(x, taken));
}

/* After a wait that blocked what is still open has all its time to come; after another the queue's model
 * holds. */
static void redrain(struct infer *x, u64 t, bool blocked)
{
	u64 drain = t, modelled = x->drain_known && !blocked ? x->drain : UINT64_MAX;

	x->drain_known = !x->dirty;
	for (u32 i = 0; i < x->n_open && x->drain_known; i++) {
		u64 cost = hb_costs__of(x->costs, x->item[x->open[i]].key);

		x->drain_known = cost != UINT64_MAX;
		drain += x->drain_known ? cost : 0;
	}
	x->drain = drain < modelled ? drain : modelled;
}

/* A wait returned. When it blocked, the device took from where it was known to be at work, or given work, to
 * here for what is done now, and for what waits that did not block found done since: of that nobody knows
 * when, just that it was before. */
static int wait_done(struct infer *x, const struct item *w)
{
	bool blocked = w->blocks, news;
	int err = 0;

	cover(x, w);
	news = x->n_done > x->n_carried;
	if (x->learning && news && !x->dirty && x->since)
		err = learn(x, w, blocked);
	/* A stream works in order: what came before something of this window is done with it. */
	if (w->cover == COVER_ALL || news || (w->cover == COVER_STREAM && !x->n_open))
		x->dirty = false;
	if (blocked || !x->n_open) {
		x->loose = x->n_open && !end_known(w);
		x->since = x->loose ? w->until : w->end;
	}
	x->n_carried = blocked || !x->n_open || !x->since ? 0 : x->n_done;
	if (w->cover == COVER_EVENT)
		x->waited[w->thread] = w->end;
	if (!x->learning && (news || blocked))
		redrain(x, w->end, blocked);
	return err;
}

/* ---- lag of event waits ---- */

struct lag { /* what the waits for events that blocked, one after the other, looked like */
	u64 *blocked, *from_wait, *from_work; /* length; from the wait before; from the first submission */
	u32 n_blocked, n;
	u32 ahead, behind; /* votes */
};

/* Distance of the quartiles. */
static u64 spread(u64 *v, u32 n)
{
	hb_order__values(v, n);
	return n ? v[n - 1 - n / 4] - v[n / 4] : 0;
}

/* Goes through the event waits; with the usual length of one known, counts votes. */
static void look_at_waits(struct infer *x, struct lag *l, u64 usual)
{
	u64 prev = 0, first = 0, last = 0;

	for (u32 k = 0; k < x->n_events; k++) {
		const struct item *it = &x->item[x->event[k].item / 4];
		bool blocked = it->blocks;

		if (it->work && x->event[k].item % 4 == BEGINS) {
			first = first ? first : it->begin;
			last = it->begin;
		}
		if (it->cover != COVER_EVENT || x->event[k].item % 4 != ENDS)
			continue;
		if (!usual && blocked)
			l->blocked[l->n_blocked++] = it->end - it->begin;
		if (!usual && blocked && prev && first) {
			l->from_wait[l->n] = it->end - prev;
			l->from_work[l->n++] = it->end - first;
		}
		if (usual && first && !blocked)
			l->ahead += it->begin - last < usual / 4;
		if (usual && first && blocked && prev && it->end - it->begin >= usual / 2)
			l->behind += first - prev >= usual * 2;
		prev = blocked || usual ? it->end : 0;
		first = 0;
	}
}

/* Whether an engine waits for the step it has just given (lag 0), or for the one before. A wait that returned
 * at once though work was given just before was not for that; one that blocked long after the device must
 * have done all from before was. And what the wait is for shows in what it keeps step with: the submissions,
 * or the wait before. Without such signs a step ahead is taken, which claims less. */
static int find_lag(struct infer *x)
{
	struct lag l = {0};
	u64 *room = malloc((x->n_items + 1) * 3 * sizeof(*room)), work, wait;

	if (!room)
		return -ENOMEM;
	l.blocked = room;
	l.from_wait = room + x->n_items + 1;
	l.from_work = room + (x->n_items + 1) * 2;
	look_at_waits(x, &l, 0);
	if (l.n_blocked)
		look_at_waits(x, &l, hb_dist__of(l.blocked, l.n_blocked).p50);
	work = spread(l.from_work, l.n);
	wait = spread(l.from_wait, l.n);
	x->lag = l.ahead > l.behind || (l.behind == l.ahead && (l.n < 8 || work + work / 2 >= wait));
	free(room);
	return 0;
}

/* ---- copies that only look as if they had waited ---- */

/* A copy that waited leaves nothing to wait for. When a wait that follows it, nothing given in between,
 * blocks all the same in a tenth of all cases, copies of this sort take their time for something else. */
static int find_slow_copies(struct infer *x)
{
	u32 *votes = calloc(x->n_keys * 2 + 1, sizeof(*votes)), pending = HB_NONE;

	if (!votes)
		return -ENOMEM;
	for (u32 k = 0; k < x->n_events; k++) {
		const struct item *it = &x->item[x->event[k].item / 4];
		u32 what = x->event[k].item % 4;

		if (what == BEGINS && it->work)
			pending = HB_NONE;
		if (what != ENDS)
			continue;
		if (it->work) {
			votes[it->key * 2]++;
			pending = it->key;
		} else if (pending != HB_NONE && it->blocks) {
			votes[pending * 2 + 1]++;
			pending = HB_NONE;
		}
	}
	for (u32 i = 0; i < x->n_items; i++) {
		struct item *it = &x->item[i];

		if (it->work && it->cover && votes[it->key * 2 + 1] * 10 > votes[it->key * 2])
			it->cover = COVER_NOTHING;
	}
	free(votes);
	return 0;
}

/* ---- tiling ---- */

static enum hb_busy_state state_of(const struct infer *x)
{
	if (x->depth)
		return HB_BUSY_BUSY;
	return !x->n_open && !x->dirty ? HB_BUSY_IDLE : HB_BUSY_UNKNOWN;
}

/* The state since the last event holds up to t; what is unknown is cut where the queue likely ran empty. */
static int advance(struct infer *x, u64 t)
{
	enum hb_busy_state state = state_of(x), likely = state;
	u64 start = hb_timeline__start(x->tl), end = hb_timeline__end(x->tl);
	int err = 0;

	t = t < start ? start : t > end ? end : t;
	if (state == HB_BUSY_UNKNOWN && x->drain_known) {
		err = hb_busy_row__append(x->row, x->drain < t ? x->drain : t, state, HB_BUSY_BUSY);
		likely = HB_BUSY_IDLE;
	}
	return err ? err : hb_busy_row__append(x->row, t, state, likely);
}

static int reset(struct infer *x, bool learning)
{
	x->learning = learning;
	x->n_open = 0;
	x->depth = 0;
	x->dirty = true;
	x->since = x->n_carried = 0;
	x->loose = false;
	/* What was given before the window is done, likely, after the longest time that anything took in it.
	 */
	x->drain = learning ? 0 : hb_timeline__start(x->tl) + hb_costs__longest(x->costs);
	x->drain_known = x->drain > hb_timeline__start(x->tl);
	if (x->waited)
		memset(x->waited, 0, hb_timeline__threads(x->tl) * sizeof(*x->waited));
	hb_map__free(x->recorded);
	x->recorded = hb_map__new();
	return x->recorded ? 0 : -ENOMEM;
}

static int pass(struct infer *x, bool learning)
{
	int err = reset(x, learning);

	for (u32 k = 0; k < x->n_events && !err; k++) {
		const struct item *it = &x->item[x->event[k].item / 4];
		bool blocks = it->cover && it->blocks;
		u32 what = x->event[k].item % 4;

		if (what != BEGINS && !it->cover)
			continue;
		if (!learning)
			err = advance(x, x->event[k].key);
		if (err)
			break;
		if (what == BEGINS && it->records)
			err = hb_map__put(x->recorded, handle_of(x, it), x->event[k].item / 4 + 1);
		if (what == BEGINS && it->work)
			submit(x, x->event[k].item / 4);
		if (what == BEGINS)
			x->depth += blocks;
		else if (what == NO_MORE_BUSY)
			x->depth -= blocks;
		else
			err = wait_done(x, it);
	}
	if (!learning && !err)
		err = advance(x, hb_timeline__end(x->tl));
	return err;
}

int hb_busy__infer_row(struct hb_busy_row *r, const struct hb_timeline *tl)
{
	struct infer x = {.tl = tl, .row = r, .costs = hb_costs__new()};
	int err;

	x.streams = hb_map__new();
	err = x.costs && x.streams ? collect(&x, r->pid) : -ENOMEM;
	if (!err)
		err = order(&x);
	if (!err)
		err = find_slow_copies(&x);
	if (!err)
		err = find_lag(&x);
	if (!err)
		err = pass(&x, true);
	if (!err)
		err = hb_costs__solve(x.costs);
	if (!err)
		err = pass(&x, false);
	hb_costs__free(x.costs);
	hb_map__free(x.recorded);
	hb_map__free(x.streams);
	free(x.item);
	free(x.event);
	free(x.open);
	free(x.done);
	free(x.set);
	free(x.given);
	free(x.waited);
	return err;
}
