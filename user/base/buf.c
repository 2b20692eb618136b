/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void hb_buf__free(struct hb_buf *b)
{
	free(b->data);
	memset(b, 0, sizeof(*b));
}

void *hb_buf__room(struct hb_buf *b, size_t n)
{
	size_t cap = b->cap ? b->cap : 256;
	char *p;

	if (b->oom)
		return NULL;
	if (b->data && b->cap - b->size >= n)
		return b->data + b->size;
	while (cap - b->size < n) {
		if (cap > (size_t)1 << 60) {
			b->oom = true;
			return NULL;
		}
		cap *= 2;
	}
	p = realloc(b->data, cap);
	if (!p) {
		b->oom = true;
		return NULL;
	}
	b->data = p;
	b->cap = cap;
	return p + b->size;
}

void hb_buf__add(struct hb_buf *b, const void *data, size_t n)
{
	void *p = hb_buf__room(b, n);

	if (!p || !n)
		return;
	memcpy(p, data, n);
	b->size += n;
}

void hb_buf__printf(struct hb_buf *b, const char *fmt, ...)
{
	va_list ap, again;
	int n;
	char *p;

	va_start(ap, fmt);
	va_copy(again, ap);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	p = n < 0 ? NULL : hb_buf__room(b, (size_t)n + 1);
	if (p) {
		vsnprintf(p, (size_t)n + 1, fmt, again);
		b->size += (size_t)n;
	}
	va_end(again);
}
