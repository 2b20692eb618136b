/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Part of cuda.c: copies and fills. */

enum want { ANY, MUST_BE_DEVICE };

struct copy {
	u64 dst, src, bytes;
	CUstream stream;
	bool per_thread, wait; /* a call without Async waits for the end */
	enum want dst_want, src_want;
	u64 rows, dst_pitch, src_pitch;
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

/* From the first byte of the first row to the last of the last. */
static u64 span(u64 bytes, u64 rows, u64 pitch)
{
	return rows > 1 ? (rows - 1) * pitch + bytes / rows : bytes;
}

static CUresult copy(const struct copy *c)
{
	struct hb_work w = {.op = HB_OP_COPY,
			    .dst = c->dst,
			    .src = c->src,
			    .bytes = c->bytes,
			    .rows = c->rows,
			    .dst_pitch = c->dst_pitch,
			    .src_pitch = c->src_pitch};
	enum hb_space dst, src;
	u64 since = hb_now();
	struct hb_stream *s;
	CUresult r;

	STREAM_OF(s, c->stream, c->per_thread);
	if (!c->bytes)
		return CUDA_SUCCESS;
	if (!fits(c->dst, span(c->bytes, c->rows, c->dst_pitch), c->dst_want, &dst) ||
	    !fits(c->src, span(c->bytes, c->rows, c->src_pitch), c->src_want, &src))
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
	return copy(&(struct copy){dst, HB_H(src), bytes, NULL, false, true, MUST_BE_DEVICE, ANY, 0, 0, 0});
}

static CUresult do_cuMemcpyDtoH_v2(void *dst, CUdeviceptr src, size_t bytes)
{
	return copy(&(struct copy){HB_H(dst), src, bytes, NULL, false, true, ANY, MUST_BE_DEVICE, 0, 0, 0});
}

static CUresult do_cuMemcpyDtoD_v2(CUdeviceptr dst, CUdeviceptr src, size_t bytes)
{
	return copy(
	    &(struct copy){dst, src, bytes, NULL, false, false, MUST_BE_DEVICE, MUST_BE_DEVICE, 0, 0, 0});
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
	return copy(
	    &(struct copy){dst, HB_H(src), bytes, stream, false, false, MUST_BE_DEVICE, ANY, 0, 0, 0});
}

static CUresult do_cuMemcpyHtoDAsync_v2_ptsz(CUdeviceptr dst, const void *src, size_t bytes, CUstream stream)
{
	return copy(&(struct copy){dst, HB_H(src), bytes, stream, true, false, MUST_BE_DEVICE, ANY, 0, 0, 0});
}

static CUresult do_cuMemcpyDtoHAsync_v2(void *dst, CUdeviceptr src, size_t bytes, CUstream stream)
{
	return copy(
	    &(struct copy){HB_H(dst), src, bytes, stream, false, false, ANY, MUST_BE_DEVICE, 0, 0, 0});
}

static CUresult do_cuMemcpyDtoHAsync_v2_ptsz(void *dst, CUdeviceptr src, size_t bytes, CUstream stream)
{
	return copy(&(struct copy){HB_H(dst), src, bytes, stream, true, false, ANY, MUST_BE_DEVICE, 0, 0, 0});
}

static CUresult do_cuMemcpyDtoDAsync_v2(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream)
{
	return copy(
	    &(struct copy){dst, src, bytes, stream, false, false, MUST_BE_DEVICE, MUST_BE_DEVICE, 0, 0, 0});
}

static CUresult do_cuMemcpyDtoDAsync_v2_ptsz(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream)
{
	return copy(
	    &(struct copy){dst, src, bytes, stream, true, false, MUST_BE_DEVICE, MUST_BE_DEVICE, 0, 0, 0});
}

/* One address space: what device a byte is on follows from its address. */
static CUresult do_cuMemcpyPeer(CUdeviceptr dst, CUcontext dst_ctx, CUdeviceptr src, CUcontext src_ctx,
				size_t bytes)
{
	return do_cuMemcpyDtoD_v2(dst, src, bytes);
}

static CUresult do_cuMemcpyPeerAsync(CUdeviceptr dst, CUcontext dst_ctx, CUdeviceptr src, CUcontext src_ctx,
				     size_t bytes, CUstream stream)
{
	return do_cuMemcpyDtoDAsync_v2(dst, src, bytes, stream);
}

/* ---- copies of rows ---- */

static u64 address(CUmemorytype type, const void *host, CUdeviceptr device)
{
	return (int)type == CU_MEMORYTYPE_HOST ? HB_H(host) : device;
}

static enum want wanted(CUmemorytype type)
{
	return (int)type == CU_MEMORYTYPE_DEVICE ? MUST_BE_DEVICE : ANY;
}

static CUresult copy_rows(const CUDA_MEMCPY2D *c, CUstream stream, bool wait)
{
	struct copy k = {.stream = stream, .wait = wait};

	NEEDED(c);
	if (!c->WidthInBytes || !c->Height)
		return CUDA_SUCCESS;
	k.dst = address(c->dstMemoryType, c->dstHost, c->dstDevice) + c->dstY * c->dstPitch + c->dstXInBytes;
	k.src = address(c->srcMemoryType, c->srcHost, c->srcDevice) + c->srcY * c->srcPitch + c->srcXInBytes;
	k.dst_want = wanted(c->dstMemoryType);
	k.src_want = wanted(c->srcMemoryType);
	k.dst_pitch = c->dstPitch ? c->dstPitch : c->WidthInBytes;
	k.src_pitch = c->srcPitch ? c->srcPitch : c->WidthInBytes;
	if (k.dst_pitch < c->WidthInBytes || k.src_pitch < c->WidthInBytes || c->WidthInBytes > 1ull << 40 ||
	    c->Height > 1ull << 40)
		return CUDA_ERROR_INVALID_VALUE;
	k.bytes = c->WidthInBytes * c->Height;
	k.rows = c->Height;
	return copy(&k);
}

static CUresult do_cuMemcpy2D_v2(const CUDA_MEMCPY2D *c)
{
	return copy_rows(c, NULL, true);
}

static CUresult do_cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D *c)
{
	return copy_rows(c, NULL, true);
}

