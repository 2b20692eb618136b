// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* bpf/sched.bpf.c on real sleeps: a target sleeps in a known call on a known thing, a process outside wakes
 * it. */
#include "sched_rounds.h"

#include <arpa/inet.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>

/* ---- scenes: one process sleeps, another wakes it ---- */

struct scene {
	const char *name;
	void (*prepare)(void);
	void (*sleep)(_Atomic u64 *slot);
	void (*wake)(_Atomic u64 *slot);
	long sysno, wsys;
	u8 kind, wctx;
};

static int fds[2]; /* 0: the sleeper's, 1: the waker's */
static int extra;  /* third descriptor: epoll, listening socket */
static const struct scene *scene;

static u64 inode_of(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return st.st_ino;
}

static void make_pipe(void)
{
	assert_int_equal(pipe(fds), 0);
}

static void read_byte(_Atomic u64 *slot)
{
	char b;

	if (read(fds[0], &b, 1) != 1)
		_exit(90);
}

static void write_byte(_Atomic u64 *slot)
{
	if (write(fds[1], "x", 1) != 1)
		_exit(91);
}

static void make_eventfd(void)
{
	fds[0] = fds[1] = eventfd(0, 0);
	assert_true(fds[0] >= 0);
}

static void read_word(_Atomic u64 *slot)
{
	u64 v;

	if (read(fds[0], &v, 8) != 8)
		_exit(90);
}

static void write_word(_Atomic u64 *slot)
{
	u64 v = 1;

	if (write(fds[1], &v, 8) != 8)
		_exit(91);
}

static void make_unix(void)
{
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
}

static void recv_byte(_Atomic u64 *slot)
{
	char b;

	if (recv(fds[0], &b, 1, 0) != 1)
		_exit(90);
}

static void send_byte(_Atomic u64 *slot)
{
	if (send(fds[1], "x", 1, 0) != 1)
		_exit(91);
}

static int listener(int family, struct sockaddr_storage *a, socklen_t *len)
{
	int s = socket(family, SOCK_STREAM, 0);

	memset(a, 0, sizeof(*a));
	a->ss_family = (sa_family_t)family;
	*len = family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
	if (family == AF_INET)
		((struct sockaddr_in *)a)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(bind(s, (void *)a, *len), 0);
	assert_int_equal(listen(s, 8), 0);
	assert_int_equal(getsockname(s, (void *)a, len), 0);
	return s;
}

static void nodelay(int fd)
{
	int one = 1;

	assert_int_equal(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)), 0);
}

static void make_tcp(void)
{
	struct sockaddr_storage a;
	socklen_t len;
	int l = listener(AF_INET, &a, &len);

	fds[1] = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(connect(fds[1], (void *)&a, len), 0);
	fds[0] = accept(l, NULL, NULL);
	assert_true(fds[0] >= 0);
	nodelay(fds[1]);
	close(l);
}

/* The sleeper's socket is an IPv6 one whose addresses are mapped IPv4. */
static void make_tcp_mapped(void)
{
	struct sockaddr_storage a;
	struct sockaddr_in to = {.sin_family = AF_INET};
	socklen_t len;
	int l = listener(AF_INET6, &a, &len);

	to.sin_port = ((struct sockaddr_in6 *)&a)->sin6_port;
	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	fds[1] = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(connect(fds[1], (void *)&to, sizeof(to)), 0);
	fds[0] = accept(l, NULL, NULL);
	assert_true(fds[0] >= 0);
	nodelay(fds[1]);
	close(l);
}

/* Both ends are ::1. */
static void make_tcp6(void)
{
	struct sockaddr_storage a;
	socklen_t len;
	int l = listener(AF_INET6, &a, &len);

	((struct sockaddr_in6 *)&a)->sin6_addr = in6addr_loopback;
	fds[1] = socket(AF_INET6, SOCK_STREAM, 0);
	assert_int_equal(connect(fds[1], (void *)&a, len), 0);
	fds[0] = accept(l, NULL, NULL);
	assert_true(fds[0] >= 0);
	nodelay(fds[1]);
	close(l);
}

static void make_udp(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET};
	socklen_t len = sizeof(a);

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	for (int i = 0; i < 2; i++) {
		fds[i] = socket(AF_INET, SOCK_DGRAM, 0);
		a.sin_port = 0;
		assert_int_equal(bind(fds[i], (void *)&a, sizeof(a)), 0);
	}
	for (int i = 0; i < 2; i++) {
		assert_int_equal(getsockname(fds[1 - i], (void *)&a, &len), 0);
		assert_int_equal(connect(fds[i], (void *)&a, sizeof(a)), 0);
	}
}

