/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Part of cuda.c: streams, capture, events. */

static CUresult do_cuStreamCreate(CUstream *stream, unsigned int flags)
{
	NEEDED(stream);
	return hb_stream__create(flags, 0, (struct hb_stream **)stream);
}

static CUresult do_cuStreamCreateWithPriority(CUstream *stream, unsigned int flags, int priority)
{
	NEEDED(stream);
	return hb_stream__create(flags, priority, (struct hb_stream **)stream);
}

static CUresult do_cuStreamDestroy_v2(CUstream stream)
{
	struct hb_stream *s;

	OBJECT(s, stream, HB_STREAM);
	return hb_stream__destroy(s);
}

static CUresult query(CUstream stream, bool per_thread)
{
	struct hb_stream *s;

	STREAM_OF(s, stream, per_thread);
	return hb_stream__query(s);
}

static CUresult do_cuStreamQuery(CUstream stream)
{
	return query(stream, false);
}

static CUresult do_cuStreamQuery_ptsz(CUstream stream)
{
	return query(stream, true);
}

static CUresult do_cuStreamSynchronize(CUstream stream)
{
	struct hb_stream *s;

	STREAM(s, stream);
	return hb_stream__sync(s);
}

static CUresult do_cuStreamSynchronize_ptsz(CUstream stream)
{
	struct hb_stream *s;

	STREAM_OF(s, stream, true);
	return hb_stream__sync(s);
}

static CUresult wait_event(CUstream stream, CUevent event, bool per_thread)
{
	struct hb_stream *s;
	struct hb_event *e;

	STREAM_OF(s, stream, per_thread);
	OBJECT(e, event, HB_EVENT);
	return hb_stream__wait_event(s, e);
}

static CUresult do_cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags)
{
	return wait_event(stream, event, false);
}

static CUresult do_cuStreamWaitEvent_ptsz(CUstream stream, CUevent event, unsigned int flags)
{
	return wait_event(stream, event, true);
}

static CUresult do_cuStreamGetPriority(CUstream stream, int *priority)
{
	struct hb_stream *s;

	NEEDED(priority);
	STREAM(s, stream);
	*priority = s->priority;
	return CUDA_SUCCESS;
}

static CUresult do_cuStreamGetFlags(CUstream stream, unsigned int *flags)
{
	struct hb_stream *s;

	NEEDED(flags);
	STREAM(s, stream);
	*flags = s->flags;
	return CUDA_SUCCESS;
}

static CUresult do_cuStreamGetCtx(CUstream stream, CUcontext *ctx)
{
	struct hb_stream *s;

	NEEDED(ctx);
	STREAM(s, stream);
	*ctx = (CUcontext)s->ctx;
	return CUDA_SUCCESS;
}

static CUresult do_cuStreamGetId(CUstream stream, unsigned long long *id)
{
	struct hb_stream *s;

	NEEDED(id);
	STREAM(s, stream);
	*id = (u64)s->obj.generation << 32 | hb_handle__index(s);
	return CUDA_SUCCESS;
}

static CUresult do_cuStreamGetDevice(CUstream stream, CUdevice *device)
{
	struct hb_stream *s;

	NEEDED(device);
	STREAM(s, stream);
	*device = s->ctx->device;
	return CUDA_SUCCESS;
}

/* Attributes (windows of the cache, synchronisation) change nothing here. */
static CUresult do_cuStreamCopyAttributes(CUstream dst, CUstream src)
{
	struct hb_stream *s;

	STREAM(s, dst);
	STREAM(s, src);
	return CUDA_SUCCESS;
}

static CUresult do_cuStreamSetAttribute(CUstream stream, CUstreamAttrID attribute,
					const CUstreamAttrValue *value)
{
	struct hb_stream *s;

	NEEDED(value);
	STREAM(s, stream);
	return CUDA_SUCCESS;
}

/* ---- capture ---- */

static CUresult begin_capture(CUstream stream, int mode, bool per_thread)
{
	struct hb_stream *s;

	STREAM_OF(s, stream, per_thread);
	return hb_capture__begin(s, mode);
}

static CUresult do_cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode)
{
	return begin_capture(stream, (int)mode, false);
}

static CUresult do_cuStreamBeginCapture_v2_ptsz(CUstream stream, CUstreamCaptureMode mode)
{
	return begin_capture(stream, (int)mode, true);
}

static CUresult do_cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph, const CUgraphNode *deps,
					       const CUgraphEdgeData *edges, size_t n,
					       CUstreamCaptureMode mode)
{
	struct hb_graph *g;
	struct hb_stream *s;
	struct hb_deps d;
	CUresult r;

	OBJECT(g, graph, HB_GRAPH);
	STREAM(s, stream);
	hb_lock();
	r = hb_node__collect(g, deps, n, &d);
	hb_unlock();
	return r ? r : hb_capture__begin_to(s, (int)mode, g, &d);
}

static CUresult end_capture(CUstream stream, CUgraph *graph, bool per_thread)
{
	struct hb_stream *s;

	NEEDED(graph);
	STREAM_OF(s, stream, per_thread);
	return hb_capture__end(s, (struct hb_graph **)graph);
}

static CUresult do_cuStreamEndCapture(CUstream stream, CUgraph *graph)
{
	return end_capture(stream, graph, false);
}

static CUresult do_cuStreamEndCapture_ptsz(CUstream stream, CUgraph *graph)
{
	return end_capture(stream, graph, true);
}

