/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* All tables. One function fills one table; the list at the end orders them. */
#include "analysis/report/report.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/model/decode.h"
#include "analysis/model/model.h"
#include "analysis/report/cells.h"
#include "analysis/report/table.h"
#include "base/text.h"

#define WIDTH 120

struct page {
	struct hb_window *w;
	struct hb_model *m;
	FILE *out;
	unsigned rows; /* of a table; 0 = all */
	unsigned width;
};

static u32 shown(const struct page *p, u32 n)
{
	return p->rows && n > p->rows ? p->rows : n;
}

static struct hb_table *processes(struct page *p, u32 *n)
{
	struct hb_table *t = hb_table__new(
	    "process~|ns pid>|threads>|operations>|in calls>|CPU>|off-CPU>|runnable>|probes>|remark");
	const struct hb_proc_stat *const *s = hb_model__procs(p->m, n);
	char late[32];

	for (u32 i = 0; i < shown(p, *n); i++) {
		hb_cell__proc(t, p->w, s[i]);
		hb_table__cell(t, "%u", s[i]->info ? s[i]->info->nspid : s[i]->pid);
		hb_cell__count(t, s[i]->threads);
		hb_cell__count(t, s[i]->operations);
		hb_cell__ns(t, s[i]->call_ns);
		hb_cell__ns(t, s[i]->cpu_ns);
		hb_cell__ns(t, s[i]->offcpu_ns);
		hb_cell__ns(t, s[i]->ready_ns);
		hb_cell__count(t, s[i]->probes);
		hb_table__cell(t, "%s%s%s%s", s[i]->forked ? "forked " : "", s[i]->exited ? "exited " : "",
			       s[i]->late ? "late " : "",
			       s[i]->late ? hb_text__ns(late, sizeof(late), s[i]->late_ns) : "");
	}
	return t;
}

static struct hb_table *classes(struct page *p, u32 *n)
{
	struct hb_table *t =
	    hb_table__new("class|count>|errors>|total>|p50>|p95>|p99>|max>|bytes>|share>|busiest thread~");
	const struct hb_class_stat *const *s = hb_model__classes(p->m, n);

	for (u32 i = 0; i < shown(p, *n); i++) {
		hb_table__cell(t, "%s", hb_op__name(s[i]->op));
		hb_cell__count(t, s[i]->count);
		hb_cell__count_or_dash(t, s[i]->errors);
		hb_cell__ns(t, s[i]->dur.total);
		hb_cell__quantiles(t, &s[i]->dur);
		hb_cell__bytes(t, s[i]->bytes);
		hb_cell__share(t, s[i]->busiest_ns, hb_model__totals(p->m)->wall_ns);
		if (s[i]->busiest)
			hb_cell__task(t, p->w, s[i]->busiest);
		else
			hb_table__cell(t, "-");
	}
	return t;
}

static void call_name(struct hb_table *t, const struct hb_window *w, const struct hb_call_stat *c)
{
	const char *name = hb_window__string(w, c->row->name);

	if (*name)
		hb_table__cell(t, "%s", name);
	else
		hb_table__cell(t, "probe %u", c->probe);
}

static struct hb_table *calls(struct page *p, u32 *n)
{
	struct hb_table *t =
	    hb_table__new("pid>|function~|count>|inner>|errors>|total>|p50>|p95>|p99>|max>|bytes>|share>");
	const struct hb_call_stat *const *s = hb_model__calls(p->m, n);

	for (u32 i = 0; i < shown(p, *n); i++) {
		hb_table__cell(t, "%u", s[i]->proc->pid);
		call_name(t, p->w, s[i]);
		hb_cell__count(t, s[i]->count);
		hb_cell__count_or_dash(t, s[i]->inner);
		hb_cell__count_or_dash(t, s[i]->errors);
		hb_cell__ns(t, s[i]->dur.total);
		hb_cell__quantiles(t, &s[i]->dur);
		hb_cell__bytes(t, s[i]->bytes);
		hb_cell__share(t, s[i]->busiest_ns, hb_model__totals(p->m)->wall_ns);
	}
	return t;
}

static struct hb_table *results(struct page *p, u32 *n)
{
	struct hb_table *t = hb_table__new("pid>|function~|result>|count>|of calls with a result>");
	u32 calls_n, found = 0;
	const struct hb_call_stat *const *s = hb_model__calls(p->m, &calls_n);

