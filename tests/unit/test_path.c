/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The critical path: what the walk charges to whom, that it charges all of it once, and what-if. */
#include "host_rig.h"

#define FUTEX(c)   .chan = (c), .chankind = HB_CHAN_FUTEX, .sysno = SYS_FUTEX
#define UNIX(i, p) .chan = (i), .peer = (p), .chankind = HB_CHAN_UNIX, .sysno = 45 /* recvfrom */
#define TIMER	   .chankind = HB_CHAN_TIMER, .sysno = 35, .wctx = HB_WCTX_HARDIRQ

struct expected {
	u64 begin, end; /* after START */
	u32 tid, kind;
};

static void assert_tiles(const struct hb_seg *s, u32 n, u64 begin, u64 end)
{
	assert_true(n > 0);
	assert_int_equal(s[0].begin, begin);
	assert_int_equal(s[n - 1].end, end);
	for (u32 i = 0; i < n; i++) {
		assert_true(s[i].end > s[i].begin);
		assert_true(s[i].kind < HB_SEG_KINDS);
		if (i)
			assert_int_equal(s[i].begin, s[i - 1].end);
	}
}

static void assert_walk(struct hb_host *x, u32 tid, u64 begin, u64 end, const struct expected *e, u32 n)
{
	const struct hb_timeline *tl = hb_host__timeline(x);
	struct hb_seg *s;
	int got = hb_path__walk(tl, hb_host__wake(x), hb_timeline__by_tid(tl, tid), AT(begin), AT(end), &s);

	assert_true(got >= 0);
	assert_tiles(s, (u32)got, AT(begin), AT(end));
	for (u32 i = 0; i < n || i < (u32)got; i++) {
		if (i >= n || i >= (u32)got || s[i].begin != AT(e[i].begin) || s[i].end != AT(e[i].end) ||
		    s[i].kind != e[i].kind || hb_timeline__thread(tl, s[i].thread)->task->tid != e[i].tid)
			fail_msg("segment %u of %d: %s of %u from %lu to %lu", i, got,
				 i < (u32)got ? hb_seg__name(s[i].kind) : "missing",
				 i < (u32)got ? hb_timeline__thread(tl, s[i].thread)->task->tid : 0,
				 i < (u32)got ? (unsigned long)(s[i].begin - START) : 0,
				 i < (u32)got ? (unsigned long)(s[i].end - START) : 0);
	}
	free(s);
}

/* engine asks the server (10), which works, waits for its lock until the evictor lets go, and answers (80).
 */
static void through_two_processes(void **state)
{
	struct host_rig h = host_new("path-two");
	struct hb_window *w;
	struct hb_host *x;
	/* the evictor slept since 20, before the server came for the lock at 30: all of that is on the way */
	static const struct expected e[] = {
	    {5, 20, 201, HB_SEG_RUN},	 {20, 60, 201, HB_SEG_TIMER}, {60, 62, 201, HB_SEG_SCHED},
	    {62, 70, 201, HB_SEG_RUN},	 {70, 75, 200, HB_SEG_SCHED}, {75, 80, 200, HB_SEG_RUN},
	    {80, 84, 100, HB_SEG_SCHED}, {84, 90, 100, HB_SEG_RUN},
	};

	SLEEP(&h, h.evictor, 20, 60, 62, 0, TIMER);
	SLEEP(&h, h.server, 1, 10, 12, 100, UNIX(22, 11));
	SLEEP(&h, h.server, 30, 70, 75, 201, FUTEX(7));
	SLEEP(&h, h.main, 11, 80, 84, 200, UNIX(11, 22));
	SLEEP(&h, h.main, 100, 110, 111, 0, TIMER);
	w = host_open(&h);
	x = host_build(w);
	assert_walk(x, 100, 5, 90, e, sizeof(e) / sizeof(*e));
	hb_host__free(x);
	rig_close(&h.r, w);
}

