/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analysis/import/join.h"

static int fetch(struct hb_join_file *f, struct hb_item *i, struct hb_error *e)
{
	int more = hb_sorter__next(f->items, i, e);
	struct hb_rec_device *d = (void *)i->data;

	if (more <= 0)
		return more;
	i->begin += f->offset;
	if (i->type == HB_TYPE_device && d->queued)
		d->queued += (u64)f->offset;
	return more;
}

static bool before(const struct hb_item *a, const struct hb_item *b)
{
	return a->begin != b->begin ? a->begin < b->begin : a->dur > b->dur;
}

int hb_join__next(struct hb_join *m, struct hb_item *i, struct hb_error *e)
{
	struct hb_join_file *first = NULL;

	if (m->n == 1)
		return fetch(m->file, i, e);
	for (unsigned k = 0; k < m->n; k++) {
		struct hb_join_file *f = &m->file[k];

		if (!f->begun) {
			int more = fetch(f, &f->next, e);

			if (more < 0)
				return more;
			f->begun = true;
			f->has = more > 0;
		}
		if (f->has && (!first || before(&f->next, &first->next)))
			first = f;
	}
	if (!first)
		return 0;
	*i = first->next;
	first->begun = false;
	return 1;
}
