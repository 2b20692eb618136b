/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analysis/import/mend.h"

#include <ctype.h>
#include <string.h>

static bool word_char(char c)
{
	return isalnum((unsigned char)c) || c == '-' || c == '+' || c == '.' || c == '_' || c == '#';
}

static size_t digits(const char *s, size_t n)
{
	size_t i = 0;

	while (i < n && isdigit((unsigned char)s[i]))
		i++;
	return i;
}

static bool is_number(const char *s, size_t n)
{
	size_t i = n && *s == '-', d = digits(s + i, n - i);

	if (!d || (d > 1 && s[i] == '0'))
		return false;
	i += d;
	if (i < n && s[i] == '.') {
		d = digits(s + i + 1, n - i - 1);
		if (!d)
			return false;
		i += d + 1;
	}
	if (i < n && (s[i] == 'e' || s[i] == 'E')) {
		i += 1 + (i + 1 < n && (s[i + 1] == '-' || s[i + 1] == '+'));
		d = digits(s + i, n - i);
		return d && i + d == n;
	}
	return i == n;
}

static bool is_value(const char *s, size_t n)
{
	return (n == 4 && (!memcmp(s, "true", 4) || !memcmp(s, "null", 4))) ||
	       (n == 5 && !memcmp(s, "false", 5)) || is_number(s, n);
}

static void mend_word(char *s, size_t n, bool *changed)
{
	if (is_value(s, n))
		return;
	*changed = true;
	if (n == 1) {
		*s = '0';
		return;
	}
	memset(s, ' ', n);
	s[0] = '[';
	s[n - 1] = ']';
}

static void mend_in_string(struct hb_mend *m, char *c, bool *changed)
{
	if ((unsigned char)*c < 0x20) {
		*c = m->escaped ? '/' : ' ';
		*changed = true;
	} else if (m->escaped) {
		if (!strchr("\"\\/bfnrtu", *c)) {
			*c = '/'; /* "\x" is read as "\/": any valid escape will do */
			*changed = true;
		}
	} else if (*c == '"') {
		m->in_string = false;
	}
	m->escaped = !m->escaped && *c == '\\';
}

size_t hb_mend(struct hb_mend *m, char *data, size_t n, bool last, bool *changed)
{
	size_t i = 0;

	while (i < n) {
		size_t begin = i;

		if (m->in_string || !word_char(data[i])) {
			if (m->in_string)
				mend_in_string(m, &data[i], changed);
			else
				m->in_string = data[i] == '"';
			i++;
			continue;
		}
		while (i < n && word_char(data[i]))
			i++;
		if (i == n && !last)
			return begin;
		mend_word(data + begin, i - begin, changed);
	}
	return n;
}
