/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analysis/model/rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int hb_rows__init(struct hb_rows *t, size_t row_size)
{
	memset(t, 0, sizeof(*t));
	t->size = (row_size + 7) & ~(size_t)7;
	t->map = hb_map__new();
	return t->map ? 0 : -ENOMEM;
}

/* Rows lie side by side in blocks that double: what is counted often should be near. */
#define BLOCK_MAX 65536

struct block {
	struct block *before;
	_Alignas(16) char row[];
};

static void *new_row(struct hb_rows *t)
{
	struct block *b;

	if (!t->room) {
		uint32_t n = t->n < 8 ? 8 : t->n;

		if (n * t->size > BLOCK_MAX)
			n = t->size < BLOCK_MAX / 8 ? (uint32_t)(BLOCK_MAX / t->size) : 8;
		b = calloc(1, sizeof(*b) + n * t->size);
		if (!b)
			return NULL;
		b->before = t->block;
		t->block = b;
		t->next = b->row;
		t->room = n;
	}
	t->room--;
	t->next += t->size;
	return t->next - t->size;
}

static void *append(struct hb_rows *t)
{
	if (t->n == t->cap) {
		uint32_t cap = t->cap ? t->cap * 2 : 32;
		void **p = realloc(t->row, cap * sizeof(*p));

		if (!p)
			return NULL;
		t->row = p;
		t->cap = cap;
	}
	t->row[t->n] = new_row(t);
	return t->row[t->n] ? t->row[t->n++] : NULL;
}

void *hb_rows__find(const struct hb_rows *t, uint64_t key)
{
	uint64_t at;

	return hb_map__get(t->map, key, &at) ? (void *)(uintptr_t)at : NULL;
}

void *hb_rows__get(struct hb_rows *t, uint64_t key, bool *fresh)
{
	struct hb_rows_recent *r = &t->recent[key * 0x9e3779b97f4a7c15ULL >> 32 & (HB_ROWS_RECENT - 1)];
	void *row;

	if (fresh)
		*fresh = false;
	if (r->row && r->key == key)
		return r->row;
	row = hb_rows__find(t, key);
	if (!row) {
		row = append(t);
		if (!row || hb_map__put(t->map, key, (uintptr_t)row))
			return NULL;
		if (fresh)
			*fresh = true;
	}
	*r = (struct hb_rows_recent){.key = key, .row = row};
	return row;
}

void hb_rows__sort(struct hb_rows *t, int (*cmp)(const void *, const void *))
{
	if (t->n)
		qsort(t->row, t->n, sizeof(*t->row), cmp);
}

void hb_rows__free(struct hb_rows *t, void (*drop)(void *row))
{
	for (uint32_t i = 0; drop && i < t->n; i++)
		drop(t->row[i]);
	for (struct block *b = t->block, *before; b; b = before) {
		before = b->before;
		free(b);
	}
	free(t->row);
	hb_map__free(t->map);
	memset(t, 0, sizeof(*t));
}
