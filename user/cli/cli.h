/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Subcommands. One file each: parse (argp), call, print. */
#ifndef HB_CLI_H
#define HB_CLI_H

#include "base/error.h"

struct hb_command {
	const char *name;
	const char *doc; /* one line for `herschel-bpf --help` */
	/* argv[0] is "herschel-bpf NAME". Returns an enum hb_exit; prints its own error once (hb_cli__fail).
	 */
	int (*run)(int argc, char **argv);
};

#define HB_COMMAND(name) const struct hb_command hb_command_##name

/* Prints "herschel-bpf: SENTENCE" to stderr and returns the exit code in it. */
int hb_cli__fail(const struct hb_error *e);

#endif
