/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Part of cublaslt.c: the kernel of a matrix product (name, grid, work) and its launch. The families of names
 * and the shapes of their grids are those that the real library is known to choose on an H100; which of them
 * it takes for a given product is a guess, good enough for cost and attribution.
 */

/* ---- kernels of this process, by name ---- */

#define DEFAULT_SHARED 49152 /* what a kernel may take without asking */
#define MAX_KERNELS    4096  /* a power of two; names come from a few tile sizes, so they are some dozens */
static struct {
	char *name;
	CUfunction function;
} kernels[MAX_KERNELS];
static u32 n_kernels;
static CUlibrary library;
static pthread_mutex_t kernel_lock = PTHREAD_MUTEX_INITIALIZER;

static u32 hash_of(const char *s)
{
	u32 h = 2166136261u;

	for (; *s; s++)
		h = (h ^ (u8)*s) * 16777619u;
	return h;
}

static CUresult load_kernel(const struct hb_kernel *work, u32 slot)
{
	static const char image[] = "simulated";
	CUresult r = CUDA_SUCCESS;
	CUkernel k = NULL;

	if (n_kernels > MAX_KERNELS / 2)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (!library)
		r = drv.cuLibraryLoadData(&library, image, NULL, NULL, 0, NULL, NULL, 0);
	if (!r)
		r = drv.cuLibraryGetKernel(&k, library, work->name);
	if (!r && work->shared > DEFAULT_SHARED)
		r = drv.cuFuncSetAttribute((CUfunction)k, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
					   (int)work->shared);
	if (!r)
		kernels[slot].name = strdup(work->name);
	if (!kernels[slot].name)
		return r ? r : CUDA_ERROR_OUT_OF_MEMORY;
	kernels[slot].function = (CUfunction)k; /* a kernel is a function of whatever context is current */
	n_kernels++;
	return CUDA_SUCCESS;
}

static CUresult kernel_of(const struct hb_kernel *work, CUfunction *f)
{
	const char *name = work->name;
	u32 slot = hash_of(name) % MAX_KERNELS;
	CUresult r = CUDA_SUCCESS;

	pthread_mutex_lock(&kernel_lock);
	while (kernels[slot].name && strcmp(kernels[slot].name, name))
		slot = (slot + 1) % MAX_KERNELS;
	if (!kernels[slot].name)
		r = load_kernel(work, slot);
	*f = kernels[slot].function;
	pthread_mutex_unlock(&kernel_lock);
	return r;
}

static CUresult launch_once(const struct hb_kernel *k, CUfunction f, CUstream stream)
{
	CUlaunchConfig config = {.gridDimX = k->grid[0],
				 .gridDimY = k->grid[1],
				 .gridDimZ = k->grid[2],
				 .blockDimX = k->block,
				 .blockDimY = 1,
				 .blockDimZ = 1,
				 .sharedMemBytes = k->shared,
				 .hStream = stream};

	if (core->hint)
		core->hint(k->flops, k->bytes);
	if (k->ex)
		return drv.cuLaunchKernelEx(&config, f, NULL, NULL);
	return drv.cuLaunchKernel(f, k->grid[0], k->grid[1], k->grid[2], k->block, 1, 1, k->shared, stream,
				  NULL, NULL);
}

/* A thread that has no context gets the first device's, as from the runtime that is part of the library. */
static CUresult need_context(void)
{
	CUcontext ctx = NULL;
	CUresult r = drv.cuCtxGetCurrent(&ctx);

	if (r == CUDA_ERROR_NOT_INITIALIZED) {
		r = drv.cuInit(0);
		if (!r)
			r = drv.cuCtxGetCurrent(&ctx);
	}
	if (!r && !ctx) {
		r = drv.cuDevicePrimaryCtxRetain(&ctx, 0);
		if (!r)
			r = drv.cuCtxSetCurrent(ctx);
	}
	return r;
}

