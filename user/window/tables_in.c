/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "window/tables_in.h"
#include "base/buf.h"
#include "base/map.h"
#include "base/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Items of one size with ids 0..n-1; gaps are zero. */
struct column {
	u8 *data;
	u32 n, cap;
	u32 item;
};

struct hb_tables_in {
	u32 max_id;
	u64 budget; /* bytes of entries that may still come */
	u64 malformed;
	struct column strings; /* char * */
	struct column tasks, procs, probes, locs, losses, meta;
	struct column pytasks; /* struct hb_pytask_row */
	bool pytasks_sorted;
	struct hb_map *by_tid, *by_pid, *by_loss; /* -> index */
	struct hb_map *by_stack;		  /* -> u32 * into `chunks` */
	struct hb_map *by_fd;			  /* -> string id */
	struct chunk {
		struct chunk *next;
		_Alignas(8) char data[];
	} * chunks; /* strings and stacks live here until the end */
};

/* The item with this id, made when absent; NULL without memory. */
static void *item(struct column *c, u32 id)
{
	u32 cap = c->cap ? c->cap : 64;
	u8 *p;

	if (id >= c->cap) {
		while (cap <= id)
			cap *= 2;
		p = realloc(c->data, (size_t)cap * c->item);
		if (!p)
			return NULL;
		memset(p + (size_t)c->cap * c->item, 0, (size_t)(cap - c->cap) * c->item);
		c->data = p;
		c->cap = cap;
	}
	if (id >= c->n)
		c->n = id + 1;
	return c->data + (size_t)id * c->item;
}

struct hb_tables_in *hb_tables_in__new(u32 max_id, u64 max_bytes)
{
	struct hb_tables_in *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->max_id = max_id;
	t->budget = max_bytes;
	t->strings.item = sizeof(char *);
	t->tasks.item = sizeof(struct hb_task);
	t->procs.item = sizeof(struct hb_proc);
	t->probes.item = sizeof(struct hb_probe_row);
	t->locs.item = sizeof(struct hb_loc);
	t->losses.item = sizeof(struct hb_loss_row);
	t->meta.item = 2 * sizeof(u32);
	t->pytasks.item = sizeof(struct hb_pytask_row);
	t->by_tid = hb_map__new();
	t->by_pid = hb_map__new();
	t->by_loss = hb_map__new();
	t->by_stack = hb_map__new();
	t->by_fd = hb_map__new();
	if (t->by_fd && t->by_tid && t->by_pid && t->by_loss && t->by_stack &&
	    item(&t->tasks, 0)) /* nobody */
		return t;
	hb_tables_in__free(t);
	return NULL;
}

void hb_tables_in__free(struct hb_tables_in *t)
{
	if (!t)
		return;
	for (struct chunk *c = t->chunks, *next; c; c = next) {
		next = c->next;
		free(c);
	}
	free(t->strings.data);
	free(t->tasks.data);
	free(t->procs.data);
	free(t->probes.data);
	free(t->locs.data);
	free(t->losses.data);
	free(t->meta.data);
	free(t->pytasks.data);
	hb_map__free(t->by_tid);
	hb_map__free(t->by_pid);
	hb_map__free(t->by_loss);
	hb_map__free(t->by_stack);
	hb_map__free(t->by_fd);
	free(t);
}

static const void *peek(const struct column *c, u32 id)
{
	return id < c->n ? c->data + (size_t)id * c->item : NULL;
}

/* Memory that lives as long as the tables. */
static void *keep(struct hb_tables_in *t, size_t n)
{
	struct chunk *c = malloc(sizeof(*c) + n);

	if (!c)
		return NULL;
	c->next = t->chunks;
	t->chunks = c;
	return c->data;
}

/* ---- entries: each handler gets the bytes behind the entry's head; -EINVAL: malformed ---- */

static u32 word_at(const u8 *p, unsigned i)
{
	u32 v;

	memcpy(&v, p + 4 * i, 4);
	return v;
}

