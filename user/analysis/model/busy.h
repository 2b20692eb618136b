/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * When a process's device was busy, as far as that can be known, and what a host interval exposed.
 *
 * With device records the answer is exact. Without them each moment is known-busy (inside of a wait for the
 * device that blocked: there was work from its begin to its return), known-idle (from the return of a wait
 * that covers everything submitted so far, to the next submission), or unknown. A read-back counts as
 * covering what the same thread submitted before it, on whatever stream: its data hang on that work. So an
 * exposed time is a range: idle alone, and idle with unknown.
 *
 * A third figure, `likely`, models the device as a queue: each piece of work takes what it took elsewhere in
 * the window, by what was submitted (function and grid, graph, copy of that size), learnt from waits that
 * blocked. Work of which nothing was learnt counts as busy there.
 */
#ifndef HB_BUSY_H
#define HB_BUSY_H

#include "analysis/model/steps.h"
#include "base/intervals.h"

enum hb_busy_state { HB_BUSY_UNKNOWN, HB_BUSY_BUSY, HB_BUSY_IDLE };

/* Spans of one process tile the window: each ends where the next one begins, and behind the last there is one
 * that only begins. Each kernel may make two of them, so they are kept small: times are below 2^61 ns (73
 * years since the machine came up, or the year 2043 in traces that tell the date), or there is no tiling. */
struct hb_busy_span {
	u64 begin : 61;
	u64 what : 3; /* see the two below */
};
enum { HB_BUSY_WHATS = 8 };
static inline enum hb_busy_state hb_busy_span__state(const struct hb_busy_span *s)
{
	return s->what <= HB_BUSY_IDLE ? s->what : HB_BUSY_UNKNOWN;
}
/* The same; of an unknown stretch what it probably was, UNKNOWN when nothing is known of it. */
static inline enum hb_busy_state hb_busy_span__likely(const struct hb_busy_span *s)
{
	return s->what <= HB_BUSY_IDLE ? s->what : s->what - HB_BUSY_IDLE;
}
static inline u64 hb_busy_span__end(const struct hb_busy_span *s)
{
	return s[1].begin;
}

struct hb_range {
	u64 min, max, likely; /* ns; min <= likely <= max; equal when exact */
};

struct hb_busy;

/* Of no process yet. NULL with the error set: out of memory. */
struct hb_busy *hb_busy__new(const struct hb_timeline *tl, struct hb_error *e);
void hb_busy__free(struct hb_busy *b); /* NULL is fine */
u64 hb_busy__memory(const struct hb_busy *b);

/* What the devices of a process did: busy in n stretches, by begin, of which each is two numbers, its begin
 * and its end, `stride` numbers after the one before it; unknown in `not_known` (joined), else idle. Once for
 * each process. 0 or -ENOMEM. */
struct hb_busy_source {
	const u64 *busy;
	size_t stride, n;
	const struct hb_ivs *not_known;
};
int hb_busy__exact(struct hb_busy *b, u32 pid, const struct hb_busy_source *source);
/* Infers it from calls alone, for all processes that give a device work and of which nothing exact is known.
 * 0 or -ENOMEM with the error set. */
int hb_busy__infer(struct hb_busy *b, const struct hb_steps *steps, struct hb_error *e);

/* The tiling of a process; NULL, *n = 0 when it gave no device work. */
const struct hb_busy_span *hb_busy__spans(const struct hb_busy *b, u32 pid, u32 *n);
/* Index of the span that holds moment t, or of the first one after it; HB_NONE. */
u32 hb_busy__at(const struct hb_busy *b, u32 pid, u64 t);
bool hb_busy__is_exact(const struct hb_busy *b, u32 pid);
/* Busy, idle, unknown ns of the window; the sum is its length. */
struct hb_busy_sum {
	u64 busy, idle, unknown;
};
struct hb_busy_sum hb_busy__sum(const struct hb_busy *b, u32 pid);

/* Device-idle time inside [begin, end): what the interval would expose if it lay on the way to the next
 * submission. */
struct hb_range hb_busy__idle_in(const struct hb_busy *b, u32 pid, u64 begin, u64 end);

#endif
