/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Part of cublaslt.c: making descriptors, the algorithm, products, and what the linker sees. */

/* Memory for a descriptor that the library owns, then its contents as in the caller's memory. */
#define CREATE(obj, init)                                                                                    \
	do {                                                                                                 \
		cublasStatus_t r_;                                                                           \
		if (!(obj))                                                                                  \
			return CUBLAS_STATUS_INVALID_VALUE;                                                  \
		*(obj) = malloc(sizeof(**(obj)));                                                            \
		if (!*(obj))                                                                                 \
			return CUBLAS_STATUS_ALLOC_FAILED;                                                   \
		r_ = init;                                                                                   \
		if (r_) {                                                                                    \
			free(*(obj));                                                                        \
			*(obj) = NULL;                                                                       \
		}                                                                                            \
		return r_;                                                                                   \
	} while (0)
#define ROOM(obj, size)                                                                                      \
	do {                                                                                                 \
		if (!(obj) || (size) < sizeof(*(obj)))                                                       \
			return CUBLAS_STATUS_INVALID_VALUE;                                                  \
		memset((obj), 0, sizeof(*(obj)));                                                            \
	} while (0)

static cublasStatus_t do_cublasLtMatmulDescInit_internal(cublasLtMatmulDesc_t desc, size_t size,
							 cublasComputeType_t compute, cudaDataType_t scale)
{
	ROOM(desc, size);
	*(struct desc *)desc = (struct desc){
	    .compute = (s32)compute,
	    .scale_type = (s32)scale,
	    .fill = 2, /* full */
	    .epilogue = CUBLASLT_EPILOGUE_DEFAULT,
	    .aux_type = -1,
	    .bias_type = -1,
	};
	return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t do_cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *desc, cublasComputeType_t compute,
						  cudaDataType_t scale)
{
	CREATE(desc, do_cublasLtMatmulDescInit_internal(*desc, sizeof(**desc), compute, scale));
}

static cublasStatus_t do_cublasLtMatrixLayoutInit_internal(cublasLtMatrixLayout_t layout, size_t size,
							   cudaDataType type, uint64_t rows, uint64_t cols,
							   int64_t ld)
{
	ROOM(layout, size);
	*(struct layout *)layout = (struct layout){
	    .type = (s32)type,
	    .order = 0, /* columns */
	    .batch = 1,
	    .rows = rows,
	    .cols = cols,
	    .ld = ld,
	};
	return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t do_cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout, cudaDataType type,
						    uint64_t rows, uint64_t cols, int64_t ld)
{
	CREATE(layout, do_cublasLtMatrixLayoutInit_internal(*layout, sizeof(**layout), type, rows, cols, ld));
}

static cublasStatus_t do_cublasLtMatmulPreferenceInit_internal(cublasLtMatmulPreference_t pref, size_t size)
{
	ROOM(pref, size);
	*(struct pref *)pref = (struct pref){.reduction = 7, .align = {256, 256, 256, 256}, .impl = ~0ull};
	return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t do_cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *pref)
{
	CREATE(pref, do_cublasLtMatmulPreferenceInit_internal(*pref, sizeof(**pref)));
}

