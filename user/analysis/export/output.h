/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Where an export goes: the standard output, or a file that appears whole or not at all. */
#ifndef HB_EXPORT_OUTPUT_H
#define HB_EXPORT_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"

struct hb_output;

/*
 * `path` "-": the standard output. Else PATH is written under a name of its own beside it (O_EXCL, mode 0600:
 * an export tells as much as its window) and gets its name in commit(); an existing PATH is refused without
 * `force`, and a symbolic link is replaced, never followed. Devices and pipes are written to directly. NULL
 * with a sentence.
 */
struct hb_output *hb_output__new(const char *path, bool force, struct hb_error *e);
FILE *hb_output__file(struct hb_output *o);
/* Flushes, names and frees: 0, -EPIPE when the reader of the standard output has gone, or -errno with a
 * sentence. */
int hb_output__commit(struct hb_output *o, struct hb_error *e);
/* Removes what was written and frees. NULL is fine. */
void hb_output__abort(struct hb_output *o);
/* Path of the unfinished file, NULL when there is none: for a signal handler that unlinks it. */
const char *hb_output__unfinished(const struct hb_output *o);

#endif
