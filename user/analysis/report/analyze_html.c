/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* An analysis as one page for a browser. */
#include "analysis/report/analyze_private.h"
#include "analysis/report/html/html.h"

struct page {
	const struct hb_analysis *a;
	const char *file;
};

static int put_json(void *ctx, FILE *out, struct hb_error *e)
{
	const struct page *p = ctx;

	return hb_analysis__json_rows(p->a, p->file, HB_HTML_ROWS, out, e);
}

int hb_analysis__html(const struct hb_analysis *a, const char *file, FILE *out, struct hb_error *e)
{
	struct page p = {a, file};
	struct hb_html h = {.w = a->w,
			    .m = a->m,
			    .host = a->h,
			    .devices = a->d,
			    .findings = a->f,
			    .longest = a->longest,
			    .title = file,
			    .analysis = put_json,
			    .ctx = &p};

	return hb_html__write(&h, out, e);
}
