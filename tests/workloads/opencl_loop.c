/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A real OpenCL program with a real kernel: known numbers of NDRange enqueues, writes, reads and clFinish. */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include "workload.h"

#define N 4096

static const char *source = "__kernel void scale(__global float *a, float f) {"
			    "  int i = get_global_id(0);"
			    "  for (int k = 0; k < 200; k++) a[i] = a[i] * f + 1.0f;"
			    "}";

static void check(cl_int rc, const char *what)
{
	if (rc == CL_SUCCESS)
		return;
	fprintf(stderr, "%s failed: %d\n", what, rc);
	exit(1);
}

static cl_device_id find_device(void)
{
	cl_platform_id platform;
	cl_device_id device;
	cl_uint n = 0;

	if (clGetPlatformIDs(1, &platform, &n) != CL_SUCCESS || !n) {
		fprintf(stderr, "no OpenCL platform: install pocl-opencl-icd\n");
		exit(77);
	}
	check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL), "clGetDeviceIDs");
	return device;
}

int main(int argc, char **argv)
{
	long rounds = argc > 1 ? number(argv[1], "rounds", 1000000) : 50;
	cl_device_id device = find_device();
	cl_int rc;
	cl_context ctx = clCreateContext(NULL, 1, &device, NULL, NULL, &rc);
	size_t global = N;
	float f = 0.5f, data[N] = {0};
	cl_command_queue queue;
	cl_program program;
	cl_kernel kernel;
	cl_mem mem;

	check(rc, "clCreateContext");
	queue = clCreateCommandQueue(ctx, device, 0, &rc);
	check(rc, "clCreateCommandQueue");
	program = clCreateProgramWithSource(ctx, 1, &source, NULL, &rc);
	check(rc, "clCreateProgramWithSource");
	check(clBuildProgram(program, 1, &device, "", NULL, NULL), "clBuildProgram");
	kernel = clCreateKernel(program, "scale", &rc);
	check(rc, "clCreateKernel");
	mem = clCreateBuffer(ctx, CL_MEM_READ_WRITE, sizeof(data), NULL, &rc);
	check(rc, "clCreateBuffer");
	check(clSetKernelArg(kernel, 0, sizeof(mem), &mem), "clSetKernelArg");
	check(clSetKernelArg(kernel, 1, sizeof(f), &f), "clSetKernelArg");

	meet("ready");
	/* A round: one write, three kernels, one blocking read; every tenth ends with clFinish. */
	for (long i = 0; i < rounds; i++) {
		check(clEnqueueWriteBuffer(queue, mem, CL_FALSE, 0, sizeof(data), data, 0, NULL, NULL),
		      "write");
		for (int k = 0; k < 3; k++)
			check(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &global, NULL, 0, NULL, NULL),
			      "kernel");
		check(clEnqueueReadBuffer(queue, mem, CL_TRUE, 0, sizeof(data), data, 0, NULL, NULL), "read");
		if (i % 10 == 9)
			check(clFinish(queue), "clFinish");
	}
	printf("{\"pid\": %d, \"counts\": {\"clEnqueueWriteBuffer\": %ld, \"clEnqueueNDRangeKernel\": %ld, "
	       "\"clEnqueueReadBuffer\": %ld, \"clFinish\": %ld}, \"bytes\": %zu, \"value\": %.6f}\n",
	       (int)getpid(), rounds, rounds * 3, rounds, rounds / 10, sizeof(data), (double)data[7]);
	meet("done");
	return 0;
}
