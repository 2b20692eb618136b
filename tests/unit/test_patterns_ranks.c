/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Two ranks whose collectives match on their devices: who is late, who has more to do, how fast they are. */
#include "base/map.h"
#include "device_rig.h"

#define PEAKS "device Test* peak bf16=989 hbm=3.35 link=0.45 sms=132\n"

struct plan {
	u64 late;   /* rank 1 launches so much later */
	bool turns; /* or whom a coin picks */
	u32 every;  /* rank 1 is late in each such step only; in the others a coin picks who is, by 10 us */
	u64 experts[2];	  /* time of the grouped product, by rank */
	u64 gemm[2];	  /* of the dense one */
	u64 transfer;	  /* of the collective, once all are there; 0: 300 us */
	u64 clock;	  /* rank 1's device clock is ahead */
	u64 drift;	  /* and by so much more in each step */
	u64 set;	  /* and by so much from the middle on, where it was set */
	bool first_late;  /* it is rank 0 that comes late */
	u32 world;	  /* ranks that operators tell; 0: no operators */
	u32 steps;	  /* 0: 90 */
	bool only_first;  /* no records of rank 1's device */
	bool strangers;	  /* each leaves its collective by itself: they are not of one group */
	const char *name; /* of the grouped product */
};

static u64 max_of(u64 a, u64 b)
{
	return a > b ? a : b;
}

/* What the profiler writes around a collective's launch. */
static void say(struct pat *p, u16 task, u64 at, u32 world, u32 seq)
{
	struct hb_rec_op o = {.dur = 40 * US, .kind = HB_OPKIND_CPU_OP};
	char text[160];

	snprintf(text, sizeof(text),
		 "{\"collective\":\"allreduce\",\"dtype\":\"BFloat16\",\"group\":\"tp\",\"in\":33554432,"
		 "\"out\":33554432,\"ranks\":%u,\"seq\":%u}",
		 world, seq);
	o.name = hb_window_writer__string(p->h.r.w, "record_param_comms");
	o.values = hb_window_writer__string(p->h.r.w, text);
	pat_put(p, at + 40 * US, task, HB_TYPE_op, &o);
}

static void one_step(struct pat *p, const struct plan *x, u32 i, const u16 *task)
{
	u64 t = MS + i * STEP, begin[2], end;
	bool pause = !x->every || i % x->every == 0;
	u32 loser = x->turns || !pause ? hb_hash64(i + 1) >> 63 : !x->first_late;
	u64 late = pause ? x->late : 10 * US;
	u64 clock = x->clock + i * x->drift + (i >= 45 ? x->set : 0);

	for (u32 r = 0; r < 2; r++)
		begin[r] = t + 200 * US + (r == loser ? late : 0) + x->gemm[r] + x->experts[r] + 20 * US;
	end = max_of(begin[0], begin[1]) + (x->transfer ? x->transfer : 300 * US);
	for (u32 r = 0; r < 2; r++) {
		u64 at = t + 100 * US + (r == loser ? late : 0), ahead = r ? clock : 0;

		if (r && x->only_first)
			continue;
		if (r && x->strangers) {
			ahead = hb_hash64(i + 7) % (3 * MS);
			end = begin[r] + (x->transfer ? x->transfer : 300 * US);
		}
		launch(p, Q_TIMED, at, 5 * US,
		       (struct op){.begin = at + 100 * US + ahead,
				   .length = x->gemm[r],
				   .name = "gemm",
				   .task = task[r]});
		launch(p, Q_TIMED, at + 10 * US, 5 * US,
		       (struct op){.begin = at + 110 * US + x->gemm[r] + ahead,
				   .length = x->experts[r],
				   .name = x->name ? x->name : "fused_moe_kernel",
				   .task = task[r]});
		launch(p, Q_TIMED, at + 20 * US, 5 * US,
		       (struct op){.begin = begin[r] + ahead,
				   .length = end - begin[r],
				   .name = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL",
				   .stream = 20,
				   .task = task[r]});
		if (x->world)
			say(p, task[r], at + 15 * US, x->world, i);
		PCALL(p, task[r], Q_STREAM_SYNC, at + 60 * US, end + 10 * US, .flags = HB_AFLAG_RET);
	}
}

static struct pat made(const char *name, const struct plan *x)
{
	struct pat p = device_new(name);
	struct hb_proc proc = {.pid = 300, .ppid = 1, .nspid = 300, .how = HB_HOW_PRESENT};
	u16 task[2] = {p.h.main};

