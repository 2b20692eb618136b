/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Rounds of sleeps in a target, each with the thread's own clock and the kernel's own count of its switches:
 * what tests of bpf/sched.bpf.c compare records with. */
#ifndef HB_TEST_SCHED_ROUNDS_H
#define HB_TEST_SCHED_ROUNDS_H

#include "bpf_rig.h"

#include <sys/resource.h>

#ifdef SYS_poll
#define NR_POLL	 SYS_poll
#define NR_EPOLL SYS_epoll_wait
#else
#define NR_POLL	 SYS_ppoll
#define NR_EPOLL SYS_epoll_pwait
#endif

#define ROUNDS 20
enum { TID = 0, READY = 1, WORD = 2, CHAN = 3, FROM = 16 /* then four words a round: enum of_round */ };
enum of_round { BEFORE, AFTER, SLEPT, PREEMPTED, PER_ROUND };

static inline struct rig *sched_rig(void)
{
	struct rig *r = rig__open();

	bpf_program__set_autoload(r->skel->progs.sched_switch, true);
	bpf_program__set_autoload(r->skel->progs.sched_waking, true);
	return r;
}

/* What a round did by the thread's own clock, and by the kernel's own count of its switches: a sleep whose
 * end comes before the thread has left the CPU is none, which a busy machine makes of any sleep at times. */
static inline void round_begins(_Atomic u64 *slot, unsigned i)
{
	struct rusage u;

	getrusage(RUSAGE_THREAD, &u);
	slot[FROM + PER_ROUND * i + SLEPT] = (u64)-u.ru_nvcsw;
	slot[FROM + PER_ROUND * i + PREEMPTED] = (u64)-u.ru_nivcsw;
	slot[FROM + PER_ROUND * i + BEFORE] = hb_clock__now();
}

static inline void round_ends(_Atomic u64 *slot, unsigned i)
{
	struct rusage u;

	slot[FROM + PER_ROUND * i + AFTER] = hb_clock__now();
	getrusage(RUSAGE_THREAD, &u);
	slot[FROM + PER_ROUND * i + SLEPT] += (u64)u.ru_nvcsw;
	slot[FROM + PER_ROUND * i + PREEMPTED] += (u64)u.ru_nivcsw;
}

/* Before the first round: what the readings touch is copied now. A fresh child's faults can sleep, on a lock
 * that it shares with all that were forked from the same parent, and one between a reading of the count and
 * the one of the clock would be counted and lie outside of the round. */
static inline void rounds_warm_up(_Atomic u64 *slot)
{
	round_begins(slot, 0);
	round_ends(slot, 0);
}

static inline u64 of_round(struct rig_child *c, unsigned i, enum of_round what)
{
	return c->slot[FROM + PER_ROUND * i + what];
}

static unsigned unseen; /* sleeps that the kernel counted and we did not see */

/* The one sleep of a round, in the scene's call, inside the sleeper's own readings of the clock; NULL when
 * the kernel counted none, or when the machine kept programs out of the moment it ended: see all_seen(). */
static inline const struct hb_rec_offcpu *sleep_of(struct rig *r, struct rig_child *c, unsigned round,
						   long sysno)
{
	u64 from = of_round(c, round, BEFORE), to = of_round(c, round, AFTER);
	const struct hb_rec_offcpu *found = NULL;
	unsigned pos = 0, slept = 0, preempted = 0;
	struct rig_record *x;

	while ((x = rig__next(r, &pos, HB_TYPE_offcpu, (u32)c->slot[TID]))) {
		if (x->w.ts < from || x->w.ts > to)
			continue;
		assert_int_equal(x->w.pid, c->pid);
		assert_true(x->w.ts - x->offcpu.dur >= from);
		assert_true(x->offcpu.ready <= x->offcpu.dur);
		if (x->offcpu.state == HB_TSTATE_RUNNING)
			preempted++;
		else
			slept++;
		if (x->offcpu.state == HB_TSTATE_SLEEPING && x->offcpu.sysno == sysno)
			found = &x->offcpu;
	}
	/* The kernel's readings lie outside the clock's, by a few instructions. */
	assert_in_range(preempted, 0, of_round(c, round, PREEMPTED));
	assert_in_range(slept, 0, of_round(c, round, SLEPT));
	unseen += (unsigned)of_round(c, round, SLEPT) - slept;
	return found;
}

/* There is a record for each sleep that the kernel counted in the rounds looked at, or a counted loss. */
static inline void all_seen(struct rig *r)
{
	unsigned n = unseen;

	unseen = 0; /* whatever comes of this test, the next one begins anew */
	/* That of the last round is noticed as the thread exits for good, which may be after its parent
	 * knows. */
	for (int i = 0; i < 1000 && rig__lost(r, HB_LOSS_MISSED, HB_TYPE_offcpu) < n; i++)
		usleep(1000);
	assert_in_range(n, 0, rig__lost(r, HB_LOSS_MISSED, HB_TYPE_offcpu));
	assert_true(n <= ROUNDS / 2); /* it is rare, but comes in bursts: 7 of 20 have been seen */
	assert_int_equal(rig__lost(r, HB_LOSS_RING_FULL, HB_TYPE_offcpu), 0);
	assert_int_equal(rig__lost(r, HB_LOSS_NO_STORAGE, HB_TYPE_offcpu), 0);
	assert_int_equal(rig__lost(r, HB_LOSS_STACK_NONE, HB_TYPE_offcpu), 0); /* its exit included */
}

#endif
