/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the tests of imports share: a trace given as a text, and the window that becomes of it. */
#ifndef HB_IMPORT_RIG_H
#define HB_IMPORT_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/import/import.h"
#include "window/window.h"

static char rig_in[64], rig_out[64];
static struct hb_import_stats rig_stats;
static struct hb_error rig_error;

/* X(cat, name, pid, tid, ts, dur, args): a row. */
#define ROW(cat, name, pid, tid, ts, dur, args)                                                              \
	"{\"ph\":\"X\",\"cat\":\"" cat "\",\"name\":\"" name "\",\"pid\":" pid ",\"tid\":" tid ",\"ts\":" ts \
	",\"dur\":" dur ",\"args\":{" args "}}"
#define TRACE(rows) "{\"schemaVersion\":1,\"traceEvents\":[" rows "]}"

static inline void rig_write(const void *data, size_t size)
{
	FILE *f;

	snprintf(rig_in, sizeof(rig_in), "/tmp/hb-import-%d.json", (int)getpid());
	snprintf(rig_out, sizeof(rig_out), "/tmp/hb-import-%d.hbw", (int)getpid());
	f = fopen(rig_in, "w");
	assert_non_null(f);
	assert_int_equal(fwrite(data, 1, size, f), size);
	fclose(f);
}

static inline int rig_import(const void *data, size_t size, size_t memory)
{
	struct hb_import_opts o = {.path = rig_in, .output = rig_out, .force = true, .memory = memory};
	int err;

	rig_write(data, size);
	memset(&rig_error, 0, sizeof(rig_error));
	err = hb_import__run(&o, &rig_stats, &rig_error);
	unlink(rig_in);
	return err;
}

/* Of a trace that can be imported. */
static inline struct hb_window *rig_open(const char *json, size_t memory)
{
	struct hb_error e = {0};
	struct hb_window *w;

	if (rig_import(json, strlen(json), memory))
		fail_msg("%s", rig_error.text);
	w = hb_window__open(rig_out, &e);
	unlink(rig_out);
	if (!w)
		fail_msg("%s", e.text);
	assert_true(hb_window__info(w)->complete);
	assert_null(hb_window__damage(w));
	return w;
}

/* k-th record of a type; NULL: there are not so many. */
static inline const void *rig_find(struct hb_window *w, unsigned type, unsigned k, struct hb_record *r)
{
	hb_window__rewind(w);
	while (hb_window__next(w, r) > 0)
		if (r->type == type && !k--)
			return r->data;
	return NULL;
}

static inline const void *rig_get(struct hb_window *w, unsigned type, unsigned k, struct hb_record *r)
{
	const void *data = rig_find(w, type, k, r);

	if (!data)
		fail_msg("no record %u of type %s", k, hb_schema__type(type)->name);
	return data;
}

static inline unsigned rig_count(struct hb_window *w, unsigned type)
{
	struct hb_record r;
	unsigned n = 0;

	hb_window__rewind(w);
	while (hb_window__next(w, &r) > 0)
		n += r.type == type;
	return n;
}

/* Do the window's notes say this? */
static inline bool rig_says(struct hb_window *w, const char *text)
{
	struct hb_record r;

	hb_window__rewind(w);
	while (hb_window__next(w, &r) > 0)
		if (r.type == HB_TYPE_note &&
		    strstr(hb_window__string(w, ((const struct hb_rec_note *)r.data)->text), text))
			return true;
	return false;
}

/* Everything in the records but ids of tables, as text: equal windows give equal texts. */
static inline char *rig_text(struct hb_window *w)
{
	struct hb_record r;
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	hb_window__rewind(w);
	while (hb_window__next(w, &r) > 0) {
		const struct hb_type *t = hb_schema__type(r.type);

		if (r.type == HB_TYPE_note)
			continue;
		fprintf(f, "%s %llu %u %u", t->name, (unsigned long long)r.ts, r.task->pid, r.task->tid);
		for (unsigned i = 0; i < t->n_fields; i++) {
			s64 v = hb_field__int(&t->fields[i], r.data);

			if (t->fields[i].role == HB_ROLE_STR)
				fprintf(f, " %s", hb_window__string(w, (u32)v));
			else if (t->fields[i].role != HB_ROLE_STACK && t->fields[i].role != HB_ROLE_LOC &&
				 t->fields[i].role != HB_ROLE_PROBE)
				fprintf(f, " %lld", (long long)v);
		}
		fputc('\n', f);
	}
	fclose(f);
	return text;
}

#endif
