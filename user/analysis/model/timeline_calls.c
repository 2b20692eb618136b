/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What accelerator calls are to the device: work, or waits for it. */
#include "analysis/model/device.h"
#include "analysis/model/spans.h"
#include "analysis/model/timeline_private.h"

#define SYNC_WAITED_NS 5000
#define COPY_WAITED_NS 50000
/* Between the waking and the return of a wait there is little to run. */
#define RETURN_NS 100000

/* What a call must last to have waited; 0: it never does. */
static u64 least(const struct hb_tl_call *c)
{
	if (hb_call__is_sync(c))
		return SYNC_WAITED_NS;
	return c->op == HB_OP_COPY && hb_call__is_work(c) &&
		       (c->copy == HB_COPY_DTOH || c->copy == HB_COPY_UNKNOWN)
		   ? COPY_WAITED_NS
		   : 0;
}

/* What it lacked a CPU for does not count. Of the sleeps *from is the first that ends after the call before
 * it began. */
static bool has_waited(const struct hb_tl_call *c, const struct hb_tl_sleep *s, u32 n_sleeps, u32 *from)
{
	u64 need = least(c), dur = c->at.end - c->at.begin, lacked = 0;

	if (!need || dur < need)
		return false;
	while (*from < n_sleeps && s[*from].at.end <= c->at.begin)
		++*from;
	for (u32 k = *from; k < n_sleeps && s[k].at.begin < c->at.end; k++)
		lacked += hb_overlap(s[k].at.end - s[k].ready, s[k].at.end, c->at.begin, c->at.end);
	return lacked < dur && dur - lacked >= need;
}

void hb_calls__finish(const struct hb_timeline *tl, struct hb_tl_thread *t, struct hb_tl_call *c, u32 n,
		      const struct hb_tl_sleep *s, u32 n_sleeps)
{
	u32 from = 0;

	for (u32 i = 0; i < n; i++) {
		hb_spans__link(c, sizeof(*c), i, i ? i - 1 : HB_NONE);
		c[i].waited = has_waited(&c[i], s, n_sleeps, &from);
		t->by_op[c[i].op]++;
		t->works += hb_call__is_work(&c[i]);
		t->collectives += c[i].op == HB_OP_COLLECTIVE && !(c[i].flags & HB_AFLAG_INNER) &&
				  hb_timeline__callee(tl, &c[i])->handle;
	}
}

/* ---- what devices' records tell of calls ---- */

static void judge_again(const struct hb_timeline *tl, u32 thread, struct hb_tl_call *c)
{
	u32 n, from = hb_timeline__from(tl, thread, HB_TL_SLEEP, c->at.begin);
	const struct hb_tl_sleep *s = hb_timeline__sleeps(tl, thread, &n);

	while (from && s[from - 1].at.end > c->at.begin)
		from--;
	c->waited = has_waited(c, s, n, &from);
}

/* What a call says itself stays. One call may make several copies: of one direction, or of none that can be
 * told. What sets memory moves nothing. */
static void tell(const struct hb_timeline *tl, u32 thread, struct hb_tl_call *c, const struct hb_device_op *o)
{
	u8 copy = o->kind == HB_DEVKIND_MEMSET ? HB_COPY_DTOD : o->copy;

	if (c->op != HB_OP_COPY || (!c->told && hb_call__sized(c) && c->copy != HB_COPY_UNKNOWN))
		return;
	if (c->told) {
		c->bytes += o->size;
		c->copy = c->copy == copy ? copy : HB_COPY_UNKNOWN;
	} else {
		c->told = !c->bytes;
		c->bytes = c->bytes ? c->bytes : o->size;
		c->copy = c->copy != HB_COPY_UNKNOWN ? c->copy : copy;
	}
	judge_again(tl, thread, c);
}

/* A driver call made in a runtime call is the same copy. */
static void tell_call(struct hb_timeline *tl, const struct hb_launch *l, const struct hb_device_op *o)
{
	u32 thread = hb_timeline__by_task(tl, l->task), n, i;
	struct hb_tl_call *c;

	if (thread == HB_NONE)
		return;
	c = hb_calls__of(tl, thread, &n);
	i = hb_timeline__from(tl, thread, HB_TL_CALL, l->begin);
	while (i < n && c[i].at.begin == l->begin && c[i].correlation != l->correlation)
		i++;
	if (i == n || c[i].at.begin != l->begin)
		return;
	tell(tl, thread, &c[i], o);
	if (c[i].flags & HB_AFLAG_INNER && c[i].at.outer != HB_NONE)
		tell(tl, thread, &c[c[i].at.outer], o);
}

void hb_timeline__use_devices(struct hb_timeline *tl, const struct hb_devices *d)
{
	for (u32 k = 0; k < hb_devices__count(d); k++) {
		const struct hb_device *v = hb_devices__at(d, k);
		u64 left = v->memcpys + v->memsets;

		for (u32 i = 0; left && i < v->n_ops; i++) {
			const struct hb_device_op *o = &v->op[i];
			const struct hb_launch *l;

			if (o->kind == HB_DEVKIND_KERNEL)
				continue;
			left--;
			l = hb_devices__launch_of(d, o);
			if (l && !l->graph)
				tell_call(tl, l, o);
		}
	}
}

u64 hb_call__done(const struct hb_timeline *tl, u32 thread, u32 call, bool *sure)
{
	u32 n;
	const struct hb_tl_call *c = &hb_timeline__calls(tl, thread, &n)[call];
	u32 i = hb_timeline__from(tl, thread, HB_TL_SLEEP, c->at.end);
	const struct hb_tl_sleep *s = hb_timeline__sleeps(tl, thread, &n);
	u64 t = c->at.end;

	for (; i-- > 0 && s[i].at.begin >= c->at.begin && s[i].at.end <= t && t - s[i].at.end <= RETURN_NS;
	     t = s[i].at.begin) {
		if (s[i].state == HB_TSTATE_RUNNING)
			continue;
		if (sure)
			*sure = true;
		return s[i].at.end - s[i].ready;
	}
	if (sure)
		*sure = t == c->at.end;
	return t;
}
