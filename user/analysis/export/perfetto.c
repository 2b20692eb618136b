/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Perfetto's protobuf trace: one track and one packet sequence for each thread. Records come in order of
 * their END and slices are written in order of their BEGIN, so threads are sorted: as many at a time as fit
 * into MEMORY (more for a single larger thread), the window being read once for each such batch.
 */
#include <errno.h>
#include <stdlib.h>

#include "analysis/export/export.h"
#include "analysis/export/label.h"
#include "analysis/export/perfetto_private.h"
#include "analysis/model/decode.h"
#include "analysis/model/model.h"
#include "base/text.h"
#include "schema/pyevents.h"

#define MEMORY	 ((u64)512 << 20)
#define TIME_MAX ((u64)INT64_MAX - 1) /* of the format */

enum { CLOCK = 1, CLOCK_ID = 1, CLOCK_TIME = 2, CLOCK_INCREMENTAL = 3 };
enum { TRACK_UUID = 1, TRACK_NAME = 2, TRACK_PROCESS = 3, TRACK_THREAD = 4, TRACK_PARENT = 5 };
enum { PROCESS_PID = 1, PROCESS_CMDLINE = 2, PROCESS_NAME = 6, PROCESS_START = 7, PROCESS_LABEL = 8 };
enum { THREAD_PID = 1, THREAD_TID = 2, THREAD_NAME = 5 };
enum { SYSTEM_UTSNAME = 1, SYSTEM_TRACER = 4, SYSTEM_CPUS = 8 };
enum { UTS_SYSNAME = 1, UTS_RELEASE = 3, UTS_MACHINE = 4 };

#define LOSS_UUID ((u64)4 << 40)

u64 hb_pf__process_uuid(u32 pid)
{
	return (u64)1 << 40 | pid;
}

/* ---- packets ---- */

int hb_pf__flush(struct hb_pf *p, size_t limit)
{
	if (p->out.oom)
		return -ENOMEM;
	if (p->out.size < limit || !p->out.size)
		return 0;
	if (fwrite(p->out.data, 1, p->out.size, p->file) != p->out.size)
		return errno ? -errno : -EIO;
	p->out.size = 0;
	return 0;
}

size_t hb_pf__packet(struct hb_pf *p, u32 seq)
{
	size_t at = hb_pb__open(&p->out, PB_TRACE_PACKET);

	hb_pb__uint(&p->out, PB_SEQUENCE, seq);
	return at;
}

void hb_pf__text(struct hb_buf *b, unsigned field, const char *s)
{
	size_t n = strlen(s), size;
	char *room;

	hb_pb__tag(b, field, HB_PB_BYTES);
	hb_pb__varint(b, n);
	size = b->size;
	hb_buf__add(b, s, n + 1); /* cleaning keeps the length */
	if (b->oom)
		return;
	room = b->data + size;
	hb_text__clean(room);
	b->size = size + n;
}

static void put_clock(struct hb_pf *p, unsigned id, u64 ts)
{
	size_t at = hb_pb__open(&p->out, CLOCK);

	hb_pb__uint(&p->out, CLOCK_ID, id);
	hb_pb__uint(&p->out, CLOCK_TIME, ts);
	if (id == PB_CLOCK_OWN)
		hb_pb__uint(&p->out, CLOCK_INCREMENTAL, 1);
	hb_pb__close(&p->out, at);
}

/* One moment, the earliest of the trace, on all clocks. Always the same one: a clock that steps back between
 * two snapshots is refused by readers. The trace's own time is BOOTTIME. */
void hb_pf__clocks(struct hb_pf *p, bool own)
{
	size_t at = hb_pb__open(&p->out, PB_CLOCK_SNAPSHOT);

	put_clock(p, PB_CLOCK_BOOTTIME, p->base + p->boot_offset);
	put_clock(p, PB_CLOCK_MONOTONIC, p->base);
	if (p->real_offset)
		put_clock(p, PB_CLOCK_REALTIME, p->base + p->real_offset);
	if (own)
		put_clock(p, PB_CLOCK_OWN, p->base);
	hb_pb__close(&p->out, at);
}

