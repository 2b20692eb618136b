/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The bytes of a trace file, gzipped or not, read ahead by a thread of its own. */
#ifndef HB_IMPORT_SOURCE_H
#define HB_IMPORT_SOURCE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct hb_source;

/* Opens PATH ("-": the standard input) and starts to read. NULL with a sentence. */
struct hb_source *hb_source__new(const char *path, struct hb_error *e);
void hb_source__free(struct hb_source *s); /* NULL is fine */

/* Up to `size` bytes; 0 at the end, -errno when the disk failed. */
long hb_source__read(struct hb_source *s, void *buf, size_t size);
/* After the end: compressed data ended too early or was broken, so that the rest is missing. */
bool hb_source__cut(const struct hb_source *s);

#endif
