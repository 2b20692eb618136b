/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analysis/model/usage.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/model/decode.h"
#include "analysis/model/rows.h"
#include "analysis/model/spanname.h"
#include "base/text.h"

struct hb_usage {
	const struct hb_slices *s;
	struct hb_rows rows;  /* by hash of kind and name (or the next free one after it) */
	struct hb_map *known; /* hash of what needs no name to be made -> index of its row + 1 */
	u64 records[HB_USAGE_KINDS];
	bool oom;
};

const char *hb_usage__kind_name(enum hb_usage_kind k)
{
	static const char *const names[HB_USAGE_KINDS] = {[HB_USAGE_STEP] = "step",
							  [HB_USAGE_DEVICE] = "device",
							  [HB_USAGE_CALL] = "call",
							  [HB_USAGE_WAIT] = "wait",
							  [HB_USAGE_GIL] = "GIL",
							  [HB_USAGE_GC] = "collection",
							  [HB_USAGE_EXCEPTION] = "exception",
							  [HB_USAGE_PYCALL] = "Python call",
							  [HB_USAGE_OP] = "operator",
							  [HB_USAGE_SYSCALL] = "system call",
							  [HB_USAGE_CPU] = "CPU",
							  [HB_USAGE_FUNCTION] = "function",
							  [HB_USAGE_KERNEL] = "kernel"};

	return k < HB_USAGE_KINDS ? names[k] : "?";
}

/* ---- slices ---- */

void hb_slices__of_time(struct hb_slices *s, u64 begin, u64 end)
{
	*s = (struct hb_slices){.n = HB_SLICES};
	for (u32 i = 0; i <= HB_SLICES; i++)
		s->bound[i] = begin + (u64)((unsigned __int128)(end - begin) * i / HB_SLICES);
}

bool hb_slices__of_steps(struct hb_slices *s, const struct hb_series *x)
{
	u32 n = x && x->n < HB_SLICES ? x->n : HB_SLICES;

	if (!x || x->n < HB_SLICES_LEAST)
		return false;
	*s = (struct hb_slices){.n = n};
	for (u32 i = 0; i < n; i++) {
		u32 first = (u32)((u64)x->n * i / n), end = (u32)((u64)x->n * (i + 1) / n);

		s->bound[i] = x->step[first].begin;
		s->steps[i] = end - first;
	}
	s->bound[n] = x->step[x->n - 1].end;
	return true;
}

static u32 slice_of(const struct hb_slices *s, u64 t)
{
	u32 low = 0, high = s->n;

	while (low + 1 < high) {
		u32 mid = low + (high - low) / 2;

		if (s->bound[mid] <= t)
			low = mid;
		else
			high = mid;
	}
	return low;
}

/* ---- rows ---- */

static u64 key_of(u8 kind, const char *name)
{
	return hb_hash64(hb_hash_bytes(name, strlen(name)) + kind);
}

static struct hb_usage_row *row_of(struct hb_usage *u, u8 kind, const char *name)
{
	struct hb_usage_row *r;
	char clean[1024];

	snprintf(clean, sizeof(clean), "%s", name);
	name = hb_text__clean(clean);
	for (u64 key = key_of(kind, name);; key++) {
		r = hb_rows__get(&u->rows, key, NULL);
		if (!r || (r->name && r->kind == kind && strcmp(r->name, name) == 0))
			break;
		if (r->name)
			continue;
		r->kind = kind;
		r->name = strdup(name);
		break;
	}
	if (r && r->name)
		return r;
	u->oom = true;
	return NULL;
}

static void add(const struct hb_usage *u, struct hb_usage_row *r, u64 begin, u64 end, bool timed)
{
	const struct hb_slices *s = u->s;
	u32 i;

	if (end < s->bound[0] || begin >= s->bound[s->n])
		return;
	i = slice_of(s, begin);
	if (begin >= s->bound[0]) {
		r->in_count[i]++;
		r->count++;
	}
	r->timed |= timed;
	for (; i < s->n && s->bound[i] < end; i++) {
		u64 ns = hb_overlap(begin, end, s->bound[i], s->bound[i + 1]);

		r->in_ns[i] += ns;
		r->ns += ns;
	}
}

/* ---- threads ---- */

