/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <stdlib.h>
#include <string.h>
#include "coll.h"
#include "fault.h"
#include "hostfn.h"
#include "kernel.h"
#include "operation.h"
#include "result.h"
#include "sim.h"
#include "truth.h"

#define JITTER	    0.02
#define MAX_DEVICES 64

/* Per device: copies in one direction follow each other, and so do kernels that fill it, in whatever streams
 * and in the order they are enqueued. Smaller kernels overlap with all. */
static struct busy { /* the last time that it was, or will be, busy without a pause */
	u64 from, to;
} engines[MAX_DEVICES][3], full[MAX_DEVICES];
static bool worked[MAX_DEVICES]; /* kernels since the host last waited with a copy planted */
static u64 seed;		 /* HB_SIM_SEED; 0: durations do not vary */

__attribute__((constructor)) static void read_seed(void)
{
	const char *s = getenv("HB_SIM_SEED");

	seed = s ? strtoull(s, NULL, 0) * 0x9e3779b97f4a7c15ull : 0;
}

static __thread struct hb_stream *thread_stream;
static __thread u32 thread_generation;

static struct hb_stream *own_stream(void)
{
	struct hb_stream *s = hb_handle__get(thread_stream, HB_STREAM);

	if (s && s->obj.generation == thread_generation && s->ctx == hb_ctx__current())
		return s;
	if (hb_stream__create(0, 0, &s))
		return NULL;
	thread_stream = s;
	thread_generation = s->obj.generation;
	return s;
}

