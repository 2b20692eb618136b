/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <math.h>

#include "analysis_rig.h"

#include "analysis/model/device.h"
#include "analysis/model/order.h"

/* ---- a window of device records, made by hand: times are us after START ---- */

struct at { /* what a kernel, copy or call is; times in us */
	u64 begin, end, correlation;
	const char *name; /* of a kernel; NULL: a copy, "": a memset */
	u64 stream;
	u32 device;
	u8 copy, src, dst;
	u64 bytes;
};

static u16 the_task; /* whose records these are */

static struct rig made(const char *name)
{
	struct rig r = rig_new(name);

	rig_tables(&r);
	the_task = r.main;
	return r;
}

static void op(struct rig *r, struct at a)
{
	struct hb_rec_device d = {.dur = (a.end - a.begin) * US,
				  .stream = a.stream,
				  .correlation = a.correlation,
				  .device = a.device,
				  .copy = a.copy,
				  .srcmem = a.src,
				  .dstmem = a.dst,
				  .bytes = a.bytes,
				  .kind = a.name ? *a.name ? HB_DEVKIND_KERNEL : HB_DEVKIND_MEMSET
						 : HB_DEVKIND_MEMCPY};

	d.name = hb_window_writer__string(r->w, a.name ? a.name : "copy");
	rig_put(r, a.end * US, the_task, HB_TYPE_device, &d);
}

static void call(struct rig *r, u64 begin, u64 end, u64 correlation)
{
	struct hb_rec_accel a = {.dur = (end - begin) * US,
				 .correlation = correlation,
				 .probe = P_LAUNCH,
				 .flags = HB_AFLAG_TIMED,
				 .stack = ST_USER};

	rig_put(r, end * US, the_task, HB_TYPE_accel, &a);
}

/* A call of 5 us, and its kernel 3 us later. */
static void launch(struct rig *r, u64 at, u64 us, u64 correlation)
{
	call(r, at, at + 5, correlation);
	op(r, (struct at){.begin = at + 8, .end = at + 8 + us, .correlation = correlation, .name = "k"});
}

static struct hb_devices *built(struct hb_window *w, bool linked_only)
{
	struct hb_devices_opts o = {.linked_only = linked_only};
	struct hb_error e = {0};
	struct hb_devices *d = hb_devices__build(w, &o, &e);

	if (!d)
		fail_msg("%s", e.text);
	return d;
}

static const struct hb_device *only(const struct hb_devices *d)
{
	assert_int_equal(hb_devices__count(d), 1);
	return hb_devices__at(d, 0);
}

static void adds_up(const struct hb_device *v)
{
	struct hb_ivs active = {0};
	u64 gaps = 0;

	assert_int_equal(v->compute + v->exposed_comm + v->exposed_memcpy + v->idle, v->end - v->begin);
	assert_int_equal(v->busy + v->idle, v->end - v->begin);
	hb_device__active(v, &active);
	assert_int_equal(hb_ivs__length(&active), v->busy);
	hb_ivs__free(&active);
	for (int s = 0; s < HB_GAP_SIZES; s++) {
		const struct hb_gap_sum *g = &v->gaps[s];

		assert_int_equal(
		    g->host_ns + g->tail_ns + g->call_ns + g->dep_ns + g->unknown_ns + g->missing_ns, g->ns);
		gaps += g->ns;
	}
	assert_int_equal(gaps, v->idle);
	assert_int_equal(v->kernels + v->memcpys + v->memsets, v->n_ops);
}

/* ---- tests ---- */

static void nothing_recorded_is_nothing_known(void **state)
{
	struct rig r;
	struct hb_window *w = rig_window(&r, "dev-none");
	struct hb_devices *d = built(w, false);
	u32 n;

	assert_int_equal(hb_devices__count(d), 0);
	assert_null(hb_devices__at(d, 0));
	hb_devices__kernels(d, &n);
	assert_int_equal(n, 0);
	assert_int_equal(hb_devices__counts(d)->records, 0);
	assert_true(hb_devices__counts(d)->calls > 0);
	assert_int_equal(hb_devices__counts(d)->numbered, 0);
	hb_devices__free(d);
	rig_close(&r, w);
}

