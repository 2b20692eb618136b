/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Part of cuda.c: graphs. */

/* ---- graphs ---- */

static CUresult do_cuGraphCreate(CUgraph *graph, unsigned int flags)
{
	NEEDED(graph);
	return hb_graph__create((struct hb_graph **)graph);
}

static CUresult do_cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
	struct hb_graph *g;

	CUresult r;

	NEEDED(exec);
	OBJECT(g, graph, HB_GRAPH);
	r = hb_graph__instantiate(g, (struct hb_exec **)exec);
	if (!r)
		((struct hb_exec *)*exec)->flags = flags;
	return r;
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

/* ---- what is in a graph ---- */

/* The usual way to hand out a list: its length when there is no room given, else as many as fit. */
struct list {
	CUgraphNode *room;
	size_t size, n;
};

static void put(struct list *l, CUgraphNode node)
{
	if (l->room && l->n < l->size)
		l->room[l->n] = node;
	l->n++;
}

static void give(const struct list *l, size_t *n)
{
	if (l->room)
		for (size_t i = l->n; i < l->size; i++)
			l->room[i] = NULL;
	*n = l->room && l->n > l->size ? l->size : l->n;
}

static CUresult list_nodes(CUgraph graph, CUgraphNode *nodes, size_t *n, bool roots)
{
	struct list l = {.room = nodes, .size = n ? *n : 0};
	struct hb_graph *g;

	NEEDED(n);
	OBJECT(g, graph, HB_GRAPH);
	hb_lock();
	for (u32 i = 0; i < g->n; i++)
		if (!roots || !g->nodes[i].deps.n)
			put(&l, hb_node__handle(g, i));
	hb_unlock();
	give(&l, n);
	return CUDA_SUCCESS;
}

static CUresult do_cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *n)
{
	return list_nodes(graph, nodes, n, false);
}

static CUresult do_cuGraphGetRootNodes(CUgraph graph, CUgraphNode *nodes, size_t *n)
{
	return list_nodes(graph, nodes, n, true);
}

static CUresult do_cuGraphGetEdges(CUgraph graph, CUgraphNode *from, CUgraphNode *to, size_t *n)
{
	struct list a = {.room = from, .size = n ? *n : 0}, b = {.room = to, .size = n ? *n : 0};
	struct hb_graph *g;

	NEEDED(n);
	OBJECT(g, graph, HB_GRAPH);
	hb_lock();
	for (u32 i = 0; i < g->n; i++)
		for (u32 k = 0; k < g->nodes[i].deps.n; k++) {
			put(&a, hb_node__handle(g, g->nodes[i].deps.node[k]));
			put(&b, hb_node__handle(g, i));
		}
	hb_unlock();
	give(&b, n);
	return CUDA_SUCCESS;
}

static void plain_edges(CUgraphEdgeData *edges, const size_t *n)
{
	if (edges && n)
		memset(edges, 0, *n * sizeof(*edges));
}

static CUresult do_cuGraphGetEdges_v2(CUgraph graph, CUgraphNode *from, CUgraphNode *to,
				      CUgraphEdgeData *edges, size_t *n)
{
	CUresult r = do_cuGraphGetEdges(graph, from, to, n);

	plain_edges(edges, r ? NULL : n);
	return r;
}

/* The node behind a handle, or return the code for what is wrong. */
#define NODE(w, node, g, index)                                                                              \
	do {                                                                                                 \
		CUresult r_ = hb_device__ready();                                                            \
		if (r_)                                                                                      \
			return r_;                                                                           \
		(w) = hb_node__get((node), (g), (index));                                                    \
		if (!(w))                                                                                    \
			return CUDA_ERROR_INVALID_VALUE;                                                     \
	} while (0)

static CUresult do_cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType *type)
{
	struct hb_work *w;

	NEEDED(type);
	NODE(w, node, NULL, NULL);
	*type = hb_node__type(w);
	return CUDA_SUCCESS;
}

static CUresult do_cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode *deps, size_t *n)
{
	struct list l = {.room = deps, .size = n ? *n : 0};
	struct hb_graph *g;
	struct hb_work *w;

	NEEDED(n);
	NODE(w, node, &g, NULL);
	for (u32 i = 0; i < w->deps.n; i++)
		put(&l, hb_node__handle(g, w->deps.node[i]));
	give(&l, n);
	return CUDA_SUCCESS;
}

