/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* libcudart.so.12 or .13, as HB_CUDART says: the runtime API, thin over the driver. Rows of cudart.def become
 * exported functions at the end. */
#include <stdlib.h>
#include <string.h>
#include "driver.h"

#define F(name, params, args, stream, bytes)	   static cudaError_t do_##name params;
#define P(name, params, args, stream, bytes, call) static cudaError_t do_##name params;
#define G(type, name, params, args)		   static type do_##name params;
#define Q					   G
#include "cudart.def"
#undef F
#undef P
#undef G
#undef Q

HB_SIM_MARK

#define MAX_DEVICES 64

static __thread struct {
	int device;
	int current; /* device + 1 whose primary context was made current */
	cudaError_t last;
} self;

/* ---- initialisation ---- */

static CUcontext primary[MAX_DEVICES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static CUresult retain(int device, CUcontext *ctx)
{
	CUresult r = CUDA_SUCCESS;

	pthread_mutex_lock(&lock);
	if (!primary[device])
		r = drv.cuDevicePrimaryCtxRetain(&primary[device], device);
	*ctx = primary[device];
	pthread_mutex_unlock(&lock);
	return r;
}

static CUresult make_current(void)
{
	CUcontext ctx = NULL;
	CUresult r = drv.cuInit(0);

	if (!r)
		r = retain(self.device, &ctx);
	if (!r)
		r = drv.cuCtxSetCurrent(ctx);
	if (!r)
		self.current = self.device + 1;
	return r;
}

/* Every call but a few makes the device's primary context current in the calling thread. */
static cudaError_t ready(void)
{
	if (!have_driver)
		return cudaErrorInsufficientDriver;
	if (self.current == self.device + 1)
		return cudaSuccess;
	return (cudaError_t)make_current();
}

#define READY()                                                                                              \
	do {                                                                                                 \
		cudaError_t r_ = ready();                                                                    \
		if (r_)                                                                                      \
			return r_;                                                                           \
	} while (0)
#define DRIVER(call) return (cudaError_t)(drv.call)

/* ---- registered kernels ---- */

struct image {
	void *handle; /* what __cudaRegisterFatBinary returns the address of */
	CUlibrary library;
};
struct kernel { /* or a variable: both are known by an address in the host's program */
	const void *host;
	char *name;
	struct image *image;
	CUkernel kernel;
	CUdeviceptr variable;
	size_t size; /* of a variable */
};
static struct kernel *kernels; /* open addressing, power of two */
static size_t n_kernels, cap_kernels;

static struct kernel *slot(struct kernel *table, size_t cap, const void *host)
{
	size_t i = (size_t)((HB_H(host) * 0x9e3779b97f4a7c15ull) >> 32) & (cap - 1);

	while (table[i].host && table[i].host != host)
		i = (i + 1) & (cap - 1);
	return &table[i];
}

static bool grow(void)
{
	size_t cap = cap_kernels ? cap_kernels * 2 : 1024;
	struct kernel *t = calloc(cap, sizeof(*t));

	if (!t)
		return false;
	for (size_t i = 0; i < cap_kernels; i++)
		if (kernels[i].host)
			*slot(t, cap, kernels[i].host) = kernels[i];
	free(kernels);
	kernels = t;
	cap_kernels = cap;
	return true;
}

static void **do___cudaRegisterFatBinary(void *image)
{
	struct image *im = calloc(1, sizeof(*im));

	return im ? &im->handle : NULL;
}

static void do___cudaRegisterFatBinaryEnd(void **handle)
{
}

static void do___cudaUnregisterFatBinary(void **handle)
{
	/* Called from destructors, after which launches of its kernels must fail, not crash: nothing is
	 * freed. */
}

static void remember_symbol(void **handle, const void *host, const char *name, size_t size)
{
	struct kernel *k;

	pthread_mutex_lock(&lock);
	if (host && name && handle && (n_kernels * 2 < cap_kernels || grow())) {
		k = slot(kernels, cap_kernels, host);
		n_kernels += !k->host;
		*k = (struct kernel){
		    .host = host, .name = strdup(name), .image = (struct image *)handle, .size = size};
	}
	pthread_mutex_unlock(&lock);
}

static void do___cudaRegisterFunction(void **handle, const char *func, char *device_fun, const char *name,
				      int limit, void *tid, void *bid, void *block_dim, void *grid_dim,
				      int *warp_size)
{
	remember_symbol(handle, func, name, 0);
}

static void do___cudaRegisterVar(void **handle, char *var, char *address, const char *name, int ext,
				 size_t bytes, int constant, int global)
{
	remember_symbol(handle, var, name, bytes ? bytes : 1);
}

static void do___cudaRegisterManagedVar(void **handle, void **ptr, char *address, const char *name, int ext,
					size_t bytes, int constant, int global)
{
	remember_symbol(handle, ptr, name, bytes ? bytes : 1);
}

static char do___cudaInitModule(void **handle)
{
	return 1;
}

static CUresult load_image(struct image *im)
{
	static const char data[] = "simulated";

	if (im->library)
		return CUDA_SUCCESS;
	return drv.cuLibraryLoadData(&im->library, data, NULL, NULL, 0, NULL, NULL, 0);
}

static CUresult load_kernel(struct kernel *k)
{
	CUresult r = load_image(k->image);

	return r ? r : drv.cuLibraryGetKernel(&k->kernel, k->image->library, k->name);
}

/* Device address of a registered variable, allocated at the first question. */
static cudaError_t find_variable(const void *host, CUdeviceptr *ptr, size_t *size)
{
	cudaError_t e = ready();
	CUresult r = CUDA_SUCCESS;
	struct kernel *k;
	size_t room = 0;

	if (e)
		return e;
	pthread_mutex_lock(&lock);
	k = cap_kernels ? slot(kernels, cap_kernels, host) : NULL;
	if (!k || !k->host || !k->size) {
		pthread_mutex_unlock(&lock);
		return cudaErrorInvalidSymbol;
	}
	if (!k->variable) {
		r = load_image(k->image);
		if (!r)
			r = drv.cuLibraryGetGlobal(&k->variable, &room, k->image->library, k->name);
		if (!r &&
		    room < k->size) /* larger than what the driver gives one of which it knows nothing */
			r = drv.cuMemAlloc_v2(&k->variable, k->size);
	}
	*ptr = k->variable;
	*size = k->size;
	pthread_mutex_unlock(&lock);
	return (cudaError_t)r;
}

/* The driver's handle of a registered host function; others are passed on, for they may be handles already.
 */
static cudaError_t find(const void *func, CUfunction *f)
{
	struct kernel *k;
	CUresult r = CUDA_SUCCESS;

	pthread_mutex_lock(&lock);
	k = cap_kernels ? slot(kernels, cap_kernels, func) : NULL;
	if (k && k->host && !k->size && !k->kernel)
		r = load_kernel(k);
	*f = k && k->host && !k->size ? (CUfunction)k->kernel : (CUfunction)(uintptr_t)func;
	pthread_mutex_unlock(&lock);
	return (cudaError_t)r;
}

#define FIND(f, func)                                                                                        \
	do {                                                                                                 \
		cudaError_t r_ = ready();                                                                    \
		if (!r_)                                                                                     \
			r_ = find((func), &(f));                                                             \
		if (r_)                                                                                      \
			return r_;                                                                           \
	} while (0)

/* ---- launches ---- */

static cudaError_t launched(CUresult r, CUfunction f, dim3 grid, dim3 block)
{
	const char *name;

	/* The runtime's own words for a function it does not know and for sizes that cannot be. */
	if (r == CUDA_ERROR_INVALID_HANDLE && drv.cuFuncGetName(&name, f))
		return cudaErrorInvalidDeviceFunction;
	if (r == CUDA_ERROR_INVALID_VALUE && (!grid.x || !grid.y || !grid.z || !block.x || !block.y ||
					      !block.z || (u64)block.x * block.y * block.z > 1024))
		return cudaErrorInvalidConfiguration;
	return (cudaError_t)r;
}

static cudaError_t do_cudaLaunchKernel(const void *func, dim3 grid, dim3 block, void **args, size_t shared,
				       cudaStream_t stream)
{
	CUfunction f;

	FIND(f, func);
	return launched(drv.cuLaunchKernel(f, grid.x, grid.y, grid.z, block.x, block.y, block.z,
					   (unsigned int)shared, stream, args, NULL),
			f, grid, block);
}

static cudaError_t do_cudaLaunchKernel_ptsz(const void *func, dim3 grid, dim3 block, void **args,
					    size_t shared, cudaStream_t stream)
{
	CUfunction f;

	FIND(f, func);
	return launched(drv.cuLaunchKernel_ptsz(f, grid.x, grid.y, grid.z, block.x, block.y, block.z,
						(unsigned int)shared, stream, args, NULL),
			f, grid, block);
}

static cudaError_t do_cudaLaunchCooperativeKernel(const void *func, dim3 grid, dim3 block, void **args,
						  size_t shared, cudaStream_t stream)
{
	CUfunction f;

	FIND(f, func);
	return launched(drv.cuLaunchCooperativeKernel(f, grid.x, grid.y, grid.z, block.x, block.y, block.z,
						      (unsigned int)shared, stream, args),
			f, grid, block);
}

static CUlaunchConfig plain_config(const cudaLaunchConfig_t *c)
{
	return (CUlaunchConfig){.gridDimX = c->gridDim.x,
				.gridDimY = c->gridDim.y,
				.gridDimZ = c->gridDim.z,
				.blockDimX = c->blockDim.x,
				.blockDimY = c->blockDim.y,
				.blockDimZ = c->blockDim.z,
				.sharedMemBytes = (unsigned int)c->dynamicSmemBytes,
				.hStream = c->stream,
				.attrs = (CUlaunchAttribute *)c->attrs,
				.numAttrs = c->numAttrs};
}

static cudaError_t do_cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *func, void **args)
{
	CUlaunchConfig c;
	CUfunction f;

	if (!config)
		return cudaErrorInvalidValue;
	FIND(f, func);
	c = plain_config(config);
	return launched(drv.cuLaunchKernelEx(&c, f, args, NULL), f, config->gridDim, config->blockDim);
}

