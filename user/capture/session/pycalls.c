/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Calls of Python functions. Which way they are seen is a matter of the interpreter (python/calls.h); which
 * of them are recorded is decided here, once for each function, when its first call arrives: the kernel
 * cannot match names, and sends calls of functions that were not judged yet as messages, of which records are
 * made here.
 */
#include "capture/session/pycalls.h"
#include "capture/session/pyfields.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct seat { /* one interpreter of one process, probed */
	struct hb_plan_file file;
	struct hb_site site[2];
	u32 pid, runtime;
	bool ret, hooked;
	u64 address; /* of the runtime: another program's after an exec */
	enum hb_hook kind;
	struct seat *next;
};

struct hb_session_pycalls {
	struct hb_attach *attach;
	struct hb_pyhooks *hooks; /* NULL: not asked for */
	struct seat *seats;
	struct hb_py_call_site sites[HB_PY_CALL_SITES];
	u32 n_sites;
	char *notes[64]; /* said before the window's file is there */
	u32 n_notes;
	u64 unresolved;
};

int hb_session_pycalls__begin(struct hb_session *s, struct hb_error *e)
{
	struct hb_attach_ops ops = hb_bpf__python_calls(s->bpf);
	struct hb_session_pycalls *c;

	if (!hb_session__wants_calls(&s->o))
		return 0;
	c = s->pycalls = calloc(1, sizeof(*c));
	if (c)
		c->attach = hb_attach__new(&ops);
	if (!c || !c->attach)
		return hb_error__nomem(e, "Python calls");
	if (s->o.py_hook) {
		c->hooks = hb_pyhooks__new(e);
		if (!c->hooks)
			return e->err;
	}
	return 0;
}

void hb_session_pycalls__free(struct hb_session *s)
{
	struct hb_session_pycalls *c = s->pycalls;

	if (!c)
		return;
	hb_pyhooks__free(c->hooks);
	hb_attach__free(c->attach);
	for (struct seat *t = c->seats, *next; t; t = next) {
		next = t->next;
		free(t->file.path);
		free(t);
	}
	for (u32 i = 0; i < c->n_notes; i++)
		free(c->notes[i]);
	free(c);
	s->pycalls = NULL;
}

/* ---- what there is to say ---- */

