/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The set of rows: adding tables, order of precedence, which row speaks for a function. */
#include "capture/probes/tables_private.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "base/text.h"
#include "capture/probes/embedded.h"

#define MAX_FILE (1 << 20) /* bytes of one table */

struct hb_tables {
	struct hb_row *rows;
	u32 n;
	char **names; /* of tables; rows point at them */
	u32 n_names;
};

struct hb_tables *hb_tables__new(void)
{
	return calloc(1, sizeof(struct hb_tables));
}

void hb_row_list__free(struct hb_row *rows, u32 n)
{
	for (u32 i = 0; i < n; i++) {
		free(rows[i].library);
		free(rows[i].symbol);
		free(rows[i].except);
		free(rows[i].api);
	}
	free(rows);
}

void hb_tables__free(struct hb_tables *t)
{
	if (!t)
		return;
	hb_row_list__free(t->rows, t->n);
	for (u32 i = 0; i < t->n_names; i++)
		free(t->names[i]);
	free(t->names);
	free(t);
}

const struct hb_row *hb_tables__rows(const struct hb_tables *t, u32 *n)
{
	*n = t->n;
	return t->rows;
}

static const char *keep_name(struct hb_tables *t, const char *name)
{
	char **p = reallocarray(t->names, t->n_names + 1, sizeof(*p));

	if (!p)
		return NULL;
	t->names = p;
	p[t->n_names] = strdup(name);
	if (!p[t->n_names])
		return NULL;
	return hb_text__clean(p[t->n_names++]);
}

/* Puts `fresh` before the rows there are; it is ours afterwards, or freed. */
static int prepend(struct hb_tables *t, const char *name, struct hb_row *fresh, u32 n, struct hb_error *e)
{
	struct hb_row *all;

	if (n > HB_MAX_PROBES - t->n) {
		hb_row_list__free(fresh, n);
		return hb_error__set(e, HB_EXIT_USAGE, -E2BIG, "%s: more than %d rows in all probe tables",
				     name, HB_MAX_PROBES);
	}
	all = reallocarray(fresh, t->n + n, sizeof(*all));
	if (!all) {
		hb_row_list__free(fresh, n);
		return hb_error__nomem(e, "a probe table");
	}
	if (t->n)
		memcpy(all + n, t->rows, t->n * sizeof(*all));
	free(t->rows);
	t->rows = all;
	t->n += n;
	return 0;
}

static int add_rows(struct hb_tables *t, const struct hb_embedded *m, bool builtin, struct hb_error *e)
{
	const char *name = keep_name(t, m->name);
	struct hb_row *fresh = NULL;
	u32 n = 0;
	int rc;

	if (!name)
		return hb_error__nomem(e, "a probe table");
	rc = hb_table__parse(name, m->begin, (size_t)(m->end - m->begin), &fresh, &n, e);
	for (u32 i = 0; !rc && i < n; i++)
		fresh[i].builtin = builtin;
	return rc || n == 0 ? rc : prepend(t, name, fresh, n, e);
}

int hb_tables__add_text(struct hb_tables *t, const char *name, const char *text, size_t size,
			struct hb_error *e)
{
	const struct hb_embedded m = {name, text, text + size};

	return add_rows(t, &m, false, e);
}

int hb_tables__add_embedded(struct hb_tables *t, struct hb_error *e)
{
	for (const struct hb_embedded *m = hb_embedded_tables; m->name; m++) {
		int rc = add_rows(t, m, true, e);

		if (rc)
			return rc;
	}
	return 0;
}

int hb_tables__add_file(struct hb_tables *t, const char *path, struct hb_error *e)
{
	struct hb_buf b = {0};
	int rc = hb_file__read(path, MAX_FILE, "a probe table", &b, e);

	if (!rc)
		rc = hb_tables__add_text(t, path, b.data, b.size, e);
	hb_buf__free(&b);
	return rc;
}

/* ---- what a row covers ---- */