static cudaError_t do___cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **args,
					 size_t shared, cudaStream_t stream)
{
	return do_cudaLaunchKernel((const void *)kernel, grid, block, args, shared, stream);
}

static cudaError_t do___cudaGetKernel(cudaKernel_t *kernel, const void *func)
{
	CUfunction f;

	if (!kernel)
		return cudaErrorInvalidValue;
	FIND(f, func);
	*kernel = (cudaKernel_t)f;
	return cudaSuccess;
}

static cudaError_t do_cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t fn, void *arg)
{
	READY();
	DRIVER(cuLaunchHostFunc(stream, fn, arg));
}

/* <<<...>>> in code of older compilers: the configuration travels by a small stack per thread. */
static __thread struct {
	dim3 grid, block;
	size_t shared;
	void *stream;
} configs[8];
static __thread u32 n_configs;

static unsigned int do___cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared,
						   struct CUstream_st *stream)
{
	if (n_configs == sizeof(configs) / sizeof(*configs))
		return 1;
	configs[n_configs].grid = grid;
	configs[n_configs].block = block;
	configs[n_configs].shared = shared;
	configs[n_configs++].stream = stream;
	return 0;
}

static cudaError_t do___cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream)
{
	if (!n_configs)
		return cudaErrorMissingConfiguration;
	n_configs--;
	*grid = configs[n_configs].grid;
	*block = configs[n_configs].block;
	*shared = configs[n_configs].shared;
	*(void **)stream = configs[n_configs].stream;
	return cudaSuccess;
}

