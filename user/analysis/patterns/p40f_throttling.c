/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The same kernels take longer from some moment on: the device got slower. */
#include <errno.h>
#include <stdlib.h>

#include "analysis/model/decode.h"
#include "analysis/model/dist.h"
#include "analysis/patterns/same.h"
#include "base/text.h"

enum { LEAST, COUNT, SLOWER, COVER, SHARE, KINDS, ONCE };

static const struct hb_param params[] = {
    [LEAST] = {"least", HB_UNIT_NS, 5000, "kernels shorter than this do not count"},
    [COUNT] = {"count", HB_UNIT_COUNT, 20, "executions of a kernel before and after, to be compared"},
    [SLOWER] = {"slower", HB_UNIT_RATIO, 1150000, "median after over median before"},
    [COVER] = {"cover", HB_UNIT_SHARE, 300000, "kernels that can be compared, of the kernels' time"},
    [SHARE] = {"share", HB_UNIT_SHARE, 500000, "kernels that got slower, of these kernels' time"},
    [KINDS] = {"kinds", HB_UNIT_COUNT, 2, "kernels with another name or grid that got slower"},
    [ONCE] =
	{"once", HB_UNIT_SHARE, 500000,
	 "of the fewer executions, those before or those after, the part that is left when slow ones before "
	 "and fast ones after are taken off: else it has two speeds (P47)"},
    {0},
};

struct halves {
	u64 mid;		/* when it got slower */
	u64 compared, slow;	/* ns of kernels that can be compared; that got slower */
	u64 before, after, odd; /* executions of those; slow ones before and fast ones after */
	u32 kinds;
	const struct hb_same_kind *top; /* that lost most */
	u64 early, late, lost;		/* of it: medians, and what it lost */
};

static u64 median(const struct hb_same *x, u32 from, u32 to, u64 *room)
{
	for (u32 i = from; i < to; i++)
		room[i - from] = hb_same__ns(x, &x->exec[i]);
	return hb_dist__median(room, to - from);
}

/* Where to part the executions of a kind in time so that what comes after is slower by most (the variance
 * between the parts), with `few` or more in each; the last one's index + 1: they got no slower. */
static u32 part(const struct hb_same *x, const struct hb_same_kind *k, u64 few, u64 slower)
{
	double sum = 0, left = 0, most = 0;
	u32 best = k->first + k->n;

	for (u32 i = 0; i < k->n; i++)
		sum += (double)hb_same__ns(x, &x->exec[k->first + i]);
	for (u32 i = 1; i + few <= k->n; i++) {
		double a, b, between;

		left += (double)hb_same__ns(x, &x->exec[k->first + i - 1]);
		a = left / i;
		b = (sum - left) / (k->n - i);
		between = (b - a) * (b - a) * i * (k->n - i);
		if (i < few || b * 1e6 < a * (double)slower || between <= most)
			continue;
		most = between;
		best = k->first + i;
	}
	return best;
}

/* The moment from which the kernel that takes most time takes longer, in the middle between the two
 * executions; when it does not, half of the window. */
static u64 changed_at(const struct hb_look *l, const struct hb_same *x)
{
	const struct hb_same_kind *top = NULL;
	u64 a = x->v->begin, b = x->v->end;
	u32 at;

	for (u32 i = 0; i < x->n; i++)
		if (x->kind[i].n >= 2 * hb_look__param(l, COUNT) && (!top || x->kind[i].total > top->total))
			top = &x->kind[i];
	at = top ? part(x, top, hb_look__param(l, COUNT), hb_look__param(l, SLOWER)) : 0;
	if (top && at < top->first + top->n) {
		a = x->v->op[x->exec[at - 1].op].end;
		b = x->v->op[x->exec[at].op].begin;
	}
	return a + (b - a) / 2;
}

/* First execution of the later part. */
static u32 later(const struct hb_same *x, const struct hb_same_kind *k, u64 mid)
{
	u32 i = k->first;

	while (i < k->first + k->n && x->v->op[x->exec[i].op].begin < mid)
		i++;
	return i;
}

/* Slow ones before, fast ones after: beyond the middle between the two. */
static void count_odd(const struct hb_same *x, const struct hb_same_kind *k, u32 mid, u64 limit,
		      struct halves *h)
{
	for (u32 i = k->first; i < k->first + k->n; i++)
		h->odd += (i < mid) == (hb_same__ns(x, &x->exec[i]) > limit);
	h->before += mid - k->first;
	h->after += k->first + k->n - mid;
}

