/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* `herschel-bpf probes`: list prints the tables; show and check (probes_plan.c) look at processes. */
#include "cli/probes.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "base/json.h"
#include "base/text.h"
#include "cli/args.h"
#include "cli/cli.h"

struct hb_tables *hb_cli_probes__tables(const char *const *files, struct hb_error *e)
{
	struct hb_tables *t = hb_tables__new();
	int rc = t ? hb_tables__add_embedded(t, e) : hb_error__nomem(e, "probe tables");

	for (; !rc && files && *files; files++)
		rc = hb_tables__add_file(t, *files, e);
	if (!rc)
		return t;
	hb_tables__free(t);
	return NULL;
}

/* ---- list ---- */

struct list {
	const char *files[HB_CLI_MAX_TABLES + 1];
	unsigned n_files;
	const char *glob;
	bool json;
	struct hb_error error;
};

static const struct argp_option list_options[] = {
    {"probes", 'P', "FILE", 0, "Put a table of your own before the built-in ones (may be repeated)", 0},
    {"json", 'j', NULL, 0, "Print JSON", 0},
    {0},
};

static error_t list_parse(int key, char *arg, struct argp_state *state)
{
	struct list *l = state->input;

	switch (key) {
	case 'P':
		if (l->n_files == HB_CLI_MAX_TABLES)
			return -hb_error__set(&l->error, HB_EXIT_USAGE, -EINVAL,
					      "more than %d times --probes", HB_CLI_MAX_TABLES);
		l->files[l->n_files++] = arg;
		return 0;
	case 'j':
		l->json = true;
		return 0;
	case ARGP_KEY_ARG:
		if (l->glob)
			return -hb_error__set(&l->error, HB_EXIT_USAGE, -EINVAL,
					      "\"%s\" is one glob too many; quote it against the shell", arg);
		l->glob = arg;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp list_argp = {
    list_options,
    list_parse,
    "[GLOB]",
    "Print the rows of all probe tables, those that win first; GLOB chooses among functions. "
    "docs/probe-tables.md describes the language.",
    NULL,
    NULL,
    NULL};

static bool chosen(const struct list *l, const struct hb_row *r)
{
	return !l->glob || hb_text__glob(l->glob, r->symbol) || hb_row__covers_symbol(r, l->glob);
}

static bool any_chosen(const struct list *l, const struct hb_row *rows, u32 n)
{
	for (u32 i = 0; i < n; i++)
		if (chosen(l, &rows[i]))
			return true;
	return false;
}

static void symbol_text(const struct hb_row *r, char *buf, size_t size)
{
	snprintf(buf, size, "%s%s%s", r->symbol, r->except ? "!" : "", r->except ? r->except : "");
}

static void print_rows(const struct list *l, const struct hb_row *rows, u32 n)
{
	int lib = 7, sym = 8;
	char symbol[600], args[512];

	for (u32 i = 0; i < n; i++) {
		if (!chosen(l, &rows[i]))
			continue;
		symbol_text(&rows[i], symbol, sizeof(symbol));
		lib = (int)strlen(rows[i].library) > lib ? (int)strlen(rows[i].library) : lib;
		sym = (int)strlen(symbol) > sym ? (int)strlen(symbol) : sym;
	}
	printf("%-12s  %-*s  %-*s  %-10s  %-7s  %-6s  %-7s  %s\n", "API", lib, "LIBRARY", sym, "FUNCTION",
	       "CLASS", "LAYER", "PROBE", "DEFAULT", "ARGUMENTS");
	for (u32 i = 0; i < n; i++) {
		const struct hb_row *r = &rows[i];

		if (!chosen(l, r))
			continue;
		symbol_text(r, symbol, sizeof(symbol));
		printf("%-12s  %-*s  %-*s  %-10s  %-7s  %-6s  %-7s  %s\n", r->api, lib, r->library, sym,
		       symbol, hb_word(HB_WORDS_CLASS, r->cls), hb_word(HB_WORDS_LAYER, r->layer),
		       r->ret ? "return" : "entry", r->on ? "on" : "off",
		       hb_row__args(r, args, sizeof(args)));
	}
}

static int print_json(const struct list *l, const struct hb_row *rows, u32 n)
{
	struct hb_json *j = hb_json__new(stdout, true);
	char symbol[600], args[512];

	if (!j)
		return -ENOMEM;
	hb_json__array(j);
	for (u32 i = 0; i < n; i++) {
		const struct hb_row *r = &rows[i];

		if (!chosen(l, r))
			continue;
		symbol_text(r, symbol, sizeof(symbol));
		hb_json__object(j);
		hb_json__kstring(j, "api", r->api);
		hb_json__kstring(j, "library", r->library);
		hb_json__kstring(j, "function", symbol);
		hb_json__kstring(j, "class", hb_word(HB_WORDS_CLASS, r->cls));
		hb_json__kstring(j, "layer", hb_word(HB_WORDS_LAYER, r->layer));
		hb_json__kbool(j, "return", r->ret);
		hb_json__kbool(j, "nothrow", r->nothrow);
		hb_json__kbool(j, "on", r->on);
		hb_json__kstring(j, "arguments", hb_row__args(r, args, sizeof(args)));
		hb_json__kstring(j, "table", r->table);
		hb_json__ku64(j, "line", (u64)r->line);
		hb_json__end(j);
	}
	hb_json__end(j);
	hb_json__newline(j);
	return hb_json__free(j);
}

static int list(int argc, char **argv)
{
	struct list l = {0};
	int rc = hb_cli__parse(&list_argp, argc, argv, &l, &l.error);
	const struct hb_row *rows;
	struct hb_tables *t;
	u32 n;

	if (rc != HB_CLI_GO)
		return rc;
	t = hb_cli_probes__tables(l.files, &l.error);
	if (!t)
		return hb_cli__fail(&l.error);
	rows = hb_tables__rows(t, &n);
	rc = 0;
	if (l.json)
		rc = print_json(&l, rows, n);
	else if (any_chosen(&l, rows, n))
		print_rows(&l, rows, n);
	if (!rc && l.glob && !any_chosen(&l, rows, n))
		hb_error__set(&l.error, HB_EXIT_FAILED, -ENOENT,
			      "no row of the probe tables speaks for \"%s\"", l.glob);
	if (rc && !ferror(stdout)) /* else main() says so */
		hb_error__set(&l.error, HB_EXIT_FAILED, rc, "the rows could not be printed: %s",
			      strerror(-rc));
	hb_tables__free(t);
	return l.error.err ? hb_cli__fail(&l.error) : HB_EXIT_OK;
}

/* ---- which one ---- */

static const struct {
	const char *name, *full, *doc;
	int (*run)(int argc, char **argv);
} verbs[] = {
    {"list", "herschel-bpf probes list", "print the probe tables", list},
    {"show", "herschel-bpf probes show", "print what would be probed in a process", hb_cli_probes__show},
    {"check", "herschel-bpf probes check", "print what would not be probed in a process, and why",
     hb_cli_probes__check},
};
#define N_VERBS (sizeof(verbs) / sizeof(*verbs))

static int help(void)
{
	printf("Usage: herschel-bpf probes list|show|check [OPTION...]\n\n");
	for (size_t i = 0; i < N_VERBS; i++)
		printf("  %-6s %s\n", verbs[i].name, verbs[i].doc);
	printf("\n`herschel-bpf probes list --help` and so on print the options.\n");
	return HB_EXIT_OK;
}

static int run(int argc, char **argv)
{
	struct hb_error e = {0};
	const char *verb = argc > 1 ? argv[1] : "";

	if (strcmp(verb, "--help") == 0 || strcmp(verb, "-h") == 0 || strcmp(verb, "-?") == 0)
		return help();
	for (size_t i = 0; i < N_VERBS; i++) {
		if (strcmp(verb, verbs[i].name) != 0)
			continue;
		argv[1] = (char *)verbs[i].full;
		return verbs[i].run(argc - 1, argv + 1);
	}
	hb_error__set(&e, HB_EXIT_USAGE, -EINVAL,
		      "%s%s%s; expected `herschel-bpf probes list`, `show` or `check`", *verb ? "\"" : "",
		      *verb ? verb : "nothing to do", *verb ? "\" is no subcommand of probes" : "");
	return hb_cli__fail(&e);
}

HB_COMMAND(probes) = {"probes", "print probe tables, and what would be probed in a process", run};
