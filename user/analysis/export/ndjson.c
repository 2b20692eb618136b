/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One JSON object a line; docs/ndjson.md is the contract. A record is written by a plan: for each member the
 * function that writes it, chosen by the member's role. `special` lists where a type's contract differs from
 * that rule, so a new record type appears without a line here.
 */
#include "analysis/export/ndjson.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/export/export.h"
#include "analysis/export/json.h"
#include "analysis/export/stackjson.h"
#include "analysis/model/decode.h"
#include "base/map.h"

#define FLUSH_AT   (256 * 1024)
#define MAX_FIELDS 32
#define TASKS	   65536

struct span {
	size_t at, size;
};

struct ctx {
	struct hb_window *w;
	FILE *out;
	struct hb_buf line; /* many lines, up to FLUSH_AT */
	struct hb_buf text; /* prepared pieces that `task` and `probe` point into */
	struct span *task;  /* ,"pid":..,"tid":..,"comm":..   size 0 = not made yet */
	struct span *probe; /* ,"name":..,"api":..,"class":..,"layer":.. */
	u32 n_probes;
	struct hb_stackjson *stacks;
	const struct hb_record *r;
};

struct item;
typedef void (*emit_fn)(struct ctx *c, const struct item *i, u64 v);

struct item {	      /* one key of one type */
	char key[48]; /* ,"name": */
	size_t key_size;
	emit_fn emit;
	const struct hb_field *f;
	const char *name, *doc;
};

struct plan {
	const char *type; /* in "type" */
	struct item item[MAX_FIELDS];
	unsigned n;
};

static void key(struct ctx *c, const struct item *i)
{
	hb_buf__add(&c->line, i->key, i->key_size);
}

/* ---- by role ---- */

static void emit_unsigned(struct ctx *c, const struct item *i, u64 v)
{
	key(c, i);
	hb_json__u64(&c->line, v);
}

static void emit_signed(struct ctx *c, const struct item *i, u64 v)
{
	key(c, i);
	hb_json__s64(&c->line, (s64)v);
}

static void emit_hex(struct ctx *c, const struct item *i, u64 v)
{
	key(c, i);
	hb_json__hex(&c->line, v);
}

static void emit_known(struct ctx *c, const struct item *i, u64 v)
{
	if (v)
		emit_unsigned(c, i, v);
}

static void emit_text(struct ctx *c, const struct item *i, const char *s)
{
	key(c, i);
	hb_json__str(&c->line, s);
}

static void emit_string(struct ctx *c, const struct item *i, u64 v)
{
	if (v)
		emit_text(c, i, hb_window__string(c->w, (u32)v));
}

static void emit_comm(struct ctx *c, const struct item *i, u64 v)
{
	char name[sizeof(hb_comm) + 1] = "";

	(void)v;
	memcpy(name, (const char *)c->r->data + i->f->offset, sizeof(hb_comm));
	emit_text(c, i, name);
}

static void emit_word(struct ctx *c, const struct item *i, u64 v)
{
	static const int lists[] = {
	    [HB_ROLE_TSTATE] = HB_WORDS_TSTATE,	    [HB_ROLE_WCTX] = HB_WORDS_WCTX,
	    [HB_ROLE_CHANKIND] = HB_WORDS_CHANKIND, [HB_ROLE_CPUMODE] = HB_WORDS_CPUMODE,
	    [HB_ROLE_HOW] = HB_WORDS_HOW,	    [HB_ROLE_NOTELEVEL] = HB_WORDS_NOTELEVEL,
	};

	emit_text(c, i, hb_word((enum hb_words)lists[i->f->role], (unsigned)v));
}

static void emit_sysno(struct ctx *c, const struct item *i, u64 v)
{
	char buf[32];
	const char *name = hb_decode__syscall((unsigned)v, buf, sizeof(buf));

	if (name)
		emit_text(c, i, name);
}

static void emit_socket(struct ctx *c, const struct item *i, u64 v)
{
	char buf[32];

	if (v)
		emit_text(c, i, hb_decode__socket(v, buf, sizeof(buf)));
}

