/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Processes worth tracing, and what would work on each: asked of the probe tables and of a trial plan, so
 * that a new table is a new kind of process here too. */
#ifndef HB_SESSION_SURVEY_H
#define HB_SESSION_SURVEY_H

#include "capture/probes/probes.h"
#include "capture/target/target.h"

struct hb_survey_library { /* a mapped accelerator library */
	const char *api;   /* as in the tables */
	const char *path;  /* in the process's mount namespace */
	bool visible;	   /* could be opened from here */
	bool deleted;
	u32 layer;     /* enum hb_layer */
	u32 probes;    /* places that would be probed in it */
	char why[160]; /* when not visible or without probes */
};

struct hb_survey_row {
	struct hb_process *p;
	char python[16]; /* "3.11", "3.13t", "?" when the version is not told by a file name; "" no Python */
	bool stripped;	 /* the program has no symbol table: native frames of it stay without names */
	struct hb_survey_library *libs;
	u32 n_libs;
	u32 n_obstacles; /* the first remarks say what stands against tracing, the others come from the plan
			  */
	char **remarks;	 /* lines for a person */
	u32 n_remarks;
};

struct hb_survey;
/* Looks at every process of the machine (pids NULL: only those with an accelerator library or Python are
 * kept) or at the given ones (all are kept). */
struct hb_survey *hb_survey__new(const u32 *pids, u32 n, struct hb_error *e);
void hb_survey__free(struct hb_survey *s);
const struct hb_survey_row *hb_survey__rows(const struct hb_survey *s, u32 *n);
/* Processes that were left out because we may not look at them. */
u32 hb_survey__hidden(const struct hb_survey *s);

/* Version of the Python that a file belongs to, by its name: "/x/libpython3.11.so.1.0" -> "3.11",
 * "/x/python3" -> "?". False when it is no Python. */
bool hb_survey__python(const char *path, char *version, size_t size);

#endif
