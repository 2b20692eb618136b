/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Small files that a person named on the command line. */
#ifndef HB_BASE_FILE_H
#define HB_BASE_FILE_H

#include "base/buf.h"
#include "base/error.h"

/* Appends all of a file to `b`. `what` is what it should be ("a probe table"), for the sentence. -EFBIG
 * beyond `max` bytes (a multiple of 1 MiB), -EISDIR for a directory; does not wait on a pipe without a
 * writer. */
int hb_file__read(const char *path, size_t max, const char *what, struct hb_buf *b, struct hb_error *e);

/* Both are there and are one file, whatever they are called. */
bool hb_file__is_same(const char *a, const char *b);

#endif
