/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Makes known numbers of runtime calls from several threads, in the ways real programs do: libraries loaded
 * late, children, exec, threads that come and go, two copies of the runtime. Each process prints one JSON
 * line with what it called.
 */
#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <sys/wait.h>
#include "workload.h"

enum { LAUNCH, GRAPH, COPY, SYNC, MALLOC, DRIVER_LAUNCH, BAD, N_CALLS };
static const char *const call_names[N_CALLS] = {"cudaLaunchKernel",	 "cudaGraphLaunch", "cudaMemcpyAsync",
						"cudaStreamSynchronize", "cudaMalloc",	    "cuLaunchKernel",
						"cudaStreamQuery"};

struct runtime {
	int (*LaunchKernel)(const void *, struct dim3, struct dim3, void **, size_t, void *);
	int (*MemcpyAsync)(void *, const void *, size_t, int, void *);
	int (*StreamSynchronize)(void *);
	int (*StreamQuery)(void *);
	int (*StreamCreateWithFlags)(void **, unsigned);
	int (*Malloc)(void **, size_t);
	int (*Free)(void *);
	int (*HostAlloc)(void **, size_t, unsigned);
	int (*StreamBeginCapture)(void *, int);
	int (*StreamEndCapture)(void *, void **);
	int (*GraphInstantiate)(void **, void *, unsigned long long);
	int (*GraphLaunch)(void *, void *);
};

static struct {
	const char *lib, *second;
	long calls[N_CALLS];
	long threads, rate, late_ms, stagger_ms, forks;
	bool wait, exec;
} opt = {.threads = 1, .calls = {[LAUNCH] = 100, [COPY] = 10, [SYNC] = 10}};

static struct runtime runtimes[2];
static int n_runtimes;
static int (*cuLaunchKernel)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
			     void *, void **, void **);
static void *driver_function;

struct worker {
	pthread_t thread;
	const struct runtime *rt;
	uint64_t done[N_CALLS], errors;
	void *stream, *device, *host, *graph;
	uint64_t next;
};

static char kernel_stub; /* its address stands for a kernel, as a host stub's does */

static void load_runtime(struct runtime *r, const char *path)
{
	void *lib = must_load(path), **fat;
	void **(*register_image)(void *);
	void (*register_function)(void **, const char *, char *, const char *, int, void *, void *, void *,
				  void *, int *);

	must_find(lib, "cudaLaunchKernel", &r->LaunchKernel);
	must_find(lib, "cudaMemcpyAsync", &r->MemcpyAsync);
	must_find(lib, "cudaStreamSynchronize", &r->StreamSynchronize);
	must_find(lib, "cudaStreamQuery", &r->StreamQuery);
	must_find(lib, "cudaStreamCreateWithFlags", &r->StreamCreateWithFlags);
	must_find(lib, "cudaMalloc", &r->Malloc);
	must_find(lib, "cudaFree", &r->Free);
	must_find(lib, "cudaHostAlloc", &r->HostAlloc);
	must_find(lib, "cudaStreamBeginCapture", &r->StreamBeginCapture);
	must_find(lib, "cudaStreamEndCapture", &r->StreamEndCapture);
	must_find(lib, "cudaGraphInstantiate", &r->GraphInstantiate);
	must_find(lib, "cudaGraphLaunch", &r->GraphLaunch);
	must_find(lib, "__cudaRegisterFatBinary", &register_image);
	must_find(lib, "__cudaRegisterFunction", &register_function);
	fat = register_image(NULL);
	register_function(fat, &kernel_stub, NULL, "loop_kernel", -1, NULL, NULL, NULL, NULL, NULL);
}

static void load_driver(void)
{
	int (*load)(void **, const void *), (*get)(void **, void *, const char *);
	void *lib = must_load("libcuda.so.1"), *module;

	must_find(lib, "cuLaunchKernel", &cuLaunchKernel);
	must_find(lib, "cuModuleLoadData", &load);
	must_find(lib, "cuModuleGetFunction", &get);
	if (load(&module, "simulated") || get(&driver_function, module, "loop_driver_kernel")) {
		fprintf(stderr, "the driver gives no function\n");
		exit(1);
	}
}

