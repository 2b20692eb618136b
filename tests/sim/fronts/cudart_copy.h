/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Part of cudart.c: copies of rows, between devices and with variables of the program. */

/* CU_MEMORYTYPE_* of both ends; of unified addresses (4) the driver finds out itself. */
static bool ends_of(enum cudaMemcpyKind kind, int *dst, int *src)
{
	static const char types[][2] = {[cudaMemcpyHostToHost] = {1, 1},
					[cudaMemcpyHostToDevice] = {2, 1},
					[cudaMemcpyDeviceToHost] = {1, 2},
					[cudaMemcpyDeviceToDevice] = {2, 2},
					[cudaMemcpyDefault] = {4, 4}};

	if ((unsigned int)kind > cudaMemcpyDefault)
		return false;
	*dst = types[kind][0];
	*src = types[kind][1];
	return true;
}

struct rows {
	void *dst;
	size_t dst_pitch;
	const void *src;
	size_t src_pitch, width, height;
};

static cudaError_t copy_rows(const struct rows *c, enum cudaMemcpyKind kind, bool async, cudaStream_t stream)
{
	CUDA_MEMCPY2D d = {.srcHost = c->src,
			   .srcDevice = HB_H(c->src),
			   .srcPitch = c->src_pitch,
			   .dstHost = c->dst,
			   .dstDevice = HB_H(c->dst),
			   .dstPitch = c->dst_pitch,
			   .WidthInBytes = c->width,
			   .Height = c->height};
	int dst, src;

	READY();
	if (!ends_of(kind, &dst, &src))
		return cudaErrorInvalidMemcpyDirection;
	if (c->dst_pitch < c->width || c->src_pitch < c->width)
		return cudaErrorInvalidPitchValue;
	d.dstMemoryType = (CUmemorytype)dst;
	d.srcMemoryType = (CUmemorytype)src;
	if (async)
		DRIVER(cuMemcpy2DAsync_v2(&d, stream));
	DRIVER(cuMemcpy2DUnaligned_v2(&d));
}

static cudaError_t do_cudaMemcpy2D(void *dst, size_t dst_pitch, const void *src, size_t src_pitch,
				   size_t width, size_t height, enum cudaMemcpyKind kind)
{
	return copy_rows(&(struct rows){dst, dst_pitch, src, src_pitch, width, height}, kind, false, NULL);
}

static cudaError_t do_cudaMemcpy2DAsync(void *dst, size_t dst_pitch, const void *src, size_t src_pitch,
					size_t width, size_t height, enum cudaMemcpyKind kind,
					cudaStream_t stream)
{
	return copy_rows(&(struct rows){dst, dst_pitch, src, src_pitch, width, height}, kind, true, stream);
}

static cudaError_t box_of(const struct cudaMemcpy3DParms *p, CUDA_MEMCPY3D *c)
{
	int dst, src;

	if (!p)
		return cudaErrorInvalidValue;
	if (p->srcArray || p->dstArray)
		return cudaErrorNotSupported;
	if (!ends_of(p->kind, &dst, &src))
		return cudaErrorInvalidMemcpyDirection;
	*c = (CUDA_MEMCPY3D){.srcXInBytes = p->srcPos.x,
			     .srcY = p->srcPos.y,
			     .srcZ = p->srcPos.z,
			     .srcMemoryType = (CUmemorytype)src,
			     .srcHost = p->srcPtr.ptr,
			     .srcDevice = HB_H(p->srcPtr.ptr),
			     .srcPitch = p->srcPtr.pitch,
			     .srcHeight = p->srcPtr.ysize,
			     .dstXInBytes = p->dstPos.x,
			     .dstY = p->dstPos.y,
			     .dstZ = p->dstPos.z,
			     .dstMemoryType = (CUmemorytype)dst,
			     .dstHost = p->dstPtr.ptr,
			     .dstDevice = HB_H(p->dstPtr.ptr),
			     .dstPitch = p->dstPtr.pitch,
			     .dstHeight = p->dstPtr.ysize,
			     .WidthInBytes = p->extent.width,
			     .Height = p->extent.height,
			     .Depth = p->extent.depth};
	return cudaSuccess;
}

static cudaError_t do_cudaMemcpy3D(const struct cudaMemcpy3DParms *p)
{
	CUDA_MEMCPY3D c;
	cudaError_t r;

	READY();
	r = box_of(p, &c);
	return r ? r : (cudaError_t)drv.cuMemcpy3D_v2(&c);
}

static cudaError_t do_cudaMemcpy3DAsync(const struct cudaMemcpy3DParms *p, cudaStream_t stream)
{
	CUDA_MEMCPY3D c;
	cudaError_t r;

	READY();
	r = box_of(p, &c);
	return r ? r : (cudaError_t)drv.cuMemcpy3DAsync_v2(&c, stream);
}

static cudaError_t do_cudaMalloc3D(struct cudaPitchedPtr *ptr, struct cudaExtent extent)
{
	CUdeviceptr p = 0;
	size_t pitch = 0;
	CUresult r;

	READY();
	if (!ptr)
		return cudaErrorInvalidValue;
	r = drv.cuMemAllocPitch_v2(&p, &pitch, extent.width, extent.height * extent.depth, 4);
	if (!r)
		*ptr = (struct cudaPitchedPtr){(void *)(uintptr_t)p, pitch, extent.width, extent.height};
	return (cudaError_t)r;
}