static CUresult do_cuGraphNodeGetDependencies_v2(CUgraphNode node, CUgraphNode *deps, CUgraphEdgeData *edges,
						 size_t *n)
{
	CUresult r = do_cuGraphNodeGetDependencies(node, deps, n);

	plain_edges(edges, r ? NULL : n);
	return r;
}

static CUresult do_cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode *nodes, size_t *n)
{
	struct list l = {.room = nodes, .size = n ? *n : 0};
	struct hb_graph *g;
	struct hb_work *w;
	u32 index;

	NEEDED(n);
	NODE(w, node, &g, &index);
	hb_lock();
	for (u32 i = index + 1; i < g->n; i++)
		for (u32 k = 0; k < g->nodes[i].deps.n; k++)
			if (g->nodes[i].deps.node[k] == index)
				put(&l, hb_node__handle(g, i));
	hb_unlock();
	give(&l, n);
	return CUDA_SUCCESS;
}

static const char *node_name(const struct hb_work *w)
{
	switch (hb_node__type(w)) {
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		return "memcpy";
	case CU_GRAPH_NODE_TYPE_MEMSET:
		return "memset";
	case CU_GRAPH_NODE_TYPE_HOST:
		return "host";
	case CU_GRAPH_NODE_TYPE_KERNEL:
		return w->function->name;
	default:
		return "empty";
	}
}

static CUresult do_cuGraphDebugDotPrint(CUgraph graph, const char *path, unsigned int flags)
{
	struct hb_graph *g;
	FILE *f;

	NEEDED(path);
	OBJECT(g, graph, HB_GRAPH);
	f = fopen(path, "we");
	if (!f)
		return CUDA_ERROR_INVALID_VALUE;
	fprintf(f, "digraph \"graph_%u\" {\n", g->id);
	for (u32 i = 0; i < g->n; i++) {
		fprintf(f, "\t%u [label=\"%s\"];\n", i, node_name(&g->nodes[i]));
		for (u32 k = 0; k < g->nodes[i].deps.n; k++)
			fprintf(f, "\t%u -> %u;\n", g->nodes[i].deps.node[k], i);
	}
	fprintf(f, "}\n");
	fclose(f);
	return CUDA_SUCCESS;
}

/* ---- graphs built node by node ---- */

static CUresult add_node(CUgraphNode *node, CUgraph graph, const CUgraphNode *deps, size_t n,
			 const struct hb_work *w)
{
	struct hb_graph *g;

	NEEDED(node);
	OBJECT(g, graph, HB_GRAPH);
	return hb_node__add(g, deps, n, w, node);
}

static CUresult kernel_work(const CUDA_KERNEL_NODE_PARAMS_v2 *p, struct hb_work *w)
{
	struct hb_function *f;

	NEEDED(p);
	OBJECT(f, p->func ? (const void *)p->func : (const void *)p->kern, HB_FUNCTION);
	if (!p->gridDimX || !p->gridDimY || !p->gridDimZ || !p->blockDimX || !p->blockDimY || !p->blockDimZ ||
	    (u64)p->blockDimX * p->blockDimY * p->blockDimZ > 1024)
		return CUDA_ERROR_INVALID_VALUE;
	w->op = HB_OP_KERNEL;
	w->function = f;
	memcpy(w->grid, &p->gridDimX, sizeof(w->grid));
	memcpy(w->block, &p->blockDimX, sizeof(w->block));
	w->shared = p->sharedMemBytes;
	return CUDA_SUCCESS;
}

static CUresult do_cuGraphAddKernelNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *deps,
					   size_t n, const CUDA_KERNEL_NODE_PARAMS_v2 *params)
{
	struct hb_work w = {0};
	CUresult r = kernel_work(params, &w);

	return r ? r : add_node(node, graph, deps, n, &w);
}

static CUresult do_cuGraphAddEmptyNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *deps, size_t n)
{
	return add_node(node, graph, deps, n, &(struct hb_work){.op = HB_OP_NOTHING});
}

static CUresult do_cuGraphAddHostNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *deps, size_t n,
				      const CUDA_HOST_NODE_PARAMS *params)
{
	NEEDED(params);
	return add_node(
	    node, graph, deps, n,
	    &(struct hb_work){.op = HB_OP_HOST, .fn = params->fn, .arg = params->userData, .cost = 1000});
}

