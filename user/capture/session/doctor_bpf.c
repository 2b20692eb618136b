/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Tests by doing. One tiny program serves all: it puts 8 bytes into a ring buffer. It is written in
 * instructions, so that a kernel which refuses our real programs still gets an answer for each of the things
 * they are made of.
 */
#include "capture/session/doctor_impl.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "capture/probes/probes.h"
#include "capture/session/mmap_events.h"
#include "capture/session/sampling.h"

#define WAIT_NS 500000000ULL /* how long an event may take to arrive; on an idle machine microseconds */

/* ---- the program ---- */

/* clang-format off */
#define I(c, d, s, o, i) ((struct bpf_insn){.code = (c), .dst_reg = (d), .src_reg = (s), .off = (o), .imm = (i)})
#define MOV_REG(d, s)	 I(BPF_ALU64 | BPF_MOV | BPF_X, d, s, 0, 0)
#define MOV_IMM(d, i)	 I(BPF_ALU64 | BPF_MOV | BPF_K, d, 0, 0, i)
#define ADD_IMM(d, i)	 I(BPF_ALU64 | BPF_ADD | BPF_K, d, 0, 0, i)
#define STORE_IMM(o, i)	 I(BPF_ST | BPF_DW | BPF_MEM, BPF_REG_10, 0, o, i)
#define MAP(d, fd)	 I(BPF_LD | BPF_DW | BPF_IMM, d, BPF_PSEUDO_MAP_FD, 0, fd), I(0, 0, 0, 0, 0)
#define CALL(f)		 I(BPF_JMP | BPF_CALL, 0, 0, 0, f)
#define IF_ZERO(d, o)	 I(BPF_JMP | BPF_JEQ | BPF_K, d, 0, o, 0)
#define EXIT()		 I(BPF_JMP | BPF_EXIT, 0, 0, 0, 0)
/* clang-format on */

struct kind {
	enum bpf_prog_type type;
	enum bpf_attach_type attach;
	u32 btf_id;
};

static int load(const struct kind *k, const struct bpf_insn *code, size_t n)
{
	LIBBPF_OPTS(bpf_prog_load_opts, o, .expected_attach_type = k->attach, .attach_btf_id = k->btf_id);
	int fd = bpf_prog_load(k->type, "hb_doctor", "GPL", code, n, &o);

	return fd < 0 ? -errno : fd;
}

#define SEND_INSNS  10 /* MAP counts twice */
#define GUARD_INSNS 8

/* With `storage` >= 0 the event is only sent when the current task's storage could be had. */
static int load_sender(const struct kind *k, int ring, int storage)
{
	const struct bpf_insn send[SEND_INSNS] = {
	    STORE_IMM(-8, 0x4842),	   MAP(BPF_REG_1, ring),  MOV_REG(BPF_REG_2, BPF_REG_10),
	    ADD_IMM(BPF_REG_2, -8),	   MOV_IMM(BPF_REG_3, 8), MOV_IMM(BPF_REG_4, 0),
	    CALL(BPF_FUNC_ringbuf_output), MOV_IMM(BPF_REG_0, 0), EXIT(),
	};
	const struct bpf_insn guard[GUARD_INSNS] = {
	    CALL(BPF_FUNC_get_current_task_btf),
	    MOV_REG(BPF_REG_2, BPF_REG_0),
	    MAP(BPF_REG_1, storage),
	    MOV_IMM(BPF_REG_3, 0),
	    MOV_IMM(BPF_REG_4, BPF_LOCAL_STORAGE_GET_F_CREATE),
	    CALL(BPF_FUNC_task_storage_get),
	    IF_ZERO(BPF_REG_0, SEND_INSNS - 2),
	};
	struct bpf_insn all[GUARD_INSNS + SEND_INSNS];

	if (storage < 0)
		return load(k, send, SEND_INSNS);
	memcpy(all, guard, sizeof(guard));
	memcpy(all + GUARD_INSNS, send, sizeof(send));
	return load(k, all, GUARD_INSNS + SEND_INSNS);
}

/* ---- receiving ---- */

static int count_one(void *arg, void *data, size_t size)
{
	if (size == 8)
		++*(u64 *)arg;
	return 0;
}