static void make_listener(void)
{
	struct sockaddr_storage a;
	socklen_t len;

	fds[0] = extra = listener(AF_INET, &a, &len);
	fds[1] = -1;
}

static void accept_one(_Atomic u64 *slot)
{
	int s = accept(fds[0], NULL, NULL);

	if (s < 0)
		_exit(90);
	close(s);
}

static void connect_one(_Atomic u64 *slot)
{
	struct sockaddr_in a;
	socklen_t len = sizeof(a);
	int s = socket(AF_INET, SOCK_STREAM, 0);

	if (getsockname(extra, (void *)&a, &len) || connect(s, (void *)&a, len))
		_exit(91);
	close(s);
}

static void make_epoll(void)
{
	struct epoll_event ev = {.events = EPOLLIN};

	make_pipe();
	extra = epoll_create1(0);
	assert_int_equal(epoll_ctl(extra, EPOLL_CTL_ADD, fds[0], &ev), 0);
}

static void epoll_byte(_Atomic u64 *slot)
{
	struct epoll_event ev;

	if (epoll_wait(extra, &ev, 1, 20000) != 1)
		_exit(92);
	read_byte(slot);
}

static void poll_byte(_Atomic u64 *slot)
{
	struct pollfd p = {.fd = fds[0], .events = POLLIN};

	if (poll(&p, 1, 20000) != 1)
		_exit(92);
	read_byte(slot);
}

static void make_nothing(void)
{
	fds[0] = fds[1] = -1;
}

/* The word is shared between two processes, at the same address in both since they are forked from one. */
static void futex_sleep(_Atomic u64 *slot)
{
	u32 *word = (u32 *)(void *)&slot[WORD];

	*word = 0;
	syscall(SYS_futex, word, FUTEX_WAIT, 0, NULL, NULL, 0);
}

#define NR_WAITV 449 /* kernel 5.16 */
static void waitv_sleep(_Atomic u64 *slot)
{
	struct {
		u64 val, addr;
		u32 flags, pad;
	} w = {.addr = (u64)&slot[WORD], .flags = 2 /* 32 bits */};

	*(u32 *)(void *)&slot[WORD] = 0;
	syscall(NR_WAITV, &w, 1, 0, NULL, 0);
}