static void kinds_of_time(void **state)
{
	struct host_rig h = host_new("path-kinds");
	struct hb_rec_py_gc gc = {.dur = 20 * 1000, .generation = 2};
	struct hb_rec_sample s = {.weight = MS, .stack = ST_USER, .sysno = HB_SYSNO_NONE};
	struct hb_window *w;
	struct hb_host *x;
	u64 us = 1000;
	static const struct expected e[] = {
	    {0, 10000, 100, HB_SEG_RUN},	   {10000, 40000, 100, HB_SEG_API},
	    {40000, 50000, 100, HB_SEG_RUN},	   {50000, 140000, 100, HB_SEG_DEVICE},
	    {140000, 141000, 100, HB_SEG_SCHED},   {141000, 150000, 100, HB_SEG_API},
	    {150000, 160000, 100, HB_SEG_RUN},	   {160000, 180000, 100, HB_SEG_GC},
	    {180000, 190000, 100, HB_SEG_RUN},	   {190000, 200000, 100, HB_SEG_SCHED},
	    {200000, 210000, 100, HB_SEG_RUN},	   {210000, 220000, 100, HB_SEG_OTHER},
	    {220000, 221000, 100, HB_SEG_SCHED},   {221000, 230000, 100, HB_SEG_RUN},
	    {230000, 240000, 100, HB_SEG_DISK},	   {240000, 250000, 100, HB_SEG_RUN},
	    {250000, 255000, 100, HB_SEG_UNKNOWN}, {255000, 260000, 100, HB_SEG_RUN},
	};

	CALL(&h, h.main, Q_ALLOC, 10 * us, 40 * us);
	/* a wait for the device that slept until it was done, had no CPU, and then returned */
	SLEEP(&h, h.main, 60 * us, 140 * us, 141 * us, 101, FUTEX(3));
	CALL(&h, h.main, Q_STREAM_SYNC, 50 * us, 150 * us);
	rig_put(&h.r, 170 * us, h.main, HB_TYPE_sample, &s);
	rig_put(&h.r, 180 * us, h.main, HB_TYPE_py_gc, &gc);
	SLEEP(&h, h.main, 190 * us, 190 * us, 200 * us, 0, .state = PREEMPTED, .sysno = HB_SYSNO_NONE);
	SLEEP(&h, h.main, 210 * us, 220 * us, 221 * us, 900, FUTEX(4));
	SLEEP(&h, h.main, 230 * us, 240 * us, 240 * us, 0, .state = HB_TSTATE_DISK, .sysno = HB_SYSNO_NONE);
	SLEEP(&h, h.main, 250 * us, 255 * us, 255 * us, 0, FUTEX(5));
	SLEEP(&h, h.helper, 0, 1, 1, 0, FUTEX(5));
	w = host_open(&h);
	x = host_build(w);
	assert_walk(x, 100, 0, 260 * us, e, sizeof(e) / sizeof(*e));
	hb_host__free(x);
	rig_close(&h.r, w);
}

/* It stops at the window's begin and at a thread's birth: what was before is outside. */
static void outside(void **state)
{
	struct host_rig h = host_new("path-outside");
	struct hb_rec_thread born = {.parent = 1, .how = HB_HOW_FORKED};
	struct hb_window *w;
	struct hb_host *x;
	static const struct expected e[] = {{0, 20, 101, HB_SEG_OUTSIDE},
					    {20, 60, 101, HB_SEG_RUN},
					    {60, 61, 100, HB_SEG_SCHED},
					    {61, 70, 100, HB_SEG_RUN}};
	struct hb_seg *s;
	int n;

	rig_put(&h.r, 20, h.helper, HB_TYPE_thread, &born);
	SLEEP(&h, h.main, 10, 60, 61, 101, FUTEX(3));
	w = host_open(&h);
	x = host_build(w);
	assert_walk(x, 100, 0, 70, e, 4);
	n = hb_path__walk(hb_host__timeline(x), hb_host__wake(x),
			  hb_timeline__by_tid(hb_host__timeline(x), 101), START - 50, AT(30), &s);
	assert_int_equal(n, 2);
	assert_tiles(s, 2, START - 50, AT(30));
	assert_int_equal(s[0].kind, HB_SEG_OUTSIDE);
	free(s);
	hb_host__free(x);
	rig_close(&h.r, w);
}

