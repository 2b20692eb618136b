/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Probe tables, the plan made of them for given processes, and its attachment.
 *
 *   tables   text (tables/ *.tbl, embedded; --probes FILE): which functions of which libraries mean what
 *   plan     tables x mapped files of the targets: sites to attach, rows for the window, refusals with
 * reasons attach   one uprobe_multi link per (program, process, file), or single uprobes
 */
#ifndef HB_PROBES_H
#define HB_PROBES_H

#include "base/error.h"
#include "capture/symbols/symbols.h"
#include "capture/target/target.h"
#include "schema/wire.h"
#include "window/window.h"

/* ---- tables ---- */

struct hb_row {		   /* one line of a table; the language is described in docs/probe-tables.md */
	const char *table; /* file or embedded name, for messages */
	int line;
	char *library; /* basename glob(s), '|' between alternatives */
	char *symbol;  /* name or glob, without version suffix unless it means one version only */
	char *except;  /* globs not meant by `symbol`, '!' between them; NULL: none */
	char *api;     /* "cuda-driver", ... */
	u8 cls, layer, handle;
	bool on;      /* default on */
	bool ret;     /* entry and return; only ever together with nothrow */
	bool nothrow; /* declared never to throw: a return probe is allowed */
	bool builtin; /* of a table compiled in, whose declarations were checked */
	struct hb_arg args[HB_SLOT_COUNT];
};

struct hb_tables;
struct hb_tables *hb_tables__new(void);
void hb_tables__free(struct hb_tables *t);
/* The tables compiled in. */
int hb_tables__add_embedded(struct hb_tables *t, struct hb_error *e);
/* A file; its rows come before (win over) rows already there for the same function. Errors name file, line,
 * column and what was expected (exit 2), and leave the tables as they were. Pointers into rows live until the
 * next addition. */
int hb_tables__add_file(struct hb_tables *t, const char *path, struct hb_error *e);
int hb_tables__add_text(struct hb_tables *t, const char *name, const char *text, size_t size,
			struct hb_error *e);
const struct hb_row *hb_tables__rows(const struct hb_tables *t, u32 *n);
/* The row that speaks for a function: the first that covers library and symbol, be it on or off. NULL: none.
 */
const struct hb_row *hb_tables__match(const struct hb_tables *t, const char *path, const char *symbol);

/* A row's library globs match the path's basename, also that of a renamed copy: "libcudart.e8e8b82a.so.12"
 * and "libcudart-d0da41ae.so.12" are covered by "libcudart.so*". */
bool hb_row__covers_library(const struct hb_row *r, const char *path);
/* "cuMemAlloc" covers cuMemAlloc, cuMemAlloc_v2, cuMemAlloc_v2_ptsz ..; "cuMemAlloc_v2" covers _v2 and
 * _v2_ptsz. Compiler's parts of functions ("name.cold") are never covered. */
bool hb_row__covers_symbol(const struct hb_row *r, const char *symbol);
/* Every symbol of the file that the row covers, in whatever state. Stops when cb returns non-zero and returns
 * that. */
int hb_row__each(const struct hb_row *r, const struct hb_elf *f, int (*cb)(const struct hb_sym *s, void *arg),
		 void *arg);
/* The row's arguments as in a table: "function=a0 grid=a1,a2,a3". Into buf. */
const char *hb_row__args(const struct hb_row *r, char *buf, size_t size);

/* Symbol without version suffix (_v2, _v3, _ptsz, _ptds, _spt, and combinations): the name shown. Into buf.
 */
const char *hb_symbol__base(const char *symbol, char *buf, size_t size);

/* ---- plan ---- */

/* auto sees each operation once: launches and graph launches in the driver library where it is mapped (cuBLAS
 * and Triton never pass through the runtime), everything else at the runtime where mapped, else at the
 * driver. An API family that has only one layer (nccl, hip, opencl) is taken there whatever is asked for. */
enum hb_layers { HB_LAYERS_AUTO, HB_LAYERS_RUNTIME, HB_LAYERS_DRIVER, HB_LAYERS_BOTH };

