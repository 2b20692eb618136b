// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* bpf/syscalls.bpf.c against calls that a child counted itself. */
#include "bpf_rig.h"

#include <pthread.h>

#define N_CALLS 1000
#define ODD_FD	0x7ffffffe

static struct rig *syscall_rig(void)
{
	struct rig *r = rig__open();

	bpf_program__set_autoload(r->skel->progs.sys_enter, true);
	bpf_program__set_autoload(r->skel->progs.sys_exit, true);
	return r;
}

static int known_calls(_Atomic u64 *slot)
{
	int status;
	pid_t pid;

	slot[0] = hb_clock__now();
	for (u64 i = 0; i < N_CALLS; i++)
		syscall(SYS_pread64, ODD_FD, i, i + 1, i + 2);
	slot[1] = hb_clock__now();
	pid = fork();
	if (!pid)
		_exit(0);
	slot[2] = (u64)pid;
	waitpid(pid, &status, 0);
	return 3; /* by _exit: exit_group */
}

static struct rig *run(struct rig_child *c)
{
	struct rig *r;

	*c = rig_child__fork(known_calls);
	assert_true(rig_wait_asleep(c->pid, (u32)c->pid, SYS_read)); /* for the start */
	r = syscall_rig();
	rig__start(r);
	rig__target(r, c->pid, 0);
	rig_child__go(c);
	assert_int_equal(rig_child__wait(c), 3 << 8);
	rig__drain(r);
	return r;
}

static void each_call_once_with_its_arguments(void **state)
{
	struct rig_record *x;
	unsigned pos = 0;
	struct rig_child c;
	u64 n = 0;
	struct rig *r;

	RIG_NEEDS_ROOT();
	r = run(&c);
	while ((x = rig__next(r, &pos, HB_TYPE_syscall, 0))) {
		assert_int_equal(x->w.tid, c.pid);
		if (x->syscall.sysno != SYS_pread64)
			continue;
		assert_int_equal(x->syscall.a0, ODD_FD);
		assert_int_equal(x->syscall.a1, n);
		assert_int_equal(x->syscall.a2, n + 1);
		assert_int_equal(x->syscall.a3, n + 2);
		assert_int_equal(x->syscall.ret, -EBADF);
		assert_int_equal(x->syscall.stack, 0);
		assert_true(x->w.ts - x->syscall.dur >= c.slot[0] && x->w.ts <= c.slot[1]);
		n++;
	}
	assert_int_equal(n, N_CALLS);
	assert_int_equal(rig__lost(r, HB_LOSS_RING_FULL, HB_TYPE_syscall), 0);
	rig__free(r);
	rig_child__drop(&c);
}

/* In flight at the start: the read that it waited in. The fork returns twice, but only once in a target. */
static void calls_in_flight_are_a_loss(void **state)
{
	struct rig_record *x;
	unsigned pos = 0, gone = 0, forks = 0;
	struct rig_child c;
	struct rig *r;

	RIG_NEEDS_ROOT();
	r = run(&c);
	assert_int_equal(rig__lost(r, HB_LOSS_UNFINISHED, HB_TYPE_syscall), 1);
	while ((x = rig__next(r, &pos, HB_TYPE_syscall, 0))) {
		forks += (u64)x->syscall.ret == c.slot[2] && x->syscall.sysno != SYS_wait4;
		if (x->syscall.sysno != SYS_exit_group)
			continue;
		gone++;
		assert_int_equal(x->syscall.dur, 0);
		assert_int_equal(x->syscall.a0, 3);
	}
	assert_int_equal(gone, 1);
	assert_int_equal(forks, 1);
	rig__free(r);
	rig_child__drop(&c);
}

static void *thread_calls(void *arg)
{
	for (u64 i = 0; i < N_CALLS; i++)
		syscall(SYS_pread64, ODD_FD, i, (u64)arg, 0);
	return NULL;
}

static int calls_from_threads(_Atomic u64 *slot)
{
	pthread_t t[4];

	for (u64 i = 0; i < 4; i++)
		if (pthread_create(&t[i], NULL, thread_calls, (void *)i))
			return 1;
	for (u64 i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	return 0;
}

/* New threads leave a clone that their creator entered: neither a record nor a loss. Full rings are counted.
 */
static void recorded_and_lost_are_all_there_were(void **state)
{
	struct rig_record *x;
	unsigned pos = 0;
	u64 recorded = 0, returned = 0, lost, expected = 4 * N_CALLS;
	struct rig_child c;
	struct rig *r;

	RIG_NEEDS_ROOT();
	c = rig_child__fork(calls_from_threads);
	assert_true(rig_wait_asleep(c.pid, (u32)c.pid, SYS_read));
	r = syscall_rig();
	r->ring_bytes = 65536; /* too small, and not read meanwhile */
	rig__start(r);
	rig__target(r, c.pid, 0);
	rig_child__go(&c);
	assert_int_equal(rig_child__wait(&c), 0);
	rig__drain(r);
	while ((x = rig__next(r, &pos, HB_TYPE_syscall, 0))) {
		recorded++;
		returned += x->syscall.sysno == SYS_pread64;
	}
	lost = rig__lost(r, HB_LOSS_RING_FULL, HB_TYPE_syscall);
	assert_true(lost > 0);
	assert_true(returned < expected);
	assert_true(recorded + lost >= expected); /* other calls too: clone, mmap, futex ... */
	assert_true(recorded + lost < expected + 500);
	assert_int_equal(rig__lost(r, HB_LOSS_UNFINISHED, HB_TYPE_syscall), 1);
	rig__free(r);
	rig_child__drop(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(each_call_once_with_its_arguments),
	    cmocka_unit_test(calls_in_flight_are_a_loss),
	    cmocka_unit_test(recorded_and_lost_are_all_there_were),
	};

	return cmocka_run_group_tests_name("syscalls.bpf", tests, NULL, NULL);
}