/* Two that "woke" each other at one moment, and one that is said to have woken while it slept. */
static void contradictions(void **state)
{
	struct host_rig h = host_new("path-contra");
	struct hb_window *w;
	struct hb_host *x;
	struct hb_seg *s;
	int n;

	SLEEP(&h, h.main, 10, 50, 50, 101, FUTEX(3));
	SLEEP(&h, h.helper, 10, 50, 50, 100, FUTEX(3));
	SLEEP(&h, h.main, 60, 80, 80, 200, FUTEX(3));
	SLEEP(&h, h.server, 70, 90, 90, 101, FUTEX(3));
	w = host_open(&h);
	x = host_build(w);
	n = hb_path__walk(hb_host__timeline(x), hb_host__wake(x),
			  hb_timeline__by_tid(hb_host__timeline(x), 100), START, AT(100), &s);
	assert_true(n > 0);
	assert_tiles(s, (u32)n, START, AT(100));
	free(s);
	hb_host__free(x);
	rig_close(&h.r, w);
}

static void kernel(struct host_rig *h, u64 begin, u64 end, u64 correlation)
{
	struct hb_rec_device d = {.kind = HB_DEVKIND_KERNEL, .dur = end - begin, .correlation = correlation};

	rig_put(&h->r, end, h->main, HB_TYPE_device, &d);
}

/* Four launches of 5 us at 10, 20, 300 and 310 us, kernels of 50 us: the last one starts when the one before
 * has ended, that one when it was launched. So the way goes over two kernels to the launch at 300, and on the
 * host from there. */
static void over_the_device(void **state)
{
	struct host_rig h = host_new("path-device");
	struct hb_error err = {0};
	struct hb_devices *d;
	struct hb_window *w;
	struct hb_host *x;
	const struct hb_seg *s;
	u64 us = 1000;
	u32 n;
	static const struct {
		u64 begin, end;
		u32 kind;
	} e[] = {{0, 10, HB_SEG_RUN},	    {10, 15, HB_SEG_API},      {15, 20, HB_SEG_RUN},
		 {20, 25, HB_SEG_API},	    {25, 300, HB_SEG_RUN},     {300, 305, HB_SEG_API},
		 {305, 420, HB_SEG_DEVICE}, {420, 1000000, HB_SEG_RUN}};

	for (u64 i = 0; i < 4; i++) {
		static const u64 at[] = {10, 20, 300, 310}, begin[] = {20, 71, 310, 361};

		CALL(&h, h.main, Q_LAUNCH, at[i] * us, (at[i] + 5) * us, .correlation = i + 1);
		kernel(&h, begin[i] * us, (begin[i] + 50) * us, i + 1);
	}
	CALL(&h, h.main, Q_STREAM_SYNC, 330 * us, 420 * us);
	w = host_open(&h);
	d = hb_devices__build(w, NULL, &err);
	x = hb_host__build(w, d, &err);
	s = hb_path__segs(hb_host__path(x), 100, &n);
	assert_tiles(s, n, START, START + WALL);
	assert_int_equal(n, sizeof(e) / sizeof(*e));
	for (u32 i = 0; i < n; i++)
		if (s[i].begin != AT(e[i].begin * us) || s[i].end != AT(e[i].end * us) ||
		    s[i].kind != e[i].kind)
			fail_msg("%u: %s from %lu to %lu us", i, hb_seg__name(s[i].kind),
				 (unsigned long)(s[i].begin - START) / us,
				 (unsigned long)(s[i].end - START) / us);
	hb_host__free(x);
	hb_devices__free(d);
	rig_close(&h.r, w);
}

/* A kernel on stream 8 waits, by an event, for one on stream 7, which was launched earlier than what is
 * before it on its own. */
