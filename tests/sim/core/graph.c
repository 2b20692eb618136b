/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <stdlib.h>
#include <string.h>
#include "sim.h"

/* Nodes run one after another in the order of capture: branches do not overlap. */

CUresult hb_graph__create(struct hb_graph **g)
{
	*g = hb_handle__new(HB_GRAPH);
	return *g ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static void free_nodes(struct hb_work *nodes, u32 n)
{
	for (u32 i = 0; i < n; i++)
		free(nodes[i].coll);
	free(nodes);
}

static bool copy_node(struct hb_work *to, const struct hb_work *from)
{
	*to = *from;
	if (!from->coll)
		return true;
	to->coll = malloc(sizeof(*to->coll));
	if (to->coll)
		*to->coll = *from->coll;
	return to->coll != NULL;
}

CUresult hb_graph__destroy(struct hb_graph *g)
{
	struct hb_work *nodes;
	u32 n;

	hb_lock();
	nodes = g->nodes;
	n = g->n;
	g->nodes = NULL;
	g->n = 0;
	hb_unlock();
	free_nodes(nodes, n);
	hb_handle__free(g);
	return CUDA_SUCCESS;
}

CUresult hb_graph__add(struct hb_graph *g, const struct hb_work *w)
{
	if (w->op == HB_OP_EVENT)
		return CUDA_SUCCESS; /* an edge, not a node */
	if (g->n == g->cap) {
		u32 cap = g->cap ? g->cap * 2 : 64;
		struct hb_work *p = realloc(g->nodes, cap * sizeof(*p));

		if (!p)
			return CUDA_ERROR_OUT_OF_MEMORY;
		g->nodes = p;
		g->cap = cap;
	}
	if (!copy_node(&g->nodes[g->n], w))
		return CUDA_ERROR_OUT_OF_MEMORY;
	g->n++;
	return CUDA_SUCCESS;
}

static struct hb_work *copy_nodes(const struct hb_graph *g, u32 *n)
{
	struct hb_work *nodes = calloc(g->n + 1, sizeof(*nodes));

	for (*n = 0; nodes && *n < g->n; ++*n) {
		if (!copy_node(&nodes[*n], &g->nodes[*n])) {
			free_nodes(nodes, *n);
			return NULL;
		}
		nodes[*n].cost += hb_costs.node_ns;
	}
	return nodes;
}

CUresult hb_graph__instantiate(struct hb_graph *g, struct hb_exec **out)
{
	struct hb_exec *x = hb_handle__new(HB_EXEC);

	if (!x)
		return CUDA_ERROR_OUT_OF_MEMORY;
	x->nodes = copy_nodes(g, &x->n);
	if (!x->nodes) {
		hb_handle__free(x);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*out = x;
	return CUDA_SUCCESS;
}

CUresult hb_graph__update(struct hb_exec *x, struct hb_graph *g)
{
	struct hb_work *nodes, *old;
	u32 n, old_n;

	nodes = copy_nodes(g, &n);
	if (!nodes)
		return CUDA_ERROR_OUT_OF_MEMORY;
	hb_lock();
	old = x->nodes;
	old_n = x->n;
	x->nodes = nodes;
	x->n = n;
	hb_unlock();
	free_nodes(old, old_n);
	return CUDA_SUCCESS;
}

CUresult hb_exec__destroy(struct hb_exec *x)
{
	free_nodes(x->nodes, x->n);
	x->nodes = NULL;
	x->n = 0;
	hb_handle__free(x);
	return CUDA_SUCCESS;
}

CUresult hb_exec__launch(struct hb_exec *x, struct hb_stream *s)
{
	u64 now;

	hb_lock();
	if (s->capture) {
		/* A child graph: its nodes join the capture. */
		CUresult r = CUDA_SUCCESS;

		for (u32 i = 0; i < x->n && !r; i++)
			r = hb_graph__add(s->capture, &x->nodes[i]);
		hb_unlock();
		return r;
	}
	hb_stream__room(s);
	now = hb_now();
	hb_stream__start(s, now);
	for (u32 i = 0; i < x->n; i++)
		hb_stream__apply(s, &x->nodes[i], now);
	hb_stream__push(s);
	hb_unlock();
	return CUDA_SUCCESS;
}

/* ---- capture ---- */

CUresult hb_capture__begin(struct hb_stream *s, int mode)
{
	static u64 last_id;
	struct hb_graph *g;
	CUresult r;

	if (mode < 0 || mode > 2)
		return CUDA_ERROR_INVALID_VALUE;
	if (s == s->ctx->legacy)
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	r = hb_graph__create(&g);
	if (r)
		return r;
	hb_lock();
	if (s->capture) {
		hb_unlock();
		hb_graph__destroy(g);
		return CUDA_ERROR_ILLEGAL_STATE;
	}
	g->capture_id = s->capture_id = ++last_id;
	s->capture = g;
	s->capture_origin = true;
	s->capture_broken = false;
	hb_unlock();
	return CUDA_SUCCESS;
}

/* With the lock held: a forbidden call spoils the capture, in all its streams. */
void hb_capture__break(struct hb_stream *s)
{
	for (struct hb_stream *t = s->ctx->streams; t; t = t->next)
		if (t->capture == s->capture)
			t->capture_broken = true;
}

static void leave_capture(struct hb_ctx *ctx, const struct hb_graph *g)
{
	for (struct hb_stream *t = ctx->streams; t; t = t->next)
		if (t->capture == g) {
			t->capture = NULL;
			t->capture_id = 0;
		}
}

CUresult hb_capture__end(struct hb_stream *s, struct hb_graph **out)
{
	struct hb_graph *g;
	bool broken;

	*out = NULL;
	hb_lock();
	g = s->capture;
	broken = s->capture_broken;
	if (!g || !s->capture_origin) {
		hb_unlock();
		return g ? CUDA_ERROR_STREAM_CAPTURE_UNMATCHED : CUDA_ERROR_ILLEGAL_STATE;
	}
	leave_capture(s->ctx, g);
	g->capture_id = 0;
	hb_unlock();
	if (broken) {
		hb_graph__destroy(g);
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	}
	*out = g;
	return CUDA_SUCCESS;
}
