/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Writer and reader of window files on sound files: what goes in comes out. Damage has its own tests. */
#include "window_rig.h"

#include <pthread.h>
#include <zstd.h>

/* ---- records ---- */

static void every_type_comes_back(void **state)
{
	const char *path = rig_path("types.hbw");
	struct hb_window_writer *w = rig_writer(path, 3);
	size_t n_types;
	const struct hb_type *types = hb_schema__types(&n_types);
	struct hb_record r;
	struct hb_window *v;

	for (u32 i = 0; i < 5000; i++)
		rig_put(w, i % 3, 5000 + i * 100, types[i % n_types].id, i);
	assert_int_equal(hb_window_writer__records(w), 5000);
	rig_finish(w, 600000);
	v = rig_open(path);
	assert_null(hb_window__damage(v));
	for (int round = 0; round < 2; round++) {
		for (u32 i = 0; i < 5000; i++) {
			assert_int_equal(hb_window__next(v, &r), 1);
			assert_int_equal(r.type, types[i % n_types].id);
			assert_int_equal(r.ts, 5000 + i * 100);
			assert_int_equal(rig_check(&r), i);
			assert_int_equal(r.begin, types[i % n_types].dur_offset < 0 ? r.ts : r.ts - i);
		}
		assert_int_equal(hb_window__next(v, &r), 0);
		assert_int_equal(hb_window__next(v, &r), 0);
		hb_window__rewind(v);
	}
	hb_window__close(v);
}

/* Which of some records are of a type: each is of one. */
static void check_types(const struct hb_records *b)
{
	u64 all = 0;

	assert_in_range(b->n, 1, HB_RECORDS_MAX);
	for (u32 t = 0; t < HB_TYPE_MAX; t++) {
		assert_int_equal(hb_records__has(b, t), b->of[t] != 0);
		assert_int_equal(all & b->of[t], 0);
		all |= b->of[t];
		hb_each_bit (i, b->of[t])
			assert_int_equal(b->record[i].type, t);
	}
	assert_true(all == UINT64_MAX >> (64 - b->n));
}

/* In the order in which they come one by one, with equal times among them. All are sound when the last one
 * has come. */
static void many_at_a_time(void **state)
{
	const char *path = rig_path("many.hbw");
	struct hb_window_writer *w = rig_writer(path, 5);
	struct hb_window *v, *single;
	struct hb_records b = {0};
	struct hb_record r;
	size_t n_types;
	const struct hb_type *types = hb_schema__types(&n_types);
	u64 n = 0, calls = 0, seed = 3;

	for (u32 i = 0; i < 30000; i++) {
		seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
		rig_put(w, (unsigned)(seed >> 40) % 5, 5000 + i / 3 * 100, types[(seed >> 50) % n_types].id,
			i);
	}
	rig_finish(w, 0);
	v = rig_open(path);
	single = rig_open(path);
	for (; hb_window__take(v, &b) > 0; calls++) {
		check_types(&b);
		for (u32 i = 0; i < b.n; i++, n++) {
			assert_int_equal(hb_window__next(single, &r), 1);
			assert_int_equal(rig_check(&b.record[i]), rig_check(&r));
			assert_int_equal(b.record[i].ts, r.ts);
			assert_int_equal(b.record[i].begin, r.begin);
			assert_int_equal(b.record[i].task_idx, r.task_idx);
			assert_ptr_equal(b.record[i].task, hb_window__task(v, r.task_idx));
		}
	}
	assert_int_equal(hb_window__next(single, &r), 0);
	assert_int_equal(n, 30000);
	assert_in_range(calls, 30000 / HB_RECORDS_MAX, 600);
	assert_int_equal(b.n, 0);
	assert_int_equal(hb_window__take(v, &b), 0);
	hb_window__rewind(v);
	assert_int_equal(hb_window__take(v, &b), 1);
	assert_in_range(rig_check(&b.record[0]), 0, 2); /* three have that time */
	hb_window__close(single);
	hb_window__close(v);
}