static void over_an_event(void **state)
{
	struct host_rig h = host_new("path-event");
	struct hb_rec_device d = {.kind = HB_DEVKIND_SYNC,
				  .sync = HB_SYNCKIND_STREAM_WAIT,
				  .correlation = 12,
				  .waits = 11,
				  .stream = 8,
				  .wstream = 7};
	static const u64 kernels[][4] = {{50, 400, 1, 7}, {60, 100, 2, 8}, {401, 500, 3, 8}};
	struct hb_error err = {0};
	struct hb_devices *dev;
	struct hb_window *w;
	struct hb_host *x;
	const struct hb_seg *s;
	u64 us = 1000, device = 0;
	u32 n;

	CALL(&h, h.main, Q_LAUNCH, 20 * us, 25 * us, .correlation = 1);
	CALL(&h, h.main, Q_RECORD, 30 * us, 31 * us, .correlation = 11);
	CALL(&h, h.main, Q_LAUNCH, 40 * us, 45 * us, .correlation = 2);
	CALL(&h, h.main, Q_RECORD, 50 * us, 51 * us, .correlation = 12); /* cudaStreamWaitEvent */
	rig_put(&h.r, 51 * us, h.main, HB_TYPE_device, &d);
	CALL(&h, h.main, Q_LAUNCH, 150 * us, 155 * us, .correlation = 3);
	d = (struct hb_rec_device){.kind = HB_DEVKIND_KERNEL};
	for (u64 i = 0; i < 3; i++) {
		d.dur = (kernels[i][1] - kernels[i][0]) * us;
		d.correlation = kernels[i][2];
		d.stream = kernels[i][3];
		rig_put(&h.r, kernels[i][1] * us, h.main, HB_TYPE_device, &d);
	}
	CALL(&h, h.main, Q_DEVICE_SYNC, 200 * us, 510 * us);
	w = host_open(&h);
	dev = hb_devices__build(w, NULL, &err);
	x = hb_host__build(w, dev, &err);
	s = hb_path__segs(hb_host__path(x), 100, &n);
	assert_tiles(s, n, START, START + WALL);
	for (u32 i = 0; i < n; i++)
		device += s[i].kind == HB_SEG_DEVICE ? s[i].end - s[i].begin : 0;
	/* from the wait's end over both kernels to the launch of the first; not the host's time before the
	 * third one's launch */
	assert_int_equal(device, (510 - 25) * us);
	hb_host__free(x);
	hb_devices__free(dev);
	rig_close(&h.r, w);
}

/* ---- any window: all of it charged, once ---- */

static u32 seed;

static u32 rnd(u32 below)
{
	seed = seed * 1664525 + 1013904223;
	return (seed >> 8) % below;
}

/* Records that may contradict each other in every way, or (`sane`) sleeps of a thread that do not overlap. */
static void random_records(struct host_rig *h, bool sane)
{
	const u16 tasks[] = {h->main, h->helper, h->io, h->server, h->evictor};
	const u32 tids[] = {100, 101, 102, 200, 201, 900, 0};
	u64 at[5] = {0};

	for (u32 i = 0; i < 300; i++) {
		u32 who = rnd(5);
		u64 begin = sane ? at[who] + rnd(5000) : rnd(300000), wake = begin + rnd(4000),
		    end = wake + rnd(500);
		struct hb_rec_py_gc gc = {.dur = rnd(3000)};

		at[who] = end;
		if (!rnd(4))
			CALL(h, tasks[who], 1 + rnd(9), begin, rnd(3) ? end : begin, .bytes = rnd(100),
			     .stream = rnd(3), .kind = (u8)rnd(4), .handle = rnd(4));
		else if (!rnd(8))
			rig_put(&h->r, end, tasks[who], HB_TYPE_py_gc, &gc);
		else
			SLEEP(h, tasks[who], begin, wake, end, tids[rnd(7)], .chan = 1 + rnd(3),
			      .peer = 1 + rnd(3), .local = 1 + rnd(3), .chankind = (u8)rnd(11),
			      .sysno = (u16)(rnd(2) ? SYS_FUTEX : HB_SYSNO_NONE), .wctx = (u8)rnd(6),
			      .state = (u8)(rnd(6) ? HB_TSTATE_SLEEPING : PREEMPTED), .flags = (u8)rnd(4));
	}
}