static int call(struct worker *w, int what)
{
	struct dim3 grid = {7, 2, 1}, block = {64, 2, 1};
	const struct runtime *r = w->rt;
	void *p;
	int rc;

	switch (what) {
	case LAUNCH:
		return r->LaunchKernel(&kernel_stub, grid, block, NULL, 128, w->stream);
	case GRAPH:
		return r->GraphLaunch(w->graph, w->stream);
	case COPY:
		return r->MemcpyAsync(w->device, w->host, 4096, 1, w->stream);
	case SYNC:
		return r->StreamSynchronize(w->stream);
	case MALLOC:
		rc = r->Malloc(&p, 65536);
		return rc ? rc : r->Free(p);
	case DRIVER_LAUNCH:
		return cuLaunchKernel(driver_function, 3, 1, 1, 32, 1, 1, 0, w->stream, NULL, NULL);
	default: /* a call that fails with a known code: invalid resource handle */
		return r->StreamQuery((void *)0x99) == 400 ? 0 : 1;
	}
}

static void pace(struct worker *w)
{
	if (!opt.rate)
		return;
	w->next += 1000000000u / (uint64_t)opt.rate;
	if (w->next > now_ns())
		sleep_until(w->next);
}

static void make_graph(struct worker *w)
{
	const struct runtime *r = w->rt;
	struct dim3 one = {1, 1, 1};
	void *graph;
	int rc = r->StreamBeginCapture(w->stream, 2);

	for (int i = 0; i < 10; i++)
		rc |= r->LaunchKernel(&kernel_stub, one, one, NULL, 0, w->stream);
	rc |= r->StreamEndCapture(w->stream, &graph);
	rc |= r->GraphInstantiate(&w->graph, graph, 0);
	w->done[LAUNCH] += 10;
	w->errors += rc != 0;
}

static void *work(void *arg)
{
	struct worker *w = arg;
	bool more = true;

	w->errors += w->rt->StreamCreateWithFlags(&w->stream, 1) != 0;
	w->errors += w->rt->Malloc(&w->device, 1 << 20) != 0;
	w->errors += w->rt->HostAlloc(&w->host, 1 << 20, 0) != 0;
	w->done[MALLOC]++;
	if (opt.calls[GRAPH])
		make_graph(w);
	w->next = now_ns();
	/* Kinds are interleaved, as in a step: the k-th of n calls comes at k/n of the way. */
	for (long round = 0; more; round++) {
		more = false;
		for (int what = 0; what < N_CALLS; what++) {
			if (round >= opt.calls[what])
				continue;
			w->errors += call(w, what) != 0;
			w->done[what]++;
			more = true;
			pace(w);
		}
	}
	return NULL;
}

static void report(const struct worker *w, long n)
{
	uint64_t errors = 0;

	printf("{\"pid\": %d, \"accelerator\": \"simulated accelerator\", \"counts\": {", (int)getpid());
	for (int what = 0; what < N_CALLS; what++) {
		uint64_t sum = 0;

		for (long i = 0; i < n; i++)
			sum += w[i].done[what];
		printf("%s\"%s\": %llu", what ? ", " : "", call_names[what], (unsigned long long)sum);
	}
	for (long i = 0; i < n; i++)
		errors += w[i].errors;
	printf("}, \"errors\": %llu}\n", (unsigned long long)errors);
	fflush(stdout);
}

static void run(void)
{
	struct worker *w = calloc((size_t)opt.threads, sizeof(*w));

	if (!w)
		exit(1);
	load_runtime(&runtimes[n_runtimes++], opt.lib);
	if (opt.second)
		load_runtime(&runtimes[n_runtimes++], opt.second);
	for (long i = 0; i < opt.threads; i++) {
		w[i].rt = &runtimes[i % n_runtimes];
		if (i == 0 && opt.calls[DRIVER_LAUNCH]) {
			void *p;

			w[0].errors += w[0].rt->Malloc(&p, 4096) != 0; /* initialises the driver */
			w[0].done[MALLOC]++;
			load_driver();
		}
		if (pthread_create(&w[i].thread, NULL, work, &w[i]))
			exit(1);
		if (opt.stagger_ms)
			usleep((unsigned)opt.stagger_ms * 1000);
	}
	for (long i = 0; i < opt.threads; i++)
		pthread_join(w[i].thread, NULL);
	report(w, opt.threads);
}

