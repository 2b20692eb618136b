/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Wake edges: who woke whom through what, false wake-ups, relays, chains. */
#include "host_rig.h"

struct built {
	struct host_rig *h;
	struct hb_window *w;
	struct hb_timeline *tl;
	struct hb_wake *wk;
};

static struct built build(struct host_rig *h)
{
	struct hb_error e = {0};
	struct built b = {.h = h, .w = host_open(h)};

	b.tl = hb_timeline__build(b.w, &e);
	assert_non_null(b.tl);
	b.wk = hb_wake__build(b.tl, &e);
	assert_non_null(b.wk);
	return b;
}

static void done(struct built *b)
{
	hb_wake__free(b->wk);
	hb_timeline__free(b->tl);
	rig_close(&b->h->r, b->w);
}

static const struct hb_edge *edge(const struct built *b, u32 tid, u32 i)
{
	u32 n, thread = hb_timeline__by_tid(b->tl, tid);
	const struct hb_edge *e = hb_wake__edges(b->wk, thread, &n);

	assert_true(i < n);
	return &e[i];
}

static const struct hb_task *waker(const struct built *b, u32 tid, u32 i)
{
	return hb_wake__task(b->wk, hb_timeline__by_tid(b->tl, tid), i);
}

static u64 woken(const struct built *b, u32 tid, u32 i)
{
	u32 n;
	const struct hb_tl_sleep *s = hb_timeline__sleeps(b->tl, hb_timeline__by_tid(b->tl, tid), &n);

	assert_true(i < n);
	return hb_sleep__woken(&s[i]);
}

#define FUTEX(c)   .chan = (c), .chankind = HB_CHAN_FUTEX, .sysno = SYS_FUTEX
#define UNIX(i, p) .chan = (i), .peer = (p), .chankind = HB_CHAN_UNIX, .sysno = 45 /* recvfrom */
#define TCP(l, p)  .local = (l), .peer = (p), .chankind = HB_CHAN_TCP, .sysno = 45
#define IN_IRQ	   .wctx = HB_WCTX_HARDIRQ
#define IN_SOFT	   .wctx = HB_WCTX_SOFTIRQ
#define NO_CALL	   .sysno = HB_SYSNO_NONE

static void typed(void **state)
{
	struct host_rig h = host_new("wake-typed");
	struct built b;
	u64 t = MS;
	static const u8 expected[] = {
	    HB_WAKE_THREAD,    /* 0 a thread of the window */
	    HB_WAKE_OUTSIDE,   /* 1 a bystander */
	    HB_WAKE_TIMER,     /* 2 nanosleep */
	    HB_WAKE_TIMER,     /* 3 a futex that an interrupt ended: its time-out */
	    HB_WAKE_NET,       /* 4 a socket, in a bystander's softirq */
	    HB_WAKE_DISK,      /* 5 a page fault */
	    HB_WAKE_PREEMPTED, /* 6 */
	    HB_WAKE_STOPPED,   /* 7 */
	    HB_WAKE_UNKNOWN,   /* 8 no waking seen */
	    HB_WAKE_THREAD,    /* 9 a softirq in the waker's own send */
	    HB_WAKE_DEVICE,    /* 10 an accelerator's file */
	    HB_WAKE_UNKNOWN,   /* 11 "woken by itself": an interrupt while it went to sleep */
	    HB_WAKE_OPEN,      /* 12 */
	};

#define S(waker, ...)                                                                                        \
	SLEEP(&h, h.main, t, t + 100000, t + 110000, waker, __VA_ARGS__);                                    \
	t += MS
	SLEEP(&h, h.helper, 0, 10, 20, 0, NO_CALL); /* so that it is in the window */
	S(101, FUTEX(1));
	S(900, FUTEX(1));
	S(0, .chankind = HB_CHAN_TIMER, .sysno = 35, IN_IRQ);
	S(900, FUTEX(1), IN_IRQ);
	S(900, TCP(5, 6), IN_SOFT);
	S(0, NO_CALL, .state = HB_TSTATE_DISK);
	S(0, NO_CALL, .state = PREEMPTED);
	S(0, NO_CALL, .state = HB_TSTATE_STOPPED);
	SLEEP(&h, h.main, t, t + 100, t + 100, 0, NO_CALL);
	t += MS;
	S(101, TCP(7, 8), .wctx = HB_WCTX_OWN_SEND, .wsys = SYS_SENDTO);
	rig_fd(&h.r, 100, 40, 99, "/dev/nvidia0");
	S(900, .chankind = HB_CHAN_FILE, .chan = 99, .a0 = 40, .sysno = 16, IN_IRQ);
	S(100, FUTEX(1));
	SLEEP(&h, h.main, t, t + 100, t + 100, 0, FUTEX(1), .flags = HB_OFFCPU_OPEN);
	b = build(&h);
	for (u32 i = 0; i < sizeof(expected); i++)
		if (edge(&b, 100, i)->by != expected[i])
			fail_msg("sleep %u: %s, expected %s", i, hb_wake__by_name(edge(&b, 100, i)->by),
				 hb_wake__by_name(expected[i]));
	assert_int_equal(woken(&b, 100, 0), AT(MS + 100000));
	assert_int_equal(edge(&b, 100, 0)->thread, hb_timeline__by_tid(b.tl, 101));
	assert_int_equal(edge(&b, 100, 1)->thread, HB_NONE);
	assert_int_equal(waker(&b, 100, 1)->tid, 900);
	assert_null(waker(&b, 100, 4));
	assert_int_equal(woken(&b, 100, 6), AT(7 * MS + 100000));
	done(&b);
#undef S
}

