/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How fast a profiler's trace is imported, and in how much memory: a made one of so many MB, as indented as
 * the profiler writes it, or a file. usage: bench_import MB | TRACE.json[.gz]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "analysis/import/import.h"
#include "bench.h"

#define GOAL 150.0 /* MB a second */

/* A launch as a model's step has it: two Python functions, an operator, the call, its kernel, two arrows. */
static void put_step(FILE *f, u64 i)
{
	u64 t = i * 40;

	fprintf(f,
		"%s\n  {\n    \"ph\": \"X\", \"cat\": \"python_function\", \"name\": "
		"\"torch/nn/modules/module.py(%d): _call_impl\", \"pid\": 77, "
		"\"tid\": 77,\n    \"ts\": %llu.125, \"dur\": 30.500,\n    \"args\": {\n      \"Python "
		"parent id\": %llu, \"Python id\": "
		"%llu, \"Ev Idx\": %llu\n    }\n  },\n  {\n    \"ph\": \"X\", \"cat\": \"python_function\", "
		"\"name\": \"nn.Module: "
		"Linear_%d\", \"pid\": 77, \"tid\": 77,\n    \"ts\": %llu.225, \"dur\": 29.100,\n    "
		"\"args\": {\n      \"Python parent "
		"id\": %llu, \"Python id\": %llu, \"Python module id\": 7, \"Ev Idx\": %llu\n    }\n  }",
		i ? "," : "", (int)(i % 7), (unsigned long long)t, (unsigned long long)i,
		(unsigned long long)i, (unsigned long long)i, (int)(i % 224), (unsigned long long)t,
		(unsigned long long)i, (unsigned long long)i, (unsigned long long)i);
	fprintf(f,
		",\n  {\n    \"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"aten::addmm\", \"pid\": 77, "
		"\"tid\": 77,\n    \"ts\": %llu.500, "
		"\"dur\": 25.010,\n    \"args\": {\n      \"External id\": %llu, \"Record function id\": 0, "
		"\"Concrete Inputs\": [\"\", \"\", "
		"\"\", \"1\", \"1\"], \"Input type\": [\"c10::BFloat16\", \"c10::BFloat16\", "
		"\"c10::BFloat16\", \"Scalar\", \"Scalar\"], "
		"\"Input Strides\": [[1], [1024, 1], [1, 1024], [], []], \"Input Dims\": [[%d], [8944, "
		"1024], [1024, %d], [], []], \"Ev "
		"Idx\": %llu\n    }\n  }",
		(unsigned long long)t, (unsigned long long)i, 1024 << i % 3, 1024 << i % 3,
		(unsigned long long)i);
	fprintf(f,
		",\n  {\n    \"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": \"cudaLaunchKernel\", "
		"\"pid\": 77, \"tid\": 77,\n    \"ts\": "
		"%llu.750, \"dur\": 5.230,\n    \"args\": {\n      \"External id\": %llu, \"cbid\": 211, "
		"\"correlation\": %llu\n    }\n  },\n "
		" {\n    \"ph\": \"s\", \"id\": %llu, \"pid\": 77, \"tid\": 77, \"ts\": %llu.750,\n    "
		"\"cat\": \"ac2g\", \"name\": \"ac2g\"\n "
		" }",
		(unsigned long long)t, (unsigned long long)i, (unsigned long long)i, (unsigned long long)i,
		(unsigned long long)t);
	fprintf(f,
		",\n  {\n    \"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"void "
		"cutlass::Kernel2<cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_32x32_128x2_tn_align8>("
		"cutlass_80_wmma_tensorop_bf16_"
		"s161616gemm_bf16_32x32_128x2_tn_align%d::Params)\", \"pid\": 0, \"tid\": 7,\n    \"ts\": "
		"%llu.001, \"dur\": 12.345,\n    "
		"\"args\": {\n      \"External id\": %llu, \"queued\": 0, \"device\": 0, \"context\": 1, "
		"\"stream\": 7, \"correlation\": %llu, "
		"\"registers per thread\": 128, \"shared memory\": 98304, \"blocks per SM\": 1.939394, "
		"\"warps per SM\": 15.515152, "
		"\"grid\": [16, 16, 1], \"block\": [256, 1, 1], \"est. achieved occupancy %%\": 25\n    }\n  "
		"},\n  {\n    \"ph\": \"f\", "
		"\"id\": %llu, \"pid\": 0, \"tid\": 7, \"ts\": %llu.001,\n    \"cat\": \"ac2g\", \"name\": "
		"\"ac2g\", \"bp\": \"e\"\n  }",
		(int)(i % 9), (unsigned long long)t + 9, (unsigned long long)i, (unsigned long long)i,
		(unsigned long long)i, (unsigned long long)t + 9);
}

static int make(const char *path, u64 size)
{
	FILE *f = fopen(path, "w");

	if (!f)
		return 1;
	fprintf(f, "{\n  \"schemaVersion\": 1,\n  \"baseTimeNanoseconds\": 1751410836000000000,\n  "
		   "\"traceEvents\": [");
	for (u64 i = 0; (u64)ftell(f) < size; i++)
		put_step(f, i);
	fprintf(f, "\n]}\n");
	return fclose(f);
}

static int measure(const char *trace)
{
	char out[] = "/tmp/bench_import.XXXXXX";
	struct hb_import_opts o = {.path = trace, .output = out, .force = true};
	struct hb_import_stats s;
	struct hb_error e = {0};
	int fd = mkstemp(out);
	u64 began = hb_clock__now();
	double wall, cpu;
	struct rusage use;

	if (fd < 0 || hb_import__run(&o, &s, &e)) {
		fprintf(stderr, "bench_import: %s\n", fd < 0 ? "no temporary file" : e.text);
		return 1;
	}
	wall = (double)(hb_clock__now() - began) / 1e9;
	cpu = bench__cpu_s(RUSAGE_SELF);
	getrusage(RUSAGE_SELF, &use);
	printf(
	    "%.0f MB, %.2f M rows: %.0f MB/s, %.0f MB per CPU second, %.2f M rows/s, peak memory %ld MB%s\n",
	    (double)s.bytes / 1e6, (double)s.rows / 1e6, (double)s.bytes / 1e6 / wall,
	    (double)s.bytes / 1e6 / cpu, (double)s.rows / 1e6 / wall, use.ru_maxrss / 1024,
	    s.tmp ? ", sorted on disk" : "");
	bench__target("import of 150 MB of JSON a second", (double)s.bytes / 1e6 / wall >= GOAL);
	bench__target("import in 256 MB of memory", use.ru_maxrss / 1024 <= 256);
	close(fd);
	unlink(out);
	return 0;
}

int main(int argc, char **argv)
{
	char *end, made[] = "/tmp/bench_import_trace.XXXXXX";
	u64 mb = strtoull(argc > 1 ? argv[1] : "1000", &end, 10);
	bool file = *end || !mb;
	int fd = file ? -1 : mkstemp(made), rc;

	if (file)
		return measure(argv[1]);
	if (fd < 0 || make(made, mb * 1000000)) {
		perror("bench_import: the trace");
		return 1;
	}
	close(fd);
	/* In a process of its own: what making the trace cost is not counted. */
	rc = fork();
	if (!rc)
		_exit(measure(made) || fflush(stdout));
	rc = rc < 0 || waitpid(rc, &rc, 0) < 0 || rc;
	unlink(made);
	return rc;
}
