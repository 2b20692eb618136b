/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What an event says: its name, categories, annotations and stack, from the record. */
#include <errno.h>
#include <stdio.h>

#include "analysis/export/jbuf.h"
#include "analysis/export/label.h"
#include "analysis/export/perfetto_private.h"
#include "analysis/model/decode.h"
#include "analysis/model/pyevents.h"

enum {
	NOTE_NAME_IID = 1,
	NOTE_BOOL = 2,
	NOTE_UINT = 3,
	NOTE_INT = 4,
	NOTE_POINTER = 7,
	NOTE_STRING_IID = 17
};
enum { SAMPLE_CPU = 1, SAMPLE_PID, SAMPLE_TID, SAMPLE_STACK, SAMPLE_MODE, SAMPLE_COUNT };
enum { MODE_KERNEL = 1, MODE_USER = 2 };

static void name(struct hb_pf *p, const char *s)
{
	hb_pb__uint(&p->body, PB_EVENT_NAME_IID, hb_pf__string(p, HB_PF_NAME, s));
}

static void stable_name(struct hb_pf *p, const char *s)
{
	hb_pb__uint(&p->body, PB_EVENT_NAME_IID, hb_pf__stable(p, HB_PF_NAME, s));
}

static void category(struct hb_pf *p, const char *s)
{
	hb_pb__uint(&p->body, PB_EVENT_CATEGORY_IID, hb_pf__stable(p, HB_PF_CATEGORY, s));
}

static void note_int(struct hb_pf *p, const char *key, unsigned type, u64 v)
{
	u32 iid = hb_pf__stable(p, HB_PF_ANNOTATION, key);
	size_t at = hb_pb__open(&p->body, PB_EVENT_ANNOTATION);

	hb_pb__uint(&p->body, NOTE_NAME_IID, iid);
	hb_pb__uint(&p->body, type, v);
	hb_pb__close(&p->body, at);
}

static void note_text(struct hb_pf *p, const char *key, const char *s)
{
	note_int(p, key, NOTE_STRING_IID, hb_pf__string(p, HB_PF_VALUE, s));
}

static void note_word(struct hb_pf *p, const char *key, const char *s)
{
	note_int(p, key, NOTE_STRING_IID, hb_pf__stable(p, HB_PF_VALUE, s));
}

static void note_known(struct hb_pf *p, const char *key, u64 v)
{
	if (v)
		note_int(p, key, NOTE_UINT, v);
}

/* Few different ones in a window: as text they are one small number in each event. */
static void note_three(struct hb_pf *p, const char *key, u64 x, u64 y, u64 z)
{
	p->text.size = 0;
	hb_jbuf__u64(&p->text, x);
	hb_jbuf__lit(&p->text, ",");
	hb_jbuf__u64(&p->text, y);
	hb_jbuf__lit(&p->text, ",");
	hb_jbuf__u64(&p->text, z);
	hb_buf__add(&p->text, "", 1);
	if (!p->text.oom)
		note_text(p, key, p->text.data);
}

static void asyncio_task(struct hb_pf *p, const struct hb_pf_event *ev, u64 task)
{
	const char *name = hb_window__pytask(p->w, p->task->pid, task, ev->slice ? ev->end : ev->begin);

	if (!task)
		return;
	note_int(p, "task", NOTE_POINTER, task);
	if (name)
		note_text(p, "task_name", name);
}

static void callstack(struct hb_pf *p, u32 raw)
{
	static const char *const words[] = {[HB_STACK_TRUNCATED] = "truncated", [HB_STACK_BROKEN] = "broken"};
	u32 iid = hb_pf__stack(p, raw, 0);
	struct hb_stack s;

	if (!iid)
		return;
	hb_pb__uint(&p->body, PB_EVENT_CALLSTACK_IID, iid);
	s = hb_window__stack(p->w, p->task->pid, raw);
	if (s.state == HB_STACK_TRUNCATED || s.state == HB_STACK_BROKEN)
		note_word(p, "stack_state", words[s.state]);
}

/* ---- accelerator calls ---- */

static void accel_size(struct hb_pf *p, const struct hb_probe_row *row, const struct hb_rec_accel *a)
{
	const char *api = hb_window__string(p->w, row->api), *word = NULL;
	unsigned size = 1;

	if (row->cls == HB_CLASS_COLLECTIVE) {
		word = a->bytes ? hb_decode__datatype(api, a->kind, &size) : NULL;
		note_known(p, "elements", a->bytes);
		note_known(p, "bytes", word ? a->bytes * size : 0);
		if (word)
			note_word(p, "datatype", word);
		return;
	}
	note_known(p, "bytes", a->bytes);
	if (row->cls == HB_CLASS_COPY && a->kind)
		word = hb_decode__copy_kind(api, a->kind);
	if (word)
		note_word(p, "kind", word);
	else
		note_known(p, "kind", a->kind);
}

