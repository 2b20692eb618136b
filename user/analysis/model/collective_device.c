/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Collectives as kernels on devices: what each is, by the call or operator that launched it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/model/collective_private.h"
#include "analysis/model/roof_rule.h"
#include "base/map.h"

/* Ends are looked at up to so many. */
#define ENDS 256

static u32 launcher(const struct hb_timeline *tl, const struct hb_launch *l)
{
	const struct hb_task *t = l ? hb_window__task(hb_timeline__window(tl), l->task) : NULL;

	return t ? hb_timeline__by_tid(tl, t->tid) : HB_NONE;
}

/* The operator around the launch that says what it moves. */
static const char *said_by_operator(const struct hb_timeline *tl, u32 thread, u64 at)
{
	u32 n, i = hb_timeline__at(tl, thread, HB_TL_OP, at);
	const struct hb_tl_op *o = hb_timeline__ops(tl, thread, &n);

	for (; i != HB_NONE; i = o[i].at.outer) {
		const char *text = o[i].values ? hb_window__string(hb_timeline__window(tl), o[i].values) : "";

		if (strstr(text, "\"collective\""))
			return text;
	}
	return NULL;
}

/* The call of a collective library around it. */
static const struct hb_tl_call *call_around(const struct hb_timeline *tl, u32 thread, u64 at)
{
	u32 n, i = hb_timeline__at(tl, thread, HB_TL_CALL, at);
	const struct hb_tl_call *c = hb_timeline__calls(tl, thread, &n);

	for (; i != HB_NONE; i = c[i].at.outer)
		if (c[i].op == HB_OP_COLLECTIVE)
			return &c[i];
	return NULL;
}

/* Those which no rank leaves before the last one has come. */
static bool leaves_together(const char *kernel)
{
	static const char *const words[] = {
	    "AllReduce",     "all_reduce",     "allreduce", "AllGather",  "allgather", "all_gather",
	    "ReduceScatter", "reduce_scatter", "AlltoAll",  "all_to_all", NULL};
	const char *const *w = words;

	while (*w && !strstr(kernel, *w))
		w++;
	return *w != NULL;
}

/* What is told of a kernel beside its name; *rank: which group it is of. */
static void describe(const struct hb_timeline *tl, const struct hb_launch *l, bool alone,
		     struct hb_coll_item *x, struct hb_coll_rank *rank, u32 *world)
{
	u32 thread = launcher(tl, l);
	const char *said = thread == HB_NONE ? NULL : said_by_operator(tl, thread, l->begin);
	const struct hb_tl_call *c = thread == HB_NONE ? NULL : call_around(tl, thread, l->begin);
	struct hb_roof_collective o;

	if (said && alone && hb_roof__collective(said, &o)) {
		bool uneven = strstr(o.name, "all_to_all") || strstr(o.name, "alltoall");

		x->elements = uneven ? 0 : (u64)o.in;
		x->kind = (u8)o.type;
		x->seq = o.seq;
		x->message = o.modelled ? (u64)o.message : 0;
		x->formula = o.modelled ? (u8)(o.kind + 1) : 0;
		*world = o.ranks;
		if (*o.group)
			rank->comm = hb_hash_bytes(o.group, strlen(o.group)) | 1;
	} else if (c && alone) {
		x->elements = c->bytes;
		x->kind = hb_timeline__callee(tl, c)->kind;
	}
}

static int take(struct hb_collectives *c, const struct hb_timeline *tl, const struct hb_devices *d,
		const struct hb_device *v, u32 i)
{
	const struct hb_device_op *o = &v->op[i];
	struct hb_coll_rank rank = {.pid = v->pid, .thread = HB_NONE, .device = v->index};
	struct hb_coll_item x = {
	    .begin = o->begin, .end = o->end, .name = o->name, .where = v->index, .at = i};
	struct hb_coll_line *l;
	u32 world = 0;

	x.even = leaves_together(hb_window__string(hb_timeline__window(tl), o->name));
	describe(tl, hb_devices__launch_of(d, o), !o->shared, &x, &rank, &world);
	if (!rank.comm)
		rank.comm = (u64)(o->stream + 1) << 1;
	l = hb_coll_line(c, &rank, HB_COLL_DEVICE);
	if (!l || hb_coll_line__add(l, &x))
		return -ENOMEM;
	l->named = rank.comm & 1;
	l->world = world ? world : l->world;
	return 0;
}

