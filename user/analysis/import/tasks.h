/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Processes and threads of a trace. Their ids there may be anything: numbers, numbers in texts, texts,
 * negative, 64 bits wide, 0 for "not known". Those that are ids of Linux keep their number; the others get
 * numbers that no thread of the trace has, from 0x40000000 on. Numbers of tasks and processes here start
 * at 1.
 */
#ifndef HB_IMPORT_TASKS_H
#define HB_IMPORT_TASKS_H

#include "analysis/import/names.h"
#include "analysis/import/row.h"

struct hb_tasks;

struct hb_tasks *hb_tasks__new(struct hb_names *n); /* NULL: out of memory */
void hb_tasks__free(struct hb_tasks *t);

/* From now on rows are of this file (0 at first): the same id in another file is another process. */
void hb_tasks__source(struct hb_tasks *t, u8 source);
/* The thread that a row of the host is about; 0: out of memory. */
u32 hb_tasks__of(struct hb_tasks *t, const struct hb_row *r);
/* Rows of metadata: names of processes and threads. */
int hb_tasks__name(struct hb_tasks *t, const struct hb_row *r);

/* After the last row of `sources` files: makes ids and gives tables to the writer. `since`: monotonic begin
 * of the window. */
int hb_tasks__write(struct hb_tasks *t, unsigned sources, struct hb_window_writer *w, u64 since,
		    struct hb_error *e);

/* After that. Number of threads; of one of them its process, and its index in the window (0xffff: beyond the
 * table). */
u32 hb_tasks__count(const struct hb_tasks *t);
u32 hb_tasks__proc(const struct hb_tasks *t, u32 task);
u16 hb_tasks__index(const struct hb_tasks *t, u32 task);
/* Processes with rows of their own; the one of a file with most; of one of them the pid, and the index of its
 * main thread, which what the process has on a device goes by. */
u32 hb_tasks__procs(const struct hb_tasks *t);
u32 hb_tasks__main(const struct hb_tasks *t, u8 source);
u32 hb_tasks__pid(const struct hb_tasks *t, u32 proc);
u16 hb_tasks__proc_index(const struct hb_tasks *t, u32 proc);
/* Threads as records: calls `put` for each process and thread that has rows. */
int hb_tasks__records(const struct hb_tasks *t,
		      int (*put)(void *ctx, u16 task, unsigned type, const void *rec), void *ctx);

#endif
