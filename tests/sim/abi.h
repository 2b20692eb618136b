/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The part of the CUDA and NCCL binary interface that the simulated accelerator serves, in words of our own,
 * so that it builds on a machine without the toolkit. Compiled with HB_SIM_REAL_HEADERS the real headers are
 * used instead, and every constant, layout and prototype here is checked against them (tests/sim/test_abi.c).
 */
#ifndef HB_SIM_ABI_H
#define HB_SIM_ABI_H

#include <stddef.h>
#include <stdint.h>

/* Version of the runtime's interface a front is built for (make gives it), and of the driver's. */
#ifndef HB_CUDART
#define HB_CUDART 13
#endif
#define HB_ABI_RUNTIME_VERSION (HB_CUDART == 12 ? 12080 : 13000)
#define HB_ABI_CUDA_VERSION    13000

#define HB_ABI_CU_CONSTANTS(C)                                                                               \
	C(CUDA_SUCCESS, 0)                                                                                   \
	C(CUDA_ERROR_INVALID_VALUE, 1)                                                                       \
	C(CUDA_ERROR_OUT_OF_MEMORY, 2)                                                                       \
	C(CUDA_ERROR_NOT_INITIALIZED, 3)                                                                     \
	C(CUDA_ERROR_DEINITIALIZED, 4)                                                                       \
	C(CUDA_ERROR_NO_DEVICE, 100)                                                                         \
	C(CUDA_ERROR_INVALID_DEVICE, 101)                                                                    \
	C(CUDA_ERROR_INVALID_IMAGE, 200)                                                                     \
	C(CUDA_ERROR_UNSUPPORTED_LIMIT, 215)                                                                 \
	C(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, 217)                                                           \
	C(CUDA_ERROR_FILE_NOT_FOUND, 301)                                                                    \
	C(CUDA_ERROR_INVALID_CONTEXT, 201)                                                                   \
	C(CUDA_ERROR_INVALID_HANDLE, 400)                                                                    \
	C(CUDA_ERROR_ILLEGAL_STATE, 401)                                                                     \
	C(CUDA_ERROR_NOT_FOUND, 500)                                                                         \
	C(CUDA_ERROR_NOT_READY, 600)                                                                         \
	C(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, 705)                                                           \
	C(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, 712)                                                    \
	C(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, 713)                                                        \
	C(CUDA_ERROR_NOT_SUPPORTED, 801)                                                                     \
	C(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, 900)                                                        \
	C(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, 901)                                                        \
	C(CUDA_ERROR_STREAM_CAPTURE_MERGE, 902)                                                              \
	C(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, 903)                                                          \
	C(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, 904)                                                           \
	C(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, 906)                                                           \
	C(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, 908)                                                       \
	C(CUDA_ERROR_CAPTURED_EVENT, 907)                                                                    \
	C(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, 910)                                                         \
	C(CUDA_ERROR_UNKNOWN, 999)                                                                           \
	C(CU_STREAM_NON_BLOCKING, 1)                                                                         \
	C(CU_STREAM_CAPTURE_MODE_GLOBAL, 0)                                                                  \
	C(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, 1)                                                            \
	C(CU_STREAM_CAPTURE_MODE_RELAXED, 2)                                                                 \
	C(CU_STREAM_CAPTURE_STATUS_NONE, 0)                                                                  \
	C(CU_STREAM_CAPTURE_STATUS_ACTIVE, 1)                                                                \
	C(CU_STREAM_CAPTURE_STATUS_INVALIDATED, 2)                                                           \
	C(CU_EVENT_BLOCKING_SYNC, 1)                                                                         \
	C(CU_EVENT_DISABLE_TIMING, 2)                                                                        \
	C(CU_CTX_SCHED_SPIN, 1)                                                                              \
	C(CU_CTX_SCHED_YIELD, 2)                                                                             \
	C(CU_CTX_SCHED_BLOCKING_SYNC, 4)                                                                     \
	C(CU_CTX_SCHED_MASK, 7)                                                                              \
	C(CU_GET_PROC_ADDRESS_SUCCESS, 0)                                                                    \
	C(CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND, 1)                                                           \
	C(CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, 2)                                                  \
	C(CU_MEMORYTYPE_HOST, 1)                                                                             \
	C(CU_MEMORYTYPE_DEVICE, 2)                                                                           \
	C(CU_POINTER_ATTRIBUTE_CONTEXT, 1)                                                                   \
	C(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 2)                                                               \
	C(CU_POINTER_ATTRIBUTE_DEVICE_POINTER, 3)                                                            \
	C(CU_POINTER_ATTRIBUTE_HOST_POINTER, 4)                                                              \
	C(CU_POINTER_ATTRIBUTE_IS_MANAGED, 8)                                                                \
	C(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, 9)                                                            \
	C(CU_POINTER_ATTRIBUTE_BUFFER_ID, 7)                                                                 \
	C(CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, 10)                                               \
	C(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, 11)                                                         \
	C(CU_POINTER_ATTRIBUTE_RANGE_SIZE, 12)                                                               \
	C(CU_POINTER_ATTRIBUTE_MAPPED, 13)                                                                   \
	C(CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, 14)                                                     \
	C(CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, 16)                                                             \
	C(CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, 17)                                                           \
	C(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 0)                                                        \
	C(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, 1)                                                            \
	C(CU_FUNC_ATTRIBUTE_NUM_REGS, 4)                                                                     \
	C(CU_FUNC_ATTRIBUTE_PTX_VERSION, 5)                                                                  \
	C(CU_FUNC_ATTRIBUTE_BINARY_VERSION, 6)                                                               \
	C(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 8)                                                \
	C(CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE, 15)                                        \
	C(CU_GRAPH_NODE_TYPE_KERNEL, 0)                                                                      \
	C(CU_GRAPH_NODE_TYPE_MEMCPY, 1)                                                                      \
	C(CU_GRAPH_NODE_TYPE_MEMSET, 2)                                                                      \
	C(CU_GRAPH_NODE_TYPE_HOST, 3)                                                                        \
	C(CU_GRAPH_NODE_TYPE_GRAPH, 4)                                                                       \
	C(CU_GRAPH_NODE_TYPE_EMPTY, 5)                                                                       \
	C(CU_STREAM_SET_CAPTURE_DEPENDENCIES, 1)                                                             \
	C(CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, 4)                                                              \
	C(CU_MEMPOOL_ATTR_USED_MEM_HIGH, 8)                                                                  \
	C(CU_MEM_LOCATION_TYPE_DEVICE, 1)                                                                    \
	C(CU_LIMIT_CIG_SHMEM_FALLBACK_ENABLED, 9)                                                            \
	C(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 8)                                                \
	C(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 16)                                                      \
	C(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 97)

