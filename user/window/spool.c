/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "window/spool.h"
#include "window/frame.h"
#include "base/clock.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <zstd.h>

/* A disk that takes nothing for this long is an error, not something to wait for. */
#define STALL_NS (30ULL * 1000000000)

struct body_job {
	struct body_job *next;
	enum hb_frame_kind kind;
	struct hb_buf body;
};

struct hb_spool {
	int fd;
	u64 limit;
	u32 block_size;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t work, done; /* something to do; something was done */
	struct hb_block *head, **tail, *spare;
	struct body_job *bodies, **bodies_tail;
	unsigned waiting;     /* blocks in the queue */
	u64 pushed, finished; /* jobs */
	bool stop;
	atomic_int err;
	_Atomic u64 bytes, dropped, raw_done, blocks_done;
	/* the thread's own */
	u32 seq;
	u64 frames;
	ZSTD_CCtx *zstd;
	u8 *planes, *scratch, *out;
	size_t out_size;
	struct hb_buf index; /* struct hb_index_entry[] */
};

static void fail(struct hb_spool *s, int err)
{
	int none = 0;

	atomic_compare_exchange_strong(&s->err, &none, err);
}

/* All or nothing: a frame that does not fit is taken back, so that the file ends with a whole one. */
static int write_frame(struct hb_spool *s, const void *data, size_t n)
{
	u64 at = atomic_load(&s->bytes);
	size_t done = 0;

	while (done < n) {
		ssize_t r = pwrite(s->fd, (const char *)data + done, n - done, (off_t)(at + done));

		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0) {
			int err = r < 0 ? -errno : -EIO;

			if (ftruncate(s->fd, (off_t)at))
				err = err ?: -errno; /* readers cope with a torn tail */
			return err;
		}
		done += (size_t)r;
	}
	atomic_store(&s->bytes, at + n);
	s->seq++;
	return 0;
}

static void note_in_index(struct hb_spool *s, const struct hb_block *b)
{
	struct hb_index_entry x = {.offset = atomic_load(&s->bytes),
				   .min_ts = b->min_ts,
				   .max_ts = b->max_ts,
				   .stream = b->stream,
				   .count = b->count};

	hb_buf__add(&s->index, &x, sizeof(x));
}

/* Room that index and footer will need, beside a sixteenth for tables. */
static u64 reserve(const struct hb_spool *s)
{
	return s->limit / 16 + s->index.size / 2 + 256;
}

static int write_block(struct hb_spool *s, const struct hb_block *b)
{
	struct hb_frame_head h = {.kind = HB_FRAME_DATA, .seq = s->seq, .raw = b->fill};
	u8 *body = s->out + sizeof(h);
	size_t n_body = hb_block__encode(b, body, s->planes, s->scratch), z;
	u8 *follow = body + n_body;

	z = ZSTD_compress2(s->zstd, follow, s->out_size - (size_t)(follow - s->out), s->planes, b->fill);
	if (ZSTD_isError(z))
		return -ENOMEM;
	hb_frame__seal(&h, body, n_body, follow, z);
	memcpy(s->out, &h, sizeof(h));
	if (s->limit && atomic_load(&s->bytes) + sizeof(h) + n_body + z + reserve(s) > s->limit) {
		atomic_fetch_add(&s->dropped, b->count);
		return 0;
	}
	note_in_index(s, b);
	s->frames++;
	return write_frame(s, s->out, sizeof(h) + n_body + z);
}

static int write_body(struct hb_spool *s, enum hb_frame_kind kind, const void *body, size_t n)
{
	struct hb_buf out = {0};
	int err;

	hb_frame__add(&out, kind, s->seq, body, n);
	err = out.oom ? -ENOMEM : write_frame(s, out.data, out.size);
	hb_buf__free(&out);
	return err;
}

static void do_block(struct hb_spool *s, struct hb_block *b)
{
	int err = atomic_load(&s->err) ?: write_block(s, b);

	if (err) {
		fail(s, err);
		atomic_fetch_add(&s->dropped, b->count);
	}
	/* After `bytes` has grown: for a moment both count it, and hb_spool__fits() errs to the safe side. */
	atomic_fetch_add(&s->raw_done, b->fill);
	atomic_fetch_add(&s->blocks_done, 1);
}

/* Tables are tried even after an error: taking back the frame that failed may have made room for them, and
 * names are worth more than the last records. */
