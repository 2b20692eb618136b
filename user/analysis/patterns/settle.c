/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Findings -> plan. A pattern's `record` says in general what would settle it; here it becomes concrete, with
 * the functions, the target and the settings of this window. */
#include "analysis/patterns/settle_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/text.h"

#define SECOND	    1000000000ULL
#define SHORTEST    (10 * SECOND)
#define LONGEST	    (60 * SECOND)
#define OCCURRENCES 30 /* of the rarest finding, that a window should see */

/* ---- functions ---- */

/* Of the interpreter's own library: how somebody waits, not who. */
static bool is_library(const char *file)
{
	const char *at = strstr(file, "/lib/python");

	return strncmp(file, "<frozen", 7) == 0 ||
	       (at && !strstr(at, "/site-packages/") && !strstr(at, "/dist-packages/"));
}

/* Who waits is near the end of a stack. Further out there is what was called once, long before the window. */
#define NEAR 4

static const struct hb_loc *innermost(const struct hb_window *w, u32 pid, u32 stack)
{
	struct hb_stack st = hb_window__stack(w, pid, stack);
	const struct hb_loc *any = NULL;
	u32 seen = 0;

	for (u32 i = st.n; i-- > 0 && seen < NEAR;) {
		const struct hb_loc *l = hb_window__loc(w, st.locs[i]);
		const char *name = l && l->lang == HB_LANG_PYTHON ? hb_window__string(w, l->func) : "";

		/* A module's own code runs once; a name with a blank is no name. */
		if (!*name || strcmp(name, "<module>") == 0 || strpbrk(name, " \t:"))
			continue;
		seen++;
		if (!is_library(hb_window__string(w, l->file)))
			return l;
		any = any ? any : l;
	}
	return any;
}

/* For the reason, once. */
static void say(struct hb_buf *said, const char *option, const char *value)
{
	char text[HB_PLANFILE_TEXT + 64];

	snprintf(text, sizeof(text), "--%s %s", option, value);
	if (!said->size || !strstr(said->data, text))
		hb_buf__printf(said, "%s%s", said->size ? " " : "", text);
}

/* Calls of the function that a stack ends in. */
static bool ask_calls(struct hb_settle *s, const struct hb_task *t, u32 stack, struct hb_buf *said)
{
	const struct hb_window *w = s->in->window;
	const struct hb_loc *l = t && stack ? innermost(w, t->pid, stack) : NULL;
	const char *file = l ? hb_window__string(w, l->file) : "";
	char spec[HB_PLANFILE_TEXT + 1];

	if (!l)
		return false;
	/* What a glob would take for a pattern, or a function's name cannot have. */
	if (strpbrk(file, "*?[]\\ \t:") || strlen(file) > 200)
		file = hb_text__basename(file);
	if (!*file || strpbrk(file, "*?[]\\ \t:") || strlen(file) > 200)
		file = "*";
	if (snprintf(spec, sizeof(spec), "%s:%.200s", file, hb_window__string(w, l->func)) >=
		(int)sizeof(spec) ||
	    !hb_settle__ask(s, "calls", spec))
		return false;
	say(said, "calls", spec);
	return true;
}

static bool ask_functions(struct hb_settle *s, const struct hb_finding *f, bool waker, struct hb_buf *said)
{
	bool any = false;

	for (u32 i = 0; f && i < f->n_worst; i++) {
		const struct hb_instance *x = &f->worst[i];

		any |= ask_calls(s, waker ? x->waker : x->thread, waker ? x->waker_stack : x->stack, said);
	}
	return any;
}

/* ---- what a pattern wants recorded ---- */

/* One "option=value"; true when it adds to what the first window had. */
static bool one_word(struct hb_settle *s, const struct hb_finding *f, const char *word, size_t n,
		     struct hb_buf *said)
{
	char text[HB_PLANFILE_TEXT + 1], *value;

	snprintf(text, sizeof(text), "%.*s", (int)(n < sizeof(text) ? n : sizeof(text) - 1), word);
	value = strchr(text, '=');
	if (!value)
		return false;
	*value++ = 0;
	if (*value == '@')
		return ask_functions(s, f, strcmp(value, "@waker") == 0, said);
	if (!hb_settle__ask(s, text, value))
		return false;
	say(said, text, value);
	return true;
}