	for (u32 i = 0; i < calls_n; i++) {
		for (u32 k = 0; k < s[i]->n_results; k++, found++) {
			if (p->rows && found >= p->rows)
				continue;
			hb_table__cell(t, "%u", s[i]->proc->pid);
			call_name(t, p->w, s[i]);
			hb_table__cell(t, "%d", s[i]->result[k].code);
			hb_cell__count(t, s[i]->result[k].count);
			hb_cell__count(t, s[i]->results_known);
		}
	}
	*n = found;
	return t;
}

/* One row per kind of channel; the longest sleep says which one to look at. */
static struct hb_table *sleeps(struct page *p, u32 *n)
{
	struct hb_table *t =
	    hb_table__new("process|system call|slept on~|count>|total>|p50>|p95>|p99>|max>|runnable>");
	const struct hb_sleep_stat *const *s = hb_model__sleeps(p->m, n);
	char buf[640];

	for (u32 i = 0; i < shown(p, *n); i++) {
		const char *on = hb_decode__slept_on(p->w, s[i]->proc->pid, &s[i]->longest, buf, sizeof(buf));

		hb_cell__proc(t, p->w, s[i]->proc);
		hb_cell__syscall(t, s[i]->sysno);
		hb_table__cell(t, "%s", on ? on : hb_word(HB_WORDS_CHANKIND, s[i]->chankind));
		hb_cell__count(t, s[i]->dur.count);
		hb_cell__ns(t, s[i]->dur.total);
		hb_cell__quantiles(t, &s[i]->dur);
		hb_cell__ns(t, s[i]->ready_ns);
	}
	return t;
}

/* One line for each of the top wakers; reason and numbers stand on the first. */
static struct hb_table *reasons(struct page *p, u32 *n)
{
	struct hb_table *t =
	    hb_table__new("process|reason|count>|total>|p95>|max>|runnable>|woken by~|times>|slept>");
	const struct hb_reason_stat *const *s = hb_model__reasons(p->m, n);
	char buf[96];

	for (u32 i = 0; i < shown(p, *n); i++) {
		hb_cell__proc(t, p->w, s[i]->proc);
		hb_table__cell(t, "%s", hb_reason__name(s[i]->reason));
		hb_cell__count(t, s[i]->dur.count);
		hb_cell__ns(t, s[i]->dur.total);
		hb_cell__ns(t, hb_hist__quantile(&s[i]->dur, 0.95));
		hb_cell__ns(t, s[i]->dur.max);
		hb_cell__ns(t, s[i]->ready_ns);
		for (u32 k = 0; k < s[i]->n_wakers && k < 4; k++) {
			for (u32 c = 0; k && c < 7; c++)
				hb_table__cell(t, "%s", "");
			hb_table__cell(t, "%s", hb_waker__text(p->w, s[i]->waker[k], buf, sizeof(buf)));
			hb_cell__count(t, s[i]->waker[k]->count);
			hb_cell__ns(t, s[i]->waker[k]->slept_ns);
		}
		for (u32 c = 0; !s[i]->n_wakers && c < 3; c++)
			hb_table__cell(t, "-");
	}
	return t;
}

static struct hb_table *edges(struct page *p, u32 *n)
{
	struct hb_table *t = hb_table__new("from|its call|to~|in|slept on|count>|slept>|runnable>|example");
	const struct hb_edge_stat *const *s = hb_model__edges(p->m, n);

	for (u32 i = 0; i < shown(p, *n); i++) {
		hb_cell__proc(t, p->w, s[i]->from);
		hb_cell__syscall(t, s[i]->wsys);
		hb_cell__proc(t, p->w, s[i]->to);
		hb_cell__syscall(t, s[i]->sysno);
		hb_table__cell(t, "%s", hb_word(HB_WORDS_CHANKIND, s[i]->chankind));
		hb_cell__count(t, s[i]->count);
		hb_cell__ns(t, s[i]->slept_ns);
		hb_cell__ns(t, s[i]->ready_ns);
		hb_table__cell(t, "%u -> %u", s[i]->waker ? s[i]->waker->tid : 0,
			       s[i]->wakee ? s[i]->wakee->tid : 0);
	}
	return t;
}

static struct hb_table *locks(struct page *p, u32 *n)
{
	struct hb_table *t = hb_table__new("process~|futex|count>|total>|max>");
	const struct hb_lock_stat *const *s = hb_model__locks(p->m, n);

	for (u32 i = 0; i < shown(p, *n); i++) {
		hb_cell__proc(t, p->w, s[i]->proc);
		hb_table__cell(t, "0x%" PRIx64, s[i]->addr);
		hb_cell__count(t, s[i]->count);
		hb_cell__ns(t, s[i]->total_ns);
		hb_cell__ns(t, s[i]->max_ns);
	}
	return t;
}

