/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analysis/model/timeline_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/model/places.h"
#include "analysis/model/pyevents.h"
#include "analysis/model/spans.h"
#include "base/map.h"

#define TASKS 65536

struct list { /* intervals of one kind and thread */
	void *item;
	u32 n, cap;
	u32 hint; /* where the last search ended: at most n */
	bool unsorted;
	u64 last, last_end; /* begin and end of the last one */
};

struct thread {
	struct hb_tl_thread pub;
	u32 next;  /* of the process; HB_NONE */
	u32 index; /* among threads */
	struct list list[HB_TL_KINDS];
};

struct probe { /* what is asked of a probe's row for each of its records */
	u8 known, op, copy;
	u32 callee; /* of its last call */
};

struct hb_timeline {
	struct hb_window *w;
	u64 start, end;
	struct thread **thread;
	u32 n_threads, cap_threads;
	struct thread **by_task;	/* by task index */
	struct hb_map *by_tid, *by_pid; /* -> thread, and to a process's first one + 1 */
	struct probe *probe;
	u32 n_probes;
	struct hb_places places;
	struct hb_callees callees;
	u64 count[HB_TL_KINDS];
	bool oom;
	struct hb_feed feed;
};

static struct hb_span *span_at(const struct list *l, size_t size, u32 i)
{
	return (struct hb_span *)((char *)l->item + (size_t)i * size);
}

/* ---- one record ---- */

static struct probe *probe_of(struct hb_timeline *tl, u32 id)
{
	static const struct hb_probe_row unknown;
	const struct hb_probe_row *row;
	struct probe *p = &tl->probe[id < tl->n_probes ? id : 0];
	const char *name;

	if (p->known)
		return p;
	row = hb_window__probe(tl->w, id);
	row = row ? row : &unknown;
	name = hb_window__string(tl->w, row->name);
	p->op = hb_op__of(tl->w, row);
	p->copy = strstr(name, "HtoD")				   ? HB_COPY_HTOD
		  : strstr(name, "DtoH")			   ? HB_COPY_DTOH
		  : strstr(name, "DtoD") || strstr(name, "Memset") ? HB_COPY_DTOD /* no wait for data */
								   : HB_COPY_UNKNOWN;
	p->known = 1;
	return p;
}

/* Tables number directions as cudaMemcpyKind, of whatever API; 0 is also what a call has that tells none. */
static u8 copy_of(const struct probe *p, u8 kind)
{
	static const u8 of_kind[] = {[1] = HB_COPY_HTOD, [2] = HB_COPY_DTOH, [3] = HB_COPY_DTOD};

	if (p->op != HB_OP_COPY)
		return HB_COPY_UNKNOWN;
	return kind >= 1 && kind <= 3 ? of_kind[kind] : p->copy;
}

/* What is launched, and how large. */
static u64 work_of(const struct hb_rec_accel *r)
{
	if (!r->gx)
		return r->handle;
	return hb_hash64(hb_hash64(r->handle) ^ ((u64)r->gx << 32 | r->gy)) ^ r->gz;
}

static void fill_call(struct hb_timeline *tl, const struct hb_record *rec, void *to)
{
	const struct hb_rec_accel *r = rec->data;
	struct probe *p = probe_of(tl, r->probe);
	const struct hb_tl_callee callee = {
	    .stream = r->stream,
	    .handle = p->op == HB_OP_LAUNCH || p->op == HB_OP_GRAPH ? work_of(r) : r->handle,
	    .probe = r->probe,
	    .kind = r->kind};

	if (!hb_callee__same(&tl->callees.v[p->callee], &callee)) {
		u32 number = hb_callees__number(&tl->callees, &callee);

		tl->oom |= number == HB_PLACE_NONE;
		p->callee = number == HB_PLACE_NONE ? 0 : number;
	}
	*(struct hb_tl_call *)to = (struct hb_tl_call){
	    .at.stack = r->stack,
	    .bytes = r->bytes,
	    .correlation = r->correlation,
	    .callee = p->callee,
	    .failed = r->ret != 0,
	    .op = p->op,
	    .flags = r->flags,
	    .copy = copy_of(p, r->kind),
	};
}

/* Words have few numbers; what a later version may add is not known here. */
static u8 known(u8 word)
{
	return word < 15 ? word : 15;
}

