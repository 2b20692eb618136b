/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A language model by its configuration: the config.json that comes with the weights (Hugging Face's style),
 * as far as it decides sizes. 0 = not said.
 */
#ifndef HB_LLM_H
#define HB_LLM_H

#include <stdbool.h>

#include "analysis/model/dtype.h"
#include "base/error.h"

#define HB_LLM_LAYERS 1024

enum hb_llm_layer { /* what a layer mixes its tokens with */
		    HB_LLM_FULL,
		    HB_LLM_SLIDING, /* attention over the last `window` tokens */
		    HB_LLM_LINEAR,  /* gated DeltaNet */
		    HB_LLM_MAMBA,   /* Mamba-2 */
};

struct hb_llm {
	char type[64];			       /* "qwen3" */
	uint32_t layers, hidden, inner, vocab; /* inner: of the dense feed-forward part */
	uint32_t heads, kv_heads, head_dim, window;
	uint8_t layer[HB_LLM_LAYERS]; /* enum hb_llm_layer */
	/* experts */
	uint32_t experts, top_k, expert_inner,
	    first_dense; /* first_dense: layers before the first with experts */
	uint32_t shared_inner;
	/* latent attention */
	uint32_t kv_rank, rope_dim, nope_dim, v_dim;
	/* gated DeltaNet */
	uint32_t lin_v_heads, lin_k_heads, lin_d_k, lin_d_v, full_every;
	/* Mamba-2 */
	uint32_t ssm_heads, ssm_head_dim, ssm_state, ssm_groups, ssm_conv, ssm_chunk;
	/* enum hb_dtype: activations, weights of dense layers, of experts */
	uint8_t act, weight, expert_weight;
	double scale_bytes, expert_scale_bytes; /* for each element of such weights */
};

/* Reads a configuration. -EINVAL with a sentence. A member of an unknown name is no error; one without which
 * there is no model is. */
int hb_llm__parse(struct hb_llm *m, const char *name, const char *text, size_t size, struct hb_error *e);
int hb_llm__read(struct hb_llm *m, const char *path, struct hb_error *e);

#endif
