/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Part of cudart.c: memory, streams, events, graphs; one driver call each. */

/* ---- memory ---- */

static cudaError_t do_cudaMalloc(void **ptr, size_t bytes)
{
	READY();
	DRIVER(cuMemAlloc_v2((CUdeviceptr *)ptr, bytes));
}

static cudaError_t do_cudaFree(void *ptr)
{
	READY();
	DRIVER(cuMemFree_v2(HB_H(ptr)));
}

static cudaError_t do_cudaMallocHost(void **ptr, size_t bytes)
{
	READY();
	DRIVER(cuMemHostAlloc(ptr, bytes, 0));
}

static cudaError_t do_cudaHostAlloc(void **ptr, size_t bytes, unsigned int flags)
{
	READY();
	DRIVER(cuMemHostAlloc(ptr, bytes, flags));
}

static cudaError_t do_cudaFreeHost(void *ptr)
{
	READY();
	DRIVER(cuMemFreeHost(ptr));
}

static cudaError_t do_cudaHostRegister(void *ptr, size_t bytes, unsigned int flags)
{
	READY();
	DRIVER(cuMemHostRegister_v2(ptr, bytes, flags));
}

static cudaError_t do_cudaHostUnregister(void *ptr)
{
	READY();
	DRIVER(cuMemHostUnregister(ptr));
}

static cudaError_t do_cudaMallocManaged(void **ptr, size_t bytes, unsigned int flags)
{
	READY();
	DRIVER(cuMemAllocManaged((CUdeviceptr *)ptr, bytes, flags));
}

static cudaError_t do_cudaMallocAsync(void **ptr, size_t bytes, cudaStream_t stream)
{
	READY();
	DRIVER(cuMemAllocAsync((CUdeviceptr *)ptr, bytes, stream));
}

static cudaError_t do_cudaFreeAsync(void *ptr, cudaStream_t stream)
{
	READY();
	DRIVER(cuMemFreeAsync(HB_H(ptr), stream));
}

static cudaError_t do_cudaMemGetInfo(size_t *free_bytes, size_t *total)
{
	READY();
	DRIVER(cuMemGetInfo_v2(free_bytes, total));
}

static cudaError_t do_cudaPointerGetAttributes(struct cudaPointerAttributes *a, const void *ptr)
{
	unsigned int type = 0, managed = 0;
	int kind;

	READY();
	if (!a)
		return cudaErrorInvalidValue;
	memset(a, 0, sizeof(*a));
	a->hostPointer = (void *)(uintptr_t)ptr;
	if (drv.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, HB_H(ptr)))
		return cudaSuccess; /* unregistered memory is no error */
	drv.cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, HB_H(ptr));
	drv.cuPointerGetAttribute(&a->device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, HB_H(ptr));
	a->devicePointer = a->hostPointer;
	kind = managed			    ? cudaMemoryTypeManaged
	       : type == CU_MEMORYTYPE_HOST ? cudaMemoryTypeHost
					    : cudaMemoryTypeDevice;
	a->type = (enum cudaMemoryType)kind;
	if (kind == cudaMemoryTypeDevice)
		a->hostPointer = NULL;
	return cudaSuccess;
}

static cudaError_t do_cudaMemcpy(void *dst, const void *src, size_t bytes, enum cudaMemcpyKind kind)
{
	READY();
	switch ((int)kind) {
	case cudaMemcpyHostToDevice:
		DRIVER(cuMemcpyHtoD_v2(HB_H(dst), src, bytes));
	case cudaMemcpyDeviceToHost:
		DRIVER(cuMemcpyDtoH_v2(dst, HB_H(src), bytes));
	case cudaMemcpyDeviceToDevice:
		DRIVER(cuMemcpyDtoD_v2(HB_H(dst), HB_H(src), bytes));
	case cudaMemcpyHostToHost:
	case cudaMemcpyDefault:
		DRIVER(cuMemcpy(HB_H(dst), HB_H(src), bytes));
	default:
		return cudaErrorInvalidMemcpyDirection;
	}
}

static cudaError_t do_cudaMemcpyAsync(void *dst, const void *src, size_t bytes, enum cudaMemcpyKind kind,
				      cudaStream_t stream)
{
	READY();
	switch ((int)kind) {
	case cudaMemcpyHostToDevice:
		DRIVER(cuMemcpyHtoDAsync_v2(HB_H(dst), src, bytes, stream));
	case cudaMemcpyDeviceToHost:
		DRIVER(cuMemcpyDtoHAsync_v2(dst, HB_H(src), bytes, stream));
	case cudaMemcpyDeviceToDevice:
		DRIVER(cuMemcpyDtoDAsync_v2(HB_H(dst), HB_H(src), bytes, stream));
	case cudaMemcpyHostToHost:
	case cudaMemcpyDefault:
		DRIVER(cuMemcpyAsync(HB_H(dst), HB_H(src), bytes, stream));
	default:
		return cudaErrorInvalidMemcpyDirection;
	}
}

