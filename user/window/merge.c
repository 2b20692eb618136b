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
	struct hb_decoded d;
	u8 *rows;
	size_t cap;
};

struct turn { /* when a stream's next record is due */
	u64 ts;
	struct stream *stream;
};

struct hb_merge {
	int fd;
	struct stream *streams[HB_MAX_STREAMS];
	/* A heap, smallest ts on top. Where it has children no more stands UINT64_MAX, which nothing is
	 * larger than: none has to be asked whether it is there. */
	struct turn heap[2 * HB_MAX_STREAMS + 2];
	u32 n_streams, n_heap;
	bool started;
	ZSTD_DCtx *zstd;
	u8 *in, *planes; /* shared: only rows stay */
	size_t in_cap, planes_cap;
	u64 bad_frames, bad_records;
	u64 extended[HB_TAKE_MAX]
		    [HB_RECORD_MAX / 8]; /* records that are shorter than this version has them */
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
	struct turn *h = m->heap, moved = h[i];

	for (;;) {
		u32 c = 2 * i + 1;

		c += h[c + 1].ts < h[c].ts;
		if (moved.ts <= h[c].ts)
			break;
		h[i] = h[c];
		i = c;
	}
	h[i] = moved;
}

/* Stands the stream before its next frame, which is read when its turn comes: at the time returned. */
static u64 stand_before(struct stream *s)
{
	s->d.count = 0;
	s->at = 0;
	return at_end(s) ? UINT64_MAX : spot_of(s)->base_ts;
}

void hb_merge__rewind(struct hb_merge *m)
{
	m->n_heap = 0;
	for (u32 i = 0; i < HB_MAX_STREAMS; i++) {
		struct stream *s = m->streams[i];

		if (!s)
			continue;
		s->spot = 0;
		m->heap[m->n_heap++] = (struct turn){.ts = stand_before(s), .stream = s};
	}
	for (u32 i = m->n_heap; i <= 2 * m->n_heap + 1; i++)
		m->heap[i].ts = UINT64_MAX;
	for (u32 i = m->n_heap / 2; i-- > 0;)
		sift_down(m, i);
	m->started = true;
}

static void drop_top(struct hb_merge *m)
{
	struct stream *s = m->heap[0].stream;

	free(s->rows);
	s->rows = NULL;
	s->cap = 0;
	m->heap[0] = m->heap[--m->n_heap];
	m->heap[m->n_heap].ts = UINT64_MAX;
	if (m->n_heap)
		sift_down(m, 0);
}

/* ---- frames ---- */

/* Frames differ a little in size: what holds one mostly holds the next. */
static int room(u8 **p, size_t *cap, size_t n)
{
	size_t more = (n + HB_BLOCK_SIZE - 1) / HB_BLOCK_SIZE * HB_BLOCK_SIZE;

	if (n <= *cap)
		return 0;
	free(*p);
	*p = malloc(more);
	*cap = *p ? more : 0;
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
	m->heap[0].ts = stand_before(s);
	return 0;
}

/* The stream on top has its frame in memory: 1, 0 at the end, -errno. */
static int bring(struct hb_merge *m)
{
	if (!m->started)
		hb_merge__rewind(m);
	while (m->n_heap) {
		struct stream *s = m->heap[0].stream;
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

/* ---- records ---- */

/* Longer records (newer minor) are cut by whoever reads only what it knows; shorter ones get zeros, here. */
static __attribute__((noinline)) const void *extend(u64 *to, const struct hb_payloads *p, const u8 *data)
{
	memcpy(to, data, p->size);
	memset((char *)to + p->size, 0, p->missing);
	return to;
}

static inline u64 begin_of(const struct hb_payloads *p, u64 ts, const void *data)
{
	u64 dur;

	if (p->dur < 0)
		return ts;
	memcpy(&dur, (const char *)data + p->dur, sizeof(dur));
	return dur < ts ? ts - dur : 0;
}

/* Records of the stream on top until it is another's turn, its frame ends or there are `most`: *n more. */
static inline void take_run(struct hb_merge *m, const struct hb_merge_tasks *t, struct hb_record *r, u32 *n,
			    u32 most)
{
	struct turn *top = m->heap;
	u64 ts = top->ts, until = top[1].ts < top[2].ts ? top[1].ts : top[2].ts;
	struct stream *s = top->stream;
	u32 got = *n, at = s->at;

	do {
		const struct hb_file_head *h = &s->d.heads[at];
		struct hb_payloads *p = &s->d.of[h->type];
		const u8 *data = p->next;

		p->next += p->size;
		if (p->known) {
			r[got].ts = ts;
			r[got].type = h->type;
			r[got].task_idx = h->task < t->n ? h->task : 0;
			r[got].task = t->task + r[got].task_idx;
			r[got].data = p->missing ? extend(m->extended[got], p, data) : data;
			r[got].begin = begin_of(p, ts, r[got].data);
			got++;
		}
		if (++at == s->d.count) {
			s->spot++;
			ts = stand_before(s);
			at = 0;
			break;
		}
		ts += (u64)(s64)s->d.heads[at].dt;
	} while (ts <= until && got < most);
	s->at = at;
	top->ts = ts;
	*n = got;
}

int hb_merge__take(struct hb_merge *m, const struct hb_merge_tasks *t, struct hb_record *r, u32 most)
{
	u32 n = 0;

	if (most > HB_TAKE_MAX)
		most = HB_TAKE_MAX;
	/* What was given out lies in decoded frames: none of them makes room for another meanwhile. */
	while (n < most) {
		if (!m->n_heap || !m->heap[0].stream->d.count) {
			int err = n ? 0 : bring(m);

			if (err <= 0)
				return n ? (int)n : err;
		}
		take_run(m, t, r, &n, most);
		sift_down(m, 0);
	}
	return (int)n;
}

u64 hb_merge__bad_frames(const struct hb_merge *m, u64 *records)
{
	*records = m->bad_records;
	return m->bad_frames;
}
