/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Members of `device` and `op` records whose JSON differs from what their role says. */
#include "analysis/export/jbuf.h"
#include "analysis/export/ndjson_private.h"

static void number(struct hb_ndjson *c, const struct hb_ndjson_item *i, u64 v)
{
	hb_buf__add(&c->line, i->key, i->key_size);
	hb_jbuf__u64(&c->line, v);
}

static void three(struct hb_ndjson *c, const struct hb_ndjson_item *i, u64 x, u64 y, u64 z)
{
	if (!x)
		return;
	hb_buf__add(&c->line, i->key, i->key_size);
	hb_buf__printf(&c->line, "[%llu,%llu,%llu]", (unsigned long long)x, (unsigned long long)y,
		       (unsigned long long)z);
}

void hb_ndjson__device_grid(struct hb_ndjson *c, const struct hb_ndjson_item *i, u64 v)
{
	const struct hb_rec_device *d = c->r->data;

	three(c, i, v, d->gy, d->gz);
}

void hb_ndjson__device_block(struct hb_ndjson *c, const struct hb_ndjson_item *i, u64 v)
{
	const struct hb_rec_device *d = c->r->data;

	three(c, i, v, d->by, d->bz);
}

void hb_ndjson__device_stream(struct hb_ndjson *c, const struct hb_ndjson_item *i, u64 v)
{
	if (v != UINT32_MAX)
		number(c, i, v);
}

void hb_ndjson__device_queued(struct hb_ndjson *c, const struct hb_ndjson_item *i, u64 v)
{
	if (!v)
		return;
	hb_buf__add(&c->line, i->key, i->key_size);
	hb_jbuf__s64(&c->line, (s64)(v - hb_window__info(c->w)->start_ts));
}

void hb_ndjson__device_word(struct hb_ndjson *c, const struct hb_ndjson_item *i, u64 v)
{
	enum hb_words list = i->f->role == HB_ROLE_COPY	     ? HB_WORDS_COPY
			     : i->f->role == HB_ROLE_MEMKIND ? HB_WORDS_MEMKIND
							     : HB_WORDS_SYNCKIND;

	if (!v)
		return;
	hb_buf__add(&c->line, i->key, i->key_size);
	hb_jbuf__str(&c->line, hb_word(list, (unsigned)v));
}

void hb_ndjson__device_wait_stream(struct hb_ndjson *c, const struct hb_ndjson_item *i, u64 v)
{
	const struct hb_rec_device *d = c->r->data;

	if (v != UINT32_MAX && (d->sync == HB_SYNCKIND_EVENT || d->sync == HB_SYNCKIND_STREAM_WAIT))
		number(c, i, v);
}

void hb_ndjson__device_op(struct hb_ndjson *c, const struct hb_ndjson_item *i, u64 v)
{
	const struct hb_rec_device *d = c->r->data;
	u64 begin;

	(void)v;
	if (!hb_ndjson__launch(c, d->correlation, &begin))
		return;
	hb_buf__add(&c->line, i->key, i->key_size);
	hb_jbuf__s64(&c->line, (s64)(begin - hb_window__info(c->w)->start_ts));
}

void hb_ndjson__op_sequence(struct hb_ndjson *c, const struct hb_ndjson_item *i, u64 v)
{
	if (v)
		number(c, i, v - 1);
}

void hb_ndjson__op_place(struct hb_ndjson *c, const struct hb_ndjson_item *i, u64 v)
{
	if (((const struct hb_rec_op *)c->r->data)->kind == HB_OPKIND_DEVICE_ANNOTATION)
		number(c, i, v);
}