static cudaError_t do_cudaMemset(void *dst, int value, size_t bytes)
{
	READY();
	DRIVER(cuMemsetD8_v2(HB_H(dst), (unsigned char)value, bytes));
}

static cudaError_t do_cudaMemsetAsync(void *dst, int value, size_t bytes, cudaStream_t stream)
{
	READY();
	DRIVER(cuMemsetD8Async(HB_H(dst), (unsigned char)value, bytes, stream));
}

/* ---- streams ---- */

static cudaError_t do_cudaStreamCreate(cudaStream_t *stream)
{
	READY();
	DRIVER(cuStreamCreate(stream, 0));
}

static cudaError_t do_cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int flags)
{
	READY();
	DRIVER(cuStreamCreate(stream, flags));
}

static cudaError_t do_cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned int flags, int priority)
{
	READY();
	DRIVER(cuStreamCreateWithPriority(stream, flags, priority));
}

static cudaError_t do_cudaStreamDestroy(cudaStream_t stream)
{
	READY();
	DRIVER(cuStreamDestroy_v2(stream));
}

static cudaError_t do_cudaStreamQuery(cudaStream_t stream)
{
	READY();
	DRIVER(cuStreamQuery(stream));
}

static cudaError_t do_cudaStreamSynchronize(cudaStream_t stream)
{
	READY();
	DRIVER(cuStreamSynchronize(stream));
}

static cudaError_t do_cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags)
{
	READY();
	DRIVER(cuStreamWaitEvent(stream, event, flags));
}

static cudaError_t do_cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
	READY();
	DRIVER(cuStreamBeginCapture_v2(stream, (CUstreamCaptureMode)mode));
}

static cudaError_t do_cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
	READY();
	DRIVER(cuStreamEndCapture(stream, graph));
}

static cudaError_t do_cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *status)
{
	READY();
	DRIVER(cuStreamIsCapturing(stream, (CUstreamCaptureStatus *)status));
}

static cudaError_t do_cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode)
{
	READY();
	DRIVER(cuThreadExchangeStreamCaptureMode((CUstreamCaptureMode *)mode));
}

/* ---- events ---- */

static cudaError_t do_cudaEventCreate(cudaEvent_t *event)
{
	READY();
	DRIVER(cuEventCreate(event, 0));
}

static cudaError_t do_cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags)
{
	READY();
	DRIVER(cuEventCreate(event, flags));
}

static cudaError_t do_cudaEventDestroy(cudaEvent_t event)
{
	READY();
	DRIVER(cuEventDestroy_v2(event));
}

static cudaError_t do_cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
	READY();
	DRIVER(cuEventRecord(event, stream));
}

static cudaError_t do_cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned int flags)
{
	READY();
	DRIVER(cuEventRecordWithFlags(event, stream, flags));
}

static cudaError_t do_cudaEventQuery(cudaEvent_t event)
{
	READY();
	DRIVER(cuEventQuery(event));
}

static cudaError_t do_cudaEventSynchronize(cudaEvent_t event)
{
	READY();
	DRIVER(cuEventSynchronize(event));
}

static cudaError_t do_cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end)
{
	READY();
	DRIVER(cuEventElapsedTime(ms, start, end));
}

/* ---- graphs ---- */

static cudaError_t do_cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags)
{
	READY();
	DRIVER(cuGraphInstantiateWithFlags(exec, graph, flags));
}

static cudaError_t do_cudaGraphInstantiateWithFlags(cudaGraphExec_t *exec, cudaGraph_t graph,
						    unsigned long long flags)
{
	return do_cudaGraphInstantiate(exec, graph, flags);
}

static cudaError_t do_cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream)
{
	READY();
	DRIVER(cuGraphUpload(exec, stream));
}

static cudaError_t do_cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
	READY();
	DRIVER(cuGraphLaunch(exec, stream));
}

static cudaError_t do_cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *n)
{
	READY();
	DRIVER(cuGraphGetNodes(graph, nodes, n));
}

static cudaError_t do_cudaGraphDestroy(cudaGraph_t graph)
{
	READY();
	DRIVER(cuGraphDestroy(graph));
}

static cudaError_t do_cudaGraphExecDestroy(cudaGraphExec_t exec)
{
	READY();
	DRIVER(cuGraphExecDestroy(exec));
}
