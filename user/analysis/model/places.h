/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Places that threads sleep in, and what they call, each once, by number. Inside of timelines. */
#ifndef HB_PLACES_H
#define HB_PLACES_H

#include "analysis/model/timeline.h"

#define HB_PLACE_NONE UINT32_MAX

/* A table of things of one type, and
 *   name__init()    0 or -ENOMEM; to be freed either way
 *   name__number()  the number of a thing, a new one for what was not there yet. HB_PLACE_NONE: out of memory
 *   name__finish()  after the last one: what is needed for numbering is given back
 *   name__memory()  bytes
 */
#define HB_NUMBERED(name, type)                                                                              \
	struct name {                                                                                        \
		type *v; /* v[0]: all zero */                                                                \
		u32 n, cap;                                                                                  \
		u32 *slot; /* number; 0 free */                                                              \
		u32 n_slots;                                                                                 \
	};                                                                                                   \
	int name##__init(struct name *p);                                                                    \
	void name##__free(struct name *p);                                                                   \
	u32 name##__number(struct name *p, const type *x);                                                   \
	void name##__finish(struct name *p);                                                                 \
	u64 name##__memory(const struct name *p)

HB_NUMBERED(hb_places, struct hb_tl_place);
HB_NUMBERED(hb_callees, struct hb_tl_callee);

static inline bool hb_callee__same(const struct hb_tl_callee *a, const struct hb_tl_callee *b)
{
	return !((a->handle ^ b->handle) | (a->stream ^ b->stream) | (a->probe ^ b->probe) |
		 (a->kind ^ b->kind));
}

#endif
