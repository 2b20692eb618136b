/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "base/text.h"

#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Length of the well-formed, printable UTF-8 sequence at `p`, 0 when there is none. */
static size_t utf8_len(const unsigned char *p)
{
	size_t n;

	if (*p >= 0x20 && *p < 0x7f)
		return 1;
	if (*p >= 0xc2 && *p < 0xe0)
		n = 2;
	else if (*p >= 0xe0 && *p < 0xf0)
		n = 3;
	else if (*p >= 0xf0 && *p < 0xf5)
		n = 4;
	else
		return 0;
	for (size_t i = 1; i < n; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	if (p[0] == 0xc2 && p[1] < 0xa0) /* C1 controls: some terminals obey them */
		return 0;
	if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xf0 && p[1] < 0x90)) /* overlong */
		return 0;
	if ((p[0] == 0xed && p[1] > 0x9f) || (p[0] == 0xf4 && p[1] > 0x8f)) /* surrogates, beyond U+10FFFF */
		return 0;
	if (p[0] == 0xe2 && p[1] == 0x80 && (p[2] == 0xa8 || p[2] == 0xa9 || (p[2] >= 0xaa && p[2] <= 0xae)))
		return 0; /* line separators and bidirectional overrides */
	return n;
}

char *hb_text__clean(char *s)
{
	unsigned char *p = (unsigned char *)s;

	while (*p) {
		size_t n = utf8_len(p);

		if (!n) {
			*p++ = '?';
			continue;
		}
		p += n;
	}
	return s;
}

enum match { NO, YES, MORE }; /* MORE: the pattern has more than stars, as few do */

#define WILD "*?[\\"

/* What stands between two stars is looked for where what is before it ended, what is behind the last one at
 * the end. */
static enum match match_stars(const char *p, const char *s)
{
	size_t n = strcspn(p, WILD), left;

	if (p[n] && p[n] != '*')
		return MORE;
	if (!p[n])
		return strcmp(p, s) == 0 ? YES : NO;
	if (strncmp(p, s, n) != 0)
		return NO;
	for (;;) {
		s += n;
		p += n + strspn(p + n, "*");
		n = strcspn(p, WILD);
		if (p[n] && p[n] != '*')
			return MORE;
		left = strlen(s);
		if (!p[n])
			return left >= n && memcmp(s + left - n, p, n) == 0 ? YES : NO;
		s = memmem(s, left, p, n);
		if (!s)
			return NO;
	}
}

bool hb_text__glob(const char *pattern, const char *s)
{
	enum match m;

	if (*pattern != *s && *pattern && !strchr(WILD, *pattern)) /* as most are */
		return false;
	m = match_stars(pattern, s);

	return m == MORE ? fnmatch(pattern, s, 0) == 0 : m == YES;
}

