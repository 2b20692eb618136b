/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * An analysis as one page for a browser: a single file that asks no network for anything. Styles and scripts
 * are source files of this folder, built into the program; what a window says goes into islands of JSON,
 * which a browser never runs, and reaches the page as text only. The policy in its head lets no script run
 * but ours.
 *
 * Its size is bounded whatever the window holds: spans shorter than can be seen are joined (lod.h), the rest
 * of what was left out is counted and said on the page. docs/analyze-html.md.
 */
#ifndef HB_HTML_H
#define HB_HTML_H

#include <stdio.h>

#include "analysis/model/device.h"
#include "analysis/model/host.h"
#include "analysis/model/longest.h"
#include "analysis/patterns/patterns.h"

struct hb_html {
	struct hb_window *w;
	const struct hb_model *m;
	const struct hb_host *host;	    /* NULL: no timeline of threads */
	const struct hb_devices *devices;   /* NULL: none */
	const struct hb_findings *findings; /* NULL: none; where they lie is shown in all detail */
	const struct hb_longest *longest;   /* NULL: no critical path was asked for */
	const char *title;		    /* of the page: the window's file */
	/* Writes the island "analysis": `analyze --json`. 0 or -errno. */
	int (*analysis)(void *ctx, FILE *out, struct hb_error *e);
	void *ctx;
};

/* Parts of the timeline, in pieces: joined spans of the whole window, and spans around what was found. */
#define HB_HTML_PIECES	120000
#define HB_HTML_DETAIL	40000
#define HB_HTML_THREADS 48    /* rows of threads */
#define HB_HTML_ROWS	200   /* of one table */
#define HB_HTML_FRAMES	12000 /* of one flame graph */

/* 0, or -errno with a sentence when out of memory. */
int hb_html__write(const struct hb_html *h, FILE *out, struct hb_error *e);

#endif