/* An interrupt delivered, but the socket's other end is a thread's that slept there, or that sent on it. */
static void senders_are_guessed(void **state)
{
	struct host_rig h = host_new("wake-guess");
	struct built b;

	SLEEP(&h, h.server, 1000, 2000, 2100, 900, TCP(20, 10), IN_SOFT); /* from 10, by an interrupt */
	SLEEP(&h, h.main, 3000, 4000, 4100, 900, TCP(10, 20), IN_SOFT);
	SLEEP(&h, h.helper, 5000, 6000, 6100, 200, UNIX(31, 32));
	SLEEP(&h, h.io, 7000, 8000, 8100, 0, UNIX(31, 32)); /* waking not seen */
	b = build(&h);
	assert_int_equal(edge(&b, 100, 0)->by, HB_WAKE_THREAD);
	assert_int_equal(edge(&b, 100, 0)->thread, hb_timeline__by_tid(b.tl, 200));
	assert_true(edge(&b, 100, 0)->guessed);
	assert_true(edge(&b, 200, 0)->guessed);
	assert_int_equal(edge(&b, 200, 0)->thread, hb_timeline__by_tid(b.tl, 100));
	assert_false(edge(&b, 101, 0)->guessed);
	assert_true(edge(&b, 102, 0)->guessed);
	assert_int_equal(edge(&b, 102, 0)->thread, hb_timeline__by_tid(b.tl, 200));
	done(&b);
}