static void do_body(struct hb_spool *s, struct body_job *j)
{
	int err = write_body(s, j->kind, j->body.data, j->body.size);

	if (err)
		fail(s, err);
	hb_buf__free(&j->body);
	free(j);
}

/* Tables go first: what a record refers to is then before it in the file. */
static bool work_once(struct hb_spool *s)
{
	struct body_job *j = s->bodies;
	struct hb_block *b = s->head;

	if (!j && !b)
		return false;
	if (j) {
		s->bodies = j->next;
		if (!s->bodies)
			s->bodies_tail = &s->bodies;
	} else {
		s->head = b->next;
		if (!s->head)
			s->tail = &s->head;
	}
	pthread_mutex_unlock(&s->lock);
	if (j)
		do_body(s, j);
	else
		do_block(s, b);
	pthread_mutex_lock(&s->lock);
	if (!j) {
		s->waiting--;
		b->next = s->spare;
		s->spare = b;
	}
	s->finished++;
	pthread_cond_broadcast(&s->done);
	return true;
}

static void *spool_main(void *arg)
{
	struct hb_spool *s = arg;

	pthread_mutex_lock(&s->lock);
	for (;;) {
		if (work_once(s))
			continue;
		if (s->stop)
			break;
		pthread_cond_wait(&s->work, &s->lock); /* our own process wakes it: no deadline needed */
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

/* Waits for the next finished job; -ETIMEDOUT (sticky) when the thread makes no progress. */
static int wait_progress(struct hb_spool *s)
{
	u64 seen = s->finished, until = hb_clock__now() + STALL_NS;
	struct timespec t = {.tv_sec = (time_t)(until / 1000000000), .tv_nsec = (long)(until % 1000000000)};

	while (s->finished == seen) {
		if (pthread_cond_timedwait(&s->done, &s->lock, &t) == ETIMEDOUT) {
			fail(s, -ETIMEDOUT);
			return -ETIMEDOUT;
		}
	}
	return 0;
}

static int enqueued(struct hb_spool *s)
{
	s->pushed++;
	pthread_cond_signal(&s->work);
	pthread_mutex_unlock(&s->lock);
	return atomic_load(&s->err);
}

int hb_spool__push(struct hb_spool *s, struct hb_block *b)
{
	pthread_mutex_lock(&s->lock);
	while (s->waiting >= HB_SPOOL_QUEUE && !wait_progress(s))
		;
	if (s->waiting >= HB_SPOOL_QUEUE) { /* stalled: the disk is as good as gone */
		atomic_fetch_add(&s->dropped, b->count);
		b->next = s->spare;
		s->spare = b;
		pthread_mutex_unlock(&s->lock);
		return atomic_load(&s->err);
	}
	b->next = NULL;
	*s->tail = b;
	s->tail = &b->next;
	s->waiting++;
	return enqueued(s);
}

int hb_spool__push_body(struct hb_spool *s, enum hb_frame_kind kind, struct hb_buf *body)
{
	struct body_job *j = calloc(1, sizeof(*j));

	if (!j || body->oom) {
		free(j);
		fail(s, -ENOMEM);
		hb_buf__free(body);
		return -ENOMEM;
	}
	j->kind = kind;
	j->body = *body;
	memset(body, 0, sizeof(*body));
	pthread_mutex_lock(&s->lock);
	*s->bodies_tail = j;
	s->bodies_tail = &j->next;
	return enqueued(s);
}

int hb_spool__sync(struct hb_spool *s)
{
	u64 goal;

	pthread_mutex_lock(&s->lock);
	goal = s->pushed;
	while (s->finished < goal && !wait_progress(s))
		;
	pthread_mutex_unlock(&s->lock);
	return atomic_load(&s->err);
}

int hb_spool__seal(struct hb_spool *s, u64 records, u64 end_ts)
{
	struct hb_footer_body f = {
	    .index = atomic_load(&s->bytes), .frames = s->frames, .records = records, .end_ts = end_ts};
	size_t step = HB_INDEX_PER_FRAME * sizeof(struct hb_index_entry);
	int err = s->index.oom ? -ENOMEM : 0;

	for (size_t at = 0; !err && at < s->index.size; at += step)
		err = write_body(s, HB_FRAME_INDEX, s->index.data + at,
				 s->index.size - at < step ? s->index.size - at : step);
	err = err ?: write_body(s, HB_FRAME_FOOTER, &f, sizeof(f));
	if (err)
		fail(s, err);
	return err;
}

struct hb_block *hb_spool__block(struct hb_spool *s)
{
	struct hb_block *b;

	pthread_mutex_lock(&s->lock);
	b = s->spare;
	if (b)
		s->spare = b->next;
	pthread_mutex_unlock(&s->lock);
	if (!b)
		return hb_block__new(s->block_size);
	hb_block__reset(b);
	return b;
}

int hb_spool__error(const struct hb_spool *s)
{
	return atomic_load(&s->err);
}

u64 hb_spool__bytes(const struct hb_spool *s)
{
	return atomic_load(&s->bytes);
}

u64 hb_spool__dropped(const struct hb_spool *s)
{
	return atomic_load(&s->dropped);
}

/* What a block takes beside its rows: heads, types, the frame of zstd, its line of the index. */
#define BLOCK_EXTRA 256

bool hb_spool__fits(const struct hb_spool *s, u64 raw, u64 blocks, u64 tables)
{
	u64 done = atomic_load(&s->blocks_done), index = done * sizeof(struct hb_index_entry) / 2 + 256;

	raw -= atomic_load(&s->raw_done);
	return atomic_load(&s->bytes) + raw + raw / 128 + (blocks - done) * BLOCK_EXTRA + tables + index <=
	       s->limit - s->limit / 8;
}

/* ---- life ---- */

static int alloc_buffers(struct hb_spool *s)
{
	s->out_size = sizeof(struct hb_frame_head) + HB_DATA_BODY_MAX + ZSTD_compressBound(s->block_size);
	s->planes = malloc(s->block_size);
	s->scratch = malloc(s->block_size);
	s->out = malloc(s->out_size);
	s->zstd = ZSTD_createCCtx();
	if (!s->planes || !s->scratch || !s->out || !s->zstd)
		return -ENOMEM;
	ZSTD_CCtx_setParameter(s->zstd, ZSTD_c_compressionLevel, 1);
	ZSTD_CCtx_setParameter(s->zstd, ZSTD_c_checksumFlag, 1);
	return 0;
}

static void free_spool(struct hb_spool *s)
{
	for (struct hb_block *b = s->spare, *next; b; b = next) {
		next = b->next;
		free(b);
	}
	ZSTD_freeCCtx(s->zstd);
	hb_buf__free(&s->index);
	free(s->planes);
	free(s->scratch);
	free(s->out);
	pthread_cond_destroy(&s->work);
	pthread_cond_destroy(&s->done);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

static void init_locks(struct hb_spool *s)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->work, NULL);
	pthread_cond_init(&s->done, &attr);
	pthread_condattr_destroy(&attr);
}

/* Signals are the main thread's business. */
static int start_thread(struct hb_spool *s)
{
	sigset_t all, old;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&s->thread, NULL, spool_main, s);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return -err;
}

