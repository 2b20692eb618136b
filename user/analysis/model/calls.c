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
static u64 bytes_of_elements(const struct hb_model *m, const struct use *u, const struct hb_rec_accel *r)
{
	unsigned size = 1;

	hb_decode__datatype(hb_window__string(m->w, u->call->pub.row->api), r->kind, &size);
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

/* The first call of a function by a thread. */
static __attribute__((noinline)) struct use *new_use(struct hb_model *m, struct thread *t, u32 page, u32 at)
{
	struct use *u;

	if (!t->page)
		t->page = calloc(m->n_pages, sizeof(*t->page));
	if (t->page && !t->page[page])
		t->page[page] = calloc(PAGE_SIZE_, sizeof(**t->page));
	if (!t->page || !t->page[page])
		return NULL;
	u = &t->page[page][at];
	u->call = call_of(m, t->pub.proc, page << PAGE_BITS | at);
	if (!u->call)
		return NULL;
	u->elements = u->call->pub.op == HB_OP_COLLECTIVE;
	u->call->pub.threads++;
	if (!u->call->pub.busiest) /* where no call has a duration, it is who came first */
		u->call->pub.busiest = t->pub.task;
	return u;
}

/* The thread's own entry for a function: one index in the common case. */
static inline struct use *use_of(struct hb_model *m, struct thread *t, u32 probe)
{
	u32 page = probe >> PAGE_BITS, at = probe & (PAGE_SIZE_ - 1);

	if (page >= m->n_pages) /* an id that is in no table: damaged file */
		page = at = 0;
	if (t->page && t->page[page] && t->page[page][at].call)
		return &t->page[page][at];
	return new_use(m, t, page, at);
}

static void add_error(struct hb_call_stat *c, s32 code)
{
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

void hb_model__accel(struct hb_model *m, struct thread *t, const struct hb_rec_accel *r)
{
	struct use *u = use_of(m, t, r->probe);
	bool inner = r->flags & HB_AFLAG_INNER, known = r->flags & HB_AFLAG_RET;
	struct tally *k;

	if (!u || ((r->dur || (r->flags & HB_AFLAG_TIMED)) &&
		   hb_hist__add(inner ? &u->call->inner : &u->call->pub.dur, r->dur))) {
		m->oom = true;
		return;
	}
	k = inner ? &u->inner : &u->outer;
	k->count++;
	k->ns += r->dur;
	k->bytes += u->elements && r->bytes ? bytes_of_elements(m, u, r) : r->bytes;
	u->nested += r->nested;
	u->results_known += known;
	if (known && r->ret) {
		k->failed++;
		add_error(&u->call->pub, r->ret);
	}
	if (r->stack)
		hb_model__add_stack(m, HB_USE_ACCEL, t->pub.proc, r->stack, r->dur);
}

/* ---- after the last record ---- */

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

static void add_to_call(struct thread *t, const struct use *u)
{
	struct hb_call_stat *c = &u->call->pub;
	u64 ns = u->outer.ns + u->inner.ns;

	c->count += u->outer.count + u->inner.count;
	c->inner += u->inner.count;
	c->nested += u->nested;
	c->bytes += u->outer.bytes + u->inner.bytes;
	c->results_known += u->results_known;
	if (ns > c->busiest_ns) {
		c->busiest_ns = ns;
		c->busiest = t->pub.task;
	}
}

/* Outermost calls only: the class table and the thread's totals. */
static void add_operations(struct hb_model *m, struct thread *t, const struct use *u, u64 op_ns[HB_OP_COUNT])
{
	enum hb_op op = u->call->pub.op;
	const struct tally *x = &u->outer;
	struct hb_class_stat *k = x->count ? class_of(m, op) : NULL;

	if (!k)
		return;
	k->count += x->count;
	k->errors += x->failed;
	k->bytes += x->bytes;
	op_ns[op] += x->ns;
	t->pub.operations += x->count;
	t->pub.errors += x->failed;
	t->pub.call_ns += x->ns;
	t->pub.proc->operations += x->count;
	t->pub.proc->call_ns += x->ns;
}

static void sum_thread(struct hb_model *m, struct thread *t)
{
	u64 op_ns[HB_OP_COUNT] = {0};

	for (u32 p = 0; t->page && p < m->n_pages; p++) {
		for (u32 i = 0; t->page[p] && i < PAGE_SIZE_; i++) {
			const struct use *u = &t->page[p][i];

			if (!u->call)
				continue;
			add_to_call(t, u);
			add_operations(m, t, u, op_ns);
		}
	}
	for (u32 op = 0; op < HB_OP_COUNT; op++) {
		struct hb_class_stat *k = m->class_of[op];

		if (k && op_ns[op] > k->busiest_ns) {
			k->busiest_ns = op_ns[op];
			k->busiest = t->pub.task;
		}
	}
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
	for (u32 i = 0; i < m->threads.n; i++)
		sum_thread(m, m->threads.row[i]);
	for (u32 i = 0; i < m->calls.n; i++)
		m->oom |= sum_durations(m, m->calls.row[i]) != 0;
	hb_rows__sort(&m->calls, cmp_calls);
	hb_rows__sort(&m->classes, cmp_classes);
}
