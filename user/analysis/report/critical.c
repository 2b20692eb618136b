/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The critical path that was asked for (--critical-path), as text and as JSON. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "analysis/report/analyze_private.h"
#include "analysis/report/cells.h"
#include "base/demangle.h"
#include "base/text.h"

int hb_analysis__find_critical(struct hb_analysis *a, struct hb_error *e)
{
	if (!a->o.critical)
		return 0;
	a->longest = hb_longest__build(hb_host__timeline(a->h), a->d, hb_host__steps(a->h), a->o.critical, e);
	return a->longest ? 0 : -ENOMEM;
}

static const char *what_of(const struct hb_analysis *a)
{
	const struct hb_longest_sum *s = hb_longest__sum(a->longest);

	return s->step ? "step" : s->of ? hb_window__string(a->w, s->of) : NULL;
}

/* ---- text ---- */

static void print_limits(const struct hb_longest_sum *s, FILE *out, unsigned width)
{
	if (!s->works)
		hb_analysis__wrap(out, width, 2,
				  "  No work of a device belongs to it: this is the host's part alone.");
	else if (!s->syncs)
		hb_analysis__wrap(
		    out, width, 2,
		    "  Waits for the device were not recorded: the path cannot go from a device back "
		    "to the host, and ends where it is longest on either.");
	if (s->forced)
		hb_analysis__wrap(
		    out, width, 2,
		    "  %u points in time were against each other and taken as they are: clocks differ, "
		    "or the window is damaged.",
		    s->forced);
}

/* "  host 1.8 ms, compute 30 ms, launch delay 6.8 us" */
static void print_parts(const struct hb_longest_sum *s, FILE *out)
{
	const char *between = "  ";
	char b[32];

	for (int i = 0; i < HB_CP_PARTS; i++) {
		if (!s->part[i])
			continue;
		fprintf(out, "%s%s %s", between, hb_cp_part__name(i), hb_text__ns(b, sizeof(b), s->part[i]));
		between = ", ";
	}
	if (s->length)
		fputc('\n', out);
}

int hb_analysis__print_critical(const struct hb_analysis *a, FILE *out, unsigned width, unsigned rows)
{
	const struct hb_longest_sum *s = a->longest ? hb_longest__sum(a->longest) : NULL;
	struct hb_cp_row *row;
	struct hb_table *t;
	char b[32], c[32], name[512];
	u32 n, show;
	int rc;

	if (!s)
		return 0;
	if (hb_longest__by_name(a->longest, &row, &n))
		return -ENOMEM;
	show = rows && n > rows ? rows : n;
	fputs("\nCritical path", out);
	if (what_of(a))
		fprintf(out, " of %s, number %u", what_of(a), a->o.critical->instance);
	else
		fputs(" of the window", out);
	fprintf(out, ", process %u: %s of %s\n", s->pid, hb_text__ns(b, sizeof(b), s->length),
		hb_text__ns(c, sizeof(c), s->end - s->begin));
	print_parts(s, out);
	t = hb_table__new("share>|time>|times>|part|what~");
	for (u32 i = 0; i < show; i++) {
		hb_cell__share(t, row[i].ns, s->length);
		hb_cell__ns(t, row[i].ns);
		hb_cell__count(t, row[i].links);
		hb_table__cell(t, "%s", hb_cp_part__name(row[i].part));
		hb_table__cell(t, "%s",
			       hb_demangle(hb_longest__name(a->longest, row[i].event), name, sizeof(name)));
	}
	rc = hb_table__print(t, out, width);
	free(row);
	if (n > show)
		fprintf(out, "  ... and %u more (--rows 0 shows all)\n", n - show);
	print_limits(s, out, width);
	fputs("  (the longest chain of operators, calls and device work that had to follow each other; time "
	      "of a "
	      "thread in none of\n  them is not in it)\n",
	      out);
	return rc;
}

/* ---- JSON ---- */

static void put_parts(struct hb_json *j, const struct hb_longest_sum *s)
{
	static const char *const keys[HB_CP_PARTS] = {"host_ns",   "compute_ns", "comm_ns",
						      "memcpy_ns", "launch_ns",	 "kernel_delay_ns"};

	hb_json__ku64(j, "length_ns", s->length);
	for (int i = 0; i < HB_CP_PARTS; i++)
		hb_json__ku64(j, keys[i], s->part[i]);
}