static int children(void)
{
	int status, failed = 0;

	for (long i = 0; i < opt.forks; i++) {
		pid_t pid = fork();

		if (pid < 0)
			exit(1);
		if (!pid) {
			run();
			exit(0);
		}
	}
	while (wait(&status) > 0 || errno == EINTR)
		failed |= status;
	return failed != 0;
}

enum { O_DRIVER = 256, O_BAD, O_GRAPHS };
static const struct option options[] = {
    {"lib", 1, NULL, 'l'},
    {"second", 1, NULL, '2'},
    {"threads", 1, NULL, 't'},
    {"launches", 1, NULL, 'n'},
    {"graphs", 1, NULL, O_GRAPHS},
    {"copies", 1, NULL, 'c'},
    {"syncs", 1, NULL, 's'},
    {"mallocs", 1, NULL, 'm'},
    {"driver-launches", 1, NULL, O_DRIVER},
    {"bad", 1, NULL, O_BAD},
    {"rate", 1, NULL, 'r'},
    {"late-ms", 1, NULL, 'L'},
    {"stagger-ms", 1, NULL, 'S'},
    {"fork", 1, NULL, 'f'},
    {"exec", 0, NULL, 'x'},
    {"wait", 0, NULL, 'w'},
    {NULL, 0, NULL, 0},
};

static void set(int o)
{
	static const struct {
		int option, call;
	} calls[] = {{'n', LAUNCH}, {O_GRAPHS, GRAPH},	       {'c', COPY}, {'s', SYNC},
		     {'m', MALLOC}, {O_DRIVER, DRIVER_LAUNCH}, {O_BAD, BAD}};

	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		if (calls[i].option == o)
			opt.calls[calls[i].call] = number(optarg, "a count", 1000000000);
	if (o == 'l')
		opt.lib = optarg;
	else if (o == '2')
		opt.second = optarg;
	else if (o == 't')
		opt.threads = number(optarg, "--threads", 1000);
	else if (o == 'r')
		opt.rate = number(optarg, "--rate", 10000000);
	else if (o == 'L')
		opt.late_ms = number(optarg, "--late-ms", 600000);
	else if (o == 'S')
		opt.stagger_ms = number(optarg, "--stagger-ms", 60000);
	else if (o == 'f')
		opt.forks = number(optarg, "--fork", 1000);
	opt.exec |= o == 'x';
	opt.wait |= o == 'w';
}

/* The same program again, without --exec and --wait: the second image has the libraries loaded anew. */
static void exec_self(char **argv)
{
	char **to = argv + 1;

	for (char **from = argv + 1; *from; from++)
		if (strcmp(*from, "--exec") && strcmp(*from, "--wait"))
			*to++ = *from;
	*to = NULL;
	execv("/proc/self/exe", argv);
	perror("exec");
	exit(1);
}

int main(int argc, char **argv)
{
	char **args = calloc((size_t)argc + 1, sizeof(*args));
	int o;

	if (!args)
		return 1;
	memcpy(args, argv, (size_t)argc * sizeof(*args)); /* getopt reorders argv */
	while ((o = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (o == '?')
			return 2;
		set(o);
	}
	if (!opt.lib) {
		fprintf(stderr, "accel_loop: --lib PATH of a libcudart is needed\n");
		return 2;
	}
	if (opt.wait)
		meet("ready");
	if (opt.late_ms)
		usleep((unsigned)opt.late_ms * 1000);
	if (opt.exec)
		exec_self(args);
	if (opt.forks)
		o = children();
	else
		run();
	if (opt.wait)
		meet("done");
	return opt.forks ? o : 0;
}
