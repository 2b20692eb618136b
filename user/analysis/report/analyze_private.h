/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What an analysis is made of. analyze.c builds it; analyze_text.c and analyze_json.c print it,
 * findings_text.c and findings_json.c what the catalogue of patterns found. */
#ifndef HB_ANALYZE_PRIVATE_H
#define HB_ANALYZE_PRIVATE_H

#include "analysis/model/host.h"
#include "analysis/model/longest.h"
#include "analysis/model/operators.h"
#include "analysis/model/roofline.h"
#include "analysis/patterns/patterns.h"
#include "analysis/report/analyze.h"
#include "analysis/report/doc.h"
#include "analysis/report/verdict.h"

struct hb_analysis {
	struct hb_window *w;
	struct hb_analysis_opts o;
	struct hb_model *m;
	struct hb_devices *d;
	struct hb_host *h;
	struct hb_findings *f;
	struct hb_peaks *peaks; /* those built in, when none were given */
	struct hb_roofline *roofline;
	struct hb_longest *longest; /* NULL: not asked for */
	struct hb_operators *operators;
	struct hb_load load;
	struct hb_verdict verdict;
};

/* The critical path, where it is asked for. 0 or -errno with the error set. */
int hb_analysis__find_critical(struct hb_analysis *a, struct hb_error *e);

/* From this share of one core on, in per cent, what the probes took inside of the traced processes is told up
 * in front. */
#define HB_CAUTION_COST 5
/* Why these numbers are to be taken with care: recording itself slowed what was recorded, or clocks disagree.
 * False: no reason. */
bool hb_analysis__caution(const struct hb_analysis *a, char *buf, size_t size);

/* hb_analysis__json() with at most `rows` rows of each table (0 = all); one that has more gets a second
 * member, its key with "_rows": how many there are. */
int hb_analysis__json_rows(const struct hb_analysis *a, const char *file, u32 rows, FILE *out,
			   struct hb_error *e);

/* ---- JSON: members of the object that is open ---- */

/* "findings", "ruled_out", "not_checked". */
void hb_analysis__put_findings(const struct hb_analysis *a, struct hb_doc *d);
/* "steps": one for each process that gives a device work. */
void hb_analysis__put_steps(const struct hb_analysis *a, struct hb_doc *d);

/* "critical_path", where it was asked for. 0 or -ENOMEM. */
int hb_analysis__put_critical(const struct hb_analysis *a, struct hb_doc *d);
/* "operators", "operators_calls". */
void hb_analysis__put_operators(const struct hb_analysis *a, struct hb_doc *d);
/* "roofline", "roofline_no_model", "roofline_devices", "roofline_counts". */
void hb_analysis__put_roofline(const struct hb_analysis *a, struct hb_doc *d);

/* ---- text ---- */

/* Sizes of a row of the roofline: "141x512x512". Returns buf, of 96 bytes. */
const char *hb_roof_row__size(const struct hb_roof_row *r, char *buf, size_t size);
/* Speed of light: at most `rows` rows (0 = all), and what there is no model of. 0 or -ENOMEM. */
int hb_analysis__print_roofline(const struct hb_analysis *a, FILE *out, unsigned width, unsigned rows);

/* The critical path, where it was asked for: at most `rows` rows (0 = all). 0 or -ENOMEM. */
int hb_analysis__print_critical(const struct hb_analysis *a, FILE *out, unsigned width, unsigned rows);
/* Executions of operators: at most `rows` rows (0 = all). 0 or -ENOMEM. */
int hb_analysis__print_operators(const struct hb_analysis *a, FILE *out, unsigned width, unsigned rows);

/* A sentence, broken at blanks where the line is full; lines after the first begin with `indent` blanks. */
void hb_analysis__wrap(FILE *out, unsigned width, unsigned indent, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* Findings, at most `rows` of them (0 = all), and what they cost. */
void hb_analysis__print_findings(const struct hb_analysis *a, FILE *out, unsigned width, unsigned rows);
/* Idle time of a process's device, known and likely, that no finding exposed: added to `out`, which is empty;
 * and how much it is, where findings that rest on samples are taken off, too. 0 or -ENOMEM. */
int hb_analysis__unexplained(const struct hb_analysis *a, u32 pid, struct hb_ivs *out, u64 *ns);
/* The same in words where it is worth a word. */
void hb_analysis__print_unexplained(const struct hb_analysis *a, FILE *out, unsigned width);
/* What was looked at and is not so, and what could not be looked at. */
void hb_analysis__print_rest(const struct hb_analysis *a, FILE *out, unsigned width);
/* Steps of the engine, a line for each process. */
void hb_analysis__print_steps(const struct hb_analysis *a, FILE *out, unsigned width);

#endif
