/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Exceptions, GIL and garbage collections in a session: probes in the interpreters' files and in libstdc++,
 * what the kernel's programs have to know of each process, and, at the end, the exceptions that were counted
 * without a record.
 */
#include "capture/session/impl.h"
#include "capture/python/events.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOOK_NS 1000000000ULL /* how often a process is asked for new GILs */

struct file { /* probed, or found to have nothing to probe */
	struct hb_py_image image;
	struct hb_plan_file plan; /* its sites */
	bool whole;		  /* with return probes */
};

struct hb_session_pyevents {
	struct hb_attach *attach;
	struct file **files; /* those attached keep their addresses */
	u32 n_files;
	u64 looked;
};

int hb_session_pyevents__begin(struct hb_session *s, struct hb_error *e)
{
	struct hb_attach_ops ops = hb_bpf__py_events(s->bpf);
	struct hb_session_pyevents *p;

	if (!s->python)
		return 0;
	p = calloc(1, sizeof(*p));
	if (p)
		p->attach = hb_attach__new(&ops);
	s->pyevents = p;
	return p && p->attach ? 0 : hb_error__nomem(e, "Python's events");
}

static void file_free(struct file *f)
{
	for (u32 i = 0; i < f->plan.n_sites; i++)
		free(f->plan.sites[i].symbol);
	free(f->plan.sites);
	free(f->plan.path);
	free(f);
}

void hb_session_pyevents__free(struct hb_session *s)
{
	struct hb_session_pyevents *p = s->pyevents;

	if (!p)
		return;
	hb_attach__free(p->attach);
	for (u32 i = 0; i < p->n_files; i++)
		file_free(p->files[i]);
	free(p->files);
	free(p);
	s->pyevents = NULL;
}

/* ---- files ---- */

/* Without return probes the collector's function cannot be timed: then it is left alone. */
static int plan_sites(struct file *f, bool whole)
{
	struct hb_plan_file *plan = &f->plan;

	plan->sites = calloc(f->image.n_sites + 1, sizeof(*plan->sites));
	if (!plan->sites)
		return -ENOMEM;
	for (u32 i = 0; i < f->image.n_sites; i++) {
		const struct hb_py_site *from = &f->image.site[i];

		if (from->ret && !whole)
			continue;
		plan->sites[plan->n_sites++] = (struct hb_site){.probe = from->cookie,
								.offset = from->offset,
								.counter = from->counter,
								.ret = from->ret,
								.symbol = strdup(from->symbol)};
	}
	return 0;
}

static struct file *new_file(const struct hb_process *p, const struct hb_mapping *m,
			     const struct hb_py_runtime *r, bool whole)
{
	struct file *f = calloc(1, sizeof(*f));
	int err;

	if (!f)
		return NULL;
	err = r ? hb_py_image__read(p, m, r, &f->image) : hb_py_image__read_cxx(p, m, &f->image);
	f->plan.ino = m->ino;
	f->plan.dev = m->dev;
	f->plan.path = strdup(m->path);
	f->whole = whole;
	if (err || !f->plan.path || plan_sites(f, whole)) {
		file_free(f);
		return NULL;
	}
	return f;
}

static struct file *file_of(struct hb_session_pyevents *e, const struct hb_process *p,
			    const struct hb_mapping *m, const struct hb_py_runtime *r)
{
	bool whole = !p->seccomp || hb_plan__confined_returns_work();
	struct file *f, **more;

	for (u32 i = 0; i < e->n_files; i++)
		if (e->files[i]->plan.ino == m->ino && e->files[i]->plan.dev == m->dev &&
		    e->files[i]->whole == whole)
			return e->files[i];
	f = new_file(p, m, r, whole);
	more = f ? reallocarray(e->files, e->n_files + 1, sizeof(*more)) : NULL;
	if (!more) {
		if (f)
			file_free(f);
		return NULL;
	}
	e->files = more;
	e->files[e->n_files++] = f;
	return f;
}