static CUresult do_cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *c, CUstream stream)
{
	return copy_rows(c, stream, false);
}

/* Slice by slice: one operation each. */
static CUresult copy_slices(const CUDA_MEMCPY3D *c, CUstream stream, bool wait)
{
	CUresult r = CUDA_SUCCESS;

	NEEDED(c);
	if (!c->WidthInBytes || !c->Height)
		return CUDA_SUCCESS; /* whatever the depth: 2^60 empty slices take years */
	for (u64 z = 0; z < c->Depth && !r; z++) {
		CUDA_MEMCPY2D d = {.srcXInBytes = c->srcXInBytes,
				   .srcY = c->srcY + (c->srcZ + z) * c->srcHeight,
				   .srcMemoryType = c->srcMemoryType,
				   .srcHost = c->srcHost,
				   .srcDevice = c->srcDevice,
				   .srcPitch = c->srcPitch,
				   .dstXInBytes = c->dstXInBytes,
				   .dstY = c->dstY + (c->dstZ + z) * c->dstHeight,
				   .dstMemoryType = c->dstMemoryType,
				   .dstHost = c->dstHost,
				   .dstDevice = c->dstDevice,
				   .dstPitch = c->dstPitch,
				   .WidthInBytes = c->WidthInBytes,
				   .Height = c->Height};

		r = copy_rows(&d, stream, wait);
	}
	return r;
}

static CUresult do_cuMemcpy3D_v2(const CUDA_MEMCPY3D *c)
{
	return copy_slices(c, NULL, true);
}

