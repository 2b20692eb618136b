/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The JSON of PyTorch's profiler (Kineto), as Holistic Trace Analysis and TraceLens read it. Rows are in
 * order of their END; readers sort. Times are microseconds with three decimals, so that no nanosecond is
 * lost, since baseTimeNanoseconds.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/export/export.h"
#include "analysis/export/jbuf.h"
#include "analysis/export/kineto_private.h"
#include "analysis/export/label.h"
#include "analysis/model/decode.h"
#include "analysis/model/pyevents.h"
#include "base/text.h"
#include "schema/pyevents.h"

#define FLUSH_AT (256 * 1024)

static int flush(struct hb_kineto *c, FILE *out, size_t limit)
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

static void add_us(struct hb_kineto *c, u64 ns)
{
	char frac[4] = {'.', (char)('0' + ns % 1000 / 100), (char)('0' + ns % 100 / 10),
			(char)('0' + ns % 10)};

	hb_jbuf__u64(&c->out, ns / 1000);
	hb_buf__add(&c->out, frac, sizeof(frac));
}

/* ---- rows ---- */

static void begin_event(struct hb_kineto *c)
{
	hb_buf__add(&c->out, c->first ? "\n" : ",\n", c->first ? 1 : 2);
	c->first = false;
}

void hb_kineto__begin(struct hb_kineto *c, const char *cat, const char *name, struct hb_kineto_place at,
		      const struct hb_record *r)
{
	begin_event(c);
	hb_jbuf__lit(&c->out, "{\"ph\":\"X\",\"cat\":");
	hb_jbuf__str(&c->out, cat);
	hb_jbuf__lit(&c->out, ",\"name\":");
	hb_jbuf__str(&c->out, name);
	hb_jbuf__lit(&c->out, ",\"pid\":");
	hb_jbuf__u64(&c->out, at.pid);
	hb_jbuf__lit(&c->out, ",\"tid\":");
	hb_jbuf__u64(&c->out, at.tid);
	hb_jbuf__lit(&c->out, ",\"ts\":");
	add_us(c, r->begin - c->base);
	hb_jbuf__lit(&c->out, ",\"dur\":");
	add_us(c, r->ts - r->begin);
	hb_jbuf__lit(&c->out, ",\"args\":{");
}

static struct hb_kineto_place place_of(const struct hb_record *r)
{
	return (struct hb_kineto_place){r->task->pid, r->task->tid};
}

static void begin_row(struct hb_kineto *c, const char *cat, const char *name, const struct hb_record *r)
{
	hb_kineto__begin(c, cat, name, place_of(r), r);
}

void hb_kineto__end(struct hb_kineto *c)
{
	if (c->out.size && c->out.data[c->out.size - 1] == ',') /* of the last argument */
		c->out.size--;
	hb_jbuf__lit(&c->out, "}}");
}

void hb_kineto__text(struct hb_kineto *c, const char *key, const char *s)
{
	hb_jbuf__str(&c->out, key);
	hb_jbuf__lit(&c->out, ":");
	hb_jbuf__str(&c->out, s);
	hb_jbuf__lit(&c->out, ",");
}

void hb_kineto__u64(struct hb_kineto *c, const char *key, u64 v)
{
	hb_jbuf__str(&c->out, key);
	hb_jbuf__lit(&c->out, ":");
	hb_jbuf__u64(&c->out, v);
	hb_jbuf__lit(&c->out, ",");
}

void hb_kineto__s64(struct hb_kineto *c, const char *key, s64 v)
{
	hb_jbuf__str(&c->out, key);
	hb_jbuf__lit(&c->out, ":");
	hb_jbuf__s64(&c->out, v);
	hb_jbuf__lit(&c->out, ",");
}

void hb_kineto__three(struct hb_kineto *c, const char *key, u64 x, u64 y, u64 z)
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

