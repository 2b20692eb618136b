/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Part of cuda.c: modules, functions, occupancy, launches. */

/* ---- modules and functions ---- */

static CUresult do_cuModuleLoadData(CUmodule *module, const void *image)
{
	NEEDED(module);
	return image ? hb_module__load(image, (struct hb_module **)module) : CUDA_ERROR_INVALID_IMAGE;
}

static CUresult do_cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int n,
				      CUjit_option *options, void **values)
{
	return do_cuModuleLoadData(module, image);
}

static CUresult do_cuModuleLoadFatBinary(CUmodule *module, const void *image)
{
	return do_cuModuleLoadData(module, image);
}

static CUresult do_cuModuleLoad(CUmodule *module, const char *path)
{
	char *data = NULL;
	CUresult r;
	FILE *f;
	long n;

	NEEDED(module && path ? module : NULL);
	f = fopen(path, "re");
	if (!f)
		return CUDA_ERROR_FILE_NOT_FOUND;
	if (!fseek(f, 0, SEEK_END) && (n = ftell(f)) > 0 && (data = calloc(1, (size_t)n + 1)) != NULL) {
		rewind(f);
		n = (long)fread(data, 1, (size_t)n, f);
	}
	fclose(f);
	r = data ? do_cuModuleLoadData(module, data) : CUDA_ERROR_INVALID_IMAGE;
	free(data); /* what is needed of it has been read */
	return r;
}

static CUresult do_cuModuleUnload(CUmodule module)
{
	struct hb_module *m;

	OBJECT(m, module, HB_MODULE);
	return hb_module__unload(m);
}

static CUresult do_cuModuleGetLoadingMode(CUmoduleLoadingMode *mode)
{
	NEEDED(mode);
	*mode = 2; /* lazy */
	return CUDA_SUCCESS;
}

static CUresult do_cuModuleGetGlobal_v2(CUdeviceptr *ptr, size_t *bytes, CUmodule module, const char *name)
{
	struct hb_module *m;
	u64 addr = 0, size = 0;
	CUresult r;

	OBJECT(m, module, HB_MODULE);
	r = hb_module__variable(m, name, &addr, &size);
	if (!r && ptr)
		*ptr = addr;
	if (!r && bytes)
		*bytes = size;
	return r;
}

static CUresult do_cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
	struct hb_module *m;

	NEEDED(function);
	OBJECT(m, module, HB_MODULE);
	return hb_module__function(m, name, (struct hb_function **)function);
}

static CUresult do_cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *options,
				     void **values, unsigned int n, CUlibraryOption *lib_options,
				     void **lib_values, unsigned int lib_n)
{
	return do_cuModuleLoadData((CUmodule *)library, code);
}

static CUresult do_cuLibraryLoadFromFile(CUlibrary *library, const char *path, CUjit_option *options,
					 void **values, unsigned int n, CUlibraryOption *lib_options,
					 void **lib_values, unsigned int lib_n)
{
	return do_cuModuleLoad((CUmodule *)library, path);
}

static CUresult do_cuLibraryGetModule(CUmodule *module, CUlibrary library)
{
	struct hb_module *m;

	NEEDED(module);
	OBJECT(m, library, HB_MODULE);
	*module = (CUmodule)m;
	return CUDA_SUCCESS;
}

static CUresult do_cuLibraryGetGlobal(CUdeviceptr *ptr, size_t *bytes, CUlibrary library, const char *name)
{
	return do_cuModuleGetGlobal_v2(ptr, bytes, (CUmodule)library, name);
}

static CUresult do_cuLibraryUnload(CUlibrary library)
{
	return do_cuModuleUnload((CUmodule)library);
}

static CUresult do_cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name)
{
	return do_cuModuleGetFunction((CUfunction *)kernel, (CUmodule)library, name);
}

static CUresult do_cuKernelGetFunction(CUfunction *function, CUkernel kernel)
{
	struct hb_function *f;

	NEEDED(function);
	OBJECT(f, kernel, HB_FUNCTION);
	*function = (CUfunction)f;
	return CUDA_SUCCESS;
}

static CUresult do_cuFuncGetName(const char **name, CUfunction function)
{
	struct hb_function *f;

	NEEDED(name);
	OBJECT(f, function, HB_FUNCTION);
	*name = f->name;
	return CUDA_SUCCESS;
}

