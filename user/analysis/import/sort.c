/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analysis/import/sort.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define READ_LEAST (16u << 10)
#define READ_MOST  (1u << 20)

struct key {
	s64 first;
	u64 second;
	u32 order;
	u32 at; /* of the item, in units of 8 bytes */
};

struct run { /* sorted items on disk, with a part of them in memory */
	off_t at, end;
	char *buf;
	size_t cap, size, taken;
	struct hb_item head; /* next one */
};

struct hb_sorter {
	enum hb_sort_key key;
	size_t memory;
	char *folder;
	char *items; /* one after the other */
	size_t size, cap;
	struct key *keys;
	size_t n, n_cap;
	u64 count;
	s64 begin, end;
	int fd;
	off_t written;
	struct run *runs;
	u32 n_runs;
	u32 *heap, n_heap; /* runs by their head */
	size_t next;	   /* without runs: index of the next key */
};

void hb_item__init(struct hb_item *i, unsigned type)
{
	memset(i, 0, sizeof(*i));
	i->type = (u8)type;
	i->size = (u16)(HB_ITEM_HEAD + hb_schema__type(type)->size);
}

struct hb_sorter *hb_sorter__new(enum hb_sort_key key, size_t memory, const char *folder)
{
	struct hb_sorter *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->key = key;
	s->memory = memory < sizeof(struct hb_item) ? sizeof(struct hb_item) : memory;
	s->memory = s->memory > UINT32_MAX ? UINT32_MAX : s->memory;
	s->fd = -1;
	s->folder = strdup(folder);
	if (s->folder)
		return s;
	free(s);
	return NULL;
}

void hb_sorter__free(struct hb_sorter *s)
{
	if (!s)
		return;
	for (u32 i = 0; i < s->n_runs; i++)
		free(s->runs[i].buf);
	if (s->fd >= 0)
		close(s->fd);
	free(s->runs);
	free(s->heap);
	free(s->items);
	free(s->keys);
	free(s->folder);
	free(s);
}

u64 hb_sorter__count(const struct hb_sorter *s)
{
	return s->count;
}

bool hb_sorter__on_disk(const struct hb_sorter *s)
{
	return s->fd >= 0;
}

bool hb_sorter__range(const struct hb_sorter *s, s64 *begin, s64 *end)
{
	*begin = s->begin;
	*end = s->end;
	return s->count > 0;
}

/* ---- order ---- */

static struct key key_of(const struct hb_sorter *s, const struct hb_item *i)
{
	struct key k = {.order = i->order};

	if (s->key == HB_SORT_BEGIN) {
		k.first = i->begin;
		k.second = ~i->dur;
	} else {
		k.first = hb_item__end(i);
	}
	return k;
}

