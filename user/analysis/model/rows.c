/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analysis/model/rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int hb_rows__init(struct hb_rows *t, size_t row_size)
{
	memset(t, 0, sizeof(*t));
	t->size = row_size;
	t->map = hb_map__new();
	return t->map ? 0 : -ENOMEM;
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
	t->row[t->n] = calloc(1, t->size);
	return t->row[t->n] ? t->row[t->n++] : NULL;
}

void *hb_rows__get(struct hb_rows *t, uint64_t key, bool *fresh)
{
	uint64_t at;
	void *row;

	if (fresh)
		*fresh = false;
	if (t->last && t->last_key == key)
		return t->last;
	if (hb_map__get(t->map, key, &at)) {
		row = t->row[at];
	} else {
		row = append(t);
		if (!row || hb_map__put(t->map, key, t->n - 1))
			return NULL;
		if (fresh)
			*fresh = true;
	}
	t->last_key = key;
	t->last = row;
	return row;
}

void hb_rows__sort(struct hb_rows *t, int (*cmp)(const void *, const void *))
{
	if (t->n)
		qsort(t->row, t->n, sizeof(*t->row), cmp);
	t->last = NULL;
}

void hb_rows__free(struct hb_rows *t, void (*drop)(void *row))
{
	for (uint32_t i = 0; i < t->n; i++) {
		if (drop)
			drop(t->row[i]);
		free(t->row[i]);
	}
	free(t->row);
	hb_map__free(t->map);
	memset(t, 0, sizeof(*t));
}
