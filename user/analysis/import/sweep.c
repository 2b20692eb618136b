/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analysis/import/sweep.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/import/frames.h"
#include "base/map.h"

struct pending { /* a record that has begun and not ended at the moment where the sweep is */
	s64 end;
	u64 order; /* of equal ends the later begun first: what is contained */
	struct hb_item *item;
};

struct around { /* the outermost call that a thread is in, or was */
	s64 end;
	struct hb_item *item; /* NULL: written, or it goes on for so long that it is kept elsewhere */
	u8 layer;
};

struct sweep {
	struct hb_sweep *s;
	struct hb_error *e;
	struct hb_frames *frames;
	struct hb_map *launches; /* file and correlation -> process; several processes only */
	struct hb_map *devices;	 /* file and device -> process */
	struct pending *heap;
	size_t n, cap, most;
	u64 order;
	s64 until;		/* the last end of what has begun */
	struct around *call;	/* by thread */
	struct hb_item *spare;	/* freed items, by their first word */
	struct hb_sorter *late; /* items that the heap has no room for, by their end */
};

/* ---- into the window ---- */

static int put(struct sweep *w, unsigned stream, s64 end, u16 task, unsigned type, const void *rec)
{
	int err = hb_window_writer__put(w->s->w, stream, (u64)(end + w->s->shift), task, type, rec);

	return err ? hb_error__set(w->e, HB_EXIT_FAILED, err, "cannot write the window: %s", strerror(-err))
		   : 0;
}

static u16 task_of(struct sweep *w, const struct hb_item *i)
{
	bool on_device = i->type == HB_TYPE_device || !i->task;
	u16 index =
	    on_device ? hb_tasks__proc_index(w->s->tasks, i->frame) : hb_tasks__index(w->s->tasks, i->task);

	w->s->tasks_lost += index == 0xffff;
	return index;
}

static int write_item(struct sweep *w, unsigned stream, struct hb_item *i)
{
	struct hb_names *n = w->s->names;
	struct hb_import_stats *st = w->s->stats;

	switch (i->type) {
	case HB_TYPE_accel:
		((struct hb_rec_accel *)i->data)->dur = i->dur;
		st->calls++;
		break;
	case HB_TYPE_device: {
		struct hb_rec_device *d = (void *)i->data;

		d->dur = i->dur;
		d->name = hb_names__string(n, d->name);
		d->queued = d->queued ? d->queued + (u64)w->s->shift : 0;
		st->device[d->kind]++;
		break;
	}
	case HB_TYPE_op: {
		struct hb_rec_op *o = (void *)i->data;

		o->dur = i->dur;
		o->name = hb_names__string(n, o->name);
		o->shapes = hb_names__string(n, o->shapes);
		o->types = hb_names__string(n, o->types);
		o->values = hb_names__string(n, o->values);
		st->ops++;
		break;
	}
	default: {
		struct hb_rec_py_call *p = (void *)i->data;

		p->dur = i->dur;
		p->func = hb_names__location(n, p->func);
		st->python++;
	}
	}
	return put(w, stream, hb_item__end(i), task_of(w, i), i->type, i->data);
}

/* ---- what goes on ---- */

static bool sooner(const struct pending *a, const struct pending *b)
{
	return a->end != b->end ? a->end < b->end : a->order > b->order;
}

static void swap(struct pending *a, struct pending *b)
{
	struct pending t = *a;

	*a = *b;
	*b = t;
}

static void rise(struct sweep *w, size_t at)
{
	for (; at && sooner(&w->heap[at], &w->heap[(at - 1) / 2]); at = (at - 1) / 2)
		swap(&w->heap[at], &w->heap[(at - 1) / 2]);
}

static void sink(struct sweep *w, size_t at)
{
	for (size_t child; (child = 2 * at + 1) < w->n; at = child) {
		if (child + 1 < w->n && sooner(&w->heap[child + 1], &w->heap[child]))
			child++;
		if (!sooner(&w->heap[child], &w->heap[at]))
			return;
		swap(&w->heap[at], &w->heap[child]);
	}
}

static struct hb_item *take_item(struct sweep *w)
{
	struct hb_item *i = w->spare;

	if (!i)
		return malloc(sizeof(*i));
	memcpy(&w->spare, i, sizeof(w->spare));
	return i;
}

