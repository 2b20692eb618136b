/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Tables of Python's exceptions, of the GIL and of garbage collections. */
#include <stdio.h>

#include "analysis/model/decode.h"
#include "analysis/model/pyevents.h"
#include "analysis/report/cells.h"

static u32 shown(u32 n, u32 max)
{
	return n < max ? n : max;
}

/* "1.0" frames; whole numbers are the rule. */
static void per_exception(struct hb_table *t, u64 unwound, u64 count)
{
	if (!unwound || !count)
		hb_table__cell(t, "-");
	else if (unwound % count == 0)
		hb_table__cell(t, "%llu", (unsigned long long)(unwound / count));
	else
		hb_table__cell(t, "%.1f", (double)unwound / (double)count);
}

struct hb_table *hb_pytable__exceptions(const struct hb_window *w, const struct hb_model *m, u32 max, u32 *n)
{
	struct hb_table *t = hb_table__new("process|exception~|count>|unwound>|raised at~");
	const struct hb_exception_stat *const *s = hb_model__exceptions(m, n);
	char buf[256];

	for (u32 i = 0; i < shown(*n, max); i++) {
		const struct hb_loc *l = hb_decode__site(w, s[i]->proc->pid, s[i]->site);

		hb_cell__proc(t, w, s[i]->proc);
		hb_table__cell(t, "%s", hb_decode__exception(&s[i]->name, s[i]->origin, buf, sizeof(buf)));
		hb_cell__count(t, s[i]->count);
		per_exception(t, s[i]->unwound, s[i]->count);
		hb_table__cell(t, "%s",
			       l ? hb_decode__frame(w, l, HB_FRAME_LINE, buf, sizeof(buf)) : "[not kept]");
	}
	return t;
}

struct hb_table *hb_pytable__gils(const struct hb_window *w, const struct hb_model *m, u32 max, u32 *n)
{
	struct hb_table *t =
	    hb_table__new("pid>|thread~|waits>|total>|p50>|p95>|p99>|max>|share>|handovers>|taking>");
	const struct hb_gil_stat *const *s = hb_model__gils(m, n);

	for (u32 i = 0; i < shown(*n, max); i++) {
		hb_table__cell(t, "%u", s[i]->thread->proc->pid);
		hb_cell__task(t, w, s[i]->thread->task);
		hb_cell__count(t, s[i]->wait.count);
		hb_cell__ns(t, s[i]->wait.total);
		hb_cell__quantiles(t, &s[i]->wait);
		hb_cell__share(t, s[i]->wait.total, hb_model__totals(m)->wall_ns);
		hb_cell__count_or_dash(t, s[i]->handovers);
		hb_cell__ns(t, s[i]->handover_ns);
	}
	return t;
}

/* Its innermost frames say what keeps the GIL. */
static void holder_stack(struct hb_table *t, const struct hb_window *w, u32 pid, u32 raw)
{
	struct hb_stack st = raw ? hb_window__stack(w, pid, raw) : (struct hb_stack){0};
	char line[400] = "", frame[128];
	size_t len = 0;

	for (u32 i = st.n; i > 0 && len < 120; i--) {
		const struct hb_loc *l = hb_window__loc(w, st.locs[i - 1]);

		if (l)
			len += (size_t)snprintf(line + len, sizeof(line) - len, "%s%s", len ? " < " : "",
						hb_decode__frame(w, l, HB_FRAME_LINE, frame, sizeof(frame)));
	}
	hb_table__cell(t, "%s", len ? line : "[not kept]");
}

struct hb_table *hb_pytable__holders(const struct hb_window *w, const struct hb_model *m, u32 max, u32 *n)
{
	struct hb_table *t =
	    hb_table__new("pid>|holder~|waits of others>|total>|longest>|where when that began~");
	const struct hb_holder_stat *const *s = hb_model__holders(m, n);

	for (u32 i = 0; i < shown(*n, max); i++) {
		hb_table__cell(t, "%u", s[i]->proc->pid);
		if (s[i]->task)
			hb_cell__task(t, w, s[i]->task);
		else
			hb_table__cell(t, "[unknown]");
		hb_cell__count(t, s[i]->waits);
		hb_cell__ns(t, s[i]->waited_ns);
		hb_cell__ns(t, s[i]->longest_ns);
		holder_stack(t, w, s[i]->proc->pid, s[i]->stack);
	}
	return t;
}

struct hb_table *hb_pytable__gcs(const struct hb_window *w, const struct hb_model *m, u32 max, u32 *n)
{
	struct hb_table *t = hb_table__new("process~|generation>|count>|total>|p50>|p95>|p99>|max>|share>");
	const struct hb_gc_stat *const *s = hb_model__gcs(m, n);

	for (u32 i = 0; i < shown(*n, max); i++) {
		hb_cell__proc(t, w, s[i]->proc);
		if (s[i]->generation == UINT32_MAX)
			hb_table__cell(t, "?");
		else
			hb_table__cell(t, "%u", s[i]->generation);
		hb_cell__count(t, s[i]->dur.count);
		hb_cell__ns(t, s[i]->dur.total);
		hb_cell__quantiles(t, &s[i]->dur);
		hb_cell__share(t, s[i]->dur.total, hb_model__totals(m)->wall_ns);
	}
	return t;
}
