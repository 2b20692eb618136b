/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Graphs built and looked at node by node. A node is no object: its handle holds the slot of the graph, the
 * life of that slot and the place of the node, so it can be checked, and costs nothing. A child graph is laid
 * out in the graph itself, followed by an empty node that stands for it.
 */
#include <stdlib.h>
#include <string.h>
#include "sim.h"

#define TAG	   0xbull
#define TAG_SHIFT  60
#define SLOT_SHIFT 40 /* 20 bits */
#define LIFE_SHIFT 24 /* 16 bits */
#define INDEX_MASK 0xffffffull
#define CHILD_WIDTH                                                                                          \
	0x434847 /* marks the empty node behind a child graph; bytes is the number of its nodes              \
		  */

CUgraphNode hb_node__handle(const struct hb_graph *g, u32 index)
{
	u64 h = TAG << TAG_SHIFT | (u64)hb_handle__index(g) << SLOT_SHIFT |
		(u64)(g->obj.generation & 0xffff) << LIFE_SHIFT | index;

	return (CUgraphNode)(uintptr_t)h;
}

struct hb_work *hb_node__get(CUgraphNode node, struct hb_graph **graph, u32 *index)
{
	u64 h = (u64)(uintptr_t)node;
	struct hb_graph *g;

	if (h >> TAG_SHIFT != TAG)
		return NULL;
	g = hb_handle__at((u32)(h >> SLOT_SHIFT & 0xfffff), HB_GRAPH);
	if (!g || (g->obj.generation & 0xffff) != (h >> LIFE_SHIFT & 0xffff) || (h & INDEX_MASK) >= g->n)
		return NULL;
	if (graph)
		*graph = g;
	if (index)
		*index = (u32)(h & INDEX_MASK);
	return &g->nodes[h & INDEX_MASK];
}

int hb_node__type(const struct hb_work *w)
{
	switch (w->op) {
	case HB_OP_COPY:
		return CU_GRAPH_NODE_TYPE_MEMCPY;
	case HB_OP_FILL:
		return CU_GRAPH_NODE_TYPE_MEMSET;
	case HB_OP_HOST:
		return CU_GRAPH_NODE_TYPE_HOST;
	case HB_OP_NOTHING:
	case HB_OP_EVENT:
		return w->width == CHILD_WIDTH ? CU_GRAPH_NODE_TYPE_GRAPH : CU_GRAPH_NODE_TYPE_EMPTY;
	default:
		return CU_GRAPH_NODE_TYPE_KERNEL;
	}
}

CUresult hb_node__collect(struct hb_graph *g, const CUgraphNode *deps, size_t n, struct hb_deps *out)
{
	CUresult r = CUDA_SUCCESS;

	*out = (struct hb_deps){0};
	for (size_t i = 0; i < n && !r; i++) {
		struct hb_deps one = {.n = 1};
		struct hb_graph *of;

		if (!deps || !hb_node__get(deps[i], &of, &one.node[0]) || of != g)
			return CUDA_ERROR_INVALID_VALUE;
		r = hb_graph__join(g, out, &one);
	}
	return r;
}

CUresult hb_node__add(struct hb_graph *g, const CUgraphNode *deps, size_t n, const struct hb_work *w,
		      CUgraphNode *out)
{
	struct hb_work node = *w;
	CUresult r;

	hb_lock();
	r = hb_node__collect(g, deps, n, &node.deps);
	if (!r)
		r = hb_graph__add(g, &node);
	if (!r)
		*out = hb_node__handle(g, g->n - 1);
	hb_unlock();
	return r;
}

/* With the lock held. */
static CUresult lay_child(struct hb_graph *g, const struct hb_deps *roots, const struct hb_graph *child)
{
	struct hb_work end = {.op = HB_OP_NOTHING, .width = CHILD_WIDTH, .bytes = child->n};
	u32 base = g->n, n = child->n;
	CUresult r = CUDA_SUCCESS;

	for (u32 i = 0; i < n && !r; i++) {
		struct hb_work w = child->nodes[i];

		for (u32 k = 0; k < w.deps.n; k++)
			w.deps.node[k] += base;
		if (!w.deps.n)
			w.deps = *roots;
		r = hb_graph__add(g, &w);
	}
	/* All of them rather than the leaves alone: it comes to the same, and an empty node costs nothing. */
	for (u32 i = 0; i < n && !r; i++)
		r = hb_graph__join(g, &end.deps, &(struct hb_deps){1, {base + i}});
	if (!n)
		end.deps = *roots;
	end.bytes = g->n - base;
	return r ? r : hb_graph__add(g, &end);
}

CUresult hb_node__add_child(struct hb_graph *g, const CUgraphNode *deps, size_t n,
			    const struct hb_graph *child, CUgraphNode *out)
{
	struct hb_deps roots;
	CUresult r;

	if (child == g)
		return CUDA_ERROR_INVALID_VALUE;
	hb_lock();
	r = hb_node__collect(g, deps, n, &roots);
	if (!r)
		r = lay_child(g, &roots, child);
	if (!r)
		*out = hb_node__handle(g, g->n - 1);
	hb_unlock();
	return r;
}

