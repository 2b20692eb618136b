/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Window files that are cut, scribbled over, unfinished, of another version, or not ours; names that are
 * taken. */
#include "window_rig.h"

#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <zstd.h>

/* A small file with all kinds of frames, several of each: 60 records of 3 streams in 9 data frames. */
static struct rig_file small_file(const char *path)
{
	struct hb_window_writer *w = rig_writer(path, 3);
	struct hb_task t = {.pid = 1, .target = 1};

	for (u32 i = 0; i < 60; i++) {
		rig_put(w, i % 3, 5000 + i * 10, i % 2 ? HB_TYPE_exit : HB_TYPE_note, i);
		if (i % 20 != 19)
			continue;
		t.tid = i;
		hb_window_writer__task(w, &t);
		hb_window_writer__meta(w, "key", i < 30 ? "first" : "second");
		assert_int_equal(hb_window_writer__flush(w), 0);
	}
	rig_finish(w, 99999);
	return rig_load(path);
}

/* The records are some of the 60, each at most once, each whole. */
static u64 count_some(struct hb_window *w)
{
	bool seen[60] = {false};
	struct hb_record r;
	u64 n = 0;
	int err;

	while ((err = hb_window__next(w, &r)) > 0) {
		u32 id = rig_check(&r);

		assert_true(id < 60 && !seen[id]);
		assert_int_equal(r.ts, 5000 + id * 10);
		seen[id] = true;
		n++;
	}
	assert_int_equal(err, 0);
	assert_int_equal(n, hb_window__info(w)->records);
	return n;
}

static size_t header_length(const struct rig_file *f)
{
	size_t at = 0;

	rig_frame(f, &at);
	return at;
}

/* ---- cut, flipped, torn ---- */

static void cut_at_every_byte(void **state)
{
	struct rig_file f = small_file(rig_path("whole.hbw"));
	const char *path = rig_path("cut.hbw");
	size_t header = header_length(&f);
	struct hb_error e = {0};
	u64 last = 0, n;

	for (size_t len = 1; len <= f.size; len++) {
		struct hb_window *w;

		rig_save(path, f.data, len);
		w = hb_window__open(path, &e);
		if (len < header) {
			assert_null(w);
			assert_non_null(strstr(e.text, "not a window"));
			hb_error__clear(&e);
			continue;
		}
		assert_non_null(w);
		n = count_some(w);
		assert_true(n >= last);
		last = n;
		if (len < f.size)
			assert_non_null(strstr(hb_window__damage(w), "incomplete"));
		else
			assert_null(hb_window__damage(w));
		assert_int_equal(hb_window__info(w)->complete, len == f.size);
		hb_window__close(w);
	}
	assert_int_equal(last, 60);
	free(f.data);
}

static void each_byte_flipped(void **state)
{
	struct rig_file f = small_file(rig_path("whole.hbw"));
	const char *path = rig_path("flip.hbw");
	size_t header = header_length(&f);

	for (size_t at = 0; at < f.size; at++) {
		for (u8 mask = 1; mask; mask = (u8)(mask << 3)) {
			struct hb_error e = {0};
			struct hb_window *w;

			f.data[at] ^= mask;
			rig_save(path, f.data, f.size);
			f.data[at] ^= mask;
			w = hb_window__open(path, &e);
			if (!w) { /* only where the file says what it is */
				assert_true(at < header && e.err && *e.text);
				continue;
			}
			if (!hb_window__damage(w))
				fail_msg("flip of byte %zu is not noticed", at);
			/* One frame is lost at most: 60 records less the 7 of the largest. */
			assert_true(count_some(w) >= 53);
			hb_window__close(w);
		}
	}
	free(f.data);
}

/* Bytes missing or added in the middle: what comes behind is found again. */
static void spliced(const struct rig_file *f, size_t at, size_t remove, size_t insert)
{
	const char *path = rig_path("splice.hbw");
	u8 *data = calloc(1, f->size + insert);
	struct hb_window *w;

	assert_non_null(data);
	memcpy(data, f->data, at);
	memset(data + at, 'x', insert);
	memcpy(data + at + insert, f->data + at + remove, f->size - at - remove);
	rig_save(path, data, f->size + insert - remove);
	w = rig_open(path);
	assert_non_null(hb_window__damage(w));
	assert_true(hb_window__info(w)->complete); /* the footer was found */
	assert_true(count_some(w) >= 60 - 7 * (remove / 40 + 2));
	hb_window__close(w);
	free(data);
}

