/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Feeds JSON to the parser, piece by piece, and goes on after what is no JSON: the row, or member beside the
 * rows, in which it stopped is mended and read again, or given up, and reading starts at what looks like the
 * next row.
 */
#include "analysis/import/parse.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/import/build.h"
#include "analysis/import/mend.h"

#define PIECE	 (1u << 20)  /* bytes read at once */
#define ROW_MOST (64u << 20) /* of one row */
#define MEND	 4096	     /* bytes mended at once */
#define LOOK	 64	     /* bytes that tell the begin of a row */

struct feed {
	struct hb_source *src;
	struct hb_build b;
	struct hb_parse_stats *st;
	struct hb_mend mend;
	char *buf;
	char *copy;	  /* of buf, mended; only once something needed it, and then the parser reads this */
	size_t cap, size; /* bytes in buf */
	size_t fed;	  /* of these given to the parser */
	size_t mended;	  /* of these in `copy` */
	u64 at;		  /* position of buf[0] in the JSON */
	bool mending, eof;
};

/* ---- bytes ---- */

static bool grow(char **buf, size_t cap)
{
	char *more = realloc(*buf, cap);

	if (more)
		*buf = more;
	return more;
}

/* Drops what is not needed any more. */
static void drop(struct feed *f)
{
	size_t gone = f->b.unit > f->at ? (size_t)(f->b.unit - f->at) : 0;

	gone = gone > f->fed ? f->fed : gone;
	if (!gone)
		return;
	memmove(f->buf, f->buf + gone, f->size - gone);
	if (f->mended > gone)
		memmove(f->copy, f->copy + gone, f->mended - gone);
	f->size -= gone;
	f->fed -= gone;
	f->mended -= gone > f->mended ? f->mended : gone;
	f->at += gone;
}

static int fill(struct feed *f)
{
	size_t cap = f->cap ? 2 * f->cap : 4 * PIECE;
	long n;

	drop(f);
	if (f->cap - f->size < PIECE) {
		if (!grow(&f->buf, cap) || (f->mending && !grow(&f->copy, cap)))
			return -ENOMEM;
		f->cap = cap;
	}
	n = hb_source__read(f->src, f->buf + f->size, PIECE);
	if (n < 0)
		return (int)n;
	if (!f->st->bytes && n >= 3 && memcmp(f->buf, "\xef\xbb\xbf", 3) == 0)
		memset(f->buf, ' ', 3); /* a mark that some editors put before a text */
	f->eof = n == 0;
	f->size += (size_t)n;
	f->st->bytes += (u64)n;
	return 0;
}

/* What the parser reads, and up to where. */
static const char *text_of(const struct feed *f)
{
	return f->mending ? f->copy : f->buf;
}

static size_t ready(struct feed *f)
{
	if (!f->mending)
		return f->size;
	/* Not far ahead: where many rows are broken it would be for nothing. A long word may need more. */
	for (size_t ahead = MEND; f->mended <= f->fed && f->mended < f->size; ahead *= 2) {
		size_t n = f->size - f->mended < ahead ? f->size - f->mended : ahead;
		bool all = f->mended + n == f->size;

		memcpy(f->copy + f->mended, f->buf + f->mended, n);
		f->mended += hb_mend(&f->mend, f->copy + f->mended, n, f->eof && all, &f->st->mended);
		if (all)
			break;
	}
	return f->mended;
}

/* ---- going on ---- */

static int new_parser(struct feed *f)
{
	if (f->b.h)
		yajl_free(f->b.h);
	f->b.h = yajl_alloc(&hb_build_callbacks, NULL, &f->b);
	if (!f->b.h)
		return -ENOMEM;
	yajl_config(f->b.h, yajl_dont_validate_strings, 1); /* the window's writer cleans them */
	return 0;
}

/* Lets the parser believe that it is where the unit begins. */
static int restart(struct feed *f)
{
	static const char object[] = "{\"traceEvents\":[";
	const char *prefix = f->b.place == HB_PLACE_HEAD ? "{" : f->b.bare ? "[" : object;
	u64 unit = f->b.unit;
	size_t n = unit ? strlen(prefix) : 0; /* at the very begin it is there */
	int err = new_parser(f);

	if (err)
		return err;
	hb_build__restart(&f->b, f->b.place);
	f->b.base = unit - n; /* wraps at the begin, and back */
	if (n)
		yajl_parse(f->b.h, (const unsigned char *)prefix, n);
	f->b.unit = unit;
	f->fed = (size_t)(unit - f->at);
	while (f->fed < f->size && (isspace((unsigned char)f->buf[f->fed]) || f->buf[f->fed] == ','))
		f->fed++;
	f->mended = f->fed;
	f->mend = (struct hb_mend){0};
	return f->b.err;
}

/* A brace, then a key that rows have, after a comma or the list's bracket: not that of arguments. */
static bool looks_like_row(const char *s, size_t n)
{
	static const char *const keys[] = {"ph\"", "cat\"", "name\"", "pid\"", "tid\"", "ts\"", "dur\""};
	size_t i = 1;

	while (i < n && isspace((unsigned char)s[i]))
		i++;
	if (i == n || s[i++] != '"')
		return false;
	for (size_t k = 0; k < sizeof(keys) / sizeof(*keys); k++)
		if (n - i >= strlen(keys[k]) && memcmp(s + i, keys[k], strlen(keys[k])) == 0)
			return true;
	return false;
}