static int capture_status(const struct hb_stream *s)
{
	if (!s->capture)
		return CU_STREAM_CAPTURE_STATUS_NONE;
	return s->capture_broken ? CU_STREAM_CAPTURE_STATUS_INVALIDATED : CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

static CUresult is_capturing(CUstream stream, CUstreamCaptureStatus *status, bool per_thread)
{
	struct hb_stream *s;

	NEEDED(status);
	STREAM_OF(s, stream, per_thread);
	*status = capture_status(s);
	return CUDA_SUCCESS;
}

static CUresult do_cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status)
{
	return is_capturing(stream, status, false);
}

static CUresult do_cuStreamIsCapturing_ptsz(CUstream stream, CUstreamCaptureStatus *status)
{
	return is_capturing(stream, status, true);
}

/* What the next node of the stream would wait for: the array is the thread's until it asks again. */
static const CUgraphNode *capture_deps(const struct hb_stream *s)
{
	static __thread CUgraphNode nodes[HB_MAX_DEPS];

	for (u32 i = 0; i < s->deps.n; i++)
		nodes[i] = hb_node__handle(s->capture, s->deps.node[i]);
	return nodes;
}

static CUresult do_cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id,
					     CUgraph *graph, const CUgraphNode **deps, size_t *n)
{
	struct hb_stream *s;
	bool active;

	NEEDED(status);
	STREAM(s, stream);
	*status = capture_status(s);
	active = (int)*status == CU_STREAM_CAPTURE_STATUS_ACTIVE;
	if (id)
		*id = s->capture_id;
	if (graph)
		*graph = active ? (CUgraph)s->capture : NULL;
	if (deps)
		*deps = active ? capture_deps(s) : NULL;
	if (n)
		*n = active ? s->deps.n : 0;
	return CUDA_SUCCESS;
}

static CUresult do_cuStreamGetCaptureInfo_v3(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id,
					     CUgraph *graph, const CUgraphNode **deps,
					     const CUgraphEdgeData **edges, size_t *n)
{
	static const CUgraphEdgeData plain[HB_MAX_DEPS];

	if (edges)
		*edges = plain;
	return do_cuStreamGetCaptureInfo_v2(stream, status, id, graph, deps, n);
}

static CUresult do_cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id)
{
	return do_cuStreamGetCaptureInfo_v2(stream, status, id, NULL, NULL, NULL);
}

static CUresult do_cuStreamUpdateCaptureDependencies(CUstream stream, CUgraphNode *deps, size_t n,
						     unsigned int flags)
{
	struct hb_stream *s;
	struct hb_deps d;
	CUresult r;

	STREAM(s, stream);
	if (flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES)
		return CUDA_ERROR_INVALID_VALUE;
	if (!s->capture)
		return CUDA_ERROR_ILLEGAL_STATE;
	hb_lock();
	r = hb_node__collect(s->capture, deps, n, &d);
	if (!r && flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES)
		s->deps = d;
	else if (!r)
		r = hb_graph__join(s->capture, &s->deps, &d);
	hb_unlock();
	return r;
}

static CUresult do_cuStreamUpdateCaptureDependencies_v2(CUstream stream, CUgraphNode *deps,
							const CUgraphEdgeData *edges, size_t n,
							unsigned int flags)
{
	return do_cuStreamUpdateCaptureDependencies(stream, deps, n, flags);
}

static CUresult do_cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
	NEEDED(mode);
	if ((unsigned int)*mode > CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_ERROR_INVALID_VALUE;
	*mode = hb_capture__exchange((int)*mode);
	return CUDA_SUCCESS;
}

/* ---- events ---- */

static CUresult do_cuEventCreate(CUevent *event, unsigned int flags)
{
	NEEDED(event);
	return hb_event__create(flags, (struct hb_event **)event);
}

static CUresult do_cuEventDestroy_v2(CUevent event)
{
	struct hb_event *e;

	OBJECT(e, event, HB_EVENT);
	return hb_event__destroy(e);
}

static CUresult record(CUevent event, CUstream stream, bool per_thread)
{
	struct hb_stream *s;
	struct hb_event *e;

	STREAM_OF(s, stream, per_thread);
	OBJECT(e, event, HB_EVENT);
	return hb_event__record(e, s);
}

static CUresult do_cuEventRecord(CUevent event, CUstream stream)
{
	return record(event, stream, false);
}

static CUresult do_cuEventRecord_ptsz(CUevent event, CUstream stream)
{
	return record(event, stream, true);
}

static CUresult do_cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned int flags)
{
	return record(event, stream, false);
}

static CUresult do_cuEventRecordWithFlags_ptsz(CUevent event, CUstream stream, unsigned int flags)
{
	return record(event, stream, true);
}

static CUresult do_cuEventQuery(CUevent event)
{
	struct hb_event *e;

	OBJECT(e, event, HB_EVENT);
	return hb_event__query(e);
}

static CUresult do_cuEventSynchronize(CUevent event)
{
	struct hb_event *e;

	OBJECT(e, event, HB_EVENT);
	return hb_event__sync(e);
}

static CUresult do_cuEventElapsedTime(float *ms, CUevent start, CUevent end)
{
	struct hb_event *a, *b;

	OBJECT(a, start, HB_EVENT);
	OBJECT(b, end, HB_EVENT);
	return hb_event__elapsed(ms, a, b);
}

static CUresult do_cuEventElapsedTime_v2(float *ms, CUevent start, CUevent end)
{
	return do_cuEventElapsedTime(ms, start, end);
}
