/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "window/window.h"
#include "window/part.h"
#include "window/schema_text.h"
#include "window/spool.h"
#include "window/tables_out.h"
#include "base/clock.h"
#include "base/text.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* put() and flush() may meet on a stream, hence the lock; it is all but never contended. Padded: neighbours
 * belong to other threads. */
struct stream {
	pthread_mutex_t lock;
	struct hb_block *block;
	_Atomic u64 records;
} __attribute__((aligned(128)));

struct hb_window_writer {
	char *path, *part;
	int fd;
	bool force;
	u64 max_size;
	unsigned n_streams, n_limited; /* max_size stops the first n_limited */
	struct stream *streams;
	struct hb_spool *spool;
	struct hb_tables_out *tables;
	atomic_bool full;	 /* max_size reached */
	_Atomic u64 raw, blocks; /* begun since the start; kept only where there is a max_size */
};

/* ---- records ---- */

/* Hands the block over. With the stream's lock held. */
static int hand_over(struct hb_window_writer *w, struct stream *s)
{
	struct hb_block *b = s->block;

	if (!b)
		return 0;
	s->block = NULL;
	return hb_spool__push(w->spool, b);
}

static int next_block(struct hb_window_writer *w, struct stream *s)
{
	int err = hand_over(w, s);

	if (err)
		return err;
	s->block = hb_spool__block(w->spool);
	if (!s->block)
		return -ENOMEM;
	if (w->max_size)
		atomic_fetch_add(&w->blocks, 1);
	s->block->stream = (u32)(s - w->streams);
	s->block->first = atomic_load_explicit(&s->records, memory_order_relaxed);
	return 0;
}

static int put_locked(struct hb_window_writer *w, struct stream *s, u64 ts, u16 task, unsigned type,
		      const void *payload, u32 size)
{
	if (!s->block || !hb_block__add(s->block, ts, task, type, payload, size)) {
		int err = next_block(w, s);

		if (err)
			return err;
		hb_block__add(s->block, ts, task, type, payload, size);
	}
	if (w->max_size)
		atomic_fetch_add(&w->raw, sizeof(struct hb_file_head) + size);
	atomic_store_explicit(&s->records, atomic_load_explicit(&s->records, memory_order_relaxed) + 1,
			      memory_order_relaxed);
	return 0;
}

static void push_tables(struct hb_window_writer *w)
{
	struct hb_buf body;
	bool more = true;

	while (more) {
		bool ok = hb_tables_out__take(w->tables, &body);

		more = body.size > 0;
		body.oom |= !ok;
		if (more || body.oom)
			more = hb_spool__push_body(w->spool, HB_FRAME_TABLE, &body) == 0;
		hb_buf__free(&body);
	}
}

static void push_blocks(struct hb_window_writer *w)
{
	for (unsigned i = 0; i < w->n_streams; i++) {
		struct stream *s = &w->streams[i];

		pthread_mutex_lock(&s->lock);
		hand_over(w, s);
		pthread_mutex_unlock(&s->lock);
	}
}

/* ---- max_size ---- */

static bool fits(struct hb_window_writer *w, u64 size)
{
	return hb_spool__fits(w->spool, atomic_load(&w->raw) + size, atomic_load(&w->blocks) + 1,
			      hb_tables_out__pending(w->tables) / 2);
}

/* What is accepted must fit, so the worst is assumed of what is on the way. When that is too much, it is
 * written, which shows what it takes in truth; the room is then most of what was assumed, and so after a few
 * times the end is near: a 64th is not worth another round. */
static bool has_room(struct hb_window_writer *w, u32 size)
{
	if (atomic_load_explicit(&w->full, memory_order_relaxed))
		return false;
	if (fits(w, size))
		return true;
	push_blocks(w);
	hb_spool__sync(w->spool);
	if (fits(w, size + w->max_size / 64))
		return true;
	atomic_store(&w->full, true);
	return false;
}

