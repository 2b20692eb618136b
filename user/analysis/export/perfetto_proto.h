/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Protocol buffers, the writing half: fields appended to a buffer. The wire format is a dozen lines, so that
 * no generator and no library is needed; out of memory is sticky in the buffer.
 */
#ifndef HB_PERFETTO_PROTO_H
#define HB_PERFETTO_PROTO_H

#include <stdint.h>
#include <string.h>

#include "base/buf.h"

enum { HB_PB_VARINT = 0, HB_PB_FIXED64 = 1, HB_PB_BYTES = 2 }; /* wire types */

static inline void hb_pb__varint(struct hb_buf *b, uint64_t v)
{
	unsigned char *p = hb_buf__room(b, 10);
	size_t n = 0;

	if (!p)
		return;
	for (; v >= 0x80; v >>= 7)
		p[n++] = (unsigned char)(v | 0x80);
	p[n++] = (unsigned char)v;
	b->size += n;
}

static inline void hb_pb__tag(struct hb_buf *b, unsigned field, unsigned wire)
{
	hb_pb__varint(b, (uint64_t)field << 3 | wire);
}

/* Also for bool, enum, and int32/int64 (negative ones take ten bytes). */
static inline void hb_pb__uint(struct hb_buf *b, unsigned field, uint64_t v)
{
	hb_pb__tag(b, field, HB_PB_VARINT);
	hb_pb__varint(b, v);
}

static inline void hb_pb__fixed64(struct hb_buf *b, unsigned field, uint64_t v)
{
	unsigned char raw[8];

	for (unsigned i = 0; i < 8; i++)
		raw[i] = (unsigned char)(v >> (8 * i));
	hb_pb__tag(b, field, HB_PB_FIXED64);
	hb_buf__add(b, raw, sizeof(raw));
}

/* A string, or a message that was made elsewhere. */
static inline void hb_pb__bytes(struct hb_buf *b, unsigned field, const void *data, size_t n)
{
	hb_pb__tag(b, field, HB_PB_BYTES);
	hb_pb__varint(b, n);
	hb_buf__add(b, data, n);
}

/* Begins a message inside; what is appended until close() is its content. Returns what close() needs. */
static inline size_t hb_pb__open(struct hb_buf *b, unsigned field)
{
	hb_pb__tag(b, field, HB_PB_BYTES);
	hb_buf__add(b, "", 1);
	return b->size;
}

/* One byte was kept for the length: nearly all messages are shorter than 128, the others move up. */
static inline void hb_pb__close(struct hb_buf *b, size_t at)
{
	size_t len = b->size - at, more = 0;

	while (len >> (7 * (more + 1)))
		more++;
	if (!hb_buf__room(b, more) || !at)
		return;
	if (more)
		memmove(b->data + at + more, b->data + at, len);
	for (size_t i = 0; i <= more; i++)
		b->data[at - 1 + i] = (char)((len >> (7 * i) & 0x7f) | (i < more ? 0x80 : 0));
	b->size += more;
}

#endif