	hb_window_writer__proc(p.h.r.w, &proc);
	task[1] = rig_task(&p.h.r, 300, 300, "rank-1", true);
	hb_window_writer__meta(p.h.r.w, "rank_of_100", "0");
	hb_window_writer__meta(p.h.r.w, "rank_of_300", "1");
	hb_window_writer__meta(p.h.r.w, "device_0_name", "Test One");
	hb_window_writer__meta(p.h.r.w, "device_0_sms", "132");
	p.peaks_text = PEAKS;
	for (u32 i = 0; i < (x->steps ? x->steps : 90); i++)
		one_step(&p, x, i, task);
	pat_run(&p);
	return p;
}

#define EVEN                                                                                                 \
	{                                                                                                    \
		3 * MS, 3 * MS                                                                               \
	}
#define GEMM                                                                                                 \
	{                                                                                                    \
		2 * MS, 2 * MS                                                                               \
	}

/* ---- P33 ---- */

static void a_rank_comes_late(void **state)
{
	struct plan x = {.late = MS, .experts = EVEN, .gemm = GEMM};
	struct pat p = made("ranks-late", &x);
	const struct hb_finding *f = pat_get(&p, "P33");

	assert_non_null(f);
	assert_int_equal(f->device_ns, 90 * MS);
	assert_int_equal(f->count, 90);
	assert_int_equal(f->proc->pid, 300);
	assert_non_null(
	    strstr(f->what, "rank 1 (process 300) comes late to 90 of 90 collectives (it is the last in 90"));
	assert_non_null(strstr(f->what, "the device of rank 0 (process 100) waits 90.00 ms in them"));
	assert_int_equal(f->confidence, HB_CONFIDENCE_HIGH);
	pat_silent(&p, "P34");
	pat_end(&p);
}

static void they_take_turns(void **state)
{
	struct plan x = {.late = MS, .turns = true, .experts = EVEN, .gemm = GEMM};
	struct pat p = made("ranks-turns", &x);

	assert_non_null(pat_get(&p, "P33"));
	assert_non_null(strstr(pat_get(&p, "P33")->what, "ranks take turns"));
	pat_end(&p);
}

/* Pauses of one rank in some steps, and who is the last by a little in the others is chance. */
static void one_pauses(void **state)
{
	struct plan x = {.late = 5 * MS, .every = 10, .experts = EVEN, .gemm = GEMM};
	struct pat p = made("ranks-pauses", &x);
	const struct hb_finding *f = pat_get(&p, "P33");

	assert_non_null(f);
	assert_int_equal(f->proc->pid, 300);
	assert_non_null(strstr(f->what, "rank 1 (process 300)"));
	assert_non_null(strstr(f->what, "% of all waiting is for it), up to 5.00 ms after the first"));
	assert_true(f->device_ns >= 9 * 5 * MS && f->device_ns <= 9 * 5 * MS + 81 * 10 * US);
	pat_end(&p);
}

/* One device's clock is ahead: their kernels end together, so nobody waits. And with both, only the wait
 * counts. */
static void clocks_differ(void **state)
{
	struct plan x = {.clock = 700 * US, .experts = EVEN, .gemm = GEMM},
		    y = {.clock = 700 * US, .late = MS, .experts = EVEN, .gemm = GEMM};
	struct pat p = made("ranks-clock", &x), q = made("ranks-clock-late", &y);

	pat_silent(&p, "P33");
	assert_string_equal(pat_ruled_out(&p, "P33")->measure.param->key, "device_wait");
	assert_int_equal(pat_ruled_out(&p, "P33")->measure.value, 0);
	pat_end(&p);
	assert_int_equal(pat_get(&q, "P33")->device_ns, 90 * MS);
	assert_int_equal(pat_get(&q, "P33")->confidence, HB_CONFIDENCE_MEDIUM);
	assert_non_null(strstr(pat_get(&q, "P33")->what, "clocks are 700.0 us apart"));
	pat_end(&q);
}