cublasStatus_t hb_sim_blas_launch(const struct hb_kernel *k, CUstream stream)
{
	CUfunction f;
	CUresult r;

	if (!have_driver || !core)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	r = kernel_of(k, &f);
	if (!r)
		r = launch_once(k, f, stream);
	if (r == CUDA_ERROR_INVALID_CONTEXT && !need_context())
		r = launch_once(k, f, stream);
	return hb_blas_result(r);
}

/* ---- matrix products ---- */

static u32 size_of(int type)
{
	switch (type) {
	case CUDA_C_64F:
		return 16;
	case CUDA_R_64F:
	case CUDA_C_32F:
		return 8;
	case CUDA_R_32F:
	case CUDA_R_32I:
		return 4;
	case CUDA_R_16F:
	case CUDA_R_16BF:
		return 2;
	case CUDA_R_8I:
	case CUDA_R_8U:
	case CUDA_R_8F_E4M3:
	case CUDA_R_8F_E5M2:
	case CUDA_R_4F_E2M1: /* half a byte in truth */
		return 1;
	default:
		return 0;
	}
}

static bool is_fp8(int type)
{
	return type == CUDA_R_8F_E4M3 || type == CUDA_R_8F_E5M2;
}

static bool is_complex(int type)
{
	return type == CUDA_C_32F || type == CUDA_C_64F;
}

/* A letter per type in the names of kernels. */
static char letter(int type)
{
	return type == CUDA_R_16BF ? 't' : type == CUDA_R_16F ? 'h' : type == CUDA_R_32F ? 's' : 'q';
}

static char layout(int op)
{
	return op == CUBLAS_OP_N ? 'n' : 't';
}

static u64 tiles(u64 n, u32 tile)
{
	return (n + tile - 1) / tile;
}

struct tile {
	u32 m, n, block, shared;
};

/* The largest tile that still gives the 132 multiprocessors something to do; a small n takes a narrow one. */
static const struct tile *choose(const struct tile *t, u32 n_tiles, const struct hb_gemm *g)
{
	for (u32 i = 0; i + 1 < n_tiles; i++)
		if (t[i].n / 2 < g->n && tiles(g->m, t[i].m) * tiles(g->n, t[i].n) * g->batch >= 100)
			return &t[i];
	for (u32 i = 0; i + 1 < n_tiles; i++)
		if (t[i].n / 2 < g->n && t[i].m <= 64)
			return &t[i];
	return &t[n_tiles - 1];
}

#define CHOOSE(table, g) choose(table, sizeof(table) / sizeof(*(table)), g)

struct chosen {
	struct hb_kernel kernel;
	char name[160];
	u32 splits;
};

static void grid_of(struct chosen *c, const struct tile *t, const struct hb_gemm *g, bool persistent)
{
	u64 x = tiles(g->m, t->m), y = tiles(g->n, t->n), all = x * y * g->batch * c->splits;

	c->kernel.block = t->block;
	c->kernel.shared = t->shared;
	c->kernel.grid[0] = (u32)(persistent ? (all < 132 ? all : 132) : x);
	c->kernel.grid[1] = (u32)(persistent ? 1 : y);
	c->kernel.grid[2] = (u32)(persistent ? 1 : g->batch < 65535 ? g->batch : 65535);
}