struct hb_spool *hb_spool__new(int fd, u64 limit, u32 block_size, struct hb_error *e)
{
	struct hb_spool *s = calloc(1, sizeof(*s));
	int err;

	if (!s) {
		hb_error__nomem(e, "the window writer");
		return NULL;
	}
	s->fd = fd;
	s->limit = limit;
	s->block_size = block_size;
	s->tail = &s->head;
	s->bodies_tail = &s->bodies;
	init_locks(s);
	err = alloc_buffers(s) ?: start_thread(s);
	if (err) {
		hb_error__set(e, HB_EXIT_FAILED, err, "cannot start the window writer: %s", strerror(-err));
		free_spool(s);
		return NULL;
	}
	return s;
}

int hb_spool__close(struct hb_spool *s)
{
	u64 until = hb_clock__read(CLOCK_REALTIME) + STALL_NS;
	struct timespec t = {.tv_sec = (time_t)(until / 1000000000), .tv_nsec = (long)(until % 1000000000)};

	pthread_mutex_lock(&s->lock);
	s->stop = true;
	pthread_cond_signal(&s->work);
	pthread_mutex_unlock(&s->lock);
	if (pthread_timedjoin_np(s->thread, NULL, &t)) {
		pthread_detach(s->thread); /* stuck in the kernel: its memory has to stay */
		return -ETIMEDOUT;
	}
	free_spool(s);
	return 0;
}
