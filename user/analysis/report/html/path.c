/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The longest path as a row of the timeline: each link that takes time is a span. */
#include <stdio.h>

#include "analysis/report/html/private.h"
#include "base/demangle.h"

static u64 moment(const struct hb_page *p, u32 node)
{
	u32 n;
	const struct hb_cp_event *e = &hb_longest__events(p->in->longest, &n)[node / 2];

	return node == HB_NODE_END(node / 2) ? e->end : e->begin;
}

u32 hb_page__longest(const struct hb_page *p, u32 pid)
{
	u64 begin, end;
	u32 n = 0;

	if (!p->in->longest || hb_longest__sum(p->in->longest)->pid != pid)
		return 0;
	for (u32 i = 0; (i = hb_page__longest_next(p, i, &begin, &end)) != HB_NONE; i++)
		n++;
	return n;
}

u32 hb_page__longest_next(const struct hb_page *p, u32 from, u64 *begin, u64 *end)
{
	u32 n;
	const struct hb_link *const *x = hb_longest__path(p->in->longest, &n);

	while (from < n && !x[from]->ns)
		from++;
	if (from >= n)
		return HB_NONE;
	*begin = moment(p, x[from]->from);
	*end = moment(p, x[from]->to);
	return from;
}

const char *hb_page__longest_name(const struct hb_page *p, u32 link, char *buf, size_t size)
{
	u32 n;
	const struct hb_cp_event *e = hb_longest__events(p->in->longest, &n);
	const struct hb_link *x = hb_longest__path(p->in->longest, &n)[link];
	u32 event = x->owner == HB_NONE ? x->to / 2 : x->owner;
	char name[400];

	snprintf(buf, size, "%s: %s",
		 hb_cp_part__name(hb_link__part(x, x->owner == HB_NONE ? NULL : &e[x->owner])),
		 hb_demangle(hb_longest__name(p->in->longest, event), name, sizeof(name)));
	return buf;
}
