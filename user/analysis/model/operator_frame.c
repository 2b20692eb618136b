/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which frame of a call's stack is the operator. */
#include <stdlib.h>
#include <string.h>

#include "analysis/model/operator_frame.h"
#include "base/text.h"

/* A module's own work, and a framework's. Class and function from Python 3.11 on, the plain name before. */
static const char *const modules[] = {"forward", "*.forward", "*.forward_[a-z]*"};

/* What engines call their parts that give a device work: vLLM, SGLang, TensorRT-LLM, llama.cpp's servers.
 * Innermost first counts, so their order says nothing. */
static const char *const engine[] = {"execute_model",	  "*.execute_model",  "*.execute_dummy_batch",
				     "*._prepare_inputs", "*.prepare_inputs", "*.prepare_input",
				     "*.sample",	  "*.sample_tokens",  "*._sample",
				     "*.compute_logits",  "*.propose",	      "*.replay",
				     "*.replay_prepare",  "*.capture",	      "*.prefill",
				     "*.decode",	  "*.run_batch",      "*.process_batch_result*",
				     "*._forward_step",	  "*.generate",	      "generate",
				     "*.get_output",	  "*.step",	      "one_step",
				     "*.one_step"};

enum rank { NOT_YET, MODULE, ENGINE, PYTHON, NO_RANK };

static bool any(const char *const *globs, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (hb_text__glob(globs[i], name))
			return true;
	return false;
}

/* "aten::addmm" of an imported trace is a frame of no library; a C++ function has one. */
static bool is_framework(const struct hb_loc *l, const char *name)
{
	return l->lang == HB_LANG_NATIVE && !l->module && strstr(name, "::");
}

static enum rank rank_of(const struct hb_window *w, const struct hb_loc *l)
{
	const char *name = l->func ? hb_window__string(w, l->func) : "";

	if (is_framework(l, name))
		return MODULE;
	if (l->lang != HB_LANG_PYTHON || !l->func)
		return NO_RANK;
	if (any(modules, sizeof(modules) / sizeof(*modules), name))
		return MODULE;
	return any(engine, sizeof(engine) / sizeof(*engine), name) ? ENGINE : PYTHON;
}

/* Out of memory only makes it slower. */
static bool make_room(struct hb_frame_pick *p, u32 loc)
{
	u32 n = loc + loc / 2 + 256;
	u8 *more;

	if (loc < p->n_ranks)
		return true;
	more = realloc(p->rank, n);
	if (!more)
		return false;
	memset(more + p->n_ranks, NOT_YET, n - p->n_ranks);
	p->rank = more;
	p->n_ranks = n;
	return true;
}

/* Locations are few and numbered by the window: what it does not have is not remembered. */
static enum rank look(struct hb_frame_pick *p, u32 loc)
{
	const struct hb_loc *l = hb_window__loc(p->w, loc);
	enum rank r = l ? rank_of(p->w, l) : NO_RANK;

	if (l && make_room(p, loc))
		p->rank[loc] = (u8)r;
	return r;
}

static inline enum rank rank_cached(struct hb_frame_pick *p, u32 loc)
{
	return loc < p->n_ranks && p->rank[loc] != NOT_YET ? (enum rank)p->rank[loc] : look(p, loc);
}

/* Its location, and what tells its activation from others': all frames further out, with their lines. */
static void pick(struct hb_frame_pick *p, u32 pid, u32 raw, struct hb_picked *to)
{
	struct hb_stack st = hb_window__stack(p->w, pid, raw);
	enum rank best = NO_RANK;
	u32 at = 0;

	for (u32 i = st.n; i-- > 0 && best != MODULE;) {
		enum rank r = rank_cached(p, st.locs[i]);

		if (r < best) {
			best = r;
			at = i;
		}
	}
	if (best == NO_RANK)
		return;
	to->loc = st.locs[at];
	to->outside = hb_hash_bytes(st.locs, at * sizeof(*st.locs));
}

enum { RECENT = 16384 };

int hb_frame_pick__init(struct hb_frame_pick *p, struct hb_window *w)
{
	int err;

	*p = (struct hb_frame_pick){.w = w};
	err = hb_rows__init(&p->stacks, sizeof(struct hb_picked));
	p->recent = calloc(RECENT, sizeof(*p->recent));
	return err || !p->recent ? -1 : 0;
}

void hb_frame_pick__free(struct hb_frame_pick *p)
{
	free(p->rank);
	hb_rows__free(&p->stacks, NULL);
	free(p->recent);
}

struct hb_picked *hb_frame_pick__of(struct hb_frame_pick *p, u32 pid, u32 raw)
{
	u64 key = (u64)pid << 32 | raw;
	/* A process's stacks have small numbers: they do not meet. */
	struct hb_frame_recent *r = &p->recent[(raw ^ pid * 0x9e3779b1u >> 16) & (RECENT - 1)];
	struct hb_picked *got;
	bool fresh;

	if (!raw)
		return &p->none;
	if (r->key == key)
		return r->picked;
	got = hb_rows__get(&p->stacks, key, &fresh);
	if (!got) {
		p->oom = true;
		return &p->none;
	}
	if (fresh)
		pick(p, pid, raw, got);
	*r = (struct hb_frame_recent){.key = key, .picked = got};
	return got;
}
