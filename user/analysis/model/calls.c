/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Accelerator calls: per function and process, per class, per thread. */
#include "analysis/model/private.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/model/decode.h"

const char *hb_op__name(enum hb_op op)
{
	static const char *const names[HB_OP_COUNT] = {
	    [HB_OP_LAUNCH] = "eager launch",
	    [HB_OP_GRAPH] = "graph launch",
	    [HB_OP_GRAPH_BUILD] = "graph build",
	    [HB_OP_COPY] = "copy",
	    [HB_OP_SYNC] = "sync",
	    [HB_OP_ALLOC] = "alloc",
	    [HB_OP_COLLECTIVE] = "collective",
	    [HB_OP_CAPTURE] = "capture",
	    [HB_OP_EVENT] = "event",
	    [HB_OP_OTHER] = "other",
	};

	return op < HB_OP_COUNT ? names[op] : "other";
}

static bool builds_graph(const char *name)
{
	return strstr(name, "Instantiate") || strstr(name, "Update") || strstr(name, "Upload");
}

/* Tables have one class for graphs; instantiating one is no launch. A launch of a graph handle is one
 * whatever its class. */
enum hb_op hb_op__of(const struct hb_window *w, const struct hb_probe_row *row)
{
	static const u8 ops[HB_CLASS_COUNT] = {
	    [HB_CLASS_OTHER] = HB_OP_OTHER,
	    [HB_CLASS_LAUNCH] = HB_OP_LAUNCH,
	    [HB_CLASS_GRAPH] = HB_OP_GRAPH,
	    [HB_CLASS_COPY] = HB_OP_COPY,
	    [HB_CLASS_SYNC] = HB_OP_SYNC,
	    [HB_CLASS_ALLOC] = HB_OP_ALLOC,
	    [HB_CLASS_COLLECTIVE] = HB_OP_COLLECTIVE,
	    [HB_CLASS_CAPTURE] = HB_OP_CAPTURE,
	    [HB_CLASS_EVENT] = HB_OP_EVENT,
	};

	if (row->cls == HB_CLASS_LAUNCH && row->handle == HB_HANDLE_GRAPH)
		return HB_OP_GRAPH;
	if (row->cls == HB_CLASS_GRAPH && builds_graph(hb_window__string(w, row->name)))
		return HB_OP_GRAPH_BUILD;
	return row->cls < HB_CLASS_COUNT ? ops[row->cls] : HB_OP_OTHER;
}

/* A collective counts elements of its data type. */
static u64 bytes_of(const struct hb_model *m, const struct hb_call_stat *c, const struct hb_rec_accel *r)
{
	unsigned size = 1;

	if (r->bytes && c->op == HB_OP_COLLECTIVE)
		hb_decode__datatype(hb_window__string(m->w, c->row->api), r->kind, &size);
	return r->bytes * size;
}

static struct call *call_of(struct hb_model *m, struct hb_proc_stat *p, u32 probe)
{
	static const struct hb_probe_row unknown;
	bool fresh;
	struct call *c = hb_rows__get(&m->calls, (u64)p->idx << 32 | probe, &fresh);

	if (c && fresh) {
		c->pub.proc = p;
		c->pub.probe = probe;
		c->pub.row = hb_window__probe(m->w, probe);
		if (!c->pub.row)
			c->pub.row = &unknown;
		c->pub.op = hb_op__of(m->w, c->pub.row);
	}
	return c;
}

/* The thread's own entry for a function: one index in the common case. */
static struct use *use_of(struct hb_model *m, struct thread *t, u32 probe)
{
	u32 page = probe >> PAGE_BITS, at = probe & (PAGE_SIZE_ - 1);
	struct use *u;

	if (page >= m->n_pages) /* an id that is in no table: damaged file */
		page = at = 0;
	if (!t->page)
		t->page = calloc(m->n_pages, sizeof(*t->page));
	if (t->page && !t->page[page])
		t->page[page] = calloc(PAGE_SIZE_, sizeof(**t->page));
	if (!t->page || !t->page[page])
		return NULL;
	u = &t->page[page][at];
	if (!u->call) {
		u->call = call_of(m, t->pub.proc, page << PAGE_BITS | at);
		if (u->call)
			u->call->pub.threads++;
	}
	return u->call ? u : NULL;
}

