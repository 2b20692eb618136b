// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* bpf/sched.bpf.c: how long a thread was off its CPU and why, where nobody woke it; and where it slept. */
#include "sched_rounds.h"

#include <sched.h>
#include <sys/timerfd.h>
#include <time.h>

/* ---- sleeps without a waker ---- */

static void tick(long ns)
{
	struct itimerspec t = {.it_value.tv_nsec = ns};
	int fd = timerfd_create(CLOCK_MONOTONIC, 0);
	u64 n;

	if (timerfd_settime(fd, 0, &t, NULL) || read(fd, &n, 8) != 8)
		_exit(92);
	close(fd);
}

static int timed_sleeps(_Atomic u64 *slot)
{
	struct timespec t = {.tv_nsec = 3000000};

	slot[TID] = rig_tid();
	rounds_warm_up(slot);
	for (unsigned i = 0; i < ROUNDS; i++) {
		round_begins(slot, i);
		if (i % 3 == 1)
			poll(NULL, 0, 3);
		else if (i % 3 == 2)
			tick(3000000);
		else
			syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &t, NULL);
		round_ends(slot, i);
	}
	return 0;
}

static void timers_have_no_waker_to_blame(void **state)
{
	static const long calls[] = {SYS_clock_nanosleep, NR_POLL, SYS_read};
	unsigned n = 0;
	struct rig_child c;
	struct rig *r;

	RIG_NEEDS_ROOT();
	c = rig_child__fork(timed_sleeps);
	r = sched_rig();
	rig__record(r, &c);
	for (unsigned i = 0; i < ROUNDS; i++) {
		const struct hb_rec_offcpu *o;

		o = sleep_of(r, &c, i, calls[i % 3]);
		if (!o)
			continue;
		assert_int_equal(o->chankind, HB_CHAN_TIMER);
		assert_int_equal(o->chan, 0);
		assert_true(o->dur + 1000000 >= 3000000); /* asleep only after the call began */
		if (o->wctx == HB_WCTX_UNKNOWN) {	  /* the wake-up was not seen: nobody is accused */
			assert_int_equal(o->waker, 0);
			assert_int_equal(o->ready, 0);
			continue;
		}
		n++;
		assert_true(o->wctx == HB_WCTX_HARDIRQ || o->wctx == HB_WCTX_IDLE);
	}
	assert_true(n > ROUNDS / 2);
	all_seen(r);
	rig__close(r, &c);
}

/* A kernel that tells less: sleeps are still sleeps, the context is unknown unless the CPU was idle. */
static void without_kernel_knobs(void **state)
{
	struct rig_record *x;
	unsigned pos = 0, slept = 0, counted = 0;
	struct rig_child c;
	struct rig *r;

	RIG_NEEDS_ROOT();
	c = rig_child__fork(timed_sleeps);
	r = sched_rig();
	r->skel->rodata->hb_preempt_off = 0;
	r->skel->rodata->hb_switch_has_state = false;
	rig__record(r, &c);
	while ((x = rig__next(r, &pos, HB_TYPE_offcpu, 0))) {
		if (x->offcpu.chankind != HB_CHAN_TIMER)
			continue;
		slept++;
		assert_int_equal(x->offcpu.state, HB_TSTATE_SLEEPING);
		assert_true(x->offcpu.wctx == HB_WCTX_UNKNOWN || x->offcpu.wctx == HB_WCTX_IDLE);
	}
	for (unsigned i = 0; i < ROUNDS; i++)
		counted += (unsigned)of_round(&c, i, SLEPT);
	assert_in_range(slept + rig__lost(r, HB_LOSS_MISSED, HB_TYPE_offcpu), counted, counted + 2);
	rig__close(r, &c);
}

static bool stay_on_this_cpu(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(sched_getcpu(), &set);
	return sched_setaffinity(0, sizeof(set), &set) == 0;
}

/* A busy process on the same CPU: the timer interrupts it. */
static int timed_sleeps_beside_a_spinner(_Atomic u64 *slot)
{
	pid_t other;

	if (!stay_on_this_cpu())
		return 1;
	other = fork();
	if (!other) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			;
	}
	slot[WORD] = (u64)other;
	timed_sleeps(slot);
	kill(other, SIGKILL);
	return waitpid(other, NULL, 0) != other;
}

static void an_interrupted_thread_is_a_bystander(void **state)
{
	struct rig_child c;
	struct rig_record *x;
	unsigned pos = 0, n = 0;
	struct rig *r;

	RIG_NEEDS_ROOT();
	c = rig_child__fork(timed_sleeps_beside_a_spinner);
	r = sched_rig();
	rig__record(r, &c);
	while ((x = rig__next(r, &pos, HB_TYPE_offcpu, (u32)c.slot[TID]))) {
		if (x->offcpu.chankind != HB_CHAN_TIMER || !x->offcpu.waker)
			continue;
		n++;
		assert_int_equal(x->offcpu.wctx, HB_WCTX_HARDIRQ);
		if (x->offcpu.waker == c.slot[WORD])
			assert_int_equal(x->offcpu.wsys, HB_SYSNO_NONE);
	}
	assert_true(n > 0);
	rig__close(r, &c);
}

static int spin_on_one_cpu(_Atomic u64 *slot)
{
	u64 until = hb_clock__now() + 400000000;
	pid_t other;

	if (!stay_on_this_cpu())
		return 1;
	slot[TID] = rig_tid();
	other = fork(); /* not followed: a competitor outside the target */
	while (hb_clock__now() < until)
		;
	if (!other)
		_exit(0);
	return waitpid(other, NULL, 0) != other;
}

