/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Types of another process's CPython. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "capture/python/heap_private.h"
#include "capture/python/memory.h"
#include "capture/python/objects.h"

void hb_py_heap__layout(const struct hb_py_heap *h, struct hb_py_heap_layout *out)
{
	const struct hb_py_offsets *o = &h->off;

	*out = (struct hb_py_heap_layout){
	    .cell_type = h->cell_type,
	    .head = hb_py_heap__head(h),
	    .ob_type = o->ob_type,
	    .locals = o->frame_locals,
	    .str_state = o->str_state,
	    .str_length = o->str_length,
	    .str_ascii = o->str_ascii,
	    .str_compact = o->str_compact,
	    .managed = hb_py_heap__managed(h),
	    .str_kind_bit = (u8)o->str_kind_bit,
	    .old_keys = o->minor <= 10,
	    .values_at = (u8)hb_py_heap__values(h),
	    .tagged_int = o->minor >= 12,
	    .tag = o->walk.tag,
	    .type_keys = o->type_keys,
	};
}

u64 hb_py_heap__type(const struct hb_py_heap *h, u64 object)
{
	u64 type;

	return object && hb_py_memory__word(h->pid, object + h->off.ob_type, &type) ? type : 0;
}

bool hb_py_type__word(const struct hb_py_heap *h, u64 type, u16 member, u64 *out)
{
	*out = 0;
	return hb_py_memory__word(h->pid, hb_py_heap__member(h, type, member), out);
}

bool hb_py_type__mark(const struct hb_py_heap *h, u64 type, u64 *mark)
{
	u64 name, text;

	if (!hb_py_type__word(h, type, HB_PY_TP_NAME, &name))
		return false;
	if (!hb_py_memory__word(h->pid, name, &text))
		text = 0;
	*mark = hb_py_type_mark(name, text);
	return true;
}

const char *hb_py_type__name(const struct hb_py_heap *h, u64 type, char *buf, size_t size)
{
	u64 at;
	long n;

	buf[0] = 0;
	if (!hb_py_type__word(h, type, HB_PY_TP_NAME, &at) || !at)
		return buf;
	n = hb_py_memory__some(h->pid, at, buf, size - 1);
	buf[n > 0 ? n : 0] = 0;
	return hb_text__clean(buf);
}

u32 hb_py_type__mro(const struct hb_py_heap *h, u64 type, u64 mro[HB_PY_MRO_MAX])
{
	u64 tuple, n;

	if (!hb_py_type__word(h, type, HB_PY_TP_MRO, &tuple) || !tuple ||
	    !hb_py_memory__word(h->pid, tuple + h->off.ob_size, &n))
		return 0;
	n = n < HB_PY_MRO_MAX ? n : HB_PY_MRO_MAX;
	return hb_py_memory__read(h->pid, tuple + h->off.tuple_items, mro, n * sizeof(*mro)) ? 0 : (u32)n;
}

bool hb_py_type__has_base(const struct hb_py_heap *h, u64 type, const char *name)
{
	u64 mro[HB_PY_MRO_MAX];
	u32 n = hb_py_type__mro(h, type, mro);
	char buf[128];

	for (u32 i = 0; i < n; i++)
		if (strcmp(hb_py_type__name(h, mro[i], buf, sizeof(buf)), name) == 0)
			return true;
	return false;
}

const char *hb_py_heap__class(const struct hb_py_heap *h, u64 type, char *buf, size_t size)
{
	char name[128], module[HB_PY_TEXT_SIZE];
	struct hb_py_entry e;
	u64 dict;

	hb_py_type__name(h, type, name, sizeof(name));
	snprintf(buf, size, "%s", *name ? name : "?");
	if (strchr(name, '.') || !hb_py_type__word(h, type, HB_PY_TP_DICT, &dict) || !dict ||
	    hb_py_dict__find(h, dict, "__module__", &e) || !e.value ||
	    hb_py_object__text(h->pid, &h->off, e.value, module, sizeof(module)))
		return buf;
	snprintf(buf, size, "%.120s.%s", module, name);
	return buf;
}
