/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analysis/import/frames.h"

#include <errno.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/map.h"

#define NODES_MOST (4u << 20) /* different stacks: 32 MiB and their map */
#define DEEP	   1000	      /* frames of one stack; what is further in is not told apart */

struct node { /* a frame with its callers: numbers start at 1 */
	u32 parent, loc;
};

struct open { /* a span that is going on */
	s64 end;
	u32 node;
};

struct thread {
	struct open *open;
	u32 n, cap;
};

struct hb_frames {
	struct hb_map *nodes;	/* (parent, location) -> number */
	struct hb_map *written; /* (process, stack) */
	struct hb_buf node;
	struct thread *thread;
	u32 n_threads;
	u64 lost;
};

#define NODE(f, n) (((const struct node *)(f)->node.data)[(n)-1])

struct hb_frames *hb_frames__new(u32 threads)
{
	struct hb_frames *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->n_threads = threads;
	f->nodes = hb_map__new();
	f->written = hb_map__new();
	f->thread = calloc((size_t)threads + 1, sizeof(*f->thread));
	if (f->nodes && f->written && f->thread)
		return f;
	hb_frames__free(f);
	return NULL;
}

void hb_frames__free(struct hb_frames *f)
{
	if (!f)
		return;
	for (u32 i = 0; f->thread && i <= f->n_threads; i++)
		free(f->thread[i].open);
	free(f->thread);
	hb_map__free(f->nodes);
	hb_map__free(f->written);
	hb_buf__free(&f->node);
	free(f);
}

/* 0 with *err set: out of memory; 0 without: too many. */
static u32 node_of(struct hb_frames *f, u32 parent, u32 loc, int *err)
{
	struct node row = {parent, loc};
	u64 key = (u64)parent << 32 | loc, id, *slot;

	if (hb_map__get(f->nodes, key, &id))
		return (u32)id;
	if (hb_map__size(f->nodes) >= NODES_MOST) {
		f->lost++;
		return 0;
	}
	slot = hb_map__slot(f->nodes, key, NULL);
	hb_buf__add(&f->node, &row, sizeof(row));
	if (!slot || f->node.oom) {
		*err = -ENOMEM;
		return 0;
	}
	*slot = f->node.size / sizeof(row);
	return (u32)*slot;
}

static void leave(struct thread *t, s64 now)
{
	while (t->n && t->open[t->n - 1].end <= now)
		t->n--;
}

int hb_frames__enter(struct hb_frames *f, u32 thread, s64 begin, s64 end, u32 loc)
{
	struct thread *t = &f->thread[thread];
	u32 parent;
	int err = 0;

	leave(t, begin);
	if (t->n == DEEP)
		return 0;
	if (t->n == t->cap) {
		u32 cap = t->cap ? 2 * t->cap : 32;
		struct open *more = reallocarray(t->open, cap, sizeof(*more));

		if (!more)
			return -ENOMEM;
		t->open = more;
		t->cap = cap;
	}
	parent = t->n ? t->open[t->n - 1].node : 0;
	t->open[t->n] = (struct open){end, node_of(f, parent, loc, &err)};
	t->n++;
	return err;
}

u32 hb_frames__at(struct hb_frames *f, u32 thread, s64 moment)
{
	struct thread *t = &f->thread[thread];

	leave(t, moment);
	return t->n ? t->open[t->n - 1].node : 0;
}

int hb_frames__write(struct hb_frames *f, u32 stack, u32 pid, const struct hb_names *n,
		     struct hb_window_writer *w)
{
	u32 locs[DEEP], depth = 0;
	bool fresh = false;
	u64 *slot = hb_map__slot(f->written, (u64)pid << 32 | stack, &fresh);

	if (!slot)
		return -ENOMEM;
	if (!fresh)
		return 0;
	for (u32 at = stack; at && depth < DEEP; at = NODE(f, at).parent)
		locs[DEEP - ++depth] = hb_names__location(n, NODE(f, at).loc);
	return hb_window_writer__stack(w, pid, stack, locs + DEEP - depth, depth, HB_STACK_WHOLE);
}

u64 hb_frames__lost(const struct hb_frames *f)
{
	return f->lost;
}
