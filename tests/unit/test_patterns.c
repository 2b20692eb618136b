/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What is done with all patterns alike: gate, causes and effects, three lists; and those about waiting and
 * the CPU. Each fires on what is planted, and is ruled out on its twin. */
#include "patterns_rig.h"

/* ---- P21 ---- */

static void gil(struct pat *p, u64 from, u64 to)
{
	struct hb_rec_py_gil g = {.dur = to - from,
				  .slept = to - from,
				  .gil = 0x77,
				  .holder = 101,
				  .stack = ST_DECODE,
				  .sleeps = 1};

	pat_put(p, to, p->h.main, HB_TYPE_py_gil, &g);
	PSLEEP(p, p->h.main, from, to, to, 101, .chankind = HB_CHAN_FUTEX, .chan = 0x70, .sysno = SYS_FUTEX);
}

static void waits_for_the_gil(void **state)
{
	struct pat p = pat_new("gil");
	const struct hb_finding *x;

	pat_steps(&p);
	pat_sample(&p, p.h.helper, MS, MS, 0, HB_SYSNO_NONE); /* the holder runs */
	for (u64 i = 0; i < STEPS; i++)
		gil(&p, i * STEP + MS, i * STEP + 3 * MS);
	pat_run(&p);
	x = pat_first(&p, "P21", STEPS * 2 * MS);
	assert_int_equal(x->count, STEPS);
	assert_int_equal(x->worst[0].waker->tid, 101);
	assert_int_equal(x->worst[0].end - x->worst[0].begin, 2 * MS);
	assert_int_equal(x->proc->pid, 100);
	assert_int_equal(x->n_measures, 2);
	assert_non_null(strstr(x->what, "helper (101) held it in 100 %"));
	/* Replayed without the waits: each step but the first ends sooner by as much. */
	assert_true(x->has_what_if && x->what_if.min <= x->what_if.likely &&
		    x->what_if.likely <= x->what_if.max);
	assert_true(x->what_if.max > 98 * 2 * MS && x->what_if.max <= 100 * 2 * MS);
	pat_end(&p);
}

/* The same waits while the device is busy cost nothing; short ones are none. */
static void gil_twins(void **state)
{
	struct pat p = pat_new("gil-busy"), q = pat_new("gil-short");

	pat_steps(&p);
	pat_steps(&q);
	for (u64 i = 0; i < STEPS; i++) {
		gil(&p, i * STEP + 5 * MS, i * STEP + 7 * MS);
		gil(&q, i * STEP + MS, i * STEP + MS + 20 * US);
	}
	pat_run(&p);
	pat_silent(&p, "P21");
	assert_string_equal(pat_ruled_out(&p, "P21")->measure.param->key, "exposed_share");
	pat_end(&p);
	pat_run(&q);
	pat_silent(&q, "P21");
	assert_string_equal(pat_ruled_out(&q, "P21")->measure.param->key, "wait_share");
	assert_int_equal(pat_ruled_out(&q, "P21")->measure.threshold, 50000);
	pat_end(&q);
}

/* ---- P22 ---- */

static void lock_wait(struct pat *p, u16 task, u64 from, u64 to, u32 waker)
{
	PSLEEP(p, task, from, to, to, waker, .chankind = HB_CHAN_FUTEX, .chan = 0x1234, .sysno = SYS_FUTEX,
	       .a2 = 2);
}

/* main, helper and io queue for one lock, which goes round every 0.4 ms. */
static void convoy(struct pat *p, u64 t)
{
	lock_wait(p, p->h.helper, t, t + 400 * US, 102);
	lock_wait(p, p->h.io, t + 10 * US, t + 800 * US, 101);
	lock_wait(p, p->h.main, t + 20 * US, t + 1200 * US, 102);
	lock_wait(p, p->h.helper, t + 500 * US, t + 1600 * US, 100);
	lock_wait(p, p->h.io, t + 900 * US, t + 2000 * US, 101);
	lock_wait(p, p->h.main, t + 1300 * US, t + 2400 * US, 102);
}

