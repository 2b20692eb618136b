/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* `herschel-bpf report FILE`: everything a window has, in tables or as JSON. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/report/report.h"
#include "base/text.h"
#include "cli/args.h"
#include "cli/cli.h"

struct args {
	const char *file;
	bool json;
	struct hb_report_opts o;
	struct hb_error error;
};

static const struct argp_option options[] = {
    {"json", 'j', NULL, 0, "Print JSON (always complete)", 0},
    {"rows", 'r', "N", 0, "Rows of one table, most expensive first; 0 = all (default 40)", 0},
    {0},
};

static int parse_rows(struct args *a, const char *arg)
{
	char *end;
	long n = strtol(arg, &end, 10);

	if (*end || end == arg || n < 0 || n > 1000000)
		return -hb_error__set(&a->error, HB_EXIT_USAGE, -EINVAL,
				      "--rows takes a number from 0 (all) to 1000000, not \"%s\"", arg);
	a->o.rows = (unsigned)n;
	return 0;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct args *a = state->input;

	switch (key) {
	case 'j':
		a->json = true;
		return 0;
	case 'r':
		return parse_rows(a, arg);
	case ARGP_KEY_ARG:
		if (a->file)
			return -hb_error__set(&a->error, HB_EXIT_USAGE, -EINVAL,
					      "report takes one window file; \"%s\" is one too many", arg);
		a->file = arg;
		return 0;
	case ARGP_KEY_END:
		if (!a->file)
			return -hb_error__set(&a->error, HB_EXIT_USAGE, -EINVAL,
					      "report needs a window file: herschel-bpf report FILE.hbw");
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .args_doc = "FILE.hbw",
    .doc = "Prints the tables of a window: calls, blocking system calls, time off the CPU and who ended it, "
	   "wake-ups "
	   "between processes, threads, functions, stacks, loss, cost. Needs no root and no traced process.",
};

static int print(struct hb_window *w, struct args *a)
{
	int rc =
	    a->json ? hb_report__json(w, stdout, &a->error) : hb_report__text(w, stdout, &a->o, &a->error);

	if (rc && ferror(stdout)) /* main() says so */
		return HB_EXIT_FAILED;
	if (rc)
		hb_error__set(&a->error, HB_EXIT_FAILED, rc, "the report could not be written: %s",
			      strerror(-rc));
	return rc ? hb_cli__fail(&a->error) : HB_EXIT_OK;
}

static int run(int argc, char **argv)
{
	/* A pipe or a file has no width: what is looked for there (grep) must not be cut. */
	struct args a = {.o.rows = 40, .o.wide = !isatty(STDOUT_FILENO)};
	int rc = hb_cli__parse(&argp, argc, argv, &a, &a.error);
	struct hb_window *w;

	if (rc != HB_CLI_GO)
		return rc;
	signal(SIGPIPE, SIG_DFL); /* `report | head`: a reader who has seen enough ends it */
	w = hb_window__open(a.file, &a.error);
	if (!w)
		return hb_cli__fail(&a.error);
	rc = print(w, &a);
	hb_window__close(w);
	return rc;
}

HB_COMMAND(report) = {
    .name = "report",
    .doc = "print the tables of a window file",
    .run = run,
};