static struct hb_table *threads(struct page *p, u32 *n)
{
	struct hb_table *t = hb_table__new(
	    "pid>|thread~|operations>|errors>|in calls>|share>|CPU>|sleeps>|off-CPU>|runnable>|syscalls>");
	const struct hb_thread_stat *const *s = hb_model__threads(p->m, n);

	for (u32 i = 0; i < shown(p, *n); i++) {
		hb_table__cell(t, "%u", s[i]->proc->pid);
		hb_cell__task(t, p->w, s[i]->task);
		hb_cell__count_or_dash(t, s[i]->operations);
		hb_cell__count_or_dash(t, s[i]->errors);
		hb_cell__ns(t, s[i]->call_ns);
		hb_cell__share(t, s[i]->call_ns, hb_model__totals(p->m)->wall_ns);
		hb_cell__ns(t, s[i]->cpu_ns);
		hb_cell__count_or_dash(t, s[i]->sleeps);
		hb_cell__ns(t, s[i]->offcpu_ns);
		hb_cell__ns(t, s[i]->ready_ns);
		hb_cell__count_or_dash(t, s[i]->syscalls);
	}
	return t;
}

/* The file has a column of its own. */
static const char *name_of(const struct hb_window *w, const struct hb_loc *l, char *buf, size_t size)
{
	return hb_decode__frame(w, l, l->lang == HB_LANG_PYTHON ? HB_FRAME_NAME : HB_FRAME_MARKED, buf, size);
}

static struct hb_table *funcs(struct page *p, u32 *n)
{
	struct hb_table *t = hb_table__new("self>|total>|samples>|function~|module");
	const struct hb_func_stat *const *s = hb_model__funcs(p->m, n);
	char buf[256];

	for (u32 i = 0; i < shown(p, *n); i++) {
		const struct hb_loc *l = s[i]->loc;

		hb_cell__ns(t, s[i]->self_ns);
		hb_cell__ns(t, s[i]->total_ns);
		hb_cell__count_or_dash(t, s[i]->samples);
		hb_table__cell(t, "%s", l ? name_of(p->w, l, buf, sizeof(buf)) : "[no stack]");
		hb_table__cell(t, "%.40s", l ? hb_text__basename(hb_decode__frame_file(p->w, l)) : "");
	}
	return t;
}

static struct hb_table *py_calls(struct page *p, u32 *n)
{
	struct hb_table *t =
	    hb_table__new("pid>|function~|count>|raised>|yields>|total>|p50>|p95>|p99>|max>|file");
	const struct hb_py_call_stat *const *s = hb_model__py_calls(p->m, n);

	for (u32 i = 0; i < shown(p, *n); i++) {
		const struct hb_loc *l = s[i]->loc;
		char buf[256];

		hb_table__cell(t, "%u", s[i]->proc->pid);
		hb_table__cell(t, "%s", l ? name_of(p->w, l, buf, sizeof(buf)) : "[not read]");
		hb_cell__count(t, s[i]->count);
		hb_cell__count_or_dash(t, s[i]->raised);
		hb_cell__count_or_dash(t, s[i]->yielded);
		hb_cell__ns(t, s[i]->dur.total);
		hb_cell__quantiles(t, &s[i]->dur);
		hb_table__cell(t, "%.40s", l ? hb_text__basename(hb_decode__frame_file(p->w, l)) : "");
	}
	return t;
}

static struct hb_table *kernel(struct page *p, u32 *n)
{
	struct hb_table *t = hb_table__new("system call|CPU>|samples>");
	const struct hb_kernel_stat *const *s = hb_model__kernel(p->m, n);

	for (u32 i = 0; i < shown(p, *n); i++) {
		hb_cell__syscall(t, s[i]->sysno);
		hb_cell__ns(t, s[i]->cpu_ns);
		hb_cell__count(t, s[i]->samples);
	}
	return t;
}

static struct hb_table *syscalls(struct page *p, u32 *n)
{
	struct hb_table *t = hb_table__new("process~|system call|count>|errors>|total>|p50>|p95>|p99>|max>");
	const struct hb_syscall_stat *const *s = hb_model__syscalls(p->m, n);

	for (u32 i = 0; i < shown(p, *n); i++) {
		hb_cell__proc(t, p->w, s[i]->proc);
		hb_cell__syscall(t, s[i]->sysno);
		hb_cell__count(t, s[i]->dur.count);
		hb_cell__count_or_dash(t, s[i]->errors);
		hb_cell__ns(t, s[i]->dur.total);
		hb_cell__quantiles(t, &s[i]->dur);
	}
	return t;
}