static void assert_busy_tiles(struct hb_host *x, u32 pid)
{
	u32 n;
	const struct hb_busy_span *b = hb_busy__spans(hb_host__busy(x), pid, &n);
	struct hb_busy_sum sum = hb_busy__sum(hb_host__busy(x), pid);

	if (!n)
		return;
	assert_int_equal(b[0].begin, START);
	assert_int_equal(hb_busy_span__end(&b[n - 1]), hb_timeline__end(hb_host__timeline(x)));
	for (u32 i = 1; i < n; i++)
		assert_int_equal(b[i].begin, hb_busy_span__end(&b[i - 1]));
	assert_int_equal(sum.busy + sum.idle + sum.unknown, hb_busy_span__end(&b[n - 1]) - START);
}

static void py_end(struct host_rig *h, u64 at, u16 task, const char *func)
{
	struct hb_rec_py_call p = {.func = rig_loc(&h->r, func, "m.py", 0, HB_LANG_PYTHON)};

	rig_put(&h->r, at, task, HB_TYPE_py_call, &p);
}

/* A worker (100) spins for its engine (200), its parent: no sleep, no system call tells so. */
static void message_in_shared_memory(void **state)
{
	struct host_rig h = host_new("path-queue");
	struct hb_proc child = {.pid = 100, .ppid = 200, .nspid = 100, .how = HB_HOW_PRESENT};
	struct hb_window *w;
	struct hb_host *x;
	const struct hb_seg *s;
	const u64 us = 1000;
	u32 n;

	hb_window_writer__proc(h.r.w, &child);
	for (u64 i = 0; i < 20; i++) {
		u64 t = i * 10 * MS;

		py_end(&h, t + 390 * us, h.evictor, "SomeQueue.enqueue"); /* no such queue */
		py_end(&h, t + 400 * us, h.server, "MessageQueue.enqueue");
		py_end(&h, t + 450 * us, h.main, "MessageQueue.dequeue");
		py_end(&h, t + 460 * us, h.main, "MessageQueue.dequeue"); /* lay there already */
		CALL(&h, h.main, Q_H2D, t + 500 * us, t + 510 * us, .bytes = 64, .stream = 1);
		CALL(&h, h.main, Q_D2H, t + 1100 * us, t + 1110 * us, .bytes = 64, .stream = 1);
		py_end(&h, t + 1150 * us, h.main, "MessageQueue.enqueue"); /* its own */
		CALL(&h, h.main, Q_STREAM_SYNC, t + 1200 * us, t + 9 * MS, .stream = 1);
		py_end(&h, t + 9500 * us, h.main, "MessageQueue.dequeue"); /* put long ago */
	}
	w = host_open(&h);
	x = host_build(w);
	s = hb_path__segs(hb_host__path(x), 100, &n);
	assert_true(n >= 6);
	assert_tiles(s, n, AT(9 * MS), AT(199 * MS));
	assert_int_equal(s[0].begin, AT(9 * MS));
	assert_int_equal(s[0].end, AT(10 * MS + 400 * us));
	assert_int_equal(s[0].kind, HB_SEG_RUN);
	assert_int_equal(hb_timeline__thread(hb_host__timeline(x), s[0].thread)->task->tid, 200);
	assert_int_equal(s[1].end, AT(10 * MS + 450 * us));
	assert_int_equal(s[1].kind, HB_SEG_RUN);
	assert_int_equal(hb_timeline__thread(hb_host__timeline(x), s[1].thread)->task->tid, 100);
	hb_host__free(x);
	rig_close(&h.r, w);
}

static void covered_once(void **state)
{
	for (seed = 1; seed <= 60; seed++) {
		struct host_rig h = host_new("path-random");
		u32 keep = seed;
		struct hb_window *w;
		struct hb_host *x;

		random_records(&h, seed % 2);
		w = host_open(&h);
		x = host_build(w);
		for (u32 t = 0; t < hb_timeline__threads(hb_host__timeline(x)); t++) {
			u64 begin = START + rnd(100000), end = begin + 1 + rnd(200000);
			struct hb_range gain, idle = hb_busy__idle_in(hb_host__busy(x), 100, begin, end);
			struct hb_seg *s;
			int n = hb_path__walk(hb_host__timeline(x), hb_host__wake(x), t, begin, end, &s);

			assert_true(n > 0);
			assert_tiles(s, (u32)n, begin, end);
			free(s);
			/* nothing shrunk, nothing gained */
			if (keep % 2) {
				assert_int_equal(
				    hb_path__what_if(hb_host__path(x), t, begin, end, NULL, 0, &gain), 0);
				assert_int_equal(gain.max, 0);
			}
			assert_true(idle.min <= idle.likely && idle.likely <= idle.max &&
				    idle.max <= end - begin);
		}
		assert_busy_tiles(x, 100);
		assert_busy_tiles(x, 200);
		hb_host__free(x);
		rig_close(&h.r, w);
		seed = keep;
	}
}

