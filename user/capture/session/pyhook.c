/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The hooks that this session has set in interpreters. They do no harm to what is computed, but they stay
 * when we are killed: so a child of ours knows of each before it is set, waits for our end, and takes back
 * what is left. It lives in a session of its own, so that what ends our group does not end it. When it is
 * killed too, the next window finds the hooks and takes them back.
 */
#include "capture/session/pycalls.h"
#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define REAP_NS 2000000000ULL

struct hb_pyhooks {
	pthread_mutex_t lock; /* children are told of by the pump */
	struct hb_py_hook *list;
	bool *taken; /* of each: it was said */
	u32 n;
	int to_guard; /* pipe; -1 */
	pid_t guard;
};

/* ---- the guardian: after fork() of a program with threads, so only what may be done in a signal handler
 * ---- */

static void guard(int from, struct hb_py_hook *list)
{
	u32 n = 0;

	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	setsid();
	prctl(PR_SET_NAME, "hb-guard");
	/*
	 * What we hold open would keep probes in place; our standard output, whoever reads it from a pipe,
	 * when somebody stops the guardian.
	 */
	dup2(from, STDIN_FILENO);
	syscall(__NR_close_range, STDIN_FILENO + 1, ~0U, 0);
	for (;;) {
		ssize_t got = read(STDIN_FILENO, &list[n < HB_MAX_TARGETS ? n : 0], sizeof(*list));

		if (got == (ssize_t)sizeof(*list))
			n += n < HB_MAX_TARGETS;
		else if (got >= 0 || errno != EINTR)
			break;
	}
	for (u32 i = 0; i < n; i++)
		hb_py_hook__unset(&list[i]);
	_exit(0);
}

static int start_guard(struct hb_pyhooks *k)
{
	size_t size = HB_MAX_TARGETS * sizeof(struct hb_py_hook);
	struct hb_py_hook *list;
	int fds[2];

	list = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (list == MAP_FAILED)
		return -errno;
	if (pipe2(fds, O_CLOEXEC)) {
		int err = -errno;

		munmap(list, size);
		return err;
	}
	k->guard = fork();
	if (k->guard == 0) {
		close(fds[1]);
		guard(fds[0], list);
	}
	int err = k->guard < 0 ? -errno : 0;

	munmap(list, size);
	close(fds[0]);
	k->to_guard = fds[1];
	/* A guardian that somebody stopped must not stop us. */
	fcntl(k->to_guard, F_SETFL, O_NONBLOCK);
	return err;
}

/* ---- those that are set ---- */

struct hb_pyhooks *hb_pyhooks__new(struct hb_error *e)
{
	struct hb_pyhooks *k = calloc(1, sizeof(*k));
	int err;

	if (!k) {
		hb_error__nomem(e, "hooks");
		return NULL;
	}
	k->to_guard = -1;
	k->list = calloc(HB_MAX_TARGETS, sizeof(*k->list));
	k->taken = calloc(HB_MAX_TARGETS, sizeof(*k->taken));
	pthread_mutex_init(&k->lock, NULL);
	err = k->list && k->taken ? start_guard(k) : -ENOMEM;
	if (!err)
		return k;
	hb_error__set(e, HB_EXIT_FAILED, err, "cannot start the process that takes hooks back: %s",
		      strerror(-err));
	hb_pyhooks__free(k);
	return NULL;
}

/* The guardian knows of it first. Smaller than what a pipe takes at once. */
static int keep(struct hb_pyhooks *k, const struct hb_py_hook *h, bool inherited)
{
	if (k->n == HB_MAX_TARGETS)
		return -ENOSPC;
	if (write(k->to_guard, h, sizeof(*h)) != sizeof(*h))
		return -EPIPE;
	k->taken[k->n] = inherited; /* a child may well run another program */
	k->list[k->n++] = *h;
	return 0;
}

int hb_pyhooks__set(struct hb_pyhooks *k, const struct hb_py_hook *h)
{
	int err;

	pthread_mutex_lock(&k->lock);
	for (u32 i = 0; i < k->n; i++) /* of the program that ran there before */
		k->taken[i] |= k->list[i].pid == h->pid;
	err = keep(k, h, false);
	pthread_mutex_unlock(&k->lock);
	return err ? err : hb_py_hook__set(h);
}

void hb_pyhooks__fork(struct hb_pyhooks *k, u32 parent, u32 child)
{
	struct hb_py_hook h;

	pthread_mutex_lock(&k->lock);
	for (u32 i = 0, n = k->n; i < n; i++) {
		if (k->list[i].pid != parent)
			continue;
		h = k->list[i];
		h.pid = child;
		keep(k, &h, true);
	}
	pthread_mutex_unlock(&k->lock);
}

u32 hb_pyhooks__taken(struct hb_pyhooks *k)
{
	u32 pid = 0;

	pthread_mutex_lock(&k->lock);
	for (u32 i = 0; i < k->n && !pid; i++) {
		if (k->taken[i] || hb_py_hook__stands(&k->list[i]))
			continue;
		k->taken[i] = true;
		pid = k->list[i].pid;
	}
	pthread_mutex_unlock(&k->lock);
	return pid;
}

static bool has(const struct hb_pyhooks *k, u32 pid)
{
	for (u32 i = 0; i < k->n; i++)
		if (k->list[i].pid == pid)
			return true;
	return false;
}

/* Children of hooked processes that are no targets, or whose fork was not heard of. */
static void find_children(struct hb_pyhooks *k)
{
	u32 n = 0, *pids = hb_process__all(&n), before = k->n;

	for (u32 i = 0; pids && i < n; i++) {
		struct hb_process *p = has(k, pids[i]) ? NULL : hb_process__peek(pids[i]);

		for (u32 j = 0; p && j < before && k->n < HB_MAX_TARGETS; j++)
			if (k->list[j].pid == p->ppid) {
				k->list[k->n] = k->list[j];
				k->list[k->n++].pid = p->pid;
			}
		hb_process__free(p);
	}
	free(pids);
	if (k->n > before)
		find_children(k);
}

void hb_pyhooks__unset(struct hb_pyhooks *k)
{
	pthread_mutex_lock(&k->lock);
	if (k->n)
		find_children(k);
	for (u32 i = 0; i < k->n; i++)
		hb_py_hook__unset(&k->list[i]);
	k->n = 0;
	pthread_mutex_unlock(&k->lock);
}

/* It ends by itself once the pipe is closed; stopped by somebody it ends when it goes on. */
static void reap(pid_t guard)
{
	u64 deadline = hb_clock__now() + REAP_NS;

	while (waitpid(guard, NULL, WNOHANG) == 0 && hb_clock__now() < deadline)
		usleep(500);
}

void hb_pyhooks__free(struct hb_pyhooks *k)
{
	if (!k)
		return;
	hb_pyhooks__unset(k);
	if (k->to_guard >= 0)
		close(k->to_guard);
	if (k->guard > 0)
		reap(k->guard);
	free(k->list);
	free(k->taken);
	free(k);
}
