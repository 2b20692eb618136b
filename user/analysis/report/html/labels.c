/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analysis/report/html/labels.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/text.h"

struct hb_labels {
	struct hb_map *ids; /* hash of the text (or the next free one after it) -> number */
	struct hb_buf text, at;
	u32 n;
	bool oom;
};

enum { LONGEST = 161, OTHER = 1 };

struct hb_labels *hb_labels__new(void)
{
	struct hb_labels *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->ids = hb_map__new();
	if (!t->ids) {
		free(t);
		return NULL;
	}
	hb_labels__add(t, "");
	hb_labels__add(t, "...");
	return t;
}

void hb_labels__free(struct hb_labels *t)
{
	if (!t)
		return;
	hb_map__free(t->ids);
	hb_buf__free(&t->text);
	hb_buf__free(&t->at);
	free(t);
}

static const char *name(const struct hb_labels *t, u32 id)
{
	size_t at;

	memcpy(&at, t->at.data + id * sizeof(at), sizeof(at));
	return t->text.data + at;
}

u32 hb_labels__add(struct hb_labels *t, const char *text)
{
	char cut[4096];
	size_t at = t->text.size;
	u64 key, id;

	snprintf(cut, sizeof(cut), "%s", text);
	hb_text__fit(cut, LONGEST);
	for (key = hb_hash_bytes(cut, strlen(cut)); hb_map__get(t->ids, key, &id); key++)
		if (strcmp(name(t, (u32)id), cut) == 0)
			return (u32)id;
	if (at > HB_LABELS_BYTES)
		return OTHER;
	hb_buf__add(&t->text, cut, strlen(cut) + 1);
	hb_buf__add(&t->at, &at, sizeof(at));
	if (t->text.oom || t->at.oom || hb_map__put(t->ids, key, t->n)) {
		t->oom = true;
		return 0;
	}
	return t->n++;
}

bool hb_labels__oom(const struct hb_labels *t)
{
	return t->oom;
}

void hb_labels__put(const struct hb_labels *t, struct hb_json *j, const char *key)
{
	hb_json__karray(j, key);
	for (u32 i = 0; i < t->n; i++)
		hb_json__string(j, name(t, i));
	hb_json__end(j);
}