/* By hand: compute 0..100, comm 80..130, copy 120..150 and 300..310, memset 200..210. */
static void time_is_divided(void **state)
{
	struct rig r = made("dev-time");
	struct hb_window *w;
	struct hb_devices *d;
	const struct hb_device *v;

	op(&r, (struct at){.begin = 0, .end = 60, .name = "gemm"});
	op(&r, (struct at){.begin = 50, .end = 100, .name = "gemm", .stream = 2});
	op(&r, (struct at){.begin = 80, .end = 130, .name = "ncclDevKernel_AllReduce(x)", .stream = 3});
	op(&r, (struct at){.begin = 120, .end = 150, .copy = HB_COPY_DTOH, .bytes = 4096});
	op(&r, (struct at){.begin = 200, .end = 210, .name = ""});
	op(&r, (struct at){.begin = 300, .end = 310, .copy = HB_COPY_DTOH, .bytes = 8});
	w = rig_open(&r);
	d = built(w, false);
	v = only(d);
	adds_up(v);
	assert_int_equal(v->end - v->begin, 310 * US);
	assert_int_equal(v->compute, 110 * US);
	assert_int_equal(v->comm, 50 * US);
	assert_int_equal(v->exposed_comm, 30 * US);
	assert_int_equal(v->memcpy, 40 * US);
	assert_int_equal(v->exposed_memcpy, 30 * US);
	assert_int_equal(v->busy, 170 * US);
	assert_int_equal(v->idle, 140 * US);
	assert_int_equal(v->n_streams, 3);
	assert_int_equal(v->stream[0].busy, 110 * US); /* gemm, copies, memset */
	assert_int_equal(v->stream[0].ops, 4);
	assert_int_equal(v->linked, 0);
	hb_devices__free(d);
	rig_close(&r, w);
}

static void gaps_have_causes(void **state)
{
	struct rig r = made("dev-gaps");
	struct hb_window *w;
	struct hb_devices *d;
	const struct hb_device *v;

	launch(&r, 0, 10, 1); /* busy 8..18 */
	call(&r, 12, 14, 2);  /* in before the gap begins: */
	op(&r, (struct at){.begin = 21, .end = 30, .correlation = 2, .name = "k"}); /* 3 us: floor */
	launch(&r, 33, 4, 3);  /* 30..41: micro, 3 us the host's */
	launch(&r, 95, 7, 4);  /* 45..103: macro, 50 + 8 */
	call(&r, 100, 103, 5); /* dependency: 110..150 */
	op(&r, (struct at){.begin = 150, .end = 160, .correlation = 5, .name = "k"});
	op(&r, (struct at){.begin = 200, .end = 210, .name = "k"}); /* its call is lost */
	w = rig_open(&r);
	d = built(w, false);
	v = only(d);
	adds_up(v);
	assert_int_equal(v->gaps[HB_GAP_FLOOR].count, 1);
	assert_int_equal(v->gaps[HB_GAP_FLOOR].dep_ns, 3 * US);
	assert_int_equal(v->gaps[HB_GAP_MICRO].count, 1);
	assert_int_equal(v->gaps[HB_GAP_MICRO].host_ns, 3 * US);
	assert_int_equal(v->gaps[HB_GAP_MICRO].tail_ns, 8 * US);
	assert_int_equal(v->gaps[HB_GAP_MACRO].count, 3);
	assert_int_equal(v->gaps[HB_GAP_MACRO].host_ns, 50 * US);
	assert_int_equal(v->gaps[HB_GAP_MACRO].tail_ns, 8 * US);
	assert_int_equal(v->gaps[HB_GAP_MACRO].dep_ns, 40 * US);
	assert_int_equal(v->gaps[HB_GAP_MACRO].unknown_ns, 40 * US);
	assert_int_equal(v->n_gaps, 4);
	assert_int_equal(v->gap[1].cause, HB_GAP_HOST);
	assert_int_equal(v->gap[1].host_end, START + 95 * US);
	assert_int_equal(v->gap[2].cause, HB_GAP_DEP);
	assert_int_equal(v->gap[3].cause, HB_GAP_UNKNOWN);
	assert_int_equal(v->op[v->gap[3].next].begin, START + 200 * US);
	assert_int_equal(hb_ivs__length(v->host_idle), 53 * US);
	assert_int_equal(v->missing, 0);
	assert_int_equal(v->known, v->begin); /* the stream had a called operation before */
	assert_int_equal(v->not_known->n, 0);
	hb_devices__free(d);
	rig_close(&r, w);
}

/* A call that loads a module takes long: until it returns the device waits for the host, not for other work.
 */
