/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Probe tables, the plan made of them for given processes, and its attachment.
 *
 *   tables   text (tables/ *.tbl, embedded; --probes FILE): which functions of which libraries mean what
 *   plan     tables x mapped files of the targets: sites to attach, rows for the window, refusals with reasons
 *   attach   one uprobe_multi link per (program, process, file), or single uprobes
 */
#ifndef HB_PROBES_H
#define HB_PROBES_H

#include "base/error.h"
#include "capture/symbols/symbols.h"
#include "capture/target/target.h"
#include "schema/wire.h"
#include "window/window.h"

/* ---- tables ---- */

struct hb_row { /* one line of a table */
	const char *table;   /* file or embedded name, for messages */
	int line;
	char *library;	     /* basename glob(s), '|' between alternatives */
	char *symbol;	     /* glob */
	char *api;	     /* "cuda-driver", ... */
	u8 cls, layer, handle;
	bool on;	     /* default on */
	bool ret;	     /* entry and return */
	bool nothrow;	     /* declared never to throw: a return probe is allowed */
	struct hb_arg args[HB_SLOT_COUNT];
};

struct hb_tables;
struct hb_tables *hb_tables__new(void);
void hb_tables__free(struct hb_tables *t);
/* The tables compiled in. */
int hb_tables__add_embedded(struct hb_tables *t, struct hb_error *e);
/* A file; its rows come before (win over) rows already there for the same (library, symbol). Errors name file, line, column and what was
 * expected (exit 2). */
int hb_tables__add_file(struct hb_tables *t, const char *path, struct hb_error *e);
int hb_tables__add_text(struct hb_tables *t, const char *name, const char *text, size_t size, struct hb_error *e);
const struct hb_row *hb_tables__rows(const struct hb_tables *t, u32 *n);
/* Symbol without version suffix (_v2, _v3, _ptsz, _ptds, and combinations): the name shown. Into buf. */
const char *hb_symbol__base(const char *symbol, char *buf, size_t size);

/* ---- plan ---- */

enum hb_layers { HB_LAYERS_AUTO, HB_LAYERS_RUNTIME, HB_LAYERS_DRIVER, HB_LAYERS_BOTH };

struct hb_plan_opts {
	enum hb_layers layers;
	bool all_rows;	    /* rows that are off by default too */
	bool no_returns;    /* entry-only everywhere (confined targets) */
};

struct hb_site { /* one place to attach in one file */
	u32 probe;	/* id: index of array `probes`, row of the window's probe table, attach cookie */
	u64 offset;	/* file offset */
	bool ret;	/* with a return probe */
	const struct hb_row *row;
	char *symbol;
};

struct hb_plan_file { /* one library file, identified by (dev, ino) */
	u64 ino;
	u32 dev;
	char *path;	  /* as the target names it */
	struct hb_site *sites;
	u32 n_sites;
};

struct hb_refusal { /* something that will not be probed, and why: one line for a person */
	char *file, *symbol, *why;
};

struct hb_plan;
struct hb_plan *hb_plan__new(const struct hb_tables *t, const struct hb_plan_opts *o);
void hb_plan__free(struct hb_plan *p);
/* Looks at a process's executable mappings and adds the files not planned yet. Layer choice (auto) is per process.
 * Returns the number of new files or -errno. */
int hb_plan__add_process(struct hb_plan *p, const struct hb_process *proc, struct hb_error *e);
const struct hb_plan_file *hb_plan__files(const struct hb_plan *p, u32 *n);
const struct hb_refusal *hb_plan__refusals(const struct hb_plan *p, u32 *n);
/* Descriptors for the BPF array and rows for the window, for ids first..; ids are dense from 1. */
u32 hb_plan__n_probes(const struct hb_plan *p);
const struct hb_probe_desc *hb_plan__desc(const struct hb_plan *p, u32 id);
int hb_plan__write_rows(const struct hb_plan *p, u32 first, struct hb_window_writer *w);
bool hb_plan__simulated(const struct hb_plan *p); /* a planned library exports hb_simulated_accelerator */
/* Which layer each class was taken from, and runtimes that are static, stripped..: lines for a person. */
const char *const *hb_plan__remarks(const struct hb_plan *p, u32 *n);

/* ---- attach ---- */

struct hb_attach_ops { /* fds of loaded programs, from the skeleton */
	int entry_multi, ret_multi; /* -1 when the kernel has no uprobe_multi */
	int entry_single, ret_single;
};
struct hb_attach;
struct hb_attach *hb_attach__new(const struct hb_attach_ops *ops);
/* Attaches a plan file's sites in one process; may be called again for new processes and files. Idempotent per
 * (pid, file). Returns the number of probes attached, or -errno with a sentence. */
int hb_attach__file(struct hb_attach *a, const struct hb_process *proc, const struct hb_mapping *m,
		    const struct hb_plan_file *f, struct hb_error *e);
u32 hb_attach__links(const struct hb_attach *a);
/* Closes all links in parallel; returns within deadline_ns (monotonic) even when the kernel is slow (the rest is
 * closed by a helper thread). Idempotent. */
void hb_attach__detach(struct hb_attach *a, u64 deadline_ns);
void hb_attach__free(struct hb_attach *a);

/* True when the kernel has BPF_TRACE_UPROBE_MULTI (6.6): found by making such a link on ourselves and being hit, from a
 * second thread (before 6.10 the pid filter saw one thread only). Cached. */
bool hb_attach__has_multi(void);

#endif
