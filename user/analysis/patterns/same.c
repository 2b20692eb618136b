/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analysis/patterns/same.h"

#include <errno.h>
#include <stdlib.h>

#include "base/map.h"
#include "base/text.h"

/* Kernels whose time follows from their data, not from their grid; and those that wait. */
static const char *const varying[] = {
    "*ttention*", "*fmha*", "*flash_*",	    "*Flash*",	 "*_mla*",     "*paged*",   "*moe*",
    "*Moe*",	  "*MoE*",  "*group*",	    "*Group*",	 "*expert*",   "*sort*",    "*Sort*",
    "*topk*",	  "*topK*", "*TopK*",	    "*select*",	 "*nonzero*",  "*unique*",  "*ampl*",
    "*scan*",	  "*Scan*", "*persistent*", "*Persist*", "*stream_k*", "*StreamK*", "*spin*",
    "*wait*",	  "*Wait*", "*barrier*",    "*Barrier*", NULL,
};

/* What identifies an operation to its neighbours. */
static u64 mark_of(const struct hb_device_op *o)
{
	u64 x = o->name * 0x9e3779b97f4a7c15ULL + ((u64)o->size << 3 | o->kind);

	x *= 0xff51afd7ed558ccdULL;
	return x ^ x >> 32;
}

struct before { /* the last operation of a stream */
	u64 mark;
	u32 op; /* + 1; 0: none yet */
};

/* key[i]: of the operation with those before and after it on its stream. 0 or -ENOMEM. */
static int make_keys(const struct hb_device *v, u64 *key)
{
	struct before *last = calloc((size_t)v->n_streams + 1, sizeof(*last));

	if (!last)
		return -ENOMEM;
	for (u32 i = 0; i < v->n_ops; i++) {
		const struct hb_device_op *o = &v->op[i];
		struct before *b = &last[o->stream < v->n_streams ? o->stream : v->n_streams];
		u64 mark = mark_of(o);

		key[i] = (mark + o->threads) * 0xc4ceb9fe1a85ec53ULL;
		if (b->op) {
			key[i] ^= (b->mark << 17 | b->mark >> 47) * 0x94d049bb133111ebULL;
			key[b->op - 1] =
			    (key[b->op - 1] ^ key[b->op - 1] >> 29) + mark * 0xbf58476d1ce4e5b9ULL;
		}
		*b = (struct before){.mark = mark, .op = i + 1};
	}
	free(last);
	return 0;
}

enum { BUCKETS = 1 << 16 };

struct making {
	const struct hb_scene *s;
	struct hb_named *varies;
	struct hb_map *kinds;
	u16 *seen; /* operations by a part of their key: no kind in it has more */
	u64 *key;
	u32 *of; /* kind of each operation + 1; 0: not compared */
	u32 cap;
};

static bool comparable(const struct making *m, const struct hb_same *x, const struct hb_device_op *o,
		       u64 least)
{
	if (o->end - o->begin < least || !o->size)
		return false;
	return !(x->sms && o->size % x->sms == 0) && !hb_scene__named(m->s, o->name, varying, m->varies);
}

static u16 *bucket(const struct making *m, u32 i)
{
	return &m->seen[m->key[i] >> 40 & (BUCKETS - 1)];
}

static int count(struct making *m, struct hb_same *x, u32 i)
{
	const struct hb_device_op *o = &x->v->op[i];
	u64 *slot = hb_map__slot(m->kinds, m->key[i], NULL);
	struct hb_same_kind *k;

	if (!slot)
		return -ENOMEM;
	if (!*slot) {
		if (x->n == m->cap) {
			u32 cap = m->cap ? 2 * m->cap : 64;

			k = reallocarray(x->kind, cap, sizeof(*k));
			if (!k)
				return -ENOMEM;
			x->kind = k;
			m->cap = cap;
		}
		x->kind[x->n] = (struct hb_same_kind){.name = o->name, .blocks = (u32)o->size};
		*slot = ++x->n;
	}
	m->of[i] = (u32)*slot;
	k = &x->kind[*slot - 1];
	k->n++;
	k->total += o->end - o->begin;
	return 0;
}

/* Kinds are numbered only where there may be enough of one. */
static int count_all(struct making *m, struct hb_same *x)
{
	const struct hb_device *v = x->v;
	u64 until = 0; /* end of what ran before */
	u16 few = x->few < UINT16_MAX ? (u16)x->few : UINT16_MAX;
	int err = 0;

	for (u32 i = 0; i < v->n_ops; i++) {
		const struct hb_device_op *o = &v->op[i];
		bool alone = o->begin >= until && (i + 1 == v->n_ops || v->op[i + 1].begin >= o->end);

		until = o->end > until ? o->end : until;
		if (o->kind != HB_DEVKIND_KERNEL || o->work != HB_WORK_COMPUTE)
			continue;
		x->kernels += o->end - o->begin;
		m->of[i] = alone && comparable(m, x, o, x->least);
		if (m->of[i] && *bucket(m, i) < UINT16_MAX)
			++*bucket(m, i);
	}
	for (u32 i = 0; i < v->n_ops && !err; i++) {
		if (m->of[i] && *bucket(m, i) >= few)
			err = count(m, x, i);
		else
			m->of[i] = 0;
	}
	return err;
}

