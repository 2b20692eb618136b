/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* `herschel-bpf compare A.hbw B.hbw`: what changed between two windows. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/report/compare.h"
#include "cli/args.h"
#include "cli/cli.h"

struct args {
	const char *file[2];
	int n;
	bool json, all;
	struct hb_compare_opts o;
	struct hb_error error;
};

static const struct argp_option options[] = {
    {"json", 'j', NULL, 0, "Print JSON (always complete)", 0},
    {"all", 'a', NULL, 0, "Print what did not change too", 0},
    {"least", 'l', "SHARE", 0, "Smallest change that counts, as in 10% (default 5%)", 0},
    {0},
};

static int parse_least(struct args *a, const char *arg)
{
	char *end;
	double v = strtod(arg, &end);

	if (end == arg || strcmp(end, "%") != 0 || !(v > 0 && v < 100))
		return -hb_error__set(&a->error, HB_EXIT_USAGE, -EINVAL,
				      "--least takes per cent above 0 and below 100, as in 10%%, not \"%s\"",
				      arg);
	a->o.least = v / 100;
	return 0;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct args *a = state->input;

	switch (key) {
	case 'j':
		a->json = true;
		return 0;
	case 'a':
		a->all = true;
		return 0;
	case 'l':
		return parse_least(a, arg);
	case ARGP_KEY_ARG:
		if (a->n == 2)
			return -hb_error__set(&a->error, HB_EXIT_USAGE, -EINVAL,
					      "compare takes two window files; \"%s\" is one too many", arg);
		a->file[a->n++] = arg;
		return 0;
	case ARGP_KEY_END:
		if (a->n == 2)
			return 0;
		return -hb_error__set(
		    &a->error, HB_EXIT_USAGE, -EINVAL,
		    "compare needs two window files, before and after: herschel-bpf compare A.hbw "
		    "B.hbw");
	}
	return ARGP_ERR_UNKNOWN;
}

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .args_doc = "A.hbw B.hbw",
    .doc = "Says what changed from window A to window B of one service: steps, findings, calls, waits, "
	   "kernels, each "
	   "with its spread and a test that tells a change from chance; and whether the two can be compared "
	   "at all. "
	   "Needs no root and no traced process.",
};

static int print(struct args *a, struct hb_window *const *w)
{
	struct hb_compare *c = hb_compare__new(w[0], a->file[0], w[1], a->file[1], &a->o, &a->error);
	int rc;

	if (!c)
		return hb_cli__fail(&a->error);
	/* A pipe or a file has no width: what is looked for there (grep) must not be cut. */
	rc = a->json ? hb_compare__json(c, stdout, &a->error)
		     : hb_compare__text(c, stdout, !isatty(STDOUT_FILENO), a->all, &a->error);
	hb_compare__free(c);
	if (rc && ferror(stdout)) /* main() says so */
		return HB_EXIT_FAILED;
	if (rc)
		hb_error__set(&a->error, HB_EXIT_FAILED, rc, "the comparison could not be written: %s",
			      strerror(-rc));
	return rc ? hb_cli__fail(&a->error) : HB_EXIT_OK;
}

static int run(int argc, char **argv)
{
	struct args a = {0};
	struct hb_window *w[2] = {NULL, NULL};
	int rc = hb_cli__parse(&argp, argc, argv, &a, &a.error);

	if (rc != HB_CLI_GO)
		return rc;
	signal(SIGPIPE, SIG_DFL); /* `compare | head`: a reader who has seen enough ends it */
	w[0] = hb_window__open(a.file[0], &a.error);
	w[1] = w[0] ? hb_window__open(a.file[1], &a.error) : NULL;
	rc = w[1] ? print(&a, w) : hb_cli__fail(&a.error);
	for (int k = 0; k < 2; k++)
		if (w[k])
			hb_window__close(w[k]);
	return rc;
}

HB_COMMAND(compare) = {
    .name = "compare",
    .doc = "say what changed between two windows",
    .run = run,
};