static void many_queue_for_a_lock(void **state)
{
	struct pat p = pat_new("convoy"), q = pat_new("condition");
	const struct hb_finding *x;

	pat_steps(&p);
	pat_steps(&q);
	pat_sample(&q, q.h.server, MS, MS, 0, HB_SYSNO_NONE);
	for (u64 i = 0; i < STEPS; i++) {
		u64 t = i * STEP + 500 * US;

		convoy(&p, t);
		/* Waits for a condition: whoever signals never waits there. */
		lock_wait(&q, q.h.helper, t, t + 2 * MS, 200);
		lock_wait(&q, q.h.io, t, t + 2 * MS, 200);
		lock_wait(&q, q.h.main, t, t + 2 * MS, 200);
	}
	pat_run(&p);
	x = pat_first(&p, "P22", STEPS * 2280 * US);
	assert_non_null(strstr(x->what, "0x1234"));
	assert_non_null(x->worst[0].waker);
	pat_end(&p);
	pat_run(&q);
	pat_silent(&q, "P22");
	assert_string_equal(pat_ruled_out(&q, "P22")->measure.param->key, "owned_share");
	pat_end(&q);
}

/* ---- P23 ---- */

/* Two threads of a pool wake each other every 40 us; main waits for the last one. */
static void churn(struct pat *p, const u16 *pool, u64 t)
{
	const u32 tid[2] = {110, 111};
	u64 at = t + 100 * US, k = 0;

	for (; at + 40 * US <= t + 3900 * US; at += 40 * US, k++) /* thread k & 1 runs */
		PSLEEP(p, pool[!(k & 1)], at, at + 39 * US, at + 40 * US, tid[k & 1],
		       .chankind = HB_CHAN_FUTEX, .chan = 0x99, .sysno = SYS_FUTEX);
	PSLEEP(p, p->h.main, t + 50 * US, at, at + US, tid[k & 1], .chankind = HB_CHAN_FUTEX, .chan = 0x98,
	       .sysno = SYS_FUTEX);
}

static void a_pool_parks_for_each_task(void **state)
{
	struct pat p = pat_new("pool"), q = pat_new("pool-batch");
	u16 pool[2];

	pat_steps(&p);
	pool[0] = rig_task(&p.h.r, 100, 110, "pool-0", true);
	pool[1] = rig_task(&p.h.r, 100, 111, "pool-1", true);
	for (u64 i = 0; i < STEPS; i++)
		churn(&p, pool, i * STEP);
	pat_run(&p);
	pat_first(&p, "P23", STEPS * 3800 * US);
	pat_end(&p);

	pat_steps(&q);
	pool[0] = rig_task(&q.h.r, 100, 110, "pool-0", true);
	pool[1] = rig_task(&q.h.r, 100, 111, "pool-1", true);
	for (u64 i = 0; i < STEPS; i++)
		for (int k = 0; k < 2; k++)
			PSLEEP(&q, pool[k], i * STEP, i * STEP + 5 * MS, i * STEP + 5 * MS, 100,
			       .chankind = HB_CHAN_FUTEX, .chan = 0x99, .sysno = SYS_FUTEX);
	pat_run(&q);
	pat_silent(&q, "P23");
	pat_end(&q);
}

/* Threads of Python have the process's name, whatever they were made for, and take turns at the GIL: that is
 * no pool. Two that run the same function are one. */
