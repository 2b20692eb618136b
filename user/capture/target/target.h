/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Processes worth tracing: finding them, what they have mapped, the namespaces they live in. All from /proc; a
 * process may vanish between any two reads, which is an ordinary answer (-ESRCH), not a failure.
 */
#ifndef HB_TARGET_H
#define HB_TARGET_H

#include <sys/types.h>
#include "base/error.h"
#include "schema/schema.h"

/* An executable file mapping of one process. */
struct hb_mapping {
	u64 start, end, pgoff;
	u64 ino;
	u32 dev;      /* major << 20 | minor, as in the map record */
	char *path;   /* in the process's mount namespace, cleaned; " (deleted)" stripped into `deleted` */
	bool deleted;
};

struct hb_process {
	u32 pid, ppid, nspid; /* nspid: innermost pid namespace, == pid outside */
	u64 start;	      /* monotonic ns */
	u64 start_ticks;      /* starttime of /proc/PID/stat: tells a reused pid apart */
	char comm[16];
	char *exe, *cmdline, *cgroup, *container; /* "" when unknown; container: id guessed from the cgroup */
	int is_32bit;	      /* 1: not an x86-64 ELF */
	int seccomp;	      /* 0, 1 strict, 2 filter */
	u32 n_threads;
	struct hb_mapping *maps; /* executable ones only */
	u32 n_maps;
};

/* Reads one process. -ESRCH: gone; -EACCES: not allowed (sentence says which capability). Caller frees. */
struct hb_process *hb_process__read(u32 pid, struct hb_error *e);
int hb_process__reload_maps(struct hb_process *p); /* fresh mappings; 0 or -errno */
void hb_process__free(struct hb_process *p);

/* A path by which this process's mapped file can be opened from here: /proc/PID/map_files/A-B when permitted, else
 * /proc/PID/root/PATH when it is the same (dev, inode), else PATH itself on the same condition. 0 or -errno. */
int hb_process__open_path(const struct hb_process *p, const struct hb_mapping *m, char *buf, size_t size);

/* tids of a process: malloc'ed array, n set; NULL when gone. */
u32 *hb_process__threads(u32 pid, u32 *n);
/* Innermost-namespace tid and name of a thread; 0 or -errno. */
int hb_thread__read(u32 pid, u32 tid, u32 *nstid, char comm[16]);
/* Process of a thread (Tgid), 0 when gone. */
u32 hb_thread__pid(u32 tid);

/* What an operator asked for. */
struct hb_selector {
	const char *pids;    /* "1,2,3" or NULL */
	const char *cgroup;  /* path, absolute or below /sys/fs/cgroup, or NULL */
	const char *name;    /* glob over comm and basename of exe and argv[0], or NULL */
	bool no_children;
};

/* Resolves to pids in ascending order (descendants included unless no_children; never ourselves, our ancestors
 * only when named by -p). malloc'ed. Refusals (exit 3): no such pid, kernel thread, 32-bit, zombie; nothing
 * matched. Malformed selectors: exit 2. */
int hb_selector__resolve(const struct hb_selector *s, u32 **pids, u32 *n, struct hb_error *e);

/* One tool per target: takes a lock for each pid (abstract Unix socket or flock in /run, released by the kernel when
 * we die). -EBUSY with the other tool's pid in the sentence. */
struct hb_target_lock;
struct hb_target_lock *hb_target_lock__take(const u32 *pids, u32 n, struct hb_error *e);
int hb_target_lock__add(struct hb_target_lock *l, u32 pid); /* a child joins; best effort */
void hb_target_lock__release(struct hb_target_lock *l);

/* ---- what a file descriptor is ---- */
/* "socket:[ino]", "pipe:[ino]", "anon_inode:[eventpoll]" or a path, cleaned; "" when gone. For sockets the local and
 * remote address is appended where /proc/PID/net tells it. */
int hb_fd__describe(u32 pid, int fd, char *buf, size_t size);

#endif
