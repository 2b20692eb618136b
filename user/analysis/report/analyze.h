/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Why it is slow: a window's verdict, findings and device tables, told to a person or to a program. */
#ifndef HB_ANALYZE_H
#define HB_ANALYZE_H

#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"
#include "planfile/planfile.h"
#include "window/window.h"

struct hb_analysis;
struct hb_thresholds;
struct hb_longest_opts;
struct hb_roofline_opts;

struct hb_analysis_opts {
	bool linked_only; /* leave out device operations without a call that launched them */
	const struct hb_thresholds *thresholds;	 /* of the patterns; NULL: the defaults */
	const struct hb_roofline_opts *roofline; /* devices and model; NULL: the built-in peaks, no model */
	const struct hb_longest_opts *critical;	 /* the critical path of this; NULL: none is asked for */
};

struct hb_analysis_page {
	unsigned rows; /* of one table; 0 = all */
	bool wide;     /* cut nothing: for a file or another program */
};

/* Reads and analyses a window, which must stay open as long. `o` may be NULL. NULL with a sentence: out of
 * memory, or the critical path of something that is not there; a damaged window gives an analysis of what
 * there is. */
struct hb_analysis *hb_analysis__new(struct hb_window *w, const struct hb_analysis_opts *o,
				     struct hb_error *e);
void hb_analysis__free(struct hb_analysis *a);

/* Text, 120 columns at most unless `wide`; 0 or -errno. */
int hb_analysis__text(const struct hb_analysis *a, FILE *out, const struct hb_analysis_page *page,
		      struct hb_error *e);
/* One JSON object, docs/analyze-json.md; no row is left out. `file`: its member of that name, NULL none. */
int hb_analysis__json(const struct hb_analysis *a, const char *file, FILE *out, struct hb_error *e);
/* One page for a browser that asks no network for anything; docs/analyze-html.md. `file`: its title. Its size
 * is bounded, some MB at most. */
int hb_analysis__html(const struct hb_analysis *a, const char *file, FILE *out, struct hb_error *e);

/* What a further window should record (patterns/settle.h), and how many findings are less than sure. NULL:
 * none of them can be settled by a recording (e->err is 0), or a sentence. The caller frees it. */
struct hb_planfile *hb_analysis__plan(const struct hb_analysis *a, const char *file, u32 *n_open,
				      struct hb_error *e);

#endif
