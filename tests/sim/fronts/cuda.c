/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* libcuda.so.1: the driver API over the core. Rows of cuda.def become exported functions at the end of this
 * file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../core/fault.h"
#include "front.h"

#define F(name, params, args, stream, bytes) static CUresult do_##name params;
#include "cuda.def"
#undef F

HB_SIM_MARK

static CUresult known(const void *p)
{
	CUresult r = hb_device__ready();

	return r ? r : p ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* The object behind a handle, or return the code for what is wrong. */
#define OBJECT(var, handle, kind)                                                                            \
	do {                                                                                                 \
		CUresult r_ = hb_device__ready();                                                            \
		if (r_)                                                                                      \
			return r_;                                                                           \
		(var) = hb_handle__get((handle), (kind));                                                    \
		if (!(var))                                                                                  \
			return CUDA_ERROR_INVALID_HANDLE;                                                    \
	} while (0)
#define STREAM(var, handle) STREAM_OF(var, handle, false)
#define STREAM_OF(var, handle, per_thread)                                                                   \
	do {                                                                                                 \
		CUresult r_ = hb_stream__resolve((handle), (per_thread), &(var));                            \
		if (r_)                                                                                      \
			return r_;                                                                           \
	} while (0)
#define NEEDED(p)                                                                                            \
	do {                                                                                                 \
		CUresult r_ = known(p);                                                                      \
		if (r_)                                                                                      \
			return r_;                                                                           \
	} while (0)

/* ---- init, errors, devices ---- */

static CUresult do_cuInit(unsigned int flags)
{
	return flags ? CUDA_ERROR_INVALID_VALUE : hb_device__init();
}

static CUresult do_cuDriverGetVersion(int *version)
{
	if (!version)
		return CUDA_ERROR_INVALID_VALUE;
	*version = HB_ABI_CUDA_VERSION;
	return CUDA_SUCCESS;
}

#define NAMED_ERROR(name, value) {value, #name},
static const struct {
	int code;
	const char *name;
} errors[] = {HB_ABI_CU_CONSTANTS(NAMED_ERROR)};

static CUresult do_cuGetErrorName(CUresult error, const char **name)
{
	if (!name)
		return CUDA_ERROR_INVALID_VALUE;
	*name = NULL;
	for (size_t i = 0; i < sizeof(errors) / sizeof(*errors) && !strncmp(errors[i].name, "CUDA_", 5); i++)
		if (errors[i].code == (int)error)
			*name = errors[i].name;
	return *name ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult do_cuGetErrorString(CUresult error, const char **text)
{
	return do_cuGetErrorName(error, text);
}

static CUresult do_cuGetExportTable(const void **table, const CUuuid *id)
{
	return CUDA_ERROR_NOT_FOUND; /* private tables are not ours to imitate */
}

static CUresult do_cuDeviceGet(CUdevice *device, int ordinal)
{
	NEEDED(device);
	if (!hb_device__valid(ordinal))
		return CUDA_ERROR_INVALID_DEVICE;
	*device = ordinal;
	return CUDA_SUCCESS;
}

static CUresult do_cuDeviceGetCount(int *count)
{
	NEEDED(count);
	*count = hb_device__count();
	return CUDA_SUCCESS;
}

static CUresult do_cuDeviceGetName(char *name, int len, CUdevice device)
{
	NEEDED(name);
	if (!hb_device__valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	if (len <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	snprintf(name, (size_t)len, "Simulated H100 80GB");
	return CUDA_SUCCESS;
}

static CUresult do_cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device)
{
	NEEDED(uuid);
	if (!hb_device__valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	memset(uuid, 0, sizeof(*uuid));
	memcpy(uuid->bytes, "hb-sim", 6);
	uuid->bytes[15] = (char)device;
	return CUDA_SUCCESS;
}

static CUresult do_cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
	NEEDED(bytes);
	if (!hb_device__valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	*bytes = hb_costs.memory;
	return CUDA_SUCCESS;
}

static CUresult do_cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
	NEEDED(value);
	return hb_device__attribute(device, (int)attribute, value);
}

static CUresult do_cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer)
{
	NEEDED(can);
	if (!hb_device__valid(device) || !hb_device__valid(peer))
		return CUDA_ERROR_INVALID_DEVICE;
	*can = 0;
	return CUDA_SUCCESS;
}

/* ---- contexts ---- */

static CUresult do_cuDevicePrimaryCtxRetain(CUcontext *ctx, CUdevice device)
{
	NEEDED(ctx);
	return hb_ctx__retain(device, (struct hb_ctx **)ctx);
}

static CUresult do_cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
	CUresult r = hb_device__ready();

	return r ? r : hb_ctx__release(device);
}

static CUresult do_cuDevicePrimaryCtxReset_v2(CUdevice device)
{
	CUresult r = hb_device__ready();

	return r ? r : hb_ctx__reset(device);
}

static CUresult do_cuDevicePrimaryCtxGetState(CUdevice device, unsigned int *flags, int *active)
{
	struct hb_ctx *c;

	NEEDED(flags && active ? flags : NULL);
	if (!hb_device__valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	c = hb_ctx__primary(device);
	*flags = c ? c->flags : 0;
	*active = c && c->active;
	return CUDA_SUCCESS;
}

static CUresult do_cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned int flags)
{
	struct hb_ctx *c;
	CUresult r = hb_device__ready();

	if (r)
		return r;
	r = hb_ctx__retain(device, &c);
	if (r)
		return r;
	c->flags = flags;
	c->refs--; /* set before first use: the setting stays, the reference does not */
	c->active = c->refs > 0;
	return CUDA_SUCCESS;
}

static CUresult do_cuCtxCreate_v2(CUcontext *ctx, unsigned int flags, CUdevice device)
{
	NEEDED(ctx);
	return hb_ctx__create(device, flags, (struct hb_ctx **)ctx);
}

static CUresult do_cuCtxDestroy_v2(CUcontext ctx)
{
	struct hb_ctx *c;

	OBJECT(c, ctx, HB_CTX);
	return hb_ctx__destroy(c);
}

static CUresult do_cuCtxGetCurrent(CUcontext *ctx)
{
	NEEDED(ctx);
	*ctx = (CUcontext)hb_ctx__current();
	return CUDA_SUCCESS;
}

static CUresult do_cuCtxSetCurrent(CUcontext ctx)
{
	struct hb_ctx *c = NULL;

	if (ctx)
		OBJECT(c, ctx, HB_CTX);
	return hb_ctx__set(c);
}

static CUresult do_cuCtxPushCurrent_v2(CUcontext ctx)
{
	struct hb_ctx *c;

	OBJECT(c, ctx, HB_CTX);
	return hb_ctx__push(c);
}

static CUresult do_cuCtxPopCurrent_v2(CUcontext *ctx)
{
	CUresult r = hb_device__ready();

	return r ? r : hb_ctx__pop((struct hb_ctx **)ctx);
}

static CUresult do_cuCtxGetDevice(CUdevice *device)
{
	struct hb_ctx *c;
	CUresult r = hb_ctx__need(&c);

	if (r)
		return r;
	if (!device)
		return CUDA_ERROR_INVALID_VALUE;
	*device = c->device;
	return CUDA_SUCCESS;
}

static CUresult do_cuCtxSynchronize(void)
{
	struct hb_ctx *c;
	CUresult r = hb_ctx__need(&c);

	return r ? r : hb_ctx__sync(c);
}

static CUresult do_cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
	struct hb_ctx *c;
	CUresult r = hb_ctx__need(&c);

	if (r)
		return r;
	if (least)
		*least = 0;
	if (greatest)
		*greatest = -5;
	return CUDA_SUCCESS;
}