/* Tensor cores of Hopper: half precisions and fp8 with rows of at least 16 bytes. */
static void hopper(struct chosen *c, const struct hb_gemm *g)
{
	static const struct tile t[] = {
	    {256, 128, 384, 213248}, {128, 256, 384, 213248}, {128, 128, 384, 197888}, {128, 64, 384, 164864},
	    {64, 64, 256, 131584},   {64, 32, 256, 98816},    {64, 16, 256, 82432},    {64, 8, 256, 74240}};
	const struct tile *tile = CHOOSE(t, g);
	bool wide = is_fp8(g->type_a);
	u64 n = tiles(g->m, tile->m) * tiles(g->n, tile->n) * g->batch;
	char types[8];

	if (n <= 33 && g->k >= 8192 && g->workspace >= g->m * g->n * 4 * 4)
		c->splits = 4;
	snprintf(types, sizeof(types), wide ? "qq%cs%c" : "%cs%c", letter(wide ? g->type_c : g->type_a),
		 letter(g->type_c));
	snprintf(c->name, sizeof(c->name), "nvjet_%s_%ux%u_%ux%u_%s_v_bz_%s%c%c%c", types, tile->m, tile->n,
		 wide ? 128 : 64, tile->n >= 128 ? 4 : 16, tile->m >= 128 ? "2x1" : "4x1",
		 c->splits > 1	 ? "splitK_"
		 : tile->m > 128 ? "coopA_"
				 : "",
		 layout(g->op_a) - 32, layout(g->op_b) - 32, 'T');
	grid_of(c, tile, g, true);
	c->kernel.ex = true;
}

/* Everything else runs on kernels of the generation before. */
static void ampere(struct chosen *c, const struct hb_gemm *g)
{
	static const struct tile t[] = {
	    {128, 128, 256, 49152}, {128, 64, 128, 49152}, {64, 64, 128, 32768}, {32, 32, 128, 16384}};
	const struct tile *tile = CHOOSE(t, g);
	char inner[96], a = layout(g->op_a), b = layout(g->op_b);
	const char *what = NULL;

	if (g->type_a == CUDA_R_32F && g->compute != CUBLAS_COMPUTE_32F_PEDANTIC)
		snprintf(
		    c->name, sizeof(c->name),
		    g->tf32
			? "sm80_xmma_gemm_f32f32_tf32f32_f32_%c%c_n_tilesize%ux%ux32_stage3_warpsize2x2x1_"
			  "tensor16x8x8_execute_kernel__5x_cublas"
			: "sm80_xmma_gemm_f32f32_f32f32_f32_%c%c_n_tilesize%ux%ux8_stage3_warpsize2x2x1_ffma_"
			  "aligna4_alignc4_execute_kernel__5x_cublas",
		    a, b, tile->m, tile->n);
	else if (g->type_a == CUDA_R_8I)
		snprintf(c->name, sizeof(c->name),
			 "sm90_xmma_gemm_i8i32_i8i32_i32_%c%c_n_tilesize%ux%ux128_warpgroupsize1x1x1_execute_"
			 "segment_k_off_kernel__5x_cublas",
			 a, b, tile->m, tile->n);
	else
		what = g->type_a == CUDA_R_64F	  ? "tensorop_d884gemm"
		       : g->type_a == CUDA_C_64F  ? "tensorop_z884gemm"
		       : g->type_a == CUDA_C_32F  ? "simt_cgemm"
		       : g->type_a == CUDA_R_16BF ? "tensorop_bf16_s16816gemm_bf16"
		       : g->type_a == CUDA_R_16F  ? "tensorop_f16_s16816gemm_f16"
						  : "simt_sgemm";
	if (what) { /* void cutlass::Kernel2<cutlass_80_...>(cutlass_80_...::Params) */
		snprintf(inner, sizeof(inner), "cutlass_80_%s_%ux%u_32x3_%c%c_align1", what, tile->m, tile->n,
			 a, b);
		snprintf(c->name, sizeof(c->name), "_ZN7cutlass7Kernel2I%zu%sEEvNT_6ParamsE", strlen(inner),
			 inner);
	}
	grid_of(c, tile, g, false);
}

/* A single column: a matrix-vector kernel. */
static void vector(struct chosen *c, const struct hb_gemm *g)
{
	static const struct tile rows = {4, 1, 128, 0};
	const char *t = g->type_a == CUDA_R_16BF ? "13__nv_bfloat16S0_S0_f" : "6__halfS0_S0_f";

	snprintf(c->name, sizeof(c->name), "_Z17gemv%cT_kernel_valIii%sLi128ELi16ELi4ELi4ELb0EEviiPKT1_",
		 g->op_a == CUBLAS_OP_N ? 'N' : '2', t);
	grid_of(c, &rows, g, false);
}

