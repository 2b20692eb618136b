/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Members of Python's exceptions, of waits for the GIL, and of collections, where they are not as their roles
 * say. */
#include "analysis/export/jbuf.h"
#include "analysis/export/ndjson_private.h"
#include "analysis/model/decode.h"
#include "analysis/model/pyevents.h"
#include "schema/pyevents.h"

static void text(struct hb_ndjson *c, const struct hb_ndjson_item *i, const char *s)
{
	hb_buf__add(&c->line, i->key, i->key_size);
	hb_jbuf__str(&c->line, s);
}

void hb_ndjson__exception(struct hb_ndjson *c, const struct hb_ndjson_item *i, u64 v)
{
	const struct hb_rec_py_exception *r = c->r->data;
	char buf[256];

	(void)v;
	text(c, i, hb_decode__exception(&r->name, r->origin, buf, sizeof(buf)));
	if (r->origin)
		hb_jbuf__lit(&c->line, ",\"native\":true");
}

void hb_ndjson__message(struct hb_ndjson *c, const struct hb_ndjson_item *i, u64 v)
{
	const struct hb_rec_py_exception *r = c->r->data;
	char buf[4 * HB_LABEL_SIZE + 4];

	(void)v;
	if (r->message_kind)
		text(c, i, hb_decode__message(r, buf, sizeof(buf)));
}

/* The record that stands for those without one has only numbers. */
void hb_ndjson__exception_flags(struct hb_ndjson *c, const struct hb_ndjson_item *i, u64 v)
{
	(void)i;
	if (v & HB_PYEXC_REST)
		hb_jbuf__lit(&c->line, ",\"rest\":true");
}

void hb_ndjson__unwound(struct hb_ndjson *c, const struct hb_ndjson_item *i, u64 v)
{
	if (!(((const struct hb_rec_py_exception *)c->r->data)->flags & HB_PYEXC_REST))
		return;
	hb_buf__add(&c->line, i->key, i->key_size);
	hb_jbuf__u64(&c->line, v);
}

void hb_ndjson__address(struct hb_ndjson *c, const struct hb_ndjson_item *i, u64 v)
{
	if (!v)
		return;
	hb_buf__add(&c->line, i->key, i->key_size);
	hb_jbuf__hex(&c->line, v);
}

void hb_ndjson__task(struct hb_ndjson *c, const struct hb_ndjson_item *i, u64 v)
{
	const char *name = hb_window__pytask(c->w, c->r->task->pid, v, c->r->ts);

	hb_ndjson__address(c, i, v);
	if (!v || !name)
		return;
	hb_jbuf__lit(&c->line, ",\"task_name\":");
	hb_jbuf__str(&c->line, name);
}

void hb_ndjson__site(struct hb_ndjson *c, const struct hb_ndjson_item *i, u64 v)
{
	const struct hb_loc *l = hb_decode__site(c->w, c->r->task->pid, (u32)v);
	char buf[256];

	(void)i;
	if (!l)
		return;
	hb_jbuf__lit(&c->line, ",\"function\":");
	hb_jbuf__str(&c->line, hb_decode__frame(c->w, l, HB_FRAME_NAME, buf, sizeof(buf)));
	if (*hb_decode__frame_file(c->w, l)) {
		hb_jbuf__lit(&c->line, ",\"file\":");
		hb_jbuf__str(&c->line, hb_decode__frame_file(c->w, l));
	}
	if (l->line) {
		hb_jbuf__lit(&c->line, ",\"line\":");
		hb_jbuf__u64(&c->line, l->line);
	}
}

/* The kernel's numbers are those of the process's own namespace. */
void hb_ndjson__holder(struct hb_ndjson *c, const struct hb_ndjson_item *i, u64 v)
{
	const struct hb_task *t = hb_decode__nstask(c->w, c->r->task->pid, (u32)v);

	if (!t)
		return;
	hb_buf__add(&c->line, i->key, i->key_size);
	hb_jbuf__u64(&c->line, t->tid);
}

void hb_ndjson__wait(struct hb_ndjson *c, const struct hb_ndjson_item *i, u64 v)
{
	hb_buf__add(&c->line, i->key, i->key_size);
	hb_jbuf__u64(&c->line, v);
	if (((const struct hb_rec_py_gil *)c->r->data)->handover)
		return;
	hb_jbuf__lit(&c->line, ",\"wait_ns\":");
	hb_jbuf__u64(&c->line, v);
}

void hb_ndjson__gil_flags(struct hb_ndjson *c, const struct hb_ndjson_item *i, u64 v)
{
	(void)i;
	if (v & HB_PYGIL_OPEN)
		hb_jbuf__lit(&c->line, ",\"open\":true");
}

void hb_ndjson__true(struct hb_ndjson *c, const struct hb_ndjson_item *i, u64 v)
{
	if (!v)
		return;
	hb_buf__add(&c->line, i->key, i->key_size);
	hb_jbuf__lit(&c->line, "true");
}

void hb_ndjson__generation(struct hb_ndjson *c, const struct hb_ndjson_item *i, u64 v)
{
	if ((u32)v == UINT32_MAX)
		return;
	hb_buf__add(&c->line, i->key, i->key_size);
	hb_jbuf__u64(&c->line, (u32)v);
}

void hb_ndjson__gc_how(struct hb_ndjson *c, const struct hb_ndjson_item *i, u64 v)
{
	static const char *const words[] = {"collector", "usdt", "pending"};

	text(c, i, v < 3 ? words[v] : "?");
}
