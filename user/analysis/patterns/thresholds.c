/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Thresholds of all patterns, with what was set by hand. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "analysis/patterns/patterns.h"
#include "base/file.h"
#include "base/text.h"

#define FILE_MAX (1u << 20)

#define MILLION 1000000ULL

struct changed {
	const struct hb_pattern *pattern;
	const struct hb_param *param;
	u64 value;
};

struct hb_thresholds {
	struct changed *c;
	u32 n;
};

struct hb_thresholds *hb_thresholds__new(void)
{
	return calloc(1, sizeof(struct hb_thresholds));
}

void hb_thresholds__free(struct hb_thresholds *t)
{
	if (!t)
		return;
	free(t->c);
	free(t);
}

const struct hb_pattern *hb_patterns__find(const char *id)
{
	const struct hb_pattern *const *p = hb_patterns();

	while (*p && strcasecmp((*p)->id, id) != 0)
		p++;
	return *p;
}

static const struct hb_param *param_of(const struct hb_pattern *p, const char *key)
{
	const struct hb_param *a = p->params;

	while (a && a->key && strcmp(a->key, key) != 0)
		a++;
	return a && a->key ? a : NULL;
}

/* "a, b, c" of a pattern's keys. */
static const char *keys_of(const struct hb_pattern *p, char *buf, size_t size)
{
	size_t n = 0;

	*buf = 0;
	for (const struct hb_param *a = p->params; a && a->key && n + 1 < size; a++) {
		int k = snprintf(buf + n, size - n, "%s%s", n ? ", " : "", a->key);

		n += k > 0 ? (size_t)k : 0;
	}
	return buf;
}

/* A decimal number, maybe with "%": millionths. */
static int parse_part(const char *s, u64 *out)
{
	char *end;
	double v;

	errno = 0;
	v = strtod(s, &end);
	while (isspace((unsigned char)*end))
		end++;
	if (*end == '%') {
		v /= 100;
		end++;
	} else if (*end == 'x') {
		end++;
	}
	if (end == s || *end || errno || !isfinite(v) || v < 0 || v > 1e9)
		return -EINVAL;
	*out = (u64)(v * (double)MILLION + 0.5);
	return 0;
}

static int parse_count(const char *s, u64 *out)
{
	char *end;

	errno = 0;
	*out = strtoull(s, &end, 10);
	return !isdigit((unsigned char)*s) || *end || errno ? -EINVAL : 0;
}

static int parse_value(enum hb_unit unit, const char *s, u64 *out)
{
	switch (unit) {
	case HB_UNIT_SHARE:
	case HB_UNIT_RATIO:
		return parse_part(s, out);
	case HB_UNIT_NS:
		if (strcmp(s, "0") == 0) {
			*out = 0;
			return 0;
		}
		return hb_text__duration(s, out);
	case HB_UNIT_BYTES:
		return hb_text__size(s, out);
	default:
		return parse_count(s, out);
	}
}

static const char *unit_words(enum hb_unit unit)
{
	switch (unit) {
	case HB_UNIT_SHARE:
		return "a part such as 0.05 or 5%";
	case HB_UNIT_RATIO:
		return "a factor such as 1.5";
	case HB_UNIT_NS:
		return "a time such as 200us or 10ms";
	case HB_UNIT_BYTES:
		return "a size such as 64KiB";
	case HB_UNIT_RATE:
		return "a whole number per second";
	default:
		return "a whole number";
	}
}

static int keep(struct hb_thresholds *t, const struct hb_pattern *p, const struct hb_param *a, u64 value,
		struct hb_error *e)
{
	struct changed *c;

	for (u32 i = 0; i < t->n; i++) {
		if (t->c[i].param == a) {
			t->c[i].value = value;
			return 0;
		}
	}
	c = realloc(t->c, (t->n + 1) * sizeof(*c));
	if (!c)
		return hb_error__nomem(e, "a threshold");
	t->c = c;
	t->c[t->n++] = (struct changed){.pattern = p, .param = a, .value = value};
	return 0;
}

/* Cuts blanks off both ends, in place. */
static char *trim(char *s)
{
	size_t n;

	s += strspn(s, " \t\r\n");
	n = strlen(s);
	while (n && isspace((unsigned char)s[n - 1]))
		s[--n] = 0;
	return s;
}

