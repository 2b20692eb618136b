/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Inside of hb_roofline: roofline.c takes records and makes rows, roof_join.c finds the operator of a launch,
 * roof_plan.c what a model's configuration says of the kernels of a step. */
#ifndef HB_ROOF_PRIVATE_H
#define HB_ROOF_PRIVATE_H

#include "analysis/model/order.h"
#include "analysis/model/roofline.h"
#include "base/map.h"

struct roof_span { /* first member of what launches lie in */
	u64 begin, end;
	u32 group; /* what a launch must share: the thread (index of a task), or the process */
};

struct roof_op {			 /* an operator */
	struct roof_span at;		 /* by thread */
	u32 name, shapes, types, values; /* strings */
	u8 why;				 /* enum hb_roof_why, once its row is made */
	const struct hb_roof_rule *rule; /* NULL: none */
};

struct roof_call {	     /* into cuBLAS */
	struct roof_span at; /* by thread; of no length when only its entry was seen */
	u32 name;
	u32 m, n, k, batch;
	u32 type; /* enum hb_dtype */
};

struct roof_step {	     /* whose batch is told */
	struct roof_span at; /* by process */
	struct hb_roof_step s;
};

struct hb_roofline {
	struct hb_window *w;
	struct hb_roofline_opts o;
	struct hb_feed feed;
	const struct hb_devices *d; /* set by finish */
	/* records */
	struct roof_op *ops;
	u32 n_ops, cap_ops;
	struct roof_call *calls;
	u32 n_calls, cap_calls;
	struct roof_step *steps;
	u32 n_steps, cap_steps;
	struct hb_map *rules; /* string -> rule of an operator of this name, as a pointer */
	u8 *is_blas;	      /* by probe */
	u32 n_probes;
	/* by launch (index of hb_devices__launches) */
	u32 *op_of;   /* innermost operator with a formula, index + 1; 0 none */
	u32 *in_op;   /* innermost operator at all, its name */
	u32 *call_of; /* call into cuBLAS, index + 1 */
	u32 *step_of; /* index + 1 */
	u8 **done;    /* by device, by operation: 1 = it is a part of a row */
	/* results */
	struct hb_roof_row *rows;
	u32 n_rows, cap_rows;
	struct hb_roof_exec *execs;
	u32 n_execs, cap_execs;
	struct hb_map *row_of; /* hash of the row's identity -> index + 1 */
	struct hb_roof_rest *rest;
	u32 n_rest, cap_rest;
	struct hb_map *rest_of;
	struct hb_map *family_of; /* string -> enum roof_family */
	struct hb_roof_device *devices;
	u32 n_devices;
	struct hb_roof_counts counts;
};

/* The next item of a growing array, all zero; NULL: out of memory. */
void *hb_roof__push(void *array, u32 *n, u32 *cap, size_t size);

/* Fills op_of, in_op, call_of, step_of; NULL where there is no operator, call, step. 0 or -ENOMEM. */
int hb_roof__join(struct hb_roofline *r);

struct roof_work {     /* an execution while its operations are gathered, in the order of their begin */
	u64 until, ns; /* end of what is counted; ns so far */
	u64 longest;
	u32 kernel;			  /* string: the one that took longest */
	const struct hb_device_op *first; /* NULL: none yet */
};
void hb_roof__gather(struct roof_work *k, const struct hb_device_op *o);

enum roof_family { /* what a kernel is by its name */
		   ROOF_OTHER,
		   ROOF_GEMM,
		   ROOF_GEMM_TAIL, /* adds up what the one before left in parts */
		   ROOF_EXPERTS,
		   ROOF_ATTENTION,
		   ROOF_DELTANET,
		   ROOF_SSD,
		   ROOF_FAMILIES,
};
enum roof_family hb_roof__family(struct hb_roofline *r, u32 name); /* name: string */

/* Counts an execution. The row is the one of this name, basis, kind, sizes and device. 0 or -ENOMEM. */
int hb_roof__count(struct hb_roofline *r, const struct hb_roof_row *what, const struct roof_work *k);

/* The steps of finish, in this order; 0 or -ENOMEM. Rows of operators; of calls into cuBLAS. */
int hb_roof__operators(struct hb_roofline *r);
int hb_roof__calls(struct hb_roofline *r);
/* With a configuration: rows of what no operator or call told. */
int hb_roof__plan(struct hb_roofline *r);
/* Kernels without a row. */
int hb_roof__rest(struct hb_roofline *r);

#endif
