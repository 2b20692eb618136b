/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Members of records as JSON. Each is written by the function that its role chooses; `specials` lists where a
 * type's contract differs from that rule, so a new record type appears without a line here.
 */
#include "analysis/export/ndjson_private.h"

#include <stdio.h>
#include <string.h>

#include "analysis/export/jbuf.h"
#include "analysis/model/decode.h"

static void key(struct hb_ndjson *c, const struct hb_ndjson_item *i)
{
	hb_buf__add(&c->line, i->key, i->key_size);
}

/* ---- by role ---- */

static void emit_unsigned(struct hb_ndjson *c, const struct hb_ndjson_item *i, u64 v)
{
	key(c, i);
	hb_jbuf__u64(&c->line, v);
}

static void emit_signed(struct hb_ndjson *c, const struct hb_ndjson_item *i, u64 v)
{
	key(c, i);
	hb_jbuf__s64(&c->line, (s64)v);
}

static void emit_hex(struct hb_ndjson *c, const struct hb_ndjson_item *i, u64 v)
{
	key(c, i);
	hb_jbuf__hex(&c->line, v);
}

static void emit_known(struct hb_ndjson *c, const struct hb_ndjson_item *i, u64 v)
{
	if (v)
		emit_unsigned(c, i, v);
}

static void emit_text(struct hb_ndjson *c, const struct hb_ndjson_item *i, const char *s)
{
	key(c, i);
	hb_jbuf__str(&c->line, s);
}

static void emit_string(struct hb_ndjson *c, const struct hb_ndjson_item *i, u64 v)
{
	if (v)
		emit_text(c, i, hb_window__string(c->w, (u32)v));
}

static void emit_comm(struct hb_ndjson *c, const struct hb_ndjson_item *i, u64 v)
{
	char name[sizeof(hb_comm) + 1] = "";

	(void)v;
	memcpy(name, (const char *)c->r->data + i->f->offset, sizeof(hb_comm));
	emit_text(c, i, name);
}

static void emit_label(struct hb_ndjson *c, const struct hb_ndjson_item *i, u64 v)
{
	char text[sizeof(hb_label) + 1] = "";

	(void)v;
	memcpy(text, (const char *)c->r->data + i->f->offset, sizeof(hb_label));
	emit_text(c, i, text);
}

static void emit_word(struct hb_ndjson *c, const struct hb_ndjson_item *i, u64 v)
{
	static const int lists[] = {
	    [HB_ROLE_TSTATE] = HB_WORDS_TSTATE,	    [HB_ROLE_WCTX] = HB_WORDS_WCTX,
	    [HB_ROLE_CHANKIND] = HB_WORDS_CHANKIND, [HB_ROLE_CPUMODE] = HB_WORDS_CPUMODE,
	    [HB_ROLE_HOW] = HB_WORDS_HOW,	    [HB_ROLE_NOTELEVEL] = HB_WORDS_NOTELEVEL,
	    [HB_ROLE_PYEND] = HB_WORDS_PYEND,	    [HB_ROLE_PYKIND] = HB_WORDS_PYKIND,
	    [HB_ROLE_DEVKIND] = HB_WORDS_DEVKIND,   [HB_ROLE_COPY] = HB_WORDS_COPY,
	    [HB_ROLE_MEMKIND] = HB_WORDS_MEMKIND,   [HB_ROLE_SYNCKIND] = HB_WORDS_SYNCKIND,
	    [HB_ROLE_OPKIND] = HB_WORDS_OPKIND,
	};

	emit_text(c, i, hb_word((enum hb_words)lists[i->f->role], (unsigned)v));
}

static void emit_sysno(struct hb_ndjson *c, const struct hb_ndjson_item *i, u64 v)
{
	char buf[32];
	const char *name = hb_decode__syscall((unsigned)v, buf, sizeof(buf));

	if (name)
		emit_text(c, i, name);
}

static void emit_socket(struct hb_ndjson *c, const struct hb_ndjson_item *i, u64 v)
{
	char buf[32];

	if (v)
		emit_text(c, i, hb_decode__socket(v, buf, sizeof(buf)));
}

