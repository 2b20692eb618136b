/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Layouts: the table, and what runtimes publish about themselves. */
#include "capture/python/python.h"
#include "capture/python/versions.def"

#include <errno.h>
#include <string.h>

struct field { /* a member of struct hb_py_offsets, and its value by build */
	u16 offset, size;
	s32 value[HB_PY_N_BUILDS];
};

#define ROW(member, ...)                                                                                     \
	{offsetof(struct hb_py_offsets, member), sizeof(((struct hb_py_offsets *)0)->member), {__VA_ARGS__}},
static const struct field fields[] = {HB_PY_FIELDS(ROW)};

#define BUILD(m, ft) {m, ft},
static const struct {
	u8 minor, free_threaded;
} builds[HB_PY_N_BUILDS] = {HB_PY_BUILDS(BUILD)};

/* Members are little-endian numbers of 1, 2 or 4 bytes. */
static void put(struct hb_py_offsets *o, const struct field *f, s32 value)
{
	memcpy((char *)o + f->offset, &value, f->size);
}

static void fill(struct hb_py_offsets *o, unsigned build)
{
	memset(o, 0, sizeof(*o));
	o->minor = builds[build].minor;
	o->free_threaded = builds[build].free_threaded;
	o->walk.slot_inner = -1;
	o->walk.marked = HB_PY_MARKED;
	for (unsigned i = 0; i < sizeof(fields) / sizeof(*fields); i++)
		put(o, &fields[i], fields[i].value[build]);
}

bool hb_py_offsets__known(unsigned minor, bool free_threaded, struct hb_py_offsets *o)
{
	for (unsigned i = 0; i < HB_PY_N_BUILDS; i++) {
		if (builds[i].minor != minor || builds[i].free_threaded != free_threaded)
			continue;
		fill(o, i);
		return true;
	}
	return false;
}

/* ---- published ones ---- */

/*
 * A runtime of 3.13 or later begins with words: "xdebugpy", version, whether free-threaded, then for each
 * struct its size and some of its members' offsets. The order within is fixed for a version; these are the
 * places of what we need, in words.
 */
struct layout {
	u16 n; /* words there are */
	u16 interpreters, interp_size, interp_next, interp_threads, tstate_size, tstate_next, frame,
	    thread_id;
	u16 frame_size, back, code, instr, locals, owner;
	u16 code_size, file, name, qualname, lines, firstline, code_locals, code_local_kinds, code_bytes;
	u16 ob_type, bytes_data, str_state, str_length, str_ascii;
};

static const struct layout layout_13 = {
    .n = 73,
    .interpreters = 5,
    .interp_size = 6,
    .interp_next = 8,
    .interp_threads = 9,
    .tstate_size = 19,
    .tstate_next = 21,
    .frame = 23,
    .thread_id = 24,
    .frame_size = 28,
    .back = 29,
    .code = 30,
    .instr = 31,
    .locals = 32,
    .owner = 33,
    .code_size = 34,
    .file = 35,
    .name = 36,
    .qualname = 37,
    .lines = 38,
    .firstline = 39,
    .code_locals = 41,
    .code_local_kinds = 42,
    .code_bytes = 43,
    .ob_type = 45,
    .bytes_data = 66,
    .str_state = 68,
    .str_length = 69,
    .str_ascii = 70,
};
static const struct layout layout_14 = {
    .n = 95,
    .interpreters = 5,
    .interp_size = 6,
    .interp_next = 8,
    .interp_threads = 9,
    .tstate_size = 22,
    .tstate_next = 24,
    .frame = 26,
    .thread_id = 27,
    .frame_size = 31,
    .back = 32,
    .code = 33,
    .instr = 34,
    .locals = 35,
    .owner = 36,
    .code_size = 39,
    .file = 40,
    .name = 41,
    .qualname = 42,
    .lines = 43,
    .firstline = 44,
    .code_locals = 46,
    .code_local_kinds = 47,
    .code_bytes = 48,
    .ob_type = 51,
    .bytes_data = 76,
    .str_state = 78,
    .str_length = 79,
    .str_ascii = 80,
};

static const struct layout layout_15 = {
    .n = 111,
    .interpreters = 5,
    .interp_size = 6,
    .interp_next = 8,
    .interp_threads = 9,
    .tstate_size = 22,
    .tstate_next = 24,
    .frame = 26,
    .thread_id = 30,
    .frame_size = 39,
    .back = 40,
    .code = 41,
    .instr = 42,
    .locals = 43,
    .owner = 44,
    .code_size = 47,
    .file = 48,
    .name = 49,
    .qualname = 50,
    .lines = 51,
    .firstline = 52,
    .code_locals = 54,
    .code_local_kinds = 55,
    .code_bytes = 56,
    .ob_type = 59,
    .bytes_data = 88,
    .str_state = 90,
    .str_length = 91,
    .str_ascii = 92,
};

/* Words that must be offsets inside of a struct whose size is another word. */
static bool inside(const u64 *w, u16 size, const u16 *at, unsigned n, unsigned bytes)
{
	if (w[size] < 16 || w[size] >= 1u << 24)
		return false;
	for (unsigned i = 0; i < n; i++)
		if (w[at[i]] + bytes > w[size])
			return false;
	return true;
}