struct hb_plan_opts {
	enum hb_layers layers;
	bool all_rows;	 /* rows that are off by default too */
	bool no_returns; /* entry-only everywhere */
	u32 timed; /* bits of enum hb_class: both ends of these calls, where a return probe is allowed */
};

struct hb_site {     /* one place to attach in one file */
	u32 probe;   /* id: index of array `probes`, row of the window's probe table, attach cookie */
	u64 offset;  /* file offset */
	u64 counter; /* of a USDT probe: what turns it on, file offset; 0: none */
	bool ret;    /* with a return probe */
	const struct hb_row *row;
	char *symbol;
};

/* What is attached in one library file, identified by (dev, ino). The same file may occur twice with
 * different sites: which layer serves which class, and whether return probes are safe, are decided per
 * process. */
struct hb_plan_file {
	u64 ino;
	u32 dev;
	char *path; /* as the target names it */
	struct hb_site *sites;
	u32 n_sites;
};

struct hb_refusal { /* something that will not be probed, and why: one line for a person */
	char *file, *symbol, *why;
};

struct hb_plan;
struct hb_plan *hb_plan__new(const struct hb_tables *t, const struct hb_plan_opts *o);
void hb_plan__free(struct hb_plan *p);
/* Looks at a process's executable mappings and chooses its files; call it again after reload_maps. Returns
 * the number of files that were not planned before (their sites got new ids), or -errno. */
int hb_plan__add_process(struct hb_plan *p, const struct hb_process *proc, struct hb_error *e);
/* All files planned so far; entries never move nor change. */
const struct hb_plan_file *hb_plan__files(const struct hb_plan *p, u32 *n);
/* The files chosen for one process: what to attach there. The array lives until the next call with this plan.
 */
const struct hb_plan_file *const *hb_plan__files_of(struct hb_plan *p, u32 pid, u32 *n);
/* The mapping of a planned file in a process, NULL when it is not mapped there. */
const struct hb_mapping *hb_plan_file__mapping(const struct hb_plan_file *f, const struct hb_process *proc);
const struct hb_refusal *hb_plan__refusals(const struct hb_plan *p, u32 *n);
/* Descriptors for the BPF array and rows for the window, for ids first..; ids are dense from 1. */
u32 hb_plan__n_probes(const struct hb_plan *p);
const struct hb_probe_desc *hb_plan__desc(const struct hb_plan *p, u32 id);
int hb_plan__write_rows(const struct hb_plan *p, u32 first, struct hb_window_writer *w);
/* Functions of the tables that this file does not have, "a, b, c" (another version of the library); "" when
 * none. */
const char *hb_plan__absent(const struct hb_plan *p, const struct hb_plan_file *f);
bool hb_plan__simulated(const struct hb_plan *p); /* a planned library exports hb_simulated_accelerator */
/* Which layer each class was taken from, and runtimes that are static, stripped..: lines for a person. */
const char *const *hb_plan__remarks(const struct hb_plan *p, u32 *n);

/* The arrival check. `auto` takes launches at the driver's exported function; a runtime that reaches the
 *driver by another way would then be blind spot. So, for a short while (100 ms) and only in processes where
 *both layers are mapped: files = hb_plan__check_files(plan, pid, &n);	0 files: nothing to check attach them
 *like any other (their probes only count, they record nothing); wait; hb_attach__drop them
 *	hb_plan__check(plan, pid, hits, inner)
 * `hits` and `inner` are sums over CPUs of the BPF arrays of these names, indexed by probe id, n_probes + 1
 *long. Returns true when launches of this process had to be moved to the runtime: the files of the check then
 *belong to hb_plan__files_of(), and the descriptors of their probes say that they record, without an end:
 *load them anew and drop the return probes. */
const struct hb_plan_file *const *hb_plan__check_files(struct hb_plan *p, u32 pid, u32 *n);
/* Enough was counted to decide. */
bool hb_plan__check_ready(struct hb_plan *p, u32 pid, const u64 *hits);
bool hb_plan__check(struct hb_plan *p, u32 pid, const u64 *hits, const u64 *inner);

