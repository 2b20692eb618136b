/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Between libcublas and libcublasLt. As in the real pair the matrix products of libcublas are done by
 * libcublasLt, which launches the kernels; a handle of the one is valid for the other, so both live in one
 * table there.
 */
#ifndef HB_SIM_CUBLAS_WORK_H
#define HB_SIM_CUBLAS_WORK_H

#include "cublas_abi.h"
#include "front.h"

struct hb_blas {
	u32 used;
	bool full; /* of cublasCreate; else of cublasLtCreate, which libcublas does not take */
	int math, pointer_mode, atomics, sm_target;
	CUstream stream;
	CUcontext ctx; /* current when it was made */
	CUdeviceptr own_workspace;
	void *workspace;
	size_t workspace_size;
};

struct hb_gemm {
	int type_a, type_b, type_c, compute;
	int op_a, op_b;
	u64 m, n, k, batch;
	u64 lda, ldb;
	u64 workspace; /* bytes: with enough of it a long k may be split */
	bool tf32;     /* the handle's math mode allows it */
};

struct hb_kernel {
	const char *name;
	u32 grid[3], block, shared;
	bool ex; /* launched by cuLaunchKernelEx, as kernels with clusters are */
	u64 flops, bytes;
};

/* Exported by libcublasLt for libcublas. */
HB_EXPORT struct hb_blas *hb_sim_blas_new(bool full); /* NULL: too many */
HB_EXPORT void hb_sim_blas_free(struct hb_blas *b);
HB_EXPORT struct hb_blas *hb_sim_blas_get(const void *handle); /* NULL: none of ours */
HB_EXPORT cublasStatus_t hb_sim_blas_gemm(const struct hb_gemm *g, CUstream stream);
HB_EXPORT cublasStatus_t hb_sim_blas_launch(const struct hb_kernel *k, CUstream stream);
HB_EXPORT const char *hb_sim_blas_status(int status, bool text);

static inline cublasStatus_t hb_blas_result(CUresult r)
{
	switch (r) {
	case CUDA_SUCCESS:
		return CUBLAS_STATUS_SUCCESS;
	case CUDA_ERROR_OUT_OF_MEMORY:
		return CUBLAS_STATUS_ALLOC_FAILED;
	case CUDA_ERROR_NOT_INITIALIZED:
	case CUDA_ERROR_DEINITIALIZED:
	case CUDA_ERROR_NO_DEVICE:
		return CUBLAS_STATUS_NOT_INITIALIZED;
	default:
		return CUBLAS_STATUS_EXECUTION_FAILED;
	}
}

#endif
