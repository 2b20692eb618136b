/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <stdlib.h>

#include "analysis/report/analyze_private.h"

/* One pass over the window serves all that reads records. */
static int read_window(struct hb_analysis *a, struct hb_error *e)
{
	struct hb_devices_opts o = {.linked_only = a->o.linked_only};
	const struct hb_feed *feeds[1];

	a->d = hb_devices__new(a->w, &o, e);
	if (!a->d)
		return -1;
	feeds[0] = hb_devices__feed(a->d);
	a->m = hb_model__build_with(a->w, feeds, 1, e);
	return a->m ? hb_devices__finish(a->d, e) : -1;
}

struct hb_analysis *hb_analysis__new(struct hb_window *w, const struct hb_analysis_opts *o,
				     struct hb_error *e)
{
	struct hb_analysis *a = calloc(1, sizeof(*a));

	if (!a) {
		hb_error__nomem(e, "the analysis");
		return NULL;
	}
	a->w = w;
	a->o = o ? *o : (struct hb_analysis_opts){0};
	if (read_window(a, e)) {
		hb_analysis__free(a);
		return NULL;
	}
	a->verdict = hb_verdict__of(a->d);
	return a;
}

void hb_analysis__free(struct hb_analysis *a)
{
	if (!a)
		return;
	hb_devices__free(a->d);
	hb_model__free(a->m);
	free(a);
}
