/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Attributes, in the order of CPython's own lookup: data descriptors of the class, the object, the class. */
#include <errno.h>
#include <string.h>

#include "capture/python/heap_private.h"
#include "capture/python/memory.h"

/* ---- in the class ---- */

/* PyMemberDescr: its head, then class, name, qualified name, PyMemberDef *. */
#define DESCR_MEMBER 24
/* PyMemberDef: name, kind, offset. */
enum { MEMBER_OBJECT = 6, MEMBER_OBJECT_EX = 16, MEMBER_SIZE = 40 };

static u64 in_class(const struct hb_py_heap *h, u64 type, const char *name)
{
	u64 mro[HB_PY_MRO_MAX], dict;
	u32 n = hb_py_type__mro(h, type, mro);
	struct hb_py_entry e;

	for (u32 i = 0; i < n; i++)
		if (hb_py_type__word(h, mro[i], HB_PY_TP_DICT, &dict) && dict &&
		    hb_py_dict__find(h, dict, name, &e) == 0 && e.value)
			return e.value;
	return 0;
}

/* Definitions of slots lie behind the class that has them, as many as its size says. */
static void find_owner(const struct hb_py_heap *h, u64 descr, struct hb_py_plan *plan)
{
	u64 owner, size, n, begin;

	if (!hb_py_memory__word(h->pid, descr + hb_py_heap__head(h), &owner) ||
	    !hb_py_type__word(h, hb_py_heap__type(h, owner), HB_PY_TP_BASICSIZE, &size) ||
	    !hb_py_memory__word(h->pid, owner + h->off.ob_size, &n))
		return;
	begin = owner + size;
	if (n > UINT16_MAX || plan->slot < begin || plan->slot >= begin + n * MEMBER_SIZE)
		return;
	plan->owner = owner;
	plan->index = (u16)((plan->slot - begin) / MEMBER_SIZE);
}

static enum hb_py_found member(const struct hb_py_heap *h, u64 descr, u64 object, u64 *value,
			       struct hb_py_plan *plan)
{
	u64 def[3];
	u64 at;

	if (!hb_py_memory__word(h->pid, descr + hb_py_heap__head(h) + DESCR_MEMBER, &at) ||
	    hb_py_memory__read(h->pid, at, def, sizeof(def)))
		return HB_PY_UNREADABLE;
	if (((u32)def[1] != MEMBER_OBJECT && (u32)def[1] != MEMBER_OBJECT_EX) || def[2] > 1u << 20) {
		plan->how = HB_PY_HOW_NEVER;
		return HB_PY_NATIVE;
	}
	*plan = (struct hb_py_plan){.how = HB_PY_HOW_SLOT, .key = def[0], .slot = at, .off = (s32)def[2]};
	find_owner(h, descr, plan);
	if (!hb_py_memory__word(h->pid, object + def[2], value))
		return HB_PY_UNREADABLE;
	return *value ? HB_PY_FOUND : HB_PY_NOT_SET;
}

/* What of the class comes before the object's own. */
static bool is_data(const struct hb_py_heap *h, u64 descr, bool *is_member)
{
	u64 type = hb_py_heap__type(h, descr), set;
	char name[64];

	*is_member = strcmp(hb_py_type__name(h, type, name, sizeof(name)), "member_descriptor") == 0;
	return hb_py_type__word(h, type, HB_PY_TP_DESCR_SET, &set) && set;
}

/* ---- in the object ---- */

static enum hb_py_found in_dict(const struct hb_py_heap *h, u64 dict, s32 off, const char *name, u64 *value,
				struct hb_py_plan *plan)
{
	struct hb_py_entry e;
	int err;

	*plan = (struct hb_py_plan){.how = HB_PY_HOW_DICT, .off = off};
	if (!dict)
		return HB_PY_UNKNOWN;
	err = hb_py_dict__find(h, dict, name, &e);
	if (err)
		return err == -ENOENT ? HB_PY_UNKNOWN : HB_PY_UNREADABLE;
	plan->key = e.key;
	plan->index = (u16)e.index;
	*value = e.value;
	return e.value ? HB_PY_FOUND : HB_PY_NOT_SET;
}