static void make_probe(struct ctx *c, struct span *s, u32 id)
{
	static const struct hb_probe_row none;
	const struct hb_probe_row *row = hb_window__probe(c->w, id);

	row = row ? row : &none;
	s->at = c->text.size;
	hb_json__lit(&c->text, ",\"name\":");
	hb_json__str(&c->text, hb_window__string(c->w, row->name));
	hb_json__lit(&c->text, ",\"api\":");
	hb_json__str(&c->text, hb_window__string(c->w, row->api));
	hb_json__lit(&c->text, ",\"class\":");
	hb_json__str(&c->text, hb_word(HB_WORDS_CLASS, row->cls));
	hb_json__lit(&c->text, ",\"layer\":");
	hb_json__str(&c->text, hb_word(HB_WORDS_LAYER, row->layer));
	s->size = c->text.size - s->at;
}

static void emit_probe(struct ctx *c, const struct item *i, u64 v)
{
	struct span *s = &c->probe[v <= c->n_probes ? v : 0];

	(void)i;
	if (v == UINT32_MAX) /* a price's hook has its own name */
		return;
	if (!s->size)
		make_probe(c, s, v <= c->n_probes ? (u32)v : 0);
	hb_buf__add(&c->line, c->text.data + s->at, s->size);
}

static void emit_stack(struct ctx *c, const struct item *i, u64 v)
{
	if (!v)
		return;
	key(c, i);
	hb_stackjson__array(c->stacks, &c->line, c->r->task ? c->r->task->pid : 0, (u32)v, 0);
}

/* ---- where a type differs ---- */

static const struct hb_probe_row *row_of(struct ctx *c)
{
	static const struct hb_probe_row none;
	const struct hb_rec_accel *a = c->r->data;
	const struct hb_probe_row *row = hb_window__probe(c->w, a->probe);

	return row ? row : &none;
}

static void emit_accel_dur(struct ctx *c, const struct item *i, u64 v)
{
	const struct hb_rec_accel *a = c->r->data;

	if (v || (a->flags & HB_AFLAG_TIMED))
		emit_unsigned(c, i, v);
}

static void emit_ret(struct ctx *c, const struct item *i, u64 v)
{
	const struct hb_rec_accel *a = c->r->data;

	if (a->flags & HB_AFLAG_RET)
		emit_signed(c, i, v);
}

static void emit_three(struct ctx *c, const struct item *i, u64 x, u64 y, u64 z)
{
	key(c, i);
	hb_json__lit(&c->line, "[");
	hb_json__u64(&c->line, x);
	hb_json__lit(&c->line, ",");
	hb_json__u64(&c->line, y);
	hb_json__lit(&c->line, ",");
	hb_json__u64(&c->line, z);
	hb_json__lit(&c->line, "]");
}

static void emit_grid(struct ctx *c, const struct item *i, u64 v)
{
	const struct hb_rec_accel *a = c->r->data;

	if (v)
		emit_three(c, i, v, a->gy, a->gz);
}

static void emit_block(struct ctx *c, const struct item *i, u64 v)
{
	const struct hb_rec_accel *a = c->r->data;

	if (v)
		emit_three(c, i, v, a->by, a->bz);
}

/* 0 is the default stream of a call that has one, and nothing for the others. */
static void emit_stream(struct ctx *c, const struct item *i, u64 v)
{
	u8 cls = v ? 0 : row_of(c)->cls;

	if (v || cls == HB_CLASS_LAUNCH || cls == HB_CLASS_GRAPH || cls == HB_CLASS_COLLECTIVE)
		emit_hex(c, i, v);
}

static void emit_handle(struct ctx *c, const struct item *i, u64 v)
{
	(void)i;
	if (!v)
		return;
	hb_json__lit(&c->line, ",");
	hb_json__str(&c->line, hb_word(HB_WORDS_HANDLE, row_of(c)->handle));
	hb_json__lit(&c->line, ":");
	hb_json__hex(&c->line, v);
}

static void emit_bytes(struct ctx *c, const struct item *i, u64 v)
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
	hb_json__lit(&c->line, ",\"elements\":");
	hb_json__u64(&c->line, v);
	if (hb_decode__datatype(hb_window__string(c->w, row->api), a->kind, &size))
		emit_unsigned(c, i, v * size);
}