static bool after_comma(const char *from, const char *s)
{
	while (s > from && isspace((unsigned char)s[-1]))
		s--;
	return s > from && (s[-1] == ',' || s[-1] == '[');
}

/* The begin of the next row behind the unit; NULL when it is not in the buffer, and *from is where to go on.
 */
static char *next_row(struct feed *f, size_t *from)
{
	char *end = f->buf + f->size, *s = f->buf + *from;

	for (; (s = memchr(s, '{', (size_t)(end - s))); s++) {
		if (!f->eof && end - s < LOOK)
			break;
		if (looks_like_row(s, (size_t)(end - s)) && after_comma(f->buf, s))
			return s;
	}
	*from = (size_t)((s ? s : end) - f->buf);
	return NULL;
}

/* Gives the unit up. */
static int skip(struct feed *f)
{
	size_t from = (size_t)(f->b.unit - f->at) + 1;
	char *row;
	int err = 0;

	f->st->broken++;
	while (!(row = next_row(f, &from)) && !f->eof && !err) {
		u64 at = f->at + from;

		/* Keeps the spaces before it: there is the comma. */
		f->fed = f->size;
		f->b.unit = at > f->at + LOOK ? at - LOOK : f->at;
		err = fill(f);
		from = (size_t)(at - f->at);
	}
	if (err)
		return err;
	if (!row) {
		f->st->cut = f->b.done = true;
		return 0;
	}
	if (f->b.place == HB_PLACE_HEAD) { /* was it in what comes before the rows? */
		f->b.place = HB_PLACE_ROWS;
		f->st->found = true;
	}
	f->b.unit = f->at + (u64)(row - f->buf);
	return restart(f);
}

/* Neither an object nor a list: nothing to mend. */
static bool no_json(const struct feed *f)
{
	size_t i = 0;

	while (i < f->size && isspace((unsigned char)f->buf[i]))
		i++;
	return !f->b.unit && (i == f->size || !strchr("{[", f->buf[i]));
}

/* The parser stopped in the unit. */
static int recover(struct feed *f)
{
	if (f->b.err)
		return f->b.err;
	if (f->b.deep || f->b.unit < f->at || f->mending || no_json(f)) {
		f->b.deep = false;
		return skip(f);
	}
	if (!f->mending && !grow(&f->copy, f->cap))
		return -ENOMEM;
	f->mending = true;
	return restart(f);
}

static bool garbage(struct feed *f)
{
	for (size_t i = f->fed; i < f->size; i++)
		if (!isspace((unsigned char)f->buf[i]))
			return true;
	return false;
}

/* What is in the buffer. */
static int feed(struct feed *f)
{
	yajl_status s = yajl_status_ok;
	int err = 0;

	while (!err && !f->b.done && ready(f) > f->fed) {
		size_t n = ready(f) - f->fed;

		f->b.base = f->at + f->fed;
		s = yajl_parse(f->b.h, (const unsigned char *)text_of(f) + f->fed, n);
		if (f->b.done)
			f->fed += yajl_get_bytes_consumed(f->b.h);
		else if (s == yajl_status_ok)
			f->fed += n;
		else
			err = recover(f);
	}
	if (!err && !f->b.done && f->size - (size_t)(f->b.unit > f->at ? f->b.unit - f->at : 0) > ROW_MOST)
		err = skip(f);
	return err;
}

static bool empty(const struct feed *f)
{
	return f->st->bytes == 0;
}

/* A list of rows may end without its bracket: so says the format. */
static void judge_end(struct feed *f)
{
	if (f->b.done)
		f->st->garbage = !f->st->cut && garbage(f);
	else
		f->st->cut |= empty(f) || !(f->b.bare && f->b.depth == 1);
	f->st->cut |= hb_source__cut(f->src);
}

int hb_parse__run(struct hb_source *src, const struct hb_parse_sink *sink, struct hb_parse_stats *st,
		  struct hb_error *e)
{
	struct feed *f = calloc(1, sizeof(*f));
	int err;

	*st = (struct hb_parse_stats){0};
	if (!f)
		return hb_error__nomem(e, "reading the trace");
	f->src = src;
	f->st = f->b.st = st;
	f->b.sink = sink;
	hb_columns__init(&f->b.columns);
	err = new_parser(f);
	while (!err && !f->eof && !f->b.done) {
		err = fill(f);
		err = err ? err : feed(f);
	}
	judge_end(f);
	if (f->b.h)
		yajl_free(f->b.h);
	hb_buf__free(&f->b.text);
	free(f->buf);
	free(f->copy);
	free(f);
	if (err == -ENOMEM)
		return hb_error__nomem(e, "reading the trace");
	return err ? hb_error__set(e, HB_EXIT_FAILED, err, "cannot read the trace: %s", strerror(-err)) : 0;
}
