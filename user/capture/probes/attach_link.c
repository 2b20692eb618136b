/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "capture/probes/attach_link.h"
#include "capture/probes/probes.h"

#include <errno.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* What bpf(BPF_LINK_CREATE) reads for BPF_TRACE_UPROBE_MULTI, since commit 89ae89f53d20 (6.6). */
struct multi_attr {
	u32 prog_fd, target_fd, attach_type, flags;
	u64 path, offsets, ref_ctr_offsets, cookies;
	u32 cnt, multi_flags, pid, pad;
};
#define MULTI_RETURN 1 /* BPF_F_UPROBE_MULTI_RETURN */

static int link_multi(int prog, const char *path, const struct hb_places *at, u32 type, u32 flags, u32 pid)
{
	struct multi_attr a = {
	    .prog_fd = (u32)prog,
	    .attach_type = type,
	    .path = (u64)(uintptr_t)path,
	    .offsets = (u64)(uintptr_t)at->offsets,
	    .ref_ctr_offsets = (u64)(uintptr_t)at->counters,
	    .cookies = (u64)(uintptr_t)at->cookies,
	    .cnt = at->n,
	    .multi_flags = flags,
	    .pid = pid,
	};
	int fd = (int)syscall(__NR_bpf, BPF_LINK_CREATE, &a, sizeof(a));

	return fd < 0 ? -errno : fd;
}

int hb_link__multi(int prog, const char *path, const struct hb_places *at, bool ret, u32 pid)
{
	return link_multi(prog, path, at, HB_UPROBE_MULTI, ret ? MULTI_RETURN : 0, pid);
}

int hb_link__session(int prog, const char *path, const struct hb_places *at, u32 pid)
{
	return link_multi(prog, path, at, HB_UPROBE_SESSION, 0, pid);
}

/* A number from sysfs after an optional prefix ("config:0"), -1 when not there. */
static int sysfs_number(const char *path, const char *prefix)
{
	FILE *f = fopen(path, "re");
	char line[64] = "";
	int v = -1;

	if (!f)
		return -1;
	if (fgets(line, sizeof(line), f) && !strncmp(line, prefix, strlen(prefix)))
		sscanf(line + strlen(prefix), "%d", &v);
	fclose(f);
	return v;
}

#define COUNTER_SHIFT 32 /* of config, fixed since 4.20 */

static int open_uprobe(const char *path, u64 offset, u64 counter, bool ret, u32 pid)
{
	int type = sysfs_number("/sys/bus/event_source/devices/uprobe/type", "");
	int bit = sysfs_number("/sys/bus/event_source/devices/uprobe/format/retprobe", "config:");
	struct perf_event_attr a = {.size = sizeof(a)};
	int fd;

	if (type < 0 || bit < 0 || bit > 63)
		return -ENOENT;
	a.type = (u32)type;
	a.config = (ret ? 1ULL << bit : 0) | counter << COUNTER_SHIFT;
	a.uprobe_path = (u64)(uintptr_t)path;
	a.probe_offset = offset;
	fd = (int)syscall(__NR_perf_event_open, &a, (int)pid, -1, -1, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int hb_link__single(int prog, const char *path, const struct hb_places *at, bool ret, u32 pid)
{
	int perf = open_uprobe(path, *at->offsets, at->counters ? *at->counters : 0, ret, pid), fd;
	struct {
		u32 prog_fd, target_fd, attach_type, flags;
		u64 cookie;
	} a = {(u32)prog, (u32)perf, BPF_PERF_EVENT, 0, *at->cookies};

	if (perf < 0)
		return perf;
	fd = (int)syscall(__NR_bpf, BPF_LINK_CREATE, &a, sizeof(a));
	fd = fd < 0 ? -errno : fd;
	close(perf); /* the link has its own reference */
	return fd;
}