static void facts_of_the_window(void **state)
{
	const char *path = rig_path("info.hbw");
	struct hb_window_writer *w = rig_writer(path, 2);
	const struct hb_window_info *i;
	struct hb_window *v;
	struct stat st;

	hb_window_writer__meta(w, "simulated", "1");
	rig_put(w, 1, 7000, HB_TYPE_note, 1);
	rig_finish(w, 9999);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(access(rig_path("info.hbw.part"), F_OK), -1);
	v = rig_open(path);
	i = hb_window__info(v);
	assert_int_equal(i->start_ts, 1000);
	assert_int_equal(i->end_ts, 9999);
	assert_int_equal(i->major, HB_WINDOW_MAJOR);
	assert_int_equal(i->minor, HB_WINDOW_MINOR);
	assert_true(i->complete && i->simulated);
	assert_int_equal(i->bytes, st.st_size);
	assert_int_equal(i->bytes_lost, 0);
	assert_int_equal(i->frames, 1);
	assert_int_equal(i->frames_bad, 0);
	assert_int_equal(i->records, 1);
	assert_int_equal(i->unknown, 0);
	hb_window__close(v);
}

static void empty_window(void **state)
{
	const char *path = rig_path("nothing.hbw");
	struct hb_window_writer *w = rig_writer(path, 64);
	struct hb_record r;
	struct hb_window *v;
	u32 n;

	rig_finish(w, 2000);
	v = rig_open(path);
	assert_null(hb_window__damage(v));
	assert_int_equal(hb_window__next(v, &r), 0);
	assert_int_equal(hb_window__info(v)->end_ts, 2000);
	assert_int_equal(hb_window__tasks(v, &n)->tid, 0);
	assert_int_equal(n, 1); /* nobody is always there */
	hb_window__close(v);
}

/* Time may step back a little inside a stream and far ahead: both come back to the nanosecond, in writing
 * order. */
static void steps_in_time(void **state)
{
	static const u64 ts[] = {5000,
				 4990,
				 5000000000ULL,
				 4999999000ULL,
				 1ULL << 62,
				 (1ULL << 62) - 1,
				 (1ULL << 62) + 0x7fffffff,
				 (1ULL << 62) + 0xffffffff};
	const char *path = rig_path("steps.hbw");
	struct hb_window_writer *w = rig_writer(path, 1);
	struct hb_record r;
	struct hb_window *v;

	for (u32 i = 0; i < sizeof(ts) / sizeof(*ts); i++)
		rig_put(w, 0, ts[i], HB_TYPE_price, i);
	rig_finish(w, 0);
	v = rig_open(path);
	for (u32 i = 0; i < sizeof(ts) / sizeof(*ts); i++) {
		assert_int_equal(hb_window__next(v, &r), 1);
		assert_true(r.ts == ts[i]);
		assert_int_equal(rig_check(&r), i);
	}
	assert_int_equal(hb_window__next(v, &r), 0);
	hb_window__close(v);
}

/* Streams of very different pace, many frames each. */
static void streams_are_merged(void **state)
{
	const char *path = rig_path("merge.hbw");
	struct hb_window_writer *w = rig_writer(path, 64);
	u64 last = 0, n = 0, seed = 7;
	u32 next[64] = {0};
	struct hb_record r;
	struct hb_window *v;

	for (u32 i = 0; i < 100000; i++) {
		unsigned stream;

		seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
		stream = (seed >> 60) == 0 ? (unsigned)(seed >> 40) % 64 : (unsigned)(seed >> 50) % 3;
		rig_put(w, stream, 5000 + i, HB_TYPE_thread, stream << 24 | next[stream]++);
	}
	rig_finish(w, 0);
	memset(next, 0, sizeof(next));
	v = rig_open(path);
	assert_true(hb_window__info(v)->frames > 66);
	while (hb_window__next(v, &r) > 0) {
		u32 id = rig_check(&r);

		assert_true(r.ts >= last);
		last = r.ts;
		assert_int_equal(id & 0xffffff, next[id >> 24]++);
		n++;
	}
	assert_int_equal(n, 100000);
	hb_window__close(v);
}

