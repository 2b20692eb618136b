/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What becomes records, sorted by time: in memory, or in runs on disk where there is more than that. */
#ifndef HB_IMPORT_SORT_H
#define HB_IMPORT_SORT_H

#include "base/error.h"
#include "schema/schema.h"

/* One record to be. Names, locations, probes and tasks in it are numbers of the import's own tables (names.h,
 * tasks.h); they are translated when it is written. */
struct hb_item {
	s64 begin; /* ns as in the trace */
	u64 dur;
	u32 frame; /* device: number of a process when it is known; else: location as a frame of stacks, 0 =
		      none */
	u32 task;
	u32 order; /* made by the sorter: equal keys stay in the order of adding */
	u8 type;   /* HB_TYPE_*: what `data` is */
	u8 source; /* file it is from: 0, 1, .. */
	u16 size;  /* of the whole item, a multiple of 8 */
	u64 data[14];
};
#define HB_ITEM_HEAD 32
_Static_assert(sizeof(struct hb_item) == HB_ITEM_HEAD + 112 && sizeof(struct hb_rec_device) <= 112,
	       "hb_item");

/* An item of this type, all zero but for type and size. */
void hb_item__init(struct hb_item *i, unsigned type);
static inline s64 hb_item__end(const struct hb_item *i)
{
	return i->begin + (s64)i->dur;
}

enum hb_sort_key {
	HB_SORT_BEGIN, /* of equal begins the longer first: what contains comes before what is contained */
	HB_SORT_END,
};

struct hb_sorter;

/* `memory`: bytes of items kept before a run goes to disk; `folder`: where its file is made (it has no name
 * there). NULL: out of memory. */
struct hb_sorter *hb_sorter__new(enum hb_sort_key key, size_t memory, const char *folder);
void hb_sorter__free(struct hb_sorter *s); /* NULL is fine */

int hb_sorter__add(struct hb_sorter *s, const struct hb_item *i, struct hb_error *e);
u64 hb_sorter__count(const struct hb_sorter *s);
bool hb_sorter__on_disk(const struct hb_sorter *s);
/* Earliest begin and latest end of all items; false when there are none. */
bool hb_sorter__range(const struct hb_sorter *s, s64 *begin, s64 *end);

/* Ends adding. */
int hb_sorter__sort(struct hb_sorter *s, struct hb_error *e);
/* Items in order: 1, 0 at the end, -errno. */
int hb_sorter__next(struct hb_sorter *s, struct hb_item *i, struct hb_error *e);

#endif
