/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Loads the real skeleton for tests of the scheduler, process, system call and sampling programs, and keeps
 * every record. Children are forked before the programs are attached and start when told; what they know
 * (their own clock, tids, addresses) they leave in memory shared with the test.
 */
#ifndef HB_TESTS_BPF_RIG_H
#define HB_TESTS_BPF_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "capture/session/kernel_knobs.h"
#include "schema/wire.h"
#include "herschel.skel.h"

#define RIG_DEADLINE (30ULL * 1000000000) /* for anything that is waited for */

struct rig_record {
	struct hb_wire w;
	union {
		struct hb_rec_offcpu offcpu;
		struct hb_rec_syscall syscall;
		struct hb_rec_sample sample;
		struct hb_rec_process process;
		struct hb_rec_thread thread;
		struct hb_rec_exec exec;
		struct hb_rec_exit exit;
		struct hb_rec_rename rename;
		char bytes[HB_RECORD_MAX];
	};
};

struct rig {
	struct herschel *skel;
	struct ring_buffer *rb;
	int fds[HB_MAX_RINGS];
	unsigned n_rings, ring_bytes;
	struct bpf_link *links[16];
	unsigned n_links;
	struct rig_record *rec;
	unsigned n, cap;
};

/* Names of programs to load; all others stay out, so that a test depends on its own programs only. */
static inline struct rig *rig__open(void)
{
	struct rig *r = calloc(1, sizeof(*r));
	struct hb_kernel_knobs k;
	struct bpf_program *p;

	assert_non_null(r);
	r->ring_bytes = 4 << 20;
	r->skel = herschel__open();
	assert_non_null(r->skel);
	assert_int_equal(hb_kernel_knobs__read(&k), 0);
	r->skel->rodata->hb_preempt_off = k.preempt_off;
	r->skel->rodata->hb_switch_has_state = k.switch_has_state;
	bpf_object__for_each_program(p, r->skel->obj) bpf_program__set_autoload(p, false);
	return r;
}

static inline int rig__take(void *arg, void *data, size_t size)
{
	struct rig *r = arg;
	struct hb_wire *w = data;

	assert_true(size >= sizeof(*w) && size == sizeof(*w) + w->bytes && w->bytes <= HB_RECORD_MAX);
	if (r->n == r->cap) {
		r->cap = r->cap ? r->cap * 2 : 1024;
		r->rec = realloc(r->rec, r->cap * sizeof(*r->rec));
		assert_non_null(r->rec);
	}
	memcpy(&r->rec[r->n++], data, size);
	return 0;
}

static inline void rig__rings(struct rig *r)
{
	int fd;

	r->n_rings = (unsigned)libbpf_num_possible_cpus();
	if (r->n_rings > HB_MAX_RINGS)
		r->n_rings = HB_MAX_RINGS;
	r->skel->rodata->hb_n_rings = r->n_rings;
	for (unsigned i = 0; i < r->n_rings; i++) {
		fd = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "hb_ring", 0, 0, r->ring_bytes, NULL);
		assert_true(fd >= 0);
		r->fds[i] = fd;
	}
}

/* Loads what has been given autoload, and attaches all but the sampler. */
static inline void rig__start(struct rig *r)
{
	struct bpf_program *p;

	rig__rings(r);
	assert_int_equal(herschel__load(r->skel), 0);
	for (u32 i = 0; i < r->n_rings; i++) {
		assert_int_equal(
		    bpf_map_update_elem(bpf_map__fd(r->skel->maps.rings), &i, &r->fds[i], BPF_ANY), 0);
		if (!r->rb)
			r->rb = ring_buffer__new(r->fds[i], rig__take, r, NULL);
		else
			assert_int_equal(ring_buffer__add(r->rb, r->fds[i], rig__take, r), 0);
		assert_non_null(r->rb);
	}
	bpf_object__for_each_program(p, r->skel->obj)
	{
		if (!bpf_program__autoload(p) || bpf_program__type(p) == BPF_PROG_TYPE_PERF_EVENT)
			continue;
		r->links[r->n_links] = bpf_program__attach(p);
		assert_non_null(r->links[r->n_links]);
		r->n_links++;
	}
}

static inline void rig__target(struct rig *r, int pid, u32 flags)
{
	struct hb_target_cfg cfg = {.flags = flags, .nspid = (u32)pid};
	u32 key = (u32)pid;

	assert_int_equal(bpf_map_update_elem(bpf_map__fd(r->skel->maps.targets), &key, &cfg, BPF_ANY), 0);
}

static inline bool rig__is_target(struct rig *r, u32 pid)
{
	struct hb_target_cfg cfg;

	return bpf_map_lookup_elem(bpf_map__fd(r->skel->maps.targets), &pid, &cfg) == 0;
}

static inline int rig__by_time(const void *a, const void *b)
{
	const struct rig_record *x = a, *y = b;

	return x->w.ts < y->w.ts ? -1 : x->w.ts > y->w.ts;
}

/* Takes what is in the rings; records are in order of time. */
static inline void rig__drain(struct rig *r)
{
	assert_true(ring_buffer__consume(r->rb) >= 0);
	if (r->n) /* no record yet: no array */
		qsort(r->rec, r->n, sizeof(*r->rec), rig__by_time);
}

static inline u64 rig__lost(struct rig *r, u32 cause, u32 type)
{
	u64 v[1024], sum = 0;
	u32 key = HB_LOSS_KEY(cause, type);
	int cpus = libbpf_num_possible_cpus();

	assert_true(cpus <= 1024);
	assert_int_equal(bpf_map_lookup_elem(bpf_map__fd(r->skel->maps.losses), &key, v), 0);
	for (int i = 0; i < cpus; i++)
		sum += v[i];
	return sum;
}

