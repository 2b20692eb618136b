/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Part of cuda.c: streams, capture, events, graphs. */

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

static CUresult do_cuStreamQuery(CUstream stream)
{
	struct hb_stream *s;

	STREAM(s, stream);
	return hb_stream__query(s);
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

static CUresult do_cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags)
{
	struct hb_stream *s;
	struct hb_event *e;

	STREAM(s, stream);
	OBJECT(e, event, HB_EVENT);
	return hb_stream__wait_event(s, e);
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

static CUresult do_cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode)
{
	struct hb_stream *s;

	STREAM(s, stream);
	return hb_capture__begin(s, (int)mode);
}

static CUresult do_cuStreamEndCapture(CUstream stream, CUgraph *graph)
{
	struct hb_stream *s;

	NEEDED(graph);
	STREAM(s, stream);
	return hb_capture__end(s, (struct hb_graph **)graph);
}

static int capture_status(const struct hb_stream *s)
{
	if (!s->capture)
		return CU_STREAM_CAPTURE_STATUS_NONE;
	return s->capture_broken ? CU_STREAM_CAPTURE_STATUS_INVALIDATED : CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

static CUresult do_cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status)
{
	struct hb_stream *s;

	NEEDED(status);
	STREAM(s, stream);
	*status = capture_status(s);
	return CUDA_SUCCESS;
}

static CUresult do_cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus *status, uint64_t *id,
					     CUgraph *graph, const CUgraphNode **deps, size_t *n)
{
	struct hb_stream *s;

	NEEDED(status);
	STREAM(s, stream);
	*status = capture_status(s);
	if (id)
		*id = s->capture_id;
	if (graph)
		*graph = (CUgraph)s->capture;
	if (deps)
		*deps = NULL;
	if (n)
		*n = 0;
	return CUDA_SUCCESS;
}

static CUresult do_cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
	static __thread CUstreamCaptureMode current;
	CUstreamCaptureMode old = current;

	NEEDED(mode);
	if (*mode > 2)
		return CUDA_ERROR_INVALID_VALUE;
	current = *mode;
	*mode = old;
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
	hb_handle__free(e);
	return CUDA_SUCCESS;
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

/* ---- graphs ---- */

static CUresult do_cuGraphCreate(CUgraph *graph, unsigned int flags)
{
	NEEDED(graph);
	return hb_graph__create((struct hb_graph **)graph);
}

static CUresult do_cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
	struct hb_graph *g;

	NEEDED(exec);
	OBJECT(g, graph, HB_GRAPH);
	return hb_graph__instantiate(g, (struct hb_exec **)exec);
}

static CUresult do_cuGraphInstantiateWithParams(CUgraphExec *exec, CUgraph graph,
						CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
	NEEDED(params);
	params->result_out = 0;
	return do_cuGraphInstantiateWithFlags(exec, graph, params->flags);
}

static CUresult do_cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *info)
{
	struct hb_exec *x;
	struct hb_graph *g;

	OBJECT(x, exec, HB_EXEC);
	OBJECT(g, graph, HB_GRAPH);
	if (info)
		*(int *)info = 0; /* its first member is the result: success */
	return hb_graph__update(x, g);
}

static CUresult do_cuGraphUpload(CUgraphExec exec, CUstream stream)
{
	struct hb_exec *x;
	struct hb_stream *s;

	OBJECT(x, exec, HB_EXEC);
	STREAM(s, stream);
	return CUDA_SUCCESS;
}

static CUresult graph_launch(CUgraphExec exec, CUstream stream, bool per_thread)
{
	u64 since = hb_now();
	struct hb_exec *x;
	struct hb_stream *s;
	CUresult r;

	OBJECT(x, exec, HB_EXEC);
	STREAM_OF(s, stream, per_thread);
	r = hb_exec__launch(x, s);
	hb_costs__spin(since, hb_costs.graph_launch_ns);
	return r;
}

static CUresult do_cuGraphLaunch(CUgraphExec exec, CUstream stream)
{
	return graph_launch(exec, stream, false);
}

static CUresult do_cuGraphLaunch_ptsz(CUgraphExec exec, CUstream stream)
{
	return graph_launch(exec, stream, true);
}

static CUresult do_cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *n)
{
	struct hb_graph *g;

	NEEDED(n);
	OBJECT(g, graph, HB_GRAPH);
	if (!nodes) {
		*n = g->n;
		return CUDA_SUCCESS;
	}
	for (size_t i = 0; i < *n && i < g->n; i++)
		nodes[i] = (CUgraphNode)&g->nodes[i];
	return CUDA_SUCCESS;
}

static CUresult do_cuGraphDestroy(CUgraph graph)
{
	struct hb_graph *g;

	OBJECT(g, graph, HB_GRAPH);
	return hb_graph__destroy(g);
}

static CUresult do_cuGraphExecDestroy(CUgraphExec exec)
{
	struct hb_exec *x;

	OBJECT(x, exec, HB_EXEC);
	return hb_exec__destroy(x);
}
