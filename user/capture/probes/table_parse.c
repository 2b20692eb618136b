/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The language of probe tables (docs/probe-tables.md), one row a line:
 *
 *   api NAME
 *   LIBRARY SYMBOL[!GLOB..] CLASS LAYER entry|return [off] [nothrow] [WORD=SOURCE[,SOURCE[,SOURCE]]]..
 */
#include "capture/probes/tables_private.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include "base/text.h"

#define MAX_LINE  4096
#define MAX_STARS 6  /* a glob's '*'s multiply the time it takes to fail */
#define MAX_STACK 63 /* sN */

/* ---- argument words ---- */

struct arg_word {
	const char *word;
	u8 slot, n;    /* first slot; most sources */
	u8 width;      /* bytes of a source unless it says otherwise */
	int8_t handle; /* enum hb_handle, -1: no handle */
};

static const struct arg_word arg_words[] = {
    {"stream", HB_SLOT_STREAM, 1, 8, -1},
    {"bytes", HB_SLOT_BYTES, 1, 8, -1},
    {"count", HB_SLOT_BYTES, 1, 8, -1},
    {"grid", HB_SLOT_GX, 3, 4, -1},
    {"block", HB_SLOT_BX, 3, 4, -1},
    {"shm", HB_SLOT_SHM, 1, 4, -1},
    {"kind", HB_SLOT_KIND, 1, 4, -1},
    {"handle", HB_SLOT_HANDLE, 1, 8, HB_HANDLE_HANDLE},
    {"function", HB_SLOT_HANDLE, 1, 8, HB_HANDLE_FUNCTION},
    {"graph", HB_SLOT_HANDLE, 1, 8, HB_HANDLE_GRAPH},
    {"comm", HB_SLOT_HANDLE, 1, 8, HB_HANDLE_COMM},
    {"event", HB_SLOT_HANDLE, 1, 8, HB_HANDLE_EVENT},
    {"memory", HB_SLOT_HANDLE, 1, 8, HB_HANDLE_MEMORY},
};
#define N_ARG_WORDS (sizeof(arg_words) / sizeof(*arg_words))

/* The word for a slot of this row: the one that fits its handle and class. */
static const struct arg_word *word_of_slot(const struct hb_row *r, unsigned slot)
{
	for (size_t i = 0; i < N_ARG_WORDS; i++) {
		const struct arg_word *w = &arg_words[i];

		if (w->slot != slot || (w->handle >= 0 && w->handle != r->handle))
			continue;
		if (slot == HB_SLOT_BYTES &&
		    (strcmp(w->word, "count") == 0) != (r->cls == HB_CLASS_COLLECTIVE))
			continue;
		return w;
	}
	return NULL;
}

static int print_source(const struct hb_arg *a, u8 width, char *buf, size_t size)
{
	char shift[8] = "", wide[8] = "";

	if (a->shift)
		snprintf(shift, sizeof(shift), ">>%u", a->shift);
	if (a->src != HB_SRC_CONST && a->width != width)
		snprintf(wide, sizeof(wide), ":u%u", a->width * 8u);
	switch (a->src) {
	case HB_SRC_REG:
		return snprintf(buf, size, "a%u%s%s", a->n, shift, wide);
	case HB_SRC_STACK:
		return snprintf(buf, size, "s%u%s%s", a->n, shift, wide);
	case HB_SRC_DEREF:
		return snprintf(buf, size, a->off ? "*(a%u%+d)%s" : "*(a%u%.0d)%s", a->n, a->off, wide);
	default:
		return snprintf(buf, size, "%d", a->off);
	}
}

const char *hb_row__args(const struct hb_row *r, char *buf, size_t size)
{
	char src[64];
	size_t pos = 0;

	buf[0] = 0;
	for (unsigned slot = 0; slot < HB_SLOT_COUNT; slot++) {
		const struct arg_word *w = word_of_slot(r, slot);

		for (unsigned i = slot; w && i < slot + w->n && r->args[i].src && pos < size; i++) {
			print_source(&r->args[i], w->width, src, sizeof(src));
			if (i == slot)
				pos += (size_t)snprintf(buf + pos, size - pos, "%s%s=%s", pos ? " " : "",
							w->word, src);
			else
				pos += (size_t)snprintf(buf + pos, size - pos, ",%s", src);
		}
	}
	return buf;
}

/* ---- cursor ---- */

struct parser {
	const char *name;
	int line;
	char text[MAX_LINE + 1]; /* the line, without comment */
	const char *p;
	const char *word; /* last word taken */
	char api[32];
	struct hb_row *rows;
	u32 n, cap;
	struct hb_error *e;
};

