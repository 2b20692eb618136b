/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "capture/target/procfs.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/text.h"

static int read_all(int fd, struct hb_buf *b, size_t max)
{
	for (;;) {
		char *p = hb_buf__room(b, 4097); /* one more for the final NUL */
		ssize_t n;

		if (!p)
			return -ENOMEM;
		n = read(fd, p, 4096);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		b->size += (size_t)n;
		if (n == 0 || b->size >= max)
			break;
	}
	if (b->size > max)
		b->size = max;
	b->data[b->size] = 0;
	return 0;
}

char *hb_procfs__read(u32 pid, const char *name, size_t max, size_t *size, int *err)
{
	struct hb_buf b = {0};
	char path[256];
	int fd, rc;

	snprintf(path, sizeof(path), "/proc/%u/%s", pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	rc = fd < 0 ? -errno : read_all(fd, &b, max);
	if (fd >= 0)
		close(fd);
	if (rc == -ENOENT) /* the folder goes with the process */
		rc = -ESRCH;
	if (err)
		*err = rc;
	if (rc) {
		hb_buf__free(&b);
		return NULL;
	}
	if (size)
		*size = b.size;
	return b.data;
}

int hb_procfs__link(u32 pid, const char *name, char *buf, size_t size)
{
	char path[256];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%u/%s", pid, name);
	n = readlink(path, buf, size - 1);
	buf[n < 0 ? 0 : n] = 0;
	return n < 0 ? -errno : 0;
}

/* Field `n` (from 3, as proc(5) counts) of what follows the name. */
static bool stat_field(const char *rest, int n, u64 *out)
{
	char *end;

	for (int i = 3; i < n; i++) {
		rest = strchr(rest, ' ');
		if (!rest)
			return false;
		rest++;
	}
	errno = 0;
	*out = strtoull(rest, &end, 10);
	return end != rest && errno == 0;
}

bool hb_procfs__stat(const char *text, struct hb_stat *out)
{
	const char *rest = strrchr(text, ')'); /* the name itself may hold ") R 1 1" */
	u64 ppid;

	memset(out, 0, sizeof(*out));
	if (!rest || rest[1] != ' ' || !rest[2])
		return false;
	rest += 2;
	out->state = *rest;
	if (!stat_field(rest, 4, &ppid) || ppid > UINT32_MAX)
		return false;
	out->ppid = (u32)ppid;
	return stat_field(rest, 9, &out->flags) && stat_field(rest, 20, &out->threads) &&
	       stat_field(rest, 22, &out->start_ticks) && stat_field(rest, 24, &out->rss_pages);
}

bool hb_procfs__status(const char *text, const char *key, bool last, u64 *out)
{
	size_t len = strlen(key);
	const char *line = text, *p;
	char *end;

	/* "Name:" comes first and the kernel escapes newlines in it, so a line start is a line start. */
	while (line && !(strncmp(line, key, len) == 0 && line[len] == ':')) {
		line = strchr(line, '\n');
		line = line ? line + 1 : NULL;
	}
	if (!line)
		return false;
	p = line + len + 1;
	for (bool found = false;; found = true) {
		p += strspn(p, " \t");
		if (*p < '0' || *p > '9')
			return found;
		*out = strtoull(p, &end, 10);
		p = end;
		if (!last)
			return true;
	}
}

/* Undoes the \ooo escapes of the kernel's seq_path, in place. */
static void unescape(char *s)
{
	char *o = s;

	while (*s) {
		if (s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && s[2] >= '0' && s[2] <= '7' && s[3] >= '0' &&
		    s[3] <= '7') {
			*o++ = (char)((s[1] - '0') << 6 | (s[2] - '0') << 3 | (s[3] - '0'));
			s += 4;
		} else {
			*o++ = *s++;
		}
	}
	*o = 0;
}

/* A path that ends in " (deleted)" because a file is really named so, is taken for a deleted one: the kernel
 * does not tell them apart either. */
static bool strip_deleted(char *path)
{
	static const char mark[] = " (deleted)";
	size_t n = strlen(path), m = sizeof(mark) - 1;

	if (n <= m || strcmp(path + n - m, mark) != 0)
		return false;
	path[n - m] = 0;
	return true;
}

bool hb_procfs__maps_line(const char *line, struct hb_mapping *out)
{
	unsigned major, minor;
	char perm[5];
	int at = 0;

	memset(out, 0, sizeof(*out));
	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64 " %n", &out->start,
		   &out->end, perm, &out->pgoff, &major, &minor, &out->ino, &at) < 7 ||
	    !at)
		return false;
	if (strlen(perm) != 4 || perm[2] != 'x' || out->ino == 0 || line[at] != '/' || out->end <= out->start)
		return false;
	out->dev = major << 20 | (minor & 0xfffff);
	out->path = strdup(line + at);
	if (!out->path)
		return true;
	unescape(out->path);
	out->deleted = strip_deleted(out->path);
	hb_text__clean(out->path);
	return true;
}

