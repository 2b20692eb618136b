/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analysis_rig.h"

#include "analysis/model/decode.h"
#include "analysis/model/model.h"

/* ---- histogram ---- */

static int cmp_u64(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return x < y ? -1 : x > y;
}

/* Quantiles against the sorted values themselves, over 14 orders of magnitude. */
static void hist_error(void **state)
{
	enum { N = 20000 };
	static const double qs[] = {0.001, 0.1, 0.5, 0.9, 0.95, 0.99, 0.999, 1};
	u64 *v = malloc(N * sizeof(*v)), x = 88172645463325252ULL;
	struct hb_hist h = {0};

	assert_non_null(v);
	for (int i = 0; i < N; i++) {
		x ^= x << 13, x ^= x >> 7, x ^= x << 17;
		v[i] = x >> (x % 48 + 16);
		assert_int_equal(hb_hist__add(&h, v[i]), 0);
	}
	qsort(v, N, sizeof(*v), cmp_u64);
	for (size_t i = 0; i < sizeof(qs) / sizeof(*qs); i++) {
		double want = (double)v[(size_t)(qs[i] * N + 0.999999) - 1],
		       got = (double)hb_hist__quantile(&h, qs[i]);

		if (got < want * 0.99 || got > want * 1.01)
			fail_msg("q %g: %g instead of %g", qs[i], got, want);
	}
	assert_int_equal(h.max, v[N - 1]);
	assert_int_equal(h.min, v[0]);
	free(v);
	hb_hist__free(&h);
}

static void hist_edges(void **state)
{
	struct hb_hist h = {0}, k = {0};

	assert_int_equal(hb_hist__quantile(&h, 0.5), 0);
	assert_int_equal(hb_hist__add(&h, UINT64_MAX), 0);
	assert_int_equal(hb_hist__quantile(&h, 0.5), UINT64_MAX);
	assert_int_equal(hb_hist__add(&h, 0), 0);
	assert_int_equal(hb_hist__quantile(&h, 0.5), 0);
	assert_int_equal(hb_hist__add(&k, 63), 0);
	assert_int_equal(hb_hist__add(&k, 64), 0);
	assert_int_equal(hb_hist__merge(&k, &h), 0);
	assert_int_equal(k.count, 4);
	assert_int_equal(k.min, 0);
	assert_int_equal(k.max, UINT64_MAX);
	assert_int_equal(hb_hist__quantile(&k, 0.5), 63); /* small values are exact */
	assert_int_equal(hb_hist__quantile(&k, 0.75), 64);
	hb_hist__free(&h);
	hb_hist__free(&k);
}

/* ---- the rig's window ---- */

static struct rig rig;
static struct hb_window *w;
static struct hb_model *m;

static int setup(void **state)
{
	struct hb_error e = {0};

	w = rig_window(&rig, "model");
	m = hb_model__build(w, &e);
	if (!m)
		fail_msg("%s", e.text);
	return 0;
}

static int teardown(void **state)
{
	hb_model__free(m);
	rig_close(&rig, w);
	return 0;
}

static const struct hb_call_stat *call(const char *name)
{
	u32 n;
	const struct hb_call_stat *const *c = hb_model__calls(m, &n);

	for (u32 i = 0; i < n; i++)
		if (strcmp(hb_window__string(w, c[i]->row->name), name) == 0)
			return c[i];
	fail_msg("no call %s", name);
	return NULL;
}

static const struct hb_class_stat *class_of(enum hb_op op)
{
	u32 n;
	const struct hb_class_stat *const *c = hb_model__classes(m, &n);

	for (u32 i = 0; i < n; i++)
		if (c[i]->op == op)
			return c[i];
	fail_msg("no class %s", hb_op__name(op));
	return NULL;
}

