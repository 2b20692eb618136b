/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analysis/export/label.h"

#include <stdio.h>

#include "analysis/model/decode.h"

const char *hb_label__offcpu(const struct hb_rec_offcpu *o, char *buf, size_t size)
{
	char text[32];
	const char *call = hb_decode__syscall(o->sysno, text, sizeof(text));

	if (o->state == HB_TSTATE_RUNNING)
		return "preempted";
	if (!call)
		return "off-CPU";
	snprintf(buf, size, "off-CPU %s", call);
	return buf;
}

bool hb_label__has_waker(const struct hb_rec_offcpu *o)
{
	return o->waker && (o->wctx == HB_WCTX_TASK || o->wctx == HB_WCTX_OWN_SEND);
}

const char *hb_label__process(const struct hb_window *w, u32 pid, bool traced, char *buf, size_t size)
{
	const char *name = hb_decode__comm(w, hb_window__task_by_tid(w, pid));
	const char *what = traced ? hb_decode__simulated(w) : "not traced";

	snprintf(buf, size, what ? "%s (%s)" : "%s", name, what);
	return buf;
}