static void found_again_after_a_splice(void **state)
{
	struct rig_file f = small_file(rig_path("whole.hbw"));
	size_t header = header_length(&f), end = f.size - 72; /* the footer stays */

	for (size_t at = header; at + 100 < end; at += 13) {
		spliced(&f, at, 1, 0);
		spliced(&f, at, 100, 0);
		spliced(&f, at, 0, 1);
		spliced(&f, at, 0, 100000); /* more than is searched at a time */
		spliced(&f, at, 50, 50);
	}
	free(f.data);
}

static void junk_behind_the_end(void **state)
{
	struct rig_file f = small_file(rig_path("whole.hbw"));
	const char *path = rig_path("junk.hbw");
	struct hb_window *w;
	u8 *data = calloc(1, f.size + 5000);

	memcpy(data, f.data, f.size);
	rig_save(path, data, f.size + 5000);
	w = rig_open(path);
	assert_int_equal(hb_window__info(w)->bytes_lost, 5000);
	assert_non_null(hb_window__damage(w));
	assert_int_equal(count_some(w), 60);
	hb_window__close(w);
	free(data);
	free(f.data);
}

/* A frame taken out exactly is missed too: by the numbering, and by the count in the footer. */
static void a_whole_frame_missing(void **state)
{
	struct rig_file f = small_file(rig_path("whole.hbw"));
	const char *path = rig_path("gap.hbw");
	const struct hb_frame_head *h;
	size_t at = 0, begin;
	struct hb_window *w;

	do {
		begin = at;
		h = rig_frame(&f, &at);
	} while (h->kind != HB_FRAME_DATA);
	memmove(f.data + begin, f.data + at, f.size - at);
	rig_save(path, f.data, f.size - (at - begin));
	w = rig_open(path);
	assert_int_equal(hb_window__info(w)->frames_bad, 1);
	assert_int_equal(hb_window__loss_total(w, HB_LOSS_DAMAGED), 1);
	assert_int_equal(hb_window__info(w)->bytes_lost, 0);
	assert_non_null(strstr(hb_window__damage(w), "7 records are lost"));
	assert_int_equal(count_some(w), 53);
	hb_window__close(w);
	free(f.data);
}

/* ---- other versions ---- */

/* Appends a data frame of one type, made by the book (docs/window-format.md), not by the writer's code. */
static void craft_data(struct hb_buf *out, u32 seq, u8 type, u32 words, u32 count, const u8 *payload)
{
	struct hb_data_head d = {
	    .base_ts = 7000, .min_ts = 7000, .max_ts = 7000 + count - 1, .n_types = 1, .count = count};
	struct hb_data_type t = {.type = type, .words = (u8)words, .count = count};
	struct hb_frame_head h = {.kind = HB_FRAME_DATA, .seq = seq, .raw = count * (8 + 8 * words)};
	u8 body[sizeof(d) + sizeof(t)], *planes = malloc(h.raw), *z = malloc(ZSTD_compressBound(h.raw));
	size_t n;

	for (u32 i = 0; i < count; i++) {
		struct hb_file_head r = {.dt = i ? 1 : 0, .type = type};

		for (u32 b = 0; b < 8; b++)
			planes[b * count + i] = ((u8 *)&r)[b];
		for (u32 b = 0; b < 8 * words; b++)
			planes[(8 + b) * count + i] = payload[(size_t)i * 8 * words + b];
	}
	memcpy(body, &d, sizeof(d));
	memcpy(body + sizeof(d), &t, sizeof(t));
	n = ZSTD_compress(z, ZSTD_compressBound(h.raw), planes, h.raw, 1);
	assert_false(ZSTD_isError(n));
	hb_frame__seal(&h, body, sizeof(body), z, n);
	hb_buf__add(out, &h, sizeof(h));
	hb_buf__add(out, body, sizeof(body));
	hb_buf__add(out, z, n);
	free(planes);
	free(z);
}