static void put_system(struct hb_pf *p)
{
	const char *release = hb_window__meta(p->w, "kernel"), *machine = hb_window__meta(p->w, "machine");
	const char *tool = hb_window__meta(p->w, "tool"), *cpus = hb_window__meta(p->w, "cpus");
	size_t at = hb_pf__packet(p, HB_PF_GLOBAL_SEQ), all, uts;

	hb_pb__uint(&p->out, PB_FIRST_PACKET, 1);
	hb_pb__uint(&p->out, PB_SEQUENCE_FLAGS, PB_STATE_CLEARED);
	hb_pf__clocks(p, false);
	hb_pb__close(&p->out, at);
	at = hb_pf__packet(p, HB_PF_GLOBAL_SEQ);
	all = hb_pb__open(&p->out, PB_SYSTEM_INFO);
	uts = hb_pb__open(&p->out, SYSTEM_UTSNAME);
	hb_pf__text(&p->out, UTS_SYSNAME, "Linux");
	if (release)
		hb_pf__text(&p->out, UTS_RELEASE, release);
	if (machine)
		hb_pf__text(&p->out, UTS_MACHINE, machine);
	hb_pb__close(&p->out, uts);
	hb_pf__text(&p->out, SYSTEM_TRACER, tool ? tool : "herschel-bpf");
	if (cpus)
		hb_pb__uint(&p->out, SYSTEM_CPUS, strtoul(cpus, NULL, 10));
	hb_pb__close(&p->out, all);
	hb_pb__close(&p->out, at);
}

/* ---- tracks ---- */

static const struct hb_proc *proc_of(const struct hb_pf *p, u32 pid)
{
	u32 n;
	const struct hb_proc *procs = hb_window__procs(p->w, &n);

	for (u32 i = 0; i < n; i++)
		if (procs[i].pid == pid)
			return &procs[i];
	return NULL;
}

static void put_process(struct hb_pf *p, u32 pid)
{
	const struct hb_proc *proc = proc_of(p, pid);
	const char *sim = proc ? hb_decode__simulated(p->w) : NULL;
	char text[128];
	size_t at = hb_pf__packet(p, HB_PF_GLOBAL_SEQ), track = hb_pb__open(&p->out, PB_TRACK_DESCRIPTOR), in;

	hb_pb__uint(&p->out, TRACK_UUID, hb_pf__process_uuid(pid));
	in = hb_pb__open(&p->out, TRACK_PROCESS);
	hb_pb__uint(&p->out, PROCESS_PID, pid);
	hb_pf__text(&p->out, PROCESS_NAME, hb_label__process(p->w, pid, proc, text, sizeof(text)));
	if (proc && proc->cmdline)
		hb_pf__text(&p->out, PROCESS_CMDLINE, hb_window__string(p->w, proc->cmdline));
	if (proc && proc->start)
		hb_pb__uint(&p->out, PROCESS_START, proc->start + p->boot_offset);
	if (sim)
		hb_pf__text(&p->out, PROCESS_LABEL, sim);
	hb_pb__close(&p->out, in);
	hb_pb__close(&p->out, track);
	hb_pb__close(&p->out, at);
}

/* Records of nobody, such as notes, have a track without a thread. */
static void put_thread(struct hb_pf *p, u32 idx)
{
	const struct hb_task *t = &p->tasks[idx];
	size_t at = hb_pf__packet(p, HB_PF_GLOBAL_SEQ), track = hb_pb__open(&p->out, PB_TRACK_DESCRIPTOR), in;

	hb_pb__uint(&p->out, TRACK_UUID, hb_pf__thread_uuid(idx));
	if (t->tid) {
		hb_pb__uint(&p->out, TRACK_PARENT, hb_pf__process_uuid(t->pid));
		in = hb_pb__open(&p->out, TRACK_THREAD);
		hb_pb__uint(&p->out, THREAD_PID, t->pid);
		hb_pb__uint(&p->out, THREAD_TID, t->tid);
		hb_pf__text(&p->out, THREAD_NAME, hb_decode__comm(p->w, t));
		hb_pb__close(&p->out, in);
	} else {
		hb_pf__text(&p->out, TRACK_NAME, "herschel-bpf");
	}
	hb_pb__close(&p->out, track);
	hb_pb__close(&p->out, at);
}

