/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analysis/patterns/byop.h"

#include <errno.h>
#include <stdlib.h>

struct numbers { /* of one thread */
	u32 *v;
	u32 first[HB_OP_COUNT + 1]; /* of v, by kind */
};

struct hb_byop {
	const struct hb_timeline *tl;
	struct numbers *thread;
	u32 n;
};

static bool is_kept(const struct hb_tl_call *c)
{
	return c->op != HB_OP_LAUNCH && c->op < HB_OP_COUNT;
}

struct kept { /* all kinds, as they come: calls are large, and looked at once */
	u32 *call;
	u8 *op;
	u32 n;
};

static int sort(struct numbers *x, const struct kept *k)
{
	u32 at[HB_OP_COUNT] = {0}, all = 0;

	for (u32 i = 0; i < k->n; i++)
		at[k->op[i]]++;
	for (u32 o = 0; o < HB_OP_COUNT; o++) {
		x->first[o] = all;
		all += at[o];
		at[o] = x->first[o];
	}
	x->first[HB_OP_COUNT] = all;
	x->v = malloc(((size_t)all + 1) * sizeof(*x->v));
	if (!x->v)
		return -ENOMEM;
	for (u32 i = 0; i < k->n; i++)
		x->v[at[k->op[i]]++] = k->call[i];
	return 0;
}

static int fill(struct numbers *x, const struct hb_tl_call *c, u32 n)
{
	struct kept k = {.call = malloc(n * sizeof(*k.call)), .op = malloc(n)};
	int err = k.call && k.op ? 0 : -ENOMEM;

	for (u32 i = 0; i < n && !err; i++) {
		if (!is_kept(&c[i]))
			continue;
		k.call[k.n] = i;
		k.op[k.n++] = c[i].op;
	}
	err = err ? err : sort(x, &k);
	free(k.call);
	free(k.op);
	return err;
}

struct hb_byop *hb_byop__new(const struct hb_timeline *tl)
{
	struct hb_byop *b = calloc(1, sizeof(*b));
	int err = b ? 0 : -ENOMEM;

	if (b) {
		b->tl = tl;
		b->n = hb_timeline__threads(tl);
		b->thread = calloc((size_t)b->n + 1, sizeof(*b->thread));
		err = b->thread ? 0 : -ENOMEM;
	}
	for (u32 t = 0; !err && t < b->n; t++) {
		u32 n;
		const struct hb_tl_call *c = hb_timeline__calls(tl, t, &n);

		err = n ? fill(&b->thread[t], c, n) : 0;
	}
	if (!err)
		return b;
	hb_byop__free(b);
	return NULL;
}

void hb_byop__free(struct hb_byop *b)
{
	if (!b)
		return;
	for (u32 t = 0; b->thread && t < b->n; t++)
		free(b->thread[t].v);
	free(b->thread);
	free(b);
}

static const u32 *of_kind(const struct numbers *x, enum hb_op op, u32 *n)
{
	*n = x->first[op + 1] - x->first[op];
	return x->v ? x->v + x->first[op] : NULL;
}

struct hb_byop_calls hb_byop__calls(const struct hb_byop *b, u32 thread, enum hb_op op, enum hb_op or_op)
{
	struct hb_byop_calls x = {.n_b = 0};
	u32 n;

	x.call = hb_timeline__calls(b->tl, thread, &n);
	x.a = of_kind(&b->thread[thread], op, &x.n_a);
	if (or_op != op)
		x.b = of_kind(&b->thread[thread], or_op, &x.n_b);
	return x;
}