static void make_probe(struct hb_ndjson *c, struct hb_ndjson_span *s, u32 id)
{
	static const struct hb_probe_row none;
	const struct hb_probe_row *row = hb_window__probe(c->w, id);

	row = row ? row : &none;
	s->at = c->text.size;
	hb_jbuf__lit(&c->text, ",\"name\":");
	hb_jbuf__str(&c->text, hb_window__string(c->w, row->name));
	hb_jbuf__lit(&c->text, ",\"api\":");
	hb_jbuf__str(&c->text, hb_window__string(c->w, row->api));
	hb_jbuf__lit(&c->text, ",\"class\":");
	hb_jbuf__str(&c->text, hb_word(HB_WORDS_CLASS, row->cls));
	hb_jbuf__lit(&c->text, ",\"layer\":");
	hb_jbuf__str(&c->text, hb_word(HB_WORDS_LAYER, row->layer));
	s->size = c->text.size - s->at;
}

static void emit_probe(struct hb_ndjson *c, const struct hb_ndjson_item *i, u64 v)
{
	struct hb_ndjson_span *s = &c->probe[v <= c->n_probes ? v : 0];

	(void)i;
	if (v == UINT32_MAX) /* a price's hook has its own name */
		return;
	if (!s->size)
		make_probe(c, s, v <= c->n_probes ? (u32)v : 0);
	if (!c->text.oom)
		hb_buf__add(&c->line, c->text.data + s->at, s->size);
}

/* A function: its module as far as the file tells, qualified name, file and line. */
static void emit_function(struct hb_ndjson *c, const struct hb_ndjson_item *i, u64 v)
{
	const struct hb_loc *l = hb_window__loc(c->w, (u32)v);
	const char *file = l ? hb_window__string(c->w, l->file) : "";
	char module[256];

	(void)i;
	if (!l)
		return;
	if (*hb_decode__module(file, module, sizeof(module))) {
		hb_jbuf__lit(&c->line, ",\"module\":");
		hb_jbuf__str(&c->line, module);
	}
	hb_jbuf__lit(&c->line, ",\"qualname\":");
	hb_jbuf__str(&c->line, hb_window__string(c->w, l->func));
	hb_jbuf__lit(&c->line, ",\"file\":");
	hb_jbuf__str(&c->line, file);
	hb_jbuf__lit(&c->line, ",\"line\":");
	hb_jbuf__u64(&c->line, l->line);
}

static void emit_stack(struct hb_ndjson *c, const struct hb_ndjson_item *i, u64 v)
{
	if (!v)
		return;
	key(c, i);
	hb_stackjson__array(c->stacks, &c->line, c->r->task ? c->r->task->pid : 0, (u32)v, 0);
}

/* ---- where a type differs ---- */

static const struct hb_probe_row *row_of(struct hb_ndjson *c)
{
	static const struct hb_probe_row none;
	const struct hb_rec_accel *a = c->r->data;
	const struct hb_probe_row *row = hb_window__probe(c->w, a->probe);

	return row ? row : &none;
}

static void emit_accel_dur(struct hb_ndjson *c, const struct hb_ndjson_item *i, u64 v)
{
	const struct hb_rec_accel *a = c->r->data;

	if (v || (a->flags & HB_AFLAG_TIMED))
		emit_unsigned(c, i, v);
}

static void emit_ret(struct hb_ndjson *c, const struct hb_ndjson_item *i, u64 v)
{
	const struct hb_rec_accel *a = c->r->data;

	if (a->flags & HB_AFLAG_RET)
		emit_signed(c, i, v);
}

static void emit_three(struct hb_ndjson *c, const struct hb_ndjson_item *i, u64 x, u64 y, u64 z)
{
	key(c, i);
	hb_jbuf__lit(&c->line, "[");
	hb_jbuf__u64(&c->line, x);
	hb_jbuf__lit(&c->line, ",");
	hb_jbuf__u64(&c->line, y);
	hb_jbuf__lit(&c->line, ",");
	hb_jbuf__u64(&c->line, z);
	hb_jbuf__lit(&c->line, "]");
}

static void emit_grid(struct hb_ndjson *c, const struct hb_ndjson_item *i, u64 v)
{
	const struct hb_rec_accel *a = c->r->data;

	if (v)
		emit_three(c, i, v, a->gy, a->gz);
}

