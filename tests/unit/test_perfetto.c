/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The perfetto exporter, read back by a small decoder that knows the wire format and the numbers of the
 * public schema, and none of the exporter's code.
 */
#include "analysis_rig.h"

#include <errno.h>

#include "analysis/export/export.h"
#include "analysis/export/perfetto_private.h"

#define MAX_EVENTS 4096
#define MAX_NAMES  2048
#define SEQUENCES  64

/* ---- reading protobuf ---- */

struct pb {
	const unsigned char *p, *end;
};

struct pb_field {
	unsigned number, wire;
	u64 value; /* varint, fixed64, or length */
	struct pb in;
};

static u64 varint(struct pb *m)
{
	u64 v = 0;

	for (unsigned shift = 0;; shift += 7) {
		assert_true(m->p < m->end && shift < 70);
		v |= (u64)(*m->p & 0x7f) << shift;
		if (!(*m->p++ & 0x80))
			return v;
	}
}

static bool next(struct pb *m, struct pb_field *f)
{
	u64 tag;

	if (m->p == m->end)
		return false;
	tag = varint(m);
	f->number = (unsigned)(tag >> 3);
	f->wire = tag & 7;
	if (f->wire == HB_PB_FIXED64) {
		assert_true(m->end - m->p >= 8);
		memcpy(&f->value, m->p, 8);
		m->p += 8;
		return true;
	}
	f->value = varint(m);
	if (f->wire == HB_PB_VARINT)
		return true;
	assert_int_equal(f->wire, HB_PB_BYTES);
	assert_true((u64)(m->end - m->p) >= f->value);
	f->in = (struct pb){m->p, m->p + f->value};
	m->p += f->value;
	return true;
}

static u64 get(struct pb m, unsigned number)
{
	struct pb_field f;
	u64 v = 0;

	while (next(&m, &f))
		if (f.number == number)
			v = f.value;
	return v;
}

static bool sub(struct pb m, unsigned number, struct pb *in)
{
	struct pb_field f;

	while (next(&m, &f))
		if (f.number == number && f.wire == HB_PB_BYTES) {
			*in = f.in;
			return true;
		}
	return false;
}

static void text_of(struct pb m, unsigned number, char *buf, size_t size)
{
	struct pb in = {0};

	buf[0] = 0;
	if (sub(m, number, &in))
		snprintf(buf, size, "%.*s", (int)(in.end - in.p), (const char *)in.p);
	for (char *c = buf; *c; c++)
		assert_true((unsigned char)*c >= 0x20);
}

/* ---- reading the trace ---- */

struct event {
	u64 ts, dur, track;
	unsigned type, depth, flows, flow_ends;
	u64 flow[4], flow_end;
	char name[160];
	bool open;
};

struct trace {
	struct event ev[MAX_EVENTS];
	unsigned n, samples, frames, dropped;
	struct {
		u64 now, track;
		bool name[MAX_NAMES], frame[MAX_NAMES]; /* that it has */
	} seq[SEQUENCES];
	char name[MAX_NAMES][80]; /* event names: numbered once for the whole trace */
	char tracks[4096];	  /* names of tracks, processes and threads, one a line */
};

static struct trace t;

/* A stack may name only frames that its own sequence has. */
static void read_stack(struct pb m, u64 seq)
{
	struct pb_field f;

	while (next(&m, &f))
		if (f.number == 2)
			assert_true(f.value < MAX_NAMES && t.seq[seq].frame[f.value]);
}

static void read_interned(struct pb m, u64 seq)
{
	struct pb_field f;

	while (next(&m, &f)) {
		u64 iid = get(f.in, 1);

		assert_in_range(iid, 1, MAX_NAMES - 1);
		if (f.number == 6) {
			t.frames++;
			t.seq[seq].frame[iid] = true;
		} else if (f.number == 7) {
			read_stack(f.in, seq);
		} else if (f.number == 2) {
			t.seq[seq].name[iid] = true;
			text_of(f.in, 2, t.name[iid], sizeof(*t.name));
		}
	}
}

