/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a sleeping thread waits for: its descriptor -> file -> inode, and both ends of a socket. The inode
 * number is what /proc/PID/fd shows ("pipe:[123]"), so user space can add names and pair the ends. Anonymous
 * files share one inode: an eventfd is named by its id (fdinfo shows it), an epoll instance by the low bits
 * of its file's address, which tell instances apart but cannot be looked up.
 */
#ifndef HB_CHANNEL_BPF_H
#define HB_CHANNEL_BPF_H

#include "task.bpf.h"

struct hb_channel {
	u64 id, local, peer;
	u8 kind; /* enum hb_chankind */
};

#define HB_S_IFMT	 0170000
#define HB_S_IFSOCK	 0140000
#define HB_S_IFIFO	 0010000
#define HB_ANON_INODE_FS 0x09041934
#define HB_AF_UNIX	 1
#define HB_AF_INET	 2
#define HB_AF_INET6	 10
#define HB_IPPROTO_TCP	 6
#define HB_IPPROTO_UDP	 17
#define HB_IPPROTO_MPTCP 262

/* NULL when the descriptor is not open. The table may be replaced while we look: the old one stays readable,
 * this program runs inside an RCU section. */
static __always_inline struct file *hb_fd__file(struct task_struct *t, u64 fd)
{
	struct fdtable *fdt = BPF_CORE_READ(t, files, fdt);
	struct file **fds = BPF_CORE_READ(fdt, fd);
	struct file *f = NULL;
	u32 n = (u32)fd;

	if (!fds || n >= BPF_CORE_READ(fdt, max_fds))
		return NULL;
	bpf_probe_read_kernel(&f, sizeof(f), fds + n);
	return f;
}

static __always_inline u32 hb_file__mode(struct file *f)
{
	return BPF_CORE_READ(f, f_inode, i_mode) & HB_S_IFMT;
}

/* The inode of a socket lies beside it, file or not (an unaccepted one has none). */
static __always_inline u64 hb_socket__inode(struct socket *s)
{
	struct socket_alloc *a = (void *)s - bpf_core_field_offset(struct socket_alloc, socket);

	return s ? BPF_CORE_READ(a, vfs_inode.i_ino) : 0;
}

/* IPv4 address of an IPv6 one, host order: ::ffff:a.b.c.d, ::1 as 127.0.0.1, 0 when there is none. */
static __always_inline u32 hb_in6__v4(const struct in6_addr *a)
{
	u32 w0 = a->in6_u.u6_addr32[0], w1 = a->in6_u.u6_addr32[1];
	u32 w2 = bpf_ntohl(a->in6_u.u6_addr32[2]), w3 = bpf_ntohl(a->in6_u.u6_addr32[3]);

	if (w0 || w1)
		return 0;
	if (w2 == 0xffff)
		return w3;
	return w2 == 0 && w3 == 1 ? 0x7f000001 : 0;
}

static __always_inline void hb_channel__inet(struct sock *sk, u16 family, struct hb_channel *c)
{
	u32 daddr = bpf_ntohl(BPF_CORE_READ(sk, __sk_common.skc_daddr));
	u32 saddr = bpf_ntohl(BPF_CORE_READ(sk, __sk_common.skc_rcv_saddr));
	struct sock_common___v6 *v6 = (void *)&sk->__sk_common;
	struct in6_addr a = {};

	if (family == HB_AF_INET6 && bpf_core_field_exists(v6->skc_v6_daddr)) {
		bpf_core_read(&a, sizeof(a), &v6->skc_v6_daddr);
		daddr = hb_in6__v4(&a);
		bpf_core_read(&a, sizeof(a), &v6->skc_v6_rcv_saddr);
		saddr = hb_in6__v4(&a);
	}
	c->local = (u64)saddr << 16 | BPF_CORE_READ(sk, __sk_common.skc_num);
	c->peer = (u64)daddr << 16 | bpf_ntohs(BPF_CORE_READ(sk, __sk_common.skc_dport));
}

static __always_inline u8 hb_socket__kind(struct sock *sk, u16 family)
{
	u32 proto;

	if (family == HB_AF_UNIX)
		return HB_CHAN_UNIX;
	if (family != HB_AF_INET && family != HB_AF_INET6)
		return HB_CHAN_SOCKET;
	proto = BPF_CORE_READ(sk, sk_protocol);
	if (proto == HB_IPPROTO_TCP || proto == HB_IPPROTO_MPTCP)
		return HB_CHAN_TCP;
	return proto == HB_IPPROTO_UDP ? HB_CHAN_UDP : HB_CHAN_SOCKET;
}

