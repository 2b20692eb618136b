/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The file while it is being written: NAME.part, locked, then renamed. Internal to window/. */
#ifndef HB_WINDOW_PART_H
#define HB_WINDOW_PART_H

#include <stdbool.h>
#include "base/error.h"

/* What hb_part__open would refuse, without opening anything. */
int hb_part__check(const char *path, bool force, struct hb_error *e);

/* Opens PATH.part for writing (see hb_window_writer__new). Returns a locked descriptor and the allocated name
 * in *part, or -errno. */
int hb_part__open(const char *path, bool force, char **part, struct hb_error *e);

/* fsyncs, renames to `path` (which must not exist unless `force`), fsyncs the folder. Closes fd in any case.
 */
int hb_part__finish(int fd, const char *part, const char *path, bool force, struct hb_error *e);

#endif
