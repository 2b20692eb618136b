// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "capture/session/sampling.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

struct hb_sampling {
	unsigned n;
	int fds[]; /* those of CPUs that are online */
};

u64 hb_sampling__period(unsigned freq)
{
	return freq ? 1000000000ULL / freq : 0;
}

/* A period and not a frequency: the kernel turns one into the other for this clock, but then also checks it
 * against perf_event_max_sample_rate, which it lowers by itself when the machine is slow. */
static int open_tick(int cpu, u64 period)
{
	struct perf_event_attr attr = {
	    .type = PERF_TYPE_SOFTWARE,
	    .size = sizeof(attr),
	    .config = PERF_COUNT_SW_CPU_CLOCK,
	    .sample_period = period,
	    .disabled = 1, /* until the program is there */
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static int start_tick(int fd, int prog_fd)
{
	if (ioctl(fd, PERF_EVENT_IOC_SET_BPF, prog_fd) || ioctl(fd, PERF_EVENT_IOC_ENABLE, 0))
		return -errno;
	return 0;
}

static int refused(struct hb_error *e, int err, int cpu)
{
	if (err == -EACCES || err == -EPERM)
		return hb_error__set(e, HB_EXIT_KERNEL, err,
				     "CPU sampling is not permitted; run as root or with CAP_PERFMON, or "
				     "switch it off with -F 0");
	return hb_error__set(e, HB_EXIT_KERNEL, err,
			     "cannot start CPU sampling on CPU %d: %s; switch it off with -F 0", cpu,
			     strerror(-err));
}

static int start_all(struct hb_sampling *s, int cpus, int prog_fd, u64 period, struct hb_error *e)
{
	for (int cpu = 0; cpu < cpus; cpu++) {
		int fd = open_tick(cpu, period), err;

		if (fd == -ENODEV) /* possible, but offline */
			continue;
		if (fd < 0)
			return refused(e, fd, cpu);
		s->fds[s->n++] = fd;
		err = start_tick(fd, prog_fd);
		if (err)
			return refused(e, err, cpu);
	}
	return 0;
}

struct hb_sampling *hb_sampling__new(int prog_fd, unsigned freq, struct hb_error *e)
{
	int cpus = libbpf_num_possible_cpus();
	struct hb_sampling *s;

	if (!freq || freq > HB_SAMPLING_MAX_FREQ) {
		hb_error__set(e, HB_EXIT_USAGE, -EINVAL,
			      "%u samples a second cannot be taken; choose 1 to %d", freq,
			      HB_SAMPLING_MAX_FREQ);
		return NULL;
	}
	if (cpus < 1)
		cpus = 1;
	s = calloc(1, sizeof(*s) + (size_t)cpus * sizeof(int));
	if (!s) {
		hb_error__nomem(e, "CPU sampling");
		return NULL;
	}
	if (start_all(s, cpus, prog_fd, hb_sampling__period(freq), e)) {
		hb_sampling__free(s);
		return NULL;
	}
	return s;
}

unsigned hb_sampling__cpus(const struct hb_sampling *s)
{
	return s->n;
}

void hb_sampling__free(struct hb_sampling *s)
{
	if (!s)
		return;
	for (unsigned i = 0; i < s->n; i++)
		close(s->fds[i]);
	free(s);
}
