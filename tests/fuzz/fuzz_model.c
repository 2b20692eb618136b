/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Timelines, wake edges, steps, device states, paths and patterns from any records. The tables (tasks,
 * probes, stacks) are those of one sound window; records are cut from the input:
 *
 *     type, task, gap (u16, 64 ns each), bits, payload
 *
 * Bits: 1 the payload's duration is taken as it is, else 24 bits of it; 2 the gap counts 2^20 times.
 */
#include "analysis/model/host.h"
#include "analysis/model/longest.h"
#include "analysis/patterns/patterns.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define START 1000000000ULL
#define TASKS 6

static struct hb_window *window;
static struct hb_model *model;

static void require(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "broken promise: %s\n", what);
	abort();
}

/* ---- the tables ---- */

static void put_tables(struct hb_window_writer *w)
{
	static const char *const names[] = {"cuLaunchKernel",	   "cuGraphLaunch",	 "cuMemcpyHtoDAsync",
					    "cuMemcpyDtoHAsync",   "cudaMemcpy",	 "cuMemAlloc",
					    "cuStreamSynchronize", "cuEventSynchronize", "cuCtxSynchronize",
					    "cuEventRecord",	   "ncclAllReduce",	 "cuModuleLoadData"};
	static const u8 classes[] = {HB_CLASS_LAUNCH, HB_CLASS_GRAPH, HB_CLASS_COPY,	   HB_CLASS_COPY,
				     HB_CLASS_COPY,   HB_CLASS_ALLOC, HB_CLASS_SYNC,	   HB_CLASS_SYNC,
				     HB_CLASS_SYNC,   HB_CLASS_EVENT, HB_CLASS_COLLECTIVE, HB_CLASS_OTHER};
	static const u32 pids[TASKS] = {100, 100, 100, 200, 200, 900};
	static const char *const functions[] = {"EngineCore.step", "GPUModelRunner.execute_model", "item",
						"recv", "ProfilerStep#1"};
	u32 locs[5];

	for (u32 i = 0; i < TASKS; i++) {
		struct hb_proc p = {.pid = pids[i], .nspid = pids[i]};
		struct hb_task t = {.pid = pids[i],
				    .tid = pids[i] + (i < 3 ? i : i - 3),
				    .nspid = pids[i],
				    .nstid = pids[i] + i,
				    .target = i < 5,
				    .comm = hb_window_writer__string(w, i < 3 ? "engine" : "server")};

		t.tid = i == 5 ? 900 : t.tid;
		hb_window_writer__proc(w, &p);
		hb_window_writer__task(w, &t);
	}
	for (u32 i = 0; i < sizeof(classes); i++) {
		struct hb_probe_row row = {.cls = classes[i],
					   .name = hb_window_writer__string(w, names[i]),
					   .api =
					       hb_window_writer__string(w, i == 10 ? "nccl" : "cuda-driver"),
					   .handle = i == 7 || i == 9 ? HB_HANDLE_EVENT : HB_HANDLE_HANDLE,
					   .timed = 1};

		hb_window_writer__probe(w, i + 1, &row);
	}
	for (u32 i = 0; i < 5; i++) {
		struct hb_loc l = {.func = hb_window_writer__string(w, functions[i]),
				   .file = hb_window_writer__string(w, "/x/core.py"),
				   .lang = HB_LANG_PYTHON,
				   .line = i + 1};

		locs[i] = hb_window_writer__loc(w, &l);
		for (u32 p = 1; p <= 2; p++)
			hb_window_writer__stack(w, p * 100, i + 1, locs, i + 1, HB_STACK_WHOLE);
	}
}

static void prepare(void)
{
	struct hb_window_opts o = {.streams = 1, .force = true, .start_ts = START};
	struct hb_error e = {0};
	struct hb_window_writer *w;
	char path[64];

	snprintf(path, sizeof(path), "/tmp/hb-fuzz-model-%d.hbw", (int)getpid());
	w = hb_window_writer__new(path, &o, &e);
	require(w != NULL, e.text);
	put_tables(w);
	require(!hb_window_writer__finish(w, START + 1000000000ULL, &e), e.text);
	window = hb_window__open(path, &e);
	require(window != NULL, e.text);
	unlink(path);
	model = hb_model__build(window, &e);
	require(model != NULL, e.text);
}

