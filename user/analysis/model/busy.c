/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analysis/model/busy_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { FEW = 8 }; /* processes that are looked for one by one: mostly there are no more */

struct hb_busy {
	const struct hb_timeline *tl;
	struct hb_busy_row *row;
	u32 n, cap;
	struct hb_map *by_pid; /* -> row + 1 */
};

static int grow(struct hb_busy_row *r)
{
	u32 cap = r->cap < 65536 ? 2 * r->cap + 64 : 4 * r->cap;
	struct hb_busy_span *p = cap > r->cap ? realloc(r->span, (cap + 1ULL) * sizeof(*p)) : NULL;

	if (!p)
		return -ENOMEM;
	r->span = p;
	r->cap = cap;
	return 0;
}

static inline int append(struct hb_busy_row *r, u64 end, u8 what)
{
	u64 begin = r->end;

	if (end <= begin)
		return 0;
	r->end = end;
	if (r->n && r->span[r->n - 1].what == what)
		return 0;
	if (r->n == r->cap && grow(r))
		return -ENOMEM;
	r->span[r->n++] = (struct hb_busy_span){.begin = begin, .what = what};
	return 0;
}

int hb_busy_row__append(struct hb_busy_row *r, u64 end, enum hb_busy_state state, enum hb_busy_state likely)
{
	if (end >> 61)
		return 0;
	return append(r, end, state == HB_BUSY_UNKNOWN && likely != state ? HB_BUSY_IDLE + likely : state);
}

/* Gives back what is left over, and says where the last span ends. */
static void fit(struct hb_busy_row *r)
{
	struct hb_busy_span *p = r->n ? realloc(r->span, (r->n + 1ULL) * sizeof(*p)) : NULL;

	if (p) {
		r->span = p;
		r->cap = r->n;
	}
	if (r->n)
		r->span[r->n] = (struct hb_busy_span){.begin = r->end};
}

struct hb_busy *hb_busy__new(const struct hb_timeline *tl, struct hb_error *e)
{
	struct hb_busy *b = calloc(1, sizeof(*b));

	if (b) {
		b->tl = tl;
		b->by_pid = hb_map__new();
	}
	if (b && b->by_pid)
		return b;
	hb_busy__free(b);
	hb_error__nomem(e, "device states");
	return NULL;
}

void hb_busy__free(struct hb_busy *b)
{
	if (!b)
		return;
	for (u32 i = 0; i < b->n; i++)
		free(b->row[i].span);
	free(b->row);
	hb_map__free(b->by_pid);
	free(b);
}

u64 hb_busy__memory(const struct hb_busy *b)
{
	u64 bytes = sizeof(*b);

	for (u32 i = 0; i < b->n; i++)
		bytes += sizeof(*b->row) + (b->row[i].cap + 1ULL) * sizeof(struct hb_busy_span);
	return bytes;
}

static const struct hb_busy_row *row_of(const struct hb_busy *b, u32 pid)
{
	u64 at;

	for (u32 i = 0; i < b->n && i < FEW; i++)
		if (b->row[i].pid == pid)
			return &b->row[i];
	return b->n > FEW && hb_map__get(b->by_pid, pid, &at) ? &b->row[at - 1] : NULL;
}

static struct hb_busy_row *row_new(struct hb_busy *b, u32 pid)
{
	if (!b->row || b->n == b->cap) {
		u32 cap = b->cap * 2 + 4;
		struct hb_busy_row *p = realloc(b->row, cap * sizeof(*p));

		if (!p)
			return NULL;
		b->row = p;
		b->cap = cap;
	}
	if (hb_map__put(b->by_pid, pid, b->n + 1))
		return NULL;
	b->row[b->n] = (struct hb_busy_row){.pid = pid, .end = hb_timeline__start(b->tl)};
	return &b->row[b->n++];
}

int hb_busy__infer(struct hb_busy *b, const struct hb_steps *steps, struct hb_error *e)
{
	u32 n = hb_steps__series(steps);
	int err = 0;

	for (u32 i = 0; !err && i < n; i++) {
		const struct hb_series *s = hb_steps__at(steps, i);
		struct hb_busy_row *r;

		if (s->dispatch == HB_NONE || row_of(b, s->pid))
			continue;
		r = row_new(b, s->pid);
		err = r ? hb_busy__infer_row(r, b->tl) : -ENOMEM;
		if (r)
			fit(r);
	}
	return err ? hb_error__nomem(e, "device states") : 0;
}

