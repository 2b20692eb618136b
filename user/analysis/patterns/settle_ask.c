/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Options of a plan, against those that the first window was recorded with. */
#include "analysis/patterns/settle_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What was recorded besides functions and fields: option, and the meta key that has what the first window
 * had. */
static const struct {
	const char *option, *meta;
	const char *order; /* words from little to much; NULL: numbers */
} settings[] = {
    {"layers", "layers", "runtime driver auto both"},
    {"syscalls", "syscalls", "none blocking all"},
    {"python", "python", "off stacks calls"},
    {"exceptions", "exceptions", "off types hash text"},
    {"frequency", "sample_hz", NULL},
};
#define N_SETTINGS (sizeof(settings) / sizeof(*settings))

/* Place of a word in a list of words; 0: not there. */
static size_t rank(const char *order, const char *word)
{
	size_t n = strlen(word), at = 1;

	for (const char *s = order; *s; at++) {
		size_t k = strcspn(s, " ");

		if (k == n && strncmp(s, word, n) == 0)
			return at;
		s += k + (s[k] != 0);
	}
	return 0;
}

static bool is_more(const char *order, const char *a, const char *b)
{
	if (!order)
		return strtoull(a, NULL, 10) > strtoull(b, NULL, 10);
	return rank(order, a) > rank(order, b);
}

static const char *order_of(const char *option, bool *setting)
{
	for (size_t i = 0; i < N_SETTINGS; i++)
		if (strcmp(settings[i].option, option) == 0) {
			*setting = true;
			return settings[i].order;
		}
	*setting = false;
	return NULL;
}

bool hb_settle__had(const struct hb_settle *s, const char *option, const char *value)
{
	const char *key, *text;
	size_t n = strlen(option);

	for (u32 i = 0; hb_window__meta_at(s->in->window, i, &key, &text); i++)
		if (strncmp(key, "option.", 7) == 0 && strncmp(text, option, n) == 0 &&
		    (text[n] == ' ' ? strcmp(text + n + 1, value) == 0 : !text[n] && !*value))
			return true;
	return false;
}

/* What the first window had of a setting; NULL: it does not say, or it is none. */
static const char *before(const struct hb_settle *s, const char *option)
{
	for (size_t i = 0; i < N_SETTINGS; i++)
		if (strcmp(settings[i].option, option) == 0)
			return hb_window__meta(s->in->window, settings[i].meta);
	return NULL;
}

bool hb_settle__names(const char *list, const char *word)
{
	size_t n = strlen(word);

	if (strcmp(list, "all") == 0)
		return true;
	for (const char *at = list; (at = strstr(at, word)); at += n)
		if ((at == list || at[-1] == ',') && (!at[n] || at[n] == ','))
			return true;
	return false;
}

/* Classes that were there and those that come. */
static void join_classes(const char *now, const char *more, char *buf, size_t size)
{
	size_t at = (size_t)snprintf(buf, size, "%s", now ? now : "");

	for (const char *s = more; *s && at < size;) {
		size_t n = strcspn(s, ",");
		char word[32];

		snprintf(word, sizeof(word), "%.*s", (int)n, s);
		if (!at || !hb_settle__names(buf, word))
			at += (size_t)snprintf(buf + at, size - at, "%s%s", at ? "," : "", word);
		s += n + (s[n] != 0);
	}
}

bool hb_settle__ask(struct hb_settle *s, const char *option, const char *value)
{
	bool setting;
	const char *order = order_of(option, &setting), *now = hb_planfile__get(s->p, option);
	char classes[HB_PLANFILE_TEXT + 1];
	int err;

	if (setting && now && !is_more(order, value, now)) /* or another finding asked for it already */
		return before(s, option) && is_more(order, now, before(s, option));
	if (strcmp(option, "timed") == 0) {
		join_classes(now, value, classes, sizeof(classes));
		value = classes;
	}
	err = hb_planfile__set(s->p, option, value);
	s->oom |= err == -ENOMEM;
	return !err && !hb_settle__had(s, option, value);
}

static bool is_setting(size_t i, const char *value)
{
	if (settings[i].order)
		return rank(settings[i].order, value) > 0;
	return *value && strspn(value, "0123456789") == strlen(value);
}

/* What was typed for the first window; a plan has no place for some of it (its target, a table in a file). */
static void take_options(struct hb_settle *s)
{
	const char *key, *value;

	for (u32 i = 0; hb_window__meta_at(s->in->window, i, &key, &value); i++) {
		char name[64];
		size_t n = strcspn(value, " ");

		if (strncmp(key, "option.", 7) != 0 || n >= sizeof(name) ||
		    strncmp(value, "duration", n) == 0)
			continue;
		snprintf(name, sizeof(name), "%.*s", (int)n, value);
		s->oom |= hb_planfile__set(s->p, name, value + n + (value[n] != 0)) == -ENOMEM;
	}
}

void hb_settle__begin(struct hb_settle *s)
{
	take_options(s);
	for (size_t i = 0; i < N_SETTINGS; i++) {
		const char *value = hb_window__meta(s->in->window, settings[i].meta);

		if (value && is_setting(i, value))
			s->oom |= hb_planfile__set(s->p, settings[i].option, value) == -ENOMEM;
	}
}