static cudaError_t do_cudaFuncSetAttribute(const void *func, enum cudaFuncAttribute attribute, int value)
{
	CUfunction f;

	FIND(f, func);
	DRIVER(cuFuncSetAttribute(f, (CUfunction_attribute)attribute, value));
}

static cudaError_t do_cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *func,
								    int block_size, size_t shared)
{
	CUfunction f;

	FIND(f, func);
	DRIVER(cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, f, block_size, shared));
}

static cudaError_t do_cudaFuncGetAttributes(struct cudaFuncAttributes *a, const void *func)
{
#define MEMBER(name) offsetof(struct cudaFuncAttributes, name)
	static const struct {
		int attribute;
		size_t at;
	} ints[] = {{CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, MEMBER(maxThreadsPerBlock)},
		    {CU_FUNC_ATTRIBUTE_NUM_REGS, MEMBER(numRegs)},
		    {CU_FUNC_ATTRIBUTE_PTX_VERSION, MEMBER(ptxVersion)},
		    {CU_FUNC_ATTRIBUTE_BINARY_VERSION, MEMBER(binaryVersion)},
		    {CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, MEMBER(maxDynamicSharedSizeBytes)}};
	CUresult r = CUDA_SUCCESS;
	CUfunction f;
	int shared = 0;

	if (!a)
		return cudaErrorInvalidValue;
	FIND(f, func);
	memset(a, 0, sizeof(*a));
	for (size_t i = 0; i < sizeof(ints) / sizeof(*ints) && !r; i++)
		r = drv.cuFuncGetAttribute((int *)((char *)a + ints[i].at),
					   (CUfunction_attribute)ints[i].attribute, f);
	if (!r)
		r = drv.cuFuncGetAttribute(&shared, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, f);
	a->sharedSizeBytes = (size_t)shared;
	return r == CUDA_ERROR_INVALID_HANDLE ? cudaErrorInvalidDeviceFunction : (cudaError_t)r;
}

