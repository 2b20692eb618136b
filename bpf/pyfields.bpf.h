/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Fields of Python objects, read in a call: from a variable of the frame along attributes to a value. Where
 * an attribute lies in objects of a type is told by user space the first time one is met; until then, and
 * where the kernel cannot go on, the message says from where the collector is to read on.
 *
 *	hb_py_fields(tgid, code, frame, ts)	in a program that has met a function with fields
 */
#ifndef HB_PYFIELDS_BPF_H
#define HB_PYFIELDS_BPF_H

#include "python.bpf.h"
#include "schema/pyfield.h"

/* Some --field; off: the code below is dead and is taken out at load. */
const volatile bool hb_py_fields_on SEC(".rodata") __weak = false;

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, HB_PY_FIELD_CODES);
	__type(key, struct hb_py_code_key);
	__type(value, struct hb_py_field_code);
} py_field_codes SEC(".maps") __weak;

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, HB_PY_FIELD_PLANS);
	__type(key, struct hb_py_plan_key);
	__type(value, struct hb_py_plan);
} py_field_plans SEC(".maps") __weak;

/* One field on its way. */
struct hb_py_way {
	u64 object, num, text; /* text: address of the characters */
	u32 length;
	u8 step, kind, width, pad;
};

/* Of the same type, not of one that came to lie there later. */
static __always_inline struct hb_py_plan *py_plan(const struct hb_py_heap_layout *h, u32 tgid, u64 type,
						  u32 step)
{
	struct hb_py_plan_key key = {.type = type, .tgid = tgid, .step = step};
	struct hb_py_plan *p = bpf_map_lookup_elem(&py_field_plans, &key);
	u64 name, text;

	if (!p || !py_read(&name, type + h->head + 8))
		return NULL;
	py_read(&text, name);
	return p->mark == hb_py_type_mark(name, text) ? p : NULL;
}

/* ---- dicts ---- */

struct hb_py_keys {
	u64 entries;
	u32 n, size, key_at, shared;
};

static __always_inline bool py_keys(const struct hb_py_heap_layout *h, u64 at, struct hb_py_keys *k)
{
	u64 head[5] = {};
	u32 width, kind;

	if (bpf_probe_read_user(head, sizeof(head), (void *)at))
		return false;
	if (h->old_keys) {
		width = head[1] <= 0xff ? 1 : head[1] <= 0xffff ? 2 : 4;
		k->entries = at + 40 + head[1] * width;
		k->n = head[4];
		k->size = 24;
		k->key_at = 8;
		k->shared = 0;
		return true;
	}
	kind = head[1] >> 16 & 0xff;
	k->entries = at + 32 + (1ULL << (head[1] >> 8 & 31));
	k->n = head[3];
	k->size = kind ? 16 : 24;
	k->key_at = kind ? 0 : 8;
	k->shared = kind == 2;
	return true;
}

/* Entry i into out when its key is this one. */
static __always_inline bool py_entry(const struct hb_py_keys *k, u32 i, u64 key, u64 *value)
{
	u64 pair[2] = {};

	if (i >= k->n ||
	    bpf_probe_read_user(pair, sizeof(pair), (void *)(k->entries + i * k->size + k->key_at)))
		return false;
	*value = pair[1];
	return pair[0] == key;
}

/* The value of a key, which is compared by its address (names of attributes are one object each); 0: not
 * found here. Not inlined and not static, so that the verifier looks at it once. */
__weak __noinline u64 hb_py_dict_get(const struct hb_py_heap_layout *h, u64 dict, u64 key, u32 hint)
{
	struct hb_py_keys k = {};
	u64 at[2] = {}, value = 0; /* keys, values */
	u32 i;

	if (!h || !dict || !key || bpf_probe_read_user(at, sizeof(at), (void *)(dict + h->head + 16)) ||
	    !py_keys(h, at[0], &k))
		return 0;
	i = hint;
	if (!py_entry(&k, i, key, &value)) {
#pragma clang loop unroll(disable)
		for (i = 0; i < HB_PY_SCAN; i++)
			if (py_entry(&k, i, key, &value))
				break;
		if (i == HB_PY_SCAN)
			return 0;
	}
	if (at[1] && !py_read(&value, at[1] + h->values_at + 8ULL * i))
		return 0;
	return value;
}