static CUresult do_cuGraphAddMemsetNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *deps, size_t n,
					const CUDA_MEMSET_NODE_PARAMS *p, CUcontext ctx)
{
	struct hb_work w = {.op = HB_OP_FILL};
	enum hb_space space;

	NEEDED(p);
	w.dst = p->dst;
	w.src = p->value;
	w.width = p->elementSize;
	w.rows = p->height;
	w.dst_pitch = p->pitch;
	w.bytes = p->width * p->height;
	if ((w.width != 1 && w.width != 2 && w.width != 4) || !w.bytes ||
	    !fits(w.dst, span(w.bytes * w.width, w.rows, w.dst_pitch), MUST_BE_DEVICE, &space))
		return CUDA_ERROR_INVALID_VALUE;
	w.cost = hb_costs.copy_ns + hb_costs__transfer(w.bytes * w.width, hb_costs.d2d_bps);
	return add_node(node, graph, deps, n, &w);
}

static CUresult do_cuGraphAddMemcpyNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *deps, size_t n,
					const CUDA_MEMCPY3D *p, CUcontext ctx)
{
	struct hb_work w = {.op = HB_OP_COPY};
	enum hb_space dst, src;

	NEEDED(p);
	if (p->Depth != 1)
		return CUDA_ERROR_NOT_SUPPORTED;
	w.dst = address(p->dstMemoryType, p->dstHost, p->dstDevice) + p->dstY * p->dstPitch + p->dstXInBytes;
	w.src = address(p->srcMemoryType, p->srcHost, p->srcDevice) + p->srcY * p->srcPitch + p->srcXInBytes;
	w.rows = p->Height;
	w.dst_pitch = p->dstPitch;
	w.src_pitch = p->srcPitch;
	w.bytes = p->WidthInBytes * p->Height;
	if (!w.bytes || !fits(w.dst, span(w.bytes, w.rows, w.dst_pitch), wanted(p->dstMemoryType), &dst) ||
	    !fits(w.src, span(w.bytes, w.rows, w.src_pitch), wanted(p->srcMemoryType), &src))
		return CUDA_ERROR_INVALID_VALUE;
	price(&w, dst, src);
	return add_node(node, graph, deps, n, &w);
}

static CUresult do_cuGraphAddChildGraphNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *deps,
					    size_t n, CUgraph child)
{
	struct hb_graph *g, *c;

	NEEDED(node);
	OBJECT(g, graph, HB_GRAPH);
	OBJECT(c, child, HB_GRAPH);
	return hb_node__add_child(g, deps, n, c, node);
}

static CUresult do_cuGraphAddDependencies(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
					  size_t n)
{
	struct hb_graph *g;
	CUresult r = CUDA_SUCCESS;

	OBJECT(g, graph, HB_GRAPH);
	for (size_t i = 0; i < n && !r; i++)
		r = from && to ? hb_node__depend(from[i], to[i]) : CUDA_ERROR_INVALID_VALUE;
	return r;
}

static CUresult do_cuGraphAddDependencies_v2(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
					     const CUgraphEdgeData *edges, size_t n)
{
	return do_cuGraphAddDependencies(graph, from, to, n);
}

static CUresult do_cuGraphKernelNodeGetParams_v2(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v2 *params)
{
	struct hb_work *w;

	NEEDED(params);
	NODE(w, node, NULL, NULL);
	if (hb_node__type(w) != CU_GRAPH_NODE_TYPE_KERNEL)
		return CUDA_ERROR_INVALID_VALUE;
	memset(params, 0, sizeof(*params));
	params->func = (CUfunction)(uintptr_t)w->function;
	memcpy(&params->gridDimX, w->grid, sizeof(w->grid));
	memcpy(&params->blockDimX, w->block, sizeof(w->block));
	params->sharedMemBytes = w->shared;
	return CUDA_SUCCESS;
}

static void replace_kernel(struct hb_work *to, const struct hb_work *from)
{
	to->function = from->function;
	memcpy(to->grid, from->grid, sizeof(to->grid));
	memcpy(to->block, from->block, sizeof(to->block));
	to->shared = from->shared;
}