/* ---- modules and functions ---- */

static CUresult do_cuModuleLoadData(CUmodule *module, const void *image)
{
	NEEDED(module);
	return image ? hb_module__load((struct hb_module **)module) : CUDA_ERROR_INVALID_IMAGE;
}

static CUresult do_cuModuleUnload(CUmodule module)
{
	struct hb_module *m;

	OBJECT(m, module, HB_MODULE);
	hb_handle__free(m);
	return CUDA_SUCCESS;
}

static CUresult do_cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
	struct hb_module *m;

	NEEDED(function);
	OBJECT(m, module, HB_MODULE);
	return hb_module__function(m, name, (struct hb_function **)function);
}

static CUresult do_cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *options,
				     void **values, unsigned int n, CUlibraryOption *lib_options,
				     void **lib_values, unsigned int lib_n)
{
	return do_cuModuleLoadData((CUmodule *)library, code);
}

static CUresult do_cuLibraryUnload(CUlibrary library)
{
	return do_cuModuleUnload((CUmodule)library);
}

static CUresult do_cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name)
{
	return do_cuModuleGetFunction((CUfunction *)kernel, (CUmodule)library, name);
}

static CUresult do_cuKernelGetFunction(CUfunction *function, CUkernel kernel)
{
	struct hb_function *f;

	NEEDED(function);
	OBJECT(f, kernel, HB_FUNCTION);
	*function = (CUfunction)f;
	return CUDA_SUCCESS;
}

static CUresult do_cuFuncGetName(const char **name, CUfunction function)
{
	struct hb_function *f;

	NEEDED(name);
	OBJECT(f, function, HB_FUNCTION);
	*name = f->name;
	return CUDA_SUCCESS;
}

