/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analysis/import/source.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zlib.h>

#define PART  (512u << 10) /* bytes read at once */
#define PARTS 4		   /* of these in flight */

/* In small bites, which go past zlib's own buffer: where compressed data is broken, zlib gives nothing of the
 * bite in which it found out. */
#define BITE (16u << 10)

struct part {
	size_t size, taken;
	char data[PART];
};

/* The thread fills parts in turn, the caller empties them in turn. */
struct hb_source {
	gzFile file; /* reads plain files too */
	pthread_t thread;
	bool started;
	pthread_mutex_t lock;
	pthread_cond_t change;
	unsigned filled, emptied; /* counts, modulo 2^32 */
	bool end, stop, cut;
	int err;
	struct part part[PARTS];
};

/* 0 at the end of the data, with *cut and *err set as it ended. */
static size_t fill(struct hb_source *s, struct part *p, bool *cut, int *err)
{
	int n = BITE, code = Z_OK;

	p->taken = p->size = 0;
	while (n == (int)BITE && p->size < PART) {
		errno = 0;
		n = gzread(s->file, p->data + p->size, BITE);
		p->size += n > 0 ? (size_t)n : 0;
	}
	if (n == (int)BITE)
		return p->size;
	gzerror(s->file, &code);
	if (code == Z_ERRNO)
		*err = errno ? -errno : -EIO;
	else if (code == Z_MEM_ERROR)
		*err = -ENOMEM;
	else
		*cut = code != Z_OK && code != Z_STREAM_END;
	return p->size;
}

static void *reader(void *arg)
{
	struct hb_source *s = arg;
	bool more = true;

	while (more) {
		struct part *p;
		bool cut = false;
		int err = 0;

		pthread_mutex_lock(&s->lock);
		while (s->filled - s->emptied == PARTS && !s->stop)
			pthread_cond_wait(&s->change, &s->lock);
		more = !s->stop;
		p = &s->part[s->filled % PARTS];
		pthread_mutex_unlock(&s->lock);
		if (!more)
			break;
		more = fill(s, p, &cut, &err) > 0 && !cut && !err;
		pthread_mutex_lock(&s->lock);
		s->cut = cut;
		s->err = err;
		s->end = !more;
		s->filled += p->size > 0;
		pthread_cond_broadcast(&s->change);
		pthread_mutex_unlock(&s->lock);
	}
	return NULL;
}

static gzFile open_file(const char *path, struct hb_error *e)
{
	int fd =
	    strcmp(path, "-") ? open(path, O_RDONLY | O_CLOEXEC) : fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
	struct stat st;
	gzFile f;

	if (fd < 0) {
		hb_error__set(e, HB_EXIT_FAILED, -errno, "cannot open %s: %s", path, strerror(errno));
		return NULL;
	}
	if (!fstat(fd, &st) && S_ISDIR(st.st_mode)) {
		hb_error__set(e, HB_EXIT_FAILED, -EISDIR, "%s is a folder; give the trace file in it", path);
		close(fd);
		return NULL;
	}
	f = gzdopen(fd, "rb");
	if (!f) {
		close(fd);
		hb_error__nomem(e, "the trace file");
		return NULL;
	}
	gzbuffer(f, BITE / 2);
	return f;
}

struct hb_source *hb_source__new(const char *path, struct hb_error *e)
{
	struct hb_source *s;
	gzFile file = open_file(path, e);
	int err;

	if (!file)
		return NULL;
	s = calloc(1, sizeof(*s));
	if (!s) {
		gzclose_r(file);
		hb_error__nomem(e, "the trace file");
		return NULL;
	}
	s->file = file;
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->change, NULL);
	err = pthread_create(&s->thread, NULL, reader, s);
	if (!err) {
		s->started = true;
		return s;
	}
	hb_error__set(e, HB_EXIT_FAILED, -err, "cannot start a thread: %s", strerror(err));
	hb_source__free(s);
	return NULL;
}

void hb_source__free(struct hb_source *s)
{
	if (!s)
		return;
	pthread_mutex_lock(&s->lock);
	s->stop = true;
	pthread_cond_broadcast(&s->change);
	pthread_mutex_unlock(&s->lock);
	if (s->started)
		pthread_join(s->thread, NULL);
	gzclose_r(s->file);
	pthread_cond_destroy(&s->change);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

long hb_source__read(struct hb_source *s, void *buf, size_t size)
{
	struct part *p;
	size_t n;
	int err;

	pthread_mutex_lock(&s->lock);
	while (s->filled == s->emptied && !s->end)
		pthread_cond_wait(&s->change, &s->lock);
	p = s->filled != s->emptied ? &s->part[s->emptied % PARTS] : NULL;
	err = s->err;
	pthread_mutex_unlock(&s->lock);
	if (!p)
		return err;
	n = p->size - p->taken < size ? p->size - p->taken : size;
	memcpy(buf, p->data + p->taken, n);
	p->taken += n;
	if (p->taken < p->size)
		return (long)n;
	pthread_mutex_lock(&s->lock);
	s->emptied++;
	pthread_cond_broadcast(&s->change);
	pthread_mutex_unlock(&s->lock);
	return (long)n;
}

bool hb_source__cut(const struct hb_source *s)
{
	return s->cut;
}
