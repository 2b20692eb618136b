/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The part of the cuBLAS and cuBLASLt binary interface that is served, in words of our own (as abi.h). With
 * HB_SIM_REAL_HEADERS the real headers are used instead, and everything here is checked against them.
 */
#ifndef HB_SIM_CUBLAS_ABI_H
#define HB_SIM_CUBLAS_ABI_H

#include "../abi.h"

/* The same source is built once per SONAME. */
#ifndef HB_CUBLAS_MAJOR
#define HB_CUBLAS_MAJOR 12
#endif
#if HB_CUBLAS_MAJOR == 12
#define HB_CUBLAS_VERSION 120804
#define HB_CUBLAS_CUDART  12080
#else
#define HB_CUBLAS_VERSION 130001
#define HB_CUBLAS_CUDART  13000
#endif

#define HB_ABI_CUBLAS_STATUS(C)                                                                              \
	C(CUBLAS_STATUS_SUCCESS, 0)                                                                          \
	C(CUBLAS_STATUS_NOT_INITIALIZED, 1)                                                                  \
	C(CUBLAS_STATUS_ALLOC_FAILED, 3)                                                                     \
	C(CUBLAS_STATUS_INVALID_VALUE, 7)                                                                    \
	C(CUBLAS_STATUS_ARCH_MISMATCH, 8)                                                                    \
	C(CUBLAS_STATUS_MAPPING_ERROR, 11)                                                                   \
	C(CUBLAS_STATUS_EXECUTION_FAILED, 13)                                                                \
	C(CUBLAS_STATUS_INTERNAL_ERROR, 14)                                                                  \
	C(CUBLAS_STATUS_NOT_SUPPORTED, 15)                                                                   \
	C(CUBLAS_STATUS_LICENSE_ERROR, 16)

#define HB_ABI_CUBLAS_CONSTANTS(C)                                                                           \
	C(CUBLAS_OP_N, 0)                                                                                    \
	C(CUBLAS_OP_T, 1)                                                                                    \
	C(CUBLAS_OP_CONJG, 3)                                                                                \
	C(CUBLAS_SIDE_LEFT, 0)                                                                               \
	C(CUBLAS_POINTER_MODE_HOST, 0)                                                                       \
	C(CUBLAS_POINTER_MODE_DEVICE, 1)                                                                     \
	C(CUBLAS_TF32_TENSOR_OP_MATH, 3)                                                                     \
	C(CUBLAS_COMPUTE_16F, 64)                                                                            \
	C(CUBLAS_COMPUTE_16F_PEDANTIC, 65)                                                                   \
	C(CUBLAS_COMPUTE_32F, 68)                                                                            \
	C(CUBLAS_COMPUTE_32F_PEDANTIC, 69)                                                                   \
	C(CUBLAS_COMPUTE_64F, 70)                                                                            \
	C(CUBLAS_COMPUTE_64F_PEDANTIC, 71)                                                                   \
	C(CUBLAS_COMPUTE_32I, 72)                                                                            \
	C(CUBLAS_COMPUTE_32I_PEDANTIC, 73)                                                                   \
	C(CUBLAS_COMPUTE_32F_FAST_16F, 74)                                                                   \
	C(CUBLAS_COMPUTE_32F_FAST_16BF, 75)                                                                  \
	C(CUBLAS_COMPUTE_32F_FAST_TF32, 77)                                                                  \
	C(CUDA_R_32F, 0)                                                                                     \
	C(CUDA_R_64F, 1)                                                                                     \
	C(CUDA_R_16F, 2)                                                                                     \
	C(CUDA_R_8I, 3)                                                                                      \
	C(CUDA_C_32F, 4)                                                                                     \
	C(CUDA_C_64F, 5)                                                                                     \
	C(CUDA_R_8U, 8)                                                                                      \
	C(CUDA_R_32I, 10)                                                                                    \
	C(CUDA_R_16BF, 14)                                                                                   \
	C(CUDA_R_8F_E4M3, 28)                                                                                \
	C(CUDA_R_8F_E5M2, 29)                                                                                \
	C(CUDA_R_4F_E2M1, 33)

