/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The tables as one JSON object, every row of them; docs/report-json.md. Times in ns, sizes in bytes. */
#include "analysis/report/report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/model/decode.h"
#include "analysis/model/model.h"
#include "analysis/model/pyevents.h"
#include "analysis/report/doc.h"

static void put_syscall(struct hb_doc *d, const char *key, u16 sysno)
{
	char buf[32];
	const char *s = hb_decode__syscall(sysno, buf, sizeof(buf));

	if (s)
		hb_json__kstring(d->j, key, s);
}

/* ---- one function for one row of one table ---- */

static void put_process(struct hb_doc *d, const void *row)
{
	const struct hb_proc_stat *p = row;

	hb_doc__proc(d, p);
	if (p->info) {
		hb_json__ku64(d->j, "ppid", p->info->ppid);
		hb_json__ku64(d->j, "nspid", p->info->nspid);
		hb_doc__known(d, "exe", p->info->exe);
		hb_doc__known(d, "cmdline", p->info->cmdline);
		hb_doc__known(d, "cgroup", p->info->cgroup);
		hb_doc__known(d, "container", p->info->container);
	}
	hb_json__ku64(d->j, "threads", p->threads);
	hb_json__ku64(d->j, "operations", p->operations);
	hb_json__ku64(d->j, "call_ns", p->call_ns);
	hb_json__ku64(d->j, "cpu_ns", p->cpu_ns);
	hb_json__ku64(d->j, "samples", p->samples);
	hb_json__ku64(d->j, "offcpu_ns", p->offcpu_ns);
	hb_json__ku64(d->j, "runnable_ns", p->ready_ns);
	hb_json__ku64(d->j, "probes", p->probes);
	hb_json__kbool(d->j, "forked", p->forked);
	hb_json__kbool(d->j, "exited", p->exited);
	if (p->exited)
		hb_json__ku64(d->j, "exit_status", p->exit_code);
	hb_json__ku64(d->j, "late", p->late);
	hb_json__ku64(d->j, "late_ns", p->late_ns);
}

static void put_class(struct hb_doc *d, const void *row)
{
	const struct hb_class_stat *k = row;

	hb_json__kstring(d->j, "class", hb_op__name(k->op));
	hb_json__ku64(d->j, "count", k->count);
	hb_json__ku64(d->j, "timed", k->dur.count);
	hb_json__ku64(d->j, "errors", k->errors);
	hb_json__ku64(d->j, "bytes", k->bytes);
	hb_doc__hist(d, &k->dur);
	hb_doc__share(d, k->busiest_ns);
	hb_doc__task(d, "busiest", k->busiest);
}

static void put_results(struct hb_doc *d, const struct hb_call_stat *c)
{
	hb_json__karray(d->j, "results");
	for (u32 i = 0; i < c->n_results; i++) {
		hb_json__object(d->j);
		hb_json__ks64(d->j, "ret", c->result[i].code);
		hb_json__ku64(d->j, "count", c->result[i].count);
		hb_json__end(d->j);
	}
	hb_json__end(d->j);
}

static void put_call(struct hb_doc *d, const void *row)
{
	const struct hb_call_stat *c = row;

	hb_doc__proc(d, c->proc);
	hb_json__kstring(d->j, "name", hb_doc__str(d, c->row->name));
	hb_json__kstring(d->j, "symbol", hb_doc__str(d, c->row->symbol));
	hb_json__kstring(d->j, "api", hb_doc__str(d, c->row->api));
	hb_json__kstring(d->j, "layer", hb_word(HB_WORDS_LAYER, c->row->layer));
	hb_json__kstring(d->j, "class", hb_op__name(c->op));
	hb_doc__known(d, "library", c->row->library);
	hb_json__ku64(d->j, "count", c->count);
	hb_json__ku64(d->j, "timed", c->dur.count);
	hb_json__ku64(d->j, "inner", c->inner);
	hb_json__ku64(d->j, "nested", c->nested);
	hb_json__ku64(d->j, "bytes", c->bytes);
	hb_json__ku64(d->j, "results_known", c->results_known);
	hb_json__ku64(d->j, "errors", c->errors);
	put_results(d, c);
	hb_doc__hist(d, &c->dur);
	hb_json__ku64(d->j, "threads", c->threads);
	hb_doc__share(d, c->busiest_ns);
	hb_doc__task(d, "busiest", c->busiest);
}