/* Whether a return probe in a process under a seccomp filter is survived on this kernel: tried in a confined
 * child of our own. Cached. */
bool hb_plan__confined_returns_work(void);

/* ---- attach ---- */

struct hb_attach_ops {		    /* fds of loaded programs, from the skeleton */
	int entry_multi, ret_multi; /* -1 when the kernel has no uprobe_multi */
	int entry_single, ret_single;
	bool session; /* entry_multi says of each call whether it wants to see the return: ret_multi is not
			 used */
};
struct hb_attach;
struct hb_attach *hb_attach__new(const struct hb_attach_ops *ops);
/* Attaches a plan file's sites in one process; may be called again for new processes and files. Idempotent
 * per (pid, file). Sites the kernel refuses are left out (hb_attach__refusals). Returns the number of probes
 * attached, or -errno with a sentence when none could be. */
int hb_attach__file(struct hb_attach *a, const struct hb_process *proc, const struct hb_mapping *m,
		    const struct hb_plan_file *f, struct hb_error *e);
/* This file is attached in this process. */
bool hb_attach__has(const struct hb_attach *a, u32 pid, const struct hb_plan_file *f);
/* Brings a process in line with its plan: drops files no longer chosen, attaches those that are and are not
 * attached yet (calling fn for each), and tries them all even when one fails. Returns the number of probes
 * newly attached, or the first failure when nothing could be attached. */
typedef void (*hb_attached_fn)(const struct hb_plan_file *f, int probes, void *arg);
int hb_attach__process(struct hb_attach *a, struct hb_plan *p, const struct hb_process *proc,
		       hb_attached_fn fn, void *arg, struct hb_error *e);
/* The first half of that: drops what a process no longer is to have. */
void hb_attach__trim(struct hb_attach *a, struct hb_plan *p, const struct hb_process *proc);
/* Links to a program of our own that only counts, to try what would attach; NULL with a sentence (exit 4). */
struct hb_attach *hb_attach__new_trial(bool single, struct hb_error *e);
/* Closes the links of one (pid, file); -ENOENT when there are none. */
int hb_attach__drop(struct hb_attach *a, u32 pid, const struct hb_plan_file *f);
/* Closes only the return probes of one (pid, file). */
int hb_attach__drop_returns(struct hb_attach *a, u32 pid, const struct hb_plan_file *f);
/* Forgets a process that has exited: its links are closed with the rest, a reused pid attaches anew. */
void hb_attach__forget(struct hb_attach *a, u32 pid);
u32 hb_attach__links(const struct hb_attach *a);
const struct hb_refusal *hb_attach__refusals(const struct hb_attach *a, u32 *n);
/* Closes all links in parallel; returns within deadline_ns (monotonic) even when the kernel is slow (the rest
 * is closed by helper threads, or by the kernel when we exit). Idempotent. */
void hb_attach__detach(struct hb_attach *a, u64 deadline_ns);
void hb_attach__free(struct hb_attach *a);

/* True when the kernel has BPF_TRACE_UPROBE_MULTI (6.6): found by making such a link on ourselves and being
 * hit, from a second thread (before 6.10 the pid filter saw one thread only). Cached. */
bool hb_attach__has_multi(void);
/* True when the kernel has BPF_TRACE_UPROBE_SESSION (6.13): found as above. Cached. */
bool hb_attach__has_session(void);
/* Marks a loaded object's program, before load, as one for uprobe_multi links. */
#define HB_UPROBE_SESSION 57
#define HB_UPROBE_MULTI	  48 /* BPF_TRACE_UPROBE_MULTI; Debian 12's headers are older */

/* Sums the per-CPU array `fd` (hits, inner) into sums[0..n]: for ids up to n. 0 or -errno. */
int hb_probes__sum(int fd, u32 n, u64 *sums);
/* Timed calls entered and not returned: read map `open_calls` after the detach; goes into loss as
 * `unfinished`. */
u64 hb_probes__open_calls(int fd);

#endif
