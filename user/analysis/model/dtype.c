/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analysis/model/dtype.h"

#include <string.h>

#define N_ELEMS(a) (sizeof(a) / sizeof(*(a)))

static const struct {
	const char *name;
	uint8_t bits, rate;
} dtypes[HB_DTYPE_COUNT] = {
#define ROW(id, name, bits, rate) {name, bits, HB_RATE_##rate},
    HB_DTYPES(ROW)};

const char *hb_rate__name(enum hb_rate r)
{
	static const char *const names[HB_RATES] = {"", "fp64", "fp32", "bf16", "fp16", "fp8", "fp4", "int8"};

	return r < HB_RATES ? names[r] : "";
}

const char *hb_dtype__name(enum hb_dtype t)
{
	return t < HB_DTYPE_COUNT ? dtypes[t].name : "";
}

unsigned hb_dtype__bits(enum hb_dtype t)
{
	return t < HB_DTYPE_COUNT ? dtypes[t].bits : 0;
}

enum hb_rate hb_dtype__rate(enum hb_dtype t)
{
	return t < HB_DTYPE_COUNT ? dtypes[t].rate : HB_RATE_NONE;
}

double hb_dtype__bytes(enum hb_dtype t, double n)
{
	return n * hb_dtype__bits(t) / 8;
}

/* PyTorch writes C++ names of the compiler for its own types, and names of its headers for the others. */
static const struct {
	const char *name;
	uint8_t type;
} names[] = {
    {"c10::BFloat16", HB_DTYPE_BF16},
    {"c10::Half", HB_DTYPE_FP16},
    {"float", HB_DTYPE_FP32},
    {"double", HB_DTYPE_FP64},
    {"long int", HB_DTYPE_INT64},
    {"long", HB_DTYPE_INT64},
    {"int", HB_DTYPE_INT32},
    {"short int", HB_DTYPE_INT16},
    {"short", HB_DTYPE_INT16},
    {"signed char", HB_DTYPE_INT8},
    {"unsigned char", HB_DTYPE_INT8},
    {"bool", HB_DTYPE_BOOL},
    {"c10::complex<float>", HB_DTYPE_COMPLEX64},
    {"c10::Float8_e4m3fn", HB_DTYPE_FP8},
    {"c10::Float8_e5m2", HB_DTYPE_FP8},
    {"c10::Float8_e4m3fnuz", HB_DTYPE_FP8},
    {"c10::Float8_e5m2fnuz", HB_DTYPE_FP8},
    /* model configurations, and collectives */
    {"bfloat16", HB_DTYPE_BF16},
    {"float16", HB_DTYPE_FP16},
    {"half", HB_DTYPE_FP16},
    {"float32", HB_DTYPE_FP32},
    {"BFloat16", HB_DTYPE_BF16},
    {"Half", HB_DTYPE_FP16},
    {"Float", HB_DTYPE_FP32},
    {"Double", HB_DTYPE_FP64},
    {"Int", HB_DTYPE_INT32},
    {"Long", HB_DTYPE_INT64},
    {"Byte", HB_DTYPE_INT8},
    {"Char", HB_DTYPE_INT8},
    {"Bool", HB_DTYPE_BOOL},
    {"Float8_e4m3fn", HB_DTYPE_FP8},
    {"Float8_e5m2", HB_DTYPE_FP8},
};

enum hb_dtype hb_dtype__of_name(const char *s, size_t n)
{
	for (size_t i = 0; i < N_ELEMS(names); i++)
		if (strlen(names[i].name) == n && memcmp(names[i].name, s, n) == 0)
			return names[i].type;
	return HB_DTYPE_NONE;
}

/* c10/core/ScalarType.h */
enum hb_dtype hb_dtype__of_scalar_type(int64_t v)
{
	static const uint8_t types[] = {
	    HB_DTYPE_INT8, HB_DTYPE_INT8, HB_DTYPE_INT16, HB_DTYPE_INT32,	HB_DTYPE_INT64,
	    HB_DTYPE_FP16, HB_DTYPE_FP32, HB_DTYPE_FP64,  [11] = HB_DTYPE_BOOL, [15] = HB_DTYPE_BF16};

	return v >= 0 && v < (int64_t)N_ELEMS(types) ? types[v] : HB_DTYPE_NONE;
}

/* library_types.h */
enum hb_dtype hb_dtype__of_cuda(uint32_t v)
{
	static const uint8_t types[] = {
	    [0] = HB_DTYPE_FP32,  [1] = HB_DTYPE_FP64, [2] = HB_DTYPE_FP16, [3] = HB_DTYPE_INT8,
	    [14] = HB_DTYPE_BF16, [28] = HB_DTYPE_FP8, [29] = HB_DTYPE_FP8, [33] = HB_DTYPE_FP4};

	return v < N_ELEMS(types) ? types[v] : HB_DTYPE_NONE;
}
