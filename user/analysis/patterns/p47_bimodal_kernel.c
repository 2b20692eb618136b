/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The same kernels have two speeds, all of them at the same times: the device is shared, or changes its
 * speed. */
#include <errno.h>
#include <stdlib.h>

#include "analysis/model/decode.h"
#include "analysis/model/dist.h"
#include "analysis/model/order.h"
#include "analysis/patterns/same.h"
#include "base/text.h"

enum { LEAST, COUNT, APART, MODE, CLEAR, COVER, SHARE, KINDS, TOGETHER, ONCE };

static const struct hb_param params[] = {
    [LEAST] = {"least", HB_UNIT_NS, 5000, "kernels shorter than this do not count"},
    [COUNT] = {"count", HB_UNIT_COUNT, 40, "executions of a kernel, to be looked at"},
    [APART] = {"apart", HB_UNIT_RATIO, 1150000, "mean of its slow mode over that of its fast one"},
    [MODE] = {"mode", HB_UNIT_SHARE, 100000, "a kernel's executions of its smaller mode, of all"},
    [CLEAR] =
	{"clear", HB_UNIT_SHARE, 850000,
	 "the part of a kernel's variance that two modes explain (an even spread has 0.75, one hill 0.64)"},
    [COVER] = {"cover", HB_UNIT_SHARE, 300000, "kernels that can be looked at, of the kernels' time"},
    [SHARE] = {"share", HB_UNIT_SHARE, 500000, "kernels with two modes, of these kernels' time"},
    [KINDS] = {"kinds", HB_UNIT_COUNT, 2, "kernels with another name or grid that have them"},
    [TOGETHER] = {"together", HB_UNIT_SHARE, 500000,
		  "successive kernels in the same mode, beyond what chance gives, of what it leaves"},
    [ONCE] = {"once", HB_UNIT_SHARE, 500000,
	      "of the executions of the smaller mode, at most the part that one change from fast to slow "
	      "explains: else the device got slower (P40f)"},
    {0},
};

enum { FAST = 1, SLOW }; /* hb_same_exec.mode; 0: its kind has one */

struct modes {
	u64 looked, two; /* ns of kernels looked at; with two modes */
	u32 kinds;
	u64 slow, execs; /* executions */
	const struct hb_same_kind *top;
	u64 lost, fast_ns, slow_ns; /* of top */
};

struct split {
	u32 fast; /* so many are of the fast mode */
	double clear, fast_mean, slow_mean;
};

/* Where to part sorted durations so that most of their variance lies between the parts (Otsu). */
static struct split part(const u64 *v, u32 n)
{
	struct split best = {.fast = n};
	double sum = 0, squares = 0, left = 0, all, most = 0;

	for (u32 i = 0; i < n; i++) {
		sum += (double)v[i];
		squares += (double)v[i] * (double)v[i];
	}
	all = squares - sum * sum / n;
	for (u32 k = 1; k < n; k++) {
		double a, b, between;

		left += (double)v[k - 1];
		a = left / k;
		b = (sum - left) / (n - k);
		between = (b - a) * (b - a) * k * (n - k) / n;
		if (v[k] == v[k - 1] || between <= most)
			continue;
		most = between;
		best = (struct split){.fast = k, .fast_mean = a, .slow_mean = b};
	}
	best.clear = all > 0 ? most / all : 0;
	return best;
}

static bool has_two(const struct hb_look *l, const struct split *p, u32 n)
{
	u32 few = p->fast < n - p->fast ? p->fast : n - p->fast;

	return hb_share(few, n) >= hb_look__param(l, MODE) &&
	       p->clear * 1e6 >= (double)hb_look__param(l, CLEAR) &&
	       p->slow_mean * 1e6 >= p->fast_mean * (double)hb_look__param(l, APART);
}

static void mark(struct hb_same *x, struct hb_same_kind *k, const struct split *p, u64 limit, struct modes *m)
{
	u64 lost = 0;

	k->usual = (u64)p->fast_mean;
	for (u32 i = k->first; i < k->first + k->n; i++) {
		bool slow = hb_same__ns(x, &x->exec[i]) >= limit;

		x->exec[i].mode = slow ? SLOW : FAST;
		m->slow += slow;
		lost += slow ? hb_same__ns(x, &x->exec[i]) - k->usual : 0;
	}
	m->execs += k->n;
	m->two += k->total;
	if (lost <= m->lost)
		return;
	m->lost = lost;
	m->top = k;
	m->fast_ns = k->usual;
	m->slow_ns = (u64)p->slow_mean;
}

static int look_for(const struct hb_look *l, struct hb_same *x, struct modes *m)
{
	u64 *room = malloc((x->most + 1) * sizeof(*room));

	if (!room)
		return -ENOMEM;
	for (u32 i = 0; i < x->n; i++) {
		struct hb_same_kind *k = &x->kind[i];
		struct split p;

		if (k->n < hb_look__param(l, COUNT))
			continue;
		m->looked += k->total;
		for (u32 e = 0; e < k->n; e++)
			room[e] = hb_same__ns(x, &x->exec[k->first + e]);
		hb_order__values(room, k->n);
		p = part(room, k->n);
		if (has_two(l, &p, k->n))
			mark(x, k, &p, room[p.fast], m);
	}
	free(room);
	return 0;
}

struct modes_in_time { /* by operation; 0: not looked at */
	u32 *kind;
	u8 *mode;
};

static int in_time(const struct hb_same *x, struct modes_in_time *t)
{
	t->kind = calloc(x->v->n_ops + 1, sizeof(*t->kind));
	t->mode = calloc(x->v->n_ops + 1, 1);
	if (!t->kind || !t->mode)
		return -ENOMEM;
	for (u32 i = 0; i < x->n; i++)
		for (u32 e = x->kind[i].first; e < x->kind[i].first + x->kind[i].n; e++) {
			t->kind[x->exec[e].op] = i;
			t->mode[x->exec[e].op] = (u8)x->exec[e].mode;
		}
	return 0;
}

