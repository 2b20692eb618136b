/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Work on another stream that starts when the default stream has finished, without having been told to wait.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/patterns/pattern.h"

enum { CASES, AFTER, LATE };

static const struct hb_param params[] = {
    [CASES] = {"cases", HB_UNIT_COUNT, 20, "operations that wait so"},
    [AFTER] = {"after", HB_UNIT_NS, 20000,
	       "they begin within so much of the end of work on the default stream"},
    [LATE] = {"late", HB_UNIT_NS, 20000,
	      "and at least so long after their launch and after their own stream's last work"},
    {0},
};

/* As the profilers number it: CUPTI 7, ROCm 0. */
static bool is_default(const struct hb_device *v, u32 stream)
{
	return v->stream[stream].number == 7 || v->stream[stream].number == 0;
}

static const char *const wait_event[] = {"*WaitEvent*", NULL};

struct search {
	const struct hb_look *l;
	const struct hb_device *v;
	u64 *told; /* when the process told a stream to wait for an event, in order */
	u32 n_told;
	struct last { /* work of a stream */
		u64 end, launched;
	} last[256];
	u64 cases;
};

static int cmp_u64(const void *a, const void *b)
{
	const u64 *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* Few calls are such. */
static int collect(struct search *x)
{
	const struct hb_scene *s = x->l->s;
	struct hb_named seen = {0};
	u32 cap = 0;
	int err = 0;

	for (u32 t = hb_timeline__of_pid(s->tl, x->v->pid, HB_NONE); t != HB_NONE && !err;
	     t = hb_timeline__of_pid(s->tl, x->v->pid, t)) {
		struct hb_byop_calls of = hb_byop__calls(s->byop, t, HB_OP_EVENT, HB_OP_OTHER);

		for (u32 i; !err && (i = hb_byop__next(&of)) != HB_NONE;) {
			u64 *p = x->told;

			if (!hb_scene__called(s, &of.call[i], wait_event, &seen))
				continue;
			if (x->n_told == cap) {
				cap = cap ? 2 * cap : 64;
				p = reallocarray(x->told, cap, sizeof(*p));
				err = p ? 0 : -ENOMEM;
			}
			if (err)
				break;
			x->told = p;
			x->told[x->n_told++] = of.call[i].at.begin;
		}
	}
	hb_named__free(&seen);
	if (x->n_told)
		qsort(x->told, x->n_told, sizeof(*x->told), cmp_u64);
	return err;
}

/* Was any stream told to wait for an event between its stream's last launch and this one? Which stream a
 * profiler's call does not say. */
static bool told_to_wait(const struct search *x, u64 from, u64 to)
{
	u32 lo = 0, hi = x->n_told;

	while (lo < hi) {
		u32 mid = lo + (hi - lo) / 2;

		if (x->told[mid] < from)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < x->n_told && x->told[lo] <= to;
}

/* A profiler's trace has all calls of the runtime. */
static bool sees_waits(const struct hb_window *w)
{
	const char *profile = hb_window__meta(w, "profile");

	if (profile && strcmp(profile, "imported") == 0)
		return true;
	for (u32 i = 1; i <= hb_window__probes(w); i++) {
		const struct hb_probe_row *r = hb_window__probe(w, i);

		if (r && strstr(hb_window__string(w, r->name), "WaitEvent"))
			return true;
	}
	return false;
}

/* The operation that held o up: the last of the default stream that ended just before it began. In a graph
 * the graph says what waits for what; two copies may wait for one engine; collectives wait for peers. */
static const struct hb_device_op *holder(const struct search *x, u32 i, const struct hb_launch *k)
{
	const struct hb_device_op *o = &x->v->op[i];
	const struct last *own = &x->last[o->stream];
	u64 after = hb_look__param(x->l, AFTER), late = hb_look__param(x->l, LATE);

	if (!k || o->graph || o->work == HB_WORK_COMM || o->begin < k->end + late ||
	    o->begin < own->end + late || is_default(x->v, o->stream))
		return NULL;
	for (u32 j = i; j-- > 0 && j + 64 > i;) {
		const struct hb_device_op *y = &x->v->op[j];

		if (!is_default(x->v, y->stream) || y->end > o->begin || o->begin - y->end > after)
			continue;
		return (y->kind == HB_DEVKIND_MEMCPY && o->kind == HB_DEVKIND_MEMCPY) ||
			       told_to_wait(x, own->launched, k->begin)
			   ? NULL
			   : y;
	}
	return NULL;
}

/* Beside each other they save no more than the shorter of the two lasts, nor more than one waited. */
static u64 saved(const struct hb_device_op *o, const struct hb_device_op *held, const struct hb_launch *k)
{
	u64 waited = o->begin - (k->end > held->begin ? k->end : held->begin), own = o->end - o->begin;

	return waited < own ? waited : own;
}

static int each(struct search *x, struct hb_draft *d)
{
	int err = 0;

	x->cases = 0;
	memset(x->last, 0, sizeof(x->last));
	for (u32 i = 0; i < x->v->n_ops && !err; i++) {
		const struct hb_device_op *o = &x->v->op[i], *held;
		const struct hb_launch *k = hb_devices__launch_of(x->l->s->dev, o);
		struct last *own = o->stream < 256 ? &x->last[o->stream] : NULL;

		held = own ? holder(x, i, k) : NULL;
		if (own && o->end > own->end)
			own->end = o->end;
		if (own && k)
			own->launched = k->begin;
		if (!held || !k)
			continue;
		x->cases++;
		if (d) {
			struct hb_case c = {
			    .begin = k->end, .end = o->begin, .thread = HB_NONE, .stack = k->stack};

			err = hb_draft__add_device(d, &c, saved(o, held, k));
		}
	}
	return err;
}

static int judge(struct hb_look *l, struct search *x)
{
	struct hb_draft *d;

	each(x, NULL);
	hb_look__subject(l);
	if (!hb_look__at_least(l, CASES, x->cases))
		return 0;
	d = hb_look__find(
	    l, "%llu operations on other streams of device %u began when the default stream had finished",
	    (unsigned long long)x->cases, x->v->number);
	if (!d)
		return -ENOMEM;
	hb_draft__pid(d, x->v->pid);
	hb_draft__device(d, x->v->index);
	hb_draft__confidence(d, HB_CONFIDENCE_LOW, "the streams' flags are not recorded");
	return each(x, d);
}

static int by_device(struct hb_look *l, const struct hb_device *v)
{
	struct search x = {.l = l, .v = v};
	int err;

	if (v->n_streams < 2)
		return 0;
	if (!sees_waits(l->s->w)) {
		hb_look__unchecked(l, HB_NEED_STREAM_FLAGS,
				   "needs calls that make a stream wait for an event (off by default)");
		return 0;
	}
	err = collect(&x);
	err = err ? err : judge(l, &x);
	free(x.told);
	return err;
}

static int detect(struct hb_look *l)
{
	return hb_look__devices(l, by_device);
}

HB_PATTERN(p05_default_stream) = {
    .id = "P05",
    .layer = "runtime",
    .title = "default stream serialises",
    .rank = HB_RANK_API,
    .needs = HB_NEED_DEVICE,
    .params = params,
    .rule =
	"operations on other streams were launched long before, had nothing before them in their own "
	"stream, and begin right when work on the default stream ends, though no stream was told to wait for "
	"an event since their stream's last launch. Each costs what it waited for that work, no more than it "
	"lasts itself; graphs, collectives and copies after copies do not count",
    .fix = "non-blocking streams, an event instead of a read-back that waits for the stream",
    .ref = "vllm-project/vllm#22754, #22760, #21988 (discussion)",
    .traps = "a shared copy engine, a saturated link, priorities",
    .settle = "flags of the streams as they are made; a run with per-thread default streams",
    .detect = detect,
};
