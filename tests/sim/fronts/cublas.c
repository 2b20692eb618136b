/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* libcublas.so: handles and arguments; the kernels are launched by libcublasLt, as in the real pair
 * (cublas_work.h). */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include "driver.h"
#include "cublas_work.h"

HB_SIM_MARK

#define WORKSPACE (32u << 20) /* of a handle whose owner gave none */

/* The handle's state, or return the code for its absence. */
#define HANDLE(var, h)                                                                                       \
	do {                                                                                                 \
		(var) = hb_sim_blas_get(h);                                                                  \
		if (!(var) || !(var)->full)                                                                  \
			return CUBLAS_STATUS_NOT_INITIALIZED;                                                \
	} while (0)

static cublasLogCallback logger;

extern cublasStatus_t cublasLtGetProperty(libraryPropertyType type, int *value);

/* ---- handles ---- */

static cublasStatus_t create(cublasHandle_t *handle)
{
	struct hb_blas *b;
	CUresult r;

	if (!handle)
		return CUBLAS_STATUS_INVALID_VALUE;
	*handle = NULL;
	b = hb_sim_blas_new(true);
	if (!b)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	r = drv.cuMemAlloc_v2(&b->own_workspace, WORKSPACE);
	if (r) {
		hb_sim_blas_free(b);
		return hb_blas_result(r);
	}
	b->workspace_size = WORKSPACE;
	*handle = (cublasHandle_t)b;
	return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t destroy(cublasHandle_t h)
{
	struct hb_blas *b;

	HANDLE(b, h);
	drv.cuMemFree_v2(b->own_workspace);
	hb_sim_blas_free(b);
	return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t get_version(cublasHandle_t h, int *version)
{
	struct hb_blas *b;

	HANDLE(b, h);
	if (!version)
		return CUBLAS_STATUS_INVALID_VALUE;
	*version = HB_CUBLAS_VERSION;
	return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t set_stream(cublasHandle_t h, cudaStream_t stream)
{
	struct hb_blas *b;

	HANDLE(b, h);
	b->stream = (CUstream)stream;
	b->workspace = NULL; /* a new stream takes the handle's own workspace again */
	b->workspace_size = WORKSPACE;
	return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t get_stream(cublasHandle_t h, cudaStream_t *stream)
{
	struct hb_blas *b;

	HANDLE(b, h);
	if (!stream)
		return CUBLAS_STATUS_INVALID_VALUE;
	*stream = (cudaStream_t)b->stream;
	return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t set_workspace(cublasHandle_t h, void *workspace, size_t size)
{
	struct hb_blas *b;

	HANDLE(b, h);
	if ((uintptr_t)workspace % 256)
		return CUBLAS_STATUS_INVALID_VALUE;
	b->workspace = workspace;
	b->workspace_size = workspace ? size : 0;
	return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t set_mode(cublasHandle_t h, size_t at, int mode, int most)
{
	struct hb_blas *b;

	HANDLE(b, h);
	if (mode < 0 || mode > most)
		return CUBLAS_STATUS_INVALID_VALUE;
	*(int *)((char *)b + at) = mode;
	return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t get_mode(cublasHandle_t h, size_t at, void *mode)
{
	struct hb_blas *b;

	HANDLE(b, h);
	if (!mode)
		return CUBLAS_STATUS_INVALID_VALUE;
	memcpy(mode, (char *)b + at, sizeof(int));
	return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t get_logger(cublasLogCallback *callback)
{
	if (!callback)
		return CUBLAS_STATUS_INVALID_VALUE;
	*callback = logger;
	return CUBLAS_STATUS_SUCCESS;
}

/* ---- matrix products ---- */

static bool valid_op(int op)
{
	return op >= CUBLAS_OP_N && op <= CUBLAS_OP_CONJG;
}

static bool long_enough(int64_t ld, int64_t rows)
{
	return ld >= (rows > 1 ? rows : 1);
}

/* sizes: m, n, k, lda, ldb, ldc, batch */
static cublasStatus_t product(cublasHandle_t h, const void *alpha, const void *beta, const int64_t *sizes,
			      struct hb_gemm *g)
{
	int64_t m = sizes[0], n = sizes[1], k = sizes[2];
	struct hb_blas *b;

	HANDLE(b, h);
	if (m < 0 || n < 0 || k < 0 || sizes[6] < 0 || !valid_op(g->op_a) || !valid_op(g->op_b))
		return CUBLAS_STATUS_INVALID_VALUE;
	if (!long_enough(sizes[3], g->op_a == CUBLAS_OP_N ? m : k) ||
	    !long_enough(sizes[4], g->op_b == CUBLAS_OP_N ? k : n) || !long_enough(sizes[5], m))
		return CUBLAS_STATUS_INVALID_VALUE;
	if (!alpha || !beta)
		return CUBLAS_STATUS_INVALID_VALUE;
	g->m = (u64)m;
	g->n = (u64)n;
	g->k = (u64)k;
	g->lda = (u64)sizes[3];
	g->ldb = (u64)sizes[4];
	g->batch = (u64)sizes[6];
	g->workspace = b->workspace_size;
	g->tf32 = g->compute == CUBLAS_COMPUTE_32F_FAST_TF32 || (b->math & 15) == CUBLAS_TF32_TENSOR_OP_MATH;
	return hb_sim_blas_gemm(g, b->stream);
}

/* ---- copies between host and device ---- */

struct strided {
	int64_t rows, cols, size; /* a column is rows * size bytes */
	const void *from;
	int64_t from_ld;
	void *to;
	int64_t to_ld;
	bool to_device;
};

static CUresult copy(const struct strided *s, u64 from, u64 to, u64 bytes, bool async, CUstream stream)
{
	void *host_to = (void *)((uintptr_t)s->to + to);
	const void *host_from = (const void *)((uintptr_t)s->from + from);

	if (s->to_device)
		return async ? drv.cuMemcpyHtoDAsync_v2((CUdeviceptr)(uintptr_t)host_to, host_from, bytes,
							stream)
			     : drv.cuMemcpyHtoD_v2((CUdeviceptr)(uintptr_t)host_to, host_from, bytes);
	return async ? drv.cuMemcpyDtoHAsync_v2(host_to, (CUdeviceptr)(uintptr_t)host_from, bytes, stream)
		     : drv.cuMemcpyDtoH_v2(host_to, (CUdeviceptr)(uintptr_t)host_from, bytes);
}

static cublasStatus_t strided(const struct strided *s, bool async, cudaStream_t stream)
{
	CUresult r = CUDA_SUCCESS;

	if (s->rows < 0 || s->cols < 0 || s->size <= 0 || !long_enough(s->from_ld, s->rows) ||
	    !long_enough(s->to_ld, s->rows))
		return CUBLAS_STATUS_INVALID_VALUE;
	if (!s->rows || !s->cols)
		return CUBLAS_STATUS_SUCCESS;
	if (!have_driver)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	if (s->from_ld == s->rows && s->to_ld == s->rows)
		r = copy(s, 0, 0, (u64)(s->rows * s->cols * s->size), async, (CUstream)stream);
	else
		for (int64_t i = 0; i < s->cols && !r; i++)
			r = copy(s, (u64)(i * s->from_ld * s->size), (u64)(i * s->to_ld * s->size),
				 (u64)(s->rows * s->size), async, (CUstream)stream);
	return r ? CUBLAS_STATUS_MAPPING_ERROR : CUBLAS_STATUS_SUCCESS;
}

/* ---- functions of vectors and matrices: a kernel named after the function ---- */

#ifndef HB_SIM_REAL_HEADERS

static u64 bytes_of(int type)
{
	return type == CUDA_C_64F			  ? 16
	       : type == CUDA_R_64F || type == CUDA_C_32F ? 8
	       : type == CUDA_R_32F			  ? 4
							  : 2;
}

static u64 bytes_by_name(const char *name)
{
	switch (name[strlen("cublas")]) {
	case 'S':
		return 4;
	case 'D':
	case 'C':
		return 8;
	case 'Z':
		return 16;
	default:
		return 4;
	}
}

/* cublasSaxpy_v2 -> saxpy_kernel */
static void kernel_name(char *out, size_t size, const char *function)
{
	int n = (int)strcspn(function + strlen("cublas"), "_");

	snprintf(out, size, "%.*s_kernel", n, function + strlen("cublas"));
	out[0] = (char)tolower((unsigned char)out[0]);
}

/* Work on m by n elements, k operations (of multiply and add) for each. */
static cublasStatus_t kernel(cublasHandle_t h, const char *function, int64_t m, int64_t n, int64_t k)
{
	struct hb_kernel work = {.block = 128};
	struct hb_blas *b;
	char name[64];

	HANDLE(b, h);
	if (m < 0 || n < 0 || k < 0)
		return CUBLAS_STATUS_INVALID_VALUE;
	if (!m || !n)
		return CUBLAS_STATUS_SUCCESS;
	kernel_name(name, sizeof(name), function);
	work.name = name;
	work.grid[0] = (u32)((u64)m * (u64)n / 1024 < 65535 ? (u64)m * (u64)n / 1024 + 1 : 65535);
	work.grid[1] = work.grid[2] = 1;
	work.flops = 2 * (u64)m * (u64)n * (u64)k;
	work.bytes = 2 * (u64)m * (u64)n * bytes_by_name(function);
	return hb_sim_blas_launch(&work, b->stream);
}

/* A result in host memory is waited for. */
static cublasStatus_t number(cublasHandle_t h, const char *function, int64_t n, void *result, u64 bytes,
			     int64_t value)
{
	struct hb_blas *b;
	cublasStatus_t r;

	HANDLE(b, h);
	if (!result)
		return CUBLAS_STATUS_INVALID_VALUE;
	r = kernel(h, function, n > 0 ? n : 0, 1, 1);
	if (r || b->pointer_mode == CUBLAS_POINTER_MODE_DEVICE)
		return r;
	r = hb_blas_result(drv.cuStreamSynchronize(b->stream));
	memset(result, 0, bytes);
	if (value)
		memcpy(result, &value, bytes);
	return r;
}

static cublasStatus_t checked(cublasHandle_t h, const char *function, int64_t n, int *info)
{
	cublasStatus_t r = kernel(h, function, n, n, n);

	if (!info)
		return CUBLAS_STATUS_INVALID_VALUE;
	*info = 0;
	return r;
}

#endif

/* ---- what the linker sees ---- */

/* Rows make their names by macros, so these must expand before they are used as names. */
#define F(...) F_(__VA_ARGS__)
#define G(...) G_(__VA_ARGS__)

enum {
#define F_(name, params, work)	     ID_##name,
#define G_(type, name, params, work) ID_##name,
#include "cublas.def"
#undef F_
#undef G_
	N_FUNCTIONS
};

static u32 hb_front_register(const struct hb_sim_core *c)
{
	static const char *const names[] = {
#define F_(name, params, work)	     #name,
#define G_(type, name, params, work) #name,
#include "cublas.def"
#undef F_
#undef G_
	};

	return c->register_names(HB_LIBRARY, names, N_FUNCTIONS);
}

#define LOGGED(type, name, params, work, result)                                                             \
	HB_EXPORT type name params;                                                                          \
	type name params                                                                                     \
	{                                                                                                    \
		struct hb_call call;                                                                         \
		type r;                                                                                      \
		hb_front_enter(&call, ID_##name);                                                            \
		r = work;                                                                                    \
		hb_front_leave(&call, result, 0, 0);                                                         \
		return r;                                                                                    \
	}
#define F_(name, params, work)	     LOGGED(cublasStatus_t, name, params, work, (s32)r)
#define G_(type, name, params, work) LOGGED(type, name, params, work, 0)
#include "cublas.def"
#undef F_
#undef G_

/* The one function without a result. */
HB_EXPORT void cublasXerbla(const char *name, int info);
void cublasXerbla(const char *name, int info)
{
	fprintf(stderr, " ** On entry to %.32s parameter number %d had an illegal value\n", name ? name : "?",
		info);
}
