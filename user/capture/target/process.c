/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "capture/target/procfs.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/text.h"

#define PF_KTHREAD     0x00200000 /* include/linux/sched.h; shown in field 9 of stat */
#define CMDLINE_MAX    4096
#define MAPS_MAX       (64u << 20) /* 65530 mappings with long paths fit; more is not a process we understand */
#define PIDNS_INIT_INO 0xEFFFFFFCu /* PROC_PID_INIT_INO: fixed by the kernel's ABI */

#if defined(__x86_64__)
#define OUR_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define OUR_MACHINE EM_AARCH64
#endif

static void read_comm(u32 pid, const char *name, char comm[16])
{
	char *text = hb_procfs__read(pid, name, 64, NULL, NULL);

	comm[0] = 0;
	if (!text)
		return;
	if (text[0] && text[strlen(text) - 1] == '\n')
		text[strlen(text) - 1] = 0;
	snprintf(comm, 16, "%.15s", text);
	hb_text__clean(comm); /* a newline inside the name becomes '?' as well */
	free(text);
}

/* Arguments separated by NUL -> by space; what does not fit is cut. */
static char *read_cmdline(u32 pid)
{
	size_t n = 0;
	char *text = hb_procfs__read(pid, "cmdline", CMDLINE_MAX, &n, NULL);

	if (!text)
		return strdup("");
	while (n && !text[n - 1])
		n--;
	for (size_t i = 0; i < n; i++)
		if (!text[i])
			text[i] = ' ';
	text[n] = 0;
	return hb_text__clean(text);
}

static char *read_exe(u32 pid)
{
	char buf[4096];
	static const char mark[] = " (deleted)";
	size_t n;

	if (hb_procfs__link(pid, "exe", buf, sizeof(buf)))
		return strdup("");
	n = strlen(buf);
	if (n > sizeof(mark) && strcmp(buf + n - sizeof(mark) + 1, mark) == 0)
		buf[n - sizeof(mark) + 1] = 0;
	return strdup(hb_text__clean(buf));
}

static void read_cgroup(struct hb_process *p)
{
	char path[4096], id[256];
	char *text = hb_procfs__read(p->pid, "cgroup", 65536, NULL, NULL);

	hb_procfs__cgroup(text ? text : "", path, sizeof(path));
	hb_procfs__container(path, id, sizeof(id));
	p->cgroup = strdup(text ? path : "");
	p->container = strdup(id);
	free(text);
}