/* Makes something happen again and again until an event arrives. */
static bool delivered(struct hb_doctor_bench *b, void (*provoke)(void))
{
	u64 deadline = hb_clock__now() + WAIT_NS;

	do {
		provoke();
		ring_buffer__consume(b->reader);
	} while (!b->seen && hb_clock__now() < deadline);
	return b->seen > 0;
}

/* Throws away what came late from an earlier check. */
static bool drain(struct hb_doctor_bench *b)
{
	if (!b->reader)
		return false;
	ring_buffer__consume(b->reader);
	b->seen = 0;
	return true;
}

static void untested(struct hb_diagnosis *out, const char *why)
{
	out->answer = HB_ANSWER_UNTESTED;
	snprintf(out->detail, sizeof(out->detail), "not tested: %s", why);
}

static void no_ring(struct hb_diagnosis *out)
{
	untested(out, "without a ring buffer nothing can be delivered");
}

static void refused(struct hb_diagnosis *out, const char *what, int err)
{
	hb_check__no(out, "%s: %s", what, strerror(-err));
}

/* ---- programs and rings ---- */

static void test_load(struct hb_doctor_bench *b, struct hb_diagnosis *out)
{
	const struct kind k = {.type = BPF_PROG_TYPE_KPROBE};
	const struct bpf_insn code[] = {MOV_IMM(BPF_REG_0, 0), EXIT()};
	int fd = load(&k, code, 2);

	if (fd == -ENOSYS) {
		hb_check__no(out, "this kernel has no bpf(2)");
		hb_check__remedy(out, "use a kernel built with CONFIG_BPF_SYSCALL=y");
	} else if (fd < 0) {
		refused(out, "bpf(BPF_PROG_LOAD)", fd);
	} else {
		hb_check__yes(out, "a program of type kprobe");
		b->loads = true;
		close(fd);
	}
}

static void nothing(void)
{
}

static void test_ring(struct hb_doctor_bench *b, struct hb_diagnosis *out)
{
	const struct kind k = {.type = BPF_PROG_TYPE_RAW_TRACEPOINT};
	LIBBPF_OPTS(bpf_test_run_opts, run);
	int fd;

	b->ring = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "hb_doctor", 0, 0, (u32)sysconf(_SC_PAGESIZE), NULL);
	if (b->ring < 0) {
		refused(out, "creating one", -errno);
		return;
	}
	b->reader = ring_buffer__new(b->ring, count_one, &b->seen, NULL);
	fd = b->reader ? load_sender(&k, b->ring, -1) : -errno;
	if (fd < 0) {
		refused(out, b->reader ? "a program that writes to it" : "mapping it", fd);
		return;
	}
	if (bpf_prog_test_run_opts(fd, &run)) /* 5.10; the programs below will tell on older kernels */
		hb_check__yes(out, "made and mapped; a program could not be run on its own here");
	else if (delivered(b, nothing))
		hb_check__yes(out, "an event was delivered");
	else
		hb_check__no(out, "an event was sent and did not arrive");
	close(fd);
}

/* ---- scheduler events ---- */

static void give_way(void)
{
	struct timespec t = {.tv_nsec = 1000000};

	nanosleep(&t, NULL);
}

static void on_switch(struct hb_doctor_bench *b, struct hb_diagnosis *out, int storage)
{
	struct kind k = {.type = BPF_PROG_TYPE_TRACING, .attach = BPF_TRACE_RAW_TP};
	int id = libbpf_find_vmlinux_btf_id("sched_switch", BPF_TRACE_RAW_TP), prog, link = -1;

	if (!drain(b)) {
		no_ring(out);
		return;
	}
	k.btf_id = id > 0 ? (u32)id : 0;
	prog = id > 0 ? load_sender(&k, b->ring, storage) : id;
	if (prog >= 0)
		link = bpf_raw_tracepoint_open(NULL, prog);
	if (id <= 0)
		refused(out, "sched_switch is not in the kernel's BTF", id ? id : -ENOENT);
	else if (prog < 0)
		refused(out, "loading", prog);
	else if (link < 0)
		refused(out, "attaching to sched_switch", -errno);
	else if (delivered(b, give_way))
		hb_check__yes(out, storage < 0 ? "sched_switch was delivered" : "written at sched_switch");
	else
		hb_check__no(out, "attached to sched_switch, but nothing arrived");
	if (link >= 0)
		close(link);
	if (prog >= 0)
		close(prog);
}