static void put_graph(struct hb_json *j, const struct hb_longest_sum *s)
{
	static const char *const keys[HB_LINK_KINDS] = {"span", "order", "launch", "kernel_delay", "sync"};

	hb_json__kobject(j, "graph");
	hb_json__ku64(j, "events", s->all_events);
	for (int i = 0; i < HB_LINK_KINDS; i++)
		hb_json__ku64(j, keys[i], s->all[i]);
	hb_json__ku64(j, "recorded_waits", s->syncs);
	hb_json__ku64(j, "forced_nodes", s->forced);
	hb_json__end(j);
}

static int put_names(const struct hb_analysis *a, struct hb_doc *d)
{
	struct hb_cp_row *row;
	u32 n;

	if (hb_longest__by_name(a->longest, &row, &n))
		return -ENOMEM;
	hb_json__karray(d->j, "by_name");
	for (u32 i = 0; i < hb_doc__shown(d, n); i++) {
		hb_json__object(d->j);
		hb_json__kstring(d->j, "name", hb_longest__name(a->longest, row[i].event));
		hb_json__kstring(d->j, "part", hb_cp_part__name(row[i].part));
		hb_json__ku64(d->j, "count", row[i].links);
		hb_json__ku64(d->j, "total_ns", row[i].ns);
		hb_json__end(d->j);
	}
	hb_json__end(d->j);
	hb_doc__left(d, "by_name", n);
	free(row);
	return 0;
}

/* A node of the path, and the link by which it is reached (NULL: the first). */
static void put_node(const struct hb_analysis *a, struct hb_json *j, u32 node, const struct hb_link *by)
{
	u32 n;
	const struct hb_cp_event *all = hb_longest__events(a->longest, &n), *e = &all[node / 2];
	const struct hb_device *v = e->device == HB_NONE ? NULL : hb_devices__at(a->d, e->device);

	hb_json__object(j);
	hb_json__kstring(j, "event", hb_longest__name(a->longest, node / 2));
	hb_json__kstring(j, "kind", hb_cp_what__name(e->what));
	hb_json__kstring(j, "at", node & 1 ? "end" : "begin");
	hb_json__ku64(j, "ts_ns", node & 1 ? e->end : e->begin);
	if (e->thread != HB_NONE)
		hb_json__ku64(j, "tid", hb_timeline__thread(hb_host__timeline(a->h), e->thread)->task->tid);
	if (v)
		hb_json__ku64(j, "device", v->number);
	if (by) {
		hb_json__kstring(j, "link", hb_link__name(by->kind));
		hb_json__kstring(
		    j, "part",
		    hb_cp_part__name(hb_link__part(by, by->owner == HB_NONE ? NULL : &all[by->owner])));
		hb_json__ku64(j, "ns", by->ns);
	}
	hb_json__end(j);
}

static void put_path(const struct hb_analysis *a, struct hb_doc *d)
{
	u32 n, nodes = hb_longest__sum(a->longest)->nodes;
	const struct hb_link *const *x = hb_longest__path(a->longest, &n);

	hb_json__karray(d->j, "path");
	for (u32 i = 0; n && i < hb_doc__shown(d, nodes); i++)
		put_node(a, d->j, i ? x[i - 1]->to : x[0]->from, i ? x[i - 1] : NULL);
	hb_json__end(d->j);
	hb_doc__left(d, "path", n ? nodes : 0);
}

int hb_analysis__put_critical(const struct hb_analysis *a, struct hb_doc *d)
{
	const struct hb_longest_sum *s = a->longest ? hb_longest__sum(a->longest) : NULL;

	if (!s)
		return 0;
	hb_json__kobject(d->j, "critical_path");
	if (what_of(a)) {
		hb_json__kstring(d->j, "of", what_of(a));
		hb_json__ku64(d->j, "instance", a->o.critical->instance);
	}
	hb_json__ku64(d->j, "pid", s->pid);
	hb_json__ku64(d->j, "begin_ns", s->begin);
	hb_json__ku64(d->j, "end_ns", s->end);
	put_parts(d->j, s);
	hb_json__ku64(d->j, "nodes", s->nodes);
	hb_json__ku64(d->j, "links", s->links);
	hb_json__ku64(d->j, "events", s->events);
	put_graph(d->j, s);
	if (put_names(a, d))
		return -ENOMEM;
	put_path(a, d);
	hb_json__end(d->j);
	return 0;
}