static void calls_are_counted(void **state)
{
	const struct hb_call_stat *s = call("cudaStreamSynchronize");

	assert_int_equal(call("cuLaunchKernel")->count, 10);
	assert_int_equal(call("cuLaunchKernel")->dur.count, 0); /* entry only: no duration is made up */
	assert_int_equal(s->count, 100);
	assert_int_equal(s->dur.total, 5050 * 1000);
	assert_in_range(hb_hist__quantile(&s->dur, 0.5), 49500, 50500);
	assert_in_range(hb_hist__quantile(&s->dur, 0.99), 98010, 99990);
	assert_int_equal(s->dur.max, 100000);
	assert_int_equal(s->results_known, 100);
	assert_int_equal(s->errors, 7);
	assert_int_equal(s->n_results, 2);
	assert_int_equal(s->result[0].code, 719);
	assert_int_equal(s->result[0].count, 5);
	assert_int_equal(s->result[1].count, 2);
	assert_int_equal(s->threads, 1);
	assert_int_equal(s->busiest->tid, 101);
	assert_int_equal(s->busiest_ns, s->dur.total);
	assert_int_equal(call("ncclAllReduce")->bytes, 2000); /* 1000 elements of bfloat16 */
}

static void nested_calls_are_one_operation(void **state)
{
	const struct hb_class_stat *copy = class_of(HB_OP_COPY);

	assert_int_equal(call("cuMemcpyHtoDAsync")->count, 1);
	assert_int_equal(call("cuMemcpyHtoDAsync")->inner, 1);
	assert_int_equal(call("cudaMemcpyAsync")->nested, 1);
	assert_int_equal(copy->count, 1);
	assert_int_equal(copy->dur.total, MS);
	assert_int_equal(copy->bytes, 4096);
}

static void launches_are_told_apart(void **state)
{
	assert_int_equal(class_of(HB_OP_LAUNCH)->count, 10);
	assert_int_equal(class_of(HB_OP_GRAPH)->count, 3);
	assert_int_equal(class_of(HB_OP_GRAPH_BUILD)->count, 1);
	assert_int_equal(class_of(HB_OP_SYNC)->errors, 7);
}

static void sleeps_have_reasons(void **state)
{
	static const struct {
		u32 pid;
		enum hb_reason reason;
		u64 count, total, ready;
	} want[] = {
	    {100, HB_OFF_SYSCALL, 3, 30 * MS, 3 * MS},
	    {200, HB_OFF_SYSCALL, 1, 6 * MS, 0},
	    {100, HB_OFF_LOCK, 1, 4 * MS, 1000},
	    {100, HB_OFF_PREEMPTED, 1, 2 * MS, 2 * MS},
	    {100, HB_OFF_FAULT, 1, MS, 0},
	};
	u32 n;
	const struct hb_reason_stat *const *r = hb_model__reasons(m, &n);

	assert_int_equal(n, 5);
	for (u32 i = 0; i < n; i++) { /* by total, the order of the list above */
		assert_int_equal(r[i]->proc->pid, want[i].pid);
		assert_int_equal(r[i]->reason, want[i].reason);
		assert_int_equal(r[i]->dur.count, want[i].count);
		assert_int_equal(r[i]->dur.total, want[i].total);
		assert_int_equal(r[i]->ready_ns, want[i].ready);
	}
	assert_int_equal(r[0]->n_wakers, 1);
	assert_int_equal(r[0]->waker[0]->task->tid, 200);
	assert_int_equal(r[0]->waker[0]->sysno, SYS_SENDTO);
	assert_int_equal(r[0]->waker[0]->count, 3);
	assert_null(r[1]->waker[0]->task); /* softirq: the running thread is a bystander */
	assert_int_equal(r[1]->waker[0]->context, HB_WCTX_SOFTIRQ);
	assert_int_equal(r[3]->n_wakers, 0);
}

static void blocking_calls(void **state)
{
	u32 n;
	const struct hb_sleep_stat *const *s = hb_model__sleeps(m, &n);
	const struct hb_lock_stat *const *l;

	assert_int_equal(n, 3);
	assert_int_equal(s[0]->sysno, SYS_EPOLL);
	assert_int_equal(s[0]->chankind, HB_CHAN_UNIX);
	assert_int_equal(s[0]->dur.count, 3);
	assert_int_equal(s[0]->dur.max, 10 * MS);
	assert_int_equal(s[2]->sysno, SYS_FUTEX);
	l = hb_model__locks(m, &n);
	assert_int_equal(n, 1);
	assert_int_equal(l[0]->addr, 0x7f0010);
	assert_int_equal(l[0]->max_ns, 4 * MS);
}

