/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The parts of `herschel-bpf probes` that live in files of their own. */
#ifndef HB_CLI_PROBES_H
#define HB_CLI_PROBES_H

#include "capture/probes/probes.h"

#define HB_CLI_MAX_TABLES 32 /* --probes FILE, repeated */

/* Like hb_command.run; argv[0] is "herschel-bpf probes show". */
int hb_cli_probes__show(int argc, char **argv);
int hb_cli_probes__check(int argc, char **argv);

/* The embedded tables with the files before them, the last file first. NULL with a sentence. `files` ends
 * with NULL. */
struct hb_tables *hb_cli_probes__tables(const char *const *files, struct hb_error *e);

#endif
