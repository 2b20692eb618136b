/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "window/merge.h"
#include "window/block.h"
#include "window/frame.h"
#include "base/buf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <zstd.h>

/* A data frame that is known but not in memory. */
struct spot {
	u64 offset, base_ts;
	u32 follow, raw, count;
	u32 n_body;
	bool bad; /* found out on decoding, counted once */
};

struct stream {
	struct hb_buf spots; /* struct spot[] in file order */
	u32 spot;	     /* the one being read */
	u32 at;		     /* record in it; d.count == 0: not decoded yet */
	u64 ts;		     /* of record `at` */
	struct hb_decoded d;
	u8 *rows;
	size_t cap;
};

struct hb_merge {
	int fd;
	struct stream *streams[HB_MAX_STREAMS];
	struct stream *heap[HB_MAX_STREAMS]; /* smallest ts on top */
	u32 n_streams, n_heap;
	bool started;
	ZSTD_DCtx *zstd;
	u8 *in, *planes; /* shared: only rows stay */
	size_t in_cap, planes_cap;
	u64 bad_frames, bad_records;
};

struct hb_merge *hb_merge__new(int fd)
{
	struct hb_merge *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->fd = fd;
	m->zstd = ZSTD_createDCtx();
	if (m->zstd) {
		/* "forceIgnoreChecksum": what is compressed was compared with its crc when the window was
		 * opened, and a second sum over what comes out of it is a third of all decoding. Not to be
		 * had: slower. */
		(void)ZSTD_DCtx_setParameter(m->zstd, ZSTD_d_experimentalParam3, 1);
		return m;
	}
	hb_merge__free(m);
	return NULL;
}

void hb_merge__free(struct hb_merge *m)
{
	if (!m)
		return;
	for (u32 i = 0; i < HB_MAX_STREAMS; i++) {
		if (!m->streams[i])
			continue;
		hb_buf__free(&m->streams[i]->spots);
		free(m->streams[i]->rows);
		free(m->streams[i]);
	}
	ZSTD_freeDCtx(m->zstd);
	free(m->planes);
	free(m->in);
	free(m);
}

int hb_merge__add(struct hb_merge *m, const struct hb_frame *f)
{
	struct hb_data_head d;
	struct spot spot = {
	    .offset = f->offset, .follow = f->head.follow, .raw = f->head.raw, .n_body = f->n_body};
	struct stream *s;

	memcpy(&d, f->body, sizeof(d));
	spot.base_ts = d.base_ts;
	spot.count = d.count;
	s = m->streams[d.stream];
	if (!s) {
		s = m->streams[d.stream] = calloc(1, sizeof(*s));
		if (!s)
			return -ENOMEM;
		m->n_streams++;
	}
	hb_buf__add(&s->spots, &spot, sizeof(spot));
	return s->spots.oom ? -ENOMEM : 0;
}

static struct spot *spot_of(const struct stream *s)
{
	return (struct spot *)s->spots.data + s->spot;
}

static bool at_end(const struct stream *s)
{
	return s->spot >= s->spots.size / sizeof(struct spot);
}

/* ---- the heap ---- */

static void sift_down(struct hb_merge *m, u32 i)
{
	struct stream **h = m->heap, *s = h[i];

	for (;;) {
		u32 c = 2 * i + 1;

		if (c >= m->n_heap)
			break;
		if (c + 1 < m->n_heap && h[c + 1]->ts < h[c]->ts)
			c++;
		if (s->ts <= h[c]->ts)
			break;
		h[i] = h[c];
		i = c;
	}
	h[i] = s;
}

/* Stands the stream before its next frame; the frame is read when its turn comes. */
static void stand_before(struct stream *s)
{
	s->d.count = 0;
	s->at = 0;
	s->ts = at_end(s) ? UINT64_MAX : spot_of(s)->base_ts;
}

void hb_merge__rewind(struct hb_merge *m)
{
	m->n_heap = 0;
	for (u32 i = 0; i < HB_MAX_STREAMS; i++) {
		if (!m->streams[i])
			continue;
		m->streams[i]->spot = 0;
		stand_before(m->streams[i]);
		m->heap[m->n_heap++] = m->streams[i];
	}
	for (u32 i = m->n_heap / 2; i-- > 0;)
		sift_down(m, i);
	m->started = true;
}

