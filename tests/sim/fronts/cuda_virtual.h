/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Part of cuda.c: virtual memory management, pools, handles for other processes (refused). */

static CUresult do_cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *prop,
						 CUmemAllocationGranularity_flags option)
{
	NEEDED(granularity && prop ? granularity : NULL);
	*granularity = HB_GRANULARITY;
	return CUDA_SUCCESS;
}

static CUresult do_cuMemAddressReserve(CUdeviceptr *ptr, size_t size, size_t alignment, CUdeviceptr wish,
				       unsigned long long flags)
{
	u64 addr = 0;
	CUresult r;

	NEEDED(ptr);
	r = flags ? CUDA_ERROR_INVALID_VALUE : hb_virtual__reserve(size, alignment, wish, &addr);
	if (!r)
		*ptr = addr;
	return r;
}

static CUresult do_cuMemAddressFree(CUdeviceptr ptr, size_t size)
{
	CUresult r = hb_device__ready();

	return r ? r : hb_virtual__free(ptr, size);
}

static CUresult do_cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
			       const CUmemAllocationProp *prop, unsigned long long flags)
{
	struct hb_physical *p;
	CUresult r;

	NEEDED(handle && prop ? prop : NULL);
	if (flags || (int)prop->type != 1 || (int)prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
		return CUDA_ERROR_INVALID_VALUE;
	if (!hb_device__valid(prop->location.id))
		return CUDA_ERROR_INVALID_DEVICE;
	if ((int)prop->requestedHandleTypes & ~1)
		return CUDA_ERROR_NOT_SUPPORTED; /* file descriptors may be asked for, but are not given */
	r = hb_virtual__create(size, prop->location.id, &p);
	if (!r)
		*handle = HB_H(p);
	return r;
}

#define PHYSICAL(p, handle) OBJECT(p, (void *)(uintptr_t)(handle), HB_PHYSICAL)

static CUresult do_cuMemRelease(CUmemGenericAllocationHandle handle)
{
	struct hb_physical *p;

	PHYSICAL(p, handle);
	return hb_virtual__release(p);
}

static CUresult do_cuMemMap(CUdeviceptr ptr, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
			    unsigned long long flags)
{
	struct hb_physical *p;

	PHYSICAL(p, handle);
	return flags ? CUDA_ERROR_INVALID_VALUE : hb_virtual__map(ptr, size, offset, p);
}

static CUresult do_cuMemUnmap(CUdeviceptr ptr, size_t size)
{
	CUresult r = hb_device__ready();

	return r ? r : hb_virtual__unmap(ptr, size);
}

static CUresult do_cuMemSetAccess(CUdeviceptr ptr, size_t size, const CUmemAccessDesc *desc, size_t n)
{
	bool write = false;

	NEEDED(desc);
	for (size_t i = 0; i < n; i++)
		write |= (int)desc[i].flags == 3;
	return hb_virtual__access(ptr, size, write);
}

static CUresult do_cuMemGetAccess(unsigned long long *flags, const CUmemLocation *where, CUdeviceptr ptr)
{
	struct hb_range r;

	NEEDED(flags && where ? flags : NULL);
	if (!hb_memory__find(ptr, &r))
		return CUDA_ERROR_INVALID_VALUE;
	*flags = r.device == where->id ? 3 : 0;
	return CUDA_SUCCESS;
}

static CUresult do_cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *prop,
							  CUmemGenericAllocationHandle handle)
{
	struct hb_physical *p;

	NEEDED(prop);
	PHYSICAL(p, handle);
	memset(prop, 0, sizeof(*prop));
	prop->type = 1;
	prop->location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	prop->location.id = p->device;
	return CUDA_SUCCESS;
}

static CUresult do_cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *ptr)
{
	struct hb_range r;

	NEEDED(handle);
	if (!hb_memory__find(HB_H(ptr), &r) || !r.physical)
		return CUDA_ERROR_INVALID_VALUE;
	__atomic_add_fetch(&r.physical->refs, 1, __ATOMIC_ACQ_REL);
	*handle = HB_H(r.physical);
	return CUDA_SUCCESS;
}

static CUresult do_cuMemExportToShareableHandle(void *out, CUmemGenericAllocationHandle handle,
						CUmemAllocationHandleType type, unsigned long long flags)
{
	struct hb_physical *p;

	PHYSICAL(p, handle);
	return CUDA_ERROR_NOT_SUPPORTED;
}

static CUresult do_cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *os_handle,
						  CUmemAllocationHandleType type)
{
	CUresult r = hb_device__ready();

	return r ? r : CUDA_ERROR_NOT_SUPPORTED;
}

