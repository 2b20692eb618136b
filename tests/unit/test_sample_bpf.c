// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* bpf/sample.bpf.c and its ticks, on a child that burns CPU in a known function, and in the kernel. */
#include "bpf_rig.h"

#include "capture/session/sampling.h"
#include <sched.h>
#include <time.h>

#define FREQ   499
#define PERIOD hb_sampling__period(FREQ)
#define GAP    200000000ULL /* ns without ticks */
#define BURN   600000000ULL /* ns of its own CPU time */

struct run {
	struct rig *r;
	struct rig_child c;
};

/* A leaf without calls, so that all its samples lie in itself. */
RIG_PLACED(burn) static u64 burn(u64 x)
{
	for (unsigned i = 0; i < 3000000; i++)
		x = x * 6364136223846793005ULL + 1442695040888963407ULL;
	return x;
}

RIG_PLACED(burn_for) static u64 burn_for(_Atomic u64 *slot)
{
	u64 x = 1;

	while (hb_clock__read(CLOCK_THREAD_CPUTIME_ID) < BURN)
		x = burn(x) + 1;
	return x;
}

RIG_PLACED(burn_user) static int burn_user(_Atomic u64 *slot)
{
	slot[1] = burn_for(slot);
	slot[0] = hb_clock__read(CLOCK_THREAD_CPUTIME_ID);
	return 0;
}

static int burn_kernel(_Atomic u64 *slot)
{
	int fd = open("/dev/zero", O_RDONLY);
	char *buf = malloc(8 << 20);

	while (buf && hb_clock__read(CLOCK_THREAD_CPUTIME_ID) < BURN)
		if (read(fd, buf, 8 << 20) <= 0)
			return 1;
	free(buf);
	slot[0] = hb_clock__read(CLOCK_THREAD_CPUTIME_ID);
	return 0;
}

static struct hb_sampling *ticks(struct run *x)
{
	struct hb_error e = {0};
	struct hb_sampling *s = hb_sampling__new(bpf_program__fd(x->r->skel->progs.sample), FREQ, &e);

	if (!s)
		fail_msg("%s", e.text);
	assert_true(hb_sampling__cpus(s) >= 1);
	return s;
}

static struct run ready(int (*fn)(_Atomic u64 *))
{
	struct run x = {.c = rig_child__fork(fn), .r = rig__open()};

	bpf_program__set_autoload(x.r->skel->progs.sample, true);
	x.r->skel->rodata->hb_sample_period = PERIOD;
	rig__start(x.r);
	rig__target(x.r, x.c.pid, 0);
	return x;
}

static struct run run(int (*fn)(_Atomic u64 *))
{
	struct run x = ready(fn);
	struct hb_sampling *s = ticks(&x);

	rig_child__go(&x.c);
	assert_int_equal(rig_child__wait(&x.c), 0);
	hb_sampling__free(s);
	rig__drain(x.r);
	assert_int_equal(rig__lost(x.r, HB_LOSS_RING_FULL, HB_TYPE_sample), 0);
	assert_int_equal(rig__lost(x.r, HB_LOSS_STACK_NONE, HB_TYPE_sample), 0);
	return x;
}

static void done(struct run *x)
{
	rig__free(x->r);
	rig_child__drop(&x->c);
}

static u32 frames(struct run *x, u32 raw, u64 addr[HB_STACK_DEPTH])
{
	struct hb_stack_trace t;

	assert_int_not_equal(raw, 0);
	assert_int_equal(bpf_map_lookup_elem(bpf_map__fd(x->r->skel->maps.stacks), &raw, &t), 0);
	assert_in_range(t.n, 1, HB_STACK_DEPTH);
	memcpy(addr, t.ip, t.n * sizeof(u64));
	return t.n;
}

static bool under_burn_user(const u64 *addr, u32 depth)
{
	for (u32 i = 0; i < depth; i++)
		if (RIG_LIES_IN(addr[i], burn_user))
			return true;
	return false;
}

static void samples_lie_in_the_busy_function(void **state)
{
	u64 addr[HB_STACK_DEPTH], weight = 0;
	u32 depth;
	unsigned pos = 0, n = 0, hot = 0, called = 0;
	struct rig_record *s;
	struct run x;

	RIG_NEEDS_ROOT();
	x = run(burn_user);
	while ((s = rig__next(x.r, &pos, HB_TYPE_sample, 0))) {
		assert_int_equal(s->w.pid, x.c.pid);
		assert_int_equal(s->sample.cpu, s->w.cpu & 255);
		n++;
		weight += s->sample.weight;
		if (!RIG_LIES_IN(s->sample.ip, burn))
			continue;
		hot++;
		assert_int_equal(s->sample.mode, HB_CPUMODE_USER);
		assert_int_equal(s->sample.sysno, HB_SYSNO_NONE);
		assert_int_equal(s->sample.kstack, 0);
		depth = frames(&x, s->sample.stack, addr);
		assert_int_equal(addr[0], s->sample.ip);
		called += under_burn_user(addr, depth);
	}
	print_message(
	    "%u samples, %u in the function, %u under the thread's main one, weight %.0f ms of %.0f ms CPU\n",
	    n, hot, called, (double)weight / 1e6, (double)x.c.slot[0] / 1e6);
	assert_true(n > 10);
	assert_true(hot * 10 > n * 8);
	assert_true(called * 10 > hot * 9);
	/* What samples stand for is the CPU time that the kernel counted: sanity, not precision. */
	weight += rig__lost(x.r, HB_LOSS_MISSED, HB_TYPE_sample) * PERIOD;
	assert_true(weight > x.c.slot[0] / 2);
	done(&x);
}

