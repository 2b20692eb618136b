/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Processes that a unit test starts; include after cmocka.h. They die with the test. */
#ifndef HB_TEST_CHILDREN_H
#define HB_TEST_CHILDREN_H

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* A child that runs `body`, says that it is ready and then waits to be killed. */

static inline pid_t start(void (*body)(void *), void *arg)
{
	int ready[2];
	char c;
	pid_t pid;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (body)
			body(arg);
		if (write(ready[1], "r", 1) != 1)
			_exit(9);
		for (;;)
			pause();
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &c, 1), 1);
	close(ready[0]);
	return pid;
}

static inline void stop(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static inline bool has(const uint32_t *ids, uint32_t n, uint32_t id)
{
	for (uint32_t i = 0; i < n; i++)
		if (ids[i] == id)
			return true;
	return false;
}

/* For polling loops. */
static inline void wait_a_moment(void)
{
	nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

#endif