int hb_window_writer__put(struct hb_window_writer *w, unsigned stream, u64 ts, u16 task, unsigned type,
			  const void *payload)
{
	const struct hb_type *t = hb_schema__type(type);
	struct stream *s;
	int err = hb_spool__error(w->spool);

	if (err)
		return err;
	if (!t || stream >= w->n_streams)
		return -EINVAL;
	if (w->max_size && stream < w->n_limited && !has_room(w, t->size))
		return hb_spool__error(w->spool) ?: -EFBIG;
	s = &w->streams[stream];
	pthread_mutex_lock(&s->lock);
	err = put_locked(w, s, ts, task, type, payload, t->size);
	pthread_mutex_unlock(&s->lock);
	return err;
}

int hb_window_writer__flush(struct hb_window_writer *w)
{
	push_tables(w);
	push_blocks(w);
	return hb_spool__sync(w->spool);
}

u64 hb_window_writer__bytes(const struct hb_window_writer *w)
{
	return hb_spool__bytes(w->spool);
}

u64 hb_window_writer__records(const struct hb_window_writer *w)
{
	u64 n = 0;

	for (unsigned i = 0; i < w->n_streams; i++)
		n += atomic_load_explicit(&w->streams[i].records, memory_order_relaxed);
	return n;
}

/* ---- tables ---- */

u32 hb_window_writer__string(struct hb_window_writer *w, const char *s)
{
	return hb_tables_out__string(w->tables, s);
}

u32 hb_window_writer__loc(struct hb_window_writer *w, const struct hb_loc *loc)
{
	return hb_tables_out__loc(w->tables, loc);
}

u16 hb_window_writer__task(struct hb_window_writer *w, const struct hb_task *t)
{
	return hb_tables_out__task(w->tables, t);
}

void hb_window_writer__task_update(struct hb_window_writer *w, u16 idx, const struct hb_task *t)
{
	hb_tables_out__task_update(w->tables, idx, t);
}

u32 hb_window_writer__proc(struct hb_window_writer *w, const struct hb_proc *p)
{
	return hb_tables_out__proc(w->tables, p);
}

int hb_window_writer__probe(struct hb_window_writer *w, u32 id, const struct hb_probe_row *row)
{
	return hb_tables_out__probe(w->tables, id, row);
}

int hb_window_writer__stack(struct hb_window_writer *w, u32 pid, u32 raw, const u32 *locs, u32 n,
			    enum hb_stack_state state)
{
	return hb_tables_out__stack(w->tables, pid, raw, locs, n, state);
}

int hb_window_writer__fd(struct hb_window_writer *w, const struct hb_fd_row *row)
{
	return hb_tables_out__fd(w->tables, row);
}

int hb_window_writer__pytask(struct hb_window_writer *w, const struct hb_pytask_row *row)
{
	return hb_tables_out__pytask(w->tables, row);
}

void hb_window_writer__loss(struct hb_window_writer *w, const struct hb_loss_row *row)
{
	hb_tables_out__loss(w->tables, row);
}

void hb_window_writer__meta(struct hb_window_writer *w, const char *key, const char *value)
{
	hb_tables_out__meta(w->tables, key, value);
}

/* ---- life ---- */

static void free_writer(struct hb_window_writer *w)
{
	if (w->spool && hb_spool__close(w->spool) == 0 && w->fd >= 0)
		close(w->fd);
	else if (!w->spool && w->fd >= 0)
		close(w->fd);
	for (unsigned i = 0; w->streams && i < w->n_streams; i++) {
		free(w->streams[i].block);
		pthread_mutex_destroy(&w->streams[i].lock);
	}
	hb_tables_out__free(w->tables);
	free(w->streams);
	free(w->path);
	free(w->part);
	free(w);
}

static int write_start(struct hb_window_writer *w, const struct hb_window_opts *o, struct hb_error *e)
{
	struct hb_header_body h = {.start_ts = o->start_ts, .real_ns = o->real_ts, .streams = w->n_streams};
	struct hb_buf header = {0}, text = {0};
	int err;

	if (!h.real_ns)
		h.real_ns = hb_clock__read(CLOCK_REALTIME) - (hb_clock__now() - o->start_ts);
	hb_buf__add(&header, &h, sizeof(h));
	hb_schema_text__write(&text);
	hb_spool__push_body(w->spool, HB_FRAME_HEADER, &header);
	hb_spool__push_body(w->spool, HB_FRAME_SCHEMA, &text);
	err = hb_spool__sync(w->spool);
	if (err)
		hb_error__set(e, HB_EXIT_FAILED, err,
			      "cannot write %s: %s; free space or choose another place with -o", w->part,
			      strerror(-err));
	return err;
}

