/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What changed between two windows of one service. Both are cut into slices (model/usage.h); of everything
 * counted or timed each slice gives one number per step, or per second where there are no steps, and the two
 * sets of numbers are compared: medians and quartiles, a rank test corrected for the number of questions
 * asked, an interval for the difference. A difference counts when it is neither chance, nor smaller than
 * asked for, nor within what each window shows between its own quarters. docs/compare.md.
 */
#ifndef HB_COMPARE_H
#define HB_COMPARE_H

#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"
#include "window/window.h"

struct hb_compare;

struct hb_compare_opts {
	double least; /* smallest change that counts, part of the larger of the two: 0.05; 0: that */
};

/* Reads both windows, which must stay open as long. The names are those the outputs use. NULL with a
 * sentence: out of memory. */
struct hb_compare *hb_compare__new(struct hb_window *a, const char *name_a, struct hb_window *b,
				   const char *name_b, const struct hb_compare_opts *o, struct hb_error *e);
void hb_compare__free(struct hb_compare *c); /* NULL is fine */

/* Text, 120 columns at most unless `wide`; `all`: what did not change too. 0 or -errno. */
int hb_compare__text(const struct hb_compare *c, FILE *out, bool wide, bool all, struct hb_error *e);
/* One JSON object, always complete: docs/compare.md. */
int hb_compare__json(const struct hb_compare *c, FILE *out, struct hb_error *e);

#endif