/* A struct of the file: longer ones (newer minor) are cut, shorter ones extended by zeros. */
static void copy_struct(void *dst, u32 size, const u8 *p, u32 n)
{
	memset(dst, 0, size);
	memcpy(dst, p, n < size ? n : size);
}

static int apply_string(struct hb_tables_in *t, const u8 *p, u32 n)
{
	char **slot, *s;
	u32 id;

	if (n < 4 || (id = word_at(p, 0)) == 0 || id > t->max_id)
		return -EINVAL;
	slot = item(&t->strings, id);
	s = keep(t, n - 4 + 1);
	if (!slot || !s)
		return -ENOMEM;
	memcpy(s, p + 4, n - 4);
	s[n - 4] = 0;
	*slot = hb_text__clean(s); /* the writer cleans too, but this file may be from elsewhere */
	return 0;
}

/* Entries of the form: u32 id, struct. */
static int apply_numbered(struct column *c, const u8 *p, u32 n, u32 max_id)
{
	void *slot;
	u32 id;

	if (n < 4 || (id = word_at(p, 0)) == 0 || id > max_id)
		return -EINVAL;
	slot = item(c, id);
	if (!slot)
		return -ENOMEM;
	copy_struct(slot, c->item, p + 4, n - 4);
	return 0;
}

static int apply_task(struct hb_tables_in *t, const u8 *p, u32 n)
{
	int err = apply_numbered(&t->tasks, p, n, 0xfffe);
	const struct hb_task *task;

	if (err)
		return err;
	task = peek(&t->tasks, word_at(p, 0));
	return hb_map__put(t->by_tid, task->tid, word_at(p, 0));
}

static int apply_probe(struct hb_tables_in *t, const u8 *p, u32 n)
{
	return apply_numbered(&t->probes, p, n, t->max_id);
}

static int apply_loc(struct hb_tables_in *t, const u8 *p, u32 n)
{
	return apply_numbered(&t->locs, p, n, t->max_id);
}

static int apply_proc(struct hb_tables_in *t, const u8 *p, u32 n)
{
	struct hb_proc proc, *slot;
	bool fresh;
	u64 *at;

	if (n < 4)
		return -EINVAL;
	copy_struct(&proc, sizeof(proc), p, n);
	at = hb_map__slot(t->by_pid, proc.pid, &fresh);
	if (at && fresh)
		*at = t->procs.n;
	slot = at ? item(&t->procs, (u32)*at) : NULL;
	if (!slot)
		return -ENOMEM;
	*slot = proc;
	return 0;
}

/* Kept as state, n, locs. */
static int apply_stack(struct hb_tables_in *t, const u8 *p, u32 n)
{
	u32 *s, frames;

	if (n < 16 || (frames = word_at(p, 3)) > (n - 16) / 4)
		return -EINVAL;
	s = keep(t, 8 + 4 * (size_t)frames);
	if (!s)
		return -ENOMEM;
	s[0] = word_at(p, 2);
	s[1] = frames;
	memcpy(s + 2, p + 16, 4 * (size_t)frames);
	return hb_map__put(t->by_stack, (u64)word_at(p, 0) << 32 | word_at(p, 1), (u64)(uintptr_t)s);
}

static struct hb_loss_row *loss_row(struct hb_tables_in *t, const struct hb_loss_row *key)
{
	bool fresh;
	u64 *at = hb_map__slot(t->by_loss, (u64)key->cause << 48 | (u64)key->type << 32 | key->cpu, &fresh);

	if (at && fresh)
		*at = t->losses.n;
	return at ? item(&t->losses, (u32)*at) : NULL;
}

static int apply_loss(struct hb_tables_in *t, const u8 *p, u32 n)
{
	struct hb_loss_row row, *slot;

	if (n < 4)
		return -EINVAL;
	copy_struct(&row, sizeof(row), p, n);
	if (row.cause > 0xffff || row.type > 0xffff)
		return -EINVAL;
	slot = loss_row(t, &row);
	if (!slot)
		return -ENOMEM;
	*slot = row;
	return 0;
}