static void craft_header(struct hb_buf *out)
{
	hb_frame__add(out, HB_FRAME_HEADER, 0, &(struct hb_header_body){.start_ts = 5000, .streams = 1},
		      sizeof(struct hb_header_body));
}

static struct hb_window *open_crafted(struct hb_buf *b)
{
	const char *path = rig_path("crafted.hbw");

	assert_false(b->oom);
	rig_save(path, b->data, b->size);
	hb_buf__free(b);
	return rig_open(path);
}

/* Gives every frame another version and makes the checksum right again. */
static void set_version(struct rig_file *f, u8 major, u8 minor)
{
	size_t at = 0;

	while (at < f->size) {
		struct hb_frame_head *h = (void *)(f->data + at);

		at += hb_frame__len(h);
		h->major = major;
		h->minor = minor;
		h->head_crc = hb_frame__crc(h, offsetof(struct hb_frame_head, head_crc));
	}
}

static void newer_major_is_refused(void **state)
{
	struct rig_file f = small_file(rig_path("whole.hbw"));
	const char *path = rig_path("major.hbw");

	set_version(&f, HB_WINDOW_MAJOR + 1, 3);
	rig_save(path, f.data, f.size);
	rig_refused(path, -EPROTO, "use a newer herschel-bpf");
	rig_save(path, f.data, 45); /* even when that is all there is */
	rig_refused(path, -EPROTO, "format version 2.3");
	free(f.data);
}

static void newer_minor_is_read(void **state)
{
	struct rig_file f = small_file(rig_path("whole.hbw"));
	const char *path = rig_path("minor.hbw");
	struct hb_window *w;

	set_version(&f, HB_WINDOW_MAJOR, 77);
	rig_save(path, f.data, f.size);
	w = rig_open(path);
	assert_int_equal(hb_window__info(w)->minor, 77);
	assert_null(hb_window__damage(w));
	assert_int_equal(count_some(w), 60);
	hb_window__close(w);
	free(f.data);
}

static void unknown_types_are_counted(void **state)
{
	u8 payload[3 * 16] = {0};
	struct hb_buf b = {0};
	struct hb_record r;
	struct hb_window *w;

	craft_header(&b);
	craft_data(&b, 1, 200, 2, 3, payload);
	craft_data(&b, 2, HB_TYPE_exit, 1, 1, payload);
	craft_data(&b, 3, HB_TYPE_MAX - 1, 1, 2, payload);
	hb_frame__add(&b, 99, 4, payload, 20); /* a kind of frame that is not known yet */
	w = open_crafted(&b);
	assert_int_equal(hb_window__info(w)->records, 6);
	assert_int_equal(hb_window__info(w)->unknown, 5);
	assert_int_equal(hb_window__loss_total(w, HB_LOSS_UNKNOWN_TYPE), 5);
	assert_int_equal(hb_window__next(w, &r), 1);
	assert_int_equal(r.type, HB_TYPE_exit);
	assert_int_equal(hb_window__next(w, &r), 0);
	hb_window__close(w);
}

static void longer_and_shorter_records(void **state)
{
	struct hb_rec_exit longer[2][2] = {{{.code = 11, .last = 1}, {.code = 99}},
					   {{.code = 22}, {.code = 98}}};
	struct hb_rec_price whole = {.hits = 5, .price = 6, .probe = 7, .hook = 8}, got;
	struct hb_buf b = {0};
	struct hb_record r;
	struct hb_window *w;

	craft_header(&b);
	craft_data(&b, 1, HB_TYPE_exit, 2, 2, (u8 *)longer);
	craft_data(&b, 2, HB_TYPE_price, 2, 1, (u8 *)&whole);
	w = open_crafted(&b);
	assert_int_equal(hb_window__next(w, &r), 1);
	assert_int_equal(((const struct hb_rec_exit *)r.data)->code, 11);
	assert_int_equal(((const struct hb_rec_exit *)r.data)->last, 1);
	/* Equal times: either order will do. */
	for (int i = 0; i < 2; i++) {
		assert_int_equal(hb_window__next(w, &r), 1);
		if (r.type == HB_TYPE_exit)
			assert_int_equal(((const struct hb_rec_exit *)r.data)->code, 22);
		else
			memcpy(&got, r.data, sizeof(got));
	}
	assert_int_equal(got.hits, 5);
	assert_int_equal(got.price, 6);
	assert_int_equal(got.probe, 0);
	assert_int_equal(got.hook, 0);
	hb_window__close(w);
}