static void put_sleep(struct hb_doc *d, const void *row)
{
	const struct hb_sleep_stat *s = row;
	char buf[640];
	const char *longest = hb_decode__slept_on(d->w, s->proc->pid, &s->longest, buf, sizeof(buf));

	hb_doc__proc(d, s->proc);
	put_syscall(d, "syscall", s->sysno);
	hb_json__kstring(d->j, "chan_kind", hb_word(HB_WORDS_CHANKIND, s->chankind));
	if (longest)
		hb_json__kstring(d->j, "longest_on", longest);
	hb_json__ku64(d->j, "count", s->dur.count);
	hb_doc__hist(d, &s->dur);
	hb_json__ku64(d->j, "runnable_ns", s->ready_ns);
}

static void put_waker(struct hb_doc *d, const struct hb_waker_stat *k)
{
	hb_json__object(d->j);
	hb_json__kstring(d->j, "context", hb_word(HB_WORDS_WCTX, k->context));
	hb_doc__task(d, "thread", k->task);
	if (k->proc)
		hb_json__kbool(d->j, "traced", k->proc->traced);
	put_syscall(d, "syscall", k->sysno);
	hb_json__ku64(d->j, "count", k->count);
	hb_json__ku64(d->j, "slept_ns", k->slept_ns);
	hb_json__end(d->j);
}

static void put_reason(struct hb_doc *d, const void *row)
{
	const struct hb_reason_stat *r = row;

	hb_doc__proc(d, r->proc);
	hb_json__kstring(d->j, "reason", hb_reason__name(r->reason));
	hb_json__ku64(d->j, "count", r->dur.count);
	hb_doc__hist(d, &r->dur);
	hb_json__ku64(d->j, "runnable_ns", r->ready_ns);
	hb_json__ku64(d->j, "runnable_max_ns", r->ready_max);
	hb_json__karray(d->j, "wakers");
	for (u32 i = 0; i < r->n_wakers; i++)
		put_waker(d, r->waker[i]);
	hb_json__end(d->j);
}

static void put_edge(struct hb_doc *d, const void *row)
{
	const struct hb_edge_stat *s = row;

	hb_json__kobject(d->j, "from");
	hb_doc__proc(d, s->from);
	hb_json__end(d->j);
	hb_json__kobject(d->j, "to");
	hb_doc__proc(d, s->to);
	hb_json__end(d->j);
	put_syscall(d, "waker_syscall", s->wsys);
	put_syscall(d, "syscall", s->sysno);
	hb_json__kstring(d->j, "chan_kind", hb_word(HB_WORDS_CHANKIND, s->chankind));
	hb_json__ku64(d->j, "count", s->count);
	hb_json__ku64(d->j, "slept_ns", s->slept_ns);
	hb_json__ku64(d->j, "runnable_ns", s->ready_ns);
	hb_doc__task(d, "example_waker", s->waker);
	hb_doc__task(d, "example_wakee", s->wakee);
}

static void put_lock(struct hb_doc *d, const void *row)
{
	const struct hb_lock_stat *s = row;
	char hex[24];

	hb_doc__proc(d, s->proc);
	snprintf(hex, sizeof(hex), "0x%llx", (unsigned long long)s->addr);
	hb_json__kstring(d->j, "futex", hex);
	hb_json__ku64(d->j, "count", s->count);
	hb_json__ku64(d->j, "total_ns", s->total_ns);
	hb_json__ku64(d->j, "max_ns", s->max_ns);
}

static void put_thread(struct hb_doc *d, const void *row)
{
	const struct hb_thread_stat *t = row;

	hb_json__ku64(d->j, "pid", t->proc->pid);
	hb_json__ku64(d->j, "tid", t->task ? t->task->tid : 0);
	hb_json__ku64(d->j, "nstid", t->task ? t->task->nstid : 0);
	hb_json__kstring(d->j, "comm", hb_decode__comm(d->w, t->task));
	hb_json__ku64(d->j, "records", t->records);
	hb_json__ku64(d->j, "operations", t->operations);
	hb_json__ku64(d->j, "errors", t->errors);
	hb_json__ku64(d->j, "call_ns", t->call_ns);
	hb_doc__share(d, t->call_ns);
	hb_json__ku64(d->j, "cpu_ns", t->cpu_ns);
	hb_json__ku64(d->j, "samples", t->samples);
	hb_json__ku64(d->j, "sleeps", t->sleeps);
	hb_json__ku64(d->j, "offcpu_ns", t->offcpu_ns);
	hb_json__ku64(d->j, "runnable_ns", t->ready_ns);
	hb_json__ku64(d->j, "syscalls", t->syscalls);
}

