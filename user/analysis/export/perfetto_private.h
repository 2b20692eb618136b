/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Inside of the perfetto exporter: reading and ordering (perfetto.c), one thread's packets
 * (perfetto_thread.c), what an event says (perfetto_event.c), tables that events point into
 * (perfetto_intern.c). Field numbers are those of the public perfetto_trace.proto.
 */
#ifndef HB_PERFETTO_PRIVATE_H
#define HB_PERFETTO_PRIVATE_H

#include <stdbool.h>
#include <stdio.h>

#include "analysis/export/perfetto_proto.h"
#include "analysis/model/rows.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/map.h"
#include "window/window.h"

/* ---- field numbers ---- */

enum { PB_TRACE_PACKET = 1 };
enum {
	PB_CLOCK_SNAPSHOT = 6,
	PB_TIMESTAMP = 8,
	PB_SEQUENCE = 10,
	PB_TRACK_EVENT = 11,
	PB_INTERNED = 12,
	PB_SEQUENCE_FLAGS = 13,
	PB_PACKET_DROPPED = 42,
	PB_SYSTEM_INFO = 45,
	PB_CLOCK_ID = 58,
	PB_DEFAULTS = 59,
	PB_TRACK_DESCRIPTOR = 60,
	PB_PERF_SAMPLE = 66,
	PB_FIRST_PACKET = 87,
};
enum { PB_STATE_CLEARED = 1, PB_STATE_NEEDED = 2 };
enum { PB_CLOCK_REALTIME = 1, PB_CLOCK_MONOTONIC = 3, PB_CLOCK_BOOTTIME = 6, PB_CLOCK_OWN = 64 };
enum {
	PB_EVENT_CATEGORY_IID = 3,
	PB_EVENT_ANNOTATION = 4,
	PB_EVENT_TYPE = 9,
	PB_EVENT_NAME_IID = 10,
	PB_EVENT_TRACK = 11,
	PB_EVENT_CATEGORY = 22,
	PB_EVENT_NAME = 23,
	PB_EVENT_FLOW = 47,
	PB_EVENT_FLOW_END = 48,
	PB_EVENT_CALLSTACK_IID = 56,
};
enum { PB_SLICE_BEGIN = 1, PB_SLICE_END = 2, PB_INSTANT = 3 };

/* ---- strings, frames, stacks ---- */

/* What a string is used as: each use is a table of its own in the format, all share our numbers. */
enum hb_pf_use {
	HB_PF_CATEGORY,
	HB_PF_NAME,
	HB_PF_ANNOTATION,
	HB_PF_VALUE,
	HB_PF_FUNCTION,
	HB_PF_PATH,
	HB_PF_SOURCE,
	HB_PF_MAPPING,
	HB_PF_USES,
};

/* ---- events ---- */

/* Kinds that are no record types: the runnable end of a sleep, and a wake-up on the waker's thread. */
enum { HB_PF_RUNNABLE = HB_TYPE_MAX, HB_PF_WAKE };

struct hb_pf_event { /* 32 bytes for each, and the record */
	u64 begin, end;
	u32 at;	    /* record, in units of 8 bytes */
	u32 parent; /* made inside of the call with this index + 1; 0 = not */
	u32 flow;  /* call with others inside: before its first flow; runnable: the wake-up's number, 0 = none
		    */
	u16 flows; /* calls inside that are still to come, each with a flow */
	u8 kind;
	bool slice; /* else an instant */
};
_Static_assert(sizeof(struct hb_pf_event) == 32, "memory of the exporter is documented");

struct hb_pf_wake { /* what a wake-up says */
	u32 number; /* of its flow */
	u32 wakee;  /* task index */
};

struct hb_pf_thread {
	u64 n, bytes;	/* events and their records, counted */
	u64 filled, at; /* kept so far */
	struct hb_pf_event *event;
	unsigned char *record;
};

struct hb_pf_stream { /* of a device, as a process uses it: a track without a thread */
	u32 task;     /* of the process */
	u32 device;
	u64 stream;
};

#define HB_PF_KNOWN 256
struct hb_pf_known { /* strings that do not move are found by their address */
	const char *at;
	void *string;
};

