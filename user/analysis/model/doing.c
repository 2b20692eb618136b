/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analysis/model/doing.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/model/decode.h"
#include "analysis/model/rows.h"
#include "base/text.h"

/* What a function is, by its name; kept for each location. */
enum { ASKED = 1, BUILT_IN = 2, WAITS = 4 };

struct hb_doing {
	const struct hb_timeline *tl;
	struct hb_window *w;
	struct hb_rows rows; /* struct hb_did, by location */
	struct hb_map *kind; /* location -> bits */
	struct hb_doing_sum sum;
};

/* ---- functions that wait ---- */

/* By module and (last part of the) name; a module of NULL is one that Python has built in. */
static const struct {
	const char *module, *func;
} waiting[] = {
    {"queue", "get"},
    {"queues", "get"},
    {"multiprocessing.queues", "get"},
    {"threading", "wait"},
    {"threading", "join"},
    {"selectors", "select"},
    {"multiprocessing.connection", "recv*"},
    {"multiprocessing.connection", "poll"},
    {"multiprocessing.connection", "wait"},
    {"connection", "recv*"},
    {"connection", "poll"},
    {"connection", "wait"},
    {"socket", "recv*"},
    {"socket", "accept"},
    {"zmq*", "recv*"},
    {"zmq*", "poll"},
    {"poll", "poll"},
    {NULL, "acquire of *lock*"},
    {NULL, "poll of select.*"},
    {NULL, "recv* of *"},
    {NULL, "accept of *"},
    {NULL, "get of *Queue*"},
    {NULL, "select"},
    {NULL, "sleep"},
};

#define BUILT_IN_BEGIN "<built-in "

/* "<built-in method get of _queue.SimpleQueue object at 0x..>": from "get" on. NULL: it is none. */
static const char *built_in(const char *func, char *buf, size_t size)
{
	const char *name;

	if (strncmp(func, BUILT_IN_BEGIN, strlen(BUILT_IN_BEGIN)) != 0)
		return NULL;
	name = strchr(func + strlen(BUILT_IN_BEGIN), ' ');
	snprintf(buf, size, "%s", name ? name + 1 : func + strlen(BUILT_IN_BEGIN));
	if (*buf && buf[strlen(buf) - 1] == '>')
		buf[strlen(buf) - 1] = 0;
	return buf;
}

static unsigned kind_of(struct hb_window *w, const struct hb_loc *l)
{
	const char *func = hb_window__string(w, l->func), *last = strrchr(func, '.'), *module;
	char name[256], buf[512];
	const char *in = built_in(func, name, sizeof(name));

	module = in ? "" : hb_decode__module(hb_window__string(w, l->file), buf, sizeof(buf));
	last = last ? last + 1 : func;
	for (size_t i = 0; i < sizeof(waiting) / sizeof(*waiting); i++) {
		if (!in != !!waiting[i].module)
			continue;
		if (hb_text__glob(waiting[i].func, in ? in : last) &&
		    (in || hb_text__glob(waiting[i].module, module)))
			return ASKED | WAITS | (in ? BUILT_IN : 0);
	}
	return ASKED | (in ? BUILT_IN : 0);
}

static unsigned kind(struct hb_doing *d, u32 loc)
{
	u64 *k = hb_map__slot(d->kind, loc, NULL);
	const struct hb_loc *l = hb_window__loc(d->w, loc);

	if (!k)
		return 0;
	if (!*k)
		*k = l && l->func ? kind_of(d->w, l) : ASKED;
	return (unsigned)*k;
}

/* ---- adding up ---- */

#define FEW 8
struct few { /* of one stretch; what has no room is little */
	struct hb_did v[FEW];
	u32 n;
};

static int count(struct hb_doing *d, struct few *f, u32 loc, bool waits, u64 ns)
{
	struct hb_did *x = hb_rows__get(&d->rows, loc, NULL);
	u32 i = 0;

	if (!x)
		return -ENOMEM;
	x->loc = loc;
	x->ns += ns;
	d->sum.known += ns;
	d->sum.waited += waits ? ns : 0;
	while (i < f->n && f->v[i].loc != loc)
		i++;
	if (i == f->n && f->n < FEW)
		f->v[f->n++] = (struct hb_did){.loc = loc};
	if (i < f->n)
		f->v[i].ns += ns;
	return 0;
}

/* ---- calls ---- */