static void threads_of_one_name_are_no_pool(void **state)
{
	static const char *const routine[2][2] = {{"_worker", "process_output_sockets"},
						  {"_worker", "_worker"}};

	for (int alike = 0; alike < 2; alike++) {
		struct pat p = pat_new(alike ? "pool-alike" : "pool-apart");
		u16 pool[2];

		pat_steps(&p);
		for (u32 k = 0; k < 2; k++) {
			pool[k] = rig_task(&p.h.r, 100, 110 + k, "EngineCore", true);
			pat_stack(&p, 100, 77 + k, "/usr/lib/python3.11/threading.py", "Thread._bootstrap",
				  "Thread._bootstrap_inner", "Thread.run", routine[alike][k], NULL);
			PSLEEP(&p, pool[k], US, 2 * US, 2 * US, 0, .chankind = HB_CHAN_FUTEX,
			       .sysno = SYS_FUTEX, .stack = 77 + k);
		}
		for (u64 i = 0; i < STEPS; i++)
			churn(&p, pool, i * STEP);
		pat_run(&p);
		if (alike)
			pat_first(&p, "P23", STEPS * 3800 * US);
		else
			pat_silent(&p, "P23");
		pat_end(&p);
	}
}

/* A thread that sleeps until it has the GIL is not done with its task. */
static void waiting_for_the_gil_is_no_parking(void **state)
{
	struct pat p = pat_new("pool-gil");
	u16 pool[2];

	pat_steps(&p);
	pool[0] = rig_task(&p.h.r, 100, 110, "pool-0", true);
	pool[1] = rig_task(&p.h.r, 100, 111, "pool-1", true);
	for (u64 i = 0; i < STEPS; i++) {
		churn(&p, pool, i * STEP);
		for (int k = 0; k < 2; k++)
			pat_put(&p, i * STEP + 3990 * US, pool[k], HB_TYPE_py_gil,
				&(struct hb_rec_py_gil){
				    .dur = 3900 * US, .slept = 3800 * US, .gil = 0x77, .sleeps = 90});
	}
	pat_run(&p);
	pat_silent(&p, "P23");
	assert_string_equal(pat_ruled_out(&p, "P23")->measure.param->key, "wakes");
	pat_end(&p);
}

/* ---- P24 ---- */

static void spin(struct pat *p, u16 sysno)
{
	pat_steps(p);
	for (u64 i = 0; i < STEPS; i++) {
		pat_sample(p, p->h.helper, i * STEP + MS, STEP, 0, sysno);
		PSLEEP(p, p->h.main, i * STEP + MS, i * STEP + MS, i * STEP + 3 * MS, 0, .state = PREEMPTED,
		       .sysno = HB_SYSNO_NONE, .wsys = HB_SYSNO_NONE);
	}
	pat_run(p);
}

/* The run-queue delay that it makes is its effect. */
static void one_asks_in_a_loop(void **state)
{
	struct pat p = pat_new("spin"), q = pat_new("work");
	const struct hb_finding *x;

	spin(&p, SYS_YIELD);
	x = pat_first(&p, "P24", STEPS * 2 * MS);
	assert_int_equal(x->worst[0].waker->tid, 101);
	assert_ptr_equal(pat_get(&p, "P30")->cause, x);
	assert_int_equal(x->n_effects, 1);
	pat_end(&p);
	spin(&q, HB_SYSNO_NONE); /* it works: only the delay is found */
	pat_silent(&q, "P24");
	pat_first(&q, "P30", STEPS * 2 * MS);
	pat_end(&q);
}

/* ---- P25 ---- */

enum { ST_RAISE = 41, ST_OTHER };

static void exceptions(struct pat *p, u64 each, u64 frames)
{
	struct hb_rec_py_exception x = {.exc_type = 0x500,
					.count = each,
					.unwound = each * frames,
					.stack = ST_RAISE,
					.site = 43,
					.name = {"NotThere"}};

	pat_steps(p);
	pat_stack(p, 100, ST_RAISE, "/srv/cache.py", "run", "find", "look", NULL);
	pat_stack(p, 100, 43, "/srv/cache.py", "look", NULL);
	pat_stack(p, 100, ST_OTHER, "/srv/cache.py", "run", "add", NULL);
	for (u64 i = 0; i < STEPS; i++) {
		pat_put(p, i * STEP + MS, p->h.main, HB_TYPE_py_exception, &x);
		pat_sample(p, p->h.main, i * STEP + 2 * MS, 2 * MS, ST_RAISE, HB_SYSNO_NONE);
		pat_sample(p, p->h.main, i * STEP + 3 * MS, MS, ST_OTHER, HB_SYSNO_NONE);
	}
	pat_run(p);
}