static enum hb_py_found in_pointed_dict(const struct hb_py_heap *h, u64 object, s32 off, const char *name,
					u64 *value, struct hb_py_plan *plan)
{
	u64 dict;

	if (!hb_py_memory__word(h->pid, object + (u64)(s64)off, &dict))
		return HB_PY_UNREADABLE;
	return in_dict(h, dict, off, name, value, plan);
}

/* Values in the order of the keys that objects of the class share. */
static enum hb_py_found in_values(const struct hb_py_heap *h, u64 type, u64 values, const char *name,
				  u64 *value, struct hb_py_plan *plan)
{
	struct hb_py_entry e;
	u64 keys;
	int err;

	if (!hb_py_memory__word(h->pid, type + h->off.type_keys, &keys) || !keys)
		return HB_PY_UNREADABLE;
	err = hb_py_keys__find(h, keys, name, &e);
	if (err)
		return err == -ENOENT ? HB_PY_UNKNOWN : HB_PY_UNREADABLE;
	plan->key = e.key;
	plan->index = (u16)e.index;
	if (!hb_py_memory__word(h->pid, values + 8ULL * e.index, value))
		return HB_PY_UNREADABLE;
	return *value ? HB_PY_FOUND : HB_PY_NOT_SET;
}

/* An object that has a dict of its own, though others of its class keep values: where it is in those. */
static enum hb_py_found own_dict(const struct hb_py_heap *h, u64 type, u64 object, const char *name,
				 u64 *value, struct hb_py_plan *plan, struct hb_py_plan others)
{
	enum hb_py_found found = in_pointed_dict(h, object, hb_py_heap__managed(h), name, value, plan);
	struct hb_py_entry e;
	u64 keys;

	if (found != HB_PY_FOUND || !hb_py_memory__word(h->pid, type + h->off.type_keys, &keys) || !keys ||
	    hb_py_keys__find(h, keys, name, &e))
		return found;
	plan->how = others.how;
	plan->off = others.off;
	plan->index = (u16)e.index;
	return found;
}

static enum hb_py_found inline_values(const struct hb_py_heap *h, u64 type, u64 object, const char *name,
				      u64 *value, struct hb_py_plan *plan)
{
	u64 size;
	u8 valid;

	if (!hb_py_type__word(h, type, HB_PY_TP_BASICSIZE, &size) || size > 1u << 20 ||
	    hb_py_memory__read(h->pid, object + size + 3, &valid, 1))
		return HB_PY_UNREADABLE;
	*plan = (struct hb_py_plan){.how = HB_PY_HOW_INLINE, .off = (s32)size};
	if (!valid)
		return own_dict(h, type, object, name, value, plan, *plan);
	return in_values(h, type, object + size + 8, name, value, plan);
}

static enum hb_py_found managed_11(const struct hb_py_heap *h, u64 type, u64 object, const char *name,
				   u64 *value, struct hb_py_plan *plan)
{
	u64 values;

	if (!hb_py_memory__word(h->pid, object - 32, &values))
		return HB_PY_UNREADABLE;
	*plan = (struct hb_py_plan){.how = HB_PY_HOW_VALUES, .off = -32};
	if (!values)
		return own_dict(h, type, object, name, value, plan, *plan);
	return in_values(h, type, values, name, value, plan);
}

static enum hb_py_found managed_12(const struct hb_py_heap *h, u64 type, u64 object, const char *name,
				   u64 *value, struct hb_py_plan *plan)
{
	u64 either;

	if (!hb_py_memory__word(h->pid, object - 24, &either))
		return HB_PY_UNREADABLE;
	*plan = (struct hb_py_plan){.how = HB_PY_HOW_EITHER, .off = -24};
	if (!(either & 1))
		return own_dict(h, type, object, name, value, plan, *plan);
	return in_values(h, type, either + 1, name, value, plan);
}