static void wakeups_link_processes(void **state)
{
	u32 n;
	const struct hb_edge_stat *const *s = hb_model__edges(m, &n);

	assert_int_equal(n, 2); /* the bystander is no edge */
	assert_int_equal(s[0]->from->pid, 200);
	assert_int_equal(s[0]->to->pid, 100);
	assert_int_equal(s[0]->chankind, HB_CHAN_UNIX);
	assert_int_equal(s[0]->wsys, SYS_SENDTO);
	assert_int_equal(s[0]->count, 3);
	assert_int_equal(s[0]->slept_ns, 30 * MS);
	assert_ptr_equal(s[1]->from, s[1]->to);
	assert_int_equal(s[1]->wakee->tid, 101);
}

static const struct hb_func_stat *func(const char *name)
{
	char buf[256];
	u32 n;
	const struct hb_func_stat *const *f = hb_model__funcs(m, &n);

	for (u32 i = 0; i < n; i++)
		if (f[i]->loc && strcmp(hb_decode__frame(w, f[i]->loc, false, buf, sizeof(buf)), name) == 0)
			return f[i];
	fail_msg("no function %s", name);
	return NULL;
}

static void cpu_time(void **state)
{
	u32 n;
	const struct hb_kernel_stat *const *k = hb_model__kernel(m, &n);

	assert_int_equal(n, 1);
	assert_int_equal(k[0]->sysno, SYS_READ);
	assert_int_equal(k[0]->cpu_ns, 10 * MS);
	assert_int_equal(func("main")->total_ns, 40 * MS);
	assert_int_equal(func("main")->self_ns, 0);
	assert_int_equal(func("libx.so+0x1234")->self_ns, 30 * MS);
	assert_int_equal(func("libx.so+0x1234")->samples, 3);
	assert_int_equal(func("do_syscall_64")->self_ns, 10 * MS);
}

/* Another address in the same functions is the same stack. */
static void stacks_are_merged(void **state)
{
	struct rig r = rig_new("stacks");
	u16 t = rig_task(&r, 5, 5, "x", true);
	struct hb_rec_sample s = {.weight = 3, .stack = 1};
	u32 loc = rig_loc(&r, "f", "m", 1, HB_LANG_NATIVE), near = rig_loc(&r, "f", "m", 2, HB_LANG_NATIVE);
	struct hb_window *win;
	struct hb_model *mod;
	const struct hb_stack_stat *const *st;
	u32 n, other = rig_loc(&r, "g", "m", 1, HB_LANG_NATIVE);

	hb_window_writer__stack(r.w, 5, 1, &loc, 1, HB_STACK_WHOLE);
	hb_window_writer__stack(r.w, 5, 2, &near, 1, HB_STACK_WHOLE);
	hb_window_writer__stack(r.w, 5, 3, &other, 1, HB_STACK_WHOLE);
	for (s.stack = 1; s.stack <= 3; s.stack++)
		rig_put(&r, s.stack, t, HB_TYPE_sample, &s);
	win = rig_open(&r);
	mod = hb_model__build(win, NULL);
	assert_non_null(mod);
	st = hb_model__stacks(mod, &n);
	assert_int_equal(n, 2);
	assert_int_equal(st[0]->count, 2);
	assert_int_equal(st[0]->ns, 6);
	hb_model__free(mod);
	rig_close(&r, win);
}

