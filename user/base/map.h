/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A hash map from u64 to u64: open addressing, grows by doubling. The one map of the program. */
#ifndef HB_BASE_MAP_H
#define HB_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hb_map;

struct hb_map *hb_map__new(void);    /* NULL: out of memory */
void hb_map__free(struct hb_map *m); /* NULL is fine */
size_t hb_map__size(const struct hb_map *m);

/* True and *value set when present. `value` may be NULL. */
bool hb_map__get(const struct hb_map *m, uint64_t key, uint64_t *value);

/* Inserts or overwrites; 0 or -ENOMEM. */
int hb_map__put(struct hb_map *m, uint64_t key, uint64_t value);

/* The slot of `key`, created with value 0 when absent; valid until the next insertion. NULL: out of memory.
 * `fresh` (may be NULL) says whether it was created. */
uint64_t *hb_map__slot(struct hb_map *m, uint64_t key, bool *fresh);

void hb_map__del(struct hb_map *m, uint64_t key);

/* Iterates: start with *pos = 0; false at the end. Order is arbitrary. No insertion meanwhile. */
bool hb_map__next(const struct hb_map *m, size_t *pos, uint64_t *key, uint64_t *value);

/* Mixes 64 bits (murmur3 finaliser); and hashes bytes, for callers that build keys. */
uint64_t hb_hash64(uint64_t x);
uint64_t hb_hash_bytes(const void *data, size_t size);

#endif
