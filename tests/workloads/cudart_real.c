/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Calls NVIDIA's own runtime library known numbers of times. Without a device every call fails, but it is
 * made. Built with HB_STATIC the runtime is linked in, as nvcc does by default: a tracer then finds no
 * library to probe.
 */
#include "workload.h"

#define CALLS(C)                                                                                             \
	C(cudaGetDeviceCount, 3, (int *), (&n))                                                              \
	C(cudaMalloc, 5, (void **, size_t), (&p, 4096))                                                      \
	C(cudaMemcpyAsync, 7, (void *, const void *, size_t, int, void *),                                   \
	  (buffer, buffer + 64, 64, 1, NULL))                                                                \
	C(cudaLaunchKernel, 11, (const void *, struct dim3, struct dim3, void **, size_t, void *),           \
	  (buffer, one, one, NULL, 0, NULL))                                                                 \
	C(cudaStreamSynchronize, 13, (void *), (NULL))

#ifdef HB_STATIC
#define DECLARE(name, times, params, args) int name params;
#define FIND(name, times, params, args)
#else
#define DECLARE(name, times, params, args) static int(*name) params;
#define FIND(name, times, params, args)	   must_find(lib, #name, &name);
#endif
CALLS(DECLARE)

static char buffer[256];
static const char *separator = "";

static void print(const char *name, int times, int code)
{
	printf("%s\"%s\": {\"count\": %d, \"ret\": %d}", separator, name, times, code);
	separator = ", ";
}

#define MAKE(name, times, params, args)                                                                      \
	for (int i = 0; i < (times)*scale; i++)                                                              \
		rc = name args;                                                                              \
	print(#name, (times)*scale, rc);

int main(int argc, char **argv)
{
	const char *path = argc > 1 ? argv[1] : "/usr/local/cuda/lib64/libcudart.so.13";
	int scale = argc > 2 ? (int)number(argv[2], "the factor", 1000000) : 1, rc = 0, n = 0;
	struct dim3 one = {1, 1, 1};
	void *p = NULL;
#ifndef HB_STATIC
	void *lib = must_load(path);

	CALLS(FIND)
#endif
	meet("ready");
	printf("{\"pid\": %d, \"library\": \"%s\", \"calls\": {", (int)getpid(), path);
	CALLS(MAKE)
	printf("}}\n");
	meet("done");
	return 0;
}
