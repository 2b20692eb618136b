/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/patterns/settle.h"
#include "analysis/report/analyze_private.h"

static struct hb_roofline *new_roofline(struct hb_analysis *a, struct hb_error *e)
{
	struct hb_roofline_opts o = {0};

	if (a->o.roofline)
		return hb_roofline__new(a->w, a->o.roofline, e);
	a->peaks = hb_peaks__new();
	if (!a->peaks || hb_peaks__add_builtin(a->peaks, e))
		return NULL;
	o.peaks = a->peaks;
	return hb_roofline__new(a->w, &o, e);
}

/* One pass over the window serves all that read records. */
static int read_window(struct hb_analysis *a, struct hb_error *e)
{
	struct hb_devices_opts o = {.linked_only = a->o.linked_only};
	const struct hb_feed *feeds[3];
	int rc;

	a->d = hb_devices__new(a->w, &o, e);
	a->h = a->d ? hb_host__new(a->w, e) : NULL;
	a->roofline = a->h ? new_roofline(a, e) : NULL;
	if (!a->roofline)
		return -ENOMEM;
	feeds[0] = hb_devices__feed(a->d);
	feeds[1] = hb_host__feed(a->h);
	feeds[2] = hb_roofline__feed(a->roofline);
	a->m = hb_model__build_with(a->w, feeds, 3, e);
	rc = a->m ? hb_devices__finish(a->d, e) : -ENOMEM;
	rc = rc ? rc : hb_roofline__finish(a->roofline, a->d, e);
	rc = rc ? rc : hb_host__finish(a->h, a->d, e);
	if (!rc)
		a->operators = hb_operators__build(hb_host__timeline(a->h), a->d, e);
	return a->operators ? 0 : -ENOMEM;
}

static int look_for_patterns(struct hb_analysis *a, struct hb_error *e)
{
	struct hb_patterns_input in = {
	    .window = a->w, .model = a->m, .host = a->h, .devices = a->d, .roofline = a->roofline};

	a->f = hb_patterns__run(&in, a->o.thresholds, e);
	return a->f ? 0 : -ENOMEM;
}

static int judge(struct hb_analysis *a, struct hb_error *e)
{
	struct hb_patterns_input in = {.window = a->w, .model = a->m};
	struct hb_verdict_input v = {
	    .devices = a->d, .host = a->h, .findings = a->f, .wall = hb_model__totals(a->m)->wall_ns};

	if (hb_patterns__load(&in, &v.load))
		return hb_error__nomem(e, "the engine's fields");
	a->load = v.load;
	a->verdict = hb_verdict__of(&v);
	return 0;
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
	if (read_window(a, e) || look_for_patterns(a, e) || judge(a, e) || hb_analysis__find_critical(a, e)) {
		hb_analysis__free(a);
		return NULL;
	}
	return a;
}

/* Work that began before it was asked for: then gaps and delays are not what they seem. */
static bool clocks_disagree(const struct hb_analysis *a, char *buf, size_t size)
{
	u64 early = 0, linked = 0;
	const struct hb_device *v;

	for (u32 i = 0; (v = hb_devices__at(a->d, i)); i++) {
		early += v->early;
		linked += v->linked;
	}
	if (early * 100 <= linked)
		return false;
	snprintf(
	    buf, size,
	    "%llu of %llu operations of devices began before the calls that launched them: the clocks of "
	    "calls and "
	    "devices disagree, or numbers recur; what is said of gaps and launches is not to be relied on",
	    (unsigned long long)early, (unsigned long long)linked);
	return true;
}

/* What in the traced processes cost most. */
static const struct hb_price_stat *dearest(const struct hb_analysis *a)
{
	u32 n;
	const struct hb_price_stat *const *p = hb_model__prices(a->m, &n); /* by cost */

	for (u32 i = 0; i < n; i++)
		if (p[i]->targets)
			return p[i];
	return NULL;
}

/* Its name, and the option that makes it cheaper; false: none does. */
static bool remedy(const struct hb_analysis *a, const struct hb_price_stat *p, const char **name, char *buf,
		   size_t size)
{
	static const struct {
		const char *begins, *option;
	} hooks[] = {{"py_event", "--exceptions off"}, {"pycall", "fewer functions in --calls and --field"}};

	*name = hb_window__string(a->w, p->row ? p->row->name : p->hook);
	if (p->row)
		snprintf(buf, size, "--stacks-every %s=100", hb_word(HB_WORDS_CLASS, p->row->cls));
	for (size_t i = 0; !p->row && i < sizeof(hooks) / sizeof(*hooks); i++)
		if (!strncmp(*name, hooks[i].begins, strlen(hooks[i].begins)))
			snprintf(buf, size, "%s", hooks[i].option);
	return *buf;
}

bool hb_analysis__caution(const struct hb_analysis *a, char *buf, size_t size)
{
	const struct hb_totals *t = hb_model__totals(a->m);
	double part = t->wall_ns ? 100.0 * (double)t->probe_cost_ns / (double)t->wall_ns : 0;
	const struct hb_price_stat *most = dearest(a);
	char option[64] = "";
	const char *name;
	int n;

	if (part < HB_CAUTION_COST)
		return clocks_disagree(a, buf, size);
	n = snprintf(
	    buf, size,
	    "recording took %.1f %% of one core inside of what is traced, so steps were longer than they are "
	    "without it, and findings hold that time, too",
	    part);
	if (most && remedy(a, most, &name, option, sizeof(option)) && (size_t)n < size)
		snprintf(buf + n, size - (size_t)n, "; dearest was %s with %.1f %%, which %s makes cheaper",
			 name, 100.0 * (double)most->cost_ns / (double)t->wall_ns, option);
	return true;
}

void hb_analysis__free(struct hb_analysis *a)
{
	if (!a)
		return;
	hb_longest__free(a->longest);
	hb_findings__free(a->f);
	hb_operators__free(a->operators);
	hb_roofline__free(a->roofline);
	hb_peaks__free(a->peaks);
	hb_host__free(a->h);
	hb_devices__free(a->d);
	hb_model__free(a->m);
	free(a);
}

struct hb_planfile *hb_analysis__plan(const struct hb_analysis *a, const char *file, u32 *n_open,
				      struct hb_error *e)
{
	struct hb_settle_input in = {
	    .window = a->w, .file = file, .model = a->m, .findings = a->f, .n_open = n_open};

	return hb_settle__plan(&in, e);
}