static void put_func(struct hb_doc *d, const void *row)
{
	const struct hb_func_stat *f = row;
	char buf[512];

	hb_json__kstring(d->j, "function",
			 f->loc ? hb_decode__frame(d->w, f->loc, HB_FRAME_NAME, buf, sizeof(buf))
				: "[no stack]");
	if (f->loc) {
		hb_json__kstring(d->j, "module", hb_doc__str(d, f->loc->module));
		if (f->loc->lang == HB_LANG_PYTHON)
			hb_json__kstring(d->j, "file", hb_doc__str(d, f->loc->file));
		hb_json__kbool(d->j, "kernel", f->loc->lang == HB_LANG_KERNEL);
	}
	hb_json__ku64(d->j, "self_ns", f->self_ns);
	hb_json__ku64(d->j, "total_ns", f->total_ns);
	hb_json__ku64(d->j, "samples", f->samples);
}

static void put_kernel(struct hb_doc *d, const void *row)
{
	const struct hb_kernel_stat *k = row;

	put_syscall(d, "syscall", k->sysno);
	hb_json__ku64(d->j, "cpu_ns", k->cpu_ns);
	hb_json__ku64(d->j, "samples", k->samples);
}

static void put_call_table(struct hb_doc *d, const void *row)
{
	const struct hb_syscall_stat *s = row;

	hb_doc__proc(d, s->proc);
	put_syscall(d, "syscall", s->sysno);
	hb_json__ku64(d->j, "count", s->dur.count);
	hb_json__ku64(d->j, "errors", s->errors);
	hb_doc__hist(d, &s->dur);
}

static void put_stack(struct hb_doc *d, const void *row)
{
	static const char *const uses[HB_USE_COUNT] = {"cpu", "offcpu", "calls"};
	const struct hb_stack_stat *s = row;

	hb_json__ku64(d->j, "pid", s->proc->pid);
	hb_json__kstring(d->j, "in", uses[s->use]);
	hb_json__ku64(d->j, "count", s->count);
	hb_json__ku64(d->j, "ns", s->ns);
	hb_json__karray(d->j, "frames");
	hb_doc__frames(d, s->proc->pid, s->raw);
	hb_doc__frames(d, s->proc->pid, s->kraw);
	hb_json__end(d->j);
}

static void put_site(struct hb_doc *d, u32 pid, u32 site)
{
	const struct hb_loc *l = hb_decode__site(d->w, pid, site);
	char buf[256];

	if (!l)
		return;
	hb_json__kstring(d->j, "function", hb_decode__frame(d->w, l, HB_FRAME_NAME, buf, sizeof(buf)));
	hb_json__kstring(d->j, "file", hb_decode__frame_file(d->w, l));
	if (l->line)
		hb_json__ku64(d->j, "line", l->line);
}

static void put_exception(struct hb_doc *d, const void *row)
{
	const struct hb_exception_stat *s = row;
	char buf[256];

	hb_doc__proc(d, s->proc);
	hb_json__kstring(d->j, "exception", hb_decode__exception(&s->name, s->origin, buf, sizeof(buf)));
	hb_json__kbool(d->j, "native", s->origin);
	put_site(d, s->proc->pid, s->site);
	hb_json__ku64(d->j, "count", s->count);
	hb_json__ku64(d->j, "unwound", s->unwound);
}

static void put_gil(struct hb_doc *d, const void *row)
{
	const struct hb_gil_stat *s = row;

	hb_doc__proc(d, s->thread->proc);
	hb_json__ku64(d->j, "tid", s->thread->task ? s->thread->task->tid : 0);
	hb_json__kstring(d->j, "comm", hb_decode__comm(d->w, s->thread->task));
	hb_json__ku64(d->j, "count", s->wait.count);
	hb_doc__hist(d, &s->wait);
	hb_json__ku64(d->j, "handovers", s->handovers);
	hb_json__ku64(d->j, "handover_ns", s->handover_ns);
}

static void put_holder(struct hb_doc *d, const void *row)
{
	const struct hb_holder_stat *s = row;

	hb_doc__proc(d, s->proc);
	if (s->task)
		hb_json__ku64(d->j, "tid", s->task->tid);
	hb_json__ku64(d->j, "waits", s->waits);
	hb_json__ku64(d->j, "waited_ns", s->waited_ns);
	hb_json__ku64(d->j, "longest_ns", s->longest_ns);
	hb_json__karray(d->j, "frames");
	hb_doc__frames(d, s->proc->pid, s->stack);
	hb_json__end(d->j);
}

