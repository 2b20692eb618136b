/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Fields of Python objects. The kernel reads them in the call itself, as soon as it knows where each
 * attribute lies in objects of the types that it meets. It learns that here: what it could not read it sends,
 * and this reads on from there at once, says so in the record (late), and tells the kernel for the next time.
 */
#include "capture/session/pyfields.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/siphash.h"
#include "capture/python/field.h"

#define MAX_SAID 4 /* sentences on one field */
/* Time for readings of our own in one second: a field that the kernel can never read, in a function that is
 * called all the time, is not to keep us from the rings; nor are those that were sent before the kernel was
 * told. */
#define MAX_LATE_NS 50000000ULL

struct asked {	     /* for one field */
	u32 text;    /* string in the window */
	u32 matched; /* functions */
	u64 said[MAX_SAID];
	u32 n_said;
};

struct hb_session_pyfields {
	u64 key[2];	     /* of hashes: forgotten with the window's end */
	u64 second, late_ns; /* spent on readings in this second */
	struct asked asked[HB_PY_FIELDS];
};

int hb_session_pyfields__begin(struct hb_session *s, struct hb_error *e)
{
	if (!s->o.n_fields)
		return 0;
	s->pyfields = calloc(1, sizeof(*s->pyfields));
	if (!s->pyfields)
		return hb_error__nomem(e, "fields of Python objects");
	if (getrandom(s->pyfields->key, sizeof(s->pyfields->key), 0) != sizeof(s->pyfields->key))
		return hb_error__set(e, HB_EXIT_FAILED, -errno, "no random key for hashes: %s",
				     strerror(errno));
	return 0;
}

void hb_session_pyfields__free(struct hb_session *s)
{
	free(s->pyfields);
	s->pyfields = NULL;
}

/* Once for each sentence, and not without end. On the pump: its lock is held. */
static void say(struct hb_session *s, u32 field, const char *why)
{
	struct asked *a = &s->pyfields->asked[field];
	u64 hash = hb_hash_bytes(why, strlen(why));
	struct hb_rec_note note = {.level = HB_NOTE_WARNING};
	u32 pid = s->n_pids ? s->pids[0] : 0;
	char text[1100];

	for (u32 i = 0; i < a->n_said; i++)
		if (a->said[i] == hash)
			return;
	if (a->n_said == MAX_SAID)
		return;
	a->said[a->n_said++] = hash;
	snprintf(text, sizeof(text), "--field '%s': %s", s->o.fields[field].text, why);
	hb_warn("%s", text);
	note.text = hb_window_writer__string(s->writer, text);
	hb_collect__emit(s->collect, HB_TYPE_note, pid, pid, hb_clock__now(), &note);
}

/* ---- functions ---- */

/* One more field of a function whose variable is at hand. */
static void add(struct hb_session *s, u32 field, const struct hb_py_heap *h, u64 code, const char *function,
		struct hb_py_field_code *c)
{
	const struct hb_py_path *p = &s->o.fields[field].path;
	char all[400], why[700];
	u16 local;
	int err = hb_py_variable__find(h, code, p->variable, &local, all, sizeof(all));

	if (err == -ENOENT)
		snprintf(why, sizeof(why), "%.150s has no variable \"%s\"; it has %s", function, p->variable,
			 *all ? all : "none");
	else if (err)
		snprintf(why, sizeof(why), "the variables of %.150s could not be read", function);
	else if (c->n == HB_PY_CODE_FIELDS)
		snprintf(why, sizeof(why), "%.150s has %d fields already, which is as many as can be read",
			 function, HB_PY_CODE_FIELDS);
	if (err || c->n == HB_PY_CODE_FIELDS) {
		say(s, field, why);
		return;
	}
	c->field[c->n].field = (u16)field;
	c->field[c->n].local = local;
	c->field[c->n].steps = p->steps;
	c->field[c->n].want = p->want;
	c->n++;
}

static bool means(const struct hb_session *s, u32 field, const struct hb_py_place *at, bool qualified)
{
	return *at->file &&
	       hb_py_pattern__matches(&s->o.fields[field].function, at->file, at->func, qualified);
}

bool hb_session_pyfields__judge(struct hb_session *s, u32 pid, u64 code, const struct hb_py_place *at,
				bool qualified)
{
	struct hb_py_field_code c = {0};
	struct hb_py_heap h;
	bool matched = false;

	for (u32 i = 0; s->pyfields && i < s->o.n_fields; i++) {
		if (!means(s, i, at, qualified))
			continue;
		s->pyfields->asked[i].matched++;
		matched = true;
		if (!hb_session_python__heap(s, pid, code, &h))
			continue;
		if (h.off.minor > HB_PY_NEWEST)
			say(s, i, "how objects lie in this version of Python is not known");
		else
			add(s, i, &h, code, at->func, &c);
	}
	if (!c.n)
		return matched;
	hb_py_heap__layout(&h, &c.heap);
	if (hb_bpf__set_fields(s->bpf, pid, code, &c))
		say(s, c.field[0].field, "more functions have fields than the kernel was given room for");
	return true;
}

