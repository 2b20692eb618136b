/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* argp as this program wants it: one sentence for a wrong option instead of a usage page, exit code 2. */
#ifndef HB_CLI_ARGS_H
#define HB_CLI_ARGS_H

#include <argp.h>

#include "base/error.h"

/* Go on, nothing to return yet. */
#define HB_CLI_GO (-1)

/* Parses; `--help` and `--usage` print to stdout. The parser sets `e` for values it refuses (and returns
 * EINVAL). Returns HB_CLI_GO, or the exit code with which the command is finished (errors are printed). */
int hb_cli__parse(const struct argp *argp, int argc, char **argv, void *input, struct hb_error *e);

#endif