static void give_item(struct sweep *w, struct hb_item *i)
{
	if (i->type == HB_TYPE_accel && w->call[i->task].item == i)
		w->call[i->task].item = NULL;
	memcpy(i, &w->spare, sizeof(w->spare));
	w->spare = i;
}

/* Writes what has ended at a moment. */
static int end_until(struct sweep *w, s64 moment)
{
	int err = 0;

	while (w->n && w->heap[0].end <= moment && !err) {
		struct hb_item *i = w->heap[0].item;

		err = write_item(w, 0, i);
		give_item(w, i);
		w->heap[0] = w->heap[--w->n];
		sink(w, 0);
	}
	return err;
}

static bool grow(struct sweep *w)
{
	size_t cap = w->cap ? 2 * w->cap : 1024;
	struct pending *more = reallocarray(w->heap, cap, sizeof(*more));

	if (!more)
		return false;
	w->heap = more;
	w->cap = cap;
	return true;
}

/* Keeps it until its end. *kept: where; NULL when it went to those that end late. */
static int begin(struct sweep *w, const struct hb_item *i, struct hb_item **kept)
{
	struct hb_item *copy;

	*kept = NULL;
	if (w->n >= w->most) {
		if (!w->late)
			w->late = hb_sorter__new(HB_SORT_END, w->s->memory, w->s->folder);
		return w->late ? hb_sorter__add(w->late, i, w->e) : hb_error__nomem(w->e, "sorting");
	}
	copy = w->n < w->cap || grow(w) ? take_item(w) : NULL;
	if (!copy)
		return hb_error__nomem(w->e, "what goes on at the same time");
	memcpy(copy, i, i->size);
	w->heap[w->n] = (struct pending){hb_item__end(i), w->order++, copy};
	rise(w, w->n++);
	*kept = copy;
	return 0;
}

/* ---- one item ---- */

/* A number of one file. */
static u64 key_of(const struct hb_item *i, u64 number)
{
	return hb_hash64(number) + i->source;
}

/* As a recording does it: a driver or runtime call inside of a runtime call, and a driver call inside of a
 * driver call, are the same operation. False: this one is the outer one of those to come. */
static bool nest(struct sweep *w, struct hb_item *i)
{
	struct hb_rec_accel *a = (void *)i->data, *outer;
	enum hb_layer layer = hb_names__layer(w->s->names, a->probe);
	const struct around *c = &w->call[i->task];

	if (layer == HB_LAYER_LIBRARY || c->end < hb_item__end(i) || c->end <= i->begin ||
	    (c->layer == HB_LAYER_DRIVER && layer != HB_LAYER_DRIVER))
		return false;
	a->flags |= HB_AFLAG_INNER;
	if (c->item && c->layer == HB_LAYER_RUNTIME && layer == HB_LAYER_DRIVER) {
		outer = (void *)c->item->data;
		outer->nested += outer->nested < UINT16_MAX;
	}
	return true;
}

static int remember_launch(struct sweep *w, const struct hb_item *i)
{
	const struct hb_rec_accel *a = (const void *)i->data;

	if (!a->correlation || hb_tasks__procs(w->s->tasks) < 2)
		return 0;
	return hb_map__put(w->launches, key_of(i, a->correlation), hb_tasks__proc(w->s->tasks, i->task));
}

static int begin_call(struct sweep *w, struct hb_item *i)
{
	struct hb_rec_accel *a = (void *)i->data;
	struct hb_item *kept;
	u32 pid = hb_tasks__pid(w->s->tasks, hb_tasks__proc(w->s->tasks, i->task));
	bool inner;
	int err;

	a->stack = hb_frames__at(w->frames, i->task, i->begin);
	if ((a->stack && hb_frames__write(w->frames, a->stack, pid, w->s->names, w->s->w)) ||
	    remember_launch(w, i))
		return hb_error__nomem(w->e, "stacks of the trace");
	inner = nest(w, i);
	err = begin(w, i, &kept);
	if (!inner && hb_names__layer(w->s->names, a->probe) != HB_LAYER_LIBRARY)
		w->call[i->task] =
		    (struct around){hb_item__end(i), kept, (u8)hb_names__layer(w->s->names, a->probe)};
	return err;
}

