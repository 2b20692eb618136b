/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/args.h"
#include "cli/cli.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static bool asks_help(int argc, char **argv)
{
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-?") == 0 ||
		    strcmp(argv[i], "-h") == 0)
			return true;
	return false;
}

int hb_cli__parse(const struct argp *argp, int argc, char **argv, void *input, struct hb_error *e)
{
	int at = 0, err;

	if (asks_help(argc, argv)) {
		argp_help(argp, stdout, ARGP_HELP_USAGE | ARGP_HELP_LONG | ARGP_HELP_DOC, argv[0]);
		return HB_EXIT_OK;
	}
	err = argp_parse(argp, argc, argv, ARGP_NO_ERRS | ARGP_NO_EXIT | ARGP_NO_HELP, &at, input);
	if (!err && !e->err)
		return HB_CLI_GO;
	/* argp says only where it stopped: an option it does not know, or one whose value is missing. */
	hb_error__set(e, HB_EXIT_USAGE, -EINVAL,
		      "option \"%s\" is unknown, ambiguous or lacks its value; see `%s --help`",
		      argv[at > 0 && at <= argc ? at - 1 : 0], argv[0]);
	return hb_cli__fail(e);
}