/* What a thread is for: "worker-12" and "worker-3" are "worker-#". */
static void role_of(const struct hb_timeline *tl, u32 thread, char *buf, size_t size)
{
	size_t n;

	snprintf(buf, size, "%s",
		 hb_decode__comm(hb_timeline__window(tl), hb_timeline__thread(tl, thread)->task));
	for (n = strlen(buf); n && buf[n - 1] >= '0' && buf[n - 1] <= '9'; n--)
		;
	if (buf[n])
		snprintf(buf + n, size - n, "#");
}

static const struct source {
	u8 list, kind;
	bool by_thread; /* the name begins with the thread's */
} sources[] = {
    {HB_TL_CALL, HB_USAGE_CALL, false},	      {HB_TL_SLEEP, HB_USAGE_WAIT, true},
    {HB_TL_GIL, HB_USAGE_GIL, true},	      {HB_TL_GC, HB_USAGE_GC, false},
    {HB_TL_PYCALL, HB_USAGE_PYCALL, false},   {HB_TL_OP, HB_USAGE_OP, false},
    {HB_TL_RAISE, HB_USAGE_EXCEPTION, false}, {HB_TL_SYSCALL, HB_USAGE_SYSCALL, false},
};

struct thread {
	const struct hb_timeline *tl;
	u32 index;
	char role[80];
};

static struct hb_usage_row *span_row(struct hb_usage *u, const struct thread *t, const struct source *c,
				     u32 i)
{
	u64 who = c->by_thread		   ? hb_hash_bytes(t->role, strlen(t->role))
		  : c->list == HB_TL_RAISE ? hb_timeline__thread(t->tl, t->index)->pid
					   : 0;
	u64 key = hb_hash64(hb_span__key(t->tl, t->index, c->list, i) ^ hb_hash64(who + c->kind)), at;
	char buf[512], name[640];
	const char *what;
	struct hb_usage_row *r;

	if (hb_map__get(u->known, key, &at))
		return (struct hb_usage_row *)(uintptr_t)at;
	what = hb_span__name(t->tl, t->index, c->list, i, buf, sizeof(buf));
	if (c->by_thread)
		snprintf(name, sizeof(name), "%s: %s", t->role, what);
	r = row_of(u, c->kind, c->by_thread ? name : what);
	if (r && hb_map__put(u->known, key, (u64)(uintptr_t)r))
		u->oom = true;
	return r;
}

static void add_spans(struct hb_usage *u, const struct thread *t, const struct source *c, u32 n)
{
	for (u32 i = 0; i < n && !u->oom; i++) {
		const struct hb_span *s = hb_timeline__span(t->tl, t->index, c->list, i);
		struct hb_usage_row *r;

		if (c->list == HB_TL_CALL && ((const struct hb_tl_call *)s)->flags & HB_AFLAG_INNER)
			continue;
		r = span_row(u, t, c, i);
		if (!r)
			return;
		r->counted = true;
		add(u, r, s->begin, s->end, s->end > s->begin);
	}
	u->records[c->kind] += n;
}

static u32 spans_of(const struct hb_timeline *tl, u32 thread, u8 list)
{
	u32 n = 0;

	switch (list) {
#define COUNT(KIND, name, type, record)                                                                      \
	case HB_TL_##KIND:                                                                                   \
		hb_timeline__##name(tl, thread, &n);                                                         \
		break;
		HB_TL_LISTS(COUNT)
#undef COUNT
	}
	return n;
}

/* ---- samples ---- */

/* A sample's time lies around its moment, in the slice of that moment. */
static void add_weight(const struct hb_usage *u, struct hb_usage_row *r, const struct hb_tl_sample *s)
{
	u32 i;

	if (s->at.begin < u->s->bound[0] || s->at.begin >= u->s->bound[u->s->n])
		return;
	i = slice_of(u->s, s->at.begin);
	r->timed = true;
	r->in_count[i]++;
	r->count++;
	r->in_ns[i] += s->weight;
	r->ns += s->weight;
}

