/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analysis/patterns/batches.h"

#include <errno.h>
#include <stdlib.h>

#include "analysis/model/roof_rule.h"
#include "analysis/patterns/fields.h"

static int add(struct hb_batches *b, u32 *cap, struct hb_batch x)
{
	if (b->n == *cap) {
		u32 more = *cap ? 2 * *cap : 64;
		struct hb_batch *v = reallocarray(b->v, more, sizeof(*v));

		if (!v)
			return -ENOMEM;
		b->v = v;
		*cap = more;
	}
	b->v[b->n++] = x;
	return 0;
}

static int of_thread(const struct hb_scene *s, u32 thread, struct hb_batches *b)
{
	u32 n, cap = 0;
	const struct hb_tl_op *o = hb_timeline__ops(s->tl, thread, &n);
	int err = 0;

	*b = (struct hb_batches){.pid = hb_timeline__thread(s->tl, thread)->pid};
	for (u32 i = 0; i < n && !err; i++) {
		struct hb_roof_step step;

		if (b->n && o[i].at.begin < b->v[b->n - 1].end) /* some say it twice, one inside the other */
			continue;
		if (o[i].kind == HB_OPKIND_ANNOTATION &&
		    hb_roof__step(hb_window__string(s->w, o[i].name), &step))
			err = add(b, &cap,
				  (struct hb_batch){o[i].at.begin, o[i].at.end, (u64)step.prefill.q,
						    (u64)step.decode.seqs});
	}
	/* Whoever decodes in the next step, too, has its next token a whole period later. */
	for (u32 i = 0; i + 1 < b->n; i++)
		if (b->v[i + 1].decode)
			b->v[i].end = b->v[i + 1].begin;
	return err;
}

static int by_annotations(const struct hb_scene *s, struct hb_batches *out)
{
	for (u32 t = 0; t < hb_timeline__threads(s->tl); t++) {
		struct hb_batches b;
		int err = of_thread(s, t, &b);

		if (err) {
			hb_batches__free(&b);
			return err;
		}
		if (b.n > out->n) {
			struct hb_batches less = *out;

			*out = b;
			b = less;
		}
		hb_batches__free(&b);
	}
	return 0;
}

/* A step holds what was read last in it. */
static int by_fields(const struct hb_scene *s, struct hb_batches *out)
{
	const struct hb_series *p;
	struct hb_states v;
	u32 cap = 0, at = 0;
	int err = hb_states__read(s, HB_STATE_BATCH, &v);

	if (err)
		return err;
	p = hb_steps__of_pid(s->steps, v.pid);
	out->pid = v.pid;
	for (u32 i = 0; p && i < p->n && !err; i++) {
		const struct hb_step *step = &p->step[i];
		u32 last = UINT32_MAX;

		for (; at < v.n && v.v[at].at < step->end; at++)
			last = v.v[at].at >= step->begin ? at : UINT32_MAX;
		if (last != UINT32_MAX && (v.v[last].known & HB_STATE_BATCH) == HB_STATE_BATCH)
			err = add(out, &cap,
				  (struct hb_batch){step->begin, step->end, v.v[last].value[HB_STATE_PREFILL],
						    v.v[last].value[HB_STATE_DECODE]});
	}
	hb_states__free(&v);
	return err;
}

int hb_batches__read(const struct hb_scene *s, struct hb_batches *out)
{
	int err;

	*out = (struct hb_batches){0};
	err = by_annotations(s, out);
	if (!err && !out->n && hb_model__totals(s->m)->by_type[HB_TYPE_py_field])
		err = by_fields(s, out);
	return err;
}

void hb_batches__free(struct hb_batches *b)
{
	free(b->v);
	*b = (struct hb_batches){0};
}
