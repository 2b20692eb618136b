/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Python's exceptions, waits for the GIL, collections: decoded, and counted. */
#include "analysis/model/pyevents.h"
#include "analysis/model/private.h"

#include <stdio.h>
#include <string.h>

#include "base/demangle.h"
#include "base/text.h"
#include "schema/pyevents.h"

/* ---- decoding ---- */

const char *hb_decode__exception(const hb_label *name, unsigned origin, char *buf, size_t size)
{
	char text[sizeof(hb_label) + 1] = "", plain[256];
	const char *s = text;

	memcpy(text, name, sizeof(hb_label));
	if (origin)
		s = hb_demangle__type(text, plain, sizeof(plain));
	snprintf(buf, size, "%s", *s ? s : "?");
	return hb_text__clean(buf);
}

static size_t put_utf8(char *to, u32 c)
{
	if (c < 0x80) {
		to[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		to[0] = (char)(0xc0 | c >> 6);
		to[1] = (char)(0x80 | (c & 63));
		return 2;
	}
	if (c < 0x10000) {
		to[0] = (char)(0xe0 | c >> 12);
		to[1] = (char)(0x80 | (c >> 6 & 63));
		to[2] = (char)(0x80 | (c & 63));
		return 3;
	}
	to[0] = (char)(0xf0 | (c >> 18 & 7));
	to[1] = (char)(0x80 | (c >> 12 & 63));
	to[2] = (char)(0x80 | (c >> 6 & 63));
	to[3] = (char)(0x80 | (c & 63));
	return 4;
}

const char *hb_decode__message(const struct hb_rec_py_exception *r, char *buf, size_t size)
{
	const u8 *from = (const u8 *)&r->message;
	u32 kind = r->message_kind, bytes = r->message_bytes;
	size_t n = 0;

	*buf = 0;
	if ((kind != 1 && kind != 2 && kind != 4) || bytes > sizeof(r->message))
		return buf;
	for (u32 i = 0; i + kind <= bytes && n + 5 < size; i += kind) {
		u32 c = from[i];

		if (kind > 1)
			c |= (u32)from[i + 1] << 8;
		if (kind > 2)
			c |= (u32)from[i + 2] << 16 | (u32)from[i + 3] << 24;
		n += put_utf8(buf + n, c <= 0x10ffff ? c : '?');
	}
	buf[n] = 0;
	return hb_text__clean(buf);
}

const struct hb_loc *hb_decode__site(const struct hb_window *w, u32 pid, u32 site)
{
	struct hb_stack s = site ? hb_window__stack(w, pid, site) : (struct hb_stack){0};

	return s.n ? hb_window__loc(w, s.locs[s.n - 1]) : NULL;
}

const struct hb_task *hb_decode__nstask(const struct hb_window *w, u32 pid, u32 nstid)
{
	const struct hb_task *t = nstid ? hb_window__task_by_tid(w, nstid) : NULL;
	u32 n;

	if (!nstid || (t && t->pid == pid && t->nstid == nstid))
		return t;
	t = hb_window__tasks(w, &n);
	for (u32 i = 0; i < n; i++)
		if (t[i].pid == pid && t[i].nstid == nstid)
			return &t[i];
	return NULL;
}

/* ---- counting ---- */

static u64 mix(u64 a, u64 b)
{
	return hb_hash64(a ^ hb_hash64(b));
}

void hb_model__py_exception(struct hb_model *m, struct thread *t, const struct hb_rec_py_exception *r)
{
	u64 key = mix(r->exc_type, (u64)t->pub.proc->idx << 32 | r->site);
	bool fresh;
	struct hb_exception_stat *s = hb_rows__get(&m->exceptions, key, &fresh);

	if (!s) {
		m->oom = true;
		return;
	}
	if (fresh) {
		s->proc = t->pub.proc;
		s->name = r->name;
		s->origin = r->origin;
		s->site = r->site;
	}
	s->count += r->count;
	s->unwound += r->unwound;
}

static bool add_holder(struct hb_model *m, struct thread *t, const struct hb_rec_py_gil *r)
{
	struct hb_holder_stat *s;

	if (r->handover)
		return true;
	s = hb_rows__get(&m->holders, (u64)t->pub.proc->idx << 32 | r->holder, NULL);
	if (!s)
		return false;
	s->proc = t->pub.proc;
	s->task = hb_decode__nstask(m->w, t->pub.proc->pid, r->holder);
	s->waits++;
	s->waited_ns += r->dur;
	if (r->dur >= s->longest_ns) {
		s->longest_ns = r->dur;
		s->stack = r->holder_stack;
	}
	return true;
}

void hb_model__py_gil(struct hb_model *m, struct thread *t, const struct hb_rec_py_gil *r)
{
	struct hb_gil_stat *s = hb_rows__get(&m->gils, mix(r->gil, (u64)(uintptr_t)t), NULL);

	if (!s || !add_holder(m, t, r)) {
		m->oom = true;
		return;
	}
	s->thread = &t->pub;
	s->gil = r->gil;
	if (r->handover) {
		s->handovers++;
		s->handover_ns += r->dur;
	} else if (hb_hist__add(&s->wait, r->dur)) {
		m->oom = true;
	}
}

void hb_model__py_gc(struct hb_model *m, struct thread *t, const struct hb_rec_py_gc *r)
{
	struct hb_gc_stat *s = hb_rows__get(&m->gcs, (u64)t->pub.proc->idx << 32 | r->generation, NULL);

	if (!s || hb_hist__add(&s->dur, r->dur)) {
		m->oom = true;
		return;
	}
	s->proc = t->pub.proc;
	s->generation = r->generation;
}

static int cmp_exceptions(const void *a, const void *b)
{
	CMP_ROWS(hb_exception_stat, x, y, a, b);

	BIGGER_FIRST(x->count, y->count);
	BIGGER_FIRST(y->site, x->site);
	return 0;
}

static int cmp_gils(const void *a, const void *b)
{
	CMP_ROWS(hb_gil_stat, x, y, a, b);

	BIGGER_FIRST(x->wait.total, y->wait.total);
	BIGGER_FIRST(x->handover_ns, y->handover_ns);
	return 0;
}

static int cmp_holders(const void *a, const void *b)
{
	CMP_ROWS(hb_holder_stat, x, y, a, b);

	BIGGER_FIRST(x->waited_ns, y->waited_ns);
	return 0;
}

static int cmp_gcs(const void *a, const void *b)
{
	CMP_ROWS(hb_gc_stat, x, y, a, b);

	BIGGER_FIRST(x->dur.total, y->dur.total);
	return 0;
}

void hb_model__finish_pyevents(struct hb_model *m)
{
	hb_rows__sort(&m->exceptions, cmp_exceptions);
	hb_rows__sort(&m->gils, cmp_gils);
	hb_rows__sort(&m->holders, cmp_holders);
	hb_rows__sort(&m->gcs, cmp_gcs);
}