static void nonsense_is_not_accepted(void **state)
{
	struct hb_window_writer *w = rig_writer(rig_path("args.hbw"), 2);
	u8 p[HB_RECORD_MAX] = {0};

	assert_int_equal(hb_window_writer__put(w, 2, 1, 0, HB_TYPE_exit, p), -EINVAL);
	assert_int_equal(hb_window_writer__put(w, 0, 1, 0, 0, p), -EINVAL);
	assert_int_equal(hb_window_writer__put(w, 0, 1, 0, HB_TYPE_MAX, p), -EINVAL);
	assert_int_equal(hb_window_writer__put(w, 0, 1, 0, HB_TYPE_MAX - 1, p), -EINVAL);
	assert_int_equal(hb_window_writer__records(w), 0);
	hb_window_writer__abort(w);
	assert_int_equal(access(rig_path("args.hbw.part"), F_OK), -1);
	assert_int_equal(access(rig_path("args.hbw"), F_OK), -1);
}

struct putter {
	struct hb_window_writer *w;
	unsigned stream;
	pthread_t thread;
};

static void *put_many(void *arg)
{
	struct putter *p = arg;

	for (u32 i = 0; i < 40000; i++)
		rig_put(p->w, p->stream, 5000 + i, HB_TYPE_exec, p->stream << 24 | i);
	return NULL;
}

static void threads_put_while_another_flushes(void **state)
{
	const char *path = rig_path("threads.hbw");
	struct hb_window_writer *w = rig_writer(path, 4);
	struct putter p[4];
	u32 next[4] = {0};
	struct hb_record r;
	struct hb_window *v;

	for (unsigned i = 0; i < 4; i++) {
		p[i] = (struct putter){.w = w, .stream = i};
		assert_int_equal(pthread_create(&p[i].thread, NULL, put_many, &p[i]), 0);
	}
	while (hb_window_writer__records(w) < 4 * 40000) {
		assert_true(hb_window_writer__string(w, "x") == 1);
		assert_int_equal(hb_window_writer__flush(w), 0);
	}
	for (unsigned i = 0; i < 4; i++)
		pthread_join(p[i].thread, NULL);
	rig_finish(w, 0);
	v = rig_open(path);
	assert_null(hb_window__damage(v));
	while (hb_window__next(v, &r) > 0) {
		u32 id = rig_check(&r);

		assert_int_equal(id & 0xffffff, next[id >> 24]++);
	}
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(next[i], 40000);
	hb_window__close(v);
}

/* ---- tables ---- */

static void strings(void **state)
{
	const char *path = rig_path("strings.hbw");
	struct hb_window_writer *w = rig_writer(path, 1);
	char *longest = malloc(100001);
	struct hb_window *v;
	u32 a, b, c;

	memset(longest, 'l', 100000);
	longest[100000] = 0;
	assert_int_equal(hb_window_writer__string(w, ""), 0);
	assert_int_equal(hb_window_writer__string(w, NULL), 0);
	a = hb_window_writer__string(w, "libcuda.so.1");
	b = hb_window_writer__string(w, "\033[2Jevil\n");
	c = hb_window_writer__string(w, longest);
	assert_int_equal(hb_window_writer__string(w, "libcuda.so.1"), a);
	assert_int_equal(hb_window_writer__string(w, "?[2Jevil?"), b);
	for (u32 i = 0; i < 20000; i++) {
		char s[16];

		snprintf(s, sizeof(s), "s%u", i);
		assert_int_equal(hb_window_writer__string(w, s), c + 1 + i);
	}
	rig_finish(w, 0);
	v = rig_open(path);
	assert_string_equal(hb_window__string(v, 0), "");
	assert_string_equal(hb_window__string(v, a), "libcuda.so.1");
	assert_string_equal(hb_window__string(v, b), "?[2Jevil?");
	assert_int_equal(strlen(hb_window__string(v, c)), 65535);
	assert_string_equal(hb_window__string(v, c + 12346), "s12345");
	assert_string_equal(hb_window__string(v, c + 20001), "?");
	assert_string_equal(hb_window__string(v, 0xffffffff), "?");
	hb_window__close(v);
	free(longest);
}

