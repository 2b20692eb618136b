/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * All of the analysis on records that nobody recorded: of any content, in any order, with ids that lead
 * nowhere. The input is a sequence of records, each as: type and task (a byte each), time since the last one
 * (16 bits, in units of 100 ns, signed), a count of bytes, and so many of the record, the rest of which is
 * zero. Tables are those of one small window.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/model/host.h"
#include "analysis/patterns/patterns.h"
#include "window/window.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

#define START	1000000000ULL
#define RECORDS 4000

static const u16 types[] = {HB_TYPE_accel,	  HB_TYPE_device,  HB_TYPE_accel,   HB_TYPE_offcpu,
			    HB_TYPE_sample,	  HB_TYPE_py_call, HB_TYPE_py_gil,  HB_TYPE_py_gc,
			    HB_TYPE_py_exception, HB_TYPE_op,	   HB_TYPE_syscall, HB_TYPE_device,
			    HB_TYPE_py_field};

static void fill(struct hb_window_writer *w)
{
	static const char *const names[] = {"cuLaunchKernel", "cudaMemcpyAsync", "cudaStreamSynchronize",
					    "cuGraphLaunch",  "ncclAllReduce",	 "cuMemAlloc"};
	static const u8 classes[] = {HB_CLASS_LAUNCH, HB_CLASS_COPY,	   HB_CLASS_SYNC,
				     HB_CLASS_GRAPH,  HB_CLASS_COLLECTIVE, HB_CLASS_ALLOC};

	for (u32 i = 0; i < 4; i++) {
		struct hb_task t = {.pid = 10 + i / 2 * 10, .tid = 10 + i / 2 * 10 + i % 2, .target = i < 3};

		t.comm = hb_window_writer__string(w, "thread");
		hb_window_writer__task(w, &t);
	}
	for (u32 i = 0; i < 6; i++) {
		struct hb_probe_row row = {.name = hb_window_writer__string(w, names[i]),
					   .api = hb_window_writer__string(w, "cuda-runtime"),
					   .cls = classes[i],
					   .timed = 1};

		hb_window_writer__probe(w, i + 1, &row);
	}
	for (u32 i = 1; i < 4; i++) {
		struct hb_loc l = {.func = hb_window_writer__string(w, i % 2 ? "EngineCore.step" : "item"),
				   .file = hb_window_writer__string(w, "/x/core.py"),
				   .lang = HB_LANG_PYTHON,
				   .line = i};
		u32 id = hb_window_writer__loc(w, &l);

		hb_window_writer__stack(w, 10, i, &id, 1, HB_STACK_WHOLE);
	}
}

static struct hb_window *tables(void)
{
	struct hb_window_opts o = {.streams = 1, .force = true, .start_ts = START};
	char path[64];
	struct hb_error e = {0};
	struct hb_window_writer *w;
	struct hb_window *r = NULL;

	snprintf(path, sizeof(path), "/tmp/hb-fuzz-analyze-%d.hbw", (int)getpid());
	w = hb_window_writer__new(path, &o, &e);
	if (w) {
		fill(w);
		if (!hb_window_writer__finish(w, START + 1000000000, &e))
			r = hb_window__open(path, &e);
	}
	if (!r) {
		fprintf(stderr, "%s\n", e.text);
		abort();
	}
	unlink(path);
	return r;
}

struct input {
	const u8 *at, *end;
	u64 ts;
};

/* The next record into `r`, its payload into `payload`; false at the end. */
static bool next(struct input *in, struct hb_window *w, struct hb_record *r, u8 *payload)
{
	const struct hb_type *t;
	s16 dt;
	size_t n;
	u64 dur;

	if (in->end - in->at < 5)
		return false;
	t = hb_schema__type(types[in->at[0] % (sizeof(types) / sizeof(*types))]);
	r->task_idx = in->at[1] % 6; /* the last one is beyond the table */
	r->task = hb_window__task(w, r->task_idx);
	if (!r->task) {
		r->task_idx = 0;
		r->task = hb_window__task(w, 0);
	}
	memcpy(&dt, in->at + 2, sizeof(dt));
	in->ts = in->ts + (u64)(dt * 100LL) < START / 2 ? START : in->ts + (u64)(dt * 100LL);
	n = in->at[4];
	in->at += 5;
	n = n > (size_t)(in->end - in->at) ? (size_t)(in->end - in->at) : n;
	memset(payload, 0, HB_RECORD_MAX);
	memcpy(payload, in->at, n > t->size ? t->size : n);
	in->at += n;
	r->type = t->id;
	r->ts = r->begin = in->ts;
	r->data = payload;
	if (t->dur_offset >= 0) {
		memcpy(&dur, payload + t->dur_offset, sizeof(dur));
		r->begin = dur < r->ts ? r->ts - dur : 0;
	}
	return true;
}

static void must(bool held)
{
	if (!held)
		abort();
}

/* What holds whatever was recorded. */
static void check(const struct hb_devices *d)
{
	const struct hb_device *v;

	for (u32 i = 0; (v = hb_devices__at(d, i)); i++) {
		struct hb_ivs active = {0};
		u64 gaps = 0;

		must(v->busy + v->idle == v->end - v->begin);
		must(v->compute + v->exposed_comm + v->exposed_memcpy + v->idle == v->end - v->begin);
		for (int s = 0; s < HB_GAP_SIZES; s++)
			gaps += v->gaps[s].ns;
		must(gaps == v->idle);
		hb_device__active(v, &active);
		must(active.oom || hb_ivs__length(&active) == v->busy);
		hb_ivs__free(&active);
		for (u32 k = 1; k < v->n_ops; k++)
			must(v->op[k - 1].begin <= v->op[k].begin);
	}
}

static void look(struct hb_window *w, struct hb_devices *d, struct hb_host *h)
{
	struct hb_error e = {0};
	struct hb_model *m = hb_model__build(w, &e);
	struct hb_patterns_input in = {.window = w, .model = m, .host = h, .devices = d};
	struct hb_findings *f;

	if (!m || hb_devices__finish(d, &e) || hb_host__finish(h, d, &e))
		abort();
	check(d);
	f = hb_patterns__run(&in, NULL, &e);
	must(f != NULL);
	hb_findings__free(f);
	hb_model__free(m);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	static struct hb_window *w;
	struct input in = {.at = data, .end = data + size, .ts = START};
	u8 payload[HB_RECORD_MAX] __attribute__((aligned(8)));
	bool linked_only = size && data[size - 1] & 1;
	struct hb_devices_opts o = {.linked_only = linked_only};
	struct hb_error e = {0};
	struct hb_devices *d;
	struct hb_host *h;
	struct hb_record r = {0};

	w = w ? w : tables();
	d = hb_devices__new(w, &o, &e);
	h = hb_host__new(w, &e);
	must(d && h);
	for (u32 i = 0; i < RECORDS && next(&in, w, &r, payload); i++) {
		struct hb_records one = {.record = {r}};

		hb_records__add(&one);
		must(!hb_devices__feed(d)->records(hb_devices__feed(d)->ctx, &one));
		must(!hb_host__feed(h)->records(hb_host__feed(h)->ctx, &one));
	}
	look(w, d, h);
	hb_host__free(h); /* it may look at the devices until then */
	hb_devices__free(d);
	return 0;
}