/* ---- attributes ---- */

static __always_inline u64 py_managed(const struct hb_py_heap_layout *h, u64 object,
				      const struct hb_py_plan *p)
{
	u64 dict;

	return py_read(&dict, object + (s64)h->managed) ? hb_py_dict_get(h, dict, p->key, p->index) : 0;
}

/* The value of this index, if the keys that objects of the type share have the name there. */
static __always_inline u64 py_shared(const struct hb_py_heap_layout *h, u64 type, u64 values,
				     const struct hb_py_plan *p)
{
	struct hb_py_keys k = {};
	u64 keys, word;

	if (!py_read(&keys, type + h->type_keys) || !py_keys(h, keys, &k) ||
	    !py_entry(&k, p->index, p->key, &word))
		return 0;
	return py_read(&word, values + 8ULL * p->index) ? word : 0;
}

/* The slot is still the one of that name: classes may come and go in one place. */
static __always_inline u64 py_slot(const struct hb_py_heap_layout *h, u64 at, const struct hb_py_plan *p)
{
	u64 def[3] = {}, n, word; /* name, kind, offset */

	if (p->owner && (!py_read(&n, p->owner + h->head) || p->index >= n))
		return 0;
	if (bpf_probe_read_user(def, sizeof(def), (void *)p->slot) || def[0] != p->key ||
	    def[2] != (u64)(s64)p->off)
		return 0;
	return py_read(&word, at) ? word : 0;
}

/* The attribute, or 0. */
static __always_inline u64 py_attribute(const struct hb_py_heap_layout *h, u64 object, u64 type,
					const struct hb_py_plan *p)
{
	u64 at = object + (s64)p->off, word = 0, values = 0;
	u8 valid = 0;

	switch (p->how) {
	case HB_PY_HOW_SLOT:
		return py_slot(h, at, p);
	case HB_PY_HOW_DICT:
		return py_read(&word, at) ? hb_py_dict_get(h, word, p->key, p->index) : 0;
	case HB_PY_HOW_INLINE:
		bpf_probe_read_user(&valid, sizeof(valid), (void *)(at + 3));
		values = valid ? at + 8 : 0;
		break;
	case HB_PY_HOW_VALUES:
		py_read(&values, at);
		break;
	case HB_PY_HOW_EITHER:
		py_read(&word, at);
		values = word & 1 ? word + 1 : 0;
		break;
	default:
		return 0;
	}
	return values ? py_shared(h, type, values, p) : py_managed(h, object, p);
}

/* One attribute further; false where it ends: `kind` says how. */
static __always_inline bool py_step(const struct hb_py_heap_layout *h, struct hb_py_way *w, u32 tgid,
				    u32 field)
{
	struct hb_py_plan *p;
	u64 type, next;

	if (!py_read(&type, w->object + h->ob_type))
		return false;
	p = py_plan(h, tgid, type, HB_PY_STEP(field, w->step));
	w->kind = HB_PY_KIND_ASK;
	if (p && p->how == HB_PY_HOW_NEVER)
		w->kind = HB_PYKIND_MISSING;
	if (!p || p->how == HB_PY_HOW_ASK || p->how == HB_PY_HOW_NEVER)
		return false;
	next = py_attribute(h, w->object, type, p);
	if (!next) /* not set, or in a dict too large for here: user space looks closer */
		return false;
	w->object = next;
	w->step++;
	w->kind = HB_PYKIND_UNREADABLE;
	return true;
}

/* ---- values ---- */