static void emit_block(struct hb_ndjson *c, const struct hb_ndjson_item *i, u64 v)
{
	const struct hb_rec_accel *a = c->r->data;

	if (v)
		emit_three(c, i, v, a->by, a->bz);
}

/* 0 is the default stream of a call that has one, and nothing for the others. */
static void emit_stream(struct hb_ndjson *c, const struct hb_ndjson_item *i, u64 v)
{
	u8 cls = v ? 0 : row_of(c)->cls;

	if (((const struct hb_rec_accel *)c->r->data)->flags & HB_AFLAG_NO_STREAM)
		return;
	if (v || cls == HB_CLASS_LAUNCH || cls == HB_CLASS_GRAPH || cls == HB_CLASS_COLLECTIVE)
		emit_hex(c, i, v);
}

/* The table's word is the key; only "comm" is taken, by the thread's name. */
static void emit_handle(struct hb_ndjson *c, const struct hb_ndjson_item *i, u64 v)
{
	u8 handle = row_of(c)->handle;

	(void)i;
	if (!v)
		return;
	hb_jbuf__lit(&c->line, ",");
	hb_jbuf__str(&c->line, handle == HB_HANDLE_COMM ? "communicator" : hb_word(HB_WORDS_HANDLE, handle));
	hb_jbuf__lit(&c->line, ":");
	hb_jbuf__hex(&c->line, v);
}

static void emit_bytes(struct hb_ndjson *c, const struct hb_ndjson_item *i, u64 v)
{
	const struct hb_rec_accel *a = c->r->data;
	const struct hb_probe_row *row = v ? row_of(c) : NULL;
	unsigned size;

	if (!v)
		return;
	if (row->cls != HB_CLASS_COLLECTIVE) {
		emit_unsigned(c, i, v);
		return;
	}
	hb_jbuf__lit(&c->line, ",\"elements\":");
	hb_jbuf__u64(&c->line, v);
	if (hb_decode__datatype(hb_window__string(c->w, row->api), a->kind, &size))
		emit_unsigned(c, i, v * size);
}

/* Kind 0 is "HtoH" only where the API passes kinds at all: the runtime's copies, not its memsets, and of
 * those not a profiler's, which tell neither kind nor size. */
static void emit_kind(struct hb_ndjson *c, const struct hb_ndjson_item *i, u64 v)
{
	const struct hb_probe_row *row = row_of(c);
	const struct hb_rec_accel *a = c->r->data;
	const char *api = hb_window__string(c->w, row->api), *word = NULL;
	unsigned size;

	if (row->cls == HB_CLASS_COLLECTIVE) {
		word = hb_decode__datatype(api, (unsigned)v, &size);
		if (word && a->bytes) {
			hb_jbuf__lit(&c->line, ",\"datatype\":");
			hb_jbuf__str(&c->line, word);
		}
		return;
	}
	if (row->cls == HB_CLASS_COPY && (v || (a->bytes && row->layer == HB_LAYER_RUNTIME &&
						strstr(hb_window__string(c->w, row->name), "emcpy"))))
		word = hb_decode__copy_kind(api, (unsigned)v);
	if (word)
		emit_text(c, i, word);
	else
		emit_known(c, i, v);
}

static void emit_accel_flags(struct hb_ndjson *c, const struct hb_ndjson_item *i, u64 v)
{
	(void)i;
	if (v & HB_AFLAG_INNER)
		hb_jbuf__lit(&c->line, ",\"inner\":true");
	if (v & HB_AFLAG_ARGS)
		hb_jbuf__lit(&c->line, ",\"args_unreadable\":true");
}

static void emit_sleep_flags(struct hb_ndjson *c, const struct hb_ndjson_item *i, u64 v)
{
	(void)i;
	if (v & HB_OFFCPU_BEFORE)
		hb_jbuf__lit(&c->line, ",\"before\":true");
	if (v & HB_OFFCPU_OPEN)
		hb_jbuf__lit(&c->line, ",\"open\":true");
}