/* Innermost frames first: what a person looks for. */
static void stack_line(struct hb_table *t, const struct hb_window *w, const struct hb_stack_stat *s)
{
	u32 raws[] = {s->kraw, s->raw};
	char line[400] = "", frame[128];
	size_t len = 0;

	for (u32 k = 0; k < 2; k++) {
		struct hb_stack st =
		    raws[k] ? hb_window__stack(w, s->proc->pid, raws[k]) : (struct hb_stack){0};

		for (u32 i = st.n; i > 0 && len < 200; i--) {
			const struct hb_loc *l = hb_window__loc(w, st.locs[i - 1]);

			if (l)
				len += (size_t)snprintf(
				    line + len, sizeof(line) - len, "%s%s", len ? " < " : "",
				    hb_decode__frame(w, l, HB_FRAME_MARKED, frame, sizeof(frame)));
		}
	}
	hb_table__cell(t, "%s", len ? line : "[not kept]");
}

static struct hb_table *stacks(struct page *p, u32 *n)
{
	static const char *const uses[HB_USE_COUNT] = {"CPU", "off-CPU", "calls"};
	struct hb_table *t = hb_table__new("in|pid>|count>|time>|innermost first~");
	const struct hb_stack_stat *const *s = hb_model__stacks(p->m, n);

	for (u32 i = 0; i < shown(p, *n); i++) {
		hb_table__cell(t, "%s", uses[s[i]->use]);
		hb_table__cell(t, "%u", s[i]->proc->pid);
		hb_cell__count(t, s[i]->count);
		hb_cell__ns(t, s[i]->ns);
		stack_line(t, p->w, s[i]);
	}
	return t;
}

#define PYTHON_TABLE(name)                                                                                   \
	static struct hb_table *name(struct page *p, u32 *n)                                                 \
	{                                                                                                    \
		return hb_pytable__##name(p->w, p->m, p->rows ? p->rows : UINT_MAX, n);                      \
	}
PYTHON_TABLE(exceptions)
PYTHON_TABLE(gils)
PYTHON_TABLE(holders)
PYTHON_TABLE(gcs)
PYTHON_TABLE(fields)

static struct hb_table *losses(struct page *p, u32 *n)
{
	struct hb_table *t = hb_table__new("cause|record type|CPU>|count>|meaning~");
	const struct hb_loss_row *s = hb_window__losses(p->w, n);

	for (u32 i = 0; i < shown(p, *n); i++) {
		const struct hb_type *type = hb_schema__type(s[i].type);

		hb_table__cell(t, "%s", hb_word(HB_WORDS_LOSS, s[i].cause));
		hb_table__cell(t, "%s", type ? type->name : "-");
		if (s[i].cpu == UINT32_MAX)
			hb_table__cell(t, "-");
		else
			hb_table__cell(t, "%u", s[i].cpu);
		hb_cell__count(t, s[i].count);
		hb_table__cell(t, "%s", hb_decode__loss_doc(s[i].cause));
	}
	return t;
}

static struct hb_table *prices(struct page *p, u32 *n)
{
	struct hb_table *t = hb_table__new("hook~|where|hits>|price>|cost>|share of one core>");
	const struct hb_price_stat *const *s = hb_model__prices(p->m, n);

	for (u32 i = 0; i < shown(p, *n); i++) {
		hb_table__cell(t, "%s", hb_window__string(p->w, s[i]->row ? s[i]->row->symbol : s[i]->hook));
		hb_table__cell(t, "%s", s[i]->targets ? "targets" : "machine");
		hb_cell__count(t, s[i]->hits);
		hb_cell__ns(t, s[i]->price);
		hb_cell__ns(t, s[i]->cost_ns);
		hb_cell__share(t, s[i]->cost_ns, hb_model__totals(p->m)->wall_ns);
	}
	return t;
}