/* ---- memory and events of other processes ---- */

static CUresult do_cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr ptr)
{
	struct hb_range r;

	NEEDED(handle);
	return hb_memory__find(ptr, &r) ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
}

static CUresult do_cuIpcOpenMemHandle_v2(CUdeviceptr *ptr, CUipcMemHandle handle, unsigned int flags)
{
	NEEDED(ptr);
	return CUDA_ERROR_NOT_SUPPORTED;
}

static CUresult do_cuIpcCloseMemHandle(CUdeviceptr ptr)
{
	CUresult r = hb_device__ready();

	return r ? r : CUDA_ERROR_INVALID_VALUE;
}

static CUresult do_cuIpcGetEventHandle(CUipcEventHandle *handle, CUevent event)
{
	struct hb_event *e;

	NEEDED(handle);
	OBJECT(e, event, HB_EVENT);
	return CUDA_ERROR_NOT_SUPPORTED;
}

static CUresult do_cuIpcOpenEventHandle(CUevent *event, CUipcEventHandle handle)
{
	NEEDED(event);
	return CUDA_ERROR_NOT_SUPPORTED;
}

/* ---- pools ---- */

static CUresult do_cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device)
{
	NEEDED(pool);
	return hb_pool__default(device, (struct hb_pool **)pool);
}

static CUresult do_cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice device)
{
	NEEDED(pool);
	return hb_pool__current(device, (struct hb_pool **)pool);
}

static CUresult do_cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool)
{
	struct hb_pool *p;

	OBJECT(p, pool, HB_POOL);
	return hb_pool__choose(device, p);
}

static CUresult do_cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *props)
{
	NEEDED(pool && props ? pool : NULL);
	if ((int)props->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
		return CUDA_ERROR_INVALID_VALUE;
	if (props->handleTypes)
		return CUDA_ERROR_NOT_SUPPORTED;
	return hb_pool__create(props->location.id, (struct hb_pool **)pool);
}

static CUresult do_cuMemPoolDestroy(CUmemoryPool pool)
{
	struct hb_pool *p;

	OBJECT(p, pool, HB_POOL);
	return hb_pool__destroy(p);
}

static CUresult do_cuMemPoolTrimTo(CUmemoryPool pool, size_t keep)
{
	struct hb_pool *p;

	OBJECT(p, pool, HB_POOL);
	return CUDA_SUCCESS; /* it keeps nothing that is free */
}

/* The first three are ints, the others 64 bits wide. */
static CUresult pool_attribute(CUmemoryPool pool, int attribute, void *value, struct hb_pool **p)
{
	NEEDED(value);
	OBJECT(*p, pool, HB_POOL);
	return attribute >= 1 && attribute <= CU_MEMPOOL_ATTR_USED_MEM_HIGH ? CUDA_SUCCESS
									    : CUDA_ERROR_INVALID_VALUE;
}

static CUresult do_cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
	struct hb_pool *p = NULL;
	CUresult r = pool_attribute(pool, (int)attribute, value, &p);

	if (!r)
		p->attributes[attribute] = (int)attribute < CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
					       ? (u64) * (unsigned int *)value
					       : *(u64 *)value;
	return r;
}

static CUresult do_cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
	struct hb_pool *p = NULL;
	CUresult r = pool_attribute(pool, (int)attribute, value, &p);

	if (r)
		return r;
	if ((int)attribute < CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
		*(unsigned int *)value = (unsigned int)p->attributes[attribute];
	else
		*(u64 *)value = p->attributes[attribute];
	return CUDA_SUCCESS;
}

static CUresult do_cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *map, size_t n)
{
	struct hb_pool *p;

	NEEDED(map);
	OBJECT(p, pool, HB_POOL);
	for (size_t i = 0; i < n; i++)
		if (map[i].location.id != p->device && map[i].flags)
			return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
	return CUDA_SUCCESS;
}

static CUresult do_cuMemPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool pool, CUmemLocation *where)
{
	struct hb_pool *p;

	NEEDED(flags && where ? flags : NULL);
	OBJECT(p, pool, HB_POOL);
	*flags = where->id == p->device ? 3 : 0;
	return CUDA_SUCCESS;
}

static CUresult do_cuMemPoolExportToShareableHandle(void *out, CUmemoryPool pool,
						    CUmemAllocationHandleType type, unsigned long long flags)
{
	struct hb_pool *p;

	OBJECT(p, pool, HB_POOL);
	return CUDA_ERROR_NOT_SUPPORTED;
}