/* Many that are shorter, with some of an unknown type before them: each is extended in a place of its own. */
static void many_shorter_records(void **state)
{
	u64 shorter[200][2];
	struct hb_records r = {0};
	struct hb_buf b = {0};
	struct hb_window *w;
	u32 n = 0;

	for (u32 i = 0; i < 200; i++)
		shorter[i][0] = i, shorter[i][1] = UINT64_MAX;
	craft_header(&b);
	craft_data(&b, 1, 200, 2, 3, (u8 *)shorter);
	craft_data(&b, 2, HB_TYPE_price, 2, 200, (u8 *)shorter);
	w = open_crafted(&b);
	while (hb_window__take(w, &r) > 0) {
		for (u32 i = 0; i < r.n; i++, n++) {
			const struct hb_rec_price *p = r.record[i].data;

			assert_int_equal(r.record[i].type, HB_TYPE_price);
			assert_int_equal(p->hits, n);
			assert_true(p->price == UINT64_MAX);
			assert_int_equal(p->probe, 0);
			assert_int_equal(p->hook, 0);
		}
	}
	assert_int_equal(n, 200);
	hb_window__close(w);
}

/* ---- files made to deceive ---- */

/* Checksums are right, but the heads in the frame name a type that the frame's own head does not. */
static void contradictory_frame(void **state)
{
	u8 payload[16] = {0};
	struct hb_buf b = {0};
	struct hb_frame_head h;
	struct hb_data_type t;
	struct hb_record r;
	struct hb_window *w;
	size_t at;

	craft_header(&b);
	at = b.size;
	craft_data(&b, 1, HB_TYPE_exit, 1, 2, payload);
	memcpy(&h, b.data + at, sizeof(h));
	memcpy(&t, b.data + at + sizeof(h) + sizeof(struct hb_data_head), sizeof(t));
	t.type = HB_TYPE_note;
	memcpy(b.data + at + sizeof(h) + sizeof(struct hb_data_head), &t, sizeof(t));
	hb_frame__seal(&h, b.data + at + sizeof(h), hb_frame__body(&h),
		       b.data + at + sizeof(h) + hb_frame__body(&h), h.follow);
	memcpy(b.data + at, &h, sizeof(h));
	craft_data(&b, 2, HB_TYPE_exit, 1, 1, payload);
	w = open_crafted(&b);
	assert_int_equal(hb_window__next(w, &r), 1);
	assert_int_equal(hb_window__next(w, &r), 0);
	assert_int_equal(hb_window__info(w)->frames_bad, 1);
	assert_int_equal(hb_window__info(w)->records, 1);
	assert_non_null(strstr(hb_window__damage(w), "2 records are lost"));
	hb_window__rewind(w);
	assert_int_equal(hb_window__next(w, &r), 1);
	assert_int_equal(hb_window__next(w, &r), 0);
	assert_int_equal(hb_window__info(w)->frames_bad, 1); /* counted once */
	hb_window__close(w);
}

static void entry(struct hb_buf *b, u16 kind, const void *data, u32 n, u32 claimed)
{
	struct hb_entry_head h = {.kind = kind, .size = claimed};

	hb_buf__add(b, &h, sizeof(h));
	hb_buf__add(b, data, n);
}

