/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Records like those of a serving engine: of ten steps one is a prefill (320 eager launches with the period
 * of a layer), nine are decodes (a graph launch with copies and syncs around it); sleeps and CPU samples
 * between.
 */
#ifndef HB_BENCH_MIX_H
#define HB_BENCH_MIX_H

#include <math.h>
#include <string.h>

#include "schema/schema.h"

struct mix_rec {
	u64 ts;
	u16 task; /* 1 calls, 4..9 sleep */
	u8 type;
	union {
		struct hb_rec_accel a;
		struct hb_rec_offcpu o;
		struct hb_rec_sample s;
	} p;
};

struct mix {
	struct mix_rec *rec;
	u32 n, cap;
	u64 now, seed;
};

static inline u64 mix__random(struct mix *m)
{
	m->seed ^= m->seed << 13;
	m->seed ^= m->seed >> 7;
	m->seed ^= m->seed << 17;
	return m->seed;
}

/* About log-normal: durations of real calls are. */
static inline u64 mix__about(struct mix *m, double median, double spread)
{
	double u = 0;

	for (int i = 0; i < 4; i++)
		u += (double)(mix__random(m) >> 11) / 9007199254740992.0 - 0.5;
	return (u64)(median * exp(spread * u * 1.7));
}

static inline struct mix_rec *mix__add(struct mix *m, u8 type, u16 task)
{
	struct mix_rec *r = &m->rec[m->n++];

	memset(r, 0, sizeof(*r));
	r->ts = m->now;
	r->type = type;
	r->task = task;
	return r;
}

static inline void mix__sleep(struct mix *m, u16 task)
{
	struct mix_rec *r = mix__add(m, HB_TYPE_offcpu, task);

	r->p.o = (struct hb_rec_offcpu){.dur = mix__about(m, 5e5, 1),
					.ready = mix__about(m, 3000, .8),
					.chan = 0x7f0011223300 + mix__random(m) % 8 * 64,
					.a1 = 128,
					.a2 = mix__random(m) % 5000,
					.waker = 1000 + (u32)(mix__random(m) % 10),
					.waker_pid = 900,
					.stack = (u32)(mix__random(m) % 200) * 7919,
					.sysno = 202,
					.wsys = 202,
					.state = HB_TSTATE_SLEEPING,
					.wctx = HB_WCTX_TASK,
					.chankind = HB_CHAN_FUTEX};
	r->p.o.a0 = r->p.o.chan;
}

static inline void mix__sample(struct mix *m, u16 task)
{
	struct mix_rec *r = mix__add(m, HB_TYPE_sample, task);

	r->p.s = (struct hb_rec_sample){.weight = 10101010 + mix__random(m) % 3000,
					.ip = 0x7f1234000000 + mix__random(m) % 200000,
					.stack = (u32)(mix__random(m) % 5000) * 7919,
					.sysno = HB_SYSNO_NONE};
}

static inline void mix__prefill(struct mix *m, u16 task)
{
	u32 tokens = 256 + (u32)(mix__random(m) % 2048);

	for (u32 i = 0; i < 320; i++) {
		u32 k = i % 10;
		struct mix_rec *r;

		m->now += mix__about(m, 6000, .4);
		r = mix__add(m, HB_TYPE_accel, task);
		r->p.a = (struct hb_rec_accel){.stream = 0x55d0c0ffee00,
					       .handle = 0x7f3200000000 + k * 0x1234560 * (k + 3),
					       .gx = k < 4 ? (tokens + 127) / 128 * (k + 1) : tokens,
					       .gy = k % 3 ? 1 : 8,
					       .gz = 1,
					       .bx = k % 2 ? 128 : 256,
					       .by = 1,
					       .bz = 1,
					       .probe = 3 + (k == 9),
					       .stack = i * 7919 + 1,
					       .shm = k % 4 ? 0 : 49152};
		if (mix__random(m) % 40 == 0)
			mix__sample(m, task);
		if (mix__random(m) % 100 == 0)
			mix__sleep(m, (u16)(4 + mix__random(m) % 6));
	}
}

static inline void mix__decode(struct mix *m, u16 task)
{
	u32 batch = 1 + (u32)(mix__random(m) % 64);

	for (u32 k = 0; k < 12; k++) {
		bool timed = k < 5 || k > 8;
		struct mix_rec *r;

		m->now += mix__about(m, 20000, .5);
		r = mix__add(m, HB_TYPE_accel, task);
		r->p.a =
		    (struct hb_rec_accel){.stream = 0x55d0c0ffee00,
					  .handle = k == 5  ? 0x55d0c1234500ULL + 64 * (batch / 8)
						    : k < 5 ? 0x7f5500000000ULL + mix__random(m) % 16 * 4096
							    : 0,
					  .bytes = k < 5 ? batch * 4 : 0,
					  .probe = 10 + k,
					  .dur = timed ? mix__about(m, k == 9 ? 12e6 : 4000, .6) : 0,
					  .flags = timed ? HB_AFLAG_RET | HB_AFLAG_TIMED : 0,
					  .kind = k < 5,
					  .stack = 40000 + k * 13 + batch % 3};
		m->now += r->p.a.dur;
		if (mix__random(m) % 3 == 0)
			mix__sleep(m, (u16)(4 + mix__random(m) % 6));
	}
}

/* Fills rec[0..cap) as far as whole steps go; `n` tells how far. */
static inline void mix__make(struct mix *m)
{
	m->seed = 88172645463325252ULL;
	m->now = 1000000000000ULL;
	m->n = 0;
	for (u32 step = 0; m->n + 1000 < m->cap; step++)
		step % 10 == 0 ? mix__prefill(m, 1) : mix__decode(m, 1);
}

#endif