static void test_tp_btf(struct hb_doctor_bench *b, struct hb_diagnosis *out)
{
	on_switch(b, out, -1);
}

/* Its key and value need a description in BTF, both are an int here. */
static int make_storage(void)
{
	struct btf *btf = btf__new_empty();
	int id = btf ? btf__add_int(btf, "int", 4, BTF_INT_SIGNED) : -ENOMEM, fd;

	if (id < 0 || btf__load_into_kernel(btf)) {
		fd = id < 0 ? id : -errno;
	} else {
		LIBBPF_OPTS(bpf_map_create_opts, o, .map_flags = BPF_F_NO_PREALLOC,
			    .btf_fd = (u32)btf__fd(btf), .btf_key_type_id = (u32)id,
			    .btf_value_type_id = (u32)id);

		fd = bpf_map_create(BPF_MAP_TYPE_TASK_STORAGE, "hb_doctor", 4, 4, 0, &o);
		fd = fd < 0 ? -errno : fd;
	}
	btf__free(btf);
	return fd;
}

static void test_task_storage(struct hb_doctor_bench *b, struct hb_diagnosis *out)
{
	int storage = make_storage();

	if (storage < 0) {
		refused(out, "creating one", storage);
		return;
	}
	on_switch(b, out, storage);
	close(storage);
}

/* ---- uprobes ---- */

void hb_doctor__be_probed(void);
__attribute__((noinline, noclone)) void hb_doctor__be_probed(void)
{
	__asm__ volatile("" ::: "memory");
}

/* File offset of a function of ours. */
static u64 own_offset(const struct hb_process *self, const void *fn)
{
	uintptr_t addr = (uintptr_t)fn;

	for (u32 i = 0; i < self->n_maps; i++)
		if (addr >= self->maps[i].start && addr < self->maps[i].end)
			return addr - self->maps[i].start + self->maps[i].pgoff;
	return 0;
}

/* The number of the kernel's uprobe event source. It comes from sysfs, tracefs is not needed. */
static int uprobe_type(void)
{
	FILE *f = fopen("/sys/bus/event_source/devices/uprobe/type", "re");
	int type = -ENOENT;

	if (f && fscanf(f, "%d", &type) != 1)
		type = -EINVAL;
	if (f)
		fclose(f);
	return type;
}

