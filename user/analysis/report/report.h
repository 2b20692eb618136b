/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A window told to a person (tables, one screen) or to a program (JSON). Reads the window file only. */
#ifndef HB_REPORT_H
#define HB_REPORT_H

#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"
#include "window/window.h"

struct hb_summary_opts {
	bool no_cost; /* leave out own CPU and the cost */
};

struct hb_report_opts {
	unsigned rows; /* rows of one table; 0 = all */
	bool wide;     /* cut nothing: for a file or another program */
};

/*
 * The one-screen summary (40 lines at most, 100 columns) that `trace` prints at its end: processes, calls by
 * class, blocking system calls, off-CPU reasons with wakers, loss, own CPU and cost. Reads the whole window
 * (it rewinds first), in one pass. Own CPU comes from the meta keys "self_cpu_ns" (all), "self_cpu_setup_ns"
 * (before the window), "self_cpu_window_ns" (in it) and "self_rss" (bytes), the cost from the price records.
 * 0 or -errno.
 */
int hb_report__summary(struct hb_window *w, FILE *out, const struct hb_summary_opts *o);

/* All tables as text, 120 columns at most unless `wide`. */
int hb_report__text(struct hb_window *w, FILE *out, const struct hb_report_opts *o, struct hb_error *e);

/* The same as one JSON object; docs/report-json.md. Always complete: no row is left out. */
int hb_report__json(struct hb_window *w, FILE *out, struct hb_error *e);

#endif
