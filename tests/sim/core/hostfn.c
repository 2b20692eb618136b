/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include "hostfn.h"

struct job {
	struct hb_moment when;
	CUhostFn fn;
	void *arg;
	struct job *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER;
static struct job *first, **last = &first;
static bool started;

static struct job *take(void)
{
	struct job *j;

	pthread_mutex_lock(&lock);
	while (!first)
		pthread_cond_wait(&more, &lock);
	j = first;
	first = j->next;
	if (!first)
		last = &first;
	pthread_mutex_unlock(&lock);
	return j;
}

static void *work(void *unused)
{
	for (;;) {
		struct job *j = take();

		hb_moment__wait(&j->when, CU_CTX_SCHED_BLOCKING_SYNC);
		j->fn(j->arg);
		free(j);
	}
	return NULL;
}

static void start(void)
{
	pthread_t t;
	sigset_t all, old;

	/* The application's signals are for its own threads. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	started = !pthread_create(&t, NULL, work, NULL);
	if (started)
		pthread_detach(t);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

void hb_hostfn__queue(const struct hb_moment *when, CUhostFn fn, void *arg)
{
	struct job *j = malloc(sizeof(*j));

	if (!j)
		return;
	*j = (struct job){.when = *when, .fn = fn, .arg = arg};
	pthread_mutex_lock(&lock);
	if (!started)
		start();
	*last = j;
	last = &j->next;
	pthread_cond_signal(&more);
	pthread_mutex_unlock(&lock);
}