static void emit_chan(struct hb_ndjson *c, const struct hb_ndjson_item *i, u64 v)
{
	char buf[640];
	const char *s = hb_decode__slept_on(c->w, c->r->task->pid, c->r->data, buf, sizeof(buf));

	(void)v;
	if (s)
		emit_text(c, i, s);
}

static void emit_py_dur(struct hb_ndjson *c, const struct hb_ndjson_item *i, u64 v)
{
	if (((const struct hb_rec_py_call *)c->r->data)->flags & HB_PYCALL_TIMED)
		emit_unsigned(c, i, v);
}

static void emit_field_value(struct hb_ndjson *c, const struct hb_ndjson_item *i, u64 v)
{
	size_t before = c->line.size;

	(void)v;
	key(c, i);
	if (!hb_ndjson__field_value(c, c->r->data))
		c->line.size = before;
}

static void emit_call_fields(struct hb_ndjson *c, const struct hb_ndjson_item *i, u64 v)
{
	(void)i;
	(void)v;
	hb_ndjson__call_fields(c);
}

static void emit_field_flags(struct hb_ndjson *c, const struct hb_ndjson_item *i, u64 v)
{
	(void)i;
	if (v & 1)
		hb_jbuf__lit(&c->line, ",\"late\":true");
}

/* "3</var/log/x>": the form that strace made known. */
static void emit_fd_arg(struct hb_ndjson *c, u64 fd, const char *text)
{
	char buf[640];

	snprintf(buf, sizeof(buf), "%u<%s>", (u32)fd, text);
	hb_jbuf__str(&c->line, buf);
}

static void emit_args(struct hb_ndjson *c, const struct hb_ndjson_item *i, unsigned sysno, u64 chan,
		      const u64 *args, unsigned n)
{
	const char *text = NULL;

	if (hb_decode__fd_call(sysno)) {
		hb_jbuf__lit(&c->line, ",\"fd\":");
		hb_jbuf__s64(&c->line, (s32)args[0]);
		text = hb_decode__fd(c->w, c->r->task->pid, args[0], chan);
	}
	key(c, i);
	for (unsigned k = 0; k < n; k++) {
		hb_buf__add(&c->line, k ? "," : "[", 1);
		if (!k && text)
			emit_fd_arg(c, args[0], text);
		else
			hb_jbuf__hex(&c->line, args[k]);
	}
	hb_jbuf__lit(&c->line, "]");
}

static void emit_sleep_args(struct hb_ndjson *c, const struct hb_ndjson_item *i, u64 v)
{
	const struct hb_rec_offcpu *o = c->r->data;
	u64 args[] = {o->a0, o->a1, o->a2};

	(void)v;
	if (o->sysno != HB_SYSNO_NONE)
		emit_args(c, i, o->sysno, o->chan, args, 3);
}

static void emit_call_args(struct hb_ndjson *c, const struct hb_ndjson_item *i, u64 v)
{
	const struct hb_rec_syscall *s = c->r->data;
	u64 args[] = {s->a0, s->a1, s->a2, s->a3, s->a4, s->a5};

	(void)v;
	emit_args(c, i, s->sysno, 0, args, 6);
}

static void emit_waker_fd(struct hb_ndjson *c, const struct hb_rec_offcpu *o)
{
	const char *text = hb_decode__fd(c->w, o->waker_pid, o->wa0, 0);

	hb_jbuf__lit(&c->line, ",\"fd\":");
	hb_jbuf__s64(&c->line, (s32)o->wa0);
	if (!text)
		return;
	hb_jbuf__lit(&c->line, ",\"file\":");
	hb_jbuf__str(&c->line, text);
}

/* {"pid":..,"tid":..,"comm":..  and no end. */
static void emit_task(struct hb_ndjson *c, const struct hb_ndjson_item *i, u64 pid, u64 tid)
{
	key(c, i);
	hb_jbuf__lit(&c->line, "{\"pid\":");
	hb_jbuf__u64(&c->line, pid);
	hb_jbuf__lit(&c->line, ",\"tid\":");
	hb_jbuf__u64(&c->line, tid);
	hb_jbuf__lit(&c->line, ",\"comm\":");
	hb_jbuf__str(&c->line, hb_decode__comm(c->w, hb_window__task_by_tid(c->w, (u32)tid)));
}