/* The next record of a type about a thread after position *pos (0 at first); NULL at the end. tid 0: any. */
static inline struct rig_record *rig__next(struct rig *r, unsigned *pos, u32 type, u32 tid)
{
	for (; *pos < r->n; (*pos)++) {
		struct rig_record *x = &r->rec[*pos];

		if (x->w.type == type && (!tid || x->w.tid == tid)) {
			(*pos)++;
			return x;
		}
	}
	return NULL;
}

static inline unsigned rig__count(struct rig *r, u32 type, u32 tid)
{
	unsigned n = 0, pos = 0;

	while (rig__next(r, &pos, type, tid))
		n++;
	return n;
}

static inline void rig__free(struct rig *r)
{
	for (unsigned i = 0; i < r->n_links; i++)
		bpf_link__destroy(r->links[i]);
	ring_buffer__free(r->rb);
	for (unsigned i = 0; i < r->n_rings; i++)
		close(r->fds[i]);
	herschel__destroy(r->skel);
	free(r->rec);
	free(r);
}

/* ---- children ---- */

#define RIG_SLOTS      512
#define RIG_CHILD_NAME "rig-child"
struct rig_child {
	pid_t pid;
	int go;		   /* a byte here starts it */
	_Atomic u64 *slot; /* RIG_SLOTS words shared with it, zero at first */
};

static inline u32 rig_tid(void)
{
	return (u32)syscall(SYS_gettid);
}

/* fn runs in the child once it is told to; its return value is the exit code. */
static inline struct rig_child rig_child__fork(int (*fn)(_Atomic u64 *slot))
{
	struct rig_child c = {0};
	int go[2];
	char b;

	c.slot =
	    mmap(NULL, RIG_SLOTS * sizeof(u64), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(c.slot, MAP_FAILED);
	assert_int_equal(pipe2(go, O_CLOEXEC), 0);
	fflush(NULL);
	c.pid = fork();
	assert_true(c.pid >= 0);
	if (!c.pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		prctl(PR_SET_NAME, RIG_CHILD_NAME);
		close(go[1]);
		while (read(go[0], &b, 1) < 0 && errno == EINTR)
			;
		_exit(fn(c.slot));
	}
	close(go[0]);
	c.go = go[1];
	return c;
}

static inline void rig_child__go(struct rig_child *c)
{
	assert_int_equal(write(c->go, "", 1), 1);
}

/* Waits for its end; the status of wait(2). */
static inline int rig_child__wait(struct rig_child *c)
{
	u64 deadline = hb_clock__now() + RIG_DEADLINE;
	int status = 0;

	while (waitpid(c->pid, &status, WNOHANG) == 0) {
		if (hb_clock__now() > deadline) {
			kill(c->pid, SIGKILL);
			fail_msg("child %d does not end", c->pid);
		}
		usleep(2000);
	}
	close(c->go);
	return status;
}

static inline void rig_child__drop(struct rig_child *c)
{
	munmap((void *)c->slot, RIG_SLOTS * sizeof(u64));
}

/* Records the child from its first act to its end, which has to be a good one. */
static inline void rig__record(struct rig *r, struct rig_child *c)
{
	rig__start(r);
	rig__target(r, c->pid, 0);
	rig_child__go(c);
	assert_int_equal(rig_child__wait(c), 0);
	rig__drain(r);
}

static inline void rig__close(struct rig *r, struct rig_child *c)
{
	rig__free(r);
	rig_child__drop(c);
}

/* For both sides: until *slot is not 0. False after the deadline. */
static inline bool rig_wait_slot(_Atomic u64 *slot)
{
	u64 deadline = hb_clock__now() + RIG_DEADLINE;

	while (!atomic_load(slot)) {
		if (hb_clock__now() > deadline)
			return false;
		usleep(500);
	}
	return true;
}

/* Until a thread sleeps (state S or D in its stat) in the call `sysno`. */
static inline bool rig_wait_asleep(int pid, u32 tid, long sysno)
{
	u64 deadline = hb_clock__now() + RIG_DEADLINE;
	char path[64], buf[256];

	snprintf(path, sizeof(path), "/proc/%d/task/%u/syscall", pid, tid);
	for (; hb_clock__now() < deadline; usleep(500)) {
		int fd = open(path, O_RDONLY);
		ssize_t n = fd < 0 ? -1 : read(fd, buf, sizeof(buf) - 1);

		if (fd >= 0)
			close(fd);
		if (n <= 0)
			continue;
		buf[n] = 0; /* "running", or the number and arguments of the call it sleeps in */
		if (buf[0] >= '0' && buf[0] <= '9' && atol(buf) == sysno)
			return true;
	}
	return false;
}

/* ---- code of known place ---- */

/* A function in a section of its own, so that the linker knows where it ends; with a frame pointer, never
 * inlined. */
#define RIG_PLACED(name)                                                                                     \
	extern const char __start_hb_at_##name[], __stop_hb_at_##name[];                                     \
	__attribute__((noinline, noclone, section("hb_at_" #name),                                           \
		       optimize("no-omit-frame-pointer", "no-optimize-sibling-calls")))
#define RIG_LIES_IN(addr, name) ((addr) >= (u64)__start_hb_at_##name && (addr) < (u64)__stop_hb_at_##name)

/* Programs cannot be loaded: skip, saying so. */
#define RIG_NEEDS_ROOT()                                                                                     \
	do {                                                                                                 \
		if (geteuid() != 0) {                                                                        \
			printf("skip: loading BPF programs needs root\n");                                   \
			skip();                                                                              \
		}                                                                                            \
	} while (0)

#endif