static void exceptions_as_control_flow(void **state)
{
	struct pat p = pat_new("raise"), q = pat_new("raise-few"), r = pat_new("raise-far");
	const struct hb_finding *x;

	exceptions(&p, 100, 1);
	x = pat_first(&p, "P25", STEPS * 2 * MS);
	assert_non_null(strstr(x->what, "NotThere is raised 10000 times a second in look"));
	pat_end(&p);
	exceptions(&q, 1, 1);
	pat_silent(&q, "P25");
	pat_end(&q);
	exceptions(&r, 100, 9); /* an error that goes up to somebody who handles it */
	pat_silent(&r, "P25");
	assert_string_equal(pat_ruled_out(&r, "P25")->measure.param->key, "frames");
	pat_end(&r);
}

/* ---- P26 ---- */

static void gc(struct pat *p, u16 task, u64 from, u64 to)
{
	struct hb_rec_py_gc g = {.dur = to - from, .generation = 2, .stack = ST_DECODE};

	pat_put(p, to, task, HB_TYPE_py_gc, &g);
}

static void collections(void **state)
{
	struct pat p = pat_new("gc"), q = pat_new("gc-short"), r = pat_new("gc-busy");

	pat_steps(&p);
	pat_steps(&q);
	pat_steps(&r);
	for (u64 i = 0; i < STEPS; i++)
		gc(&p, p.h.main, i * STEP + MS, i * STEP + 3 * MS);
	gc(&q, q.h.main, MS, 2 * MS);
	for (u64 i = 0; i < STEPS; i++)
		gc(&r, r.h.helper, i * STEP + 5 * MS, i * STEP + 7 * MS);
	pat_run(&p);
	pat_first(&p, "P26", STEPS * 2 * MS);
	pat_end(&p);
	pat_run(&q);
	pat_silent(&q, "P26");
	pat_end(&q);
	pat_run(&r); /* the rule holds, and it costs nothing: the gate */
	pat_silent(&r, "P26");
	assert_string_equal(pat_ruled_out(&r, "P26")->pattern->id, "P26");
	assert_string_equal(pat_ruled_out(&r, "P26")->measure.param->key, "exposed_share");
	assert_non_null(strstr(pat_ruled_out(&r, "P26")->what, "too little to be worth a change"));
	pat_end(&r);
}

/* A front end gives no device work: its pause holds requests up. */
static void collection_of_a_front_end(void **state)
{
	struct pat p = pat_new("gc-front");
	const struct hb_finding *x;

	pat_steps(&p);
	gc(&p, p.h.server, 100 * MS, 300 * MS);
	pat_run(&p);
	x = pat_first(&p, "P26", 0);
	assert_int_equal(x->delay_ns, 200 * MS);
	assert_int_equal(x->share, 200000);
	assert_int_equal(x->proc->pid, 200);
	pat_end(&p);
}

/* ---- P27, P30, P31 ---- */

static void sleeps(struct pat *p, u64 at, u64 length, u64 ready, struct hb_rec_offcpu o)
{
	pat_steps(p);
	for (u64 i = 0; i < STEPS; i++)
		pat_sleep(p, p->h.main, i * STEP + at, i * STEP + at + length - ready, i * STEP + at + length,
			  0, o);
	pat_run(p);
}