#define HB_ABI_CUBLASLT_CONSTANTS(C)                                                                         \
	C(CUBLASLT_EPILOGUE_DEFAULT, 1)                                                                      \
	C(CUBLASLT_MATRIX_LAYOUT_TYPE, 0)                                                                    \
	C(CUBLASLT_MATRIX_LAYOUT_ORDER, 1)                                                                   \
	C(CUBLASLT_MATRIX_LAYOUT_ROWS, 2)                                                                    \
	C(CUBLASLT_MATRIX_LAYOUT_COLS, 3)                                                                    \
	C(CUBLASLT_MATRIX_LAYOUT_LD, 4)                                                                      \
	C(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, 5)                                                             \
	C(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, 6)                                                    \
	C(CUBLASLT_MATRIX_LAYOUT_PLANE_OFFSET, 7)                                                            \
	C(CUBLASLT_MATMUL_DESC_COMPUTE_TYPE, 0)                                                              \
	C(CUBLASLT_MATMUL_DESC_SCALE_TYPE, 1)                                                                \
	C(CUBLASLT_MATMUL_DESC_POINTER_MODE, 2)                                                              \
	C(CUBLASLT_MATMUL_DESC_TRANSA, 3)                                                                    \
	C(CUBLASLT_MATMUL_DESC_TRANSB, 4)                                                                    \
	C(CUBLASLT_MATMUL_DESC_TRANSC, 5)                                                                    \
	C(CUBLASLT_MATMUL_DESC_FILL_MODE, 6)                                                                 \
	C(CUBLASLT_MATMUL_DESC_EPILOGUE, 7)                                                                  \
	C(CUBLASLT_MATMUL_DESC_BIAS_POINTER, 8)                                                              \
	C(CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, 10)                                                        \
	C(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, 11)                                                     \
	C(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, 12)                                                          \
	C(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE, 13)                                                \
	C(CUBLASLT_MATMUL_DESC_ALPHA_VECTOR_BATCH_STRIDE, 14)                                                \
	C(CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, 15)                                                          \
	C(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, 17)                                                          \
	C(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, 18)                                                          \
	C(CUBLASLT_MATMUL_DESC_C_SCALE_POINTER, 19)                                                          \
	C(CUBLASLT_MATMUL_DESC_D_SCALE_POINTER, 20)                                                          \
	C(CUBLASLT_MATMUL_DESC_AMAX_D_POINTER, 21)                                                           \
	C(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE, 22)                                                   \
	C(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_SCALE_POINTER, 23)                                               \
	C(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_AMAX_POINTER, 24)                                                \
	C(CUBLASLT_MATMUL_DESC_FAST_ACCUM, 25)                                                               \
	C(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, 26)                                                           \
	C(CUBLASLT_MATMUL_DESC_A_SCALE_MODE, 31)                                                             \
	C(CUBLASLT_MATMUL_DESC_B_SCALE_MODE, 32)                                                             \
	C(CUBLASLT_MATMUL_DESC_C_SCALE_MODE, 33)                                                             \
	C(CUBLASLT_MATMUL_DESC_D_SCALE_MODE, 34)                                                             \
	C(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_SCALE_MODE, 35)                                                  \
	C(CUBLASLT_MATMUL_DESC_D_OUT_SCALE_POINTER, 36)                                                      \
	C(CUBLASLT_MATMUL_DESC_D_OUT_SCALE_MODE, 37)                                                         \
	C(CUBLASLT_MATMUL_PREF_SEARCH_MODE, 0)                                                               \
	C(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, 1)                                                       \
	C(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, 3)                                                     \
	C(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, 5)                                                     \
	C(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, 6)                                                     \
	C(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, 7)                                                     \
	C(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, 8)                                                     \
	C(CUBLASLT_MATMUL_PREF_MAX_WAVES_COUNT, 9)                                                           \
	C(CUBLASLT_MATMUL_PREF_IMPL_MASK, 12)                                                                \
	C(CUBLASLT_MATRIX_TRANSFORM_DESC_SCALE_TYPE, 0)                                                      \
	C(CUBLASLT_MATRIX_TRANSFORM_DESC_POINTER_MODE, 1)                                                    \
	C(CUBLASLT_MATRIX_TRANSFORM_DESC_TRANSA, 2)                                                          \
	C(CUBLASLT_MATRIX_TRANSFORM_DESC_TRANSB, 3)                                                          \
	C(CUBLASLT_ALGO_CAP_SPLITK_SUPPORT, 0)                                                               \
	C(CUBLASLT_ALGO_CAP_REDUCTION_SCHEME_MASK, 1)                                                        \
	C(CUBLASLT_ALGO_CAP_CTA_SWIZZLING_SUPPORT, 2)                                                        \
	C(CUBLASLT_ALGO_CAP_STRIDED_BATCH_SUPPORT, 3)                                                        \
	C(CUBLASLT_ALGO_CAP_OUT_OF_PLACE_RESULT_SUPPORT, 4)                                                  \
	C(CUBLASLT_ALGO_CAP_UPLO_SUPPORT, 5)                                                                 \
	C(CUBLASLT_ALGO_CAP_TILE_IDS, 6)                                                                     \
	C(CUBLASLT_ALGO_CAP_CUSTOM_OPTION_MAX, 7)                                                            \
	C(CUBLASLT_ALGO_CAP_CUSTOM_MEMORY_ORDER, 10)                                                         \
	C(CUBLASLT_ALGO_CAP_POINTER_MODE_MASK, 11)                                                           \
	C(CUBLASLT_ALGO_CAP_EPILOGUE_MASK, 12)                                                               \
	C(CUBLASLT_ALGO_CAP_STAGES_IDS, 13)                                                                  \
	C(CUBLASLT_ALGO_CAP_LD_NEGATIVE, 14)                                                                 \
	C(CUBLASLT_ALGO_CAP_NUMERICAL_IMPL_FLAGS, 15)                                                        \
	C(CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_A_BYTES, 16)                                                       \
	C(CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_B_BYTES, 17)                                                       \
	C(CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_C_BYTES, 18)                                                       \
	C(CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_D_BYTES, 19)                                                       \
	C(CUBLASLT_ALGO_CONFIG_ID, 0)                                                                        \
	C(CUBLASLT_ALGO_CONFIG_TILE_ID, 1)                                                                   \
	C(CUBLASLT_ALGO_CONFIG_SPLITK_NUM, 2)                                                                \
	C(CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, 3)                                                          \
	C(CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING, 4)                                                             \
	C(CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION, 5)                                                             \
	C(CUBLASLT_ALGO_CONFIG_STAGES_ID, 6)                                                                 \
	C(CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID, 7)                                                            \
	C(CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, 8)

