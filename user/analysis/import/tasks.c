/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analysis/import/tasks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/map.h"
#include "analysis/import/import.h"

#define MADE_ID 0x40000000u /* Linux goes up to 0x400000 */

struct id { /* as in the trace */
	bool number;
	s64 v; /* number, or name */
};

struct proc {
	struct id id;
	u8 source; /* file */
	bool made; /* its number is none of the trace: the trace's is taken, or none of Linux */
	u32 name;  /* of metadata; 0 = none */
	u64 rows;  /* of its threads */
	u32 pid;   /* made */
	u16 index; /* of its main thread in the window */
};

struct task {
	struct id id;
	u32 proc, name;
	u64 rows;
	u32 tid; /* made */
	u16 index;
};

struct hb_tasks {
	struct hb_names *names;
	struct hb_map *by_id, *used; /* (process, id) -> number; ids that are taken */
	struct hb_map *pids;	     /* those of processes */
	struct hb_buf proc, task;
	u32 main[HB_IMPORT_FILES], n_host, next;
	u8 source; /* of the rows that come now */
};

#define PROC(t, n)  (&((struct proc *)(t)->proc.data)[(n)-1])
#define TASK(t, n)  (&((struct task *)(t)->task.data)[(n)-1])
#define N_PROCS(t)  ((u32)((t)->proc.size / sizeof(struct proc)))
#define N_TASKS(t)  ((u32)((t)->task.size / sizeof(struct task)))
#define LINUX_ID(v) ((v) > 0 && (v) < MADE_ID)

struct hb_tasks *hb_tasks__new(struct hb_names *n)
{
	struct hb_tasks *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->names = n;
	t->by_id = hb_map__new();
	t->used = hb_map__new();
	t->pids = hb_map__new();
	t->next = MADE_ID;
	if (t->by_id && t->used && t->pids)
		return t;
	hb_tasks__free(t);
	return NULL;
}

void hb_tasks__free(struct hb_tasks *t)
{
	if (!t)
		return;
	hb_map__free(t->by_id);
	hb_map__free(t->used);
	hb_map__free(t->pids);
	hb_buf__free(&t->proc);
	hb_buf__free(&t->task);
	free(t);
}

/* ---- rows ---- */

/* "27456 (python)" is a number too; so is a missing one: 0, as the profiler writes for what it does not know.
 */
static bool read_id(struct hb_tasks *t, const struct hb_cell *c, struct id *id)
{
	struct hb_piece p = c->text;

	*id = (struct id){.number = true};
	if (!c->kind || !p.n || hb_text__decimal(p, 0, &id->v))
		return true;
	if (c->kind == HB_CELL_STRING && *p.s >= '0' && *p.s <= '9' && hb_text__digits(p, &id->v))
		return true;
	*id = (struct id){.v = hb_names__id(t->names, p)};
	return id->v != 0;
}

static u64 key_of(u32 proc, struct id id)
{
	return hb_hash64(hb_hash64((u64)id.v) ^ ((u64)proc << 1 | id.number));
}

static u32 proc_of(struct hb_tasks *t, struct id id)
{
	u64 *slot = hb_map__slot(t->by_id, hb_hash64(key_of(0, id) + t->source), NULL);
	struct proc p = {.id = id, .source = t->source};

	if (!slot || *slot)
		return slot ? (u32)*slot : 0;
	hb_buf__add(&t->proc, &p, sizeof(p));
	*slot = t->proc.oom ? 0 : N_PROCS(t);
	return (u32)*slot;
}

static u32 task_of(struct hb_tasks *t, u32 proc, struct id id)
{
	u64 *slot = proc ? hb_map__slot(t->by_id, key_of(proc, id), NULL) : NULL;
	struct task row = {.id = id, .proc = proc};

	if (!slot || *slot)
		return slot ? (u32)*slot : 0;
	hb_buf__add(&t->task, &row, sizeof(row));
	*slot = t->task.oom ? 0 : N_TASKS(t);
	return (u32)*slot;
}

void hb_tasks__source(struct hb_tasks *t, u8 source)
{
	t->source = source;
}

static u32 find(struct hb_tasks *t, const struct hb_row *r, u32 *proc)
{
	struct id pid, tid;

	if (!read_id(t, &r->cell[HB_COL_PID], &pid) || !read_id(t, &r->cell[HB_COL_TID], &tid))
		return 0;
	*proc = proc_of(t, pid);
	return task_of(t, *proc, tid);
}

