/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Operators of frameworks -> formulas: which input of an operator is which size of a formula. */
#ifndef HB_ROOF_RULE_H
#define HB_ROOF_RULE_H

#include <stdio.h>

#include "analysis/model/roof_formula.h"
#include "analysis/model/roof_shape.h"

/* What an engine says of a step: sums over its sequences. Sequences that are in prefill and those in decode
 * apart. */
struct hb_roof_part {
	double seqs, q;	    /* sequences, and their queries (tokens) */
	double kv;	    /* keys; 0 with sequences: not told */
	double pairs, self; /* as the sizes of these names */
};
struct hb_roof_step {
	struct hb_roof_part prefill, decode;
	double tokens; /* of both; more where the batch was padded; 0: not told */
	double window; /* of the layer that is looked at: keys a query sees at most; 0 = all */
};

/* The name of a step's annotation, as engines write it. False: it is none that tells of a step.
 *   execute_32_context_0(sq0sk0sqsq0sqsk0)_generation_32(sq32sk32785sqsq32sqsk32785)
 *   execute_context_2(512)_generation_30(30)
 *   step[DECODE bs=32], step[EXTEND bs=2 toks=1024] */
bool hb_roof__step(const char *name, struct hb_roof_step *s);
/* Sizes of an attention over this step. False: keys were not told. `window`: keys a query sees at most; 0 =
 * all. */
bool hb_roof__step_attention(const struct hb_roof_step *s, double window, struct hb_roof_in *in);

enum hb_roof_why { /* why there is no model */
		   HB_ROOF_MODELLED,
		   HB_ROOF_NO_LAUNCH,
		   HB_ROOF_GRAPH,
		   HB_ROOF_NO_OPERATOR,
		   HB_ROOF_NO_FORMULA,
		   HB_ROOF_NO_SHAPES,
		   HB_ROOF_NO_TYPES,
		   HB_ROOF_NO_MASK,
		   HB_ROOF_NO_STEP,
		   HB_ROOF_ODD_SHAPES,
		   HB_ROOF_NO_RANKS,
		   HB_ROOF_WHYS,
};
const char *hb_roof__why(enum hb_roof_why w); /* "" for MODELLED */

struct hb_roof_rule; /* of one operator */

const struct hb_roof_rule *hb_roof__rule(const char *op); /* NULL: no formula for it */
/* Sizes of one call. `step` may be NULL; `values` too is looked at for what a collective says of itself. */
enum hb_roof_why hb_roof__fill(const struct hb_roof_rule *r, const struct hb_roof_operands *o,
			       const char *values, const struct hb_roof_step *step, enum hb_roof_kind *kind,
			       struct hb_roof_in *in);
/* What a collective says of itself (the texts of `op` records: `values`). */
struct hb_roof_collective {
	char name[48], group[64]; /* "allreduce"; of the process group, "" not told */
	enum hb_roof_kind kind;	  /* meaningful when modelled */
	bool modelled;		  /* there is a formula for its name */
	enum hb_dtype type;
	double in, out; /* elements; 0 not told */
	double message; /* bytes of the whole; 0 not known */
	unsigned ranks; /* 0 not told */
	uint64_t seq;	/* its number in the group + 1; 0 not told */
};
/* False: it says nothing. */
bool hb_roof__collective(const char *values, struct hb_roof_collective *out);

/* Whether its sizes are the step's too. */
bool hb_roof__needs_step(const struct hb_roof_rule *r);
/* i-th rule's operator, and its formula; NULL at the end. */
const char *hb_roof__rule_at(unsigned i, enum hb_roof_kind *kind);
/* Formulas, sizes and operators as tables of Markdown. */
void hb_roof__describe(FILE *out);

#endif