/* Kind 0 is "HtoH" only where the API passes kinds at all: the runtime's copies, not its memsets. */
static void emit_kind(struct ctx *c, const struct item *i, u64 v)
{
	const struct hb_probe_row *row = row_of(c);
	const char *api = hb_window__string(c->w, row->api), *word = NULL;
	unsigned size;

	if (row->cls == HB_CLASS_COLLECTIVE) {
		word = hb_decode__datatype(api, (unsigned)v, &size);
		if (word) {
			hb_json__lit(&c->line, ",\"datatype\":");
			hb_json__str(&c->line, word);
		}
		return;
	}
	if (row->cls == HB_CLASS_COPY &&
	    (v || (row->layer == HB_LAYER_RUNTIME && strstr(hb_window__string(c->w, row->name), "emcpy"))))
		word = hb_decode__copy_kind(api, (unsigned)v);
	if (word)
		emit_text(c, i, word);
	else
		emit_known(c, i, v);
}

static void emit_accel_flags(struct ctx *c, const struct item *i, u64 v)
{
	(void)i;
	if (v & HB_AFLAG_INNER)
		hb_json__lit(&c->line, ",\"inner\":true");
	if (v & HB_AFLAG_ARGS)
		hb_json__lit(&c->line, ",\"args_unreadable\":true");
}

static void emit_chan(struct ctx *c, const struct item *i, u64 v)
{
	char buf[96];
	const char *s = hb_decode__chan(c->r->data, buf, sizeof(buf));

	(void)v;
	if (s)
		emit_text(c, i, s);
}

static void emit_args(struct ctx *c, const struct item *i, unsigned sysno, const u64 *args, unsigned n)
{
	if (hb_decode__fd_call(sysno)) {
		hb_json__lit(&c->line, ",\"fd\":");
		hb_json__s64(&c->line, (s32)args[0]);
	}
	key(c, i);
	for (unsigned k = 0; k < n; k++) {
		hb_buf__add(&c->line, k ? "," : "[", 1);
		hb_json__hex(&c->line, args[k]);
	}
	hb_json__lit(&c->line, "]");
}

static void emit_sleep_args(struct ctx *c, const struct item *i, u64 v)
{
	const struct hb_rec_offcpu *o = c->r->data;
	u64 args[] = {o->a0, o->a1, o->a2};

	(void)v;
	if (o->sysno != HB_SYSNO_NONE)
		emit_args(c, i, o->sysno, args, 3);
}

static void emit_call_args(struct ctx *c, const struct item *i, u64 v)
{
	const struct hb_rec_syscall *s = c->r->data;
	u64 args[] = {s->a0, s->a1, s->a2, s->a3, s->a4, s->a5};

	(void)v;
	emit_args(c, i, s->sysno, args, 6);
}

static void emit_waker(struct ctx *c, const struct item *i, u64 v)
{
	const struct hb_rec_offcpu *o = c->r->data;
	char buf[32];
	const char *call = hb_decode__syscall(o->wsys, buf, sizeof(buf));

	if (!v)
		return;
	key(c, i);
	hb_json__lit(&c->line, "{\"pid\":");
	hb_json__u64(&c->line, o->waker_pid);
	hb_json__lit(&c->line, ",\"tid\":");
	hb_json__u64(&c->line, v);
	hb_json__lit(&c->line, ",\"comm\":");
	hb_json__str(&c->line, hb_decode__comm(c->w, hb_window__task_by_tid(c->w, (u32)v)));
	hb_json__lit(&c->line, ",\"context\":");
	hb_json__str(&c->line, hb_word(HB_WORDS_WCTX, o->wctx));
	if (call) {
		hb_json__lit(&c->line, ",\"syscall\":");
		hb_json__str(&c->line, call);
		if (hb_decode__fd_call(o->wsys)) {
			hb_json__lit(&c->line, ",\"fd\":");
			hb_json__s64(&c->line, (s32)o->wa0);
		}
	}
	hb_json__lit(&c->line, "}");
}

