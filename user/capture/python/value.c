/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Values: numbers, texts, and how many things a container holds. */
#include <string.h>

#include "capture/python/heap_private.h"
#include "capture/python/memory.h"
#include "capture/python/objects.h"

/* ---- what is it? ---- */

static void by_flags(const struct hb_py_heap *h, u64 flags, struct hb_py_plan *is)
{
	u16 head = hb_py_heap__head(h);

	if (flags & HB_PY_FLAG_LONG) {
		is->how = HB_PY_IS_INT;
	} else if (flags & HB_PY_FLAG_UNICODE) {
		is->how = HB_PY_IS_STR;
	} else if (flags & (HB_PY_FLAG_LIST | HB_PY_FLAG_TUPLE | HB_PY_FLAG_BYTES)) {
		is->how = HB_PY_IS_SIZED;
		is->off = h->off.ob_size;
	} else if (flags & HB_PY_FLAG_DICT) {
		is->how = HB_PY_IS_SIZED;
		is->off = head; /* ma_used */
	}
}

/* Types that no flag tells, by the name of a base: where their length is, from the head's end; -1: no
 * length. */
static const struct {
	const char *name;
	u8 how;
	s32 length;
} named[] = {
    {"float", HB_PY_IS_FLOAT, -1},    {"set", HB_PY_IS_SIZED, 8},		/* used */
    {"frozenset", HB_PY_IS_SIZED, 8}, {"collections.deque", HB_PY_IS_SIZED, 0}, /* ob_size */
    {"bytearray", HB_PY_IS_SIZED, 0},
};

static bool by_name(const struct hb_py_heap *h, u64 type, struct hb_py_plan *is)
{
	u64 mro[HB_PY_MRO_MAX];
	u32 n = hb_py_type__mro(h, type, mro);
	char name[64];

	for (u32 i = 0; i < n; i++) {
		hb_py_type__name(h, mro[i], name, sizeof(name));
		for (unsigned k = 0; k < sizeof(named) / sizeof(*named); k++) {
			if (strcmp(name, named[k].name) != 0)
				continue;
			is->how = named[k].how;
			is->off = named[k].length < 0 ? 0 : hb_py_heap__head(h) + named[k].length;
			return true;
		}
	}
	return n > 0;
}

bool hb_py_value__is(const struct hb_py_heap *h, u64 type, struct hb_py_plan *is)
{
	char name[64];
	u64 flags;

	memset(is, 0, sizeof(*is));
	if (!hb_py_type__word(h, type, HB_PY_TP_FLAGS, &flags) || !hb_py_type__mark(h, type, &is->mark))
		return false;
	by_flags(h, flags, is);
	if (is->how == HB_PY_IS_INT && strcmp(hb_py_type__name(h, type, name, sizeof(name)), "bool") == 0)
		is->how = HB_PY_IS_BOOL;
	if (is->how != HB_PY_IS_OTHER)
		return true;
	if (strcmp(hb_py_type__name(h, type, name, sizeof(name)), "NoneType") == 0) {
		is->how = HB_PY_IS_NONE;
		return true;
	}
	return by_name(h, type, is);
}

/* ---- read it ---- */

static enum hb_pykind read_int(const struct hb_py_heap *h, u64 object, u64 *out)
{
	struct {
		s64 size; /* up to 3.11: digits, its sign the number's; later a tag */
		u32 digit[4];
	} i;
	u64 n, value = 0;
	bool negative;

	if (hb_py_memory__read(h->pid, object + hb_py_heap__head(h), &i, sizeof(i)) &&
	    hb_py_memory__read(h->pid, object + hb_py_heap__head(h), &i, 12))
		return HB_PYKIND_UNREADABLE;
	negative = h->off.minor >= 12 ? (i.size & 3) == 2 : i.size < 0;
	n = h->off.minor >= 12 ? (u64)i.size >> 3 : (u64)(i.size < 0 ? -i.size : i.size);
	if (n > 3 || (n == 3 && i.digit[2] >= 8))
		return HB_PYKIND_BIG;
	for (u64 k = n; k > 0; k--)
		value = value << 30 | (i.digit[k - 1] & ((1u << 30) - 1));
	*out = negative ? -value : value;
	return HB_PYKIND_INT;
}

void hb_py_value__text(const u8 *bytes, u32 n, unsigned width, char *buf)
{
	hb_py_text__utf8(bytes, width, n / width, buf);
}

