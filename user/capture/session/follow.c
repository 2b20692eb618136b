/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "capture/session/impl.h"
#include "capture/session/pycalls.h"
#include "capture/session/pyfields.h"
#include "base/text.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

#define MAX_REMARKS 20 /* on single processes while the window is open */

/* ---- the process table ---- */

static struct proc_state *find_proc(struct hb_session *s, u32 pid)
{
	u64 idx;

	return hb_map__get(s->by_pid, pid, &idx) ? &s->procs[idx - 1] : NULL;
}

static int add_proc(struct hb_session *s, struct hb_process *p, enum hb_how how, u64 since)
{
	int err = 0;

	pthread_mutex_lock(&s->procs_lock);
	if (s->n_procs == s->cap_procs) {
		u32 cap = s->cap_procs ? s->cap_procs * 2 : 16;
		struct proc_state *procs = realloc(s->procs, cap * sizeof(*procs));

		if (!procs) {
			err = -ENOMEM;
			goto out;
		}
		s->procs = procs;
		s->cap_procs = cap;
	}
	err = hb_map__put(s->by_pid, p->pid, s->n_procs + 1);
	if (err)
		goto out;
	s->procs[s->n_procs++] = (struct proc_state){.p = p, .live = true, .since = since, .how = how};
	s->n_live++;
out:
	pthread_mutex_unlock(&s->procs_lock);
	return err;
}

static void mark_dead(struct hb_session *s, u32 pid)
{
	struct proc_state *ps;

	pthread_mutex_lock(&s->procs_lock);
	ps = find_proc(s, pid);
	if (ps && ps->live) {
		ps->live = false;
		s->n_live--;
	}
	pthread_mutex_unlock(&s->procs_lock);
	if (s->attach)
		hb_attach__forget(s->attach, pid);
	hb_session_pycalls__forget(s, pid);
	hb_session_pyfields__forget(s, pid);
	hb_session_pyevents__forget(s, pid);
}

static void write_proc_row(struct hb_session *s, const struct proc_state *ps)
{
	const struct hb_process *p = ps->p;
	struct hb_proc row = {
	    .pid = p->pid,
	    .ppid = p->ppid,
	    .nspid = p->nspid,
	    .exe = hb_window_writer__string(s->writer, p->exe),
	    .cmdline = hb_window_writer__string(s->writer, p->cmdline),
	    .cgroup = hb_window_writer__string(s->writer, p->cgroup),
	    .container = hb_window_writer__string(s->writer, p->container),
	    .how = ps->how,
	    .start = p->start,
	    .since = ps->since,
	};

	hb_window_writer__proc(s->writer, &row);
}

/* ---- plan and attach ---- */

int hb_session__publish_rows(struct hb_session *s, struct hb_error *e)
{
	u32 n = hb_plan__n_probes(s->plan);
	int err;

	if (n == s->rows_written)
		return 0;
	err = hb_bpf__load_probes(s->bpf, s->plan, s->rows_written + 1, e);
	if (err)
		return err;
	if (s->writer)
		hb_plan__write_rows(s->plan, s->rows_written + 1, s->writer);
	s->rows_written = n;
	return 0;
}

/* A target may fork or load a library a thousand times: beyond some the counts in the window have to do. */
bool hb_session__may_remark(struct hb_session *s)
{
	s->n_remarks++;
	if (s->n_remarks == MAX_REMARKS + 1)
		hb_note("further remarks of this kind are left out; the window counts what was missed");
	return s->n_remarks <= MAX_REMARKS;
}

static void lose_stretch(struct hb_session *s)
{
	struct hb_loss_row loss = {
	    .cause = HB_LOSS_LATE, .type = HB_TYPE_accel, .cpu = UINT32_MAX, .count = 1};

	if (s->writer) /* before the window nothing is missed */
		hb_window_writer__loss(s->writer, &loss);
}

static void emit_probed(struct hb_session *s, const struct probed *p, u64 ts)
{
	struct hb_rec_probed rec = {.probes = p->probes, .late = p->late};

	rec.file = hb_window_writer__string(s->writer, p->path);
	if (p->late && hb_session__may_remark(s))
		hb_note("pid %u: %u probes in %s, %.2f ms after it was mapped or forked", p->pid, p->probes,
			hb_text__basename(p->path), (double)p->late / 1e6);
	if (p->late)
		lose_stretch(s);
	hb_session__emit(s, HB_TYPE_probed, p->pid, p->pid, ts, &rec);
}