/* Of successive executions of different kernels, how much more often both are slow, or both fast, than if
 * each were so by itself (Cohen's kappa): millionths. */
static u64 together(const struct hb_same *x, const struct modes *m, const struct modes_in_time *t)
{
	u64 pairs = 0, agree = 0;
	u32 last = UINT32_MAX;
	double slow = (double)m->slow / (double)(m->execs ? m->execs : 1), chance, seen;

	for (u32 i = 0; i < x->v->n_ops; i++) {
		if (!t->mode[i])
			continue;
		if (last != UINT32_MAX && x->kind[t->kind[last]].name != x->kind[t->kind[i]].name) {
			pairs++;
			agree += t->mode[last] == t->mode[i];
		}
		last = i;
	}
	chance = slow * slow + (1 - slow) * (1 - slow);
	seen = pairs ? (double)agree / (double)pairs : 0;
	return seen > chance && chance < 1 ? (u64)((seen - chance) / (1 - chance) * 1e6) : 0;
}

/* What is left of the smaller mode when one moment parts fast from slow as well as it can, and those on the
 * wrong side are taken off: millionths. */
static u64 once(const struct hb_same *x, const struct modes *m, const struct modes_in_time *t)
{
	u64 fast = m->execs - m->slow, fewer = m->slow < fast ? m->slow : fast;
	u64 wrong = fast, least = fast; /* at the very begin all are after: the fast ones are wrong */

	for (u32 i = 0; i < x->v->n_ops; i++) {
		wrong += t->mode[i] == SLOW;
		wrong -= t->mode[i] == FAST;
		least = wrong < least ? wrong : least;
	}
	return least < fewer ? hb_share(fewer - least, fewer) : 0;
}

static int tell(struct hb_look *l, const struct hb_same *x, const struct modes *m)
{
	char fast[32], slow[32];
	char kernel[120];
	struct hb_draft *d = hb_look__find(
	    l,
	    "device %u has two speeds, or its steps come in two kinds (prefill and decode, two sizes of a "
	    "batch): the same kernels take one time or another, all of them at the same "
	    "times (%llu %% of their executions are slow); most of it %s: %s or %s",
	    x->v->number, (unsigned long long)((hb_share(m->slow, m->execs) + 5000) / 10000),
	    hb_decode__kernel(hb_window__string(l->s->w, m->top->name), kernel, sizeof(kernel)),
	    hb_text__ns(fast, sizeof(fast), m->fast_ns), hb_text__ns(slow, sizeof(slow), m->slow_ns));
	int err = 0;

	if (!d)
		return -ENOMEM;
	hb_draft__pid(d, x->v->pid);
	hb_draft__device(d, x->v->index);
	hb_draft__confidence(d, HB_CONFIDENCE_MEDIUM,
			     "clocks, power and other users of the device are not recorded");
	for (u32 i = 0; i < x->n; i++) {
		const struct hb_same_kind *k = &x->kind[i];

		for (u32 e = k->first; e < k->first + k->n && !err; e++)
			if (x->exec[e].mode == SLOW)
				err = hb_same__add(l->s, x, &x->exec[e], k->usual, d);
	}
	return err;
}

static int judge(struct hb_look *l, const struct hb_same *x, const struct modes *m)
{
	struct modes_in_time t = {0};
	int err;

	hb_look__subject(l);
	if (!hb_look__at_least(l, COVER, hb_share(m->looked, x->kernels)) ||
	    !hb_look__at_least(l, SHARE, hb_share(m->two, m->looked)) ||
	    !hb_look__at_least(l, KINDS, m->kinds) || !m->top)
		return 0;
	err = in_time(x, &t);
	if (!err && hb_look__at_least(l, TOGETHER, together(x, m, &t)) &&
	    hb_look__at_most(l, ONCE, once(x, m, &t)))
		err = tell(l, x, m);
	free(t.kind);
	free(t.mode);
	return err;
}

static int by_device(struct hb_look *l, const struct hb_device *v)
{
	struct modes m = {0};
	struct hb_same *x = hb_same__of(l->s, v, hb_look__param(l, LEAST), hb_look__param(l, COUNT));
	int err = x ? look_for(l, x, &m) : -ENOMEM;

	err = err ? err : hb_same__kernels(x, &m.kinds);
	return err ? err : judge(l, x, &m);
}

static int detect(struct hb_look *l)
{
	int err = hb_look__devices(l, by_device);

	if (l->any && l->best.measure.param == &params[COVER])
		hb_same__too_few(l, COUNT, COVER, "");
	return err;
}

HB_PATTERN(p47_bimodal_kernel) = {
    .id = "P47",
    .layer = "kernel",
    .title = "device shared or degraded: two speeds",
    .rank = HB_RANK_OWN,
    .needs = HB_NEED_DEVICE,
    .params = params,
    .rule =
	"several kernels, of the same grid and between the same neighbours, alone among this process's "
	"work, have two clearly parted durations, and successive ones are slow or fast together: it is the "
	"device, not one kernel. Left out are the same kernels as in P40f. (Another process on the device "
	"is not recorded; it shows by this)",
    .fix = "a device of its own, power and clock limits",
    .ref = "a public thread: 63 against 94 ms a step at equal clocks, power differs",
    .traps = "kernels that get other sizes with the same grid, step by step (prefill and decode)",
    .settle = "users, power and clocks of the device at 10 Hz beside a second window (nvidia-smi dmon, pmon)",
    .detect = detect,
};
