/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analysis/import/names.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/import/api.h"
#include "base/buf.h"
#include "base/map.h"

struct name {
	size_t at;	/* in `text`, NUL-terminated */
	u32 python, op; /* locations */
	u32 probe;
	u32 string; /* in the window */
};

struct loc {
	u32 func, file, line; /* names */
	u32 lang;
	u32 id; /* in the window */
};

struct probe {
	u32 name, symbol, api; /* names */
	u8 cls, layer, handle;
};

struct hb_names {
	struct hb_map *by_hash, *probes;
	struct hb_buf text, name, loc, probe; /* arrays */
};

#define AT(buf, T, id) (&((struct T *)(buf).data)[(id)-1])
#define COUNT(buf, T)  ((u32)((buf).size / sizeof(struct T)))

struct hb_names *hb_names__new(void)
{
	struct hb_names *n = calloc(1, sizeof(*n));

	if (!n)
		return NULL;
	n->by_hash = hb_map__new();
	n->probes = hb_map__new();
	hb_buf__add(&n->text, "", 1);
	if (n->by_hash && n->probes && !n->text.oom)
		return n;
	hb_names__free(n);
	return NULL;
}

void hb_names__free(struct hb_names *n)
{
	if (!n)
		return;
	hb_map__free(n->by_hash);
	hb_map__free(n->probes);
	hb_buf__free(&n->text);
	hb_buf__free(&n->name);
	hb_buf__free(&n->loc);
	hb_buf__free(&n->probe);
	free(n);
}

/* Eight bytes at a time: names of kernels have hundreds. */
static u64 hash(struct hb_piece p)
{
	u64 h = 0x9e3779b97f4a7c15ULL ^ p.n, w;

	for (; p.n >= 8; p.s += 8, p.n -= 8) {
		memcpy(&w, p.s, 8);
		h = (h ^ w) * 0xff51afd7ed558ccdULL;
		h ^= h >> 32;
	}
	w = 0;
	memcpy(&w, p.s, p.n);
	return hb_hash64(h ^ w);
}

/* Appends to an array; its new count, 0 when out of memory. */
static u32 append(struct hb_buf *array, const void *row, size_t size)
{
	hb_buf__add(array, row, size);
	return array->oom || array->size / size > UINT32_MAX ? 0 : (u32)(array->size / size);
}

u32 hb_names__id(struct hb_names *n, struct hb_piece text)
{
	struct name row = {.at = n->text.size};
	u64 key = hash(text), *slot;
	bool fresh;

	for (;; key++) { /* another text with this hash: the next number is free sooner or later */
		slot = text.n ? hb_map__slot(n->by_hash, key, &fresh) : NULL;
		if (!slot)
			return 0;
		if (fresh)
			break;
		if (*slot) {
			const char *old = n->text.data + AT(n->name, name, *slot)->at;

			if (strncmp(old, text.s, text.n) == 0 && !old[text.n])
				return (u32)*slot;
		}
	}
	hb_buf__add(&n->text, text.s, text.n);
	hb_buf__add(&n->text, "", 1);
	*slot = n->text.oom ? 0 : append(&n->name, &row, sizeof(row));
	return (u32)*slot;
}

const char *hb_names__text(const struct hb_names *n, u32 id)
{
	return id ? n->text.data + AT(n->name, name, id)->at : "";
}

/* ---- what goes by a name ---- */

u32 hb_names__python(struct hb_names *n, u32 name)
{
	struct hb_piece file, func, whole;
	struct loc l = {.lang = HB_LANG_PYTHON};
	struct hb_buf copy = {0};
	u32 id = name ? AT(n->name, name, name)->python : 0;

	if (id || !name)
		return id;
	/* Adding names moves the text. */
	whole.n = strlen(hb_names__text(n, name));
	hb_buf__add(&copy, hb_names__text(n, name), whole.n + 1);
	if (copy.oom)
		return 0;
	whole.s = copy.data;
	l.func = name;
	if (hb_text__python(whole, &file, &l.line, &func)) {
		l.func = hb_names__id(n, func);
		l.file = hb_names__id(n, file);
	}
	hb_buf__free(&copy);
	id = l.func ? append(&n->loc, &l, sizeof(l)) : 0;
	AT(n->name, name, name)->python = id;
	return id;
}

