/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The JSON of PyTorch's profiler (Kineto), as Holistic Trace Analysis and TraceLens read it: host rows only,
 * for a window has no device records. Rows are in order of their END; readers sort. Times are microseconds
 * with three decimals, so that no nanosecond is lost, since baseTimeNanoseconds.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/export/export.h"
#include "analysis/export/jbuf.h"
#include "analysis/export/label.h"
#include "analysis/model/decode.h"
#include "analysis/model/pyevents.h"
#include "base/text.h"
#include "schema/pyevents.h"

#define FLUSH_AT (256 * 1024)

struct ctx {
	struct hb_window *w;
	struct hb_buf out;
	u64 base;	 /* monotonic ns: time 0 of the file */
	u64 correlation; /* of the last call: numbered in order of their end, from 1 */
	bool first;
};

static int flush(struct ctx *c, FILE *out, size_t limit)
{
	if (c->out.oom)
		return -ENOMEM;
	if (c->out.size < limit || !c->out.size)
		return 0;
	if (fwrite(c->out.data, 1, c->out.size, out) != c->out.size)
		return errno ? -errno : -EIO;
	c->out.size = 0;
	return 0;
}

static void add_us(struct ctx *c, u64 ns)
{
	char frac[4] = {'.', (char)('0' + ns % 1000 / 100), (char)('0' + ns % 100 / 10),
			(char)('0' + ns % 10)};

	hb_jbuf__u64(&c->out, ns / 1000);
	hb_buf__add(&c->out, frac, sizeof(frac));
}

/* ---- rows ---- */

static void begin_row(struct ctx *c, const char *cat, const char *name, const struct hb_record *r)
{
	hb_buf__add(&c->out, c->first ? "\n" : ",\n", c->first ? 1 : 2);
	c->first = false;
	hb_jbuf__lit(&c->out, "{\"ph\":\"X\",\"cat\":");
	hb_jbuf__str(&c->out, cat);
	hb_jbuf__lit(&c->out, ",\"name\":");
	hb_jbuf__str(&c->out, name);
	hb_jbuf__lit(&c->out, ",\"pid\":");
	hb_jbuf__u64(&c->out, r->task->pid);
	hb_jbuf__lit(&c->out, ",\"tid\":");
	hb_jbuf__u64(&c->out, r->task->tid);
	hb_jbuf__lit(&c->out, ",\"ts\":");
	add_us(c, r->begin - c->base);
	hb_jbuf__lit(&c->out, ",\"dur\":");
	add_us(c, r->ts - r->begin);
	hb_jbuf__lit(&c->out, ",\"args\":{");
}

static void end_row(struct ctx *c)
{
	if (c->out.size && c->out.data[c->out.size - 1] == ',') /* of the last argument */
		c->out.size--;
	hb_jbuf__lit(&c->out, "}}");
}

static void arg_text(struct ctx *c, const char *key, const char *s)
{
	hb_jbuf__str(&c->out, key);
	hb_jbuf__lit(&c->out, ":");
	hb_jbuf__str(&c->out, s);
	hb_jbuf__lit(&c->out, ",");
}

static void arg_u64(struct ctx *c, const char *key, u64 v)
{
	hb_jbuf__str(&c->out, key);
	hb_jbuf__lit(&c->out, ":");
	hb_jbuf__u64(&c->out, v);
	hb_jbuf__lit(&c->out, ",");
}

static void arg_s64(struct ctx *c, const char *key, s64 v)
{
	hb_jbuf__str(&c->out, key);
	hb_jbuf__lit(&c->out, ":");
	hb_jbuf__s64(&c->out, v);
	hb_jbuf__lit(&c->out, ",");
}

static void arg_three(struct ctx *c, const char *key, u64 x, u64 y, u64 z)
{
	hb_jbuf__str(&c->out, key);
	hb_jbuf__lit(&c->out, ":[");
	hb_jbuf__u64(&c->out, x);
	hb_jbuf__lit(&c->out, ",");
	hb_jbuf__u64(&c->out, y);
	hb_jbuf__lit(&c->out, ",");
	hb_jbuf__u64(&c->out, z);
	hb_jbuf__lit(&c->out, "],");
}