static cudaError_t contexts_of(int a, int b, CUcontext *ctx_a, CUcontext *ctx_b)
{
	CUresult r;

	READY();
	if (a < 0 || a >= MAX_DEVICES || b < 0 || b >= MAX_DEVICES)
		return cudaErrorInvalidDevice;
	r = retain(a, ctx_a);
	return r ? (cudaError_t)r : (cudaError_t)retain(b, ctx_b);
}

static cudaError_t do_cudaMemcpyPeer(void *dst, int dst_device, const void *src, int src_device, size_t bytes)
{
	CUcontext to, from;
	cudaError_t r = contexts_of(dst_device, src_device, &to, &from);

	return r ? r : (cudaError_t)drv.cuMemcpyPeer(HB_H(dst), to, HB_H(src), from, bytes);
}

static cudaError_t do_cudaMemcpyPeerAsync(void *dst, int dst_device, const void *src, int src_device,
					  size_t bytes, cudaStream_t stream)
{
	CUcontext to, from;
	cudaError_t r = contexts_of(dst_device, src_device, &to, &from);

	return r ? r : (cudaError_t)drv.cuMemcpyPeerAsync(HB_H(dst), to, HB_H(src), from, bytes, stream);
}

static cudaError_t do_cudaMemcpyAsync_ptsz(void *dst, const void *src, size_t bytes, enum cudaMemcpyKind kind,
					   cudaStream_t stream)
{
	READY();
	switch ((int)kind) {
	case cudaMemcpyHostToDevice:
		DRIVER(cuMemcpyHtoDAsync_v2_ptsz(HB_H(dst), src, bytes, stream));
	case cudaMemcpyDeviceToHost:
		DRIVER(cuMemcpyDtoHAsync_v2_ptsz(dst, HB_H(src), bytes, stream));
	case cudaMemcpyDeviceToDevice:
		DRIVER(cuMemcpyDtoDAsync_v2_ptsz(HB_H(dst), HB_H(src), bytes, stream));
	case cudaMemcpyHostToHost:
	case cudaMemcpyDefault:
		DRIVER(cuMemcpyAsync_ptsz(HB_H(dst), HB_H(src), bytes, stream));
	default:
		return cudaErrorInvalidMemcpyDirection;
	}
}

/* ---- variables ---- */

static cudaError_t variable_at(const void *symbol, size_t bytes, size_t offset, CUdeviceptr *at)
{
	size_t size = 0;
	cudaError_t r = find_variable(symbol, at, &size);

	if (!r && (offset > size || bytes > size - offset))
		r = cudaErrorInvalidValue;
	*at += offset;
	return r;
}

static cudaError_t do_cudaMemcpyToSymbol(const void *symbol, const void *src, size_t bytes, size_t offset,
					 enum cudaMemcpyKind kind)
{
	CUdeviceptr at = 0;
	cudaError_t r = variable_at(symbol, bytes, offset, &at);

	return r ? r : do_cudaMemcpy((void *)(uintptr_t)at, src, bytes, kind);
}

static cudaError_t do_cudaMemcpyToSymbolAsync(const void *symbol, const void *src, size_t bytes,
					      size_t offset, enum cudaMemcpyKind kind, cudaStream_t stream)
{
	CUdeviceptr at = 0;
	cudaError_t r = variable_at(symbol, bytes, offset, &at);

	return r ? r : do_cudaMemcpyAsync((void *)(uintptr_t)at, src, bytes, kind, stream);
}

static cudaError_t do_cudaMemcpyFromSymbol(void *dst, const void *symbol, size_t bytes, size_t offset,
					   enum cudaMemcpyKind kind)
{
	CUdeviceptr at = 0;
	cudaError_t r = variable_at(symbol, bytes, offset, &at);

	return r ? r : do_cudaMemcpy(dst, (void *)(uintptr_t)at, bytes, kind);
}

static cudaError_t do_cudaMemcpyFromSymbolAsync(void *dst, const void *symbol, size_t bytes, size_t offset,
						enum cudaMemcpyKind kind, cudaStream_t stream)
{
	CUdeviceptr at = 0;
	cudaError_t r = variable_at(symbol, bytes, offset, &at);

	return r ? r : do_cudaMemcpyAsync(dst, (void *)(uintptr_t)at, bytes, kind, stream);
}

static cudaError_t do_cudaGetSymbolAddress(void **ptr, const void *symbol)
{
	CUdeviceptr at = 0;
	size_t size;
	cudaError_t r = ptr ? find_variable(symbol, &at, &size) : cudaErrorInvalidValue;

	if (!r)
		*ptr = (void *)(uintptr_t)at;
	return r;
}

static cudaError_t do_cudaGetSymbolSize(size_t *size, const void *symbol)
{
	CUdeviceptr at;

	return size ? find_variable(symbol, &at, size) : cudaErrorInvalidValue;
}

/* ---- from other processes: the driver refuses ---- */

static cudaError_t do_cudaIpcOpenMemHandle(void **ptr, cudaIpcMemHandle_t handle, unsigned int flags)
{
	CUipcMemHandle h;

	READY();
	memcpy(&h, &handle, sizeof(h));
	DRIVER(cuIpcOpenMemHandle_v2((CUdeviceptr *)ptr, h, flags));
}

static cudaError_t do_cudaIpcOpenEventHandle(cudaEvent_t *event, cudaIpcEventHandle_t handle)
{
	CUipcEventHandle h;

	READY();
	memcpy(&h, &handle, sizeof(h));
	DRIVER(cuIpcOpenEventHandle(event, h));
}