static void put_gc(struct hb_doc *d, const void *row)
{
	const struct hb_gc_stat *s = row;

	hb_doc__proc(d, s->proc);
	if (s->generation != UINT32_MAX)
		hb_json__ku64(d->j, "generation", s->generation);
	hb_json__ku64(d->j, "count", s->dur.count);
	hb_doc__hist(d, &s->dur);
}

static void put_field(struct hb_doc *d, const void *row)
{
	const struct hb_field_stat *s = row;

	hb_doc__proc(d, s->proc);
	hb_json__kstring(d->j, "field", hb_doc__str(d, s->field));
	hb_json__ku64(d->j, "count", s->count);
	hb_json__ku64(d->j, "numbers", s->numbers);
	if (s->numbers) {
		hb_json__kreal(d->j, "min", s->min, 9);
		hb_json__kreal(d->j, "median", s->median, 9);
		hb_json__kreal(d->j, "mean", s->sum / (double)s->numbers, 9);
		hb_json__kreal(d->j, "max", s->max, 9);
		hb_json__kreal(d->j, "last", s->last, 9);
	}
	hb_json__ku64(d->j, "texts", s->texts);
	hb_json__ku64(d->j, "different", s->different);
	hb_json__ku64(d->j, "none", s->none);
	hb_json__ku64(d->j, "without", s->without);
	hb_json__ku64(d->j, "late", s->late);
}

static void put_py_call(struct hb_doc *d, const void *row)
{
	const struct hb_py_call_stat *c = row;
	char module[256];

	hb_doc__proc(d, c->proc);
	if (c->loc) {
		const char *file = hb_doc__str(d, c->loc->file);

		if (*hb_decode__module(file, module, sizeof(module)))
			hb_json__kstring(d->j, "module", module);
		hb_json__kstring(d->j, "qualname", hb_doc__str(d, c->loc->func));
		hb_json__kstring(d->j, "file", file);
		hb_json__ku64(d->j, "line", c->loc->line);
	}
	hb_json__ku64(d->j, "count", c->count);
	hb_json__ku64(d->j, "raised", c->raised);
	hb_json__ku64(d->j, "yielded", c->yielded);
	hb_json__ku64(d->j, "timed", c->dur.count);
	hb_doc__hist(d, &c->dur);
}

/* ---- the document ---- */

void hb_doc__tables(struct hb_doc *d)
{
	const void *const *rows;
	u32 n;

#define TABLE(key, getter, put)                                                                              \
	do {                                                                                                 \
		rows = (const void *const *)hb_model__##getter(d->m, &n);                                    \
		hb_doc__table(d, key, rows, n, put);                                                         \
	} while (0)
	TABLE("processes", procs, put_process);
	TABLE("classes", classes, put_class);
	TABLE("calls", calls, put_call);
	TABLE("blocking", sleeps, put_sleep);
	TABLE("offcpu", reasons, put_reason);
	TABLE("wakeups", edges, put_edge);
	TABLE("locks", locks, put_lock);
	TABLE("threads", threads, put_thread);
	TABLE("functions", funcs, put_func);
	TABLE("python_calls", py_calls, put_py_call);
	TABLE("python_fields", fields, put_field);
	TABLE("kernel_cpu", kernel, put_kernel);
	TABLE("syscalls", syscalls, put_call_table);
	TABLE("exceptions", exceptions, put_exception);
	TABLE("gil_waits", gils, put_gil);
	TABLE("gil_holders", holders, put_holder);
	TABLE("gc", gcs, put_gc);
	if (!d->max)
		TABLE("stacks", stacks, put_stack);
#undef TABLE
}

int hb_report__json(struct hb_window *w, FILE *out, struct hb_error *e)
{
	struct hb_model *m = hb_model__build(w, e);
	int rc = -ENOMEM;

	if (!m)
		return rc;
	struct hb_doc d = {
	    .w = w, .m = m, .j = hb_json__new(out, true), .wall = hb_model__totals(m)->wall_ns};

	if (d.j) {
		hb_json__object(d.j);
		hb_doc__window(&d);
		hb_doc__tables(&d);
		hb_doc__loss(&d);
		hb_doc__receipt(&d);
		hb_doc__notes(&d);
		hb_json__end(d.j);
		hb_json__newline(d.j);
		rc = hb_json__free(d.j);
	}
	if (rc == -ENOMEM)
		hb_error__nomem(e, "the report");
	hb_model__free(m);
	return rc;
}
