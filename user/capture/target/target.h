/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Processes worth tracing: finding them, what they have mapped, the namespaces they live in. All from /proc;
 * a process may vanish between any two reads, which is an ordinary answer (-ESRCH), not a failure.
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
	u32 dev;    /* major << 20 | minor, as in the map record */
	char *path; /* in the process's mount namespace, cleaned; " (deleted)" stripped into `deleted` */
	bool deleted;
};

struct hb_process {
	u32 pid, ppid, nspid; /* nspid: innermost pid namespace, == pid outside */
	u64 start;	      /* monotonic ns */
	u64 start_ticks;      /* starttime of /proc/PID/stat: tells a reused pid apart */
	char comm[16];
	char *exe, *cmdline, *cgroup, *container; /* "" when unknown; container: id guessed from the cgroup */
	int is_32bit;				  /* 1: not an x86-64 ELF */
	int seccomp;				  /* 0, 1 strict, 2 filter */
	u32 tracer;				  /* pid of a debugger; 0: none */
	u32 n_threads;
	uid_t uid;   /* real user, as numbered in our user namespace */
	u64 rss;     /* bytes */
	char state;  /* R, S, D, Z, ... as in /proc/PID/stat */
	bool kernel; /* a kernel thread: nothing to probe */
	int denied;  /* 0, or -EACCES when exe and mappings could not be read (hb_process__peek only) */
	struct hb_mapping *maps; /* executable ones only */
	u32 n_maps;
};

/* Reads one process. -ESRCH: gone; -EACCES: not allowed (exit 4 when a
 * capability of ours is missing, which the sentence names, else 3). Caller frees. */
struct hb_process *hb_process__read(u32 pid, struct hb_error *e);
/* Like read, but takes what there is: a process whose mappings may not be read comes back with `denied` set.
 * NULL: gone or out of memory. */
struct hb_process *hb_process__peek(u32 pid);
int hb_process__reload_maps(struct hb_process *p); /* fresh mappings; 0 or -errno */
void hb_process__free(struct hb_process *p);
/* What to do when the kernel lets us not look at a process, as words for a sentence. */
const char *hb_process__denied_remedy(void);

/* A path by which this process's mapped file can be opened from here: /proc/PID/map_files/A-B when permitted,
 * else /proc/PID/root/PATH when it is the same file, else PATH itself on the same condition. 0, -ESTALE when
 * another file lies at that path now, or -errno. "The same" means (dev, inode) as /proc/PID/maps would print
 * them: stat(2) gives other device numbers on btrfs and overlayfs, so a file that differs by stat is mapped
 * here and looked up in our own maps. */
int hb_process__open_path(const struct hb_process *p, const struct hb_mapping *m, char *buf, size_t size);

/* tids of a process: malloc'ed array, n set; NULL when gone. */
u32 *hb_process__threads(u32 pid, u32 *n);
/* It is gone, or a zombie without other threads: its parent only has not asked for it yet. */
bool hb_process__exited(u32 pid);
/* Innermost-namespace tid and name of a thread; 0 or -errno. */
int hb_thread__read(u32 pid, u32 tid, u32 *nstid, char comm[16]);
/* Process of a thread (Tgid), 0 when gone. */
u32 hb_thread__pid(u32 tid);
/* All pids in /proc, ascending: malloc'ed array, n set; NULL when out of memory. */
u32 *hb_process__all(u32 *n);
/* True when the pids we see are those that BPF sees: we and our /proc are in the initial pid namespace. */
bool hb_target__initial_pidns(void);
/* 0, or -ENOENT with a sentence (exit 4) when no proc file system is mounted on /proc: without one every
 * process would seem to be gone. */
int hb_target__need_proc(struct hb_error *e);

/* What an operator asked for: exactly one of pids, cgroup, name. */
struct hb_selector {
	const char *pids;   /* "1,2,3" or NULL */
	const char *cgroup; /* path, absolute or below the mount point of any hierarchy (v1, v2), or NULL */
	const char *name;   /* glob over comm and basename of exe and argv[0], or NULL */
	bool no_children;
};

/* Resolves to pids in ascending order (descendants included unless no_children; never ourselves, our
 * ancestors only when named by -p). malloc'ed. Refusals (exit 3): no such pid, kernel thread, 32-bit, zombie;
 * nothing matched. Malformed selectors: exit 2. */
int hb_selector__resolve(const struct hb_selector *s, u32 **pids, u32 *n, struct hb_error *e);

/* One tool per target. The lock is a BPF map named "hb_lock" that holds the pids: the kernel drops it when we
 * die (SIGKILL too), and another herschel-bpf finds it by walking the kernel's maps, whatever namespaces
 * either lives in. Walking needs CAP_SYS_ADMIN; without it an abstract Unix socket per pid still covers tools
 * that share a network namespace. NULL: -EBUSY with the other tool's pid in the sentence. */
struct hb_target_lock;
struct hb_target_lock *hb_target_lock__take(const u32 *pids, u32 n, struct hb_error *e);
int hb_target_lock__add(struct hb_target_lock *l, u32 pid); /* a child joins; best effort */
void hb_target_lock__release(struct hb_target_lock *l);

/* ---- what a file descriptor is ---- */
/* Remembers the socket tables of network namespaces, so that many descriptors cost few reads of
 * /proc/PID/net. */
struct hb_fds;
struct hb_fds *hb_fds__new(void);
void hb_fds__free(struct hb_fds *f);
/* "pipe:[ino]", "anon_inode:[eventpoll]" or a path, cleaned. For sockets the kind, local and remote address
 * are appended where /proc/PID/net tells them: "socket:[123] tcp 127.0.0.1:80 -> 127.0.0.1:4711", "socket:[5]
 * unix /run/x.sock". 0, or -errno with "" in buf when gone or not allowed. */
int hb_fds__describe(struct hb_fds *f, u32 pid, int fd, char *buf, size_t size);
/* The same for one descriptor, without a memory. */
int hb_fd__describe(u32 pid, int fd, char *buf, size_t size);

#endif