#define HB_ABI_RT_CONSTANTS(C)                                                                               \
	C(cudaSuccess, 0)                                                                                    \
	C(cudaErrorInvalidValue, 1)                                                                          \
	C(cudaErrorMemoryAllocation, 2)                                                                      \
	C(cudaErrorInitializationError, 3)                                                                   \
	C(cudaErrorInvalidConfiguration, 9)                                                                  \
	C(cudaErrorInvalidPitchValue, 12)                                                                    \
	C(cudaErrorInvalidSymbol, 13)                                                                        \
	C(cudaErrorInvalidMemcpyDirection, 21)                                                               \
	C(cudaErrorInsufficientDriver, 35)                                                                   \
	C(cudaErrorMissingConfiguration, 52)                                                                 \
	C(cudaErrorInvalidDeviceFunction, 98)                                                                \
	C(cudaErrorNoDevice, 100)                                                                            \
	C(cudaErrorInvalidDevice, 101)                                                                       \
	C(cudaErrorInvalidKernelImage, 200)                                                                  \
	C(cudaErrorDeviceUninitialized, 201)                                                                 \
	C(cudaErrorPeerAccessUnsupported, 217)                                                               \
	C(cudaErrorFileNotFound, 301)                                                                        \
	C(cudaErrorIllegalState, 401)                                                                        \
	C(cudaErrorPeerAccessNotEnabled, 705)                                                                \
	C(cudaErrorHostMemoryAlreadyRegistered, 712)                                                         \
	C(cudaErrorHostMemoryNotRegistered, 713)                                                             \
	C(cudaErrorInvalidResourceHandle, 400)                                                               \
	C(cudaErrorNotReady, 600)                                                                            \
	C(cudaErrorSymbolNotFound, 500)                                                                      \
	C(cudaErrorNotSupported, 801)                                                                        \
	C(cudaErrorStreamCaptureUnsupported, 900)                                                            \
	C(cudaErrorStreamCaptureInvalidated, 901)                                                            \
	C(cudaErrorStreamCaptureMerge, 902)                                                                  \
	C(cudaErrorStreamCaptureUnmatched, 903)                                                              \
	C(cudaErrorStreamCaptureUnjoined, 904)                                                               \
	C(cudaErrorStreamCaptureImplicit, 906)                                                               \
	C(cudaErrorCapturedEvent, 907)                                                                       \
	C(cudaErrorGraphExecUpdateFailure, 910)                                                              \
	C(cudaErrorUnknown, 999)                                                                             \
	C(cudaMemcpyHostToHost, 0)                                                                           \
	C(cudaMemcpyHostToDevice, 1)                                                                         \
	C(cudaMemcpyDeviceToHost, 2)                                                                         \
	C(cudaMemcpyDeviceToDevice, 3)                                                                       \
	C(cudaMemcpyDefault, 4)                                                                              \
	C(cudaMemoryTypeUnregistered, 0)                                                                     \
	C(cudaMemoryTypeHost, 1)                                                                             \
	C(cudaMemoryTypeDevice, 2)                                                                           \
	C(cudaMemoryTypeManaged, 3)

#define HB_ABI_NCCL_CONSTANTS(C)                                                                             \
	C(ncclSuccess, 0)                                                                                    \
	C(ncclUnhandledCudaError, 1)                                                                         \
	C(ncclSystemError, 2)                                                                                \
	C(ncclInternalError, 3)                                                                              \
	C(ncclInvalidArgument, 4)                                                                            \
	C(ncclInvalidUsage, 5)                                                                               \
	C(ncclRemoteError, 6)                                                                                \
	C(ncclInProgress, 7)