static void fill_sleep(struct hb_timeline *tl, const struct hb_record *rec, void *to)
{
	const struct hb_rec_offcpu *r = rec->data;
	const struct hb_tl_place place = {
	    .chan = r->chan, .local = r->local, .peer = r->peer, .a0 = r->a0, .a1 = r->a1};
	u64 dur = rec->ts - rec->begin;

	*(struct hb_tl_sleep *)to = (struct hb_tl_sleep){
	    .at.stack = r->stack,
	    .ready = r->ready < dur ? r->ready : dur,
	    .place = hb_places__number(&tl->places, &place),
	    .waker = r->waker,
	    .ran = r->ran,
	    .sysno = r->sysno,
	    .state = known(r->state),
	    .wctx = known(r->wctx),
	    .chankind = known(r->chankind),
	    .flags = r->flags & 15,
	};
	tl->oom |= ((const struct hb_tl_sleep *)to)->place == HB_PLACE_NONE;
}

static void fill_gil(struct hb_timeline *tl, const struct hb_record *rec, void *to)
{
	const struct hb_rec_py_gil *r = rec->data;

	*(struct hb_tl_gil *)to = (struct hb_tl_gil){
	    .at.stack = r->stack,
	    .slept = r->slept,
	    .gil = r->gil,
	    .holder = r->holder, /* a number of a namespace: made an index when all threads are known */
	    .holder_stack = r->holder_stack,
	    .sleeps = r->sleeps,
	    .handover = r->handover,
	    .flags = r->flags,
	};
}

static void fill_gc(struct hb_timeline *tl, const struct hb_record *rec, void *to)
{
	const struct hb_rec_py_gc *r = rec->data;

	*(struct hb_tl_gc *)to =
	    (struct hb_tl_gc){.at.stack = r->stack, .generation = r->generation, .how = r->how};
}

static void fill_pycall(struct hb_timeline *tl, const struct hb_record *rec, void *to)
{
	const struct hb_rec_py_call *r = rec->data;

	*(struct hb_tl_pycall *)to =
	    (struct hb_tl_pycall){.code = r->code, .func = r->func, .end = r->end, .flags = r->flags};
}

static void fill_sample(struct hb_timeline *tl, const struct hb_record *rec, void *to)
{
	const struct hb_rec_sample *r = rec->data;

	*(struct hb_tl_sample *)to = (struct hb_tl_sample){.at.stack = r->stack,
							   .weight = r->weight,
							   .kstack = r->kstack,
							   .sysno = r->sysno,
							   .mode = r->mode,
							   .cpu = r->cpu};
}

static void fill_syscall(struct hb_timeline *tl, const struct hb_record *rec, void *to)
{
	const struct hb_rec_syscall *r = rec->data;

	*(struct hb_tl_syscall *)to = (struct hb_tl_syscall){
	    .at.stack = r->stack, .ret = r->ret, .a0 = r->a0, .a1 = r->a1, .a2 = r->a2, .sysno = r->sysno};
}

static void fill_raise(struct hb_timeline *tl, const struct hb_record *rec, void *to)
{
	const struct hb_rec_py_exception *r = rec->data;

	*(struct hb_tl_raise *)to = (struct hb_tl_raise){.at.stack = r->stack,
							 .exc_type = r->exc_type,
							 .count = r->count,
							 .unwound = r->unwound,
							 .site = r->site,
							 .origin = r->origin,
							 .flags = r->flags};
}

static void fill_op(struct hb_timeline *tl, const struct hb_record *rec, void *to)
{
	const struct hb_rec_op *r = rec->data;

	*(struct hb_tl_op *)to = (struct hb_tl_op){.external = r->external,
						   .seq = r->seq,
						   .name = r->name,
						   .shapes = r->shapes,
						   .types = r->types,
						   .values = r->values,
						   .kind = r->kind};
}

static void fill_devwait(struct hb_timeline *tl, const struct hb_record *rec, void *to)
{
	const struct hb_rec_device *r = rec->data;

	*(struct hb_tl_devwait *)to = (struct hb_tl_devwait){.correlation = r->correlation,
							     .waits = r->waits,
							     .stream = r->stream,
							     .device = r->device,
							     .wstream = r->wstream,
							     .sync = r->sync};
}

static bool is_wait(const void *data)
{
	return ((const struct hb_rec_device *)data)->kind == HB_DEVKIND_SYNC;
}

static bool is_host_op(const void *data)
{
	return ((const struct hb_rec_op *)data)->kind != HB_OPKIND_DEVICE_ANNOTATION;
}

