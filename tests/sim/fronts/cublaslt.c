/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * libcublasLt.so: descriptors and their attributes, one algorithm, products as kernels launched through the
 * driver. Descriptors may lie in the caller's memory, so they fit the sizes of the public headers.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "driver.h"
#include "cublas_work.h"

#define F(name, params, args, stream, bytes) static cublasStatus_t do_##name params;
#define G(type, name, params, args)	     static type do_##name params;
#include "cublaslt.def"
#undef F
#undef G

HB_SIM_MARK

#include "cublaslt_kernel.h"

/* ---- handles of this library and of libcublas ---- */

#define MAX_HANDLES 1024
static struct hb_blas handles[MAX_HANDLES];

struct hb_blas *hb_sim_blas_new(bool full)
{
	pthread_once(&load_once, load_driver);
	if (!have_driver || !core || need_context())
		return NULL;
	for (u32 i = 0; i < MAX_HANDLES; i++) {
		u32 unused = 0;

		if (!__atomic_compare_exchange_n(&handles[i].used, &unused, 1, false, __ATOMIC_ACQ_REL,
						 __ATOMIC_RELAXED))
			continue;
		handles[i] = (struct hb_blas){.used = 1, .full = full};
		drv.cuCtxGetCurrent(&handles[i].ctx);
		return &handles[i];
	}
	return NULL;
}

void hb_sim_blas_free(struct hb_blas *b)
{
	__atomic_store_n(&b->used, 0, __ATOMIC_RELEASE);
}

struct hb_blas *hb_sim_blas_get(const void *handle)
{
	uintptr_t at = (uintptr_t)handle - (uintptr_t)handles;

	if (at >= sizeof(handles) || at % sizeof(handles[0]))
		return NULL;
	return handles[at / sizeof(handles[0])].used ? &handles[at / sizeof(handles[0])] : NULL;
}

static cublasStatus_t do_cublasLtCreate(cublasLtHandle_t *handle)
{
	struct hb_blas *b;

	if (!handle)
		return CUBLAS_STATUS_INVALID_VALUE;
	b = hb_sim_blas_new(false);
	*handle = (cublasLtHandle_t)b;
	return b ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED;
}

static cublasStatus_t do_cublasLtDestroy(cublasLtHandle_t handle)
{
	struct hb_blas *b = hb_sim_blas_get(handle);

	if (!b || b->full)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	hb_sim_blas_free(b);
	return CUBLAS_STATUS_SUCCESS;
}

/* ---- attributes: a table per descriptor ---- */

struct attribute {
	int id;
	u16 at, size;
};

static cublasStatus_t set_attribute(const struct attribute *table, size_t n, void *obj, int id,
				    const void *buf, size_t size)
{
	if (!obj || !buf)
		return CUBLAS_STATUS_INVALID_VALUE;
	for (size_t i = 0; i < n; i++)
		if (table[i].id == id && table[i].size == size) {
			memcpy((char *)obj + table[i].at, buf, size);
			return CUBLAS_STATUS_SUCCESS;
		}
	return CUBLAS_STATUS_INVALID_VALUE;
}