static bool has_stream(const struct hb_probe_row *row)
{
	return row->cls == HB_CLASS_LAUNCH || row->cls == HB_CLASS_GRAPH || row->cls == HB_CLASS_COLLECTIVE;
}

static void accel(struct hb_pf *p, const struct hb_pf_event *ev, const void *record)
{
	static const struct hb_probe_row none;
	const struct hb_rec_accel *a = record;
	const struct hb_probe_row *row = hb_window__probe(p->w, a->probe);

	row = row ? row : &none;
	stable_name(p, row->name ? hb_window__string(p->w, row->name) : "?");
	category(p, row->api ? hb_window__string(p->w, row->api) : "?");
	category(p, hb_word(HB_WORDS_CLASS, row->cls));
	if (a->gx)
		note_three(p, "grid", a->gx, a->gy, a->gz);
	if (a->bx)
		note_three(p, "block", a->bx, a->by, a->bz);
	if (a->stream || (has_stream(row) && !(a->flags & HB_AFLAG_NO_STREAM)))
		note_int(p, "stream", NOTE_POINTER, a->stream);
	if (a->handle)
		note_int(p, hb_word(HB_WORDS_HANDLE, row->handle), NOTE_POINTER, a->handle);
	accel_size(p, row, a);
	note_known(p, "shared_bytes", a->shm);
	if (a->flags & HB_AFLAG_RET)
		note_int(p, "ret", NOTE_INT, (u64)(s64)a->ret);
	if (a->flags & HB_AFLAG_ARGS)
		note_int(p, "args_unreadable", NOTE_BOOL, 1);
	asyncio_task(p, ev, a->task);
	callstack(p, a->stack);
	if (a->correlation) {
		note_int(p, "correlation", NOTE_UINT, a->correlation);
		hb_pf__begin_flows(p, a->correlation);
	}
}

/* ---- devices and operators ---- */

static void device_size(struct hb_pf *p, const struct hb_rec_device *d)
{
	if (d->gx)
		note_three(p, "grid", d->gx, d->gy, d->gz);
	if (d->bx)
		note_three(p, "block", d->bx, d->by, d->bz);
	note_known(p, "registers", d->regs);
	note_known(p, "shared_bytes", d->shm);
	note_known(p, "bytes", d->bytes);
	if (d->copy)
		note_word(p, "copy", hb_word(HB_WORDS_COPY, d->copy));
	if (d->srcmem)
		note_word(p, "from", hb_word(HB_WORDS_MEMKIND, d->srcmem));
	if (d->dstmem)
		note_word(p, "to", hb_word(HB_WORDS_MEMKIND, d->dstmem));
	if (d->sync)
		note_word(p, "sync", hb_word(HB_WORDS_SYNCKIND, d->sync));
}

static void device(struct hb_pf *p, const struct hb_pf_event *ev, const void *record)
{
	const struct hb_rec_device *d = record;

	(void)ev;
	stable_name(p, d->name ? hb_window__string(p->w, d->name) : hb_word(HB_WORDS_DEVKIND, d->kind));
	category(p, "device");
	category(p, hb_word(HB_WORDS_DEVKIND, d->kind));
	note_known(p, "context", d->context);
	device_size(p, d);
	note_known(p, "graph", d->graph);
	note_known(p, "node", d->node);
	if (!d->correlation)
		return;
	note_int(p, "correlation", NOTE_UINT, d->correlation);
	if (d->kind <= HB_DEVKIND_MEMSET)
		hb_pf__end_flow(p, d->correlation);
}

static void operator_(struct hb_pf *p, const struct hb_pf_event *ev, const void *record)
{
	const struct hb_rec_op *o = record;

	(void)ev;
	stable_name(p, o->name ? hb_window__string(p->w, o->name) : "?");
	category(p, hb_word(HB_WORDS_OPKIND, o->kind));
	if (o->shapes)
		note_word(p, "shapes", hb_window__string(p->w, o->shapes));
	if (o->types)
		note_word(p, "types", hb_window__string(p->w, o->types));
	note_known(p, "external", o->external);
	if (o->seq)
		note_int(p, "sequence", NOTE_UINT, o->seq - 1);
}

/* ---- time off the CPU ---- */

