/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which records a window has: what it has none of cannot be told from "none occurred" unless something else
 * says so. */
#include "analysis/patterns/needs.h"

#include <string.h>

const char *hb_need__text(u64 need)
{
#define NEED_TEXT(name, text) text,
	static const char *const texts[] = {HB_NEEDS(NEED_TEXT)};

	return need ? texts[__builtin_ctzll(need)] : "";
}

static bool any_python(const struct hb_window *w)
{
	const struct hb_loc *l;

	for (u32 id = 1; (l = hb_window__loc(w, id)) != NULL; id++)
		if (l->lang == HB_LANG_PYTHON)
			return true;
	return false;
}

/* A program of the tool that ran, by the begin of its name. */
static bool ran(const struct hb_scene *s, const char *name)
{
	u32 n;
	const struct hb_price_stat *const *p = hb_model__prices(s->m, &n);

	for (u32 i = 0; i < n; i++)
		if (!p[i]->row && strncmp(hb_window__string(s->w, p[i]->hook), name, strlen(name)) == 0)
			return true;
	return false;
}

static u64 of_calls(const struct hb_scene *s)
{
	u64 has = 0;

	for (u32 t = 0; t < hb_timeline__threads(s->tl); t++) {
		u32 n;
		const struct hb_tl_call *c = hb_timeline__calls(s->tl, t, &n);

		for (u32 i = 0; i < n && !(has & HB_NEED_LAUNCH_NS); i++)
			if ((c[i].op == HB_OP_LAUNCH || c[i].op == HB_OP_GRAPH) &&
			    c[i].at.end > c[i].at.begin)
				has |= HB_NEED_LAUNCH_NS;
		if (n)
			has |= HB_NEED_ACCEL;
	}
	return has;
}

/* Loads of modules are probed when their rows are in the plan. */
static bool sees_modules(const struct hb_window *w)
{
	for (u32 i = 1; i <= hb_window__probes(w); i++) {
		const struct hb_probe_row *r = hb_window__probe(w, i);
		const char *name = r ? hb_window__string(w, r->name) : "";

		if (strstr(name, "ModuleLoad") || strstr(name, "LibraryLoad"))
			return true;
	}
	return false;
}

static bool has_steps(const struct hb_scene *s)
{
	for (u32 i = 0; i < hb_steps__series(s->steps); i++)
		if (hb_steps__at(s->steps, i)->n)
			return true;
	return false;
}

static u64 of_python(const struct hb_scene *s)
{
	const char *mode = hb_window__meta(s->w, "python");
	bool python = any_python(s->w), watched = python && mode && strcmp(mode, "off") != 0;
	u64 has = python ? HB_NEED_STACK : 0;

	if (hb_timeline__count(s->tl, HB_TL_PYCALL))
		has |= HB_NEED_PYCALL;
	if (hb_timeline__count(s->tl, HB_TL_GIL) || (watched && hb_timeline__count(s->tl, HB_TL_SLEEP)))
		has |= HB_NEED_GIL;
	if (hb_timeline__count(s->tl, HB_TL_GC) || ran(s, "py_event"))
		has |= HB_NEED_GC;
	if (hb_timeline__count(s->tl, HB_TL_RAISE) || ran(s, "py_event"))
		has |= HB_NEED_EXCEPTION;
	return has;
}

/* Sizes, and peaks to hold them against. */
static bool has_light(const struct hb_scene *s)
{
	u32 n = 0, i = 0;
	const struct hb_roof_row *r = s->roofline ? hb_roofline__rows(s->roofline, &n) : NULL;

	while (i < n && !(r[i].light_ns > 0))
		i++;
	return i < n;
}

static bool ranks_on_devices(const struct hb_scene *s)
{
	for (u32 i = 0; i < hb_collectives__groups(s->coll); i++)
		if (hb_collectives__at(s->coll, i)->source == HB_COLL_DEVICE)
			return true;
	return false;
}

u64 hb_needs__present(const struct hb_scene *s)
{
	u64 has = of_calls(s) | of_python(s);
	u32 fields;
	const struct {
		u64 need;
		bool there;
	} more[] = {
	    {HB_NEED_DEVICE, s->dev && hb_devices__count(s->dev) > 0},
	    {HB_NEED_SLEEP, hb_timeline__count(s->tl, HB_TL_SLEEP) > 0},
	    {HB_NEED_SAMPLE, hb_timeline__count(s->tl, HB_TL_SAMPLE) > 0},
	    {HB_NEED_SYSCALL, hb_timeline__count(s->tl, HB_TL_SYSCALL) > 0},
	    {HB_NEED_STEP, has_steps(s)},
	    {HB_NEED_RANKS, hb_collectives__groups(s->coll) > 0},
	    {HB_NEED_RANK_DEVICES, ranks_on_devices(s)},
	    {HB_NEED_MODULE, sees_modules(s->w)},
	    {HB_NEED_SHAPES, has_light(s)},
	};

	for (size_t i = 0; i < sizeof(more) / sizeof(*more); i++)
		has |= more[i].there ? more[i].need : 0;
	hb_model__fields(s->m, &fields);
	return has | (fields ? HB_NEED_FIELD : 0);
}
