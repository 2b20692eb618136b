/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Questions that several detectors ask of a window. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/model/decode.h"
#include "analysis/patterns/exposure.h"
#include "base/map.h"
#include "base/text.h"

#define MILLION 1000000ULL

u64 hb_share(u64 a, u64 b)
{
	if (!b)
		return 0;
	if (a > UINT64_MAX / MILLION) /* thirty weeks of ns and more: the digits lost do not matter */
		return a / (b / MILLION ? b / MILLION : 1);
	return a * MILLION / b;
}

u64 hb_rate(u64 n, u64 ns)
{
	const u64 second = 1000000000ULL;

	if (!ns)
		return 0;
	return n > UINT64_MAX / second ? n / (ns / second ? ns / second : 1) : n * second / ns;
}

const struct hb_sets *hb_scene__exposed(const struct hb_scene *s, u32 thread)
{
	return hb_exposure__of(s->exposure, thread);
}

bool hb_scene__leads(const struct hb_scene *s, u32 thread)
{
	return hb_sets__any(hb_scene__exposed(s, thread));
}

const struct hb_task *hb_scene__task(const struct hb_scene *s, u32 thread)
{
	return thread == HB_NONE ? NULL : hb_timeline__thread(s->tl, thread)->task;
}

u64 hb_scene__likely(const struct hb_scene *s, u32 thread, u64 begin, u64 end)
{
	return hb_sets__likely(hb_scene__exposed(s, thread), begin, end);
}

u64 hb_scene__step_time(const struct hb_scene *s, u32 pid)
{
	const struct hb_series *p = hb_steps__of_pid(s->steps, pid);

	return p && p->n && p->sum ? p->sum : s->wall;
}

u32 hb_scene__multiprocessors(const struct hb_scene *s, u32 device)
{
	char key[32];
	const char *text;

	snprintf(key, sizeof(key), "device_%u_sms", device);
	text = hb_window__meta(s->w, key);
	return text ? (u32)strtoul(text, NULL, 10) : 0;
}

/* ---- calls ---- */

u32 hb_scene__next_work(const struct hb_scene *s, u32 thread, u64 t)
{
	u32 n, i;
	const struct hb_tl_call *c = hb_timeline__calls(s->tl, thread, &n);

	for (i = hb_timeline__from(s->tl, thread, HB_TL_CALL, t); i < n && !hb_call__is_work(&c[i]); i++)
		;
	return i;
}

u64 hb_scene__next_work_at(const struct hb_scene *s, u32 thread, u64 t)
{
	u32 n, i = hb_scene__next_work(s, thread, t);
	const struct hb_tl_call *c = hb_timeline__calls(s->tl, thread, &n);

	return i < n ? c[i].at.begin : s->end;
}

const char *hb_scene__call_name(const struct hb_scene *s, const struct hb_tl_call *c)
{
	const struct hb_probe_row *r = hb_window__probe(s->w, hb_timeline__callee(s->tl, c)->probe);

	return r ? hb_window__string(s->w, r->name) : "?";
}

bool hb_scene__ancestor(const struct hb_scene *s, u32 pid, u32 of)
{
	u32 n;
	const struct hb_proc *p = hb_window__procs(s->w, &n);

	for (u32 depth = 0; of && depth < 64; depth++) {
		u32 parent = 0;

		for (u32 i = 0; i < n; i++)
			if (p[i].pid == of)
				parent = p[i].ppid;
		if (parent == pid)
			return true;
		of = parent;
	}
	return false;
}

/* ---- names ---- */

#define NAMES_MOST (1U << 22) /* a window has no more; what claims to be is not kept */

static bool make_room(struct hb_named *seen, u32 name)
{
	u32 n = name + name / 4 + 256;
	u8 *is;

	if (name < seen->n || name >= NAMES_MOST)
		return name < seen->n;
	is = realloc(seen->is, n);
	if (!is)
		return false;
	memset(is + seen->n, 0, n - seen->n);
	seen->is = is;
	seen->n = n;
	return true;
}

bool hb_named__look(const struct hb_scene *s, u32 name, const char *const *globs, struct hb_named *seen)
{
	while (*globs && !hb_text__glob(*globs, hb_window__string(s->w, name)))
		globs++;
	if (make_room(seen, name))
		seen->is[name] = *globs ? 2 : 1;
	return *globs != NULL;
}

bool hb_scene__called(const struct hb_scene *s, const struct hb_tl_call *c, const char *const *globs,
		      struct hb_named *seen)
{
	const struct hb_probe_row *r = hb_window__probe(s->w, hb_timeline__callee(s->tl, c)->probe);

	return r && hb_scene__named(s, r->name, globs, seen);
}

static bool is_in(const char *const *names, const char *name)
{
	while (*names && strcmp(*names, name) != 0)
		names++;
	return *names != NULL;
}