static bool has_collectives(const struct hb_devices *d)
{
	u32 n, i = 0;
	const struct hb_kernel *const *k = hb_devices__kernels(d, &n);

	while (i < n && k[i]->work != HB_WORK_COMM)
		i++;
	return i < n;
}

int hb_coll_lines__devices(struct hb_collectives *c, const struct hb_timeline *tl, const struct hb_devices *d)
{
	int err = 0;

	if (!has_collectives(d))
		return 0;
	for (u32 k = 0; k < hb_devices__count(d); k++) {
		const struct hb_device *v = hb_devices__at(d, k);

		for (u32 i = 0; i < v->n_ops && !err; i++)
			if (v->op[i].work == HB_WORK_COMM && v->op[i].kind == HB_DEVKIND_KERNEL)
				err = take(c, tl, d, v, i);
	}
	return err;
}

static int cmp_s64(const void *a, const void *b)
{
	s64 x = *(const s64 *)a, y = *(const s64 *)b;

	return x < y ? -1 : x > y;
}

s64 hb_coll__offset(const struct hb_coll_item *a, const struct hb_coll_item *b, u32 n)
{
	s64 ends[ENDS];
	u32 k = 0;

	for (u32 i = 0; i < n && k < ENDS; i++)
		if (a[i].even)
			ends[k++] = (s64)(b[i].end - a[i].end);
	if (!k)
		return 0;
	qsort(ends, k, sizeof(*ends), cmp_s64);
	return ends[k / 2];
}

/* Around each collective the clocks are told by so many: noise of single ends does not count, and a clock
 * that is set is told where it was. */
#define AROUND 15

static s64 median_of(const s64 *v, u32 n)
{
	s64 sorted[AROUND] = {0};

	for (u32 i = 0; i < n; i++) {
		u32 k = i;

		for (; k && sorted[k - 1] > v[i]; k--)
			sorted[k] = sorted[k - 1];
		sorted[k] = v[i];
	}
	return sorted[n / 2];
}

int hb_coll__ahead_each(const struct hb_coll_item *a, const struct hb_coll_item *b, u32 n, s64 *ahead,
			u32 stride)
{
	s64 *ends = malloc((n + 1ULL) * sizeof(*ends));
	u32 m = 0, at = 0;

	if (!ends)
		return -ENOMEM;
	for (u32 i = 0; i < n; i++)
		if (a[i].even)
			ends[m++] = (s64)(b[i].end - a[i].end);
	for (u32 i = 0; i < n; i++) {
		u32 from = at > AROUND / 2 ? at - AROUND / 2 : 0;
		u32 to = at + AROUND / 2 + 1 < m ? at + AROUND / 2 + 1 : m;

		from = to - from < AROUND && to > AROUND ? to - AROUND : from;
		to = to - from < AROUND && from + AROUND <= m ? from + AROUND : to;
		ahead[(size_t)i * stride] = m ? median_of(&ends[from], to - from) : 0;
		at += a[i].even && at + 1 < m;
	}
	free(ends);
	return 0;
}

u64 hb_coll__spread(const struct hb_coll_item *a, const struct hb_coll_item *b, u32 n, s64 *offset)
{
	s64 ends[HB_COLL_LOOK] = {0};
	u64 sum = 0;

	n = n < HB_COLL_LOOK ? n : HB_COLL_LOOK;
	*offset = 0;
	for (u32 i = 0; i < n; i++)
		ends[i] = (s64)(b[i].end - a[i].end);
	if (!n)
		return 0;
	qsort(ends, n, sizeof(*ends), cmp_s64);
	*offset = ends[n / 2];
	for (u32 i = 0; i < n; i++)
		sum += (u64)llabs(ends[i] - *offset);
	return sum / n;
}