#ifdef HB_SIM_REAL_HEADERS
#define CUBLASAPI
#include <cublas_api.h>
#include <cublasLt.h>
typedef struct __half_st __half; /* the headers give it to C++ only */
HB_ABI_CUBLAS_STATUS(HB_ABI_CHECK)
HB_ABI_CUBLAS_CONSTANTS(HB_ABI_CHECK)
HB_ABI_CUBLASLT_CONSTANTS(HB_ABI_CHECK)
#else
enum { HB_ABI_CUBLAS_STATUS(HB_ABI_CONSTANT) };
enum { HB_ABI_CUBLAS_CONSTANTS(HB_ABI_CONSTANT) };
enum { HB_ABI_CUBLASLT_CONSTANTS(HB_ABI_CONSTANT) };

typedef int cublasStatus_t, cublasOperation_t, cublasMath_t, cublasPointerMode_t, cublasAtomicsMode_t,
    cublasComputeType_t, cublasGemmAlgo_t, cublasFillMode_t, cublasSideMode_t, cublasDiagType_t, cudaDataType,
    cudaDataType_t, libraryPropertyType;
typedef int cublasLtMatmulDescAttributes_t, cublasLtMatrixLayoutAttribute_t,
    cublasLtMatmulPreferenceAttributes_t, cublasLtMatrixTransformDescAttributes_t,
    cublasLtMatmulAlgoCapAttributes_t, cublasLtMatmulAlgoConfigAttributes_t;
typedef struct cublasContext *cublasHandle_t;
typedef struct cublasLtContext *cublasLtHandle_t;
typedef void (*cublasLogCallback)(const char *message);
typedef void (*cublasLtLoggerCallback_t)(int level, const char *function, const char *message);
typedef struct cuComplex_st cuComplex;
typedef struct cuDoubleComplex_st cuDoubleComplex;
typedef struct __half_st __half;

typedef struct {
	uint64_t data[8];
} cublasLtMatrixLayoutOpaque_t, cublasLtMatmulAlgo_t, cublasLtMatrixTransformDescOpaque_t,
    cublasLtMatmulPreferenceOpaque_t;
typedef struct {
	uint64_t data[32];
} cublasLtMatmulDescOpaque_t;
typedef cublasLtMatrixLayoutOpaque_t *cublasLtMatrixLayout_t;
typedef cublasLtMatmulDescOpaque_t *cublasLtMatmulDesc_t;
typedef cublasLtMatrixTransformDescOpaque_t *cublasLtMatrixTransformDesc_t;
typedef cublasLtMatmulPreferenceOpaque_t *cublasLtMatmulPreference_t;
typedef struct {
	cublasLtMatmulAlgo_t algo;
	size_t workspaceSize;
	cublasStatus_t state;
	float wavesCount;
	int reserved[4];
} cublasLtMatmulHeuristicResult_t;
#endif

HB_ABI_LAYOUT(cublasLtMatmulHeuristicResult_t, workspaceSize, 64)
HB_ABI_LAYOUT(cublasLtMatmulHeuristicResult_t, state, 72)
HB_ABI_LAYOUT(cublasLtMatmulHeuristicResult_t, wavesCount, 76)
_Static_assert(sizeof(cublasLtMatrixLayoutOpaque_t) == 64 && sizeof(cublasLtMatmulAlgo_t) == 64 &&
		   sizeof(cublasLtMatrixTransformDescOpaque_t) == 64 &&
		   sizeof(cublasLtMatmulPreferenceOpaque_t) == 64 &&
		   sizeof(cublasLtMatmulDescOpaque_t) == 256 && sizeof(cublasLtMatmulHeuristicResult_t) == 96,
	       "sizes");

#endif