#ifdef HB_SIM_REAL_HEADERS
/* Internal versions: without it cuda.h renames the plain names by macro to the newest version. */
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <cuda_runtime_api.h>
#if __has_include(<nccl.h>)
#include <nccl.h>
#define HB_SIM_REAL_NCCL 1
#endif
#define HB_ABI_CHECK(name, value) _Static_assert((int)(name) == (value), #name);
HB_ABI_CU_CONSTANTS(HB_ABI_CHECK)
HB_ABI_RT_CONSTANTS(HB_ABI_CHECK)
#ifdef HB_SIM_REAL_NCCL
HB_ABI_NCCL_CONSTANTS(HB_ABI_CHECK)
#endif
#else
#define HB_ABI_CONSTANT(name, value) name = value,
enum { HB_ABI_CU_CONSTANTS(HB_ABI_CONSTANT) };
enum { HB_ABI_RT_CONSTANTS(HB_ABI_CONSTANT) };

#include "abi_types.h"
#endif

#ifndef HB_SIM_REAL_NCCL
#ifndef HB_ABI_CONSTANT
#define HB_ABI_CONSTANT(name, value) name = value,
#endif
enum { HB_ABI_NCCL_CONSTANTS(HB_ABI_CONSTANT) };
typedef struct ncclComm *ncclComm_t;
typedef int ncclResult_t, ncclDataType_t, ncclRedOp_t;
typedef struct {
	char internal[128];
} ncclUniqueId;
typedef struct ncclConfig_st ncclConfig_t;
#endif

/* Layouts that callers and tracers rely on, of our declarations and of the real ones. */
#define HB_ABI_LAYOUT(type, member, at) _Static_assert(offsetof(type, member) == (at), #type "." #member);
HB_ABI_LAYOUT(CUlaunchConfig, sharedMemBytes, 24)
HB_ABI_LAYOUT(CUlaunchConfig, hStream, 32)
HB_ABI_LAYOUT(CUlaunchConfig, numAttrs, 48)
HB_ABI_LAYOUT(CUDA_GRAPH_INSTANTIATE_PARAMS, result_out, 24)
HB_ABI_LAYOUT(cudaLaunchConfig_t, dynamicSmemBytes, 24)
HB_ABI_LAYOUT(cudaLaunchConfig_t, stream, 32)
HB_ABI_LAYOUT(struct cudaPointerAttributes, devicePointer, 8)
HB_ABI_LAYOUT(struct cudaPointerAttributes, hostPointer, 16)
HB_ABI_LAYOUT(struct cudaFuncAttributes, maxThreadsPerBlock, 24)
HB_ABI_LAYOUT(struct cudaFuncAttributes, maxDynamicSharedSizeBytes, 44)
HB_ABI_LAYOUT(struct cudaMemcpy3DParms, srcPtr, 32)
HB_ABI_LAYOUT(struct cudaMemcpy3DParms, dstPtr, 96)
HB_ABI_LAYOUT(struct cudaMemcpy3DParms, kind, 152)
HB_ABI_LAYOUT(struct cudaKernelNodeParams, sharedMemBytes, 32)
HB_ABI_LAYOUT(CUmemAllocationProp, location, 8)
HB_ABI_LAYOUT(CUmemPoolProps, maxSize, 24)
HB_ABI_LAYOUT(CUDA_MEMCPY2D, dstXInBytes, 56)
HB_ABI_LAYOUT(CUDA_MEMCPY2D, WidthInBytes, 112)
HB_ABI_LAYOUT(CUDA_MEMCPY3D, dstXInBytes, 88)
HB_ABI_LAYOUT(CUDA_MEMCPY3D, Depth, 192)
HB_ABI_LAYOUT(CUDA_KERNEL_NODE_PARAMS_v2, kernelParams, 40)
HB_ABI_LAYOUT(CUDA_KERNEL_NODE_PARAMS_v2, kern, 56)
HB_ABI_LAYOUT(CUDA_MEMSET_NODE_PARAMS, width, 24)
_Static_assert(sizeof(CUlaunchConfig) == 56 && sizeof(cudaLaunchConfig_t) == 56 && sizeof(dim3) == 12 &&
		   sizeof(struct cudaPointerAttributes) == (HB_CUDART == 12 ? 24 : 88) &&
		   sizeof(struct cudaFuncAttributes) == 144 && sizeof(CUmemAccessDesc) == 12 &&
		   sizeof(CUmemAllocationProp) == 32 && sizeof(CUmemPoolProps) == 88 &&
		   sizeof(CUDA_MEMCPY2D) == 128 && sizeof(CUtensorMap) == 128 &&
		   sizeof(CUipcMemHandle) == 64 && sizeof(CUgraphEdgeData) == 8 &&
		   sizeof(ncclUniqueId) == 128,
	       "sizes");

#endif
