/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analysis/model/private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define TASKS 65536

struct hb_proc_stat *hb_model__proc(struct hb_model *m, u32 pid)
{
	bool fresh;
	struct hb_proc_stat *p = hb_rows__get(&m->procs, pid, &fresh);

	if (!p) {
		m->oom = true;
	} else if (fresh) {
		p->pid = pid;
		p->idx = m->procs.n - 1;
		p->main = hb_window__task_by_tid(m->w, pid);
		p->traced = p->main && p->main->target;
	}
	return p;
}

static struct thread *thread_of(struct hb_model *m, const struct hb_record *r)
{
	struct thread *t = m->by_task[r->task_idx];

	if (t)
		return t;
	t = hb_rows__get(&m->threads, r->task_idx, NULL);
	if (!t)
		return NULL;
	t->pub.task = r->task;
	t->pub.proc = hb_model__proc(m, r->task ? r->task->pid : 0);
	if (!t->pub.proc)
		return NULL;
	t->pub.proc->threads++;
	if (r->task && r->task->target)
		t->pub.proc->traced = true;
	m->by_task[r->task_idx] = t;
	return t;
}

/* ---- records that are told by few ---- */

static void on_process(struct hb_model *m, struct thread *t, const void *data)
{
	const struct hb_rec_process *r = data;

	t->pub.proc->forked |= r->how == HB_HOW_FORKED;
}

static void on_end(struct hb_model *m, struct thread *t, const void *data)
{
	const struct hb_rec_exit *r = data;

	if (!r->last)
		return;
	t->pub.proc->exited = true;
	t->pub.proc->exit_code = r->code;
}

static void on_probed(struct hb_model *m, struct thread *t, const void *data)
{
	const struct hb_rec_probed *r = data;
	struct hb_proc_stat *p = t->pub.proc;

	p->probes += r->probes;
	p->late += r->late > 0;
	if (r->late > p->late_ns)
		p->late_ns = r->late;
}

static void on_note(struct hb_model *m, struct thread *t, const void *data)
{
	const struct hb_rec_note *r = data;
	struct note *n = realloc(m->notes, (m->n_notes + 1) * sizeof(*n));

	if (!n) {
		m->oom = true;
		return;
	}
	m->notes = n;
	m->notes[m->n_notes++] = (struct note){.text = r->text, .level = r->level};
}

static void on_price(struct hb_model *m, struct thread *t, const void *data)
{
	const struct hb_rec_price *r = data;
	bool hook = r->probe == UINT32_MAX;
	struct hb_price_stat *p = hb_rows__get(&m->prices, hook ? 1ULL << 32 | r->hook : r->probe, NULL);

	if (!p) {
		m->oom = true;
		return;
	}
	p->row = hook ? NULL : hb_window__probe(m->w, r->probe);
	p->hook = hook ? r->hook : 0;
	/* Programs of uprobes on interpreters are called so. */
	p->targets = !p->hook || strncmp(hb_window__string(m->w, r->hook), "py", 2) == 0;
	p->hits += r->hits;
	p->price = r->price;
	p->cost_ns += r->hits * r->price;
	m->totals.cost_ns += r->hits * r->price;
	*(p->targets ? &m->totals.probe_cost_ns : &m->totals.hook_cost_ns) += r->hits * r->price;
}

static void on_record(struct hb_model *m, struct thread *t, const struct hb_record *r)
{
	switch (r->type) {
	case HB_TYPE_accel:
		hb_model__accel(m, t, r->data);
		break;
	case HB_TYPE_offcpu:
		hb_model__offcpu(m, t, r->data);
		break;
	case HB_TYPE_syscall:
		hb_model__syscall(m, t, r->data);
		break;
	case HB_TYPE_sample:
		hb_model__sample(m, t, r->data);
		break;
	case HB_TYPE_py_field:
		hb_model__py_field(m, t, r->data);
		break;
	case HB_TYPE_py_call:
		hb_model__py_call(m, t, r->data);
		break;
	case HB_TYPE_py_exception:
		hb_model__py_exception(m, t, r->data);
		break;
	case HB_TYPE_py_gil:
		hb_model__py_gil(m, t, r->data);
		break;
	case HB_TYPE_py_gc:
		hb_model__py_gc(m, t, r->data);
		break;
	case HB_TYPE_process:
		on_process(m, t, r->data);
		break;
	case HB_TYPE_exit:
		on_end(m, t, r->data);
		break;
	case HB_TYPE_probed:
		on_probed(m, t, r->data);
		break;
	case HB_TYPE_note:
		on_note(m, t, r->data);
		break;
	case HB_TYPE_price:
		on_price(m, t, r->data);
		break;
	}
}

