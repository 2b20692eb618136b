/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How fast windows are analysed, and how much memory that takes. One with device records: a launch and its
 * kernel by turns, a graph of 200 kernels now and then, copies, two streams, a few processes and devices. And
 * one of sleeps: threads that wake one another in turn, with a call now and then, so that the critical path
 * leads through all of them. usage: bench_analyze [MILLION_RECORDS] [FILE]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "analysis/model/host.h"
#include "analysis/report/analyze.h"
#include "bench.h"
#include "made_window.h"

enum { NAMES = 400, GRAPH = 200 };

struct maker {
	struct hb_window_writer *w;
	u32 names[NAMES];
	u64 host[PROCS];	/* where each process is in time */
	u64 device[PROCS];	/* and its device */
	u64 correlation[PROCS]; /* as numbers are given: one for each call */
	u64 n;
};

static int put_call(struct maker *m, u32 p, u32 probe)
{
	struct hb_rec_accel a = {.probe = probe,
				 .dur = 4000 + rnd(3000),
				 .correlation = ++m->correlation[p],
				 .flags = HB_AFLAG_TIMED | HB_AFLAG_RET,
				 .stack = stack_for(p)};

	m->host[p] += a.dur + rnd(4000);
	m->n++;
	return hb_window_writer__put(m->w, p % STREAMS, m->host[p], (u16)(1 + p), HB_TYPE_accel, &a);
}

static int put_work(struct maker *m, u32 p, u8 kind)
{
	struct hb_rec_device d = {.dur = 1000 + rnd(9000),
				  .stream = 7 + rnd(2),
				  .correlation = m->correlation[p],
				  .name = m->names[rnd(NAMES)],
				  .kind = kind,
				  .copy = HB_COPY_DTOH,
				  .bytes = 4096,
				  .device = p};

	if (m->device[p] < m->host[p])
		m->device[p] = m->host[p] + 2000;
	m->device[p] += d.dur + rnd(1000);
	m->n++;
	return hb_window_writer__put(m->w, PROCS + p, m->device[p], (u16)(1 + p), HB_TYPE_device, &d);
}

static int put_step(struct maker *m)
{
	u32 p = (u32)rnd(PROCS);
	u64 dice = rnd(1000);
	int rc = put_call(m, p, 1 + (u32)rnd(PROBES));

	for (u64 i = 0; !rc && i < (dice ? 1 : GRAPH); i++)
		rc = put_work(m, p, dice && dice < 40 ? HB_DEVKIND_MEMCPY : HB_DEVKIND_KERNEL);
	return rc;
}

static int make(const char *path, u64 n, struct hb_error *e)
{
	struct hb_window_opts o = {.streams = 2 * PROCS, .force = true, .start_ts = BEGIN};
	struct maker m = {.w = hb_window_writer__new(path, &o, e)};
	u64 end = 0;
	char name[96];
	int rc = 0;

	if (!m.w)
		return -1;
	put_tables(m.w);
	for (u32 i = 0; i < NAMES; i++) {
		snprintf(name, sizeof(name), "void at::native::elementwise_kernel_%u<float>(int)", i);
		m.names[i] = hb_window_writer__string(m.w, name);
	}
	for (u32 i = 0; i < PROCS; i++)
		m.host[i] = m.device[i] = BEGIN;
	while (!rc && m.n < n)
		rc = put_step(&m);
	for (u32 i = 0; i < PROCS; i++)
		end = m.device[i] > end ? m.device[i] : end;
	return hb_window_writer__finish(m.w, end, e);
}

/* ---- sleeps ---- */

static int put_sleep(struct hb_window_writer *w, u64 ts, u32 thread, u64 since)
{
	u32 waker = (thread + THREADS - PROCS) % THREADS;
	u64 dur = since * 9 / 10;
	struct hb_rec_offcpu o = {.dur = dur,
				  .ready = rnd(dur / 10 + 1),
				  .chan = 0x7f0011223300 + rnd(8) * 64,
				  .a0 = 0x7f0011223300,
				  .a1 = 128,
				  .waker = tid_of(waker),
				  .waker_pid = pid_of(waker),
				  .stack = stack_for(thread),
				  .sysno = SYS_futex,
				  .wsys = SYS_futex,
				  .state = HB_TSTATE_SLEEPING,
				  .wctx = HB_WCTX_TASK,
				  .chankind = HB_CHAN_FUTEX};

	return hb_window_writer__put(w, thread % STREAMS, ts, (u16)thread, HB_TYPE_offcpu, &o);
}

static int put_short_call(struct hb_window_writer *w, u64 ts, u32 thread, u64 since)
{
	struct hb_rec_accel a = {.probe = 1 + (u32)rnd(PROBES),
				 .dur = since / 2,
				 .flags = HB_AFLAG_TIMED | HB_AFLAG_RET,
				 .stack = stack_for(thread)};

	return hb_window_writer__put(w, thread % STREAMS, ts, (u16)thread, HB_TYPE_accel, &a);
}