static void false_wakeups(void **state)
{
	struct host_rig h = host_new("wake-false");
	struct built b;
	u64 us = 1000;

	/* three times back to sleep at once, then woken by 200; short sleeps have no stack */
	SLEEP(&h, h.main, 10 * us, 20 * us, 21 * us, 101, FUTEX(5));
	SLEEP(&h, h.main, 25 * us, 30 * us, 31 * us, 101, FUTEX(5), .stack = 7);
	SLEEP(&h, h.main, 40 * us, 90 * us, 91 * us, 200, FUTEX(5), .stack = 9);
	/* on another thing: no false one; after that it woke somebody; after that it made a call; after that
	 * it ran long */
	SLEEP(&h, h.main, 95 * us, 120 * us, 121 * us, 101, FUTEX(6));
	SLEEP(&h, h.main, 125 * us, 130 * us, 131 * us, 101, FUTEX(6));
	SLEEP(&h, h.helper, 100 * us, 124 * us, 126 * us, 100, FUTEX(7));
	CALL(&h, h.main, Q_LAUNCH, 132 * us, 132 * us);
	SLEEP(&h, h.main, 135 * us, 140 * us, 141 * us, 101, FUTEX(6));
	SLEEP(&h, h.main, 170 * us, 180 * us, 181 * us, 101, FUTEX(6));
	SLEEP(&h, h.server, 0, 1 * us, 2 * us, 0, NO_CALL);
	b = build(&h);
	assert_true(edge(&b, 100, 0)->falsely);
	assert_true(edge(&b, 100, 1)->falsely);
	assert_int_equal(edge(&b, 100, 0)->last, 2);
	assert_int_equal(edge(&b, 100, 1)->last, 2);
	for (u32 i = 2; i < 7; i++) {
		assert_false(edge(&b, 100, i)->falsely);
		assert_int_equal(edge(&b, 100, i)->last, i);
	}
	for (u32 i = 0; i < 7; i++)
		assert_int_equal(hb_wake__stack(b.wk, hb_timeline__by_tid(b.tl, 100), i), i < 3 ? 9 : 0);
	done(&b);
}

/* S2 of the acceptance scenarios: engine -> socket -> kv-server -> futex -> evictor, which sleeps on a timer.
 */
static void chain_of_a_call(void **state)
{
	struct host_rig h = host_new("wake-chain");
	struct built b;
	struct hb_hop hop[HB_HOPS];
	char text[256];
	u32 n, main;

	SLEEP(&h, h.server, 0, 10 * MS, 10 * MS + 5000, 100, UNIX(22, 11), .wsys = SYS_SENDTO);
	SLEEP(&h, h.evictor, 12 * MS, 340 * MS, 340 * MS + 5000, 0, .chankind = HB_CHAN_TIMER, .sysno = 35,
	      IN_IRQ);
	SLEEP(&h, h.server, 30 * MS, 341 * MS, 341 * MS + 5000, 201, FUTEX(0x7f10));
	SLEEP(&h, h.main, 10 * MS + 1000, 342 * MS, 342 * MS + 5000, 200, UNIX(11, 22), .wsys = SYS_SENDTO);
	b = build(&h);
	main = hb_timeline__by_tid(b.tl, 100);
	n = hb_wake__chain(b.wk, main, AT(10 * MS), AT(350 * MS), hop, HB_HOPS);
	assert_int_equal(n, 3);
	assert_int_equal(hop[0].task->tid, 100);
	assert_int_equal(hop[1].task->tid, 200);
	assert_int_equal(hop[1].begin, AT(30 * MS));
	assert_int_equal(hop[2].task->tid, 201);
	assert_int_equal(hop[2].by, HB_WAKE_TIMER);
	hb_wake__chain_text(b.wk, hop, n, text, sizeof(text));
	assert_string_equal(text, "engine -> unix 11 -> 22 -> kv-server -> futex 0x7f10 -> evictor (timer)");
	/* from another stretch: nothing slept there */
	assert_int_equal(hb_wake__chain(b.wk, main, AT(0), AT(9 * MS), hop, HB_HOPS), 0);
	/* room for one */
	assert_int_equal(hb_wake__chain(b.wk, main, AT(10 * MS), AT(350 * MS), hop, 1), 1);
	hb_wake__chain_text(b.wk, hop, 3, text, 12);
	assert_int_equal(strlen(text), 11);
	done(&b);
}

/* The one that woke it worked most of the time: the chain ends there, with its own work. */
static void chain_ends_at_work(void **state)
{
	struct host_rig h = host_new("wake-work");
	struct built b;
	struct hb_hop hop[HB_HOPS];
	char text[128];
	u32 n;

	SLEEP(&h, h.helper, 0, 20 * MS, 20 * MS + 1000, 100, FUTEX(9));
	SLEEP(&h, h.main, 20 * MS, 100 * MS, 101 * MS, 101, FUTEX(8));
	b = build(&h);
	n = hb_wake__chain(b.wk, hb_timeline__by_tid(b.tl, 100), AT(0), AT(200 * MS), hop, HB_HOPS);
	assert_int_equal(n, 2);
	assert_int_equal(hop[1].sleep, HB_NONE);
	assert_int_equal(hop[1].begin, AT(20 * MS + 1000));
	assert_int_equal(hop[1].end, AT(100 * MS));
	hb_wake__chain_text(b.wk, hop, n, text, sizeof(text));
	assert_string_equal(text, "engine -> futex 0x8 -> helper (working)");
	done(&b);
}