static const char *leaf_name(const struct thread *t, const struct hb_tl_sample *s, char *buf, size_t size)
{
	const struct hb_window *w = hb_timeline__window(t->tl);
	u32 pid = hb_timeline__thread(t->tl, t->index)->pid, raw = s->kstack ? s->kstack : s->at.stack;
	struct hb_stack st = raw ? hb_window__stack(w, pid, raw) : (struct hb_stack){0};
	const struct hb_loc *l = st.n ? hb_window__loc(w, st.locs[st.n - 1]) : NULL;

	return l ? hb_decode__frame(w, l, HB_FRAME_MARKED, buf, size) : "[no stack]";
}

static void add_samples(struct hb_usage *u, const struct thread *t)
{
	u32 n, pid = hb_timeline__thread(t->tl, t->index)->pid;
	const struct hb_tl_sample *s = hb_timeline__samples(t->tl, t->index, &n);
	struct hb_usage_row *cpu = n ? row_of(u, HB_USAGE_CPU, t->role) : NULL, *r;
	char buf[512];

	for (u32 i = 0; cpu && i < n && !u->oom; i++) {
		u64 raw = s[i].kstack ? s[i].kstack : s[i].at.stack, at;
		u64 key = hb_hash64(((u64)pid << 32 | raw) ^ hb_hash64(HB_USAGE_FUNCTION));

		add_weight(u, cpu, &s[i]);
		if (hb_map__get(u->known, key, &at)) {
			add_weight(u, (struct hb_usage_row *)(uintptr_t)at, &s[i]);
			continue;
		}
		r = row_of(u, HB_USAGE_FUNCTION, leaf_name(t, &s[i], buf, sizeof(buf)));
		if (!r || hb_map__put(u->known, key, (u64)(uintptr_t)r))
			u->oom = true;
		else
			add_weight(u, r, &s[i]);
	}
	u->records[HB_USAGE_CPU] += n;
	u->records[HB_USAGE_FUNCTION] += n;
}

static void add_threads(struct hb_usage *u, const struct hb_host *h)
{
	const struct hb_timeline *tl = hb_host__timeline(h);

	for (u32 i = 0; i < hb_timeline__threads(tl) && !u->oom; i++) {
		struct thread t = {.tl = tl, .index = i};

		role_of(tl, i, t.role, sizeof(t.role));
		for (size_t k = 0; k < sizeof(sources) / sizeof(*sources); k++)
			add_spans(u, &t, &sources[k], spans_of(tl, i, sources[k].list));
		add_samples(u, &t);
	}
}

/* ---- devices ---- */

static void add_sets(struct hb_usage *u, const char *name, const struct hb_ivs *s)
{
	struct hb_usage_row *r = row_of(u, HB_USAGE_DEVICE, name);

	for (size_t i = 0; r && i < s->n; i++)
		add(u, r, s->v[i].begin, s->v[i].end, true);
}

static void add_device(struct hb_usage *u, const struct hb_window *w, const struct hb_device *d)
{
	struct hb_ivs active = {0};
	char name[64];

	for (u32 i = 0; i < d->n_ops && !u->oom; i++) {
		const struct hb_device_op *o = &d->op[i];
		struct hb_usage_row *r;

		snprintf(name, sizeof(name), "memcpy %s", hb_word(HB_WORDS_COPY, o->copy));
		r = row_of(u, HB_USAGE_KERNEL,
			   o->kind == HB_DEVKIND_MEMCPY ? name : hb_window__string(w, o->name));
		if (!r)
			return;
		r->counted = true;
		add(u, r, o->begin, o->end, true);
	}
	u->records[HB_USAGE_KERNEL] += d->n_ops;
	u->records[HB_USAGE_DEVICE] += d->n_ops;
	hb_device__active(d, &active);
	hb_ivs__join(&active);
	u->oom |= active.oom;
	snprintf(name, sizeof(name), "device %u busy", d->number);
	add_sets(u, name, &active);
	hb_ivs__free(&active);
	snprintf(name, sizeof(name), "device %u idle for the host", d->number);
	add_sets(u, name, d->host_idle);
}