/* The pointer to the dict, from the object's begin; of types whose objects differ in size from their end. */
static bool dict_offset(const struct hb_py_heap *h, u64 type, u64 object, s64 *off)
{
	u64 basic, item, n;

	if (!hb_py_type__word(h, type, HB_PY_TP_DICTOFFSET, (u64 *)off))
		return false;
	if (*off >= 0)
		return *off < 1 << 20;
	if (!hb_py_type__word(h, type, HB_PY_TP_BASICSIZE, &basic) ||
	    !hb_py_type__word(h, type, HB_PY_TP_ITEMSIZE, &item) ||
	    !hb_py_memory__word(h->pid, object + h->off.ob_size, &n))
		return false;
	n = (s64)n < 0 ? -n : n;
	if (basic > 1u << 20 || item > 1u << 20 || n > 1u << 28)
		return false;
	*off += (s64)((basic + n * item + 7) & ~7ULL);
	return *off > 0;
}

static enum hb_py_found in_object(const struct hb_py_heap *h, u64 type, u64 object, const char *name,
				  u64 *value, struct hb_py_plan *plan)
{
	u64 flags, fixed;
	enum hb_py_found found;
	s64 off;

	if (!hb_py_type__word(h, type, HB_PY_TP_FLAGS, &flags))
		return HB_PY_UNREADABLE;
	if (h->off.minor >= 13 && flags & HB_PY_FLAG_INLINE)
		return inline_values(h, type, object, name, value, plan);
	if (h->off.minor >= 11 && flags & HB_PY_FLAG_MANAGED) {
		if (h->off.minor == 11)
			return managed_11(h, type, object, name, value, plan);
		if (h->off.minor == 12)
			return managed_12(h, type, object, name, value, plan);
		return in_pointed_dict(h, object, hb_py_heap__managed(h), name, value, plan);
	}
	if (!dict_offset(h, type, object, &off))
		return HB_PY_UNREADABLE;
	if (!off)
		return HB_PY_UNKNOWN;
	found = in_pointed_dict(h, object, (s32)off, name, value, plan);
	/* Where it lies in objects of another size is another place. */
	if (hb_py_type__word(h, type, HB_PY_TP_DICTOFFSET, &fixed) && (s64)fixed < 0)
		plan->how = HB_PY_HOW_ASK;
	return found;
}

/* ---- both ---- */

static enum hb_py_found lookup(const struct hb_py_heap *h, u64 type, u64 object, const char *name, u64 *value,
			       struct hb_py_plan *plan)
{
	u64 descr = in_class(h, type, name), get;
	enum hb_py_found found;
	bool is_member = false;

	if (descr && is_data(h, descr, &is_member)) {
		if (is_member)
			return member(h, descr, object, value, plan);
		plan->how = HB_PY_HOW_NEVER;
		return HB_PY_COMPUTED;
	}
	found = in_object(h, type, object, name, value, plan);
	if (found == HB_PY_UNKNOWN)
		plan->how = HB_PY_HOW_ASK; /* another object may have it, or this one later */
	if (found == HB_PY_FOUND || found == HB_PY_UNREADABLE || !descr)
		return found;
	/* The class's own. It may be another one the next time, or the object may have got one. */
	plan->how = HB_PY_HOW_ASK;
	if (hb_py_type__word(h, hb_py_heap__type(h, descr), HB_PY_TP_DESCR_SET - 8, &get) && get)
		return HB_PY_COMPUTED;
	*value = descr;
	return HB_PY_FOUND;
}

enum hb_py_found hb_py_attribute__find(const struct hb_py_heap *h, u64 object, const char *name, u64 *value,
				       struct hb_py_plan *plan)
{
	u64 type = hb_py_heap__type(h, object);
	enum hb_py_found found;

	*value = 0;
	memset(plan, 0, sizeof(*plan));
	if (!type)
		return HB_PY_UNREADABLE;
	found = lookup(h, type, object, name, value, plan);
	/* Memory that was given to another object meanwhile shows here. */
	if (!hb_py_type__mark(h, type, &plan->mark) || hb_py_heap__type(h, object) != type)
		return HB_PY_UNREADABLE;
	return found;
}