/* Threads in the order in which they come; then one type after the other. */
static void on_records(struct hb_model *m, const struct hb_records *b)
{
	for (u32 i = 0; i < b->n; i++) {
		struct thread *t = thread_of(m, &b->record[i]);

		if (!t) {
			m->oom = true;
			return;
		}
		t->pub.records++;
	}
	m->totals.records += b->n;
	hb_each_bit (type, b->types) {
		m->totals.by_type[type] += (u64)__builtin_popcountll(b->of[type]);
		hb_each_bit (i, b->of[type])
			on_record(m, m->by_task[b->record[i].task_idx], &b->record[i]);
	}
}

/* ---- building ---- */

static u64 meta_u64(const struct hb_window *w, const char *key)
{
	const char *s = hb_window__meta(w, key);

	return s ? strtoull(s, NULL, 10) : 0;
}

/* Windows of older recorders hold the sum only. */
static void own_use(struct hb_model *m)
{
	struct hb_totals *t = &m->totals;

	t->self_cpu_ns = meta_u64(m->w, "self_cpu_ns");
	t->self_rss = meta_u64(m->w, "self_rss");
	t->self_setup_ns = meta_u64(m->w, "self_cpu_setup_ns");
	t->self_window_ns = meta_u64(m->w, "self_cpu_window_ns");
	t->self_split =
	    t->self_window_ns && t->self_cpu_ns && t->self_setup_ns + t->self_window_ns <= t->self_cpu_ns;
}

static int init_tables(struct hb_model *m)
{
	const struct {
		struct hb_rows *t;
		size_t size;
	} tables[] = {
	    {&m->procs, sizeof(struct hb_proc_stat)},
	    {&m->threads, sizeof(struct thread)},
	    {&m->calls, sizeof(struct call)},
	    {&m->classes, sizeof(struct hb_class_stat)},
	    {&m->sleeps, sizeof(struct hb_sleep_stat)},
	    {&m->reasons, sizeof(struct hb_reason_stat)},
	    {&m->wakers, sizeof(struct hb_waker_stat)},
	    {&m->edges, sizeof(struct hb_edge_stat)},
	    {&m->syscalls, sizeof(struct hb_syscall_stat)},
	    {&m->funcs, sizeof(struct func)},
	    {&m->kernel, sizeof(struct hb_kernel_stat)},
	    {&m->stacks, sizeof(struct hb_stack_stat)},
	    {&m->prices, sizeof(struct hb_price_stat)},
	    {&m->locks, sizeof(struct hb_lock_stat)},
	    {&m->merged, sizeof(struct hb_stack_stat)},
	    {&m->exceptions, sizeof(struct hb_exception_stat)},
	    {&m->gils, sizeof(struct hb_gil_stat)},
	    {&m->holders, sizeof(struct hb_holder_stat)},
	    {&m->gcs, sizeof(struct hb_gc_stat)},
	    {&m->py_calls, sizeof(struct hb_py_call_stat)},
	    {&m->fields, sizeof(struct hb_field_stat)},
	};
	int err = 0;

	for (size_t i = 0; i < sizeof(tables) / sizeof(*tables); i++)
		err |= hb_rows__init(tables[i].t, tables[i].size);
	m->by_task = calloc(TASKS, sizeof(*m->by_task));
	m->pairs = hb_map__new();
	return err || !m->by_task || !m->pairs ? -ENOMEM : 0;
}