static void read_event(struct pb m, u64 ts, u64 seq)
{
	u64 track = t.seq[seq].track;
	struct event *e = &t.ev[t.n];
	struct pb_field f;

	assert_true(t.n < MAX_EVENTS);
	*e = (struct event){.ts = ts, .track = get(m, 11) ? get(m, 11) : track, .type = (unsigned)get(m, 9)};
	if (e->type == 2) {
		for (unsigned i = t.n; i--;) {
			if (t.ev[i].track == e->track && t.ev[i].open) {
				t.ev[i].open = false;
				t.ev[i].dur = ts - t.ev[i].ts;
				return;
			}
		}
		fail_msg("a slice ends that did not begin");
	}
	text_of(m, 23, e->name, sizeof(e->name));
	if (!e->name[0]) {
		assert_true(t.seq[seq].name[get(m, 10) % MAX_NAMES]);
		memcpy(e->name, t.name[get(m, 10) % MAX_NAMES], sizeof(*t.name));
	}
	assert_true(e->name[0]);
	e->open = e->type == 1;
	for (unsigned i = 0; i < t.n; i++) {
		assert_true(t.ev[i].track != e->track || t.ev[i].ts <= ts);
		e->depth += t.ev[i].track == e->track && t.ev[i].open;
	}
	while (next(&m, &f)) {
		if (f.number == 47 && e->flows < 4)
			e->flow[e->flows] = f.value;
		e->flows += f.number == 47;
		if (f.number == 48)
			e->flow_end = f.value;
		e->flow_ends += f.number == 48;
	}
	t.n++;
}

static void read_track(struct pb m)
{
	static const unsigned inner[] = {3, 4}, name[] = {6, 5};
	size_t at = strlen(t.tracks);
	char text[160];
	struct pb in;

	text_of(m, 2, text, sizeof(text));
	for (unsigned i = 0; i < 2; i++)
		if (sub(m, inner[i], &in))
			text_of(in, name[i], text, sizeof(text));
	snprintf(t.tracks + at, sizeof(t.tracks) - at, "%s\n", text);
}

static void read_packet(struct pb m)
{
	u64 seq = get(m, 10), ts = 0;
	struct pb in, d;
	struct pb_field f;

	assert_in_range(seq, 1, SEQUENCES - 1);
	t.dropped += get(m, 42) != 0;
	if (sub(m, 59, &in) && sub(in, 11, &d))
		t.seq[seq].track = get(d, 11);
	if (sub(m, 6, &in))
		while (next(&in, &f))
			if (get(f.in, 1) == 64)
				t.seq[seq].now = get(f.in, 2);
	if (sub(m, 12, &in))
		read_interned(in, seq);
	if (get(m, 8) || get(m, 13) == 2)
		ts = get(m, 58) ? get(m, 8) : (t.seq[seq].now += get(m, 8));
	if (sub(m, 60, &in))
		read_track(in);
	if (sub(m, 11, &in))
		read_event(in, ts, seq);
	t.samples += sub(m, 66, &in);
}

static void export_and_read(struct hb_window *w)
{
	struct hb_error e = {0};
	char *data = NULL;
	size_t size;
	FILE *out = open_memstream(&data, &size);
	struct pb all;
	struct pb_field f;

	if (hb_exporter__find("perfetto")->run(w, out, &e))
		fail_msg("%s", e.text);
	fclose(out);
	memset(&t, 0, sizeof(t));
	all = (struct pb){(unsigned char *)data, (unsigned char *)data + size};
	while (next(&all, &f)) {
		assert_int_equal(f.number, 1);
		read_packet(f.in);
	}
	for (unsigned i = 0; i < t.n; i++)
		assert_false(t.ev[i].open);
	free(data);
}

static unsigned count(const char *name, unsigned type)
{
	unsigned n = 0;

	for (unsigned i = 0; i < t.n; i++)
		n += t.ev[i].type == type && !strcmp(t.ev[i].name, name);
	return n;
}

static const struct event *event(const char *name, unsigned i)
{
	for (unsigned k = 0; k < t.n; k++)
		if (!strcmp(t.ev[k].name, name) && !i--)
			return &t.ev[k];
	fail_msg("no event %s", name);
	return NULL;
}

static bool begins(const struct event *e, u64 flow)
{
	return flow && (e->flow[0] == flow || e->flow[1] == flow);
}

enum { SLICE = 1, INSTANT = 3 };

/* ---- tests ---- */