static void attach(struct hb_session *s, const struct hb_process *p, const struct hb_mapping *m,
		   const struct file *f)
{
	struct hb_error why = {0};
	int n = hb_attach__file(s->pyevents->attach, p, m, &f->plan, &why);

	if (n < 0 && n != -ESRCH && hb_session__may_remark(s))
		hb_warn("pid %u: exceptions and garbage collections are not seen: %s", p->pid,
			why.err ? why.text : strerror(-n));
}

/* ---- processes, on the control thread ---- */

static const struct hb_py_image *look_at_runtime(struct hb_session *s, const struct proc_state *ps,
						 const struct hb_py_runtime *r)
{
	const struct hb_mapping *m = hb_py_runtime__mapping(r, ps->p);
	struct file *f = m ? file_of(s->pyevents, ps->p, m, r) : NULL;

	if (!f)
		return NULL;
	if (s->o.exceptions != HB_EXCEPTIONS_OFF || f->image.gc != HB_PY_GC_NONE)
		attach(s, ps->p, m, f);
	return &f->image;
}

static void look_at_cxx(struct hb_session *s, const struct proc_state *ps)
{
	const struct hb_process *p = ps->p;

	for (u32 i = 0; i < p->n_maps; i++) {
		struct file *f;

		if (!hb_py_image__is_cxx(p->maps[i].path))
			continue;
		f = file_of(s->pyevents, p, &p->maps[i], NULL);
		if (f)
			attach(s, p, &p->maps[i], f);
		return;
	}
}

void hb_session_pyevents__look(struct hb_session *s, struct proc_state *ps)
{
	const struct hb_py_image *image[HB_PY_RUNTIMES] = {NULL};
	const struct hb_py_runtime *r;
	struct hb_py_events e;
	u32 n;

	if (!s->pyevents || !ps->python)
		return;
	r = hb_python__runtimes(ps->python, &n);
	for (u32 i = 0; i < n; i++)
		if (r[i].state == HB_PY_READY)
			image[i] = look_at_runtime(s, ps, &r[i]);
	hb_py_events__fill(ps->p->pid, ps->python, image, &e);
	hb_bpf__set_py_events(s->bpf, ps->p->pid, &e);
	if (s->o.exceptions != HB_EXCEPTIONS_OFF)
		look_at_cxx(s, ps);
}

void hb_session_pyevents__forget(struct hb_session *s, u32 pid)
{
	if (s->pyevents)
		hb_attach__forget(s->pyevents->attach, pid);
}

/* Interpreters that came to be meanwhile have a GIL of their own. */
void hb_session_pyevents__tick(struct hb_session *s)
{
	u64 now = hb_clock__now();

	if (!s->pyevents || now - s->pyevents->looked < LOOK_NS)
		return;
	s->pyevents->looked = now;
	for (u32 i = 0; i < s->n_procs; i++)
		if (s->procs[i].live && s->procs[i].python)
			hb_session_pyevents__look(s, &s->procs[i]);
}

void hb_session_pyevents__detach(struct hb_session *s, u64 deadline)
{
	if (s->pyevents)
		hb_attach__detach(s->pyevents->attach, deadline);
}

/* ---- at the end ---- */

static void emit_rest(const struct hb_py_raise_key *k, const struct hb_py_raise_count *c, void *arg)
{
	struct hb_session *s = arg;
	struct hb_rec_py_exception rec = {.exc_type = k->type,
					  .count = c->count - c->kept,
					  .unwound = c->unwound,
					  .site = k->site,
					  .origin = (u8)c->origin,
					  .flags = HB_PYEXC_REST,
					  .name = c->name};

	if (rec.count || rec.unwound)
		hb_session__emit(s, HB_TYPE_py_exception, k->tgid, k->tgid, s->end, &rec);
}

void hb_session_pyevents__account(struct hb_session *s)
{
	if (s->pyevents && s->o.exceptions != HB_EXCEPTIONS_OFF)
		hb_bpf__each_raise(s->bpf, emit_rest, s);
}
