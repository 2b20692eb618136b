/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "fault.h"
#include "operation.h"
#include "sim.h"

CUresult hb_event__create(u32 flags, struct hb_event **out)
{
	struct hb_ctx *ctx;
	CUresult r = hb_ctx__need(&ctx);

	if (r)
		return r;
	*out = hb_handle__new(HB_EVENT);
	if (!*out)
		return CUDA_ERROR_OUT_OF_MEMORY;
	(*out)->flags = flags;
	return CUDA_SUCCESS;
}

/* With the lock held: another thread may have destroyed it since its handle was looked at. */
static bool gone(const struct hb_event *e)
{
	return e->obj.kind != HB_EVENT;
}

CUresult hb_event__destroy(struct hb_event *e)
{
	CUresult r = CUDA_SUCCESS;

	hb_lock();
	if (gone(e))
		r = CUDA_ERROR_INVALID_HANDLE;
	else
		hb_handle__free(e);
	hb_unlock();
	return r;
}

CUresult hb_event__record(struct hb_event *e, struct hb_stream *s)
{
	struct hb_work w = {.op = HB_OP_EVENT, .cost = hb_costs.event_ns};
	CUresult r = hb_stream__enqueue(s, &w);

	if (r)
		return r;
	hb_lock();
	if (s->obj.kind != HB_STREAM || gone(e)) {
		hb_unlock();
		return CUDA_ERROR_INVALID_HANDLE;
	}
	e->recorded = true;
	e->capture = s->capture;
	e->capture_id = s->capture_id;
	e->deps = s->deps;
	if (!s->capture) {
		e->when = s->tail;
		if (hb_fault__on(HB_FAULT_LOST_EVENT))
			hb_moment__advance(&e->when, 0, hb_fault__lost());
	}
	hb_unlock();
	return CUDA_SUCCESS;
}

CUresult hb_event__query(struct hb_event *e)
{
	CUresult r;
	u64 now = hb_now();

	hb_lock();
	if (gone(e))
		r = CUDA_ERROR_INVALID_HANDLE;
	else if (e->capture)
		r = CUDA_ERROR_CAPTURED_EVENT;
	else
		r = hb_moment__passed(&e->when, now) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
	hb_unlock();
	return r;
}

CUresult hb_event__sync(struct hb_event *e)
{
	CUresult r = CUDA_SUCCESS;
	struct hb_moment m;

	hb_lock();
	m = e->when;
	if (gone(e))
		r = CUDA_ERROR_INVALID_HANDLE;
	else if (e->capture)
		r = CUDA_ERROR_CAPTURED_EVENT;
	else if (hb_fault__on(HB_FAULT_BLOCKING_D2H) && hb_ctx__current())
		hb_stream__plant(hb_ctx__current()->legacy, &m);
	hb_unlock();
	if (r)
		return r;
	hb_moment__wait(&m, e->flags & CU_EVENT_BLOCKING_SYNC ? CU_CTX_SCHED_BLOCKING_SYNC : 0);
	hb_operation__synced();
	return CUDA_SUCCESS;
}

CUresult hb_event__elapsed(float *ms, struct hb_event *a, struct hb_event *b)
{
	u64 ta = 0, tb = 0, now = hb_now();
	CUresult r = CUDA_SUCCESS;

	if (!ms)
		return CUDA_ERROR_INVALID_VALUE;
	hb_lock();
	if (gone(a) || gone(b) || !a->recorded || !b->recorded ||
	    ((a->flags | b->flags) & CU_EVENT_DISABLE_TIMING))
		r = CUDA_ERROR_INVALID_HANDLE;
	else if (!hb_moment__known(&a->when, &ta) || !hb_moment__known(&b->when, &tb) || ta > now || tb > now)
		r = CUDA_ERROR_NOT_READY;
	hb_unlock();
	if (!r)
		*ms = (float)(((double)tb - (double)ta) / 1e6);
	return r;
}

/* An event recorded in a capturing stream takes the waiting stream into that capture. */
static CUresult join_capture(struct hb_stream *s, struct hb_event *e)
{
	if (s->capture && s->capture != e->capture)
		return CUDA_ERROR_STREAM_CAPTURE_MERGE;
	if (!s->capture) {
		s->capture = e->capture;
		s->capture_id = e->capture_id;
		s->capture_origin = false;
		s->capture_broken = false;
		s->deps.n = 0;
	}
	return hb_graph__join(s->capture, &s->deps, &e->deps);
}

CUresult hb_stream__wait_event(struct hb_stream *s, struct hb_event *e)
{
	CUresult r = CUDA_SUCCESS;
	struct hb_graph *g;

	hb_lock();
	g = hb_handle__get(e->capture, HB_GRAPH);
	if (s->obj.kind != HB_STREAM || gone(e))
		r = CUDA_ERROR_INVALID_HANDLE; /* another thread destroyed it just now */
	else if (g && g->capture_id && g->capture_id == e->capture_id)
		r = join_capture(s, e);
	else if (e->recorded && !e->capture)
		hb_moment__join(&s->tail, &e->when);
	hb_unlock();
	return r;
}