static void futex_wake(_Atomic u64 *slot)
{
	u32 *word = (u32 *)(void *)&slot[WORD];

	syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static const struct scene scenes[] = {
    {"pipe", make_pipe, read_byte, write_byte, SYS_read, SYS_write, HB_CHAN_PIPE, HB_WCTX_TASK},
    {"eventfd", make_eventfd, read_word, write_word, SYS_read, SYS_write, HB_CHAN_EVENTFD, HB_WCTX_TASK},
    {"unix", make_unix, recv_byte, send_byte, SYS_recvfrom, SYS_sendto, HB_CHAN_UNIX, HB_WCTX_TASK},
    {"tcp", make_tcp, recv_byte, send_byte, SYS_recvfrom, SYS_sendto, HB_CHAN_TCP, HB_WCTX_OWN_SEND},
    {"tcp write", make_tcp, read_byte, write_byte, SYS_read, SYS_write, HB_CHAN_TCP, HB_WCTX_OWN_SEND},
    {"tcp mapped", make_tcp_mapped, recv_byte, send_byte, SYS_recvfrom, SYS_sendto, HB_CHAN_TCP,
     HB_WCTX_OWN_SEND},
    {"tcp6", make_tcp6, recv_byte, send_byte, SYS_recvfrom, SYS_sendto, HB_CHAN_TCP, HB_WCTX_OWN_SEND},
    {"udp", make_udp, recv_byte, send_byte, SYS_recvfrom, SYS_sendto, HB_CHAN_UDP, HB_WCTX_OWN_SEND},
    {"accept", make_listener, accept_one, connect_one, SYS_accept, SYS_connect, HB_CHAN_TCP,
     HB_WCTX_OWN_SEND},
    {"epoll", make_epoll, epoll_byte, write_byte, NR_EPOLL, SYS_write, HB_CHAN_EPOLL, HB_WCTX_TASK},
    {"poll", make_pipe, poll_byte, write_byte, NR_POLL, SYS_write, HB_CHAN_PIPE, HB_WCTX_TASK},
    {"futex_waitv", make_nothing, waitv_sleep, futex_wake, NR_WAITV, SYS_futex, HB_CHAN_FUTEX, HB_WCTX_TASK},
    {"futex", make_nothing, futex_sleep, futex_wake, SYS_futex, SYS_futex, HB_CHAN_FUTEX, HB_WCTX_TASK},
};

static int sleeper(_Atomic u64 *slot)
{
	slot[TID] = rig_tid();
	rounds_warm_up(slot);
	for (unsigned i = 0; i < ROUNDS; i++) {
		round_begins(slot, i);
		slot[READY] = i + 1;
		scene->sleep(slot);
		round_ends(slot, i);
	}
	return 0;
}

static void run_waker(struct rig_child *c)
{
	u64 deadline = hb_clock__now() + RIG_DEADLINE;

	for (unsigned i = 0; i < ROUNDS; i++) {
		while (c->slot[READY] != i + 1 && hb_clock__now() < deadline)
			usleep(200);
		if (!rig_wait_asleep(c->pid, (u32)c->slot[TID], scene->sysno))
			_exit(93);
		scene->wake(c->slot);
	}
	_exit(0);
}

static u64 inet_of(const struct sockaddr_storage *a)
{
	const struct sockaddr_in6 *six = (const void *)a;
	const struct sockaddr_in *four = (const void *)a;
	u32 v4;

	if (a->ss_family == AF_INET)
		return (u64)ntohl(four->sin_addr.s_addr) << 16 | ntohs(four->sin_port);
	memcpy(&v4, six->sin6_addr.s6_addr + 12, 4);
	if (IN6_IS_ADDR_LOOPBACK(&six->sin6_addr))
		v4 = htonl(INADDR_LOOPBACK);
	return (u64)ntohl(v4) << 16 | ntohs(six->sin6_port);
}

/* What the kernel itself says about the sleeper's end. */
static void check_inet(const struct hb_rec_offcpu *o)
{
	struct sockaddr_storage a;
	socklen_t len = sizeof(a);

	assert_int_equal(getsockname(fds[0], (void *)&a, &len), 0);
	assert_int_equal(o->local, inet_of(&a));
	len = sizeof(a);
	if (getpeername(fds[0], (void *)&a, &len))
		assert_int_equal(o->peer, 0);
	else
		assert_int_equal(o->peer, inet_of(&a));
}

static u64 eventfd_id(int fd)
{
	char path[64], line[128];
	unsigned long long id = 0;
	FILE *f;
	int n = 0;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	f = fopen(path, "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		n += sscanf(line, "eventfd-id: %llu", &id) == 1;
	fclose(f);
	assert_int_equal(n, 1);
	return id;
}

static void check_channel(const struct hb_rec_offcpu *o, struct rig_child *c)
{
	assert_int_equal(o->chankind, scene->kind);
	switch (scene->kind) {
	case HB_CHAN_FUTEX:
		assert_int_equal(o->chan, (u64)&c->slot[WORD]);
		break;
	case HB_CHAN_EVENTFD:
		assert_int_equal(o->chan, eventfd_id(fds[0]));
		break;
	case HB_CHAN_EPOLL: /* an identity, the same each time */
		assert_int_not_equal(o->chan, 0);
		if (!c->slot[CHAN])
			c->slot[CHAN] = o->chan;
		assert_int_equal(o->chan, c->slot[CHAN]);
		assert_int_equal(o->a0, extra);
		break;
	default:
		assert_int_equal(o->chan, inode_of(fds[0]));
	}
	if (scene->kind == HB_CHAN_TCP || scene->kind == HB_CHAN_UDP)
		check_inet(o);
	else
		assert_int_equal(o->local, 0);
	if (scene->kind == HB_CHAN_UNIX)
		assert_int_equal(o->peer, inode_of(fds[1]));
}

static void check_waker(const struct hb_rec_offcpu *o, pid_t waker)
{
	assert_int_equal(o->waker, waker);
	assert_int_equal(o->waker_pid, waker);
	assert_int_equal(o->wsys, scene->wsys);
	if (fds[1] >= 0)
		assert_int_equal(o->wa0, fds[1]);
}

static void close_scene(void)
{
	close(fds[0]);
	close(fds[1]);
	if (extra != fds[0])
		close(extra);
	extra = -1;
}

static void check_scene(struct rig *r, struct rig_child *c, pid_t waker)
{
	unsigned own = 0, n = 0;

	for (unsigned i = 0; i < ROUNDS; i++) {
		const struct hb_rec_offcpu *o = sleep_of(r, c, i, scene->sysno);

		/* The waker saw it asleep. Twice: something else had woken it, and nothing was there yet. */
		assert_in_range(of_round(c, i, SLEPT), 1, 2);
		if (!o || of_round(c, i, SLEPT) > 1)
			continue;
		n++;
		check_channel(o, c);
		own += o->waker == (u32)waker && o->wctx == scene->wctx;
		/* Network packets may be passed to the softirq thread when the CPU is busy: not the sender
		 * then. */
		if (scene->wctx != HB_WCTX_OWN_SEND || o->wctx == HB_WCTX_OWN_SEND)
			check_waker(o, waker);
	}
	assert_true(own > ROUNDS / 2);
	if (scene->wctx != HB_WCTX_OWN_SEND)
		assert_int_equal(own, n);
	assert_int_equal(rig__count(r, HB_TYPE_offcpu, (u32)waker), 0);
}

static void run_scene(void **state)
{
	struct rig_child c;
	struct rig *r;
	int status;
	pid_t waker;

	RIG_NEEDS_ROOT();
	scene = *state;
	if (scene->sysno == NR_WAITV && syscall(NR_WAITV, NULL, 0, 0, NULL, 0) && errno == ENOSYS) {
		printf("skip: this kernel has no futex_waitv\n");
		skip();
	}
	extra = -1;
	unseen = 0;
	scene->prepare();
	c = rig_child__fork(sleeper);
	r = sched_rig();
	rig__start(r);
	rig__target(r, c.pid, 0);
	fflush(NULL);
	waker = fork();
	if (!waker)
		run_waker(&c);
	rig_child__go(&c);
	assert_int_equal(rig_child__wait(&c), 0);
	assert_int_equal(waitpid(waker, &status, 0), waker);
	assert_int_equal(status, 0);
	rig__drain(r);
	check_scene(r, &c, waker);
	all_seen(r);
	close_scene();
	rig__close(r, &c);
}

/* ---- threads of one process ---- */

static _Atomic u64 *shared;

static void *thread_wakes(void *arg)
{
	shared[TID + 4] = rig_tid();
	for (unsigned i = 0; i < ROUNDS; i++) {
		while (shared[READY] != i + 1)
			usleep(200);
		if (!rig_wait_asleep(getpid(), (u32)shared[TID], SYS_futex))
			_exit(93);
		futex_wake(shared);
	}
	return NULL;
}

static int threads_wake_each_other(_Atomic u64 *slot)
{
	pthread_t t;

	shared = slot;
	slot[TID] = rig_tid();
	if (pthread_create(&t, NULL, thread_wakes, NULL))
		return 1;
	sleeper(slot);
	return pthread_join(t, NULL);
}

static void a_thread_of_the_target_wakes(void **state)
{
	struct rig_child c;
	struct rig *r;

	RIG_NEEDS_ROOT();
	for (scene = scenes; strcmp(scene->name, "futex") != 0; scene++)
		;
	c = rig_child__fork(threads_wake_each_other);
	r = sched_rig();
	rig__record(r, &c);
	for (unsigned i = 0; i < ROUNDS; i++) {
		const struct hb_rec_offcpu *o = sleep_of(r, &c, i, scene->sysno);

		if (!o)
			continue;
		assert_int_equal(o->chan, (u64)&c.slot[WORD]);
		assert_int_equal(o->waker, c.slot[TID + 4]);
		assert_int_equal(o->waker_pid, c.pid);
		assert_int_equal(o->wsys, SYS_futex);
		assert_int_equal(o->wa0, (u64)&c.slot[WORD]);
		assert_int_equal(o->wctx, HB_WCTX_TASK);
	}
	all_seen(r);
	rig__close(r, &c);
}

int main(void)
{
	struct CMUnitTest tests[sizeof(scenes) / sizeof(*scenes) + 1];
	size_t n = 0;

	for (size_t i = 0; i < sizeof(scenes) / sizeof(*scenes); i++)
		tests[n++] = (struct CMUnitTest){scenes[i].name, run_scene, NULL, NULL, (void *)&scenes[i]};
	tests[n++] = (struct CMUnitTest)cmocka_unit_test(a_thread_of_the_target_wakes);
	return _cmocka_run_group_tests("sched.bpf", tests, n, NULL, NULL);
}