static void arg_task(struct ctx *c, const struct hb_record *r, u64 task)
{
	const char *name = hb_window__pytask(c->w, r->task->pid, task, r->ts);

	if (!task)
		return;
	hb_jbuf__lit(&c->out, "\"task\":");
	hb_jbuf__hex(&c->out, task);
	hb_jbuf__lit(&c->out, ",");
	if (name)
		arg_text(c, "task_name", name);
}

/* The words that readers of this format know, whatever the API's brand; `api` among the arguments has that.
 */
static const char *category_of(const struct hb_probe_row *row)
{
	switch (row->layer) {
	case HB_LAYER_DRIVER:
		return "cuda_driver";
	case HB_LAYER_RUNTIME:
		return "cuda_runtime";
	default:
		return "user_annotation";
	}
}

static void accel_bytes(struct ctx *c, const struct hb_probe_row *row, const struct hb_rec_accel *a)
{
	const char *api = hb_window__string(c->w, row->api), *word;
	unsigned size;

	if (!a->bytes)
		return;
	if (row->cls != HB_CLASS_COLLECTIVE) {
		arg_u64(c, "bytes", a->bytes);
		return;
	}
	arg_u64(c, "elements", a->bytes);
	word = hb_decode__datatype(api, a->kind, &size);
	if (!word)
		return;
	arg_u64(c, "bytes", a->bytes * size);
	arg_text(c, "dtype", word);
}

/* No "External id": it links to an operator row, and there are none. No "cbid": that is CUPTI's number.
 * "stream" is left to device rows: readers take a row that has one for the device's. */
static void add_accel(struct ctx *c, const struct hb_record *r)
{
	static const struct hb_probe_row none = {.layer = HB_LAYER_LIBRARY};
	const struct hb_rec_accel *a = r->data;
	const struct hb_probe_row *row = hb_window__probe(c->w, a->probe);
	const char *api, *kind;

	row = row ? row : &none;
	api = hb_window__string(c->w, row->api);
	begin_row(c, category_of(row), row->name ? hb_window__string(c->w, row->name) : "?", r);
	arg_u64(c, "correlation", ++c->correlation);
	arg_text(c, "api", api);
	arg_text(c, "class", hb_word(HB_WORDS_CLASS, row->cls));
	if (a->gx)
		arg_three(c, "grid", a->gx, a->gy, a->gz);
	if (a->bx)
		arg_three(c, "block", a->bx, a->by, a->bz);
	accel_bytes(c, row, a);
	kind = row->cls == HB_CLASS_COPY && a->kind ? hb_decode__copy_kind(api, a->kind) : NULL;
	if (kind)
		arg_text(c, "kind", kind);
	if (a->flags & HB_AFLAG_RET)
		arg_s64(c, "ret", a->ret);
	arg_task(c, r, a->task);
	end_row(c);
}

static void add_offcpu(struct ctx *c, const struct hb_record *r)
{
	const struct hb_rec_offcpu *o = r->data;
	char buf[256];
	const char *chan;

	begin_row(c, "offcpu", hb_label__offcpu(o, buf, sizeof(buf)), r);
	arg_text(c, "state", hb_word(HB_WORDS_TSTATE, o->state));
	arg_u64(c, "runnable_ns", o->ready);
	chan = hb_decode__slept_on(c->w, r->task->pid, o, buf, sizeof(buf));
	if (chan)
		arg_text(c, "chan", chan);
	if (hb_label__has_waker(o))
		arg_u64(c, "waker_tid", o->waker);
	arg_task(c, r, o->task);
	end_row(c);
}

static void add_syscall(struct ctx *c, const struct hb_record *r)
{
	const struct hb_rec_syscall *s = r->data;
	char buf[32];
	const char *call = hb_decode__syscall(s->sysno, buf, sizeof(buf));

	begin_row(c, "syscall", call ? call : "?", r);
	arg_s64(c, "ret", s->ret);
	end_row(c);
}

