/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a further window should record: for findings that rest on too little, and what it would cost. */
#ifndef HB_SETTLE_H
#define HB_SETTLE_H

#include "analysis/patterns/patterns.h"
#include "planfile/planfile.h"

struct hb_settle_input {
	struct hb_window *window;
	const char *file; /* it was read from; NULL: not known */
	const struct hb_model *model;
	const struct hb_findings *findings;
	u32 *n_open; /* out: findings below high confidence that are no effects; NULL: not asked */
};

/* A plan with what the patterns' `record` says of each finding below high confidence that is no effect of
 * another; when nothing was found, with what those need that were not checked. NULL: nothing is open that a
 * recording could settle (e->err is 0), or with a sentence: the window names no process or boot (an imported
 * trace), out of memory. The caller frees it. */
struct hb_planfile *hb_settle__plan(const struct hb_settle_input *in, struct hb_error *e);

#endif
