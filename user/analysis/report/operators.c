/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Executions of operators, as a table and as members of a JSON document; docs/analyze-json.md. */
#include <errno.h>
#include <string.h>

#include "analysis/model/decode.h"
#include "analysis/report/analyze_private.h"
#include "analysis/report/cells.h"
#include "base/text.h"

static void put_row(struct hb_doc *d, const void *row)
{
	const struct hb_operator *r = row;

	hb_json__kstring(d->j, "name", hb_doc__str(d, r->name));
	hb_doc__known(d, "file", r->file);
	if (r->line)
		hb_json__ku64(d->j, "line", r->line);
	hb_json__kstring(d->j, "basis", hb_operator__basis(r->basis));
	hb_json__ku64(d->j, "pid", r->pid);
	hb_doc__dist(d, &r->host, HB_DOC_NS);
	hb_json__ku64(d->j, "launches", r->launches);
	hb_json__ku64(d->j, "waited_ns", r->waited_ns);
	if (!r->device.count)
		return;
	hb_json__kobject(d->j, "device");
	hb_json__ku64(d->j, "operations", r->operations);
	hb_json__ku64(d->j, "work_ns", r->device_ns);
	hb_doc__dist(d, &r->device, HB_DOC_NS);
	hb_json__end(d->j);
}

void hb_analysis__put_operators(const struct hb_analysis *a, struct hb_doc *d)
{
	const struct hb_operators_counts *c = hb_operators__counts(a->operators);
	u32 n = hb_operators__count(a->operators);

	hb_json__karray(d->j, "operators");
	for (u32 i = 0; i < hb_doc__shown(d, n); i++) {
		hb_json__object(d->j);
		put_row(d, hb_operators__at(a->operators, i));
		hb_json__end(d->j);
	}
	hb_json__end(d->j);
	hb_doc__left(d, "operators", n);
	hb_json__kobject(d->j, "operators_calls");
	hb_json__ku64(d->j, "calls", c->calls);
	hb_json__ku64(d->j, "without", c->without);
	hb_json__end(d->j);
}

static void row_cells(struct hb_table *t, const struct hb_analysis *a, const struct hb_operator *r)
{
	const char *file = r->file ? hb_window__string(a->w, r->file) : "", *base = strrchr(file, '/');
	const char *name = hb_window__string(a->w, r->name);

	hb_table__cell(t, "%u", r->pid);
	hb_cell__count(t, r->host.count);
	hb_cell__ns(t, r->host.total);
	hb_cell__ns(t, r->host.p50);
	hb_cell__ns(t, r->host.p95);
	hb_cell__count(t, r->launches);
	hb_cell__ns(t, r->waited_ns);
	if (r->device.count)
		hb_cell__ns(t, r->device_ns);
	else
		hb_table__cell(t, "-");
	if (*file)
		hb_table__cell(t, "%s (%s)", name, base ? base + 1 : file);
	else
		hb_table__cell(t, "%s", name);
}

int hb_analysis__print_operators(const struct hb_analysis *a, FILE *out, unsigned width, unsigned rows)
{
	const struct hb_operators_counts *c = hb_operators__counts(a->operators);
	u32 n = hb_operators__count(a->operators), show = rows && n > rows ? rows : n;
	char all[32], rest[32];
	struct hb_table *t;
	int rc;

	if (!n)
		return 0;
	t = hb_table__new("process>|executions>|host>|p50>|p95>|launches>|waited>|device>|operator~");
	for (u32 i = 0; i < show; i++)
		row_cells(t, a, hb_operators__at(a->operators, i));
	fprintf(out, "\nOperators: whose work the device did\n");
	rc = hb_table__print(t, out, width);
	if (n > show)
		fprintf(out, "  ... and %u more (--rows 0 shows all)\n", n - show);
	hb_analysis__wrap(
	    out, width, 2,
	    "  (host: from an execution's first call to the end of its last; waited: for the device, in "
	    "calls; device: lengths of all it launched%s)",
	    hb_devices__counts(a->d)->records ? "" : ", which was not recorded");
	if (c->without)
		hb_analysis__wrap(out, width, 2,
				  "  (%s of %s calls have no stack, or none with a function that is known)",
				  hb_text__count(rest, sizeof(rest), c->without),
				  hb_text__count(all, sizeof(all), c->calls));
	return rc;
}