/* ---- values ---- */

static void emit(struct hb_session *s, const struct hb_wire *w, u32 field, struct hb_rec_py_field *rec,
		 const char *text)
{
	struct hb_session_pyfields *f = s->pyfields;

	if (!f->asked[field].text)
		f->asked[field].text = hb_window_writer__string(s->writer, s->o.fields[field].text);
	rec->field = f->asked[field].text;
	if (rec->kind == HB_PYKIND_STR && s->o.capture_strings) {
		rec->text = hb_window_writer__string(s->writer, text);
	} else if (rec->kind == HB_PYKIND_STR) {
		u64 parts[2] = {hb_siphash(f->key, text, strlen(text)), rec->length};

		rec->kind = HB_PYKIND_HASH;
		rec->num = hb_siphash(f->key, parts, sizeof(parts));
	}
	hb_collect__instead(s->collect, HB_TYPE_py_field, w->pid, w->tid, rec->call, rec);
}

struct planning {
	struct hb_session *s;
	u32 pid, field;
};

static void plan(u64 type, u32 step, const struct hb_py_plan *p, void *arg)
{
	const struct planning *l = arg;

	hb_bpf__plan_field(l->s->bpf, l->pid, type, step == HB_PY_VALUE ? step : HB_PY_STEP(l->field, step),
			   p);
}

static bool may_read(struct hb_session_pyfields *f, u64 now)
{
	if (now / 1000000000ULL != f->second)
		f->late_ns = 0;
	f->second = now / 1000000000ULL;
	return f->late_ns < MAX_LATE_NS;
}

static void read_on(struct hb_session *s, const struct hb_wire *w, const struct hb_py_field_read *r,
		    struct hb_py_value *v)
{
	struct planning l = {s, w->pid, r->field};
	u64 begin = hb_clock__now();
	struct hb_py_heap h;
	char why[700] = "";

	memset(v, 0, sizeof(*v));
	v->kind = HB_PYKIND_UNREADABLE;
	if (!may_read(s->pyfields, begin) || !hb_session_python__heap(s, w->pid, r->code, &h))
		return;
	hb_py_path__follow(&h, &s->o.fields[r->field].path, r->step, r->object, v, plan, &l, why,
			   sizeof(why));
	if (why[0])
		say(s, r->field, why);
	s->pyfields->late_ns += hb_clock__now() - begin;
}

static void on_field(const struct hb_wire *w, const void *payload, void *arg)
{
	const struct hb_py_field_read *r = payload;
	struct hb_session *s = arg;
	struct hb_rec_py_field rec = {.call = r->call, .num = r->num, .length = r->length, .kind = r->kind};
	struct hb_py_value v = {0};

	if (r->field >= s->o.n_fields || w->bytes < sizeof(*r))
		return;
	if (r->kind == HB_PY_KIND_ASK || r->kind == HB_PYKIND_OBJECT) {
		read_on(s, w, r, &v);
		rec.flags = v.kind != HB_PYKIND_UNREADABLE;
		rec.kind = v.kind;
		rec.num = v.num;
		rec.length = v.length;
	} else if (r->kind == HB_PYKIND_STR) {
		hb_py_value__text(r->text, r->bytes, r->width ? r->width : 1, v.text);
	} else {
		rec.length = 0;
	}
	emit(s, w, r->field, &rec, v.text);
}

void hb_session_pyfields__unread(struct hb_session *s, const struct hb_wire *w, const struct hb_py_place *at,
				 bool qualified, u64 call)
{
	struct hb_rec_py_field rec = {.call = call, .kind = HB_PYKIND_UNREADABLE};

	for (u32 i = 0; s->pyfields && i < s->o.n_fields; i++)
		if (means(s, i, at, qualified))
			emit(s, w, i, &rec, "");
}

int hb_session_pyfields__subscribe(struct hb_session *s)
{
	return s->pyfields ? hb_collect__divert(s->collect, HB_WIRE_PY_FIELD, on_field, s) : 0;
}

void hb_session_pyfields__forget(struct hb_session *s, u32 pid)
{
	if (s->pyfields)
		hb_bpf__forget_fields(s->bpf, pid);
}

void hb_session_pyfields__account(struct hb_session *s)
{
	for (u32 i = 0; s->pyfields && i < s->o.n_fields; i++) {
		if (s->pyfields->asked[i].matched)
			continue;
		hb_warn("--field '%s': no such function was called", s->o.fields[i].text);
		hb_session__note(s, HB_NOTE_WARNING, "--field '%s': no such function was called",
				 s->o.fields[i].text);
	}
}
