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

const char *hb_label__gil(const struct hb_rec_py_gil *g)
{
	return g->handover ? "GIL handed over" : "waits for GIL";
}

/* Its main thread's; of a process that only woke somebody, another thread may be all there is. */
static const char *name_of(const struct hb_window *w, u32 pid)
{
	u32 n;
	const struct hb_task *main = hb_window__task_by_tid(w, pid), *t = hb_window__tasks(w, &n);

	for (u32 i = 0; i < n && !main; i++)
		if (t[i].pid == pid && t[i].comm)
			main = &t[i];
	return hb_decode__comm(w, main);
}

const char *hb_label__process(const struct hb_window *w, u32 pid, bool traced, char *buf, size_t size)
{
	const char *name = name_of(w, pid), *what = traced ? hb_decode__simulated(w) : "not traced";

	snprintf(buf, size, what ? "%s (%s)" : "%s", name, what);
	return buf;
}