static int put_tracks(struct hb_pf *p)
{
	struct hb_map *seen = hb_map__new();
	bool fresh, ok = seen;

	for (u32 i = 0; i < p->n_tasks + p->n_streams && ok; i++) {
		const struct hb_task *t = hb_pf__task(p, i);

		if (!p->thread[i].n)
			continue;
		ok = hb_map__slot(seen, t->pid, &fresh);
		if (ok && fresh && t->tid)
			put_process(p, t->pid);
		if (i < p->n_tasks)
			put_thread(p, i);
		else
			hb_pf__stream_track(p, i);
	}
	hb_map__free(seen);
	return ok ? hb_pf__flush(p, 0) : -ENOMEM;
}

/* ---- loss: nobody knows when, so each row spans the window ---- */

static void put_loss_event(struct hb_pf *p, u64 ts, unsigned type, const char *text)
{
	size_t at = hb_pf__packet(p, HB_PF_GLOBAL_SEQ), ev;

	hb_pb__uint(&p->out, PB_TIMESTAMP, ts);
	hb_pb__uint(&p->out, PB_CLOCK_ID, PB_CLOCK_MONOTONIC);
	ev = hb_pb__open(&p->out, PB_TRACK_EVENT);
	hb_pb__uint(&p->out, PB_EVENT_TYPE, type);
	hb_pb__uint(&p->out, PB_EVENT_TRACK, LOSS_UUID);
	if (text) {
		hb_pf__text(&p->out, PB_EVENT_CATEGORY, "loss");
		hb_pf__text(&p->out, PB_EVENT_NAME, text);
	}
	hb_pb__close(&p->out, ev);
	hb_pb__close(&p->out, at);
}

static void put_loss(struct hb_pf *p)
{
	const struct hb_window_info *info = hb_window__info(p->w);
	u64 begin = info->start_ts > p->base ? info->start_ts : p->base;
	u64 end = info->end_ts > begin ? info->end_ts : begin;
	unsigned open = 0;
	char text[256];
	size_t at, track;

	at = hb_pf__packet(p, HB_PF_GLOBAL_SEQ);
	track = hb_pb__open(&p->out, PB_TRACK_DESCRIPTOR);
	hb_pb__uint(&p->out, TRACK_UUID, LOSS_UUID);
	hb_pf__text(&p->out, TRACK_NAME, "loss");
	hb_pb__close(&p->out, track);
	hb_pb__close(&p->out, at);
	if (hb_window__damage(p->w)) {
		put_loss_event(p, begin, PB_SLICE_BEGIN, hb_window__damage(p->w));
		open++;
	}
	for (unsigned c = 0; c < HB_LOSS_COUNT; c++) {
		if (!hb_window__loss_total(p->w, c))
			continue;
		snprintf(text, sizeof(text), "lost %llu: %s: %s",
			 (unsigned long long)hb_window__loss_total(p->w, c), hb_word(HB_WORDS_LOSS, c),
			 hb_decode__loss_doc(c));
		put_loss_event(p, begin, PB_SLICE_BEGIN, text);
		open++;
	}
	while (open--)
		put_loss_event(p, end, PB_SLICE_END, NULL);
}

/* ---- records to events ---- */

struct made {
	u32 task;
	struct hb_pf_event ev;
	const void *record;
	u32 size;
};

/* The thread that ended a sleep, 0 when none did or it is not in the window. */
static u32 waker_of(const struct hb_pf *p, const struct hb_rec_offcpu *o)
{
	const struct hb_task *t;

	if (!hb_label__has_waker(o))
		return 0;
	t = hb_window__task_by_tid(p->w, o->waker);
	return t && t->pid == o->waker_pid ? (u32)(t - p->tasks) : 0;
}

