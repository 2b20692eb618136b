/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What rate the rings, the collector and the window writer keep up with. One thread on each CPU makes a BPF
 * program emit the mix of mix.h at a given pace into the real rings; hb_collect drains them as a session
 * does. Producers and collector share the CPUs. Rates are interleaved. usage: bench_collect [SECONDS]
 * [ROUNDS]
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "bench.h"
#include "bench_emit.h"
#include "bench_emit.skel.h"
#include "capture/collect/collect.h"
#include "mix.h"

#define BATCH	   128	       /* records emitted in one go, as a burst of eager launches is */
#define RING_TOTAL (32u << 20) /* what the tool takes by default */

static const double rates[] = {0.5e6, 1e6, 1.5e6, 2e6, 0}; /* per second over all CPUs; 0: no pause */
#define N_RATES (sizeof(rates) / sizeof(*rates))

struct rig {
	struct bench_emit *skel;
	int fds[HB_MAX_RINGS];
	unsigned n_cpus, n_rings;
	u32 items;
};

struct producer {
	pthread_t thread;
	const struct rig *rig;
	unsigned cpu;
	double rate;
	u64 begin, end, emitted;
	double cpu_s;
};

struct outcome {
	struct bench_values rate, lost, cpu, cost, bytes;
};

static int load_mix(struct rig *r)
{
	static struct mix_rec rec[BENCH_MIX];
	struct mix m = {.rec = rec, .cap = BENCH_MIX};

	mix__make(&m);
	for (u32 i = 0; i < m.n; i++) {
		struct bench_item item = {.type = rec[i].type, .tid = 1000u + rec[i].task};

		memcpy(&item.accel, &rec[i].p, sizeof(rec[i].p));
		if (bpf_map_update_elem(bpf_map__fd(r->skel->maps.mix), &i, &item, BPF_ANY))
			return -errno;
	}
	r->items = m.n;
	return 0;
}

/* The rings of a session: one for each CPU, the default size over all. */
static int make_rings(struct rig *r, u32 bytes)
{
	for (u32 i = 0; i < r->n_rings; i++) {
		r->fds[i] = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "hb_ring", 0, 0, bytes, NULL);
		if (r->fds[i] < 0)
			return -errno;
	}
	return bpf_map__set_inner_map_fd(r->skel->maps.rings, r->fds[0]) && errno != EINVAL ? -errno : 0;
}

static int set_up(struct rig *r)
{
	u32 bytes = 4096;
	int err;

	r->n_cpus = (unsigned)libbpf_num_possible_cpus();
	r->n_rings = r->n_cpus < HB_MAX_RINGS ? r->n_cpus : HB_MAX_RINGS;
	while (bytes * 2 <= RING_TOTAL / r->n_rings)
		bytes *= 2;
	libbpf_set_strict_mode(LIBBPF_STRICT_ALL);
	r->skel = bench_emit__open();
	if (!r->skel)
		return -errno;
	r->skel->rodata->hb_n_rings = r->n_rings;
	r->skel->rodata->hb_wake_bytes = bytes / 8;
	err = make_rings(r, bytes);
	err = err ? err : bench_emit__load(r->skel);
	for (u32 i = 0; !err && i < r->n_rings; i++)
		err = bpf_map_update_elem(bpf_map__fd(r->skel->maps.rings), &i, &r->fds[i], BPF_ANY);
	return err ? err : load_mix(r);
}

static u64 lost(const struct rig *r)
{
	u64 v[1024], sum = 0;

	for (u32 key = 0; key < HB_LOSS_KEYS; key++) {
		if (bpf_map_lookup_elem(bpf_map__fd(r->skel->maps.losses), &key, v))
			continue;
		for (unsigned i = 0; i < r->n_cpus && i < 1024; i++)
			sum += v[i];
	}
	return sum;
}

/* ---- producers ---- */

static int emit(struct producer *p)
{
	struct bench_request q = {.first = (u32)(p->emitted % p->rig->items + p->cpu * 7919),
				  .count = BATCH,
				  .pid = 1000,
				  .items = p->rig->items};
	LIBBPF_OPTS(bpf_test_run_opts, o, .ctx_in = &q, .ctx_size_in = sizeof(q));

	p->emitted += BATCH;
	return bpf_prog_test_run_opts(bpf_program__fd(p->rig->skel->progs.bench_emit), &o);
}

static void sleep_until(u64 ns)
{
	struct timespec t = {.tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u)};

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

