/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Foreign traces -> window: the JSON of PyTorch's profiler (Kineto) and of Chrome's tracing, plain or
 * gzipped. What the trace tells becomes the records that a recording of our own would have: calls (accel),
 * work on devices (device), Python functions (py_call), operators and annotations (op), processes and
 * threads. docs/import.md says what becomes what.
 *
 * Two passes with bounded memory: the file is parsed as a stream, rows are sorted by their begin (on disk
 * where they are many), then walked in that order and written in the order of their end.
 */
#ifndef HB_IMPORT_H
#define HB_IMPORT_H

#include "base/error.h"
#include "schema/schema.h"

#define HB_IMPORT_FILES 64

struct hb_import_opts {
	const char *path;	 /* of the trace; "-" is the standard input */
	const char *const *more; /* traces of the same run, by other processes (ranks): n_more of them */
	unsigned n_more;
	const char *output; /* window file */
	bool force;	    /* replace an existing one */
	size_t memory;	    /* bytes for sorting, before it goes to disk; 0: a usual amount */
};

struct hb_import_hole { /* the longest time in which nothing went on */
	u64 ns;
	u64 before, rows; /* rows before it, and in all: spans, calls, work of devices */
};

/* Rows by what became of them. */
struct hb_import_stats {
	u64 bytes;  /* of JSON, after decompression */
	u64 rows;   /* of the trace, all kinds */
	u64 odd;    /* not used, or used with a guess: counted as loss import_odd */
	bool cut;   /* the file ends in the middle, or nothing could be read from somewhere on */
	bool tmp;   /* it was sorted on disk */
	bool apart; /* traces of several ranks that have no moment in common */
	u64 calls;  /* accel records */
	u64 device[HB_DEVKIND_COUNT];
	u64 ops, python;
	u64 start_ns, end_ns; /* of the window */
	struct hb_import_hole hole;
	u64 far; /* few rows that lie before or after it, where it is longer than all the rest; else 0 */
};

/* Writes a window from a trace, or from several of one run: each keeps its own processes, and all are on one
 * clock, by what each says of it. 0, or -errno with a sentence. `s` may be NULL. What could not be used is
 * counted in the window (loss) and explained there (notes). */
int hb_import__run(const struct hb_import_opts *o, struct hb_import_stats *s, struct hb_error *e);

#endif