static void preemption_is_ready_time(void **state)
{
	struct rig_child c;
	struct rig_record *x;
	unsigned pos = 0, preempted = 0, named = 0;
	struct rig *r;

	RIG_NEEDS_ROOT();
	c = rig_child__fork(spin_on_one_cpu);
	r = sched_rig();
	rig__record(r, &c);
	while ((x = rig__next(r, &pos, HB_TYPE_offcpu, (u32)c.slot[TID]))) {
		if (x->offcpu.state != HB_TSTATE_RUNNING)
			continue;
		preempted++;
		assert_int_equal(x->offcpu.ready, x->offcpu.dur);
		assert_int_equal(x->offcpu.waker, 0);
		assert_int_equal(x->offcpu.wsys, HB_SYSNO_NONE);
		assert_int_equal(x->offcpu.chankind, HB_CHAN_NONE);
		if (x->offcpu.sysno == HB_SYSNO_NONE)
			assert_int_equal(x->offcpu.a0, 0);
		assert_int_not_equal(x->offcpu.ran, c.slot[TID]); /* it was not that one */
		assert_int_equal(x->offcpu.ran != 0, x->offcpu.ran_pid != 0);
		named += x->offcpu.ran != 0;
	}
	assert_true(preempted > 3);
	assert_true(named > 0); /* a slice is longer than the 100 us from which on it is told */
	rig__close(r, &c);
}

/* ---- stacks ---- */

/* A system call in the function itself, so that the first address lies in it; both have frame pointers. */
RIG_PLACED(sleep_here) static long sleep_here(long ns)
{
	struct timespec t = {.tv_nsec = ns};
	long ret;

#if defined(__x86_64__)
	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(SYS_nanosleep), "D"(&t), "S"(0)
			 : "rcx", "r11", "memory");
#else
	ret = syscall(SYS_nanosleep, &t, NULL);
#endif
	return ret;
}

RIG_PLACED(from_one) static long from_one(long ns)
{
	return sleep_here(ns) + 1;
}

RIG_PLACED(from_two) static long from_two(long ns)
{
	return sleep_here(ns) + 2;
}

static int sleeps_from_two_places(_Atomic u64 *slot)
{
	slot[TID] = rig_tid();
	rounds_warm_up(slot);
	for (unsigned i = 0; i < ROUNDS; i++) {
		round_begins(slot, i);
		(i % 4 < 2 ? from_one : from_two)(i % 5 ? 20000 : 12000000);
		round_ends(slot, i);
	}
	return 0;
}

static void check_stack(struct rig *r, u32 raw, bool one)
{
	struct hb_stack_trace t = {0};
	const u64 *addr = t.ip;

	assert_int_equal(bpf_map_lookup_elem(bpf_map__fd(r->skel->maps.stacks), &raw, &t), 0);
	assert_true(RIG_LIES_IN(addr[0], sleep_here));
	if (one)
		assert_true(RIG_LIES_IN(addr[1], from_one));
	else
		assert_true(RIG_LIES_IN(addr[1], from_two));
}

static void stacks_say_where_it_slept(void **state)
{
	u64 min = 8000000;
	unsigned longer = 0;
	struct rig_child c;
	struct rig *r;

	RIG_NEEDS_ROOT();
	c = rig_child__fork(sleeps_from_two_places);
	r = sched_rig();
	r->skel->rodata->hb_offcpu_stack_min_ns = min;
	rig__record(r, &c);
	for (unsigned i = 0; i < ROUNDS; i++) {
		const struct hb_rec_offcpu *o = sleep_of(r, &c, i, SYS_nanosleep);

		if (!o)
			continue;
		assert_int_equal(o->stack != 0, o->dur >= min);
		if (!o->stack)
			continue;
		longer++;
		check_stack(r, o->stack, i % 4 < 2);
	}
	assert_true(longer > 0);
	all_seen(r);
	assert_int_equal(rig__lost(r, HB_LOSS_STACK_FULL, HB_TYPE_offcpu), 0);
	rig__close(r, &c);
}

static void short_sleeps_can_be_left_out(void **state)
{
	struct rig_record *x;
	unsigned pos = 0, n = 0;
	struct rig_child c;
	struct rig *r;

	RIG_NEEDS_ROOT();
	c = rig_child__fork(sleeps_from_two_places);
	r = sched_rig();
	r->skel->rodata->hb_offcpu_min_ns = 8000000;
	r->skel->rodata->hb_offcpu_stacks = false;
	rig__record(r, &c);
	while ((x = rig__next(r, &pos, HB_TYPE_offcpu, 0))) {
		n++;
		assert_true(x->offcpu.dur >= 8000000);
		assert_int_equal(x->offcpu.stack, 0);
	}
	assert_true(n > 0);
	rig__close(r, &c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(timers_have_no_waker_to_blame),
	    cmocka_unit_test(without_kernel_knobs),
	    cmocka_unit_test(an_interrupted_thread_is_a_bystander),
	    cmocka_unit_test(preemption_is_ready_time),
	    cmocka_unit_test(stacks_say_where_it_slept),
	    cmocka_unit_test(short_sleeps_can_be_left_out),
	};

	return cmocka_run_group_tests_name("sched.bpf: time", tests, NULL, NULL);
}
