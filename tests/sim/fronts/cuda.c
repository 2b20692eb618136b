/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* libcuda.so.1: the driver API over the core. Rows of cuda.def become exported functions at the end of this
 * file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../core/fault.h"
#include "entry.h"
#include "../core/coll.h"
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

static CUresult do_cuDeviceGetUuid(CUuuid *uuid, CUdevice device)
{
	return do_cuDeviceGetUuid_v2(uuid, device);
}

static CUresult bus_id(char out[16], CUdevice device)
{
	int bus = 0;
	CUresult r = hb_device__attribute(device, HB_ATTRIBUTE_PCI_BUS_ID, &bus);

	if (!r)
		snprintf(out, 16, "0000:%02X:00.0", (unsigned int)bus & 0xff);
	return r;
}

static CUresult do_cuDeviceGetPCIBusId(char *id, int len, CUdevice device)
{
	char mine[16];
	CUresult r;

	NEEDED(id);
	r = bus_id(mine, device);
	if (r)
		return r;
	if (len < (int)sizeof("0000:00:00.0"))
		return CUDA_ERROR_INVALID_VALUE;
	strcpy(id, mine);
	return CUDA_SUCCESS;
}

static CUresult do_cuDeviceGetByPCIBusId(CUdevice *device, const char *id)
{
	char mine[16];

	NEEDED(device && id ? id : NULL);
	for (int i = 0; i < hb_device__count(); i++)
		if (!bus_id(mine, i) && !strcasecmp(id, mine)) {
			*device = i;
			return CUDA_SUCCESS;
		}
	return CUDA_ERROR_INVALID_DEVICE;
}

static CUresult do_cuDeviceComputeCapability(int *major, int *minor, CUdevice device)
{
	NEEDED(major && minor ? major : NULL);
	*minor = 0;
	return hb_device__attribute(device, HB_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, major);
}

static CUresult do_cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute attribute, CUdevice from,
					   CUdevice to)
{
	NEEDED(value);
	if (!hb_device__valid(from) || !hb_device__valid(to) || from == to)
		return CUDA_ERROR_INVALID_DEVICE;
	*value = 0;
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

static CUresult do_cuCtxGetId(CUcontext ctx, unsigned long long *id)
{
	struct hb_ctx *c;
	CUresult r;

	NEEDED(id);
	if (ctx) {
		OBJECT(c, ctx, HB_CTX);
	} else {
		r = hb_ctx__need(&c);
		if (r)
			return r;
	}
	*id = (u64)c->obj.generation << 32 | hb_handle__index(c);
	return CUDA_SUCCESS;
}

static CUresult do_cuCtxGetFlags(unsigned int *flags)
{
	struct hb_ctx *c;
	CUresult r = hb_ctx__need(&c);

	if (r)
		return r;
	if (!flags)
		return CUDA_ERROR_INVALID_VALUE;
	*flags = c->flags;
	return CUDA_SUCCESS;
}

static CUresult do_cuCtxGetApiVersion(CUcontext ctx, unsigned int *version)
{
	struct hb_ctx *c;

	NEEDED(version);
	if (ctx)
		OBJECT(c, ctx, HB_CTX);
	*version = 3020;
	return CUDA_SUCCESS;
}

/* Limits are remembered: nothing here runs out of them. */
static size_t limits[CU_LIMIT_CIG_SHMEM_FALLBACK_ENABLED + 1] = {1024, 1 << 20, 8 << 20, 2, 2048, 64};

static CUresult do_cuCtxGetLimit(size_t *value, CUlimit limit)
{
	struct hb_ctx *c;
	CUresult r = hb_ctx__need(&c);

	if (r)
		return r;
	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	if ((unsigned int)limit > CU_LIMIT_CIG_SHMEM_FALLBACK_ENABLED)
		return CUDA_ERROR_UNSUPPORTED_LIMIT;
	*value = limits[limit];
	return CUDA_SUCCESS;
}

static CUresult do_cuCtxSetLimit(CUlimit limit, size_t value)
{
	struct hb_ctx *c;
	CUresult r = hb_ctx__need(&c);

	if (r)
		return r;
	if ((unsigned int)limit > CU_LIMIT_CIG_SHMEM_FALLBACK_ENABLED)
		return CUDA_ERROR_UNSUPPORTED_LIMIT;
	limits[limit] = value;
	return CUDA_SUCCESS;
}

static CUresult do_cuCtxGetCacheConfig(CUfunc_cache *config)
{
	NEEDED(config);
	*config = 0;
	return CUDA_SUCCESS;
}

static CUresult do_cuCtxSetCacheConfig(CUfunc_cache config)
{
	return hb_device__ready();
}

static CUresult do_cuCtxResetPersistingL2Cache(void)
{
	return hb_device__ready();
}

static CUresult do_cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags)
{
	struct hb_ctx *c;

	OBJECT(c, peer, HB_CTX);
	return flags ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
}

static CUresult do_cuCtxDisablePeerAccess(CUcontext peer)
{
	struct hb_ctx *c;

	OBJECT(c, peer, HB_CTX);
	return CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
}

static CUresult do_cuProfilerStart(void)
{
	return hb_device__ready();
}

static CUresult do_cuProfilerStop(void)
{
	return hb_device__ready();
}

#include "cuda_module.h"
#include "cuda_memory.h"
#include "cuda_copy.h"
#include "cuda_virtual.h"
#include "cuda_stream.h"
#include "cuda_graph.h"
#include "cuda_export.h"
