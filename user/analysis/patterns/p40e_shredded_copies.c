/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Very many tiny copies in each step. */
#include <errno.h>

#include "analysis/patterns/pattern.h"
#include "base/text.h"

enum { COPIES, MEAN };

static const struct hb_param params[] = {
    [COPIES] = {"copies", HB_UNIT_RATIO, 100000000, "copies in a step, on average"},
    [MEAN] = {"mean", HB_UNIT_BYTES, 65536, "mean size, at most"},
    {0},
};

static int look_at(struct hb_look *l, const struct hb_series *p)
{
	u32 n;
	const struct hb_tl_call *c = hb_timeline__calls(l->s->tl, p->dispatch, &n);
	const struct hb_sets *idle = hb_scene__exposed(l->s, p->dispatch);
	u64 all = 0, copies, bytes = 0;
	struct hb_byop_calls of;
	struct hb_draft *d;
	char who[64], size[32];
	int err = 0;

	for (u32 i = 0; i < p->n; i++) {
		all += p->step[i].copies;
		bytes += p->step[i].copied_bytes;
	}
	copies = all - p->unsized;
	hb_look__subject(l);
	if (!p->n || !all || !hb_look__at_least(l, COPIES, hb_share(all, p->n)))
		return 0;
	if (!copies || p->unsized > copies) {
		hb_look__unchecked(l, HB_NEED_COPY_SIZES,
				   "needs the sizes of copies: of %llu of %llu in steps they are not known",
				   (unsigned long long)p->unsized, (unsigned long long)all);
		return 0;
	}
	if (!hb_look__at_most(l, MEAN, bytes / copies))
		return 0;
	d = hb_look__find(l, "%s makes %llu copies a step, %s on average",
			  hb_scene__thread_text(l->s, p->dispatch, who, sizeof(who)),
			  (unsigned long long)(all / p->n),
			  hb_text__bytes(size, sizeof(size), bytes / copies));
	if (!d)
		return -ENOMEM;
	hb_draft__pid(d, p->pid);
	of = hb_byop__calls(l->s->byop, p->dispatch, HB_OP_COPY, HB_OP_COPY);
	for (u32 i; !err && (i = hb_byop__next(&of)) != HB_NONE;) {
		/* What a copy costs the host: from its begin to the next call. */
		struct hb_case x = {.begin = c[i].at.begin,
				    .end = i + 1 < n ? c[i + 1].at.begin : c[i].at.end,
				    .thread = p->dispatch,
				    .stack = c[i].at.stack};

		if (x.end > x.begin)
			err = hb_draft__add_sets(d, &x, idle);
	}
	return err;
}

static int detect(struct hb_look *l)
{
	return hb_look__series(l, look_at);
}

HB_PATTERN(p40e_shredded_copies) = {
    .id = "P40e",
    .layer = "kernel",
    .title = "redundant or shredded copies",
    .rank = HB_RANK_API,
    .needs = HB_NEED_ACCEL | HB_NEED_STEP,
    .params = params,
    .rule =
	"a step makes very many copies that are small on average; not checked where the sizes of most are "
	"not known. (Whether two copies move the same bytes is not recorded)",
    .fix = "a batched copy, one kernel that gathers",
    .ref = "vllm-project/vllm#38460; llm-d/llm-d-kv-cache#607 (1.9 to 2.4 times); vllm-project/vllm#57342 "
	   "(below 28 KiB a "
	   "kernel is faster)",
    .traps = "blocks of a KV cache that really lie apart",
    .settle = "sizes and places of the copies",
    .detect = detect,
};