/* What is known of a device from calls alone. */
static void add_states(struct hb_usage *u, const struct hb_host *h, u32 pid)
{
	static const char *const names[] = {[HB_BUSY_UNKNOWN] = "not known whether busy",
					    [HB_BUSY_BUSY] = "known busy",
					    [HB_BUSY_IDLE] = "known idle"};
	u32 n;
	const struct hb_busy_span *b = hb_busy__spans(hb_host__busy(h), pid, &n);

	for (u32 i = 0; i < n && !u->oom; i++) {
		struct hb_usage_row *r = row_of(u, HB_USAGE_DEVICE, names[hb_busy_span__state(&b[i])]);

		if (r)
			add(u, r, b[i].begin, hb_busy_span__end(&b[i]), true);
	}
	u->records[HB_USAGE_DEVICE] += n;
}

/* ---- steps ---- */

static void add_steps(struct hb_usage *u, const struct hb_series *x)
{
	const struct hb_slices *s = u->s;

	for (u32 i = 0, slice = 0, in = 0; i < x->n && !u->oom; i++, in++) {
		const struct hb_step *p = &x->step[i];
		const struct {
			const char *name;
			u64 ns, count;
		} part[] = {{"length", p->end - p->begin, 0},
			    {"waits for the device", p->wait_ns, 0},
			    {"in other timed calls", p->api_ns, 0},
			    {"before the first call", p->pause_ns, 0},
			    {"on a CPU", p->run_ns, 0},
			    {"asleep", p->sleep_ns, 0},
			    {"runnable without a CPU", p->ready_ns, 0},
			    {"launches, graphs and eager", 0, (u64)p->launches + p->graphs},
			    {"copies", 0, p->copies},
			    {"synchronisations", 0, p->syncs}};

		if (in == s->steps[slice]) {
			slice++;
			in = 0;
		}
		for (size_t k = 0; k < sizeof(part) / sizeof(*part); k++) {
			struct hb_usage_row *r = row_of(u, HB_USAGE_STEP, part[k].name);

			if (!r)
				return;
			r->timed |= part[k].ns != 0;
			r->counted |= part[k].count != 0;
			r->in_ns[slice] += part[k].ns;
			r->ns += part[k].ns;
			r->in_count[slice] += part[k].count;
			r->count += part[k].count;
		}
	}
	u->records[HB_USAGE_STEP] += x->n;
}

/* ---- all ---- */

static bool init(struct hb_usage *u)
{
	u->known = hb_map__new();
	return u->known && !hb_rows__init(&u->rows, sizeof(struct hb_usage_row));
}

static void drop_row(void *row)
{
	free(((struct hb_usage_row *)row)->name);
}

struct hb_usage *hb_usage__build(const struct hb_host *h, const struct hb_devices *d,
				 const struct hb_slices *s, const struct hb_series *series,
				 struct hb_error *e)
{
	struct hb_usage *u = calloc(1, sizeof(*u));
	const struct hb_device *v;
	bool any = false;

	if (!u || !init(u)) {
		if (u)
			hb_map__free(u->known);
		free(u);
		hb_error__nomem(e, "what the window was spent on");
		return NULL;
	}
	u->s = s;
	for (u32 i = 0; d && (v = hb_devices__at(d, i)) && !u->oom; i++) {
		any |= v->n_ops != 0;
		if (v->n_ops)
			add_device(u, hb_timeline__window(hb_host__timeline(h)), v);
	}
	if (!any && series)
		add_states(u, h, series->pid);
	if (series && s->steps[0])
		add_steps(u, series);
	add_threads(u, h);
	u->s = NULL;
	if (u->oom) {
		hb_usage__free(u);
		hb_error__nomem(e, "what the window was spent on");
		return NULL;
	}
	return u;
}

void hb_usage__free(struct hb_usage *u)
{
	if (!u)
		return;
	hb_map__free(u->known);
	hb_rows__free(&u->rows, drop_row);
	free(u);
}

const struct hb_usage_row *hb_usage__at(const struct hb_usage *u, u32 i)
{
	return i < u->rows.n ? u->rows.row[i] : NULL;
}

const struct hb_usage_row *hb_usage__find(const struct hb_usage *u, enum hb_usage_kind kind, const char *name)
{
	const struct hb_usage_row *r;

	for (u64 key = key_of(kind, name); (r = hb_rows__find(&u->rows, key)); key++)
		if (r->kind == kind && strcmp(r->name, name) == 0)
			return r;
	return NULL;
}

u64 hb_usage__records(const struct hb_usage *u, enum hb_usage_kind kind)
{
	return u->records[kind];
}
