/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What lines tell of other records: fields of Python objects in the calls in which they were read, and the
 * call that started a piece of work on a device. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/export/jbuf.h"
#include "analysis/export/ndjson_private.h"
#include "base/map.h"

struct field {
	struct hb_rec_py_field rec;
	u32 next; /* index + 1 of the one read before it in the same call */
};

struct hb_ndjson_fields {
	struct hb_map *calls;	 /* (task, begin) -> index + 1 of the last one */
	struct hb_map *launches; /* (process, correlation) -> begin of the call */
	struct field *field;
	u32 n, cap;
};

static u64 key_of(u16 task, u64 begin)
{
	return hb_hash64(begin ^ (u64)task << 48);
}

static bool keep(struct hb_ndjson_fields *f, u16 task, const struct hb_rec_py_field *rec)
{
	u64 *slot = hb_map__slot(f->calls, key_of(task, rec->call), NULL);

	if (slot && f->n == f->cap) {
		u32 cap = f->cap ? 2 * f->cap : 256;
		struct field *more = reallocarray(f->field, cap, sizeof(*more));

		if (!more)
			return false;
		f->field = more;
		f->cap = cap;
	}
	if (!slot)
		return false;
	f->field[f->n] = (struct field){*rec, (u32)*slot};
	*slot = ++f->n;
	return true;
}

static u64 launch_key(u32 pid, u64 correlation)
{
	return hb_hash64(correlation ^ (u64)pid << 40);
}

static bool keep_launch(struct hb_ndjson_fields *f, const struct hb_record *r)
{
	const struct hb_rec_accel *a = r->data;

	return !a->correlation ||
	       !hb_map__put(f->launches, launch_key(r->task->pid, a->correlation), r->begin);
}

bool hb_ndjson__launch(const struct hb_ndjson *c, u64 correlation, u64 *begin)
{
	return correlation &&
	       hb_map__get(c->fields->launches, launch_key(c->r->task->pid, correlation), begin);
}

struct hb_ndjson_fields *hb_ndjson_fields__new(struct hb_window *w)
{
	struct hb_ndjson_fields *f = calloc(1, sizeof(*f));
	bool ok = f && (f->calls = hb_map__new()) && (f->launches = hb_map__new());
	struct hb_record r;

	hb_window__rewind(w);
	while (ok && hb_window__next(w, &r) > 0)
		if (r.type == HB_TYPE_py_field)
			ok = keep(f, r.task_idx, r.data);
		else if (r.type == HB_TYPE_accel)
			ok = keep_launch(f, &r);
	if (ok)
		return f;
	hb_ndjson_fields__free(f);
	return NULL;
}

void hb_ndjson_fields__free(struct hb_ndjson_fields *f)
{
	if (!f)
		return;
	hb_map__free(f->calls);
	hb_map__free(f->launches);
	free(f->field);
	free(f);
}

static void add_float(struct hb_buf *b, u64 bits)
{
	double d;

	memcpy(&d, &bits, sizeof(d));
	if (isfinite(d))
		hb_buf__printf(b, "%.17g", d);
	else
		hb_jbuf__str(b, isnan(d) ? "nan" : d < 0 ? "-inf" : "inf");
}

bool hb_ndjson__field_value(struct hb_ndjson *c, const struct hb_rec_py_field *r)
{
	switch (r->kind) {
	case HB_PYKIND_NONE:
		hb_jbuf__lit(&c->line, "null");
		return true;
	case HB_PYKIND_BOOL:
		hb_buf__printf(&c->line, "%s", r->num ? "true" : "false");
		return true;
	case HB_PYKIND_INT:
		hb_jbuf__s64(&c->line, (s64)r->num);
		return true;
	case HB_PYKIND_FLOAT:
		add_float(&c->line, r->num);
		return true;
	case HB_PYKIND_LEN:
		hb_jbuf__u64(&c->line, r->num);
		return true;
	case HB_PYKIND_STR:
		hb_jbuf__str(&c->line, hb_window__string(c->w, r->text));
		return true;
	case HB_PYKIND_HASH:
		hb_buf__printf(&c->line, "\"#%016llx\"", (unsigned long long)r->num);
		return true;
	default:
		return false;
	}
}

/* Those that have a value, in the order of reading. */
void hb_ndjson__call_fields(struct hb_ndjson *c)
{
	const struct hb_ndjson_fields *f = c->fields;
	u32 found[64], n = 0;
	bool some = false;
	u64 at;

	if (!f->n || !hb_map__get(f->calls, key_of(c->r->task_idx, c->r->begin), &at))
		return;
	for (; at && n < 64; at = f->field[at - 1].next)
		found[n++] = (u32)at - 1;
	while (n--) {
		const struct hb_rec_py_field *r = &f->field[found[n]].rec;
		size_t before = c->line.size;

		hb_buf__printf(&c->line, some ? "," : ",\"fields\":{");
		hb_jbuf__str(&c->line, hb_window__string(c->w, r->field));
		hb_jbuf__lit(&c->line, ":");
		if (hb_ndjson__field_value(c, r))
			some = true;
		else
			c->line.size = before;
	}
	if (some)
		hb_jbuf__lit(&c->line, "}");
}
