/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A thread pool that is given tasks of 1 us one round at a time: each round wakes its threads, and they park
 * again. The thread that launches waits for 160 such rounds in each step.
 *	--batch		the same tasks in one round
 */
#include "planted.h"

#define POOL	2
#define ROUNDS	160
#define TASK_NS 1000
#define KERNELS 4

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work = PTHREAD_COND_INITIALIZER, done = PTHREAD_COND_INITIALIZER;
static int round_number, left, batch;
static uint64_t parked; /* sleeps of the pool's threads; with the lock held */

static void *pool_thread(void *arg)
{
	char role[16];
	int mine = 0;

	snprintf(role, sizeof(role), "pool-%d", (int)(intptr_t)arg);
	planted_thread(role);
	pthread_mutex_lock(&lock);
	for (;;) {
		while (round_number == mine) {
			parked++;
			pthread_cond_wait(&work, &lock);
		}
		mine = round_number;
		pthread_mutex_unlock(&lock);
		planted_spin((uint64_t)TASK_NS * (uint64_t)batch);
		pthread_mutex_lock(&lock);
		if (--left == 0)
			pthread_cond_signal(&done);
	}
	return NULL;
}

static void parallel_for(void)
{
	pthread_mutex_lock(&lock);
	round_number++;
	left = POOL;
	pthread_cond_broadcast(&work);
	while (left)
		pthread_cond_wait(&done, &lock);
	pthread_mutex_unlock(&lock);
}

static uint64_t parked_now(void)
{
	uint64_t n;

	pthread_mutex_lock(&lock);
	n = parked;
	pthread_mutex_unlock(&lock);
	return n;
}

int main(int argc, char **argv)
{
	int rounds;
	pthread_t t;

	batch = argc > 1 && !strcmp(argv[1], "--batch") ? ROUNDS : 1;
	rounds = ROUNDS / batch;
	planted_begin();
	planted_thread("dispatch");
	device_open("layer_1ms");
	for (int i = 0; i < POOL; i++)
		if (pthread_create(&t, NULL, pool_thread, (void *)(intptr_t)i))
			return 1;
	puts("ready");
	fflush(stdout);
	while (!planted_stop) {
		uint64_t begin = now_ns(), before = parked_now();

		for (int i = 0; i < rounds; i++)
			parallel_for();
		planted_note("cause", begin, now_ns(), parked_now() - before);
		device_step(KERNELS);
	}
	planted_leave();
}
