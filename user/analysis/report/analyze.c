/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>

#include "analysis/patterns/settle.h"
#include "analysis/report/analyze_private.h"

/* One pass over the window serves all that read records. */
static int read_window(struct hb_analysis *a, struct hb_error *e)
{
	struct hb_devices_opts o = {.linked_only = a->o.linked_only};
	const struct hb_feed *feeds[2];
	int rc;

	a->d = hb_devices__new(a->w, &o, e);
	a->h = a->d ? hb_host__new(a->w, e) : NULL;
	if (!a->h)
		return -ENOMEM;
	feeds[0] = hb_devices__feed(a->d);
	feeds[1] = hb_host__feed(a->h);
	a->m = hb_model__build_with(a->w, feeds, 2, e);
	rc = a->m ? hb_devices__finish(a->d, e) : -ENOMEM;
	return rc ? rc : hb_host__finish(a->h, a->d, e);
}

static int look_for_patterns(struct hb_analysis *a, struct hb_error *e)
{
	struct hb_patterns_input in = {.window = a->w, .model = a->m, .host = a->h, .devices = a->d};

	a->f = hb_patterns__run(&in, a->o.thresholds, e);
	return a->f ? 0 : -ENOMEM;
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
	if (read_window(a, e) || look_for_patterns(a, e)) {
		hb_analysis__free(a);
		return NULL;
	}
	a->verdict = hb_verdict__of(a->d, a->h, a->f);
	return a;
}

void hb_analysis__free(struct hb_analysis *a)
{
	if (!a)
		return;
	hb_findings__free(a->f);
	hb_host__free(a->h);
	hb_devices__free(a->d);
	hb_model__free(a->m);
	free(a);
}

struct hb_planfile *hb_analysis__plan(const struct hb_analysis *a, const char *file, struct hb_error *e)
{
	struct hb_settle_input in = {.window = a->w, .file = file, .model = a->m, .findings = a->f};

	return hb_settle__plan(&in, e);
}
