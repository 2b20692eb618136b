/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Window -> other people's formats. One file per format, each with one HB_EXPORTER(name) = {...}; the list is
 * made at build time from those lines. An exporter streams: memory is bounded by tables and open intervals,
 * not by records, unless its format demands sorting (then say so in `doc`).
 */
#ifndef HB_EXPORT_H
#define HB_EXPORT_H

#include <stdbool.h>
#include <stdio.h>
#include "base/error.h"
#include "window/window.h"

struct hb_exporter {
	const char *name; /* as in --format */
	const char *doc;  /* one line for --help */
	bool bare;	  /* the format has no place for loss, damage and "simulated": said on stderr */
	/* Writes everything; 0 or -errno with a sentence. Also exports what there is of a damaged window. */
	int (*run)(struct hb_window *w, FILE *out, struct hb_error *e);
};

#define HB_EXPORTER(name) const struct hb_exporter hb_exporter_##name

/* All exporters, NULL-terminated. */
const struct hb_exporter *const *hb_exporters(void);
const struct hb_exporter *hb_exporter__find(const char *name);

#endif