static void threads_and_processes(void **state)
{
	u32 n;
	const struct hb_thread_stat *const *t = hb_model__threads(m, &n);
	const struct hb_proc_stat *const *p;

	assert_int_equal(n, 3); /* the bystander left no record of its own */
	assert_int_equal(t[0]->task->tid, 100);
	assert_int_equal(t[0]->cpu_ns, 40 * MS);
	assert_int_equal(t[0]->operations, 14);
	assert_int_equal(t[1]->task->tid, 101);
	assert_int_equal(t[1]->operations, 102);
	assert_int_equal(t[1]->call_ns, MS + 5050 * 1000 + 2 * MS);
	assert_int_equal(t[1]->offcpu_ns, 4 * MS);
	assert_int_equal(t[2]->syscalls, 1);
	p = hb_model__procs(m, &n);
	assert_int_equal(n, 2);
	assert_int_equal(p[0]->pid, 100);
	assert_int_equal(p[0]->threads, 2);
	assert_int_equal(p[0]->ready_ns, 3 * MS + 1000 + 2 * MS);
	assert_true(p[1]->forked && p[1]->exited);
	assert_int_equal(p[1]->exit_code, 3 << 8);
	assert_int_equal(p[1]->late_ns, 7 * MS);
	assert_int_equal(p[1]->probes, 40);
}

static void totals(void **state)
{
	const struct hb_totals *t = hb_model__totals(m);
	u32 n, text, level;
	const struct hb_price_stat *const *p = hb_model__prices(m, &n);

	assert_int_equal(t->wall_ns, WALL);
	assert_int_equal(t->by_type[HB_TYPE_accel], 117);
	assert_int_equal(t->by_type[HB_TYPE_offcpu], 7);
	assert_int_equal(t->cost_ns, 502000);
	assert_int_equal(t->probe_cost_ns, 500000);
	assert_int_equal(t->hook_cost_ns, 2000);
	assert_true(t->self_split);
	assert_int_equal(t->self_setup_ns, 11 * MS);
	assert_int_equal(t->self_window_ns, 5 * MS);
	assert_int_equal(t->self_cpu_ns, 20 * MS);
	assert_int_equal(n, 2);
	assert_string_equal(hb_window__string(w, p[0]->row->name), "cuLaunchKernel");
	assert_string_equal(hb_window__string(w, p[1]->hook), "sched_switch");
	assert_true(hb_model__note(m, 0, &text, &level));
	assert_string_equal(hb_window__string(w, text), "a note");
	assert_false(hb_model__note(m, 1, &text, &level));
	assert_int_equal(hb_decode__loss_all(w), 12);
}

/* Records that point outside of every table: counted, never followed. */
static void dangling_ids(void **state)
{
	struct rig r = rig_new("dangling");
	u16 t = rig_task(&r, 5, 5, "x", true);
	struct hb_rec_accel a = {.probe = 4000000000u, .dur = 5, .stack = 77};
	struct hb_rec_offcpu o = {.dur = 9,
				  .waker = 0xffffffff,
				  .waker_pid = 0xffffffff,
				  .wctx = 200,
				  .sysno = 0xfffe,
				  .wsys = 0xfffe,
				  .chankind = 255,
				  .state = 255};
	struct hb_rec_sample s = {.weight = 3, .stack = 0xffffffff, .kstack = 0xfffffffe, .mode = 9};
	struct hb_window *win;
	struct hb_model *mod;
	u32 n;

	rig_put(&r, 1, t, HB_TYPE_accel, &a);
	rig_put(&r, 2, t, HB_TYPE_offcpu, &o);
	rig_put(&r, 3, t, HB_TYPE_sample, &s);
	win = rig_open(&r);
	mod = hb_model__build(win, NULL);
	assert_non_null(mod);
	hb_model__calls(mod, &n);
	assert_int_equal(n, 1);
	hb_model__funcs(mod, &n);
	assert_int_equal(n, 1);
	hb_model__free(mod);
	rig_close(&r, win);
}

/* ---- what descriptors were ---- */

static const char *slept_on(u8 kind, u64 chan, u64 fd, u64 local)
{
	static char buf[160];
	struct hb_rec_offcpu r = {
	    .sysno = SYS_READ, .a0 = fd, .chan = chan, .chankind = kind, .local = local};

	return hb_decode__slept_on(w, 200, &r, buf, sizeof(buf));
}