static CUresult do_cuGraphKernelNodeSetParams_v2(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v2 *params)
{
	struct hb_work *w, with = {0};
	CUresult r = kernel_work(params, &with);

	if (r)
		return r;
	NODE(w, node, NULL, NULL);
	if (w->op != HB_OP_KERNEL)
		return CUDA_ERROR_INVALID_VALUE;
	replace_kernel(w, &with);
	return CUDA_SUCCESS;
}

static CUresult do_cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node,
						     const CUDA_KERNEL_NODE_PARAMS_v2 *params)
{
	struct hb_work *w, with = {0};
	struct hb_exec *x;
	CUresult r = kernel_work(params, &with);

	if (r)
		return r;
	OBJECT(x, exec, HB_EXEC);
	hb_lock();
	w = hb_node__in_exec(x, node, NULL);
	if (w && w->op == HB_OP_KERNEL)
		replace_kernel(w, &with);
	else
		r = CUDA_ERROR_INVALID_VALUE;
	hb_unlock();
	return r;
}

static CUresult do_cuGraphExecChildGraphNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraph child)
{
	struct hb_exec *x;
	struct hb_graph *g;

	OBJECT(x, exec, HB_EXEC);
	OBJECT(g, child, HB_GRAPH);
	return hb_node__replace_child(x, node, g);
}

static CUresult do_cuGraphClone(CUgraph *clone, CUgraph graph)
{
	struct hb_graph *g, *c;
	CUresult r;

	NEEDED(clone);
	OBJECT(g, graph, HB_GRAPH);
	r = hb_graph__create(&c);
	if (r)
		return r;
	hb_lock();
	for (u32 i = 0; i < g->n && !r; i++)
		r = hb_graph__add(c, &g->nodes[i]);
	if (!r)
		r = hb_kept__copy(g->kept, &c->kept);
	hb_unlock();
	if (r)
		hb_graph__destroy(c);
	else
		*clone = (CUgraph)c;
	return r;
}

/* ---- what graphs keep ---- */

static CUresult do_cuUserObjectCreate(CUuserObject *object, void *ptr, CUhostFn destroy, unsigned int refs,
				      unsigned int flags)
{
	NEEDED(object);
	return flags == 1 ? hb_user_object__create(ptr, destroy, refs, (struct hb_user_object **)object)
			  : CUDA_ERROR_INVALID_VALUE;
}

static CUresult do_cuUserObjectRetain(CUuserObject object, unsigned int n)
{
	struct hb_user_object *o;

	OBJECT(o, object, HB_USER_OBJECT);
	if (!n)
		return CUDA_ERROR_INVALID_VALUE;
	__atomic_add_fetch(&o->refs, n, __ATOMIC_ACQ_REL);
	return CUDA_SUCCESS;
}

static CUresult do_cuUserObjectRelease(CUuserObject object, unsigned int n)
{
	struct hb_user_object *o;

	OBJECT(o, object, HB_USER_OBJECT);
	return hb_user_object__release(o, n);
}

static CUresult do_cuGraphRetainUserObject(CUgraph graph, CUuserObject object, unsigned int n,
					   unsigned int flags)
{
	struct hb_graph *g;
	struct hb_user_object *o;

	OBJECT(g, graph, HB_GRAPH);
	OBJECT(o, object, HB_USER_OBJECT);
	return hb_graph__keep(g, o, n, flags & 1);
}

static CUresult do_cuGraphReleaseUserObject(CUgraph graph, CUuserObject object, unsigned int n)
{
	struct hb_graph *g;
	struct hb_user_object *o;

	OBJECT(g, graph, HB_GRAPH);
	OBJECT(o, object, HB_USER_OBJECT);
	return hb_graph__drop(g, o, n);
}

/* ---- the end ---- */

static CUresult do_cuGraphExecGetFlags(CUgraphExec exec, cuuint64_t *flags)
{
	struct hb_exec *x;

	NEEDED(flags);
	OBJECT(x, exec, HB_EXEC);
	*flags = x->flags;
	return CUDA_SUCCESS;
}

static CUresult do_cuDeviceGraphMemTrim(CUdevice device)
{
	return hb_device__valid(device) ? hb_device__ready() : CUDA_ERROR_INVALID_DEVICE;
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
