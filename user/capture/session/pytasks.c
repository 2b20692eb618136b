/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Names of asyncio's tasks. Records carry the address of a task's root coroutine; after each draining of the
 * rings those that came are looked up among the tasks that are alive. An address serves one task after
 * another, so each that comes is looked at again: where it is another task's than the last time, what came
 * between the two looks could be of either and gets no name. All of it is on the pump, and bounded in time.
 */
#include "capture/session/impl.h"
#include "capture/python/tasks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LOOK_NS	    10000000ULL	 /* between two looks at all tasks */
#define FIND_NS	    500000000ULL /* between two searches for asyncio where it is not */
#define MAX_LOOK_NS 50000000ULL	 /* of each second, for looks */
#define MAX_AT_ONCE 4096

struct identity {
	u64 task, first; /* first: time of the earliest record since the last look; 0: none came */
	u32 pid, name;	 /* name: string; 0: never read */
	bool gone;	 /* no such task was alive at the last look */
	bool unread;	 /* without a name although there is asyncio */
};

struct process {
	u32 pid;
	bool found;
	u64 searched;
	struct hb_py_asyncio asyncio;
};

struct hb_session_pytasks {
	struct hb_map *by_task; /* of (pid, task) -> index of identity + 1 */
	struct identity *list;
	u32 n, cap, waiting;
	u32 *todo; /* those that came since the last look */
	struct process *processes;
	u32 n_processes;
	u64 looked, second, spent, mixed;
	struct source {
		struct hb_session *s;
		u16 offset;
	} sources[HB_TYPE_MAX];
};

static bool grow(struct hb_session_pytasks *p)
{
	u32 cap = p->cap ? 2 * p->cap : 256;
	struct identity *list = reallocarray(p->list, cap, sizeof(*list));
	u32 *todo;

	if (!list)
		return false;
	p->list = list;
	todo = reallocarray(p->todo, cap, sizeof(*todo));
	if (!todo)
		return false;
	p->todo = todo;
	p->cap = cap;
	return true;
}

static struct identity *identity_of(struct hb_session_pytasks *p, u32 pid, u64 task)
{
	u64 *slot = hb_map__slot(p->by_task, hb_hash64((u64)pid << 47 ^ task), NULL);

	if (slot && !*slot && (p->n < p->cap || grow(p))) {
		p->list[p->n] = (struct identity){.task = task, .pid = pid};
		*slot = ++p->n;
	}
	return slot && *slot ? &p->list[*slot - 1] : NULL;
}

static void on_record(const struct hb_wire *w, const void *payload, void *arg)
{
	const struct source *from = arg;
	struct hb_session_pytasks *p = from->s->pytasks;
	struct identity *i;
	u64 task;

	memcpy(&task, (const char *)payload + from->offset, sizeof(task));
	i = task ? identity_of(p, w->pid, task) : NULL;
	if (!i)
		return;
	if (!i->first)
		p->todo[p->waiting++] = (u32)(i - p->list);
	if (!i->first || w->ts < i->first)
		i->first = w->ts;
}

/* ---- looks ---- */

static struct process *process_of(struct hb_session *s, u32 pid)
{
	struct hb_session_pytasks *p = s->pytasks;
	struct process *more;

	for (u32 i = 0; i < p->n_processes; i++)
		if (p->processes[i].pid == pid)
			return &p->processes[i];
	more = reallocarray(p->processes, p->n_processes + 1, sizeof(*more));
	if (!more)
		return NULL;
	p->processes = more;
	more = &p->processes[p->n_processes++];
	memset(more, 0, sizeof(*more));
	more->pid = pid;
	return more;
}

static bool has_asyncio(struct hb_session *s, struct process *p, u64 now)
{
	struct hb_py_asyncio *a = &p->asyncio;

	if (!p->found && (!p->searched || now - p->searched > FIND_NS)) {
		p->searched = now;
		p->found = hb_session_python__interpreter(s, p->pid, &a->heap, &a->runtime) &&
			   hb_py_asyncio__find(a);
	}
	return p->found;
}

static void put_row(struct hb_session *s, const struct identity *i, u64 since, u32 name)
{
	struct hb_pytask_row row = {.task = i->task, .since = since, .pid = i->pid, .name = name};

	hb_window_writer__pytask(s->writer, &row);
}