static void offcpu_waker(struct hb_pf *p, const struct hb_rec_offcpu *o)
{
	const struct hb_task *t = hb_window__task_by_tid(p->w, o->waker);
	char buf[96];
	const char *call = hb_decode__syscall(o->wsys, buf, sizeof(buf));

	if (!o->waker)
		return;
	note_word(p, "waker_context", hb_word(HB_WORDS_WCTX, o->wctx));
	if (call)
		note_text(p, "waker_syscall", call);
	if (!hb_label__has_waker(o))
		return;
	snprintf(buf, sizeof(buf), "%.40s (pid %u, tid %u)", hb_decode__comm(p->w, t), o->waker_pid,
		 o->waker);
	note_text(p, "waker", buf);
}

static void offcpu(struct hb_pf *p, const struct hb_pf_event *ev, const void *record)
{
	const struct hb_rec_offcpu *o = record;
	char buf[256], text[64];
	const char *chan = hb_decode__slept_on(p->w, p->task->pid, o, buf, sizeof(buf));

	name(p, hb_label__offcpu(o, text, sizeof(text)));
	category(p, "offcpu");
	note_word(p, "state", hb_word(HB_WORDS_TSTATE, o->state));
	note_known(p, "runnable_ns", o->ready);
	if (chan)
		note_text(p, "chan", chan);
	if (o->sysno != HB_SYSNO_NONE && hb_decode__fd_call(o->sysno))
		note_int(p, "fd", NOTE_INT, (u64)(s64)(s32)o->a0);
	offcpu_waker(p, o);
	if (o->ran) {
		snprintf(text, sizeof(text), "%.30s (pid %u, tid %u)",
			 hb_decode__comm(p->w, hb_window__task_by_tid(p->w, o->ran)), o->ran_pid, o->ran);
		note_text(p, "ran_instead", text);
	}
	asyncio_task(p, ev, o->task);
	callstack(p, o->stack);
	(void)ev;
}

static void runnable(struct hb_pf *p, const struct hb_pf_event *ev, const void *record)
{
	(void)record;
	stable_name(p, "runnable");
	category(p, "offcpu");
	if (ev->flow)
		hb_pb__fixed64(&p->body, PB_EVENT_FLOW_END, HB_PF_FLOW_WAKE | ev->flow);
}

static void wake(struct hb_pf *p, const struct hb_pf_event *ev, const void *record)
{
	const struct hb_pf_wake *k = record;
	const struct hb_task *t = &p->tasks[k->wakee];
	char text[64];

	(void)ev;
	snprintf(text, sizeof(text), "wakes %.40s", hb_decode__comm(p->w, t));
	name(p, text);
	category(p, "wake");
	note_int(p, "tid", NOTE_UINT, t->tid);
	hb_pb__fixed64(&p->body, PB_EVENT_FLOW, HB_PF_FLOW_WAKE | k->number);
}

/* ---- Python's events ---- */

static void exception(struct hb_pf *p, const struct hb_pf_event *ev, const void *record)
{
	const struct hb_rec_py_exception *r = record;
	char buf[4 * sizeof(hb_label) + 4];

	(void)ev;
	name(p, hb_decode__exception(&r->name, r->origin, buf, sizeof(buf)));
	category(p, "exception");
	if (r->message_kind)
		note_text(p, "message", hb_decode__message(r, buf, sizeof(buf)));
	asyncio_task(p, ev, r->task);
	callstack(p, r->stack ? r->stack : r->site);
}

static void gil(struct hb_pf *p, const struct hb_pf_event *ev, const void *record)
{
	const struct hb_rec_py_gil *r = record;
	const struct hb_task *t = hb_decode__nstask(p->w, p->task->pid, r->holder);
	char buf[64];

	(void)ev;
	stable_name(p, hb_label__gil(r));
	category(p, "gil");
	if (t) {
		snprintf(buf, sizeof(buf), "%.40s (tid %u)", hb_decode__comm(p->w, t), t->tid);
		note_text(p, "holder", buf);
	}
	note_known(p, "slept_ns", r->slept);
	asyncio_task(p, ev, r->task);
	callstack(p, r->stack);
}

static void gc(struct hb_pf *p, const struct hb_pf_event *ev, const void *record)
{
	const struct hb_rec_py_gc *r = record;

	(void)ev;
	stable_name(p, "garbage collection");
	category(p, "gc");
	if (r->generation != UINT32_MAX)
		note_int(p, "generation", NOTE_INT, r->generation);
	asyncio_task(p, ev, r->task);
	callstack(p, r->stack);
}

