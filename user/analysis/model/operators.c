/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/model/operator_frame.h"
#include "analysis/model/operators.h"
#include "analysis/model/rows.h"

#define NO_EXEC UINT32_MAX
#define NEST_MOST                                                                                            \
	64 /* spans around a call that are kept in mind; what lies deeper begins a new execution             \
	    */

struct exec {
	u64 begin, end;
	u64 dev_begin, dev_end; /* of its operations; 0 none */
	u32 row;
};

struct open_exec { /* of the thread at hand, innermost last */
	u64 until; /* end of its span; of a stack's: of its last call, and a little more */
	u64 id;	   /* which span, or which frames */
	u32 exec;
};

struct hb_operators {
	const struct hb_timeline *tl;
	struct hb_frame_pick pick;
	struct hb_rows rows; /* struct hb_operator */
	struct exec *exec;
	u32 n, cap;
	u32 **of_call; /* [thread][call]: its execution; NO_EXEC. NULL: none has one */
	struct at {    /* the thread at hand */
		u32 thread, pid;
		const struct hb_tl_call *call;
		u32 calls;
		const struct hb_tl_op *op;
		const struct hb_tl_pycall *pycall;
		u32 ops, pycalls;
	} at;
	struct open_exec open[NEST_MOST];
	u32 depth;
	struct hb_operators_counts counts;
};

const char *hb_operator__basis(enum hb_operator_basis b)
{
	static const char *const names[HB_OPERATOR_BASES] = {"operator", "call", "stack"};

	return b < HB_OPERATOR_BASES ? names[b] : "?";
}

/* ---- which execution a call belongs to ---- */

struct place { /* where a call was made */
	u32 name, file, line;
	u64 id;
	u64 begin, end; /* of the span; of a stack the call's own */
	enum hb_operator_basis basis;
	u32 *row; /* of a stack: where its row is kept, index + 1 */
};

/* The innermost operator of a profiler around the call. */
static bool in_span(const struct hb_operators *o, const struct hb_tl_call *c, struct place *p)
{
	const struct hb_tl_op *v = o->at.op;
	u32 i;

	if (!o->at.ops)
		return false;
	i = hb_timeline__at(o->tl, o->at.thread, HB_TL_OP, c->at.begin);
	while (i != HB_NONE && (v[i].kind != HB_OPKIND_CPU_OP || v[i].at.end <= c->at.begin))
		i = v[i].at.outer;
	if (i == HB_NONE)
		return false;
	*p = (struct place){.name = v[i].name,
			    .id = i,
			    .begin = v[i].at.begin,
			    .end = v[i].at.end,
			    .basis = HB_OPERATOR_BY_SPAN};
	return true;
}

/* The recorded call of the function that the frame names, if it was asked for. */
static bool in_pycall(const struct hb_operators *o, const struct hb_tl_call *c, struct place *p)
{
	struct hb_window *w = hb_timeline__window(o->tl);
	const struct hb_tl_pycall *v = o->at.pycall;
	u32 i;

	if (!o->at.pycalls)
		return false;
	i = hb_timeline__at(o->tl, o->at.thread, HB_TL_PYCALL, c->at.begin);
	for (; i != HB_NONE; i = v[i].at.outer) {
		const struct hb_loc *l = hb_window__loc(w, v[i].func);

		if (!l || l->func != p->name || l->file != p->file || v[i].at.end <= c->at.begin)
			continue;
		p->id = i;
		p->begin = v[i].at.begin;
		p->end = v[i].at.end;
		p->basis = HB_OPERATOR_BY_CALL;
		p->row = NULL;
		return true;
	}
	return false;
}

