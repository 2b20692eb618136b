/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One thread as one packet sequence: events in order of their begin, each slice's end where it belongs.
 * Slices of a track must nest. What a thread does nests by itself; what does not (a damaged file, a clock
 * read on another CPU) goes to tracks beside it.
 */
#include <errno.h>
#include <stdlib.h>

#include "analysis/export/perfetto_private.h"

enum { LANES = 8 };

enum { TRACK_UUID = 1, TRACK_NAME = 2, TRACK_PARENT = 5 };
enum { DEFAULT_TRACK_EVENT = 11, DEFAULT_PERF_SAMPLE = 12 };
enum { EVENT_DEFAULT_TRACK = 11, SAMPLE_DEFAULT_TIMEBASE = 1, TIMEBASE_FREQUENCY = 2, TIMEBASE_COUNTER = 4 };
enum { COUNTER_CPU_CLOCK = 1 };

struct writer {
	struct hb_pf *p;
	u32 idx;
	struct hb_buf open[LANES]; /* ends (u64) of open slices, innermost last */
	unsigned lanes;		   /* described so far; the thread's own track is the first */
};

u64 hb_pf__thread_uuid(u32 idx)
{
	return (u64)2 << 40 | idx;
}

static u64 lane_uuid(u32 idx, unsigned lane)
{
	return (u64)3 << 40 | (u64)lane << 20 | idx;
}

/* ---- order ---- */

static int cmp_events(const void *a, const void *b)
{
	const struct hb_pf_event *x = a, *y = b;

	if (x->begin != y->begin)
		return x->begin < y->begin ? -1 : 1;
	if (x->end != y->end) /* the outer one first */
		return x->end > y->end ? -1 : 1;
	if (x->at != y->at) /* records come when intervals end: the later one is the outer one */
		return x->at > y->at ? -1 : 1;
	return (x->kind > y->kind) - (x->kind < y->kind); /* a sleep, then its runnable part */
}

static const struct hb_rec_accel *call_of(const struct hb_pf_thread *t, const struct hb_pf_event *ev)
{
	return ev->kind == HB_TYPE_accel ? (const void *)(t->record + (size_t)ev->at * 8) : NULL;
}

/* Driver calls find the runtime call that they were made in. False: out of memory. */
static bool link_calls(struct hb_pf_thread *t)
{
	struct hb_buf stack = {0}; /* indices (u32) of open calls */

	for (u64 i = 0; i < t->n; i++) {
		struct hb_pf_event *ev = &t->event[i], *outer = NULL;
		const struct hb_rec_accel *a = call_of(t, ev);
		u32 top = 0, self = (u32)i;

		if (!a)
			continue;
		while (stack.size) {
			memcpy(&top, stack.data + stack.size - sizeof(top), sizeof(top));
			outer = &t->event[top];
			if (outer->end >= ev->end)
				break;
			stack.size -= sizeof(top);
			outer = NULL;
		}
		if (outer && (a->flags & HB_AFLAG_INNER) && outer->flows < UINT16_MAX) {
			outer->flows++;
			ev->parent = top + 1;
		}
		if (ev->slice)
			hb_buf__add(&stack, &self, sizeof(self));
	}
	hb_buf__free(&stack);
	return !stack.oom;
}

/* ---- packets ---- */

static void put(struct hb_pf *p, u64 ts, unsigned field)
{
	size_t at = hb_pf__packet(p, p->seq);

	hb_pb__uint(&p->out, PB_TIMESTAMP, ts - p->last);
	p->last = ts;
	hb_pb__uint(&p->out, PB_SEQUENCE_FLAGS, PB_STATE_NEEDED);
	if (p->interned.size)
		hb_pb__bytes(&p->out, PB_INTERNED, p->interned.data, p->interned.size);
	hb_pb__bytes(&p->out, field, p->body.data, p->body.size);
	hb_pb__close(&p->out, at);
	p->out.oom |= p->body.oom || p->interned.oom || p->text.oom;
	p->body.size = p->interned.size = 0;
}

static void put_defaults(struct hb_pf *p, u64 track)
{
	const char *hz = hb_window__meta(p->w, "sample_hz");
	size_t all = hb_pb__open(&p->out, PB_DEFAULTS), at = hb_pb__open(&p->out, DEFAULT_TRACK_EVENT);

	hb_pb__uint(&p->out, EVENT_DEFAULT_TRACK, track);
	hb_pb__close(&p->out, at);
	at = hb_pb__open(&p->out, DEFAULT_PERF_SAMPLE);
	size_t base = hb_pb__open(&p->out, SAMPLE_DEFAULT_TIMEBASE);
	hb_pb__uint(&p->out, TIMEBASE_FREQUENCY, hz ? strtoul(hz, NULL, 10) : 0);
	hb_pb__uint(&p->out, TIMEBASE_COUNTER, COUNTER_CPU_CLOCK);
	hb_pb__close(&p->out, base);
	hb_pb__close(&p->out, at);
	hb_pb__uint(&p->out, PB_CLOCK_ID, PB_CLOCK_OWN);
	hb_pb__close(&p->out, all);
}

