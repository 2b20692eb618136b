/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Part of cuda.c: memory, copies and fills. */

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

static CUresult do_cuMemAllocAsync(CUdeviceptr *ptr, size_t bytes, CUstream stream)
{
	struct hb_stream *s;

	STREAM(s, stream);
	return allocate(HB_MEM_DEVICE, ptr, bytes);
}

static CUresult do_cuMemFreeAsync(CUdeviceptr ptr, CUstream stream)
{
	struct hb_stream *s;

	STREAM(s, stream);
	return release(HB_MEM_DEVICE, ptr);
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

static CUresult do_cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr ptr)
{
	struct hb_range r;

	NEEDED(data);
	if (!hb_memory__find(ptr, &r))
		return CUDA_ERROR_INVALID_VALUE;
	switch ((int)attribute) {
	case CU_POINTER_ATTRIBUTE_CONTEXT:
		*(CUcontext *)data = (CUcontext)hb_ctx__primary(r.device);
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
		*(unsigned int *)data = r.space == HB_MEM_PINNED ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
	case CU_POINTER_ATTRIBUTE_HOST_POINTER:
		*(u64 *)data = ptr;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
		*(unsigned int *)data = r.space == HB_MEM_MANAGED;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		*(int *)data = r.device;
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_NOT_SUPPORTED;
	}
}

/* ---- copies ---- */

enum want { ANY, MUST_BE_DEVICE };

struct copy {
	u64 dst, src, bytes;
	CUstream stream;
	bool per_thread, wait; /* a call without Async waits for the end */
	enum want dst_want, src_want;
};

static bool fits(u64 addr, u64 bytes, enum want want, enum hb_space *space)
{
	return hb_memory__inside(addr, bytes, space) && (want == ANY || *space != HB_MEM_PAGEABLE);
}

static void price(struct hb_work *w, enum hb_space dst, enum hb_space src)
{
	bool to_device = dst == HB_MEM_DEVICE || dst == HB_MEM_MANAGED;
	bool from_device = src == HB_MEM_DEVICE || src == HB_MEM_MANAGED;
	u64 bps = hb_costs.d2d_bps;

	if (to_device && !from_device) {
		w->engine = HB_ENGINE_H2D;
		bps = hb_costs.h2d_bps;
	} else if (from_device && !to_device) {
		w->engine = HB_ENGINE_D2H;
		bps = dst == HB_MEM_PAGEABLE ? hb_costs.pageable_bps : hb_costs.d2h_bps;
	}
	w->cost = hb_costs.copy_ns + hb_costs__transfer(w->bytes, bps);
}

/* Planted fault: pinned memory is as slow as any. */
static void unpin(enum hb_space *dst, enum hb_space *src)
{
	if ((*dst != HB_MEM_PINNED && *src != HB_MEM_PINNED) || !hb_fault__pageable())
		return;
	*dst = *dst == HB_MEM_PINNED ? HB_MEM_PAGEABLE : *dst;
	*src = *src == HB_MEM_PINNED ? HB_MEM_PAGEABLE : *src;
}

static CUresult copy(const struct copy *c)
{
	struct hb_work w = {.op = HB_OP_COPY, .dst = c->dst, .src = c->src, .bytes = c->bytes};
	enum hb_space dst, src;
	u64 since = hb_now();
	struct hb_stream *s;
	CUresult r;

	STREAM_OF(s, c->stream, c->per_thread);
	if (!c->bytes)
		return CUDA_SUCCESS;
	if (!fits(c->dst, c->bytes, c->dst_want, &dst) || !fits(c->src, c->bytes, c->src_want, &src))
		return CUDA_ERROR_INVALID_VALUE;
	if (hb_fault__on(HB_FAULT_PAGEABLE))
		unpin(&dst, &src);
	price(&w, dst, src);
	/* From pageable memory the driver first copies to a staging buffer of its own, in the caller's time.
	 */
	if (w.engine == HB_ENGINE_H2D && src == HB_MEM_PAGEABLE && !s->capture)
		hb_costs__spin(since, hb_costs__transfer(c->bytes, hb_costs.pageable_bps));
	r = hb_stream__enqueue(s, &w);
	/* To pageable memory nothing is asynchronous. */
	if (!r && (c->wait || (w.engine == HB_ENGINE_D2H && dst == HB_MEM_PAGEABLE)) && !s->capture)
		r = hb_stream__sync(s);
	return r;
}