static const struct kind {
	u32 record;
	size_t size;
	void (*fill)(struct hb_timeline *tl, const struct hb_record *rec, void *to);
	bool (*keep)(const void *data); /* NULL: all */
} kinds[HB_TL_KINDS] = {
#define KIND(K, type, record_, fill_, keep_)                                                                 \
	[HB_TL_##K] = {HB_TYPE_##record_, sizeof(struct type), fill_, keep_}
    KIND(CALL, hb_tl_call, accel, fill_call, NULL),
    KIND(SLEEP, hb_tl_sleep, offcpu, fill_sleep, NULL),
    KIND(GIL, hb_tl_gil, py_gil, fill_gil, NULL),
    KIND(GC, hb_tl_gc, py_gc, fill_gc, NULL),
    KIND(PYCALL, hb_tl_pycall, py_call, fill_pycall, NULL),
    KIND(SAMPLE, hb_tl_sample, sample, fill_sample, NULL),
    KIND(SYSCALL, hb_tl_syscall, syscall, fill_syscall, NULL),
    KIND(RAISE, hb_tl_raise, py_exception, fill_raise, NULL),
    KIND(OP, hb_tl_op, op, fill_op, is_host_op),
    KIND(DEVWAIT, hb_tl_devwait, device, fill_devwait, is_wait),
#undef KIND
};

/* In large steps once it is large: what is not filled yet is no memory yet, and what is there already may
 * have to be copied. What is left over is given back at the end. `most`: as many as there are, as far as is
 * known; of those a thread has its share and a little more, mostly. */
static bool grow(struct list *l, size_t size, u64 most, u32 threads)
{
	u64 cap = l->cap < 8192 ? l->cap + l->cap / 2 + 8 : 4ULL * l->cap;
	u64 share = most / threads + most / threads / 4;
	void *p;

	if (l->cap >= 1024 && share > cap)
		cap = share < 64ULL * l->cap ? share : 64ULL * l->cap;
	if (cap > most && most > l->cap)
		cap = most;
	p = cap <= UINT32_MAX ? realloc(l->item, cap * size) : NULL;
	if (!p)
		return false;
	l->item = p;
	l->cap = (u32)cap;
	return true;
}

static int make_room(struct hb_timeline *tl)
{
	u32 cap = tl->cap_threads * 2 + 64;
	struct thread **p;

	if (tl->thread && tl->n_threads < tl->cap_threads)
		return 0;
	p = realloc(tl->thread, cap * sizeof(*p));
	if (!p)
		return -ENOMEM;
	memset(p + tl->n_threads, 0, (cap - tl->n_threads) * sizeof(struct thread *));
	tl->thread = p;
	tl->cap_threads = cap;
	return 0;
}

static int new_thread(struct hb_timeline *tl, const struct hb_record *r)
{
	struct thread *t = calloc(1, sizeof(*t));

	if (!t || make_room(tl) || hb_map__put(tl->by_tid, r->task->tid, tl->n_threads)) {
		free(t);
		return -ENOMEM;
	}
	t->pub.task = r->task;
	t->pub.pid = r->task->pid;
	t->index = tl->n_threads;
	tl->thread[tl->n_threads++] = t;
	tl->by_task[r->task_idx] = t;
	return 0;
}

static void on_life(struct thread *t, const struct hb_record *r)
{
	if (r->type == HB_TYPE_thread && ((const struct hb_rec_thread *)r->data)->how == HB_HOW_FORKED)
		t->pub.born = r->ts;
	else if (r->type == HB_TYPE_process && ((const struct hb_rec_process *)r->data)->how == HB_HOW_FORKED)
		t->pub.born = r->ts;
	else if (r->type == HB_TYPE_exit)
		t->pub.died = r->ts;
}

/* Those of one kind, which is known where it is compiled: each has a loop of its own. */
static __attribute__((always_inline)) inline int add_kind(struct hb_timeline *tl, const struct kind *k,
							  const struct hb_records *b)
{
	hb_each_bit (i, b->of[k->record]) {
		const struct hb_record *r = &b->record[i];
		struct list *l = &tl->by_task[r->task_idx]->list[k - kinds];
		struct hb_span *s;

		if (k->keep && !k->keep(r->data))
			continue;
		if (l->n == l->cap && !grow(l, k->size, hb_window__count(tl->w, k->record), tl->n_threads))
			return -ENOMEM;
		s = span_at(l, k->size, l->n++);
		k->fill(tl, r, s);
		s->begin = r->begin < r->ts ? r->begin : r->ts;
		s->end = r->ts;
		/* An outer one that begins with an inner one ends later, and so comes after it. */
		l->unsorted |= s->begin < l->last || (s->begin == l->last && s->end > l->last_end);
		l->last = s->begin;
		l->last_end = s->end;
		tl->count[k - kinds]++;
	}
	return 0;
}

#define ADD_KIND(KIND, name, type, record)                                                                   \
	static int add_##name(struct hb_timeline *tl, const struct hb_records *b)                            \
	{                                                                                                    \
		return add_kind(tl, &kinds[HB_TL_##KIND], b);                                                \
	}
HB_TL_LISTS(ADD_KIND)

static int (*const add[HB_TL_KINDS])(struct hb_timeline *tl, const struct hb_records *b) = {
#define ADD(KIND, name, type, record) [HB_TL_##KIND] = add_##name,
    HB_TL_LISTS(ADD)
#undef ADD
};

/* Threads in the order in which they come; then one kind after the other. */
static int on_records(void *ctx, const struct hb_records *b)
{
	static const u64 life = 1ULL << HB_TYPE_thread | 1ULL << HB_TYPE_process | 1ULL << HB_TYPE_exit;
	struct hb_timeline *tl = ctx;
	u64 end = tl->end;
	int err = 0;

	for (u32 i = 0; i < b->n && !err; i++) {
		const struct hb_record *r = &b->record[i];

		if (!tl->by_task[r->task_idx])
			err = new_thread(tl, r);
		end = r->ts > end ? r->ts : end;
	}
	tl->end = end;
	for (u32 i = 0; i < b->n && !err && (b->types & life); i++)
		on_life(tl->by_task[b->record[i].task_idx], &b->record[i]);
	for (u32 k = 0; k < HB_TL_KINDS && !err; k++)
		if (hb_records__has(b, kinds[k].record))
			err = add[k](tl, b);
	tl->oom |= err != 0;
	return err;
}

/* ---- after the last record ---- */

static int cmp_spans(const void *a, const void *b)
{
	const struct hb_span *x = a, *y = b;

	if (x->begin != y->begin)
		return x->begin < y->begin ? -1 : 1;
	return x->end != y->end ? (x->end > y->end ? -1 : 1) : 0;
}

union any_item { /* of whatever kind */
#define ITEM(KIND, name, type, record) struct type name;
	HB_TL_LISTS(ITEM)
#undef ITEM
};

/* Records come by their end: an interval is behind those inside of it, and mostly of few. False: it takes too
 * many steps; it is as far as it came then. */
static bool sort_near(struct list *l, size_t size)
{
	u64 steps = 8ULL * l->n + 4096;
	union any_item x;

	for (u32 i = 1, at; i < l->n; i++) {
		struct hb_span *s = span_at(l, size, i);

		for (at = i; at && cmp_spans(span_at(l, size, at - 1), s) > 0;)
			at--;
		if (i - at > steps)
			return false;
		steps -= i - at;
		if (at == i)
			continue;
		memcpy(&x, s, size);
		memmove(span_at(l, size, at + 1), span_at(l, size, at), (i - at) * size);
		memcpy(span_at(l, size, at), &x, size);
	}
	return true;
}

static void sort_list(struct list *l, size_t size)
{
	void *p;

	if (l->unsorted && !sort_near(l, size))
		qsort(l->item, l->n, size, cmp_spans);
	p = l->n ? realloc(l->item, l->n * size) : NULL;
	if (p) {
		l->item = p;
		l->cap = l->n;
	}
}

static void link_list(const struct list *l, size_t size)
{
	for (u32 i = 0; i < l->n; i++)
		hb_spans__link(l->item, size, i, i ? i - 1 : HB_NONE);
}

static void finish_thread(const struct hb_timeline *tl, struct thread *t)
{
	struct list *call = &t->list[HB_TL_CALL], *sleep = &t->list[HB_TL_SLEEP];

	for (u32 k = 0; k < HB_TL_KINDS; k++) {
		sort_list(&t->list[k], kinds[k].size);
		if (k != HB_TL_CALL)
			link_list(&t->list[k], kinds[k].size);
	}
	hb_calls__finish(tl, &t->pub, call->item, call->n, sleep->item, sleep->n);
}

static u32 index_of(const struct hb_timeline *tl, const struct hb_task *t)
{
	return t ? hb_timeline__by_tid(tl, t->tid) : HB_NONE;
}

static void name_holders(struct hb_timeline *tl, const struct thread *t)
{
	struct hb_tl_gil *g = t->list[HB_TL_GIL].item;
	u32 last = 0, is = HB_NONE;

	for (u32 i = 0; i < t->list[HB_TL_GIL].n; i++) {
		if (g[i].holder != last)
			is = index_of(tl, hb_decode__nstask(tl->w, t->pub.pid, g[i].holder));
		last = g[i].holder;
		g[i].holder = last ? is : HB_NONE;
	}
}

/* A process's threads, from the first to the last. */
static int chain_threads(struct hb_timeline *tl)
{
	for (u32 i = tl->n_threads; i-- > 0;) {
		u64 *first = hb_map__slot(tl->by_pid, tl->thread[i]->pub.pid, NULL);

		if (!first)
			return -ENOMEM;
		tl->thread[i]->next = *first ? (u32)*first - 1 : HB_NONE;
		*first = i + 1;
	}
	return 0;
}

int hb_timeline__finish(struct hb_timeline *tl, struct hb_error *e)
{
	if (tl->oom || chain_threads(tl))
		return hb_error__nomem(e, "timelines");
	hb_places__finish(&tl->places);
	hb_callees__finish(&tl->callees);
	for (u32 i = 0; i < tl->n_threads; i++) {
		finish_thread(tl, tl->thread[i]);
		name_holders(tl, tl->thread[i]);
	}
	return 0;
}

struct hb_timeline *hb_timeline__new(struct hb_window *w, struct hb_error *e)
{
	struct hb_timeline *tl = calloc(1, sizeof(*tl));

	if (!tl) {
		hb_error__nomem(e, "timelines");
		return NULL;
	}
	tl->w = w;
	tl->feed = (struct hb_feed){.records = on_records, .ctx = tl};
	tl->start = hb_window__info(w)->start_ts;
	tl->end = hb_window__info(w)->end_ts;
	if (tl->end < tl->start)
		tl->end = tl->start;
	tl->n_probes = hb_window__probes(w) + 1;
	tl->probe = calloc(tl->n_probes, sizeof(*tl->probe));
	tl->by_task = calloc(TASKS, sizeof(*tl->by_task));
	tl->by_tid = hb_map__new();
	tl->by_pid = hb_map__new();
	if (hb_places__init(&tl->places) | hb_callees__init(&tl->callees) || !tl->probe || !tl->by_task ||
	    !tl->by_tid || !tl->by_pid) {
		hb_error__nomem(e, "timelines");
		hb_timeline__free(tl);
		return NULL;
	}
	return tl;
}

const struct hb_feed *hb_timeline__feed(struct hb_timeline *tl)
{
	return &tl->feed;
}

struct hb_timeline *hb_timeline__build(struct hb_window *w, struct hb_error *e)
{
	struct hb_timeline *tl = hb_timeline__new(w, e);

	if (!tl)
		return NULL;
	(void)hb_feed__all(&tl->feed, w); /* said when it is finished */
	if (hb_timeline__finish(tl, e)) {
		hb_timeline__free(tl);
		return NULL;
	}
	return tl;
}

void hb_timeline__free(struct hb_timeline *tl)
{
	if (!tl)
		return;
	for (u32 i = 0; i < tl->n_threads; i++) {
		for (u32 k = 0; k < HB_TL_KINDS; k++)
			free(tl->thread[i]->list[k].item);
		free(tl->thread[i]);
	}
	free(tl->thread);
	free(tl->by_task);
	free(tl->probe);
	hb_map__free(tl->by_tid);
	hb_map__free(tl->by_pid);
	hb_places__free(&tl->places);
	hb_callees__free(&tl->callees);
	free(tl);
}

/* ---- asking ---- */

struct hb_window *hb_timeline__window(const struct hb_timeline *tl)
{
	return tl->w;
}

u64 hb_timeline__start(const struct hb_timeline *tl)
{
	return tl->start;
}

u64 hb_timeline__end(const struct hb_timeline *tl)
{
	return tl->end;
}

u64 hb_timeline__memory(const struct hb_timeline *tl, u64 *records)
{
	u64 bytes = sizeof(*tl) + TASKS * sizeof(*tl->by_task) + tl->n_probes * sizeof(*tl->probe) +
		    hb_places__memory(&tl->places) + hb_callees__memory(&tl->callees);

	for (u32 i = 0; i < tl->n_threads; i++) {
		bytes += sizeof(*tl->thread[i]) + sizeof(tl->thread[i]);
		for (u32 k = 0; k < HB_TL_KINDS; k++)
			bytes += tl->thread[i]->list[k].cap * kinds[k].size;
	}
	for (u32 k = 0; records && k < HB_TL_KINDS; k++)
		*records = (k ? *records : 0) + tl->count[k];
	return bytes;
}

u64 hb_timeline__count(const struct hb_timeline *tl, enum hb_tl_kind kind)
{
	return tl->count[kind];
}

u32 hb_timeline__threads(const struct hb_timeline *tl)
{
	return tl->n_threads;
}

const struct hb_tl_thread *hb_timeline__thread(const struct hb_timeline *tl, u32 thread)
{
	return &tl->thread[thread]->pub;
}

u32 hb_timeline__by_tid(const struct hb_timeline *tl, u32 tid)
{
	u64 at;

	return hb_map__get(tl->by_tid, tid, &at) ? (u32)at : HB_NONE;
}

u32 hb_timeline__by_task(const struct hb_timeline *tl, u16 task)
{
	return tl->by_task[task] ? tl->by_task[task]->index : HB_NONE;
}

u32 hb_timeline__of_pid(const struct hb_timeline *tl, u32 pid, u32 prev)
{
	u64 first;

	if (prev != HB_NONE)
		return tl->thread[prev]->next;
	return hb_map__get(tl->by_pid, pid, &first) ? (u32)first - 1 : HB_NONE;
}

#define ACCESSOR(KIND, name, type, record)                                                                   \
	const struct type *hb_timeline__##name(const struct hb_timeline *tl, u32 thread, u32 *n)             \
	{                                                                                                    \
		*n = tl->thread[thread]->list[HB_TL_##KIND].n;                                               \
		return tl->thread[thread]->list[HB_TL_##KIND].item;                                          \
	}
HB_TL_LISTS(ACCESSOR)

u32 hb_timeline__from(const struct hb_timeline *tl, u32 thread, enum hb_tl_kind kind, u64 t)
{
	struct list *l = &tl->thread[thread]->list[kind];

	if (!l->n)
		return 0;
	l->hint = hb_spans__from(l->item, kinds[kind].size, l->n, l->hint, t);
	return l->hint;
}

const struct hb_span *hb_timeline__span(const struct hb_timeline *tl, u32 thread, enum hb_tl_kind kind, u32 i)
{
	return span_at(&tl->thread[thread]->list[kind], kinds[kind].size, i);
}

/* All that is open at t is on the way out from the last one that began by then. */
u32 hb_timeline__at(const struct hb_timeline *tl, u32 thread, enum hb_tl_kind kind, u64 t)
{
	const struct list *l = &tl->thread[thread]->list[kind];

	if (!l->n)
		return HB_NONE;
	return hb_spans__open(l->item, kinds[kind].size,
			      t == UINT64_MAX ? l->n : hb_timeline__from(tl, thread, kind, t + 1), t);
}

const struct hb_tl_place *hb_timeline__place(const struct hb_timeline *tl, const struct hb_tl_sleep *s)
{
	return &tl->places.v[s->place < tl->places.n ? s->place : 0];
}

struct hb_tl_call *hb_calls__of(struct hb_timeline *tl, u32 thread, u32 *n)
{
	const struct list *l = &tl->thread[thread]->list[HB_TL_CALL];

	*n = l->n;
	return l->item;
}

const struct hb_tl_callee *hb_timeline__callee(const struct hb_timeline *tl, const struct hb_tl_call *c)
{
	return &tl->callees.v[c->callee < tl->callees.n ? c->callee : 0];
}

struct hb_use hb_timeline__use(const struct hb_timeline *tl, u32 thread, u64 begin, u64 end)
{
	struct hb_use u = {.running = end > begin ? end - begin : 0};
	u32 n, i = hb_timeline__at(tl, thread, HB_TL_SLEEP, begin);
	const struct hb_tl_sleep *s = hb_timeline__sleeps(tl, thread, &n);
	u64 done = begin; /* records of one thread do not overlap, but a damaged window's may */

	if (i == HB_NONE)
		i = hb_timeline__from(tl, thread, HB_TL_SLEEP, begin);
	for (; i < n && s[i].at.begin < end; i++) {
		u64 from = s[i].at.begin > done ? s[i].at.begin : done;
		u64 wake = s[i].at.end - s[i].ready, all = hb_overlap(from, s[i].at.end, begin, end);
		u64 slept = hb_overlap(from, wake, begin, end);

		u.slept += slept;
		u.ready += all - slept;
		u.running -= all;
		done = s[i].at.end > done ? s[i].at.end : done;
	}
	return u;
}
