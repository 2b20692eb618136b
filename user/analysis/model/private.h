/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Inside of the model: what model.c, calls.c, waits.c and cpu.c share. Not for others. */
#ifndef HB_MODEL_PRIVATE_H
#define HB_MODEL_PRIVATE_H

#include "analysis/model/model.h"
#include "analysis/model/rows.h"

#define PAGE_BITS  6 /* probes of one page of a thread's call counters */
#define PAGE_SIZE_ (1u << PAGE_BITS)

struct call {
	struct hb_call_stat pub; /* first; until finish `dur` has the outermost calls only */
	struct hb_hist inner;	 /* .. and this the others */
};

struct tally {
	u64 count, ns, bytes, failed;
};

/* One function as one thread uses it. What these sums add to the call, its class, thread and process is added
 * at the end: a call is counted in one place. */
struct use {
	struct call *call;
	struct tally outer, inner; /* outermost calls, and those made inside of one */
	u64 nested, results_known;
	bool elements; /* `bytes` of its records counts elements of a data type */
};

struct slept {	      /* sleeps of a thread that are alike, and the rows they are counted in */
	u64 who, how; /* what is alike; how: not 0 when set */
	struct hb_reason_stat *reason;
	struct hb_sleep_stat *sleep; /* NULL: not in a system call */
	struct hb_waker_stat *waker; /* NULL: nobody had to wake it */
	struct hb_edge_stat *edge;   /* NULL: not between traced processes */
	struct hb_lock_stat *lock;   /* the last one; NULL: no lock */
};
#define SLEPT 4 /* kinds of sleeps that are remembered of a thread */

struct thread {
	struct hb_thread_stat pub; /* first: tables of pointers are handed out as they are */
	struct use **page;	   /* by probe id; allocated when the thread makes its first call */
	struct slept slept[SLEPT];
};

struct func {
	struct hb_func_stat pub;
	u64 mark; /* last stack that counted it: recursion counts once */
};

struct note {
	u32 text, level;
};

struct hb_model {
	struct hb_window *w;
	struct hb_totals totals;
	bool oom;
	u32 n_pages; /* of a thread */
	struct thread **by_task;
	struct hb_class_stat *class_of[HB_OP_COUNT]; /* rows of classes; NULL: none yet */
	struct hb_rows procs, threads, calls, classes, sleeps, reasons, wakers, edges, syscalls, funcs,
	    kernel, stacks, prices, locks, py_calls, fields, exceptions, gils, holders, gcs,
	    merged;	      /* stacks by functions */
	struct hb_map *pairs; /* (user stack, kernel stack) -> dense number */
	struct stack_rows {   /* rows of stacks by number, of whatever process had it last: most have one */
		struct hb_stack_stat **row;
		u32 n;
	} stacks_by[HB_USE_COUNT];
	struct note *notes;
	u32 n_notes;
	u32 n_traced; /* after finish: the first n_traced of procs */
};

struct hb_proc_stat *hb_model__proc(struct hb_model *m, u32 pid); /* NULL: out of memory (m->oom) */

struct what_stack {
	enum hb_stack_use use;
	const struct hb_proc_stat *proc;
	u32 raw, kraw;
	u32 id; /* of both: dense, as far as they are not damaged */
};
/* Its row, made when new; NULL: out of memory. */
struct hb_stack_stat *hb_model__new_stack(struct hb_model *m, const struct what_stack *x);
static inline void hb_model__count_stack(struct hb_model *m, const struct what_stack *x, u64 ns)
{
	const struct stack_rows *by = &m->stacks_by[x->use];
	struct hb_stack_stat *s = x->id < by->n ? by->row[x->id] : NULL;

	if (!s || s->proc != x->proc)
		s = hb_model__new_stack(m, x);
	if (!s) {
		m->oom = true;
		return;
	}
	s->count++;
	s->ns += ns;
}
/* A user stack that a thread of `p` was at. */
static inline void hb_model__add_stack(struct hb_model *m, enum hb_stack_use use,
				       const struct hb_proc_stat *p, u32 raw, u64 ns)
{
	const struct what_stack x = {.use = use, .proc = p, .raw = raw, .id = raw};

	hb_model__count_stack(m, &x, ns);
}

/* One record each. */
void hb_model__accel(struct hb_model *m, struct thread *t, const struct hb_rec_accel *r);
void hb_model__offcpu(struct hb_model *m, struct thread *t, const struct hb_rec_offcpu *r);
void hb_model__syscall(struct hb_model *m, struct thread *t, const struct hb_rec_syscall *r);
void hb_model__py_call(struct hb_model *m, struct thread *t, const struct hb_rec_py_call *r);
void hb_model__py_field(struct hb_model *m, struct thread *t, const struct hb_rec_py_field *r);
void hb_model__sample(struct hb_model *m, struct thread *t, const struct hb_rec_sample *r);

void hb_model__py_exception(struct hb_model *m, struct thread *t, const struct hb_rec_py_exception *r);
void hb_model__py_gil(struct hb_model *m, struct thread *t, const struct hb_rec_py_gil *r);
void hb_model__py_gc(struct hb_model *m, struct thread *t, const struct hb_rec_py_gc *r);

/* After the last record: derive and sort. */
void hb_model__finish_calls(struct hb_model *m);
void hb_model__finish_waits(struct hb_model *m);
void hb_model__finish_cpu(struct hb_model *m);
void hb_model__finish_py_calls(struct hb_model *m);
void hb_model__finish_py_fields(struct hb_model *m);
void hb_model__drop_field(void *row);
void hb_model__finish_pyevents(struct hb_model *m);

/* For qsort on arrays of pointers: larger first. */
#define BIGGER_FIRST(a, b)                                                                                   \
	do {                                                                                                 \
		if ((a) != (b))                                                                              \
			return (a) > (b) ? -1 : 1;                                                           \
	} while (0)
/* Names rows x, y of type T inside a comparison. */
#define CMP_ROWS(T, x, y, va, vb)                                                                            \
	const struct T *x = *(const struct T *const *)(va), *y = *(const struct T *const *)(vb)

#endif