static u64 fd_key(u32 pid, u32 fd, u64 chan)
{
	return hb_hash64(((u64)pid << 32 | fd) ^ hb_hash64(chan));
}

/* Under its inode, and as the one seen last. */
static int apply_fd(struct hb_tables_in *t, const u8 *p, u32 n)
{
	struct hb_fd_row row;
	int err;

	if (n < 20)
		return -EINVAL;
	copy_struct(&row, sizeof(row), p, n);
	err = hb_map__put(t->by_fd, fd_key(row.pid, row.fd, row.chan), row.text);
	return err ? err : hb_map__put(t->by_fd, fd_key(row.pid, row.fd, 0), row.text);
}

/* Each is kept: they are sorted when the first is asked for. */
static int apply_pytask(struct hb_tables_in *t, const u8 *p, u32 n)
{
	struct hb_pytask_row *row;

	if (n < sizeof(*row) || t->pytasks.n >= t->max_id)
		return -EINVAL;
	row = item(&t->pytasks, t->pytasks.n);
	if (!row)
		return -ENOMEM;
	copy_struct(row, sizeof(*row), p, n);
	t->pytasks_sorted = false;
	return 0;
}

static int apply_meta(struct hb_tables_in *t, const u8 *p, u32 n)
{
	u32 *pair, i;

	if (n < 8)
		return -EINVAL;
	for (i = 0; i < t->meta.n; i++)
		if (word_at(t->meta.data, 2 * i) == word_at(p, 0))
			break;
	if (i > 256)
		return -EINVAL;
	pair = item(&t->meta, i);
	if (!pair)
		return -ENOMEM;
	memcpy(pair, p, 8);
	return 0;
}

static int (*const apply[])(struct hb_tables_in *t, const u8 *p, u32 n) = {
    [HB_ENTRY_STRING] = apply_string, [HB_ENTRY_TASK] = apply_task, [HB_ENTRY_PROC] = apply_proc,
    [HB_ENTRY_PROBE] = apply_probe,   [HB_ENTRY_LOC] = apply_loc,   [HB_ENTRY_STACK] = apply_stack,
    [HB_ENTRY_LOSS] = apply_loss,     [HB_ENTRY_META] = apply_meta, [HB_ENTRY_FD] = apply_fd,
    [HB_ENTRY_PYTASK] = apply_pytask,
};

int hb_tables_in__apply(struct hb_tables_in *t, const void *body, size_t n)
{
	const u8 *p = body, *end = p + n;
	struct hb_entry_head h;
	int err;

	if (n > t->budget) {
		t->malformed++;
		return 0;
	}
	t->budget -= n;
	while ((size_t)(end - p) >= sizeof(h)) {
		memcpy(&h, p, sizeof(h));
		p += sizeof(h);
		if (h.size > (size_t)(end - p))
			break;
		/* Unknown kinds belong to a newer minor version. */
		err = h.kind < sizeof(apply) / sizeof(*apply) && apply[h.kind] ? apply[h.kind](t, p, h.size)
									       : 0;
		if (err == -ENOMEM)
			return err;
		t->malformed += err != 0;
		p += h.size;
	}
	t->malformed += p != end;
	return 0;
}

u64 hb_tables_in__malformed(const struct hb_tables_in *t)
{
	return t->malformed;
}

int hb_tables_in__add_loss(struct hb_tables_in *t, enum hb_loss cause, u64 count)
{
	struct hb_loss_row key = {.cause = cause, .cpu = 0xffffffff}, *slot;

	if (!count)
		return 0;
	slot = loss_row(t, &key);
	if (!slot)
		return -ENOMEM;
	key.count = slot->count + count;
	*slot = key;
	return 0;
}