/* ---- records ---- */

static const u8 types[] = {HB_TYPE_accel,  HB_TYPE_offcpu,	 HB_TYPE_accel,	  HB_TYPE_offcpu,
			   HB_TYPE_sample, HB_TYPE_syscall,	 HB_TYPE_py_call, HB_TYPE_py_gil,
			   HB_TYPE_py_gc,  HB_TYPE_py_exception, HB_TYPE_device,  HB_TYPE_op,
			   HB_TYPE_thread, HB_TYPE_exit,	 HB_TYPE_accel,	  HB_TYPE_offcpu};

/* One record of the input; false at its end. */
static bool cut(const uint8_t **at, const uint8_t *end, u64 *ts, u8 *payload, struct hb_record *r)
{
	const struct hb_type *t;
	u64 dur = 0, gap;
	size_t left;

	if (end - *at < 5)
		return false;
	r->type = types[(*at)[0] % sizeof(types)];
	r->task_idx = (u16)(1 + (*at)[1] % TASKS);
	r->task = hb_window__task(window, r->task_idx);
	gap = ((u64)(*at)[2] | (u64)(*at)[3] << 8) * 64;
	gap <<= (*at)[4] & 2 ? 20 : 0;
	*ts = *ts + gap >= *ts ? *ts + gap : *ts;
	r->ts = *ts;
	t = hb_schema__type(r->type);
	left = (size_t)(end - *at) - 5 < t->size ? (size_t)(end - *at) - 5 : t->size;
	memset(payload, 0, HB_RECORD_MAX);
	memcpy(payload, *at + 5, left);
	if (t->dur_offset >= 0) {
		memcpy(&dur, payload + t->dur_offset, 8);
		if (!((*at)[4] & 1))
			dur &= 0xffffff;
		memcpy(payload + t->dur_offset, &dur, 8);
	}
	r->begin = dur <= r->ts ? r->ts - dur : 0;
	r->data = payload;
	*at += 5 + left;
	return true;
}

/* ---- what must hold ---- */

static void check_tiles(const struct hb_seg *s, u32 n, u64 begin, u64 end)
{
	require(n > 0 && s[0].begin == begin && s[n - 1].end == end, "a walk covers its stretch");
	for (u32 i = 1; i < n; i++)
		require(s[i].begin == s[i - 1].end, "without holes and overlaps");
}

static void check_thread(const struct hb_host *h, u32 thread, u64 begin, u64 end)
{
	const struct hb_shrink x = {.thread = thread, .keep = 300, .begin = begin, .end = end};
	struct hb_hop hop[HB_HOPS];
	struct hb_range gain, r;
	struct hb_seg *s;
	struct hb_use use = hb_timeline__use(hb_host__timeline(h), thread, begin, end);
	char text[300];
	u32 n = hb_wake__chain(hb_host__wake(h), thread, begin, end, hop, HB_HOPS);
	int segs = hb_path__walk(hb_host__timeline(h), hb_host__wake(h), thread, begin, end, &s);

	require(n <= HB_HOPS, "a chain has an end");
	require(strlen(hb_wake__chain_text(hb_host__wake(h), hop, n, text, sizeof(text))) < sizeof(text),
		"and text");
	require(segs > 0, "a walk has segments");
	check_tiles(s, (u32)segs, begin, end);
	free(s);
	require(use.running + use.slept + use.ready == end - begin, "uses of time add up");
	require(!hb_path__what_if(hb_host__path(h), thread, begin, end, &x, 1, &gain), "memory");
	require(gain.min <= gain.likely && gain.likely <= gain.max && gain.max <= end - begin,
		"gains in order");
	r = hb_path__exposed(hb_host__path(h), thread, begin, end, NULL);
	require(r.min <= r.likely && r.likely <= r.max && r.max <= end - begin, "exposed times in order");
}