static void emit_sample_stack(struct ctx *c, const struct item *i, u64 v)
{
	const struct hb_rec_sample *s = c->r->data;

	if (!v && !s->kstack)
		return;
	key(c, i);
	hb_stackjson__array(c->stacks, &c->line, c->r->task ? c->r->task->pid : 0, (u32)v, s->kstack);
}

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
    {"accel", "handle", "handle, function, graph, comm, event or memory", emit_handle,
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
     "what it slept on: `futex 0x..`, `unix INODE -> INODE`, `tcp A:P -> B:P`, `pipe INODE`, `timer` .."},
    {"offcpu", "chankind", "chan_kind", NULL, NULL},
    {"offcpu", "local", NULL, NULL, NULL},
    {"offcpu", "peer", NULL, NULL, NULL},
    {"offcpu", "a0", "fd, args", emit_sleep_args, "first three arguments, hex; `fd` where the first is one"},
    {"offcpu", "a1", NULL, NULL, NULL},
    {"offcpu", "a2", NULL, NULL, NULL},
    {"offcpu", "waker", "waker", emit_waker,
     "{pid, tid, comm, context, syscall, fd}; in softirq and hardirq the running thread is a bystander"},
    {"offcpu", "waker_pid", NULL, NULL, NULL},
    {"offcpu", "wa0", NULL, NULL, NULL},
    {"offcpu", "wsys", NULL, NULL, NULL},
    {"offcpu", "wctx", NULL, NULL, NULL},
    {"offcpu", "flags", NULL, NULL, NULL},
    {"syscall", "sysno", "name", NULL, "system call"},
    {"syscall", "a0", "fd, args", emit_call_args,
     "six arguments as passed, hex; `fd` where the first is one"},
    {"syscall", "a1", NULL, NULL, NULL},
    {"syscall", "a2", NULL, NULL, NULL},
    {"syscall", "a3", NULL, NULL, NULL},
    {"syscall", "a4", NULL, NULL, NULL},
    {"syscall", "a5", NULL, NULL, NULL},
    {"sample", "sysno", "syscall", NULL, "system call it was in"},
    {"sample", "stack", "stack", emit_sample_stack, "user frames, then kernel frames"},
    {"sample", "kstack", NULL, NULL, NULL},
    {"price", "probe", "name, api, class, layer", emit_probe, "the probed function; absent for a hook"},
};

/* Type words of the contract that differ from the record's name. */
static const char *type_word(const char *name)
{
	return strcmp(name, "price") == 0 ? "receipt" : name;
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
		return emit_word;
	case HB_ROLE_COMM:
		return emit_comm;
	case HB_ROLE_STR:
		return emit_string;
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
		return 1;
	case HB_ROLE_STACK:
		return 3;
	default:
		return 2;
	}
}

static void add_item(struct plan *p, const struct hb_type *t, const struct hb_field *f)
{
	const struct special *s = special_of(t->name, f->name);
	struct item *i = &p->item[p->n];

	if (f->role == HB_ROLE_PAD || (s && !s->key) || p->n == MAX_FIELDS)
		return;
	i->f = f;
	i->emit = s && s->emit ? s->emit : by_role(f);
	i->doc = s && s->doc ? s->doc : f->doc;
	i->name = s ? s->key : NULL;
	snprintf(i->key, sizeof(i->key), ",\"%.*s%s\":", 40, s ? s->key : f->name,
		 !s && f->role == HB_ROLE_NS ? "_ns" : "");
	i->key_size = strlen(i->key);
	p->n++;
}

static void make_plan(struct plan *p, const struct hb_type *t)
{
	p->type = type_word(t->name);
	for (unsigned r = 0; r < 4; r++)
		for (unsigned k = 0; k < t->n_fields; k++)
			if (rank(&t->fields[k]) == r)
				add_item(p, t, &t->fields[k]);
}

/* ---- lines ---- */

static int flush(struct ctx *c, struct hb_error *e)
{
	if (c->line.oom || c->text.oom)
		return hb_error__nomem(e, "ndjson lines");
	if (c->line.size && fwrite(c->line.data, 1, c->line.size, c->out) != c->line.size)
		return -errno;
	c->line.size = 0;
	return 0;
}