u32 hb_tasks__of(struct hb_tasks *t, const struct hb_row *r)
{
	u32 proc, task = find(t, r, &proc);

	if (task) {
		PROC(t, proc)->rows++;
		TASK(t, task)->rows++;
	}
	return task;
}

/* "thread 19392 (python3)" -> "python3" */
static struct hb_piece thread_name(struct hb_piece p)
{
	struct hb_piece rest = p;
	const char *open;

	if (!hb_piece__skip(&rest, "thread ") || !p.n || p.s[p.n - 1] != ')')
		return p;
	open = memchr(rest.s, '(', rest.n);
	return open ? (struct hb_piece){open + 1, (size_t)(p.s + p.n - open - 2)} : p;
}

int hb_tasks__name(struct hb_tasks *t, const struct hb_row *r)
{
	struct hb_piece what = hb_row__text(r, HB_COL_NAME), name = hb_row__text(r, HB_ARG_NAME);
	bool thread = hb_piece__is(what, "thread_name");
	u32 proc, task, id;

	if ((!thread && !hb_piece__is(what, "process_name")) || !name.n || hb_piece__is(name, "?"))
		return 0;
	task = find(t, r, &proc);
	id = hb_names__id(t->names, thread ? thread_name(name) : name);
	if (!task || !id)
		return id ? -ENOMEM : 0;
	if (thread)
		TASK(t, task)->name = id;
	else
		PROC(t, proc)->name = id;
	return 0;
}

/* ---- ids ---- */

static bool take(struct hb_tasks *t, u32 id)
{
	bool fresh = false;

	return hb_map__slot(t->used, id, &fresh) && fresh;
}

static u32 make_id(struct hb_tasks *t)
{
	while (!take(t, t->next))
		t->next++;
	return t->next++;
}

static void choose_main(struct hb_tasks *t)
{
	for (u32 i = 1; i <= N_PROCS(t); i++) {
		struct proc *p = PROC(t, i);
		u32 *main = &t->main[p->source];
		struct proc *m = *main ? PROC(t, *main) : NULL;
		bool is = p->id.number && LINUX_ID(p->id.v), was = m && m->id.number && LINUX_ID(m->id.v);

		if (p->rows && (!m || is > was || (is == was && p->rows > m->rows)))
			*main = i;
	}
}

static bool is_main(const struct hb_tasks *t, u32 proc)
{
	return t->main[PROC(t, proc)->source] == proc;
}

/* False: a process of a file before this one has the number. */
static bool take_pid(struct hb_tasks *t, s64 pid)
{
	bool fresh = false;

	return hb_map__slot(t->pids, (u64)pid, &fresh) && fresh;
}

/* Process 0 is what the profiler calls a thread that it does not know: one of the process that it ran in. */
static void make_pids(struct hb_tasks *t)
{
	for (u32 i = 1; i <= N_PROCS(t); i++) {
		struct proc *p = PROC(t, i);

		if (!p->rows || (p->id.number && !p->id.v && !is_main(t, i)))
			continue;
		p->made = !p->id.number || !LINUX_ID(p->id.v) || !take_pid(t, p->id.v);
		p->pid = p->made ? make_id(t) : (u32)p->id.v;
		t->n_host++;
	}
	for (u32 i = 1; i <= N_PROCS(t); i++)
		if (PROC(t, i)->rows && !PROC(t, i)->pid)
			PROC(t, i)->pid = PROC(t, t->main[PROC(t, i)->source])->pid;
}

/* The thread that has its process' number keeps it; then those with numbers of their own; then the others. */
static void make_tids(struct hb_tasks *t)
{
	for (unsigned turn = 0; turn < 3; turn++)
		for (u32 i = 1; i <= N_TASKS(t); i++) {
			struct task *k = TASK(t, i);
			s64 v = k->id.number ? (k->id.v < 0 ? -(k->id.v + 1) + 1 : k->id.v) : 0;
			const struct proc *p = PROC(t, k->proc);
			bool leader =
			    k->id.number && (v == p->pid || (p->made && p->id.number && v == p->id.v));

			if (!k->rows || k->tid || (turn == 0 && !leader) || (turn == 1 && k->id.v < 0))
				continue;
			if (turn == 0 && p->made)
				k->tid = p->pid;
			else if (LINUX_ID(v) && (take(t, (u32)v) || turn == 0))
				k->tid = (u32)v;
			else if (turn == 2)
				k->tid = make_id(t);
		}
}

/* ---- into the window ---- */