static cublasStatus_t do_cublasLtMatrixTransformDescInit_internal(cublasLtMatrixTransformDesc_t desc,
								  size_t size, cudaDataType scale)
{
	ROOM(desc, size);
	*(struct transform *)desc = (struct transform){.scale_type = (s32)scale};
	return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t do_cublasLtMatrixTransformDescCreate(cublasLtMatrixTransformDesc_t *desc,
							   cudaDataType scale)
{
	CREATE(desc, do_cublasLtMatrixTransformDescInit_internal(*desc, sizeof(**desc), scale));
}

/* ---- algorithms: there is one ---- */

#define THE_ALGO 66

static const struct {
	int id;
	u64 value;
	u16 size;
} caps[] = {
    {CUBLASLT_ALGO_CAP_SPLITK_SUPPORT, 1, 4},
    {CUBLASLT_ALGO_CAP_REDUCTION_SCHEME_MASK, 2, 4},
    {CUBLASLT_ALGO_CAP_CTA_SWIZZLING_SUPPORT, 0, 4},
    {CUBLASLT_ALGO_CAP_STRIDED_BATCH_SUPPORT, 1, 4},
    {CUBLASLT_ALGO_CAP_OUT_OF_PLACE_RESULT_SUPPORT, 1, 4},
    {CUBLASLT_ALGO_CAP_UPLO_SUPPORT, 0, 4},
    {CUBLASLT_ALGO_CAP_TILE_IDS, 0, 4}, /* one entry: undefined, the library's choice */
    {CUBLASLT_ALGO_CAP_CUSTOM_OPTION_MAX, 0, 4},
    {CUBLASLT_ALGO_CAP_CUSTOM_MEMORY_ORDER, 0, 4},
    {CUBLASLT_ALGO_CAP_POINTER_MODE_MASK, 3, 4},
    {CUBLASLT_ALGO_CAP_EPILOGUE_MASK, 0xffff, 4},
    {CUBLASLT_ALGO_CAP_STAGES_IDS, 0, 4},
    {CUBLASLT_ALGO_CAP_LD_NEGATIVE, 0, 4},
    {CUBLASLT_ALGO_CAP_NUMERICAL_IMPL_FLAGS, 0x10202, 8},
    {CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_A_BYTES, 16, 4},
    {CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_B_BYTES, 16, 4},
    {CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_C_BYTES, 16, 4},
    {CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_D_BYTES, 16, 4},
};

static cublasStatus_t do_cublasLtMatmulAlgoCapGetAttribute(const cublasLtMatmulAlgo_t *algo,
							   cublasLtMatmulAlgoCapAttributes_t attr, void *buf,
							   size_t size, size_t *written)
{
	for (size_t i = 0; algo && i < sizeof(caps) / sizeof(*caps); i++)
		if (caps[i].id == (int)attr)
			return give(&caps[i].value, caps[i].size, buf, size, written);
	return CUBLAS_STATUS_INVALID_VALUE;
}

static cublasStatus_t do_cublasLtMatmulAlgoConfigSetAttribute(cublasLtMatmulAlgo_t *algo,
							      cublasLtMatmulAlgoConfigAttributes_t attr,
							      const void *buf, size_t size)
{
	if (attr == CUBLASLT_ALGO_CONFIG_ID) /* read only */
		return CUBLAS_STATUS_INVALID_VALUE;
	return set_attribute(algo_attributes, sizeof(algo_attributes) / sizeof(*algo_attributes), algo,
			     (int)attr, buf, size);
}

static cublasStatus_t do_cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t *algo,
							      cublasLtMatmulAlgoConfigAttributes_t attr,
							      void *buf, size_t size, size_t *written)
{
	return get_attribute(algo_attributes, sizeof(algo_attributes) / sizeof(*algo_attributes), algo,
			     (int)attr, buf, size, written);
}