static int cmp(const void *a, const void *b)
{
	const struct key *x = a, *y = b;

	if (x->first != y->first)
		return x->first < y->first ? -1 : 1;
	if (x->second != y->second)
		return x->second < y->second ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

/* Long stretches of a trace are in order already. */
static void sort_keys(struct hb_sorter *s)
{
	for (size_t i = 1; i < s->n; i++)
		if (cmp(&s->keys[i - 1], &s->keys[i]) > 0) {
			qsort(s->keys, s->n, sizeof(*s->keys), cmp);
			return;
		}
}

/* ---- runs ---- */

static int disk_error(const struct hb_sorter *s, int err, struct hb_error *e)
{
	return hb_error__set(e, HB_EXIT_FAILED, err,
			     "cannot sort the trace in folder %s: %s; free space there, or "
			     "choose another place with -o",
			     s->folder, strerror(-err));
}

static int open_file(struct hb_sorter *s, struct hb_error *e)
{
	char path[4096];

	s->fd = open(s->folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (s->fd >= 0)
		return 0;
	/* Not every file system can do that. */
	if (snprintf(path, sizeof(path), "%s/.hb-import-XXXXXX", s->folder) >= (int)sizeof(path))
		return disk_error(s, -ENAMETOOLONG, e);
	s->fd = mkostemp(path, O_CLOEXEC);
	if (s->fd < 0)
		return disk_error(s, -errno, e);
	unlink(path);
	return 0;
}

static int write_all(struct hb_sorter *s, const char *data, size_t size, struct hb_error *e)
{
	while (size) {
		ssize_t n = pwrite(s->fd, data, size, s->written);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return disk_error(s, n ? -errno : -EIO, e);
		s->written += n;
		data += n;
		size -= (size_t)n;
	}
	return 0;
}

static int write_items(struct hb_sorter *s, struct hb_error *e)
{
	char *buf = malloc(READ_MOST);
	size_t n = 0;
	int err = 0;

	if (!buf)
		return hb_error__nomem(e, "sorting");
	for (size_t i = 0; i < s->n && !err; i++) {
		const struct hb_item *it = (const void *)(s->items + (size_t)s->keys[i].at * 8);

		if (n + it->size > READ_MOST) {
			err = write_all(s, buf, n, e);
			n = 0;
		}
		memcpy(buf + n, it, it->size);
		n += it->size;
	}
	err = err ? err : write_all(s, buf, n, e);
	free(buf);
	return err;
}

static int write_run(struct hb_sorter *s, struct hb_error *e)
{
	struct run *more = reallocarray(s->runs, s->n_runs + 1, sizeof(*more));
	off_t at = s->written;
	int err = s->fd < 0 ? open_file(s, e) : 0;

	if (!more)
		return hb_error__nomem(e, "sorting");
	s->runs = more;
	if (err)
		return err;
	sort_keys(s);
	err = write_items(s, e);
	s->runs[s->n_runs++] = (struct run){.at = at, .end = s->written};
	s->n = s->size = 0;
	return err;
}

static bool grow(struct hb_sorter *s, size_t need)
{
	if (s->size + need > s->cap) {
		size_t cap = s->cap ? 2 * s->cap : 1u << 16;
		char *more = realloc(s->items, cap);

		if (!more)
			return false;
		s->items = more;
		s->cap = cap;
	}
	if (s->n == s->n_cap) {
		size_t cap = s->n_cap ? 2 * s->n_cap : 1024;
		struct key *more = reallocarray(s->keys, cap, sizeof(*more));

		if (!more)
			return false;
		s->keys = more;
		s->n_cap = cap;
	}
	return true;
}

int hb_sorter__add(struct hb_sorter *s, const struct hb_item *i, struct hb_error *e)
{
	struct hb_item *copy;
	s64 end = hb_item__end(i);
	int err;

	if (s->size + s->n * sizeof(struct key) + i->size > s->memory && s->n) {
		err = write_run(s, e);
		if (err)
			return err;
	}
	if (!grow(s, i->size))
		return hb_error__nomem(e, "sorting");
	copy = (void *)(s->items + s->size);
	memcpy(copy, i, i->size);
	copy->order = (u32)s->count;
	s->keys[s->n] = key_of(s, copy);
	s->keys[s->n++].at = (u32)(s->size / 8);
	s->size += i->size;
	if (!s->count || i->begin < s->begin)
		s->begin = i->begin;
	if (!s->count || end > s->end)
		s->end = end;
	s->count++;
	return 0;
}

/* ---- merging ---- */

static int refill(struct hb_sorter *s, struct run *r, struct hb_error *e)
{
	size_t rest = r->size - r->taken, want;

	memmove(r->buf, r->buf + r->taken, rest);
	r->taken = 0;
	r->size = rest;
	want = r->end - r->at < (off_t)(r->cap - rest) ? (size_t)(r->end - r->at) : r->cap - rest;
	while (want) {
		ssize_t n = pread(s->fd, r->buf + r->size, want, r->at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return disk_error(s, n ? -errno : -EIO, e);
		r->at += n;
		r->size += (size_t)n;
		want -= (size_t)n;
	}
	return 0;
}

/* Loads the run's next item; 1, 0 when it has none left. */
static int advance(struct hb_sorter *s, struct run *r, struct hb_error *e)
{
	const struct hb_item *i;
	int err;

	if (r->size - r->taken < sizeof(struct hb_item) && r->at < r->end) {
		err = refill(s, r, e);
		if (err)
			return err;
	}
	if (r->taken == r->size)
		return 0;
	i = (const void *)(r->buf + r->taken);
	memcpy(&r->head, i, i->size);
	r->taken += i->size;
	return 1;
}

static bool before(const struct hb_sorter *s, u32 a, u32 b)
{
	struct key x = key_of(s, &s->runs[a].head), y = key_of(s, &s->runs[b].head);
	int c;

	x.order = y.order = 0; /* wraps in huge traces; runs are in order of adding */
	c = cmp(&x, &y);
	return c < 0 || (c == 0 && a < b);
}

static void sink(struct hb_sorter *s, u32 at)
{
	for (u32 child; (child = 2 * at + 1) < s->n_heap; at = child) {
		u32 t = s->heap[at];

		if (child + 1 < s->n_heap && before(s, s->heap[child + 1], s->heap[child]))
			child++;
		if (!before(s, s->heap[child], t))
			return;
		s->heap[at] = s->heap[child];
		s->heap[child] = t;
	}
}

static int start_runs(struct hb_sorter *s, struct hb_error *e)
{
	size_t part = s->memory / s->n_runs;

	part = part < READ_LEAST ? READ_LEAST : part > READ_MOST ? READ_MOST : part & ~(size_t)7;
	s->heap = calloc(s->n_runs, sizeof(*s->heap));
	if (!s->heap)
		return hb_error__nomem(e, "sorting");
	for (u32 i = 0; i < s->n_runs; i++) {
		struct run *r = &s->runs[i];
		int more;

		r->cap = part;
		r->buf = malloc(part);
		if (!r->buf)
			return hb_error__nomem(e, "sorting");
		more = advance(s, r, e);
		if (more < 0)
			return more;
		if (more)
			s->heap[s->n_heap++] = i;
	}
	for (u32 i = s->n_heap / 2; i-- > 0;)
		sink(s, i);
	return 0;
}

int hb_sorter__sort(struct hb_sorter *s, struct hb_error *e)
{
	int err;

	if (!s->n_runs) {
		sort_keys(s);
		return 0;
	}
	err = s->n ? write_run(s, e) : 0;
	free(s->items);
	free(s->keys);
	s->items = NULL;
	s->keys = NULL;
	return err ? err : start_runs(s, e);
}

int hb_sorter__next(struct hb_sorter *s, struct hb_item *i, struct hb_error *e)
{
	struct run *r;
	int more;

	if (!s->n_runs) {
		const struct hb_item *it;

		if (s->next == s->n)
			return 0;
		it = (const void *)(s->items + (size_t)s->keys[s->next++].at * 8);
		memcpy(i, it, it->size);
		return 1;
	}
	if (!s->n_heap)
		return 0;
	r = &s->runs[s->heap[0]];
	*i = r->head;
	more = advance(s, r, e);
	if (more < 0)
		return more;
	if (!more)
		s->heap[0] = s->heap[--s->n_heap];
	sink(s, 0);
	return 1;
}
