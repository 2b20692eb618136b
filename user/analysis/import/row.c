/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analysis/import/row.h"

#include <string.h>

static const struct word {
	const char *word;
	u8 n, col;
} members[] =
    {
#define W(word, col)                                                                                         \
	{                                                                                                    \
		word, sizeof(word) - 1, col                                                                  \
	}
	W("ph", HB_COL_PH),   W("cat", HB_COL_CAT), W("name", HB_COL_NAME), W("pid", HB_COL_PID),
	W("tid", HB_COL_TID), W("ts", HB_COL_TS),   W("dur", HB_COL_DUR),   W("args", HB_COL_ARGS),
},
  args[] = {
      W("correlation", HB_ARG_CORRELATION),
      W("External id", HB_ARG_EXTERNAL),
      W("external id", HB_ARG_EXTERNAL),
      W("Sequence number", HB_ARG_SEQUENCE),
      W("stream", HB_ARG_STREAM),
      W("device", HB_ARG_DEVICE),
      W("context", HB_ARG_CONTEXT),
      W("bytes", HB_ARG_BYTES),
      W("grid", HB_ARG_GRID),
      W("block", HB_ARG_BLOCK),
      W("registers per thread", HB_ARG_REGS),
      W("shared memory", HB_ARG_SHM),
      W("queued", HB_ARG_QUEUED),
      W("graph id", HB_ARG_GRAPH),
      W("graph node id", HB_ARG_NODE),
      W("kind", HB_ARG_KIND),
      W("wait_on_cuda_event_record_corr_id", HB_ARG_WAITS),
      W("wait_on_stream", HB_ARG_WSTREAM),
      W("cuda_sync_kind", HB_ARG_SYNC),
      W("Input Dims", HB_ARG_DIMS),
      W("Input dims", HB_ARG_DIMS),
      W("Input type", HB_ARG_TYPES),
      W("Concrete Inputs", HB_ARG_VALUES),
      W("Collective name", HB_ARG_COLLECTIVE),
      W("In msg nelems", HB_ARG_IN),
      W("Out msg nelems", HB_ARG_OUT),
      W("Group size", HB_ARG_RANKS),
      W("dtype", HB_ARG_DTYPE),
      W("Process Group Name", HB_ARG_GROUP),
      W("Seq", HB_ARG_SEQ),
      W("name", HB_ARG_NAME),
      W("labels", HB_ARG_LABELS),
      W("api", HB_ARG_API),
      W("class", HB_ARG_CLASS),
      W("ret", HB_ARG_RET),
};

#define N_ELEMS(a) (sizeof(a) / sizeof(*(a)))
#define SLOTS	   (sizeof(((struct hb_columns *)0)->slot))

/* First, middle and last letter and the length tell these words apart well enough. */
static size_t slot_of(const char *s, size_t n)
{
	return ((unsigned char)s[0] * 7u + (unsigned char)s[n - 1] * 31u + (unsigned char)s[n / 2] * 3u + n) %
	       SLOTS;
}

void hb_columns__init(struct hb_columns *c)
{
	_Static_assert(N_ELEMS(args) < SLOTS / 2, "room between the words");

	memset(c, 0, sizeof(*c));
	for (size_t i = 0; i < N_ELEMS(args); i++) {
		size_t at = slot_of(args[i].word, args[i].n);

		while (c->slot[at])
			at = (at + 1) % SLOTS;
		c->slot[at] = (u8)(i + 1);
	}
}

static bool same(const struct word *w, struct hb_piece key)
{
	return w->n == key.n && memcmp(w->word, key.s, key.n) == 0;
}

enum hb_col hb_columns__find(const struct hb_columns *c, struct hb_piece key, bool in_args)
{
	if (!key.n)
		return HB_COL_NONE;
	for (size_t i = 0; !in_args && i < N_ELEMS(members); i++)
		if (same(&members[i], key))
			return members[i].col;
	if (!in_args)
		return HB_COL_NONE;
	for (size_t at = slot_of(key.s, key.n); c->slot[at]; at = (at + 1) % SLOTS)
		if (same(&args[c->slot[at] - 1], key))
			return args[c->slot[at] - 1].col;
	return HB_COL_NONE;
}

bool hb_row__int(const struct hb_row *r, enum hb_col c, s64 *out)
{
	const struct hb_cell *cell = &r->cell[c];

	return (cell->kind == HB_CELL_NUMBER || cell->kind == HB_CELL_STRING) &&
	       hb_text__decimal(cell->text, 0, out);
}

u64 hb_row__u64(const struct hb_row *r, enum hb_col c)
{
	s64 v;

	return hb_row__int(r, c, &v) && v > 0 ? (u64)v : 0;
}

u32 hb_row__u32(const struct hb_row *r, enum hb_col c)
{
	u64 v = hb_row__u64(r, c);

	return v > UINT32_MAX ? 0 : (u32)v;
}
