/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Part of abi.h: types of the CUDA interface in our own words, for machines without the headers. Enumerations
 * of the driver are plain ints here; structures have the members the simulator uses, at their places (checked
 * at the end of abi.h in both worlds).
 */
#ifndef HB_SIM_ABI_TYPES_H
#define HB_SIM_ABI_TYPES_H

/* ---- driver ---- */

typedef int CUresult, CUdevice, CUdevice_attribute, CUfunction_attribute, CUpointer_attribute,
    CUstreamCaptureMode, CUstreamCaptureStatus, CUdriverProcAddressQueryResult, CUjit_option, CUlibraryOption,
    CUlimit, CUfunc_cache, CUsharedconfig, CUmoduleLoadingMode, CUmem_advise, CUmemPool_attribute,
    CUmemAllocationHandleType, CUmemAllocationGranularity_flags, CUmemAccess_flags, CUgraphNodeType,
    CUfunctionLoadingState, CUdevice_P2PAttribute, CUtensorMapDataType, CUtensorMapInterleave,
    CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill, CUlaunchAttributeID,
    CUmemLocationType, CUmemAllocationType, CUmemorytype;
typedef CUlaunchAttributeID CUstreamAttrID, CUkernelNodeAttrID;
typedef unsigned long long CUdeviceptr, CUmemGenericAllocationHandle;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUlib_st *CUlibrary;
typedef struct CUkern_st *CUkernel;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphNode_st *CUgraphNode;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct CUmemPoolHandle_st *CUmemoryPool;
typedef struct CUuserObject_st *CUuserObject;
typedef struct CUarray_st *CUarray;
typedef void (*CUhostFn)(void *userData);
typedef void (*CUstreamCallback)(CUstream stream, CUresult status, void *userData);
typedef size_t (*CUoccupancyB2DSize)(int blockSize);
typedef uint32_t cuuint32_t;
typedef uint64_t cuuint64_t;
typedef struct {
	char bytes[16];
} CUuuid;
typedef struct {
	char reserved[64];
} CUipcEventHandle, CUipcMemHandle;
typedef struct CUlaunchAttribute_st CUlaunchAttribute;
typedef union CUlaunchAttributeValue_union CUlaunchAttributeValue;
typedef CUlaunchAttributeValue CUstreamAttrValue, CUkernelNodeAttrValue;
typedef struct CUgraphExecUpdateResultInfo_st CUgraphExecUpdateResultInfo;
typedef struct CUexecAffinityParam_st CUexecAffinityParam;
typedef struct CUctxCreateParams_st CUctxCreateParams;

typedef struct {
	unsigned int gridDimX, gridDimY, gridDimZ;
	unsigned int blockDimX, blockDimY, blockDimZ;
	unsigned int sharedMemBytes;
	CUstream hStream;
	CUlaunchAttribute *attrs;
	unsigned int numAttrs;
} CUlaunchConfig;

typedef struct {
	unsigned long long flags;
	CUstream hUploadStream;
	CUgraphNode hErrNode_out;
	int result_out;
} CUDA_GRAPH_INSTANTIATE_PARAMS;

typedef struct {
	unsigned char from_port, to_port, type, reserved[5];
} CUgraphEdgeData;

typedef struct {
	CUmemLocationType type;
	int id;
} CUmemLocation;
typedef struct {
	CUmemLocation location;
	CUmemAccess_flags flags;
} CUmemAccessDesc;
typedef struct {
	CUmemAllocationType type;
	CUmemAllocationHandleType requestedHandleTypes;
	CUmemLocation location;
	void *win32HandleMetaData;
	struct {
		unsigned char compressionType, gpuDirectRDMACapable;
		unsigned short usage;
		unsigned char reserved[4];
	} allocFlags;
} CUmemAllocationProp;
typedef struct {
	CUmemAllocationType allocType;
	CUmemAllocationHandleType handleTypes;
	CUmemLocation location;
	void *win32SecurityAttributes;
	size_t maxSize;
	unsigned short usage;
	unsigned char reserved[54];
} CUmemPoolProps;

typedef struct {
	size_t srcXInBytes, srcY;
	CUmemorytype srcMemoryType;
	const void *srcHost;
	CUdeviceptr srcDevice;
	CUarray srcArray;
	size_t srcPitch, dstXInBytes, dstY;
	CUmemorytype dstMemoryType;
	void *dstHost;
	CUdeviceptr dstDevice;
	CUarray dstArray;
	size_t dstPitch, WidthInBytes, Height;
} CUDA_MEMCPY2D;

typedef struct {
	size_t srcXInBytes, srcY, srcZ, srcLOD;
	CUmemorytype srcMemoryType;
	const void *srcHost;
	CUdeviceptr srcDevice;
	CUarray srcArray;
	void *reserved0;
	size_t srcPitch, srcHeight, dstXInBytes, dstY, dstZ, dstLOD;
	CUmemorytype dstMemoryType;
	void *dstHost;
	CUdeviceptr dstDevice;
	CUarray dstArray;
	void *reserved1;
	size_t dstPitch, dstHeight, WidthInBytes, Height, Depth;
} CUDA_MEMCPY3D;

typedef struct {
	CUfunction func;
	unsigned int gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
	void **kernelParams, **extra;
	CUkernel kern;
	CUcontext ctx;
} CUDA_KERNEL_NODE_PARAMS_v2;
typedef struct {
	CUdeviceptr dst;
	size_t pitch;
	unsigned int value, elementSize;
	size_t width, height;
} CUDA_MEMSET_NODE_PARAMS;
typedef struct {
	CUhostFn fn;
	void *userData;
} CUDA_HOST_NODE_PARAMS;