static void settle(struct hb_session *s, struct identity *i, const struct hb_py_wanted *w, u64 now)
{
	u32 name = w->found ? hb_window_writer__string(s->writer, w->name) : 0;

	if (name && i->name && !i->gone && name != i->name) {
		put_row(s, i, i->first, 0);
		put_row(s, i, now, name);
		s->pytasks->mixed++;
	} else if (name != i->name && (name || i->gone)) {
		put_row(s, i, i->first, name);
	}
	i->unread = !name && (!i->name || i->gone);
	i->gone = !name;
	i->name = name ? name : i->unread ? 0 : i->name;
	i->first = 0;
}

static int by_coro(const void *a, const void *b)
{
	const struct hb_py_wanted *x = a, *y = b;

	return (x->coro > y->coro) - (x->coro < y->coro);
}

/* All that came of one process; those of others stay. */
static void look_at(struct hb_session *s, u32 pid, u64 now)
{
	struct hb_session_pytasks *p = s->pytasks;
	struct hb_py_wanted *w = calloc(MAX_AT_ONCE, sizeof(*w));
	struct process *proc = process_of(s, pid);
	u32 n = 0, left = 0;

	for (u32 k = 0; w && k < p->waiting; k++) {
		struct identity *i = &p->list[p->todo[k]];

		if (i->pid == pid && n < MAX_AT_ONCE)
			w[n++].coro = i->task;
		else
			p->todo[left++] = p->todo[k];
	}
	if (w)
		p->waiting = left;
	if (n && proc && has_asyncio(s, proc, now)) {
		qsort(w, n, sizeof(*w), by_coro);
		hb_py_asyncio__names(&proc->asyncio, w, n);
	}
	for (u32 k = 0; k < n; k++) {
		struct identity *i = identity_of(p, pid, w[k].coro);

		if (i && proc && proc->found)
			settle(s, i, &w[k], hb_clock__now());
		else if (i)
			i->first = 0;
	}
	free(w);
}

static bool may_look(struct hb_session_pytasks *p, u64 now, bool last)
{
	if (now / 1000000000ULL != p->second)
		p->spent = 0;
	p->second = now / 1000000000ULL;
	return last || (now - p->looked >= LOOK_NS && p->spent < MAX_LOOK_NS);
}

void hb_session_pytasks__look(struct hb_session *s, bool last)
{
	struct hb_session_pytasks *p = s->pytasks;
	u64 now = hb_clock__now();
	u32 before = 0;

	if (!p || !p->waiting || !may_look(p, now, last))
		return;
	while (p->waiting && p->waiting != before) {
		before = p->waiting;
		look_at(s, p->list[p->todo[0]].pid, now);
	}
	p->looked = hb_clock__now();
	p->spent += p->looked - now;
}

/* ---- begin and end ---- */

/* Whatever record type has a member of that name. */
int hb_session_pytasks__subscribe(struct hb_session *s)
{
	struct hb_session_pytasks *p;
	int err = 0;

	if (!s->python)
		return 0;
	p = s->pytasks = calloc(1, sizeof(*p));
	if (p)
		p->by_task = hb_map__new();
	if (!p || !p->by_task)
		return -ENOMEM;
	for (unsigned id = 0; id < HB_TYPE_MAX; id++) {
		const struct hb_type *t = hb_schema__type(id);

		for (u32 k = 0; t && k < t->n_fields; k++) {
			if (strcmp(t->fields[k].name, "task") != 0)
				continue;
			p->sources[id] = (struct source){s, t->fields[k].offset};
			err = err ? err : hb_collect__subscribe(s->collect, id, on_record, &p->sources[id]);
		}
	}
	return err;
}

void hb_session_pytasks__account(struct hb_session *s)
{
	struct hb_session_pytasks *p = s->pytasks;
	struct hb_loss_row row = {.cause = HB_LOSS_PY_TASKS, .cpu = UINT32_MAX};

	if (!p)
		return;
	row.count = p->mixed;
	for (u32 i = 0; i < p->n; i++)
		row.count += p->list[i].unread;
	if (row.count)
		hb_window_writer__loss(s->writer, &row);
}

void hb_session_pytasks__free(struct hb_session *s)
{
	struct hb_session_pytasks *p = s->pytasks;

	if (!p)
		return;
	hb_map__free(p->by_task);
	free(p->list);
	free(p->todo);
	free(p->processes);
	free(p);
	s->pytasks = NULL;
}