struct hb_pf {
	struct hb_window *w;
	FILE *file;
	struct hb_buf out;	/* whole packets, up to FLUSH_AT */
	struct hb_buf body;	/* message of the packet being made */
	struct hb_buf interned; /* table entries that it needs first */
	struct hb_buf text;	/* a value being put together */
	u64 base, last;		/* begin of the clock of all sequences; last time on this one */
	u64 boot_offset, real_offset;
	u64 memory; /* for one batch of threads */
	u32 seq;
	u32 n_flows;
	bool lossy;
	u32 n_tasks;
	const struct hb_task *tasks;
	struct hb_pf_thread *thread; /* by task index; then streams */
	u32 n_streams;
	struct hb_pf_stream *stream;
	struct hb_map *by_stream;
	struct hb_map *work; /* by process and correlation */

	struct hb_rows strings;
	struct hb_pf_known known[HB_PF_KNOWN];
	struct hb_buf frames;	    /* u32 by location id: sequence that has it */
	struct hb_map *stacks;	    /* of this sequence: user << 32 | kernel -> iid */
	const struct hb_task *task; /* of this sequence */
	u64 sampled;		    /* ns, on this sequence so far */
};

#define HB_PF_GLOBAL_SEQ 1
#define HB_PF_FLOW_WAKE	 ((u64)1 << 40) /* flow ids: wake-ups, and below them calls inside calls */
#define HB_PF_FLOW_WORK	 ((u64)1 << 63) /* from a call to what it started on a device */

/* Numbers of a sequence's tables; what it has not used yet is added to `interned`. */
u32 hb_pf__string(struct hb_pf *p, enum hb_pf_use use, const char *s);
/* The same, faster, for a string that stays where it is until the end: a literal, a word, the window's. */
u32 hb_pf__stable(struct hb_pf *p, enum hb_pf_use use, const char *s);
u32 hb_pf__stack(struct hb_pf *p, u32 raw, u32 kraw); /* 0: no frames */
/* A fresh sequence has empty tables. False: out of memory. */
bool hb_pf__intern_begin(struct hb_pf *p);
int hb_pf__intern_init(struct hb_pf *p);
void hb_pf__intern_free(struct hb_pf *p);

/* Appends name, categories, annotations and stack of an event to `body`. */
void hb_pf__describe(struct hb_pf *p, const struct hb_pf_event *ev, const void *record);
/* The whole perf sample. */
void hb_pf__sample(struct hb_pf *p, const struct hb_rec_sample *s);

/* Packets. */
size_t hb_pf__packet(struct hb_pf *p, u32 seq); /* begins one; hb_pb__close(&p->out, ..) ends it */
/* A string that came from a target: cleaned. */
void hb_pf__text(struct hb_buf *b, unsigned field, const char *s);
void hb_pf__clocks(struct hb_pf *p, bool own);
int hb_pf__flush(struct hb_pf *p, size_t limit);

/* The exporter, with as much memory for sorting as given: the trace does not depend on it. */
int hb_pf__write(struct hb_window *w, FILE *out, u64 memory, struct hb_error *e);

/* Orders and writes the events of one thread; frees them. 0 or -errno. */
int hb_pf__thread(struct hb_pf *p, u32 idx);

/* Counters of fields of Python objects (perfetto_fields.c). 0 or -errno. */
int hb_pf__fields(struct hb_pf *p);

/* ---- perfetto_device.c ---- */

/* Who a track's events are about: a thread, or for a stream the process' main one. */
const struct hb_task *hb_pf__task(const struct hb_pf *p, u32 idx);
/* Index of the track that a record is drawn on: its thread's, or a stream's, made when it is new. */
u32 hb_pf__track(struct hb_pf *p, const struct hb_record *r);
/* Describes the track of a stream. */
void hb_pf__stream_track(struct hb_pf *p, u32 idx);
/* Flows from a call to what it started: counted in the first pass, written with the events. */
void hb_pf__count_work(struct hb_pf *p, const struct hb_record *r);
void hb_pf__begin_flows(struct hb_pf *p, u64 correlation);
void hb_pf__end_flow(struct hb_pf *p, u64 correlation);

/* Track of a thread or stream, and of its process. */
u64 hb_pf__thread_uuid(u32 idx);
u64 hb_pf__process_uuid(u32 pid);

#endif