static bool words(struct hb_settle *s, const struct hb_finding *f, const char *record, struct hb_buf *said)
{
	bool any = false;

	for (const char *at = record; at && *at;) {
		size_t n;

		at += strspn(at, "; ");
		n = strcspn(at, ";");
		any |= n && one_word(s, f, at, n, said);
		at += n;
	}
	return any;
}

static void reason(struct hb_settle *s, const struct hb_pattern *p, const char *confidence, const char *why,
		   struct hb_buf *said)
{
	struct hb_planfile_reason *r;

	if (s->p->n_reasons == HB_PLANFILE_REASONS)
		return;
	r = &s->p->reason[s->p->n_reasons++];
	*r = (struct hb_planfile_reason){
	    .pattern = hb_planfile__text(p->id),
	    .title = hb_planfile__text(p->title),
	    .confidence = hb_planfile__text(confidence),
	    .why = hb_planfile__text(why),
	    .records = hb_planfile__text(said->size ? said->data : "the same for longer"),
	    .settle = hb_planfile__text(p->settle),
	};
	s->oom |= !r->pattern || said->oom;
}

/* Few samples are settled by more of them. */
#define MORE_SAMPLES "frequency=997"

static void finding(struct hb_settle *s, const struct hb_finding *f, u64 *length)
{
	struct hb_buf said = {0};
	bool thin = f->confidence == HB_CONFIDENCE_LOW && f->pattern->needs & HB_NEED_SAMPLE, any;
	u64 wanted;

	any = words(s, f, f->pattern->record, &said);
	if (thin)
		any |= words(s, f, MORE_SAMPLES, &said);
	if (any) {
		reason(s, f->pattern, hb_confidence__name(f->confidence), f->why, &said);
		wanted = f->count ? s->wall / f->count * OCCURRENCES : LONGEST;
		*length = wanted > *length ? wanted : *length;
	}
	s->oom |= said.oom;
	hb_buf__free(&said);
}

/* ---- patterns that were not checked ---- */

/* What gives records of a kind, where anything can. Engine fields are the pattern's to name. */
static const struct {
	u64 need;
	const char *record;
} recordable[] = {
    {HB_NEED_LAUNCH_NS, "timed=launch,graph"},
    {HB_NEED_SLEEP, "syscalls=blocking"},
    {HB_NEED_SAMPLE, "frequency=99"},
    {HB_NEED_STACK, "python=stacks"},
    {HB_NEED_GIL, "python=stacks"},
    {HB_NEED_GC, "exceptions=types"},
    {HB_NEED_EXCEPTION, "exceptions=types"},
    {HB_NEED_SYSCALL, "syscalls=all"},
};

static void unchecked(struct hb_settle *s, const struct hb_not_checked *u)
{
	u64 left = u->needs;
	struct hb_buf said = {0};
	bool any = false, by_pattern = u->pattern->record != NULL;

	for (size_t i = 0; i < sizeof(recordable) / sizeof(*recordable); i++)
		if (left & recordable[i].need)
			left &= ~recordable[i].need;
	if (by_pattern)
		left &= ~(u64)(HB_NEED_FIELD | HB_NEED_PYCALL);
	/* Half of it settles nothing. */
	if (!u->needs || left || !u->pattern->detect)
		return;
	for (size_t i = 0; i < sizeof(recordable) / sizeof(*recordable); i++)
		if (u->needs & recordable[i].need)
			any |= words(s, NULL, recordable[i].record, &said);
	any |= words(s, NULL, u->pattern->record, &said);
	if (any)
		reason(s, u->pattern, NULL, u->text, &said);
	s->oom |= said.oom;
	hb_buf__free(&said);
}

/* ---- target and window ---- */

static bool has_parent(const struct hb_proc *v, u32 n, u32 ppid)
{
	for (u32 i = 0; i < n; i++)
		if (v[i].pid == ppid)
			return true;
	return false;
}

