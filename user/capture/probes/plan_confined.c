/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Return probes in a process under a seccomp filter. On some kernels (6.11 and its like) the return
 * trampoline makes a system call that the filter does not know, and the process dies. Whether this kernel is
 * one of them is found out in a child of our own that allows itself next to nothing.
 */
#include "capture/probes/attach_link.h"
#include "capture/probes/probes.h"
#include "base/clock.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE_NS 2000000000ULL

static void confine(void)
{
	struct sock_filter f[] = {
	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_read, 3, 0),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_write, 2, 0),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_exit_group, 1, 0),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog p = {sizeof(f) / sizeof(*f), f};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p))
		_exit(2);
}

/* Says ready, waits for the probe, is probed, says so. */
static _Noreturn void child(int in, int out)
{
	char c = 'r';

	confine();
	if (write(out, &c, 1) != 1 || read(in, &c, 1) != 1 || hb_trial__function(7) != 7 ||
	    write(out, &c, 1) != 1)
		_exit(1);
	_exit(0);
}

static bool hear(int fd)
{
	struct pollfd p = {fd, POLLIN, 0};
	char c;

	return poll(&p, 1, hb_clock__left_ms(hb_clock__now() + PATIENCE_NS)) == 1 && read(fd, &c, 1) == 1;
}

static bool exits_well(pid_t pid)
{
	u64 deadline = hb_clock__now() + PATIENCE_NS;
	int status = -1;
	pid_t got;

	while ((got = waitpid(pid, &status, WNOHANG)) == 0 && hb_clock__now() < deadline)
		usleep(500);
	if (got == 0) {
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
		return false;
	}
	return got == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static int link_return(int prog, bool multi, pid_t pid)
{
	u64 offset = hb_trial__offset(), cookie = 0;
	struct hb_places at = {.offsets = &offset, .cookies = &cookie, .n = 1};

	if (!offset)
		return -ENOENT;
	if (multi)
		return hb_link__multi(prog, "/proc/self/exe", &at, true, (u32)pid);
	return hb_link__single(prog, "/proc/self/exe", &at, true, (u32)pid);
}

static bool probe_child(pid_t pid, int to, int from)
{
	bool multi = hb_attach__has_multi(), ok;
	int map = -1, link, prog = hb_trial__load(multi, &map);

	link = prog >= 0 && hear(from) ? link_return(prog, multi, pid) : -1;
	ok = link >= 0 && write(to, "g", 1) == 1 && hear(from);
	if (!ok)
		kill(pid, SIGKILL);
	ok = exits_well(pid) && ok && hb_trial__count(map) == 1;
	if (link >= 0)
		close(link);
	if (prog >= 0) {
		close(prog);
		close(map);
	}
	return ok;
}

static bool survives(void)
{
	int down[2], up[2];
	bool ok = false;
	pid_t pid;

	if (pipe(down))
		return false;
	if (pipe(up)) {
		close(down[0]);
		close(down[1]);
		return false;
	}
	pid = fork();
	if (pid == 0)
		child(down[0], up[1]);
	close(up[1]); /* a child that dies is heard at once */
	close(down[0]);
	if (pid > 0)
		ok = probe_child(pid, down[1], up[0]);
	close(down[1]);
	close(up[0]);
	return ok;
}

static bool survived;

static void try_it(void)
{
	survived = survives();
}

bool hb_plan__confined_returns_work(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, try_it);
	return survived;
}