#define INSIDE(w, size, bytes, ...)                                                                          \
	inside(w, size, (const u16[]){__VA_ARGS__}, sizeof((u16[]){__VA_ARGS__}) / sizeof(u16), bytes)

static bool plausible(const u64 *w, const struct layout *l)
{
	/* Sums cannot overflow from here on; offsets must fit into u16. */
	for (unsigned i = 3; i < l->n; i++)
		if (w[i] >= 1u << 24)
			return false;
	return w[l->interpreters] < 65528 && w[l->interp_size] < 1u << 24 &&
	       INSIDE(w, l->interp_size, 8, l->interp_next, l->interp_threads) && w[l->interp_next] < 65528 &&
	       w[l->interp_threads] < 65528 && w[l->tstate_size] < 65536 &&
	       INSIDE(w, l->tstate_size, 8, l->tstate_next, l->frame, l->thread_id) &&
	       w[l->frame_size] <= 1024 && INSIDE(w, l->frame_size, 8, l->back, l->code, l->instr) &&
	       INSIDE(w, l->frame_size, 1, l->owner) && w[l->code_size] < 4096 &&
	       INSIDE(w, l->code_size, 8, l->file, l->name, l->qualname, l->lines, l->code_locals) &&
	       w[l->code_locals] >= 16 && INSIDE(w, l->code_size, 4, l->firstline) &&
	       w[l->code_bytes] <= w[l->code_size] && INSIDE(w, l->frame_size, 8, l->locals) &&
	       INSIDE(w, l->code_size, 8, l->code_locals, l->code_local_kinds) && w[l->ob_type] <= 64 &&
	       w[l->bytes_data] <= 128 && w[l->str_state] <= 128 && w[l->str_length] <= 128 &&
	       w[l->str_ascii] <= 128 && w[l->str_ascii] >= 16;
}

static u16 frame_bytes(const struct hb_py_walk *w)
{
	u16 last = w->back;

	last = w->code > last ? w->code : last;
	last = w->instr > last ? w->instr : last;
	last = (w->owner & ~7) > last ? w->owner & ~7 : last;
	return last + 8;
}

static int take(const u64 *w, const struct layout *l, struct hb_py_offsets *o)
{
	struct hb_py_walk *k = &o->walk;

	if (w[l->back] % 8 || w[l->code] % 8 || w[l->instr] % 8)
		return -EINVAL;
	o->interpreters = (u16)w[l->interpreters];
	o->interp_next = (u16)w[l->interp_next];
	o->interp_threads = (u16)w[l->interp_threads];
	o->tstate_next = (u16)w[l->tstate_next];
	o->ob_type = (u16)w[l->ob_type];
	o->ob_size = o->ob_type + 8;
	o->code_file = (u16)w[l->file];
	o->code_name = (u16)w[l->name];
	o->code_qualname = (u16)w[l->qualname];
	o->code_lines = (u16)w[l->lines];
	o->code_firstline = (u16)w[l->firstline];
	o->str_state = (u16)w[l->str_state];
	o->str_length = (u16)w[l->str_length];
	o->str_ascii = (u16)w[l->str_ascii];
	o->str_compact = o->str_ascii + 16;
	o->bytes_data = (u16)w[l->bytes_data];
	o->code_locals = (u16)w[l->code_locals];
	o->code_local_kinds = (u16)w[l->code_local_kinds];
	o->frame_locals = (u16)w[l->locals];
	k->thread_id = (u16)w[l->thread_id];
	k->frame = (u16)w[l->frame];
	k->back = (u16)w[l->back];
	k->code = (u16)w[l->code];
	k->instr = (u16)w[l->instr];
	k->owner = (u16)w[l->owner];
	k->code_bytes = (u16)w[l->code_bytes];
	k->code_name = o->code_name;
	k->code_mark = (u16)w[l->code_locals] - 8; /* co_version is before it */
	k->frame_size = frame_bytes(k);
	return k->frame_size <= HB_PY_BLOCK ? 0 : -EINVAL;
}

int hb_py_offsets__published(const u64 *words, size_t n, struct hb_py_offsets *o)
{
	const struct layout *l;
	unsigned minor;

	if (n < 3 || memcmp(words, "xdebugpy", 8) != 0)
		return -EINVAL;
	minor = words[1] >> 16 & 0xff;
	if (words[1] >> 24 != 3 || minor < 13 || words[2] > 1)
		return -EINVAL;
	l = minor == 13 ? &layout_13 : minor == 14 ? &layout_14 : &layout_15;
	if (n < l->n || !plausible(words, l))
		return -EINVAL;
	/* What is not published: as it was in the last version that is known. */
	if (!hb_py_offsets__known(minor, words[2], o))
		hb_py_offsets__known(HB_PY_NEWEST, words[2], o);
	if (o->minor != minor)
		o->key = 0;
	o->minor = (u16)minor;
	return take(words, l, o);
}