static void say(struct hb_session *s, enum hb_notelevel level, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static void say(struct hb_session *s, enum hb_notelevel level, const char *fmt, ...)
{
	struct hb_session_pycalls *c = s->pycalls;
	char text[600];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (hb_session__may_remark(s)) {
		if (level == HB_NOTE_WARNING)
			hb_warn("%s", text);
		else
			hb_note("%s", text);
	}
	if (s->writer)
		hb_session__note(s, level, "%s", text);
	else if (c->n_notes < sizeof(c->notes) / sizeof(*c->notes) && (c->notes[c->n_notes] = strdup(text)))
		c->n_notes++;
}

void hb_session_pycalls__describe(struct hb_session *s)
{
	struct hb_session_pycalls *c = s->pycalls;

	for (u32 i = 0; c && i < c->n_notes; i++)
		hb_session__note(s, HB_NOTE_INFO, "%s", c->notes[i]);
}

/* ---- probing ---- */

/* The cookie of such a site; 0: no more room. */
static u32 cookie_of(struct hb_session *s, const struct hb_py_call_site *site)
{
	struct hb_session_pycalls *c = s->pycalls;
	u32 i = 0;

	while (i < c->n_sites && memcmp(&c->sites[i], site, sizeof(*site)) != 0)
		i++;
	if (i == HB_PY_CALL_SITES - 1)
		return 0;
	if (i == c->n_sites) {
		if (hb_bpf__set_call_site(s->bpf, i + 1, site))
			return 0;
		c->sites[c->n_sites++] = *site;
	}
	return i + 1;
}

static struct seat *seat_of(const struct hb_session_pycalls *c, u32 pid, u32 runtime)
{
	for (struct seat *t = c->seats; t; t = t->next)
		if (t->pid == pid && t->runtime == runtime)
			return t;
	return NULL;
}

static struct seat *new_seat(struct hb_session *s, u32 pid, u32 runtime, const struct hb_py_calls *w)
{
	struct hb_session_pycalls *c = s->pycalls;
	struct seat *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->pid = pid;
	t->runtime = runtime;
	t->ret = w->ret;
	t->site[0] = (struct hb_site){.probe = cookie_of(s, &w->site),
				      .offset = w->offset,
				      .ret = w->ret,
				      .symbol = (char *)(uintptr_t)w->symbol};
	if (w->end_offset)
		t->site[1] = (struct hb_site){.probe = cookie_of(s, &w->end_site),
					      .offset = w->end_offset,
					      .symbol = (char *)(uintptr_t)w->symbol};
	t->file = (struct hb_plan_file){.ino = w->map->ino,
					.dev = w->map->dev,
					.path = strdup(w->map->path),
					.sites = t->site,
					.n_sites = w->end_offset ? 2 : 1};
	if (!t->file.path || !t->site[0].probe || (w->end_offset && !t->site[1].probe)) {
		free(t->file.path);
		free(t);
		return NULL;
	}
	t->next = c->seats;
	c->seats = t;
	return t;
}

static enum hb_hook kind_of(const struct hb_process *p, const struct hb_py_calls *w)
{
	char path[4200];

	return hb_process__open_path(p, w->map, path, sizeof(path)) ? HB_HOOK_STEP
								    : hb_hook__at(path, w->offset);
}

u64 hb_session_pycalls__trap(const struct hb_session *s, const char *program)
{
	if (!s->pycalls || !s->pycalls->seats || strncmp(program, "pycall", 6) != 0)
		return 0;
	/* The program of both ends runs twice in a call. */
	if (strstr(program, "session"))
		return (s->prices.entry[s->pycalls->seats->kind] + s->prices.ret) / 2;
	return strstr(program, "return") ? s->prices.ret : s->prices.entry[s->pycalls->seats->kind];
}

static void lose_stretch(struct hb_session *s)
{
	struct hb_loss_row loss = {
	    .cause = HB_LOSS_LATE, .type = HB_TYPE_py_call, .cpu = UINT32_MAX, .count = 1};

	if (s->writer)
		hb_window_writer__loss(s->writer, &loss);
}

static int probe(struct hb_session *s, const struct hb_process *p, const struct hb_py_runtime *r, u32 index,
		 const struct hb_py_calls *w)
{
	struct seat *t = seat_of(s->pycalls, p->pid, index);
	struct hb_error e = {0};
	int n;

	if (t && t->ret == w->ret && t->address == r->address && t->file.ino == r->file &&
	    hb_attach__has(s->pycalls->attach, p->pid, &t->file))
		return 0;
	if (t) { /* of a program that was there before an exec; or returns are no longer safe */
		hb_attach__drop(s->pycalls->attach, p->pid, &t->file);
		t->pid = 0;
	}
	t = new_seat(s, p->pid, index, w);
	if (!t)
		return -ENOMEM;
	t->address = r->address;
	t->kind = kind_of(p, w);
	n = hb_attach__file(s->pycalls->attach, p, w->map, &t->file, &e);
	if (n > 0) {
		lose_stretch(s);
		return 1;
	}
	t->pid = 0;
	if (n != -ESRCH)
		say(s, HB_NOTE_WARNING, "pid %u: no Python calls: %s", p->pid,
		    e.err ? e.text : "the place could not be probed");
	return n ? n : -EINVAL;
}

/* ---- the hook ---- */

/* Left over from a tool that was killed together with its guardian. */
static void take_back(struct hb_session *s, const struct hb_process *p, const struct hb_py_runtime *r)
{
	struct hb_py_calls c = {.eval = r->eval, .get_hook = r->get_hook};
	struct hb_error e = {0};
	struct hb_py_hook h;
	bool left;

	if (r->minor < 11 || hb_py_hook__find(p, r, &c, true, &h, &left, &e) || !left)
		return;
	if (hb_py_hook__unset(&h))
		hb_warn("pid %u: took back the hook that a tool which was killed had left in Python", p->pid);
}

/* torch.compile uses the same word, and sets it to nothing when it is done. It is not set again: it would be
 * taken away at each compiled call, and what is recorded between would look like all there is. */
void hb_session_pycalls__tick(struct hb_session *s)
{
	u32 pid;

	while (s->pycalls && s->pycalls->hooks && (pid = hb_pyhooks__taken(s->pycalls->hooks))) {
		say(s, HB_NOTE_WARNING,
		    "pid %u: the eval_frame hook was taken away by the program (torch.compile?): most Python "
		    "calls "
		    "are missing from then on",
		    pid);
		lose_stretch(s);
	}
}

/* False: it may not be set. */
static bool hook(struct hb_session *s, const struct hb_process *p, const struct hb_py_runtime *r,
		 const struct hb_py_calls *w, const struct seat *seat)
{
	struct hb_error e = {0};
	struct hb_py_hook h;
	bool left;
	int err = hb_py_hook__find(p, r, w, s->o.py_hook == HB_PY_HOOK_FORCED, &h, &left, &e);

	if (!err && left && seat && seat->hooked)
		return true;
	if (!err)
		err = hb_pyhooks__set(s->pycalls->hooks, &h);
	if (err)
		say(s, HB_NOTE_WARNING, "pid %u: --py-hook eval_frame is refused: %s", p->pid,
		    e.err ? e.text : strerror(-err));
	return !err;
}

/* Nothing is to be done for an interpreter that is probed already, but for what may have come since. */
static bool settled(struct hb_session *s, const struct hb_process *p, const struct hb_py_runtime *r,
		    u32 index)
{
	const struct seat *t = seat_of(s->pycalls, p->pid, index);

	return t && t->address == r->address && t->file.ino == r->file &&
	       hb_attach__has(s->pycalls->attach, p->pid, &t->file) &&
	       !(t->ret && hb_py_calls__no_return(p)) && !t->hooked;
}

static void look_at(struct hb_session *s, struct proc_state *ps, const struct hb_py_runtime *r, u32 index)
{
	const struct hb_process *p = ps->p;
	struct hb_py_calls w;
	bool hooked = false;

	if (settled(s, p, r, index))
		return;
	hb_py_calls__find(p, r, index, s->pycalls->hooks != NULL, &w);
	if (w.way == HB_PY_WAY_HOOK)
		hooked = hook(s, p, r, &w, seat_of(s->pycalls, p->pid, index));
	if (s->pycalls->hooks && !hooked)
		hb_py_calls__find(p, r, index, false, &w);
	if (w.way == HB_PY_WAY_NONE) {
		say(s, HB_NOTE_WARNING, "pid %u: no Python calls: %s", p->pid, w.why);
		return;
	}
	if (w.ret && p->seccomp && !hb_plan__confined_returns_work()) {
		w.ret = false;
		w.site.timed = 0;
		w.no_return = "a seccomp filter is on, and on this kernel return probes harm such processes";
	}
	if (probe(s, p, r, index, &w) != 1)
		return;
	s->pycalls->seats->hooked = hooked;
	if (w.holes)
		say(s, HB_NOTE_INFO, "pid %u: Python calls: %s", p->pid, w.holes);
	if (w.no_return)
		say(s, HB_NOTE_INFO, "pid %u: Python calls have no durations: %s", p->pid, w.no_return);
}

void hb_session_pycalls__look(struct hb_session *s, struct proc_state *ps)
{
	const struct hb_py_runtime *r;
	u32 n, index = 0;

	r = hb_python__runtimes(ps->python, &n);
	for (u32 i = 0; i < n; i++) {
		if (r[i].state != HB_PY_READY)
			continue;
		if (!s->pycalls || !s->pycalls->hooks)
			take_back(s, ps->p, &r[i]);
		if (s->pycalls)
			look_at(s, ps, &r[i], index);
		index++;
	}
}

void hb_session_pycalls__fork(struct hb_session *s, u32 parent, u32 child)
{
	if (s->pycalls && s->pycalls->hooks)
		hb_pyhooks__fork(s->pycalls->hooks, parent, child);
}

void hb_session_pycalls__forget(struct hb_session *s, u32 pid)
{
	if (!s->pycalls)
		return;
	hb_attach__forget(s->pycalls->attach, pid);
	for (struct seat *t = s->pycalls->seats; t; t = t->next)
		t->pid = t->pid == pid ? 0 : t->pid;
}

void hb_session_pycalls__detach(struct hb_session *s, u64 deadline)
{
	if (!s->pycalls)
		return;
	hb_session_pycalls__tick(s);
	if (s->pycalls->hooks)
		hb_pyhooks__unset(s->pycalls->hooks);
	hb_attach__detach(s->pycalls->attach, deadline);
}

/* ---- which of them, on the pump ---- */

static bool wanted(const struct hb_session *s, const struct hb_py_place *at, bool qualified)
{
	if (hb_py_place__is_shim(at))
		return false;
	for (u32 i = 0; i < s->o.n_calls; i++)
		if (hb_py_pattern__matches(&s->o.calls[i], at->file, at->func, qualified))
			return true;
	return hb_session__wants_all_calls(&s->o);
}

/* Loss of calls is only known where all are wanted: one that cannot be read may be one that nobody asked for.
 */
static void on_call(const struct hb_wire *w, const void *payload, void *arg)
{
	struct hb_rec_py_call rec = *(const struct hb_rec_py_call *)payload;
	struct hb_session *s = arg;
	struct hb_py_function f = {0};
	struct hb_py_place at;
	bool qualified, keep = hb_session__wants_all_calls(&s->o), fields = false;

	if (hb_session_python__function(s, w->pid, rec.code, &at, &f.mark, &qualified)) {
		struct hb_loc loc = {.lang = HB_LANG_PYTHON, .line = at.line};

		fields = hb_session_pyfields__judge(s, w->pid, rec.code, &at, qualified);
		keep = fields || wanted(s, &at, qualified);
		f.flags = (keep ? HB_PY_FUNCTION_RECORD : 0) | (fields ? HB_PY_FUNCTION_FIELDS : 0);
		if (keep) {
			loc.func = hb_window_writer__string(s->writer, at.func);
			loc.file = hb_window_writer__string(s->writer, at.file);
			f.func = hb_window_writer__loc(s->writer, &loc);
		}
		hb_bpf__judge(s->bpf, w->pid, rec.code, &f);
	} else {
		s->pycalls->unresolved++;
	}
	rec.func = f.func;
	if (keep)
		hb_collect__instead(s->collect, HB_TYPE_py_call, w->pid, w->tid, w->ts, &rec);
	if (fields)
		hb_session_pyfields__unread(s, w, &at, qualified, w->ts - rec.dur);
}

int hb_session_pycalls__subscribe(struct hb_session *s)
{
	return s->pycalls ? hb_collect__divert(s->collect, HB_WIRE_PY_CALL, on_call, s) : 0;
}

void hb_session_pycalls__account(struct hb_session *s)
{
	struct hb_loss_row rows[] = {{.cause = HB_LOSS_PY_UNRESOLVED}, {.cause = HB_LOSS_UNFINISHED}};

	if (!s->pycalls)
		return;
	rows[0].count = s->pycalls->unresolved;
	rows[1].count = hb_bpf__open_python_calls(s->bpf);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		rows[i].type = HB_TYPE_py_call;
		rows[i].cpu = UINT32_MAX;
		if (rows[i].count)
			hb_window_writer__loss(s->writer, &rows[i]);
	}
}
