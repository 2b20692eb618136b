/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Inside of the plan. plan_libs.c reads a library once (which of its functions the tables mean),
 * plan_choose.c decides per process which of them to probe, plan.c gives the decisions ids and hands them
 * out.
 */
#ifndef HB_PLAN_PRIVATE_H
#define HB_PLAN_PRIVATE_H

#include "base/buf.h"
#include "capture/probes/probes.h"

#define HB_MAX_FILES	1024 /* distinct (file, choice) pairs; never moves, so pointers to them stay good */
#define HB_MAX_FAMILIES 32

struct hb_cand { /* a function of a library that a row of the tables covers, and that can be probed */
	const struct hb_row *row;
	char *symbol;
	u64 offset;
	u8 family;
	bool entry; /* a return probe is sound there */
};

struct hb_lib { /* one file, read once */
	u64 ino;
	u32 dev;
	char *path;
	struct hb_cand *cands;
	u32 n, cap;
	bool simulated;
	struct hb_buf absent; /* "cuFoo, cuBar": enabled rows that matched nothing here */
};

/* What is done with a candidate in one process. */
enum hb_pick { HB_PICK_NO, HB_PICK_ENTRY, HB_PICK_RETURN };

struct hb_choice { /* one process */
	u32 pid;
	u64 start_ticks;
	u32 *libs, n_libs, cap_libs;
	u32 *files, n_files, cap_files;	   /* indices into plan->files */
	u32 *checks, n_checks, cap_checks; /* same, for the arrival check */
	bool moved[HB_CLASS_COUNT];	   /* the check found that this class does not arrive at the driver */
	bool returns;			   /* return probes are safe here */
};

struct hb_probe_ref { /* probe id -> site */
	u32 file, site;
};

struct hb_plan {
	const struct hb_tables *tables;
	struct hb_plan_opts o;
	char *families[HB_MAX_FAMILIES];   /* "cuda", "nccl", ... */
	u8 family_layers[HB_MAX_FAMILIES]; /* bits 1 << layer that the tables know */
	u32 n_families;
	u8 *row_family; /* by row */
	u32 *lib_rows;	/* one row of each library glob: names are matched against every mapping */
	u32 n_lib_rows;
	struct hb_lib *libs;
	u32 n_libs, cap_libs;
	struct hb_plan_file *files;
	u64 *file_keys;
	u32 n_files;
	struct hb_probe_ref *probes; /* by id, 0 unused */
	struct hb_probe_desc *descs;
	u32 n_probes;
	struct hb_choice *choices;
	u32 n_choices, cap_choices;
	struct hb_refusal *refusals;
	u32 n_refusals, cap_refusals;
	char **remarks;
	u32 n_remarks, cap_remarks;
	const struct hb_plan_file **out; /* scratch of files_of() */
	u64 static_seen;		 /* executable and family looked at last for a static runtime */
};

/* Room for one more element: the (possibly moved) array, NULL out of memory. */
void *hb_plan__grow(void *array, u32 n, u32 *cap, size_t size);
void hb_plan__refuse(struct hb_plan *p, const char *file, const char *symbol, const char *why);
/* A sentence, kept once. */
void hb_plan__remark(struct hb_plan *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* True when some row is about this library. */
bool hb_plan__covers(const struct hb_plan *p, const char *path);
/* The library behind a mapping, read at first sight: index, or -errno (a refusal was noted). */
int hb_plan__lib(struct hb_plan *p, const struct hb_process *proc, const struct hb_mapping *m);
void hb_lib__free(struct hb_lib *l);
/* True when the process's executable carries the functions of some library's table itself. */
bool hb_plan__has_static(struct hb_plan *p, const struct hb_process *proc, const char *family);

/* Fills choice->files and checks from choice->libs. */
int hb_plan__choose(struct hb_plan *p, struct hb_choice *c);
/* A file of the check whose probes record by now, because the check found that they have to: in this process,
 * or in another one with the same libraries, which shares them. Marks the classes as moved. What the runtime
 * does of such a class never shows at the driver: both layers together see each operation once. */
bool hb_plan__woken(const struct hb_plan *p, struct hb_choice *c, u32 file);
/* Remarks about a choice. */
void hb_plan__explain(struct hb_plan *p, const struct hb_choice *c, const struct hb_process *proc);
/* The layer that serves a class of a family in this process; -1: none. */
int hb_plan__layer_of(const struct hb_plan *p, const struct hb_choice *c, u32 family, u32 cls);
/* The plan file of a library with these picks (one enum hb_pick per candidate), made when it is new: index or
 * -errno. Files with another salt are kept apart, so that their hits are. */
int hb_plan__file(struct hb_plan *p, u32 lib, const u8 *picks, bool quiet, u64 salt);

static inline bool hb_plan__enabled(const struct hb_plan *p, const struct hb_row *r)
{
	return r->on || p->o.all_rows;
}

/* Both layers exist for it, so a layer has to be chosen. */
static inline bool hb_plan__layered(const struct hb_plan *p, u32 family)
{
	const u8 both = 1 << HB_LAYER_DRIVER | 1 << HB_LAYER_RUNTIME;

	return (p->family_layers[family] & both) == both;
}

#endif