static void tasks(void **state)
{
	const char *path = rig_path("tasks.hbw");
	struct hb_window_writer *w = rig_writer(path, 1);
	struct hb_task t = {.pid = 10, .tid = 10, .nspid = 1, .nstid = 1, .target = 1};
	struct hb_record r;
	struct hb_window *v;
	u16 a, b;
	u32 n;

	t.comm = hb_window_writer__string(w, "old");
	a = hb_window_writer__task(w, &t);
	b = hb_window_writer__task(w, &(struct hb_task){.pid = 10, .tid = 11});
	assert_true(a && b && a != b);
	assert_int_equal(hb_window_writer__task(w, &t), a);
	assert_int_equal(hb_window_writer__flush(w), 0);
	t.comm = hb_window_writer__string(w, "new");
	hb_window_writer__task_update(w, a, &t);
	hb_window_writer__task_update(w, 500, &t); /* never given out: ignored */
	assert_int_equal(hb_window_writer__put(w, 0, 2000, b, HB_TYPE_exit, &(struct hb_rec_exit){0}), 0);
	assert_int_equal(hb_window_writer__put(w, 0, 2001, 77, HB_TYPE_exit, &(struct hb_rec_exit){0}), 0);
	rig_finish(w, 0);
	v = rig_open(path);
	assert_string_equal(hb_window__string(v, hb_window__task(v, a)->comm), "new");
	assert_int_equal(hb_window__task(v, a)->nspid, 1);
	assert_int_equal(hb_window__task_by_tid(v, 11)->pid, 10);
	assert_null(hb_window__task_by_tid(v, 12));
	assert_null(hb_window__task(v, 500));
	assert_int_equal(hb_window__next(v, &r), 1);
	assert_int_equal(r.task->tid, 11);
	assert_int_equal(r.task_idx, b);
	assert_ptr_equal(&hb_window__tasks(v, &n)[r.task_idx], r.task);
	assert_int_equal(n, 3); /* with nobody */
	assert_int_equal(hb_window__next(v, &r), 1);
	assert_int_equal(r.task->tid, 0); /* index without an entry: nobody */
	assert_int_equal(r.task_idx, 0);
	hb_window__close(v);
}

static void task_table_full(void **state)
{
	struct hb_window_writer *w = rig_writer(rig_path("full.hbw"), 1);

	for (u32 i = 1; i < 0xffff; i++)
		assert_int_equal(hb_window_writer__task(w, &(struct hb_task){.pid = 1, .tid = i}), i);
	assert_int_equal(hb_window_writer__task(w, &(struct hb_task){.pid = 1, .tid = 0x20000}), 0xffff);
	assert_int_equal(hb_window_writer__task(w, &(struct hb_task){.pid = 1, .tid = 7}), 7);
	hb_window_writer__abort(w);
}

static void processes_and_probes(void **state)
{
	const char *path = rig_path("procs.hbw");
	struct hb_window_writer *w = rig_writer(path, 1);
	struct hb_proc p = {.pid = 10, .ppid = 1, .start = 1ULL << 40};
	struct hb_probe_row row = {.cls = HB_CLASS_LAUNCH, .layer = HB_LAYER_DRIVER};
	struct hb_window *v;
	u32 n;

	row.name = hb_window_writer__string(w, "cuLaunchKernel");
	assert_true(hb_window_writer__proc(w, &p) != 0);
	assert_true(hb_window_writer__proc(w, &(struct hb_proc){.pid = 20}) != 0);
	assert_int_equal(hb_window_writer__flush(w), 0);
	p.exe = hb_window_writer__string(w, "/usr/bin/python3");
	assert_true(hb_window_writer__proc(w, &p) != 0);
	assert_int_equal(hb_window_writer__probe(w, 5, &row), 0);
	assert_int_equal(hb_window_writer__probe(w, 0, &row), -EINVAL);
	row.timed = 1;
	assert_int_equal(hb_window_writer__probe(w, 5, &row), 0);
	rig_finish(w, 0);
	v = rig_open(path);
	assert_int_equal(hb_window__procs(v, &n)[0].pid, 10);
	assert_int_equal(n, 2);
	assert_true(hb_window__procs(v, &n)[0].start == 1ULL << 40);
	assert_string_equal(hb_window__string(v, hb_window__procs(v, &n)[0].exe), "/usr/bin/python3");
	assert_int_equal(hb_window__probes(v), 5);
	assert_string_equal(hb_window__string(v, hb_window__probe(v, 5)->name), "cuLaunchKernel");
	assert_int_equal(hb_window__probe(v, 5)->timed, 1);
	assert_null(hb_window__probe(v, 6));
	assert_null(hb_window__probe(v, 0));
	hb_window__close(v);
}

