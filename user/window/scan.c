/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "window/scan.h"
#include "window/frame.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STEP (64u << 10) /* searched at a time after damage */

int hb_scan__read(int fd, void *dst, size_t n, u64 at)
{
	size_t done = 0;

	while (done < n) {
		ssize_t r = pread(fd, (char *)dst + done, n - done, (off_t)(at + done));

		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0)
			return r < 0 ? -errno : -EIO;
		done += (size_t)r;
	}
	return 0;
}

int hb_scan__init(struct hb_scan *s, int fd, u64 size)
{
	memset(s, 0, sizeof(*s));
	s->fd = fd;
	s->size = size;
	s->budget = 8 * size + (16u << 20);
	s->cap = 2 * STEP;
	s->buf = malloc(s->cap);
	return s->buf ? 0 : -ENOMEM;
}

void hb_scan__free(struct hb_scan *s)
{
	free(s->buf);
}

static int room(struct hb_scan *s, size_t n)
{
	u8 *p;

	if (n <= s->cap)
		return 0;
	p = realloc(s->buf, n);
	if (!p)
		return -ENOMEM;
	s->buf = p;
	s->cap = n;
	return 0;
}

static bool head_at(struct hb_scan *s, u64 pos, struct hb_frame_head *h)
{
	if (pos > s->size || s->size - pos < sizeof(*h))
		return false;
	return hb_scan__read(s->fd, h, sizeof(*h), pos) == 0 && hb_frame__head_ok(h);
}

/* Position of the first sound head at or behind `from`, s->size when there is none. */
static u64 find_head(struct hb_scan *s, u64 from)
{
	const u32 tag = HB_FRAME_TAG;
	const size_t skip = offsetof(struct hb_frame_head, tag);
	struct hb_frame_head h;

	while (from < s->size && s->size - from >= sizeof(h)) {
		size_t n = s->size - from < STEP ? (size_t)(s->size - from) : STEP;
		const u8 *p = s->buf, *end = s->buf + n;

		if (s->budget < n || hb_scan__read(s->fd, s->buf, n, from))
			return s->size;
		s->budget -= n;
		while ((p = memmem(p, (size_t)(end - p), &tag, sizeof(tag)))) {
			u64 at = from + (u64)(p - s->buf);

			if ((size_t)(p - s->buf) >= skip && head_at(s, at - skip, &h))
				return at - skip;
			p++;
		}
		from += n < STEP ? n : STEP - sizeof(h); /* a head may lie across the border */
	}
	return s->size;
}

static void resync(struct hb_scan *s, u64 from)
{
	u64 at = find_head(s, from);

	s->lost_bytes += at - s->pos;
	s->torn = at == s->size;
	s->pos = at;
}

/* Records that a damaged data frame held. */
static void count_lost(struct hb_scan *s, const struct hb_frame *f)
{
	struct hb_data_head d;

	s->bad_frames++;
	if (f->head.kind != HB_FRAME_DATA || !f->n_body || !hb_frame__data_ok(&f->head, f->body))
		return;
	memcpy(&d, f->body, sizeof(d));
	s->lost_records += d.count;
}

/* Reads and checks the frame whose head is sound. 1 good; 0 bad, with f->n_body 0 when the body is bad too.
 */
static int check_frame(struct hb_scan *s, struct hb_frame *f)
{
	u64 len = hb_frame__len(&f->head), have = s->size - s->pos;
	u32 n_body = hb_frame__body(&f->head);
	size_t n = (size_t)(len < have ? len : have) - sizeof(f->head);
	int err = room(s, n);

	f->offset = s->pos;
	f->n_body = 0;
	if (err)
		return err;
	if (s->budget < n)
		return 0;
	s->budget -= n;
	err = hb_scan__read(s->fd, s->buf, n, s->pos + sizeof(f->head));
	if (err)
		return err;
	if (n < n_body || hb_frame__crc(s->buf, n_body) != f->head.body_crc)
		return 0;
	f->body = s->buf;
	f->n_body = n_body;
	if (len > have || hb_frame__crc(s->buf + n_body, f->head.follow) != f->head.follow_crc)
		return 0;
	return f->head.kind != HB_FRAME_DATA || hb_frame__data_ok(&f->head, f->body);
}

/* A sound head's length can be trusted unless bytes are missing; so look first where the next frame should
 * be. */
static void pass_over(struct hb_scan *s, const struct hb_frame *f)
{
	u64 next = s->pos + hb_frame__len(&f->head);
	struct hb_frame_head h;

	count_lost(s, f);
	if (next == s->size || head_at(s, next, &h)) {
		s->lost_bytes += next - s->pos;
		s->pos = next;
		return;
	}
	resync(s, s->pos + sizeof(h));
}

int hb_scan__next(struct hb_scan *s, struct hb_frame *f)
{
	while (s->pos < s->size) {
		int r;

		if (!head_at(s, s->pos, &f->head)) {
			resync(s, s->pos + 1);
			continue;
		}
		r = check_frame(s, f);
		if (r < 0)
			return r;
		if (r == 0) {
			pass_over(s, f);
			continue;
		}
		s->pos += hb_frame__len(&f->head);
		return 1;
	}
	return 0;
}