static void every_record_once(void **state)
{
	struct rig r;
	struct hb_window *w = rig_window(&r, "perfetto");

	export_and_read(w);
	assert_int_equal(count("cuLaunchKernel", INSTANT), 10);
	assert_int_equal(count("cuGraphLaunch", INSTANT), 3);
	assert_int_equal(count("cudaStreamSynchronize", SLICE), 100);
	assert_int_equal(count("cudaMemcpyAsync", SLICE), 1);
	assert_int_equal(count("ncclAllReduce", SLICE), 1);
	assert_int_equal(count("off-CPU epoll_wait", SLICE), 3);
	assert_int_equal(count("off-CPU futex", SLICE), 1);
	assert_int_equal(count("preempted", SLICE), 1);
	assert_int_equal(count("off-CPU", SLICE), 1);
	assert_int_equal(count("read", SLICE), 1);
	assert_int_equal(t.samples, 5);
	assert_int_equal(count("exit", INSTANT), 1);
	assert_int_equal(count("note", INSTANT), 1);
	assert_int_equal(count("price", INSTANT), 0);
	assert_int_equal(t.frames, 4); /* all of one thread: three of user code, one of the kernel */
	assert_int_equal(event("cudaMemcpyAsync", 0)->ts, START + 31 * MS);
	assert_int_equal(event("cudaMemcpyAsync", 0)->dur, MS);
	rig_close(&r, w);
}

static void wake_ups_are_flows(void **state)
{
	struct rig r;
	struct hb_window *w = rig_window(&r, "perfetto");
	const struct event *wake, *run;

	export_and_read(w);
	assert_int_equal(count("wakes ev?[31mil?\"\\", INSTANT), 3);
	assert_int_equal(count("wakes worker", INSTANT), 1);
	assert_int_equal(count("runnable", SLICE), 4); /* not of the read that an interrupt ended */
	wake = event("wakes ev?[31mil?\"\\", 1);
	assert_int_equal(wake->ts, START + 120 * MS - MS - 1);
	for (unsigned i = 0; i < 4; i++) {
		run = event("runnable", i);
		if (run->flow_end == wake->flow[0])
			break;
	}
	assert_int_equal(run->flow_end, wake->flow[0]);
	assert_int_equal(run->ts, wake->ts + 1);
	assert_int_equal(run->dur, MS);
	assert_int_equal(run->depth, 1);
	assert_int_not_equal(run->track, wake->track);
	rig_close(&r, w);
}

static void names_loss_and_what_is_simulated(void **state)
{
	struct rig r;
	struct hb_window *w = rig_window(&r, "perfetto");

	export_and_read(w);
	assert_non_null(strstr(t.tracks, "ev?[31mil?\"\\ (simulated accelerator)\n"));
	assert_non_null(strstr(t.tracks, "api;server (simulated accelerator)\n"));
	assert_non_null(strstr(t.tracks, "\nworker\n"));
	assert_non_null(strstr(t.tracks, "\nloss\n"));
	assert_int_equal(t.dropped, 3); /* once on each thread that has events */
	assert_int_equal(
	    event("lost 12: ring_full: records dropped: no room in a ring (--buffer makes it larger)", 0)
		->dur,
	    WALL);
	rig_close(&r, w);
}

static void put_call(struct rig *r, u16 task, u32 probe, u64 from, u64 to, u8 flags)
{
	struct hb_rec_accel a = {
	    .probe = probe, .dur = to - from, .flags = flags | (to > from ? HB_AFLAG_TIMED : 0)};

	rig_put(r, to, task, HB_TYPE_accel, &a);
}

/* A runtime call with a launch and a copy of the driver inside, in which the thread also slept; then driver
 * calls of nobody. */