/* ---- what if ---- */

static u64 gain_of(struct hb_host *x, u32 tid, u64 begin, u64 end, u32 of, u64 from, u64 to, u32 keep,
		   bool max)
{
	const struct hb_timeline *tl = hb_host__timeline(x);
	struct hb_shrink k = {
	    .thread = hb_timeline__by_tid(tl, of), .keep = keep, .begin = AT(from), .end = AT(to)};
	struct hb_range g;

	assert_int_equal(
	    hb_path__what_if(hb_host__path(x), hb_timeline__by_tid(tl, tid), AT(begin), AT(end), &k, 1, &g),
	    0);
	assert_true(g.min <= g.likely && g.likely <= g.max);
	return max ? g.max : g.min;
}

/* main waits for two helpers; the second one to finish decides. */
static void slack_limits_the_gain(void **state)
{
	struct host_rig h = host_new("whatif-slack");
	struct hb_window *w;
	struct hb_host *x;

	SLEEP(&h, h.helper, 0, 5, 5, 100, FUTEX(1));
	SLEEP(&h, h.io, 0, 6, 6, 100, FUTEX(2));
	SLEEP(&h, h.main, 10, 70, 72, 101, FUTEX(3));	/* for the helper: it ran 5-70 */
	SLEEP(&h, h.main, 73, 100, 101, 102, FUTEX(4)); /* for the other: it ran 6-100 */
	w = host_open(&h);
	x = host_build(w);
	/* half of the helper's work less: nobody comes earlier, the other one is as late as before */
	assert_int_equal(gain_of(x, 100, 0, 120, 101, 5, 70, 500, true), 0);
	/* the other one without its last 20: 20 earlier */
	assert_int_equal(gain_of(x, 100, 0, 120, 102, 80, 100, 0, true), 20);
	/* without all of it: now the helper decides, at 73 */
	assert_int_equal(gain_of(x, 100, 0, 120, 102, 6, 100, 0, true), 28);
	/* main's own last stretch */
	assert_int_equal(gain_of(x, 100, 0, 120, 100, 101, 120, 0, true), 19);
	assert_int_equal(gain_of(x, 100, 0, 120, 100, 101, 111, 500, true), 5);
	/* a sleep itself, as if the answer came at once */
	assert_int_equal(gain_of(x, 100, 0, 120, 100, 73, 101, 0, true), 28);
	/* others' time is nobody's gain here */
	assert_int_equal(gain_of(x, 100, 0, 120, 101, 80, 100, 0, true), 0);
	hb_host__free(x);
	rig_close(&h.r, w);
}

/* Work of one kind takes 100 us, as 20 waits show. Then: launch, 300 us of host work, launch, wait. The
 * device was probably idle for 200 of these 300, and its two pieces of work cannot be done side by side. */
