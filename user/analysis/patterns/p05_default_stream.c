/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Work on another stream that starts when the default stream has finished, without having been told to wait.
 */
#include <errno.h>
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

/* Was a stream told to wait for an event between the thread's previous work and this launch? */
static bool told_to_wait(const struct hb_scene *s, const struct hb_launch *k)
{
	const struct hb_task *t = hb_window__task(s->w, k->task);
	u32 thread = t ? hb_timeline__by_tid(s->tl, t->tid) : HB_NONE, n, i;
	const struct hb_tl_call *c;

	if (thread == HB_NONE)
		return true;
	c = hb_timeline__calls(s->tl, thread, &n);
	for (i = hb_timeline__from(s->tl, thread, HB_TL_CALL, k->begin); i-- > 0;) {
		if (strstr(hb_scene__call_name(s, &c[i]), "WaitEvent"))
			return true;
		if (hb_call__is_work(&c[i]))
			return false;
	}
	return false;
}

static bool sees_waits(const struct hb_window *w)
{
	for (u32 i = 1; i <= hb_window__probes(w); i++) {
		const struct hb_probe_row *r = hb_window__probe(w, i);

		if (r && strstr(hb_window__string(w, r->name), "WaitEvent"))
			return true;
	}
	return false;
}

/* The operation that held o up: the last of the default stream that ended just before it began. */
static const struct hb_device_op *holder(const struct hb_look *l, const struct hb_device *v, u32 i,
					 u64 own_end)
{
	const struct hb_device_op *o = &v->op[i];
	const struct hb_launch *k = hb_devices__launch_of(l->s->dev, o);
	u64 after = hb_look__param(l, AFTER), late = hb_look__param(l, LATE);

	if (!k || o->begin < k->end + late || o->begin < own_end + late || is_default(v, o->stream))
		return NULL;
	for (u32 j = i; j-- > 0 && j + 64 > i;) {
		const struct hb_device_op *x = &v->op[j];

		if (is_default(v, x->stream) && x->end <= o->begin && o->begin - x->end <= after)
			return told_to_wait(l->s, k) ? NULL : x;
	}
	return NULL;
}

static int each(const struct hb_look *l, const struct hb_device *v, u64 *cases, struct hb_draft *d)
{
	u64 end[256] = {0}; /* of the last work by stream */
	int err = 0;

	for (u32 i = 0; i < v->n_ops && !err; i++) {
		const struct hb_device_op *o = &v->op[i];
		const struct hb_device_op *x = o->stream < 256 ? holder(l, v, i, end[o->stream]) : NULL;

		if (o->stream < 256 && o->end > end[o->stream])
			end[o->stream] = o->end;
		if (!x)
			continue;
		(*cases)++;
		if (d) {
			const struct hb_launch *k = hb_devices__launch_of(l->s->dev, o);
			struct hb_case c = {
			    .begin = k->end, .end = o->begin, .thread = HB_NONE, .stack = k->stack};

			err = hb_draft__add_device(d, &c, o->begin - (k->end > x->begin ? k->end : x->begin));
		}
	}
	return err;
}

static int by_device(struct hb_look *l, const struct hb_device *v)
{
	u64 cases = 0;
	struct hb_draft *d;

	if (v->n_streams < 2)
		return 0;
	if (!sees_waits(l->s->w)) {
		hb_look__unchecked(l, HB_NEED_STREAM_FLAGS,
				   "needs calls that make a stream wait for an event (off by default)");
		return 0;
	}
	each(l, v, &cases, NULL);
	hb_look__subject(l);
	if (!hb_look__at_least(l, CASES, cases))
		return 0;
	d = hb_look__find(
	    l, "%llu operations on other streams of device %u began when the default stream had finished",
	    (unsigned long long)cases, v->number);
	if (!d)
		return -ENOMEM;
	hb_draft__pid(d, v->pid);
	hb_draft__device(d, v->index);
	hb_draft__confidence(d, HB_CONFIDENCE_LOW, "the streams' flags are not recorded");
	return each(l, v, &cases, d);
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
    .rule = "operations on other streams were launched long before, had nothing before them in their own "
	    "stream and were not told "
	    "to wait for an event, and begin right when work on the default stream ends",
    .fix = "non-blocking streams, an event instead of a read-back that waits for the stream",
    .ref = "vllm-project/vllm#22754, #22760, #21988 (discussion)",
    .traps = "a shared copy engine, a saturated link, priorities",
    .settle = "flags of the streams as they are made; a run with per-thread default streams",
    .detect = detect,
};