static void gaps_inside_a_call(void **state)
{
	struct rig r = made("dev-in-call");
	struct hb_window *w;
	struct hb_devices *d;
	const struct hb_device *v;

	launch(&r, 0, 10, 1); /* busy 8..18 */
	call(&r, 12, 60, 2);  /* 18..62: 42 in the call, 2 more */
	op(&r, (struct at){.begin = 62, .end = 70, .correlation = 2, .name = "k"});
	call(&r, 60, 66, 3); /* 70..71: returned 5 us before */
	op(&r, (struct at){.begin = 71, .end = 80, .correlation = 3, .name = "k"});
	call(&r, 67, 68, 4); /* 80..83: 15 us before: it waited for something else */
	op(&r, (struct at){.begin = 83, .end = 90, .correlation = 4, .name = "k"});
	call(&r, 85, 125, 5); /* a copy's call that returns when the copy is done */
	op(&r, (struct at){.begin = 92, .end = 120, .correlation = 5});
	call(&r, 200, 2300, 6); /* 120..2305: begun inside, but no latency takes 2 ms */
	op(&r, (struct at){.begin = 2305, .end = 2310, .correlation = 6, .name = "k"});
	w = rig_open(&r);
	d = built(w, false);
	v = only(d);
	adds_up(v);
	assert_int_equal(v->gaps[HB_GAP_MACRO].count, 2);
	assert_int_equal(v->gaps[HB_GAP_MACRO].call_ns, 44 * US);
	assert_int_equal(v->gaps[HB_GAP_MACRO].host_ns, 80 * US);
	assert_int_equal(v->gaps[HB_GAP_MACRO].tail_ns, 2105 * US);
	assert_int_equal(v->gap[0].cause, HB_GAP_HOST);
	assert_int_equal(v->gap[0].host_end, START + 60 * US);
	assert_int_equal(v->gap[1].host_end, START + 2300 * US);
	assert_int_equal(hb_ivs__length(v->host_idle), 42 * US + 2180 * US);
	assert_int_equal(v->gaps[HB_GAP_FLOOR].count, 3);
	assert_int_equal(v->gaps[HB_GAP_FLOOR].call_ns, 1 * US);
	assert_int_equal(v->gaps[HB_GAP_FLOOR].dep_ns, 5 * US);
	hb_devices__free(d);
	rig_close(&r, w);
}

/* As in a trace cut in the middle of a step: the work of the step before is not in it. */
static void activity_is_missing(void **state)
{
	struct rig r = made("dev-missing");
	struct hb_window *w;
	struct hb_devices *d;
	const struct hb_device *v;

	launch(&r, 0, 2, 1); /* busy 8..10 */
	call(&r, 40, 45, 2); /* at once, the queue is empty; begins 460 ms later */
	op(&r, (struct at){.begin = 460000, .end = 460010, .correlation = 2, .name = "k"});
	call(&r, 465010, 465015, 3); /* 5 ms late, then 1.2 ms for nothing: the host's all the same */
	op(&r, (struct at){.begin = 466215, .end = 466220, .correlation = 3, .name = "k"});
	call(&r, 466230, 466232, 4); /* 10 and 11 come from a queue: */
	call(&r, 466233, 466235, 5);
	op(&r, (struct at){.begin = 468300, .end = 468310, .correlation = 5, .name = "k", .stream = 7});
	op(&r, (struct at){.begin = 468320, .end = 468330, .correlation = 4, .name = "k"});
	w = rig_open(&r);
	d = built(w, false);
	v = only(d);
	adds_up(v);
	assert_int_equal(v->gaps[HB_GAP_MACRO].count, 3);
	assert_int_equal(v->gap[0].cause, HB_GAP_MISSING);
	assert_int_equal(v->gap[0].host_end, v->gap[0].begin);
	assert_int_equal(v->missing, 459990 * US);
	assert_int_equal(v->gap[1].cause, HB_GAP_HOST);
	assert_int_equal(v->gap[2].cause,
			 HB_GAP_HOST); /* something else was in the queue, and may have been waited for */
	assert_int_equal(v->not_known->n, 1);
	assert_int_equal(hb_ivs__length(v->not_known), 459990 * US);
	hb_devices__free(d);
	rig_close(&r, w);
}

