/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analysis/export/jbuf.h"

#include <string.h>

#include "base/text.h"

void hb_jbuf__u64(struct hb_buf *b, uint64_t v)
{
	char text[20], *p = text + sizeof(text);

	do {
		*--p = (char)('0' + v % 10);
		v /= 10;
	} while (v);
	hb_buf__add(b, p, (size_t)(text + sizeof(text) - p));
}

void hb_jbuf__s64(struct hb_buf *b, int64_t v)
{
	if (v < 0)
		hb_jbuf__lit(b, "-");
	hb_jbuf__u64(b, v < 0 ? 0 - (uint64_t)v : (uint64_t)v);
}

void hb_jbuf__hex(struct hb_buf *b, uint64_t v)
{
	char text[20], *p = text + sizeof(text);

	*--p = '"';
	do {
		*--p = "0123456789abcdef"[v & 15];
		v >>= 4;
	} while (v);
	*--p = 'x';
	*--p = '0';
	*--p = '"';
	hb_buf__add(b, p, (size_t)(text + sizeof(text) - p));
}

void hb_jbuf__str(struct hb_buf *b, const char *s)
{
	size_t n = strlen(s);
	char *p = hb_buf__room(b, 2 * n + 3), *start = p;

	if (!p)
		return;
	*p++ = '"';
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			*p++ = '\\';
		*p++ = *s;
	}
	*p = 0;
	hb_text__clean(start);
	*p++ = '"';
	b->size += (size_t)(p - start);
}
