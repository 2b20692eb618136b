/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a file descriptor of another process is: the link in /proc/PID/fd, and for sockets the tables of the
 * target's own network namespace. */
#include "capture/target/procfs.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/map.h"
#include "base/text.h"

#define TABLE_MAX (32u << 20)
#define MAX_NETS  64
/* A socket that is not in the tables may be younger than they are: read again. A machine with 100,000 sockets
 * takes long for that, so reading may take one part in READ_SHARE of the time. */
#define READ_SHARE 20

struct net { /* one network namespace */
	u64 ino, read_at, took;
	struct hb_map *names; /* socket inode -> char * */
};

struct hb_fds {
	struct net nets[MAX_NETS];
	u32 n_nets;
};

static void forget(struct net *n)
{
	u64 ino, name;

	for (size_t pos = 0; n->names && hb_map__next(n->names, &pos, &ino, &name);)
		free((char *)(uintptr_t)name);
	hb_map__free(n->names);
	n->names = NULL;
}

/* "0100007F:0050" (IPv4) or 32 digits (IPv6), each 4 bytes in host order -> "127.0.0.1:80". */
static void address(const char *hex, char *buf, size_t size)
{
	size_t digits = strcspn(hex, ":"), words = digits / 8;
	char text[INET6_ADDRSTRLEN] = "?";
	u32 raw[4] = {0};
	unsigned port = 0;

	buf[0] = 0;
	if ((words != 1 && words != 4) || digits % 8)
		return;
	for (size_t i = 0; i < words; i++)
		if (sscanf(hex + i * 8, "%8" SCNx32, &raw[i]) != 1)
			return;
	if (sscanf(hex + digits, ":%x", &port) != 1)
		return;
	inet_ntop(words == 1 ? AF_INET : AF_INET6, raw, text, sizeof(text));
	snprintf(buf, size, words == 1 ? "%s:%u" : "[%s]:%u", text, port);
}

/* State 0A is TCP_LISTEN; an unconnected UDP socket has port 0 at the far end. */
static bool inet_line(const char *line, const char *kind, u64 *ino, char *buf, size_t size)
{
	char local[64], remote[64], from[80], to[80];
	unsigned state;

	if (sscanf(line, " %*u: %63s %63s %x %*s %*s %*s %*u %*u %" SCNu64, local, remote, &state, ino) != 4)
		return false;
	address(local, from, sizeof(from));
	address(remote, to, sizeof(to));
	if (state == 0x0a)
		snprintf(buf, size, "%s listening on %s", kind, from);
	else if (strcmp(strrchr(remote, ':') ? strrchr(remote, ':') : "", ":0000") == 0)
		snprintf(buf, size, "%s %s", kind, from);
	else
		snprintf(buf, size, "%s %s -> %s", kind, from, to);
	return true;
}

/* "ffff...: refs protocol flags type state inode path". A socket without a name of its own stays "unix". */
static bool unix_line(const char *line, const char *kind, u64 *ino, char *buf, size_t size)
{
	int at = 0;

	if (sscanf(line, "%*[^:]: %*s %*s %*s %*s %*s %" SCNu64 "%n", ino, &at) != 1)
		return false;
	snprintf(buf, size, "%s%.200s", kind, line + at);
	return true;
}

struct table {
	const char *file, *kind;
	bool (*line)(const char *line, const char *kind, u64 *ino, char *buf, size_t size);
};

static const struct table tables[] = {
    {"net/tcp", "tcp", inet_line},  {"net/tcp6", "tcp", inet_line},  {"net/udp", "udp", inet_line},
    {"net/udp6", "udp", inet_line}, {"net/unix", "unix", unix_line},
};

static void learn_line(struct net *n, const struct table *t, const char *line)
{
	char name[256];
	u64 ino = 0, *slot;
	bool fresh;

	if (!t->line(line, t->kind, &ino, name, sizeof(name)) || !ino)
		return;
	slot = hb_map__slot(n->names, ino, &fresh);
	if (slot && fresh)
		*slot = (uintptr_t)strdup(hb_text__clean(name));
}

static void learn_table(struct net *n, u32 pid, const struct table *t)
{
	char *text = hb_procfs__read(pid, t->file, TABLE_MAX, NULL, NULL), *save = NULL, *line;

	line = text ? strtok_r(text, "\n", &save) : NULL;
	while (line && (line = strtok_r(NULL, "\n", &save))) /* the first is a heading */
		learn_line(n, t, line);
	free(text);
}

static void learn(struct net *n, u32 pid)
{
	u64 begin = hb_clock__now();

	forget(n);
	n->names = hb_map__new();
	for (size_t i = 0; n->names && i < sizeof(tables) / sizeof(*tables); i++)
		learn_table(n, pid, &tables[i]);
	n->read_at = hb_clock__now();
	n->took = n->read_at - begin;
}

static struct net *net_of(struct hb_fds *f, u32 pid)
{
	char path[64];
	struct stat st;
	struct net *n;

	snprintf(path, sizeof(path), "/proc/%u/ns/net", pid);
	if (stat(path, &st))
		return NULL;
	for (u32 i = 0; i < f->n_nets; i++)
		if (f->nets[i].ino == st.st_ino)
			return &f->nets[i];
	n = &f->nets[f->n_nets < MAX_NETS ? f->n_nets++ : MAX_NETS - 1];
	forget(n);
	n->ino = st.st_ino;
	n->read_at = 0;
	return n;
}

static const char *socket_words(struct hb_fds *f, u32 pid, u64 ino)
{
	struct net *n = net_of(f, pid);
	u64 name = 0;

	if (!n)
		return NULL;
	if (!n->names ||
	    (!hb_map__get(n->names, ino, &name) && hb_clock__now() - n->read_at > READ_SHARE * n->took))
		learn(n, pid);
	if (n->names)
		hb_map__get(n->names, ino, &name);
	return (const char *)(uintptr_t)name;
}

struct hb_fds *hb_fds__new(void)
{
	return calloc(1, sizeof(struct hb_fds));
}

void hb_fds__free(struct hb_fds *f)
{
	if (!f)
		return;
	for (u32 i = 0; i < f->n_nets; i++)
		forget(&f->nets[i]);
	free(f);
}

int hb_fds__describe(struct hb_fds *f, u32 pid, int fd, char *buf, size_t size)
{
	char name[32], link[4096];
	const char *words = NULL;
	u64 ino;
	int rc;

	snprintf(name, sizeof(name), "fd/%d", fd);
	buf[0] = 0;
	rc = hb_procfs__link(pid, name, link, sizeof(link));
	if (rc)
		return rc;
	if (sscanf(link, "socket:[%" SCNu64 "]", &ino) == 1)
		words = socket_words(f, pid, ino);
	snprintf(buf, size, "%s%s%s", link, words ? " " : "", words ? words : "");
	hb_text__clean(buf);
	return 0;
}

int hb_fd__describe(u32 pid, int fd, char *buf, size_t size)
{
	struct hb_fds f = {0};
	int rc = hb_fds__describe(&f, pid, fd, buf, size);

	for (u32 i = 0; i < f.n_nets; i++)
		forget(&f.nets[i]);
	return rc;
}
