/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A trial walk. A distribution that changed a struct, or a version that is not known, shows here: code
 * objects that are none, names that are no text, instructions outside of their code. The threads run on
 * meanwhile, so one that does not fit is tried again before it counts.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "capture/python/memory.h"
#include "capture/python/objects.h"
#include "capture/python/private.h"

#define MAX_STACKS 64
#define MAX_FRAMES 16 /* of a stack */
#define TRIES	   5
#define PAUSE_US   2000

static u64 word_of(const u8 *frame, u16 off)
{
	u64 v;

	memcpy(&v, frame + off, sizeof(v));
	return v;
}

static bool innermost(u32 pid, const struct hb_py_walk *w, u64 state, u64 *frame)
{
	if (!hb_py_memory__word(pid, state + w->frame, frame))
		return false;
	return w->frame_inner < 0 || !*frame || hb_py_memory__word(pid, *frame + (u64)w->frame_inner, frame);
}

/* The instruction lies within the code, or before its begin: a frame that has not begun. */
static bool at_fits(const struct hb_py_walk *w, const u8 *frame, u64 code, u32 units)
{
	u64 at = word_of(frame, w->instr);

	if (!w->code_bytes)
		return (s32)at >= -1 && (s32)at < (1 << 24);
	at -= code + w->code_bytes;
	return at + 2 <= 2ULL * units + 2;
}

static bool code_fits(u32 pid, const struct hb_py_runtime *r, const u8 *frame, u64 code, char *why,
		      size_t size)
{
	const struct hb_py_offsets *o = &r->off;
	char bytes[HB_PY_CODE_MAX], name[HB_PY_TEXT_SIZE];
	size_t n = hb_py_code__bytes(o);
	struct hb_py_code c;

	if (!n || hb_py_memory__read(pid, code, bytes, n)) {
		snprintf(why, size, "a frame's code object cannot be read");
		return false;
	}
	hb_py_code__parse(o, bytes, &c);
	if (c.type != r->code_type)
		snprintf(why, size, "what a frame calls its code object is none");
	else if (hb_py_object__text(pid, o, c.name, name, sizeof(name)) || !*name)
		snprintf(why, size, "a code object's name is no text");
	else if (hb_py_object__text(pid, o, c.file, name, sizeof(name)))
		snprintf(why, size, "a code object's file name is no text");
	else if (!at_fits(&o->walk, frame, code, c.units))
		snprintf(why, size, "a frame's instruction does not lie in its code");
	else
		return true;
	return false;
}

static enum hb_py_walked walk_one(u32 pid, const struct hb_py_runtime *r, u64 state, char *why, size_t size)
{
	const struct hb_py_walk *w = &r->off.walk;
	u8 frame[HB_PY_BLOCK];
	u64 at, code;
	u32 right = 0;

	if (!innermost(pid, w, state, &at)) {
		snprintf(why, size, "a thread's frame cannot be read");
		return HB_PY_WALK_WRONG;
	}
	for (u32 i = 0; at && i < MAX_FRAMES; i++) {
		if (hb_py_memory__read(pid, at, frame, w->frame_size)) {
			snprintf(why, size, "a frame cannot be read");
			return HB_PY_WALK_WRONG;
		}
		code = word_of(frame, w->code) & ~(u64)w->tag;
		at = word_of(frame, w->back);
		if (!code || code == w->none || (w->owner && frame[w->owner] >= w->shim_owner))
			continue;
		if (!code_fits(pid, r, frame, code, why, size))
			return HB_PY_WALK_WRONG;
		right++;
	}
	return right ? HB_PY_WALK_RIGHT : HB_PY_WALK_NOTHING;
}

static enum hb_py_walked walk_all(u32 pid, const struct hb_py_runtime *r, const u64 *states, u32 n, char *why,
				  size_t size)
{
	u32 right = 0, wrong = 0;

	for (u32 i = 0; i < n && i < MAX_STACKS; i++) {
		enum hb_py_walked one = walk_one(pid, r, states[i], why, size);

		right += one == HB_PY_WALK_RIGHT;
		wrong += one == HB_PY_WALK_WRONG;
	}
	/* Threads that run change their frames while they are read; most do not run. */
	if (right && wrong <= n / 4)
		return HB_PY_WALK_RIGHT;
	return wrong ? HB_PY_WALK_WRONG : HB_PY_WALK_NOTHING;
}

enum hb_py_walked hb_py_walk__try(u32 pid, const struct hb_py_runtime *r, const u64 *states, u32 n, char *why,
				  size_t size)
{
	enum hb_py_walked result = HB_PY_WALK_NOTHING;

	for (u32 i = 0; i < TRIES; i++) {
		if (i)
			usleep(PAUSE_US);
		result = walk_all(pid, r, states, n, why, size);
		if (result == HB_PY_WALK_RIGHT)
			break;
	}
	return result;
}

/* ---- a whole stack ---- */

/* As py_mark in bpf/python.bpf.h; what cannot be read is 0 there, too. */
static u64 mark_of(u32 pid, const struct hb_py_walk *w, u64 code, u32 i)
{
	u64 parts[2] = {0}, hash;

	if (i >= w->marked)
		return 0;
	hb_py_memory__read(pid, code + w->code_mark, parts, w->str_hash ? 16 : 8);
	if (!w->str_hash)
		return parts[0];
	hash = parts[1];
	if (i < HB_PY_NAMED && !hb_py_memory__word(pid, parts[1] + w->str_hash, &hash))
		hash = 0;
	return hash ^ parts[0];
}

static u64 word_of_frame(const struct hb_py_walk *w, const u8 *frame, u64 *code)
{
	u64 at = word_of(frame, w->instr), word;

	*code = word_of(frame, w->code) & ~(u64)w->tag;
	if (!*code || *code == w->none || (w->owner && frame[w->owner] >= w->shim_owner))
		return HB_PY_BORDER;
	at = w->code_bytes ? at - (*code + w->code_bytes) : (u64)(s64)(s32)at * w->lasti_bytes;
	at >>= 1;
	word = HB_PY_WORD(*code, at < HB_PY_AT_MAX ? at : HB_PY_AT_MAX);
	if (w->always_entered || (w->entry && frame[w->entry]))
		word |= HB_PY_ENTERED;
	return word;
}

bool hb_py_walk__trace(u32 pid, const struct hb_py_runtime *r, u64 state, struct hb_stack_trace *out)
{
	const struct hb_py_walk *w = &r->off.walk;
	u64 h = HB_PY_HASH_BEGIN, at, code;
	u8 frame[HB_PY_BLOCK];
	u32 i;

	if (!innermost(pid, w, state, &at) || !at)
		return false;
	out->state = HB_TRACE_WHOLE;
	out->marked = w->marked;
	for (i = 0; at && i < HB_STACK_DEPTH; i++) {
		if (at % 8 || hb_py_memory__read(pid, at, frame, w->frame_size)) {
			out->state = HB_TRACE_BROKEN;
			break;
		}
		out->ip[i] = word_of_frame(w, frame, &code);
		h = hb_py_hash(h, out->ip[i], out->ip[i] == HB_PY_BORDER ? 0 : mark_of(pid, w, code, i));
		at = word_of(frame, w->back);
	}
	if (at && i == HB_STACK_DEPTH)
		out->state = HB_TRACE_TRUNCATED;
	out->n = i;
	out->hash = hb_py_hash_end(h, out->state);
	return i > 0;
}