static void emit_waker(struct hb_ndjson *c, const struct hb_ndjson_item *i, u64 v)
{
	const struct hb_rec_offcpu *o = c->r->data;
	char buf[32];
	const char *call = hb_decode__syscall(o->wsys, buf, sizeof(buf));

	if (!v)
		return;
	emit_task(c, i, o->waker_pid, v);
	hb_jbuf__lit(&c->line, ",\"context\":");
	hb_jbuf__str(&c->line, hb_word(HB_WORDS_WCTX, o->wctx));
	if (call) {
		hb_jbuf__lit(&c->line, ",\"syscall\":");
		hb_jbuf__str(&c->line, call);
		if (hb_decode__fd_call(o->wsys))
			emit_waker_fd(c, o);
	}
	hb_jbuf__lit(&c->line, "}");
}

static void emit_ran(struct hb_ndjson *c, const struct hb_ndjson_item *i, u64 v)
{
	const struct hb_rec_offcpu *o = c->r->data;

	if (!v)
		return;
	emit_task(c, i, o->ran_pid, v);
	hb_jbuf__lit(&c->line, "}");
}

static void emit_sample_stack(struct hb_ndjson *c, const struct hb_ndjson_item *i, u64 v)
{
	const struct hb_rec_sample *s = c->r->data;

	if (!v && !s->kstack)
		return;
	key(c, i);
	hb_stackjson__array(c->stacks, &c->line, c->r->task ? c->r->task->pid : 0, (u32)v, s->kstack);
}

#define TASK_DOC                                                                                             \
	"asyncio task: address of its root coroutine, hex, and its name, where that was read; absent "       \
	"outside of one"
