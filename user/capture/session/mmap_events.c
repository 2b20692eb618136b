// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "capture/session/mmap_events.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <limits.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"

#define DATA_PAGES 16	 /* 64 KiB: some 400 mappings between two looks */
#define RECORD_MAX 65536 /* perf's header has a 16-bit size */

struct cpu_ring {
	int fd;
	struct perf_event_mmap_page *page; /* control page, then DATA_PAGES */
};

struct hb_mmap_events {
	int epoll;
	size_t page_size;
	u64 lost;
	char *record; /* RECORD_MAX bytes: a record that wraps around, made whole */
	unsigned n;
	struct cpu_ring cpus[];
};

/* What perf writes; the sample_id (here: the time only) follows the file name. */
struct mmap2 {
	struct perf_event_header h;
	u32 pid, tid;
	u64 addr, len, pgoff;
	u32 maj, min;
	u64 ino, ino_generation;
	u32 prot, flags;
	char path[];
};
struct lost {
	struct perf_event_header h;
	u64 id, lost;
};

/* watermark=1 with wakeup_watermark=1 wakes at once; wakeup_events would wait for a count of samples, and a
 * dummy event has none. */
static int open_dummy(int cpu)
{
	struct perf_event_attr attr = {
	    .type = PERF_TYPE_SOFTWARE,
	    .size = sizeof(attr),
	    .config = PERF_COUNT_SW_DUMMY,
	    .sample_type = PERF_SAMPLE_TIME,
	    .sample_period = 1,
	    .mmap = 1, /* executable mappings only */
	    .mmap2 = 1,
	    .sample_id_all = 1,
	    .use_clockid = 1,
	    .clockid = CLOCK_MONOTONIC,
	    .watermark = 1,
	    .wakeup_watermark = 1,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static int add_cpu(struct hb_mmap_events *m, int cpu)
{
	struct cpu_ring *r = &m->cpus[m->n];
	struct epoll_event ev = {.events = EPOLLIN};
	void *page;

	r->fd = open_dummy(cpu);
	if (r->fd == -ENODEV) /* possible, but offline */
		return 0;
	if (r->fd < 0)
		return r->fd;
	page = mmap(NULL, (1 + DATA_PAGES) * m->page_size, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, 0);
	if (page == MAP_FAILED) {
		int err = -errno;

		close(r->fd);
		return err;
	}
	r->page = page;
	m->n++;
	return epoll_ctl(m->epoll, EPOLL_CTL_ADD, r->fd, &ev) ? -errno : 0;
}

static int refused(struct hb_error *e, int err, int cpu)
{
	if (err == -EACCES || err == -EPERM)
		return hb_error__set(e, HB_EXIT_KERNEL, err,
				     "watching for libraries that are loaded later is not permitted; run as "
				     "root or with CAP_PERFMON");
	return hb_error__set(e, HB_EXIT_KERNEL, err, "cannot watch for new mappings on CPU %d: %s", cpu,
			     strerror(-err));
}

struct hb_mmap_events *hb_mmap_events__new(struct hb_error *e)
{
	int cpus = libbpf_num_possible_cpus(), err = 0, cpu;
	struct hb_mmap_events *m;

	if (cpus < 1)
		cpus = 1;
	m = calloc(1, sizeof(*m) + (size_t)cpus * sizeof(m->cpus[0]));
	if (!m) {
		hb_error__nomem(e, "mapping events");
		return NULL;
	}
	m->page_size = (size_t)sysconf(_SC_PAGESIZE);
	m->epoll = epoll_create1(EPOLL_CLOEXEC);
	m->record = malloc(RECORD_MAX);
	if (m->epoll < 0)
		err = hb_error__fds(e, "mapping events", -errno);
	else if (!m->record)
		err = hb_error__nomem(e, "mapping events");
	for (cpu = 0; cpu < cpus && !err; cpu++) {
		err = add_cpu(m, cpu);
		if (err)
			refused(e, err, cpu);
	}
	if (err) {
		hb_mmap_events__free(m);
		return NULL;
	}
	return m;
}

int hb_mmap_events__fd(const struct hb_mmap_events *m)
{
	return m->epoll;
}

/* The time is the record's last word; the name is padded to 8 bytes and ends before it. */
static bool deliver(const char *rec, size_t size, hb_mmap_events_fn fn, void *arg)
{
	const struct mmap2 *r = (const void *)rec;
	struct hb_mmap_event ev;
	char path[PATH_MAX];
	size_t room;

	if (size < sizeof(*r) + 8 || !r->ino)
		return false;
	room = size - sizeof(*r) - 8;
	if (room >= sizeof(path))
		room = sizeof(path) - 1;
	memcpy(path, r->path, room);
	path[room] = 0;
	memcpy(&ev.ts, rec + size - 8, 8);
	ev.pid = r->pid;
	ev.tid = r->tid;
	ev.addr = r->addr;
	ev.len = r->len;
	ev.pgoff = r->pgoff;
	ev.ino = r->ino;
	ev.dev = r->maj << 20 | r->min;
	ev.path = hb_text__clean(path);
	fn(&ev, arg);
	return true;
}

/* Copies out what may lie across the ring's end. */
static void copy_out(const struct hb_mmap_events *m, const struct cpu_ring *r, u64 at, void *to, size_t size)
{
	const char *data = (const char *)r->page + m->page_size;
	size_t ring = DATA_PAGES * m->page_size, off = at % ring;
	size_t first = size < ring - off ? size : ring - off;

	memcpy(to, data + off, first);
	memcpy((char *)to + first, data, size - first);
}

static unsigned read_cpu(struct hb_mmap_events *m, struct cpu_ring *r, hb_mmap_events_fn fn, void *arg)
{
	u64 tail = r->page->data_tail, head = __atomic_load_n(&r->page->data_head, __ATOMIC_ACQUIRE);
	struct perf_event_header h;
	unsigned n = 0;

	while (tail < head) {
		copy_out(m, r, tail, &h, sizeof(h));
		if (h.size < sizeof(h)) /* never written by the kernel; better than going round for ever */
			break;
		copy_out(m, r, tail, m->record, h.size);
		tail += h.size;
		if (h.type == PERF_RECORD_MMAP2)
			n += deliver(m->record, h.size, fn, arg);
		else if (h.type == PERF_RECORD_LOST && h.size >= sizeof(struct lost))
			m->lost += ((const struct lost *)(const void *)m->record)->lost;
	}
	__atomic_store_n(&r->page->data_tail, head, __ATOMIC_RELEASE);
	return n;
}

unsigned hb_mmap_events__read(struct hb_mmap_events *m, hb_mmap_events_fn fn, void *arg)
{
	unsigned n = 0;

	for (unsigned i = 0; i < m->n; i++)
		n += read_cpu(m, &m->cpus[i], fn, arg);
	return n;
}

u64 hb_mmap_events__lost(const struct hb_mmap_events *m)
{
	return m->lost;
}

void hb_mmap_events__free(struct hb_mmap_events *m)
{
	if (!m)
		return;
	for (unsigned i = 0; i < m->n; i++) {
		munmap(m->cpus[i].page, (1 + DATA_PAGES) * m->page_size);
		close(m->cpus[i].fd);
	}
	if (m->epoll >= 0)
		close(m->epoll);
	free(m->record);
	free(m);
}
