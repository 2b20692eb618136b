/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analysis/model/roof_formula.h"

#define Z(id)	 (in->size[HB_ROOF_##id])
#define NEED(id) (1ULL << HB_ROOF_##id)

const char *hb_roof__size_name(enum hb_roof_size z)
{
	static const char *const keys[] = {
#define KEY(id, key, doc) key,
	    HB_ROOF_SIZES(KEY)};

	return z < HB_ROOF_SIZE_COUNT ? keys[z] : "";
}

static double no_flops(const struct hb_roof_in *in)
{
	return 0;
}

static double one_if_0(double v)
{
	return v > 0 ? v : 1;
}

/* ---- matrix products ---- */

/* An addend of one row is added to all rows: M N additions, whatever its own size. */
static double gemm_flops(const struct hb_roof_in *in)
{
	return one_if_0(Z(BATCH)) * (2 * Z(M) * Z(N) * Z(K) + (Z(BIAS) > 0 ? Z(M) * Z(N) : 0));
}

static double gemm_bytes(const struct hb_roof_in *in)
{
	return one_if_0(Z(BATCH)) *
		   (hb_dtype__bytes(in->in, Z(M) * Z(K)) + hb_dtype__bytes(in->weight, Z(K) * Z(N)) +
		    hb_dtype__bytes(in->out, Z(M) * Z(N))) +
	       hb_dtype__bytes(in->out, Z(BIAS)) + Z(SCALES);
}

/* x^n by squaring. */
static double power(double x, uint64_t n)
{
	double v = 1;

	for (; n; n >>= 1) {
		v = n & 1 ? v * x : v;
		x *= x;
	}
	return v;
}

/* Experts that T tokens hit when each chooses k of E at random. */
static double experts_hit(const struct hb_roof_in *in)
{
	double e = Z(EXPERTS);

	if (Z(ACTIVE) > 0)
		return Z(ACTIVE);
	return Z(TOP_K) >= e ? e : e * (1 - power(1 - Z(TOP_K) / e, (uint64_t)Z(TOKENS)));
}

static double moe_flops(const struct hb_roof_in *in)
{
	return 2 * Z(TOKENS) * Z(TOP_K) * Z(K) * Z(N);
}

static double moe_bytes(const struct hb_roof_in *in)
{
	double rows = Z(TOKENS) * Z(TOP_K);

	return hb_dtype__bytes(in->in, rows * Z(K)) +
	       hb_dtype__bytes(in->weight, experts_hit(in) * Z(K) * Z(N)) +
	       hb_dtype__bytes(in->out, rows * Z(N)) + Z(SCALES);
}

/* ---- attention ---- */

/* Of a causal mask over a sequence's own queries half the square falls away. */
static double attention_flops(const struct hb_roof_in *in)
{
	return (2 * Z(PAIRS) - Z(SELF)) * Z(HEADS) * (Z(D_K) + Z(D_V));
}

static double attention_bytes(const struct hb_roof_in *in)
{
	return hb_dtype__bytes(in->in, Z(Q) * Z(HEADS) * Z(D_K)) +
	       hb_dtype__bytes(in->weight, Z(KV) * Z(KV_HEADS) * (Z(D_K) + Z(D_V))) +
	       hb_dtype__bytes(in->out, Z(Q) * Z(HEADS) * Z(D_V));
}

/* A key is the latent and the rotary part, its value is the latent: read once. */
static double mla_bytes(const struct hb_roof_in *in)
{
	return hb_dtype__bytes(in->in, Z(Q) * Z(HEADS) * Z(D_K)) +
	       hb_dtype__bytes(in->weight, Z(KV) * Z(D_K)) +
	       hb_dtype__bytes(in->out, Z(Q) * Z(HEADS) * Z(D_V));
}

/* ---- states instead of keys ---- */

static double deltanet_flops(const struct hb_roof_in *in)
{
	return Z(TOKENS) * Z(HEADS) * (7 * Z(D_K) * Z(D_V) + 4 * Z(CHUNK) * (Z(D_K) + Z(D_V)));
}

static double deltanet_bytes(const struct hb_roof_in *in)
{
	double state = Z(SEQS) * Z(HEADS) * Z(D_K) * Z(D_V);

	return hb_dtype__bytes(in->in, Z(TOKENS) * Z(HEADS) * (Z(D_K) + 2 * Z(D_V) + 2)) +
	       2 * one_if_0(Z(PASSES)) * hb_dtype__bytes(in->state, state);
}

static double ssd_flops(const struct hb_roof_in *in)
{
	double t = Z(TOKENS);

	return 2 * t * Z(CONV) * Z(D_CONV) + 2 * t * Z(GROUPS) * Z(CHUNK) * Z(D_STATE) +
	       2 * t * Z(HEADS) * Z(CHUNK) * Z(D_V) + 4 * t * Z(HEADS) * Z(D_STATE) * Z(D_V);
}

/* In: x, B, C, dt; out: y; with a convolution its input in place of x, B and C, and its taps. */
static double ssd_bytes(const struct hb_roof_in *in)
{
	double inner = Z(HEADS) * Z(D_V), bc = 2 * Z(GROUPS) * Z(D_STATE);
	double elements = Z(TOKENS) * (inner + bc + Z(HEADS)) + Z(CONV) * Z(D_CONV);

	return hb_dtype__bytes(in->in, elements) + hb_dtype__bytes(in->out, Z(TOKENS) * inner) +
	       2 * one_if_0(Z(PASSES)) * hb_dtype__bytes(in->state, Z(SEQS) * inner * Z(D_STATE));
}

