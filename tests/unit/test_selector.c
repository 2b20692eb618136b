/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What an operator names, on real processes: lists, names, groups, descendants, and every refusal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "capture/target/target.h"
#include "children.h"

/* ---- selectors ---- */

struct refusal {
	const char *pids, *cgroup, *name;
	int exit;
	const char *says;
};

static void refusals(void **state)
{
	static const struct refusal cases[] = {
	    {NULL, NULL, NULL, HB_EXIT_USAGE, "-p PID"},
	    {"1", NULL, "x", HB_EXIT_USAGE, "only one"},
	    {"", NULL, NULL, HB_EXIT_USAGE, "is not a process id"},
	    {"1,2,x", NULL, NULL, HB_EXIT_USAGE, "\"x\""},
	    {"1,,2", NULL, NULL, HB_EXIT_USAGE, "is not a process id"},
	    {"1,", NULL, NULL, HB_EXIT_USAGE, "is not a process id"},
	    {"0", NULL, NULL, HB_EXIT_USAGE, "is not a process id"},
	    {"-5", NULL, NULL, HB_EXIT_USAGE, "\"-5\""},
	    {"99999999999999999999", NULL, NULL, HB_EXIT_USAGE, "is not a process id"},
	    {"4194304", NULL, NULL, HB_EXIT_TARGET, "there is no process 4194304"},
	    {NULL, "", NULL, HB_EXIT_USAGE, "empty"},
	    {NULL, NULL, "", HB_EXIT_USAGE, "empty"},
	    {NULL, NULL, "no-such-program-here-*", HB_EXIT_TARGET, "no-such-program-here-*"},
	    {NULL, "no/such/group", NULL, HB_EXIT_TARGET, "there is no cgroup"},
	    {NULL, "/tmp", NULL, HB_EXIT_TARGET, "there is no cgroup"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct hb_selector s = {
		    .pids = cases[i].pids, .cgroup = cases[i].cgroup, .name = cases[i].name};
		struct hb_error e = {0};
		u32 *pids, n;

		assert_int_not_equal(hb_selector__resolve(&s, &pids, &n, &e), 0);
		assert_int_equal(e.exit, cases[i].exit);
		assert_non_null(strstr(e.text, cases[i].says));
		assert_null(pids);
	}
}

static void refuses(u32 pid, const char *says)
{
	char list[16];
	struct hb_selector s = {.pids = list};
	struct hb_error e = {0};
	u32 *pids, n;

	snprintf(list, sizeof(list), "%u", pid);
	assert_int_not_equal(hb_selector__resolve(&s, &pids, &n, &e), 0);
	assert_int_equal(e.exit, HB_EXIT_TARGET);
	assert_non_null(strstr(e.text, says));
}

static void refuses_zombie_self_kthread(void **state)
{
	pid_t pid = start(NULL, NULL);
	siginfo_t info;

	kill(pid, SIGKILL);
	waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT);
	refuses((u32)pid, "has exited already");
	waitpid(pid, NULL, 0);
	refuses((u32)pid, "there is no process");
	refuses((u32)getpid(), "herschel-bpf itself");

	struct hb_process *p = hb_process__peek(2);

	if (p && p->kernel)
		refuses(2, "kernel thread");
	hb_process__free(p);
}

/* False where there is no compiler for 32-bit programs. */
static bool compile_32bit(const char *out)
{
	static const char program[] =
	    "int _start(void){for(;;)__asm__ volatile(\"int $0x80\"::\"a\"(29));}"; /* pause() */
	int in[2], status = -1;
	pid_t pid;

	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	assert_int_equal(write(in[1], program, sizeof(program) - 1), sizeof(program) - 1);
	close(in[1]);
	pid = fork();
	if (pid == 0) {
		dup2(in[0], 0);
		dup2(open("/dev/null", O_WRONLY), 2);
		execlp("gcc", "gcc", "-m32", "-nostdlib", "-static", "-ffreestanding", "-x", "c", "-o", out,
		       "-", (char *)NULL);
		_exit(127);
	}
	close(in[0]);
	waitpid(pid, &status, 0);
	return status == 0;
}

