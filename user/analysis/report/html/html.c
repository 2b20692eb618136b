/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analysis/report/html/html.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/report/doc.h"
#include "analysis/report/html/embedded.h"
#include "analysis/report/html/private.h"
#include "base/buf.h"
#include "base/text.h"

/* ---- text into markup ---- */

/* A file whose every '<' is written as \u003c: inside of JSON that is the same text, and nothing in it can
 * end the island it lies in, or begin a comment. */
static ssize_t write_island(void *cookie, const char *s, size_t n)
{
	FILE *out = cookie;
	size_t from = 0;

	for (size_t i = 0; i <= n; i++) {
		if (i < n && s[i] != '<')
			continue;
		if (i > from && fwrite(s + from, 1, i - from, out) != i - from)
			return 0;
		if (i < n && fputs("\\u003c", out) < 0)
			return 0;
		from = i + 1;
	}
	return (ssize_t)n;
}

static void put_text(FILE *out, const char *s)
{
	for (; *s; s++) {
		const char *entity = *s == '<'	 ? "&lt;"
				     : *s == '>' ? "&gt;"
				     : *s == '&' ? "&amp;"
				     : *s == '"' ? "&quot;"
						 : NULL;

		if (entity)
			fputs(entity, out);
		else
			fputc(*s, out);
	}
}

/* ---- islands ---- */

struct island {
	const char *id;
	int (*put)(const struct hb_html *h, FILE *out, struct hb_error *e);
};

static int put_analysis(const struct hb_html *h, FILE *out, struct hb_error *e)
{
	return h->analysis(h->ctx, out, e);
}

static int put_tables(const struct hb_html *h, FILE *out, struct hb_error *e)
{
	struct hb_doc d = {.w = h->w,
			   .m = h->m,
			   .j = hb_json__new(out, false),
			   .wall = hb_model__totals(h->m)->wall_ns,
			   .max = HB_HTML_ROWS};

	if (!d.j)
		return -ENOMEM;
	hb_json__object(d.j);
	hb_doc__tables(&d);
	hb_json__end(d.j);
	return hb_json__free(d.j);
}

static void set_bounds(struct hb_page *p)
{
	const struct hb_window_info *i = hb_window__info(p->in->w);

	p->start = i->start_ts;
	p->end = i->end_ts;
	if (p->in->host) {
		p->start = hb_timeline__start(hb_host__timeline(p->in->host));
		p->end = hb_timeline__end(hb_host__timeline(p->in->host));
	}
	if (p->end <= p->start)
		p->end = p->start + 1;
}

static int put_timeline(const struct hb_html *h, FILE *out, struct hb_error *e)
{
	struct hb_page p = {.in = h, .j = hb_json__new(out, false), .labels = hb_labels__new()};
	int rc = -ENOMEM, err;

	(void)e;
	set_bounds(&p);
	if (p.j && p.labels) {
		hb_json__object(p.j);
		rc = hb_page__timeline(&p);
		rc = rc ? rc : hb_page__flames(&p);
		hb_labels__put(p.labels, p.j, "names");
		rc = rc ? rc : hb_labels__oom(p.labels) ? -ENOMEM : 0;
		hb_json__end(p.j);
	}
	err = p.j ? hb_json__free(p.j) : 0;
	hb_labels__free(p.labels);
	return rc ? rc : err;
}

static int put_island(const struct hb_html *h, const struct island *i, FILE *out, struct hb_error *e)
{
	FILE *safe;
	int rc;

	fprintf(out, "<script type=\"application/json\" id=\"%s\">", i->id);
	safe = fopencookie(out, "w", (cookie_io_functions_t){.write = write_island});
	if (!safe)
		return -ENOMEM;
	rc = i->put(h, safe, e);
	if (fclose(safe) && !rc)
		rc = errno ? -errno : -EIO;
	fputs("</script>\n", out);
	return rc;
}

static int put_islands(const struct hb_html *h, FILE *out, struct hb_error *e)
{
	static const struct island islands[] = {
	    {"analysis", put_analysis}, {"tables", put_tables}, {"timeline", put_timeline}};
	int rc = 0;

	for (size_t i = 0; !rc && i < sizeof(islands) / sizeof(*islands); i++)
		rc = put_island(h, &islands[i], out, e);
	return rc;
}

/* ---- the page ---- */

static void put_blob(FILE *out, const struct hb_blob *b)
{
	fwrite(b->text, 1, (size_t)(b->end - b->text), out);
}

/* No network, no frames, no forms, no script but ours. */
static void put_policy(FILE *out)
{
	fprintf(out,
		"default-src 'none'; script-src 'sha256-%s'; style-src 'sha256-%s'; base-uri 'none'; "
		"form-action 'none'",
		hb_html_script.sha256, hb_html_style.sha256);
}

/* A place in page.html: {{name}}. */
static int put_place(const struct hb_html *h, const char *name, size_t n, FILE *out, struct hb_error *e)
{
	if (n == 5 && !memcmp(name, "title", n))
		put_text(out, h->title ? h->title : "window");
	else if (n == 6 && !memcmp(name, "policy", n))
		put_policy(out);
	else if (n == 5 && !memcmp(name, "style", n))
		put_blob(out, &hb_html_style);
	else if (n == 6 && !memcmp(name, "script", n))
		put_blob(out, &hb_html_script);
	else if (n == 7 && !memcmp(name, "islands", n))
		return put_islands(h, out, e);
	else
		return -EINVAL;
	return 0;
}

int hb_html__write(const struct hb_html *h, FILE *out, struct hb_error *e)
{
	const char *s = hb_html_page.text, *end = hb_html_page.end;
	int rc = 0;

	while (s < end && !rc) {
		const char *open = memmem(s, (size_t)(end - s), "{{", 2), *close;

		if (!open)
			open = end;
		fwrite(s, 1, (size_t)(open - s), out);
		close = open < end ? memmem(open, (size_t)(end - open), "}}", 2) : NULL;
		if (!close)
			break;
		rc = put_place(h, open + 2, (size_t)(close - open) - 2, out, e);
		s = close + 2;
	}
	if (rc == -ENOMEM)
		return hb_error__nomem(e, "the page");
	return rc ? rc : ferror(out) ? -EIO : 0;
}
