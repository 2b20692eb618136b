/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a system call sleeps on, by its number. The kernel's own headers cannot be used here (the BPF target
 * sees no <asm/unistd.h> of the machine), so the numbers stand in one table per architecture.
 */
#ifndef HB_CALLS_BPF_H
#define HB_CALLS_BPF_H

#include "schema/schema.h"

enum hb_call {
	HB_CALL_FD = 1,		 /* first argument is the file descriptor it sleeps on */
	HB_CALL_FUTEX = 2,	 /* first argument is the address */
	HB_CALL_TIMER = 3,	 /* nothing but time */
	HB_CALL_EPOLL = 4,	 /* first argument is an epoll instance */
	HB_CALL_POLL = 5,	 /* array of struct pollfd and its length */
	HB_CALL_FUTEX_WAITV = 6, /* array of struct futex_waitv and its length */
	HB_CALL_KIND = 7,	 /* mask of the above */
	HB_CALL_SEND = 8,	 /* on a socket it delivers: what it causes in softirq is its own doing */
	HB_CALL_FORK = 16,	 /* returns a second time, in the child */
	HB_CALL_EXEC = 32,
	HB_CALL_GONE = 64, /* does not return */
};
#define HB_FD	  HB_CALL_FD
#define HB_FDSEND (HB_CALL_FD | HB_CALL_SEND)

/*  X(x86-64, arm64, class): -1 where the architecture has no such call. */
#define HB_CALLS(X)                                                                                          \
	X(0, 63, HB_FD)			 /* read */                                                          \
	X(1, 64, HB_FDSEND)		 /* write */                                                         \
	X(17, 67, HB_FD)		 /* pread64 */                                                       \
	X(18, 68, HB_FD)		 /* pwrite64 */                                                      \
	X(19, 65, HB_FD)		 /* readv */                                                         \
	X(20, 66, HB_FDSEND)		 /* writev */                                                        \
	X(295, 69, HB_FD)		 /* preadv */                                                        \
	X(296, 70, HB_FD)		 /* pwritev */                                                       \
	X(327, 286, HB_FD)		 /* preadv2 */                                                       \
	X(328, 287, HB_FDSEND)		 /* pwritev2 */                                                      \
	X(16, 29, HB_FD)		 /* ioctl */                                                         \
	X(40, 71, HB_FDSEND)		 /* sendfile */                                                      \
	X(275, 76, HB_FD)		 /* splice */                                                        \
	X(42, 203, HB_FDSEND)		 /* connect */                                                       \
	X(43, 202, HB_FD)		 /* accept */                                                        \
	X(288, 242, HB_FD)		 /* accept4 */                                                       \
	X(44, 206, HB_FDSEND)		 /* sendto */                                                        \
	X(45, 207, HB_FD)		 /* recvfrom */                                                      \
	X(46, 211, HB_FDSEND)		 /* sendmsg */                                                       \
	X(47, 212, HB_FD)		 /* recvmsg */                                                       \
	X(48, 210, HB_FDSEND)		 /* shutdown */                                                      \
	X(299, 243, HB_FD)		 /* recvmmsg */                                                      \
	X(307, 269, HB_FDSEND)		 /* sendmmsg */                                                      \
	X(72, 25, HB_FD)		 /* fcntl: file locks */                                             \
	X(73, 32, HB_FD)		 /* flock */                                                         \
	X(74, 82, HB_FD)		 /* fsync */                                                         \
	X(75, 83, HB_FD)		 /* fdatasync */                                                     \
	X(77, 46, HB_FD)		 /* ftruncate */                                                     \
	X(277, 84, HB_FD)		 /* sync_file_range */                                               \
	X(285, 47, HB_FD)		 /* fallocate */                                                     \
	X(217, 61, HB_FD)		 /* getdents64 */                                                    \
	X(426, 426, HB_FD)		 /* io_uring_enter */                                                \
	X(232, -1, HB_CALL_EPOLL)	 /* epoll_wait */                                                    \
	X(281, 22, HB_CALL_EPOLL)	 /* epoll_pwait */                                                   \
	X(441, 441, HB_CALL_EPOLL)	 /* epoll_pwait2 */                                                  \
	X(7, -1, HB_CALL_POLL)		 /* poll */                                                          \
	X(271, 73, HB_CALL_POLL)	 /* ppoll */                                                         \
	X(202, 98, HB_CALL_FUTEX)	 /* futex */                                                         \
	X(455, 455, HB_CALL_FUTEX)	 /* futex_wait */                                                    \
	X(449, 449, HB_CALL_FUTEX_WAITV) /* futex_waitv */                                                   \
	X(35, 101, HB_CALL_TIMER)	 /* nanosleep */                                                     \
	X(230, 115, HB_CALL_TIMER)	 /* clock_nanosleep */                                               \
	X(56, 220, HB_CALL_FORK)	 /* clone */                                                         \
	X(57, -1, HB_CALL_FORK)		 /* fork */                                                          \
	X(58, -1, HB_CALL_FORK)		 /* vfork */                                                         \
	X(435, 435, HB_CALL_FORK)	 /* clone3 */                                                        \
	X(59, 221, HB_CALL_EXEC)	 /* execve */                                                        \
	X(322, 281, HB_CALL_EXEC)	 /* execveat */                                                      \
	X(60, 93, HB_CALL_GONE)		 /* exit */                                                          \
	X(231, 94, HB_CALL_GONE)	 /* exit_group */

#define HB_CALLS_MAX 512
#if defined(__TARGET_ARCH_x86)
#define HB_CALL_NR(x86, arm64) (x86)
#elif defined(__TARGET_ARCH_arm64)
#define HB_CALL_NR(x86, arm64) (arm64)
#else
#error "bpf/calls.bpf.h: add the system call numbers of this architecture"
#endif
/* Index 0 stays unused for calls that do not exist: the table is shifted by one. */
#define HB_CALL_ENTRY(x86, arm64, cls) [HB_CALL_NR(x86, arm64) + 1] = (cls),
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Winitializer-overrides"
static const u8 hb_calls[HB_CALLS_MAX] = {HB_CALLS(HB_CALL_ENTRY)};
#pragma clang diagnostic pop

/* Bits of enum hb_call, 0 for calls not listed and outside a call. */
static __always_inline u8 hb_call__class(u16 sysno)
{
	u64 i = (u64)sysno + 1;

	/* Else the compiler compares one register and indexes with a copy, which the verifier knows nothing
	 * of. */
	asm volatile("" : "+r"(i));
	return i < HB_CALLS_MAX ? hb_calls[i] : 0; /* HB_SYSNO_NONE is beyond the table */
}

#endif
