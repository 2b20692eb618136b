/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A growable byte buffer with a sticky out-of-memory flag: append freely, check `oom` once at the end. */
#ifndef HB_BASE_BUF_H
#define HB_BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>

struct hb_buf {
	char *data;
	size_t size, cap;
	bool oom;
};

void hb_buf__free(struct hb_buf *b); /* also resets to empty */
/* Room for `n` more bytes at the end, or NULL (oom set). Does not move `size`. */
void *hb_buf__room(struct hb_buf *b, size_t n);
void hb_buf__add(struct hb_buf *b, const void *data, size_t n);
void hb_buf__printf(struct hb_buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