/* On one CPU, and the only one whose ticks are wanted, until it is told to end. */
static int burn_on_one_cpu(_Atomic u64 *slot)
{
	cpu_set_t one;
	u64 x = 1;

	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	if (sched_setaffinity(0, sizeof(one), &one))
		return 1;
	slot[1] = (u64)sched_getcpu() + 1;
	while (!atomic_load(&slot[0]))
		x = burn(x) + 1;
	slot[2] = x;
	slot[3] = hb_clock__read(CLOCK_THREAD_CPUTIME_ID);
	return 0;
}

static u64 missed_on(struct run *x, u64 cpu)
{
	u64 v[1024] = {0};
	u32 key = HB_LOSS_KEY(HB_LOSS_MISSED, HB_TYPE_sample);

	assert_true(libbpf_num_possible_cpus() <= 1024 && cpu < 1024);
	assert_int_equal(bpf_map_lookup_elem(bpf_map__fd(x->r->skel->maps.losses), &key, v), 0);
	return v[cpu];
}

/* Ticks that do not come, here because nobody asks for them for a while, are nobody's time: no sample is
 * longer for it, they are counted, and with them the time is whole. */
static void missed_ticks_are_counted_and_nobodys(void **state)
{
	u64 begin, wall, weight = 0, missed, cpu;
	unsigned pos = 0, n = 0;
	struct rig_record *r;
	struct hb_sampling *s;
	struct run x;

	RIG_NEEDS_ROOT();
	x = ready(burn_on_one_cpu);
	rig_child__go(&x.c);
	assert_true(rig_wait_slot(&x.c.slot[1]));
	begin = hb_clock__now();
	s = ticks(&x);
	usleep(200000);
	hb_sampling__free(s);
	usleep(GAP / 1000);
	s = ticks(&x);
	usleep(200000);
	hb_sampling__free(s);
	wall = hb_clock__now() - begin;
	x.c.slot[0] = 1;
	assert_int_equal(rig_child__wait(&x.c), 0);
	rig__drain(x.r);
	while ((r = rig__next(x.r, &pos, HB_TYPE_sample, 0))) {
		assert_true(r->sample.weight <= PERIOD * 3 / 2);
		weight += r->sample.weight;
		n++;
	}
	cpu = x.c.slot[1] - 1;
	missed = missed_on(&x, cpu);
	print_message("%u samples of %.1f ms, %llu ticks missed, %.1f ms in all\n", n, (double)weight / 1e6,
		      (unsigned long long)missed, (double)wall / 1e6);
	assert_true(n > 10);
	assert_true(missed >= GAP / PERIOD - 2);
	assert_true(weight <= wall + PERIOD); /* the first tick stands for a period that began before */
	/* Every gap is rounded to whole periods, in favour of neither side: sanity, not precision. Ticks that
	 * meet another process on this CPU are neither ours nor missed. */
	assert_true(weight + missed * PERIOD < wall * 5 / 4);
	assert_true(weight + missed * PERIOD > x.c.slot[3] / 2);
	done(&x);
}

static void kernel_samples_name_the_call(void **state)
{
	u64 addr[HB_STACK_DEPTH];
	unsigned pos = 0, n = 0, reads = 0;
	struct rig_record *s;
	struct run x;

	RIG_NEEDS_ROOT();
	x = run(burn_kernel);
	while ((s = rig__next(x.r, &pos, HB_TYPE_sample, 0))) {
		if (s->sample.mode != HB_CPUMODE_KERNEL)
			continue;
		n++;
		assert_true((s64)s->sample.ip < 0); /* the upper half is the kernel's */
		assert_true(frames(&x, s->sample.kstack, addr) > 1);
		assert_true((s64)addr[0] < 0);
		reads += s->sample.sysno == SYS_read;
	}
	assert_true(n > 10);
	assert_true(reads * 10 > n * 8);
	done(&x);
}

static void frequencies_out_of_range_are_refused(void **state)
{
	struct hb_error e = {0};

	assert_null(hb_sampling__new(-1, 0, &e));
	assert_int_equal(e.exit, HB_EXIT_USAGE);
	hb_error__clear(&e);
	assert_null(hb_sampling__new(-1, HB_SAMPLING_MAX_FREQ + 1, &e));
	assert_int_equal(e.exit, HB_EXIT_USAGE);
	assert_non_null(strstr(e.text, "10001"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(samples_lie_in_the_busy_function),
	    cmocka_unit_test(missed_ticks_are_counted_and_nobodys),
	    cmocka_unit_test(kernel_samples_name_the_call),
	    cmocka_unit_test(frequencies_out_of_range_are_refused),
	};

	return cmocka_run_group_tests_name("sample.bpf", tests, NULL, NULL);
}