static void choose_kernel(struct chosen *c, const struct hb_gemm *g)
{
	bool half = g->type_a == CUDA_R_16BF || g->type_a == CUDA_R_16F;
	bool aligned = g->lda * size_of(g->type_a) % 16 == 0 && g->ldb * size_of(g->type_b) % 16 == 0;
	u64 sa = size_of(g->type_a), sb = size_of(g->type_b), sc = size_of(g->type_c);

	*c = (struct chosen){.splits = 1};
	if (half && g->n == 1 && g->batch == 1)
		vector(c, g);
	else if ((half && aligned) || is_fp8(g->type_a))
		hopper(c, g);
	else
		ampere(c, g);
	c->kernel.name = c->name;
	c->kernel.flops = 2 * g->m * g->n * g->k * g->batch * (is_complex(g->type_a) ? 4 : 1);
	c->kernel.bytes = (g->m * g->k * sa + g->k * g->n * sb + g->m * g->n * sc) * g->batch;
}

/* The second kernel of a product whose k was split: adds the parts. */
static cublasStatus_t reduce_splits(const struct chosen *c, const struct hb_gemm *g, CUstream stream)
{
	struct hb_kernel k = {
	    .name = "_ZN8cublasLt19splitKreduce_kernelILi32ELi16EiffffEEvPT2_",
	    .grid = {(u32)tiles(g->m * g->n, 512), 1, 1},
	    .block = 512,
	    .flops = g->m * g->n * c->splits,
	    .bytes = g->m * g->n * (4 * c->splits + size_of(g->type_c)),
	};

	return hb_sim_blas_launch(&k, stream);
}

/* Compute types and the types of A that go with them. */
static bool supported(const struct hb_gemm *g)
{
	int a = g->type_a;

	if (!size_of(a) || !size_of(g->type_b) || !size_of(g->type_c) || size_of(a) != size_of(g->type_b))
		return false;
	switch (g->compute) {
	case CUBLAS_COMPUTE_16F:
	case CUBLAS_COMPUTE_16F_PEDANTIC:
		return a == CUDA_R_16F && g->type_c == CUDA_R_16F;
	case CUBLAS_COMPUTE_32I:
	case CUBLAS_COMPUTE_32I_PEDANTIC:
		return a == CUDA_R_8I && (g->type_c == CUDA_R_32I || g->type_c == CUDA_R_8I);
	case CUBLAS_COMPUTE_64F:
	case CUBLAS_COMPUTE_64F_PEDANTIC:
		return (a == CUDA_R_64F || a == CUDA_C_64F) && g->type_c == a;
	case CUBLAS_COMPUTE_32F:
	case CUBLAS_COMPUTE_32F_PEDANTIC:
	case CUBLAS_COMPUTE_32F_FAST_16F:
	case CUBLAS_COMPUTE_32F_FAST_16BF:
	case CUBLAS_COMPUTE_32F_FAST_TF32:
		if (is_fp8(a)) /* on Hopper only rows by columns */
			return g->op_a != CUBLAS_OP_N && g->op_b == CUBLAS_OP_N;
		return a != CUDA_R_64F && a != CUDA_C_64F && a != CUDA_R_32I && a != CUDA_R_4F_E2M1;
	default:
		return false;
	}
}

cublasStatus_t hb_sim_blas_gemm(const struct hb_gemm *g, CUstream stream)
{
	cublasStatus_t r;
	struct chosen c;

	if (!supported(g))
		return CUBLAS_STATUS_NOT_SUPPORTED;
	if (!g->m || !g->n || !g->batch)
		return CUBLAS_STATUS_SUCCESS;
	choose_kernel(&c, g);
	r = hb_sim_blas_launch(&c.kernel, stream);
	return r || c.splits == 1 ? r : reduce_splits(&c, g, stream);
}
