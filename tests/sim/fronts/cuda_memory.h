/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Part of cuda.c: allocations and what is known of an address. */

static CUresult do_cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
	struct hb_ctx *c;
	CUresult r = hb_ctx__need(&c);
	u64 f, t;

	if (r)
		return r;
	if (!free_bytes || !total)
		return CUDA_ERROR_INVALID_VALUE;
	hb_memory__info(&f, &t);
	*free_bytes = f;
	*total = t;
	return CUDA_SUCCESS;
}

static CUresult allocate(enum hb_space space, void *ptr, size_t bytes)
{
	struct hb_ctx *c;
	CUresult r = hb_ctx__need(&c);

	if (!r && space == HB_MEM_DEVICE)
		r = hb_capture__unsafe();
	return r ? r : hb_memory__alloc(space, bytes, ptr);
}

static CUresult release(enum hb_space space, u64 ptr)
{
	CUresult r = hb_device__ready();

	return r ? r : hb_memory__free(space, ptr);
}

static CUresult do_cuMemAlloc_v2(CUdeviceptr *ptr, size_t bytes)
{
	return allocate(HB_MEM_DEVICE, ptr, bytes);
}

static CUresult do_cuMemFree_v2(CUdeviceptr ptr)
{
	return release(HB_MEM_DEVICE, ptr);
}

/* In a capture the memory is there from then on, for all launches of the graph, and never given back. */
static CUresult alloc_async(u64 *ptr, size_t bytes, struct hb_pool *pool, struct hb_stream *s)
{
	CUresult r = CUDA_SUCCESS;

	if (!pool)
		r = hb_pool__current(s->ctx->device, &pool);
	return r ? r : hb_pool__alloc(pool, bytes, ptr);
}

static CUresult do_cuMemAllocAsync(CUdeviceptr *ptr, size_t bytes, CUstream stream)
{
	struct hb_stream *s;
	u64 addr = 0;
	CUresult r;

	NEEDED(ptr);
	STREAM(s, stream);
	r = alloc_async(&addr, bytes, NULL, s);
	if (!r)
		*ptr = addr;
	return r;
}

static CUresult do_cuMemAllocFromPoolAsync(CUdeviceptr *ptr, size_t bytes, CUmemoryPool pool, CUstream stream)
{
	struct hb_stream *s;
	struct hb_pool *p;
	u64 addr = 0;
	CUresult r;

	NEEDED(ptr);
	OBJECT(p, pool, HB_POOL);
	STREAM(s, stream);
	r = alloc_async(&addr, bytes, p, s);
	if (!r)
		*ptr = addr;
	return r;
}

static CUresult do_cuMemFreeAsync(CUdeviceptr ptr, CUstream stream)
{
	struct hb_range range;
	struct hb_stream *s;

	STREAM(s, stream);
	if (s->capture)
		return hb_memory__find(ptr, &range) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	return release(HB_MEM_DEVICE, ptr);
}

static CUresult do_cuMemAllocPitch_v2(CUdeviceptr *ptr, size_t *pitch, size_t width, size_t height,
				      unsigned int element)
{
	NEEDED(pitch);
	if (!width || !height || (element != 4 && element != 8 && element != 16))
		return CUDA_ERROR_INVALID_VALUE;
	*pitch = (width + 511) / 512 * 512;
	return allocate(HB_MEM_DEVICE, ptr, *pitch * height);
}

static CUresult do_cuMemAllocHost_v2(void **ptr, size_t bytes)
{
	return allocate(HB_MEM_PINNED, ptr, bytes);
}

static CUresult do_cuMemHostAlloc(void **ptr, size_t bytes, unsigned int flags)
{
	return allocate(HB_MEM_PINNED, ptr, bytes);
}

static CUresult do_cuMemFreeHost(void *ptr)
{
	return release(HB_MEM_PINNED, HB_H(ptr));
}

static CUresult do_cuMemHostRegister_v2(void *ptr, size_t bytes, unsigned int flags)
{
	CUresult r = hb_device__ready();

	return r ? r : hb_memory__register(HB_H(ptr), bytes);
}

static CUresult do_cuMemHostUnregister(void *ptr)
{
	CUresult r = hb_device__ready();

	return r ? r : hb_memory__unregister(HB_H(ptr));
}

static CUresult do_cuMemAllocManaged(CUdeviceptr *ptr, size_t bytes, unsigned int flags)
{
	return allocate(HB_MEM_MANAGED, ptr, bytes);
}

static CUresult do_cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr ptr)
{
	struct hb_range r;
	CUresult rc = hb_device__ready();

	if (rc)
		return rc;
	if (!hb_memory__find(ptr, &r))
		return CUDA_ERROR_NOT_FOUND;
	if (base)
		*base = r.start;
	if (size)
		*size = r.size;
	return CUDA_SUCCESS;
}