static void files(void **state)
{
	const struct hb_rec_offcpu sync = {
	    .sysno = SYS_FSYNC, .wsys = HB_SYSNO_NONE, .state = HB_TSTATE_DISK, .a0 = 5};
	struct hb_rec_offcpu write = {.sysno = SYS_WRITE, .wsys = HB_SYSNO_NONE, .a0 = 6, .chan = 77};
	struct pat p = pat_new("fsync"), q = pat_new("fsync-busy"), r = pat_new("write"),
		   s = pat_new("write-pipe");

	rig_fd(&p.h.r, 100, 5, 0, "/var/log/engine.log");
	sleeps(&p, MS, 2 * MS, 0, sync);
	assert_non_null(strstr(pat_first(&p, "P27", STEPS * 2 * MS)->what, "fsync on /var/log/engine.log"));
	pat_end(&p);
	sleeps(&q, 5 * MS, 2 * MS, 0, sync);
	pat_silent(&q, "P27");
	pat_end(&q);
	rig_fd(&r.h.r, 100, 6, 77, "/var/log/engine.log");
	write.chankind = HB_CHAN_FILE;
	sleeps(&r, MS, 2 * MS, 0, write);
	pat_first(&r, "P27", STEPS * 2 * MS);
	pat_end(&r);
	rig_fd(&s.h.r, 100, 6, 77, "pipe:[77]");
	write.chankind = HB_CHAN_PIPE;
	sleeps(&s, MS, 2 * MS, 0, write);
	pat_silent(&s, "P27");
	pat_end(&s);
}

static void no_cpu(void **state)
{
	const struct hb_rec_offcpu o = {
	    .sysno = HB_SYSNO_NONE, .wsys = HB_SYSNO_NONE, .state = PREEMPTED, .ran = 900, .ran_pid = 900};
	const struct hb_finding *x;
	struct pat p = pat_new("ready"), q = pat_new("ready-short"), r = pat_new("ready-busy");

	sleeps(&p, MS, 2 * MS, 2 * MS, o);
	x = pat_first(&p, "P30", STEPS * 2 * MS);
	assert_int_equal(x->count, STEPS);
	assert_non_null(strstr(x->what, "meanwhile bystander (pid 900) had its CPU for 100 % of the time"));
	assert_int_equal(x->worst[0].waker->tid, 900);
	pat_end(&p);
	sleeps(&q, MS, 50 * US, 50 * US, o); /* what a wake-up costs anyway */
	pat_silent(&q, "P30");
	pat_end(&q);
	sleeps(&r, 5 * MS, 2 * MS, 2 * MS, o);
	pat_silent(&r, "P30");
	pat_end(&r);
}

static void faults(void **state)
{
	const struct hb_rec_offcpu o = {
	    .sysno = HB_SYSNO_NONE, .wsys = HB_SYSNO_NONE, .state = HB_TSTATE_DISK};
	struct pat p = pat_new("faults"), q = pat_new("faults-few");

	sleeps(&p, MS, 2 * MS, 0, o);
	pat_first(&p, "P31", STEPS * 2 * MS);
	pat_end(&p);
	sleeps(&q, MS, 50 * US, 0, o);
	pat_silent(&q, "P31");
	pat_end(&q);
}

/* ---- P29 ---- */

/* Three threads that could run stand still together from `off` to the end of each period. */
static void throttled(struct pat *p, u64 period, u64 off)
{
	const u16 task[3] = {p->h.main, p->h.helper, p->h.io};

	pat_steps(p);
	for (u64 t = 0; t + period <= WALL; t += period)
		for (u64 k = 0; k < 3; k++)
			PSLEEP(p, task[k], t + off, t + off, t + period + k * 5 * US, 0, .state = PREEMPTED,
			       .sysno = HB_SYSNO_NONE, .wsys = HB_SYSNO_NONE);
	pat_run(p);
}

static void quota(void **state)
{
	struct pat p = pat_new("quota"), q = pat_new("no-quota");
	const struct hb_finding *x;

	throttled(&p, 100 * MS, 40 * MS);
	x = pat_get(&p, "P29");
	assert_non_null(x);
	assert_ptr_equal(hb_findings__at(p.f, 0), x);
	assert_ptr_equal(pat_get(&p, "P30")->cause, x);
	pat_end(&p);
	throttled(&q, 37 * MS, 20 * MS); /* together, but in no rhythm of a quota */
	pat_silent(&q, "P29");
	assert_string_equal(pat_ruled_out(&q, "P29")->measure.param->key, "aligned");
	pat_end(&q);
}

