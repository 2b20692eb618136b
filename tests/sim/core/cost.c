/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>
#include "kernel.h"
#include "sim.h"

#define GB 1000000000ull

/* Defaults: order of magnitude of an H100 on PCIe 5 with NVLink. */
struct hb_costs hb_costs = {
    .launch_ns = 2500,
    .graph_launch_ns = 5000,
    .kernel_ns = HB_KERNEL_BY_TABLE,
    .node_ns = 1000,
    .copy_ns = 2000,
    .h2d_bps = 50 * GB,
    .d2h_bps = 50 * GB,
    .d2d_bps = 1500 * GB,
    .pageable_bps = 6 * GB,
    .event_ns = 700,
    .coll_ns = 10000,
    .coll_bps = 300 * GB,
    .alloc_ns = 20000,
    .memory = 80ull << 30,
    .devices = 8,
    .queue = 1024,
    .sms = 132,
    .hbm_bps = 3350 * GB,
    .bf16_flops = 989000 * GB,
    .fp8_flops = 1979000 * GB,
    .fp32_flops = 67000 * GB,
};

#define KEY(name)                                                                                            \
	{                                                                                                    \
#name, offsetof(struct hb_costs, name)                                                       \
	}
static const struct {
	const char *name;
	size_t at;
} keys[] = {
    KEY(launch_ns),  KEY(graph_launch_ns), KEY(kernel_ns),    KEY(node_ns),  KEY(copy_ns), KEY(h2d_bps),
    KEY(d2h_bps),    KEY(d2d_bps),	   KEY(pageable_bps), KEY(event_ns), KEY(coll_ns), KEY(coll_bps),
    KEY(alloc_ns),   KEY(memory),	   KEY(devices),      KEY(queue),    KEY(sms),	   KEY(hbm_bps),
    KEY(bf16_flops), KEY(fp8_flops),	   KEY(fp32_flops),
};

#define MAX_SETTINGS (1 << 20) /* bytes of a file */
#define MAX_NUMBER   1e17
#define MAX_COMPLAIN 16 /* a wrong file has thousands of lines */

/* Not blocking, and a plain file only: a FIFO or a device would hold up whichever call comes to look. */
FILE *hb_settings__open(const char *path, const char *variable)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	const char *why = "no plain file";
	struct stat st;

	if (fd < 0)
		return NULL;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode)) {
		if (st.st_size <= MAX_SETTINGS)
			return fdopen(fd, "r");
		why = "larger than 1 MiB";
	}
	fprintf(stderr, "simulated accelerator: %s: %s is %s, so it is left out\n", variable, path, why);
	close(fd);
	return NULL;
}

void hb_settings__complain(u32 *times, const char *variable, const char *what)
{
	if (++*times > MAX_COMPLAIN)
		return;
	fprintf(stderr, "simulated accelerator: %s: not understood: %.240s%s\n", variable, what,
		*times == MAX_COMPLAIN ? " (and perhaps more)" : "");
}

bool hb_settings__number(const char *text, double *v)
{
	char *end;

	*v = strtod(text, &end);
	return end != text && !*end && isfinite(*v) && *v >= 0 && *v <= MAX_NUMBER;
}

static void complain(const char *what)
{
	static u32 times;

	hb_settings__complain(&times, "HB_SIM_COSTS", what);
}

static void set(const char *key, const char *value)
{
	double v;

	if (!hb_settings__number(value, &v)) {
		complain(key);
		return;
	}
	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
		if (!strcmp(keys[i].name, key)) {
			*(u64 *)((char *)&hb_costs + keys[i].at) = (u64)v;
			return;
		}
	complain(key);
}

/* "key=value", "key value" or "kernel GLOB ..." (kernel.h); '#' starts a comment. */
static void line(char *s)
{
	char *save = NULL, *a, *b;

	s[strcspn(s, "#\n")] = 0;
	s += strspn(s, " \t");
	if (!strncmp(s, "kernel", 6) && (s[6] == ' ' || s[6] == '\t')) {
		if (!hb_kernel__row(s + 6))
			complain("kernel, a row for kernels");
		return;
	}
	a = strtok_r(s, "= \t", &save);
	if (!a)
		return;
	b = strtok_r(NULL, "= \t", &save);
	if (b)
		set(a, b);
	else
		complain(a);
}

static void load_file(FILE *f)
{
	char buf[512];

	while (fgets(buf, sizeof(buf), f))
		line(buf);
	fclose(f);
}

static void load_settings(void)
{
	const char *spec = getenv("HB_SIM_COSTS");
	char *copy, *save = NULL;
	struct stat st;
	FILE *f;

	if (!spec || !*spec)
		return;
	if (!strchr(spec, '=') && !stat(spec, &st)) {
		f = hb_settings__open(spec, "HB_SIM_COSTS");
		if (f)
			load_file(f);
		return;
	}
	if (*spec == '/' && !strchr(spec, '=')) {
		fprintf(stderr,
			"simulated accelerator: HB_SIM_COSTS: there is no file %s, so it is left out\n",
			spec);
		return;
	}
	copy = strdup(spec);
	for (char *t = copy ? strtok_r(copy, ",;\n", &save) : NULL; t; t = strtok_r(NULL, ",;\n", &save))
		line(t);
	free(copy);
}

static void check(void)
{
	if (!hb_costs.queue || hb_costs.queue > 65536)
		hb_costs.queue = 1024;
	if (hb_costs.devices > 64)
		hb_costs.devices = 64;
	if (!hb_costs.event_ns)
		hb_costs.event_ns = 1;
	hb_costs.sms = hb_costs.sms ? hb_costs.sms : 1;
	hb_costs.hbm_bps = hb_costs.hbm_bps ? hb_costs.hbm_bps : 1;
	hb_costs.bf16_flops = hb_costs.bf16_flops ? hb_costs.bf16_flops : 1;
	hb_costs.fp8_flops = hb_costs.fp8_flops ? hb_costs.fp8_flops : 1;
	hb_costs.fp32_flops = hb_costs.fp32_flops ? hb_costs.fp32_flops : 1;
}

static void load(void)
{
	load_settings();
	check();
	hb_kernel__default();
}

void hb_costs__load(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, load);
}

void hb_costs__spin(u64 since, u64 ns)
{
	while (ns && hb_now() - since < ns)
#ifdef __x86_64__
		__builtin_ia32_pause();
#else
		;
#endif
}