#define TIMED_DOC "ns inside the call; absent when only its entry was probed"
static const struct special {
	const char *type, *member;
	const char *key; /* NULL: the member is not written by itself */
	emit_fn emit;	 /* NULL: as its role says */
	const char *doc; /* NULL: the member's own */
} specials[] = {
    {"accel", "dur", "dur", emit_accel_dur, TIMED_DOC},
    {"accel", "probe", "name, api, class, layer", emit_probe,
     "the probed function, from the window's probe table"},
    {"accel", "ret", "ret", emit_ret, "result code, when known"},
    {"accel", "gx", "grid", emit_grid, "[x, y, z] of a launch"},
    {"accel", "gy", NULL, NULL, NULL},
    {"accel", "gz", NULL, NULL, NULL},
    {"accel", "bx", "block", emit_block, "[x, y, z] of a launch"},
    {"accel", "by", NULL, NULL, NULL},
    {"accel", "bz", NULL, NULL, NULL},
    {"accel", "stream", "stream", emit_stream, "handle, hex; \"0x0\" = default stream"},
    {"accel", "handle", "handle, function, graph, communicator, event or memory", emit_handle,
     "handle, hex; the key says what it is"},
    {"accel", "bytes", "bytes", emit_bytes,
     "bytes copied, set, allocated or reduced; a collective has `elements` too"},
    {"accel", "kind", "kind or datatype", emit_kind,
     "copy: HtoH, HtoD, DtoH, DtoD, default; collective: its `datatype`; else the number"},
    {"accel", "shm", "shared_bytes", emit_known, NULL},
    {"accel", "nested", "nested", emit_known, NULL},
    {"accel", "flags", "inner, args_unreadable", emit_accel_flags, "true, or absent"},
    {"offcpu", "ready", "runnable_ns", NULL, NULL},
    {"offcpu", "sysno", "syscall", NULL, "system call slept in; absent outside of one"},
    {"offcpu", "chan", "chan", emit_chan,
     "what it slept on: `futex 0x..`, `unix INODE -> INODE PATH`, `tcp A:P -> B:P`, `file INODE PATH`, "
     "`pipe INODE`, `timer` .."},
    {"offcpu", "chankind", "chan_kind", NULL, NULL},
    {"offcpu", "local", NULL, NULL, NULL},
    {"offcpu", "peer", NULL, NULL, NULL},
    {"offcpu", "a0", "args, fd", emit_sleep_args,
     "first three arguments, hex; where the first is a descriptor: `fd`, and in `args` `3</path>` or "
     "`3<peer>` "
     "when it was looked up while it was open"},
    {"offcpu", "a1", NULL, NULL, NULL},
    {"offcpu", "a2", NULL, NULL, NULL},
    {"offcpu", "waker", "waker", emit_waker,
     "{pid, tid, comm, context, syscall, fd, file (path or peer)}; in softirq and hardirq the running thread "
     "is a bystander"},
    {"offcpu", "waker_pid", NULL, NULL, NULL},
    {"offcpu", "ran", "ran", emit_ran,
     "{pid, tid, comm} of who had its CPU for most of the runnable part, where that is 100 us or more; "
     "absent: not known, or the CPU was idle"},
    {"offcpu", "ran_pid", NULL, NULL, NULL},
    {"offcpu", "wa0", NULL, NULL, NULL},
    {"offcpu", "wsys", NULL, NULL, NULL},
    {"offcpu", "wctx", NULL, NULL, NULL},
    {"offcpu", "flags", "before, open", emit_sleep_flags,
     "true, or absent; before: it slept already when the window began, open: it still slept at its end"},
    {"accel", "task", "task, task_name", hb_ndjson__task, TASK_DOC},
    {"offcpu", "task", "task, task_name", hb_ndjson__task, TASK_DOC},
    {"syscall", "sysno", "name", NULL, "system call"},
    {"syscall", "a0", "args, fd", emit_call_args, "six arguments as passed, hex; the first as in `offcpu`"},
    {"syscall", "a1", NULL, NULL, NULL},
    {"syscall", "a2", NULL, NULL, NULL},
    {"syscall", "a3", NULL, NULL, NULL},
    {"syscall", "a4", NULL, NULL, NULL},
    {"syscall", "a5", NULL, NULL, NULL},
    {"sample", "sysno", "syscall", NULL, "system call it was in"},
    {"sample", "stack", "stack", emit_sample_stack, "user frames, then kernel frames"},
    {"sample", "kstack", NULL, NULL, NULL},
    {"py_call", "dur", "dur", emit_py_dur, "ns inside the call; absent when only one end of it was seen"},
    {"py_call", "func", "module, qualname, file, line", NULL,
     "the function; `module` as far as its file's place tells; absent when it could not be read"},
    {"py_call", "flags", "fields", emit_call_fields,
     "{field as asked for: value}, of those that had a value; absent where none was read"},
    {"py_field", "call", NULL, NULL, NULL}, /* that is what ts says */
    {"py_field", "num", "value", emit_field_value,
     "number, text, true, false or null; of `hash` 16 hex digits; absent for kinds without a value"},
    {"py_field", "text", NULL, NULL, NULL},
    {"py_field", "length", "length", emit_known,
     "of a str: its characters, of which `value` has the first 64 bytes"},
    {"py_field", "flags", "late", emit_field_flags, "true, or absent: read by the collector a moment later"},
    {"py_exception", "name", "exception, native", hb_ndjson__exception,
     "the class's own name; of C++ the type, and `native` is true"},
    {"py_exception", "exc_type", NULL, NULL, NULL},
    {"py_exception", "task", "task, task_name", hb_ndjson__task, TASK_DOC},
    {"py_exception", "unwound", "unwound", hb_ndjson__unwound,
     "with `rest` only: frames that all exceptions of this class from this place together went through "
     "without a handler"},
    {"py_exception", "message_hash", "message_hash", hb_ndjson__address, NULL},
    {"py_exception", "message", "message", hb_ndjson__message, "its first 64 bytes (--exceptions text)"},
    {"py_exception", "message_kind", NULL, NULL, NULL},
    {"py_exception", "message_bytes", NULL, NULL, NULL},
    {"py_exception", "origin", NULL, NULL, NULL},
    {"py_exception", "site", "function, file, line", hb_ndjson__site, "where it was raised"},
    {"py_exception", "flags", "rest", hb_ndjson__exception_flags,
     "true, or absent: `count` is of those beyond the budget, which have no line of their own; the sum over "
     "all lines is the number of exceptions"},
    {"py_gil", "dur", "dur, wait_ns", hb_ndjson__wait,
     "from the first sleep to the end of the last one; the same as `wait_ns` where it was a wait for the "
     "GIL"},
    {"py_gil", "task", "task, task_name", hb_ndjson__task, TASK_DOC},
    {"py_gil", "holder", "holder_tid", hb_ndjson__holder, "who held it when the wait began; absent: unknown"},
    {"py_gil", "handover", "handover", hb_ndjson__true,
     "true, or absent: no wait for the GIL; it was given away on request, and another had to take it first"},
    {"py_gil", "flags", "open", hb_ndjson__gil_flags,
     "true, or absent: it still waited when the window ended"},
    {"py_gc", "task", "task, task_name", hb_ndjson__task, TASK_DOC},
    {"py_gc", "generation", "generation", hb_ndjson__generation, "0 to 2; absent where that is not told"},
    {"py_gc", "how", "how", hb_ndjson__gc_how,
     "how it was seen: collector, usdt, or pending (with whatever else was due at that moment)"},
    {"accel", "correlation", "correlation", emit_known,
     "number that the work it started on the device carries too (`device`); absent: not known"},
    {"device", "gx", "grid", hb_ndjson__device_grid, "[x, y, z] of a kernel, where known"},
    {"device", "gy", NULL, NULL, NULL},
    {"device", "gz", NULL, NULL, NULL},
    {"device", "bx", "block", hb_ndjson__device_block, "[x, y, z] of a kernel, where known"},
    {"device", "by", NULL, NULL, NULL},
    {"device", "bz", NULL, NULL, NULL},
    {"device", "stream", "stream", hb_ndjson__device_stream,
     "number of the stream; absent: all of the context (a sync)"},
    {"device", "correlation", "correlation", emit_known,
     "number of the call that started it (`accel`), unique in its process; many for one graph launch; "
     "absent: not known"},
    {"device", "bytes", "bytes", emit_known, NULL},
    {"device", "graph", "graph", emit_known, "graph launch: number of the graph; absent: none, or not known"},
    {"device", "node", "node", emit_known, "graph launch: number of the node in it"},
    {"device", "queued", "queued_ns", hb_ndjson__device_queued,
     "when it came into the device's queue, since the window's start; absent: not known"},
    {"device", "waits", "waits", emit_known,
     "sync on an event: correlation of the call that recorded the event"},
    {"device", "regs", "registers", emit_known, "registers per thread"},
    {"device", "shm", "shared_bytes", emit_known, NULL},
    {"device", "context", "context", emit_known, "number of the context"},
    {"device", "copy", "copy", hb_ndjson__device_word, "memcpy: from where to where: HtoD, DtoH, .."},
    {"device", "srcmem", "from", hb_ndjson__device_word,
     "memcpy, memset: kind of memory: pageable, pinned, .."},
    {"device", "dstmem", "to", hb_ndjson__device_word, "memcpy: the same"},
    {"device", "sync", "sync", hb_ndjson__device_word,
     "what was waited for: event, stream_wait (a stream, for an event), stream, context"},
    {"device", "flags", "op_ts", hb_ndjson__device_op,
     "when the call began that started it, as its `ts`; absent: that is not in the window"},
    {"device", "wstream", "wait_stream", hb_ndjson__device_wait_stream,
     "sync on an event: stream on which it was recorded"},
    {"op", "external", "external", emit_known,
     "the operator's number in the trace (External id); absent: none"},
    {"op", "seq", "sequence", hb_ndjson__op_sequence,
     "number shared by a forward operator and its backward ones"},
    {"op", "stream", "stream", hb_ndjson__op_place, "device_annotation: number of the stream"},
    {"op", "device", "device", hb_ndjson__op_place, "device_annotation: number of the device"},
    {"op", "shapes", "shapes", NULL,
     "sizes of its inputs, a text that is JSON: [[16,559],[],..]; absent: not told"},
    {"op", "types", "types", NULL, "types of its inputs, a text that is JSON; absent: not told"},
    {"op", "values", "values", NULL,
     "a text that is JSON: values of its inputs, where one is True or False; of a collective what it says of "
     "itself: "
     "collective, dtype, group, in, out (elements), ranks, seq"},
    {"op", "flags", NULL, NULL, NULL},
    {"price", "probe", "name, api, class, layer", emit_probe, "the probed function; absent for a hook"},
};

