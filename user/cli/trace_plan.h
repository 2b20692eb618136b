/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* `trace --plan`: the options that a plan stands for, if it is approved. */
#ifndef HB_CLI_TRACE_PLAN_H
#define HB_CLI_TRACE_PLAN_H

#include "cli/trace_args.h"
#include "planfile/planfile.h"

struct hb_trace_plan;

/* Reads a->plan, sees whether it is approved, whether the command line says anything else and whether its
 * target is there, and makes `a` what it asks for. NULL with a sentence in a->error. `a` points into the
 * result. */
struct hb_trace_plan *hb_trace_plan__take(struct hb_trace_args *a);
void hb_trace_plan__free(struct hb_trace_plan *t); /* NULL is fine */

/* Options of a plan into `a` (which points into `p` then), as if typed. 0 or -errno with a sentence: what the
 * options do not take. The target is left out. */
int hb_trace_plan__options(const struct hb_planfile *p, struct hb_trace_args *a);

#endif