static int begin(struct hb_pf *p, u32 idx)
{
	size_t at;

	p->seq = HB_PF_GLOBAL_SEQ + 1 + idx;
	p->last = p->base;
	p->sampled = 0;
	p->task = hb_pf__task(p, idx);
	if (!hb_pf__intern_begin(p))
		return -ENOMEM;
	at = hb_pf__packet(p, p->seq);
	hb_pb__uint(&p->out, PB_SEQUENCE_FLAGS, PB_STATE_CLEARED);
	hb_pb__uint(&p->out, PB_FIRST_PACKET, 1);
	if (p->lossy)
		hb_pb__uint(&p->out, PB_PACKET_DROPPED, 1);
	put_defaults(p, hb_pf__thread_uuid(idx));
	hb_pb__close(&p->out, at);
	at = hb_pf__packet(p, p->seq);
	hb_pb__uint(&p->out, PB_SEQUENCE_FLAGS, PB_STATE_NEEDED);
	hb_pf__clocks(p, true);
	hb_pb__close(&p->out, at);
	return 0;
}

static void describe_lane(struct writer *w, unsigned lane)
{
	struct hb_pf *p = w->p;
	size_t at = hb_pf__packet(p, HB_PF_GLOBAL_SEQ), track = hb_pb__open(&p->out, PB_TRACK_DESCRIPTOR);

	hb_pb__uint(&p->out, TRACK_UUID, lane_uuid(w->idx, lane));
	hb_pb__bytes(&p->out, TRACK_NAME, "overlapping", 11);
	hb_pb__uint(&p->out, TRACK_PARENT, hb_pf__thread_uuid(w->idx));
	hb_pb__close(&p->out, track);
	hb_pb__close(&p->out, at);
}

static void add_track(struct writer *w, unsigned lane)
{
	if (lane)
		hb_pb__uint(&w->p->body, PB_EVENT_TRACK, lane_uuid(w->idx, lane));
}

/* ---- slices ---- */

static u64 top_of(const struct hb_buf *open)
{
	u64 end = UINT64_MAX;

	if (open->size)
		memcpy(&end, open->data + open->size - sizeof(end), sizeof(end));
	return end;
}

/* Ends of slices up to `ts`, in order over all lanes. */
static void end_until(struct writer *w, u64 ts)
{
	for (;;) {
		unsigned lane = 0;
		u64 end;

		for (unsigned i = 1; i < w->lanes; i++)
			if (top_of(&w->open[i]) < top_of(&w->open[lane]))
				lane = i;
		end = top_of(&w->open[lane]);
		if (!w->open[lane].size || end > ts)
			return;
		w->open[lane].size -= sizeof(end);
		hb_pb__uint(&w->p->body, PB_EVENT_TYPE, PB_SLICE_END);
		add_track(w, lane);
		put(w->p, end, PB_TRACK_EVENT);
	}
}

/* The first track on which it nests. With all of them taken, it ends where the last one allows. */
static unsigned open_slice(struct writer *w, u64 end)
{
	unsigned lane = 0;

	while (lane < LANES - 1 && end > top_of(&w->open[lane]))
		lane++;
	for (; w->lanes <= lane; w->lanes++)
		if (w->lanes)
			describe_lane(w, w->lanes);
	if (end > top_of(&w->open[lane]))
		end = top_of(&w->open[lane]);
	hb_buf__add(&w->open[lane], &end, sizeof(end));
	w->p->out.oom |= w->open[lane].oom;
	return lane;
}

static void put_flows(struct hb_pf *p, struct hb_pf_thread *t, struct hb_pf_event *ev)
{
	if (ev->parent) {
		struct hb_pf_event *outer = &t->event[ev->parent - 1];

		hb_pb__fixed64(&p->body, PB_EVENT_FLOW_END, outer->flow + outer->flows--);
	}
	if (ev->kind != HB_TYPE_accel || !ev->flows)
		return;
	ev->flow = p->n_flows;
	p->n_flows += ev->flows;
	for (u32 i = 1; i <= ev->flows; i++)
		hb_pb__fixed64(&p->body, PB_EVENT_FLOW, ev->flow + i);
}

static void put_event(struct writer *w, struct hb_pf_thread *t, struct hb_pf_event *ev)
{
	struct hb_pf *p = w->p;
	const void *record = t->record + (size_t)ev->at * 8;
	unsigned lane = 0;

	end_until(w, ev->begin);
	if (ev->kind == HB_TYPE_sample) {
		hb_pf__sample(p, record);
		put(p, ev->begin, PB_PERF_SAMPLE);
		return;
	}
	if (ev->slice)
		lane = open_slice(w, ev->end);
	hb_pb__uint(&p->body, PB_EVENT_TYPE, ev->slice ? PB_SLICE_BEGIN : PB_INSTANT);
	add_track(w, lane);
	hb_pf__describe(p, ev, record);
	put_flows(p, t, ev);
	put(p, ev->begin, PB_TRACK_EVENT);
}

int hb_pf__thread(struct hb_pf *p, u32 idx)
{
	struct hb_pf_thread *t = &p->thread[idx];
	struct writer w = {.p = p, .idx = idx, .lanes = 1};
	int rc;

	t->n = t->filled;
	qsort(t->event, t->n, sizeof(*t->event), cmp_events);
	rc = link_calls(t) ? begin(p, idx) : -ENOMEM;
	for (u64 i = 0; i < t->n && !rc; i++) {
		put_event(&w, t, &t->event[i]);
		rc = hb_pf__flush(p, 256 * 1024);
	}
	if (!rc) {
		end_until(&w, UINT64_MAX - 1);
		rc = hb_pf__flush(p, 256 * 1024);
	}
	for (unsigned i = 0; i < LANES; i++)
		hb_buf__free(&w.open[i]);
	return rc;
}