/* `usual` of a kind that got slower becomes its median before; 0: it did not. */
static int compare(const struct hb_look *l, struct hb_same *x, struct halves *h)
{
	u64 *room = malloc((x->most + 1) * sizeof(*room));

	if (!room)
		return -ENOMEM;
	for (u32 i = 0; i < x->n; i++) {
		struct hb_same_kind *k = &x->kind[i];
		u32 mid = later(x, k, h->mid), end = k->first + k->n;
		u64 early, late;

		if (mid - k->first < hb_look__param(l, COUNT) || end - mid < hb_look__param(l, COUNT))
			continue;
		h->compared += k->total;
		early = median(x, k->first, mid, room);
		late = median(x, mid, end, room);
		if (hb_share(late, early) < hb_look__param(l, SLOWER))
			continue;
		k->usual = early;
		h->slow += k->total;
		count_odd(x, k, mid, early + (late - early) / 2, h);
		if ((late - early) * (end - mid) <= h->lost)
			continue;
		h->lost = (late - early) * (end - mid);
		h->top = k;
		h->early = early;
		h->late = late;
	}
	free(room);
	return 0;
}

static int tell(struct hb_look *l, const struct hb_same *x, const struct halves *h)
{
	char before[32], after[32], at[32];
	char kernel[120];
	struct hb_draft *d = hb_look__find(
	    l,
	    "device %u got slower: from %s into the window on the same kernels take longer (%llu %% of the "
	    "time of those that can be compared is of such); most of it %s: %s, then %s",
	    x->v->number, hb_text__ns(at, sizeof(at), h->mid - l->s->start),
	    (unsigned long long)(hb_share(h->slow, h->compared) / 10000),
	    hb_decode__kernel(hb_window__string(l->s->w, h->top->name), kernel, sizeof(kernel)),
	    hb_text__ns(before, sizeof(before), h->early), hb_text__ns(after, sizeof(after), h->late));
	int err = 0;

	if (!d)
		return -ENOMEM;
	hb_draft__pid(d, x->v->pid);
	hb_draft__device(d, x->v->index);
	hb_draft__confidence(d, HB_CONFIDENCE_MEDIUM,
			     "clocks and power are not recorded: why it got slower is not known");
	for (u32 i = 0; i < x->n; i++) {
		const struct hb_same_kind *k = &x->kind[i];

		for (u32 e = k->usual ? later(x, k, h->mid) : k->first + k->n; e < k->first + k->n && !err;
		     e++)
			err = hb_same__add(l->s, x, &x->exec[e], k->usual, d);
	}
	return err;
}

static u64 once(const struct halves *h)
{
	u64 fewer = h->before < h->after ? h->before : h->after;

	return h->odd < fewer ? hb_share(fewer - h->odd, fewer) : 0;
}

static int by_device(struct hb_look *l, const struct hb_device *v)
{
	struct hb_same *x = hb_same__of(l->s, v, hb_look__param(l, LEAST), 2 * hb_look__param(l, COUNT));
	struct halves h = {.mid = x ? changed_at(l, x) : 0};
	int err = x ? compare(l, x, &h) : -ENOMEM;

	err = err ? err : hb_same__kernels(x, &h.kinds);
	hb_look__subject(l);
	if (!err && hb_look__at_least(l, COVER, hb_share(h.compared, x->kernels)) &&
	    hb_look__at_least(l, SHARE, hb_share(h.slow, h.compared)) &&
	    hb_look__at_least(l, KINDS, h.kinds) && hb_look__at_least(l, ONCE, once(&h)) && h.top)
		err = tell(l, x, &h);
	return err;
}

static int detect(struct hb_look *l)
{
	int err = hb_look__devices(l, by_device);

	if (l->any && l->best.measure.param == &params[COVER])
		hb_same__too_few(l, COUNT, COVER, "before and after");
	return err;
}

HB_PATTERN(p40f_throttling) = {
    .id = "P40f",
    .layer = "kernel",
    .title = "the device gets slower",
    .rank = HB_RANK_OWN,
    .needs = HB_NEED_DEVICE,
    .params = params,
    .rule =
	"several kernels, of the same grid and between the same neighbours, alone on the device, are 15 % "
	"slower from some moment on, and stay so. Kernels whose time follows from their data are left out: "
	"attention, experts, sorting, grids that are a multiple of the multiprocessors; and collectives",
    .fix = "cooling, power limit, clocks; a device of its own",
    .ref = "no public incident is known",
    .traps = "kernels that get other sizes with the same grid; clocks that are raised in the first seconds "
	     "make the device faster, not slower; another process on the device that came later",
    .settle = "clocks, power and users of the device at 10 Hz beside a second window (nvidia-smi dmon)",
    .detect = detect,
};
