/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the spans of a page's timeline are called. */
#include <stdio.h>

#include "analysis/model/decode.h"
#include "analysis/model/pyevents.h"
#include "analysis/report/html/private.h"

static u32 sleep_name(const struct hb_page *p, const struct hb_tl_sleep *s)
{
	char call[32], buf[96];
	const char *name = hb_decode__syscall(s->sysno, call, sizeof(call));

	if (s->state == HB_TSTATE_RUNNING)
		return hb_labels__add(p->labels, "preempted");
	if (!name)
		return hb_labels__add(p->labels,
				      s->state == HB_TSTATE_DISK ? "page fault or disk" : "asleep");
	if (!s->chankind)
		return hb_labels__add(p->labels, name);
	snprintf(buf, sizeof(buf), "%s (%s)", name, hb_word(HB_WORDS_CHANKIND, s->chankind));
	return hb_labels__add(p->labels, buf);
}

static u32 loc_name(const struct hb_page *p, u32 loc)
{
	const struct hb_loc *l = hb_window__loc(p->in->w, loc);
	char buf[512];

	return hb_labels__add(p->labels, l ? hb_decode__frame(p->in->w, l, HB_FRAME_MARKED, buf, sizeof(buf))
					   : "unknown function");
}

static u32 gc_name(const struct hb_page *p, const struct hb_tl_gc *g)
{
	char buf[48];

	if (g->generation == UINT32_MAX)
		return hb_labels__add(p->labels, "garbage collection");
	snprintf(buf, sizeof(buf), "garbage collection, generation %u", g->generation);
	return hb_labels__add(p->labels, buf);
}

static u32 raise_name(const struct hb_page *p, u32 pid, const struct hb_tl_raise *r)
{
	const struct hb_loc *l = hb_decode__site(p->in->w, pid, r->site);
	char frame[256], buf[300];

	snprintf(buf, sizeof(buf), "exception in %s",
		 l ? hb_decode__frame(p->in->w, l, HB_FRAME_MARKED, frame, sizeof(frame))
		   : "unknown function");
	return hb_labels__add(p->labels, buf);
}

static u32 list_name(const struct hb_page *p, u32 pid, u32 thread, u8 list, u32 item)
{
	const struct hb_timeline *tl = hb_host__timeline(p->in->host);
	const void *s = hb_timeline__span(tl, thread, list, item);
	const struct hb_probe_row *row;
	char buf[32];
	const char *name;

	switch (list) {
	case HB_TL_SLEEP:
		return sleep_name(p, s);
	case HB_TL_CALL:
		row = hb_window__probe(p->in->w, ((const struct hb_tl_call *)s)->probe);
		return hb_labels__add(p->labels,
				      row ? hb_window__string(p->in->w, row->name) : "unknown call");
	case HB_TL_GIL:
		return hb_labels__add(p->labels, ((const struct hb_tl_gil *)s)->handover ? "GIL handed over"
											 : "waits for GIL");
	case HB_TL_GC:
		return gc_name(p, s);
	case HB_TL_PYCALL:
		return loc_name(p, ((const struct hb_tl_pycall *)s)->func);
	case HB_TL_OP:
		return hb_labels__add(p->labels,
				      hb_window__string(p->in->w, ((const struct hb_tl_op *)s)->name));
	case HB_TL_RAISE:
		return raise_name(p, pid, s);
	default:
		name = hb_decode__syscall(((const struct hb_tl_syscall *)s)->sysno, buf, sizeof(buf));
		return hb_labels__add(p->labels, name ? name : "system call");
	}
}

static u32 op_name(const struct hb_page *p, const struct hb_device_op *o)
{
	char buf[64];

	if (o->kind != HB_DEVKIND_MEMCPY)
		return hb_labels__add(p->labels, hb_window__string(p->in->w, o->name));
	snprintf(buf, sizeof(buf), "memcpy %s", hb_word(HB_WORDS_COPY, o->copy));
	return hb_labels__add(p->labels, buf);
}

/* Own time of the dispatch thread by its kind, that of others with their names. */
static u32 seg_name(const struct hb_page *p, const struct hb_lane *lane, u32 item)
{
	const struct hb_series *s = hb_steps__at(hb_host__steps(p->in->host), lane->index);
	const struct hb_timeline *tl = hb_host__timeline(p->in->host);
	const struct hb_seg *seg;
	char buf[128];
	u32 n;

	seg = &hb_path__segs(hb_host__path(p->in->host), lane->pid, &n)[item];
	if (seg->thread == s->thread || seg->thread == HB_NONE)
		return hb_labels__add(p->labels, hb_seg__name(seg->kind));
	snprintf(buf, sizeof(buf), "%s (%s)", hb_seg__name(seg->kind),
		 hb_decode__comm(p->in->w, hb_timeline__thread(tl, seg->thread)->task));
	return hb_labels__add(p->labels, buf);
}

u32 hb_track__name(const struct hb_page *p, const struct hb_lane *lane, const struct hb_track *t, u32 item)
{
	static const char *const states[] = {
	    [HB_BUSY_UNKNOWN] = "not known", [HB_BUSY_BUSY] = "busy", [HB_BUSY_IDLE] = "idle"};
	char buf[48];

	switch (t->kind) {
	case HB_TRACK_LIST:
		return list_name(p, lane->pid, lane->index, t->list, item);
	case HB_TRACK_STREAM:
		return op_name(p, &hb_devices__at(p->in->devices, lane->index)->op[item]);
	case HB_TRACK_GAPS:
		snprintf(buf, sizeof(buf), "idle: %s", hb_gap__cause_name(item));
		return hb_labels__add(p->labels, buf);
	case HB_TRACK_BUSY:
		return hb_labels__add(p->labels, item <= HB_BUSY_IDLE ? states[item] : "?");
	case HB_TRACK_PATH:
		return seg_name(p, lane, item);
	default:
		return hb_labels__add(p->labels, "step");
	}
}
