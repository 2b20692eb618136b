/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Opening what another process has mapped, without entering its namespaces. */
#include "capture/target/procfs.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* The line of our own maps that starts at `addr`. */
static bool own_mapping(const void *addr, struct hb_mapping *out)
{
	char *text = hb_procfs__read((u32)getpid(), "maps", 16u << 20, NULL, NULL), *next;
	bool found = false;

	for (char *line = text; line && *line && !found; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = 0;
		if (hb_procfs__maps_line(line, out)) {
			found = out->start == (uintptr_t)addr;
			free(out->path);
			out->path = NULL;
		}
	}
	free(text);
	return found;
}

/* Device and inode as /proc/PID/maps prints them, seen by mapping the file ourselves: on btrfs and on
 * overlayfs of older kernels stat(2) tells other numbers. Where an executable mapping is not allowed (noexec)
 * the answer is no. */
static bool same_when_mapped(int fd, const struct hb_mapping *m)
{
	struct hb_mapping own;
	void *p = mmap(NULL, 1, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	bool same;

	if (p == MAP_FAILED)
		return false;
	same = own_mapping(p, &own) && own.ino == m->ino && own.dev == m->dev;
	munmap(p, 1);
	return same;
}

static int is_same_file(const char *path, const struct hb_mapping *m)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO put in its place must not hold us */
	struct stat st;
	int rc = 0;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st))
		rc = -errno;
	else if (!S_ISREG(st.st_mode))
		rc = -ESTALE;
	else if (st.st_ino != m->ino || (major(st.st_dev) << 20 | (minor(st.st_dev) & 0xfffff)) != m->dev)
		rc = same_when_mapped(fd, m) ? 0 : -ESTALE;
	close(fd);
	return rc;
}

int hb_process__open_path(const struct hb_process *p, const struct hb_mapping *m, char *buf, size_t size)
{
	int fd, rc, n;

	/* Reaches deleted and overmounted files too; following it needs CAP_SYS_ADMIN or
	 * CAP_CHECKPOINT_RESTORE. */
	n = snprintf(buf, size, "/proc/%u/map_files/%" PRIx64 "-%" PRIx64, p->pid, m->start, m->end);
	if (n < 0 || (size_t)n >= size)
		return -ENAMETOOLONG;
	fd = open(buf, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		close(fd);
		return 0;
	}
	n = snprintf(buf, size, "/proc/%u/root%s", p->pid, m->path);
	if (n < 0 || (size_t)n >= size)
		return -ENAMETOOLONG;
	rc = is_same_file(buf, m);
	if (rc == 0)
		return 0;
	n = snprintf(buf, size, "%s", m->path);
	if (n < 0 || (size_t)n >= size)
		return -ENAMETOOLONG;
	return is_same_file(buf, m) == 0 ? 0 : rc;
}