/* ---- exact ---- */

/* What is not known, as time goes on. */
struct not_known {
	const struct hb_iv *v;
	size_t n;
	u64 known; /* up to here all is known */
};

/* Up to `until` nothing was busy: unknown where it is not known, else idle. */
static int quiet(struct hb_busy_row *r, struct not_known *k, u64 until)
{
	int err = 0;

	while (r->end < until && !err) {
		if (k->n && k->v->end <= r->end) {
			k->v++;
			k->n--;
		} else if (k->n && k->v->begin <= r->end) {
			err = append(r, k->v->end < until ? k->v->end : until, HB_BUSY_UNKNOWN);
		} else {
			k->known = k->n ? k->v->begin : UINT64_MAX;
			err = append(r, k->known < until ? k->known : until, HB_BUSY_IDLE);
		}
	}
	return err;
}

int hb_busy__exact(struct hb_busy *b, u32 pid, const struct hb_busy_source *s)
{
	struct hb_busy_row *r = row_new(b, pid);
	struct not_known k = {.v = s->not_known->v, .n = s->not_known->n};
	u64 end = hb_timeline__end(b->tl);
	const u64 *busy = s->busy;
	int err = 0;

	if (!r)
		return -ENOMEM;
	r->exact = true;
	if (end >> 61)
		return 0;
	for (size_t i = 0; i < s->n && busy[0] < end && !err; i++, busy += s->stride) {
		err = busy[0] <= k.known ? append(r, busy[0], HB_BUSY_IDLE) : quiet(r, &k, busy[0]);
		err = err ? err : append(r, busy[1] < end ? busy[1] : end, HB_BUSY_BUSY);
	}
	err = err ? err : quiet(r, &k, end);
	fit(r);
	return err;
}

/* ---- asking ---- */

const struct hb_busy_span *hb_busy__spans(const struct hb_busy *b, u32 pid, u32 *n)
{
	const struct hb_busy_row *r = row_of(b, pid);

	*n = r ? r->n : 0;
	return r ? r->span : NULL;
}

bool hb_busy__is_exact(const struct hb_busy *b, u32 pid)
{
	const struct hb_busy_row *r = row_of(b, pid);

	return r && r->exact;
}

u32 hb_busy__at(const struct hb_busy *b, u32 pid, u64 t)
{
	const struct hb_busy_row *r = row_of(b, pid);
	u32 lo = 0, hi = r ? r->n : 0;

	while (lo < hi) {
		u32 mid = lo + (hi - lo) / 2;

		if (hb_busy_span__end(&r->span[mid]) <= t)
			lo = mid + 1;
		else
			hi = mid;
	}
	return r && lo < r->n ? lo : HB_NONE;
}

struct hb_busy_sum hb_busy__sum(const struct hb_busy *b, u32 pid)
{
	const struct hb_busy_row *r = row_of(b, pid);
	u64 ns[HB_BUSY_WHATS] = {0}, all = 0; /* by what it was */

	for (u32 i = 0; r && i < r->n; i++)
		ns[r->span[i].what] += hb_busy_span__end(&r->span[i]) - r->span[i].begin;
	for (u32 i = 0; i < HB_BUSY_WHATS; i++)
		all += ns[i];
	return (struct hb_busy_sum){.busy = ns[HB_BUSY_BUSY],
				    .idle = ns[HB_BUSY_IDLE],
				    .unknown = all - ns[HB_BUSY_BUSY] - ns[HB_BUSY_IDLE]};
}

struct hb_range hb_busy__idle_in(const struct hb_busy *b, u32 pid, u64 begin, u64 end)
{
	const struct hb_busy_row *r = row_of(b, pid);
	struct hb_range x = {0};

	for (u32 i = hb_busy__at(b, pid, begin); r && i < r->n && r->span[i].begin < end; i++) {
		const struct hb_busy_span *s = &r->span[i];
		u64 ns = hb_overlap(s->begin, hb_busy_span__end(s), begin, end);

		x.min += hb_busy_span__state(s) == HB_BUSY_IDLE ? ns : 0;
		x.max += hb_busy_span__state(s) != HB_BUSY_BUSY ? ns : 0;
		x.likely += hb_busy_span__likely(s) == HB_BUSY_IDLE ? ns : 0;
	}
	return x;
}
