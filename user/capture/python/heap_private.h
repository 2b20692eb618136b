/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Between the files that read objects. */
#ifndef HB_PYTHON_HEAP_PRIVATE_H
#define HB_PYTHON_HEAP_PRIVATE_H

#include "capture/python/heap.h"

/* Bytes of an object's head: what follows is the type's own (free-threaded builds have more in it). */
static inline u16 hb_py_heap__head(const struct hb_py_heap *h)
{
	return h->off.ob_type + 8;
}

/* Where a type's member is that lies at `off` in builds with a GIL. */
static inline u64 hb_py_heap__member(const struct hb_py_heap *h, u64 type, u16 off)
{
	return type + hb_py_heap__head(h) - 16 + off;
}

/* In the values of a split dict: the first one. */
static inline u16 hb_py_heap__values(const struct hb_py_heap *h)
{
	return h->off.minor >= 13 ? 8 : 0;
}

/* From an object to the pointer to its dict, where its type manages that (3.11+). */
static inline s32 hb_py_heap__managed(const struct hb_py_heap *h)
{
	return h->off.free_threaded ? -8 : -24;
}

/* Members of a type, in builds with a GIL. */
enum {
	HB_PY_TP_NAME = 24,
	HB_PY_TP_BASICSIZE = 32,
	HB_PY_TP_ITEMSIZE = 40,
	HB_PY_TP_FLAGS = 168,
	HB_PY_TP_DICT = 264,
	HB_PY_TP_DESCR_SET = 280,
	HB_PY_TP_DICTOFFSET = 288,
	HB_PY_TP_MRO = 344,
};
#define HB_PY_MRO_MAX 64

#define HB_PY_FLAG_INLINE  (1u << 2) /* 3.13+ */
#define HB_PY_FLAG_MANAGED (1u << 4) /* 3.11+ */
#define HB_PY_FLAG_LONG	   (1u << 24)
#define HB_PY_FLAG_LIST	   (1u << 25)
#define HB_PY_FLAG_TUPLE   (1u << 26)
#define HB_PY_FLAG_BYTES   (1u << 27)
#define HB_PY_FLAG_UNICODE (1u << 28)
#define HB_PY_FLAG_DICT	   (1u << 29)
#define HB_PY_FLAG_TYPE	   (1u << 31)

bool hb_py_type__word(const struct hb_py_heap *h, u64 type, u16 member, u64 *out);
/* By what it differs from another that came to lie there. */
bool hb_py_type__mark(const struct hb_py_heap *h, u64 type, u64 *mark);
/* tp_name, such as "Engine" or "collections.deque"; "" when unreadable. */
const char *hb_py_type__name(const struct hb_py_heap *h, u64 type, char *buf, size_t size);
/* Its classes in order of lookup; the number, 0 when unreadable. */
u32 hb_py_type__mro(const struct hb_py_heap *h, u64 type, u64 mro[HB_PY_MRO_MAX]);
/* Some class among them has this tp_name. */
bool hb_py_type__has_base(const struct hb_py_heap *h, u64 type, const char *name);

#endif
