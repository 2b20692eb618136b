/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a piece of work must at least do: the arithmetic it takes and the bytes it must move, as formulas of
 * its sizes. One row for each kind of work; docs/roofline.md lists them. Numbers are counts, in doubles:
 * exact to 2^53.
 */
#ifndef HB_ROOF_FORMULA_H
#define HB_ROOF_FORMULA_H

#include <stdbool.h>

#include "analysis/model/dtype.h"

/* Z(id, key, meaning): sizes that formulas are made of. A size that was not set is 0; a formula is asked only
 * when those it needs are set. */
#define HB_ROOF_SIZES(Z)                                                                                     \
	Z(M, "m", "rows of the product")                                                                     \
	Z(N, "n", "columns of the product")                                                                  \
	Z(K, "k", "length of its sums")                                                                      \
	Z(BATCH, "batch", "products in one call; 0 counts as 1")                                             \
	Z(BIAS, "bias", "elements of what is added to the product")                                          \
	Z(SCALES, "scale_bytes", "bytes of the scales of fp8 and fp4")                                       \
	Z(TOKENS, "tokens", "tokens in the step")                                                            \
	Z(SEQS, "sequences", "sequences, each with a state of its own")                                      \
	Z(Q, "q", "queries, of all sequences")                                                               \
	Z(KV, "kv", "keys that are read, of all sequences")                                                  \
	Z(PAIRS, "pairs", "sum of queries times keys of each sequence")                                      \
	Z(SELF, "self", "sum of squared queries, of sequences with a causal mask over their own queries")    \
	Z(HEADS, "heads", "heads of the queries; of a state model its heads")                                \
	Z(KV_HEADS, "kv_heads", "heads of keys and values")                                                  \
	Z(D_K, "d_k", "elements of a query and a key in one head")                                           \
	Z(D_V, "d_v", "elements of a value in one head")                                                     \
	Z(CHUNK, "chunk", "tokens of a chunk, where a scan goes by chunks; 0: token by token")               \
	Z(PASSES, "passes", "times the state is read and written; 0 counts as 1")                            \
	Z(GROUPS, "groups", "groups that share B and C in Mamba-2")                                          \
	Z(D_STATE, "d_state", "elements of the state for each channel")                                      \
	Z(CONV, "conv", "channels of the convolution before a scan")                                         \
	Z(D_CONV, "d_conv", "taps of that convolution")                                                      \
	Z(EXPERTS, "experts", "experts of the layer that this device has")                                   \
	Z(TOP_K, "top_k", "experts that a token goes to")                                                    \
	Z(ACTIVE, "active", "different experts that were hit; 0: as many as are to be expected")             \
	Z(READ, "read_bytes", "bytes read")                                                                  \
	Z(WRITTEN, "written_bytes", "bytes written")                                                         \
	Z(MESSAGE, "message_bytes", "bytes of the whole message of a collective")                            \
	Z(RANKS, "ranks", "ranks that take part")
#define HB_ROOF_SIZE_ID(id, key, doc) HB_ROOF_##id,
enum hb_roof_size { HB_ROOF_SIZES(HB_ROOF_SIZE_ID) HB_ROOF_SIZE_COUNT };
const char *hb_roof__size_name(enum hb_roof_size z); /* its key */

struct hb_roof_in {
	double size[HB_ROOF_SIZE_COUNT];
	uint8_t in, weight, out,
	    state;    /* enum hb_dtype: of activations, weights or keys and values, result, state */
	uint8_t rate; /* enum hb_rate: of the arithmetic */
};

enum hb_roof_way { HB_ROOF_MEMORY, HB_ROOF_LINK }; /* where the bytes go */

enum hb_roof_kind { /* formulas */
		    HB_ROOF_GEMM,
		    HB_ROOF_ATTENTION,
		    HB_ROOF_MLA,
		    HB_ROOF_DELTANET,
		    HB_ROOF_MOE,
		    HB_ROOF_SSD,
		    HB_ROOF_POINTWISE,
		    HB_ROOF_ALL_REDUCE,
		    HB_ROOF_SHARE_OUT,
		    HB_ROOF_SEND,
		    HB_ROOF_KINDS,
};

struct hb_roof_formula {
	const char *name;
	uint64_t needs; /* bits: 1 << enum hb_roof_size */
	enum hb_roof_way way;
	double (*flops)(const struct hb_roof_in *in);
	double (*bytes)(const struct hb_roof_in *in);
	const char *says; /* the formula, for people, and where it comes from */
};

const struct hb_roof_formula *hb_roof__formula(enum hb_roof_kind k); /* NULL beyond */
/* The first size it needs and has not got; HB_ROOF_SIZE_COUNT: it has all. */
enum hb_roof_size hb_roof__missing(enum hb_roof_kind k, const struct hb_roof_in *in);

#endif