static void begin_of_the_window(void **state)
{
	struct rig r = made("dev-begin");
	struct hb_window *w;
	struct hb_devices *d;
	const struct hb_device *v;

	launch(&r, 0, 10, 1); /* 8..18 on stream 0 */
	/* stream 5 was given this before the window: it waited for something, so 18..60 was no idle time */
	op(&r, (struct at){.begin = 60, .end = 90, .correlation = 77, .name = "k", .stream = 5});
	launch(&r, 200, 10, 2);
	w = rig_open(&r);
	d = built(w, false);
	v = only(d);
	adds_up(v);
	assert_int_equal(v->known, START + 90 * US);
	assert_int_equal(v->gaps[HB_GAP_MACRO].unknown_ns, 42 * US);
	assert_int_equal(hb_ivs__length(v->not_known), 42 * US);
	assert_int_equal(v->gaps[HB_GAP_MACRO].host_ns, 110 * US);
	assert_int_equal(v->linked, 2);
	assert_int_equal(v->launches, 2);
	assert_int_equal(v->delay.count, 2);
	assert_int_equal(v->delay.max, 3 * US);
	hb_devices__free(d);
	d = built(w, true); /* without it */
	v = only(d);
	adds_up(v);
	assert_int_equal(v->n_ops, 2);
	assert_int_equal(hb_devices__counts(d)->left_out, 1);
	assert_int_equal(v->known, v->begin);
	assert_int_equal(v->busy, 20 * US);
	assert_int_equal(v->gaps[HB_GAP_MACRO].host_ns, 182 * US);
	hb_devices__free(d);
	rig_close(&r, w);
}

/* ---- launches ---- */

static void one_launch_many_operations(void **state)
{
	struct rig r = made("dev-graph");
	struct hb_window *w;
	struct hb_devices *d;
	const struct hb_device *v;
	const struct hb_launch *l;
	u32 n;

	call(&r, 0, 20, 1); /* a graph of 500 */
	call(&r, 21, 23, 2);
	for (u64 i = 0; i < 500; i++)
		op(&r,
		   (struct at){
		       .begin = 30 + i, .end = 31 + i, .correlation = 1, .name = "node", .stream = i % 2});
	op(&r, (struct at){.begin = 600, .end = 640, .correlation = 2, .name = "eager"});
	call(&r, 650, 700, 3);
	op(&r, (struct at){.begin = 710, .end = 720, .correlation = 3, .name = "eager"});
	w = rig_open(&r);
	d = built(w, false);
	v = only(d);
	adds_up(v);
	l = hb_devices__launches(d, &n);
	assert_int_equal(n, 3);
	for (u32 i = 0; i < 500; i++) {
		assert_int_equal(v->op[i].first, i == 0);
		assert_true(v->op[i].shared);
		assert_true(v->op[i].empty);
	}
	assert_true(v->op[500].first);
	assert_false(v->op[500].shared);
	assert_false(v->op[500].empty);
	assert_true(v->op[501].first);
	assert_true(v->op[501].empty);
	assert_int_equal(l[2].stack, ST_USER);
	assert_int_equal(v->launches, 3);
	assert_int_equal(v->empty, 2);
	assert_int_equal(v->queue.count, 3);
	assert_int_equal(v->queue.min, 1);
	assert_int_equal(v->queue.p50, 500);
	assert_int_equal(v->queue.max, 501);
	assert_int_equal(v->stream[0].queue_max, 251);
	assert_int_equal(v->stream[0].full_ns, 0);
	assert_int_equal(v->eager, 2);
	assert_int_equal(v->eager_short, 1);
	assert_int_equal(v->kernels_10us, 500);
	assert_int_equal(v->delay.p50, 10 * US);
	assert_int_equal(v->delay.max, 577 * US);
	assert_ptr_equal(hb_devices__launch_of(d, &v->op[0]), &l[0]);
	hb_devices__free(d);
	rig_close(&r, w);
}

static void a_full_queue(void **state)
{
	struct rig r = made("dev-full");
	struct hb_window *w;
	struct hb_devices *d;

	call(&r, 0, 20, 1);
	for (u64 i = 0; i < 1025; i++)
		op(&r, (struct at){.begin = 50 + i, .end = 51 + i, .correlation = 1, .name = "node"});
	w = rig_open(&r);
	d = built(w, false);
	/* from the launch at 0 to where the second operation begins and 1023 are left */
	assert_int_equal(only(d)->stream[0].queue_max, 1025);
	assert_int_equal(only(d)->stream[0].full_ns, 51 * US);
	hb_devices__free(d);
	rig_close(&r, w);
}

