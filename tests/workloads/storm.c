/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Event generator for benchmarks: threads call the simulated driver for a given time, as fast as they can or
 * at a given rate; prints how many calls were made. The mix is that of a decode-heavy engine with eager
 * parts.
 */
#include <pthread.h>
#include <getopt.h>
#include "workload.h"

static struct {
	const char *lib;
	long threads, ms, rate;
	bool mix, wait;
} opt = {.lib = "build/sim/libcuda.so.1", .threads = 2, .ms = 1000};

typedef int launch_fn(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *,
		      void **, void **);
static launch_fn *launch;
static int (*sync_stream)(void *);
static int (*copy)(unsigned long long, const void *, size_t, void *);
static int (*set_ctx)(void *);
static int (*new_stream)(void **, unsigned);
static int (*alloc)(unsigned long long *, size_t);
static int (*alloc_host)(void **, size_t, unsigned);
static int (*record)(void *, void *);
static int (*new_event)(void **, unsigned);
static void *ctx, *function;
static volatile bool stop;

enum { N_LAUNCH, N_COPY, N_SYNC, N_RECORD, N_KINDS };
static const char *const kinds[N_KINDS] = {"cuLaunchKernel", "cuMemcpyHtoDAsync", "cuStreamSynchronize",
					   "cuEventRecord"};

struct worker {
	pthread_t thread;
	uint64_t done[N_KINDS], errors;
};

static void set_up(void)
{
	int (*init)(unsigned), (*retain)(void **, int), (*load)(void **, const void *),
	    (*get)(void **, void *, const char *);
	void *lib, *module;

	/* The device must not be what limits the rate. */
	setenv("HB_SIM_COSTS",
	       "launch_ns=0,kernel_ns=0,copy_ns=0,h2d_bps=0,d2h_bps=0,d2d_bps=0,event_ns=1,alloc_ns=0", 0);
	lib = must_load(opt.lib);
	must_find(lib, "cuInit", &init);
	must_find(lib, "cuDevicePrimaryCtxRetain", &retain);
	must_find(lib, "cuCtxSetCurrent", &set_ctx);
	must_find(lib, "cuModuleLoadData", &load);
	must_find(lib, "cuModuleGetFunction", &get);
	must_find(lib, "cuLaunchKernel", &launch);
	must_find(lib, "cuStreamSynchronize", &sync_stream);
	must_find(lib, "cuMemcpyHtoDAsync_v2", &copy);
	must_find(lib, "cuStreamCreate", &new_stream);
	must_find(lib, "cuMemAlloc_v2", &alloc);
	must_find(lib, "cuMemHostAlloc", &alloc_host);
	must_find(lib, "cuEventRecord", &record);
	must_find(lib, "cuEventCreate", &new_event);
	if (init(0) || retain(&ctx, 0) || set_ctx(ctx) || load(&module, "simulated") ||
	    get(&function, module, "storm_kernel")) {
		fprintf(stderr, "storm: the simulated driver does not come up\n");
		exit(1);
	}
}

static void *work(void *arg)
{
	/* Of 16 calls: 11 launches, 2 copies, 2 event records, 1 synchronisation. */
	static const int pattern[16] = {N_COPY,	  N_LAUNCH, N_LAUNCH, N_LAUNCH, N_RECORD, N_LAUNCH,
					N_LAUNCH, N_LAUNCH, N_LAUNCH, N_LAUNCH, N_COPY,	  N_LAUNCH,
					N_LAUNCH, N_RECORD, N_LAUNCH, N_SYNC};
	struct worker *w = arg;
	unsigned long long device = 0;
	void *stream, *event, *host = NULL;
	uint64_t start, n = 0,
			step = opt.rate ? (uint64_t)opt.threads * 64000000000ull / (uint64_t)opt.rate : 0;

	w->errors += set_ctx(ctx) || new_stream(&stream, 1) || new_event(&event, 2) ||
		     alloc(&device, 65536) || alloc_host(&host, 65536, 0);
	start = now_ns();
	while (!stop) {
		int kind = opt.mix ? pattern[n % 16] : N_LAUNCH;

		if (kind == N_LAUNCH)
			w->errors += launch(function, 8, 1, 1, 128, 1, 1, 0, stream, NULL, NULL) != 0;
		else if (kind == N_COPY)
			w->errors += copy(device, host, 256, stream) != 0;
		else if (kind == N_RECORD)
			w->errors += record(event, stream) != 0;
		else
			w->errors += sync_stream(stream) != 0;
		w->done[kind]++;
		if (++n % 64 == 0 && step && (start += step) > now_ns())
			sleep_until(start);
	}
	return NULL;
}

static void report(const struct worker *w, uint64_t ns)
{
	uint64_t total = 0, errors = 0;

	printf("{\"pid\": %d, \"accelerator\": \"simulated accelerator\", \"counts\": {", (int)getpid());
	for (int k = 0; k < N_KINDS; k++) {
		uint64_t sum = 0;

		for (long i = 0; i < opt.threads; i++)
			sum += w[i].done[k];
		total += sum;
		printf("%s\"%s\": %llu", k ? ", " : "", kinds[k], (unsigned long long)sum);
	}
	for (long i = 0; i < opt.threads; i++)
		errors += w[i].errors;
	printf("}, \"calls\": %llu, \"errors\": %llu, \"elapsed_ns\": %llu, \"calls_per_s\": %.0f}\n",
	       (unsigned long long)total, (unsigned long long)errors, (unsigned long long)ns,
	       (double)total * 1e9 / (double)ns);
	fflush(stdout);
}

static const struct option options[] = {
    {"lib", 1, NULL, 'l'}, {"threads", 1, NULL, 't'}, {"ms", 1, NULL, 'd'}, {"rate", 1, NULL, 'r'},
    {"mix", 0, NULL, 'm'}, {"wait", 0, NULL, 'w'},    {NULL, 0, NULL, 0},
};

int main(int argc, char **argv)
{
	struct worker *w;
	uint64_t start;
	int o;

	while ((o = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (o == '?')
			return 2;
		if (o == 'l')
			opt.lib = optarg;
		else if (o == 't')
			opt.threads = number(optarg, "--threads", 1000);
		else if (o == 'd')
			opt.ms = number(optarg, "--ms", 600000);
		else if (o == 'r')
			opt.rate = number(optarg, "--rate", 100000000);
		opt.mix |= o == 'm';
		opt.wait |= o == 'w';
	}
	w = calloc((size_t)opt.threads, sizeof(*w));
	if (!w)
		return 1;
	set_up();
	if (opt.wait)
		meet("ready");
	start = now_ns();
	for (long i = 0; i < opt.threads; i++)
		if (pthread_create(&w[i].thread, NULL, work, &w[i]))
			return 1;
	sleep_until(start + (uint64_t)opt.ms * 1000000u);
	stop = true;
	for (long i = 0; i < opt.threads; i++)
		pthread_join(w[i].thread, NULL);
	report(w, now_ns() - start);
	if (opt.wait)
		meet("done");
	return 0;
}