static void refuses_32bit(void **state)
{
	static const char file[] = "/tmp/hb_test_32bit";
	bool runs = false;
	pid_t pid;

	if (!compile_32bit(file))
		skip();
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execl(file, file, (char *)NULL);
		_exit(7);
	}
	for (int i = 0; i < 2000 && !runs && waitpid(pid, NULL, WNOHANG) == 0;
	     i++) { /* until the exec has happened */
		struct hb_process *p = hb_process__peek((u32)pid);

		runs = p && strcmp(p->exe, file) == 0;
		hb_process__free(p);
		wait_a_moment();
	}
	unlink(file);
	if (!runs) /* a kernel without 32-bit programs */
		skip();
	refuses((u32)pid, "is a 32-bit program");
	stop(pid);
}

static void with_child(void *arg)
{
	*(pid_t *)arg = start(NULL, NULL);
}

static void descendants(void **state)
{
	pid_t *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pid = start(with_child, shared);
	char list[64];
	struct hb_selector s = {.pids = list};
	struct hb_error e = {0};
	u32 *pids, n;

	snprintf(list, sizeof(list), "%d,%d", pid, pid);
	assert_int_equal(hb_selector__resolve(&s, &pids, &n, &e), 0);
	assert_int_equal(n, 2);
	assert_int_equal(pids[0], pid);
	assert_int_equal(pids[1], *shared);
	free(pids);
	s.no_children = true;
	assert_int_equal(hb_selector__resolve(&s, &pids, &n, &e), 0);
	assert_int_equal(n, 1);
	free(pids);
	stop(pid);
	munmap(shared, 4096);
}

/* Started apart from us (double fork), so that it is no child of ours. */
static pid_t start_stranger(const char *argv0)
{
	int tell[2];
	pid_t mid, pid = 0;

	assert_int_equal(pipe2(tell, O_CLOEXEC), 0);
	mid = fork();
	if (mid == 0) {
		setsid();
		pid = fork();
		if (pid == 0) {
			execl("/bin/sleep", argv0, "60", (char *)NULL);
			_exit(8);
		}
		if (write(tell[1], &pid, sizeof(pid)) != sizeof(pid))
			_exit(9);
		_exit(0);
	}
	waitpid(mid, NULL, 0);
	assert_int_equal(read(tell[0], &pid, sizeof(pid)), sizeof(pid));
	close(tell[0]);
	close(tell[1]);
	return pid;
}

static void wait_for_argv0(pid_t pid, const char *argv0)
{
	for (int i = 0; i < 2000; i++) {
		struct hb_process *p = hb_process__peek((u32)pid);
		bool done = p && strncmp(p->cmdline, argv0, strlen(argv0)) == 0;

		hb_process__free(p);
		if (done)
			return;
		wait_a_moment();
	}
	fail_msg("the stranger did not start");
}

/* An ancestor is only taken when it is named by -p, and never takes us or our children along. */
static void ancestors(void **state)
{
	char list[16];
	struct hb_selector s = {.pids = list};
	pid_t child = start(NULL, NULL), stranger = start_stranger("stranger");
	struct hb_error e = {0};
	u32 *pids, n;

	/* Besides it there may be nobody but our ancestors, as in a container. */
	wait_for_argv0(stranger, "stranger");
	snprintf(list, sizeof(list), "%d", getppid());
	assert_int_equal(hb_selector__resolve(&s, &pids, &n, &e), 0);
	assert_true(has(pids, n, (u32)getppid()));
	assert_false(has(pids, n, (u32)getpid()));
	assert_false(has(pids, n, (u32)child));
	free(pids);
	s = (struct hb_selector){.name = "*"};
	assert_int_equal(hb_selector__resolve(&s, &pids, &n, &e), 0);
	assert_true(has(pids, n, (u32)stranger));
	assert_false(has(pids, n, (u32)getppid()));
	assert_false(has(pids, n, (u32)getpid()));
	free(pids);
	kill(stranger, SIGKILL);
	stop(child);
}