static int make_sleeps(const char *path, u64 n, struct hb_error *e)
{
	struct hb_window_opts o = {.streams = STREAMS, .force = true, .start_ts = BEGIN};
	struct hb_window_writer *w = hb_window_writer__new(path, &o, e);
	u64 last[THREADS], ts = BEGIN;
	int rc = 0;

	if (!w)
		return -1;
	put_tables(w);
	for (u32 i = 0; i < THREADS; i++)
		last[i] = BEGIN;
	for (u64 i = 0; i < n && !rc; i++) {
		u32 thread = (u32)(i % THREADS);

		ts += 1 + rnd(3000);
		rc = rnd(50) ? put_sleep(w, ts, thread, ts - last[thread])
			     : put_short_call(w, ts, thread, ts - last[thread]);
		last[thread] = ts;
	}
	return hb_window_writer__finish(w, ts, e);
}

/* ---- the readers, in turn ---- */

enum reader { READ, MODEL, DEVICES, HOST, ANALYZE, READERS };
static const char *const names[READERS] = {"read only", "model", "devices", "host", "analyze --json"};

static int read_with(enum reader reader, struct hb_window *w, FILE *null, struct hb_error *e)
{
	struct hb_analysis *a;
	struct hb_devices *d;
	struct hb_host *h;
	struct hb_record r;
	u64 sum = 0;
	int rc;

	switch (reader) {
	case READ:
		while (hb_window__next(w, &r) > 0)
			sum += r.ts;
		return sum ? 0 : -1;
	case MODEL:
		hb_model__free(hb_model__build(w, e));
		return 0;
	case DEVICES:
		d = hb_devices__build(w, NULL, e);
		rc = d ? 0 : -1;
		hb_devices__free(d);
		return rc;
	case HOST:
		h = hb_host__build(w, NULL, e);
		rc = h ? 0 : -1;
		hb_host__free(h);
		return rc;
	default:
		a = hb_analysis__new(w, NULL, e);
		rc = a ? hb_analysis__json(a, NULL, null, e) : -1;
		hb_analysis__free(a);
		return rc;
	}
}

struct measured {
	double rate; /* M records per CPU second */
	double rss;  /* MiB at its highest */
};

/* In a process of its own: its peak of memory is its own too. */
static int measure(enum reader reader, const char *path, u64 n, struct measured *m)
{
	int fds[2], status = -1;
	pid_t pid;

	if (pipe(fds))
		return -1;
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		struct hb_error e = {0};
		FILE *null = fopen("/dev/null", "w");
		double cpu = bench__cpu_s(RUSAGE_SELF);
		struct hb_window *w = hb_window__open(path, &e);
		int rc = w && null ? read_with(reader, w, null, &e) : -1;
		struct rusage u;

		getrusage(RUSAGE_SELF, &u);
		*m = (struct measured){.rate = (double)n / (bench__cpu_s(RUSAGE_SELF) - cpu) / 1e6,
				       .rss = (double)u.ru_maxrss / 1024};
		if (rc)
			fprintf(stderr, "bench_analyze: %s\n", e.text);
		_exit(rc || write(fds[1], m, sizeof(*m)) != sizeof(*m));
	}
	close(fds[1]);
	if (pid > 0 && read(fds[0], m, sizeof(*m)) == sizeof(*m))
		waitpid(pid, &status, 0);
	close(fds[0]);
	return status ? -1 : 0;
}

static const struct window {
	const char *what;
	int (*make)(const char *path, u64 n, struct hb_error *e);
	const char *fast, *small; /* the targets */
} windows[] = {
    {"half of them of devices", make, "analyze at 5 M records/s", "at most 200 bytes a record"},
    {"nearly all of them sleeps", make_sleeps, NULL, "sleeps: at most 200 bytes a record"},
};

static int bench(const struct window *x, const char *path, u64 n)
{
	struct bench_values rate[READERS] = {0}, rss[READERS] = {0};
	struct hb_error e = {0};
	int err = x->make(path, n, &e);

	if (err)
		fprintf(stderr, "bench_analyze: %s\n", e.text);
	for (int i = 0; !err && i < 3; i++) {
		for (unsigned k = 0; !err && k < READERS; k++) {
			struct measured m;

			err = measure(k, path, n, &m);
			bench__add(&rate[k], m.rate);
			bench__add(&rss[k], m.rss);
		}
	}
	unlink(path);
	if (err)
		return err;
	printf("a window of %.0f M records, %s, %u rounds\n", (double)n / 1e6, x->what, rate[0].n);
	for (unsigned k = 0; k < READERS; k++)
		printf(
		    "  %-14s %6.2f M records per CPU second [%.2f..%.2f], %4.0f bytes a record at the peak\n",
		    names[k], bench__at(&rate[k], .5), bench__at(&rate[k], 0), bench__at(&rate[k], 1),
		    bench__at(&rss[k], .5) * 1024 * 1024 / (double)n);
	if (x->fast)
		bench__target(x->fast, bench__at(&rate[ANALYZE], .5) >= 5);
	bench__target(x->small, bench__at(&rss[ANALYZE], 1) * 1024 * 1024 / (double)n <= 200);
	return 0;
}

int main(int argc, char **argv)
{
	u64 n = (argc > 1 ? strtoull(argv[1], NULL, 10) : 5) * 1000000;
	const char *path = argc > 2 ? argv[2] : "/tmp/bench_analyze.hbw";

	for (size_t i = 0; i < sizeof(windows) / sizeof(*windows); i++)
		if (bench(&windows[i], path, n))
			return 1;
	return 0;
}