static void calls_inside_calls(void **state)
{
	struct rig r = rig_new("perfetto");
	struct hb_rec_offcpu o = {.dur = 50, .state = HB_TSTATE_SLEEPING, .sysno = SYS_FUTEX};
	const struct event *outer;
	struct hb_window *w;

	rig_tables(&r);
	put_call(&r, r.main, P_LAUNCH, 1010, 1010, HB_AFLAG_INNER);
	rig_put(&r, 1080, r.main, HB_TYPE_offcpu, &o);
	put_call(&r, r.main, P_HTOD, 1020, 1090, HB_AFLAG_INNER);
	put_call(&r, r.main, P_COPY, 1000, 1100, 0);
	put_call(&r, r.main, P_HTOD, 1200, 1210, 0);
	put_call(&r, r.main, P_LAUNCH, 1300, 1300, HB_AFLAG_INNER); /* its runtime call is lost */
	w = rig_open(&r);
	export_and_read(w);
	outer = event("cudaMemcpyAsync", 0);
	assert_int_equal(outer->flows, 2);
	assert_true(begins(outer, event("cuLaunchKernel", 0)->flow_end));
	assert_true(begins(outer, event("cuMemcpyHtoDAsync", 0)->flow_end));
	assert_int_not_equal(event("cuLaunchKernel", 0)->flow_end, event("cuMemcpyHtoDAsync", 0)->flow_end);
	assert_int_equal(event("cuLaunchKernel", 0)->depth, 1);
	assert_int_equal(event("cuMemcpyHtoDAsync", 0)->depth, 1);
	assert_int_equal(event("off-CPU futex", 0)->depth, 2);
	assert_int_equal(event("cuMemcpyHtoDAsync", 1)->flow_ends, 0);
	assert_int_equal(event("cuMemcpyHtoDAsync", 1)->depth, 0);
	assert_int_equal(event("cuLaunchKernel", 1)->flow_ends, 0);
	rig_close(&r, w);
}

/* Slices that cross: each keeps its length, on a track beside, until the tracks run out. */
static void crossing_slices_go_beside(void **state)
{
	struct rig r = rig_new("perfetto");
	struct hb_window *w;
	const char *p;
	unsigned beside = 0;

	rig_tables(&r);
	for (u64 i = 0; i < 12; i++)
		put_call(&r, r.main, i ? P_SYNC : P_COPY, 1000 + 10 * i, 2000 + 10 * i, 0);
	w = rig_open(&r);
	export_and_read(w);
	assert_int_equal(count("cudaStreamSynchronize", SLICE), 11);
	assert_int_equal(event("cudaMemcpyAsync", 0)->dur, 1000);
	for (unsigned i = 0; i < 6; i++)
		assert_int_equal(event("cudaStreamSynchronize", i)->dur, 1000);
	for (p = t.tracks; (p = strstr(p, "overlapping\n")); p++)
		beside++;
	assert_int_equal(beside, 7);
	rig_close(&r, w);
}

/* Begun at once: the longer one is the outer one. */
static void equal_begins_nest(void **state)
{
	struct rig r = rig_new("perfetto");
	struct hb_window *w;

	rig_tables(&r);
	put_call(&r, r.main, P_HTOD, 1000, 1050, HB_AFLAG_INNER);
	put_call(&r, r.main, P_COPY, 1000, 1100, 0);
	w = rig_open(&r);
	export_and_read(w);
	assert_int_equal(event("cuMemcpyHtoDAsync", 0)->depth, 1);
	assert_int_equal(event("cuMemcpyHtoDAsync", 0)->track, event("cudaMemcpyAsync", 0)->track);
	rig_close(&r, w);
}

/* Two threads at the same place: each sequence has the names and frames that it uses. */
static void each_thread_has_its_tables(void **state)
{
	struct rig r = rig_new("perfetto");
	struct hb_rec_sample s = {.weight = MS, .stack = ST_USER};
	struct hb_window *w;

	rig_tables(&r);
	for (unsigned i = 0; i < 4; i++) {
		rig_put(&r, i * MS, i % 2 ? r.worker : r.main, HB_TYPE_sample, &s);
		put_call(&r, i % 2 ? r.worker : r.main, P_SYNC, i * MS + 10, i * MS + 20, 0);
	}
	w = rig_open(&r);
	export_and_read(w);
	assert_int_equal(t.samples, 4);
	assert_int_equal(t.frames, 2 * 3);
	assert_int_equal(count("cudaStreamSynchronize", SLICE), 4);
	rig_close(&r, w);
}

/* Begun and ended at once: the one recorded later is the outer one. */
static void equal_times_nest(void **state)
{
	struct rig r = rig_new("perfetto");
	struct hb_window *w;

	rig_tables(&r);
	put_call(&r, r.main, P_HTOD, 1000, 1100, HB_AFLAG_INNER);
	put_call(&r, r.main, P_COPY, 1000, 1100, 0);
	put_call(&r, r.main, P_SYNC, 1100, 1200, 0);
	w = rig_open(&r);
	export_and_read(w);
	assert_int_equal(event("cudaMemcpyAsync", 0)->depth, 0);
	assert_int_equal(event("cuMemcpyHtoDAsync", 0)->depth, 1);
	assert_int_equal(event("cuMemcpyHtoDAsync", 0)->flow_end, event("cudaMemcpyAsync", 0)->flow[0]);
	assert_int_equal(event("cudaStreamSynchronize", 0)->depth, 0);
	assert_int_equal(event("cudaStreamSynchronize", 0)->track, event("cudaMemcpyAsync", 0)->track);
	rig_close(&r, w);
}

