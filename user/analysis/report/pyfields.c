/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The table of fields of Python objects. */
#include "analysis/report/cells.h"

static void number(struct hb_table *t, const struct hb_field_stat *s, double v)
{
	if (s->numbers)
		hb_table__cell(t, "%.6g", v);
	else
		hb_table__cell(t, "-");
}

struct hb_table *hb_pytable__fields(const struct hb_window *w, const struct hb_model *m, u32 max, u32 *n)
{
	struct hb_table *t =
	    hb_table__new("pid>|field~|read>|min>|median>|max>|last>|different>|None>|no value>|late>");
	const struct hb_field_stat *const *s = hb_model__fields(m, n);

	for (u32 i = 0; i < *n && i < max; i++) {
		hb_table__cell(t, "%u", s[i]->proc->pid);
		hb_table__cell(t, "%s", hb_window__string(w, s[i]->field));
		hb_cell__count(t, s[i]->count);
		number(t, s[i], s[i]->min);
		number(t, s[i], s[i]->median);
		number(t, s[i], s[i]->max);
		number(t, s[i], s[i]->last);
		hb_cell__count_or_dash(t, s[i]->different);
		hb_cell__count_or_dash(t, s[i]->none);
		hb_cell__count_or_dash(t, s[i]->without);
		hb_cell__count_or_dash(t, s[i]->late);
	}
	return t;
}