/* Whose work it is: of the process that launched it; else of the one whose work this device did before; else
 * of the one with most rows. */
static int begin_work(struct sweep *w, struct hb_item *i)
{
	const struct hb_rec_device *d = (const void *)i->data;
	const struct hb_rec_op *o = (const void *)i->data;
	u64 device = key_of(i, i->type == HB_TYPE_device ? d->device : o->device),
	    proc = hb_tasks__main(w->s->tasks, i->source);
	struct hb_item *kept;

	if (hb_tasks__procs(w->s->tasks) > 1) {
		if (i->type != HB_TYPE_device || !d->correlation ||
		    !hb_map__get(w->launches, key_of(i, d->correlation), &proc))
			hb_map__get(w->devices, device, &proc);
		else if (hb_map__put(w->devices, device, proc))
			return hb_error__nomem(w->e, "devices of the trace");
	}
	i->frame = (u32)proc;
	return begin(w, i, &kept);
}

static int begin_span(struct sweep *w, struct hb_item *i)
{
	struct hb_item *kept;
	s64 end = hb_item__end(i);

	if (i->frame && end > i->begin && hb_frames__enter(w->frames, i->task, i->begin, end, i->frame))
		return hb_error__nomem(w->e, "stacks of the trace");
	return begin(w, i, &kept);
}

/* The longest time in which nothing goes on. */
static void look_for_hole(struct sweep *w, const struct hb_item *i)
{
	struct hb_import_hole *h = &w->s->stats->hole;

	if (h->rows && i->begin > w->until && (u64)(i->begin - w->until) > h->ns) {
		h->ns = (u64)(i->begin - w->until);
		h->before = h->rows;
	}
	if (!h->rows || hb_item__end(i) > w->until)
		w->until = hb_item__end(i);
	h->rows++;
}

static int sweep_items(struct sweep *w)
{
	struct hb_item i;
	int more, err = 0;

	while (!err && (more = hb_join__next(w->s->items, &i, w->e)) != 0) {
		err = more < 0 ? more : end_until(w, i.begin);
		if (err)
			break;
		look_for_hole(w, &i);
		if (i.type == HB_TYPE_accel)
			err = begin_call(w, &i);
		else if (i.task)
			err = begin_span(w, &i);
		else
			err = begin_work(w, &i);
	}
	return err ? err : end_until(w, INT64_MAX);
}

static int write_late(struct sweep *w)
{
	struct hb_item i;
	int more = 0, err = w->late ? hb_sorter__sort(w->late, w->e) : 0;

	while (!err && w->late && (more = hb_sorter__next(w->late, &i, w->e)) > 0)
		err = write_item(w, 1, &i);
	return err ? err : more;
}

/* ---- all of it ---- */

static bool make(struct sweep *w)
{
	u32 threads = hb_tasks__count(w->s->tasks);

	w->most = w->s->memory / (sizeof(struct hb_item) + sizeof(struct pending));
	w->frames = hb_frames__new(threads);
	w->launches = hb_map__new();
	w->devices = hb_map__new();
	w->call = calloc((size_t)threads + 1, sizeof(*w->call));
	for (u32 i = 0; w->call && i <= threads; i++)
		w->call[i].end = INT64_MIN;
	return w->frames && w->launches && w->devices && w->call;
}

static void drop(struct sweep *w)
{
	struct hb_item *i;

	for (size_t k = 0; k < w->n; k++)
		free(w->heap[k].item);
	while ((i = w->spare)) {
		memcpy(&w->spare, i, sizeof(w->spare));
		free(i);
	}
	hb_frames__free(w->frames);
	hb_map__free(w->launches);
	hb_map__free(w->devices);
	hb_sorter__free(w->late);
	free(w->call);
	free(w->heap);
}

int hb_sweep__run(struct hb_sweep *s, struct hb_error *e)
{
	struct sweep w = {.s = s, .e = e};
	int err = make(&w) ? 0 : -ENOMEM;

	if (err)
		hb_error__nomem(e, "walking through the trace");
	err = err ? err : sweep_items(&w);
	err = err ? err : write_late(&w);
	if (w.frames)
		s->stacks_lost = hb_frames__lost(w.frames);
	drop(&w);
	return err;
}
