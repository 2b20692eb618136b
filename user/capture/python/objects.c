/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "capture/python/objects.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "capture/python/memory.h"

#define HEADER 96 /* of a str or bytes object, at least */

static u64 word_at(const char *bytes, u16 off)
{
	u64 v;

	memcpy(&v, bytes + off, sizeof(v));
	return v;
}

static u32 int_at(const char *bytes, u16 off)
{
	u32 v;

	memcpy(&v, bytes + off, sizeof(v));
	return v;
}

/* ---- text ---- */

static char *put_utf8(char *to, u32 c)
{
	if (c < 0x80) {
		*to++ = (char)c;
	} else if (c < 0x800) {
		*to++ = (char)(0xc0 | c >> 6);
		*to++ = (char)(0x80 | (c & 63));
	} else if (c < 0x10000) {
		*to++ = (char)(0xe0 | c >> 12);
		*to++ = (char)(0x80 | (c >> 6 & 63));
		*to++ = (char)(0x80 | (c & 63));
	} else {
		*to++ = (char)(0xf0 | (c >> 18 & 7));
		*to++ = (char)(0x80 | (c >> 12 & 63));
		*to++ = (char)(0x80 | (c >> 6 & 63));
		*to++ = (char)(0x80 | (c & 63));
	}
	return to;
}

void hb_py_text__utf8(const u8 *chars, unsigned kind, u32 n, char *buf)
{
	char *to = buf;

	for (u32 i = 0; i < n; i++) {
		u32 c = chars[i * kind];

		if (kind > 1)
			c |= (u32)chars[i * kind + 1] << 8;
		if (kind > 2)
			c |= (u32)chars[i * kind + 2] << 16 | (u32)chars[i * kind + 3] << 24;
		to = put_utf8(to, c <= 0x10ffff ? c : '?');
	}
	*to = 0;
	hb_text__clean(buf);
}

struct text_header {
	u64 length;
	unsigned kind;
	u16 data; /* offset of the characters */
};

/* Only compact strings: all that a compiler makes. */
static int text_header(const struct hb_py_offsets *o, const char *bytes, struct text_header *h)
{
	u32 state = int_at(bytes, o->str_state) >> o->str_kind_bit;
	bool compact = state >> 3 & 1, ascii = state >> 4 & 1;

	h->kind = state & 7;
	h->length = word_at(bytes, o->str_length);
	h->data = ascii ? o->str_ascii : o->str_compact;
	if (!compact || (h->kind != 1 && h->kind != 2 && h->kind != 4) || (ascii && h->kind != 1) ||
	    h->length > (1u << 20))
		return -EINVAL;
	return 0;
}

int hb_py_object__text(u32 pid, const struct hb_py_offsets *o, u64 addr, char *buf, size_t size)
{
	u8 bytes[HEADER + 4 * HB_PY_TEXT_MAX];
	long n = hb_py_memory__some(pid, addr, bytes, 256); /* most names end within */
	struct text_header h;
	u32 length;

	if (n < HEADER || size < HB_PY_TEXT_SIZE)
		return n < 0 ? (int)n : -EFAULT;
	if (text_header(o, (char *)bytes, &h))
		return -EINVAL;
	length = h.length < HB_PY_TEXT_MAX ? (u32)h.length : HB_PY_TEXT_MAX;
	if (h.data + length * h.kind > (u64)n &&
	    hb_py_memory__read(pid, addr, bytes, h.data + length * h.kind))
		return -EFAULT;
	hb_py_text__utf8(bytes + h.data, h.kind, length, buf);
	return 0;
}

/* ---- bytes ---- */

u8 *hb_py_object__bytes(u32 pid, const struct hb_py_offsets *o, u64 addr, u32 *size)
{
	u64 length;
	u8 *data;

	if (!hb_py_memory__word(pid, addr + o->ob_size, &length) || length > HB_PY_LINES_MAX)
		return NULL;
	data = malloc(length + 1);
	if (data && hb_py_memory__read(pid, addr + o->bytes_data, data, length)) {
		free(data);
		return NULL;
	}
	*size = (u32)length;
	return data;
}

/* ---- code ---- */

size_t hb_py_code__bytes(const struct hb_py_offsets *o)
{
	u16 last = o->code_file;

	last = o->code_name > last ? o->code_name : last;
	last = o->code_qualname > last ? o->code_qualname : last;
	last = o->code_lines > last ? o->code_lines : last;
	last = o->code_firstline > last ? o->code_firstline : last;
	return last + 8u <= HB_PY_CODE_MAX ? last + 8u : 0;
}

void hb_py_code__parse(const struct hb_py_offsets *o, const void *bytes, struct hb_py_code *c)
{
	c->type = word_at(bytes, o->ob_type);
	c->file = word_at(bytes, o->code_file);
	c->name = word_at(bytes, o->code_qualname ? o->code_qualname : o->code_name);
	c->version = o->walk.str_hash ? 0 : word_at(bytes, o->walk.code_mark);
	c->func_name = word_at(bytes, o->code_name);
	c->lines = word_at(bytes, o->code_lines);
	c->firstline = int_at(bytes, o->code_firstline);
	c->units = o->walk.code_bytes ? int_at(bytes, o->ob_size) : 0;
}