static CUresult do_cuMemHostGetDevicePointer_v2(CUdeviceptr *device, void *host, unsigned int flags)
{
	struct hb_range r;

	NEEDED(device);
	if (flags || !hb_memory__find(HB_H(host), &r) || r.space != HB_MEM_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	*device = HB_H(host);
	return CUDA_SUCCESS;
}

static CUresult do_cuMemHostGetFlags(unsigned int *flags, void *host)
{
	struct hb_range r;

	NEEDED(flags);
	if (!hb_memory__find(HB_H(host), &r) || r.space != HB_MEM_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	*flags = 2; /* mapped, as all of it is under unified addressing */
	return CUDA_SUCCESS;
}

/* ---- what is known of an address ---- */

static CUresult pointer_attribute(void *data, int attribute, CUdeviceptr ptr, const struct hb_range *r)
{
	switch (attribute) {
	case CU_POINTER_ATTRIBUTE_CONTEXT:
		*(CUcontext *)data = (CUcontext)hb_ctx__primary(r->device);
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
		*(unsigned int *)data = r->space == HB_MEM_PINNED ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_HOST_POINTER:
		if (r->space == HB_MEM_DEVICE)
			return CUDA_ERROR_INVALID_VALUE;
		/* fallthrough */
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
		*(u64 *)data = ptr;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_BUFFER_ID:
		*(u64 *)data = r->start >> 12; /* of two that live at once never the same */
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
		*(unsigned int *)data = r->space == HB_MEM_MANAGED;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		*(int *)data = r->device;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
		*(unsigned int *)data = 0;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
		*(u64 *)data = r->start;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
		*(size_t *)data = r->size;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MAPPED:
		*(unsigned int *)data = 1;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
	case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
		*(u64 *)data = 0;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
		*(unsigned int *)data = 3; /* read and write */
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_NOT_SUPPORTED;
	}
}

static CUresult do_cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr ptr)
{
	struct hb_range r;

	NEEDED(data);
	if (!hb_memory__find(ptr, &r))
		return CUDA_ERROR_INVALID_VALUE;
	return pointer_attribute(data, (int)attribute, ptr, &r);
}

/* Of memory that is not ours all of them are 0, and that is no error. */
static CUresult do_cuPointerGetAttributes(unsigned int n, CUpointer_attribute *attributes, void **data,
					  CUdeviceptr ptr)
{
	struct hb_range r;
	bool known_range;

	NEEDED(attributes && data ? data : NULL);
	known_range = hb_memory__find(ptr, &r);
	for (unsigned int i = 0; i < n; i++) {
		int a = (int)attributes[i];
		bool wide = a == CU_POINTER_ATTRIBUTE_CONTEXT || a == CU_POINTER_ATTRIBUTE_DEVICE_POINTER ||
			    a == CU_POINTER_ATTRIBUTE_HOST_POINTER ||
			    a == CU_POINTER_ATTRIBUTE_RANGE_START_ADDR ||
			    a == CU_POINTER_ATTRIBUTE_RANGE_SIZE || a == CU_POINTER_ATTRIBUTE_BUFFER_ID;

		if (known_range && !pointer_attribute(data[i], a, ptr, &r))
			continue;
		memset(data[i], 0, wide ? 8 : 4);
		if (a == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
			*(int *)data[i] = -2;
	}
	return CUDA_SUCCESS;
}

static CUresult do_cuPointerSetAttribute(const void *value, CUpointer_attribute attribute, CUdeviceptr ptr)
{
	struct hb_range r;

	NEEDED(value);
	return hb_memory__find(ptr, &r) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ---- advice on managed memory: it is where it is ---- */

static CUresult is_managed(CUdeviceptr ptr)
{
	struct hb_range r;
	CUresult rc = hb_device__ready();

	if (rc)
		return rc;
	return hb_memory__find(ptr, &r) && r.space == HB_MEM_MANAGED ? CUDA_SUCCESS
								     : CUDA_ERROR_INVALID_VALUE;
}

static CUresult do_cuMemAdvise(CUdeviceptr ptr, size_t bytes, CUmem_advise advice, CUdevice device)
{
	return is_managed(ptr);
}

static CUresult do_cuMemAdvise_v2(CUdeviceptr ptr, size_t bytes, CUmem_advise advice, CUmemLocation where)
{
	return is_managed(ptr);
}

static CUresult prefetch(CUdeviceptr ptr, size_t bytes, CUstream stream)
{
	struct hb_work w = {.op = HB_OP_NOTHING,
			    .cost = hb_costs.copy_ns + hb_costs__transfer(bytes, hb_costs.h2d_bps)};
	struct hb_stream *s;
	CUresult r = is_managed(ptr);

	if (r)
		return r;
	STREAM(s, stream);
	return hb_stream__enqueue(s, &w);
}

static CUresult do_cuMemPrefetchAsync(CUdeviceptr ptr, size_t bytes, CUdevice device, CUstream stream)
{
	return prefetch(ptr, bytes, stream);
}

static CUresult do_cuMemPrefetchAsync_v2(CUdeviceptr ptr, size_t bytes, CUmemLocation where,
					 unsigned int flags, CUstream stream)
{
	return prefetch(ptr, bytes, stream);
}
