/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analysis/model/llm.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <yajl/yajl_tree.h>

#include "base/file.h"

#define FILE_MAX   (4u << 20)
#define DEPTH_MAX  64
#define N_ELEMS(a) (sizeof(a) / sizeof(*(a)))
#define SIZE_MOST  100000000

/* ---- JSON ---- */

static yajl_val get(yajl_val object, const char *key)
{
	const char *path[] = {key, NULL};

	return yajl_tree_get(object, path, yajl_t_any);
}

static const char *text_of(yajl_val object, const char *key)
{
	yajl_val v = object ? get(object, key) : NULL;

	return YAJL_IS_STRING(v) ? YAJL_GET_STRING(v) : "";
}

static uint32_t number_in(yajl_val object, const char *key)
{
	yajl_val v = object ? get(object, key) : NULL;

	return YAJL_IS_INTEGER(v) && YAJL_GET_INTEGER(v) > 0 && YAJL_GET_INTEGER(v) <= SIZE_MOST
		   ? (uint32_t)YAJL_GET_INTEGER(v)
		   : 0;
}

/* What frees a tree goes as deep as the tree. */
static bool too_deep(const char *s)
{
	unsigned depth = 0;

	for (; *s; s++) {
		if ((*s == '{' || *s == '[') && ++depth > DEPTH_MAX)
			return true;
		if ((*s == '}' || *s == ']') && depth)
			depth--;
	}
	return false;
}

/* ---- sizes ---- */

#define AT(member) offsetof(struct hb_llm, member)

/* Models call the same by several names: the first one that is there. */
static const struct {
	size_t at;
	const char *key[4];
} keys[] = {
    {AT(layers), {"num_hidden_layers", "n_layer", "num_layers", "n_layers"}},
    {AT(hidden), {"hidden_size", "n_embd", "d_model"}},
    {AT(inner), {"intermediate_size", "n_inner", "ffn_hidden_size", "ffn_dim"}},
    {AT(vocab), {"vocab_size"}},
    {AT(heads), {"num_attention_heads", "n_head", "n_heads"}},
    {AT(kv_heads), {"num_key_value_heads", "n_head_kv"}},
    {AT(head_dim), {"head_dim"}},
    {AT(window), {"sliding_window"}},
    {AT(experts), {"num_experts", "num_local_experts", "n_routed_experts"}},
    {AT(top_k), {"num_experts_per_tok", "experts_per_token", "num_experts_per_token"}},
    {AT(expert_inner), {"moe_intermediate_size"}},
    {AT(first_dense), {"first_k_dense_replace"}},
    {AT(shared_inner), {"shared_expert_intermediate_size"}},
    {AT(kv_rank), {"kv_lora_rank"}},
    {AT(rope_dim), {"qk_rope_head_dim"}},
    {AT(nope_dim), {"qk_nope_head_dim"}},
    {AT(v_dim), {"v_head_dim"}},
    {AT(lin_v_heads), {"linear_num_value_heads"}},
    {AT(lin_k_heads), {"linear_num_key_heads"}},
    {AT(lin_d_k), {"linear_key_head_dim"}},
    {AT(lin_d_v), {"linear_value_head_dim"}},
    {AT(full_every), {"full_attention_interval"}},
    {AT(ssm_heads), {"mamba_n_heads", "mamba_num_heads"}},
    {AT(ssm_head_dim), {"mamba_d_head", "mamba_head_dim"}},
    {AT(ssm_state), {"mamba_d_state", "ssm_state_size"}},
    {AT(ssm_groups), {"mamba_n_groups", "n_groups"}},
    {AT(ssm_conv), {"mamba_d_conv", "conv_kernel"}},
    {AT(ssm_chunk), {"mamba_chunk_size", "chunk_size"}},
};

static void take_sizes(struct hb_llm *m, yajl_val c)
{
	for (size_t i = 0; i < N_ELEMS(keys); i++) {
		uint32_t *to = (uint32_t *)((char *)m + keys[i].at);

		for (size_t k = 0; k < N_ELEMS(keys[i].key) && keys[i].key[k] && !*to; k++)
			*to = number_in(c, keys[i].key[k]);
	}
	if (!m->kv_heads)
		m->kv_heads = m->heads;
	if (!m->head_dim && m->heads)
		m->head_dim = m->hidden / m->heads;
	if (m->experts && !m->expert_inner)
		m->expert_inner = m->inner;
	if (!m->shared_inner)
		m->shared_inner = number_in(c, "n_shared_experts") * m->expert_inner;
}

static enum hb_llm_layer kind_of(const char *word, bool window)
{
	if (strstr(word, "linear"))
		return HB_LLM_LINEAR;
	if (strstr(word, "mamba"))
		return HB_LLM_MAMBA;
	return strstr(word, "sliding") && window ? HB_LLM_SLIDING : HB_LLM_FULL;
}

static void take_layers(struct hb_llm *m, yajl_val c)
{
	yajl_val list = get(c, "layer_types"), uses = get(c, "use_sliding_window");
	bool all = m->window && !YAJL_IS_FALSE(uses) && !YAJL_IS_ARRAY(list);

	for (uint32_t i = 0; i < m->layers; i++) {
		m->layer[i] = all ? HB_LLM_SLIDING : HB_LLM_FULL;
		if (m->ssm_heads && !m->heads)
			m->layer[i] = HB_LLM_MAMBA;
		if (m->lin_v_heads && m->full_every)
			m->layer[i] = (i + 1) % m->full_every ? HB_LLM_LINEAR : HB_LLM_FULL;
		if (YAJL_IS_ARRAY(list) && i < YAJL_GET_ARRAY(list)->len) {
			yajl_val v = YAJL_GET_ARRAY(list)->values[i];

			m->layer[i] =
			    (uint8_t)kind_of(YAJL_IS_STRING(v) ? YAJL_GET_STRING(v) : "", m->window > 0);
		}
	}
}

