/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include "sim.h"

#define SHORT_NS 20000 /* a sleep shorter than the timer slack would overshoot: spin instead */
#define RETRY_NS 2000000

bool hb_moment__known(struct hb_moment *m, u64 *ns)
{
	u64 end;

	if (m->rdv) {
		if (!hb_rdv__end(m->rdv, m->chan, m->seq, &end))
			return false;
		if (end + m->plus > m->at)
			m->at = end + m->plus;
		m->rdv = NULL;
	}
	*ns = m->at;
	return true;
}

bool hb_moment__passed(struct hb_moment *m, u64 now)
{
	u64 ns;

	return hb_moment__known(m, &ns) && ns <= now;
}

/*
 * One dependency fits in a moment. Of two on one channel the later operation wins (it cannot end before the
 * earlier); of two on different channels the other one is kept: a stream that joins two unfinished
 * communicators may be seen as done a little early.
 */
void hb_moment__join(struct hb_moment *m, const struct hb_moment *other)
{
	struct hb_moment o = *other;
	u64 ns;

	hb_moment__known(m, &ns);
	hb_moment__known(&o, &ns);
	if (o.at > m->at)
		m->at = o.at;
	if (!o.rdv)
		return;
	if (!m->rdv || m->rdv != o.rdv || m->chan != o.chan || o.seq >= m->seq) {
		u64 plus = m->rdv && m->plus > o.plus ? m->plus : o.plus;

		m->rdv = o.rdv;
		m->chan = o.chan;
		m->seq = o.seq;
		m->plus = plus;
	}
}

void hb_moment__advance(struct hb_moment *m, u64 now, u64 cost)
{
	m->at = (m->at > now ? m->at : now) + cost;
	m->plus += m->rdv ? cost : 0;
}

static u32 sync_mode;

static void read_mode(void)
{
	const char *s = getenv("HB_SIM_SYNC");

	if (s && !strcmp(s, "spin"))
		sync_mode = CU_CTX_SCHED_SPIN;
	else if (s && !strcmp(s, "yield"))
		sync_mode = CU_CTX_SCHED_YIELD;
	else if (s && !strcmp(s, "block"))
		sync_mode = CU_CTX_SCHED_BLOCKING_SYNC;
}

static u32 mode_for(u32 sched)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, read_mode);
	if (sync_mode)
		return sync_mode;
	sched &= CU_CTX_SCHED_MASK;
	return sched ? sched : CU_CTX_SCHED_BLOCKING_SYNC;
}

static void sleep_until(u64 ns)
{
	struct timespec t = {.tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u)};

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

static void pass_time(u32 mode, u64 now, u64 until)
{
	if (mode == CU_CTX_SCHED_YIELD)
		sched_yield();
	else if (mode == CU_CTX_SCHED_BLOCKING_SYNC && until - now > SHORT_NS)
		sleep_until(until);
	else
		hb_costs__spin(now, 100);
}

void hb_moment__wait(const struct hb_moment *moment, u32 sched)
{
	struct hb_moment m = *moment;
	u32 mode = mode_for(sched);
	u64 until, now;

	while (!hb_moment__known(&m, &until)) {
		if (mode == CU_CTX_SCHED_BLOCKING_SYNC)
			hb_rdv__wait(m.rdv, m.chan, m.seq, RETRY_NS);
		else
			sched_yield();
	}
	while ((now = hb_now()) < until)
		pass_time(mode, now, until);
}