static bool in_frames(struct hb_operators *o, const struct hb_tl_call *c, struct place *p)
{
	struct hb_picked *f = hb_frame_pick__of(&o->pick, o->at.pid, c->at.stack);
	const struct hb_loc *l = f->loc ? hb_window__loc(hb_timeline__window(o->tl), f->loc) : NULL;

	if (!l)
		return false;
	*p = (struct place){.name = l->func,
			    .file = l->file,
			    .line = l->line,
			    .id = f->outside,
			    .begin = c->at.begin,
			    .end = c->at.end,
			    .basis = HB_OPERATOR_BY_STACK,
			    .row = &f->mine};
	in_pycall(o, c, p);
	return true;
}

/* ---- executions ---- */

static struct hb_operator *row_of(struct hb_operators *o, const struct place *p, u32 *index)
{
	const u32 key[] = {o->at.pid, p->name, p->file, p->basis};
	bool fresh;
	struct hb_operator *r;

	if (p->row && *p->row) {
		*index = *p->row - 1;
		return o->rows.row[*index];
	}
	r = hb_rows__get(&o->rows, hb_hash_bytes(key, sizeof(key)), &fresh);
	if (!r)
		return NULL;
	if (fresh) {
		r->pid = o->at.pid;
		r->name = p->name;
		r->file = p->file;
		r->line = p->line;
		r->basis = p->basis;
		r->host.count = o->rows.n - 1; /* its index, until the numbers are made */
	}
	*index = (u32)r->host.count;
	if (p->row)
		*p->row = *index + 1;
	return r;
}

static int add_exec(struct hb_operators *o, const struct place *p, u32 row)
{
	if (o->n == o->cap) {
		u32 cap = o->cap ? 2 * o->cap : 1024;
		struct exec *v = realloc(o->exec, cap * sizeof(*v));

		if (!v)
			return -ENOMEM;
		o->exec = v;
		o->cap = cap;
	}
	o->exec[o->n++] = (struct exec){.begin = p->begin, .end = p->end, .row = row};
	return 0;
}

static void close_ended(struct hb_operators *o, u64 now)
{
	while (o->depth && o->open[o->depth - 1].until <= now)
		o->depth--;
}

static struct exec *open_of(struct hb_operators *o, const struct place *p, u32 row)
{
	for (u32 i = o->depth; i-- > 0;)
		if (o->open[i].id == p->id && o->exec[o->open[i].exec].row == row) {
			if (p->basis ==
			    HB_OPERATOR_BY_STACK) { /* as far as its last call, and none inside it */
				o->open[i].until = p->end + HB_OPERATOR_APART_NS;
				o->depth = i + 1;
			}
			return &o->exec[o->open[i].exec];
		}
	return NULL;
}

static struct exec *enter(struct hb_operators *o, const struct place *p, u32 row)
{
	struct exec *x = open_of(o, p, row);

	if (x)
		return x;
	/* Frames change where one execution ends and the next begins: only spans contain others. */
	while (o->depth && p->basis == HB_OPERATOR_BY_STACK &&
	       ((struct hb_operator *)o->rows.row[o->exec[o->open[o->depth - 1].exec].row])->basis ==
		   HB_OPERATOR_BY_STACK)
		o->depth--;
	if (add_exec(o, p, row))
		return NULL;
	if (o->depth == NEST_MOST)
		memmove(o->open, o->open + 1, --o->depth * sizeof(*o->open));
	o->open[o->depth++] = (struct open_exec){
	    .until = p->basis == HB_OPERATOR_BY_STACK ? p->end + HB_OPERATOR_APART_NS : p->end,
	    .id = p->id,
	    .exec = o->n - 1};
	return &o->exec[o->n - 1];
}

static int add_call(struct hb_operators *o, const struct hb_tl_call *c, u32 *exec)
{
	struct place p;
	struct hb_operator *r;
	struct exec *x;
	u32 row;

	o->counts.calls++;
	close_ended(o, c->at.begin);
	if (!in_span(o, c, &p) && !in_frames(o, c, &p)) {
		o->counts.without++;
		return o->pick.oom ? -ENOMEM : 0;
	}
	r = row_of(o, &p, &row);
	x = r ? enter(o, &p, row) : NULL;
	if (!x)
		return -ENOMEM;
	if (x->end < c->at.end)
		x->end = c->at.end;
	*exec = (u32)(x - o->exec);
	r->launches += hb_call__is_work(c);
	r->waited_ns += hb_call__waited(c) ? c->at.end - c->at.begin : 0;
	return 0;
}