/* The topmost ones: the others are their descendants. */
static int target(struct hb_settle *s, struct hb_error *e)
{
	const struct hb_window *w = s->in->window;
	u32 n;
	const struct hb_proc *v = hb_window__procs(w, &n);

	for (u32 i = 0; i < n && s->p->n_processes < HB_PLANFILE_PROCESSES; i++) {
		const struct hb_task *t = hb_window__task_by_tid(w, v[i].pid);
		const char *exe = hb_text__basename(hb_window__string(w, v[i].exe));
		struct hb_planfile_process *p = &s->p->process[s->p->n_processes];

		if (!v[i].pid || !v[i].start || has_parent(v, n, v[i].ppid))
			continue;
		p->pid = v[i].pid;
		p->start_ns = v[i].start;
		p->name = hb_planfile__text(*exe ? exe : t ? hb_window__string(w, t->comm) : "?");
		s->oom |= !p->name;
		s->p->n_processes++;
	}
	if (s->p->n_processes == HB_PLANFILE_PROCESSES)
		return hb_error__set(
		    e, HB_EXIT_FAILED, -E2BIG,
		    "the window has %u processes and more that are no descendants of others; a plan "
		    "names fewer",
		    HB_PLANFILE_PROCESSES);
	return s->p->n_processes ? 0
				 : hb_error__set(e, HB_EXIT_FAILED, -ENOENT,
						 "the window names no process that could be recorded again");
}

static int origin(struct hb_settle *s, struct hb_error *e)
{
	const struct hb_window *w = s->in->window;
	const char *id = hb_window__meta(w, "window_id"), *boot = hb_window__meta(w, "boot_id");
	struct hb_planfile *p = s->p;

	if (!id || !boot || !*id || !*boot)
		return hb_error__set(
		    e, HB_EXIT_FAILED, -ENOENT,
		    "the window does not say on which boot of which machine it was recorded (an "
		    "imported trace, or an older one), so there is nothing to record again");
	p->tool = hb_planfile__text("herschel-bpf " HB_VERSION);
	p->window_id = hb_planfile__text(id);
	p->boot = hb_planfile__text(boot);
	p->window_file = hb_planfile__text(s->in->file);
	p->window_host = hb_planfile__text(hb_window__meta(w, "host"));
	p->window_start_ns = hb_window__info(w)->start_ts;
	p->window_end_ns = hb_window__info(w)->end_ts;
	s->oom |= !p->tool || !p->window_id || !p->boot;
	return target(s, e);
}

/* ---- all together ---- */

static void duration(struct hb_settle *s, u64 length)
{
	char text[32];

	length = length < SHORTEST ? SHORTEST : length > LONGEST ? LONGEST : length;
	snprintf(text, sizeof(text), "%llus", (unsigned long long)((length + SECOND - 1) / SECOND));
	s->oom |= hb_planfile__set(s->p, "duration", text) == -ENOMEM;
}

/* Fields and calls come from Python, which needs to be looked at. */
static void need_python(struct hb_settle *s)
{
	const char *mode = hb_planfile__get(s->p, "python");

	if (mode && strcmp(mode, "off") == 0 &&
	    (hb_planfile__get(s->p, "calls") || hb_planfile__get(s->p, "field")))
		s->oom |= hb_planfile__set(s->p, "python", "stacks") == -ENOMEM;
}

static void fill(struct hb_settle *s)
{
	u64 length = 0;
	u32 n_open = 0;

	hb_settle__begin(s);
	for (u32 i = 0; hb_findings__at(s->in->findings, i); i++) {
		const struct hb_finding *f = hb_findings__at(s->in->findings, i);

		if (f->cause || f->confidence >= HB_CONFIDENCE_HIGH)
			continue;
		n_open++;
		finding(s, f, &length);
	}
	if (s->in->n_open)
		*s->in->n_open = n_open;
	for (u32 i = 0; !hb_findings__at(s->in->findings, 0) && hb_findings__not_checked(s->in->findings, i);
	     i++)
		unchecked(s, hb_findings__not_checked(s->in->findings, i));
	if (!s->p->n_reasons)
		return;
	need_python(s);
	duration(s, length ? length : s->wall);
	hb_settle__costs(s);
}

struct hb_planfile *hb_settle__plan(const struct hb_settle_input *in, struct hb_error *e)
{
	const struct hb_window_info *info = hb_window__info(in->window);
	struct hb_settle s = {.in = in, .p = hb_planfile__new()};
	int err;

	s.wall = info->end_ts > info->start_ts ? info->end_ts - info->start_ts : 1;
	err = s.p ? origin(&s, e) : hb_error__nomem(e, "the plan");
	if (!err)
		fill(&s);
	if (!err && s.oom)
		err = hb_error__nomem(e, "the plan");
	if (!err && s.p->n_reasons)
		return s.p;
	hb_planfile__free(s.p);
	return NULL;
}
