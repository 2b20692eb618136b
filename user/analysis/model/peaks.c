/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analysis/model/peaks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/text.h"

#define FILE_MAX  (1u << 20)
#define ROWS_MAX  4096
#define WORD_MAX  127
#define STARS_MAX 16 /* in all of a name: each costs time to match */

struct hb_peaks {
	struct hb_peak *row;
	unsigned n;
};

struct hb_peaks *hb_peaks__new(void)
{
	return calloc(1, sizeof(struct hb_peaks));
}

void hb_peaks__free(struct hb_peaks *p)
{
	if (p)
		free(p->row);
	free(p);
}

/* ---- words of a line ---- */

struct line {
	const char *table, *at, *end;
	unsigned number;
	struct hb_error *e;
};

static int wrong(const struct line *l, const char *expected, const char *found)
{
	return hb_error__set(l->e, HB_EXIT_USAGE, -EINVAL, "%s:%u: expected %s, found %s%s%s", l->table,
			     l->number, expected, *found ? "'" : "the end of the line", found,
			     *found ? "'" : "");
}

/* The next word: blanks end it, but not between quotes, which are left out. Empty at the end; -EINVAL: too
 * long, or a quote that is open. */
static int next_word(struct line *l, char word[WORD_MAX + 1])
{
	size_t n = 0;
	bool quoted = false;

	while (l->at < l->end && (*l->at == ' ' || *l->at == '\t'))
		l->at++;
	while (l->at < l->end && (quoted || (*l->at != ' ' && *l->at != '\t' && *l->at != '#'))) {
		char c = *l->at++;

		if (c == '"') {
			quoted = !quoted;
			continue;
		}
		if (n == WORD_MAX || !c) {
			word[n] = 0;
			return wrong(l, c ? "words of 127 characters at most" : "text", word);
		}
		word[n++] = c;
	}
	word[n] = 0;
	return quoted ? wrong(l, "a closing quote", word) : 0;
}

static unsigned stars_in(const char *s)
{
	unsigned n = 0;

	for (; *s; s++)
		n += *s == '*' || *s == '[' || *s == '+' || *s == '(';
	return n;
}

/* "989.4": digits, and a part behind a point. One division, so that it is the number that was written. */
static bool number_of(const char *s, double *v)
{
	double whole = 0, unit = 1;
	unsigned digits = 0;
	bool point = false;

	for (; (*s >= '0' && *s <= '9') || (*s == '.' && !point); s++) {
		if (*s == '.') {
			point = true;
			continue;
		}
		whole = whole * 10 + (*s - '0');
		unit = point ? unit * 10 : unit;
		digits++;
	}
	*v = whole / unit;
	return !*s && digits && digits <= 15 && *v > 0 && *v <= 1e9;
}

static double *place_of(struct hb_peak *row, const char *key, size_t n)
{
	if (n == 3 && memcmp(key, "hbm", n) == 0)
		return &row->memory;
	if (n == 4 && memcmp(key, "link", n) == 0)
		return &row->link;
	for (unsigned r = 1; r < HB_RATES; r++)
		if (strlen(hb_rate__name(r)) == n && memcmp(key, hb_rate__name(r), n) == 0)
			return &row->tflops[r];
	return NULL;
}

static int take_value(struct line *l, struct hb_peak *row, const char *word)
{
	static const char what[] = "KEY=NUMBER (fp64 fp32 bf16 fp16 fp8 fp4 int8 hbm link sms)";
	const char *eq = strchr(word, '=');
	double v, *to;

	if (!eq || !number_of(eq + 1, &v))
		return wrong(l, what, word);
	if (eq - word == 3 && memcmp(word, "sms", 3) == 0) {
		row->sms = v < 1e6 ? (unsigned)v : 0;
		return row->sms == v ? 0 : wrong(l, "a number of multiprocessors", word);
	}
	to = place_of(row, word, (size_t)(eq - word));
	if (!to)
		return wrong(l, what, word);
	*to = v;
	return 0;
}

