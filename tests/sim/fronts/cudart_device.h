/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Part of cudart.c: errors and devices. */

static cudaError_t do_cudaDriverGetVersion(int *version)
{
	if (!version)
		return cudaErrorInvalidValue;
	*version = 0;
	if (!have_driver)
		return cudaSuccess;
	DRIVER(cuDriverGetVersion(version));
}

static cudaError_t do_cudaRuntimeGetVersion(int *version)
{
	if (!version)
		return cudaErrorInvalidValue;
	*version = HB_ABI_RUNTIME_VERSION;
	return cudaSuccess;
}

static cudaError_t do_cudaGetLastError(void)
{
	cudaError_t r = self.last;

	self.last = cudaSuccess;
	return r;
}

static cudaError_t do_cudaPeekAtLastError(void)
{
	return self.last;
}

#define NAMED_ERROR(name, value) {value, #name},
static const struct {
	int code;
	const char *name;
} errors[] = {HB_ABI_RT_CONSTANTS(NAMED_ERROR)};

/* What applications print and some look for; the name says it for the others. */
static const struct {
	int code;
	const char *text;
} texts[] = {
    {cudaSuccess, "no error"},
    {cudaErrorInvalidValue, "invalid argument"},
    {cudaErrorMemoryAllocation, "out of memory"},
    {cudaErrorInitializationError, "initialization error"},
    {cudaErrorInvalidConfiguration, "invalid configuration argument"},
    {cudaErrorInvalidSymbol, "invalid device symbol"},
    {cudaErrorInsufficientDriver, "CUDA driver version is insufficient for CUDA runtime version"},
    {cudaErrorInvalidDeviceFunction, "invalid device function"},
    {cudaErrorNoDevice, "no CUDA-capable device is detected"},
    {cudaErrorInvalidDevice, "invalid device ordinal"},
    {cudaErrorInvalidResourceHandle, "invalid resource handle"},
    {cudaErrorNotReady, "device not ready"},
    {cudaErrorNotSupported, "operation not supported"},
    {cudaErrorStreamCaptureUnsupported, "operation not permitted when stream is capturing"},
};

static const char *do_cudaGetErrorName(cudaError_t error)
{
	for (size_t i = 0; i < sizeof(errors) / sizeof(*errors); i++)
		if (errors[i].code == (int)error && (!strncmp(errors[i].name, "cudaE", 5) || !error))
			return errors[i].name;
	return "unrecognized error code";
}

static const char *do_cudaGetErrorString(cudaError_t error)
{
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		if (texts[i].code == (int)error)
			return texts[i].text;
	return do_cudaGetErrorName(error);
}

static cudaError_t do_cudaGetDeviceCount(int *count)
{
	CUresult r;

	if (!have_driver)
		return cudaErrorInsufficientDriver;
	r = drv.cuInit(0);
	if (r)
		return (cudaError_t)r;
	DRIVER(cuDeviceGetCount(count));
}

static cudaError_t do_cudaGetDevice(int *device)
{
	if (!device)
		return cudaErrorInvalidValue;
	if (!have_driver)
		return cudaErrorInsufficientDriver;
	*device = self.device;
	return cudaSuccess;
}

static cudaError_t do_cudaSetDevice(int device)
{
	int n, old = self.device;
	cudaError_t r = do_cudaGetDeviceCount(&n);

	if (r)
		return r;
	if (device < 0 || device >= n || device >= MAX_DEVICES)
		return cudaErrorInvalidDevice;
	self.device = device;
	r = ready();
	if (r)
		self.device = old;
	return r;
}

static cudaError_t do_cudaSetDeviceFlags(unsigned int flags)
{
	READY();
	DRIVER(cuDevicePrimaryCtxSetFlags_v2(self.device, flags));
}

static cudaError_t do_cudaDeviceSynchronize(void)
{
	READY();
	DRIVER(cuCtxSynchronize());
}

static cudaError_t do_cudaDeviceReset(void)
{
	READY();
	DRIVER(cuDevicePrimaryCtxReset_v2(self.device));
}

static cudaError_t do_cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device)
{
	READY();
	DRIVER(cuDeviceGetAttribute(value, (CUdevice_attribute)attribute, device));
}

static cudaError_t do_cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
	READY();
	DRIVER(cuDeviceCanAccessPeer(can, device, peer));
}

static cudaError_t do_cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
	READY();
	DRIVER(cuCtxGetStreamPriorityRange(least, greatest));
}

static cudaError_t do_cudaGetDriverEntryPointByVersion(const char *symbol, void **pfn, unsigned int version,
						       unsigned long long flags,
						       enum cudaDriverEntryPointQueryResult *status)
{
	CUdriverProcAddressQueryResult found;
	CUresult r;

