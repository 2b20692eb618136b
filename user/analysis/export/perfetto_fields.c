/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Fields of Python objects that are numbers: a counter track for each, under the process. */
#include <errno.h>

#include "analysis/export/perfetto_private.h"
#include "analysis/export/perfetto_proto.h"
#include "analysis/model/model.h"

enum { TRACK_UUID = 1, TRACK_NAME = 2, TRACK_PARENT = 5, TRACK_COUNTER = 8 };
enum { EVENT_COUNTER = 4, EVENT_COUNTER_VALUE = 30, EVENT_DOUBLE_VALUE = 44 };
#define FLUSH_AT 65536

static u64 uuid_of(u32 pid, u32 field)
{
	return (u64)5 << 40 ^ (hb_hash64((u64)pid << 32 | field) >> 8);
}

static void put_track(struct hb_pf *p, u32 pid, u32 field)
{
	size_t at = hb_pf__packet(p, HB_PF_GLOBAL_SEQ), track = hb_pb__open(&p->out, PB_TRACK_DESCRIPTOR);

	hb_pb__uint(&p->out, TRACK_UUID, uuid_of(pid, field));
	hb_pb__uint(&p->out, TRACK_PARENT, hb_pf__process_uuid(pid));
	hb_pf__text(&p->out, TRACK_NAME, hb_window__string(p->w, field));
	hb_pb__close(&p->out, hb_pb__open(&p->out, TRACK_COUNTER));
	hb_pb__close(&p->out, track);
	hb_pb__close(&p->out, at);
}

static void put_value(struct hb_pf *p, const struct hb_record *r, const struct hb_rec_py_field *f)
{
	size_t at = hb_pf__packet(p, HB_PF_GLOBAL_SEQ), ev;

	hb_pb__uint(&p->out, PB_TIMESTAMP, r->ts);
	hb_pb__uint(&p->out, PB_CLOCK_ID, PB_CLOCK_MONOTONIC);
	ev = hb_pb__open(&p->out, PB_TRACK_EVENT);
	hb_pb__uint(&p->out, PB_EVENT_TYPE, EVENT_COUNTER);
	hb_pb__uint(&p->out, PB_EVENT_TRACK, uuid_of(r->task->pid, f->field));
	if (f->kind == HB_PYKIND_FLOAT)
		hb_pb__fixed64(&p->out, EVENT_DOUBLE_VALUE, f->num);
	else
		hb_pb__uint(&p->out, EVENT_COUNTER_VALUE, f->num);
	hb_pb__close(&p->out, ev);
	hb_pb__close(&p->out, at);
}

int hb_pf__fields(struct hb_pf *p)
{
	struct hb_map *seen = hb_map__new();
	bool fresh, ok = seen;
	struct hb_record r;
	double v;
	int rc = 0;

	hb_window__rewind(p->w);
	while (ok && !rc && hb_window__next(p->w, &r) > 0) {
		const struct hb_rec_py_field *f = r.data;

		if (r.type != HB_TYPE_py_field || !hb_field__number(f, &v))
			continue;
		ok = hb_map__slot(seen, (u64)r.task->pid << 32 | f->field, &fresh);
		if (ok && fresh)
			put_track(p, r.task->pid, f->field);
		put_value(p, &r, f);
		rc = hb_pf__flush(p, FLUSH_AT);
	}
	hb_map__free(seen);
	return ok ? rc : -ENOMEM;
}