CUresult hb_stream__resolve(CUstream h, bool per_thread, struct hb_stream **s)
{
	struct hb_ctx *ctx;
	CUresult r = hb_ctx__need(&ctx);

	if (r)
		return r;
	if ((!h && per_thread) || h == (CUstream)2)
		*s = own_stream();
	else if (!h || h == (CUstream)1)
		*s = ctx->legacy;
	else
		*s = hb_handle__get(h, HB_STREAM);
	return *s ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult hb_stream__create(u32 flags, int priority, struct hb_stream **out)
{
	static u32 last_serial;
	struct hb_ctx *ctx;
	CUresult r = hb_ctx__need(&ctx);
	struct hb_stream *s;

	if (r)
		return r;
	if (flags & ~(u32)CU_STREAM_NON_BLOCKING)
		return CUDA_ERROR_INVALID_VALUE;
	/* With the lock held: a handle that was destroyed may be this one by now, and another thread hold it.
	 */
	hb_lock();
	s = hb_handle__new(HB_STREAM);
	if (s) {
		s->ctx = ctx;
		s->flags = flags;
		s->priority = priority;
		s->serial = ++last_serial;
		ctx->blocking += !(flags & CU_STREAM_NON_BLOCKING);
		s->next = ctx->streams;
		ctx->streams = s;
	}
	hb_unlock();
	if (!s)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*out = s;
	return CUDA_SUCCESS;
}

/* With the lock held: another thread may have destroyed it since its handle was looked at. */
static bool gone(const struct hb_stream *s)
{
	return s->obj.kind != HB_STREAM;
}

CUresult hb_stream__destroy(struct hb_stream *s)
{
	struct hb_stream **p;
	struct hb_moment *queue;
	struct hb_graph *g;

	hb_lock();
	if (gone(s) || s == s->ctx->legacy) {
		hb_unlock();
		return CUDA_ERROR_INVALID_HANDLE;
	}
	g = hb_capture__drop(s);
	for (p = &s->ctx->streams; *p && *p != s; p = &(*p)->next)
		;
	if (*p) {
		*p = s->next;
		s->ctx->blocking -= !(s->flags & CU_STREAM_NON_BLOCKING);
	}
	queue = s->queue;
	hb_handle__free(s);
	hb_unlock();
	free(queue);
	if (g)
		hb_graph__destroy(g);
	return CUDA_SUCCESS;
}

/* Room for one more operation: as on a real device the caller is blocked while the queue is full. */
void hb_stream__room(struct hb_stream *s)
{
	u32 sched;

	if (!s->queue)
		s->queue = calloc(hb_costs.queue, sizeof(*s->queue));
	while (!gone(s) && s->queue && s->count >= hb_costs.queue) {
		struct hb_moment oldest = s->queue[s->head];

		if (hb_moment__passed(&s->queue[s->head], hb_now())) {
			s->head = (s->head + 1) % (u32)hb_costs.queue;
			s->count--;
			continue;
		}
		sched = s->ctx->flags;
		hb_unlock();
		hb_moment__wait(&oldest, sched);
		hb_lock();
	}
}

void hb_stream__push(struct hb_stream *s)
{
	if (s->queue)
		s->queue[(s->head + s->count++) % hb_costs.queue] = s->tail;
}

/* Order against the legacy stream, which waits for all blocking streams and lets them wait for it. */
void hb_stream__start(struct hb_stream *s, u64 now)
{
	struct hb_ctx *ctx = s->ctx;

	if (s == ctx->legacy) {
		for (struct hb_stream *t = ctx->blocking ? ctx->streams : NULL; t; t = t->next)
			if (!(t->flags & CU_STREAM_NON_BLOCKING))
				hb_moment__join(&s->tail, &t->tail);
	} else if (!(s->flags & CU_STREAM_NON_BLOCKING)) {
		hb_moment__join(&s->tail, &ctx->legacy->tail);
	}
	hb_moment__advance(&s->tail, now, 0);
}

/* What planted faults and the seed make of a cost. Same seed, same durations, whatever the threads do: they
 * depend on the stream and on the kernel's place in it. */
static u64 varied(const struct hb_stream *s, u64 ns)
{
	u64 z = seed ^ (u64)s->serial << 32 ^ s->kernels;

	if (!seed)
		return ns;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return ns + (u64)((double)ns * JITTER * ((double)(z >> 11) / (double)(1ull << 52) - 1));
}

/* An operation that needs all of b and could start now does so when b is free. One that ends before the
 * others begin does not wait for them: their stream has long to wait. */
static void occupy(struct busy *b, struct hb_stream *s, u64 ns)
{
	u64 at = s->tail.at;

	if (s->tail.rdv || at + ns <= b->from)
		return;
	if (at > b->to)
		b->from = at;
	else
		at = b->to;
	b->to = at + ns;
	s->tail.at = at;
}

static struct hb_moment apply_kernel(struct hb_stream *s, const struct hb_work *w)
{
	struct hb_function *f = (struct hb_function *)(uintptr_t)w->function; /* keeps what was looked up */
	int device = s->ctx->device;
	bool big = (u64)w->grid[0] * w->grid[1] * w->grid[2] >= hb_costs.sms;
	u64 ns = hb_kernel__cost(f, w);
	struct hb_moment start;

	s->kernels++;
	ns = varied(s, ns);
	if (hb_fault_kinds)
		ns = (u64)((double)ns * hb_fault__kernel(f, device));
	hb_moment__advance(&s->tail, 0, w->cost);
	if (big)
		occupy(&full[device], s, ns);
	start = s->tail;
	hb_moment__advance(&s->tail, 0, ns);
	hb_result__kernel(device, hb_kernel__zero(f));
	worked[device] = true;
	return start;
}

static void move_bytes(int device, const struct hb_work *w)
{
	if (w->engine == HB_ENGINE_D2H && hb_result__give(device, w))
		return;
	hb_memory__copy(w);
	if (w->engine == HB_ENGINE_H2D)
		hb_result__written(device, w->dst, w->bytes);
	else if (w->engine == HB_ENGINE_NONE)
		hb_result__copied(device, w);
}

static struct hb_moment apply_copy(struct hb_stream *s, const struct hb_work *w)
{
	struct hb_moment start;
	u64 cost = w->cost;

	move_bytes(s->ctx->device, w);
	if (w->engine != HB_ENGINE_NONE) {
		if (hb_fault__on(HB_FAULT_CONTENTION))
			cost = (u64)((double)cost * hb_fault__copy());
		occupy(&engines[s->ctx->device][w->engine], s, cost);
	}
	start = s->tail;
	hb_moment__advance(&s->tail, 0, cost);
	return start;
}

static struct hb_moment apply_collective(struct hb_stream *s, const struct hb_work *w)
{
	const struct hb_coll *c = w->coll;
	struct hb_moment start;

	hb_moment__advance(&s->tail, 0, hb_fault__late(s->ctx->device));
	start = s->tail;
	for (u32 i = 0; i < c->n; i++) {
		struct hb_moment m = start;

		hb_rdv__arrive(c->rdv, c->op[i].chan, &m, c->op[i].cost);
		if (i)
			hb_moment__join(&s->tail, &m);
		else
			s->tail = m;
	}
	hb_moment__advance(&s->tail, s->now, w->cost);
	hb_coll__run(s->ctx->device, c);
	worked[s->ctx->device] = true;
	return start;
}

static struct hb_moment apply_other(struct hb_stream *s, const struct hb_work *w)
{
	struct hb_moment start = s->tail;

	if (w->op == HB_OP_FILL) {
		hb_memory__fill(w);
		hb_result__written(s->ctx->device, w->dst, w->bytes * w->width);
	} else if (w->op == HB_OP_HOST) {
		hb_hostfn__queue(&s->tail, w->fn, w->arg);
	}
	hb_moment__advance(&s->tail, 0, w->cost);
	return start;
}

void hb_stream__apply(struct hb_stream *s, const struct hb_work *w, u64 now)
{
	struct hb_moment start;

	s->now = now;
	hb_moment__advance(&s->tail, now, 0);
	switch (w->op) {
	case HB_OP_KERNEL:
		start = apply_kernel(s, w);
		break;
	case HB_OP_COPY:
		start = apply_copy(s, w);
		break;
	case HB_OP_COLL:
		start = apply_collective(s, w);
		break;
	case HB_OP_NOTHING:
		return;
	default:
		start = apply_other(s, w);
	}
	hb_operation__log(s, w, &start, &s->tail, 0);
}

void hb_stream__plant(struct hb_stream *s, struct hb_moment *m)
{
	struct hb_work w = {.op = HB_OP_COPY, .engine = HB_ENGINE_D2H};
	struct hb_moment start;
	u64 ns;

	if (!worked[s->ctx->device] || !hb_fault__d2h(&ns, &w.bytes))
		return;
	worked[s->ctx->device] = false;
	s->now = hb_now();
	hb_moment__advance(m, s->now, 0);
	start = *m;
	hb_moment__advance(m, 0, ns);
	hb_moment__join(&s->tail, m);
	hb_operation__log(s, &w, &start, m, HB_OPERATION_PLANTED);
}

static CUresult capture(struct hb_stream *s, const struct hb_work *w)
{
	struct hb_work node = *w;
	CUresult r;

	if (s->capture_broken)
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	if (w->op == HB_OP_EVENT)
		return CUDA_SUCCESS; /* the event takes the stream's deps */
	node.deps = s->deps;
	r = hb_graph__add(s->capture, &node);
	if (!r)
		s->deps = (struct hb_deps){1, {s->capture->n - 1}};
	return r;
}

CUresult hb_stream__enqueue(struct hb_stream *s, const struct hb_work *w)
{
	CUresult r = CUDA_SUCCESS;
	u64 now;

	hb_lock();
	if (!gone(s) && !s->capture)
		hb_stream__room(s);
	if (gone(s)) {
		r = CUDA_ERROR_INVALID_HANDLE;
	} else if (s->capture) {
		r = capture(s, w);
	} else if (s == s->ctx->legacy && hb_capture__implicit(s->ctx)) {
		r = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
	} else {
		now = hb_now();
		hb_stream__start(s, now);
		hb_stream__apply(s, w, now);
		hb_stream__push(s);
	}
	hb_unlock();
	if (w->op == HB_OP_KERNEL || w->op == HB_OP_COLL)
		hb_fault__stall();
	return r;
}

CUresult hb_stream__query(struct hb_stream *s)
{
	CUresult r = CUDA_SUCCESS;
	u64 now = hb_now();

	hb_lock();
	if (gone(s)) {
		r = CUDA_ERROR_INVALID_HANDLE;
	} else if (s->capture) {
		hb_capture__break(s);
		r = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	} else if (s == s->ctx->legacy && hb_capture__implicit(s->ctx)) {
		r = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
	} else {
		if (s == s->ctx->legacy)
			hb_stream__start(s, 0);
		if (!hb_moment__passed(&s->tail, now))
			r = CUDA_ERROR_NOT_READY;
	}
	hb_unlock();
	return r;
}

CUresult hb_stream__sync(struct hb_stream *s)
{
	CUresult r = CUDA_SUCCESS;
	struct hb_moment m;
	u32 sched;

	hb_lock();
	if (gone(s)) {
		r = CUDA_ERROR_INVALID_HANDLE;
	} else if (s->capture) {
		hb_capture__break(s);
		r = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	} else if (s == s->ctx->legacy) {
		r = hb_capture__implicit(s->ctx);
	}
	if (r) {
		hb_unlock();
		return r;
	}
	if (s == s->ctx->legacy)
		hb_stream__start(s, 0);
	m = s->tail;
	if (hb_fault__on(HB_FAULT_BLOCKING_D2H))
		hb_stream__plant(s, &m);
	sched = s->ctx->flags;
	hb_unlock();
	hb_moment__wait(&m, sched);
	hb_operation__synced();
	return CUDA_SUCCESS;
}

CUresult hb_ctx__sync(struct hb_ctx *ctx)
{
	struct hb_moment m;
	bool capturing = false;

	hb_lock();
	m = ctx->legacy->tail;
	for (struct hb_stream *s = ctx->streams; s; s = s->next) {
		capturing |= s->capture != NULL;
		hb_moment__join(&m, &s->tail);
	}
	if (hb_fault__on(HB_FAULT_BLOCKING_D2H) && !capturing)
		hb_stream__plant(ctx->legacy, &m);
	hb_unlock();
	if (capturing)
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	hb_moment__wait(&m, ctx->flags);
	hb_operation__synced();
	return CUDA_SUCCESS;
}