static const struct section {
	const char *title;
	struct hb_table *(*fill)(struct page *p, u32 *n); /* *n: rows there are */
	unsigned rows;	  /* more are never useful as text; 0 = no such limit */
	const char *none; /* said when the table is empty; NULL: section left out */
} sections[] = {
    {"Processes", processes, 0, "no traced process is known"},
    {"Operations by class (outermost calls; share: of the window, busiest thread)", classes, 0,
     "no accelerator calls"},
    {"Calls (inner: made inside a runtime call; share: busiest thread)", calls, 0, NULL},
    {"Results other than 0", results, 0, NULL},
    {"Blocking system calls (slept on: of the longest sleep)", sleeps, 0, "none"},
    {"Off-CPU by reason", reasons, 0, "none"},
    {"Wake-ups between traced processes (first: from one process to another)", edges, 0, NULL},
    {"Locks (futex words slept on)", locks, 20, NULL},
    {"Threads", threads, 0, "none"},
    {"CPU time by function (estimate: samples x period)", funcs, 50, "no CPU samples"},
    {"Python functions by calls (times with what they call)", py_calls, 50, NULL},
    {"CPU time in the kernel by system call (estimate: samples x period)", kernel, 0, NULL},
    {"System calls", syscalls, 0, NULL},
    {"Python: fields of objects (different: texts; no value: missing or unreadable; late: read a moment "
     "after)",
     fields, 0, NULL},
    {"Python: exceptions (unwound: frames without a handler that each went through)", exceptions, 30, NULL},
    {"Python: waits for the GIL (share: of the window)", gils, 30, NULL},
    {"Python: who held the GIL when others began to wait", holders, 20, NULL},
    {"Python: garbage collections", gcs, 0, NULL},
    {"Stacks", stacks, 20, NULL},
    {"Loss", losses, 0, NULL},
    {"Cost by hook (targets: hits x measured price; machine: as measured by the kernel)", prices, 0, NULL},
};

static u64 meta_number(const struct hb_window *w, const char *key)
{
	const char *s = hb_window__meta(w, key);

	return s ? strtoull(s, NULL, 10) : 0;
}

/* What the CPU times rest on when the kernel did not run the sampling program at every tick. */
static void print_ticks(const struct page *p)
{
	double expected = (double)meta_number(p->w, "sample_hz") * (double)meta_number(p->w, "cpus") *
			  (double)hb_model__totals(p->m)->wall_ns / 1e9;
	u64 missed = 0;
	u32 n;
	const struct hb_loss_row *s = hb_window__losses(p->w, &n);

	for (u32 i = 0; i < n; i++)
		if (s[i].cause == HB_LOSS_MISSED && s[i].type == HB_TYPE_sample)
			missed += s[i].count;
	if (missed && expected >= (double)missed)
		fprintf(p->out, "  %.0f of %.0f ticks came: what ran at the others is missing here\n",
			expected - (double)missed, expected);
}

static int print_section(struct page *p, const struct section *s)
{
	struct page limited = *p;
	struct hb_table *t;
	u32 n = 0;
	int rc;

	if (p->rows && s->rows && s->rows < p->rows)
		limited.rows = s->rows;
	t = s->fill(&limited, &n);
	if (!t)
		return -ENOMEM;
	if (!n && !s->none)
		return hb_table__print(t, NULL, 0);
	fprintf(p->out, "\n%s\n", s->title);
	if (!n) {
		fprintf(p->out, "  %s\n", s->none);
		return hb_table__print(t, NULL, 0);
	}
	if (s->fill == funcs)
		print_ticks(p);
	rc = hb_table__print(t, p->out, p->width);
	if (n > shown(&limited, n))
		fprintf(p->out, "  ... and %u more (--rows 0 shows all)\n", n - shown(&limited, n));
	return rc;
}

static void print_notes(const struct page *p)
{
	char line[512];
	u32 text, level;

	for (u32 i = 0; hb_model__note(p->m, i, &text, &level); i++) {
		snprintf(line, sizeof(line), "%.*s", (int)sizeof(line) - 1, hb_window__string(p->w, text));
		fprintf(p->out, "%s%s: %s\n", i ? "" : "\nNotes\n", hb_word(HB_WORDS_NOTELEVEL, level),
			hb_text__clean(line));
	}
}

int hb_report__text(struct hb_window *w, FILE *out, const struct hb_report_opts *o, struct hb_error *e)
{
	struct page p = {
	    .w = w, .out = out, .rows = o ? o->rows : 0, .width = o && o->wide ? UINT_MAX : WIDTH};
	int rc = 0;

	p.m = hb_model__build(w, e);
	if (!p.m)
		return -ENOMEM;
	hb_report__head(w, hb_model__totals(p.m), out);
	hb_report__loss(w, out, HB_LOSS_COUNT);
	hb_report__cost(hb_model__totals(p.m), out);
	for (size_t i = 0; i < sizeof(sections) / sizeof(*sections) && !rc; i++)
		rc = print_section(&p, &sections[i]);
	if (rc)
		hb_error__nomem(e, "the report");
	else
		print_notes(&p);
	hb_model__free(p.m);
	return rc;
}
