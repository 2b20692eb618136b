/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "window/tables_out.h"
#include "window/format.h"
#include "base/map.h"
#include "base/text.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define MAX_STRING 65535u
#define MAX_FRAMES 4096u
#define MAX_TASKS  0xffffu /* index 0 is nobody, 0xffff means full */

struct hb_tables_out {
	pthread_mutex_t lock;
	struct hb_buf pending; /* entries */
	struct hb_buf chars;   /* all strings, each NUL-terminated */
	struct hb_buf strings; /* size_t[]: where in chars */
	struct hb_buf locs;    /* struct hb_loc[] */
	struct hb_buf losses;  /* struct hb_loss_row[] */
	struct hb_map *by_string, *by_loc, *by_task, *by_proc;
	u32 n_tasks, n_procs;
	bool losses_changed, oom;
};

struct hb_tables_out *hb_tables_out__new(void)
{
	struct hb_tables_out *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	pthread_mutex_init(&t->lock, NULL);
	t->by_string = hb_map__new();
	t->by_loc = hb_map__new();
	t->by_task = hb_map__new();
	t->by_proc = hb_map__new();
	if (t->by_string && t->by_loc && t->by_task && t->by_proc)
		return t;
	hb_tables_out__free(t);
	return NULL;
}

void hb_tables_out__free(struct hb_tables_out *t)
{
	if (!t)
		return;
	hb_buf__free(&t->pending);
	hb_buf__free(&t->chars);
	hb_buf__free(&t->strings);
	hb_buf__free(&t->locs);
	hb_buf__free(&t->losses);
	hb_map__free(t->by_string);
	hb_map__free(t->by_loc);
	hb_map__free(t->by_task);
	hb_map__free(t->by_proc);
	pthread_mutex_destroy(&t->lock);
	free(t);
}

static bool entry2(struct hb_tables_out *t, enum hb_entry_kind kind, const void *a, u32 n_a, const void *b,
		   u32 n_b)
{
	struct hb_entry_head h = {.kind = (u16)kind, .size = n_a + n_b};

	if (!hb_buf__room(&t->pending, sizeof(h) + n_a + n_b))
		return false;
	hb_buf__add(&t->pending, &h, sizeof(h));
	hb_buf__add(&t->pending, a, n_a);
	hb_buf__add(&t->pending, b, n_b);
	return true;
}

/* The slot for content with this hash: a second content with an equal hash goes to the next key. `same`
 * compares the candidate id with what is looked for. */
static u64 *content_slot(struct hb_map *m, u64 hash,
			 bool (*same)(const struct hb_tables_out *, u64, const void *),
			 const struct hb_tables_out *t, const void *what, bool *fresh)
{
	u64 *slot;

	for (;; hash++) {
		slot = hb_map__slot(m, hash, fresh);
		if (!slot || *fresh || same(t, *slot, what))
			return slot;
	}
}

/* Id 0 in a slot: memory was short when it was to be filled. */
static bool same_string(const struct hb_tables_out *t, u64 id, const void *s)
{
	return id && strcmp(t->chars.data + ((const size_t *)t->strings.data)[id - 1], s) == 0;
}

static u32 new_string(struct hb_tables_out *t, const char *s, u32 n)
{
	size_t at = t->chars.size;
	u32 id = (u32)(t->strings.size / sizeof(at)) + 1;

	hb_buf__add(&t->chars, s, (size_t)n + 1);
	hb_buf__add(&t->strings, &at, sizeof(at));
	if (t->chars.oom || t->strings.oom || !entry2(t, HB_ENTRY_STRING, &id, sizeof(id), s, n))
		return 0;
	return id;
}

/* `s` is clean. */
static u32 string_locked(struct hb_tables_out *t, const char *s, u32 n)
{
	bool fresh;
	u64 *slot = content_slot(t->by_string, hb_hash_bytes(s, n), same_string, t, s, &fresh);

	if (slot && fresh)
		*slot = new_string(t, s, n);
	if (!slot || !*slot)
		t->oom = true;
	return slot ? (u32)*slot : 0;
}