__attribute__((format(printf, 3, 4))) static int fail(struct parser *s, const char *at, const char *fmt, ...)
{
	char text[600];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return hb_error__set(s->e, HB_EXIT_USAGE, -EINVAL, "%s:%d:%d: %s", s->name, s->line,
			     (int)(at - s->text) + 1, hb_text__clean(text));
}

/* Next word of the line into buf; false at its end. */
static bool next_word(struct parser *s, char *buf)
{
	size_t n;

	s->p += strspn(s->p, " \t\r");
	s->word = s->p;
	n = strcspn(s->p, " \t\r");
	if (n == 0)
		return false;
	s->p += n;
	if (n > HB_TABLE_WORD) /* long enough to be refused by whoever looks at it */
		n = HB_TABLE_WORD;
	memcpy(buf, s->word, n);
	buf[n] = 0;
	return true;
}

/* A word that must be there. */
static int take(struct parser *s, char *buf, const char *what)
{
	if (!next_word(s, buf))
		return fail(s, s->word, "expected %s, found the end of the line", what);
	if (s->p - s->word > HB_TABLE_WORD)
		return fail(s, s->word, "expected %s, found a word of more than %d characters", what,
			    HB_TABLE_WORD);
	return 0;
}

/* ---- columns ---- */

static int check_chars(struct parser *s, const char *word, const char *allowed, const char *what)
{
	unsigned stars = 0;

	for (const char *p = word; *p; p++) {
		if (!isalnum((unsigned char)*p) && !strchr(allowed, *p))
			return fail(s, s->word + (p - word), "expected %s, found '%c'", what, *p);
		if (*p == '*' && ++stars > MAX_STARS)
			return fail(s, s->word + (p - word), "expected %s with no more than %d '*'", what,
				    MAX_STARS);
	}
	return 0;
}

static int parse_library(struct parser *s, char *word, struct hb_row *r)
{
	static const char what[] = "a library's file name or glob, such as libcuda.so*";

	if (take(s, word, what) != 0 || check_chars(s, word, "._+-*?[]|", what) != 0)
		return -EINVAL;
	r->library = strdup(word);
	return r->library ? 0 : hb_error__nomem(s->e, "a probe table");
}

static int parse_symbol(struct parser *s, char *word, struct hb_row *r)
{
	static const char what[] =
	    "a function's name or glob, such as cuLaunchKernel or aclnn*!*GetWorkspaceSize";
	char *bang;

	if (take(s, word, what) != 0 || check_chars(s, word, "_$*?[]!", what) != 0)
		return -EINVAL;
	bang = strchr(word, '!');
	if (bang == word || strstr(word, "!!") || (bang && word[strlen(word) - 1] == '!'))
		return fail(s, s->word + (bang - word), "expected %s, found an empty glob beside '!'", what);
	if (bang) {
		*bang++ = 0;
		r->except = strdup(bang);
		if (!r->except)
			return hb_error__nomem(s->e, "a probe table");
	}
	r->symbol = strdup(word);
	return r->symbol ? 0 : hb_error__nomem(s->e, "a probe table");
}

static int parse_listed(struct parser *s, char *word, enum hb_words list, const char *what, u8 *out)
{
	char all[256], expected[320];
	int id;

	snprintf(expected, sizeof(expected), "%s (one of %s)", what, hb_word__all(list, all, sizeof(all)));
	if (take(s, word, expected) != 0)
		return -EINVAL;
	id = hb_word__id(list, word);
	if (id < 0)
		return fail(s, s->word, "expected %s, found '%s'", expected, word);
	*out = (u8)id;
	return 0;
}

static int parse_probe(struct parser *s, char *word, struct hb_row *r)
{
	if (take(s, word, "entry or return") != 0)
		return -EINVAL;
	r->ret = strcmp(word, "return") == 0;
	if (!r->ret && strcmp(word, "entry") != 0)
		return fail(s, s->word, "expected entry or return, found '%s'", word);
	return 0;
}

/* ---- arguments ---- */

/* Number at *p within min..max, decimal or 0x; moves *p. False: none, or out of range. */
static bool number(const char **p, long min, long max, long *out)
{
	const char *digits = **p == '-' || **p == '+' ? *p + 1 : *p;
	char *end;

	if (!isdigit((unsigned char)*digits)) /* strtol would skip blanks */
		return false;
	errno = 0;
	*out = strtol(*p, &end, strncmp(digits, "0x", 2) == 0 ? 16 : 10);
	if (errno || *out < min || *out > max)
		return false;
	*p = end;
	return true;
}

