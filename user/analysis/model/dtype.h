/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Types of numbers as tensors have them, under the names and numbers that others give them. */
#ifndef HB_DTYPE_H
#define HB_DTYPE_H

#include <stddef.h>
#include <stdint.h>

/* Which of a device's peak rates counts (peaks.h). */
enum hb_rate {
	HB_RATE_NONE, /* integers, booleans: no rate is modelled */
	HB_RATE_FP64,
	HB_RATE_FP32,
	HB_RATE_BF16,
	HB_RATE_FP16,
	HB_RATE_FP8,
	HB_RATE_FP4,
	HB_RATE_INT8,
	HB_RATES,
};
const char *hb_rate__name(enum hb_rate r); /* "bf16", as in the file of peaks; "" for NONE */

/* D(id, name, bits, rate) */
#define HB_DTYPES(D)                                                                                         \
	D(NONE, "", 0, NONE)                                                                                 \
	D(FP64, "fp64", 64, FP64)                                                                            \
	D(FP32, "fp32", 32, FP32)                                                                            \
	D(BF16, "bf16", 16, BF16)                                                                            \
	D(FP16, "fp16", 16, FP16)                                                                            \
	D(FP8, "fp8", 8, FP8)                                                                                \
	D(FP4, "fp4", 4, FP4)                                                                                \
	D(INT64, "int64", 64, NONE)                                                                          \
	D(INT32, "int32", 32, NONE)                                                                          \
	D(INT16, "int16", 16, NONE)                                                                          \
	D(INT8, "int8", 8, INT8)                                                                             \
	D(INT4, "int4", 4, NONE)                                                                             \
	D(BOOL, "bool", 8, NONE)                                                                             \
	D(COMPLEX64, "complex64", 64, NONE)
#define HB_DTYPE_ID(id, name, bits, rate) HB_DTYPE_##id,
enum hb_dtype { HB_DTYPES(HB_DTYPE_ID) HB_DTYPE_COUNT };

const char *hb_dtype__name(enum hb_dtype t); /* "bf16"; "" for NONE */
unsigned hb_dtype__bits(enum hb_dtype t);
enum hb_rate hb_dtype__rate(enum hb_dtype t);
/* Bytes of n elements. */
double hb_dtype__bytes(enum hb_dtype t, double n);

/* All of these: NONE for what is not known. */
/* Names of types in PyTorch's traces ("c10::BFloat16", "long int") and in model configurations ("bfloat16").
 */
enum hb_dtype hb_dtype__of_name(const char *s, size_t n);
enum hb_dtype hb_dtype__of_scalar_type(int64_t v); /* c10::ScalarType */
enum hb_dtype hb_dtype__of_cuda(uint32_t v);	   /* cudaDataType_t */

#endif
