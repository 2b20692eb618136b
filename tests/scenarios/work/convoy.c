/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Eight threads take turns at one lock, which seven of them keep while they wait for something slow; the one
 *that launches needs it for a moment in each step.
 *	--sharded	each has a lock of its own
 */
#include "planted.h"

#define WORKERS	 7
#define HOLD_NS	 300000 /* a sleep: some 50 us more */
#define APART_NS 300000
#define KERNELS	 4

static pthread_mutex_t locks[WORKERS + 1];
static bool sharded;

static void nap(long ns)
{
	struct timespec t = {.tv_nsec = ns};

	nanosleep(&t, NULL);
}

static pthread_mutex_t *pool_lock(int who)
{
	return &locks[sharded ? who : 0];
}

static void take_blocks(int who, const char *kind, bool slowly)
{
	pthread_mutex_t *lock = pool_lock(who);
	uint64_t asked = now_ns(), got;

	pthread_mutex_lock(lock);
	got = now_ns();
	if (slowly)
		nap(HOLD_NS);
	pthread_mutex_unlock(lock);
	planted_note(kind, asked, got, (uint64_t)(uintptr_t)lock);
	planted_note("hold", got, now_ns(), 0);
}

static void *worker(void *arg)
{
	int who = (int)(intptr_t)arg;
	char role[16];

	snprintf(role, sizeof(role), "worker-%d", who);
	planted_thread(role);
	while (!planted_stop) {
		take_blocks(who, "worker-wait", true);
		nap(APART_NS);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t t;

	sharded = argc > 1 && !strcmp(argv[1], "--sharded");
	planted_begin();
	planted_thread("dispatch");
	device_open("layer_1ms");
	for (int i = 0; i <= WORKERS; i++)
		pthread_mutex_init(&locks[i], NULL);
	for (int i = 1; i <= WORKERS; i++)
		if (pthread_create(&t, NULL, worker, (void *)(intptr_t)i))
			return 1;
	puts("ready");
	fflush(stdout);
	while (!planted_stop) {
		take_blocks(0, "cause", false);
		device_step(KERNELS);
	}
	nap(50000000); /* the others are about to see it too */
	planted_leave();
}