/* Clocks of two hosts drift, or one is set: that makes nobody late, and hides nobody who is. */
static void clocks_drift(void **state)
{
	struct plan x = {.drift = 2 * US, .experts = EVEN, .gemm = GEMM},
		    y = {.set = 2 * MS, .experts = EVEN, .gemm = GEMM},
		    z = {
			.drift = 2 * US, .late = 500 * US, .first_late = true, .experts = EVEN, .gemm = GEMM};
	struct pat p = made("ranks-drift", &x), q = made("ranks-set", &y), r = made("ranks-drift-late", &z);
	const struct hb_finding *f;

	pat_silent(&p, "P33");
	assert_in_range(pat_ruled_out(&p, "P33")->measure.value, 0,
			10000); /* the first few have no neighbours before them */
	pat_end(&p);
	pat_silent(&q, "P33");
	pat_end(&q);
	f = pat_get(&r, "P33");
	assert_non_null(f);
	assert_non_null(strstr(pat_get(&r, "P33")->what, "rank 0 (process 100) comes late to 90 of 90"));
	assert_in_range(f->device_ns, 44 * MS, 46 * MS);
	pat_end(&r);
}

/* More than a step apart: the shift that leaves none alone is the right one, not the one with the nearest
 * ends. */
static void clocks_more_than_a_step_apart(void **state)
{
	struct plan x = {.clock = 23 * MS, .late = 500 * US, .experts = EVEN, .gemm = GEMM};
	struct pat p = made("ranks-steps-apart", &x);
	const struct hb_finding *f = pat_get(&p, "P33");

	assert_non_null(f);
	assert_non_null(strstr(f->what, "rank 1 (process 300) comes late to 90 of 90"));
	assert_non_null(strstr(f->what, "clocks are 23.00 ms apart"));
	pat_end(&p);
}

/* ns of the path of process 100's steps that are the other rank's, by the host; all of it in *all. */
static u64 path_of_other(const struct pat *p, u64 *all)
{
	const struct hb_timeline *tl = hb_host__timeline(p->host);
	u32 n;
	const struct hb_seg *g = hb_path__segs(hb_host__path(p->host), 100, &n);
	u64 sum = 0;

	*all = 0;
	for (u32 i = 0; i < n; i++) {
		*all += g[i].end - g[i].begin;
		if (hb_timeline__thread(tl, g[i].thread)->pid == 300 && g[i].kind != HB_SEG_DEVICE)
			sum += g[i].end - g[i].begin;
	}
	return sum;
}

/* From a wait in a collective the critical path goes on at the rank that came last, and still tiles the
 * steps. */
static void the_path_leads_to_the_late_rank(void **state)
{
	struct plan x = {.late = MS, .experts = EVEN, .gemm = GEMM}, y = {.experts = EVEN, .gemm = GEMM},
		    z = {.late = MS, .experts = EVEN, .gemm = GEMM, .clock = 700 * US};
	struct pat p = made("path-late", &x), q = made("path-even", &y), r = made("path-clock", &z);
	const struct hb_series *s = hb_steps__of_pid(hb_host__steps(p.host), 100);
	u64 all, other = path_of_other(&p, &all);

	assert_int_equal(all, s->sum);
	/* Each step, of 10 ms, the late rank is on the host for 4.57 ms from its last wait to its first
	 * launch. */
	assert_true(other > (u64)s->n * 4500 * US && other < (u64)s->n * 4600 * US);
	pat_end(&p);
	assert_int_equal(path_of_other(&q, &all), 0);
	pat_end(&q);
	assert_int_equal(path_of_other(&r, &all), 0); /* of other clocks nothing follows */
	pat_end(&r);
}

/* ---- P34 ---- */

static void experts_are_uneven(void **state)
{
	struct plan x = {.experts = {2 * MS, 4 * MS}, .gemm = GEMM};
	struct pat p = made("ranks-experts", &x);
	const struct hb_finding *f = pat_get(&p, "P34");

	assert_non_null(f);
	assert_int_equal(f->device_ns,
			 89 * MS); /* 4 ms against a mean of 3; what precedes the first sync is no step */
	assert_int_equal(f->count, 89);
	assert_int_equal(f->proc->pid, 300);
	assert_non_null(
	    strstr(f->what, "grouped products (experts) take 1.333 x as long on the slowest of 2 ranks"));
	assert_non_null(strstr(f->what, "it is rank 1 (process 300) in 89 of them"));
	assert_non_null(pat_get(&p, "P33")); /* the others wait for it in the collective */
	assert_ptr_equal(pat_get(&p, "P33")->cause, f);
	pat_end(&p);
}