static void what_the_device_probably_did(void **state)
{
	struct host_rig h = host_new("whatif-likely");
	struct hb_window *w;
	struct hb_host *x;
	struct hb_range g;
	u64 t = 20 * MS;
	struct hb_shrink k = {.begin = AT(t + 10 * US), .end = AT(t + 290 * US)};

	for (u64 i = 0; i < 20; i++) {
		CALL(&h, h.main, Q_LAUNCH, i * MS + 10 * US, i * MS + 10 * US, .handle = 7, .gx = 8);
		CALL(&h, h.main, Q_DEVICE_SYNC, i * MS + 12 * US, i * MS + 110 * US);
	}
	CALL(&h, h.main, Q_LAUNCH, t, t, .handle = 7, .gx = 8);
	CALL(&h, h.main, Q_LAUNCH, t + 300 * US, t + 300 * US, .handle = 7, .gx = 8);
	CALL(&h, h.main, Q_DEVICE_SYNC, t + 302 * US, t + 400 * US);
	w = host_open(&h);
	x = host_build(w);
	k.thread = hb_timeline__by_tid(hb_host__timeline(x), 100);
	assert_int_equal(hb_path__what_if(hb_host__path(x), k.thread, AT(0), AT(t + 410 * US), &k, 1, &g), 0);
	assert_int_equal(g.min, 0);	   /* if the first piece took all the time */
	assert_int_equal(g.max, 280 * US); /* if it took none */
	if (g.likely < 195 * US || g.likely > 205 * US)
		fail_msg("%llu ns are likely gained", (unsigned long long)g.likely);
	hb_host__free(x);
	rig_close(&h.r, w);
}

/* A preemption inside of a wait: until the device is done it costs nothing. */
static void preempted_while_it_waits(void **state)
{
	struct host_rig h = host_new("whatif-preempted");
	struct hb_window *w;
	struct hb_host *x;

	CALL(&h, h.main, Q_DEVICE_SYNC, 0, 5 * US);
	CALL(&h, h.main, Q_LAUNCH, 10 * US, 10 * US);
	SLEEP(&h, h.main, 50 * US, 50 * US, 150 * US, 0, .state = PREEMPTED);
	SLEEP(&h, h.main, 160 * US, 300 * US, 380 * US, 0, .sysno = 16);
	CALL(&h, h.main, Q_DEVICE_SYNC, 20 * US, 390 * US);
	w = host_open(&h);
	x = host_build(w);
	assert_int_equal(gain_of(x, 100, 0, 400 * US, 100, 50 * US, 150 * US, 0, true), 0);
	/* after it, ready to run and without a CPU, all of it */
	assert_int_equal(gain_of(x, 100, 0, 400 * US, 100, 300 * US, 380 * US, 0, false), 80 * US);
	hb_host__free(x);
	rig_close(&h.r, w);
}

/* Launch at 10 us, 100 us of host work, launch, wait until 300 us. Was it the host's work or the device's? */
static void the_device_in_between(void **state)
{
	struct host_rig h = host_new("whatif-device");
	struct hb_window *w;
	struct hb_host *x;
	u64 us = 1000;

	CALL(&h, h.main, Q_DEVICE_SYNC, 0, 5 * us);
	CALL(&h, h.main, Q_LAUNCH, 10 * us, 10 * us);
	CALL(&h, h.main, Q_LAUNCH, 110 * us, 110 * us);
	CALL(&h, h.main, Q_DEVICE_SYNC, 120 * us, 300 * us);
	w = host_open(&h);
	x = host_build(w);
	/* the device may have been at work since 10: nothing gained; or only from 110 on: all of it */
	assert_int_equal(gain_of(x, 100, 0, 310 * us, 100, 20 * us, 100 * us, 0, false), 0);
	assert_int_equal(gain_of(x, 100, 0, 310 * us, 100, 20 * us, 100 * us, 0, true), 80 * us);
	/* before the first launch the device was idle for sure */
	assert_int_equal(gain_of(x, 100, 0, 310 * us, 100, 5 * us, 9 * us, 0, false), 4 * us);
	hb_host__free(x);
	rig_close(&h.r, w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(through_two_processes),
	    cmocka_unit_test(kinds_of_time),
	    cmocka_unit_test(outside),
	    cmocka_unit_test(contradictions),
	    cmocka_unit_test(over_the_device),
	    cmocka_unit_test(over_an_event),
	    cmocka_unit_test(message_in_shared_memory),
	    cmocka_unit_test(covered_once),
	    cmocka_unit_test(slack_limits_the_gain),
	    cmocka_unit_test(the_device_in_between),
	    cmocka_unit_test(what_the_device_probably_did),
	    cmocka_unit_test(preempted_while_it_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