u32 hb_tables_out__string(struct hb_tables_out *t, const char *s)
{
	size_t n = s ? strnlen(s, MAX_STRING) : 0;
	char small[512], *copy = n < sizeof(small) ? small : malloc(n + 1);
	u32 id;

	if (!n)
		return 0;
	if (!copy)
		return 0;
	memcpy(copy, s, n);
	copy[n] = 0;
	hb_text__clean(copy);
	pthread_mutex_lock(&t->lock);
	id = string_locked(t, copy, (u32)n);
	pthread_mutex_unlock(&t->lock);
	if (copy != small)
		free(copy);
	return id;
}

static bool same_loc(const struct hb_tables_out *t, u64 id, const void *loc)
{
	return id && memcmp((const struct hb_loc *)t->locs.data + id - 1, loc, sizeof(struct hb_loc)) == 0;
}

u32 hb_tables_out__loc(struct hb_tables_out *t, const struct hb_loc *loc)
{
	u32 id = 0;
	bool fresh;
	u64 *slot;

	pthread_mutex_lock(&t->lock);
	slot = content_slot(t->by_loc, hb_hash_bytes(loc, sizeof(*loc)), same_loc, t, loc, &fresh);
	if (slot && fresh) {
		id = (u32)(t->locs.size / sizeof(*loc)) + 1;
		hb_buf__add(&t->locs, loc, sizeof(*loc));
		if (t->locs.oom || !entry2(t, HB_ENTRY_LOC, &id, sizeof(id), loc, sizeof(*loc)))
			id = 0;
		*slot = id;
	} else if (slot) {
		id = (u32)*slot;
	}
	if (!id)
		t->oom = true;
	pthread_mutex_unlock(&t->lock);
	return id;
}

static void emit_task(struct hb_tables_out *t, u32 idx, const struct hb_task *task)
{
	if (!entry2(t, HB_ENTRY_TASK, &idx, sizeof(idx), task, sizeof(*task)))
		t->oom = true;
}

u16 hb_tables_out__task(struct hb_tables_out *t, const struct hb_task *task)
{
	u32 idx = MAX_TASKS;
	bool fresh = false;
	u64 key = (u64)task->pid << 32 | task->tid, *slot = NULL;

	pthread_mutex_lock(&t->lock);
	if (t->n_tasks + 1 < MAX_TASKS || hb_map__get(t->by_task, key, NULL))
		slot = hb_map__slot(t->by_task, key, &fresh);
	if (slot) {
		if (fresh)
			*slot = ++t->n_tasks;
		idx = (u32)*slot;
		emit_task(t, idx, task);
	}
	pthread_mutex_unlock(&t->lock);
	return (u16)idx;
}

void hb_tables_out__task_update(struct hb_tables_out *t, u16 idx, const struct hb_task *task)
{
	pthread_mutex_lock(&t->lock);
	if (idx && idx <= t->n_tasks)
		emit_task(t, idx, task);
	pthread_mutex_unlock(&t->lock);
}

u32 hb_tables_out__proc(struct hb_tables_out *t, const struct hb_proc *p)
{
	bool fresh = false;
	u32 id = 0;
	u64 *slot;

	pthread_mutex_lock(&t->lock);
	slot = hb_map__slot(t->by_proc, p->pid, &fresh);
	if (slot && entry2(t, HB_ENTRY_PROC, p, sizeof(*p), NULL, 0)) {
		if (fresh)
			*slot = ++t->n_procs;
		id = (u32)*slot;
	} else {
		t->oom = true;
	}
	pthread_mutex_unlock(&t->lock);
	return id;
}

int hb_tables_out__probe(struct hb_tables_out *t, u32 id, const struct hb_probe_row *row)
{
	bool ok;

	if (!id)
		return -EINVAL;
	pthread_mutex_lock(&t->lock);
	ok = entry2(t, HB_ENTRY_PROBE, &id, sizeof(id), row, sizeof(*row));
	t->oom |= !ok;
	pthread_mutex_unlock(&t->lock);
	return ok ? 0 : -ENOMEM;
}

