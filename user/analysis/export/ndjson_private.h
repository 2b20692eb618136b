/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Inside of the ndjson exporter: members of records (ndjson_members.c) and lines (ndjson.c). */
#ifndef HB_NDJSON_PRIVATE_H
#define HB_NDJSON_PRIVATE_H

#include "analysis/export/stackjson.h"
#include "base/buf.h"
#include "window/window.h"

#define HB_NDJSON_KEYS 32

struct hb_ndjson_span {
	size_t at, size;
};

struct hb_ndjson {
	struct hb_window *w;
	struct hb_buf line;	      /* many lines, up to FLUSH_AT */
	struct hb_buf text;	      /* prepared pieces that `task` and `probe` point into */
	struct hb_ndjson_span *task;  /* ,"pid":..,"tid":..,"comm":..   size 0 = not made yet */
	struct hb_ndjson_span *probe; /* ,"name":..,"api":..,"class":..,"layer":.. */
	u32 n_probes;
	struct hb_stackjson *stacks;
	struct hb_ndjson_fields *fields;
	const struct hb_record *r;
};

struct hb_ndjson_item;
typedef void (*emit_fn)(struct hb_ndjson *c, const struct hb_ndjson_item *i, u64 v);

struct hb_ndjson_item { /* one key of one type */
	char key[48];	/* ,"name": */
	size_t key_size;
	emit_fn emit;
	const struct hb_field *f;
	const char *name, *doc;
};

struct hb_ndjson_plan {
	const char *type; /* in "type" */
	struct hb_ndjson_item item[HB_NDJSON_KEYS];
	unsigned n;
};

/* ---- ndjson_fields.c ---- */

/* Looks through the window for fields that were read in calls, and for calls that start work. NULL: out of
 * memory. */
struct hb_ndjson_fields *hb_ndjson_fields__new(struct hb_window *w);
void hb_ndjson_fields__free(struct hb_ndjson_fields *f);
/* When the call began whose work (in the process of c->r) has this correlation; false: it is not in the
 * window. */
bool hb_ndjson__launch(const struct hb_ndjson *c, u64 correlation, u64 *begin);
/* The value as JSON; false, and nothing sensible in the line, for a kind without one. */
bool hb_ndjson__field_value(struct hb_ndjson *c, const struct hb_rec_py_field *r);
/* ,"fields":{..} of the call that c->r is; nothing where none was read. */
void hb_ndjson__call_fields(struct hb_ndjson *c);

/* ---- ndjson_pyevents.c: members by `emit_fn` ---- */

void hb_ndjson__exception(struct hb_ndjson *c, const struct hb_ndjson_item *i, u64 v);
void hb_ndjson__message(struct hb_ndjson *c, const struct hb_ndjson_item *i, u64 v);
void hb_ndjson__exception_flags(struct hb_ndjson *c, const struct hb_ndjson_item *i, u64 v);
void hb_ndjson__unwound(struct hb_ndjson *c, const struct hb_ndjson_item *i, u64 v);
void hb_ndjson__address(struct hb_ndjson *c, const struct hb_ndjson_item *i, u64 v); /* hex, where not 0 */
void hb_ndjson__task(struct hb_ndjson *c, const struct hb_ndjson_item *i, u64 v);
void hb_ndjson__site(struct hb_ndjson *c, const struct hb_ndjson_item *i, u64 v);
void hb_ndjson__holder(struct hb_ndjson *c, const struct hb_ndjson_item *i, u64 v);
void hb_ndjson__wait(struct hb_ndjson *c, const struct hb_ndjson_item *i, u64 v);
void hb_ndjson__gil_flags(struct hb_ndjson *c, const struct hb_ndjson_item *i, u64 v);
void hb_ndjson__true(struct hb_ndjson *c, const struct hb_ndjson_item *i, u64 v); /* true, or absent */
void hb_ndjson__generation(struct hb_ndjson *c, const struct hb_ndjson_item *i, u64 v);
void hb_ndjson__gc_how(struct hb_ndjson *c, const struct hb_ndjson_item *i, u64 v);

/* ---- ndjson_device.c: members by `emit_fn` ---- */

void hb_ndjson__device_grid(struct hb_ndjson *c, const struct hb_ndjson_item *i, u64 v);
void hb_ndjson__device_block(struct hb_ndjson *c, const struct hb_ndjson_item *i, u64 v);
void hb_ndjson__device_stream(struct hb_ndjson *c, const struct hb_ndjson_item *i, u64 v);
void hb_ndjson__device_queued(struct hb_ndjson *c, const struct hb_ndjson_item *i, u64 v);
void hb_ndjson__device_word(struct hb_ndjson *c, const struct hb_ndjson_item *i, u64 v); /* absent: unknown */
void hb_ndjson__device_wait_stream(struct hb_ndjson *c, const struct hb_ndjson_item *i, u64 v);
void hb_ndjson__device_op(struct hb_ndjson *c, const struct hb_ndjson_item *i, u64 v);
void hb_ndjson__op_sequence(struct hb_ndjson *c, const struct hb_ndjson_item *i, u64 v);
void hb_ndjson__op_place(struct hb_ndjson *c, const struct hb_ndjson_item *i, u64 v);

/* How records of this type are written. */
void hb_ndjson__plan(struct hb_ndjson_plan *p, const struct hb_type *t);
/* The word in "type". */
const char *hb_ndjson__type(const char *name);

#endif
