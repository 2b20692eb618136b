/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "planfile/members.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

struct hb_planfile *hb_planfile__new(void)
{
	struct hb_planfile *p = calloc(1, sizeof(*p));

	if (p)
		p->version = HB_PLANFILE_VERSION;
	return p;
}

static void free_member(const struct hb_member *m, void *at)
{
	if (m->kind == HB_MEMBER_TEXT)
		free(*(char **)at);
}

static void free_element(const struct hb_member *m, struct hb_planfile *p, const struct hb_list *l)
{
	u32 n = *(u32 *)((char *)p + l->count);

	for (u32 i = 0; i < n; i++)
		free_member(m, (char *)p + l->offset + l->size * i + m->offset);
}

void hb_planfile__free(struct hb_planfile *p)
{
	if (!p)
		return;
	for (const struct hb_member *m = hb_planfile_members; m->name; m++) {
		const struct hb_list *l = hb_planfile__list(m->object);

		if (l)
			free_element(m, p, l);
		else if (*m->name)
			free_member(m, (char *)p + m->offset);
	}
	for (u32 i = 0; i < p->n_options; i++)
		free(p->option[i].value);
	for (u32 i = 0; i < p->approval.n_signature; i++)
		free(p->approval.signature[i]);
	free(p);
}

bool hb_planfile__text_ok(const char *s, size_t size)
{
	char copy[HB_PLANFILE_TEXT + 1];

	if (size > HB_PLANFILE_TEXT || memchr(s, 0, size))
		return false;
	memcpy(copy, s, size);
	copy[size] = 0;
	hb_text__clean(copy);
	return memcmp(copy, s, size) == 0;
}

char *hb_planfile__text(const char *s)
{
	char *text = s ? strdup(s) : NULL;

	return text ? hb_text__clean(hb_text__fit(text, HB_PLANFILE_TEXT + 1)) : NULL;
}

/* ---- options ---- */

static int number_of(const char *name)
{
	for (u32 i = 0; hb_planfile__option_name(i); i++)
		if (strcmp(hb_planfile__option_name(i), name) == 0)
			return (int)i;
	return -1;
}

/* Index at which it belongs: after those of lower or the same number. */
static u32 place_of(const struct hb_planfile *p, int number)
{
	u32 i = 0;

	while (i < p->n_options && number_of(p->option[i].name) <= number)
		i++;
	return i;
}

static struct hb_planfile_option *find(struct hb_planfile *p, int number, const char *value)
{
	for (u32 i = 0; i < p->n_options; i++)
		if (number_of(p->option[i].name) == number &&
		    (!value || strcmp(p->option[i].value, value) == 0))
			return &p->option[i];
	return NULL;
}

int hb_planfile__set(struct hb_planfile *p, const char *name, const char *value)
{
	int number = number_of(name);
	bool list = number >= 0 && hb_planfile__option_is_list((u32)number);
	struct hb_planfile_option *o;
	char *copy;
	u32 at;

	if (number < 0 || !hb_planfile__text_ok(value, strlen(value)))
		return -EINVAL;
	o = find(p, number, list ? value : NULL);
	if (o && list)
		return 0;
	if (!o && p->n_options == HB_PLANFILE_OPTIONS)
		return -E2BIG;
	copy = strdup(value);
	if (!copy)
		return -ENOMEM;
	if (o) {
		free(o->value);
		o->value = copy;
		return 0;
	}
	at = place_of(p, number);
	memmove(p->option + at + 1, p->option + at, (p->n_options - at) * sizeof(*p->option));
	p->option[at] =
	    (struct hb_planfile_option){.name = hb_planfile__option_name((u32)number), .value = copy};
	p->n_options++;
	return 0;
}

const char *hb_planfile__get(const struct hb_planfile *p, const char *name)
{
	const struct hb_planfile_option *o = find((struct hb_planfile *)p, number_of(name), NULL);

	return o ? o->value : NULL;
}