static enum hb_pykind read_str(const struct hb_py_heap *h, u64 object, struct hb_py_value *v)
{
	const struct hb_py_offsets *o = &h->off;
	u64 at = object + o->str_ascii;
	u8 head[96], text[HB_PY_FIELD_TEXT];
	u32 state, width, bytes;
	u64 length;

	if (hb_py_memory__read(h->pid, object, head, o->str_state + 8u))
		return HB_PYKIND_UNREADABLE;
	memcpy(&state, head + o->str_state, sizeof(state));
	memcpy(&length, head + o->str_length, sizeof(length));
	state >>= o->str_kind_bit;
	width = state & 7;
	if (width != 1 && width != 2 && width != 4)
		return HB_PYKIND_OBJECT;
	if (!(state >> 4 & 1))
		at = object + o->str_compact;
	/* Of a class derived from str, they lie elsewhere. */
	if (!(state >> 3 & 1) && !hb_py_memory__word(h->pid, object + o->str_compact, &at))
		return HB_PYKIND_UNREADABLE;
	bytes = length * width < sizeof(text) ? (u32)(length * width) : sizeof(text);
	if (bytes && hb_py_memory__read(h->pid, at, text, bytes))
		return HB_PYKIND_UNREADABLE;
	hb_py_value__text(text, bytes, width, v->text);
	v->length = length > UINT32_MAX ? UINT32_MAX : (u32)length;
	v->num = length;
	return HB_PYKIND_STR;
}

static enum hb_pykind read_as(const struct hb_py_heap *h, u64 object, const struct hb_py_plan *is,
			      struct hb_py_value *v)
{
	switch (is->how) {
	case HB_PY_IS_NONE:
		return HB_PYKIND_NONE;
	case HB_PY_IS_BOOL:
		return read_int(h, object, &v->num) == HB_PYKIND_INT ? HB_PYKIND_BOOL : HB_PYKIND_UNREADABLE;
	case HB_PY_IS_INT:
		return read_int(h, object, &v->num);
	case HB_PY_IS_FLOAT:
		return hb_py_memory__word(h->pid, object + hb_py_heap__head(h), &v->num)
			   ? HB_PYKIND_FLOAT
			   : HB_PYKIND_UNREADABLE;
	case HB_PY_IS_STR:
		return read_str(h, object, v);
	case HB_PY_IS_SIZED:
		return hb_py_memory__word(h->pid, object + (u64)is->off, &v->num) ? HB_PYKIND_LEN
										  : HB_PYKIND_UNREADABLE;
	default:
		return HB_PYKIND_OBJECT;
	}
}

static bool fits(enum hb_pykind kind, enum hb_py_want want)
{
	static const u32 good[] = {
	    [HB_PY_WANT_STR] = 1u << HB_PYKIND_STR,
	    [HB_PY_WANT_INT] = 1u << HB_PYKIND_INT | 1u << HB_PYKIND_BIG,
	    [HB_PY_WANT_FLOAT] = 1u << HB_PYKIND_FLOAT | 1u << HB_PYKIND_INT,
	    [HB_PY_WANT_BOOL] = 1u << HB_PYKIND_BOOL,
	    [HB_PY_WANT_LEN] = 1u << HB_PYKIND_LEN | 1u << HB_PYKIND_STR,
	};

	/* What may be None often is. */
	return want == HB_PY_ANY || kind == HB_PYKIND_NONE || kind == HB_PYKIND_UNREADABLE ||
	       (good[want] & 1u << kind);
}

void hb_py_value__read(const struct hb_py_heap *h, u64 object, enum hb_py_want want, struct hb_py_value *out)
{
	u64 type = hb_py_heap__type(h, object);
	struct hb_py_plan is;

	memset(out, 0, sizeof(*out));
	out->kind = HB_PYKIND_UNREADABLE;
	if (!type || !hb_py_value__is(h, type, &is))
		return;
	out->kind = read_as(h, object, &is, out);
	if (hb_py_heap__type(h, object) != type)
		out->kind = HB_PYKIND_UNREADABLE;
	if (!fits(out->kind, want))
		out->kind = HB_PYKIND_OBJECT;
	else if (want == HB_PY_WANT_LEN && out->kind == HB_PYKIND_STR)
		out->kind = HB_PYKIND_LEN;
}
