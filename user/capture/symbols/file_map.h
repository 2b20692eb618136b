/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A file of a target, mapped for reading. Its owner may cut it short, or its disk may fail, at any moment:
 * what can no longer be read is then zeros here, never a SIGBUS that would end a trace in the middle of a
 * window.
 */
#ifndef HB_FILE_MAP_H
#define HB_FILE_MAP_H

#include <stdbool.h>
#include <stddef.h>

struct hb_file_map;

/* Maps `size` bytes of the file; NULL with errno set. The descriptor may be closed afterwards. */
struct hb_file_map *hb_file_map__new(int fd, size_t size);
void hb_file_map__free(struct hb_file_map *m);
const void *hb_file_map__data(const struct hb_file_map *m);
/* A part could not be read, and reads as zeros since. */
bool hb_file_map__torn(const struct hb_file_map *m);

#endif