/* ---- the others ---- */

static void syscall_(struct hb_pf *p, const struct hb_pf_event *ev, const void *record)
{
	const struct hb_rec_syscall *s = record;
	char buf[32];
	const char *call = hb_decode__syscall(s->sysno, buf, sizeof(buf));

	(void)ev;
	name(p, call ? call : "?");
	category(p, "syscall");
	note_int(p, "ret", NOTE_INT, (u64)s->ret);
	if (hb_decode__fd_call(s->sysno))
		note_int(p, "fd", NOTE_INT, (u64)(s64)(s32)s->a0);
	callstack(p, s->stack);
}

static void py_call(struct hb_pf *p, const struct hb_pf_event *ev, const void *record)
{
	const struct hb_rec_py_call *c = record;
	const struct hb_loc *l = hb_window__loc(p->w, c->func);

	(void)ev;
	stable_name(p, l ? hb_window__string(p->w, l->func) : "?");
	category(p, "python");
	if (l) {
		note_word(p, "file", hb_window__string(p->w, l->file));
		note_int(p, "line", NOTE_UINT, l->line);
	}
	note_word(p, "end", hb_word(HB_WORDS_PYEND, c->end));
}

/* Life of a process, and what the tool says: an instant with its type's name, its members as annotations. */
static void plain(struct hb_pf *p, const struct hb_pf_event *ev, const void *record)
{
	const struct hb_type *t = hb_schema__type(ev->kind);

	name(p, t->name);
	category(p, "life");
	for (unsigned i = 0; i < t->n_fields; i++) {
		const struct hb_field *f = &t->fields[i];
		char text[sizeof(hb_label) + 1] = "";

		switch (f->role) {
		case HB_ROLE_PAD:
			break;
		case HB_ROLE_STR:
			note_text(p, f->name, hb_window__string(p->w, (u32)hb_field__int(f, record)));
			break;
		case HB_ROLE_COMM:
			memcpy(text, (const char *)record + f->offset, sizeof(hb_comm));
			note_text(p, f->name, text);
			break;
		case HB_ROLE_LABEL:
			memcpy(text, (const char *)record + f->offset, sizeof(hb_label));
			note_text(p, f->name, text);
			break;
		case HB_ROLE_ADDR:
			note_int(p, f->name, NOTE_POINTER, (u64)hb_field__int(f, record));
			break;
		case HB_ROLE_HOW:
			note_text(p, f->name, hb_word(HB_WORDS_HOW, (unsigned)hb_field__int(f, record)));
			break;
		case HB_ROLE_NOTELEVEL:
			note_text(p, f->name,
				  hb_word(HB_WORDS_NOTELEVEL, (unsigned)hb_field__int(f, record)));
			break;
		default:
			note_int(p, f->name, NOTE_INT, (u64)hb_field__int(f, record));
		}
	}
}

void hb_pf__describe(struct hb_pf *p, const struct hb_pf_event *ev, const void *record)
{
	static void (*const how[])(struct hb_pf *, const struct hb_pf_event *, const void *) = {
	    [HB_TYPE_accel] = accel,	  [HB_TYPE_offcpu] = offcpu,
	    [HB_TYPE_syscall] = syscall_, [HB_TYPE_py_exception] = exception,
	    [HB_TYPE_py_gil] = gil,	  [HB_TYPE_py_gc] = gc,
	    [HB_TYPE_device] = device,	  [HB_TYPE_op] = operator_,
	    [HB_TYPE_py_call] = py_call,  [HB_PF_RUNNABLE] = runnable,
	    [HB_PF_WAKE] = wake,
	};

	(how[ev->kind] ? how[ev->kind] : plain)(p, ev, record);
}

/* The count is that of a clock which ticks while the thread runs, as far as samples saw it. */
void hb_pf__sample(struct hb_pf *p, const struct hb_rec_sample *s)
{
	u32 stack = hb_pf__stack(p, s->stack, s->kstack);

	p->sampled += s->weight;
	hb_pb__uint(&p->body, SAMPLE_CPU, s->cpu);
	hb_pb__uint(&p->body, SAMPLE_PID, p->task->pid);
	hb_pb__uint(&p->body, SAMPLE_TID, p->task->tid);
	if (stack)
		hb_pb__uint(&p->body, SAMPLE_STACK, stack);
	hb_pb__uint(&p->body, SAMPLE_MODE, s->mode == HB_CPUMODE_KERNEL ? MODE_KERNEL : MODE_USER);
	hb_pb__uint(&p->body, SAMPLE_COUNT, p->sampled);
}