static void add_task(struct ctx *c, const struct hb_record *r)
{
	struct span *s = &c->task[r->task_idx];

	if (!s->size) {
		s->at = c->text.size;
		hb_json__lit(&c->text, ",\"pid\":");
		hb_json__u64(&c->text, r->task ? r->task->pid : 0);
		hb_json__lit(&c->text, ",\"tid\":");
		hb_json__u64(&c->text, r->task ? r->task->tid : 0);
		hb_json__lit(&c->text, ",\"comm\":");
		hb_json__str(&c->text, hb_decode__comm(c->w, r->task));
		s->size = c->text.size - s->at;
	}
	hb_buf__add(&c->line, c->text.data + s->at, s->size);
}

static void add_record(struct ctx *c, const struct plan *p, u64 start)
{
	const struct hb_record *r = c->r;

	hb_json__lit(&c->line, "{\"type\":\"");
	hb_buf__add(&c->line, p->type, strlen(p->type));
	hb_json__lit(&c->line, "\",\"ts\":");
	hb_json__s64(&c->line, (s64)(r->begin - start));
	add_task(c, r);
	for (unsigned i = 0; i < p->n; i++) {
		const struct item *it = &p->item[i];

		it->emit(c, it, it->f->role == HB_ROLE_COMM ? 0 : (u64)hb_field__int(it->f, r->data));
	}
	hb_json__lit(&c->line, "}\n");
}

static void add_meta(struct ctx *c, const char *name)
{
	const char *v = hb_window__meta(c->w, name);

	hb_json__lit(&c->line, ",");
	hb_json__str(&c->line, name);
	hb_json__lit(&c->line, ":");
	hb_json__str(&c->line, v ? v : "");
}

static void add_proc(struct ctx *c, const struct hb_proc *p)
{
	const struct {
		const char *key;
		u32 string;
	} texts[] = {{",\"exe\":", p->exe},
		     {",\"cmdline\":", p->cmdline},
		     {",\"cgroup\":", p->cgroup},
		     {",\"container\":", p->container}};

	hb_buf__printf(&c->line, "{\"pid\":%u,\"ppid\":%u,\"nspid\":%u,\"comm\":", p->pid, p->ppid, p->nspid);
	hb_json__str(&c->line, hb_decode__comm(c->w, hb_window__task_by_tid(c->w, p->pid)));
	for (unsigned i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		if (!texts[i].string)
			continue;
		hb_buf__add(&c->line, texts[i].key, strlen(texts[i].key));
		hb_json__str(&c->line, hb_window__string(c->w, texts[i].string));
	}
	hb_buf__printf(&c->line, ",\"how\":\"%s\",\"start_ns\":%llu,\"since_ns\":%llu}",
		       hb_word(HB_WORDS_HOW, p->how), (unsigned long long)p->start,
		       (unsigned long long)p->since);
}

static void add_damage(struct ctx *c)
{
	if (!hb_window__damage(c->w))
		return;
	hb_json__lit(&c->line, ",\"damage\":");
	hb_json__str(&c->line, hb_window__damage(c->w));
}

static void add_window(struct ctx *c)
{
	const struct hb_window_info *i = hb_window__info(c->w);
	u32 n;
	const struct hb_proc *p = hb_window__procs(c->w, &n);

	hb_buf__printf(&c->line,
		       "{\"type\":\"window\",\"version\":\"%u.%u\",\"start_ns\":%llu,\"end_ns\":%llu",
		       i->major, i->minor, (unsigned long long)i->start_ts, (unsigned long long)i->end_ts);
	add_meta(c, "host");
	add_meta(c, "kernel");
	add_meta(c, "profile");
	hb_buf__printf(&c->line, ",\"simulated\":%s,\"complete\":%s", i->simulated ? "true" : "false",
		       i->complete ? "true" : "false");
	if (hb_decode__simulated(c->w)) {
		hb_json__lit(&c->line, ",\"device\":");
		hb_json__str(&c->line, hb_decode__simulated(c->w));
	}
	add_damage(c);
	hb_json__lit(&c->line, ",\"processes\":[");
	for (u32 k = 0; k < n; k++) {
		if (k)
			hb_json__lit(&c->line, ",");
		add_proc(c, &p[k]);
	}
	hb_json__lit(&c->line, "]}\n");
}