static void numbers_that_occur_twice(void **state)
{
	struct rig r = made("dev-twice");
	struct hb_window *w;
	struct hb_devices *d;
	const struct hb_device *v;
	const struct hb_launch *l;
	struct hb_rec_accel inner = {
	    .dur = 2 * US, .correlation = 9, .flags = HB_AFLAG_TIMED | HB_AFLAG_INNER, .probe = P_LAUNCH};
	u32 n;

	launch(&r, 0, 10, 4);
	launch(&r, 100, 10, 4); /* the counter went round */
	rig_put(&r, 204 * US, r.main, HB_TYPE_accel, &inner);
	launch(&r, 200, 10, 9);
	the_task = r.server; /* another process counts for itself */
	launch(&r, 300, 10, 4);
	the_task = r.main;
	op(&r, (struct at){.begin = 390, .end = 399, .correlation = 50, .name = "k"});
	call(&r, 395, 400, 50); /* clocks: it began before its call */
	w = rig_open(&r);
	d = built(w, false);
	assert_int_equal(hb_devices__count(d), 2);
	v = hb_devices__at(d, 0);
	adds_up(v);
	l = hb_devices__launch_of(d, &v->op[0]);
	assert_int_equal(l->begin, START);
	l = hb_devices__launch_of(d, &v->op[1]);
	assert_int_equal(l->begin, START + 100 * US);
	l = hb_devices__launch_of(d, &v->op[2]);
	assert_false(l->inner);
	assert_int_equal(l->begin, START + 200 * US);
	assert_false(v->op[2].shared);
	assert_int_equal(v->early, 1);
	assert_int_equal(v->queue.count, 3); /* the early one was never in the queue */
	assert_int_equal(v->delay.min, 0);
	v = hb_devices__at(d, 1);
	assert_int_equal(v->pid, 200);
	assert_int_equal(v->n_ops, 1);
	assert_int_equal(hb_devices__launch_of(d, v->op)->begin, START + 300 * US);
	hb_devices__launches(d, &n);
	assert_int_equal(n, 6);
	hb_devices__free(d);
	rig_close(&r, w);
}

/* Numbers beyond 32 bits, and one number ten thousand times: found, or given up, in reasonable time. */
static void odd_numbers(void **state)
{
	struct rig r = made("dev-odd");
	struct hb_rec_device bad = {.dur = UINT64_MAX - 5, .kind = HB_DEVKIND_KERNEL};
	struct hb_window *w;
	struct hb_devices *d;

	launch(&r, 0, 1, 1ULL << 63 | 17);
	launch(&r, 10, 1, UINT64_MAX);
	for (u64 i = 0; i < 10000; i++)
		launch(&r, 20 + i, 1, 7);
	rig_put(&r, 20000 * US, r.main, HB_TYPE_device, &bad);
	bad = (struct hb_rec_device){.kind = HB_DEVKIND_SYNC, .dur = 5};
	rig_put(&r, 20000 * US, r.main, HB_TYPE_device, &bad);
	bad.kind = 200; /* of a newer version */
	rig_put(&r, 20000 * US, r.main, HB_TYPE_device, &bad);
	w = rig_open(&r);
	d = built(w, false);
	adds_up(only(d));
	assert_int_equal(only(d)->n_ops, 10002);
	assert_in_range(only(d)->linked, 50, 100);
	assert_int_equal(only(d)->early, 0);
	assert_int_equal(hb_devices__counts(d)->backward, 1);
	assert_int_equal(hb_devices__counts(d)->syncs, 1);
	assert_int_equal(hb_devices__counts(d)->others, 1);
	hb_devices__free(d);
	rig_close(&r, w);
}

/* More ns than the operation itself has room for. */
static void long_after_its_call(void **state)
{
	struct rig r = made("dev-long");
	struct hb_window *w;
	struct hb_devices *d;
	const struct hb_device *v;

	launch(&r, 0, 10, 1);
	call(&r, 40, 50, 2);
	op(&r, (struct at){.begin = 5000000, .end = 5000010, .correlation = 2, .name = "late"});
	op(&r, (struct at){.begin = 5000020, .end = 5000030, .correlation = 3, .name = "early"});
	call(&r, 5000025, 5000035, 3);
	op(&r, (struct at){.begin = 5000040, .end = 5000050, .name = "without"});
	w = rig_open(&r);
	d = built(w, false);
	v = only(d);
	adds_up(v);
	assert_int_equal(v->n_ops, 4);
	assert_int_equal(hb_devices__asked(d, &v->op[0]), START);
	assert_int_equal(v->op[0].begin - v->op[0].after, START);
	assert_int_equal(hb_devices__asked(d, &v->op[1]), START + 40 * US);
	assert_int_equal(hb_devices__asked(d, &v->op[2]), START + 5000025 * US);
	assert_true(v->op[2].early);
	assert_int_equal(hb_devices__asked(d, &v->op[3]), 0);
	assert_int_equal(v->gap[0].cause, HB_GAP_MISSING);
	assert_int_equal(v->gap[0].end, v->op[1].begin);
	hb_devices__free(d);
	rig_close(&r, w);
}

