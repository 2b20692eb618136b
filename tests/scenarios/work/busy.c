/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * An engine whose thread has to wait for a CPU. Each step: 1 ms of its own work, while the
 * device works for 2 ms on the step before.
 *	--others N CPU	N other processes want the same CPU all the time; they are none of the engine's
 *	--apart N CPU	the same, but the engine's thread comes before them (as if they had a CPU of their
 *own)
 *	--pool N	N threads of its own compute (compilers, tokenizers)
 * With HB_CGROUP it joins that group.
 */
#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include "planted.h"

#define WORK_NS 300000
#define KERNELS 4

/* How long this thread has been ready to run without running, as the kernel counts. */
static uint64_t waited_for_cpu(void)
{
	static int fd = -1;
	char path[64], text[128] = "";
	unsigned long long ran, waited = 0;

	if (fd < 0) {
		snprintf(path, sizeof(path), "/proc/self/task/%d/schedstat", planted_tid());
		fd = open(path, O_RDONLY);
	}
	if (pread(fd, text, sizeof(text) - 1, 0) <= 0 || sscanf(text, "%llu %llu", &ran, &waited) != 2)
		exit(1);
	return waited;
}

static uint64_t cpu_time(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void prepare_inputs(void)
{
	for (uint64_t end = cpu_time() + WORK_NS; cpu_time() < end;)
		;
}

static void join(const char *group)
{
	char path[512];
	FILE *f;

	snprintf(path, sizeof(path), "%s/cgroup.procs", group);
	f = fopen(path, "w");
	if (!f || fprintf(f, "%d\n", (int)getpid()) < 0 || fclose(f)) {
		fprintf(stderr, "cannot join %s\n", group);
		exit(1);
	}
}

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		exit(1);
}

/* Not a child of the engine: whoever follows its descendants does not come here. */
static void other_process(void)
{
	if (fork() != 0)
		return;
	if (fork() != 0)
		_exit(0);
	prctl(PR_SET_NAME, "batch-job");
	signal(SIGTERM, SIG_DFL);
	for (;;)
		;
}

static void *pool(void *arg)
{
	(void)arg;
	prctl(PR_SET_NAME, "compile-pool");
	while (!planted_stop)
		;
	return NULL;
}

static void company(int argc, char **argv)
{
	int n = argc > 2 ? (int)number(argv[2], "the number of others", 64) : 0;
	bool others = n && strcmp(argv[1], "--pool");
	pthread_t t;

	if (others)
		pin(argc > 3 ? (int)number(argv[3], "the CPU", 1023) : 0);
	for (int i = 0; i < n; i++)
		if (others)
			other_process();
		else if (pthread_create(&t, NULL, pool, NULL))
			exit(1);
	if (others && !strcmp(argv[1], "--apart")) {
		struct sched_param first = {.sched_priority = 1};

		if (sched_setscheduler(0, SCHED_RR, &first))
			exit(1);
	}
}

int main(int argc, char **argv)
{
	if (getenv("HB_CGROUP"))
		join(getenv("HB_CGROUP"));
	planted_begin();
	planted_thread("dispatch");
	device_open("layer_1ms");
	company(argc, argv);
	puts("ready");
	fflush(stdout);
	while (!planted_stop) {
		uint64_t begin = now_ns(), before = waited_for_cpu();

		prepare_inputs();
		device_step(KERNELS);
		planted_note("step", begin, now_ns(), waited_for_cpu() - before);
	}
	planted_leave();
}