static __always_inline u8 py_int(const struct hb_py_heap_layout *h, struct hb_py_way *w)
{
	u32 digit[3] = {};
	u64 size, n, value;
	bool negative;

	if (!py_read(&size, w->object + h->head))
		return HB_PYKIND_UNREADABLE;
	negative = h->tagged_int ? (size & 3) == 2 : (s64)size < 0;
	n = h->tagged_int ? size >> 3 : negative ? -size : size;
	if (n > 3)
		return HB_PYKIND_BIG;
	if (n && bpf_probe_read_user(digit, 4 * (n & 3), (void *)(w->object + h->head + 8)))
		return HB_PYKIND_UNREADABLE;
	if (digit[2] >= 8)
		return HB_PYKIND_BIG;
	value = digit[0] | (u64)digit[1] << 30 | (u64)digit[2] << 60;
	w->num = negative ? -value : value;
	return HB_PYKIND_INT;
}

static __always_inline u8 py_str(const struct hb_py_heap_layout *h, struct hb_py_way *w)
{
	u32 state = 0;
	u64 length;

	if (bpf_probe_read_user(&state, sizeof(state), (void *)(w->object + h->str_state)) ||
	    !py_read(&length, w->object + h->str_length))
		return HB_PYKIND_UNREADABLE;
	state >>= h->str_kind_bit;
	w->width = state & 7;
	if (w->width != 1 && w->width != 2 && w->width != 4)
		return HB_PYKIND_OBJECT;
	w->text = w->object + (state >> 4 & 1 ? h->str_ascii : h->str_compact);
	if (!(state >> 3 & 1) && !py_read(&w->text, w->object + h->str_compact))
		return HB_PYKIND_UNREADABLE;
	w->length = length;
	w->num = length;
	return HB_PYKIND_STR;
}

static __always_inline u8 py_value(const struct hb_py_heap_layout *h, struct hb_py_way *w,
				   const struct hb_py_plan *is)
{
	u8 kind;

	switch (is->how) {
	case HB_PY_IS_NONE:
		return HB_PYKIND_NONE;
	case HB_PY_IS_BOOL:
		kind = py_int(h, w);
		return kind == HB_PYKIND_INT ? HB_PYKIND_BOOL : kind;
	case HB_PY_IS_INT:
		return py_int(h, w);
	case HB_PY_IS_FLOAT:
		return py_read(&w->num, w->object + h->head) ? HB_PYKIND_FLOAT : HB_PYKIND_UNREADABLE;
	case HB_PY_IS_STR:
		return py_str(h, w);
	case HB_PY_IS_SIZED:
		return py_read(&w->num, w->object + (s64)is->off) ? HB_PYKIND_LEN : HB_PYKIND_UNREADABLE;
	}
	return HB_PYKIND_OBJECT;
}

/* What was asked for: as fits() in user/capture/python/value.c, which has the last word on what does not fit.
 */
static __always_inline bool py_fits(u8 kind, u8 want)
{
	switch (want) {
	case HB_PY_WANT_STR:
		return kind == HB_PYKIND_STR;
	case HB_PY_WANT_INT:
		return kind == HB_PYKIND_INT || kind == HB_PYKIND_BIG;
	case HB_PY_WANT_FLOAT:
		return kind == HB_PYKIND_FLOAT || kind == HB_PYKIND_INT;
	case HB_PY_WANT_BOOL:
		return kind == HB_PYKIND_BOOL;
	case HB_PY_WANT_LEN:
		return kind == HB_PYKIND_LEN || kind == HB_PYKIND_STR;
	}
	return true;
}

