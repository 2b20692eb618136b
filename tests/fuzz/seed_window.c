/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Writes small window files into the folder given: what the fuzzer starts from. */
#include "window/window.h"

#include <stdio.h>
#include <string.h>

static void fill_tables(struct hb_window_writer *w, u32 n)
{
	struct hb_task t = {
	    .pid = 10, .nspid = 10, .target = 1, .comm = hb_window_writer__string(w, "worker")};
	struct hb_proc p = {.pid = 10, .ppid = 1, .exe = hb_window_writer__string(w, "/usr/bin/python3")};
	struct hb_probe_row row = {.name = hb_window_writer__string(w, "cuLaunchKernel"),
				   .cls = HB_CLASS_LAUNCH};
	struct hb_loc l = {.func = hb_window_writer__string(w, "step"), .lang = HB_LANG_PYTHON};
	struct hb_loss_row loss = {.cause = HB_LOSS_RING_FULL, .type = HB_TYPE_accel, .count = 3};

	for (t.tid = 10; t.tid < 10 + n; t.tid++)
		hb_window_writer__task(w, &t);
	hb_window_writer__proc(w, &p);
	hb_window_writer__probe(w, 1, &row);
	for (l.line = 1; l.line <= n; l.line++) {
		u32 id = hb_window_writer__loc(w, &l);

		hb_window_writer__stack(w, 10, id, &id, 1, HB_STACK_WHOLE);
	}
	hb_window_writer__loss(w, &loss);
	hb_window_writer__meta(w, "host", "seed");
}

static int write_seed(const char *dir, unsigned streams, u32 records, u32 tables)
{
	struct hb_window_opts o = {.streams = streams, .start_ts = 1000, .force = true};
	u8 payload[HB_RECORD_MAX];
	struct hb_error e = {0};
	struct hb_window_writer *w;
	char path[4096];
	size_t n;
	const struct hb_type *types = hb_schema__types(&n);

	snprintf(path, sizeof(path), "%s/%u-%u-%u", dir, streams, records, tables);
	w = hb_window_writer__new(path, &o, &e);
	if (!w)
		return fprintf(stderr, "%s\n", e.text);
	if (tables)
		fill_tables(w, tables);
	for (u32 i = 0; i < records; i++) {
		memset(payload, (int)(i % 5), sizeof(payload));
		memset(payload + 4, 0, 4);
		hb_window_writer__put(w, i % streams, 2000 + i * 7, (u16)(i % 4), types[i % n].id, payload);
		if (i % 64 == 63)
			hb_window_writer__flush(w);
	}
	return hb_window_writer__finish(w, 9000, &e);
}

int main(int argc, char **argv)
{
	return argc != 2 || write_seed(argv[1], 1, 0, 0) || write_seed(argv[1], 1, 5, 1) ||
	       write_seed(argv[1], 3, 40, 3) || write_seed(argv[1], 2, 200, 40);
}