/* A sleep has a runnable end, which the flow from its waker leads to. The wake-up itself is put one
 * nanosecond earlier: a flow must begin before it ends. */
static unsigned split_offcpu(const struct hb_pf *p, const struct hb_record *r, u32 *number, struct made *m,
			     struct hb_pf_wake *wake)
{
	const struct hb_rec_offcpu *o = r->data;
	u64 begin = m[0].ev.begin, end = m[0].ev.end,
	    woken = end - (o->ready < end - begin ? o->ready : end - begin);
	u32 waker = waker_of(p, o);

	if (o->state == HB_TSTATE_RUNNING || (!waker && !o->ready))
		return 1;
	m[1] = (struct made){.task = r->task_idx,
			     .ev = {.begin = woken, .end = end, .kind = HB_PF_RUNNABLE, .slice = true}};
	if (!waker || !woken)
		return 2;
	*wake = (struct hb_pf_wake){.number = ++*number, .wakee = r->task_idx};
	m[1].ev.flow = *number;
	m[2] = (struct made){.task = waker,
			     .ev = {.begin = woken - 1, .end = woken - 1, .kind = HB_PF_WAKE},
			     .record = wake,
			     .size = sizeof(*wake)};
	return 3;
}

/* Exceptions without records of their own: nobody knows when. */
static bool is_rest(const struct hb_record *r)
{
	return r->type == HB_TYPE_py_exception &&
	       ((const struct hb_rec_py_exception *)r->data)->flags & HB_PYEXC_REST;
}

/* The events of a record: none for receipts and the like, which are about the whole window. */
static unsigned split(struct hb_pf *p, const struct hb_record *r, u32 *number, struct made *m,
		      struct hb_pf_wake *wake)
{
	const struct hb_type *t = hb_schema__type(r->type);
	double v;

	/* Numbers of fields are counters (perfetto_fields.c). */
	if (r->type == HB_TYPE_price || is_rest(r) ||
	    (r->type == HB_TYPE_py_field && hb_field__number(r->data, &v)))
		return 0;
	m[0] = (struct made){.task = hb_pf__track(p, r), .record = r->data, .size = t->size};
	m[0].ev = (struct hb_pf_event){.begin = r->begin, .end = r->ts, .kind = (u8)r->type};
	if (m[0].ev.end > TIME_MAX)
		m[0].ev.end = TIME_MAX;
	if (m[0].ev.begin > m[0].ev.end)
		m[0].ev.begin = m[0].ev.end;
	m[0].ev.slice = t->dur_offset >= 0;
	if (r->type == HB_TYPE_accel)
		m[0].ev.slice = ((const struct hb_rec_accel *)r->data)->flags & HB_AFLAG_TIMED ||
				m[0].ev.begin < m[0].ev.end;
	if (r->type == HB_TYPE_py_call)
		m[0].ev.slice = ((const struct hb_rec_py_call *)r->data)->flags & HB_PYCALL_TIMED;
	if (r->type == HB_TYPE_offcpu)
		return split_offcpu(p, r, number, m, wake);
	return 1;
}

static void keep(struct hb_pf *p, const struct made *m)
{
	struct hb_pf_thread *t = &p->thread[m->task];

	if (!t->event || t->filled == t->n || t->at + m->size > t->bytes)
		return;
	t->event[t->filled] = m->ev;
	/* what has no record belongs to the one before */
	t->event[t->filled].at = m->size || !t->filled ? (u32)(t->at / 8) : t->event[t->filled - 1].at;
	t->filled++;
	if (m->size)
		memcpy(t->record + t->at, m->record, m->size);
	t->at += m->size;
}

static void count(struct hb_pf *p, const struct made *m)
{
	struct hb_pf_thread *t = &p->thread[m->task];

	if (m->ev.begin < p->base)
		p->base = m->ev.begin;
	t->n++;
	t->bytes += m->size;
}