static bool hex_run(const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!strchr("0123456789abcdef", p[i]) || !p[i])
			return false;
	return !p[n] || !strchr("0123456789abcdef", p[n]);
}

/* Managers that name their cgroups by words: lxc.payload.NAME, lxc/NAME, machine-NAME.scope. */
static void named_container(const char *cgroup, char *buf, size_t size)
{
	static const char *const marks[] = {"/lxc.payload.", "/lxc/", "/machine.slice/machine-"};

	for (size_t i = 0; i < sizeof(marks) / sizeof(*marks); i++) {
		const char *p = strstr(cgroup, marks[i]);
		size_t n;

		if (!p)
			continue;
		p += strlen(marks[i]);
		n = strcspn(p, "/");
		if (n > 6 && strncmp(p + n - 6, ".scope", 6) == 0)
			n -= 6;
		snprintf(buf, size, "%.*s", (int)(n < 255 ? n : 255), p);
		return;
	}
}

void hb_procfs__container(const char *cgroup, char *buf, size_t size)
{
	const char *found = NULL;

	/* docker-ID.scope, cri-containerd-ID.scope, crio-ID, libpod-ID, /docker/ID, /kubepods/.../ID: 64 hex
	 * digits with something else before them. The innermost one counts (docker in docker). */
	for (const char *p = cgroup; *p; p++)
		if ((p == cgroup || p[-1] == '/' || p[-1] == '-' || p[-1] == ':') && hex_run(p, 64))
			found = p;
	buf[0] = 0;
	if (found)
		snprintf(buf, size, "%.64s", found);
	else
		named_container(cgroup, buf, size);
	hb_text__clean(buf);
}

void hb_procfs__cgroup(const char *text, char *buf, size_t size)
{
	const char *best = "/";
	size_t best_len = 1;
	bool best_v2 = false;

	for (const char *line = text; line && *line;
	     line = strchr(line, '\n'), line = line ? line + 1 : NULL) {
		const char *colon = strchr(line, ':'), *path = colon ? strchr(colon + 1, ':') : NULL;
		bool v2 = line[0] == '0' && line[1] == ':';
		size_t len;

		if (!path)
			break;
		path++;
		len = strcspn(path, "\n");
		if (len <= 1 || best_v2 || (!v2 && len <= best_len))
			continue;
		best = path;
		best_len = len;
		best_v2 = v2;
	}
	snprintf(buf, size, "%.*s", (int)best_len, best);
	hb_text__clean(buf);
}

u64 hb_procfs__ticks_to_mono(u64 ticks)
{
	u64 hz = (u64)sysconf(_SC_CLK_TCK);
	u64 boot = ticks / hz * 1000000000ULL + ticks % hz * 1000000000ULL / hz;
	u64 now = hb_clock__now(); /* first: boot time never falls behind it */
	u64 asleep = hb_clock__read(CLOCK_BOOTTIME) - now;

	return boot > asleep ? boot - asleep : 0;
}

bool hb_procfs__u32(const char *s, u32 *out)
{
	unsigned long long v = 0;

	if (!*s)
		return false;
	for (; *s; s++) {
		if (*s < '0' || *s > '9')
			return false;
		v = v * 10 + (unsigned)(*s - '0');
		if (v > UINT32_MAX)
			return false;
	}
	*out = (u32)v;
	return true;
}