u32 hb_sysnos__look(struct hb_sysnos *seen, unsigned sysno, const char *const *const *lists)
{
	const char *name = sysno == HB_SYSNO_NONE ? NULL : hb_sysno__name(sysno);
	u32 i = 0, in;

	while (name && lists[i] && !is_in(lists[i], name))
		i++;
	in = name && lists[i] ? i + 1 : 0;
	if (sysno < sizeof(seen->in))
		seen->in[sysno] = (u8)(in + 1);
	return in;
}

void hb_named__free(struct hb_named *seen)
{
	free(seen->is);
	*seen = (struct hb_named){0};
}

const char *hb_scene__task_text(const struct hb_scene *s, const struct hb_task *t, char *buf, size_t size)
{
	if (!t)
		snprintf(buf, size, "a thread that is not known");
	else
		snprintf(buf, size, "%s (%u)", hb_decode__comm(s->w, t), t->tid);
	return hb_text__clean(buf);
}

const char *hb_scene__thread_text(const struct hb_scene *s, u32 thread, char *buf, size_t size)
{
	return hb_scene__task_text(s, hb_scene__task(s, thread), buf, size);
}

const char *hb_scene__rank_text(const struct hb_scene *s, const struct hb_coll_rank *r, char *buf,
				size_t size)
{
	const struct hb_device *v = s->dev ? hb_devices__at(s->dev, r->device) : NULL;
	char key[32];
	const char *rank;

	snprintf(key, sizeof(key), "rank_of_%u", r->pid);
	rank = hb_window__meta(s->w, key);
	if (rank)
		snprintf(buf, size, "rank %.8s (process %u)", rank, r->pid);
	else
		snprintf(buf, size, "device %u of process %u", v ? v->number : r->device, r->pid);
	return hb_text__clean(buf);
}

const char *hb_scene__frame_text(const struct hb_scene *s, u32 pid, u32 stack, char *buf, size_t size)
{
	struct hb_stack st = stack ? hb_window__stack(s->w, pid, stack) : (struct hb_stack){0};
	const struct hb_loc *named = NULL;

	*buf = 0;
	for (u32 i = st.n; i--;) {
		const struct hb_loc *l = hb_window__loc(s->w, st.locs[i]);

		if (l && l->lang == HB_LANG_PYTHON)
			return hb_decode__frame(s->w, l, HB_FRAME_LINE, buf, size);
		if (l && l->func && !named)
			named = l;
	}
	return named ? hb_decode__frame(s->w, named, HB_FRAME_LINE, buf, size) : buf;
}

/* ---- frames ---- */

/* What begins with a star and is like the last part is like the whole. */
static bool func_is(const char *pattern, const char *func, const char *last)
{
	return hb_text__glob(pattern, func) || (last && *pattern != '*' && hb_text__glob(pattern, last + 1));
}

static bool matches(const struct hb_scene *s, u32 loc, const struct hb_frame_rule *rule)
{
	const struct hb_loc *l = loc ? hb_window__loc(s->w, loc) : NULL;
	const char *func, *last, *module = NULL;
	char buf[512];

	if (!l || !l->func)
		return false;
	func = hb_window__string(s->w, l->func);
	last = strrchr(func, '.');
	for (; rule->func; rule++) {
		if (!func_is(rule->func, func, last))
			continue;
		if (strcmp(rule->module, "*") == 0)
			return true;
		if (!module)
			module = l->lang == HB_LANG_PYTHON
				     ? hb_decode__module(hb_window__string(s->w, l->file), buf, sizeof(buf))
				     : hb_text__basename(hb_window__string(s->w, l->module));
		if (hb_text__glob(rule->module, module))
			return true;
	}
	return false;
}

/* Stacks are many, the places in them few: each is held against a rule once. Rules are static: 32 bits tell
 * one from another. */
bool hb_scene__loc(const struct hb_scene *s, u32 loc, const struct hb_frame_rule *rule)
{
	enum { NOT_YET, NO, YES };
	u64 key = (u64)(u32)(uintptr_t)rule << 32 | loc;
	u64 *known = s->matches ? hb_map__slot(s->matches, key, NULL) : NULL;
	u64 is;

	if (known && *known != NOT_YET)
		return *known == YES;
	is = matches(s, loc, rule) ? YES : NO;
	if (known)
		*known = is;
	return is == YES;
}

bool hb_scene__frame(const struct hb_scene *s, u32 pid, u32 stack, const struct hb_frame_rule *rule)
{
	struct hb_stack st = stack ? hb_window__stack(s->w, pid, stack) : (struct hb_stack){0};

	for (u32 i = 0; i < st.n; i++)
		if (hb_scene__loc(s, st.locs[i], rule))
			return true;
	return false;
}