const char *hb_text__basename(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

struct unit {
	const char *name;
	uint64_t factor;
};

static const struct unit time_units[] = {
    {"ns", 1ULL},	  {"us", 1000ULL},	     {"ms", 1000000ULL},
    {"s", 1000000000ULL}, {"m", 60ULL * 1000000000}, {"h", 3600ULL * 1000000000},
};

static const struct unit size_units[] = {
    {"", 1},	     {"B", 1},		 {"KiB", 1ULL << 10},	{"MiB", 1ULL << 20}, {"GiB", 1ULL << 30},
    {"KB", 1000ULL}, {"MB", 1000000ULL}, {"GB", 1000000000ULL},
};

static int with_unit(const char *s, const struct unit *units, size_t n, uint64_t max, uint64_t *out)
{
	char *end;
	double v;

	if (!s || !isdigit((unsigned char)*s))
		return -EINVAL;
	for (const char *p = s; *p; p++) /* strtod would take hex, exponents and inf */
		if (*p == 'x' || *p == 'X' || *p == 'e' || *p == 'E')
			return -EINVAL;
	errno = 0;
	v = strtod(s, &end);
	if (errno || v < 0)
		return -EINVAL;
	for (size_t i = 0; i < n; i++) {
		if (strcmp(units[i].name, end) != 0)
			continue;
		v *= (double)units[i].factor;
		if (v < 1 || v > (double)max)
			return -EINVAL;
		*out = (uint64_t)(v + 0.5);
		return 0;
	}
	return -EINVAL;
}

/* ---- fitting ---- */

#define ELLIPSIS  "\xe2\x80\xa6"
#define WORD_KEPT 96 /* bytes of a word that are left when there are several to cut */

static bool inside_character(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

/* Takes `gone` bytes, and those of characters that would be cut, out of the middle of s[at..at+len). */
static void cut_middle(char *s, size_t at, size_t len, size_t gone)
{
	size_t from = at + (len - gone) / 2, to = from + gone;

	while (from > at && inside_character(s[from]))
		from--;
	while (to < at + len && inside_character(s[to]))
		to++;
	memcpy(s + from, ELLIPSIS, sizeof(ELLIPSIS) - 1);
	from += sizeof(ELLIPSIS) - 1;
	memmove(s + from, s + to, strlen(s + to) + 1);
}

static size_t longest_word(const char *s, size_t *at)
{
	size_t best = 0;

	for (size_t i = 0; s[i];) {
		size_t len = strcspn(s + i, " ");

		if (len > best) {
			best = len;
			*at = i;
		}
		i += len + (s[i + len] == ' ');
	}
	return best;
}

char *hb_text__fit(char *s, size_t size)
{
	const size_t mark = sizeof(ELLIPSIS) - 1;
	size_t len, at = 0;

	while ((len = strlen(s)) >= size && len > WORD_KEPT) {
		size_t word = longest_word(s, &at), gone = len - (size - 1) + mark;

		if (word <= WORD_KEPT + mark) { /* many words: they all count */
			cut_middle(s, 0, len, gone < len ? gone : len);
			continue;
		}
		if (gone > word - WORD_KEPT)
			gone = word - WORD_KEPT;
		cut_middle(s, at, word, gone);
	}
	return s;
}

int hb_text__duration(const char *s, uint64_t *ns)
{
	return with_unit(s, time_units, sizeof(time_units) / sizeof(*time_units), 86400ULL * 1000000000, ns);
}

int hb_text__size(const char *s, uint64_t *bytes)
{
	return with_unit(s, size_units, sizeof(size_units) / sizeof(*size_units), 1ULL << 50, bytes);
}

char *hb_text__ns(char *buf, size_t size, uint64_t ns)
{
	if (ns < 1000)
		snprintf(buf, size, "%llu ns", (unsigned long long)ns);
	else if (ns < 1000000)
		snprintf(buf, size, "%.1f us", (double)ns / 1e3);
	else if (ns < 1000000000)
		snprintf(buf, size, "%.2f ms", (double)ns / 1e6);
	else
		snprintf(buf, size, "%.2f s", (double)ns / 1e9);
	return buf;
}

char *hb_text__bytes(char *buf, size_t size, uint64_t bytes)
{
	if (bytes < 1024)
		snprintf(buf, size, "%llu B", (unsigned long long)bytes);
	else if (bytes < (1ULL << 20))
		snprintf(buf, size, "%.1f KiB", (double)bytes / 1024);
	else if (bytes < (1ULL << 30))
		snprintf(buf, size, "%.1f MiB", (double)bytes / (1 << 20));
	else
		snprintf(buf, size, "%.2f GiB", (double)bytes / (1 << 30));
	return buf;
}

char *hb_text__count(char *buf, size_t size, uint64_t n)
{
	char raw[24];
	int len = snprintf(raw, sizeof(raw), "%llu", (unsigned long long)n);
	size_t o = 0;

	for (int i = 0; i < len && o + 2 < size; i++) {
		if (i && (len - i) % 3 == 0)
			buf[o++] = ',';
		buf[o++] = raw[i];
	}
	buf[o] = 0;
	return buf;
}
