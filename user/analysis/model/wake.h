/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Who ended whose sleep, through what: wake edges within and across processes.
 *
 * The waking time of a sleep is its end less its runnable part. A waker is a thread only where the wake-up
 * ran in its own context (task, or a softirq inside its own send); else it is typed by what was slept in:
 * timer, network, device, disk. Where a socket's other end is a traced thread, that thread is the waker even
 * if an interrupt delivered (`guessed`). A thread that was woken and slept again at once on the same thing,
 * having done nothing, had a false wake-up: its sleeps are one wait, whose waker is the last one's.
 */
#ifndef HB_WAKE_H
#define HB_WAKE_H

#include "analysis/model/timeline.h"

enum hb_wake_by {
	HB_WAKE_UNKNOWN,   /* no waking seen, or none that can be typed */
	HB_WAKE_THREAD,	   /* a thread of this timeline */
	HB_WAKE_OUTSIDE,   /* a thread that is not traced: hb_wake__task() says which */
	HB_WAKE_TIMER,	   /* its own time-out or sleep ran out */
	HB_WAKE_NET,	   /* data from another machine, or from a process that is not known */
	HB_WAKE_DEVICE,	   /* an accelerator's driver */
	HB_WAKE_DISK,	   /* storage, paging included */
	HB_WAKE_PREEMPTED, /* it did not sleep: another ran on its CPU */
	HB_WAKE_STOPPED,   /* stopped or traced by a debugger */
	HB_WAKE_OPEN,	   /* still asleep at the window's end */
	HB_WAKE_BYS,
};
const char *hb_wake__by_name(enum hb_wake_by by); /* "thread", "outside", "timer", ... */

struct hb_edge {      /* one per sleep, at the same index as in hb_timeline__sleeps() */
	u32 thread;   /* who woke it, in this timeline; HB_NONE */
	u32 last;     /* index of the sleep with which this wait ended: itself, or, after a false
		       * wake-up, a later one */
	u8 by;	      /* enum hb_wake_by */
	bool falsely; /* this wake-up was a false one: see `last` */
	bool guessed; /* `thread` follows from the socket's other end, not from the wake-up */
	bool relay;   /* the waker was itself woken shortly before and did no more than pass it on */
};

struct hb_wake;

/* NULL with the error set: out of memory. The timeline must live as long. */
struct hb_wake *hb_wake__build(const struct hb_timeline *tl, struct hb_error *e);
void hb_wake__free(struct hb_wake *wk); /* NULL is fine */
u64 hb_wake__memory(const struct hb_wake *wk);
const struct hb_timeline *hb_wake__timeline(const struct hb_wake *wk);

/* The edges of a thread's sleeps; *n as in hb_timeline__sleeps(). */
const struct hb_edge *hb_wake__edges(const struct hb_wake *wk, u32 thread, u32 *n);

/* Who woke a thread from its sleep number i; NULL: no thread. */
const struct hb_task *hb_wake__task(const struct hb_wake *wk, u32 thread, u32 i);

/* Where the wait was made that sleep number i is one of, false wake-ups joined: the stack of the longest of
 * its sleeps that has one, as short sleeps are recorded without. 0: none has. */
u32 hb_wake__stack(const struct hb_wake *wk, u32 thread, u32 i);

/* The thread at the other end of the socket that was slept on, as far as it ever slept there itself; HB_NONE.
 */
u32 hb_wake__peer(const struct hb_wake *wk, u32 thread, const struct hb_tl_sleep *s);

/* ---- chains ---- */

struct hb_hop {
	const struct hb_task *task; /* NULL: no thread (timer, network, ...) */
	u32 thread;		    /* HB_NONE: not traced, or no thread */
	u32 sleep;	/* index of the sleep that held it up; HB_NONE: it was working, or is not traced */
	u64 begin, end; /* of that sleep, false wake-ups joined; else of its work: to when it woke the
			 * one before */
	u8 by; /* enum hb_wake_by: how this hop's sleep ended; PREEMPTED when most of it was waiting for a
		* CPU. UNKNOWN when `sleep` is HB_NONE */
	bool relay; /* an I/O thread that only passed the wake-up on: leave it out of a short text */
	bool guessed;
};
#define HB_HOPS 12

/* The chain of wakers behind a blocked stretch, innermost cause last. hop[0] is the thread itself with its
 * longest sleep inside [begin, end); each next one is who woke the one before, and what held it up most since
 * that one went to sleep. It ends with a thread that worked most of that time, with what is no thread, or at
 * the window's begin. Returns the number of hops; 0: it did not sleep there. */
u32 hb_wake__chain(const struct hb_wake *wk, u32 thread, u64 begin, u64 end, struct hb_hop *hop, u32 max);

/* Why a chain ends there: "timer", "working", "waiting for a CPU", "not traced"; "": one of its middle. */
const char *hb_hop__ending(const struct hb_hop *h);
/* The stack of a hop's wait, with its task's pid for hb_window__stack(); 0: it did not sleep, or has none. */
u32 hb_hop__stack(const struct hb_wake *wk, const struct hb_hop *h);

/* The chain as words: "engine -> unix 11 -> kv-server -> futex 0x7f.. -> evict (working)". Relays are left
 * out. Cleaned. Returns buf. */
const char *hb_wake__chain_text(const struct hb_wake *wk, const struct hb_hop *hop, u32 n, char *buf,
				size_t size);

#endif