/* ---- names and copies ---- */

static void kernels_are_told_apart(void **state)
{
	static const struct {
		const char *name;
		enum hb_work work;
	} k[] = {
	    {"ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)", HB_WORK_COMM},
	    {"ncclKernel_AllReduce_RING_LL_Sum_int8_t", HB_WORK_COMM},
	    {"rcclGenericKernel<1, false>(ncclDevKernelArgsStorage<4096ul>)", HB_WORK_COMM},
	    {"void vllm::cross_device_reduce_1stage<__half, 8>(vllm::RankData*, int)", HB_WORK_COMM},
	    {"void multimem_all_reduce_kernel<c10::BFloat16, 8>(int)", HB_WORK_COMM},
	    {"void tensorrt_llm::kernels::ar_fusion::oneshotAllreduceFusionKernel<true>()", HB_WORK_COMM},
	    {"void deep_ep::intranode::combine<__nv_bfloat16>(x)", HB_WORK_COMM},
	    {"void (anonymous namespace)::allgather_vec<int>(int)", HB_WORK_COMM},
	    {"void gemm<ncclTag>(nccl_args)", HB_WORK_COMPUTE}, /* not its own name */
	    {"void at::native::(anonymous namespace)::indexSelectLargeIndex<long>()", HB_WORK_COMPUTE},
	    {"__amd_rocclr_copyBuffer", HB_WORK_MEMCPY},
	    {"__amd_rocclr_copyBufferAligned.kd", HB_WORK_MEMCPY},
	    {"__amd_rocclr_fillBufferAligned", HB_WORK_COMPUTE},
	    {"triton_poi_fused_0", HB_WORK_COMPUTE},
	    {"_ZN4vllm26cross_device_reduce_1stageIfLi8EEEvi", HB_WORK_COMM},
	    {"_Z4gemmI7ncclTagEvi", HB_WORK_COMPUTE},
	    {"", HB_WORK_COMPUTE},
	};

	for (size_t i = 0; i < sizeof(k) / sizeof(*k); i++)
		if (hb_work__of_kernel(k[i].name) != k[i].work)
			fail_msg("%s is %s", k[i].name, hb_work__name(hb_work__of_kernel(k[i].name)));
}

static void kernels_by_name(void **state)
{
	struct rig r = made("dev-names");
	const struct hb_kernel *const *k;
	struct hb_window *w;
	struct hb_devices *d;
	u64 t = 0;
	u32 n;

	for (u64 i = 1; i <= 100; i++, t += 200)
		op(&r, (struct at){.begin = t, .end = t + (i * 37 % 101), .name = "many", .device = i % 2});
	op(&r, (struct at){.begin = t, .end = t + 9000, .name = "long"});
	op(&r, (struct at){.begin = t, .end = t + 9000, .name = ""});
	w = rig_open(&r);
	d = built(w, false);
	assert_int_equal(hb_devices__count(d), 2);
	assert_int_equal(hb_devices__at(d, 1)->number, 1);
	k = hb_devices__kernels(d, &n);
	assert_int_equal(n, 2); /* a memset is no kernel */
	assert_string_equal(hb_window__string(w, k[0]->name), "long");
	assert_int_equal(k[1]->dur.count, 100);
	assert_int_equal(k[1]->dur.total, 5050 * US);
	assert_int_equal(k[1]->dur.min, US);
	assert_int_equal(k[1]->dur.max, 100 * US);
	assert_int_equal(k[1]->dur.p50, 50 * US);
	assert_int_equal(k[1]->dur.p95, 95 * US);
	assert_true(k[1]->dur.mean == 50500);
	assert_true(k[1]->dur.std > 28866.06 && k[1]->dur.std < 28866.08);
	hb_devices__free(d);
	d = built(w, true);
	hb_devices__kernels(d, &n);
	assert_int_equal(n, 0); /* none has a call */
	assert_int_equal(hb_devices__at(d, 0)->n_ops, 0);
	hb_devices__free(d);
	rig_close(&r, w);
}

