/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reading /proc: hostile text, and real processes in their namespaces. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/clock.h"
#include "capture/target/procfs.h"
#include "children.h"

/* ---- parsers ---- */

static void stat_with_hostile_names(void **state)
{
	static const char *const names[] = {"a",      ") R 1 1 (",    "x y",	  "((((",
					    "))))))", "a\nState:\tZ", "\033[31m", ""};
	char line[512];
	struct hb_stat st;

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		snprintf(line, sizeof(line),
			 "42 (%s) S 7 42 42 0 -1 4194304 100 0 0 0 5 6 0 0 20 0 3 0 123456 1000000 250 "
			 "184467 1 1 0\n",
			 names[i]);
		assert_true(hb_procfs__stat(line, &st));
		assert_int_equal(st.state, 'S');
		assert_int_equal(st.ppid, 7);
		assert_int_equal(st.flags, 4194304);
		assert_int_equal(st.threads, 3);
		assert_int_equal(st.start_ticks, 123456);
		assert_int_equal(st.rss_pages, 250);
	}
}

static void stat_broken(void **state)
{
	static const char *const bad[] = {"",
					  ")",
					  "1 (a)",
					  "1 (a) ",
					  "1 (a) S",
					  "1 (a) S 1 2 3",
					  "no parenthesis S 1 2 3 4",
					  "1 (a) S x 1 1 0 -1 1 1 0 0 0 5 6 0 0 20 0 3 0 1 1 1"};
	struct hb_stat st;

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_false(hb_procfs__stat(bad[i], &st));
}

static void status_keys(void **state)
{
	static const char text[] =
	    "Name:\tNSpid:\\n99\nTgid:\t12\nNSpid:\t12\t5\t1\nSeccomp:\t2\nThreads:\nLast:\t7";
	u64 v = 0;

	assert_true(hb_procfs__status(text, "NSpid", true, &v));
	assert_int_equal(v, 1);
	assert_true(hb_procfs__status(text, "NSpid", false, &v));
	assert_int_equal(v, 12);
	assert_true(hb_procfs__status(text, "Last", true, &v));
	assert_int_equal(v, 7);
	assert_false(hb_procfs__status(text, "Threads", true, &v));
	assert_false(hb_procfs__status(text, "Absent", true, &v));
	assert_false(hb_procfs__status("", "Tgid", true, &v));
}

static void maps_lines(void **state)
{
	struct hb_mapping m;

	assert_true(hb_procfs__maps_line(
	    "7f0-8f0 r-xp 00001000 103:05 77                         /a b/c\\012d (deleted)", &m));
	assert_int_equal(m.start, 0x7f0);
	assert_int_equal(m.end, 0x8f0);
	assert_int_equal(m.pgoff, 0x1000);
	assert_int_equal(m.dev, 0x103 << 20 | 5);
	assert_int_equal(m.ino, 77);
	assert_true(m.deleted);
	assert_string_equal(m.path, "/a b/c?d"); /* the newline is undone and then cleaned away */
	free(m.path);
	assert_true(hb_procfs__maps_line("1000-2000 r-xs 0 00:1f 5 /x\\", &m));
	assert_string_equal(m.path, "/x\\");
	assert_false(m.deleted);
	free(m.path);
}

static void maps_lines_not_ours(void **state)
{
	static const char *const other[] = {"",
					    "garbage",
					    "1000-2000 rw-p 0 08:01 5 /x",
					    "1000-2000 r-xp 0 00:00 0 [vdso]",
					    "1000-2000 r-xp 0 00:00 0",
					    "2000-1000 r-xp 0 08:01 5 /x",
					    "1000-2000 r-xp 0 08:01 5",
					    "1000-2000 r-xp 0 08:01 5 [heap]",
					    "1000-2000 r-x 0 08:01 5 /x"};
	struct hb_mapping m;

	for (size_t i = 0; i < sizeof(other) / sizeof(*other); i++) {
		assert_false(hb_procfs__maps_line(other[i], &m));
		assert_null(m.path);
	}
}

#define ID_A "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define ID_B "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"

static void containers(void **state)
{
	static const char *const cases[][2] = {
	    {"/system.slice/docker-" ID_A ".scope", ID_A},
	    {"/docker/" ID_A, ID_A},
	    {"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1234_5.slice/"
	     "cri-containerd-" ID_A ".scope",
	     ID_A},
	    {"/kubepods/besteffort/pod7d1f/" ID_A, ID_A},
	    {"/machine.slice/libpod-" ID_A ".scope/container", ID_A},
	    {"/docker/" ID_A "/docker/" ID_B, ID_B},
	    {"/lxc.payload.web1/system.slice", "web1"},
	    {"/machine.slice/machine-deb.scope", "deb"},
	    {"/user.slice/user-1000.slice", ""},
	    {"/docker/" ID_A "ff", ""},
	    {"/x" ID_A, ""},
	    {"/", ""},
	    {"", ""},
	};
	char id[256];

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		hb_procfs__container(cases[i][0], id, sizeof(id));
		assert_string_equal(id, cases[i][1]);
	}
}