/* ---- all of them ---- */

/* Nothing but steps: every pattern is in one list, no finding, and those without records say what they need.
 */
static void nothing_planted(void **state)
{
	struct pat p = pat_new("healthy");
	const struct hb_not_checked *n;
	u32 listed = 0, all = 0;

	for (u64 i = 0; i < STEPS; i++) {
		PCALL(&p, p.h.main, Q_LAUNCH, i * STEP + 100 * US, i * STEP + 100 * US, .gx = 8);
		PCALL(&p, p.h.main, Q_STREAM_SYNC, i * STEP + 200 * US, i * STEP + STEP,
		      .flags = HB_AFLAG_RET);
	}
	pat_run(&p);
	assert_null(hb_findings__at(p.f, 0));
	while (hb_patterns()[all + 1]) /* without the gates */
		all++;
	for (u32 i = 0; i < all; i++) {
		const char *id = hb_patterns()[i + 1]->id;

		listed += (pat_ruled_out(&p, id) != NULL) + (pat_not_checked(&p, id) != NULL);
	}
	assert_int_equal(listed, all);
	n = pat_not_checked(&p, "P32");
	assert_string_equal(n->text,
			    "needs placement of memory and CPUs by NUMA node (no window holds it yet; "
			    "numastat -p PID tells)");
	assert_int_equal(n->needs, HB_NEED_NUMA);
	n = pat_not_checked(&p, "P30");
	assert_string_equal(n->text, "needs scheduler events");
	assert_string_equal(pat_not_checked(&p, "P40d")->text,
			    "needs device records (as in imported traces: import)");
	pat_end(&p);
}

static void nothing_at_all(void **state)
{
	struct pat p = pat_new("empty");

	pat_run(&p);
	assert_null(hb_findings__at(p.f, 0));
	assert_null(hb_findings__ruled_out(p.f, 0));
	assert_non_null(hb_findings__not_checked(p.f, 0));
	pat_end(&p);
}

/* Host code fills the idle time: the symptom alone. A collection in the same time is its cause. */
static void cause_before_symptom(void **state)
{
	struct pat p = pat_new("symptom"), q = pat_new("cause");
	const struct hb_finding *x, *y;

	pat_steps(&p);
	pat_steps(&q);
	for (u64 i = 0; i < STEPS; i++) {
		PSLEEP(&p, p.h.helper, i * STEP, i * STEP + MS, i * STEP + MS, 0, .sysno = 35,
		       .chankind = HB_CHAN_TIMER);
		PSLEEP(&q, q.h.helper, i * STEP, i * STEP + MS, i * STEP + MS, 0, .sysno = 35,
		       .chankind = HB_CHAN_TIMER);
		gc(&q, q.h.main, i * STEP + 500 * US, i * STEP + 3500 * US);
	}
	pat_run(&p);
	x = pat_first(&p, "P01", STEPS * IDLE);
	assert_null(x->cause);
	pat_end(&p);
	pat_run(&q);
	x = pat_first(&q, "P26", STEPS * 3 * MS);
	y = pat_get(&q, "P01");
	assert_ptr_equal(y->cause, x);
	assert_int_equal(x->n_effects, 1);
	assert_ptr_equal(hb_findings__at(q.f, 1), y);
	pat_end(&q);
}

/* Host code fills the idle time, and `length` of it in each step is a collection. */
static void collect_a_little(struct pat *p, u64 length)
{
	pat_steps(p);
	for (u64 i = 0; i < STEPS; i++) {
		PSLEEP(p, p->h.helper, i * STEP, i * STEP + MS, i * STEP + MS, 0, .sysno = 35,
		       .chankind = HB_CHAN_TIMER);
		gc(p, p->h.main, i * STEP + 500 * US, i * STEP + 500 * US + length);
	}
	pat_run(p);
}

/* One that covers a tenth of the symptom does not explain it: both stand. One that covers less is not what an
 * operator should read first: the symptom says more. */