static CUresult do_cuKernelGetName(const char **name, CUkernel kernel)
{
	return do_cuFuncGetName(name, (CUfunction)kernel);
}

static CUresult do_cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction function)
{
	struct hb_function *f;

	NEEDED(value);
	OBJECT(f, function, HB_FUNCTION);
	*value = attribute == 0 ? 1024 : attribute == 4 ? 32 : 0; /* threads a block; registers */
	return CUDA_SUCCESS;
}

static CUresult do_cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value)
{
	struct hb_function *f;

	OBJECT(f, function, HB_FUNCTION);
	return CUDA_SUCCESS;
}

static CUresult do_cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function,
							       int block_size, size_t shared)
{
	struct hb_function *f;

	NEEDED(blocks);
	OBJECT(f, function, HB_FUNCTION);
	if (block_size <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	*blocks = 2048 / (block_size > 2048 ? 2048 : block_size);
	return CUDA_SUCCESS;
}

static CUresult do_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, CUfunction function,
									int block_size, size_t shared,
									unsigned int flags)
{
	return do_cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, block_size, shared);
}

/* ---- launches ---- */

struct launch {
	CUfunction f;
	unsigned int grid[3], block[3], shared;
	CUstream stream;
	void **params;
	bool per_thread;
};

static CUresult launch(const struct launch *l)
{
	u64 since = hb_now();
	struct hb_function *f;
	struct hb_stream *s;
	struct hb_work w = {.op = HB_OP_KERNEL};
	struct hb_coll *c;
	struct hb_hint hint;
	CUresult r;

	STREAM_OF(s, l->stream, l->per_thread);
	OBJECT(f, l->f, HB_FUNCTION);
	if (!l->grid[0] || !l->grid[1] || !l->grid[2] || !l->block[0] || !l->block[1] || !l->block[2] ||
	    (u64)l->block[0] * l->block[1] * l->block[2] > 1024)
		return CUDA_ERROR_INVALID_VALUE;
	w.function = f;
	memcpy(w.grid, l->grid, sizeof(w.grid));
	memcpy(w.block, l->block, sizeof(w.block));
	w.shared = l->shared;
	hint = hb_hint__take();
	w.flops = hint.flops;
	w.bytes = hint.bytes;
	c = f->collective && l->params ? l->params[0] : NULL;
	if (c && c->magic == HB_COLL_MAGIC) {
		w.op = HB_OP_COLL;
		w.coll = c;
	}
	r = hb_stream__enqueue(s, &w);
	hb_costs__spin(since, hb_costs.launch_ns);
	return r;
}

static CUresult do_cuLaunchKernel(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz,
				  unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared,
				  CUstream stream, void **params, void **extra)
{
	return launch(&(struct launch){f, {gx, gy, gz}, {bx, by, bz}, shared, stream, params, false});
}

static CUresult do_cuLaunchKernel_ptsz(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz,
				       unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared,
				       CUstream stream, void **params, void **extra)
{
	return launch(&(struct launch){f, {gx, gy, gz}, {bx, by, bz}, shared, stream, params, true});
}

static CUresult launch_ex(const CUlaunchConfig *c, CUfunction f, void **params, bool per_thread)
{
	NEEDED(c);
	return launch(&(struct launch){f,
				       {c->gridDimX, c->gridDimY, c->gridDimZ},
				       {c->blockDimX, c->blockDimY, c->blockDimZ},
				       c->sharedMemBytes,
				       c->hStream,
				       params,
				       per_thread});
}

static CUresult do_cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f, void **params, void **extra)
{
	return launch_ex(config, f, params, false);
}

static CUresult do_cuLaunchKernelEx_ptsz(const CUlaunchConfig *config, CUfunction f, void **params,
					 void **extra)
{
	return launch_ex(config, f, params, true);
}

static CUresult do_cuLaunchCooperativeKernel(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz,
					     unsigned int bx, unsigned int by, unsigned int bz,
					     unsigned int shared, CUstream stream, void **params)
{
	return launch(&(struct launch){f, {gx, gy, gz}, {bx, by, bz}, shared, stream, params, false});
}

static CUresult do_cuLaunchHostFunc(CUstream stream, CUhostFn fn, void *arg)
{
	struct hb_work w = {.op = HB_OP_HOST, .fn = fn, .arg = arg, .cost = 1000};
	struct hb_stream *s;

	NEEDED((void *)(uintptr_t)fn);
	STREAM(s, stream);
	return hb_stream__enqueue(s, &w);
}

#include "cuda_memory.h"
#include "cuda_stream.h"
#include "cuda_export.h"
