/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the C workloads share: loading, pacing, waiting for a line, and the CUDA types they pass, in our own
 * words. */
#ifndef HB_WORKLOAD_H
#define HB_WORKLOAD_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct dim3 {
	unsigned x, y, z;
};

static inline uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline void sleep_until(uint64_t ns)
{
	struct timespec t = {.tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u)};

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

/* Tells the test, and goes on when it has written a line; ends with the test. */
static inline void meet(const char *word)
{
	char line[64];

	printf("{\"state\": \"%s\", \"pid\": %d}\n", word, (int)getpid());
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		exit(0);
}

static inline void *must_load(const char *path)
{
	void *lib = dlopen(path, RTLD_NOW | RTLD_GLOBAL);

	if (!lib) {
		fprintf(stderr, "cannot load %s: %s\n", path, dlerror());
		exit(1);
	}
	return lib;
}

static inline void must_find(void *lib, const char *name, void *function)
{
	*(void **)function = dlsym(lib, name);
	if (!*(void **)function) {
		fprintf(stderr, "no %s: %s\n", name, dlerror());
		exit(1);
	}
}

static inline long number(const char *text, const char *what, long max)
{
	char *end;
	long v = strtol(text, &end, 10);

	if (end == text || *end || v < 0 || v > max) {
		fprintf(stderr, "%s must be a number from 0 to %ld, not %s\n", what, max, text);
		exit(2);
	}
	return v;
}

#endif