static void read_all(struct hb_pf *p, void (*visit)(struct hb_pf *, const struct made *))
{
	bool first = visit == count;
	struct hb_record r;
	struct made m[3];
	struct hb_pf_wake wake;
	u32 number = 0; /* of wake-ups: the same in each pass */

	hb_window__rewind(p->w);
	while (hb_window__next(p->w, &r) > 0) {
		unsigned n = split(p, &r, &number, m, &wake);

		if (first)
			hb_pf__count_work(p, &r);
		for (unsigned i = 0; i < n; i++)
			if (m[i].task < p->n_tasks + p->n_streams)
				visit(p, &m[i]);
	}
}

/* ---- batches of threads ---- */

static void drop(struct hb_pf_thread *t)
{
	free(t->event);
	free(t->record);
	t->event = NULL;
	t->record = NULL;
}

static bool make_room(struct hb_pf_thread *t)
{
	if (t->bytes / 8 > UINT32_MAX)
		return false;
	t->event = malloc((t->n + 1) * sizeof(*t->event));
	t->record = malloc(t->bytes + 8);
	return t->event && t->record;
}

/* Threads from `from` on, as many as fit; returns the first that did not. */
static int batch(struct hb_pf *p, u32 from, u32 *to)
{
	u64 size = 0;
	int rc = 0;

	for (*to = from; *to < p->n_tasks + p->n_streams && !rc; ++*to) {
		struct hb_pf_thread *t = &p->thread[*to];
		u64 more = t->n * sizeof(*t->event) + t->bytes;

		if (size && size + more > p->memory)
			break;
		size += more;
		if (t->n && !make_room(t))
			rc = -ENOMEM;
	}
	if (!rc && size)
		read_all(p, keep);
	for (u32 i = from; i < *to; i++) {
		if (!rc && p->thread[i].n)
			rc = hb_pf__thread(p, i);
		drop(&p->thread[i]);
	}
	return rc;
}

static u64 offset_of(const struct hb_window *w, const char *key)
{
	const char *v = hb_window__meta(w, key);

	return v ? strtoull(v, NULL, 10) : 0;
}

static int write_all(struct hb_pf *p)
{
	int rc;

	read_all(p, count);
	put_system(p);
	rc = put_tracks(p);
	if (!rc && p->lossy)
		put_loss(p);
	rc = rc ? rc : hb_pf__fields(p);
	for (u32 from = 0, to; from < p->n_tasks + p->n_streams && !rc; from = to)
		rc = batch(p, from, &to);
	return rc ? rc : hb_pf__flush(p, 0);
}

int hb_pf__write(struct hb_window *w, FILE *out, u64 memory, struct hb_error *e)
{
	struct hb_pf p = {.w = w, .file = out, .base = hb_window__info(w)->start_ts, .memory = memory};
	int rc;

	p.boot_offset = offset_of(w, "boottime_offset_ns");
	p.real_offset = offset_of(w, "realtime_offset_ns");
	p.lossy = hb_decode__loss_all(w) || hb_window__damage(w);
	p.tasks = hb_window__tasks(w, &p.n_tasks);
	p.thread = calloc((size_t)p.n_tasks + 1, sizeof(*p.thread));
	p.by_stream = hb_map__new();
	p.work = hb_map__new();
	rc = p.thread && p.by_stream && p.work ? hb_pf__intern_init(&p) : -ENOMEM;
	rc = rc ? rc : write_all(&p);
	if (rc == -ENOMEM)
		hb_error__nomem(e, "the perfetto trace");
	hb_pf__intern_free(&p);
	hb_buf__free(&p.out);
	hb_buf__free(&p.body);
	hb_buf__free(&p.interned);
	hb_buf__free(&p.text);
	hb_map__free(p.by_stream);
	hb_map__free(p.work);
	free(p.stream);
	free(p.thread);
	return rc;
}

static int run(struct hb_window *w, FILE *out, struct hb_error *e)
{
	return hb_pf__write(w, out, MEMORY, e);
}

HB_EXPORTER(perfetto) = {
    .name = "perfetto",
    .doc = "tracks, stacks and flows for ui.perfetto.dev (docs/exports.md)",
    .run = run,
};