/* What is attached before the window begins is told when it has begun. */
static void tell_probed(struct hb_session *s, u32 pid, const char *path, u32 probes, u64 born)
{
	u64 now = hb_clock__now();
	struct probed p = {
	    .pid = pid, .probes = probes, .path = path, .late = born && now > born ? now - born : 0};
	struct probed *more;

	if (s->writer) {
		emit_probed(s, &p, now);
		return;
	}
	more = realloc(s->probed, (s->n_probed + 1) * sizeof(*more));
	if (!more)
		return;
	s->probed = more;
	s->probed[s->n_probed++] = p;
}

/* Only what is new is attached, and told: probes stay where they are while a library is unmapped and mapped
 * again. */
void hb_session__attach_files(struct hb_session *s, const struct hb_process *p,
			      const struct hb_plan_file *const *files, u32 n_files, u64 born)
{
	for (u32 i = 0; i < n_files; i++) {
		const struct hb_mapping *m = hb_plan_file__mapping(files[i], p);
		struct hb_error why = {0};
		int n;

		if (!m || !files[i]->n_sites || hb_attach__has(s->attach, p->pid, files[i]))
			continue;
		n = hb_attach__file(s->attach, p, m, files[i], &why);
		if (n == -ESRCH) /* it, or its mapping, is gone again */
			lose_stretch(s);
		else if (n < 0 && !s->writer && !s->no_probe.err && why.err)
			s->no_probe = why; /* told when it is known whether all failed */
		else if (n < 0 && hb_session__may_remark(s))
			hb_warn("pid %u: %s", p->pid, why.err ? why.text : strerror(-n));
		else if (n > 0)
			tell_probed(s, p->pid, files[i]->path, (u32)n, born);
	}
}

static int plan_and_attach(struct hb_session *s, struct hb_process *p, u64 born, struct hb_error *e)
{
	const struct hb_plan_file *const *files;
	int err = hb_plan__add_process(s->plan, p, e);
	u32 n;

	if (err < 0)
		return err;
	err = hb_session__publish_rows(s, e);
	if (err)
		return err;
	hb_resolve__learn(s->resolve, p->pid);
	hb_session_python__look(s, find_proc(s, p->pid));
	hb_session_pyevents__look(s, find_proc(s, p->pid));
	/* A library that came later may have changed what is taken where: a function must not have two
	 * probes.
	 */
	hb_attach__trim(s->attach, s->plan, p);
	files = hb_plan__files_of(s->plan, p->pid, &n);
	hb_session__attach_files(s, p, files, n, born);
	return hb_arrival__begin(s, find_proc(s, p->pid), e);
}

/* A debugger that sets a breakpoint where a probe lies saves the probe's instruction as the program's own,
 * and puts it back when all probes are gone: the target then dies of SIGTRAP. */
static void warn_of_debugger(struct hb_session *s, const struct hb_process *p)
{
	if (p->tracer && hb_session__may_remark(s))
		hb_warn("pid %u is being debugged (by pid %u): set no breakpoints in probed functions while "
			"the window "
			"is open",
			p->pid, p->tracer);
}

int hb_session__follow(struct hb_session *s, u32 pid, enum hb_how how, u64 born, struct hb_error *e)
{
	struct hb_process *p;
	int err;

	if (find_proc(s, pid))
		return 0;
	p = hb_process__read(pid, e);
	if (!p)
		return e->err ? e->err : -ESRCH;
	err = add_proc(s, p, how, born ? hb_clock__now() : 0);
	if (err) {
		hb_process__free(p);
		return err;
	}
	warn_of_debugger(s, p);
	if (s->lock && how != HB_HOW_PRESENT)
		hb_target_lock__add(s->lock, pid);
	err = plan_and_attach(s, p, born, e);
	if (s->writer)
		write_proc_row(s, find_proc(s, pid));
	return err;
}