static cublasStatus_t do_cublasLtMatmulAlgoGetIds(cublasLtHandle_t handle, cublasComputeType_t compute,
						  cudaDataType_t scale, cudaDataType_t a, cudaDataType_t b,
						  cudaDataType_t c, cudaDataType_t d, int n, int *ids,
						  int *found)
{
	if (!hb_sim_blas_get(handle))
		return CUBLAS_STATUS_NOT_INITIALIZED;
	if (!ids || !found || n < 1)
		return CUBLAS_STATUS_INVALID_VALUE;
	ids[0] = THE_ALGO;
	*found = 1;
	return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t do_cublasLtMatmulAlgoInit(cublasLtHandle_t handle, cublasComputeType_t compute,
						cudaDataType_t scale, cudaDataType_t a, cudaDataType_t b,
						cudaDataType_t c, cudaDataType_t d, int id,
						cublasLtMatmulAlgo_t *algo)
{
	if (!hb_sim_blas_get(handle))
		return CUBLAS_STATUS_NOT_INITIALIZED;
	if (!algo || id != THE_ALGO)
		return CUBLAS_STATUS_INVALID_VALUE;
	memset(algo, 0, sizeof(*algo));
	*(struct algo *)algo = (struct algo){.id = id, .splits = 1};
	return CUBLAS_STATUS_SUCCESS;
}

/* ---- products ---- */

static u64 rows_of(const struct layout *l, int op)
{
	return op == CUBLAS_OP_N ? l->rows : l->cols;
}

static u64 cols_of(const struct layout *l, int op)
{
	return op == CUBLAS_OP_N ? l->cols : l->rows;
}

/* What the descriptors ask for, or the code for why they do not fit each other. */
static cublasStatus_t problem(struct hb_gemm *g, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t la,
			      cublasLtMatrixLayout_t lb, cublasLtMatrixLayout_t ld, u64 workspace)
{
	const struct desc *d = (const struct desc *)desc;
	const struct layout *a = (const struct layout *)la, *b = (const struct layout *)lb,
			    *out = (const struct layout *)ld;

	if (!d || !a || !b || !out)
		return CUBLAS_STATUS_INVALID_VALUE;
	*g = (struct hb_gemm){
	    .type_a = a->type,
	    .type_b = b->type,
	    .type_c = out->type,
	    .compute = d->compute,
	    .op_a = d->op[0],
	    .op_b = d->op[1],
	    .m = out->rows,
	    .n = out->cols,
	    .k = cols_of(a, d->op[0]),
	    .batch = out->batch > 0 ? (u64)out->batch : 0,
	    .lda = (u64)a->ld,
	    .ldb = (u64)b->ld,
	    .workspace = workspace,
	    .tf32 = d->compute == CUBLAS_COMPUTE_32F_FAST_TF32,
	};
	if (rows_of(a, g->op_a) != g->m || cols_of(b, g->op_b) != g->n || rows_of(b, g->op_b) != g->k)
		return CUBLAS_STATUS_INVALID_VALUE;
	if (a->batch != out->batch || b->batch != out->batch)
		return CUBLAS_STATUS_INVALID_VALUE;
	return supported(g) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

static void propose(cublasLtMatmulHeuristicResult_t *r, const struct hb_gemm *g)
{
	struct algo algo = {.id = THE_ALGO};
	struct chosen c;

	choose_kernel(&c, g);
	memset(r, 0, sizeof(*r));
	algo.splits = (s32)c.splits;
	memcpy(&r->algo, &algo, sizeof(algo));
	r->workspaceSize = c.splits > 1 ? g->m * g->n * 4 * c.splits : 0;
	r->state = CUBLAS_STATUS_SUCCESS;
	r->wavesCount = (float)c.kernel.grid[0] * (float)c.kernel.grid[1] / 132;
}

static cublasStatus_t do_cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
							cublasLtMatrixLayout_t la, cublasLtMatrixLayout_t lb,
							cublasLtMatrixLayout_t lc, cublasLtMatrixLayout_t ld,
							cublasLtMatmulPreference_t pref, int n,
							cublasLtMatmulHeuristicResult_t *results, int *found)
{
	struct hb_gemm g;
	cublasStatus_t r;

	if (!hb_sim_blas_get(handle))
		return CUBLAS_STATUS_NOT_INITIALIZED;
	if (!results || !found || n < 1)
		return CUBLAS_STATUS_INVALID_VALUE;
	*found = 0;
	r = problem(&g, desc, la, lb, ld, pref ? ((const struct pref *)pref)->workspace : 0);
	if (r)
		return r;
	propose(&results[0], &g);
	*found = 1;
	return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t do_cublasLtMatmulAlgoCheck(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
						 cublasLtMatrixLayout_t la, cublasLtMatrixLayout_t lb,
						 cublasLtMatrixLayout_t lc, cublasLtMatrixLayout_t ld,
						 const cublasLtMatmulAlgo_t *algo,
						 cublasLtMatmulHeuristicResult_t *result)
{
	struct hb_gemm g;
	cublasStatus_t r;

	if (!hb_sim_blas_get(handle))
		return CUBLAS_STATUS_NOT_INITIALIZED;
	if (!algo || !result || ((const struct algo *)algo)->id != THE_ALGO)
		return CUBLAS_STATUS_INVALID_VALUE;
	r = problem(&g, desc, la, lb, ld, ~0ull);
	if (!r)
		propose(result, &g);
	return r;
}

static cublasStatus_t do_cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void *alpha,
					const void *a, cublasLtMatrixLayout_t la, const void *b,
					cublasLtMatrixLayout_t lb, const void *beta, const void *c,
					cublasLtMatrixLayout_t lc, void *d, cublasLtMatrixLayout_t ld,
					const cublasLtMatmulAlgo_t *algo, void *workspace, size_t size,
					cudaStream_t stream)
{
	struct hb_gemm g;
	cublasStatus_t r;

	if (!hb_sim_blas_get(handle))
		return CUBLAS_STATUS_NOT_INITIALIZED;
	if (!alpha || !a || !b || !d)
		return CUBLAS_STATUS_INVALID_VALUE;
	r = problem(&g, desc, la, lb, ld, workspace ? size : 0);
	if (r)
		return r;
	if (algo && ((const struct algo *)algo)->splits == 1)
		g.workspace = 0;
	return hb_sim_blas_gemm(&g, (CUstream)stream);
}

static cublasStatus_t do_cublasLtMatrixTransform(cublasLtHandle_t handle, cublasLtMatrixTransformDesc_t desc,
						 const void *alpha, const void *a, cublasLtMatrixLayout_t la,
						 const void *beta, const void *b, cublasLtMatrixLayout_t lb,
						 void *c, cublasLtMatrixLayout_t lc, cudaStream_t stream)
{
	const struct layout *out = (const struct layout *)lc;
	struct hb_kernel k = {.name = "_ZN8cublasLt16transform_kernelIfLb0EEvPT_", .block = 256};

	if (!hb_sim_blas_get(handle))
		return CUBLAS_STATUS_NOT_INITIALIZED;
	if (!desc || !a || !la || !c || !out)
		return CUBLAS_STATUS_INVALID_VALUE;
	k.grid[0] = (u32)tiles(out->rows, 32);
	k.grid[1] = (u32)tiles(out->cols, 32);
	k.grid[2] = 1;
	k.bytes = 2 * out->rows * out->cols * size_of(out->type);
	return k.grid[0] && k.grid[1] ? hb_sim_blas_launch(&k, (CUstream)stream) : CUBLAS_STATUS_SUCCESS;
}

/* ---- versions, texts, settings without effect ---- */

const char *hb_sim_blas_status(int status, bool text)
{
#define NAMED(name, value) {value, #name},
	static const struct {
		int code;
		const char *name;
	} names[] = {HB_ABI_CUBLAS_STATUS(NAMED)};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (names[i].code == status)
			return text ? names[i].name + strlen("CUBLAS_STATUS_") : names[i].name;
	return "unknown status";
}

static const char *do_cublasLtGetStatusName(cublasStatus_t status)
{
	return hb_sim_blas_status((int)status, false);
}

static const char *do_cublasLtGetStatusString(cublasStatus_t status)
{
	return hb_sim_blas_status((int)status, true);
}

static size_t do_cublasLtGetVersion(void)
{
	return HB_CUBLAS_VERSION;
}

static size_t do_cublasLtGetCudartVersion(void)
{
	return HB_CUBLAS_CUDART;
}

static cublasStatus_t do_cublasLtGetProperty(libraryPropertyType type, int *value)
{
	static const int parts[] = {HB_CUBLAS_VERSION / 10000, HB_CUBLAS_VERSION / 100 % 100,
				    HB_CUBLAS_VERSION % 100};

	if (!value || (u32)type > 2)
		return CUBLAS_STATUS_INVALID_VALUE;
	*value = parts[type];
	return CUBLAS_STATUS_SUCCESS;
}

static size_t heuristics_capacity = 8192;

static cublasStatus_t do_cublasLtHeuristicsCacheGetCapacity(size_t *capacity)
{
	if (!capacity)
		return CUBLAS_STATUS_INVALID_VALUE;
	*capacity = heuristics_capacity;
	return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t do_cublasLtHeuristicsCacheSetCapacity(size_t capacity)
{
	heuristics_capacity = capacity;
	return CUBLAS_STATUS_SUCCESS;
}

/* A logger may be set; nothing is ever logged. */
#define SILENT(name, params)                                                                                 \
	static cublasStatus_t do_##name params                                                               \
	{                                                                                                    \
		return CUBLAS_STATUS_SUCCESS;                                                                \
	}
SILENT(cublasLtLoggerSetCallback, (cublasLtLoggerCallback_t callback))
SILENT(cublasLtLoggerSetFile, (FILE * file))
SILENT(cublasLtLoggerOpenFile, (const char *path))
SILENT(cublasLtLoggerSetLevel, (int level))
SILENT(cublasLtLoggerSetMask, (int mask))
SILENT(cublasLtLoggerForceDisable, (void))

/* ---- what the linker sees ---- */

enum {
#define F			    HB_ID_
#define G(type, name, params, args) ID_##name,
#include "cublaslt.def"
#undef F
#undef G
	N_FUNCTIONS
};

static u32 hb_front_register(const struct hb_sim_core *c)
{
	static const char *const names[] = {
#define F			    HB_NAME_
#define G(type, name, params, args) #name,
#include "cublaslt.def"
#undef F
#undef G
	};

	return c->register_names(HB_LIBRARY, names, N_FUNCTIONS);
}

#define F(name, params, args, stream, bytes)                                                                 \
	HB_EXPORT cublasStatus_t name params;                                                                \
	cublasStatus_t name params                                                                           \
	{                                                                                                    \
		struct hb_call call;                                                                         \
		cublasStatus_t r;                                                                            \
		hb_front_enter(&call, ID_##name);                                                            \
		r = do_##name args;                                                                          \
		hb_front_leave(&call, (s32)r, HB_H(stream), bytes);                                          \
		return r;                                                                                    \
	}
#define G(type, name, params, args)                                                                          \
	HB_EXPORT type name params;                                                                          \
	type name params                                                                                     \
	{                                                                                                    \
		struct hb_call call;                                                                         \
		type r;                                                                                      \
		hb_front_enter(&call, ID_##name);                                                            \
		r = do_##name args;                                                                          \
		hb_front_leave(&call, 0, 0, 0);                                                              \
		return r;                                                                                    \
	}
#include "cublaslt.def"