static void cgroup_choice(void **state)
{
	char path[256];

	hb_procfs__cgroup("9:name=systemd:/\n4:memory:/a/b\n3:cpu:/a\n0::/\n", path, sizeof(path));
	assert_string_equal(path, "/a/b");
	hb_procfs__cgroup("4:memory:/long/path/here\n0::/v2\n", path, sizeof(path));
	assert_string_equal(path, "/v2");
	hb_procfs__cgroup("0::/v2\n4:memory:/long/path/here\n", path, sizeof(path));
	assert_string_equal(path, "/v2");
	hb_procfs__cgroup("0::/with:colon\n", path, sizeof(path));
	assert_string_equal(path, "/with:colon");
	hb_procfs__cgroup("junk", path, sizeof(path));
	assert_string_equal(path, "/");
}

/* Random damage to real text: nothing to assert but that it returns (run under the sanitizers by the fuzzers
 * too). */
static void parsers_survive_damage(void **state)
{
	static const char seed[] =
	    "42 (a) b) S 7 42 42 0 -1 4194304 1 0 0 0 5 6 0 0 20 0 3 0 123 1 250 1 1 1 0\n"
	    "7f00-8f00 r-xp 00001000 103:05 77   /a b/c\\012d (deleted)\nNSpid:\t1\t2\n0::/docker/" ID_A;
	char text[sizeof(seed)], out[300];
	struct hb_stat st;
	struct hb_mapping m;
	u64 v, rnd = 88172645463325252ULL;

	for (int i = 0; i < 20000; i++) {
		memcpy(text, seed, sizeof(seed));
		for (int k = 0; k < 6; k++) {
			rnd ^= rnd << 13, rnd ^= rnd >> 7, rnd ^= rnd << 17;
			text[rnd % (sizeof(seed) - 1)] = (char)(rnd >> 32);
		}
		hb_procfs__stat(text, &st);
		hb_procfs__status(text, "NSpid", i & 1, &v);
		hb_procfs__container(text, out, sizeof(out));
		assert_true(strlen(out) < sizeof(out));
		hb_procfs__cgroup(text, out, sizeof(out));
		if (hb_procfs__maps_line(strchr(text, '\n') ? strchr(text, '\n') + 1 : text, &m)) {
			assert_true(m.end > m.start && m.ino != 0);
			free(m.path);
		}
	}
}

/* ---- processes ---- */

static void reads_itself(void **state)
{
	struct hb_error e = {0};
	struct hb_process *p = hb_process__read((u32)getpid(), &e);
	bool self_mapped = false;

	assert_non_null(p);
	assert_int_equal(p->pid, getpid());
	assert_int_equal(p->ppid, getppid());
	assert_int_equal(p->nspid, getpid());
	assert_string_equal(p->comm, "test_target");
	assert_non_null(strstr(p->exe, "test_target"));
	assert_non_null(strstr(p->cmdline, "test_target"));
	assert_int_equal(p->is_32bit, 0);
	assert_int_equal(p->kernel, 0);
	assert_true(p->start > 0 && p->start < hb_clock__now());
	for (u32 i = 0; i < p->n_maps; i++) {
		self_mapped |= strcmp(p->maps[i].path, p->exe) == 0;
		assert_true(p->maps[i].path[0] == '/');
	}
	assert_true(self_mapped);
	hb_process__free(p);
}

static void start_time_is_monotonic(void **state)
{
	u64 before = hb_clock__now(), after;
	pid_t pid = start(NULL, NULL);
	struct hb_process *p = hb_process__read((u32)pid, NULL);
	u64 tick = 1000000000ULL / (u64)sysconf(_SC_CLK_TCK);

	after = hb_clock__now();
	assert_non_null(p);
	assert_true(p->start + 2 * tick >= before && p->start <= after); /* stat rounds down to a tick */
	hb_process__free(p);
	stop(pid);
}

static void hostile(void *arg)
{
	prctl(PR_SET_NAME, ") R 1\n\033[31m");
}

static void hostile_comm(void **state)
{
	pid_t pid = start(hostile, NULL);
	struct hb_process *p = hb_process__read((u32)pid, NULL);

	assert_non_null(p);
	assert_int_equal(p->ppid, getpid());
	assert_string_equal(p->comm, ") R 1??[31m");
	hb_process__free(p);
	stop(pid);
}

static void gone_and_thread(void **state)
{
	struct hb_error e = {0};
	pid_t pid = start(NULL, NULL);

	stop(pid);
	assert_null(hb_process__read((u32)pid, &e));
	assert_int_equal(e.err, -ESRCH);
	assert_int_equal(e.exit, HB_EXIT_TARGET);
	assert_null(hb_process__threads((u32)pid, &(u32){0}));
	assert_int_equal(hb_thread__pid((u32)pid), 0);
}

