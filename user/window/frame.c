/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "window/frame.h"
#include "window/window.h"

#include <string.h>

#include <zlib.h>
#include <zstd.h>

u32 hb_frame__crc(const void *data, size_t n)
{
	return (u32)crc32_z(crc32_z(0, NULL, 0), data, n);
}

static u32 head_crc(const struct hb_frame_head *h)
{
	return hb_frame__crc(h, offsetof(struct hb_frame_head, head_crc));
}

void hb_frame__seal(struct hb_frame_head *h, const void *body, size_t n_body, const void *follow,
		    size_t n_follow)
{
	h->magic = HB_SKIP_MAGIC;
	h->size = (u32)(HB_HEAD_REST + n_body);
	h->tag = HB_FRAME_TAG;
	h->major = HB_WINDOW_MAJOR;
	h->minor = HB_WINDOW_MINOR;
	h->follow = (u32)n_follow;
	h->body_crc = hb_frame__crc(body, n_body);
	h->follow_crc = hb_frame__crc(follow, n_follow);
	h->head_crc = head_crc(h);
}

bool hb_frame__head_ok(const struct hb_frame_head *h)
{
	return h->magic == HB_SKIP_MAGIC && h->tag == HB_FRAME_TAG && h->head_crc == head_crc(h) &&
	       h->size >= HB_HEAD_REST && hb_frame__body(h) <= HB_MAX_BODY && h->follow <= HB_MAX_FOLLOW &&
	       h->raw <= HB_MAX_RAW;
}

/* Compresses into the room behind the head; 0 when that gains nothing. */
static size_t squeeze(void *dst, size_t room, const void *body, size_t n)
{
	size_t z = n < 64 ? 0 : ZSTD_compress(dst, room, body, n, 1);

	return z && !ZSTD_isError(z) && z < n ? z : 0;
}

void hb_frame__add(struct hb_buf *out, enum hb_frame_kind kind, u32 seq, const void *body, size_t n)
{
	struct hb_frame_head h = {.kind = (u8)kind, .seq = seq, .raw = (u32)n};
	size_t room = ZSTD_compressBound(n), z;
	char *p = hb_buf__room(out, sizeof(h) + room);

	if (!p)
		return;
	/* The schema stays text that strings(1) shows. */
	z = kind == HB_FRAME_SCHEMA ? 0 : squeeze(p + sizeof(h), room, body, n);
	if (z)
		h.flags = HB_FRAME_ZSTD;
	else
		memcpy(p + sizeof(h), body, n);
	hb_frame__seal(&h, p + sizeof(h), z ? z : n, NULL, 0);
	memcpy(p, &h, sizeof(h));
	out->size += sizeof(h) + (z ? z : n);
}

bool hb_frame__data_ok(const struct hb_frame_head *h, const void *body)
{
	struct hb_data_head d;
	struct hb_data_type t;
	u64 records = 0, bytes = 0;
	int last = -1;

	if (hb_frame__body(h) < sizeof(d))
		return false;
	memcpy(&d, body, sizeof(d));
	if (d.stream >= HB_MAX_STREAMS || d.n_types > 256 || !d.count ||
	    hb_frame__body(h) < sizeof(d) + (size_t)d.n_types * sizeof(t))
		return false;
	for (u32 i = 0; i < d.n_types; i++) {
		memcpy(&t, (const char *)body + sizeof(d) + i * sizeof(t), sizeof(t));
		if (t.type <= last || !t.words || !t.count)
			return false;
		last = t.type;
		records += t.count;
		bytes += (u64)t.count * (8u + 8u * t.words);
	}
	return records == d.count && bytes == h->raw;
}