/* Many windows have no operators: then this is no memory. */
static int note_exec(struct hb_operators *o, u32 call, u32 exec)
{
	u32 **of = &o->of_call[o->at.thread];

	if (!*of) {
		*of = malloc((o->at.calls + 1ULL) * sizeof(**of));
		if (!*of)
			return -ENOMEM;
		memset(*of, 0xff, o->at.calls * sizeof(**of));
	}
	(*of)[call] = exec;
	return 0;
}

static int by_calls(struct hb_operators *o)
{
	int err = 0;

	for (u32 i = 0; i < o->at.calls && !err; i++) {
		const struct hb_tl_call *c = &o->at.call[i];
		u32 exec = NO_EXEC;

		if (c->at.outer != HB_NONE)
			exec = o->of_call[o->at.thread] ? o->of_call[o->at.thread][c->at.outer] : NO_EXEC;
		else if (!(c->flags & HB_AFLAG_INNER))
			err = add_call(o, c, &exec);
		if (!err && exec != NO_EXEC)
			err = note_exec(o, i, exec);
	}
	return err;
}

static int by_threads(struct hb_operators *o)
{
	u32 threads = hb_timeline__threads(o->tl);
	int err = 0;

	o->of_call = calloc(threads + 1, sizeof(*o->of_call));
	if (!o->of_call)
		return -ENOMEM;
	for (u32 t = 0; t < threads && !err; t++) {
		struct at *at = &o->at;

		*at = (struct at){.thread = t, .pid = hb_timeline__thread(o->tl, t)->pid};
		at->call = hb_timeline__calls(o->tl, t, &at->calls);
		at->op = hb_timeline__ops(o->tl, t, &at->ops);
		at->pycall = hb_timeline__pycalls(o->tl, t, &at->pycalls);
		o->depth = 0;
		err = by_calls(o);
	}
	return err;
}

/* ---- what the device did for them ---- */

static u32 exec_of(const struct hb_operators *o, const struct hb_launch *l)
{
	u32 t = hb_timeline__by_task(o->tl, l->task), n, i;
	const struct hb_tl_call *c = t == HB_NONE ? NULL : hb_timeline__calls(o->tl, t, &n);

	if (!c || !o->of_call[t])
		return NO_EXEC;
	for (i = hb_timeline__from(o->tl, t, HB_TL_CALL, l->begin); i < n && c[i].at.begin == l->begin; i++)
		if (c[i].correlation == l->correlation)
			return o->of_call[t][i];
	return NO_EXEC;
}

static void add_operation(struct hb_operators *o, const struct hb_device_op *op, u32 exec)
{
	struct exec *x = &o->exec[exec];
	struct hb_operator *r = o->rows.row[x->row];

	r->operations++;
	r->device_ns += op->end - op->begin;
	if (!x->dev_end || op->begin < x->dev_begin)
		x->dev_begin = op->begin;
	if (op->end > x->dev_end)
		x->dev_end = op->end;
}

static void of_device(struct hb_operators *o, const struct hb_devices *d, const struct hb_device *v)
{
	const struct hb_launch *last = NULL; /* a graph's operations come in runs */
	u32 exec = NO_EXEC;

	for (u32 i = 0; o->n && i < v->n_ops; i++) {
		const struct hb_launch *l = hb_devices__launch_of(d, &v->op[i]);

		if (i + HB_FETCH_AHEAD < v->n_ops)
			hb_devices__fetch(d, &v->op[i + HB_FETCH_AHEAD]);

		if (!l)
			continue;
		if (l != last)
			exec = exec_of(o, l);
		last = l;
		if (exec != NO_EXEC)
			add_operation(o, &v->op[i], exec);
	}
}