/* ---- look-up ---- */

const char *hb_tables_in__string(const struct hb_tables_in *t, u32 id)
{
	char *const *s = peek(&t->strings, id);

	if (!id)
		return "";
	return s && *s ? *s : "?";
}

const struct hb_task *hb_tables_in__task(const struct hb_tables_in *t, u32 idx)
{
	return peek(&t->tasks, idx);
}

const struct hb_task *hb_tables_in__tasks(const struct hb_tables_in *t, u32 *n)
{
	*n = t->tasks.n;
	return (const struct hb_task *)t->tasks.data;
}

const struct hb_task *hb_tables_in__task_by_tid(const struct hb_tables_in *t, u32 tid)
{
	u64 idx;

	return hb_map__get(t->by_tid, tid, &idx) ? peek(&t->tasks, (u32)idx) : NULL;
}

const struct hb_proc *hb_tables_in__procs(const struct hb_tables_in *t, u32 *n)
{
	*n = t->procs.n;
	return (const struct hb_proc *)t->procs.data;
}

const struct hb_probe_row *hb_tables_in__probe(const struct hb_tables_in *t, u32 id)
{
	return id ? peek(&t->probes, id) : NULL;
}

u32 hb_tables_in__probes(const struct hb_tables_in *t)
{
	return t->probes.n ? t->probes.n - 1 : 0;
}

const struct hb_loc *hb_tables_in__loc(const struct hb_tables_in *t, u32 id)
{
	return id ? peek(&t->locs, id) : NULL;
}

const char *hb_tables_in__fd(const struct hb_tables_in *t, u32 pid, u32 fd, u64 chan)
{
	u64 id;

	return hb_map__get(t->by_fd, fd_key(pid, fd, chan), &id) && id ? hb_tables_in__string(t, (u32)id)
								       : NULL;
}

static int by_task_and_time(const void *a, const void *b)
{
	const struct hb_pytask_row *x = a, *y = b;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	if (x->task != y->task)
		return x->task < y->task ? -1 : 1;
	return (x->since > y->since) - (x->since < y->since);
}

const char *hb_tables_in__pytask(struct hb_tables_in *t, u32 pid, u64 task, u64 ts)
{
	struct hb_pytask_row *rows = (struct hb_pytask_row *)t->pytasks.data, key = {task, ts, pid, 0};
	u32 low = 0, high = t->pytasks.n;

	if (high && !t->pytasks_sorted)
		qsort(rows, high, sizeof(*rows), by_task_and_time);
	t->pytasks_sorted = true;
	while (low < high) { /* the first that is later */
		u32 mid = low + (high - low) / 2;

		if (by_task_and_time(&rows[mid], &key) <= 0)
			low = mid + 1;
		else
			high = mid;
	}
	if (!low || rows[low - 1].pid != pid || rows[low - 1].task != task || !rows[low - 1].name)
		return NULL;
	return hb_tables_in__string(t, rows[low - 1].name);
}

struct hb_stack hb_tables_in__stack(const struct hb_tables_in *t, u32 pid, u32 raw)
{
	struct hb_stack s = {0};
	u64 at;

	if (raw && hb_map__get(t->by_stack, (u64)pid << 32 | raw, &at)) {
		const u32 *p = (const u32 *)(uintptr_t)at;

		s.state = p[0];
		s.n = p[1];
		s.locs = p + 2;
	}
	return s;
}

const struct hb_loss_row *hb_tables_in__losses(const struct hb_tables_in *t, u32 *n)
{
	*n = t->losses.n;
	return (const struct hb_loss_row *)t->losses.data;
}

bool hb_tables_in__meta_at(const struct hb_tables_in *t, u32 i, const char **key, const char **value)
{
	const u32 *pair = peek(&t->meta, i);

	if (!pair)
		return false;
	*key = hb_tables_in__string(t, pair[0]);
	*value = hb_tables_in__string(t, pair[1]);
	return true;
}