/* Woken early, but it had no CPU: nobody further on is to blame. */
static void chain_ends_without_a_cpu(void **state)
{
	struct host_rig h = host_new("wake-cpu");
	struct built b;
	struct hb_hop hop[HB_HOPS];
	char text[128];
	u32 n;

	SLEEP(&h, h.helper, 20 * MS, 25 * MS, 90 * MS, 200, FUTEX(9));
	SLEEP(&h, h.main, 10 * MS, 100 * MS, 101 * MS, 101, FUTEX(8));
	SLEEP(&h, h.main, 200 * MS, 210 * MS, 290 * MS, 101, FUTEX(8));
	SLEEP(&h, h.server, 0, 1, 2, 0, NO_CALL);
	b = build(&h);
	n = hb_wake__chain(b.wk, hb_timeline__by_tid(b.tl, 100), AT(0), AT(150 * MS), hop, HB_HOPS);
	assert_int_equal(n, 2);
	hb_wake__chain_text(b.wk, hop, n, text, sizeof(text));
	assert_string_equal(text, "engine -> futex 0x8 -> helper (waiting for a CPU)");
	n = hb_wake__chain(b.wk, hb_timeline__by_tid(b.tl, 100), AT(150 * MS), AT(300 * MS), hop, HB_HOPS);
	assert_int_equal(n, 1);
	assert_int_equal(hop[0].by, HB_WAKE_PREEMPTED);
	done(&b);
}

static void relays(void **state)
{
	struct host_rig h = host_new("wake-relay");
	struct built b;
	struct hb_hop hop[HB_HOPS];
	char text[128];
	u32 n;

	/* the server works for 50 ms, sends; our I/O thread passes it on within 40 us */
	SLEEP(&h, h.io, 0, 60 * MS, 60 * MS + 10000, 200, UNIX(11, 22), .wsys = SYS_SENDTO);
	SLEEP(&h, h.main, 10 * MS, 60 * MS + 40000, 60 * MS + 50000, 102, .chan = 4,
	      .chankind = HB_CHAN_EVENTFD, .sysno = 7);
	SLEEP(&h, h.server, 0, 10 * MS, 10 * MS + 1000, 0, NO_CALL);
	/* answered at once, but by one that it asked itself: no relay */
	SLEEP(&h, h.io, 70 * MS, 80 * MS, 80 * MS + 5000, 100, .chan = 5, .chankind = HB_CHAN_EVENTFD);
	SLEEP(&h, h.main, 80 * MS + 1000, 80 * MS + 20000, 80 * MS + 21000, 102, .chan = 4,
	      .chankind = HB_CHAN_EVENTFD, .sysno = 7);
	b = build(&h);
	assert_true(edge(&b, 100, 0)->relay);
	assert_false(edge(&b, 100, 1)->relay);
	n = hb_wake__chain(b.wk, hb_timeline__by_tid(b.tl, 100), AT(0), AT(65 * MS), hop, HB_HOPS);
	assert_int_equal(n, 3);
	assert_true(hop[1].relay);
	hb_wake__chain_text(b.wk, hop, n, text, sizeof(text));
	assert_string_equal(text, "engine -> eventfd 4 -> kv-server (working)");
	done(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(typed),
	    cmocka_unit_test(senders_are_guessed),
	    cmocka_unit_test(false_wakeups),
	    cmocka_unit_test(chain_of_a_call),
	    cmocka_unit_test(chain_ends_at_work),
	    cmocka_unit_test(chain_ends_without_a_cpu),
	    cmocka_unit_test(relays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