static cudaError_t do_cudaFuncSetCacheConfig(const void *func, enum cudaFuncCache config)
{
	CUfunction f;

	FIND(f, func);
	DRIVER(cuFuncSetCacheConfig(f, (CUfunc_cache)config));
}

static cudaError_t do_cudaFuncGetName(const char **name, const void *func)
{
	CUfunction f;

	FIND(f, func);
	DRIVER(cuFuncGetName(name, f));
}

static cudaError_t do_cudaGetFuncBySymbol(cudaFunction_t *function, const void *func)
{
	if (!function)
		return cudaErrorInvalidValue;
	FIND(*function, func);
	return cudaSuccess;
}

static cudaError_t do_cudaGetKernel(cudaKernel_t *kernel, const void *func)
{
	return do___cudaGetKernel(kernel, func);
}

static cudaError_t do_cudaOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, const void *func, int blocks,
								int block_size)
{
	CUfunction f;

	FIND(f, func);
	DRIVER(cuOccupancyAvailableDynamicSMemPerBlock(bytes, f, blocks, block_size));
}

static cudaError_t do_cudaOccupancyMaxPotentialClusterSize(int *size, const void *func,
							   const cudaLaunchConfig_t *config)
{
	CUlaunchConfig c;
	CUfunction f;

	if (!config)
		return cudaErrorInvalidValue;
	FIND(f, func);
	c = plain_config(config);
	DRIVER(cuOccupancyMaxPotentialClusterSize(size, f, &c));
}

