/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <stdlib.h>
#include <string.h>
#include "fault.h"
#include "sim.h"

CUresult hb_graph__create(struct hb_graph **g)
{
	static u32 last_id;

	*g = hb_handle__new(HB_GRAPH);
	if (!*g)
		return CUDA_ERROR_OUT_OF_MEMORY;
	(*g)->id = __atomic_add_fetch(&last_id, 1, __ATOMIC_RELAXED);
	return CUDA_SUCCESS;
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
	static u32 last_id;

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
	g->nodes[g->n++].node = __atomic_add_fetch(&last_id, 1, __ATOMIC_RELAXED);
	return CUDA_SUCCESS;
}

static bool has_dep(const struct hb_deps *d, u32 node)
{
	for (u32 i = 0; i < d->n; i++)
		if (d->node[i] == node)
			return true;
	return false;
}

CUresult hb_graph__join(struct hb_graph *g, struct hb_deps *deps, const struct hb_deps *other)
{
	for (u32 i = 0; i < other->n; i++) {
		struct hb_work empty = {.op = HB_OP_NOTHING, .deps = *deps};

		if (has_dep(deps, other->node[i]))
			continue;
		if (deps->n == HB_MAX_DEPS) {
			CUresult r = hb_graph__add(g, &empty);

			if (r)
				return r;
			*deps = (struct hb_deps){1, {g->n - 1}};
		}
		deps->node[deps->n++] = other->node[i];
	}
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
		if (nodes[*n].op != HB_OP_NOTHING)
			nodes[*n].cost += hb_costs.node_ns;
	}
	return nodes;
}

CUresult hb_graph__instantiate(struct hb_graph *g, struct hb_exec **out)
{
	static u32 last_id;
	struct hb_exec *x = hb_handle__new(HB_EXEC);

	if (!x)
		return CUDA_ERROR_OUT_OF_MEMORY;
	x->id = __atomic_add_fetch(&last_id, 1, __ATOMIC_RELAXED);
	x->nodes = copy_nodes(g, &x->n);
	x->ends = calloc(x->n + 1, sizeof(*x->ends));
	if (!x->nodes || !x->ends) {
		if (x->nodes)
			free_nodes(x->nodes, x->n);
		free(x->ends);
		hb_handle__free(x);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*out = x;
	return CUDA_SUCCESS;
}

CUresult hb_graph__update(struct hb_exec *x, struct hb_graph *g)
{
	struct hb_work *nodes, *old;
	struct hb_moment *ends, *old_ends;
	u32 n, old_n;

	nodes = copy_nodes(g, &n);
	ends = nodes ? calloc(n + 1, sizeof(*ends)) : NULL;
	if (!ends) {
		if (nodes)
			free_nodes(nodes, n);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	hb_lock();
	old_ends = x->ends;
	x->ends = ends;
	old = x->nodes;
	old_n = x->n;
	x->nodes = nodes;
	x->n = n;
	hb_unlock();
	free_nodes(old, old_n);
	free(old_ends);
	return CUDA_SUCCESS;
}

CUresult hb_exec__destroy(struct hb_exec *x)
{
	free_nodes(x->nodes, x->n);
	free(x->ends);
	x->nodes = NULL;
	x->ends = NULL;
	x->n = 0;
	hb_handle__free(x);
	return CUDA_SUCCESS;
}

/* A child graph: its nodes join the capture. Roots wait for what the stream waits for, and what the stream
 * does next for all of them that nothing waits for. */
static CUresult add_child(struct hb_exec *x, struct hb_stream *s)
{
	struct hb_graph *g = s->capture;
	struct hb_deps roots = s->deps, all = {0};
	u32 base = g->n;

	for (u32 i = 0; i < x->n; i++) {
		struct hb_work w = x->nodes[i];
		CUresult r;

		for (u32 k = 0; k < w.deps.n; k++)
			w.deps.node[k] += base;
		if (!w.deps.n)
			w.deps = roots;
		r = hb_graph__add(g, &w);
		if (r)
			return r;
	}
	for (u32 i = base; i < base + x->n; i++) {
		struct hb_deps one = {1, {i}};
		bool leaf = true;

		for (u32 k = i + 1; k < base + x->n && leaf; k++)
			leaf = !has_dep(&g->nodes[k].deps, i);
		if (leaf && hb_graph__join(g, &all, &one))
			return CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (all.n)
		s->deps = all;
	return CUDA_SUCCESS;
}

/* Each node begins when those it waits for have ended; what follows in the stream waits for all. */
static void run_nodes(struct hb_exec *x, struct hb_stream *s, u64 now)
{
	struct hb_moment start = s->tail, all = start;

	for (u32 i = 0; i < x->n; i++) {
		struct hb_work *w = &x->nodes[i];
		bool next = w->deps.n == 1 && w->deps.node[0] + 1 == i; /* the stream's tail is its end */

		if (!next) {
			hb_moment__join(&all, &s->tail);
			s->tail = start;
			for (u32 k = 0; k < w->deps.n; k++)
				hb_moment__join(&s->tail, &x->ends[w->deps.node[k]]);
		}
		hb_stream__apply(s, w, now);
		x->ends[i] = s->tail;
	}
	hb_moment__join(&s->tail, &all);
}

CUresult hb_exec__launch(struct hb_exec *x, struct hb_stream *s)
{
	CUresult r = CUDA_SUCCESS;
	u64 now;

	hb_lock();
	if (s->capture) {
		r = add_child(x, s);
	} else {
		hb_stream__room(s);
		now = hb_now();
		hb_stream__start(s, now);
		s->exec = x->id;
		run_nodes(x, s, now);
		s->exec = 0;
		hb_stream__push(s);
	}
	hb_unlock();
	hb_fault__stall();
	return r;
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
	s->deps.n = 0;
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