int hb_session__remap(struct hb_session *s, u32 pid, u64 since, struct hb_error *e)
{
	struct proc_state *ps = find_proc(s, pid);
	int err;

	if (!ps || !ps->live)
		return 0;
	err = hb_process__reload_maps(ps->p);
	return err ? err : plan_and_attach(s, ps->p, since, e);
}

/* ---- the window begins ---- */

static void emit_present(struct hb_session *s, const struct proc_state *ps, u64 ts)
{
	const struct hb_process *p = ps->p;
	struct hb_rec_process rec = {.ppid = p->ppid, .nspid = p->nspid, .how = ps->how};
	u32 n, *tids = hb_process__threads(p->pid, &n);

	memcpy(rec.name.c, p->comm, sizeof(rec.name.c));
	hb_session__emit(s, HB_TYPE_process, p->pid, p->pid, ts, &rec);
	for (u32 i = 0; tids && i < n; i++) {
		struct hb_rec_thread th = {.how = ps->how};

		if (tids[i] == p->pid || hb_thread__read(p->pid, tids[i], &th.nstid, th.name.c))
			continue;
		hb_session__emit(s, HB_TYPE_thread, p->pid, tids[i], ts, &th);
	}
	free(tids);
}

/* Children that were forked between resolving and arming belong to the target but nobody saw them start. */
void hb_session__adopt_strays(struct hb_session *s)
{
	struct hb_error e = {0};
	u32 *pids, n;

	if (s->o.target.no_children || hb_selector__resolve(&s->o.target, &pids, &n, &e))
		return;
	for (u32 i = 0; i < n; i++) {
		struct hb_target_cfg cfg = {.flags = HB_TARGET_FOLLOW};

		if (find_proc(s, pids[i]))
			continue;
		if (s->begin)
			hb_bpf__add_target(s->bpf, pids[i], &cfg);
		hb_session__follow(s, pids[i], s->begin ? HB_HOW_FOUND : HB_HOW_PRESENT, s->begin, &e);
	}
	free(pids);
}

void hb_session__arm(struct hb_session *s)
{
	for (u32 i = 0; i < s->n_procs; i++) {
		struct hb_target_cfg cfg = {.flags = s->o.target.no_children ? 0 : HB_TARGET_FOLLOW,
					    .nspid = s->procs[i].p->nspid};

		hb_bpf__add_target(s->bpf, s->procs[i].p->pid, &cfg);
	}
	s->begin = hb_bpf__begin_calls(s->bpf);
}

void hb_session__introduce(struct hb_session *s)
{
	u32 n = s->n_procs;

	/* Rows of processes taken in before the file existed. */
	hb_plan__write_rows(s->plan, 1, s->writer);
	for (u32 i = 0; i < n; i++) {
		s->procs[i].since = s->begin;
		write_proc_row(s, &s->procs[i]);
		emit_present(s, &s->procs[i], s->begin);
	}
	for (u32 i = 0; i < s->n_probed; i++)
		emit_probed(s, &s->probed[i], s->begin);
	hb_session__adopt_strays(s);
}

/* ---- what happens meanwhile ---- */

static void queue_life(const struct hb_wire *w, const void *payload, void *arg)
{
	struct hb_session *s = arg;
	struct life_event ev = {.ts = w->ts, .pid = w->pid, .type = w->type};

	if (w->type == HB_TYPE_exit && !((const struct hb_rec_exit *)payload)->last)
		return;
	if (w->type == HB_TYPE_process && ((const struct hb_rec_process *)payload)->how != HB_HOW_FORKED)
		return;
	if (w->type == HB_TYPE_process)
		hb_session_python__fork(s, ((const struct hb_rec_process *)payload)->ppid, w->pid);
	pthread_mutex_lock(&s->queue_lock);
	if (s->n_queue == s->cap_queue) {
		u32 cap = s->cap_queue ? s->cap_queue * 2 : 64;
		struct life_event *q = realloc(s->queue, cap * sizeof(*q));

		if (q) {
			s->queue = q;
			s->cap_queue = cap;
		}
	}
	if (s->n_queue < s->cap_queue)
		s->queue[s->n_queue++] = ev;
	else
		s->life_lost++;
	pthread_mutex_unlock(&s->queue_lock);
	eventfd_write(s->queue_fd, 1);
}

