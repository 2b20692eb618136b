/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Tables of a window being written: gives out ids, and keeps what has changed since the last frame as entries
 * ready to be written. One lock, any thread. Internal to window/.
 */
#ifndef HB_WINDOW_TABLES_OUT_H
#define HB_WINDOW_TABLES_OUT_H

#include "base/buf.h"
#include "window/window.h"

struct hb_tables_out;

struct hb_tables_out *hb_tables_out__new(void); /* NULL: out of memory */
void hb_tables_out__free(struct hb_tables_out *t);

/* The public functions of the same names (window.h). */
u32 hb_tables_out__string(struct hb_tables_out *t, const char *s);
u32 hb_tables_out__loc(struct hb_tables_out *t, const struct hb_loc *loc);
u16 hb_tables_out__task(struct hb_tables_out *t, const struct hb_task *task);
void hb_tables_out__task_update(struct hb_tables_out *t, u16 idx, const struct hb_task *task);
u32 hb_tables_out__proc(struct hb_tables_out *t, const struct hb_proc *p);
int hb_tables_out__probe(struct hb_tables_out *t, u32 id, const struct hb_probe_row *row);
int hb_tables_out__stack(struct hb_tables_out *t, u32 pid, u32 raw, const u32 *locs, u32 n, u32 state);
int hb_tables_out__fd(struct hb_tables_out *t, const struct hb_fd_row *row);
int hb_tables_out__pytask(struct hb_tables_out *t, const struct hb_pytask_row *row);
void hb_tables_out__loss(struct hb_tables_out *t, const struct hb_loss_row *row);
void hb_tables_out__meta(struct hb_tables_out *t, const char *key, const char *value);

/* Bytes of entries not yet taken. */
size_t hb_tables_out__pending(struct hb_tables_out *t);
/* Moves up to HB_TABLE_SIZE bytes of whole entries to *body (empty when there are none). False: out of
 * memory, now or before: something is missing in the tables. */
bool hb_tables_out__take(struct hb_tables_out *t, struct hb_buf *body);

#endif