/* Type words of the contract that differ from the record's name. */
const char *hb_ndjson__type(const char *name)
{
	static const char *const words[][2] = {
	    {"price", "receipt"}, {"py_call", "py.call"}, {"py_exception", "py.exception"},
	    {"py_gil", "py.gil"}, {"py_gc", "py.gc"},	  {"py_field", "py.field"}};

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (strcmp(name, words[i][0]) == 0)
			return words[i][1];
	return name;
}

static emit_fn by_role(const struct hb_field *f)
{
	switch (f->role) {
	case HB_ROLE_ADDR:
	case HB_ROLE_HANDLE:
	case HB_ROLE_CHAN:
	case HB_ROLE_ARG:
		return emit_hex;
	case HB_ROLE_PROBE:
		return emit_probe;
	case HB_ROLE_STACK:
		return emit_stack;
	case HB_ROLE_SOCK:
		return emit_socket;
	case HB_ROLE_SYSNO:
		return emit_sysno;
	case HB_ROLE_TSTATE:
	case HB_ROLE_WCTX:
	case HB_ROLE_CHANKIND:
	case HB_ROLE_CPUMODE:
	case HB_ROLE_HOW:
	case HB_ROLE_NOTELEVEL:
	case HB_ROLE_PYEND:
	case HB_ROLE_PYKIND:
	case HB_ROLE_DEVKIND:
	case HB_ROLE_COPY:
	case HB_ROLE_MEMKIND:
	case HB_ROLE_SYNCKIND:
	case HB_ROLE_OPKIND:
		return emit_word;
	case HB_ROLE_LOC:
		return emit_function;
	case HB_ROLE_COMM:
		return emit_comm;
	case HB_ROLE_STR:
		return emit_string;
	case HB_ROLE_LABEL:
		return emit_label;
	default:
		return f->is_signed ? emit_signed : emit_unsigned;
	}
}

