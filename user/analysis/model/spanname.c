/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analysis/model/spanname.h"

#include <stdio.h>

#include "analysis/model/decode.h"
#include "analysis/model/pyevents.h"

static const char *sleep_name(const struct hb_tl_sleep *s, char *buf, size_t size)
{
	char call[32];
	const char *name = hb_decode__syscall(s->sysno, call, sizeof(call));

	if (s->state == HB_TSTATE_RUNNING)
		return "preempted";
	if (!name)
		return s->state == HB_TSTATE_DISK ? "page fault or disk" : "asleep";
	if (s->chankind)
		snprintf(buf, size, "%s (%s)", name, hb_word(HB_WORDS_CHANKIND, s->chankind));
	else
		snprintf(buf, size, "%s", name);
	return buf;
}

static const char *loc_name(const struct hb_window *w, const struct hb_loc *l, char *buf, size_t size)
{
	return l ? hb_decode__frame(w, l, HB_FRAME_MARKED, buf, size) : "unknown function";
}

static const char *gc_name(const struct hb_tl_gc *g, char *buf, size_t size)
{
	if (g->generation == UINT32_MAX)
		return "garbage collection";
	snprintf(buf, size, "garbage collection, generation %u", g->generation);
	return buf;
}

static const char *raise_name(const struct hb_window *w, u32 pid, const struct hb_tl_raise *r, char *buf,
			      size_t size)
{
	char frame[256];

	snprintf(buf, size, "exception in %s",
		 loc_name(w, hb_decode__site(w, pid, r->site), frame, sizeof(frame)));
	return buf;
}

static const char *or_unknown(const char *name)
{
	return name && *name ? name : "unknown";
}

const char *hb_span__name(const struct hb_timeline *tl, u32 thread, enum hb_tl_kind kind, u32 i, char *buf,
			  size_t size)
{
	const struct hb_window *w = hb_timeline__window(tl);
	const void *s = hb_timeline__span(tl, thread, kind, i);
	const struct hb_probe_row *row;

	switch (kind) {
	case HB_TL_SLEEP:
		return sleep_name(s, buf, size);
	case HB_TL_CALL:
		row = hb_window__probe(w, hb_timeline__callee(tl, s)->probe);
		return or_unknown(row ? hb_window__string(w, row->name) : NULL);
	case HB_TL_GIL:
		return ((const struct hb_tl_gil *)s)->handover ? "GIL handed over" : "waits for GIL";
	case HB_TL_GC:
		return gc_name(s, buf, size);
	case HB_TL_PYCALL:
		return loc_name(w, hb_window__loc(w, ((const struct hb_tl_pycall *)s)->func), buf, size);
	case HB_TL_OP:
		return or_unknown(hb_window__string(w, ((const struct hb_tl_op *)s)->name));
	case HB_TL_RAISE:
		return raise_name(w, hb_timeline__thread(tl, thread)->pid, s, buf, size);
	case HB_TL_SYSCALL:
		return or_unknown(hb_decode__syscall(((const struct hb_tl_syscall *)s)->sysno, buf, size));
	case HB_TL_DEVWAIT:
		return hb_word(HB_WORDS_SYNCKIND, ((const struct hb_tl_devwait *)s)->sync);
	case HB_TL_SAMPLE:
	case HB_TL_KINDS:
		break;
	}
	return "sample";
}

u64 hb_span__key(const struct hb_timeline *tl, u32 thread, enum hb_tl_kind kind, u32 i)
{
	const void *s = hb_timeline__span(tl, thread, kind, i);
	const struct hb_tl_sleep *sleep = s;

	switch (kind) {
	case HB_TL_SLEEP:
		if (sleep->state == HB_TSTATE_RUNNING)
			return 1ULL << 32;
		if (sleep->sysno == HB_SYSNO_NONE)
			return sleep->state == HB_TSTATE_DISK ? 1ULL << 33 : 1ULL << 34;
		return (u64)sleep->sysno << 8 | sleep->chankind;
	case HB_TL_CALL:
		return hb_timeline__callee(tl, s)->probe;
	case HB_TL_GIL:
		return ((const struct hb_tl_gil *)s)->handover != 0;
	case HB_TL_GC:
		return ((const struct hb_tl_gc *)s)->generation;
	case HB_TL_PYCALL:
		return ((const struct hb_tl_pycall *)s)->func;
	case HB_TL_OP:
		return ((const struct hb_tl_op *)s)->name;
	case HB_TL_RAISE:
		return ((const struct hb_tl_raise *)s)->site;
	case HB_TL_SYSCALL:
		return ((const struct hb_tl_syscall *)s)->sysno;
	case HB_TL_DEVWAIT:
		return ((const struct hb_tl_devwait *)s)->sync;
	case HB_TL_SAMPLE:
	case HB_TL_KINDS:
		break;
	}
	return 0;
}