static bool next_life(struct hb_session *s, u32 *pos, struct life_event *ev)
{
	bool got;

	pthread_mutex_lock(&s->queue_lock);
	got = *pos < s->n_queue;
	if (got)
		*ev = s->queue[(*pos)++];
	else
		s->n_queue = 0;
	pthread_mutex_unlock(&s->queue_lock);
	return got;
}

/* Attaching takes milliseconds a process: a target that forks a thousand times must not make the window
 * longer. */
static bool too_late(const struct hb_session *s)
{
	return *s->stop || hb_clock__now() - s->begin >= s->o.duration;
}

void hb_session__handle_life(struct hb_session *s)
{
	struct life_event ev;
	eventfd_t ignored;
	u32 pos = 0;

	eventfd_read(s->queue_fd, &ignored);
	while (next_life(s, &pos, &ev)) {
		struct hb_error e = {0};

		if (ev.type == HB_TYPE_exit)
			mark_dead(s, ev.pid);
		else if (too_late(s))
			lose_stretch(s);
		else if (ev.type == HB_TYPE_process && !s->o.target.no_children)
			hb_session__follow(s, ev.pid, HB_HOW_FORKED, ev.ts, &e);
		else if (ev.type == HB_TYPE_exec)
			hb_session__remap(s, ev.pid, ev.ts, &e);
		/* A process that is gone again is no news, but where there are probes it lived without them.
		 */
		if (e.err == -ESRCH && hb_plan__n_probes(s->plan))
			lose_stretch(s);
		if (e.err && e.err != -ESRCH && hb_session__may_remark(s))
			hb_warn("pid %u: %s", ev.pid, e.text);
	}
}

struct mapped {
	struct hb_session *s;
	u32 pid;
	u64 ts;
};

static bool wanted(const struct hb_session *s, const char *path)
{
	u32 n;
	const struct hb_row *rows = hb_tables__rows(s->tables, &n);

	for (u32 i = 0; i < n; i++)
		if (hb_row__covers_library(&rows[i], path))
			return true;
	return s->python && (hb_python__is_library(path) || (s->pycalls && hb_py_calls__swaps_stacks(path)));
}

/* Probes stay while a library is unmapped and mapped again. */
static bool has_probes(const struct hb_session *s, const struct hb_mmap_event *ev)
{
	u32 n;
	const struct hb_plan_file *f = hb_plan__files(s->plan, &n);

	for (u32 i = 0; i < n; i++)
		if (f[i].ino == ev->ino && f[i].dev == ev->dev)
			return hb_attach__has(s->attach, ev->pid, &f[i]);
	return false;
}

/* A loader maps a library in several steps and many libraries in a row: one look at the process serves all
 * events that are already waiting. */
static void on_mmap(const struct hb_mmap_event *ev, void *arg)
{
	struct mapped *m = arg;
	struct hb_session *s = m->s;
	struct hb_rec_map rec = {
	    .addr = ev->addr, .len = ev->len, .pgoff = ev->pgoff, .ino = ev->ino, .dev = ev->dev};
	struct hb_error e = {0};

	if (!find_proc(s, ev->pid))
		return;
	rec.path = hb_window_writer__string(s->writer, ev->path);
	hb_session__emit(s, HB_TYPE_map, ev->pid, ev->tid, ev->ts, &rec);
	if (!wanted(s, ev->path))
		return;
	if (m->pid == ev->pid && m->ts > ev->ts)
		return; /* looked after this mapping was made */
	if (too_late(s)) {
		if (!has_probes(s, ev))
			lose_stretch(s);
		return;
	}
	m->pid = ev->pid;
	m->ts = hb_clock__now();
	hb_session__remap(s, ev->pid, ev->ts, &e);
	if (e.err && e.err != -ESRCH && hb_session__may_remark(s))
		hb_warn("pid %u: %s", ev->pid, e.text);
}

/* Some events were lost: what they said is in the processes' maps. */
static void remap_all(struct hb_session *s, u64 since)
{
	for (u32 i = 0; i < s->n_procs; i++) {
		struct hb_error e = {0};
		u32 pid = s->procs[i].p->pid;

		hb_session__remap(s, pid, since, &e);
		if (e.err && e.err != -ESRCH)
			hb_warn("pid %u: %s", pid, e.text);
	}
}

