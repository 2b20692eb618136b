/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What runs on devices: a track for each stream of a device that a process uses, below the process; and what
 * a profiler's operators and their work say. */
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
	if (r->type != HB_TYPE_op || o->kind != HB_OPKIND_DEVICE_ANNOTATION)
		return false;
	*device = o->device;
	*stream = o->stream;
	return true;
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
		snprintf(name, sizeof(name), "device %u, stream %llu", s->device,
			 (unsigned long long)s->stream);
	hb_pb__uint(&p->out, TRACK_UUID, hb_pf__thread_uuid(idx));
	hb_pf__text(&p->out, TRACK_NAME, name);
	hb_pb__uint(&p->out, TRACK_PARENT, hb_pf__process_uuid(p->tasks[s->task].pid));
	hb_pb__close(&p->out, track);
	hb_pb__close(&p->out, at);
}

/* ---- flows from a call to each piece of its work ---- */

#define FLOWS_MOST 256 /* of one call: a launch of a large graph */

struct work { /* value of p->work; times are not needed: each call and each piece is written once */
	u32 pieces : 31, call : 1; /* counted in the first pass */
	u32 ended : 31, begun : 1; /* written */
};
_Static_assert(sizeof(struct work) == sizeof(u64), "fits a map's value");

static u64 id_of(u32 pid, u64 correlation)
{
	return hb_hash64(correlation ^ (u64)pid << 40);
}

void hb_pf__count_work(struct hb_pf *p, const struct hb_record *r)
{
	const struct hb_rec_device *d = r->data;
	const struct hb_rec_accel *a = r->data;
	bool call = r->type == HB_TYPE_accel;
	u64 correlation = call ? a->correlation : r->type == HB_TYPE_device ? d->correlation : 0;
	struct work *w;

	if (!correlation || (!call && d->kind > HB_DEVKIND_MEMSET))
		return;
	w = (struct work *)hb_map__slot(p->work, id_of(r->task->pid, correlation), NULL);
	if (!w) {
		p->out.oom = true;
		return;
	}
	w->call |= call;
	w->pieces += !call && w->pieces < FLOWS_MOST;
}

/* Two calls with one number (a damaged trace): the first has the flows. */
void hb_pf__begin_flows(struct hb_pf *p, u64 correlation)
{
	u64 id = id_of(p->task->pid, correlation);
	struct work *w = (struct work *)hb_map__slot(p->work, id, NULL);

	if (!w || w->begun)
		return;
	w->begun = 1;
	for (u32 i = 0; i < w->pieces; i++)
		hb_pb__fixed64(&p->body, PB_EVENT_FLOW, HB_PF_FLOW_WORK | (id + i));
}

void hb_pf__end_flow(struct hb_pf *p, u64 correlation)
{
	u64 id = id_of(p->task->pid, correlation);
	struct work *w = (struct work *)hb_map__slot(p->work, id, NULL);

	if (w && w->call && w->ended < w->pieces)
		hb_pb__fixed64(&p->body, PB_EVENT_FLOW_END, HB_PF_FLOW_WORK | (id + w->ended++));
}