static CUresult do_cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t bytes)
{
	return copy(&(struct copy){.dst = dst, .src = src, .bytes = bytes, .wait = true});
}

static CUresult do_cuMemcpyHtoD_v2(CUdeviceptr dst, const void *src, size_t bytes)
{
	return copy(&(struct copy){dst, HB_H(src), bytes, NULL, false, true, MUST_BE_DEVICE, ANY});
}

static CUresult do_cuMemcpyDtoH_v2(void *dst, CUdeviceptr src, size_t bytes)
{
	return copy(&(struct copy){HB_H(dst), src, bytes, NULL, false, true, ANY, MUST_BE_DEVICE});
}

static CUresult do_cuMemcpyDtoD_v2(CUdeviceptr dst, CUdeviceptr src, size_t bytes)
{
	return copy(&(struct copy){dst, src, bytes, NULL, false, false, MUST_BE_DEVICE, MUST_BE_DEVICE});
}

static CUresult do_cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream)
{
	return copy(&(struct copy){.dst = dst, .src = src, .bytes = bytes, .stream = stream});
}

static CUresult do_cuMemcpyAsync_ptsz(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream)
{
	return copy(
	    &(struct copy){.dst = dst, .src = src, .bytes = bytes, .stream = stream, .per_thread = true});
}

static CUresult do_cuMemcpyHtoDAsync_v2(CUdeviceptr dst, const void *src, size_t bytes, CUstream stream)
{
	return copy(&(struct copy){dst, HB_H(src), bytes, stream, false, false, MUST_BE_DEVICE, ANY});
}

static CUresult do_cuMemcpyHtoDAsync_v2_ptsz(CUdeviceptr dst, const void *src, size_t bytes, CUstream stream)
{
	return copy(&(struct copy){dst, HB_H(src), bytes, stream, true, false, MUST_BE_DEVICE, ANY});
}

static CUresult do_cuMemcpyDtoHAsync_v2(void *dst, CUdeviceptr src, size_t bytes, CUstream stream)
{
	return copy(&(struct copy){HB_H(dst), src, bytes, stream, false, false, ANY, MUST_BE_DEVICE});
}

static CUresult do_cuMemcpyDtoHAsync_v2_ptsz(void *dst, CUdeviceptr src, size_t bytes, CUstream stream)
{
	return copy(&(struct copy){HB_H(dst), src, bytes, stream, true, false, ANY, MUST_BE_DEVICE});
}

static CUresult do_cuMemcpyDtoDAsync_v2(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream)
{
	return copy(&(struct copy){dst, src, bytes, stream, false, false, MUST_BE_DEVICE, MUST_BE_DEVICE});
}

/* ---- fills ---- */

static CUresult fill(u64 dst, u32 value, u32 width, u64 n, CUstream stream)
{
	struct hb_work w = {.op = HB_OP_FILL, .dst = dst, .src = value, .bytes = n, .width = width};
	enum hb_space space;
	struct hb_stream *s;

	STREAM(s, stream);
	if (!n)
		return CUDA_SUCCESS;
	if (n > 1ull << 46 || !fits(dst, n * width, MUST_BE_DEVICE, &space))
		return CUDA_ERROR_INVALID_VALUE;
	w.cost = hb_costs.copy_ns + hb_costs__transfer(n * width, hb_costs.d2d_bps);
	return hb_stream__enqueue(s, &w);
}

static CUresult do_cuMemsetD8_v2(CUdeviceptr dst, unsigned char value, size_t n)
{
	return fill(dst, value, 1, n, NULL);
}

static CUresult do_cuMemsetD32_v2(CUdeviceptr dst, unsigned int value, size_t n)
{
	return fill(dst, value, 4, n, NULL);
}

static CUresult do_cuMemsetD8Async(CUdeviceptr dst, unsigned char value, size_t n, CUstream stream)
{
	return fill(dst, value, 1, n, stream);
}

static CUresult do_cuMemsetD32Async(CUdeviceptr dst, unsigned int value, size_t n, CUstream stream)
{
	return fill(dst, value, 4, n, stream);
}