static void add_known_procs(struct hb_model *m)
{
	u32 n;
	const struct hb_proc *p = hb_window__procs(m->w, &n);

	for (u32 i = 0; i < n; i++) {
		struct hb_proc_stat *s = hb_model__proc(m, p[i].pid);

		if (!s)
			return;
		s->info = &p[i];
		s->traced = true;
		s->forked = p[i].how == HB_HOW_FORKED;
	}
}

static int cmp_procs(const void *a, const void *b)
{
	CMP_ROWS(hb_proc_stat, x, y, a, b);

	BIGGER_FIRST(x->traced, y->traced);
	BIGGER_FIRST(y->pid, x->pid);
	return 0;
}

static int cmp_threads(const void *a, const void *b)
{
	CMP_ROWS(hb_thread_stat, x, y, a, b);

	BIGGER_FIRST(y->proc->pid, x->proc->pid);
	BIGGER_FIRST(x->cpu_ns, y->cpu_ns);
	BIGGER_FIRST(x->call_ns, y->call_ns);
	BIGGER_FIRST(x->records, y->records);
	return 0;
}

static int cmp_prices(const void *a, const void *b)
{
	CMP_ROWS(hb_price_stat, x, y, a, b);

	BIGGER_FIRST(x->cost_ns, y->cost_ns);
	BIGGER_FIRST(x->hits, y->hits);
	return 0;
}

static void finish(struct hb_model *m)
{
	hb_model__finish_calls(m);
	hb_model__finish_waits(m);
	hb_model__finish_cpu(m);
	hb_model__finish_py_calls(m);
	hb_model__finish_py_fields(m);
	hb_model__finish_pyevents(m);
	hb_rows__sort(&m->procs, cmp_procs);
	while (m->n_traced < m->procs.n && ((struct hb_proc_stat *)m->procs.row[m->n_traced])->traced)
		m->n_traced++;
	hb_rows__sort(&m->threads, cmp_threads);
	hb_rows__sort(&m->prices, cmp_prices);
}

/* Some records at a time, which stay near while one after the other looks at them. */
static void read_all(struct hb_model *m, const struct hb_feed *const *feeds, u32 n)
{
	struct hb_records b = {0};
	int got;

	hb_window__rewind(m->w);
	while ((got = hb_window__take(m->w, &b)) > 0 && !m->oom) {
		on_records(m, &b);
		for (u32 i = 0; i < n; i++)
			m->oom |= feeds[i]->records(feeds[i]->ctx, &b) != 0;
	}
	if (got < 0)
		m->totals.read_error = got;
}

int hb_feed__all(const struct hb_feed *f, struct hb_window *w)
{
	struct hb_records b = {0};
	int err = 0;

	hb_window__rewind(w);
	while (!err && hb_window__take(w, &b) > 0)
		err = f->records(f->ctx, &b);
	return err;
}

struct hb_model *hb_model__build_with(struct hb_window *w, const struct hb_feed *const *feeds, u32 n,
				      struct hb_error *e)
{
	const struct hb_window_info *i = hb_window__info(w);
	struct hb_model *m = calloc(1, sizeof(*m));

	if (!m) {
		hb_error__nomem(e, "the model");
		return NULL;
	}
	m->w = w;
	m->n_pages = (hb_window__probes(w) >> PAGE_BITS) + 1;
	m->totals.wall_ns = i->end_ts > i->start_ts ? i->end_ts - i->start_ts : 0;
	own_use(m);
	m->oom = init_tables(m) != 0;
	if (!m->oom) {
		add_known_procs(m);
		read_all(m, feeds, n);
	}
	if (!m->oom)
		finish(m);
	if (m->oom) {
		hb_error__nomem(e, "the tables of the report");
		hb_model__free(m);
		return NULL;
	}
	return m;
}

struct hb_model *hb_model__build(struct hb_window *w, struct hb_error *e)
{
	return hb_model__build_with(w, NULL, 0, e);
}

/* ---- freeing ---- */

static void drop_call(void *row)
{
	struct call *c = row;

	hb_hist__free(&c->pub.dur);
	hb_hist__free(&c->inner);
}

static void drop_class(void *row)
{
	hb_hist__free(&((struct hb_class_stat *)row)->dur);
}

static void drop_sleep(void *row)
{
	hb_hist__free(&((struct hb_sleep_stat *)row)->dur);
}

