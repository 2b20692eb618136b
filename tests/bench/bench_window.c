/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Speed and size of the window file on a synthetic mix like that of a serving engine: prefill steps of eager
 * launches with a period of one layer, decode steps of a graph launch with copies and syncs, sleeps and CPU
 * samples between. usage: bench_window [MILLION_RECORDS] [STREAMS] [FILE]
 */
#include "window/window.h"
#include "base/clock.h"
#include "mix.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* A stretch of records made beforehand and put again and again with later times: the generator is not
 * measured. */
#define N_MADE (1u << 16)
static struct mix_rec made[N_MADE];
static struct mix mix = {.rec = made, .cap = N_MADE};

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
	struct hb_window_opts o = {.streams = streams, .force = true, .start_ts = mix.now};
	struct hb_window_writer *w = hb_window_writer__new(path, &o, e);
	u64 begin, span = mix.now - made[0].ts;
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
		const struct mix_rec *r = &made[i % mix.n];

		err = hb_window_writer__put(w, (unsigned)(r->task % streams), r->ts + i / mix.n * span,
					    r->task, r->type, &r->p);
	}
	show("put", n, begin, cpu);
	err = hb_window_writer__finish(w, mix.now, e);
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

	mix__make(&mix);
	err = write_window(path, n, streams, &e);
	getrusage(RUSAGE_SELF, &u);
	printf("RSS      %6.1f MiB while writing (of it %.1f the records made beforehand)\n",
	       (double)u.ru_maxrss / 1024, (double)(N_MADE * sizeof(struct mix_rec)) / (1 << 20));
	err = err ?: read_window(path, n, &e);
	unlink(path);
	if (err)
		fprintf(stderr, "bench_window: %s\n", e.text);
	return err != 0;
}