/* With size 0 the caller only asks for the size. */
static cublasStatus_t give(const void *value, size_t has, void *buf, size_t size, size_t *written)
{
	if (!size && !written)
		return CUBLAS_STATUS_INVALID_VALUE;
	if (written)
		*written = has;
	if (!size)
		return CUBLAS_STATUS_SUCCESS;
	if (!buf || size < has)
		return CUBLAS_STATUS_INVALID_VALUE;
	memcpy(buf, value, has);
	return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t get_attribute(const struct attribute *table, size_t n, const void *obj, int id,
				    void *buf, size_t size, size_t *written)
{
	for (size_t i = 0; obj && i < n; i++)
		if (table[i].id == id)
			return give((const char *)obj + table[i].at, table[i].size, buf, size, written);
	return CUBLAS_STATUS_INVALID_VALUE;
}

#define ATTRIBUTE(id, type, member)                                                                          \
	{                                                                                                    \
		id, offsetof(struct type, member), sizeof(((struct type *)0)->member)                        \
	}

struct desc {
	s32 compute, scale_type, pointer_mode, op[3], fill;
	u32 epilogue;
	u64 bias, aux;
	int64_t bias_stride, aux_ld, aux_stride, alpha_stride;
	u64 scale[4], amax, aux_scale, aux_amax, out_scale;
	s32 sm_target, aux_type, bias_type, mode[4], aux_mode, out_mode;
	int8_t fast;
};
static const struct attribute desc_attributes[] = {
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_COMPUTE_TYPE, desc, compute),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_SCALE_TYPE, desc, scale_type),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_POINTER_MODE, desc, pointer_mode),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_TRANSA, desc, op[0]),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_TRANSB, desc, op[1]),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_TRANSC, desc, op[2]),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_FILL_MODE, desc, fill),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_EPILOGUE, desc, epilogue),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_BIAS_POINTER, desc, bias),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, desc, bias_stride),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, desc, aux),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, desc, aux_ld),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE, desc, aux_stride),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_ALPHA_VECTOR_BATCH_STRIDE, desc, alpha_stride),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, desc, sm_target),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, desc, scale[0]),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, desc, scale[1]),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_C_SCALE_POINTER, desc, scale[2]),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_D_SCALE_POINTER, desc, scale[3]),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_AMAX_D_POINTER, desc, amax),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE, desc, aux_type),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_SCALE_POINTER, desc, aux_scale),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_AMAX_POINTER, desc, aux_amax),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_FAST_ACCUM, desc, fast),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, desc, bias_type),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_A_SCALE_MODE, desc, mode[0]),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_B_SCALE_MODE, desc, mode[1]),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_C_SCALE_MODE, desc, mode[2]),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_D_SCALE_MODE, desc, mode[3]),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_SCALE_MODE, desc, aux_mode),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_D_OUT_SCALE_POINTER, desc, out_scale),
    ATTRIBUTE(CUBLASLT_MATMUL_DESC_D_OUT_SCALE_MODE, desc, out_mode),
};

struct layout {
	s32 type, order, batch, batch_mode;
	u64 rows, cols;
	int64_t ld, stride, plane;
};
static const struct attribute layout_attributes[] = {
    ATTRIBUTE(CUBLASLT_MATRIX_LAYOUT_TYPE, layout, type),
    ATTRIBUTE(CUBLASLT_MATRIX_LAYOUT_ORDER, layout, order),
    ATTRIBUTE(CUBLASLT_MATRIX_LAYOUT_ROWS, layout, rows),
    ATTRIBUTE(CUBLASLT_MATRIX_LAYOUT_COLS, layout, cols),
    ATTRIBUTE(CUBLASLT_MATRIX_LAYOUT_LD, layout, ld),
    ATTRIBUTE(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, layout, batch),
    ATTRIBUTE(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, layout, stride),
    ATTRIBUTE(CUBLASLT_MATRIX_LAYOUT_PLANE_OFFSET, layout, plane),
    ATTRIBUTE(8, layout, batch_mode), /* CUBLASLT_MATRIX_LAYOUT_BATCH_MODE of version 13 */
};

struct pref {
	u32 search, reduction, align[4];
	float waves;
	u64 workspace, impl;
};
static const struct attribute pref_attributes[] = {
    ATTRIBUTE(CUBLASLT_MATMUL_PREF_SEARCH_MODE, pref, search),
    ATTRIBUTE(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, pref, workspace),
    ATTRIBUTE(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, pref, reduction),
    ATTRIBUTE(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, pref, align[0]),
    ATTRIBUTE(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, pref, align[1]),
    ATTRIBUTE(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, pref, align[2]),
    ATTRIBUTE(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, pref, align[3]),
    ATTRIBUTE(CUBLASLT_MATMUL_PREF_MAX_WAVES_COUNT, pref, waves),
    ATTRIBUTE(CUBLASLT_MATMUL_PREF_IMPL_MASK, pref, impl),
};