void hb_session__handle_mmaps(struct hb_session *s)
{
	struct mapped m = {.s = s};
	u64 now = hb_clock__now(), lost;

	hb_mmap_events__read(s->mmaps, on_mmap, &m);
	lost = hb_mmap_events__lost(s->mmaps);
	if (lost != s->mmaps_lost)
		remap_all(s, s->mmaps_read);
	s->mmaps_lost = lost;
	s->mmaps_read = now;
}

void hb_session__check_live(struct hb_session *s)
{
	for (u32 i = 0; i < s->n_procs; i++)
		if (s->procs[i].live && hb_process__exited(s->procs[i].p->pid))
			mark_dead(s, s->procs[i].p->pid);
}

/* ---- names and stacks, on the pump ---- */

static void fill_task(struct hb_task *t, void *arg)
{
	struct hb_session *s = arg;
	const struct proc_state *ps;
	char comm[16] = "";
	u32 nstid = t->tid;

	if (t->pid == 0)
		memcpy(comm, "swapper", sizeof("swapper"));
	else
		hb_thread__read(t->pid, t->tid, &nstid, comm);
	comm[15] = 0;
	t->nstid = nstid;
	t->comm = hb_window_writer__string(s->writer, comm);
	pthread_mutex_lock(&s->procs_lock);
	ps = find_proc(s, t->pid);
	t->target = ps != NULL;
	if (ps)
		t->nspid = ps->p->nspid;
	pthread_mutex_unlock(&s->procs_lock);
}

/* thread, process, exec, rename: the name is the record's COMM member, found by its role. The rings are read
 * one after the other, so the fork on one CPU may come after the exec on another: the latest by time counts.
 */
static void on_name(const struct hb_wire *w, const void *payload, void *arg)
{
	struct hb_session *s = arg;
	const struct hb_type *t = hb_schema__type(w->type);
	struct hb_task task = {.pid = w->pid, .tid = w->tid, .nspid = w->pid, .nstid = w->tid};
	u16 idx = hb_collect__task(s->collect, w->pid, w->tid);
	char comm[17] = "";

	if (w->ts < s->named[idx])
		return;
	s->named[idx] = w->ts;
	for (unsigned i = 0; i < t->n_fields; i++)
		if (t->fields[i].role == HB_ROLE_COMM)
			memcpy(comm, (const char *)payload + t->fields[i].offset, 16);
	fill_task(&task, s);
	task.target = 1;
	task.comm = hb_window_writer__string(s->writer, comm);
	hb_window_writer__task_update(s->writer, idx, &task);
}

static void on_stack(u32 pid, u32 raw, void *arg)
{
	struct hb_session *s = arg;

	if (s->n_stacks == s->cap_stacks) {
		u32 cap = s->cap_stacks ? s->cap_stacks * 2 : 1024;
		struct stack_key *k = realloc(s->stacks, cap * sizeof(*k));

		if (!k)
			return; /* the stack stays unresolved, which a reader shows as such */
		s->stacks = k;
		s->cap_stacks = cap;
	}
	s->stacks[s->n_stacks++] = (struct stack_key){pid, raw};
	hb_session_python__seen(s, pid, raw);
}

int hb_session__subscribe(struct hb_session *s)
{
	static const u16 life[] = {HB_TYPE_process, HB_TYPE_exec, HB_TYPE_exit};
	static const u16 names[] = {HB_TYPE_process, HB_TYPE_thread, HB_TYPE_exec, HB_TYPE_rename};
	int err = 0;

	for (unsigned i = 0; i < sizeof(life) / sizeof(*life); i++)
		err = err ?: hb_collect__subscribe(s->collect, life[i], queue_life, s);
	for (unsigned i = 0; i < sizeof(names) / sizeof(*names); i++)
		err = err ?: hb_collect__subscribe(s->collect, names[i], on_name, s);
	hb_collect__on_task(s->collect, fill_task, s);
	hb_collect__on_stack(s->collect, on_stack, s);
	err = err ?: hb_session_pytasks__subscribe(s);
	err = err ?: hb_session_pyfields__subscribe(s);
	return err ?: hb_session_pycalls__subscribe(s);
}