static void too_little_to_explain(void **state)
{
	struct pat p = pat_new("little"), q = pat_new("less");

	collect_a_little(&p, 400 * US);
	pat_first(&p, "P26", STEPS * 400 * US);
	assert_null(pat_get(&p, "P01")->cause);
	pat_end(&p);
	collect_a_little(&q, 300 * US);
	pat_first(&q, "P01", STEPS * IDLE);
	assert_null(pat_get(&q, "P26")->cause);
	pat_end(&q);
}

/* The gate and the rules follow what is set. */
static void thresholds_count(void **state)
{
	struct pat p = pat_new("set");
	struct hb_thresholds *t = hb_thresholds__new();
	struct hb_error e = {0};

	assert_int_equal(hb_thresholds__set(t, "p26.share=30%", &e), 0);
	assert_int_equal(hb_thresholds__set(t, "p26.single=1s", &e), 0);
	pat_steps(&p);
	for (u64 i = 0; i < STEPS; i++)
		gc(&p, p.h.main, i * STEP + MS, i * STEP + 3 * MS);
	pat_run_with(&p, t);
	pat_silent(&p, "P26");
	assert_int_equal(pat_ruled_out(&p, "P26")->measure.threshold, 1000000000);
	pat_end(&p);
	hb_thresholds__free(t);
}

/* Whatever they are set to, nothing is divided by them: all at once to nothing, on windows with much in them.
 */
static void thresholds_of_nothing(void **state)
{
	struct hb_thresholds *t = hb_thresholds__new();

	for (const struct hb_pattern *const *x = hb_patterns(); *x; x++) {
		for (const struct hb_param *a = (*x)->params; a && a->key; a++) {
			char text[80];
			struct hb_error e = {0};

			snprintf(text, sizeof(text), "%s.%s=%s", (*x)->id, a->key,
				 a->unit == HB_UNIT_BYTES ? "1" : "0");
			if (hb_thresholds__set(t, text, &e))
				fail_msg("%s", e.text);
		}
	}
	for (int k = 0; k < 3; k++) {
		struct pat p = pat_new("zero");

		for (u64 i = 0; k && i < STEPS; i++) {
			pat_step(&p, i * STEP, 10);
			gil(&p, i * STEP + MS, i * STEP + 2 * MS);
			gc(&p, p.h.helper, i * STEP + MS, i * STEP + 2 * MS);
			PSLEEP(&p, p.h.helper, i * STEP + 2 * MS, i * STEP + 2 * MS, i * STEP + 9 * MS, 0,
			       .state = PREEMPTED, .sysno = HB_SYSNO_NONE);
			if (k > 1)
				convoy(&p, i * STEP + 2500 * US);
		}
		pat_run_with(&p, t);
		pat_end(&p);
	}
	hb_thresholds__free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(waits_for_the_gil),
	    cmocka_unit_test(gil_twins),
	    cmocka_unit_test(many_queue_for_a_lock),
	    cmocka_unit_test(a_pool_parks_for_each_task),
	    cmocka_unit_test(threads_of_one_name_are_no_pool),
	    cmocka_unit_test(waiting_for_the_gil_is_no_parking),
	    cmocka_unit_test(one_asks_in_a_loop),
	    cmocka_unit_test(exceptions_as_control_flow),
	    cmocka_unit_test(collections),
	    cmocka_unit_test(collection_of_a_front_end),
	    cmocka_unit_test(files),
	    cmocka_unit_test(no_cpu),
	    cmocka_unit_test(faults),
	    cmocka_unit_test(quota),
	    cmocka_unit_test(nothing_planted),
	    cmocka_unit_test(nothing_at_all),
	    cmocka_unit_test(cause_before_symptom),
	    cmocka_unit_test(too_little_to_explain),
	    cmocka_unit_test(thresholds_count),
	    cmocka_unit_test(thresholds_of_nothing),
	};

	return cmocka_run_group_tests_name("patterns: waiting and the CPU", tests, NULL, NULL);
}