static void copies_by_direction(void **state)
{
	struct rig r = made("dev-copies");
	struct hb_window *w;
	struct hb_devices *d;
	const struct hb_device *v;

	call(&r, 0, 120, 1); /* does not return before the copy is done */
	op(&r, (struct at){.begin = 10,
			   .end = 110,
			   .correlation = 1,
			   .copy = HB_COPY_DTOH,
			   .src = HB_MEMKIND_DEVICE,
			   .dst = HB_MEMKIND_PAGEABLE,
			   .bytes = 1000000});
	call(&r, 130, 133, 2);
	op(&r, (struct at){.begin = 140,
			   .end = 150,
			   .correlation = 2,
			   .copy = HB_COPY_DTOH,
			   .src = HB_MEMKIND_DEVICE,
			   .dst = HB_MEMKIND_PINNED,
			   .bytes = 500000});
	op(&r, (struct at){.begin = 160,
			   .end = 190,
			   .copy = HB_COPY_DTOH,
			   .src = HB_MEMKIND_DEVICE,
			   .dst = HB_MEMKIND_PINNED,
			   .bytes = 500000});
	op(&r, (struct at){.begin = 200, .end = 205, .name = "__amd_rocclr_copyBuffer"});
	op(&r, (struct at){.begin = 210, .end = 210, .copy = HB_COPY_HTOD, .bytes = 4}); /* no time at all */
	w = rig_open(&r);
	d = built(w, false);
	v = only(d);
	adds_up(v);
	assert_int_equal(v->n_copies, 4);
	assert_int_equal(v->copies[0].bytes, 1000000);
	assert_true(hb_copies__pageable(&v->copies[0]));
	assert_int_equal(v->copies[0].blocked_ns, 120 * US);
	assert_int_equal(v->copies[0].until_done, 1);
	assert_int_equal(v->copies[1].dur.count, 2);
	assert_int_equal(v->copies[1].bytes, 1000000);
	assert_int_equal(v->copies[1].linked, 1);
	assert_int_equal(v->copies[1].until_done, 0);
	assert_int_equal(v->copies[1].blocked_ns, 3 * US);
	assert_false(hb_copies__pageable(&v->copies[1]));
	assert_true(v->copies[2].by_kernel);
	assert_int_equal(v->copies[3].dur.total, 0);
	assert_int_equal(v->memcpy, 145 * US);
	assert_int_equal(v->compute, 0);
	hb_devices__free(d);
	rig_close(&r, w);
}

/* ---- against counting by hand ---- */

enum { SPAN = 400 };

static u64 random_state = 88172645463325252ULL;

static u64 rnd(u64 n)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state % n;
}

/* Every microsecond is asked what was going on in it. */
static void counted(const struct at *a, unsigned n, const struct hb_device *v)
{
	u64 comp = 0, comm = 0, copy = 0, xcomm = 0, xcopy = 0, first = SPAN, last = 0;

	for (u64 t = 0; t < SPAN; t++) {
		unsigned now = 0;

		for (unsigned i = 0; i < n; i++)
			if (a[i].begin <= t && t < a[i].end)
				now |= 1u << (a[i].name ? hb_work__of_kernel(a[i].name) : HB_WORK_MEMCPY);
		comp += now & 1;
		comm += now >> 1 & 1;
		copy += now >> 2 & 1;
		xcomm += now >> 1 & ~now & 1;
		xcopy += now == 4;
	}
	for (unsigned i = 0; i < n; i++) {
		first = a[i].begin < first ? a[i].begin : first;
		last = a[i].end > last ? a[i].end : last;
	}
	assert_int_equal(v->begin, START + first * US);
	assert_int_equal(v->end, START + last * US);
	assert_int_equal(v->compute, comp * US);
	assert_int_equal(v->comm, comm * US);
	assert_int_equal(v->memcpy, copy * US);
	assert_int_equal(v->exposed_comm, xcomm * US);
	assert_int_equal(v->exposed_memcpy, xcopy * US);
}

