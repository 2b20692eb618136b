/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* planted.py for workloads in C: the truth of what they did, and a stream of the simulated accelerator. */
#ifndef HB_PLANTED_H
#define HB_PLANTED_H

#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include "workload.h"

#define MAX_NOTES 400000

struct planted_note {
	const char *kind;
	uint64_t begin, end;
	uint64_t value; /* what the kind says it is */
	int tid;
};

static struct planted_note *planted_notes;
static _Atomic int planted_n;
static volatile sig_atomic_t planted_stop;
static FILE *planted_file;

static void planted_end(int sig)
{
	(void)sig;
	planted_stop = 1;
}

static inline int planted_tid(void)
{
	return (int)syscall(SYS_gettid);
}

/* To be called first, by the main thread of each process. */
static inline void planted_begin(void)
{
	char path[512];

	signal(SIGTERM, planted_end);
	snprintf(path, sizeof(path), "%s/%d.jsonl", getenv("HB_PLANTED"), (int)getpid());
	planted_file = fopen(path, "w");
	planted_notes = calloc(MAX_NOTES, sizeof(*planted_notes));
	if (!planted_file || !planted_notes) {
		fprintf(stderr, "no place for the truth in %s\n", path);
		exit(1);
	}
}

/* Names the calling thread, for the kernel and in the truth. */
static inline void planted_thread(const char *role)
{
	prctl(PR_SET_NAME, role);
	fprintf(planted_file, "{\"thread\": \"%s\", \"pid\": %d, \"tid\": %d}\n", role, (int)getpid(),
		planted_tid());
}

static inline void planted_note(const char *kind, uint64_t begin, uint64_t end, uint64_t value)
{
	int i = planted_n++;

	if (i < MAX_NOTES)
		planted_notes[i] = (struct planted_note){kind, begin, end, value, planted_tid()};
}

/* Writes the truth of this process; to be called last. */
static inline void planted_leave(void)
{
	for (int i = 0; i < planted_n && i < MAX_NOTES; i++) {
		const struct planted_note *n = &planted_notes[i];

		fprintf(planted_file,
			"{\"span\": \"%s\", \"tid\": %d, \"begin\": %llu, \"end\": %llu, \"value\": %llu}\n",
			n->kind, n->tid, (unsigned long long)n->begin, (unsigned long long)n->end,
			(unsigned long long)n->value);
	}
	fclose(planted_file);
	if (planted_n > MAX_NOTES) {
		fprintf(stderr, "the truth has more than %d notes\n", MAX_NOTES);
		exit(1);
	}
	_exit(0);
}

static inline void planted_spin(uint64_t ns)
{
	for (uint64_t end = now_ns() + ns; now_ns() < end;)
		;
}

/* ---- the device ---- */

static struct {
	int (*launch)(const void *, struct dim3, struct dim3, void **, size_t, void *);
	int (*wait)(void *);
	void *stream;
	char kernel; /* its address stands for the kernel */
} device;

static inline void device_open(const char *kernel)
{
	char path[512];
	void *lib, **fat;
	int (*stream)(void **, unsigned);
	void **(*image)(void *);
	void (*function)(void **, const char *, char *, const char *, int, void *, void *, void *, void *,
			 int *);

	snprintf(path, sizeof(path), "%s/libcudart.so.13", getenv("HB_SIM_LIB"));
	lib = must_load(path);
	must_find(lib, "cudaLaunchKernel", &device.launch);
	must_find(lib, "cudaStreamSynchronize", &device.wait);
	must_find(lib, "cudaStreamCreateWithFlags", &stream);
	must_find(lib, "__cudaRegisterFatBinary", &image);
	must_find(lib, "__cudaRegisterFunction", &function);
	fat = image(NULL);
	function(fat, &device.kernel, NULL, kernel, -1, NULL, NULL, NULL, NULL, NULL);
	if (stream(&device.stream, 1)) {
		fprintf(stderr, "no stream\n");
		exit(1);
	}
}

/* One step of so many kernels. */
static inline void device_step(int kernels)
{
	struct dim3 grid = {132, 1, 1}, block = {256, 1, 1};

	for (int i = 0; i < kernels; i++)
		device.launch(&device.kernel, grid, block, NULL, 0, device.stream);
	device.wait(device.stream);
}

#endif