static void *produce(void *arg)
{
	struct producer *p = arg;
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(p->cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
	prctl(PR_SET_TIMERSLACK, 1000);
	while (hb_clock__now() < p->end) {
		if (emit(p))
			break;
		if (p->rate > 0)
			sleep_until(p->begin + (u64)((double)p->emitted * 1e9 / p->rate));
	}
	p->cpu_s = bench__cpu_s(RUSAGE_THREAD);
	return NULL;
}

static void start(struct producer *p, const struct rig *r, double rate, u64 ns)
{
	u64 now = hb_clock__now();

	for (unsigned i = 0; i < r->n_cpus; i++) {
		p[i] = (struct producer){
		    .rig = r, .cpu = i, .rate = rate / r->n_cpus, .begin = now, .end = now + ns};
		if (pthread_create(&p[i].thread, NULL, produce, &p[i]))
			exit(1);
	}
}

/* ---- the collector ---- */

static void seen_stack(u32 pid, u32 raw, void *arg)
{
	(void)pid, (void)raw;
	++*(u64 *)arg;
}

/* As the session's pump does. */
static void drain(struct hb_collect *c, u64 until)
{
	struct pollfd pfd = {.fd = hb_collect__fd(c), .events = POLLIN};

	while (hb_clock__now() < until)
		if (hb_collect__poll(c, 0) == 0)
			poll(&pfd, 1, 50);
	while (hb_collect__poll(c, 0) > 0)
		;
}

static int run_once(const struct rig *r, double rate, u64 ns, struct outcome *out, struct hb_error *e)
{
	static const char path[] = "bench_collect.hbw";
	struct hb_window_opts wo = {.streams = r->n_rings + 1, .force = true, .start_ts = hb_clock__now()};
	struct hb_collect_opts co = {.ring_fds = r->fds, .n_rings = r->n_rings};
	struct producer *p = calloc(r->n_cpus, sizeof(*p));
	u64 begin = hb_clock__now(), emitted = 0, before = lost(r), stacks = 0, events, bytes;
	double cpu = bench__cpu_s(RUSAGE_SELF), s;
	struct hb_collect *c;

	co.writer = hb_window_writer__new(path, &wo, e);
	c = co.writer && p ? hb_collect__new(&co, e) : NULL;
	if (!c)
		return -1;
	hb_collect__on_stack(c, seen_stack, &stacks);
	start(p, r, rate, ns);
	drain(c, begin + ns + 20000000);
	s = (double)ns / 1e9;
	for (unsigned i = 0; i < r->n_cpus; i++) {
		pthread_join(p[i].thread, NULL);
		emitted += p[i].emitted;
		cpu += p[i].cpu_s;
	}
	drain(c, 0);
	events = hb_collect__events(c);
	hb_collect__free(c);
	if (hb_window_writer__finish(co.writer, hb_clock__now(), e))
		return -1;
	cpu = bench__cpu_s(RUSAGE_SELF) - cpu;
	bytes = 0;
	{
		FILE *f = fopen(path, "r");

		if (f && !fseek(f, 0, SEEK_END))
			bytes = (u64)ftell(f);
		if (f)
			fclose(f);
	}
	unlink(path);
	free(p);
	bench__add(&out->rate, (double)emitted / s);
	bench__add(&out->lost, (double)(lost(r) - before) / (double)emitted);
	bench__add(&out->cpu, cpu / s);
	bench__add(&out->cost, cpu * 1e9 / (double)events);
	bench__add(&out->bytes, (double)bytes / (double)events);
	if (events + lost(r) - before != emitted)
		return hb_error__set(e, HB_EXIT_FAILED, -EIO, "%llu records emitted, %llu came, %llu lost",
				     (unsigned long long)emitted, (unsigned long long)events,
				     (unsigned long long)(lost(r) - before));
	return 0;
}

static void print(const struct rig *r, struct outcome *out, double unit)
{
	struct rusage u;
	bool met = false;

	printf("rings, collector and window writer fed by a BPF program on each of %u CPUs, %u rounds\n",
	       r->n_cpus, out->rate.n);
	printf("%10s %12s %16s %12s %22s %8s\n", "asked/s", "emitted/s", "lost (worst)", "our CPU",
	       "our cost of a record", "bytes");
	for (unsigned i = 0; i < N_RATES; i++) {
		struct outcome *o = &out[i];
		double ns = bench__at(&o->cost, .5);

		if (rates[i] > 0)
			printf("%8.1f M", rates[i] / 1e6);
		else
			printf("%10s", "unpaced");
		printf(" %10.2f M %7.3f%% (%.3f%%) %6.1f%% of 1 %9.0f ns = %4.2f units %8.1f\n",
		       bench__at(&o->rate, .5) / 1e6, 100 * bench__at(&o->lost, .5),
		       100 * bench__at(&o->lost, 1), 100 * bench__at(&o->cpu, .5), ns, ns / unit,
		       bench__at(&o->bytes, .5));
		if (rates[i] == 1e6)
			met = bench__at(&o->lost, 1) == 0 && bench__at(&o->rate, .5) > .98e6;
	}
	getrusage(RUSAGE_SELF, &u);
	printf(
	    "peak RSS %.1f MiB (with %.1f MiB of records made beforehand); unit: a bare getppid, %.0f ns\n",
	    (double)u.ru_maxrss / 1024, (double)sizeof(struct mix_rec) * BENCH_MIX / (1 << 20), unit);
	bench__target("collector keeps up with 1 M events/s without loss", met);
}

int main(int argc, char **argv)
{
	u64 ns = argc > 1 ? (u64)(atof(argv[1]) * 1e9) : 2000000000u;
	int rounds = argc > 2 ? atoi(argv[2]) : 3, err;
	struct outcome out[N_RATES] = {0};
	struct hb_error e = {0};
	struct rig r = {0};

	err = set_up(&r);
	if (err) {
		printf("bench_collect: not measured, the BPF program cannot be loaded: %s\n", strerror(-err));
		return 0;
	}
	for (int i = 0; !err && i < rounds; i++)
		for (unsigned k = 0; !err && k < N_RATES; k++)
			err = run_once(&r, rates[k], ns, &out[k], &e);
	if (err)
		fprintf(stderr, "bench_collect: %s\n", e.text);
	else
		print(&r, out, bench__unit());
	bench_emit__destroy(r.skel);
	return err != 0;
}