struct transform {
	s32 scale_type, pointer_mode, op[2];
};
static const struct attribute transform_attributes[] = {
    ATTRIBUTE(CUBLASLT_MATRIX_TRANSFORM_DESC_SCALE_TYPE, transform, scale_type),
    ATTRIBUTE(CUBLASLT_MATRIX_TRANSFORM_DESC_POINTER_MODE, transform, pointer_mode),
    ATTRIBUTE(CUBLASLT_MATRIX_TRANSFORM_DESC_TRANSA, transform, op[0]),
    ATTRIBUTE(CUBLASLT_MATRIX_TRANSFORM_DESC_TRANSB, transform, op[1]),
};

struct algo {
	s32 id, splits;
	u32 tile, reduction, swizzle, custom, stages;
	u16 inner, cluster;
};
static const struct attribute algo_attributes[] = {
    ATTRIBUTE(CUBLASLT_ALGO_CONFIG_ID, algo, id),
    ATTRIBUTE(CUBLASLT_ALGO_CONFIG_TILE_ID, algo, tile),
    ATTRIBUTE(CUBLASLT_ALGO_CONFIG_SPLITK_NUM, algo, splits),
    ATTRIBUTE(CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, algo, reduction),
    ATTRIBUTE(CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING, algo, swizzle),
    ATTRIBUTE(CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION, algo, custom),
    ATTRIBUTE(CUBLASLT_ALGO_CONFIG_STAGES_ID, algo, stages),
    ATTRIBUTE(CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID, algo, inner),
    ATTRIBUTE(CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, algo, cluster),
};

_Static_assert(sizeof(struct desc) <= sizeof(cublasLtMatmulDescOpaque_t) &&
		   sizeof(struct layout) <= sizeof(cublasLtMatrixLayoutOpaque_t) &&
		   sizeof(struct pref) <= sizeof(cublasLtMatmulPreferenceOpaque_t) &&
		   sizeof(struct transform) <= sizeof(cublasLtMatrixTransformDescOpaque_t) &&
		   sizeof(struct algo) <= sizeof(cublasLtMatmulAlgo_t),
	       "descriptors fit the caller's memory");

#define DESCRIPTOR(what, handle, attribute, table)                                                           \
	static cublasStatus_t do_cublasLt##what##SetAttribute(handle obj, attribute attr, const void *buf,   \
							      size_t size)                                   \
	{                                                                                                    \
		return set_attribute(table, sizeof(table) / sizeof(*(table)), obj, (int)attr, buf, size);    \
	}                                                                                                    \
	static cublasStatus_t do_cublasLt##what##GetAttribute(handle obj, attribute attr, void *buf,         \
							      size_t size, size_t *written)                  \
	{                                                                                                    \
		return get_attribute(table, sizeof(table) / sizeof(*(table)), obj, (int)attr, buf, size,     \
				     written);                                                               \
	}                                                                                                    \
	static cublasStatus_t do_cublasLt##what##Destroy(handle obj)                                         \
	{                                                                                                    \
		free(obj);                                                                                   \
		return CUBLAS_STATUS_SUCCESS;                                                                \
	}
DESCRIPTOR(MatmulDesc, cublasLtMatmulDesc_t, cublasLtMatmulDescAttributes_t, desc_attributes)
DESCRIPTOR(MatrixLayout, cublasLtMatrixLayout_t, cublasLtMatrixLayoutAttribute_t, layout_attributes)
DESCRIPTOR(MatmulPreference, cublasLtMatmulPreference_t, cublasLtMatmulPreferenceAttributes_t,
	   pref_attributes)
DESCRIPTOR(MatrixTransformDesc, cublasLtMatrixTransformDesc_t, cublasLtMatrixTransformDescAttributes_t,
	   transform_attributes)

#include "cublaslt_calls.h"