static CUresult do_cuKernelGetName(const char **name, CUkernel kernel)
{
	return do_cuFuncGetName(name, (CUfunction)kernel);
}

static CUresult do_cuFuncGetModule(CUmodule *module, CUfunction function)
{
	struct hb_function *f;

	NEEDED(module);
	OBJECT(f, function, HB_FUNCTION);
	*module = (CUmodule)f->module;
	return CUDA_SUCCESS;
}

static CUresult do_cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction function)
{
	struct hb_function *f;

	NEEDED(value);
	OBJECT(f, function, HB_FUNCTION);
	if ((unsigned int)attribute > CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE)
		return CUDA_ERROR_INVALID_VALUE;
	*value = f->attributes[attribute];
	return CUDA_SUCCESS;
}

static CUresult do_cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value)
{
	struct hb_function *f;

	OBJECT(f, function, HB_FUNCTION);
	return hb_function__set(f, (int)attribute, value);
}

static CUresult do_cuKernelGetAttribute(int *value, CUfunction_attribute attribute, CUkernel kernel,
					CUdevice device)
{
	return hb_device__valid(device) ? do_cuFuncGetAttribute(value, attribute, (CUfunction)kernel)
					: CUDA_ERROR_INVALID_DEVICE;
}

static CUresult do_cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel,
					CUdevice device)
{
	return hb_device__valid(device) ? do_cuFuncSetAttribute((CUfunction)kernel, attribute, value)
					: CUDA_ERROR_INVALID_DEVICE;
}

/* Settings that change nothing here: checked for the function alone. */
static CUresult is_function(const void *h)
{
	struct hb_function *f;

	OBJECT(f, h, HB_FUNCTION);
	return CUDA_SUCCESS;
}

static CUresult do_cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache config, CUdevice device)
{
	return is_function(kernel);
}

static CUresult do_cuFuncSetCacheConfig(CUfunction function, CUfunc_cache config)
{
	return is_function(function);
}

static CUresult do_cuFuncSetSharedMemConfig(CUfunction function, CUsharedconfig config)
{
	return is_function(function);
}

static CUresult do_cuFuncLoad(CUfunction function)
{
	return is_function(function);
}

static CUresult do_cuFuncIsLoaded(CUfunctionLoadingState *state, CUfunction function)
{
	NEEDED(state);
	*state = 1;
	return is_function(function);
}

/* ---- occupancy ---- */

static CUresult do_cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function,
							       int block_size, size_t shared)
{
	struct hb_function *f;

	NEEDED(blocks);
	OBJECT(f, function, HB_FUNCTION);
	if (block_size <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	*blocks = hb_function__occupancy(f, block_size, shared);
	return CUDA_SUCCESS;
}

static CUresult do_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, CUfunction function,
									int block_size, size_t shared,
									unsigned int flags)
{
	return do_cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, block_size, shared);
}

static CUresult do_cuOccupancyMaxPotentialBlockSize(int *grid, int *block, CUfunction function,
						    CUoccupancyB2DSize shared_of, size_t shared, int limit)
{
	int best = 0, sms = 0;
	struct hb_function *f;

	NEEDED(grid && block ? grid : NULL);
	OBJECT(f, function, HB_FUNCTION);
	for (int n = limit > 0 && limit < 1024 ? limit / 32 * 32 : 1024; n > 0; n -= 32) {
		int fit = hb_function__occupancy(f, n, shared_of ? shared_of(n) : shared);

		if (fit * n > best) {
			best = fit * n;
			*block = n;
			*grid = fit;
		}
	}
	if (!best)
		return CUDA_ERROR_INVALID_VALUE;
	hb_device__attribute(0, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &sms);
	*grid *= sms;
	return CUDA_SUCCESS;
}

static CUresult do_cuOccupancyMaxPotentialBlockSizeWithFlags(int *grid, int *block, CUfunction function,
							     CUoccupancyB2DSize shared_of, size_t shared,
							     int limit, unsigned int flags)
{
	return do_cuOccupancyMaxPotentialBlockSize(grid, block, function, shared_of, shared, limit);
}