static void attention_is_uneven(void **state)
{
	struct plan x = {.experts = {4 * MS, 2 * MS}, .gemm = GEMM, .name = "flash_fwd_splitkv_kernel"};
	struct pat p = made("ranks-attention", &x);

	assert_non_null(pat_get(&p, "P34"));
	assert_non_null(strstr(pat_get(&p, "P34")->what, "attention takes"));
	assert_int_equal(pat_get(&p, "P34")->proc->pid, 100);
	pat_end(&p);
}

static const char *missed(struct plan x, const char *id)
{
	struct pat p = made("ranks-guard", &x);
	const char *key;

	pat_silent(&p, id);
	key = pat_ruled_out(&p, id)->measure.param ? pat_ruled_out(&p, id)->measure.param->key : "";
	pat_end(&p);
	return key;
}

static void even_ranks_are_silent(void **state)
{
	assert_string_equal(missed((struct plan){.experts = {2900 * US, 3100 * US}, .gemm = GEMM}, "P34"),
			    "ratio");
	/* All of its kernels are slower: it is the device. */
	assert_string_equal(
	    missed((struct plan){.experts = {2 * MS, 4 * MS}, .gemm = {1500 * US, 3 * MS}}, "P34"), "clock");
	assert_string_equal(
	    missed((struct plan){.experts = {2 * MS, 4 * MS}, .gemm = GEMM, .steps = 40}, "P34"), "steps");
}

static void one_rank_alone_tells_nothing(void **state)
{
	struct plan x = {.experts = EVEN, .gemm = GEMM, .only_first = true};
	struct pat p = made("ranks-alone", &x);

	assert_non_null(strstr(pat_not_checked(&p, "P34")->text, "import RANK0.json RANK1.json"));
	assert_non_null(strstr(pat_not_checked(&p, "P46")->text, "import RANK0.json RANK1.json"));
	pat_end(&p);
}

static void replicas_are_no_ranks(void **state)
{
	struct plan x = {.experts = {2 * MS, 4 * MS}, .gemm = GEMM, .strangers = true};
	struct pat p = made("ranks-strangers", &x);

	assert_non_null(pat_not_checked(&p, "P34"));
	assert_null(pat_get(&p, "P33"));
	pat_end(&p);
}

/* What is left of communication without the waits (P33): 0.3 of 10 ms. */
static void waiting_is_no_communication(void **state)
{
	struct plan x = {.late = 3 * MS, .experts = {2 * MS, 2 * MS}, .gemm = GEMM},
		    y = {.transfer = 2 * MS, .experts = {2 * MS, 2 * MS}, .gemm = GEMM};
	struct pat p = made("ranks-exposed", &x), q = made("ranks-exposed-2", &y);

	pat_silent(&p, "P36");
	assert_string_equal(pat_ruled_out(&p, "P36")->measure.param->key, "exposed_share");
	pat_end(&p);
	assert_non_null(pat_get(&q, "P36"));
	assert_int_equal(pat_get(&q, "P36")->confidence, HB_CONFIDENCE_HIGH);
	assert_int_equal(pat_get(&q, "P36")->device_ns, 90 * 2 * MS);
	pat_end(&q);
}

static u32 count_of(const struct pat *p, const char *id)
{
	const struct hb_finding *x;
	u32 n = 0;

	for (u32 i = 0; (x = hb_findings__at(p->f, i)); i++)
		n += strcmp(x->pattern->id, id) == 0;
	return n;
}

/* Two devices that communicate with each other are told of once; two that do not, each by itself. */
static void once_for_all_that_communicate(void **state)
{
	struct plan x = {.transfer = 2 * MS, .experts = {2 * MS, 2 * MS}, .gemm = GEMM}, y = x, z = x;
	const struct hb_finding *f;
	struct pat p, q, r;

	y.strangers = true;
	y.transfer = 800 * US;		      /* too short to be in progress together by chance */
	y.experts[0] = y.experts[1] = 4 * MS; /* so that the devices are busy enough to be worth a word */
	z.only_first = true;
	p = made("ranks-once", &x);
	f = pat_get(&p, "P36");
	assert_int_equal(count_of(&p, "P36"), 1);
	assert_int_equal(f->count, 90);
	assert_non_null(strstr(f->what, "of the 2 devices that communicate with each other it loses most"));
	if (!strstr(f->what, "(the other one: 20 % of its time)"))
		fail_msg("%s", f->what);
	pat_end(&p);
	q = made("ranks-apart", &y);
	assert_int_equal(count_of(&q, "P36"), 2);
	assert_null(strstr(pat_get(&q, "P36")->what, "with each other"));
	pat_end(&q);
	r = made("ranks-one", &z);
	assert_int_equal(count_of(&r, "P36"), 1);
	assert_null(strstr(pat_get(&r, "P36")->what, "with each other"));
	pat_end(&r);
}

