/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analysis/report/table.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#define MAX_COLUMNS 16
#define GAP	    2
#define CELL_MAX    512
#define FLEX_MIN    12

struct hb_table {
	char *titles; /* own copy, cut at the bars */
	const char *title[MAX_COLUMNS];
	bool right[MAX_COLUMNS];
	int flexible; /* column, -1 = none */
	unsigned n_columns;
	char **cell;
	size_t n, cap;
	bool oom;
};

struct hb_table *hb_table__new(const char *columns)
{
	struct hb_table *t = calloc(1, sizeof(*t));
	char *save = NULL;

	if (!t)
		return NULL;
	t->titles = strdup(columns);
	t->flexible = -1;
	if (!t->titles) {
		free(t);
		return NULL;
	}
	for (char *p = strtok_r(t->titles, "|", &save); p && t->n_columns < MAX_COLUMNS;
	     p = strtok_r(NULL, "|", &save)) {
		char *end = p + strlen(p) - 1;

		t->right[t->n_columns] = *end == '>';
		if (*end == '~')
			t->flexible = (int)t->n_columns;
		if (*end == '>' || *end == '~')
			*end = 0;
		t->title[t->n_columns++] = p;
	}
	if (t->n_columns)
		return t;
	free(t->titles);
	free(t);
	return NULL;
}

void hb_table__cell(struct hb_table *t, const char *fmt, ...)
{
	char text[CELL_MAX];
	va_list ap;

	if (!t || t->oom)
		return;
	if (t->n == t->cap) {
		size_t cap = t->cap ? t->cap * 2 : 64;
		char **p = realloc(t->cell, cap * sizeof(*p));

		t->oom = !p;
		if (!p)
			return;
		t->cell = p;
		t->cap = cap;
	}
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	t->cell[t->n] = strdup(hb_text__clean(text));
	if (t->cell[t->n])
		t->n++;
	else
		t->oom = true;
}

unsigned hb_table__rows(const struct hb_table *t)
{
	return t ? (unsigned)(t->n / t->n_columns) : 0;
}

/* Columns on a terminal: UTF-8 continuation bytes take none. */
static unsigned columns_of(const char *s)
{
	unsigned n = 0;

	for (; *s; s++)
		n += (*s & 0xc0) != 0x80;
	return n;
}

/* Bytes of the first `columns` characters. */
static int bytes_of(const char *s, unsigned columns)
{
	const char *p = s;

	while (*p) {
		if ((*p & 0xc0) != 0x80 && columns-- == 0)
			break;
		p++;
	}
	return (int)(p - s);
}

/* Returns the blanks that are due before the next text: none are left at the end of a line. */
static unsigned print_cell(FILE *out, const char *s, unsigned width, bool right, unsigned blanks)
{
	unsigned n = columns_of(s), pad = n < width ? width - n : 0;

	if (n > width)
		fprintf(out, "%*s%.*s~", (int)blanks, "", bytes_of(s, width - 1), s);
	else if (n)
		fprintf(out, "%*s%s", (int)(blanks + (right ? pad : 0)), "", s);
	else
		return blanks + width + GAP;
	return (right ? 0 : pad) + GAP;
}

static void measure(const struct hb_table *t, unsigned width, unsigned *w)
{
	unsigned sum = GAP * t->n_columns, n, f = t->flexible < 0 ? 0 : (unsigned)t->flexible;

	for (unsigned c = 0; c < t->n_columns; c++)
		w[c] = columns_of(t->title[c]);
	for (size_t i = 0; i < t->n; i++) {
		n = columns_of(t->cell[i]);
		if (n > w[i % t->n_columns])
			w[i % t->n_columns] = n;
	}
	for (unsigned c = 0; c < t->n_columns; c++)
		sum += w[c];
	n = columns_of(t->title[f]);
	n = n > FLEX_MIN ? n : FLEX_MIN; /* a title is never cut */
	if (t->flexible >= 0 && sum > width)
		w[f] = w[f] > sum - width + n ? w[f] - (sum - width) : n;
}

int hb_table__print(struct hb_table *t, FILE *out, unsigned width)
{
	unsigned w[MAX_COLUMNS], c, blanks = 0;
	int rc = !t || t->oom ? -ENOMEM : 0;

	if (!t || !t->n_columns)
		return rc;
	measure(t, width, w);
	for (size_t i = 0; out && i < t->n + t->n_columns; i++) {
		c = (unsigned)(i % t->n_columns);
		blanks = print_cell(out, i < t->n_columns ? t->title[c] : t->cell[i - t->n_columns], w[c],
				    t->right[c], c ? blanks : GAP);
		if (c + 1 == t->n_columns)
			fputc('\n', out);
	}
	for (size_t i = 0; i < t->n; i++)
		free(t->cell[i]);
	free(t->cell);
	free(t->titles);
	free(t);
	return rc;
}