static int open_uprobe(int type, u64 offset)
{
	struct perf_event_attr a = {.type = (u32)type,
				    .size = sizeof(a),
				    .uprobe_path = (uintptr_t) "/proc/self/exe",
				    .probe_offset = offset};
	int fd = (int)syscall(SYS_perf_event_open, &a, getpid(), -1, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static void test_uprobe(struct hb_doctor_bench *b, struct hb_diagnosis *out)
{
	const struct kind k = {.type = BPF_PROG_TYPE_KPROBE};
	u64 offset = own_offset(b->self, (const void *)hb_doctor__be_probed);
	int type = uprobe_type(), prog, fd;

	if (!drain(b)) {
		no_ring(out);
		return;
	}
	prog = load_sender(&k, b->ring, -1);
	fd = type < 0 ? type : open_uprobe(type, offset);
	if (type < 0)
		refused(out, "/sys/bus/event_source/devices/uprobe", type);
	else if (prog < 0)
		refused(out, "loading", prog);
	else if (fd < 0)
		refused(out, "perf_event_open(uprobe)", fd);
	else if (ioctl(fd, PERF_EVENT_IOC_SET_BPF, prog) || ioctl(fd, PERF_EVENT_IOC_ENABLE, 0))
		refused(out, "attaching a program", -errno);
	else if (delivered(b, hb_doctor__be_probed))
		hb_check__yes(out, "a function of this tool was probed and seen");
	else
		hb_check__no(out, "attached to a function of this tool, but its calls were not seen");
	if (fd >= 0)
		close(fd);
	if (prog >= 0)
		close(prog);
}

static void test_uprobe_multi(struct hb_doctor_bench *b, struct hb_diagnosis *out)
{
	if (!b->loads)
		untested(out, "no program can be loaded");
	else if (hb_attach__has_multi())
		hb_check__yes(out, "a second thread was seen");
	else
		hb_check__no(out,
			     "single uprobes are used instead: they detach slowly (seconds for 60 probes)");
}

/* ---- perf events ---- */

static void burn(void)
{
	u64 until = hb_clock__now() + 5000000; /* the clock of an idle CPU does not tick */

	while (hb_clock__now() < until)
		;
}

static void test_sampling(struct hb_doctor_bench *b, struct hb_diagnosis *out)
{
	const struct kind k = {.type = BPF_PROG_TYPE_PERF_EVENT};
	struct hb_sampling *s = NULL;
	struct hb_error e = {0};
	int prog;

	if (!drain(b)) {
		no_ring(out);
		return;
	}
	prog = load_sender(&k, b->ring, -1);
	if (prog >= 0)
		s = hb_sampling__new(prog, 999, &e);
	if (prog < 0)
		refused(out, "loading", prog);
	else if (!s)
		hb_check__no(out, "%.300s", e.text);
	else if (delivered(b, burn))
		hb_check__yes(out, "a tick was delivered, %u CPUs", hb_sampling__cpus(s));
	else
		hb_check__no(out, "started, but no tick arrived");
	hb_sampling__free(s);
	if (prog >= 0)
		close(prog);
}

static void see_own(const struct hb_mmap_event *ev, void *arg)
{
	if (ev->pid == (u32)getpid())
		*(bool *)arg = true;
}

/* Maps the file of this tool once more, executable, as a library would be. */
static void map_something(void)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	void *p = fd < 0 ? MAP_FAILED : mmap(NULL, 1, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);

	if (p != MAP_FAILED)
		munmap(p, 1);
	if (fd >= 0)
		close(fd);
}

static void test_mappings(struct hb_doctor_bench *b, struct hb_diagnosis *out)
{
	struct hb_error e = {0};
	struct hb_mmap_events *m = hb_mmap_events__new(&e);
	u64 deadline = hb_clock__now() + WAIT_NS;
	bool seen = false;

	if (!m) {
		hb_check__no(out, "%.300s", e.text);
		return;
	}
	while (!seen && hb_clock__now() < deadline) {
		map_something();
		hb_mmap_events__read(m, see_own, &seen);
	}
	if (seen)
		hb_check__yes(out, "a mapping of this tool was seen");
	else
		hb_check__no(out, "a mapping was made and not seen");
	hb_mmap_events__free(m);
}

void hb_doctor_bench__close(struct hb_doctor_bench *b)
{
	ring_buffer__free(b->reader);
	if (b->ring >= 0)
		close(b->ring);
}

#define AS_ROOT "run as root, or with CAP_BPF and CAP_PERFMON"

const struct hb_check hb_checks_bpf[] = {
    {"load", "BPF program can be loaded", "everything",
     AS_ROOT "; in a container it must be privileged, or its seccomp profile must allow bpf(2)", HB_NEED_MUST,
     test_load},
    {"ring-buffer", "ring buffer", "getting events out of the kernel", AS_ROOT "; needs Linux 5.8 or newer",
     HB_NEED_MUST, test_ring},
    {"tp-btf", "scheduler events (tp_btf)", "off-CPU time, wakers, process starts and exits",
     AS_ROOT "; needs Linux 5.11 or newer with BTF", HB_NEED_MUST, test_tp_btf},
    {"task-storage", "task storage", "matching the begin and end of calls",
     AS_ROOT "; needs Linux 5.11 or newer", HB_NEED_MUST, test_task_storage},
    {"uprobe", "uprobes", "accelerator calls",
     AS_ROOT "; needs a kernel with CONFIG_UPROBES=y and /sys mounted", HB_NEED_MUST, test_uprobe},
    {"uprobe-multi", "uprobe_multi links", "attaching and detaching in milliseconds",
     "use Linux 6.10 or newer", HB_NEED_FEATURE, test_uprobe_multi},
    {"perf-sampling", "CPU samples", "where CPU time goes (trace -F 0 does without)",
     "run as root or with CAP_PERFMON; in a container its seccomp profile must allow perf_event_open(2)",
     HB_NEED_FEATURE, test_sampling},
    {"perf-mmap", "mapping events", "probing libraries that are loaded during the window",
     "run as root or with CAP_PERFMON; in a container its seccomp profile must allow perf_event_open(2)",
     HB_NEED_MUST, test_mappings},
    {0},
};