static void arg_task(struct hb_kineto *c, const struct hb_record *r, u64 task)
{
	const char *name = hb_window__pytask(c->w, r->task->pid, task, r->ts);

	if (!task)
		return;
	hb_jbuf__lit(&c->out, "\"task\":");
	hb_jbuf__hex(&c->out, task);
	hb_jbuf__lit(&c->out, ",");
	if (name)
		hb_kineto__text(c, "task_name", name);
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

static void accel_bytes(struct hb_kineto *c, const struct hb_probe_row *row, const struct hb_rec_accel *a)
{
	const char *api = hb_window__string(c->w, row->api), *word;
	unsigned size;

	if (!a->bytes)
		return;
	if (row->cls != HB_CLASS_COLLECTIVE) {
		hb_kineto__u64(c, "bytes", a->bytes);
		return;
	}
	hb_kineto__u64(c, "elements", a->bytes);
	word = hb_decode__datatype(api, a->kind, &size);
	if (!word)
		return;
	hb_kineto__u64(c, "bytes", a->bytes * size);
	hb_kineto__text(c, "dtype", word);
}

/* No "External id": it links to an operator row, and which one is told by their times. No "cbid": that is
 * CUPTI's number. "stream" is left to device rows: readers take a row that has one for the device's. */
static void add_accel(struct hb_kineto *c, const struct hb_record *r)
{
	static const struct hb_probe_row none = {.layer = HB_LAYER_LIBRARY};
	const struct hb_rec_accel *a = r->data;
	const struct hb_probe_row *row = hb_window__probe(c->w, a->probe);
	const char *api, *kind;
	u64 number;

	row = row ? row : &none;
	api = hb_window__string(c->w, row->api);
	begin_row(c, category_of(row), row->name ? hb_window__string(c->w, row->name) : "?", r);
	number = c->own_numbers ? hb_kineto__number(c, r->task->pid, a->correlation) : ++c->correlation;
	if (number)
		hb_kineto__u64(c, "correlation", number);
	hb_kineto__text(c, "api", api);
	hb_kineto__text(c, "class", hb_word(HB_WORDS_CLASS, row->cls));
	if (a->gx)
		hb_kineto__three(c, "grid", a->gx, a->gy, a->gz);
	if (a->bx)
		hb_kineto__three(c, "block", a->bx, a->by, a->bz);
	if (a->shm)
		hb_kineto__u64(c, "shared memory", a->shm);
	accel_bytes(c, row, a);
	kind = row->cls == HB_CLASS_COPY && a->kind ? hb_decode__copy_kind(api, a->kind) : NULL;
	if (kind)
		hb_kineto__text(c, "kind", kind);
	if (a->flags & HB_AFLAG_RET)
		hb_kineto__s64(c, "ret", a->ret);
	arg_task(c, r, a->task);
	hb_kineto__end(c);
	if (c->own_numbers && hb_kineto__has_work(c, r->task->pid, a->correlation))
		hb_kineto__flow(c, 's', number, place_of(r), r->begin);
}

static void add_offcpu(struct hb_kineto *c, const struct hb_record *r)
{
	const struct hb_rec_offcpu *o = r->data;
	char buf[256];
	const char *chan;

	begin_row(c, "offcpu", hb_label__offcpu(o, buf, sizeof(buf)), r);
	hb_kineto__text(c, "state", hb_word(HB_WORDS_TSTATE, o->state));
	hb_kineto__u64(c, "runnable_ns", o->ready);
	chan = hb_decode__slept_on(c->w, r->task->pid, o, buf, sizeof(buf));
	if (chan)
		hb_kineto__text(c, "chan", chan);
	if (hb_label__has_waker(o))
		hb_kineto__u64(c, "waker_tid", o->waker);
	arg_task(c, r, o->task);
	hb_kineto__end(c);
}

static void add_syscall(struct hb_kineto *c, const struct hb_record *r)
{
	const struct hb_rec_syscall *s = r->data;
	char buf[32];
	const char *call = hb_decode__syscall(s->sysno, buf, sizeof(buf));

	begin_row(c, "syscall", call ? call : "?", r);
	hb_kineto__s64(c, "ret", s->ret);
	hb_kineto__end(c);
}

/* Named as the profiler's own rows are; where the record comes from those, just as there. Where only one end
 * was seen the row has no length. */
static void add_py_call(struct hb_kineto *c, const struct hb_record *r)
{
	const struct hb_rec_py_call *p = r->data;
	const struct hb_loc *l = hb_window__loc(c->w, p->func);
	const char *func = l ? hb_window__string(c->w, l->func) : "?", *file = "";
	char name[1024];

	if (l)
		file = hb_window__string(c->w, l->file);
	if (*file && *file == '/' && !hb_window__meta(c->w, "imported"))
		file = hb_text__basename(file);
	if (*file)
		snprintf(name, sizeof(name), "%.500s(%u): %.500s", file, l->line, func);
	else
		snprintf(name, sizeof(name), "%s", func);
	begin_row(c, "python_function", name, r);
	hb_kineto__text(c, "end", hb_word(HB_WORDS_PYEND, p->end));
	hb_kineto__end(c);
}

/* ---- Python's events ---- */

/* A row without length, as nothing in this format is an instant. What was only counted has no moment. */
static void add_exception(struct hb_kineto *c, const struct hb_record *r)
{
	const struct hb_rec_py_exception *x = r->data;
	const struct hb_loc *l = hb_decode__site(c->w, r->task->pid, x->site);
	char buf[4 * sizeof(hb_label) + 4];

	if (x->flags & HB_PYEXC_REST)
		return;
	begin_row(c, "exception", hb_decode__exception(&x->name, x->origin, buf, sizeof(buf)), r);
	if (x->message_kind)
		hb_kineto__text(c, "message", hb_decode__message(x, buf, sizeof(buf)));
	if (l)
		hb_kineto__text(c, "raised_at", hb_decode__frame(c->w, l, HB_FRAME_LINE, buf, sizeof(buf)));
	arg_task(c, r, x->task);
	hb_kineto__end(c);
}

static void add_gil(struct hb_kineto *c, const struct hb_record *r)
{
	const struct hb_rec_py_gil *g = r->data;
	const struct hb_task *holder = hb_decode__nstask(c->w, r->task->pid, g->holder);

	begin_row(c, "gil", hb_label__gil(g), r);
	if (holder)
		hb_kineto__u64(c, "holder_tid", holder->tid);
	hb_kineto__u64(c, "slept_ns", g->slept);
	hb_kineto__u64(c, "sleeps", g->sleeps);
	arg_task(c, r, g->task);
	hb_kineto__end(c);
}

static void add_gc(struct hb_kineto *c, const struct hb_record *r)
{
	const struct hb_rec_py_gc *g = r->data;

	begin_row(c, "gc", "garbage collection", r);
	if (g->generation != UINT32_MAX)
		hb_kineto__u64(c, "generation", g->generation);
	arg_task(c, r, g->task);
	hb_kineto__end(c);
}

/* ---- names of processes and threads ---- */

void hb_kineto__name(struct hb_kineto *c, const char *what, struct hb_kineto_place at, const char *key,
		     const char *text)
{
	begin_event(c);
	hb_jbuf__lit(&c->out, "{\"ph\":\"M\",\"name\":");
	hb_jbuf__str(&c->out, what);
	hb_jbuf__lit(&c->out, ",\"pid\":");
	hb_jbuf__u64(&c->out, at.pid);
	hb_jbuf__lit(&c->out, ",\"tid\":");
	hb_jbuf__u64(&c->out, at.tid);
	hb_jbuf__lit(&c->out, ",\"ts\":0.000,\"args\":{");
	hb_jbuf__str(&c->out, key);
	hb_jbuf__lit(&c->out, ":");
	hb_jbuf__str(&c->out, text);
	hb_jbuf__lit(&c->out, "}}");
}

void hb_kineto__flow(struct hb_kineto *c, char ph, u64 id, struct hb_kineto_place at, u64 ts)
{
	begin_event(c);
	hb_buf__printf(&c->out, "{\"ph\":\"%c\",\"id\":%llu,\"pid\":%llu,\"tid\":%llu,\"ts\":", ph,
		       (unsigned long long)id, (unsigned long long)at.pid, (unsigned long long)at.tid);
	add_us(c, ts - c->base);
	hb_buf__printf(&c->out, ",\"cat\":\"ac2g\",\"name\":\"ac2g\"%s}", ph == 'f' ? ",\"bp\":\"e\"" : "");
}

static void add_names(struct hb_kineto *c)
{
	u32 n;
	const struct hb_proc *p = hb_window__procs(c->w, &n);
	const struct hb_task *t;
	const char *sim = hb_decode__simulated(c->w);
	char text[96];

	for (u32 i = 0; i < n; i++) {
		hb_kineto__name(c, "process_name", (struct hb_kineto_place){p[i].pid, 0}, "name",
				hb_label__process(c->w, p[i].pid, true, text, sizeof(text)));
		hb_kineto__name(c, "process_labels", (struct hb_kineto_place){p[i].pid, 0}, "labels",
				sim ? sim : "CPU");
	}
	t = hb_window__tasks(c->w, &n);
	for (u32 i = 0; i < n; i++)
		if (t[i].target && t[i].tid)
			hb_kineto__name(c, "thread_name", (struct hb_kineto_place){t[i].pid, t[i].tid},
					"name", hb_decode__comm(c->w, &t[i]));
	hb_kineto__device_names(c);
}

/* ---- the file ---- */

static u64 realtime_of(const struct hb_kineto *c)
{
	const char *v = hb_window__meta(c->w, "realtime_offset_ns");

	return c->base + (v ? strtoull(v, NULL, 10) : 0);
}

static unsigned long long number_of(const struct hb_kineto *c, const char *key, unsigned long long absent)
{
	const char *v = hb_window__meta(c->w, key);

	return v ? strtoull(v, NULL, 10) : absent;
}

/* Readers find the rank by the text `"rank": N` in a line. */
static void add_head(struct hb_kineto *c)
{
	const char *host = hb_window__meta(c->w, "host"), *tool = hb_window__meta(c->w, "tool");
	const char *sim = hb_decode__simulated(c->w), *name = hb_window__meta(c->w, "trace_name");

	hb_jbuf__lit(&c->out, "{\n\"schemaVersion\": 1,\n\"deviceProperties\": [");
	hb_kineto__properties(c);
	hb_buf__printf(
	    &c->out, "],\n\"distributedInfo\": {\"backend\": \"\", \"rank\": %llu, \"world_size\": %llu},\n",
	    number_of(c, "rank", 0), number_of(c, "world_size", 1));
	hb_jbuf__lit(&c->out, "\"displayTimeUnit\": \"ms\",\n\"baseTimeNanoseconds\": ");
	hb_jbuf__u64(&c->out, realtime_of(c));
	hb_jbuf__lit(&c->out, ",\n\"traceName\": ");
	hb_jbuf__str(&c->out, name ? name : host ? host : "");
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
static int look_ahead(struct hb_kineto *c)
{
	struct hb_record r;
	int rc = 0;

	c->base = hb_window__info(c->w)->start_ts;
	c->work = hb_map__new();
	c->devices = hb_map__new();
	c->owner = hb_map__new();
	c->numbers = hb_map__new();
	if (!c->work || !c->devices || !c->owner || !c->numbers)
		return -ENOMEM;
	hb_window__rewind(c->w);
	while (!rc && hb_window__next(c->w, &r) > 0) {
		if (r.begin < c->base)
			c->base = r.begin;
		if (r.type == HB_TYPE_accel)
			rc = hb_kineto__note_call(c, r.task->pid,
						  ((const struct hb_rec_accel *)r.data)->correlation);
		rc = rc ? rc : hb_kineto__note_work(c, &r);
	}
	return rc;
}

static int add_rows(struct hb_kineto *c, FILE *out)
{
	static void (*const add[HB_TYPE_MAX])(struct hb_kineto *, const struct hb_record *) = {
	    [HB_TYPE_accel] = add_accel,
	    [HB_TYPE_offcpu] = add_offcpu,
	    [HB_TYPE_syscall] = add_syscall,
	    [HB_TYPE_py_call] = add_py_call,
	    [HB_TYPE_py_exception] = add_exception,
	    [HB_TYPE_py_gil] = add_gil,
	    [HB_TYPE_py_gc] = add_gc,
	    [HB_TYPE_device] = hb_kineto__device,
	    [HB_TYPE_op] = hb_kineto__op,
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
	struct hb_kineto c = {.w = w, .first = true};
	int rc = look_ahead(&c);

	add_head(&c);
	add_names(&c);
	rc = rc ? rc : add_rows(&c, out);
	hb_jbuf__lit(&c.out, "\n]}\n");
	rc = rc ? rc : flush(&c, out, 0);
	if (rc == -ENOMEM)
		hb_error__nomem(e, "kineto rows");
	hb_buf__free(&c.out);
	hb_map__free(c.work);
	hb_map__free(c.owner);
	hb_map__free(c.numbers);
	hb_map__free(c.devices);
	return rc;
}

HB_EXPORTER(kineto) = {
    .name = "kineto",
    .doc = "PyTorch profiler's JSON, for HTA and TraceLens (docs/exports.md)",
    .run = run,
};