static CUresult do_cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *c, CUstream stream)
{
	return copy_slices(c, stream, false);
}

/* ---- fills ---- */

struct fill {
	u64 dst;
	u32 value, width;
	u64 n; /* elements of a row */
	CUstream stream;
	bool per_thread;
	u64 rows, pitch;
};

static CUresult fill(const struct fill *f)
{
	u64 rows = f->rows ? f->rows : 1;
	struct hb_work w = {.op = HB_OP_FILL,
			    .dst = f->dst,
			    .src = f->value,
			    .bytes = f->n * rows,
			    .width = f->width,
			    .rows = f->rows,
			    .dst_pitch = f->pitch};
	enum hb_space space;
	struct hb_stream *s;

	STREAM_OF(s, f->stream, f->per_thread);
	if (!f->n || (f->pitch && !f->rows))
		return CUDA_SUCCESS;
	if (f->n > 1ull << 46 || rows > 1ull << 40 || (rows > 1 && f->pitch < f->n * f->width) ||
	    f->dst % f->width ||
	    !fits(f->dst, span(f->n * f->width * rows, rows, f->pitch), MUST_BE_DEVICE, &space))
		return CUDA_ERROR_INVALID_VALUE;
	w.cost = hb_costs.copy_ns + hb_costs__transfer(w.bytes * w.width, hb_costs.d2d_bps);
	return hb_stream__enqueue(s, &w);
}

static CUresult do_cuMemsetD8_v2(CUdeviceptr dst, unsigned char value, size_t n)
{
	return fill(&(struct fill){dst, value, 1, n, NULL, false, 0, 0});
}

static CUresult do_cuMemsetD16_v2(CUdeviceptr dst, unsigned short value, size_t n)
{
	return fill(&(struct fill){dst, value, 2, n, NULL, false, 0, 0});
}

static CUresult do_cuMemsetD32_v2(CUdeviceptr dst, unsigned int value, size_t n)
{
	return fill(&(struct fill){dst, value, 4, n, NULL, false, 0, 0});
}

static CUresult do_cuMemsetD8Async(CUdeviceptr dst, unsigned char value, size_t n, CUstream stream)
{
	return fill(&(struct fill){dst, value, 1, n, stream, false, 0, 0});
}

static CUresult do_cuMemsetD8Async_ptsz(CUdeviceptr dst, unsigned char value, size_t n, CUstream stream)
{
	return fill(&(struct fill){dst, value, 1, n, stream, true, 0, 0});
}

static CUresult do_cuMemsetD16Async(CUdeviceptr dst, unsigned short value, size_t n, CUstream stream)
{
	return fill(&(struct fill){dst, value, 2, n, stream, false, 0, 0});
}

static CUresult do_cuMemsetD32Async(CUdeviceptr dst, unsigned int value, size_t n, CUstream stream)
{
	return fill(&(struct fill){dst, value, 4, n, stream, false, 0, 0});
}

static CUresult do_cuMemsetD2D8_v2(CUdeviceptr dst, size_t pitch, unsigned char value, size_t width,
				   size_t height)
{
	return fill(&(struct fill){dst, value, 1, width, NULL, false, height, pitch});
}

static CUresult do_cuMemsetD2D8Async(CUdeviceptr dst, size_t pitch, unsigned char value, size_t width,
				     size_t height, CUstream stream)
{
	return fill(&(struct fill){dst, value, 1, width, stream, false, height, pitch});
}

static CUresult do_cuMemsetD2D16Async(CUdeviceptr dst, size_t pitch, unsigned short value, size_t width,
				      size_t height, CUstream stream)
{
	return fill(&(struct fill){dst, value, 2, width, stream, false, height, pitch});
}

static CUresult do_cuMemsetD2D32Async(CUdeviceptr dst, size_t pitch, unsigned int value, size_t width,
				      size_t height, CUstream stream)
{
	return fill(&(struct fill){dst, value, 4, width, stream, false, height, pitch});
}