static void malformed_tables(void **state)
{
	struct hb_buf b = {0}, t = {0};
	struct hb_window *w;

	craft_header(&b);
	entry(&t, HB_ENTRY_STRING, (u32[]){0xffffffff, 0x41414141}, 8, 8); /* id out of all proportion */
	entry(&t, HB_ENTRY_STRING, (u32[]){0, 0x41414141}, 8, 8);	   /* 0 is "" */
	entry(&t, HB_ENTRY_TASK, (u32[]){0x10000, 1}, 8, 8);
	entry(&t, HB_ENTRY_STACK, (u32[]){1, 2, 0, 1u << 30}, 16, 16); /* more frames than bytes */
	entry(&t, HB_ENTRY_META, "abc", 3, 3);
	entry(&t, 5000, "abcd", 4, 4);				  /* a newer kind: no error */
	entry(&t, HB_ENTRY_STRING, (u32[]){1, 0x0a1b5b41}, 8, 8); /* "A[\033\n" */
	entry(&t, HB_ENTRY_TASK, (u32[]){1, 10, 11}, 12, 12);	  /* shorter: zeros follow */
	entry(&t, HB_ENTRY_STRING, (u32[]){2}, 4, 4000);	  /* longer than the frame */
	hb_frame__add(&b, HB_FRAME_TABLE, 1, t.data, t.size);
	hb_buf__free(&t);
	w = open_crafted(&b);
	assert_non_null(strstr(hb_window__damage(w), "6 table entries make no sense"));
	assert_string_equal(hb_window__string(w, 1), "A[??");
	assert_string_equal(hb_window__string(w, 2), "?");
	assert_int_equal(hb_window__task(w, 1)->tid, 11);
	assert_int_equal(hb_window__task(w, 1)->comm, 0);
	assert_int_equal(hb_window__stack(w, 1, 2).n, 0);
	hb_window__close(w);
}

static void not_ours(void **state)
{
	const char *path = rig_path("foreign.hbw");
	u8 z[200];
	size_t n;

	rig_refused(rig_path("absent.hbw"), -ENOENT, "absent.hbw");
	rig_save(path, "", 0);
	rig_refused(path, -EINVAL, "empty");
	rig_save(path, "hello, I am text, and longer than any header would need to be", 60);
	rig_refused(path, -EINVAL, "does not begin like one");
	n = ZSTD_compress(z, sizeof(z), "abcabc", 6, 1);
	rig_save(path, z, n);
	rig_refused(path, -EINVAL, "not a window");
	memcpy(z, (u32[]){HB_SKIP_MAGIC, 100}, 8);
	rig_save(path, z, 108);
	rig_refused(path, -EINVAL, "not a window");
	rig_refused(rig_dir, -EINVAL, "not a regular file");
	assert_int_equal(mkfifo(rig_path("fifo.hbw"), 0600), 0);
	rig_refused(rig_path("fifo.hbw"), -EINVAL, "not a regular file");
}

/* ---- unfinished ---- */

/* Runs `body` in a child that never returns here; the child may exit with what it likes. */
static pid_t child(void (*body)(const char *path, int ready), const char *path, int *ready)
{
	int p[2];
	pid_t pid;

	assert_int_equal(pipe(p), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		close(p[0]);
		body(path, p[1]);
		_exit(1);
	}
	close(p[1]);
	*ready = p[0];
	return pid;
}

static void kill_child(pid_t pid)
{
	int status;

	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
}

/* Flushes 3,000 records and a name, says so, and goes on writing until it is killed. */
static void write_forever(const char *path, int ready)
{
	struct hb_window_writer *w = rig_writer(path, 2);
	struct hb_task t = {.pid = 1, .tid = 1, .comm = hb_window_writer__string(w, "worker")};

	hb_window_writer__task(w, &t);
	for (u32 i = 0;; i++) {
		rig_put(w, i % 2, 5000 + i, HB_TYPE_accel, i);
		if (i == 2999 && hb_window_writer__flush(w) == 0)
			i = write(ready, "!", 1) == 1 ? i : 0;
	}
}