/* ---- P46 ---- */

/* 64 MiB between two: as many bytes over each link, which takes 149 us. */
static void slow_transport(void **state)
{
	struct plan x = {.experts = {2 * MS, 2 * MS}, .gemm = GEMM, .transfer = 3 * MS, .world = 2};
	struct pat p = made("ranks-slow", &x);
	const struct hb_finding *f = pat_get(&p, "P46");

	assert_non_null(f);
	assert_int_equal(f->count, 90);
	assert_true(f->device_ns > 90 * 2840 * US && f->device_ns < 90 * 2860 * US);
	assert_non_null(strstr(f->what, "collectives of 2 ranks move 22.4 GB/s"));
	pat_end(&p);
}

static void transport_guards(void **state)
{
	struct plan late = {.experts = {2 * MS, 2 * MS}, .gemm = GEMM, .late = 3 * MS, .world = 2};
	struct plan unsaid = {.experts = EVEN, .gemm = GEMM, .transfer = 3 * MS};
	struct plan others = {.experts = EVEN, .gemm = GEMM, .transfer = 3 * MS, .world = 8};
	struct pat p, q;

	/* Fast; waiting for the other rank is not its time. */
	assert_string_equal(missed(late, "P46"), "time");
	p = made("ranks-unsaid", &unsaid);
	assert_non_null(strstr(pat_not_checked(&p, "P46")->text, "record_param_comms"));
	pat_end(&p);
	/* Six ranks are not here, and may be those that came late. */
	q = made("ranks-others", &others);
	assert_non_null(strstr(pat_not_checked(&q, "P46")->text, "here are 2 of 8"));
	pat_end(&q);
}

enum { ST_NCCL = 41, ST_OWN };

static void native_stack(struct pat *p, u32 raw, const char *module)
{
	struct hb_loc l = {.module = hb_window_writer__string(p->h.r.w, module), .offset = 64};
	u32 frame = hb_window_writer__loc(p->h.r.w, &l);

	hb_window_writer__stack(p->h.r.w, 100, raw, &frame, 1, HB_STACK_WHOLE);
}

static bool tcp(u64 every, u32 stack)
{
	struct pat p = pat_new("tcp");
	bool found;

	native_stack(&p, ST_NCCL, "/usr/lib/libnccl.so.2");
	native_stack(&p, ST_OWN, "/usr/bin/engine");
	pat_steps(&p);
	for (u64 t = MS; t + every < WALL; t += every)
		PSLEEP(&p, p.h.io, t, t + every / 2, t + every / 2, 0, .chankind = HB_CHAN_TCP, .sysno = 7,
		       .stack = stack);
	pat_run(&p);
	found = pat_get(&p, "P46") != NULL;
	if (found)
		assert_non_null(strstr(pat_get(&p, "P46")->what, "collectives go over TCP"));
	pat_end(&p);
	return found;
}

static void a_library_on_tcp(void **state)
{
	assert_true(tcp(2 * MS, ST_NCCL));
	assert_false(tcp(2 * MS, ST_OWN));    /* another's socket */
	assert_false(tcp(400 * MS, ST_NCCL)); /* its service thread looks around */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_rank_comes_late),
	    cmocka_unit_test(they_take_turns),
	    cmocka_unit_test(one_pauses),
	    cmocka_unit_test(clocks_differ),
	    cmocka_unit_test(clocks_drift),
	    cmocka_unit_test(clocks_more_than_a_step_apart),
	    cmocka_unit_test(the_path_leads_to_the_late_rank),
	    cmocka_unit_test(experts_are_uneven),
	    cmocka_unit_test(attention_is_uneven),
	    cmocka_unit_test(even_ranks_are_silent),
	    cmocka_unit_test(one_rank_alone_tells_nothing),
	    cmocka_unit_test(slow_transport),
	    cmocka_unit_test(replicas_are_no_ranks),
	    cmocka_unit_test(waiting_is_no_communication),
	    cmocka_unit_test(once_for_all_that_communicate),
	    cmocka_unit_test(transport_guards),
	    cmocka_unit_test(a_library_on_tcp),
	};

	return cmocka_run_group_tests_name("patterns: several ranks", tests, NULL, NULL);
}