/* Named as the profiler's own rows are. Where only one end was seen the row has no length. */
static void add_py_call(struct ctx *c, const struct hb_record *r)
{
	const struct hb_rec_py_call *p = r->data;
	const struct hb_loc *l = hb_window__loc(c->w, p->func);
	char name[512] = "?";

	if (l)
		snprintf(name, sizeof(name), "%.200s(%u): %.200s",
			 hb_text__basename(hb_window__string(c->w, l->file)), l->line,
			 hb_window__string(c->w, l->func));
	begin_row(c, "python_function", name, r);
	arg_text(c, "end", hb_word(HB_WORDS_PYEND, p->end));
	end_row(c);
}

/* ---- Python's events ---- */

/* A row without length, as nothing in this format is an instant. What was only counted has no moment. */
static void add_exception(struct ctx *c, const struct hb_record *r)
{
	const struct hb_rec_py_exception *x = r->data;
	const struct hb_loc *l = hb_decode__site(c->w, r->task->pid, x->site);
	char buf[4 * sizeof(hb_label) + 4];

	if (x->flags & HB_PYEXC_REST)
		return;
	begin_row(c, "exception", hb_decode__exception(&x->name, x->origin, buf, sizeof(buf)), r);
	if (x->message_kind)
		arg_text(c, "message", hb_decode__message(x, buf, sizeof(buf)));
	if (l)
		arg_text(c, "raised_at", hb_decode__frame(c->w, l, HB_FRAME_LINE, buf, sizeof(buf)));
	arg_task(c, r, x->task);
	end_row(c);
}

static void add_gil(struct ctx *c, const struct hb_record *r)
{
	const struct hb_rec_py_gil *g = r->data;
	const struct hb_task *holder = hb_decode__nstask(c->w, r->task->pid, g->holder);

	begin_row(c, "gil", hb_label__gil(g), r);
	if (holder)
		arg_u64(c, "holder_tid", holder->tid);
	arg_u64(c, "slept_ns", g->slept);
	arg_u64(c, "sleeps", g->sleeps);
	arg_task(c, r, g->task);
	end_row(c);
}

static void add_gc(struct ctx *c, const struct hb_record *r)
{
	const struct hb_rec_py_gc *g = r->data;

	begin_row(c, "gc", "garbage collection", r);
	if (g->generation != UINT32_MAX)
		arg_u64(c, "generation", g->generation);
	arg_task(c, r, g->task);
	end_row(c);
}

/* ---- names of processes and threads ---- */

static void add_name(struct ctx *c, const char *what, u32 pid, u32 tid, const char *key, const char *text)
{
	hb_buf__add(&c->out, c->first ? "\n" : ",\n", c->first ? 1 : 2);
	c->first = false;
	hb_jbuf__lit(&c->out, "{\"ph\":\"M\",\"name\":");
	hb_jbuf__str(&c->out, what);
	hb_jbuf__lit(&c->out, ",\"pid\":");
	hb_jbuf__u64(&c->out, pid);
	hb_jbuf__lit(&c->out, ",\"tid\":");
	hb_jbuf__u64(&c->out, tid);
	hb_jbuf__lit(&c->out, ",\"ts\":0.000,\"args\":{");
	hb_jbuf__str(&c->out, key);
	hb_jbuf__lit(&c->out, ":");
	hb_jbuf__str(&c->out, text);
	hb_jbuf__lit(&c->out, "}}");
}

static void add_names(struct ctx *c)
{
	u32 n;
	const struct hb_proc *p = hb_window__procs(c->w, &n);
	const struct hb_task *t;
	const char *sim = hb_decode__simulated(c->w);
	char text[96];

	for (u32 i = 0; i < n; i++) {
		add_name(c, "process_name", p[i].pid, 0, "name",
			 hb_label__process(c->w, p[i].pid, true, text, sizeof(text)));
		add_name(c, "process_labels", p[i].pid, 0, "labels", sim ? sim : "CPU");
	}
	t = hb_window__tasks(c->w, &n);
	for (u32 i = 0; i < n; i++)
		if (t[i].target && t[i].tid)
			add_name(c, "thread_name", t[i].pid, t[i].tid, "name", hb_decode__comm(c->w, &t[i]));
}

/* ---- the file ---- */

