/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What runs on devices: a track for each stream of a device that a process uses, below the process; and what a
 * profiler's operators and their work say. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "analysis/export/perfetto_private.h"

enum { TRACK_UUID = 1, TRACK_NAME = 2, TRACK_PARENT = 5 };

static u64 key_of(u32 pid, u32 device, u64 stream)
{
	return hb_hash64(hb_hash64((u64)pid << 32 | device) ^ stream);
}

/* Where a record is drawn that is not about a thread; false: on its thread. */
static bool place_of(const struct hb_record *r, u32 *device, u64 *stream)
{
	const struct hb_rec_device *d = r->data;
	const struct hb_rec_op *o = r->data;

	if (r->type == HB_TYPE_device) {
		*device = d->device;
		*stream = d->stream;
		return d->device != UINT32_MAX; /* the profiler's own time is the host's */
	}
	*device = o->device;
	*stream = o->stream;
	return r->type == HB_TYPE_op && o->kind == HB_OPKIND_DEVICE_ANNOTATION;
}

/* Room for one more track behind those of threads; its tables too. */
static bool add_stream(struct hb_pf *p, const struct hb_pf_stream *s)
{
	u32 n = p->n_tasks + p->n_streams;
	struct hb_pf_thread *threads = reallocarray(p->thread, n + 2, sizeof(*threads));
	struct hb_pf_stream *streams = reallocarray(p->stream, p->n_streams + 1, sizeof(*streams));

	if (threads)
		p->thread = threads;
	if (streams)
		p->stream = streams;
	if (!threads || !streams)
		return false;
	p->thread[n] = (struct hb_pf_thread){0};
	p->stream[p->n_streams++] = *s;
	return true;
}

const struct hb_task *hb_pf__task(const struct hb_pf *p, u32 idx)
{
	return &p->tasks[idx < p->n_tasks ? idx : p->stream[idx - p->n_tasks].task];
}

u32 hb_pf__track(struct hb_pf *p, const struct hb_record *r)
{
	struct hb_pf_stream s = {.task = r->task_idx};
	bool fresh = false;
	u64 *slot;

	if (!place_of(r, &s.device, &s.stream))
		return r->task_idx;
	slot = hb_map__slot(p->by_stream, key_of(r->task->pid, s.device, s.stream), &fresh);
	if (!slot || (fresh && !add_stream(p, &s))) {
		p->out.oom = true; /* flush() says so */
		return r->task_idx;
	}
	if (fresh)
		*slot = p->n_tasks + p->n_streams - 1;
	return (u32)*slot;
}

void hb_pf__stream_track(struct hb_pf *p, u32 idx)
{
	const struct hb_pf_stream *s = &p->stream[idx - p->n_tasks];
	size_t at = hb_pf__packet(p, HB_PF_GLOBAL_SEQ), track = hb_pb__open(&p->out, PB_TRACK_DESCRIPTOR);
	char name[64];

	if (s->stream == UINT32_MAX)
		snprintf(name, sizeof(name), "device %u, all streams", s->device);
	else
		snprintf(name, sizeof(name), "device %u, stream %llu", s->device, (unsigned long long)s->stream);
	hb_pb__uint(&p->out, TRACK_UUID, hb_pf__thread_uuid(idx));
	hb_pf__text(&p->out, TRACK_NAME, name);
	hb_pb__uint(&p->out, TRACK_PARENT, hb_pf__process_uuid(p->tasks[s->task].pid));
	hb_pb__close(&p->out, track);
	hb_pb__close(&p->out, at);
}

u64 hb_pf__work_flow(u32 pid, u64 correlation)
{
	return HB_PF_FLOW_WORK | (hb_hash64(correlation ^ (u64)pid << 40) >> 8);
}