static void stacks_and_locations(void **state)
{
	const char *path = rig_path("stacks.hbw");
	struct hb_window_writer *w = rig_writer(path, 1);
	struct hb_loc l = {.line = 7, .lang = HB_LANG_PYTHON}, m = {.offset = 0x1234};
	u32 locs[5000], a, b;
	struct hb_stack s;
	struct hb_window *v;

	l.func = hb_window_writer__string(w, "step");
	a = hb_window_writer__loc(w, &l);
	b = hb_window_writer__loc(w, &m);
	assert_true(a && b && a != b);
	assert_int_equal(hb_window_writer__loc(w, &l), a);
	assert_int_equal(hb_window_writer__stack(w, 10, 77, (u32[]){a, b, a}, 3, HB_STACK_WHOLE), 0);
	assert_int_equal(hb_window_writer__stack(w, 20, 77, (u32[]){b}, 1, HB_STACK_BROKEN), 0);
	assert_int_equal(hb_window_writer__flush(w), 0);
	assert_int_equal(hb_window_writer__stack(w, 20, 77, (u32[]){b, b}, 2, HB_STACK_TRUNCATED), 0);
	for (u32 i = 0; i < 5000; i++)
		locs[i] = i;
	assert_int_equal(hb_window_writer__stack(w, 1, 1, locs, 5000, HB_STACK_WHOLE), 0);
	assert_int_equal(hb_window_writer__stack(w, 1, 2, NULL, 0, HB_STACK_BROKEN), 0);
	rig_finish(w, 0);
	v = rig_open(path);
	s = hb_window__stack(v, 10, 77);
	assert_int_equal(s.n, 3);
	assert_int_equal(s.state, HB_STACK_WHOLE);
	assert_memory_equal(s.locs, ((u32[]){a, b, a}), 12);
	assert_int_equal(hb_window__loc(v, s.locs[0])->line, 7);
	assert_int_equal(hb_window__loc(v, s.locs[1])->offset, 0x1234);
	assert_null(hb_window__loc(v, 0));
	assert_null(hb_window__loc(v, b + 1));
	s = hb_window__stack(v, 20, 77);
	assert_int_equal(s.n, 2); /* the later one */
	assert_int_equal(s.state, HB_STACK_TRUNCATED);
	s = hb_window__stack(v, 1, 1);
	assert_int_equal(s.n, 4096); /* the inner ones stay */
	assert_int_equal(s.state, HB_STACK_TRUNCATED);
	assert_int_equal(s.locs[4095], 4999);
	s = hb_window__stack(v, 1, 2);
	assert_int_equal(s.n, 0);
	assert_int_equal(s.state, HB_STACK_BROKEN);
	assert_int_equal(hb_window__stack(v, 10, 78).n, 0);
	assert_int_equal(hb_window__stack(v, 10, 0).n, 0);
	hb_window__close(v);
}