static void drop_reason(void *row)
{
	hb_hist__free(&((struct hb_reason_stat *)row)->dur);
}

static void drop_syscall(void *row)
{
	hb_hist__free(&((struct hb_syscall_stat *)row)->dur);
}

static void drop_py_call(void *row)
{
	hb_hist__free(&((struct hb_py_call_stat *)row)->dur);
}

static void drop_gil(void *row)
{
	hb_hist__free(&((struct hb_gil_stat *)row)->wait);
}

static void drop_gc(void *row)
{
	hb_hist__free(&((struct hb_gc_stat *)row)->dur);
}

static void free_pages(struct hb_model *m)
{
	for (u32 i = 0; i < m->threads.n; i++) {
		struct thread *t = m->threads.row[i];

		for (u32 p = 0; t->page && p < m->n_pages; p++)
			free(t->page[p]);
		free(t->page);
	}
}

void hb_model__free(struct hb_model *m)
{
	if (!m)
		return;
	free_pages(m);
	hb_rows__free(&m->procs, NULL);
	hb_rows__free(&m->threads, NULL);
	hb_rows__free(&m->calls, drop_call);
	hb_rows__free(&m->classes, drop_class);
	hb_rows__free(&m->sleeps, drop_sleep);
	hb_rows__free(&m->reasons, drop_reason);
	hb_rows__free(&m->wakers, NULL);
	hb_rows__free(&m->edges, NULL);
	hb_rows__free(&m->syscalls, drop_syscall);
	hb_rows__free(&m->funcs, NULL);
	hb_rows__free(&m->kernel, NULL);
	hb_rows__free(&m->stacks, NULL);
	hb_rows__free(&m->prices, NULL);
	hb_rows__free(&m->locks, NULL);
	hb_rows__free(&m->merged, NULL);
	hb_rows__free(&m->py_calls, drop_py_call);
	hb_rows__free(&m->fields, hb_model__drop_field);
	hb_rows__free(&m->exceptions, NULL);
	hb_rows__free(&m->gils, drop_gil);
	hb_rows__free(&m->holders, NULL);
	hb_rows__free(&m->gcs, drop_gc);
	hb_map__free(m->pairs);
	for (u32 i = 0; i < HB_USE_COUNT; i++)
		free(m->stacks_by[i].row);
	free(m->by_task);
	free(m->notes);
	free(m);
}

/* ---- getters ---- */

const struct hb_totals *hb_model__totals(const struct hb_model *m)
{
	return &m->totals;
}

bool hb_model__note(const struct hb_model *m, u32 i, u32 *text, u32 *level)
{
	if (i >= m->n_notes)
		return false;
	*text = m->notes[i].text;
	*level = m->notes[i].level;
	return true;
}

HB_MODEL_TABLE(procs, hb_proc_stat)
{
	*n = m->n_traced;
	return (const struct hb_proc_stat *const *)m->procs.row;
}

HB_MODEL_TABLE(stacks, hb_stack_stat)
{
	*n = m->merged.n;
	return (const struct hb_stack_stat *const *)m->merged.row;
}

#define GETTER(name, type)                                                                                   \
	HB_MODEL_TABLE(name, type)                                                                           \
	{                                                                                                    \
		*n = m->name.n;                                                                              \
		return (const struct type *const *)m->name.row;                                              \
	}

GETTER(threads, hb_thread_stat)
GETTER(calls, hb_call_stat)
GETTER(classes, hb_class_stat)
GETTER(sleeps, hb_sleep_stat)
GETTER(reasons, hb_reason_stat)
GETTER(edges, hb_edge_stat)
GETTER(syscalls, hb_syscall_stat)
GETTER(funcs, hb_func_stat)
GETTER(kernel, hb_kernel_stat)
GETTER(prices, hb_price_stat)
GETTER(locks, hb_lock_stat)
GETTER(fields, hb_field_stat)
GETTER(py_calls, hb_py_call_stat)
GETTER(exceptions, hb_exception_stat)
GETTER(gils, hb_gil_stat)
GETTER(holders, hb_holder_stat)
GETTER(gcs, hb_gc_stat)
