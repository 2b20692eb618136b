/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Cells that summary and full report share: one way to print a duration, a share, a process, a waker. */
#ifndef HB_CELLS_H
#define HB_CELLS_H

#include "analysis/model/model.h"
#include "analysis/report/table.h"

void hb_cell__ns(struct hb_table *t, u64 ns); /* "-" for 0 */
void hb_cell__count(struct hb_table *t, u64 n);
void hb_cell__count_or_dash(struct hb_table *t, u64 n); /* "-" for 0 */
void hb_cell__bytes(struct hb_table *t, u64 n);		/* "-" for 0 */
void hb_cell__share(struct hb_table *t, u64 part, u64 whole);
/* p50, p95, p99, max: four cells, "-" when empty. */
void hb_cell__quantiles(struct hb_table *t, const struct hb_hist *h);
void hb_cell__proc(struct hb_table *t, const struct hb_window *w,
		   const struct hb_proc_stat *p);					    /* "123 name" */
void hb_cell__task(struct hb_table *t, const struct hb_window *w, const struct hb_task *k); /* "123 name" */
void hb_cell__syscall(struct hb_table *t, u16 sysno);					    /* "-" for none */

/* Tables of Python's events: a function each, as in text.c. */
struct hb_table *hb_pytable__exceptions(const struct hb_window *w, const struct hb_model *m, u32 max, u32 *n);
struct hb_table *hb_pytable__gils(const struct hb_window *w, const struct hb_model *m, u32 max, u32 *n);
struct hb_table *hb_pytable__holders(const struct hb_window *w, const struct hb_model *m, u32 max, u32 *n);
struct hb_table *hb_pytable__gcs(const struct hb_window *w, const struct hb_model *m, u32 max, u32 *n);

struct hb_table *hb_pytable__fields(const struct hb_window *w, const struct hb_model *m, u32 max, u32 *n);

/* "python 123 (sendto)", "softirq", "unknown" */
const char *hb_waker__text(const struct hb_window *w, const struct hb_waker_stat *k, char *buf, size_t size);

/* Head lines: the window, the simulated device, damage. Returns lines printed. */
unsigned hb_report__head(const struct hb_window *w, const struct hb_totals *t, FILE *out);
/* "loss: none" (or that it is not known) or one line for each cause, `max` lines at most. */
unsigned hb_report__loss(const struct hb_window *w, FILE *out, unsigned max);
/* What recording cost: the tool's own CPU, probes in the targets, programs on the whole machine: three lines
 * at most. */
void hb_report__cost(const struct hb_totals *t, FILE *out);

#endif