static void descriptors_have_names(void **state)
{
	struct hb_rec_offcpu futex = {.sysno = SYS_FUTEX, .a0 = 6, .chan = 44, .chankind = HB_CHAN_FUTEX};
	char buf[160];

	assert_string_equal(slept_on(HB_CHAN_FILE, 44, 6, 0), "file 44 /data/weights.bin");
	assert_string_equal(slept_on(HB_CHAN_FILE, 45, 6, 0), "file 45"); /* another file had this number */
	assert_string_equal(slept_on(HB_CHAN_TCP, 55, 7, 80), "tcp [2001:db8::1]:80 -> [2001:db8::2]:5000");
	assert_string_equal(slept_on(HB_CHAN_TCP, 56, 7, 80), "tcp 0.0.0.0:80 -> ?");
	assert_null(slept_on(HB_CHAN_NONE, 0, 6, 0));
	/* a futex address is not a descriptor, whatever the number */
	assert_string_equal(hb_decode__slept_on(w, 200, &futex, buf, sizeof(buf)), "futex 0x2c");
	assert_string_equal(hb_decode__fd(w, 200, 3, 0), "tcp 127.0.0.1:8000 -> 10.0.0.1:555");
	assert_null(hb_decode__fd(w, 200, 4, 33)); /* looked at when it was another pipe */
	assert_string_equal(hb_decode__fd(w, 200, 4, 0), "pipe:[34]");
	assert_null(hb_decode__fd(w, 200, 1ULL << 32 | 3, 0));
	assert_null(hb_decode__fd(w, 100, 3, 0));
}

static void kernels_have_short_names(void **state)
{
	static const struct {
		const char *name, *is;
	} v[] = {
	    {"void at::native::elementwise_kernel<128, 4, at::native::F>(int, at::native::F)",
	     "elementwise_kernel<..>"},
	    {"void at::native::(anonymous namespace)::CatArrayBatchedCopy<float>(float*)",
	     "CatArrayBatchedCopy<..>"},
	    {"at::native::plain(int)", "plain"},
	    {"plain(int)", "plain"},
	    {"sm90_xmma_gemm_bf16", "sm90_xmma_gemm_bf16"},
	    {"triton_poi_fused<0>", "triton_poi_fused<0>"}, /* no C++ signature: whatever it means */
	    {"<lambda>(int)", "<lambda>(int)"},
	    {"", ""},
	};
	char buf[64], tiny[8];

	for (size_t i = 0; i < sizeof(v) / sizeof(*v); i++)
		assert_string_equal(hb_decode__kernel(v[i].name, buf, sizeof(buf)), v[i].is);
	assert_string_equal(hb_decode__kernel("a_long_name(int)", tiny, sizeof(tiny)), "a_long_");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(hist_error),
	    cmocka_unit_test(hist_edges),
	    cmocka_unit_test(kernels_have_short_names),
	    cmocka_unit_test_setup_teardown(calls_are_counted, setup, teardown),
	    cmocka_unit_test_setup_teardown(nested_calls_are_one_operation, setup, teardown),
	    cmocka_unit_test_setup_teardown(launches_are_told_apart, setup, teardown),
	    cmocka_unit_test_setup_teardown(sleeps_have_reasons, setup, teardown),
	    cmocka_unit_test_setup_teardown(blocking_calls, setup, teardown),
	    cmocka_unit_test_setup_teardown(wakeups_link_processes, setup, teardown),
	    cmocka_unit_test_setup_teardown(cpu_time, setup, teardown),
	    cmocka_unit_test_setup_teardown(threads_and_processes, setup, teardown),
	    cmocka_unit_test_setup_teardown(totals, setup, teardown),
	    cmocka_unit_test_setup_teardown(descriptors_have_names, setup, teardown),
	    cmocka_unit_test(dangling_ids),
	    cmocka_unit_test(stacks_are_merged),
	};

	return cmocka_run_group_tests_name("model", tests, NULL, NULL);
}