static cudaError_t do_cudaOccupancyMaxActiveClusters(int *n, const void *func,
						     const cudaLaunchConfig_t *config)
{
	CUlaunchConfig c;
	CUfunction f;

	if (!config)
		return cudaErrorInvalidValue;
	FIND(f, func);
	c = plain_config(config);
	DRIVER(cuOccupancyMaxActiveClusters(n, f, &c));
}

static cudaError_t do_cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *func,
									     int block_size, size_t shared,
									     unsigned int flags)
{
	return do_cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, func, block_size, shared);
}

#include "cudart_calls.h"
#include "cudart_device.h"
#include "cudart_copy.h"
#include "cudart_graph.h"

#define F(name, params, args, stream, bytes)
#define P(name, params, args, stream, bytes, call)                                                           \
	static cudaError_t do_##name params                                                                  \
	{                                                                                                    \
		READY();                                                                                     \
		DRIVER(call);                                                                                \
	}
#define G(type, name, params, args)
#define Q G
#include "cudart.def"
#undef F
#undef P
#undef G
#undef Q

/* ---- what the linker sees ---- */

#define HB_ID_P_(name, params, args, stream, bytes, call)   ID_##name,
#define HB_NAME_P_(name, params, args, stream, bytes, call) #name,
enum {
#define F			    HB_ID_
#define P			    HB_ID_P_
#define G(type, name, params, args) ID_##name,
#define Q(type, name, params, args)
#include "cudart.def"
#undef F
#undef P
#undef G
	N_FUNCTIONS
};

static u32 hb_front_register(const struct hb_sim_core *c)
{
	static const char *const names[] = {
#define F			    HB_NAME_
#define P			    HB_NAME_P_
#define G(type, name, params, args) #name,
#include "cudart.def"
#undef F
#undef P
#undef G
#undef Q
	};

	return c->register_names(HB_RUNTIME, names, N_FUNCTIONS);
}

static void remember(cudaError_t r)
{
	if (r && r != cudaErrorNotReady)
		self.last = r;
}

#define IS_ERROR_QUERY(id) ((int)(id) == ID_cudaGetLastError || (int)(id) == ID_cudaPeekAtLastError)
#define F(name, params, args, stream_, bytes)                                                                \
	HB_EXPORT cudaError_t name params;                                                                   \
	cudaError_t name params                                                                              \
	{                                                                                                    \
		struct hb_call hb_c;                                                                         \
		cudaError_t hb_r;                                                                            \
		hb_front_enter(&hb_c, ID_##name);                                                            \
		hb_r = do_##name args;                                                                       \
		if (!IS_ERROR_QUERY(ID_##name))                                                              \
			remember(hb_r);                                                                      \
		hb_front_leave(&hb_c, (s32)hb_r, HB_H(stream_), bytes);                                      \
		return hb_r;                                                                                 \
	}
#define P(name, params, args, stream_, bytes, call) F(name, params, args, stream_, bytes)
/* Their results are no codes and are not logged. */
#define G(type, name, params, args)                                                                          \
	static void leave_##name(struct hb_call *c)                                                          \
	{                                                                                                    \
		hb_front_leave(c, 0, 0, 0);                                                                  \
	}                                                                                                    \
	HB_EXPORT type name params;                                                                          \
	type name params                                                                                     \
	{                                                                                                    \
		__attribute__((cleanup(leave_##name))) struct hb_call hb_c;                                  \
		hb_front_enter(&hb_c, ID_##name);                                                            \
		return do_##name args;                                                                       \
	}
/* Some of them are empty: like the real ones they have a frame all the same. */
#ifdef __x86_64__
#define NEEDS_FRAME() __asm__ volatile("" ::: "rbx")
#else
#define NEEDS_FRAME()
#endif
#define Q(type, name, params, args)                                                                          \
	HB_EXPORT type name params;                                                                          \
	type name params                                                                                     \
	{                                                                                                    \
		NEEDS_FRAME();                                                                               \
		return do_##name args;                                                                       \
	}
#include "cudart.def"