static u16 write_task(const struct hb_tasks *t, struct hb_window_writer *w, u32 pid, u32 tid, u32 name)
{
	struct hb_task row = {.pid = pid,
			      .tid = tid,
			      .nspid = pid,
			      .nstid = tid,
			      .comm = hb_names__string(t->names, name),
			      .target = 1};

	return hb_window_writer__task(w, &row);
}

static bool write_procs(struct hb_tasks *t, struct hb_window_writer *w, u64 since)
{
	bool ok = true;

	for (u32 i = 1; i <= N_PROCS(t); i++) {
		struct proc *p = PROC(t, i);
		u32 name = p->name ? p->name : PROC(t, t->main[p->source])->name;
		struct hb_proc row = {.pid = p->pid,
				      .nspid = p->pid,
				      .cmdline = hb_names__string(t->names, name),
				      .how = HB_HOW_PRESENT,
				      .since = since};

		if (!p->rows)
			continue;
		p->index = write_task(t, w, p->pid, p->pid, name);
		/* Process 0 has the main one's number, and that is what is known of it. */
		if (p->pid != PROC(t, t->main[p->source])->pid || is_main(t, i))
			ok &= hb_window_writer__proc(w, &row) != 0;
	}
	return ok;
}

/* A trace without any row of the host: what is on the device belongs to somebody. */
static bool make_main(struct hb_tasks *t, u8 source)
{
	u32 *main = &t->main[source];

	if (*main)
		return true;
	hb_tasks__source(t, source);
	*main = proc_of(t, (struct id){.number = true, .v = -1});
	if (*main)
		PROC(t, *main)->rows = 1;
	return *main != 0;
}

int hb_tasks__write(struct hb_tasks *t, unsigned sources, struct hb_window_writer *w, u64 since,
		    struct hb_error *e)
{
	bool ok = true;

	choose_main(t);
	for (unsigned i = 0; i < sources; i++)
		ok = ok && make_main(t, (u8)i);
	if (ok) {
		make_pids(t);
		make_tids(t);
		ok = write_procs(t, w, since);
	}
	for (u32 i = 1; ok && i <= N_TASKS(t); i++) {
		struct task *k = TASK(t, i);

		if (k->rows)
			k->index = write_task(t, w, PROC(t, k->proc)->pid, k->tid,
					      k->name ? k->name : PROC(t, k->proc)->name);
	}
	return ok ? 0 : hb_error__nomem(e, "threads of the trace");
}

u32 hb_tasks__count(const struct hb_tasks *t)
{
	return N_TASKS(t);
}

u32 hb_tasks__proc(const struct hb_tasks *t, u32 task)
{
	return TASK(t, task)->proc;
}

u16 hb_tasks__index(const struct hb_tasks *t, u32 task)
{
	return TASK(t, task)->index;
}

u32 hb_tasks__procs(const struct hb_tasks *t)
{
	return t->n_host;
}

u32 hb_tasks__main(const struct hb_tasks *t, u8 source)
{
	return t->main[source];
}

u32 hb_tasks__pid(const struct hb_tasks *t, u32 proc)
{
	return PROC(t, proc)->pid;
}

u16 hb_tasks__proc_index(const struct hb_tasks *t, u32 proc)
{
	return PROC(t, proc)->index;
}

static void set_comm(const struct hb_tasks *t, hb_comm *c, u32 name)
{
	const char *text = hb_names__text(t->names, name);

	memset(c, 0, sizeof(*c));
	memcpy(c->c, text, strnlen(text, sizeof(c->c) - 1));
}

int hb_tasks__records(const struct hb_tasks *t,
		      int (*put)(void *ctx, u16 task, unsigned type, const void *rec), void *ctx)
{
	int err = 0;

	for (u32 i = 1; i <= N_PROCS(t) && !err; i++) {
		const struct proc *p = PROC(t, i);
		struct hb_rec_process r = {.nspid = p->pid, .how = HB_HOW_PRESENT};

		if (!p->rows || (p->pid == PROC(t, t->main[p->source])->pid && !is_main(t, i)))
			continue;
		set_comm(t, &r.name, p->name);
		err = put(ctx, p->index, HB_TYPE_process, &r);
	}
	for (u32 i = 1; i <= N_TASKS(t) && !err; i++) {
		const struct task *k = TASK(t, i);
		struct hb_rec_thread r = {.nstid = k->tid, .how = HB_HOW_PRESENT};

		if (!k->rows)
			continue;
		set_comm(t, &r.name, k->name ? k->name : PROC(t, k->proc)->name);
		err = put(ctx, k->index, HB_TYPE_thread, &r);
	}
	return err;
}