/* Small limits get small blocks, or the first block alone would exceed them. */
static u32 block_size(u64 max_size)
{
	if (!max_size || max_size / 4 > HB_BLOCK_SIZE)
		return HB_BLOCK_SIZE;
	return max_size / 4 < (16 << 10) ? 16 << 10 : (u32)(max_size / 4) & ~7u;
}

static int alloc_streams(struct hb_window_writer *w, unsigned n)
{
	if (!n || n > HB_MAX_STREAMS)
		return -EINVAL;
	w->streams = aligned_alloc(_Alignof(struct stream), n * sizeof(*w->streams));
	if (!w->streams)
		return -ENOMEM;
	memset(w->streams, 0, n * sizeof(*w->streams));
	w->n_streams = n;
	for (unsigned i = 0; i < n; i++)
		pthread_mutex_init(&w->streams[i].lock, NULL);
	return 0;
}

int hb_window_writer__check(const char *path, bool force, struct hb_error *e)
{
	return hb_part__check(path, force, e);
}

struct hb_window_writer *hb_window_writer__new(const char *path, const struct hb_window_opts *o,
					       struct hb_error *e)
{
	struct hb_window_writer *w = calloc(1, sizeof(*w));
	int err = w ? alloc_streams(w, o->streams) : -ENOMEM;

	if (err) {
		hb_error__set(e, HB_EXIT_FAILED, err, "cannot set up the window writer for %u streams: %s",
			      o->streams, strerror(-err));
		free(w);
		return NULL;
	}
	w->fd = -1;
	w->force = o->force;
	w->max_size = o->max_size;
	w->n_limited = o->streams - (o->exempt < o->streams ? o->exempt : o->streams);
	w->path = strdup(path);
	w->tables = hb_tables_out__new();
	if (!w->path || !w->tables)
		hb_error__nomem(e, "the window writer");
	else
		w->fd = hb_part__open(path, o->force, &w->part, e);
	if (w->fd >= 0)
		w->spool = hb_spool__new(w->fd, o->max_size, block_size(o->max_size), e);
	if (w->spool && write_start(w, o, e) == 0)
		return w;
	if (w->fd >= 0)
		unlink(w->part);
	free_writer(w);
	return NULL;
}

/* Records that were accepted but dropped on the way to the disk are loss like any other. */
static void count_dropped(struct hb_window_writer *w)
{
	struct hb_loss_row row = {
	    .cause = HB_LOSS_DISK, .cpu = 0xffffffff, .count = hb_spool__dropped(w->spool)};

	hb_tables_out__loss(w->tables, &row);
}

static int end_content(struct hb_window_writer *w, u64 end_ts, struct hb_error *e)
{
	char size[32];
	int err;

	push_blocks(w);
	hb_spool__sync(w->spool);
	count_dropped(w);
	push_tables(w);
	err = hb_spool__sync(w->spool);
	if (!err)
		err = hb_spool__seal(w->spool, hb_window_writer__records(w) - hb_spool__dropped(w->spool),
				     end_ts);
	if (err)
		hb_error__set(
		    e, HB_EXIT_FAILED, err,
		    "cannot write %s: %s; %s written until then are kept there and readable: free space, use "
		    "--max-size, or choose another place with -o",
		    w->part, strerror(-err), hb_text__bytes(size, sizeof(size), hb_spool__bytes(w->spool)));
	return err;
}

int hb_window_writer__finish(struct hb_window_writer *w, u64 end_ts, struct hb_error *e)
{
	int err = end_content(w, end_ts, e);

	if (!err) {
		err = hb_part__finish(w->fd, w->part, w->path, w->force, e);
		w->fd = -1;
	}
	free_writer(w);
	return err;
}

void hb_window_writer__abort(struct hb_window_writer *w)
{
	unlink(w->part);
	free_writer(w);
}