static void by_name(void **state)
{
	char name[64], match[2][64]; /* ours alone: other tests run beside this one, and real engines */
	struct hb_error e = {0};
	u32 *pids, n;
	pid_t pid;

	snprintf(name, sizeof(name), "/odd/place/hb::EngineCore%d", getpid());
	snprintf(match[0], sizeof(match[0]), "hb::Engine*%d", getpid());
	snprintf(match[1], sizeof(match[1]), "*ngineC?re%d", getpid());
	pid = start_stranger(name);
	wait_for_argv0(pid, name);
	for (size_t i = 0; i < 2; i++) {
		struct hb_selector s = {.name = match[i]};

		assert_int_equal(hb_selector__resolve(&s, &pids, &n, &e), 0);
		assert_int_equal(n, 1);
		assert_int_equal(pids[0], pid);
		free(pids);
	}
	struct hb_selector by_comm = {.name = "sleep"}; /* comm and exe */

	assert_int_equal(hb_selector__resolve(&by_comm, &pids, &n, &e), 0);
	assert_true(has(pids, n, (u32)pid));
	free(pids);
	kill(pid, SIGKILL);
}

/* The first hierarchy in which we may make a group, v1 or v2. */
static bool make_cgroup(const char **mount)
{
	static const char *const mounts[] = {"/sys/fs/cgroup/unified", "/sys/fs/cgroup",
					     "/sys/fs/cgroup/systemd", "/sys/fs/cgroup/pids",
					     "/sys/fs/cgroup/freezer"};
	char path[256];

	for (size_t i = 0; i < sizeof(mounts) / sizeof(*mounts); i++) {
		snprintf(path, sizeof(path), "%s/cgroup.procs", mounts[i]);
		if (access(path, W_OK))
			continue;
		snprintf(path, sizeof(path), "%s/hb_test_cg", mounts[i]);
		if (mkdir(path, 0755) && errno != EEXIST)
			continue;
		snprintf(path, sizeof(path), "%s/hb_test_cg/sub", mounts[i]);
		if (mkdir(path, 0755) == 0 || errno == EEXIST) {
			*mount = mounts[i];
			return true;
		}
	}
	return false;
}

static void join_cgroup(const char *mount, pid_t pid)
{
	char path[256], id[16];
	int fd, n = snprintf(id, sizeof(id), "%d", pid);

	snprintf(path, sizeof(path), "%s/hb_test_cg/sub/cgroup.procs", mount);
	fd = open(path, O_WRONLY);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, id, (size_t)n), n);
	close(fd);
}

static void by_cgroup(void **state)
{
	const char *mount = NULL;
	char path[256];
	struct hb_selector s = {.cgroup = path};
	struct hb_error e = {0};
	u32 *pids, n;
	pid_t pid;

	if (!make_cgroup(&mount))
		skip();
	snprintf(path, sizeof(path), "%s/hb_test_cg", mount);
	assert_int_equal(hb_selector__resolve(&s, &pids, &n, &e), -ESRCH); /* empty */
	assert_int_equal(e.exit, HB_EXIT_TARGET);
	pid = start_stranger("hb_cg");
	join_cgroup(mount, pid);
	for (int relative = 0; relative < 3;
	     relative++) { /* absolute; as in /proc/PID/cgroup; below the mount */
		static const char *const forms[] = {NULL, "/hb_test_cg", "hb_test_cg"};

		if (forms[relative])
			snprintf(path, sizeof(path), "%s", forms[relative]);
		memset(&e, 0, sizeof(e));
		assert_int_equal(hb_selector__resolve(&s, &pids, &n, &e), 0);
		assert_int_equal(n, 1); /* it sits in a group below: the walk is recursive */
		assert_int_equal(pids[0], pid);
		free(pids);
	}
	kill(pid, SIGKILL);
	snprintf(path, sizeof(path), "%s/hb_test_cg/sub", mount);
	for (int i = 0; i < 1000 && rmdir(path); i++)
		wait_a_moment();
	snprintf(path, sizeof(path), "%s/hb_test_cg", mount);
	rmdir(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(refusals),	     cmocka_unit_test(refuses_zombie_self_kthread),
	    cmocka_unit_test(refuses_32bit), cmocka_unit_test(descendants),
	    cmocka_unit_test(ancestors),     cmocka_unit_test(by_name),
	    cmocka_unit_test(by_cgroup),
	};

	return cmocka_run_group_tests_name("selector", tests, NULL, NULL);
}