static void *named_thread(void *arg)
{
	prctl(PR_SET_NAME, "worker \007x");
	*(volatile pid_t *)arg = (pid_t)syscall(SYS_gettid);
	pause();
	return NULL;
}

static void threads(void **state)
{
	volatile pid_t tid = 0;
	pthread_t t;
	char comm[16];
	u32 n, nstid;
	u32 *ids;

	assert_int_equal(pthread_create(&t, NULL, named_thread, (void *)&tid), 0);
	while (!tid)
		sched_yield();
	ids = hb_process__threads((u32)getpid(), &n);
	assert_true(n >= 2 && has(ids, n, (u32)tid) && has(ids, n, (u32)getpid()));
	free(ids);
	assert_int_equal(hb_thread__read((u32)getpid(), (u32)tid, &nstid, comm), 0);
	assert_int_equal(nstid, tid);
	assert_string_equal(comm, "worker ?x");
	assert_int_equal(hb_thread__pid((u32)tid), getpid());
	pthread_cancel(t);
	pthread_join(t, NULL);
}

/* ---- files of other mount namespaces ---- */

#define SECRET "/tmp/hb_test_secret"

/* In a mount namespace of its own: a tmpfs over `arg`, with a copy of a library there, mapped executable. */
static void hide_a_library(void *arg)
{
	char buf[65536];
	int in, out;
	ssize_t n;

	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", arg, "tmpfs", 0, NULL))
		_exit(2);
	in = open("/proc/self/exe", O_RDONLY);
	out = open(SECRET "/lib with space.so", O_RDWR | O_CREAT, 0700);
	while ((n = read(in, buf, sizeof(buf))) > 0)
		if (write(out, buf, (size_t)n) != n)
			_exit(3);
	if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, out, 0) == MAP_FAILED)
		_exit(4);
}

static void other_mount_namespace(void **state)
{
	struct hb_process *p;
	struct hb_mapping *m = NULL;
	char path[512];
	struct stat st;
	pid_t pid;

	if (geteuid())
		skip();
	mkdir(SECRET, 0700);
	pid = start(hide_a_library, SECRET);
	p = hb_process__read((u32)pid, NULL);
	assert_non_null(p);
	for (u32 i = 0; i < p->n_maps; i++)
		if (strstr(p->maps[i].path, "lib with space.so"))
			m = &p->maps[i];
	assert_non_null(m);
	assert_int_not_equal(access(SECRET "/lib with space.so", F_OK), 0); /* not visible from here */
	assert_int_equal(hb_process__open_path(p, m, path, sizeof(path)), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_ino, m->ino);

	m->start++; /* no such range any more: the way through /proc/PID/root must do */
	assert_int_equal(hb_process__open_path(p, m, path, sizeof(path)), 0);
	assert_non_null(strstr(path, "/root/"));
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_ino, m->ino);

	m->ino++; /* another file lies there */
	assert_int_equal(hb_process__open_path(p, m, path, sizeof(path)), -ESTALE);
	assert_int_equal(hb_process__open_path(p, m, path, 10), -ENAMETOOLONG);
	hb_process__free(p);
	stop(pid);
	rmdir(SECRET);
}

static void pid_namespace(void **state)
{
	struct hb_process *p;
	u32 nstid;
	char comm[16];
	pid_t pid;

	if (geteuid())
		skip();
	assert_int_equal(unshare(CLONE_NEWPID),
			 0); /* for children only: the next one is pid 1 of a new namespace */
	pid = start(NULL, NULL);
	p = hb_process__read((u32)pid, NULL);
	assert_non_null(p);
	assert_int_equal(p->pid, pid);
	assert_int_equal(p->nspid, 1);
	assert_int_equal(hb_thread__read((u32)pid, (u32)pid, &nstid, comm), 0);
	assert_int_equal(nstid, 1);
	hb_process__free(p);
	stop(pid);
	int ns = open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC);
	assert_int_equal(setns(ns, CLONE_NEWPID), 0);
	close(ns);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(stat_with_hostile_names),
	    cmocka_unit_test(stat_broken),
	    cmocka_unit_test(status_keys),
	    cmocka_unit_test(maps_lines),
	    cmocka_unit_test(maps_lines_not_ours),
	    cmocka_unit_test(containers),
	    cmocka_unit_test(cgroup_choice),
	    cmocka_unit_test(parsers_survive_damage),
	    cmocka_unit_test(reads_itself),
	    cmocka_unit_test(start_time_is_monotonic),
	    cmocka_unit_test(hostile_comm),
	    cmocka_unit_test(gone_and_thread),
	    cmocka_unit_test(threads),
	    cmocka_unit_test(other_mount_namespace),
	    cmocka_unit_test(pid_namespace),
	};

	return cmocka_run_group_tests_name("target", tests, NULL, NULL);
}