static void add_result(struct hb_call_stat *c, s32 code)
{
	c->results_known++;
	if (!code)
		return;
	c->errors++;
	for (u32 i = 0; i < c->n_results; i++) {
		if (c->result[i].code == code) {
			c->result[i].count++;
			return;
		}
	}
	if (c->n_results < HB_RESULTS)
		c->result[c->n_results++] = (struct hb_result){.code = code, .count = 1};
	else
		c->results_other++;
}

static struct hb_class_stat *class_of(struct hb_model *m, enum hb_op op)
{
	struct hb_class_stat *k = m->class_of[op];

	if (!k)
		k = m->class_of[op] = hb_rows__get(&m->classes, op, NULL);
	if (k)
		k->op = op;
	else
		m->oom = true;
	return k;
}

/* Outermost calls only: the class table and the thread's totals. */
static void add_operation(struct hb_model *m, struct thread *t, const struct hb_call_stat *c,
			  const struct hb_rec_accel *r)
{
	enum hb_op op = c->op;
	struct hb_class_stat *k = class_of(m, op);
	bool failed = (r->flags & HB_AFLAG_RET) && r->ret;

	if (!k)
		return;
	k->count++;
	k->errors += failed;
	k->bytes += bytes_of(m, c, r);
	t->op_ns[op] += r->dur;
	if (t->op_ns[op] > k->busiest_ns) {
		k->busiest_ns = t->op_ns[op];
		k->busiest = t->pub.task;
	}
	t->pub.operations++;
	t->pub.errors += failed;
	t->pub.call_ns += r->dur;
	t->pub.proc->operations++;
	t->pub.proc->call_ns += r->dur;
}

void hb_model__accel(struct hb_model *m, struct thread *t, const struct hb_rec_accel *r)
{
	struct use *u = use_of(m, t, r->probe);
	bool inner = r->flags & HB_AFLAG_INNER;
	struct hb_call_stat *c = u ? &u->call->pub : NULL;

	if (!u || ((r->dur || (r->flags & HB_AFLAG_TIMED)) &&
		   hb_hist__add(inner ? &u->call->inner : &c->dur, r->dur))) {
		m->oom = true;
		return;
	}
	c->count++;
	c->inner += inner;
	c->nested += r->nested;
	c->bytes += bytes_of(m, c, r);
	if (r->flags & HB_AFLAG_RET)
		add_result(c, r->ret);
	u->ns += r->dur;
	if (u->ns > c->busiest_ns || !c->busiest) {
		c->busiest_ns = u->ns;
		c->busiest = t->pub.task;
	}
	if (!inner)
		add_operation(m, t, c, r);
	if (r->stack)
		hb_model__add_stack(m, HB_USE_ACCEL, t->pub.proc, r->stack, 0, r->dur);
}

static int cmp_calls(const void *a, const void *b)
{
	CMP_ROWS(hb_call_stat, x, y, a, b);

	BIGGER_FIRST(y->proc->pid, x->proc->pid);
	BIGGER_FIRST(x->dur.total, y->dur.total);
	BIGGER_FIRST(x->count, y->count);
	BIGGER_FIRST(y->probe, x->probe);
	return 0;
}

static int cmp_classes(const void *a, const void *b)
{
	CMP_ROWS(hb_class_stat, x, y, a, b);

	BIGGER_FIRST(x->dur.total, y->dur.total);
	BIGGER_FIRST(x->count, y->count);
	return (int)x->op - (int)y->op;
}

/* The durations of a class are those of its functions' outermost calls. */
static int sum_durations(struct hb_model *m, struct call *c)
{
	struct hb_class_stat *k = m->class_of[c->pub.op];
	int err = k ? hb_hist__merge(&k->dur, &c->pub.dur) : 0;

	return err ? err : hb_hist__merge(&c->pub.dur, &c->inner);
}

void hb_model__finish_calls(struct hb_model *m)
{
	for (u32 i = 0; i < m->calls.n; i++)
		m->oom |= sum_durations(m, m->calls.row[i]) != 0;
	hb_rows__sort(&m->calls, cmp_calls);
	hb_rows__sort(&m->classes, cmp_classes);
}