static const struct special *special_of(const char *type, const char *member)
{
	for (size_t i = 0; i < sizeof(specials) / sizeof(*specials); i++)
		if (!strcmp(specials[i].type, type) && !strcmp(specials[i].member, member))
			return &specials[i];
	return NULL;
}

/* What names a record comes first, long stacks last: lines are read by people too. */
static unsigned rank(const struct hb_field *f)
{
	switch (f->role) {
	case HB_ROLE_DUR:
		return 0;
	case HB_ROLE_PROBE:
	case HB_ROLE_SYSNO:
	case HB_ROLE_COMM:
	case HB_ROLE_STR:
	case HB_ROLE_LABEL:
	case HB_ROLE_LOC:
		return 1;
	case HB_ROLE_STACK:
		return 3;
	default:
		return 2;
	}
}

static void add_item(struct hb_ndjson_plan *p, const struct hb_type *t, const struct hb_field *f)
{
	const struct special *s = special_of(t->name, f->name);
	struct hb_ndjson_item *i = &p->item[p->n];

	if (f->role == HB_ROLE_PAD || (s && !s->key) || p->n == HB_NDJSON_KEYS)
		return;
	i->f = f;
	i->emit = s && s->emit ? s->emit : by_role(f);
	i->doc = s && s->doc ? s->doc : f->doc;
	i->name = s ? s->key : NULL;
	/* "args, fd": a member that gives several keys is described by all of them and writes under the first
	 */
	snprintf(i->key, sizeof(i->key), ",\"%.*s%s\":", s ? (int)strcspn(s->key, " ,") : 40,
		 s ? s->key : f->name, !s && f->role == HB_ROLE_NS ? "_ns" : "");
	i->key_size = strlen(i->key);
	p->n++;
}

void hb_ndjson__plan(struct hb_ndjson_plan *p, const struct hb_type *t)
{
	p->type = hb_ndjson__type(t->name);
	for (unsigned r = 0; r < 4; r++)
		for (unsigned k = 0; k < t->n_fields; k++)
			if (rank(&t->fields[k]) == r)
				add_item(p, t, &t->fields[k]);
}
