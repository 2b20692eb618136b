/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What an operator was called with, out of the texts that `op` records keep: sizes, types and values of its
 * inputs. */
#ifndef HB_ROOF_SHAPE_H
#define HB_ROOF_SHAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/model/dtype.h"

#define HB_ROOF_DIMS	 8
#define HB_ROOF_OPERANDS 24

struct hb_roof_operand {
	double dim[HB_ROOF_DIMS];
	uint8_t n;    /* dimensions; 0: a number, or nothing */
	bool list;    /* a list of tensors: sizes are not kept */
	uint8_t type; /* enum hb_dtype; NONE: no tensor, or of an unknown type */
	bool known;   /* `value` is: of a number; 1 and 0 of True and False */
	int64_t value;
};

struct hb_roof_operands {
	struct hb_roof_operand of[HB_ROOF_OPERANDS];
	unsigned n;
	bool typed;  /* types were told */
	bool valued; /* values were told */
};

/* shapes: [[141,512],[512],[],[[1,2],[3]]]; types: ["c10::BFloat16","Scalar"]; values: ["","False","0.5"].
 * Empty texts: not told. False: these are no such lists, or more than is looked at; `o` is of no use then. */
bool hb_roof__operands(const char *shapes, const char *types, const char *values, struct hb_roof_operands *o);
double hb_roof__elements(const struct hb_roof_operand *o); /* 1 for a number */

#endif