static bool parse_place(const char **p, struct hb_arg *a)
{
	bool deref = strncmp(*p, "*(", 2) == 0;
	long n;

	if (deref)
		*p += 2;
	if (**p == 'a' || (**p == 's' && !deref)) {
		a->src = deref ? HB_SRC_DEREF : **p == 'a' ? HB_SRC_REG : HB_SRC_STACK;
		++*p;
		if (!isdigit((unsigned char)**p) || !number(p, 0, a->src == HB_SRC_STACK ? MAX_STACK : 5, &n))
			return false;
		a->n = (u8)n;
	} else if (!deref && number(p, INT32_MIN, INT32_MAX, &n)) {
		a->src = HB_SRC_CONST;
		a->off = (s32)n;
	} else {
		return false;
	}
	if (!deref)
		return true;
	if (**p == '+' || **p == '-') {
		if (!number(p, INT32_MIN, INT32_MAX, &n))
			return false;
		a->off = (s32)n;
	}
	if (**p != ')')
		return false;
	++*p;
	return true;
}

static bool parse_width(const char **p, struct hb_arg *a)
{
	static const struct {
		const char *word;
		u8 width;
	} widths[] = {{":u8", 1}, {":u16", 2}, {":u32", 4}, {":u64", 8}};

	for (size_t i = 0; i < sizeof(widths) / sizeof(*widths); i++) {
		size_t n = strlen(widths[i].word);

		if (strncmp(*p, widths[i].word, n) != 0 || isdigit((unsigned char)(*p)[n]))
			continue;
		a->width = widths[i].width;
		*p += n;
		return true;
	}
	return false;
}

static int parse_source(struct parser *s, const char *word, const char **p, struct hb_arg *a, u8 width)
{
	const char *begin = *p;
	long shift;

	a->width = width;
	if (!parse_place(p, a))
		return fail(
		    s, s->word + (*p - word),
		    "expected a source: aN (N-th argument register, 0 to 5), sN (N-th stack word, 0 to %d), "
		    "*(aN+OFFSET) or a number, found '%s'",
		    MAX_STACK, *begin ? begin : "the end of the word");
	if (strncmp(*p, ">>", 2) == 0) {
		*p += 2;
		if ((a->src != HB_SRC_REG && a->src != HB_SRC_STACK) || !number(p, 1, 63, &shift))
			return fail(s, s->word + (*p - word), "expected a shift of 1 to 63 after aN or sN");
		a->shift = (u8)shift;
	}
	if (**p == ':' && (a->src == HB_SRC_CONST || !parse_width(p, a)))
		return fail(s, s->word + (*p - word),
			    "expected :u8, :u16, :u32 or :u64 after aN, sN or a load");
	if (**p && **p != ',')
		return fail(s, s->word + (*p - word), "expected ',' or the end of the word, found '%s'", *p);
	return 0;
}

static int unknown_word(struct parser *s, const char *word)
{
	char all[256];
	size_t pos = 0;

	for (size_t i = 0; i < N_ARG_WORDS; i++)
		pos +=
		    (size_t)snprintf(all + pos, sizeof(all) - pos, "%s%s=", i ? ", " : "", arg_words[i].word);
	return fail(s, s->word, "expected off, nothrow or an argument (%s), found '%s'", all, word);
}

static int parse_arg(struct parser *s, const char *word, struct hb_row *r)
{
	const char *eq = strchr(word, '='), *p;
	const struct arg_word *w = NULL;

	for (size_t i = 0; eq && i < N_ARG_WORDS; i++)
		if (strlen(arg_words[i].word) == (size_t)(eq - word) &&
		    memcmp(arg_words[i].word, word, (size_t)(eq - word)) == 0)
			w = &arg_words[i];
	if (!w)
		return unknown_word(s, word);
	if (r->args[w->slot].src)
		return fail(s, s->word, "expected each argument once, found another source for '%.*s'",
			    (int)(eq - word), word);
	if (w->slot == HB_SLOT_BYTES && (strcmp(w->word, "count") == 0) != (r->cls == HB_CLASS_COLLECTIVE))
		return fail(s, s->word, "expected %s: a collective counts elements, everything else bytes",
			    r->cls == HB_CLASS_COLLECTIVE ? "count=" : "bytes=");
	p = eq + 1;
	for (unsigned i = 0;; i++, p++) {
		if (i == w->n)
			return fail(s, s->word + (p - word), "expected no more than %u source%s for %s", w->n,
				    w->n == 1 ? "" : "s", w->word);
		if (parse_source(s, word, &p, &r->args[w->slot + i], w->width) != 0)
			return -EINVAL;
		if (!*p)
			break;
	}
	if (w->handle >= 0)
		r->handle = (u8)w->handle;
	return 0;
}

static int parse_options(struct parser *s, char *word, struct hb_row *r)
{
	int rc = 0;

	while (!rc && next_word(s, word)) {
		if (s->p - s->word > HB_TABLE_WORD)
			rc = fail(s, s->word, "expected an argument, found a word of more than %d characters",
				  HB_TABLE_WORD);
		else if (strcmp(word, "off") == 0)
			r->on = false;
		else if (strcmp(word, "nothrow") == 0)
			r->nothrow = true;
		else
			rc = parse_arg(s, word, r);
	}
	return rc;
}