/* ---- numbers of executions ---- */

static int numbers(struct hb_operators *o)
{
	u32 *group = malloc((o->n + 1) * sizeof(*group)), rows = o->rows.n, n = 0;
	u64 *value = malloc((o->n + 1) * sizeof(*value));
	struct hb_dist *dist = calloc(rows + 1, sizeof(*dist));
	int err = group && value && dist ? 0 : -ENOMEM;

	for (u32 i = 0; i < o->n && !err; i++) {
		group[i] = o->exec[i].row;
		value[i] = o->exec[i].end - o->exec[i].begin;
	}
	err = err ? err : hb_dist__grouped(group, value, o->n, dist, rows);
	for (u32 r = 0; r < rows && !err; r++)
		((struct hb_operator *)o->rows.row[r])->host = dist[r];
	for (u32 i = 0; i < o->n && !err; i++)
		if (o->exec[i].dev_end) {
			group[n] = o->exec[i].row;
			value[n++] = o->exec[i].dev_end - o->exec[i].dev_begin;
		}
	err = err ? err : hb_dist__grouped(group, value, n, dist, rows);
	for (u32 r = 0; r < rows && !err; r++)
		((struct hb_operator *)o->rows.row[r])->device = dist[r];
	free(group);
	free(value);
	free(dist);
	return err;
}

static int by_cost(const void *a, const void *b)
{
	const struct hb_operator *x = *(struct hb_operator *const *)a, *y = *(struct hb_operator *const *)b;

	if (x->device_ns != y->device_ns)
		return x->device_ns < y->device_ns ? 1 : -1;
	if (x->host.total != y->host.total)
		return x->host.total < y->host.total ? 1 : -1;
	return x->name != y->name ? (x->name > y->name ? 1 : -1) : (x->pid > y->pid) - (x->pid < y->pid);
}

static int build(struct hb_operators *o, const struct hb_devices *d)
{
	int err = hb_rows__init(&o->rows, sizeof(struct hb_operator));

	err = err ? err : hb_frame_pick__init(&o->pick, hb_timeline__window(o->tl));
	err = err ? err : by_threads(o);
	if (err)
		return err;
	for (u32 i = 0; d && i < hb_devices__count(d); i++)
		of_device(o, d, hb_devices__at(d, i));
	err = numbers(o);
	hb_rows__sort(&o->rows, by_cost);
	return err;
}

static void free_calls(struct hb_operators *o)
{
	for (u32 t = 0; o->of_call && t < hb_timeline__threads(o->tl); t++)
		free(o->of_call[t]);
	free(o->of_call);
	o->of_call = NULL;
}

struct hb_operators *hb_operators__build(const struct hb_timeline *tl, const struct hb_devices *d,
					 struct hb_error *e)
{
	struct hb_operators *o = calloc(1, sizeof(*o));
	int err;

	if (o)
		o->tl = tl;
	err = o ? build(o, d) : -ENOMEM;
	if (o) { /* only the rows are asked for */
		hb_frame_pick__free(&o->pick);
		free(o->exec);
		free_calls(o);
		o->pick = (struct hb_frame_pick){0};
		o->exec = NULL;
	}
	if (err) {
		hb_operators__free(o);
		hb_error__nomem(e, "operators");
		return NULL;
	}
	return o;
}

void hb_operators__free(struct hb_operators *o)
{
	if (!o)
		return;
	hb_rows__free(&o->rows, NULL);
	free(o);
}

u32 hb_operators__count(const struct hb_operators *o)
{
	return o->rows.n;
}

const struct hb_operator *hb_operators__at(const struct hb_operators *o, u32 i)
{
	return i < o->rows.n ? o->rows.row[i] : NULL;
}

const struct hb_operators_counts *hb_operators__counts(const struct hb_operators *o)
{
	return &o->counts;
}
