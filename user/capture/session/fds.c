/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * BPF records a descriptor's number and inode; what path or peer that is, /proc tells, and only while it is
 * open. So the pump notes each new (process, descriptor, inode) and the control thread looks at it soon
 * after.
 */
#include "capture/session/impl.h"

#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

/* Calls whose first argument is a descriptor. By name, so that every architecture's numbers fit. */
static const char *const fd_calls[] = {
    "read",	   "write",	 "readv",   "writev",	  "pread64", "pwrite64",     "preadv",
    "pwritev",	   "recvfrom",	 "sendto",  "recvmsg",	  "sendmsg", "recvmmsg",     "sendmmsg",
    "accept",	   "accept4",	 "connect", "ioctl",	  "fsync",   "fdatasync",    "epoll_wait",
    "epoll_pwait", "epoll_ctl",	 "close",   "getdents64", "flock",   "ftruncate",    "fallocate",
    "sendfile",	   "splice",	 "fstat",   "lseek",	  "fcntl",   "epoll_pwait2", "shutdown",
    "getsockopt",  "setsockopt", "bind",    "listen",
};

struct hb_fd_watch {
	bool takes_fd[1024]; /* by system call number */
	struct hb_map *seen; /* hash of (pid, fd, chan) */
	struct hb_fds *names;
	pthread_mutex_t lock;
	struct hb_fd_row *todo;
	u32 n_todo, cap_todo;
};

struct hb_fd_watch *hb_fd_watch__new(void)
{
	struct hb_fd_watch *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	pthread_mutex_init(&f->lock, NULL);
	f->seen = hb_map__new();
	f->names = hb_fds__new();
	if (!f->seen || !f->names) {
		hb_fd_watch__free(f);
		return NULL;
	}
	for (unsigned i = 0; i < sizeof(fd_calls) / sizeof(*fd_calls); i++) {
		int nr = hb_sysno__id(fd_calls[i]);

		if (nr >= 0 && nr < 1024)
			f->takes_fd[nr] = true;
	}
	return f;
}

void hb_fd_watch__free(struct hb_fd_watch *f)
{
	if (!f)
		return;
	hb_map__free(f->seen);
	hb_fds__free(f->names);
	free(f->todo);
	free(f);
}

static bool room(struct hb_fd_watch *f)
{
	u32 cap = f->cap_todo ? f->cap_todo * 2 : 64;
	struct hb_fd_row *todo;

	if (f->n_todo < f->cap_todo)
		return true;
	todo = realloc(f->todo, cap * sizeof(*todo));
	if (!todo)
		return false;
	f->todo = todo;
	f->cap_todo = cap;
	return true;
}

static void note(struct hb_session *s, u32 pid, u16 sysno, u64 a0, u64 chan)
{
	struct hb_fd_watch *f = s->fd_watch;
	bool fresh;

	if (sysno >= 1024 || !f->takes_fd[sysno] || a0 > 0xfffff)
		return;
	if (!hb_map__slot(f->seen, hb_hash64((u64)pid << 32 | a0) ^ hb_hash64(~chan), &fresh) || !fresh)
		return;
	pthread_mutex_lock(&f->lock);
	if (room(f))
		f->todo[f->n_todo++] = (struct hb_fd_row){.chan = chan, .pid = pid, .fd = (u32)a0};
	pthread_mutex_unlock(&f->lock);
	eventfd_write(s->queue_fd, 1);
}

static void on_offcpu(const struct hb_wire *w, const void *payload, void *arg)
{
	const struct hb_rec_offcpu *r = payload;

	note(arg, w->pid, r->sysno, r->a0, r->chan);
	if (r->waker)
		note(arg, r->waker_pid, r->wsys, r->wa0, 0);
}

static void on_syscall(const struct hb_wire *w, const void *payload, void *arg)
{
	const struct hb_rec_syscall *r = payload;

	note(arg, w->pid, r->sysno, r->a0, 0);
}

int hb_fd_watch__subscribe(struct hb_session *s)
{
	int err = hb_collect__subscribe(s->collect, HB_TYPE_offcpu, on_offcpu, s);

	return err ? err : hb_collect__subscribe(s->collect, HB_TYPE_syscall, on_syscall, s);
}

static bool next(struct hb_fd_watch *f, u32 *pos, struct hb_fd_row *row)
{
	bool got;

	pthread_mutex_lock(&f->lock);
	got = *pos < f->n_todo;
	if (got)
		*row = f->todo[(*pos)++];
	else
		f->n_todo = 0;
	pthread_mutex_unlock(&f->lock);
	return got;
}

void hb_fd_watch__handle(struct hb_session *s)
{
	struct hb_fd_row row;
	char text[512];
	u32 pos = 0;

	while (next(s->fd_watch, &pos, &row)) {
		if (hb_fds__describe(s->fd_watch->names, row.pid, (int)row.fd, text, sizeof(text)) ||
		    !text[0])
			continue; /* closed again: the number is all there is */
		row.text = hb_window_writer__string(s->writer, text);
		hb_window_writer__fd(s->writer, &row);
	}
}
