/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "window/block.h"

#include <stdlib.h>
#include <string.h>

struct hb_block *hb_block__new(u32 cap)
{
	struct hb_block *b = malloc(sizeof(*b) + cap);

	if (!b)
		return NULL;
	b->cap = cap;
	hb_block__reset(b);
	return b;
}

void hb_block__reset(struct hb_block *b)
{
	u32 cap = b->cap;

	memset(b, 0, sizeof(*b));
	b->cap = cap;
}

bool hb_block__add(struct hb_block *b, u64 ts, u16 task, unsigned type, const void *payload, u32 size)
{
	s64 dt = (s64)(ts - b->last_ts);
	struct hb_file_head h = {.task = task, .type = (u8)type};

	if (b->fill + sizeof(h) + size > b->cap)
		return false;
	if (!b->count) {
		b->base_ts = b->min_ts = b->max_ts = ts;
		dt = 0;
	} else if (dt != (s32)dt) {
		return false;
	}
	h.dt = (s32)dt;
	memcpy(b->rows + b->fill, &h, sizeof(h));
	memcpy(b->rows + b->fill + sizeof(h), payload, size);
	b->fill += (u32)sizeof(h) + size;
	b->last_ts = ts;
	if (ts < b->min_ts)
		b->min_ts = ts;
	if (ts > b->max_ts)
		b->max_ts = ts;
	b->counts[type]++;
	b->count++;
	return true;
}

/* Swaps the off-diagonal squares of a byte matrix held in 8 words: three rounds of these transpose it. */
static inline void swap(u64 *a, u64 *b, unsigned bits, u64 mask)
{
	u64 t = ((*a >> bits) ^ *b) & mask;

	*b ^= t;
	*a ^= t << bits;
}

static inline void transpose8(u64 w[8])
{
	for (int i = 0; i < 4; i++)
		swap(&w[i], &w[i + 4], 32, 0x00000000ffffffffULL);
	for (int i = 0; i < 8; i += i % 4 == 1 ? 3 : 1)
		swap(&w[i], &w[i + 2], 16, 0x0000ffff0000ffffULL);
	for (int i = 0; i < 8; i += 2)
		swap(&w[i], &w[i + 1], 8, 0x00ff00ff00ff00ffULL);
}

/* `n` records of `words` words -> 8 * words planes of n bytes. */
static void to_planes(u8 *planes, const u8 *rows, u32 n, u32 words)
{
	size_t size = 8u * words;
	u64 w[8];
	u32 i;

	for (u32 k = 0; k < words; k++) {
		u8 *p = planes + (size_t)8 * k * n;

		for (i = 0; i + 8 <= n; i += 8) {
			for (u32 r = 0; r < 8; r++)
				memcpy(&w[r], rows + (i + r) * size + 8 * k, 8);
			transpose8(w);
			for (u32 r = 0; r < 8; r++)
				memcpy(p + (size_t)r * n + i, &w[r], 8);
		}
		for (; i < n; i++)
			for (u32 r = 0; r < 8; r++)
				p[(size_t)r * n + i] = rows[i * size + 8 * k + r];
	}
}

/* Reading is done far more often than writing: sixteen records at a time, a plane to a vector. */
typedef u8 v16 __attribute__((vector_size(16)));
typedef u64 v2 __attribute__((vector_size(16)));

#ifdef __clang__
#define MIX(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define MIX(a, b, ...) __builtin_shuffle(a, b, (v16){__VA_ARGS__})
#endif

