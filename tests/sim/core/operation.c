/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <stdlib.h>
#include <string.h>
#include "operation.h"
#include "truth.h"

#define LOOK_AT 4 /* how many unresolved operations are looked at when another one comes */

/* Operations whose times depend on ranks that are still on their way, in the order enqueued. */
struct pending {
	struct hb_operation op, *rec; /* rec: its copy in the log, or NULL */
	struct hb_moment start, end;
	struct pending *next;
};
static struct pending *first, **last = &first, *unused;

static u8 kind_of(const struct hb_work *w)
{
	switch (w->op) {
	case HB_OP_KERNEL:
		return HB_KIND_KERNEL;
	case HB_OP_COPY:
		return w->engine == HB_ENGINE_H2D   ? HB_KIND_H2D
		       : w->engine == HB_ENGINE_D2H ? HB_KIND_D2H
						    : HB_KIND_D2D;
	case HB_OP_FILL:
		return HB_KIND_MEMSET;
	case HB_OP_COLL:
		return HB_KIND_COLLECTIVE;
	case HB_OP_EVENT:
		return HB_KIND_EVENT;
	case HB_OP_HOST:
		return HB_KIND_HOST;
	default:
		return 0;
	}
}

static u16 name_of(const struct hb_work *w)
{
	/* The handle's own field, though the work only looks at it: a name is registered once. */
	struct hb_function *f = (struct hb_function *)(uintptr_t)w->function;

	if (!f)
		return 0;
	if (!f->name_id)
		f->name_id = (u16)hb_truth__register(HB_DEVICE, &f->name, 1);
	return f->name_id;
}

static void write_out(struct hb_operation *rec, const struct hb_operation *op)
{
	u64 start = op->start ? op->start : 1;

	memcpy((char *)rec + sizeof(rec->start), (const char *)op + sizeof(op->start),
	       sizeof(*op) - sizeof(op->start));
	__atomic_store_n(&rec->start, start, __ATOMIC_RELEASE); /* 0 until here: not used */
}

static void tell(const struct hb_operation *op)
{
	if (__builtin_expect(hb_observer != NULL, 0) && hb_observer->operation)
		hb_observer->operation(op);
}

static bool resolve(struct pending *p)
{
	u64 start, end;
	bool known = hb_moment__known(&p->start, &start);

	if (!known || !hb_moment__known(&p->end, &end))
		return false;
	p->op.flags &= ~HB_OPERATION_UNRESOLVED;
	if (end < start) { /* aborted: no rank will ever end it */
		p->op.flags |= HB_OPERATION_BROKEN;
		end = start;
	}
	p->op.start = start;
	p->op.end = end;
	if (p->rec)
		write_out(p->rec, &p->op);
	tell(&p->op);
	return true;
}

void hb_operation__settle(bool all)
{
	struct pending **at = &first, *p;
	u32 unknown = 0;

	while ((p = *at) && (all || unknown < LOOK_AT)) {
		if (!resolve(p)) {
			unknown++;
			at = &p->next;
			continue;
		}
		*at = p->next;
		if (last == &p->next)
			last = at;
		p->next = unused;
		unused = p;
	}
}

void hb_operation__synced(void)
{
	if (!__atomic_load_n(&first, __ATOMIC_RELAXED))
		return;
	hb_lock();
	hb_operation__settle(false);
	hb_unlock();
}

static void keep(const struct hb_operation *op, struct hb_operation *rec, const struct hb_moment *start,
		 const struct hb_moment *end)
{
	struct pending *p = unused;

	if (p)
		unused = p->next;
	else
		p = malloc(sizeof(*p));
	if (!p)
		return; /* stays unresolved in the log */
	*p = (struct pending){.op = *op, .rec = rec, .start = *start, .end = *end};
	*last = p;
	last = &p->next;
}

void hb_operation__log(const struct hb_stream *s, const struct hb_work *w, const struct hb_moment *start,
		       const struct hb_moment *end, u32 flags)
{
	struct hb_operation *rec = hb_truth__operation(), op;

	if (!rec && !hb_observer)
		return;
	op = (struct hb_operation){
	    .start = start->at,
	    .end = end->at,
	    .stream = (u64)(uintptr_t)s,
	    .bytes = w->op == HB_OP_FILL ? w->bytes * w->width : w->bytes,
	    .flags = flags | (start->rdv || end->rdv ? HB_OPERATION_UNRESOLVED : 0),
	    .tid = hb_truth__tid(),
	    .name = name_of(w),
	    .layer = HB_DEVICE,
	    .kind = kind_of(w),
	    .correlation = hb_truth__correlation(),
	    .exec = s->exec,
	    .node = w->node,
	    .device = (u32)s->ctx->device,
	    .shared = w->shared,
	    .queued = s->now,
	};
	memcpy(op.grid, w->grid, sizeof(op.grid));
	memcpy(op.block, w->block, sizeof(op.block));
	if (rec)
		write_out(rec, &op);
	if (op.flags & HB_OPERATION_UNRESOLVED)
		keep(&op, rec, start, end);
	else
		tell(&op);
	if (first)
		hb_operation__settle(false);
}

void hb_operation__fault(const char *line, bool on, u64 now)
{
	struct hb_operation *rec = hb_truth__operation();
	struct hb_operation op = {.start = now, .end = now, .layer = HB_DEVICE, .kind = HB_KIND_FAULT};

	if (!rec)
		return;
	op.flags = on ? HB_OPERATION_ON : 0;
	op.name = (u16)hb_truth__register(HB_FAULT, &line, 1);
	op.queued = now;
	write_out(rec, &op);
}

void hb_operation__forget(void)
{
	first = NULL;
	last = &first;
}