/* Drops the last version suffix of name[0..len); the new length, or len when there is none. */
static size_t drop_suffix(const char *name, size_t len)
{
	static const char *const words[] = {"_ptsz", "_ptds", "_spt"};
	size_t n = len;

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		size_t w = strlen(words[i]);

		if (len > w && memcmp(name + len - w, words[i], w) == 0)
			return len - w;
	}
	while (n > 0 && isdigit((unsigned char)name[n - 1]))
		n--;
	if (n < len && n > 2 && name[n - 1] == 'v' && name[n - 2] == '_')
		return n - 2;
	return len;
}

const char *hb_symbol__base(const char *symbol, char *buf, size_t size)
{
	size_t len = strnlen(symbol, size - 1), n = len;

	do {
		len = n;
		n = drop_suffix(symbol, len);
	} while (n < len);
	memmove(buf, symbol, len);
	buf[len] = 0;
	return buf;
}

/* Does one of the globs between separators match? */
static bool any_glob(const char *globs, char sep, const char *s)
{
	char one[HB_TABLE_WORD + 1];
	size_t n;

	for (const char *p = globs; p; p = p[n] ? p + n + 1 : NULL) {
		n = (size_t)(strchrnul(p, sep) - p);
		if (n > HB_TABLE_WORD)
			continue;
		memcpy(one, p, n);
		one[n] = 0;
		if (hb_text__glob(one, s))
			return true;
	}
	return false;
}

/* Wheels rename the libraries they carry: "libfoo-1a2b3c4d.so.1", "libfoo.1a2b3c4d.so.1" -> "libfoo.so.1". */
static bool drop_hash(const char *base, char *buf, size_t size)
{
	const char *so = strstr(base, ".so"), *p = so;

	while (p && p > base && isxdigit((unsigned char)p[-1]))
		p--;
	if (!so || so - p < 6 || p == base || (p[-1] != '-' && p[-1] != '.'))
		return false;
	return (size_t)snprintf(buf, size, "%.*s%s", (int)(p - 1 - base), base, so) < size;
}

bool hb_row__covers_library(const struct hb_row *r, const char *path)
{
	const char *base = hb_text__basename(path);
	char plain[256];

	return any_glob(r->library, '|', base) ||
	       (drop_hash(base, plain, sizeof(plain)) && any_glob(r->library, '|', plain));
}

bool hb_row__covers_symbol(const struct hb_row *r, const char *symbol)
{
	char name[HB_TABLE_WORD + 1];
	size_t len = strnlen(symbol, sizeof(name)), next;
	bool hit = false;

	if (len >= sizeof(name) || memchr(symbol, '.', len) ||
	    (r->except && any_glob(r->except, '!', symbol)))
		return false;
	memcpy(name, symbol, len + 1);
	for (;;) {
		hit = hit || hb_text__glob(r->symbol, name);
		next = drop_suffix(name, len);
		if (next == len)
			break;
		name[len = next] = 0;
	}
	return hit && !(r->except && any_glob(r->except, '!', name));
}

const struct hb_row *hb_tables__match(const struct hb_tables *t, const char *path, const char *symbol)
{
	for (u32 i = 0; i < t->n; i++)
		if (hb_row__covers_symbol(&t->rows[i], symbol) && hb_row__covers_library(&t->rows[i], path))
			return &t->rows[i];
	return NULL;
}

struct each {
	const struct hb_row *row;
	int (*cb)(const struct hb_sym *s, void *arg);
	void *arg;
};

static int each_sym(const struct hb_sym *s, void *arg)
{
	const struct each *c = arg;

	return hb_row__covers_symbol(c->row, s->name) ? c->cb(s, c->arg) : 0;
}

int hb_row__each(const struct hb_row *r, const struct hb_elf *f, int (*cb)(const struct hb_sym *s, void *arg),
		 void *arg)
{
	struct each c = {r, cb, arg};
	char glob[HB_TABLE_WORD + 2];

	/* The suffixes are sorted out by the row. */
	snprintf(glob, sizeof(glob), "%s*", r->symbol);
	return hb_elf__each(f, glob, each_sym, &c);
}
