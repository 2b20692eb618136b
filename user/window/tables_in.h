/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Tables of a window being read, gathered from its table frames. Internal to window/. */
#ifndef HB_WINDOW_TABLES_IN_H
#define HB_WINDOW_TABLES_IN_H

#include "window/format.h"
#include "window/window.h"

struct hb_tables_in;

/* `max_id`: larger ids are nonsense and ignored; `max_bytes`: entries beyond are ignored. A hostile file must
 * not cost memory out of proportion to its size, and zstd packs zeros a thousandfold. */
struct hb_tables_in *hb_tables_in__new(u32 max_id, u64 max_bytes);
void hb_tables_in__free(struct hb_tables_in *t);
/* Applies all entries of a frame; what is malformed is skipped and counted. 0 or -ENOMEM. */
int hb_tables_in__apply(struct hb_tables_in *t, const void *body, size_t n);
u64 hb_tables_in__malformed(const struct hb_tables_in *t);
/* Adds a loss row that the reader found out itself. */
int hb_tables_in__add_loss(struct hb_tables_in *t, enum hb_loss cause, u64 count);

/* The public functions of the same names (window.h). */
const char *hb_tables_in__string(const struct hb_tables_in *t, u32 id);
const struct hb_task *hb_tables_in__task(const struct hb_tables_in *t, u32 idx);
const struct hb_task *hb_tables_in__tasks(const struct hb_tables_in *t, u32 *n);
const struct hb_task *hb_tables_in__task_by_tid(const struct hb_tables_in *t, u32 tid);
const struct hb_proc *hb_tables_in__procs(const struct hb_tables_in *t, u32 *n);
const struct hb_probe_row *hb_tables_in__probe(const struct hb_tables_in *t, u32 id);
u32 hb_tables_in__probes(const struct hb_tables_in *t);
const struct hb_loc *hb_tables_in__loc(const struct hb_tables_in *t, u32 id);
struct hb_stack hb_tables_in__stack(const struct hb_tables_in *t, u32 pid, u32 raw);
const char *hb_tables_in__fd(const struct hb_tables_in *t, u32 pid, u32 fd, u64 chan);
const char *hb_tables_in__pytask(struct hb_tables_in *t, u32 pid, u64 task, u64 ts);
const struct hb_loss_row *hb_tables_in__losses(const struct hb_tables_in *t, u32 *n);
/* i-th meta pair, in order of first appearance. */
bool hb_tables_in__meta_at(const struct hb_tables_in *t, u32 i, const char **key, const char **value);

#endif
