/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the spans of a page's timeline are called. */
#include <stdio.h>

#include "analysis/model/decode.h"
#include "analysis/model/spanname.h"
#include "analysis/report/html/private.h"

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
	if (seg->thread == s->thread)
		return hb_labels__add(p->labels, hb_seg__name(seg->kind));
	snprintf(buf, sizeof(buf), "%s (%s)", hb_seg__name(seg->kind),
		 hb_decode__comm(p->in->w, hb_timeline__thread(tl, seg->thread)->task));
	return hb_labels__add(p->labels, buf);
}

u32 hb_track__name(const struct hb_page *p, const struct hb_lane *lane, const struct hb_track *t, u32 item)
{
	static const char *const states[] = {
	    [HB_BUSY_UNKNOWN] = "not known", [HB_BUSY_BUSY] = "busy", [HB_BUSY_IDLE] = "idle"};
	char buf[512];

	switch (t->kind) {
	case HB_TRACK_LIST:
		return hb_labels__add(p->labels, hb_span__name(hb_host__timeline(p->in->host), lane->index,
							       t->list, item, buf, sizeof(buf)));
	case HB_TRACK_STREAM:
		return op_name(p, &hb_devices__at(p->in->devices, lane->index)->op[item]);
	case HB_TRACK_GAPS:
		snprintf(buf, sizeof(buf), "idle: %s", hb_gap__cause_name(item));
		return hb_labels__add(p->labels, buf);
	case HB_TRACK_BUSY:
		return hb_labels__add(p->labels, item <= HB_BUSY_IDLE ? states[item] : "?");
	case HB_TRACK_PATH:
		return seg_name(p, lane, item);
	case HB_TRACK_LONGEST:
		return hb_labels__add(p->labels, hb_page__longest_name(p, item, buf, sizeof(buf)));
	default:
		return hb_labels__add(p->labels, "step");
	}
}