static void add_loss(struct ctx *c)
{
	u32 n;
	const struct hb_loss_row *row = hb_window__losses(c->w, &n);

	hb_buf__printf(&c->line, "{\"type\":\"loss\",\"total\":%llu",
		       (unsigned long long)hb_decode__loss_all(c->w));
	for (unsigned k = 0; k < HB_LOSS_COUNT; k++)
		hb_buf__printf(&c->line, ",\"%s\":%llu", hb_word(HB_WORDS_LOSS, k),
			       (unsigned long long)hb_decode__loss(c->w, k));
	add_damage(c);
	hb_json__lit(&c->line, ",\"rows\":[");
	for (u32 k = 0; k < n; k++) {
		const struct hb_type *t = hb_schema__type(row[k].type);

		hb_buf__printf(&c->line, "%s{\"cause\":\"%s\"", k ? "," : "",
			       hb_word(HB_WORDS_LOSS, row[k].cause));
		if (t)
			hb_buf__printf(&c->line, ",\"of\":\"%s\"", type_word(t->name));
		if (row[k].cpu != UINT32_MAX)
			hb_buf__printf(&c->line, ",\"cpu\":%u", row[k].cpu);
		hb_buf__printf(&c->line, ",\"count\":%llu}", (unsigned long long)row[k].count);
	}
	hb_json__lit(&c->line, "]}\n");
}

static int records(struct ctx *c, struct hb_error *e)
{
	struct plan plans[HB_TYPE_MAX] = {{0}};
	u64 start = hb_window__info(c->w)->start_ts;
	struct hb_record r;
	size_t n;
	const struct hb_type *types = hb_schema__types(&n);
	int rc = 0, more;

	for (size_t i = 0; i < n; i++)
		make_plan(&plans[types[i].id], &types[i]);
	c->r = &r;
	hb_window__rewind(c->w);
	while (!rc && (more = hb_window__next(c->w, &r)) > 0) {
		add_record(c, &plans[r.type], start);
		if (c->line.size >= FLUSH_AT)
			rc = flush(c, e);
	}
	return rc;
}

static int run(struct hb_window *w, FILE *out, struct hb_error *e)
{
	struct ctx c = {.w = w, .out = out, .n_probes = hb_window__probes(w)};
	int rc;

	c.task = calloc(TASKS, sizeof(*c.task));
	c.probe = calloc((size_t)c.n_probes + 1, sizeof(*c.probe));
	c.stacks = hb_stackjson__new(w);
	if (!c.task || !c.probe || !c.stacks) {
		rc = hb_error__nomem(e, "ndjson");
	} else {
		add_window(&c);
		rc = records(&c, e);
		add_loss(&c);
		rc = rc ? rc : flush(&c, e);
	}
	hb_stackjson__free(c.stacks);
	hb_buf__free(&c.line);
	hb_buf__free(&c.text);
	free(c.task);
	free(c.probe);
	return rc;
}

HB_EXPORTER(ndjson) = {
    .name = "ndjson",
    .doc = "one JSON object a line, every record; stable, docs/ndjson.md",
    .run = run,
};

/* ---- documentation ---- */

void hb_ndjson__describe(FILE *out)
{
	size_t n;
	const struct hb_type *types = hb_schema__types(&n);

	for (size_t i = 0; i < n; i++) {
		struct plan p = {0};

		make_plan(&p, &types[i]);
		fprintf(out, "### `%s`\n\n| key | meaning |\n|---|---|\n", p.type);
		for (unsigned k = 0; k < p.n; k++) {
			if (p.item[k].name)
				fprintf(out, "| `%s` | %s |\n", p.item[k].name, p.item[k].doc);
			else
				fprintf(out, "| `%.*s` | %s |\n", (int)p.item[k].key_size - 4,
					p.item[k].key + 2, p.item[k].doc);
		}
		fputc('\n', out);
	}
}