static void killed_writer(void **state)
{
	const char *path = rig_path("killed.hbw"), *part = rig_path("killed.hbw.part");
	struct hb_window_opts o = {.streams = 1};
	struct hb_error e = {0};
	struct hb_window *v;
	char c;
	int ready;
	pid_t pid = child(write_forever, path, &ready);

	assert_int_equal(read(ready, &c, 1), 1);
	/* While it lives, its .part is not taken. */
	assert_null(hb_window_writer__new(path, &o, &e));
	assert_int_equal(e.err, -EBUSY);
	assert_non_null(strstr(e.text, "another herschel-bpf"));
	usleep(20000); /* into the middle of something; whether it is does not matter */
	kill_child(pid);
	close(ready);
	assert_int_equal(access(path, F_OK), -1);
	v = rig_open(part);
	assert_false(hb_window__info(v)->complete);
	assert_non_null(strstr(hb_window__damage(v), "not finished"));
	assert_true(rig_count(v) >= 3000);
	assert_string_equal(hb_window__string(v, hb_window__task_by_tid(v, 1)->comm), "worker");
	hb_window__close(v);
	/* Dead, it is kept until somebody says that it may go. */
	memset(&e, 0, sizeof(e));
	assert_int_equal(hb_window_writer__check(path, false, &e), -EEXIST);
	assert_null(hb_window_writer__new(path, &o, &e));
	assert_int_equal(e.err, -EEXIST);
	assert_non_null(strstr(e.text, "interrupted window"));
	assert_non_null(strstr(e.text, "--force"));
	assert_int_equal(hb_window_writer__check(path, true, &e), 0);
	v = rig_open(part); /* neither the refusal nor the checks have touched it */
	assert_true(rig_count(v) >= 3000);
	hb_window__close(v);
	rig_finish(rig_writer(path, 1), 0); /* force */
	v = rig_open(path);
	assert_int_equal(rig_count(v), 0);
	hb_window__close(v);
	assert_int_equal(access(part, F_OK), -1);
}

/* ---- no room ---- */

/* Writes until the disk says no, then finishes: 0 when all of it went as it should. */
static int fill_disk(const char *path)
{
	struct hb_window_opts o = {.streams = 2, .start_ts = 1};
	struct hb_error e = {0};
	struct hb_window_writer *w = hb_window_writer__new(path, &o, &e);
	u8 p[HB_RECORD_MAX];
	int err = 0;

	if (!w)
		return 10;
	for (u32 i = 0; i < 1000000 && !err; i++) {
		rig_fill(p, HB_TYPE_accel, i);
		err = hb_window_writer__put(w, i % 2, 5000 + i, 0, HB_TYPE_accel, p);
		if (!err && i % 10000 == 9999)
			err = hb_window_writer__flush(w);
	}
	if (!err)
		return 11;
	if (hb_window_writer__put(w, 0, 1, 0, HB_TYPE_accel, p) != err)
		return 12; /* sticky */
	if (hb_window_writer__finish(w, 1, &e) != err || !strstr(e.text, ".part"))
		return 13;
	return err == -ENOSPC || err == -EFBIG ? 0 : 14;
}

static void check_filled(const char *part, int status)
{
	struct hb_window *v;

	assert_int_equal(status, 0);
	v = rig_open(part);
	assert_int_equal(hb_window__info(v)->bytes_lost, 0); /* the frame that did not fit was taken back */
	assert_non_null(hb_window__damage(v));
	assert_true(rig_count(v) > 1000);
	hb_window__close(v);
}