static __always_inline void py_finish(const struct hb_py_heap_layout *h, struct hb_py_way *w, u32 tgid,
				      u8 want)
{
	struct hb_py_plan *is;
	u64 type;

	w->kind = HB_PYKIND_UNREADABLE;
	if (!py_read(&type, w->object + h->ob_type))
		return;
	w->kind = HB_PY_KIND_ASK;
	is = py_plan(h, tgid, type, HB_PY_VALUE);
	if (!is)
		return;
	w->kind = py_value(h, w, is);
	if (w->kind == HB_PYKIND_NONE || w->kind == HB_PYKIND_UNREADABLE)
		return;
	if (w->kind == HB_PYKIND_OBJECT || !py_fits(w->kind, want))
		w->kind = HB_PYKIND_OBJECT;
	else if (want == HB_PY_WANT_LEN)
		w->kind = HB_PYKIND_LEN;
}

/* ---- messages ---- */

static __always_inline void py_tell_field(const struct hb_py_way *w, u64 code, u64 ts, u32 field)
{
	u64 id = bpf_get_current_pid_tgid();
	struct hb_py_field_read *r = hb_reserve_at(HB_TYPE_py_field, sizeof(*r), id >> 32, id, ts);
	u64 bytes;

	if (!r)
		return;
	hb_wire_of(r)->type = HB_WIRE_PY_FIELD;
	if (w->kind == HB_PY_KIND_ASK) /* at once: the object will not wait */
		hb_wire_of(r)->flags = 1;
	r->call = ts;
	r->object = w->object;
	r->num = w->num;
	r->code = code;
	r->field = field;
	r->bytes = 0;
	r->step = w->step;
	r->kind = w->kind;
	r->width = w->width;
	r->length = w->length;
	if (w->kind == HB_PYKIND_STR) {
		bytes = (u64)w->length * w->width;
		bytes = bytes < HB_PY_FIELD_TEXT ? bytes : HB_PY_FIELD_TEXT;
		if (bpf_probe_read_user(r->text, bytes, (void *)w->text))
			r->kind = HB_PYKIND_UNREADABLE;
		r->bytes = bytes;
	}
	HB_SUBMIT(r);
}

/* Field i of the function whose frame this is. */
__weak __noinline u32 hb_py_field(const struct hb_py_field_code *c, u64 frame, u32 i, u64 ts)
{
	u32 tgid = bpf_get_current_pid_tgid() >> 32, s;
	struct hb_py_way w = {};
	u64 type;

	if (!c || i >= HB_PY_CODE_FIELDS)
		return 0;
	py_read(&w.object, frame + c->heap.locals + 8ULL * c->field[i].local);
	w.object &= ~(u64)c->heap.tag;
	/* A variable that an inner function uses lies in a cell. */
	if (w.object && py_read(&type, w.object + c->heap.ob_type) && type == c->heap.cell_type)
		py_read(&w.object, w.object + c->heap.head);
	w.kind = HB_PYKIND_MISSING;
	if (w.object) {
		w.kind = HB_PYKIND_UNREADABLE;
#pragma clang loop unroll(disable)
		for (s = 0; s < HB_PY_STEPS; s++)
			if (s >= c->field[i].steps || !py_step(&c->heap, &w, tgid, c->field[i].field))
				break;
		if (w.step == c->field[i].steps)
			py_finish(&c->heap, &w, tgid, c->field[i].want);
	}
	py_tell_field(&w, c->code, ts, c->field[i].field);
	return 0;
}

/* All of them. `ts`: the call's time, as it is in its record. */
static __always_inline void hb_py_fields(u32 tgid, u64 code, u64 frame, u64 ts)
{
	struct hb_py_code_key key = {.code = code, .tgid = tgid};
	struct hb_py_field_code *c;
	u32 i;

	if (!hb_py_fields_on)
		return;
	c = bpf_map_lookup_elem(&py_field_codes, &key);
	if (!c)
		return;
#pragma clang loop unroll(disable)
	for (i = 0; i < HB_PY_CODE_FIELDS; i++) {
		if (i >= c->n)
			break;
		hb_py_field(c, frame, i, ts);
	}
}

#endif