typedef struct {
	cuuint64_t opaque[16];
} CUtensorMap;

/* ---- runtime ---- */

typedef int cudaError_t;
typedef CUstream cudaStream_t;
typedef CUevent cudaEvent_t;
typedef CUgraph cudaGraph_t;
typedef CUgraphNode cudaGraphNode_t;
typedef CUgraphExec cudaGraphExec_t;
typedef CUkernel cudaKernel_t;
typedef CUlibrary cudaLibrary_t;
typedef CUfunction cudaFunction_t;
typedef CUmemoryPool cudaMemPool_t;
typedef CUuserObject cudaUserObject_t;
typedef CUhostFn cudaHostFn_t;
typedef void (*cudaStreamCallback_t)(cudaStream_t stream, cudaError_t status, void *userData);
typedef CUipcEventHandle cudaIpcEventHandle_t;
typedef CUipcMemHandle cudaIpcMemHandle_t;
typedef CUgraphEdgeData cudaGraphEdgeData;
typedef CUgraphExecUpdateResultInfo cudaGraphExecUpdateResultInfo;
typedef CUDA_GRAPH_INSTANTIATE_PARAMS cudaGraphInstantiateParams;
typedef struct CUuuid_st cudaUUID_t;
/* Enumerations passed as int: their constants are in the lists of abi.h. */
enum cudaMemcpyKind { HB_ABI_MEMCPY_KIND_ };
enum cudaStreamCaptureMode { HB_ABI_CAPTURE_MODE_ };
enum cudaStreamCaptureStatus { HB_ABI_CAPTURE_STATUS_ };
enum cudaDeviceAttr { HB_ABI_DEVICE_ATTR_ };
enum cudaDeviceP2PAttr { HB_ABI_P2P_ATTR_ };
enum cudaFuncAttribute { HB_ABI_FUNC_ATTR_ };
enum cudaFuncCache { HB_ABI_FUNC_CACHE_ };
enum cudaSharedMemConfig { HB_ABI_SHARED_CONFIG_ };
enum cudaLimit { HB_ABI_LIMIT_ };
enum cudaDriverEntryPointQueryResult { HB_ABI_ENTRY_POINT_ };
enum cudaMemoryType { HB_ABI_MEMORY_TYPE_ };
enum cudaMemoryAdvise { HB_ABI_ADVISE_ };
enum cudaMemPoolAttr { HB_ABI_POOL_ATTR_ };
enum cudaMemAccessFlags { HB_ABI_ACCESS_FLAGS_ };
enum cudaMemAllocationHandleType { HB_ABI_HANDLE_TYPE_ };
enum cudaMemLocationType { HB_ABI_LOCATION_TYPE_ };
enum cudaMemAllocationType { HB_ABI_ALLOCATION_TYPE_ };
enum cudaGraphNodeType { HB_ABI_NODE_TYPE_ };
enum cudaJitOption { HB_ABI_JIT_OPTION_ };
enum cudaLibraryOption { HB_ABI_LIBRARY_OPTION_ };
typedef CUlaunchAttributeID cudaStreamAttrID;
typedef union cudaLaunchAttributeValue cudaStreamAttrValue;
typedef struct {
	unsigned int x, y, z;
} dim3;
struct cudaLaunchAttribute_st;
typedef struct {
	dim3 gridDim, blockDim;
	size_t dynamicSmemBytes;
	cudaStream_t stream;
	struct cudaLaunchAttribute_st *attrs;
	unsigned int numAttrs;
} cudaLaunchConfig_t;
struct cudaDeviceProp; /* written by the table in fronts/props.def */
struct cudaPointerAttributes {
	enum cudaMemoryType type;
	int device;
	void *devicePointer, *hostPointer;
#if HB_CUDART >= 13
	long reserved[8];
#endif
};
struct cudaFuncAttributes {
	size_t sharedSizeBytes, constSizeBytes, localSizeBytes;
	int maxThreadsPerBlock, numRegs, ptxVersion, binaryVersion, cacheModeCA, maxDynamicSharedSizeBytes,
	    preferredShmemCarveout, clusterDimMustBeSet, requiredClusterWidth, requiredClusterHeight,
	    requiredClusterDepth, clusterSchedulingPolicyPreference, nonPortableClusterSizeAllowed,
	    reserved[16];
};
struct cudaMemLocation {
	enum cudaMemLocationType type;
	int id;
};
struct cudaMemAccessDesc {
	struct cudaMemLocation location;
	enum cudaMemAccessFlags flags;
};
struct cudaMemPoolProps;
struct cudaPitchedPtr {
	void *ptr;
	size_t pitch, xsize, ysize;
};
struct cudaExtent {
	size_t width, height, depth;
};
struct cudaPos {
	size_t x, y, z;
};
struct cudaMemcpy3DParms {
	void *srcArray;
	struct cudaPos srcPos;
	struct cudaPitchedPtr srcPtr;
	void *dstArray;
	struct cudaPos dstPos;
	struct cudaPitchedPtr dstPtr;
	struct cudaExtent extent;
	enum cudaMemcpyKind kind;
};
struct cudaKernelNodeParams {
	void *func;
	dim3 gridDim, blockDim;
	unsigned int sharedMemBytes;
	void **kernelParams, **extra;
};
struct cudaMemsetParams;
struct cudaHostNodeParams;

#endif