int hb_tables_out__stack(struct hb_tables_out *t, u32 pid, u32 raw, const u32 *locs, u32 n, u32 state)
{
	u32 head[4] = {pid, raw, state, n};
	bool ok;

	if (n > MAX_FRAMES) {
		head[3] = MAX_FRAMES;
		head[2] = HB_STACK_TRUNCATED;
		locs += n - MAX_FRAMES; /* the inner frames say more */
	}
	pthread_mutex_lock(&t->lock);
	ok = entry2(t, HB_ENTRY_STACK, head, sizeof(head), locs, head[3] * (u32)sizeof(*locs));
	t->oom |= !ok;
	pthread_mutex_unlock(&t->lock);
	return ok ? 0 : -ENOMEM;
}

static int put_row(struct hb_tables_out *t, enum hb_entry_kind kind, const void *row, u32 size)
{
	bool ok;

	pthread_mutex_lock(&t->lock);
	ok = entry2(t, kind, row, size, NULL, 0);
	t->oom |= !ok;
	pthread_mutex_unlock(&t->lock);
	return ok ? 0 : -ENOMEM;
}

int hb_tables_out__fd(struct hb_tables_out *t, const struct hb_fd_row *row)
{
	return put_row(t, HB_ENTRY_FD, row, sizeof(*row));
}

int hb_tables_out__pytask(struct hb_tables_out *t, const struct hb_pytask_row *row)
{
	return put_row(t, HB_ENTRY_PYTASK, row, sizeof(*row));
}

void hb_tables_out__loss(struct hb_tables_out *t, const struct hb_loss_row *row)
{
	struct hb_loss_row *r;
	size_t n;

	if (!row->count)
		return;
	pthread_mutex_lock(&t->lock);
	r = (struct hb_loss_row *)t->losses.data;
	n = t->losses.size / sizeof(*r);
	t->losses_changed = true;
	while (n && !(r->cause == row->cause && r->type == row->type && r->cpu == row->cpu)) {
		r++;
		n--;
	}
	if (n)
		r->count += row->count;
	else
		hb_buf__add(&t->losses, row, sizeof(*row));
	pthread_mutex_unlock(&t->lock);
}

void hb_tables_out__meta(struct hb_tables_out *t, const char *key, const char *value)
{
	u32 pair[2] = {hb_tables_out__string(t, key), hb_tables_out__string(t, value)};

	if (!pair[0])
		return;
	pthread_mutex_lock(&t->lock);
	if (!entry2(t, HB_ENTRY_META, pair, sizeof(pair), NULL, 0))
		t->oom = true;
	pthread_mutex_unlock(&t->lock);
}

/* Losses are few and change often: each take() writes all of them anew when any has changed. */
static void emit_losses(struct hb_tables_out *t)
{
	const struct hb_loss_row *r = (const struct hb_loss_row *)t->losses.data;
	size_t n = t->losses.size / sizeof(*r);

	for (size_t i = 0; t->losses_changed && i < n; i++)
		entry2(t, HB_ENTRY_LOSS, &r[i], sizeof(*r), NULL, 0);
	t->losses_changed = false;
}

size_t hb_tables_out__pending(struct hb_tables_out *t)
{
	size_t n;

	pthread_mutex_lock(&t->lock);
	n = t->pending.size;
	pthread_mutex_unlock(&t->lock);
	return n;
}

/* End of the last whole entry within HB_TABLE_SIZE bytes; a single larger entry stays whole. */
static size_t cut_at(const struct hb_buf *b)
{
	struct hb_entry_head h;
	size_t at = 0, next;

	while (at < b->size) {
		memcpy(&h, b->data + at, sizeof(h));
		next = at + sizeof(h) + h.size;
		if (next > HB_TABLE_SIZE && at)
			break;
		at = next;
	}
	return at;
}

bool hb_tables_out__take(struct hb_tables_out *t, struct hb_buf *body)
{
	size_t n;
	bool ok;

	memset(body, 0, sizeof(*body));
	pthread_mutex_lock(&t->lock);
	emit_losses(t);
	n = cut_at(&t->pending);
	if (n == t->pending.size) { /* the usual case: no copy */
		*body = t->pending;
		memset(&t->pending, 0, sizeof(t->pending));
	} else {
		hb_buf__add(body, t->pending.data, n);
		memmove(t->pending.data, t->pending.data + n, t->pending.size - n);
		t->pending.size -= n;
	}
	ok = !t->oom && !body->oom && !t->losses.oom;
	pthread_mutex_unlock(&t->lock);
	return ok;
}