static int fill(const struct making *m, struct hb_same *x)
{
	for (u32 i = 0; i < x->n; i++) {
		x->kind[i].first = x->n_execs;
		x->n_execs += x->kind[i].n;
		x->most = x->kind[i].n > x->most ? x->kind[i].n : x->most;
		x->kind[i].n = 0;
	}
	x->exec = calloc(x->n_execs + 1, sizeof(*x->exec));
	if (!x->exec)
		return -ENOMEM;
	for (u32 i = 0; i < x->v->n_ops; i++) {
		struct hb_same_kind *k = m->of[i] ? &x->kind[m->of[i] - 1] : NULL;

		if (k)
			x->exec[k->first + k->n++].op = i;
	}
	return 0;
}

/* Is there a name of which kernels may be compared? Most windows need no look at each operation. */
static bool any_of(const struct hb_scene *s, const struct hb_same *x)
{
	u32 n;
	const struct hb_kernel *const *k = hb_devices__kernels(s->dev, &n);

	for (u32 i = 0; i < n; i++)
		if (k[i]->work == HB_WORK_COMPUTE && k[i]->blocks && k[i]->dur.max >= x->least &&
		    k[i]->dur.count >= x->few && !hb_scene__named(s, k[i]->name, varying, &s->same->varies))
			return true;
	return false;
}

static void same_free(struct hb_same *x)
{
	free(x->kind);
	free(x->exec);
	*x = (struct hb_same){0};
}

static int build(const struct hb_scene *s, struct hb_same *out)
{
	const struct hb_device *v = out->v;
	struct making m = {.s = s, .varies = &s->same->varies, .kinds = hb_map__new()};
	int err;

	m.key = malloc((v->n_ops + 1) * sizeof(*m.key));
	m.of = calloc(v->n_ops + 1, sizeof(*m.of));
	m.seen = calloc(BUCKETS, sizeof(*m.seen));
	err = m.kinds && m.key && m.of && m.seen ? make_keys(v, m.key) : -ENOMEM;
	err = err ? err : count_all(&m, out);
	err = err ? err : fill(&m, out);
	hb_map__free(m.kinds);
	free(m.key);
	free(m.of);
	free(m.seen);
	return err;
}

struct hb_same *hb_same__of(const struct hb_scene *s, const struct hb_device *v, u64 least, u64 few)
{
	struct hb_same *x = &s->same->of[v->index];

	if (x->v && x->least == least && x->few == few) { /* by another pattern */
		for (u32 i = 0; i < x->n; i++)
			x->kind[i].usual = 0;
		for (u32 i = 0; i < x->n_execs; i++)
			x->exec[i].mode = 0;
		return x;
	}
	same_free(x);
	*x = (struct hb_same){
	    .v = v, .least = least, .few = few, .sms = hb_scene__multiprocessors(s, v->number)};
	if (!any_of(s, x) || !build(s, x))
		return x;
	same_free(x);
	return NULL;
}

struct hb_sames *hb_sames__new(const struct hb_devices *d)
{
	u32 n = d ? hb_devices__count(d) : 0;
	struct hb_sames *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	a->n = n;
	a->of = calloc(n + 1, sizeof(*a->of));
	if (a->of)
		return a;
	free(a);
	return NULL;
}

void hb_sames__free(struct hb_sames *a)
{
	if (!a)
		return;
	for (u32 i = 0; i < a->n; i++)
		same_free(&a->of[i]);
	hb_named__free(&a->varies);
	free(a->of);
	free(a);
}

int hb_same__kernels(const struct hb_same *x, u32 *n)
{
	struct hb_map *seen = hb_map__new();
	int err = seen ? 0 : -ENOMEM;

	for (u32 i = 0; i < x->n && !err; i++)
		if (x->kind[i].usual)
			err = hb_map__put(seen, (u64)x->kind[i].name << 32 | x->kind[i].blocks, 1);
	*n = err ? 0 : (u32)hb_map__size(seen);
	hb_map__free(seen);
	return err;
}

int hb_same__add(const struct hb_scene *s, const struct hb_same *x, const struct hb_same_exec *e, u64 usual,
		 struct hb_draft *d)
{
	const struct hb_device_op *o = &x->v->op[e->op];
	u64 ns = o->end - o->begin;
	const struct hb_launch *k = hb_devices__launch_of(s->dev, o);
	struct hb_case c = {.begin = o->begin, .end = o->end, .thread = HB_NONE, .stack = k ? k->stack : 0};

	return hb_draft__add_device(d, &c, ns > usual ? ns - usual : 0);
}

void hb_same__too_few(struct hb_look *l, u32 count, u32 cover, const char *where)
{
	hb_look__unchecked(
	    l, 0,
	    "needs kernels that run %llu times%s%s with the same grid and neighbours, alone on the "
	    "device, and make up %llu %% of its kernels' time (here %llu %%): record for longer",
	    (unsigned long long)hb_look__param(l, count), *where ? " " : "", where,
	    (unsigned long long)(hb_look__param(l, cover) / 10000),
	    (unsigned long long)(l->best.measure.value / 10000));
}