	READY();
	r = drv.cuGetProcAddress_v2(symbol, pfn, (int)version, flags, &found);
	if (status)
		*status = (enum cudaDriverEntryPointQueryResult)found;
	return r == CUDA_ERROR_NOT_FOUND ? cudaSuccess : (cudaError_t)r;
}

static cudaError_t do_cudaGetDriverEntryPoint(const char *symbol, void **pfn, unsigned long long flags,
					      enum cudaDriverEntryPointQueryResult *status)
{
	return do_cudaGetDriverEntryPointByVersion(symbol, pfn, HB_ABI_RUNTIME_VERSION, flags, status);
}

static cudaError_t do_cudaInitDevice(int device, unsigned int device_flags, unsigned int flags)
{
	int old = self.device;
	cudaError_t r = do_cudaSetDevice(device);

	if (!r && old != device)
		r = do_cudaSetDevice(old);
	return r;
}

static cudaError_t do_cudaDeviceEnablePeerAccess(int peer, unsigned int flags)
{
	CUcontext ctx = NULL;
	CUresult r;

	READY();
	if (peer < 0 || peer >= MAX_DEVICES || peer == self.device)
		return cudaErrorInvalidDevice;
	r = retain(peer, &ctx);
	return r ? (cudaError_t)r : (cudaError_t)drv.cuCtxEnablePeerAccess(ctx, flags);
}

static cudaError_t do_cudaDeviceDisablePeerAccess(int peer)
{
	READY();
	return peer < 0 || peer >= MAX_DEVICES ? cudaErrorInvalidDevice : cudaErrorPeerAccessNotEnabled;
}

/* ---- properties of a device ---- */

static const struct {
	short bytes, at, attribute;
} members[] = {
#if HB_CUDART == 12
#define R(member, bytes, at12, at13, attribute) {bytes, at12, attribute},
#define R12(member, bytes, at, attribute)	{bytes, at, attribute},
#else
#define R(member, bytes, at12, at13, attribute) {bytes, at13, attribute},
#define R12(member, bytes, at, attribute)
#endif
#include "props.def"
#undef R
#undef R12
};

#define PROP_SIZE	  (HB_CUDART == 12 ? 1032 : 1008)
#define PROP_UUID	  256
#define PROP_TOTAL_MEMORY 288
#ifdef HB_SIM_REAL_HEADERS
_Static_assert(sizeof(struct cudaDeviceProp) == PROP_SIZE &&
		   offsetof(struct cudaDeviceProp, uuid) == PROP_UUID &&
		   offsetof(struct cudaDeviceProp, totalGlobalMem) == PROP_TOTAL_MEMORY,
	       "cudaDeviceProp");
#define CHECK_AT(member, bytes, at)                                                                          \
	_Static_assert(offsetof(struct cudaDeviceProp, member) == (at) &&                                    \
			   sizeof(((struct cudaDeviceProp *)0)->member) == (bytes),                          \
		       #member);
#if HB_CUDART == 12
#define R(member, bytes, at12, at13, attribute) CHECK_AT(member, bytes, at12)
#define R12(member, bytes, at, attribute)	CHECK_AT(member, bytes, at)
#else
#define R(member, bytes, at12, at13, attribute) CHECK_AT(member, bytes, at13)
#define R12(member, bytes, at, attribute)
#endif
#include "props.def"
#undef R
#undef R12
#endif

static cudaError_t get_properties(struct cudaDeviceProp *prop, int device)
{
	char *out = (char *)prop;
	CUresult r = CUDA_SUCCESS;
	size_t total = 0;

	READY();
	if (!prop)
		return cudaErrorInvalidValue;
	r = drv.cuDeviceTotalMem_v2(&total, device);
	if (r)
		return (cudaError_t)r;
	memset(out, 0, PROP_SIZE);
	r = drv.cuDeviceGetName(out, 256, device);
	if (!r)
		r = drv.cuDeviceGetUuid_v2((CUuuid *)(out + PROP_UUID), device);
	memcpy(out + PROP_TOTAL_MEMORY, &total, sizeof(total));
	for (size_t i = 0; i < sizeof(members) / sizeof(*members) && !r; i++) {
		int value = 0;
		size_t wide;

		r = drv.cuDeviceGetAttribute(&value, (CUdevice_attribute)members[i].attribute, device);
		wide = (size_t)value;
		memcpy(out + members[i].at, &wide, (size_t)members[i].bytes);
	}
	return (cudaError_t)r;
}

#if HB_CUDART == 12
static cudaError_t do_cudaGetDeviceProperties_v2(struct cudaDeviceProp *prop, int device)
#else
static cudaError_t do_cudaGetDeviceProperties(struct cudaDeviceProp *prop, int device)
#endif
{
	return get_properties(prop, device);
}