static CUresult do_cuOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, CUfunction function, int blocks,
							   int block_size)
{
	struct hb_function *f;
	int used;

	NEEDED(bytes);
	OBJECT(f, function, HB_FUNCTION);
	if (blocks <= 0 || block_size <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	used = f->attributes[CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES] + 1024;
	*bytes = 233472 / blocks > used ? (size_t)(233472 / blocks - used) : 0;
	return CUDA_SUCCESS;
}

static CUresult do_cuOccupancyMaxPotentialClusterSize(int *size, CUfunction function,
						      const CUlaunchConfig *config)
{
	NEEDED(size && config ? size : NULL);
	*size = 8;
	return is_function(function);
}

static CUresult do_cuOccupancyMaxActiveClusters(int *n, CUfunction function, const CUlaunchConfig *config)
{
	struct hb_function *f;
	int threads, sms = 0;

	NEEDED(n && config ? n : NULL);
	OBJECT(f, function, HB_FUNCTION);
	threads = (int)(config->blockDimX * config->blockDimY * config->blockDimZ);
	if (threads <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	hb_device__attribute(0, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &sms);
	*n = hb_function__occupancy(f, threads, config->sharedMemBytes) * sms / 8;
	return CUDA_SUCCESS;
}

/* ---- launches ---- */

struct launch {
	CUfunction f;
	unsigned int grid[3], block[3], shared;
	CUstream stream;
	void **params;
	bool per_thread;
};

static CUresult launch(const struct launch *l)
{
	u64 since = hb_now();
	struct hb_function *f;
	struct hb_stream *s;
	struct hb_work w = {.op = HB_OP_KERNEL};
	struct hb_coll *c;
	struct hb_hint hint;
	CUresult r;

	STREAM_OF(s, l->stream, l->per_thread);
	OBJECT(f, l->f, HB_FUNCTION);
	if (!l->grid[0] || !l->grid[1] || !l->grid[2] || !l->block[0] || !l->block[1] || !l->block[2] ||
	    (u64)l->block[0] * l->block[1] * l->block[2] > 1024 ||
	    (int)l->shared > f->attributes[CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES])
		return CUDA_ERROR_INVALID_VALUE;
	w.function = f;
	memcpy(w.grid, l->grid, sizeof(w.grid));
	memcpy(w.block, l->block, sizeof(w.block));
	w.shared = l->shared;
	hint = hb_hint__take();
	w.flops = hint.flops;
	w.bytes = hint.bytes;
	c = f->collective && l->params ? l->params[0] : NULL;
	if (c && c->magic == HB_COLL_MAGIC) {
		w.op = HB_OP_COLL;
		w.coll = c;
		hb_coll__check(c);
	}
	r = hb_stream__enqueue(s, &w);
	hb_costs__spin(since, hb_costs.launch_ns);
	return r;
}

static CUresult do_cuLaunchKernel(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz,
				  unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared,
				  CUstream stream, void **params, void **extra)
{
	return launch(&(struct launch){f, {gx, gy, gz}, {bx, by, bz}, shared, stream, params, false});
}

static CUresult do_cuLaunchKernel_ptsz(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz,
				       unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared,
				       CUstream stream, void **params, void **extra)
{
	return launch(&(struct launch){f, {gx, gy, gz}, {bx, by, bz}, shared, stream, params, true});
}

static CUresult launch_ex(const CUlaunchConfig *c, CUfunction f, void **params, bool per_thread)
{
	NEEDED(c);
	return launch(&(struct launch){f,
				       {c->gridDimX, c->gridDimY, c->gridDimZ},
				       {c->blockDimX, c->blockDimY, c->blockDimZ},
				       c->sharedMemBytes,
				       c->hStream,
				       params,
				       per_thread});
}

static CUresult do_cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f, void **params, void **extra)
{
	return launch_ex(config, f, params, false);
}

static CUresult do_cuLaunchKernelEx_ptsz(const CUlaunchConfig *config, CUfunction f, void **params,
					 void **extra)
{
	return launch_ex(config, f, params, true);
}

static CUresult do_cuLaunchCooperativeKernel(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz,
					     unsigned int bx, unsigned int by, unsigned int bz,
					     unsigned int shared, CUstream stream, void **params)
{
	return launch(&(struct launch){f, {gx, gy, gz}, {bx, by, bz}, shared, stream, params, false});
}

static CUresult do_cuLaunchCooperativeKernel_ptsz(CUfunction f, unsigned int gx, unsigned int gy,
						  unsigned int gz, unsigned int bx, unsigned int by,
						  unsigned int bz, unsigned int shared, CUstream stream,
						  void **params)
{
	return launch(&(struct launch){f, {gx, gy, gz}, {bx, by, bz}, shared, stream, params, true});
}

static CUresult host_function(CUstream stream, CUhostFn fn, void *arg, bool per_thread)
{
	struct hb_work w = {.op = HB_OP_HOST, .fn = fn, .arg = arg, .cost = 1000};
	struct hb_stream *s;

	NEEDED((void *)(uintptr_t)fn);
	STREAM_OF(s, stream, per_thread);
	return hb_stream__enqueue(s, &w);
}

static CUresult do_cuLaunchHostFunc(CUstream stream, CUhostFn fn, void *arg)
{
	return host_function(stream, fn, arg, false);
}

static CUresult do_cuLaunchHostFunc_ptsz(CUstream stream, CUhostFn fn, void *arg)
{
	return host_function(stream, fn, arg, true);
}

struct callback { /* an older kind of host function: it is told the stream and the result */
	CUstreamCallback fn;
	CUstream stream;
	void *arg;
};

static void call_back(void *arg)
{
	struct callback c = *(struct callback *)arg;

	free(arg);
	c.fn(c.stream, CUDA_SUCCESS, c.arg);
}

static CUresult do_cuStreamAddCallback(CUstream stream, CUstreamCallback callback, void *arg,
				       unsigned int flags)
{
	struct callback *c;
	struct hb_stream *s;
	CUresult r;

	NEEDED((void *)(uintptr_t)callback);
	STREAM(s, stream);
	if (s->capture) {
		hb_lock();
		hb_capture__break(s);
		hb_unlock();
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	}
	c = malloc(sizeof(*c));
	if (!c)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*c = (struct callback){callback, stream, arg};
	r = host_function(stream, call_back, c, false);
	if (r)
		free(c);
	return r;
}

/* ---- tensor maps: descriptors that kernels read; here nobody does, so what was asked for is written down
 * ---- */

static bool dims_are_valid(cuuint32_t rank, const cuuint64_t *dims, const cuuint64_t *strides,
			   const cuuint32_t *box, const cuuint32_t *steps)
{
	for (cuuint32_t i = 0; i < rank; i++) {
		if (!dims[i] || dims[i] > 1ull << 32 || !box[i] || box[i] > 256 || !steps[i] || steps[i] > 8)
			return false;
		if (i + 1 < rank && (strides[i] % 16 || strides[i] >= 1ull << 40))
			return false;
	}
	return true;
}

static CUresult do_cuTensorMapEncodeTiled(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank,
					  void *address, const cuuint64_t *dims, const cuuint64_t *strides,
					  const cuuint32_t *box, const cuuint32_t *element_strides,
					  CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
					  CUtensorMapL2promotion l2, CUtensorMapFloatOOBfill fill_kind)
{
	NEEDED(map && dims && box && element_strides ? map : NULL);
	if (!rank || rank > 5 || (rank > 1 && !strides) || HB_H(address) % 16 || HB_H(map) % 64 ||
	    (unsigned int)type > 15 || !dims_are_valid(rank, dims, strides, box, element_strides))
		return CUDA_ERROR_INVALID_VALUE;
	memset(map, 0, sizeof(*map));
	map->opaque[0] = HB_H(address);
	map->opaque[1] =
	    (u64)(u32)type | (u64)rank << 8 | (u64)(u32)swizzle << 16 | (u64)(u32)interleave << 24;
	memcpy(&map->opaque[2], dims, rank * sizeof(*dims));
	memcpy(&map->opaque[7], box, rank * sizeof(*box));
	return CUDA_SUCCESS;
}

static CUresult do_cuTensorMapReplaceAddress(CUtensorMap *map, void *address_new)
{
	NEEDED(map);
	if (HB_H(address_new) % 16)
		return CUDA_ERROR_INVALID_VALUE;
	map->opaque[0] = HB_H(address_new);
	return CUDA_SUCCESS;
}
