/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The JSON of a trace as a stream of rows, with what traces have that JSON has not: NaN and Infinity, broken
 * strings, an end in the middle. Memory follows the longest row.
 */
#ifndef HB_IMPORT_PARSE_H
#define HB_IMPORT_PARSE_H

#include "analysis/import/row.h"
#include "analysis/import/source.h"

struct hb_parse_sink {
	void *ctx;
	/* A row; valid until it returns. 0, or an error that ends the parsing. */
	int (*row)(void *ctx, const struct hb_row *r);
	/* A string or number of a member beside the rows, `path` such as "baseTimeNanoseconds",
	 * "deviceProperties.name" or "distributedInfo.rank"; `item`: number of the element of the outermost
	 * list, from 0. */
	int (*head)(void *ctx, const char *path, unsigned item, struct hb_piece value);
};

struct hb_parse_stats {
	u64 bytes;
	u64 rows;
	u64 broken;   /* rows that are not JSON, even with much goodwill, or larger than 64 MiB */
	bool mended;  /* some were made JSON: NaN, Infinity, control characters, bad escapes */
	bool cut;     /* the end is missing */
	bool garbage; /* there is something behind the end */
	bool found;   /* "traceEvents", or a list of rows */
};

/* Reads a trace to its end. 0, the sink's error, or -errno with a sentence. A trace that is broken is no
 * error. */
int hb_parse__run(struct hb_source *src, const struct hb_parse_sink *sink, struct hb_parse_stats *st,
		  struct hb_error *e);

#endif