static void check_process(const struct hb_host *h, u32 pid)
{
	const struct hb_series *s = hb_steps__of_pid(hb_host__steps(h), pid);
	u64 start = hb_timeline__start(hb_host__timeline(h)), end = hb_timeline__end(hb_host__timeline(h)),
	    at = start;
	u32 n;
	const struct hb_busy_span *b = hb_busy__spans(hb_host__busy(h), pid, &n);

	for (u32 i = 0; i < n; at = hb_busy_span__end(&b[i++]))
		require(b[i].begin == at && hb_busy_span__end(&b[i]) > at, "device states tile the window");
	require(!n || at == end, "to its end");
	for (u32 i = 0; s && i < s->n; i++) {
		u64 sum[HB_SEG_KINDS], all = 0;

		require(s->step[i].end > s->step[i].begin && (!i || s->step[i].begin >= s->step[i - 1].end),
			"steps in order");
		hb_path__sum(hb_host__path(h), pid, s->step[i].begin, s->step[i].end, sum);
		for (u32 k = 0; k < HB_SEG_KINDS; k++)
			all += sum[k];
		require(all == s->step[i].end - s->step[i].begin, "a step is charged once");
	}
}

/* A path hangs together, and its links and parts are its length; a stretch that is not there is an error. */
static void check_longest(const struct hb_host *h, const struct hb_devices *d, const char *name)
{
	const struct hb_longest_opts o = {.name = name};
	struct hb_error e = {0};
	struct hb_longest *l = hb_longest__build(hb_host__timeline(h), d, hb_host__steps(h), &o, &e);
	const struct hb_longest_sum *s;
	const struct hb_link *const *x;
	u64 links = 0, parts = 0;
	u32 n;

	if (!l) {
		require(name && e.text[0], "an error has a sentence, and the window is always there");
		return;
	}
	s = hb_longest__sum(l);
	x = hb_longest__path(l, &n);
	for (u32 i = 0; i < n; links += x[i++]->ns)
		require(!i || x[i]->from == x[i - 1]->to, "a path hangs together");
	for (u32 i = 0; i < HB_CP_PARTS; i++)
		parts += s->part[i];
	require(links == s->length && parts == s->length, "its links are its length");
	require(n == s->links && (!s->nodes || s->nodes == n + 1) && s->events <= s->all_events,
		"and counted");
	hb_longest__free(l);
}

static void check_all(struct hb_host *h, const struct hb_devices *d)
{
	const struct hb_timeline *tl = hb_host__timeline(h);
	struct hb_patterns_input in = {.window = window, .model = model, .host = h, .devices = d};
	u64 start = hb_timeline__start(tl), end = hb_timeline__end(tl), mid = start + (end - start) / 3;
	struct hb_findings *f;
	struct hb_error e = {0};

	for (u32 t = 0; t < hb_timeline__threads(tl) && mid < end; t++) {
		check_thread(h, t, start, end);
		check_thread(h, t, mid, mid + (end - mid) / 2 + 1);
	}
	check_process(h, 100);
	check_process(h, 200);
	check_longest(h, d, NULL);
	check_longest(h, d, "step");
	f = hb_patterns__run(&in, NULL, &e);
	require(f != NULL, e.text);
	hb_findings__free(f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *at = data, *end = data + size;
	struct hb_error e = {0};
	u8 payload[HB_RECORD_MAX] __attribute__((aligned(8)));
	struct hb_record r = {0};
	struct hb_devices *d;
	struct hb_host *h;
	u64 ts = START;

	if (!window)
		prepare();
	d = hb_devices__new(window, NULL, &e);
	h = hb_host__new(window, &e);
	require(d && h, e.text);
	while (cut(&at, end, &ts, payload, &r)) {
		struct hb_records one = {.record = {r}};

		hb_records__add(&one);
		require(!hb_host__feed(h)->records(hb_host__feed(h)->ctx, &one), "memory");
		require(!hb_devices__feed(d)->records(hb_devices__feed(d)->ctx, &one), "memory");
	}
	require(!hb_devices__finish(d, &e), e.text);
	require(!hb_host__finish(h, hb_devices__count(d) ? d : NULL, &e), e.text);
	check_all(h, d);
	hb_host__free(h);
	hb_devices__free(d);
	return 0;
}
