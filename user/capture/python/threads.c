/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Thread states, and where a thread keeps its own. CPython stores it in a slot of pthread_setspecific, where
 * it stays while the GIL is released. The slot lies at the same distance from the thread pointer in all
 * threads (glibc, keys below 32), or behind one pointer there (later keys; musl): both are found by looking
 * for the address, so no offsets of a C library are needed.
 */
#include <string.h>

#include "capture/python/memory.h"
#include "capture/python/private.h"

#define MAX_INTERPRETERS 256
#define AREA		 0x900 /* bytes above the thread pointer: glibc's first block of slots ends at 0x518 */
#define BELOW		 0x1000 /* bytes below it: variables of threads, where 3.15 keeps the state */
#define INNER		 0x400	/* bytes behind a pointer */
#define MAX_VOTERS	 8
#define MAX_CANDIDATES	 16

u32 hb_py_threads__list(u32 pid, const struct hb_py_runtime *r, u64 *states, u32 max)
{
	const struct hb_py_offsets *o = &r->off;
	u64 interp, ts;
	u32 n = 0;

	if (!hb_py_memory__word(pid, r->address + o->interpreters, &interp))
		return 0;
	for (u32 i = 0; interp && i < MAX_INTERPRETERS; i++) {
		if (!hb_py_memory__word(pid, interp + o->interp_threads, &ts))
			break;
		while (ts && n < max) {
			states[n++] = ts;
			if (!hb_py_memory__word(pid, ts + o->tstate_next, &ts))
				break;
		}
		if (!hb_py_memory__word(pid, interp + o->interp_next, &interp))
			break;
	}
	return n;
}

/* ---- the slot ---- */

struct candidate {
	s32 slot, inner;
};

struct voter { /* one thread: what lies above its thread pointer */
	u64 self, state;
	u64 area[AREA / 8];
	u64 below[BELOW / 8]; /* ends at the thread pointer */
};

static u64 at_slot(const struct voter *v, s32 slot)
{
	return slot < 0 ? v->below[(u32)(BELOW + slot) / 8] : v->area[slot / 8];
}

/* All of it, or what is on the thread pointer's own page. */
static void read_below(u32 pid, struct voter *v)
{
	u64 rest = v->self & 4095 & ~7ULL;

	memset(v->below, 0, sizeof(v->below));
	if (hb_py_memory__read(pid, v->self - BELOW, v->below, BELOW))
		hb_py_memory__read(pid, v->self - rest, (char *)v->below + BELOW - rest, rest);
}

/* The thread pointer points at itself: at its begin (glibc and musl), at 16 (glibc). */
static bool read_voter(u32 pid, const struct hb_py_offsets *o, u64 state, struct voter *v)
{
	long n;

	v->state = state;
	memset(v->area, 0, sizeof(v->area));
	if (!hb_py_memory__word(pid, state + o->walk.thread_id, &v->self) || !v->self || v->self % 8)
		return false;
	read_below(pid, v);
	n = hb_py_memory__some(pid, v->self, v->area, sizeof(v->area));
	return n >= 24 && (v->area[0] == v->self || v->area[2] == v->self);
}

static u32 direct(const struct voter *v, struct candidate *c, u32 max)
{
	u32 n = 0;

	for (s32 i = 0; i < AREA / 8 && n < max; i++)
		if (v->area[i] == v->state)
			c[n++] = (struct candidate){8 * i, -1};
	return n;
}

static u32 behind(u32 pid, const struct voter *v, struct candidate *c, u32 max)
{
	u64 block[INNER / 8];
	u32 n = 0;

	for (s32 i = 0; i < AREA / 8 && n < max; i++) {
		long got;

		if (v->area[i] < 4096 || v->area[i] % 8 || v->area[i] >> 47)
			continue;
		got = hb_py_memory__some(pid, v->area[i], block, sizeof(block));
		for (s32 k = 0; k < got / 8 && n < max; k++)
			if (block[k] == v->state)
				c[n++] = (struct candidate){8 * i, 8 * k};
	}
	return n;
}

/* The place leads to a state of this thread: it may have several, of which it uses one at a time (one for
 * each of the interpreters that it has been in). */
static bool agrees(u32 pid, const struct hb_py_offsets *o, const struct voter *v, const struct candidate *c)
{
	u64 at = at_slot(v, c->slot), self;

	if (c->inner >= 0 && (!at || !hb_py_memory__word(pid, at + (u64)c->inner, &at)))
		return false;
	return at && hb_py_memory__word(pid, at + o->walk.thread_id, &self) && self == v->self;
}

static bool all_agree(u32 pid, const struct hb_py_offsets *o, const struct voter *v, u32 n,
		      const struct candidate *c)
{
	for (u32 i = 0; i < n; i++)
		if (!agrees(pid, o, &v[i], c))
			return false;
	return true;
}

/* From 3.15 on it is a variable of the thread. Another one has the state only while the thread may run
 * Python, so where both have it now one cannot tell: the function that returns the right one does, if it is
 * that simple. */
static u32 variables(u32 pid, const struct hb_py_runtime *r, const struct voter *v, u32 n,
		     struct candidate *c)
{
	static const u8 mov[] = {0x64, 0x48, 0x8b, 0x04, 0x25}; /* mov %fs:..,%rax */
	u32 found = 0;
	u8 code[13];
	s32 slot;

	if (r->get_state && !hb_py_memory__read(pid, r->get_state, code, sizeof(code))) {
		const u8 *at = code[0] == 0xf3 ? code + 4 : code; /* behind endbr64 */

		memcpy(&slot, at + sizeof(mov), sizeof(slot));
		if (!memcmp(at, mov, sizeof(mov)) && slot < 0 && slot >= -BELOW && slot % 8 == 0) {
			c[0] = (struct candidate){slot, -1};
			return 1;
		}
	}
	for (slot = -BELOW; n && slot < 0 && found < MAX_CANDIDATES; slot += 8) {
		c[found] = (struct candidate){slot, -1};
		found += at_slot(v, slot) == v->state && all_agree(pid, &r->off, v, n, &c[found]);
	}
	return found == 1;
}

bool hb_py_threads__slot(u32 pid, struct hb_py_runtime *r, const u64 *states, u32 n)
{
	static __thread struct voter voters[MAX_VOTERS];
	struct candidate c[MAX_CANDIDATES];
	u32 n_voters = 0, n_c = 0;

	for (u32 i = 0; i < n && n_voters < MAX_VOTERS; i++)
		n_voters += read_voter(pid, &r->off, states[i], &voters[n_voters]);
	for (u32 i = 0; i < n_voters && r->minor < 15; i++)
		n_c += direct(&voters[i], c + n_c, MAX_CANDIDATES - n_c);
	if (r->minor >= 15)
		n_c = variables(pid, r, voters, n_voters, c);
	for (u32 i = 0; i < n_voters && !n_c && r->minor < 15; i++)
		n_c = behind(pid, &voters[i], c, MAX_CANDIDATES);
	for (u32 i = 0; i < n_c; i++) {
		if (!all_agree(pid, &r->off, voters, n_voters, &c[i]))
			continue;
		r->off.walk.slot = c[i].slot;
		r->off.walk.slot_inner = c[i].inner;
		return true;
	}
	return false;
}
