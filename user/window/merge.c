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
	struct hb_buf spots;		       /* struct spot[] in file order */
	u32 spot;			       /* the one being read */
	const struct hb_file_head *next, *end; /* its records; equal: not decoded yet */
	struct hb_decoded d;
	u8 *rows;
	size_t cap;
};

struct hb_merge {
	int fd;
	struct stream *streams[HB_MAX_STREAMS];
	/* A heap by the times of the streams' next records, the first one at 1, the children of i at 2 i and
	 * 2 i + 1. Where there are none stands UINT64_MAX, which nothing is larger than: none has to be asked
	 * whether it is there. */
	u64 due[2 * HB_MAX_STREAMS + 2];
	struct stream *of[HB_MAX_STREAMS + 1];
	u32 n_streams, n_heap;
	bool started;
	ZSTD_DCtx *zstd;
	u8 *in, *planes; /* shared: only rows stay */
	size_t in_cap, planes_cap;
	u64 bad_frames, bad_records;
	u64 fitted[HB_RECORDS_MAX][HB_RECORD_MAX / 8]; /* records that are shorter than this version's */
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

static inline void sift_down(struct hb_merge *m, size_t i)
{
	struct stream *moved = m->of[i];
	u64 ts = m->due[i], *due = m->due;

	for (;;) {
		size_t c = 2 * i;

		c += due[c + 1] < due[c];
		if (ts <= due[c])
			break;
		due[i] = due[c];
		m->of[i] = m->of[c];
		i = c;
	}
	due[i] = ts;
	m->of[i] = moved;
}

/* Stands the stream before its next frame, which is read when its turn comes: at the time returned. */
static u64 stand_before(struct stream *s)
{
	s->next = s->end = NULL;
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
		m->of[++m->n_heap] = s;
		m->due[m->n_heap] = stand_before(s);
	}
	for (u32 i = m->n_heap + 1; i <= 2 * m->n_heap + 1; i++)
		m->due[i] = UINT64_MAX;
	for (u32 i = m->n_heap / 2; i > 0; i--)
		sift_down(m, i);
	m->started = true;
}

static void drop_top(struct hb_merge *m)
{
	struct stream *s = m->of[1];

	free(s->rows);
	s->rows = NULL;
	s->cap = 0;
	m->of[1] = m->of[m->n_heap];
	m->due[1] = m->due[m->n_heap];
	m->due[m->n_heap--] = UINT64_MAX;
	sift_down(m, 1);
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

/* Decodes the frame the top stream stands before; one that is no good is passed over. 0 or -errno. */
static int enter_frame(struct hb_merge *m, struct stream *s)
{
	struct spot *spot = spot_of(s);
	int r = spot->bad ? 0 : decode(m, s, spot);

	if (r < 0)
		return r;
	if (r) {
		s->next = s->d.heads;
		s->end = s->next + s->d.count;
		return 0;
	}
	if (!spot->bad) {
		spot->bad = true;
		m->bad_frames++;
		m->bad_records += spot->count;
	}
	s->spot++;
	m->due[1] = stand_before(s);
	sift_down(m, 1);
	return 0;
}

/* The stream on top has its frame in memory; out of line, as that is what most calls find. 1, 0 at the end,
 * -errno. */
static __attribute__((noinline)) int bring(struct hb_merge *m)
{
	int err = 0;

	if (!m->started)
		hb_merge__rewind(m);
	while (m->n_heap && !err) {
		struct stream *s = m->of[1];

		if (s->next != s->end)
			return 1;
		if (at_end(s))
			drop_top(m);
		else
			err = enter_frame(m, s);
	}
	return err;
}

/* ---- records ---- */

static inline u64 begin_of(const struct hb_payloads *p, u64 ts, const void *data)
{
	u64 dur;

	if (p->dur < 0)
		return ts;
	memcpy(&dur, (const char *)data + p->dur, sizeof(dur));
	return dur < ts ? ts - dur : 0;
}

/* A record that has another size than this version's. Longer ones (newer minor) are cut by whoever reads only
 * what it knows; shorter ones get zeros, at `to`; those of types that are not known are left out: NULL. */
static __attribute__((noinline)) const void *fit(u64 *to, const struct hb_payloads *p, const u8 *data)
{
	if (!p->wanted || p->size >= p->wanted)
		return p->wanted ? data : NULL;
	memcpy(to, data, p->size);
	memset((char *)to + p->size, 0, p->wanted - p->size);
	return to;
}

/* The stream after the record it stood before: the time of its next one. */
static inline u64 advance(struct stream *s, u64 ts)
{
	if (++s->next != s->end)
		return ts + (u64)(s64)s->next->dt;
	s->spot++;
	return stand_before(s);
}

/* The record that the stream on top stands before. False: its type is not known. `fitted` is its own. */
static inline bool put(const struct hb_merge *m, const struct hb_merge_tasks *t, struct hb_record *r,
		       u64 *fitted)
{
	struct stream *s = m->of[1];
	const struct hb_file_head *h = s->next;
	struct hb_payloads *p = &s->d.of[h->type];
	u64 ts = m->due[1];
	u16 task = h->task < t->n ? h->task : 0;
	const void *data = p->size == p->wanted ? p->next : fit(fitted, p, p->next);

	p->next += p->size;
	/* Frames of all streams are more than caches hold; this stream goes on here when it is its turn
	 * again. */
	__builtin_prefetch(p->next);
	__builtin_prefetch(p->next + 64);
	if (!data)
		return false;
	*r = (struct hb_record){.ts = ts,
				.begin = begin_of(p, ts, data),
				.task = t->task + task,
				.type = h->type,
				.task_idx = task,
				.data = data};
	return true;
}

int hb_merge__take(struct hb_merge *m, const struct hb_merge_tasks *t, struct hb_records *b)
{
	u64 types = 0;
	u32 n = 0;

	hb_each_bit (type, b->types)
		b->of[type] = 0;
	b->types = 0;
	b->n = 0;
	while (n < HB_RECORDS_MAX) {
		struct hb_record *r = &b->record[n];

		if (!m->n_heap || m->of[1]->next == m->of[1]->end) {
			/* What was given out lies in decoded frames: none makes room for another meanwhile.
			 */
			int got = n ? 0 : bring(m);

			if (got < 0)
				return got;
			if (!got)
				break;
		}
		if (put(m, t, r, m->fitted[n])) {
			types |= 1ULL << r->type;
			b->of[r->type] |= 1ULL << n++;
		}
		m->due[1] = advance(m->of[1], m->due[1]);
		if (m->due[2] < m->due[1] || m->due[3] < m->due[1])
			sift_down(m, 1);
	}
	b->types = types;
	b->n = n;
	return n > 0;
}

u64 hb_merge__bad_frames(const struct hb_merge *m, u64 *records)
{
	*records = m->bad_records;
	return m->bad_frames;
}