static void losses_and_facts(void **state)
{
	const char *path = rig_path("loss.hbw");
	struct hb_window_writer *w = rig_writer(path, 1);
	struct hb_loss_row row = {.cause = HB_LOSS_RING_FULL, .type = HB_TYPE_accel, .cpu = 3, .count = 5};
	const char *k, *val;
	struct hb_window *v;
	u32 n;

	hb_window_writer__loss(w, &row);
	row.cpu = 4;
	hb_window_writer__loss(w, &row);
	hb_window_writer__meta(w, "host", "a");
	assert_int_equal(hb_window_writer__flush(w), 0);
	row.count = 100;
	hb_window_writer__loss(w, &row);
	hb_window_writer__meta(w, "kernel", "6.18");
	hb_window_writer__meta(w, "host", "b");
	hb_window_writer__meta(w, "empty", "");
	hb_window_writer__loss(w, &(struct hb_loss_row){.cause = HB_LOSS_LATE}); /* none: no row */
	rig_finish(w, 0);
	v = rig_open(path);
	assert_int_equal(hb_window__loss_total(v, HB_LOSS_RING_FULL), 110);
	assert_int_equal(hb_window__loss_total(v, HB_LOSS_LATE), 0);
	assert_int_equal(hb_window__losses(v, &n)[1].count, 105);
	assert_int_equal(n, 2);
	assert_string_equal(hb_window__meta(v, "host"), "b");
	assert_string_equal(hb_window__meta(v, "empty"), "");
	assert_null(hb_window__meta(v, "absent"));
	assert_true(hb_window__meta_at(v, 1, &k, &val));
	assert_string_equal(k, "kernel");
	assert_string_equal(val, "6.18");
	assert_false(hb_window__meta_at(v, 3, &k, &val));
	hb_window__close(v);
}

/* ---- the format as others see it ---- */

/* Any zstd reader passes over our frames and finds all data frames' content. */
static void file_is_a_zstd_stream(void **state)
{
	const char *path = rig_path("zstd.hbw");
	struct hb_window_writer *w = rig_writer(path, 2);
	ZSTD_DCtx *d = ZSTD_createDCtx();
	struct rig_file f;
	ZSTD_inBuffer in;
	size_t r = 1, total = 0;

	for (u32 i = 0; i < 30000; i++)
		rig_put(w, i % 2, i, HB_TYPE_accel, i);
	rig_finish(w, 0);
	f = rig_load(path);
	in = (ZSTD_inBuffer){f.data, f.size, 0};
	while (in.pos < in.size || r) {
		char buf[65536];
		ZSTD_outBuffer out = {buf, sizeof(buf), 0};

		r = ZSTD_decompressStream(d, &out, &in);
		assert_false(ZSTD_isError(r));
		total += out.pos;
	}
	assert_int_equal(total, 30000 * (8 + sizeof(struct hb_rec_accel)));
	ZSTD_freeDCtx(d);
	free(f.data);
}

static void schema_is_in_the_file(void **state)
{
	const char *path = rig_path("schema.hbw");
	const struct hb_frame_head *h;
	struct rig_file f;
	size_t at = 0;
	char *text;

	rig_finish(rig_writer(path, 1), 0);
	f = rig_load(path);
	do
		h = rig_frame(&f, &at);
	while (h && h->kind != HB_FRAME_SCHEMA);
	assert_non_null(h);
	assert_int_equal(h->flags, 0);
	text = strndup((const char *)(h + 1), hb_frame__body(h));
	assert_non_null(strstr(text, "\n8 exit 8 0 code@0:u32:NUM last@4:u32:NUM\n"));
	assert_non_null(strstr(text, "\nwords LAYER 0=driver 1=runtime 2=library\n"));
	free(text);
	free(f.data);
}

