/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Names for the stacks that occurred, after the flow has ended. Stacks share most of their frames, so each
 * address is looked up once; and in the order of files, so that one file's symbols are in memory at a time (a
 * framework library has half a million).
 */
#include "capture/session/impl.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"

struct address {
	u64 file; /* addresses of one file share it */
	u64 addr;
	u32 pid; /* 0: the kernel's */
};

struct names {
	struct address *list;
	u32 n, cap;
	struct hb_map *locs; /* address -> location and flags; 0 until it is looked up */
};
#define EVAL	    (1ULL << 32) /* CPython's loop */
#define INTERPRETER (1ULL << 33) /* in its file */
#define NOWHERE	    (1ULL << 34) /* in no file */

static u64 key_of(u32 pid, u64 addr)
{
	return hb_hash64(pid) ^ addr;
}

/* All but the innermost frame hold return addresses: the call is the instruction before. */
static u64 frame_address(const u64 *addr, u32 i)
{
	return i && addr[i] ? addr[i] - 1 : addr[i];
}

#if defined(__x86_64__)
#define USER_BITS 47
#else
#define USER_BITS 48
#endif
#define FIRST_PAGE 4096

static bool can_run_at(u64 addr, bool kernel)
{
	return kernel ? addr >> 63 == 1 : addr >> USER_BITS == 0 && addr >= FIRST_PAGE;
}

/* Addresses of a stack, innermost first. What a walk along frame pointers finds through code that has none is
 * not always an address: at the first that no thread can run at (zeros and small numbers are the most common;
 * nobody maps the first page) the stack ends, as a broken one. Where the thread itself was is no such guess:
 * it stays, even a jump to nowhere. */
static u32 stack_of(struct hb_session *s, u32 raw, u64 addr[HB_STACK_DEPTH], enum hb_stack_state *state)
{
	u32 depth = hb_bpf__stack(s->bpf, raw, addr), n = depth > 0;
	bool kernel = depth && addr[0] >> 63;

	while (n < depth && can_run_at(addr[n], kernel))
		n++;
	*state = n < depth ? HB_STACK_BROKEN : n == HB_STACK_DEPTH ? HB_STACK_TRUNCATED : HB_STACK_WHOLE;
	return n;
}

/* The native part of what a STACK member names. */
static u32 native_of(const struct hb_session *s, u32 raw, u32 *python)
{
	struct hb_stack_pair pair = {.native = raw};

	if (raw & HB_STACK_PAIR && !hb_bpf__pair(s->bpf, raw, &pair))
		pair.native = 0;
	*python = pair.python;
	return pair.native;
}

static u32 owner(u32 pid, u64 addr)
{
	return addr >> 63 ? 0 : pid;
}

static void note_address(struct hb_session *s, struct names *n, u32 pid, u64 addr)
{
	bool fresh = false;

	if (n->n == n->cap) {
		u32 cap = n->cap ? 2 * n->cap : 4096;
		struct address *list = reallocarray(n->list, cap, sizeof(*list));

		if (!list)
			return;
		n->list = list;
		n->cap = cap;
	}
	if (!hb_map__slot(n->locs, key_of(pid, addr), &fresh) || !fresh)
		return;
	n->list[n->n++] = (struct address){pid ? hb_resolve__file(s->resolve, pid, addr) : 0, addr, pid};
}

static void note_stack(struct hb_session *s, struct names *n, const struct stack_key *k)
{
	u64 addr[HB_STACK_DEPTH];
	enum hb_stack_state state;
	u32 python, depth = stack_of(s, native_of(s, k->raw, &python), addr, &state);

	for (u32 i = 0; i < depth; i++) {
		u64 at = frame_address(addr, i);

		note_address(s, n, owner(k->pid, at), at);
	}
}

static int by_file(const void *a, const void *b)
{
	const struct address *x = a, *y = b;

	if (x->file != y->file)
		return x->file < y->file ? -1 : 1;
	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return (x->addr > y->addr) - (x->addr < y->addr);
}