static size_t written(struct hb_window *w, u64 memory, char **data)
{
	struct hb_error e = {0};
	size_t size;
	FILE *out = open_memstream(data, &size);

	assert_int_equal(hb_pf__write(w, out, memory, &e), 0);
	fclose(out);
	return size;
}

/* Thread by thread, the window being read again for each, it is the same trace. */
static void little_memory(void **state)
{
	struct rig r;
	struct hb_window *w = rig_window(&r, "perfetto");
	char *much, *little;
	size_t size = written(w, (u64)1 << 40, &much);

	assert_int_equal(written(w, 1, &little), size);
	assert_memory_equal(much, little, size);
	free(much);
	free(little);
	rig_close(&r, w);
}

/* Every type with the same byte everywhere: whatever the numbers are, slices end and packets are whole. */
static void any_content(void **state)
{
	static const unsigned char fill[] = {0xff, 0x7f, 0x01, 0x00};

	for (unsigned k = 0; k < sizeof(fill); k++) {
		struct rig r = rig_new("perfetto");
		u16 task = rig_task(&r, 5, 5, "\xff\xfe\x01", true);
		unsigned char junk[HB_RECORD_MAX];
		size_t n;
		const struct hb_type *types = hb_schema__types(&n);
		struct hb_window *w;

		memset(junk, fill[k], sizeof(junk));
		for (u64 i = 0; i < 3 * n; i++)
			rig_put(&r, i * MS, i % 2 ? task : 0, types[i % n].id, junk);
		w = rig_open(&r);
		export_and_read(w);
		assert_true(t.n + t.samples >= 3 * (n - 1));
		rig_close(&r, w);
	}
}

static void lengths_of_any_size(void **state)
{
	static const size_t sizes[] = {0, 1, 127, 128, 16383, 16384, 2097151, 2097152};
	char *fill = calloc(1, 2097152);

	for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		struct hb_buf b = {0};
		struct pb_field f;
		struct pb m;
		size_t outer = hb_pb__open(&b, 7), inner = hb_pb__open(&b, 300);

		hb_buf__add(&b, fill, sizes[i]);
		hb_pb__close(&b, inner);
		hb_pb__uint(&b, 2, UINT64_MAX);
		hb_pb__close(&b, outer);
		m = (struct pb){(unsigned char *)b.data, (unsigned char *)b.data + b.size};
		assert_true(next(&m, &f) && f.number == 7);
		assert_false(next(&m, &(struct pb_field){0}));
		m = f.in;
		assert_true(next(&m, &f) && f.number == 300 && f.value == sizes[i]);
		assert_true(next(&m, &f) && f.number == 2 && f.value == UINT64_MAX);
		assert_true(m.p == m.end);
		hb_buf__free(&b);
	}
	free(fill);
}

static void a_full_disk_is_said(void **state)
{
	static const char *const formats[] = {"perfetto", "kineto"};
	struct rig r;
	struct hb_window *w = rig_window(&r, "perfetto");

	for (unsigned i = 0; i < 2; i++) {
		struct hb_error e = {0};
		FILE *out = fopen("/dev/full", "w");

		assert_non_null(out);
		setvbuf(out, NULL, _IONBF, 0);
		assert_int_equal(hb_exporter__find(formats[i])->run(w, out, &e), -ENOSPC);
		fclose(out);
	}
	rig_close(&r, w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(every_record_once),
	    cmocka_unit_test(wake_ups_are_flows),
	    cmocka_unit_test(names_loss_and_what_is_simulated),
	    cmocka_unit_test(calls_inside_calls),
	    cmocka_unit_test(crossing_slices_go_beside),
	    cmocka_unit_test(equal_times_nest),
	    cmocka_unit_test(equal_begins_nest),
	    cmocka_unit_test(each_thread_has_its_tables),
	    cmocka_unit_test(little_memory),
	    cmocka_unit_test(any_content),
	    cmocka_unit_test(lengths_of_any_size),
	    cmocka_unit_test(a_full_disk_is_said),
	};

	return cmocka_run_group_tests_name("perfetto", tests, NULL, NULL);
}
