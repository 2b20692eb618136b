/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Speed and size of the window file on a synthetic mix like that of a serving engine: prefill steps of eager
 * launches with a period of one layer, decode steps of a graph launch with copies and syncs, sleeps and CPU
 * samples between. usage: bench_window [MILLION_RECORDS] [STREAMS] [FILE]
 */
#include "window/window.h"
#include "base/clock.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static u64 seed = 88172645463325252ULL;

static u64 rnd(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

/* About log-normal: durations of real calls are. */
static u64 about(double median, double spread)
{
	double u = 0;

	for (int i = 0; i < 4; i++)
		u += (double)(rnd() >> 11) / 9007199254740992.0 - 0.5;
	return (u64)(median * exp(spread * u * 1.7));
}

struct rec {
	u64 ts;
	u16 task;
	u8 type;
	union {
		struct hb_rec_accel a;
		struct hb_rec_offcpu o;
		struct hb_rec_sample s;
	} p;
};

/* A stretch of records made beforehand and put again and again with later times: the generator is not
 * measured. */
#define N_MADE (1u << 16)
static struct rec *made;
static u32 n_made;
static u64 now_ts = 1000000000000ULL;

static struct rec *add(u8 type, u16 task)
{
	struct rec *r = &made[n_made++];

	memset(r, 0, sizeof(*r));
	r->ts = now_ts;
	r->type = type;
	r->task = task;
	return r;
}

static void add_sleep(u16 task)
{
	struct rec *r = add(HB_TYPE_offcpu, task);

	r->p.o = (struct hb_rec_offcpu){.dur = about(5e5, 1),
					.ready = about(3000, .8),
					.chan = 0x7f0011223300 + rnd() % 8 * 64,
					.a1 = 128,
					.a2 = rnd() % 5000,
					.waker = 1000 + (u32)(rnd() % 10),
					.waker_pid = 900,
					.stack = (u32)(rnd() % 200) * 7919,
					.sysno = 202,
					.wsys = 202,
					.state = HB_TSTATE_SLEEPING,
					.wctx = HB_WCTX_TASK,
					.chankind = HB_CHAN_FUTEX};
	r->p.o.a0 = r->p.o.chan;
}

static void add_sample(u16 task)
{
	struct rec *r = add(HB_TYPE_sample, task);

	r->p.s = (struct hb_rec_sample){.weight = 10101010 + rnd() % 3000,
					.ip = 0x7f1234000000 + rnd() % 200000,
					.stack = (u32)(rnd() % 5000) * 7919,
					.sysno = HB_SYSNO_NONE};
}

static void add_prefill(u16 task)
{
	u32 tokens = 256 + (u32)(rnd() % 2048);

	for (u32 i = 0; i < 320; i++) {
		u32 k = i % 10;
		struct rec *r;

		now_ts += about(6000, .4);
		r = add(HB_TYPE_accel, task);
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
		if (rnd() % 40 == 0)
			add_sample(task);
		if (rnd() % 100 == 0)
			add_sleep((u16)(4 + rnd() % 6));
	}
}

static void add_decode(u16 task)
{
	u32 batch = 1 + (u32)(rnd() % 64);

	for (u32 k = 0; k < 12; k++) {
		bool timed = k < 5 || k > 8;
		struct rec *r;

		now_ts += about(20000, .5);
		r = add(HB_TYPE_accel, task);
		r->p.a = (struct hb_rec_accel){.stream = 0x55d0c0ffee00,
					       .handle = k == 5	 ? 0x55d0c1234500ULL + 64 * (batch / 8)
							 : k < 5 ? 0x7f5500000000ULL + rnd() % 16 * 4096
								 : 0,
					       .bytes = k < 5 ? batch * 4 : 0,
					       .probe = 10 + k,
					       .dur = timed ? about(k == 9 ? 12e6 : 4000, .6) : 0,
					       .flags = timed ? HB_AFLAG_RET | HB_AFLAG_TIMED : 0,
					       .kind = k < 5,
					       .stack = 40000 + k * 13 + batch % 3};
		now_ts += r->p.a.dur;
		if (rnd() % 3 == 0)
			add_sleep((u16)(4 + rnd() % 6));
	}
}

static void make_records(void)
{
	made = calloc(N_MADE, sizeof(*made));
	if (!made)
		exit(1);
	for (u32 step = 0; n_made + 1000 < N_MADE; step++)
		step % 10 == 0 ? add_prefill(1) : add_decode(1);
}

static double cpu_s(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static void show(const char *what, u64 n, u64 begin, double cpu)
{
	double s = (double)(hb_clock__now() - begin) / 1e9;

	cpu = cpu_s() - cpu;
	printf("%-8s %6.2f M records/s (%.2f s; %.2f M per CPU second)\n", what, (double)n / s / 1e6, s,
	       (double)n / cpu / 1e6);
}

static int write_window(const char *path, u64 n, unsigned streams, struct hb_error *e)
{
	struct hb_window_opts o = {.streams = streams, .force = true, .start_ts = now_ts};
	struct hb_window_writer *w = hb_window_writer__new(path, &o, e);
	u64 begin, span = now_ts - made[0].ts;
	double cpu;
	int err = 0;

	if (!w)
		return -1;
	for (u32 i = 0; i < 10; i++) {
		struct hb_task t = {.pid = 100, .tid = 100 + i, .target = 1};

		hb_window_writer__task(w, &t);
	}
	begin = hb_clock__now();
	cpu = cpu_s();
	for (u64 i = 0; i < n && !err; i++) {
		const struct rec *r = &made[i % n_made];

		err = hb_window_writer__put(w, (unsigned)(r->task % streams), r->ts + i / n_made * span,
					    r->task, r->type, &r->p);
	}
	show("put", n, begin, cpu);
	err = hb_window_writer__finish(w, now_ts, e);
	show("write", n, begin, cpu);
	return err;
}

static int read_window(const char *path, u64 n, struct hb_error *e)
{
	u64 begin = hb_clock__now(), seen = 0, sum = 0;
	double cpu = cpu_s();
	struct hb_window *w = hb_window__open(path, e);
	struct hb_record r;

	if (!w)
		return -1;
	printf("size     %6.2f bytes/record (%llu bytes, %llu frames)\n",
	       (double)hb_window__info(w)->bytes / (double)n, (unsigned long long)hb_window__info(w)->bytes,
	       (unsigned long long)hb_window__info(w)->frames);
	show("open", n, begin, cpu);
	begin = hb_clock__now();
	cpu = cpu_s();
	while (hb_window__next(w, &r) > 0) {
		seen++;
		sum += r.ts - r.begin + *(const u64 *)r.data;
	}
	show("next", n, begin, cpu);
	hb_window__close(w);
	return seen == n && sum ? 0
				: hb_error__set(e, HB_EXIT_FAILED, -EIO, "%llu records came back",
						(unsigned long long)seen);
}

int main(int argc, char **argv)
{
	u64 n = (argc > 1 ? strtoull(argv[1], NULL, 10) : 10) * 1000000;
	unsigned streams = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 4;
	const char *path = argc > 3 ? argv[3] : "/tmp/bench_window.hbw";
	struct hb_error e = {0};
	struct rusage u;
	int err;

	make_records();
	err = write_window(path, n, streams, &e);
	getrusage(RUSAGE_SELF, &u);
	printf("RSS      %6.1f MiB while writing (of it %.1f the records made beforehand)\n",
	       (double)u.ru_maxrss / 1024, (double)(N_MADE * sizeof(struct rec)) / (1 << 20));
	err = err ?: read_window(path, n, &e);
	unlink(path);
	if (err)
		fprintf(stderr, "bench_window: %s\n", e.text);
	return err != 0;
}