static void file_size_limit(void **state)
{
	const char *path = rig_path("rlimit.hbw");
	struct rlimit r = {600000, 600000};
	int status;
	pid_t pid = fork();

	if (!pid) {
		signal(SIGXFSZ, SIG_IGN);
		_exit(setrlimit(RLIMIT_FSIZE, &r) ? 20 : fill_disk(path));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	check_filled(rig_path("rlimit.hbw.part"), status);
}

static int unmount(void **state)
{
	umount2(rig_path("tiny"), MNT_DETACH); /* not there when the test was skipped */
	return 0;
}

static void full_disk(void **state)
{
	const char *dir = rig_path("tiny");
	char path[PATH_MAX];
	int status;
	pid_t pid;

	assert_int_equal(mkdir(dir, 0700), 0);
	snprintf(path, sizeof(path), "%s/a.hbw", dir);
	if (geteuid() != 0 || mount("tmpfs", dir, "tmpfs", 0, "size=700k")) {
		printf("skip: a tiny file system needs the right to mount one\n");
		skip();
	}
	pid = fork();
	if (!pid)
		_exit(fill_disk(path));
	waitpid(pid, &status, 0);
	snprintf(path, sizeof(path), "%s/a.hbw.part", dir);
	check_filled(path, status);
}

/* ---- names ---- */

static void new_fails(const char *path, bool force, int err, const char *word)
{
	struct hb_window_opts o = {.streams = 1, .force = force};
	struct hb_error e = {0};

	assert_null(hb_window_writer__new(path, &o, &e));
	assert_int_equal(e.err, err);
	if (!strstr(e.text, word))
		fail_msg("'%s' not in: %s", word, e.text);
}

static void names_that_are_taken(void **state)
{
	const char *path = rig_path("taken.hbw"), *slink = rig_path("link.hbw"),
		   *part = rig_path("free.hbw.part");

	rig_save(path, "precious", 8);
	new_fails(path, false, -EEXIST, "--force");
	assert_int_equal(symlink(path, slink), 0);
	new_fails(slink, false, -ELOOP, "symbolic link");
	new_fails(slink, true, -ELOOP, "symbolic link");
	new_fails(rig_dir, true, -EEXIST, "not a regular file");
	new_fails("/dev/null", true, -EEXIST, "not a regular file");
	new_fails(rig_path("no/such/folder.hbw"), false, -ENOENT, "no/such");
	new_fails(rig_path("taken.hbw/x.hbw"), false, -ENOTDIR, "taken.hbw");
	new_fails(rig_path("folder/"), false, -EISDIR, "file name");
	new_fails("", false, -EISDIR, "file name");
	/* A .part that is a link, dangling or not, or a folder: not followed, not removed. */
	assert_int_equal(symlink(rig_path("elsewhere"), part), 0);
	new_fails(rig_path("free.hbw"), true, -ELOOP, "symbolic link");
	assert_int_equal(access(rig_path("elsewhere"), F_OK), -1);
	assert_int_equal(unlink(part), 0);
	assert_int_equal(symlink(path, part), 0);
	new_fails(rig_path("free.hbw"), true, -ELOOP, "symbolic link");
	assert_int_equal(unlink(part), 0);
	assert_int_equal(mkdir(part, 0700), 0);
	new_fails(rig_path("free.hbw"), true, -EISDIR, "in the way");
	assert_int_equal(rmdir(part), 0);
	/* A hard link to something of value is not a leftover of ours. */
	assert_int_equal(linkat(AT_FDCWD, path, AT_FDCWD, part, 0), 0);
	new_fails(rig_path("free.hbw"), true, -EEXIST, "not ours");
	assert_int_equal(unlink(part), 0);
	free(rig_load(path).data);
}

static void replaced_only_by_force(void **state)
{
	const char *path = rig_path("late.hbw");
	struct hb_window_opts o = {.streams = 1};
	struct hb_error e = {0};
	struct hb_window_writer *w = hb_window_writer__new(path, &o, &e);
	struct rig_file f;
	struct hb_window *v;

	assert_non_null(w);
	rig_save(path, "came later", 10); /* while we were writing */
	assert_int_equal(hb_window_writer__finish(w, 0, &e), -EEXIST);
	assert_non_null(strstr(e.text, "kept in"));
	f = rig_load(path);
	assert_memory_equal(f.data, "came later", 10);
	free(f.data);
	v = rig_open(rig_path("late.hbw.part"));
	assert_null(hb_window__damage(v)); /* whole, only without its name */
	hb_window__close(v);
	rig_finish(rig_writer(path, 1), 0); /* force */
	v = rig_open(path);
	hb_window__close(v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(cut_at_every_byte),
	    cmocka_unit_test(each_byte_flipped),
	    cmocka_unit_test(found_again_after_a_splice),
	    cmocka_unit_test(junk_behind_the_end),
	    cmocka_unit_test(a_whole_frame_missing),
	    cmocka_unit_test(newer_major_is_refused),
	    cmocka_unit_test(newer_minor_is_read),
	    cmocka_unit_test(unknown_types_are_counted),
	    cmocka_unit_test(longer_and_shorter_records),
	    cmocka_unit_test(many_shorter_records),
	    cmocka_unit_test(contradictory_frame),
	    cmocka_unit_test(malformed_tables),
	    cmocka_unit_test(not_ours),
	    cmocka_unit_test(killed_writer),
	    cmocka_unit_test(file_size_limit),
	    cmocka_unit_test_teardown(full_disk, unmount),
	    cmocka_unit_test(names_that_are_taken),
	    cmocka_unit_test(replaced_only_by_force),
	};

	return cmocka_run_group_tests(tests, rig_setup, rig_teardown);
}