static void random_timelines(void **state)
{
	static const char *const names[] = {"gemm", "ncclDevKernel", NULL, "", "__amd_rocclr_copyBuffer"};

	for (int round = 0; round < 60; round++) {
		struct rig r = made("dev-random");
		unsigned n = 1 + (unsigned)rnd(40);
		struct at a[40];
		struct hb_window *w;
		struct hb_devices *d;

		for (unsigned i = 0; i < n; i++) {
			a[i].begin = rnd(SPAN - 60);
			a[i] = (struct at){.begin = a[i].begin,
					   .end = a[i].begin + rnd(60),
					   .correlation = rnd(20),
					   .name = names[rnd(5)],
					   .stream = rnd(3)};
			op(&r, a[i]);
			if (rnd(2)) {
				u64 t = rnd(SPAN);

				call(&r, t, t + rnd(30), rnd(20));
			}
		}
		w = rig_open(&r);
		d = built(w, false);
		adds_up(only(d));
		counted(a, n, only(d));
		hb_devices__free(d);
		rig_close(&r, w);
	}
}

/* ---- order and distribution ---- */

static int cmp_u64(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return x < y ? -1 : x > y;
}

static void sorts(void **state)
{
	static const u64 ranges[] = {2, 1000, 1ULL << 33, UINT64_MAX};
	enum { N = 5000 };
	struct hb_order *v = malloc(N * sizeof(*v));

	assert_non_null(v);
	for (size_t i = 0; i < sizeof(ranges) / sizeof(*ranges); i++) {
		for (size_t n = 0; n < N; n = n * 3 + 1) {
			for (u32 k = 0; k < n; k++)
				v[k] = (struct hb_order){.key = rnd(ranges[i]), .item = k};
			assert_int_equal(hb_order__sort(v, n), 0);
			for (u32 k = 1; k < n; k++)
				assert_true(v[k - 1].key < v[k].key ||
					    (v[k - 1].key == v[k].key && v[k - 1].item < v[k].item));
		}
	}
	free(v);
}

static double deviation(const u64 *v, size_t n)
{
	long double sum = 0, square = 0, mean;

	for (size_t i = 0; i < n; i++)
		sum += (long double)v[i];
	mean = sum / n;
	for (size_t i = 0; i < n; i++)
		square += ((long double)v[i] - mean) * ((long double)v[i] - mean);
	return sqrt((double)(square / n));
}

/* Of few values and of many, near one another and not, with some that lie far off. */
static u64 value(unsigned kind)
{
	return kind == 0   ? rnd(7)
	       : kind == 1 ? rnd(1ULL << 40)
			   : (1ULL << 50) + rnd(rnd(100) ? 900 : 1ULL << 31);
}

static void distributions_are_exact(void **state)
{
	enum { N = 7777 };
	static u64 v[N], sorted[N];
	unsigned kind = 0;

	assert_int_equal(hb_dist__of(v, 0).count, 0);
	assert_int_equal(hb_dist__median(v, 0), 0);
	for (size_t n = 1; n <= N; n += 1 + n / 9) {
		struct hb_dist d;

		for (size_t i = 0; i < n; i++)
			v[i] = value(kind % 3);
		kind++;
		memcpy(sorted, v, n * sizeof(*v));
		qsort(sorted, n, sizeof(*sorted), cmp_u64);
		d = hb_dist__of(v, n);
		assert_int_equal(d.count, n);
		assert_int_equal(d.min, sorted[0]);
		assert_int_equal(d.max, sorted[n - 1]);
		assert_true(fabs(d.std - deviation(v, n)) <= 1e-9 * d.std);
		assert_int_equal(d.p50, sorted[(n * 50 + 99) / 100 - 1]);
		assert_int_equal(d.p95, sorted[(n * 95 + 99) / 100 - 1]);
		assert_int_equal(hb_dist__median(v, n), d.p50);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(nothing_recorded_is_nothing_known),
	    cmocka_unit_test(time_is_divided),
	    cmocka_unit_test(gaps_have_causes),
	    cmocka_unit_test(gaps_inside_a_call),
	    cmocka_unit_test(activity_is_missing),
	    cmocka_unit_test(begin_of_the_window),
	    cmocka_unit_test(one_launch_many_operations),
	    cmocka_unit_test(a_full_queue),
	    cmocka_unit_test(numbers_that_occur_twice),
	    cmocka_unit_test(odd_numbers),
	    cmocka_unit_test(long_after_its_call),
	    cmocka_unit_test(kernels_are_told_apart),
	    cmocka_unit_test(kernels_by_name),
	    cmocka_unit_test(copies_by_direction),
	    cmocka_unit_test(random_timelines),
	    cmocka_unit_test(sorts),
	    cmocka_unit_test(distributions_are_exact),
	};

	return cmocka_run_group_tests_name("device", tests, NULL, NULL);
}
