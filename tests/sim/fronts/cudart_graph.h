/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Part of cudart.c: graphs node by node, where parameters differ from the driver's. */

static cudaError_t node_params(const struct cudaKernelNodeParams *p, CUDA_KERNEL_NODE_PARAMS_v2 *out)
{
	CUfunction f;

	if (!p)
		return cudaErrorInvalidValue;
	FIND(f, p->func);
	*out = (CUDA_KERNEL_NODE_PARAMS_v2){.func = f,
					    .gridDimX = p->gridDim.x,
					    .gridDimY = p->gridDim.y,
					    .gridDimZ = p->gridDim.z,
					    .blockDimX = p->blockDim.x,
					    .blockDimY = p->blockDim.y,
					    .blockDimZ = p->blockDim.z,
					    .sharedMemBytes = p->sharedMemBytes,
					    .kernelParams = p->kernelParams,
					    .extra = p->extra};
	return cudaSuccess;
}

static cudaError_t do_cudaGraphAddKernelNode(cudaGraphNode_t *node, cudaGraph_t graph,
					     const cudaGraphNode_t *deps, size_t n,
					     const struct cudaKernelNodeParams *params)
{
	CUDA_KERNEL_NODE_PARAMS_v2 p;
	cudaError_t r = node_params(params, &p);

	return r ? r : (cudaError_t)drv.cuGraphAddKernelNode_v2(node, graph, deps, n, &p);
}

static cudaError_t do_cudaGraphKernelNodeGetParams(cudaGraphNode_t node, struct cudaKernelNodeParams *params)
{
	CUDA_KERNEL_NODE_PARAMS_v2 p;
	CUresult r;

	READY();
	if (!params)
		return cudaErrorInvalidValue;
	r = drv.cuGraphKernelNodeGetParams_v2(node, &p);
	if (r)
		return (cudaError_t)r;
	*params = (struct cudaKernelNodeParams){.func = (void *)p.func,
						.gridDim = {p.gridDimX, p.gridDimY, p.gridDimZ},
						.blockDim = {p.blockDimX, p.blockDimY, p.blockDimZ},
						.sharedMemBytes = p.sharedMemBytes,
						.kernelParams = p.kernelParams,
						.extra = p.extra};
	return cudaSuccess;
}

static cudaError_t do_cudaGraphKernelNodeSetParams(cudaGraphNode_t node,
						   const struct cudaKernelNodeParams *params)
{
	CUDA_KERNEL_NODE_PARAMS_v2 p;
	cudaError_t r = node_params(params, &p);

	return r ? r : (cudaError_t)drv.cuGraphKernelNodeSetParams_v2(node, &p);
}

static cudaError_t do_cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
						       const struct cudaKernelNodeParams *params)
{
	CUDA_KERNEL_NODE_PARAMS_v2 p;
	cudaError_t r = node_params(params, &p);

	return r ? r : (cudaError_t)drv.cuGraphExecKernelNodeSetParams_v2(exec, node, &p);
}

static cudaError_t do_cudaGraphAddMemcpyNode(cudaGraphNode_t *node, cudaGraph_t graph,
					     const cudaGraphNode_t *deps, size_t n,
					     const struct cudaMemcpy3DParms *params)
{
	CUDA_MEMCPY3D c;
	cudaError_t r;

	READY();
	r = box_of(params, &c);
	return r ? r : (cudaError_t)drv.cuGraphAddMemcpyNode(node, graph, deps, n, &c, NULL);
}

static cudaError_t do_cudaGraphAddMemcpyNode1D(cudaGraphNode_t *node, cudaGraph_t graph,
					       const cudaGraphNode_t *deps, size_t n, void *dst,
					       const void *src, size_t bytes, enum cudaMemcpyKind kind)
{
	struct cudaMemcpy3DParms p = {.srcPtr = {(void *)(uintptr_t)src, bytes, bytes, 1},
				      .dstPtr = {dst, bytes, bytes, 1},
				      .extent = {bytes, 1, 1},
				      .kind = kind};

	return do_cudaGraphAddMemcpyNode(node, graph, deps, n, &p);
}

static cudaError_t do_cudaGraphExecGetFlags(cudaGraphExec_t exec, unsigned long long *flags)
{
	cuuint64_t f = 0;
	CUresult r;

	READY();
	if (!flags)
		return cudaErrorInvalidValue;
	r = drv.cuGraphExecGetFlags(exec, &f);
	*flags = f;
	return (cudaError_t)r;
}