static void index_points_at_the_frames(void **state)
{
	const char *path = rig_path("index.hbw");
	struct hb_window_writer *w = rig_writer(path, 3);
	const struct hb_frame_head *h, *data;
	struct hb_index_entry x[64];
	struct hb_footer_body foot;
	struct hb_data_head d;
	struct rig_file f;
	size_t n;

	for (u32 i = 0; i < 30000; i++)
		rig_put(w, i % 3, 5000 + i, HB_TYPE_offcpu, i);
	rig_finish(w, 77777);
	f = rig_load(path);
	h = (const void *)(f.data + f.size - sizeof(*h) - sizeof(foot));
	assert_true(hb_frame__head_ok(h) && h->kind == HB_FRAME_FOOTER);
	memcpy(&foot, h + 1, sizeof(foot));
	assert_int_equal(foot.records, 30000);
	assert_int_equal(foot.end_ts, 77777);
	h = (const void *)(f.data + foot.index);
	assert_true(hb_frame__head_ok(h) && h->kind == HB_FRAME_INDEX);
	n = ZSTD_decompress(x, sizeof(x), h + 1, hb_frame__body(h));
	assert_int_equal(n, foot.frames * sizeof(*x));
	for (n = 0; n < foot.frames; n++) {
		data = (const void *)(f.data + x[n].offset);
		assert_true(hb_frame__head_ok(data) && data->kind == HB_FRAME_DATA);
		memcpy(&d, data + 1, sizeof(d));
		assert_int_equal(d.stream, x[n].stream);
		assert_int_equal(d.count, x[n].count);
		assert_int_equal(d.min_ts, x[n].min_ts);
		assert_int_equal(d.max_ts, x[n].max_ts);
	}
	free(f.data);
}

/* ---- limits ---- */

static void limit(u64 max, bool same)
{
	const char *path = rig_path("limit.hbw");
	struct hb_window_opts o = {.streams = 5, .exempt = 1, .start_ts = 1, .max_size = max, .force = true};
	struct hb_error e = {0};
	struct hb_window_writer *w = hb_window_writer__new(path, &o, &e);
	u64 put = 0;
	struct hb_window *v;
	u8 p[HB_RECORD_MAX];
	int err;

	assert_non_null(w);
	do {
		rig_fill(p, HB_TYPE_accel, same ? 7 : (u32)put); /* hardly compressible, or very much so */
		err = hb_window_writer__put(w, put % 4, put, 1, HB_TYPE_accel, p);
		put += !err;
	} while (!err && put < 1000000);
	assert_int_equal(err, -EFBIG);
	assert_int_equal(hb_window_writer__put(w, 0, put, 1, HB_TYPE_accel, p), -EFBIG);
	assert_int_equal(hb_window_writer__records(w), put);
	/* The last stream goes on: prices and remarks about the end. */
	for (u32 i = 0; i < 20; i++)
		rig_put(w, 4, put, HB_TYPE_price, i);
	rig_finish(w, put);
	v = rig_open(path);
	assert_null(hb_window__damage(v));
	assert_true(hb_window__info(v)->bytes <= max);
	assert_true(hb_window__info(v)->bytes > max / 4);
	assert_int_equal(hb_window__loss_total(v, HB_LOSS_DISK), 0); /* what was accepted is there */
	assert_int_equal(rig_count(v), put + 20);
	hb_window__close(v);
}

static void max_size_ends_early_but_whole(void **state)
{
	limit(64 << 10, false);
	limit(300000, false);
	limit(4 << 20, false);
	limit(64 << 10, true);
	limit(300000, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(every_type_comes_back),
	    cmocka_unit_test(facts_of_the_window),
	    cmocka_unit_test(empty_window),
	    cmocka_unit_test(steps_in_time),
	    cmocka_unit_test(streams_are_merged),
	    cmocka_unit_test(many_at_a_time),
	    cmocka_unit_test(nonsense_is_not_accepted),
	    cmocka_unit_test(threads_put_while_another_flushes),
	    cmocka_unit_test(strings),
	    cmocka_unit_test(tasks),
	    cmocka_unit_test(task_table_full),
	    cmocka_unit_test(processes_and_probes),
	    cmocka_unit_test(stacks_and_locations),
	    cmocka_unit_test(losses_and_facts),
	    cmocka_unit_test(file_is_a_zstd_stream),
	    cmocka_unit_test(schema_is_in_the_file),
	    cmocka_unit_test(index_points_at_the_frames),
	    cmocka_unit_test(max_size_ends_early_but_whole),
	};

	return cmocka_run_group_tests(tests, rig_setup, rig_teardown);
}
