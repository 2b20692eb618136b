/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What `trace` is asked for: by options, or by a plan that says the same in a file. */
#ifndef HB_CLI_TRACE_ARGS_H
#define HB_CLI_TRACE_ARGS_H

#include "base/buf.h"
#include "capture/python/field.h"
#include "capture/session/session.h"
#include "cli/args.h"

#define HB_TRACE_TABLES	  16
#define HB_TRACE_PATTERNS 64
#define HB_TRACE_GIVEN	  256
#define HB_TRACE_ROWS	  128 /* of tables in files, that the window keeps */
#define HB_TRACE_FACTS	  (HB_TRACE_GIVEN + HB_TRACE_ROWS + 8)

struct hb_trace_args {
	struct hb_session_opts o; /* points into the rest */
	const char *tables[HB_TRACE_TABLES + 1];
	unsigned n_tables;
	struct hb_py_pattern calls[HB_TRACE_PATTERNS];
	struct hb_py_field fields[HB_PY_FIELDS];
	struct hb_buf rows; /* --probe, a line each */
	double strict;	    /* share of loss allowed; negative: not asked */
	bool quiet;
	const char *plan, *signers;
	struct {
		int key;
		const char *arg; /* NULL: takes none */
	} given[HB_TRACE_GIVEN]; /* on the command line */
	unsigned n_given;
	struct hb_session_fact facts[HB_TRACE_FACTS]; /* for the window */
	char *fact_text[2 * HB_TRACE_FACTS];	      /* what of them is ours to free */
	unsigned n_facts, n_fact_texts;
	unsigned n_rows; /* of tables, among the facts */
	struct hb_error error;
};

/* Everything as it is without an option. */
void hb_cli_trace__defaults(struct hb_trace_args *a);
void hb_cli_trace__free(struct hb_trace_args *a);
/* Parses a command line. HB_CLI_GO, or the exit code (the sentence is printed). */
int hb_cli_trace__parse(int argc, char **argv, struct hb_trace_args *a);
/* Takes one option. 0, ARGP_ERR_UNKNOWN, or EINVAL with the sentence in a->error. */
int hb_cli_trace__take(int key, const char *arg, struct hb_trace_args *a);
/* A fact for the window's meta, copied; 0 or -errno with the sentence in a->error. */
int hb_cli_trace__fact(struct hb_trace_args *a, const char *key, const char *value);
/* "option.1" = "calls *:f": what was asked for, whoever asked, so that it can be asked for again. */
int hb_cli_trace__option_fact(struct hb_trace_args *a, const char *name, const char *value);
/* The same of all that was typed and is about what is recorded. */
int hb_cli_trace__given_facts(struct hb_trace_args *a);
/* Options that only make sense together, when all are there. 0 or -errno with the sentence in a->error. */
int hb_cli_trace__check(struct hb_trace_args *a);

/* Key of an option by its long name, -1 when there is none; and the other way round, NULL. */
int hb_cli_trace__key(const char *name);
const char *hb_cli_trace__name(int key);
/* Says how a window is kept and told, not what is recorded in it. */
bool hb_cli_trace__is_handling(int key);

#endif
