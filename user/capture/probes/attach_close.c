/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Closing a uprobe link waits for grace periods of RCU: tens of milliseconds each, one after the other from
 * one thread, hardly more than one's worth from many. Threads only sleep there, so their number costs nothing
 * but stacks.
 */
#include "capture/probes/attach_link.h"
#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_CLOSERS 64
/* Single uprobes are closed under one lock of the kernel, 0.1 s each, from however many threads; a thread
 * that waits for it cannot hand its fd to a child, and our exit would wait for all of them. */
#define SERIAL_CLOSERS 2
#define CLOSER_STACK   (64 << 10)

struct closing { /* shared by the closers and whoever waits; the last one frees it */
	pthread_mutex_t lock;
	pthread_cond_t done;
	int *fds;
	u32 n, next, closed;
	u32 refs;
};

static struct closing *closing_new(int *fds, u32 n)
{
	struct closing *c = calloc(1, sizeof(*c));
	pthread_condattr_t attr;

	if (!c)
		return NULL;
	pthread_mutex_init(&c->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&c->done, &attr);
	pthread_condattr_destroy(&attr);
	c->fds = fds;
	c->n = n;
	c->refs = 1;
	return c;
}

/* Called with the lock held; releases it. */
static void closing_put(struct closing *c)
{
	bool last = --c->refs == 0;

	pthread_mutex_unlock(&c->lock);
	if (!last)
		return;
	pthread_cond_destroy(&c->done);
	pthread_mutex_destroy(&c->lock);
	free(c->fds);
	free(c);
}

static void *closer(void *arg)
{
	struct closing *c = arg;

	pthread_mutex_lock(&c->lock);
	while (c->next < c->n) {
		int fd = c->fds[c->next++];

		pthread_mutex_unlock(&c->lock);
		close(fd);
		pthread_mutex_lock(&c->lock);
		if (++c->closed == c->n)
			pthread_cond_broadcast(&c->done);
	}
	closing_put(c);
	return NULL;
}

/* Starts up to one closer per fd; returns how many run. */
static u32 start_closers(struct closing *c, u32 most)
{
	u32 want = c->n < most ? c->n : most, started = 0;
	pthread_attr_t attr;
	pthread_t t;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, CLOSER_STACK);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	while (started < want) {
		pthread_mutex_lock(&c->lock);
		c->refs++;
		pthread_mutex_unlock(&c->lock);
		if (pthread_create(&t, &attr, closer, c)) {
			pthread_mutex_lock(&c->lock);
			closing_put(c); /* ours remains: never the last */
			break;
		}
		started++;
	}
	pthread_attr_destroy(&attr);
	return started;
}

static int by_value(const void *a, const void *b)
{
	int x = *(const int *)a, y = *(const int *)b;

	return x < y ? -1 : x > y;
}

static void close_others(const int *fds, u32 n)
{
	int at = 0;

	for (u32 i = 0; i < n; i++) {
		if (at < fds[i])
			syscall(__NR_close_range, (unsigned)at, (unsigned)fds[i] - 1, 0);
		at = fds[i] + 1;
	}
	syscall(__NR_close_range, (unsigned)at, ~0U, 0);
}

/* Until we have closed ours: whoever closes last pays. Our death opens the gate too. */
static void wait_at(int gate)
{
	struct pollfd p = {.fd = gate, .events = POLLIN};

	poll(&p, 1, 10000);
}

/* A grandchild inherits the fds, so that our own exit does not wait for them; it keeps nothing else open (a
 * pipe kept open would hold whoever reads our output) and pays for the closing by exiting. The child between
 * is reaped here. */
static void leave_to_child(int *fds, u32 n)
{
	int gate[2], *keep = malloc((n + 1) * sizeof(*keep));
	pid_t pid;

	if (!keep || pipe2(gate, O_CLOEXEC)) {
		free(keep);
		return; /* exit will close them, slowly */
	}
	memcpy(keep, fds, n * sizeof(*keep));
	keep[n] = gate[0];
	qsort(keep, n + 1, sizeof(*keep), by_value);
	pid = fork();
	if (pid == 0) {
		if (fork() == 0) {
			setsid();
			close_others(keep, n + 1);
			wait_at(gate[0]);
		}
		_exit(0);
	}
	if (pid > 0) {
		waitpid(pid, NULL, 0);
		for (u32 i = 0; i < n; i++)
			close(fds[i]);
	}
	close(gate[0]);
	close(gate[1]);
	free(keep);
}

static void wait_closed(struct closing *c, u64 deadline)
{
	struct timespec at = {(time_t)(deadline / 1000000000), (long)(deadline % 1000000000)};
	u32 rest;

	pthread_mutex_lock(&c->lock);
	while (c->closed < c->n && pthread_cond_timedwait(&c->done, &c->lock, &at) != ETIMEDOUT)
		;
	rest = c->next;
	c->next = c->n; /* closers take no more */
	if (rest < c->n)
		leave_to_child(c->fds + rest, c->n - rest);
	closing_put(c);
}

void hb_fds__close(int *fds, u32 n, bool serial, u64 deadline)
{
	struct closing *c = n ? closing_new(fds, n) : NULL;

	if (!c || !start_closers(
		      c, serial ? SERIAL_CLOSERS
				: MAX_CLOSERS)) { /* no memory or no threads: slowly, but it must be done */
		for (u32 i = 0; i < n; i++)
			close(fds[i]);
		free(fds);
		free(c);
		return;
	}
	if (deadline) {
		wait_closed(c, deadline);
		return;
	}
	pthread_mutex_lock(&c->lock);
	closing_put(c);
}
