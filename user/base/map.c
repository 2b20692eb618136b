/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "base/map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum slot_state { FREE = 0, USED = 1, DEAD = 2 };

struct slot {
	uint64_t key, value;
};

struct hb_map {
	size_t cap, used, filled; /* filled counts dead slots too */
	struct slot *slot;
	uint8_t *state;
};

static inline uint64_t mix(uint64_t x)
{
	x ^= x >> 33;
	x *= 0xff51afd7ed558ccdULL;
	x ^= x >> 33;
	x *= 0xc4ceb9fe1a85ec53ULL;
	return x ^ (x >> 33);
}

uint64_t hb_hash64(uint64_t x)
{
	return mix(x);
}

uint64_t hb_hash_bytes(const void *data, size_t size)
{
	const unsigned char *p = data;
	uint64_t h = 0x9e3779b97f4a7c15ULL ^ size, w;

	for (; size >= 8; p += 8, size -= 8) {
		memcpy(&w, p, 8);
		h = hb_hash64(h ^ w) + 0x9e3779b97f4a7c15ULL;
	}
	w = 0;
	memcpy(&w, p, size);
	return hb_hash64(h ^ w);
}

static int alloc_slots(struct hb_map *m, size_t cap)
{
	m->slot = malloc(cap * sizeof(*m->slot));
	m->state = calloc(cap, 1);
	if (!m->slot || !m->state) {
		free(m->slot);
		free(m->state);
		return -ENOMEM;
	}
	m->cap = cap;
	m->used = m->filled = 0;
	return 0;
}

struct hb_map *hb_map__new(void)
{
	struct hb_map *m = calloc(1, sizeof(*m));

	if (m && alloc_slots(m, 64)) {
		free(m);
		return NULL;
	}
	return m;
}

void hb_map__free(struct hb_map *m)
{
	if (!m)
		return;
	free(m->slot);
	free(m->state);
	free(m);
}

size_t hb_map__size(const struct hb_map *m)
{
	return m->used;
}

/* Index of the key, or of the slot where it would go (first dead slot met, else the free one). */
static size_t find(const struct hb_map *m, uint64_t key, bool *found)
{
	size_t mask = m->cap - 1, i = mix(key) & mask, spare = SIZE_MAX;

	for (;; i = (i + 1) & mask) {
		if (m->state[i] == FREE)
			break;
		if (m->state[i] == USED && m->slot[i].key == key) {
			*found = true;
			return i;
		}
		if (m->state[i] == DEAD && spare == SIZE_MAX)
			spare = i;
	}
	*found = false;
	return spare != SIZE_MAX ? spare : i;
}

static int grow(struct hb_map *m)
{
	struct hb_map old = *m;
	bool found;

	if (alloc_slots(m, old.used * 4 > old.cap ? old.cap * 2 : old.cap)) {
		*m = old;
		return -ENOMEM;
	}
	for (size_t i = 0; i < old.cap; i++) {
		if (old.state[i] != USED)
			continue;
		size_t j = find(m, old.slot[i].key, &found);

		m->slot[j] = old.slot[i];
		m->state[j] = USED;
		m->used++;
		m->filled++;
	}
	free(old.slot);
	free(old.state);
	return 0;
}

bool hb_map__get(const struct hb_map *m, uint64_t key, uint64_t *value)
{
	bool found;
	size_t i = find(m, key, &found);

	if (found && value)
		*value = m->slot[i].value;
	return found;
}

uint64_t *hb_map__slot(struct hb_map *m, uint64_t key, bool *fresh)
{
	bool found;
	size_t i = find(m, key, &found);

	if (fresh)
		*fresh = !found;
	if (found)
		return &m->slot[i].value;
	if ((m->filled + 1) * 10 > m->cap * 7) {
		if (grow(m))
			return NULL;
		i = find(m, key, &found);
	}
	if (m->state[i] == FREE)
		m->filled++;
	m->slot[i] = (struct slot){.key = key};
	m->state[i] = USED;
	m->used++;
	return &m->slot[i].value;
}

int hb_map__put(struct hb_map *m, uint64_t key, uint64_t value)
{
	uint64_t *slot = hb_map__slot(m, key, NULL);

	if (!slot)
		return -ENOMEM;
	*slot = value;
	return 0;
}

void hb_map__del(struct hb_map *m, uint64_t key)
{
	bool found;
	size_t i = find(m, key, &found);

	if (!found)
		return;
	m->state[i] = DEAD;
	m->used--;
}

bool hb_map__next(const struct hb_map *m, size_t *pos, uint64_t *key, uint64_t *value)
{
	for (; *pos < m->cap; (*pos)++) {
		if (m->state[*pos] != USED)
			continue;
		*key = m->slot[*pos].key;
		*value = m->slot[*pos].value;
		(*pos)++;
		return true;
	}
	return false;
}