/* Nodes are kept in an order they can run in, so an edge may only point forward. */
CUresult hb_node__depend(CUgraphNode from, CUgraphNode to)
{
	struct hb_graph *a, *b;
	struct hb_work *w;
	u32 i, k;
	CUresult r = CUDA_SUCCESS;

	hb_lock();
	w = hb_node__get(to, &b, &k);
	if (!w || !hb_node__get(from, &a, &i) || a != b || i == k)
		r = CUDA_ERROR_INVALID_VALUE;
	else if (i > k || w->deps.n == HB_MAX_DEPS)
		r = CUDA_ERROR_NOT_SUPPORTED;
	else
		w->deps.node[w->deps.n++] = i;
	hb_unlock();
	return r;
}

struct hb_work *hb_node__in_exec(struct hb_exec *x, CUgraphNode h, u32 *index)
{
	const struct hb_work *w = hb_node__get(h, NULL, NULL);

	for (u32 i = 0; w && i < x->n; i++)
		if (x->nodes[i].node == w->node) {
			if (index)
				*index = i;
			return &x->nodes[i];
		}
	return NULL;
}

CUresult hb_node__replace_child(struct hb_exec *x, CUgraphNode h, const struct hb_graph *child)
{
	struct hb_work *end;
	CUresult r = CUDA_SUCCESS;
	u32 at, n;

	hb_lock();
	end = hb_node__in_exec(x, h, &at);
	n = end ? (u32)end->bytes : 0;
	if (!end || end->width != CHILD_WIDTH)
		r = CUDA_ERROR_INVALID_VALUE;
	else if (child->n > n)
		r = CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
	for (u32 i = 0; i < child->n && !r; i++)
		if (child->nodes[i].op != x->nodes[at - n + i].op || child->nodes[i].coll)
			r = CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
	for (u32 i = 0; i < child->n && !r; i++) {
		struct hb_work *to = &x->nodes[at - n + i], old = *to;

		*to = child->nodes[i];
		to->deps = old.deps;
		to->node = old.node;
		if (to->op != HB_OP_NOTHING)
			to->cost += hb_costs.node_ns;
	}
	hb_unlock();
	return r;
}

/* ---- what graphs keep for the application ---- */

CUresult hb_user_object__create(void *ptr, CUhostFn destroy, u32 refs, struct hb_user_object **o)
{
	if (!refs || !destroy)
		return CUDA_ERROR_INVALID_VALUE;
	*o = hb_handle__new(HB_USER_OBJECT);
	if (!*o)
		return CUDA_ERROR_OUT_OF_MEMORY;
	(*o)->ptr = ptr;
	(*o)->destroy = destroy;
	(*o)->refs = refs;
	return CUDA_SUCCESS;
}

CUresult hb_user_object__release(struct hb_user_object *o, u32 n)
{
	if (!n || n > o->refs)
		return CUDA_ERROR_INVALID_VALUE;
	if (__atomic_sub_fetch(&o->refs, n, __ATOMIC_ACQ_REL))
		return CUDA_SUCCESS;
	o->destroy(o->ptr);
	hb_handle__free(o);
	return CUDA_SUCCESS;
}

CUresult hb_graph__keep(struct hb_graph *g, struct hb_user_object *o, u32 n, bool move)
{
	struct hb_kept *k = malloc(sizeof(*k));

	if (!k)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (!n || (move && n > o->refs)) {
		free(k);
		return CUDA_ERROR_INVALID_VALUE;
	}
	if (!move)
		__atomic_add_fetch(&o->refs, n, __ATOMIC_ACQ_REL);
	hb_lock();
	*k = (struct hb_kept){.next = g->kept, .object = o, .n = n};
	g->kept = k;
	hb_unlock();
	return CUDA_SUCCESS;
}

CUresult hb_graph__drop(struct hb_graph *g, struct hb_user_object *o, u32 n)
{
	struct hb_kept *k;

	hb_lock();
	for (k = g->kept; k && (k->object != o || k->n < n); k = k->next)
		;
	if (k)
		k->n -= n;
	hb_unlock();
	return k ? hb_user_object__release(o, n) : CUDA_ERROR_INVALID_VALUE;
}

CUresult hb_kept__copy(const struct hb_kept *from, struct hb_kept **to)
{
	for (; from; from = from->next) {
		struct hb_kept *k = from->n ? malloc(sizeof(*k)) : NULL;

		if (!from->n)
			continue;
		if (!k)
			return CUDA_ERROR_OUT_OF_MEMORY;
		*k = (struct hb_kept){.next = *to, .object = from->object, .n = from->n};
		__atomic_add_fetch(&k->object->refs, k->n, __ATOMIC_ACQ_REL);
		*to = k;
	}
	return CUDA_SUCCESS;
}

void hb_kept__drop(struct hb_kept **list)
{
	struct hb_kept *k = *list;

	*list = NULL;
	while (k) {
		struct hb_kept *next = k->next;

		if (k->n)
			hb_user_object__release(k->object, k->n);
		free(k);
		k = next;
	}
}