static void drop_top(struct hb_merge *m)
{
	free(m->heap[0]->rows);
	m->heap[0]->rows = NULL;
	m->heap[0]->cap = 0;
	m->heap[0] = m->heap[--m->n_heap];
	if (m->n_heap)
		sift_down(m, 0);
}

/* ---- frames ---- */

static int room(u8 **p, size_t *cap, size_t n)
{
	if (n <= *cap)
		return 0;
	free(*p);
	*p = malloc(n);
	*cap = *p ? n : 0;
	return *p ? 0 : -ENOMEM;
}

/* 1 decoded; 0 the frame is no good; -errno. The file may have changed since it was opened, so the checks
 * that memory safety needs are made again. */
static int decode(struct hb_merge *m, struct stream *s, const struct spot *spot)
{
	struct hb_frame_head h = {
	    .size = HB_HEAD_REST + spot->n_body, .raw = spot->raw, .follow = spot->follow};
	size_t n = spot->n_body + (size_t)spot->follow;
	int err = room(&m->in, &m->in_cap, n) ?: room(&m->planes, &m->planes_cap, spot->raw);

	err = err ?: room(&s->rows, &s->cap, spot->raw);
	err = err ?: hb_scan__read(m->fd, m->in, n, spot->offset + sizeof(h));
	if (err)
		return err;
	if (!hb_frame__data_ok(&h, m->in))
		return 0;
	if (ZSTD_decompressDCtx(m->zstd, m->planes, spot->raw, m->in + spot->n_body, spot->follow) !=
	    spot->raw)
		return 0;
	return hb_block__decode(m->in, m->planes, s->rows, &s->d);
}

/* Decodes the frame the top stream stands before: 1 done, 0 no good (the stream stands before the next one).
 */
static int enter_frame(struct hb_merge *m, struct stream *s)
{
	struct spot *spot = spot_of(s);
	int r = spot->bad ? 0 : decode(m, s, spot);

	if (r)
		return r;
	if (!spot->bad) {
		spot->bad = true;
		m->bad_frames++;
		m->bad_records += spot->count;
	}
	s->spot++;
	stand_before(s);
	return 0;
}

static void advance(struct stream *s)
{
	if (++s->at < s->d.count) {
		s->ts += (u64)(s64)s->d.heads[s->at].dt;
		return;
	}
	s->spot++;
	stand_before(s);
}

/* The top stream mostly stays there for some records. */
static inline void settle(struct hb_merge *m)
{
	struct stream *const *h = m->heap;

	if ((m->n_heap > 1 && h[1]->ts < h[0]->ts) || (m->n_heap > 2 && h[2]->ts < h[0]->ts))
		sift_down(m, 0);
}

/* The stream on top has its frame in memory; out of line, as that is what most calls find. 1, 0 at the end,
 * -errno. */
static __attribute__((noinline)) int bring(struct hb_merge *m)
{
	if (!m->started)
		hb_merge__rewind(m);
	while (m->n_heap) {
		struct stream *s = m->heap[0];
		int err;

		if (s->d.count)
			return 1;
		if (at_end(s)) {
			drop_top(m);
			continue;
		}
		err = enter_frame(m, s);
		if (err < 0)
			return err;
		if (!err)
			sift_down(m, 0);
	}
	return 0;
}

int hb_merge__next(struct hb_merge *m, struct hb_raw *r)
{
	struct stream *s;

	if (!m->n_heap || !m->heap[0]->d.count) {
		int got = bring(m);

		if (got <= 0)
			return got;
	}
	s = m->heap[0];
	r->head = &s->d.heads[s->at];
	r->ts = s->ts;
	r->size = s->d.size[r->head->type];
	r->payload = s->d.payload[r->head->type];
	s->d.payload[r->head->type] += r->size;
	advance(s);
	settle(m);
	return 1;
}

u64 hb_merge__bad_frames(const struct hb_merge *m, u64 *records)
{
	*records = m->bad_records;
	return m->bad_frames;
}
