/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The window reader on any bytes. Checksums would stop nearly every mutation at the door, so the mutator here
 * works on a frame's content (decompressed), on its head, or on the whole file, and mostly makes the
 * checksums right again.
 */
#include "window/frame.h"
#include "window/window.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <zstd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max);

#define CONTENT_MAX (256u << 10)

/* ---- the check ---- */

static void require(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "broken promise: %s\n", what);
	abort();
}

static u64 sink;

static void touch(const void *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		sink += ((const u8 *)p)[i];
}

static void touch_string(const char *s)
{
	for (; *s; s++)
		require((u8)*s >= 0x20 && *s != 0x7f, "no control characters in strings");
}

static u64 read_all(struct hb_window *w)
{
	struct hb_record r;
	u64 n = 0;

	while (hb_window__next(w, &r) > 0) {
		const struct hb_type *t = hb_schema__type(r.type);

		require(t && r.task, "known type, some task");
		require(r.begin <= r.ts, "begin before end");
		touch(r.data, t->size);
		for (int i = 0; i < 2; i++) {
			u32 raw = 0;

			if (t->stack_offset[i] >= 0)
				memcpy(&raw, (const char *)r.data + t->stack_offset[i], 4);
			struct hb_stack s = hb_window__stack(w, r.task->pid, raw);
			touch(s.locs, s.n * sizeof(*s.locs));
		}
		n++;
	}
	return n;
}

static void read_tables(struct hb_window *w)
{
	const char *k, *v;
	u32 n;

	touch(hb_window__tasks(w, &n), 0);
	for (u32 i = 0; i < n; i++)
		touch_string(hb_window__string(w, hb_window__task(w, (u16)i)->comm));
	touch(hb_window__procs(w, &n), n * sizeof(struct hb_proc));
	touch(hb_window__losses(w, &n), n * sizeof(struct hb_loss_row));
	for (u32 i = 1; i <= hb_window__probes(w) && i < 1000; i++)
		touch_string(hb_window__string(w, hb_window__probe(w, i)->name));
	for (u32 i = 0; i < 1000; i++) {
		touch_string(hb_window__string(w, i));
		if (hb_window__loc(w, i))
			touch(hb_window__loc(w, i), sizeof(struct hb_loc));
	}
	for (u32 i = 0; hb_window__meta_at(w, i, &k, &v); i++) {
		touch_string(k);
		touch_string(v);
	}
}

static void check_file(const char *path)
{
	struct hb_error e = {0};
	struct hb_window *w = hb_window__open(path, &e);
	u64 n;

	if (!w) {
		require(e.err < 0 && *e.text, "a refusal has a sentence");
		return;
	}
	n = read_all(w);
	require(n + hb_window__info(w)->unknown >= hb_window__info(w)->records, "all counted records come");
	hb_window__rewind(w);
	require(read_all(w) == n, "the same again after rewind");
	require(hb_window__info(w)->bytes_lost <= hb_window__info(w)->bytes, "no more lost than there was");
	read_tables(w);
	if (hb_window__damage(w))
		touch_string(hb_window__damage(w));
	else
		require(hb_window__info(w)->complete, "incomplete is damage");
	hb_window__close(w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int fd = -1;
	char path[64];

	if (fd < 0)
		fd = memfd_create("window", 0);
	require(ftruncate(fd, 0) == 0 && pwrite(fd, data, size, 0) == (ssize_t)size,
		"the input can be stored");
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	check_file(path);
	return 0;
}

/* ---- the mutator ---- */

/* Start of the n-th frame of those that hang together from the start; size when there are none. */
static size_t nth_frame(const u8 *data, size_t size, unsigned n, unsigned *count)
{
	struct hb_frame_head h;
	size_t at = 0, found = size;

	for (*count = 0; size - at >= sizeof(h); (*count)++) {
		memcpy(&h, data + at, sizeof(h));
		if (h.magic != HB_SKIP_MAGIC || h.size < HB_HEAD_REST || hb_frame__len(&h) > size - at)
			break;
		if (*count == n)
			found = at;
		at += (size_t)hb_frame__len(&h);
	}
	return found;
}

static void reseal(u8 *at)
{
	struct hb_frame_head h;
	u8 major, minor;

	memcpy(&h, at, sizeof(h));
	major = h.major;
	minor = h.minor;
	hb_frame__seal(&h, at + sizeof(h), hb_frame__body(&h), at + sizeof(h) + hb_frame__body(&h), h.follow);
	h.major = major;
	h.minor = minor;
	h.head_crc = hb_frame__crc(&h, offsetof(struct hb_frame_head, head_crc));
	memcpy(at, &h, sizeof(h));
}

static void reseal_all(u8 *data, size_t size)
{
	unsigned count, n;

	nth_frame(data, size, 0, &count);
	for (unsigned i = 0; i < count; i++)
		reseal(data + nth_frame(data, size, i, &n));
}

/* Replaces the n bytes at `at` by m others; the new size of the file, 0 when it would exceed max. */
static size_t replace(u8 *data, size_t size, size_t max, size_t at, size_t n, const u8 *with, size_t m)
{
	if (size - n + m > max)
		return 0;
	memmove(data + at + m, data + at + n, size - at - n);
	memcpy(data + at, with, m);
	return size - n + m;
}

/* Mutates what is compressed: the body of a table frame, the planes of a data frame. */
static size_t mutate_content(u8 *data, size_t size, size_t max, size_t at)
{
	static u8 plain[CONTENT_MAX], packed[CONTENT_MAX * 2];
	struct hb_frame_head h;
	size_t n, from, len, z, total;

	memcpy(&h, data + at, sizeof(h));
	from = at + sizeof(h) + (h.follow ? hb_frame__body(&h) : 0);
	len = h.follow ? h.follow : hb_frame__body(&h);
	n = ZSTD_decompress(plain, sizeof(plain), data + from, len);
	if (ZSTD_isError(n) || !n)
		return 0;
	z = LLVMFuzzerMutate(plain, n, h.follow ? n : n + 64 < sizeof(plain) ? n + 64 : n);
	if (h.follow) /* planes must keep their size, or nothing else is looked at */
		z = n;
	h.raw = (u32)z;
	z = ZSTD_compress(packed, sizeof(packed), plain, z, 1);
	total = ZSTD_isError(z) ? 0 : replace(data, size, max, from, len, packed, z);
	if (!total)
		return 0;
	if (h.follow)
		h.follow = (u32)z;
	else
		h.size = (u32)(HB_HEAD_REST + z);
	memcpy(data + at, &h, sizeof(h));
	return total;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
	unsigned count, n;
	size_t at, total = 0;
	struct hb_frame_head h;

	nth_frame(data, size, 0, &count);
	if (count && seed % 8) {
		at = nth_frame(data, size, seed / 64 % count, &n);
		memcpy(&h, data + at, sizeof(h));
		if (seed % 8 < 5 && (h.follow || h.flags & HB_FRAME_ZSTD))
			total = mutate_content(data, size, max, at);
		if (!total && seed % 8 < 7 &&
		    hb_frame__body(&h)) /* the body as it stands, without changing lengths */
			total =
			    LLVMFuzzerMutate(data + at + sizeof(h), hb_frame__body(&h), hb_frame__body(&h))
				? size
				: 0;
	}
	if (!total)
		total = LLVMFuzzerMutate(data, size, max);
	if (seed / 8 % 8)
		reseal_all(data, total);
	return total;
}