/* ---- lines ---- */

static int parse_api(struct parser *s, char *word)
{
	static const char what[] = "the name of an API in small letters, digits and '-', such as cuda-driver";
	size_t n;

	if (take(s, word, what) != 0)
		return -EINVAL;
	n = strspn(word, "abcdefghijklmnopqrstuvwxyz0123456789-");
	if (word[n])
		return fail(s, s->word + n, "expected %s, found '%c'", what, word[n]);
	if (n >= sizeof(s->api))
		return fail(s, s->word, "expected %s of less than %zu characters", what, sizeof(s->api));
	memcpy(s->api, word, n + 1);
	if (next_word(s, word))
		return fail(s, s->word, "expected the end of the line after 'api %s', found '%s'", s->api,
			    word);
	return 0;
}

static int check_row(struct parser *s, const struct hb_row *r)
{
	if (r->ret && !r->nothrow)
		return fail(s, s->p,
			    "expected nothrow: a C++ exception that passes a return probe kills the process, "
			    "so return is "
			    "for functions declared never to throw; otherwise write entry");
	for (u32 i = 0; i < s->n; i++) {
		const struct hb_row *o = &s->rows[i];

		if (strcmp(o->symbol, r->symbol) == 0 && strcmp(o->library, r->library) == 0)
			return fail(s, s->text,
				    "expected each function once, found %s again (line %d has it)", r->symbol,
				    o->line);
	}
	return 0;
}

static int parse_row(struct parser *s, char *word, struct hb_row *r)
{
	if (!s->api[0])
		return fail(s, s->text, "expected a line 'api NAME' before the first row");
	r->api = strdup(s->api);
	if (!r->api)
		return hb_error__nomem(s->e, "a probe table");
	if (parse_library(s, word, r) != 0 || parse_symbol(s, word, r) != 0 ||
	    parse_listed(s, word, HB_WORDS_CLASS, "a class", &r->cls) != 0 ||
	    parse_listed(s, word, HB_WORDS_LAYER, "a layer", &r->layer) != 0 ||
	    parse_probe(s, word, r) != 0 || parse_options(s, word, r) != 0)
		return -EINVAL;
	return check_row(s, r);
}

static int parse_line(struct parser *s)
{
	char word[HB_TABLE_WORD + 1];
	struct hb_row *r;

	s->p = s->text;
	if (!next_word(s, word))
		return 0;
	if (strcmp(word, "api") == 0)
		return parse_api(s, word);
	s->p = s->text;
	if (s->n == HB_MAX_PROBES)
		return fail(s, s->text, "expected no more than %d rows in a table", HB_MAX_PROBES);
	if (s->n == s->cap) {
		u32 cap = s->cap ? 2 * s->cap : 64;

		r = reallocarray(s->rows, cap, sizeof(*r));
		if (!r)
			return hb_error__nomem(s->e, "a probe table");
		s->rows = r;
		s->cap = cap;
	}
	r = &s->rows[s->n];
	*r = (struct hb_row){.table = s->name, .line = s->line, .on = true};
	if (parse_row(s, word, r) != 0) {
		s->n++; /* freed with the others */
		return -EINVAL;
	}
	s->n++;
	return 0;
}

/* Copies a line without its comment. */
static int copy_line(struct parser *s, const char *line, size_t n)
{
	const char *hash = memchr(line, '#', n), *nul = memchr(line, 0, n);

	s->text[0] = 0;
	if (nul)
		return fail(s, s->text + (nul - line < MAX_LINE ? nul - line : MAX_LINE),
			    "expected text, found a NUL byte");
	if (hash)
		n = (size_t)(hash - line);
	if (n > MAX_LINE)
		return fail(s, s->text + MAX_LINE, "expected a line of no more than %d characters", MAX_LINE);
	memcpy(s->text, line, n);
	s->text[n] = 0;
	return 0;
}

int hb_table__parse(const char *name, const char *text, size_t size, struct hb_row **rows, u32 *n,
		    struct hb_error *e)
{
	struct parser *s = calloc(1, sizeof(*s));
	int rc = 0;

	if (!s)
		return hb_error__nomem(e, "a probe table");
	s->name = name;
	s->e = e;
	for (size_t pos = 0; pos < size && !rc;) {
		const char *end = memchr(text + pos, '\n', size - pos);
		size_t len = end ? (size_t)(end - text) - pos : size - pos;

		s->line++;
		rc = copy_line(s, text + pos, len);
		if (!rc)
			rc = parse_line(s);
		pos += len + 1;
	}
	if (rc) {
		hb_row_list__free(s->rows, s->n);
	} else {
		*rows = s->rows;
		*n = s->n;
	}
	free(s);
	return rc;
}
