/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Dicts: from 3.11 on those with text keys only have smaller entries; the objects of a class share keys. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "capture/python/heap_private.h"
#include "capture/python/memory.h"
#include "capture/python/objects.h"

#define MAX_ENTRIES (1u << 16)
#define KEY_BYTES   160 /* of a key that are looked at: the largest head and a name */

struct keys {
	u64 entries;
	u32 n, size; /* bytes of an entry */
	u32 key_at;  /* in an entry; the value follows */
	bool shared; /* values are elsewhere */
};

static bool old_keys(const struct hb_py_heap *h)
{
	return h->off.minor <= 10;
}

static int keys_up_to_10(const struct hb_py_heap *h, u64 at, struct keys *k)
{
	u64 words[5], width;

	if (hb_py_memory__read(h->pid, at, words, sizeof(words)))
		return -EFAULT;
	width = words[1] <= 0xff ? 1 : words[1] <= 0xffff ? 2 : words[1] <= 0xffffffff ? 4 : 8;
	if (!words[1] || words[1] > 1u << 28 || words[4] > words[1])
		return -EINVAL;
	*k = (struct keys){at + 40 + words[1] * width, (u32)words[4], 24, 8, false};
	return 0;
}

static int keys_from_11(const struct hb_py_heap *h, u64 at, struct keys *k)
{
	u8 head[32];
	u64 n;

	if (hb_py_memory__read(h->pid, at, head, sizeof(head)))
		return -EFAULT;
	memcpy(&n, head + 24, sizeof(n));
	if (head[8] > 32 || head[9] > 36 || head[10] > 2 || n > 1ULL << head[8])
		return -EINVAL;
	*k = (struct keys){at + 32 + (1ULL << head[9]), (u32)n, head[10] ? 16 : 24, head[10] ? 0 : 8,
			   head[10] == 2};
	return 0;
}

static u64 word_at(const u8 *bytes)
{
	u64 v;

	memcpy(&v, bytes, sizeof(v));
	return v;
}

/* A key's first bytes, against a name. Attribute names in ASCII are compact; others are read as text. */
static bool key_is(const struct hb_py_heap *h, u64 key, const u8 *bytes, const char *name, size_t n)
{
	const struct hb_py_offsets *o = &h->off;
	char text[HB_PY_TEXT_SIZE];
	u32 state;

	memcpy(&state, bytes + o->str_state, sizeof(state));
	state >>= o->str_kind_bit;
	if (state >> 4 & 1)
		return word_at(bytes + o->str_length) == n && memcmp(bytes + o->str_ascii, name, n) == 0;
	return hb_py_object__text(h->pid, o, key, text, sizeof(text)) == 0 && strcmp(text, name) == 0;
}

static int find_among(const struct hb_py_heap *h, const struct keys *k, const u8 *entries, u64 *keys,
		      u8 *heads, bool *ok, const char *name, struct hb_py_entry *out)
{
	size_t n = strlen(name);

	for (u32 i = 0; i < k->n; i++)
		keys[i] = word_at(entries + i * k->size + k->key_at);
	hb_py_memory__many(h->pid, keys, k->n, heads, KEY_BYTES, ok);
	for (u32 i = 0; i < k->n; i++) {
		if (!keys[i] || (!ok[i] && hb_py_memory__some(h->pid, keys[i], heads + i * KEY_BYTES,
							      KEY_BYTES) < h->off.str_ascii + (long)n))
			continue;
		if (!key_is(h, keys[i], heads + i * KEY_BYTES, name, n))
			continue;
		*out = (struct hb_py_entry){keys[i], 0, i};
		if (!k->shared)
			out->value = word_at(entries + i * k->size + k->key_at + 8);
		return 0;
	}
	return -ENOENT;
}

static int find_in(const struct hb_py_heap *h, const struct keys *k, const char *name,
		   struct hb_py_entry *out)
{
	u8 *entries, *heads;
	u64 *keys;
	bool *ok;
	int err = -ENOMEM;

	if (!k->n)
		return -ENOENT;
	if (k->n > MAX_ENTRIES)
		return -E2BIG;
	entries = malloc((size_t)k->n * k->size);
	heads = calloc(k->n, KEY_BYTES);
	keys = calloc(k->n, sizeof(*keys));
	ok = calloc(k->n, sizeof(*ok));
	if (entries && heads && keys && ok)
		err = hb_py_memory__read(h->pid, k->entries, entries, (size_t)k->n * k->size);
	if (!err)
		err = find_among(h, k, entries, keys, heads, ok, name, out);
	free(entries);
	free(heads);
	free(keys);
	free(ok);
	return err;
}

static int read_keys(const struct hb_py_heap *h, u64 at, struct keys *k)
{
	return old_keys(h) ? keys_up_to_10(h, at, k) : keys_from_11(h, at, k);
}

int hb_py_keys__find(const struct hb_py_heap *h, u64 keys, const char *name, struct hb_py_entry *out)
{
	struct keys k;
	int err = keys ? read_keys(h, keys, &k) : -ENOENT;

	if (strlen(name) >= HB_PY_NAME_MAX)
		return -EINVAL;
	return err ?: find_in(h, &k, name, out);
}

int hb_py_dict__find(const struct hb_py_heap *h, u64 dict, const char *name, struct hb_py_entry *out)
{
	u64 at[2]; /* keys, values */
	int err;

	if (hb_py_memory__read(h->pid, dict + hb_py_heap__head(h) + 16, at, sizeof(at)))
		return -EFAULT;
	err = hb_py_keys__find(h, at[0], name, out);
	if (err || !at[1])
		return err;
	if (!hb_py_memory__word(h->pid, at[1] + hb_py_heap__values(h) + 8ULL * out->index, &out->value))
		return -EFAULT;
	return 0;
}