static int read_is_32bit(u32 pid)
{
	unsigned char h[20];
	char path[64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/exe", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0; /* not allowed, or a kernel thread: decided elsewhere */
	n = read(fd, h, sizeof(h));
	close(fd);
	if (n != sizeof(h) || memcmp(h, ELFMAG, SELFMAG) != 0)
		return 0;
	return h[EI_CLASS] != ELFCLASS64 || (h[18] | h[19] << 8) != OUR_MACHINE;
}

static void free_maps(struct hb_mapping *m, u32 n)
{
	for (u32 i = 0; i < n; i++)
		free(m[i].path);
	free(m);
}

static int parse_maps(char *text, struct hb_buf *out)
{
	char *next;

	for (char *line = text; line && *line; line = next) {
		struct hb_mapping m;

		next = strchr(line, '\n');
		if (next)
			*next++ = 0;
		if (!hb_procfs__maps_line(line, &m))
			continue;
		hb_buf__add(out, &m, sizeof(m));
		if (!m.path || out->oom)
			return -ENOMEM;
	}
	return 0;
}

int hb_process__reload_maps(struct hb_process *p)
{
	struct hb_buf b = {0};
	int err;
	char *text = hb_procfs__read(p->pid, "maps", MAPS_MAX, NULL, &err);

	if (!text)
		return err;
	err = parse_maps(text, &b);
	free(text);
	if (err) {
		free_maps((struct hb_mapping *)b.data, (u32)(b.size / sizeof(struct hb_mapping)));
		return err;
	}
	free_maps(p->maps, p->n_maps);
	p->maps = (struct hb_mapping *)b.data;
	p->n_maps = (u32)(b.size / sizeof(struct hb_mapping));
	return 0;
}

static int read_stat(struct hb_process *p)
{
	struct hb_stat st;
	int err;
	char *text = hb_procfs__read(p->pid, "stat", 4096, NULL, &err);
	bool ok = text && hb_procfs__stat(text, &st);

	free(text);
	if (!ok)
		return err ? err : -ESRCH;
	p->ppid = st.ppid;
	p->state = st.state;
	p->kernel = st.flags & PF_KTHREAD;
	p->n_threads = (u32)st.threads;
	p->rss = st.rss_pages * (u64)sysconf(_SC_PAGESIZE);
	p->start_ticks = st.start_ticks;
	p->start = hb_procfs__ticks_to_mono(st.start_ticks);
	return 0;
}

bool hb_process__exited(u32 pid)
{
	struct hb_stat st;
	int err = 0;
	char *text = hb_procfs__read(pid, "stat", 4096, NULL, &err);
	bool known = text && hb_procfs__stat(text, &st);

	free(text);
	if (!known)
		return err == -ENOENT || err == -ESRCH;
	return (st.state == 'Z' || st.state == 'X') && st.threads <= 1;
}

static int read_status(struct hb_process *p)
{
	u64 tgid = p->pid, nspid = p->pid, seccomp = 0, uid = 0, tracer = 0;
	int err;
	char *text = hb_procfs__read(p->pid, "status", 65536, NULL, &err);

	if (!text)
		return err;
	hb_procfs__status(text, "Tgid", false, &tgid);
	hb_procfs__status(text, "NSpid", true, &nspid);
	hb_procfs__status(text, "Seccomp", false, &seccomp);
	hb_procfs__status(text, "Uid", false, &uid);
	hb_procfs__status(text, "TracerPid", false, &tracer);
	free(text);
	p->nspid = (u32)nspid;
	p->seccomp = (int)seccomp;
	p->uid = (uid_t)uid;
	p->tracer = (u32)tracer;
	return tgid == p->pid ? 0 : -ESRCH; /* a thread has a folder in /proc too */
}

struct hb_process *hb_process__peek(u32 pid)
{
	struct hb_process *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->pid = pid;
	if (read_stat(p) || read_status(p)) {
		hb_process__free(p);
		return NULL;
	}
	read_comm(pid, "comm", p->comm);
	p->exe = read_exe(pid);
	p->cmdline = read_cmdline(pid);
	read_cgroup(p);
	p->is_32bit = read_is_32bit(pid);
	p->denied = hb_process__reload_maps(p);
	if (!p->exe || !p->cmdline || !p->cgroup || !p->container || p->denied == -ESRCH ||
	    p->denied == -ENOMEM) {
		hb_process__free(p);
		return NULL;
	}
	return p;
}

/* By our own status: capabilities(7) without another library. */
static bool may_ptrace(void)
{
	unsigned long long caps = 0;
	char *text = hb_procfs__read((u32)getpid(), "status", 65536, NULL, NULL);
	const char *line = text ? strstr(text, "\nCapEff:") : NULL;

	if (line)
		caps = strtoull(line + 8, NULL, 16);
	free(text);
	return caps >> CAP_SYS_PTRACE & 1;
}

const char *hb_process__denied_remedy(void)
{
	return may_ptrace()
		   ? "it is protected even from CAP_SYS_PTRACE, by a security module or its user namespace"
		   : "run as root, or with CAP_SYS_PTRACE";
}

static bool out_of_fds(void)
{
	int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return errno == EMFILE || errno == ENFILE;
	close(fd);
	return false;
}

static int refuse(const struct hb_process *p, u32 pid, struct hb_error *e)
{
	u32 tgid = p ? 0 : hb_thread__pid(pid);

	if (!p && out_of_fds())
		return hb_error__set(e, HB_EXIT_FAILED, -EMFILE,
				     "process %u cannot be read: out of file descriptors; raise `ulimit -n`",
				     pid);
	if (tgid && tgid != pid)
		return hb_error__set(e, HB_EXIT_TARGET, -ESRCH,
				     "%u is a thread of process %u; name the process", pid, tgid);
	if (!p)
		return hb_error__set(e, HB_EXIT_TARGET, -ESRCH, "there is no process %u (any more)", pid);
	return hb_error__set(e, may_ptrace() ? HB_EXIT_TARGET : HB_EXIT_KERNEL, p->denied,
			     "process %u (%s) may not be inspected (%s): %s", pid, p->comm,
			     strerror(-p->denied), hb_process__denied_remedy());
}

struct hb_process *hb_process__read(u32 pid, struct hb_error *e)
{
	struct hb_process *p = hb_process__peek(pid);

	if (p && !p->denied)
		return p;
	refuse(p, pid, e);
	hb_process__free(p);
	return NULL;
}

void hb_process__free(struct hb_process *p)
{
	if (!p)
		return;
	free_maps(p->maps, p->n_maps);
	free(p->exe);
	free(p->cmdline);
	free(p->cgroup);
	free(p->container);
	free(p);
}

/* ---- lists of numbers in /proc ---- */

static int by_value(const void *a, const void *b)
{
	u32 x = *(const u32 *)a, y = *(const u32 *)b;

	return x < y ? -1 : x > y;
}

static u32 *numbers_in(const char *folder, u32 *n)
{
	DIR *d = opendir(folder);
	struct hb_buf b = {0};
	struct dirent *ent;
	u32 id;

	*n = 0;
	if (!d || !hb_buf__room(&b, sizeof(id))) {
		if (d)
			closedir(d);
		return NULL;
	}
	while ((ent = readdir(d)))
		if (hb_procfs__u32(ent->d_name, &id))
			hb_buf__add(&b, &id, sizeof(id));
	closedir(d);
	if (b.oom) {
		hb_buf__free(&b);
		return NULL;
	}
	*n = (u32)(b.size / sizeof(id));
	qsort(b.data, *n, sizeof(id), by_value);
	return (u32 *)b.data;
}

u32 *hb_process__all(u32 *n)
{
	return numbers_in("/proc", n);
}

u32 *hb_process__threads(u32 pid, u32 *n)
{
	char folder[64];
	u32 *ids;

	snprintf(folder, sizeof(folder), "/proc/%u/task", pid);
	ids = numbers_in(folder, n);
	if (ids && !*n) { /* opened, then the process went */
		free(ids);
		return NULL;
	}
	return ids;
}

int hb_thread__read(u32 pid, u32 tid, u32 *nstid, char comm[16])
{
	char name[64];
	u64 id = tid;
	int err;
	char *text;

	snprintf(name, sizeof(name), "task/%u/status", tid);
	text = hb_procfs__read(pid, name, 65536, NULL, &err);
	if (!text)
		return err;
	hb_procfs__status(text, "NSpid", true, &id);
	free(text);
	*nstid = (u32)id;
	snprintf(name, sizeof(name), "task/%u/comm", tid);
	read_comm(pid, name, comm);
	return 0;
}

u32 hb_thread__pid(u32 tid)
{
	u64 pid = 0;
	char *text = hb_procfs__read(tid, "status", 65536, NULL, NULL);

	if (text)
		hb_procfs__status(text, "Tgid", false, &pid);
	free(text);
	return (u32)pid;
}

int hb_target__need_proc(struct hb_error *e)
{
	if (access("/proc/self/stat", R_OK) == 0)
		return 0;
	return hb_error__set(e, HB_EXIT_KERNEL, -ENOENT,
			     "no proc file system is mounted on /proc here: mount -t proc proc /proc");
}

bool hb_target__initial_pidns(void)
{
	struct stat st;

	return stat("/proc/self/ns/pid", &st) == 0 && st.st_ino == PIDNS_INIT_INO;
}