int hb_thresholds__set(struct hb_thresholds *t, const char *text, struct hb_error *e)
{
	char copy[256], known[384], *eq, *dot, *name, *value;
	const struct hb_pattern *p;
	const struct hb_param *a;
	u64 v;

	snprintf(copy, sizeof(copy), "%s", text);
	eq = strchr(copy, '=');
	dot = strchr(copy, '.');
	if (!eq || !dot || dot > eq || strlen(text) >= sizeof(copy))
		return hb_error__set(
		    e, HB_EXIT_USAGE, -EINVAL,
		    "a threshold is set as PATTERN.NAME=VALUE, such as p21.wait_share=0.05, not "
		    "\"%.100s\"",
		    text);
	*eq = *dot = 0;
	name = trim(dot + 1);
	value = trim(eq + 1);
	p = strcasecmp(trim(copy), "gate") == 0 ? hb_patterns__find("GATE") : hb_patterns__find(trim(copy));
	if (!p)
		return hb_error__set(
		    e, HB_EXIT_USAGE, -EINVAL,
		    "there is no pattern \"%.40s\": docs/patterns.md lists them (p01 to p49, gate)",
		    trim(copy));
	a = param_of(p, name);
	if (!a)
		return hb_error__set(e, HB_EXIT_USAGE, -EINVAL,
				     "pattern %s has no threshold \"%.60s\"; it has: %s", p->id, name,
				     p->params ? keys_of(p, known, sizeof(known)) : "none");
	if (parse_value(a->unit, value, &v))
		return hb_error__set(e, HB_EXIT_USAGE, -EINVAL, "%s.%s takes %s, not \"%.60s\"", p->id,
				     a->key, unit_words(a->unit), value);
	return keep(t, p, a, v, e);
}

/* The lines of a file; `b` ends with a byte 0. */
static int read_lines(struct hb_thresholds *t, const char *path, struct hb_buf *b, struct hb_error *e)
{
	char *rest = b->data, *line;

	for (int number = 1; (line = strsep(&rest, "\n")); number++) {
		struct hb_error why = {0};
		char *s;
		int err;

		line[strcspn(line, "#")] = 0;
		s = trim(line);
		err = *s ? hb_thresholds__set(t, s, &why) : 0;
		if (err)
			return hb_error__set(e, HB_EXIT_USAGE, err, "%s:%d: %s", path, number, why.text);
	}
	return 0;
}

int hb_thresholds__read(struct hb_thresholds *t, const char *path, struct hb_error *e)
{
	struct hb_buf b = {0};
	int err = hb_file__read(path, FILE_MAX, "a file of thresholds", &b, e);

	if (!err && b.size && memchr(b.data, 0, b.size))
		err = hb_error__set(e, HB_EXIT_USAGE, -EINVAL,
				    "%s has bytes that are no text: not a file of thresholds", path);
	if (!err && !hb_buf__room(&b, 1))
		err = hb_error__nomem(e, "thresholds");
	if (!err) {
		b.data[b.size] = 0;
		err = read_lines(t, path, &b, e);
	}
	hb_buf__free(&b);
	return err;
}

u64 hb_thresholds__value(const struct hb_thresholds *t, const struct hb_pattern *p, const char *key)
{
	const struct hb_param *a = param_of(p, key);

	for (u32 i = 0; t && i < t->n; i++)
		if (t->c[i].param == a)
			return t->c[i].value;
	return a ? a->value : 0;
}

bool hb_thresholds__changed(const struct hb_thresholds *t, u32 i, const struct hb_pattern **p,
			    const struct hb_param **param, u64 *value)
{
	if (!t || i >= t->n)
		return false;
	*p = t->c[i].pattern;
	*param = t->c[i].param;
	*value = t->c[i].value;
	return true;
}

/* 1250000 -> "1.25", without needless zeros. */
static int put_part(char *buf, size_t size, u64 millionths, u64 scale)
{
	u64 v = millionths * scale, frac = v % MILLION;
	int n = snprintf(buf, size, "%llu", (unsigned long long)(v / MILLION));
	char digits[8];
	size_t keep = v < 10 * MILLION ? 3 : v < 100 * MILLION ? 2 : 1;

	if (!frac || n < 0 || (size_t)n >= size)
		return n;
	snprintf(digits, sizeof(digits), "%06llu", (unsigned long long)frac);
	while (keep && digits[keep - 1] == '0')
		keep--;
	if (!keep)
		return n;
	digits[keep] = 0;
	return n + snprintf(buf + n, size - (size_t)n, ".%s", digits);
}

char *hb_unit__text(enum hb_unit unit, u64 value, char *buf, size_t size)
{
	int n = 0;

	switch (unit) {
	case HB_UNIT_SHARE:
		n = put_part(buf, size, value, 100);
		snprintf(buf + n, size - (size_t)n, " %%");
		return buf;
	case HB_UNIT_RATIO:
		n = put_part(buf, size, value, 1);
		snprintf(buf + n, size - (size_t)n, " x");
		return buf;
	case HB_UNIT_NS:
		return hb_text__ns(buf, size, value);
	case HB_UNIT_BYTES:
		return hb_text__bytes(buf, size, value);
	case HB_UNIT_RATE:
		hb_text__count(buf, size, value);
		n = (int)strlen(buf);
		snprintf(buf + n, size - (size_t)n, "/s");
		return buf;
	default:
		return hb_text__count(buf, size, value);
	}
}