static __always_inline void hb_channel__socket(struct file *f, struct hb_channel *c)
{
	struct socket *s = BPF_CORE_READ(f, private_data);
	struct sock *sk = BPF_CORE_READ(s, sk), *peer;
	u16 family;

	c->kind = HB_CHAN_SOCKET;
	c->id = BPF_CORE_READ(f, f_inode, i_ino);
	if (!sk)
		return;
	family = BPF_CORE_READ(sk, __sk_common.skc_family);
	c->kind = hb_socket__kind(sk, family);
	if (c->kind == HB_CHAN_TCP || c->kind == HB_CHAN_UDP)
		hb_channel__inet(sk, family, c);
	if (c->kind != HB_CHAN_UNIX)
		return;
	peer = BPF_CORE_READ((struct unix_sock *)sk, peer);
	if (peer)
		c->peer = hb_socket__inode(BPF_CORE_READ(peer, sk_socket));
}

/* Anonymous files are told apart by the name of their entry: "[eventfd]", "[eventpoll]", "[timerfd]". */
static __always_inline void hb_channel__anon(struct file *f, struct hb_channel *c)
{
	const unsigned char *name = BPF_CORE_READ(f, f_path.dentry, d_name.name);
	struct eventfd_ctx___id *ctx;
	char s[8] = {};

	bpf_probe_read_kernel(s, sizeof(s), name);
	if (s[1] == 't' && s[2] == 'i' && s[3] == 'm') {
		c->kind = HB_CHAN_TIMER;
	} else if (s[1] == 'e' && s[2] == 'v' && s[6] == 'f') {
		ctx = BPF_CORE_READ(f, private_data);
		c->kind = HB_CHAN_EVENTFD;
		c->id = bpf_core_field_exists(ctx->id) ? BPF_CORE_READ(ctx, id) : (u32)(u64)f;
	} else if (s[1] == 'e' && s[2] == 'v' && s[6] == 'p') {
		c->kind = HB_CHAN_EPOLL;
		c->id = (u32)(u64)f;
	}
}

static __always_inline void hb_channel__fd(struct task_struct *t, u64 fd, struct hb_channel *c)
{
	struct file *f = hb_fd__file(t, fd);
	u32 mode;

	if (!f)
		return;
	mode = hb_file__mode(f);
	if (mode == HB_S_IFSOCK) {
		hb_channel__socket(f, c);
	} else if (BPF_CORE_READ(f, f_inode, i_sb, s_magic) == HB_ANON_INODE_FS) {
		hb_channel__anon(f, c);
	} else {
		c->kind = mode == HB_S_IFIFO ? HB_CHAN_PIPE : HB_CHAN_FILE;
		c->id = BPF_CORE_READ(f, f_inode, i_ino);
	}
}

/* One descriptor is a channel; several are not; none is a sleep. `t` is current, so its memory can be read.
 */
static __always_inline void hb_channel__poll(struct task_struct *t, const struct hb_call_regs *r,
					     struct hb_channel *c)
{
	int fd = -1;

	if (r->a1 == 0)
		c->kind = HB_CHAN_TIMER;
	else if (r->a1 == 1 && !bpf_probe_read_user(&fd, sizeof(fd), (void *)r->a0) && fd >= 0)
		hb_channel__fd(t, fd, c);
}

/* struct futex_waitv: value, then the address. */
static __always_inline void hb_channel__waitv(const struct hb_call_regs *r, struct hb_channel *c)
{
	c->kind = HB_CHAN_FUTEX;
	if (r->a1 == 1)
		bpf_probe_read_user(&c->id, sizeof(c->id), (void *)(r->a0 + 8));
}

/* `t` is current. */
static __always_inline void hb_channel__of(struct task_struct *t, const struct hb_call_regs *r,
					   struct hb_channel *c)
{
	u8 kind = hb_call__class(r->sysno) & HB_CALL_KIND;

	__builtin_memset(c, 0, sizeof(*c));
	if (kind == HB_CALL_FUTEX) {
		c->kind = HB_CHAN_FUTEX;
		c->id = r->a0;
	} else if (kind == HB_CALL_TIMER) {
		c->kind = HB_CHAN_TIMER;
	} else if (kind == HB_CALL_FD || kind == HB_CALL_EPOLL) {
		hb_channel__fd(t, r->a0, c);
	} else if (kind == HB_CALL_POLL) {
		hb_channel__poll(t, r, c);
	} else if (kind == HB_CALL_FUTEX_WAITV) {
		hb_channel__waitv(r, c);
	}
}

#endif