u32 hb_names__operator(struct hb_names *n, u32 name)
{
	struct loc l = {.func = name, .lang = HB_LANG_NATIVE};

	if (!name)
		return 0;
	if (!AT(n->name, name, name)->op)
		AT(n->name, name, name)->op = append(&n->loc, &l, sizeof(l));
	return AT(n->name, name, name)->op;
}

static u32 make_probe(struct hb_names *n, u32 name, enum hb_layer layer, struct hb_piece api,
		      struct hb_piece cls)
{
	char base[256], word[32];
	struct hb_api known;
	struct probe p = {.symbol = name};
	int id;

	hb_api__find(hb_names__text(n, name), layer, base, sizeof(base), &known);
	snprintf(word, sizeof(word), "%.*s", (int)cls.n, cls.s ? cls.s : "");
	id = hb_word__id(HB_WORDS_CLASS, word);
	p.cls = (u8)(id >= 0 ? id : known.cls);
	p.layer = (u8)(api.n ? layer : known.layer); /* a trace of our own knows it */
	p.handle = known.handle;
	p.api = hb_names__id(n, api.n ? api : (struct hb_piece){known.api, strlen(known.api)});
	p.name = hb_names__id(n, (struct hb_piece){base, strlen(base)});
	return p.api && p.name ? append(&n->probe, &p, sizeof(p)) : 0;
}

u32 hb_names__probe(struct hb_names *n, u32 name, enum hb_layer layer, struct hb_piece api,
		    struct hb_piece cls)
{
	u64 *slot = hb_map__slot(n->probes, (u64)name << 8 | layer, NULL);

	if (!slot || !name)
		return 0;
	if (!*slot)
		*slot = make_probe(n, name, layer, api, cls);
	return (u32)*slot;
}

enum hb_layer hb_names__layer(const struct hb_names *n, u32 probe)
{
	return AT(n->probe, probe, probe)->layer;
}

enum hb_class hb_names__class(const struct hb_names *n, u32 probe)
{
	return AT(n->probe, probe, probe)->cls;
}

/* ---- into the window ---- */

static int write_locs(struct hb_names *n, struct hb_window_writer *w)
{
	for (u32 i = 1; i <= COUNT(n->loc, loc); i++) {
		struct loc *l = AT(n->loc, loc, i);
		struct hb_loc row = {.func = hb_names__string(n, l->func),
				     .file = hb_names__string(n, l->file),
				     .line = l->line,
				     .lang = l->lang};

		l->id = hb_window_writer__loc(w, &row);
		if (!l->id)
			return -ENOMEM;
	}
	return 0;
}

int hb_names__write(struct hb_names *n, struct hb_window_writer *w)
{
	int err = 0;

	for (u32 i = 1; i <= COUNT(n->name, name); i++) {
		struct name *row = AT(n->name, name, i);

		row->string = hb_window_writer__string(w, n->text.data + row->at);
		if (!row->string && n->text.data[row->at])
			return -ENOMEM;
	}
	for (u32 i = 1; i <= COUNT(n->probe, probe) && !err; i++) {
		const struct probe *p = AT(n->probe, probe, i);
		struct hb_probe_row row = {.name = hb_names__string(n, p->name),
					   .symbol = hb_names__string(n, p->symbol),
					   .api = hb_names__string(n, p->api),
					   .cls = p->cls,
					   .layer = p->layer,
					   .handle = p->handle,
					   .timed = 1};

		err = hb_window_writer__probe(w, i, &row);
	}
	return err ? err : write_locs(n, w);
}

u32 hb_names__string(const struct hb_names *n, u32 id)
{
	return id ? AT(n->name, name, id)->string : 0;
}

u32 hb_names__location(const struct hb_names *n, u32 id)
{
	return id ? AT(n->loc, loc, id)->id : 0;
}
