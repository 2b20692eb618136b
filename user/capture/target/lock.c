/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One tool per target, held by things the kernel takes away when we die:
 *
 *   map     A BPF hash map named "hb_lock" with our pids in it. Every tool on the machine can find it by
 * walking map ids, whatever mount, network or user namespace either side lives in. Walking needs
 * CAP_SYS_ADMIN. Its keys are pids of the initial namespace, so a tool that sees other pids does not use it.
 *   socket  An abstract Unix socket per pid for tools that may not walk: seen by tools in the same network
 *           namespace. Descriptors are dear, so only the first ones of a window get one.
 *
 * Not covered: a tool without CAP_SYS_ADMIN in another network namespace, or in another pid namespace.
 */
#include "capture/target/target.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "schema/wire.h"

#define LOCK_NAME   "hb_lock"
#define MAX_SOCKETS 64
#define TRIES	    4

struct owner { /* value of the map */
	u32 pid, reserved;
};

struct hb_target_lock {
	int map;
	int sockets[MAX_SOCKETS];
	u32 n_sockets;
};

/* ---- the map ---- */

static bool is_lock_map(int fd)
{
	struct bpf_map_info info = {0};
	u32 size = sizeof(info);

	return bpf_obj_get_info_by_fd(fd, &info, &size) == 0 && strcmp(info.name, LOCK_NAME) == 0 &&
	       info.type == BPF_MAP_TYPE_HASH && info.key_size == sizeof(u32) &&
	       info.value_size == sizeof(struct owner);
}

/* First of our pids that the map `fd` holds: its owner, else 0. */
static u32 held_in(int fd, const u32 *pids, u32 n, u32 *which)
{
	struct owner o;

	for (u32 i = 0; i < n; i++) {
		if (bpf_map_lookup_elem(fd, &pids[i], &o))
			continue;
		*which = pids[i];
		return o.pid ? o.pid : 1; /* 0 would read as free */
	}
	return 0;
}

static u32 map_id(int fd)
{
	struct bpf_map_info info = {0};
	u32 size = sizeof(info);

	return bpf_obj_get_info_by_fd(fd, &info, &size) ? 0 : info.id;
}

/* The tool whose lock map holds one of the pids, 0 when none does or when we may not look. */
static u32 find_owner(int own, const u32 *pids, u32 n, u32 *which)
{
	u32 id = 0, owner = 0, own_id = map_id(own);

	while (!owner && bpf_map_get_next_id(id, &id) == 0) {
		int fd = id == own_id ? -1 : bpf_map_get_fd_by_id(id);

		if (fd < 0) /* ours, gone meanwhile, or not allowed */
			continue;
		if (is_lock_map(fd))
			owner = held_in(fd, pids, n, which);
		close(fd);
	}
	return owner;
}

static int put_in_map(int map, const u32 *pids, u32 n)
{
	struct owner o = {.pid = (u32)getpid()};

	for (u32 i = 0; i < n; i++)
		if (bpf_map_update_elem(map, &pids[i], &o, BPF_ANY))
			return -errno;
	return 0;
}

/* Enter first, look afterwards: of two tools that start together at least one sees the other, and giving way
 * is always safe. When both gave way, they try again after waits that differ. */
static u32 lock_in_map(struct hb_target_lock *l, const u32 *pids, u32 n, u32 *which)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_NO_PREALLOC);
	u32 owner = 0;

	for (int i = 0; i < TRIES; i++) {
		struct timespec wait = {.tv_nsec = 2000000 + (getpid() % 16) * 3000000L};

		l->map = bpf_map_create(BPF_MAP_TYPE_HASH, LOCK_NAME, sizeof(u32), sizeof(struct owner),
					HB_MAX_TARGETS, &opts);
		if (l->map < 0 || put_in_map(l->map, pids, n))
			return 0; /* not allowed or too many: attaching will say so; the sockets remain */
		owner = find_owner(l->map, pids, n, which);
		if (!owner)
			return 0;
		close(l->map);
		l->map = -1;
		nanosleep(&wait, NULL);
	}
	return owner;
}

/* ---- the sockets ---- */

static socklen_t socket_name(struct sockaddr_un *a, u32 pid)
{
	struct stat st = {0};
	int n;

	memset(a, 0, sizeof(*a));
	a->sun_family = AF_UNIX;
	stat("/proc/self/ns/pid", &st); /* a pid means something only together with its namespace */
	n = snprintf(a->sun_path + 1, sizeof(a->sun_path) - 1, "herschel-bpf/%llu/%u",
		     (unsigned long long)st.st_ino, pid);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

/* Who listens on the socket of `pid`. */
static u32 socket_owner(u32 pid)
{
	struct sockaddr_un a;
	struct ucred cred = {0};
	socklen_t len = socket_name(&a, pid), size = sizeof(cred);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return 1;
	if (connect(fd, (struct sockaddr *)&a, len) == 0)
		getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &size);
	close(fd);
	return cred.pid > 0 ? (u32)cred.pid : 1;
}

/* 0: taken, or no descriptor to spare; else the owner. */
static u32 lock_by_socket(struct hb_target_lock *l, u32 pid)
{
	struct sockaddr_un a;
	socklen_t len = socket_name(&a, pid);
	int fd =
	    l->n_sockets < MAX_SOCKETS ? socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0) : -1;

	if (fd < 0)
		return 0;
	if (bind(fd, (struct sockaddr *)&a, len)) {
		bool taken = errno == EADDRINUSE;

		close(fd);
		return taken ? socket_owner(pid) : 0;
	}
	listen(fd, 8);
	l->sockets[l->n_sockets++] = fd;
	return 0;
}

/* ---- both ---- */

static u32 lock_all(struct hb_target_lock *l, const u32 *pids, u32 n, u32 *which)
{
	u32 owner = hb_target__initial_pidns() ? lock_in_map(l, pids, n, which) : 0;

	for (u32 i = 0; i < n && !owner; i++) {
		owner = lock_by_socket(l, pids[i]);
		*which = pids[i];
	}
	return owner;
}

struct hb_target_lock *hb_target_lock__take(const u32 *pids, u32 n, struct hb_error *e)
{
	struct hb_target_lock *l = calloc(1, sizeof(*l));
	u32 which = 0, owner;

	if (!l) {
		hb_error__nomem(e, "the target lock");
		return NULL;
	}
	l->map = -1;
	owner = lock_all(l, pids, n, &which);
	if (!owner)
		return l;
	hb_target_lock__release(l);
	hb_error__set(e, HB_EXIT_TARGET, -EBUSY,
		      "process %u is being traced by another herschel-bpf (process %u); wait until it has "
		      "ended, or end it",
		      which, owner);
	return NULL;
}

int hb_target_lock__add(struct hb_target_lock *l, u32 pid)
{
	u32 which, owner = 0;

	if (l->map >= 0) {
		owner = find_owner(l->map, &pid, 1, &which);
		if (!owner && put_in_map(l->map, &pid, 1))
			return -errno;
	}
	if (!owner)
		owner = lock_by_socket(l, pid);
	return owner ? -EBUSY : 0;
}

void hb_target_lock__release(struct hb_target_lock *l)
{
	if (!l)
		return;
	for (u32 i = 0; i < l->n_sockets; i++)
		close(l->sockets[i]);
	if (l->map >= 0)
		close(l->map);
	free(l);
}