/* Who called what is built in, else itself; 0: not known. */
static u32 named(struct hb_doing *d, const struct hb_tl_pycall *c, u32 i)
{
	while (i != HB_NONE && (!c[i].func || kind(d, c[i].func) & BUILT_IN))
		i = c[i].at.outer;
	return i == HB_NONE ? 0 : c[i].func;
}

static int by_calls(struct hb_doing *d, u32 thread, u64 begin, u64 end, struct few *f)
{
	u32 n, i = hb_timeline__at(d->tl, thread, HB_TL_PYCALL, begin);
	u32 next = hb_timeline__from(d->tl, thread, HB_TL_PYCALL, begin + 1);
	const struct hb_tl_pycall *c = hb_timeline__pycalls(d->tl, thread, &n);
	int err = 0;

	for (u64 t = begin; t < end && !err;) {
		u64 until = next < n && c[next].at.begin < end ? c[next].at.begin : end;
		u32 loc;

		if (i != HB_NONE && c[i].at.end < until)
			until = c[i].at.end;
		loc = i == HB_NONE ? 0 : named(d, c, i);
		if (loc && until > t)
			err = count(d, f, loc, kind(d, c[i].func) & WAITS || kind(d, loc) & WAITS, until - t);
		t = until;
		if (next < n && c[next].at.begin <= t && t < end)
			i = next++;
		while (i != HB_NONE && c[i].at.end <= t)
			i = c[i].at.outer;
	}
	return err;
}

/* ---- samples ---- */

static u32 innermost(struct hb_doing *d, u32 pid, u32 stack)
{
	struct hb_stack s = stack ? hb_window__stack(d->w, pid, stack) : (struct hb_stack){0};

	for (u32 i = s.n; i--;) {
		const struct hb_loc *l = hb_window__loc(d->w, s.locs[i]);

		if (l && l->func && l->lang == HB_LANG_PYTHON)
			return s.locs[i];
	}
	return 0;
}

/* A sample stands for its weight: of a stretch no more than there is. */
static int by_samples(struct hb_doing *d, u32 thread, u64 begin, u64 end, struct few *f)
{
	u32 n, i = hb_timeline__from(d->tl, thread, HB_TL_SAMPLE, begin);
	const struct hb_tl_sample *s = hb_timeline__samples(d->tl, thread, &n);
	u64 left = end - begin;
	int err = 0;

	for (; i < n && s[i].at.begin < end && left && !err; i++) {
		u32 loc = innermost(d, hb_timeline__thread(d->tl, thread)->pid, s[i].at.stack);
		u64 ns = s[i].weight < left ? s[i].weight : left;

		left -= ns;
		if (loc)
			err = count(d, f, loc, kind(d, loc) & WAITS, ns);
	}
	return err;
}

/* ---- asking ---- */

struct hb_doing *hb_doing__new(const struct hb_timeline *tl)
{
	struct hb_doing *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	d->tl = tl;
	d->w = hb_timeline__window(tl);
	d->kind = hb_map__new();
	if (!hb_rows__init(&d->rows, sizeof(struct hb_did)) && d->kind)
		return d;
	hb_doing__free(d);
	return NULL;
}

void hb_doing__free(struct hb_doing *d)
{
	if (!d)
		return;
	hb_rows__free(&d->rows, NULL);
	hb_map__free(d->kind);
	free(d);
}

int hb_doing__add(struct hb_doing *d, u32 thread, u64 begin, u64 end, u32 *most)
{
	struct few f = {.n = 0};
	u32 n = 0;
	u64 best = 0;
	int err;

	if (most)
		*most = 0;
	if (begin >= end)
		return 0;
	d->sum.ns += end - begin;
	if (thread == HB_NONE)
		return 0;
	hb_timeline__samples(d->tl, thread, &n);
	err = n ? by_samples(d, thread, begin, end, &f) : by_calls(d, thread, begin, end, &f);
	for (u32 i = 0; most && i < f.n; i++)
		if (f.v[i].ns > best) {
			best = f.v[i].ns;
			*most = f.v[i].loc;
		}
	return err;
}

const struct hb_did *hb_doing__most(const struct hb_doing *d)
{
	const struct hb_did *best = NULL;

	for (u32 i = 0; i < d->rows.n; i++) {
		const struct hb_did *x = d->rows.row[i];

		if (!best || x->ns > best->ns)
			best = x;
	}
	return best;
}

struct hb_doing_sum hb_doing__sum(const struct hb_doing *d)
{
	return d->sum;
}
