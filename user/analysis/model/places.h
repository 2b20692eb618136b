/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Places that threads sleep in, each once, by number. Inside of timelines. */
#ifndef HB_PLACES_H
#define HB_PLACES_H

#include "analysis/model/timeline.h"

struct hb_places {
	struct hb_tl_place *v; /* v[0]: all zero */
	u32 n, cap;
	u32 *slot; /* number; 0 free */
	u32 n_slots;
};

#define HB_PLACE_NONE UINT32_MAX

/* 0 or -ENOMEM. To be freed either way. */
int hb_places__init(struct hb_places *p);
void hb_places__free(struct hb_places *p);
/* The number of a place, a new one for what was not there yet. HB_PLACE_NONE: out of memory. */
u32 hb_places__number(struct hb_places *p, const struct hb_tl_place *x);
/* After the last one: what is needed for numbering is given back. */
void hb_places__finish(struct hb_places *p);
u64 hb_places__memory(const struct hb_places *p);

#endif
