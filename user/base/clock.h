/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Time is CLOCK_MONOTONIC nanoseconds in integers, everywhere (== bpf_ktime_get_ns). */
#ifndef HB_BASE_CLOCK_H
#define HB_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t hb_clock__read(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * 1000000000ULL + (uint64_t)t.tv_nsec;
}

static inline uint64_t hb_clock__now(void)
{
	return hb_clock__read(CLOCK_MONOTONIC);
}

/* Milliseconds left until `deadline` (monotonic ns), rounded up, 0 when past: ready for poll(2). */
static inline int hb_clock__left_ms(uint64_t deadline)
{
	uint64_t now = hb_clock__now();
	uint64_t ms = now >= deadline ? 0 : (deadline - now + 999999) / 1000000;

	return ms > 3600000 ? 3600000 : (int)ms;
}

#endif
