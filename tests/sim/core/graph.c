/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <stdlib.h>
#include <string.h>
#include "fault.h"
#include "sim.h"
#include "truth.h"

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
	hb_kept__drop(&g->kept);
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
	if (!x->nodes || !x->ends || hb_kept__copy(g->kept, &x->kept)) {
		hb_exec__destroy(x);
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
	struct hb_exec old;

	hb_lock();
	if (x->obj.kind != HB_EXEC) {
		hb_unlock();
		return CUDA_ERROR_INVALID_HANDLE;
	}
	old = *x;
	hb_handle__free(x);
	hb_unlock();
	if (old.nodes)
		free_nodes(old.nodes, old.n);
	free(old.ends);
	hb_kept__drop(&old.kept);
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
	if (s->obj.kind != HB_STREAM || x->obj.kind != HB_EXEC) {
		r = CUDA_ERROR_INVALID_HANDLE; /* another thread destroyed it just now */
	} else if (s->capture) {
		r = add_child(x, s);
	} else if (s == s->ctx->legacy && hb_capture__implicit(s->ctx)) {
		r = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
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

static u32 captures;		  /* begun in any mode */
static u32 global_captures;	  /* begun in global mode, in any thread */
static __thread u32 own_captures; /* begun here, and not in relaxed mode */
static __thread int interaction;  /* how this thread's unsafe calls are taken: CU_STREAM_CAPTURE_MODE_* */

int hb_capture__exchange(int mode)
{
	int old = interaction;

	interaction = mode;
	return old;
}

CUresult hb_capture__unsafe(void)
{
	bool forbidden = interaction == CU_STREAM_CAPTURE_MODE_GLOBAL
			     ? own_captures || __atomic_load_n(&global_captures, __ATOMIC_RELAXED)
			     : interaction == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL && own_captures;
	struct hb_ctx *ctx = hb_ctx__current();

	if (!forbidden)
		return CUDA_SUCCESS;
	hb_lock();
	for (struct hb_stream *s = ctx ? ctx->streams : NULL; s; s = s->next)
		if (s->capture && s->capture_mode != CU_STREAM_CAPTURE_MODE_RELAXED)
			hb_capture__break(s);
	hb_unlock();
	return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

static void count_capture(int mode, u32 by)
{
	__atomic_add_fetch(&captures, by, __ATOMIC_RELAXED);
	if (mode == CU_STREAM_CAPTURE_MODE_GLOBAL)
		__atomic_add_fetch(&global_captures, by, __ATOMIC_RELAXED);
	if (mode != CU_STREAM_CAPTURE_MODE_RELAXED)
		own_captures += by;
}

CUresult hb_capture__begin_to(struct hb_stream *s, int mode, struct hb_graph *g, const struct hb_deps *deps)
{
	static u64 last_id;
	CUresult r = CUDA_SUCCESS;

	if (mode < 0 || mode > CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_ERROR_INVALID_VALUE;
	if (s == s->ctx->legacy)
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	hb_lock();
	if (s->capture || g->capture_id) {
		r = CUDA_ERROR_ILLEGAL_STATE;
	} else {
		g->capture_id = s->capture_id = ++last_id;
		g->captured_from = g->n;
		s->capture = g;
		s->capture_origin = true;
		s->capture_broken = false;
		s->capture_mode = (u8)mode;
		s->capture_tid = hb_truth__tid();
		s->deps = *deps;
		count_capture(mode, 1);
	}
	hb_unlock();
	return r;
}

CUresult hb_capture__begin(struct hb_stream *s, int mode)
{
	const struct hb_deps none = {0};
	struct hb_graph *g;
	CUresult r = hb_graph__create(&g);

	if (r)
		return r;
	g->captured = true;
	r = hb_capture__begin_to(s, mode, g, &none);
	if (r)
		hb_graph__destroy(g);
	return r;
}

/* With the lock held: a forbidden call spoils the capture, in all its streams. */
void hb_capture__break(struct hb_stream *s)
{
	for (struct hb_stream *t = s->ctx->streams; t; t = t->next)
		if (t->capture == s->capture)
			t->capture_broken = true;
}

/* With the lock held: what is asked of the legacy stream would have to wait for blocking streams, of which
 * one is capturing. */
CUresult hb_capture__implicit(const struct hb_ctx *ctx)
{
	CUresult r = CUDA_SUCCESS;

	if (!ctx->blocking || !__atomic_load_n(&captures, __ATOMIC_RELAXED))
		return r;
	for (struct hb_stream *s = ctx->streams; s; s = s->next)
		if (s->capture && !(s->flags & CU_STREAM_NON_BLOCKING)) {
			hb_capture__break(s);
			r = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
		}
	return r;
}

static void leave_capture(struct hb_ctx *ctx, const struct hb_graph *g)
{
	for (struct hb_stream *t = ctx->streams; t; t = t->next)
		if (t->capture == g) {
			t->capture = NULL;
			t->capture_id = 0;
			t->capture_origin = false;
		}
}

/* With the lock held: what the other streams captured must have come back to the one it began with. */
static bool joined(const struct hb_graph *g, const struct hb_deps *last)
{
	u32 leaves = 0, from = g->captured_from, n = g->n - from;
	bool *waited = calloc(n + 1, sizeof(*waited));

	for (u32 i = 0; waited && i < n; i++)
		for (u32 k = 0; k < g->nodes[from + i].deps.n; k++)
			if (g->nodes[from + i].deps.node[k] >= from)
				waited[g->nodes[from + i].deps.node[k] - from] = true;
	for (u32 i = 0; waited && i < n; i++)
		leaves += !waited[i] && !has_dep(last, from + i);
	free(waited);
	return !leaves;
}

CUresult hb_capture__end(struct hb_stream *s, struct hb_graph **out)
{
	CUresult r = CUDA_SUCCESS;
	struct hb_graph *g;

	*out = NULL;
	hb_lock();
	g = s->capture;
	if (!g || !s->capture_origin) {
		hb_unlock();
		return g ? CUDA_ERROR_STREAM_CAPTURE_UNMATCHED : CUDA_ERROR_ILLEGAL_STATE;
	}
	if (s->capture_mode != CU_STREAM_CAPTURE_MODE_RELAXED && s->capture_tid != hb_truth__tid()) {
		hb_unlock();
		return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
	}
	if (s->capture_broken)
		r = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	else if (!joined(g, &s->deps))
		r = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
	count_capture(s->capture_mode, (u32)-1);
	leave_capture(s->ctx, g);
	g->capture_id = 0;
	hb_unlock();
	if (!r)
		*out = g;
	else if (g->captured)
		hb_graph__destroy(g);
	return r;
}

/* With the lock held: the stream goes, and with it a capture that began with it; the graph to destroy, if
 * any. */
struct hb_graph *hb_capture__drop(struct hb_stream *s)
{
	struct hb_graph *g = s->capture;
	u32 own = own_captures;

	if (!g || !s->capture_origin)
		return NULL;
	count_capture(s->capture_mode, (u32)-1);
	if (s->capture_tid != hb_truth__tid())
		own_captures = own; /* the other thread's is left */
	leave_capture(s->ctx, g);
	g->capture_id = 0;
	return g->captured ? g : NULL;
}