static inline v16 low(v16 a, v16 b)
{
	return MIX(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
}

static inline v16 high(v16 a, v16 b)
{
	return MIX(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
}

/* A word each for two records. */
static inline void scatter2(u8 *rows, size_t size, v16 two)
{
	v2 w = (v2)two;
	u64 first = w[0], second = w[1];

	memcpy(rows, &first, 8);
	memcpy(rows + size, &second, 8);
}

/* The even and the odd bytes of a word each for four records. */
static inline void scatter4(u8 *rows, size_t size, v16 even, v16 odd)
{
	scatter2(rows, size, low(even, odd));
	scatter2(rows + 2 * size, size, high(even, odd));
}

static inline v16 load(const u8 *p)
{
	v16 v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/* One word of sixteen records: three rounds put byte k of the word beside its byte k + 4, these beside k + 2,
 * and these beside k + 1. */
static inline void gather16(u8 *rows, size_t size, const u8 *planes, size_t n)
{
	const u8 *half = planes + 4 * n;
	v16 p0 = load(planes), p1 = load(planes + n), p2 = load(planes + 2 * n), p3 = load(planes + 3 * n);
	v16 p4 = load(half), p5 = load(half + n), p6 = load(half + 2 * n), p7 = load(half + 3 * n);
	v16 a0 = low(p0, p4), a1 = low(p1, p5), a2 = low(p2, p6), a3 = low(p3, p7);
	v16 b0 = high(p0, p4), b1 = high(p1, p5), b2 = high(p2, p6), b3 = high(p3, p7);

	scatter4(rows, size, low(a0, a2), low(a1, a3));
	scatter4(rows + 4 * size, size, high(a0, a2), high(a1, a3));
	scatter4(rows + 8 * size, size, low(b0, b2), low(b1, b3));
	scatter4(rows + 12 * size, size, high(b0, b2), high(b1, b3));
}

static bool all_zero(const u8 *p, size_t size)
{
	return !p[0] && memcmp(p, p + 1, size - 1) == 0;
}

/* Most words of most records are 0, fields that their kind has no use for: these are cleared all at once. */
static void from_planes(u8 *rows, const u8 *planes, u32 n, u32 words)
{
	size_t size = 8u * words;
	u32 i;

	memset(rows, 0, size * n);
	for (u32 k = 0; k < words; k++) {
		const u8 *p = planes + (size_t)8 * k * n;

		if (all_zero(p, (size_t)8 * n))
			continue;
		for (i = 0; i + 16 <= n; i += 16)
			gather16(rows + i * size + 8 * k, size, p + i, n);
		for (; i < n; i++)
			for (u32 r = 0; r < 8; r++)
				rows[i * size + 8 * k + r] = p[(size_t)r * n + i];
	}
}

/* Rows -> all heads, then the payloads of each type, still as rows. */
static void sort_rows(const struct hb_block *b, u8 *sorted)
{
	u8 *at[HB_TYPE_MAX], *heads = sorted, *next = sorted + (size_t)8 * b->count;
	const u8 *r = b->rows, *end = b->rows + b->fill;

	for (unsigned t = 0; t < HB_TYPE_MAX; t++) {
		at[t] = next;
		if (b->counts[t])
			next += (size_t)b->counts[t] * hb_schema__type(t)->size;
	}
	while (r < end) {
		unsigned type = r[offsetof(struct hb_file_head, type)];
		u32 size = hb_schema__type(type)->size;

		memcpy(heads, r, 8);
		memcpy(at[type], r + 8, size);
		heads += 8;
		at[type] += size;
		r += 8 + size;
	}
}

size_t hb_block__encode(const struct hb_block *b, void *body, u8 *planes, u8 *scratch)
{
	struct hb_data_head d = {.base_ts = b->base_ts,
				 .min_ts = b->min_ts,
				 .max_ts = b->max_ts,
				 .first = b->first,
				 .stream = (u16)b->stream,
				 .count = b->count};
	size_t at = (size_t)8 * b->count;

	sort_rows(b, scratch);
	to_planes(planes, scratch, b->count, 1);
	for (unsigned t = 0; t < HB_TYPE_MAX; t++) {
		struct hb_data_type dt = {.type = (u8)t, .count = b->counts[t]};

		if (!dt.count)
			continue;
		dt.words = (u8)(hb_schema__type(t)->size / 8);
		memcpy((char *)body + sizeof(d) + d.n_types * sizeof(dt), &dt, sizeof(dt));
		d.n_types++;
		to_planes(planes + at, scratch + at, dt.count, dt.words);
		at += (size_t)8 * dt.words * dt.count;
	}
	memcpy(body, &d, sizeof(d));
	return sizeof(d) + d.n_types * sizeof(struct hb_data_type);
}

/* As many heads of each type as the body says there are payloads. */
static bool counts_agree(const struct hb_file_head *heads, u32 n, const u32 want[256])
{
	u32 have[256] = {0};

	for (u32 i = 0; i < n; i++)
		have[heads[i].type]++;
	return memcmp(have, want, sizeof(have)) == 0;
}

static struct hb_payloads payloads_of(const struct hb_data_type *t, const u8 *rows)
{
	const struct hb_type *k = hb_schema__type(t->type);

	return (struct hb_payloads){.next = rows,
				    .size = (u16)(8u * t->words),
				    .wanted = k ? k->size : 0,
				    .dur = (s16)(k ? k->dur_offset : -1)};
}

bool hb_block__decode(const void *body, const u8 *planes, u8 *rows, struct hb_decoded *d)
{
	struct hb_data_head head;
	struct hb_data_type t;
	u32 want[256] = {0};
	size_t at;

	memcpy(&head, body, sizeof(head));
	d->count = head.count;
	d->heads = (const struct hb_file_head *)rows;
	from_planes(rows, planes, head.count, 1);
	at = (size_t)8 * head.count;
	for (u32 i = 0; i < head.n_types; i++) {
		memcpy(&t, (const char *)body + sizeof(head) + i * sizeof(t), sizeof(t));
		want[t.type] = t.count;
		d->of[t.type] = payloads_of(&t, rows + at);
		from_planes(rows + at, planes + at, t.count, t.words);
		at += (size_t)8 * t.words * t.count;
	}
	return counts_agree(d->heads, head.count, want);
}