static u64 realtime_of(const struct ctx *c)
{
	const char *v = hb_window__meta(c->w, "realtime_offset_ns");

	return c->base + (v ? strtoull(v, NULL, 10) : 0);
}

/* Readers find the rank by the text `"rank": N` in a line. */
static void add_head(struct ctx *c)
{
	const char *host = hb_window__meta(c->w, "host"), *tool = hb_window__meta(c->w, "tool");
	const char *sim = hb_decode__simulated(c->w);

	hb_jbuf__lit(&c->out, "{\n\"schemaVersion\": 1,\n\"deviceProperties\": [],\n");
	hb_jbuf__lit(&c->out, "\"distributedInfo\": {\"backend\": \"\", \"rank\": 0, \"world_size\": 1},\n");
	hb_jbuf__lit(&c->out, "\"displayTimeUnit\": \"ms\",\n\"baseTimeNanoseconds\": ");
	hb_jbuf__u64(&c->out, realtime_of(c));
	hb_jbuf__lit(&c->out, ",\n\"traceName\": ");
	hb_jbuf__str(&c->out, host ? host : "");
	hb_jbuf__lit(&c->out, ",\n\"herschel\": {\"tool\": ");
	hb_jbuf__str(&c->out, tool ? tool : "herschel-bpf");
	hb_jbuf__lit(&c->out, ", \"monotonic_base_ns\": ");
	hb_jbuf__u64(&c->out, c->base);
	if (sim) {
		hb_jbuf__lit(&c->out, ", \"device\": ");
		hb_jbuf__str(&c->out, sim);
	}
	if (hb_window__damage(c->w)) {
		hb_jbuf__lit(&c->out, ", \"damage\": ");
		hb_jbuf__str(&c->out, hb_window__damage(c->w));
	}
	hb_jbuf__lit(&c->out, ", \"loss\": {");
	for (unsigned k = 0; k < HB_LOSS_COUNT; k++)
		hb_buf__printf(&c->out, "%s\"%s\": %llu", k ? ", " : "", hb_word(HB_WORDS_LOSS, k),
			       (unsigned long long)hb_window__loss_total(c->w, k));
	hb_jbuf__lit(&c->out, "}},\n\"traceEvents\": [");
}

/* Times in the file are not negative: what began first is its zero. */
static void find_base(struct ctx *c)
{
	struct hb_record r;

	c->base = hb_window__info(c->w)->start_ts;
	hb_window__rewind(c->w);
	while (hb_window__next(c->w, &r) > 0)
		if (r.begin < c->base)
			c->base = r.begin;
}

static int add_rows(struct ctx *c, FILE *out)
{
	static void (*const add[HB_TYPE_MAX])(struct ctx *, const struct hb_record *) = {
	    [HB_TYPE_accel] = add_accel,
	    [HB_TYPE_offcpu] = add_offcpu,
	    [HB_TYPE_syscall] = add_syscall,
	    [HB_TYPE_py_call] = add_py_call,
	    [HB_TYPE_py_exception] = add_exception,
	    [HB_TYPE_py_gil] = add_gil,
	    [HB_TYPE_py_gc] = add_gc,
	};
	struct hb_record r;
	int rc = 0;

	hb_window__rewind(c->w);
	while (!rc && hb_window__next(c->w, &r) > 0) {
		if (add[r.type])
			add[r.type](c, &r);
		rc = flush(c, out, FLUSH_AT);
	}
	return rc;
}

static int run(struct hb_window *w, FILE *out, struct hb_error *e)
{
	struct ctx c = {.w = w, .first = true};
	int rc;

	find_base(&c);
	add_head(&c);
	add_names(&c);
	rc = add_rows(&c, out);
	hb_jbuf__lit(&c.out, "\n]}\n");
	rc = rc ? rc : flush(&c, out, 0);
	if (rc == -ENOMEM)
		hb_error__nomem(e, "kineto rows");
	hb_buf__free(&c.out);
	return rc;
}

HB_EXPORTER(kineto) = {
    .name = "kineto",
    .doc = "PyTorch profiler's JSON, for HTA and TraceLens (docs/exports.md)",
    .run = run,
};
