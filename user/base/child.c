/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "base/child.h"
#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LOOK_NS	 2000000L
#define FIRST_FD 10 /* ours are moved out of the way of those that the child shall have */

extern char **environ;

/* Files in memory instead of pipes: nobody has to be ready to read or write, and nothing can block. */
struct files {
	int in, out, complaints, extra;
};

static int memory(const char *data, size_t size)
{
	int fd = memfd_create("hb", MFD_CLOEXEC), moved = -1, err;

	if (fd >= 0)
		moved = fcntl(fd, F_DUPFD_CLOEXEC, FIRST_FD);
	err = errno;
	if (fd >= 0)
		close(fd);
	errno = err;
	for (size_t at = 0; moved >= 0 && at < size;) {
		ssize_t n = write(moved, data + at, size - at);

		if (n <= 0) {
			close(moved);
			errno = n ? errno : EIO;
			return -1;
		}
		at += (size_t)n;
	}
	if (moved >= 0)
		lseek(moved, 0, SEEK_SET);
	return moved;
}

static void close_all(const struct files *f)
{
	const int fds[] = {f->in, f->out, f->complaints, f->extra};

	for (size_t i = 0; i < sizeof(fds) / sizeof(*fds); i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

static int open_all(struct files *f, const struct hb_child *c)
{
	if ((f->in = memory(c->in, c->in ? c->in_size : 0)) < 0 || (f->out = memory(NULL, 0)) < 0 ||
	    (f->complaints = memory(NULL, 0)) < 0 ||
	    (f->extra = memory(c->extra, c->extra ? c->extra_size : 0)) < 0)
		return -errno;
	return 0;
}

static int spawn(const struct hb_child *c, const struct files *f, pid_t *pid)
{
	posix_spawn_file_actions_t fa;
	int err = posix_spawn_file_actions_init(&fa);

	if (err)
		return -err;
	err = posix_spawn_file_actions_adddup2(&fa, f->in, 0);
	err = err ? err : posix_spawn_file_actions_adddup2(&fa, f->out, 1);
	err = err ? err : posix_spawn_file_actions_adddup2(&fa, f->complaints, 2);
	err = err ? err : posix_spawn_file_actions_adddup2(&fa, f->extra, 3);
	err = err ? err : posix_spawnp(pid, c->argv[0], &fa, NULL, (char *const *)c->argv, environ);
	posix_spawn_file_actions_destroy(&fa);
	return -err;
}

/* -ETIMEDOUT when it had to be killed. */
static int wait_for(pid_t pid, uint64_t deadline, int *status)
{
	const struct timespec pause = {.tv_nsec = LOOK_NS};
	pid_t got;
	bool late = false;

	while ((got = waitpid(pid, status, late ? 0 : WNOHANG)) != pid) {
		if (got < 0 && errno != EINTR)
			return -errno;
		if (!late && hb_clock__now() >= deadline) {
			kill(pid, SIGKILL);
			late = true;
		} else if (!late)
			nanosleep(&pause, NULL);
	}
	*status = WIFSIGNALED(*status) ? 128 + WTERMSIG(*status) : WEXITSTATUS(*status);
	return late ? -ETIMEDOUT : 0;
}

static int take(int fd, struct hb_buf *out)
{
	char part[4096];
	ssize_t n = 0;

	lseek(fd, 0, SEEK_SET);
	while (out->size < HB_CHILD_OUT && (n = read(fd, part, sizeof(part))) > 0)
		hb_buf__add(out, part, (size_t)n);
	if (hb_buf__room(out, 1))
		out->data[out->size] = 0;
	return out->oom ? -ENOMEM : n < 0 ? -errno : 0;
}

int hb_child__run(const struct hb_child *c, struct hb_buf *out, struct hb_buf *complaints, int *status,
		  struct hb_error *e)
{
	uint64_t deadline = hb_clock__now() + c->timeout;
	struct files f = {-1, -1, -1, -1};
	pid_t pid = -1;
	int err = open_all(&f, c);

	err = err ? err : spawn(c, &f, &pid);
	if (err) {
		close_all(&f);
		return hb_error__set(e, HB_EXIT_FAILED, err, "cannot run %s: %s%s", c->argv[0],
				     strerror(-err), err == -ENOENT ? " (is it installed?)" : "");
	}
	err = wait_for(pid, deadline, status);
	if (err == -ETIMEDOUT)
		hb_error__set(e, HB_EXIT_FAILED, err, "%s did not end within %llu s and was killed",
			      c->argv[0], (unsigned long long)(c->timeout / 1000000000ULL));
	err = err ? err : take(f.out, out);
	err = err ? err : take(f.complaints, complaints);
	close_all(&f);
	return err ? hb_error__set(e, HB_EXIT_FAILED, err, "cannot run %s: %s", c->argv[0], strerror(-err))
		   : 0;
}