/* ---- bytes only ---- */

static double pointwise_bytes(const struct hb_roof_in *in)
{
	return Z(READ) + Z(WRITTEN);
}

static double all_reduce_bytes(const struct hb_roof_in *in)
{
	return 2 * Z(MESSAGE) * (Z(RANKS) - 1) / Z(RANKS);
}

static double share_out_bytes(const struct hb_roof_in *in)
{
	return Z(MESSAGE) * (Z(RANKS) - 1) / Z(RANKS);
}

static double send_bytes(const struct hb_roof_in *in)
{
	return Z(MESSAGE);
}

/* ---- the table ---- */

static const struct hb_roof_formula formulas[HB_ROOF_KINDS] = {
    [HB_ROOF_GEMM] =
	{"gemm", NEED(M) | NEED(N) | NEED(K), HB_ROOF_MEMORY, gemm_flops, gemm_bytes,
	 "F = 2 M N K, + M N where something is added; B = M K + K N + M N and what is added, each at its "
	 "own size, and the scales of fp8 and fp4. Each matrix once (TraceLens, GEMM)"},
    [HB_ROOF_ATTENTION] =
	{"attention", NEED(Q) | NEED(KV) | NEED(PAIRS) | NEED(HEADS) | NEED(KV_HEADS) | NEED(D_K) | NEED(D_V),
	 HB_ROOF_MEMORY, attention_flops, attention_bytes,
	 "F = (2 sum(q kv) - sum(q^2) under a causal mask) H (d_k + d_v); B = q H d_k + kv H_kv (d_k + "
	 "d_v) + q H d_v. With a sliding window no sequence has more keys than that (FlashAttention, "
	 "TraceLens)"},
    [HB_ROOF_MLA] =
	{"mla", NEED(Q) | NEED(KV) | NEED(PAIRS) | NEED(HEADS) | NEED(D_K) | NEED(D_V), HB_ROOF_MEMORY,
	 attention_flops, mla_bytes,
	 "latent attention with the up-projections absorbed (decode): as attention with one head of keys, "
	 "d_k = latent + rotary, d_v = latent; B = q H d_k + kv d_k + q H d_v, because the value is a part "
	 "of the key (DeepSeek-V2, section 2.1)"},
    [HB_ROOF_DELTANET] =
	{"deltanet", NEED(TOKENS) | NEED(SEQS) | NEED(HEADS) | NEED(D_K) | NEED(D_V), HB_ROOF_MEMORY,
	 deltanet_flops, deltanet_bytes,
	 "gated DeltaNet: F = 7 T H_v d_k d_v (decay 1, read 2, update 2, output 2), + 4 T C (d_k + "
	 "d_v) H_v by chunks; B = T H_v (d_k + 2 d_v + 2) and the state in and out, 2 N H_v d_k d_v. "
	 "In decode the state is nearly all of it (vllm#31722)"},
    [HB_ROOF_MOE] =
	{"moe", NEED(TOKENS) | NEED(K) | NEED(N) | NEED(EXPERTS) | NEED(TOP_K), HB_ROOF_MEMORY, moe_flops,
	 moe_bytes,
	 "grouped product of experts: F = 2 T k K N; B = T k K + E_hit K N + T k N; E_hit = E (1 - (1 - "
	 "k/E)^T) where the experts that were hit are not known"},
    [HB_ROOF_SSD] = {"ssd",
		     NEED(TOKENS) | NEED(SEQS) | NEED(HEADS) | NEED(D_V) | NEED(GROUPS) | NEED(D_STATE),
		     HB_ROOF_MEMORY, ssd_flops, ssd_bytes,
		     "Mamba-2: F = 2 T ch taps (convolution) + 2 T G C N + 2 T H C P + 4 T H N P, C = chunk; "
		     "B = T (H P + "
		     "2 G N + H) in, T H P out, and the state in and out, 2 S H P N (TraceLens, MambaSSD)"},
    [HB_ROOF_POINTWISE] =
	{"pointwise", NEED(WRITTEN), HB_ROOF_MEMORY, no_flops, pointwise_bytes,
	 "element by element, norms, rotary embedding: B = what is read and written; F does not count"},
    [HB_ROOF_ALL_REDUCE] =
	{"all_reduce", NEED(MESSAGE) | NEED(RANKS), HB_ROOF_LINK, no_flops, all_reduce_bytes,
	 "B = 2 (n - 1)/n of the message over each rank's link (nccl-tests, PERFORMANCE.md: busbw)"},
    [HB_ROOF_SHARE_OUT] =
	{"share_out", NEED(MESSAGE) | NEED(RANKS), HB_ROOF_LINK, no_flops, share_out_bytes,
	 "all-gather, reduce-scatter, all-to-all: B = (n - 1)/n of the whole message (nccl-tests)"},
    [HB_ROOF_SEND] = {"send", NEED(MESSAGE), HB_ROOF_LINK, no_flops, send_bytes,
		      "broadcast, reduce, send and receive: B = the message (nccl-tests)"},
};

const struct hb_roof_formula *hb_roof__formula(enum hb_roof_kind k)
{
	return k < HB_ROOF_KINDS ? &formulas[k] : NULL;
}

enum hb_roof_size hb_roof__missing(enum hb_roof_kind k, const struct hb_roof_in *in)
{
	unsigned z = 0;

	while (z < HB_ROOF_SIZE_COUNT && (!(formulas[k].needs & 1ULL << z) || in->size[z] > 0))
		z++;
	return (enum hb_roof_size)z;
}