/* 1: a row, 0: an empty line. */
static int parse_line(struct line *l, struct hb_peak *row)
{
	char word[WORD_MAX + 1];
	bool any = false;
	int rc = next_word(l, word);

	if (rc || !*word)
		return rc;
	*row = (struct hb_peak){.line = l->number};
	snprintf(row->table, sizeof(row->table), "%s", hb_text__basename(l->table));
	if (strcmp(word, "device") != 0)
		return wrong(l, "'device'", word);
	rc = next_word(l, word);
	if (rc || !*word)
		return rc ? rc : wrong(l, "the name of a device", word);
	if (stars_in(word) > STARS_MAX)
		return wrong(l, "a name with 16 * at most", word);
	snprintf(row->device, sizeof(row->device), "%s", word);
	rc = next_word(l, word);
	if (rc)
		return rc;
	row->kind = strcmp(word, "ceiling") == 0 ? HB_PEAK_CEILING : HB_PEAK_SHEET;
	if (row->kind == HB_PEAK_SHEET && strcmp(word, "peak") != 0)
		return wrong(l, "'peak' or 'ceiling'", word);
	while (!(rc = next_word(l, word)) && (*word || !any)) {
		rc = take_value(l, row, word);
		if (rc)
			return rc;
		any = true;
	}
	return rc ? rc : 1;
}

/* ---- files ---- */

static int put_first(struct hb_peaks *p, const struct hb_buf *rows, struct hb_error *e)
{
	unsigned n = (unsigned)(rows->size / sizeof(struct hb_peak));
	struct hb_peak *all = rows->oom ? NULL : reallocarray(NULL, p->n + n + 1, sizeof(*all));

	if (!all)
		return hb_error__nomem(e, "peaks of devices");
	if (n)
		memcpy(all, rows->data, n * sizeof(*all));
	if (p->n)
		memcpy(all + n, p->row, p->n * sizeof(*all));
	free(p->row);
	p->row = all;
	p->n += n;
	return 0;
}

int hb_peaks__add_text(struct hb_peaks *p, const char *name, const char *text, size_t size,
		       struct hb_error *e)
{
	struct line l = {.table = name, .e = e};
	struct hb_buf rows = {0};
	struct hb_peak row;
	const char *at = text, *end = text + size;
	int rc = 0;

	while (rc >= 0 && at < end && p->n + rows.size / sizeof(row) < ROWS_MAX) {
		const char *nl = memchr(at, '\n', (size_t)(end - at));

		l.at = at;
		l.end = nl ? nl : end;
		if (l.end > at && l.end[-1] == '\r')
			l.end--;
		at = nl ? nl + 1 : end;
		l.number++;
		rc = parse_line(&l, &row);
		if (rc == 1)
			hb_buf__add(&rows, &row, sizeof(row));
	}
	if (rc >= 0 && at < end)
		rc = hb_error__set(e, HB_EXIT_USAGE, -EINVAL, "%s:%u: more than %u rows", name, l.number,
				   ROWS_MAX);
	if (rc >= 0)
		rc = put_first(p, &rows, e);
	hb_buf__free(&rows);
	return rc;
}

int hb_peaks__add_builtin(struct hb_peaks *p, struct hb_error *e)
{
	return hb_peaks__add_text(p, "peaks.tbl", hb_peaks_text.begin,
				  (size_t)(hb_peaks_text.end - hb_peaks_text.begin), e);
}

int hb_peaks__add_file(struct hb_peaks *p, const char *path, struct hb_error *e)
{
	struct hb_buf b = {0};
	int rc = hb_file__read(path, FILE_MAX, "a file of peaks", &b, e);

	if (!rc)
		rc = hb_peaks__add_text(p, path, b.data ? b.data : "", b.size, e);
	hb_buf__free(&b);
	return rc;
}

/* ---- asking ---- */

static bool is_for(const struct hb_peak *row, const char *device)
{
	char name[sizeof(row->device)], *rest = name, *one;

	snprintf(name, sizeof(name), "%s", row->device);
	while ((one = strsep(&rest, "|")))
		if (*one && hb_text__glob(one, device))
			return true;
	return false;
}

const struct hb_peak *hb_peaks__find(const struct hb_peaks *p, const char *device, enum hb_peak_kind k)
{
	for (unsigned i = 0; i < p->n; i++)
		if (p->row[i].kind == k && is_for(&p->row[i], device))
			return &p->row[i];
	return NULL;
}

unsigned hb_peaks__count(const struct hb_peaks *p)
{
	return p->n;
}

const struct hb_peak *hb_peaks__at(const struct hb_peaks *p, unsigned i)
{
	return i < p->n ? &p->row[i] : NULL;
}
