/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* One tool per target: between real processes, after SIGKILL, across namespaces, without privileges. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture/target/target.h"

static const u32 TARGETS[] = {1, 4194301};

static void no_setup(void)
{
}

static void other_namespaces(void)
{
	if (unshare(CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS))
		_exit(2);
}

static void drop_capabilities(void)
{
	struct __user_cap_header_struct h = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[2] = {{0}};

	if (syscall(SYS_capset, &h, none))
		_exit(3);
}

struct holder {
	pid_t pid;
	int say; /* what it answered: 'y' locked, 'n' refused */
	int go;	 /* closed: it ends */
};

/* Another tool: takes the lock after `setup` and keeps it. */
static struct holder hold(void (*setup)(void), const u32 *pids, u32 n)
{
	struct holder h;
	int say[2], go[2];
	char c = '?';

	assert_int_equal(pipe2(say, O_CLOEXEC), 0);
	assert_int_equal(pipe2(go, O_CLOEXEC), 0);
	h.pid = fork();
	if (h.pid == 0) {
		struct hb_target_lock *l;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(go[1]);
		setup();
		l = hb_target_lock__take(pids, n, NULL);
		if (write(say[1], l ? "y" : "n", 1) != 1 || read(go[0], &c, 1) != 0)
			_exit(9);
		hb_target_lock__release(l);
		_exit(0);
	}
	close(say[1]);
	close(go[0]);
	assert_int_equal(read(say[0], &c, 1), 1);
	close(say[0]);
	h.say = c;
	h.go = go[1];
	return h;
}

static void end(struct holder h)
{
	int status;

	close(h.go);
	assert_int_equal(waitpid(h.pid, &status, 0), h.pid);
	assert_int_equal(status, 0);
}

static void refused_by(pid_t owner, const u32 *pids, u32 n)
{
	struct hb_error e = {0};
	char words[32];

	assert_null(hb_target_lock__take(pids, n, &e));
	assert_int_equal(e.err, -EBUSY);
	assert_int_equal(e.exit, HB_EXIT_TARGET);
	snprintf(words, sizeof(words), "(process %d)", owner);
	assert_non_null(strstr(e.text, words));
}

static void is_free(const u32 *pids, u32 n)
{
	struct hb_error e = {0};
	struct hb_target_lock *l = hb_target_lock__take(pids, n, &e);

	assert_string_equal(e.text, "");
	assert_non_null(l);
	hb_target_lock__release(l);
}

static void second_tool(void **state)
{
	struct holder h = hold(no_setup, TARGETS, 2);

	assert_int_equal(h.say, 'y');
	refused_by(h.pid, TARGETS, 2);
	refused_by(h.pid, TARGETS + 1, 1); /* one in common is enough */
	is_free((u32[]){4194302}, 1);
	end(h);
	is_free(TARGETS, 2);
}

static void gone_with_sigkill(void **state)
{
	struct holder h = hold(no_setup, TARGETS, 2);

	assert_int_equal(h.say, 'y');
	kill(h.pid, SIGKILL);
	waitpid(h.pid, NULL, 0);
	close(h.go);
	is_free(TARGETS, 2);
}

/* A sidecar: neither its network nor its mounts are ours. Only the map is seen from both sides. */
static void across_namespaces(void **state)
{
	struct holder h;

	if (geteuid())
		skip();
	h = hold(other_namespaces, TARGETS, 2);
	assert_int_equal(h.say, 'y');
	refused_by(h.pid, TARGETS, 2);
	end(h);
	is_free(TARGETS, 2);
}

/* A tool that may not walk the kernel's maps: the sockets do, in both directions. */
static void without_capabilities(void **state)
{
	struct holder h = hold(drop_capabilities, TARGETS, 2), other;

	assert_int_equal(h.say, 'y');
	refused_by(h.pid, TARGETS, 2);
	end(h);
	h = hold(no_setup, TARGETS, 2);
	assert_int_equal(h.say, 'y');
	other = hold(drop_capabilities, TARGETS, 2);
	assert_int_equal(other.say, 'n');
	end(other);
	end(h);
}

static void child_joins(void **state)
{
	struct holder h = hold(no_setup, TARGETS, 1);
	struct hb_target_lock *l = hb_target_lock__take(TARGETS + 1, 1, NULL);

	assert_non_null(l);
	assert_int_equal(hb_target_lock__add(l, 4194303), 0);
	assert_int_equal(hb_target_lock__add(l, TARGETS[0]), -EBUSY);
	end(h);
	assert_int_equal(hb_target_lock__add(l, TARGETS[0]), 0);
	h = hold(no_setup, (u32[]){4194303}, 1);
	assert_int_equal(h.say, 'n');
	end(h);
	hb_target_lock__release(l);
	is_free((u32[]){4194303}, 1);
}

static void many_targets(void **state)
{
	u32 pids[500];
	struct holder h;

	for (u32 i = 0; i < 500; i++)
		pids[i] = 4190000 + i;
	h = hold(no_setup, pids, 500);
	assert_int_equal(h.say, 'y');
	if (geteuid() == 0)
		refused_by(h.pid, pids + 499, 1);
	refused_by(h.pid, pids, 1);
	end(h);
}

/* Eight at once, all holding what they got: never two winners. */
static void race(void **state)
{
	for (int round = 0; round < 5; round++) {
		int said[2], go[2], won = 0;
		char c;

		assert_int_equal(pipe2(said, O_CLOEXEC), 0);
		assert_int_equal(pipe2(go, O_CLOEXEC), 0);
		for (int i = 0; i < 8; i++)
			if (fork() == 0) {
				struct hb_target_lock *l;

				close(go[1]);
				l = hb_target_lock__take(TARGETS, 2, NULL);
				if (write(said[1], l ? "y" : "n", 1) != 1 || read(go[0], &c, 1) != 0)
					_exit(9);
				_exit(0);
			}
		for (int i = 0; i < 8; i++) {
			assert_int_equal(read(said[0], &c, 1), 1);
			won += c == 'y';
		}
		assert_true(won <= 1); /* 0: all gave way, which is safe */
		close(go[1]);
		close(go[0]);
		close(said[0]);
		close(said[1]);
		while (wait(NULL) > 0)
			;
		is_free(TARGETS, 2);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(second_tool),
	    cmocka_unit_test(gone_with_sigkill),
	    cmocka_unit_test(across_namespaces),
	    cmocka_unit_test(without_capabilities),
	    cmocka_unit_test(child_joins),
	    cmocka_unit_test(many_targets),
	    cmocka_unit_test(race),
	};

	return cmocka_run_group_tests_name("lock", tests, NULL, NULL);
}