/* By names that CPython has had since 3.6, and those that a linker derives from them. */
static u64 flags_of(const struct hb_code *code)
{
	static const char eval[] = "_PyEval_EvalFrameDefault";
	const char *file = code->module ? hb_text__basename(code->module) : "";
	u64 flags = 0;

	if (code->func && strncmp(code->func, eval, sizeof(eval) - 1) == 0)
		flags |= EVAL;
	if (hb_python__is_library(file) || strncmp(file, "python", 6) == 0)
		flags |= INTERPRETER;
	if (!code->module)
		flags |= NOWHERE;
	return flags;
}

static u64 location(struct hb_session *s, const struct address *a)
{
	struct hb_code code = {0};
	struct hb_loc loc = {.lang = a->pid ? HB_LANG_NATIVE : HB_LANG_KERNEL, .offset = a->addr};
	u64 flags = a->pid ? NOWHERE : 0;
	int err = a->pid ? hb_resolve__user(s->resolve, a->pid, a->addr, &code)
			 : hb_resolve__kernel(s->resolve, a->addr, &code);

	if (err == 0) {
		loc.func = code.func ? hb_window_writer__string(s->writer, code.func) : 0;
		loc.module = code.module ? hb_window_writer__string(s->writer, code.module) : 0;
		loc.offset = code.offset;
		flags = a->pid ? flags_of(&code) : 0;
	}
	return hb_window_writer__loc(s->writer, &loc) | flags;
}

static void look_up(struct hb_session *s, struct names *n, u64 deadline)
{
	qsort(n->list, n->n, sizeof(*n->list), by_file);
	for (u32 i = 0; i < n->n && hb_clock__now() < deadline; i++)
		hb_map__put(n->locs, key_of(n->list[i].pid, n->list[i].addr), location(s, &n->list[i]));
}

/* Frames, innermost first; -1 when one of its addresses was not looked up. */
static int native_frames(struct hb_session *s, const struct names *n, u32 pid, u32 raw,
			 struct hb_native_frame *out, enum hb_stack_state *state)
{
	u64 addr[HB_STACK_DEPTH], loc;
	u32 depth = stack_of(s, raw, addr, state);

	for (u32 i = 0; i < depth; i++) {
		u64 at = frame_address(addr, i);

		if (!hb_map__get(n->locs, key_of(owner(pid, at), at), &loc) || !(u32)loc)
			return -1;
		out[i] = (struct hb_native_frame){(u32)loc, loc & EVAL, loc & INTERPRETER, loc & NOWHERE};
	}
	return (int)depth;
}

/* False when one of its addresses was not looked up. */
static bool put_stack(struct hb_session *s, const struct names *n, const struct stack_key *k)
{
	struct hb_native_frame native[HB_STACK_DEPTH];
	struct hb_py_frame frames[HB_STACK_DEPTH];
	u32 locs[2 * HB_STACK_DEPTH], python, n_python = 0, raw = native_of(s, k->raw, &python), depth;
	enum hb_stack_state state = HB_STACK_WHOLE;
	int n_native = raw ? native_frames(s, n, k->pid, raw, native, &state) : 0;

	/* Where Python's callers are known, a native walk that ended early has not lost them. */
	if (python)
		n_python = hb_session_python__frames(s, k->pid, python, frames, &state);
	depth = hb_session__merge(native, n_native > 0 ? (u32)n_native : 0, frames, n_python, locs,
				  2 * HB_STACK_DEPTH);
	if (depth)
		hb_window_writer__stack(s->writer, k->pid, k->raw, locs, depth, state);
	return n_native >= 0;
}

void hb_session__resolve_stacks(struct hb_session *s, u64 deadline)
{
	struct names n = {.locs = hb_map__new()};
	u32 unnamed = 0;

	if (!n.locs)
		return;
	hb_collect__close_rings(s->collect); /* their memory is needed for symbols now */
	for (u32 i = 0; i < s->n_stacks && hb_clock__now() < deadline; i++)
		note_stack(s, &n, &s->stacks[i]);
	look_up(s, &n, deadline);
	for (u32 i = 0; i < s->n_stacks; i++)
		unnamed += !put_stack(s, &n, &s->stacks[i]);
	if (unnamed)
		hb_session__note(s, HB_NOTE_WARNING, "%u of %u stacks were left without names: out of time",
				 unnamed, s->n_stacks);
	hb_map__free(n.locs);
	free(n.list);
}
