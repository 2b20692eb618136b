/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the tests of the window file share: a folder of their own, files in memory, records that can be
 * recognised. */
#ifndef HB_WINDOW_RIG_H
#define HB_WINDOW_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "window/frame.h"
#include "window/window.h"

static char rig_dir[PATH_MAX / 2];

static inline int rig_setup(void **state)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(rig_dir, sizeof(rig_dir), "%s/hb-window-XXXXXX", tmp && *tmp ? tmp : "/tmp");
	return mkdtemp(rig_dir) ? 0 : -1;
}

static inline int rig_teardown(void **state)
{
	char cmd[PATH_MAX];

	snprintf(cmd, sizeof(cmd), "rm -rf '%s'", rig_dir);
	return system(cmd);
}

/* One of a few static buffers: several names may be in use at once. */
static inline const char *rig_path(const char *name)
{
	static char bufs[64][PATH_MAX];
	static unsigned next;
	char *b = bufs[next++ % 64];

	snprintf(b, PATH_MAX, "%s/%s", rig_dir, name);
	return b;
}

static inline struct hb_window_writer *rig_writer(const char *path, unsigned streams)
{
	struct hb_window_opts o = {.streams = streams, .start_ts = 1000, .force = true};
	struct hb_error e = {0};
	struct hb_window_writer *w = hb_window_writer__new(path, &o, &e);

	if (!w)
		fail_msg("%s", e.text);
	return w;
}

static inline void rig_finish(struct hb_window_writer *w, u64 end_ts)
{
	struct hb_error e = {0};

	if (hb_window_writer__finish(w, end_ts, &e))
		fail_msg("%s", e.text);
}

static inline struct hb_window *rig_open(const char *path)
{
	struct hb_error e = {0};
	struct hb_window *w = hb_window__open(path, &e);

	if (!w)
		fail_msg("%s", e.text);
	return w;
}

/* Opening fails with this errno and a sentence that has `word` in it. */
static inline void rig_refused(const char *path, int err, const char *word)
{
	struct hb_error e = {0};

	assert_null(hb_window__open(path, &e));
	assert_int_equal(e.err, err);
	assert_int_equal(e.exit, HB_EXIT_FAILED);
	if (!strstr(e.text, word))
		fail_msg("'%s' not in: %s", word, e.text);
}

struct rig_file {
	u8 *data;
	size_t size;
};

static inline struct rig_file rig_load(const char *path)
{
	struct rig_file f = {0};
	struct stat st;
	int fd = open(path, O_RDONLY);

	assert_true(fd >= 0 && fstat(fd, &st) == 0);
	f.size = (size_t)st.st_size;
	f.data = malloc(f.size + 1);
	assert_non_null(f.data);
	assert_int_equal(read(fd, f.data, f.size), f.size);
	close(fd);
	return f;
}

static inline void rig_save(const char *path, const void *data, size_t n)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, n), n);
	close(fd);
}

/* The payload of record number n of a type: every byte follows from both. */
static inline void rig_fill(u8 *payload, unsigned type, u32 n)
{
	u32 x = type * 2654435761u + n;

	for (unsigned i = 0; i < HB_RECORD_MAX; i++) {
		x = x * 1664525 + 1013904223;
		payload[i] = (u8)(x >> 24);
	}
	memcpy(payload, &n, 4); /* the number can be read back; small, so that a DUR member stays small */
	memset(payload + 4, 0, 4);
}

static inline void rig_put(struct hb_window_writer *w, unsigned stream, u64 ts, unsigned type, u32 n)
{
	u8 payload[HB_RECORD_MAX];

	rig_fill(payload, type, n);
	assert_int_equal(hb_window_writer__put(w, stream, ts, (u16)(1 + n % 3), type, payload), 0);
}

/* Is this the record that rig_put() wrote? Returns its number. */
static inline u32 rig_check(const struct hb_record *r)
{
	u8 payload[HB_RECORD_MAX];
	u32 n;

	memcpy(&n, r->data, 4);
	rig_fill(payload, r->type, n);
	assert_memory_equal(r->data, payload, hb_schema__type(r->type)->size);
	return n;
}

/* Reads all; returns how many. Each must be sound. */
static inline u64 rig_count(struct hb_window *w)
{
	struct hb_record r;
	u64 n = 0;
	int err;

	while ((err = hb_window__next(w, &r)) > 0) {
		rig_check(&r);
		n++;
	}
	assert_int_equal(err, 0);
	return n;
}

/* Walks the frames of a sound file: *at advances; NULL at the end. */
static inline const struct hb_frame_head *rig_frame(const struct rig_file *f, size_t *at)
{
	const struct hb_frame_head *h = (const void *)(f->data + *at);

	if (*at >= f->size)
		return NULL;
	assert_true(hb_frame__head_ok(h));
	*at += hb_frame__len(h);
	return h;
}

#endif
