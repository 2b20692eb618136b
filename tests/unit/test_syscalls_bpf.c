// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* bpf/syscalls.bpf.c against calls that a child counted itself. */
#include "bpf_rig.h"

#include <linux/perf_event.h>
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
	rig__close(r, &c);
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
	rig__close(r, &c);
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
	rig__record(r, &c);
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
	rig__close(r, &c);
}

#if defined(__x86_64__)
/* A no-op of five bytes: the kernel makes a probe of it a call, and its return a system call of another
 * number; older kernels stop with a trap instead and there is nothing to be seen. */
__asm__(".text\n.globl hb_probed\n.type hb_probed, @function\nhb_probed:\n"
	".byte 0x0f, 0x1f, 0x44, 0x00, 0x00\nret\n.size hb_probed, . - hb_probed\n");
extern void hb_probed(void);

static int probed_calls(_Atomic u64 *slot)
{
	for (u64 i = 0; i < N_CALLS; i++) {
		hb_probed();
		syscall(SYS_pread64, ODD_FD, i, 0, 0);
	}
	return 0;
}

/* Where in the file it lies: the mapping of this program that holds it says so. */
static u64 code_offset(void)
{
	u64 at = (u64)hb_probed, offset = 0;
	FILE *f = fopen("/proc/self/maps", "re");
	char line[4352];

	assert_non_null(f);
	while (!offset && fgets(line, sizeof(line), f)) {
		unsigned long long a, b, o;

		assert_int_equal(sscanf(line, "%llx-%llx %*s %llx", &a, &b, &o), 3);
		if (at >= a && at < b)
			offset = at - a + o;
	}
	fclose(f);
	assert_int_not_equal(offset, 0);
	return offset;
}

/* An event of the kernel's kind for probes, on hb_probed in this process and what it forks; no program runs.
 */
static int probe(pid_t pid, bool ret)
{
	struct perf_event_attr attr = {.size = sizeof(attr), .config = ret, .sample_period = 1};
	char exe[4096] = "";
	FILE *f = fopen("/sys/bus/event_source/devices/uprobe/type", "re");

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%u", &attr.type), 1);
	fclose(f);
	assert_true(readlink("/proc/self/exe", exe, sizeof(exe) - 1) > 0);
	attr.config1 = (u64)exe;
	attr.config2 = code_offset();
	return (int)syscall(SYS_perf_event_open, &attr, pid, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

static void probes_are_not_calls_of_the_target(void **state)
{
	int fds[2];
	struct rig_record *x;
	unsigned pos = 0, calls = 0;
	struct rig_child c;
	struct rig *r;

	RIG_NEEDS_ROOT();
	c = rig_child__fork(probed_calls);
	assert_true(rig_wait_asleep(c.pid, (u32)c.pid, SYS_read));
	for (int i = 0; i < 2; i++) {
		fds[i] = probe(c.pid, i);
		assert_true(fds[i] >= 0);
	}
	r = syscall_rig();
	rig__record(r, &c);
	while ((x = rig__next(r, &pos, HB_TYPE_syscall, 0))) {
		assert_int_not_equal(x->syscall.sysno, 335);
		assert_int_not_equal(x->syscall.sysno, 336);
		calls += x->syscall.sysno == SYS_pread64;
	}
	assert_int_equal(calls, N_CALLS);
	assert_int_equal(rig__lost(r, HB_LOSS_UNFINISHED, HB_TYPE_syscall), 1); /* the read at the start */
	close(fds[0]);
	close(fds[1]);
	rig__close(r, &c);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_call_once_with_its_arguments),
		cmocka_unit_test(calls_in_flight_are_a_loss),
		cmocka_unit_test(recorded_and_lost_are_all_there_were),
#if defined(__x86_64__)
		cmocka_unit_test(probes_are_not_calls_of_the_target),
#endif
	};

	return cmocka_run_group_tests_name("syscalls.bpf", tests, NULL, NULL);
}
