/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "base/json.h"
#include "base/buf.h"
#include "base/text.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <yajl/yajl_gen.h>

#define OUT_SIZE  (64 << 10)
#define MAX_DEPTH 120 /* the generator's own limit is 128 */

struct hb_json {
	FILE *out;
	yajl_gen gen;
	int err;
	bool pretty;
	unsigned depth;
	bool is_array[MAX_DEPTH];
	struct hb_buf scratch; /* a string being cleaned */
	size_t fill;
	char buf[OUT_SIZE];
};

static void fail(struct hb_json *j, int err)
{
	if (!j->err)
		j->err = err;
}

static void drain(struct hb_json *j)
{
	errno = 0;
	if (j->fill && fwrite(j->buf, 1, j->fill, j->out) != j->fill)
		fail(j, errno ? -errno : -EIO);
	j->fill = 0;
}

static void emit(void *ctx, const char *s, size_t n)
{
	struct hb_json *j = ctx;

	while (n && !j->err) {
		size_t part = OUT_SIZE - j->fill < n ? OUT_SIZE - j->fill : n;

		memcpy(j->buf + j->fill, s, part);
		j->fill += part;
		s += part;
		n -= part;
		if (j->fill == OUT_SIZE)
			drain(j);
	}
}

struct hb_json *hb_json__new(FILE *out, bool pretty)
{
	struct hb_json *j = calloc(1, sizeof(*j));

	if (!j)
		return NULL;
	j->gen = yajl_gen_alloc(NULL);
	if (!j->gen) {
		free(j);
		return NULL;
	}
	j->out = out;
	j->pretty = pretty;
	yajl_gen_config(j->gen, yajl_gen_print_callback, emit, j);
	yajl_gen_config(j->gen, yajl_gen_beautify, (int)pretty);
	yajl_gen_config(j->gen, yajl_gen_indent_string, "  ");
	return j;
}

int hb_json__free(struct hb_json *j)
{
	int err;

	if (j->depth)
		fail(j, -EINVAL);
	if (!j->err || j->err == -EINVAL)
		drain(j);
	errno = 0;
	if (fflush(j->out))
		fail(j, errno ? -errno : -EIO);
	err = j->err;
	yajl_gen_free(j->gen);
	hb_buf__free(&j->scratch);
	free(j);
	return err;
}

int hb_json__error(const struct hb_json *j)
{
	return j->err;
}

static void check(struct hb_json *j, yajl_gen_status st)
{
	if (st != yajl_gen_status_ok)
		fail(j, -EINVAL);
}

static void open_container(struct hb_json *j, bool is_array)
{
	if (j->depth >= MAX_DEPTH)
		fail(j, -EINVAL);
	if (j->err)
		return;
	j->is_array[j->depth++] = is_array;
	check(j, is_array ? yajl_gen_array_open(j->gen) : yajl_gen_map_open(j->gen));
}

void hb_json__object(struct hb_json *j)
{
	open_container(j, false);
}

void hb_json__array(struct hb_json *j)
{
	open_container(j, true);
}

void hb_json__end(struct hb_json *j)
{
	if (!j->depth)
		fail(j, -EINVAL);
	if (j->err)
		return;
	j->depth--;
	check(j, j->is_array[j->depth] ? yajl_gen_array_close(j->gen) : yajl_gen_map_close(j->gen));
}

void hb_json__newline(struct hb_json *j)
{
	if (j->depth)
		fail(j, -EINVAL);
	if (j->err)
		return;
	/* Indented output already ends with a newline of the generator's. */
	yajl_gen_reset(j->gen, j->pretty ? NULL : "\n");
}

/* Most strings are plain ASCII and need no cleaned copy. */
static bool is_plain(const char *s, size_t *n)
{
	const unsigned char *p = (const unsigned char *)s;

	while (*p >= 0x20 && *p < 0x7f)
		p++;
	*n = (size_t)((const char *)p - s);
	return !*p;
}

static const char *cleaned(struct hb_json *j, const char *s, size_t *n)
{
	if (is_plain(s, n))
		return s;
	*n = strlen(s);
	j->scratch.size = 0;
	hb_buf__add(&j->scratch, s, *n + 1);
	if (j->scratch.oom) {
		fail(j, -ENOMEM);
		return NULL;
	}
	return hb_text__clean(j->scratch.data);
}

void hb_json__string(struct hb_json *j, const char *s)
{
	size_t n;

	if (j->err)
		return;
	if (!s) {
		hb_json__null(j);
		return;
	}
	s = cleaned(j, s, &n);
	if (s)
		check(j, yajl_gen_string(j->gen, (const unsigned char *)s, n));
}

void hb_json__key(struct hb_json *j, const char *key)
{
	hb_json__string(j, key);
}

static void number(struct hb_json *j, const char *text, int n)
{
	if (!j->err)
		check(j, yajl_gen_number(j->gen, text, (size_t)n));
}

/* Most of a document is numbers, and snprintf() takes ten times as long. */
void hb_json__u64(struct hb_json *j, uint64_t v)
{
	char text[20];
	int at = sizeof(text);

	do {
		text[--at] = (char)('0' + v % 10);
		v /= 10;
	} while (v);
	number(j, text + at, (int)sizeof(text) - at);
}

void hb_json__s64(struct hb_json *j, int64_t v)
{
	char text[24];

	number(j, text, snprintf(text, sizeof(text), "%lld", (long long)v));
}

void hb_json__real(struct hb_json *j, double v, int decimals)
{
	char text[352]; /* the largest double has 309 digits before the point */

	if (!isfinite(v)) {
		hb_json__null(j);
		return;
	}
	if (decimals > 20)
		decimals = 20;
	number(j, text, snprintf(text, sizeof(text), "%.*f", decimals, v));
}

void hb_json__bool(struct hb_json *j, bool v)
{
	if (!j->err)
		check(j, yajl_gen_bool(j->gen, v));
}

void hb_json__null(struct hb_json *j)
{
	if (!j->err)
		check(j, yajl_gen_null(j->gen));
}

void hb_json__kobject(struct hb_json *j, const char *key)
{
	hb_json__key(j, key);
	hb_json__object(j);
}

void hb_json__karray(struct hb_json *j, const char *key)
{
	hb_json__key(j, key);
	hb_json__array(j);
}

void hb_json__kstring(struct hb_json *j, const char *key, const char *s)
{
	hb_json__key(j, key);
	hb_json__string(j, s);
}

void hb_json__ku64(struct hb_json *j, const char *key, uint64_t v)
{
	hb_json__key(j, key);
	hb_json__u64(j, v);
}

void hb_json__ks64(struct hb_json *j, const char *key, int64_t v)
{
	hb_json__key(j, key);
	hb_json__s64(j, v);
}

void hb_json__kreal(struct hb_json *j, const char *key, double v, int decimals)
{
	hb_json__key(j, key);
	hb_json__real(j, v, decimals);
}

void hb_json__kbool(struct hb_json *j, const char *key, bool v)
{
	hb_json__key(j, key);
	hb_json__bool(j, v);
}