/* ---- types ---- */

/* What `quantization_config` says. Methods that quantise experts only leave the rest as it was. */
static void take_quantisation(struct hb_llm *m, yajl_val c)
{
	yajl_val q = get(c, "quantization_config"), block = q ? get(q, "weight_block_size") : NULL;
	const char *method = text_of(q, "quant_method");
	uint32_t bits = number_in(q, "bits"), group = number_in(q, "group_size");

	if (strcmp(method, "fp8") == 0) {
		double n = 0;

		if (YAJL_IS_ARRAY(block) && YAJL_GET_ARRAY(block)->len == 2 &&
		    YAJL_IS_INTEGER(YAJL_GET_ARRAY(block)->values[0]) &&
		    YAJL_IS_INTEGER(YAJL_GET_ARRAY(block)->values[1]))
			n = (double)YAJL_GET_INTEGER(YAJL_GET_ARRAY(block)->values[0]) *
			    (double)YAJL_GET_INTEGER(YAJL_GET_ARRAY(block)->values[1]);
		m->weight = m->expert_weight = HB_DTYPE_FP8;
		m->scale_bytes = m->expert_scale_bytes = n > 0 ? 4 / n : 0;
	} else if (strcmp(method, "mxfp4") == 0) { /* one byte for 32 elements */
		m->expert_weight = HB_DTYPE_FP4;
		m->expert_scale_bytes = 1.0 / 32;
	} else if ((strcmp(method, "awq") == 0 || strcmp(method, "gptq") == 0) && (bits == 4 || bits == 8)) {
		m->weight = m->expert_weight = bits == 4 ? HB_DTYPE_INT4 : HB_DTYPE_INT8;
		m->scale_bytes = m->expert_scale_bytes = group ? 2.0 / group : 0;
	} else if (*method) { /* unknown: no weights, no model of products */
		m->weight = m->expert_weight = HB_DTYPE_NONE;
	}
}

static void take_types(struct hb_llm *m, yajl_val c, yajl_val outer)
{
	const char *type = text_of(c, "torch_dtype");

	if (!*type)
		type = text_of(c, "dtype");
	if (!*type)
		type = text_of(outer, "torch_dtype");
	if (!*type)
		type = text_of(outer, "dtype");
	m->act = m->weight = m->expert_weight = (uint8_t)hb_dtype__of_name(type, strlen(type));
	take_quantisation(m, get(c, "quantization_config") ? c : outer);
}

/* ---- all of it ---- */

static int check(const struct hb_llm *m, const char *name, struct hb_error *e)
{
	const char *missing = !m->layers				       ? "num_hidden_layers"
			      : !m->hidden				       ? "hidden_size"
			      : !m->heads && !m->ssm_heads		       ? "num_attention_heads"
			      : !m->inner && !m->expert_inner && !m->ssm_heads ? "intermediate_size"
			      : !m->act					       ? "torch_dtype"
									       : NULL;

	if (missing)
		return hb_error__set(
		    e, HB_EXIT_USAGE, -EINVAL,
		    "%s is no configuration of a language model that is understood: it has no %s; give the "
		    "config.json that lies beside the model's weights",
		    name, missing);
	if (m->layers > HB_LLM_LAYERS)
		return hb_error__set(e, HB_EXIT_USAGE, -EINVAL,
				     "%s says num_hidden_layers is %u; more than %d are no model", name,
				     m->layers, HB_LLM_LAYERS);
	return 0;
}

int hb_llm__parse(struct hb_llm *m, const char *name, const char *text, size_t size, struct hb_error *e)
{
	char why[256] = "";
	yajl_val tree, inner;
	int rc;

	memset(m, 0, sizeof(*m));
	/* The parser takes a text that ends with a NUL, and the caller's does not. */
	struct hb_buf b = {0};

	hb_buf__add(&b, text, size);
	hb_buf__add(&b, "", 1);
	if (b.oom)
		return hb_error__nomem(e, "a model's configuration");
	tree = too_deep(b.data) ? NULL : yajl_tree_parse(b.data, why, sizeof(why));
	hb_buf__free(&b);
	if (!YAJL_IS_OBJECT(tree)) {
		yajl_tree_free(tree);
		why[strcspn(why, "\n")] = 0;
		return hb_error__set(e, HB_EXIT_USAGE, -EINVAL,
				     "%s is no JSON object%s%s; give a model's config.json", name,
				     *why ? ": " : "", why);
	}
	inner = get(tree, "text_config"); /* of a model that takes more than text */
	inner = YAJL_IS_OBJECT(inner) ? inner : tree;
	snprintf(m->type, sizeof(m->type), "%s", text_of(inner, "model_type"));
	take_sizes(m, inner);
	take_types(m, inner, tree);
	rc = check(m, name, e);
	if (!rc)
		take_layers(m, inner);
	yajl_tree_free(tree);
	return rc;
}

int hb_llm__read(struct hb_llm *m, const char *path, struct hb_error *e)
{
	struct hb_buf b = {0};
	int rc = hb_file__read(path, FILE_MAX, "a model's config.json", &b, e);

	if (!rc)
		rc = hb_llm__parse(m, path, b.data, b.size, e);
	hb_buf__free(&b);
	return rc;
}
